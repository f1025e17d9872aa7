"""Reductions and running sums: PyTorch's forms, words and special values, every layout, and how the work is divided."""

from __future__ import annotations

import itertools
import re
import warnings

import numpy as np
import pytest

import tritensor as torch
from tritensor import dtypes, settings
from tritensor.kernels.reduction import kernel as reductions_kernel
from tritensor.kernels.reduction import scan
from tritensor.kernels.reduction.functions import quick_sum
from tritensor.kernels.reduction.host import add_up, add_up_squares
from tritensor.operator import registry
from tritensor.tensor import wrap

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
    ("x.expand(2, 2, 3).sum_to_size(2, 1)", [[6.0], [24.0]], "float32"),
    ("h.sum()", 3002.0, "float16"),
    ("h.mean()", 1.001, "float16"),
    ("h.sum(dtype=torch.float32)", 3002.9297, "float32"),
]


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
    ("x.sum(0, out=x)", TypeError, "sum() got an unexpected keyword argument 'out'"),
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
    ("x.norm('nuc')", RuntimeError, "linalg.matrix_norm: Order nuc not supported."),
    ("e.norm(inf)", RuntimeError, "linalg.vector_norm cannot compute the inf norm on an empty tensor"),
    ("e.norm(-inf, 0)", RuntimeError, "linalg.vector_norm cannot compute the -inf norm on the dimension 0"),
    ("b.argmax()", RuntimeError, "argmax(): does not support bool input"),
    ("e.max()", RuntimeError, "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the "),
    ("e.max(0)", IndexError, "max(): Expected reduction dim 0 to have non-zero size."),
    ("e.amin()", RuntimeError, "amin(): Expected reduction dim to be specified for input.numel() == 0. Specify the "),
    ("e.amax((0, 1))", IndexError, "amax(): Expected reduction dim 0 to have non-zero size."),
    ("e.argmin()", IndexError, "argmin(): Expected reduction dim to be specified for input.numel() == 0."),
    ("x.sum_to_size(2)", RuntimeError, "size {[2]} is not expandable to size {[2, 3]}."),
    ("x.sum_to_size(1, 2, 3)", RuntimeError, "size {[1, 2, 3]} is not expandable to size {[2, 3]}."),
    ("x.var(0, True, correction=0)", TypeError, "var(): unbiased and correction say the same thing"),
]


@pytest.mark.parametrize(("code", "error", "words"), REFUSED, ids=[case[0] for case in REFUSED])
def test_refusals_begin_with_pytorchs_words(code, error, words, device):
    with pytest.raises(error, match="^" + re.escape(words)):
        eval(code, operands(device))


def test_max_and_min_return_named_tuples():
    values, indices = torch.tensor([[3.0, 1.0]]).max(1)
    assert values.item() == 3 and indices.item() == 0
    assert repr(torch.tensor([2.0]).min(0)).startswith("min(values=")
    assert [found.item() for found in torch.tensor([2.0, 1.0]).aminmax()] == [1.0, 2.0]


def test_var_warns_where_nothing_is_left_to_divide_by():
    for code, value in (("s.var()", NAN), ("x.var(0, correction=2)", INF), ("e.std()", NAN)):
        with pytest.warns(UserWarning, match=r"^(var|std)\(\): degrees of freedom is <= 0\."):
            result = eval(code, operands("cpu"))
        np.testing.assert_array_equal(np.unique(result.numpy()), [value])


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


# ---- how a device divides the work ----------------------------------------------------------------------------


def launches(monkeypatch):
    """The (rows, columns per program, grid) of every launch of the reduction kernel."""
    seen = []
    launch = reductions_kernel.launch

    def recorded(kernel, grid, arguments, constants, device, **options):
        seen.append((constants["ROWS"], constants["COLS"], tuple(grid), options["name"]))
        launch(kernel, grid, arguments, constants, device, **options)

    monkeypatch.setattr(reductions_kernel, "launch", recorded)
    return seen


