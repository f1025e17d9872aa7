"""NumPy arrays, scalars and dtypes in a pickle: rebuilt by hand, from plain numbers and text only."""

from __future__ import annotations

import re
import sys
from typing import Any

import ml_dtypes
import numpy as np

from .malformed import Malformed

# Kind and width of the dtypes whose elements are plain bytes: numbers, booleans, text and bytes of fixed length.
_CODE = re.compile(r"[?biufcSU][0-9]{0,9}")
EXTENSIONS = {"ml_dtypes.bfloat16": np.dtype(ml_dtypes.bfloat16)}


class TypeName:
    """A class of NumPy's that a pickle names as an argument and never calls."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


NDARRAY = TypeName("numpy.ndarray")


def is_one_of(value: object, *choices: str) -> bool:
    """True if `value` is one of some strings; its type is checked first, because arrays and tensors compare element by
    element."""
    return type(value) is str and value in choices


def is_plain(dtype: np.dtype[Any]) -> bool:
    """True if elements of `dtype` are plain bytes: no objects, no fields, no dates."""
    return dtype in EXTENSIONS.values() or (dtype.kind in "?biufcSU" and dtype.subdtype is None)


def _dtype(unpickler: Any, arguments: tuple[Any, ...]) -> np.dtype[Any]:
    """`numpy.dtype('f8', False, True)`."""
    if len(arguments) == 3 and isinstance(arguments[0], np.dtype):
        return arguments[0]  # bfloat16, by its type
    if len(arguments) != 3 or type(arguments[0]) is not str or not _CODE.fullmatch(arguments[0]):
        raise Malformed(
            "the pickle holds a NumPy dtype that is no plain number or text",
            f"it is {str(arguments[0])[:40]!r}" if arguments else "",
            remedy=PLAIN,
        )
    try:
        return np.dtype(arguments[0], False, True)  # a copy, because its byte order is set afterwards
    except (TypeError, ValueError) as error:
        raise Malformed(f"the pickle holds a NumPy dtype that does not exist: {error}") from None


def _reconstruct(unpickler: Any, arguments: tuple[Any, ...]) -> np.ndarray:
    """`_reconstruct(numpy.ndarray, (0,), b'b')`: an empty array whose state comes later."""
    if len(arguments) != 3 or arguments[0] is not NDARRAY:
        raise Malformed("the pickle holds an array of a class other than numpy.ndarray", remedy=PLAIN)
    return np.ndarray((0,), dtype=np.int8)


def _scalar(unpickler: Any, arguments: tuple[Any, ...]) -> Any:
    """`scalar(dtype, bytes)`."""
    if (
        len(arguments) != 2
        or not isinstance(arguments[0], np.dtype)
        or not is_plain(arguments[0])
        or type(arguments[1]) is not bytes
        or len(arguments[1]) != arguments[0].itemsize
        or not arguments[0].itemsize
    ):
        raise Malformed("the pickle holds a NumPy scalar that is no plain number or text", remedy=PLAIN)
    scalar = np.frombuffer(arguments[1], dtype=arguments[0])
    _check_text(scalar)
    return scalar[0]


def set_state(target: object, state: object) -> bool:
    """Finish an array or a dtype; False if `target` is neither."""
    if type(target) is np.ndarray:
        _set_array(target, state)
    elif isinstance(target, np.dtype):
        _set_dtype(target, state)
    else:
        return False
    return True


def _set_array(target: np.ndarray, state: Any) -> None:
    """(version, shape, dtype, is Fortran order, bytes)."""
    if type(state) is tuple and len(state) == 5 and type(state[4]) is str:
        state = (*state[:4], state[4].encode("latin1"))  # Python 2 wrote bytes as text
    good = (
        target.shape == (0,)
        and target.dtype == np.int8
        and type(state) is tuple
        and len(state) == 5
        and type(state[0]) is int
        and type(state[1]) is tuple
        and len(state[1]) <= 64
        and all(type(length) is int and 0 <= length < 2**63 for length in state[1])
        and isinstance(state[2], np.dtype)
        and is_plain(state[2])
        and type(state[3]) is bool
        and type(state[4]) is bytes
    )
    if good:
        expected = state[2].itemsize
        for length in state[1]:
            expected *= length
        good = expected == len(state[4])
    if not good:
        raise Malformed("the pickle holds a NumPy array whose state is not that of plain numbers or text", remedy=PLAIN)
    try:
        target.__setstate__(state)
    except (TypeError, ValueError) as error:
        raise Malformed(f"the pickle holds a NumPy array that cannot exist: {error}") from None
    _check_text(target)


def _check_text(array: np.ndarray) -> None:
    """Raise `Malformed` where text has characters that Unicode does not: NumPy fails when such an element is read."""
    if array.dtype.kind == "U" and array.size and array.itemsize:
        flat = np.frombuffer(array.tobytes(), np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if flat.max() > sys.maxunicode:
            raise Malformed("the pickle holds NumPy text with characters outside of Unicode")


def _set_dtype(target: np.dtype[Any], state: object) -> None:
    """(3, byte order, None, None, None, -1 or itemsize, -1 or alignment, flags)."""
    if (
        type(state) is not tuple
        or len(state) != 8
        or type(state[0]) is not int
        or not is_one_of(state[1], "<", ">", "|", "=")
        or any(part is not None for part in state[2:5])
        or any(type(number) is not int for number in state[5:])
    ):
        raise Malformed("the pickle holds a NumPy dtype with a state that no plain dtype has", remedy=PLAIN)
    if target.kind in "SU" and state[5] != target.itemsize:
        raise Malformed("the pickle holds a NumPy text dtype of two lengths")
    if target in EXTENSIONS.values():  # NumPy has one shared object for each of these, which must not be changed
        return
    # Only the byte order is read from the file: NumPy does not check sizes and flags, and crashes if they are wrong.
    sizes = (target.itemsize, target.alignment, target.flags) if target.kind in "SU" else (-1, -1, 0)
    setter: Any = target
    setter.__setstate__((3, state[1], None, None, None, *sizes))


PLAIN = "save NumPy arrays and scalars of numbers, booleans or fixed-width text only"

CALLABLE = {
    "numpy.dtype": (_dtype, 120),
    **{f"numpy.{place}.multiarray._reconstruct": (_reconstruct, 200) for place in ("core", "_core")},
    **{f"numpy.{place}.multiarray.scalar": (_scalar, 60) for place in ("core", "_core")},
}
TYPES: dict[str, Any] = {"numpy.ndarray": NDARRAY, **EXTENSIONS}
