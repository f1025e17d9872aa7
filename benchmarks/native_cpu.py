"""From which size native code of the kernels is quicker than NumPy on tensors of the CPU: what `Operator.native` says.

    python -m benchmarks.native_cpu [--only 'softmax*'] [--sizes 10,1000] [--blocks 7] [--json PATH]

Both sides compute in one process and take turns, block by block, on one thread; a ratio is the least time of native
code divided by the least time of NumPy, of whole calls. A whole run writes benchmarks/results/native-cpu.json.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import time
from collections.abc import Callable
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np

import tritensor as torch
from benchmarks.compare import RESULTS, commit, machine
from tritensor import settings
from tritensor.operators import registry
from tritensor.runtime import native_replay

F = torch.nn.functional
SIZES = (10, 100, 1000, 10_000, 100_000, 1_000_000, 4_000_000)
HALVES = (torch.bfloat16, torch.float16)
Work = Callable[[], Any]


def drawn(kind: Any, *shape: int, seed: int = 0) -> Any:
    array = np.random.default_rng(seed).uniform(0.1, 3, shape)
    return torch.from_numpy(array.astype(np.float32)).to(kind)


def elementwise(name: str, count: int = 1) -> Callable[[Any, int], Work]:
    def make(kind: Any, size: int) -> Work:
        inputs = [drawn(kind, size, seed=seed) for seed in range(count)]
        return lambda: registry[name](*inputs)

    return make


def rows(function: Callable[..., Any], count: int = 1) -> Callable[[Any, int], Work]:
    """Square matrices, of at most 1024 columns."""

    def make(kind: Any, size: int) -> Work:
        width = min(isqrt(size), 1024)
        inputs = [drawn(kind, max(size // width, 1), width, seed=seed) for seed in range(count)]
        return lambda: function(*inputs)

    return make


def with_width(function: Callable[[Any, int], Any]) -> Callable[..., Any]:
    return lambda x: function(x, x.shape[1])


def cross_entropy(kind: Any, size: int) -> Work:
    width = min(isqrt(size), 8192)
    x, target = drawn(kind, size // width, width), torch.arange(size // width) % width
    return lambda: F.cross_entropy(x, target)


def cross_entropy_step(kind: Any, size: int) -> Work:
    width = min(isqrt(size), 8192)
    x, target = drawn(kind, size // width, width).requires_grad_(), torch.arange(size // width) % width

    def step() -> Any:
        x.grad = None
        F.cross_entropy(x, target).backward()
        return x.grad

    return step


def pictures(function: Callable[..., Any]) -> Callable[[Any, int], Work]:
    def make(kind: Any, size: int) -> Work:
        side = max(isqrt(size // 16), 4)
        x = drawn(kind, 1, 16, side, side)
        return lambda: function(x)

    return make


def attention(kind: Any, size: int) -> Work:
    tokens = max(size // (2 * 4 * 64), 1)
    x = [drawn(kind, 2, 4, tokens, 64, seed=seed) for seed in range(3)]
    return lambda: F.scaled_dot_product_attention(*x)


ONE = "exp expm1 log log1p log2 tanh sigmoid erf erfc sin cos sqrt rsqrt relu silu gelu gelu_tanh softplus elu mish "
ONE += "hardswish reciprocal square neg abs lgamma digamma tan atan sinh asinh floor exp2 logsigmoid"
TWO = "add mul div pow maximum gelu_gradient gelu_tanh_gradient silu_gradient sigmoid_gradient softplus_gradient "
TWO += "elu_gradient relu_gradient atan2 fmod remainder"
CASES: dict[str, Callable[[Any, int], Work]] = {
    **{name: elementwise(name) for name in ONE.split() if name in registry},
    **{name: elementwise(name, 2) for name in TWO.split() if name in registry},
    "softmax": rows(lambda x: torch.softmax(x, 1)),
    "log_softmax": rows(lambda x: torch.log_softmax(x, 1)),
    "softmax_backward": rows(lambda x, y: registry["softmax_backward"](x, y, dim=1), 2),
    "log_softmax_backward": rows(lambda x, y: registry["log_softmax_backward"](x, y, dim=1), 2),
    "layer_norm": rows(with_width(lambda x, width: F.layer_norm(x, (width,)))),
    "rms_norm": rows(with_width(lambda x, width: F.rms_norm(x, (width,)))),
    "cross_entropy": cross_entropy,
    "cross_entropy_step": cross_entropy_step,
    "sum": rows(torch.sum),
    "sum_rows": rows(lambda x: x.sum(1)),
    "sum_columns": rows(lambda x: x.sum(0)),
    "mean_rows": rows(lambda x: x.mean(1)),
    "var_rows": rows(lambda x: x.var(1)),
    "amax_rows": rows(lambda x: x.amax(1)),
    "argmax_rows": rows(lambda x: x.argmax(1)),
    "cumsum_rows": rows(lambda x: x.cumsum(1)),
    "norm": rows(lambda x: x.norm()),
    "dropout": rows(lambda x: F.dropout(x, 0.5)),
    "mse_loss": rows(F.mse_loss, 2),
    "max_pool2d": pictures(lambda x: F.max_pool2d(x, 2)),
    "avg_pool2d": pictures(lambda x: F.avg_pool2d(x, 2)),
    "interpolate": pictures(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear")),
    "group_norm": pictures(lambda x: F.group_norm(x, 4)),
    "attention": attention,
}


def least(work: Work, wanted: str, seconds: float) -> tuple[float, bool]:
    """The least seconds of a call in a block, after calls in which native code is made; and whether that is there."""
    made: list[bool] = []
    install = native_replay._Work.install

    def noted(self: Any, compute: Any) -> None:
        made.append(hasattr(compute, "kept"))
        install(self, compute)

    native_replay._Work.install = noted
    try:
        with settings.native_cpu(wanted):
            for _ in range(4):
                work()
            start = time.perf_counter()
            work()
            number = max(int(1e-3 / (time.perf_counter() - start)), 1)
            times: list[float] = []
            while not times or sum(times) < seconds:
                start = time.perf_counter()
                for _ in range(number):
                    work()
                times.append(time.perf_counter() - start)
            return min(times) / number, True in made
    finally:
        native_replay._Work.install = install


def measure(make: Callable[[Any, int], Work], kind: Any, size: int, blocks: int) -> dict[str, Any]:
    """Both sides in turns."""
    work, sides, made = make(kind, size), dict[str, float](), False
    for turn in range(blocks):
        for name in ("force", "0")[:: -1 if turn % 2 else 1]:
            seconds, there = least(work, name, 0.01)
            sides[name], made = min(sides.get(name, 1e9), seconds), made or there
    row = {"native_us": round(sides["force"] * 1e6, 2), "numpy_us": round(sides["0"] * 1e6, 2)}
    return {**row, "ratio": round(sides["force"] / sides["0"], 2)} if made else {"refused": True}


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*", help="names of cases, with * and ?")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--dtypes", default="float32,bfloat16,float16")
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    for name, make in CASES.items():
        if not fnmatch.fnmatch(name, options.only):
            continue
        for kind in options.dtypes.split(","):
            line = found[f"{name} {kind}"] = {}
            for size in map(int, options.sizes.split(",")):
                try:
                    line[size] = measure(make, getattr(torch, kind), size, options.blocks)
                except torch.errors.TritensorError as error:  # no such dtype
                    line[size] = {"error": str(error).splitlines()[0]}
            shown = [str(each.get("ratio", "-")) for each in line.values()]
            print(f"{name:24}{kind:9}", *[f"{each:>7}" for each in shown], flush=True)
    path = options.json or (RESULTS / "native-cpu.json" if options.only == "*" else None)
    if path:
        path.write_text(json.dumps({"commit": commit(), "machine": machine(), "cases": found}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
