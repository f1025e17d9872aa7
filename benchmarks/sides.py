"""A library on the device that it is measured on: its tensors and timers."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.cases import Case
from benchmarks.measure import timer

__all__ = ["Ceiling", "Side", "Timed"]

Timed = Callable[[int], float]  # from a number of executions to their seconds

# Numbers that are drawn for one input; larger ones repeat them, since drawing a gigabyte takes longer than the row.
_DRAWN = 1 << 22
_PER_GRAPH = 50  # executions in one graph, so that the 5 us of launching it do not count


class Side:
    """One library, on one device.

    Args:
        name: tritensor, torch or cupy.
        module: the library.
        device: as the library writes it; "cpu" for torch beside a simulation.
    """

    def __init__(self, name: str, module: ModuleType, device: str) -> None:
        self.name, self.module, self.device = name, module, device
        self._cuda: Any = module.cuda if device != "cpu" else None

    # ---- tensors ----------------------------------------------------------------------------------------------------

    def namespace(self, case: Case, arrays: Mapping[str, np.ndarray]) -> dict[str, object]:
        """The names that a case's statement needs, for these inputs."""
        if self.name == "cupy":
            return {"lib": self.module, **{name: self.module.asarray(array) for name, array in arrays.items()}}
        return case.namespace(self.module, arrays, self.device)

    def filled(self, case: Case, seed: int = 0) -> dict[str, object]:
        """The names for inputs of a case's own size, filled on the device with random numbers that repeat."""
        tensors = {}
        for position, (name, shape) in enumerate(case.inputs.items()):
            generator = np.random.default_rng((seed, position))
            count = prod(shape)
            drawn = case.numbers(generator, (min(count, _DRAWN),))
            tensors[name] = self._repeated(drawn, count, case.dtype).reshape(shape)
        if self.name == "cupy":
            return {"lib": self.module, **tensors}
        return case.names_for(self.module, tensors)

    def _repeated(self, drawn: np.ndarray, count: int, dtype: str) -> Any:
        if self.name == "cupy":
            part = self.module.asarray(drawn)
        else:
            part = self.module.from_numpy(drawn).to(self.device).to(getattr(self.module, dtype))
        if count == drawn.size:
            return part
        options = {} if self.name == "cupy" else {"device": self.device}
        whole = self.module.empty(count, dtype=part.dtype, **options)
        for start in range(0, count, drawn.size):
            whole[start : start + drawn.size] = part[: count - start]
        return whole

    def array(self, tensor: Any) -> np.ndarray:
        """A tensor's numbers in a float64 array."""
        if self.name == "cupy":
            return tensor.get().astype(np.float64)
        return tensor.detach().cpu().double().numpy()

    def nbytes(self, result: Any) -> int:
        """Bytes of a result, which may be a tuple."""
        if isinstance(result, (tuple, list)):
            return sum(self.nbytes(part) for part in result)
        return int(getattr(result, "nbytes", 0))

    # ---- the device -------------------------------------------------------------------------------------------------

    def synchronize(self) -> None:
        """Wait until the device has done everything."""
        if self.name == "cupy":
            self._cuda.Device().synchronize()
        elif self._cuda is not None:
            self._cuda.synchronize()

    def release(self) -> None:
        """Return unused memory to the device, so that the other library can use it."""
        if self.name == "cupy":
            self.module.get_default_memory_pool().free_all_blocks()
        elif self._cuda is not None:
            self._cuda.empty_cache()

    @contextlib.contextmanager
    def precision(self, word: str | None) -> Iterator[None]:
        """Multiply float32 matrices in a block as `set_float32_matmul_precision(word)` says."""
        if word is None or self.name == "cupy":
            yield
            return
        before = self.module.get_float32_matmul_precision()
        self.module.set_float32_matmul_precision(word)
        try:
            yield
        finally:
            self.module.set_float32_matmul_precision(before)

    # ---- clocks -----------------------------------------------------------------------------------------------------

    def enqueued(self, statement: str, names: Mapping[str, object]) -> Timed:
        """Seconds of the host for some executions of a statement, and one wait for the device at the end."""
        timed = timer(statement, dict(names))

        def run(number: int) -> float:
            self.synchronize()
            start = time.perf_counter()
            timed(number)
            self.synchronize()
            return time.perf_counter() - start

        return run

    def on_device(self, calls: Sequence[Callable[[], Any]]) -> Timed:
        """Seconds of the device for some executions, taken from `calls` in turn, by two events around them."""

        def run(number: int) -> float:
            stop = self._started()
            for call in itertools.islice(itertools.cycle(calls), number):
                call()
            return stop()

        return run

    def replayed(self, calls: Sequence[Callable[[], Any]], least: int = _PER_GRAPH) -> Timed | None:
        """Like `on_device`, by replaying a graph of `least` calls or more; None where there are no graphs."""
        if self.name == "cupy" or not hasattr(self._cuda, "CUDAGraph"):
            return None
        count = -(-least // len(calls)) * len(calls)
        for call in calls:
            call()
        self.synchronize()
        graph = self._cuda.CUDAGraph()
        with self._cuda.graph(graph):
            for call in itertools.islice(itertools.cycle(calls), count):
                call()

        def run(number: int) -> float:
            replays = max(1, round(number / count))
            stop = self._started()
            for _ in range(replays):
                graph.replay()
            return stop() * number / (replays * count)

        return run

    def _started(self) -> Callable[[], float]:
        """Start a timer; the function returned waits for the device and returns the seconds."""
        if self._cuda is None:
            begin = time.perf_counter()
            return lambda: max(time.perf_counter() - begin, 1e-9)
        options = {} if self.name == "cupy" else {"enable_timing": True}
        start, end = self._cuda.Event(**options), self._cuda.Event(**options)
        start.record()

        def stop() -> float:
            end.record()
            end.synchronize()
            if self.name == "cupy":
                return float(self._cuda.get_elapsed_time(start, end)) / 1e3
            return max(float(start.elapsed_time(end)) / 1e3, 1e-9)

        return stop


class Ceiling:
    """The copy ceiling: how fast the device copies its own memory, by the driver's own copy.

    Args:
        ours: tritensor's side.
        nbytes: of the memory that is copied.
    """

    def __init__(self, ours: Side, nbytes: int) -> None:
        from tritensor import drivers

        numbers = Case("copy", "", "", {"source": (nbytes // 4,), "target": (nbytes // 4,)}, {})
        # kept, so that the memory is not freed
        self._memory = ours.filled(numbers)
        source, target = (self._memory[name].data_ptr() for name in ("source", "target"))  # type: ignore[attr-defined]
        driver = drivers.require()
        stream = driver.current_stream(0)
        self.moved = 2 * nbytes
        self.run = ours.on_device([lambda: driver.copy_d2d(target, source, nbytes, stream.handle, (0, 0))])
