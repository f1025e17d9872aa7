"""The one elementwise kernel, driven directly: layouts, dtypes, numbers, constants, block sizes and grid orders."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import pytest

from tritensor import drivers, settings
from tritensor.kernels.elementwise import kernel as family
from tritensor.kernels.elementwise.kernel import launch_elementwise
from tritensor.memory import buffer, copies
from tritensor.memory.array import DeviceArray
from tritensor.operators.rules import ANY
from tritensor.runtime.call import Call
from tritensor.runtime.launch import launch
from tritensor.types import devices, dtypes

from ..devices.compile_only import compile_only

if TYPE_CHECKING:
    import triton.language as tl

pytest.importorskip("triton")

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
GENERATOR = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def simulation():
    with drivers.simulate(devices=2) as simulated:
        yield simulated


class Declared(SimpleNamespace):
    """What the kernel's host side reads of an operator."""

    def __init__(self, body, kinds=(), inputs=("x", "y")):
        super().__init__(body=body, name=body.__name__, inputs=inputs, kinds=dict(kinds), rule=ANY)

    __hash__ = object.__hash__


def on_device(array):
    return copies.from_host(np.ascontiguousarray(array), devices.cuda(1))


def new(shape, dtype):
    return buffer.empty(shape, np.dtype(dtype), devices.cuda(1))


def elementwise(operator, outs, operands, compute, metadata):
    call = Call(operator, (None,) * len(operands), metadata, outs[0].device, compute)
    call.outs, call.arrays = outs, operands
    launch_elementwise(call)


def subtract(x, y):
    return x - y


def sum_and_order(x, y):
    return x + y, x > y


def scaled(x, factor, mode, flag):
    if mode == "square":
        x = x * x
    if flag:
        x = -x
    return x * factor


def chosen(x, y, z):
    return tl.where(x, y, z)


SUBTRACT = Declared(subtract)
LAYOUTS = {
    "contiguous": ((5, 7), lambda x: x, lambda y: y),
    "row": ((5, 7), lambda x: x, lambda y: y[:1]),
    "column": ((5, 7), lambda x: x, lambda y: y[:, :1]),
    "outer": ((5, 7), lambda x: x[:1], lambda y: y[:, :1]),
    "transposed": ((5, 7), lambda x: x, lambda y: y.reshape((7, 5)).transpose((1, 0))),
    "reversed": ((5, 7), lambda x: x[::-1], lambda y: y[:, ::-1]),
    "strided": ((3, 4), lambda x: x[::2, ::2], lambda y: y[1:4, 3:]),
    "vector": ((5, 7), lambda x: x, lambda y: y[0]),
    "ranks": ((2, 1, 5, 7), lambda x: x, lambda y: y.as_strided((2, 1, 5, 1), (1, 9, 7, 3), 0)),
    "one": ((1, 1), lambda x: x[:1, :1], lambda y: y[4:, 6:]),
}


def numpy_view(array, view, name):
    if name == "ranks" and view is LAYOUTS["ranks"][2]:
        return np.lib.stride_tricks.as_strided(array, (2, 1, 5, 1), tuple(4 * step for step in (1, 9, 7, 3)))
    return view(array)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("order", ["forward", "reverse", "shuffle"])
@pytest.mark.parametrize("block", [0, 4])
@pytest.mark.parametrize("name", LAYOUTS)
def test_any_layout_of_operands(name, block, order):
    shape, of_x, of_y = LAYOUTS[name]
    x, y = GENERATOR.standard_normal((2, 5, 7), dtype=np.float32)
    out = new(shape, np.float32)
    with settings.block(block), settings.grid_order(order):
        elementwise(SUBTRACT, [out], [of_x(on_device(x)), of_y(on_device(y))], dtypes.float32, {})
    expected = np.broadcast_to(of_x(x) - numpy_view(y, of_y, name), shape)
    assert np.array_equal(copies.to_host(out), expected)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("block", [0, 16, 64])
