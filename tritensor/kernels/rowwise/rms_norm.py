"""Root-mean-square normalisation of rows: divided by the root of their mean square, then scaled per column.

Inputs are rows, (N, C), with C the product of the normalised dimensions; `weight` has C elements. The factor of each
row is saved as a further output, for the gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...autograd.mode import recording
from ...operators.rules import Floating
from ...runtime.call import Call
from ...runtime.source import device_function
from ...tensors import Tensor
from ..reduction.family import Parts
from ..reduction.kernel import reduce_arrays
from ..reduction.sums import add, fold_sum, mean, sum, zero
from .family import RowNorm, RowNormBackward, add_sums
from .kernel import RowBodies, contiguous, launch_rows
from .norm_backward import fits, launch_norm_backward
from .reference import norm_backward, rms_norm_rows

if TYPE_CHECKING:
    import triton.language as tl


class RMSNorm(RowNorm):
    """The forward operator: `(x, weight) -> out, rstd`."""

    family = "rms_norm"
    about = "As for layer normalisation, without the mean."
    rows = staticmethod(rms_norm_rows)

    def launch(self, call: Call) -> None:
        """One pass over the rows."""
        x, weight = call.arrays
        launch_rows(
            FORWARD,
            call.outs[:1],
            (x,),
            1,
            call.compute,
            "rms_norm",
            row_outs=call.outs[1:],
            col_ins=() if weight is None else (contiguous(weight),),
            numbers=(call.metadata["eps"], x.shape[1]),
        )


def _rms_norm(x, weight=None, *, eps: float):
    """Rows divided by the root of their mean square, then scaled by column."""
    squares = np.square(x).mean(1, keepdims=True) if x.shape[1] else np.zeros((len(x), 1), x.dtype)
    rstd = 1 / np.sqrt(squares + x.dtype.type(eps))
    out = x * rstd
    return out if weight is None else out * weight, rstd[:, 0]


rms_norm = RMSNorm("rms_norm", _rms_norm, Floating("floating", "rms_norm"), outputs=("out", "rstd"))
rms_norm.autocasts(cuda="float32")


@rms_norm.samples
def _(draw):
    for shape, weighted in (((4, 7), True), ((4, 7), False), ((3, 1500), True), ((0, 3), True), ((3, 0), True)):
        yield [draw(shape), draw(shape[1:]) if weighted else None], {"eps": 1e-5}


@device_function
def _square_sum(values, row_values, col_values, col, mask, count, numbers):
    return (tl.sum(values[0] * values[0], 1),)


@device_function
def _factor(squares, numbers):
    # a row without columns has nothing to divide
    return 1 / tl.sqrt(squares / tl.maximum(numbers[1], 1) + numbers[0])


@device_function
def _normalised(values, row_values, col_values, summary, col, numbers):
    out = values[0] * _factor(summary[0], numbers)
    if len(col_values) > 0:
        out = out * col_values[0]
    return (out,)


_factors = device_function(lambda summary, row_values, numbers: (_factor(summary[0], numbers),))

FORWARD = RowBodies(_normalised, _square_sum, add_sums, _factors, late=True)


@rms_norm.gradient
def _(grad: Tensor, x: Tensor, weight: Tensor | None, rstd: Tensor, eps: float, needs: tuple[bool, ...]):
    if recording.enabled:
        return _composed_gradient(grad, x, weight, eps, needs)
    return rms_norm_backward(grad, x, rstd, weight)


def _composed_gradient(grad: Tensor, x: Tensor, weight: Tensor | None, eps: float, needs: tuple[bool, ...]) -> Any:
    """The same composed of tensor operators, which can be differentiated again."""
    rstd = (mean(x * x, dim=1, keepdim=True) + eps).rsqrt()
    normal = x * rstd
    scaled = grad if weight is None else grad * weight
    inner = scaled - normal * mean(scaled * normal, dim=1, keepdim=True)
    return inner * rstd, sum(grad * normal, dim=0) if needs[1] else None


class RMSNormBackward(RowNormBackward):
    """The gradients of both inputs: `(grad, x, rstd, weight) -> x's, weight's`."""

    family = "rms_norm"

    @staticmethod
    def rows(grad: Any, x: Any, rstd: Any, weight: Any, **kinds: Any) -> tuple[np.ndarray, ...]:
        """The reference in pieces."""
        return norm_backward(grad, x, None, rstd, None, weight, **kinds)[:2]

    def launch(self, call: Call) -> None:
        """Both in one pass; for rows that are too long, the input's gradient by rows, then the scale's by columns."""
        grad, x, rstd, weight = call.arrays
        if fits(x, call.compute):
            launch_norm_backward(call.outs, grad, x, (), rstd, weight, call.compute, "rms_norm")
            return
        launch_rows(
            BACKWARD,
            call.outs[:1],
            (grad, x),
            1,
            call.compute,
            "rms_norm_backward",
            row_ins=(rstd,),
            col_ins=() if weight is None else (contiguous(weight),),
            held=2 if weight is None else 4,
            numbers=(x.shape[1],),
        )
        if x.shape[1]:
            rows = (grad, x, rstd.reshape((-1, 1)).broadcast_to(x.shape))
            reduce_arrays(COLUMNS, call.outs[1:], rows, (0,), call.compute, "rms_norm_columns")


def _rms_norm_backward(grad: Tensor, x, rstd, weight=None):
    """The gradients of rms_norm's input and weight."""
    normal = x * rstd[:, None]
    scaled = grad if weight is None else grad * weight
    inner = scaled - normal * ((scaled * normal).sum(1, keepdims=True) / max(x.shape[1], 1))
    return inner * rstd[:, None], (grad * normal).sum(0)


rms_norm_backward = RMSNormBackward(
    "rms_norm_backward",
    _rms_norm_backward,
    Floating("floating", "rms_norm_backward"),
    outputs=("x_gradient", "weight_gradient"),
)


@rms_norm_backward.samples
def _(draw):
    for shape, weighted in (((4, 7), True), ((40, 7), False), ((3, 1500), True), ((2, 9000), True), ((0, 3), True)):
        weight = draw(shape[1:]) if weighted else None
        yield [draw(shape), draw(shape), draw(shape[:1], (0.5, 2.0)), weight], {}


@device_function
def _scaled(values, row_values, col_values):
    """The gradient before the scale, and the normalised input."""
    grad = values[0]
    if len(col_values) > 0:
        grad = grad * col_values[0]
    return grad, values[1] * row_values[0]


@device_function
def _projection(values, row_values, col_values, col, mask, count, numbers):
    grad, normal = _scaled(values, row_values, col_values)
    return (tl.sum(tl.where(mask, grad * normal, tl.zeros_like(grad)), 1),)


@device_function
def _input_gradient(values, row_values, col_values, summary, col, numbers):
    grad, normal = _scaled(values, row_values, col_values)
    return ((grad - normal * (summary[0] / numbers[0])) * row_values[0],)


BACKWARD = RowBodies(_input_gradient, _projection, add_sums)

_column_term = device_function(lambda values, index, numbers: (values[0] * values[1] * values[2],))

COLUMNS = Parts(fold_sum, add, zero, _column_term)
