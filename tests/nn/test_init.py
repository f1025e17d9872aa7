"""Starting values: bounds, moments and shapes, the same on every device, and the words of errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda, nn
from tritensor.nn import init


def numbers(function, shape, *args, seed=0, device="cpu", **kwargs):
    tensor = nn.Parameter(torch.empty(shape, device=device))
    assert function(tensor, *args, generator=torch.Generator(device).manual_seed(seed), **kwargs) is tensor
    assert tensor.requires_grad
    assert tensor.is_leaf
    return tensor.detach().cpu().numpy()


RANDOM = {
    "uniform": (init.uniform_, (-2.0, 3.0)),
    "normal": (init.normal_, (1.0, 2.0)),
    "xavier_uniform": (init.xavier_uniform_, (2.0,)),
    "xavier_normal": (init.xavier_normal_, ()),
    "kaiming_uniform": (init.kaiming_uniform_, (0.5,)),
    "kaiming_normal": (init.kaiming_normal_, (0, "fan_out", "relu")),
    "trunc_normal": (init.trunc_normal_, (0.0, 1.0)),
    "trunc_normal_tail": (init.trunc_normal_, (0.0, 1.0, 1.5, 3.0)),
    "orthogonal": (init.orthogonal_, (1.5,)),
    "sparse": (init.sparse_, (0.3,)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", RANDOM)
def test_a_seed_decides_the_values_on_every_device(name):
    function, args = RANDOM[name]
    one = numbers(function, (40, 30), *args)
    np.testing.assert_array_equal(one, numbers(function, (40, 30), *args))
    assert not np.array_equal(one, numbers(function, (40, 30), *args, seed=1))
    assert np.isfinite(one).all()
    with cuda.simulate(devices=1):
        np.testing.assert_allclose(one, numbers(function, (40, 30), *args, device="cuda"), rtol=1e-4, atol=1e-6)


def spread(values):
    return values.mean(), values.std(), values.min(), values.max()


def test_moments_and_bounds():
    mean, std, low, high = spread(numbers(init.uniform_, (200, 100), -2.0, 3.0))
    assert (mean, std) == (pytest.approx(0.5, abs=0.05), pytest.approx(5 / math.sqrt(12), rel=0.02))
    assert (-2 <= low < -1.9, 2.9 < high <= 3) == (True, True)
    mean, std, *_ = spread(numbers(init.normal_, (200, 100), 1.0, 2.0))
    assert (mean, std) == (pytest.approx(1, abs=0.05), pytest.approx(2, rel=0.02))
    assert numbers(init.xavier_normal_, (200, 100), 2.0).std() == pytest.approx(2 * math.sqrt(2 / 300), rel=0.02)
    bound = math.sqrt(3) * math.sqrt(2 / 300)
    assert np.abs(numbers(init.xavier_uniform_, (200, 100))).max() == pytest.approx(bound, rel=0.01)
    assert numbers(init.kaiming_normal_, (200, 100)).std() == pytest.approx(math.sqrt(2 / 100), rel=0.02)
    out = numbers(init.kaiming_normal_, (200, 100), mode="FAN_OUT", nonlinearity="relu")
    assert out.std() == pytest.approx(math.sqrt(2 / 200), rel=0.02)
    bound = math.sqrt(3) * math.sqrt(2 / (1 + 0.25)) / math.sqrt(100 * 6)
    assert np.abs(numbers(init.kaiming_uniform_, (30, 100, 2, 3), 0.5)).max() == pytest.approx(bound, rel=0.01)


def test_truncated_normal_has_the_density_between_its_bounds():
    values = numbers(init.trunc_normal_, (200, 100), 0.0, 1.0, -1.0, 2.0)
    assert values.min() >= -1
    assert values.max() <= 2
    # mean and variance of the truncated normal distribution between -1 and 2
    assert values.mean() == pytest.approx(0.2296, abs=0.02)
    assert values.std() == pytest.approx(0.7200, rel=0.03)
    tail = numbers(init.trunc_normal_, (200, 100), 0.0, 1.0, 1.5, 3.0)
    assert tail.min() >= 1.5
    assert tail.max() <= 3
    assert tail.mean() == pytest.approx(1.9106, abs=0.02)
    with pytest.warns(UserWarning, match="mean is more than 2 std from"):
        far = numbers(init.trunc_normal_, (4, 4), 9.0, 1.0, 0.0, 1.0)
    assert (far >= 0).all()
    assert (far <= 1).all()


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (3, 2, 4)])
def test_orthogonal_rows_or_columns(shape):
    matrix = numbers(init.orthogonal_, shape, 2.0).reshape(shape[0], -1)
    product = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


def test_orthogonal_of_nothing():
    assert init.orthogonal_(torch.empty(0, 3)).shape == (0, 3)


def test_sparse_columns():
    matrix = numbers(init.sparse_, (10, 6), 0.25, 2.0)
    assert ((matrix == 0).sum(axis=0) == 3).all()


def test_constants():
    tensor = nn.Parameter(torch.empty(2, 3))
    assert init.ones_(tensor).tolist() == [[1, 1, 1]] * 2
    assert init.zeros_(tensor).tolist() == [[0, 0, 0]] * 2
    assert init.constant_(tensor, 2.5).tolist() == [[2.5] * 3] * 2
    assert init.eye_(tensor).tolist() == [[1, 0, 0], [0, 1, 0]]


def test_gains():
    expected = {"linear": 1, "conv2d": 1, "sigmoid": 1, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 0.75}
    assert {name: init.calculate_gain(name) for name in expected} == expected
    assert init.calculate_gain("leaky_relu") == math.sqrt(2 / (1 + 1e-4))
    assert init.calculate_gain("leaky_relu", 1) == 1


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda: init.calculate_gain("x"), "Unsupported nonlinearity x"),
        (lambda: init.calculate_gain("leaky_relu", True), "negative_slope True not a valid number"),
        (
            lambda: init.xavier_uniform_(torch.empty(3)),
            "Fan in and fan out can not be computed for tensor",
        ),
        (lambda: init.kaiming_normal_(torch.empty(3, 3), mode="x"), "Mode x not supported, please use one of"),
        (lambda: init.eye_(torch.empty(3)), "Only tensors with 2 dimensions are supported"),
        (lambda: init.sparse_(torch.empty(3), 0.1), "Only tensors with 2 dimensions are supported"),
        (lambda: init.orthogonal_(torch.empty(3)), "Only tensors with 2 or more dimensions are supported"),
    ],
)
def test_misuse(action, words):
    with pytest.raises(ValueError, match=words):
        action()


@pytest.mark.parametrize("function", [init.kaiming_normal_, init.kaiming_uniform_])
def test_tensors_without_elements_are_left_alone(function):
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op") as caught:
        function(torch.empty(0, 3))
    assert caught[0].filename == __file__


def test_dirac_passes_channels_on():
    weight = torch.full((4, 3, 3, 2), 7.0)
    assert nn.init.dirac_(weight, 2) is weight
    wanted = np.zeros((4, 3, 3, 2))
    for output, channel in ((0, 0), (1, 1), (2, 0), (3, 1)):
        wanted[output, channel, 1, 1] = 1
    np.testing.assert_array_equal(weight.numpy(), wanted)
    with pytest.raises(ValueError, match="Only tensors with 3, 4, or 5 dimensions are supported"):
        nn.init.dirac_(torch.zeros(2, 2))
    with pytest.raises(ValueError, match="dim 0 must be divisible by groups"):
        nn.init.dirac_(torch.zeros(3, 2, 2), 2)


def test_older_names_warn():
    with pytest.warns(FutureWarning, match=r"`nn.init.eye` is now deprecated in favor of `nn.init.eye_`"):
        assert nn.init.eye(torch.zeros(2, 2)).tolist() == [[1, 0], [0, 1]]


@pytest.mark.peer
def test_every_initialisation_is_there():
    peer = pytest.importorskip("torch")
    theirs = {name for name, value in vars(peer.nn.init).items() if callable(value) and name[0].islower()}
    assert theirs <= set(nn.init.__all__)
    ours, wanted = torch.empty(6, 2, 3, 3), peer.empty(6, 2, 3, 3)
    np.testing.assert_array_equal(nn.init.dirac_(ours, 3).numpy(), peer.nn.init.dirac_(wanted, 3).numpy())
