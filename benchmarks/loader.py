"""What worker processes bring: loops over decoded pictures, beside the same loops in torch.

    python -m benchmarks.loader [--pictures 10000] [--repeats 5]

A picture is a PNG file of 28x28 in memory, decoded by Pillow and scaled, as a dataset does. The loops take turns in one
process and the best of each counts, so that the figures are ratios of what one machine did at one time.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tritensor

BATCH, WORKERS = 64, 4


def pictures(count: int) -> list[bytes]:
    """PNG files of strokes on black."""
    from PIL import Image

    rng = np.random.default_rng(0)
    files = []
    for _ in range(count):
        shades = rng.integers(0, 256, (28, 28)) * (rng.random((28, 28)) > 0.7)
        file = io.BytesIO()
        Image.fromarray(shades.astype(np.uint8)).save(file, "PNG")
        files.append(file.getvalue())
    return files


class Pictures:
    """A dataset of decoded pictures and their labels, for either library."""

    def __init__(self, library: Any, files: Sequence[bytes]) -> None:
        self.library, self.files = library, files

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        from PIL import Image

        shades = np.array(Image.open(io.BytesIO(self.files[index])), dtype=np.float32) / 255
        return self.library.from_numpy((shades - 0.1307) / 0.3081)[None], index % 10


def loop(loader_class: Any, dataset: Pictures, workers: int) -> Callable[[], None]:
    """One pass over all pictures."""

    def run() -> None:
        seen = sum(len(labels) for _, labels in loader_class(dataset, BATCH, shuffle=True, num_workers=workers))
        assert seen == len(dataset)

    return run


def bare(dataset: Pictures) -> Callable[[], None]:
    """The same batches made by forked processes that hand nothing over: what the machine allows."""
    from tritensor.utils.data import default_collate

    def run() -> None:
        children = []
        for worker in range(WORKERS):
            children.append(os.fork())
            if children[-1] == 0:
                for start in range(worker * BATCH, len(dataset), WORKERS * BATCH):
                    default_collate([dataset[index] for index in range(start, min(start + BATCH, len(dataset)))])
                os._exit(0)
        for child in children:
            os.waitpid(child, 0)

    return run


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loader", description=__doc__)
    parser.add_argument("--pictures", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(arguments)
    files = pictures(options.pictures)
    own = tritensor.utils.data.DataLoader
    loops = {(name, count): loop(own, Pictures(tritensor, files), count) for name, count in _sides("tritensor")}
    if hasattr(os, "fork"):
        loops["bare processes", WORKERS] = bare(Pictures(tritensor, files))
    try:
        import torch
    except ImportError:
        torch = None
    if torch is not None:
        theirs = torch.utils.data.DataLoader
        loops.update({(name, count): loop(theirs, Pictures(torch, files), count) for name, count in _sides("torch")})
    best = dict.fromkeys(loops, float("inf"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of more workers than processors
        for _ in range(options.repeats):
            for side, run in loops.items():
                start = time.perf_counter()
                run()
                best[side] = min(best[side], time.perf_counter() - start)
    for name in dict.fromkeys(name for name, _ in loops):
        none = best[name if (name, 0) in best else "tritensor", 0]
        print(f"{name}: {WORKERS} workers are {none / best[name, WORKERS]:.2f} times as fast as none")
    if torch is not None:
        for count in (0, WORKERS):
            ratio = best["tritensor", count] / best["torch", count]
            print(f"{count} workers: tritensor takes {ratio:.2f} of torch's time")
    return 0


def _sides(name: str) -> list[tuple[str, int]]:
    return [(name, 0), (name, WORKERS)]


if __name__ == "__main__":
    sys.exit(main())
