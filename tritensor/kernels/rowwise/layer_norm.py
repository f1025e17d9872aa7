"""Layer normalisation of rows: zero mean and unit variance, then a scale and a shift per column.

Inputs are rows, (N, C), with C the product of the normalised dimensions; `weight` and `bias` have C elements. The mean
and the reciprocal of the deviation of each row are saved as further outputs, for the gradient; and `low`, what the mean
lost when it was rounded, which is much of a distance from it where the mean is many deviations. In half precision it is
0, since the input's own rounding is more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...autograd.mode import recording
from ...autograd.precision import casts
from ...errors import DtypeError
from ...host.threads import ALONE, quietly
from ...operators.rules import Floating, is_half
from ...runtime.call import Call
from ...runtime.replay import Quick
from ...runtime.source import device_function
from ...tensors import Tensor, wrap
from ...types import dtypes
from ..reduction.family import Parts
from ..reduction.kernel import reduce_arrays
from ..reduction.sums import add_pairs, fold_pairs, mean, merge_moments, no_pairs, sum
from .family import RowNorm, RowNormBackward
from .kernel import RowBodies, contiguous, launch_rows
from .norm_backward import fits, launch_norm_backward
from .reference import layer_norm_rows, norm_backward

if TYPE_CHECKING:
    import triton.language as tl

ndarray = np.ndarray


class LayerNorm(RowNorm):
    """The forward operator: `(x, weight, bias) -> out, mean, rstd, low`."""

    family = "layer_norm"
    about = "Mean and deviation in one pass over a row; the weight's gradient by partial sums."
    repeatable = True
    rounding = ("low",)
    rows = staticmethod(layer_norm_rows)

    def prepare(self, call: Call) -> None:
        """Check dtypes: the parameters must have the input's, or float32 with a half-precision input."""
        x, *parameters = call.inputs
        for name, parameter in zip(("weight", "bias"), parameters):
            if parameter is not None and parameter.dtype not in (x.dtype, _parameter_dtype(x.dtype)):
                names = [each.dtype.legacy for each in (x, parameter)]
                words = f"expected scalar type {names[0]} but found {names[1]}"
                if not x._off_host:
                    words = f"mixed dtype (CPU): expect parameter to have scalar type of {names[0]}"
                raise DtypeError(
                    words,
                    f"layer_norm: input is {x.dtype}, {name} is {parameter.dtype}",
                    remedy=f"bring {name} to the input's dtype with .to(dtype)",
                )

    def launch(self, call: Call) -> None:
        """One pass over the rows."""
        x, weight, bias = call.arrays
        full = x.dtype.itemsize > 2
        launch_rows(
            FORWARD if full else FORWARD._replace(merge=merge_moments),
            call.outs[:1],
            (x,),
            1,
            call.compute,
            "layer_norm",
            row_outs=call.outs[1:],
            held=1,
            col_ins=tuple(contiguous(array) for array in (weight, bias) if array is not None),
            numbers=(call.metadata["eps"], weight is not None, bias is not None, full),
        )


def _parameter_dtype(dtype: dtypes.dtype) -> dtypes.dtype:
    return dtypes.float32 if dtype in (dtypes.float16, dtypes.bfloat16) else dtype


def _layer_norm(x: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, *, eps: float = 1e-5):
    """Rows minus their mean, divided by their deviation, then scaled and shifted by column."""
    average = x.mean(1, keepdims=True) if x.shape[1] else np.zeros((len(x), 1), x.dtype)
    variance = np.square(x - average).mean(1, keepdims=True) if x.shape[1] else np.zeros_like(average)
    rstd = 1 / np.sqrt(variance + x.dtype.type(eps))
    out = (x - average) * rstd
    if weight is not None:
        out = out * weight
    return out if bias is None else out + bias, average[:, 0], rstd[:, 0], np.zeros_like(rstd[:, 0])


