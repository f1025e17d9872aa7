"""Autocast: operators of a block compute in the dtype that suits them, half precision where that is exact enough.

What an operator or a public function casts to is in its declaration: `autocast={"cpu": "lower", "cuda": "float32"}`.

    lower     the half precision of the block
    float32   float32
    widest    float32 if an input is not of half precision, else half precision
    apart     nothing: the function casts for itself, and what it calls does not cast again
    banned    nothing: a call is an error

They are what PyTorch's lists say (`aten/src/ATen/autocast_mode.h` and `autocast_mode.cpp`); `lists` prints ours. An
operator casts its inputs when it is called (`cast`, from `Operator.__call__` and from the quick paths that come before
it). Of a function that is several operators the inputs are cast (`casting`), and what it calls does not cast again, nor
does anything in a backward pass, whose operators find the dtypes of the forward pass. A function that is one operator
declares nothing, so that a call takes no longer.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from ..autograd.mode import recording
from ..autograd.precision import casts, state, turn, without_casts
from ..drivers.selection import active
from ..errors import ArgumentError, DtypeError, warn
from ..ground.arguments import check_flag, wrong_type
from ..ground.public import casts_of, public
from ..tensors import Tensor, tensors_in
from ..types import devices, dtypes

_LOWER, _FLOAT32, _WIDEST, _APART, _BANNED = "lower", "float32", "widest", "apart", "banned"
_KINDS = "cpu", "cuda"

Policy = Mapping[str, str]  # by the type of device, what is cast to; other types of devices cast nothing

#: what autocast casts the inputs of an operator or a public function to, by its name
POLICIES: dict[str, Policy] = {}


def lists(kind: str) -> dict[str, list[str]]:
    """The names of all operators and functions that cast on devices of a type, by what they cast to."""
    found: dict[str, list[str]] = {}
    for name, policy in sorted(POLICIES.items()):
        if kind in policy:
            found.setdefault(policy[kind], []).append(name)
    return found


def cast(policy: Policy, *inputs: Any) -> tuple[Any, ...]:
    """The inputs of a call as autocast wants them: themselves where it is off."""
    return _cast("", policy, inputs)[0] if state.types else inputs


@casts_of
def casting(function: Callable[..., Any], name: str, policy: Policy) -> Callable[..., Any]:
    """The function, whose inputs autocast casts; `name` is that of `lists`."""
    POLICIES[name] = policy
    # composed with the function's own parameters: `*args` and `**named` would take 0.2 us, 3 % of a small loss
    shown = inspect.signature(function).parameters.values()
    plain = [
        each.replace(annotation=each.empty, default=each.empty if each.default is each.empty else None)
        for each in shown
    ]
    given = ", ".join(
        f"{each.name}={each.name}" if each.kind is each.KEYWORD_ONLY else str(each.replace(default=each.empty))
        for each in plain
    )
    scope: dict[str, Any] = {
        "__name__": __name__,
        "function": function,
        "policy": policy,
        "called": _called,
        "casts": casts,
    }
    lines = f"    if casts.on: return called(policy, function, {given})\n    return function({given})\n"
    exec(f"def {name}{inspect.Signature(plain)}:\n{lines}", scope)
    call: Any = functools.wraps(function)(scope[name])
    defaults = {each.name: each.default for each in shown if each.default is not each.empty}
    named = {each.name for each in shown if each.kind is each.KEYWORD_ONLY}
    call.__defaults__ = tuple([value for name, value in defaults.items() if name not in named])
    call.__kwdefaults__ = {name: value for name, value in defaults.items() if name in named}
    return call


def _called(policy: Policy, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Call a function of which no operator casts if its inputs were cast."""
    if not state.types:
        return function(*args, **named)
    values, wanted = _cast(function.__name__, policy, (*args, *named.values()))
    named = dict(zip(named, values[len(args) :], strict=True))
    return (function if wanted is None else functools.partial(without_casts, function))(*values[: len(args)], **named)


