"""Arrays that are computed in blocks: the results, their layouts, and operands that share memory with the result."""

from __future__ import annotations

import tracemalloc

import ml_dtypes
import numpy as np
import pytest

import tritensor
from tritensor.host.copying import LARGE, cast, copied, copy_into
from tritensor.kernels.elementwise import reference as host
from tritensor.kernels.elementwise.family import Elementwise
from tritensor.operators import Operator, registry
from tritensor.runtime.call import Call
from tritensor.tensors import wrap
from tritensor.types import dtypes

FLAT = 3 * (1 << 17) + 11
assert FLAT > host.LARGE and FLAT > LARGE


@pytest.fixture(params=[1, 3], ids=["1 thread", "3 threads"])
def threads(request):
    before = tritensor.get_num_threads()
    tritensor.set_num_threads(request.param)
    yield
    tritensor.set_num_threads(before)


def draw(shape, dtype=np.float32, seed=0):
    values = np.random.default_rng(seed).uniform(-3, 3, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * np.random.default_rng(seed + 1).uniform(-3, 3, shape)
    return values.astype(dtype)


# pairs of operands: in one dimension, transposed, in different orders, broadcast, with gaps, reversed, with few rows
LAYOUTS = {
    "flat": lambda a: (a(FLAT), a(FLAT)),
    "transposed": lambda a: (a(500, 700).T, a(500, 700).T),
    "different orders": lambda a: (a(700, 500), a(500, 700).T),
    "permuted": lambda a: (a(40, 1, 90, 100).transpose(2, 0, 3, 1), a(100, 90, 40, 1).transpose(1, 2, 0, 3)),
    "row": lambda a: (a(7, 100, 500), a(500)),
    "column first": lambda a: (a(100, 1), a(7, 100, 500)),
    "outer": lambda a: (a(700, 1), a(1, 500)),
    "one element": lambda a: (a(FLAT), a(1)),
    "gaps": lambda a: (a(700, 1000)[:, ::2], a(1400, 500)[::2]),
    "reversed": lambda a: (a(700, 500)[::-1], a(700, 500)[:, ::-1]),
    "expanded": lambda a: (np.broadcast_to(a(500), (700, 500)), np.broadcast_to(a(700, 1), (700, 500))),
    "few rows": lambda a: (a(3, 140_000), a(140_000)),
}


def operands(layout, dtype, count):
    seeds = iter(range(10))
    pair = LAYOUTS[layout](lambda *shape: draw(shape, dtype, next(seeds)))
    return [pair[position % 2] for position in range(count)]


# a ufunc, functions of several passes, of other dtypes, of numbers, with metadata, with a fixed dtype
NAMES = ["add", "exp", "gelu", "silu", "eq", "isnan", "clamp", "where", "addcmul", "softplus", "pow", "hypot", "floor"]


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int32])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_blocks_give_what_the_whole_array_gives(layout, dtype, threads) -> None:
    """In values, and for references of one pass in strides (NumPy's own order for several depends on the size)."""
    compared = 0
    for name in NAMES:
        operator = registry[name]
        assert isinstance(operator, Elementwise)
        inputs = [wrap(value) for value in operands(layout, dtype, len(operator.inputs))]
        if operator.kinds:
            inputs[0] = inputs[0] > 0
        try:
            call = Call(operator, tuple(inputs), operator.metadata)
            call.compute, call.results = operator.resolve_dtypes(call)
        except tritensor.errors.DtypeError:
            continue
        arrays = [value._host_array() for value in inputs]
        if not host.is_large(arrays):
            assert layout in ("outer", "column first") and len(arrays) == 1
            continue
        call.arrays = arrays
        expected = Operator.on_host(operator, call)(*arrays)
        found = operator.on_host(call)(*arrays)
        for ours, theirs in zip(found, expected, strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_array_equal(ours.astype(np.float64), theirs.astype(np.float64), err_msg=name)
            if name in ("add", "exp", "eq"):
                assert ours.strides == theirs.strides
        compared += 1
    assert compared


def test_numbers(threads) -> None:
    x = tritensor.from_numpy(draw(FLAT))
    np.testing.assert_array_equal((2 - x).numpy(), 2 - x.numpy())
    np.testing.assert_array_equal((x * 0.1).numpy(), x.numpy() * np.float32(0.1))
    small = tritensor.from_numpy((np.arange(FLAT) % 256).astype(np.uint8))
    np.testing.assert_array_equal((small + 300).numpy(), small.numpy() + np.uint8(300 % 256))


def test_gradients_of_large_tensors(threads) -> None:
    values = draw((700, 500))
    x, y = (tritensor.from_numpy(v).requires_grad_() for v in (values, values.T.copy()))
    (x * y.t()).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.detach().numpy().T)
    np.testing.assert_array_equal(y.grad.numpy(), x.detach().numpy().T)


