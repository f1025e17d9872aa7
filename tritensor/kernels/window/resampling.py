"""Resizing and padding: each element of the result is a weighted sum of elements along some dimensions of the input.

The sums are separable, so places and weights are tables for one dimension each (`resampling_maps.py`). The gradient is
the same operator with the tables turned around: each element gathers what it was read for, in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ShapeError
from ...ground.arguments import wrong_type
from ...host.threads import quietly
from ...memory import buffer
from ...memory.array import DeviceArray
from ...memory.copies import constant
from ...operators import Dtypes, Operator, Shapes
from ...operators.lifting.batching import Batch, loop
from ...operators.rules import ANY, compute_dtype
from ...runtime.call import Call
from ...runtime.choice import Native, allowed
from ...runtime.launch import kernel, launch
from ...tensors import Tensor, wrap
from ...types import dtypes, layout
from ..addressing import block_index, collapse_dims, offset_of
from ..blocks import block_size, is_processor
from ..pairs import is_complex, launch_by_parts
from .resampling_maps import Map, Table, rule, table
from .resampling_reference import resample_blocks

if TYPE_CHECKING:
    import triton.language as tl

# Reads per element of the result up to which all dimensions are resampled in one launch, without results in between;
# on a processor one. Reads of a launch up to which they are no loop there, in which the places of a row would be read
# for each of its elements.
_AT_ONCE, _AT_ONCE_OF_PROCESSOR, _UNROLLED = 64, 1, 16


class Resample(Operator):
    """`(x, places, weights) -> out`. On a device `places` and `weights` hold the rows of all maps' tables in turn.

    `maps` has the five items of one `Map` after another. On the CPU the tables are those of the maps.
    """

    family = "resampling"
    about = "All dimensions in one launch from tables of places and weights; gradients gather too."
    on_pairs = True
    repeatable = True
    native = Native(suits=lambda arrays, metadata: True if arrays[1] is not None else None)

    def prepare(self, call: Call) -> None:
        """Check that the maps are for an input of this shape."""
        x, maps = call.inputs[0], _maps(call.metadata["maps"])
        if not isinstance(x, Tensor):
            raise wrong_type(self.name, "input", "Tensor", x, 1)
        for each in maps:
            if not each.dim < x.ndim or x._data.shape[each.dim] != each.source:
                raise ShapeError(f"resample: dimension {each.dim} of {list(x.shape)} must have {each.source} elements")

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """The input's dtype; sums are computed in float32 for halves, copies as they are."""
        kind = call.inputs[0].dtype
        return (kind if _copies(_maps(call.metadata["maps"])) else compute_dtype(kind)), (kind,)

    def on_host(self, call: Call) -> Callable[..., tuple[np.ndarray, ...]]:
        """The reference in blocks, each of which is cast by itself."""
        maps, kind = _maps(call.metadata["maps"]), call.compute.numpy

        def run(x: np.ndarray, places: Any, weights: Any) -> tuple[np.ndarray, ...]:
            tables = None if places is None else _parts(maps, places, weights)
            return (quietly(resample_blocks, x, maps, _shape(x.shape, maps), kind, tables),)

        return run

    def allocate(self, call: Call) -> Shapes:
        """The new sizes."""
        return [(_shape(call.arrays[0].shape, _maps(call.metadata["maps"])), call.results[0].numpy)]

    def launch(self, call: Call) -> None:
        """One launch, or one for each dimension where that makes far fewer reads."""
        if is_complex(call.arrays[0]):
            launch_by_parts(call)
            return
        x, places, weights = call.arrays
        if not call.outs[0].size:
            return
        steps = _steps(_maps(call.metadata["maps"]))
        if prod(taps for _, taps, _ in steps) <= (_AT_ONCE_OF_PROCESSOR if is_processor(x) else _AT_ONCE):
            _launch(call.outs[0], x, places, weights, steps, call.compute)
            return
        steps.sort(key=lambda step: step[0].size / step[0].source)
        for position, step in enumerate(steps):
            out = call.outs[0]
            if position < len(steps) - 1:
                out = buffer.empty(_shape(x.shape, step[:1]), call.compute.numpy, x.device)
            _launch(out, x, places, weights, [step], call.compute)
            x = out

    def cost(self, call: Call) -> tuple[int, int]:
        """Each array moved once; a product and a sum for each dimension's taps."""
        maps = _maps(call.metadata["maps"])
        taps = 0 if _copies(maps) else sum(table(*each[1:])[0].shape[1] for each in maps)
        return call.arrays[0].nbytes + call.outs[0].nbytes, 2 * taps * call.outs[0].size

    @staticmethod
    def batched(batch: Batch) -> tuple[Any, ...]:
        """Results for all samples, see `Operator.batched`."""
        if any(batch.whole[1:]):
            return loop(batch)
        maps = batch.metadata["maps"]
        return batch(*batch.x, maps=tuple([value if at % 5 else value + 1 for at, value in enumerate(maps)]))


