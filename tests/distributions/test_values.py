"""Values and gradients that are known, and for every class and parametrization those of PyTorch."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import distributions as d

from .test_lazy import CASES, READ

F64 = {"dtype": torch.float64}
NAN, INF = math.nan, math.inf


def same(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found.detach().numpy(), wanted, rtol=1e-12)


def test_a_number_as_a_parameter_has_the_default_dtype_and_decides_that_of_a_density() -> None:
    value = torch.tensor(0.7, **F64)
    found = d.Chi2(1.2).log_prob(value)
    assert found.dtype is torch.float32
    assert found.item() == pytest.approx(-0.35 - 0.4 * math.log(0.7) - 0.6 * math.log(2) - math.lgamma(0.6))
    wide = d.Chi2(torch.tensor(1.2, **F64)).log_prob(value)
    assert wide.dtype is torch.float64
    assert wide.item() == pytest.approx(found.item(), abs=1e-6)
    assert d.Binomial(torch.tensor(5), probs=torch.tensor(0.5)).total_count.dtype is torch.float32


def test_a_density_that_is_not_checked_takes_numbers_and_whole_ones() -> None:
    for value in (2.0, 2, torch.tensor(2), torch.tensor(2.0)):
        found = [kind(1.0, validate_args=False).log_prob(value) for kind in (d.Chi2, d.HalfCauchy)]
        assert [each.dtype for each in found] == [torch.float32] * 2
        assert found[1].item() == pytest.approx(math.log(2 / math.pi / 5))


def test_modes_of_shares_are_inside_at_an_end_or_not_there() -> None:
    a = torch.tensor([0.5, 1.0, 1.0, 2.0, 0.5, 3.0, 0.3], **F64)
    b = torch.tensor([0.5, 1.0, 2.0, 1.0, 2.0, 2.0, 0.6], **F64)
    same(d.Beta(a, b).mode, [1, NAN, 0, 1, 0, 2 / 3, 1])
    same(d.Dirichlet(torch.tensor([[0.5, 0.2], [2, 3], [1, 1]], **F64)).mode, [[1, 0], [1 / 3, 2 / 3], [NAN, NAN]])


MOMENTS: dict[str, tuple[Any, str, Any, Any]] = {
    "Cauchy.mean": (lambda x: d.Cauchy(x, 1.0), "mean", [NAN] * 3, None),
    "Cauchy.variance": (lambda x: d.Cauchy(x, 1.0), "variance", [INF] * 3, None),
    "Categorical.mean": (lambda x: d.Categorical(x), "mean", NAN, None),
    "Categorical.variance": (lambda x: d.Categorical(x), "variance", NAN, None),
    "StudentT.variance": (lambda x: d.StudentT(x), "variance", [INF, 3, NAN], [0, -2, 0]),
    "StudentT.stddev": (lambda x: d.StudentT(1.5, 0.0, x + INF), "stddev", [INF] * 3, [0] * 3),
    "Exponential.mode": (lambda x: d.Exponential(x), "mode", [0] * 3, None),
    "Geometric.mode": (lambda x: d.Geometric(x / 4), "mode", [0] * 3, None),
    "HalfNormal.mode": (lambda x: d.HalfNormal(x), "mode", [0] * 3, None),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_moments_that_do_not_depend_on_parameters_have_no_gradient(name: str) -> None:
    """And where they are infinite or NaN for some, the gradients of those are 0."""
    make, moment, value, slopes = MOMENTS[name]
    x = torch.tensor([2.0, 3.0, 0.5], **F64).requires_grad_()
    found = getattr(make(x), moment)
    same(found, value)
    assert found.requires_grad == (slopes is not None)
    if slopes is not None:
        same(torch.autograd.grad(found.sum(), x)[0], slopes)


def test_gradients_where_the_odds_are_even() -> None:
    x = torch.tensor(0.5, **F64).requires_grad_()
    same(torch.autograd.grad(d.Geometric(x).entropy(), x)[0], -4 * math.log(2))
    n = torch.tensor(5.0, **F64).requires_grad_()
    assert torch.autograd.grad(d.Binomial(n, logits=2).mode, n)[0] == 0


class Double(d.Transform):
    def _call(self, x: Any) -> Any:
        return 2 * x

    def _inverse(self, y: Any) -> Any:
        return y / 2

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return torch.full_like(x, math.log(2))


class Column(d.Transform):
    domain = d.constraints.real_vector
    codomain = d.constraints.independent(d.constraints.real, 2)

    def __init__(self) -> None:
        super().__init__()
        self.held = torch.ones(5)  # which says nothing of shapes

    def _call(self, x: Any) -> Any:
        return x.unsqueeze(-1)

    def _inverse(self, y: Any) -> Any:
        return y.squeeze(-1)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return torch.zeros(x.shape[:-1])

    def forward_shape(self, shape: Any) -> Any:
        return (*shape, 1)

    def inverse_shape(self, shape: Any) -> Any:
        return tuple(shape)[:-1]


def test_a_transform_of_ones_own_may_change_the_event() -> None:
    base = d.Normal(torch.zeros(2, 3), 1.0)
    made = d.TransformedDistribution(base, [Column(), d.AffineTransform(0.0, 1.0)])
    assert (made.batch_shape, made.event_shape) == ((2,), (3, 1)) and made.sample((4,)).shape == (4, 2, 3, 1)
    value = torch.arange(3.0).unsqueeze(-1)
    same(made.log_prob(value), base.log_prob(value[:, 0]).sum(-1).numpy())
    assert made.transforms[0].inv.inverse_shape((2, 3)) == (2, 3, 1)
    back = d.TransformedDistribution(made, [Column().inv])
    assert back.event_shape == (3,) and back.sample().shape == (2, 3)
    same(back.log_prob(value[:, 0]), made.log_prob(value).numpy())


def test_a_transform_of_ones_own_has_two_directions_and_a_slope() -> None:
    transform = Double()
    assert transform.inv.inv is transform and transform.inv is transform.inv
    made = d.TransformedDistribution(d.Normal(0.0, 1.0), transform)
    assert made.log_prob(torch.tensor(1.0)).item() == pytest.approx(
        d.Normal(0.0, 2.0).log_prob(torch.tensor(1.0)).item()
    )
    assert transform.inv.log_abs_det_jacobian(torch.tensor(2.0), torch.tensor(1.0)).item() == pytest.approx(
        -math.log(2)
    )


def test_shapes_follow_the_parameters_of_transforms() -> None:
    wide = d.TransformedDistribution(d.Normal(0.0, 1.0), d.AffineTransform(torch.zeros(3), 1.0))
    assert wide.batch_shape == (3,) and wide.sample().shape == (3,)
    whole = d.TransformedDistribution(d.Normal(torch.zeros(3), 1.0), d.AffineTransform(0.0, 2.0, event_dim=1))
    assert whole.event_shape == (3,) and whole.log_prob(torch.zeros(3)).shape == ()
    with pytest.raises(ValueError, match="base_distribution needs to have shape with size at least 1"):
        d.TransformedDistribution(d.Normal(0.0, 1.0), d.AffineTransform(0.0, 2.0, event_dim=1))


def test_a_transform_with_a_cache_gives_back_what_it_was_called_with() -> None:
    x = torch.tensor(25.0, **F64)
    transform = d.TanhTransform(cache_size=1)
    assert transform.inv(transform(x)) is x and transform.with_cache(0).inv(transform(x)).isinf()
    assert transform.with_cache(1) is transform
    chain = d.ComposeTransform([d.TanhTransform(), d.AffineTransform(0, 1)], cache_size=1)
    assert chain.inv(chain(x)) == x
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        d.ExpTransform(cache_size=2)


def test_a_cached_inverse_of_samples_has_the_gradients_of_one_that_is_not() -> None:
    loc = torch.tensor(1.0, **F64).requires_grad_()
    found = []
    for size in (0, 1):
        torch.manual_seed(1)
        made = d.TransformedDistribution(d.Normal(loc * 1, 1.0), d.AffineTransform(loc, 2.0, cache_size=size))
        found.append(torch.autograd.grad(made.log_prob(made.sample()), loc)[0].item())
    assert found[0] == found[1]


def test_refusals() -> None:
    with pytest.raises(NotImplementedError, match="Enumeration over cartesian product is not implemented"):
        d.Independent(d.Categorical(torch.ones(2, 2)), 1).enumerate_support()
    assert d.Independent(d.Categorical(torch.ones(2)), 0).enumerate_support().tolist() == [0, 1]
    with pytest.raises(ValueError, match="is not compatible with `component_distribution"):
        d.MixtureSameFamily(d.Categorical(torch.ones(2, 3)), d.Normal(torch.zeros(3, 3), 1.0))
    with pytest.raises(ValueError, match="transforms must be a Transform or list, but was 1"):
        d.TransformedDistribution(d.Normal(0.0, 1.0), 1)


def test_batches_of_mixtures_grow() -> None:
    """Also where the batch of the mixture has another number of dimensions, or is larger."""
    wide = d.MixtureSameFamily(d.Categorical(torch.ones(2, 1, 1)), d.Exponential(torch.ones(1, 1))).expand((2, 3))
    assert wide.batch_shape == (2, 3) and wide.log_prob(torch.ones(2, 3)).shape == (2, 3)
    made = d.MixtureSameFamily(d.Categorical(torch.ones(2)), d.Binomial(3, torch.tensor([[0.5, 0.25]]))).expand((4,))
    assert made.log_prob(torch.tensor([0.0, 1.0, 2.0, 3.0])).shape == made.sample().shape == (4,)


# ---- beside PyTorch --------------------------------------------------------------------------------------------


def moved(value: Any, dtype: str, library: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return library.from_numpy(value.numpy().astype(dtype)).requires_grad_()
    return value


@pytest.mark.peer
@pytest.mark.parametrize(("kind", "arguments"), CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_moments_densities_and_gradients_are_pytorchs(kind: Any, arguments: Any, dtype: str) -> None:
    peer = pytest.importorskip("torch")
    if kind is d.GeneralizedPareto and dtype == "float64":
        pytest.skip("PyTorch's raises an error of its own there: Double did not match Float")
    for name in READ:
        results: list[Any] = []
        sample = kind(**{key: moved(value, dtype, torch) for key, value in arguments.items()}).sample().numpy()
        for library, other in ((torch, kind), (peer, getattr(peer.distributions, kind.__name__))):
            given = {key: moved(value, dtype, library) for key, value in arguments.items()}
            value = library.from_numpy(sample.astype(dtype))
            try:
                found = getattr(other(**given), name)
                found = found(value) if name == "log_prob" else found() if callable(found) else found
            except NotImplementedError:
                found = library.zeros(())
            leaves = [each for each in given.values() if isinstance(each, library.Tensor)]
            slopes = library.autograd.grad(found.sum(), leaves, allow_unused=True) if found.requires_grad else ()
            results.append([found.detach(), *[each for each in slopes if each is not None], len(slopes)])
        for one, other in zip(*results, strict=True):
            one, other = np.asarray(one), np.asarray(other)
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=8e-4 if dtype == "float32" else 1e-8, atol=1e-6, err_msg=name)


@pytest.mark.peer
def test_gradients_of_gamma_numbers_are_pytorchs() -> None:
    peer = pytest.importorskip("torch")
    torch.manual_seed(0)
    shapes = np.repeat([0.05, 0.3, 1.0, 2.5, 9.0, 40.0, 300.0], 50)
    concentration = torch.from_numpy(shapes).requires_grad_()
    found = d.Gamma(concentration, 1.0).rsample()
    ours = torch.autograd.grad(found.sum(), concentration)[0].numpy()
    theirs = peer._standard_gamma_grad(peer.from_numpy(shapes), peer.from_numpy(found.detach().numpy())).numpy()
    np.testing.assert_allclose(ours, theirs, rtol=5e-3, atol=1e-12)


@pytest.mark.peer
def test_gradients_of_shares_are_pytorchs() -> None:
    peer = pytest.importorskip("torch")
    torch.manual_seed(0)
    rows = np.repeat([[0.05, 0.3, 1.0], [2.5, 9.0, 40.0], [300.0, 0.5, 20.0]], 50, 0)
    concentration = torch.from_numpy(rows).requires_grad_()
    found = d.Dirichlet(concentration).rsample()
    assert ((found > 0) & (found < 1)).all()
    weights = np.random.default_rng(0).standard_normal(rows.shape)
    ours = torch.autograd.grad((found * torch.from_numpy(weights)).sum(), concentration)[0].numpy()
    shares, given = peer.from_numpy(found.detach().numpy()), peer.from_numpy(rows)
    theirs = peer.distributions.dirichlet._Dirichlet_backward(shares, given, peer.from_numpy(weights)).numpy()
    np.testing.assert_allclose(ours, theirs, rtol=5e-3, atol=1e-6)


@pytest.mark.peer
def test_every_parameter_has_pytorchs_name_and_default() -> None:
    peer = pytest.importorskip("torch")
    for name in d.__all__:
        ours, theirs = getattr(d, name), getattr(peer.distributions, name)
        if inspect.isclass(ours) and "__init__" in vars(theirs):
            one, other = (
                {key: each.default for key, each in inspect.signature(kind).parameters.items() if key[0] != "_"}
                for kind in (ours, theirs)
            )
            assert one.keys() == other.keys(), name
