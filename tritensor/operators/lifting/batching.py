"""Batching rules: an operator on all samples in one call, for each family; a loop over the samples for the others.

A rule gets a `Batch`: the call as it is for one sample, and the tensors below, with the batch in front where they have
one. It returns the results with the batch in front.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autograd.levels import below
from ...autograd.mode import no_grad, recording
from ...errors import ShapeError, explain, warn
from ...memory.lifted import Batched, Level, open_levels
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


Rule = Callable[[Batch], tuple[Any, ...]]
_rules: dict[str, Rule] = {}


def _rule(*names: str) -> Callable[[Rule], Rule]:
    """Declare the rule of operators or of families."""

    def declare(rule: Rule) -> Rule:
        _rules.update(dict.fromkeys(names, rule))
        return rule

    return declare


def call(operator: Any, level: Level, values: list[Any], call: Any) -> tuple[Any, ...]:
    """The results of an operator as tensors of the level; see `apply`."""
    rule = _rules.get(operator.name) or _rules.get(operator.family) or _loop
    batch = Batch(operator, level, values, call)
    whole = any(batch.whole) or operator.family == "dropout"
    with no_grad():
        results = rule(batch) if whole else batch(*batch.x)
    outputs = tuple([wrap(Batched(result._data, level, whole)) for result in results])
    if recording.enabled:
        operator.record(outputs, values, call.metadata)
    return outputs


def _loop(batch: Batch) -> tuple[Any, ...]:
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
        raise ShapeError(explain(f"vmap: {name}() has no batching rule, and a batch of no samples has no result"))
    rows = [
        batch(*[x[row] if whole else x for x, whole in zip(batch.x, batch.whole, strict=True)])
        for row in range(batch.size)
    ]
    return tuple([_stack(parts) for parts in zip(*rows, strict=True)])


def _stack(parts: Any) -> Tensor:
    out = parts[0].new_empty((len(parts), *parts[0].shape))
    for row, part in enumerate(parts):
        out[row].copy_(part)
    return out  # type: ignore[no-any-return]


# ---- elements -------------------------------------------------------------------------------------------------------


@_rule("elementwise")
def _elementwise(batch: Batch) -> tuple[Any, ...]:
    """The batch in front of the dimensions that the samples are broadcast to."""
    rank, inputs = max(batch.ranks), []
    for x, whole, own in zip(batch.x, batch.whole, batch.ranks, strict=True):
        inputs.append(x.reshape(batch.size, *(1,) * (rank - own), *x.shape[1:]) if whole and own < rank else x)
    found = batch(*inputs)
    if found[0].dtype is batch.kind:
        return found
    # a sample without dimensions counts less for the dtype of the result, and has a dimension here
    return batch(*[x.to(batch.kind) if isinstance(x, Tensor) else x for x in inputs])


@_rule("dropout")
def _dropout(batch: Batch) -> tuple[Any, ...]:
    """A mask for each sample, or one for all; the levels within are closed, so that the operator runs as it is."""
    same = _check(batch.level.randomness) == "same"
    opened, open_levels.stack = open_levels.stack, [x for x in open_levels.stack if x.number < batch.level.number]
    try:
        if same:
            return (batch(batch.x[0].new_ones(batch.x[0].shape[batch.whole[0] :]))[0] * batch.all_of(0),)
        return batch(batch.all_of(0))
    finally:
        open_levels.stack = opened


# ---- one dimension of all inputs ------------------------------------------------------------------------------------


@_rule("reduction")
def _reduction(batch: Batch) -> tuple[Any, ...]:
    (x,), dims = batch.x, batch.metadata["dim"]
    if not batch.ranks[0]:
        return batch(x.unsqueeze(1), dim=(1,), keepdim=False)
    return batch(x, dim=tuple([dim + 1 for dim in dims]))


@_rule("rowwise", "scan", "sorting", "gather", "scatter", "scatter_reduce")
def _along(batch: Batch) -> tuple[Any, ...]:
    """Operators along `dim` of inputs of one rank."""
    inputs = [batch.all_of(position) for position in range(len(batch.x))]
    rank = max(batch.ranks)
    dim = batch.metadata["dim"] % max(rank, 1) + 1
    if rank and all(own == rank or not isinstance(x, Tensor) for x, own in zip(inputs, batch.ranks, strict=True)):
        return batch(*inputs, dim=dim)
    shape = batch.x[0].shape[batch.whole[0] :] if len(inputs) != 2 else inputs[1].shape[1:]
    lined = [x.reshape(batch.size, *x.shape[1:] or (1,)) if isinstance(x, Tensor) else x for x in inputs]
    return tuple([result.reshape(batch.size, *shape) for result in batch(*lined, dim=dim)])


@_rule("joining")
def _joining(batch: Batch) -> tuple[Any, ...]:
    dim, sizes = batch.metadata["dim"], batch.metadata["sizes"]
    kept = [batch.all_of(position) for position, size in enumerate(sizes) if size is not None]
    if not kept:
        kept = [batch.all_of(0)]
    return (batch.operator(*kept, dim=dim + 1),)


@_rule("hosted", "fourier", "triangular")
def _hosted(batch: Batch) -> tuple[Any, ...]:
    """One more dimension in front of the stacks."""
    dims = batch.metadata.get("dim")
    changes = {} if dims is None else {"dim": tuple([dim + 1 for dim in dims])}
    return batch(*[batch.all_of(position) for position in range(len(batch.x))], **changes)


# ---- products -------------------------------------------------------------------------------------------------------


@_rule("attention")
def _attention(batch: Batch) -> tuple[Any, ...]:
    """One more dimension in front of those that are broadcast; gradients are of each sample's own operands."""
    if batch.metadata["p"]:  # every sample drops the same weights, which are counted from its first
        return _loop(batch)
    backward = len(batch.x) > 4  # grad, query, key, value, out, logsumexp, mask
    rank = max(batch.ranks)
    x = list(batch.x)
    for position, value in enumerate(x):
        if isinstance(value, Tensor) and (backward or batch.whole[position] or not position):
            value = batch.all_of(position)
            missing = rank - batch.ranks[position] - (position == 5)  # logsumexp has no width
            x[position] = value.reshape(batch.size, *(1,) * missing, *value.shape[1:])
    return batch(*x)


