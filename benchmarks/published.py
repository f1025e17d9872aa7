"""Kernels that others wrote and measured, predicted: how far `cuda.profile` is from what a card takes.

    git clone https://github.com/linkedin/Liger-Kernel; git clone https://github.com/triton-lang/triton
    python -m benchmarks.published --liger Liger-Kernel --triton triton    # what is not stored yet
    python -m benchmarks.published --write    # the table in docs/performance.md

`published.json` holds the rows as printed, with their sources. Each kernel is run from a checkout of its own project,
by its own wrapper, on a virtual device of the card that it was measured on, with a sample of its blocks. Nothing here
is measured. Triton of today compiles them, where the figures are those of an older one.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import json
import multiprocessing
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

from benchmarks.budgets import device
from benchmarks.compare import RESULTS
from tritensor import cuda
from tritensor.cuda.profiling import card
from tritensor.cuda.profiling.cards import CARDS

ROWS = Path(__file__).parent / "published.json"
STORED = RESULTS / "published.json"
PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
START, END = (
    "<!-- from benchmarks/results/published.json by `python -m benchmarks.published --write` -->\n\n",
    "<!-- end -->\n",
)
SAMPLE = 4
# NVIDIA H100 Tensor Core GPU data sheet, PCIe: 2 TB/s, 756 TFLOPS in bf16 and fp16; whitepaper: 114 multiprocessors,
# 1,620 MHz by these operations.
_PCIE = {"bf16": 756e12, "fp16": 756e12, "tf32": 378e12, "fp64": 51e12, "e4m3": 1513e12, "s8": 1513e12}
CARDS.setdefault(
    "h100-pcie",
    replace(card("h100"), name="h100-pcie", multiprocessors=114, clock=1.62e9, dram=2e12, tensor=_PCIE),
)

Sizes = Mapping[str, int]
Run = Callable[[], Any]


def _module(path: str) -> Any:
    """A module of a checkout, without what its packages import first: models of another library."""
    root = Path(importlib.import_module("liger_kernel.ops").__file__ or "").parents[1]
    for each in ("transformers", "transformers.experimental"):
        if f"liger_kernel.{each}" not in sys.modules:
            bare = sys.modules[f"liger_kernel.{each}"] = ModuleType(f"liger_kernel.{each}")
            bare.__path__ = [str(root.joinpath(*each.split(".")))]
    return importlib.import_module(path)


def checked_out(repository: Path, row: Mapping[str, Any]) -> Path:
    """The files of a repository when figures of a kernel and day came into it, with the code that they are of."""

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(repository), *words], check=True, capture_output=True, text=True).stdout

    since, name = f"--since={row['date']}T00:00:00", row["kernel"].removeprefix("liger/")
    path = "benchmark/data/all_benchmark_data.csv"
    revision = git("log", "--reverse", since, "--format=%H", f"-S{name},liger,", "--", path).split()[0]
    folder = Path(tempfile.gettempdir()) / f"published-{revision}"
    if not folder.exists():
        folder.mkdir()
        archive = folder / "files.tar"
        git("archive", f"--output={archive}", revision, "src")
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
    return folder


def _norm(torch: Any, layer: Any, rows: int, width: int, dtype: Any) -> Run:
    x = torch.empty(rows, width, dtype=dtype, device="cuda", requires_grad=True)
    return lambda: layer(x)


def _rms_norm(torch: Any, sizes: Sizes, dtype: Any) -> Run:
    norm = _module("liger_kernel.transformers.rms_norm").LigerRMSNorm(sizes["H"]).to("cuda")
    return _norm(torch, norm, sizes.get("M", sizes.get("S")), sizes["H"], dtype)  # type: ignore[arg-type]


def _layer_norm(torch: Any, sizes: Sizes, dtype: Any) -> Run:
    norm = _module("liger_kernel.transformers.layer_norm").LigerLayerNorm(sizes["N"]).to("cuda").to(dtype)
    return _norm(torch, norm, sizes["M"], sizes["N"], dtype)


def _relu_squared(torch: Any, sizes: Sizes, dtype: Any) -> Run:
    squared = _module("liger_kernel.transformers.relu_squared").LigerReLUSquared()
    return _norm(torch, squared, sizes["M"], sizes["N"], dtype)


def _cross_entropy(torch: Any, sizes: Sizes, dtype: Any) -> Run:
    rows = sizes["B"] * (sizes.get("T") or sizes["S"])
    x = torch.empty(rows, sizes["V"], dtype=dtype, device="cuda", requires_grad=True)
    target = torch.zeros(rows, dtype=torch.int64).to("cuda")
    loss = _module("liger_kernel.transformers.cross_entropy").LigerCrossEntropyLoss()
    return lambda: loss(x, target)


def _divergence(name: str, loss: str) -> Callable[..., Run]:
    def made(torch: Any, sizes: Sizes, dtype: Any) -> Run:
        shape = sizes["B"] * sizes["T"], sizes["V"]
        x, y = (torch.empty(shape, dtype=dtype, device="cuda", requires_grad=each) for each in (True, False))
        of = getattr(_module(f"liger_kernel.transformers.{name}"), loss)()
        return lambda: of(x, y)

    return made


def _rope(torch: Any, sizes: Sizes, dtype: Any) -> Run:
    length, width = sizes["T"], sizes["hidden_size"] // sizes["num_q_heads"]
    q, k = (
        torch.empty(1, length, sizes[f"num_{each}_heads"], width, dtype=dtype, device="cuda", requires_grad=True)
        for each in ("q", "kv")
    )
    angles = [torch.empty(1, length, width, dtype=dtype, device="cuda") for _ in range(2)]
    of = _module("liger_kernel.transformers.rope").liger_rotary_pos_emb
    return lambda: of(q.transpose(1, 2), k.transpose(1, 2), *angles)


def _rope_of_llama4(torch: Any, sizes: Sizes, dtype: Any) -> Run:
    length, width = sizes["T"], sizes["hidden_size"] // sizes["num_q_heads"]
    q, k = (
        torch.empty(1, length, sizes[f"num_{each}_heads"], width, dtype=dtype, device="cuda", requires_grad=True)
        for each in ("q", "kv")
    )
    turns = torch.empty(length, width // 2, dtype=torch.complex64, device="cuda")
    of = _module("liger_kernel.transformers.llama4_rope").liger_llama4_text_rotary_pos_emb
    return lambda: of(q, k, turns)


def _embedding(torch: Any, sizes: Sizes, dtype: Any) -> Run:
    table = _module("liger_kernel.transformers.experimental.embedding").LigerEmbedding(sizes["V"], sizes["D"])
    table = table.to("cuda").to(dtype)
    # by a stride, so that all rows of the table are met, as by random numbers
    places = (torch.arange(sizes["B"] * sizes["T"]) * 7919 % sizes["V"]).reshape(sizes["B"], sizes["T"]).to("cuda")
    return lambda: table(places)


def _swiglu(torch: Any, sizes: Sizes, dtype: Any) -> Run:
    packed = torch.empty(sizes["S"], sizes["B"], 2 * sizes["ffn_local"], dtype=dtype, device="cuda", requires_grad=True)
    of = _module("liger_kernel.megatron").LigerMegatronSwiGLU()
    return lambda: of(packed)


def _tutorial(name: str, until: str) -> dict[str, Any]:
    """The names that a tutorial defines before its tests."""
    path = next(Path(each) / name for each in sys.path if (Path(each) / name).exists())
    names: dict[str, Any] = {"__name__": name, "__file__": str(path)}
    text = path.read_text(encoding="utf-8").partition(until)[0]
    # Triton reads the text of kernels from their file
    exec(compile(text, str(path), "exec"), names)
    return names


def _product(torch: Any, sizes: Sizes, dtype: Any) -> Run:
    matmul = _tutorial("03-matrix-multiplication.py", "# Unit Test")["matmul"]
    a, b = (torch.empty(sizes["N"], sizes["N"], dtype=dtype, device="cuda") for _ in range(2))
    return lambda: matmul(a, b.T if dtype.itemsize == 1 else b)


def _attention(torch: Any, sizes: Sizes, dtype: Any) -> Run:
    of = _tutorial("06-fused-attention.py", "@pytest.mark.parametrize")["attention"]
    shape = sizes["batch"], sizes["heads"], sizes["N"], sizes["width"]
    q, k, v = (torch.empty(shape, dtype=dtype, device="cuda", requires_grad=True) for _ in range(3))
    return lambda: of(q, k, v, False, 0.5)


PROGRAMS: dict[str, Callable[..., Run]] = {
    "liger/rms_norm": _rms_norm,
    "liger/megatron_rms_norm": _rms_norm,
    "liger/layer_norm": _layer_norm,
    "liger/relu_squared": _relu_squared,
    "liger/cross_entropy": _cross_entropy,
    "liger/megatron_cross_entropy": _cross_entropy,
    "liger/kl_div": _divergence("kl_div", "LigerKLDIVLoss"),
    "liger/jsd": _divergence("jsd", "LigerJSD"),
    "liger/tvd": _divergence("tvd", "LigerTVDLoss"),
    "liger/rope": _rope,
    "liger/llama4_rope": _rope_of_llama4,
    "liger/embedding": _embedding,
    "liger/megatron_swiglu": _swiglu,
    "triton/03-matrix-multiplication": _product,
    "triton/06-fused-attention": _attention,
}


def name_of(row: Mapping[str, Any]) -> str:
    """A row's name: kernel, what was timed, card, sizes."""
    return " ".join([row["kernel"], row["mode"], row["card"], *(f"{k}={n}" for k, n in row["sizes"].items())])