def _cast(name: str, policies: Policy, inputs: tuple[Any, ...]) -> tuple[tuple[Any, ...], str | None]:
    """The inputs as they are wanted, and the policy, None if there is none for the device that they are on."""
    tensors = list(tensors_in(inputs))
    kind = "cuda" if any(x.is_cuda for x in tensors) else "cpu"
    policy = policies.get(kind) if kind in state.types else None
    if policy is None or policy == _APART:
        return inputs, policy
    if policy == _BANNED:
        raise DtypeError(
            f"torch.nn.functional.{name} and torch.nn.BCELoss are unsafe to autocast.\n"
            "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
            f"In this case, combine the two layers using torch.nn.functional.{name}_with_logits\n"
            f"or torch.nn.BCEWithLogitsLoss.  {name}_with_logits and BCEWithLogits are\nsafe to autocast."
        )
    lower = wanted = state.lower[kind]
    if policy == _FLOAT32 or (policy == _WIDEST and any(eligible(x, kind) and x.dtype is not lower for x in tensors)):
        wanted = dtypes.float32
    return tuple([_converted(value, kind, wanted) for value in inputs]), policy


def eligible(x: Tensor, kind: str) -> bool:
    """True if a tensor is cast: floating but not float64, and on a device of the type."""
    return x.is_floating_point() and x.dtype is not dtypes.float64 and x.device.type == kind


def _converted(value: object, kind: str, wanted: dtypes.dtype) -> Any:
    """A tensor, or a list of tensors, in the wanted dtype."""
    if isinstance(value, Tensor):
        if value.dtype is wanted or not eligible(value, kind):
            return value
        kept = value._needs and value._node is None and value._origin is None and value.dtype is dtypes.float32
        return _kept(value, wanted) if kept and state.cache and wanted is state.lower[kind] else value.to(wanted)
    if value.__class__ in (list, tuple):
        return value.__class__([_converted(each, kind, wanted) for each in value])
    return value


def _kept(leaf: Tensor, wanted: dtypes.dtype) -> Tensor:
    """A parameter in half precision: cast once until the outermost block ends, or the parameter changes.

    A cast that was made without recording is not used where gradients are wanted; PyTorch does use it.
    """
    found = state.kept.get(id(leaf))
    if found is not None and found[0] is leaf and found[1] is leaf._data and found[2] == leaf._version:
        made: Tensor = found[3]
        if made.dtype is wanted and (made._needs or not recording.enabled):
            return made
    made = leaf.to(wanted)
    state.kept[id(leaf)] = leaf, leaf._data, leaf._version, made
    return made


# ---- the state of a thread ----------------------------------------------------------------------------------------


def _kind(call: str, device_type: str) -> str:
    """The type of devices that an argument names."""
    if not isinstance(device_type, str):
        raise wrong_type(call, "device_type", "str", device_type, 1)
    return devices.device(device_type).type


@public(functional=False)
def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """True if operators of this thread cast their inputs on devices of a type.

    >>> import tritensor as torch
    >>> with torch.autocast("cpu"):
    ...     torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda")
    (True, False)

    Raises:
        ArgumentError: the type is no string. DeviceError: there are no such devices.
    """
    return _kind("is_autocast_enabled", device_type) in state.types


@public(functional=False)
def set_autocast_enabled(device_type: str, enabled: bool) -> None:
    """Turn casting on devices of a type on or off, in this thread; `autocast` does it for a block.

    Raises:
        ArgumentError: another type of argument. DeviceError: there are no such devices.
    """
    check_flag("set_autocast_enabled", "enabled", enabled, 2)
    kind = frozenset([_kind("set_autocast_enabled", device_type)])
    turn(state.types | kind if enabled else state.types - kind)


@public(functional=False)
def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """The dtype that autocast casts to on devices of a type, where its lists say half precision.

    >>> import tritensor as torch
    >>> torch.get_autocast_dtype("cpu"), torch.get_autocast_dtype("cuda")
    (tritensor.bfloat16, tritensor.float16)
    """
    return state.lower[_kind("get_autocast_dtype", device_type)]


@public(functional=False)
def set_autocast_dtype(device_type: str, dtype: dtypes.dtype) -> None:
    """Set what `get_autocast_dtype` returns, in this thread.

    Raises:
        ArgumentError: another type of argument. DeviceError: there are no such devices.
    """
    if not isinstance(dtype, dtypes.dtype):
        raise wrong_type("set_autocast_dtype", "dtype", "torch.dtype", dtype, 2)
    state.lower[_kind("set_autocast_dtype", device_type)] = dtype


