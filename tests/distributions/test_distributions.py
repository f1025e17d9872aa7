"""Distributions against numerical integrals of their densities, sums of their probabilities and moments of samples."""

from __future__ import annotations

from collections.abc import Callable
from math import lgamma, log
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import distributions as d
from tritensor.distributions import constraints, kl_divergence

from ..needs import needs_triton

F64 = {"dtype": torch.float64}


def t(*values: Any) -> Any:
    return torch.tensor(values[0] if len(values) == 1 else list(values), **F64)


CONTINUOUS: dict[str, Callable[[], Any]] = {
    "Normal": lambda: d.Normal(t(0.5), t(2.0)),
    "Laplace": lambda: d.Laplace(t(-0.5), t(1.5)),
    "Gumbel": lambda: d.Gumbel(t(0.5), t(1.5)),
    "HalfNormal": lambda: d.HalfNormal(t(1.5)),
    "Uniform": lambda: d.Uniform(t(-1.0), t(2.5)),
    "Exponential": lambda: d.Exponential(t(0.7)),
    "Gamma": lambda: d.Gamma(t(2.5), t(1.5)),
    "Chi2": lambda: d.Chi2(t(4.0)),
    "Beta": lambda: d.Beta(t(2.5), t(1.5)),
    "StudentT": lambda: d.StudentT(t(7.0), t(0.5), t(1.5)),
    "Weibull": lambda: d.Weibull(t(1.5), t(2.5)),
    "LogNormal": lambda: d.LogNormal(t(0.2), t(0.5)),
    "Cauchy": lambda: d.Cauchy(t(0.5), t(1.5)),
    "ContinuousBernoulli": lambda: d.ContinuousBernoulli(t(0.2)),
    "even ContinuousBernoulli": lambda: d.ContinuousBernoulli(t(0.4995)),
    "FisherSnedecor": lambda: d.FisherSnedecor(t(5.0), t(14.0)),
    "GeneralizedPareto": lambda: d.GeneralizedPareto(t(0.5), t(1.5), t(0.1)),
    "bounded GeneralizedPareto": lambda: d.GeneralizedPareto(t(0.5), t(1.5), t(-0.5)),
    "exponential GeneralizedPareto": lambda: d.GeneralizedPareto(t(0.5), t(1.5), t(0.0)),
    "HalfCauchy": lambda: d.HalfCauchy(t(1.5)),
    "InverseGamma": lambda: d.InverseGamma(t(6.0), t(2.0)),
    "Kumaraswamy": lambda: d.Kumaraswamy(t(2.0), t(3.0)),
    "Pareto": lambda: d.Pareto(t(1.5), t(6.0)),
    "RelaxedBernoulli": lambda: d.RelaxedBernoulli(t(0.7), t(0.3)),
    "transformed": lambda: d.TransformedDistribution(
        d.Normal(t(0.0), t(1.0)), [d.AffineTransform(0.5, -2.0), d.SigmoidTransform()]
    ),
    "mixture": lambda: d.MixtureSameFamily(d.Categorical(t(0.3, 0.7)), d.Normal(t(-1.0, 2.0), t(1.0, 0.5))),
}
DISCRETE: dict[str, Callable[[], Any]] = {
    "Bernoulli": lambda: d.Bernoulli(t(0.3)),
    "Geometric": lambda: d.Geometric(t(0.3)),
    "Binomial": lambda: d.Binomial(t(6.0), t(0.3)),
    "Poisson": lambda: d.Poisson(t(2.5)),
    "Categorical": lambda: d.Categorical(logits=t(0.1, -0.5, 1.0)),
    "NegativeBinomial": lambda: d.NegativeBinomial(t(2.5), t(0.3)),
}
SPREAD = ("Cauchy", "HalfCauchy", "transformed", "RelaxedBernoulli")  # without a mean, or none that is known


EVEN = ("exponential GeneralizedPareto", "even ContinuousBernoulli")  # where a parameter has a gradient of 0
UNMIRRORED = ("Gamma", "Chi2", "Weibull", "mixture")


