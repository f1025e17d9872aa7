"""Reductions and running sums: PyTorch's forms, words and special values, every layout, and gradients."""

from __future__ import annotations

import itertools
import re
import warnings

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.tensors import wrap

NAN, INF = float("nan"), float("inf")


@pytest.fixture(params=["cpu", "cuda", "cuda in small blocks"])
def device(request):
    """The CPU; a simulated device with one tile for everything; one whose tiles hold a few elements each."""
    if request.param == "cpu":
        yield "cpu"
        return
    with torch.cuda.simulate(devices=1), settings.block(0 if request.param == "cuda" else 4):
        yield "cuda"


def operands(device):
    made = {
        "x": torch.arange(6.0).reshape(2, 3),
        "i": torch.arange(6).reshape(2, 3),
        "b": torch.tensor([[True, False]]),
        "u": torch.tensor([1, 2], dtype=torch.uint8),
        "e": torch.zeros(0, 3),
        "s": torch.tensor(2.0),
        "n": torch.tensor([1.0, NAN, 3.0, NAN]),
        "h": torch.full((3000,), 1.001, dtype=torch.float16),
    }
    return {name: value.to(device) for name, value in made.items()} | {"torch": torch, "inf": INF}


FORMS = [
    ("x.sum()", 15.0, "float32"),
    ("x.sum(())", 15.0, "float32"),
    ("x.sum([0, 1])", 15.0, "float32"),
    ("x.sum(-1)", [3.0, 12.0], "float32"),
    ("x.sum(0, True)", [[3.0, 5.0, 7.0]], "float32"),
    ("x.sum(axis=0, keepdims=True)", [[3.0, 5.0, 7.0]], "float32"),
    ("x.sum(dtype=torch.int32)", 15, "int32"),
    ("i.sum()", 15, "int64"),
    ("i.sum(dtype=torch.float32)", 15.0, "float32"),
    ("b.sum()", 1, "int64"),
    ("u.sum()", 3, "int64"),
    ("u.sum(dtype=torch.uint8)", 3, "uint8"),
    ("s.sum(0)", 2.0, "float32"),
    ("s.sum(-1, keepdim=True)", 2.0, "float32"),
    ("e.sum()", 0.0, "float32"),
    ("e.sum(0)", [0.0, 0.0, 0.0], "float32"),
    ("e.sum(1)", [], "float32"),
    ("x.prod(0)", [0.0, 4.0, 10.0], "float32"),
    ("u.prod()", 2, "int64"),
    ("e.prod(0)", [1.0, 1.0, 1.0], "float32"),
    ("x.mean(1, keepdim=True)", [[1.0], [4.0]], "float32"),
    ("i.mean(dtype=torch.float64)", 2.5, "float64"),
    ("e.mean()", NAN, "float32"),
    ("x.var()", 3.5, "float32"),
    ("x.var(False)", 35 / 12, "float32"),
    ("x.var(0, unbiased=False)", [2.25] * 3, "float32"),
    ("x.var((0, 1), correction=2, keepdim=True)", [[4.375]], "float32"),
    ("x.std(1, True, True)", [[1.0], [1.0]], "float32"),
    ("torch.var_mean(x, 0)[1]", [1.5, 2.5, 3.5], "float32"),
    ("torch.std_mean(x, 1)[0]", [1.0, 1.0], "float32"),
    ("x.max()", 5.0, "float32"),
    ("x.max(1, True).values", [[2.0], [5.0]], "float32"),
    ("x.max(axis=0).indices", [1, 1, 1], "int64"),
    ("x.min(dim=0)[0]", [0.0, 1.0, 2.0], "float32"),
    ("torch.min(x, torch.ones(3).to(x.device))", [[0.0, 1.0, 1.0], [1.0, 1.0, 1.0]], "float32"),
    ("torch.max(x, other=torch.ones(3).to(x.device))", [[1.0, 1.0, 2.0], [3.0, 4.0, 5.0]], "float32"),
    ("s.max(0).indices", 0, "int64"),
    ("e.max(1).indices", [], "int64"),
    ("b.max(1).values", [True], "bool"),
    ("x.amax((0, 1))", 5.0, "float32"),
    ("x.aminmax(dim=1).max", [2.0, 5.0], "float32"),
    ("i.argmin()", 0, "int64"),
    ("x.argmax(1, keepdim=True)", [[2], [2]], "int64"),
    ("torch.tensor([1, 3, 3]).to(x.device).argmax()", 1, "int64"),
    ("n.max()", NAN, "float32"),
    ("n.amin(0)", NAN, "float32"),
    ("n.min(0).indices", 1, "int64"),
    ("n.argmax()", 1, "int64"),
    ("n.argmin()", 1, "int64"),
    ("x.any((0, 1))", True, "bool"),
    ("x.any(())", [[False, True, True], [True, True, True]], "bool"),
    ("n.all()", True, "bool"),
    ("u.all(0)", 1, "uint8"),
    ("e.all(0)", [True, True, True], "bool"),
    ("e.any()", False, "bool"),
    ("x.logsumexp((0, 1))", 5.4561934, "float32"),
    ("i.logsumexp(0)", [3.0485873, 4.0485873, 5.0485873], "float32"),
    ("e.logsumexp(0)", [-INF, -INF, -INF], "float32"),
    ("(x * inf).logsumexp(1)", [NAN, INF], "float32"),
    ("torch.full((3,), -inf).to(x.device).logsumexp(0)", -INF, "float32"),
    ("x.norm()", 55**0.5, "float32"),
    ("x.norm(1)", 15.0, "float32"),
    ("x.norm(0, 1)", [2.0, 3.0], "float32"),
    ("x.norm(p=inf, dim=0)", [3.0, 4.0, 5.0], "float32"),
    ("x.norm(p=-inf, dim=0)", [0.0, 1.0, 2.0], "float32"),
    ("x.norm(3, (0, 1))", 225 ** (1 / 3), "float32"),
    ("x.norm('fro', 1, keepdim=True)", [[5**0.5], [50**0.5]], "float32"),
    ("x.norm(dtype=torch.float64)", 55**0.5, "float64"),
    ("e.norm(1, 0)", [0.0, 0.0, 0.0], "float32"),
    ("x.count_nonzero()", 5, "int64"),
    ("x.count_nonzero((0,))", [1, 2, 2], "int64"),
    ("x.cumsum(1)", [[0.0, 1.0, 3.0], [3.0, 7.0, 12.0]], "float32"),
    ("b.cumsum(axis=1)", [[1, 1]], "int64"),
    ("b.cumsum(1, dtype=torch.float32)", [[1.0, 1.0]], "float32"),
    ("s.cumsum(0)", 2.0, "float32"),
    ("x.sum_to_size(1, 3)", [[3.0, 5.0, 7.0]], "float32"),
    ("x.sum_to_size((3,))", [3.0, 5.0, 7.0], "float32"),
    ("x.sum_to_size(())", 15.0, "float32"),
    ("(s > -100).sum_to_size(())", 1, "int64"),
    ("u.sum_to_size((2,))", [1, 2], "uint8"),
    ("u.reshape(1, 2).sum_to_size((2,))", [1, 2], "int64"),
    ("torch.full_like(s, -1e30).norm()", 1e30, "float32"),
    ("(x * 1e30).norm(3, ())", INF, "float32"),
    ("(x[:1] * 1e30).norm(3, 0)", [0.0, 1e30, 2e30], "float32"),
    ("(x[:1] * 1e30).norm(0.5, 0, True)", [[0.0, 1e30, 2e30]], "float32"),
    ("(x[:1] * 1e30).norm(0, 0)", [0.0, 1.0, 1.0], "float32"),
    ("(x[:1] * 2.0**100).norm(dim=0, dtype=torch.float64)", [0.0, 2.0**100, 2.0**101], "float64"),
    ("x.expand(2, 2, 3).sum_to_size(2, 1)", [[6.0], [24.0]], "float32"),
    ("h.sum()", 3002.0, "float16"),
    ("h.mean()", 1.001, "float16"),
    ("h.sum(dtype=torch.float32)", 3002.9297, "float32"),
]


