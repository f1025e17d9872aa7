"""Losses with a linear layer of their own: by chunks of rows, and by clusters of rare classes."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn
from tritensor.functional.rowwise import chunked_cross_entropy
from tritensor.functional.rowwise.chunked_cross_entropy import rows_of_chunk
from tritensor.nn import functional as F

F64 = torch.float64


def parts(rows=10, features=3, classes=7, dtype=F64, device="cpu"):
    rng = np.random.default_rng(0)
    made = [
        torch.from_numpy(rng.standard_normal(shape)) for shape in ((rows, features), (classes, features), (classes,))
    ]
    target = torch.from_numpy(rng.integers(0, classes, rows)).to(device)
    return [each.to(dtype).to(device).requires_grad_() for each in made], target


CASES = [
    {},
    {"reduction": "sum"},
    {"reduction": "none"},
    {"ignore_index": 3},
    {"weight": True},
    {"weight": True, "label_smoothing": 0.2, "ignore_index": 2},
    {"label_smoothing": 0.1, "reduction": "none"},
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_chunks_equal_the_whole(case, device):
    (x, w, b), target = parts(6, device=device)
    more = dict(case)
    if "weight" in more:
        more["weight"] = torch.arange(1.0, 8.0, dtype=F64, device=device)
    found = F.linear_cross_entropy(x, w, target, linear_bias=b, **more, options=nn.LinearCrossEntropyOptions(False, 4))
    expected = F.cross_entropy(F.linear(x, w, b), target, **more)
    assert found.grad_fn.name() == "_InChunksBackward"
    torch.testing.assert_close(found, expected)
    grad = torch.arange(1.0, found.numel() + 1, dtype=F64, device=device).reshape(found.shape)
    for inputs in ((x, w, b), (w,), (x, b))[: 1 if device == "cuda" else 3]:
        changes = torch.autograd.grad(found, inputs, grad, retain_graph=True)
        for mine, whole in zip(changes, torch.autograd.grad(expected, inputs, grad, retain_graph=True), strict=True):
            torch.testing.assert_close(mine, whole)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_gradients_of_chunks(reduction):
    (x, w, b), target = parts(rows=5)
    options = nn.LinearCrossEntropyOptions(batch_chunk_size=2)

    def loss(x, w, b):
        return F.linear_cross_entropy(x, w, target, linear_bias=b, reduction=reduction, options=options)

    torch.autograd.gradcheck(loss, (x, w, b))
    torch.autograd.gradgradcheck(loss, (x, w, b))
    (only,) = torch.autograd.grad(loss(x.detach(), w, b.detach()).sum(), w)
    torch.testing.assert_close(only, torch.autograd.grad(loss(x, w, b).sum(), w)[0])


def test_without_a_graph_no_gradient_is_computed(monkeypatch):
    (x, w, _), target = parts()
    asked = []
    right = chunked_cross_entropy.cross_entropy_backward
    monkeypatch.setattr(
        chunked_cross_entropy, "cross_entropy_backward", lambda *a, **k: asked.append(1) or right(*a, **k)
    )
    options = nn.LinearCrossEntropyOptions(batch_chunk_size=5)
    with torch.no_grad():
        F.linear_cross_entropy(x, w, target, options=options)
    assert not asked
    F.linear_cross_entropy(x, w, target, options=options)
    assert len(asked) == 2


def test_half_precision_adds_chunks_in_float32():
    (x, w, b), target = parts(rows=300, dtype=torch.float16)
    loss = F.linear_cross_entropy(x, w, target, linear_bias=b, options=nn.LinearCrossEntropyOptions(batch_chunk_size=1))
    whole = F.cross_entropy(F.linear(x.float(), w.float(), b.float()), target)
    assert loss.dtype is torch.float16
    torch.testing.assert_close(loss.float(), whole, rtol=2e-3, atol=2e-3)
    for mine, wide in zip(torch.autograd.grad(loss, (x, w, b)), torch.autograd.grad(whole, (x, w, b)), strict=True):
        assert mine.dtype is torch.float16
        torch.testing.assert_close(mine.float(), wide.float(), rtol=5e-3, atol=5e-3)


def test_all_scores_are_never_held():
    (x, w, _), target = parts(rows=2048, features=4, classes=2000, dtype=torch.float32)
    scores = 2048 * 2000 * 4
    assert rows_of_chunk(2048, 4, 2000) == 8
    tracemalloc.start()
    F.linear_cross_entropy(x, w, target).backward()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < scores / 4  # 64 rows at once, of 2,048


def test_chunks_of_options():
    sizes = 1000, 10, 200  # 1,000 / 20 rows, the next power of two
    for options, rows in (
        ({}, 64),
        ({"chunking_method": "aspect_ratio:4"}, 16),
        ({"batch_chunk_size": 7}, 7),
        ({"chunking_method": None}, 1000),
        ({"chunking_method": "aspect_ratio", "batch_chunk_size": 64}, 64),
    ):
        assert nn.LinearCrossEntropyOptions(**options).rows(*sizes) == rows
    assert rows_of_chunk(3, 10, 1 << 20) == 1 and rows_of_chunk(5, 10, 3) == 5
    for options, words in (
        ({"acc_policy": "x"}, "invalid acc_policy: 'x'"),
        ({"chunking_method": "aspect_ratio:0"}, "invalid chunking_method: 'aspect_ratio:0'"),
        ({"batch_chunk_size": 0}, "batch_chunk_size must be positive int or None, got 0"),
        ({"acc_dtype": torch.int64}, "acc_dtype must be one of {None, torch.float16"),
    ):
        with pytest.raises(ValueError, match="^" + re.escape(words)):
            nn.LinearCrossEntropyOptions(**options)
    with pytest.raises(ValueError, match=r"^batch_chunk_size \(=7\) and chunking_method \('aspect_ratio'\)"):
        nn.LinearCrossEntropyOptions(batch_chunk_size=7, chunking_method="aspect_ratio").rows(*sizes)


REFUSED = [
    ("x[None], w, t", "expected input with dimensionality 1 or 2, got 3"),
    ("x, b, t", "expected linear_weight with dimensionality at least 2, got 1"),
    (
        "x[:, :2], w, t",
        "expected equal input and linear_weight last dimensions (in_features), got 2 and 3, respectively",
    ),
    ("x, w, t, linear_bias=b[:2]", "expected linear_bias shape (7,), got (2,)"),
    (
        "x[0], w[:, None], t",
        "K-dimensional loss defined by linear_weight shape (7, 1, 3) requires batched input, (N, 3)",
    ),
    ("x, w, x @ w.T, ignore_index=1", "ignore_index cannot be specified when target contains probabilities"),
    ("x, w, t, label_smoothing=2.0, options=o", "label_smoothing must be between 0.0 and 1.0. Got: 2"),
    ("x, w, t, weight=b[:2], options=o", "weight tensor should be defined either for all 7 classes or no classes"),
    ("x, w, t[:2], options=o", "Expected input batch_size (10) to match target batch_size (2)."),
    ("x, w, t + 7, options=o", "Target "),
    ("x, w, t, reduction='bad', options=o", "bad is not a valid value for reduction"),
]


@pytest.mark.filterwarnings("ignore:linear_cross_entropy")
@pytest.mark.parametrize(("arguments", "words"), REFUSED, ids=[case[0] for case in REFUSED])
def test_refusals_begin_with_pytorchs_words(arguments, words):
    (x, w, b), t = parts()
    names = {"x": x, "w": w, "b": b, "t": t, "o": nn.LinearCrossEntropyOptions(batch_chunk_size=2)}
    with pytest.raises((RuntimeError, ValueError, IndexError), match="^" + re.escape(words)):
        eval(f"F.linear_cross_entropy({arguments})", {"F": F, **names})


def test_scores_of_several_dimensions():
    (x, w, b), _ = parts(classes=6)
    target = torch.arange(20).reshape(10, 2) % 3
    expected = F.cross_entropy(F.linear(x, w, b).reshape(10, 3, 2), target)
    with pytest.warns(UserWarning, match=r"^linear_cross_entropy: ``options`` ignored"):
        found = F.linear_cross_entropy(
            x, w.reshape(3, 2, 3), target, linear_bias=b.reshape(3, 2), options=nn.LinearCrossEntropyOptions()
        )
    assert found.item() == expected.item()
    shares = torch.full((10, 6), 1 / 6, dtype=F64)
    assert F.linear_cross_entropy(x, w, shares).item() == F.cross_entropy(F.linear(x, w), shares).item()
    assert F.linear_cross_entropy(x[0], w, torch.tensor(1)).shape == ()


def test_the_layer():
    layer = nn.LinearCrossEntropyLoss(4, 10, bias=True, weight=torch.ones(10), label_smoothing=0.1)
    assert list(layer.state_dict()) == ["weight", "linear.weight", "linear.bias"]
    assert repr(layer) == (
        "LinearCrossEntropyLoss(\n"
        "  in_features=4, num_classes=10, out_features=(), bias=True, reduction=mean, ignore_index=None, "
        "label_smoothing=0.1, options=None\n"
        "  (linear): Linear(in_features=4, out_features=10, bias=True)\n)"
    )
    x, target = torch.randn(3, 4), torch.tensor([1, 2, 9])
    assert layer(x, target).item() == pytest.approx(
        F.cross_entropy(layer.linear(x), target, label_smoothing=0.1).item()
    )
    for options, words in (
        ({"weight": torch.ones(3)}, "expected weight shape to be (10,), got (3,)"),
        ({"label_smoothing": 1.5}, "expected label_smoothing to be in range [0, 1], got 1.5"),
    ):
        with pytest.raises(RuntimeError, match="^" + re.escape(words)):
            nn.LinearCrossEntropyLoss(4, 10, **options)


# ---- clusters -------------------------------------------------------------------------------------------------


def adaptive(device="cpu", **more):
    torch.manual_seed(0)
    return nn.AdaptiveLogSoftmaxWithLoss(16, 20, [5, 10, 15], div_value=2.0, **more).to(device)


def test_the_probabilities_of_clusters(device):
    layer = adaptive(device, head_bias=True)
    assert [tuple(each.shape) for each in layer.parameters()] == [
        (8, 16),
        (8,),
        *[(8, 16), (5, 8), (4, 16), (5, 4), (2, 16), (5, 2)],
    ]
    x, target = torch.randn(6, 16).to(device), torch.tensor([0, 4, 5, 12, 19, 7], device=device)
    logs = layer.log_prob(x)
    assert logs.shape == (6, 20)
    np.testing.assert_allclose(logs.exp().sum(1).tolist(), [1.0] * 6, rtol=1e-5)
    output, loss = layer(x, target)
    np.testing.assert_allclose(output.tolist(), logs.gather(1, target.unsqueeze(1)).squeeze(1).tolist(), rtol=1e-5)
    assert loss.item() == pytest.approx(-output.mean().item(), rel=1e-5)
    assert layer.predict(x).tolist() == logs.argmax(1).tolist()
    with torch.no_grad():
        layer.head.bias[0] = 100.0
    assert layer.predict(x).tolist() == [0] * 6  # the head alone decides
    alone = layer(x[2], target[2])
    assert alone.output.shape == () and alone.output.item() == pytest.approx(
        layer(x, target).output[2].item(), rel=1e-5
    )


def test_gradients_of_clusters():
    layer = adaptive().double()
    x, target = torch.randn(6, 16, dtype=F64).requires_grad_(), torch.tensor([0, 4, 5, 12, 19, 7])
    torch.autograd.gradcheck(lambda x: layer(x, target).loss, (x,))
    layer(x, torch.tensor([0, 4, 5, 6, 7, 8])).loss.backward()
    used = [bool(each.grad is not None and each.grad.any()) for each in layer.parameters()]
    assert used == [True] * 3 + [False] * 4  # the clusters of no target are not computed


def test_weights_are_drawn_anew():
    layer = adaptive()
    before = [each.clone() for each in layer.parameters()]
    layer.reset_parameters()
    assert not any(one.equal(other) for one, other in zip(before, layer.parameters(), strict=True))


def test_refused_clusters_and_targets():
    for cutoffs in ([], [5, 5], [0, 5], [5, 20], [5.5], [7, 3]):
        with pytest.raises(ValueError, match=r"^cutoffs should be a sequence of"):
            nn.AdaptiveLogSoftmaxWithLoss(16, 20, cutoffs)
    layer, x = adaptive(), torch.zeros(3, 16)
    for input, target, words in (
        (x, [1, 7, 20], r"Target values should be in \[0, 19\], but values in range \[1, 20\] were found\. "),
        (x, [1, 7], "Input and target should have the same size in the batch dimension"),
        (x, 1, "0D target tensor expects 1D input tensors, but found inputs with size"),
        (x[None], [1], "1D target tensor expects 2D input tensors, but found inputs with size"),
        (x, [[1]], "0D or 1D target tensor expected, multi-target not supported"),
    ):
        with pytest.raises(RuntimeError, match="^" + words):
            layer(input, torch.tensor(target))


def test_a_layer_with_a_distance():
    x, y, z = (torch.tensor([[each, 1.0]]) for each in (0.0, 1.0, 1.5))
    layer = nn.TripletMarginWithDistanceLoss(margin=2.0, swap=True)
    assert repr(layer).splitlines()[1:2] == ["  (distance_function): PairwiseDistance()"]
    assert layer(x, y, z).item() == F.triplet_margin_loss(x, y, z, 2.0, swap=True).item() == pytest.approx(2.5)
    other = nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(-1), reduction="sum")
    assert other(x, y, z).item() == 0.5
    with pytest.raises(
        ValueError, match=r"^TripletMarginWithDistanceLoss: expected margin to be greater than 0, got 0"
    ):
        nn.TripletMarginWithDistanceLoss(margin=0)
