"""Transforms that move elements: sizes, crops, borders, flips, rotations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...tensor import Tensor
from . import functional as F
from .arguments import (
    InterpolationMode,
    RandomTransform,
    Transform,
    angles,
    as_mode,
    below,
    check_ranges,
    check_sequence,
    fill_value,
    pair,
    uniform,
)

__all__ = [
    "CenterCrop",
    "Pad",
    "RandomAffine",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomVerticalFlip",
    "Resize",
]


class Resize(Transform):
    """`functional.resize`: the picture in another size.

    Raises:
        TypeError: a size that is neither a number nor a sequence. ValueError: a sequence of other than 1 or 2 numbers.
    """

    shown = ("size", "interpolation", "max_size", "antialias")

    def __init__(
        self,
        size: int | Sequence[int],
        interpolation: Any = InterpolationMode.BILINEAR,
        max_size: int | None = None,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        if not isinstance(size, (int, Sequence)):
            raise TypeError(f"Size should be int or sequence. Got {type(size)}")
        if isinstance(size, Sequence) and len(size) not in (1, 2):
            raise ValueError("If size is a sequence, it should have 1 or 2 values")
        self.size = size
        self.max_size = max_size
        self.interpolation = as_mode(interpolation)
        self.antialias = antialias

    def forward(self, img: Any) -> Any:
        """The picture in the size."""
        return F.resize(img, self.size, self.interpolation, self.max_size, self.antialias)


class CenterCrop(Transform):
    """`functional.center_crop`: the middle of the picture, of `size` (height, width) or a square.

    Raises:
        ValueError: a size of more than two numbers.
    """

    shown = ("size",)

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__()
        self.size = pair(size)

    def forward(self, img: Any) -> Any:
        """The part of the picture."""
        return F.center_crop(img, self.size)


class Pad(Transform):
    """`functional.pad`: the picture with a border.

    Raises:
        TypeError: an argument of another type. ValueError: no such mode, or other than 1, 2 or 4 numbers.
    """

    shown = ("padding", "fill", "padding_mode")

    def __init__(self, padding: int | Sequence[int], fill: Any = 0, padding_mode: str = "constant") -> None:
        super().__init__()
        if not isinstance(padding, (int, tuple, list)):
            raise TypeError("Got inappropriate padding arg")
        if not isinstance(fill, (int, float, tuple, list)):
            raise TypeError("Got inappropriate fill arg")
        if padding_mode not in F.PADDING_MODES:
            raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
        if not isinstance(padding, int) and len(padding) not in (1, 2, 4):
            words = f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(padding)} element tuple"
            raise ValueError(words)
        self.padding = padding
        self.fill = fill
        self.padding_mode = padding_mode

    def forward(self, img: Any) -> Any:
        """The larger picture."""
        return F.pad(img, self.padding, self.fill, self.padding_mode)


class RandomCrop(Transform):
    """A part of the picture of `size` (height, width) or a square, from a random place.

    Args:
        padding, fill, padding_mode: a border that the picture gets first; see `functional.pad`.
        pad_if_needed: whether a picture that is too small gets one.

    Raises:
        ValueError: a size of more than two numbers; of a picture: it is smaller than the part.
    """

    shown = ("size", "padding")

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: Any = 0,
        padding_mode: str = "constant",
    ) -> None:
        super().__init__()
        self.size = tuple(pair(size))
        self.padding = padding
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self.padding_mode = padding_mode

    @staticmethod
    def get_params(img: Any, output_size: Sequence[int]) -> tuple[int, int, int, int]:
        """Draw (top, left, height, width)."""
        _, h, w = F.get_dimensions(img)
        height, width = output_size
        if h < height or w < width:
            raise ValueError(f"Required crop size {(height, width)} is larger than input image size {(h, w)}")
        if (h, w) == (height, width):
            return 0, 0, h, w
        return below(h - height + 1), below(w - width + 1), height, width

    def forward(self, img: Any) -> Any:
        """The part of the picture."""
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        _, height, width = F.get_dimensions(img)
        if self.pad_if_needed:
            for missing, border in ((self.size[1] - width, (1, 0)), (self.size[0] - height, (0, 1))):
                if missing > 0:
                    img = F.pad(img, [missing * side for side in border], self.fill, self.padding_mode)
        return F.crop(img, *self.get_params(img, self.size))


class RandomResizedCrop(Transform):
    """A random part of the picture, resized to `size` (height, width) or a square.

    Args:
        scale: the least and the most of the picture's area that the part has.
        ratio: the least and the most of width / height.
        interpolation, antialias: see `functional.resize`.

    Raises:
        TypeError: a scale or ratio that is no sequence. ValueError: a size of more than two numbers.
    """

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Any = InterpolationMode.BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.size = pair(size)
        check_ranges(scale, ratio)
        self.interpolation = as_mode(interpolation)
        self.antialias = antialias
        self.scale = scale
        self.ratio = ratio

    @staticmethod
    def get_params(img: Any, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int, int, int]:
        """Draw (top, left, height, width); after ten draws that do not fit, the middle of the picture."""
        _, height, width = F.get_dimensions(img)
        for _ in range(10):
            area = height * width * uniform(scale[0], scale[1])
            aspect = math.exp(uniform(math.log(ratio[0]), math.log(ratio[1])))
            w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if 0 < w <= width and 0 < h <= height:
                return below(height - h + 1), below(width - w + 1), h, w
        h, w = height, width
        if width / height < min(ratio):
            h = round(width / min(ratio))
        elif width / height > max(ratio):
            w = round(height * max(ratio))
        return (height - h) // 2, (width - w) // 2, h, w

    def forward(self, img: Any) -> Any:
        """The resized part of the picture."""
        part = self.get_params(img, self.scale, self.ratio)
        return F.resized_crop(img, *part, self.size, self.interpolation, self.antialias)

    def __repr__(self) -> str:
        scale, ratio = (tuple(round(value, 4) for value in values) for values in (self.scale, self.ratio))
        shown = f"size={self.size}, scale={scale}, ratio={ratio}, interpolation={self.interpolation.value}"
        return f"{type(self).__name__}({shown}, antialias={self.antialias})"


class RandomHorizontalFlip(RandomTransform):
    """With probability `p` the picture with left and right exchanged."""

    def changed(self, img: Any) -> Any:
        """`functional.hflip`."""
        return F.hflip(img)


class RandomVerticalFlip(RandomTransform):
    """With probability `p` the picture with top and bottom exchanged."""

    def changed(self, img: Any) -> Any:
        """`functional.vflip`."""
        return F.vflip(img)


def _fill_for(img: Any, fill: Any) -> Any:
    """A number for each channel of a tensor; what Pillow takes for a picture."""
    if not isinstance(img, Tensor):
        return fill
    return [float(fill)] * F.get_dimensions(img)[0] if isinstance(fill, (int, float)) else [float(f) for f in fill]


class RandomRotation(Transform):
    """`functional.rotate` by a random angle.

    Args:
        degrees: (least, most), or one number for -degrees to degrees.
        interpolation, expand, center, fill: see `functional.rotate`.

    Raises:
        TypeError: an argument of another type. ValueError: a negative number, or a sequence of another length.
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: Any = InterpolationMode.NEAREST,
        expand: bool = False,
        center: Sequence[int] | None = None,
        fill: Any = 0,
    ) -> None:
        super().__init__()
        self.interpolation = as_mode(interpolation)
        self.degrees = angles(degrees, "degrees", 2)
        if center is not None:
            check_sequence(center, "center", 2)
        self.center = center
        self.expand = expand
        self.fill = fill_value(fill)

    @staticmethod
    def get_params(degrees: Sequence[float]) -> float:
        """Draw an angle."""
        return uniform(degrees[0], degrees[1])

    def forward(self, img: Any) -> Any:
        """The turned picture."""
        angle = self.get_params(self.degrees)
        return F.rotate(img, angle, self.interpolation, self.expand, self.center, _fill_for(img, self.fill))

    def __repr__(self) -> str:
        shown = f"degrees={self.degrees}, interpolation={self.interpolation.value}, expand={self.expand}"
        shown += f", center={self.center}" if self.center is not None else ""
        return f"{type(self).__name__}({shown}, fill={self.fill})"


