"""The type stub of `tritensor.array_api.fft`, made by `python -m tools.generate`; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from tritensor.tensors import Tensor
from tritensor.types import dtypes
from tritensor.types.devices import device
from tritensor.types.dtypes import dtype
from typing import Any

__all__ = [
    "fftfreq",
    "fftshift",
    "ifftshift",
    "rfftfreq",
    "fft",
    "hfft",
    "ifft",
    "ihfft",
    "irfft",
    "rfft",
    "fftn",
    "ifftn",
    "irfftn",
    "rfftn",
]

def fftfreq(n: Any, /, *, d: Any = 1.0, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """The frequencies of the `n` numbers that `fft` gives, in cycles per unit of the sample distance `d`."""
def fftshift(x: Tensor, /, *, axes: int | Sequence[Any] | None = None) -> Tensor:
    """The frequency 0 moved to the middle of axes, or of all."""
def ifftshift(x: Tensor, /, *, axes: int | Sequence[Any] | None = None) -> Tensor:
    """The inverse of `fftshift`."""
def rfftfreq(n: Any, /, *, d: Any = 1.0, dtype: dtype | None = None, device: device | str | None = None) -> Tensor:
    """The frequencies of the `n // 2 + 1` numbers that `rfft` gives for `n`; see `fftfreq`."""
def fft(x: Tensor, /, *, n: Any = None, axis: int | tuple[int, ...] | None = -1, norm: Any = 'backward') -> Tensor:
    """The Fourier transform of real or complex numbers, along one dimension."""
def hfft(x: Tensor, /, *, n: Any = None, axis: int | tuple[int, ...] | None = -1, norm: Any = 'backward') -> Tensor:
    """The Fourier transform, which is real, of a half of a Hermitian signal, along one dimension."""
def ifft(x: Tensor, /, *, n: Any = None, axis: int | tuple[int, ...] | None = -1, norm: Any = 'backward') -> Tensor:
    """The inverse Fourier transform, along one dimension."""
def ihfft(x: Tensor, /, *, n: Any = None, axis: int | tuple[int, ...] | None = -1, norm: Any = 'backward') -> Tensor:
    """The inverse of `hfft`, without the redundant half, along one dimension."""
def irfft(x: Tensor, /, *, n: Any = None, axis: int | tuple[int, ...] | None = -1, norm: Any = 'backward') -> Tensor:
    """The inverse of `rfft`, from half a spectrum to real numbers, along one dimension."""
def rfft(x: Tensor, /, *, n: Any = None, axis: int | tuple[int, ...] | None = -1, norm: Any = 'backward') -> Tensor:
    """The Fourier transform of real numbers, without the redundant half, along one dimension."""
def fftn(x: Tensor, /, *, s: Any = None, axes: int | Sequence[Any] | None = None, norm: Any = 'backward') -> Tensor:
    """The Fourier transform of real or complex numbers, along the dimensions `dim`, the last ones that `s` has, or all."""
def ifftn(x: Tensor, /, *, s: Any = None, axes: int | Sequence[Any] | None = None, norm: Any = 'backward') -> Tensor:
    """The inverse Fourier transform, along the dimensions `dim`, the last ones that `s` has, or all."""
def irfftn(x: Tensor, /, *, s: Any = None, axes: int | Sequence[Any] | None = None, norm: Any = 'backward') -> Tensor:
    """The inverse of `rfftn`, from half a spectrum to real numbers, along the dimensions `dim`, the last ones that `s` has, or all."""
def rfftn(x: Tensor, /, *, s: Any = None, axes: int | Sequence[Any] | None = None, norm: Any = 'backward') -> Tensor:
    """The Fourier transform of real numbers, without the redundant half, along the dimensions `dim`, the last ones that `s` has, or all."""