def test_few_long_rows_are_reduced_in_two_stages(monkeypatch):
    rng = np.random.default_rng(0)
    array = rng.standard_normal((2, 1000)).astype(np.float32)
    with torch.cuda.simulate(devices=1), settings.block(16):
        seen = launches(monkeypatch)
        x = torch.from_numpy(array).cuda()
        found = {name: getattr(x, name)(1) for name in ("sum", "std", "logsumexp")}
        found["argmax"] = x.argmax()
        assert [grid[1] > 1 for _, _, grid, _ in seen] == [True, False] * 4
        assert [name for *_, name in seen[:2]] == ["reduction_sum", "reduction_sum_parts"]
        wide = array.astype(np.float64)
        np.testing.assert_allclose(found["sum"].cpu().numpy(), wide.sum(1), rtol=1e-5)
        np.testing.assert_allclose(found["std"].cpu().numpy(), wide.std(1, ddof=1), rtol=1e-5)
        np.testing.assert_allclose(found["logsumexp"].cpu().numpy(), np.log(np.exp(wide).sum(1)), rtol=1e-5)
        assert found["argmax"].item() == array.argmax()


def test_columns_are_split_too(monkeypatch):
    array = np.random.default_rng(0).standard_normal((700, 3)).astype(np.float32)
    with torch.cuda.simulate(devices=1), settings.block(8):
        seen = launches(monkeypatch)
        np.testing.assert_allclose(
            torch.from_numpy(array).cuda().sum(0).cpu().numpy(), array.sum(0), rtol=1e-4, atol=1e-4
        )
        assert seen[0][2][1] > 1


@pytest.mark.parametrize("order", ["reverse", "shuffle"])
def test_the_order_of_programs_changes_no_bit(order):
    array = np.random.default_rng(1).standard_normal(1500).astype(np.float32)
    with torch.cuda.simulate(devices=1), settings.block(32):
        x = torch.from_numpy(array).cuda()
        first = [x.sum().item(), x.var().item(), x.logsumexp(0).item(), x.cumsum(0).cpu().numpy().tobytes()]
        with settings.grid_order(order):
            assert first == [x.sum().item(), x.var().item(), x.logsumexp(0).item(), x.cumsum(0).cpu().numpy().tobytes()]


def test_offsets_of_64_bits(monkeypatch):
    """What a tensor of more than 2**31 elements takes, on a small one."""
    with torch.cuda.simulate(devices=1), settings.block(4):
        for module in (reductions_kernel, scan):
            monkeypatch.setattr(module, "reach", lambda array: 1 << 31)
        x = torch.arange(60.0, device="cuda").reshape(3, 20)
        assert x.sum(1).tolist() == [190.0, 590.0, 990.0]
        assert x.argmax(0).tolist() == [2] * 20
        assert x.cumsum(1)[:, -1].tolist() == [190.0, 590.0, 990.0]


@pytest.mark.parametrize("reverse", [False, True])
def test_long_rows_are_scanned_in_parts(reverse, monkeypatch):
    modes = []
    launch = scan.launch
    monkeypatch.setattr(
        scan, "launch", lambda *args, **options: (modes.append(options["name"]), launch(*args, **options))
    )
    array = np.random.default_rng(0).integers(-9, 9, (2, 200))
    wanted = np.flip(np.cumsum(np.flip(array, 1), 1), 1) if reverse else np.cumsum(array, 1)
    with torch.cuda.simulate(devices=1), settings.block(4):
        found = registry["cumsum"](torch.from_numpy(array).cuda(), dim=1, reverse=reverse)
        np.testing.assert_array_equal(found.cpu().numpy(), wanted)
    assert modes[0] == "cumsum_totals" and modes[-1] == "cumsum_parts"
    assert modes.count("cumsum_totals") == 2  # 25 parts a row, whose totals are scanned in parts as well


