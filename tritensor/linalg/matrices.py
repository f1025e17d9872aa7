"""Helpers of factorisations and solvers: checks of matrices in PyTorch's words, and their adjoints and diagonals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..autograd.levels import below
from ..errors import DtypeError, LinAlgError, ShapeError, UnsupportedError, require
from ..functional.creation.ranges import eye
from ..memory.lifted import Lifted
from ..operators.rules import Rule, is_half
from ..tensors import Tensor
from ..types import dtypes

__all__ = ["Matrices", "adjoint", "check_info", "check_matrices", "failing", "identity", "on_diagonal"]
__all__ += ["unit_lower"]

_REMEDY = "convert the tensor first, as in x.float()"


class Matrices(Rule):
    """Floating and complex matrices of single or double precision, all of one dtype.

    Args:
        kernel: PyTorch's name of its kernel, for the message about other dtypes.
        words: PyTorch's message for integers, where that is another one; {} is the dtype's legacy name.
    """

    halves = False

    def __init__(self, kernel: str, words: str = "") -> None:
        super().__init__("matrices", dtypes.FLOATING, promote=False)
        self.kernel, self.words = kernel, words

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """See the base class, with PyTorch's words."""
        kind = operands[0].dtype
        if self.words and kind.category < dtypes.FLOATING:
            raise DtypeError(self.words.format(kind.legacy), remedy=_REMEDY)
        if kind.category < dtypes.FLOATING or is_half(kind):
            raise UnsupportedError(
                f"\"{self.kernel}\" not implemented for '{kind.legacy}'", f"{operator} got {kind}", remedy=_REMEDY
            )
        return super().__call__(operator, operands)


def check_matrices(name: str, x: Tensor, square: bool = True, argument: str = "A") -> None:
    """Raise ShapeError unless a tensor is a stack of (square) matrices."""
    require(x.ndim > 1, ShapeError, "{}: The input tensor {} must have at least 2 dimensions.", name, argument)
    rows, columns = x.shape[-2:]
    words = "{}: {} must be batches of square matrices, but they are {} by {} matrices"
    require(not square or rows == columns, ShapeError, words, name, argument, rows, columns)


def check_info(name: str, info: Tensor, words: str) -> None:
    """Raise LinAlgError for the first matrix that LAPACK tells something of, `words` with that for {}; a device is
    waited for, and nothing is known of meta tensors."""
    while isinstance(info._data, Lifted) and info._data.level is not None:
        info = below(info)
    found = np.zeros(()) if info.is_meta else info._to_host()
    for place in np.flatnonzero(found)[:1]:
        where = f"(Batch element {place}): " if found.ndim else ""
        raise LinAlgError(f"{name}: {where}{words.format(found.flat[place])}")


def failing(name: str, values: str, of: Callable[..., Any], a: np.ndarray, **options: Any) -> Any:
    """NumPy's factorisation of a stack; raises LinAlgError in PyTorch's words for the first matrix that has none."""
    try:
        return of(a, **options)
    except np.linalg.LinAlgError:
        finite = np.isfinite(a).all((-2, -1)).reshape(-1)
    where = f"(Batch element {finite.argmin()}): " if a.ndim > 2 else ""
    words = f"is ill-conditioned or has too many repeated {values}" if finite.all() else "contained non-finite values."
    raise LinAlgError(f"{name}: {where}The algorithm failed to converge because the input matrix {words}")


def adjoint(x: Tensor) -> Tensor:
    """Matrices transposed and conjugated."""
    return x.mT.conj() if x.is_complex() else x.mT


def on_diagonal(x: Tensor) -> Tensor:
    """Diagonal matrices of vectors."""
    return x.unsqueeze(-1) * identity(x, x.shape[-1])


def unit_lower(x: Tensor) -> Tensor:
    """The elements below the diagonal, and ones on it."""
    return x.tril(-1) + identity(x, *x.shape[-2:])


def identity(like: Tensor, *sizes: int) -> Tensor:
    """Ones on the diagonal, of a tensor's dtype and on its device."""
    return eye(*sizes, dtype=like.dtype, device=like.device)
