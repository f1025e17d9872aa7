"""Anomaly detection: a backward pass that fails, or computes a NaN, names the operator and the lines that called it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from ..errors import AutogradError, warn
from ..types import dtypes
from . import watched
from .leaves import as_tensors
from .mode import no_grad
from .tape import Node, inside_package

__all__ = ["detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_anomaly_enabled"]
__all__ += ["set_detect_anomaly"]

_stacks: WeakKeyDictionary[Node, str] = WeakKeyDictionary()
_mode = [False, True]  # whether anomalies are detected, and NaNs are


def _made(node: Node) -> None:
    stack = [each for each in traceback.extract_stack() if not inside_package(each.filename)]
    _stacks[node] = "".join(traceback.format_list(stack))


def _around(node: Node, run: Callable[[], Any]) -> Any:
    """Run a node, and look for NaNs."""
    try:
        parts = run()
        positions = getattr(node.backward, "positions", None) or range(len(parts))
        for position, part in zip(positions, parts) if _mode[1] else ():
            with no_grad():
                value = None if part is None else as_tensors(part)
                if value is not None and value.dtype.category >= dtypes.FLOATING and bool(value.isnan().any()):
                    raise AutogradError(
                        f"Function '{node.name()}' returned nan values in its {position}th output.",
                        f"it was recorded at {node.where()}",
                    )
    except Exception:
        words = "No forward pass information available. Enable detect anomaly during forward pass for more information."
        if node in _stacks:
            words = f"Traceback of forward call that caused the error:\n{_stacks[node]}"
        warn(f"Error detected in {node.name()}. {words}")
        raise
    return parts


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Turn anomaly detection on or off."""
    if mode and not _mode[0]:
        watched.on.append(_made)
        watched.around.append(_around)
    elif not mode and _mode[0]:
        watched.on.remove(_made)
        watched.around.remove(_around)
    _mode[:] = bool(mode), bool(check_nan)


def is_anomaly_enabled() -> bool:
    """True if anomalies are detected."""
    return _mode[0]


def is_anomaly_check_nan_enabled() -> bool:
    """True if NaNs are detected where anomalies are."""
    return _mode[1]


class set_detect_anomaly:
    """Turn anomaly detection on or off: at once, until the end of the block when used as a context manager.

    A backward pass then raises an error if a gradient is NaN, and an error in it warns first of the operator and of the
    lines of the forward pass that called it. All nodes keep these lines, so programs are slower.

    Args:
        check_nan: False to look for no NaN.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = _mode[0], _mode[1]
        set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        set_anomaly_enabled(*self._before)


class detect_anomaly(set_detect_anomaly):
    """Detect anomalies in a block: `set_detect_anomaly(True)` with a warning that programs are slower.

    >>> import tritensor as torch
    >>> x = torch.tensor([0.0], requires_grad=True)
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"), torch.autograd.detect_anomaly():
    ...     (x.log() * 0).backward()
    Traceback (most recent call last):
    tritensor.errors.AutogradError: Function 'LogBackward0' returned nan values in its 0th output.
    ...
    """

    def __init__(self, check_nan: bool = True) -> None:
        warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging."
        )
        self._before, self._check = (_mode[0], _mode[1]), check_nan

    def __enter__(self) -> None:
        set_anomaly_enabled(True, self._check)
