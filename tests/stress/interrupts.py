"""Ctrl-C at random instants: the state afterwards is one that a program could have reached without it."""

from __future__ import annotations

import gc
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable

import tritensor as torch
from tritensor.utils.data import DataLoader

from .loaders import Numbers, wait_for, workers
from .scenarios import HAS_FORK, scenario

HAS_TIMERS = hasattr(signal, "setitimer")


def interrupted(work: Callable[[], None], seconds: float) -> None:
    """Repeat work until an interrupt after some seconds ends it."""
    assert threading.current_thread() is threading.main_thread()
    over = False

    def interrupt(*_: object) -> None:
        if not over:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        try:
            # and again, because Python's own hooks of a fork swallow an interrupt that comes in them
            signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)
            while True:
                work()
        except KeyboardInterrupt:
            over = True
    except KeyboardInterrupt:  # the second came before the first was handled
        over = True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def modes() -> int:
    """How many objects of modes there are."""
    gc.collect()
    return sum(type(each) in (torch.no_grad, torch.enable_grad, torch.inference_mode) for each in gc.get_objects())


@scenario(HAS_TIMERS)
def interrupted_blocks(rng: random.Random) -> Counter[str]:
    """An interrupt in no_grad() and the other modes, plain and nested."""

    def work() -> None:
        with torch.no_grad(), torch.enable_grad(), torch.inference_mode():
            pass
        # not set_grad_enabled(), whose mode holds from the call on, before a block that an interrupt may never enter

    before = modes()
    for _ in range(200):
        interrupted(work, rng.uniform(1e-5, 2e-4))
        assert torch.is_grad_enabled(), "the mode is not restored"
        assert not torch.is_inference_mode_enabled()
    work()
    assert modes() <= before, "a mode is kept after its block"
    return Counter({"interrupts": 200})


@scenario(HAS_TIMERS)
def interrupted_passes(rng: random.Random) -> Counter[str]:
    """An interrupt in forward and backward passes and changes in place: the next pass is right."""
    x = torch.ones(50, requires_grad=True)
    for _ in range(40):

        def work() -> None:
            y = x * 2
            y.mul_(2)
            y[3:].add_(1)
            y.sum().backward()

        interrupted(work, rng.uniform(1e-5, 2e-3))
        x.grad = None
        assert torch.is_grad_enabled()
        (x * 3).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [3] * 50
    return Counter({"interrupts": 40})


@scenario(HAS_TIMERS and HAS_FORK)
def interrupted_loaders(rng: random.Random) -> Counter[str]:
    """An interrupt in a loop over a loader with workers, at its start, in its middle or at its end."""
    for _ in range(3):

        def work() -> None:
            for _ in DataLoader(Numbers(12), batch_size=2, num_workers=2):
                pass

        interrupted(work, rng.uniform(1e-4, 0.15))
        assert wait_for(lambda: not workers()), "a worker is left"
    return Counter({"interrupts": 3})
