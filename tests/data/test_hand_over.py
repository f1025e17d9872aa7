"""The hand-over of batches between processes: errors at every place of it, limits, and what is left on stderr."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import pickle
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import tritensor as torch
from tritensor.utils.data import DataLoader, processes, shared

from .sources import Squares

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="classes of a test file reach workers by a fork"),
    pytest.mark.usefixtures("nothing_is_left"),
]
ROOT = Path(__file__).resolve().parents[2]
FILES = (shared.__file__, processes.__file__)
ERRORS = {
    "files": lambda: OSError(errno.EMFILE, "injected"),
    "memory": lambda: MemoryError("injected"),
    "input": lambda: OSError(errno.EIO, "injected"),
}


class Injector:
    """Raises at the `at`-th line that is run in the modules of the hand-over, once."""

    def __init__(self, at, make, spared=()):
        self.left, self.make, self.spared = at, make, spared

    def __call__(self, frame, event, argument):
        if frame.f_code.co_filename not in FILES or frame.f_code.co_name in self.spared:
            return None
        return self.line

    def line(self, frame, event, argument):
        if event == "line":
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                raise self.make()
        return self.line


class Sized(Squares):
    """Large batches of growing size, so that each needs memory of its own; `before` is called with the index."""

    def __init__(self, size, before=lambda index: None):
        super().__init__(size)
        self.before = before

    def __getitem__(self, index):
        self.before(index)
        return torch.full((600 * (index + 1),), float(index))


def is_injected(error):
    return isinstance(error, (OSError, MemoryError)) and "injected" in str(error)


def check(batch, index):
    assert batch.shape == (600 * (index + 1),) and batch[7].item() == index


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_anywhere_in_a_workers_hand_over_reaches_the_user(kind):
    """Places are numbered over the lines that the worker runs after it made a batch; one is tried per batch."""
    count, first, raised = 150, 1, 0

    def inject(index):
        sys.settrace(Injector(first + index, ERRORS[kind]))

    while first < count:
        batches = iter(DataLoader(Sized(count - first, inject), batch_size=None, num_workers=1))
        for index in range(count - first):
            try:
                check(next(batches), index)
            except Exception as error:
                if "interrupted by" in str(error) and raised:  # the error before was the last message
                    break
                found = error
            else:
                found = None
            if found is not None and not is_injected(found):
                raise found
            raised += found is not None
        else:
            break
        first += index
    assert raised > 40


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_anywhere_in_the_iterating_process_reaches_the_user(kind):
    at, raised = 1, 0
    while True:
        injector = Injector(at, ERRORS[kind], spared=("close", "_ended", "__del__", "usable"))
        before = sys.gettrace()
        found = None
        try:
            batches = iter(DataLoader(Sized(2), batch_size=None, num_workers=1))
            sys.settrace(injector)
            try:
                for index, batch in enumerate(batches):
                    check(batch, index)
            finally:
                sys.settrace(before)
        except (OSError, MemoryError) as error:
            found = error
        if injector.left > 0:
            break
        assert found is None or is_injected(found), (at, found)  # none: a batch's place was being given back
        raised += found is not None
        del batches
        gc.collect()
        at += 3
    assert raised > 10


def limited(limit, value):
    def set_limit(index):
        if index == 2:
            resource.setrlimit(limit, (value() if callable(value) else value, resource.getrlimit(limit)[1]))

    return set_limit


def address_space():
    return int(Path("/proc/self/statm").read_text().split()[0]) * 4096 + 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="the limits are Linux's")
@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [
        (resource.RLIMIT_NOFILE, 3, "Too many open files"),
        (resource.RLIMIT_FSIZE, 4096, "File too large"),
        (resource.RLIMIT_AS, address_space, "Cannot allocate memory|allocate"),
    ],
)
def test_a_workers_limits_are_named(limit, value, words):
    class Growing(Sized):
        def __getitem__(self, index):
            self.before(index)
            return torch.full((600 * 8**index,), float(index))

    batches = iter(DataLoader(Growing(6, limited(limit, value)), batch_size=None, num_workers=1))
    next(batches), next(batches)
    with pytest.raises((OSError, MemoryError), match=words) as caught:
        list(batches)
    assert "DataLoader worker process 0" in caught.value.__notes__[-1]


@pytest.mark.skipif(sys.platform != "linux", reason="the limits are Linux's")
def test_descriptors_that_run_out_where_the_loop_is_are_named():
    batches = iter(DataLoader(Sized(20), batch_size=None, num_workers=1))
    check(next(batches), 0)
    held = []
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, limits[1]))
    try:
        with contextlib.suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        with pytest.raises(OSError, match="Too many open files"):
            list(batches)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for descriptor in held:
            os.close(descriptor)


# ---- errors that do not cross --------------------------------------------------------------------------------------


class TwoArguments(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class NotHere(Exception):
    """Can be unpickled in the process that pickled it only."""

    def __reduce__(self):
        return _only_in, (os.getpid(), str(self))


def _only_in(process, words):
    if os.getpid() != process:
        raise ModuleNotFoundError("No module named 'of_the_worker'")
    return NotHere(words)


class Speechless(Exception):
    def __str__(self):
        raise ValueError("no words")


class Unlike(Exception):
    def __reduce__(self):
        return str, ("not an exception",)


@pytest.mark.parametrize(
    "error", [TwoArguments("one", "two"), NotHere("one and two"), Unlike("one and two"), Speechless("one and two")]
)
def test_an_error_that_cannot_be_made_here_keeps_its_words_and_traceback(error):
    def fail(index):
        if index == 1:
            raise error

    batches = iter(DataLoader(Sized(3, fail), batch_size=None, num_workers=1))
    check(next(batches), 0)
    with pytest.raises(RuntimeError) as caught:
        next(batches)
    words = str(caught.value)
    assert words.startswith(f"Caught {type(error).__name__} in DataLoader worker process 0.\nOriginal Traceback")
    assert "in fail" in words and ("one and two" in words or isinstance(error, Speechless))
    check(next(batches), 2)


def test_a_task_that_cannot_be_read_is_the_workers_error():
    tasks = [0, _Unreadable(), 2]
    batches = iter(DataLoader(Sized(3), sampler=tasks, batch_size=None, num_workers=1))
    with pytest.raises(ModuleNotFoundError, match="of_the_worker"):
        list(batches)


class _Unreadable:
    def __reduce__(self):
        return _unreadable, (os.getpid(),)


def _unreadable(process):
    if os.getpid() != process:
        raise ModuleNotFoundError("No module named 'of_the_worker'")


def test_a_worker_that_cannot_begin_says_why(monkeypatch):
    def fail():
        raise OSError(errno.EAGAIN, "injected")

    monkeypatch.setattr(processes, "compute_alone", fail)
    with pytest.raises(OSError, match="injected"):
        next(iter(DataLoader(Sized(3), num_workers=1)))


# ---- descriptors ---------------------------------------------------------------------------------------------------


def test_a_connection_that_was_finalized_is_closed_once():
    """The garbage collector finalizes a pool and its connections in any order, and numbers are given out again."""
    batches = iter(DataLoader(Sized(9), batch_size=None, num_workers=1))
    next(batches)
    socket = batches._batches._pool._workers[0].socket
    number = socket.fileno()
    socket.__del__()
    held = []
    while number not in held:
        held.append(os.open(os.devnull, os.O_RDONLY))
    batches._batches._pool.close()
    os.fstat(number)
    for descriptor in held:
        os.close(descriptor)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "method",
    ["fork", pytest.param("spawn", marks=pytest.mark.slow), pytest.param("forkserver", marks=pytest.mark.slow)],
)
def test_nothing_is_written_to_stderr_however_a_loop_ends(tmp_path, method):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(program), method]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


PROGRAM = """
import gc
import sys
import tritensor as torch
from tritensor.utils.data import DataLoader, Dataset


