"""The recording mode, one flag per thread, and the context managers that set it."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
import weakref
from collections.abc import Callable, Generator
from typing import Any, Self, TypeVar, overload

from ..ground.arguments import wrong_type
from ..ground.public import public

F = TypeVar("F", bound=Callable[..., Any])


class _Recording(threading.local):
    enabled = True
    inference = False
    selective = False  # in a backward pass to some tensors only
    current: Any = None  # the backward pass: its roots, nodes that lead to targets, and targets
    waiting: tuple[Callable[[], None], ...] = ()  # what to call when it has ended


recording = _Recording()


class _Restoring(threading.local):
    """Functions that set this thread's modes, by their values. They are written in C: no interrupt comes into them."""

    def __init__(self) -> None:
        update = recording.__dict__.update
        values = ((False, False), (False, True), (True, False), (True, True))
        self.to = {pair: functools.partial(update, {"enabled": pair[0], "inference": pair[1]}) for pair in values}


restoring = _Restoring()


class _Own(threading.local):
    """One thread's part of modes that many threads may be in at once."""

    def __init__(self) -> None:
        self.next: dict[_GradMode, Callable[[], _Block | None]] = {}  # the block that a statement has for a mode
        # the blocks that were entered without a `with` statement, by a call of `__enter__`
        self.entered: weakref.WeakKeyDictionary[_GradMode, list[_Block]] = weakref.WeakKeyDictionary()


own = _Own()


class PassMode:
    """The mode of a thread in a backward pass whose own mode is another than its caller's, as the value of
    `recording.enabled`.

    It is the pass's for the package's functions that the pass calls, and the caller's for what runs in between:
    finalizers, handlers of signals, callbacks of the garbage collector. Hooks and functions of the user's that are part
    of the pass run with the pass's mode itself, `whole`.
    """

    __slots__ = ("whole",)

    propagate: Any = None  # the code of the function that is the pass

    def __init__(self, whole: bool) -> None:
        self.whole = whole

    def __bool__(self) -> bool:
        frame: Any = _getframe(1)
        while frame is not None:
            code = frame.f_code
            if code is self.propagate:
                return self.whole
            if code.co_filename not in _PARTS and not _is_part(code.co_filename):
                break
            frame = frame.f_back
        return not self.whole


_getframe = sys._getframe
_PACKAGE = __file__.rpartition("autograd")[0]
_PARTS = {contextlib.__file__, functools.__file__}  # source files whose functions may be part of a pass


def _is_part(filename: str) -> bool:
    found = filename.startswith((_PACKAGE, "<tritensor", "<replay"))
    if found:
        _PARTS.add(filename)
    return found


PASS_MODES = {False: PassMode(False), True: PassMode(True)}


@public(functional=False)
def is_grad_enabled() -> bool:
    """True if operators are being recorded in this thread."""
    return bool(recording.enabled)


@public(functional=False)
def is_inference_mode_enabled() -> bool:
    """True if this thread is inside `inference_mode`."""
    return recording.inference


_nothing = tuple  # a function that does nothing and is written in C


class _Block:
    """A block of a mode, which restores the modes if it is dropped while the program is inside.

    `__del__` is the function in the slot: the first instruction of one in Python would look for interrupts, which are
    swallowed there, and another may have come since the one that ended the block.
    """

    __slots__ = ("__weakref__", "restore")

    restore: Callable[[], Any]  # sets the modes from before the block, in the thread that entered it; else `_nothing`

    def __init__(self) -> None:
        self.restore = _nothing


_Block.__del__ = _Block.restore  # type: ignore[attr-defined, misc]


class _Exit:
    """`__exit__` that restores the modes even where an interrupt comes before its first instruction.

    A `with` statement gets `__exit__` before it calls `__enter__`, and then has the only reference to what it got. That
    function owns the block: if an interrupt ends the statement, function and block are dropped, and the modes restored.
    The function's arguments have a weak reference to the block, because the interrupt's traceback keeps them.
    """

    def __get__(self, mode: _GradMode | None, owner: type) -> Any:
        if mode is None:
            return self
        following = own.next
        if following:
            _forget_dropped(following)
        block = _Block()
        following[mode] = known = weakref.ref(block)
        leave = functools.partial(_leave, mode, known)
        leave.block = block  # type: ignore[attr-defined]
        return leave

    def __call__(self, mode: _GradMode, *exception: object) -> None:
        """The class's `__exit__`, which `contextlib.ExitStack` calls."""
        _leave(mode, _no_block)


