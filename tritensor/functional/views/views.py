"""Shape functions and methods: views where possible; `reshape` copies where it must."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from ...errors import ArgumentError, RangeError, ShapeError
from ...ground.arguments import check_tensor, check_tensors, whole
from ...ground.public import method, public
from ...host.copying import LARGE
from ...kernels.bounds import alike
from ...memory.array import DeviceArray
from ...tensors import Tensor
from ...types import Dtype, dtypes, layout
from ...types.layout import integers
from ...types.size import check_extents, check_rank
from .view_operators import (
    View,
    _expand,
    _permute,
    _reshape_alias,
    _slice,
    _split,
    _split_with_sizes,
    _squeeze,
    _squeeze_dim,
    _squeeze_dims,
    _t,
    _transpose,
    _unbind,
    _unsafe_view,
    _unsqueeze,
    _view,
)

ndarray = np.ndarray


@method()
def view(input: Tensor, *shape: Any, size: int | Sequence[int] | None = None, dtype: Dtype = None) -> Tensor:
    """Views the same elements in another shape, sharing memory; one size may be -1. Or the same bits in another dtype.

    With a dtype of another size the last dimension grows or shrinks. Gradients do not pass through it: the result has
    no history, as that of `detach()`.

    >>> import tritensor as torch
    >>> x = torch.tensor([1.0, 2.0])
    >>> x.view(torch.int32), x.view(torch.uint8).shape
    (tensor([1065353216, 1073741824], dtype=tritensor.int32), tritensor.Size([8]))

    Raises:
        ShapeError: the sizes do not fit (`shape '[4]' is invalid for input of size 6`), or a copy would be needed.
    """
    if dtype is not None or (len(shape) == 1 and shape[0].__class__ in _KINDS):
        return _view_bits(input, (*shape, *([size] if size is not None else ())), dtype)
    if size is None and shape:
        found = _quick_view(input, shape, _view)
        if found is not None:
            return found
    return _view(input, layout.infer_shape(integers("view", "size", shape, size), input._data.size))


_KINDS = (dtypes.dtype, type)


def _view_bits(input: Tensor, given: tuple[Any, ...], dtype: Dtype) -> Tensor:
    """The tensor's memory as elements of another dtype."""
    target = dtypes.of_argument(given[0] if given and dtype is None else dtype)
    if target is None or len(given) + (dtype is not None) != 1:
        got = ", ".join(type(value).__name__ for value in (*given, *([] if dtype is None else [dtype])))
        raise ArgumentError(
            f"view() received an invalid combination of arguments - got ({got}), but expected one of:",
            "* (dtype dtype)",
            "* (tuple of ints size)",
        )
    data, kind = input._data, target.numpy
    out: Any
    if data.__class__ is DeviceArray:
        shape, strides, offset = _reinterpreted(input, target)
        out = DeviceArray.over(data.buffer, shape, strides, offset, kind)
    else:
        shape, _, _ = _reinterpreted(input, target)
        out = input._host_array().view(kind) if data.size else np.empty(shape, kind)
    result = input.detach()
    result._data = out
    return result


