"""Binary search, counts and histograms."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tritensor as torch
from tritensor.kernels.indexing import searching

from ..needs import needs_triton

nan, inf = math.nan, math.inf


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=[needs_triton, pytest.mark.slow])])
def device(request):
    with torch.cuda.simulate(devices=1):
        yield request.param


@pytest.mark.parametrize("right", [False, True])
def test_places_are_those_of_numpy(right, device):
    rng = np.random.default_rng(0)
    rows, x = np.sort(rng.integers(0, 9, (3, 8)), -1), rng.integers(-1, 10, (3, 5))
    side = "right" if right else "left"
    wanted = [np.searchsorted(row, each, side).tolist() for row, each in zip(rows, x, strict=True)]
    given, looked_up = torch.from_numpy(rows).to(device), torch.from_numpy(x).to(device)
    assert torch.searchsorted(given, looked_up, right=right).tolist() == wanted
    assert torch.searchsorted(given, looked_up, side=side, out_int32=True).dtype is torch.int32
    first = np.searchsorted(rows[0], x, side).tolist()
    assert torch.searchsorted(given[0], looked_up, side=side).tolist() == first
    assert torch.bucketize(looked_up, given[0], right=right).tolist() == first
    order = np.stack([rng.permutation(8) for _ in range(3)])
    shuffled = np.empty_like(rows)
    np.put_along_axis(shuffled, order, rows, 1)
    sorter = torch.from_numpy(order).to(device)
    assert (
        torch.searchsorted(torch.from_numpy(shuffled).to(device), looked_up, right=right, sorter=sorter).tolist()
        == wanted
    )


def test_numbers_and_other_dtypes(device):
    boundaries = torch.tensor([1.0, 2.0, 3.0], device=device)
    assert torch.searchsorted(boundaries, 2).item() == 1 and torch.bucketize(2.5, boundaries).item() == 2
    assert torch.bucketize(0.5, torch.tensor([0, 1, 2], device=device)).item() == 1
    assert torch.bucketize(torch.tensor([nan, inf], device=device), boundaries).tolist() == [3, 3]
    assert torch.searchsorted(boundaries[:0], boundaries).tolist() == [0, 0, 0]
    assert torch.bucketize(torch.ones(2, device=device).half(), boundaries.half(), right=True).tolist() == [1, 1]
    out = torch.empty(3, dtype=torch.int64, device=device)
    assert torch.searchsorted(boundaries, boundaries, out=out) is out and out.tolist() == [0, 1, 2]


def test_many_elements_and_many_rows():
    rng = np.random.default_rng(0)
    boundaries, x = np.sort(rng.random(50)), rng.random((4, 1 << 14))
    found = torch.searchsorted(torch.from_numpy(boundaries), torch.from_numpy(x))
    np.testing.assert_array_equal(found.numpy(), np.searchsorted(boundaries, x))
    rows, x = np.sort(rng.integers(0, 9, (searching._ROWS + 1, 5)), 1), rng.integers(-1, 10, (searching._ROWS + 1, 3))
    for right in (False, True):
        found = torch.searchsorted(torch.from_numpy(rows), torch.from_numpy(x), right=right)
        side = "right" if right else "left"
        assert found.tolist() == [np.searchsorted(row, each, side).tolist() for row, each in zip(rows, x, strict=True)]


@needs_triton
def test_on_a_device():
    with torch.cuda.simulate(devices=1):
        x = torch.tensor([[0.0, 1.0], [2.0, 2.0], [1.0, nan]], device="cuda")
        assert torch.bucketize(x, x[:2, 0]).tolist() == [[0, 1], [1, 1], [1, 2]]
        assert torch.searchsorted(x[:2], x[:2], right=True).tolist() == [[1, 2], [2, 2]]
        found = torch.histogramdd(x[:2], 2, range=[0.0, 2.0, 0.0, 2.0], weight=x[:2, 1])
        assert found.hist.tolist() == [[0, 1], [0, 2]]
        assert x.histc(2, 0, 2).tolist() == [1, 4]


def test_bincount(device):
    x = torch.tensor([0, 2, 2], device=device)
    assert x.bincount().tolist() == [1, 0, 2] and x.bincount(minlength=5).tolist() == [1, 0, 2, 0, 0]
    weights = torch.tensor([0.5, 1.0, 2.0], device=device)
    for kind, wanted in (
        (torch.float32, torch.float32),
        (torch.float16, torch.float64),
        (torch.float64, torch.float64),
    ):
        found = torch.bincount(x, weights.to(kind))
        assert found.tolist() == [0.5, 0, 3] and found.dtype is wanted
    assert torch.bincount(x.byte(), x).tolist() == [0, 0, 4]
    assert x[:0].bincount(weights[:0], 2).tolist() == [0, 0] and x[:0].bincount().dtype is torch.int64


def test_histc(device):
    x = torch.tensor([[1.0, 2.0], [1.0, nan]], device=device)
    assert torch.histc(x, 4, 0, 3).tolist() == [0, 2, 1, 0]
    assert x[0].histc(3).tolist() == [1, 0, 1] and x[0, :1].histc(3).tolist() == [0, 1, 0]
    assert x[:0].histc(2).tolist() == [0, 0] and x.half().histc(2, 0, 2).dtype is torch.float16
    array = np.random.default_rng(0).random(100)
    found = torch.from_numpy(array).to(device).histc(7, 0.1, 0.8)
    assert found.tolist() == np.histogram(array, 7, (0.1, 0.8))[0].tolist()


def test_histograms_are_those_of_numpy(device):
    rng = np.random.default_rng(0)
    points, weight = rng.random((60, 2)), rng.random(60)
    x, w = torch.from_numpy(points).to(device), torch.from_numpy(weight).to(device)
    for density in (False, True):
        wanted, edges = np.histogramdd(points, [3, 4], ((0.1, 0.9), (0.0, 0.8)), density, weight)
        found = torch.histogramdd(x, [3, 4], range=[0.1, 0.9, 0.0, 0.8], weight=w, density=density)
        np.testing.assert_allclose(found.hist.cpu().numpy(), wanted)
        for one, other in zip(found.bin_edges, edges, strict=True):
            np.testing.assert_allclose(one.cpu().numpy(), other)
        again = torch.histogramdd(x, found.bin_edges, weight=w, density=density)
        np.testing.assert_allclose(again.hist.cpu().numpy(), wanted)
    wanted, edges = np.histogram(points[:, 0], 5)
    found = torch.histogram(x[:, 0], 5)
    assert found.hist.tolist() == wanted.tolist() and type(found).__name__ == "histogram"
    np.testing.assert_allclose(found.bin_edges.cpu().numpy(), edges)
    assert torch.histogramdd(x.reshape(3, 20, 2), 2).hist.shape == (2, 2)
    flat = torch.ones(3, device=device).histogram(2)
    assert flat.hist.tolist() == [0, 3] and flat.bin_edges.tolist() == [0.5, 1.0, 1.5]
    assert torch.empty(0, device=device).histogram(2).bin_edges.tolist() == [0, 0.5, 1]


CASES = [
    ("torch.searchsorted([1], x)", TypeError, "searchsorted(): argument 'sorted_sequence' (position 1) must be Tensor"),
    ("torch.searchsorted(x, x, side='x')", RuntimeError, "torch.searchsorted(): side can only be 'left' or 'right'"),
    (
        "torch.searchsorted(x, x, right=True, side='left')",
        RuntimeError,
        "torch.searchsorted(): side and right can't be",
    ),
    (
        "torch.searchsorted(torch.tensor(1.0), x)",
        RuntimeError,
        "torch.searchsorted(): boundaries tensor should have pos",
    ),
    ("torch.searchsorted(m, 1.0)", RuntimeError, "torch.searchsorted(): input value can be a scalar only when"),
    ("torch.searchsorted(m, x)", RuntimeError, "torch.searchsorted(): boundaries tensor should be 1 dimension or the"),
    ("torch.searchsorted(x, x, sorter=i[:2])", RuntimeError, "torch.searchsorted(): boundary and sorter must have the"),
    ("torch.searchsorted(x, x, sorter=x)", RuntimeError, "torch.searchsorted(): sorter must be a tensor of long dtype"),
    ("torch.searchsorted(x, x, sorter=i + 1)", RuntimeError, "torch.searchsorted(): sorter index out of range"),
    ("torch.searchsorted(x > 0, x > 0)", NotImplementedError, "\"searchsorted\" not implemented for 'Bool'"),
    ("torch.bucketize(x, m)", RuntimeError, "boundaries tensor must be 1 dimension, but got dim(2)"),
    ("x.bincount()", NotImplementedError, "\"bincount_cpu\" not implemented for 'Float'"),
    ("(-i).bincount()", RuntimeError, "bincount only supports 1-d non-negative integral inputs."),
    ("i.reshape(1, 3).bincount()", RuntimeError, "bincount only supports 1-d non-negative integral inputs."),
    ("i.bincount(minlength=-1)", RuntimeError, "minlength should be >= 0"),
    ("i.bincount(x[:2])", RuntimeError, "weights should be 1-d and have the same length as input"),
    ("x.histc(0)", RuntimeError, "torch.histogram(): bins must be > 0, but got 0 for dimension 0"),
    ("x.histc(2.5)", TypeError, "histc(): argument 'bins'"),
    ("x.histc(3, 2, 1)", RuntimeError, "torch.histc: max must be larger than min"),
    ("(x * math.nan).histc(3)", RuntimeError, "torch.histc: range of [nan, nan] is not finite"),
    ("i.histc(3)", NotImplementedError, "\"histogram_cpu\" not implemented for 'Long'"),
    ("i.histogram(3)", NotImplementedError, "\"histogramdd\" not implemented for 'Long'"),
    ("x.histogram(0)", RuntimeError, "torch.histogram(): bins must be > 0"),
    ("x.histogram(x, range=(0.0, 1.0))", TypeError, "histogram() received an invalid combination of arguments"),
    ("x.histogram(x.double())", RuntimeError, "torch.histogramdd: input tensor and bins tensors should have the same"),
    ("x.histogram(m)", RuntimeError, "torch.histogramdd: bins tensor should have one dimension, but got 2"),
    ("x.histogram(x[:0])", RuntimeError, "torch.histogramdd: bins tensor should have at least 1 element"),
    (
        "x.histogram(2, range=(2.0, 1.0))",
        RuntimeError,
        "torch.histogramdd: min should not exceed max, but got min 2 max 1",
    ),
    ("(x * math.inf).histogram(2)", RuntimeError, "torch.histogramdd: dimension 0's range [inf, inf] is not finite"),
    (
        "x.histogram(2, weight=x[:2])",
        RuntimeError,
        "torch.histogramdd: if weight tensor is provided it should have the",
    ),
    (
        "x.histogram(2, weight=x.double())",
        RuntimeError,
        "torch.histogramdd: if weight tensor is provided, input tensor",
    ),
    ("torch.histogramdd(x, [2])", RuntimeError, "torch.histogramdd: input tensor should have at least 2 dimensions"),
    ("torch.histogramdd(m, [2, 2])", RuntimeError, "histogramdd: The size of bins must be equal to the innermost"),
    ("torch.histogramdd(m, [2, 2, 0])", RuntimeError, "torch.histogramdd: bins must be > 0, but got 0 for dimension 2"),
    (
        "torch.histogramdd(m, 2, range=[0.0, 1.0])",
        RuntimeError,
        "torch.histogramdd: for a 3-dimensional histogram range",
    ),
]


@pytest.mark.parametrize(("call", "error", "words"), CASES, ids=[case[0] for case in CASES])
def test_errors(call, error, words):
    names = {"torch": torch, "math": math, "x": torch.ones(3), "m": torch.ones(2, 3), "i": torch.arange(3)}
    with pytest.raises(error) as raised:
        eval(call, names)
    assert str(raised.value).startswith(words)
