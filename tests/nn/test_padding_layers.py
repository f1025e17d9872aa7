"""The padding layers: values, repr, errors, and PyTorch's side by side."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn

from ..functional.beside_torch import assert_alike

KINDS = ("Constant", "Zero", "Reflection", "Replication", "Circular")


def test_own_elements_in_two_dimensions() -> None:
    x = torch.arange(6.0).view(1, 2, 3)
    assert nn.ReflectionPad2d((1, 0, 1, 0))(x).tolist() == [[[4, 3, 4, 5], [1, 0, 1, 2], [4, 3, 4, 5]]]
    assert nn.ReplicationPad2d((1, 0, 1, 0))(x).tolist() == [[[0, 0, 1, 2], [0, 0, 1, 2], [3, 3, 4, 5]]]
    assert nn.CircularPad2d((1, 0, 1, 0))(x).tolist() == [[[5, 3, 4, 5], [2, 0, 1, 2], [5, 3, 4, 5]]]
    assert nn.ConstantPad2d((0, -1, 0, 1), 7.0)(x).tolist() == [[[0, 1], [3, 4], [7, 7]]]


def test_repr() -> None:
    assert repr(nn.ReflectionPad2d(1)) == "ReflectionPad2d((1, 1, 1, 1))"
    assert repr(nn.CircularPad1d([1, 2])) == "CircularPad1d((1, 2))"
    assert repr(nn.ZeroPad3d(2)) == "ZeroPad3d((2, 2, 2, 2, 2, 2))"
    assert repr(nn.ConstantPad1d(2, 3.5)) == "ConstantPad1d(padding=(2, 2), value=3.5)"


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_zero_is_a_constant(dims: int) -> None:
    assert isinstance(getattr(nn, f"ZeroPad{dims}d")(1), getattr(nn, f"ConstantPad{dims}d"))


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("kind", ["Reflection", "Replication", "Circular"])
def test_other_ranks_are_refused(kind: str, dims: int) -> None:
    layer = getattr(nn, f"{kind}Pad{dims}d")(1)
    for rank in {1, 2, 3, 4, 5, 6} - {dims + 1, dims + 2}:
        words = rf"Padding size {2 * dims} is not supported for {rank}D input tensor|expected .D or .D input"
        with pytest.raises((NotImplementedError, ValueError), match=words):
            layer(torch.ones((3,) * rank))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_empty_batches(kind: str, dims: int) -> None:
    layer = getattr(nn, f"{kind}Pad{dims}d")(1, *([0.5] if kind == "Constant" else []))
    x = torch.ones(0, 2, *(3,) * dims, requires_grad=True)
    out = layer(x)
    assert out.shape == (0, 2, *(5,) * dims)
    out.sum().backward()
    assert x.grad.shape == x.shape


@pytest.mark.peer
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_beside_torch(kind: str, dims: int) -> None:
    peer = pytest.importorskip("torch")
    more = ", 0.75" if kind == "Constant" else ""
    for padding in (1, (2, 1, 0, 2, 1, 1)[: 2 * dims], (-1, 2, 1, -1, 0, 1)[: 2 * dims]):
        call = f"nn.{kind}Pad{dims}d({padding}{more})"
        assert repr(eval(call, {"nn": nn})) == repr(eval(call, {"nn": peer.nn}))
        for shape in ((2, 3, 4, 5, 3)[: dims + 2], (2, 4, 5, 3)[: dims + 1]):
            x = np.random.default_rng(1).standard_normal(shape)
            for last in (False, True) if len(shape) == 4 and dims == 2 else (False,):
                assert_alike(f"{call}(x)", {"x": x}, last=last, node=False)
    for shape in ((3,), (3,) * 6, (1, 1) + (1,) * dims):
        if kind != "Constant":
            x = np.ones(shape)
            assert_alike(f"nn.{kind}Pad{dims}d(1)(x)", {"x": x}, words=len(shape) > 1, error=False, node=False)
