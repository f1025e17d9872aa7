"""Sparse tensors of coordinates and values, and what operators do with them: one without a rule is refused here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from ...errors import DtypeError, ShapeError, UnsupportedError, require
from ...ground.public import Declared, public
from ...kernels.bounds import operator as running
from ...memory.sparse import Array, Sparse
from ...operators import Operator, registry
from ...operators.inplace import write
from ...tensors import Tensor, wrap
from ...types import Device, Dtype, devices, dtypes, layout
from ..creation.creation import empty, tensor
from ..creation.ranges import arange
from ..indexing.bins import searchsorted
from ..views.joining import cat, stack
from .coordinates import add_to, is_sparse, made, parts, values_at

Inputs = tuple[Any, ...]
Metadata = dict[str, Any]
Rule = Callable[[Operator, Inputs, Metadata], Tensor | None]  # None where it does not hold
_RULES: dict[str, Rule] = {}  # by the operator's name


@public(functional=False)
def sparse_coo_tensor(
    indices: Tensor | Sequence[Any] | None = None,
    values: object = None,
    size: Sequence[int] | None = None,
    *,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A sparse tensor in COO format: `values` at coordinates `indices`, (sparse dimensions, elements), else zeros.

    Values at equal coordinates are added up where that matters, see `Tensor.coalesce`. Further dimensions of `values`
    are dense ones, which follow the sparse ones.

    >>> import tritensor as torch
    >>> torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])

    Args:
        size: just large enough unless given; alone, of a tensor without values.
        check_invariants: look whether all coordinates are within `size`.
        is_coalesced: the coordinates are sorted, each is there once.

    Raises:
        ShapeError: coordinates, values and size do not fit together.
    """
    if values is None:
        size = [*(indices or ())] if size is None else size
        indices, values, is_coalesced = empty(len(size), 0), empty(0, dtype=dtype, device=device), True
    values = values if isinstance(values, Tensor) else tensor(values, dtype=dtype)
    where = values.device if device is None else devices.resolve(device)
    values = values.to(where, values.dtype if dtype is None else dtype)
    values = values if values.ndim else values.reshape(1)
    indices = (indices if isinstance(indices, Tensor) else tensor(indices)).to(where, dtypes.int64)
    require(indices.ndim == 2, ShapeError, "indices must be sparse_dim x nnz, but got: {}", list(indices.shape))
    count, dims, dense = indices.shape[1], len(indices), list(values.shape[1:])
    require(dims, UnsupportedError, "sparse_coo_tensor: a tensor without sparse dimensions is not supported")
    words = "indices and values must have same nnz, but got nnz from indices: {}, nnz from values: {}"
    require(count == len(values), ShapeError, words, count, len(values))
    needed = [0] * dims
    if count and (size is None or check_invariants):
        for dim, low in enumerate(indices.amin(1).tolist()):
            require(low >= 0, ShapeError, "found negative index {} for dim {}", low, dim)
        needed = [most + 1 for most in indices.amax(1).tolist()]
    size = [*needed, *dense] if size is None else list(size)
    words = "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {}, sparse_dim = {}, dense_dim = {}"
    require(len(size) == dims + len(dense), ShapeError, words, len(size), dims, len(dense))
    expected, got = [count, *size[dims:]], [count, *dense]
    require(expected == got, ShapeError, "values has incorrect size, expected {}, got {}", expected, got)
    words = "size is inconsistent with indices: for dim {}, size is {} but found index {}"
    for dim, least in enumerate(needed):
        require(least <= size[dim], ShapeError, words, dim, size[dim], least - 1)
    result = made(indices, values, size, bool(is_coalesced))
    return result.requires_grad_() if requires_grad else result


def apply(operator: Operator, inputs: Inputs, metadata: Metadata) -> Tensor:
    """An operator's result for inputs of which at least one is sparse.

    Raises:
        UnsupportedError: it has no rule, in PyTorch's words.
    """
    rule = _RULES.get(operator.name) or (_of_values if operator.family == "elementwise" else None)
    found = None if rule is None else rule(operator, inputs, metadata)
    if found is None:
        name = running()
        raise next(x._data for x in inputs if is_sparse(x)).refusal(operator.name if name == "indexing" else name)
    return found