layer_norm = LayerNorm(
    "layer_norm", _layer_norm, Floating("floating", "LayerNormKernelImpl"), outputs=("out", "mean", "rstd", "low")
)
layer_norm.node = "native_layer_norm"
layer_norm.autocasts(cuda="float32")


@layer_norm.samples
def _(draw):
    for shape, weight, bias in (
        ((4, 7), True, True),
        ((4, 7), True, False),
        ((4, 7), False, True),
        ((3, 1500), False, False),
        ((0, 3), True, True),
        ((3, 0), True, True),
    ):
        parameters = [draw(shape[1:]) if there else None for there in (weight, bias)]
        yield [draw(shape), *parameters], {}


@device_function
def _moments(values, row_values, col_values, col, mask, count, numbers):
    x = values[0]
    nothing = tl.zeros_like(x)
    total = tl.sum(x, 1)
    count = tl.zeros_like(total) + count
    centre = total / tl.maximum(count, tl.zeros_like(total) + 1)
    apart = tl.where(mask, x - centre[:, None], nothing)  # exact where the rounding of the centre counts
    squares = tl.sum(apart * apart, 1)
    if numbers[3]:
        total = tl.sum(apart, 1)
        low = total / tl.maximum(count, tl.zeros_like(total) + 1)
        excess = low * total
        left = tl.where(excess < squares, squares - excess, tl.zeros_like(total))
        return centre, tl.where(excess - excess == 0, left, squares), count, low
    else:
        return centre, squares, count


@device_function
def _merge_moments(centre, squares, count, low, centre2, squares2, count2, low2):
    """The moments of both, as distances from the first centre."""
    low, squares, count = merge_moments(low, squares, count, (centre2 - centre) + low2, squares2, count2)
    return centre, squares, count, low


@device_function
def _normalised(values, row_values, col_values, summary, col, numbers):
    out = values[0] - summary[0]
    if len(summary) > 3:
        out = out - summary[3]
    out = out * (1 / tl.sqrt(summary[1] / summary[2] + numbers[0]))
    if numbers[1]:
        out = out * col_values[0]
    if numbers[2]:
        if numbers[1]:
            out = out + col_values[1]
        else:
            out = out + col_values[0]
    return (out,)


@device_function
def _statistics(summary, row_values, numbers):
    mean, squares = summary[0], summary[1]
    rstd = 1 / tl.sqrt(squares / tl.maximum(summary[2], tl.zeros_like(squares) + 1) + numbers[0])
    low = tl.zeros_like(mean)
    if len(summary) > 3:
        rounded = mean + summary[3]
        low = (mean - rounded) + summary[3]
        mean = tl.where(low == low, rounded, mean)
    return mean, rstd, low


FORWARD = RowBodies(_normalised, _moments, _merge_moments, _statistics, late=True)


@layer_norm.gradient
def _(grad: Tensor, x: Tensor, weight: Tensor | None, mean: Tensor, rstd: Tensor, low: Tensor, eps: float, needs):
    if not recording.enabled and (quick := _quick_gradient(grad, x, mean, rstd, low, weight)) is not None:
        return quick
    shape = x.shape
    if len(shape) != 2:  # of `quick_layer_norm`
        grad, x = grad.reshape(-1, shape[-1]), x.reshape(-1, shape[-1])
    if recording.enabled:
        found = _composed_gradient(grad, x, weight, eps, needs)
    else:
        found = layer_norm_backward(grad, x, mean, rstd, None if is_half(x.dtype) else low, weight)
    return found if len(shape) == 2 else (found[0].reshape(shape), *found[1:])


