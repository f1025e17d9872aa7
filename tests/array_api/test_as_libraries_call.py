"""Calls of the namespace as SciPy and scikit-learn write them: by keyword, and with what NumPy takes besides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tritensor import array_api as xp

X = np.arange(6.0).reshape(2, 3)
CALLS: dict[str, dict[str, Any]] = {
    "arange": {"stop": 6, "step": 2},
    "broadcast_to": {"shape": (2, 2, 3)},
    "clip": {"min": 1, "max": 3},
    "diff": {"n": 2, "axis": 1},
    "expand_dims": {"axis": 0},
    "full": {"shape": (2,), "fill_value": 3},
    "full_like": {"fill_value": 2},
    "linspace": {"num": 3},
    "ones": {"shape": 2},
    "permute_dims": {"axes": (1, 0)},
    "reshape": {"shape": 6},
    "roll": {"shift": 1},
    "zeros": {"shape": (2, 1)},
}
FIRST = {"arange": (1,), "full": (), "linspace": (0, 1), "ones": (), "zeros": ()}


@pytest.mark.parametrize("name", CALLS)
def test_parameters_have_names(name: str) -> None:
    found = getattr(xp, name)(*FIRST.get(name, (xp.asarray(X),)), **CALLS[name])
    np.testing.assert_array_equal(found.numpy(), getattr(np, name)(*FIRST.get(name, (X,)), **CALLS[name]))


def test_where_of_a_condition_is_nonzero_and_diff_takes_the_order_by_position() -> None:
    for found, expected in zip(xp.where(xp.asarray(X > 2)), np.where(X > 2), strict=True):
        assert found.tolist() == expected.tolist()
    assert xp.where(xp.asarray([True, False]), 1.0, xp.asarray(2)).tolist() == [1, 2]
    assert xp.diff(xp.asarray(X), 2).tolist() == np.diff(X, 2).tolist()


def test_isdtype_refuses_a_dtype_of_numpy() -> None:
    with pytest.raises(TypeError, match=r"isdtype\(\): argument 'dtype' must be tritensor.dtype, not <class 'numpy"):
        xp.isdtype(np.float64, "numeric")


def test_numbers_of_numpy_are_numbers() -> None:
    x = xp.asarray([1, 2], dtype=xp.float32)
    assert xp.less(x, np.float64(1.5)).tolist() == [True, False]
    assert xp.result_type(x, np.float64(1.5)) is xp.float32 and xp.where(x > 1, np.float64(0.0), x).dtype is xp.float32
