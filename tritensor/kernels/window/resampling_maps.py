"""Maps of resizing and padding: for each new position the places and weights of the elements that it is made of.

A `Map` says how a dimension becomes another one. Its table has a row for each position of the result: the places that
it reads, -1 for none, and their weights. The gradient of a map is the map that is turned around, so all modes of
resizing and padding share one operator (`resampling.py`), in both directions. Coordinates are computed in the
precision that PyTorch has for the dtype, since the last bit decides between neighbours.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

Table = tuple[np.ndarray, np.ndarray | None]  # of shape (size, taps): int32, and weights unless all are 1


class Map(NamedTuple):
    """The map of dimension `dim` from `source` elements to `size` elements: a rule with its numbers, as text.

    `turned` is the gradient's map: the rule's is from `size` to `source` elements.
    """

    dim: int
    source: int
    size: int
    rule: str
    turned: bool = False

    def around(self) -> Map:
        """The map of the gradient."""
        return Map(self.dim, self.size, self.source, self.rule, not self.turned)


def rule(name: str, *numbers: Any) -> str:
    """A rule of `RULES` and its numbers as text, which the key of a remembered call can hold.

    >>> rule("nearest", None, False)
    'nearest(None, False)'
    """
    return f"{name}({', '.join(map(repr, numbers))})"


@lru_cache(256)
def table(source: int, size: int, rule: str, turned: bool) -> Table:
    """The table of a map."""
    if turned:
        return _turned(*table(size, source, rule, False), size)
    name, _, numbers = rule.partition("(")
    places, weights = RULES[name](source, size, *literal_eval(f"[{numbers[:-1]}]"))
    return np.ascontiguousarray(places if places.ndim == 2 else places[:, None], np.int32), weights


def _turned(found: np.ndarray, factors: np.ndarray | None, size: int) -> Table:
    """The table of `size` rows that says for each place which rows of a table read it, in their order."""
    rows, taps = np.nonzero(found >= 0)
    cols = found[rows, taps]
    order = np.argsort(cols, kind="stable")
    counts = np.bincount(cols, minlength=size)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    tap = np.arange(len(cols)) - starts[cols[order]]
    places = np.full((size, counts.max(initial=1)), -1, np.int32)
    places[cols[order], tap] = rows[order]
    if factors is None:
        return places, None
    weights = np.zeros(places.shape, factors.dtype)
    weights[cols[order], tap] = factors[rows, taps][order]
    return places, weights


def _ratio(source: int, size: int, corners: bool, scale: float | None, dtype: str) -> Any:
    """The distance in the input of neighbours in the result."""
    kind = np.dtype(dtype).type
    if corners:
        return kind(source - 1) / kind(size - 1) if size > 1 else kind(0)
    return kind(1 / scale) if scale else kind(source) / kind(size)


def _coordinates(source: int, size: int, corners: bool, scale: float | None, dtype: str) -> np.ndarray:
    """The coordinates in the input of the centres of the result's elements."""
    ratio, index = _ratio(source, size, corners, scale, dtype), np.arange(size, dtype=dtype)
    kind = np.dtype(dtype).type
    return index * ratio if corners else (index + kind(0.5)) * ratio - kind(0.5)


def _nearest(source: int, size: int, scale: float | None, exact: bool) -> Table:
    """The element that an element of the result starts in, or with `exact` that its centre is in."""
    start = np.arange(size, dtype=np.float32) + np.float32(0.5) * exact
    return np.floor(start * _ratio(source, size, False, scale, "float32")).astype(np.int64).clip(0, source - 1), None


def _linear(source: int, size: int, corners: bool, scale: float | None, dtype: str) -> Table:
    """The two neighbours of a coordinate, by distance; those outside are the edge's."""
    if source == size:
        return np.arange(size), None
    x = np.maximum(_coordinates(source, size, corners, scale, dtype), 0)
    first = np.minimum(x.astype(np.int64), source - 1)
    part = (x - first).clip(0, 1).astype(dtype)
    return np.stack([first, np.minimum(first + 1, source - 1)], 1), np.stack([1 - part, part], 1)


