"""Transposed convolutions of few places on the CPU: weights are multiplied where they lie, and the products added."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from ...host.threads import in_pieces
from ..scratch import scratch
from .convolution_reference import PIECES, ROWS, WORTH, Body, slices_of, viewed

ndarray = np.ndarray


def is_spread(x: ndarray, weight: ndarray, kind: np.dtype[Any]) -> bool:
    """True if a transposed convolution is computed by `spread`: the weights are more than their products with x.

    Args:
        x: (images, groups, channels, *sizes). weight: (groups, channels, rows, *taps).
    """
    matrix = viewed(weight, (*weight.shape[:2], prod(weight.shape[2:])))
    many = x.shape[0] * prod(x.shape[3:]) < x.shape[2]
    return many and x.size > 0 and weight.size >= WORTH >> 6 and weight.dtype == kind and matrix is not None


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
    each = max(-(-rows // PIECES), min(rows, ROWS // 4))
    pieces = list(product(range(groups), slices_of(rows, each)))
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
