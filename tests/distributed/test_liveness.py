"""Ranks that go away without a word: the others say which one and how. Every job has a limit of time."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import time

import pytest

from tritensor.distributed.liveness import Ending, Links

from .jobs import launch, needs_mpi

linux = pytest.mark.skipif(sys.platform != "linux", reason="ranks watch each other on Linux only")
QUICK, GRACE = 15, 25


def job(*arguments, ranks=3):
    return launch(ranks, "departures.py", *arguments)


@pytest.mark.thorough
@needs_mpi
@linux
@pytest.mark.parametrize(
    ("status", "ranks"), [(0, 3), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((0, 2), (3, 2), (3, 3)))]
)
def test_a_rank_that_exits_by_itself_is_named(status, ranks):
    done = job(str(status), ranks=ranks)
    assert done.returncode != 0
    assert done.seconds < QUICK
    assert re.search(
        rf"DistError: rank 1 is gone: it ended with status {status} without destroy_process_group\(\)\n"
        r"\[rank[02]\]:   it was process \d+; rank [02] of \d waits for it in all_reduce #2 \(SUM\) of shape \(3,\)",
        done.stderr,
    ), done.stderr


@pytest.mark.thorough
@needs_mpi
@linux
def test_a_rank_that_exits_within_a_collective_is_named():
    done = job("0", "inside")
    assert done.returncode != 0
    assert done.seconds < QUICK
    assert "[rank2]: tritensor.errors.DistError: rank 1 is gone: it ended with status 0 without" in done.stderr
    assert "rank 2 of 3 waits for it in all_reduce #2" in done.stderr


@needs_mpi
@linux
@pytest.mark.parametrize(
    ("name", "when"),
    [
        pytest.param(name, when, marks=[pytest.mark.slow] * (name != "SIGTERM" or when != "inside"))
        for name in ("SIGKILL", "SIGTERM", "SIGSEGV")
        for when in ("before", "inside", "while others compute")
    ],
)
def test_the_signal_that_killed_a_rank_is_named(name, when):
    """mpiexec ends the job for a signal up to a second later, so the traceback may come or not."""
    done = job(name, when)
    assert done.returncode != 0
    assert done.seconds < QUICK
    assert f"rank 1 is gone: it was killed by {name}" in done.stderr, done.stdout + done.stderr


@needs_mpi
@linux
@pytest.mark.slow
def test_ranks_that_compute_do_not_go_on_without_another():
    done = job("0", "while others compute")
    assert done.returncode != 0
    assert done.seconds < GRACE
    assert "[rank0]: rank 1 is gone: it ended with status 0 without destroy_process_group()" in done.stderr
    assert "[rank0]: rank 0 of 3 ended the job, in which not all can take part any more." in done.stderr


@needs_mpi
@linux
@pytest.mark.slow
def test_the_error_can_be_caught():
    done = job("0", "caught")
    assert done.seconds < GRACE
    assert "rank 0 saved its model: rank 1 is gone: it ended with status 0" in done.stdout
    assert "rank 2 saved its model: rank 1 is gone: it ended with status 0" in done.stdout
    assert done.stderr == ""


@pytest.mark.thorough
@needs_mpi
def test_a_rank_that_raises_is_named_and_no_other():
    done = job("raises")
    assert done.returncode != 0
    assert done.seconds < QUICK
    assert "[rank1]: ValueError: something is wrong here" in done.stderr
    assert "is gone" not in done.stderr


@pytest.mark.thorough
@needs_mpi
def test_a_late_rank_is_not_dead():
    done = job("late")
    assert (done.returncode, done.stdout, done.stderr) == (0, "all is well\n", "")


@pytest.mark.thorough
@needs_mpi
@linux
def test_to_exit_after_leaving_is_no_failure():
    done = job("0", "after leaving")
    assert done.seconds < QUICK  # MPI would wait for ever at the end of the others
    assert (done.returncode, done.stdout, done.stderr) == (0, "the others went on\n", "")


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize("who", [pytest.param("each", marks=pytest.mark.slow), "one"])
def test_to_exit_after_the_last_collective_is_no_failure(who):
    """Not if the others end within some seconds; MPI would wait for the rank for ever."""
    done = job("0", "after all", who)
    assert done.seconds < QUICK
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_mpi
@linux
@pytest.mark.slow
def test_processes_that_a_rank_forked_are_not_the_rank():
    done = job("forks", "ends")
    assert (done.returncode, done.stderr) == (0, "")
    done = job("forks")
    assert done.returncode != 0
    assert "rank 1 is gone: it ended with status 0 without destroy_process_group()" in done.stderr


# ---- one process ----------------------------------------------------------------------------------------------


def test_how_a_rank_ended():
    assert (
        str(Ending(2, 7, None)) == "rank 2 is gone: it ended without destroy_process_group(); its status is not known"
    )
    if os.name == "posix":
        assert str(Ending(2, 7, 3 << 8)) == "rank 2 is gone: it ended with status 3 without destroy_process_group()"
        assert "os._exit() skips both" in Ending(2, 7, 0).remedy
        dumped = Ending(1, 7, signal.SIGSEGV | 0x80)  # with the bit of a core file
        assert str(dumped) == "rank 1 is gone: it was killed by SIGSEGV"
        assert "faulthandler" in dumped.remedy
        assert "memory is short" in Ending(1, 7, signal.SIGKILL).remedy
        assert Ending(1, 7, signal.SIGTERM).remedy == "find out what sent the signal"
        assert str(Ending(1, 7, 36)) == "rank 1 is gone: it was killed by signal 36"


def test_elsewhere_than_on_linux_nothing_is_opened(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    links = Links(0)
    assert links.listen() == ""
    links.connect({0: "", 1: ""})
    links.watch(print, print)
    links.leave()


@linux
def test_a_rank_that_does_not_answer_is_not_watched(monkeypatch):
    """One of another network namespace, or one that has ended; and a stranger that calls."""
    monkeypatch.setattr("tritensor.distributed.liveness._LINKING", 0.3)
    links = Links(1)
    name = links.listen()
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(f"\0{name}")
        stranger.send(b"hello")
        start = time.monotonic()
        links.connect({0: "tritensor-nobody", 1: name, 2: "tritensor-nobody"})
        assert time.monotonic() - start < 5
    links.watch(print, print)
    assert links._thread is None
    links.leave()