@pytest.mark.parametrize("seed", range(12))
def test_tiles_agree_with_numpy_for_any_order_of_dimensions(seed, block):
    """Ranks 2 to 4, each operand (the result too) stored in an order of its own, dimensions cut and broadcast."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(2, 5))
    shape = tuple(int(rng.choice([1, 3, 8, 33, 40])) if rank < 4 else int(rng.choice([2, 3, 9])) for _ in range(rank))

    def stored(kept):
        """An array on the device with the dimensions that are kept, and its values, both to broadcast to `shape`."""
        order = rng.permutation(rank)
        extents = [shape[dim] + 1 if kept[dim] else 1 for dim in range(rank)]
        host = rng.standard_normal([extents[dim] for dim in order], dtype=np.float32)
        back = tuple(int(place) for place in np.argsort(order))
        cut = tuple(slice(int(kept[dim]), None) for dim in range(rank))
        array = on_device(host)
        return array, array.transpose(back)[cut], host.transpose(back)[cut]

    _, x, x_host = stored([True] * rank)
    _, y, y_host = stored(list(rng.random(rank) < 0.6))
    whole, out, _ = stored([True] * rank)
    before = copies.to_host(whole).copy()
    with settings.block(block), settings.grid_order("shuffle"):
        elementwise(SUBTRACT, [out], [x, y], dtypes.float32, {})
    assert np.array_equal(copies.to_host(out), np.broadcast_to(x_host - y_host, shape))
    changed = (copies.to_host(whole) != before).sum()
    assert changed <= np.prod(shape), "something beside the result was written"


def test_the_output_may_be_a_view_and_an_input():
    x = GENERATOR.standard_normal((6, 8), dtype=np.float32)
    whole = on_device(x)
    part = whole[1:4, ::-2]
    elementwise(SUBTRACT, [part], [part, 1], dtypes.float32, {})
    x[1:4, ::-2] -= 1
    assert np.array_equal(copies.to_host(whole), x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, BFLOAT16, np.int32, np.int64, np.uint8], ids=str)
def test_every_dtype_is_computed_in_its_own_or_in_float32(dtype):
    x, y = (GENERATOR.integers(100, 120, 21).astype(dtype) for _ in range(2))
    compute = dtypes.float32 if np.dtype(dtype).itemsize == 2 else dtypes.of(np.dtype(dtype))
    total, order = new((21,), dtype), new((21,), bool)
    elementwise(Declared(sum_and_order), [total, order], [on_device(x), on_device(y)], compute, {})
    wide = compute.numpy
    assert np.array_equal(copies.to_host(total), (x.astype(wide) + y.astype(wide)).astype(dtype))
    assert np.array_equal(copies.to_host(order), x > y)


@pytest.mark.parametrize(("dtype", "number"), [(np.float64, 0.1), (np.float32, 0.1), (np.int64, 2**40), (np.int64, 1)])
def test_numbers_have_the_precision_of_the_computation(dtype, number):
    x = GENERATOR.integers(0, 9, 5).astype(dtype)
    out = new((5,), dtype)
    for operands, expected in (
        ([on_device(x), number], x - dtype(number)),
        ([number, on_device(x)], dtype(number) - x),
    ):
        elementwise(SUBTRACT, [out], operands, dtypes.of(np.dtype(dtype)), {})
        assert np.array_equal(copies.to_host(out), expected)


def test_a_negative_zero_is_not_a_zero():
    operator, out = Declared(scaled, inputs=("x",)), new((1,), np.float32)
    for factor in (0.0, -0.0, 0, 1):
        metadata = {"factor": factor, "mode": "plain", "flag": False}
        elementwise(operator, [out], [on_device(np.ones(1, np.float32))], dtypes.float32, metadata)
        assert np.array_equal(np.signbit(copies.to_host(out)), [np.signbit(factor)])


@pytest.mark.parametrize("mode", ["square", "plain"])
@pytest.mark.parametrize("flag", [True, False, None])
def test_metadata_follows_the_operands(mode, flag):
    x, out = GENERATOR.standard_normal(9, dtype=np.float32), new((9,), np.float32)
    metadata = {"factor": 0.5, "mode": mode, "flag": flag}
    elementwise(Declared(scaled, inputs=("x",)), [out], [on_device(x)], dtypes.float32, metadata)
    expected = x * x if mode == "square" else x
    assert np.array_equal(copies.to_host(out), (-expected if flag else expected) * np.float32(0.5))


def test_an_input_may_have_a_dtype_of_its_own():
    x, y, z = GENERATOR.standard_normal((3, 12), dtype=np.float32)
    out = new((12,), np.float32)
    operator = Declared(chosen, {"x": dtypes.bool_}, inputs=("x", "y", "z"))
    elementwise(operator, [out], [on_device(x > 0), on_device(y), on_device(z)], dtypes.float32, {})
    assert np.array_equal(copies.to_host(out), np.where(x > 0, y, z))


def test_nothing_is_launched_for_no_elements():
    out = new((0, 4), np.float32)
    elementwise(SUBTRACT, [out], [out, 1.0], dtypes.float32, {})


def test_a_last_block_that_is_not_full_is_compiled_apart():
    x, out = GENERATOR.standard_normal(37, dtype=np.float32), new((37,), np.float32)
    with settings.block(16):
        elementwise(SUBTRACT, [out], [on_device(x), 1], dtypes.float32, {})
    assert np.array_equal(copies.to_host(out), x - 1)


def test_offsets_beyond_32_bits_take_64(monkeypatch):
    launched = []
    monkeypatch.setattr(family, "launch", lambda *args, **options: launched.append(args))
    small = new((4, 4), np.float32)
    far = DeviceArray.over(small.buffer, (4, 4), (1 << 30, 1), 0, small.dtype)
    for array in (small, far):
        elementwise(SUBTRACT, [small], [array, 1], dtypes.float32, {})
    constants = [args[3] for args in launched]
    assert [entry["INDEX64"] for entry in constants] == [False, True]
    (kernel, grid, arguments, _, device), x = launched[0], GENERATOR.standard_normal((4, 4), dtype=np.float32)
    arguments = (arguments[0], (on_device(x), 1.0), *arguments[2:])
    launch(kernel, grid, arguments, {**constants[0], "INDEX64": True}, device)
    assert np.array_equal(copies.to_host(small), x - 1)


def test_a_real_device_moves_4_kb_in_a_program(monkeypatch):
    blocks = []

    def noted(kernel, grid, arguments, constants, device, **options):
        blocks.append(constants["BLOCK"])

    monkeypatch.setattr(family, "launch", noted)
    with compile_only():
        arrays = [buffer.empty((8,), np.dtype(kind), devices.cuda(0)) for kind in (np.float64, np.float32, np.float16)]
        for x in arrays:
            elementwise(SUBTRACT, [arrays[2]], [x, 1], dtypes.float32, {})
    assert blocks == [512, 1024, 2048]
