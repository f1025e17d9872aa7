"""Columns and tables of other libraries as arrays; and why data cannot become a tensor, in PyTorch's words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError, NumberError
from ...host.scalars import converted
from ...tensors import Tensor
from ...types import dtypes

_NUMBERS = (bool, int, float, complex, np.generic, np.ndarray, Tensor)


def refusal(data: Any, kind: np.dtype | None) -> Exception:
    """The error for nested sequences that are not rectangular or contain what is no number of the dtype.

    Args:
        kind: the dtype that is asked for, if there is one.
    """
    sizes, first = [], data
    while _is_sequence(first):
        sizes.append(len(first))
        if not len(first):
            break
        first = first[0]
    if isinstance(first, str) and sizes:
        return ValueError("too many dimensions 'str'")
    if kind is None or isinstance(data, (str, bytes)):
        category = dtypes.BOOLEAN
        for leaf in leaves(data):
            if isinstance(leaf, (str, bytes)):
                return ArgumentError(f"new(): invalid data type '{type(leaf).__name__}'")
            if not isinstance(leaf, _NUMBERS):
                return DtypeError(f"Could not infer dtype of {type(leaf).__name__}")
            category = max(category, dtypes.scalar_category(leaf))
        wanted = (dtypes.bool_, dtypes.int64, dtypes.float64, dtypes.complex128)[category]
    else:
        wanted = dtypes.of(kind)
    return _first(data, sizes, 0, wanted) or ValueError("the data are not rectangular")


def leaves(data: Any) -> Iterator[Any]:
    """The elements of nested sequences."""
    if _is_sequence(data):
        for part in data:
            yield from leaves(part)
    else:
        yield data


def _is_sequence(data: object) -> bool:
    return isinstance(data, (list, tuple)) or (isinstance(data, np.ndarray) and data.ndim > 0)


def _first(data: Any, sizes: Sequence[int], dim: int, kind: dtypes.dtype) -> Exception | None:
    if dim == len(sizes):
        return _of_element(data, kind)
    if not _is_sequence(data):
        return ArgumentError("not a sequence", f"expected {sizes[dim]} elements at dim {dim}, got {data!r}")
    if len(data) != sizes[dim]:
        return ValueError(f"expected sequence of length {sizes[dim]} at dim {dim} (got {len(data)})")
    return next((found for part in data if (found := _first(part, sizes, dim + 1, kind)) is not None), None)


def _of_element(value: Any, kind: dtypes.dtype) -> Exception | None:
    """Why a value is no element of a dtype; None if it is one."""
    name = type(value).__name__
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.item()
    if kind is dtypes.uint64:
        if not isinstance(value, int):
            return ArgumentError("an integer is required")
        if not 0 <= value < 1 << 64:
            return NumberError("int too big to convert" if value > 0 else "can't convert negative int to unsigned")
        return None
    if not isinstance(value, (int, float, complex)) or (isinstance(value, complex) and kind.category != dtypes.COMPLEX):
        if kind.category >= dtypes.FLOATING:
            return ArgumentError(f"must be real number, not {name}")
        if kind is not dtypes.bool_ or not isinstance(value, complex):
            return ArgumentError(f"'{name}' object cannot be interpreted as an integer")
    if kind.category == dtypes.INTEGER and isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return ValueError("Overflow when unpacking long long")
    try:
        converted(value, kind) if kind.category == dtypes.INTEGER else complex(value)
    except DtypeError as error:
        return error
    except OverflowError as error:
        return NumberError(str(error))
    return None


# The columns of a table, or the one that it is, and how many values of a column are missing.
_LIBRARIES: dict[str, tuple[Callable[[Any], list[Any]], Callable[[Any], int]]] = {
    "pandas": (
        lambda data: [column for _, column in data.items()] if data.ndim == 2 else [data],
        # a NaN in a column of NumPy's floats is a number, as in an array
        lambda column: 0 if isinstance(column.dtype, np.dtype) else int(column.isna().sum()),
    ),
    "polars": (
        lambda data: data.get_columns() if hasattr(data, "get_columns") else [data],
        lambda column: column.null_count(),
    ),
    "pyarrow": (lambda data: getattr(data, "columns", [data]), lambda column: column.null_count),
}


def read(data: object) -> Any:
    """The array of an object that has `__array__`, without a copy where its memory is one; anything else as it is.

    Raises:
        DtypeError: a column has missing values, or elements that are no numbers.
    """
    if isinstance(data, (list, np.ndarray, np.generic)) or not hasattr(data, "__array__"):
        return data
    name = type(data).__name__
    for library in {base.__module__.partition(".")[0] for base in type(data).__mro__} & _LIBRARIES.keys():
        columns_of, missing = _LIBRARIES[library]
        count = sum(map(missing, columns_of(data)))
        if count:
            raise DtypeError(
                f"Could not infer dtype of {name}",
                f"{count} of its values are missing, and a tensor has no missing values",
                remedy="fill or drop them first: fillna(0) or dropna() in pandas, fill_null(0) or drop_nulls()",
            )
    array = np.asarray(data)
    if array.dtype.kind in "OUST":
        wrong = [each for each in array.ravel().tolist() if not isinstance(each, (bool, int, float, complex))]
        if wrong:
            raise DtypeError(
                f"Could not infer dtype of {type(wrong[0]).__name__}",
                f"the {name} has an element {wrong[0]!r:.40}, and a tensor has numbers only",
                remedy="give it numbers: of text the codes of its categories, of decimal numbers floats",
            )
        return array.tolist()
    return array if all(stride >= 0 for stride in array.strides) else array.copy()
