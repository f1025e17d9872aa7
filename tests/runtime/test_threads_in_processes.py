"""The CPU's threads in a process: many callers, interrupts, forks, and the end."""

from __future__ import annotations

import os
import sys
import time

import pytest

from .shared_work import SECONDS, SHARED, run

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="signals and affinity as Linux has them")


def test_many_threads_share_out_work_at_once() -> None:
    run(
        SHARED
        + """
wrong = []
def caller(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        size, step = int(rng.integers(1, 50_000)), int(rng.integers(100, 9_000))
        if not square(size, step):
            wrong.append(size)
callers = [threading.Thread(target=caller, args=(seed,)) for seed in range(12)]
for each in callers: each.start()
for each in callers: each.join()
assert not wrong
"""
    )


def test_numbers_of_threads_may_change_meanwhile() -> None:
    run(
        SHARED
        + """
ends = time.monotonic() + 0.7
def change():
    while time.monotonic() < ends:
        for number in (1, 5, 2): torch.set_num_threads(number)
changer = threading.Thread(target=change)
changer.start()
while time.monotonic() < ends:
    assert square(40_000, 1_000)
changer.join()
torch.set_num_threads(3)
from tritensor.host.threads import blas_on_one_thread
assert blas_on_one_thread.depth == 0
assert {library.get_num_threads() for library in blas_on_one_thread.found()} <= {3}
"""
    )


# ---- interrupts -----------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@on_linux
@pytest.mark.parametrize("where", ["a piece", "the wait"])
def test_an_interrupt_is_raised_when_no_thread_writes_any_more(where: str) -> None:
    """Signals come while the caller computes, and while it waits for another thread."""
    told = run(
        SHARED
        + f"""
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
caller, writing, ended = threading.get_ident(), [], []
started = threading.Event()

def interrupt():
    started.wait()
    time.sleep(0.1)
    for _ in range({2 if where == "the wait" else 1}):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)

def slow(start, stop):
    if threading.get_ident() == caller and {where == "the wait"}:
        while not writing: time.sleep(0.001)
        return
    writing.append(start)
    started.set()
    ends = time.monotonic() + 0.5
    while time.monotonic() < ends: time.sleep(0.01)
    ended.append(start)

sender = threading.Thread(target=interrupt)
sender.start()
try:
    in_pieces(slow, {2 if where == "the wait" else 4000}, 1)
except KeyboardInterrupt:
    print("interrupted")
assert {where == "a piece"} or writing == ended
assert len(writing) < 100
sender.join()
from tritensor.host.threads import _inside, blas_on_one_thread
assert not _inside.piece and blas_on_one_thread.depth == 0
assert square()
"""
    )
    assert told == "interrupted\n"


@pytest.mark.thorough
@on_linux
def test_interrupts_at_any_moment_leave_shared_work_usable() -> None:
    """Hundreds of them, while short work is shared; none is lost, none hangs, and every result afterwards is right."""
    told = run(
        SHARED
        + """
import signal
armed, caught, ends = False, 0, time.monotonic() + 2

def handle(*_):  # raises in shared work only, not while the test counts
    global armed
    if armed:
        armed = False
        raise KeyboardInterrupt

def interrupt():
    while time.monotonic() < ends:
        time.sleep(0.003)
        os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, handle)
sender = threading.Thread(target=interrupt)
sender.start()
while True:
    try:
        armed = True
        while time.monotonic() < ends:
            in_pieces(lambda start, stop: sum(range(50)), 40, 1)
        armed = False
        break
    except KeyboardInterrupt:
        caught += 1
sender.join()
assert square() and square(50_000, 1_000)
print(caught)
"""
    )
    assert int(told) > 50


@on_linux
def test_a_signals_handler_may_compute() -> None:
    run(
        SHARED
        + """
import signal
right = []
signal.signal(signal.SIGALRM, lambda *_: right.append(square(9_000, 1_000)))
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.005)
ends = time.monotonic() + 2
while time.monotonic() < ends:
    right.append(square(9_000, 1_000))
signal.setitimer(signal.ITIMER_REAL, 0)
assert all(right) and len(right) > 100
"""
    )


