"""The attention family: softmax(query @ key.T * scale + mask) @ value, of which the scores are never in memory.

The operator returns the logarithms of the sums of exponentials as well, from which its gradients compute the weights
again. Batches broadcast; where the last dimension of the batch shares keys and values, as grouped heads do, their
gradients are summed by the kernel. The gradient of a mask, and gradients of gradients, have the scores' size, so they
are made of other operators.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...autograd.mode import recording
from ...autograd.precision import casts
from ...host.threads import blas_on_one_thread, quietly
from ...operators import Dtypes, Operator, Shapes
from ...operators.lifting.batching import Batch, loop
from ...operators.rules import FLOATING
from ...runtime.call import Call
from ...runtime.choice import Native
from ...runtime.replay import Quick
from ...tensors import Tensor, wrap
from ...types import devices, dtypes, layout
from ..random.philox import dropout, dropout_numbers
from .reference import attend, attend_backward, attended, batch_of, is_one_block, is_shared

ndarray = np.ndarray
_SINGLE = dtypes.float32.numpy
Shape = tuple[int, ...]


class Attention(Operator):
    """Attention, or its gradients."""

    family = "attention"
    about = "A program passes over blocks of keys, or of queries; scores are never in memory."
    repeatable = True
    native = Native((1, 1 << 14), (1, 1 << 14), (1, 1 << 16))  # the products of more are quicker with BLAS

    def __call__(self, *inputs: Any, **metadata: Any) -> Tensor:
        """See the base class; calls that draw random numbers are not remembered."""
        return self.call(None, [], inputs, metadata) if metadata.get("p") else super().__call__(*inputs, **metadata)

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """One dtype for queries, keys, values and results; the mask may have another one."""
        names = ("query", "key", "value")
        operands = [value for name, value in zip(self.inputs, call.inputs, strict=True) if name in names]
        compute, result = self.rule(self.name, operands)
        return compute, tuple([compute if name == "logsumexp" else result for name in self.outputs])

    def operands(self, arrays: Sequence[Any]) -> dict[str, Any]:
        """The arrays by name."""
        return dict(zip(self.inputs, arrays, strict=True))

    def allocate(self, call: Call) -> Shapes:
        """The results, in the order of dimensions that their operand has in memory."""
        found = self.operands(call.arrays)
        q, k, v = (found[name] for name in ("query", "key", "value"))
        forms = zip(self.shapes(q.shape, k.shape, v.shape), call.results, (q, k, v), strict=False)
        return [(shape, result.numpy, _steps(shape, like.shape, tuple(like.strides))) for shape, result, like in forms]

    def shapes(self, q: Shape, k: Shape, v: Shape) -> list[Shape]:
        """The shapes of the results, from those of queries, keys and values."""
        batch = batch_of(q, k, v)
        if len(self.outputs) == 2:
            return [(*batch, q[-2], v[-1]), (*batch, q[-2])]
        kept = (*batch[:-1], 1) if is_shared(batch, k, v) else batch
        return [(*batch, *q[-2:]), (*kept, *k[-2:]), (*kept, *v[-2:])]

    def on_host(self, call: Call) -> Callable[..., tuple[np.ndarray, ...]]:
        """Blocks of scores; halves are converted a block at a time."""
        kinds, kind, metadata = [result.numpy for result in call.results], call.compute.numpy, call.metadata
        forms = [self.operands(call.arrays)[name].shape for name in ("query", "key", "value")]
        batch, shapes = batch_of(*forms), self.shapes(*forms)

        def run(*arrays: Any) -> tuple[np.ndarray, ...]:
            found = dict(zip(self.inputs, arrays))
            outs = [
                np.ndarray(shape, of, strides=_steps(shape, like.shape, like.strides, of.itemsize))
                for shape, of, like in zip(shapes, kinds, (found["query"], found["key"], found["value"]))
            ]
            self.computed(found, outs, kind, batch, **metadata)
            return tuple(outs)

        return run

    def computed(
        self, found: Any, outs: Sequence[Any], kind: Any, batch: Shape, scale: float, diagonal: Any, **drawn: Any
    ) -> None:
        """Compute the results on the CPU."""
        q, k, v, mask = found["query"], found["key"], found["value"], found["mask"]
        rows, keys = q.shape[-2], k.shape[-2]

        def spread(x: np.ndarray | None, *last: int) -> Any:
            return x if x is None else (x if x.shape == (*batch, *last) else np.broadcast_to(x, (*batch, *last)))[None]

        numbers = (*dropout_numbers(**drawn), rows, keys) if drawn["p"] else None
        operands = [*[spread(x, *x.shape[-2:]) for x in (q, k, v)], spread(mask, rows, keys)]
        if self is attention:
            attend(operands, outs[0][None], outs[1][None], scale, diagonal, numbers, kind)
        else:
            grad, out = (spread(found[name], rows, v.shape[-1]) for name in ("grad", "out"))
            known = grad, out, spread(found["logsumexp"], rows)
            attend_backward(known, operands, [each[None] for each in outs], scale, diagonal, numbers, kind)

    def launch(self, call: Call) -> None:
        """One kernel for the results, two for the gradients."""
        from .launch import launch_attention, launch_backward

        found = self.operands(call.arrays)
        (launch_attention if self is attention else launch_backward)(call.outs, found, **call.metadata)

    def cost(self, call: Call) -> tuple[int, int]:
        """Each operand moved once; two products of queries and keys, or five."""
        moved = sum(array.nbytes for array in (*call.outs, *call.arrays) if array is not None)
        found, out = self.operands(call.arrays), call.outs[0]
        products = (2 if self is attention else 5) * (found["query"].shape[-1] + found["value"].shape[-1])
        return moved, math.prod(out.shape[:-1]) * found["key"].shape[-2] * products

    def terms(self, call: Call) -> int:
        """The number of products that are summed for each element of the results."""
        found = self.operands(call.arrays)
        return max(super().terms(call), found["key"].shape[-2] * found["query"].shape[-1])

    @staticmethod
    def batched(batch: Batch) -> tuple[Any, ...]:
        """One more dimension in front of those that are broadcast; gradients are of each sample's own operands."""
        if batch.metadata["p"]:  # every sample drops the same weights, which are counted from its first
            return loop(batch)
        backward = len(batch.x) > 4  # grad, query, key, value, out, logsumexp, mask
        rank = max(batch.ranks)
        x = list(batch.x)
        for position, value in enumerate(x):
            if isinstance(value, Tensor) and (backward or batch.whole[position] or not position):
                value = batch.all_of(position)
                missing = rank - batch.ranks[position] - (position == 5)  # logsumexp has no width
                x[position] = value.reshape(batch.size, *(1,) * missing, *value.shape[1:])
        return batch(*x)


