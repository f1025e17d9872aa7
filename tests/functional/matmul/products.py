"""Operands of products, the product that is expected, and how close a dtype comes to it."""

from __future__ import annotations

import numpy as np

from tritensor.types import dtypes

EXACT = ["int64", "int32", "int16", "uint8"]
TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-5, "float64": 1e-13}


def numbers(shape, dtype, seed=0):
    rng = np.random.default_rng((seed, *shape))
    kind = getattr(dtypes, dtype).numpy
    drawn = rng.integers(-5, 6, shape) if dtype in EXACT else rng.standard_normal(shape)
    return np.asarray(drawn).astype(kind)


def expected(a, b):
    """The product summed in float64 (or in the integers' own ring)."""
    if a.dtype.kind in "iu":
        return np.matmul(a, b)
    return np.matmul(a.astype(np.float64), b.astype(np.float64))


def assert_close(result, wanted, depth):
    found = result.detach().cpu().numpy()
    assert found.shape == wanted.shape
    name = result.dtype.name
    if name in EXACT:
        np.testing.assert_array_equal(found, wanted)
    else:
        bound = TOLERANCE[name] * max(depth, 1) ** 0.5 * 4
        np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=bound, atol=bound)
