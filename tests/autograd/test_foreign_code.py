"""Code that runs inside of `backward` without being part of it sees the mode of who called `backward`."""

from __future__ import annotations

import gc
import signal
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import tritensor as torch

WAYS = [(create, caller) for create in (False, True) for caller in (False, True)]


class Named(torch.autograd.Function):
    """Its backward, which the user wrote, is part of the pass."""

    @staticmethod
    def forward(ctx: Any, x: Any, see: Callable[[str], None]) -> Any:
        ctx.see = see
        return x * 1

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        ctx.see("part")
        return gradient * 1, None


def watched(build: Callable[[Any, Callable[[str], None]], Any], create: bool, caller: bool) -> list[tuple[str, bool]]:
    """Which modes were seen during a backward pass through what `build` makes, and by whom."""
    seen: list[tuple[str, bool]] = []

    def see(who: str) -> None:
        with torch.no_grad():  # which comes back
            assert not torch.is_grad_enabled()
        recorded = (torch.ones(1, requires_grad=True) * 2).requires_grad
        assert recorded is torch.is_grad_enabled()
        seen.append((who, recorded))

    x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    out = build(x, see)
    with torch.set_grad_enabled(caller):
        seen.clear()
        if create:
            torch.autograd.grad(out, x, create_graph=True)
        else:
            out.backward()
        assert torch.is_grad_enabled() is caller
        return list(seen)


@pytest.mark.parametrize(("create", "caller"), WAYS)
def test_hooks_and_functions_see_the_mode_of_the_pass(create: bool, caller: bool) -> None:
    def build(x: Any, see: Callable[[str], None]) -> Any:
        y = Named.apply(x.sin(), see)
        y.register_hook(lambda gradient: see("part"))
        x.register_hook(lambda gradient: see("part"))
        x.register_post_accumulate_grad_hook(lambda leaf: see("part"))
        return y.cos().sum()

    seen = watched(build, create, caller)
    assert len(seen) >= 3 and set(seen) == {("part", create)}


@pytest.mark.parametrize(("create", "caller"), WAYS)
def test_finalizers_see_the_mode_of_the_caller(create: bool, caller: bool) -> None:
    def build(x: Any, see: Callable[[str], None]) -> Any:
        for _ in range(5):
            factor = torch.rand(3, dtype=torch.float64)
            weakref.finalize(factor, see, "finalizer")
            x = (x * factor).sin()
        return x.sum()

    seen = watched(build, create, caller)
    assert set(seen) <= {("finalizer", caller)}
    assert create or len(seen) >= 4  # a graph that is kept keeps what it saved


@pytest.mark.parametrize(("create", "caller"), WAYS)
def test_the_garbage_collectors_callbacks_see_the_mode_of_the_caller(create: bool, caller: bool) -> None:
    active: list[Callable[[str], None]] = []

    class Cycle:
        def __init__(self) -> None:
            self.itself = self

        def __del__(self) -> None:
            if active:
                see = active.pop()
                see("finalizer in a cycle")
                active.append(see)

    def collected(phase: str, facts: Any) -> None:
        if active:
            see = active.pop()
            see("callback")
            Cycle()
            active.append(see)

    def build(x: Any, see: Callable[[str], None]) -> Any:
        for _ in range(40):
            x = (x.sin() * 1.1).exp().softmax(0).reshape(3)
        active.append(see)
        return x.sum()

    before = gc.get_threshold()
    gc.callbacks.append(collected)
    gc.set_threshold(2, 2, 2)
    try:
        seen = watched(build, create, caller)
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(collected)
        active.clear()
    inside = [mode for _, mode in seen]
    assert len(inside) > 20
    assert inside.count(caller) == len(inside)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
@pytest.mark.parametrize(("create", "caller"), WAYS)
def test_a_signals_handler_sees_the_mode_of_the_caller(create: bool, caller: bool) -> None:
    assert threading.current_thread() is threading.main_thread()
    seen: list[bool] = []
    x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(torch.is_grad_enabled()))
    try:
        for _ in range(10):
            y = x
            for _ in range(40):
                y = (y.sin() * 1.1).softmax(0)
            out = y.sum()
            with torch.set_grad_enabled(caller):
                signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
                torch.autograd.grad(out, x, create_graph=create)
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(seen) > 20 and seen.count(caller) == len(seen)


def test_a_handler_may_run_backward_itself() -> None:
    results: list[Any] = []

    def build(x: Any, see: Callable[[str], None]) -> Any:
        factor = torch.rand(3, dtype=torch.float64)

        def train() -> None:
            leaf = torch.ones(2, requires_grad=True)
            (leaf.sin() * 3).sum().backward()
            results.append((leaf.grad, torch.is_grad_enabled()))

        weakref.finalize(factor, train)
        return (x * factor).sin().sum()

    watched(build, False, True)
    ((gradient, mode),) = results
    assert mode and torch.allclose(gradient, 3 * torch.ones(2).cos())
