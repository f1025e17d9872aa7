"""Systems of equations with a triangular matrix: blocks of rows by substitution, what is left of them by products."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...memory import buffer
from ...memory.array import DeviceArray
from ...operators import Operator, Shapes
from ...operators.lifting.batching import in_front
from ...operators.rules import Rule
from ...runtime.call import Call
from ...types import layout

# Rows that are solved one by one; more are products, which BLAS computes.
_BLOCK = 64


class Triangular(Operator):
    """X of A @ X = B, where only one triangle of A is read."""

    family = "triangular"
    about = "Blocks of rows by substitution, what is left of them by products on tensor cores."
    batched = staticmethod(in_front)
    repeatable = True
    deferrable = False  # NumPy says how the results are laid out
    holomorphic = False

    def __init__(self, name: str, rule: Rule, reference: Callable[..., Any] | None = None) -> None:
        super().__init__(name, reference or _substituted, rule)
        self.samples(_samples)

    def allocate(self, call: Call) -> Shapes:
        """The shape of B, with the batches of both."""
        a, b = (x.shape for x in call.arrays)
        return [((*layout.broadcast_shapes(a[:-2], b[:-2]), *b[-2:]), call.results[0].numpy)]

    def launch(self, call: Call) -> None:
        """A program for each matrix and block of columns of B."""
        from .kernel import launch_substitution

        a, b, out = *call.arrays, call.outs[0]
        options = dict(call.metadata)
        if options.pop("left"):
            launch_substitution(out, a, b, **options)
        else:  # X @ A = B is A^T @ X^T = B^T
            options["upper"] = not options["upper"]
            launch_substitution(_turned(out), _turned(a), _turned(b), **options)

    def terms(self, call: Call) -> int:
        """The number of rows of A."""
        return max(1, int(call.arrays[0].shape[-1]))


class OfFactors(Triangular):
    """X of (A @ A^H) @ X = B, with `upper` of (A^H @ A) @ X = B, where one triangle of A is read: two substitutions."""

    def __init__(self, name: str, rule: Rule) -> None:
        super().__init__(name, rule, _cholesky_solved)

    def launch(self, call: Call) -> None:
        """One after the other."""
        from .kernel import launch_substitution

        a, b, out = *call.arrays, call.outs[0]
        between = buffer.empty(out.shape, out.dtype, out.device)
        lower = _turned(a) if call.metadata["upper"] else a
        launch_substitution(between, lower, b, upper=False)
        launch_substitution(out, _turned(lower), between, upper=True)


def _turned(x: DeviceArray) -> DeviceArray:
    """The matrices transposed."""
    return x.transpose((*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _cholesky_solved(A, B, *, upper: bool = False):
    """X of (A @ A^H) @ X = B, with `upper` of (A^H @ A) @ X = B, from one triangle of A."""
    lower = A.conj().mT if upper else A
    return _substituted(lower.conj().mT, _substituted(lower, B), upper=True)


def _substituted(A, B, *, upper: bool = False, left: bool = True, unitriangular: bool = False):
    """X of A @ X = B (X @ A = B unless `left`), where one triangle of A is read, with `unitriangular` without its
    diagonal, which is taken for ones."""
    if not left:
        return _substituted(A.mT, B.mT, upper=not upper, unitriangular=unitriangular).mT
    size, batch = A.shape[-1], np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    x = np.array(np.broadcast_to(B, (*batch, *B.shape[-2:])), order="C")
    starts = range(0, size, _BLOCK)
    for start in reversed(starts) if upper else starts:
        stop = min(start + _BLOCK, size)
        done = slice(stop, size) if upper else slice(0, start)
        if done.start < done.stop:
            x[..., start:stop, :] -= A[..., start:stop, done] @ x[..., done, :]
        rows = range(start, stop)
        for row in reversed(rows) if upper else rows:
            done = slice(row + 1, stop) if upper else slice(start, row)
            if done.start < done.stop:
                x[..., row : row + 1, :] -= A[..., row : row + 1, done] @ x[..., done, :]
            if not unitriangular:
                x[..., row, :] /= A[..., row, row, None]
    return x


def _samples(draw: Any) -> Iterator[tuple[Any, ...]]:
    """Both triangles of matrices far from singular ones."""
    names = draw.operator.metadata
    for a, b, unit in (((3, 3), (3, 2), False), ((2, 1, 2, 2), (4, 2, 3), True), ((20, 20), (20, 1), False)):
        matrices = draw(a) / 4 / a[-1] + np.asarray(2 * np.eye(a[-1]), draw(()).dtype)
        for upper in (False, True):
            options = {"upper": upper, "unitriangular": unit}
            # the factors' gradient is that of a whole matrix, as PyTorch's is
            yield (
                [matrices, draw(b)],
                {name: options[name] for name in options if name in names},
                (0, 1) if "left" in names else (1,),
            )
    if "left" in names:
        yield [draw((2, 2)) / 4 + np.asarray(2 * np.eye(2), draw(()).dtype), draw((3, 3, 2))], {"left": False}
    yield [draw((2, 0, 0)), draw((2, 0, 2))], {"upper": True}
