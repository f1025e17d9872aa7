"""Placements: how a tensor lies on the ranks along each dimension of a mesh, and the collectives between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...autograd.mode import no_grad
from ...errors import ShapeError, require
from ...functional.creation.creation import empty, zeros
from ...functional.views.joining import cat
from ...tensors import Tensor
from ..collectives import all_gather, all_reduce, broadcast, reduce_scatter
from ..device_mesh import DeviceMesh
from ..reduction import ReduceOp

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor lies along a dimension of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """True for parts along a dimension, along `dim` if it is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """True for a copy on each rank."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """True for terms that are yet to be reduced, by `reduce_op` if it is given."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each rank has a part along dimension `dim`: rows as `torch.chunk` divides them, the last ranks fewer or none."""

    dim: int


@dataclass(frozen=True)
class _StridedShard(Shard):
    """Parts of what was sharded before along a later dimension of the mesh, into `split_factor`: FSDP of parameters
    that tensor parallelism has sharded."""

    split_factor: int = 1


@dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has a copy."""


@dataclass(frozen=True)
class Partial(Placement):
    """Each rank has a term of a sum, or of another reduction, `reduce_op`: "sum", "avg", "max", "min", "product", or
    "norm" and an order, for norms of parts.
    """

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"


_OPERATORS = {"sum": ReduceOp.SUM, "avg": ReduceOp.AVG, "max": ReduceOp.MAX, "min": ReduceOp.MIN}
_OPERATORS["product"] = ReduceOp.PRODUCT


class Spec(NamedTuple):
    """How a tensor of a shape lies on a mesh: a placement for each dimension of it."""

    mesh: DeviceMesh
    placements: tuple[Placement, ...]
    shape: tuple[int, ...]

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh, by PyTorch's name."""
        return self.mesh

    def with_placements(self, placements: Sequence[Placement]) -> Spec:
        """The same tensor, lying otherwise."""
        return Spec(self.mesh, tuple(placements), self.shape)

    @property
    def replicated(self) -> bool:
        """True if each rank has all of it."""
        return all(isinstance(each, Replicate) for each in self.placements)

    def order(self) -> list[int]:
        """The dimensions of the mesh in the order in which they divide the tensor."""
        strided = [isinstance(each, _StridedShard) for each in self.placements]
        return sorted(range(len(self.placements)), key=strided.__getitem__)

    def local(self) -> tuple[list[int], list[int]]:
        """The shape of this rank's part, and where it begins in the whole."""
        shape, offset = list(self.shape), [0] * len(self.shape)
        coordinate = self.mesh.get_coordinate() or [0] * self.mesh.ndim
        for axis in self.order():
            placement = self.placements[axis]
            if isinstance(placement, Shard):
                start, size = chunk(shape[placement.dim], self.mesh.size(axis), coordinate[axis])
                shape[placement.dim] = size
                offset[placement.dim] += start
        return shape, offset


