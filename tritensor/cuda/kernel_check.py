"""`tritensor.testing.check_kernel`: one kernel, run in every way that a machine without a GPU can run it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple, Protocol

import numpy as np

from .. import settings
from ..drivers import simulate
from ..drivers.shadow import View
from ..errors import ArgumentError, DeviceError, KernelError, KernelMemoryError, KernelMismatchError, TritensorError
from ..functional.creation.creation import empty, tensor
from ..tensors import Tensor
from ..types import devices, dtypes
from .user_kernel import Grid

__all__ = ["KernelReport", "check_kernel"]

_LAYOUTS = "exact", "offset", "strided"
_ORDERS = "forward", "reverse", "shuffle"
#: How far two executions of one kernel may be apart: relative, absolute. Cards divide approximately and add in another
#: order than NumPy.
_TOLERANCES = {
    "float16": (1e-2, 1e-3),
    "bfloat16": (3e-2, 1e-2),
    "float32": (1e-4, 1e-5),
    "float64": (1e-7, 1e-9),
    "complex64": (1e-4, 1e-5),
    "complex128": (1e-7, 1e-9),
}
_CARDS = {(8, 0): "a100", (9, 0): "h100"}
_WIDE = 72  # letters of an error that a table shows
_FRONT = 65  # elements before and behind a view; not a multiple of 16 bytes, so that its address is not either


#: A function of a kernel's arguments, or what it would return.
Reference = Callable[..., Any] | Tensor | Sequence[Any]


class Launchable(Protocol):
    """A kernel: `kernel[grid](...)` launches it."""

    def __getitem__(self, grid: Any, /) -> Callable[..., object]: ...


class _Way(NamedTuple):
    """A way of running a kernel: the capability that it is compiled for, or None, the layout and the grid's order."""

    capability: tuple[int, int] | None
    layout: str
    order: str

    @property
    def mode(self) -> str:
        return "interpreted" if self.capability is None else f"sm_{self.capability[0]}{self.capability[1]}"

    def __str__(self) -> str:
        return f"{self.mode}, {self.layout}, {self.order}"


@dataclass
class KernelRun:
    """One run: how, what failed ("" if nothing did), the largest difference, and what a card is predicted to do.

    Attributes:
        difference: from the reference, or from the first run where there is none.
        launches: what was counted (`tritensor.cuda.profiling.Launch`), in one run for each kind of card.
    """

    way: _Way
    error: Exception | None = None
    difference: float = 0.0
    launches: list[Any] = field(default_factory=list)

    def row(self) -> tuple[str, ...]:
        """The cells of its line in the table."""
        outcome = f"differs by {self.difference:.0e}" if self.difference else "equal"
        if self.error:
            outcome = str(self.error).partition("\n")[0]
            outcome = outcome if len(outcome) <= _WIDE else f"{outcome[: _WIDE - 3]}..."
        counted = "".join(
            f"{launch.card.name}: {launch.predicted.seconds * 1e6:.1f} us predicted, {launch.predicted.bound}, "
            f"{launch.dram / 1e3:.1f} kB"
            for launch in self.launches[-1:]
        )
        return self.way.mode, self.way.layout, self.way.order, outcome, counted


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
        rows = [("mode", "layout", "order", "result", "counted and predicted"), *(run.row() for run in self.runs)]
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

    >>> import tritensor as torch, triton, triton.language as tl  # doctest: +SKIP
    >>> torch.testing.check_kernel(double, (4,), (torch.empty(100, device="meta"), x, 100), lambda out, x, n: 2 * x)
    """
    names = _parameters(kernel)
    given = dict(args) if isinstance(args, Mapping) else dict(zip_longest(names[: len(args)], args))
    check = _Check(kernel, names, grid, given, isinstance(args, Mapping), keywords, rtol, atol)
    report = KernelReport(check.name, [KernelRun(way) for way in _ways(check, capabilities, layouts)])
    first: dict[str, np.ndarray] | None = None
    expected: dict[str, np.ndarray] | None = None
    counted: set[Any] = set()
    for run in report.runs:
        try:
            found = check.run(run, run.way.capability not in counted)
            counted.add(run.way.capability)
            if reference is not None and expected is None:
                expected = check.expected(reference, check.written(found))
            check.compare(run, found, expected if expected is not None else first, expected is not None)
            first = first or {name: each.values for name, each in found.items()}
        except (KernelError, KernelMemoryError, DeviceError, KernelMismatchError) as error:
            run.error = error
    if report.failed:
        run = report.failed[0]
        assert run.error is not None
        kind: Any = type(run.error) if isinstance(run.error, TritensorError) else KernelError
        raise kind(f"{run.error}\n  in the run: {run.way}\n\n{report}") from run.error
    print(report)
    return report


def _parameters(kernel: object) -> list[str]:
    """The names of a kernel's parameters, of which one that is tuned is made."""
    while not hasattr(kernel, "arg_names") and hasattr(kernel, "fn"):
        kernel = kernel.fn
    found = getattr(kernel, "arg_names", None) or getattr(getattr(kernel, "kernel", None), "parameters", None)
    if found is None:
        raise ArgumentError(f"check_kernel: expected a @triton.jit or cuda.jit kernel, got {type(kernel).__name__}")
    return list(found)


