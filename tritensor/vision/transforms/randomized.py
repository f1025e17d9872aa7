"""Transforms with random parameters."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import require, warn
from ...functional.creation.creation import empty, tensor
from ...random import rand, randint, randn, randperm
from ...tensors import Tensor
from . import functional as F
from .functional import InterpolationMode, as_mode
from .transforms import Compose, Transform, as_pair

__all__ = ["ColorJitter", "RandomAffine", "RandomApply", "RandomCrop", "RandomErasing", "RandomHorizontalFlip"]
__all__ += ["RandomGrayscale", "RandomResizedCrop", "RandomRotation", "RandomVerticalFlip"]

Range = Sequence[float] | None


def _uniform(low: float, high: float) -> float:
    """A number drawn from tritensor's generator, which every worker of a loader seeds with a number of its own."""
    return float(empty(1).uniform_(float(low), float(high)).item())


def _below(count: int) -> int:
    return int(randint(0, count, (1,)).item())


def _parts(height: int, width: int, scale: Sequence[float], ratio: Sequence[float]) -> Iterator[tuple[int, int]]:
    """Ten draws of two lengths, by the part of the area that their product has and by their ratio."""
    for _ in range(10):
        area = height * width * _uniform(scale[0], scale[1])
        aspect = math.exp(_uniform(math.log(ratio[0]), math.log(ratio[1])))
        yield round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))


def _check_sequence(value: object, name: str, *sizes: int) -> None:
    if not isinstance(value, Sequence) or len(value) not in sizes:
        kind = ValueError if isinstance(value, Sequence) else TypeError
        raise kind(f"{name} should be a sequence of length {' or '.join(map(str, sizes))}.")


def _angles(value: Any, name: str, *sizes: int) -> list[float]:
    """A range of angles: from -value to value if it is one number."""
    if isinstance(value, numbers.Real):
        if value < 0:
            raise ValueError(f"If {name} is a single number, it must be positive.")
        return [-float(value), float(value)]
    _check_sequence(value, name, *sizes)
    return [float(angle) for angle in value]


def _check_ranges(scale: Any, ratio: Any) -> None:
    for name, value in (("Scale", scale), ("Ratio", ratio)):
        require(isinstance(value, Sequence), TypeError, "{} should be a sequence", name)
    if scale[0] > scale[1] or ratio[0] > ratio[1]:
        warn("Scale and ratio should be of kind (min, max)")


def _fill(fill: tuple[int, ...] | int) -> Any:
    if not isinstance(fill, (Sequence, numbers.Number, type(None))):
        raise TypeError("Fill should be either a sequence or a number.")
    return 0 if fill is None else fill


@dataclass(eq=False, repr=False)
class RandomApply(Compose):
    """Applies transforms one after the other, with probability `p`; otherwise none."""

    p: float = 0.5

    def _changed(self, img: Any) -> Any:
        return super()._changed(img) if rand(1).item() <= self.p else img


@dataclass(eq=False, repr=False)
class RandomHorizontalFlip(Transform):
    """Flips an image horizontally (left and right) with probability `p`."""

    function = staticmethod(F.hflip)
    p: float = 0.5

    def _changed(self, img: Any) -> Any:
        return self.function(img) if rand(1).item() < self.p else img


class RandomVerticalFlip(RandomHorizontalFlip):
    """Flips an image vertically (top and bottom) with probability `p`."""

    function = staticmethod(F.vflip)


@dataclass(eq=False, repr=False)
class RandomGrayscale(Transform):
    """Converts an image to grayscale with probability `p`, with as many channels as before."""

    p: float = 0.1

    def _changed(self, img: object) -> Any:
        return F.rgb_to_grayscale(img, F.get_dimensions(img)[0]) if rand(1).item() < self.p else img


@dataclass(eq=False, repr=False)
class RandomCrop(Transform):
    """Crops a part of `size` (height, width) or a square from a random place of an image.

    It gets the border that `padding`, `fill` and `padding_mode` say first (see `functional.pad`) and, with
    `pad_if_needed`, one that makes it as large as the part. A ValueError if it is smaller.
    """

    size: int | Sequence[int]
    padding: int | Sequence[int] | None = None
    pad_if_needed: bool = field(default=False, repr=False)
    fill: Any = field(default=0, repr=False)
    padding_mode: str = field(default="constant", repr=False)

    def __post_init__(self) -> None:
        self.size = tuple(as_pair(self.size))

    @staticmethod
    def get_params(img: Any, output_size: Sequence[int]) -> tuple[int, int, int, int]:
        """Draw (top, left, height, width)."""
        _, h, w = F.get_dimensions(img)
        height, width = output_size
        if h < height or w < width:
            raise ValueError(f"Required crop size {(height, width)} is larger than input image size {(h, w)}")
        if (h, w) == (height, width):
            return 0, 0, h, w
        return _below(h - height + 1), _below(w - width + 1), height, width

    def _changed(self, img: Any) -> Any:
        size: Any = self.size
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        _, height, width = F.get_dimensions(img)
        missing = max(size[1] - width, 0), max(size[0] - height, 0)
        if self.pad_if_needed and any(missing):
            img = F.pad(img, missing, self.fill, self.padding_mode)
        return F.crop(img, *self.get_params(img, size))


