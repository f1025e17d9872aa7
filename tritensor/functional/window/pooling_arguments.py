"""The arguments of pools: sizes as one number or one for each dimension, and what PyTorch refuses, in its words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import ShapeError, UnsupportedError, explain, require
from ...ground.arguments import wrong_type
from ...tensors import Tensor
from ...types import dtypes, layout
from ...types.dtypes import FLOATING

Sizes = tuple[int, ...]
_NUMBERS = {2: "two ints", 3: "three ints"}
_AXES = "THW"
INDEXED = "_with_indices"  # what PyTorch's `max_pool1d` with indices is called inside


def list_of(sizes: Sequence[int]) -> str:
    """Sizes as PyTorch's messages print them, with x between them."""
    return "x".join(map(str, sizes))


def sizes_of(call: str, rank: int, name: str, position: int, value: object) -> Sizes:
    """An argument that is one whole number, or one for each dimension.

    Raises:
        ArgumentError: something else. ShapeError: another number of them.
    """
    if value.__class__ is int:
        return (value,) * rank
    items = value if isinstance(value, (tuple, list)) else (value,)
    for item in items:
        if isinstance(item, bool) or not hasattr(item, "__index__"):
            raise wrong_type(call, name, "tuple of ints", item, position)
    found = tuple([item.__index__() for item in items])
    if len(found) == 1:
        return found * rank
    if len(found) != rank:
        if call == "max_pool1d":
            also = "None, an int, list of ints, or" if name == "stride" else "an int, list of ints or"
            words = f"max_pool1d() {name} must be {also} tuple of ints of size 1 but got size {len(found)}"
        elif rank == 1:
            words = f"{call.removesuffix(INDEXED)}() argument '{name}' should contain one int (got {len(found)})"
        else:
            also = "omitted, " if name == "stride" else ""
            words = f"{call}: {name} must either be {also}a single int, or a tuple of {_NUMBERS[rank]}"
        raise ShapeError(words, f"{name} is {value!r}")
    return found