@pytest.mark.sampled(54)
@pytest.mark.parametrize(("code", "value", "dtype"), FORMS, ids=[form[0] for form in FORMS])
def test_forms(code, value, dtype, device):
    result = eval(code, operands(device))
    assert result.dtype.name == dtype
    assert result.device.type == device
    found = result.cpu().numpy()
    assert found.shape == np.shape(value)
    tolerance = {"float16": 1e-3, "float32": 2e-6, "float64": 1e-13}.get(dtype, 0)
    np.testing.assert_allclose(found, np.array(value, found.dtype), rtol=tolerance, atol=tolerance)


REFUSED = [
    ("x.sum(5)", IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 5)"),
    ("s.sum(1)", IndexError, "Dimension out of range (expected to be in range of [-1, 0], but got 1)"),
    ("x.sum((0, 0))", RuntimeError, "dim 0 appears multiple times in the list of dims"),
    ("x.sum('a')", TypeError, "sum() received an invalid combination of arguments - got (str)"),
    ("x.mean(1.5)", TypeError, "mean() received an invalid combination of arguments - got (float)"),
    ("x.sum(0, 1)", TypeError, "sum(): argument 'keepdim' must be bool, not int"),
    ("x.sum(0, where=x)", TypeError, "sum() got an unexpected keyword argument 'where'"),
    ("torch.sum([1, 2])", TypeError, "sum(): argument "),
    ("torch.amax([1, 2])", TypeError, "amax(): argument "),
    ("torch.cumsum([1, 2], 0)", TypeError, "cumsum(): argument "),
    ("x.prod((0, 1))", TypeError, "prod() received an invalid combination of arguments - got (tuple)"),
    ("x.argmax((0, 1))", TypeError, "argmax(): argument 'dim' (position 1) must be int, not tuple"),
    ("x.cumsum()", TypeError, 'cumsum() missing 1 required positional arguments: "dim"'),
    (
        "i.mean()",
        RuntimeError,
        "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: Long",
    ),
    (
        "x.mean(dtype=torch.int64)",
        RuntimeError,
        "mean(): could not infer output dtype. Optional dtype must be either a "
        "floating point or complex dtype. Got: Long",
    ),
    ("i.var()", RuntimeError, "std and var only support floating point and complex dtypes"),
    ("i.norm()", RuntimeError, "linalg.vector_norm: Expected a floating point or complex tensor as input. Got Long"),
    ("x.norm('nuk')", RuntimeError, "linalg.matrix_norm: Order nuk not supported."),
    ("e.norm(inf)", RuntimeError, "linalg.vector_norm cannot compute the inf norm on an empty tensor"),
    ("e.norm(-inf, 0)", RuntimeError, "linalg.vector_norm cannot compute the -inf norm on the dimension 0"),
    ("b.argmax(5)", RuntimeError, "argmax(): does not support bool input"),
    ("i.mean(5)", RuntimeError, "mean(): could not infer output dtype. Input dtype must be either a floating point"),
    ("i.std(5)", RuntimeError, "std and var only support floating point and complex dtypes"),
    ("i.amax(5)", IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 5)"),
    ("torch.aminmax(x, keepdim=None)", TypeError, "aminmax(): argument 'keepdim' must be bool, not NoneType"),
    (
        "torch.aminmax(x[:0])",
        RuntimeError,
        "aminmax(): cannot compute aminmax over an empty dimension as the operation",
    ),
    ("torch.aminmax(x, dim=1.5)", TypeError, "aminmax(): argument 'dim' must be int, not float"),
    ("torch.aminmax(x, dim=(0,))", TypeError, "aminmax(): argument 'dim' must be int, not tuple"),
    ("b.argmax()", RuntimeError, "argmax(): does not support bool input"),
    ("e.max()", RuntimeError, "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the "),
    ("e.max(0)", IndexError, "max(): Expected reduction dim 0 to have non-zero size."),
    ("e.amin()", RuntimeError, "amin(): Expected reduction dim to be specified for input.numel() == 0. Specify the "),
    ("e.amax((0, 1))", IndexError, "amax(): Expected reduction dim 0 to have non-zero size."),
    ("e.argmin()", IndexError, "argmin(): Expected reduction dim to be specified for input.numel() == 0."),
    ("x.sum_to_size(2)", RuntimeError, "size {[2]} is not expandable to size {[2, 3]}."),
    ("x.sum_to_size(1, 2, 3)", RuntimeError, "size {[1, 2, 3]} is not expandable to size {[2, 3]}."),
    ("x.var(0, True, correction=0)", TypeError, "var(): unbiased and correction say the same thing"),
    ("x.std(0, correction=1j)", RuntimeError, "value cannot be converted to type double without overflow"),
]


