"""Arguments of a kind that a function does not take: PyTorch's class of error and first words, never Python's own."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

import tritensor as torch
from tritensor import functional as F
from tritensor.errors import ArgumentError, ShapeError
from tritensor.ground import arguments


def of_a_tensor() -> list[str]:
    """The public functions whose first parameter is a tensor and which need no other argument."""
    found = []
    for name in sorted({*dir(torch), *dir(F)}):
        function = getattr(F, name, None) or getattr(torch, name)
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        parameters = list(inspect.signature(function).parameters.values())
        if parameters and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
            continue
        if [p.annotation for p in parameters if p.default is p.empty] == ["Tensor"] == [parameters[0].annotation]:
            found.append(name)
    # with bounds, names or bytes of their own
    return [name for name in found if name not in ("clamp", "clip", "set_rng_state")]


def test_functions_of_a_tensor_are_found() -> None:
    assert len(of_a_tensor()) > 80


@pytest.mark.parametrize("value", ["a", None, {}, [1.0]])
def test_what_is_no_tensor_is_refused(value: Any) -> None:
    for name in of_a_tensor():
        function = getattr(F, name, None) or getattr(torch, name)
        with pytest.raises(TypeError, match=r"^\w+\(\): argument '\w+' \(position 1\) must be Tensor, not "):
            function(value)


REFUSED = {
    # numbers where a tensor is wanted, by functions and by methods
    "torch.flatten(3)": "flatten(): argument 'input' (position 1) must be Tensor, not int",
    "torch.swapdims('a', 0, 1)": "swapdims(): argument 'input' (position 1) must be Tensor, not str",
    "torch.take([1], torch.tensor([0]))": "take(): argument 'input' (position 1) must be Tensor, not list",
    "torch.nn.functional.mish({}, inplace=True)": "mish(): argument 'input' (position 1) must be Tensor, not dict",
    "x.mul_(x, x)": "mul() takes 2 positional arguments but 3 were given",
    "x.neg_(x)": "neg() takes 1 positional arguments but 2 were given",
    "x.cosh_(foo=1)": "cosh() got an unexpected keyword argument 'foo'",
    "torch.meshgrid((x[0], 3), indexing='ij')": "expected Tensor as element 1 in argument 0, but got int",
    "torch.broadcast_tensors(x, None)": "expected Tensor as element 1 in argument 0, but got NoneType",
    # whole numbers
    "x.narrow(0, 1.5, 0)": "narrow(): argument 'start' must be int, not float",
    "x.narrow(0, 0, x)": "narrow(): argument 'length' must be int, not Tensor",
    "x.select(0, 1.5)": "select(): argument 'index' must be int, not float",
    "x.topk(1.5)": "topk(): argument 'k' must be int, not float",
    "x.chunk(1.5)": "chunk(): argument 'chunks' must be int, not float",
    "x.triu(1.5)": "triu(): argument 'diagonal' must be int, not float",
    "x.round(decimals=1.5)": "round(): argument 'decimals' must be int, not float",
    "x.split((1.5, 1))": "split_with_sizes(): argument 'split_sizes' must be tuple of ints, not float",
    "x.unflatten(0, (1.5, 2))": "unflatten(): argument 'sizes' must be tuple of ints, not float",
    # dimensions
    "x.transpose('a', 0)": "a dimension must be an int, not str",
    "x.sum((0, 'a'))": "a dimension must be an int, not str",
    "x.any((5, 'a'))": "a dimension must be an int, not str",
    "x.unbind(torch.tensor([7]))": "a dimension must be an int, not Tensor",
    "x.gather(x, torch.tensor([[0]]))": "a dimension must be an int, not Tensor",
    "torch.tensor(1.0).unbind(True)": "a dimension must be an int, not bool",
    # dtypes
    "x.prod(dtype='a')": "prod(): argument 'dtype' must be torch.dtype, not str",
    "x.cumsum(0, dtype=3)": "cumsum(): argument 'dtype' must be torch.dtype, not int",
    "x.mean(dtype=x)": "mean(): argument 'dtype' must be torch.dtype, not Tensor",
    # ranges
    "torch.linspace('a', 1, 3)": "linspace(): argument 'start' must be Number, not str",
    "torch.linspace(0, 1, 2.0)": "linspace() received an invalid combination of arguments - got (int, int, float)",
    "torch.logspace(0, 1, 3, None)": "logspace(): argument 'base' must be float, not NoneType",
    "torch.arange(x)": "arange(): argument 'end' (position 1) must be Number, not Tensor",
    "torch.full((2,), x)": "full(): argument 'fill_value' (position 2) must be Number, not Tensor",
    # elements
    "torch.tensor([1.0, None], dtype=torch.float32)": "must be real number, not NoneType",
    "torch.tensor([1, {}], dtype=torch.int64)": "'dict' object cannot be interpreted as an integer",
    "torch.tensor(None, dtype=torch.bool)": "'NoneType' object cannot be interpreted as an integer",
    # shapes
    "torch.broadcast_shapes((1.5,))": "broadcast_shapes(): argument 'shapes' must be tuple of ints, not float",
}


@pytest.mark.parametrize("code", REFUSED)
def test_refused_as_a_type_error(code: str) -> None:
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with pytest.raises(ArgumentError) as caught:
        eval(code, {"torch": torch, "x": x})
    assert str(caught.value).startswith(REFUSED[code])
    assert x.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        ("x.sum(2**70)", ValueError, "Overflow when unpacking long long"),
        ("x.movedim(-1, 2**70)", ValueError, "Overflow when unpacking long long"),
        ("x.select(0, 2**70)", ValueError, "Overflow when unpacking long long"),
        ("x.round(decimals=2**70)", ValueError, "Overflow when unpacking long long"),
        ("torch.tensor([1, x.long()])", TypeError, "only integer tensors of a single element can be converted to an"),
        ("x.sum((0, 7))", IndexError, "Dimension out of range"),
        ("torch.tensor([1, None])", RuntimeError, "Could not infer dtype of NoneType"),
        ("torch.tensor([x, 1.0])", ValueError, "only one element tensors can be converted to Python scalars"),
        ("torch.tensor([1.0, x])", ValueError, "only one element tensors can be converted to Python scalars"),
        ("torch.broadcast_shapes(x)", RuntimeError, "Input shapes should be of type ints, a tuple of ints, or a list"),
    ],
)
def test_refused_in_another_way(code: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match="^" + words):
        eval(code, {"torch": torch, "x": torch.ones(2, 3)})


def test_broadcast_to_takes_one_size() -> None:
    assert torch.ones(1).broadcast_to(3).shape == torch.broadcast_to(torch.ones(1), 3).shape == (3,)


def test_an_error_that_is_meant_stays() -> None:
    with pytest.raises(ShapeError, match=r"^t\(\) expects a tensor with <= 2 dimensions"):
        torch.t(torch.ones(1, 1, 1))
    with pytest.raises(TypeError, match=r"unflatten\(\) missing 1 required positional argument: 'sizes'"):
        torch.unflatten(torch.ones(1), 0)


def test_an_error_that_nobody_meant_is_shown_as_the_cause() -> None:
    def broken(input: torch.Tensor, scale: Any = 1.0) -> Any:
        return scale.missing

    broken.__annotations__["input"] = "Tensor"
    with pytest.raises(
        ArgumentError,
        match=r"^broken\(\) received an invalid combination of arguments - got \(Tensor, "
        r"scale=int\)\n.*'int' object has no attribute 'missing'",
    ) as caught:
        arguments._guarded(broken, "broken", "tests")(torch.ones(1), scale=1)
    assert isinstance(caught.value.__cause__, AttributeError)


@pytest.mark.parametrize("name", ["flip", "flatten", "swapdims", "softmax", "relu6", "topk"])
def test_functions_can_be_pickled_and_show_their_signature(name: str) -> None:
    function = getattr(torch, name, None) or getattr(F, name)
    assert pickle.loads(pickle.dumps(function)) is function
    assert function.__name__ == name and function.__doc__
    assert next(iter(inspect.signature(function).parameters)) == "input"
