"""Fourier transforms of the standard, which are those of `tritensor.fft` with its parameters."""

from __future__ import annotations

from typing import Any

from .. import fft as transforms
from .arrays import declared

_TEXTS = """
fftfreq: The frequencies of the `n` numbers that `fft` gives, in cycles per unit of the sample distance `d`.
fftshift: The frequency 0 moved to the middle of axes, or of all.
ifftshift: The inverse of `fftshift`.
rfftfreq: The frequencies of the `n // 2 + 1` numbers that `rfft` gives for `n`; see `fftfreq`.
"""
_ALONG = "The transform of `tritensor.fft` by this name, along an axis: of `n` points, or as many as `x` has."
_OVER = "The transform of `tritensor.fft` by this name, over axes: of `s` points along them, or as many as `x` has."


def _along(name: str) -> Any:
    compute: Any = getattr(transforms, name)
    return lambda x, /, *, n=None, axis=-1, norm="backward": compute(x, n, axis, norm)


def _over(name: str) -> Any:
    compute: Any = getattr(transforms, name)
    return lambda x, /, *, s=None, axes=None, norm="backward": compute(x, s, axes, norm)


def _frequencies(compute: Any) -> Any:
    return lambda n, /, *, d=1.0, dtype=None, device=None: compute(n, d, dtype=dtype, device=device)


def _shifted(compute: Any) -> Any:
    return lambda x, /, *, axes=None: compute(x, axes)


_LINES, _GRIDS = ("fft", "hfft", "ifft", "ihfft", "irfft", "rfft"), ("fftn", "ifftn", "irfftn", "rfftn")
_made = declared(__name__, {name: _along(name) for name in _LINES}, "\n".join(f"{name}: {_ALONG}" for name in _LINES))
_made |= declared(__name__, {name: _over(name) for name in _GRIDS}, "\n".join(f"{name}: {_OVER}" for name in _GRIDS))
_made |= declared(
    __name__,
    {
        **{name: _frequencies(getattr(transforms, name)) for name in ("fftfreq", "rfftfreq")},
        **{name: _shifted(getattr(transforms, name)) for name in ("fftshift", "ifftshift")},
    },
    _TEXTS,
)
globals().update(_made)

__all__ = list(_made)
