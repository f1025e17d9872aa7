"""The elementwise parts of losses: the error of an element, whose mean or sum is the loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ShapeError
from ...operators.rules import FLOATING, Rule
from ...runtime.call import Call
from ...tensors import Tensor
from ...types import dtypes
from ..exact import quotient
from .family import elementwise

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice


@elementwise(FLOATING, methods=())
def squared_error(x: np.ndarray, y: np.ndarray):
    """(x - y) squared."""
    return np.square(x - y)


squared_error.node = "mse_loss"
squared_error.gradients(x=lambda grad, x, y: grad * (x - y) * 2, y=lambda grad, x, y: grad * (y - x) * 2)
squared_error.kernel(lambda x, y: (x - y) * (x - y))


@elementwise(FLOATING, methods=())
def absolute_error(x: np.ndarray, y: np.ndarray):
    """The distance between x and y."""
    return np.abs(x - y)


absolute_error.node = "abs"
absolute_error.gradients(x=lambda grad, x, y: grad * (x - y).sign(), y=lambda grad, x, y: grad * (y - x).sign())
absolute_error.kernel(lambda x, y: tl.abs(x - y))


@elementwise(FLOATING, methods=())
def logit_error(x: np.ndarray, y: np.ndarray | int):
    """The cross entropy of probability y against sigmoid(x)."""
    return np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x)))


logit_error.node = "binary_cross_entropy_with_logits"
logit_error.gradients(x=lambda grad, x, y: grad * (x.sigmoid() - y), y=lambda grad, x: -grad * x)
logit_error.kernel(lambda x, y: tl.maximum(x, 0.0) - x * y + libdevice.log1p(libdevice.exp(-tl.abs(x))))


@elementwise(FLOATING, methods=())
def weighted_logit_error(x: np.ndarray, y: np.ndarray, weight: np.ndarray):
    """The cross entropy of probability y against sigmoid(x), its positive part scaled by `weight`."""
    return (1 - y) * x + (1 + (weight - 1) * y) * (np.log1p(np.exp(-np.abs(x))) + np.maximum(-x, 0))


def _soft(x: Tensor) -> Tensor:
    return logit_error(x, 1)


weighted_logit_error.node = "binary_cross_entropy_with_logits"
weighted_logit_error.gradients(
    x=lambda grad, x, y, weight: grad * ((1 - y) - (1 + (weight - 1) * y) * (-x).sigmoid()),
    y=lambda grad, x, weight: grad * ((weight - 1) * _soft(x) - x),
    weight=lambda grad, x, y: grad * y * _soft(x),
)


@weighted_logit_error.kernel
def _(x, y, weight):
    return (1.0 - y) * x + (1.0 + (weight - 1.0) * y) * (
        libdevice.log1p(libdevice.exp(-tl.abs(x))) + tl.maximum(-x, 0.0)
    )


@elementwise(FLOATING, methods=())
def bent_error(x: np.ndarray, y: np.ndarray, *, bend=1.0, slope=1.0):
    """The distance of x and y, less than `bend` half its square over `bend`, beyond a line; `slope` times that."""
    distance = np.abs(x - y)
    return slope * np.where(distance < bend, distance * distance / (2 * bend), distance - bend / 2)


@bent_error.kernel
def _(x, y, bend, slope):
    distance = tl.abs(x - y)
    return slope * tl.where(distance < bend, quotient(distance * distance, 2 * bend), distance - bend * 0.5)


bent_error.gradients(
    x=lambda grad, x, y, bend, slope: grad * (((x - y) / bend).clamp(-1, 1) * slope),
    y=lambda grad, x, y, bend, slope: grad * (((y - x) / bend).clamp(-1, 1) * slope),
)


class Shares(Rule):
    """The first input is of numbers from 0 to 1. On a device the kernel asserts it, as PyTorch's does."""

    examines = True

    def examine(self, call: Call, operands: Any) -> None:
        """Raise ShapeError, which is a RuntimeError, for another number."""
        x = operands[0]
        if np.size(x) and not (np.min(x) >= 0 and np.max(x) <= 1):
            raise ShapeError(
                "all elements of input should be between 0 and 1",
                f"they are from {np.min(x):g} to {np.max(x):g}",
                remedy="apply a sigmoid first, or use binary_cross_entropy_with_logits",
            )


@elementwise(Shares("real floating", dtypes.FLOATING, dtypes.FLOATING, promote=False), methods=())
def share_error(x: np.ndarray, y: np.ndarray):
    """The cross entropy of probability y against probability x, whose logarithms are -100 at least."""
    return (y - 1) * np.maximum(np.log1p(-x), -100) - y * np.maximum(np.log(x), -100)


share_error.domain = (0.0, 1.0)
share_error.gradient_domain = (0.05, 0.95)


@share_error.kernel
def _(x, y):
    tl.device_assert((x >= 0) & (x <= 1), "all elements of input should be between 0 and 1")
    against = tl.maximum(libdevice.log1p(-x), -100.0)
    return (y - 1.0) * against - y * tl.maximum(libdevice.log(x), -100.0)


share_error.gradients(
    x=lambda grad, x, y: grad * ((x - y) / (x * (1 - x)).clamp_min(1e-12)),
    y=lambda grad, x: grad * ((-x).log1p() - x.log()),
)


@elementwise(FLOATING, methods=())
def divergence(x: np.ndarray, y: np.ndarray):
    """The part of an element in the divergence of probabilities y from those whose logarithms are x."""
    return np.where(y == 0, 0, y * np.log(y)) - y * x


divergence.domain = {"y": (0.05, 2.0)}
divergence.gradients(x=lambda grad, y: -grad * y, y=lambda grad, x, y: grad * (y.log() + 1 - x))
divergence.kernel(lambda x, y: tl.where(y == 0, 0.0, y * libdevice.log(y)) - y * x)
