"""Clipping gradients by their common norm or by value. Nothing here makes the host wait for a device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import functional
from ...autograd.mode import no_grad
from ...errors import DtypeError
from ...functional.creation import creation
from ...kernels.optimizer.clipping import ORDERS, Gathered, gather
from ...runtime.choice import allowed
from ...tensors import Tensor
from ..init import deprecated

if TYPE_CHECKING:
    from ...kernels.optimizer.natively import Listed

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

Tensors = Tensor | Iterable[Tensor]


def _listed(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _gradients(parameters: Tensors) -> list[Tensor]:
    return [parameter.grad for parameter in _listed(parameters) if parameter.grad is not None]


def _together(tensors: list[Tensor]) -> Sequence[Gathered | Listed] | None:
    """Tensors that are computed together; None where each is by itself."""
    if any(hasattr(tensor, "_local_tensor") for tensor in tensors):
        return None
    if len(tensors) > 1 and {type(tensor._data) for tensor in tensors} == {np.ndarray} and allowed("clip_grad_norm_"):
        from ...kernels.optimizer.natively import listed

        return listed(tensors)
    return gather(tensors)


@no_grad()
def get_total_norm(
    tensors: Tensors, norm_type: float | str = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all elements of all tensors, as if they were one vector; on the first tensor's device.

    >>> import tritensor as torch
    >>> torch.nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0, 0.0])])
    tensor(5.)

    Args:
        norm_type: the order of the norm; infinity for the largest |x|.
        error_if_nonfinite: raise if the norm is infinite or NaN. For that the host waits for the device.
        foreach: PyTorch's choice between two implementations. Here tensors on a device are always computed together.

    Raises:
        DtypeError: the norm is not finite, and `error_if_nonfinite` is set.
    """
    listed = _listed(tensors)
    return _total(listed, _together(listed), float(norm_type), error_if_nonfinite)


def _total(
    listed: list[Tensor], together: Sequence[Gathered | Listed] | None, order: float, error_if_nonfinite: bool
) -> Tensor:
    if not listed:
        return creation.tensor(0.0)
    if any(hasattr(each, "_local_tensor") for each in listed):
        from ...distributed.tensor.rules import norm_of_parts

        return norm_of_parts(listed, order, lambda parts: _total(parts, _together(parts), order, error_if_nonfinite))
    if together is None or order not in ORDERS:
        norms = [tensor.norm(order) for tensor in listed]
    else:
        norms = [part.norm(order) for part in together]
    total = norms[0]
    if len(norms) > 1:
        total = functional.stack([norm.to(listed[0].device) for norm in norms]).norm(order)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise DtypeError(
            f"The total norm of order {order} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`",
            f"the norm is {total.item()}",
        )
    return total


@no_grad()
def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients in place by `max_norm / (total_norm + 1e-6)` where that is less than 1.

    Args:
        total_norm: the norm of all of them, from `get_total_norm`.
        foreach: PyTorch's choice between two implementations; there is one here.
    """
    _scale(_gradients(parameters), max_norm, total_norm)


def _scale(
    gradients: list[Tensor],
    max_norm: float,
    total_norm: Tensor,
    together: Sequence[Gathered | Listed] | None = None,
) -> None:
    if hasattr(total_norm, "_local_tensor") or any(hasattr(each, "_local_tensor") for each in gradients):
        gradients = [getattr(each, "_local_tensor", each) for each in gradients]
        total_norm = total_norm.full_tensor() if hasattr(total_norm, "full_tensor") else total_norm
        together = None
    together = together or _together(gradients)
    scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    scales = {scale.device: scale}
    for part in gradients if together is None else together:
        here = scales.get(part.device)
        if here is None:
            here = scales[part.device] = scale.to(part.device)
        if isinstance(part, Tensor):
            part.mul_(here.to(part.dtype))
        else:
            part.scale(here.to(part.compute))


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float | str = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Clip the norm of gradients: scale them in place so that their norm, as of one vector, is at most `max_norm`.

    >>> import tritensor as torch
    >>> p = torch.nn.Parameter(torch.zeros(2))
    >>> p.grad = torch.tensor([3.0, 4.0])
    >>> torch.nn.utils.clip_grad_norm_([p], max_norm=1.0), p.grad
    (tensor(5.), tensor([0.6000, 0.8000]))

    Args:
        parameters: a tensor or several, on any devices; those without a gradient are left out.
        norm_type, error_if_nonfinite, foreach: see `get_total_norm`.

    Returns:
        The norm before, a tensor of one element on the first gradient's device. Nothing waits for it.

    Raises:
        DtypeError: the norm is not finite, and `error_if_nonfinite` is set; no gradient is changed then.
    """
    gradients = _gradients(parameters)
    together = _together(gradients)
    with no_grad():
        total = _total(gradients, together, float(norm_type), error_if_nonfinite)
        _scale(gradients, max_norm, total, together)
    return total


clip_grad_norm = deprecated(clip_grad_norm_, "torch.nn.utils")


@no_grad()
def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clip every element of the gradients in place to the range from -clip_value to clip_value.

    Args:
        parameters: a tensor or several; those without a gradient are left out.
        foreach: PyTorch's choice between two implementations; there is one here.
    """
    limit: Any = float(clip_value)
    for gradient in _gradients(parameters):
        gradient.clamp_(min=-limit, max=limit)