def _leave(mode: _GradMode, known: Callable[[], _Block | None], *exception: object) -> None:
    block = known()
    if block is None or block.restore is _nothing:  # `mode.__exit__()` after `mode.__enter__()`
        block = own.entered.get(mode, []).pop()
    # until the modes are restored no instruction looks for an interrupt
    restore = block.restore
    block.restore = _nothing
    restore()


def _no_block() -> _Block | None:
    return None


def _forget_dropped(following: dict[_GradMode, Callable[[], _Block | None]]) -> None:
    """Forget the blocks that no statement will enter, and with them their modes, which the table would keep for ever:
    of a call of `mode.__exit__()`, or of a statement that an interrupt ended before `__enter__` took its block."""
    # of a copy, because a finalizer or a handler of a signal may enter a block meanwhile
    for mode, known in following.copy().items():
        if known() is None:
            following.pop(mode, None)


class _GradMode:
    """A context manager and decorator that sets the recording mode of the thread and restores the previous one."""

    enabled = True
    inference: bool | None = None

    def __enter__(self) -> None:
        block = own.next.pop(self, _no_block)()
        if block is None:
            block = _Block()
            own.entered.setdefault(self, []).append(block)
        before, inference = recording.enabled, recording.inference
        if before.__class__ is bool:
            block.restore = restoring.to[before, inference]
        else:  # of a backward pass
            block.restore = functools.partial(recording.__dict__.update, {"enabled": before, "inference": inference})
        # from here on no instruction looks for an interrupt
        recording.enabled = self.enabled
        if self.inference is not None:
            recording.inference = self.inference

    __exit__ = _Exit()

    def __call__(self, function: F) -> F:
        if inspect.isgeneratorfunction(function):
            return self._around_generator(function)  # type: ignore[return-value]

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return function(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    def _around_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A generator function in whose body the mode holds; at each `yield` the caller's mode is restored."""

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            body = function(*args, **kwargs)
            try:
                with self._again():
                    value = next(body)
                while True:
                    try:
                        sent = yield value
                    except GeneratorExit:
                        with self._again():
                            body.close()
                        raise
                    except BaseException as error:
                        with self._again():
                            value = body.throw(error)
                    else:
                        with self._again():
                            value = body.send(sent)
            except StopIteration as end:
                return end.value

        return wrapped

    def _again(self) -> _GradMode:
        return type(self)()


class _BareMode(_GradMode):
    @overload
    def __new__(cls, function: None = None) -> Self: ...
    @overload
    def __new__(cls, function: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """An instance, or the function decorated when used as a bare decorator."""
        made = object.__new__(cls)
        return made if function is None else made(function)


@public(functional=False)
class no_grad(_BareMode):
    """Disables gradient recording: operators in the block (or the decorated function) are not recorded.

    >>> import tritensor as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    enabled = False


@public(functional=False)
class enable_grad(_BareMode):
    """Enables gradient recording: operators in the block are recorded, also inside `no_grad`."""


@public(functional=False)
class inference_mode(_GradMode):
    """Disables gradient recording, like `no_grad`; `is_inference_mode_enabled()` tells the two apart."""

    @overload
    def __new__(cls, mode: bool = True) -> Self: ...
    @overload
    def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, mode: Any = True) -> Any:
        """An instance, or the function decorated when used as a bare decorator."""
        return object.__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def __init__(self, mode: Any = True) -> None:
        self.enabled = not mode
        self.inference = mode

    def _again(self) -> _GradMode:
        return inference_mode(bool(self.inference))


@public(functional=False)
class set_grad_enabled(_GradMode):
    """Turn recording on or off: at once when called, until the end of the block when used as a context manager."""

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise wrong_type("set_grad_enabled", "enabled", "bool", mode, 1)
        self._before = (recording.enabled, recording.inference)
        self._thread = threading.get_ident()
        self.enabled = recording.enabled = mode

    def __enter__(self) -> None:
        if self._thread == threading.get_ident():  # in others the call has changed nothing
            recording.enabled, recording.inference = self._before  # to be restored
        super().__enter__()

    def __call__(self, function: F) -> F:
        """The function, run with recording on or off; the thread's own mode is restored at once."""
        if self._thread == threading.get_ident():
            recording.enabled = self._before[0]
        return super().__call__(function)

    def _again(self) -> _GradMode:
        return set_grad_enabled(self.enabled)
