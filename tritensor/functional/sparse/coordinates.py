"""The parts of sparse tensors, conversions from dense tensors and to them, and sparse gradients.

What is computed of a sparse tensor is computed of its values, by ordinary operators: `parts` gives them a node whose
gradient is a sparse tensor, and `made` gives the sparse result one whose gradient is that of its values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...autograd.levels import crossed
from ...autograd.mode import no_grad, recording
from ...errors import DtypeError, ShapeError, UnsupportedError, require
from ...ground.composing import shown_as
from ...ground.public import method
from ...memory.sparse import Sparse
from ...operators import registry
from ...tensors import Tensor, wrap
from ...types import Dtype, dtypes
from ..indexing.bins import searchsorted
from ..indexing.search import unique
from ..views.joining import stack
from ..views.rearranging import unravel_index


def is_sparse(x: object) -> bool:
    """True for a sparse tensor."""
    return isinstance(x, Tensor) and x._data.__class__ is Sparse


def parts(x: Tensor, coalesce: bool = False) -> tuple[Tensor, Tensor]:
    """The coordinates and the values, which gradients pass through; coalesced if asked for, or recorded."""
    data = coalesced(x._data) if coalesce or (x._needs and recording.enabled) else x._data
    indices = wrap(data.indices)
    return indices, crossed(data.array, (x, lambda own: made(indices, own, data.shape, True)), name="ValuesBackward0")


def made(
    indices: Tensor,
    values: Tensor,
    shape: Sequence[int],
    coalesced: bool = False,
    name: str = "SparseCooTensorWithDimsAndTensorsBackward0",
) -> Tensor:
    """A sparse tensor over coordinates and values, which gradients pass through."""
    data = Sparse(indices._data, values._data, tuple(shape), coalesced)
    return crossed(data, (values, lambda own: values_at(own, indices)), name=name)


def coalesced(data: Sparse) -> Sparse:
    """The data with the coordinates sorted and the values of equal ones added up, in their order."""
    if data.coalesced:
        return data
    with no_grad():
        values, sizes = wrap(data.array), data.shape[: data.dims]
        keys, inverse = unique(_keys(wrap(data.indices), sizes), return_inverse=True)
        values = values.to(dtypes.uint8) if data.dtype.kind == "b" else values
        total = values.new_zeros((len(keys), *values.shape[1:])).index_add_(0, inverse, values)
        total = total.to(dtypes.of(data.dtype))
        return Sparse(stack(unravel_index(keys, sizes))._data, total._data, data.shape, True)


def _keys(indices: Tensor, sizes: Sequence[int]) -> Tensor:
    """A number for each coordinate, in their order."""
    keys, *rows = indices.unbind(0)
    for row, size in zip(rows, sizes[1:], strict=True):
        keys = keys * size + row
    return keys


def values_at(x: Tensor, indices: Tensor) -> Tensor:
    """The values of a tensor, dense or sparse, at coordinates."""
    if not is_sparse(x):
        return x[tuple(indices.unbind(0))]
    known, values = parts(x, True)
    if known._data is indices._data:
        return values
    if not len(values):
        return values.new_zeros((indices.shape[1], *values.shape[1:]))
    keys, wanted = (_keys(each, x.shape[: len(known)]) for each in (known, indices))
    where = searchsorted(keys, wanted).clamp_max(len(keys) - 1)
    found = (keys[where] == wanted).reshape(-1, *[1] * (values.ndim - 1))
    return registry["where"](found, values[where], 0)


def add_to(x: Tensor, other: Tensor, alpha: complex = 1) -> Tensor:
    """Add a sparse tensor, times `alpha`, to a dense one in place, in time that does not depend on the size of `x`."""
    words = "add: expected 'self' and 'other' to have same size, but self has size {} while other has size {} (FYI: "
    words += "dense-sparse addition does not currently support broadcasting)"
    require(x.shape == other.shape, ShapeError, words, list(x.shape), list(other.shape))
    indices, values = parts(other, True)
    places = tuple(indices.unbind(0))
    return x.index_put_(places, (x[places] + (values if alpha == 1 else values * alpha)).to(x.dtype))


def sparse_rows(table: Tensor, indices: Tensor, padding: int | None, by_frequency: bool) -> Tensor:
    """The rows of a matrix at indices, which have been checked; its gradient is sparse.

    Args:
        padding: a row that gets no gradient.
        by_frequency: whether a gradient was to be divided by how often its row was looked up, which it cannot be.
    """
    where = indices.reshape(-1).long().clone()
    with no_grad():
        found = table.index_select(0, where).reshape(*indices.shape, table.shape[1])

    def gradient(grad: Tensor) -> Tensor:
        words = "embedding_backward: scale_grad_by_freq not supported with sparse gradients"
        require(not by_frequency, UnsupportedError, words)
        kept = slice(None) if padding is None else where != padding
        return made(where[kept].unsqueeze(0), grad.reshape(-1, table.shape[1])[kept], table.shape)

    return crossed(found._data, (table, gradient), name="EmbeddingBackward0")


# ---- methods ------------------------------------------------------------------------------------------------------


def _part(name: str, read: Callable[[Tensor], Any], documentation: str, kind: str = "sparse coordinate") -> Any:
    """Declare a method of sparse tensors; without an underscore, of coalesced ones."""

    def call(self: Tensor) -> Any:
        if not is_sparse(self) and name.startswith("_"):
            words = f"Could not run '{name}' with arguments from the '{self.device.type.upper()}' backend."
            raise UnsupportedError(words, remedy="convert the tensor with .to_sparse()")
        require(is_sparse(self), DtypeError, "{} expected {} tensor layout but got Strided", name, kind)
        if name in ("indices", "values"):
            words = "Cannot get {} on an uncoalesced tensor, please call .coalesce() first"
            require(self._data.coalesced, DtypeError, words, name)
        return read(self)

    return method()(shown_as(call, name, documentation))


_indices = _part("_indices", lambda x: wrap(x._data.indices), "The coordinates of the values, in any order.")
_part("_values", lambda x: wrap(x._data.array), "The values in the order of `_indices()`, without history.")
_part("_nnz", lambda x: int(x._data.indices.shape[1]), "The number of values that are stored.")
_part("indices", lambda x: wrap(x._data.indices), "The coordinates (indices) of a coalesced sparse tensor.")
_part("values", lambda x: parts(x)[1], "The values of a coalesced sparse tensor; gradients pass through.", "sparse")
_part("is_coalesced", lambda x: x._data.coalesced, "True if the coordinates are known to be sorted, each there once.")
_part(
    "coalesce",
    lambda x: x if x._data.coalesced else crossed(coalesced(x._data), (x, lambda own: own), name="CoalesceBackward0"),
    """Coalesces a sparse tensor: sorts coordinates and adds the values of equal ones; itself if it is coalesced.

    >>> import tritensor as torch
    >>> torch.sparse_coo_tensor([[2, 0, 2]], [1.0, 2.0, 3.0], (3,)).coalesce().values()
    tensor([2., 4.])
    """,
)


@method()
def sparse_dim(self: Tensor) -> int:
    """The number of sparse dimensions, 0 for a dense tensor."""
    return self._data.dims if is_sparse(self) else 0


@method()
def dense_dim(self: Tensor) -> int:
    """The number of dense dimensions."""
    return self.ndim - sparse_dim(self)


@method()
def to_dense(self: Tensor, dtype: Dtype = None, *, masked_grad: bool | None = None) -> Tensor:
    """Converts a sparse tensor to a dense one; itself if it is dense."""
    if is_sparse(self):
        indices, values = parts(self, True)
        self = values.new_zeros(self.shape).index_put(tuple(indices.unbind(0)), values)
    return self if dtype is None else self.to(dtype)


@method("to_sparse", "to_sparse_coo")
def to_sparse(self: Tensor, sparse_dim: int | None = None) -> Tensor:
    """Converts a dense tensor to a sparse one (COO), coalesced; itself if it is sparse.

    Args:
        sparse_dim: the number of sparse dimensions, all unless given; the others are dense.

    Raises:
        ShapeError: fewer sparse dimensions than 1, or more than there are.
    """
    if is_sparse(self):
        return self
    dims = self.ndim if sparse_dim is None else sparse_dim
    words = "dense_to_sparse: sparse_dim argument must be in [1,{}] range, but {} is given"
    require(0 < dims <= self.ndim, ShapeError, words, self.ndim, dims)
    kept = self.detach() != 0
    rows = (kept if dims == self.ndim else kept.flatten(dims).any(-1)).nonzero().unbind(1)
    return made(stack(rows), self[rows], self.shape, True, "ToSparseBackward0")


@method()
def sparse_mask(self: Tensor, mask: Tensor) -> Tensor:
    """A sparse tensor of the elements at the coordinates of another sparse tensor of this shape."""
    where = _indices(mask)
    words = "sparse_mask(): operands have incompatible sizes; self has size {} but mask has size {}"
    require(self.shape == mask.shape, ShapeError, words, list(self.shape), list(mask.shape))
    return made(where, values_at(self, where), self.shape, mask.is_coalesced(), "SparseMaskBackward0")