def _reinterpreted(x: Tensor, target: dtypes.dtype) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Shape, strides and offset of a tensor's memory in elements of another dtype.

    Raises:
        ShapeError: the last dimension has gaps, or elements of the other size do not divide something.
    """
    shape, offset = tuple(x._data.shape), x.storage_offset()
    strides = x.stride()
    old, new = x.itemsize, target.itemsize
    if old == new:
        return shape, strides, offset
    words = f"to view {x.dtype.legacy} as {target.legacy} (different element sizes)"
    if not shape:
        raise ShapeError(f"self.dim() cannot be 0 {words}")
    if strides[-1] != 1:
        raise ShapeError(f"self.stride(-1) must be 1 {words}, but got {strides[-1]}")
    if old > new:
        ratio = old // new
        return (*shape[:-1], shape[-1] * ratio), (*[step * ratio for step in strides[:-1]], 1), offset * ratio
    ratio = new // old
    checks = {"self.size(-1)": shape[-1], "self.storage_offset()": offset}
    checks.update({f"self.stride({dim})": step for dim, step in enumerate(strides[:-1])})
    for name, value in checks.items():
        if value % ratio:
            raise ShapeError(f"{name} must be divisible by {ratio} {words}, but got {value}")
    return (*shape[:-1], shape[-1] // ratio), (*[step // ratio for step in strides[:-1]], 1), offset // ratio


@public(functional=False, method=True)
def reshape(input: Tensor, *sizes: Any, shape: int | Sequence[int] | None = None) -> Tensor:
    """Reshapes: the same elements in another shape, a view where that is possible, else a copy.

    >>> import tritensor as torch
    >>> torch.arange(6).reshape(2, -1).shape
    tritensor.Size([2, 3])
    """
    data = input._data
    contiguous = data.flags.c_contiguous if type(data) is ndarray else input.is_contiguous()
    operator = _view if contiguous else _reshape_alias
    if shape is None and sizes:
        found = _quick_view(input, sizes, operator)
        if found is not None:
            return found
    target = layout.infer_shape(integers("reshape", "shape", sizes, shape), input._data.size)
    try:
        return operator(input, target)
    except layout.NotViewable:
        copied = _unsafe_view(input.contiguous(), target)
        copied._origin = None  # nobody else has the copy, so the result is a view of nothing
        return alike(copied, input)


def _quick_view(input: Tensor, sizes: tuple[Any, ...], operator: View) -> Tensor | None:
    """A CPU tensor in another shape where NumPy makes a view; None otherwise, and for what is wrong."""
    data = input._data
    if type(data) is not ndarray or (data.size >= LARGE and not data.flags.c_contiguous):
        return None
    try:
        out = data.reshape(*sizes)
    except (ValueError, TypeError):
        return None
    made = out.shape
    if made != sizes and made != sizes[0]:
        wanted = sizes[0] if isinstance(sizes[0], (tuple, list)) else sizes
        if min(wanted, default=0) < -1:
            return None  # NumPy takes any negative size for -1
    if out.base is data or (out.base is not None and out.base is data.base):
        return operator.attach(input, data.shape, out, (made,))
    return None


@public(functional=False, method=True)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Flattens the dimensions from `start_dim` to `end_dim` into one."""
    rank = input.ndim
    first, last = layout.normalize_dim(start_dim, rank), layout.normalize_dim(end_dim, rank)
    if first > last:
        raise ShapeError("flatten() has invalid args: start_dim cannot come after end_dim")
    shape = input._data.shape
    if rank == 0:
        return reshape(input, 1)
    if first == last:
        return input
    merged = 1
    for extent in shape[first : last + 1]:
        merged *= extent
    return reshape(input, *shape[:first], merged, *shape[last + 1 :])


