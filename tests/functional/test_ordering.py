"""Medians, the k-th smallest and most frequent elements, and quantiles: values, indices, gradients, errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tritensor as torch

from ..needs import needs_triton

nan, inf = math.nan, math.inf
DEVICES = ["cpu", pytest.param("cuda", marks=[needs_triton, pytest.mark.slow])]


@pytest.fixture(params=DEVICES)
def device(request):
    with torch.cuda.simulate(devices=1):
        yield request.param


def numbers(x):
    return x.detach().cpu().tolist()


def test_of_an_even_number_the_median_is_the_lower_one(device):
    x = torch.tensor([[3.0, 1.0, 2.0, 4.0], [nan, 1.0, nan, 0.0]], device=device)
    np.testing.assert_equal(numbers(x.median()), nan)
    assert numbers(x.nanmedian()) == 1.0 and numbers(x[0].median()) == 2.0
    found = x.median(1)
    np.testing.assert_equal(numbers(found.values), [2.0, nan])
    assert numbers(found.indices) == [2, 0]
    found = x.nanmedian(1, keepdim=True)
    assert numbers(found.values) == [[2.0], [0.0]] and numbers(found.indices) == [[2], [3]]
    assert numbers(torch.tensor([2, 2, 1, 5, 5], device=device).median(0).values) == 2
    np.testing.assert_equal(numbers(torch.full((3,), nan, device=device).nanmedian()), nan)
    for kind in (torch.float16, torch.bfloat16, torch.int8):
        assert numbers(torch.tensor([3, 1, 2], dtype=kind, device=device).median()) == 2
    assert type(found).__name__ == "nanmedian" and found.values.shape == (2, 1)
    scalar = torch.tensor(3.0, device=device).median(0)
    assert numbers(scalar.values) == 3.0 and numbers(scalar.indices) == 0


def test_the_gradient_of_a_median_is_divided_among_equal_elements(device):
    for x, wanted in (([1.0, 2.0, 2.0, 3.0], [0, 0.5, 0.5, 0]), ([1.0, nan, 0.0], [0, 1, 0])):
        leaf = torch.tensor(x, device=device, requires_grad=True)
        leaf.median().backward()
        assert numbers(leaf.grad) == wanted
    leaf = torch.tensor([[1.0, nan, 0.0], [4.0, 4.0, nan]], device=device, requires_grad=True)
    leaf.nanmedian().backward()
    assert numbers(leaf.grad) == [[1, 0, 0], [0, 0, 0]]
    leaf.grad = None
    leaf.nanmedian(1).values.sum().backward()
    assert numbers(leaf.grad) == [[0, 0, 1], [1, 0, 0]]


def test_kthvalue_and_mode(device):
    x = torch.tensor([[3, 1, 3, 1, 2], [5, 4, 4, 9, 4]], device=device)
    for k in range(1, 6):
        assert numbers(x.kthvalue(k).values) == np.sort([[3, 1, 3, 1, 2], [5, 4, 4, 9, 4]])[:, k - 1].tolist()
    found = x.mode()
    assert numbers(found.values) == [1, 4] and numbers(found.indices) == [3, 4]
    assert numbers(x.mode(0, True).indices) == [[0, 0, 0, 0, 0]]
    assert numbers(torch.tensor([nan, 2.0, nan, 1.0, 1.0], device=device).mode().values) == 1.0
    assert numbers(torch.tensor([1.0, nan, 2.0], device=device).kthvalue(3).indices) == 1
    assert numbers(torch.tensor([True, False, True], device=device).mode().indices) == 2
    assert numbers(torch.tensor(7, device=device).mode().values) == 7
    leaf = torch.tensor([3.0, 1.0, 2.0], device=device, requires_grad=True)
    (leaf.kthvalue(2).values * 2 + leaf.mode().values).backward()
    assert numbers(leaf.grad) == [0, 1, 2]
    assert numbers(torch.tensor([[2, 1], [0, 5]], device=device).msort()) == [[0, 1], [2, 5]]


@pytest.mark.parametrize("way", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles_are_those_of_numpy(way, device):
    rng = np.random.default_rng(0)
    array = rng.permutation(24).reshape(4, 6).astype(np.float64)
    x = torch.from_numpy(array).to(device)
    q = torch.tensor([0.0, 0.3, 0.55, 1.0], dtype=torch.float64, device=device)
    wanted = np.quantile(array, numbers(q), 1, method=way)
    np.testing.assert_allclose(numbers(x.quantile(q, 1, interpolation=way)), wanted)
    assert x.quantile(q, 0, True).shape == (4, 1, 6) and x.quantile(0.5, keepdim=True).shape == (1, 1)
    holed = np.where(array % 5 == 0, nan, array)
    y = torch.from_numpy(holed).to(device).requires_grad_()
    np.testing.assert_allclose(
        numbers(y.nanquantile(0.3, 1, interpolation=way)), np.nanquantile(holed, 0.3, 1, method=way)
    )
    assert np.isnan(numbers(y.quantile(0.3)))
    assert np.isnan(numbers(torch.full((2,), nan, device=device).nanquantile(0.5)))


def test_gradients_of_quantiles(device):
    leaf = torch.tensor([4.0, 1.0, 2.0], device=device, requires_grad=True)
    leaf.quantile(0.75).backward()
    assert numbers(leaf.grad) == [0.5, 0, 0.5]


@needs_triton
def test_on_a_device():
    with torch.cuda.simulate(devices=1):
        x = torch.tensor([3, 1, nan, 1], dtype=torch.float16, device="cuda")
        assert x.nanmedian(0).indices.item() == 1 and x.mode().values.item() == 1
        leaf = torch.tensor([4.0, 1.0, 2.0], device="cuda", requires_grad=True)
        (leaf.quantile(0.75) + leaf.median()).backward()
        assert leaf.grad.tolist() == [0.5, 0, 1.5]


def test_empty_tensors():
    assert math.isnan(torch.empty(0).median().item())
    assert torch.empty(0, dtype=torch.int32).median().item() == -(2**31)
    for call in (torch.median, torch.nanmedian, torch.mode):
        found = call(torch.empty(2, 0), 0)
        assert found.values.shape == (0,) and found.indices.dtype is torch.int64
    assert torch.empty(2, 0).kthvalue(1, 0, True).values.shape == (1, 0)


CASES = [
    ("torch.ones(2, dtype=torch.bool).median()", NotImplementedError, "\"median_cpu\" not implemented for 'Bool'"),
    ("c.mode()", NotImplementedError, "\"mode_cpu\" not implemented for 'ComplexFloat'"),
    ("x.median((0,))", TypeError, "median() received an invalid combination of arguments"),
    ("torch.empty(2, 0).median(1)", IndexError, "median(): Expected reduction dim 1 to have non-zero size."),
    ("torch.empty(0).mode()", IndexError, "mode(): Expected reduction dim 0 to have non-zero size."),
    ("torch.empty(0).kthvalue(1)", IndexError, "kthvalue(): Expected reduction dim 0 to have non-zero size."),
    ("x.kthvalue(4)", RuntimeError, "kthvalue(): selected number k out of range for dimension 0"),
    ("x.kthvalue(0)", RuntimeError, "kthvalue(): selected number k out of range for dimension 0"),
    ("x.kthvalue(1.5)", TypeError, "kthvalue(): argument 'k'"),
    ("torch.median([1])", TypeError, "median(): argument 'input' (position 1) must be Tensor, not list"),
    ("x.quantile(2.0)", RuntimeError, "quantile() q must be in the range [0, 1] but got 2"),
    ("x.quantile(math.nan)", RuntimeError, "quantile() q must be in the range [0, 1] but got nan"),
    ("x.quantile(torch.tensor([2.0]))", RuntimeError, "quantile() q values must be in the range [0, 1]"),
    ("x.quantile(torch.ones(1, 1))", RuntimeError, "quantile() q must be a scalar or 1D tensor"),
    ("x.quantile(torch.ones(1).double())", RuntimeError, "quantile() q tensor must be same dtype as the input tensor"),
    ("x.half().quantile(0.5)", RuntimeError, "quantile() input tensor must be either float or double dtype"),
    ("torch.empty(0).nanquantile(0.5)", RuntimeError, "nanquantile() input tensor must be non-empty"),
    ("x.quantile(0.5, interpolation='x')", RuntimeError, "quantile() interpolation must be one of linear, lower"),
    ("torch.ones(1).expand(16000001).quantile(0.5)", RuntimeError, "quantile() input tensor is too large"),
    ("x.quantile('a')", TypeError, "'<=' not supported"),
]


@pytest.mark.parametrize(("call", "error", "words"), CASES, ids=[case[0] for case in CASES])
def test_errors(call, error, words):
    with pytest.raises(error) as raised:
        eval(call, {"torch": torch, "math": math, "x": torch.ones(3), "c": torch.ones(3).to(torch.complex64)})
    assert str(raised.value).startswith(words)


@needs_triton
def test_q_on_another_device_is_refused():
    with torch.cuda.simulate(devices=1), pytest.raises(RuntimeError, match="q tensor must be on the same device"):
        torch.ones(2).quantile(torch.tensor([0.5], device="cuda"))


def test_into():
    values, indices = torch.empty(()), torch.empty((), dtype=torch.int64)
    found = torch.median(torch.tensor([1.0, 3.0, 2.0]), 0, out=(values, indices))
    assert found.values is values and indices.item() == 2
    assert torch.quantile(torch.tensor([1.0, 3.0]), 0.5, out=values).item() == 2.0
