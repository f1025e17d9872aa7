"""Weighted reads of an input at coordinates: the operators of `grid_sample` and of its gradients.

    sample_places     out[n, c, p] = sum over k of x[n, c, places[n, k, p]] * weights[n, k, p]
    spread_places     its gradient for x: the sums of grad * weights at each place
    compare_places    its gradient for the weights: the sums of x * grad over the channels

A place of -1 is none. The three are one form that is linear in x, the weights and grad, so each has the others as its
gradients, of every order. Sums at places are made by sorting these, with the same bits in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...host.threads import in_pieces
from ...memory import buffer
from ...memory.array import DeviceArray
from ...operators import Operator, Shapes, copy_into
from ...operators.lifting.batching import more_images
from ...operators.rules import FLOATING
from ...runtime.call import Call
from ...runtime.launch import kernel, launch
from ...types import dtypes, layout
from ..addressing import block_index
from ..blocks import block_size
from ..indexing.kernel import Walk
from ..indexing.segments import fold_at

if TYPE_CHECKING:
    import triton.language as tl


class AtPlaces(Operator):
    """One of the three; all arrays have three dimensions."""

    family = "sampling"
    about = "Elements gather; sums at places are sorted first, so that they have one order."
    batched = staticmethod(more_images)
    repeatable = True
    main = 0

    def __init__(self, reference: Callable[..., Any], shape: Callable[..., tuple[int, ...]]) -> None:
        super().__init__(reference.__name__, reference, FLOATING)
        self.kinds = {"places": dtypes.int64}
        self.shape_of = shape

    def allocate(self, call: Call) -> Shapes:
        """The result's shape, from the arrays and the metadata."""
        return [(self.shape_of(*[each.shape for each in call.arrays], **call.metadata), call.results[0].numpy)]

    def launch(self, call: Call) -> None:
        """A program for a block of results; sums at places by the indexing family."""
        out, compute = call.outs[0], call.compute
        if not out.size:
            return
        mode, (first, places, _) = self.name.partition("_")[0], call.arrays
        if mode != "spread":
            _launch(mode, out, None, call.arrays, first.shape[1] if mode == "compare" else places.shape[1], compute)
            return
        batch, channels, _ = out.shape
        terms = buffer.empty((batch, *places.shape[1:], channels), compute.numpy, out.device)
        keys = buffer.empty((2, batch, *places.shape[1:]), np.dtype(np.int64), out.device)
        copy_into(out, 0)
        if terms.size:
            _launch(mode, terms, keys, call.arrays, 1, compute)
            walk = Walk.of_index(out, keys.reshape((2, -1)), (0, 2))
            fold_at(walk, out, terms.reshape((-1, channels)))


def _at(x: np.ndarray, places: np.ndarray) -> np.ndarray:
    """x[:, places], with zeros where there is no place; the last column of `x` is zero."""
    return x.take(places, 1, mode="wrap")


def _with_zero(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x, np.zeros((len(x), 1), x.dtype)], 1)


def sample_places(x, places, weights):
    """Elements of x, (N, C, S), at places (N, K, P), times weights, summed over K: (N, C, P)."""
    out = np.zeros((*x.shape[:2], places.shape[2]), x.dtype)

    def run(start: int, stop: int) -> None:
        for n in range(start, stop):
            whole = _with_zero(x[n])
            for at, weight in zip(places[n], weights[n], strict=True):
                found = _at(whole, at)
                # where there is no place a weight that is not finite does not count
                out[n] += np.multiply(found, np.where(at < 0, 0, weight), out=found)

    in_pieces(run, len(x), 1)
    return out


def spread_places(grad: np.ndarray, places: np.ndarray, weights: np.ndarray, *, size: int):
    """The sums of grad, (N, C, P), times weights, (N, K, P), at places (N, K, P) of `size`: (N, C, size)."""
    out = np.empty((*grad.shape[:2], size), grad.dtype)

    def run(start: int, stop: int) -> None:
        for n in range(start, stop):
            chosen = places[n] >= 0
            keys, factors = places[n][chosen], weights[n][chosen]
            for c in range(grad.shape[1]):
                terms = np.broadcast_to(grad[n, c], chosen.shape)[chosen] * factors
                out[n, c] = np.bincount(keys, terms, size)

    in_pieces(run, len(grad), 1)
    return out


def compare_places(x: np.ndarray, places: np.ndarray, grad: np.ndarray):
    """The products of x, (N, C, S), at places (N, K, P), and grad, (N, C, P), summed over C: (N, K, P)."""
    out = np.zeros(places.shape, x.dtype)

    def run(start: int, stop: int) -> None:
        for n in range(start, stop):
            whole = _with_zero(x[n])
            for k, at in enumerate(places[n]):
                out[n, k] = np.where(at < 0, 0, np.einsum("cp,cp->p", _at(whole, at), grad[n]))

    in_pieces(run, len(x), 1)
    return out


