"""The matmul family: matrix products with broadcast batches, any strides, and a fused bias and activation.

Two operators share one kernel: `matmul(x, y)` in all of PyTorch's ranks, and `linear(input, weight, bias)`, whose
weight is read transposed where it lies. Half-precision operands are multiplied directly and summed in float32;
operands of different dtypes are refused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ...autograd.gradients import attach
from ...autograd.mode import recording
from ...autograd.precision import casts
from ...errors import AutogradError, DtypeError, ShapeError, explain
from ...ground.arguments import wrong_type
from ...host.threads import dot
from ...memory import copies
from ...memory.array import DeviceArray
from ...operators import Dtypes, Operator, Shapes, registry
from ...operators.lifting.batching import Batch
from ...operators.rules import Rule
from ...runtime.call import Call, refuse_complex
from ...tensors import Tensor, wrap
from ...types import dtypes, layout
from ..pairs import is_complex
from ..scratch import ones
from .reference import multiply, product

ndarray = np.ndarray
_getframe = sys._getframe
# dtypes that BLAS multiplies
_WARNED = (RuntimeWarning, FloatingPointError)  # raised under np.errstate or filters; then the operator runs
_COPIED = 1 << 15  # elements of rows up to which the quick paths copy them to lie side by side
QUICK = frozenset(np.dtype(kind) for kind in ("float32", "float64"))
NUMBERS = Rule("matmul", dtypes.INTEGER, promote=False)


class Matmul(Operator):
    """A sum of products over one dimension: `out[..., m, n] = epilogue(bias + the sum of x[..., m, k] * y[..., k, n])`.

    Attributes:
        transposed: the second operand is stored (n, k), as `linear`'s weight is.
    """

    family = "matmul"
    about = "Tiles on tensor cores; bias and activation join the same kernel."
    on_pairs = True
    repeatable = True

    def __init__(self, name: str, reference: Callable[..., Any], *, transposed: bool) -> None:
        super().__init__(name, reference, NUMBERS)
        self.transposed = transposed

    def prepare(self, call: Call) -> None:
        """Check ranks, the common dimension, batches and the bias."""
        x, y = call.inputs[0], call.inputs[1]
        for position, value in enumerate(call.inputs):
            if not isinstance(value, Tensor) and not (value is None and position == 2):
                raise wrong_type(self.name, self.inputs[position], "Tensor", value, position + 1)
        if x.ndim == 0 or y.ndim == 0:
            raise ShapeError(
                f"both arguments to {self.name} need to be at least 1D, but they are {x.ndim}D and {y.ndim}D"
            )
        if self.transposed and y.ndim != 2:
            raise ShapeError(f"mat2 must be a matrix, got {y.ndim}-D tensor")
        shape = product_shape(x._data.shape, y._data.shape[::-1] if self.transposed else y._data.shape)
        if len(call.inputs) == 3 and call.inputs[2] is not None:
            bias = call.inputs[2]._data.shape
            layout.broadcast_strides(bias, (0,) * len(bias), shape)

    def record(
        self, outputs: tuple[Tensor, ...], inputs: Sequence[Any], metadata: dict[str, Any], alike: bool = False
    ) -> None:
        """Leave a node; a fused activation has no gradient, because its input is not stored."""
        refuse_activation(self.name, inputs, metadata, "linear")
        super().record(outputs, inputs, metadata, alike)

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """One dtype for all operands; half precision is summed in float32."""
        first = call.inputs[0].dtype
        for name, value in zip(self.inputs[1:], call.inputs[1:], strict=True):
            if value is not None and value.dtype is not first:
                raise DtypeError(
                    f"expected m1 and m2 to have the same dtype, but got: {c_name(first)} != {c_name(value.dtype)}",
                    f"{self.name}: {self.inputs[0]} has dtype {first}, {name} {value.dtype}",
                    remedy="bring them to one dtype with .to(dtype)",
                )
        if first is dtypes.bool_ and self.of_nothing(call.inputs):
            return first, (first,)
        compute, result = self.rule(self.name, call.inputs[:1])
        return compute, (result,)

    @staticmethod
    def of_nothing(inputs: Sequence[Any]) -> bool:
        """True if nothing is multiplied, so that every dtype will do; PyTorch refuses it for two vectors only."""
        x, y = inputs[0]._data, inputs[1]._data
        return (x.size == 0 or y.size == 0) and max(x.ndim, y.ndim) > 1

    def allocate(self, call: Call) -> Shapes:
        """The broadcast batch, then the rows of the first and the columns of the second operand."""
        y = call.arrays[1].shape[::-1] if self.transposed else call.arrays[1].shape
        return [(product_shape(call.arrays[0].shape, y), call.results[0].numpy)]

    def on_host(self, call: Call) -> Callable[..., tuple[np.ndarray, ...]]:
        """The reference; halves are converted a block at a time."""
        result, compute, name = call.results[0], call.compute.numpy, call.metadata.get("activation")
        if result.itemsize != 2 or not result.is_floating_point:
            return super().on_host(call)
        after = None if name is None else registry[name].reference

        def run(x: Any, y: Any, bias: Any = None) -> tuple[np.ndarray, ...]:
            return (multiply(x, y.T if self.transposed else y, bias, after, compute),)

        return run

    def launch(self, call: Call) -> None:
        """One kernel for the product, the bias and the activation."""
        from .complex_product import launch_complex
        from .launch import launch_product

        x, y = call.arrays[0], call.arrays[1]
        activation = call.metadata.get("activation")
        bias = call.arrays[2] if len(call.arrays) == 3 else None
        if bias is not None and not isinstance(bias, DeviceArray):  # a CPU tensor without dimensions
            bias = copies.from_host(np.array(bias, x.dtype), x.device)
        body = None if activation is None else body_of(registry[activation], call.outs[0].itemsize)
        y = y.transpose((1, 0)) if self.transposed else y
        if is_complex(x):
            if activation is not None:
                refuse_complex(activation, x.device, (call.compute,))
            launch_complex(call.outs[0], x, y, bias)
            return
        launch_product(call.outs[0], x, y, bias, body)

    def cost(self, call: Call) -> tuple[int, int]:
        """Each operand moved once; two operations for each product."""
        moved = sum(array.nbytes for array in (*call.outs, *call.arrays) if array is not None)
        return moved, 2 * call.outs[0].size * call.arrays[0].shape[-1]

    @staticmethod
    def batched(batch: Batch) -> tuple[Any, ...]:
        """Results for all samples, see `Operator.batched`."""
        x, y, *bias = batch.x
        if batch.operator.transposed:
            if batch.whole[0] and not any(batch.whole[1:]):
                return batch(*batch.x)
            rows = x.reshape(*x.shape[: batch.whole[0]], -1, x.shape[-1])
            shape = (*x.shape[batch.whole[0] : -1], y.shape[-2])
            product = rows @ y.mT
            product = product.reshape(*product.shape[:-2], *shape)
            if bias and bias[0] is not None:
                own = bias[0]
                missing = len(shape) - batch.ranks[2]
                product = product + (
                    own.reshape(batch.size, *(1,) * missing, *own.shape[1:]) if batch.whole[2] else own
                )
            return (product,)
        row, column = batch.ranks[0] == 1, batch.ranks[1] == 1
        if batch.whole[0] and not batch.whole[1] and batch.ranks[1] <= 2:
            return batch(x, y)
        x = x.unsqueeze(-2) if row else x
        y = y.unsqueeze(-1) if column else y
        rank = max(batch.ranks[0] + row, batch.ranks[1] + column)
        x, y = (
            each.reshape(batch.size, *(1,) * (rank + 1 - each.ndim), *each.shape[1:]) if whole else each
            for each, whole in zip((x, y), batch.whole, strict=True)
        )
        found = x @ y
        found = found.squeeze(-2) if row else found
        return (found.squeeze(-1) if column else found,)


def refuse_activation(name: str, inputs: Sequence[Any], metadata: dict[str, Any], function: str) -> None:
    """Raise if a call with a fused activation is to be recorded: its input is not stored.

    Raises:
        AutogradError: an input needs a gradient.
    """
    if metadata.get("activation") and any(isinstance(value, Tensor) and value._needs for value in inputs):
        raise AutogradError(
            f"{name}: an activation inside the operator has no gradient",
            remedy=f"call tritensor.functional.{function}, which takes two operators for it",
        )


def body_of(operator: Any, itemsize: int = 4) -> Any:
    """An elementwise operator's Triton body, for results of so many bytes, as a device function."""
    from ..elementwise.kernel import body_function

    return body_function(operator, itemsize)