def chunk(size: int, count: int, index: int) -> tuple[int, int]:
    """Where a rank's part of a dimension begins, and its size, as `torch.chunk` divides it."""
    step = -(-size // count)
    start = min(index * step, size)
    return start, min(step, size - start)


def normalized(mesh: DeviceMesh, placements: Sequence[Placement] | None, ndim: int) -> tuple[Placement, ...]:
    """A placement for each dimension of a mesh, dimensions from 0; replicated unless given.

    Raises:
        ShapeError: more or fewer placements, or a dimension that the tensor does not have.
    """
    given = tuple(placements or (Replicate(),) * mesh.ndim)
    text = (
        "`placements` must have the same length as `device_mesh.ndim`! Found placements length: {}, and mesh ndim: {}."
    )
    require(len(given) == mesh.ndim, ShapeError, text, len(given), mesh.ndim)
    found = []
    for each in given:
        if isinstance(each, Shard):
            require(-ndim <= each.dim < ndim, ShapeError, "{} for a tensor of {} dimensions", each, ndim)
            each = each if each.dim >= 0 else Shard(each.dim + ndim)
        found.append(each)
    return tuple(found)


def part(x: Tensor, dim: int, count: int, index: int) -> Tensor:
    """A rank's part of a tensor along a dimension."""
    return x.narrow(dim, *chunk(x.shape[dim], count, index))


def padded(x: Tensor, dim: int, size: int) -> Tensor:
    """A contiguous tensor of `size` along a dimension, with zeros behind x."""
    if x.shape[dim] == size:
        return x.contiguous()
    shape = list(x.shape)
    shape[dim] = size - x.shape[dim]
    return cat([x, zeros(shape, dtype=x.dtype, device=x.device)], dim)


def _gathered(x: Tensor, mesh: DeviceMesh, axis: int, dim: int, size: int) -> Tensor:
    """All parts along a dimension of a mesh as one tensor, of `size` in dimension `dim`."""
    count = mesh.size(axis)
    step = -(-size // count)
    own = padded(x, dim, step)
    shape = (count, *own.shape)
    whole = empty(shape, dtype=x.dtype, device=x.device)
    parts = [whole[rank] for rank in range(count)]
    all_gather(parts, own, mesh.get_group(axis))
    if dim == 0:
        return whole.flatten(0, 1)[:size]
    return cat([each.narrow(dim, 0, chunk(size, count, rank)[1]) for rank, each in enumerate(parts)], dim)


def _scattered(x: Tensor, mesh: DeviceMesh, axis: int, dim: int, op: ReduceOp) -> Tensor:
    """This rank's part of the sum of the tensors of all ranks along a dimension of a mesh."""
    count, index = mesh.size(axis), mesh.get_local_rank(axis)
    step = -(-x.shape[dim] // count)
    parts = [padded(part(x, dim, count, rank), dim, step) for rank in range(count)]
    own = parts[index].clone()
    reduce_scatter(own, parts, op, mesh.get_group(axis))
    return own.narrow(dim, 0, chunk(x.shape[dim], count, index)[1])


def _reduced(x: Tensor, mesh: DeviceMesh, axis: int, how: str) -> Tensor:
    """The terms of all ranks along a dimension of a mesh, combined."""
    group = mesh.get_group(axis)
    if how.startswith("norm"):
        order = float(how[4:])
        powers = x if order in (float("inf"), float("-inf")) else (x != 0).to(x.dtype) if not order else x**order
        ops = {float("inf"): ReduceOp.MAX, float("-inf"): ReduceOp.MIN}
        total = powers.clone()
        all_reduce(total, ops.get(order, ReduceOp.SUM), group)
        return total if not order or order in ops else total ** (1 / order)
    total = x.clone()
    all_reduce(total, _OPERATORS[how], group)
    return total


@no_grad()
def moved(x: Tensor, spec: Spec, target: Sequence[Placement]) -> Tensor:
    """This rank's part of a tensor that lies as `target` says, of its part of it as it lies now.

    All ranks of the mesh call it. What is sharded by several dimensions of the mesh is gathered in the other order than
    it was divided.
    """
    mesh, current = spec.mesh, list(spec.placements)
    if tuple(target) == spec.placements:
        return x
    wanted = spec.with_placements(target)
    # a dimension of a tensor is divided by some of the mesh in an order, of which none can be changed alone
    changed = {old for old, new in zip(current, target, strict=True) if old != new}
    dims = {each.dim for each in (*changed, *(set(target) - set(current))) if isinstance(each, Shard)}
    for axis in reversed(spec.order()):
        old, new = current[axis], target[axis]
        if isinstance(old, Shard) and (old != new or old.dim in dims):
            size = _whole_size(spec, current, axis, old.dim)
            x, current[axis] = _gathered(x, mesh, axis, old.dim, size), Replicate()
    for axis in wanted.order():
        old, new = current[axis], target[axis]
        count, index = mesh.size(axis), mesh.get_local_rank(axis)
        if isinstance(old, Partial) and isinstance(new, Shard) and not old.reduce_op.startswith("norm"):
            x = _scattered(x, mesh, axis, new.dim, _OPERATORS[old.reduce_op])
        elif old != new:
            if isinstance(old, Partial):
                x = _reduced(x, mesh, axis, old.reduce_op)
            if isinstance(new, Shard):
                x = part(x, new.dim, count, index)
            elif isinstance(new, Partial) and new.reduce_op == "sum" and index:
                x = zeros(x.shape, dtype=x.dtype, device=x.device)
        current[axis] = new
    return x


def _whole_size(spec: Spec, current: list[Placement], axis: int, dim: int) -> int:
    """The size of a dimension on this rank once the mesh's dimension `axis`, which divided it last, is gathered."""
    left = [each if place != axis else Replicate() for place, each in enumerate(current)]
    return spec.with_placements(left).local()[0][dim]


def from_first(x: Tensor, mesh: DeviceMesh, axis: int) -> Tensor:
    """The tensor of the first rank along a dimension of a mesh, on all of them."""
    group = mesh.get_group(axis)
    x = x.contiguous()
    broadcast(x, group=group, group_src=0)
    return x