def milliseconds(row: Mapping[str, Any]) -> float:
    """What was printed, as a time."""
    if row["unit"] == "ms":
        return float(row["printed"])
    sizes = row["sizes"]
    if "heads" in sizes:
        work = 4 * sizes["batch"] * sizes["heads"] * sizes["N"] ** 2 * sizes["width"]
    else:
        work = 2 * sizes["N"] ** 3
    return work / row["printed"] * 1e-9


def predicted(row: Mapping[str, Any]) -> dict[str, Any]:
    """The predicted milliseconds of a row, its launches, and what bounds the longest."""
    from tritensor.scripts import names

    names.install()
    import torch

    of = card(row["card"])
    with device(of), cuda.profile(row["card"], SAMPLE) as p:
        p._plain = "cross_entropy" in row["kernel"]  # its labels are looked at before, by kernels that all run
        run = PROGRAMS[row["kernel"]](torch, row["sizes"], getattr(torch, row["dtype"]))
        first = run()
        outs = first if isinstance(first, tuple) else (first,)
        grads = [torch.empty_like(out) for out in outs] if row["mode"] == "backward" else []
        torch.cuda.synchronize()
        p.launches.clear()
        if grads:
            torch.autograd.backward(outs, grads)
        else:
            run()
        torch.cuda.synchronize()
        # where a function writes its gradient over the one that it got, PyTorch takes it over and tritensor copies it
        launches = [launch for launch in p.launches if not (grads and launch.name == "elementwise_copy")]
    longest = max(launches, key=lambda launch: launch.predicted.seconds)
    total = sum(launch.predicted.seconds for launch in launches)
    return {
        "ms": float(f"{total * 1e3:.4g}"),
        "launches": len(launches),
        "longest": longest.name,
        "bound": longest.predicted.bound,
    }