@dataclass(eq=False, repr=False)
class RandomResizedCrop(Transform):
    """Crops a random part of an image and resizes it to `size` (height, width) or a square.

    Args:
        scale: the least and the most of the picture's area that the part has; ratio: of its width / height.
        interpolation, antialias: see `functional.resize`.
    """

    size: int | Sequence[int]
    scale: Sequence[float] = (0.08, 1.0)
    ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0)
    interpolation: Any = InterpolationMode.BILINEAR
    antialias: bool | None = True

    def __post_init__(self) -> None:
        self.size = as_pair(self.size)
        _check_ranges(self.scale, self.ratio)
        self.interpolation = as_mode(self.interpolation)

    @staticmethod
    def get_params(img: Any, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int, int, int]:
        """Draw (top, left, height, width); after ten draws that do not fit, the middle of the picture."""
        _, height, width = F.get_dimensions(img)
        for w, h in _parts(height, width, scale, ratio):
            if 0 < w <= width and 0 < h <= height:
                return _below(height - h + 1), _below(width - w + 1), h, w
        h, w = height, width
        if width / height < min(ratio):
            h = round(width / min(ratio))
        elif width / height > max(ratio):
            w = round(height * max(ratio))
        return (height - h) // 2, (width - w) // 2, h, w

    def _changed(self, img: Any) -> Any:
        part = self.get_params(img, self.scale, self.ratio)
        return F.resized_crop(img, *part, self.size, self.interpolation, self.antialias)

    def __repr__(self) -> str:
        scale, ratio = (tuple(round(value, 4) for value in values) for values in (self.scale, self.ratio))
        shown = f"size={self.size}, scale={scale}, ratio={ratio}, interpolation={self.interpolation.value}"
        return f"{type(self).__name__}({shown}, antialias={self.antialias})"


@dataclass(eq=False, repr=False)
class RandomRotation(Transform):
    """Rotates an image by a random angle from `degrees` (least, most), or from -degrees to degrees for one number."""

    brief = ("center",)
    degrees: Any
    interpolation: Any = InterpolationMode.NEAREST
    expand: bool = False
    center: Sequence[int] | None = None
    fill: Any = 0

    def __post_init__(self) -> None:
        self.interpolation = as_mode(self.interpolation)
        self.degrees = _angles(self.degrees, "degrees", 2)
        if self.center is not None:
            _check_sequence(self.center, "center", 2)
        self.fill = _fill(self.fill)

    @staticmethod
    def get_params(degrees: Sequence[float]) -> float:
        """Draw an angle."""
        return _uniform(degrees[0], degrees[1])

    def _changed(self, img: Any) -> Any:
        angle = self.get_params(self.degrees)
        return F.rotate(img, angle, self.interpolation, self.expand, self.center, self.fill)


@dataclass(eq=False, repr=False)
class RandomAffine(Transform):
    """Applies a random affine transform to an image: `functional.affine`.

    Args:
        degrees: (least, most), or one number for -degrees to degrees.
        translate: the most to move by, as fractions of (width, height).
        scale: (least, most).
        shear: (least, most) along x, the same and two more along y, or one number for -shear to shear along x.
        interpolation, fill, center: see `functional.affine`.
    """

    brief = ("translate", "scale", "shear", "interpolation", "fill", "center")
    degrees: Any
    translate: Range = None
    scale: Range = None
    shear: Any = None
    interpolation: Any = InterpolationMode.NEAREST
    fill: Any = 0
    center: Sequence[int] | None = None

    def __post_init__(self) -> None:
        self.interpolation = as_mode(self.interpolation)
        self.degrees = _angles(self.degrees, "degrees", 2)
        for name in ("translate", "scale", "center"):
            if getattr(self, name) is not None:
                _check_sequence(getattr(self, name), name, 2)
        if not all(0.0 <= part <= 1.0 for part in self.translate or ()):
            raise ValueError("translation values should be between 0 and 1")
        require(all(factor > 0 for factor in self.scale or ()), ValueError, "scale values should be positive")
        self.shear = None if self.shear is None else _angles(self.shear, "shear", 2, 4)
        self.fill = _fill(self.fill)

    @staticmethod
    def get_params(
        degrees: Sequence[float], translate: Range, scale_ranges: Range, shears: Range, img_size: Sequence[int]
    ) -> tuple[float, tuple[int, int], float, tuple[float, float]]:
        """Draw (angle, (to the right, down), scale, (shear along x, along y)) for a picture of (width, height)."""
        angle = _uniform(degrees[0], degrees[1])
        most = [part * length for part, length in zip(translate or (0.0, 0.0), img_size)]
        moved = (round(_uniform(-most[0], most[0])), round(_uniform(-most[1], most[1]))) if translate else (0, 0)
        scale = _uniform(scale_ranges[0], scale_ranges[1]) if scale_ranges is not None else 1.0
        x = _uniform(shears[0], shears[1]) if shears is not None else 0.0
        y = _uniform(shears[2], shears[3]) if shears is not None and len(shears) == 4 else 0.0
        return angle, moved, scale, (x, y)

    def _changed(self, img: Any) -> Any:
        drawn = self.get_params(self.degrees, self.translate, self.scale, self.shear, F.get_image_size(img))
        return F.affine(img, *drawn, self.interpolation, self.fill, self.center)