class Ones(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        return torch.ones(1000) * index


def leave(how, persistent):
    loader = DataLoader(
        Ones(), num_workers=1, multiprocessing_context=sys.argv[1], persistent_workers=persistent
    )
    for number, batch in enumerate(loader):
        gc.collect()  # objects change their order in the collector's lists
        if number == 3 and how == "break":
            break
        if number == 3 and how == "raise":
            raise ZeroDivisionError
        if number == 3 and how == "hold":
            return loader, batch, iter(loader)


def main():
    kept = []
    for persistent in (False, True):
        for how in ("all", "break", "raise", "hold"):
            try:
                kept.append(leave(how, persistent))
            except ZeroDivisionError as error:
                cycle = [error]
                cycle.append(cycle)
                if persistent:
                    kept.append(cycle)
        gc.collect()
    globals()["kept"] = kept
    print("done")


if __name__ == "__main__":
    main()
"""


def test_messages_of_any_size_arrive_whole():
    ours, theirs = shared.connected()
    message = shared.Message(7, 2, 3, 0, 0, pickle.dumps("words" * 10**6))
    thread = threading.Thread(target=shared.send, args=(theirs, message))
    thread.start()
    assert shared.receive(ours) == (message, None)
    thread.join()
    theirs.close()
    with pytest.raises(EOFError):
        shared.receive(ours)
    ours.close()