def quick_layer_norm(
    input: Tensor, normalized: object, weight: Tensor | None, bias: Tensor | None, eps: float, checked: bool
) -> Tensor | None:
    """`layer_norm` of few float32 rows of any number of dimensions on the CPU, in a few steps; None for others.

    Args:
        checked: the shapes fit together; otherwise None for shapes that were not passed before.
    """
    x, w, b = getattr(input, "_data", None), getattr(weight, "_data", None), getattr(bias, "_data", None)
    kind = dtypes.float32.numpy
    if casts.on or x.__class__ is not ndarray or x.dtype is not kind or not x.flags.c_contiguous:
        return None
    shape, of_weight, of_bias = x.shape, None, None
    if weight is not None:
        if w.__class__ is not ndarray or w.dtype is not kind:
            return None
        of_weight = w.shape
    if bias is not None:
        if b.__class__ is not ndarray or b.dtype is not kind:
            return None
        of_bias = b.shape
    key = shape, normalized, of_weight, of_bias, eps
    compute = _quick.get(key)
    rows = x if len(shape) == 2 else x.reshape(-1, shape[-1]) if shape else x
    if compute is None:
        if not checked or not 0 < x.size <= ALONE:
            return None
        compute = _begin(key, (rows, w, b), float(eps))
    out, mean, rstd, low = compute(rows, w, b)
    result = wrap(out if len(shape) == 2 else out.reshape(shape))
    if recording.enabled and (
        input._needs or (weight is not None and weight._needs) or (bias is not None and bias._needs)
    ):
        outputs = result, wrap(mean), wrap(rstd), wrap(low)
        layer_norm.record(outputs, (input, weight, bias), {"eps": float(eps)})
    return result


_quick, _quick_back = Quick(), Quick()


def _begin(key: object, rows: tuple[Any, ...], eps: float) -> Any:
    """The function of a new key of `quick_layer_norm`."""

    def compute(*rows: Any) -> tuple[ndarray, ...]:
        return quietly(layer_norm_rows, *rows, eps=eps, dtype=dtypes.float32.numpy)

    return _quick.begin(key, layer_norm, rows, compute, eps=eps)


def _quick_gradient(*tensors: Tensor | None) -> tuple[Tensor, ...] | None:
    """The gradients from float32 arrays of the CPU, in a few steps; None for others."""
    kind, arrays = dtypes.float32.numpy, list[Any]()
    for each in tensors:
        array: Any = None if each is None else each._data
        if array is not None and (array.__class__ is not ndarray or array.dtype is not kind):
            return None
        arrays.append(array)
    shape = arrays[1].shape
    if not arrays[1].size or arrays[0].shape != shape:
        return None
    if len(shape) != 2:
        arrays[:2] = [each.reshape(-1, shape[-1]) for each in arrays[:2]]
    key = arrays[1].shape, arrays[5] is None
    compute = _quick_back.get(key) or _quick_back.begin(key, layer_norm_backward, arrays, _gradient_rows)
    found, weight, bias = compute(*arrays)
    return wrap(found if len(shape) == 2 else found.reshape(shape)), wrap(weight), wrap(bias)


def _gradient_rows(*arrays: Any) -> tuple[ndarray, ...]:
    kind = dtypes.float32.numpy
    return quietly(norm_backward, *arrays, dtype=kind, result=kind)


def _composed_gradient(grad: Tensor, x: Tensor, weight: Tensor | None, eps: float, needs: tuple[bool, ...]) -> Any:
    """The same composed of tensor operators, which can be differentiated again."""
    centred = x - mean(x, dim=1, keepdim=True)
    centred = centred - mean(centred, dim=1, keepdim=True)  # what the mean lost when it was rounded
    rstd = (mean(centred * centred, dim=1, keepdim=True) + eps).rsqrt()
    normal = centred * rstd
    scaled = grad if weight is None else grad * weight
    inner = scaled - mean(scaled, dim=1, keepdim=True) - normal * mean(scaled * normal, dim=1, keepdim=True)
    return (inner * rstd, sum(grad * normal, dim=0) if needs[1] else None, sum(grad, dim=0) if needs[2] else None)


