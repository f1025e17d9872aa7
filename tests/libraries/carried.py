"""What one run of a program writes and another reads: weights, inputs and results of its cases.

PyTorch's run writes; ours loads the weights and compares the results. The file is NumPy's, so that it does not depend
on what is tested.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .cases import Different


class Carried:
    """The values of one case, under names.

    Args:
        path: the file. writes: this is the run that writes it.
    """

    def __init__(self, path: Path, writes: bool) -> None:
        self.path, self.writes = path, writes
        self.values: dict[str, Any] = {}
        if not writes:
            with np.load(path, allow_pickle=False) as found:
                self.values = dict(found)
        self.compared = 0

    def module(self, name: str, module: Any) -> Any:
        """The module with the weights and buffers that it had in the run that writes."""
        state = module.state_dict()
        if self.writes:
            self.values |= {f"{name}/{key}": plain(each) for key, each in state.items() if torch.is_tensor(each)}
            return module
        tensors = {key: each for key, each in state.items() if torch.is_tensor(each)}
        known = {key[len(name) + 1 :] for key in self.values if key.startswith(f"{name}/")}
        if known != set(tensors):
            raise Different(f"{name} has other weights: {sorted(known ^ set(tensors))[:6]}")
        found = {key: self._as(f"{name}/{key}", each) for key, each in tensors.items()}
        module.load_state_dict({**state, **found})
        return module

    def compiled(self, function: Any, **options: Any) -> Any:
        """A function or module, compiled here; with PyTorch as it is, whose compiler takes minutes."""
        return function if self.writes else torch.compile(function, **options)

    def tensor(self, name: str, value: Any) -> Any:
        """A tensor as it was in the run that writes."""
        if self.writes:
            self.values[name] = plain(value)
            return value
        return self._as(name, value)

    def _as(self, name: str, like: Any) -> Any:
        array = self.values[name]
        if tuple(array.shape) != tuple(like.shape):
            raise Different(f"{name} has the shape {tuple(like.shape)}, PyTorch's {tuple(array.shape)}")
        return torch.from_numpy(np.ascontiguousarray(array)).to(like.dtype)

    def check(self, name: str, value: Any, rtol: float = 1e-3, atol: float = 1e-4) -> None:
        """Compare a result: a tensor, a number, a string, or tuples, lists and dicts of them."""
        for place, each in leaves(name, value):
            if self.writes:
                self.values[place] = plain(each)
                continue
            found, wanted = plain(each), self.values[place]
            self.compared += 1
            if found.shape != wanted.shape:
                raise Different(f"{place} has the shape {found.shape}, PyTorch's {wanted.shape}")
            if wanted.dtype.kind in "US":
                if found != wanted:
                    raise Different(f"{place} is {found}, PyTorch's {wanted}")
            elif not np.allclose(found, wanted, rtol, atol, equal_nan=True):
                error = np.nanmax(np.abs(found.astype(np.complex128) - wanted.astype(np.complex128)))
                raise Different(f"{place} differs by {error:.3g}")

    def end(self) -> None:
        """Write the file."""
        if self.writes:
            np.savez(self.path, **self.values)


def plain(value: Any) -> np.ndarray:
    """A tensor, number or string as an array; what is shorter than float32 as that."""
    if torch.is_tensor(value):
        value = value.detach().cpu()
        value = value.float() if value.is_floating_point() and value.dtype != torch.float64 else value
        return np.array(value.resolve_conj().resolve_neg().numpy())
    return np.asarray(str(value).removeprefix("torch.") if isinstance(value, str) else value)


def leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The tensors, numbers and strings of a structure, with their places."""
    if isinstance(value, dict):
        for key in value:
            yield from leaves(f"{name}.{key}", value[key])
    elif isinstance(value, (tuple, list)):
        yield f"{name}.length", len(value)
        for position, each in enumerate(value):
            yield from leaves(f"{name}.{position}", each)
    else:
        yield name, value
