"""`x[...]`, and the functions that read or write the elements at the coordinates in an integer tensor or a mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...autograd.gradients import called
from ...autograd.levels import followed
from ...autograd.mode import recording
from ...errors import ArgumentError, DtypeError, RangeError, ShapeError
from ...ground.arguments import check_tensor, number_of
from ...ground.public import method, public
from ...host.scalars import converted, element
from ...kernels.indexing import family as kernels
from ...kernels.indexing.reference import indexed_shape
from ...memory.array import DeviceArray
from ...operators import registry
from ...operators.inplace import OverlapError, check_writable, in_place, in_place_form, is_itself
from ...operators.outputs import SCATTERED, SELECTED, takes_out
from ...tensors import Tensor
from ...types import dtypes, layout
from ..views import expanded
from ..views.views import basic_index
from . import quick_indexing
from .index_keys import Places, is_basic, resolve

_NUMBERS = (bool, int, float, complex, np.number, np.bool_)


@method("__getitem__")
def getitem(self: Tensor, key: object) -> Tensor:
    """`x[key]`: a view for integers, slices, None and Ellipsis, a copy for tensors, masks, lists and arrays.

    A slice may go backwards (`x[::-1]`), as in NumPy and the array API standard; then the result is a copy.

    Index tensors of a CUDA tensor may be on the CPU. For one on the device, the host waits once per version of the
    index to check the bounds; for a mask it waits for the number of elements.

    Raises:
        RangeError: an index out of bounds, one index too many, a mask of the wrong shape.
    """
    kind = type(key)
    if kind is int or kind is slice or is_basic(key):
        return basic_index(self, key)
    found = quick_indexing.read(self, key)
    if found is not None:
        return found
    view, positions, dims, _ = resolve(self, key)
    if positions is None:
        return view if min(view.stride(), default=0) >= 0 else view.clone()
    return kernels.index(view, positions, dims=dims)


@method("__setitem__")
def setitem(self: Tensor, key: object, value: object) -> None:
    """`x[key] = value`, broadcast.

    Where coordinates repeat, the last value is written on the CPU and any one of them on a CUDA device. A value that
    shares memory with `self` is copied first.

    Raises:
        ArgumentError: the value is neither a number nor a tensor. ShapeError: it does not broadcast.
        DtypeError: the dtype does not hold the number; or index tensors are used and the value has another dtype. A
            mask alone converts a value of one element.
    """
    if not isinstance(value, (Tensor, *_NUMBERS)):
        raise ArgumentError(f"can't assign a {_type_name(value)} to a {self.type()}")
    basic = is_basic(key)
    if quick_indexing.write(self, key, basic, value):
        return
    if not isinstance(value, Tensor):
        value = element(value, self.dtype)
    if key.__class__ is bool:
        if not key:
            return
        key, basic = None, True
    if self.is_meta and isinstance(key, Tensor) and key.dtype is dtypes.bool_ and getattr(value, "ndim", 0) == 0:
        self.masked_fill_(key.reshape(*key.shape, *(1,) * (self.ndim - key.ndim)), value)  # no places are known
        return
    places = Places(basic_index(self, key, to_write=True)) if basic else resolve(self, key)
    if places.positions is None:
        _assign(places.view, value)
    else:
        put(places, value)


def _type_name(value: object) -> str:
    return "numpy.ndarray" if isinstance(value, np.ndarray) else type(value).__name__


def _assign(view: Any, value: Any) -> None:
    if isinstance(value, Tensor) and is_itself(view, value):
        view.copy_(value)
    elif not isinstance(value, Tensor) or value.ndim == 0:
        check_writable(view)  # `fill_` alone is allowed to write to expanded tensors
        view.fill_(value)
    else:
        view.copy_(_apart(_without_leading_ones(value, view.ndim), view))


def _apart(value: Tensor, target: Tensor) -> Any:
    """The value, copied if it shares memory with the target of the kernel that reads it."""
    own, other = target._data, value._data
    shared = own.__class__ is DeviceArray and other.__class__ is DeviceArray and own.buffer is other.buffer
    return value.clone() if shared else value


def _without_leading_ones(value: Tensor, rank: int) -> Any:
    """The value without the leading dimensions of size 1 beyond `rank`, which an assignment allows."""
    extra = 0
    while value.ndim - extra > rank and value._data.shape[extra] == 1:
        extra += 1
    return value.reshape(value._data.shape[extra:]) if extra else value


def put(places: Places, value: Any, accumulate: bool = False) -> Tensor:
    """`x[positions] = value` (or `+=`) in place; written directly to the memory if nothing is recorded."""
    x, positions, dims, of_mask = places
    assert positions is not None
    if of_mask and not accumulate and isinstance(value, Tensor) and value.numel() == 1:
        value = _number_for(x, value.reshape(()))
    if isinstance(value, Tensor):
        if value.dtype is not x.dtype:
            raise DtypeError(
                f"Index put requires the source and destination dtypes match, got {short(x)} for the destination "
                f"and {short(value)} for the source.",
                remedy=f"convert the value with .to({x.dtype})",
            )
        value = _without_leading_ones(value, len(indexed_shape(x._data.shape, positions._data.shape[1:], dims)))
    try:
        check_writable(x)
    except OverlapError:
        expanded.put(put, places, value, accumulate)
        return x
    if not isinstance(value, Tensor) and x.dtype in dtypes.FLOAT8:
        value = x.new_full((), value)
    if accumulate or followed(x, positions, value):
        return in_place(x, kernels.index_put, positions, value, dims=dims, accumulate=accumulate)
    kernels.put_into(x, positions, _apart(value, x) if isinstance(value, Tensor) else value, dims)
    return x


def short(x: Tensor) -> str:
    """The name of a tensor's dtype in PyTorch's messages: "Float"."""
    return str(x.type()).rpartition(".")[2].removesuffix("Tensor")


@public(method=True, autocast={"cuda": "widest"})
def index_put(input: Tensor, indices: Sequence[Tensor], values: object, accumulate: bool = False) -> Tensor:
    """A copy of `input` with `values` at `input[indices]`, or added to what is there (in one order on every run)."""
    return index_put_(input.clone(), indices, values, accumulate)


@public(method=True)
def index_put_(input: Tensor, indices: Sequence[Tensor], values: object, accumulate: bool = False) -> Tensor:
    """Write `values` to `input[indices]`, or add them to what is there."""
    places = resolve(input, tuple(indices))
    if places.positions is None:
        _assign(places.view, places.view + values if accumulate else values)
    else:
        put(places, values, accumulate)
    return input


def integer_index(name: str, index: Tensor, words: str) -> None:
    """Raise unless an index is a tensor of int64 or int32."""
    if not isinstance(index, Tensor):
        raise ArgumentError(f"{name}(): argument 'index' must be Tensor, not {type(index).__name__}")
    if index.dtype not in (dtypes.int64, dtypes.int32):
        raise DtypeError(
            f"{name}(): Expected dtype {words} for index",
            f"got {index.dtype}",
            remedy="convert it with .to(torch.int64)",
        )


@public(method=True, out=takes_out(SELECTED))
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Selects slices of `input` along `dim` at the positions in a vector.

    >>> import tritensor as torch
    >>> torch.index_select(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([1, 1]))
    tensor([[2, 2],
            [4, 4]])
    """
    dim = layout.normalize_dim(dim, input.ndim)
    integer_index("index_select", index, "int32 or int64")
    if index.ndim > 1:
        raise RangeError("index_select(): Index is supposed to be a vector")
    vector = index.reshape(-1)
    kernels.check_bounds(vector, input._data.shape[dim] if input.ndim else 1, dim, 0, "index out of range in self")
    if input.ndim == 0:
        if vector.numel() != 1:
            raise ShapeError(f"index_select(): Index to scalar can have only 1 value, got {vector.numel()} value(s)")
        return input.clone()
    found = quick_indexing.take(input, vector, dim, along=False)
    result = kernels.index(input, row(vector), dims=(dim,)) if found is None else found
    return called("IndexSelectBackward0", result)


