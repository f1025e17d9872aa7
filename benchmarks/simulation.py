"""What running compiled kernels in NumPy costs, beside Triton's interpreter, on a machine without a GPU.

    python -m benchmarks.simulation [--only 'add*'] [--blocks 9] [--json PATH]

Both simulate a device in one process and take turns, block by block; a ratio is the least time of the compiled kernels
divided by the least time of the interpreter. Steps of training are timed alone, after their first. A whole run writes
benchmarks/results/simulation.json.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import triton
import triton.language as tl

import tritensor as torch
from benchmarks.compare import RESULTS, commit, load, machine
from tritensor import nn
from tritensor.nn import functional as F
from tritensor.vision import models

Work = Callable[[], object]


@torch.cuda.jit
@triton.jit
def _rows(out_ptr, x_ptr, M, N, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
    """Rows times two, read and written by the copy engine."""
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [ROWS, COLUMNS])
    out = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [ROWS, COLUMNS])
    row = tl.program_id(0) * ROWS
    for column in range(0, N, COLUMNS):
        out.store([row, column], x.load([row, column]) * 2)


def _random(*shape: int) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(1).standard_normal(shape).astype(np.float32)).cuda()


def add() -> Work:
    a, b = _random(1 << 20), _random(1 << 20)
    return lambda: a + b


def softmax() -> Work:
    x = _random(256, 1000)
    return lambda: torch.softmax(x, 1)


def product() -> Work:
    a, b = _random(128, 128), _random(128, 128)
    return lambda: a @ b


def tiles() -> Work:
    x, out = _random(4096, 1024), torch.empty(4096, 1024, device="cuda")

    def run() -> None:
        _rows[(512,)](out, x, 4096, 1024, ROWS=8, COLUMNS=256)

    return run


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.first, self.second = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.enter, self.leave = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.layers = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.enter(self.first(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        x = x + self.leave(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.layers(self.second(x))


def _training(model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> Work:
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs).flatten(0, -2), labels.flatten()).backward()
        optimizer.step()

    return step


def gpt() -> Work:
    torch.manual_seed(1)
    blocks = [_Block(64, 4) for _ in range(2)]
    model = nn.Sequential(nn.Embedding(96, 64), *blocks, nn.LayerNorm(64), nn.Linear(64, 96)).cuda()
    letters = torch.randint(0, 96, (4, 64)).cuda()
    return _training(model, letters, letters)


def resnet() -> Work:
    torch.manual_seed(1)
    labels = torch.randint(0, 10, (2,)).cuda()
    return _training(models.resnet18(num_classes=10).cuda(), _random(2, 3, 64, 64), labels)


#: name, what a reader sees, what makes the work, its greatest ratio, its greatest seconds
CASES: tuple[tuple[str, str, Callable[[], Work], float | None, float | None], ...] = (
    ("add", "a + b, 1 M", add, 1.0, None),
    ("softmax", "softmax 256x1000", softmax, 1.0, None),
    ("product", "product of 128 cubed", product, 1.0, None),
    ("tiles", "float32 rows by TMA, 4096x1024", tiles, None, 1.0),
    ("gpt", "training step of a GPT, 2 layers of 64", gpt, None, 2.0),
    ("resnet", "training step of ResNet-18, 2x3x64x64", resnet, None, 60.0),
)


def least(make: Callable[[], Work], engine: str, seconds: float) -> float:
    """The least seconds of an execution among those of a block, after a first one."""
    with torch.cuda.simulate(engine=engine, capability=(9, 0)):
        work = make()
        work()
        torch.cuda.synchronize()
        times: list[float] = []
        while not times or sum(times) < seconds:
            start = time.process_time()
            work()
            torch.cuda.synchronize()
            times.append(time.process_time() - start)
    return min(times)


def measure(case: tuple[Any, ...], blocks: int) -> dict[str, Any]:
    """Both sides in turns, or the compiled one alone where no ratio is wanted."""
    _, title, make, ratio, limit = case
    sides: dict[str, float] = {}
    for turn in range(blocks if ratio else 1):
        for engine in ("compiled", "interpreter")[:: -1 if turn % 2 else 1] if ratio else ("compiled",):
            sides[engine] = min(sides.get(engine, 1e9), least(make, engine, 0.3))
    found: dict[str, Any] = {"title": title, **{f"{name}_ms": round(1e3 * each, 3) for name, each in sides.items()}}
    if ratio:
        found |= {"ratio": round(sides["compiled"] / sides["interpreter"], 3), "target": ratio}
        return {**found, "met": found["ratio"] <= ratio}
    return {**found, "target_ms": 1e3 * (limit or 0), "met": sides["compiled"] <= (limit or 0)}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", metavar="PATTERN", help="rows by name, as in 'add*'; writes no JSON")
    parser.add_argument("--blocks", type=int, default=5, metavar="N", help="of each side (5)")
    parser.add_argument("--json", type=Path, metavar="PATH", help="where to write the figures")
    options = parser.parse_args(arguments)
    path = options.json or (RESULTS / "simulation.json" if options.only == "*" else None)
    facts = {
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit(),
        "machine": {**machine(), "load_before": load()},
        "versions": {"python": platform.python_version(), "tritensor": torch.__version__, "triton": triton.__version__},
    }
    results: dict[str, Any] = {}
    print(f"{'':42}{'compiled':>12}{'interpreted':>13}{'ratio':>8}")
    for case in CASES:
        if fnmatch.fnmatch(case[0], options.only):
            found = results[case[0]] = measure(case, options.blocks)
            other = found.get("interpreter_ms")
            line = f"{found['title']:42}{found['compiled_ms']:9.1f} ms"
            line += f"{other:10.1f} ms{found['ratio']:8.2f}" if other else " " * 21
            print(line + ("" if found["met"] else "  short"), flush=True)
    if path is not None:
        path.write_text(json.dumps({**facts, "cases": results}, indent=1) + "\n")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