def points(made: Any) -> Any:
    """Places that are close where the density changes, and their distances."""
    support = made.support
    low, high = getattr(support, "lower_bound", None), getattr(support, "upper_bound", None)
    u = (np.arange(200_000) + 0.5) / 200_000
    if high is not None and float(high) < np.inf:
        x, slope = float(low) + (float(high) - float(low)) * u, np.full(u.shape, float(high) - float(low))
    elif low is not None:
        x, slope = float(low) + u / (1 - u), 1 / (1 - u) ** 2
    else:
        x, slope = np.tan(np.pi * (u - 0.5)), np.pi / np.cos(np.pi * (u - 0.5)) ** 2
    return torch.from_numpy(x), slope / 200_000


@pytest.mark.parametrize("name", CONTINUOUS)
def test_densities_integrate_to_one_and_to_the_moments(name: str) -> None:
    made = CONTINUOUS[name]()
    x, steps = points(made)
    density = made.log_prob(x).exp().numpy() * steps
    assert density.sum() == pytest.approx(1, abs=1e-4)
    if name not in SPREAD:
        mean = (density * x.numpy()).sum()
        assert made.mean.item() == pytest.approx(mean, abs=2e-3)
        variance = (density * (x.numpy() - mean) ** 2).sum()
        assert made.variance.item() == pytest.approx(variance, rel=2e-3)
        assert made.stddev.item() == pytest.approx(variance**0.5, rel=2e-3)
    if name not in ("transformed", "mixture", "FisherSnedecor", "RelaxedBernoulli"):
        logs = made.log_prob(x).numpy()
        finite = np.isfinite(logs)
        entropy = -(density[finite] * logs[finite]).sum()
        assert made.entropy().item() == pytest.approx(entropy, abs=3e-3)
        assert made.perplexity().item() == pytest.approx(np.exp(entropy), rel=5e-3)
    if name not in ("Beta", "StudentT", "FisherSnedecor", "RelaxedBernoulli"):
        below = made.cdf(x).numpy()
        np.testing.assert_allclose(below, np.cumsum(density) - density / 2, atol=2e-3)
    if name not in ("Beta", "StudentT", "FisherSnedecor", "RelaxedBernoulli", "InverseGamma", *UNMIRRORED):
        shares = t(0.1, 0.5, 0.8)
        assert torch.allclose(made.cdf(made.icdf(shares)), shares)
    if name not in ("Cauchy", "Uniform", "mixture", "transformed", "Kumaraswamy") and "Bern" not in name:
        assert abs(made.mode.item() - x.numpy()[made.log_prob(x).numpy().argmax()]) < 0.05


@pytest.mark.parametrize("name", DISCRETE)
def test_probabilities_add_up_to_one_and_to_the_moments(name: str) -> None:
    made = DISCRETE[name]()
    counts = made.enumerate_support() if made.has_enumerate_support else torch.arange(0, 60, **F64)
    logs = made.log_prob(counts).numpy()
    chances, x = np.exp(logs), counts.numpy().astype(float)
    assert chances.sum() == pytest.approx(1, abs=1e-8)
    if name != "Categorical":
        mean = (chances * x).sum()
        assert made.mean.item() == pytest.approx(mean)
        assert made.variance.item() == pytest.approx((chances * (x - mean) ** 2).sum(), rel=1e-6)
    else:
        assert made.mean.isnan() and made.variance.isnan()
    assert made.mode.item() == x[logs.argmax()]
    if name not in ("Poisson", "NegativeBinomial"):
        assert made.entropy().item() == pytest.approx(-(chances * logs).sum(), rel=1e-6)


SAMPLED = [*CONTINUOUS, *DISCRETE]


@pytest.mark.parametrize("name", [name for name in SAMPLED if name not in ("transformed", "RelaxedBernoulli")])
def test_samples_have_the_moments(name: str) -> None:
    torch.manual_seed(7)
    made = {**CONTINUOUS, **DISCRETE}[name]()
    drawn = made.sample((20_000,))
    assert drawn.shape == (20_000,) and not drawn.requires_grad and made.support.check(drawn).all()
    if name == "Categorical":
        shares = (drawn.unsqueeze(-1) == torch.arange(3)).double().mean(0)
        assert torch.allclose(shares, made.probs, atol=0.02)
    elif "Cauchy" in name:
        assert drawn.median().item() == pytest.approx(made.icdf(t(0.5)).item(), abs=0.1)
    else:
        spread = made.stddev.item()
        assert drawn.double().mean().item() == pytest.approx(made.mean.item(), abs=0.03 * spread)
        assert drawn.double().std().item() == pytest.approx(spread, rel=0.05)


