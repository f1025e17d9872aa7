"""The base of transforms, and those that draw no random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

from ...nn.module import Module
from ...types.dtypes import dtype as Dtype
from . import functional as F
from .functional import InterpolationMode, as_mode

__all__ = ["CenterCrop", "Compose", "ConvertImageDtype", "Grayscale", "Lambda", "Normalize", "PILToTensor", "Pad"]
__all__ += ["Resize", "ToPILImage", "ToTensor"]


@dataclass(eq=False, repr=False)
class Transform(Module):
    """The base of transforms: what `function` makes of a picture and the fields, in their order.

    All fields are shown, but those in `brief` only where they differ from their default.
    """

    function: ClassVar[Callable[..., Any]]
    brief: ClassVar[tuple[str, ...]] = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        made = super().__new__(cls)
        Module.__init__(made)  # which the constructor that is made of the fields does not call
        return made

    def forward(self, img: Any) -> Any:
        """The changed picture."""
        return self._changed(img)

    def _changed(self, img: Any) -> Any:
        return self.function(img, *(getattr(self, each.name) for each in fields(self)))

    def __repr__(self) -> str:
        shown = []
        for each in fields(self):
            value = getattr(self, each.name)
            if each.repr and (each.name not in self.brief or value != each.default):
                shown.append(f"{each.name}={value.value if isinstance(value, InterpolationMode) else value}")
        return f"{type(self).__name__}({', '.join(shown)})"


def as_pair(size: Any) -> Any:
    """(height, width) from one number, a sequence of one, or one of two."""
    both = [int(size)] if isinstance(size, (int, float)) else size
    if len(both) not in (1, 2):
        raise ValueError("Please provide only two dimensions (h, w) for size.")
    return (both[0], both[0]) if len(both) == 1 else both


@dataclass(eq=False, repr=False)
class ToTensor(Transform):
    """Converts a PIL image or an array (height, width, channels) to a tensor, from 0 to 1: `functional.to_tensor`."""

    function = staticmethod(F.to_tensor)


@dataclass(eq=False, repr=False)
class PILToTensor(Transform):
    """Converts a PIL image to a tensor with the same elements: `functional.pil_to_tensor`."""

    function = staticmethod(F.pil_to_tensor)


@dataclass(eq=False, repr=False)
class ToPILImage(Transform):
    """Converts a tensor (channels, height, width) or an array to a PIL image: `functional.to_pil_image`."""

    function = staticmethod(F.to_pil_image)
    brief = ("mode",)
    mode: str | None = None


@dataclass(eq=False, repr=False)
class ConvertImageDtype(Transform):
    """Converts a tensor to another dtype, scaled so that white stays white: `functional.convert_image_dtype`."""

    function = staticmethod(F.convert_image_dtype)
    dtype: Dtype = field(repr=False)


@dataclass(eq=False, repr=False)
class Normalize(Transform):
    """Normalizes a tensor channel by channel, (tensor - mean) / std: `functional.normalize`."""

    function = staticmethod(F.normalize)
    mean: Sequence[float]
    std: Sequence[float]
    inplace: bool = field(default=False, repr=False)


@dataclass(eq=False, repr=False)
class Lambda(Transform):
    """Applies a function of the caller's as a transform."""

    lambd: Callable[[Any], Any] = field(repr=False)

    def __post_init__(self) -> None:
        if not callable(self.lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(self.lambd).__name__!r}")

    def _changed(self, img: Any) -> Any:
        return self.lambd(img)


@dataclass(eq=False, repr=False)
class Compose(Transform):
    """Composes transforms: applies one after the other.

    >>> print(Compose([ToTensor(), Normalize((0.5,), (0.5,))]))
    Compose(
        ToTensor()
        Normalize(mean=(0.5,), std=(0.5,))
    )
    """

    transforms: Sequence[Callable[[Any], Any]]

    def _changed(self, img: Any) -> Any:
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self) -> str:
        lines = [f"{each.name}={getattr(self, each.name)}" for each in fields(self)[1:]]
        return "\n    ".join([f"{type(self).__name__}(", *lines, *map(str, self.transforms)]) + "\n)"


@dataclass(eq=False, repr=False)
class Resize(Transform):
    """Resizes an image: `functional.resize`."""

    function = staticmethod(F.resize)
    size: int | Sequence[int]
    interpolation: Any = InterpolationMode.BILINEAR
    max_size: int | None = None
    antialias: bool | None = True

    def __post_init__(self) -> None:
        if not isinstance(self.size, (int, Sequence)):
            raise TypeError(f"Size should be int or sequence. Got {type(self.size)}")
        if isinstance(self.size, Sequence) and len(self.size) not in (1, 2):
            raise ValueError("If size is a sequence, it should have 1 or 2 values")
        self.interpolation = as_mode(self.interpolation)


@dataclass(eq=False, repr=False)
class CenterCrop(Transform):
    """Crops the middle of an image, of `size` (height, width) or a square: `functional.center_crop`."""

    function = staticmethod(F.center_crop)
    size: int | Sequence[int]

    def __post_init__(self) -> None:
        self.size = as_pair(self.size)


@dataclass(eq=False, repr=False)
class Pad(Transform):
    """Pads an image with a border; for errors see `functional.pad`."""

    function = staticmethod(F.pad)
    padding: int | Sequence[int]
    fill: Any = 0
    padding_mode: str = "constant"

    def __post_init__(self) -> None:
        F.border(self.padding, self.fill, self.padding_mode)


@dataclass(eq=False, repr=False)
class Grayscale(Transform):
    """Converts an image to grayscale, with 1 or 3 channels: `functional.rgb_to_grayscale`."""

    function = staticmethod(F.rgb_to_grayscale)
    num_output_channels: int = 1
