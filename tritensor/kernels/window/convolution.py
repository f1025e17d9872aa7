"""The convolution family: three sums of the products of inputs, weights and results, each the gradient of the others.

With x of (images, groups * channels, *sizes), y of (images, groups * rows, *results) and w of (groups * rows, channels,
*taps), of any number of dimensions, and stride, padding and dilation as PyTorch has them:

    convolution              y from x and w
    convolution_transposed   x from y and w, where w has the shape (groups * channels, rows, *taps) as PyTorch's does
    convolution_weight       w from x and y

Each gets the sizes of what it computes as `size`, because these do not follow from the others, and elements outside of
x are zeros. So the gradients of a call, of every order, are calls of the same three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ...errors import DtypeError, ShapeError, UnsupportedError
from ...ground.arguments import wrong_type
from ...operators import Dtypes, Operator, Shapes, registry
from ...operators.lifting.batching import Batch
from ...operators.rules import Rule
from ...runtime.call import Call
from ...runtime.choice import Native
from ...tensors import Tensor
from ...types import dtypes, formats
from ...types.layout import contiguous_strides
from ..matmul.family import body_of, c_name, refuse_activation
from ..pairs import is_complex, launch_product
from ..reduction.sums import sum
from .convolution_reference import correlate, correlate_weights, is_spread, spread
from .geometry import UNROLLED, backward_lines, forward_line, forward_size, grouped, last
from .pooling_reference import has_channels_last

Shape = tuple[int, ...]


class Numbers(Rule):
    """Every dtype but boolean, and all operands have the same."""

    def __init__(self) -> None:
        super().__init__("convolution", dtypes.INTEGER, promote=False)

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """See the base class; raises DtypeError with PyTorch's words."""
        first, weight, *bias = operands
        for name, value in (("weight", weight), *(("bias", each) for each in bias if each is not None)):
            if value.dtype is not first.dtype:
                types = [each.type() if name == "weight" else c_name(each.dtype) for each in (first, value)]
                raise DtypeError(
                    f"Input type ({types[0]}) and {name} type ({types[1]}) should be the same",
                    remedy="bring them to one dtype with .to(dtype)",
                )
        if first.dtype is dtypes.bool_:
            raise UnsupportedError(
                "\"slow_conv2d_cpu\" not implemented for 'Bool'", remedy="convert the operands with .float()"
            )
        return super().__call__(operator, (first, weight))


def _is_depthwise(arrays: Sequence[Any], metadata: Mapping[str, Any]) -> bool | None:
    """True for groups of one channel, side by side in memory or with few taps: the others are products, for BLAS.

    Planes of 56x56 with 3x3 taps take 0.75 of NumPy's time, of 28x28 0.3; 5x5 taps, which are a loop, five of it.
    """
    if not 1 < metadata["groups"] == arrays[0].shape[1]:
        return None
    taps = prod(arrays[1].shape[2:]) if arrays[1].shape[1] == 1 else UNROLLED + 1
    return has_channels_last(arrays) or (taps <= UNROLLED and max(metadata["stride"]) == 1)


