"""Windows by the names of `torch`: periodic unless asked otherwise. Those of `signal.windows` have the same formulas.

They are computed in float64 on the host, and copied to a device as `torch.tensor` copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import DtypeError, ShapeError
from ...ground.arguments import whole
from ...tensors import Tensor
from ...types import Device, Dtype, dtypes
from .creation import creates, place


def cosines(length: int, whole: int, weights: Sequence[float]) -> np.ndarray:
    """The sum of (-1)^k weights[k] cos(2 pi k n / whole) for n from 0 to `length` - 1."""
    angle = 2 * np.pi / whole * np.arange(length)
    found: np.ndarray = np.add.reduce([(-1) ** k * weight * np.cos(k * angle) for k, weight in enumerate(weights)])
    return found


def bartlett(length: int, whole: int) -> np.ndarray:
    """A triangle: 1 - |2 n / whole - 1|."""
    return 1 - np.abs(np.arange(length) * (2 / whole) - 1)


def kaiser(length: int, whole: int, beta: float) -> np.ndarray:
    """I0(beta sqrt(1 - (2 n / whole - 1)^2)) / I0(beta), with the modified Bessel function of order 0."""
    inside = 1 - np.square(np.arange(length) * (2 / whole) - 1)
    found: np.ndarray = np.i0(beta * np.sqrt(np.maximum(inside, 0))) / np.i0(beta)
    return found


def _made(
    name: str,
    window_length: int,
    periodic: bool,
    dtype: Any,
    device: Any,
    formula: Callable[..., np.ndarray],
    *numbers: Any,
) -> Tensor:
    length = whole(name, "window_length", window_length)
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.of_argument(dtype)
    if kind is None or kind.category != dtypes.FLOATING:
        words = f"{name} expects floating point dtypes, got: {dtype}"
        raise DtypeError(words, remedy="pass torch.float32, or leave dtype out")
    if length < 0:
        raise ShapeError(f"{name} requires non-negative window_length, got window_length={length}")
    array = np.ones(length) if length < 2 else formula(length, length - (not periodic), *numbers)
    return place(array.astype(kind.numpy), device)


@creates()
def bartlett_window(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The Bartlett (triangular) window of `window_length` numbers; if `periodic`, that of one more without its last.

    >>> import tritensor as torch
    >>> torch.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])

    Raises:
        DtypeError: no floating dtype. ShapeError: a negative length. The same for the other windows.
    """
    return _made("bartlett_window", window_length, periodic, dtype, device, bartlett)


@creates()
def hann_window(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The Hann window, (1 - cos(2 pi n / N)) / 2; see `bartlett_window`."""
    return _made("hann_window", window_length, periodic, dtype, device, cosines, (0.5, 0.5))


@creates()
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: Dtype = None,
    device: Device = None,
) -> Tensor:
    """The Hamming window, alpha - beta cos(2 pi n / N); see `bartlett_window`."""
    return _made("hamming_window", window_length, periodic, dtype, device, cosines, (alpha, beta))


@creates()
def blackman_window(window_length: int, periodic: bool = True, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The Blackman window, 0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N); see `bartlett_window`."""
    return _made("blackman_window", window_length, periodic, dtype, device, cosines, (0.42, 0.5, 0.08))


@creates()
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Dtype = None, device: Device = None
) -> Tensor:
    """The Kaiser window, I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta); see `bartlett_window`."""
    return _made("kaiser_window", window_length, periodic, dtype, device, kaiser, beta)