def window_arguments(
    call: str, input: Tensor, rank: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[Sizes, Sizes, Sizes, Sizes, Sizes]:
    """The number of windows along each dimension, and their kernel, stride, padding and dilation.

    Raises:
        ShapeError: an input of another rank or with an empty dimension, or sizes that make no window.
    """
    kernel = sizes_of(call, rank, "kernel_size", 2, kernel_size)
    steps = kernel if stride is None or stride == () else sizes_of(call, rank, "stride", 3, stride)
    pads = sizes_of(call, rank, "padding", 4, padding)
    gaps = sizes_of(call, rank, "dilation", 5, dilation)
    if call == "max_pool1d":
        _check_elements(call, input, rank)
        _check_row(kernel[0], steps[0], pads[0], gaps[0])
    else:
        _check_rank(call, input, rank)
        _check_windows(kernel, steps, pads, gaps)
        _check_elements(call, input, rank)
    extents = tuple(input._data.shape[-rank:])
    size = tuple(map(_count, extents, kernel, steps, pads, gaps, (ceil_mode,) * rank))
    if min(size) < 1:
        raise ShapeError(_too_small(call, input, extents, size, kernel))
    return size, kernel, steps, pads, gaps


def _count(extent: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """The number of windows along a dimension: with `ceil_mode` also one that goes beyond its end."""
    rest = extent + 2 * padding - dilation * (kernel - 1) - 1
    count = (rest + (stride - 1 if ceil_mode else 0)) // stride + 1
    # the last window has to begin inside of the input or of the padding before it
    return count - 1 if ceil_mode and (count - 1) * stride >= extent + padding else count


def _too_small(call: str, input: Tensor, extents: Sizes, size: Sizes, kernel: Sizes) -> str:
    rank = len(extents)
    if call == "max_pool1d":
        words = f"max_pool1d() Invalid computed output size: {size[0]}"
    elif call == "avg_pool3d":
        words = f"input image ({_by_axis('', extents)}) smaller than kernel size ({_by_axis('k', kernel)})"
    else:
        channels, one = input._data.shape[-1 - rank], (1,) if rank == 1 else ()
        shapes = [list_of((channels, *one, *each)) for each in (extents, size)]
        words = f"Given input size: ({shapes[0]}). Calculated output size: ({shapes[1]}). Output size is too small"
    return explain(words, f"the input has shape {list(input.shape)}, kernel_size is {kernel}")


def _by_axis(letter: str, values: Sizes) -> str:
    values = (1, *values) if len(values) == 1 else values
    return " ".join(f"{letter}{axis}: {value}" for axis, value in zip(_AXES[-len(values) :], values))


def _check_windows(kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> None:
    """Raise for sizes that make no windows, in the order in which PyTorch looks at them."""
    require(0 not in stride, ShapeError, "stride should not be zero")
    for pad, size, gap in zip(padding, kernel, dilation):
        if pad < 0:
            raise ShapeError(f"pad must be non-negative, but got pad: {pad}")
        if pad > int((gap * (size - 1) + 1) / 2):
            words = "pad should be at most half of effective kernel size, but got "
            raise ShapeError(f"{words}pad={pad}, kernel_size={size} and dilation={gap}")
    for name, letter, values in (
        ("kernel size", "k", kernel),
        ("stride", "d", stride),
        ("dilation", "dilation", dilation),
    ):
        if min(values) < 1:
            raise ShapeError(f"{name} should be greater than zero, but got {_by_axis(letter, values)}")


def _check_row(kernel: int, stride: int, padding: int, dilation: int) -> None:
    """The same of `max_pool1d` without indices, which PyTorch computes and checks by code of its own."""
    words = ""
    if kernel < 1:
        words = f"kernel_size must be greater than zero, but got {kernel}"
    elif stride < 1:
        words = f"stride must be greater than zero, but got {stride}"
    elif padding < 0:
        words = f"padding must be non-negative, but got {padding}"
    elif padding > kernel // 2:
        words = f"padding should be at most half of kernel size, but got padding={padding} and kernel_size={kernel}"
    elif dilation < 1:
        words = f"dilation must be greater than zero, but got {dilation}"
    require(not words, ShapeError, "max_pool1d() {}", words)


def _check_rank(call: str, input: Tensor, rank: int) -> None:
    """Raise for a number of dimensions that PyTorch refuses before it looks at the windows."""
    ndim = input.ndim
    if rank < ndim < rank + 3 or (call == "avg_pool2d" and ndim > 2):
        return
    words = f"non-empty {rank + 1}D or {rank + 2}D (batch mode) tensor expected for input"
    if rank == 1:
        words = f"Expected 2 to 3 dimensions, but got {ndim}-dimensional tensor for argument #1 'self' (while checking "
        words += f"arguments for {call.removesuffix(INDEXED)})"
    elif call == "avg_pool2d":
        layout.normalize_dim(-3, ndim)
    raise ShapeError(_said(words, call, input, rank))


def _check_elements(call: str, input: Tensor, rank: int) -> None:
    """Raise unless the input is (N, C, *dimensions) or (C, *dimensions), of which only N may be 0."""
    shape, ndim = list(input._data.shape), input.ndim
    if rank < ndim < rank + 3 and 0 not in shape[ndim - rank - 1 :]:
        return
    batched = f"Expected {max(rank, 2) + 1}D or {max(rank, 2) + 2}D (batch mode) tensor with optional 0 dim batch size"
    words = f"{batched} for input, but got:{[*shape[:-1], 1, *shape[-1:]] if rank == 1 else shape}"
    if call == "max_pool1d":
        words = "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:"
        words += str(shape)
    elif rank == 3:
        words = f"{call}(): Expected input's non-batch dimensions to have positive length, but input has a shape of "
        words += f"{shape} and non-batch dimension {shape.index(0, ndim - 4) - ndim + 4} has length zero!"
    raise ShapeError(_said(words, call, input, rank))


def _said(words: str, call: str, input: Tensor, rank: int) -> str:
    fact = f"{call} takes (N, C, *) or (C, *) with {rank} further dimensions, got {list(input.shape)}"
    return explain(words, fact)


def adaptive_size(call: str, input: Tensor, rank: int, output_size: Any) -> Sizes:
    """The number of an adaptive pool's windows along each dimension; as many as elements where it is None.

    Raises:
        ShapeError: an input of another rank or with an empty dimension, or no such size.
    """
    shape, ndim = list(input._data.shape), input.ndim
    average = call.startswith("adaptive_avg")
    if rank > 1 and isinstance(output_size, (tuple, list)):
        require(ndim > len(output_size), ValueError, "Input dimension should be at least {}", len(output_size) + 1)
        extents = shape[ndim - len(output_size) :]
        output_size = [extent if count is None else count for count, extent in zip(output_size, extents)]
        if len(output_size) != rank:
            words = f"{call}: output_size must be {rank}"
            if not average:
                words = f"{call}(): internal error: output_size.size() must be {rank}"
            raise ShapeError(words)
    size = sizes_of(call, rank, "output_size", 2, output_size)
    if not rank < ndim < rank + 3:
        words = f"{call}(): Expected {rank + 1}D or {rank + 2}D tensor, but got{'' if average else ':'} {shape}"
        if rank == 1:
            words = f"Expected 2 to 3 dimensions, but got {ndim}-dimensional tensor for argument #1 'self' (while "
            words += f"checking arguments for {call})"
        raise ShapeError(words)
    first = ndim - rank - (0 if average and rank < 3 else 1)
    if 0 in shape[first:]:
        raise ShapeError(
            f"{call}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {shape} "
            f"with dimension {shape.index(0, first)} being empty"
        )
    if min(size) < 0:
        words = f"Trying to create tensor with negative dimension {min(size)}: {shape[: ndim - rank] + list(size)}"
        if average:
            received = ", ".join(map(str, (1, *size) if rank == 1 else size))
            words = f"adaptive_avg_pool{max(rank, 2)}d: elements of output_size must be greater than or equal to 0 "
            words += f"but received {{{received}}}"
        raise ShapeError(words)
    return size


def check_dtype(words: str, input: Tensor, fits: Callable[[Any], bool]) -> None:
    """Raise unless the dtype of the input fits; `words` is PyTorch's name of the kernel.

    Raises:
        UnsupportedError: it does not.
    """
    if not fits(input.dtype):
        first = f"\"{words}\" not implemented for '{input.dtype.legacy}'"
        raise UnsupportedError(first, remedy="convert the input first, as in x.float()")


def floating(kind: dtypes.dtype) -> bool:
    """Real floating dtypes."""
    return kind.category == FLOATING
