"""Tools for tests: checked mode, checking a kernel, and comparing tensors with tolerances by dtype."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from . import settings
from .cuda.kernel_check import KernelReport, check_kernel
from .tensors import Tensor
from .types import dtypes

__all__ = ["KernelReport", "assert_close", "check_kernel", "checked"]

# PyTorch's defaults for assert_close: (relative, absolute)
_DEFAULTS = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def checked(enabled: bool = True) -> AbstractContextManager[None]:
    """Compare every kernel launch in the block with its NumPy reference; see `tritensor/runtime/checking.py`.

    Raises:
        KernelMismatchError: (in the block) a kernel and its reference disagree.
    """
    return settings.check(enabled)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless two tensors (or numbers) agree within the tolerance of their dtype.

    `msg` is the error's text, or makes it of the text that it would have.

    >>> import tritensor as torch
    >>> torch.testing.assert_close(torch.ones(2), torch.ones(2) + 1e-7)
    """
    found = _difference(actual, expected, rtol, atol, equal_nan, check_device, check_dtype)
    if found:
        raise AssertionError(found if msg is None else msg(found) if callable(msg) else msg)


def _difference(
    actual: object,
    expected: object,
    rtol: float | None,
    atol: float | None,
    equal_nan: bool,
    check_device: bool,
    check_dtype: bool,
) -> str:
    """How two tensors differ; empty if they agree."""
    if isinstance(actual, Tensor) and isinstance(expected, Tensor):
        if check_device and actual.device != expected.device:
            return f"The values for attribute 'device' do not match: {actual.device} != {expected.device}."
        if check_dtype and actual.dtype is not expected.dtype:
            return f"The values for attribute 'dtype' do not match: {actual.dtype} != {expected.dtype}."
    pair = [
        np.asarray(value.detach()._to_host() if isinstance(value, Tensor) else value) for value in (actual, expected)
    ]
    x, y = pair
    if x.shape != y.shape:
        return f"The values for attribute 'shape' do not match: {x.shape} != {y.shape}."
    low = [_DEFAULTS.get(dtypes.of(array.dtype).name, (0.0, 0.0)) for array in pair]
    relative = max(entry[0] for entry in low) if rtol is None else rtol
    absolute = max(entry[1] for entry in low) if atol is None else atol
    wide = np.complex128 if "c" in x.dtype.kind + y.dtype.kind else np.float64
    x, y = x.astype(wide), y.astype(wide)
    with np.errstate(all="ignore"):
        close = (x == y) | (np.abs(x - y) <= absolute + relative * np.abs(y))
    if equal_nan:
        close |= np.isnan(x) & np.isnan(y)
    if close.all():
        return ""
    worst = np.unravel_index(int(np.argmax(np.where(close, 0, np.nan_to_num(np.abs(x - y), nan=np.inf)))), x.shape)
    return (
        f"Tensor-likes are not close!\n\nMismatched elements: {int((~close).sum())} / {close.size}\n"
        f"Greatest difference at {tuple(int(i) for i in worst)}: {x[worst]} and {y[worst]} "
        f"(allowed: {relative} relative, {absolute} absolute)"
    )
