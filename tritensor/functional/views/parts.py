"""Parts of tensors: as_strided and unfold, select_scatter and its relatives, tensor_split."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ...errors import ArgumentError, RangeError, ShapeError
from ...ground.arguments import whole
from ...ground.public import method, public
from ...memory.lifted import Lifted
from ...operators.outputs import takes_out
from ...tensors import Tensor
from ...types import dtypes, layout
from ...types.layout import integers
from .view_operators import View, view_registry
from .views import split

Piece = tuple[View, tuple[Any, ...]]


# ---- strides and windows ----------------------------------------------------------------------------------------


def _strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None) -> Piece:
    """The view operator of `as_strided`, and its arguments."""
    shape = integers("as_strided", "size", (size,))
    strides = integers("as_strided", "stride", (stride,))
    if len(shape) != len(strides):
        raise ShapeError("mismatch in length of strides and shape")
    if min(strides, default=0) < 0:
        raise ShapeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(strides)}")
    if min(shape, default=0) < 0:
        raise ShapeError(f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(strides)}")
    offset = 0
    if storage_offset is not None:
        offset = whole("as_strided", "storage_offset", storage_offset)
        if offset < 0:
            raise ShapeError(f"Tensor: invalid storage offset {offset}")
        lifted = isinstance(input._data, Lifted) and input._data.level is not None
        offset -= 0 if lifted else input.storage_offset()
    return view_registry["as_strided"], (shape, strides, offset, input.stride())


@method("split")
def _split_method(self: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Splits along `dim` into views of pieces: of one size (the last may be smaller) or of the sizes given."""
    return split(self, split_size, dim)


@public(method=True)
def as_strided(input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """A view with these sizes and strides of the memory of `input`, whichever elements `input` itself has.

    >>> import tritensor as torch
    >>> torch.arange(9).as_strided((2, 2), (3, 1), 1)
    tensor([[1, 2],
            [4, 5]])

    Args:
        stride: the distance of neighbours along each dimension, in elements.
        storage_offset: of the first element; that of `input` unless given.

    Raises:
        ShapeError: negative strides, as many sizes as strides are not given, or elements outside of the memory.
    """
    view, arguments = _strided(input, size, stride, storage_offset)
    return view(input, *arguments)


@method()
def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """A view of all windows of `size` elements along a dimension, in a new last dimension.

    >>> import tritensor as torch
    >>> torch.arange(4).unfold(0, 2, 1)
    tensor([[0, 1],
            [1, 2],
            [2, 3]])

    Args:
        step: from the first element of one window to that of the next.

    Raises:
        ShapeError: a window larger than the dimension, or a step that is not positive.
    """
    dim = layout.normalize_dim(dimension, self.ndim)
    extent = self._data.shape[dim] if self.ndim else 1
    size, step = whole("unfold", "size", size), whole("unfold", "step", step)
    if size < 0:
        raise ShapeError(f"size is {size} but must be >= 0")
    if size > extent:
        raise ShapeError(f"maximum size for tensor at dimension {dim} is {extent} but size is {size}")
    if step <= 0:
        raise ShapeError(f"step is {step} but must be > 0")
    if not self.ndim:
        return self.reshape(1).narrow(0, 0, size)
    return view_registry["unfold"](self, dim - self.ndim, size, step)


# ---- a copy with another part -----------------------------------------------------------------------------------


def written(name: str, whole: Tensor, view: View, arguments: tuple[Any, ...], source: Tensor) -> Tensor:
    """`whole`, which nobody else has, with a source written to a view of it; its node has a name.

    Raises:
        ShapeError: the source has not the view's shape.
    """
    region = view(whole, *arguments)
    if region.shape != source.shape:
        raise ShapeError(
            f"expected src to have a size equal to the slice of self. src size = {list(source.shape)}, slice size = "
            f"{list(region.shape)}"
        )
    region.copy_(source)
    if whole._node is not None and hasattr(whole._node.backward, "chain"):  # the node of the copy
        whole._node.backward.name = f"{name.title().replace('_', '')}Backward0"
    return whole


def _key(input: Tensor, dim: int, part: Any) -> Piece:
    return view_registry["slice"], ((*(slice(None),) * dim, part, Ellipsis),)


@public(method=True)
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """A copy of `input` with `src` written where `as_strided` would view it.

    Raises:
        ShapeError: as `as_strided`, or `src` has another size.
    """
    whole = input.clone()
    return written("as_strided_scatter", whole, *_strided(whole, size, stride, storage_offset), src)


@public(method=True)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of `input` with `src` in place of `input.select(dim, index)`.

    >>> import tritensor as torch
    >>> torch.select_scatter(torch.zeros(2, 2), torch.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])

    Raises:
        ShapeError: `src` has another shape than that. RangeError: an index or a dimension out of bounds.
    """
    if not input.ndim:
        raise RangeError("select() cannot be applied to a 0-dim tensor.")
    dim = layout.normalize_dim(dim, input.ndim)
    place = layout.normalize_index(index, input._data.shape[dim], dim)
    return written("select_scatter", input.clone(), *_key(input, dim, place), src)


@public(method=True, out=takes_out())
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy of `input` with `src` in place of `input[start:end:step]` along `dim`.

    Raises:
        ShapeError: `src` has another shape than that, or a step that is not positive. RangeError: no such dimension.
    """
    return written("slice_scatter", input.clone(), *_sliced(input, dim, start, end, step), src)


