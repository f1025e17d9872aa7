"""Launches that are compared, and the arrays that they take."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import triton
import triton.language as tl

import tritensor as torch

from ..drawing.kinds import INTEGERS, NUMPY, bounds
from ..drawing.running import on_device

Tensors = list[torch.Tensor]
REORDERS = tl.constexpr(triton.__version__ < "3.9")  # what is in either order is later always in the first
CASES: dict[str, tuple[Callable[[], Tensors], float]] = {}
# The kernels that are interpreted after all: of functions that are called, and because an argument is of float8.
REFUSED = {
    "functions_that_are_not_inlined": {"not_inlined"},
    "functions_with_branches_in_loops": {"called_in_a_loop"},
    "moves_of_all_bits": {"moving"},
    "products_of_float8": {"small_products"},
    "stores_of_one_lane_and_of_fewer_bits": {"one_lane"},
}


def case(tolerance: float = 0.0) -> Callable[[Callable[[], Tensors]], Callable[[], Tensors]]:
    """Add a launch; without a tolerance both have to leave the same bits."""

    def add(launched: Callable[[], Tensors]) -> Callable[[], Tensors]:
        CASES[launched.__name__] = launched, tolerance
        return launched

    return add


def numbers(*shape: int, dtype: str = "f32", seed: int = 0, scale: float = 1.0) -> torch.Tensor:
    """Normal numbers, or whole ones."""
    values = np.random.default_rng(seed + sum(shape))
    if dtype in INTEGERS:
        return on_device(values.integers(max(bounds(dtype)[0], -100), 100, shape).astype(NUMPY[dtype]))
    return on_device((scale * values.standard_normal(shape)).astype(NUMPY[dtype]))


def zeros(*shape: int, dtype: str = "f32") -> torch.Tensor:
    return on_device(np.zeros(shape, NUMPY[dtype]))
