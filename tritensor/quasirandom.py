"""Quasi-random numbers: Sobol sequences, whose points fill the unit cube more evenly than random ones."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np

from .errors import explain, require
from .functional.creation.creation import as_tensor
from .functional.random.sampling import numpy_generator
from .operators.generators import Generator
from .tensors import Tensor
from .types import devices
from .types.dtypes import dtype as Dtype
from .types.dtypes import get_default_dtype

__all__ = ["SobolEngine"]


def _directions(dimension: int, bits: int) -> np.ndarray:
    """The direction numbers of Joe & Kuo (2008), which SciPy has in a file, continued to `bits` each.

    Raises:
        ImportError: SciPy is not installed.
    """
    found_at = importlib.util.find_spec("scipy")  # whose import would take longer than reading
    if found_at is None or found_at.origin is None:
        words = "SobolEngine reads its direction numbers from a file of SciPy"
        raise ImportError(explain(words, remedy="pip install scipy"))
    path = Path(found_at.origin).parent / "stats" / "_sobol_direction_numbers.npz"
    with np.load(path) as file:
        polynomials, first = file["poly"][:dimension], file["vinit"][:dimension]
    found = np.ones((dimension, bits), np.int64)
    for row, polynomial, known in zip(found[1:], polynomials[1:], first[1:], strict=True):
        degree = int(polynomial).bit_length() - 1
        row[:degree] = known[:degree]
        for j in range(degree, bits):
            row[j] = row[j - degree]
            for k in range(1, degree + 1):
                if polynomial >> (degree - k) & 1:
                    row[j] ^= row[j - k] << k
    return found << np.arange(bits - 1, -1, -1)


class SobolEngine:
    """A Sobol sequence of points of the unit cube; with `scramble` a random one, of a seed if there is one.

    >>> from tritensor.quasirandom import SobolEngine
    >>> SobolEngine(2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        words = "Supported range of dimensionality for SobolEngine is [1, {}]"
        require(1 <= dimension <= self.MAXDIM, ValueError, words, self.MAXDIM)
        self.dimension, self.scramble, self.seed, self.num_generated = dimension, scramble, seed, 0
        self._state = _directions(dimension, self.MAXBIT)
        self._shift = np.zeros(dimension, np.int64)
        if scramble:
            self._scramble()
        self._next = self._shift  # the point after those that were drawn

    def _scramble(self) -> None:
        """Multiply the bits of all numbers by random triangular matrices, and shift them (Owen 1998)."""
        generator = None if self.seed is None else Generator().manual_seed(self.seed)
        numbers = numpy_generator(devices.cpu, generator)
        places = np.arange(self.MAXBIT - 1, -1, -1)
        self._shift = numbers.integers(0, 1 << self.MAXBIT, self.dimension)
        lower = np.tril(numbers.integers(0, 2, (self.dimension, self.MAXBIT, self.MAXBIT)), -1)
        lower += np.eye(self.MAXBIT, dtype=lower.dtype)
        bits = self._state[..., None] >> places & 1
        self._state = ((bits @ lower.mT) % 2 << places).sum(-1)

    def _points(self, n: int) -> np.ndarray:
        """The next n points as whole numbers, each from the one before by the place of its number's last 0 bit."""
        numbers = np.arange(self.num_generated, self.num_generated + n)
        places = np.round(np.log2(~numbers & (numbers + 1))).astype(np.int64)
        steps = np.concatenate([self._next[None], self._state[:, places].T])
        found = np.bitwise_xor.accumulate(steps)
        self._next, self.num_generated = found[-1], self.num_generated + n
        return found[:-1]

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Dtype | None = None) -> Tensor:
        """The next n points, as a tensor of n x dimension."""
        found = as_tensor(self._points(n) / 2.0**self.MAXBIT, dtype=dtype or get_default_dtype())
        return found if out is None else out.resize_(found.shape).copy_(found)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Dtype | None = None) -> Tensor:
        """The next 2^m points.

        Raises:
            ValueError: with them the number of all points is no power of 2.
        """
        n, before = 2**m, self.num_generated
        words = "The balance properties of Sobol' points require n to be a power of 2. {} points have been previously "
        words += (
            "generated, then: n={}+2**{}={}. If you still want to do this, please use 'SobolEngine.draw()' instead."
        )
        require(not (before + n) & (before + n - 1), ValueError, words, before, before, m, before + n)
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Start again at the first point."""
        self._next, self.num_generated = self._shift, 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out n points."""
        self._points(n)
        return self

    def __repr__(self) -> str:
        seed = f", seed={self.seed}" if self.seed is not None else ""
        return f"SobolEngine(dimension={self.dimension}{', scramble=True' if self.scramble else ''}{seed})"
