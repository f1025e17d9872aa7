"""Quick ways of reductions on the CPU: as exact as NumPy's, and equal to the operators."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import tritensor as torch
from tritensor.kernels.reduction.functions import quick_sum
from tritensor.kernels.reduction.reference import add_up, add_up_squares
from tritensor.operators import registry

NAN, INF = float("nan"), float("inf")
SHAPES = [
    (20000,),
    (4, 5000),
    (5000, 4),
    (513, 33),
    (33, 513),
    (600, 40),
    (1000, 40),
    (7, 9, 300),
    (300, 9, 7),
    (2, 100, 100),
    (40, 3, 2, 100),
    (1, 16385),
    (16385, 1),
    (5, 3),
    (),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_host_sums_are_as_exact_as_numpys(shape, dtype):
    array = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    exact = array.astype(np.longdouble)
    for size in range(len(shape) + 1):
        for dims in itertools.combinations(range(len(shape)), size):
            for keepdim in (False, True):
                found = add_up(array, dims or None, keepdim)
                wanted = exact.sum(dims or None, keepdims=keepdim)
                assert found.shape == np.shape(wanted) and found.dtype == dtype
                error, theirs = (
                    np.linalg.norm(np.asarray(sums - wanted, float))
                    for sums in (found, array.sum(dims or None, keepdims=keepdim))
                )
                assert error <= 2 * theirs + 2 * np.finfo(dtype).eps * np.linalg.norm(array), dims
    if shape:
        np.testing.assert_array_equal(add_up(array, -1), add_up(array, len(shape) - 1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_host_sums_of_squares_are_as_exact_as_numpys(shape, dtype):
    array = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    exact = np.square(array.astype(np.longdouble))
    for x, squares in ((array, exact), (array.T, exact.T)):
        for dims in (None, tuple(range(len(shape))), (0,), (-1,)) if shape else (None, ()):
            for keepdim in (False, True):
                found = add_up_squares(x, dims, keepdim)
                wanted = squares.sum(dims, keepdims=keepdim)
                assert found.shape == np.shape(wanted) and found.dtype == dtype
                np.testing.assert_allclose(found, np.asarray(wanted, float), rtol=40 * np.finfo(dtype).eps)


def test_host_sums_leave_other_layouts_to_numpy():
    array = np.random.default_rng(0).standard_normal((300, 200)).astype(np.float32)
    np.testing.assert_array_equal(add_up(array.T, 0), array.T.sum(0))
    np.testing.assert_allclose(
        add_up(array.reshape(20, 15, 200), (0, 2)), array.reshape(20, 15, 200).sum((0, 2)), rtol=1e-4
    )


@pytest.mark.parametrize("name", ["sum", "mean"])
def test_quick_sums_equal_the_operators(name):
    rng = np.random.default_rng(0)
    operator = registry[name]
    for shape in ((3, 4), (2, 3, 4), (), (1, 1), (600, 40)):
        array = rng.standard_normal(shape)
        for dim in (None, 0, -1, (0,), (0, -1), ()):
            if len(shape) < 2 and dim not in (None, ()):
                continue
            for keepdim in (False, True):
                x, y = (torch.from_numpy(array).requires_grad_() for _ in range(2))
                quick, plain = (
                    quick_sum(operator, x, dim, keepdim),
                    operator(y, dim=dim or None if dim == () else dim, keepdim=keepdim),
                )
                torch.testing.assert_close(quick, plain)
                assert quick.grad_fn.name() == plain.grad_fn.name()
                weights = torch.from_numpy(np.asarray(rng.standard_normal(tuple(plain.shape))))
                (quick * weights).sum().backward()
                (plain * weights).sum().backward()
                torch.testing.assert_close(x.grad, y.grad)
                x.grad.add_(1)  # its own memory, not a view of one number
    assert quick_sum(operator, torch.ones(2, dtype=torch.int64), None, False) is None
    assert quick_sum(operator, torch.ones(2), [0], False) is None
    assert quick_sum(operator, torch.ones(2), 3, False) is None


def test_small_reductions_take_the_quick_way_and_agree():
    x = torch.randn(4, 5)
    for name, metadata in (
        ("amax", {}),
        ("var", {"correction": 1}),
        ("max_dim", {}),
        ("logsumexp", {}),
        ("argmin", {}),
    ):
        for dim in (0, -1):
            found = registry[name].reduce(x, dim, True, **metadata)
            wanted = registry[name](x, dim=dim, keepdim=True, **metadata)
            for a, b in zip(
                found if isinstance(found, tuple) else (found,), wanted if isinstance(wanted, tuple) else (wanted,)
            ):
                torch.testing.assert_close(a, b)


def test_overflow_is_quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (torch.full((4,), 3e38), torch.full((20000,), 3e38), torch.tensor([INF, -INF])):
            for name in ("sum", "mean", "var", "logsumexp", "norm", "prod"):
                getattr(x, name)(0)
