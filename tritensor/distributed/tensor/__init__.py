"""DTensor: tensors that are divided among the ranks of a mesh, `Shard`, or copied to them, `Replicate`."""

from __future__ import annotations

from . import rules  # noqa: F401 - answers for DTensors
from .creation import empty, full, ones, rand, randn, zeros
from .dtensor import DTensor, distribute_module, distribute_tensor
from .placements import Partial, Placement, Replicate, Shard

__all__ = ["DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor", "empty"]
__all__ += ["full", "ones", "rand", "randn", "zeros"]
