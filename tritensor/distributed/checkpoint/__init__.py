"""Checkpoints that several processes write and read together, and the state dicts of models and optimizers for them.

    import tritensor.distributed.checkpoint as dcp

    dcp.save({"model": model, "optim": optimizer}, checkpoint_id="step-1000")
    dcp.load({"model": model, "optim": optimizer}, checkpoint_id="step-1000")

A checkpoint is a folder in PyTorch's format, which any number of processes reads, and PyTorch too.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ...tensors import Tensor

_FILES = ("CheckpointException", "FileSystemReader", "FileSystemWriter", "async_save", "load", "save")

__all__ = [*_FILES, "DefaultLoadPlanner", "DefaultSavePlanner", "Stateful"]


@runtime_checkable
class Stateful(Protocol):
    """What `save` and `load` save by its state dict: a module, an optimizer, an object of the program's."""

    def state_dict(self) -> dict[str, Any]:
        """The values to save."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any:
        """Take what was saved."""


@dataclass
class DefaultSavePlanner:
    """How to save: nested values one by one, or each value of the first level as a whole."""

    flatten_state_dict: bool = True


@dataclass
class DefaultLoadPlanner:
    """How to load: values that were saved one by one or as a whole, and without keys that the checkpoint lacks."""

    flatten_state_dict: bool = True
    flatten_sharded_tensors: bool = True
    allow_partial_load: bool = False


def __getattr__(name: str) -> Any:
    if name in _FILES:  # whose room is above this one, and which are imported when they are used
        return getattr(sys.modules[Tensor.__module__].serialization.sharded, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