@public(functional=False, method=True)
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Splits dimension `dim` into several of the given sizes (one may be -1).

    Raises:
        RangeError: no such dimension. ShapeError: no sizes, or their product is not the dimension's.
    """
    dim = layout.normalize_dim(dim, input.ndim)
    shape, sizes = input._data.shape, integers("unflatten", "sizes", (sizes,))
    if not sizes:
        raise ShapeError("unflatten: sizes must be non-empty")
    if not shape:
        raise ShapeError("unflatten got an unexpected error:\nDimension specified as 0 but tensor has no dimensions")
    if min(sizes) >= 0 and prod(sizes) != shape[dim]:
        raise ShapeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({shape[dim]}) in the "
            "input tensor"
        )
    return view(input, *shape[:dim], *layout.infer_shape(sizes, shape[dim]), *shape[dim + 1 :])


@public(functional=False, method=True)
def permute(input: Tensor, *order: Any, dims: Sequence[int] | None = None) -> Tensor:
    """Permutes the dimensions into the order `dims`."""
    return _permute(input, layout.permutation(integers("permute", "dims", order, dims), input.ndim))


@public("swapaxes", "swapdims", functional=False, method=True)
def transpose(input: Tensor, dim0: Any, dim1: Any = None) -> Tensor:
    """Swaps dimensions `dim0` and `dim1`; of one tuple, the dimensions in that order, as in NumPy."""
    data = input._data
    rank = data.ndim
    try:
        if rank == 2 and type(data) is ndarray and -2 <= dim0 < 2 and -2 <= dim1 < 2 and dim0 % 2 != dim1 % 2:
            return _transpose.attach(input, data.shape, data.T, ((1, 0),))
    except (TypeError, ShapeError):
        pass  # no two dimensions: all of them, or what the code below refuses
    if dim1 is None:
        if isinstance(dim0, (tuple, list)):
            return permute(input, dim0)
        raise ArgumentError("transpose(): argument 'dim1' is missing", remedy="name two, or a tuple of all")
    first, second = layout.normalize_dim(dim0, rank), layout.normalize_dim(dim1, rank)
    order = list(range(rank))
    if rank:
        order[first], order[second] = second, first
    return _transpose(input, tuple(order))


swapaxes = swapdims = transpose


def _reversed(input: Tensor) -> Tensor:
    """Reverses the dimensions: `x.T`, the transpose of a matrix."""
    return _permute(input, tuple(range(input.ndim))[::-1])


def _matrices(input: Tensor, call: str = "tensor.mT") -> Tensor:
    """Transposes matrices, the last two dimensions: `x.mT`; a tensor without dimensions as it is."""
    if input.ndim == 1:
        raise ShapeError(f"{call} is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return transpose(input, -2, -1) if input.ndim else input


@public(functional=False, method=True)
def adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of matrices, the last two dimensions; a tensor without dimensions as it is.

    Raises:
        ShapeError: a vector.
    """
    return _matrices(input, "tensor.adjoint()").conj()


def _conjugated(input: Tensor) -> Tensor:
    """The conjugate transpose of matrices, the last two dimensions: `x.mH`."""
    return _matrices(input, "tensor.mH").conj()


def _matrix_adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of a matrix: `x.H`."""
    if input.ndim not in (0, 2):
        batches = "" if input.ndim < 2 else " For batches of matrices, consider using tensor.mH"
        raise ShapeError(f"tensor.H is only supported on matrices (2-D tensors). Got {input.ndim}-D tensor.{batches}")
    return _conjugated(input)


for _name, _get in {"T": _reversed, "mT": _matrices, "mH": _conjugated, "H": _matrix_adjoint}.items():
    method(_name)(property(_get))


@public(functional=False, method=True)
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; tensors of fewer dimensions as they are."""
    data = input._data
    rank = data.ndim
    if rank > 2:
        raise ShapeError(f"t() expects a tensor with <= 2 dimensions, but self is {rank}D")
    order = tuple(range(rank))[::-1]
    if type(data) is ndarray:
        return _t.attach(input, data.shape, data.T, (order,))
    return _t(input, order)


@public("moveaxis", functional=False, method=True)
def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Moves dimensions `source` to the positions `destination`; the others keep their order."""
    rank = input.ndim
    given: list[list[Any]] = [
        list(dims) if isinstance(dims, (tuple, list)) else [dims] for dims in (source, destination)
    ]
    origin, target = ([layout.normalize_dim(dim, rank) for dim in dims] for dims in given)
    if len(origin) != len(target):
        raise ShapeError(
            f"movedim: Invalid source or destination dims: source ({given[0]} dims) should contain the same "
            f"number of dims as destination ({given[1]} dims)"
        )
    for name, dims, shown in zip(("source", "destination"), (origin, target), given, strict=True):
        if len(set(dims)) < len(dims):
            raise ShapeError(f"movedim: repeated dim in `{name}` ({shown})")
    rest = iter(dim for dim in range(rank) if dim not in origin)
    placed = dict(zip(target, origin, strict=True))
    return _permute(input, tuple(placed[dim] if dim in placed else next(rest) for dim in range(rank)))


@method()
def expand(input: Tensor, *sizes: Any, size: int | Sequence[int] | None = None, implicit: bool = False) -> Tensor:
    """Expands dimensions of size 1 to `sizes` without a copy; -1 keeps a size. `implicit` has no meaning."""
    wanted = integers("expand", "size", sizes, size)
    shape = input._data.shape
    extra = len(wanted) - len(shape)
    for dim, extent in enumerate(wanted):
        if extent < (0 if dim < extra else -1):
            raise ShapeError(
                f"The expanded size of the tensor ({extent}) isn't allowed in a leading, non-existing dimension {dim}"
            )
    target = tuple(
        [shape[dim - extra] if extent == -1 and dim >= extra else extent for dim, extent in enumerate(wanted)]
    )
    layout.broadcast_strides(shape, (0,) * len(shape), target)
    check_extents(target, input._data.dtype.itemsize, "numel: integer multiplication overflow")
    return _expand(input, target)


@method()
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Expands the tensor to the shape of `other`."""
    check_tensor("expand_as", "other", 1, other)
    return expand(input, other.shape)


