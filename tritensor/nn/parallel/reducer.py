"""Averaging gradients over processes in buckets, while the backward pass still computes others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ... import distributed as dist
from ...autograd.backward import queue_callback
from ...autograd.mode import no_grad
from ...autograd.tape import Node, Slot
from ...distributed.futures import Future
from ...distributed.grad_bucket import GradBucket, views_of
from ...errors import explain
from ...functional.creation.creation import tensor, zeros
from ...functional.views.joining import cat
from ...operators.inplace import write
from ...tensors import Tensor, tensors_in

# How many buckets are on their way at once, with memory of their own.
_FLYING = 2
# On the CPU, gradients of so many bytes are averaged where they are, and not copied to a bucket: 8 of 4 MB take 4.3 ms
# alone, 4.7 joined, and 3 ms for the copies. Elements of a message: MPI needs memory of its size, and adds up 64 MB in
# 10 ms by 8 MB, in 23 at once.
_LARGE, _PIECE = 1 << 20, 1 << 21


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
    """Parameters whose gradients are sent together."""

    def __init__(self, index: int, positions: list[int], parameters: list[Tensor]) -> None:
        self.index, self.positions, self.parameters = index, positions, parameters
        self.missing = len(positions)
        # for gradients that are views of the bucket: its memory, and the view of each parameter by position
        self.flat: Any = None
        self.views: dict[int, Tensor] = {}


class Reducer:
    """Averages the gradients of parameters over all processes in each backward pass.

    A bucket is sent as soon as all its gradients are there, in the same order everywhere. Buckets hold the parameters
    from the last to the first, because gradients are computed in that order. Gradients are joined in memory that is
    there until their averages are written back, for at most two buckets at a time; a large one, or one that is alone,
    is averaged where it is. With `as_view` a bucket keeps its memory, and gradients are views of it.

    Attributes:
        hook: a function and its state, which average a bucket in place of `all_reduce`.
        active: gives how many processes still have inputs, to divide by that; None to divide by the number of all.
        static: whether all passes are like the first, which shows which gradients come, and how often.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        names: Sequence[str],
        group: dist.ProcessGroup,
        limits: Sequence[int],
        find_unused: bool = False,
        as_view: bool = False,
        skip_unused: bool = False,
    ) -> None:
        self.parameters, self.names, self.group = list(parameters), list(names), group
        self.find_unused, self.as_view, self.skip_unused = find_unused, as_view, skip_unused
        last = len(parameters) - 1
        self.buckets: list[_Bucket] = []
        for positions in split(self.parameters[::-1], limits):
            places = [last - position for position in positions]
            self.buckets.append(_Bucket(len(self.buckets), places, [self.parameters[place] for place in places]))
        self.places = {id(x): place for place, x in enumerate(self.parameters)}
        self._bucket_of = {place: bucket for bucket in self.buckets for place in bucket.positions}
        self.hook: tuple[Callable[..., Any], Any] | None = None
        self.active: Callable[[], float] | None = None
        self.static = self._absent = False
        self._times: Counter[int] | None = None  # how often each gradient came in the first pass of a static graph
        self._used: list[bool] | None = None  # which of them any process had, then
        self._used_last = [False] * len(parameters)
        self.same_graph = True  # whether the unused parameters have been the same in all passes
        self._unused_before: set[int] | None = None
        self._expecting = False  # whether a forward pass has announced the next gradients
        self._reset()
        for place, x in enumerate(self.parameters):
            x.register_post_accumulate_grad_hook(partial(self._arrived, place))

    def prepare_for_backward(self, outputs: object) -> None:
        """Expect the gradients of a forward pass with these outputs.

        Raises:
            RuntimeError: the pass before lacked some gradients, so none of it was averaged.
        """
        self.check_finished()
        self._reset()
        self._expecting = True
        if self._times is not None:
            self._unused.update(place for place in range(len(self.parameters)) if not self._times[place])
        elif self.find_unused and (roots := [x for x in tensors_in(outputs) if x.requires_grad]):
            reached = _reached(roots)
            self._unused.update(place for place, x in enumerate(self.parameters) if id(x) not in reached)
            self.same_graph &= self._unused_before in (None, self._unused)
            self._unused_before = set(self._unused)

    def ignore(self) -> None:
        """Do not average the gradients of the next backward pass."""
        self.check_finished()
        self._expecting = False

    def check_finished(self) -> None:
        """Raise RuntimeError if a backward pass has ended without some of the gradients."""
        if self._ready:
            words = "Expected to have finished reduction in the prior iteration before starting a new one. This error "
            words += "indicates that your module has parameters that were not used in producing loss."
            fact = f"rank {dist.get_rank(self.group)} got no gradients for: {self._missing()}"
            remedy = "make all forward outputs part of the loss, or pass find_unused_parameters=True to "
            raise RuntimeError(explain(words, fact, remedy=f"{remedy}DistributedDataParallel"))

    def _missing(self) -> str:
        missing = [name for place, name in enumerate(self.names) if place not in self._ready]
        return ", ".join(missing[:10]) + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")

    def _reset(self) -> None:
        self._ready: set[int] = set()
        self._unused: set[int] = set()
        self._came: Counter[int] = Counter()
        self._queued = False  # whether `_pass_ended` is called at the end of the running pass
        self._sent = 0
        self._flying: list[tuple[list[tuple[list[int], Tensor]], Callable[[], Any]]] = []
        self._later: list[tuple[int, Tensor]] = []  # averages of gradients that this process does not have
        for bucket in self.buckets:
            bucket.missing = len(bucket.positions)

    # ---- in the backward pass -----------------------------------------------------------------------------------

    def _arrived(self, place: int, parameter: Tensor) -> None:
        if not self._expecting:
            return
        if self._flying:
            self.group.progress()
        if not self._queued:
            self._queued = True
            queue_callback(self._pass_ended)
            for unused in self._unused - self._ready:
                self._mark(unused)
        self._came[place] += 1
        if self._times is not None and self._came[place] > self._times[place]:
            self._raise_changed(f"more gradients than before for: {self.names[place]}")
        if not self.static or (self._times is not None and self._came[place] >= self._times[place]):
            self._mark(place)

    def _pass_ended(self) -> None:
        """The backward pass has ended: mark what did not come, where that may be, and wait for the averages."""
        self._queued = False
        if not self._expecting:
            return
        if self.static and self._times is not None and len(self._ready) < len(self.parameters):
            self._raise_changed(f"no gradients for: {self._missing()}")
        if self.find_unused or self.static:
            for place in set(range(len(self.parameters))) - self._ready:
                if not self._came[place]:
                    self._unused.add(place)
                self._mark(place)
        if self._sent == len(self.buckets):
            self._finish()

    def _raise_changed(self, fact: str) -> None:
        words = (
            "Your training graph has changed in this iteration, e.g., one parameter is used in first iteration, but "
        )
        words += "then got unused in the second iteration. this is not compatible with static_graph set to True."
        raise RuntimeError(explain(words, f"rank {dist.get_rank(self.group)} got {fact}"))

    def _mark(self, place: int) -> None:
        """Note that a gradient is complete, or does not come, and send the buckets that are full."""
        if place in self._ready:
            raise RuntimeError(
                f"Expected to mark a variable ready only once. The gradient of {self.names[place]} came twice in one "
                "backward pass: it is used outside of forward as well, or in several passes at once"
            )
        self._ready.add(place)
        grad = self.parameters[place]._grad
        if grad is not None and grad.is_sparse:  # sent, and left, as a dense one
            self.parameters[place]._grad = grad.to_dense()
        bucket = self._bucket_of[place]
        if self.as_view and not self._absent:
            self._move(bucket, place)
        bucket.missing -= 1
        # in order, so that all processes send the same bucket at the same time
        while self._sent < len(self.buckets) and not self.buckets[self._sent].missing:
            self._send(self.buckets[self._sent])
            self._sent += 1

    def _move(self, bucket: _Bucket, place: int) -> None:
        """Make a gradient a view of the bucket."""
        if bucket.flat is None:
            bucket.flat = self._zeros(bucket.positions)
            bucket.views = dict(zip(bucket.positions, views_of(bucket.flat, bucket.parameters), strict=True))
        view, parameter = bucket.views[place], self.parameters[place]
        with no_grad():
            if parameter._grad is None:
                view.zero_()
            elif parameter._grad is not view:
                write(view, parameter._grad.detach().to(view.dtype))
        if place not in self._unused:
            parameter._grad = view

    def _zeros(self, places: Sequence[int]) -> Tensor:
        found = [self.parameters[place] for place in places]
        return zeros(sum(x.numel() for x in found), dtype=found[0].dtype, device=found[0].device)

    def _gradient(self, place: int) -> Tensor:
        """A gradient in one dimension: its own memory, unless that must not be written to."""
        grad = None if self._absent else self.parameters[place]._grad
        if grad is None:
            return self._zeros([place])
        flat = grad.detach().reshape(-1)
        return flat.clone() if grad.requires_grad or place in self._unused else flat

    def _parts(self, bucket: _Bucket) -> list[tuple[list[int], Tensor]]:
        """What is sent of a bucket, and whose gradients that is: large ones as they are, a copy of the others."""
        if self.as_view and not self._absent:
            return [(bucket.positions, bucket.flat)]
        whole = self.as_view or self.hook is not None
        alone = [place for place in bucket.positions if not whole and self._is_sent_alone(place)]
        others = [place for place in bucket.positions if place not in alone]
        parts = [([place], self._gradient(place)) for place in alone]
        return [*parts, (others, cat([self._gradient(place) for place in others]))] if others else parts

    def _is_sent_alone(self, place: int) -> bool:
        x = self.parameters[place]
        return len(self._bucket_of[place].positions) == 1 or (x.device.type == "cpu" and x.nbytes >= _LARGE)

    def _send(self, bucket: _Bucket) -> None:
        if self.skip_unused and (self._unused_before or set()).issuperset(bucket.positions):
            return
        while len(self._flying) >= _FLYING:
            self._land()
        with no_grad():
            parts = self._parts(bucket)
            if self.hook is None:
                wait = self._averaging(parts)
            else:
                function, state = self.hook
                last = bucket is self.buckets[-1]
                future = function(state, GradBucket(bucket.index, last, parts[0][1], bucket.parameters))
                if not isinstance(future, Future):
                    raise TypeError(f"callback must return a torch.futures.Future object, but got {type(future)}")
                wait = future.wait
        self._flying.append((parts, wait))

    def _averaging(self, parts: list[tuple[list[int], Tensor]]) -> Callable[[], Any]:
        """Start to average over all processes, or to add up the parts of those that still have inputs."""
        works: list[Any] = []
        op = dist.ReduceOp.AVG if self.active is None else dist.ReduceOp.SUM
        for _, flat in parts:
            if self.active is not None:
                flat /= self.active()
            pieces = flat.split(_PIECE) if flat.device.type == "cpu" else [flat]
            works += [dist.all_reduce(piece, op, self.group, async_op=True) for piece in pieces]
        return lambda: [work.wait() for work in works]

    def _land(self) -> None:
        """Wait for the bucket that was sent first, and write its averages to the gradients."""
        parts, wait = self._flying.pop(0)
        average = wait()
        with no_grad():
            if self.hook is not None and average is not parts[0][1]:
                parts[0][1].copy_(average.reshape(-1))
            for places, flat in parts:
                views = views_of(flat, [self.parameters[place] for place in places])
                for place, view in zip(places, views, strict=True):
                    if place in self._unused:
                        self._later.append((place, view))
                    else:
                        self._put(place, view, len(places) > 1)

    def _put(self, place: int, average: Tensor, copied: bool = True) -> None:
        parameter = self.parameters[place]
        grad = parameter._grad
        if self.as_view:
            parameter._grad = self._bucket_of[place].views[place]
        elif grad is None or grad.requires_grad:
            parameter._grad = average.clone()
        elif copied or grad.data_ptr() != average.data_ptr():
            write(grad, average.to(grad.dtype))  # 4 us where copy_() takes 12

    def _finish(self) -> None:
        """Wait for all buckets and write the averages to the gradients."""
        while self._flying:
            self._land()
        used = self._used
        if used is None and (self.static or (self.find_unused and not self.skip_unused)):
            # of a process that only takes part, PyTorch counts what was used in the last pass
            own = [place not in self._unused for place in range(len(self.parameters))]
            mask = tensor(self._used_last if self._absent else own).to(self.parameters[0].device)
            dist.all_reduce(mask, dist.ReduceOp.MAX, self.group)
            used = self._used_last = mask.tolist()
        if self.static and not self._absent and self._times is None:
            self._times = self._came
        self._used = used if self.static else None
        with no_grad():
            for place, average in () if self._absent else self._later:
                # a parameter that no process used keeps its gradient, which may be None
                if used is not None and used[place]:
                    self._put(place, average)
        self._reset()
        self._expecting = False

    # ---- beside the backward pass -------------------------------------------------------------------------------

    def shadow(self) -> None:
        """Take part in a backward pass of other processes, with gradients of zeros and for no results."""
        self._reset()
        self._absent = True
        self._unused.update(range(len(self.parameters)))
        try:
            for place in range(len(self.parameters)):
                self._mark(place)
            self._finish()
        finally:
            self._absent = False

    def _rebuild_buckets(self) -> None:
        """Nothing, as `_delay_all_reduce`: Lightning calls both, and passes begin and end by themselves."""

    _delay_all_reduce = _rebuild_buckets


def _reached(outputs: Sequence[Tensor]) -> set[int]:
    """The identities of the leaves that the outputs were computed from."""
    found: set[int] = set()
    seen: set[Node] = set()
    stack = [x._edge() for x in outputs]
    while stack:
        edge = stack.pop()
        owner = edge.node if edge.__class__ is Slot else edge
        if owner.__class__ is not Node:
            found.add(id(owner))
        elif owner not in seen:
            seen.add(owner)
            stack.extend(owner.next)
    return found
