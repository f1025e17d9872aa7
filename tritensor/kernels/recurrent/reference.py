"""The steps on the CPU: rows of the batch are shared out to threads, each of which goes through all steps with its own.

A sigmoid is computed as (1 + tanh(x / 2)) / 2, so that all gates of a step are one call of tanh: 12 us for 32x1024
numbers, where exp takes 15, and the divisions 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...host.threads import in_pieces
from ..matmul.reference import multiply
from .order import Sizes, steps

ndarray = np.ndarray
GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}
_SIGMOIDS = {"lstm": (0, 1, 3), "gru": (0, 1), "tanh": (), "relu": ()}
# Rows of the batch in a piece: a product of 32x256x1024 takes 0.21 ms, one of half as many rows 0.13.
_ROWS, _FEWEST = 32, 8
# Products of a batch that is not worth a second thread.
_SMALL = 1 << 20


def _by_rows(run: Callable[[int, int], None], sizes: Sizes, weight: ndarray) -> None:
    """Call `run` with ranges of the batch's rows."""
    count = sizes[0]
    small = sum(sizes) * weight.size < _SMALL
    in_pieces(run, count, max(count, 1) if small else _ROWS if count >= 2 * _ROWS else max(-(-count // 2), _FEWEST))


def _within(sizes: Sizes, reverse: bool, first: int, last: int) -> Iterator[tuple[slice, int]]:
    """For each step the rows that belong to a range of the batch's, where there are any, and their number."""
    for start, count, _, _ in steps(sizes, reverse):
        here = min(count, last) - first
        if here > 0:
            yield slice(start + first, start + first + here), here


def _rounded(array: ndarray, kind: np.dtype | None) -> None:
    """Round to half precision what a device multiplies in half precision."""
    if kind is not None:
        array[...] = array.astype(kind)


def forward(mode: str, half, x, h, w, u, b=None, d=None, c=None, projection=None, *, sizes=(), reverse: bool = False):
    """States; cells of LSTM, what is reset of GRU; and gates."""
    several, kind = GATES[mode], x.dtype
    wide, units, gru = len(u), len(u) // several, mode == "gru"
    shift = np.zeros(wide, kind)  # of what tanh gives, in sigmoids
    for gate in _SIGMOIDS[mode]:
        shift[gate * units : (gate + 1) * units] = 0.5
    factor = 1 - shift
    b, d = (None if bias is None else bias * factor for bias in (b, d))
    bias = b if d is None or gru else d if b is None else b + d
    gates, turned = multiply(x, (w * factor[:, None]).T, bias), np.multiply(u.T, factor, order="C")
    out, kept = np.empty((len(x), u.shape[1]), kind), np.empty((len(x) if several > 1 else 0, units), kind)

    def run(first: int, last: int) -> None:
        state, products, buffer = h[first:last].copy(), *(np.empty((last - first, n), kind) for n in (wide, units))
        cells = c[first:last].copy() if mode == "lstm" else state
        for rows, count in _within(sizes, reverse, first, last):
            gate, old, cell, t = gates[rows], state[:count], cells[:count], buffer[:count]
            product = np.matmul(old, turned, out=products[:count])
            if gru:
                if d is not None:
                    product += d
                both, new, reset = gate[:, : 2 * units], gate[:, 2 * units :], product[:, 2 * units :]
                both += product[:, : 2 * units]
                np.tanh(both, out=both)
                both *= 0.5
                both += 0.5
                kept[rows] = reset
                new += np.multiply(gate[:, :units], reset, out=t)
                old -= np.tanh(new, out=new)
                old *= gate[:, units : 2 * units]
                old += new
            elif mode == "lstm":
                gate += product
                np.tanh(gate, out=gate)
                gate *= factor
                gate += shift
                i, f, g, o = gate.reshape(count, 4, units).swapaxes(0, 1)
                cell *= f
                cell += np.multiply(i, g, out=t)
                kept[rows] = cell
                np.multiply(np.tanh(cell, out=t), o, out=t if projection is not None else old)
                if projection is not None:
                    _rounded(t, half)
                    np.matmul(t, projection.T, out=old)
            else:
                gate += product
                np.tanh(gate, out=old) if mode == "tanh" else np.maximum(gate, 0, out=old)
            if half is not None:
                _rounded(old, half)
            out[rows] = old

    _by_rows(run, sizes, u)
    return out, kept, gates if several > 1 else gates[:0]


def backward(
    mode,
    half,
    gates,
    u,
    kept=None,
    before=None,
    grad=None,
    grad_cells=None,
    projection=None,
    *,
    sizes=(),
    reverse=False,
):
    """The gradients of the gates, before their functions; what goes to the first cells or, but for the product, to the
    first states; and the gradients of GRU's products or of projected states."""
    several, kind, (wide, states) = GATES[mode], gates.dtype, u.shape
    units, gru = wide // several, mode == "gru"
    found, carried = np.empty((len(gates), wide), kind), np.zeros((sizes[0] if several > 1 else 0, units), kind)
    third = np.empty((len(gates) if gru or projection is not None else 0, wide if gru else states), kind)

    def run(first: int, last: int) -> None:
        to_states, buffers = np.zeros((last - first, states), kind), np.empty((2, last - first, units), kind)
        for rows, count in _within(sizes, not reverse, first, last):
            state, own, (t, v) = to_states[:count], carried[first : first + count], buffers[:, :count]
            gate, part = gates[rows], found[rows]
            if grad is not None:
                state += grad[rows]
            if several == 1:
                np.multiply(state, 1 - gate * gate if mode == "tanh" else gate > 0, out=part)
                _rounded(part, half)
                np.matmul(part, u, out=state)
                continue
            # the sigmoids' slopes
            np.multiply(np.subtract(1, gate, out=part), gate, out=part)
            parts = [part[:, each * units : (each + 1) * units] for each in range(several)]
            if gru:
                r, z, n = gate.reshape(count, 3, units).swapaxes(0, 1)
                state += own
                np.multiply(np.subtract(before[rows], n, out=v), state, out=v)
                parts[1] *= v
                np.multiply(state, z, out=own)
                np.subtract(1, np.square(n, out=v), out=v)
                np.multiply(np.subtract(state, own, out=state), v, out=parts[2])
                parts[0] *= np.multiply(parts[2], kept[rows], out=v)
                third[rows] = part
                third[rows, 2 * units :] *= r
                part = third[rows]
            else:
                if projection is not None:
                    _rounded(state, half)
                    third[rows] = state
                    state = np.matmul(state, projection)
                i, f, g, o = gate.reshape(count, 4, units).swapaxes(0, 1)
                np.multiply(state, np.tanh(kept[rows], out=t), out=v)
                parts[3] *= v
                v *= t
                own += np.multiply(np.subtract(state, v, out=v), o, out=v)
                if grad_cells is not None:
                    own += grad_cells[rows]
                parts[0] *= np.multiply(own, g, out=t)
                parts[1] *= np.multiply(own, before[rows], out=t)
                np.multiply(np.multiply(own, i, out=t), np.square(g, out=v), out=v)
                np.subtract(t, v, out=parts[2])
                own *= f
            _rounded(part, half)
            np.matmul(part, u, out=to_states[:count])

    _by_rows(run, sizes, u)
    return found, carried, third
