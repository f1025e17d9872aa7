"""Distances between vectors, and bilinear forms, with their layers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn
from tritensor.nn import functional as F

POINTS = [[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]


def test_distances_of_pairs(device) -> None:
    x = torch.tensor(POINTS, device=device, requires_grad=True)
    out = F.pairwise_distance(x, torch.zeros(2, device=device), eps=0.0)
    assert out.tolist() == [0, 5, 1] and out.grad_fn.name() == "NormBackward1"
    assert F.pairwise_distance(x, x).tolist() == pytest.approx([math.sqrt(2) * 1e-6] * 3)
    assert nn.PairwiseDistance(1, 0.0, keepdim=True)(x, x * 0).tolist() == [[0], [7], [1]]
    layer = nn.PairwiseDistance(3.0)
    assert repr(layer) == "PairwiseDistance()" and (layer.norm, layer.eps, layer.keepdim) == (3.0, 1e-6, False)
    assert torch.pairwise_distance(torch.tensor([1, 2]), torch.tensor([1, 0]), eps=0.5).dtype is torch.float32


@pytest.mark.parametrize(
    ("p", "expected"),
    [(0, [2, 1, 2]), (1, [7, 1, 6]), (2, [5, 1, math.sqrt(18)]), (math.inf, [4, 1, 3])],
)
def test_distances_of_all_pairs_of_rows(device, p, expected) -> None:
    x = torch.tensor(POINTS, device=device, requires_grad=True)
    out = torch.pdist(x, p)
    out.sum().backward()
    assert out.tolist() == pytest.approx(expected) and out.grad_fn.name() == "PdistBackward0"
    assert x.grad.any().item() == (p > 0)
    assert F.pdist(x[:1], p).tolist() == F.pdist(x[:0], p).tolist() == []
    assert F.pdist(x[:2].detach() * 0, p).tolist() == [0]


def test_the_gradients_of_distances() -> None:
    x = torch.tensor(POINTS, dtype=torch.float64, requires_grad=True)
    y = torch.tensor([[1.0, 2.5]], dtype=torch.float64, requires_grad=True)
    for p in (1.5, 2.0):
        assert torch.autograd.gradcheck(lambda x, p=p: F.pdist(x, p), x)
        assert torch.autograd.gradcheck(lambda x, y, p=p: F.pairwise_distance(x, y, p), (x, y))


def test_the_cosine_of_angles() -> None:
    layer = nn.CosineSimilarity(dim=0)
    assert repr(layer) == "CosineSimilarity()" and layer.eps == 1e-8
    assert layer(torch.tensor([3.0, 4.0]), torch.tensor([4.0, 3.0])).item() == pytest.approx(0.96)
    assert torch.cosine_similarity is F.cosine_similarity


def test_bilinear_forms(device) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in ((2, 4, 3), (2, 4, 2), (5, 3, 2), (5,))]
    x, y, weight, bias = (torch.tensor(each, device=device, requires_grad=True) for each in arrays)
    expected = np.einsum("...i,kij,...j->...k", arrays[0], arrays[2], arrays[1])
    assert np.allclose(F.bilinear(x, y, weight).detach().cpu().numpy(), expected)
    out = F.bilinear(x, y, weight, bias)
    assert np.allclose(out.detach().cpu().numpy(), expected + arrays[3]) and out.grad_fn.name() == "AddBackward0"
    assert np.allclose(torch.bilinear(x[0, 0], y[0, 0], weight).detach().cpu().numpy(), expected[0, 0])
    out.sum().backward()
    assert np.allclose(weight.grad.cpu().numpy(), np.einsum("abi,abj->ij", *arrays[:2]) + np.zeros((5, 1, 1)))
    assert bias.grad.tolist() == [8] * 5


def test_the_gradients_of_bilinear_forms() -> None:
    inputs = [torch.randn(*shape, dtype=torch.float64).requires_grad_() for shape in ((2, 3), (2, 2), (4, 3, 2), (4,))]
    assert torch.autograd.gradcheck(F.bilinear, inputs) and torch.autograd.gradgradcheck(F.bilinear, inputs)


def test_the_bilinear_layer() -> None:
    layer = nn.Bilinear(16, 2, 3)
    assert repr(layer) == "Bilinear(in1_features=16, in2_features=2, out_features=3, bias=True)"
    assert {name: tuple(each.shape) for name, each in layer.state_dict().items()} == {
        "weight": (3, 16, 2),
        "bias": (3,),
    }
    assert 0.2 < layer.weight.abs().max() <= 0.25 and layer.bias.abs().max() <= 0.25
    assert layer(torch.ones(16), torch.ones(2)).shape == (3,)
    assert list(nn.Bilinear(1, 2, 3, bias=False).state_dict()) == ["weight"]


REFUSED = {
    "F.pdist(x[0])": (RuntimeError, "pdist only supports 2D tensors, got: 1D"),
    "F.pdist(x.long())": (RuntimeError, "pdist only supports floating-point dtypes"),
    "F.pdist(x, -1)": (RuntimeError, "pdist only supports non-negative p values"),
    "F.pairwise_distance(x, 1)": (TypeError, r"pairwise_distance\(\): argument 'x2'"),
    "F.pairwise_distance(x, y)": (RuntimeError, "The size of tensor a"),
    "F.bilinear(x, y[:2], w)": (
        RuntimeError,
        r"bilinear\(\): input batch dimensions do not match at dim 0: got 3 and 2",
    ),
    "F.bilinear(x, y, w[:, :1])": (
        RuntimeError,
        r"bilinear\(\): input1 size does not match weight size: got 2 but expec",
    ),
    "F.bilinear(x, y, w[:, :, :1])": (RuntimeError, r"bilinear\(\): input2 size does not match weight size: got 3 but"),
    "F.bilinear(x, y, w, x[0])": (
        RuntimeError,
        r"bilinear\(\): bias size does not match weight size: got 2 but expected",
    ),
    "F.bilinear(x, y[0], w)": (RuntimeError, r"bilinear\(\): input dimensions do not match: got 2 and 1"),
    "F.bilinear(x, y, w[0])": (RuntimeError, r"bilinear\(\): weight must have 3 dimensions, got 2"),
    "F.bilinear(x.double(), y, w)": (RuntimeError, "All tensors must have the same dtype, got input1"),
    "F.bilinear(x, y, 1)": (TypeError, r"bilinear\(\): argument 'weight'"),
    "nn.Bilinear(0, 1, 2)": (ValueError, r"in1_features must be > 0, but got \(in1_features=0\)"),
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_refused(call) -> None:
    kind, words = REFUSED[call]
    scope = {"x": torch.tensor(POINTS), "y": torch.ones(3, 3), "w": torch.ones(4, 2, 3), "F": F, "nn": nn}
    with pytest.raises(kind, match=words):
        eval(call, scope)