def c_name(dtype: dtypes.dtype) -> str:
    """A dtype as PyTorch's messages of matrix products and convolutions spell it."""
    return dtype.cpp


def product_shape(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of `x @ y`.

    >>> product_shape((5, 1, 2, 3), (4, 3, 6)), product_shape((3,), (3,))
    ((5, 4, 2, 6), ())

    Raises:
        ShapeError: the common dimension differs, or the batches do not broadcast; with
            PyTorch's message for these ranks.
    """
    rows, columns = len(x), len(y)
    common = y[-2] if columns > 1 else y[0]
    if x[-1] != common:
        raise ShapeError(_mismatch(x, y, common))
    batch = layout.broadcast_shapes(x[:-2], y[:-2]) if rows > 2 and columns > 2 else x[:-2] or y[:-2]
    return (*batch, *(x[-2:-1]), *(y[-1:] if columns > 1 else ()))


def _mismatch(x: tuple[int, ...], y: tuple[int, ...], common: int) -> str:
    fact = f"the last dimension of {x} and the last but one of {y} must be equal"
    if len(y) == 1 and len(x) == 1:
        return explain(
            f"inconsistent tensor size, expected tensor [{x[0]}] and src [{y[0]}] to have the same number "
            f"of elements, but got {x[0]} and {y[0]} elements respectively"
        )
    rows = int(np.prod(x[:-1]))
    if len(y) == 1:
        return explain(f"size mismatch, got input ({rows}), mat ({rows}x{x[-1]}), vec ({y[0]})", fact)
    if len(y) == 2:
        return explain(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{x[-1]} and {common}x{y[-1]})", fact)
    count = int(np.prod(layout.broadcast_shapes(x[:-2], y[:-2])))
    return explain(
        f"Expected size for first two dimensions of batch2 tensor to be: [{count}, {x[-1]}] but got: "
        f"[{count}, {common}].",
        fact,
    )


def _matmul(x, y):
    """The matrix product: of vectors, matrices, or stacks of matrices with broadcast batches."""
    return multiply(x, y)


def _linear(input, weight, bias=None, *, activation: str | None = None):
    """input @ weight.T + bias, and an activation (the name of an operator) of that."""
    found = _quick(input, weight.T, bias) if activation is None else None
    if found is not None:
        return found
    return multiply(input, weight.T, bias, None if activation is None else registry[activation].reference)


matmul = Matmul("matmul", _matmul, transposed=False)
linear = Matmul("linear", _linear, transposed=True)
matmul.node = "mm"
matmul.autocasts(cpu="lower", cuda="lower")
linear.node = "addmm"
linear.autocasts(cpu="lower", cuda="lower")
matmul.linear = linear.linear = "product"
matmul.float8 = linear.float8 = "computed"


@matmul.samples
def _(draw):
    for x, y in (
        ((2, 3), (3, 4)),
        ((5,), (5,)),
        ((3,), (2, 3, 2)),
        ((2, 3, 4), (4,)),
        ((2, 1, 2, 3), (2, 3, 2)),
        ((33, 70), (70, 20)),
        ((3, 0), (0, 2)),
    ):
        yield [draw(x), draw(y)], {}


@linear.samples
def _(draw):
    for shape, bias in (((4, 5), (3,)), ((2, 2, 5), (3,)), ((5,), None), ((33, 70), (3,)), ((4, 5), (4, 3))):
        yield [draw(shape), draw((3, shape[-1])), None if bias is None else draw(bias)], {}


# ---- gradients: of tensor operators; autograd sums over broadcast batches ------------------------------------------


def _rows(x: Tensor) -> Any:
    """All dimensions but the last merged into one."""
    return x if x.ndim == 2 else x.flatten(0, -2)


def _matmul_x(grad: Tensor, y: Tensor, x_shape: tuple[int, ...]) -> Any:
    if y.ndim == 1:
        return grad.unsqueeze(-1) * y
    if len(x_shape) == 1:
        return (grad.unsqueeze(-2) @ y.mT).squeeze(-2)
    return grad @ y.mT


def _matmul_y(grad: Tensor, x: Tensor, y_shape: tuple[int, ...]) -> Any:
    if x.ndim == 1:
        return x * grad if len(y_shape) == 1 else x.unsqueeze(-1) * grad.unsqueeze(-2)
    if len(y_shape) == 1:
        return _rows(x).mT @ grad.reshape(-1)
    return _rows(x).mT @ _rows(grad) if len(y_shape) == 2 else x.mT @ grad


matmul.gradients(x=_matmul_x, y=_matmul_y)


def _linear_input(grad: Tensor, weight: Tensor) -> Any:
    return grad @ weight


def _linear_weight(grad: Tensor, input: Tensor) -> Any:
    g, x = _matrix_of(grad), _matrix_of(input)
    if g is not None and x is not None and not recording.enabled:
        with suppress(*_WARNED):
            return wrap(product(g.T, x))
    if input.ndim == 1:
        return grad.unsqueeze(1) * input
    return _rows(grad).mT @ _rows(input)


_ONES = 1 << 12  # fewer ones than this are kept


def _linear_bias(grad: Tensor, bias_shape: tuple[int, ...]) -> Any:
    g = _matrix_of(grad)
    if g is not None and bias_shape == g.shape[1:] and not recording.enabled:
        some = ones if len(g) < _ONES else np.ones
        with suppress(*_WARNED):
            return wrap(dot(some((len(g),), g.dtype), g))  # BLAS sums columns a little faster than NumPy
    return grad.sum_to_size(bias_shape)


def _matrix_of(x: Tensor) -> Any:
    """The rows of a CPU tensor as a matrix that BLAS multiplies, a copy if need be; None for other tensors."""
    data = x._data
    if data.__class__ is not ndarray or data.dtype not in QUICK:
        return None
    if data.ndim > 2 and data.size:
        return data.reshape(-1, data.shape[-1])
    return data if data.ndim == 2 else None


linear.gradients(input=_linear_input, weight=_linear_weight, bias=_linear_bias)


# ---- quick paths: matrices of one floating dtype on the CPU --------------------------------------------------------


def quick_matmul(x: Tensor, y: Tensor) -> Tensor:
    """`matmul(x, y)`; two CPU matrices, and rows of more dimensions, go to BLAS in a few steps."""
    out = None if casts.on else _quick(x._data, y._data)
    if out is None:
        return matmul(x, y)
    result = wrap(out)
    if (x._needs or y._needs) and recording.enabled:
        needs = (x._needs, y._needs)
        backward: Any = matmul.backwards.get(needs) or matmul.backward_for(needs)
        attach(backward, result, (x, y), _getframe(1))
    return result


def _quick(x: Any, y: Any, bias: Any = None) -> Any:
    """The product of rows and a matrix, CPU arrays of one dtype, and a bias of its columns; None for anything else."""
    if x.__class__ is not ndarray or y.__class__ is not ndarray or x.ndim < 2 or y.ndim != 2:
        return None
    kind, shape = x.dtype, x.shape
    if y.dtype is not kind or kind not in QUICK or shape[-1] != y.shape[0]:
        return None
    if bias is not None and (bias.__class__ is not ndarray or bias.dtype is not kind or bias.shape != y.shape[1:]):
        return None
    if len(shape) > 2:
        if not x.size or (x.size > _COPIED and not x.flags.c_contiguous):
            return None
        x = x.reshape(-1, shape[-1])
    try:
        out = product(x, y)
        if bias is not None:
            np.add(out, bias, out)
    except _WARNED:
        return None
    return out if len(shape) == 2 else out.reshape(*shape[:-1], -1)


def quick_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`linear(input, weight, bias)`; CPU matrices, and rows of more dimensions, go to BLAS in a few steps."""
    w, out = weight._data, None
    if w.__class__ is ndarray and not casts.on:
        out = _quick(input._data, w.T, None if bias is None else bias._data)
    if out is None:
        return linear(input, weight, bias)
    needs = (input._needs, weight._needs, bias is not None and bias._needs)
    result = wrap(out)
    if True in needs and recording.enabled:
        backward: Any = linear.backwards.get(needs) or linear.backward_for(needs)
        attach(backward, result, (input, weight, bias), _getframe(1))
    return result
