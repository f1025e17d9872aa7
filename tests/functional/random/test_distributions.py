"""Numbers of further distributions: their distribution functions, moments, and that all devices draw the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tritensor as torch
from tritensor.errors import DtypeError, ShapeError, UnsupportedError

from ...needs import needs_triton

COUNT = 20_000
DISTRIBUTIONS = {
    "cauchy_": ((2.0, 3.0), lambda x: 0.5 + np.arctan((x - 2) / 3) / math.pi),
    "log_normal_": ((0.5, 2.0), lambda x: np.vectorize(lambda y: 0.5 * math.erfc((0.5 - y) / 8**0.5))(np.log(x))),
    "exponential_": ((2.0,), lambda x: 1 - np.exp(-2 * x)),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distribution_functions(name):
    """By Kolmogorov's statistic, which is above 1.95 / sqrt(n) for one sample in a thousand."""
    arguments, distribution = DISTRIBUTIONS[name]
    torch.manual_seed(0)
    x = np.sort(getattr(torch.empty(COUNT, dtype=torch.float64), name)(*arguments).numpy())
    steps = np.arange(COUNT + 1) / COUNT
    found = distribution(x)
    assert max((steps[1:] - found).max(), (found - steps[:-1]).max()) < 1.95 / COUNT**0.5


def close(x, mean, variance):
    """Whether mean and variance are within four standard errors, by the variance of the squares seen."""
    x = x.double().numpy()
    assert abs(x.mean() - mean) < 4 * (variance / x.size) ** 0.5
    squares = (x - mean) ** 2
    assert abs(squares.mean() - variance) < 4 * squares.std() / x.size**0.5


def test_moments_of_counts():
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.int64):
        x = torch.empty(COUNT, dtype=dtype).geometric_(0.3)
        assert x.min() == 1
        close(x, 1 / 0.3, 0.7 / 0.09)
    for rate in (0.5, 40.0):
        close(torch.poisson(torch.full((COUNT,), rate)), rate, rate)
    close(torch.binomial(torch.full((COUNT,), 30.0), torch.tensor([0.2])), 6, 4.8)


@needs_triton
@pytest.mark.parametrize("name", ["cauchy_", "log_normal_", "geometric_", "poisson", "binomial"])
def test_devices_draw_the_same(name):
    def draw(device):
        torch.manual_seed(3)
        x = torch.full((50,), 4.0, device=device)
        if name.endswith("_"):
            return getattr(x, name)(*([0.3] if name == "geometric_" else [])).cpu().numpy()
        return getattr(torch, name)(*((x, x / 9) if name == "binomial" else (x,))).cpu().numpy()

    with torch.cuda.simulate(devices=1):
        np.testing.assert_allclose(draw("cuda"), draw("cpu"), rtol=1e-4)
        assert not np.array_equal(draw("cpu"), np.full(50, 4.0))


def test_special_arguments():
    nan = float("nan")
    count, chance = torch.tensor([5.5, -2.0, 3.0, nan]), torch.tensor([1.0, 0.5, nan, 0.5])
    found = torch.binomial(count, chance)
    assert found[:2].tolist() == [5.5, 0]
    assert found[2:].isnan().all()
    assert torch.poisson(torch.zeros(2, 0)).shape == (2, 0)


def test_a_node_without_an_input():
    x = torch.ones(3, requires_grad=True).clone()
    x.cauchy_().sum().backward()
    assert x.grad_fn.name() == "CauchyBackward0"


X = torch.zeros(3)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: X.cauchy_(0, 0), ShapeError, r"cauchy_ expects sigma > 0.0, but found sigma=0"),
        (lambda: X.int().cauchy_(), DtypeError, "Cauchy distribution is a continuous probability distribution"),
        (lambda: X.log_normal_(0, -1), ShapeError, "log_normal_ expects std > 0.0, but found std=-1"),
        (lambda: X.int().log_normal_(), UnsupportedError, "log_normal"),
        (lambda: X.geometric_(1.0), ShapeError, r"geometric_ expects p to be in \(0, 1\), but got p=1"),
        (lambda: X.bool().geometric_(0.5), UnsupportedError, "geometric.* not implemented for 'Bool'"),
        (lambda: torch.poisson(X - 1), ShapeError, "invalid Poisson rate, expected rate to be non-negative"),
        (lambda: torch.poisson(X.int()), UnsupportedError, "poisson"),
        (lambda: torch.binomial(X.int(), X), ValueError, "binomial only supports floating-point dtypes for count"),
        (lambda: torch.binomial(X, X.int()), ValueError, "binomial only supports floating-point dtypes for prob"),
        (lambda: torch.binomial(X, X.double()), DtypeError, "Found dtype Double but expected Float"),
        (lambda: torch.binomial(X, X[:2]), ShapeError, "must match|broadcast"),
    ],
)
def test_refusals(call, kind, words):
    with pytest.raises(kind, match=words):
        call()
    assert X.tolist() == [0, 0, 0]
