"""Which calls on the CPU are computed by native code of their kernels: those that a benchmark says win over NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import settings
from ..types import dtypes

if TYPE_CHECKING:
    from .call import Operator

_SINGLE, _BFLOAT16 = dtypes.float32.numpy, dtypes.bfloat16.numpy
HALVES = frozenset((dtypes.float16.numpy, _BFLOAT16))
ALWAYS, NEVER = (1, 1 << 62), (1, 0)


class Native(NamedTuple):
    """From and up to how many elements of a call's largest array native code is quicker, by dtype.

    `python -m benchmarks.native_cpu` prints the ratios. NumPy has no instructions for halves, and converts them.
    """

    float32: tuple[int, int] = ALWAYS
    bfloat16: tuple[int, int] = ALWAYS
    float16: tuple[int, int] = ALWAYS
    #: of arrays and metadata, where it depends on more than the size: None where other layouts do not suit either
    suits: Callable[[Sequence[Any], Mapping[str, Any]], bool | None] | None = None


@cache
def available() -> bool:
    """Whether native code can be made here: for Linux on x86-64, with Triton and llvmlite."""
    from ..drivers.selection import lacks_native

    with suppress(ImportError):
        return not lacks_native() and find_spec("triton") is not None
    return False


def allowed(name: str = "") -> bool:
    """Whether native code of that name, mostly an operator's, may compute on the CPU now."""
    return (
        settings.native_cpu.value != "0"
        and not settings.check.value
        and (not settings.native_off.value or name not in settings.native_off.value.split(","))
        and available()
    )


def wins(
    operator: Operator,
    kind: np.dtype[Any],
    size: int,
    arrays: Sequence[Any] = (),
    metadata: Mapping[str, Any] = MappingProxyType({}),
) -> bool:
    """Whether a call, whose largest array has so many elements, is to be computed by native code.

    Args:
        kind: the dtype of halves among the inputs, or else the one to compute in.
    """
    native = operator.native
    if not allowed(operator.name):
        return False
    if settings.native_cpu.value == "force":
        return True
    if native is None or (kind is not _SINGLE and kind not in HALVES):
        return False
    from . import tuned

    low, high = tuned.ranges().get(operator.name, native)[0 if kind is _SINGLE else 1 if kind is _BFLOAT16 else 2]
    return bool(low <= size <= high and (native.suits is None or native.suits(arrays, metadata) is not None))
