"""The error types, and the format of their messages.

Every error of tritensor derives from `TritensorError` and from the built-in type that PyTorch raises in the same
place, so that code written for PyTorch catches it:

    TritensorError
    ├── DeviceError, DeviceMismatchError, OutOfMemoryError     (RuntimeError)
    ├── DtypeError, ShapeError, AutogradError, LinAlgError     (RuntimeError)
    │   └── UnsupportedError, a DtypeError                     (NotImplementedError, which is a RuntimeError)
    ├── KernelError, KernelMemoryError, CheckpointError        (RuntimeError)
    ├── DistError, DatasetError                                (RuntimeError)
    ├── DivisionError                     (RuntimeError and ZeroDivisionError)
    ├── ExchangeError, InterfaceError     (BufferError and ValueError, AttributeError)
    ├── NumberError                                            (OverflowError)
    ├── ArgumentError                                          (TypeError)
    ├── RangeError                                             (IndexError)
    │   └── BoundsError                                        (IndexError and RuntimeError)
    └── KernelMismatchError                                    (AssertionError)

A message begins with the words that PyTorch's message begins with, because those are what people search for. The facts
follow, a line each, and the remedy comes last: `ShapeError(words, fact, remedy="...")`. Errors of Python's own types
have the same text by `explain`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["ArgumentError", "AutogradError", "BoundsError", "CheckpointError", "DatasetError", "DeviceError"]
__all__ += ["DeviceMismatchError", "DistError", "DivisionError", "DtypeError", "ExchangeError"]
__all__ += ["HostComputationWarning", "InterfaceError", "KernelError", "KernelMemoryError", "KernelMismatchError"]
__all__ += ["LinAlgError", "NumberError", "OutOfMemoryError", "RangeError", "ShapeError", "TritensorError"]
__all__ += ["UnsupportedError", "explain", "require", "warn"]


class TritensorError(Exception):
    """The root of every error that tritensor raises on purpose.

    Args:
        message: PyTorch's words, then facts, a line each; see `explain`.
        remedy: what the user can do about it.

    >>> ShapeError("Sizes of tensors must match", remedy="reshape one")
    ShapeError('Sizes of tensors must match\\n  Fix: reshape one')
    """

    def __init__(self, *message: str, remedy: str | None = None) -> None:
        super().__init__(*((explain(*message, remedy=remedy),) if len(message) > 1 or remedy else message))


class DeviceError(TritensorError, RuntimeError):
    """A device that does not exist, has no driver, or can no longer be used."""


class DeviceMismatchError(TritensorError, RuntimeError):
    """The tensors of one call are on different devices."""


class OutOfMemoryError(TritensorError, RuntimeError):
    """A device has too little free memory for an allocation."""


class DtypeError(TritensorError, RuntimeError):
    """A dtype that an operator does not support, or dtypes that do not fit together."""


class UnsupportedError(DtypeError, NotImplementedError):
    """A dtype that an operator is not implemented for."""


class ShapeError(TritensorError, RuntimeError):
    """Shapes that do not fit together."""


class LinAlgError(TritensorError, RuntimeError):
    """A matrix that cannot be decomposed."""


class AutogradError(TritensorError, RuntimeError):
    """A gradient that cannot be computed, or an in-place change that would make one wrong."""


class KernelError(TritensorError, RuntimeError):
    """A kernel that could not be compiled or launched."""


class KernelMemoryError(TritensorError, RuntimeError):
    """A kernel touched memory outside of its arguments (found by the sanitizer in simulation)."""


class CheckpointError(TritensorError, RuntimeError):
    """A checkpoint file that is damaged, refused or does not fit."""


class DatasetError(TritensorError, RuntimeError):
    """Files of a data set that are absent, damaged, refused, or cannot be fetched."""


class DistError(TritensorError, RuntimeError):
    """Cooperating processes disagree, one of them is gone, or the transport between them is missing."""


class DistBackendError(DistError):
    """A transport between processes that failed."""


class DistNetworkError(DistError):
    """An address at which no process answers, or that is taken."""


class DistStoreError(DistError):
    """A key that no process has set in a store in time."""


class DivisionError(TritensorError, RuntimeError, ZeroDivisionError):
    """An integer divided by zero. PyTorch raises a RuntimeError whose message is ZeroDivisionError."""


class ExchangeError(TritensorError, BufferError, ValueError):
    """Memory that cannot go to another library, or come from one, as it is asked for."""


class InterfaceError(TritensorError, AttributeError):
    """An attribute that a tensor on this device does not have, so that `hasattr` is False."""


class NumberError(TritensorError, OverflowError):
    """An integer beyond those of 64 bits."""


class ArgumentError(TritensorError, TypeError):
    """An argument of the wrong type."""


class RangeError(TritensorError, IndexError):
    """An index or a dimension out of range."""


class BoundsError(RangeError, RuntimeError):
    """An element of an index tensor out of bounds. PyTorch raises IndexError for `x[i]`, RuntimeError for `gather`."""


class KernelMismatchError(TritensorError, AssertionError):
    """A kernel and its reference disagree (found in checked mode)."""


class HostComputationWarning(UserWarning):
    """An operator on tensors of a device is computed on the host; see `tritensor.kernels.hosted`."""


def explain(first: str, *facts: str, remedy: str | None = None) -> str:
    """Format a message: PyTorch's words, then facts, then the remedy.

    >>> print(explain("Expected all tensors to be on the same device", "x is on cpu", remedy="move it with .to()"))
    Expected all tensors to be on the same device
      x is on cpu
      Fix: move it with .to()
    """
    lines = [first, *(f"  {fact}" for fact in facts if fact)]
    if remedy:
        lines.append(f"  Fix: {remedy}")
    return "\n".join(lines)


def require(condition: object, error: type[Exception], text: str, *values: object) -> None:
    """Raise an error unless a condition holds; the text is formatted with the values only then.

    For functions that take over 5 us, as a call costs 0.1 us more than an `if`. The values are computed each time.

    >>> require(1 + 1 == 3, ShapeError, "expected 3, but got {}", 1 + 1)
    Traceback (most recent call last):
    tritensor.errors.ShapeError: expected 3, but got 2
    """
    if not condition:
        raise error(text.format(*values) if values else text)


# Set by tritensor.nn: returns what a tensor is in the module that holds it and its path there, as in ("parameter",
# "encoder.layers.3.weight"), or None. It is called only when a message is built, so it costs an operator nothing.
held_as: Callable[[Any], tuple[str, str] | None] | None = None


def describe_tensor(tensor: Any, name: str) -> str:
    """A tensor's description for a message: its argument name, path in a module, shape, dtype and device."""
    held = held_as(tensor) if held_as is not None else None
    owner = f" ({' '.join(held)})" if held else ""
    return f"{name}{owner}: shape {tuple(tensor.shape)}, {tensor.dtype}, on {tensor.device}"


