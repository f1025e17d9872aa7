"""The rowwise family: operators that read a whole row to compute each of its elements. Softmax and its logarithm.

The kernels work along the last dimension; another one is moved there first, by a copy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...autograd.mode import recording
from ...host.threads import quietly
from ...operators import Dtypes, Operator, Shapes
from ...operators.lifting.batching import Batch
from ...operators.rules import Floating, Rule, asked_dtype, compute_dtype
from ...runtime.call import Call
from ...runtime.choice import Native
from ...runtime.source import device_function
from ...tensors import Tensor
from ...types import dtypes
from ..reduction.scan import AlongDim
from ..reduction.sums import merge_logs, sum
from .kernel import RowBodies, launch_rows
from .reference import LARGE, along, log_softmax_backward_rows, log_softmax_rows, softmax_backward_rows, softmax_rows

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice

ndarray = np.ndarray


class Rowwise(AlongDim):
    """An operator along one dimension, `dim`, whose result has the input's shape."""

    family = "rowwise"
    about = "A row is read once where it fits into registers, else in a loop that carries maximum and sum."
    native = Native()
    terms = Operator.terms

    def __init__(self, name: str, reference: Callable[..., Any], rule: Rule, **names: Any) -> None:
        super().__init__(name, reference, rule, **names)
        #: the reference for pieces on the CPU: `(*arrays, out, dim)`, of the compute dtype
        self.by_rows: Callable[..., None] | None = None
        self.bodies = RowBodies()

    def kernel(self, apply: Any, summary: Any, merge: Any, beyond: float = 0.0) -> Operator:  # type: ignore[override]
        """Declare the kernel's device functions; see `RowBodies`."""
        self.body = apply
        self.bodies = RowBodies(apply, summary, merge, beyond=beyond)
        return self

    def along(self, input: Tensor, dim: int) -> Tensor:
        """The operator's call, with a key in few steps."""
        if dim.__class__ is not int:
            return self(input, dim=dim)
        return self.call_one(input, (dim,), {"dim": dim})

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """The input's dtype, or `dtype=`, to which the input is converted first."""
        wanted, x = asked_dtype(call), call.inputs[0]
        if wanted is None and not x._data.size and not x.dtype.is_floating_point:
            return dtypes.float32, (x.dtype,)  # as in PyTorch, the dtype matters only where there are elements
        if wanted is None:
            compute, result = self.rule(self.name, call.inputs)
        else:
            self.rule.check(self.name, wanted)  # type: ignore[attr-defined]  # a Floating
            compute, result = compute_dtype(wanted), wanted
        return compute, (result,)

    def on_host(self, call: Call) -> Callable[..., tuple[np.ndarray, ...]]:
        """The reference by rows, in pieces."""
        reference, by_rows, dim = super().on_host(call), self.by_rows, call.metadata["dim"]
        kinds, x = (call.compute.numpy, call.results[0].numpy), call.arrays[0]
        size = x.size
        if by_rows is None or not size or (size < LARGE and dim != x.ndim - 1):
            return reference

        width, direct = x.shape[-1] if x.ndim else 1, kinds[0] == kinds[1] == x.dtype

        def run(*arrays: Any) -> tuple[np.ndarray, ...]:
            if size >= LARGE:
                return (quietly(along, by_rows, arrays, dim, *kinds),)
            if not direct or not all(x.flags.c_contiguous for x in arrays):
                return reference(*arrays)
            out = np.empty(arrays[0].shape, kinds[1])
            quietly(by_rows, *[x.reshape(-1, width) for x in arrays], out.reshape(-1, width))
            return (out,)

        return run

    def launch(self, call: Call) -> None:
        """Run the bodies over rows; their one number is whether the results have 16 bits."""
        short = call.results[0].itemsize == 2
        launch_rows(
            self.bodies, call.outs, call.arrays, call.metadata["dim"], call.compute, self.name, numbers=(short,)
        )