def row(checked: Tensor) -> Tensor:
    """Coordinates along one dimension from an index that has been checked."""
    positions: Tensor = checked.unsqueeze(0)
    kernels.mark_checked_range(positions)
    return positions


@public(method=True, in_place=in_place_form, out=takes_out(SCATTERED))
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: complex = 1) -> Tensor:
    """Adds slices: `input` with `alpha * source[i]` added to its slice `index[i]` along `dim`.

    The order of the additions is fixed, so every run gives the same bits.
    """
    dim = check_slices("index_add_", input, dim, index, source)
    alpha = converted(number_of("index_add", "alpha", alpha), input.dtype)
    value = source * alpha if alpha != 1 else source
    return called("IndexAddBackward0", _put_slices(input, dim, index, value, accumulate=True))


def check_slices(name: str, input: Tensor, dim: int, index: Tensor, source: Tensor) -> int:
    """The dimension, after the arguments of index_add or index_reduce were checked."""
    dim = slice_dim(name, input, dim, index)
    check_dtype(name, input, source)
    if dim and dim >= source.ndim:
        raise ShapeError(f"{name}(): Indexing dim {dim} is out of bounds of the source tensor with dim {source.ndim}")
    own, other = list(input.shape), list(source.shape)
    if not other and index.numel() != 1:
        raise RangeError("Dimension specified as 0 but tensor has no dimensions")
    extent = other[dim] if other else 1
    if index.numel() != extent:
        raise ShapeError(
            f"{name}(): Number of indices ({index.numel()}) should be equal to source.size(dim): ({extent}), "
            f"for dim: {dim}"
        )
    if own and other:
        own[dim] = other[dim] = 1
    if own != other:
        raise ShapeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got "
            f"self.shape = {list(input.shape)} source.shape = {list(source.shape)}"
        )
    return dim


