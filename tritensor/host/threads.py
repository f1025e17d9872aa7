"""The CPU's threads: how many there are, and the way in which work on arrays is shared among them.

    in_pieces(work, size, step)

calls `work(start, stop)` for consecutive pieces of `range(size)`, on all threads. How the range is cut depends on
`size` and `step` alone, and each piece is computed by one thread, so results have the same bits for every number of
threads.

Threads are started by the first work that is shared, not by the import; they wait without using the processor, are
started anew in a forked process, and end with the process. While work is shared, BLAS runs on one thread in each of
them: its own threads would multiply with ours, and its results depend on their number.
"""

from __future__ import annotations

import contextvars
import ctypes
import itertools
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DeviceError
from ..ground.public import public

if TYPE_CHECKING:
    from queue import SimpleQueue

_MOST = 1024  # threads: a number above this is a mistake, and would only use up memory


def _default() -> int:
    """OMP_NUM_THREADS, or else the number of processors that this process may run on."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if wanted.isdecimal() and 0 < int(wanted) <= _MOST:
        return int(wanted)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Threads:
    """The number of threads, those that were started, and the work that waits for one."""

    def __init__(self) -> None:
        self.number = _default()
        self.restart()

    def restart(self) -> None:
        """Forget the threads: a forked process has none, and its copies of their locks may be held for ever."""
        self.started = 0
        self.waiting: SimpleQueue[_Work] | None = None
        self.lock = threading.Lock()

    def offer(self, work: _Work, helpers: int) -> None:
        """Let up to `helpers` threads take part in `work`."""
        if self.waiting is None or self.started < helpers:
            from queue import SimpleQueue

            with self.lock:
                self.waiting = self.waiting or SimpleQueue()
                while self.started < helpers:
                    name = f"tritensor-{self.started}"
                    try:
                        threading.Thread(target=_serve, args=(self.waiting,), name=name, daemon=True).start()
                    except RuntimeError:  # the system allows no more, or the process is ending (Python 3.12 and later)
                        break
                    self.started += 1
        for _ in range(min(helpers, self.started)):
            self.waiting.put(work)


class _Quiet(threading.local):
    """A context of this thread in which NumPy's floating-point warnings are ignored."""

    def __init__(self) -> None:
        self.context = contextvars.Context()  # no copy, which would keep the simulation of the first call for ever
        self.context.run(np.seterr, all="ignore")
        self.entered = False


_quiet = _Quiet()


