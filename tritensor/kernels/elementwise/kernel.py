"""The kernel of all elementwise operators, and its launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...memory.array import DeviceArray
from ...runtime.call import Call
from ...runtime.launch import DeviceFunction, as_number, device_function, kernel, launch
from ...runtime.reference import metadata_of, numbers_of
from ...types import dtypes
from ..addressing import collapse_dims, offset_of
from ..blocks import block_size, is_processor
from ..pairs import as_real, in_dtype, is_complex, parts
from .float8 import conversion
from .tiles import SIDE, launch_tiles, plan_tiles, sorted_dims

if TYPE_CHECKING:
    import triton.language as tl

# Bytes of the widest operand that one program moves: 1024 float32 or 2048 bfloat16 elements, two 16-byte vectors for
# each of 128 threads.
_PROGRAM_BYTES = 4096
_INTERPRETED_BLOCK, _INTERPRETED_SIDE = 1 << 16, 256


@device_function
def compute_block(
    outs,
    ins,
    scalars,
    out_strides,
    in_strides,
    shape,
    index,
    mask,
    BODY: tl.constexpr,
    OUT_DTYPES: tl.constexpr,
    COMPUTE: tl.constexpr,
    RANK: tl.constexpr,
):
    """One block: load, BODY, store. `mask` is None where every index is inside."""
    values = ()
    for position in tl.static_range(len(ins)):
        if len(in_strides[position]) == 0:
            value = ins[position]
        else:
            value = tl.load(ins[position] + offset_of(index, in_strides[position], shape, RANK), mask=mask)
        values = values + (value.to(COMPUTE[position]),)  # type: ignore[assignment]  # noqa: RUF005
    results = BODY(*values, *scalars)
    for position in tl.static_range(len(outs)):
        if len(outs) == 1:
            result = results
        else:
            result = results[position]
        pointers = outs[position] + offset_of(index, out_strides[position], shape, RANK)
        tl.store(pointers, result.to(OUT_DTYPES[position]), mask=mask)


@kernel
def elementwise_kernel(
    outs,
    ins,
    scalars,
    out_strides,
    in_strides,
    shape,
    count,
    BODY: tl.constexpr,
    OUT_DTYPES: tl.constexpr,
    COMPUTE: tl.constexpr,
    RANK: tl.constexpr,
    SPLIT: tl.constexpr,
    INDEX64: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Apply BODY to every element: `outs = BODY(*ins, *scalars)`.

    Args:
        outs: a tuple of pointers.
        ins: a tuple of pointers, with a number for each operand that is one.
        scalars: a tuple of numbers and constants (bool, str, None) that follow the inputs as BODY's last arguments.
        out_strides, in_strides: a tuple of RANK strides, in elements, for each pointer; 0 broadcasts. The strides of
            a number are ().
        shape: RANK sizes, collapsed by `collapse_dims`.
        count: number of elements, the product of shape.
        BODY: device function; returns one value, or a tuple of one value per pointer of outs.
        OUT_DTYPES: tuple of the dtype in which each output is stored (bool: nonzero is true).
        COMPUTE: tuple of the dtype that each of BODY's inputs is converted to; float32 for half-precision operands.
        SPLIT: compile a second, unmasked form of the block for all programs but the last. A mask against a count
            that is not divisible by 16 cuts vectors of 16 bytes down to single elements.
        INDEX64: whether offsets need 64 bits (an operand spans 2**31 elements or more).
        BLOCK: elements per program. The grid is (ceil(count / BLOCK),).
    """
    start = tl.program_id(0)
    if INDEX64:
        start = start.to(tl.int64)
    index = start * BLOCK + tl.arange(0, BLOCK)
    if SPLIT:
        if (start + 1) * BLOCK <= count:
            compute_block(
                outs, ins, scalars, out_strides, in_strides, shape, index, None, BODY, OUT_DTYPES, COMPUTE, RANK
            )
        else:
            mask = index < count
            compute_block(
                outs, ins, scalars, out_strides, in_strides, shape, index, mask, BODY, OUT_DTYPES, COMPUTE, RANK
            )
    else:
        compute_block(
            outs, ins, scalars, out_strides, in_strides, shape, index, index < count, BODY, OUT_DTYPES, COMPUTE, RANK
        )


