"""Cross entropy of logits whose classes are divided among ranks, which are never gathered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ....errors import UnsupportedError
from ....operators.function import Function
from ....tensors import Tensor
from ...collectives import all_reduce
from ...process_group import ProcessGroup
from ...reduction import ReduceOp
from .. import rules
from ..dtensor import DTensor, over
from ..placements import Replicate, Spec

__all__ = ["loss_parallel"]


class _ClassesApart(Function):
    """The cross entropy of each row: log(sum(exp(x))) - x[target], whose two sums go over all ranks."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, target: Tensor, first: int, group: ProcessGroup) -> Tensor:
        most = x.amax(1) if x.shape[1] else x.new_full((x.shape[0],), float("-inf"))
        all_reduce(most, ReduceOp.MAX, group)
        powers = (x - most.unsqueeze(1)).exp()
        total = powers.sum(1)
        inside = (target >= first) & (target < first + x.shape[1])
        place = (target - first).masked_fill(~inside, 0).unsqueeze(1)
        own = x.gather(1, place).squeeze(1).masked_fill(~inside, 0) if x.shape[1] else x.new_zeros(x.shape[0])
        all_reduce(total, group=group)
        all_reduce(own, group=group)
        ctx.save_for_backward(powers / total.unsqueeze(1), place, inside)
        return total.log() + most - own

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        shares, place, inside = ctx.saved_tensors
        result = shares * grad.unsqueeze(1)
        if shares.shape[1]:
            result.scatter_add_(1, place, -(grad * inside).unsqueeze(1))
        return result, None, None, None


def _cross_entropy(
    input: DTensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> DTensor | None:
    """The cross entropy of logits that are divided along their classes; None for others."""
    dim = 1 if input.ndim > 1 else 0
    axes = [axis for axis, each in enumerate(input.placements) if each.is_shard(dim)]
    if len(axes) != 1 or not all(each.is_replicate() or each.is_shard(dim) for each in input.placements):
        return None
    if weight is not None or label_smoothing or input.ndim != 2 or target.is_floating_point():
        raise UnsupportedError(
            "loss_parallel: cross_entropy takes logits of two dimensions, and no weight or label_smoothing",
            remedy="gather the logits: cross_entropy(pred.full_tensor(), target)",
        )
    mesh = input._spec.mesh
    target = target.full_tensor() if isinstance(target, DTensor) else target
    kept = target != ignore_index
    first = input._spec.local()[1][dim]
    own = _ClassesApart.apply(input.to_local(), target.masked_fill(~kept, -1), first, mesh.get_group(axes[0])) * kept
    result = own if reduction == "none" else own.sum()
    result = result / kept.sum() if reduction == "mean" else result
    return over(result, Spec(mesh, (Replicate(),) * mesh.ndim, tuple(result.shape)))


@contextmanager
def loss_parallel() -> Iterator[None]:
    """A block in which `cross_entropy` takes logits whose classes are divided among ranks, and does not gather them.

    The logits are a DTensor with `Shard(1)`, such as `ColwiseParallel(use_local_output=False)` gives for the last
    layer; the targets are those of all ranks. The loss is a DTensor that each rank has.
    """
    before = rules.special.get("cross_entropy")
    rules.special["cross_entropy"] = _cross_entropy
    try:
        yield
    finally:
        if before is None:
            rules.special.pop("cross_entropy", None)