class RandomAffine(Transform):
    """`functional.affine` with random parameters.

    Args:
        degrees: (least, most), or one number for -degrees to degrees.
        translate: the most to move by, as fractions of (width, height).
        scale: (least, most).
        shear: (least, most) along x, the same and two more along y, or one number for -shear to shear along x.
        interpolation, fill, center: see `functional.affine`.

    Raises:
        TypeError: an argument of another type. ValueError: a number out of range, or a sequence of another length.
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: Any = InterpolationMode.NEAREST,
        fill: Any = 0,
        center: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.interpolation = as_mode(interpolation)
        self.degrees = angles(degrees, "degrees", 2)
        if translate is not None:
            check_sequence(translate, "translate", 2)
            if not all(0.0 <= part <= 1.0 for part in translate):
                raise ValueError("translation values should be between 0 and 1")
        self.translate = translate
        if scale is not None:
            check_sequence(scale, "scale", 2)
            if not all(factor > 0 for factor in scale):
                raise ValueError("scale values should be positive")
        self.scale = scale
        self.shear = None if shear is None else angles(shear, "shear", 2, 4)
        self.fill = fill_value(fill)
        if center is not None:
            check_sequence(center, "center", 2)
        self.center = center

    @staticmethod
    def get_params(
        degrees: Sequence[float],
        translate: Sequence[float] | None,
        scale_ranges: Sequence[float] | None,
        shears: Sequence[float] | None,
        img_size: Sequence[int],
    ) -> tuple[float, tuple[int, int], float, tuple[float, float]]:
        """Draw (angle, (to the right, down), scale, (shear along x, along y)) for a picture of (width, height)."""
        angle = uniform(degrees[0], degrees[1])
        most = [part * length for part, length in zip(translate or (0.0, 0.0), img_size)]
        moved = (round(uniform(-most[0], most[0])), round(uniform(-most[1], most[1]))) if translate else (0, 0)
        scale = uniform(scale_ranges[0], scale_ranges[1]) if scale_ranges is not None else 1.0
        x = uniform(shears[0], shears[1]) if shears is not None else 0.0
        y = uniform(shears[2], shears[3]) if shears is not None and len(shears) == 4 else 0.0
        return angle, moved, scale, (x, y)

    def forward(self, img: Any) -> Any:
        """The changed picture."""
        drawn = self.get_params(self.degrees, self.translate, self.scale, self.shear, F.get_image_size(img))
        return F.affine(img, *drawn, self.interpolation, _fill_for(img, self.fill), self.center)

    def __repr__(self) -> str:
        shown = [f"degrees={self.degrees}"]
        shown += [
            f"{name}={getattr(self, name)}"
            for name in ("translate", "scale", "shear")
            if getattr(self, name) is not None
        ]
        if self.interpolation is not InterpolationMode.NEAREST:
            shown.append(f"interpolation={self.interpolation.value}")
        shown += [f"fill={self.fill}"] if self.fill != 0 else []
        shown += [f"center={self.center}"] if self.center is not None else []
        return f"{type(self).__name__}({', '.join(shown)})"
