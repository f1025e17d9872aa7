"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from ... import functional
from ...errors import ArgumentError, ShapeError, require
from ...tensors import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _on_one_device(parameters: Iterable[Tensor]) -> list[Tensor]:
    listed = list(parameters)
    others = [parameter for parameter in listed if parameter.device != listed[0].device]
    if others:
        raise ArgumentError(
            "Found two parameters on different devices, this is currently not supported.",
            f"one is on {listed[0].device}, another on {others[0].device}",
            remedy="move the module to one device first",
        )
    return listed


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Flatten all parameters into one vector; gradients flow back to the parameters.

    >>> import tritensor as torch
    >>> torch.nn.utils.parameters_to_vector([torch.ones(2, 2), torch.zeros(1)])
    tensor([1., 1., 1., 1., 0.])

    Raises:
        ArgumentError: the parameters are on several devices.
    """
    return functional.cat([parameter.reshape(-1) for parameter in _on_one_device(parameters)])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Make parameters views of a vector's elements, in the order of `parameters_to_vector`; they then share its memory.

    Raises:
        ArgumentError: `vec` is no tensor, or the parameters are on several devices.
        ShapeError: the vector is too short. No parameter is changed then.
    """
    require(isinstance(vec, Tensor), ArgumentError, "expected torch.Tensor, but got: {}", type(vec).__name__)
    listed = _on_one_device(parameters)
    needed = sum(parameter.numel() for parameter in listed)
    if vec.ndim != 1 or vec.numel() < needed:
        raise ShapeError(
            f"shape '[{needed}]' is invalid for input of size {vec.numel()}",
            f"the parameters have {needed} elements, the vector has the shape {tuple(vec.shape)}",
        )
    start = 0
    for parameter in listed:
        parameter.data = vec[start : start + parameter.numel()].view(parameter.shape).data
        start += parameter.numel()
