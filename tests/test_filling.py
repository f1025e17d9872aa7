"""Frames, grids and sums without NaN: gradients and devices; values are compared with PyTorch's by `-m peer`."""

from __future__ import annotations

import pytest

import tritensor as torch
from tritensor.nn import functional as F


def test_pad(device):
    x = torch.arange(6.0, device=device).reshape(2, 3)
    found = F.pad(x, (1, -1, 2, 0), value=-1.0)
    assert found.tolist() == [[-1, -1, -1], [-1, -1, -1], [-1, 0, 1], [-1, 3, 4]]
    assert F.pad(x, ()).tolist() == x.tolist()
    y = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda y: F.pad(y, (1, -2, 0, 1)) ** 2, (y,))
    with pytest.raises(NotImplementedError, match="'reflect'"):
        F.pad(x, (1, 1), "reflect")


def test_nansum(device):
    x = torch.tensor([[1.0, torch.nan], [torch.nan, torch.nan]], device=device, requires_grad=True)
    assert x.nansum(1).tolist() == [1, 0]
    x.nansum().backward()
    assert x.grad.tolist() == [[1, 0], [0, 0]]


def test_meshgrid(device):
    vectors = torch.arange(2, device=device), torch.arange(3, device=device)
    rows, cols = torch.meshgrid(vectors, indexing="xy")
    assert rows.tolist() == [[0, 1]] * 3
    assert cols.tolist() == [[0, 0], [1, 1], [2, 2]]
    with pytest.warns(UserWarning, match="indexing argument"):
        assert torch.meshgrid(*vectors)[0].shape == (2, 3)
    with pytest.raises(RuntimeError, match="non-empty"):
        torch.meshgrid(indexing="ij")