def launch_elementwise(call: Call) -> None:
    """Run an operator's body over all elements: `outs = body(*arrays, *metadata.values())`.

    The call's `outs` are device arrays of one shape, none of which overlaps itself; its `arrays` are device arrays that
    broadcast to that shape, and Python numbers. They are converted to the compute dtype before the body sees them. The
    body's arguments after them are the metadata: numbers (in the compute dtype where that is floating, else as int64),
    and constants of the compilation (bool, str, None).
    """
    operator, outs, compute = call.operator, call.outs, call.compute
    numbers = tuple(metadata_of(call).values())
    operands = [
        value if number is None else number(value) for value, number in zip(call.arrays, numbers_of(call), strict=True)
    ]
    if outs[0].size == 0:
        return
    single = compute is dtypes.float32 and outs[0].itemsize == 4
    if single and getattr(operator, "one_text", False) and is_processor(outs[0]):
        compute = dtypes.float64  # as the reference of such a text on the CPU
    # an input may have a fixed dtype, such as the condition of `where`
    kinds = tuple(operator.kinds.get(name, compute) for name in operator.inputs)
    body = body_function(operator, outs[0].itemsize if compute is dtypes.float32 else 4)
    pair = [dtypes.of(value.dtype) if value.__class__ is DeviceArray else None for value in (operands[0], outs[0])]
    if operator.name == "copy" and pair[0] is not pair[1] and not dtypes.FLOAT8.isdisjoint(pair):
        if is_complex(outs[0]):
            operands = [in_dtype(operands[0], dtypes.float32)]
        else:
            operands = [parts(operands[0])[0]]
            body, numbers, kinds = conversion(*pair)
    if compute.is_complex or any(map(is_complex, operands)):
        compute = dtypes.real_of(compute)
        body, outs, operands, kinds, numbers = _on_pairs(operator, outs, operands, kinds, numbers)
    shape, count = outs[0].shape, outs[0].size
    arrays = [value for value in operands if value.__class__ is DeviceArray]
    sizes, strides = collapse_dims(shape, [_broadcast_strides(array, shape) for array in (*outs, *arrays)])
    if len(sizes) > 1:
        sizes, strides = sorted_dims(sizes, strides)
    ins = tuple(
        value if value.__class__ is DeviceArray else as_number(value, kind)
        for value, kind in zip(operands, kinds, strict=True)
    )
    numbers = tuple(
        value if value is None or isinstance(value, (bool, str)) else as_number(value, compute) for value in numbers
    )
    constants = {"BODY": body, "OUT_DTYPES": tuple(dtypes.of(out.dtype) for out in outs), "COMPUTE": tuple(kinds)}
    wide = max(array.itemsize for array in (*outs, *arrays))
    # one vector for each thread where the body is long, or registers spill
    each = _PROGRAM_BYTES // wide >> getattr(operator, "one_text", 0)
    whole = block_size(outs[0], each, interpreted=_INTERPRETED_BLOCK)
    tiles = plan_tiles(sizes, strides, whole, block_size(outs[0], SIDE, interpreted=_INTERPRETED_SIDE))
    if tiles is not None:
        launch_tiles(tiles, sizes, strides, outs, ins, numbers, constants, operator.name, wide)
        return
    block = block_size(outs[0], each, interpreted=_INTERPRETED_BLOCK, count=count)
    pending = iter(strides[len(outs) :])
    in_strides = tuple(next(pending) if value.__class__ is DeviceArray else () for value in operands)
    reach = max(sum((size - 1) * abs(step) for size, step in zip(sizes, steps, strict=True)) for steps in strides)
    constants |= {
        "RANK": len(sizes),
        "SPLIT": count % 16 != 0 and count > block,
        "INDEX64": max(reach, count + block) >= 1 << 31,
        "BLOCK": block,
    }
    arguments = (tuple(outs), ins, numbers, strides[: len(outs)], in_strides, sizes, count)
    launch(elementwise_kernel, (-(-count // block),), arguments, constants, outs[0].device, name=operator.name)


def body_function(operator: Any, itemsize: int = 4) -> DeviceFunction:
    """The body of an operator that computes in float32, for results of so many bytes."""
    halves = itemsize == 2 and getattr(operator, "half_body", None) is not None
    return _function(operator, "half_body" if halves else "body")


def _function(operator: Any, attribute: str) -> DeviceFunction:
    """A body of an operator, made a device function at its first use."""
    body = getattr(operator, attribute)
    if not isinstance(body, DeviceFunction):
        body = device_function(body, name=operator.name)
        setattr(operator, attribute, body)
    return body


@device_function
def is_nonzero(real, imag):
    """What a complex number is as a boolean."""
    return (real != 0) | (imag != 0)


def _on_pairs(operator: Any, outs: Any, operands: Any, kinds: Any, numbers: Any) -> tuple[Any, ...]:
    """The body, results, operands, their dtypes and the numbers of a call on complex numbers, all of them real.

    Each complex operand becomes two. A copy to a real dtype keeps the real part.
    """
    pairs = [kind.is_complex for kind in kinds]
    if not any(pairs):
        real, imag = parts(operands[0])
        if kinds[0] is not dtypes.bool_:
            return _function(operator, "body"), outs, [real], kinds, numbers
        return is_nonzero, outs, [real, imag], 2 * [dtypes.of(real.dtype)], numbers
    if operator.by_parts and all(is_complex(value) for value, pair in zip(operands, pairs) if pair):
        operands = [as_real(value) if pair else value[..., None] for value, pair in zip(operands, pairs)]
        return (
            _function(operator, "body"),
            [as_real(out) for out in outs],
            operands,
            list(map(dtypes.real_of, kinds)),
            numbers,
        )
    outs = [part for out in outs for part in (parts(out) if is_complex(out) else (out,))]
    operands = [part for value, pair in zip(operands, pairs) for part in (parts(value) if pair else (value,))]
    kinds = [dtypes.real_of(kind) for kind, pair in zip(kinds, pairs) for _ in range(1 + pair)]
    numbers = [part for value in numbers for part in parts(value)]
    return _function(operator, "complex_body"), outs, operands, kinds, numbers


def _broadcast_strides(array: DeviceArray, shape: tuple[int, ...]) -> tuple[int, ...]:
    missing = len(shape) - len(array.shape)
    return (0,) * missing + tuple(
        0 if size == 1 else step for size, step in zip(array.shape, array.strides, strict=True)
    )
