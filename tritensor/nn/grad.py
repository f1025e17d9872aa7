"""Gradients of convolutions with respect to their input and weight, as functions: `torch.nn.grad`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..functional.window.convolution import numbers
from ..kernels.window.convolution import convolution_transposed, convolution_weight
from ..tensors import Tensor

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]

Size = int | Sequence[int]


def _of_input(rank: int) -> Callable[..., Tensor]:
    def gradient(
        input_size: Sequence[int],
        weight: Tensor,
        grad_output: Tensor,
        stride: Size = 1,
        padding: Size = 0,
        dilation: Size = 1,
        groups: int = 1,
    ) -> Tensor:
        given = {"stride": stride, "padding": padding, "dilation": dilation}
        geometry = {name: numbers(f"conv{rank}d_input", name, value, rank) for name, value in given.items()}
        size = tuple(input_size[-rank:])
        found: Tensor = convolution_transposed(grad_output, weight, None, **geometry, groups=groups, size=size)
        return found

    return _named(gradient, rank, "input", "input_size: the shape of the input. weight: the kernels.")


def _of_weight(rank: int) -> Callable[..., Tensor]:
    def gradient(
        input: Tensor,
        weight_size: Sequence[int],
        grad_output: Tensor,
        stride: Size = 1,
        padding: Size = 0,
        dilation: Size = 1,
        groups: int = 1,
    ) -> Tensor:
        given = {"stride": stride, "padding": padding, "dilation": dilation}
        geometry = {name: numbers(f"conv{rank}d_weight", name, value, rank) for name, value in given.items()}
        size = tuple(weight_size[-rank:])
        found: Tensor = convolution_weight(input, grad_output, **geometry, groups=groups, size=size)
        return found

    return _named(gradient, rank, "weight", "input: what the kernels lay on. weight_size: the shape of the kernels.")


def _named(gradient: Callable[..., Tensor], rank: int, what: str, first: str) -> Callable[..., Tensor]:
    gradient.__name__ = gradient.__qualname__ = f"conv{rank}d_{what}"
    gradient.__doc__ = f"""The gradient of `conv{rank}d` with respect to its {what}.

    Args:
        {first} grad_output: the gradient of the result.
        stride, padding, dilation, groups: those of the convolution.
    """
    return gradient


conv1d_input, conv2d_input, conv3d_input = map(_of_input, (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = map(_of_weight, (1, 2, 3))
