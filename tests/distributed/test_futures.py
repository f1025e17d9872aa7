"""Futures by themselves: `tests/distributed/programs/comm_hooks.py` has those of collectives."""

from __future__ import annotations

import threading
import time

import pytest

from tritensor.futures import Future, collect_all, wait_all


def test_functions_of_a_future_run_when_its_value_is_set():
    future, seen = Future(), []
    future.add_done_callback(lambda done: seen.append(done.value()))
    chained = future.then(lambda done: done.value() + 1).then(lambda done: done.wait() * 10)
    assert not future.done() and not chained.done() and not seen
    with pytest.raises(RuntimeError, match="Future is not done"):
        future.value()
    future.set_result(4)
    assert (seen, chained.done(), chained.wait(), future.then(lambda done: done.value()).value()) == ([4], True, 50, 4)
    future.add_done_callback(lambda done: seen.append("at once"))
    assert seen == [4, "at once"]
    with pytest.raises(RuntimeError, match="Attempting to mark a completed Future as complete again"):
        future.set_result(5)


def test_exceptions_go_through_a_future():
    future = Future[int](devices=["cpu"])
    chained, saved = future.then(lambda done: done.value()), future.then(lambda done: "saved")
    with pytest.raises(AssertionError, match=r"3 is of type <class 'int'>, not an Exception"):
        future.set_exception(3)
    future.set_exception(KeyError("lost"))
    assert future.done() and saved.wait() == "saved"
    for each in (future, chained):
        with pytest.raises(KeyError, match="lost"):
            each.wait()


def test_futures_of_several():
    first, second = Future(), Future()
    both = collect_all([first, second])
    values = both.then(lambda done: [each.value() for each in done.value()])
    second.set_result(2)
    assert not both.done() and not values.done()
    first.set_result(1)
    assert both.value() == [first, second] and values.value() == wait_all([first, second]) == [1, 2]
    assert collect_all([]).wait() == []
    failed = Future()
    failed.set_exception(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        wait_all([first, failed])


def test_waiting_for_another_thread():
    future = Future()
    thread = threading.Thread(target=lambda: (time.sleep(0.05), future.set_result("set")))
    thread.start()
    assert future.then(lambda done: done.value() + " there").wait() == "set there"
    thread.join()
