"""Factorisations by elimination with pivots, which NumPy does not have: LAPACK's getrf, sytrf and sytrs on stacks.

SciPy's LAPACK is called where it is installed and a matrix is large enough to pay for a call of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

__all__ = ["eliminated", "permuted", "solved_symmetric", "symmetric"]

ndarray = np.ndarray

_BLOCK = 32
# Of 64 rows getrf takes 0.07 ms and the blocks below 1 ms; of stacks of smaller ones the blocks compute all at once.
_LARGE = 64
_ALPHA = (1 + 17**0.5) / 8  # the bound of Bunch and Kaufman's choice of pivots


def _lapack(name: str, a: ndarray) -> Any:
    """SciPy's routine for large matrices; None without SciPy."""
    if min(a.shape[-2:]) < _LARGE:
        return None
    try:
        from scipy.linalg import get_lapack_funcs
    except ImportError:
        return None
    return get_lapack_funcs(name, (a,))


def _stack(a: ndarray) -> ndarray:
    """A copy with all dimensions of the batch as one."""
    return np.array(a, order="C").reshape(int(np.prod(a.shape[:-2])), *a.shape[-2:])


def _size(a: ndarray) -> ndarray:
    """What LAPACK compares complex numbers by."""
    return abs(a.real) + abs(a.imag) if a.dtype.kind == "c" else abs(a)


def eliminated(a: ndarray) -> tuple[ndarray, ndarray, ndarray]:
    """LU with row pivots: both factors in one matrix, the pivots counted from 1, and the first that is zero or 0."""
    found, (m, n) = _stack(a), a.shape[-2:]
    count, size = len(found), min(m, n)
    pivots, info = np.empty((count, size), np.int32), np.zeros(count, np.int32)
    routine = _lapack("getrf", a)
    if routine is not None:
        for i in range(count):
            found[i], pivots[i], info[i] = routine(found[i])
        pivots += 1
    each = np.arange(count)
    for start in range(0, size if routine is None else 0, _BLOCK):
        stop = min(start + _BLOCK, size)
        for j in range(start, stop):
            chosen = _size(found[:, j:, j]).argmax(-1) + j
            pivots[:, j] = chosen + 1
            found[each, chosen], found[:, j] = found[:, j].copy(), found[each, chosen]
            head = found[:, j, j]
            info[(head == 0) & (info == 0)] = j + 1
            found[:, j + 1 :, j] /= np.where(head == 0, 1, head)[:, None]
            found[:, j + 1 :, j + 1 : stop] -= found[:, j + 1 :, j, None] * found[:, j, None, j + 1 : stop]
        if stop < n:
            lower = np.tril(found[:, start:stop, start:stop], -1) + np.eye(stop - start, dtype=a.dtype)
            found[:, start:stop, stop:] = np.linalg.solve(lower, found[:, start:stop, stop:])
            found[:, stop:, stop:] -= found[:, stop:, start:stop] @ found[:, start:stop, stop:]
    return found.reshape(a.shape), pivots.reshape(*a.shape[:-2], size), info.reshape(a.shape[:-2])


def permuted(pivots: ndarray, size: int) -> ndarray:
    """The order of rows that exchanging row i and row pivots[i] - 1, for each i in turn, leads to."""
    flat = pivots.reshape(int(np.prod(pivots.shape[:-1])), pivots.shape[-1])
    order, each = np.tile(np.arange(size), (len(flat), 1)), np.arange(len(flat))
    for i in range(flat.shape[-1]):
        other = flat[:, i] - 1
        order[each, other], order[:, i] = order[:, i].copy(), order[each, other]
    return order.reshape(*pivots.shape[:-1], size)


# ---- symmetric matrices ---------------------------------------------------------------------------------------


def symmetric(a: ndarray, hermitian: bool) -> tuple[ndarray, ndarray, ndarray]:
    """L D L^T (hermitian: L D L^H) of the lower triangle in LAPACK's form, the pivots, and the first zero one or 0."""
    conjugate = hermitian and a.dtype.kind == "c"
    found = np.tril(_stack(a))
    pivots, info = np.empty(found.shape[:-1], np.int32), np.zeros(len(found), np.int32)
    routine = _lapack("hetrf" if conjugate else "sytrf", a)
    for i, matrix in enumerate(found):
        if routine is None:
            info[i] = _bunch_kaufman(matrix, pivots[i], conjugate)
        else:
            found[i], pivots[i], info[i] = routine(matrix, lower=1)
    return np.tril(found).reshape(a.shape), pivots.reshape(a.shape[:-1]), info.reshape(a.shape[:-2])


