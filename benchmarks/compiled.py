"""What `compile` gains on the CPU: beside the same function as it is, and beside torch as it is and compiled.

    python -m benchmarks.compiled [--only 'chain*'] [--blocks 9] [--json PATH]

All four run in this process on the same inputs and take turns, block by block, one thread each; a ratio is the least
time of the compiled function divided by the least time of the other. Peak memory is that of NumPy's arrays above the
inputs. A whole run writes benchmarks/results/compiled.json. Without torch only the first ratio is measured.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import importlib.util
import json
import os
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

import tritensor
from benchmarks.compare import RESULTS, commit, machine
from benchmarks.measure import executions

Made = tuple[Callable[..., Any], tuple[Any, ...]]  # a function, and the inputs of its calls


def _values(library: ModuleType, *shape: int, kind: str = "float32", seed: int = 0) -> Any:
    drawn = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    return library.from_numpy(drawn).to(getattr(library, kind))


def _six(library: ModuleType, x: Any, y: Any) -> Any:
    return (library.tanh(x * 2.0 + y) * x - 0.5) * y


def chain(size: int, kind: str = "float32") -> Callable[[ModuleType], Made]:
    """A chain of six operators."""

    def make(library: ModuleType) -> Made:
        x, y = _values(library, size, kind=kind), _values(library, size, kind=kind, seed=1)
        return lambda x, y: _six(library, x, y), (x, y)

    return make


def both_ways(library: ModuleType) -> Made:
    """A chain of six and its gradients, 1 M."""
    x, y = _values(library, 1 << 20).requires_grad_(), _values(library, 1 << 20, seed=1)

    def function(x: Any, y: Any) -> Any:
        return library.autograd.grad(_six(library, x, y).sum(), x)

    return function, (x, y)


def normalised(library: ModuleType) -> Made:
    """Layer norm, gelu and a residual, 4096x1024."""
    x, w, b = _values(library, 4096, 1024), _values(library, 1024, seed=1), _values(library, 1024, seed=2)
    functional = library.nn.functional
    return lambda x, w, b: functional.gelu(functional.layer_norm(x, (1024,), w, b)) + x, (x, w, b)


def masked_softmax(library: ModuleType) -> Made:
    """Scale, mask and softmax of scores, 8x4x256x256."""
    x, mask = _values(library, 8, 4, 256, 256), _values(library, 256, 256, seed=1)
    return lambda x, mask: library.nn.functional.softmax(x * 0.125 + mask, -1), (x, mask)


def adam(size: int) -> Callable[[ModuleType], Made]:
    """Adam by hand, of one parameter."""

    def make(library: ModuleType) -> Made:
        def function(p: Any, g: Any, m: Any, v: Any) -> Any:
            m = m * 0.9 + g * 0.1
            v = v * 0.999 + g * g * 0.001
            return p - 0.001 * (m / 0.5) / ((v / 0.3).sqrt() + 1e-8), m, v

        p, g, m, v = (_values(library, size, seed=seed) for seed in range(4))
        return function, (p, g, m, v.abs())

    return make


def block(kind: str = "float32") -> Callable[[ModuleType], Made]:
    """The training step of a block of GPT-2, 4x128x256."""

    def make(library: ModuleType) -> Made:
        functional = library.nn.functional
        shapes = {"norm": (256,), "shift": (256,), "qkv": (768, 256), "out": (256, 256), "up": (1024, 256)}
        shapes |= {"down": (256, 1024), "norm2": (256,), "shift2": (256,)}
        weights = [
            (_values(library, *shape, kind=kind, seed=seed) * 0.05).detach().requires_grad_()
            for seed, shape in enumerate(shapes.values())
        ]

        def function(x: Any, *given: Any) -> Any:
            norm, shift, qkv, out, up, down, norm2, shift2 = given
            h = functional.layer_norm(x, (256,), norm, shift)
            q, k, v = (each.view(4, 128, 8, 32).transpose(1, 2) for each in (h @ qkv.T).split(256, -1))
            h = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + h.transpose(1, 2).reshape(4, 128, 256) @ out.T
            h = functional.layer_norm(x, (256,), norm2, shift2)
            x = x + functional.gelu(h @ up.T, approximate="tanh") @ down.T
            x.sum().backward()
            found = [each.grad for each in weights]
            for each in weights:
                each.grad = None
            return found

        return function, (_values(library, 4, 128, 256, kind=kind, seed=9), *weights)

    return make


class Generator:
    """16 tokens, each the most likely one behind those before it, by a decoder of 4 layers of width 128.

    The decoder alone is compiled, with `fullgraph=True`; each number of tokens is a program of its own.
    """

    def __init__(self, library: ModuleType, model: Any) -> None:
        self.library, self.model = library, model

    def __call__(self, tokens: Any) -> Any:
        """The tokens, and 16 more."""
        with self.library.no_grad():
            for _ in range(16):
                tokens = self.library.cat([tokens, self.model(tokens).argmax(-1, keepdim=True)], 1)
        return tokens

    def compiled(self) -> Generator:
        """The same with a compiled model."""
        return Generator(self.library, self.library.compile(self.model, fullgraph=True))


def generate(library: ModuleType) -> Made:
    """A decoder of 4 layers with 4 heads of 32, and 8 tokens to begin with."""
    nn, functional = library.nn, library.nn.functional
    library.manual_seed(0)

    class Layer(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.norm2 = nn.LayerNorm(128), nn.LayerNorm(128)
            self.qkv, self.out = nn.Linear(128, 384), nn.Linear(128, 128)
            self.up, self.down = nn.Linear(128, 512), nn.Linear(512, 128)

        def forward(self, x: Any) -> Any:
            q, k, v = (each.unflatten(-1, (4, 32)).transpose(1, 2) for each in self.qkv(self.norm(x)).split(128, -1))
            h = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(h.transpose(1, 2).flatten(2))
            return x + self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Decoder(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(256, 128), nn.Embedding(64, 128)
            self.layers = nn.Sequential(*[Layer() for _ in range(4)])
            self.norm, self.head = nn.LayerNorm(128), nn.Linear(128, 256, bias=False)

        def forward(self, tokens: Any) -> Any:
            x = self.layers(self.tokens(tokens) + self.places(library.arange(tokens.shape[1])))
            return self.head(self.norm(x)[:, -1])

    tokens = library.from_numpy(np.random.default_rng(0).integers(0, 256, (1, 8)))
    return Generator(library, Decoder().eval()), (tokens,)


class Case(NamedTuple):
    """A name, what makes function and inputs, the ratios that are wanted: to torch as it is, and compiled; and whether
    ours is repeated without Python."""

    name: str
    make: Callable[[ModuleType], Made]
    wanted: tuple[float, float | None]
    fullgraph: bool = False


CASES = (
    Case("chain of 6, 1,000", chain(1000), (1.0, 0.9)),
    Case("chain of 6, 1,000, fullgraph", chain(1000), (1.0, 0.9), True),
    Case("chain of 6, 100,000", chain(100_000), (0.27, 0.4)),
    Case("chain of 6, 4 M", chain(1 << 22), (0.18, 0.32)),
    Case("chain of 6, 4 M, bfloat16", chain(1 << 22, "bfloat16"), (0.5, 0.6)),
    Case("chain of 6 and its gradients, 1 M", both_ways, (0.2, 0.26)),
    Case("layer norm, gelu, residual, 4096x1024", normalised, (0.55, 0.65)),
    Case("scale, mask, softmax, 8x4x256x256", masked_softmax, (0.7, 0.9)),
    Case("Adam by hand, 10,000", adam(10_000), (0.8, 1.0)),
    Case("Adam by hand, 10,000, fullgraph", adam(10_000), (0.8, 1.0), True),
    Case("Adam by hand, 4 M", adam(1 << 22), (0.23, 0.9)),
    Case("step of a GPT-2 block, 4x128x256", block(), (0.9, 0.95)),
    Case("step of a GPT-2 block, bfloat16", block("bfloat16"), (0.9, 0.9)),
    Case("generate 16 tokens, 4 layers of 128", generate, (0.6, None)),
)


def peak(run: Callable[[], object]) -> int:
    """The most bytes of Python and NumPy during a call."""
    tracemalloc.start()
    kept = run()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del kept
    return found


def measured(case: Case, torch: ModuleType | None, blocks: int) -> dict[str, Any]:
    """The least seconds of each side, and the ratios."""
    runs: dict[str, Callable[[], object]] = {}
    firsts: dict[str, float] = {}
    for name, library in (("tritensor", tritensor), ("torch", torch)):
        if library is None:
            continue
        for how in ("compiled", "as it is"):
            function, inputs = case.make(library)
            run = function
            if how == "compiled":
                compiled = partial(library.compile, fullgraph=case.fullgraph)
                run = function.compiled() if isinstance(function, Generator) else compiled(function)
            start = time.perf_counter()
            run(*inputs)
            firsts[f"{name} {how}"] = time.perf_counter() - start
            runs[f"{name} {how}"] = partial(run, *inputs)
    for run in runs.values():  # native code is made in the background, from the second call on
        for _ in range(60 if "1,000" in case.name or "10,000" in case.name else 3):
            run()
    time.sleep(3.0)
    for run in runs.values():
        for _ in range(60 if "1,000" in case.name or "10,000" in case.name else 3):
            run()
    numbers = {name: executions(_loop(run), 0.05) for name, run in runs.items()}
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(blocks):
        for name, run in (*runs.items(), *reversed(runs.items())):
            best[name] = min(best[name], _loop(run)(numbers[name]) / numbers[name])
    ours = best["tritensor compiled"]
    return {
        "case": case.name,
        "seconds": best,
        "first": firsts,
        "ratios": {name: ours / other for name, other in best.items() if name != "tritensor compiled"},
        "wanted": dict(zip(("torch as it is", "torch compiled"), case.wanted, strict=True)),
        "peak": {how: peak(runs[f"tritensor {how}"]) for how in ("compiled", "as it is")},
    }


def _loop(run: Callable[[], object]) -> Callable[[int], float]:
    def timed(number: int) -> float:
        start = time.perf_counter()
        for _ in range(number):
            run()
        return time.perf_counter() - start

    return timed


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compiled", description=__doc__)
    parser.add_argument("--only", default="*", help="cases whose names match this pattern")
    parser.add_argument("--blocks", type=int, default=9, help="turns of each side")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    options = parser.parse_args()
    torch = importlib.import_module("torch") if importlib.util.find_spec("torch") else None
    for library in (tritensor, torch):
        if library is not None:
            library.set_num_threads(1)
    print(
        f"{'compiled, beside':40} {'as it is':>9} {'torch':>9} {'wanted':>7} {'compiled':>9} {'wanted':>7} {'peak':>6}"
    )
    rows = []
    for case in CASES:
        if not fnmatch.fnmatch(case.name, options.only):
            continue
        row = measured(case, torch, options.blocks)
        rows.append(row)
        ratios = row["ratios"]
        texts = [f"{ratios['tritensor as it is']:9.2f}"]
        for name, wanted in zip(("torch as it is", "torch compiled"), case.wanted, strict=True):
            texts.append(f"{ratios[name]:9.2f}" if name in ratios else f"{'':9}")
            texts.append(f"{'':7}" if wanted is None or name not in ratios else f"{wanted:7.2f}")
        memory = row["peak"]["compiled"] / max(row["peak"]["as it is"], 1)
        print(f"{case.name:40} {' '.join(texts)} {memory:6.2f}", flush=True)
    path = options.json or (RESULTS / "compiled.json" if options.only == "*" and torch is not None else None)
    if path is not None:
        about = {"commit": commit(), "machine": machine(), "cores": os.cpu_count(), "cases": rows}
        path.write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