@_rule("matmul")
def _matmul(batch: Batch) -> tuple[Any, ...]:
    x, y, *bias = batch.x
    if batch.operator.transposed:
        if batch.whole[0] and not any(batch.whole[1:]):
            return batch(*batch.x)
        rows = x.reshape(*x.shape[: batch.whole[0]], -1, x.shape[-1])
        shape = (*x.shape[batch.whole[0] : -1], y.shape[-2])
        product = rows @ y.mT
        product = product.reshape(*product.shape[:-2], *shape)
        if bias and bias[0] is not None:
            own = bias[0]
            missing = len(shape) - batch.ranks[2]
            product = product + (own.reshape(batch.size, *(1,) * missing, *own.shape[1:]) if batch.whole[2] else own)
        return (product,)
    row, column = batch.ranks[0] == 1, batch.ranks[1] == 1
    if batch.whole[0] and not batch.whole[1] and batch.ranks[1] <= 2:
        return batch(x, y)
    x = x.unsqueeze(-2) if row else x
    y = y.unsqueeze(-1) if column else y
    rank = max(batch.ranks[0] + row, batch.ranks[1] + column)
    x, y = (
        each.reshape(batch.size, *(1,) * (rank + 1 - each.ndim), *each.shape[1:]) if whole else each
        for each, whole in zip((x, y), batch.whole, strict=True)
    )
    found = x @ y
    found = found.squeeze(-2) if row else found
    return (found.squeeze(-1) if column else found,)


@_rule("convolution")
def _convolution(batch: Batch) -> tuple[Any, ...]:
    """More images; or, where kernels or gradients differ, more channels in groups of their own."""
    of_weights = batch.operator.name == "convolution_weight"
    if not of_weights and not any(batch.whole[1:]):
        (result,) = batch(batch.merged(0), *batch.x[1:])
        return (batch.split(result),)
    groups = batch.metadata["groups"] * batch.size
    second = batch.merged(1, 1) if of_weights else batch.merged(1)
    (result,) = batch(batch.merged(0, 1), second, *[batch.merged(i) for i in range(2, len(batch.x))], groups=groups)
    return (batch.split(result, 0 if of_weights else 1),)


