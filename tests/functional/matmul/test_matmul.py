"""Matrix products: ranks, strides, dtypes, precision, gradients, and the code that runs."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.functional import addmm, bmm, dot, inner, linear, matmul, mm, mv, outer
from tritensor.kernels.matmul import family
from tritensor.kernels.matmul.kernel import matmul_kernel
from tritensor.memory import buffer
from tritensor.operators import registry
from tritensor.runtime.call import Call
from tritensor.types import dtypes

from ...needs import HAS_TRITON, needs_triton
from .products import EXACT, assert_close, expected, numbers

SHAPES = [
    ((2, 3), (3, 4)),
    ((33, 70), (70, 20)),
    ((40,), (40,)),
    ((40,), (40, 5)),
    ((5, 40), (40,)),
    ((4, 5, 6), (6, 7)),
    ((4, 5, 6), (4, 6, 7)),
    ((2, 1, 5, 6), (3, 6, 7)),
    ((5, 6), (3, 6, 7)),
    ((6,), (3, 6, 7)),
    ((3, 5, 6), (6,)),
    ((4, 1, 6), (4, 6, 3)),
    ((3, 1, 6), (6, 2)),
    ((70,), (2, 70, 1)),
    ((17, 100), (100, 18)),
    ((3, 0), (0, 4)),
    ((0, 3), (3, 4)),
    ((2, 0, 3), (3, 4)),
    ((1, 1), (1, 1)),
]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", *EXACT])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_cpu_product_is_the_sum_of_products(shapes, dtype):
    a, b = (numbers(shape, dtype, seed) for seed, shape in enumerate(shapes))
    result = torch.from_numpy(a) @ torch.from_numpy(b)
    assert result.dtype is getattr(dtypes, dtype)
    assert_close(result, expected(a, b), shapes[0][-1])


@pytest.mark.sampled(7)
@needs_triton
@pytest.mark.parametrize("block", [0, 16])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_kernel_takes_every_rank(shapes, block):
    a, b = (numbers(shape, "float32", seed) for seed, shape in enumerate(shapes))
    with torch.cuda.simulate(devices=1), settings.block(block):
        assert_close(torch.from_numpy(a).cuda() @ torch.from_numpy(b).cuda(), expected(a, b), shapes[0][-1])


@needs_triton
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", *EXACT])
def test_kernel_takes_every_dtype(dtype):
    a, b = numbers((20, 70), dtype), numbers((70, 18), dtype)
    with torch.cuda.simulate(devices=1):
        for block in (0, 16):
            with settings.block(block):
                result = torch.from_numpy(a).cuda() @ torch.from_numpy(b).cuda()
                assert result.dtype is getattr(dtypes, dtype)
                assert_close(result, expected(a, b), 70)


def layouts(array):
    """The same CUDA matrix in several layouts of memory."""
    x = torch.from_numpy(array).cuda()
    wide = torch.zeros(2 * len(array), 2 * array.shape[1] + 1).cuda()
    wide[::2, 1::2] = x
    return [x, x.mT.contiguous().mT, wide[::2, 1::2], x[:1].expand(x.shape) if (array == array[0]).all() else x]


@pytest.mark.thorough
@needs_triton
def test_operands_of_any_strides_are_read_in_place(monkeypatch):
    a, b = numbers((20, 37), "float32"), numbers((37, 18), "float32")
    with torch.cuda.simulate(devices=1), settings.block(16):
        cases = [(x, y) for x in layouts(a) for y in layouts(b)]
        row = torch.from_numpy(a[:1].copy()).cuda().expand(20, 37)
        made = []
        allocate = buffer.empty
        monkeypatch.setattr(buffer, "empty", lambda *args: made.append(args[0]) or allocate(*args))
        results = [x @ y for x, y in cases]
        assert made == [(20, 18)] * len(cases)
        for result in results:
            assert_close(result, expected(a, b), 37)
        assert_close(row @ cases[0][1], expected(np.repeat(a[:1], 20, 0), b), 37)


@needs_triton
def test_a_depth_of_whole_blocks_needs_no_masks():
    with torch.cuda.simulate(devices=1), settings.block(16):
        for rows in (5, 6, 7):
            a, b = numbers((rows, 32), "float32"), numbers((32, 18), "float32")
            assert_close(torch.from_numpy(a).cuda() @ torch.from_numpy(b).cuda(), expected(a, b), 32)


def test_cost_counts_each_operand_once_and_two_operations_a_product():
    x, y, out = np.zeros((4, 5), np.float32), np.zeros((5, 6), np.float32), np.zeros((4, 6), np.float32)
    call = Call(family.matmul, (), {})
    call.outs, call.arrays = [out], [x, y]
    assert family.matmul.cost(call) == (4 * (20 + 30 + 24), 2 * 4 * 5 * 6)
    call.arrays = [x, y.T, None]
    assert family.linear.cost(call)[0] == 4 * (20 + 30 + 24)


@needs_triton
def test_batches_of_any_strides():
    a, b = numbers((2, 3, 5, 20), "float32"), numbers((3, 1, 20, 6), "float32")
    with torch.cuda.simulate(devices=1):
        x, y = torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()
        swapped = x.transpose(0, 1)
        assert_close(swapped @ y, expected(a.transpose(1, 0, 2, 3), b), 20)
        assert_close(swapped @ y[0, 0], expected(a.transpose(1, 0, 2, 3), b[0, 0]), 20)


# ---- linear -------------------------------------------------------------------------------------------------------


@pytest.mark.sampled(9)
@needs_triton
@pytest.mark.parametrize("activation", [None, "relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh"])
@pytest.mark.parametrize(
    ("shape", "bias"),
    [
        ((9, 40), (6,)),
        ((2, 5, 20), (6,)),
        ((40,), (6,)),
        ((9, 100), (9, 6)),
        ((9, 100), None),
        ((9, 20), (1,)),
        ((9, 20), ()),
    ],
)
def test_bias_and_activation_run_in_the_kernel(shape, bias, activation):
    x, w = torch.from_numpy(numbers(shape, "float32")), torch.from_numpy(numbers((6, shape[-1]), "float32", 1))
    b = None if bias is None else torch.from_numpy(numbers(bias, "float32", 2))
    wanted = linear(x, w, b, activation=activation)
    if activation is not None:
        plain = linear(x, w, b)
        operator = registry[activation]
        np.testing.assert_allclose(wanted.numpy(), operator(plain).numpy(), rtol=1e-5, atol=1e-6)
    with torch.cuda.simulate(devices=1):
        for block in (0, 16):
            with settings.block(block):
                result = linear(x.cuda(), w.cuda(), None if b is None else b.cuda(), activation=activation)
                assert_close(result, wanted.numpy().astype(np.float64), shape[-1])


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_an_activation_has_its_gradient(activation):
    x = torch.from_numpy(numbers((3, 4), "float64")).requires_grad_()
    w = torch.from_numpy(numbers((2, 4), "float64", 1)).requires_grad_()
    b = torch.from_numpy(numbers((2,), "float64", 2)).requires_grad_()
    assert torch.autograd.gradcheck(lambda *inputs: linear(*inputs, activation=activation), (x, w, b))
    assert linear(x, w, b, activation=activation).grad_fn.name().lower().startswith(activation[:4])


def test_an_unknown_activation_is_refused():
    x = torch.ones(2, 2)
    with pytest.raises(RuntimeError, match="an activation inside the operator has no gradient"):
        family.linear(x.clone().requires_grad_(), x, activation="relu")
    for name in ("no such thing", "add", "leaky_relu", "sum"):
        with pytest.raises(TypeError, match="activation must name an operator of one input"):
            linear(x, x, activation=name)


def test_a_scalar_bias_on_the_cpu_goes_with_cuda_operands():
    if not HAS_TRITON:
        pytest.skip("simulated kernels need Triton")
    with torch.cuda.simulate(devices=1):
        x = torch.ones(2, 3).cuda()
        assert linear(x, x, torch.tensor(1.0)).tolist() == [[4.0, 4.0], [4.0, 4.0]]


# ---- gradients ----------------------------------------------------------------------------------------------------


SMALL = [
    ((2, 3), (3, 2)),
    ((3,), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3,)),
    ((2, 2, 3), (3, 2)),
    ((2, 2, 3), (2, 3, 2)),
    ((2, 1, 2, 3), (2, 3, 1)),
    ((3,), (2, 3, 2)),
    ((2, 2, 3), (3,)),
    ((2, 3), (2, 3, 2)),
]


@pytest.mark.parametrize("shapes", SMALL, ids=str)
def test_gradients_of_every_rank(shapes):
    x, y = (torch.from_numpy(numbers(shape, "float64", seed)).requires_grad_() for seed, shape in enumerate(shapes))
    assert torch.autograd.gradcheck(matmul, (x, y))
    assert torch.autograd.gradgradcheck(matmul, (x, y))
    only = torch.from_numpy(numbers(shapes[1], "float64", 5))
    assert torch.autograd.gradcheck(lambda x: x @ only, (x,))


@pytest.mark.parametrize("shape", [(2, 3), (3,), (2, 2, 3)])
@pytest.mark.parametrize("bias", [(2,), None, (1,)])
def test_gradients_of_linear(shape, bias):
    x = torch.from_numpy(numbers(shape, "float64")).requires_grad_()
    w = torch.from_numpy(numbers((2, 3), "float64", 1)).requires_grad_()
    inputs = (x, w) if bias is None else (x, w, torch.from_numpy(numbers(bias, "float64", 2)).requires_grad_())
    assert torch.autograd.gradcheck(linear, inputs)
    assert torch.autograd.gradgradcheck(linear, inputs)


def test_complex_products_have_conjugate_gradients():
    z = np.array([[1 + 2j, 3 - 1j], [0.5j, 2.0]])
    x, y = torch.tensor(z, requires_grad=True), torch.tensor(z.T.copy(), requires_grad=True)
    (x @ y).backward(torch.ones(2, 2, dtype=torch.complex128))
    np.testing.assert_allclose(x.grad.numpy(), np.ones((2, 2)) @ z.conj())
    np.testing.assert_allclose(y.grad.numpy(), z.conj().T @ np.ones((2, 2)))


@pytest.mark.parametrize("needs", [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)])
def test_the_quick_path_agrees_with_the_operator(needs):
    made = [numbers((5, 8), "float32"), numbers((4, 8), "float32", 1), numbers((4,), "float32", 2)]
    found = []
    for call in (family.quick_linear, family.linear):
        inputs = [torch.from_numpy(x).requires_grad_(bool(need)) for x, need in zip(made, needs, strict=True)]
        out = call(*inputs)
        if any(needs):
            out.backward(torch.from_numpy(numbers((5, 4), "float32", 3)))
        found.append([out.detach(), *[x.grad for x in inputs]])
    for first, second in zip(*found, strict=True):
        assert (first is None) == (second is None)
        if first is not None:
            np.testing.assert_allclose(first.numpy(), second.numpy(), rtol=1e-5, atol=1e-6)


def test_a_wide_linear_is_contiguous():
    out = linear(torch.ones(2, 8), torch.ones(64, 8), torch.ones(64))
    assert out.is_contiguous()
    assert (out == 9).all()


def test_infinite_elements_warn_about_nothing():
    x = torch.tensor([[float("inf"), 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert linear(x, torch.ones(1, 2), torch.tensor([float("-inf")])).isnan().all()
        assert (x @ torch.zeros(2, 1)).isnan().all()


@needs_triton
def test_gradients_on_a_device_are_those_of_the_cpu():
    made = [numbers((9, 20), "float32"), numbers((6, 20), "float32", 1), numbers((6,), "float32", 2)]
    found = []
    with torch.cuda.simulate(devices=1):
        for device in ("cpu", "cuda"):
            inputs = [torch.from_numpy(x).to(device).requires_grad_() for x in made]
            linear(*inputs).backward(torch.ones(9, 6, device=device))
            found.append([x.grad.cpu().numpy() for x in inputs])
    for first, second in zip(*found, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-5, atol=1e-5)


# ---- named special cases ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("beta", "alpha", "wanted"),
    [(1.5, 1, [[27, -2], [-9, 35]]), (2, 2.7, [[54, -4], [-18, 70]]), (True, False, [[-4, -4], [-4, -4]])],
)
def test_factors_of_integers_are_truncated(beta, alpha, wanted):
    x, y = torch.tensor([[7, 8], [4, -3]], dtype=torch.int8), torch.tensor([[1, 6], [3, -5]], dtype=torch.int8)
    found = torch.tensor(-4, dtype=torch.int8).addmm(x, y, beta=beta, alpha=alpha)
    assert found.dtype is torch.int8
    assert found.tolist() == wanted
    with pytest.raises(RuntimeError, match="value cannot be converted to type int8_t without overflow"):
        x.addmm(x, y, beta=300)


def test_named_products():
    a, b, v = numbers((2, 3), "float64"), numbers((3, 4), "float64", 1), numbers((3,), "float64", 2)
    x, y, w = torch.from_numpy(a), torch.from_numpy(b), torch.from_numpy(v)
    for result, wanted in (
        (mm(x, y), a @ b),
        (x.mm(y), a @ b),
        (mv(x, w), a @ v),
        (x.mv(w), a @ v),
        (dot(w, w), v @ v),
        (w.dot(w), v @ v),
        (bmm(x.unsqueeze(0), y.unsqueeze(0)), (a @ b)[None]),
        (inner(x, w), a @ v),
        (inner(x, x), a @ a.T),
        (inner(w, torch.tensor(2.0, dtype=torch.float64)), v * 2),
        (outer(w, w), np.outer(v, v)),
        (w.ger(w), np.outer(v, v)),
        (x.matmul(y), a @ b),
        (torch.matmul(x, y), a @ b),
        (linear(x, w), a @ v),
        (addmm(torch.ones(4, dtype=torch.float64), x, y), a @ b + 1),
        (addmm(torch.ones(2, 4, dtype=torch.float64), x, y, beta=2, alpha=3), a @ b * 3 + 2),
        (addmm(torch.full((4,), float("nan"), dtype=torch.float64), x, y, beta=0), a @ b),
    ):
        np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-12)


# ---- precision, and offsets that are far -----------------------------------------------------------------------------


def test_precision_of_float32_is_a_choice():
    before = torch.get_float32_matmul_precision()
    assert before == "highest"
    try:
        torch.set_float32_matmul_precision("high")
        assert torch.get_float32_matmul_precision() == "high"
        with pytest.warns(UserWarning, match="is not one of 'highest', 'high', or 'medium'"):
            torch.set_float32_matmul_precision("some")
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)


@needs_triton
def test_offsets_of_64_bits_reach_the_same_elements():
    from tritensor.runtime.launch import launch

    a, b = numbers((20, 40), "float32"), numbers((40, 18), "float32")
    with torch.cuda.simulate(devices=1):
        x, y = torch.from_numpy(a).cuda()._data, torch.from_numpy(b).cuda()._data
        out = torch.zeros(20, 18).cuda()
        sizes = (20, 18, 40, 1, (1,), (0, 18, 1), (0, 40, 1), (0, 18, 1), (0, 0, 0))
        constants = {
            "EPILOGUE": None,
            "OUT_DTYPE": dtypes.float32,
            "TOTAL": dtypes.float32,
            "PRODUCT": "ieee",
            "RANK": 1,
            "BIAS_ROWS": False,
            "SPLIT": False,
            "EVEN": False,
            "WIDE": True,
            "BLOCK_M": 16,
            "BLOCK_N": 16,
            "BLOCK_K": 16,
            "GROUP": 8,
        }
        launch(matmul_kernel, (4,), (out._data, x, y, (), *sizes), constants, out.device)
        assert_close(out, expected(a, b), 40)
