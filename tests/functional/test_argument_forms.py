"""The forms of an argument that PyTorch takes: sequences of integers by position and by name, legacy names of types."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tritensor as torch

X = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]

# A call, and what it makes of X.
BY_NAME = {
    "torch.zeros(size=(2,))": [0.0, 0.0],
    "torch.ones(size=[1, 2])": [[1.0, 1.0]],
    "torch.full(size=(2,), fill_value=7)": [7, 7],
    "x.new_zeros(size=(2,), dtype=torch.int32)": [0, 0],
    "x.new_ones(size=(2,), requires_grad=True)": [1.0, 1.0],
    "x.new_full((2,), 3.0, requires_grad=True)": [3.0, 3.0],
    "x.new_full(size=(1,), fill_value=2, pin_memory=False)": [2.0],
    "x.new_tensor([1, 2], requires_grad=True)": [1.0, 2.0],
    "torch.scalar_tensor(2, requires_grad=True)": 2.0,
    "torch.scalar_tensor(s=2.5, dtype=torch.float64, requires_grad=True)": 2.5,
    "torch.flip(x, dims=(0,))": [[3.0, 4.0, 5.0], [0.0, 1.0, 2.0]],
    "torch.flip(input=x, dims=[0, 1])": [[5.0, 4.0, 3.0], [2.0, 1.0, 0.0]],
    "x.flip(dims=(1,))": [[2.0, 1.0, 0.0], [5.0, 4.0, 3.0]],
    "x.view(size=(3, 2))": [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]],
    "x.reshape(shape=(-1,))": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
    "torch.reshape(x, shape=(1, 6))": [[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]],
    "x[:, :1].expand(size=(2, 2), implicit=False)": [[0.0, 0.0], [3.0, 3.0]],
    "torch.permute(x, dims=(1, 0))": [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]],
    "x[0].repeat(repeats=(2,))": [0.0, 1.0, 2.0, 0.0, 1.0, 2.0],
    "torch.tile(x[0], dims=(1, 2))": [[0.0, 1.0, 2.0, 0.0, 1.0, 2.0]],
    "x.sum_to_size(size=(1, 3))": [[3.0, 5.0, 7.0]],
}


@pytest.mark.parametrize("call", BY_NAME)
def test_integers_by_name(call: str, device) -> None:
    with torch.device(device):
        made = eval(call, {"torch": torch, "x": torch.tensor(X)})
    assert made.tolist() == BY_NAME[call] and made.device == device
    assert made.requires_grad == ("requires_grad=True" in call)


@pytest.mark.parametrize("make", [torch.empty, torch.rand, torch.randn, torch.ones(1).new_empty])
def test_sizes_by_name(make) -> None:
    assert make(size=(2, 3)).shape == (2, 3) == make(2, 3).shape == make([2, np.int64(3)]).shape


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: torch.zeros(2, size=(2,)), r"zeros\(\) got multiple values for argument 'size'"),
        (lambda x: torch.zeros(size=3), r"zeros\(\): argument 'size' must be tuple of ints, not int"),
        (lambda x: torch.zeros((2,), 3), r"zeros\(\): argument 'size' must be tuple of ints, not tuple"),
        (lambda x: torch.randn(size=(2, "a")), r"randn\(\): argument 'size' must be tuple of ints, not str"),
        (lambda x: torch.full(3, 1), r"full\(\): argument 'size' must be tuple of ints, not int"),
        (lambda x: x.flip(dims=0), r"flip\(\): argument 'dims' must be tuple of ints, not int"),
        (lambda x: x.flip(0, dims=(0,)), r"flip\(\) got multiple values for argument 'dims'"),
        (lambda x: x.reshape(3, 2, shape=(6,)), r"reshape\(\) got multiple values for argument 'shape'"),
        (lambda x: x.repeat(1, 2.5), r"repeat\(\): argument 'repeats' must be tuple of ints, not float"),
        (lambda x: x.expand(torch.ones(1)), r"expand\(\): argument 'size' must be tuple of ints, not Tensor"),
    ],
)
def test_what_is_no_sequence_of_integers(call, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call(torch.tensor(X))


def test_a_number_of_integers_requires_no_gradient() -> None:
    with pytest.raises(RuntimeError, match="only Tensors of floating point and complex dtype can require gradients"):
        torch.scalar_tensor(1, dtype=torch.int64, requires_grad=True)


TYPE_NAMES = {
    "torch.FloatTensor": torch.float32,
    "torch.DoubleTensor": torch.float64,
    "torch.HalfTensor": torch.float16,
    "torch.BFloat16Tensor": torch.bfloat16,
    "torch.LongTensor": torch.int64,
    "torch.ByteTensor": torch.uint8,
    "torch.BoolTensor": torch.bool,
    "torch.Tensor": torch.float32,
}


@pytest.mark.parametrize("name", TYPE_NAMES)
def test_the_name_of_a_type(name: str, device) -> None:
    x = torch.tensor(X, device=device)
    found = x.type(name)
    assert found.dtype is TYPE_NAMES[name] and found.device == torch.device("cpu")
    assert found.type() == name.replace("torch.Tensor", "torch.FloatTensor")
    assert found.type(found.type()) is found
    if device.type == "cuda" and name != "torch.Tensor":
        there = x.type(name.replace("torch.", "torch.cuda."))
        assert there.device == device and there.dtype is TYPE_NAMES[name] and there.tolist() == found.tolist()
        assert there.type() == name.replace("torch.", "torch.cuda.")


def test_a_type_by_class_and_dtype() -> None:
    x = torch.tensor(X, dtype=torch.float64)
    assert x.type() == x.type(None) == "torch.DoubleTensor"
    assert x.type(torch.Tensor).dtype is torch.float32
    assert x.type(torch.int32, non_blocking=True).dtype is x.type(dtype=torch.int32).dtype is torch.int32
    module = torch.nn.Linear(2, 2).type("torch.DoubleTensor")
    assert module.weight.dtype is torch.float64


@pytest.mark.parametrize("name", ["float", "FloatTensor", "torch.float64", "torch.FloatTensors", float, int])
def test_no_name_of_a_type(name) -> None:
    with pytest.raises(ValueError, match="invalid type: '"):
        torch.tensor(X).type(name)
    with pytest.raises(TypeError, match="dtype must be a type, str, or dtype object"):
        torch.tensor(X).type(3)


@pytest.mark.parametrize(
    "call",
    [
        "torch.stack([x, x], axis=-1)",
        "torch.cat([x, x], axis=1)",
        "torch.sum(x, axis=1, keepdims=True)",
        "torch.sort(x, axis=0).values",
        "torch.gather(x, axis=1, index=torch.zeros(2, 1, dtype=torch.int64))",
        "torch.linalg.norm(x, axis=0, keepdims=True)",
        "torch.fft.fft(x, axis=0)",
        "torch.diff(a=x, axis=0)",
        "torch.nanmean(x, axis=0)",
        "torch.tensor_split(x1=x, indices_or_sections=2, axis=0)[0]",
    ],
)
def test_numpys_names_of_arguments(call: str) -> None:
    """PyTorch takes `axis`, `keepdims`, `x`, `a`, `x1` and `x2` for names of its own."""
    names = {"axis": "dim", "keepdims": "keepdim", "x1": "input", "a": "input"}
    x = torch.arange(6.0).reshape(2, 3)
    own = re.sub(r"\b(\w+)=", lambda found: f"{names.get(found[1], found[1])}=", call)
    assert own != call and torch.equal(eval(call), eval(own))
    with pytest.raises(TypeError, match="unexpected keyword argument 'axes'"):
        torch.stack([x, x], axes=0)