def _of(*names: str) -> Callable[[Declared], Declared]:
    """A decorator of the rule for operators of these names."""

    def declare(rule: Declared) -> Declared:
        _RULES.update(dict.fromkeys(names, rule))
        return rule

    return declare


def _of_values(operator: Operator, inputs: Inputs, metadata: Metadata) -> Tensor | None:
    """An operator that leaves zero as it is, of the values of a sparse tensor, of each element one, and of numbers."""
    x, *others = inputs
    if not is_sparse(x) or any(isinstance(other, Tensor) and other.ndim for other in others):
        return None
    moves = bool(operator(tensor(0, dtype=x.dtype), *others, **metadata) != 0)
    return None if moves else _linear(operator, (x.coalesce(), *others), metadata)


@_of("copy", "neg")
def _linear(operator: Operator, inputs: Inputs, metadata: Metadata) -> Tensor:
    """An operator of the values of a sparse tensor as they are, and numbers."""
    x, *others = inputs
    indices, values = parts(x)
    indices = operator(indices) if operator.name == "copy" else indices
    return made(indices, operator(values, *others, **metadata), x.shape, x._data.coalesced or values._needs)


@_of("mul")
def _times(operator: Operator, inputs: Inputs, metadata: Metadata) -> Tensor:
    """The products with a number, or with another tensor's elements at the coordinates."""
    x, y = inputs if is_sparse(inputs[0]) else inputs[::-1]
    if not isinstance(y, Tensor) or not y.ndim:
        return _linear(operator, (x, y), metadata)
    layout.broadcast_strides(tuple(y.shape), (0,) * y.ndim, tuple(x.shape))
    indices, values = parts(x, is_sparse(y))
    others = values_at(y if is_sparse(y) else y.expand(x.shape), indices)
    return made(indices, operator(values, others), x.shape, is_sparse(y) or x._data.coalesced, "MulBackward0")


@_of("div")
def _divided(operator: Operator, inputs: Inputs, metadata: Metadata) -> Tensor | None:
    y = inputs[1]
    words = "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape {} for divisor)"
    require(not isinstance(y, Tensor) or not y.ndim, DtypeError, words, list(getattr(y, "shape", ())))
    return _linear(operator, inputs, metadata) if is_sparse(inputs[0]) else None


@_of("add", "sub", "add_scaled")
def _plus(operator: Operator, inputs: Inputs, metadata: Metadata) -> Tensor:
    """The sum of two sparse tensors is sparse, that of a dense and a sparse one dense."""
    x, y = inputs
    alpha: Any = metadata.get("alpha", -1 if operator.name == "sub" else 1)
    if not is_sparse(y) or not isinstance(x, Tensor):
        raise DtypeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    kind = dtypes.common(x.dtype, y.dtype)
    if not is_sparse(x):
        return add_to(x.to(kind, copy=True), y, alpha)
    words = "add: expected sizes of 'self' and 'other' to match, but {} != {}"
    require(x.shape == y.shape, ShapeError, words, list(x.shape), list(y.shape))
    (indices, values), (others, more) = parts(x), parts(y)
    more = more if alpha == 1 else more * alpha
    both = (x._data.coalesced or values._needs) and (y._data.coalesced or more._needs)
    if indices.shape == others.shape and (indices._data is others._data or bool((indices == others).all())):
        return made(indices, values + more, x.shape, both)
    total = made(cat([indices, others], 1), cat([values.to(kind), more.to(kind)]), x.shape)
    return total.coalesce() if both else total


@_of("sum")
def _sum(operator: Operator, inputs: Inputs, metadata: Metadata) -> Tensor | None:
    """The sum of all values, or along dimensions; dense where no sparse dimension is left."""
    (x,), sparse = inputs, inputs[0]._data.dims
    dims = layout.normalize_dims(metadata["dim"], x.ndim)
    if metadata["keepdim"]:
        return None
    kept = [dim for dim in range(sparse) if dim not in dims]
    along = tuple([dim - sparse + 1 for dim in dims if dim >= sparse]) + ((0,) if not kept else ())
    indices, values = parts(x)
    values = operator(values, **{**metadata, "dim": along}) if along else values.to(metadata["dtype"])
    shape = [size for dim, size in enumerate(x.shape) if dim not in dims]
    return made(indices[kept], values, shape, False, "SumBackward0").coalesce() if kept else values


