"""Running a module's forward with its hooks around it, and hooks on the gradients that pass through a module."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.mode import is_grad_enabled
from ..autograd.tape import Gradient, Node, Slot, record
from ..errors import require, warn
from ..tensors import Tensor
from ..utils.hooks import RemovableHandle
from .tree import changes


def register(
    table: OrderedDict[int, Any], hook: object, prepend: bool = False, also: Sequence[OrderedDict[int, Any]] = ()
) -> RemovableHandle:
    """Put a hook into a table, before the others with `prepend`, and its options into `also`."""
    handle = RemovableHandle(table, also)
    table[handle.id] = hook
    changes[0] += 1
    for facts in also:
        facts[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


# Hooks of all modules: the tables that each stands in, as if each module had it, and the hook
of_all: OrderedDict[int, tuple[tuple[str, ...], Any]] = OrderedDict()


def _table(module: object, name: str) -> dict[int, Any]:
    """A table of a module's hooks, with those of all modules before its own."""
    return {**{number: hook for number, (tables, hook) in of_all.items() if name in tables}, **getattr(module, name)}


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args)` before forward of every module, see `Module.register_forward_pre_hook`."""
    return register(of_all, (("_forward_pre_hooks",), hook))


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after forward of every module, see `Module.register_forward_hook`."""
    options = ("_forward_hooks_with_kwargs",) * with_kwargs + ("_forward_hooks_always_called",) * always_call
    return register(of_all, (("_forward_hooks", *options), hook))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` before the gradients of every module's inputs are computed."""
    return register(of_all, (("_backward_pre_hooks",), hook))


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` when the gradients of any module's inputs are known."""
    return register(of_all, (("_backward_hooks",), hook))


def call_with_hooks(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """forward pre-hooks, forward, forward hooks; gradient hooks around all of it.

    Forward hooks that were registered with `always_call` run also when something before them raised; an exception of
    their own is then a warning, so that the first error is the one that is raised.
    """
    called: set[int] = set()
    result = None

    def run(number: int, hook: Callable[..., Any]) -> Any:
        named = (kwargs,) if number in _table(module, "_forward_hooks_with_kwargs") else ()
        return hook(module, args, *named, result)

    try:
        args, kwargs = _run_pre_hooks(module, args, kwargs)
        gradients = None
        before, after = _table(module, "_backward_pre_hooks"), _table(module, "_backward_hooks")
        if before or after:
            gradients = GradientHooks(module, before, after)
            args = gradients.watch_inputs(args)
        result = module.forward(*args, **kwargs)
        for number, hook in _table(module, "_forward_hooks").items():
            called.add(number)
            replaced = run(number, hook)
            result = result if replaced is None else replaced
        if gradients is not None:
            result = gradients.watch_outputs(result)
        return result
    except Exception:
        for number, hook in _table(module, "_forward_hooks").items():
            if number in _table(module, "_forward_hooks_always_called") and number not in called:
                try:
                    run(number, hook)
                except Exception as error:
                    warn(
                        "module forward hook with ``always_call=True`` raised an exception that was silenced as "
                        f"another error was raised in forward: {error}"
                    )
        raise


def _run_pre_hooks(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments, as the module's pre-hooks may have changed them."""
    for number, hook in _table(module, "_forward_pre_hooks").items():
        named = number in module._forward_pre_hooks_with_kwargs
        changed = hook(module, args, kwargs) if named else hook(module, args)
        if changed is None:
            continue
        if named:
            text = "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {}."
            require(isinstance(changed, tuple) and len(changed) == 2, RuntimeError, text, changed)
            args, kwargs = changed
        else:
            args = changed if isinstance(changed, tuple) else (changed,)
    return args, kwargs


class _Boundary(Gradient):
    """The gradient of a node that the tensors among some values cross, so that their gradients are known at once.

    `change` gets the gradients at the positions of the values, None where there is none, and returns others.
    """

    ours = False
    name = "BackwardHookFunctionBackward"

    def __init__(self, values: Sequence[Any], change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> None:
        self.change, self.count = change, len(values)
        tensors = [slot for slot, value in enumerate(values) if isinstance(value, Tensor) and value.requires_grad]
        self.slots = tensors if is_grad_enabled() else []

    def run(self, node: Node, gradient: Any) -> Sequence[Any]:
        """The gradients of the tensors, as `change` leaves them."""
        full: list[Any] = [None] * self.count
        for slot, part in zip(self.slots, (gradient,) if node.outputs == 1 else gradient):
            full[slot] = part
        changed = self.change(tuple(full))
        return [changed[slot] for slot in self.slots]

    def crossed(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The values, with the tensors recorded as the outputs of one node."""
        mixed, count = list(values), len(self.slots)
        if count:
            node = record(self, tuple([values[slot]._edge() for slot in self.slots]), outputs=count)
            for output, slot in enumerate(self.slots):
                mixed[slot] = other = values[slot]._without_node()
                other._node, other._needs = (node if count == 1 else Slot(node, output)), True
        return tuple(mixed)


class GradientHooks:
    """The full backward hooks of one call of a module.

    The module's inputs and outputs each cross a boundary node. When the outputs' node is reached, the gradients of all
    outputs are known and the pre-hooks run; when the inputs' node is reached, those of the inputs are known and the
    hooks run. If no input requires a gradient, the hooks run at the outputs, with None for the inputs.
    """

    def __init__(self, module: object, before: dict[int, Any], after: dict[int, Any]) -> None:
        self.module = module
        self.pre_hooks, self.hooks = list(before.values()), list(after.values())
        self.grad_outputs: tuple[Any, ...] | None = None

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The positional arguments with those that require a gradient behind a boundary."""
        boundary = _Boundary(args, self._at_inputs)
        self.inputs, self.reached = len(args), bool(boundary.slots)
        return boundary.crossed(args)

    def watch_outputs(self, result: Any) -> Any:
        """The result (a tensor, or a tuple of some) with its tensors behind a boundary."""
        if not isinstance(result, Tensor | tuple):
            warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
                f"but received {type(result)}"
            )
            return result
        outputs = result if isinstance(result, tuple) else (result,)
        crossed = _Boundary(outputs, self._at_outputs).crossed(outputs)
        return crossed if isinstance(result, tuple) else crossed[0]

    def _at_outputs(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        self.grad_outputs = _changed("Backward pre hook", self.pre_hooks, self.module, gradients)
        for hook in () if self.reached else self.hooks:
            parts = _as_tuple(hook(self.module, (None,) * self.inputs, self.grad_outputs))
            text = "Backward hook for Modules where no input requires gradient should always return None or None for "
            require(not any(part is not None for part in parts), RuntimeError, text + "all gradients.")
        return self.grad_outputs

    def _at_inputs(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        outputs, self.grad_outputs = self.grad_outputs, None
        if outputs is None:
            return gradients  # a gradient reached the inputs by another path than the module's outputs
        return _changed("Backward hook", self.hooks, self.module, gradients, outputs)


def _changed(
    what: str, hooks: list[Any], module: object, gradients: tuple[Any, ...], *more: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The gradients, as hooks leave them."""
    for hook in hooks:
        replaced = hook(module, gradients, *more)
        if replaced is not None:
            found, expected = _as_tuple(replaced), len(gradients)
            text = "{} returned an invalid number of grad, got {}, but expected {}"
            require(len(found) == expected, RuntimeError, text, what, len(found), expected)
            gradients = found
    return gradients


def _as_tuple(value: object) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)