class Convolution(Operator):
    """One of the three sums.

    Args:
        reference: the sum; its metadata are stride, padding, dilation and size, a number for each dimension, groups,
            and `activation`, the name of an elementwise operator, where one can be fused.
        shape: the shape of the result, from those of both operands, groups and size; None if they do not fit together.
    """

    family = "convolution"
    about = "A product of matrices whose columns are read where they lie; each gradient is another of the sums."
    repeatable = on_pairs = True
    native = Native(suits=_is_depthwise)

    def __init__(
        self, name: str, reference: Callable[..., Any], shape: Callable[[Shape, Shape, int, Shape], Shape | None]
    ) -> None:
        super().__init__(name, reference, Numbers())
        self.shape = shape

    def prepare(self, call: Call) -> None:
        """Check that the operands are tensors whose channels fit together."""
        for position, value in enumerate(call.inputs):
            if not isinstance(value, Tensor) and not (value is None and position == 2):
                raise wrong_type(self.name, self.inputs[position], "Tensor", value, position + 1)
        first, second, *bias = [value._data.shape for value in call.inputs if value is not None]
        shape, size = None, call.metadata["size"]
        if len(first) == len(second) == len(size) + 2:
            shape = self.shape(first, second, call.metadata["groups"], size)
        if shape is None or (bias and bias[0] != shape[1:2]):
            raise ShapeError(f"{self.name}: operands of shapes {first}, {second}, {bias}", f"{call.metadata}")

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """The operands' dtype; half precision is summed in float32."""
        compute, result = self.rule(self.name, call.inputs)
        return compute, (result,)

    def record(
        self, outputs: tuple[Tensor, ...], inputs: Sequence[Any], metadata: dict[str, Any], alike: bool = False
    ) -> None:
        """Leave a node; a fused activation has no gradient, because its input is not stored."""
        refuse_activation(self.name, inputs, metadata, "conv2d")
        super().record(outputs, inputs, metadata, alike)

    def on_host(self, call: Call) -> Callable[..., tuple[np.ndarray, ...]]:
        """The sum in pieces; halves are converted a piece at a time."""
        return lambda *arrays: (self.computed(arrays, call.compute.numpy, **call.metadata),)

    def computed(self, arrays: Sequence[Any], kind: Any, activation: str | None = None, **metadata: Any) -> np.ndarray:
        """The sum on the CPU, of operands and a bias or None, computed in the dtype `kind`."""
        (first, second), bias = arrays[:2], arrays[2] if len(arrays) > 2 else None
        shape: Any = self.shape(first.shape, second.shape, metadata["groups"], metadata["size"])
        steps = [first.itemsize * step for step in self.strides_of(shape, first, second)]
        out = np.ndarray(shape, first.dtype, strides=steps)
        result, x, third, several = self.correlation(out, first, second, metadata)
        if self is convolution_weight:
            correlate_weights(result, x, third, [each for (each,) in several], kind)
            return out
        bias = None if bias is None else bias.reshape(result.shape[1:3]).astype(kind)
        after = None if activation is None else registry[activation].reference
        if self is convolution_transposed:
            weight = third.swapaxes(1, 2)
            if is_spread(x, weight, kind):
                geometry = [metadata[name] for name in ("stride", "padding", "dilation")]
                spread(result, x, weight, bias, list(zip(*geometry, strict=True)), after)
                return out
        for lines in product(*several):
            here, taps = last([line.results for line in lines]), last([line.weights for line in lines])
            correlate(result[here], x, third[taps], bias, lines, kind, after)
        return out

    def launch(self, call: Call) -> None:
        """One kernel for the sum, the bias and the activation; for a transposed one, a kernel for each phase."""
        from .convolution_launch import launch_correlations, launch_weights

        activation = call.metadata.get("activation")
        if is_complex(call.arrays[0]):
            launch_product(call)
            return
        result, x, third, several = self.correlation(call.outs[0], call.arrays[0], call.arrays[1], call.metadata)
        if self is convolution_weight:
            launch_weights(result, x, third, [each for (each,) in several])
        else:
            body = None if activation is None else body_of(registry[activation], result.itemsize)
            launch_correlations(result, x, third, call.arrays[2], several, body)

    def correlation(self, out: Any, first: Any, second: Any, metadata: dict[str, Any]) -> tuple[Any, ...]:
        """The sum as a correlation: its result, its input, its weights, or for the weights' gradient that of its
        results, with a dimension of groups; and the lines of each dimension."""
        geometry, groups = [metadata[name] for name in ("stride", "padding", "dilation")], metadata["groups"]
        size = metadata["size"]
        if self is convolution_weight:
            along = zip(second.shape[2:], size, *geometry, strict=True)
            weight = out.reshape((groups, out.shape[0] // groups, *out.shape[1:]))
            return weight, grouped(first, groups), grouped(second, groups), [[forward_line(*each)] for each in along]
        weight = second.reshape((groups, second.shape[0] // groups, *second.shape[1:]))
        along = zip(size, second.shape[2:], *geometry, strict=True)
        if self is convolution:
            return grouped(out, groups), grouped(first, groups), weight, [[forward_line(*each)] for each in along]
        weight = weight.transpose((0, 2, 1, *range(3, weight.ndim)))
        return grouped(out, groups), grouped(first, groups), weight, [backward_lines(*each) for each in along]

    def strides_of(self, shape: Shape, first: Any, second: Any) -> Shape:
        """Channels-last where an operand is, as in PyTorch; a gradient of weights is row-major."""
        unit = first.itemsize if isinstance(first, np.ndarray) else 1
        if self is not convolution_weight:
            for each in (first, second):
                found = formats.suggested(each.shape, tuple([step // unit for step in each.strides]))
                if found is not formats.contiguous_format:
                    return formats.strides_of(self.name, found, shape)
        return contiguous_strides(shape)

    def allocate(self, call: Call) -> Shapes:
        """The result."""
        first, second = call.arrays[:2]
        shape: Any = self.shape(first.shape, second.shape, call.metadata["groups"], call.metadata["size"])
        return [(shape, call.results[0].numpy, self.strides_of(shape, first, second))]

    def cost(self, call: Call) -> tuple[int, int]:
        """Each operand moved once; two operations for each product."""
        moved = np.add.reduce([array.nbytes for array in (*call.outs, *call.arrays) if array is not None])
        first, second, out = *call.arrays[:2], call.outs[0]
        weight, result = {
            "convolution": (second, out),
            "convolution_transposed": (second, first),
            "convolution_weight": (out, second),
        }[self.name]
        return int(moved), 2 * result.size * weight.size // max(weight.shape[0], 1)

    def terms(self, call: Call) -> int:
        """The number of products that are summed for each element of the result."""
        return max(super().terms(call), self.cost(call)[1] // max(2 * call.outs[0].size, 1))

    @staticmethod
    def batched(batch: Batch) -> tuple[Any, ...]:
        """More images; or, where kernels or gradients differ, more channels in groups of their own."""
        of_weights = batch.operator.name == "convolution_weight"
        if not of_weights and not any(batch.whole[1:]):
            (result,) = batch(batch.merged(0), *batch.x[1:])
            return (batch.split(result),)
        groups = batch.metadata["groups"] * batch.size
        second = batch.merged(1, 1) if of_weights else batch.merged(1)
        (result,) = batch(batch.merged(0, 1), second, *[batch.merged(i) for i in range(2, len(batch.x))], groups=groups)
        return (batch.split(result, 0 if of_weights else 1),)


# ---- the three sums ------------------------------------------------------------------------------------------------


def _convolution(input, weight, bias=None, *, stride, padding, dilation, groups: int, size, activation=None):
    """The convolution (cross-correlation) of an input with kernels, and the bias of each channel added."""
    geometry = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "size": size}
    return convolution.computed((input, weight, bias), input.dtype, activation, **geometry)


def _convolution_transposed(input, weight, bias=None, *, stride, padding, dilation, groups: int, size, activation=None):
    """The sums of a kernel multiplied by each element of the input, at its place, and the bias of each channel."""
    geometry = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "size": size}
    return convolution_transposed.computed((input, weight, bias), input.dtype, activation, **geometry)


def _convolution_weight(input, result, *, stride, padding, dilation, groups: int, size):
    """The sums of the products of all results and what each element of the kernel lies on for them."""
    geometry = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "size": size}
    return convolution_weight.computed((input, result), input.dtype, **geometry)


def _forward_shape(x: Shape, weight: Shape, groups: int, size: Shape) -> Shape | None:
    if x[1] != weight[1] * groups or weight[0] % groups:
        return None
    return (x[0], weight[0], *size)


def _transposed_shape(y: Shape, weight: Shape, groups: int, size: Shape) -> Shape | None:
    if y[1] != weight[0] or weight[0] % groups:
        return None
    return (y[0], weight[1] * groups, *size)


def _weight_shape(x: Shape, y: Shape, groups: int, size: Shape) -> Shape | None:
    if x[0] != y[0] or x[1] % groups or y[1] % groups:
        return None
    return (y[1], x[1] // groups, *size)


convolution = Convolution("convolution", _convolution, _forward_shape)
convolution.autocasts(cpu="lower", cuda="lower")
convolution_transposed = Convolution("convolution_transposed", _convolution_transposed, _transposed_shape)
convolution_transposed.node = "convolution"
convolution_transposed.autocasts(cpu="lower", cuda="lower")
convolution_weight = Convolution("convolution_weight", _convolution_weight, _weight_shape)


# ---- gradients: the other two sums ---------------------------------------------------------------------------------


def _over_places(grad: Tensor) -> Any:
    return sum(grad, dim=(0, *range(2, grad.ndim)))


def _by(operator: Convolution, grad: Tensor, other: Tensor, shape: Shape, *geometry: Any) -> Any:
    """The gradient that another sum computes, with sizes from its shape."""
    names = ("stride", "padding", "dilation", "groups")
    return operator(grad, other, **dict(zip(names, geometry, strict=True)), size=shape[2:])


convolution.gradients(
    input=lambda grad, weight, input_shape, stride, padding, dilation, groups: _by(
        convolution_transposed, grad, weight, input_shape, stride, padding, dilation, groups
    ),
    weight=lambda grad, input, weight_shape, stride, padding, dilation, groups: _by(
        convolution_weight, input, grad, weight_shape, stride, padding, dilation, groups
    ),
    bias=_over_places,
)
convolution_transposed.gradients(
    input=lambda grad, weight, input_shape, stride, padding, dilation, groups: _by(
        convolution, grad, weight, input_shape, stride, padding, dilation, groups
    ),
    weight=lambda grad, input, weight_shape, stride, padding, dilation, groups: _by(
        convolution_weight, grad, input, weight_shape, stride, padding, dilation, groups
    ),
    bias=_over_places,
)
convolution_weight.gradients(
    input=lambda grad, result, input_shape, stride, padding, dilation, groups: _by(
        convolution_transposed, result, grad, input_shape, stride, padding, dilation, groups
    ),
    result=lambda grad, input, result_shape, stride, padding, dilation, groups: _by(
        convolution, input, grad, result_shape, stride, padding, dilation, groups
    ),
)


# images, groups, channels and rows of each, sizes, kernel, stride, padding, dilation
SAMPLES = (
    (2, 1, 2, 3, (5,), (3,), (1,), (0,), (1,)),
    (1, 1, 2, 2, (4, 5), (3, 2), (1, 2), (1, 0), (1, 1)),
    (1, 2, 1, 1, (5, 4), (2, 3), (2, 1), (2, 1), (2, 1)),
    (1, 2, 2, 1, (3, 3), (1, 1), (1, 1), (0, 0), (1, 1)),
    (1, 1, 1, 2, (3, 2, 3), (2, 2, 2), (1, 2, 2), (1, 1, 0), (1, 1, 2)),
    (0, 1, 2, 3, (5,), (3,), (1,), (0,), (1,)),
    (2, 1, 20, 24, (6, 7), (3, 3), (2, 1), (1, 1), (1, 1)),
    (2, 24, 1, 1, (6, 7), (3, 3), (1, 1), (1, 1), (1, 1)),
)


def _samples(operator: Convolution, draw: Any) -> Iterator[tuple[Any, ...]]:
    for images, groups, channels, rows, sizes, kernel, *geometry in SAMPLES:
        size = tuple([forward_size(*each) for each in zip(sizes, kernel, *geometry, strict=True)])
        x, y = (images, groups * channels, *sizes), (images, groups * rows, *size)
        weight = (groups * rows, channels, *kernel)
        shapes, result = {
            "convolution": ((x, weight, y[1:2]), size),
            "convolution_transposed": ((y, weight, x[1:2]), sizes),
            "convolution_weight": ((x, y), kernel),
        }[operator.name]
        metadata = dict(zip(("stride", "padding", "dilation"), geometry, strict=True))
        yield [draw(shape) for shape in shapes], {**metadata, "groups": groups, "size": result}


for each in (convolution, convolution_transposed, convolution_weight):
    each.samples(partial(_samples, each))