class RowNorm(Operator):
    """Normalisation of rows, (N, C): a result of the input's shape, and further results with a number per row."""

    repeatable = True
    native = Native()
    main = 0
    rows: Callable[..., tuple[np.ndarray, ...]]  # the reference, in pieces, and the dtype to compute in

    def on_host(self, call: Call) -> Callable[..., tuple[np.ndarray, ...]]:
        """The reference in pieces."""
        metadata, kind = call.metadata, call.compute.numpy
        if not call.arrays[0].size:
            return super().on_host(call)

        def run(*arrays: Any) -> tuple[np.ndarray, ...]:
            return quietly(self.rows, *arrays, **metadata, dtype=kind)

        return run

    def allocate(self, call: Call) -> Shapes:
        """The input's shape, and a number per row for each further result."""
        shape = tuple(call.arrays[0].shape)
        return [(shape, call.results[0].numpy), *((shape[:1], each.numpy) for each in call.results[1:])]

    @staticmethod
    def batched(batch: Batch) -> tuple[Any, ...]:
        """More rows; parameters that differ from sample to sample are applied apart from that."""
        parameters = batch.x[1:]
        apart = any(batch.whole[1:])
        found = batch(batch.merged(0), *([None] * len(parameters) if apart else parameters))
        out, *more = [batch.split(each) for each in found]
        for position, parameter in enumerate(parameters, 1):
            if apart and parameter is not None:
                parameter = parameter.unsqueeze(1) if batch.whole[position] else parameter
                out = out * parameter if position == 1 else out + parameter
        return out, *more


class RowNormBackward(Operator):
    """The gradients of a norm's inputs: `(grad, x, ...) -> x's, the parameters'`."""

    repeatable = True
    native = Native()
    main = 1  # the parameters' gradients have the compute dtype, which autograd casts
    rows: Callable[..., tuple[np.ndarray, ...]]  # the reference, in pieces; also `result`, the gradient's dtype

    def on_host(self, call: Call) -> Callable[..., tuple[np.ndarray, ...]]:
        """The reference in pieces."""
        kind, result = call.compute.numpy, call.results[0].numpy
        if not call.arrays[1].size:
            return super().on_host(call)
        return lambda *arrays: quietly(self.rows, *arrays, dtype=kind, result=result)

    def allocate(self, call: Call) -> Shapes:
        """The input's shape, and a number per column for each parameter."""
        shape = tuple(call.arrays[1].shape)
        return [(shape, call.results[0].numpy), *((shape[1:], each.numpy) for each in call.results[1:])]

    @staticmethod
    def batched(batch: Batch) -> tuple[Any, ...]:
        """The gradient of the rows; and the parameters', each sample's own sums."""
        given = [position for position in range(len(batch.x) - 1) if batch.x[position] is not None]
        grad, x, *statistics = [batch.all_of(position) for position in given]
        weight = batch.x[-1]
        scaled = grad if weight is None else grad * (weight.unsqueeze(1) if batch.whole[-1] else weight)
        rows = [each.flatten(0, 1) for each in (scaled.to(grad.dtype), x, *statistics)]
        rows += [None] * (len(batch.x) - len(rows))
        result = batch.split(batch(*rows)[0])
        columns = [each.unsqueeze(2) for each in statistics]
        for centre in columns[::2] if len(columns) > 1 else ():  # the mean, and what it lost in rounding
            x = x - centre
        normal = x * columns[len(columns) > 1]
        kinds = [grad.dtype if weight is None else weight.dtype] * 2
        sums = [(grad * normal).sum(1), grad.sum(1)][: len(batch.operator.outputs) - 1]
        return result, *[each.to(kind) for each, kind in zip(sums, kinds, strict=False)]


def _top(x: np.ndarray, axis: int) -> np.ndarray:
    return np.maximum.reduce(x, axis, keepdims=True) if x.shape[axis] else x.sum(axis, keepdims=True)


def rowwise(words: str) -> Callable[[Callable[..., Any]], Rowwise]:
    """Declare a rowwise operator; a decorator for its reference. `words` is PyTorch's kernel name, for errors."""
    return lambda function: Rowwise(function.__name__, function, Floating("floating", words))


@rowwise("softmax_lastdim_kernel_impl")
def softmax(x, *, dim, dtype=None):
    """exp(x), scaled so that it sums to 1 along `dim`."""
    dim = dim if x.ndim else None
    if dim is None:
        return np.exp(x - x)
    e = np.exp(x - _top(x, dim))
    return e / e.sum(dim, keepdims=True)


