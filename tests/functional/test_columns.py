"""Objects that NumPy reads, in place of arrays: their own dtype, their own memory; what is no number is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch


class Column:
    """Of a library that tritensor does not know."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.values


def of_library(name: str, **members: Any) -> Any:
    """A column of a class of that library."""
    return type("Series", (Column,), {"__module__": f"{name}.series", **members})([1.0, 2.0])


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "int64", "float16", "float32", "float64", "bool"])
def test_a_column_keeps_its_dtype(dtype: str) -> None:
    made = torch.tensor(Column(np.array([1, 0, 3], dtype)))
    assert made.dtype is getattr(torch, dtype) and made.tolist() == np.array([1, 0, 3], dtype).tolist()
    assert torch.tensor(Column([1, 2]), dtype=torch.float64).dtype is torch.float64


def test_as_tensor_shares_the_memory_of_a_column() -> None:
    column = Column(np.arange(3.0))
    torch.as_tensor(column)[0] = 5
    torch.tensor(column)[1] = 7
    assert column.values.tolist() == [5, 1, 2]
    column.values.flags.writeable = False
    with pytest.raises(RuntimeError, match=r"memory is read-only\n.*clone"):
        torch.as_tensor(column).add_(1)


def test_a_reversed_column_is_copied() -> None:
    made = torch.as_tensor(Column(np.arange(3)[::-1]))
    assert made.tolist() == [2, 1, 0] and made.stride() == (1,)


def test_python_numbers_in_a_column_are_those_of_a_list() -> None:
    assert torch.tensor(Column(np.array([1, 2], object))).dtype is torch.int64
    assert torch.tensor(Column(np.array([[1, 2.5]], object))).dtype is torch.float32


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["a", "b"], r"dtype of str\n  the Column has an element 'a'"),
        (np.array([1, None], object), r"dtype of NoneType\n  the Column has an element None"),
        (
            np.array([{}], object),
            r"dtype of dict\n  .* \{\}, and a tensor has numbers only\n  Fix: give it numbers",
        ),
    ],
)
def test_what_is_no_number_is_refused(values: Any, words: str) -> None:
    for make in (torch.tensor, torch.as_tensor):
        with pytest.raises(RuntimeError, match=f"Could not infer {words}"):
            make(Column(values))


@pytest.mark.parametrize(
    ("library", "members"),
    [
        ("pandas", {"ndim": 1, "dtype": "Int64", "isna": lambda self: np.array([False, True])}),
        ("polars", {"null_count": lambda self: 1}),
        ("pyarrow", {"null_count": 1}),
    ],
)
def test_missing_values_are_refused(library: str, members: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError, match=r"dtype of Series\n  1 of its values are missing(.|\n)*fillna\(0\)"):
        torch.tensor(of_library(library, **members))
    assert torch.tensor(of_library("another", **members)).tolist() == [1, 2]


def test_a_nan_of_a_plain_column_is_a_number() -> None:
    plain = of_library("pandas", ndim=1, dtype=np.dtype(float), isna=lambda self: np.array([True, True]))
    assert torch.tensor(plain).tolist() == [1, 2]


def test_from_numpy_says_what_takes_a_column() -> None:
    with pytest.raises(TypeError, match=r"expected np\.ndarray \(got Column\)\n  Fix: as_tensor takes it"):
        torch.from_numpy(Column([1]))
    with pytest.raises(TypeError, match=r"expected np\.ndarray \(got list\)$"):
        torch.from_numpy([1])
