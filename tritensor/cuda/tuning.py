"""`cuda.tune(fn)` tries the configurations of the kernels that a function launches, and keeps the best on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from .. import drivers, settings
from ..drivers import Event
from ..drivers.streams import submit_noted
from ..errors import ArgumentError, KernelError
from ..runtime import choices
from ..runtime.log import duration
from ..types import devices
from .devices import synchronize

if TYPE_CHECKING:
    from .profiling import profile

T = TypeVar("T", bound=tuple[object, ...])
_SAMPLE = 4  # blocks of a grid from which times are predicted
_ROUNDS, _ROUND, _MOST = 3, 2e-3, 200  # of which the shortest counts; seconds of one, launches of one at most


class Tuned(NamedTuple):
    """What `tune` found of a problem: the best configuration of how many, its seconds and those of the usual one."""

    problem: str
    best: tuple[object, ...]
    tried: int
    seconds: float
    usual: float


class Tuning(tuple[Tuned, ...]):
    """What `tune` found, a `Tuned` for each problem; as text a table. `measured`: by a card, not predicted."""

    measured: bool

    def __str__(self) -> str:
        how = "measured" if self.measured else "predicted, not measured"
        lines = [f"{len(self)} problems ({how}), {sum(each.usual > each.seconds for each in self)} got faster"]
        for each in sorted(self, key=lambda each: each.seconds - each.usual):
            times = f"{duration(each.usual)} -> {duration(each.seconds)}"
            lines.append(f"  {times:<20} of {each.tried}: {each.best}  {each.problem}")
        return "\n".join(lines)


def tune(fn: Callable[..., object], *args: object, card: str | None = None, **kwargs: object) -> Tuning:
    """Autotune the kernels that `fn(*args, **kwargs)` launches: try their tiles, warps and stages, and keep the best.

    The first launch of each problem (a product of such sizes, say) is repeated with every configuration that its table
    has. The choice holds from then on in every process on a card of this kind; it is in a file in the folder of
    `settings.cache_dir`, or in Triton's cache directory. Times are measured on a card. On a compiled simulated device
    they are predicted, from a sample of the blocks: results of `fn` are then not all computed, and a card's own
    measurements replace them.

    Args:
        fn: called once, for instance a step of training. A kernel that adds in place adds several times.
        card: in simulation, the card to predict for: "a100", "h100", "h200"; by the device's capability if left out.

    >>> import tritensor as torch
    >>> with torch.cuda.simulate(compiled=True), torch.settings.cache_dir("build/doctest"):
    ...     x = torch.ones(48, 48, device="cuda", dtype=torch.bfloat16)
    ...     found = torch.cuda.tune(lambda: x @ x, card="h100")
    >>> len(found), found.measured, found[0].seconds <= found[0].usual
    (1, False, True)

    Raises:
        ArgumentError: `card` names a card where there is one.
        DeviceError: there is no CUDA device, or a simulated one that runs no compiled kernels.
    """
    driver = drivers.require()
    if card is not None and not driver.predicts:
        raise ArgumentError("tune: times are measured on this device", f"card={card!r}", remedy="leave card out")
    posing: nullcontext[None] | profile = nullcontext()
    if driver.predicts:
        from .profiling import profile

        posing = profile(card or ("a100" if driver.capability(0)[0] < 9 else "h100"), _SAMPLE)
    with posing as counted:
        device = driver.properties(devices.current_index())
        session = _Session(None if counted is None else counted)
        before, choices.tuner = choices.tuner, session
        settings.changed()  # calls that are remembered ask for no configuration
        try:
            fn(*args, **kwargs)
            submit_noted()
        finally:
            choices.tuner = before
            settings.changed()
        choices.keep(device, session.entries)
    result = Tuning(session.found)
    result.measured = not driver.predicts
    return result


class _Session:
    """Tries each problem once."""

    def __init__(self, counted: profile | None) -> None:
        self.counted = counted
        self.known: dict[str, tuple[object, ...]] = {}
        self.entries: dict[str, choices.Entry] = {}
        self.found: list[Tuned] = []

    def __call__(self, key: str, found: Sequence[T], default: T, again: Callable[[], None]) -> T:
        if key in self.known:
            return self.known[key]  # type: ignore[return-value]
        self.known[key] = default  # what is launched in between chooses as usual
        times: dict[T, float] = {}
        outer = choices.forced
        for each in found:
            choices.forced = key, each
            try:
                times[each] = self._seconds(again)
            except KernelError:
                if each == default:
                    raise
            finally:
                choices.forced = outer
        best = min(times, key=lambda each: times[each])
        self.known[key] = best
        self.found.append(Tuned(key, tuple(best), len(times), times[best], times[default]))
        self.entries[key] = choices.Entry(tuple(best), times[best], times[default], self.counted is None)
        return best

    def _seconds(self, again: Callable[[], None]) -> float:
        if self.counted is not None:
            self.counted.launches.clear()
            again()
            synchronize()
            return sum(launch.predicted.seconds for launch in self.counted.launches)
        again()  # compiled, and its memory is warm
        rough = _elapsed(again, 2)
        many = max(min(int(_ROUND / rough), _MOST), 1)
        return min(_elapsed(again, many) for _ in range(_ROUNDS))


def _elapsed(again: Callable[[], None], count: int) -> float:
    """The device's seconds of one call among several."""
    first, last = Event(enable_timing=True), Event(enable_timing=True)
    first.record()
    for _ in range(count):
        again()
    last.record()
    last.synchronize()
    return max(first.elapsed_time(last) * 1e-3 / count, 1e-7)
