"""Averaging gradients over processes in buckets, while the backward pass still computes others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ... import distributed as dist
from ...autograd.mode import no_grad
from ...autograd.tape import Node, Slot
from ...functional.creation.creation import tensor, zeros
from ...tensors import Tensor, tensors_in


def split(tensors: Sequence[Tensor], limits: Sequence[int]) -> list[list[int]]:
    """Divide tensors into buckets of one dtype and device each, in their order; returns their positions.

    The first bucket holds up to `limits[0]` bytes, the next `limits[1]`, and so on; the last limit is that of all
    further buckets. A tensor that is larger than its limit has its own bucket.
    """
    open_buckets: dict[Any, list[int]] = {}
    filled: dict[Any, int] = {}
    closed: list[list[int]] = []
    for position, x in enumerate(tensors):
        key = x.dtype, x.device
        limit = limits[min(len(closed), len(limits) - 1)]
        if key in open_buckets and filled[key] + x.nbytes > limit:
            closed.append(open_buckets.pop(key))
        open_buckets.setdefault(key, []).append(position)
        filled[key] = x.nbytes + (filled[key] if len(open_buckets[key]) > 1 else 0)
    return sorted([*closed, *open_buckets.values()])


class _Bucket:
    """Gradients that are sent together, in one tensor."""

    def __init__(self, positions: list[int], parameters: Sequence[Tensor]) -> None:
        self.positions = positions
        own = [parameters[position] for position in positions]
        self.flat = zeros(sum(x.numel() for x in own), dtype=own[0].dtype, device=own[0].device)
        self.views: dict[int, Tensor] = {}
        start = 0
        with no_grad():
            for position, x in zip(positions, own, strict=True):
                self.views[position] = self.flat.narrow(0, start, x.numel()).reshape(x.shape)
                start += x.numel()
        self.missing = len(positions)
        self.work: dist.Work | None = None


class Reducer:
    """Averages the gradients of parameters over all processes in each backward pass.

    Each parameter puts its gradient into its bucket as soon as it is complete; a full bucket is sent at once, in the
    same order everywhere. Buckets hold the parameters from the last to the first, because gradients are computed in
    that order.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        names: Sequence[str],
        group: dist.ProcessGroup,
        limits: Sequence[int],
        find_unused: bool,
    ) -> None:
        self.parameters, self.names, self.group = list(parameters), list(names), group
        self.find_unused = find_unused
        backwards = self.parameters[::-1]
        last = len(backwards) - 1
        self.buckets = [
            _Bucket([last - position for position in positions], self.parameters)
            for positions in split(backwards, limits)
        ]
        self._bucket_of = {position: bucket for bucket in self.buckets for position in bucket.positions}
        self._place = {id(x): position for position, x in enumerate(self.parameters)}
        self._expecting = False  # whether `prepare` was called for the forward pass that the next gradients belong to
        self._ready: set[int] = set()
        self._unused: list[int] = []
        self._sent = 0
        for position, x in enumerate(self.parameters):
            x.register_post_accumulate_grad_hook(partial(self._arrived, position))

    def prepare(self, outputs: Any) -> None:
        """Expect the gradients of a forward pass with these outputs.

        Raises:
            RuntimeError: the pass before lacked some gradients, so none of it was averaged.
        """
        if self._ready:
            raise RuntimeError(self._unfinished())
        self._reset()
        self._expecting = True
        if self.find_unused:
            reached = _reached(outputs)
            self._unused = [place for place, x in enumerate(self.parameters) if id(x) not in reached]

    def ignore(self) -> None:
        """Do not average the gradients of the next backward pass."""
        if self._ready:
            raise RuntimeError(self._unfinished())
        self._expecting = False

    def _reset(self) -> None:
        self._ready.clear()
        self._unused = []
        self._sent = 0
        for bucket in self.buckets:
            bucket.missing, bucket.work = len(bucket.positions), None

    def _unfinished(self) -> str:
        missing = [self.names[place] for place in range(len(self.names)) if place not in self._ready]
        shown = ", ".join(missing[:10]) + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
        return (
            "Expected to have finished reduction in the prior iteration before starting a new one. This error "
            "indicates that your module has parameters that were not used in producing loss.\n"
            f"  rank {self.group.rank()} got no gradients for: {shown}\n"
            "  Fix: make all forward outputs part of the loss, or pass find_unused_parameters=True to "
            "DistributedDataParallel"
        )

    # ---- in the backward pass -----------------------------------------------------------------------------------

    def _arrived(self, place: int, parameter: Tensor) -> None:
        if not self._expecting:
            return
        if not self._ready:
            for unused in self._unused:
                self._mark(unused)
        self._mark(place)
        if self._sent == len(self.buckets):
            self._finish()

    def _mark(self, place: int) -> None:
        if place in self._ready:
            raise RuntimeError(
                f"Expected to mark a variable ready only once. The gradient of {self.names[place]} came twice in one "
                "backward pass: it is used outside of forward as well, or in several passes at once"
            )
        self._ready.add(place)
        bucket, grad = self._bucket_of[place], self.parameters[place]._grad
        with no_grad():
            if grad is None:
                bucket.views[place].zero_()
            else:
                bucket.views[place].copy_(grad.detach())
        bucket.missing -= 1
        # in order, so that all processes send the same bucket at the same time
        while self._sent < len(self.buckets) and not self.buckets[self._sent].missing:
            full = self.buckets[self._sent]
            full.work = dist.all_reduce(full.flat, dist.ReduceOp.AVG, self.group, async_op=True)
            self._sent += 1

    def _finish(self) -> None:
        """Wait for all buckets and write the averages to the gradients."""
        used = None
        if self.find_unused:
            unused = set(self._unused)
            used = tensor([place not in unused for place in range(len(self.parameters))])
            used = used.to(self.buckets[0].flat.device)
            dist.all_reduce(used, dist.ReduceOp.MAX, self.group)
            used = used.tolist()
        for bucket in self.buckets:
            assert bucket.work is not None
            bucket.work.wait()
            with no_grad():
                for place, view in bucket.views.items():
                    # a parameter that no process used keeps its gradient, which may be None
                    if used is None or used[place]:
                        self._put(self.parameters[place], view)
        self._reset()
        self._expecting = False

    @staticmethod
    def _put(parameter: Tensor, average: Tensor) -> None:
        if parameter._grad is None or parameter._grad.requires_grad:
            parameter._grad = average.clone()
        else:
            parameter._grad.copy_(average)


def _reached(outputs: Any) -> set[int]:
    """The identities of the leaves that the outputs were computed from."""
    found: set[int] = set()
    seen: set[Node] = set()
    stack = [x._edge() for x in tensors_in(outputs) if x.requires_grad]
    while stack:
        edge = stack.pop()
        owner = edge.node if edge.__class__ is Slot else edge
        if owner.__class__ is not Node:
            found.add(id(owner))
        elif owner not in seen:
            seen.add(owner)
            stack.extend(owner.next)
    return found
