"""Launches as they were made, to make them again without the library's own functions: kernels and their arguments."""

from __future__ import annotations

import importlib
import pickle
from dataclasses import dataclass, field, fields
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
    dtypes: dict[int, str] = field(default_factory=dict)

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


@dataclass
class Described:
    """A tensor descriptor among the arguments, as it is at the launch: autotuners set the shape of its blocks."""

    tensor: View
    rest: dict[str, Any]


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
    if _describes(value):
        rest = {each.name: getattr(value, each.name) for each in fields(value) if each.name != "base"}
        return Described(_noted(value.base, made), {**rest, "block_shape": list(value.block_shape)})
    if not isinstance(value, tritensor.Tensor):
        return value
    value = value.detach()
    key = value.untyped_storage().data_ptr()
    made.live.setdefault(key, value)
    dtype = str(value.dtype).rpartition(".")[2]
    made.dtypes.setdefault(key, dtype)
    return View(key, dtype, tuple(value.shape), tuple(value.stride()), value.storage_offset())


def _describes(value: Any) -> bool:
    return type(value).__name__ == "TensorDescriptor"


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


def repeat(launch: Launch) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Make a launch again, of the kernel as its module has it: what is in memory then, and what was there.

    The two may differ in the last bits: beside PyTorch a library may choose other arithmetic for the same kernel.
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
        if isinstance(value, Described):
            kind = importlib.import_module("triton.tools.tensor_descriptor").TensorDescriptor
            return kind(tensor(value.tensor), **value.rest)
        if not isinstance(value, View):
            return value
        flat = memory[value.memory].view(getattr(tritensor, value.dtype))
        return flat.as_strided(value.shape, value.strides, value.offset)

    given = {name: tensor(each) for name, each in launch.kwargs.items()}
    function[launch.grid](*map(tensor, launch.args), **given)
    found = {key: memory[key].cpu().numpy() for key in launch.after}
    return _numbers(launch, found), _numbers(launch, launch.after)


def _numbers(launch: Launch, memory: dict[int, np.ndarray]) -> dict[str, np.ndarray]:
    found = {}
    for place, (key, each) in enumerate(memory.items()):
        values = tritensor.from_numpy(each).view(getattr(tritensor, launch.dtypes[key]))
        values = values.double() if values.is_floating_point() else values
        found[f"memory {place} of {launch.kernel}"] = values.numpy()
    return found