def _sliced(input: Tensor, dim: int, start: int | None, end: int | None, step: int) -> Piece:
    if not input.ndim:
        raise RangeError("slice() cannot be applied to a 0-dim tensor.")
    if step <= 0:
        raise ShapeError("slice step must be positive")
    return _key(input, layout.normalize_dim(dim, input.ndim), slice(start, end, step))


def slice_(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """`input[start:end:step]` along `dim`, which is not public in PyTorch; its copy is."""
    view, arguments = _sliced(input, dim, start, end, step)
    return view(input, *arguments)


# ---- pieces along a dimension -----------------------------------------------------------------------------------


@public(method=True)
def tensor_split(
    input: Tensor,
    indices_or_sections: int | Sequence[int] | Tensor | None = None,
    dim: int = 0,
    *,
    sections: int | None = None,
    indices: Sequence[int] | None = None,
) -> tuple[Tensor, ...]:
    """Splits along `dim` into views that begin at the given indices, or into a number of sections as equal as possible.

    >>> import tritensor as torch
    >>> [len(part) for part in torch.arange(7).tensor_split(3)]
    [3, 2, 2]

    Args:
        indices_or_sections: one of the two; a tensor of them has to be int64 on the CPU.

    Raises:
        ShapeError: a tensor without dimensions, or no sections.
    """
    if not input.ndim:
        raise ShapeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    given: Any = (
        indices_or_sections if sections is None and indices is None else indices if sections is None else sections
    )
    dim = layout.normalize_dim(dim, input.ndim)
    if isinstance(given, Tensor):
        kind, where = given.dtype.legacy.rpartition(".")[2].removesuffix("Tensor"), given.device
        if where.type != "cpu":
            raise ShapeError(f"tensor_split expected tensor_indices_or_sections to be on cpu, but it's on {where}")
        if given.dtype is not dtypes.int64:
            raise ShapeError(f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {kind}")
        if given.ndim > 1:
            raise ShapeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, "
                f"but got a tensor with {given.ndim} dims"
            )
        given = given.tolist()
    extent = input._data.shape[dim]
    if isinstance(given, (tuple, list)):
        bounds = [0, *integers("tensor_split", "indices", (given,)), extent]
    else:
        count = whole("tensor_split", "sections", given)
        if count <= 0:
            raise ShapeError(f"number of sections must be larger than 0, got {count}")
        bounds = [place * (extent // count) + min(place, extent % count) for place in range(count + 1)]
    view = view_registry["slice"]
    keys = [_key(input, dim, slice(*pair))[1] for pair in pairwise(bounds)]
    if min(bounds) == 0 and bounds == sorted(bounds):  # no element is in two of them, and each is in one
        return view.pieces(input, [key for (key,) in keys], dim)
    return tuple([view(input, *key) for key in keys])


def _splitting(name: str, which: str, least: int, place: int) -> None:
    """Declare `tensor_split` along one dimension, into sections of equal size."""

    def call(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
        if input.ndim < least:
            words = f"requires a tensor with at least {least} dimension, but got a tensor with {input.ndim} dimensions!"
            raise ShapeError(f"torch.{name} {words}")
        if not isinstance(indices_or_sections, (int, tuple, list)):
            got = f"got (Tensor, {type(indices_or_sections).__name__})"
            raise ArgumentError(f"{name}() received an invalid combination of arguments - {got}")
        dim = min(place, input.ndim - 1)
        extent, given = input._data.shape[dim], indices_or_sections
        if isinstance(given, int) and (given <= 0 or extent % given):
            raise ShapeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {extent} is not "
                f"divisible by the split_size {given}!"
            )
        return tensor_split(input, given, dim)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Splits along {which}, as `tensor_split`; a number of sections has to divide its size."
    public(method=True)(call)


_splitting("hsplit", "the second dimension, of a vector along its only one", 1, 1)
_splitting("vsplit", "the first dimension, of a matrix at least", 2, 0)
_splitting("dsplit", "the third dimension", 3, 2)


@public(method=True)
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Splits along `dim` into views of these sizes."""
    return split(input, list(integers("split_with_sizes", "split_sizes", (split_sizes,))), dim)
