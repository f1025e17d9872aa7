"""The data of a sparse tensor: coordinates and values of the elements that are not zero (PyTorch's COO layout).

Whatever takes a plain array refuses it, like the arrays of `lifted`: operators hand their calls over to the rules in
`tritensor.functional.sparse`, views come to `viewed`, and what reads elements on the host to `refuse`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import DtypeError, ShapeError, UnsupportedError
from ..ground.public import PACKAGE
from .array import DeviceArray
from .lifted import Level, Lifted

Array = np.ndarray | DeviceArray
_level = Level(0)  # of no transformation


class Sparse(Lifted):
    """Coordinates of int64, (sparse dimensions, elements), and values, (elements, *dense dimensions); `array` has them.

    Attributes:
        coalesced: whether the coordinates are known to be sorted, each of them there once.
        used: whether there ever was one in this process; what comes often looks at that first.
        rules: the module `tritensor.functional.sparse.rules`.
    """

    __slots__ = ("coalesced", "indices")
    used = False
    rules: Any = None
    strides = property(lambda self: (1,) * self.ndim)  # there are none: no element shares memory with another

    def __init__(self, indices: Array, values: Array, shape: tuple[int, ...], coalesced: bool = False) -> None:
        super().__init__(values, _level, shape)
        self.indices, self.coalesced = indices, coalesced
        if not Sparse.used:
            PACKAGE["sparse_coo_tensor"]  # which is declared beside the rules
            Sparse.used = True

    def __reduce__(self) -> tuple[Any, ...]:
        return Sparse, (self.indices, self.array, self.shape, self.coalesced)

    @property
    def dims(self) -> int:
        """The number of sparse dimensions."""
        return int(self.indices.shape[0])

    def mapped(self, function: Callable[[Any], Any]) -> Sparse:
        """The same coordinates with other values."""
        return Sparse(self.indices, function(self.array), self.shape, self.coalesced)

    def viewed(self, view: Any, arguments: tuple[Any, ...]) -> Sparse:
        """Sparse dimensions in another order; other views are refused."""
        order = arguments[0] if view.kind == "permute" else ()
        if not order:
            raise self.refusal(view.name)
        if order[self.dims :] != tuple(range(self.dims, self.ndim)):
            words = f"sparse transpose: transposed dimensions must be sparse Got sparse_dim: {self.dims}"
            raise ShapeError(words, f"the dimensions were to be in the order {order}")
        rows = Sparse.rules.rows_of(self.indices, order[: self.dims])
        return Sparse(rows, self.array, tuple([self.shape[dim] for dim in order]))

    def refusal(self, name: str) -> UnsupportedError:
        """The error for an operator that has no rule for sparse tensors, in PyTorch's words."""
        words = f"Could not run '{name}' with arguments from the 'Sparse{str(self.device.type).upper()}' backend."
        return UnsupportedError(words, "one of its tensors is sparse", remedy="convert it with .to_dense()")

    def refuse(self) -> Any:
        """Raise for a function that reads elements on the host, in PyTorch's words."""
        name = Sparse.rules.running()
        if name == "indexing":  # none is known
            raise DtypeError("Cannot access data pointer of Tensor that doesn't have storage", "the tensor is sparse")
        raise self.refusal(name)

    host = refuse