# ---- windows and places ---------------------------------------------------------------------------------------------


@_rule("pooling", "folding")
def _windows(batch: Batch) -> tuple[Any, ...]:
    """Operators on the last dimensions, with up to two before."""
    known = batch.metadata.get("size") or batch.metadata.get("extents")
    most = {"im2col": 4, "col2im": 3}.get(batch.operator.name) or len(known or ()) + 2
    if batch.ranks[0] < most:
        return batch(*[batch.all_of(position) for position in range(len(batch.x))])
    return _images(batch)


@_rule("resampling")
def _resample(batch: Batch) -> tuple[Any, ...]:
    if any(batch.whole[1:]):
        return _loop(batch)
    maps = batch.metadata["maps"]
    return batch(*batch.x, maps=tuple([value if at % 5 else value + 1 for at, value in enumerate(maps)]))


@_rule("sampling")
def _images(batch: Batch) -> tuple[Any, ...]:
    """More images."""
    return tuple([batch.split(each) for each in batch(*[batch.merged(i) for i in range(len(batch.x))])])


@_rule("index", "index_put")
def _index(batch: Batch) -> tuple[Any, ...]:
    """The samples' number as one more coordinate, where their places differ."""
    dims, places = batch.metadata["dims"], batch.ranks[1] - 1
    x, positions, *value = batch.x
    together = tuple(dims) == tuple(range(dims[0], dims[0] + len(dims)))
    first = dims[0] if together else 0  # where the places' dimensions are
    if not batch.whole[1] and not value and together:
        return batch(x, positions, dims=tuple([dim + 1 for dim in dims]))
    positions = batch.all_of(1).movedim(0, 1)
    number = _numbers(positions, batch.size).reshape(1, batch.size, *(1,) * places).expand(1, *positions.shape[1:])
    positions = _cat(number, positions)
    dims = (0, *[dim + 1 for dim in dims])
    if not value:
        (found,) = batch(batch.all_of(0), positions, dims=dims)
        return (_moved(found, places, first),)
    (item,) = value
    if isinstance(item, Tensor):
        rest = [size for dim, size in enumerate(x.shape[batch.whole[0] :]) if dim + 1 not in dims]
        target = (*rest[:first], *positions.shape[2:], *rest[first:])
        if batch.whole[2]:
            item = item.reshape(batch.size, *(1,) * (len(target) - batch.ranks[2]), *item.shape[1:])
        item = _moved(item.expand(batch.size, *target), places, first, back=True)
    return batch(batch.all_of(0), positions, item, dims=dims)


def _numbers(like: Tensor, size: int) -> Any:
    return like.new_ones(size).cumsum(0) - 1


def _cat(first: Any, second: Any) -> Tensor:
    joined = first.new_empty((len(first) + len(second), *first.shape[1:]))
    joined[: len(first)].copy_(first)
    joined[len(first) :].copy_(second)
    return joined  # type: ignore[no-any-return]


def _moved(x: Tensor, count: int, to: int, back: bool = False) -> Tensor:
    """The `count` dimensions of places, right behind the batch, moved behind `to` others; or back from there."""
    here, there = tuple(range(1, 1 + count)), tuple(range(1 + to, 1 + to + count))
    return x.movedim(there, here) if back else x.movedim(here, there)


# ---- rows and channels ----------------------------------------------------------------------------------------------


@_rule("layer_norm", "rms_norm")
def _row_norm(batch: Batch) -> tuple[Any, ...]:
    """More rows; parameters that differ from sample to sample are applied apart from that."""
    if "backward" in batch.operator.name:
        return _row_norm_backward(batch)
    parameters = batch.x[1:]
    apart = any(batch.whole[1:])
    found = batch(batch.merged(0), *([None] * len(parameters) if apart else parameters))
    out, *more = [batch.split(each) for each in found]
    for position, parameter in enumerate(parameters, 1):
        if apart and parameter is not None:
            parameter = parameter.unsqueeze(1) if batch.whole[position] else parameter
            out = out * parameter if position == 1 else out + parameter
    return out, *more


