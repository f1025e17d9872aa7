"""User-defined functions with a gradient."""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import autograd
from ..autograd.forward_ad import joined
from ..autograd.levels import aligned, below, enter, innermost, leave, primal_of, tangent_of
from ..autograd.mode import recording
from ..autograd.tape import Gradient, Node, Slot, record
from ..errors import ArgumentError, AutogradError
from ..memory import buffer
from ..memory.lifted import Level, Lifted, open_levels
from ..tensors import Tensor, wrap
from ..types import devices, dtypes
from .copying import copy_into


def _inside(x: Tensor) -> bool:
    return isinstance(x._data, Lifted) and x._data.level is not None


class FunctionCtx:
    """The context that `forward` passes to `backward`.

    Attributes:
        needs_input_grad: for each argument of `forward`, whether it needs a gradient.
        saved_tensors: the tensors passed to `save_for_backward`, checked for in-place changes.
    """

    needs_input_grad: tuple[bool, ...] = ()
    _saved: tuple[Any, ...] = ()
    _node: weakref.ref[Node] | None = None  # the node owns the context
    _outputs: dict[str, _Output]  # those that `forward` kept as attributes
    _no_gradient: frozenset[int] = frozenset()
    _dirty: tuple[Tensor, ...] = ()
    _forward: tuple[Any, ...] | None = None  # until `jvp` was called
    materialize_grads = True

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`, where `saved_tensors` are these."""
        self._forward = tensors

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `backward`."""
        for position, value in enumerate(tensors):
            if not isinstance(value, Tensor) and value is not None:
                kind = type(value).__name__
                raise ArgumentError(
                    f"save_for_backward can only save variables, but argument {position} is of type {kind}"
                )
        self._saved = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors that were kept.

        Raises:
            AutogradError: the graph was freed, or one was changed in place since.
        """
        if self._forward is not None or self._node is None:
            return self._saved if self._forward is None else self._forward
        node = self._node()
        if node is None:
            raise AutogradError("the graph that this context belongs to is gone")
        node.check_saved()
        return tuple([value.of(node) if hasattr(value, "of") else value for value in node.saved])

    def __getattr__(self, name: str) -> Any:
        node = self._node() if self._node is not None else None
        kept = self.__dict__.get("_outputs", {})
        if node is None or name not in kept:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return kept[name].of(node)

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Declare outputs that have no gradient."""
        for value in tensors:
            if not isinstance(value, Tensor):
                words = "mark_non_differentiable only accepts variable arguments, but got"
                raise AutogradError(f"{words} {type(value).__name__}")
        self._no_gradient = frozenset(id(tensor) for tensor in tensors)

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declare inputs that `forward` changed in place; they must be among the outputs."""
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Sets whether `backward` gets zeros (True) or None for outputs without a gradient."""
        if not isinstance(value, bool):
            words = f"set_materialize_grads received an invalid combination of arguments - got ({type(value).__name__})"
            raise ArgumentError(f"{words}, but expected (bool)")
        self.materialize_grads = value


class _Output:
    """An output that a function keeps for its gradient. The output itself would own the node that owns this.

    Attributes:
        index: which output it is; None if it has no gradient.
    """

    def __init__(self, output: Tensor, index: int | None) -> None:
        self.value, self.index = output._without_node(), index

    def __getattr__(self, name: str) -> Any:
        return getattr(self.value, name)  # the version and the shape, for the tape and its messages

    def of(self, node: Node) -> Tensor:
        """The output, with its history."""
        output = self.value._without_node()
        if self.index is not None:
            output._node = node if node.outputs == 1 else Slot(node, self.index)
            output._needs = True
        return output


class _Backward(Gradient):
    """The node's gradient computation for a Function."""

    ours = reads = False

    def __init__(
        self, function: type[Function], ctx: FunctionCtx, inputs: tuple[Any, ...], outputs: Sequence[Any]
    ) -> None:
        self.name = f"{function.__name__}Backward"
        self.function, self.ctx = function, ctx
        self.positions = [i for i, value in enumerate(inputs) if isinstance(value, Tensor) and value._needs]
        self.forms = [(tuple(inputs[i].shape), inputs[i].dtype) for i in self.positions]
        self.tensors = [isinstance(value, Tensor) for value in inputs]
        self.outputs = [
            (tuple(out.shape), out.dtype, out.device) if isinstance(out, Tensor) else None for out in outputs
        ]

    def run(self, node: Node, gradient: Any) -> list[Any]:
        """Call `backward` and check what it returns."""
        gradients = [gradient] if node.outputs == 1 else list(gradient)
        if self.ctx.materialize_grads:
            gradients = [
                _zeros(*form) if value is None and form is not None else value
                for value, form in zip(gradients, self.outputs, strict=True)
            ]
        own = self.function.vjp is not Function.vjp
        returned = (self.function.vjp if own else self.function.backward)(self.ctx, *gradients)
        parts = returned if isinstance(returned, tuple) else (returned,)
        count = len(self.tensors)
        while len(parts) > count and parts[-1] is None:
            parts = parts[:-1]
        if len(parts) != count:
            raise AutogradError(
                f"function {self.name} returned an incorrect number of gradients (expected {count}, got {len(parts)})"
            )
        for position, (part, is_tensor) in enumerate(zip(parts, self.tensors, strict=True), 1):
            if part is not None and not is_tensor:
                raise AutogradError(
                    f"function {self.name} returned a gradient different than None at position {position}, but the "
                    "corresponding forward input was not a Variable"
                )
        wanted = []
        for position, (shape, dtype) in zip(self.positions, self.forms, strict=True):
            part = parts[position]
            if part is not None and not isinstance(part, Tensor):
                raise ArgumentError(f"expected Variable or None (got {type(part).__name__})")
            if part is not None and tuple(part.shape) != shape:
                try:
                    part = part.sum_to_size(shape)
                except Exception:
                    raise AutogradError(
                        f"Function {self.name} returned an invalid gradient at index {position} - got "
                        f"{list(part.shape)} but expected shape compatible with {list(shape)}"
                    ) from None
            wanted.append(part if part is None or part.dtype is dtype else part.to(dtype))
        return wanted


def _zeros(shape: tuple[int, ...], dtype: dtypes.dtype, device: devices.device) -> Tensor:
    """A tensor of zeros; the functions that make such are of a room above."""
    if device is devices.cpu:
        return wrap(np.zeros(shape, dtype.numpy))
    data = buffer.empty(shape, dtype.numpy, device)
    copy_into(data, 0)
    return wrap(data)


class VmapInfo(NamedTuple):
    """The facts of a batch that a Function's `vmap` is told."""

    batch_size: int
    randomness: str


class Function:
    """An operation with its own gradient: subclass it with static methods `forward(ctx, ...)` and `backward(ctx, ...)`.

    `forward` may call anything, a Triton kernel of your own included, and is not recorded. `backward` gets a gradient
    per output and returns one per argument of `forward` (None for arguments that are not tensors).

    >>> import tritensor as torch
    >>> class Double(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> x = torch.ones(2, requires_grad=True)
    >>> Double.apply(x).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """

    generate_vmap_rule = False

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs from `(ctx, *arguments)`, or from the arguments alone with `setup_context`."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    if TYPE_CHECKING:  # methods with any parameters override these
        backward: Callable[..., Any]
        vjp: Callable[..., Any]
        jvp: Callable[..., Any]
        vmap: Callable[..., Any]
    else:

        @staticmethod
        def backward(ctx: FunctionCtx, *grad_outputs: Any) -> Any:
            """Compute the gradients of the arguments from those of the outputs."""
            raise NotImplementedError(
                "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
                "backward mode AD."
            )

        vjp = backward  # its other name

        @staticmethod
        def jvp(ctx: FunctionCtx, *tangents: Any) -> Any:
            """Compute the outputs' tangents from those of the arguments; without it, forward mode runs `forward`."""
            raise NotImplementedError(
                "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
            )

        @staticmethod
        def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
            """Compute all samples of a batch: the outputs and their dimensions of samples. `info` has `batch_size` and
            `randomness`. Without it, or with `generate_vmap_rule`, `forward` runs on samples."""
            raise NotImplementedError(
                "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
                "generate_vmap_rule=True."
            )

    @classmethod
    def apply(cls, *args: Any, **named: Any) -> Any:
        """Run `forward` and record it; `backward` returns nothing for arguments by name."""
        if named and hasattr(cls, "setup_context"):
            bound = inspect.signature(cls.forward).bind(*args, **named)
            bound.apply_defaults()
            args, named = bound.args, bound.kwargs
        lifted = [x for x in args if isinstance(x, Tensor) and _inside(x)] if open_levels.stack else []
        if lifted:
            args, level = tuple(aligned(args)), innermost(lifted)
            if level.size is None and cls.jvp is not Function.jvp:
                return cls._pushed(level, args, named)
            if level.size is not None and cls.vmap is not Function.vmap and not cls.generate_vmap_rule:
                return cls._batched(level, args, named)
        result, ctx = cls._recorded(args, named)
        ctx._forward = None
        return result

    @classmethod
    def _pushed(cls, level: Level, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The outputs for the values, with the tangents that `jvp` makes."""
        primals = tuple([primal_of(x, level) if isinstance(x, Tensor) else x for x in args])
        tangents = [tangent_of(x, level, zeros=True) if isinstance(x, Tensor) else None for x in args]
        if hasattr(cls, "setup_context"):
            result, ctx = cls.apply(*primals), FunctionCtx()
            with autograd.no_grad():
                cls.setup_context(ctx, primals, result)
        else:
            result, ctx = cls._recorded(primals, named)
        outputs = result if isinstance(result, tuple) else (result,)
        if any(tangent is not None for tangent in tangents):
            if ctx.materialize_grads:
                tangents = [
                    x.new_zeros(x.shape) if t is None and isinstance(x, Tensor) else t
                    for x, t in zip(primals, tangents, strict=True)
                ]
            found = cls.jvp(ctx, *tangents)
            moved = found if isinstance(found, tuple) else (found,)
            if len(moved) != len(outputs):
                count = f"expected {len(outputs)}, got {len(moved)}"
                raise AutogradError(f"{cls.__name__}.jvp returned an incorrect number of forward gradients ({count})")
            outputs = tuple([x if t is None else joined(x, t, level) for x, t in zip(outputs, moved, strict=True)])
        ctx._forward = None
        return outputs if isinstance(result, tuple) else outputs[0]

    @classmethod
    def _batched(cls, level: Level, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Applies `vmap` to all samples."""
        inside = [isinstance(x, Tensor) and isinstance(x._data, Lifted) and x._data.level is level for x in args]
        # what all samples share has a gradient for each of them all the same
        dims = tuple(
            [
                0 if y and (x._data.whole or (x._needs and recording.enabled)) else None
                for x, y in zip(args, inside, strict=True)
            ]
        )
        values = [
            x if not y else leave(x, level) if d == 0 else below(x) for x, y, d in zip(args, inside, dims, strict=True)
        ]
        if all(each is None for each in dims):
            return cls.apply(*values, **named)
        opened, open_levels.stack = open_levels.stack, [x for x in open_levels.stack if x.number < level.number]
        try:
            result, places = cls.vmap(VmapInfo(int(level.size or 0), level.randomness), dims, *values, **named)
        finally:
            open_levels.stack = opened
        outputs = result if isinstance(result, tuple) else (result,)
        places = places if isinstance(places, tuple) else (places,) * len(outputs)
        outputs = tuple(
            [x if d is None else enter(x.movedim(d, 0), level) for x, d in zip(outputs, places, strict=True)]
        )
        return outputs if isinstance(result, tuple) else outputs[0]

    @classmethod
    def _recorded(cls, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, FunctionCtx]:
        """The outputs of `forward`, recorded, and the context."""
        ctx = FunctionCtx()
        needs = ctx.needs_input_grad = tuple(isinstance(value, Tensor) and value._needs for value in args)
        with autograd.no_grad():
            if hasattr(cls, "setup_context"):
                result = cls.forward(*args, **named)
                cls.setup_context(ctx, args, result)
            else:
                result = cls.forward(ctx, *args, **named)
        if not (recording.enabled and any(needs)):
            return result, ctx
        outputs = result if isinstance(result, tuple) else (result,)
        # an input that is returned unchanged becomes a new tensor, so that its own history is not overwritten
        own = tuple(
            out._without_node()
            if isinstance(out, Tensor)
            and any(out is value for value in args)
            and not any(out is dirty for dirty in ctx._dirty)
            else out
            for out in outputs
        )
        backward = _Backward(cls, ctx, args, own)
        plain = [
            not isinstance(out, Tensor) or id(out) in ctx._no_gradient or out.dtype.category < dtypes.FLOATING
            for out in own
        ]
        kept = {
            id(out): _Output(out, None if plain[index] else index)
            for index, out in enumerate(own)
            if isinstance(out, Tensor) and any(out is value for value in (*ctx._saved, *ctx.__dict__.values()))
        }
        saved = tuple(kept.get(id(value), value) for value in ctx._saved)
        versions = tuple(value._version if isinstance(value, (Tensor, _Output)) else None for value in saved)
        node = record(backward, tuple(args[i]._edge() for i in backward.positions), saved, versions, None, len(own))
        ctx._node, ctx._saved, ctx._dirty = weakref.ref(node), (), ()
        ctx._outputs = {name: kept[id(value)] for name, value in ctx.__dict__.items() if id(value) in kept}
        for name in ctx._outputs:
            del ctx.__dict__[name]
        for index, out in enumerate(own):
            if plain[index]:
                continue
            out._node = node if len(own) == 1 else Slot(node, index)
            out._needs = True
        return (own if isinstance(result, tuple) else own[0]), ctx


class _Once(Function):
    """Gradients as they are, which have none themselves; the first argument is there to require one."""

    @staticmethod
    def forward(ctx: FunctionCtx, leaf: Tensor, *gradients: Any) -> Any:
        return tuple([each.detach() if isinstance(each, Tensor) else each for each in gradients])

    @staticmethod
    def backward(ctx: FunctionCtx, *gradients: Any) -> Any:
        raise AutogradError("trying to differentiate twice a function that was marked with @once_differentiable")


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of a `backward` whose operations are not recorded: what it returns cannot be differentiated again."""

    @functools.wraps(backward)
    def once(ctx: FunctionCtx, *gradients: Any) -> Any:
        with autograd.no_grad():
            made = backward(ctx, *gradients)
        if not (recording.enabled and any(isinstance(each, Tensor) and each._needs for each in gradients)):
            return made
        leaf = _zeros((1,), dtypes.get_default_dtype(), devices.cpu).requires_grad_()
        several = _Once.apply(leaf, *(made if isinstance(made, tuple) else (made,)))
        return several if isinstance(made, tuple) else several[0]

    return once


autograd.Function = Function  # type: ignore[misc]
autograd.function = sys.modules[f"{autograd.__name__}.function"] = sys.modules[__name__]  # where PyTorch has it
