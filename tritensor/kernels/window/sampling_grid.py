"""Reading an input at places and weighing what is read: what `grid_sample` and its gradients are made of.

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

from ... import dtypes, layout
from ...memory import buffer
from ...memory.array import DeviceArray
from ...operator import Dtypes, Operator, Shapes, copy_into
from ...rules import FLOATING
from ...runtime.call import Call
from ...runtime.launch import kernel, launch
from ...threads import in_pieces
from ..blocks import block_size
from ..indexing.kernel import Walk
from ..indexing.segments import add_at

if TYPE_CHECKING:
    import triton.language as tl

__all__ = ["compare_places", "sample_places", "spread_places"]


class AtPlaces(Operator):
    """One of the three; all arrays have three dimensions."""

    family = "sampling"
    repeatable = True

    def __init__(self, reference: Callable[..., Any], shape: Callable[..., tuple[int, ...]]) -> None:
        super().__init__(reference.__name__, reference, FLOATING)
        self.kinds = {"places": dtypes.int64}
        self.shape_of = shape

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """The dtype of the first input; float32 to compute in for halves."""
        compute, result = self.rule(self.name, call.inputs[:1])
        return compute, (result,)

    def allocate(self, call: Call) -> Shapes:
        """The result's shape, from the arrays and the metadata."""
        return [(self.shape_of(*[each.shape for each in call.arrays], **call.metadata), call.results[0].numpy)]

    def launch(self, call: Call) -> None:
        """A program for a block of results; sums at places by the indexing family."""
        out, compute = call.outs[0], call.compute
        if not out.size:
            return
        if self.name != "spread_places":
            _launch(out, call.arrays, compute, self.name == "compare_places")
            return
        grad, places, weights = call.arrays
        batch, channels, _ = out.shape
        terms = buffer.empty((batch, *places.shape[1:], channels), compute.numpy, out.device)
        keys = buffer.empty((2, batch, *places.shape[1:]), np.dtype(np.int64), out.device)
        copy_into(out, 0)
        if terms.size:
            _launch_terms(terms, keys, grad, places, weights, compute)
            walk = Walk.of_index(out, keys.reshape((2, -1)), (0, 2))
            add_at(walk, out, terms.reshape((-1, channels)))


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


def spread_places(grad, places, weights, *, size):
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


def compare_places(x, places, grad):
    """The products of x, (N, C, S), at places (N, K, P), and grad, (N, C, P), summed over C: (N, K, P)."""
    out = np.zeros(places.shape, x.dtype)

    def run(start: int, stop: int) -> None:
        for n in range(start, stop):
            whole = _with_zero(x[n])
            for k, at in enumerate(places[n]):
                out[n, k] = np.where(at < 0, 0, np.einsum("cp,cp->p", _at(whole, at), grad[n]))

    in_pieces(run, len(x), 1)
    return out


sample_places = AtPlaces(sample_places, lambda x, places, weights: (*x[:2], places[2]))  # type: ignore[assignment]
spread_places = AtPlaces(spread_places, lambda grad, places, weights, size: (*grad[:2], size))  # type: ignore[assignment]
compare_places = AtPlaces(compare_places, lambda x, places, grad: places)  # type: ignore[assignment]

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


def _samples(operator: Any) -> Callable[[Any], Iterator[tuple[Any, ...]]]:
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
    x_ptr,
    place_ptr,
    other_ptr,
    x_strides,
    place_strides,
    other_strides,
    taps,
    channels,
    points,
    count,
    OVER_CHANNELS: tl.constexpr,
    COMPUTE: tl.constexpr,
    OUT_DTYPE: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """`sample_places`, or `compare_places` where OVER_CHANNELS: a sum over taps, or over channels, for each element.

    Args:
        out_ptr: count elements: (N, channels, points), or (N, taps, points).
        other_ptr: the weights, or the gradient.
    """
    start = tl.program_id(0)
    if WIDE:
        start = start.to(tl.int64)
    index = start * BLOCK + tl.arange(0, BLOCK)
    mask = index < count
    point = index % points
    total = tl.zeros((BLOCK,), COMPUTE)
    if OVER_CHANNELS:
        tap = index // points % taps
        batch = index // points // taps
        place = tl.load(
            place_ptr + batch * place_strides[0] + tap * place_strides[1] + point * place_strides[2],
            mask=mask,
            other=-1,
        )
        valid = mask & (place >= 0)
        for channel in range(channels):
            x = tl.load(
                x_ptr + batch * x_strides[0] + channel * x_strides[1] + place * x_strides[2], mask=valid, other=0
            )
            grad = tl.load(
                other_ptr + batch * other_strides[0] + channel * other_strides[1] + point * other_strides[2],
                mask=valid,
                other=0,
            )
            total += x.to(COMPUTE) * grad.to(COMPUTE)
    else:
        channel = index // points % channels
        batch = index // points // channels
        for tap in range(taps):
            place = tl.load(
                place_ptr + batch * place_strides[0] + tap * place_strides[1] + point * place_strides[2],
                mask=mask,
                other=-1,
            )
            valid = mask & (place >= 0)
            x = tl.load(
                x_ptr + batch * x_strides[0] + channel * x_strides[1] + place * x_strides[2], mask=valid, other=0
            )
            weight = tl.load(
                other_ptr + batch * other_strides[0] + tap * other_strides[1] + point * other_strides[2],
                mask=valid,
                other=0,
            )
            total += x.to(COMPUTE) * weight.to(COMPUTE)
    tl.store(out_ptr + index, total.to(OUT_DTYPE), mask=mask)


