"""Forward-mode differentiation: dual tensors carry the derivative in one direction through every operator.

with forward_ad.dual_level():
    dual = forward_ad.make_dual(x, direction)
    value, derivative = forward_ad.unpack_dual(f(dual))
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..errors import AutogradError, ShapeError
from ..memory.lifted import Dual, Level, open_levels
from .levels import enter_dual, primal_of, tangent_of

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class _Current(threading.local):
    level: Level | None = None


_current = _Current()


class UnpackedDualTensor(NamedTuple):
    """The parts of a dual tensor: its value and its tangent, None of a tensor without one."""

    primal: Any
    tangent: Any


def enter_dual_level() -> int:
    """Open the level in which dual tensors are made; returns its number, 0.

    Raises:
        AutogradError: it is open already: as in PyTorch there is one. `torch.func.jvp` nests.
    """
    if _current.level is not None:
        raise AutogradError("Nested forward mode AD is not supported at the moment")
    _current.level = Level()
    open_levels.stack.append(_current.level)
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level: its tensors have no tangents any more.

    Raises:
        AutogradError: it is not open, or `level` is another one.
    """
    if _current.level is None or level not in (None, 0):
        raise AutogradError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    closed, _current.level = _current.level, None
    open_levels.stack.remove(closed)
    for member in closed.members:
        x = member()
        # what is on the tape is kept as it was recorded
        if x is not None and not x._needs and isinstance(x._data, Dual) and x._data.level is closed:
            x._data = x._data.array


def joined(tensor: Any, tangent: Any, level: Level) -> Any:
    """The dual tensor of a level, after checks.

    Raises:
        ValueError: a tensor that is not floating. ShapeError, AutogradError: shapes, dtypes or devices differ.
    """
    for name, each in (("primal", tensor), ("tangent", tangent)):
        if not (each.is_floating_point() or each.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {each.dtype}")
    if tensor.shape != tangent.shape:
        raise ShapeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    if tensor.dtype is not tangent.dtype or tensor.device != tangent.device:
        raise AutogradError(
            "Expected tangent to have the dtype and the device of the primal, but got "
            f"{tangent.dtype} on {tangent.device} for {tensor.dtype} on {tensor.device}"
        )
    return enter_dual(tensor, tangent, level)


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """Make a dual tensor of a value and a tangent, the direction in which to differentiate.

    >>> import tritensor as torch
    >>> from tritensor.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     dual = forward_ad.make_dual(torch.tensor(3.0), torch.tensor(1.0))
    ...     forward_ad.unpack_dual(dual * dual).tangent
    tensor(6.)

    Raises:
        AutogradError: no level is open. ValueError: a tensor that is not floating. ShapeError: shapes differ.
    """
    if _current.level is None or (level or 0) < 0:
        raise AutogradError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    return joined(tensor, tangent, _current.level)


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Unpack a dual tensor into its value and tangent; `backward` differentiates both by what the dual was made of."""
    if _current.level is None or (level or 0) < 0:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(primal_of(tensor, _current.level), tangent_of(tensor, _current.level))


@contextmanager
def dual_level() -> Iterator[int]:
    """A block in which dual tensors can be made and unpacked (a forward AD level); also a decorator."""
    level = enter_dual_level()
    try:
        yield level
    finally:
        exit_dual_level()
