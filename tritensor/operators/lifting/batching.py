"""Batching: an operator on all samples in one call, by its rule; a loop over the samples where it has none.

A rule, `Operator.batched`, gets a `Batch`: the call as it is for one sample, and the tensors below, with the batch in
front where they have one. It returns the results with the batch in front. Here are the rules of several families.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autograd.levels import below, enter, lifted_to
from ...autograd.mode import no_grad, recording
from ...errors import ShapeError, explain, warn
from ...memory.lifted import Batched, Level
from ...tensors import Tensor, wrap


class Batch:
    """One call inside of `vmap`.

    Attributes:
        operator: what is called. Calls of it here are on the tensors below.
        x: the inputs; `whole` says which of them have the batch in front, `ranks` their dimensions in one sample.
        metadata: for one sample, normalised.
        kind: the dtype of the first result.
        size: samples in the batch.
    """

    def __init__(self, operator: Any, level: Level, values: list[Any], call: Any) -> None:
        self.operator, self.metadata, self.kind = operator, call.metadata, call.results[0]
        self.level, self.size = level, int(level.size or 0)
        self.x = [below(value) for value in values]
        self.whole = [isinstance(value, Tensor) and value._data.whole for value in values]
        self.ranks = [value.ndim if isinstance(value, Tensor) else 0 for value in values]

    def all_of(self, position: int) -> Any:
        """An input with the batch in front, whether it has one or not; numbers and None as they are."""
        x = self.x[position]
        return x if self.whole[position] or not isinstance(x, Tensor) else x.expand(self.size, *x.shape)

    def merged(self, position: int, dim: int = 0) -> Any:
        """An input with the batch and one dimension as one, in its place."""
        x = self.all_of(position)
        return x if not isinstance(x, Tensor) else x.movedim(0, dim).flatten(dim, dim + 1)

    def split(self, x: Tensor, dim: int = 0) -> Tensor:
        """The opposite of `merged`."""
        parts = x.unflatten(dim, (self.size, x.shape[dim] // self.size)) if self.size else x.unflatten(dim, (0, 1))
        return parts.movedim(dim, 0)

    def __call__(self, *inputs: Any, **changes: Any) -> tuple[Any, ...]:
        """The operator's results."""
        found = self.operator(*inputs, **{**self.metadata, **changes})
        return found if isinstance(found, tuple) else (found,)


def call(operator: Any, level: Level, values: list[Any], call: Any) -> tuple[Any, ...]:
    """The results of an operator as tensors of the level; see `apply`."""
    rule = operator.batched or loop
    batch = Batch(operator, level, values, call)
    whole = any(batch.whole) or getattr(operator, "draws", False)
    with no_grad():
        results = rule(batch) if whole else batch(*batch.x)
    outputs = tuple([wrap(Batched(result._data, level, whole)) for result in results])
    if recording.enabled:
        operator.record(outputs, values, call.metadata)
    return outputs


def shared(operator: Any, level: Level, call: Any) -> Tensor:
    """The result of an operator on a tensor from outside of the level, recorded there: its gradient is one for all
    samples, where a call of the level would have one of each, and then sum them.
    """
    batch = Batch(operator, level, [lifted_to(level, x) for x in call.inputs], call)
    batch.x[0] = call.inputs[0]
    return enter(operator.batched(batch)[0], level)


def loop(batch: Batch) -> tuple[Any, ...]:
    """A call for each sample."""
    name = batch.operator.name
    warn(
        explain(
            f"There is a performance drop because {name}() has no batching rule",
            f"vmap runs it {batch.size} times, once for each sample",
            remedy=f"call {name}() outside of vmap, on the whole batch, where its time matters",
        )
    )
    if not batch.size:
        raise ShapeError(f"vmap: {name}() has no batching rule, and a batch of no samples has no result")
    rows = [
        batch(*[x[row] if whole else x for x, whole in zip(batch.x, batch.whole, strict=True)])
        for row in range(batch.size)
    ]
    return tuple([_stack(parts) for parts in zip(*rows, strict=True)])


def _stack(parts: Any) -> Tensor:
    out = parts[0].new_empty((len(parts), *parts[0].shape))
    for row, part in enumerate(parts):
        out[row].copy_(part)
    return out


def along_dim(batch: Batch) -> tuple[Any, ...]:
    """Operators along `dim` of inputs of one rank."""
    inputs = [batch.all_of(position) for position in range(len(batch.x))]
    rank = max(batch.ranks)
    dim = batch.metadata["dim"] % max(rank, 1) + 1
    if rank and all(own == rank or not isinstance(x, Tensor) for x, own in zip(inputs, batch.ranks, strict=True)):
        return batch(*inputs, dim=dim)
    shape = batch.x[0].shape[batch.whole[0] :] if len(inputs) != 2 else inputs[1].shape[1:]
    lined = [x.reshape(batch.size, *x.shape[1:] or (1,)) if isinstance(x, Tensor) else x for x in inputs]
    return tuple([result.reshape(batch.size, *shape) for result in batch(*lined, dim=dim)])


def in_front(batch: Batch) -> tuple[Any, ...]:
    """One more dimension in front of the stacks."""
    dims = batch.metadata.get("dim")
    changes = {} if dims is None else {"dim": tuple([dim + 1 for dim in dims])}
    return batch(*[batch.all_of(position) for position in range(len(batch.x))], **changes)


def in_front_or_merged(batch: Batch, most: int) -> tuple[Any, ...]:
    """Operators on the last dimensions, with up to two before, which are `most` together."""
    return in_front(batch) if batch.ranks[0] < most else more_images(batch)


def more_images(batch: Batch) -> tuple[Any, ...]:
    """More images."""
    return tuple([batch.split(each) for each in batch(*[batch.merged(i) for i in range(len(batch.x))])])


def check_randomness(level: Level) -> str:
    """How samples' random numbers differ; raise where they must not be drawn."""
    if level.randomness == "error":
        raise ShapeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
            "'different' randomness flags on vmap or perform the randomness operation out of vmap"
        )
    return level.randomness


def random(levels: list[Level], shape: tuple[int, ...], draw: Callable[[tuple[int, ...]], Any]) -> Any:
    """The numbers of `draw` inside of transformations: numbers for each sample, or the same for all."""
    different = [level for level in levels if level.size is not None and check_randomness(level) == "different"]
    array = draw((*[level.size for level in different], *shape))  # type: ignore[arg-type]
    for level in different:
        array = Batched(array, level)
    return array
