"""Orthogonal polynomials, by their recurrences; those of Chebyshev by trigonometric functions where the degree is high.

The degree is a tensor or a number, whose fraction is cut off; below 0, and where it is not finite, they are 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...runtime.source import device_function
from .one_text import largest_of, one_text

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice

_DIRECT = 16  # degrees up to this by the recurrence, which is exact to the last digits there


@device_function
def _degree(n):
    """A whole number, -1 where there is no polynomial."""
    return tl.where((n > -1.0) & (n < 9.2e18), libdevice.trunc(n), -1.0)


@one_text(name="special_chebyshev_polynomial", methods=())
def chebyshev(x, n, slope=1.0, constant=0.0, stretch=1.0, shift=0.0):
    """A polynomial of Chebyshev at z = stretch * x - shift: that of degree 1 is slope * z + constant."""
    degree = _degree(n + tl.zeros_like(x))
    z = stretch * x - shift + tl.zeros_like(degree)
    low = tl.where(degree > _DIRECT, 0.0, degree)
    before = tl.zeros_like(z) + 1.0
    result = slope * z + constant
    first = result
    for step in range(1, largest_of(low)):
        following = 2.0 * z * result - before
        before = tl.where(step < low, result, before)
        result = tl.where(step < low, following, result)
    # of the first kind it is cos(n t), of the second sin((n + 1) t) / sin(t), and the others are their sums
    size = tl.abs(z)
    inner = libdevice.acos(tl.where(size < 1.0, size, 0.0))
    outer = libdevice.acosh(tl.where(size > 1.0, size, 2.0))
    wave = tl.where(size < 1.0, libdevice.cos(degree * inner), libdevice.cosh(degree * outer))
    other = tl.where(
        size < 1.0,
        libdevice.sin(degree * inner) / libdevice.sin(inner),
        libdevice.sinh(degree * outer) / libdevice.sinh(outer),
    )
    wave = tl.where(size == 1.0, 1.0, wave)
    other = tl.where(size == 1.0, degree, other)
    odd = degree - 2.0 * libdevice.floor(0.5 * degree) == 1.0
    wave = tl.where((z < 0) & odd, -wave, wave)
    other = tl.where((z < 0) & (odd == 0), -other, other)
    rest = first - z
    high = tl.where(rest == 0.0, wave, wave + rest * other)
    high = tl.where(z != z, z, high)
    result = tl.where(degree > _DIRECT, high, tl.where(degree == 0.0, 1.0, result))
    return tl.where(degree < 0, 0.0, result)


@one_text(name="special_orthogonal_polynomial", methods=())
def orthogonal(x, n, slope=1.0, constant=0.0, growth=0.0, middle=0.0, back=1.0, divided=0.0, most=9e18):
    """A polynomial of Hermite, Laguerre or Legendre, NaN for degrees above `most`.

    That of degree 1 is p1 = slope * x + constant, and (divided * k + 1) times that of degree k + 1 is
    (p1 + k * (growth * x + middle)) times that of degree k less k * back times the one before.
    """
    degree = _degree(n + tl.zeros_like(x))
    x = x + tl.zeros_like(degree)
    low = tl.where(degree > most, 0.0, degree)
    first = slope * x + constant
    before = tl.zeros_like(x) + 1.0
    result = first
    for step in range(1, largest_of(low)):
        following = (first + step * (growth * x + middle)) * result - step * back * before
        following = following / (divided * step + 1.0)
        before = tl.where(step < low, result, before)
        result = tl.where(step < low, following, result)
    result = tl.where(degree > most, float("nan"), tl.where(degree == 0.0, 1.0, result))
    return tl.where(degree < 0, 0.0, result)


chebyshev.domain = {"x": (-1.5, 1.5), "n": (0, 20)}
orthogonal.domain = {"x": (-1.5, 1.5), "n": (0, 9)}
chebyshev.constant = orthogonal.constant = True  # as in PyTorch
