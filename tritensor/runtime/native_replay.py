"""Calls on the CPU that are repeated by native code of their kernels, where that is quicker than NumPy.

A call that `replay.py` remembers computes by the operator's reference. Where the table says that native code wins, its
function is a `Chooser`: after some calls the kernels that the operator would launch are made in a thread of their own,
while NumPy answers; the first result of native code is compared with NumPy's, and from then on a function that is
composed for the call (allocate, launch) takes the place. What raises meanwhile, or differs, stays with NumPy for good.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .. import settings
from ..autograd.mode import no_grad
from ..errors import DeviceError
from ..ground.locks import lock
from ..host import threads
from ..memory import buffer
from ..tensors import wrap
from ..types import dtypes

if TYPE_CHECKING:
    from array import array
    from queue import SimpleQueue

    from .call import Operator
    from .native_noting import Noting

ndarray = np.ndarray
Compute = Callable[..., Any]

#: Calls on small arrays before native code is made, which takes some 50 ms of one processor; and from how many bytes
#: on it is made at the second call.
_SOME, _LARGE = 50, 1 << 16
#: The most layouts of one call that native code is made for.
_MOST = 8
#: Seconds of a call from which its programs are shared among threads, in so many pieces.
_LONG, _PIECES = 100e-6, 16
#: The most elements of a result that are compared with NumPy's.
_COMPARED = 1 << 20


class Chooser:
    """What a remembered call computes with until native code is there, or for arrays of other layouts than it is for.

    Args:
        operator, metadata, count: the call: the operator, and the metadata and the number of inputs as they were
            passed.
        named: the metadata whose numbers are values behind the inputs.
        compute: the call by NumPy, of inputs and numbers.
        use: called with a function that takes the place of this object.
    """

    __slots__ = ("compute", "count", "made", "metadata", "named", "operator", "use", "uses")

    def __init__(
        self,
        operator: Operator,
        metadata: dict[str, Any],
        count: int,
        named: Sequence[str],
        compute: Compute,
        use: Callable[[Compute], object],
    ) -> None:
        self.operator, self.metadata, self.count, self.named = operator, metadata, count, named
        self.compute, self.use = compute, use
        #: by layout: what computes, which is NumPy until native code is there
        self.made: dict[tuple[Any, ...], Compute] = {}
        self.uses = 0

    def __call__(self, *values: Any) -> Any:
        """The results, by native code or by NumPy."""
        self.uses += 1
        layout = _layout(values)
        found = self.made.get(layout)
        if found is None:
            found = self.compute
            if worth(self.uses, _size(values)) and len(self.made) < _MOST:
                self.made[layout] = found
                suits = None if settings.native_cpu.value == "force" else getattr(self.operator.native, "suits", None)
                if suits is None or suits(values[: self.count], self.metadata):
                    offer(_Work(self, layout, values))
                    found = self.made[layout]
        return found(*values)


def _layout(values: Sequence[Any]) -> tuple[Any, ...]:
    """What native code is made for beside the call's key: the strides of arrays, and numbers."""
    return tuple(
        [
            (None if value.flags.c_contiguous else value.strides)
            if value.__class__ is ndarray
            else (value.__class__, value or str(value))
            for value in values
        ]
    )


def _size(values: Sequence[Any]) -> int:
    return max([value.nbytes for value in values if value.__class__ is ndarray], default=0)