sample_places = AtPlaces(sample_places, lambda x, places, weights: (*x[:2], places[2]))
spread_places = AtPlaces(spread_places, lambda grad, places, weights, size: (*grad[:2], size))
compare_places = AtPlaces(compare_places, lambda x, places, grad: places)

sample_places.gradients(
    x=lambda grad, places, weights, x_shape: spread_places(grad, places, weights, size=x_shape[2]),
    weights=lambda grad, x, places: compare_places(x, places, grad),
)
spread_places.gradients(
    grad=lambda gradient, places, weights: sample_places(gradient, places, weights),
    weights=lambda gradient, grad, places: compare_places(gradient, places, grad),
)
compare_places.gradients(
    x=lambda gradient, places, grad, x_shape: spread_places(grad, places, gradient, size=x_shape[2]),
    grad=lambda gradient, x, places: sample_places(x, places, gradient),
)


def _samples(operator: Operator) -> Callable[[Any], Iterator[tuple[Any, ...]]]:
    def calls(draw: Any) -> Iterator[tuple[Any, ...]]:
        for batch, channels, size, taps, points in (
            (2, 2, 5, 3, 4),
            (1, 2, 300, 2, 90),
            (2, 1, 4, 1, 0),
            (0, 3, 5, 2, 4),
        ):
            places = draw.rng.integers(-1, size, (batch, taps, points))
            x, grad, weights = draw((batch, channels, size)), draw((batch, channels, points)), draw(places.shape)
            if operator is sample_places:
                yield [x, places, weights], {}
            elif operator is spread_places:
                yield [grad, places, weights], {"size": size}
            else:
                yield [x, places, grad], {}

    return calls


for _operator in (sample_places, spread_places, compare_places):
    _operator.samples(_samples(_operator))


@kernel
def places_kernel(
    out_ptr,
    key_ptr,
    x_ptr,
    place_ptr,
    other_ptr,
    x_strides,
    place_strides,
    other_strides,
    rows,
    channels,
    points,
    steps,
    count,
    MODE: tl.constexpr,
    COMPUTE: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The products of one of the three operators, summed over taps or channels for each element.

    Args:
        out_ptr: count elements: with "sample" (N, channels, points), with "compare" (N, taps, points). With "spread"
            what is added at each place, (N, taps, points, channels); where there is none, nothing is added to the last
            element, which is what -1 names.
        key_ptr: with "spread" for batch and place of each of its rows of channels.
        x_ptr: the input, or with "spread" the gradient. other_ptr: the weights, or with "compare" the gradient.
        rows: the size of the result's second dimension. steps: how many products are summed.
    """
    index = block_index(BLOCK, WIDE)
    mask = index < count
    item = index
    if MODE == "spread":
        item = index // channels
    point = item % points
    row = item // points % rows
    batch = item // points // rows
    total = tl.zeros((BLOCK,), COMPUTE)
    for step in range(steps):
        tap = row
        channel = index % channels
        if MODE == "sample":
            tap = row * 0 + step
            channel = row
        if MODE == "compare":
            channel = row * 0 + step
        at = batch * place_strides[0] + tap * place_strides[1] + point * place_strides[2]
        place = tl.load(place_ptr + at, mask=mask, other=-1)
        valid = mask & (place >= 0)
        if MODE == "spread":
            first = mask & (channel == 0)
            tl.store(key_ptr + item, batch.to(tl.int64), mask=first)
            tl.store(key_ptr + count // channels + item, place, mask=first)
        at = batch * x_strides[0] + channel * x_strides[1] + (point if MODE == "spread" else place) * x_strides[2]
        x = tl.load(x_ptr + at, mask=valid, other=0)
        at = batch * other_strides[0] + (channel if MODE == "compare" else tap) * other_strides[1]
        other = tl.load(other_ptr + at + point * other_strides[2], mask=valid, other=0)
        total += x.to(COMPUTE) * other.to(COMPUTE)
    tl.store(out_ptr + index, total.to(OUT_DTYPE), mask=mask)


def _launch(
    mode: str, out: DeviceArray, keys: DeviceArray | None, arrays: Any, steps: int, compute: dtypes.dtype
) -> None:
    x, places, other = arrays
    block = block_size(out, 256, interpreted=1 << 14, count=out.size)
    spans = [layout.span(each.shape, each.strides, 0) for each in arrays]
    launch(
        places_kernel,
        (-(-out.size // block),),
        (
            out,
            keys,
            x,
            places,
            other,
            *[each.strides for each in arrays],
            out.shape[1],
            x.shape[1],
            places.shape[2],
            steps,
            out.size,
        ),
        {
            "MODE": mode,
            "COMPUTE": compute,
            "OUT_DTYPE": dtypes.of(out.dtype),
            "WIDE": max(out.size + block, *[high - low for low, high in spans]) >= 1 << 31,
            "BLOCK": block,
        },
        out.device,
        name=f"{mode}_places",
    )
