"""unique, unique_consecutive and isin."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tritensor as torch

from ..needs import needs_triton

nan = math.nan


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=[needs_triton, pytest.mark.slow])])
def device(request):
    with torch.cuda.simulate(devices=1):
        yield request.param


@pytest.mark.parametrize("kind", [np.int64, np.float32, np.uint8, np.bool_], ids=lambda kind: kind.__name__)
def test_unique_elements_are_those_of_numpy(kind, device):
    array = np.random.default_rng(0).integers(0, 5, (3, 4)).astype(kind)
    x = torch.from_numpy(array).to(device)
    wanted = np.unique(array, return_inverse=True, return_counts=True)
    found = x.unique(return_inverse=True, return_counts=True)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.cpu().numpy(), other)
    assert x.unique(sorted=False).tolist() == wanted[0].tolist() == torch.unique(x).tolist()
    assert x.unique(return_counts=True)[1].tolist() == wanted[2].tolist()
    ordered, counts = x.flatten().sort().values.unique_consecutive(return_counts=True)
    assert ordered.tolist() == wanted[0].tolist() and counts.tolist() == wanted[2].tolist()


def test_unique_slices(device):
    array = np.random.default_rng(1).integers(0, 2, (6, 2, 1))
    x = torch.from_numpy(array).to(device)
    for dim, given in ((0, x), (1, x.movedim(0, 1)), (-1, x.movedim(0, 2))):
        wanted = np.unique(array, axis=0, return_inverse=True, return_counts=True)
        values, inverse, counts = given.unique(return_inverse=True, return_counts=True, dim=dim)
        np.testing.assert_array_equal(values.movedim(dim, 0).cpu().numpy(), wanted[0])
        assert inverse.tolist() == wanted[1].reshape(-1).tolist() and counts.tolist() == wanted[2].tolist()
    rows = torch.tensor([[1, 2], [1, 2], [0, 5], [1, 2]], device=device)
    values, inverse, counts = rows.unique_consecutive(True, True, dim=0)
    assert values.tolist() == [[1, 2], [0, 5], [1, 2]]
    assert inverse.tolist() == [0, 0, 1, 2] and counts.tolist() == [2, 1, 1]
    assert rows.unique_consecutive(dim=1).tolist() == rows.tolist()
    assert rows.narrow(0, 0, 1).unique(dim=0).tolist() == [[1, 2]]


def test_nan_is_equal_to_nothing(device):
    x = torch.tensor([nan, 1.0, nan, 1.0], device=device)
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    np.testing.assert_equal(values.tolist(), [1.0, nan, nan])
    assert inverse.tolist() == [1, 0, 2, 0] and counts.tolist() == [2, 1, 1]
    assert torch.isin(x, x, invert=True).tolist() == [True, False, True, False]


@needs_triton
def test_on_a_device():
    with torch.cuda.simulate(devices=1):
        x = torch.tensor([[2, 0], [2, 0], [1, 9]], dtype=torch.uint8, device="cuda")
        values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
        assert values.tolist() == [0, 1, 2, 9] and inverse.tolist() == [[2, 0], [2, 0], [1, 3]]
        assert counts.tolist() == [2, 1, 2, 1] and x.unique(dim=0).tolist() == [[1, 9], [2, 0]]
        assert torch.isin(x, 9).tolist() == [[False, False], [False, False], [False, True]]


def test_tensors_without_elements(device):
    empty = torch.empty(0, 2, device=device)
    values, inverse, counts = empty.unique(return_inverse=True, return_counts=True)
    assert (values.shape, inverse.shape, counts.shape) == ((0,), (0, 2), (0,))
    values, inverse, counts = empty.unique_consecutive(True, True, dim=0)
    assert (values.shape, inverse.shape, counts.shape) == ((0, 2), (0,), (0,))
    assert torch.tensor(2.0, device=device).unique(return_inverse=True)[1].shape == ()


def test_isin(device):
    x = torch.tensor([[1, 2], [3, 4]], device=device)
    assert torch.isin(x, torch.tensor([4, 2, 9], device=device)).tolist() == [[False, True], [False, True]]
    assert torch.isin(x, torch.tensor([2.5, 3.0], device=device), invert=True).tolist() == [[True, True], [False, True]]
    assert torch.isin(x, 3).tolist() == [[False, False], [True, False]] and torch.isin(3, x).item()
    assert not torch.isin(x, torch.empty(0, device=device)).any() and torch.isin(x, x[:0], invert=True).all()
    flags = torch.tensor([True, False], device=device)
    assert torch.isin(flags, flags[:1], assume_unique=True).tolist() == [True, False]


CASES = [
    ("c.unique()", NotImplementedError, "\"unique\" not implemented for 'ComplexFloat'"),
    ("torch.ones(0, 3).unique(dim=1)", RuntimeError, "There are 0 sized dimensions, and they aren't selected"),
    ("torch.ones(2, 0, 0).unique_consecutive(dim=1)", RuntimeError, "There are 0 sized dimensions, and they aren't"),
    ("x.unique(dim=2)", IndexError, "Dimension out of range"),
    ("torch.unique([1])", TypeError, "unique(): argument 'input' (position 1) must be Tensor, not list"),
    ("torch.isin(1, 2)", TypeError, "isin() received an invalid combination of arguments - got (int, int)"),
    ("torch.isin(c, x)", RuntimeError, "Unsupported input type encountered for isin(): ComplexFloat"),
]


@pytest.mark.parametrize(("call", "error", "words"), CASES, ids=[case[0] for case in CASES])
def test_errors(call, error, words):
    with pytest.raises(error) as raised:
        eval(call, {"torch": torch, "x": torch.ones(3), "c": torch.ones(3).to(torch.complex64)})
    assert str(raised.value).startswith(words)
