"""The recurrent family: all steps of a layer in one direction, and their gradients.

`x` has a row for each element of each step (see `order.py`); `h` (and `c` for LSTM) are the first states of all
sequences; `w` and `b` are the weight and the bias of x, `u` and `d` those of the states. What goes through x, and the
gradients of weights, are products over all steps at once; a step is one product and the gates' arithmetic. Steps of
equal rows are one launch where the device and the sizes allow it (`sequence.py`), others a launch each (`kernel.py`).

Formulas: PyTorch's documentation of LSTM (with projections, https://arxiv.org/abs/1402.1128), GRU and RNN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from ...autograd.backward import grad as gradients_by
from ...autograd.mode import recording
from ...autograd.tape import Slot
from ...errors import ShapeError
from ...memory import buffer
from ...operators import Dtypes, Operator, Shapes, copy_into
from ...operators.rules import Floating
from ...runtime.call import Call
from ...runtime.reference import with_casts
from ...tensors import Tensor
from ..indexing.joining import cat
from ..matmul.family import linear
from ..matmul.launch import launch_product
from ..rowwise.kernel import contiguous
from .kernel import launch_step, step_backward_kernel, step_kernel
from .order import Sizes, ends, places_before, steps
from .reference import GATES, backward, forward
from .sequence import launch_sequence, sequence_backward_kernel, sequence_kernel

# sizes of the steps, whether they are reversed, inputs, units, biases, and the size of projected states
_SAMPLES = (
    ((2, 2), False, 1, 2, True, 1),
    ((2, 2, 1), True, 1, 2, True, 0),
    ((2, 1), False, 2, 1, False, 0),
    ((7,), False, 3, 2, False, 0),
)


class _Steps(Operator):
    """All steps, forward or backward, of "lstm", "gru", "tanh" or "relu"."""

    about = "All steps of a layer and direction, in one launch or one for each: products with the gates' arithmetic."
    family = "recurrent"
    repeatable = "cpu"  # on a device a replay would hold a launch for each step of one length

    def __init__(self, mode: str, reference: Callable[..., Any], name: str, outputs: Sequence[str], doc: str) -> None:
        super().__init__(name, partial(reference, mode, None), Floating("floating", mode), outputs=outputs)
        self.mode, self.gates, self.__doc__ = mode, GATES[mode], doc

    def prepare(self, call: Call) -> None:
        """Check that the inputs fit together. Without sizes all rows are one step."""
        given = {name: x.shape for name, x in zip(self.inputs, call.inputs) if x is not None}
        sizes = call.metadata["sizes"] = call.metadata["sizes"] or (len(call.inputs[0]),)
        wide, states = given["u"]
        rows, units = sum(sizes), wide // self.gates
        width, projected = given.get("w", (0, 0))[-1], "projection" in given
        shapes: list[Any] = [((rows, width), "x"), ((wide, width), "w"), ((wide, states if projected else units), "u")]
        shapes += [((wide,), "bd"), ((sizes[0], states), "h"), ((sizes[0], units), "c"), ((rows, wide), ["gates"])]
        shapes += [((states, units), ["projection"]), ((rows, states), ["grad"])]
        shapes += [((rows, units), ["kept", "before", "grad_cells"])]
        wanted = {name: shape for shape, names in shapes for name in names}
        for name, shape in given.items():
            if wanted.get(name, shape) != shape:
                raise ShapeError(f"{self.name}: {name} must have the shape {wanted[name]}, got {shape}")

    def on_host(self, call: Call) -> Callable[..., Any]:
        """The reference; with states of half precision as a device multiplies them."""
        half, kinds = call.results[0].numpy, [call.compute.numpy] * len(call.inputs)
        reference: Any = self.reference
        if half != kinds[0]:
            reference = partial(reference.func, self.mode, half)
        return with_casts(reference, kinds, call)

    def calls(self, draw: Any) -> Iterator[tuple[Any, ...]]:
        """With projected states, of unequal lengths, in both directions, and of one step."""
        lstm = self.mode == "lstm"
        for sizes, reverse, width, units, biased, projected in _SAMPLES[: 2 if draw.gradient else 4]:
            rows, wide, states = sum(sizes), self.gates * units, (projected * lstm) or units
            shapes: dict[str, Any] = {"x": (rows, width), "h": (sizes[0], states)}
            shapes |= {"w": (wide, width), "u": (wide, states), "b": (wide,) * biased, "d": (wide,) * biased}
            shapes |= {"c": (sizes[0], units) * lstm, "projection": (states, units) * (states != units)}
            shapes |= {"grad": (rows, states), "grad_cells": (rows, units) * projected * lstm}
            # small weights: slopes of gates that are nearly open or closed are lost in rounding
            made = {name: draw(shape, (-0.7, 0.7)) if shape else None for name, shape in shapes.items()}
            kept = {"gates": (rows, wide), "kept": (rows, units), "before": (rows, units)}
            made |= {
                name: draw(shape, (0.05, 0.95)) for name, shape in kept.items() if self.gates > 1 or name == "gates"
            }
            # a step of all rows has no sizes, so that tests may enlarge it
            yield [made.get(name) for name in self.inputs], {"sizes": sizes[1:] and sizes, "reverse": reverse}


class _Backward(_Steps):
    """The gradients of the gates' arguments in all steps, and what goes to the first states without a product."""

    def __init__(self, mode: str) -> None:
        doc = f"The gradients of {mode}_steps' gates, and what they are made of."
        super().__init__(mode, backward, f"{mode}_steps_backward", ("part", "carried", "third"), doc)

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """The weight's dtype; what is carried has the compute dtype."""
        compute, result = self.rule(self.name, call.inputs[1:2])
        return compute, (result, compute, result)

    def allocate(self, call: Call) -> Shapes:
        """Rows as wide as the gates, a row for each sequence, and rows of the products' or the states' gradients."""
        rows, (wide, states), gru = len(call.arrays[0]), call.arrays[1].shape, self.mode == "gru"
        third = (rows if gru or call.arrays[-1] is not None else 0, wide if gru else states)
        carried = (call.metadata["sizes"][0] if self.gates > 1 else 0, wide // self.gates)
        return [(shape, kind.numpy) for shape, kind in zip(((rows, wide), carried, third), call.results)]

    def launch(self, call: Call) -> None:
        """One launch, or one for each step, or two with projected states."""
        given: list[Any] = [each if each is None else contiguous(each) for each in call.arrays]
        (gates, u, *kept, grad, grad_cells, projection), (part, carried, third) = given, call.outs
        copy_into(carried, 0)
        gru, sizes, reverse = self.mode == "gru", call.metadata["sizes"], not call.metadata["reverse"]
        every = tuple([each for each in (gates, *kept, grad_cells) if each is not None])
        if projection is None:
            outs: Any = (part, third) if gru else (part,)
            arguments: Any = (outs, () if grad is None else (grad,), outs[-1], u, every, carried)
            if launch_sequence(sequence_backward_kernel, self.mode, self.gates, arguments, sizes, reverse):
                return
        for start, count, before, known in steps(sizes, reverse):
            here = tuple([each[start:] for each in every])
            grads = () if grad is None else (grad[start:],)
            product, weight, outs = (third if gru else part)[before:], u, (part[start:], *([third[start:]] * gru))
            if projection is not None:
                arguments = ((third[start:],), grads, product, u, (), carried)
                launch_step(step_backward_kernel, "linear", 1, arguments, count, known, u)
                product, weight, grads, known = third[start:], projection, (), count
            arguments = (outs, grads, product, weight, here, carried)
            launch_step(step_backward_kernel, self.mode, self.gates, arguments, count, known, weight)


class Recurrent(_Steps):
    """All steps: `(x, h, w, u, b, d, c, projection) -> states, and what is kept for the gradients`.

    Args:
        step: a step of tensor operators, for second derivatives: `(input's part, states, u, d, projection) -> states`.
    """

    main = 0  # what is kept has the compute dtype

    def __init__(self, mode: str, step: Callable[..., Any]) -> None:
        doc = f"All steps of {mode} in one direction: states, and what is kept for their gradients."
        super().__init__(mode, forward, f"{mode}_steps", ("out", "kept", "gates"), doc)
        self.step, self.backward = step, _Backward(mode)
        self.gradient(self.gradients_by_steps)

    def allocate(self, call: Call) -> Shapes:
        """A row for each of x."""
        rows, (wide, states) = len(call.arrays[0]), call.arrays[3].shape
        more = rows if self.gates > 1 else 0
        shapes = ((rows, states), (more, wide // self.gates), (more, wide))
        return [(shape, kind.numpy) for shape, kind in zip(shapes, call.results)]

    def cost(self, call: Call) -> tuple[int, int]:
        """Each operand moved once; two operations for each product with a weight, or with a projection."""
        x, weights = call.arrays[0], [call.arrays[at] for at in (2, 3, 7) if call.arrays[at] is not None]
        return super().cost(call)[0], 2 * len(x) * sum(weight.size for weight in weights)

    def launch(self, call: Call) -> None:
        """The part of x by a product; then one launch, or one for each step, or two with projected states."""
        arrays: list[Any] = [each if each is None else contiguous(each) for each in call.arrays]
        x, h, w, u, b, d, c, projection = arrays
        (out, kept, gates), biases = call.outs, () if d is None else (d,)
        given = gates if self.gates > 1 else out  # a step reads what the input gives, and writes the gates there
        launch_product(given, x, w.transpose((1, 0)), b, None)
        hidden = None if projection is None else buffer.empty(c.shape, out.dtype, out.device)
        sizes, reverse = call.metadata["sizes"], call.metadata["reverse"]
        if hidden is None:
            arguments: Any = ((out, kept, gates), given, h, () if c is None else (c,), u, biases)
            if launch_sequence(sequence_kernel, self.mode, self.gates, arguments, sizes, reverse):
                return
        for start, count, before, known in steps(sizes, reverse):
            outs = (out[start:] if hidden is None else hidden, kept[start:], gates[start:])
            cells = () if c is None else (kept[before:], c)
            arguments = (outs, given[start:], out[before:], h, cells, u, biases)
            launch_step(step_kernel, self.mode, self.gates, arguments, count, known, u)
            if hidden is not None:
                arguments = ((out[start:],), hidden, hidden, hidden, (), projection, ())
                launch_step(step_kernel, "linear", 1, arguments, count, count, projection)

    def record(
        self, outputs: tuple[Tensor, ...], inputs: Sequence[Any], metadata: dict[str, Any], alike: bool = False
    ) -> None:
        """Leave a node; gradients go through the cells of LSTM, too."""
        super().record(outputs, inputs, metadata)
        node = outputs[0]._node
        if self.mode == "lstm" and node is not None:
            node.outputs = 2
            for index in range(2):
                outputs[index]._node, outputs[index]._needs = Slot(node, index), True

    def gradients_by_steps(self, grads, x, h, w, u, b, d, c, projection, out, kept, gates, sizes, reverse: bool, needs):
        """The gradients of all inputs that need one, None for the others."""
        grads, order = grads if grads.__class__ is list else [grads, None], {"sizes": sizes, "reverse": reverse}
        if recording.enabled:
            return self.composed(grads, (x, h, w, u, b, d, c, projection), sizes, reverse, needs)
        before = _before(out, h, **order)
        old = {"lstm": lambda: _before(kept, c.to(kept.dtype), **order), "gru": lambda: before}.get(self.mode)
        more = (gates, u, kept, old()) if old else (out, u, None, None)
        part, carried, third = self.backward(*more, *grads, projection, **order)
        product = third if self.mode == "gru" else part

        def of_first() -> Any:
            found = product[ends(sizes, not reverse)] @ u
            return found + carried if self.mode == "gru" else found

        ways: dict[str, Callable[[], Any]] = {
            "x": lambda: part @ w,
            "h": of_first,
            "w": lambda: part.mT @ x,
            "u": lambda: product.mT @ before,
            "b": lambda: part.sum(0),
            "d": lambda: product.sum(0),
            "c": lambda: carried,
            "projection": lambda: third.mT @ (gates.chunk(4, 1)[3] * kept.tanh()).to(third.dtype),
        }
        return tuple([ways[name]() if need else None for name, need in zip(self.inputs, needs, strict=True)])

    def composed(
        self, grads: Sequence[Any], inputs: Sequence[Any], sizes: Sizes, reverse: bool, needs: Sequence[bool]
    ) -> tuple[Any, ...]:
        """The same from steps of tensor operators, which can be differentiated again."""
        # one input may have been computed from another: each gets a node of its own
        own: list[Any] = [None if each is None else each.view_as(each) for each in inputs]
        x, h, w, u, b, d, c, projection = own
        first = [h] if c is None else [h, c]
        given, states, rows = linear(x, w, b), first, []
        for start, count, _, known in steps(sizes, reverse):
            states = [cat(each[:known], other[known:count], dim=0) for each, other in zip(states, first, strict=True)]
            states = self.step(given[start : start + count], states, u, d, projection)
            rows.append(states)
        results = [cat(*parts, dim=0) for parts in zip(*rows[:: -1 if reverse else 1], strict=True)]
        outs, of_outs = zip(*[(out, grad) for out, grad in zip(results, grads) if grad is not None], strict=True)
        wanted = [each for each, need in zip(own, needs, strict=True) if need]
        found = iter(gradients_by(outs, wanted, of_outs, create_graph=True, allow_unused=True))
        return tuple([next(found) if need else None for need in needs])


def _before(rows: Tensor, first: Tensor, sizes: Sizes, reverse: bool) -> Any:
    """For each row that of the step before it."""
    count = sizes[0]
    if sizes[-1] != count:
        return cat(first, rows, dim=0)[places_before(sizes, reverse)]
    return cat(rows[count:], first, dim=0) if reverse else cat(first, rows[: len(rows) - count], dim=0)


def _lstm_step(x, states, u, d, projection):
    i, f, g, o = (x + linear(states[0], u, d)).chunk(4, 1)
    cell = f.sigmoid() * states[1] + i.sigmoid() * g.tanh()
    state = o.sigmoid() * cell.tanh()
    return [state if projection is None else linear(state, projection), cell]


def _gru_step(x, states, u, d, projection):
    (r, z, n), (of_r, of_z, of_n) = x.chunk(3, 1), linear(states[0], u, d).chunk(3, 1)
    new = (n + (r + of_r).sigmoid() * of_n).tanh()
    return [new + (z + of_z).sigmoid() * (states[0] - new)]


RECURRENT = {
    "lstm": Recurrent("lstm", _lstm_step),
    "gru": Recurrent("gru", _gru_step),
    "tanh": Recurrent("tanh", lambda x, states, u, d, projection: [(x + linear(states[0], u, d)).tanh()]),
    "relu": Recurrent("relu", lambda x, states, u, d, projection: [(x + linear(states[0], u, d)).relu()]),
}
