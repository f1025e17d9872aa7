"""Launches as they were made, to make them again without the library's own functions: kernels and their arguments."""

from __future__ import annotations

import importlib
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import tritensor


@dataclass
class Launch:
    """One launch: of which kernel, over which grid, with which arguments; what was in memory before and after."""

    module: str
    kernel: str
    grid: tuple[int, ...]
    args: list[Any]
    kwargs: dict[str, Any]
    before: dict[int, np.ndarray] = field(default_factory=dict)
    after: dict[int, np.ndarray] = field(default_factory=dict)
    live: dict[int, Any] = field(default_factory=dict)

    def end(self) -> Launch:
        """Note what the launch has made."""
        self.after = {key: _bytes(each) for key, each in self.live.items()}
        self.live = {}
        return self


@dataclass
class View:
    """A tensor among the arguments: which memory, and where in it."""

    memory: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


def begin(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Launch:
    """Note a launch that is about to be made."""
    given = {name: each for name, each in kwargs.items() if name not in ("grid", "warmup")}
    grid = kwargs["grid"]
    grid = grid({**dict(zip(function.arg_names, args)), **given}) if callable(grid) else grid
    sizes = (grid,) if isinstance(grid, int) else tuple(map(int, grid))
    made = Launch(function.fn.__module__, function.fn.__name__, sizes, [], {})
    made.args = [_noted(each, made) for each in args]
    made.kwargs = {name: _noted(each, made) for name, each in given.items()}
    made.before = {key: _bytes(each) for key, each in made.live.items()}
    return made


def _noted(value: Any, made: Launch) -> Any:
    if isinstance(value, tuple):
        return tuple(_noted(each, made) for each in value)
    if not isinstance(value, tritensor.Tensor):
        return value
    value = value.detach()
    key = value.untyped_storage().data_ptr()
    made.live.setdefault(key, value)
    return View(
        key, str(value.dtype).rpartition(".")[2], tuple(value.shape), tuple(value.stride()), value.storage_offset()
    )


def _bytes(value: Any) -> np.ndarray:
    """All memory behind a tensor, as elements of its type."""
    count = value.untyped_storage().nbytes() // value.element_size()
    flat = value.as_strided((count,), (1,), 0).cpu()
    return np.array(flat.view(tritensor.uint8).numpy() if count else np.empty(0, np.uint8))


def write(path: Path, launches: list[Launch]) -> None:
    """Store launches, those that can be: of what is found in a module, with arguments that a file can hold."""
    found = []
    for each in launches:
        try:
            found.append(pickle.dumps(each))
        except (pickle.PicklingError, TypeError, AttributeError):
            continue
    path.write_bytes(pickle.dumps(found))


def read(path: Path) -> list[Launch]:
    """The launches of a file; none if there is no such file."""
    return [pickle.loads(each) for each in pickle.loads(path.read_bytes())] if path.exists() else []


def repeat(launch: Launch) -> None:
    """Make a launch again, of the kernel as its module has it, and compare what it makes.

    Raises:
        AssertionError: it makes something else.
    """
    function = getattr(importlib.import_module(launch.module), launch.kernel)
    while (
        not hasattr(function, "arg_names") or hasattr(function, "configs") or type(function).__name__ != "JITFunction"
    ):
        function = function.fn
    memory = {key: tritensor.from_numpy(np.array(each)).cuda() for key, each in launch.before.items()}

    def tensor(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(tensor, value))
        if not isinstance(value, View):
            return value
        flat = memory[value.memory].view(getattr(tritensor, value.dtype))
        return flat.as_strided(value.shape, value.strides, value.offset)

    given = {name: tensor(each) for name, each in launch.kwargs.items()}
    function[launch.grid](*map(tensor, launch.args), **given)
    for key, each in launch.after.items():
        assert np.array_equal(memory[key].cpu().numpy(), each), f"{launch.kernel} makes something else"