@lru_cache(4096)
def _steps(shape: Shape, like: Shape, strides: Shape, unit: int = 1) -> Shape:
    """Strides without gaps, in the order of dimensions of an array; row-major if it has others or repeats elements."""
    if len(like) != len(shape) or 0 in strides:
        return tuple([step * unit for step in layout.contiguous_strides(shape)])
    order = sorted(range(len(shape) - 1), key=lambda dim: -strides[dim])
    steps, step = [unit] * len(shape), shape[-1]
    for dim in reversed(order):
        steps[dim], step = max(step, 1) * unit, max(step, 1) * max(shape[dim], 1)
    return tuple(steps)


def _attention(query, key, value, mask=None, *, scale, diagonal=None, p: float = 0.0, seed: int = 0, offset: int = 0):
    """softmax(query @ key.T * scale + mask) @ value, and the logarithms of the sums of the softmax."""
    raise NotImplementedError  # `Attention.on_host` calls `attend`


def _attention_backward(
    grad: Tensor, query, key, value, out, logsumexp, mask=None, *, scale, diagonal=None, p=0.0, seed: int = 0, offset=0
):
    """The gradients of attention by queries, keys and values."""
    raise NotImplementedError


attention = Attention("scaled_dot_product_attention", _attention, FLOATING, outputs=("out", "logsumexp"))
attention.autocasts(cpu="lower", cuda="lower")
attention_backward = Attention(
    "scaled_dot_product_attention_backward",
    _attention_backward,
    FLOATING,
    outputs=("query_grad", "key_grad", "value_grad"),
)


