"""What is computed when it is first read, and then kept, is what it would be if it were read at any other time."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import distributions as d
from tritensor import nn
from tritensor.distributions import constraints
from tritensor.distributions.properties import lazy_property as lazy
from tritensor.nn.utils import parametrize

PACKAGE = Path(torch.__file__).parent


def of_constraint(constraint: Any) -> Any:
    """Two batches of parameters that a constraint allows."""
    if constraint is constraints.simplex:
        return torch.tensor([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    if constraint.event_dim == 2:
        factor = torch.tensor([[[1.5, 0.0], [0.5, 1.0]], [[0.7, 0.0], [-0.2, 2.0]]])
        return factor if constraint is constraints.lower_cholesky else factor @ factor.mT
    if constraint.event_dim == 1:
        return torch.tensor([[0.2, 1.5], [0.7, 0.4]])
    if constraint.is_discrete:
        return torch.tensor(3.0)
    return torch.tensor([0.4, 0.7])


# What a class needs besides, or in place of a value of the constraint.
NEEDED: dict[str, dict[str, Any]] = {
    "LKJCholesky": {"dim": 3},
    "Multinomial": {"total_count": 3},
    "RelaxedBernoulli": {"temperature": torch.tensor(0.5)},
    "RelaxedOneHotCategorical": {"temperature": torch.tensor(0.5)},
    "Wishart": {"df": torch.tensor([4.0, 5.0])},
}


def parametrizations() -> Iterator[Any]:
    """For each class, each way to give its parameters: the class, and arguments by name."""
    for name in d.__all__:
        kind = getattr(d, name)
        if not (inspect.isclass(kind) and issubclass(kind, d.Distribution)) or kind in (d.Distribution, d.Uniform):
            continue  # Uniform has no constraints before it has its bounds, and nothing that is kept
        names = inspect.signature(kind).parameters
        table = kind.arg_constraints
        if isinstance(table, property):
            table = {"total_count": constraints.nonnegative_integer, **kind.__mro__[1].arg_constraints}
        given = {each: of_constraint(constraint) for each, constraint in table.items() if each in names}
        given |= NEEDED.get(name, {})
        kept = [each for each in given if names[each].default is None]  # one of which is given
        for chosen in kept or [None]:
            arguments = {each: value for each, value in given.items() if each not in kept or each == chosen}
            yield pytest.param(kind, arguments, id=f"{name}-{chosen}" if chosen else name)


CASES = [case for case in parametrizations() if case.values[1]]


def made(kind: Any, arguments: dict[str, Any]) -> tuple[Any, list[Any]]:
    leaves = {
        name: value.clone().requires_grad_() if isinstance(value, torch.Tensor) else value
        for name, value in arguments.items()
    }
    return kind(**leaves), [value for value in leaves.values() if isinstance(value, torch.Tensor)]


def gradients(value: Any, leaves: list[Any]) -> list[Any]:
    if not value.requires_grad:
        return [None] * len(leaves)
    found = torch.autograd.grad(value.sum(), leaves, allow_unused=True)
    return [None if each is None else each.numpy() for each in found]


READ = ("entropy", "log_prob", "mean", "variance", "mode")


def read(made: Any, name: str, sample: Any) -> Any:
    try:
        found = getattr(made, name)
        return found(sample) if name == "log_prob" else found() if callable(found) else found
    except NotImplementedError:
        return torch.zeros(())


STATES = ("no_grad", "inference_mode", "autocast", "float64", "vmap", "jvp", "grad")


def within(state: str, call: Callable[[], Any]) -> None:
    """Call a function in a state on which values depend."""
    if state in ("vmap", "grad"):
        getattr(torch.func, state)(lambda x: (call(), x.sum())[1])(torch.zeros(2))
    elif state == "jvp":
        torch.func.jvp(lambda x: (call(), x)[1], (torch.zeros(2),), (torch.ones(2),))
    elif state == "float64":
        torch.set_default_dtype(torch.float64)
        try:
            call()
        finally:
            torch.set_default_dtype(torch.float32)
    else:
        with torch.autocast("cpu") if state == "autocast" else getattr(torch, state)():
            call()


def reads(made: Any) -> Iterator[str]:
    yield from READ
    yield from (name for name, value in inspect.getmembers(type(made)) if isinstance(value, lazy))


def test_the_registry_has_each_parametrization() -> None:
    names = {case.id for case in CASES}
    assert {"Categorical-logits", "Bernoulli-probs", "MultivariateNormal-precision_matrix", "StudentT"} <= names
    assert len(names) > 25


@pytest.mark.sampled(20)
@pytest.mark.parametrize(("kind", "arguments"), CASES)
@pytest.mark.parametrize("state", ["sample", *STATES])
def test_gradients_are_those_of_a_distribution_that_nothing_was_read_of(kind: Any, arguments: Any, state: str) -> None:
    """For each class and parametrization, whatever was read before, in each state that values depend on."""
    sample = made(kind, arguments)[0].sample()
    for name in reads(kind(**arguments)):
        fresh, leaves = made(kind, arguments)
        expected = read(fresh, name, sample)
        used, others = made(kind, arguments)
        if state == "sample":
            used.sample()
        else:
            within(state, lambda: [read(used, each, sample) for each in reads(used)])  # noqa: B023
        found = read(used, name, sample)
        assert found.dtype is expected.dtype and found.requires_grad == expected.requires_grad, name
        assert torch.equal(found.nan_to_num(0.0), expected.nan_to_num(0.0)), name
        for one, other in zip(gradients(found, others), gradients(expected, leaves), strict=True):
            assert (one is None) == (other is None), name
            if one is not None:
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6, err_msg=name)


def test_what_is_read_without_recording_is_an_attribute_afterwards() -> None:
    made = d.Bernoulli(logits=torch.zeros(2).requires_grad_())
    with torch.no_grad():
        assert made.probs.requires_grad and made.probs is made.probs
    with torch.inference_mode():
        assert not made.logits.is_inference() and not d.Bernoulli(probs=made.probs).logits.requires_grad
    assert made.expand((3, 2)).probs.requires_grad


def caches() -> Iterator[Any]:
    """All functions and properties of the package that remember what they returned."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if re.search("^ *@.*cache", text, re.MULTILINE) else ():
            if isinstance(node, ast.FunctionDef) and any("cache" in ast.unparse(each) for each in node.decorator_list):
                yield pytest.param(node, id=f"{path.relative_to(PACKAGE)}:{node.name}")