def _predicted(work: tuple[dict[str, Any], list[str]]) -> tuple[str, dict[str, Any], float]:
    row, paths = work
    if "date" in row:
        paths = [str(checked_out(Path(paths[0]), row) / "src")]
    sys.path[:0] = paths
    start = time.monotonic()
    try:
        entry = predicted(row)
    except Exception as error:
        traceback.print_exc()
        entry = {"error": f"{type(error).__name__}: {error}"}
    return name_of(row), entry, time.monotonic() - start


def rows() -> list[dict[str, Any]]:
    """What was published."""
    return json.loads(ROWS.read_text(encoding="utf-8"))["rows"]


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Measured times over predicted ones, a line for each kernel, mode and card."""
    groups: dict[tuple[str, ...], list[tuple[float, float, str]]] = {}
    for row in rows():
        entry = found.get(name_of(row), {})
        if "ms" in entry:
            key = row["kernel"], row["mode"], row["card"], row["dtype"], row["source"]
            groups.setdefault(key, []).append((milliseconds(row), entry["ms"], entry["bound"]))
    lines = ["| kernel | card | rows | measured | measured / predicted | bound |", "|---|---|---|---|---|---|"]
    ratios = []
    for (kernel, mode, on, dtype, _), pairs in groups.items():
        each = [measured / predicted for measured, predicted, _ in pairs]
        ratios += each
        span = f"{min(m for m, _, _ in pairs):.3g} to {max(m for m, _, _ in pairs):.3g} ms"
        lines.append(
            f"| `{kernel}` {mode}, {dtype} | {on} | {len(pairs)} | {span} | {min(each):.2f} to {max(each):.2f} "
            f"| {pairs[-1][2]} |"
        )
    errors = sorted(abs(each - 1) for each in ratios)
    inside = sum(each <= 0.25 for each in errors)
    text = (
        f"Of {len(ratios)} rows that others measured, the median of measured over predicted time is "
        f"{median(ratios):.2f}, the median error {median(errors):.0%}; {inside} are within 25 %.\n\n"
    )
    return text + "\n".join(lines) + "\n\n"


def pairs() -> dict[str, list[tuple[float, float]]]:
    """The stored predictions and what was published, in milliseconds, by whose kernels they are."""
    found = json.loads(STORED.read_text(encoding="utf-8"))["rows"]
    made: dict[str, list[tuple[float, float]]] = {"Liger-Kernel": [], "Triton's tutorials": []}
    for row in rows():
        entry = found.get(name_of(row), {})
        if "ms" in entry:
            whose = "Liger-Kernel" if row["source"] == "liger" else "Triton's tutorials"
            made[whose].append((entry["ms"], milliseconds(row)))
    return made


def store(found: Mapping[str, Mapping[str, Any]]) -> None:
    """Keep predictions, a line a row."""
    lines = ",\n".join(
        f"  {json.dumps(each)}: {json.dumps(found[each])}" for each in map(name_of, rows()) if each in found
    )
    head = json.dumps({"triton": version("triton"), "times": "predicted, not measured"}, indent=1)[:-2]
    STORED.write_text(f'{head},\n "rows": {{\n{lines}\n }}\n}}\n', encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--liger", type=Path, help="a checkout of linkedin/Liger-Kernel")
    parser.add_argument("--triton", type=Path, help="a checkout of triton-lang/triton, of which the tutorials are run")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="rows by name, as in 'liger/rms_norm*'")
    parser.add_argument("--again", action="store_true", help="also what is stored")
    parser.add_argument("--write", action="store_true", help="write the table into docs/performance.md")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    options = parser.parse_args(arguments)
    found = json.loads(STORED.read_text(encoding="utf-8"))["rows"] if STORED.exists() else {}
    paths = {"liger": options.liger, "triton": options.triton and options.triton / "python" / "tutorials"}
    work = [
        (row, [str(paths[row["kernel"].split("/")[0]])])
        for row in rows()
        if paths[row["kernel"].split("/")[0]]
        and fnmatch.fnmatch(name_of(row), options.only)
        and (options.again or "ms" not in found.get(name_of(row), {}))
    ]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, context, max_tasks_per_child=1) as pool:
        for name, entry, seconds in pool.map(_predicted, work):
            found[name] = entry
            print(f"{seconds:6.1f} s  {name}: {entry}", flush=True)
            store(found)
    if options.write:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
        PAGE.write_text(before + START + table(found) + END + rest.partition(END)[2], encoding="utf-8")
    print(table(found) if found else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