def quietly(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function of NumPy arrays without floating-point warnings: 0.3 us, where `np.errstate` takes 1.7."""
    quiet = _quiet
    if quiet.entered:
        return function(*arguments, **options)
    try:
        quiet.entered = True
        return quiet.context.run(function, *arguments, **options)
    finally:
        quiet.entered = False


class _Inside(threading.local):
    """Whether this thread computes a piece of shared work: what it shares out meanwhile, it does alone."""

    piece = False


_inside = _Inside()


def _serve(waiting: SimpleQueue[_Work]) -> None:
    _inside.piece = True
    with np.errstate(all="ignore"):
        while True:
            waiting.get().help()


class _Work:
    """Pieces of one call of `in_pieces`, which threads take one after the other."""

    __slots__ = ("active", "closed", "count", "done", "error", "indices", "lock", "run", "size", "step")

    def __init__(self, run: Callable[[int, int], Any], size: int, step: int, count: int) -> None:
        self.run, self.size, self.step, self.count = run, size, step, count
        self.indices = itertools.count()
        self.error: BaseException | None = None
        # helpers that are computing, and whether the caller has stopped: no further helper may begin then
        self.active, self.closed = 0, False
        self.lock, self.done = threading.Lock(), threading.Lock()
        self.done.acquire()

    def help(self) -> None:
        """Compute pieces in a thread of ours; its exception is kept for the caller."""
        with self.lock:
            if self.closed:
                return
            self.active += 1
        try:
            self.compute()
        except BaseException as error:
            self.error = self.error or error
        finally:
            with self.lock:
                self.active -= 1
                if self.closed and not self.active:
                    self.done.release()

    def compute(self) -> None:
        """Compute pieces until none is left, or one of another thread has failed."""
        for index in self.indices:
            if index >= self.count or self.error is not None:
                return
            start = index * self.step
            self.run(start, min(start + self.step, self.size))

    def finish(self) -> None:
        """Wait for the helpers, which write into the caller's arrays, and let go of those arrays.

        A thread that takes this work from the queue later finds it closed. It may be long until then, so the work must
        not keep arrays alive meanwhile.
        """
        with self.lock:
            self.closed = True
            busy = self.active > 0
        if busy:
            self.done.acquire()
        del self.run


def in_pieces(run: Callable[[int, int], Any], size: int, step: int) -> None:
    """Call `run(start, stop)` for pieces of `range(size)`, each `step` long except the last, on all threads.

    The calls ignore NumPy's floating-point warnings. They may share out work themselves, which is then done by the
    thread that shares it.

    Raises:
        the first exception that a call raised, after all calls that had begun have ended.
    """
    count = -(-size // step)
    with np.errstate(all="ignore"), blas_on_one_thread:
        helpers = min(_threads.number, count) - 1
        if helpers <= 0 or _inside.piece:
            for start in range(0, size, step):
                run(start, min(start + step, size))
            return
        work = _Work(run, size, step, count)
        _inside.piece = True
        try:
            _threads.offer(work, helpers)
            work.compute()
        except BaseException as error:
            work.error = work.error or error
        _inside.piece = False
        while not work.closed or work.active:
            try:
                work.finish()
            except BaseException as error:  # an interrupt: it is raised when no helper writes any more
                work.error = work.error or error
        failure, work.error = work.error, None
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # its traceback refers to this frame: a circle would keep the call's arrays alive


class _OpenBlas:
    """The number of threads of one OpenBLAS, by its own functions. That of NumPy's wheels has a prefix and a suffix.

    Raises:
        AttributeError: the library has no such functions.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        for prefix, suffix in itertools.product(("scipy_", ""), ("64_", "", "_64")):
            if hasattr(library, f"{prefix}openblas_set_num_threads{suffix}"):
                self.set_num_threads = getattr(library, f"{prefix}openblas_set_num_threads{suffix}")
                self.get_num_threads = getattr(library, f"{prefix}openblas_get_num_threads{suffix}")
                return
        raise AttributeError("not OpenBLAS")


def _libraries() -> list[Any]:
    """Makes the function that sets the number of threads of the libraries that NumPy's matrix products run in.

    OpenBLAS is looked for in NumPy's own extension, whose symbols include those of the libraries it is linked to, and
    on Windows, where they do not, beside it. MKL and BLIS are found where threadpoolctl is installed; it takes 1 us a
    call, and from version 3.7 on sets OpenBLAS's number in the first thread that calls it alone.
    """
    extension = sys.modules["numpy._core._multiarray_umath"].__file__ or ""
    from glob import glob

    beside = glob(os.path.join(os.path.dirname(np.__file__), os.pardir, "numpy.libs", "*openblas*"))
    for path in (extension, *beside):
        with suppress(OSError, AttributeError):
            return [_OpenBlas(ctypes.CDLL(path))]
    try:
        from threadpoolctl import ThreadpoolController
    except ModuleNotFoundError:
        return []
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


class _Blas:
    """A context in which matrix products run on the calling thread, so that their bits do not depend on a number.

    Does nothing to libraries that `_libraries` does not find, such as Apple's Accelerate. It takes 1.8 us, and 0.6
    after `set_num_threads(1)`.
    """

    def __init__(self) -> None:
        self.libraries: list[Any] | None = None
        # a signal's handler or the garbage collector may compute in a thread that is just changing the numbers
        self.lock, self.depth = threading.RLock(), 0
        # the libraries' numbers of threads outside of the context; None where they have them
        self.before: list[int] | None = None
        self.alone = False  # limited to one thread for good, by `set_num_threads(1)`

    def restart(self) -> None:
        """Begin anew in a forked process, where no thread is within the context."""
        self.lock, self.depth = threading.RLock(), 0
        self.restore()

    def found(self) -> list[Any]:
        """The libraries, found when they are first needed."""
        if self.libraries is None:
            self.libraries = _libraries()
        return self.libraries

    def limit(self, number: int) -> None:
        """Set every library's number of threads."""
        with self.lock:
            self.alone = number == 1
            libraries = self.found()
            if self.depth:
                self.before = [number] * len(libraries)
            else:
                for library in libraries:
                    library.set_num_threads(number)
                self.before = None

    def __enter__(self) -> None:
        with self.lock:
            self.depth += 1
            if self.depth == 1:
                try:
                    self.begin()
                except BaseException:
                    self.depth -= 1
                    raise

    def begin(self) -> None:
        """Give every library one thread."""
        libraries = self.found()
        if self.before is None:  # else an interrupt has kept them from being restored
            self.before = [1 if self.alone else library.get_num_threads() for library in libraries]
        for library, number in zip(libraries, self.before, strict=True):
            if number != 1:
                library.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.depth -= 1
            if not self.depth and self.before:
                self.restore()

    def restore(self) -> None:
        """Give every library its number of threads back."""
        before = self.before
        if before is not None:
            for library, number in zip(self.found(), before, strict=True):
                if number != 1:
                    library.set_num_threads(number)
            self.before = None


_threads = _Threads()
blas_on_one_thread = _Blas()


# Elements of a matrix from which its product with a vector may run on several threads of OpenBLAS (older versions).
ALONE = 9216


def dot(x: np.ndarray, y: np.ndarray) -> Any:
    """`np.dot`, with the same bits for every number of threads."""
    if x.size <= ALONE and y.size <= ALONE:
        return np.dot(x, y)
    with blas_on_one_thread:
        return np.dot(x, y)


def compute_alone() -> None:
    """Compute on one thread for good, in a process that does nothing else, such as a loader's worker.

    OpenBLAS is not told. A forked process has none of its threads, and it would start them to set their number: each
    waits for work with a busy processor for 0.09 s. Our products use one in any case, and NumPy's own those it likes.
    """
    _threads.number = 1


def _in_forked_process() -> None:
    _threads.restart()
    _inside.piece = False
    blas_on_one_thread.restart()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_process)


@public(functional=False)
def get_num_threads() -> int:
    """The number of threads that compute on the CPU: by default OMP_NUM_THREADS, or one for each processor.

    >>> import tritensor as torch
    >>> torch.get_num_threads() >= 1
    True
    """
    return _threads.number


@public(functional=False)
def set_num_threads(num: int) -> None:
    """Set how many threads compute on the CPU, those of NumPy's matrix products included. Results do not depend on it.

    Raises:
        DeviceError: `num` is no int from 1 to 1024.
    """
    if not isinstance(num, (int, np.integer)) or isinstance(num, bool):
        raise DeviceError(f"set_num_threads expects an int, but got {type(num).__name__}")
    if not 0 < num <= _MOST:
        raise DeviceError("set_num_threads expects a positive integer", f"got {num}, allowed are 1 to {_MOST}")
    _threads.number = int(num)
    blas_on_one_thread.limit(int(num))
