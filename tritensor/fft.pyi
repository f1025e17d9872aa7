"""The type stub of `tritensor.fft`, made by `python -m tools.generate`; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from tritensor.tensors import Tensor
from tritensor.types import dtypes
from tritensor.types.devices import device
from tritensor.types.dtypes import dtype
from typing import Any

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The Fourier transform of real or complex numbers, along one dimension."""
def fft2(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = ..., norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The Fourier transform of real or complex numbers, along two dimensions."""
def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, layout: Any = None, pin_memory: bool = False, out: Tensor | None = None) -> Tensor:
    """The frequencies of the `n` numbers that `fft` gives, in cycles per unit of the sample distance `d`."""
def fftn(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The Fourier transform of real or complex numbers, along the dimensions `dim`, the last ones that `s` has, or all."""
def fftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Shifts the frequency 0 to the middle of the dimensions `dim`, or of all."""
def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The Fourier transform, which is real, of a half of a Hermitian signal, along one dimension."""
def hfft2(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = ..., norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The Fourier transform, which is real, of a half of a Hermitian signal, along two dimensions."""
def hfftn(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The Fourier transform, which is real, of a half of a Hermitian signal, along the dimensions `dim`, the last ones that `s` has, or all."""
def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse Fourier transform, along one dimension."""
def ifft2(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = ..., norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse Fourier transform, along two dimensions."""
def ifftn(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse Fourier transform, along the dimensions `dim`, the last ones that `s` has, or all."""
def ifftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`."""
def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `hfft`, without the redundant half, along one dimension."""
def ihfft2(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = ..., norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `hfft2`, without the redundant half, along two dimensions."""
def ihfftn(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `hfftn`, without the redundant half, along the dimensions `dim`, the last ones that `s` has, or all."""
def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `rfft`, from half a spectrum to real numbers, along one dimension."""
def irfft2(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = ..., norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `rfft2`, from half a spectrum to real numbers, along two dimensions."""
def irfftn(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `rfftn`, from half a spectrum to real numbers, along the dimensions `dim`, the last ones that `s` has, or all."""
def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The Fourier transform of real numbers, without the redundant half, along one dimension."""
def rfft2(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = ..., norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The Fourier transform of real numbers, without the redundant half, along two dimensions."""
def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, layout: Any = None, pin_memory: bool = False, out: Tensor | None = None) -> Tensor:
    """The frequencies of the `n // 2 + 1` numbers that `rfft` gives for `n`; see `fftfreq`."""
def rfftn(input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The Fourier transform of real numbers, without the redundant half, along the dimensions `dim`, the last ones that `s` has, or all."""
