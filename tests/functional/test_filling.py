"""Frames, grids and sums without NaN: gradients and devices; values are compared with PyTorch's by `-m peer`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda
from tritensor.nn import functional as F

from ..needs import HAS_TRITON

NUMPYS = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
X = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)


def test_pad(device):
    x = torch.arange(6.0, device=device).reshape(2, 3)
    found = F.pad(x, (1, -1, 2, 0), value=-1.0)
    assert found.tolist() == [[-1, -1, -1], [-1, -1, -1], [-1, 0, 1], [-1, 3, 4]]
    whole = torch.ones(2, dtype=torch.int8, device=device)
    for widths in ((), (0, 0), (-1, 0)):  # nothing is added, and the value may be any
        cut = F.pad(whole, widths, "constant", float("inf"))
        assert cut.tolist() == [1] * (2 + sum(widths))
        cut.fill_(3)
        assert whole.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="value cannot be converted"):
        F.pad(whole, (-1, 1), "constant", float("inf"))
    assert F.pad(whole, (0, True)).tolist() == [1, 1, 0]  # PyTorch looks at the first number alone
    y = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda y: F.pad(y, (1, -2, 0, 1)) ** 2, (y,))


@pytest.mark.parametrize("mode", NUMPYS)
@pytest.mark.parametrize("widths", [(1, 2), (0, 3), (2, 0, 1, 2), (1, 1, 2, 0, 1, 0), (0, 0), ()])
def test_pad_with_own_elements(mode: str, widths: tuple[int, ...]) -> None:
    pairs = [widths[i : i + 2] for i in range(0, len(widths), 2)][::-1]
    expected = np.pad(X, [(0, 0)] * (3 - len(pairs)) + pairs, NUMPYS[mode])  # type: ignore[call-overload]
    x = torch.from_numpy(X.copy()).requires_grad_()
    found = F.pad(x, widths, mode)
    assert np.array_equal(found.detach().numpy(), expected) and found is not x
    found.sum().backward()
    counts = np.bincount(expected.astype(int).reshape(-1), minlength=24).reshape(X.shape)
    assert np.array_equal(x.grad.numpy(), counts)
    if HAS_TRITON:
        with cuda.simulate():
            assert np.array_equal(F.pad(torch.from_numpy(X).cuda(), widths, mode).cpu().numpy(), expected)


@pytest.mark.parametrize(
    ("widths", "mode", "wanted"),
    [
        ((-1, 2), "constant", [2, 3, 4, 0, 0]),
        ((2, -1), "constant", [0, 0, 1, 2, 3]),
        ((-1, -3), "constant", []),
        ((-4, 2), "constant", [0, 0]),
        ((2, -4), "constant", [0, 0]),
        ((-1, 2), "reflect", [2, 3, 4, 3, 2]),
        ((-3, 3), "reflect", [4, 3, 2, 1]),
        ((-4, 2), "reflect", [3, 2]),
        ((-5, 3), "reflect", [2, 1]),
        ((2, -5), "reflect", [3]),
        ((-1, 2), "replicate", [2, 3, 4, 4, 4]),
        ((-4, 2), "replicate", [4, 4]),
        ((3, -5), "replicate", [1, 1]),
        ((-1, 2), "circular", [2, 3, 4, 2, 3]),
        ((-1, -2), "circular", [2]),
        ((-2, -2), "circular", []),
    ],
)
def test_pad_takes_off(device, widths: Any, mode: str, wanted: list[int]) -> None:
    x = torch.arange(1.0, 5.0, device=device, requires_grad=True)
    found = F.pad(x, widths, mode)
    assert found.tolist() == wanted
    found.sum().backward()
    assert x.grad.tolist() == [wanted.count(number) for number in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (((4, 0), "reflect"), RuntimeError, "Padding size should be less than the corresponding input dimension"),
        (((5, 0), "circular"), RuntimeError, "Padding value causes wrapping around more than once"),
        (((-5, 1), "constant"), RuntimeError, r"narrow\(\): length must be non-negative."),
        (((1, -5), "constant"), RuntimeError, r"narrow\(\): length must be non-negative."),
        (((-3, -2), "constant"), RuntimeError, r"narrow\(\): length must be non-negative."),
        (((-5, 7), "constant"), RuntimeError, r"narrow\(\): length must be non-negative."),
        (((-4, 4), "reflect"), RuntimeError, "Padding size should be less"),
        (((-4, 1), "circular"), RuntimeError, "Padding value causes wrapping around more than once"),
        (((-4, -1), "circular"), RuntimeError, "Negative padding value is resulting in an empty dimension"),
        (((-4, -1), "replicate"), RuntimeError, r"input \(W: 4\) is too small. Calculated output W: -1"),
        (((-2, -2), "reflect"), RuntimeError, r"input \(W: 4\) is too small. Calculated output W: 0"),
        (((1, 0), "mirror"), NotImplementedError, "Unrecognised padding mode mirror"),
        (((1, 0), "reflect", 1.0), RuntimeError, "doesn't take in value argument"),
        (((True, 0),), TypeError, "must be tuple of ints, but found element of type bool at pos 0"),
        (((0, 1.0),), TypeError, "must be tuple of ints, but found element of type float at pos 1"),
    ],
)
def test_pad_refuses(arguments: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        F.pad(torch.arange(4.0), *arguments)


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