@public(functional=False, method=True)
def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """Broadcasts the input to the shape `size`."""
    return expand(input, *layout.integers("broadcast_to", "size", (size,)))


@public(functional=False)
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Broadcasts tensors to their common shape; those that have it are returned as they are."""
    check_tensors(tensors)
    shape = layout.broadcast_shapes(*[x._data.shape for x in tensors])
    return tuple(x if x._data.shape == shape else expand(x, shape) for x in tensors)


@public(functional=False, method=True)
def squeeze(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Removes the dimensions of size 1 (among `dim`, when given)."""
    shape = input._data.shape
    dims = layout.normalize_dims(dim, len(shape))
    operator = _squeeze if dim is None else _squeeze_dims if isinstance(dim, (tuple, list)) else _squeeze_dim
    return operator(input, tuple([n for i, n in enumerate(shape) if n != 1 or i not in dims]))


@public(functional=False, method=True)
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Adds a new dimension of size 1 at `dim`."""
    shape = input._data.shape
    dim = layout.normalize_dim(dim, len(shape) + 1)
    check_rank(len(shape) + 1)
    return _unsqueeze(input, (*shape[:dim], 1, *shape[dim:]))


@public(functional=False, method=True)
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A view narrowed along `dim` to `length` elements, from `start`.

    Raises:
        RangeError: the range exceeds the dimension.
    """
    if input.ndim == 0:
        raise ShapeError("narrow() cannot be applied to a 0-dim tensor.")
    dim = layout.normalize_dim(dim, input.ndim)
    extent = input._data.shape[dim]
    if isinstance(start, Tensor) and (start.ndim or start.dtype.category != dtypes.INTEGER):
        raise ShapeError("start must be an 0-dim integral Tensor.")
    start, length = whole("narrow", "start", start), whole("narrow", "length", length)
    first = start + extent if start < 0 else start
    if not 0 <= first <= extent:
        raise RangeError(f"start out of range (expected to be in range of [{-extent}, {extent}], but got {start})")
    if length < 0:
        raise ShapeError("narrow(): length must be non-negative.")
    if first + length > extent:
        raise ShapeError(f"start ({first}) + length ({length}) exceeds dimension size ({extent}).")
    return _slice(input, (*(slice(None),) * dim, slice(first, first + length), Ellipsis))


