"""Fourier transforms of the standard, which are those of `tritensor.fft` with its parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import fft as transforms
from ..dtypes import dtype
from ..tensor import Tensor

__all__ = [
    *("fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn"),
    *("rfft", "rfftfreq", "rfftn"),
]


def _declared(name: str) -> Callable[..., Tensor]:
    compute: Any = getattr(transforms, name)
    if name.endswith("n"):

        def function(
            x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
        ) -> Tensor:
            return compute(x, s, axes, norm)  # type: ignore[no-any-return]

    else:

        def function(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:  # type: ignore[misc]
            return compute(x, n, axis, norm)  # type: ignore[no-any-return]

    function.__name__ = function.__qualname__ = name
    function.__doc__ = compute.__doc__
    return function


fft, fftn, ifft, ifftn = (_declared(name) for name in ("fft", "fftn", "ifft", "ifftn"))
rfft, rfftn, irfft, irfftn = (_declared(name) for name in ("rfft", "rfftn", "irfft", "irfftn"))
hfft, ihfft = _declared("hfft"), _declared("ihfft")


def fftfreq(n: int, /, *, d: float = 1.0, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """The frequencies of the `n` numbers that `fft` gives, in cycles per unit of the sample distance `d`."""
    return transforms.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: dtype | None = None, device: Any = None) -> Tensor:
    """The frequencies of the `n // 2 + 1` numbers that `rfft` gives for `n`; see `fftfreq`."""
    return transforms.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The frequency 0 moved to the middle of axes, or of all."""
    return transforms.fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`."""
    return transforms.ifftshift(x, axes)
