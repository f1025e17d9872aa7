"""The `Gradient` of an operator, made of the gradient functions in its declaration."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from ..errors import AutogradError, UnsupportedError
from ..memory.array import DeviceArray
from ..memory.lifted import Lifted
from ..types import dtypes
from . import watched
from .mode import enable_grad, recording
from .names import node_of
from .tape import _FREED, Gradient, Node, Slot, inside_package, next_age, record

__all__ = ["OperatorGradient", "Underived", "Unmoved", "attach", "called", "constant_in", "no_derivative"]
__all__ += ["is_written", "not_by", "underived", "unknown", "unmoved"]

Made = TypeVar("Made", bound=Any)
ndarray = np.ndarray
_getframe = sys._getframe


class Declaration(Protocol):
    """The attributes of an operator that an `OperatorGradient` reads."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    metadata: dict[str, Any]
    variadic: bool
    rule: Any
    gradients_of: dict[str, Callable[..., Any]]
    joint_gradient: Callable[..., Any] | None
    device_gradient: Callable[..., Any] | None


class OperatorGradient(Gradient):
    """Computes an operator's gradients with respect to one subset of its inputs.

    One is made per subset. `capture` lists the values that a node saves for it: inputs, outputs, metadata, or the shape
    of an input. The names of a gradient function's parameters select them.
    """

    __slots__ = (
        "arithmetic",
        "calls",
        "capture",
        "edges",
        "evaluate",
        "frees",
        "has_tensors",
        "holomorphic",
        "joint",
        "labels",
        "name",
        "on_device",
        "one",
        "ours",
        "overload",
        "positions",
        "saves_output",
        "title",
    )

    def __init__(self, operator: Declaration, mask: tuple[bool, ...]) -> None:
        self.name, self.overload = node_of(operator), getattr(operator, "overload", None)
        self.title = ""  # see `called`
        self.holomorphic = getattr(operator, "holomorphic", True)
        names = operator.inputs if not operator.variadic else tuple(f"x{i}" for i in range(len(mask)))
        joint = operator.joint_gradient
        if not operator.rule.differentiable:
            mask = (False,) * len(mask)
        self.joint = joint is not None
        self.on_device = operator.device_gradient
        self.positions = tuple(
            i for i, needed in enumerate(mask) if needed and (self.joint or names[i] in operator.gradients_of)
        )
        # how `attach` finds the edges: 2 for both of two inputs, 1 for one of any, 0 for others
        self.edges = 2 if self.positions == (0, 1) == tuple(range(len(mask))) else int(len(self.positions) == 1)
        functions = [joint] if joint is not None else [operator.gradients_of[names[i]] for i in self.positions]
        captured: dict[tuple[str, Any], int] = {}
        self.calls = []
        for function in functions:
            picks = [
                captured.setdefault(_source(operator, name, names, mask), len(captured))
                for name in list(inspect.signature(function).parameters)[1:]
            ]
            self.calls.append((function, tuple(picks)))
        # A function whose code names no attribute, method or other function is arithmetic on its parameters, so it can
        # run on the arrays themselves: 0.4 us for a product against 0.75.
        self.arithmetic = not self.joint and all(
            not function.__code__.co_names and not function.__code__.co_freevars for function in functions
        )
        self.ours = all(inside_package(function.__code__.co_filename) for function in functions)
        self.evaluate = _evaluator(self.calls)
        self.capture = tuple(captured)
        self.labels = tuple(
            names[key]
            if kind == "input"
            else f"{names[key]}_shape"
            if kind == "shape"
            else operator.outputs[key]
            if kind == "output"
            else key
            for kind, key in self.capture
        )
        self.saves_output = any(kind == "output" for kind, _ in self.capture)
        # what `attach` saves: None for nothing, the position of one input, -1 for anything else
        only = self.capture[0] if len(self.capture) == 1 else ("", 0)
        self.one: int | None = (only[1] if only[0] == "input" else -1) if self.capture else None
        self.has_tensors = self.saves_output or any(kind in ("input", "inputs") for kind, _ in self.capture)
        self.frees = self.has_tensors

    def keep(self, inputs: Sequence[Any], outputs: Sequence[Any], metadata: dict[str, Any]) -> tuple[Any, ...]:
        """The values that a node saves; outputs are saved without their node, which would be a reference cycle."""
        saved = []
        for kind, key in self.capture:
            if kind == "input":
                saved.append(inputs[key])
            elif kind == "output":
                saved.append(outputs[key]._without_node())
            elif kind == "metadata":
                saved.append(metadata[key])
            elif kind == "shape":
                saved.append(tuple(inputs[key]._data.shape))
            elif kind == "inputs":
                saved.append(tuple(inputs))
            else:
                saved.append(key)
        return tuple(saved)

    def name_of(self, node: Node) -> str:
        """PyTorch's name, with the number of the overload."""
        if self.title:
            return self.title
        if self.overload is None or node.saved is _FREED or not node.saved:
            return self.name
        return f"{self.name[:-1]}{self.overload(dict(zip(self.labels, node.saved, strict=True)))}"

    def run(self, node: Node, gradient: Any) -> Sequence[Any]:
        """The gradients of the inputs in `positions`.

        Gradient functions multiply by derivatives. Of a complex gradient the conjugate goes in and comes out, which
        multiplies by their conjugates: PyTorch's convention, https://pytorch.org/docs/stable/notes/autograd.html.
        """
        data = None
        if gradient.__class__ is not list:
            data = gradient._data
            if data.dtype.kind == "c" and self.holomorphic:
                return [part if part is None else part.conj() for part in self._parts(node, gradient.conj())]
        elif not recording.enabled:
            data = next((each._data for each in gradient if each is not None), None)
        if data.__class__ is not ndarray and not recording.enabled and getattr(data, "has_tangents", False):
            # gradients of the form that can be differentiated again have tangents, fused ones have not
            with enable_grad():
                return [part if part is None else part._without_node() for part in self._parts(node, gradient)]
        return self._parts(node, gradient)

    def _parts(self, node: Node, gradient: Any) -> Sequence[Any]:
        values = node.saved
        if self.saves_output and recording.enabled:
            values = tuple(
                _reattach(value, node, key) if kind == "output" else value
                for value, (kind, key) in zip(values, self.capture, strict=True)
            )
        if self.joint:
            function, picks = self.calls[0]
            parts = function(gradient, *[values[i] for i in picks])
            return [parts[i] for i in self.positions] if parts.__class__ is tuple else (parts,)
        if len(self.calls) == 1:
            function = self.calls[0][0]
            if self.on_device is not None:
                data = gradient._data
                function = self.on_device if data.__class__ is DeviceArray and data.dtype.kind != "c" else function
            return (function(gradient, *values),)
        return [function(gradient, *[values[i] for i in picks]) for function, picks in self.calls]

    def run_on_arrays(self, values: tuple[Any, ...], array: np.ndarray) -> list[np.ndarray] | None:
        """Gradients that are arithmetic, computed on CPU arrays of one dtype; None where that is not possible."""
        kind = array.dtype
        if kind is not _FLOAT32 and kind is not _FLOAT64:
            return None
        arrays = [getattr(value, "_data", value) for value in values]
        try:
            parts = self.evaluate(array, arrays)
        except (TypeError, RuntimeWarning, FloatingPointError):
            # a device array cannot be read here; and where warnings are errors the operator itself suppresses them
            return None
        for part in parts:
            # a saved value has another dtype, which NumPy promotes by its own rules, or the result is a number
            if part.dtype is not kind or type(part) is not ndarray:
                return None
        return parts


