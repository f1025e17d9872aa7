"""Cross entropy that computes the gradient of its scores in the forward pass, so that the scores are read once.

The forward pass can compute that gradient except for one factor, the loss's own gradient, which is a single number for
a reduced loss, and almost always 1. So the forward pass writes the gradient, and the backward pass multiplies it in
place by that factor, with a kernel that writes nothing if the factor is 1.

The first backward pass returns this array as the gradient. A second one over the same graph, and one with create_graph,
compute the gradient from the scores.
"""

from __future__ import annotations

import numpy as np

from ...autograd.mode import recording
from ...memory.array import DeviceArray
from ...memory.lifted import Lifted
from ...operators import Dtypes, Shapes
from ...runtime.call import Call
from ...tensors import Tensor, wrap
from ...types import dtypes
from .losses import ClassLoss, cross_entropy, cross_entropy_backward

ndarray = np.ndarray


class LossWithGradient(ClassLoss):
    """`cross_entropy` with a further output, `change`: the gradient of the scores where the loss's gradient is 1."""

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """The loss's dtypes; the gradient has the scores' dtype."""
        compute, results = super().resolve_dtypes(call)
        return compute, (*results[:3], results[0])

    def allocate(self, call: Call) -> Shapes:
        """Allocates the loss's results, and the gradient in the scores' shape."""
        return [*super().allocate(call), (tuple(call.arrays[0].shape), call.results[3].numpy)]

    def launch(self, call: Call) -> None:
        """The sum of the targets' weights, then one pass over the rows, then a sum over them."""
        from .loss_kernels import launch_cross_entropy

        launch_cross_entropy(call.outs[:3], call.arrays, call.compute, call.metadata, call.outs[3])


def _with_gradient(x, target, weight=None, *, ignore_index: int = -100, reduction: str = "mean", label_smoothing=0.0):
    """The loss, reduced, and the gradient of the scores."""
    metadata = {"ignore_index": ignore_index, "reduction": reduction, "label_smoothing": label_smoothing}
    out, total, lse = cross_entropy.reference(x, target, weight, **metadata)
    change = cross_entropy_backward.reference(x.dtype.type(1), x, target, weight, total, lse, **metadata)
    return out, total, lse, change


cross_entropy_with_gradient = LossWithGradient(
    "cross_entropy_with_gradient", _with_gradient, "log_softmax_lastdim_kernel_impl", ("out", "total", "lse", "change")
)
cross_entropy_with_gradient.node = "nll_loss"
cross_entropy_with_gradient.autocasts(cpu="float32", cuda="float32")


@cross_entropy_with_gradient.samples
def _(draw):
    return (call for call in cross_entropy.calls(draw) if call[1]["reduction"] != "none")


def gradient_wanted(x: Tensor, reduction: str) -> bool:
    """True if the forward pass of a loss of `x` computes the gradient: on a device, for a reduced loss.

    Not in float16, where a gradient divided by the number of rows underflows before it is multiplied by a loss scale.
    """
    on_device = x._data.__class__ is DeviceArray and x.dtype is not dtypes.float16
    return on_device and reduction != "none" and x._needs and bool(recording.enabled)


@cross_entropy_with_gradient.gradient
def _(grad, x, target, weight, total, lse, change, ignore_index, reduction, label_smoothing, needs):
    if recording.enabled or change._recall("consumed") or isinstance(grad._data, Lifted):
        return cross_entropy.joint_gradient(
            grad, x, target, weight, total, lse, ignore_index, reduction, label_smoothing, needs
        )
    change._remember("consumed", True)
    data = change._data
    if data.__class__ is ndarray:
        np.multiply(data, grad._host_array(), out=data, casting="unsafe")
    else:
        from .loss_kernels import launch_scale

        launch_scale(data, grad._data)
    return wrap(data), None, None