@pytest.mark.parametrize(
    "name", [name for name in CONTINUOUS if name not in ("mixture", "Chi2", "RelaxedBernoulli", *EVEN)]
)
def test_gradients_flow_through_samples(name: str) -> None:
    """The mean's derivative by the parameters, by many samples and by the formula of the mean."""
    torch.manual_seed(3)
    made = CONTINUOUS[name]()
    assert made.has_rsample
    base = made.base_dist if type(made) is d.TransformedDistribution else made
    given = {
        key: getattr(base, key).detach().clone().requires_grad_() for key in base.arg_constraints if key != "logits"
    }
    leaves, base = list(given.values()), type(base)(**given)
    made = d.TransformedDistribution(base, made.transforms) if type(made) is d.TransformedDistribution else base
    found = torch.autograd.grad(made.rsample((20_000,)).mean(), leaves, retain_graph=True, allow_unused=True)
    assert all(part is not None and part.isfinite() for part in found)
    if name in SPREAD:
        return
    wanted = torch.autograd.grad(made.mean.sum(), leaves, allow_unused=True)
    for one, other in zip(found, wanted, strict=True):
        assert one.item() == pytest.approx(0 if other is None else other.item(), abs=0.05)


@pytest.mark.parametrize(
    "name", ["even ContinuousBernoulli", "FisherSnedecor", "InverseGamma", "RelaxedBernoulli", "Pareto"]
)
def test_samples_follow_the_density(name: str) -> None:
    """The largest distance of the samples' distribution function from the density's (Kolmogorov, Smirnov)."""
    torch.manual_seed(11)
    made = CONTINUOUS[name]()
    x, steps = points(made)
    below = np.cumsum(made.log_prob(x).exp().numpy() * steps)
    drawn = np.sort(made.sample((20_000,)).numpy())
    shares = np.interp(drawn, x.numpy(), below)
    assert np.abs(shares - (np.arange(20_000) + 0.5) / 20_000).max() < 1.63 / np.sqrt(20_000)


def test_vectors() -> None:
    torch.manual_seed(5)
    matrix = t([[2.0, 0.5], [0.5, 1.0]])
    made = d.MultivariateNormal(t(0.5, -1.0), matrix)
    for name, value in (("scale_tril", made.scale_tril), ("precision_matrix", made.precision_matrix)):
        other = d.MultivariateNormal(t(0.5, -1.0), **{name: value})
        assert torch.allclose(other.covariance_matrix, matrix) and torch.allclose(other.mean, made.mode)
        assert torch.allclose(other.log_prob(t(0.1, 0.2)), made.log_prob(t(0.1, 0.2)))
    away = np.array([0.1, 0.2]) - np.array([0.5, -1.0])
    inverse, determinant = np.linalg.inv(matrix.numpy()), np.linalg.det(matrix.numpy())
    density = np.exp(-away @ inverse @ away / 2) / (2 * np.pi * np.sqrt(determinant))
    assert made.log_prob(t(0.1, 0.2)).exp().item() == pytest.approx(density)
    assert made.entropy().item() == pytest.approx(0.5 * np.log(determinant * (2 * np.pi * np.e) ** 2))
    drawn = made.rsample((20_000,))
    assert torch.allclose(drawn.T.cov(), matrix, atol=0.05) and torch.allclose(made.variance, t(2.0, 1.0))
    shares = d.Dirichlet(t(2.0, 3.0, 1.5))
    drawn = shares.sample((20_000,))
    assert shares.support.check(drawn).all() and torch.allclose(drawn.mean(0), shares.mean, atol=0.01)
    assert torch.allclose(drawn.var(0), shares.variance, atol=0.01)
    logs = 1 * log(0.3) + 2 * log(0.3) + 0.5 * log(0.4) + lgamma(6.5) - lgamma(2) - lgamma(3) - lgamma(1.5)
    assert shares.log_prob(t(0.3, 0.3, 0.4)).item() == pytest.approx(logs)
    beta, two = d.Beta(t(2.0), t(3.0)), d.Dirichlet(t(2.0, 3.0))
    assert two.entropy().item() == pytest.approx(beta.entropy().item())
    assert two.log_prob(t(0.3, 0.7)).item() == pytest.approx(beta.log_prob(t(0.3)).item())
    assert torch.allclose(two.mode, t(1 / 3, 2 / 3))


