"""Fourier transforms of the standard, which are those of `tritensor.fft` with its parameters."""

from __future__ import annotations

from .. import fft as transforms
from .declaring import functions_of

_LINES, _GRIDS = ("fft", "hfft", "ifft", "ihfft", "irfft", "rfft"), ("fftn", "ifftn", "irfftn", "rfftn")
_TABLE = """
fftfreq(n, /, *, d=1.0, dtype=None, device=None)
fftshift(x, /, *, axes=None) = fftshift(axes=dim): The frequency 0 moved to the middle of axes, or of all.
ifftshift(x, /, *, axes=None) = ifftshift(axes=dim)
rfftfreq(n, /, *, d=1.0, dtype=None, device=None)
"""
_TABLE += "\n".join(f"{name}(x, /, *, n=None, axis=-1, norm='backward')" for name in _LINES)
_TABLE += "".join(f"\n{name}(x, /, *, s=None, axes=None, norm='backward') = {name}(axes=dim)" for name in _GRIDS)
_named = functions_of(__name__, _TABLE, vars(transforms))
globals().update(_named)
__all__ = [*_named]
