"""Losses that are declared by the formula of their elements: values, gradients, warnings and words."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn
from tritensor.nn import functional as F

INF = float("inf")


NAMES = {
    "x": [[0.5, -1.0, 2.0], [0.25, 0.0, -3.0]],
    "y": [[1.0, 1.0, -1.0], [0.0, 2.0, 3.0]],
    "share": [[0.25, 0.5, 0.75], [0.125, 0.0, 1.0]],
    "sign": [[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]],
    "w": [1.0, 2.0, 3.0],
    "t": [2, 0],
    "labels": [[1, -1, 0], [2, 0, -1]],
    "ends": [1, -1],
}


def names(device):
    return {"F": F, "torch": torch, **{name: torch.tensor(each, device=device) for name, each in NAMES.items()}}


# (call, PyTorch's value)
VALUES = [
    ("F.mse_loss(x, y, reduction='none', weight=torch.ones_like(x) * 2)", [[0.5, 8.0, 18.0], [0.125, 8.0, 72.0]]),
    ("F.mse_loss(x, y, weight=x * x)", 25.43695),
    ("F.smooth_l1_loss(x, y, reduction='none')", [[0.125, 1.5, 2.5], [0.03125, 1.5, 5.5]]),
    ("F.smooth_l1_loss(x, y, beta=0.25)", 2.166667),
    ("F.smooth_l1_loss(x, y, beta=0)", 2.291667),
    ("F.huber_loss(x, y, reduction='none', delta=2)", [[0.125, 2.0, 4.0], [0.03125, 2.0, 10.0]]),
    ("F.huber_loss(x, y, weight=x * x)", 10.1722),
    ("F.binary_cross_entropy(share[0], share[1], reduction='none')", [0.4250086, 0.6931472, 0.2876821]),
    ("F.binary_cross_entropy(share, share, weight=w)", 0.6687341),
    ("F.kl_div(x, share, reduction='none')", [[-0.4715736, 0.1534264, -1.715762], [-0.2911802, 0.0, 3.0]]),
    ("F.kl_div(x, share, reduction='batchmean')", 0.3374555),
    ("F.kl_div(x, share, log_target=True, reduction='sum')", 10.23731),
    ("F.poisson_nll_loss(x, y)", 3.873245),
    ("F.poisson_nll_loss(x * x, y, log_input=False, full=True, reduction='sum')", 49.75067),
    ("F.gaussian_nll_loss(x, y, x * x, full=True)", 333334.1),
    ("F.gaussian_nll_loss(x, y, w[:2], reduction='sum')", 17.68035),
    ("F.gaussian_nll_loss(x, y, 2.0, reduction='sum')", 15.40757),
    ("F.soft_margin_loss(x, sign)", 0.9136567),
    ("F.multilabel_soft_margin_loss(x, (sign + 1) / 2, w, reduction='none')", [0.4937948, 3.785998]),
    ("F.hinge_embedding_loss(x, sign, reduction='none')", [[0.5, 2.0, 2.0], [0.75, 1.0, -3.0]]),
    ("F.margin_ranking_loss(x, y, sign, margin=0.5, reduction='none')", [[1.0, 0.0, 0.0], [0.75, 0.0, 6.5]]),
    ("F.cosine_embedding_loss(x, y, torch.tensor([1, -1], device=x.device), margin=-1.0)", 0.9003823),
    ("F.cosine_embedding_loss(x[0], y[0], torch.tensor(1, device=x.device))", 1.629941),
    ("F.triplet_margin_loss(x, y, y * 2, margin=3.0)", 0.7099509),
    ("F.triplet_margin_loss(x, y, y * 2, p=1, swap=True, reduction='none')", [3.5, 4.25]),
    ("F.triplet_margin_with_distance_loss(x, y, y * 2, margin=3.0)", 0.7099509),
    ("F.triplet_margin_with_distance_loss(x, y, x * 2, distance_function=F.l1_loss, swap=True, margin=2.0)", 3.166667),
    ("F.multi_margin_loss(x, t, reduction='none')", [0.0, 0.25]),
    ("F.multi_margin_loss(x, t, p=2, margin=3.0, weight=w)", 2.385417),
    ("F.multi_margin_loss(x[0], t[0])", 0.0),
    ("F.multilabel_margin_loss(x, labels, reduction='none')", [2.166667, 1.583333]),
    ("F.multilabel_margin_loss(x[0], labels[0])", 2.166667),
]


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("code", "value"), VALUES, ids=[code for code, _ in VALUES])
def test_values(code, value, device):
    found = eval(code, names(device))
    assert found.device == torch.device(device)
    np.testing.assert_allclose(found.cpu().numpy(), value, rtol=1e-5)


def doubles(*shapes, low=-2.0, high=2.0):
    rng = np.random.default_rng(0)
    return [torch.from_numpy(rng.uniform(low, high, shape)).requires_grad_() for shape in shapes]


SIGNS = torch.tensor([[1.0, -1.0, 1.0, 1.0], [-1.0, -1.0, 1.0, -1.0], [1.0, 1.0, -1.0, 1.0]], dtype=torch.float64)
GRADIENTS = {
    "smooth_l1": lambda x, y: F.smooth_l1_loss(x, y, beta=0.7),
    "huber": lambda x, y: F.huber_loss(x, y, delta=0.7, reduction="sum"),
    "bce": lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()),
    "kl_div": lambda x, y: F.kl_div(x, y.exp(), reduction="batchmean"),
    "kl_div of logarithms": lambda x, y: F.kl_div(x, y, log_target=True, reduction="sum"),
    "poisson": lambda x, y: F.poisson_nll_loss(x, y.exp() * 3, full=True),
    "gaussian": lambda x, y: F.gaussian_nll_loss(x, y, y.exp()),
    "soft_margin": lambda x, y: F.soft_margin_loss(x, y),
    "multilabel_soft_margin": lambda x, y: F.multilabel_soft_margin_loss(x, y),
    "hinge": lambda x, y: F.hinge_embedding_loss(x * y, SIGNS),
    "ranking": lambda x, y: F.margin_ranking_loss(x, y, SIGNS),
    "cosine": lambda x, y: F.cosine_embedding_loss(x, y, SIGNS[:, 0]),
    "triplet": lambda x, y: F.triplet_margin_loss(x, y, x.flip(0), margin=9.0, swap=True),
    "multi_margin": lambda x, y: F.multi_margin_loss(x * y, torch.tensor([0, 3, 1]), p=2),
    "multilabel_margin": lambda x, y: F.multilabel_margin_loss(x * y, torch.tensor([[1, 2, -1, 0]] * 3)),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    inputs = doubles((3, 4), (3, 4))
    torch.autograd.gradcheck(GRADIENTS[name], inputs)
    torch.autograd.gradgradcheck(GRADIENTS[name], inputs)


def test_gradients_at_the_ends_of_the_probabilities():
    share = torch.tensor([0.0, 1.0, 0.5], requires_grad=True)
    loss = F.binary_cross_entropy(share, torch.full_like(share, 0.5), reduction="none")
    assert loss.tolist()[:2] == [50.0, 50.0]
    (change,) = torch.autograd.grad(loss.sum(), share)
    np.testing.assert_allclose(change.tolist(), [-5e11, 5e11, 0.0])  # PyTorch's


def test_nodes_have_pytorchs_names():
    (x, y), t = doubles((2, 3), (2, 3)), torch.tensor([0, 1])
    for loss, means, nones in (
        (lambda how: F.smooth_l1_loss(x, y, reduction=how), "SmoothL1Loss", "SmoothL1Loss"),
        (lambda how: F.smooth_l1_loss(x, y, reduction=how, beta=0), "Mean", "Abs"),
        (lambda how: F.huber_loss(x, y, reduction=how), "HuberLoss", "HuberLoss"),
        (lambda how: F.huber_loss(x, y, reduction=how, weight=y), "Mean", "Mul"),
        (lambda how: F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), reduction=how), *["BinaryCrossEntropy"] * 2),
        (lambda how: F.kl_div(x, y, None, None, how), "Mean", "Sub"),
        (lambda how: F.multi_margin_loss(x, t, reduction=how), "MultiMarginLoss", "MultiMarginLoss"),
    ):
        with warnings.catch_warnings(action="ignore"):
            assert [loss(how).grad_fn.name() for how in ("mean", "none")] == [f"{means}Backward0", f"{nones}Backward0"]


def test_warnings():
    x, y = torch.zeros(2, 3), torch.zeros(3)
    words = r"^Using a target size \(tritensor.Size\(\[3\]\)\) that is different to the input size \(tritensor.*\)"
    for loss in (F.smooth_l1_loss, F.huber_loss):
        with pytest.warns(UserWarning, match=words + r"\. This will likely lead to"):
            loss(x, y)
    with pytest.raises(ValueError, match=words + r" is deprecated\. Please ensure"):
        F.binary_cross_entropy(x, y)
    with pytest.warns(UserWarning, match=r"^reduction: 'mean' divides the total loss by both"):
        F.kl_div(x, x)
    with pytest.warns(UserWarning, match=r"^size_average and reduce args will be deprecated.*='sum'") as caught:
        assert F.kl_div(x, x + 1, size_average=False).item() == 0
    assert len(caught) == 1 and caught[0].filename == __file__
    with pytest.warns(UserWarning, match=r"^reduction='elementwise_mean' is deprecated"):
        assert F.soft_margin_loss(x, x, reduction="elementwise_mean").item() == pytest.approx(np.log(2))
    with pytest.warns(UserWarning, match=r"'none'"):
        assert nn.HingeEmbeddingLoss(2.0, None, False)(x, x - 1).tolist() == [[2.0] * 3] * 2
    with pytest.warns(UserWarning, match=r"'sum'"):
        assert F.poisson_nll_loss(x, x, True, False, False).item() == 6.0  # its fifth argument


REFUSED = [
    ("F.smooth_l1_loss(x, y, beta=-1.0)", RuntimeError, "smooth_l1_loss does not support negative values for beta."),
    ("F.huber_loss(x, y, delta=0.0)", RuntimeError, "huber_loss does not support non-positive values for delta."),
    ("F.smooth_l1_loss(t, t)", NotImplementedError, "\"smooth_l1_cpu\" not implemented for 'Long'"),
    ("F.huber_loss(t, t)", NotImplementedError, "\"huber_cpu\" not implemented for 'Long'"),
    ("F.huber_loss(x, y, weight=w)", ValueError, "Weights and input must have the same size."),
    ("F.huber_loss(x, y, 'bad')", ValueError, "bad is not a valid value for reduction"),
    ("F.binary_cross_entropy(x, share)", RuntimeError, "all elements of input should be between 0 and 1"),
    ("F.binary_cross_entropy(share, share.double())", RuntimeError, "Found dtype Double but expected Float"),
    ("F.binary_cross_entropy(t, t)", NotImplementedError, "\"binary_cross_entropy\" not implemented for 'Long'"),
    ("F.kl_div(t, t, reduction='sum')", RuntimeError, "kl_div: Integral inputs not supported."),
    ("F.kl_div(x, share, reduction='bad')", ValueError, "bad is not a valid value for reduction"),
    ("F.gaussian_nll_loss(x, y, x)", ValueError, "var has negative entry/entries"),
    ("F.gaussian_nll_loss(x, y, -1.0)", ValueError, "var has negative entry/entries"),
    ("F.gaussian_nll_loss(x, y, w)", ValueError, "var is of incorrect size"),
    ("F.gaussian_nll_loss(x, y, x * x, reduction='bad')", ValueError, "bad is not valid"),
    ("F.multilabel_soft_margin_loss(x, y, reduction='bad')", ValueError, "bad is not valid"),
    ("F.margin_ranking_loss(x, y, w)", RuntimeError, "margin_ranking_loss : All input tensors should have same"),
    ("F.cosine_embedding_loss(x, y, y)", RuntimeError, "0D or 1D target tensor expected, multi-target not supported"),
    (
        "F.cosine_embedding_loss(x[0], y[0], t)",
        RuntimeError,
        "1D target tensor expects 2D input tensors, but found inputs with sizes [3] and [3].",
    ),
    (
        "F.cosine_embedding_loss(x, y, t[0])",
        RuntimeError,
        "0D target tensor expects 1D input tensors, but found inputs with sizes [2, 3] and [2, 3].",
    ),
    ("F.triplet_margin_loss(x, y, y, margin=0)", ValueError, "margin must be greater than 0, got 0"),
    (
        "F.triplet_margin_with_distance_loss(x, y, y[0])",
        RuntimeError,
        "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
        "anchor 2D, positive 2D, and negative 1D inputs",
    ),
    ("F.multi_margin_loss(x, t, p=3)", ValueError, "only p == 1 and p == 2 supported"),
    ("F.multi_margin_loss(x, t, weight=x)", ValueError, "weight must be one-dimensional"),
    ("F.multi_margin_loss(x, t, weight=w[:2])", RuntimeError, "inconsistent weight size, expected 3 but got [2]"),
    ("F.multi_margin_loss(x, t, weight=w.double())", RuntimeError, "expected scalar type Float but found Double"),
    (
        "F.multi_margin_loss(x, t[:1])",
        RuntimeError,
        "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). "
        "Expected target size [2], but got [1]. Input has shape [2, 3].",
    ),
    ("F.multi_margin_loss(x, t + 1)", RuntimeError, "target out of range"),
    ("F.multi_margin_loss(x, w[:2])", RuntimeError, "expected scalar type Long but found Float"),
    (
        "F.multi_margin_loss(x[None], t)",
        RuntimeError,
        "Expected non-empty vector or matrix with optional 0-dim batch size, but got: [1, 2, 3]",
    ),
    ("F.multilabel_margin_loss(x, labels[0])", RuntimeError, "inconsistent target size: [3] for input of size: [2, 3]"),
    ("F.multilabel_margin_loss(x, labels + 2)", RuntimeError, "argument #2 'target' is out of range"),
]


@pytest.mark.parametrize(("code", "error", "words"), REFUSED, ids=[case[0] for case in REFUSED])
def test_refusals_begin_with_pytorchs_words(code, error, words):
    with warnings.catch_warnings(action="ignore"), pytest.raises(error, match="^" + re.escape(words)):
        eval(code, names("cpu"))


def test_no_rows():
    x, t = torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64)
    assert F.multi_margin_loss(x, t).item() == F.multilabel_margin_loss(x, x.long()).item() == 0.0
    assert F.multi_margin_loss(x, t, reduction="none").shape == (0,)
    assert F.soft_margin_loss(torch.tensor([-1e4]), torch.tensor([1.0])).item() == INF  # as in PyTorch


def test_a_probability_that_is_none_is_asserted_on_a_device():
    pytest.importorskip("triton")
    with torch.cuda.simulate(devices=1), pytest.raises(RuntimeError, match="device-side assert") as raised:
        F.binary_cross_entropy(torch.tensor([1.5], device="cuda"), torch.tensor([1.0], device="cuda")).item()
    assert "all elements of input should be between 0 and 1" in str(raised.value)


def test_layers_take_pytorchs_arguments():
    x, y, z = (torch.tensor(each) for each in ([[0.5, -1.0]], [[1.0, 1.0]], [[2.0, -1.0]]))
    t = torch.tensor([1])
    for layer, arguments, call in (
        (nn.SmoothL1Loss(beta=0.25), (x, y), "F.smooth_l1_loss(x, y, beta=0.25)"),
        (nn.HuberLoss("sum", 0.25), (x, y), "F.huber_loss(x, y, 'sum', 0.25)"),
        (nn.KLDivLoss(reduction="sum", log_target=True), (x, y), "F.kl_div(x, y, reduction='sum', log_target=True)"),
        (
            nn.BCELoss(x[0], reduction="none"),
            (x.sigmoid(), y),
            "F.binary_cross_entropy(x.sigmoid(), y, x[0], None, None, 'none')",
        ),
        (nn.PoissonNLLLoss(False, True, eps=0.5), (y, z), "F.poisson_nll_loss(y, z, False, True, eps=0.5)"),
        (nn.GaussianNLLLoss(full=True), (x, y, y), "F.gaussian_nll_loss(x, y, y, True)"),
        (nn.MultiLabelSoftMarginLoss(y[0] * 3), (x, y), "F.multilabel_soft_margin_loss(x, y, y[0] * 3)"),
        (nn.MultiMarginLoss(2, 0.5, y[0] * 3), (x, t), "F.multi_margin_loss(x, t, 2, 0.5, y[0] * 3)"),
        (nn.MultiLabelMarginLoss(), (x, y.long()), "F.multilabel_margin_loss(x, y.long())"),
        (nn.SoftMarginLoss(), (x, y), "F.soft_margin_loss(x, y)"),
        (nn.HingeEmbeddingLoss(), (x, z), "F.hinge_embedding_loss(x, z)"),
        (nn.CosineEmbeddingLoss(0.1), (x, z, -t), "F.cosine_embedding_loss(x, z, -t, 0.1)"),
        (nn.MarginRankingLoss(0.5), (x, y, z), "F.margin_ranking_loss(x, y, z, 0.5)"),
        (nn.TripletMarginLoss(2.0, 1, 0.5, True), (x, y, z), "F.triplet_margin_loss(x, y, z, 2.0, 1, 0.5, True)"),
    ):
        expected = eval(call, {"F": F, "x": x, "y": y, "z": z, "t": t})
        assert layer(*arguments).tolist() == expected.tolist(), call
        assert repr(layer) == f"{type(layer).__name__}()"
    assert list(nn.BCELoss(y).state_dict()) == ["weight"]
    for make, error, words in (
        (lambda: nn.HuberLoss(delta="1"), TypeError, "delta must be a float or int, got: <class 'str'>"),
        (lambda: nn.MultiMarginLoss(3), ValueError, "only p == 1 and p == 2 supported"),
        (
            lambda: nn.MultiMarginLoss(weight=y),
            ValueError,
            "MultiMarginLoss: expected weight to be None or 1D tensor, got 2D instead",
        ),
        (
            lambda: nn.TripletMarginLoss(-1.0),
            ValueError,
            "TripletMarginLoss: expected margin to be greater than 0, got -1.0 instead",
        ),
        (lambda: nn.GaussianNLLLoss(True), TypeError, r"GaussianNLLLoss.__init__() takes 1 positional argument"),
    ):
        with pytest.raises(error, match=re.escape(words)):
            make()


def test_the_names_of_the_package_have_pytorchs_parameters():
    """Without the deprecated ones, with a number for the reduction, and in another order."""
    x, y, t = torch.tensor([[0.5, 2.0]]), torch.tensor([[1.0, -1.0]]), torch.tensor([1])
    for found, expected in (
        (torch.hinge_embedding_loss(x, y, 0.5, 0), F.hinge_embedding_loss(x, y, 0.5, reduction="none")),
        (torch.margin_ranking_loss(x, y, y, 0.5, 2), F.margin_ranking_loss(x, y, y, 0.5, reduction="sum")),
        (torch.cosine_embedding_loss(x, y, t), F.cosine_embedding_loss(x, y, t)),
        (torch.triplet_margin_loss(x, y, x, 1.0, 2, 0.5, True, 1), F.triplet_margin_loss(x, y, x, 1.0, 2, 0.5, True)),
        (
            torch.poisson_nll_loss(x, x, False, True, 0.5, 2),
            F.poisson_nll_loss(x, x, False, True, eps=0.5, reduction="sum"),
        ),
        (torch.kl_div(x, x, 2, log_target=True), F.kl_div(x, x, reduction="sum", log_target=True)),
        (torch.kl_div(x, x, 0), F.kl_div(x, x, reduction="none")),
        (
            torch.binary_cross_entropy_with_logits(x, x, None, x[0], 2),
            F.binary_cross_entropy_with_logits(x, x, pos_weight=x[0], reduction="sum"),
        ),
    ):
        assert found.tolist() == expected.tolist()
    with pytest.raises(TypeError):
        torch.hinge_embedding_loss(x, y, size_average=True)


def test_a_margin_that_is_just_kept_has_no_gradient() -> None:
    for loss, target in ((F.multi_margin_loss, [2]), (F.multilabel_margin_loss, [[2, -1, -1]])):
        x = torch.tensor([[-2.5, 2.0, 3.0]], requires_grad=True)
        loss(x, torch.tensor(target)).backward()
        assert x.grad.tolist() == [[0, 0, 0]]
