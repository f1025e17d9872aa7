"""Transforms of vectors, matrices, parts and shapes; registries of transforms to regions; tools of distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import distributions as d
from tritensor.autograd import functional
from tritensor.distributions import constraints as c
from tritensor.distributions import probabilities, shapes

F64 = {"dtype": torch.float64}
VECTOR = [0.3, -0.7, 1.2]
ROWS = [VECTOR, [0.1, 0.2, -0.3]]
EXP, IDENTITY = d.ExpTransform(), d.identity_transform


def t(values: Any) -> torch.Tensor:
    return torch.tensor(values, **F64)


BIJECTIONS: dict[str, tuple[Any, Any, Any]] = {  # an argument, and the elements of the result that are free
    "softplus": (d.SoftplusTransform(), VECTOR, np.s_[:]),
    "stick": (d.StickBreakingTransform(), VECTOR, np.s_[:-1]),
    "correlation": (d.CorrCholeskyTransform(), VECTOR, np.array([3, 6, 7])),
    "independent": (d.IndependentTransform(EXP, 1), VECTOR, np.s_[:]),
    "reshaped": (d.ReshapeTransform((3,), (3, 1)), VECTOR, np.s_[:]),
    "parts": (d.CatTransform([EXP, d.AffineTransform(1.0, 2.0)], -1, [1, 2]), VECTOR, np.s_[:]),
    "parts of events": (d.CatTransform([d.IndependentTransform(EXP, 1)] * 2, 0, [2, 1]), VECTOR, np.s_[:]),
    "places": (d.StackTransform([EXP, IDENTITY, d.SigmoidTransform()], 0), VECTOR, np.s_[:]),
    "distribution": (d.CumulativeDistributionTransform(d.Normal(0.5, 2.0)), VECTOR, np.s_[:]),
    "rows": (d.CatTransform([EXP, IDENTITY], -2), ROWS, np.s_[:]),
}


@pytest.mark.parametrize("name", BIJECTIONS)
def test_bijections_have_inverses_and_determinants(name: str) -> None:
    transform, value, free = BIJECTIONS[name]
    x = t(value)
    y = transform(x)
    assert transform.bijective and torch.allclose(transform.inv(y), x) and torch.allclose(transform.inv.inv(x), y)
    matrix = functional.jacobian(lambda x: transform(x).flatten()[free], x).reshape(-1, x.numel())
    found = transform.log_abs_det_jacobian(x, y).sum()
    assert found.item() == pytest.approx(torch.linalg.slogdet(matrix).logabsdet.item())
    assert transform.forward_shape(x.shape) == y.shape and transform.inverse_shape(y.shape) == x.shape
    cached = transform.with_cache(1)
    assert cached.inv(cached(x)) is not None and cached.with_cache(1) is cached
    assert name == "parts of events" or (transform.codomain.check(y).all() and transform.domain.check(x).all())


def test_what_is_no_bijection() -> None:
    soft, lower, definite = d.SoftmaxTransform(), d.LowerCholeskyTransform(), d.PositiveDefiniteTransform()
    x = t([[0.3, 9.0], [-0.7, 1.2]])
    assert (
        torch.allclose(soft(soft.inv(soft(x))), x.softmax(-1)) and soft == d.SoftmaxTransform() and not soft.bijective
    )
    assert c.lower_cholesky.check(lower(x)) and c.positive_definite.check(definite(x))
    assert torch.allclose(lower.inv(lower(x)), x.tril()) and torch.allclose(definite.inv(definite(x)), x.tril())
    assert lower != definite and d.CorrCholeskyTransform() != d.CorrCholeskyTransform()
    with pytest.raises(NotImplementedError):
        assert soft.sign
    with pytest.raises(NotImplementedError):
        soft.log_abs_det_jacobian(x, x)
    with pytest.raises(ValueError, match=r"Please use either \.domain\.event_dim or \.codomain\.event_dim"):
        assert d.CorrCholeskyTransform().event_dim
    assert d.CatTransform([soft, EXP]).event_dim == 1 and d.CatTransform([soft, EXP], 0, [2, 1]).length == 3
    assert d.IndependentTransform(EXP, 1).sign == 1 and repr(d.IndependentTransform(EXP, 1)).endswith("(), 1)")
    assert d.CumulativeDistributionTransform(d.Normal(0.0, 1.0)).domain is c.real


FEW = "Too few dimensions on input"


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: d.SoftmaxTransform().forward_shape(()), ValueError, FEW),
        (lambda: d.StickBreakingTransform().inverse_shape(()), ValueError, FEW),
        (lambda: d.CorrCholeskyTransform().forward_shape((2,)), ValueError, "not a flattened lower-diagonal number"),
        (lambda: d.CorrCholeskyTransform().inverse_shape((2, 3)), ValueError, "Input is not square"),
        (lambda: d.IndependentTransform(EXP, 1)(t(1.0)), ValueError, FEW),
        (lambda: d.IndependentTransform(EXP, 1).inv(t(1.0)), ValueError, FEW),
        (lambda: d.ReshapeTransform((2,), (3,)), ValueError, "in_shape, out_shape have different numbers of elements"),
        (lambda: d.ReshapeTransform((2,), (2, 1)).forward_shape((3,)), ValueError, "Shape mismatch: expected"),
        (lambda: d.ReshapeTransform((2,), (2, 1)).inverse_shape((2,)), ValueError, FEW),
        (lambda: d.CatTransform([EXP], 0, [1, 2]), AssertionError, r"lengths \(2\) must match transforms \(1\)"),
        (lambda: d.CatTransform([3]), AssertionError, "All elements of tseq must be Transform"),
        (lambda: d.CatTransform([EXP], 1)(t([1.0])), AssertionError, "dim 1 out of range for tensor with 1 dimensions"),
        (lambda: d.StackTransform([EXP])(t([1.0, 2.0])), AssertionError, r"x\.size\(0\) = 2 must equal 1"),
        (lambda: shapes.tril_matrix_to_vec(t(ROWS), 3), ValueError, r"diag \(3\) provided is outside \[-3, 2\]"),
        (lambda: shapes.vec_to_tril_matrix(t([1.0, 2.0])), ValueError, "The size of last dimension is 2 which cannot"),
        (lambda: d.biject_to(c.boolean), NotImplementedError, "Cannot transform _?Boolean constraints"),
        (lambda: d.transform_to.register(3, None)(EXP), TypeError, "Expected constraint to be either a Constraint sub"),
    ],
)
def test_what_is_refused(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


REGIONS: dict[str, Any] = {
    "real": c.real,
    "positive": c.positive,
    "above": c.greater_than_eq(t([0.5, 1.0, -2.0])),
    "below": c.less_than(-1.0),
    "unit": c.unit_interval,
    "within": c.interval(-1.0, 2.0),
    "half open": c.half_open_interval(0.0, t(1.0)),
    "simplex": c.simplex,
    "correlation": c.corr_cholesky,
    "independent": c.independent(c.positive, 1),
    "joined": c.cat([c.positive, c.unit_interval], -1, [1, 2]),
    "piled": c.stack([c.positive, c.real, c.less_than(0.0)], -1),
}


@pytest.mark.parametrize("name", REGIONS)
def test_registries_lead_into_regions(name: str) -> None:
    region, x = REGIONS[name], t(VECTOR)
    for registry in (d.biject_to, d.transform_to):
        transform = registry(region)
        y = transform(x)
        assert region.check(y).all()
        assert torch.allclose(transform(transform.inv(y)), y)
    assert d.biject_to(region).bijective and torch.allclose(d.biject_to(region).inv(d.biject_to(region)(x)), x)


def test_registries_take_regions_of_ones_own() -> None:
    class Even(c.Constraint):
        pass

    registry = d.constraint_registry.ConstraintRegistry()

    @registry.register(Even)
    def _(region: Even) -> Any:
        return d.AffineTransform(0.0, 2.0)

    assert registry(Even())(t(1.5)) == 3
    with pytest.raises(NotImplementedError, match="Cannot transform Even constraints"):
        d.biject_to(Even())
    factor = t([[1.0, 0.0], [0.5, 2.0]])
    for region in (c.lower_cholesky, c.positive_definite, c.positive_semidefinite):
        assert region.check(d.transform_to(region)(factor)).all()


def test_tools() -> None:
    probs = t([0.2, 0.3, 0.5])
    for binary in (False, True):
        assert torch.allclose(
            probabilities.logits_to_probs(probabilities.probs_to_logits(probs, binary), binary), probs
        )
    assert probabilities.clamp_probs(t([0.0, 1.0])).tolist() == [2**-52, 1 - 2**-52]
    for diag in (-2, -1, 0, 1):
        vector = shapes.tril_matrix_to_vec(torch.arange(16, **F64).reshape(4, 4), diag)
        assert torch.equal(shapes.tril_matrix_to_vec(shapes.vec_to_tril_matrix(vector, diag), diag), vector)
    assert torch.equal(shapes._sum_rightmost(torch.ones(2, 3, 4), 2), torch.full((2,), 12.0))
    assert shapes._standard_normal((2, 3), torch.float64, "cpu").dtype is torch.float64


def test_modules_that_transform_have_parameters_and_a_cache_that_is_cleared() -> None:
    class Scale(d.Transform, torch.nn.Module):
        domain, codomain, bijective = c.real, c.real, True
        __hash__ = torch.nn.Module.__hash__

        def __init__(self) -> None:
            super().__init__(cache_size=1)
            self.factor = torch.nn.Parameter(t(2.0))

        def _call(self, x: Any) -> Any:
            return x * self.factor

    made, x = Scale(), t(3.0)
    assert made(x) == 6 and [name for name, _ in made.named_parameters()] == ["factor"] and made != Scale()
    with torch.no_grad():
        made.factor.fill_(5.0)
    made._cached_x_y = None, None
    assert made(x) == 15


def test_a_subclass_with_a_constructor_of_its_own_says_how_it_expands() -> None:
    class Own(d.Normal):
        def __init__(self) -> None:
            super().__init__(0.0, 1.0)

        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            return super().expand(batch_shape, self._get_checked_instance(d.Normal, _instance))

    with pytest.raises(NotImplementedError, match="Subclass Own of Normal that defines a custom __init__ method"):
        Own().expand((2,))