def _row_norm_backward(batch: Batch) -> tuple[Any, ...]:
    """The gradient of the rows; and the parameters', each sample's own sums."""
    given = [position for position in range(len(batch.x) - 1) if batch.x[position] is not None]
    grad, x, *statistics = [batch.all_of(position) for position in given]
    weight = batch.x[-1]
    scaled = grad if weight is None else grad * (weight.unsqueeze(1) if batch.whole[-1] else weight)
    rows = [each.flatten(0, 1) for each in (scaled.to(grad.dtype), x, *statistics)]
    rows += [None] * (len(batch.x) - len(rows))
    result = batch.split(batch(*rows)[0])
    columns = [each.unsqueeze(2) for each in statistics]
    for centre in columns[::2] if len(columns) > 1 else ():  # the mean, and what it lost in rounding
        x = x - centre
    normal = x * columns[len(columns) > 1]
    kinds = [grad.dtype if weight is None else weight.dtype] * 2
    sums = [(grad * normal).sum(1), grad.sum(1)][: len(batch.operator.outputs) - 1]
    return result, *[each.to(kind) for each, kind in zip(sums, kinds, strict=False)]


@_rule("channel_norm")
def _channel_norm(batch: Batch) -> tuple[Any, ...]:
    """More channels, or more groups of them."""
    backward = "backward" in batch.operator.name
    groups = batch.metadata["groups"]
    changes = {} if groups is None else {"groups": groups * batch.size}
    mains = 2 if backward else 1
    inputs = [batch.merged(i, 1) for i in range(mains)]
    # a number for each channel, or for each image and group
    inputs += [
        batch.merged(i, batch.ranks[i] - 1) if batch.x[i] is not None else None for i in range(mains, len(batch.x))
    ]
    out, *more = batch(*inputs, **changes)
    return batch.split(out, 1), *[batch.split(each, each.ndim - 1) for each in more]


# ---- losses ---------------------------------------------------------------------------------------------------------


@_rule("cross_entropy", "nll_loss")
def _class_loss(batch: Batch) -> tuple[Any, ...]:
    """More rows, with a reduction of each sample's own."""
    if batch.whole[2]:
        return _loop(batch)
    weight, reduction = batch.x[2], batch.metadata["reduction"]
    losses, total, *more = batch(batch.merged(0), batch.merged(1), weight, reduction="none")
    target = batch.all_of(1)
    counted = target != batch.metadata["ignore_index"]
    share = counted.to(total.dtype)
    if weight is not None:
        share = share * weight[(target * counted).flatten()].reshape(target.shape).to(total.dtype)
    totals = share.sum(1)
    losses = losses.reshape(batch.size, -1)
    if reduction != "none":
        losses = losses.sum(1)
    out = losses / totals.to(losses.dtype) if reduction == "mean" else losses
    return out, totals, *[each.reshape(batch.size, -1) for each in more]


@_rule("cross_entropy_backward")
def _class_loss_backward(batch: Batch) -> tuple[Any, ...]:
    if batch.whole[3]:
        return _loop(batch)
    grad, x, target, _, total, lse = (batch.all_of(position) for position in range(6))
    if batch.metadata["reduction"] != "none":
        grad = (grad / total if batch.metadata["reduction"] == "mean" else grad).unsqueeze(1)
    rows = grad.expand(batch.size, x.shape[1]).flatten().to(x.dtype)
    inputs = (rows, x.flatten(0, 1), target.flatten(), batch.x[3], total.flatten()[:1].squeeze(0), lse.flatten())
    return (batch.split(batch(*inputs, reduction="none")[0]),)


# ---- random numbers -------------------------------------------------------------------------------------------------


def _check(randomness: str) -> str:
    if randomness == "error":
        raise ShapeError(
            explain(
                "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
                "'different' randomness flags on vmap or perform the randomness operation out of vmap"
            )
        )
    return randomness


def random(levels: list[Level], shape: tuple[int, ...], draw: Callable[[tuple[int, ...]], Any]) -> Any:
    """The numbers of `draw` inside of transformations: numbers for each sample, or the same for all."""
    different = [level for level in levels if level.size is not None and _check(level.randomness) == "different"]
    array = draw((*[level.size for level in different], *shape))  # type: ignore[arg-type]
    for level in different:
        array = Batched(array, level)
    return array
