"""Checks of arguments whose types Python does not check, with PyTorch's classes of errors and first words."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ArgumentError, OutOfMemoryError, ShapeError, TritensorError, warn
from .composing import shown_as
from .public import guards_of, publish

publish("OutOfMemoryError", OutOfMemoryError, functional=False)

# What Python and NumPy raise where an argument is of a kind that a function does not look for.
UNEXPECTED = (AttributeError, TypeError, ValueError, OverflowError)


def wrong_type(call: str, name: str, wanted: str, value: object, position: int | None = None) -> ArgumentError:
    """The error for an argument of another type than the call wants.

    >>> str(wrong_type("eye", "n", "int", True, 1))
    "eye(): argument 'n' (position 1) must be int, not bool"
    """
    where = f" (position {position})" if position is not None else ""
    return ArgumentError(f"{call}(): argument '{name}'{where} must be {wanted}, not {type(value).__name__}")


def check_tensor(call: str, name: str, position: int, value: object) -> None:
    """Raise unless `value` is a Tensor (which this module must not import)."""
    if not hasattr(value, "_origin"):
        raise wrong_type(call, name, "Tensor", value, position)


def check_tensors(tensors: Sequence[Any]) -> None:
    """Raise unless all are tensors."""
    for position, x in enumerate(tensors):
        if not hasattr(x, "_origin"):
            raise ArgumentError(f"expected Tensor as element {position} in argument 0, but got {type(x).__name__}")


def check_flag(call: str, name: str, value: bool, position: int | None = None) -> None:
    """Raise unless `value` is True or False: a number or a text would be taken for True."""
    if not isinstance(value, bool):
        raise wrong_type(call, name, "bool", value, position)


def check_number(name: str, value: Any, fits: Callable[[Any], Any], otherwise: str) -> None:
    """Raise unless `fits(value)`.

    Raises:
        ArgumentError: the value cannot be compared, which Python tells in the same words as in PyTorch.
        ValueError: it does not fit; the message is `otherwise`.
    """
    try:
        good = fits(value)
    except TypeError as error:
        raise ArgumentError(str(error), f"{name} is {value!r}", remedy="pass a number") from None
    if not good:
        raise ValueError(otherwise)


def whole(call: str, name: str, value: Any) -> int:
    """An argument that is a whole number.

    >>> whole("narrow", "start", True + 2)
    3

    Raises:
        ArgumentError: it is something else. ValueError: int64 does not hold it.
    """
    try:
        number = operator.index(value)
    except (TypeError, ShapeError):
        raise ArgumentError(f"{call}(): argument '{name}' must be int, not {type(value).__name__}") from None
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError("Overflow when unpacking long long")
    return number


def number_in(value: Any) -> Any:
    """The number in a tensor without dimensions that needs no gradient; anything else as it is."""
    return value.item() if hasattr(value, "_origin") and not value.ndim and not value._needs else value


def number_of(call: str, name: str, value: object) -> Any:
    """A factor: a number, or a tensor that holds one."""
    value = number_in(value)
    if hasattr(value, "_origin") or value is None or isinstance(value, (str, list, tuple)):
        raise wrong_type(call, name, "Number", value)
    return value


_warned: list[str] = []  # PyTorch warns of one older call in a process


def older_order(call: str, factors: dict[str, Any], *values: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call with its factors by name, from PyTorch's older order: `addmm(beta, input, alpha, a, b)`.

    A method has `input` before `beta`. The last two arguments, of `add` and `sub` the last, are no factors.

    Raises:
        ArgumentError: they are not in that order, or there are factors by name too.
    """
    count = 1 if call in ("add", "sub") else 2
    front, last = list(values[:-count]), values[-count:]
    first = front.pop(len(factors) == 2 and _is_number(front[0]))
    if (
        1 <= len(front) <= len(factors)
        and all(map(_is_number, front))
        and all(value == 1 for value in factors.values())
    ):
        if not _warned:
            _warned.append(call)
            named = ", ".join(f"{name}={name}" for name in factors)
            warn(f"This overload of {call} is deprecated: pass the factors by name, as in {call}(..., {named})")
        return (first, *last), dict(zip(factors, front))
    raise ArgumentError(f"{call}() takes {count + 1} positional arguments but {len(values)} were given")


def _is_number(value: object) -> bool:
    """True if a factor may be this: a number, or a tensor without dimensions."""
    return not value.ndim if hasattr(value, "ndim") else isinstance(value, (int, float, complex))


@guards_of
def _guarded(function: Callable[..., Any], name: str, module: str) -> Callable[..., Any]:
    """A function for the namespaces: what it is called with may be no tensor, where a method always has one."""

    def call(*args: Any, **named: Any) -> Any:
        try:
            return function(*args, **named) if named else function(*args)
        except UNEXPECTED as error:
            return recovered(function, call, args, named, error)

    return guarded(call, function, name, module)


