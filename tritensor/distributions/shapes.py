"""Shapes of parameters and events: one shape for several, sums over events, triangles of matrices as vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from ..errors import require
from ..functional.creation.creation import tensor
from ..functional.creation.ranges import arange
from ..functional.views.views import broadcast_tensors
from ..operators.rules import Number
from ..random import randn
from ..tensors import Tensor
from ..types.dtypes import dtype as Dtype

__all__ = ["broadcast_all", "tril_matrix_to_vec", "vec_to_tril_matrix"]


def broadcast_all(*values: Any) -> Any:
    """Tensors of one shape, of numbers and tensors.

    Raises:
        ValueError: a value that is neither.
    """
    if not all(isinstance(value, (Tensor, *Number)) or hasattr(value, "__torch_function__") for value in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    given = [value for value in values if isinstance(value, Tensor)]
    like: dict[str, Any] = {"dtype": given[0].dtype, "device": given[0].device} if given else {}
    made = [tensor(float(cast(float, value)), **like) if isinstance(value, Number) else value for value in values]
    return broadcast_tensors(*made)


def like(made: Callable[..., Tensor], shape: Any, of: Tensor) -> Tensor:
    """What a function makes of a shape, with a tensor's dtype and device."""
    return made(shape, dtype=of.dtype, device=of.device)


def sum_rightmost(x: Tensor, count: int) -> Tensor:
    """The sum over the last dimensions."""
    return x.sum(tuple(range(-count, 0))) if count else x


def _triangle(n: int, diag: int, like: Tensor) -> Tensor:
    places = arange(n, device=like.device)
    return places < places.unsqueeze(-1) + (diag + 1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of the lower triangles of matrices, row by row.

    Raises:
        ValueError: `diag` is no diagonal of the matrices.
    """
    n = mat.shape[-1]
    require(-n <= diag < n, ValueError, "diag ({}) provided is outside [{}, {}].", diag, -n, n - 1)
    return mat[..., _triangle(n, diag, mat)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The matrices of which `tril_matrix_to_vec` gives these vectors.

    Raises:
        ValueError: no triangle has as many elements.
    """
    count = vec.shape[-1]
    root = ((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5
    n = round((root - 1 - 2 * diag) / 2)
    if abs(2 * n + 1 + 2 * diag - root) > 1e-6:
        words = "which cannot be expressed as the lower triangular part of a square D x D matrix."
        raise ValueError(f"The size of last dimension is {count} {words}")
    found = vec.new_zeros((*vec.shape[:-1], n, n))
    found[..., _triangle(n, diag, vec)] = vec
    return found


def _standard_normal(shape: Sequence[int], dtype: Dtype, device: object) -> Tensor:
    return randn(tuple(shape), dtype=dtype, device=device)


_sum_rightmost = sum_rightmost
