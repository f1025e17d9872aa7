"""Elements in another order: rolled, flipped, repeated, sorted."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor.types import dtypes

from .arrays import T, X, on, same

# ---- rearranging --------------------------------------------------------------------------------------------------


@pytest.mark.sampled(2)
def test_rearranged_elements(device):
    x = on(device, X)
    for dims in ((0,), (1, 2), (0, -1), ()):
        same(torch.flip(x, dims), np.flip(X, dims))
    same(x.flip(0, 1), np.flip(X, (0, 1)))
    same(torch.fliplr(x), np.fliplr(X))
    same(torch.flipud(x), np.flipud(X))
    for shift, dims in ((1, 0), (-4, None), (9, 1), ((1, 2), (0, 2)), ((1, 1), (1, 1))):
        same(torch.roll(x, shift, dims), np.roll(X, shift, dims))
    same(torch.zeros(0, 3).to(device).roll(1, 0), np.zeros((0, 3), np.float32))
    same(x.repeat(2, 1, 3), np.tile(X, (2, 1, 3)))
    same(x.repeat((1, 2, 0, 1, 1)), np.tile(X, (1, 2, 0, 1, 1)))
    same(torch.tile(x, (2,)), np.tile(X, (2,)))
    same(x.repeat_interleave(2, 1), np.repeat(X, 2, 1))
    same(x.repeat_interleave(2), np.repeat(X, 2))
    same(torch.repeat_interleave(x, on(device, np.array([0, 2, 1])), 0), np.repeat(X, [0, 2, 1], 0))
    same(torch.repeat_interleave(x, T([2]), 0), np.repeat(X, 2, 0))
    same(torch.repeat_interleave(on(device, np.array([1, 0, 2]))), np.array([0, 2, 2]))
    for diagonal in (-2, 0, 1, 9):
        same(x.tril(diagonal), np.tril(X, diagonal))
        same(x.triu(diagonal), np.triu(X, diagonal))
    infinite = on(device, np.full((2, 2), np.inf))
    assert infinite.triu().tolist() == [[np.inf, np.inf], [0, np.inf]]
    same(on(device, np.ones((2, 2), bool)).tril(), np.tril(np.ones((2, 2), bool)))


def test_a_repeat_is_a_copy():
    x = torch.zeros(2)
    x.repeat(1)[0] = 1.0
    x.repeat_interleave(1)[0] = 1.0
    x.flip()[0] = 1.0
    assert x.tolist() == [0, 0]


# ---- order --------------------------------------------------------------------------------------------------------


@pytest.mark.sampled(1)
def test_sorting(device):
    values = np.array([3.0, np.nan, -1.0, 0.0, -0.0, np.inf, -np.inf, 3.0], np.float32)
    x = on(device, values)
    for descending, order in ((False, [6, 2, 3, 4, 0, 7, 5, 1]), (True, [1, 5, 0, 7, 3, 4, 2, 6])):
        found = torch.sort(x, descending=descending)
        assert found.indices.tolist() == order
        same(found.values, values[order])
        assert torch.argsort(x, descending=descending).tolist() == order
    for dim in (0, 1, 2):
        found = on(device, X % 7).sort(dim)
        order = np.argsort(X % 7, dim, kind="stable")
        same(found.indices, order)
        same(found.values, np.take_along_axis(X % 7, order, dim))
    assert on(device, np.zeros((0, 2))).sort(0).indices.shape == (0, 2)
    turned = on(device, np.ascontiguousarray((X % 7).transpose(2, 0, 1))).permute(1, 2, 0)
    same(turned.sort(0).indices, np.argsort(X % 7, 0, kind="stable"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float64"]
)
def test_sorting_every_dtype(device, dtype):
    kind = dtypes.bool_ if dtype == "bool" else getattr(dtypes, dtype)
    drawn = np.random.default_rng(0).integers(-100, 100, 50)
    values = (drawn if kind.is_signed or kind is dtypes.bool_ else drawn + 100).astype(kind.numpy)
    found = on(device, values).sort(descending=True)
    order = 49 - np.argsort(values[::-1].astype(np.float64), kind="stable")[::-1]
    assert found.indices.tolist() == order.tolist()
    same(found.values, values[order])


@pytest.mark.sampled(1)
def test_topk(device):
    x = on(device, X % 7)
    found = x.topk(2)
    same(found.values, np.flip(np.sort(X % 7, -1), -1)[..., :2])
    same(x.gather(-1, found.indices), np.flip(np.sort(X % 7, -1), -1)[..., :2])
    same(x.topk(2, 0, largest=False).values, np.sort(X % 7, 0)[:2])
    assert on(device, np.array(3.0)).topk(1).values.item() == 3
    assert x.topk(0, 1).values.shape == (3, 0, 5)