def guarded(call: Any, function: Callable[..., Any], name: str, module: str) -> Callable[..., Any]:
    """The form of a function for a namespace, with the options that it shows there."""
    call.__wrapped__ = function
    shown = shown_options(inspect.signature(function)) if "device" in function.__annotations__ else None
    return shown_as(call, name, function.__doc__, shown, module)


def recovered(
    function: Any, call: Any, args: tuple[Any, ...], named: dict[str, Any], error: Exception, **added: Any
) -> Any:
    """The result of a `call` that failed because its function lacks an option; else the error is explained and raised.

    Args:
        added: arguments of the call that are not the function's.
    """
    if UNBOUND in str(error):
        return repeated(call.__name__, function, call, args, named | added, error)
    refuse_misuse(call.__name__, function, args, named, error)
    raise error


# Options of every function that makes a tensor. Few calls have them, so a function need not: a call that Python refuses
# for one of them is repeated without it.
_OPTIONS = {"layout": "Any", "pin_memory": "bool"}
UNBOUND = "unexpected keyword argument"
OF_NUMPY = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}


def shown_options(shown: inspect.Signature) -> inspect.Signature:
    """The signature of a function, which has all options if the function makes tensors."""
    if not {"dtype", "device"} <= shown.parameters.keys():
        return shown
    found = list(shown.parameters.values())
    place = len(found) - (found[-1].kind is inspect.Parameter.VAR_KEYWORD)
    found[place:place] = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=_OPTIONS[name])
        for name, default in (("layout", None), ("pin_memory", False))
        if name not in shown.parameters
    ]
    return shown.replace(parameters=found)


def repeated(
    name: str, function: Any, call: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], error: Exception
) -> Any:
    """Repeat a call that failed because it has NumPy's names of arguments, which PyTorch takes for its own, or because
    its function makes tensors and lacks the options of `_OPTIONS`.

    Raises:
        ArgumentError: the layout is not `strided`, or `pin_memory` no bool. Else the error of the call.
    """
    own = inspect.signature(function).parameters
    theirs = {key: OF_NUMPY[key] for key in named.keys() & OF_NUMPY.keys() - own.keys() if OF_NUMPY[key] in own}
    if theirs:
        return call(*args, **{theirs.get(key, key): value for key, value in named.items()})
    more = {key: value for key, value in named.items() if key in _OPTIONS and key not in own}
    if not more or not {"dtype", "device"} <= own.keys():
        raise error
    if str(more.get("layout")).rpartition(".")[2] not in ("strided", "None"):
        raise wrong_type(name, "layout", "torch.layout", more["layout"])
    if more.get("pin_memory") not in (None, False, True):
        raise wrong_type(name, "pin_memory", "bool", more["pin_memory"])
    made = call(*args, **{key: value for key, value in named.items() if key not in more})
    return made.pin_memory() if more.get("pin_memory") and named.get("out") is None else made


def refuse_misuse(
    call: str, function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], error: Exception
) -> None:
    """Raise an explained error for a failed call, if `error` is an unexpected one; the annotations say what was wanted.

    Public functions call it when they have failed, so that good arguments are not looked at twice.

    Raises:
        ArgumentError: an argument is of another kind than its annotation, or Python found no way to compute with one.
    """
    if isinstance(error, TritensorError):
        return
    try:
        bound = inspect.signature(function).bind(*args, **named)
    except (TypeError, ValueError):  # the arguments do not fit, which Python says well, or nobody knows which they are
        return
    for position, (name, parameter) in enumerate(bound.signature.parameters.items(), 1):
        wanted, optional, _ = str(parameter.annotation).partition(" | None")
        fits = _KINDS.get(wanted)
        if fits is None or name not in bound.arguments:
            continue
        value = bound.arguments[name]
        if not (fits(value) or (optional and value is None)):
            raise wrong_type(call, name, wanted, value, position) from None
    if isinstance(error, (AttributeError, TypeError)):
        got = ", ".join(
            [type(value).__name__ for value in args] + [f"{k}={type(v).__name__}" for k, v in named.items()]
        )
        words = f"{call}() received an invalid combination of arguments - got ({got})"
        raise ArgumentError(words, str(error)) from error


# What an annotation takes.
_KINDS: dict[str, Callable[[Any], bool]] = {
    "Tensor": lambda value: hasattr(value, "_origin"),
    "int": lambda value: hasattr(value, "__index__") and not isinstance(value, bool),
    "float": lambda value: isinstance(value, (int, float)) or hasattr(value, "__array__"),
    "bool": lambda value: isinstance(value, bool),
    "str": lambda value: isinstance(value, str),
}
