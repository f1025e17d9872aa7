"""`torch.quasirandom`: Sobol sequences, whose points fill a cube more evenly than random ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import UnsupportedError, explain, require
from .functional.creation.creation import from_numpy
from .functional.random.draws import randint
from .functional.random.sobol import MAXBIT, MAXDIM, direction_numbers
from .operators.generators import Generator
from .tensors import Tensor
from .types import dtypes
from .types.layout import check_shape

__all__ = ["SobolEngine"]


class SobolEngine:
    """Draws the points of a Sobol sequence, of coordinates from 0 up to 1; `scramble` randomises them.

    >>> import tritensor as torch
    >>> torch.quasirandom.SobolEngine(dimension=5).draw(3)
    tensor([[0.0000, 0.0000, 0.0000, 0.0000, 0.0000],
            [0.5000, 0.5000, 0.5000, 0.5000, 0.5000],
            [0.7500, 0.2500, 0.2500, 0.2500, 0.7500]])

    Args:
        scramble: multiply the binary digits by random matrices, and shift them. The numbers are those of this
            library's generator: others than PyTorch's for the same seed.
        seed: of the scrambling; from the default generator unless given.

    Raises:
        ValueError: fewer than 1 or more than 21,201 dimensions. ShapeError: over 1,111, and SciPy is not installed.
    """

    MAXBIT = MAXBIT
    MAXDIM = MAXDIM

    num_generated: int

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= MAXDIM:
            text = f"Supported range of dimensionality for SobolEngine is [1, {MAXDIM}]"
            raise ValueError(explain(text, f"dimension is {dimension}"))
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        digits = direction_numbers(dimension)
        self.shift = from_numpy(np.zeros(dimension, np.int64))
        if scramble:
            sizes, powers = (dimension, MAXBIT, MAXBIT), 1 << np.arange(MAXBIT)
            generator = None if seed is None else Generator().manual_seed(seed)
            shift, lower = (randint(2, sizes[:n], generator=generator, device="cpu").numpy() for n in (2, 3))
            self.shift = from_numpy(shift @ powers)
            # row p is the digit p of the results, the highest first; the diagonal keeps each digit
            bits = (digits[:, None, :] >> np.arange(MAXBIT - 1, -1, -1)[:, None] & 1).astype(np.float32)
            mixed = (np.tril(lower, -1) + np.eye(MAXBIT, dtype=np.int64)).astype(np.float32) @ bits % 2
            digits = powers[::-1] @ mixed.astype(np.int64)
        self.sobolstate = from_numpy(digits)
        self.reset()

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: dtypes.dtype | None = None) -> Tensor:
        """The next `n` points, of shape (n, dimension), in `dtype` or the default one.

        Raises:
            UnsupportedError: a dtype that is not floating. ShapeError: a negative number.
        """
        kind = dtypes.get_default_dtype() if dtype is None else dtype
        words = "\"_sobol_engine_draw\" not implemented for '{}'"
        require(kind.is_floating_point, UnsupportedError, words, kind.legacy)
        check_shape("draw", "n", (n, self.dimension))
        steps = np.arange(self.num_generated, self.num_generated + n)
        lowest = np.frexp((steps & -steps).astype(np.float64))[1] - 1  # of the ones; -1 of none
        points = self.sobolstate.numpy().T[lowest]
        points[:1] = self._point(self.num_generated)
        np.bitwise_xor.accumulate(points, axis=0, out=points)
        self.fast_forward(n)
        result = from_numpy(points * 2.0**-MAXBIT).to(kind)
        return result if out is None else out.resize_as_(result).copy_(result)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: dtypes.dtype | None = None) -> Tensor:
        """The next 2**m points.

        Raises:
            ValueError: the number of points drawn would be no power of two, for which the points are balanced.
        """
        count, total = 2**m, self.num_generated + 2**m
        if total & (total - 1):
            fact = f"n to be a power of 2. {self.num_generated} points have been previously generated, then: n={total}"
            text = f"The balance properties of Sobol' points require {fact}"
            raise ValueError(explain(text, remedy="use 'SobolEngine.draw()' instead"))
        return self.draw(count, out, dtype)

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out the next `n` points, and return the engine."""
        self.num_generated += n
        self.quasi = from_numpy(self._point(max(self.num_generated - 1, 0)))
        return self

    def reset(self) -> SobolEngine:
        """Begin with the first point again, and return the engine."""
        self.quasi, self.num_generated = self.shift.clone(), 0
        return self

    def _point(self, number: int) -> Any:
        """A point's digits: those at the ones of its Gray code."""
        places = [place for place in range(MAXBIT) if (number ^ number >> 1) >> place & 1]
        return np.bitwise_xor.reduce(self.sobolstate.numpy()[:, places], axis=1, initial=0) ^ self.shift.numpy()

    def __repr__(self) -> str:
        more = ", scramble=True" * self.scramble + (f", seed={self.seed}" if self.seed is not None else "")
        return f"SobolEngine(dimension={self.dimension}{more})"
