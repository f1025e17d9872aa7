"""Convolutions on the CPU: blocks of unfolded columns that fit the cache, multiplied by BLAS on all threads.

A result is a correlation, or one for each phase of a transposed convolution's stride (`geometry.py`). It is cut into
pieces of some images, groups and rows of weights, and a box of results, by shapes alone, so that its bits do not depend
on the number of threads. What a piece reads is unfolded into scratch memory, unless it lies there as a matrix already,
as for kernels of one element. Channels-last operands are unfolded in their order. Depthwise sums are not unfolded:
`np.einsum` adds the products of each weight and of all that it lies on, in one run through the rows and zeros.

Arrays have a dimension of groups here: (images, groups, channels, *sizes), weights (groups, rows, channels, *taps).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from itertools import product
from math import prod
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...host.threads import in_pieces
from ...types.layout import NotViewable, reshape_strides
from ..scratch import scratch
from .geometry import Line, last

ndarray = np.ndarray
Body = Callable[[ndarray], ndarray]
Form = tuple[tuple[int, ...], tuple[int, ...]]  # shape and strides
Make = Callable[[tuple[int, ...], Any], ndarray]

# Bytes of a piece's columns and results. 3x3 of 64 channels takes 28 ms with 0.5 MB on one thread, 24.5 with 1 MB,
# and 23 with 2 MB, of which each thread would have as much.
CACHE = 1 << 20
# A piece has at least so many columns, because each packs the weights again; and there are so many pieces at least.
_LEAST = 192
_PIECES = 8
# Products from which a piece is worth a thread of its own: 0.35 ms of float32.
_WORTH = 1 << 24
# Rows of the weights in a piece that does not have all, and unfolds the same columns again.
_ROWS = 64
# Results of a piece of depthwise sums: 32 planes of 56x56 take 1.3 ms, 2 take 7, as threads wait for each other then.
# With the channels innermost also elements of a row, for each of which there is a copy of its weights.
_SINGLE = 1 << 17
_TILE = 4096
# Columns of the weights' gradient in a piece: all channels of most layers, so that the gradient is read once.
_WEIGHTS = 1152
# Rows of a depthwise group that are summed without unfolding: 3x3 of 64 channels in 3.1 ms, which took 8.2.
_FEW = 4


@lru_cache(4096)
def _strides_in(shape: tuple[int, ...], strides: tuple[int, ...], target: tuple[int, ...]) -> Any:
    try:
        return reshape_strides(shape, strides, target)
    except NotViewable:
        return None


def _viewed(array: ndarray, shape: tuple[int, ...]) -> Any:
    """The array in another shape, where that needs no copy."""
    return None if _strides_in(array.shape, array.strides, shape) is None else array.reshape(shape)


class _Piece(NamedTuple):
    """A part of a correlation: ranges of images, groups, rows and channels, and a range of results per dimension."""

    images: slice
    groups: slice
    rows: slice
    channels: slice
    box: tuple[tuple[int, int], ...]


def _ranges(count: int, extent: int) -> list[slice]:
    return [slice(start, min(start + extent, count)) for start in range(0, count, extent)]


class _Correlation:
    """The common part of the pieces of correlations of these shapes and strides.

    Args:
        x: shape and strides of the input. out: those of the results of this correlation, or of their gradient.
        kind: the dtype to compute in.
        depthwise: a group of one channel may be summed without unfolding.
    """

    def __init__(self, x: Form, out: Form, lines: Sequence[Line], kind: np.dtype[Any], depthwise: bool = True) -> None:
        sizes = x[0][3:]
        if all(line[1:4] == (1, 0, 1) and line.places == size for line, size in zip(lines, sizes, strict=True)):
            # one dimension where that needs no copy: its parts are matrices as they are
            flat = [(*shape[:3], prod(sizes)) for shape, _ in (x, out)]
            steps = [_strides_in(*form, shape) for form, shape in zip((x, out), flat, strict=True)]
            if None not in steps:
                x, out, lines = (flat[0], steps[0]), (flat[1], steps[1]), [Line(prod(sizes), 1, 0)]
        self.shapes, self.lines, self.kind = (x[0], out[0]), tuple(lines), kind
        self.images, self.groups, self.channels, *self.sizes = x[0]
        self.rows = out[0][2]
        self.taps = tuple(line.taps for line in self.lines)
        self.counts = tuple(line.places for line in self.lines)
        self.depth = self.channels * prod(self.taps)
        # whether columns, or depthwise the runs, have the channels innermost
        single = depthwise and self.channels == 1 and all(line.step == 1 for line in self.lines)
        inner = 1 if single and self.rows == 1 else 2
        self.last = x[0][inner] > 1 and abs(x[1][inner]) < min(map(abs, x[1][3:]))
        self.single = single and self.rows <= _FEW
        self.first = last([slice(max((1 - line.taps) * line.reach, 0), None) for line in self.lines])
        self.reaches, self.steps = [line.reach for line in self.lines], [line.step for line in self.lines]

    def boxes(self, columns: int, across: int | None = None) -> list[tuple[tuple[int, int], ...]]:
        """The results of an image in boxes of about so many, at most `across` of them along the last dimension."""
        parts = []
        for count in reversed(self.counts):
            extent = max(min(count, columns, across or count), 1)
            across = None
            extent = -(-count // -(-count // extent))  # of about equal sizes
            columns //= extent
            parts.append([(part.start, part.stop) for part in _ranges(count, extent)])
        return list(product(*reversed(parts)))

    def read(self, x: ndarray, make: Make, piece: _Piece) -> ndarray:
        """What the results of a piece are made of, in the dtype to compute in, with zeros around the input."""
        spans = [line.within(*ends) for line, ends in zip(self.lines, piece.box, strict=True)]
        inside = [
            (min(max(low, 0), high), max(min(high, size), low, 0))
            for (low, high), size in zip(spans, self.sizes, strict=True)
        ]
        inside = [(low, max(low, high)) for low, high in inside]
        where = [slice(low, high) for low, high in inside]
        part = x[(piece.images, piece.groups, piece.channels, *where)]
        if inside == spans and part.dtype == self.kind and not self.single:
            return part
        shape = (*part.shape[:3], *[high - low for low, high in spans])
        if self.last:
            block = np.moveaxis(make((shape[0], *shape[3:], *shape[1:3]), self.kind), (-2, -1), (1, 2))
        elif self.single:
            block = make(shape, self.kind)
        else:  # images innermost, so that columns of small ones are copied in runs of several
            block = np.moveaxis(make((*shape[1:], shape[0]), self.kind), -1, 0)
        key: list[slice] = [slice(None)] * 3
        for (low, high), (first, end) in zip(spans, inside, strict=True):
            for around in (slice(0, first - low), slice(end - low, high - low)):
                if around.start < around.stop:
                    block[(*key, around)] = 0
            key.append(slice(first - low, end - low))
        block[tuple(key)] = part
        return block

    def columns(self, x: ndarray, make: Make, piece: _Piece) -> ndarray:
        """The unfolded input: (groups, depth, results of all images), the depth in the order of `matrix`."""
        block, rank = self.read(x, make, piece), len(self.lines)
        steps, places = block.strides[3:], [high - low for low, high in piece.box]
        view = as_strided(
            block[self.first],
            (*block.shape[:3], *self.taps, *places),
            (*block.strides[:3], *map(mul, steps, self.reaches), *map(mul, steps, self.steps)),
        )
        images, groups, channels = view.shape[:3]
        depth, width = channels * prod(self.taps), images * prod(view.shape[3 + rank :])
        inner, outer = range(3, 3 + rank), range(3 + rank, 3 + 2 * rank)
        if self.last:
            view, shape = view.transpose(1, 0, *outer, *inner, 2), (groups, width, depth)
        else:
            view, shape = view.transpose(1, 2, *inner, *outer, 0), (groups, depth, width)
        found = _viewed(view, shape)
        if found is None:
            found = make(shape, self.kind)
            found.reshape(view.shape)[...] = view
        return found.swapaxes(1, 2) if self.last else found

    def matrix(self, weight: ndarray, make: Make = np.empty) -> ndarray:
        """Weights as (groups, rows, depth)."""
        if self.last:
            weight = np.moveaxis(weight, 2, -1)
        shape = (*weight.shape[:2], prod(weight.shape[2:]))
        found = _viewed(weight, shape) if weight.dtype == self.kind else None
        if found is None:
            found = make(shape, self.kind)
            found.reshape(weight.shape)[...] = weight
        return found

    def weights(self, matrix: ndarray, channels: int) -> ndarray:
        """The weights that `matrix` was made of."""
        if self.last:
            return np.moveaxis(matrix.reshape(*matrix.shape[:2], *self.taps, channels), -1, 2)
        return matrix.reshape(*matrix.shape[:2], channels, *self.taps)

    def new(self, make: Make, shape: Sequence[int]) -> tuple[ndarray, ndarray]:
        """Memory for results as (groups, rows, results of all images) and as (images, groups, rows, *box)."""
        images, groups, rows, *box = shape
        if self.last:
            made = make((groups, images, *box, rows), self.kind)
            return made.reshape(groups, images * prod(box), rows).swapaxes(1, 2), np.moveaxis(made, (0, -1), (1, 2))
        made = make((groups, rows, *box, images), self.kind)
        return made.reshape(groups, rows, prod(box) * images), np.moveaxis(made, -1, 0)

    def results(self, out: ndarray, piece: _Piece) -> tuple[ndarray, ndarray | None]:
        """The elements of `out` in a piece, and the same as (groups, rows, results) if that needs no copy."""
        part = out[(piece.images, piece.groups, piece.rows, *[slice(*ends) for ends in piece.box])]
        if part.shape[0] != 1 or part.dtype != self.kind:
            return part, None
        return part, _viewed(part[0], (*part.shape[1:3], prod(part.shape[3:])))

    @cached_property
    def pieces(self) -> list[_Piece]:
        """The pieces of a matrix product, or of depthwise sums."""
        results = prod(self.counts)
        if self.single:
            return self.single_pieces
        total = self.images * self.groups * results
        columns = CACHE // (self.kind.itemsize * (self.depth + self.rows))
        columns = max(min(columns, -(-total // _PIECES)), _LEAST)
        boxes = self.boxes(columns)
        groups = min(self.groups, max(columns // results, 1))
        images = min(self.images, max(columns // (results * groups), 1))
        parts: list[Any] = [boxes, _ranges(self.images, images), _ranges(self.groups, groups)]
        rows = self.rows
        while (
            prod(map(len, parts)) * -(-self.rows // rows) < _PIECES
            and rows >= 2 * _ROWS
            and min(results, columns) * groups * images * self.depth * rows >= 2 * _WORTH
        ):
            rows = -(-rows // 2)
        channels = slice(0, self.channels)
        return [_Piece(n, g, r, channels, box) for n, g, box, r in product(*parts[1:], boxes, _ranges(self.rows, rows))]

    @cached_property
    def single_pieces(self) -> list[_Piece]:
        """The pieces of depthwise sums."""
        results, total = prod(self.counts), prod(self.counts) * self.images * self.groups
        columns = max(min(_SINGLE // self.rows, -(-total // _PIECES)), _LEAST)
        if self.last:
            groups = min(self.groups, _TILE)
            boxes = self.boxes(columns // groups, max(_TILE // groups, 1))
        else:
            groups, boxes = min(self.groups, max(columns // results, 1)), self.boxes(columns)
        images = min(self.images, max(columns // (results * groups), 1))
        whole = slice(0, self.rows), slice(0, 1)
        ranges = _ranges(self.images, images), _ranges(self.groups, groups), boxes
        return [_Piece(n, g, *whole, box) for n, g, box in product(*ranges)]

    def runs(self, block: ndarray, box: Sequence[int]) -> tuple[str, ndarray]:
        """What each depthwise weight lies on in a block that was read, for a box of results, and einsum's letters.

        Shapes are (results, groups, images, *taps), with the results of an image in one run through the rows and what
        is between them; with the channels innermost (images, *box[:-1], results of all channels, *taps).
        """
        steps, taps = block.strides[3:], "xyz"[: len(box)]
        reach, begin = map(mul, steps, self.reaches), block[self.first]
        if self.last:
            shape = (len(block), *box[:-1], box[-1] * block.shape[1])
            strides, letters = (block.strides[0], *steps[:-1], block.itemsize), "m" + "ab"[: len(box) - 1] + "n"
        else:
            run = 1 + sum((count - 1) * (step // block.itemsize) for count, step in zip(box, steps, strict=True))
            shape = (run, *block.shape[1::-1])
            strides, letters = (block.itemsize, *block.strides[1::-1]), "ngm"
        return letters + taps, as_strided(begin, (*shape, *self.taps), (*strides, *reach))

    def single_weights(self, x: ndarray, out: ndarray, make: Make, piece: _Piece) -> ndarray:
        """The gradient of a piece's depthwise weights, (groups, rows, *taps)."""
        block, box = self.read(x, make, piece), [high - low for low, high in piece.box]
        letters, view = self.runs(block, box)
        part, taps, lead = self.results(out, piece)[0], letters[-len(box) :], letters[: -len(box)]
        if self.last:
            grad = make((len(part), *box, part.shape[1]), self.kind)
            grad[...] = np.moveaxis(part[:, :, 0], 1, -1)
            found = np.einsum(f"{letters},{lead}->{taps}n", view, grad.reshape(view.shape[: -len(box)]))
            return np.moveaxis(found.reshape(*self.taps, box[-1], 1, -1).sum(-3), (-1, -2), (0, 1))
        wide = [box[0], *block.shape[4:]]
        grad = make((*part.shape[:3], prod(wide)), self.kind)
        grad[...] = 0
        grad.reshape(*part.shape[:3], *wide)[last([slice(count) for count in box])] = part
        grad = grad[..., : len(view)][(..., *[None] * len(box), slice(None))]
        return np.add.reduce(np.vecdot(np.moveaxis(view, 0, -1).swapaxes(0, 1)[:, :, None], grad), 0)

    def summed(self, x: ndarray, make: Make, piece: _Piece, weight: ndarray) -> ndarray:
        """The depthwise sums of a piece, (images, groups, rows, *box)."""
        block, box = self.read(x, make, piece), [high - low for low, high in piece.box]
        letters, view = self.runs(block, box)
        images, groups = block.shape[:2]
        taps = letters[-len(box) :]
        if self.last:
            total = make((images, *box, groups), self.kind)
            weight = np.repeat(np.moveaxis(weight[:, 0], 0, -1)[..., None, :], box[-1], -2).reshape(*self.taps, -1)
            given = f"{letters},{taps}n->{letters[: -len(box)]}"
            np.einsum(given, view, weight, out=total.reshape(view.shape[: -len(box)]))
            return np.moveaxis(total[..., None], (-2, -1), (1, 2))
        # in Fortran's order: the results are innermost, or else it would be the taps, which take ten times as long
        wide = [box[0], *block.shape[4:]]
        total = make((images, groups, self.rows, prod(wide)), self.kind)
        given = f"{letters},gr{taps}->nrgm"
        np.einsum(given, view, weight, out=total.transpose(3, 2, 1, 0)[: len(view)], order="F")
        return total.reshape(images, groups, self.rows, *wide)[last([slice(count) for count in box])]


