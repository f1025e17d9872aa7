"""Distances between vectors, and bilinear forms, with their layers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn
from tritensor.functional.matmul import distances
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


@pytest.mark.parametrize(
    ("p", "row", "slope"),
    [
        (0, [2, 0, 2], [0, 0]),
        (1, [7, 0, 6], [2, 2]),
        (2, [5, 0, math.sqrt(18)], [0.6 + math.sqrt(0.5), 0.8 + math.sqrt(0.5)]),
        (math.inf, [4, 0, 3], [0.5, 1.5]),
    ],
)
@pytest.mark.parametrize("mode", ["use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"])
def test_distances_of_rows_of_two(device, p, row, slope, mode) -> None:
    x = torch.tensor(POINTS, device=device, dtype=torch.float64, requires_grad=True)
    out = torch.cdist(x[1:2], x[[0, 1, 2]].detach(), p, mode)
    out.sum().backward()
    assert out.tolist()[0] == pytest.approx(row) and x.grad[1].tolist() == pytest.approx(slope)
    assert out.grad_fn.name() == ("ViewBackward0" if p == 2 and mode.startswith("use") else "CdistBackward0")


def test_distances_of_many_rows_and_batches(device) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 1, 30, 3)), rng.standard_normal((3, 4, 3))
    x, y = torch.tensor(a, device=device, requires_grad=True), torch.tensor(b, device=device)
    expected = np.linalg.norm(a[..., :, None, :] - b[..., None, :, :], axis=-1)
    assert torch.cdist(x, y).detach().cpu().numpy() == pytest.approx(expected)
    assert torch.cdist(x[:0], y[:1]).shape == (0, 1, 30, 4) and not torch.cdist(x[..., :0], y[..., :0]).any()


def test_distances_are_differentiated_twice() -> None:
    x, y = torch.tensor(POINTS).double(), torch.tensor([[1.0, 2.0], [0.5, 0.25]]).double()
    for mode in ("use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
        assert torch.autograd.gradgradcheck(lambda x: torch.cdist(x, y, compute_mode=mode), (x.requires_grad_(),))  # noqa: B023


def test_blocks_of_distances_are_joined(monkeypatch) -> None:
    monkeypatch.setattr(distances, "_BLOCK", 4)
    x = torch.tensor(POINTS)
    assert torch.cdist(x, x, 1).tolist() == [[0, 7, 1], [7, 0, 6], [1, 6, 0]]


def test_distance_of_two_and_limited_norms(device) -> None:
    x = torch.tensor([[3.0, 4.0], [0.3, 0.4]], device=device, requires_grad=True)
    made = torch.dist(x, torch.zeros(2, device=device), 1)
    assert made.item() == pytest.approx(7.7) and made.grad_fn.name() == "DistBackward0"
    limited = torch.renorm(x, 2, 0, 1)
    assert limited.tolist()[0] == pytest.approx([0.6, 0.8]) and limited.tolist()[1] == x.tolist()[1]
    held = x.detach().half()
    assert held.renorm_(1, -1, 3.3) is held and held[:, 0].sum().item() == pytest.approx(3.3, rel=1e-3)
    assert torch.autograd.gradcheck(lambda x: torch.renorm(x, 3, 1, 1.0), (x.detach().double().requires_grad_(),))


X = torch.ones(2, 3)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: torch.cdist(X, X, compute_mode="x"), ValueError, "x is not a valid value for compute_mode"),
        (lambda: torch.cdist(X, X, "2"), TypeError, "argument 'p' .position 3. must be float"),
        (lambda: torch.cdist(X, X[0]), RuntimeError, "cdist only supports at least 2D tensors, X2 got: 1D"),
        (lambda: torch.cdist(X.long(), X), RuntimeError, "cdist only supports floating-point dtypes, X1 got: Long"),
        (lambda: torch.cdist(X, X[:, 1:]), RuntimeError, "same number of columns. X1: 3 X2: 2"),
        (lambda: torch.cdist(X, X, -1), RuntimeError, "cdist only supports non-negative p values"),
        (lambda: torch.cdist(X, X.double()), RuntimeError, "expected scalar type Float but found Double"),
        (lambda: torch.cdist(X.expand(2, 2, 3), X.expand(3, 2, 3)), RuntimeError, "The size of tensor a"),
        (lambda: torch.dist(X.long(), X.long()), RuntimeError, r"norm\(\): input dtype should be either floating"),
        (lambda: torch.renorm(X, 1j, 0, 1), RuntimeError, "renorm: p must be real-valued"),
        (lambda: torch.renorm(X, 0, 0, 1), RuntimeError, "renorm: non-positive-norm not supported"),
        (lambda: torch.renorm(X, 2, 0, 1j), RuntimeError, "renorm: maxnorm must be real-valued"),
        (lambda: torch.renorm(X, 2, 0, -1), RuntimeError, "renorm: expected maxnorm to be >= 0 but got -1"),
        (lambda: torch.renorm(X[0], 2, 0, 1), RuntimeError, "renorm: input needs at least 2 dimensions, got 1"),
        (lambda: torch.renorm(X, 2, 2, 1), IndexError, "Dimension out of range"),
    ],
)
def test_refused_distances(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()
