"""Norms: of complex tensors, of matrices ("nuc"), their gradients where they have a corner, and their dtypes."""

from __future__ import annotations

import math

import pytest

import tritensor as torch
from tritensor.autograd import gradcheck, gradgradcheck

from ..needs import needs_triton

T = torch.tensor
INF = math.inf


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=needs_triton)])
def device(request):
    if request.param == "cpu":
        yield request.param
    else:
        with torch.cuda.simulate(devices=1):
            yield request.param


def close(found, wanted):
    torch.testing.assert_close(found, T(wanted, dtype=found.dtype), rtol=1e-4, atol=1e-4)


# ---- gradients where a norm has a corner: PyTorch's choice ---------------------------------------------------------


@pytest.mark.sampled(12)
@pytest.mark.parametrize("p", [2, "fro", 1, 3, 0.5, 1.5, 2.5, -1, -2, -0.5])
@pytest.mark.parametrize("dim", [None, 1, (0, 1)])
def test_the_gradient_of_a_norm_is_zero_at_zero(device, p, dim):
    x = torch.zeros(2, 3, device=device, requires_grad=True)
    x.norm(p, dim).sum().backward()
    assert x.grad.tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("p", "x", "wanted"),
    [
        (2, [[0.0, 0.0], [3.0, 4.0]], [[0, 0], [0.6, 0.8]]),
        (1, [[0.0, -2.0], [3.0, 0.0]], [[0, -1], [1, 0]]),
        (3, [[0.0, 0.0], [0.0, -5.0]], [[0, 0], [0, -1]]),
        (0.5, [[0.0, 4.0], [0.0, 0.0]], [[0, 1], [0, 0]]),
        (-1, [[0.0, 1.0], [2.0, 2.0]], [[0, 0], [0.25, 0.25]]),
        (INF, [[0.0, 0.0], [2.0, -2.0]], [[0, 0], [0.5, -0.5]]),
        (-INF, [[0.0, 0.0], [2.0, 1.0]], [[0, 0], [0, 1]]),
    ],
)
def test_the_gradient_of_a_norm_with_zeros(device, p, x, wanted):
    x = T(x, device=device, requires_grad=True)
    x.norm(p, 1).sum().backward()
    close(x.grad.cpu(), wanted)


def test_the_number_of_elements_that_are_not_zero_has_no_gradient(device):
    x = T([0.0, 1.0, -2.0], device=device, requires_grad=True)
    count = x.norm(0)
    assert count.requires_grad
    count.backward()
    assert x.grad is None


# ---- complex -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "wanted", "gradient"),
    [
        (2, 5.09902, [0.58835 + 0.78446j, 0.19612]),
        ("fro", 5.09902, [0.58835 + 0.78446j, 0.19612]),
        (1, 6.0, [0.6 + 0.8j, 1]),
        (3, 5.01330, [0.59681 + 0.79575j, 0.03979]),
        (INF, 5.0, [0.6 + 0.8j, 0]),
        (-INF, 1.0, [0, 1]),
    ],
)
def test_the_norm_of_a_complex_tensor_is_that_of_its_magnitudes(p, wanted, gradient):
    x = T([3 + 4j, 1], requires_grad=True)
    found = x.norm(p)
    assert found.dtype is torch.float32
    close(found.detach(), wanted)
    found.backward()
    close(x.grad, gradient)
    assert x.detach().norm(p, 0, keepdim=True).shape == (1,)
    assert x.detach().norm(p, dtype=torch.complex128).dtype is torch.float64


def test_complex_norms_at_zero_and_without_elements():
    x = T([0j, 0], requires_grad=True)
    x.norm().backward()
    assert x.grad.tolist() == [0, 0]
    assert T([3 + 4j, 0]).norm(0).item() == 1
    assert torch.zeros(0, dtype=torch.complex64).norm().item() == 0
    with pytest.raises(RuntimeError, match="cannot compute the inf norm on an empty tensor"):
        torch.zeros(0, dtype=torch.complex64).norm(INF)


@needs_triton
def test_complex_norms_on_a_device():
    with torch.cuda.simulate(devices=1):
        x = T([3 + 4j, 12j], device="cuda", requires_grad=True)
        x.norm().backward()
        assert (x.norm().item(), x.norm(1).item(), x.norm(INF).item()) == (13, 17, 12)
        assert (x.grad.cpu() * 13 - T([3 + 4j, 12j])).abs().max() < 1e-5


@pytest.mark.parametrize("p", [2, 3, INF])
@pytest.mark.parametrize(
    ("x", "dtype", "message"),
    [
        (T([1, 2]), None, "Expected a floating point or complex tensor as input. Got Long"),
        (T([1, 2]), torch.float32, "Expected a floating point or complex tensor as input. Got Long"),
        (T([1.0, 2.0]), torch.int32, "dtype should be floating point or complex, but got Int"),
        (T([1.0, 2.0]), torch.complex64, "dtype should be real for real inputs, but got ComplexFloat"),
        (T([1j, 2.0]), torch.float64, "dtype should be complex for complex inputs, but got Double"),
        (
            T([1.0], dtype=torch.float64),
            torch.float32,
            r"the dtype of the input \(Double\) should be convertible without narrowing to .* \(Float\)",
        ),
        (T([1.0], dtype=torch.float16), torch.bfloat16, "the dtype of the input .* without narrowing"),
    ],
)
def test_norms_refuse_dtypes_in_pytorchs_words(p, x, dtype, message):
    with pytest.raises(RuntimeError, match=f"linalg.vector_norm: {message}"):
        x.norm(p, dtype=dtype)