def test_a_device_chooses_tiles_by_itself():
    """Tiles of a real device, from the sizes alone; nothing is run."""

    class Driver:
        is_simulated = False

        def properties(self, index):
            return type("Properties", (), {"multi_processor_count": 132})

    class Array:
        buffer = type("Buffer", (), {"driver": Driver()})
        device = torch.device("cuda:0")

    def tile(rows, cols, inner, width=1, whole=False):
        return reductions_kernel._tile(Array, rows, cols, inner, width, whole)

    assert tile(4096, 1024, True) == (1, 1024, 1024, 4)  # a program for each row
    assert tile(4096, 64, True) == (64, 64, 64, 4)  # several rows
    assert tile(1024, 4096, False)[:2] == (128, 32)  # columns
    rows, cols, part, _ = tile(1, 1 << 22, True)  # all of it: enough programs to fill the device, in whole tiles
    assert (rows, cols) == (1, 4096) and part % cols == 0 and 132 <= (1 << 22) / part <= 132 * 4
    assert tile(1, 1 << 22, True, whole=True)[2] == 1 << 22
    assert tile(4096, 1024, True, width=3)[:2] == (1, 1024) and tile(8, 1 << 20, True, width=3)[1] == 2048

    def scan_tile(rows, cols, inner):
        return scan._tile(Array, rows, cols, inner)

    assert scan_tile(4096, 1000, True)[:2] == (2, 1024) and scan_tile(4096, 1000, True)[2] == 1000
    assert scan_tile(1000, 4096, False) == (64, 32, 4096)
    rows, cols, part = scan_tile(1, 1 << 22, True)
    assert (rows, cols) == (1, 2048) and part % cols == 0 and part < 1 << 22


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


def test_gradient_of_a_product_with_zeros(device):
    assert gradient(lambda x: x.prod(1), [[1.0, 0, 2], [0, 0, 3], [2, 3, 4]], device) == [
        [0, 2, 0],
        [0, 0, 0],
        [12, 8, 6],
    ]
    x = torch.tensor([[1.0, 0.0, 2.0, 3.0], [0.0, 0.0, 3.0, 1.0]], dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda x: x.prod(1), (x,))
    torch.autograd.gradgradcheck(lambda x: x.prod(1), (x,))
    torch.autograd.gradgradcheck(lambda x: x.prod(), (x,))


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, 3.0, INF, -INF])
def test_gradients_of_norms(p):
    x = torch.tensor([[1.0, -2.0, 0.5], [3.0, 1.5, -0.25]], dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda x: x.norm(p, 1), (x,))
    assert np.isfinite(gradient(lambda x: x.norm(p), [0.0, 0.0])).all()


def test_gradients_where_nothing_varies():
    assert gradient(lambda x: x.std(1), [[2.0, 2.0]]) == [[0, 0]]
    assert gradient(lambda x: x.cumsum(0), [1.0, 2.0, 3.0]) == [3, 2, 1]


# ---- quick ways on the CPU ------------------------------------------------------------------------------------


