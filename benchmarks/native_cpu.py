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
from collections.abc import Callable
from math import isqrt
from pathlib import Path
from typing import Any

import tritensor as torch
from benchmarks.compare import RESULTS, commit, machine
from tritensor.operators import registry
from tritensor.scripts.tune import drawn, measure

F = torch.nn.functional
SIZES = (10, 100, 1000, 10_000, 100_000, 1_000_000, 4_000_000)
HALVES = (torch.bfloat16, torch.float16)
Work = Callable[[], Any]


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


def channels_last(function: Callable[..., Any], gradient: bool = False) -> Callable[[Any, int], Work]:
    """Square pictures of 64 channels, which are innermost."""

    def make(kind: Any, size: int) -> Work:
        side = max(isqrt(size // 64), 4)
        x = drawn(kind, 1, 64, side, side).contiguous(memory_format=torch.channels_last)
        if not gradient:
            return lambda: function(x)
        x.requires_grad_()

        def step() -> Any:
            x.grad = None
            function(x).sum().backward()
            return x.grad

        return step

    return make


def depthwise(x: Any) -> Any:
    return F.conv2d(x, torch.ones(64, 1, 3, 3, dtype=x.dtype), None, 1, 1, 1, 64)


def attention(kind: Any, size: int) -> Work:
    tokens = max(size // (2 * 4 * 64), 1)
    q, k, v = (drawn(kind, 2, 4, tokens, 64, seed=seed) for seed in range(3))
    return lambda: F.scaled_dot_product_attention(q, k, v)


def in_place(name: str, count: int) -> Callable[[Any, int], Work]:
    def make(kind: Any, size: int) -> Work:
        x, *others = [drawn(kind, size, seed=seed) for seed in range(count)]
        return lambda: getattr(x, name)(*others)

    return make


def into(kind: Any, size: int) -> Work:
    x, y, out = (drawn(kind, size, seed=seed) for seed in range(3))
    return lambda: torch.lerp(x, y, 0.5, out=out)


def parameters(kind: Any, size: int, count: int) -> list[Any]:
    """So many, with gradients."""
    params = [torch.nn.Parameter(drawn(kind, max(size // count, 1))) for _ in range(count)]
    for param in params:
        param.grad = drawn(kind, *param.shape, seed=1)
    return params


def step(count: int, optimizer: Any, **options: Any) -> Callable[[Any, int], Work]:
    """Of an optimizer for so many tensors."""

    def make(kind: Any, size: int) -> Work:
        made: Work = optimizer(parameters(kind, size, count), lr=1e-3, **options).step
        return made

    return make


def clipping(kind: Any, size: int) -> Work:
    params = parameters(kind, size, 100)
    return lambda: torch.nn.utils.clip_grad_norm_(params, 1.0)


ONE = "exp expm1 log log1p log2 tanh sigmoid erf erfc sin cos sqrt rsqrt relu silu gelu gelu_tanh softplus elu mish "
ONE += "hardswish reciprocal square neg abs lgamma digamma tan atan sinh asinh floor exp2 logsigmoid erfinv i0 sign"
TWO = "add mul div pow maximum gelu_gradient gelu_tanh_gradient silu_gradient sigmoid_gradient softplus_gradient "
TWO += "elu_gradient relu_gradient atan2 fmod remainder hypot floor_divide logaddexp lerp"
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
    "rand": lambda kind, size: lambda: torch.rand(size, dtype=kind),
    "randn": lambda kind, size: lambda: torch.randn(size, dtype=kind),
    "lerp_": in_place("lerp_", 3),
    "sigmoid_": in_place("sigmoid_", 1),
    "lerp_out": into,
    "adamw": step(1, torch.optim.AdamW),
    "adamw_100": step(100, torch.optim.AdamW),
    "sgd": step(1, torch.optim.SGD),
    "sgd_100": step(100, torch.optim.SGD),
    "sgd_momentum": step(1, torch.optim.SGD, momentum=0.9),
    "sgd_momentum_100": step(100, torch.optim.SGD, momentum=0.9),
    "clip_grad_norm_100": clipping,
    "mse_loss": rows(F.mse_loss, 2),
    "max_pool2d": pictures(lambda x: F.max_pool2d(x, 2)),
    "avg_pool2d": pictures(lambda x: F.avg_pool2d(x, 2)),
    "interpolate": pictures(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear")),
    "depthwise": channels_last(depthwise),
    "max_pool2d_last": channels_last(lambda x: F.max_pool2d(x, 2)),
    "max_pool2d_last_step": channels_last(lambda x: F.max_pool2d(x, 2), True),
    "avg_pool2d_last": channels_last(lambda x: F.avg_pool2d(x, 2)),
    "bilinear_last": channels_last(lambda x: F.interpolate(x, scale_factor=2, mode="bilinear")),
    "add_row": rows(lambda x: x + x[0]),
    "diff_rows": rows(torch.diff),
    "prod_rows": rows(lambda x: x.prod(1)),
    "group_norm": pictures(lambda x: F.group_norm(x, 4)),
    "attention": attention,
}


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
                    line[size] = measure(make(getattr(torch, kind), size), options.blocks)
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