def _ways(check: _Check, capabilities: Sequence[tuple[int, int] | None], layouts: Sequence[str]) -> Iterator[_Way]:
    if unknown := [layout for layout in layouts if layout not in _LAYOUTS]:
        raise ArgumentError(f"check_kernel: layouts are {', '.join(_LAYOUTS)}, got {unknown[0]!r}")
    apt = [layout for layout in layouts if layout != "strided" or check.asked()] or ["exact"]
    for capability in capabilities:
        for layout, order in zip_longest(apt, _ORDERS, fillvalue=apt[0]):
            yield _Way(capability, layout, order)


class _Asked(dict[str, Any]):
    """Tensors by name, which notes whose strides an argument asks for."""

    def __init__(self, tensors: Mapping[str, Any]) -> None:
        super().__init__(tensors)
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.names.add(name)
        return super().__getitem__(name)


class _Found(NamedTuple):
    """A tensor after a run: its values, the line that wrote each element (0: none), and the lines' names."""

    values: np.ndarray
    lines: np.ndarray
    places: list[str]


class _Check:
    """The kernel and its arguments, and what is done with them."""

    def __init__(
        self,
        kernel: Launchable,
        names: list[str],
        grid: Grid,
        given: dict[str, Any],
        by_name: bool,
        keywords: dict[str, object],
        rtol: float | None,
        atol: float | None,
    ) -> None:
        self.kernel, self.grid, self.given, self.by_name, self.keywords = kernel, grid, given, by_name, keywords
        self.rtol, self.atol = rtol, atol
        self.name = getattr(kernel, "__name__", "") or names[0]
        self.tensors = {
            name: value if isinstance(value, Tensor) else tensor(value)
            for name, value in given.items()
            if isinstance(value, (Tensor, np.ndarray))
        }

    def asked(self) -> set[str]:
        """The names of tensors of which an argument is computed, from their strides for example."""
        known = _Asked(self.tensors)
        for value in self.given.values():
            if callable(value):
                value(known)
        return {name for name in known.names if self.tensors[name].ndim > 1}

    def arguments(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with tensors in the places of those that were given."""
        made = {name: tensors.get(name, value) for name, value in self.given.items()}
        return {name: value(tensors) if callable(value) else value for name, value in made.items()}

    def run(self, run: KernelRun, counts: bool) -> dict[str, _Found]:
        """What tensors hold after a run on a device of its own."""
        way = run.way
        options: dict[str, Any] = {"capability": way.capability} if way.capability else {}
        with simulate(compiled=way.capability is not None, races=True, **options) as simulation:
            shadow = simulation.shadow
            assert shadow is not None
            placed: dict[int, Tensor] = {}
            wide = self.asked() if way.layout == "strided" else set()
            for name, value in self.tensors.items():
                if id(value) not in placed:
                    placed[id(value)] = _placed(value, "strided" if name in wide else way.layout)
            tensors = {name: placed[id(value)] for name, value in self.tensors.items()}
            arguments = self.arguments(tensors)
            shadow.strict = True

            def launch() -> None:
                with settings.grid_order(way.order):
                    if self.by_name:
                        self.kernel[self.grid](**arguments, **self.keywords)
                    else:
                        self.kernel[self.grid](*arguments.values(), **self.keywords)
                    simulation.synchronize_all()

            if counts and way.capability in _CARDS:
                from .profiling import profile

                with profile(card=_CARDS[way.capability]) as counted:
                    launch()
                run.launches = counted.launches
            else:
                launch()
            lines = {name: shadow.lines(_view(each)) for name, each in tensors.items()}
            simulation.shadow = None  # what was not written can be read from here on
            return {
                name: _Found(each.detach().cpu().numpy(), lines[name], shadow.places) for name, each in tensors.items()
            }

    def written(self, found: Mapping[str, _Found]) -> list[str]:
        """The tensors that the kernel wrote, each by its first name."""
        first = {id(value): name for name, value in reversed(self.tensors.items())}
        return [name for name, each in found.items() if each.lines.any() and first[id(self.tensors[name])] == name]

    def expected(self, reference: Reference, written: list[str]) -> dict[str, np.ndarray]:
        """What the reference says that the kernel writes."""
        if callable(reference):
            made = {id(value): _copy(value) for value in self.tensors.values()}
            copies = {name: made[id(value)] for name, value in self.tensors.items()}
            arguments = self.arguments(copies)
            found = reference(**arguments) if self.by_name else reference(*arguments.values())
            if found is None:
                found = {name: copies[name] for name in written}
        else:
            found = reference
        if not isinstance(found, Mapping):
            several = list(found) if isinstance(found, (tuple, list)) else [found]
            if len(several) != len(written):
                raise ArgumentError(
                    f"check_kernel: the reference returns {len(several)} results for {self.name}",
                    f"it writes {len(written)} tensors: {', '.join(written)}",
                    remedy="return a dictionary of results by the names of the arguments",
                )
            found = dict(zip(written, several))
        return {name: _array(value) for name, value in found.items()}

    def compare(
        self, run: KernelRun, found: Mapping[str, _Found], other: Mapping[str, np.ndarray] | None, named: bool
    ) -> None:
        """Raise the error of what was not written, or differs from the reference or from the first run."""
        for name, each in found.items():
            if self.tensors[name].device.type == "meta" and not each.lines.all():
                at = np.unravel_index(int(np.argmin(each.lines)), each.lines.shape)
                raise KernelMismatchError(
                    f"{self.name}: nothing wrote element {_index(at)} of {name}, of {each.lines.size}",
                    _line(each, int(each.lines.max()), "the others were written"),
                )
        for name, wanted in (other or {}).items():
            each = found[name]
            self._compare(run, name, each, wanted, "the reference has" if named else "the first run has")

    def _compare(self, run: KernelRun, name: str, each: _Found, wanted: np.ndarray, has: str) -> None:
        if each.values.shape != wanted.shape:
            raise ArgumentError(
                f"check_kernel: the reference of {name} has the shape {wanted.shape}, not {each.values.shape}"
            )
        relative, absolute = _TOLERANCES.get(dtypes.of(each.values.dtype).name, (0.0, 0.0))
        relative = relative if self.rtol is None else self.rtol
        absolute = absolute if self.atol is None else self.atol
        wide = np.complex128 if "c" in each.values.dtype.kind + wanted.dtype.kind else np.float64
        x, y = each.values.astype(wide), wanted.astype(wide)
        with np.errstate(all="ignore"):
            apart = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.nan_to_num(np.abs(x - y), nan=np.inf))
            wrong = apart > absolute + relative * np.nan_to_num(np.abs(y))
        run.difference = max(run.difference, float(apart.max(initial=0.0)))
        if wrong.any():
            at = np.unravel_index(int(np.argmax(np.where(wrong, apart, -1))), x.shape)
            last, other = int(each.lines[at]), int(each.lines.max())
            raise KernelMismatchError(
                f"{self.name}: element {_index(at)} of {name} is {x[at]}, and {has} {y[at]}",
                f"of {wrong.size} elements {int(wrong.sum())} differ by more than {relative:g} relative, {absolute:g} "
                "absolute",
                _line(each, last, "it was written") if last else "nothing wrote it",
                _line(each, other, "others were written") if not last else "",
            )


def _line(each: _Found, number: int, text: str) -> str:
    return f"{text} at {each.places[number]}" if number else ""


def _index(at: Sequence[Any]) -> str:
    return f"[{', '.join(str(int(i)) for i in at)}]"


def _array(value: object) -> np.ndarray:
    return np.asarray(value.detach().cpu().numpy() if isinstance(value, Tensor) else value)


def _copy(value: Tensor) -> Tensor:
    if value.device.type == "meta":
        return empty(*value.shape, dtype=value.dtype)
    return value.detach().cpu().clone()


def _view(value: Tensor) -> View:
    strides = tuple(step * value.element_size() for step in value.stride())
    return value.data_ptr(), tuple(value.shape), strides, value.element_size()


def _placed(value: Tensor, layout: str) -> Tensor:
    """A tensor on the device in a layout, with the strides that it has unless the layout changes them."""
    shape, steps = tuple(value.shape), tuple(value.stride())
    if layout == "strided":
        pitches = [1, shape[-1] + 7, *shape[-2:0:-1]]
        steps = tuple(int(step) for step in np.cumprod(pitches)[len(shape) - 1 :: -1])
    extent = 1 + sum((size - 1) * step for size, step in zip(shape, steps)) if 0 not in shape else 0
    front = _FRONT if layout == "offset" else 0
    memory = empty(extent + 2 * front, dtype=value.dtype, device=devices.cuda(0))
    view: Tensor = memory.as_strided(shape, steps, front)
    if value.device.type != "meta":
        if 0 in steps and extent:  # elements that are one in memory
            view = view.as_strided((extent,), (1,), front).copy_(value.detach().cpu().as_strided((extent,), (1,)))
            return view.as_strided(shape, steps, front)
        view.copy_(value.detach())
    return view
