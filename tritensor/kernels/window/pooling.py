"""Pooling in any number of dimensions: the largest element and the average of each window, and their gradients.

Inputs are (N, C, *dimensions) or (C, *dimensions). The windows are given by `size`, how many there are along each
dimension, `kernel`, `stride`, `padding` and `dilation`; without a kernel they are adaptive (`pooling_host.Windows`).
The gradient of an average is linear, and its own gradient is the average; that of a maximum moves each element to its
place, and its own reads the places.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from ... import dtypes, formats
from ...memory.array import DeviceArray
from ...operator import Operator, Shapes
from ...rules import FLOATING, Rule
from ...runtime.call import Call
from ...tensor import Tensor
from ..indexing.family import gather
from .pooling_host import average, is_channels_last, largest, spread_average, spread_largest, windows_of
from .pooling_kernel import launch_pool, launch_spread

__all__ = ["at_places", "avg_pool", "avg_pool_backward", "max_pool", "max_pool_backward", "max_pool_with_indices"]

REAL_NUMBERS = Rule("real numbers", dtypes.INTEGER, dtypes.FLOATING)


class Pooling(Operator):
    """An operator on windows; `mode` is "largest" or "average"."""

    family = "pooling"
    repeatable = True
    mode = "largest"

    def named(self, names: tuple[str, ...], values: Any) -> dict[str, Any]:
        """The metadata that the operator has, of those with these names."""
        return {name: value for name, value in zip(names, values) if name in self.metadata}


class Pool(Pooling):
    """An operator whose results have a number for each window."""

    def allocate(self, call: Call) -> Shapes:
        """A number for each window; channels innermost where the input has them so, as in PyTorch."""
        size, x = call.metadata["size"], call.arrays[0]
        shape = x.shape[: x.ndim - len(size)] + size
        return [(shape, kind.numpy, *_strides(x, shape, self.keeps(call.metadata))) for kind in call.results]

    def keeps(self, metadata: dict[str, Any]) -> bool:
        """Whether the results are laid out as the input is: PyTorch has no such kernels for the others."""
        return len(metadata["size"]) == 2 or (self.mode == "largest" and bool(metadata["kernel"]))

    def launch(self, call: Call) -> None:
        """A program for a block of windows."""
        launch_pool(call, self.mode)

    def calls(self, draw: Any) -> Iterator[tuple[Any, ...]]:
        """In one to three dimensions: windows that overlap, that leave elements out, padded, dilated, adaptive."""
        for shape, *windows in _CALLS:
            yield [draw(shape)], self.named(_NAMES, windows)


class Spread(Pooling):
    """The gradient of a pool's input from that of its windows: each element gathers from the windows it is in."""

    def allocate(self, call: Call) -> Shapes:
        """The input's shape, laid out as the windows' gradient is."""
        extents, grad = call.metadata["extents"], call.arrays[0]
        shape = grad.shape[: grad.ndim - len(extents)] + extents
        return [(shape, call.results[0].numpy, *_strides(grad, shape, True))]

    def launch(self, call: Call) -> None:
        """A program for a block of elements."""
        launch_spread(call, self.mode)

    def calls(self, draw: Any) -> Iterator[tuple[Any, ...]]:
        """The gradients of `Pool.calls`."""
        for shape, size, *windows in _CALLS:
            extents, lead = shape[-len(size) :], shape[: len(shape) - len(size)]
            inputs = [draw(lead + size)]
            if len(self.inputs) > 1:
                inputs.append(_max_pool_with_indices(draw(shape), size=size, **dict(zip(_NAMES[1:], windows)))[1])
            yield inputs, {"extents": extents, **self.named(_NAMES[1:], windows)}


_NAMES = ("size", "kernel", "stride", "padding", "dilation")
_CALLS: tuple[Any, ...] = (
    ((2, 3, 5, 6), (3, 3), (3, 2), (2, 2), (1, 0), (1, 1)),
    ((1, 2, 7, 5), (4, 2), (2, 2), (2, 3), (1, 1), (1, 1)),  # ceil_mode; elements between windows
    ((2, 9), (3,), (3,), (3,), (0,), (1,)),
    ((1, 2, 3, 4, 5), (2, 3, 5), (2, 2, 3), (1, 1, 1), (0, 0, 1), (1, 1, 1)),
    ((3, 7, 5), (3, 2), (), (), (), ()),
    ((1, 2, 3), (5,), (), (), (), ()),
    ((2, 4, 6), (2, 3), (), (), (), ()),
    ((0, 2, 4), (2,), (2,), (2,), (0,), (1,)),
)