@pytest.mark.parametrize(("code", "error", "words"), REFUSED, ids=[case[0] for case in REFUSED])
def test_refusals_begin_with_pytorchs_words(code, error, words, device):
    with pytest.raises(error, match="^" + re.escape(words)):
        eval(code, operands(device))


def test_max_and_min_return_named_tuples():
    values, indices = torch.tensor([[3.0, 1.0]]).max(1)
    assert values.item() == 3 and indices.item() == 0
    assert repr(torch.tensor([2.0]).min(0)).startswith("torch.return_types.min(")
    assert [found.item() for found in torch.tensor([2.0, 1.0]).aminmax()] == [1.0, 2.0]


def test_var_warns_where_nothing_is_left_to_divide_by():
    for code, value in (("s.var()", NAN), ("x.var(0, correction=2)", INF), ("e.std()", NAN)):
        with pytest.warns(UserWarning, match=r"^(var|std)\(\): degrees of freedom is <= 0\."):
            result = eval(code, operands("cpu"))
        np.testing.assert_array_equal(np.unique(result.numpy()), [value])


def test_the_gradient_of_a_product_of_zero_passes_nan_on(device):
    for dtype in (torch.float32, torch.bfloat16):
        x = torch.tensor([-6.0, 6.0, 0.0], device=device, dtype=dtype, requires_grad=True)
        x.prod().backward(torch.tensor(NAN, device=device, dtype=dtype))
        assert x.grad.isnan().all()
        y = torch.tensor(0.0, device=device, dtype=dtype, requires_grad=True)
        y.prod().backward()
        assert y.grad == 1 and y.grad.dtype is dtype
        z = torch.tensor(INF, device=device, dtype=dtype, requires_grad=True)
        z.prod().backward()
        assert z.grad == 1


