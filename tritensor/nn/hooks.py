"""Running a module's forward with its hooks around it, and hooks on the gradients that pass through a module."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.mode import is_grad_enabled
from ..autograd.tape import Gradient, Node, Slot, record
from ..errors import warn
from ..tensors import Tensor, wrap
from ..utils.hooks import RemovableHandle


def register(
    table: OrderedDict[int, Any], hook: Any, prepend: bool = False, also: Sequence[OrderedDict[int, Any]] = ()
) -> RemovableHandle:
    """Put a hook into a table, before the others with `prepend`, and its options into `also`."""
    handle = RemovableHandle(table, also)
    table[handle.id] = hook
    for facts in also:
        facts[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


# Hooks of all modules: the tables that each stands in, as if each module had it, and the hook
of_all: OrderedDict[int, tuple[tuple[str, ...], Any]] = OrderedDict()


def _table(module: Any, name: str) -> dict[int, Any]:
    """A table of a module's hooks, with those of all modules before its own."""
    return {**{number: hook for number, (tables, hook) in of_all.items() if name in tables}, **getattr(module, name)}


def _register_for_all(hook: Any, *tables: str) -> RemovableHandle:
    handle = RemovableHandle(of_all)
    of_all[handle.id] = tables, hook
    return handle


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args)` before forward of every module, see `Module.register_forward_pre_hook`."""
    return _register_for_all(hook, "_forward_pre_hooks")


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after forward of every module, see `Module.register_forward_hook`."""
    options = ["_forward_hooks_with_kwargs"] * with_kwargs + ["_forward_hooks_always_called"] * always_call
    return _register_for_all(hook, "_forward_hooks", *options)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` before the gradients of every module's inputs are computed."""
    return _register_for_all(hook, "_backward_pre_hooks")


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` when the gradients of any module's inputs are known."""
    return _register_for_all(hook, "_backward_hooks")


def call_with_hooks(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """forward pre-hooks, forward, forward hooks; gradient hooks around all of it.

    Forward hooks that were registered with `always_call` run also when something before them raised; an exception of
    their own is then a warning, so that the first error is the one that is raised.
    """
    called: set[int] = set()
    result = None
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
            replaced = _run_forward_hook(module, number, hook, args, kwargs, result)
            result = result if replaced is None else replaced
        if gradients is not None:
            result = gradients.watch_outputs(result)
        return result
    except Exception:
        for number, hook in _table(module, "_forward_hooks").items():
            if number in _table(module, "_forward_hooks_always_called") and number not in called:
                try:
                    _run_forward_hook(module, number, hook, args, kwargs, result)
                except Exception as error:
                    warn(
                        "module forward hook with ``always_call=True`` raised an exception that was silenced as "
                        f"another error was raised in forward: {error}"
                    )
        raise


def _run_forward_hook(module: Any, number: int, hook: Callable[..., Any], args: Any, kwargs: Any, result: Any) -> Any:
    if number in _table(module, "_forward_hooks_with_kwargs"):
        return hook(module, args, kwargs, result)
    return hook(module, args, result)


def _run_pre_hooks(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments, as the module's pre-hooks may have changed them."""
    for number, hook in _table(module, "_forward_pre_hooks").items():
        if number in module._forward_pre_hooks_with_kwargs:
            changed = hook(module, args, kwargs)
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(
                    f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                )
            args, kwargs = changed
        else:
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
    return args, kwargs


class _Boundary(Gradient):
    """The gradient of a node that passes gradients on unchanged, after showing all of them at once to a callback."""

    ours = False

    def __init__(self, name: str, callback: Callable[[tuple[Any, ...]], Sequence[Any]]) -> None:
        self.name = name
        self.callback = callback

    def run(self, node: Node, gradient: Any) -> Sequence[Any]:
        """The gradients of the tensors, after passing them to the callback."""
        return self.callback((gradient,) if node.outputs == 1 else tuple(gradient))


def _cross(tensors: list[Tensor], name: str, callback: Callable[[tuple[Any, ...]], Sequence[Any]]) -> list[Tensor]:
    """The same tensors, recorded as the outputs of one node, so that their gradients are known at the same time."""
    edges = tuple(tensor._edge() for tensor in tensors)
    node = record(_Boundary(name, callback), edges, outputs=len(tensors))
    crossed = []
    for slot, tensor in enumerate(tensors):
        other = wrap(tensor._data)
        other._counter = tensor.detach()._counter
        other._node, other._needs = (node if len(tensors) == 1 else Slot(node, slot)), True
        crossed.append(other)
    return crossed


class GradientHooks:
    """The full backward hooks of one call of a module.

    The module's inputs and outputs each cross a boundary node. When the outputs' node is reached, the gradients of all
    outputs are known and the pre-hooks run; when the inputs' node is reached, those of the inputs are known and the
    hooks run. If no input requires a gradient, the hooks run at the outputs, with None for the inputs.
    """

    def __init__(self, module: Any, before: dict[int, Any], after: dict[int, Any]) -> None:
        self.module = module
        self.pre_hooks, self.hooks = list(before.values()), list(after.values())
        self.grad_outputs: tuple[Any, ...] | None = None
        self.output_slots: list[int] = []
        self.output_count = 0
        self.input_slots: list[int] = []
        self.input_count = 0

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The positional arguments with those that require a gradient behind a boundary."""
        self.input_count = len(args)
        self.input_slots = _recorded(args)
        crossed = self._crossed(args, self.input_slots, "BackwardHookFunctionBackward", self._at_inputs)
        return tuple(crossed)

    def watch_outputs(self, result: Any) -> Any:
        """The result (a tensor, or a tuple of some) with its tensors behind a boundary."""
        single = isinstance(result, Tensor)
        if not single and not isinstance(result, tuple):
            warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
                f"but received {type(result)}"
            )
            return result
        outputs = (result,) if single else result
        self.output_count = len(outputs)
        self.output_slots = _recorded(outputs)
        crossed = self._crossed(outputs, self.output_slots, "BackwardHookFunctionBackward", self._at_outputs)
        return crossed[0] if single else tuple(crossed)

    @staticmethod
    def _crossed(values: Sequence[Any], slots: list[int], name: str, callback: Any) -> list[Any]:
        mixed = list(values)
        if slots:
            for slot, tensor in zip(slots, _cross([values[slot] for slot in slots], name, callback), strict=True):
                mixed[slot] = tensor
        return mixed

    def _at_outputs(self, gradients: tuple[Any, ...]) -> Sequence[Any]:
        full = _spread(gradients, self.output_slots, self.output_count)
        for hook in self.pre_hooks:
            replaced = hook(self.module, full)
            if replaced is not None:
                full = _as_tuple(replaced)
                _check_count("Backward pre hook", full, self.output_count)
        self.grad_outputs = full
        if not self.input_slots:
            for hook in self.hooks:
                replaced = hook(self.module, (None,) * self.input_count, full)
                if replaced is not None and any(part is not None for part in _as_tuple(replaced)):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or None "
                        "for all gradients."
                    )
        return [full[slot] for slot in self.output_slots]

    def _at_inputs(self, gradients: tuple[Any, ...]) -> Sequence[Any]:
        if self.grad_outputs is None:
            return gradients  # a gradient reached the inputs by another path than the module's outputs
        full = _spread(gradients, self.input_slots, self.input_count)
        for hook in self.hooks:
            replaced = hook(self.module, full, self.grad_outputs)
            if replaced is not None:
                full = _as_tuple(replaced)
                _check_count("Backward hook", full, self.input_count)
        self.grad_outputs = None
        return [full[slot] for slot in self.input_slots]


def _recorded(values: Sequence[Any]) -> list[int]:
    """The positions of the tensors that gradients flow through."""
    if not is_grad_enabled():
        return []
    return [slot for slot, value in enumerate(values) if isinstance(value, Tensor) and value.requires_grad]


def _spread(gradients: Sequence[Any], slots: list[int], count: int) -> tuple[Any, ...]:
    """The gradients at their positions among all values, None at those of the others."""
    full: list[Any] = [None] * count
    for slot, gradient in zip(slots, gradients, strict=False):
        full[slot] = gradient
    return tuple(full)


def _as_tuple(value: tuple[Tensor, ...]) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _check_count(what: str, gradients: tuple[Any, ...], expected: int) -> None:
    if len(gradients) != expected:
        raise RuntimeError(f"{what} returned an invalid number of grad, got {len(gradients)}, but expected {expected}")