def attach(
    backward: OperatorGradient,
    result: Any,
    inputs: Sequence[Any],
    frame: Any,
    alike: bool = True,
    outputs: Sequence[Any] | None = None,
    metadata: dict[str, Any] | None = None,
) -> None:
    """Leave a node on a call's first result.

    Args:
        backward: the gradient with respect to the inputs that need one.
        frame: a frame of the call stack between the user's code and this function.
        alike: all inputs have the shape and the dtype of the first result; otherwise they are compared.
        outputs, metadata: of the call, where it has several results, or metadata.
    """
    node = Node()
    node.backward = backward
    node.age = next_age()
    node.reduce = node.hooks = None
    node.outputs = 1
    edges = backward.edges
    if edges == 2:
        x, y = inputs
        node.next = (x._node or x if x._origin is None else x._edge(), y._node or y if y._origin is None else y._edge())
    elif edges == 1:
        x = inputs[backward.positions[0]]
        node.next = (x._node or x if x._origin is None else x._edge(),)
    else:
        some = map(inputs.__getitem__, backward.positions)
        node.next = tuple([x._node or x if x._origin is None else x._edge() for x in some])
    if not alike:
        positions = backward.positions
        shape, kind = result._data.shape, result._data.dtype
        forms: list[Any] = []
        fits = True
        for i in positions:
            data = inputs[i]._data
            forms.append((data.shape, data.dtype))
            if data.shape != shape or data.dtype != kind:
                fits = False
        if not fits:
            node.reduce = tuple(forms)
    if backward.one is None:
        node.saved = ()
        node.versions = None
    elif backward.one >= 0:
        value = inputs[backward.one]
        counter: Any = getattr(value, "_counter", False)
        node.saved = (value,)
        node.versions = (0,) if counter is None else (counter[0],) if counter else None
    else:
        node.saved = saved = backward.keep(inputs, outputs or (result,), metadata or {})
        node.versions = None
        if backward.has_tensors:
            versions: list[int | None] = []
            for value in saved:  # not by a function, which is called for each, or a comprehension
                counter = getattr(value, "_counter", False)
                versions.append(counter[0] if counter else 0 if counter is None else None)
            node.versions = tuple(versions)
    # what `Node.mark` does, without the call
    code = frame.f_code
    while inside_package(code.co_filename):
        frame = frame.f_back
        if frame is None:
            break
        code = frame.f_code
    node.code, node.instruction = (None, 0) if frame is None else (code, frame.f_lasti)
    result._needs = True
    result._node = node
    if watched.on:
        watched.made(node)


