"""What factorisations and solvers share: checks of matrices in PyTorch's words, and their adjoints and diagonals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import DtypeError, LinAlgError, ShapeError, UnsupportedError, explain
from ..functional.ranges import eye
from ..rules import Rule, is_half
from ..tensor import Tensor

__all__ = ["Matrices", "adjoint", "check_info", "check_matrices", "on_diagonal", "unit_lower"]

_REMEDY = "convert the tensor first, as in x.float()"


class Matrices(Rule):
    """Floating and complex matrices of single or double precision, all of one dtype.

    Args:
        kernel: PyTorch's name of its kernel, for the message about other dtypes.
        words: PyTorch's message for integers, where that is another one; {} is the dtype's legacy name.
    """

    def __init__(self, kernel: str, words: str = "") -> None:
        super().__init__("matrices", dtypes.FLOATING, promote=False)
        self.kernel, self.words = kernel, words

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """As for any rule, with PyTorch's words."""
        kind = operands[0].dtype
        if self.words and kind.category < dtypes.FLOATING:
            raise DtypeError(explain(self.words.format(kind.legacy), remedy=_REMEDY))
        if kind.category < dtypes.FLOATING or is_half(kind):
            raise UnsupportedError(
                explain(
                    f"\"{self.kernel}\" not implemented for '{kind.legacy}'", f"{operator} got {kind}", remedy=_REMEDY
                )
            )
        return super().__call__(operator, operands)


def check_matrices(name: str, x: Tensor, square: bool = True, argument: str = "A") -> None:
    """Raise unless a tensor is a stack of (square) matrices.

    Raises:
        ShapeError: it has one dimension, or its matrices are not square.
    """
    if x.ndim < 2:
        raise ShapeError(
            explain(
                f"{name}: The input tensor {argument} must have at least 2 dimensions.",
                f"its shape is {tuple(x.shape)}",
            )
        )
    rows, columns = x.shape[-2:]
    if square and rows != columns:
        raise ShapeError(
            f"{name}: {argument} must be batches of square matrices, but they are {rows} by {columns} matrices"
        )


def check_info(name: str, info: Tensor, words: str) -> None:
    """Raise for the first matrix whose factorisation failed; waits for a device.

    Args:
        words: PyTorch's message, {} being what LAPACK told.

    Raises:
        LinAlgError: an element of `info` is not zero.
    """
    found = info._to_host()
    if not found.any():
        return
    (place,) = np.flatnonzero(found)[:1]
    where = f"(Batch element {place}): " if found.ndim else ""
    raise LinAlgError(f"{name}: {where}{words.format(found.flat[place])}")


def failing(
    name: str, of: Callable[..., Any], a: np.ndarray, words: Callable[[np.ndarray], str], **options: Any
) -> Any:
    """NumPy's factorisation of a stack, with PyTorch's message if it fails.

    Raises:
        LinAlgError: of the first matrix that cannot be factorised, `words` of it.
    """
    try:
        return of(a, **options)
    except np.linalg.LinAlgError:
        stack = a.reshape(-1, *a.shape[-2:])
        for place, matrix in enumerate(stack):
            try:
                of(matrix, **options)
            except np.linalg.LinAlgError:
                where = f"(Batch element {place}): " if a.ndim > 2 else ""
                raise LinAlgError(f"{name}: {where}{words(matrix)}") from None
        raise


def adjoint(x: Tensor) -> Tensor:
    """Matrices transposed and conjugated."""
    return x.mT.conj() if x.is_complex() else x.mT


def on_diagonal(x: Tensor) -> Tensor:
    """Diagonal matrices of vectors."""
    return x.unsqueeze(-1) * eye(x.shape[-1], dtype=x.dtype, device=x.device)


def unit_lower(x: Tensor) -> Tensor:
    """What is below the diagonal, and ones on it."""
    return x.tril(-1) + eye(*x.shape[-2:], dtype=x.dtype, device=x.device)
