"""One step of Adafactor on the CPU, with one block of scratch memory: 25 operators of stacks take twice as long."""

from __future__ import annotations

from math import sqrt

import numpy as np

from ...host.threads import dot

ndarray = np.ndarray


def _size(x: ndarray) -> float:
    """The root of the mean square."""
    flat = x.reshape(-1)
    return sqrt(dot(flat, flat) / max(flat.size, 1))


def _join(mean: ndarray, square: ndarray, share: float) -> None:
    """Let a share of the squares join their mean, in place."""
    square -= mean
    square *= share
    mean += square


def step_factored(
    param: ndarray,
    grad: ndarray,
    means: list[ndarray],
    share: float,
    least: float,
    smallest: float,
    d: float,
    rate: float,
    shrink: float,
) -> None:
    """Change a parameter and the means of its squares: of rows and columns, or of each element of a vector.

    Args:
        rate: relative to the parameter's size; negative to maximise. The others are as for `optim.Adafactor`.
    """
    t = np.multiply(grad, grad, out=np.empty_like(grad))
    rate *= max(smallest, _size(param))
    if len(means) == 2:
        row, column = means
        by_row = np.add.reduce(t, -1, keepdims=True)
        _join(column, np.multiply(np.add.reduce(t, -2, keepdims=True), 1 / t.shape[-2]), share)
        _join(row, np.multiply(by_row, 1 / t.shape[-1]), share)
        mean = np.add.reduce(row, -2, keepdims=True) / row.shape[-2]
        np.multiply(row / np.maximum(mean, least), column, out=t)
    else:
        _join(means[0], t, share)
        np.copyto(t, means[0])
    np.maximum(t, least * least, out=t)
    np.sqrt(t, out=t)
    np.divide(grad, t, out=t)
    np.multiply(t, rate / max(1.0, _size(t) / d), out=t)
    if shrink != 1:
        np.multiply(param, shrink, out=param)
    np.subtract(param, t, out=param)