def quick_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float | None,
    diagonal: int | None,
    checked: bool,
    grouped: bool = False,
) -> Tensor | None:
    """Attention of float32 heads with one block of scores on the CPU, in a few steps; None for others.

    Args:
        scale: None for 1 over the root of the width.
        checked: the operands fit together; otherwise None for shapes that were not passed before.
        grouped: neighbours among the heads of `query` share keys and values; None where a gradient is recorded.
    """
    q, k, v = getattr(query, "_data", None), getattr(key, "_data", None), getattr(value, "_data", None)
    if not q.__class__ is k.__class__ is v.__class__ is ndarray or not q.dtype is k.dtype is v.dtype is _SINGLE:
        return None
    shape = q.shape
    known = shape, k.shape, v.shape, scale, diagonal, grouped
    compute = _quick.get(known)
    recorded = recording.enabled and (query._needs or key._needs or value._needs)
    if casts.on or 0 in q.strides or (grouped and recorded) or (compute is None and not checked):
        return None
    if grouped:
        if len(shape) != 4 or k.ndim != 4:
            return None
        q, k, v = q.reshape(shape[0], k.shape[1], -1, *shape[2:]), k[:, :, None], v[:, :, None]
    if compute is None:
        scale = 1 / math.sqrt(shape[-1] or 1) if scale is None else scale
        (*batch, count, width), keys = q.shape, k.shape[-2]
        if q.ndim < 4 or v.shape != k.shape or k.shape[-1] != width or 0 in (keys, q.size):
            return None
        if k.shape[:-2] not in ((*batch,), (*batch[:-1], 1)) or (diagonal is not None and (diagonal or count != keys)):
            return None
        if not is_one_block(batch, count, keys, diagonal):
            return None
        compute = _begin(known, (q, k, v, None), scale, diagonal)
    out, logs = compute(q, k, v, None)
    result = wrap(out.reshape(shape) if grouped else out)
    if recorded:
        factor = 1 / math.sqrt(shape[-1] or 1) if scale is None else scale
        metadata = {"scale": factor, "diagonal": diagonal, "p": 0.0, "seed": 0, "offset": 0}
        attention.record((result, wrap(logs)), (query, key, value, None), metadata)
    return result


_quick, _quick_back = Quick(), Quick()


def _begin(known: object, operands: tuple[Any, ...], scale: float, diagonal: int | None) -> Any:
    """The function of a new key of `quick_attention`."""

    def heads(*operands: Any) -> tuple[ndarray, ndarray]:
        with blas_on_one_thread:
            found, logs = quietly(attended, operands, scale, 0, diagonal, None, _SINGLE)
        out = np.empty_like(operands[0])  # with the order of the queries' dimensions
        out[...] = found
        return out, logs[..., 0]

    return _quick.begin(known, attention, operands, heads, scale=scale, diagonal=diagonal)


# ---- of other operators, with scores and weights in memory ---------------------------------------------------------


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None, scale: float, diagonal: int | None) -> Any:
    """The softmax of the scaled scores, with zeros where the mask or the diagonal hides a key."""
    # half of the factor each, as PyTorch, so that no node saves the caller's own tensors
    half = math.sqrt(abs(scale))
    scores = (query * math.copysign(half, scale)) @ (key * half).mT
    hidden = None
    if mask is not None and mask.dtype is dtypes.bool_:
        hidden = ~mask
    elif mask is not None:
        scores = scores + mask
    if diagonal is not None:
        behind = scores.new_ones(scores.shape[-2:], dtype=dtypes.bool_).triu(diagonal + 1)
        hidden = behind if hidden is None else hidden | behind
    if hidden is not None:
        scores = scores.masked_fill(hidden, -math.inf)
    if mask is None and (diagonal is None or diagonal >= 0):
        return scores.softmax(-1)
    # the softmax of a row of -inf only is NaN, and so would be its gradient
    blind = (scores == -math.inf).all(-1, keepdim=True)
    return scores.masked_fill(blind, 0).softmax(-1).masked_fill(blind, 0)