def mixed_devices(operator: str, tensors: Sequence[tuple[str, Any]]) -> str:
    """The message for an operator's tensors, with the names of the arguments, that are on several devices."""
    places = {name: str(tensor.device) for name, tensor in tensors}
    held = {name: (held_as(tensor) if held_as is not None else None) or ("", "") for name, tensor in tensors}
    models = [name for name, (kind, _) in held.items() if kind.endswith(("parameter", "buffer"))]
    # a model is moved to a device on purpose; "cuda" may have meant another one when its input was moved
    wanted = [*(places[name] for name in models), *places.values()]
    target = next((place for place in wanted if place != "cpu"), wanted[0])
    behind = [name for name, place in places.items() if place != target]
    loose = " and ".join(name for name in behind if name not in models)
    inside = " and ".join(name for name in behind if name in models)
    what = (loose, f"the module that holds {inside}" if inside else "")
    moves = " and ".join(f"move {each} with .to({target!r})" for each in what if each)
    plain = " and ".join(held[name][1] for name in behind if held[name][0].endswith("attribute"))
    register = f", or register {plain} by register_buffer() or as nn.Parameter: .to() then moves it" if plain else ""
    first, second = list(dict.fromkeys(places.values()))[:2]
    found = f"Expected all tensors to be on the same device, but found at least two devices, {first} and {second}!"
    if "meta" in (first, second):
        found = f"Tensor on device {second} is not on the expected device {first}!"
    return explain(
        f"{found} (in {operator})",
        *(describe_tensor(tensor, name) for name, tensor in tensors),
        remedy=moves + register,
    )


def unrecorded_view(fact: str) -> str:
    """The message about a view that was made in no_grad mode and is part of a graph that it cannot follow."""
    return explain(
        f"A view was created in no_grad mode and {fact} with grad mode enabled. Given that this use case is ambiguous "
        "and error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace either "
        "both inside the no_grad block (if you don't want the inplace to be tracked) or both outside (if you want the "
        "inplace to be tracked)."
    )


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning that points to the caller's line: the first that is not in tritensor, however deep the call is."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("tritensor."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
