"""Folding what is scattered, and writing where a mask holds or at flat places."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor.autograd import gradcheck, gradgradcheck
from tritensor.errors import DtypeError, RangeError, ShapeError, UnsupportedError

from .arrays import T, on

FOLDS = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}


def folded(x, index, value, reduce, include_self):
    """`scatter_reduce` along the first of one dimension, place by place."""
    out = x.copy()
    for place in np.unique(index):
        values = value[index == place]
        out[place] = FOLDS[reduce](np.append(values, x[place]) if include_self else values)
    return out


@pytest.mark.sampled(6)
@pytest.mark.parametrize("reduce", FOLDS)
@pytest.mark.parametrize("include_self", [True, False])
def test_folds_with_and_without_what_is_there(device, reduce, include_self):
    """One place gets more values than a small block has, one none."""
    rng = np.random.default_rng(0)
    x, value = rng.standard_normal(6) + 3, rng.standard_normal(30) + 2
    index = np.concatenate([np.full(17, 2), rng.choice([0, 1, 3, 5], 13)])
    found = on(device, x).scatter_reduce(0, on(device, index), on(device, value), reduce, include_self=include_self)
    np.testing.assert_allclose(found.cpu().numpy(), folded(x, index, value, reduce, include_self), rtol=1e-12)


def test_extremes_of_integers_and_of_nan(device):
    index = on(device, np.array([0, 0, 1, 1, 0]))
    found = on(device, np.array([-9, -8])).scatter_reduce(0, index, on(device, np.array([-3, -5, 7, -2, -4])), "amax")
    assert found.tolist() == [-3, 7]
    value = on(device, np.array([1.0, np.nan, 2.0, 3.0, 0.5], np.float32))
    found = torch.zeros(2).to(device).scatter_reduce(0, index, value, "amin", include_self=False).cpu()
    assert found.isnan().tolist() == [True, False]
    assert float(found[1]) == 2


def test_means_of_integers_are_floored():
    assert T([-3, 4]).scatter_reduce(0, T([0, 0]), T([-2, -2]), "mean").tolist() == [-3, 4]


@pytest.mark.parametrize("include_self", [True, False])
def test_gradients_of_products_with_zeros(include_self):
    """No zero, one among the values or of its own, two (whose second derivative is not 0), three at one place."""
    x = T([2.0, 0.0, 3.0, 4.0, 0.5], dtype=torch.float64, requires_grad=True)
    index = T([0, 0, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4])
    value = [3.0, 5, 2, 0, 3, 4, 0, 0, 3, 0, 0, 0]
    value = T(value, dtype=torch.float64, requires_grad=True)

    def product(x, value):
        return x.scatter_reduce(0, index, value, "prod", include_self=include_self)

    assert gradcheck(product, (x, value))
    assert gradgradcheck(product, (x, value))


def test_equal_extremes_share_the_gradient():
    x, value = T([3.0, 0.0]).requires_grad_(), T([3.0, 3.0, 1.0, 2.0]).requires_grad_()
    x.scatter_reduce(0, T([0, 0, 0, 1]), value, "amax").backward(T([6.0, 1.0]))
    assert x.grad.tolist() == [2, 0]
    assert value.grad.tolist() == [2, 2, 0, 1]


def test_index_reduce_reduces_slices(device):
    x, source = np.arange(6.0).reshape(2, 3), np.arange(8.0).reshape(2, 4) + 1
    found = on(device, x).index_reduce(1, on(device, np.array([0, 2, 0, 0])), on(device, source), "prod")
    np.testing.assert_array_equal(found.cpu().numpy(), [[0, 1, 4], [3 * 5 * 7 * 8, 4, 30]])
    assert found.cpu().numpy().dtype == np.float64


def test_scatter_multiplies():
    assert torch.ones(3).scatter(0, T([1, 1]), 2.0, reduce="multiply").tolist() == [1, 4, 1]


def test_put_and_masked_scatter(device):
    x = on(device, np.zeros((2, 3), np.float32))
    assert x.put(on(device, np.array([[1, -1]])), torch.ones(1, 2).to(device)).tolist() == [[0, 1, 0], [0, 0, 1]]
    twice = x.put(on(device, np.array([2, 2])), torch.ones(2).to(device), accumulate=True)
    assert twice.tolist() == [[0, 0, 2], [0, 0, 0]]
    x.masked_scatter_(on(device, np.array([True, False, True])), torch.arange(5.0).to(device))
    assert x.tolist() == [[0, 0, 1], [2, 0, 3]]


def test_gradients_of_masked_scatter():
    x = torch.zeros(2, 2, dtype=torch.float64, requires_grad=True)
    source = torch.rand(5, dtype=torch.float64, requires_grad=True)
    mask = T([[True, False], [True, True]])
    assert gradcheck(lambda x, source: x.masked_scatter(mask, source), (x, source))


def test_index_put_function():
    x = torch.zeros(3)
    assert torch.index_put_(x, (T([2]),), T(5.0)) is x
    assert x.tolist() == [0, 0, 5]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("reduce", "plain", "initial"),
    [
        ("sum", [3, 0, 11], [5, 2, 13]),
        ("mean", [1.5, np.nan, 11 / 3], [2.5, 2, 13 / 3]),
        ("max", [2, -np.inf, 4], [2, 2, 4]),
        ("min", [1, np.inf, 3], [1, 2, 2]),
        ("prod", [2, 1, 48], [4, 2, 96]),
    ],
)
def test_segments(device, reduce, plain, initial):
    data = on(device, np.array([1.0, 2, 3, 4, 4]))
    lengths, offsets = on(device, np.array([2, 0, 3])), on(device, np.array([0, 2, 2, 5]))
    for found in (
        torch.segment_reduce(data, reduce, lengths=lengths),
        torch.segment_reduce(data, reduce, offsets=offsets),
    ):
        np.testing.assert_allclose(found.cpu().numpy(), plain)
    found = torch.segment_reduce(data, reduce, lengths=lengths, initial=2)
    np.testing.assert_allclose(found.cpu().numpy(), initial)


def test_segments_of_each_row_and_of_a_part_of_the_data():
    data = torch.arange(8.0).reshape(2, 4)
    found = torch.segment_reduce(data, "sum", lengths=T([[1, 3], [2, 2]]), axis=1)
    assert found.tolist() == [[0, 6], [9, 13]]
    assert torch.segment_reduce(data[0], "sum", offsets=T([1, 2, 3])).tolist() == [1, 2]


def test_nonzero_static():
    assert torch.nonzero_static(T([0, 3, 4]), size=3, fill_value=9).tolist() == [[1], [2], [9]]
    assert T([0, 3, 4]).nonzero_static(size=1).tolist() == [[1]]


X, AT = torch.zeros(3), T([0, 1])


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: X.scatter_reduce(0, AT, torch.ones(2), "min"), ShapeError, "reduce argument must be either sum"),
        (lambda: X.bool().scatter_reduce(0, AT, X.bool(), "mean"), UnsupportedError, "not implemented for 'Bool'"),
        (lambda: X.scatter(0, AT, 1.0, reduce="amax"), ShapeError, "either add or multiply"),
        (lambda: X.index_reduce(0, AT, torch.ones(2), "sum"), ShapeError, r"index_reduce\(\): Expected reduce to be"),
        (lambda: X.index_reduce(0, AT, torch.ones(3), "prod"), ShapeError, r"Number of indices \(2\) should be equal"),
        (lambda: X.index_reduce(0, T([-1]), torch.ones(1), "prod"), RangeError, "index out of range in self"),
        (lambda: X.put(AT.int(), torch.ones(2)), DtypeError, "Expected a long tensor for index, but got Int"),
        (lambda: X.put(AT, torch.ones(2).double()), DtypeError, "self and source expected to have the same dtype"),
        (lambda: X.put(AT, torch.ones(3)), RangeError, "Expected source and index to have the same number"),
        (lambda: X[:0].put(AT, torch.ones(2)), RangeError, "Tried to put elements into an empty tensor"),
        (lambda: X.put(T([3]), torch.ones(1)), RangeError, "tried to access index 3 on a tensor of 3 elements"),
        (lambda: X.masked_scatter(X == 0, torch.ones(1)), ShapeError, "Number of elements of source < number of ones"),
        (lambda: X.masked_scatter(X == 0, X.double()), DtypeError, "expected self and source to have same dtypes"),
        (lambda: X.masked_scatter(AT[:1], X), DtypeError, "only supports boolean masks, but got mask with dtype Long"),
        (lambda: X.nonzero_static(size=-1), ShapeError, "'size' must be an non-negative integer"),
        (lambda: torch.segment_reduce(X, "foo", lengths=AT), ShapeError, "reduce argument must be either"),
        (lambda: torch.segment_reduce(X, "sum"), ShapeError, "Either lengths or offsets must be defined"),
        (lambda: torch.segment_reduce(X, "sum", indices=AT), ShapeError, "indices based reduction is not supported"),
        (lambda: torch.segment_reduce(X, "sum", lengths=AT), ShapeError, "Expected all rows of lengths along axis"),
        (lambda: torch.segment_reduce(X, "sum", lengths=T([-1, 4])), ShapeError, "lengths contains negative value"),
        (lambda: torch.segment_reduce(X, "sum", lengths=T([[3]])), RangeError, "to be the last dimension of lengths"),
        (lambda: torch.segment_reduce(X, "sum", lengths=X), DtypeError, "_segment_reduce"),
        (lambda: torch.segment_reduce(AT, "sum", lengths=AT), UnsupportedError, "_segment_reduce_cpu"),
    ],
)
def test_refusals(call, kind, words):
    with pytest.raises(kind, match=words):
        call()
    assert X.tolist() == [0, 0, 0]