@public(functional=False, method=True)
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Selects the slice at `index` along `dim`, a view without that dimension."""
    if input.ndim == 0:
        raise RangeError("select() cannot be applied to a 0-dim tensor.")
    dim = layout.normalize_dim(dim, input.ndim)
    position = layout.normalize_index(index, input._data.shape[dim], dim)
    return _slice(input, (*(slice(None),) * dim, position, Ellipsis))


@public(functional=False)
def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Splits along `dim` into views of pieces: of one size (the last may be smaller) or of the sizes given."""
    if tensor.ndim == 0:
        raise ShapeError("split expects at least a 1-dimensional tensor")
    dim = layout.normalize_dim(dim, tensor.ndim)
    extent = tensor._data.shape[dim]
    if isinstance(split_size_or_sections, int):
        size = split_size_or_sections
        if size < 0 or (size == 0 and extent):
            raise ShapeError(f"split expects split_size be non-negative, but got split_size={size}")
        operator, sections = _split, [min(size, extent - start) for start in range(0, extent, size or 1)] or [0]
    else:
        operator = _split_with_sizes
        sections = list(integers("split_with_sizes", "split_sizes", (split_size_or_sections,)))
        if sum(sections) != extent or any(size < 0 for size in sections):
            raise ShapeError(
                f"split_with_sizes expects split_sizes to sum exactly to {extent} (input tensor's size at "
                f"dimension {dim}), but got split_sizes={sections}"
            )
    return _pieces(operator, tensor, dim, sections)


def _pieces(operator: View, x: Tensor, dim: int, sections: Sequence[int]) -> tuple[Tensor, ...]:
    """Consecutive pieces of these sizes."""
    ends = list(accumulate(sections))
    keys = [slice(end - size, end) for end, size in zip(ends, sections, strict=True)]
    return operator.pieces(x, [(*(slice(None),) * dim, key, Ellipsis) for key in keys], dim)


@public(functional=False, method=True)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Splits into at most `chunks` views of equal size along `dim`; the last may be smaller."""
    chunks = whole("chunk", "chunks", chunks)
    if chunks <= 0:
        raise ShapeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if input.ndim == 0:
        raise ShapeError("chunk expects at least a 1-dimensional tensor")
    extent = input._data.shape[layout.normalize_dim(dim, input.ndim)]
    # for an empty dimension the result is `chunks` empty views
    return split(input, -(-extent // chunks) if extent else [0] * chunks, dim)


@public(functional=False, method=True)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Unbinds a dimension: a tuple of the slices along `dim`, without that dimension."""
    dim = layout.normalize_dim(dim, input.ndim)
    if input.ndim == 0:
        raise RangeError("Dimension specified as 0 but tensor has no dimensions")
    before = (slice(None),) * dim
    return _unbind.pieces(input, [(*before, place, Ellipsis) for place in range(input._data.shape[dim])], dim)


def basic_index(input: Tensor, key: Any, to_write: bool = False) -> Tensor:
    """`input[key]` for integers, slices, None and Ellipsis: a view; with a negative step a copy, but not `to_write`.

    Raises:
        RangeError: an index out of bounds or one index too many. ValueError: a step of 0.
    """
    data = input._data
    kind = type(key)
    if type(data) is ndarray and data.ndim and (kind is int or (kind is slice and key.step is None)):
        # the quick path: one index or slice of the first dimension
        first = (key, Ellipsis)
        try:
            return _slice.attach(input, data.shape, data[first], (first,))
        except IndexError:
            pass
    keys: tuple[Any, ...] = key if kind is tuple else (key,)
    backwards = False
    for part in keys:
        if part.__class__ is slice and part.step is not None and part.step <= 0:
            if not part.step:
                raise ValueError("step must be greater than zero")
            backwards = not to_write  # no view with negative strides leaves the library
    if Ellipsis not in keys:
        # without the ellipsis NumPy returns a number instead of a view when every dimension is indexed
        keys = (*keys, Ellipsis)
    elif keys.count(...) > 1:
        rest = keys.index(...) + 1  # others cover no dimensions
        keys = (*keys[:rest], *[part for part in keys[rest:] if part is not Ellipsis])
    try:
        return _slice(input, keys).clone() if backwards else _slice(input, keys)
    except IndexError:
        layout.index(tuple(data.shape), (0,) * data.ndim, 0, key)
        raise


@method()
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """The same elements in the shape of `other`, sharing memory."""
    check_tensor("view_as", "other", 1, other)
    return view(input, other._data.shape)


@method()
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """The same elements in the shape of `other`."""
    check_tensor("reshape_as", "other", 1, other)
    return reshape(input, other._data.shape)
