"""`__torch_function__`: public functions and members of Tensor ask classes of their arguments what they return.

Nothing asks before `install`, which the first that could answer calls: a tensor of a subclass, a mode, or a class that
is no tensor and has the method. It exchanges the code within each function, which stays the same object: who imported
it before, or has it as a key, calls the new code, and that is what `__torch_function__` gets as `func`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import cache
from types import CodeType, FunctionType
from typing import Any, cast

from ..errors import ArgumentError
from . import index, public
from .locks import lock

Args = tuple[object, ...]
Named = dict[str, Any]
Function = Callable[..., Any]


class _Thread(threading.local):
    """What a thread has disabled: 1 subclasses, 2 modes too; and its modes, the innermost last."""

    disabled = 0

    def __init__(self) -> None:
        self.modes: list[Any] = []


here = _Thread()
known: dict[object, str] = {}  # names of the functions that ask; of a property's `__get__`, `__set__` and `__delete__`
owns: dict[FunctionType, FunctionType] = {}  # by a function that asks the one that it was
_exempt: set[type] = set()  # classes without `__torch_function__`
_plain: set[type] = set()  # those, while there is no mode: a call with arguments of these alone asks nobody
_open = [0]  # modes of all threads
_installing = lock()

_SILENT = {"is_tensor", "from_numpy", "manual_seed", "frombuffer", "initial_seed", "seed", "broadcast_shapes"}
_SILENT |= {"typename", "fork_rng", "as_subclass", "__new__", "__init_subclass__", "__torch_function__", "__hash__"}
_SILENT |= {"__iter__"}  # which calls what asks
_STATE = ("get_", "set_", "autocast_", "clear_auto", "is_autocast", "is_grad_e", "is_inference_mode")  # of the package
_DATA = {"tensor", "as_tensor", "asarray"}  # whose arguments are not asked
# Python's syntax, and the methods that it is in PyTorch.
_SYNTAX = {f"__{name}__": name for name in ("add", "sub", "mul", "matmul", "pow", "lt", "le", "gt", "ge", "neg", "abs")}
_SYNTAX |= {"__truediv__": "div", "__mod__": "remainder", "__radd__": "add", "__rmul__": "mul"}
_SYNTAX |= {f"__i{name[2:]}": f"{method}_" for name, method in _SYNTAX.items() if name[2] not in "lgnr"}
_OWN = ("__eq__", "__ne__", "__and__", "__or__", "__xor__", "__rsub__", "__rtruediv__", "__rpow__", "__floordiv__")
_SYNTAX |= {name: name for name in (*_OWN, "__rfloordiv__")}


def ask(func: object, name: str, asked: list[Any], args: Args, named: Named, words: str = "") -> Any:
    """The result of the innermost mode, or of the first argument whose class has one, for a call of `func`.

    Raises:
        ArgumentError: none has; `words` is the message instead of that for PyTorch's compiled functions.
    """
    kinds, lines = tuple(map(type, asked)), []
    if here.modes and here.disabled < 2:
        mode = here.modes.pop()
        try:
            result = mode.__torch_function__(func, kinds, args, named)
        finally:
            here.modes.append(mode)
        if result is not NotImplemented:
            return result
        lines.append(f"  - mode object {mode}")
    for each in asked:
        result = each.__torch_function__(func, kinds, args, named)
        if result is not NotImplemented:
            return result
        lines.append(f"  - tensor subclass {type(each)}")
    head = f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n\n"
    raise ArgumentError(words or head + "\n".join(lines))


def overloaded(values: Iterable[object]) -> list[Any]:
    """The values to ask, of each class one: in their order, but of a class before those of classes it inherits from."""
    found: list[Any] = []
    for value in values:
        kind: Any = type(value)
        if kind in _exempt:
            continue
        asks = getattr(kind, "__torch_function__", unasked) is not unasked
        for each in overloaded(cast("list[object]", value)) if kind in (list, tuple) else (value,) * asks:
            if all(type(one) is not type(each) for one in found):
                places = [place for place, one in enumerate(found) if isinstance(each, type(one))]
                found.insert(places[0] if places else len(found), each)
    return found


def by_default(
    tensor: type[Any], cls: type[Any], func: Function, kinds: Iterable[type], args: Args, named: Named | None
) -> Any:
    """The result of a function for arguments taken for plain tensors, as the subclass of Tensor, `tensor`."""
    if not all(issubclass(cls, kind) for kind in kinds):
        return NotImplemented

    def converted(result: object) -> object:
        if isinstance(result, tuple | list):
            kind, parts = cast(Any, type(result)), map(converted, result)
            return kind(*parts) if hasattr(result, "_fields") else kind(parts)
        return result.as_subclass(cls) if isinstance(result, tensor) and not isinstance(result, cls) else result

    result = unasked(func, kinds, args, named)
    return result if func == tensor.grad.__get__ else converted(result)


class Off:
    """A context without `__torch_function__` of subclasses; with `level` 2 of modes too."""

    level = 1

    def __enter__(self) -> None:
        self.before, here.disabled = here.disabled, max(here.disabled, self.level)

    def __exit__(self, *error: object) -> None:
        here.disabled = self.before


class _Unasked:
    """What a class has for `__torch_function__` whose tensors are plain tensors to functions."""

    def __call__(self, func: Function, types: Iterable[type], args: Args = (), kwargs: Named | None = None) -> Any:
        with Off():
            return func(*args, **(kwargs or {}))


unasked = _Unasked()


def switch(modes: int) -> None:
    """Count a mode that begins, 1, or ends, -1."""
    _open[0] += modes
    _plain.difference_update(_exempt) if _open[0] else _plain.update(_exempt)


def push(mode: object) -> None:
    """Make a mode the innermost one of the thread."""
    install()
    here.modes.append(mode)
    switch(1)


def pop(mode: object) -> None:
    """Leave a mode of the thread, which another one may be in: a profiler's block may end in that of a mode."""
    modes = here.modes
    del modes[max(place for place, each in enumerate(modes) if each is mode)]
    switch(-1)