@public(method=True, in_place=in_place_form, out=takes_out(SCATTERED), autocast={"cpu": "widest"})
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Copies slices: `input` with slice `index[i]` along `dim` replaced by `source[i]`."""
    dim = slice_dim("index_copy_", input, dim, index)
    own, other, count = list(input.shape), list(source.shape), index.numel()
    if not other and count != 1:
        raise RangeError(f"index_copy_(): When source is scalar, index should have one element (got {count})")
    if own and other and len(own) != len(other):
        raise RangeError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({len(other)}), destination dimensionality ({len(own)})"
        )
    check_dtype("index_copy_", input, source)
    inner, outer = other[:dim] + other[dim + 1 :], own[:dim] + own[dim + 1 :]
    if inner != outer:
        raise ShapeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{outer} at dimension {dim} and source slice shape: {inner} at dimension 0."
        )
    if other and other[dim] != count:
        raise RangeError(
            f"index_copy_(): Number of indices ({count}) should be equal to source.size(dim) ({other[dim]})"
        )
    return called("IndexCopyBackward0", _put_slices(input, dim, index, source))


@public(method=True, in_place=expanded.form(expanded.index_fill))
def index_fill(input: Tensor, dim: int, index: Tensor, value: object) -> Tensor:
    """Fills slices: `input` with those at `index` along `dim` filled with a number; -1 is the last slice."""
    dim = slice_dim("index_fill_", input, dim, index)
    if isinstance(value, Tensor) and value.ndim:
        raise ShapeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    kind = value.dtype.category if isinstance(value, Tensor) else dtypes.scalar_category(value)
    if kind == dtypes.COMPLEX and not input.dtype.is_complex:
        raise DtypeError(
            "index_fill_(): Converting complex Scalar to non-complex type is not supported",
            f"the tensor is {input.dtype}",
            remedy="pass the value's real part",
        )
    number = _number_for(input, value)
    if isinstance(number, Tensor) and number._needs and recording.enabled and input.ndim:
        # a slice that is named twice is filled once, and counts once in the number's gradient
        row = index.new_zeros(input._data.shape[dim], dtype=dtypes.bool_)
        named = _put_slices(row, 0, index, True, negative=True).reshape(-1, *(1,) * (input.ndim - dim - 1))
        return called("IndexFillBackward0", registry["where"](named, number, input))
    return called("IndexFillBackward0", _put_slices(input, dim, index, number, negative=True))


def _number_for(input: Tensor, value: Any) -> Any:
    """A number, or a tensor without dimensions, to fill elements of `input` with.

    A tensor on a device is not waited for: it is cast without a check.

    Raises:
        DtypeError: the dtype does not hold the number.
    """
    if not isinstance(value, Tensor):
        return converted(value, input.dtype)
    if not value._off_host:
        converted(value.item(), input.dtype)
    return value.to(input.device, input.dtype)


def slice_dim(name: str, input: Tensor, dim: int, index: Tensor) -> int:
    """The dimension, after the index of index_add, index_copy or index_fill was checked."""
    dim = layout.normalize_dim(dim, input.ndim)
    integer_index(name, index, "int32/int64")
    if index.ndim > 1:
        raise RangeError(f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim}")
    return dim


def check_dtype(name: str, input: Tensor, source: Tensor) -> None:
    """Raise unless both have one dtype."""
    if source.dtype is not input.dtype:
        raise DtypeError(
            f"{name}(): self ({short(input)}) and source ({short(source)}) must have the same scalar type",
            remedy=f"convert the source with .to({input.dtype})",
        )


def _put_slices(
    input: Tensor, dim: int, index: Tensor, value: Tensor | float, *, negative: bool = False, accumulate: bool = False
) -> Tensor:
    """`input` with `value` in its slices at `index` along `dim`; a tensor without dimensions is one slice."""
    if input.ndim == 0:
        return _put_slices(input.reshape(1), 0, index, value, negative=negative, accumulate=accumulate).reshape(())
    shape, index = input._data.shape, index.reshape(-1)
    if 0 in shape[:dim] + shape[dim + 1 :] or (accumulate and 0 in shape and len(shape) > 1):
        # nothing to write to: PyTorch does not look at the index
        index = index[:0]
        value = value.narrow(dim, 0, 0) if isinstance(value, Tensor) and value.ndim else value
    kernels.check_bounds(index, shape[dim], dim, None if negative else 0)
    return kernels.index_put(input, row(index), value, dims=(dim,), accumulate=accumulate)


def places_of(name: str, index: Tensor) -> Tensor:
    """The index of gather or scatter, which without elements may be of any dtype, as in PyTorch."""
    if isinstance(index, Tensor) and not index._data.size:
        return index.to(dtypes.int64)
    integer_index(name, index, "int32/int64")
    return index


@public(method=True, out=takes_out(SELECTED))
def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Gathers values along `dim`: out[i][j] = input[index[i][j]][j] for two dimensions and dim=0.

    >>> import tritensor as torch
    >>> torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])

    Raises:
        BoundsError: an index out of bounds; negative ones are.
    """
    layout.normalize_dim(dim, input.ndim)
    index = places_of("gather", index)
    return kernels.gather(input, index, dim=dim)


