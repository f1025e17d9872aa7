"""Normalisation by channels, of (N, C, ...): batch, group and instance norm.

Arrays are seen as (N, G, D, L), G groups of D channels. Without `groups` each channel has its statistics over the batch
and L (D is 1); with it each group of each example, over D and L. On a device a reduction computes mean and variance, or
the sums for the gradient, and an elementwise kernel the result: each reads the input once.
Beside the mean there is `low`, what it lost when it was rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ...autograd.mode import recording
from ...host.threads import quietly
from ...memory import buffer
from ...memory.array import DeviceArray
from ...operators import Operator, Shapes
from ...operators.lifting.batching import Batch
from ...operators.rules import Floating, is_half
from ...runtime.call import Call
from ...runtime.choice import Native
from ...runtime.source import device_function
from ...tensors import Tensor
from ...types import dtypes
from ..elementwise.family import Elementwise
from ..elementwise.kernel import launch_elementwise
from ..elementwise.methods import in_place_method
from ..reduction.family import Parts, folded
from ..reduction.kernel import reduce_arrays
from ..reduction.reference import far_off
from ..reduction.sums import add_pairs, fold_pairs, mean, merge_moments, no_moments, no_pairs, one_moment, sum
from .channel_reference import channel_norm_arrays, channel_norm_backward_arrays, scale_channels
from .kernel import contiguous

if TYPE_CHECKING:
    import triton.language as tl

_RULE = Floating("floating", "batch_norm")


class _LikeFirst(Elementwise):
    """An elementwise operator whose result has the dtype of the first input, whatever the others have."""

    main = 0
    resolve_dtypes = Operator.resolve_dtypes


def _moving_average(running: np.ndarray, batch: np.ndarray, momentum: float, factor: float):
    """running * (1 - momentum) + batch * factor * momentum: running statistics of batches."""
    return running * (1 - momentum) + batch * factor * momentum


moving_average = _LikeFirst("moving_average", _moving_average, _RULE)
moving_average.constant = True
#: `moving_average` in the memory of its first input
move_average: Callable[..., Tensor] = in_place_method(moving_average)

moving_average.kernel(lambda running, batch, momentum, factor: running * (1 - momentum) + batch * factor * momentum)


def _normalize_channels(x: np.ndarray, mean: np.ndarray, var: np.ndarray, weight: float, bias: float, low, *, eps=1e-5):
    """(x - mean - low) / sqrt(var + eps) * weight + bias, by broadcasting; `low` is a small part of the mean."""
    return (x - mean - low) * (weight / np.sqrt(var + var.dtype.type(eps))) + bias


class _Normalize(_LikeFirst):
    def on_host(self, call: Call) -> Callable[..., tuple[np.ndarray, ...]]:
        """In two passes, x * scale + shift, where all others are numbers per channel."""
        kind, eps = call.compute.numpy, call.metadata["eps"]
        x, *others = call.arrays
        channels = (*x.shape[1:2], *[1] * (x.ndim - 2))
        if (
            x.ndim < 2
            or not x.size
            or x.dtype != kind
            or any(getattr(each, "shape", channels) != channels for each in others)
        ):
            return super().on_host(call)

        def run(x: np.ndarray, *others: Any) -> tuple[np.ndarray, ...]:
            mean, var, weight, bias, low = (np.asarray(each, kind) for each in others)
            scale = weight / np.sqrt(var + kind.type(eps))
            bias = bias - low * scale
            if far_off(mean * scale, np.square(weight) + np.square(bias), 1):  # else what is left is rounding
                return (scale_channels(x - mean, scale, bias + 0 * mean),)
            return (scale_channels(x, scale, bias - mean * scale),)

        return lambda *arrays: quietly(run, *arrays)


normalize_channels = _Normalize("normalize_channels", _normalize_channels, _RULE)
normalize_channels.domain = {"var": (0.1, 3.0), "low": (-1e-4, 1e-4)}  # which the kernel for halves leaves out


@normalize_channels.kernel
def _(x, mean, var, weight, bias, low, eps):
    return (x - mean - low) * (weight / tl.sqrt(var + eps)) + bias


@normalize_channels.half_kernel
def _(x, mean, var, weight, bias, low, eps):
    return (x - mean) * (weight / tl.sqrt(var + eps)) + bias


normalize_channels.gradients(
    x=lambda grad, var, weight, eps: grad * (weight * (var + eps).rsqrt()),
    weight=lambda grad, x, mean, var, low, eps: grad * ((x - mean - low) * (var + eps).rsqrt()),
    bias=lambda grad: grad,
)


def _normalize_channels_backward(grad, x, mean, var, low, weight, total, products, share, *, eps=1e-5, weighted=False):
    """The gradient of x, from sums over what has a mean together: of grad, and of grad times the normalised x.

    They are those of grad * weight with `weighted`. `share` is 1 over the count.
    """
    rstd = 1 / np.sqrt(var + var.dtype.type(eps))
    sums = (total + (x - mean - low) * rstd * products) * share
    return (grad * weight - sums) * rstd if weighted else (grad - sums) * (weight * rstd)


normalize_channels_backward = _LikeFirst("normalize_channels_backward", _normalize_channels_backward, _RULE)
normalize_channels_backward.domain = normalize_channels.domain


@normalize_channels_backward.kernel
def _(grad, x, mean, var, low, weight, total, products, share, eps, weighted):
    rstd = 1 / tl.sqrt(var + eps)
    sums = (total + (x - mean - low) * rstd * products) * share
    if weighted:
        return (grad * weight - sums) * rstd
    else:
        return (grad - sums) * (weight * rstd)


@normalize_channels_backward.samples
def _(draw):
    for shape, each in (((20, 3), (3,)), ((2, 3, 4), (3, 1)), ((0, 3), (3,))):
        for weighted in (False, True):
            given = [draw(each), draw(each, (0.5, 2.0)), *(draw(each) for _ in range(4))]
            yield [draw(shape), draw(shape), *given, 0.2], {"weighted": weighted}


def _launch(
    operator: Operator, out: DeviceArray, arrays: Sequence[Any], compute: dtypes.dtype, **metadata: Any
) -> None:
    call = Call(operator, (None,) * len(arrays), metadata, out.device, compute, (dtypes.of(out.dtype),))
    call.arrays, call.outs = arrays, [out]
    launch_elementwise(call)


# ---- reductions -----------------------------------------------------------------------------------------------


@device_function
def _mean_and_variance(state, count, numbers):
    mean = state[3] + state[0]
    low = (state[3] - mean) + state[0]
    return mean, state[1] / tl.maximum(state[2], tl.zeros_like(state[2]) + 1), low


@device_function
def _products(values, index, numbers):
    apart = values[1] - values[2]
    if len(values) > 4:
        apart = apart - values[4]
    return values[0], values[0] * apart / tl.sqrt(values[3] + numbers[0])


@device_function
def _weighted(values, index, numbers):
    if len(values) > 2:
        return values[0] * values[2], values[1] * values[2]
    else:
        return values[0], values[1]


MOMENTS = Parts(folded(merge_moments), merge_moments, no_moments, one_moment, _mean_and_variance, shifted=True)
PRODUCTS = Parts(fold_pairs, add_pairs, no_pairs, _products)
WEIGHTED = Parts(fold_pairs, add_pairs, no_pairs, _weighted)


# ---- the operators --------------------------------------------------------------------------------------------


def _seen(x: DeviceArray | Tensor, groups: int | None) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The sizes (N, G, D, L) of x, the dimensions that have a mean together, and the shape of the statistics."""
    count, channels = x.shape[:2]
    size = prod(x.shape[2:])
    if groups is None:
        return (count, channels, 1, size), (0, 2, 3), (channels,)
    return (count, groups, channels // max(1, groups), size), (2, 3), (count, groups)


def _parameter(each: DeviceArray | None, shape: tuple[int, ...], missing: float) -> Any:
    """A number per channel as (G, D, 1); `missing` where there is none."""
    return missing if each is None else contiguous(each).reshape((*shape[1:3], 1))


def _statistics(each: DeviceArray) -> DeviceArray:
    """Statistics as they broadcast to (N, G, D, L)."""
    return contiguous(each).reshape((*each.shape, 1, 1))


class _ByChannel(Operator):
    """An operator on (N, C, ...), input number `main`, with results by channel in the compute dtype."""

    family = "channel_norm"
    about = "Statistics and the sums for gradients by the reduction kernel, results by the elementwise one."
    repeatable = True
    native = Native((1, 500_000))
    main = 0
    by_piece: Callable[..., tuple[np.ndarray, ...]]  # the reference, and the dtype to compute in

    def on_host(self, call: Call) -> Callable[..., tuple[np.ndarray, ...]]:
        """The reference, which converts halves a piece at a time."""
        kind, more = call.compute.numpy, call.metadata
        return lambda *arrays: quietly(self.by_piece, *arrays, **more, dtype=kind)

    def allocate(self, call: Call) -> Shapes:
        """The input's shape, and that of statistics or of parameters."""
        x = call.arrays[self.main]
        more = x.shape[1:2] if self.main else _seen(x, call.metadata["groups"])[2]
        shapes = (tuple(x.shape), *[tuple(more)] * (len(self.outputs) - 1))
        return [(shape, result.numpy) for shape, result in zip(shapes, call.results, strict=True)]

    @staticmethod
    def batched(batch: Batch) -> tuple[Any, ...]:
        """More channels, or more groups of them."""
        backward = "backward" in batch.operator.name
        groups = batch.metadata["groups"]
        changes = {} if groups is None else {"groups": groups * batch.size}
        mains = 2 if backward else 1
        inputs = [batch.merged(i, 1) for i in range(mains)]
        # a number for each channel, or for each image and group
        inputs += [
            batch.merged(i, batch.ranks[i] - 1) if batch.x[i] is not None else None for i in range(mains, len(batch.x))
        ]
        out, *more = batch(*inputs, **changes)
        return batch.split(out, 1), *[batch.split(each, each.ndim - 1) for each in more]


class _Forward(_ByChannel):
    rounding = ("low",)
    by_piece = staticmethod(channel_norm_arrays)

    def launch(self, call: Call) -> None:
        """Mean and variance by the reduction kernel, and the result by the elementwise one."""
        x, weight, bias = call.arrays
        shape, dims, _ = _seen(x, call.metadata["groups"])
        out, *statistics = call.outs
        x = contiguous(x).reshape(shape)
        reduce_arrays(MOMENTS, statistics, (x,), dims, call.compute, self.name)
        parameters = _parameter(weight, shape, 1.0), _parameter(bias, shape, 0.0)
        mean, var, low = (_statistics(each) for each in statistics)
        arrays = (x, mean, var, *parameters, low if x.dtype.itemsize > 2 else 0.0)
        _launch(normalize_channels, out.reshape(shape), arrays, call.compute, eps=call.metadata["eps"])


class _Backward(_ByChannel):
    main = 1
    by_piece = staticmethod(channel_norm_backward_arrays)

    def launch(self, call: Call) -> None:
        """The sums by the reduction kernel, and the input's gradient by the elementwise one."""
        grad, x, *given, weight = call.arrays
        groups, eps, compute = call.metadata["groups"], call.metadata["eps"], call.compute
        shape, dims, _ = _seen(x, groups)
        mean, var, *low = [_statistics(each) for each in given if each is not None]
        grad, x = (contiguous(each).reshape(shape) for each in (grad, x))
        out, *sums = call.outs
        sums = [each.reshape(shape[1:3]) for each in sums[::-1]]  # of grad, and of the products
        arrays = (grad, x, *[each.broadcast_to(shape) for each in (mean, var, *low)])
        products, scale = PRODUCTS._replace(numbers=(eps,)), _parameter(weight, shape, 1.0)
        if groups is None:
            reduce_arrays(products, sums, arrays, dims, compute, self.name)
        else:
            each = [buffer.empty(shape[:3], compute.numpy, x.device) for _ in sums]
            reduce_arrays(products, each, arrays, (3,), compute, self.name)
            reduce_arrays(WEIGHTED, sums, each, (0,), compute, f"{self.name}_parameters")
            scales = () if weight is None else (scale.reshape(shape[1:3]).broadcast_to(shape[:3]),)
            sums = [buffer.empty(shape[:2], compute.numpy, x.device) for _ in sums]
            reduce_arrays(WEIGHTED, sums, (*each, *scales), (2,), compute, f"{self.name}_groups")
            sums = [each.reshape((*each.shape, 1)) for each in sums]
        sums = [each.reshape((*each.shape, 1)) for each in sums]
        every: tuple[Any, ...] = (
            grad,
            x,
            mean,
            var,
            *(low or (0.0,)),
            scale,
            *sums,
            1 / max(1, prod([shape[dim] for dim in dims])),
        )
        kernel, weighted = normalize_channels_backward, groups is not None
        _launch(kernel, out.reshape(shape), every, compute, eps=eps, weighted=weighted)


def _channel_norm(x, weight=None, bias=None, *, groups: int | None = None, eps: float = 1e-5):
    """Channels of (N, C, ...), or groups of them in each example, with zero mean and unit variance; then scaled."""
    return channel_norm_arrays(x, weight, bias, groups=groups, eps=eps, dtype=x.dtype)


def _channel_norm_backward(grad, x, mean, var, low=None, weight=None, *, groups=None, eps=1e-5):
    """The gradients of channel_norm's input, weight and bias."""
    return channel_norm_backward_arrays(grad, x, mean, var, low, weight, groups=groups, eps=eps, dtype=x.dtype)


channel_norm = _Forward("channel_norm", _channel_norm, _RULE, outputs=("out", "mean", "var", "low"))
channel_norm_backward = _Backward(
    "channel_norm_backward", _channel_norm_backward, _RULE, outputs=("x_gradient", "weight_gradient", "bias_gradient")
)


def _samples(operator: Operator, backward: bool) -> None:
    @operator.samples
    def _(draw):
        shapes = ((4, 6), True, True), ((3, 4, 5), True, False), ((2, 4, 3, 3), False, True), ((2, 6, 70), False, False)
        for shape, weighted, shifted in (*shapes, ((0, 4, 3), True, True), ((2, 4, 0), True, True)):
            for groups in (None, 1, 2):
                weight, bias = (draw(shape[1:2]) if there else None for there in (weighted, shifted))
                found = shape[1:2] if groups is None else (shape[0], groups)
                moments = draw(found), draw(found, (0.5, 2.0)), draw(found) if weighted else None
                given = [draw(shape), *moments, weight] if backward else [weight, bias]
                yield [draw(shape), *given], {"groups": groups}


_samples(channel_norm, False)
_samples(channel_norm_backward, True)


@channel_norm.gradient
def _(grad, x, weight, mean, var, low, groups, eps, needs):
    if recording.enabled:
        return _composed_gradient(grad, x, weight, groups, eps, needs)
    low = None if is_half(x.dtype) else low
    return channel_norm_backward(grad, x, mean, var, low, weight, groups=groups, eps=eps)


def _composed_gradient(
    grad: Tensor, x: Tensor, weight: Tensor | None, groups: int | None, eps: float, needs: tuple[bool, ...]
) -> Any:
    """The same composed of tensor operators, which can be differentiated again."""
    shape, dims, _ = _seen(x, groups)
    seen, grad = x.reshape(shape), grad.reshape(shape)
    centred = seen - mean(seen, dim=dims, keepdim=True)
    centred = centred - mean(centred, dim=dims, keepdim=True)  # what the mean lost when it was rounded
    rstd = (mean(centred * centred, dim=dims, keepdim=True) + eps).rsqrt()
    normal = centred * rstd
    scaled = grad if weight is None else grad * weight.reshape((*shape[1:3], 1))
    level = mean(scaled, dim=dims, keepdim=True)
    inner = scaled - level - normal * mean(scaled * normal, dim=dims, keepdim=True)
    more = [
        sum(each, dim=(0, 3)).reshape(-1) if need else None
        for each, need in zip((grad * normal, grad), needs[1:], strict=True)
    ]
    return (inner * rstd).reshape(x.shape), *more