def own_of(func: Callable[..., Any]) -> Callable[..., Any]:
    """The function that does not ask, of one that asks; any other itself."""
    return owns.get(cast(FunctionType, func)) or func


# ---- the exchange of code --------------------------------------------------------------------------------------


@cache
def _asking(cells: int) -> CodeType:
    """The code of a function that asks, with as many variables of an enclosing function, which it leaves alone."""
    names, found = ", ".join(f"c{position}" for position in range(cells)), dict[str, Any]()
    lines = f"def outer({names}):\n def asks(*args, _plain, _own, _ask, **named):\n  if 0: {names or 0}\n"
    lines += "  return _ask(args, named) if named or not _plain(map(type, args)) else _own(*args)\n return asks"
    exec(compile(lines, __file__, "exec"), found)
    return cast(CodeType, found["outer"](*[None] * cells).__code__)


def _exchange(function: FunctionType, name: str, func: object = None) -> None:
    """Let a function ask first; `func` is what `__torch_function__` gets, the function unless it is given."""
    own, word, func = public.copied(function), name.rpartition(".")[2], func or function

    def ask_first(args: Args, named: Named) -> Any:
        asked = [] if here.disabled or word in _DATA else overloaded((*args, *named.values()))
        if here.disabled == 2 or not (asked or here.modes):
            return unasked(own, (), args, named) if word in _DATA else own(*args, **named)
        if word not in _SYNTAX:
            return ask(func, name, asked, args, named)
        try:  # Python tries the other operand's method
            method = _SYNTAX[word]
            return ask(getattr(public.tensor_class(), method), f"torch.Tensor.{method}", asked, args, named)
        except TypeError:
            return NotImplemented

    known[func], owns[function] = name, own
    if not {"__wrapped__", "__signature__"} & function.__dict__.keys():
        function.__wrapped__ = own  # type: ignore[attr-defined] # whose signature is shown
    given = {"_plain": _plain.issuperset, "_own": own, "_ask": ask_first}
    function.__kwdefaults__ = {**(function.__kwdefaults__ or {}), **given}  # before the code, for other threads
    code = own.__code__
    function.__code__ = _asking(len(code.co_freevars)).replace(co_name=code.co_name, co_qualname=code.co_qualname)


_PREFIXES = {"member": "torch.Tensor", "public": "torch", "functional": "torch.nn.functional", "linalg": "torch.linalg"}
_PREFIXES |= {"special": "torch.special", "fft": "torch.fft"}


def _declared(kind: str, name: str, value: object, owner: type | None = None) -> None:
    """Let what was declared ask first: a function of a namespace, or a member of Tensor."""
    full = f"{_PREFIXES.get(kind)}.{name}"
    if isinstance(value, property):
        for function, word in ((value.fget, "__get__"), (value.fset, "__set__"), (value.fdel, "__delete__")):
            if isinstance(function, FunctionType) and function not in owns:
                _exchange(function, f"{full}.{word}", getattr(value, word))
    elif not isinstance(value, FunctionType) or kind not in _PREFIXES or name in _SILENT:
        return
    elif kind != "member":
        if value not in owns and not name.startswith(_STATE):
            _exchange(value, full)
    elif name[0] != "_" or name[:2] == "__":
        if value in owns:  # a function of another name, which is another object
            value = public.copied(owns[value])
            setattr(owner or public.tensor_class(), name, value)
        _exchange(value, full)
        value.__name__ = name


def defined(kind: type) -> None:
    """Take note of a subclass of Tensor, of which there is a tensor now."""
    if cast(Any, kind).__torch_function__ is not unasked:
        install()
    else:
        _exempt.add(kind)
        switch(0)


def install() -> None:
    """Let all public functions and members of Tensor ask first, those of modules that are imported later, too."""
    with _installing:
        if not index.watching:
            index.watching.append(_declared)
            _install()


def _install() -> None:
    tensor = public.tensor_class()
    _exempt.update({tensor, int, float, complex, bool, str, slice, type(None), type(...)})
    _exempt.update(public.PACKAGE[name] for name in ("Size", "device", "dtype", "memory_format"))
    switch(0)
    tables = (public.PACKAGE, public.FUNCTIONAL, public.SPECIAL)
    found = [(names.kind, *each) for names in tables for each in dict.items(names)]
    for kind in ("linalg", "fft"):
        module = __import__(f"{tensor.__module__}.{kind}", fromlist=["__all__"])
        found += [(kind, name, vars(module)[name]) for name in module.__all__]
    found += [("member", *each, owner) for owner in tensor.__mro__[:-1] for each in vars(owner).items()]
    for each in found:
        _declared(*each)