class _Work:
    """The making of native code for a call's values, of which the arrays are not kept."""

    def __init__(self, chooser: Chooser, layout: tuple[Any, ...], values: Sequence[Any]) -> None:
        self.chooser, self.layout = chooser, layout
        self.values = [
            (value.shape, value.strides, value.dtype) if value.__class__ is ndarray else value for value in values
        ]

    def make(self) -> None:
        """Make native code; the next call compares it with NumPy."""
        chooser = self.chooser
        try:
            found, agrees = self.noted()
        except Exception as error:
            self.refused(str(error) or repr(error))
            return

        def first(*values: Any) -> Any:
            if _layout(values) != self.layout:
                return chooser(*values)
            expected = chooser.compute(*values)
            run = found.composed(values, chooser, lambda *values: None)
            start = perf_counter()
            produced = run(*values)
            seconds = perf_counter() - start
            problem = "a check failed" if produced is None else agrees(produced, expected)
            if problem:
                self.refused(problem)
            else:
                pieces = found.pieces() if seconds >= _LONG else None
                made: Any = found.composed(values, chooser, pieces=pieces)
                if len(found.forms) == 1:
                    made.into = found.composed(values, chooser, pieces=pieces, into=True)
                self.install(made)
            return expected

        self.install(first)

    def install(self, compute: Compute) -> None:
        """Let the call compute with a function; it needs no chooser if it is for all of the call's layouts so far."""
        chooser = self.chooser
        chooser.made[self.layout] = compute
        chooser.use(compute if len(chooser.made) == 1 else chooser)

    def refused(self, why: str) -> None:
        """Stay with NumPy."""
        if settings.debug.value:
            sys.stderr.write(f"tritensor: {self.chooser.operator.name} is computed by NumPy: {why}\n")
        self.install(self.chooser.compute)

    def noted(self) -> tuple[_Launches, Callable[[Any, Any], str | None]]:
        """The launches of the call, and what compares their results with NumPy's.

        Raises:
            Exception: the call is none that can be repeated by native code.
        """
        from ..drivers.current import use
        from ..drivers.native.driver import engine
        from .checking import mismatch, tolerance
        from .native_entry import entry
        from .native_noting import Noting

        chooser = self.chooser
        operator, count = chooser.operator, chooser.count
        driver = Noting()
        with use(driver), no_grad():
            given = [driver.give(*value) if value.__class__ is tuple else value for value in self.values]
            inputs = tuple([wrap(value) if hasattr(value, "form") else value for value in given[:count]])
            numbers = dict(zip(chooser.named, given[count:], strict=True))
            call = operator.prepared(inputs, {**chooser.metadata, **numbers})
            call.arrays = operator.arrays_of(call)
            call.outs = [
                buffer.empty(shape, kind, call.device, *rest) for shape, kind, *rest in operator.allocate(call)
            ]
            for out in call.outs:
                driver.place(out)
            operator.launch(call)
            terms = operator.terms(call)
        if not driver.launches:
            raise ValueError("nothing is launched")
        forms = [
            (out.shape, out.dtype, None if out.is_contiguous() else tuple([s * out.itemsize for s in out.strides]))
            for out in call.outs
        ]
        rounding = getattr(operator, "rounding", ())

        def agrees(produced: Sequence[ndarray], expected: Sequence[ndarray]) -> str | None:
            for name, found, wanted in zip(operator.outputs, produced, expected, strict=True):
                if found.strides != wanted.strides and found.size > 1:
                    if not (found.flags.c_contiguous and wanted.flags.c_contiguous):
                        return f"{name}: strides {found.strides}, not {wanted.strides}"
                if name in rounding:
                    continue
                some = slice(None)
                if found.size > _COMPARED:
                    found, wanted, some = (
                        found.reshape(-1),
                        wanted.reshape(-1),
                        slice(None, None, found.size // _COMPARED),
                    )
                problem = mismatch(
                    found[some] if found.ndim else found,
                    wanted[some] if found.ndim else wanted,
                    *tolerance(operator, dtypes.of(found.dtype), terms),
                )
                if problem:
                    return f"{name}: {problem}"
            return None

        launches = _Launches(entry(engine(settings.native_target.value).target), driver, forms, self.layout)
        return launches, agrees


class _Launches:
    """The launches of a call, as functions of its values."""

    def __init__(self, entry: Compute, driver: Noting, forms: list[Any], layout: tuple[Any, ...]) -> None:
        from ..drivers.native.running import room
        from .native_entry import plan

        self.room = room
        self.entry, self.forms, self.layout = entry, forms, layout
        self.launches = driver.launches
        self.temporaries = driver.nbytes[len(forms) :]
        self.scratch = max(launch.code.scratch for launch in self.launches)
        whole: list[int] = []
        for launch in self.launches:
            x, y, z = launch.grid
            whole += launch.words(0, x * y * z)
        self.plan = plan(whole)

    def composed(
        self,
        values: Sequence[Any],
        chooser: Chooser,
        compute: Compute | None = None,
        pieces: Compute | None = None,
        into: bool = False,
    ) -> Compute:
        """The function of values of this layout; others go to the chooser, and where a check fails, NumPy says why.

        Args:
            into: make one whose first argument is where the result goes: it returns whether it has computed it.
        """
        names: dict[str, Any] = {"empty": np.empty, "strided": ndarray, "other": chooser, "u8": np.uint8}
        names |= {"compute": compute or chooser.compute, "entry": self.entry, "plan": self.plan.buffer_info()[0]}
        names |= {"address": self.room.address, "nbytes": self.scratch, "pieces": pieces}
        passed = ", ".join(f"x{i}" for i in range(len(values)))
        tests, arrays, body = [], [], list[str]()
        for i, (value, part) in enumerate(zip(values, self.layout)):
            if value.__class__ is ndarray:
                arrays.append(f"x{i}")
                names[f"k{i}"] = part
                tests.append(f"x{i}.flags.c_contiguous" if part is None else f"x{i}.strides == k{i}")
            elif value is not None:
                names |= {f"k{i}": value, f"c{i}": value.__class__, f"z{i}": str(value)}
                same = f"x{i} == k{i}" if value else f"str(x{i}) == z{i}"  # 0.0 is not -0.0
                tests.append(f"(x{i} is k{i} or ({same} and x{i}.__class__ is c{i}))")
        if into:
            [(shape, kind, strides)] = self.forms
            names |= {"s0": shape, "d0": kind, "t0": strides}
            tests += ["o0.shape == s0", "o0.dtype == d0", "o0.flags.writeable"]
            tests.append("o0.flags.c_contiguous" if strides is None else "o0.strides == t0")
            passed = f"o0, {passed}"
        if tests:
            body.append(f"if not ({' and '.join(tests)}): return {'False' if into else f'other({passed})'}")
        for i, (shape, kind, strides) in enumerate(self.forms if not into else ()):
            names |= {f"s{i}": shape, f"d{i}": kind, f"t{i}": strides}
            made = f"empty(s{i}, d{i})" if strides is None else f"strided(s{i}, d{i}, None, 0, t{i})"
            body.append(f"o{i} = {made}")
        results = "".join(f"o{i}, " for i in range(len(self.forms)))
        listed = "".join(f"{each}, " for each in arrays) + results
        listed += "".join(f"empty({nbytes}, u8), " for nbytes in self.temporaries)
        scratch = "address(nbytes)" if self.scratch else "0"
        call = f"entry(plan, ({listed}), {scratch})" if pieces is None else f"pieces(({listed}))"
        if into:
            names["stopped"] = DeviceError("native code has stopped at a check of its memory")
            body += [f"if {call}: raise stopped", "return True"]
        else:
            body += [f"if {call}: return compute({passed})", f"return ({results})"]
        text = f"def factory({', '.join(names)}):\n    def run({passed}):\n"
        text += "".join(f"        {line}\n" for line in body) + "    return run\n"
        factory = _factories.get(text)
        if factory is None:
            if len(_factories) >= 1024:
                _factories.clear()
            scope: dict[str, Any] = {}
            exec(compile(text, "<native replay>", "exec"), scope)
            factory = _factories[text] = scope["factory"]
        run: Any = factory(**names)
        run.kept = self  # whose plan is in memory as long as this
        return run

    def pieces(self) -> Compute:
        """The launches on a tuple of arrays, with the programs of each shared among threads; returns 0, or that a check
        has failed."""
        from .native_entry import plan

        parts = []
        for launch in self.launches:
            x, y, z = launch.grid
            step = -(-x * y * z // _PIECES)
            parts.append([plan(launch.words(at, min(at + step, x * y * z))) for at in range(0, x * y * z, step)])
        entry, whole, address, nbytes = self.entry, self.plan.buffer_info()[0], self.room.address, self.scratch

        def pieces(arrays: tuple[Any, ...]) -> int:
            if threads.get_num_threads() == 1:
                failed: int = entry(whole, arrays, address(nbytes))
                return failed
            failures: list[int] = []
            for part in parts:

                def run(start: int, stop: int, part: list[array[int]] = part) -> None:
                    plans = [part[index].buffer_info()[0] for index in range(start, stop)]
                    failures.extend(at for at in plans if entry(at, arrays, address(nbytes)))

                if len(part) == 1:
                    run(0, 1)
                else:
                    threads.in_pieces(run, len(part), 1)
                if failures:
                    return 1
            return 0

        return pieces


_factories: dict[str, Callable[..., Any]] = {}


class Making(Protocol):
    """What makes some native code."""

    def make(self) -> None:
        """Make it."""


def worth(uses: int, nbytes: int) -> bool:
    """Whether native code is to be made for a call that is the so-manieth of its kind, of arrays of so many bytes."""
    return uses >= _SOME or (uses > 1 and nbytes >= _LARGE) or settings.native_cpu.value == "force"


def offer(work: Making) -> None:
    """Let native code be made by `work.make()`: by a thread of its own, or at once where it is forced."""
    if settings.native_cpu.value == "force":
        with _making:
            work.make()
    else:
        _worker.offer(work)


class _Worker:
    """The thread that makes native code, one call's after the other."""

    def __init__(self) -> None:
        self.waiting: SimpleQueue[Making] | None = None
        self.closed = False

    def offer(self, work: Making) -> None:
        """Make it as soon as what was offered before is made."""
        if self.waiting is None:
            import threading
            from queue import SimpleQueue

            with _making:
                if self.waiting is None:
                    self.waiting = SimpleQueue()
                    threading.Thread(
                        target=self.serve, args=(self.waiting,), name="tritensor-native", daemon=True
                    ).start()
        self.waiting.put(work)

    def serve(self, waiting: SimpleQueue[Making]) -> None:
        """Work, until the process ends."""
        while True:
            work = waiting.get()
            with _making:
                if self.closed:
                    return
                work.make()
            del work

    def close(self) -> None:
        """Wait for what is being made, because LLVM must not be left while it compiles."""
        self.closed = True
        with _making:
            pass

    def restart(self) -> None:
        """Begin anew in a forked process, which has no such thread."""
        self.waiting = None


_making, _worker = lock(), _Worker()
atexit.register(_worker.close)
if hasattr(os, "register_at_fork"):
    # nothing is half made in a forked process
    os.register_at_fork(before=_making.acquire, after_in_parent=_making.release, after_in_child=_worker.restart)