@_of("norm")
def _norm(operator: Operator, inputs: Inputs, metadata: Metadata) -> Tensor | None:
    along = metadata["dim"] is not None or metadata["keepdim"]
    return None if along else operator(parts(inputs[0], True)[1], **metadata)


@_of("matmul")
def _product(operator: Operator, inputs: Inputs, metadata: Metadata) -> Tensor:
    """The product of matrices, or of a sparse matrix and a vector; dense unless both are sparse."""
    x, y = inputs
    if is_sparse(x) and y.ndim == 1:
        require(x.shape[-1] == len(y), ShapeError, "mv: expected self.size(-1) == vec.size(-1)")
        return _product(operator, (x, y.unsqueeze(1)), metadata).squeeze(1)
    first, second = (x, y) if is_sparse(x) else (y.t(), x.t())
    words = "addmm: matrices expected, got {}D and {}D tensors"
    require(first._data.dims == second.ndim == 2, ShapeError, words, x.ndim, y.ndim)
    sizes = first.shape[1], second.shape[0]
    require(sizes[0] == sizes[1], ShapeError, "addmm: Argument #3 (dense): Expected dim 0 size {}, got {}", *sizes)
    words = "expected scalar type {} but found {}"
    require(x.dtype is y.dtype, DtypeError, words, x.dtype.legacy, y.dtype.legacy)
    (rows, columns), values = parts(first)
    if not is_sparse(second):
        lines = second.index_select(0, columns) * values.unsqueeze(1)
        found = lines.new_zeros((first.shape[0], second.shape[1])).index_add(0, rows, lines)
        return found if first is x else found.t()
    # each value of x meets those of the row of y that its column names
    (starts, others), more = parts(second, True)
    begin = searchsorted(starts, columns)
    counts = searchsorted(starts, columns, right=True) - begin
    left = arange(len(values), device=x.device).repeat_interleave(counts)
    place = arange(len(left), device=x.device) - (counts.cumsum(0) - counts - begin)[left]
    found = values[left] * more[place]
    return made(stack([rows[left], others[place]]), found, (x.shape[0], y.shape[1])).coalesce()


@_of("linear")
def _affine(operator: Operator, inputs: Inputs, metadata: Metadata) -> Tensor:
    product = registry["matmul"](inputs[0], inputs[1].t())
    return product if inputs[2] is None else product + inputs[2]


def change(x: Tensor, operator: Operator, arguments: Inputs, metadata: Metadata) -> bool:
    """Add a sparse tensor to a dense one in place; False for all other changes, which are made and then written."""
    name = getattr(operator, "name", operator.__name__)
    if name not in ("add", "sub", "add_scaled") or is_sparse(x):
        return False
    kind = dtypes.common(x.dtype, arguments[0].dtype)
    words = "Can't convert result type {} to output {} in add operation"
    require(kind.category <= x.dtype.category, DtypeError, words, kind.legacy, x.dtype.legacy)
    add_to(x, arguments[0], -metadata.get("alpha", 1) if name == "sub" else metadata.get("alpha", 1))
    return True


def copy(x: Tensor, source: Tensor) -> None:
    """Give a sparse tensor the elements of another one of its shape."""
    words = "copy_() between dense and sparse Tensors is not implemented! Found self type = {} and src type = {}"
    require(is_sparse(x) and is_sparse(source), DtypeError, words, x.type(), source.type())
    require(x.shape == source.shape, ShapeError, "copy_(): sizes {} and {} differ", list(x.shape), list(source.shape))
    write(x, source.to(x.device, x.dtype))


def without_values(x: Tensor) -> Tensor:
    """A sparse tensor of zeros like another one."""
    data = x._data
    return wrap(Sparse(data.indices[:, :0], data.array[:0], data.shape, True))


def rows_of(array: Array, rows: Sequence[int]) -> Any:
    """Rows of an array."""
    return wrap(array)[list(rows)]._data


Sparse.rules = sys.modules[__name__]
