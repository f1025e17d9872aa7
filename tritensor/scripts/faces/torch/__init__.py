"""torch: dtypes that programs name, of which there are no tensors; functions of lists of tensors; checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes

from .... import linalg
from ....autograd.mode import no_grad
from ....operators import autocasting
from ....tensors import Tensor
from ....types import dtypes
from ...names import MissingName

__all__ = ["bits8", "float8_e8m0fnu"]
__all__ += ["get_autocast_cpu_dtype", "get_autocast_gpu_dtype", "is_autocast_cpu_enabled"]
__all__ += ["complex32", "qint8", "qint32", "quint4x2", "quint8"]


class Named(dtypes.dtype):
    """A dtype to compare with, and to ask for its limits; a tensor of it raises."""

    __slots__ = ("limits",)

    def __init__(self, name: str, itemsize: int, category: int) -> None:
        self.name, self.legacy, self.triton, self.category, self.itemsize = name, name, "", category, itemsize
        self.is_floating_point, self.is_complex = category == dtypes.FLOATING, category == dtypes.COMPLEX
        self.is_signed = not name.startswith("qu")
        self.limits: Any = ml_dtypes.finfo(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else None

    def __getattr__(self, name: str) -> Any:
        if name == "numpy":
            raise MissingName(f"there are no tensors of torch.{self.name} in tritensor")
        raise AttributeError(name)


float8_e8m0fnu = Named("float8_e8m0fnu", 1, dtypes.FLOATING)
complex32 = Named("complex32", 4, dtypes.COMPLEX)
qint8, quint8, quint4x2, bits8 = (Named(name, 1, dtypes.INTEGER) for name in ("qint8", "quint8", "quint4x2", "bits8"))
qint32 = Named("qint32", 4, dtypes.INTEGER)


def __getattr__(name: str) -> Any:
    if name.startswith("_foreach_"):
        return _of_each(name.removeprefix("_foreach_"))
    raise AttributeError(name)


def _of_each(name: str) -> Callable[..., Any]:
    """`torch._foreach_add_` and its like: a method of each tensor in a list, with its part of other lists."""

    def apply(self: Sequence[Tensor], *args: Any, **kwargs: Any) -> list[Tensor] | None:
        if name == "norm":
            return [linalg.vector_norm(x, *args, **kwargs) for x in self]
        found = []
        for position, x in enumerate(self):
            given = [each[position] if isinstance(each, list | tuple) else each for each in args]
            named = {key: each[position] if isinstance(each, list | tuple) else each for key, each in kwargs.items()}
            if name == "copy_":
                named.pop("non_blocking", None)
            if hasattr(x, name):
                found.append(getattr(x, name)(*given, **named))
            else:  # maximum_
                with no_grad():
                    x.copy_(getattr(x, name.removesuffix("_"))(*given, **named))
        return None if name.endswith("_") else found

    apply.__name__ = f"_foreach_{name}"
    return apply


def _check(cond: object, message: object = None) -> None:
    _check_with(RuntimeError, cond, message)


def _check_with(error_type: type[Exception], cond: object, message: object = None) -> None:
    if not cond:
        raise error_type("Expected cond to be True" if message is None else message() if callable(message) else message)


def _check_index(cond: object, message: object = None) -> None:
    _check_with(IndexError, cond, message)


def _check_value(cond: object, message: object = None) -> None:
    _check_with(ValueError, cond, message)


def _check_type(cond: object, message: object = None) -> None:
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: object, message: object = None) -> None:
    _check_with(NotImplementedError, cond, message)


def _assert_async(input: Tensor, assert_msg: str = "") -> None:
    if not input.all():
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def is_autocast_cpu_enabled() -> bool:
    """The older name of `is_autocast_enabled("cpu")`."""
    return autocasting.is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> dtypes.dtype:
    """The older name of `get_autocast_dtype("cpu")`."""
    return autocasting.get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> dtypes.dtype:
    """The older name of `get_autocast_dtype("cuda")`."""
    return autocasting.get_autocast_dtype("cuda")