def no_derivative(name: str) -> UnsupportedError:
    """The error of a backward pass through a function that has no derivative."""
    words = f"the derivative for '{name}' is not implemented."
    return UnsupportedError(words, remedy="detach() the argument that it is of, or what is computed from it")


class Underived(Gradient):
    """Raises when a gradient comes: of a function without a derivative."""

    __slots__ = ("function", "name")

    def __init__(self, function: str, name: str) -> None:
        self.function, self.name = function, name

    def run(self, node: Node, gradient: Any) -> Any:
        """Raise."""
        raise no_derivative(self.function)


class Unmoved(Gradient):
    """The gradient of what does not change with the inputs: zeros."""

    def __init__(self, name: str, inputs: Sequence[Any]) -> None:
        self.name, self.shapes = name, [(each.shape, each.dtype) for each in inputs]

    def run(self, node: Node, gradient: Any) -> list[Any]:
        """Zeros."""
        return [gradient.new_zeros(shape, dtype=dtype) for shape, dtype in self.shapes]


def unmoved(name: str, result: Made, *inputs: Any) -> Made:
    """`result`, of which the derivatives are 0 although it was computed from the inputs; `name` is that of its node."""
    needing = [x for x in inputs if recording.enabled and getattr(x, "_needs", False)]
    if needing:
        result._node, result._needs = record(Unmoved(name, needing), tuple([x._edge() for x in needing])), True
    return result


NOT_IMPLEMENTED = "torch::autograd::NotImplemented"


def underived(function: str, result: Made, *inputs: Any, name: str = NOT_IMPLEMENTED) -> Made:
    """`result`, of a function that has no derivative by any of its inputs: a backward pass through it raises.

    Args:
        result: what was computed without recording: a tensor, or a tuple of results, of which floating ones get nodes.
        name: of the node. PyTorch knows some of these functions, and their nodes are called after them.

    Raises:
        UnsupportedError: an input has a tangent of forward mode.
    """
    tensors = [x for x in inputs if hasattr(x, "_needs")]
    if any(isinstance(x._data, Lifted) and x._data.moves() for x in tensors):
        words = f"Trying to use forward AD with {function} that does not support it because it has not been implemented"
        raise UnsupportedError(f"{words} yet.", remedy="detach() the argument that has a tangent")
    edges = tuple([x._edge() for x in tensors if x._needs]) if recording.enabled else ()
    if edges:
        _mark(result, Underived(function, name), edges)
    return result


