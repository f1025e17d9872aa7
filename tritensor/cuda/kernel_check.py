"""`tritensor.testing.check_kernel`: one kernel, run in every way that a machine without a GPU can run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import product, zip_longest
from typing import Any, NamedTuple, Protocol

import ml_dtypes
import numpy as np

from .. import settings
from ..drivers import simulate
from ..drivers.shadow import View
from ..errors import ArgumentError, DeviceError, KernelError, KernelMemoryError, KernelMismatchError, TritensorError
from ..functional.creation.creation import empty, tensor
from ..tensors import Tensor
from ..types import devices, dtypes
from .profiling import profile
from .user_kernel import Grid

__all__ = ["KernelReport", "check_kernel"]

_LAYOUTS = "exact", "offset", "strided"
_ORDERS = "forward", "reverse", "shuffle"
_CARDS = {(8, 0): "a100", (9, 0): "h100"}
_WIDE = 72  # letters of an error that a table shows
_FRONT = 65  # elements before and behind a view; not a multiple of 16 bytes, so that its address is not either

#: A function of a kernel's arguments, or what it would return.
Reference = Callable[..., Any] | Tensor | Sequence[Any]


class Launchable(Protocol):
    """A kernel: `kernel[grid](...)` launches it."""

    def __getitem__(self, grid: Any, /) -> Callable[..., object]: ...


@dataclass
class KernelRun:
    """One run of a kernel, and what was found.

    Attributes:
        capability: that it was compiled for; None: it was interpreted.
        difference: the largest one, from the reference or else from the first run.
        launches: what was counted (`tritensor.cuda.profiling.Launch`), in one run of each capability.
    """

    capability: tuple[int, int] | None
    layout: str
    order: str
    error: Exception | None = None
    difference: float = 0.0
    launches: list[Any] = field(default_factory=list)

    @property
    def way(self) -> tuple[str, str, str]:
        """The mode, the layout and the order."""
        mode = "interpreted" if self.capability is None else "sm_{}{}".format(*self.capability)
        return mode, self.layout, self.order

    @property
    def cells(self) -> tuple[str, ...]:
        """The run's line of a table."""
        found = f"differs by {self.difference:.0e}" if self.difference else "equal"
        found = str(self.error).partition("\n")[0] if self.error else found
        counted = ""
        for launch in self.launches[-1:]:
            seconds, bound = launch.predicted[:2]
            counted = f"{launch.card.name}: {seconds * 1e6:.1f} us predicted, {bound}, {launch.dram / 1e3:.1f} kB"
        return *self.way, found if len(found) <= _WIDE else f"{found[: _WIDE - 3]}...", counted


