"""Columns and tables of pandas, Polars and PyArrow, and what else NumPy reads, as arrays in their own dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import DtypeError, explain

__all__ = ["read"]

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


def read(data: Any) -> Any:
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
                explain(
                    f"Could not infer dtype of {name}",
                    f"{count} of its values are missing, and a tensor has no missing values",
                    remedy="fill or drop them first: fillna(0) or dropna() in pandas, fill_null(0) or drop_nulls()",
                )
            )
    array = np.asarray(data)
    if array.dtype.kind in "OUST":
        wrong = [each for each in array.ravel().tolist() if not isinstance(each, (bool, int, float, complex))]
        if wrong:
            raise DtypeError(
                explain(
                    f"Could not infer dtype of {type(wrong[0]).__name__}",
                    f"the {name} has an element {wrong[0]!r:.40}, and a tensor has numbers only",
                    remedy="give it numbers: of text the codes of its categories, of decimal numbers floats",
                )
            )
        return array.tolist()
    return array if all(stride >= 0 for stride in array.strides) else array.copy()
