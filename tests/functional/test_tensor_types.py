"""PyTorch's older names of tensors by their dtype: `torch.LongTensor` and its like."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tritensor as torch

from ..needs import needs_triton

NAMES = "BFloat16 Bool Byte Char Double Float Half Int Long Short"


@pytest.mark.parametrize("name", NAMES.split())
def test_a_type_makes_and_knows_its_tensors(name: str) -> None:
    kind = getattr(torch, f"{name}Tensor")
    made = kind([[1, 0], [1, 1]])
    assert made.type() == f"torch.{name}Tensor" and made.tolist() == [[1, 0], [1, 1]]
    assert repr(kind) == f"<class 'torch.{name}Tensor'>" and kind.dtype is made.dtype and not kind.is_cuda
    others = [getattr(torch, f"{other}Tensor") for other in NAMES.split() if other != name]
    assert isinstance(made, kind) and not any(isinstance(made, other) for other in others) and not isinstance(3, kind)
    assert torch.ones(2, dtype=torch.int8).type(kind).dtype is kind.dtype


def test_what_a_type_is_made_of() -> None:
    assert torch.LongTensor(2, 3).shape == torch.LongTensor(torch.Size([2, 3])).shape == (2, 3)
    assert torch.LongTensor().shape == (0,) and torch.LongTensor(5, device="cpu").shape == (5,)
    for data in ((1, 2), range(1, 3), np.array([1, 2], np.int32), np.array([1.5, 2.5])):
        assert torch.LongTensor(data).tolist() == [1, 2]
    x = torch.tensor([1])
    torch.LongTensor(x)[0] = 7
    assert x.item() == 7
    with pytest.raises(TypeError, match=r"expected a tensor of Long elements on cpu, got torch.FloatTensor"):
        torch.LongTensor(torch.ones(2))
    with pytest.raises(TypeError, match=r"new\(\): data must be a sequence \(got float\)"):
        torch.LongTensor(3.5)


@needs_triton
def test_types_of_devices() -> None:
    with torch.cuda.simulate(2):
        made = torch.cuda.HalfTensor([1, 2])
        assert made.device == torch.device("cuda:0") and made.dtype is torch.float16 and made.tolist() == [1, 2]
        assert isinstance(made, torch.cuda.HalfTensor) and not isinstance(made, torch.HalfTensor)
        assert torch.ones(2).type(torch.cuda.HalfTensor).device == made.device
        assert torch.cuda.HalfTensor([1], device="cuda:1").device == torch.device("cuda:1")
    with pytest.raises(AttributeError):
        torch.cuda.NoTensor  # noqa: B018


@pytest.fixture
def defaults() -> Iterator[None]:
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_default_device("cpu")


def test_the_default_type(defaults: None) -> None:
    with pytest.warns(UserWarning, match=r"torch.set_default_tensor_type\(\) is deprecated as of PyTorch 2.1"):
        torch.set_default_tensor_type("torch.DoubleTensor")
    assert torch.ones(2).dtype is torch.float64
    with pytest.warns(UserWarning, match="is deprecated"):
        torch.set_default_tensor_type(torch.FloatTensor)
    assert torch.ones(2).dtype is torch.float32
    with (
        pytest.warns(UserWarning, match="is deprecated"),
        pytest.raises(TypeError, match="only floating-point types are supported"),
    ):
        torch.set_default_tensor_type(torch.LongTensor)
    with pytest.warns(UserWarning, match="is deprecated"), pytest.raises(TypeError, match="invalid type object"):
        torch.set_default_tensor_type("FloatTensor")
    assert torch.ones(2).dtype is torch.float32


@needs_triton
def test_the_default_type_of_a_device(defaults: None) -> None:
    with torch.cuda.simulate():
        with pytest.warns(UserWarning, match="is deprecated"):
            torch.set_default_tensor_type(torch.cuda.DoubleTensor)
        assert torch.ones(2).type() == "torch.cuda.DoubleTensor"
        torch.set_default_device("cpu")
