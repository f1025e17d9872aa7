"""Measures rows of the GPU table, in a separate process: speed beside the peers, accuracy beside the speed.

`serve` is that process's program. It first writes the facts about the machine, then for each row's name the row's
figures, or its error if it raises. `python -m benchmarks.gpu` sends the names, and starts another process when this one
is lost: after a kernel that faulted nothing more runs on the device in the same process.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import platform
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

import benchmarks
from benchmarks.cases import flatten
from benchmarks.compare import Answer, judged, machine, relative_error, verdict
from benchmarks.gpu_rows import DEVICE, HOST, ROWS, START, Row, Target, toy
from benchmarks.measure import Comparison, side_by_side
from benchmarks.sides import Ceiling, Side, Timed

__all__ = ["Laboratory", "judge", "serve", "warm"]

BLOCKS = 5  # of A B B A
ENQUEUES = 10_000
QUICK = 50e-6  # seconds; a kernel that takes less is replayed from a graph
CEILING = 4_000_000_000  # bytes
START_UP = (
    "import time; start = time.perf_counter(); import {0}; x = {0}.ones(10, device={1!r}); y = (x + x).sum().item(); "
    "print(time.perf_counter() - start)"
)


class Laboratory:
    """The installed libraries, on the device, and how they are timed.

    Args:
        simulated: the device is simulated, rows have toy sizes and torch runs on the CPU: to try the program out.
    """

    def __init__(self, simulated: bool) -> None:
        self.simulated = simulated
        ours = importlib.import_module("tritensor")
        ours.cuda.synchronize()
        self.ours = Side("tritensor", ours, "cuda")
        self.peers: dict[str, Side] = {}
        self.missing: dict[str, str] = {}
        for name in ("torch", "cupy"):
            try:
                self.peers[name] = self._peer(name)
            except Exception as error:
                self.missing[name] = f"{type(error).__name__}: {error}"
        self.ceiling = Ceiling(self.ours, 4_000_000 if simulated else CEILING)
        self.seconds = 0.001 if simulated else 0.02
        self.blocks = 1 if simulated else BLOCKS
        self.enqueues = 5 if simulated else ENQUEUES
        self.cache = int(ours.cuda.get_device_properties(0).L2_cache_size)

    def _peer(self, name: str) -> Side:
        module = importlib.import_module(name)
        if self.simulated:
            if name == "cupy":
                raise ImportError("cupy has no place in a simulation")
            module.set_num_threads(1)
            return Side(name, module, "cpu")
        if name == "torch":
            module.zeros(1, device="cuda")
        else:
            module.zeros(1)
        return Side(name, module, "cuda")

    # ---- what there is ----------------------------------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        """The device, the versions, the copy ceiling."""
        cuda = self.ours.module.cuda
        properties = cuda.get_device_properties(0)
        versions = {"python": platform.python_version()}
        for name in ("tritensor", "torch", "cupy", "triton", "numpy", "cuda.core", "cuda.bindings"):
            with contextlib.suppress(Exception):
                versions[name] = importlib.import_module(name).__version__
        torch = self.peers.get("torch")
        for _ in range(3):
            self.ceiling.run(1)
        number = 1 if self.simulated else 20
        samples = [self.ceiling.moved * number / self.ceiling.run(number) for _ in range(BLOCKS)]
        return {
            "gpu": cuda.get_device_name(0),
            "simulated": self.simulated,
            "device": {
                "capability": list(cuda.get_device_capability(0)),
                "memory": properties.total_memory,
                "multiprocessors": properties.multi_processor_count,
                "l2": self.cache,
                "driver": _smi("driver_version"),
                "clocks": _smi("clocks.sm,clocks.mem,power.limit"),
            },
            "versions": versions,
            "missing": self.missing,
            "switches": _switches(torch),
            "graphs": hasattr(cuda, "CUDAGraph"),
            "machine": machine(),
            "ceiling": {"bytes_per_second": float(np.median(samples)), "samples": samples, "bytes": self.ceiling.moved},
        }

    def side(self, peer: str) -> Side | None:
        """The side of a peer's name, None if it is not installed."""
        return self.peers.get(peer.split()[0])

    # ---- a row ------------------------------------------------------------------------------------------------------

    def measure(self, row: Row) -> dict[str, Any]:
        """The figures of a row."""
        entry: dict[str, Any] = {"title": row.case.title, "kind": row.kind, "dtype": row.case.dtype, "note": row.note}
        if row.kind == START:
            return {**entry, "speed": self._start_up(row)}
        with self._precision(row):
            entry["accuracy"] = self._accuracy(row)
            entry.update(self._speed(row, entry["accuracy"]))
        if not entry["accuracy"]["accurate"]:  # a fast wrong answer reaches no target
            for each in entry["speed"].values():
                each["reached"] = "wrong" if each.get("reached") else None
        self._release()
        return entry

    @contextlib.contextmanager
    def _precision(self, row: Row) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for side in (self.ours, *self.peers.values()):
                stack.enter_context(side.precision(row.precision))
            yield

    def _release(self) -> None:
        gc.collect()
        for side in (self.ours, *self.peers.values()):
            side.release()

    def _accuracy(self, row: Row) -> dict[str, Any]:
        """Errors of the small problem, by library."""

        def answer(side: Side, peer: str) -> Answer:
            case = row.case_for(peer)
            statement = case.check or case.statement
            return lambda arrays: flatten(eval(statement, side.namespace(case, arrays)))

        answers = {"tritensor": answer(self.ours, "tritensor")}
        for peer in row.peers:
            side = self.side(peer)
            if side is not None and side.name == "torch":
                answers[peer] = answer(side, peer)
        return judged(row.small_case, answers)

    def _check_part(self, row: Row, sides: Mapping[str, tuple[Side, dict[str, object]]]) -> dict[str, Any]:
        """Errors of a part of the result at the size that is measured, by library."""
        errors = {}
        for name, (side, names) in sides.items():
            result = eval(row.case_for(name).statement, dict(names))
            found = side.array(result[row.part["out"]])
            arrays = {key: side.array(names[key][row.part[key]]) for key in row.case.inputs}  # type: ignore[index]
            errors[name] = relative_error(found.reshape(-1), row.case.truth(arrays))
        return verdict(row.case, errors)

    def _speed(self, row: Row, checked: dict[str, Any]) -> dict[str, Any]:
        sets = self._sets(row)
        mine = [self.ours.filled(row.case_for("tritensor"), seed) for seed in range(sets)]
        calls = _calls(row.case_for("tritensor").statement, mine)
        result = calls[0]()  # compiles
        shapes = row.case.inputs
        width = 4 if row.case.dtype == "float32" else 2
        moved = sum(prod(shape) for shape in shapes.values()) * width + self.ours.nbytes(result)
        if row.moved is not None:
            moved = row.moved(shapes)
        elements = max(prod(shape) for shape in shapes.values())
        figures: dict[str, Any] = {
            "bytes": moved,
            "operations": row.work(shapes) if row.work is not None else elements,
            "sets": sets,
            "speed": {},
        }
        del result
        self.ours.synchronize()
        number = None
        if row.kind == DEVICE:
            # only some of the toys, which are slow: each has to be interpreted once more
            graphs = True if self.simulated and not row.rotate else None
            run, figures["timed"] = self._device_timer(self.ours, calls, figures, graphs)
        else:
            run, figures["timed"] = self.ours.enqueued(row.case_for("tritensor").statement, mine[0]), "host"
            if row.kind == HOST:  # a whole training step is a hundred enqueues
                number = self.enqueues if row.case.prepare is None else max(1, self.enqueues // 100)
        for peer in row.peers:
            try:
                entry = self._beside(row, peer, run, figures, mine, checked, number)
            except Exception as error:
                if _lost(self):
                    raise
                entry = {"error": f"{type(error).__name__}: {error}"}
            if entry is not None:
                figures["speed"][peer] = entry
        if not any("ours_us" in entry for entry in figures["speed"].values()):
            for _ in range(2):
                run(1)
            count = number or max(1, round(self.seconds / max(run(1), 1e-9)))
            samples = [run(count) / count for _ in range(self.blocks)]
            figures["alone"] = {"ours_us": float(np.median(samples)) * 1e6, "samples": samples}
        return figures

    def _sets(self, row: Row) -> int:
        """How many sets of inputs are used in turn, so that three times the size of the L2 cache is read between two
        uses of one."""
        if not row.rotate or row.kind != DEVICE:
            return 1
        width = 4 if row.case.dtype == "float32" else 2
        each = sum(prod(shape) for shape in row.case.inputs.values()) * width
        return 2 if self.simulated else max(1, -(-3 * self.cache // each))

    def _device_timer(
        self, side: Side, calls: list[Callable[[], Any]], figures: dict[str, Any], graphs: bool | None = None
    ) -> tuple[Timed, str]:
        """How calls are timed on the device: short ones from a graph, if the library has graphs."""
        plain = side.on_device(calls)
        if graphs is None:
            plain(1)
            graphs = not self.simulated and (plain(3) + plain(20)) / 23 < QUICK
        if graphs:
            try:
                graphed = side.replayed(calls, 1) if self.simulated else side.replayed(calls)
            except Exception as error:
                if _lost(self):
                    raise
                figures[f"no_graph_{side.name}"] = f"{type(error).__name__}: {error}"[:300]
                graphed = None
            if graphed is not None:
                return graphed, "graph"
            return plain, "enqueues"  # the host's speed may be what is measured
        return plain, "events"

    def _beside(
        self,
        row: Row,
        peer: str,
        run: Timed,
        figures: dict[str, Any],
        mine: list[dict[str, object]],
        checked: dict[str, Any],
        number: int | None,
    ) -> dict[str, Any] | None:
        """The comparison with one peer; None if it is not installed."""
        target = None if self.simulated else row.targets.get(peer)  # toys reach nothing
        if peer == "ceiling":
            measured = side_by_side(run, self.ceiling.run, self.blocks, self.seconds)
            # seconds for as many bytes as the row moves
            scale = figures["bytes"] / self.ceiling.moved
            return judge(measured, target, scale)
        side = self.side(peer)
        if side is None:
            return None
        case = row.case_for(peer)
        statement = case.statement
        if side.name == "cupy":
            statement = case.numpy if case.numpy not in (None, "same") else statement
        theirs = [side.filled(case, seed) for seed in range(figures["sets"])]
        calls = _calls(statement, theirs)
        timed = figures["timed"]
        if row.kind == DEVICE:
            graphs = timed == "graph"
            other, timed = self._device_timer(side, calls, figures, graphs)
            if graphs and timed != "graph" and side.device != "cpu":  # then ours goes without a graph as well
                run = self.ours.on_device(_calls(row.case_for("tritensor").statement, mine))
        else:
            other = side.enqueued(statement, theirs[0])
        measured = side_by_side(run, other, self.blocks, self.seconds, number)
        if row.part and side.name == "torch":
            sides = {"tritensor": (self.ours, mine[0]), peer: (side, theirs[0])}
            checked["part"] = self._check_part(row, sides)
            checked["accurate"] = checked["accurate"] and checked["part"]["accurate"]
        return {**judge(measured, target), "timed": timed}

    def _start_up(self, row: Row) -> dict[str, Any]:
        """Fresh processes, in turns."""
        if "torch" not in self.peers:
            return {}
        pairs = 0 if self.simulated else BLOCKS  # and one before them, which fills caches
        places = {"tritensor": "cuda", "torch": self.peers["torch"].device}
        times: dict[str, list[float]] = {name: [] for name in places}
        for turn in range(-1, pairs):
            for name in sorted(places, reverse=turn % 2 == 0):
                command = [sys.executable, "-c", START_UP.format(name, places[name])]
                done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, timeout=120)
                if done.returncode:
                    raise RuntimeError(f"{name}: {done.stderr.strip().splitlines()[-1:]}")
                if turn >= 0 or self.simulated:
                    times[name].append(float(done.stdout))
        a, b = times["tritensor"], times["torch"]
        ratios = tuple(x / y for x, y in zip(a, b, strict=True))
        measured = Comparison(float(np.median(a)), float(np.median(b)), ratios, tuple(zip(a, b, strict=True)))
        return {"torch": judge(measured, None if self.simulated else row.targets.get("torch"))}


ROOT = Path(benchmarks.__file__).parent.parent


def judge(measured: Comparison, target: Target | None, scale: float | None = None) -> dict[str, Any]:
    """A comparison as plain numbers, with the ratio in the direction of its target.

    Args:
        scale: of the ceiling: the bytes of the row over those of the copy; the ratio is the share of the ceiling.
    """
    below = target is not None and target.below
    ratios = [each if below else (1.0 if scale is None else scale) / each for each in measured.ratios]
    ratio = float(np.median(ratios))
    reached = None
    if target is not None:
        over = [ratio <= bound if below else ratio >= bound for bound in (target.gate, target.goal)]
        reached = "goal" if all(over) else "gate" if over[0] else "under"
    return {
        "ours_us": measured.ours * 1e6,
        "theirs_us": measured.theirs * 1e6 * (1.0 if scale is None else scale),
        "ratio": ratio,
        "spread": [min(ratios), max(ratios)],
        "below": below,
        "gate": None if target is None else target.gate,
        "goal": None if target is None else target.goal,
        "reached": reached,
        "ratios": ratios,
        "samples": [list(pair) for pair in measured.samples],
    }


def _calls(statement: str, sets: list[dict[str, object]]) -> list[Callable[[], Any]]:
    return [eval(f"lambda: {statement}", dict(names)) for names in sets]


def _smi(fields: str) -> str:
    """What nvidia-smi reports of the first device, empty if it is not installed."""
    if shutil.which("nvidia-smi") is None:
        return ""
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip().split("\n")[0]


def _switches(torch: Side | None) -> dict[str, Any]:
    """The settings of torch that affect speed."""
    if torch is None or torch.device == "cpu":
        return {}
    backends = torch.module.backends
    return {
        "float32_matmul_precision": torch.module.get_float32_matmul_precision(),
        "cuda.matmul.allow_bf16_reduced_precision_reduction": str(
            backends.cuda.matmul.allow_bf16_reduced_precision_reduction
        ),
        "cudnn.benchmark": backends.cudnn.benchmark,
    }


def _lost(laboratory: Laboratory) -> bool:
    """Whether the device runs nothing more for this process."""
    try:
        laboratory.ours.synchronize()
        for side in laboratory.peers.values():
            side.synchronize()
    except Exception:
        return True
    return False


def warm(rows: Sequence[Row]) -> list[str]:
    """Run each row once, so that its kernels are in the cache on the disk; the names of those that failed.

    Several processes do this during the tests: compiling takes longer than measuring.
    """
    ours = Side("tritensor", importlib.import_module("tritensor"), "cuda")
    failed = []
    for row in rows:
        case = row.case_for("tritensor")
        try:
            with ours.precision(row.precision):
                if row.kind in (DEVICE, HOST):
                    small = replace(case, inputs=row.small)
                    eval(small.check or small.statement, ours.namespace(small, small.arrays()))
                    eval(case.statement, ours.filled(case))
            ours.synchronize()
        except Exception:  # it will fail again where that is reported
            failed.append(row.name)
        gc.collect()
        ours.release()
    return failed


def serve(connection: Any, simulated: bool, approximate: bool = False) -> None:
    """Answer rows' names with their figures, until the input ends; `approximate` as for `toy`."""
    try:
        laboratory = Laboratory(simulated)
        connection.send({"facts": laboratory.facts()})
    except Exception as error:
        connection.send({"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()})
        return
    rows = {row.name: row for row in ROWS}
    while True:
        try:
            name = connection.recv()
        except EOFError:
            return
        if name is None:
            return
        row = toy(rows[name], approximate) if simulated else rows[name]
        begin = time.perf_counter()
        try:
            answer = laboratory.measure(row)
        except Exception as error:
            answer = {
                "title": row.case.title,
                "error": f"{type(error).__name__}: {error}"[:2000],
                "trace": traceback.format_exc()[-4000:],
            }
            # frames hold the row's tensors
            error.__traceback__ = None
            answer["lost"] = _lost(laboratory)
            with contextlib.suppress(Exception):
                laboratory._release()
        connection.send({"row": answer, "seconds": time.perf_counter() - begin})


if __name__ == "__main__":  # compile a part of the rows: python -m benchmarks.laboratory 0/4 matmul_8192 copy_fp32 ...
    part, count = map(int, sys.argv[1].split("/"))
    names = sys.argv[2:][part::count]
    print(f"failed: {warm([row for row in ROWS if row.name in names])}")
