"""Factors `alpha`, `beta` and `value`: by name, as tensors without dimensions, and in PyTorch's older order."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import pytest

import tritensor as torch
from tritensor.ground import arguments
from tritensor.ground.public import PACKAGE

NAMES = ("beta", "alpha", "value")
v, m, b = torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 2.0], [3.0, 5.0]]), torch.arange(8.0).reshape(2, 2, 2)
index = torch.tensor([0, 1])
OPERANDS = {
    "add": (v, v + 1),
    "addbmm": (m, b, b),
    "addcdiv": (v, v, v + 1),
    "addcmul": (v, v, v + 1),
    "addmm": (m, m, m),
    "addmv": (v, m, v),
    "addr": (m, v, v),
    "baddbmm": (b, b, b),
    "index_add": (v, 0, index, v),
    "rsub": (v, v + 1),
    "sub": (v, v + 1),
    "subtract": (v, v + 1),
}
OLDER = [name for name in OPERANDS if name not in ("index_add", "rsub")]


def factors_of(function: Any) -> list[str]:
    """The factors among the parameters of a function; that of `celu` is none."""
    parameters = inspect.signature(function).parameters
    return [
        name
        for name in NAMES
        if name in parameters and parameters[name].default == 1 and "celu" not in function.__name__
    ]


def with_factors() -> dict[str, Any]:
    functions = {name: value for name, value in PACKAGE.items() if inspect.isroutine(value) or hasattr(value, "inputs")}
    return {name: value for name, value in functions.items() if factors_of(value)}


def test_every_function_with_factors_is_here() -> None:
    assert {name.rstrip("_") for name in with_factors()} == set(OPERANDS)


@pytest.mark.parametrize("name", sorted(with_factors()))
def test_a_factor_may_be_a_tensor_without_dimensions(name: str) -> None:
    function, inputs = PACKAGE[name], OPERANDS[name.rstrip("_")]
    for factor in factors_of(function):
        for make in (torch.clone, torch.Tensor.long):
            first, *rest = [make(each) if isinstance(each, torch.Tensor) else each for each in inputs]
            number = 0.5 if first.is_floating_point() else 2
            if name.startswith("addcdiv") and not first.is_floating_point():
                continue
            expected = function(first.clone(), *rest, **{factor: number})
            made = function(first.clone(), *rest, **{factor: torch.tensor(number)})
            assert made.dtype is expected.dtype and made.tolist() == expected.tolist()
        for refused in (torch.tensor(2.0, requires_grad=True), torch.tensor([2.0]), "a"):
            with pytest.raises(TypeError, match=rf"argument '{factor}' must be Number, not (Tensor|str)"):
                function(*inputs, **{factor: refused})


@pytest.mark.filterwarnings("ignore:This overload of")
@pytest.mark.parametrize("name", OLDER)
def test_the_older_order_of_arguments(name: str, device: Any) -> None:
    first, *rest = [each.to(device) for each in OPERANDS[name]]
    function, method, in_place = getattr(torch, name), getattr(first, name), f"{name}_"
    numbers = dict(zip(factors_of(function), (0.5, 3.0)))
    expected = function(first, *rest, **numbers)
    beta, *more = numbers.values()
    calls = [method(*numbers.values(), *rest), getattr(first.clone(), in_place)(*numbers.values(), *rest)]
    calls += [method(*map(torch.tensor, numbers.values()), *rest)]
    if more:
        calls += [
            function(beta, first, *more, *rest),
            function(beta, first, *more, *rest, out=torch.empty(0).to(device)),
        ]
        assert torch.equal(function(beta, first, *rest), function(first, *rest, beta=beta))
        assert torch.equal(method(beta, *rest), function(first, *rest, beta=beta))
    else:
        calls += [function(first, beta, *rest)]
    for made in calls:
        assert torch.equal(made, expected)
    for wrong in ((first, first, *rest), (first, *rest, 2, 3), (first, "a", *rest)):
        with pytest.raises(TypeError, match=rf"takes {len(rest) + 1} positional arguments but {len(wrong)} were given"):
            function(*wrong)
    with pytest.raises(TypeError, match="positional arguments"):
        function(first, 0.5, *rest, **{next(iter(numbers)): 2})


@pytest.mark.filterwarnings("ignore:This overload of")
def test_gradients_in_the_older_order() -> None:
    x, y = v.clone().requires_grad_(), v.clone().requires_grad_()
    torch.addcmul(x, 0.5, y, y).sum().backward()
    assert x.grad.tolist() == [1, 1] and y.grad.tolist() == [1, 2]


def test_one_older_call_of_a_process_warns(monkeypatch: Any) -> None:
    monkeypatch.setattr(arguments, "_warned", [])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        torch.add(v, 2, v)
        v.addcmul(2, v, v)
    assert [str(each.message)[:38] for each in told] == ["This overload of add is deprecated: pa"]
    assert told[0].filename == __file__


@pytest.mark.parametrize(
    "call",
    [
        lambda number: torch.polygamma(number(2), v),
        lambda number: v.polygamma(number(1)),
        lambda number: torch.mvlgamma(v, number(2)),
        lambda number: torch.logit(v / 4, number(0.3)),
        lambda number: torch.cdist(m, m, number(0.5)),
        lambda number: torch.nan_to_num(v / 0 * 0, number(0.5), number(1.0), number(2.0)),
        lambda number: torch.trapezoid(v, dx=number(0.25)),
        lambda number: torch.normal(number(0.5), number(0.0), (2,)),
    ],
)
def test_a_number_may_be_a_tensor_without_dimensions(call: Any) -> None:
    assert torch.equal(call(torch.tensor).nan_to_num(), call(lambda number: number).nan_to_num())


def test_split_as_a_method_names_its_argument_as_torch_does() -> None:
    assert [each.tolist() for each in v.split(split_size=1)] == [[1], [2]]
    assert [each.tolist() for each in torch.split(v, split_size_or_sections=[2, 0])] == [[1, 2], []]