def test_an_exception_in_a_block_reaches_the_caller(threads) -> None:
    x = tritensor.ones(FLAT, dtype=tritensor.int64)
    with pytest.raises(tritensor.errors.ShapeError):
        x + tritensor.ones(7, dtype=tritensor.int64)

    def failing(block):
        if block.size > 2:
            raise ValueError("a block")
        return block

    operator = Elementwise("failing", failing, registry["exp"].rule, register=False)
    with pytest.raises(ValueError, match="a block"):
        operator(tritensor.ones(FLAT))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.filterwarnings("error")
def test_half_precision_takes_no_array_of_float32(dtype) -> None:
    x = tritensor.full((1 << 22,), 300.0, dtype=getattr(tritensor, dtype))
    x * x  # the threads have started; the square is infinite in float16
    before = tritensor.get_num_threads()
    tritensor.set_num_threads(1)
    tracemalloc.start()
    try:
        tritensor.nn.functional.gelu(x)
        (x * x).float()
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        tritensor.set_num_threads(before)
    assert most < (2 + 4) * x.numel() + (8 << 20)


# ---- in place --------------------------------------------------------------------------------------------------


SHARED = {
    "one further": (lambda x: (x[1:], x[:-1]), (FLAT,)),
    "one before": (lambda x: (x[:-1], x[1:]), (FLAT,)),
    "itself": (lambda x: (x, x), (FLAT,)),
    "transposed": (lambda x: (x, x.T), (600, 600)),
    "reversed": (lambda x: (x, x[::-1]), (FLAT,)),
    "every second": (lambda x: (x[::2], x[: x.shape[0] // 2]), (2 * FLAT,)),
    "between": (lambda x: (x[::2], x[1::2]), (2 * FLAT,)),
    "first row": (lambda x: (x, x[0]), (600, 600)),
    "first element": (lambda x: (x, x[:1]), (FLAT,)),
    "rows within": (lambda x: (x[1:, :500], x[:-1, 50:550]), (701, 600)),
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.float16])
@pytest.mark.parametrize("name", SHARED)
def test_operands_in_the_results_memory_are_read_first(name, dtype, threads) -> None:
    pick, shape = SHARED[name]
    start = draw(shape, np.float64).round(1) * 10
    for change, expected in (
        (lambda a, b: a.add_(b), lambda a, b: a + b),
        (lambda a, b: a.mul_(b), lambda a, b: a * b),
        (lambda a, b: a.copy_(b), lambda a, b: b.copy()),
    ):
        memory, plain = start.astype(dtype), start.astype(dtype)
        ours = [wrap(view) for view in pick(memory)]
        first, second = pick(plain)
        first[...] = expected(first.copy(), second.copy())
        change(*ours)
        np.testing.assert_array_equal(memory, plain)


def test_few_elements_are_read_before_they_are_overwritten() -> None:
    """NumPy's own `x[::2] = x[:5]` is not."""
    x = tritensor.arange(10)
    x[::2] = x[:5]
    assert x.tolist() == [0, 1, 1, 3, 2, 5, 3, 7, 4, 9]
    x = tritensor.arange(10)
    x[::2].copy_(x[:5])
    assert x.tolist() == [0, 1, 1, 3, 2, 5, 3, 7, 4, 9]


def test_in_place_with_numbers_and_rows(threads) -> None:
    values = draw((700, 500))
    for change, expected in (
        (lambda x: x.mul_(0.5), values * np.float32(0.5)),
        (lambda x: x.add_(tritensor.from_numpy(values[0])), values + values[0]),
        (lambda x: x.exp_(), np.exp(values)),
        (lambda x: x.t().sub_(tritensor.from_numpy(values.T.copy())), values - values),
    ):
        x = tritensor.from_numpy(values.copy())
        change(x)
        np.testing.assert_array_equal(x.numpy(), expected)
        assert x._version == 1


def test_elements_that_share_memory_are_changed_by_one_call() -> None:
    """NumPy's result for a target whose rows overlap is computed by NumPy."""
    memory = draw(FLAT + 1)
    rows = np.lib.stride_tricks.as_strided(memory, (FLAT, 2), (4, 4))
    assert not host.evaluate_in_place(np.add, rows, (1.0,))


# ---- copies ----------------------------------------------------------------------------------------------------


COPIED = {
    "transposed": lambda: draw((1024, 520)).T,
    "heads": lambda: draw((4, 128, 8, 96)).transpose(0, 2, 3, 1),
    "reversed axes": lambda: draw((64, 70, 64)).transpose(2, 1, 0),
    "channels last": lambda: draw((3, 400, 300)).transpose(1, 2, 0),
    "channels first": lambda: draw((400, 300, 3)).transpose(2, 0, 1),
    "gaps": lambda: draw((700, 1000))[:, ::2],
    "reversed": lambda: draw((700, 500))[::-1, ::-1].T,
    "expanded": lambda: np.broadcast_to(draw((700, 1)), (700, 500)),
    "flat": lambda: draw(FLAT),
    "one column": lambda: draw((FLAT, 2))[:, :1],
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.complex128])
@pytest.mark.parametrize("name", COPIED)
def test_copies(name, dtype, threads) -> None:
    source = COPIED[name]()
    with np.errstate(all="ignore"):
        source = source.astype(dtype)
    for order in ("C", "K"):
        ours, expected = copied(source, order), source.copy(order)
        np.testing.assert_array_equal(ours, expected)
        assert ours.strides == expected.strides and not np.may_share_memory(ours, source)
    out = np.zeros(source.shape[::-1], dtype).T
    copy_into(out, source)
    np.testing.assert_array_equal(out, source)
    if source.ndim > 1:
        copy_into(out, source[:1])
        np.testing.assert_array_equal(out, np.broadcast_to(source[:1], out.shape))
    tensor = wrap(source)
    assert tensor.contiguous().is_contiguous()
    assert tensor.clone().numpy().strides == source.copy("K").strides
    np.testing.assert_array_equal(tensor.reshape(-1).numpy(), source.reshape(-1))


@pytest.mark.thorough
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", COPIED)
def test_casts(name, threads) -> None:
    source = COPIED[name]() * np.float32(40_000)  # beyond float16's largest number
    kinds = [entry.numpy for entry in dtypes.ALL]
    for start in (np.float32, np.float16, ml_dtypes.bfloat16, np.float64, np.int32, np.complex64):
        with np.errstate(all="ignore"):
            array = source.astype(start)
        for kind in kinds:
            ours = cast(array, kind)
            with np.errstate(all="ignore"):
                real = array.real if np.dtype(start).kind == "c" and kind.kind not in "cb" else array
                expected = real.astype(kind)
            assert (ours.dtype, ours.strides) == (expected.dtype, expected.strides)
            assert ours.tobytes() == expected.tobytes()
