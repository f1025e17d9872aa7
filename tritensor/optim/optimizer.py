"""The base of optimizers: parameter groups, state, and loading both."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from itertools import chain
from types import MappingProxyType
from typing import Any

from ..autograd import watched
from ..autograd.mode import enable_grad, no_grad
from ..drivers.capture import capturing
from ..drivers.refusals import refuse
from ..errors import ArgumentError, explain, require, warn
from ..functional.creation.likeness import zeros_like
from ..kernels.optimizer.steps import aligned_zeros
from ..nn.module import clear_gradient
from ..nn.tree import typename
from ..tensors import Tensor, wrap
from ..types import Device
from ..types.devices import resolve
from ..utils.hooks import RemovableHandle

__all__ = ["Optimizer", "required"]


class _Required:
    """The value of an option without a default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()

_HOOK_TABLES = (
    "_step_pre_hooks",
    "_step_post_hooks",
    "_state_dict_pre_hooks",
    "_state_dict_post_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)
_NOT_KEPT = frozenset((*_HOOK_TABLES, "_tables", "_plans"))


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call a function before each step of every optimizer, as `hook(optimizer, args, kwargs)`."""
    handle = RemovableHandle(watched.before_steps)
    watched.before_steps[handle.id] = hook
    return handle


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call a function after each step of every optimizer, as `hook(optimizer, args, kwargs)`."""
    handle = RemovableHandle(watched.behind_steps)
    watched.behind_steps[handle.id] = hook
    return handle


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """A subclass's `step` with the step hooks around it."""

    @functools.wraps(step)
    def wrapped(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if self._stepping:  # called by a subclass's step: only the outer call runs the hooks
            return step(self, *args, **kwargs)
        args = (self, *args)  # a hook sees the arguments of the method, and may replace them
        for hook in (*self._step_pre_hooks.values(), *watched.before_steps.values()):
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(
                        f"{step.__qualname__} must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                    )
                args, kwargs = changed
        self._stepping = self._stepped = True
        try:
            result = step(*args, **kwargs)
        finally:
            self._stepping = False
        for hook in (*self._step_post_hooks.values(), *watched.behind_steps.values()):
            hook(self, args, kwargs)
        return result

    return wrapped


def no_numbers(group: dict[str, Any], error: Exception) -> ArgumentError:
    """The error for a group of whose options one is no number, in the words of Python's."""
    options = ", ".join(f"{name}={value!r}" for name, value in group.items() if name != "params")
    return ArgumentError(str(error), f"the options of the group are {options}", remedy="set them to numbers")


class Optimizer:
    """The base class of optimizers: parameters in groups with options, and state for each parameter.

    A subclass passes `defaults` (the options that groups may set) and defines `step()`. The state of a parameter
    follows it: a subclass gets it by `self.state_of(param)`, which moves and casts it if the parameter was moved or
    cast since.

    Args:
        params: parameters, (name, parameter) pairs, or dicts with "params" and options for that group.
        defaults: the options' values for groups that do not set them.

    Raises:
        TypeError: `params` is a tensor or a set, or contains something that is not a tensor.
        ValueError: no parameters, a tensor that is no leaf, or a parameter in two groups.
    """

    # Names of state tensors that have the parameter's shape; they are checked when a state dict is loaded.
    _shaped_state: tuple[str, ...] = ()
    # Names of state that is counted in float32, on the host unless a step is captured; it does not follow a parameter.
    _counted: tuple[str, ...] = ("step",)
    _stepping = False
    # whether a step has been made; a learning rate schedule warns if its `step` is called before that
    _stepped = False

    param_groups: list[dict[str, Any]]
    state: defaultdict[Any, Any]
    # tables that a subclass lacks whose constructor does not call this class's are empty
    _step_pre_hooks: Mapping[int, Any] = MappingProxyType({})
    _step_post_hooks = _state_dict_pre_hooks = _state_dict_post_hooks = _step_pre_hooks
    _load_state_dict_pre_hooks = _load_state_dict_post_hooks = _step_pre_hooks

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if not isinstance(params, Iterable):
            words = f"'{type(params).__name__}' object is not iterable"
            raise ArgumentError(words, remedy="pass an iterable of tensors, such as model.parameters()")
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {typename(params)}"
            )
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        self._make_hook_tables()
        groups = list(params)
        require(groups, ValueError, "optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_hook_tables(self) -> None:
        for table in _HOOK_TABLES:
            self.__dict__.setdefault(table, OrderedDict())

    # hooks are not pickled or copied, as in PyTorch
    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in _NOT_KEPT}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_hook_tables()
        for group in self.param_groups:
            for name, default in self.defaults.items():
                group.setdefault(name, default)

    def __repr__(self) -> str:
        lines = []
        for number, group in enumerate(self.param_groups):
            lines.append(f"\nParameter Group {number}\n")
            lines += [f"    {name}: {group[name]}\n" for name in sorted(group) if name != "params"]
        return f"{type(self).__name__} ({''.join(lines)})"

    # ---- groups -----------------------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group: {"params": parameters, option: value, ...}. Nothing is added if anything about it is wrong.

        Raises:
            TypeError, ValueError: as for the constructor.
        """
        require(isinstance(param_group, dict), TypeError, "param_group must be a dict, but got {}", type(param_group))
        params, names = _parameters_of(param_group["params"])
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {typename(param)}")
            if not (self.defaults.get("differentiable") or param.is_leaf or param.retains_grad):
                raise ValueError(
                    explain(
                        "can't optimize a non-leaf Tensor",
                        f"it has shape {tuple(param.shape)} and was made by {param.grad_fn}",
                        remedy="optimize the leaf that it was computed from",
                    )
                )
        options = {key: value for key, value in param_group.items() if key != "params"}
        if names:
            options["param_names"] = names
        for name, default in self.defaults.items():
            if default is required and name not in options:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            options.setdefault(name, default)
        if len({id(param) for param in params}) != len(params):
            warn("optimizer contains a parameter group with duplicate parameters; in future, this will cause an error")
        for group in self.param_groups:
            if ("param_names" in options) != ("param_names" in group):
                found = "with names" if "param_names" in options else "without names"
                raise ValueError(
                    "all optimizer param groups should be with/without names. "
                    f"cannot add param group {found} to the optimizer"
                )
        present = {id(param) for group in self.param_groups for param in group["params"]}
        if any(id(param) in present for param in params):
            raise ValueError("some parameters appear in more than one parameter group")
        param_group.update(options, params=params)
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or fill them with zeros."""
        for group in self.param_groups:
            for param in group["params"]:
                clear_gradient(param, set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters by their gradients; subclasses define it.

        Args:
            closure: computes the loss anew and calls backward; its result is returned.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no step()")

    def _loss_of(self, closure: Callable[[], Any] | None) -> Any:
        """Calls the closure with gradients enabled; None without a closure."""
        if closure is None:
            return None
        with enable_grad():
            return closure()

    # ---- state ------------------------------------------------------------------------------------------------

    def state_of(self, param: Tensor, state: dict[str, Any] | None = None) -> dict[str, Any]:
        """The parameter's state, on the parameter's device and, if it is floating, in its dtype.

        Counts ("step") are not converted. If a move fails, the state is unchanged.
        """
        state = self.state[param] if state is None else state
        moved = {
            key: _like(param, value)
            for key, value in state.items()
            if key not in self._counted and isinstance(value, Tensor) and _differs(param, value)
        }
        state.update(moved)
        return state

    def to(self, device: Device) -> Optimizer:
        """Move all state tensors to a device, as before moving the model there. Step counts stay where they are.

        Not needed after a model was moved: state follows its parameter at the next step by itself.

        Raises:
            DeviceError: the device is not there. OutOfMemoryError: it has not enough memory; nothing has changed.
        """
        where = resolve(device)
        with no_grad():
            moved = [
                (state, key, value.to(where))
                for state in self.state.values()
                if isinstance(state, dict)
                for key, value in state.items()
                if key not in self._counted and isinstance(value, Tensor)
            ]
        for state, key, value in moved:
            state[key] = value
        return self

    def state_dict(self) -> dict[str, Any]:
        """The state by position of the parameter, and the groups with positions in place of parameters."""
        for hook in self._state_dict_pre_hooks.values():
            hook(self)
        positions: dict[int, int] = {}
        groups = []
        start = 0
        for group in self.param_groups:
            for position, param in enumerate(group["params"], start):
                positions[id(param)] = position  # the last one, where a parameter is there twice
            start += len(group["params"])
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [positions[id(param)] for param in group["params"]]
            groups.append(packed)
        state = {positions[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        packed_state: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._state_dict_post_hooks.values():
            replaced = hook(self, packed_state)
            packed_state = packed_state if replaced is None else replaced
        return packed_state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict()` returned, from any device; parameters are matched by position.

        Floating state is cast to the parameter's dtype, all state is moved to its device; "step" is not converted.
        Everything is checked before anything is changed.

        Raises:
            ValueError: another number of groups, groups of other sizes, or state of another shape than its parameter.
        """
        state_dict = state_dict.copy()
        for hook in self._load_state_dict_pre_hooks.values():
            replaced = hook(self, state_dict)
            state_dict = state_dict if replaced is None else replaced
        groups, saved = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved):
            raise ValueError(
                explain(
                    "loaded state dict has a different number of parameter groups",
                    f"the optimizer has {len(groups)}, the state dict {len(saved)}",
                )
            )
        sizes, saved_sizes = ([len(group["params"]) for group in each] for each in (groups, saved))
        if sizes != saved_sizes:
            raise ValueError(
                explain(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
                    f"the optimizer's groups have {sizes} parameters, the state dict's {saved_sizes}",
                )
            )
        at = dict(zip(chain(*(g["params"] for g in saved)), chain(*(g["params"] for g in groups)), strict=True))
        state: defaultdict[Any, Any] = defaultdict(dict)
        with no_grad():
            for position, entry in state_dict["state"].items():
                if position in at:
                    self._check_shapes(position, at[position], entry)
                    state[at[position]] = _taken(at[position], entry, self._counted)
                else:
                    state[position] = entry
        for group, loaded in zip(groups, saved, strict=True):
            loaded["params"] = group["params"]
            if "param_names" in group:
                loaded.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._load_state_dict_post_hooks.values():
            hook(self)

    def _check_shapes(self, position: int, param: Tensor, entry: dict[str, Any]) -> None:
        for key in self._shaped_state:
            value = entry.get(key) if isinstance(entry, dict) else None
            if isinstance(value, Tensor) and value.shape != param.shape:
                raise ValueError(
                    explain(
                        f"loaded state dict has {key} of shape {tuple(value.shape)} for parameter {position}, which "
                        f"has shape {tuple(param.shape)}",
                        remedy="pass the parameters in the order that they had when the state dict was made",
                    )
                )

    # ---- hooks ------------------------------------------------------------------------------------------------

    def _register(self, table: str, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        hooks: OrderedDict[int, Any] = vars(self).setdefault(table, OrderedDict())
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return other arguments."""
        return self._register("_step_pre_hooks", hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return self._register("_step_post_hooks", hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before the state is read."""
        return self._register("_state_dict_pre_hooks", hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after it was read; it may return another."""
        return self._register("_state_dict_post_hooks", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before loading; it may return another."""
        return self._register("_load_state_dict_pre_hooks", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after loading."""
        return self._register("_load_state_dict_post_hooks", hook, prepend)


def _parameters_of(params: Any) -> tuple[list[Any], list[str]]:
    """A group's parameters as a list, and their names if it was given as (name, parameter) pairs."""
    if isinstance(params, Tensor):
        return [params], []
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    entries = list(params)
    names = [entry[0] for entry in entries if isinstance(entry, tuple)]
    if names and len(names) != len(entries):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    return [entry[1] if isinstance(entry, tuple) else entry for entry in entries], names


def new_state(param: Tensor) -> Tensor:
    """Zeros like a parameter, on its device, in its dtype and with its order of the dimensions in memory."""
    if hasattr(param, "_local_tensor"):  # a DTensor's state is one of its part
        part: Any = param
        return part._state_like(new_state(part._local_tensor))
    if param._off_host:
        capture = capturing(param._data.buffer.driver, param.device.index)
        if capture is not None:
            refuse(
                capture,
                "each replay would set new state of a parameter to zero again",
                "make a few steps before the capture, in the stream that is captured (warm up)",
            )
        return zeros_like(param)
    array = param._host_array()
    return wrap(aligned_zeros(array.shape, array.dtype)) if array.flags.c_contiguous else zeros_like(param)


def _differs(param: Tensor, value: Tensor) -> bool:
    """True if a state tensor is on another device than its parameter, or floating of another dtype."""
    theirs, own = param._data, value._data
    if theirs.__class__ is own.__class__ and theirs.dtype == own.dtype:
        return param.device is not value.device
    return param.device is not value.device or (value.is_floating_point() and param.is_floating_point())


def _like(param: Tensor, value: Tensor) -> Tensor:
    """A state tensor on the parameter's device and, if both are floating, in its dtype."""
    cast = param.dtype if param.is_floating_point() and value.is_floating_point() else None
    with no_grad():
        return value.to(param.device, cast)


def _taken(param: Tensor, value: object, counted: tuple[str, ...], key: str | None = None) -> Any:
    """A copy of a loaded state entry: tensors on the parameter's device and in its dtype, what is counted unchanged.

    PyTorch shares tensors with the state dict, so that two optimizers loaded from one change each other's state.
    """
    if isinstance(value, Tensor):
        moved = value if key in counted else _like(param, value)
        return value.detach().clone() if moved is value else moved
    if isinstance(value, dict):
        return {key: _taken(param, entry, counted, key) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_taken(param, entry, counted) for entry in value)
    return value
