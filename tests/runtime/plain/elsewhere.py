"""Functions and numbers that kernels reach as attributes of a module."""

from __future__ import annotations

import triton
import triton.language as tl

FIVE = tl.constexpr(5)


@triton.jit
def twice(x):
    return 2 * x


class Space:
    @staticmethod
    @triton.jit
    def thrice(x):
        return 3 * x
