"""The layers and losses: what they compute, what they hold, how they print."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn
from tritensor.nn import functional as F

X = [[-2.0, -0.5, 0.0, 0.5, 3.0], [1.0, 2.0, -1.0, 0.1, -3.0]]


def erf(values):
    return np.vectorize(math.erf)(values)


ACTIVATIONS = {
    "ReLU()": (nn.ReLU, {}, lambda x: np.maximum(x, 0)),
    "ReLU(inplace=True)": (nn.ReLU, {"inplace": True}, lambda x: np.maximum(x, 0)),
    "LeakyReLU(negative_slope=0.2)": (nn.LeakyReLU, {"negative_slope": 0.2}, lambda x: np.where(x > 0, x, 0.2 * x)),
    "LeakyReLU(negative_slope=0.01, inplace=True)": (
        nn.LeakyReLU,
        {"inplace": True},
        lambda x: np.maximum(x, 0.01 * x),
    ),
    "ELU(alpha=1.5)": (nn.ELU, {"alpha": 1.5}, lambda x: np.where(x > 0, x, 1.5 * (np.exp(x) - 1))),
    "ELU(alpha=1.0, inplace=True)": (nn.ELU, {"inplace": True}, lambda x: np.where(x > 0, x, np.exp(x) - 1)),
    "GELU(approximate='none')": (nn.GELU, {}, lambda x: x * (1 + erf(x / np.sqrt(2))) / 2),
    "GELU(approximate='tanh')": (
        nn.GELU,
        {"approximate": "tanh"},
        lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    ),
    "SiLU()": (nn.SiLU, {}, lambda x: x / (1 + np.exp(-x))),
    "SiLU(inplace=True)": (nn.SiLU, {"inplace": True}, lambda x: x / (1 + np.exp(-x))),
    "Softplus(beta=2.0, threshold=20.0)": (nn.Softplus, {"beta": 2.0}, lambda x: np.log1p(np.exp(2 * x)) / 2),
    "Mish()": (nn.Mish, {}, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "Mish(inplace=True)": (nn.Mish, {"inplace": True}, lambda x: x * np.tanh(np.log1p(np.exp(x)))),
    "Hardtanh(min_val=-1.0, max_val=1.0)": (nn.Hardtanh, {}, lambda x: np.clip(x, -1, 1)),
    "Hardtanh(min_val=0.0, max_val=2.0, inplace=True)": (
        nn.Hardtanh,
        {"min_val": 0.0, "max_val": 2.0, "inplace": True},
        lambda x: np.clip(x, 0, 2),
    ),
    "ReLU6()": (nn.ReLU6, {}, lambda x: np.clip(x, 0, 6)),
    "ReLU6(inplace=True)": (nn.ReLU6, {"inplace": True}, lambda x: np.clip(x, 0, 6)),
    "Tanhshrink()": (nn.Tanhshrink, {}, lambda x: x - np.tanh(x)),
    "LogSigmoid()": (nn.LogSigmoid, {}, lambda x: -np.log1p(np.exp(-x))),
    "Softsign()": (nn.Softsign, {}, lambda x: x / (1 + np.abs(x))),
    "CELU(alpha=2.0)": (nn.CELU, {"alpha": 2.0}, lambda x: np.where(x > 0, x, 2 * np.expm1(x / 2))),
    "SELU(inplace=True)": (
        nn.SELU,
        {"inplace": True},
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    ),
    "Hardsigmoid()": (nn.Hardsigmoid, {"inplace": True}, lambda x: np.clip(x + 3, 0, 6) / 6),
    "Hardswish()": (nn.Hardswish, {"inplace": True}, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "Hardshrink(0.5)": (nn.Hardshrink, {}, lambda x: np.where(np.abs(x) > 0.5, x, 0)),
    "Softshrink(0.3)": (nn.Softshrink, {"lambd": 0.3}, lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.3, 0)),
    "Threshold(threshold=0.1, value=20)": (
        nn.Threshold,
        {"threshold": 0.1, "value": 20},
        lambda x: np.where(x > 0.1, x, 20),
    ),
    "RReLU(lower=0.2, upper=0.2)": (nn.RReLU, {"lower": 0.2, "upper": 0.2}, lambda x: np.where(x > 0, x, x * 0.2)),
    "GLU(dim=0)": (nn.GLU, {"dim": 0}, lambda x: x[:1] / (1 + np.exp(-x[1:]))),
    "Softmin(dim=1)": (nn.Softmin, {"dim": 1}, lambda x: np.exp(-x) / np.exp(-x).sum(1, keepdims=True)),
    "Sigmoid()": (nn.Sigmoid, {}, lambda x: 1 / (1 + np.exp(-x))),
    "Tanh()": (nn.Tanh, {}, np.tanh),
    "Softmax(dim=1)": (nn.Softmax, {"dim": 1}, lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    "LogSoftmax(dim=0)": (nn.LogSoftmax, {"dim": 0}, lambda x: x - np.log(np.exp(x).sum(0, keepdims=True))),
}


@pytest.mark.parametrize("printed", ACTIVATIONS)
def test_activations(printed, device):
    kind, options, formula = ACTIVATIONS[printed]
    layer = kind(**options)
    assert repr(layer) == printed
    assert list(layer.parameters()) == []
    x = torch.tensor(X, device=device)
    out = layer(x)
    assert (out is x) is bool(options.get("inplace"))
    np.testing.assert_allclose(out.cpu().numpy(), formula(np.array(X)), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(("shape", "dim"), [((3,), 0), ((2, 3), 1), ((2, 3, 2), 0), ((2, 1, 3, 2), 1)])
def test_softmax_without_a_dim_warns_and_chooses(shape, dim):
    x = torch.arange(math.prod(shape)).reshape(shape).float()
    for kind in (nn.Softmax, nn.LogSoftmax):
        with pytest.warns(UserWarning, match="Implicit dimension choice for") as caught:
            out = kind()(x)
        assert caught[0].filename == __file__
        torch.testing.assert_close(out, kind(dim)(x))


def test_linear(device):
    layer = nn.Linear(3, 2, device=device)
    assert repr(layer) == "Linear(in_features=3, out_features=2, bias=True)"
    assert layer.weight.shape == (2, 3)
    assert layer.weight.device == layer.bias.device == torch.empty(0, device=device).device
    x = torch.randn(4, 5, 3, device=device)
    expected = x.cpu().numpy() @ layer.weight.detach().cpu().numpy().T + layer.bias.detach().cpu().numpy()
    np.testing.assert_allclose(layer(x).detach().cpu().numpy(), expected, rtol=1e-4, atol=1e-5)
    assert layer(x[0, 0]).shape == (2,)
    bare = nn.Linear(3, 2, bias=False, dtype=torch.float64)
    assert bare.bias is None
    assert bare.weight.dtype is torch.float64
    assert list(bare.state_dict()) == ["weight"]


def test_linear_starts_as_pytorchs_does():
    torch.manual_seed(0)
    layer = nn.Linear(100, 400)
    bound = 1 / math.sqrt(100)
    for param in (layer.weight, layer.bias):
        values = param.detach().numpy()
        assert np.abs(values).max() <= bound
        assert values.std() == pytest.approx(bound / math.sqrt(3), rel=0.1)
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        empty = nn.Linear(0, 2)
    assert empty.bias.tolist() == [0, 0]


def test_linear_of_the_wrong_size():
    with pytest.raises(RuntimeError, match=r"mat1 and mat2 shapes cannot be multiplied \(2x4 and 3x2\)"):
        nn.Linear(3, 2)(torch.ones(2, 4))


def test_dropout_scales_what_it_keeps(device):
    torch.manual_seed(0)
    layer = nn.Dropout(0.25)
    assert repr(layer) == "Dropout(p=0.25, inplace=False)"
    x = torch.ones(1000, device=device)
    values = layer(x).cpu().numpy()
    kept = values != 0
    assert kept.mean() == pytest.approx(0.75, abs=0.05)
    np.testing.assert_allclose(values[kept], 1 / 0.75, rtol=1e-6)
    assert layer.eval()(x).tolist() == [1] * 1000
    assert nn.Dropout(1.0)(x).sum().item() == 0
    assert nn.Dropout(0.0)(x).tolist() == [1] * 1000
    for p in (-0.1, 1.1):
        with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1, but got"):
            nn.Dropout(p)


def test_unflatten():
    x = torch.arange(20.0).reshape(2, 10)
    layer = nn.Unflatten(1, (2, 5))
    assert torch.equal(layer(x), x.reshape(2, 2, 5)) and layer(x).data_ptr() == x.data_ptr()
    assert nn.Unflatten(-1, [5, -1])(x).shape == (2, 5, 2)
    assert nn.Unflatten(0, torch.Size([1, 2]))(x).shape == (1, 2, 10)
    assert repr(layer) == "Unflatten(dim=1, unflattened_size=(2, 5))"
    assert nn.Sequential(nn.Flatten(), nn.Unflatten(1, (5, 2)))(x).shape == (2, 5, 2)


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        (10, "unflattened_size must be a tuple of ints, but found type int"),
        ((2, 5.0), "unflattened_size must be tuple of ints, but found element of type float at pos 1"),
    ],
)
def test_sizes_that_unflatten_refuses(sizes, words):
    with pytest.raises(TypeError, match=words):
        nn.Unflatten(1, sizes)


def test_flatten_and_identity():
    x = torch.ones(2, 3, 4, 5)
    assert nn.Flatten()(x).shape == (2, 60)
    assert nn.Flatten(0, 1)(x).shape == (6, 4, 5)
    assert repr(nn.Flatten(0, 1)) == "Flatten(start_dim=0, end_dim=1)"
    assert nn.Identity(3, unused=4)(x) is x
    assert repr(nn.Identity(3)) == "Identity()"


def test_rms_norm(device):
    layer = nn.RMSNorm((3, 4), device=device)
    assert repr(layer) == "RMSNorm((3, 4), eps=None, elementwise_affine=True)"
    assert list(layer.state_dict()) == ["weight"]
    x = torch.arange(24.0, device=device).reshape(2, 3, 4)
    wanted = x / x.square().mean((1, 2), keepdim=True).sqrt()
    torch.testing.assert_close(layer(x), wanted)
    with torch.no_grad():
        layer.weight.mul_(2)
    torch.testing.assert_close(layer(x), wanted * 2)
    assert not nn.RMSNorm(4, elementwise_affine=False).state_dict()
    assert nn.RMSNorm(4, 0.5).eps == 0.5


def test_layer_norm(device):
    layer = nn.LayerNorm((3, 4), device=device)
    assert repr(layer) == "LayerNorm((3, 4), eps=1e-05, elementwise_affine=True, bias=True)"
    x = torch.randn(2, 3, 4, device=device)
    values = x.cpu().numpy()
    centred = values - values.mean((1, 2), keepdims=True)
    expected = centred / np.sqrt((centred**2).mean((1, 2), keepdims=True) + 1e-5)
    np.testing.assert_allclose(layer(x).detach().cpu().numpy(), expected, rtol=1e-4, atol=1e-5)
    assert layer.weight.tolist() == [[1] * 4] * 3
    assert layer.bias.tolist() == [[0] * 4] * 3
    assert list(nn.LayerNorm(4, bias=False).state_dict()) == ["weight"]
    plain = nn.LayerNorm(4, elementwise_affine=False)
    assert list(plain.state_dict()) == []
    assert "elementwise_affine=False, bias=False" in repr(plain)
    assert plain(torch.ones(2, 4)).tolist() == [[0] * 4] * 2


def test_embedding(device):
    torch.manual_seed(0)
    layer = nn.Embedding(6, 4, padding_idx=-2, device=device)
    assert repr(layer) == "Embedding(6, 4, padding_idx=4)"
    assert layer.weight[4].tolist() == [0] * 4 and layer.weight.std().item() > 0.3
    numbers = torch.tensor([[0, 4], [5, 0]], device=device)
    out = layer(numbers)
    assert out.shape == (2, 2, 4) and torch.equal(out[1, 0], layer.weight[5])
    out.sum().backward()
    assert layer.weight.grad[:, 0].tolist() == [2, 0, 0, 0, 0, 1]
    with torch.no_grad():
        layer.weight.fill_(1)
        layer.reset_parameters()
    assert layer.weight[4].tolist() == [0] * 4 and layer.weight[0].tolist() != [1] * 4
    shortened = nn.Embedding(3, 2, None, 0.5, 1.0, _weight=torch.ones(3, 2, device=device))
    assert repr(shortened) == "Embedding(3, 2, max_norm=0.5, norm_type=1.0)"
    assert np.allclose(shortened(torch.tensor([1], device=device)).tolist(), [[0.25, 0.25]])
    assert np.allclose(shortened.weight.tolist(), [[1, 1], [0.25, 0.25], [1, 1]])


def test_embedding_from_a_table():
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    layer = nn.Embedding.from_pretrained(table, scale_grad_by_freq=True, padding_idx=1)
    assert not layer.weight.requires_grad and layer(torch.tensor(1)).tolist() == [3, 4]
    assert nn.Embedding.from_pretrained(table, freeze=False).weight.requires_grad
    assert nn.Embedding(2, 2, _freeze=True).weight.requires_grad is False
    for make, words in (
        (lambda: nn.Embedding(5, 3, padding_idx=5), "Padding_idx must be within num_embeddings"),
        (lambda: nn.Embedding(5, 3, padding_idx=-6), "Padding_idx must be within num_embeddings"),
        (lambda: nn.Embedding(5, 3, _weight=table), "Shape of weight does not match"),
        (lambda: nn.Embedding.from_pretrained(table[0]), "expected to be 2-dimensional"),
    ):
        with pytest.raises(AssertionError, match=words):
            make()


def test_mean_squared_error(device):
    x, y = torch.tensor([[1.0, 2.0], [3.0, 5.0]], device=device), torch.zeros(2, 2, device=device)
    assert nn.MSELoss()(x, y).item() == pytest.approx(39 / 4)
    assert nn.MSELoss(reduction="sum")(x, y).item() == 39
    assert nn.MSELoss(reduction="none")(x, y).tolist() == [[1, 4], [9, 25]]
    with pytest.warns(UserWarning, match="reduction='sum' instead") as caught:
        assert nn.MSELoss(False).reduction == "sum"
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="reduction='none' instead"):
        nn.MSELoss(reduce=False)
    with pytest.warns(UserWarning, match="reduction='mean' instead"):
        nn.MSELoss(reduce=True)


def test_hardtanh_needs_bounds_in_order():
    with pytest.raises(AssertionError, match="max_val must be larger than min_val"):
        nn.Hardtanh(1.0, 1.0)


def test_other_losses(device):
    x, y = torch.tensor([1.0, -2.0, 0.5], device=device), torch.tensor([0.0, 1.0, 1.0], device=device)
    assert nn.L1Loss()(x, y).item() == pytest.approx(4.5 / 3)
    assert nn.L1Loss(reduction="none")(x, y).tolist() == [1, 3, 0.5]
    values, target = np.array([1.0, -2.0, 0.5]), np.array([0.0, 1.0, 1.0])
    each = np.log1p(np.exp(values)) - target * values
    assert nn.BCEWithLogitsLoss()(x, y).item() == pytest.approx(each.mean(), rel=1e-5)
    weighted = nn.BCEWithLogitsLoss(weight=torch.tensor([1.0, 2.0, 3.0], device=device), reduction="sum")
    assert weighted(x, y).item() == pytest.approx((each * [1, 2, 3]).sum(), rel=1e-5)
    positive = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0, device=device), reduction="none")
    expected = (1 - target) * values + (1 + target) * np.log1p(np.exp(-values))
    np.testing.assert_allclose(positive(x, y).cpu().numpy(), expected, rtol=1e-5)
    assert list(positive.state_dict()) == ["pos_weight"]
    logs = torch.log_softmax(torch.tensor([X[0], X[1]], device=device), 1)
    classes = torch.tensor([1, 4], device=device)
    picked = -logs.cpu().numpy()[[0, 1], [1, 4]]
    assert nn.NLLLoss()(logs, classes).item() == pytest.approx(picked.mean(), rel=1e-5)
    assert nn.NLLLoss(ignore_index=4)(logs, classes).item() == pytest.approx(picked[0], rel=1e-5)
    share = torch.tensor([1.0, 3.0, 1.0, 1.0, 1.0], device=device)
    assert nn.NLLLoss(weight=share)(logs, classes).item() == pytest.approx((3 * picked[0] + picked[1]) / 4, rel=1e-5)
    assert [repr(loss()) for loss in (nn.L1Loss, nn.NLLLoss, nn.BCEWithLogitsLoss)] == [
        "L1Loss()",
        "NLLLoss()",
        "BCEWithLogitsLoss()",
    ]


def test_cross_entropy(device):
    logits = torch.tensor([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0], [2.0, 2.0, 2.0]], device=device)
    target = torch.tensor([1, 2, 0], device=device)
    values = logits.cpu().numpy()
    logs = values - np.log(np.exp(values).sum(1, keepdims=True))
    each = -logs[np.arange(3), [1, 2, 0]]
    assert nn.CrossEntropyLoss()(logits, target).item() == pytest.approx(each.mean(), rel=1e-5)
    assert nn.CrossEntropyLoss(reduction="sum")(logits, target).item() == pytest.approx(each.sum(), rel=1e-5)
    assert nn.CrossEntropyLoss(ignore_index=2)(logits, target).item() == pytest.approx(each[[0, 2]].mean(), rel=1e-5)
    weight = torch.tensor([1.0, 2.0, 3.0], device=device)
    weighted = nn.CrossEntropyLoss(weight=weight)
    share = np.array([2.0, 3.0, 1.0])
    assert weighted(logits, target).item() == pytest.approx((each * share).sum() / share.sum(), rel=1e-5)
    assert list(weighted.state_dict()) == ["weight"]
    smooth = nn.CrossEntropyLoss(label_smoothing=0.1)(logits, target).item()
    assert smooth == pytest.approx((0.9 * each - 0.1 * logs.mean(1)).mean(), rel=1e-5)
    assert repr(weighted) == "CrossEntropyLoss()"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("dtype", [torch.float32, pytest.param(torch.float64, marks=pytest.mark.slow)])
def test_a_small_network_learns(dtype, device):
    """Exclusive or, which no linear layer can do; half way the model moves through a copy of its state."""
    torch.manual_seed(3)
    x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], device=device, dtype=dtype)
    y = torch.tensor([0, 1, 1, 0], device=device)

    def network():
        return nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)).to(device, dtype)

    model = network()
    for start in (0, 1):
        if start:
            state = model.state_dict()
            model = network()
            model.load_state_dict(state)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(60):
            optimizer.zero_grad()
            loss = nn.CrossEntropyLoss()(model(x), y)
            loss.backward()
            optimizer.step()
    assert loss.item() < 0.05
    assert model(x).argmax(1).tolist() == y.tolist()


def test_utils_has_what_it_says():
    assert torch.utils.data.DataLoader
    assert not hasattr(torch.utils, "nothing")


def test_functional_is_the_functional_module():
    assert F.linear is torch.functional.linear
    assert F.__all__ == torch.functional.__all__
    assert F.relu(torch.tensor([-1.0, 2.0])).tolist() == [0, 2]


# ---- against PyTorch ------------------------------------------------------------------------------------------


@pytest.mark.peer
def test_printed_models_equal_pytorchs():
    peer = pytest.importorskip("torch")

    def model(nn):
        return nn.Sequential(
            nn.Linear(3, 4),
            nn.ReLU(True),
            nn.ModuleList([nn.Dropout(0.1), nn.Dropout(0.1), nn.Flatten()]),
            nn.ModuleDict({"a": nn.LayerNorm([2, 3]), "b": nn.Sequential()}),
            nn.LeakyReLU(),
            nn.ELU(),
            nn.GELU(),
            nn.SiLU(),
            nn.Softplus(1.0, 20.0),
            nn.Softmax(dim=1),
            nn.LogSoftmax(),
            nn.Tanh(),
            nn.Sigmoid(),
            nn.Identity(),
            nn.Embedding(4, 2),
            nn.Embedding(4, 2, -1, 2, 1.0, True),
            nn.MSELoss(),
            nn.CrossEntropyLoss(),
        )

    assert repr(model(nn)) == repr(model(peer.nn))


@pytest.mark.peer
def test_training_follows_pytorchs():
    peer = pytest.importorskip("torch")
    random = np.random.default_rng(0)
    theirs = peer.nn.Sequential(
        peer.nn.Linear(6, 8), peer.nn.GELU(), peer.nn.LayerNorm(8), peer.nn.Linear(8, 3), peer.nn.LeakyReLU(0.1)
    )
    ours = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3), nn.LeakyReLU(0.1))
    ours.load_state_dict({key: torch.tensor(value.numpy()) for key, value in theirs.state_dict().items()})
    optimizers = [
        torch.optim.AdamW(ours.parameters(), lr=0.01),
        peer.optim.AdamW(theirs.parameters(), lr=0.01),
    ]
    for _ in range(5):
        x = random.standard_normal((7, 6)).astype(np.float32)
        y = random.integers(0, 3, 7)
        losses = []
        for library, model, optimizer in zip((torch, peer), (ours, theirs), optimizers, strict=True):
            optimizer.zero_grad()
            loss = library.nn.CrossEntropyLoss(label_smoothing=0.1)(model(library.tensor(x)), library.tensor(y))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for key, value in ours.state_dict().items():
        np.testing.assert_allclose(value.numpy(), theirs.state_dict()[key].numpy(), rtol=1e-4, atol=1e-5)
