"""`__torch_function__`: public functions and members of Tensor ask classes of their arguments what they return.

Nothing asks before `install`, which the first class that could answer calls: a subclass of Tensor, a mode, or a class
that is no tensor and has the method. It exchanges the code within each function, which stays the same object: who
imported it before, or has it as a key, calls the new one, and that is what `__torch_function__` gets as `func`. The own
code goes on as a function of its own, `Overridable.own`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import cache
from types import CodeType, FunctionType
from typing import Any, cast

from ..errors import ArgumentError, explain, warn
from . import index, public

Args = tuple[object, ...]
Named = dict[str, Any]


class _Thread(threading.local):
    """What a thread has disabled, its modes, the innermost last, and whether the next call asks nobody."""

    disabled = 0  # 1: subclasses, 2: modes too
    skips = False

    def __init__(self) -> None:
        self.modes: list[Any] = []


here = _Thread()
known: dict[object, Overridable] = {}  # by the function, and for a property by its `__get__`, `__set__`, `__delete__`
_exempt: set[type] = set()  # classes without `__torch_function__`
_plain: set[type] = set()  # classes whose instances are not asked; empty while there is a mode
_open = [0]  # modes of all threads
_lock = threading.RLock()

_SILENT = {"is_tensor", "from_numpy", "manual_seed", "frombuffer", "initial_seed", "seed", "broadcast_shapes"}
_SILENT |= {"typename", "fork_rng", "as_subclass", "__new__", "__init__", "__init_subclass__", "__torch_function__"}
_SILENT |= {"__hash__"}
_SILENT_WORDS = ("get_default", "get_num", "get_rng", "get_float32", "get_autocast", "set_", "autocast_", "clear_auto")
_SILENT_WORDS += ("is_autocast", "is_grad_e", "is_inference_mode")
_DATA = {"tensor": 0, "as_tensor": 0, "asarray": 0, "new_tensor": 1}  # how many arguments are asked, if not all
# What Python's syntax is in PyTorch, where it is a method of another name.
_SYNTAX = {f"__{name}__": name for name in ("add", "sub", "mul", "matmul", "pow", "lt", "le", "gt", "ge", "neg", "abs")}
_SYNTAX |= {"__truediv__": "div", "__div__": "div", "__mod__": "remainder", "__radd__": "add", "__rmul__": "mul"}
_SYNTAX |= {f"__i{name[2:]}": f"{method}_" for name, method in _SYNTAX.items() if name[2] not in "lgnr"}
_OPERATORS = {*_SYNTAX, "__eq__", "__ne__", "__and__", "__or__", "__xor__", "__rsub__", "__rtruediv__", "__rpow__"}
_OPERATORS |= {"__floordiv__", "__rfloordiv__", "__rmatmul__", "__rmod__"}


class Overridable:
    """A function that asks first.

    Attributes:
        name: in messages. func: what `__torch_function__` gets. own: the function that does not ask.
        asked: how many positional arguments are asked.
        syntax: the name of a method of Python's syntax, of which a TypeError is NotImplemented, so that Python tries
            the other operand's.
    """

    def __init__(self, name: str, func: Any, own: FunctionType, asked: int | None, syntax: str | None) -> None:
        self.name, self.func, self.own, self.asked, self.syntax = name, func, own, asked, syntax

    def __call__(self, args: Args, named: Named) -> object:
        """The result of the first mode or argument that has one; of the function itself if there are none."""
        if here.disabled == 2 or here.skips:
            here.skips = False
            return self.own(*args, **named)
        asked = [] if here.disabled else overloaded((*args[: self.asked], *named.values()))
        if not asked and not here.modes:
            if self.asked is None:
                return self.own(*args, **named)
            with Off():
                return self.own(*args, **named)
        if self.own.__name__ == "__iter__":  # which nobody is asked about
            return _iterated(*args)
        if self.syntax is None:
            return ask(self.func, self.name, asked, args, named)
        method = _SYNTAX.get(self.syntax, self.syntax)
        try:
            return ask(getattr(public.tensor_class(), method), f"torch.Tensor.{method}", asked, args, named)
        except TypeError:
            return NotImplemented


def ask(func: Any, name: str, asked: list[Any], args: Args, named: Named, words: str = "") -> object:
    """The result of the innermost mode, or of the first of the arguments whose class has one.

    Raises:
        ArgumentError: none has; `words` is the message instead of PyTorch's for its compiled functions.
    """
    kinds, mode = tuple(map(type, asked)), None
    if here.modes and here.disabled < 2:
        mode = here.modes.pop()
        if isinstance(vars(type(mode)).get("__torch_function__"), classmethod):
            here.modes.append(mode)
            words = "Defining your mode's `__torch_function__` as a classmethod is not supported"
            raise RuntimeError(explain(f"{words}, please make it a plain method"))
        try:
            result = mode.__torch_function__(func, kinds, args, named)
        finally:
            here.modes.append(mode)
        if result is not NotImplemented:
            return result
    for each in asked:
        handler = each.__torch_function__
        if getattr(handler, "__self__", None) is each:
            warn(
                "Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, "
                "please define it as a classmethod.",
                DeprecationWarning,
            )
        result = handler(func, kinds, args, named)
        if result is not NotImplemented:
            return result
    lines = [f"  - mode object {mode}"] * (mode is not None) + [f"  - tensor subclass {kind}" for kind in kinds]
    words = words or f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:"
    raise ArgumentError("\n\n".join([words, "\n".join(lines)]) if words.endswith(":") else words)


def overloaded(values: Iterable[object]) -> list[Any]:
    """The values to ask, of each class one: in their order, but of a class before those of classes it inherits from."""
    found: list[Any] = []
    for value in values:
        kind = type(value)
        if kind is list or kind is tuple:
            inner: Iterable[Any] = overloaded(cast(Any, value))
        else:
            handler = None if kind in _exempt else getattr(kind, "__torch_function__", None)
            if handler is unasked and not _open[0]:
                _plain.add(kind)
            inner = () if handler is None or handler is unasked else (value,)
        for each in inner:
            kind = type(each)
            if all(type(one) is not kind for one in found):
                places = [place for place, one in enumerate(found) if issubclass(kind, type(one))]
                found.insert(places[0] if places else len(found), each)
    return found


def by_default(cls: Any, func: Any, kinds: Iterable[type], args: Args, named: Named | None) -> object:
    """The result of a function whose arguments are taken for plain tensors, as the subclass."""
    if not all(issubclass(cls, kind) for kind in kinds):
        return NotImplemented
    with Off():
        result = func(*args, **(named or {}))
        return result if func == public.tensor_class().grad.__get__ else _converted(result, cls)


def _converted(result: Any, cls: Any) -> Any:
    """A result whose tensors are of a subclass."""
    if isinstance(result, tuple | list):
        parts = [_converted(each, cls) for each in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    plain = isinstance(result, public.tensor_class()) and not isinstance(result, cls)
    return result.as_subclass(cls) if plain else result


def _iterated(x: Any) -> Any:
    """The iterator over a tensor, made of functions that are asked about."""
    return x.unbind(0).__iter__() if x.dim() else _exchanged[type(x).__iter__](x)


class Off:
    """A context without `__torch_function__`, of subclasses only, or of modes too."""

    level = 1

    def __enter__(self) -> None:
        self.before, here.disabled = here.disabled, max(here.disabled, self.level)

    def __exit__(self, *error: object) -> None:
        here.disabled = self.before


class _Unasked:
    """What a class has for `__torch_function__` whose tensors are plain tensors to functions."""

    def __call__(self, func: Any, types: Iterable[type], args: Args = (), kwargs: Named | None = None) -> Any:
        with Off():
            return func(*args, **(kwargs or {}))


unasked = _Unasked()


def push(mode: object) -> None:
    """Make a mode the innermost one of the thread."""
    install()
    with _lock:
        here.modes.append(mode)
        _open[0] += 1
        _plain.clear()


def pop() -> Any:
    """Leave the innermost mode."""
    with _lock:
        _open[0] -= 1
        if not _open[0]:
            _plain.update(_exempt)
        return here.modes.pop()


def has_method(*values: object) -> bool:
    """True if a value that is no tensor has `__torch_function__`; from then on functions ask."""
    if any(hasattr(type(value), "__torch_function__") for value in overloaded(values)):
        install()
        return True
    return False


# ---- the exchange of code --------------------------------------------------------------------------------------


@cache
def _asking(cells: int) -> CodeType:
    """The code of a function that asks, with as many variables of an enclosing function, which it leaves alone."""
    names = ", ".join(f"c{position}" for position in range(cells))
    lines = [
        f"def outer({names}):",
        " def asks(*args, _plain, _own, _ask, **named):",
        f"  if 0: {names or 0}",
        "  return _ask(args, named) if named or not _plain(map(type, args)) else _own(*args)",
        " return asks",
    ]
    found: dict[str, Any] = {}
    exec(compile("\n".join(lines), __file__, "exec"), found)
    return found["outer"](*[None] * cells).__code__


def _copy(function: FunctionType) -> FunctionType:
    """A function of the same code, defaults and variables."""
    made = FunctionType(function.__code__, function.__globals__, function.__name__, None, function.__closure__)
    for name in ("__defaults__", "__kwdefaults__", "__doc__", "__module__", "__qualname__", "__annotations__"):
        setattr(made, name, getattr(function, name))
    made.__dict__.update(function.__dict__)
    return made


def _exchange(function: Any, name: str, func: Any = None) -> None:
    """Let a function ask first; `func` is what `__torch_function__` gets, itself unless given."""
    bare = name.removeprefix("torch.Tensor.")
    if not isinstance(function, FunctionType) or function in _exchanged or bare.rpartition(".")[2] in _SILENT:
        return
    if bare.removeprefix("torch.").startswith(_SILENT_WORDS):
        return
    own, code = _copy(function), function.__code__
    asks = Overridable(name, func or function, own, _DATA.get(function.__name__), bare if bare in _OPERATORS else None)
    known[asks.func], _exchanged[function] = asks, own
    if not {"__wrapped__", "__signature__"} & function.__dict__.keys():
        function.__wrapped__ = own  # type: ignore[attr-defined] # whose signature is shown
    given = {"_plain": _plain.issuperset, "_own": own, "_ask": asks}
    function.__kwdefaults__ = {**(function.__kwdefaults__ or {}), **given}  # before the code, for other threads
    function.__code__ = _asking(len(code.co_freevars)).replace(co_name=code.co_name, co_qualname=code.co_qualname)


def _member(owner: type, name: str, value: Any) -> None:
    """Let a member of Tensor ask first."""
    if isinstance(value, property):
        for function, word in ((value.fget, "__get__"), (value.fset, "__set__"), (value.fdel, "__delete__")):
            _exchange(function, f"torch.Tensor.{name}.{word}", getattr(value, word))
    elif isinstance(value, FunctionType) and (name[0] != "_" or name[:2] == "__"):
        if value in _exchanged and name not in _SILENT:  # a function that has another name, which is another object
            value = _copy(_exchanged[value])
            setattr(owner, name, value)
        _exchange(value, f"torch.Tensor.{name}")
        if value in _exchanged:
            value.__name__ = name


def _declared(kind: str, name: str, value: object) -> None:
    """Let a function of a namespace ask first, or a member."""
    if kind == "member":
        _member(public.tensor_class(), name, value)
    elif kind in _PREFIXES:
        _exchange(value, f"{_PREFIXES[kind]}.{name}")


_PREFIXES = {"public": "torch", "functional": "torch.nn.functional", "special": "torch.special"}
_PREFIXES |= {"linalg": "torch.linalg", "fft": "torch.fft"}
_exchanged: dict[FunctionType, FunctionType] = {}  # and their own code


def install() -> None:
    """Let all public functions and members of Tensor ask first, those of modules that are imported later, too."""
    Tensor = public.tensor_class()
    with _lock:
        if index.watching:
            return
        index.watching.append(_declared)
        _exempt.update({Tensor, int, float, complex, bool, str, slice, type(None), type(...)})
        _exempt.update(public.PACKAGE[name] for name in ("Size", "device", "dtype", "memory_format"))
        _plain.update(() if _open[0] else _exempt)
        for names in (public.PACKAGE, public.FUNCTIONAL, public.SPECIAL):
            for name, value in [*dict.items(names)]:
                _declared(names.kind, name, value)
        for kind, namespace in public.namespaces:
            for name in namespace["__all__"]:
                _declared(kind, name, namespace[name])
        for owner in Tensor.__mro__[:-1]:
            for name, value in [*vars(owner).items()]:
                _member(owner, name, value)


def remove() -> None:
    """Give all functions their own code back, for tests of what a call costs without `__torch_function__`."""
    with _lock:
        index.watching.clear()
        for function, own in _exchanged.items():
            function.__code__, function.__kwdefaults__ = own.__code__, own.__kwdefaults__
            if function.__dict__.get("__wrapped__") is own:
                del function.__wrapped__  # type: ignore[attr-defined]
        _exchanged.clear()
        known.clear()
        _plain.clear()