@public(functional=False)
def is_autocast_cache_enabled() -> bool:
    """True if a parameter is cast once in an outermost block of autocast, and not each time that it is used."""
    return state.cache


@public(functional=False)
def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set what `is_autocast_cache_enabled` returns, in this thread.

    Raises:
        ArgumentError: it is no bool.
    """
    if not isinstance(enabled, bool):
        raise ArgumentError(f"enabled must be a bool (got {type(enabled).__name__})")
    state.cache = enabled


@public(functional=False)
def clear_autocast_cache() -> None:
    """Drop the casts of parameters that this thread keeps; leaving the outermost block does it too."""
    state.kept.clear()


@public(functional=False)
def autocast_increment_nesting() -> int:
    """Count the entry to an autocast block; returns in how many blocks this thread is then."""
    state.nesting += 1
    return state.nesting


@public(functional=False)
def autocast_decrement_nesting() -> int:
    """Count the exit from an autocast block; returns in how many blocks this thread is then."""
    state.nesting -= 1
    return state.nesting


def is_autocast_available(device_type: str) -> bool:
    """True if there is autocast on devices of a type: on "cpu" and "cuda".

    Raises:
        ArgumentError: the type is no string. DeviceError: no devices have that type.
    """
    return _kind("_is_autocast_available", device_type) in _KINDS


@public(functional=False)
class autocast:
    """Automatic mixed precision: in the block, or the decorated function, operators cast inputs to a suitable dtype.

    Products of matrices and convolutions compute in half precision, losses, sums and what grows fast in float32, by
    PyTorch's lists for the type of device; all others compute in the dtypes that they get. Tensors of float64 are left
    alone, and so are changes in place and calls with `out=`. It holds in this thread only.

    >>> import tritensor as torch
    >>> layer = torch.nn.Linear(2, 2)
    >>> with torch.autocast("cpu"):
    ...     y = layer(torch.ones(1, 2))
    >>> y.dtype, torch.nn.functional.mse_loss(y, torch.ones(1, 2)).dtype
    (tritensor.bfloat16, tritensor.float32)

    Args:
        device_type: "cpu" or "cuda".
        dtype: the half precision; that of `get_autocast_dtype` unless given.
        enabled: False turns casting off for the block.
        cache_enabled: whether a parameter is cast once, and not each time that it is used.

    Raises:
        ValueError: the type is no string. DeviceError: there are no such devices. On the CPU another dtype than the two
        of half precision warns and turns casting off, and so does "cuda" without a device.
    """

    __module__ = "tritensor"

    def __init__(
        self,
        device_type: str,
        dtype: dtypes.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = _kind("autocast", device_type)
        self.fast_dtype = state.lower[self.device] if dtype is None else dtype
        self._cache_enabled = state.cache if cache_enabled is None else cache_enabled
        if enabled and self.device == "cuda" and active() is None:
            warn("CUDA is not available or torch_xla is imported. Disabling autocast.")
            enabled = False
        elif enabled and self.device == "cpu" and self.fast_dtype not in (dtypes.bfloat16, dtypes.float16):
            warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
                "CPU Autocast only supports dtypes of torch.bfloat16, torch.float16 currently."
            )
            enabled = False
        self._enabled = bool(enabled)

    def __enter__(self) -> autocast:
        state.blocks.append((state.types, state.lower[self.device], state.cache))
        kind = frozenset([self.device])
        turn(state.types | kind if self._enabled else state.types - kind)
        state.lower[self.device], state.cache = self.fast_dtype, self._cache_enabled
        state.nesting += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        state.nesting -= 1
        if not state.nesting:
            state.kept.clear()
        types, state.lower[self.device], state.cache = state.blocks.pop()
        turn(types)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """The function, each call of which is such a block."""
        if not callable(func):
            raise ArgumentError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you mean to use autocast as "
                "a context manager? For example:\n    with torch.autocast(device_type=...):\n"
                "        output = model(input)"
            )

        @functools.wraps(func)
        def decorated(*args: Any, **named: Any) -> Any:
            with self:
                return func(*args, **named)

        return decorated