_planned = lru_cache(256)(_Correlation)


def correlate(
    out: ndarray,
    x: ndarray,
    weight: ndarray,
    bias: ndarray | None,
    lines: Sequence[Line],
    kind: np.dtype[Any],
    after: Body | None = None,
) -> None:
    """`out = after(bias + the correlation of x with weight)`; `out` is (images, groups, rows, *results).

    Args:
        bias: (groups, rows), of the dtype `kind` to compute in.
    """
    if not out.size:
        return
    if not weight.size:
        out[...] = 0 if bias is None else bias[(..., *[None] * len(lines))]
        if after is not None:
            out[...] = after(out.astype(kind))
        return
    whole = _planned((x.shape, x.strides), (out.shape, out.strides), tuple(lines), kind)
    x, out = x.reshape(whole.shapes[0]), out.reshape(whole.shapes[1])
    weight = weight.reshape(*weight.shape[:3], *whole.taps)
    pieces = whole.pieces
    # copied by the pieces, if each is the only one that takes its part
    shared = len({(piece.groups.start, piece.rows.start) for piece in pieces}) < len(pieces)
    if whole.single:
        matrix = weight[:, :, 0].astype(kind, copy=False)
    elif shared:
        matrix = whole.matrix(weight)

    def run(index: int, _: int) -> None:
        piece = pieces[index]
        with scratch() as make:
            part, flat = whole.results(out, piece)
            if whole.single:
                total = whole.summed(x, make, piece, matrix[piece.groups])
                if bias is not None:
                    np.add(total, bias[(piece.groups, piece.rows, *[None] * len(piece.box))], out=total)
                part[...] = total if after is None else after(total)
                return
            total, seen = (flat, part) if flat is not None else whole.new(make, part.shape)
            here = piece.groups, piece.rows
            np.matmul(
                matrix[here] if shared else whole.matrix(weight[here], make), whole.columns(x, make, piece), out=total
            )
            if bias is not None:
                np.add(total, bias[piece.groups, piece.rows, None], out=total)
            if after is not None:
                part[...] = after(seen)
            elif seen is not part:
                part[...] = seen

    in_pieces(run, len(pieces), 1)