softmax.autocasts(cuda="float32")
softmax.by_rows = softmax_rows


@device_function
def exponential(x, SHORT: tl.constexpr):
    """exp(x); for results of 16 bits by way of a power of two, in 4 instructions for 8 and off by |x| * 2**-24."""
    if SHORT:
        return libdevice.exp2(x * 1.4426950408889634)
    else:
        return libdevice.exp(x)


@device_function
def largest(x):
    """The largest element of each row, or the lowest number where all are -inf: the sum of the exponentials of the
    distances to it is then 0 and not NaN, and can be merged with those of other blocks of the row."""
    top = tl.max(x, 1)
    lowest = -1.7976931348623157e308 if top.dtype == tl.float64 else -3.4028234663852886e38
    return tl.maximum(top, tl.zeros_like(top) + lowest)


@device_function
def summarise_exponentials(values, row_values, col_values, col, mask, count, numbers):
    """The largest element of a block of columns, and the sum of exp(x - largest)."""
    top = largest(values[0])
    return top, tl.sum(exponential(values[0] - top[:, None], numbers[0]), 1)


@device_function
def _softmax_of(values, row_values, col_values, summary, col, numbers):
    shares = exponential(values[0] - summary[0], numbers[0])
    if numbers[0]:
        return (shares * (1 / summary[1]),)  # one division for each row
    else:
        return (shares / summary[1],)


softmax.kernel(_softmax_of, summarise_exponentials, merge_logs, beyond=-math.inf)


@softmax.gradient
def _(grad: Tensor, out: Tensor, dim: int):
    if recording.enabled:
        return out * (grad - sum(grad * out, dim=dim, keepdim=True))
    return softmax_backward(grad, out, dim=dim)


@rowwise("log_softmax_lastdim_kernel_impl")
def log_softmax(x, *, dim, dtype=None):
    """The logarithm of softmax along `dim`: x - log(sum(exp(x))), without overflow."""
    if not x.ndim:
        return x - x
    shifted = x - _top(x, dim)
    return shifted - np.log(np.exp(shifted).sum(dim, keepdims=True))


log_softmax.autocasts(cuda="float32")
log_softmax.by_rows = log_softmax_rows


@device_function
def _log_softmax_of(values, row_values, col_values, summary, col, numbers):
    return (values[0] - summary[0] - libdevice.log(summary[1]),)


log_softmax.kernel(_log_softmax_of, summarise_exponentials, merge_logs, beyond=-math.inf)


@log_softmax.gradient
def _(grad: Tensor, out, dim):
    if recording.enabled:
        return grad - out.exp() * sum(grad, dim=dim, keepdim=True)
    return log_softmax_backward(grad, out, dim=dim)


@rowwise("softmax_backward")
def softmax_backward(grad: Tensor, result, *, dim):
    """The gradient of softmax's input, from the result and its gradient."""
    return result * (grad - (grad * result).sum(dim if result.ndim else None, keepdims=result.ndim > 0))


softmax_backward.by_rows = softmax_backward_rows


@device_function
def _sum_of_products(values, row_values, col_values, col, mask, count, numbers):
    return (tl.sum(values[0] * values[1], 1),)


@device_function
def _softmax_backward_of(values, row_values, col_values, summary, col, numbers):
    return (values[1] * (values[0] - summary[0]),)


@device_function
def add_sums(x, y):
    """The sum of two summaries of one value."""
    return (x + y,)


softmax_backward.kernel(_softmax_backward_of, _sum_of_products, add_sums)


@rowwise("log_softmax_backward")
def log_softmax_backward(grad: Tensor, result, *, dim):
    """The gradient of log_softmax's input, from the result and its gradient."""
    return grad - np.exp(result) * grad.sum(dim if result.ndim else None, keepdims=result.ndim > 0)


log_softmax_backward.by_rows = log_softmax_backward_rows


@device_function
def _sum_of_gradients(values, row_values, col_values, col, mask, count, numbers):
    return (tl.sum(values[0], 1),)


@device_function
def _log_softmax_backward_of(values, row_values, col_values, summary, col, numbers):
    return (values[0] - exponential(values[1], numbers[0]) * summary[0],)


log_softmax_backward.kernel(_log_softmax_backward_of, _sum_of_gradients, add_sums)