def _strides(x: DeviceArray, shape: tuple[int, ...], keeps: bool) -> tuple[Any, ...]:
    """The strides of a result where the channels of `x` are innermost."""
    if not keeps or not is_channels_last(x.shape, x.strides):
        return ()
    return (formats.strides_of("pool", formats.suggested(x.shape, x.strides), shape),)


# ---- the largest ----------------------------------------------------------------------------------------------------


def _max_pool(x, *, size, kernel=(), stride=(), padding=(), dilation=()):
    """The largest element of each window."""
    windows = windows_of(x.shape[-len(size) :], size, kernel, stride, padding, dilation)
    return largest(x, windows, False, len(size) == 2 or bool(kernel))[0]


def _max_pool_with_indices(x, *, size, kernel=(), stride=(), padding=(), dilation=()):
    """The largest element of each window, and its place among the elements of its plane."""
    windows = windows_of(x.shape[-len(size) :], size, kernel, stride, padding, dilation)
    return largest(x, windows, True, len(size) == 2 or bool(kernel))


def _max_pool_backward(grad, indices, *, extents, kernel=(), stride=(), padding=(), dilation=()):
    """Zeros, with the gradient of each window added at its place."""
    return spread_largest(grad, indices, extents)


class _Places(Pool):
    def resolve_dtypes(self, call: Call) -> Any:
        """The input's dtype, and int64."""
        compute, results = super().resolve_dtypes(call)
        return compute, (results[0], dtypes.int64)


max_pool = Pool("max_pool", _max_pool, REAL_NUMBERS)
max_pool_with_indices = _Places(
    "max_pool_with_indices", _max_pool_with_indices, REAL_NUMBERS, outputs=("out", "indices")
)


class _Moved(Spread):
    def resolve_dtypes(self, call: Call) -> Any:
        """The gradient's dtype."""
        compute, result = self.rule(self.name, call.inputs[:1])
        return compute, (result,)


max_pool_backward = _Moved("max_pool_backward", _max_pool_backward, FLOATING)
max_pool_backward.kinds = {"indices": dtypes.int64}


@max_pool_with_indices.gradient
def _(grad, x_shape, indices, size, kernel, stride, padding, dilation):
    extents = x_shape[-len(size) :]
    return max_pool_backward(
        grad, indices, extents=extents, kernel=kernel, stride=stride, padding=padding, dilation=dilation
    )


def at_places(x: Tensor, indices: Tensor, rank: int) -> Tensor:
    """The elements of each plane of `x`, of `rank` dimensions, at the places that `indices` gives."""
    lead, shape = tuple(x.shape[:-rank]), tuple(indices.shape)
    flat = gather(x.reshape(*lead, prod(x.shape[-rank:])), indices.reshape(*lead, prod(shape[-rank:])), dim=-1)
    return flat.reshape(shape)


max_pool_backward.gradients(grad=lambda grad, indices, extents: at_places(grad, indices, len(extents)))


# ---- the average ----------------------------------------------------------------------------------------------------


class _Average(Pool):
    mode = "average"


class _Averaged(Spread):
    mode = "average"


def _avg_pool(x, *, size, kernel=(), stride=(), padding=(), divisor=None, padded=True):
    """The average of each window; or its sum divided by `divisor`."""
    windows = windows_of(x.shape[-len(size) :], size, kernel, stride, padding)
    return average(x, windows, divisor, padded, len(size) == 2)


def _avg_pool_backward(grad, *, extents, kernel=(), stride=(), padding=(), divisor=None, padded=True):
    """For each element the sum of the gradients of its windows, divided as their averages were."""
    windows = windows_of(extents, grad.shape[-len(extents) :], kernel, stride, padding)
    return spread_average(grad, extents, windows, divisor, padded)


avg_pool = _Average("avg_pool", _avg_pool, REAL_NUMBERS)
avg_pool_backward = _Averaged("avg_pool_backward", _avg_pool_backward, FLOATING)


@avg_pool.gradient
def _(grad, x_shape, size, kernel, stride, padding, divisor, padded):
    extents = x_shape[-len(size) :]
    return avg_pool_backward(
        grad, extents=extents, kernel=kernel, stride=stride, padding=padding, divisor=divisor, padded=padded
    )


@avg_pool_backward.gradient
def _(grad, grad_shape, extents, kernel, stride, padding, divisor, padded):
    size = grad_shape[-len(extents) :]
    return avg_pool(grad, size=size, kernel=kernel, stride=stride, padding=padding, divisor=divisor, padded=padded)