def resampled(x: Tensor, maps: Sequence[Map]) -> Tensor:
    """`x` with some dimensions resized by their maps, at least one."""
    if x._off_host:
        tables = _tables(tuple(maps), dtypes.real_of(compute_dtype(x.dtype)))
        placed = [each if each is None else wrap(constant(each, x.device)) for each in tables]
    elif x.ndim > 1 and x.stride(-1) == 1 and x.shape[-1] >= 64 and maps[-1].dim < x.ndim - 1 and allowed():
        # rows of channels, which native code adds up: of 32 it takes 0.5 to 1.6 times as long as NumPy
        placed = [each if each is None else wrap(each) for each in _tables(tuple(maps), compute_dtype(x.dtype))]
    else:
        placed = [None, None]
    return resample(x, *placed, maps=tuple(chain.from_iterable(maps)))


def _maps(flat: tuple[Any, ...]) -> list[Map]:
    return [Map(*flat[start : start + 5]) for start in range(0, len(flat), 5)]


def _copies(maps: Sequence[Map]) -> bool:
    """True if each element is a copy of one element."""
    tables = [table(*each[1:]) for each in maps]
    return all(weights is None and places.shape[1] == 1 and places.min(initial=0) >= 0 for places, weights in tables)


def _shape(shape: tuple[int, ...], maps: Sequence[Map]) -> tuple[int, ...]:
    sizes = {each.dim: each.size for each in maps}
    return tuple(sizes.get(dim, size) for dim, size in enumerate(shape))


@lru_cache(256)
def _tables(maps: tuple[Map, ...], compute: dtypes.dtype) -> tuple[np.ndarray, np.ndarray | None]:
    """The tables' rows one after another; no weights where all are 1."""
    tables = [table(*each[1:]) for each in maps]
    places = np.concatenate([found.reshape(-1) for found, _ in tables])
    if all(weights is None for _, weights in tables):
        return places, None
    parts = [np.ones(found.shape) if weights is None else weights for found, weights in tables]
    return places, np.concatenate([part.reshape(-1) for part in parts]).astype(compute.numpy)


def _steps(maps: Sequence[Map]) -> list[tuple[Map, int, int]]:
    """For each map the length of its table's rows, and where its table begins."""
    steps, start = [], 0
    for each in maps:
        taps = table(*each[1:])[0].shape[1]
        steps.append((each, taps, start))
        start += taps * each.size
    return steps


def _parts(maps: Sequence[Map], places: np.ndarray, weights: np.ndarray | None) -> list[Table]:
    """The tables of the maps again."""
    found: list[Table] = []
    for each, taps, start in _steps(maps):
        rows = slice(start, start + taps * each.size)
        parts = [array if array is None else array[rows].reshape(each.size, taps) for array in (places, weights)]
        found.append((parts[0], parts[1]))  # type: ignore[arg-type]
    return found


def _resample(x, places=None, weights=None, *, maps):
    """Weighted sums along dimensions, of the elements and with the numbers that each map's table holds."""
    maps = _maps(maps)
    tables = None if places is None else _parts(maps, places, weights)
    return resample_blocks(x, maps, _shape(x.shape, maps), x.dtype, tables)


resample = Resample("resample", _resample, ANY)
resample.kinds = {"places": dtypes.int32}
resample.linear = "first"
resample.gradients(x=lambda grad, maps: resampled(grad, [each.around() for each in _maps(maps)]))


@resample.samples
def _(draw: Any) -> Iterator[tuple[Any, ...]]:
    for shape, chosen in (
        ((2, 5, 4), [(1, 7, rule("linear", False, None, "float64"))]),
        ((3, 4), [(0, 5, rule("nearest", None, False))]),
        ((2, 5, 4), [(1, 7, rule("linear", False, None, "float64")), (2, 3, rule("linear", True, None, "float64"))]),
        ((2, 3, 5, 7), [(2, 8, rule("cubic", False, None, "float64")), (3, 4, rule("cubic", True, None, "float64"))]),
        ((1, 20, 13), [(1, 3, rule("filtered", "bicubic", False, None, "float64")), (2, 2, rule("area"))]),
        ((2, 3, 4, 3), [(1, 6, rule("padded", "reflect", 2, 1)), (3, 9, rule("padded", "replicate", 3, 3))]),
        ((0, 3), [(1, 5, rule("padded", "circular", 1, 1))]),
    ):
        for turned in (False, True):
            maps = [Map(dim, shape[dim], size, rule) for dim, size, rule in chosen]
            x = draw(_shape(shape, maps) if turned else shape)
            maps = [each.around() for each in maps] if turned else maps
            floating = draw.dtype.is_floating_point
            if floating or _copies(maps):
                inputs = [x, *_tables(tuple(maps), compute_dtype(draw.dtype))]
                yield inputs, {"maps": tuple(chain.from_iterable(maps))}, (0,) if floating else ()


