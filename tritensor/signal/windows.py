"""Window functions of `M` numbers, symmetric unless `sym` is false: then that of one more without its last.

All take `dtype` (float32 or float64), `device` and `requires_grad`, and raise ValueError for a negative length or
another dtype. They are computed in float64 on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..errors import ArgumentError, explain, require
from ..functional.creation import windows as formulas
from ..functional.creation.creation import finish, place
from ..tensors import Tensor
from ..types import dtypes
from ..types.formats import strided

__all__ = [
    *("bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming"),
    *("hann", "kaiser", "nuttall"),
]


def _made(name: str, M: int, options: dict[str, Any], formula: Callable[[], np.ndarray], single: bool = True) -> Tensor:
    """Check what all windows take, and place what the formula gives; ones for a length of 1 if `single`."""
    left = dict(options)
    if left.pop("layout", strided) is not strided:
        words = f"{name} is implemented for strided tensors only, got: {options['layout']}"
        raise ValueError(words)
    dtype, device, requires_grad = (left.pop(name, None) for name in ("dtype", "device", "requires_grad"))
    if left:
        raise ArgumentError(f"{name}() got an unexpected keyword argument '{next(iter(left))}'")
    if M < 0:
        raise ValueError(explain(f"{name} requires non-negative window length, got M={M}"))
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.of_argument(dtype)
    if kind not in (dtypes.float32, dtypes.float64):
        raise ValueError(explain(f"{name} expects float32 or float64 dtypes, got: {dtype}"))
    array = np.ones(M) if M == 0 or (M == 1 and single) else formula()
    return finish(place(array.astype(kind.numpy), device), bool(requires_grad))


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, **options: Any) -> Tensor:
    """The general cosine window, the sum of (-1)^k a[k] cos(2 pi k n / N).

    >>> import tritensor as torch
    >>> torch.signal.windows.general_cosine(5, a=[0.5, 0.5])
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    if not isinstance(a, Iterable):
        raise ArgumentError("Coefficients must be a list/tuple", f"a is {a!r}")
    weights = [float(weight) for weight in a]
    require(weights, ValueError, "Coefficients cannot be empty")
    return _made("general_cosine", M, options, lambda: formulas.cosines(M, M - bool(sym), weights))


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any) -> Tensor:
    """The general Hamming window, alpha - (1 - alpha) cos(2 pi n / N)."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The Hamming window, 0.54 - 0.46 cos(2 pi n / N)."""
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The Hann window, (1 - cos(2 pi n / N)) / 2."""
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The Blackman window, 0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The minimum 4-term Blackman-Harris window, by Nuttall (1981)."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, **options)


def bartlett(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The Bartlett (triangular) window, 1 - |2 n / N - 1|."""
    return _made("bartlett", M, options, lambda: formulas.bartlett(M, M - bool(sym)))


def cosine(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """The cosine window, a half period of the sine: sin(pi (n + 1/2) / N)."""
    whole = M if sym or M == 1 else M + 1
    return _made("cosine", M, options, lambda: np.sin((np.arange(M) + 0.5) * (np.pi / whole)), False)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """The exponential window, exp(-|n - center| / tau); `center` is the middle, and given only if `sym` is false."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    require(not sym or center is None, ValueError, "Center must be None for symmetric windows")
    middle = _middle(M, sym) if center is None else center
    return _made("exponential", M, options, lambda: np.exp(-np.abs(np.arange(M) - middle) / tau), False)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Any) -> Tensor:
    """The Gaussian window, exp(-((n - middle) / std)^2 / 2)."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    away = np.arange(max(M, 0)) - _middle(M, sym)
    return _made("gaussian", M, options, lambda: np.exp(-np.square(away / std) / 2), False)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Any) -> Tensor:
    """The Kaiser window, I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta), I0 the modified Bessel function."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _made("kaiser", M, options, lambda: formulas.kaiser(M, M - bool(sym), beta))


def _middle(M: int, sym: bool) -> float:
    return (M if not sym and M > 1 else M - 1) / 2
