"""Workers of the loader that are processes: how they die and how they end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tritensor.utils.data import DataLoader

from .processes import wait_for, workers
from .sources import Dying, Squares

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="classes of a test file reach workers by a fork"),
    pytest.mark.usefixtures("nothing_is_left"),
]
ROOT = Path(__file__).resolve().parents[2]

# ---- how they die ------------------------------------------------------------------------------------------------


def alarm():
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # a handler of the test run's own time limit is inherited
    os.kill(os.getpid(), signal.SIGALRM)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (
            lambda: os.kill(os.getpid(), signal.SIGKILL),
            r"\(pid \d+\) is killed by signal: Killed\.\n.*worker 1 of 2",
        ),
        (alarm, r"\(pid \d+\) is killed by signal: Alarm clock\.\n.*SIGALRM"),
        (lambda: os.kill(os.getpid(), signal.SIGTERM), r"\(pid \d+\) is killed by signal: Terminated\.\n.*SIGTERM"),
        (lambda: os._exit(0), r"\(pid\(s\) \d+\) exited unexpectedly\n  DataLoader worker 1 of 2 ended with status 0"),
        (lambda: os._exit(7), r"\(pid\(s\) \d+\) exited unexpectedly\n  DataLoader worker 1 of 2 ended with status 7"),
    ],
)
def test_a_dead_worker_is_named(how, words):
    batches = iter(DataLoader(Dying(9, how), num_workers=2))
    assert [next(batches).item() for _ in range(3)] == [0, 1, 2]
    for _ in range(2):  # and again, not the end of the data
        with pytest.raises(RuntimeError, match="^DataLoader worker " + words):
            next(batches)
    assert not workers()


@pytest.mark.thorough
def test_a_dead_worker_is_named_while_another_is_waited_for():
    class Slow(Squares):
        def __getitem__(self, index):
            if index == 0:
                time.sleep(60)
            os.kill(os.getpid(), signal.SIGKILL)

    batches = iter(DataLoader(Slow(9), num_workers=2))
    start = time.monotonic()
    killed = threading.Timer(3, lambda: [os.kill(pid, signal.SIGKILL) for pid in workers()])
    killed.start()  # close() waits for a batch that does not end
    with pytest.raises(RuntimeError, match="worker 1 of 2 ended by SIGKILL"):
        next(batches)
    assert time.monotonic() - start < 6
    killed.join()


def test_a_slow_worker_times_out_and_goes_on():
    class Slow(Squares):
        def __getitem__(self, index):
            time.sleep(0.4)
            return index

    batches = iter(DataLoader(Slow(1), num_workers=1, timeout=0.05))
    with pytest.raises(RuntimeError, match=r"^DataLoader timed out after 0.05 seconds"):
        next(batches)
    assert wait_for(lambda: rest_or_none(batches) == [0])


def rest_or_none(batches):
    with contextlib.suppress(RuntimeError):
        return [batch.item() for batch in batches]


@pytest.mark.thorough
def test_a_worker_that_does_not_finish_is_killed(monkeypatch):
    from tritensor.utils.data import processes

    class Stuck(Squares):
        def __getitem__(self, index):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while index:
                with contextlib.suppress(BaseException):
                    time.sleep(60)
            return index

    monkeypatch.setattr(processes, "_GRACE", 0.1)
    batches = iter(DataLoader(Stuck(9), num_workers=2))
    assert next(batches).item() == 0
    del batches
    assert not workers()


# ---- how they end ------------------------------------------------------------------------------------------------


def test_workers_end_with_their_loop():
    for _ in DataLoader(Squares(50), num_workers=2):
        assert len(workers()) == 2
        break
    assert not workers()
    batches = iter(DataLoader(Squares(50), num_workers=2))
    with pytest.raises(ZeroDivisionError):
        1 / (next(batches).item() * 0)
    del batches
    assert not workers()


def run(program, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment, **options
    )


PROGRAM = """
import os, signal, time
import tritensor as torch
from tritensor.utils.data import DataLoader, Dataset
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
class Slow(Dataset):
    def __len__(self):
        return 10**6
    def __getitem__(self, index):
        time.sleep(0.01 if index < 4 else {pause})
        return torch.ones(1000)
import multiprocessing
batches = iter(DataLoader(Slow(), num_workers=2))
next(batches)
print(*[child.pid for child in multiprocessing.active_children()], flush=True)
{then}
"""


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("pause", [0.01, 100])
def test_workers_do_not_outlive_a_killed_parent(pause):
    with run(PROGRAM.format(pause=pause, then="time.sleep(0.1); os.kill(os.getpid(), signal.SIGKILL)")) as process:
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert len(pids) == 2
        process.wait(10)
    assert wait_for(lambda: not any(map(alive, pids)), 5)


@pytest.mark.parametrize("delay", [0.0, 0.01, 0.05])
def test_ctrl_c_ends_a_loop_and_its_workers(delay):
    program = PROGRAM.format(pause=0.01, then="for batch in batches: pass")
    with run(program, start_new_session=True, stderr=subprocess.PIPE) as process:
        pids = [int(pid) for pid in process.stdout.readline().split()]
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=15)
        finally:
            process.kill()
        assert process.returncode == -signal.SIGINT
        assert errors.count("Traceback") == 1 and errors.rstrip().endswith("KeyboardInterrupt")
    assert wait_for(lambda: not any(map(alive, pids)), 5)


def test_a_loop_that_was_interrupted_is_over_and_says_so(monkeypatch):
    from tritensor.utils.data import processes

    def interrupt(worker):
        raise KeyboardInterrupt

    batches = iter(DataLoader(Squares(50), num_workers=1))
    next(batches)
    with monkeypatch.context() as patch:
        patch.setattr(processes._Worker, "answer", interrupt)
        with pytest.raises(KeyboardInterrupt):
            next(batches)
    with pytest.raises(RuntimeError, match="interrupted by KeyboardInterrupt"):
        next(batches)
    assert not workers()


def test_a_loader_in_a_forked_process():
    loader = DataLoader(Squares(9), num_workers=2, persistent_workers=True)
    batches = iter(loader)
    assert next(batches).item() == 0
    child = os.fork()
    if child == 0:
        status = 1
        with contextlib.suppress(BaseException):
            with pytest.raises(RuntimeError, match=r"^this iterator's workers belong to another process"):
                next(batches)
            assert len(list(loader)) == len(list(DataLoader(Squares(9), num_workers=2))) == 9
            status = 0
        os._exit(status)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and (found := os.waitpid(child, os.WNOHANG)) == (0, 0):
        time.sleep(0.01)
    assert found == (child, 0)
    assert [batch.item() for batch in batches] == [index * index for index in range(1, 9)]
