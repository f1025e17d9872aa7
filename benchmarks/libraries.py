"""Models of transformers here beside PyTorch, one thread each, in turns.

    python -m benchmarks.libraries --python FOLDER/without/bin/python --torch FOLDER/with/bin/python [--json PATH]

Each library runs in a process of its own, which makes the models once; the two then run each case in blocks of A B B A.
A row is the median of ours/theirs over the blocks, its spread, and the target; a ratio above it is marked SHORT. The
interpreters are those of `python -m tests.libraries`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BATCH, LENGTH, WIDTHS = 4, 64, (128, 384)
TARGETS = {"forward": 1.1, "step": 1.1, "generate": 1.5, "import": 0.5}
IMPORT = "import time; begin = time.perf_counter(); from transformers import AutoModelForCausalLM; AutoModelForCausalLM"
IMPORT += "\nprint(time.perf_counter() - begin)"


def cases() -> dict[str, Callable[[], Any]]:
    """The cases by name, in a process with transformers."""
    import torch
    import transformers

    torch.set_num_threads(1)
    torch.manual_seed(0)
    made: dict[str, Callable[[], Any]] = {}
    for width in WIDTHS:
        for name, model in models(transformers, width).items():
            tokens = torch.randint(0, 1000, (BATCH, LENGTH))
            made[f"{name} forward {width}"] = forward(torch, model, tokens)
            made[f"{name} step {width}"] = step(torch, model, tokens)
            if width == WIDTHS[0]:
                made[f"{name} generate {width}"] = generate(model, tokens[:1, :8])
    return made


def models(transformers: Any, width: int) -> dict[str, Any]:
    """GPT-2 and Llama of 4 layers."""
    gpt = transformers.GPT2Config(n_embd=width, n_layer=4, n_head=4, vocab_size=1000, n_positions=128)
    sizes = {"intermediate_size": 3 * width, "num_attention_heads": 4, "num_key_value_heads": 2}
    llama = transformers.LlamaConfig(hidden_size=width, num_hidden_layers=4, vocab_size=1000, **sizes)
    return {"gpt2": transformers.GPT2LMHeadModel(gpt), "llama": transformers.LlamaForCausalLM(llama)}


def forward(torch: Any, model: Any, tokens: Any) -> Callable[[], Any]:
    """A pass without a gradient."""

    def run() -> None:
        model.eval()
        with torch.no_grad():
            model(tokens)

    return run


def step(torch: Any, model: Any, tokens: Any) -> Callable[[], Any]:
    """A step of training by AdamW, without dropout."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)

    def run() -> None:
        model.eval()
        model(tokens, labels=tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return run


def generate(model: Any, tokens: Any) -> Callable[[], Any]:
    """16 tokens by the most probable one, with a cache."""
    return lambda: model.eval().generate(tokens, max_new_tokens=16, min_new_tokens=16, do_sample=False, pad_token_id=0)


def work() -> None:
    """A library's process: names on a line of standard input, seconds of each run on a line of standard output."""
    known = cases()
    print(json.dumps(list(known)), flush=True)
    for line in sys.stdin:
        name, count = json.loads(line)
        seconds = []
        for _ in range(count):
            begin = time.perf_counter()
            known[name]()
            seconds.append(time.perf_counter() - begin)
        print(json.dumps(seconds), flush=True)


class Side:
    """A process that runs cases on demand."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.names = json.loads(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None
        while not (line := self.process.stdout.readline()).startswith("["):
            if not line:
                raise SystemExit("a process ended: its message stands above")
        return line

    def run(self, name: str, count: int) -> float:
        """The median of some runs, in seconds."""
        assert self.process.stdin is not None
        print(json.dumps([name, count]), file=self.process.stdin, flush=True)
        return statistics.median(json.loads(self._line()))


def environment() -> dict[str, str]:
    """One thread, and no network."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def row(name: str, ratios: list[float]) -> dict[str, Any]:
    """A row of the table, which is printed."""
    target = next(limit for kind, limit in TARGETS.items() if kind in name)
    middle = statistics.median(ratios)
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"{name:22} {middle:6.2f}  {spread:14} target {target}{'  SHORT' if middle > target else ''}", flush=True)
    return {"ratio": middle, "spread": [min(ratios), max(ratios)], "target": target}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--python", default=sys.executable, help="of the environment with the libraries")
    parser.add_argument("--torch", default=sys.executable, help="of the environment with PyTorch besides")
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work()
        return
    module = ["-m", "benchmarks.libraries", "--work"]
    commands = {"ours": [options.python, "-m", "tritensor", "run"], "theirs": [options.torch]}
    rows = {}
    if "import" in f"import {options.only}":
        times: dict[str, list[float]] = {who: [] for who in commands}
        program = ROOT / "build" / "imports_transformers.py"
        program.parent.mkdir(exist_ok=True)
        program.write_text(IMPORT)
        for who in ("ours", "theirs", "theirs", "ours") * 2:
            done = subprocess.run([*commands[who], str(program)], env=environment(), stdout=subprocess.PIPE, check=True)
            times[who].append(float(done.stdout))
        rows["import"] = row("import", [a / b for a, b in zip(times["ours"][1:], times["theirs"][1:], strict=True)])
    ours, theirs = (Side([*command, *module]) for command in commands.values())
    for name in ours.names:
        if options.only not in name:
            continue
        for side in (ours, theirs):
            side.run(name, 3)
        ratios = []
        for _ in range(options.blocks):
            a, b, c, d = (side.run(name, 4) for side in (ours, theirs, theirs, ours))
            ratios.append((a + d) / (b + c))
        rows[name] = row(name, ratios)
    if options.json:
        machine = {"machine": platform.machine(), "cpus": os.cpu_count(), "batch": BATCH, "length": LENGTH}
        options.json.write_text(json.dumps({"of": machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
