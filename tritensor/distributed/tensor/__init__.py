"""Placements: how a tensor lies on the ranks of a mesh. Sharded tensors themselves do not exist yet."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor lies along a dimension of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """True for parts along a dimension, along `dim` if it is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """True for a copy on each rank."""
        return isinstance(self, Replicate)

    def is_partial(self) -> bool:
        """True for terms that are yet to be reduced."""
        return isinstance(self, Partial)


@dataclass(frozen=True)
class Shard(Placement):
    """Each rank has a part along dimension `dim`."""

    dim: int


@dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has a copy."""


@dataclass(frozen=True)
class Partial(Placement):
    """Each rank has a term of a sum, or of another reduction, `reduce_op`."""

    reduce_op: str = "sum"