def test_classes_as_vectors_and_counts() -> None:
    torch.manual_seed(5)
    hot = d.OneHotCategorical(t(0.2, 0.3, 0.5))
    drawn = hot.sample((4, 2))
    assert drawn.shape == (4, 2, 3) and (drawn.sum(-1) == 1).all() and torch.equal(hot.mode, t(0.0, 0.0, 1.0))
    assert torch.allclose(hot.log_prob(t([1.0, 0.0, 0.0], [0.0, 0.0, 1.0])).exp(), t(0.2, 0.5))
    assert torch.equal(hot.enumerate_support(), torch.eye(3, **F64)) and torch.allclose(hot.mean, t(0.2, 0.3, 0.5))
    assert torch.allclose(hot.variance, t(0.16, 0.21, 0.25))
    counts = d.Multinomial(3, t(0.2, 0.3, 0.5))
    every = [(i, j, 3 - i - j) for i in range(4) for j in range(4 - i)]
    logs = counts.log_prob(t(every))
    assert logs.exp().sum().item() == pytest.approx(1)
    assert counts.entropy().item() == pytest.approx(-(logs.exp() * logs).sum().item())
    drawn = counts.sample((20_000,))
    assert (drawn.sum(-1) == 3).all() and torch.allclose(drawn.mean(0), counts.mean, atol=0.03)
    assert torch.allclose(drawn.var(0), counts.variance, atol=0.03)
    batch = d.Categorical(torch.ones(2, 3))
    assert batch.sample((5,)).shape == (5, 2) and batch.sample((0,)).shape == (0, 2) and batch.param_shape == (2, 3)
    assert batch.enumerate_support().shape == (3, 2) and batch.log_prob(torch.zeros(4, 1)).shape == (4, 2)


def test_independent_ones_are_one_event() -> None:
    base = d.Normal(torch.zeros(3, 2), torch.ones(3, 2))
    made = d.Independent(base, 1)
    assert (made.batch_shape, made.event_shape) == ((3,), (2,)) and made.sample((5,)).shape == (5, 3, 2)
    assert torch.allclose(made.log_prob(torch.zeros(3, 2)), base.log_prob(torch.zeros(3, 2)).sum(-1))
    assert torch.allclose(made.entropy(), base.entropy().sum(-1)) and made.rsample().shape == (3, 2)
    assert torch.equal(made.mean, base.mean) and torch.equal(made.variance, base.variance)
    assert torch.equal(made.mode, base.mode) and made.expand((4, 3)).sample().shape == (4, 3, 2)
    assert d.Independent(base, 0).support is base.support
    with pytest.raises(ValueError, match=r"to be within the support \(IndependentConstraint\(Real\(\), 1\)\)"):
        d.TransformedDistribution(made, []).log_prob(torch.full((3, 2), float("nan")))


PAIRS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "Normal": (lambda: d.Normal(t(0.5), t(2.0)), lambda: d.Normal(t(0.0), t(1.5))),
    "Laplace": (lambda: d.Laplace(t(0.5), t(2.0)), lambda: d.Laplace(t(0.0), t(1.5))),
    "Cauchy": (lambda: d.Cauchy(t(0.5), t(2.0)), lambda: d.Cauchy(t(0.0), t(1.5))),
    "Gumbel": (lambda: d.Gumbel(t(0.5), t(1.5)), lambda: d.Gumbel(t(0.0), t(2.0))),
    "HalfNormal": (lambda: d.HalfNormal(t(2.0)), lambda: d.HalfNormal(t(1.5))),
    "Uniform": (lambda: d.Uniform(t(0.0), t(1.0)), lambda: d.Uniform(t(-1.0), t(1.5))),
    "Exponential": (lambda: d.Exponential(t(0.5)), lambda: d.Exponential(t(2.0))),
    "Gamma": (lambda: d.Gamma(t(2.5), t(1.5)), lambda: d.Gamma(t(1.5), t(2.0))),
    "Beta": (lambda: d.Beta(t(2.5), t(1.5)), lambda: d.Beta(t(1.5), t(2.0))),
    "LogNormal": (lambda: d.LogNormal(t(0.2), t(0.5)), lambda: d.LogNormal(t(0.0), t(0.8))),
    "UniformNormal": (lambda: d.Uniform(t(0.0), t(1.0)), lambda: d.Normal(t(0.3), t(1.5))),
    "ExponentialGamma": (lambda: d.Exponential(t(0.5)), lambda: d.Gamma(t(1.5), t(2.0))),
    "LaplaceNormal": (lambda: d.Laplace(t(0.5), t(1.0)), lambda: d.Normal(t(0.3), t(1.5))),
    "Bernoulli": (lambda: d.Bernoulli(t(0.3)), lambda: d.Bernoulli(t(0.6))),
    "BernoulliPoisson": (lambda: d.Bernoulli(t(0.3)), lambda: d.Poisson(t(0.6))),
    "ContinuousBernoulli": (lambda: d.ContinuousBernoulli(t(0.3)), lambda: d.ContinuousBernoulli(t(0.6))),
    "Pareto": (lambda: d.Pareto(t(2.0), t(3.0)), lambda: d.Pareto(t(1.5), t(2.0))),
    "NormalLaplace": (lambda: d.Normal(t(0.5), t(1.0)), lambda: d.Laplace(t(0.3), t(1.5))),
    "Binomial": (lambda: d.Binomial(t(6.0), t(0.3)), lambda: d.Binomial(t(6.0), t(0.6))),
    "Geometric": (lambda: d.Geometric(t(0.3)), lambda: d.Geometric(t(0.6))),
    "Poisson": (lambda: d.Poisson(t(2.5)), lambda: d.Poisson(t(1.5))),
    "Categorical": (lambda: d.Categorical(t(0.3, 0.7)), lambda: d.Categorical(t(0.6, 0.4))),
}