@pytest.mark.parametrize("function", list(caches()))
def test_no_tensor_is_remembered_by_the_standard_librarys_caches(function: ast.FunctionDef) -> None:
    """They know nothing of recording, autocast or levels: a tensor is kept by `lazy`, or by what asks for these."""
    assert function.returns is not None and "Tensor" not in ast.unparse(function.returns)


# ---- parametrizations of modules ---------------------------------------------------------------------------------


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return x @ torch.eye(3) * 2


def layer() -> Any:
    return parametrize.register_parametrization(nn.Linear(3, 2), "weight", Scaled(), unsafe=True)


@pytest.mark.parametrize("state", [state for state in STATES if state != "float64"])  # in which the layer fails
def test_a_cached_parametrization_has_the_gradients_of_one_that_is_not(state: str) -> None:
    one, x = layer(), torch.ones(1, 3)
    with parametrize.cached():
        within(state, lambda: one(x))
        assert one.weight.dtype is torch.float32 and one.weight is one.weight
        one(x).sum().backward()
    assert one.parametrizations.weight.original.grad.tolist() == [[2.0] * 3] * 2


def test_a_cached_parametrization_is_of_the_parameters_of_the_call() -> None:
    one, x = layer(), torch.ones(1, 3)
    other = {"parametrizations.weight.original": torch.zeros(2, 3), "bias": torch.zeros(2)}
    with parametrize.cached():
        one(x)
        assert torch.func.functional_call(one, other, (x,)).tolist() == [[0.0, 0.0]]
        grads = torch.func.grad(lambda given: torch.func.functional_call(one, given, (x,)).sum())(other)
        assert grads["parametrizations.weight.original"].tolist() == [[2.0] * 3] * 2
        batch = {name: torch.stack([value, value + 1]) for name, value in other.items()}
        found = torch.func.vmap(lambda given: torch.func.functional_call(one, given, (x,)))(batch)
        assert found.tolist() == [[[0.0, 0.0]], [[7.0, 7.0]]]


def test_a_cached_parametrization_is_computed_once() -> None:
    one, x = layer(), torch.ones(1, 3)
    before = one.parametrizations.weight[0].calls
    with parametrize.cached():
        one(x)
        one(x)
        with torch.no_grad():
            one(x)
    assert one.parametrizations.weight[0].calls == before + 1
