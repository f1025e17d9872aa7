"""Public names: one declaration each, found in every module of a folder."""

from __future__ import annotations

import inspect

import pytest

import tritensor as torch
from tritensor.ground import public
from tritensor.operators import Operator, registry


def test_a_name_is_declared_once() -> None:
    assert torch.abs is not abs and torch.functional.gelu is not abs  # imports their modules
    with pytest.raises(ValueError, match="the public name 'abs' is declared twice"):
        public.publish("abs", abs)
    with pytest.raises(ValueError, match="the functional name 'gelu' is declared twice"):
        public.publish("gelu", abs)  # a name of tritensor.functional alone
    assert "gelu" not in public.PACKAGE


def test_a_function_says_where_it_is_public() -> None:
    assert torch.flip is torch.functional.flip and inspect.unwrap(torch.flip) is torch.Tensor.flip
    assert inspect.unwrap(torch.reshape) is torch.Tensor.reshape and not hasattr(torch.functional, "reshape")
    assert torch.functional.gelu is torch.nn.functional.gelu and not hasattr(torch, "gelu")
    assert inspect.unwrap(torch.concat) is inspect.unwrap(torch.cat) and not hasattr(torch.Tensor, "cat")
    assert torch.Tensor.swapaxes is inspect.unwrap(torch.transpose)


def test_an_operators_signature_is_that_of_its_call() -> None:
    """PyTorch's names for inputs that are called x and y, for the function, the method and the method in place."""
    shown = "(input: 'Tensor', end: 'Any', weight: 'Any'%s) -> 'Tensor'"
    assert str(inspect.signature(torch.Tensor.lerp)) == shown % ""
    assert str(inspect.signature(torch.lerp)) == shown % ", *, out: 'Tensor | None' = None"
    assert str(inspect.signature(torch.Tensor.lerp)) == str(inspect.signature(torch.Tensor.lerp_))
    assert list(inspect.signature(registry["cat"]).parameters)[:2] == ["tensors", "dim"]
    assert "reference" in inspect.signature(Operator).parameters  # a class of operators has its constructor's
    assert list(inspect.signature(torch.Tensor.clamp_).parameters) == ["input", "min", "max"]
