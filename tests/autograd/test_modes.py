"""The recording mode: blocks, whoever calls their two ends, and interrupts at any instant."""

from __future__ import annotations

import contextlib
import gc
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import tritensor as torch

MODES = {
    "no_grad": (torch.no_grad, False, False),
    "inference_mode": (torch.inference_mode, False, True),
    "set_grad_enabled": (lambda: torch.set_grad_enabled(False), False, False),
}


def state() -> tuple[bool, bool]:
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled()


@pytest.mark.parametrize("name", MODES)
def test_the_ways_into_a_block(name: str) -> None:
    make, *inside = MODES[name]
    with make():
        assert state() == tuple(inside)
        with torch.enable_grad():
            assert state() == (True, inside[1])
        assert state() == tuple(inside)
    assert state() == (True, False)
    with contextlib.ExitStack() as stack:
        stack.enter_context(make())
        assert state() == tuple(inside)
    assert state() == (True, False)
    mode = make()
    mode.__enter__()
    assert state() == tuple(inside)
    mode.__exit__(None, None, None)
    assert state() == (True, False)


def test_one_mode_may_be_entered_again_and_in_itself() -> None:
    mode = torch.no_grad()
    for _ in range(2):
        with mode:
            with mode, torch.enable_grad():
                assert state() == (True, False)
            assert state() == (False, False)
            mode.__enter__()
            mode.__exit__(None, None, None)
            assert state() == (False, False)
        assert state() == (True, False)


def test_what_a_block_raises_passes() -> None:
    with pytest.raises(ZeroDivisionError), torch.no_grad():
        1 / 0  # noqa: B018
    assert state() == (True, False)


def interrupted_at(function: str, block: Callable[[], Any]) -> BaseException:
    """Run a block with an interrupt at the first instruction of a function of `mode.py`; returns it, still held."""

    def trace(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_name == function and frame.f_code.co_filename.endswith("mode.py"):
            sys.settrace(None)
            raise KeyboardInterrupt

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        block()
    except KeyboardInterrupt as error:
        return error
    finally:
        sys.settrace(before)
    raise AssertionError(f"{function} was not called")


def plain(mode: Any) -> None:
    with mode:
        pass


def raising(mode: Any) -> None:
    with contextlib.suppress(ValueError), mode:
        raise ValueError


def nested(mode: Any) -> None:
    with torch.enable_grad(), torch.no_grad(), mode:
        pass


@pytest.mark.parametrize("function", ["__enter__", "_leave", "__get__"])
@pytest.mark.parametrize("block", [plain, raising, nested], ids=lambda each: each.__name__)
@pytest.mark.parametrize("name", MODES)
def test_an_interrupt_at_either_end_restores_the_mode(name: str, block: Any, function: str) -> None:
    mode = MODES[name][0]()  # which the caller holds on to, as the interrupt holds its frames
    torch.set_grad_enabled(True)
    error = interrupted_at(function, lambda: block(mode))
    assert state() == (True, False), error
    plain(mode)
    assert state() == (True, False)


def by_hand(mode: Any) -> None:
    mode.__enter__()
    mode.__exit__(None, None, None)


def interrupted(mode: Any) -> None:
    interrupted_at("__enter__", lambda: plain(mode))


@pytest.mark.parametrize("block", [plain, by_hand, interrupted], ids=lambda each: each.__name__)
@pytest.mark.parametrize("name", MODES)
def test_nothing_keeps_a_mode_after_its_block(name: str, block: Any) -> None:
    """Of a call of `__exit__`, and of a statement that an interrupt ends early, a block is left that nothing enters."""

    def run() -> weakref.ref[Any]:
        mode = MODES[name][0]()
        block(mode)
        return weakref.ref(mode)

    kept = [run() for _ in range(20)]
    torch.set_grad_enabled(True)
    with torch.enable_grad():
        gc.collect()
        assert [mode() for mode in kept] == [None] * 20


def test_a_block_outlives_others_that_begin_before_it_is_entered() -> None:
    """As a handler of a signal may run between the two steps in which a `with` statement enters its block."""
    mode = torch.no_grad()
    leave = mode.__exit__
    by_hand(torch.no_grad())
    plain(torch.no_grad())
    mode.__enter__()
    assert state() == (False, False)
    del leave  # as an interrupt drops it
    assert state() == (True, False)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", MODES)
def test_a_second_interrupt_while_the_first_ends_the_block(name: str) -> None:
    """It would come at the first instruction of what is run when the block is dropped, if that were Python's."""

    def at(function: str) -> Any:
        def trace(frame: Any, event: str, argument: Any) -> None:
            if frame.f_code.co_filename.endswith("mode.py") and frame.f_code.co_name == function:
                raise KeyboardInterrupt

        return trace

    mode = MODES[name][0]()
    torch.set_grad_enabled(True)
    before = sys.gettrace()
    sys.setprofile(at("__del__"))
    sys.settrace(at("_leave"))  # an exception ends tracing, not profiling
    try:
        with pytest.raises(KeyboardInterrupt):
            plain(mode)
    finally:
        sys.settrace(before)
        sys.setprofile(None)
    assert state() == (True, False)


AUDITED = """
import sys
import tritensor as torch
events = []
sys.addaudithook(lambda event, _: events.append(event))
mode = torch.no_grad()
events.clear()
with mode:
    pass
mode.__enter__()
mode.__exit__(None, None, None)
del mode
print(events)
"""


def test_no_hook_is_called_between_two_modes() -> None:
    """An audit hook in Python looks for interrupts; assigning `__class__` would call it."""
    done = subprocess.run([sys.executable, "-c", AUDITED], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_interrupts_at_random_instants_restore_the_mode() -> None:
    assert threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for count in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, 2e-5 + count % 50 * 1e-6)
                while True:
                    with torch.no_grad():
                        pass
            except KeyboardInterrupt:
                assert state() == (True, False), count
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