def _cubic(source: int, size: int, corners: bool, scale: float | None, dtype: str) -> Table:
    """Four neighbours, by Keys' cubic convolution with a = -0.75; those outside are the edge's."""
    x = _coordinates(source, size, corners, scale, dtype)
    first = np.minimum(np.floor(x).astype(np.int64), source - 1)
    part = (x - first).clip(0, 1).astype(dtype)
    places = first[:, None] + np.arange(-1, 3)
    away = np.stack([part + 1, part, 1 - part, 2 - part], 1)
    return places.clip(0, source - 1), _keys(away, away.dtype.type(-0.75))


def _keys(x: np.ndarray, a: Any) -> np.ndarray:
    """Keys' cubic convolution kernel ("Cubic convolution interpolation for digital image processing", 1981)."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0)).astype(x.dtype)


# Filters for reduction with antialiasing, on -width to width: as in Pillow, whose cubic has a = -0.5.
_FILTERS: dict[str, tuple[float, Callable[[np.ndarray], np.ndarray]]] = {
    "bilinear": (1.0, lambda x: np.maximum(1 - np.abs(x), 0)),
    "bicubic": (2.0, lambda x: _keys(x, x.dtype.type(-0.5))),
    "lanczos": (3.0, lambda x: np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0).astype(x.dtype)),
}


def _filtered(source: int, size: int, name: str, corners: bool, scale: float | None, dtype: str) -> Table:
    """All elements under a filter that is as wide as an element of the result, where that is the wider one."""
    if source == size:
        return np.arange(size), None
    ratio, (width, filter) = _ratio(source, size, corners, scale, dtype), _FILTERS[name]
    kind = np.dtype(dtype).type
    wide = max(ratio, kind(1))
    centre, reach = ratio * (np.arange(size, dtype=kind) + kind(0.5)), kind(width) * wide
    start = (centre - reach + kind(0.5)).astype(np.int64).clip(0)
    stop = (centre + reach + kind(0.5)).astype(np.int64).clip(0, source)
    places = start[:, None] + np.arange((stop - start).max(initial=1))
    inside = places < stop[:, None]
    weights = np.where(inside, filter((places.astype(kind) - centre[:, None] + kind(0.5)) / wide), 0)
    total = weights.sum(1, keepdims=True)
    return np.where(inside, places, -1), (weights / np.where(total == 0, 1, total)).astype(dtype)


def _area(source: int, size: int) -> Table:
    """The mean of all elements that overlap with one of the result."""
    index = np.arange(size)
    start, stop = index * source // size, -((-(index + 1) * source) // size)
    places = start[:, None] + np.arange((stop - start).max(initial=1))
    inside = places < stop[:, None]
    return np.where(inside, places, -1), inside / (stop - start)[:, None]


def _windows(
    source: int, size: int, kernel: int, stride: int, padding: int, padded: bool, divisor: int | None
) -> Table:
    """The elements of windows over `divisor`, or over how many there are; with `padded` those in the padding count."""
    start = np.arange(size) * stride - padding
    places = start[:, None] + np.arange(kernel)
    inside = (places >= 0) & (places < source)
    counts = np.minimum(start + kernel, source + padding) - start if padded else inside.sum(1)
    return np.where(inside, places, -1), None if divisor == 1 else inside / (divisor or counts[:, None])


def _padded(source: int, size: int, mode: str, before: int, after: int) -> Table:
    """Positions before and after a dimension, continued with its own elements; negative numbers remove elements."""
    places, first = np.arange(-before, source + after), max(0, -before)
    if mode == "reflect":
        return source - 1 - np.abs(source - 1 - np.abs(places)), None
    if mode == "replicate":
        return places.clip(0, source - 1), None
    return first + (places - first) % max(source - first - max(0, -after), 1), None


RULES: dict[str, Callable[..., Table]] = {
    "area": _area,
    "cubic": _cubic,
    "filtered": _filtered,
    "linear": _linear,
    "nearest": _nearest,
    "padded": _padded,
    "windows": _windows,
}