@pytest.mark.parametrize(
    ("correction", "whole", "rows"), [(2, [INF, INF], [-INF, INF]), (3, [INF, INF], [1, -1]), (1, [-1, 1], [-1, 1])]
)
def test_gradients_of_a_variance_without_freedom_are_pytorchs(correction, whole, rows, device):
    for shape, dim, expected in (((2,), None, whole), ((1, 2), 1, rows)):
        x = torch.tensor([1.0, 2.0], device=device).reshape(shape).requires_grad_()
        with warnings.catch_warnings(action="ignore"):
            x.var(dim, correction=correction).sum().backward()
        assert x.grad.flatten().tolist() == expected


def test_a_correction_of_nan_leaves_nothing_to_divide_by(device):
    x = operands(device)["x"]
    assert x.var(0, correction=NAN).tolist() == x.std(0, correction=NAN).tolist() == [INF] * 3


@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", [2, 3, 200, 1 << 19])
def test_equal_numbers_do_not_vary_however_large(size, device):
    if size > 200 and device != "cpu":
        pytest.skip("large arrays are computed in blocks on the CPU")
    for kind in (torch.bfloat16, torch.float32, torch.float64):
        for number in (torch.finfo(kind).max, -torch.finfo(kind).max, 1.5)[2 * (size == 200) :]:
            x = torch.full((size,), number, dtype=kind, device=device)
            columns = torch.stack([x, torch.ones_like(x)])
            assert x.var().item() == x.std().item() == torch.var_mean(x)[0].item() == 0
            assert columns.var(1).tolist() == columns.t().std(0).tolist() == [0, 0]
    x = torch.tensor([3e38, -3e38, 3e38, NAN], device=device)
    assert x[:3].var().item() == INF and x.isnan().any() and x.var().isnan()


# ---- every layout ---------------------------------------------------------------------------------------------


def layouts(device):
    """Arrays of rank 1 to 5 in memory orders of every kind, with the same elements as a NumPy array."""
    rng = np.random.default_rng(7)
    base = rng.standard_normal((2, 3, 4, 2, 3)).astype(np.float32)
    x = torch.from_numpy(base).to(device)
    yield base, x
    yield base.transpose(3, 1, 4, 0, 2), x.permute(3, 1, 4, 0, 2)
    yield base[:, 1:3, ::2, :, 1:], x[:, 1:3, ::2, :, 1:]
    yield base[1, :, 2], x[1, :, 2]
    yield np.broadcast_to(base[:1, :, :1], base.shape), x[:1, :, :1].expand(2, 3, 4, 2, 3)
    yield base[:, :, :, :, ::-1][::-1], wrap(x._data[:, :, :, :, ::-1][::-1])
    yield base.reshape(-1)[:7], x.reshape(-1)[:7]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["sum", "amax", "var", "argmax"])