def _bunch_kaufman(a: ndarray, pivots: ndarray, conjugate: bool) -> int:
    """LAPACK's sytf2 (hetf2) on the lower triangle, in place; returns the first zero pivot, counted from 1, or 0."""
    n, info, k = len(a), 0, 0
    mirrored = np.conj if conjugate else np.array  # copies both
    while k < n:
        step, chosen = 1, k
        if conjugate:
            a[k, k] = a[k, k].real
        column = _size(a[k + 1 :, k])
        head, most = _size(a[k, k]), column.max(initial=0)
        if max(head, most) == 0 or np.isnan(head):
            info = info or k + 1
        elif head < _ALPHA * most:
            row = k + 1 + int(column.argmax())
            beside = np.concatenate([_size(a[row, k:row]), _size(a[row + 1 :, row])]).max()
            if head < _ALPHA * most * (most / beside):
                chosen = row
                step = 1 if _size(a[row, row]) >= _ALPHA * beside else 2
        last, end = k + step - 1, k + step
        if chosen != last:
            below = slice(chosen + 1, n)
            a[below, last], a[below, chosen] = a[below, chosen].copy(), a[below, last].copy()
            between = slice(last + 1, chosen)
            a[between, last], a[chosen, between] = mirrored(a[chosen, between]), mirrored(a[between, last])
            a[chosen, last] = mirrored(a[chosen, last])
            a[last, last], a[chosen, chosen] = a[chosen, chosen], a[last, last]
            if step == 2:
                a[k + 1, k], a[chosen, k] = a[chosen, k], a[k + 1, k]
        if a[k, k] != 0 or step == 2:
            factor = np.linalg.solve(_diagonal_block(a, k, end, mirrored).T, a[end:, k:end].T).T
            a[end:, end:] -= np.tril(factor @ mirrored(a[end:, k:end]).T)
            a[end:, k:end] = factor
        pivots[k:end] = chosen + 1 if step == 1 else -(chosen + 1)
        k = end
    return info


def _diagonal_block(a: ndarray, k: int, end: int, mirrored: Any) -> ndarray:
    """A block of D, of which the lower triangle is in the matrix."""
    block = a[k:end, k:end].copy()
    if end - k == 2:
        block[0, 1] = mirrored(block[1, 0])
    return block


def solved_symmetric(ld: ndarray, pivots: ndarray, b: ndarray, hermitian: bool) -> ndarray:
    """X of A X = B, from what `symmetric` made of A; batches broadcast."""
    batch = np.broadcast_shapes(ld.shape[:-2], b.shape[:-2])
    ld, pivots = np.broadcast_to(ld, batch + ld.shape[-2:]), np.broadcast_to(pivots, batch + pivots.shape[-1:])
    found = _stack(np.broadcast_to(b, batch + b.shape[-2:]))
    conjugate = hermitian and ld.dtype.kind == "c"
    orders = pivots.reshape(found.shape[:-1])
    for a, order, x in zip(_stack(ld), orders, found, strict=True):
        mirrored = np.conj if conjugate else np.array  # copies both
        blocks = list(_blocks(order))
        for k, end, chosen in blocks:
            x[[end - 1, chosen]] = x[[chosen, end - 1]]
            x[end:] -= a[end:, k:end] @ x[k:end]
            x[k:end] = np.linalg.solve(_diagonal_block(a, k, end, mirrored), x[k:end])
        for k, end, chosen in reversed(blocks):
            x[k:end] -= mirrored(a[end:, k:end]).T @ x[end:]
            x[[end - 1, chosen]] = x[[chosen, end - 1]]
    return found.reshape(batch + b.shape[-2:])


def _blocks(pivots: ndarray) -> Iterator[tuple[int, int, int]]:
    """Where each block of D begins and ends, and the row that its last one was exchanged with."""
    k = 0
    while k < len(pivots):
        end = k + 1 + (pivots[k] < 0)
        yield k, end, abs(int(pivots[k])) - 1
        k = end