@dataclass
class KernelReport:
    """The runs that `check_kernel` made, and as text a table of them."""

    name: str
    runs: list[KernelRun]

    @property
    def failed(self) -> list[KernelRun]:
        """The runs that failed."""
        return [run for run in self.runs if run.error]

    def __repr__(self) -> str:
        rows = [("mode", "layout", "order", "result", "counted and predicted"), *(run.cells for run in self.runs)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        held = f"{len(self.runs) - len(self.failed)} of {len(self.runs)} runs held"
        return "\n".join([f"{self.name}: {held}", *lines])


def check_kernel(
    kernel: Launchable,
    grid: Grid,
    args: Sequence[Any] | Mapping[str, Any],
    reference: Reference | None = None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    capabilities: Sequence[tuple[int, int] | None] = (None, (8, 0), (9, 0)),
    layouts: Sequence[str] = _LAYOUTS,
    **keywords: object,
) -> KernelReport:
    """Runs a kernel interpreted and compiled, in several layouts and orders of its programs, and compares the runs.

    Every run is on a simulated device that checks addresses, races between programs and reads of memory that nothing
    wrote. The layouts are "exact" (memory as long as the tensor), "offset" (within more memory, at an address that 16
    does not divide) and "strided" (rows further apart), the last one for tensors whose strides an argument asks for.
    Prints a table of what held.

    Args:
        kernel: a `@triton.jit` or `tritensor.cuda.jit` kernel, also an autotuned one.
        args: the arguments by position or by name. Tensors are on the CPU, and copied; those on `meta` become memory
            that nothing has written, all of which the kernel has to write. A function is called with the tensors by
            name: `lambda t: t["x_ptr"].stride(0)`.
        reference: a function of the same arguments, on the CPU, which returns what the kernel writes, in the order of
            the arguments or by name, or writes it; or that itself. Without it runs are compared with each other only.
        rtol, atol: the tolerance, by dtype when left out: 1e-4 and 1e-5 for float32.
        capabilities: compiled for which cards; None: interpreted.
        keywords: constants and options of the launch: `BLOCK=128, num_warps=8`.

    Raises:
        KernelError, KernelMemoryError: (of the kernel) the first run that failed, with the line of the kernel.
        KernelMismatchError: results differ; the message names the element, and the line that wrote it.
        ArgumentError: the reference returns another number of results than the kernel writes.

    ::

        check_kernel(double, (4,), (torch.empty(100, device="meta"), x, 100), lambda out, x, n: 2 * x, BLOCK=32)
    """
    name, names = _named(kernel)
    given = dict(args) if isinstance(args, Mapping) else dict(zip_longest(names[: len(args)], args))
    check = _Check(kernel, grid, name, given, isinstance(args, Mapping), keywords, rtol, atol)
    if unknown := [layout for layout in layouts if layout not in _LAYOUTS]:
        raise ArgumentError(f"check_kernel: layouts are {', '.join(_LAYOUTS)}, got {unknown[0]!r}")
    apt = [layout for layout in layouts if layout != "strided" or check.asked()] or ["exact"]
    ways = zip_longest(apt, _ORDERS, fillvalue=apt[0])
    report = KernelReport(name, [KernelRun(capability, *way) for capability, way in product(capabilities, [*ways])])
    wanted: dict[str, np.ndarray] | None = None
    for at, run in enumerate(report.runs):
        try:
            found = check.run(run, at % (len(report.runs) // len(capabilities)) == 0)
            if reference is not None and wanted is None:
                wanted = check.expected(reference, found)
            check.compare(run, found, wanted or {}, "the first run has" if reference is None else "the reference has")
            wanted = wanted or {name: each.values for name, each in found.items()}
        except (KernelError, KernelMemoryError, DeviceError, KernelMismatchError) as error:
            run.error = error
    for run in report.failed[:1]:
        kind: Any = type(run.error) if isinstance(run.error, TritensorError) else KernelError
        raise kind(f"{run.error}\n  in the run: {', '.join(run.way)}\n\n{report}") from run.error
    print(report)
    return report


def _named(kernel: object) -> tuple[str, list[str]]:
    """The name of a kernel, of which one that is tuned is made, and those of its parameters."""
    while not hasattr(kernel, "__name__") and hasattr(kernel, "fn"):
        kernel = kernel.fn
    found = getattr(kernel, "arg_names", None) or getattr(getattr(kernel, "kernel", None), "parameters", None)
    if found is None:
        raise ArgumentError(f"check_kernel: expected a @triton.jit or cuda.jit kernel, got {type(kernel).__name__}")
    return getattr(kernel, "__name__", "kernel"), list(found)


class _Asked(dict[str, Any]):
    """Tensors by name, which notes what an argument asks for."""

    def __getitem__(self, name: str) -> Any:
        self.setdefault("", set()).add(name)
        return super().__getitem__(name)


class _Found(NamedTuple):
    """A tensor after a run: its values, the line that wrote each element (0: none), and the lines' names."""

    values: np.ndarray
    lines: np.ndarray
    places: list[str]

    def line(self, number: int, text: str) -> str:
        return f"{text} at {self.places[number]}" if number else ""


@dataclass
class _Check:
    """The kernel and its arguments, and what is done with them."""

    kernel: Launchable
    grid: Grid
    name: str
    given: dict[str, Any]
    by_name: bool
    keywords: dict[str, object]
    rtol: float | None
    atol: float | None

    def __post_init__(self) -> None:
        self.tensors = {
            name: value if isinstance(value, Tensor) else tensor(value)
            for name, value in self.given.items()
            if isinstance(value, (Tensor, np.ndarray))
        }

    def asked(self) -> set[str]:
        """The names of the tensors of which an argument is computed, from their strides for example."""
        known = _Asked(self.tensors)
        self.arguments(known)
        return {name for name in known.get("", ()) if self.tensors[name].ndim > 1}

    def arguments(self, tensors: dict[str, Any]) -> dict[str, Any]:
        """The arguments with tensors in the places of those that were given."""
        made = {name: tensors.get(name, value) for name, value in self.given.items()}
        return {name: value(tensors) if callable(value) else value for name, value in made.items()}

    def each(self, make: Callable[[str, Tensor], Tensor]) -> dict[str, Tensor]:
        """What is made of tensors, once of one that is several arguments."""
        made: dict[int, Tensor] = {}
        for name, value in self.tensors.items():
            if id(value) not in made:
                made[id(value)] = make(name, value)
        return {name: made[id(value)] for name, value in self.tensors.items()}

    def call(self, function: Callable[..., Any], tensors: dict[str, Any], **keywords: object) -> Any:
        """Call a kernel or a reference with its arguments."""
        arguments = self.arguments(tensors)
        return function(**arguments, **keywords) if self.by_name else function(*arguments.values(), **keywords)

    def run(self, run: KernelRun, counts: bool) -> dict[str, _Found]:
        """What tensors hold after a run on a device of its own."""
        wide = self.asked() if run.layout == "strided" else set()
        options: dict[str, Any] = {"capability": run.capability} if run.capability else {}
        with simulate(compiled=bool(run.capability), races=True, **options) as simulation:
            shadow: Any = simulation.shadow
            tensors = self.each(lambda name, value: _placed(value, run.layout, name in wide))
            shadow.strict = True

            profiled = profile(card=_CARDS[run.capability]) if counts and run.capability in _CARDS else nullcontext(run)
            with profiled as counted, settings.grid_order(run.order), settings.simulate_late(False):
                self.call(self.kernel[self.grid], tensors, **self.keywords)
            run.launches = counted.launches
            lines = {name: shadow.lines(_view(value)) for name, value in tensors.items()}
            simulation.shadow = None  # what was not written can be read from here on
            return {name: _Found(_array(value), lines[name], shadow.places) for name, value in tensors.items()}

    def expected(self, reference: Reference, found: Mapping[str, _Found]) -> dict[str, np.ndarray]:
        """What the reference says that the kernel writes."""
        first = {id(value): name for name, value in reversed(self.tensors.items())}
        written = [name for name in found if found[name].lines.any() and first[id(self.tensors[name])] == name]
        results: Any = reference
        if callable(reference):
            copies = self.each(lambda name, value: _copied(value))
            results = self.call(reference, copies)
            results = {name: copies[name] for name in written} if results is None else results
        if not isinstance(results, Mapping):
            several = list(results) if isinstance(results, (tuple, list)) else [results]
            if len(several) != len(written):
                raise ArgumentError(
                    f"check_kernel: the reference returns {len(several)} results for {self.name}",
                    f"it writes {len(written)} tensors: {', '.join(written)}",
                    remedy="return a dictionary of results by the names of the arguments",
                )
            results = dict(zip(written, several))
        return {name: _array(value) for name, value in results.items()}

    def compare(self, run: KernelRun, found: Mapping[str, _Found], wanted: Mapping[str, np.ndarray], has: str) -> None:
        """Raise the error of what was not written, or differs."""
        for name, each in found.items():
            if self.tensors[name].device.type == "meta" and not each.lines.all():
                at = np.argwhere(each.lines == 0)[0].tolist()
                raise KernelMismatchError(
                    f"{self.name}: nothing wrote element {at} of {name}, of {each.lines.size}",
                    each.line(int(each.lines.max()), "the others were written"),
                )
        for name, other in wanted.items():
            self._compare(run, name, found[name], other, has)

    def _compare(self, run: KernelRun, name: str, each: _Found, wanted: np.ndarray, has: str) -> None:
        if each.values.shape != wanted.shape:
            shapes = f"{wanted.shape}, not {each.values.shape}"
            raise ArgumentError(f"check_kernel: the reference of {name} has the shape {shapes}")
        kind = each.values.dtype
        # cards divide approximately and add in another order: a float32 may be off by 1e-4, and 1e-5 near zero
        usual = float(ml_dtypes.finfo(kind).eps) ** 0.5 / 3.5 if dtypes.of(kind).is_floating_point else 0.0
        relative, absolute = usual if self.rtol is None else self.rtol, usual / 10 if self.atol is None else self.atol
        wide = np.complex128 if "c" in kind.kind + wanted.dtype.kind else np.float64
        x, y = each.values.astype(wide), wanted.astype(wide)
        with np.errstate(all="ignore"):
            apart = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.nan_to_num(np.abs(x - y), nan=np.inf))
            wrong = apart > absolute + relative * np.nan_to_num(np.abs(y))
        run.difference = max(run.difference, float(apart.max(initial=0.0)))
        if wrong.any():
            at = np.unravel_index(int(np.argmax(np.where(wrong, apart, -1))), x.shape)
            last = int(each.lines[at])
            raise KernelMismatchError(
                f"{self.name}: element {[*map(int, at)]} of {name} is {x[at]}, and {has} {y[at]}",
                f"of {wrong.size} elements {int(wrong.sum())} differ by more than {relative:.0e} relative, "
                f"{absolute:.0e} absolute",
                each.line(last, "it was written") or "nothing wrote it",
                "" if last else each.line(int(each.lines.max()), "others were written"),
            )


def _array(value: object) -> np.ndarray:
    return np.asarray(value.detach().cpu().numpy() if isinstance(value, Tensor) else value)


def _copied(value: Tensor) -> Tensor:
    on_meta = value.device.type == "meta"
    return empty(*value.shape, dtype=value.dtype) if on_meta else value.detach().cpu().clone()


def _view(value: Tensor) -> View:
    size = value.element_size()
    return value.data_ptr(), tuple(value.shape), tuple(step * size for step in value.stride()), size


def _placed(value: Tensor, layout: str, wide: bool) -> Tensor:
    """A tensor on the device in a layout, with the strides that it has unless rows are to be further apart."""
    shape, steps = tuple(value.shape), tuple(value.stride())
    if wide:
        steps = tuple(int(step) for step in np.cumprod([1, shape[-1] + 7, *shape[-2:0:-1]])[::-1])
    extent = 1 + sum((size - 1) * step for size, step in zip(shape, steps)) if 0 not in shape else 0
    front = _FRONT if layout == "offset" else 0
    memory = empty(extent + 2 * front, dtype=value.dtype, device=devices.cuda(0))
    if value.device.type != "meta":
        source, where = value.detach().cpu(), (shape, steps)
        if 0 in steps:  # elements that are one in memory
            source, where = source.as_strided((extent,), (1,)), ((extent,), (1,))
        memory.as_strided(*where, front).copy_(source)
    placed: Tensor = memory.as_strided(shape, steps, front)
    return placed
