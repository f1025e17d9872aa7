"""Losses: PyTorch's values, words and shapes on every device, their gradients, and what happens to a wrong target."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.kernels.rowwise import loss_kernels as losses_kernel
from tritensor.kernels.rowwise import losses
from tritensor.kernels.rowwise.loss_gradient import gradient_wanted
from tritensor.kernels.rowwise.losses import quick_cross_entropy
from tritensor.nn import functional as F
from tritensor.operators import registry

NAN, INF = float("nan"), float("inf")


@pytest.fixture(params=["cpu", "cuda", "cuda in small blocks"])
def device(request):
    """The CPU; a simulated device with one tile for everything; one whose tiles hold two classes each."""
    if request.param == "cpu":
        yield "cpu"
        return
    with torch.cuda.simulate(devices=1), settings.block(0 if request.param == "cuda" else 2):
        yield "cuda"


def scores(device="cpu"):
    return torch.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], device=device)


def weights(device="cpu"):
    return torch.tensor([1.0, 2.0, 3.0], device=device)


# ---- cross entropy --------------------------------------------------------------------------------------------

# (target, arguments, PyTorch's value) for `scores`
VALUES = [
    ([0, 1], {}, 1.9076060),
    ([0, 1], {"reduction": "sum"}, 3.8152119),
    ([0, 1], {"reduction": "none"}, [2.4076059, 1.4076059]),
    ([0, -100], {}, 2.4076059),
    ([-100, -100], {}, NAN),
    ([-100, -100], {"reduction": "sum"}, 0.0),
    ([-100, 1], {"reduction": "none"}, [0.0, 1.4076059]),
    ([0, 1], {"ignore_index": 1}, 2.4076059),
    ([0, 1], {"label_smoothing": 0.1}, 1.8576059),
    ([0, 1], {"weight": "w"}, 1.7409393),
    ([0, 1], {"weight": "w", "label_smoothing": 0.1}, 1.7100817),
    ([0, 1], {"weight": "w", "label_smoothing": 0.1, "reduction": "none"}, [2.3816999, 2.7485453]),
    ([0, -100], {"weight": "w", "label_smoothing": 0.1}, 2.3816999),
    ([0, -100], {"weight": "w", "label_smoothing": 0.1, "reduction": "sum"}, 2.3816999),
]


@pytest.mark.parametrize(("target", "arguments", "value"), VALUES, ids=str)
def test_cross_entropy_values(target, arguments, value, device):
    arguments = {key: weights(device) if value == "w" else value for key, value in arguments.items()}
    for dtype in (torch.int64, torch.uint8):
        if dtype is torch.uint8 and min(target) < 0:
            continue
        loss = F.cross_entropy(scores(device), torch.tensor(target, dtype=dtype, device=device), **arguments)
        np.testing.assert_allclose(loss.cpu().numpy(), value, rtol=1e-6)


def test_cross_entropy_shapes(device):
    x = scores(device)
    alone = F.cross_entropy(x[0], torch.tensor(1, device=device))
    assert alone.shape == () and abs(alone.item() - 1.4076059) < 1e-5
    assert F.cross_entropy(x[0], torch.tensor([1], device=device), reduction="none").shape == (1,)
    images = x.reshape(1, 2, 3)
    target = torch.tensor([[0, 1, 0]], device=device)
    found = F.cross_entropy(images, target, reduction="none")
    np.testing.assert_allclose(found.cpu().numpy(), [[3.0485873, 0.0485873, 3.0485873]], rtol=1e-5)
    assert abs(F.cross_entropy(images, target).item() - 2.0485873) < 1e-5
    empty = torch.zeros(0, 3, device=device), torch.zeros(0, dtype=torch.int64, device=device)
    assert np.isnan(F.cross_entropy(*empty).item())
    assert F.cross_entropy(*empty, reduction="sum").item() == 0


def test_cross_entropy_against_probabilities(device):
    x = scores(device)
    shares = x.softmax(1)
    for arguments, value in (
        ({}, 0.8323956),
        ({"label_smoothing": 0.1}, 0.8899166),
        ({"weight": weights(device)}, 1.7191892),
        ({"reduction": "none"}, [0.8323956, 0.8323956]),
        ({"reduction": "sum"}, 1.6647912),
    ):
        np.testing.assert_allclose(F.cross_entropy(x, shares, **arguments).cpu().numpy(), value, rtol=1e-5)
    assert abs(F.cross_entropy(x[0], shares[0]).item() - 0.8323956) < 1e-5
    x = torch.randn(2, 3, dtype=torch.float64).requires_grad_()
    torch.autograd.gradgradcheck(lambda x: F.cross_entropy(x, shares.cpu().double(), label_smoothing=0.1), (x,))


def test_no_row_counts() -> None:
    """The gradient is divided by 0 rows where none counts: as a gradient of first order it and its own are 0."""
    x, grad = torch.randn(2, 3, requires_grad=True), torch.ones((), requires_grad=True)
    loss = F.cross_entropy(x, torch.tensor([1, 1]), ignore_index=1)
    (first,) = torch.autograd.grad(loss, x, grad, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert np.isnan(loss.item()) and first.tolist() == second.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_cross_entropy_special_values(device):
    rows = torch.tensor(
        [[-INF, 0.0, 1.0], [-INF, -INF, -INF], [INF, 0.0, 1.0], [NAN, 0.0, 1.0], [1e4, 0.0, -1e4]], device=device
    )
    target = torch.tensor([0, 0, 1, 1, 2], device=device)
    found = F.cross_entropy(rows, target, reduction="none").tolist()
    assert found[0] == INF and found[4] == 2e4 and np.isnan(found[1:4]).all()
    ignored = F.cross_entropy(rows, torch.full_like(target, -100), reduction="none")
    assert ignored.tolist() == [0.0] * 5


def test_cross_entropy_in_half_precision(device):
    x = scores(device).half().requires_grad_()
    loss = F.cross_entropy(x, torch.tensor([0, 1], device=device), weights(device).half())
    assert loss.dtype is torch.float16 and abs(loss.item() - 1.7409) < 2e-3
    loss.backward()
    assert x.grad.dtype is torch.float16


REFUSED = [
    (
        "F.cross_entropy(x, torch.tensor([0, 1, 2]))",
        ValueError,
        "Expected input batch_size (2) to match target batch_size (3).",
    ),
    (
        "F.cross_entropy(x, torch.tensor(1))",
        ValueError,
        "Expected input batch_size (2) to match target batch_size (1).",
    ),
    (
        "F.cross_entropy(x, torch.tensor([0., 1.]))",
        RuntimeError,
        "expected target dtype to be Long or Byte, but got Float",
    ),
    ("F.cross_entropy(x, t.int())", RuntimeError, "expected target dtype to be Long or Byte, but got Int"),
    (
        "F.cross_entropy(x, torch.tensor([[0], [1]]))",
        RuntimeError,
        "0D or 1D target tensor expected, multi-target not supported",
    ),
    ("F.cross_entropy(x.long(), t)", RuntimeError, "\"log_softmax_lastdim_kernel_impl\" not implemented for 'Long'"),
    (
        "F.cross_entropy(x, x.long())",
        RuntimeError,
        "Expected floating point type for target with class probabilities, got Long",
    ),
    ("F.cross_entropy(x[0], t)", ValueError, "For 1D input, 1D target must have size 1, but got target size: 2"),
    (
        "F.cross_entropy(x.reshape(1, 2, 3), torch.tensor([[0, 1]]))",
        RuntimeError,
        "Expected target size [1, 3], got [1, 2]",
    ),
    ("F.cross_entropy(x.reshape(1, 2, 3), torch.tensor([0]))", RuntimeError, "Expected target size [1, 3], got [1]"),
    ("F.cross_entropy(x[0, 0], t[0])", RuntimeError, "Expected floating point type for target with class"),
    ("F.cross_entropy(x[0, 0], x[0, 0])", IndexError, "Dimension specified as 1 but tensor has no dimensions"),
    ("F.cross_entropy(x[0, 0], t)", IndexError, "Dimension out of range (expected to be in range of [-1, 0], but got"),
    ("F.cross_entropy(x.long()[0], t)", RuntimeError, '"log_softmax_lastdim_kernel_impl" not implemented for'),
    ("F.cross_entropy(x[0], x[0, :2])", RuntimeError, "expected target dtype to be Long or Byte, but got Float"),
    ("F.nll_loss(x[0, 0], t)", ValueError, "Expected 1 or more dimensions (got 0)"),
    ("F.nll_loss(x[0], x[0])", RuntimeError, "expected target dtype to be Long or Byte, but got Float"),
    ("F.nll_loss(x, x[:, 0], x[0, :2])", RuntimeError, "expected target dtype to be Long or Byte, but got Float"),
    ("F.mse_loss(x, x[0, :2], reduction='bad')", RuntimeError, "The size of tensor a (3) must match the size of"),
    ("F.cross_entropy(x, t, reduction='bad')", ValueError, "bad is not a valid value for reduction"),
    ("F.cross_entropy(x, t, label_smoothing=2.)", RuntimeError, "label_smoothing must be between 0.0 and 1.0. Got: 2"),
    (
        "F.cross_entropy(x, t, x[0, :2])",
        RuntimeError,
        "weight tensor should be defined either for all 3 classes or no classes but got weight tensor of shape: [2]",
    ),
    ("F.cross_entropy(x, t, x[0].double())", RuntimeError, "expected scalar type Float but found Double"),
    (
        "F.cross_entropy(x, [0, 1])",
        TypeError,
        "cross_entropy(): argument 'target' (position 2) must be Tensor, not list",
    ),
    ("F.cross_entropy([0.], t)", TypeError, "cross_entropy(): argument 'input' (position 1) must be Tensor, not list"),
    (
        "F.nll_loss(x, torch.tensor([0, 1, 2]))",
        ValueError,
        "Expected input batch_size (2) to match target batch_size (3).",
    ),
    ("F.nll_loss(x, torch.tensor([0., 1.]))", RuntimeError, "expected target dtype to be Long or Byte, but got Float"),
    ("F.nll_loss(x.long(), t)", RuntimeError, "\"nll_loss_out_frame\" not implemented for 'Long'"),
    (
        "F.mse_loss(x, x[:, :2].contiguous())",
        RuntimeError,
        "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 1",
    ),
    ("F.mse_loss(x.long(), x.long())", RuntimeError, "\"squared_error\" not implemented for 'Long'"),
    ("F.l1_loss(x, x, reduction='bad')", ValueError, "bad is not a valid value for reduction"),
    ("F.mse_loss(x, 1.0)", TypeError, "mse_loss(): argument 'target' (position 2) must be Tensor, not float"),
    ("F.binary_cross_entropy_with_logits(x, x[:1])", ValueError, "Target size ("),
]


@pytest.mark.parametrize(("code", "error", "words"), REFUSED, ids=[case[0] for case in REFUSED])
def test_refusals_begin_with_pytorchs_words(code, error, words):
    names = {"F": F, "torch": torch, "x": scores(), "t": torch.tensor([0, 1])}
    with warnings.catch_warnings(action="ignore"), pytest.raises(error, match="^" + re.escape(words)):
        eval(code, names)


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
@pytest.mark.parametrize("wrong", [7, 3, -1])
def test_a_target_that_is_no_class(name, wrong):
    loss = getattr(F, name)
    for reduction in ("mean", "none"):
        with pytest.raises(IndexError, match=rf"^Target {wrong} is out of bounds\.") as raised:
            loss(scores(), torch.tensor([0, wrong]), reduction=reduction)
        assert "number 1 of the targets; there are 3 classes" in str(raised.value)
    with torch.cuda.simulate(devices=1):
        for block in (0, 2):
            with (
                settings.block(block),
                pytest.raises(RuntimeError, match=r"^CUDA error: device-side assert triggered") as raised,
            ):
                loss(scores("cuda"), torch.tensor([0, wrong], device="cuda")).tolist()  # where streams run late: here
            assert "Target is out of bounds." in str(raised.value)


def test_a_target_that_is_no_class_makes_the_loss_nan_where_nothing_is_asserted(monkeypatch):
    """What a real device does: its assertions are compiled for debugging only."""
    pytest.importorskip("triton")
    from tritensor.runtime.interpreter.builder import Builder

    monkeypatch.setattr(Builder, "create_assert", lambda *arguments: None)
    with torch.cuda.simulate(devices=1, engine="interpreter"), settings.check(False):
        for loss in (F.cross_entropy, F.nll_loss):
            found = loss(scores("cuda"), torch.tensor([0, 7], device="cuda"), reduction="none").tolist()
            assert np.isfinite(found[0]) and np.isnan(found[1])
            with settings.check(True), pytest.raises(IndexError, match=r"^Target 7 is out of bounds\."):
                loss(scores("cuda"), torch.tensor([0, 7], device="cuda"))


# ---- gradients ------------------------------------------------------------------------------------------------

CASES = [
    {},
    {"reduction": "sum"},
    {"reduction": "none"},
    {"ignore_index": 1},
    {"label_smoothing": 0.2},
    {"weight": True},
    {"weight": True, "ignore_index": 2, "reduction": "none"},
    {"weight": True, "label_smoothing": 0.3, "ignore_index": 0},
    {"label_smoothing": 0.3, "reduction": "sum"},
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_gradients_fused_and_composed(name, case, device):
    if name == "nll_loss" and "label_smoothing" in case:
        pytest.skip("nll_loss has no label smoothing")
    rng = np.random.default_rng(0)
    target = torch.from_numpy(np.array([0, 1, 2, 3, 1])).to(device)
    arguments = {**case, "weight": torch.from_numpy(rng.uniform(0.5, 2, 4)).to(device) if "weight" in case else None}
    x = torch.from_numpy(rng.standard_normal((5, 4))).to(device).requires_grad_()
    loss = getattr(F, name)(x, target, **arguments)
    grad = torch.from_numpy(np.asarray(rng.standard_normal(tuple(loss.shape)))).to(device)
    (fused,) = torch.autograd.grad(loss, x, grad, retain_graph=True)
    (composed,) = torch.autograd.grad(loss, x, grad, create_graph=True)
    torch.testing.assert_close(fused, composed.detach(), rtol=1e-10, atol=1e-12)
    if device == "cpu":
        torch.autograd.gradcheck(lambda x: getattr(F, name)(x, target, **arguments), (x,))
        torch.autograd.gradgradcheck(lambda x: getattr(F, name)(x, target, **arguments), (x,))


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_quick_way_equals_the_operator(reduction):
    rng = np.random.default_rng(0)
    for dtype, tolerance in ((np.float32, 1e-6), (np.float64, 1e-14)):
        array, target = rng.standard_normal((32, 10)).astype(dtype), torch.from_numpy(rng.integers(0, 10, 32))
        x, y = (torch.from_numpy(array).requires_grad_() for _ in range(2))
        quick = quick_cross_entropy(x, target, reduction)
        plain = registry["cross_entropy"](y, target, reduction=reduction)[0]
        assert quick.grad_fn.name() == plain.grad_fn.name()
        for loss in (quick, plain):
            (loss * 3).backward()
        torch.testing.assert_close(quick, plain, rtol=tolerance, atol=tolerance)
        torch.testing.assert_close(x.grad, y.grad, rtol=tolerance * 10, atol=tolerance)
    x = torch.from_numpy(array[:4, :3].copy()).requires_grad_()
    target = torch.tensor([0, 1, 2, 1])
    torch.autograd.gradgradcheck(lambda x: quick_cross_entropy(x, target, reduction), (x,))
    loss = quick_cross_entropy(x, target, reduction)
    seen = []
    x.register_hook(lambda gradient: seen.append(gradient))
    loss.backward(retain_graph=True)
    loss.backward()
    assert len(seen) == 2
    torch.testing.assert_close(seen[0], seen[1])


def test_the_quick_way_leaves_other_cases_to_the_operator():
    x, t = scores(), torch.tensor([0, 1])
    for arguments in (
        (x.long(), t, "mean"),
        (x, t.to(torch.uint8), "mean"),
        (x, t[:1], "mean"),
        (x[0], t, "mean"),
        (x, t, "none"),
        (x, torch.tensor([0, 3]), "mean"),
        (x, torch.tensor([0, -100]), "mean"),
        (x[:0], t[:0], "sum"),
        (1, t, "sum"),
    ):
        assert quick_cross_entropy(*arguments) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = torch.tensor([[INF, 0.0], [0.0, 1.0]])
        assert quick_cross_entropy(rows, t, "mean") is None
        assert np.isnan(F.cross_entropy(rows, t).item())


def test_saved_scores_that_were_changed_are_noticed():
    x = (scores().requires_grad_() * 1).requires_grad_()
    loss = F.cross_entropy(x, torch.tensor([0, 1]))
    x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


# ---- the others -----------------------------------------------------------------------------------------------


def test_elementwise_losses(device):
    x = scores(device)
    assert F.mse_loss(x, x + 1).item() == 1
    assert F.mse_loss(x, x + 2, reduction="sum").item() == 24
    assert F.l1_loss(x, x - 3, reduction="none").tolist() == [[3.0] * 3] * 2
    assert F.mse_loss(x, x + 1, weight=torch.full_like(x, 2.0)).item() == 1
    assert F.mse_loss(x, x + 1, weight=torch.full_like(x, 2.0), reduction="sum").item() == 12
    assert F.mse_loss(x, x.double()).dtype is torch.float64
    assert np.isnan(F.mse_loss(x[:0], x[:0]).item())
    for arguments, value in (
        ({}, 0.3269706),
        ({"reduction": "sum"}, 1.9618235),
        ({"weight": weights(device)}, 0.5741914),
    ):
        assert abs(F.binary_cross_entropy_with_logits(x, x.sigmoid(), **arguments).item() - value) < 1e-5
    ones = torch.ones_like(x)
    found = F.binary_cross_entropy_with_logits(x, ones, pos_weight=weights(device), reduction="none")
    np.testing.assert_allclose(found.tolist(), (np.log1p(np.exp(-x.cpu().numpy())) * [1, 2, 3]), rtol=1e-5)
    assert F.binary_cross_entropy_with_logits(x * 1000, 0 * x, reduction="none")[1].tolist() == [3000.0, 4000.0, 5000.0]
    found = F.binary_cross_entropy_with_logits(x * -1000, ones, pos_weight=ones[0]).item()
    assert abs(found - (2500 + np.log(2) / 6)) < 1e-3


def test_distances_of_integers(device):
    x, y = (torch.tensor(numbers, device=device) for numbers in ([1, 2, 3], [3, 1, 1]))
    assert F.l1_loss(x, y, reduction="none").tolist() == [2, 1, 2]
    assert F.l1_loss(x, y, reduction="sum").item() == 5
    assert F.l1_loss(x.to(torch.uint8), y.to(torch.uint8), reduction="none").tolist() == [254, 1, 2]
    with pytest.raises(RuntimeError, match="could not infer output dtype"):
        F.l1_loss(x, y)


def test_probabilities_of_no_classes(device):
    x = torch.zeros(2, 0, device=device)
    assert F.cross_entropy(x, x, label_smoothing=0.1, reduction="none").tolist() == [0, 0]
    assert F.cross_entropy(x[0], x[0], label_smoothing=0.1, reduction="sum").item() == 0


def test_losses_of_different_shapes_warn():
    with pytest.warns(UserWarning, match="^Using a target size .* that is different to the input size"):
        assert F.mse_loss(torch.zeros(2, 1), torch.zeros(2)).item() == 0


def test_gradients_of_elementwise_losses():
    rng = np.random.default_rng(0)
    x, y, w = (torch.from_numpy(rng.uniform(0.1, 0.9, (2, 3))).requires_grad_() for _ in range(3))
    for name in ("mse_loss", "l1_loss", "binary_cross_entropy_with_logits"):
        torch.autograd.gradcheck(getattr(F, name), (x, y))
        torch.autograd.gradgradcheck(getattr(F, name), (x, y))
    torch.autograd.gradcheck(lambda x, y, w: F.binary_cross_entropy_with_logits(x, y, pos_weight=w), (x, y, w))
    torch.autograd.gradgradcheck(lambda x, y, w: F.binary_cross_entropy_with_logits(x, y, pos_weight=w), (x, y, w))


def test_rows_that_lie_apart(device):
    """Scores, targets and weights with strides, among them those of a broadcast target."""
    rng = np.random.default_rng(1)
    array = rng.standard_normal((4, 12)).astype(np.float32)
    x = torch.from_numpy(array).to(device)[:, ::2]
    target = torch.from_numpy(np.array([0, 9, 3, 9, 5, 9, 1, 9])).to(device)[::2]
    weight = torch.from_numpy(np.linspace(1, 2, 12, dtype=np.float32)).to(device)[::2]
    for loss in (F.cross_entropy, F.nll_loss):
        torch.testing.assert_close(
            loss(x, target, weight), loss(x.contiguous(), target.contiguous(), weight.contiguous())
        )
        same = torch.tensor([2], device=device).expand(4)
        torch.testing.assert_close(loss(x, same), loss(x, same.contiguous()))
    torch.testing.assert_close(
        F.cross_entropy(x.t(), target[:2].repeat(3) % 4), F.cross_entropy(x.t().contiguous(), target[:2].repeat(3) % 4)
    )


def test_many_rows_are_summed_in_two_stages():
    rng = np.random.default_rng(2)
    array, classes = rng.standard_normal((300, 3)).astype(np.float32), rng.integers(0, 3, 300)
    wanted = F.cross_entropy(torch.from_numpy(array), torch.from_numpy(classes))
    with torch.cuda.simulate(devices=1), settings.block(16):
        found = F.cross_entropy(torch.from_numpy(array).cuda(), torch.from_numpy(classes).cuda())
        torch.testing.assert_close(found.cpu(), wanted)


def test_the_operators_say_what_they_divide_by():
    loss, total, lse = losses.cross_entropy(scores(), torch.tensor([0, 2]), weights())
    assert total.item() == 4 and lse.shape == (2,)
    np.testing.assert_allclose(lse.numpy(), [2.4076059, 5.4076059], rtol=1e-6)
    assert loss.shape == ()


# ---- cross entropy that makes its gradient in the forward pass -----------------------------------------------------


@pytest.mark.sampled(1)
@pytest.mark.parametrize("block", [0, 4])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_gradient_made_in_the_forward_pass(reduction, smoothing, weighted, block, monkeypatch):
    """As on the CPU, whatever factor comes from behind; the scores are not read again."""
    rng = np.random.default_rng(7)
    scores, target = rng.standard_normal((9, 21)) * 4, rng.integers(0, 21, 9)
    target[[2, 5]] = 3
    weight = torch.from_numpy(rng.uniform(0.5, 2, 21))
    options = {"ignore_index": 3, "reduction": reduction, "label_smoothing": smoothing}

    def gradient(device, factor):
        x = torch.from_numpy(scores).to(device).requires_grad_()
        given = weight.to(device) if weighted else None
        loss = F.cross_entropy(x * 1, torch.from_numpy(target).to(device), given, **options)
        (loss * factor).backward()
        return loss.detach().cpu(), x.grad.cpu()

    wanted = [gradient("cpu", factor) for factor in (1, 0.5)]
    monkeypatch.setattr(losses_kernel, "launch_cross_entropy_backward", _refuse)
    with torch.cuda.simulate(devices=1), settings.block(block):
        for found, (loss, change) in zip([gradient("cuda", factor) for factor in (1, 0.5)], wanted):
            torch.testing.assert_close(found[0], loss)
            torch.testing.assert_close(found[1], change)


def _refuse(*arguments):
    raise AssertionError("the gradient was computed from the scores again")


def test_a_gradient_is_given_away_once():
    """A graph that is kept computes it anew, and what was given away is the caller's."""
    target = torch.tensor([1, 0, 2])
    with torch.cuda.simulate(devices=1):
        x = torch.randn(3, 4, device="cuda", requires_grad=True)
        loss = F.cross_entropy(x, target.cuda())
        (first,) = torch.autograd.grad(loss, x, torch.tensor(3.0, device="cuda"), retain_graph=True)
        kept = first.cpu()
        first.zero_()
        (second,) = torch.autograd.grad(loss, x, retain_graph=True)
        torch.testing.assert_close(second.cpu() * 3, kept)
        loss.backward(retain_graph=True)
        loss.backward()
        torch.testing.assert_close(x.grad.cpu(), second.cpu() * 2)
        (again,) = torch.autograd.grad(F.cross_entropy(x, target.cuda()), x, create_graph=True)
        curved = torch.autograd.grad(again.square().sum(), x)[0].cpu()
        y = x.detach().cpu().requires_grad_()
    (again,) = torch.autograd.grad(F.cross_entropy(y, target), y, create_graph=True)
    torch.testing.assert_close(curved, torch.autograd.grad(again.square().sum(), y)[0])


def test_which_losses_make_their_gradient_at_once():
    with torch.cuda.simulate(devices=1):
        x, target = torch.randn(3, 4, device="cuda"), torch.tensor([1, 0, 2], device="cuda")
        needing = x.clone().requires_grad_()
        for scores, reduction, wanted in (
            (x, "mean", False),
            (needing, "mean", True),
            (needing, "none", False),
            # a gradient divided by the number of rows underflows in float16 before a loss scale can lift it
            (needing.half(), "mean", False),
            (needing.bfloat16(), "sum", True),
            (torch.ones(3, 4, requires_grad=True), "mean", False),
        ):
            assert gradient_wanted(scores, reduction) is wanted
        with torch.no_grad():
            assert not gradient_wanted(needing, "mean")
        everything_ignored = F.cross_entropy(needing, torch.full_like(target, -100), reduction="sum")
        everything_ignored.backward()
        assert everything_ignored.item() == 0 and not needing.grad.cpu().any()
