"""Records the losses that a process computes gradients of, and in the end the parameters of its optimizers.

A process that trains writes `RANK.NUMBER.npz` into the folder `WATCHED_FOLDER`; NUMBER counts the processes of a rank,
one after the other, for programs that start several jobs.
"""

from __future__ import annotations

import itertools
import os
import random
import sys
from functools import wraps
from multiprocessing.util import Finalize
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np


class Recorded:
    """What is recorded in this process."""

    def __init__(self, torch: ModuleType) -> None:
        self.torch: Any = torch
        self.losses: list[float] = []
        self.optimizers: list[Any] = []
        self.rank = 0
        self.process = 0
        self.inside = False

    def arm(self) -> None:
        """Write at the end of the process; one that a fork made writes its own."""
        self.rank = self.current_rank()
        if self.process != os.getpid():
            self.process = os.getpid()
            self.losses.clear()
            Finalize(None, self.write, exitpriority=100)

    def current_rank(self) -> int:
        """The rank in the job that the process has joined, or had last."""
        dist = self.torch.distributed
        return dist.get_rank() if dist.is_available() and dist.is_initialized() else self.rank

    def write(self) -> None:
        """Write the file."""
        if self.process != os.getpid():
            return
        values = {"losses": np.array(self.losses)}
        found = [each for made in self.optimizers for group in made.param_groups for each in group["params"]]
        found = [] if os.environ.get("WATCHED_PARAMETERS") == "no" else found
        for position, each in enumerate({id(each): each for each in found}.values()):
            each = getattr(each, "_local_tensor", each)  # of a DTensor what this rank has
            values[f"parameter {position}"] = each.detach().float().cpu().numpy()
        folder = Path(os.environ["WATCHED_FOLDER"])
        number = sum(1 for _ in folder.glob(f"{self.rank}.*.npz"))
        np.savez(folder / f"{self.rank}.{number}.npz", allow_pickle=False, **values)


def same_numbers(recorded: Recorded) -> None:
    """What programs draw of Python and NumPy without a seed is the same in each run."""
    random.seed(0)
    made, count = np.random.default_rng, itertools.count()

    @wraps(made)
    def seeded(seed: Any = None) -> np.random.Generator:
        library = str(sys._getframe(1).f_globals.get("__name__")).partition(".")[0]
        if seed is None and library not in ("tritensor", "torch"):
            seed = [recorded.current_rank(), next(count)]
        return made(seed)

    np.random.default_rng = seeded


def begin(torch: Any) -> None:
    """Record from here on."""
    recorded = Recorded(torch)
    same_numbers(recorded)
    backward, begun = torch.Tensor.backward, torch.optim.Optimizer.__init__

    @wraps(backward)
    def noted_backward(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorded.arm()
        inner, recorded.inside = recorded.inside, True  # PyTorch's may call itself, for a mode
        if self.numel() == 1 and not inner:
            recorded.losses.append(float(self.detach()))
        try:
            return backward(self, *args, **kwargs)
        finally:
            recorded.inside = inner

    @wraps(begun)
    def noted_begin(self: Any, *args: Any, **kwargs: Any) -> None:
        recorded.arm()
        begun(self, *args, **kwargs)
        recorded.optimizers.append(self)

    torch.Tensor.backward, torch.optim.Optimizer.__init__ = noted_backward, noted_begin