def unknown(operator: Any, result: Any, inputs: Sequence[Any]) -> None:
    """Mark the result of an operator that declares no gradient of the inputs, but of those in which it is constant."""
    if operator.constant is not True:
        last = len(operator.inputs) - 1
        moving = [x for i, x in enumerate(inputs) if operator.inputs[min(i, last)] not in operator.constant]
        underived(operator.name, result, *[x for x in moving if getattr(x, "_needs", False)])


def is_written(x: Any) -> bool:
    """True if a tensor that requires grad may go to `out=`: in PyTorch the results of some functions do."""
    backward = getattr(x._node, "backward", None)
    return isinstance(backward, Underived) and backward.name == NOT_IMPLEMENTED


def _mark(result: Any, backward: Gradient, edges: tuple[Any, ...]) -> None:
    if isinstance(result, tuple):
        for each in result:
            _mark(each, backward, edges)
    elif result.dtype.category >= dtypes.FLOATING:
        result._node, result._needs = record(backward, edges), True


def not_by(function: str, argument: str) -> AutogradError:
    """The error of a call with an argument that requires grad, by which the function has no derivative."""
    words = f"The function '{function}' is not differentiable with respect to argument '{argument}'. This input cannot "
    return AutogradError(f"{words}have requires_grad True.", remedy=f"detach() {argument}")


def constant_in(function: str, **arguments: Any) -> None:
    """Raise `not_by` if one of the arguments requires grad."""
    for name, value in arguments.items():
        if recording.enabled and value is not None and value._needs:
            raise not_by(function, name)


def called(name: str, result: Made) -> Made:
    """`result`, whose node gets PyTorch's name for the function that was called instead of the last operator's."""
    node = result._node.node if result._node.__class__ is Slot else result._node
    if node.__class__ is Node:
        node.backward = node.backward.renamed(name)
    return result


def _evaluator(calls: Sequence[tuple[Any, tuple[int, ...]]]) -> Any:
    """A function of the gradient and the saved values that makes all calls.

    The cases of one function, and of two functions of one value each (products), are written out, which saves 0.3 us
    of a 3 us node.
    """
    if len(calls) == 1:
        function = calls[0][0]
        return lambda array, values: [function(array, *values)]
    if len(calls) == 2 and [len(picks) for _, picks in calls] == [1, 1]:
        (first, (i,)), (second, (j,)) = calls
        return lambda array, values: [first(array, values[i]), second(array, values[j])]
    return lambda array, values: [function(array, *[values[i] for i in picks]) for function, picks in calls]


_FLOAT32, _FLOAT64 = dtypes.float32.numpy, dtypes.float64.numpy


def _source(operator: Declaration, name: str, names: tuple[str, ...], mask: tuple[bool, ...]) -> tuple[str, Any]:
    """The kind of value that a gradient function's parameter names, and its position or key."""
    if name in operator.outputs:
        return "output", operator.outputs.index(name)
    if name in names:
        return "input", names.index(name)
    if name in operator.metadata:
        return "metadata", name
    if name == "needs":
        return "constant", mask
    if name == "inputs":
        return "inputs", None
    if name.endswith("_shape") and name[:-6] in names:
        return "shape", names.index(name[:-6])
    raise TypeError(f"gradient of {operator.name}: no input, output or metadata is called {name!r}")


def _reattach(value: Any, node: Node, index: int) -> Any:
    """A saved output as part of the graph again, for second derivatives."""
    tensor = value._without_node()
    if value.dtype.category >= dtypes.FLOATING:
        tensor._node, tensor._needs = node if node.outputs == 1 else Slot(node, index), True
    return tensor
