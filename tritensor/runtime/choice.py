"""Which calls on the CPU are computed by native code of their kernels: those that a benchmark says win over NumPy."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import settings
from ..types import dtypes

if TYPE_CHECKING:
    from .call import Operator

#: A number of elements that no call has, for operators and dtypes that NumPy is quicker with.
NEVER = 1 << 62


@cache
def available() -> bool:
    """Whether native code can be made here: for Linux on x86-64, with Triton and llvmlite."""
    from ..drivers.selection import lacks_native

    with suppress(ImportError):
        return not lacks_native() and find_spec("triton") is not None
    return False


def native_from(operator: Operator, kind: np.dtype[Any]) -> int:
    """The number of elements from which an operator's calls in a dtype are computed by native code."""
    wanted = settings.native_cpu.value
    if wanted == "0" or settings.check.value or not available():
        return NEVER
    if wanted == "force":
        return 1
    return NEVER if operator.native is None else operator.native[kind in HALVES]


HALVES = frozenset((dtypes.float16.numpy, dtypes.bfloat16.numpy))