def is_spread(x: ndarray, weight: ndarray, kind: np.dtype[Any]) -> bool:
    """True if a transposed convolution is computed by `spread`: the weights are more than their products with x.

    Args:
        x: (images, groups, channels, *sizes). weight: (groups, channels, rows, *taps).
    """
    matrix = _viewed(weight, (*weight.shape[:2], prod(weight.shape[2:])))
    many = x.shape[0] * prod(x.shape[3:]) < x.shape[2]
    return many and x.size > 0 and weight.size >= _WORTH >> 6 and weight.dtype == kind and matrix is not None


def spread(
    out: ndarray,
    x: ndarray,
    weight: ndarray,
    bias: ndarray | None,
    geometry: Sequence[tuple[int, int, int]],
    after: Body | None = None,
) -> None:
    """A transposed convolution that multiplies the weights where they lie, in half of the time of the correlations,
    which need them in another order; the products are added at their places.

    Args:
        out: (images, groups, rows, *results). x, weight: as for `is_spread`. bias: (groups, rows).
        geometry: stride, padding and dilation of each dimension.
    """
    images, groups, channels, *sizes = x.shape
    rows, taps = weight.shape[2], weight.shape[3:]
    columns = np.moveaxis(x, 0, -1).reshape(groups, channels, -1)
    each = max(-(-rows // _PIECES), min(rows, _ROWS // 4))
    pieces = list(product(range(groups), _ranges(rows, each)))
    lengths = [
        max((count - 1) * step + (kernel - 1) * gap + 1, around + size)
        for count, kernel, size, (step, around, gap) in zip(sizes, taps, out.shape[3:], geometry, strict=True)
    ]
    inside = [slice(around, around + size) for size, (_, around, _) in zip(out.shape[3:], geometry, strict=True)]

    def run(index: int, _: int) -> None:
        group, some = pieces[index]
        with scratch() as make:
            count = some.stop - some.start
            products: Any = make((count * prod(taps), columns.shape[2]), x.dtype)
            np.matmul(weight[group, :, some].reshape(channels, -1).T, columns[group], out=products)
            products, total = (
                products.reshape(count, *taps, *sizes, images),
                np.zeros((count, *lengths, images), x.dtype),
            )
            for tap in product(*map(range, taps)):
                along = zip(tap, sizes, geometry, strict=True)
                where = [slice(k * gap, k * gap + (size - 1) * step + 1, step) for k, size, (step, _, gap) in along]
                total[(slice(None), *where)] += products[(slice(None), *tap)]
            total = total[(slice(None), *inside)]
            if bias is not None:
                total = total + bias[(group, some, *[None] * (len(taps) + 1))]
            out[:, group, some] = np.moveaxis(total if after is None else after(total), -1, 0)

    in_pieces(run, len(pieces), 1)


def correlate_weights(
    out: ndarray, x: ndarray, grad: ndarray, lines: Sequence[Line], kind: np.dtype[Any], depthwise: bool = True
) -> None:
    """The gradient of a correlation's weights, in `out`, from that of its results.

    The images are summed in order, or in some parts of which each is summed in order.
    """
    if not out.size or not grad.size:
        out[...] = 0
        return
    depthwise = depthwise and kind.kind == "f"
    whole = _planned((x.shape, x.strides), (grad.shape, grad.strides), tuple(lines), kind, depthwise)
    x, grad, shape = x.reshape(whole.shapes[0]), grad.reshape(whole.shapes[1]), (*out.shape[:3], *whole.taps)
    if whole.single:
        out.reshape(shape)[:, :, 0] = _single_weights(whole, x, grad)
        if not whole.last and not np.isfinite(out).all():  # zeros between rows were multiplied with what is not finite
            correlate_weights(out, x, grad, lines, kind, depthwise=False)
        return
    taps = prod(whole.taps)
    results = prod(whole.counts)
    # some channels, or groups, in each piece; and then parts of the sum, whose results fit into half of the operands
    channels = min(whole.channels, max(_WEIGHTS // taps, 1))
    groups = min(whole.groups, max(_WEIGHTS // (whole.channels * taps), 1))
    columns = max(CACHE // (kind.itemsize * (whole.rows + channels * taps) * groups), _LEAST)
    images = min(whole.images, max(columns // results, 1))
    steps = list(product(_ranges(whole.images, images), whole.boxes(columns)))
    if len(steps) < _PIECES:
        channels = min(channels, max(-(-whole.channels // _PIECES), -(-_ROWS // taps)))
    places = list(product(_ranges(whole.groups, groups), _ranges(whole.channels, channels)))
    cost = results * whole.images * whole.groups * whole.rows * whole.depth
    parts = min(-(-_PIECES // len(places)), len(steps), cost // _WORTH, (x.size + grad.size) // (2 * out.size))
    spans = _ranges(len(steps), -(-len(steps) // max(parts, 1)))
    direct = len(spans) == 1 and out.dtype == kind
    sums = out.reshape(1, *shape) if direct else np.empty((len(spans), *shape), kind)

    def run(index: int, _: int) -> None:
        span, (g, c) = spans[index // len(places)], places[index % len(places)]
        rows, place = slice(0, whole.rows), sums[index // len(places), g, :, c]
        depth = (c.stop - c.start) * taps
        with scratch() as make:
            if len(steps) == 1 and not whole.last:
                flat = _viewed(place, (*place.shape[:2], depth))
                if flat is not None:
                    gradient, columns = _operands(whole, x, grad, make, _Piece(steps[0][0], g, rows, c, steps[0][1]))
                    np.matmul(gradient, columns.swapaxes(1, 2), out=flat)
                    return
            # the columns come first in the product, which OpenBLAS computes in 0.8 of the time
            total, once = (make((g.stop - g.start, depth, whole.rows), kind) for _ in range(2))
            used = make.used
            for number, (n, box) in enumerate(steps[span]):
                make.used = used
                gradient, columns = _operands(whole, x, grad, make, _Piece(n, g, rows, c, box))
                np.matmul(columns, gradient.swapaxes(1, 2), out=once if number else total)
                if number:
                    np.add(total, once, out=total)
            place[...] = whole.weights(total.swapaxes(1, 2), c.stop - c.start)

    in_pieces(run, len(spans) * len(places), 1)
    if not direct:
        out.reshape(shape)[...] = sums[0] if len(spans) == 1 else np.add.reduce(sums, 0)


def _operands(whole: _Correlation, x: ndarray, grad: ndarray, make: Any, piece: _Piece) -> tuple[ndarray, ndarray]:
    """The gradient of a piece's results, (groups, rows, results), and what they were made of."""
    part, flat = whole.results(grad, piece)
    if flat is None:
        flat, seen = whole.new(make, part.shape)
        seen[...] = part
    return flat, whole.columns(x, make, piece)


def _single_weights(whole: _Correlation, x: ndarray, grad: ndarray) -> ndarray:
    """The gradient of depthwise weights, (groups, rows, *taps)."""
    pieces = whole.single_pieces
    steps = {key: index for index, key in enumerate(dict.fromkeys((each.images.start, each.box) for each in pieces))}
    sums = np.empty((len(steps), whole.groups, whole.rows, *whole.taps), whole.kind)

    def run(index: int, _: int) -> None:
        piece = pieces[index]
        with scratch() as make:
            sums[steps[piece.images.start, piece.box], piece.groups] = whole.single_weights(x, grad, make, piece)

    in_pieces(run, len(pieces), 1)
    return np.asarray(np.add.reduce(sums, 0))