SHAPES = [
    (20000,),
    (4, 5000),
    (5000, 4),
    (513, 33),
    (33, 513),
    (600, 40),
    (1000, 40),
    (7, 9, 300),
    (300, 9, 7),
    (2, 100, 100),
    (40, 3, 2, 100),
    (1, 16385),
    (16385, 1),
    (5, 3),
    (),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_host_sums_are_as_exact_as_numpys(shape, dtype):
    array = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    exact = array.astype(np.longdouble)
    for size in range(len(shape) + 1):
        for dims in itertools.combinations(range(len(shape)), size):
            for keepdim in (False, True):
                found = add_up(array, dims or None, keepdim)
                wanted = exact.sum(dims or None, keepdims=keepdim)
                assert found.shape == np.shape(wanted) and found.dtype == dtype
                error, theirs = (
                    np.linalg.norm(np.asarray(sums - wanted, float))
                    for sums in (found, array.sum(dims or None, keepdims=keepdim))
                )
                assert error <= 2 * theirs + 2 * np.finfo(dtype).eps * np.linalg.norm(array), dims
    if shape:
        np.testing.assert_array_equal(add_up(array, -1), add_up(array, len(shape) - 1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_host_sums_of_squares_are_as_exact_as_numpys(shape, dtype):
    array = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    exact = np.square(array.astype(np.longdouble))
    for x, squares in ((array, exact), (array.T, exact.T)):
        for dims in (None, tuple(range(len(shape))), (0,), (-1,)) if shape else (None, ()):
            for keepdim in (False, True):
                found = add_up_squares(x, dims, keepdim)
                wanted = squares.sum(dims, keepdims=keepdim)
                assert found.shape == np.shape(wanted) and found.dtype == dtype
                np.testing.assert_allclose(found, np.asarray(wanted, float), rtol=40 * np.finfo(dtype).eps)


def test_host_sums_leave_other_layouts_to_numpy():
    array = np.random.default_rng(0).standard_normal((300, 200)).astype(np.float32)
    np.testing.assert_array_equal(add_up(array.T, 0), array.T.sum(0))
    np.testing.assert_allclose(
        add_up(array.reshape(20, 15, 200), (0, 2)), array.reshape(20, 15, 200).sum((0, 2)), rtol=1e-4
    )


@pytest.mark.parametrize("name", ["sum", "mean"])
def test_quick_sums_equal_the_operators(name):
    rng = np.random.default_rng(0)
    operator = registry[name]
    for shape in ((3, 4), (2, 3, 4), (), (1, 1), (600, 40)):
        array = rng.standard_normal(shape)
        for dim in (None, 0, -1, (0,), (0, -1), ()):
            if len(shape) < 2 and dim not in (None, ()):
                continue
            for keepdim in (False, True):
                x, y = (torch.from_numpy(array).requires_grad_() for _ in range(2))
                quick, plain = (
                    quick_sum(operator, x, dim, keepdim),
                    operator(y, dim=dim or None if dim == () else dim, keepdim=keepdim),
                )
                torch.testing.assert_close(quick, plain)
                assert quick.grad_fn.name() == plain.grad_fn.name()
                weights = torch.from_numpy(np.asarray(rng.standard_normal(tuple(plain.shape))))
                (quick * weights).sum().backward()
                (plain * weights).sum().backward()
                torch.testing.assert_close(x.grad, y.grad)
                x.grad.add_(1)  # its own memory, not a view of one number
    assert quick_sum(operator, torch.ones(2, dtype=torch.int64), None, False) is None
    assert quick_sum(operator, torch.ones(2), [0], False) is None
    assert quick_sum(operator, torch.ones(2), 3, False) is None


def test_small_reductions_take_the_quick_way_and_agree():
    x = torch.randn(4, 5)
    for name, metadata in (
        ("amax", {}),
        ("var", {"correction": 1}),
        ("max_dim", {}),
        ("logsumexp", {}),
        ("argmin", {}),
    ):
        for dim in (0, -1):
            found = registry[name].reduce(x, dim, True, **metadata)
            wanted = registry[name](x, dim=dim, keepdim=True, **metadata)
            for a, b in zip(
                found if isinstance(found, tuple) else (found,), wanted if isinstance(wanted, tuple) else (wanted,)
            ):
                torch.testing.assert_close(a, b)


def test_overflow_is_quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (torch.full((4,), 3e38), torch.full((20000,), 3e38), torch.tensor([INF, -INF])):
            for name in ("sum", "mean", "var", "logsumexp", "norm", "prod"):
                getattr(x, name)(0)


# ---- compiled code --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["fp32", "bf16"])
@pytest.mark.parametrize("inner", [True, False], ids=["rows", "columns"])
def test_contiguous_elements_are_read_in_vectors_of_16_bytes(inner, kind):
    pytest.importorskip("triton")
    from tritensor.runtime.launch import compile_ahead

    parts = registry["sum"].parts({})
    rows, cols = (1, 4096) if inner else (128, 32)
    outer, step = ("i32:16",), ("i32:1",)
    signature = (
        (f"*{kind}:16",),
        (f"*{kind}:16",),
        (),
        (outer if inner else step,),
        ("i32:16",),
        (step if inner else outer,),
        ("i32:16",),
        "i32:16",
        "i32:16",
        "i32:16",
        "i32",
    )
    element = {"fp32": dtypes.float32, "bf16": dtypes.bfloat16}[kind]
    constants = {
        "START": reductions_kernel.element_state,
        "COMBINE": parts.combine,
        "FOLD": parts.fold,
        "FINISH": reductions_kernel.bare_state,
        "IDENTITY": (0,),
        "STATE": (dtypes.float32,),
        "COMPUTE": (dtypes.float32,),
        "OUT_DTYPES": (element,),
        "KEPT_RANK": 1,
        "REDUCED_RANK": 1,
        "INDEX64": False,
        "UNITS": (1,) * 5,
        "ROWS": rows,
        "COLS": cols,
    }
    facts = compile_ahead(reductions_kernel.reduction_kernel, signature, constants, ("cuda", 90))
    assert facts.local_bytes == 0
    if "sass" in facts.asm:
        loads = re.findall(r"\bLDG\.E(\S*)", facts.asm["sass"])
        assert loads and all(".128" in load for load in loads)
