"""The CPU's threads: how work is shared among them, its errors, the number of threads, and BLAS meanwhile."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import traceback
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.host import threads
from tritensor.host.threads import blas_on_one_thread, in_pieces

from .shared_work import SECONDS, together

pytestmark = pytest.mark.usefixtures("same_number_of_threads")

on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="affinity as Linux has it")

# ---- shared work ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [1, 2, 3, 7])
@pytest.mark.parametrize(("size", "step"), [(0, 3), (1, 3), (3, 3), (10, 3), (12, 3), (100, 1), (5, 100)])
def test_pieces_are_the_same_for_every_number_of_threads(number: int, size: int, step: int) -> None:
    torch.set_num_threads(number)
    seen: list[tuple[int, int]] = []
    in_pieces(lambda start, stop: seen.append((start, stop)), size, step)
    assert sorted(seen) == [(start, min(start + step, size)) for start in range(0, size, step)]


def test_pieces_are_computed_by_as_many_threads_as_are_set() -> None:
    for number in (2, 5, 3):
        torch.set_num_threads(number)
        found: set[int] = set()
        meet = together(number)

        def noted(start: int, stop: int, found: set[int] = found, meet: Any = meet) -> None:
            found.add(threading.get_ident())
            meet(start, stop)

        in_pieces(noted, number, 1)
        assert len(found) == number
    torch.set_num_threads(1)
    in_pieces(lambda start, stop: found.clear() or found.add(threading.get_ident()), 9, 1)
    assert found == {threading.get_ident()}


def test_what_a_piece_shares_out_is_done_by_its_thread() -> None:
    torch.set_num_threads(4)
    out = np.zeros((6, 5, 4), int)
    owners = np.zeros((6, 5, 4), np.int64)

    def outer(i: int, _: int) -> None:
        def middle(j: int, _: int) -> None:
            def inner(k: int, _: int) -> None:
                out[i, j, k] += 1
                owners[i, j, k] = threading.get_ident()

            in_pieces(inner, 4, 1)

        in_pieces(middle, 5, 1)

    in_pieces(outer, 6, 1)
    assert (out == 1).all()
    assert (owners == owners[:, :1, :1]).all()
    in_pieces(together(4), 4, 1)  # the caller shares out again afterwards


def test_warnings_of_numpy_are_ignored_in_every_thread() -> None:
    torch.set_num_threads(3)
    meet, zero = together(3), np.zeros(4)

    def divide(start: int, stop: int) -> None:
        meet(start, stop)
        np.divide(1, zero)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        in_pieces(divide, 3, 1)


class Large(np.ndarray):
    """An array that can be watched."""


@pytest.mark.parametrize("fails", [False, True])
def test_arrays_of_a_call_are_freed_at_its_end(fails: bool) -> None:
    """Not when a thread that was too late for it, or that is busy with other work, gets to it; nor by a collection."""

    def call() -> Any:
        array = np.ones(3).view(Large)

        def read(start: int, stop: int) -> None:
            array.sum()
            if fails and start == 3:
                raise ValueError

        try:
            in_pieces(read, 8, 1)
        except ValueError:
            assert fails
        return weakref.ref(array)

    torch.set_num_threads(2)
    wait = threading.Event()
    busy = threading.Thread(target=in_pieces, args=(lambda start, stop: wait.wait(SECONDS), 2, 1))
    gc.disable()
    try:
        assert [call()() for _ in range(20)] == [None] * 20
        busy.start()
        assert [call()() for _ in range(20)] == [None] * 20
    finally:
        gc.enable()
        wait.set()
        busy.join()


def test_work_is_done_where_no_more_threads_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a system's limit is reached, or after the end of the main thread from Python 3.12 on."""

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    threads._threads.restart()
    torch.set_num_threads(3)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        out = np.zeros(10, int)

        def count(start: int, stop: int) -> None:
            out[start:stop] += 1

        in_pieces(count, 10, 1)
    assert out.tolist() == [1] * 10
    in_pieces(together(3), 3, 1)


# ---- errors ---------------------------------------------------------------------------------------------------------


def failing_piece(start: int) -> None:
    raise ValueError(f"piece {start}")


@pytest.mark.parametrize("number", [1, 2, 7])
def test_an_error_reaches_the_caller_with_its_traceback(number: int) -> None:
    torch.set_num_threads(number)
    for bad in (0, 5, 11):

        def fail(start: int, stop: int, bad: int = bad) -> None:
            if start == bad:
                failing_piece(start)

        with pytest.raises(ValueError, match=f"piece {bad}") as caught:
            in_pieces(fail, 12, 1)
        assert "failing_piece" in [frame.name for frame in traceback.extract_tb(caught.tb)]
        done: list[int] = []
        in_pieces(lambda start, stop: done.append(start), 12, 1)  # noqa: B023 - done before the next turn
        assert sorted(done) == list(range(12))


def test_an_error_of_another_thread_stops_the_work_and_waits_for_what_has_begun() -> None:
    torch.set_num_threads(2)
    meet, caller = threading.Barrier(2, timeout=SECONDS), threading.get_ident()
    ended: list[int] = []

    def fail(start: int, stop: int) -> None:
        if start < 2:
            meet.wait()
            if threading.get_ident() == caller:
                raise KeyError(start)
            time.sleep(0.1)
        ended.append(start)

    with pytest.raises(KeyError):
        in_pieces(fail, 1000, 1)
    assert len(ended) == 1 and ended[0] < 2


def test_an_error_within_nested_work_reaches_the_caller() -> None:
    torch.set_num_threads(3)
    with pytest.raises(ValueError, match="piece 1"):
        in_pieces(lambda i, _: in_pieces(lambda j, _: failing_piece(j) if (i, j) == (2, 1) else None, 3, 1), 4, 1)
    in_pieces(together(3), 3, 1)


