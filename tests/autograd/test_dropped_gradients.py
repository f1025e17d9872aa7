"""No gradient is dropped: a floating result of an input that requires grad requires it too, or is listed with a reason.

The operators are those of the registry, with the samples of their declarations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import autograd
from tritensor.errors import AutogradError, UnsupportedError
from tritensor.operators import Operator, registry
from tritensor.tensors import Tensor
from tritensor.types import dtypes

from ..declared import samples

# PyTorch has them so: these count as constants.
CONSTANT = {
    "special": "no result of these functions requires grad",
    "moving_average": "the running statistics of a normalization",
}
OPERATORS = sorted((each for each in registry.values() if samples.has_samples(each)), key=lambda each: each.name)


def floating_dtypes(operator: Operator) -> list[dtypes.dtype]:
    """Those that its inputs may have; of others there are no gradients."""
    return [each for each in samples.dtypes_of(operator) if each.is_floating_point]


def floating(result: Any) -> list[Tensor]:
    results = result if isinstance(result, tuple) else (result,)
    return [each for each in results if isinstance(each, Tensor) and each.dtype.category >= dtypes.FLOATING]


def has_gradient(operator: Operator, found: list[Tensor], leaf: Tensor) -> bool:
    """Whether there is a gradient, or an error in its place."""
    try:
        (grad,) = autograd.grad(found, leaf, [torch.ones_like(each) for each in found], allow_unused=True)
    except (UnsupportedError, AutogradError) as error:
        return "the derivative for" in str(error) or not operator.differentiable
    return grad is not None


@pytest.mark.sampled(80)
@pytest.mark.parametrize("operator", [*filter(floating_dtypes, OPERATORS)], ids=lambda each: each.name)
def test_no_operator_drops_a_gradient(operator: Operator) -> None:
    for sample in samples.samples(operator, floating_dtypes(operator)[-1], np.random.default_rng(0), True)[:4]:
        inputs = [torch.from_numpy(each) if isinstance(each, np.ndarray) else each for each in sample.inputs]
        names = operator.inputs if not operator.variadic else [f"x{i}" for i in range(len(inputs))]
        for position, name in enumerate(names):
            given = list(inputs)
            if not isinstance(given[position], Tensor) or not given[position].is_floating_point():
                continue
            leaf = given[position] = given[position].detach().requires_grad_()
            if name in operator.refuses:
                with pytest.raises(AutogradError, match=f"is not differentiable with respect to argument '{name}'"):
                    operator(*given, **sample.metadata)
                continue
            found = floating(operator(*given, **sample.metadata))
            if found and (operator.constant is True or name in operator.constant):
                assert not any(each.requires_grad for each in found)
                continue
            assert not found or found[0].requires_grad, (operator.name, name)
            if found:
                assert has_gradient(operator, [each for each in found if each.requires_grad], leaf), (operator, name)


def test_the_operators_without_a_gradient_are_known() -> None:
    constant = {each.name for each in registry.values() if each.constant is True}
    assert constant == {each for each in constant if each.partition("_")[0] in CONSTANT or each in CONSTANT}


MATRIX = [[4.0, 1.0, 2.0], [1.0, 5.0, 3.0], [2.0, 3.0, 7.0]]
PIVOTS = torch.tensor([1, 2, 3], dtype=torch.int32)
REFUSED = {
    "_unique2": torch.unique,
    "unique_dim": lambda x: torch.unique(x, dim=0),
    "unique_consecutive": torch.unique_consecutive,
    "heaviside": lambda x: torch.heaviside(x - 2, x),
    "histogram": lambda x: torch.histogram(x, 3).hist,
    "histogramdd": lambda x: torch.histogramdd(x, [2, 2, 2]).bin_edges[0],
    "bincount": lambda x: torch.bincount(torch.tensor([0, 1, 1]), x[0]),
    "binomial": lambda x: torch.binomial(x, x * 0.1),
    "detach_copy": torch.detach_copy,
    "geqrf": lambda x: torch.geqrf(x).tau,
    "linalg_ldl_factor_ex": lambda x: torch.linalg.ldl_factor(x).LD,
    "linalg_ldl_solve": lambda x: torch.linalg.ldl_solve(x, PIVOTS, x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_derivative_raises_in_the_backward_pass(name: str) -> None:
    words = f"^the derivative for '{name}' is not implemented"
    x = torch.tensor(MATRIX, requires_grad=True)
    found = REFUSED[name](x)
    assert found.requires_grad
    with pytest.raises(NotImplementedError, match=words):
        (found.sum() + x.sum()).backward()
    with pytest.raises(NotImplementedError, match=words):
        torch.func.grad(lambda y: REFUSED[name](y).sum())(x.detach())
    assert autograd.grad(found.sum() + x.sum() * 2, found)[0].tolist() == torch.ones_like(found).tolist()
    assert not REFUSED[name](x.detach()).requires_grad
    with torch.no_grad():
        assert not REFUSED[name](x).requires_grad


@pytest.mark.parametrize("name", [name for name in REFUSED if name != "detach_copy"])
def test_what_has_no_derivative_refuses_forward_mode(name: str) -> None:
    x = torch.tensor(MATRIX)
    with pytest.raises(NotImplementedError, match=r"^Trying to use forward AD with .* that does not support it"):
        torch.func.jvp(REFUSED[name], (x,), (torch.ones_like(x),))


def test_functions_that_write_their_result_to_out_refuse_gradients_where_pytorch_does() -> None:
    x = torch.tensor(MATRIX, requires_grad=True)
    out, tau = torch.empty(0), torch.empty(0)
    with pytest.raises(AutogradError, match=r"^geqrf\(\): functions with out"):
        torch.geqrf(x, out=(out, tau))
    assert out.numel() == 0
    torch.heaviside(x, x, out=out)
    with pytest.raises(UnsupportedError, match=r"^the derivative for 'heaviside' is not implemented"):
        out.sum().backward()


def test_a_change_in_place_without_a_derivative_raises_in_the_backward_pass() -> None:
    x = torch.tensor(MATRIX, requires_grad=True)
    y = (x * 1).heaviside_(x)
    with pytest.raises(UnsupportedError, match=r"^the derivative for 'heaviside' is not implemented"):
        y.sum().backward()


def test_complex_geqrf_refuses_gradients() -> None:
    with pytest.raises(AutogradError, match=r"^geqrf does not support automatic differentiation for outputs"):
        torch.geqrf(torch.ones(2, 2, dtype=torch.complex64, requires_grad=True))


WEIGHT, TARGET = torch.ones(3, requires_grad=True), torch.tensor([0, 1, 2])
BY_ARGUMENT = {
    ("nll_loss_forward", "weight"): lambda x: torch.nn.functional.cross_entropy(x, TARGET, WEIGHT),
    ("linalg_pinv", "rtol"): lambda x: torch.linalg.pinv(x, rtol=WEIGHT[0] * 0.1),
    ("linalg_pinv", "atol"): lambda x: torch.linalg.pinv(x, atol=WEIGHT[0] * 0.1),
    ("fractional_max_pool2d", "_random_samples"): lambda x: torch.nn.functional.fractional_max_pool2d(
        x[None, None], 2, 2, _random_samples=WEIGHT[None, None, :2] * 0.5
    ),
}


@pytest.mark.parametrize(("function", "argument"), BY_ARGUMENT)
def test_an_argument_without_a_derivative_must_not_require_grad(function: str, argument: str) -> None:
    words = f"^The function '{function}' is not differentiable with respect to argument '{argument}'. This input cannot"
    call = BY_ARGUMENT[function, argument]
    for _ in range(2):  # the second call is a repeated one
        with pytest.raises(AutogradError, match=words):
            call(torch.tensor(MATRIX))
    with torch.no_grad():
        call(torch.tensor(MATRIX))


def test_random_numbers_have_gradients_of_zero() -> None:
    x = torch.tensor(MATRIX, requires_grad=True)
    p = x * 0.1
    for drawn in (
        torch.normal(x, 1.0),
        torch.normal(0.0, x),
        torch.poisson(x),
        p.bernoulli(),
        p.detach().bernoulli_(p),
    ):
        assert autograd.grad(drawn.sum(), x, retain_graph=True)[0].tolist() == torch.zeros_like(x).tolist()


@pytest.mark.parametrize("name", ["addmm", "addmv", "addr", "addbmm", "baddbmm"])
def test_a_factor_of_zero_leaves_a_gradient_of_zeros(name: str) -> None:
    shapes = {"addmm": "2 22 22", "addmv": "2 22 2", "addr": "22 2 2", "addbmm": "22 222 222", "baddbmm": "2 222 222"}
    first, *others = [torch.full([*map(int, sizes)], torch.nan) for sizes in shapes[name].split()]
    x = first.requires_grad_()
    found = getattr(torch, name)(x, *[torch.ones_like(each) for each in others], beta=0)
    assert found.isfinite().all()
    found.sum().backward()
    assert not x.grad.any() and x.grad.shape == x.shape


@pytest.mark.parametrize("function", [torch.relu, torch.nn.functional.leaky_relu, torch.nn.functional.hardsigmoid])
def test_slopes_are_constant_in_what_they_are_of(function: Any) -> None:
    x = torch.tensor([-1.0, 0.5, 2.0], dtype=torch.float64, requires_grad=True)
    (slope,) = autograd.grad(function(x).sum(), x, create_graph=True)
    (again,) = autograd.grad((slope * x).sum(), x)
    assert again.tolist() == slope.tolist()
    assert torch.func.jacfwd(torch.func.grad(lambda y: function(y).sum()))(x.detach()).tolist() == [[0.0] * 3] * 3
