"""Pooling in any number of dimensions: the largest element of each window, its place, and the gradient.

Inputs are (N, C, *dimensions) or (C, *dimensions). The windows are given by `size`, how many there are along each
dimension, `kernel`, `stride`, `padding` and `dilation`; without a kernel they are adaptive
(`pooling_reference.Windows`). The gradient moves each element to its place, and its own reads the places. Averages are
sums with weights (`resampling.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from ...memory.array import DeviceArray
from ...operators import Operator, Shapes
from ...operators.lifting.batching import Batch, in_front_or_merged
from ...operators.rules import FLOATING, Rule
from ...runtime.call import Call
from ...runtime.choice import Native
from ...tensors import Tensor
from ...types import dtypes, formats
from ..indexing.family import gather
from .pooling_kernel import launch_pool, launch_spread
from .pooling_reference import has_channels_last, is_channels_last, largest, spread_largest, windows_of

REAL_NUMBERS = Rule("real numbers", dtypes.INTEGER, dtypes.FLOATING)


def _in_windows(batch: Batch) -> tuple[Any, ...]:
    """Results for all samples, see `Operator.batched`."""
    return in_front_or_merged(batch, len(batch.metadata.get("size") or batch.metadata.get("extents") or ()) + 2)


def _is_quick(arrays: Sequence[Any], metadata: object) -> bool:
    """Whether native code wins: where neighbours are in other windows it gathers, which few elements or halves bear."""
    return arrays[0].size <= 100_000 or arrays[0].dtype == np.float16 or has_channels_last(arrays)


class Pool(Operator):
    """An operator whose results have a number for each window."""

    family = "pooling"
    about = "A program takes a block of windows; their gradients are gathered by the elements, not added to them."
    batched = staticmethod(_in_windows)
    repeatable = True
    native = Native(suits=_is_quick)

    def allocate(self, call: Call) -> Shapes:
        """A number for each window; channels innermost where the input has them so, as in PyTorch."""
        size, x = call.metadata["size"], call.arrays[0]
        shape = x.shape[: x.ndim - len(size)] + size
        keeps = _keeps(size, call.metadata["kernel"])
        return [(shape, kind.numpy, *_strides(x, shape, keeps)) for kind in call.results]

    def launch(self, call: Call) -> None:
        """A program for a block of windows."""
        launch_pool(call)

    def calls(self, draw: Any) -> Iterator[tuple[Any, ...]]:
        """In one to three dimensions: windows that overlap, that leave elements out, padded, dilated, adaptive."""
        for shape, *windows in _CALLS:
            yield [draw(shape)], dict(zip(_NAMES, windows))


class Spread(Operator):
    """The gradient of a pool's input from that of its windows: each element gathers from the windows it is in."""

    family = "pooling"
    batched = staticmethod(_in_windows)
    repeatable = True
    native = Native(suits=has_channels_last)
    main = 0

    def allocate(self, call: Call) -> Shapes:
        """The input's shape, laid out as the windows' gradient is."""
        extents, grad = call.metadata["extents"], call.arrays[0]
        shape = grad.shape[: grad.ndim - len(extents)] + extents
        return [(shape, call.results[0].numpy, *_strides(grad, shape, True))]

    def launch(self, call: Call) -> None:
        """A program for a block of elements."""
        launch_spread(call)

    def calls(self, draw: Any) -> Iterator[tuple[Any, ...]]:
        """The gradients of `Pool.calls`."""
        for shape, size, *windows in _CALLS:
            metadata = dict(zip(_NAMES[1:], windows))
            places = _max_pool_with_indices(draw(shape), size=size, **metadata)[1]
            yield [draw(places.shape), places], {"extents": shape[-len(size) :], **metadata}


def _keeps(size: tuple[int, ...], kernel: tuple[int, ...]) -> bool:
    """True if the results are laid out as the input is: PyTorch has no such kernels for the others."""
    return len(size) == 2 or bool(kernel)


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


def _max_pool(x, *, size: tuple[int, ...], kernel: tuple[int, ...] = (), stride=(), padding=(), dilation=()):
    """The largest element of each window."""
    windows = windows_of(x.shape[-len(size) :], size, kernel, stride, padding, dilation)
    return largest(x, windows, False, _keeps(size, kernel))[0]


def _max_pool_with_indices(x, *, size: tuple[int, ...], kernel=(), stride=(), padding=(), dilation=()):
    """The largest element of each window, and its place among the elements of its plane."""
    windows = windows_of(x.shape[-len(size) :], size, kernel, stride, padding, dilation)
    return largest(x, windows, True, _keeps(size, kernel))


def _max_pool_backward(grad, indices, *, extents: tuple[int, ...], kernel=(), stride=(), padding=(), dilation=()):
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


max_pool_backward = Spread("max_pool_backward", _max_pool_backward, FLOATING)
max_pool_backward.kinds = {"indices": dtypes.int64}


@max_pool_with_indices.gradient
def _(grad: Tensor, x_shape: tuple[int, ...], indices: Tensor, size, kernel, stride, padding, dilation):
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