@dataclass(eq=False, repr=False)
class ColorJitter(Transform):
    """Color jitter: brightness, contrast, saturation and hue changed at random, in random order.

    Factors are from (least, most), or from 1 - number to 1 + number; the hue's turn is from -number to number."""

    brightness: Any = 0
    contrast: Any = 0
    saturation: Any = 0
    hue: Any = 0

    def __post_init__(self) -> None:
        for name in ("brightness", "contrast", "saturation"):
            setattr(self, name, _jitter(getattr(self, name), name))
        self.hue = _jitter(self.hue, "hue", 0.0, (-0.5, 0.5))

    @staticmethod
    def get_params(brightness: Range, contrast: Range, saturation: Range, hue: Range) -> tuple[Any, ...]:
        """Draw the order, and a factor for each that is not None."""
        ranges = (brightness, contrast, saturation, hue)
        return randperm(4), *(None if part is None else _uniform(*part) for part in ranges)

    def _changed(self, img: Any) -> Any:
        order, *factors = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        changes = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)
        for which in order.tolist():
            if factors[which] is not None:
                img = changes[which](img, factors[which])
        return img


def _jitter(value: object, name: str, center: float = 1.0, bound: tuple[float, float] = (0, math.inf)) -> Range:
    """The range of a factor; None if it is `center` alone, which changes nothing."""
    if isinstance(value, numbers.Real):
        if value < 0:
            raise ValueError(f"If {name} is a single number, it must be non negative.")
        low, high = center - float(value), center + float(value)
        low = max(low, 0.0) if center else low
    elif isinstance(value, (tuple, list)) and len(value) == 2:
        low, high = float(value[0]), float(value[1])
    else:
        raise TypeError(f"{name} should be a single number or a list/tuple with length 2.")
    if not bound[0] <= low <= high <= bound[1]:
        raise ValueError(f"{name} values should be between {bound}, but got {[low, high]}.")
    return None if low == high == center else (low, high)


@dataclass(eq=False, repr=False)
class RandomErasing(Transform):
    """Erases a random part of a tensor with probability `p` (https://arxiv.org/abs/1708.04896).

    Args:
        scale: the least and the most of the area that is erased; ratio: of its height / width.
        value: what is there instead: a number, one for each channel, or "random" for normal numbers.
        inplace: whether the tensor itself is changed.
    """

    p: float = 0.5
    scale: Sequence[float] = (0.02, 0.33)
    ratio: Sequence[float] = (0.3, 3.3)
    value: Any = 0
    inplace: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.value, (numbers.Number, str, tuple, list)):
            raise TypeError("Argument value should be either a number or str or a sequence")
        if isinstance(self.value, str) and self.value != "random":
            raise ValueError("If value is str, it should be 'random'")
        _check_ranges(self.scale, self.ratio)
        if self.scale[0] < 0 or self.scale[1] > 1:
            raise ValueError("Scale should be between 0 and 1")
        if self.p < 0 or self.p > 1:
            raise ValueError("Random erasing probability should be between 0 and 1")

    @staticmethod
    def get_params(
        img: Tensor, scale: Sequence[float], ratio: Sequence[float], value: Sequence[float] | None = None
    ) -> tuple[int, int, int, int, Tensor]:
        """Draw (top, left, height, width, values); after ten draws that do not fit, the tensor itself as it is."""
        channels, height, width = img.shape[-3:]
        for h, w in _parts(height, width, scale, ratio):
            if h < height and w < width:
                v = randn(channels, h, w) if value is None else tensor(list(value)).view(-1, 1, 1)
                return _below(height - h + 1), _below(width - w + 1), h, w, v.to(img.device)
        return 0, 0, height, width, img

    def _changed(self, img: Any) -> Any:
        if rand(1).item() >= self.p:
            return img
        given: Any = list(self.value) if isinstance(self.value, (list, tuple)) else [self.value]
        values = None if given == ["random"] else [float(value) for value in given]
        if values is not None and len(values) not in (1, img.shape[-3]):
            words = "If value is a sequence, it should have either a single value or"
            raise ValueError(f"{words} {img.shape[-3]} (number of input channels)")
        return F.erase(img, *self.get_params(img, self.scale, self.ratio, values), self.inplace)
