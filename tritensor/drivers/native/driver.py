"""Simulated devices that run kernels as native code of the processor, with every address checked.

What Triton's front end makes of a kernel is translated for LLVM, compiled, kept on disk and called. What is not
translated is interpreted, and so is a launch once more in which a check has failed: the interpreter names the line.
"""

# ruff: noqa: D102  the docstrings in protocol.py and compiling.py describe these methods

from __future__ import annotations

import hashlib
import importlib.metadata
import re
import struct
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, lru_cache, partial
from itertools import chain
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import settings
from ...errors import DeviceError, KernelMemoryError, TritensorError
from ...ground.locks import lock
from ...types.layout import span
from ..compiling import CompilingDriver
from ..loading import Compiled, Loaded
from ..simulator import Simulator
from ..together import refuse_more
from .loader import Code, load
from .running import run, run_every_way

if TYPE_CHECKING:
    from ..loading import KernelSource, LaunchRequest
    from ..streams import Stream

Span = tuple[int, int]
# what is (0, 0) is looked up in the table, and no simulated memory lies below 4 GiB
# the limits of an empty array, and of an address whose memory is looked up in the table
_EMPTY, _ANY, _END = (1 << 32, 1 << 32), (-1, 0), (1 << 63) - 1
_lock = lock()


class Native:
    """A kernel's native code: for arrays apart from one another, and for those that overlap.

    Each is made when a launch first needs it.

    Attributes:
        refusal: why there is none; empty where there is, or nobody has asked.
    """

    def __init__(self, source: KernelSource, target: str) -> None:
        self.refusal = ""
        self._source, self._target = source, target
        self._codes: dict[bool, Code] = {}

    def code(self, apart: bool) -> Code | None:
        """The code, compiled first where it is not on disk; None where the kernel is to be interpreted."""
        found = self._codes.get(apart)
        if found is None and not self.refusal:
            with _lock:
                if apart not in self._codes and not self.refusal:
                    self._make(apart)
                found = self._codes.get(apart)
        return found

    def _make(self, apart: bool) -> None:
        name, _, rest = self._target.partition(" ")
        try:
            loaded = self._source.load(("native", f"{name} {'apart' if apart else 'any'} {rest}"), _loaded)
            self._codes[apart] = loaded.kernel
        except Exception as error:  # of Triton, the translator, LLVM or the system: the interpreter needs none of them
            self.refusal = str(error) or repr(error)
            if settings.debug.value >= 2:
                sys.stderr.write(f"tritensor: {self._source.label} is interpreted: {self.refusal}\n")


def _loaded(compiled: Compiled) -> Loaded:
    code = load(compiled)
    return Loaded(code, code.call, tuple)


class Engine:
    """The native kernels of a process, which all simulations share: a driver, as far as `runtime.program` asks."""

    repeats_calls = False

    def __init__(self, target: str) -> None:
        self.programs: dict[Any, Any] = {}
        self.target = target

    def form(self, signature: tuple[Any, ...], *_: Any) -> tuple[Any, ...]:
        """Of the facts, those that matter: not the device, warps, stages, and divisibility by 16."""
        return _general(signature), 0, 4, 1

    def build(self, index: int, source: KernelSource) -> Loaded:
        native = Native(source, self.target)
        return Loaded(native, native.code, tuple)


def _general(signature: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        _general(entry)
        if not entry or entry[0].__class__ is tuple
        else (entry[0], None)
        if entry[1] == 16 and entry[0] != "constexpr"
        else entry
        for entry in signature
    )


