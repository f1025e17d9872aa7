"""Whether results are the same bits in each run: `use_deterministic_algorithms`, and the two things that it changes.

Kernels add up in a fixed order in any case, so nothing raises for want of a deterministic way. Under the mode the last
of several values that are written to one place on a device is kept, as on the CPU, and new memory is filled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError, require
from ..ground.public import public
from ..tensors import wrap
from ..types import dtypes

_WORDS = {"default": 0, "warn": 1, "error": 2}


class _Determinism:
    """What was asked for: `mode` as `get_deterministic_debug_mode` says it, and `fills` if new memory is filled."""

    mode, fill, fills = 0, True, False

    def set(self, mode: int, fill: bool) -> None:
        self.mode, self.fill, self.fills = mode, fill, bool(mode) and fill


determinism = _Determinism()


@public(functional=False)
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for results that are the same bits in each run on a device.

    All operators are deterministic without it but one: where several values are written to one place (`x[i] = y`,
    `index_copy`, `scatter`, `put_`), a device keeps any of them. Under the mode it sorts the places and keeps the last,
    as the CPU does. New memory (`empty`, `resize_`) is filled as well, unless
    `tritensor.utils.deterministic.fill_uninitialized_memory` is False.

    >>> import tritensor as torch
    >>> torch.use_deterministic_algorithms(True)
    >>> torch.empty(2)
    tensor([nan, nan])
    >>> torch.use_deterministic_algorithms(False)

    Args:
        warn_only: for PyTorch's sake: no operator lacks a deterministic way.

    Raises:
        ArgumentError: something other than a bool.
    """
    for name, value in (("'mode' (position 1)", mode), ("'warn_only'", warn_only)):
        text = "_set_deterministic_algorithms(): argument {} must be bool, not {}"
        require(isinstance(value, bool), ArgumentError, text, name, type(value).__name__)
    determinism.set(2 - warn_only if mode else 0, determinism.fill)


@public(functional=False)
def are_deterministic_algorithms_enabled() -> bool:
    """True if deterministic algorithms were asked for."""
    return determinism.mode > 0


@public(functional=False)
def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """True if deterministic algorithms were asked for with `warn_only`."""
    return determinism.mode == 1


@public(functional=False)
def get_deterministic_debug_mode() -> int:
    """The debug mode of deterministic algorithms: 0 off, 1 with `warn_only`, 2 on."""
    return determinism.mode


@public(functional=False)
def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Set deterministic algorithms by a number or a word: "default" or 0, "warn" or 1, "error" or 2.

    Raises:
        ArgumentError: neither. ShapeError: another number or word.
    """
    text = "debug_mode must be str or int, but got {}"
    require(isinstance(debug_mode, (int, str)), ArgumentError, text, type(debug_mode))
    expected = "one of `default`, `warn`, `error`" if isinstance(debug_mode, str) else "0, 1, or 2"
    mode = _WORDS.get(debug_mode, -1) if isinstance(debug_mode, str) else debug_mode
    text = "invalid value of debug_mode, expected {}, but got {}"
    require(mode in (0, 1, 2), ShapeError, text, expected, debug_mode)
    determinism.set(int(mode), determinism.fill)


def fill_new(array: Any) -> None:
    """Fill new memory: with NaN, the largest integer, or True."""
    kind = dtypes.of(array.dtype)
    value: Any = float("nan") if kind.category >= dtypes.FLOATING else True
    if kind is not dtypes.bool_ and kind.category < dtypes.FLOATING:
        value = int(np.iinfo(array.dtype).max)
    wrap(array).fill_(value)
