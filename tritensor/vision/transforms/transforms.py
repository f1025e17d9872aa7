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
    """`functional.to_tensor`: a PIL picture or an array (height, width, channels) to a tensor, from 0 to 1."""

    function = staticmethod(F.to_tensor)


@dataclass(eq=False, repr=False)
class PILToTensor(Transform):
    """`functional.pil_to_tensor`: a PIL picture to a tensor with the same elements."""

    function = staticmethod(F.pil_to_tensor)


@dataclass(eq=False, repr=False)
class ToPILImage(Transform):
    """`functional.to_pil_image`: a tensor (channels, height, width) or an array to a PIL picture, of this mode."""

    function = staticmethod(F.to_pil_image)
    brief = ("mode",)
    mode: str | None = None


@dataclass(eq=False, repr=False)
class ConvertImageDtype(Transform):
    """`functional.convert_image_dtype`: a tensor in another dtype, scaled so that white stays white."""

    function = staticmethod(F.convert_image_dtype)
    dtype: Dtype = field(repr=False)


@dataclass(eq=False, repr=False)
class Normalize(Transform):
    """`functional.normalize`: (tensor - mean) / std, channel by channel."""

    function = staticmethod(F.normalize)
    mean: Sequence[float]
    std: Sequence[float]
    inplace: bool = field(default=False, repr=False)


@dataclass(eq=False, repr=False)
class Lambda(Transform):
    """A function of one's own."""

    lambd: Callable[[Any], Any] = field(repr=False)

    def __post_init__(self) -> None:
        if not callable(self.lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(self.lambd).__name__!r}")

    def _changed(self, img: Any) -> Any:
        return self.lambd(img)


@dataclass(eq=False, repr=False)
class Compose(Transform):
    """One transform after the other.

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
    """`functional.resize`: the picture in another size."""

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
    """`functional.center_crop`: the middle of the picture, of `size` (height, width) or a square."""

    function = staticmethod(F.center_crop)
    size: int | Sequence[int]

    def __post_init__(self) -> None:
        self.size = as_pair(self.size)


@dataclass(eq=False, repr=False)
class Pad(Transform):
    """`functional.pad`: the picture with a border; for errors see there."""

    function = staticmethod(F.pad)
    padding: int | Sequence[int]
    fill: Any = 0
    padding_mode: str = "constant"

    def __post_init__(self) -> None:
        F.border(self.padding, self.fill, self.padding_mode)


@dataclass(eq=False, repr=False)
class Grayscale(Transform):
    """`functional.rgb_to_grayscale`: the picture in grey, with 1 or 3 channels."""

    function = staticmethod(F.rgb_to_grayscale)
    num_output_channels: int = 1
