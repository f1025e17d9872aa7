"""Distributions of angles, vectors, matrices and shares; what divergences of families and of subclasses are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import distributions as d
from tritensor.distributions import kl_divergence

from .test_distributions import F64, t


def test_angles() -> None:
    torch.manual_seed(11)
    made = d.VonMises(t(2.5), t(1.5))
    x = torch.linspace(-np.pi, np.pi, 20_001, **F64)
    density = made.log_prob(x).exp().numpy()
    below = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2)]) * (2 * np.pi / 20_000)
    assert below[-1] == pytest.approx(1) and made.mean == made.mode == 2.5 and not made.has_rsample
    resultant = (density[:-1] * np.cos(x.numpy()[:-1] - 2.5)).sum() * (2 * np.pi / 20_000)
    assert made.variance.item() == pytest.approx(1 - resultant)
    drawn = np.sort(made.sample((20_000,)).numpy())
    assert np.abs(np.interp(drawn, x.numpy(), below) - (np.arange(20_000) + 0.5) / 20_000).max() < 0.0115
    assert d.VonMises(t(0.5), t(float("inf"))).sample().isnan() and d.VonMises(0.0, 1e-6).sample().abs() <= np.pi


def test_low_rank() -> None:
    torch.manual_seed(5)
    w, diagonal, loc = t([[1.0], [0.5], [-0.3]]), t(0.5, 1.0, 2.0), t(0.1, 0.2, 0.3)
    made, whole = d.LowRankMultivariateNormal(loc, w, diagonal), d.MultivariateNormal(loc, w @ w.mT + diagonal.diag())
    for name in ("covariance_matrix", "precision_matrix", "scale_tril", "variance", "mean", "mode"):
        assert torch.allclose(getattr(made, name), getattr(whole, name)), name
    value = t([0.5, -1.0, 2.0], [0.0, 0.0, 0.0])
    assert torch.allclose(made.log_prob(value), whole.log_prob(value)) and torch.allclose(
        made.entropy(), whole.entropy()
    )
    other = d.MultivariateNormal(loc * 2, torch.eye(3, **F64) * 1.5)
    thin = d.LowRankMultivariateNormal(loc * 2, torch.zeros(3, 2, **F64), torch.full((3,), 1.5, **F64))
    wanted = kl_divergence(whole, other)
    assert all(torch.allclose(kl_divergence(p, q), wanted) for p in (made, whole) for q in (other, thin))
    assert torch.allclose(
        made.expand((4,)).rsample((20_000,)).reshape(-1, 3).mT.cov(), made.covariance_matrix, atol=0.05
    )
    assert made.expand((4,)).log_prob(value[0]).shape == (4,)
    with pytest.raises(ValueError, match="different event shapes"):
        kl_divergence(made, d.MultivariateNormal(t(0.0, 0.0), torch.eye(2, **F64)))


@pytest.mark.thorough
def test_matrices() -> None:
    torch.manual_seed(5)
    scale = t([[1.0, 0.3], [0.3, 0.5]])
    made = d.Wishart(t(5.0), scale)
    drawn = made.rsample((3_000,))
    assert made.support.check(drawn).all() and torch.allclose(drawn.mean(0), made.mean, atol=0.2)
    assert torch.allclose(drawn.var(0), made.variance, rtol=0.2) and torch.allclose(made.mode, 2 * scale)
    assert made.entropy().item() == pytest.approx(-made.log_prob(drawn).mean().item(), abs=0.1)
    assert d.ExponentialFamily.entropy(made).item() == pytest.approx(made.entropy().item())
    assert kl_divergence(made, d.Wishart(4.0, scale_tril=torch.eye(2, **F64))).item() > 0
    other = d.Wishart(t(4.0, 6.0), precision_matrix=torch.eye(2, **F64))
    apart = [kl_divergence(made, d.Wishart(t(df), torch.eye(2, **F64))) for df in (4.0, 6.0)]
    assert torch.allclose(kl_divergence(made.expand((2,)), other), torch.stack(apart))
    of_one = d.Wishart(t(4.5), scale_tril=torch.eye(1, **F64).requires_grad_())
    assert repr(of_one.covariance_matrix).endswith("grad_fn=<ExpandBackward0>)")  # as PyTorch's
    with pytest.warns(UserWarning, match="Low df values detected"):
        assert d.Wishart(t(1.5), scale).mode.isnan().all()
    with pytest.raises(ValueError, match=r"Value of df=1\.0 expected to be greater than ndim - 1 = 1"):
        d.Wishart(1.0, scale)
    factors = d.LKJCholesky(3, t(0.7, 2.0))
    drawn = factors.sample((5_000,))
    assert factors.support.check(drawn).all() and factors.expand((4, 2)).sample().shape == (4, 2, 3, 3)
    shares = (drawn @ drawn.mT)[..., 0, 1] / 2 + 0.5  # which are Beta(eta + 1/2, eta + 1/2) of three dimensions
    for i, eta in enumerate((0.7, 2.0)):
        assert shares[:, i].var().item() == pytest.approx(d.Beta(eta + 0.5, eta + 0.5).variance.item(), rel=0.08)
    line, x = d.LKJCholesky(2, 0.7), torch.linspace(-0.9999, 0.9999, 20_001, **F64)
    rows = torch.stack([x, (1 - x * x).sqrt()], -1)
    values = torch.stack([t(1.0, 0.0).expand_as(rows), rows], -2)
    assert (line.log_prob(values).exp().sum() * (x[1] - x[0])).item() == pytest.approx(1, abs=0.02)
    with pytest.raises(ValueError, match="Expected dim to be an integer greater than or equal to 2"):
        d.LKJCholesky(1)


def test_relaxed_classes() -> None:
    torch.manual_seed(5)
    probs = t(0.2, 0.3, 0.5).requires_grad_()
    made = d.RelaxedOneHotCategorical(t(0.5), probs)
    drawn = made.rsample((20_000,))
    assert made.support.check(drawn).all() and drawn.requires_grad and made.temperature == 0.5
    winners = torch.nn.functional.one_hot(drawn.argmax(-1), 3).double().mean(0)
    assert torch.allclose(winners, probs, atol=0.02) and torch.allclose(made.probs, probs)
    u = (torch.arange(400, **F64) + 0.5) / 400
    grid = torch.stack([u.unsqueeze(1).expand(400, 400), u.unsqueeze(0) * (1 - u.unsqueeze(1))], -1)
    grid = torch.cat([grid, 1 - grid.sum(-1, True)], -1)
    mass = (d.RelaxedOneHotCategorical(t(1.5), probs).log_prob(grid).exp() * (1 - u.unsqueeze(1))).mean()
    assert mass.item() == pytest.approx(1, abs=0.02)
    through = d.OneHotCategoricalStraightThrough(probs).rsample((5,))
    assert set(through.detach().round().unique().tolist()) == {0.0, 1.0}
    assert torch.autograd.grad(through[:, 0].sum(), probs)[0].abs().sum() > 0
    shares = d.LogisticNormal(t(0.2, -0.3), t(0.5, 1.0))
    drawn = shares.rsample((4,))
    assert shares.event_shape == (3,) and shares.support.check(drawn).all() and shares.loc.shape == (2,)
    assert d.LogisticNormal(0.0, 1.0).event_shape == (2,) and shares.expand((5,)).log_prob(drawn[0]).shape == (5,)


@pytest.mark.parametrize(
    "p", [d.Bernoulli(t(0.3)), d.Exponential(t(0.3)), d.Gamma(t(2.5), t(1.5)), d.Normal(t(0.5), t(2.0))]
)
def test_an_exponential_family_knows_its_entropy_and_divergence_by_derivatives(p: Any) -> None:
    q = type(p)(**{name: getattr(p, name) * 1.5 for name in p.arg_constraints if name != "logits"})
    assert d.ExponentialFamily.entropy(p).item() == pytest.approx(p.entropy().item())
    assert d.kl._kl_expfamily_expfamily(p, q).item() == pytest.approx(kl_divergence(p, q).item())


def test_an_ambiguous_divergence_warns() -> None:
    class Wide(d.Normal):
        pass

    class Far(d.Normal):
        pass

    d.register_kl(Wide, d.Normal)(lambda p, q: p.loc + 1)
    d.register_kl(d.Normal, Far)(lambda p, q: p.loc + 2)
    with pytest.warns(RuntimeWarning, match=r"Ambiguous kl_divergence\(Wide, Far\). Please register_kl\(Wide, Far\)"):
        assert kl_divergence(Wide(0.0, 1.0), Far(0.0, 1.0)) == 1
    with pytest.raises(TypeError, match="Expected type_p to be a Distribution subclass but got 3"):
        d.register_kl(3, Far)
    with pytest.raises(NotImplementedError, match="cross KL-divergence between different exponential families"):
        kl_divergence(d.Poisson(1.0), d.Normal(0.0, 1.0))
