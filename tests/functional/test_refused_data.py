"""Data that are no tensor, or not of the dtype that is asked for: refused for the first reason, in PyTorch's words."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ([[1, 2], [3]], ValueError, r"expected sequence of length 2 at dim 1 \(got 1\)"),
        ([[[1], [2]], [[1], [2, 3]]], ValueError, r"expected sequence of length 1 at dim 2 \(got 2\)"),
        ([np.arange(2), np.arange(3)], ValueError, r"expected sequence of length 2 at dim 1 \(got 3\)"),
        ([[1, 2], 3], TypeError, "not a sequence"),
        ([1, [2]], TypeError, "'list' object cannot be interpreted as an integer"),
        ([1.5, [2]], TypeError, "must be real number, not list"),
        ([[1], [1], (2**63,), 1], ValueError, "Overflow when unpacking long long"),
        ([[1, 2], [3], None], RuntimeError, "Could not infer dtype of NoneType"),
        ("abc", TypeError, r"new\(\): invalid data type 'str'"),
        (["a"], ValueError, "too many dimensions 'str'"),
        ([1, "a"], TypeError, r"new\(\): invalid data type 'str'"),
        (None, RuntimeError, "Could not infer dtype of NoneType"),
        ([1, None], RuntimeError, "Could not infer dtype of NoneType"),
        ([np.array(1), None], RuntimeError, "Could not infer dtype of NoneType"),
        ({1: 2}, RuntimeError, "Could not infer dtype of dict"),
        ({1, 2}, RuntimeError, "Could not infer dtype of set"),
        (object(), RuntimeError, "Could not infer dtype of object"),
        (2**63, ValueError, "Overflow when unpacking long"),
        ([10**400], ValueError, "Overflow when unpacking long"),
        (np.array(["a"]), TypeError, r"can't convert np\.ndarray of type"),
        (np.array([object()]), TypeError, r"can't convert np\.ndarray of type"),
    ],
)
def test_data_that_are_no_numbers(data, error, words) -> None:
    with pytest.raises(error, match=words):
        torch.tensor(data)
    with pytest.raises(error, match=words):
        torch.as_tensor(data)


@pytest.mark.parametrize(
    ("data", "kind"), [([10**20], None), ([2**63], None), ([2**63], "int8"), ([10**20], "int64"), ([2**63, 1], None)]
)
def test_integers_that_are_too_large(data, kind) -> None:
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        torch.tensor(data, dtype=None if kind is None else getattr(torch, kind))
    with pytest.raises(OverflowError, match="int too large to convert to float"):
        torch.tensor([10**400], dtype=torch.float64)


@pytest.mark.parametrize(
    ("data", "kind", "error", "words"),
    [
        ([2**64], "uint64", OverflowError, "int too big to convert"),
        ([2**64 - 1, -1], "uint64", OverflowError, "can't convert negative int to unsigned"),
        (-1, "uint64", OverflowError, "can't convert negative int to unsigned"),
        ([1, 2.5], "uint64", TypeError, "an integer is required"),
        ([torch.tensor(2)], "uint64", TypeError, "an integer is required"),
        ([None], "uint64", TypeError, "an integer is required"),
        ([None], "float32", TypeError, "must be real number, not NoneType"),
        ([1, None], "int64", TypeError, "'NoneType' object cannot be interpreted as an integer"),
        ([1, [2]], "bool", TypeError, "'list' object cannot be interpreted as an integer"),
        ([1j], "int8", TypeError, "'complex' object cannot be interpreted as an integer"),
        ([1j], "float16", TypeError, "must be real number, not complex"),
        ([300, 2**64], "int32", ValueError, "Overflow when unpacking long long"),
        ([[1, 1e300], 1.5], "int64", RuntimeError, "value cannot be converted to type int64_t without overflow"),
        ([torch.tensor(2.5)], "int64", TypeError, "only integer tensors of a single element can be converted"),
        ([[1], [torch.tensor(2.5)]], "bool", TypeError, "only integer tensors of a single element can be converted"),
    ],
)
def test_data_that_are_none_of_a_dtype(data, kind, error, words) -> None:
    for make in (torch.tensor, torch.as_tensor):
        with pytest.raises(error, match=words):
            make(data, dtype=getattr(torch, kind))


def test_integers_among_floats_of_an_unsigned_dtype() -> None:
    assert torch.tensor([[2, -1], [0.0, 3.5]], dtype=torch.uint8).tolist() == [[2, 255], [0, 3]]
    for data in ([2, -1.0], [300, 0.5], [-1, float("nan")]):
        with pytest.raises(RuntimeError, match="value cannot be converted to type uint8 without overflow"):
            torch.tensor(data, dtype=torch.uint8)
    with pytest.raises(TypeError, match="must be real number, not complex"):
        torch.tensor([1j], dtype=torch.bfloat16)