# ---- on a device --------------------------------------------------------------------------------------------------


@kernel
def resample_kernel(
    out_ptr,
    x_ptr,
    place_ptr,
    weight_ptr,
    shape,
    strides,
    inner,
    sizes,
    steps,
    starts,
    taps,
    reads,
    count,
    COMPUTE: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    WEIGHTED: tl.constexpr,
    UNROLL: tl.constexpr,
    COPY: tl.constexpr,
    RANK: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Each element of the result as the weighted sum of the elements that its places name.

    Args:
        out_ptr: count elements, contiguous, of the sizes `shape`.
        x_ptr, strides: the input, and its strides along `shape`, 0 along resampled dimensions.
        place_ptr, weight_ptr: the tables; a place below 0 is none.
        inner, sizes, steps: of each resampled dimension, the result's stride and size, and the input's stride.
        starts, taps: where each dimension's table begins, and the length of its rows; `reads` is the taps' product.
        UNROLL: `reads`, where there is to be no loop; or 0.
        COPY: each element is a copy of one.
    """
    index = block_index(BLOCK, WIDE)
    mask = index < count
    base = offset_of(index, strides, shape, RANK)
    if COPY:
        for dim in tl.static_range(len(sizes)):
            row = index // inner[dim] % sizes[dim]
            base += tl.load(place_ptr + starts[dim] + row, mask=mask, other=0).to(index.dtype) * steps[dim]
        tl.store(out_ptr + index, tl.load(x_ptr + base, mask=mask), mask=mask)
    else:
        total = tl.zeros((BLOCK,), COMPUTE)
        for read in tl.range(0, UNROLL if UNROLL else reads, loop_unroll_factor=UNROLL if UNROLL else 1):
            rest = read
            offset = base
            valid = mask
            weight = tl.full((BLOCK,), 1, COMPUTE)
            for dim in tl.static_range(len(sizes)):
                row = index // inner[dim] % sizes[dim]
                entry = starts[dim] + row * taps[dim] + rest % taps[dim]
                rest = rest // taps[dim]
                place = tl.load(place_ptr + entry, mask=mask, other=-1)
                valid = valid & (place >= 0)
                offset += place.to(index.dtype) * steps[dim]
                if WEIGHTED:
                    weight *= tl.load(weight_ptr + entry, mask=mask, other=0)
            value = tl.load(x_ptr + offset, mask=valid, other=0).to(COMPUTE)
            # a weight of 0 is none, so that nothing is read where there is no place
            total += tl.where(valid, value * weight, tl.zeros_like(total))
        tl.store(out_ptr + index, total.to(OUT_DTYPE), mask=mask)


def _launch(
    out: DeviceArray,
    x: DeviceArray,
    places: DeviceArray,
    weights: DeviceArray | None,
    steps: Sequence[tuple[Map, int, int]],
    compute: dtypes.dtype,
) -> None:
    steps = steps[::-1]  # so that the reads of one row follow each other
    dims = [each.dim for each, _, _ in steps]
    own = layout.contiguous_strides(out.shape)
    shape, (strides,) = collapse_dims(out.shape, [[0 if dim in dims else step for dim, step in enumerate(x.strides)]])
    block = block_size(out, 512, interpreted=1 << 14, count=out.size)
    low, high = layout.span(x.shape, x.strides, 0)
    taps = tuple(count for _, count, _ in steps)
    launch(
        resample_kernel,
        (-(-out.size // block),),
        (
            out,
            x,
            places,
            places if weights is None else weights,
            shape,
            strides,
            tuple(own[dim] for dim in dims),
            tuple(out.shape[dim] for dim in dims),
            tuple(x.strides[dim] for dim in dims),
            tuple(start for _, _, start in steps),
            taps,
            prod(taps),
            out.size,
        ),
        {
            "COMPUTE": compute,
            "OUT_DTYPE": dtypes.of(out.dtype),
            "WEIGHTED": weights is not None,
            "UNROLL": prod(taps) if prod(taps) <= _UNROLLED and is_processor(out) else 0,
            "COPY": weights is None
            and prod(taps) == 1
            and out.dtype == x.dtype
            and not any(s[0].turned for s in steps),
            "RANK": len(shape),
            "WIDE": max(out.size + block, high - low) >= 1 << 31,
            "BLOCK": block,
        },
        out.device,
        name="resample",
    )
