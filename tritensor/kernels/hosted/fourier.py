"""The discrete Fourier transforms that all others are made of, by pocketfft: SciPy's, with threads, or NumPy's.

`dim` lists the dimensions that are transformed, counted from the front; `normalization` is what the result is divided
by: 0 for nothing, 1 for the root of the number of points, 2 for their number.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ...host.threads import get_num_threads
from ...operators import Dtypes
from ...operators.lifting.batching import in_front
from ...operators.rules import Rule
from ...runtime.call import Call
from ...types import dtypes
from ..indexing.joining import cat
from .family import Hosted

COMPLEX_OF = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}
REAL_OF = {value: key for key, value in COMPLEX_OF.items()}
_NAMES = ("backward", "ortho", "forward")  # of the normalization of a forward transform
_PARALLEL = 1 << 15  # elements from which on threads gain more than they cost, about 20 us


@cache
def _scipy() -> Any:
    try:
        import scipy.fft
    except ImportError:
        return None
    return scipy.fft


def _transform(name: str, x: np.ndarray, dim: tuple[int, ...], norm: str, *sizes: Any) -> Any:
    """A transform along several dimensions, by its name in NumPy and SciPy."""
    library = _scipy()
    if library is None:
        return getattr(np.fft, name)(x, *sizes or (None,), axes=dim, norm=norm)
    workers = get_num_threads() if x.size >= _PARALLEL else 1
    return getattr(library, name)(x, *sizes or (None,), axes=dim, norm=norm, workers=workers)


class _Transform(Hosted):
    """A transform whose result is complex or real, of the input's precision."""

    family = "fourier"
    about = "By pocketfft on the host, for tensors of a device too."
    batched = staticmethod(in_front)

    def __init__(self, name: str, reference: Any, rule: Rule, result: dict[dtypes.dtype, dtypes.dtype]) -> None:
        super().__init__(name, reference, rule)
        self.result = result

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """Computes in the input's dtype."""
        compute, kind = self.rule(self.name, call.inputs)
        return compute, (self.result.get(kind, kind),)


def _c2c(x: np.ndarray, *, dim: tuple[int, ...], normalization: int = 0, forward: bool = True):
    """The transform of complex numbers, with exp(-2 pi i j k / n), or exp(2 pi i j k / n) unless `forward`."""
    norm = _NAMES[normalization] if forward else _NAMES[2 - normalization]
    return _transform("fftn" if forward else "ifftn", x, dim, norm)


def _r2c(x: np.ndarray, *, dim: tuple[int, ...], normalization: int = 0, onesided: bool = True):
    """The forward transform of real numbers; with `onesided` the half of the last dimension that says all."""
    return _transform("rfftn" if onesided else "fftn", x, dim, _NAMES[normalization])


def _c2r(x: np.ndarray, *, dim: tuple[int, ...], normalization: int = 0, last: int = 1):
    """The inverse transform of a half that `fft_r2c` gives, to `last` real numbers along the last dimension."""
    sizes = (*(x.shape[each] for each in dim[:-1]), last)
    return _transform("irfftn", x, dim, _NAMES[2 - normalization], sizes)


fft_c2c = _Transform("fft_c2c", _c2c, Rule("complex", dtypes.COMPLEX), {})
fft_r2c = _Transform("fft_r2c", _r2c, Rule("real", dtypes.FLOATING, dtypes.FLOATING), COMPLEX_OF)
fft_c2r = _Transform("fft_c2r", _c2r, Rule("complex", dtypes.COMPLEX), REAL_OF)


@fft_c2c.gradient
def _(grad: Any, dim: tuple[int, ...], normalization: int, forward: bool) -> Any:
    return fft_c2c(grad, dim=dim, normalization=normalization, forward=not forward)


@fft_r2c.gradient
def _(grad: Any, x_shape: tuple[int, ...], dim: tuple[int, ...], normalization: int, onesided: bool) -> Any:
    if onesided:  # the other half is no result: its gradient is 0
        missing = x_shape[dim[-1]] - grad.shape[dim[-1]]
        whole = [*grad.shape[: dim[-1]], missing, *grad.shape[dim[-1] + 1 :]]
        grad = cat(grad, grad.new_zeros(whole), dim=dim[-1])
    return fft_c2c(grad, dim=dim, normalization=normalization, forward=False).real


@fft_c2r.gradient
def _(grad: Any, x_shape: tuple[int, ...], dim: tuple[int, ...], normalization: int) -> Any:
    found = fft_r2c(grad, dim=dim, normalization=normalization)
    doubled = grad.shape[dim[-1]] - found.shape[dim[-1]]  # those that the input has one of, and the transform two
    number = grad.new_ones(found.shape[dim[-1]])
    number[1 : 1 + doubled] = 2
    return found * number.reshape(-1, *[1] * (found.ndim - 1 - dim[-1]))