def _launch(out: DeviceArray, arrays: Any, compute: dtypes.dtype, over_channels: bool) -> None:
    x, places, other = arrays
    block = block_size(out, 256, interpreted=1 << 14, count=out.size)
    launch(
        places_kernel,
        (-(-out.size // block),),
        (
            out,
            x,
            places,
            other,
            x.strides,
            places.strides,
            other.strides,
            places.shape[1],
            x.shape[1],
            out.shape[2],
            out.size,
        ),
        {
            "OVER_CHANNELS": over_channels,
            "COMPUTE": compute,
            "OUT_DTYPE": dtypes.of(out.dtype),
            "WIDE": _reach(out.size + block, *arrays) >= 1 << 31,
            "BLOCK": block,
        },
        out.device,
        name="compare_places" if over_channels else "sample_places",
    )


@kernel
def terms_kernel(
    term_ptr,
    key_ptr,
    grad_ptr,
    place_ptr,
    weight_ptr,
    grad_strides,
    place_strides,
    weight_strides,
    taps,
    channels,
    points,
    count,
    COMPUTE: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """What is added at each place, (N, taps, points, channels), and its coordinates: batch and place.

    Where there is no place, nothing is added to the last element, which is what -1 names.
    """
    start = tl.program_id(0)
    if WIDE:
        start = start.to(tl.int64)
    index = start * BLOCK + tl.arange(0, BLOCK)
    mask = index < count
    channel = index % channels
    item = index // channels
    point = item % points
    tap = item // points % taps
    batch = item // points // taps
    place = tl.load(
        place_ptr + batch * place_strides[0] + tap * place_strides[1] + point * place_strides[2], mask=mask, other=-1
    )
    valid = mask & (place >= 0)
    grad = tl.load(
        grad_ptr + batch * grad_strides[0] + channel * grad_strides[1] + point * grad_strides[2], mask=valid, other=0
    )
    weight = tl.load(
        weight_ptr + batch * weight_strides[0] + tap * weight_strides[1] + point * weight_strides[2],
        mask=valid,
        other=0,
    )
    tl.store(term_ptr + index, grad.to(COMPUTE) * weight.to(COMPUTE), mask=mask)
    first = mask & (channel == 0)
    tl.store(key_ptr + item, batch.to(tl.int64), mask=first)
    tl.store(key_ptr + count // channels + item, place, mask=first)


def _launch_terms(
    terms: DeviceArray,
    keys: DeviceArray,
    grad: DeviceArray,
    places: DeviceArray,
    weights: DeviceArray,
    compute: dtypes.dtype,
) -> None:
    _, taps, points, channels = terms.shape
    block = block_size(terms, 512, interpreted=1 << 14, count=terms.size)
    strides = (grad.strides, places.strides, weights.strides)
    launch(
        terms_kernel,
        (-(-terms.size // block),),
        (terms, keys, grad, places, weights, *strides, taps, channels, points, terms.size),
        {"COMPUTE": compute, "WIDE": _reach(terms.size + block, grad, places, weights) >= 1 << 31, "BLOCK": block},
        terms.device,
        name="spread_places",
    )


def _reach(count: int, *arrays: DeviceArray) -> int:
    """The largest offset that a kernel computes."""
    spans = [layout.span(each.shape, each.strides, 0) for each in arrays]
    return max(count, *[high - low for low, high in spans])
