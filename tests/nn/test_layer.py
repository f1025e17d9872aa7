"""Layers that are declared: what is made of their fields, and what stays Python's."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import get_type_hints

import pytest

import tritensor as torch
from tritensor import nn
from tritensor.ground.composing import compose
from tritensor.nn import functional as F
from tritensor.nn.layer import Layer, declared
from tritensor.tensors import Tensor


@declared("max_pool", shown=("kernel_size",))
class Pooled(Layer):
    """A pool of any number of dimensions."""

    kernel_size: int
    stride: int = 2
    return_indices: bool = False


class Pooled1d(Pooled, rank=1):
    """Of one."""


@declared("binary_cross_entropy_with_logits")
class Weighted(Layer):
    """A loss with two inputs, of which one option is a buffer and one is checked."""

    pos_weight: Tensor | None = None
    reduction: str = "mean"

    def _prepare(self) -> None:
        if not self.reduction:
            raise ValueError("no reduction")


def test_the_constructor_is_that_of_the_fields() -> None:
    assert (
        str(inspect.signature(Pooled1d))
        == "(kernel_size: 'int', stride: 'int' = 2, return_indices: 'bool' = False) -> 'None'"
    )
    for arguments, words in (
        ((), r"Pooled.__init__\(\) missing 1 required positional argument: 'kernel_size'"),
        ((1, 2, 3, 4), r"Pooled.__init__\(\) takes from 2 to 4 positional arguments but 5 were given"),
    ):
        with pytest.raises(TypeError, match=words):
            Pooled1d(*arguments)
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        Pooled1d(size=3)
    with pytest.raises(ValueError, match="no reduction"):
        Weighted(reduction="")
    assert not hasattr(Pooled, "stride")


def test_forward_passes_fields_by_their_names() -> None:
    x = torch.arange(6.0).view(1, 1, 6)
    layer = Pooled1d(3, return_indices=True)
    assert repr(layer) == "Pooled1d(kernel_size=3)"
    for again in (layer, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        values, places = again(x)
        assert values.tolist() == [[[2, 4]]] and places.tolist() == [[[2, 4]]]
    assert str(inspect.signature(layer.forward)) == "(input: 'Tensor') -> 'Any'"
    assert not hasattr(Pooled, "forward") or Pooled.forward is nn.Module.forward  # there is no such function


def test_annotations_are_understood() -> None:
    """As tools that make layers from configurations do."""
    for name in nn.__all__:
        kind = getattr(nn, name)
        if inspect.isclass(kind) and issubclass(kind, nn.Module):
            assert get_type_hints(kind.__init__) and get_type_hints(kind.forward)
            assert kind.forward is not nn.Module.forward or not issubclass(kind, Layer)
    assert get_type_hints(nn.CrossEntropyLoss.forward) == {"input": Tensor, "target": Tensor, "return": Tensor}
    assert get_type_hints(nn.MaxPool2d.__init__)["ceil_mode"] is bool


def test_tensors_are_buffers() -> None:
    layer = Weighted(torch.tensor([2.0]))
    assert list(layer.state_dict()) == ["pos_weight"] and list(Weighted()._buffers) == ["pos_weight"]
    x, y = torch.zeros(2, 1), torch.ones(2, 1)
    expected = F.binary_cross_entropy_with_logits(x, y, pos_weight=torch.tensor([2.0]))
    assert torch.equal(layer(x, target=y), expected)


def test_a_subclass_is_an_ordinary_class() -> None:
    class Noted(nn.ReLU):
        note: str = "none"

    layer = Noted(True)
    assert layer.inplace and Noted.note == "none" and repr(layer) == "Noted(inplace=True)"
    x = torch.tensor([-1.0])
    assert layer(x) is x and x.item() == 0


def test_composed_functions_have_pythons_parameters() -> None:
    def model(a: int, *, b: str = "b") -> None: ...

    made = compose(
        (__name__, "f"), list(inspect.signature(model).parameters.values()), "tuple", ["return self, a, b"], {}
    )
    assert (
        made(0, 1) == (0, 1, "b") and str(inspect.signature(made)) == "(self, a: 'int', *, b: 'str' = 'b') -> 'tuple'"
    )
    with pytest.raises(TypeError, match="positional"):
        made(0, 1, 2)