@cache
def engine(wanted: str) -> Engine:
    """The engine for a value of `settings.native_target`.

    Its name, which is part of that of a file on disk, has all that code depends on beside the kernel: the processor, of
    which one that lacks an instruction would stop the process, LLVM's version and this package's translator.
    """
    version = ""
    with suppress(importlib.metadata.PackageNotFoundError):
        version = importlib.metadata.version("llvmlite")
    digest = hashlib.sha256(repr((processor(), version)).encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return Engine(f"{wanted or 'host'} {digest.hexdigest()}")


def processor() -> list[str]:
    """What tells a processor from others: its model and its features."""
    with suppress(OSError), open("/proc/cpuinfo") as file:
        lines = file.read(1 << 14)  # of the first ones: the others say the same
        return re.findall(r"^(?:vendor_id|cpu family|model|flags)\s*:.*$", lines, re.MULTILINE)[:4]
    return []


class NativeSimulator(Simulator):
    """The driver of simulated devices that run native code."""

    kind = "simulated in host memory, running native code"
    pick = CompilingDriver.pick

    def launch(self, stream: Stream, request: LaunchRequest) -> None:
        work = None
        if self.recorder is None and self.shadow is None:
            work = self._native(stream, request)
        if work is None:
            super().launch(stream, request)
        else:
            self.submit(stream, work)

    def _native(self, stream: Stream, request: LaunchRequest) -> Callable[[], None] | None:
        """A launch of native code, to be run in the stream's order; None for one that is to be interpreted."""
        limits: list[Span] = []
        if not _collect(request.arguments, request.kernel.elements, limits):
            return None
        try:
            program, values = request.compiled(engine(settings.native_target.value), stream)
        except TritensorError:  # arguments that do not fit, which the interpreter explains
            return None
        reached = [_span(value) for row in request.reaches[1] for value in row] if request.reaches else []
        passed = [limit for limit in limits if limit[1] and limit is not _ANY]
        # addresses in memory, and those of other libraries, may be of any array
        # what other programs write meanwhile is no array of this one's alone
        together = request.kernel.cooperative
        code = program.kernel.code(not reached and _ANY not in limits and not together)
        if together:
            refuse_more(program.name, prod(request.grid), self._properties)
        if code is not None and _overlaps(limits, code.written):
            code = program.kernel.code(False)
        if code is None:
            return None
        checked, order = settings.sanitize.value, settings.grid_order.value
        words = _packed(values)
        assert len(words) == len(limits)
        words.extend(chain.from_iterable(limits if checked else [(0, high and _END) for _, high in limits]))
        # as in `interpreted`: late work is of the memory of now, and keeps none of it, so it does not keep the request
        index, late = stream.arena.heap.index, settings.simulate_late.value
        captured = id(stream.handle) in self.captures
        again = self.interpreted(stream, request) if late or captured else None
        explain = again or (lambda first: self.interpreted(stream, request)(first))
        live = self._live(index) if (code.looks_up or _ANY in limits) and late and not captured else None
        name, grid = program.name, request.grid
        every = [*_arrays(request)] if order == "every" else []

        def work() -> None:
            if again is not None and checked:
                self._look_for([*passed, *reached], again)
            if not checked:
                table = array("q", (0, _END))
            elif reached or code.looks_up or _ANY in limits:
                table = _table([*passed, *(reached or live or self._live(index))])
            else:
                table = array("q")
            execute = partial(run, code, words, table, grid, together)
            if every:
                arrays = [(label, self.memory(low, high - low), dtype) for label, (low, high), dtype in every]
                failed = run_every_way(name, execute, arrays)
            else:
                failed = execute(order, settings.native_threads.value)
            if failed is not None:
                # from the program that stopped: those before it have written what they write
                explain(failed if order == "forward" else 0)
                _, y, z = grid
                place = failed // (y * z), failed // z % y, failed % z
                raise KernelMemoryError(
                    "CUDA error: an illegal memory access was encountered",
                    f"{name}: native code stopped in program {place}, at an access that the interpreter allows",
                    remedy='run it with tritensor.cuda.simulate(engine="interpreter"), and report the kernel',
                )

        return work

    def _live(self, index: int) -> list[Span]:
        return [(address, address + nbytes) for address, nbytes, _ in self.spans(index)]

    def _look_for(self, spans: Sequence[Span], again: Callable[..., None]) -> None:
        """Let the interpreter say which argument it is whose memory was given back before the kernel runs."""
        for low, high in spans:
            try:
                self.memory(low, high - low)
            except DeviceError:
                if high > low:
                    again()
                    raise


def _collect(arguments: Sequence[Any], elements: Any, found: list[Span]) -> bool:
    """Collect what may be touched through each value of a launch, as `runtime.program.specialise` collects the values.

    Returns:
        False if an argument is none that native code takes.
    """
    for value in arguments:
        kind = value.__class__
        if hasattr(value, "form"):
            if elements and value.dtype.name in elements:
                return False
            found.append(_span(value))
        elif kind is tuple:
            if not _collect(value, elements, found):
                return False
        elif kind is bool or kind is str or value is None or (kind is int and value == 1):
            continue
        elif isinstance(value, (int, float)):
            if hasattr(value, "dtype") and elements and value.dtype.name in elements:
                return False
            found.append(_ANY if hasattr(value, "dtype") else (0, 0))
        else:  # a descriptor
            return False
    return True


def _span(value: Any) -> Span:
    low, high = _reach(value.form)
    address = value.data_ptr()
    return (address + low, address + high) if high > low else _EMPTY


@lru_cache(4096)
def _reach(form: Any) -> Span:
    low, high = span(form.shape, form.strides, 0)
    return low * form.dtype.itemsize, high * form.dtype.itemsize


def _overlaps(limits: list[Span], written: Sequence[int] | None) -> bool:
    """True if what is written is also passed as another array."""
    for at in range(len(limits)) if written is None else written:
        low, high = limits[at]
        for other, (start, end) in enumerate(limits):
            if start < high and low < end and other != at:
                return True
    return False


def _table(spans: Sequence[Span]) -> array[int]:
    """Spans by address, those that overlap joined."""
    found = array("q")
    for low, high in sorted(spans):
        if found and low <= found[-1]:
            found[-1] = max(found[-1], high)
        else:
            found.extend((low, high))
    return found


def _packed(values: Sequence[int | float]) -> array[int]:
    """Numbers as words of 64 bits; float64 numbers are floats."""
    try:
        return array("q", values)  # type: ignore[arg-type]
    except TypeError:
        return array("q", b"".join(struct.pack("<d" if isinstance(value, float) else "<q", value) for value in values))


def _arrays(request: LaunchRequest) -> Iterator[tuple[str, Span, Any]]:
    """Label, span and dtype of the arrays of a launch that have elements."""
    waiting: list[tuple[str, Any]] = [*zip(request.kernel.arguments, request.arguments)]
    for row in request.reaches[1] if request.reaches else ():
        waiting += zip(request.reaches[0], row)
    for label, value in waiting:
        if isinstance(value, tuple):
            waiting += [(f"{label}[{index}]", entry) for index, entry in enumerate(value)]
        elif hasattr(value, "form") and value.size:
            yield label, _span(value), value.dtype