@public(method=True, out=takes_out(SELECTED))
def take(input: Tensor, index: Tensor) -> Tensor:
    """Takes the elements at `index` of the flattened `input`."""
    integer_index("take", index, "int64")
    count = input.numel()
    words = f"out of range: tried to access an index on a tensor of {count} elements."
    kernels.check_bounds(index, count, 0, message=words if count else "take(): tried to take from an empty tensor")
    flat = input.reshape(-1)
    chosen = flat[index] if index.ndim else kernels.index(flat, row(index), dims=(0,))  # one number makes a view
    return called("TakeBackward0", chosen)


@public(method=True, out=takes_out(SELECTED))
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Takes elements at `indices` along `dim` (of the flattened input if None); the other sizes broadcast."""
    integer_index("take_along_dim", indices, "int64")
    if dim is None:
        return take_along_dim(input.reshape(-1), indices.reshape(-1), 0)
    if input.ndim != indices.ndim:
        raise ShapeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    dim = layout.normalize_dim(dim, input.ndim)
    if not input.ndim:
        raise RangeError("Dimension specified as 0 but tensor has no dimensions")
    own, places = list(input.shape), list(indices.shape)
    size = own[dim]
    own[dim] = places[dim] = 1
    shape = list(layout.broadcast_shapes(tuple(own), tuple(places)))
    target = [*shape[:dim], indices.shape[dim], *shape[dim + 1 :]]
    if 0 not in target:  # PyTorch does not look at the index of a result without elements
        kernels.check_bounds(indices, size, dim)
    spread = registry["where"](indices < 0, indices + size, indices).expand(target)
    return gather(input.expand([*shape[:dim], size, *shape[dim + 1 :]]), dim, spread)


@public(method=True, in_place=expanded.form(expanded.masked_fill))
def masked_fill(input: Tensor, mask: Tensor, value: object) -> Tensor:
    """Fills with a number where `mask` is True; input and mask broadcast.

    >>> import tritensor as torch
    >>> torch.ones(3).masked_fill(torch.tensor([True, False, True]), 0)
    tensor([0., 1., 0.])
    """
    check_tensor("masked_fill", "mask", 1, mask)
    if mask.dtype is not dtypes.bool_:
        raise DtypeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype}",
            remedy="compare it, as in mask != 0",
        )
    if isinstance(value, Tensor):
        if value.ndim:
            raise ShapeError(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value.ndim} dimension(s)."
            )
    number = "1" if isinstance(value, Tensor) else "0"
    return called(f"MaskedFillBackward{number}", registry["where"](mask, _number_for(input, value), input))


@public(method=True, out=takes_out(SELECTED))
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Selects the elements where `mask` is True, as a vector; the two broadcast. The host waits for their number."""
    check_tensor("masked_select", "mask", 1, mask)
    if mask.dtype is not dtypes.bool_:
        raise DtypeError("masked_select: expected BoolTensor for mask")
    shape = layout.broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    return called("MaskedSelectBackward0", input.expand(shape)[mask.expand(shape)])