def _factors(weights: Tensor, p: float, seed: int, offset: int) -> Any:
    """The factors that dropout multiplies the weights by; their rows are drawn in multiples of 8."""
    *lead, keys = weights.shape
    ones = weights.detach().new_ones((*lead, -(-keys // 8) * 8))
    return dropout(ones, p=p, seed=seed, offset=offset)[..., :keys]


def composed(query: Tensor, key: Any, value: Any, mask: Any, scale: float, diagonal: int | None, **drawn: Any) -> Any:
    """Attention of tensors, made of other operators."""
    kind = query.dtype
    if kind.itemsize == 2:
        query, key, value = query.float(), key.float(), value.float()
    weights = attention_weights(query, key, mask, scale, diagonal)
    if drawn.get("p"):
        weights = weights * _factors(weights, **drawn)
    return (weights @ value).to(kind)


def _quick_gradient(arrays: list[Any], metadata: dict[str, Any]) -> Any:
    """The gradients from float32 arrays of the CPU."""
    known = *[x.shape for x in arrays[1:4]], metadata["scale"], metadata["diagonal"]
    compute = _quick_back.get(known)
    if compute is None:
        call = Call(attention_backward, (None,) * 7, metadata, devices.cpu, dtypes.float32, (dtypes.float32,) * 3)
        call.arrays = arrays
        compute = _quick_back.begin(known, attention_backward, arrays, attention_backward.on_host(call), **metadata)
    return compute(*arrays)


def _gradient(grad: Tensor, query: Tensor, key, value, mask, out, logsumexp, scale, diagonal, p, seed, offset, needs):
    """By the kernels; of other operators where it is recorded, or a mask needs one."""
    metadata = {"scale": scale, "diagonal": diagonal, "p": p, "seed": seed, "offset": offset}
    if not (recording.enabled or needs[3]):
        operands = (grad, query, key, value, out, logsumexp)
        if not p and mask is None and all(x._data.__class__ is ndarray and x._data.dtype is _SINGLE for x in operands):
            return (*map(wrap, _quick_gradient([*[x._data for x in operands], None], metadata)), None)
        return (*attention_backward(*operands, mask, **metadata), None)
    if query.dtype.itemsize == 2:
        grad, query, key, value = grad.float(), query.float(), key.float(), value.float()
    weights = attention_weights(query, key, mask, scale, diagonal)
    change, dropped = grad @ value.mT, weights
    if p:
        factors = _factors(weights, p, seed, offset)
        change, dropped = change * factors, weights * factors
    change = weights * (change - (change * weights).sum(-1, keepdim=True))
    return (
        change @ key * scale if needs[0] else None,
        change.mT @ query * scale if needs[1] else None,
        dropped.mT @ grad if needs[2] else None,
        change if needs[3] else None,
    )


attention.gradient(_gradient)

# shapes of queries, keys, values and mask (of booleans where it ends with True), and metadata
SAMPLES: tuple[tuple[Any, ...], ...] = (
    ((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 4), None, {}),
    ((20, 18), (20, 18), (20, 18), None, {"scale": 0.3, "diagonal": 0}),
    ((2, 2, 3, 3), (2, 1, 4, 3), (2, 1, 4, 2), None, {"diagonal": 1}),
    ((2, 3, 4), (5, 4), (1, 5, 3), ((3, 5), True), {}),
    ((2, 3, 4), (2, 4, 4), (2, 4, 3), ((2, 1, 4), False), {"scale": -0.5}),
    ((2, 4, 3), (1, 3, 3), (1, 3, 3), ((2, 4, 3), False), {"diagonal": -1}),
    ((2, 3, 4), (2, 9, 4), (2, 9, 2), None, {"p": 0.5, "seed": 3, "offset": 1}),
    ((2, 3, 0), (2, 5, 0), (2, 5, 2), None, {}),
    ((2, 3, 4), (2, 0, 4), (2, 0, 2), None, {}),
    ((2, 0, 4), (2, 3, 4), (2, 3, 2), None, {}),
)


def _samples(draw: Any, backward: bool) -> Any:
    for q, k, v, masked, metadata in SAMPLES:
        mask = None
        if masked is not None:
            shape, boolean = masked
            mask = draw.rng.random(shape) < 0.7 if boolean else draw(shape)
            mask[..., :1, :] = False if boolean else -math.inf  # a query that sees no key
        rows = (*batch_of(q, k, v), q[-2])
        operands = [draw(shape) for shape in (q, k, v)]
        if backward:
            operands = [draw((*rows, v[-1])), *operands, draw((*rows, v[-1])), draw(rows, (4.0, 6.0))]
        yield [*operands, mask], {"scale": 0.5, **metadata}


attention.samples(lambda draw: _samples(draw, False))
attention_backward.samples(lambda draw: _samples(draw, True))
