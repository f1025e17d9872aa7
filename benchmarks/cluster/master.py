"""Training in bfloat16 as nanotron does: buckets of float32 gradients, a float32 copy, and ZeRO-1."""

from __future__ import annotations

from typing import Any

import tritensor as torch
import tritensor.distributed as dist
from tritensor import nn

BUCKET = 25 << 20  # bytes of float32 gradients that are sent together


def local(x: Any) -> torch.Tensor:
    """What this rank has of a tensor."""
    return x.to_local() if hasattr(x, "to_local") else x


class Bucket:
    """Parameters whose gradients are sent together.

    Attributes:
        flat: their float32 gradients, one after the other.
        own: the part of `flat` that this rank steps.
        master: a float32 copy of the parameters of that part.
    """

    def __init__(self, params: list[Any], group: Any, zero: bool) -> None:
        ranks = dist.get_world_size(group) if group is not None and zero else 1
        rank = dist.get_rank(group) if ranks > 1 else 0
        self.params, self.group, self.ranks = params, group, ranks
        self.sizes = [local(p).numel() for p in params]
        share = -(-sum(self.sizes) // ranks)
        first = local(params[0])
        self.flat = torch.zeros(share * ranks, dtype=torch.float32, device=first.device)
        self.own = self.flat[rank * share : (rank + 1) * share]
        start = 0
        self.views = []
        for param, size in zip(params, self.sizes, strict=True):
            self.views.append(self.flat[start : start + size].view(local(param).shape))
            start += size
        with torch.no_grad():
            for param, view in zip(params, self.views, strict=True):
                view.copy_(local(param))
        self.master = nn.Parameter(self.own.clone())
        self.flat.zero_()
        self.absent = len(params)
        self.work: Any = None

    def reduce(self) -> None:
        """Begin to average the gradients among ranks that have other data."""
        if self.group is None:
            return
        if self.ranks > 1:
            self.work = dist.reduce_scatter_tensor(
                self.own, self.flat, op=dist.ReduceOp.AVG, group=self.group, async_op=True
            )
        else:
            self.work = dist.all_reduce(self.flat, op=dist.ReduceOp.AVG, group=self.group, async_op=True)

    def wait(self) -> None:
        """Wait until they are averaged."""
        if self.work is not None:
            self.work.wait()
        self.absent, self.work = len(self.params), None

    def write(self) -> None:
        """Give parameters their new values, rounded to bfloat16, and gradients zeros."""
        new = self.master.detach().to(local(self.params[0]).dtype)
        if self.ranks > 1:
            whole = new.new_empty(self.flat.shape)
            dist.all_gather_into_tensor(whole, new, group=self.group)
            new = whole
        pieces = new[: sum(self.sizes)].split(self.sizes)
        for param, piece in zip(self.params, pieces, strict=True):
            local(param).copy_(piece.view(local(param).shape))
        self.flat.zero_()


class MasterAdamW:
    """AdamW of float32 copies of bfloat16 parameters.

    Args:
        model: its parameters may be divided by tensor parallelism.
        group: the ranks that have the same parameters and other data, if there are several.
        parts: those that have other parts of the same layers, if there are several.
        zero: divide copies and states among the ranks of `group` (ZeRO, stage 1).
        options: of AdamW.

    Attributes:
        last: whether this micro step is the last, after which gradients are averaged.
    """

    def __init__(self, model: nn.Module, group: Any, parts: Any, zero: bool, **options: Any) -> None:
        self.group, self.parts, self.last = group if zero else None, parts, True
        self.buckets: list[tuple[Bucket, bool]] = []
        self.of: dict[int, tuple[Bucket, torch.Tensor]] = {}
        params: list[Any] = list(model.parameters())[::-1]
        for divided in (True, False):
            held: list[Any] = []
            for param in [p for p in params if self._is_divided(p) == divided] + [None]:
                if held and (param is None or sum(local(p).numel() for p in held) * 4 > BUCKET):
                    self.buckets.append((Bucket(held, group, zero), divided))
                    held = []
                if param is not None:
                    held.append(param)
        for bucket, _ in self.buckets:
            for param, view in zip(bucket.params, bucket.views, strict=True):
                self.of[id(param)] = bucket, view
                param.register_post_accumulate_grad_hook(self._add)
        self.optimizer = torch.optim.AdamW([bucket.master for bucket, _ in self.buckets], **options)

    @staticmethod
    def _is_divided(param: Any) -> bool:
        return any(each.is_shard() for each in getattr(param, "placements", ()))

    def _add(self, param: Any) -> None:
        """Add a gradient to its float32 sum; in the last micro step, send a bucket that is complete."""
        bucket, view = self.of[id(param)]
        with torch.no_grad():
            view.add_(local(param.grad))
        param.grad = None
        if self.last:
            bucket.absent -= 1
            if not bucket.absent:
                bucket.reduce()

    def clip(self, most: float) -> torch.Tensor:
        """Scale gradients so that the norm of all of them is at most `most`; returns the norm."""
        sums = []
        for divided in (True, False):
            norms = [bucket.own.norm() for bucket, each in self.buckets if each == divided]
            sums.append(torch.stack(norms).square().sum() if norms else None)
        if sums[0] is not None and self.parts is not None:
            dist.all_reduce(sums[0], group=self.parts)
        total = torch.stack([each for each in sums if each is not None]).sum()
        if self.group is not None:
            dist.all_reduce(total, group=self.group)
        norm = total.sqrt()
        scale = (most / (norm + 1e-6)).clamp(max=1.0)
        for bucket, _ in self.buckets:
            bucket.own.mul_(scale)
        return norm

    def step(self) -> None:
        """One step of the copies, which parameters follow."""
        for bucket, _ in self.buckets:
            bucket.master.grad = bucket.own
        self.optimizer.step()
        with torch.no_grad():
            for bucket, _ in self.buckets:
                bucket.write()

    def wait(self) -> None:
        """Wait until gradients are averaged."""
        for bucket, _ in self.buckets:
            bucket.wait()