# ---- the number of threads ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, -1, 1025])
def test_numbers_out_of_range_are_refused(number: int) -> None:
    before = torch.get_num_threads()
    with pytest.raises(RuntimeError, match=r"^set_num_threads expects a positive integer"):
        torch.set_num_threads(number)
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(("number", "name"), [(1.5, "float"), ("2", "str"), (None, "NoneType"), (True, "bool")])
def test_what_is_no_int_is_refused(number: Any, name: str) -> None:
    with pytest.raises(RuntimeError, match=f"^set_num_threads expects an int, but got {name}$"):
        torch.set_num_threads(number)


def test_a_number_that_is_set_is_returned() -> None:
    for number in (3, np.int64(2), 1, 1024):
        torch.set_num_threads(number)
        assert torch.get_num_threads() == number
        assert type(torch.get_num_threads()) is int


@on_linux
@pytest.mark.parametrize(
    ("variable", "number"),
    [("1", 1), ("3", 3), (" 5 ", 5), ("4,2", 4), ("", 0), ("0", 0), ("-2", 0), ("two", 0), ("1.5", 0), ("99999", 0)],
)
def test_the_environment_decides_the_number_at_the_start(
    variable: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zero stands for the default: the processors that the process may use."""
    monkeypatch.setenv("OMP_NUM_THREADS", variable)
    assert threads._default() == (number or len(os.sched_getaffinity(0)))


def test_a_system_without_affinity_counts_its_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert threads._default() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert threads._default() == 1


# ---- BLAS -----------------------------------------------------------------------------------------------------------


def numbers() -> set[int]:
    """The numbers of threads of the BLAS libraries."""
    return {library.get_num_threads() for library in blas_on_one_thread.found()}


needs_blas = pytest.mark.skipif(
    not numbers(), reason="NumPy here computes with a BLAS whose threads cannot be set, as Accelerate"
)


@needs_blas
@pytest.mark.parametrize("number", [1, 2, 3])
def test_blas_runs_on_one_thread_within_shared_work_and_as_before_afterwards(number: int) -> None:
    torch.set_num_threads(number)
    assert numbers() == {number}
    seen: list[set[int]] = []

    def look(start: int, stop: int) -> None:
        seen.append(numbers())
        in_pieces(lambda start, stop: seen.append(numbers()), 2, 1)
        seen.append(numbers())

    in_pieces(look, 4, 1)
    assert seen == [{1}] * 16
    assert numbers() == {number}
    with pytest.raises(ValueError, match="piece 0"):
        in_pieces(lambda start, stop: failing_piece(start), 1, 1)
    assert numbers() == {number}


@needs_blas
def test_blas_is_as_before_when_the_last_of_several_has_left() -> None:
    torch.set_num_threads(2)
    with blas_on_one_thread:
        with blas_on_one_thread:
            assert numbers() == {1}
        assert numbers() == {1}
        inside, leave = threading.Event(), threading.Event()

        def other() -> None:
            with blas_on_one_thread:
                inside.set()
                leave.wait(SECONDS)

        thread = threading.Thread(target=other)
        thread.start()
        inside.wait(SECONDS)
    assert numbers() == {1}
    leave.set()
    thread.join()
    assert numbers() == {2}
    with pytest.raises(ValueError, match="piece 7"), blas_on_one_thread:
        failing_piece(7)
    assert numbers() == {2}


@needs_blas
def test_blas_is_limited_from_any_thread() -> None:
    """threadpoolctl lets only one thread change OpenBLAS's number, the first one that did."""
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(2)
    found: list[set[int]] = []

    def other() -> None:
        with blas_on_one_thread:
            found.append(numbers())
        found.append(numbers())
        torch.set_num_threads(3)
        found.append(numbers())

    with threadpool_limits(2):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert found == [{1}, {2}, {3}]


@needs_blas
def test_openblas_is_found_by_itself_and_others_by_threadpoolctl(monkeypatch: pytest.MonkeyPatch) -> None:
    from threadpoolctl import ThreadpoolController

    theirs = ThreadpoolController().select(user_api="blas")
    own = threads._libraries()
    own[0].set_num_threads(3)
    # another is SciPy's, where a test has imported that
    numpys = [library["num_threads"] for library in theirs.info() if "numpy" in library["filepath"]]
    assert numpys == [3] * len(own)

    def other(library: Any) -> None:
        raise AttributeError("not OpenBLAS")

    monkeypatch.setattr(threads, "_OpenBlas", other)
    found = [library.get_num_threads() for library in threads._libraries()]
    assert len(found) == len(theirs.info()) and 3 in found
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    assert threads._libraries() == []
    torch.set_num_threads(2)


@needs_blas
def test_a_number_set_within_the_limit_holds_from_its_end() -> None:
    torch.set_num_threads(2)
    for number in (3, 1, 2):
        with blas_on_one_thread:
            torch.set_num_threads(number)
            assert numbers() == {1}
        assert numbers() == {number}


@needs_blas
def test_an_interrupt_while_blas_is_limited_leaves_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the way in and on the way out, the next use gives back what was there before."""
    torch.set_num_threads(2)
    (library, *_) = blas_on_one_thread.found()
    setter = library.set_num_threads

    def interrupted(number: int) -> None:
        if number == bad:
            raise KeyboardInterrupt
        setter(number)

    for bad in (1, 2):
        with monkeypatch.context() as patch:
            patch.setattr(library, "set_num_threads", interrupted)
            with pytest.raises(KeyboardInterrupt), blas_on_one_thread:
                assert bad == 2
        assert blas_on_one_thread.depth == 0
        with blas_on_one_thread:
            assert numbers() == {1}
        assert numbers() == {2}
