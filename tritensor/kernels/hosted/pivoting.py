"""Factorisations that NumPy does not have, LAPACK's getrf, sytrf and sytrs on stacks, and QR of large matrices.

SciPy's LAPACK is called where it is installed and a matrix is large enough to pay for a call of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

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


def orthogonal(a: ndarray, mode: str) -> Any:
    """`np.linalg.qr`, which computes in float64 always and takes 20 ms for 256 rows, of which SciPy's takes 1.6."""
    routine = _lapack("geqrf", a)
    if routine is None:
        return np.linalg.qr(a, mode)  # type: ignore[call-overload]
    form, (m, n) = _lapack("ungqr" if a.dtype.kind == "c" else "orgqr", a), a.shape[-2:]
    width = m if mode == "complete" else min(m, n)
    q, r = np.zeros((*a.shape[:-2], m, width), a.dtype), np.empty((*a.shape[:-2], width, n), a.dtype)
    for place in np.ndindex(a.shape[:-2]):
        packed, tau, *_ = routine(a[place], lwork=64 * n)
        r[place] = np.triu(packed[:width])
        if mode != "r":
            q[place][:, : min(m, n)] = packed[:, : min(m, n)]
            q[place] = form(q[place], tau, lwork=64 * width)[0]
    return r if mode == "r" else (q, r)


# ---- symmetric matrices ---------------------------------------------------------------------------------------


def symmetric(a: ndarray, hermitian: bool) -> tuple[ndarray, ndarray, ndarray]:
    """L D L^T (hermitian: L D L^H) of the lower triangle in LAPACK's form, the pivots, and the first zero one or 0."""
    conjugate = hermitian and a.dtype.kind == "c"
    found = np.tril(_stack(a))
    pivots, info = np.empty(found.shape[:-1], np.int32), np.zeros(len(found), np.int32)
    routine = _lapack("hetrf" if conjugate else "sytrf", a)
    for i, matrix in enumerate(found):
        if routine is not None:
            found[i], pivots[i], info[i] = routine(matrix, lower=1)
            continue
        if conjugate:
            np.fill_diagonal(matrix, matrix.diagonal().real)
        above = np.tril(matrix, -1).T
        matrix += above.conj() if conjugate else above
        info[i] = _bunch_kaufman(matrix, pivots[i])
    return np.tril(found).reshape(a.shape), pivots.reshape(a.shape[:-1]), info.reshape(a.shape[:-2])


def _bunch_kaufman(a: ndarray, pivots: ndarray) -> int:
    """LAPACK's sytf2 (hetf2), in place, of a matrix with both triangles; the first zero pivot, counted from 1, or 0."""
    info = k = 0
    while k < len(a):
        rest = a[k:, k:]
        step, chosen, sizes = 1, 0, _size(rest[:, 0])
        head, most = sizes[0], sizes[1:].max(initial=0)
        if max(head, most) == 0 or np.isnan(head):
            info = info or k + 1
        elif head < _ALPHA * most:
            row = 1 + int(sizes[1:].argmax())
            sizes = _size(rest[row])
            beside = np.delete(sizes, row).max()
            if head < _ALPHA * most * (most / beside):
                chosen, step = row, 1 if sizes[row] >= _ALPHA * beside else 2
        pair = [step - 1, chosen]
        rest[pair] = rest[pair[::-1]]
        rest[:, pair] = rest[:, pair[::-1]]
        if rest[0, 0] != 0 or step == 2:
            factor = np.linalg.solve(rest[:step, :step].T, rest[step:, :step].T).T
            rest[step:, step:] -= factor @ rest[:step, step:]
            rest[step:, :step] = factor
        pivots[k : k + step] = (k + chosen + 1) * (3 - 2 * step)  # negative where two rows are one pivot
        k += step
    return info


def solved_symmetric(ld: ndarray, pivots: ndarray, b: ndarray, hermitian: bool) -> ndarray:
    """X of A X = B, from what `symmetric` made of A; batches broadcast."""
    batch = np.broadcast_shapes(ld.shape[:-2], b.shape[:-2])
    found = _stack(np.broadcast_to(b, batch + b.shape[-2:]))
    orders = np.broadcast_to(pivots, batch + pivots.shape[-1:]).reshape(found.shape[:-1])
    mirrored = np.conj if hermitian else np.asarray
    for a, order, x in zip(_stack(np.broadcast_to(ld, batch + ld.shape[-2:])), orders, found, strict=True):
        blocks = list(_blocks(order))
        for k, end, pair in blocks:
            x[pair] = x[pair[::-1]]
            x[end:] -= a[end:, k:end] @ x[k:end]
            block = a[k:end, k:end]
            x[k:end] = np.linalg.solve(block + mirrored(np.tril(block, -1)).T, x[k:end])
        for k, end, pair in reversed(blocks):
            x[k:end] -= mirrored(a[end:, k:end]).T @ x[end:]
            x[pair] = x[pair[::-1]]
    return found.reshape(batch + b.shape[-2:])


def _blocks(pivots: ndarray) -> Iterator[tuple[int, int, list[int]]]:
    """Where each block of D begins and ends, and its last row and the one that was exchanged with it."""
    k = 0
    while k < len(pivots):
        end = k + 1 + int(pivots[k] < 0)
        yield k, end, [end - 1, abs(int(pivots[k])) - 1]
        k = end
