"""The loss of sequences of labels: PyTorch's values, forms of arguments and words, and all ways counted one by one."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn
from tritensor.nn import functional as F

INF = float("inf")


def steps(length=4, batch=3, classes=3, device="cpu"):
    angle = torch.arange(float(length * batch * classes), dtype=torch.float64) * 0.7
    return angle.sin().reshape(length, batch, classes).log_softmax(2).to(device)


def spelled(way, blank):
    """What a way through the classes spells."""
    return [label for label, _ in itertools.groupby(way) if label != blank]


def counted(x, labels, blank):
    """The loss of one sequence of steps (T, C), by all ways."""
    ways = itertools.product(range(x.shape[1]), repeat=len(x))
    total = sum(np.exp(sum(x[t, c] for t, c in enumerate(way))) for way in ways if spelled(way, blank) == labels)
    return -np.log(total) if total else INF


@pytest.mark.parametrize("blank", [0, 2])
def test_all_ways_are_counted(blank, device):
    x = steps()
    kinds = [kind for kind in range(3) if kind != blank]
    for labels in ([], *([kind] for kind in kinds), [kinds[0]] * 2, kinds, [*kinds, kinds[0]], [kinds[1]] * 3):
        lengths = [4, 2, 0]
        targets = torch.tensor([labels or [kinds[0]]] * 3, device=device)
        found = F.ctc_loss(x.to(device), targets, lengths, [len(labels)] * 3, blank, "none").tolist()
        expected = [counted(x.numpy()[:length, row], labels, blank) for row, length in enumerate(lengths)]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.sampled(1)
def test_the_gradient_is_that_of_softmax(device):
    scores = (torch.arange(24.0, dtype=torch.float64) * 0.9).sin().reshape(4, 2, 3)
    targets = torch.tensor([[1, 1], [2, 1]], device=device)

    def loss(x):
        return F.ctc_loss(x.to(device).log_softmax(2), targets, [4, 3], [2, 1]).cpu()

    torch.autograd.gradcheck(loss, (scores.requires_grad_(),))
    x = steps(device=device).requires_grad_()
    (change,) = torch.autograd.grad(F.ctc_loss(x, torch.tensor([1, 2, 2], device=device), [4, 3, 3], [1, 2, 0]), x)
    assert not change[3:, 1:].any() and change[:, 0].any(1).all()


def test_too_few_steps(device):
    x = steps(device=device).requires_grad_()
    targets = torch.tensor([[1, 1], [1, 2], [1, 2]], device=device)
    for zero_infinity, values, of_first in ((False, [INF, INF, 2.4], np.nan), (True, [0.0, 0.0, 2.4], 0.0)):
        loss = F.ctc_loss(x, targets, [2, 0, 4], [2, 1, 2], 0, "none", zero_infinity)
        (change,) = torch.autograd.grad(loss.sum(), x)
        assert loss.tolist()[:2] == values[:2] and np.isfinite(loss.tolist()[2])
        np.testing.assert_array_equal(change[:2, 0].cpu().numpy(), np.full((2, 3), of_first))
        assert not change[:, 1].any() and not change[2:, 0].any() and change[:, 2].all()


@pytest.mark.sampled(1)
def test_forms_of_arguments(device):
    x = steps(device=device)
    padded, row = torch.tensor([[1, 9], [2, 1], [-5, 0]], device=device), torch.tensor([1, 2, 1], device=device)
    expected = F.ctc_loss(x, padded, [4, 3, 2], [1, 2, 0], reduction="none")
    for targets in (padded, padded.int(), row, row.to(torch.uint8), row.float()):
        for form in (list, tuple, torch.tensor, lambda sizes: torch.tensor(sizes, dtype=torch.int32, device=device)):
            found = F.ctc_loss(x, targets, form([4, 3, 2]), form([1, 2, 0]), reduction="none")
            assert found.tolist() == expected.tolist()
    mean = (expected / torch.tensor([1.0, 2.0, 1.0], device=device)).mean().item()
    assert F.ctc_loss(x, padded, [4, 3, 2], [1, 2, 0]).item() == pytest.approx(mean)
    assert torch.ctc_loss(x, padded, [4, 3, 2], [1, 2, 0], 0, 2).item() == pytest.approx(expected.sum().item())
    layer = nn.CTCLoss(reduction="sum")
    assert layer(x, padded, (4, 3, 2), (1, 2, 0)).item() == pytest.approx(expected.sum().item())
    alone = F.ctc_loss(x[:, 1], row[1:], torch.tensor(3), torch.tensor(2), reduction="none")
    assert alone.shape == () and alone.item() == pytest.approx(expected[1].item())
    # of labels that no sequence has nothing is read
    assert F.ctc_loss(x, padded[:, :0], [4, 3, 2], [0, 0, 0], reduction="sum").item() > 0


def test_nodes_have_pytorchs_names():
    x, targets = steps().requires_grad_(), torch.tensor([1, 2, 1])
    for more, name in (
        ({}, "MeanBackward0"),
        ({"reduction": "none"}, "CtcLossBackward0"),
        ({"reduction": "none", "zero_infinity": True}, "WhereBackward0"),
    ):
        assert F.ctc_loss(x, targets, [4] * 3, [1] * 3, **more).grad_fn.name() == name


def test_there_is_no_second_gradient():
    x = steps().requires_grad_()
    loss = F.ctc_loss(x, torch.tensor([1, 2, 1]), [4] * 3, [1] * 3)
    (change,) = torch.autograd.grad(loss, x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"^the derivative for .*_ctc_loss_backward.* is not implemented"):
        change.square().sum().backward()


WORDS = "(while checking arguments for ctc_loss_allocate_outputs)"
REFUSED = [
    ("x[:, :0], y[:0], [], []", RuntimeError, "log_probs tensor must not be empty"),
    ("x, y, [4.5, 4, 4], m", TypeError, "ctc_loss() received an invalid combination of arguments"),
    ("x, y, torch.tensor(n), m", TypeError, "ctc_loss() received an invalid combination of arguments"),
    (
        "x[0, 0], y, n, m",
        RuntimeError,
        f"Expected 3-dimensional tensor, but got 2-dimensional tensor for argument #1 'log_probs' {WORDS}",
    ),
    ("x, y, n, m, 3", RuntimeError, "blank must be in label range"),
    ("x, y, n[:2], m", RuntimeError, "input_lengths must be of size batch_size"),
    ("x, y, n, m[:2]", RuntimeError, "target_lengths must be of size batch_size"),
    ("x, y, torch.ones(3), torch.tensor(m)", RuntimeError, "input_lengths must be integral"),
    (
        "x, y, n, [1, -1, 1]",
        RuntimeError,
        f"Expected target_lengths to have value at least 0, but got value -1 {WORDS}",
    ),
    ("x, y, [1, -1, 1], m", RuntimeError, f"Expected input_lengths to have value at least 0, but got value -1 {WORDS}"),
    ("x, y, [5, 1, 1], m", RuntimeError, f"Expected input_lengths to have value at most 4, but got value 5 {WORDS}"),
    (
        "x, y[None], n, m",
        RuntimeError,
        f"Expected 1 to 2 dimensions, but got 3-dimensional tensor for argument #2 'targets' {WORDS}",
    ),
    (
        "x, y[:2], n, m",
        RuntimeError,
        f"Expected tensor to have size 3 at dimension 0, but got size 2 for argument #2 'targets' {WORDS}",
    ),
    (
        "x, y.flatten(), n, m",
        RuntimeError,
        f"Expected tensor to have size 5 at dimension 0, but got size 6 for argument #2 'targets' {WORDS}",
    ),
    (
        "x, y, n, [3, 1, 1]",
        RuntimeError,
        f"Expected tensor to have size at least 3 at dimension 1, but got size 2 for argument #2 'targets' {WORDS}",
    ),
    ("x, y + 2, n, m", IndexError, "Target 3 is out of bounds."),
    ("x.half(), y, n, m", NotImplementedError, "\"ctc_loss_cpu\" not implemented for 'Half'"),
    ("x.long(), y, n, m", NotImplementedError, "\"ctc_loss_cpu\" not implemented for 'Long'"),
    ("x, y, n, m, 0, 'bad'", ValueError, "bad is not a valid value for reduction"),
]


@pytest.mark.parametrize(("arguments", "error", "words"), REFUSED, ids=[case[0] for case in REFUSED])
def test_refusals_begin_with_pytorchs_words(arguments, error, words):
    names = {"x": steps(), "y": torch.tensor([[1, 2], [2, 1], [1, 1]]), "n": [4, 4, 4], "m": [1, 2, 2]}
    with pytest.raises(error, match="^" + re.escape(words)):
        eval(f"F.ctc_loss({arguments})", {"F": F, "torch": torch, **names})


def test_shapes_that_an_operator_refuses():
    x, lengths = steps(), torch.tensor([1, 1, 1])
    from tritensor.kernels.rowwise.ctc import ctc_backward, ctc_loss

    with pytest.raises(RuntimeError, match="do not fit together"):
        ctc_loss(x, lengths, lengths, lengths, blank=0)
    loss, alpha = ctc_loss(x, lengths[:, None], lengths, lengths, blank=0)
    with pytest.raises(RuntimeError, match="do not fit together"):
        ctc_backward(loss, x, lengths[:, None], lengths, lengths, loss, alpha[:, :, :2], blank=0, zero_infinity=False)


def test_labels_beyond_the_classes_are_refused_on_a_device_unless_they_do_not_count():
    pytest.importorskip("triton")
    x, labels = steps(), torch.tensor([[2, 7], [0, -3], [1, 1]])
    with torch.cuda.simulate(devices=1):
        found = F.ctc_loss(x.to("cuda"), labels.to("cuda"), [4] * 3, [1] * 3)
        assert found.item() == pytest.approx(F.ctc_loss(x, labels, [4] * 3, [1] * 3).item())
        with pytest.raises(IndexError, match=r"Target 7 is out of bounds.\n  ctc_loss: element \[0, 1\] is 7"):
            F.ctc_loss(x.to("cuda"), labels.to("cuda"), [4] * 3, [2, 1, 1])
