"""What several transforms have in common: random parameters, checks of arguments, how they print."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from enum import Enum
from typing import Any

from ...errors import warn
from ...functional.creation import empty
from ...nn.module import Module
from ...random import rand, randint

__all__ = [
    "InterpolationMode",
    "RandomTransform",
    "Transform",
    "angles",
    "as_mode",
    "below",
    "check_ranges",
    "check_sequence",
    "fill_value",
    "pair",
    "uniform",
]


class InterpolationMode(Enum):
    """How pictures are interpolated; `box`, `hamming` and `lanczos` are for PIL pictures only."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"

    @property
    def pillow(self) -> int:
        """Pillow's number of the mode."""
        return _PILLOW[self.value]


_PILLOW = {"nearest": 0, "nearest-exact": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}


def as_mode(interpolation: Any) -> InterpolationMode:
    """The mode that one of Pillow's numbers means, or the mode itself.

    Raises:
        TypeError: it is neither. ValueError: no such number.
    """
    if isinstance(interpolation, InterpolationMode):
        return interpolation
    if not isinstance(interpolation, int):
        words = "Argument interpolation should be a InterpolationMode or a corresponding Pillow integer constant"
        raise TypeError(f"{words}, not {interpolation!r}")
    for mode in InterpolationMode:
        if mode.pillow == int(interpolation):
            return mode
    raise ValueError(f"Pillow has no interpolation with the number {interpolation}")


def uniform(low: float, high: float) -> float:
    """A number drawn from tritensor's generator, which every worker of a loader seeds with a number of its own."""
    return float(empty(1).uniform_(float(low), float(high)).item())


def below(count: int) -> int:
    """A whole number from 0 to `count - 1`."""
    return int(randint(0, count, (1,)).item())


class Transform(Module):
    """The base of transforms that are modules. It prints the attributes that `shown` names."""

    shown: tuple[str, ...] = ()

    def __repr__(self) -> str:
        values = ((name, getattr(self, name)) for name in self.shown)
        shown = (f"{name}={value.value if isinstance(value, InterpolationMode) else value}" for name, value in values)
        return f"{type(self).__name__}({', '.join(shown)})"


class RandomTransform(Transform):
    """The base of transforms that leave the picture as it is but with probability `p`."""

    shown: tuple[str, ...] = ("p",)

    def __init__(self, p: float = 0.5) -> None:
        super().__init__()
        self.p = p

    def forward(self, img: Any) -> Any:
        """The picture, changed or not."""
        return self.changed(img) if rand(1).item() < self.p else img

    def changed(self, img: Any) -> Any:
        """The picture, changed."""
        raise NotImplementedError


def pair(size: Any) -> Any:
    """(height, width) from one number, a sequence of one, or one of two.

    Raises:
        ValueError: a sequence of more.
    """
    if isinstance(size, numbers.Number):
        return int(size), int(size)  # type: ignore[call-overload]
    if isinstance(size, Sequence) and len(size) == 1:
        return size[0], size[0]
    if len(size) != 2:
        raise ValueError("Please provide only two dimensions (h, w) for size.")
    return size


def check_sequence(value: Any, name: str, *sizes: int) -> None:
    """Raise unless `value` is a sequence of one of these lengths.

    Raises:
        TypeError: it is no sequence. ValueError: it has another length.
    """
    words = f"{name} should be a sequence of length {' or '.join(map(str, sizes))}."
    if not isinstance(value, Sequence):
        raise TypeError(words)
    if len(value) not in sizes:
        raise ValueError(words)


def angles(value: Any, name: str, *sizes: int) -> list[float]:
    """A range of angles: from -value to value if it is one number.

    Raises:
        ValueError: a negative number, or a sequence of another length. TypeError: neither number nor sequence.
    """
    if isinstance(value, numbers.Real):
        if value < 0:
            raise ValueError(f"If {name} is a single number, it must be positive.")
        return [-float(value), float(value)]
    check_sequence(value, name, *sizes)
    return [float(angle) for angle in value]


def check_ranges(scale: Any, ratio: Any) -> None:
    """Raise unless both are sequences, and warn unless they are (min, max).

    Raises:
        TypeError: one is no sequence.
    """
    for name, value in (("Scale", scale), ("Ratio", ratio)):
        if not isinstance(value, Sequence):
            raise TypeError(f"{name} should be a sequence")
    if scale[0] > scale[1] or ratio[0] > ratio[1]:
        warn("Scale and ratio should be of kind (min, max)")


def fill_value(fill: Any) -> Any:
    """The value of new elements: 0 for None.

    Raises:
        TypeError: neither a number nor a sequence.
    """
    if fill is not None and not isinstance(fill, (Sequence, numbers.Number)):
        raise TypeError("Fill should be either a sequence or a number.")
    return 0 if fill is None else fill
