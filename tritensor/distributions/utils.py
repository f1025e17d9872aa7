"""Tools of distributions: parameters of one shape, probabilities and logits, properties that are computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, cast

from ..autograd.mode import enable_grad, recording
from ..autograd.precision import state
from ..errors import require
from ..functional.creation.creation import tensor
from ..functional.creation.ranges import arange
from ..functional.views.views import broadcast_tensors
from ..operators.rules import Number
from ..random import randn
from ..tensors import Tensor
from ..types.dtypes import dtype as Dtype
from ..types.dtypes import finfo

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits"]
__all__ += ["tril_matrix_to_vec", "vec_to_tril_matrix"]
Formula = Callable[..., Tensor]  # a method that is one expression
euler_constant = 0.57721566490153286


class lazy_property(cached_property[Any]):
    """A property that is computed when it is first read, always with recording on, and then is a plain attribute.

    `sample` reads it without recording, and gradients flow through it later. In inference mode and under autocast it is
    computed anew, because outside of them that value would have no graph, or another dtype.
    """

    def __get__(self, instance: object, owner: object = None) -> Any:
        if instance is None:
            return self
        if recording.inference or state.types:
            return self.func(instance)
        with enable_grad():
            value = self.func(instance)
        setattr(instance, str(self.attrname), value)
        return value


def tiny(x: Tensor) -> float:
    """The step from 1 of a tensor's dtype; probabilities and uniform numbers are kept that far from 0 and 1."""
    return float(finfo(x.dtype).eps)


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


@property  # type: ignore[misc]
def missing(self: object) -> Formula:
    """What is left to subclasses."""
    raise NotImplementedError


def like(made: Callable[..., Tensor], shape: Any, of: Tensor) -> Tensor:
    """What a function makes of a shape, with a tensor's dtype and device."""
    return made(shape, dtype=of.dtype, device=of.device)


def sum_rightmost(x: Tensor, count: int) -> Tensor:
    """The sum over the last dimensions."""
    return x.sum(tuple(range(-count, 0))) if count else x


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities that are neither 0 nor 1: the step from 1 of their dtype away from them at least."""
    return probs.clamp(tiny(probs), 1 - tiny(probs))


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """The probabilities of log-odds, or of logarithms of probabilities along the last dimension."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The log-odds, or the logarithms, of probabilities, which are kept from 0 and 1."""
    kept = clamp_probs(probs)
    return kept.log() - (-kept).log1p() if is_binary else kept.log()


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