class LayerNormBackward(RowNormBackward):
    """The gradients of all three inputs: `(grad, x, mean, rstd, low, weight) -> x's, weight's, bias's`."""

    family = "layer_norm"
    rows = staticmethod(norm_backward)

    def launch(self, call: Call) -> None:
        """All in one pass; if rows are too long, the input's gradient by rows, then the parameters' by columns."""
        grad, x, *statistics, weight = call.arrays
        centre, rstd, *low = [each for each in statistics if each is not None]
        centres = centre, *low
        if fits(x, call.compute):
            launch_norm_backward(call.outs, grad, x, centres, rstd, weight, call.compute, "layer_norm")
            return
        launch_rows(
            BACKWARD,
            call.outs[:1],
            (grad, x),
            1,
            call.compute,
            "layer_norm_backward",
            row_ins=(centre, rstd, *low),
            col_ins=() if weight is None else (contiguous(weight),),
            held=2 if weight is None else 4,
            numbers=(x.shape[1],),
        )
        if x.shape[1]:
            rows = (grad, x, *(array.reshape((-1, 1)).broadcast_to(x.shape) for array in (centre, rstd, *low)))
            reduce_arrays(COLUMNS, call.outs[1:], rows, (0,), call.compute, "layer_norm_columns")


def _layer_norm_backward(grad: np.ndarray, x: np.ndarray, mean: np.ndarray, rstd: np.ndarray, low=None, weight=None):
    """The gradients of layer_norm's input, weight and bias."""
    normal = (x - mean[:, None] - (0 if low is None else low[:, None])) * rstd[:, None]
    scaled = grad if weight is None else grad * weight
    count = max(x.shape[1], 1)
    inner = scaled - scaled.sum(1, keepdims=True) / count - normal * (scaled * normal).sum(1, keepdims=True) / count
    return inner * rstd[:, None], (grad * normal).sum(0), grad.sum(0)


layer_norm_backward = LayerNormBackward(
    "layer_norm_backward",
    _layer_norm_backward,
    Floating("floating", "layer_norm_backward"),
    outputs=("x_gradient", "weight_gradient", "bias_gradient"),
)


@layer_norm_backward.samples
def _(draw):
    for shape, weighted in (
        ((4, 7), True),
        ((40, 7), False),
        ((3, 1500), True),
        ((2, 9000), True),
        ((0, 3), True),
        ((3, 0), True),
    ):
        rows = [*(draw(shape[:1], (0.5, 2.0)) for _ in range(3 if weighted else 2)), *[None] * (not weighted)]
        yield [draw(shape), draw(shape), *rows, draw(shape[1:]) if weighted else None], {}


@device_function
def _scaled(values, row_values, col_values):
    """The gradient before the scale, and the normalised input."""
    grad = values[0]
    if len(col_values) > 0:
        grad = grad * col_values[0]
    normal = (values[1] - row_values[0]) * row_values[1]
    if len(row_values) > 2:
        normal = normal - row_values[2] * row_values[1]
    return grad, normal


@device_function
def _projections(values, row_values, col_values, col, mask, count, numbers):
    grad, normal = _scaled(values, row_values, col_values)
    nothing = tl.zeros_like(grad)
    return tl.sum(tl.where(mask, grad, nothing), 1), tl.sum(tl.where(mask, grad * normal, nothing), 1)


@device_function
def _input_gradient(values, row_values, col_values, summary, col, numbers):
    grad, normal = _scaled(values, row_values, col_values)
    return ((grad - (summary[0] + normal * summary[1]) / numbers[0]) * row_values[1],)


BACKWARD = RowBodies(_input_gradient, _projections, add_pairs)


@device_function
def _column_terms(values, index, numbers):
    apart = values[1] - values[2]
    if len(values) > 4:
        apart = apart - values[4]
    return values[0] * apart * values[3], values[0]


COLUMNS = Parts(fold_pairs, add_pairs, no_pairs, _column_terms)