SECOND: dict[str, Callable[[], Any]] = {
    "Beta": lambda: d.Beta(t(1.5), t(2.0)),
    "ContinuousBernoulli": lambda: d.ContinuousBernoulli(t(0.7)),
    "Exponential": lambda: d.Exponential(t(1.5)),
    "Gamma": lambda: d.Gamma(t(1.5), t(2.0)),
    "Gumbel": lambda: d.Gumbel(t(0.5), t(1.5)),
    "Normal": lambda: d.Normal(t(0.3), t(1.5)),
    "Pareto": lambda: d.Pareto(t(0.1), t(1.5)),
    "Uniform": lambda: d.Uniform(t(-0.5), t(1.5)),
}
for _second, _names in (
    *(("Beta", "Uniform"), ("ContinuousBernoulli", "Beta Uniform"), ("Pareto", "Uniform"), ("Uniform", "Beta")),
    ("Exponential", "Beta ContinuousBernoulli Gamma Pareto Uniform"),
    ("Gamma", "Beta Pareto Uniform"),
    ("Gumbel", "Exponential Gamma Normal Uniform"),
    ("Normal", "Beta ContinuousBernoulli Exponential Gamma Gumbel Pareto Uniform"),
):
    for _name in _names.split():
        _made = (lambda: d.Uniform(t(0.2), t(0.8))) if _name == "Uniform" else CONTINUOUS[_name]
        PAIRS.setdefault(f"{_name}{_second}", (_made, SECOND[_second]))


@pytest.mark.parametrize(
    "pair", [("Exponential", "Beta"), ("Gumbel", "Gamma"), ("Normal", "Uniform"), ("Pareto", "Uniform")]
)
def test_divergences_are_infinite_where_the_second_excludes_what_the_first_does_not(pair: tuple[str, str]) -> None:
    assert kl_divergence(CONTINUOUS[pair[0]](), SECOND[pair[1]]()).item() == float("inf")
    assert kl_divergence(d.Pareto(t(1.0), t(0.5)), d.Normal(0.0, 1.0)).item() == float("inf")
    assert kl_divergence(d.Uniform(t(-1.0), t(0.5)), SECOND["Gamma"]()).item() == float("inf")


@pytest.mark.parametrize("name", PAIRS)
def test_divergences_are_the_integrals(name: str) -> None:
    p, q = (make() for make in PAIRS[name])
    if isinstance(p, tuple(getattr(d, kind) for kind in DISCRETE)):
        x = p.enumerate_support() if p.has_enumerate_support else torch.arange(0, 60, **F64)
        chances = p.log_prob(x).exp().numpy()
    else:
        x, steps = points(p)
        chances = p.log_prob(x).exp().numpy() * steps
    with np.errstate(invalid="ignore"):  # 0 times infinity, where there is no probability
        terms = np.where(chances > 1e-300, chances * (p.log_prob(x) - q.log_prob(x)).numpy(), 0)
    assert kl_divergence(p, q).item() == pytest.approx(terms.sum(), rel=2e-3, abs=1e-4)
    if type(p) is type(q):
        assert kl_divergence(p, p).item() == pytest.approx(0, abs=1e-9)