# ---- nuclear norms -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "options", "wanted"),
    [
        ([[1.0, 2.0], [3.0, 4.0]], {}, 5.83095),
        ([[1.0, 2.0], [3.0, 4.0]], {"dim": (1, 0)}, 5.83095),
        ([[1.0, 2.0], [3.0, 4.0]], {"dim": (-1, -2), "keepdim": True}, [[5.83095]]),
        ([[1.0 + 1j, 2.0], [3.0, 4.0]], {}, 6.32008),
        ([[[0.0, 1, 2], [3, 4, 5]], [[6.0, 7, 8], [9, 10, 11]]], {"dim": (1, 2)}, [8.34847, 21.57998]),
        (
            [[[0.0, 1, 2], [3, 4, 5]], [[6.0, 7, 8], [9, 10, 11]]],
            {"dim": (2, 0), "keepdim": True},
            [[[13.54234], [19.52925]]],
        ),
    ],
)
def test_nuclear_norms(x, options, wanted):
    close(T(x).norm(p="nuc", **options), wanted)
    close(torch.norm(T(x), "nuc", **options), wanted)
    wide = torch.complex128 if T(x).is_complex() else torch.float64
    found = T(x).norm(p="nuc", dtype=wide, **options)
    assert found.dtype is torch.float64


def test_nuclear_norms_without_elements_or_of_what_is_not_finite():
    assert torch.zeros(0, 3).norm(p="nuc").item() == 0
    assert torch.zeros(2, 0, 3).norm(p="nuc", dim=(1, 2)).tolist() == [0, 0]
    assert torch.zeros(0, 2, 3).norm(p="nuc", dim=(1, 2)).tolist() == []
    with pytest.raises(
        RuntimeError, match=r"linalg.svd: The algorithm failed to converge because .* non-finite values"
    ):
        T([[1.0, math.nan], [3, 4]]).norm(p="nuc")


@pytest.mark.parametrize(
    ("x", "wanted"),
    [
        ([[1.0, 2], [3, 4]], [[-0.51450, 0.85749], [0.85749, 0.51450]]),
        ([[1.0, 2, 0], [3, 4, 1]], [[-0.21920, 0.76720, -0.60280], [0.71240, 0.54800, 0.43840]]),
        ([[1.0, 0], [0, 1]], [[1, 0], [0, 1]]),
        ([[0.0, 0], [0, 0]], [[1, 0], [0, 1]]),
        ([[1 + 1j, 2], [3, 4]], [[-0.12482 + 0.72430j, 0.52869 - 0.42456j], [0.61616 - 0.28304j, 0.70372 + 0.21228j]]),
    ],
)
def test_the_gradient_of_a_nuclear_norm(x, wanted):
    x = T(x, requires_grad=True)
    x.norm(p="nuc").backward()
    close(x.grad, wanted)


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (4, 2)])
def test_gradients_of_nuclear_norms_agree_with_finite_differences(shape):
    torch.manual_seed(0)
    x = torch.randn(2, *shape, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: x.norm(p="nuc", dim=(1, 2)), (x,))
    assert gradcheck(lambda x: x.norm(p="nuc", dim=(2, 0), keepdim=True), (x,))
    assert gradgradcheck(lambda x: x.norm(p="nuc", dim=(1, 2)), (x,))


@pytest.mark.parametrize(
    ("kind", "x", "options", "message"),
    [
        (RuntimeError, torch.ones(2), {}, "The input tensor A must have at least 2 dimensions."),
        (RuntimeError, torch.ones(2, 2, 2), {}, "dim must be a 2-tuple. Got 0 1 2"),
        (RuntimeError, torch.ones(2, 2), {"dim": 0}, "dim must be a 2-tuple. Got 0"),
        (RuntimeError, torch.ones(2, 2), {"dim": (0, 0)}, r"dims must be different. Got \(0, 0\)"),
        (IndexError, torch.ones(2, 2), {"dim": (0, 2)}, "Dimension out of range"),
        (RuntimeError, torch.ones(2, 2).long(), {}, "Expected a floating point or complex tensor as input. Got Long"),
        (RuntimeError, torch.ones(2, 2).half(), {}, "Low precision dtypes not supported. Got Half"),
        (RuntimeError, torch.ones(2, 2).double(), {"dtype": torch.float32}, "without narrowing"),
    ],
)
def test_nuclear_norms_refuse_in_pytorchs_words(kind, x, options, message):
    with pytest.raises(kind, match=message):
        x.norm(p="nuc", **options)
    with pytest.raises(RuntimeError, match="Order nuk not supported"):
        x.norm(p="nuk", **options)


@needs_triton
@pytest.mark.filterwarnings("ignore::tritensor.errors.HostComputationWarning")
def test_nuclear_norms_of_a_device_stay_there():
    with torch.cuda.simulate(devices=1):
        x = T([[1.0, 2.0], [3.0, 4.0]], device="cuda", requires_grad=True)
        found = x.norm(p="nuc")
        assert found.is_cuda
        found.backward()
        close(found.cpu(), 5.83095)
        close(x.grad.cpu(), [[-0.51450, 0.85749], [0.85749, 0.51450]])