def test_any_dimensions_of_any_layout(name, device):
    for array, x in layouts(device):
        rank = array.ndim
        subsets = [dims for size in range(1, rank + 1) for dims in itertools.combinations(range(rank), size)]
        if name == "argmax":
            subsets = [(dim,) for dim in range(rank)]
        elif rank == 5:
            subsets = [(0,), (4,), (1, 3), (0, 2, 4), (0, 1, 2, 3, 4)]
        for dims in subsets:
            method = {"sum": "sum", "amax": "max", "var": "var", "argmax": "argmax"}[name]
            wanted = getattr(array.astype(np.float64), method)(dims[0] if name == "argmax" else dims)
            options = {"correction": 0} if name == "var" else {}
            found = getattr(x, name)(dims[0] if name == "argmax" else dims, **options)
            np.testing.assert_allclose(found.cpu().numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_bfloat16_is_added_in_float32(device):
    x = torch.full((2, 600), 1.0, dtype=torch.bfloat16, device=device)
    # added in bfloat16 the sum would stop at 256
    assert x.sum(1).tolist() == [600.0] * 2
    assert x.sum().item() == 1200.0


# ---- gradients ------------------------------------------------------------------------------------------------


def gradient(function, array, device="cpu"):
    x = torch.tensor(array, dtype=torch.float64, device=device, requires_grad=True)
    out = function(x)
    (found,) = torch.autograd.grad(out.sum(), x)
    return found.tolist()


def test_gradients_of_extremes(device):
    tied = [[1.0, 3.0, 3.0], [3.0, 2.0, 1.0]]
    assert gradient(lambda x: x.amax(1), tied, device) == [[0, 0.5, 0.5], [1, 0, 0]]
    assert gradient(lambda x: x.max(), tied, device) == [[0, 1 / 3, 1 / 3], [1 / 3, 0, 0]]
    assert gradient(lambda x: x.max(1).values, tied, device) == [[0, 1, 0], [1, 0, 0]]
    assert gradient(lambda x: x.min(0, True)[0], tied, device) == [[1, 0, 0], [0, 1, 1]]
    assert gradient(lambda x: x.max(0)[0], 2.0, device) == 1


@pytest.mark.parametrize("name", ["max", "min"])
def test_the_gradient_of_nan_is_that_of_its_elements(name, device):
    """`amax` and `amin` have NaN for all of them, as in PyTorch."""
    for values, wanted in (([-1.0, NAN], [0, 1]), ([NAN, 2.0, NAN], [0.5, 0, 0.5]), ([2.0, 2.0], [0.5, 0.5])):
        x = torch.tensor(values, device=device, requires_grad=True)
        getattr(x, name)().backward()
        assert x.grad.tolist() == wanted
        x.grad = None
        (getattr(x, name)() * NAN).backward()
        assert np.isnan(x.grad.tolist()).tolist() == [part != 0 for part in wanted]
    x = torch.tensor([-1.0, NAN], device=device, requires_grad=True)
    getattr(x, f"a{name}")().backward()
    assert np.isnan(x.grad.tolist()).all()


def test_gradient_of_a_product_with_zeros(device):
    assert gradient(lambda x: x.prod(1), [[1.0, 0, 2], [0, 0, 3], [2, 3, 4]], device) == [
        [0, 2, 0],
        [0, 0, 0],
        [12, 8, 6],
    ]
    found = gradient(lambda x: x.prod(1), [[NAN, 2, 0], [INF, 3, 0], [0, NAN, 0], [2, 0, 0]], device)
    np.testing.assert_array_equal(found, [[0, NAN, NAN], [0, NAN, INF], [NAN, 0, NAN], [0, 0, 0]])
    x = torch.tensor([[1.0, 0.0, 2.0, 3.0], [0.0, 0.0, 3.0, 1.0]], dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda x: x.prod(1), (x,))
    torch.autograd.gradgradcheck(lambda x: x.prod(1), (x,))
    torch.autograd.gradgradcheck(lambda x: x.prod(), (x,))


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, INF, -INF])
def test_gradients_of_norms(p):
    x = torch.tensor([[1.0, -2.0, 0.5], [3.0, 1.5, -0.25]], dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda x: x.norm(p, 1), (x,))
    assert np.isfinite(gradient(lambda x: x.norm(p), [0.0, 0.0])).all()


def test_gradients_where_nothing_varies():
    assert gradient(lambda x: x.std(1), [[2.0, 2.0]]) == [[0, 0]]
    assert gradient(lambda x: x.cumsum(0), [1.0, 2.0, 3.0]) == [3, 2, 1]


def test_the_gradient_of_a_product_does_not_overflow_on_the_way():
    x = torch.tensor([[2e30], [4.0]], requires_grad=True)
    (x.prod(1) * torch.tensor([4e30, 1.0])).sum().backward()
    assert x.grad.reshape(-1).tolist() == torch.tensor([4e30, 1.0]).tolist()


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["var", "std"])
def test_the_spread_of_a_number_has_no_dimensions(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor(2.0, dtype=dtype)
    for dim in (0, -1, None):
        found = getattr(x, name)(dim, correction=0)
        assert (found.shape, found.dtype, found.item()) == ((), dtype, 0.0)
    assert torch.var_mean(x, 0)[0].shape == ()