# ---- forks ----------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@needs_fork
def test_a_fork_while_work_is_shared_computes_and_ends() -> None:
    """The child has only the thread that forked; locks that others held are held there for ever."""
    run(
        SHARED
        + """
stop = threading.Event()
def work():
    while not stop.is_set(): assert square(200_000, 10_000)
def product():
    x = np.ones((64, 64))
    while not stop.is_set():
        in_pieces(lambda start, stop: x @ x, 4, 1)
others = [threading.Thread(target=each, daemon=True) for each in (work, work, product)]
for each in others: each.start()
for turn in range(12):
    child = os.fork()
    if not child:
        good = square() and square(200_000, 10_000) and (np.ones((99, 99)) @ np.ones((99, 99)) == 99).all()
        x = torch.ones(1000, requires_grad=True)
        (x * 2).sum().backward()
        os._exit(7 if good and x.grad.sum().item() == 2000 else 1)
    ends = time.monotonic() + 20
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > ends:
            os.kill(child, 9)
            raise SystemExit("the child hangs")
        time.sleep(0.002)
    assert os.waitstatus_to_exitcode(status) == 7, status
stop.set()
for each in others: each.join()
assert square()
"""
    )


@needs_fork
def test_a_fork_after_use_starts_threads_of_its_own() -> None:
    run(
        SHARED
        + """
child = os.fork()
meet = threading.Barrier(4, timeout=20)
in_pieces(lambda start, stop: meet.wait(), 4, 1)
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
# both end as processes do, with their threads waiting
"""
    )


@needs_fork
def test_blas_has_its_threads_in_a_process_that_was_forked_within_its_limit() -> None:
    run(
        SHARED
        + """
from tritensor.host.threads import blas_on_one_thread as limited
torch.set_num_threads(2)
numbers = lambda: {library.get_num_threads() for library in limited.found()}
outside, within, leave = numbers(), threading.Event(), threading.Event()
def other():
    with limited:
        within.set()
        leave.wait()
thread = threading.Thread(target=other, daemon=True)
thread.start()
within.wait()
child = os.fork()
if not child:
    good = numbers() == outside and limited.depth == 0
    with limited: good = good and numbers() <= {1}
    os._exit(0 if good and numbers() == outside else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert numbers() <= {1}
leave.set()
thread.join()
assert numbers() == outside
"""
    )


# ---- the start and the end of the process ---------------------------------------------------------------------------


def test_an_import_starts_no_thread_and_looks_for_no_blas() -> None:
    run(
        """
import tritensor as torch
assert threading.active_count() == 1
assert "threadpoolctl" not in sys.modules
(torch.ones(3) + 1).sum()
assert threading.active_count() == 1
"""
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("end", "status", "told"),
    [
        ("", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("raise LookupError('last words')", 1, "LookupError: last words"),
        ("threading.Thread(target=lambda: (square(), sys.exit(1))).start()", 0, ""),
        ("threading.Thread(target=lambda: time.sleep(0.2) or print('still', square(), flush=True)).start()", 0, "True"),
        ("import atexit; atexit.register(lambda: print('at the end', square()))", 0, "at the end True"),
        ("threads._threads.restart(); import atexit; atexit.register(lambda: print('end', square()))", 0, "end True"),
        ("threading.Thread(target=in_pieces, args=(lambda *_: time.sleep(9), 4, 1), daemon=True).start()", 0, ""),
    ],
)
def test_a_process_ends_though_threads_wait(end: str, status: int, told: str) -> None:
    begin = time.monotonic()
    printed = run(SHARED + f"from tritensor.host import threads\n{end}\n", status)
    assert told in printed
    assert time.monotonic() - begin < SECONDS / 2


@on_linux
def test_a_process_starts_with_the_number_of_the_environment_or_of_its_processors() -> None:
    program = "import tritensor; print(tritensor.get_num_threads())"
    assert run(program, OMP_NUM_THREADS="3") == "3\n"
    one = min(os.sched_getaffinity(0))
    assert run(f"os.sched_setaffinity(0, {{{one}}})\n{program}", OMP_NUM_THREADS="") == "1\n"