def test_other_divergences() -> None:
    one = d.MultivariateNormal(t(0.5, -1.0), t([[2.0, 0.5], [0.5, 1.0]]))
    other = d.MultivariateNormal(t(0.0, 0.0), torch.eye(2, **F64))
    wanted = 0.5 * (3 + 1.25 - 2 - np.log(1.75))
    assert kl_divergence(one, other).item() == pytest.approx(wanted)
    base, second = d.Normal(t(0.0, 1.0), t(1.0, 2.0)), d.Normal(t(1.0, 1.0), t(1.0, 1.0))
    whole = kl_divergence(d.Independent(base, 1), d.Independent(second, 1))
    assert whole.item() == pytest.approx(kl_divergence(base, second).sum().item())
    two = kl_divergence(d.Dirichlet(t(2.0, 3.0)), d.Dirichlet(t(1.0, 1.5)))
    assert two.item() == pytest.approx(kl_divergence(d.Beta(t(2.0), t(3.0)), d.Beta(t(1.0), t(1.5))).item())
    hot = kl_divergence(d.OneHotCategorical(t(0.3, 0.7)), d.OneHotCategorical(t(0.5, 0.5)))
    assert hot.item() == pytest.approx(0.3 * np.log(0.6) + 0.7 * np.log(1.4))
    assert kl_divergence(d.Uniform(0.0, 2.0), d.Uniform(0.0, 1.0)).item() == float("inf")
    assert kl_divergence(d.Bernoulli(0.5), d.Bernoulli(1.0)).item() == float("inf")
    with pytest.raises(NotImplementedError, match="No KL"):
        kl_divergence(d.Normal(0.0, 1.0), d.Geometric(0.5))

    class Mine(d.Normal):
        pass

    @d.register_kl(Mine, Mine)
    def _(p: Any, q: Any) -> Any:
        return p.loc * 7

    assert kl_divergence(Mine(1.0, 1.0), Mine(1.0, 1.0)).item() == 7


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: d.Normal(0.0, -1.0),
            r"Expected parameter scale \(Tensor of shape \(\)\) of distribution Normal\(loc: 0.",
        ),
        (lambda: d.Normal(0.0, 1.0).log_prob(1.0), "The value argument to log_prob must be a Tensor"),
        (lambda: d.Normal(torch.zeros(2), 1.0).log_prob(torch.zeros(3)), "Value is not broadcastable with batch_shape"),
        (lambda: d.Bernoulli(), "Either `probs` or `logits` must be specified, but not both."),
        (lambda: d.Bernoulli(0.5, 0.5), "Either `probs` or `logits` must be specified, but not both."),
        (
            lambda: d.Bernoulli(0.5).log_prob(t(2.0)),
            r"Expected value argument \(Tensor of shape \(\)\) to be within the s",
        ),
        (lambda: d.Categorical(t(1.0)), "`probs` parameter must be at least one-dimensional."),
        (lambda: d.Categorical(t(-1.0, 2.0)), r"to satisfy the constraint Simplex\(\), but found invalid values"),
        (
            lambda: d.Uniform(1.0, 0.0),
            r"Expected parameter low .* to satisfy the constraint LessThan\(upper_bound=0.0\)",
        ),
        (
            lambda: d.MultivariateNormal(t(0.0, 0.0)),
            "Exactly one of covariance_matrix or precision_matrix or scale_tril",
        ),
        (lambda: d.MultivariateNormal(t(0.0, 0.0), -torch.eye(2)), r"the constraint PositiveDefinite\(\), but found"),
        (lambda: d.Independent(d.Normal(0.0, 1.0), 1), "Expected reinterpreted_batch_ndims <= len"),
        (lambda: d.Dirichlet(t(1.0)), "`concentration` parameter must be at least one-dimensional."),
        (lambda: d.Normal("a", 1.0), "Input arguments must all be instances of Number, torch.Tensor or objects implem"),
        (
            lambda: d.Multinomial(3, torch.ones(2)).log_prob(torch.ones(3)),
            "The right-most size of value must match event",
        ),
        (
            lambda: d.MixtureSameFamily(d.Normal(0.0, 1.0), d.Normal(0.0, 1.0)),
            "The Mixture distribution needs to be an",
        ),
        (
            lambda: d.MixtureSameFamily(d.Categorical(torch.ones(2)), 1),
            "The Component distribution needs to be an inst",
        ),
        (lambda: d.Geometric(0.0), r"Geometric\(probs: 0.0\) to be positive but found invalid values"),
        (
            lambda: d.TransformedDistribution(d.Normal(0.0, 1.0), [1]),
            "transforms must be a Transform or a list of Transforms",
        ),
        (lambda: constraints.dependent.check(t(1.0)), "Cannot determine validity of dependent constraint"),
        (lambda: d.LKJCholesky(3, 1e-30), "Expected a concentration that does not round to 0, got 1e-30"),
        (
            lambda: d.TransformedDistribution(d.VonMises(torch.ones(2), 1.0, False), []).cdf(torch.ones(3)),
            "Value is not broadcastable with batch_shape",
        ),
    ],
)
def test_what_is_refused(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


def test_what_is_not_there() -> None:
    normal = d.Normal(0.0, 1.0)
    for call in (normal.enumerate_support, d.Poisson(1.0).rsample, d.Poisson(1.0).entropy):
        with pytest.raises(NotImplementedError):
            call()
    with pytest.raises(NotImplementedError, match="does not implement mode"):
        _ = d.Independent(d.MixtureSameFamily(d.Categorical(torch.ones(2)), d.Normal(torch.zeros(2), 1.0)), 0).mode
    with pytest.raises(NotImplementedError, match="Inhomogeneous total count"):
        d.Binomial(t(1.0, 2.0), t(0.5, 0.5)).enumerate_support()


def test_they_print_and_expand() -> None:
    assert repr(d.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"
    assert repr(d.Gamma(torch.ones(2), 1.0)) == f"Gamma(concentration: {torch.Size([2])}, rate: {torch.Size([2])})"
    assert repr(d.Independent(d.Normal(torch.zeros(2), 1.0), 1)).startswith("Independent(Normal(loc: ")
    assert repr(constraints.unit_interval) == "Interval(lower_bound=0.0, upper_bound=1.0)"
    wide = d.Normal(torch.zeros(2), 1.0).expand((3, 2))
    assert wide.batch_shape == (3, 2) and wide.sample().shape == (3, 2)
    assert d.LogNormal(0.0, 1.0).expand((4,)).sample((2,)).shape == (2, 4)
    assert d.Bernoulli(0.5, validate_args=False).log_prob(t(2.0)).isfinite()
    d.Distribution.set_default_validate_args(False)
    try:
        d.Normal(0.0, -1.0)
    finally:
        d.Distribution.set_default_validate_args(True)


TRANSFORMS = {
    "exp": d.ExpTransform(),
    "sigmoid": d.SigmoidTransform(),
    "tanh": d.TanhTransform(),
    "affine": d.AffineTransform(1.0, -2.0),
    "power": d.PowerTransform(3.0),
    "composed": d.ComposeTransform([d.AffineTransform(1.0, 2.0), d.SigmoidTransform()]),
    "inverse": d.ExpTransform().inv,
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name: str) -> None:
    transform, x = TRANSFORMS[name], t(0.3, 0.7, 1.5).requires_grad_()
    y = transform(x)
    assert torch.allclose(transform.inv(y), x)
    assert transform.inv.inv == transform and transform != d.AffineTransform(0.0, 3.0)
    (slope,) = torch.autograd.grad(y.sum(), x)
    assert torch.allclose(transform.log_abs_det_jacobian(x, y), slope.abs().log())
    assert (
        transform.sign == slope[0].sign().item()
        and transform.codomain.check(y).all()
        and transform.domain.check(x).all()
    )


@pytest.mark.thorough
@needs_triton
def test_devices_draw_what_the_cpu_draws() -> None:
    with torch.cuda.simulate(devices=1):
        for make in (d.Normal, d.Gamma, d.Beta, d.Laplace):
            drawn = []
            for device in ("cpu", "cuda"):
                torch.manual_seed(11)
                made = make(torch.ones(3, device=device), torch.ones(3, device=device) * 2)
                drawn.append(made.rsample((4,)))
                assert drawn[-1].device.type == device and made.log_prob(drawn[-1]).device.type == device
            assert torch.allclose(drawn[0], drawn[1].cpu(), rtol=1e-4)
