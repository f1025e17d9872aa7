"""Transforms that change elements where they are: colours, and parts that are erased."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

from ...functional.creation import tensor
from ...random import randn, randperm
from ...tensor import Tensor
from . import functional as F
from .arguments import RandomTransform, Transform, below, check_ranges, uniform

__all__ = ["ColorJitter", "Grayscale", "RandomErasing", "RandomGrayscale"]

Range = tuple[float, float] | None


class ColorJitter(Transform):
    """Brightness, contrast, saturation and hue changed at random, in random order.

    Args:
        brightness, contrast, saturation: (least, most) of the factor, or one number for 1 - number to 1 + number.
        hue: (least, most) of the turn, within -0.5 and 0.5, or one number for -number to number.

    Raises:
        TypeError: neither a number nor two. ValueError: one that is out of range.
    """

    shown = ("brightness", "contrast", "saturation", "hue")

    def __init__(self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0) -> None:
        super().__init__()
        self.brightness = _jitter(brightness, "brightness")
        self.contrast = _jitter(contrast, "contrast")
        self.saturation = _jitter(saturation, "saturation")
        self.hue = _jitter(hue, "hue", 0.0, (-0.5, 0.5))

    @staticmethod
    def get_params(
        brightness: Range, contrast: Range, saturation: Range, hue: Range
    ) -> tuple[Tensor, float | None, float | None, float | None, float | None]:
        """Draw the order, and a factor for each that is not None."""
        order = randperm(4)
        b, c, s, h = (None if part is None else uniform(*part) for part in (brightness, contrast, saturation, hue))
        return order, b, c, s, h

    def forward(self, img: Any) -> Any:
        """The picture in other colours."""
        order, *factors = self.get_params(self.brightness, self.contrast, self.saturation, self.hue)
        changes = (F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue)
        for which in order.tolist():
            if factors[which] is not None:
                img = changes[which](img, factors[which])
        return img


def _jitter(value: Any, name: str, center: float = 1.0, bound: tuple[float, float] = (0, math.inf)) -> Range:
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


class Grayscale(Transform):
    """`functional.rgb_to_grayscale`: the picture in grey, with 1 or 3 channels."""

    shown = ("num_output_channels",)

    def __init__(self, num_output_channels: int = 1) -> None:
        super().__init__()
        self.num_output_channels = num_output_channels

    def forward(self, img: Any) -> Any:
        """The grey picture."""
        return F.rgb_to_grayscale(img, self.num_output_channels)


class RandomGrayscale(RandomTransform):
    """With probability `p` the picture in grey, with as many channels as it has."""

    def __init__(self, p: float = 0.1) -> None:
        super().__init__(p)

    def changed(self, img: Any) -> Any:
        """`functional.rgb_to_grayscale`."""
        return F.rgb_to_grayscale(img, F.get_image_num_channels(img))


class RandomErasing(RandomTransform):
    """With probability `p` a tensor of which a random part is erased (https://arxiv.org/abs/1708.04896).

    Args:
        scale: the least and the most of the area that is erased.
        ratio: the least and the most of height / width.
        value: what is there instead: a number, one for each channel, or "random" for normal numbers.
        inplace: whether the tensor itself is changed.

    Raises:
        TypeError: an argument of another type. ValueError: a number out of range; of a tensor: another number of
            channels than of values.
    """

    shown = ("p", "scale", "ratio", "value", "inplace")

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: Any = 0,
        inplace: bool = False,
    ) -> None:
        super().__init__(p)
        if not isinstance(value, (numbers.Number, str, tuple, list)):
            raise TypeError("Argument value should be either a number or str or a sequence")
        if isinstance(value, str) and value != "random":
            raise ValueError("If value is str, it should be 'random'")
        check_ranges(scale, ratio)
        if scale[0] < 0 or scale[1] > 1:
            raise ValueError("Scale should be between 0 and 1")
        if p < 0 or p > 1:
            raise ValueError("Random erasing probability should be between 0 and 1")
        self.scale = scale
        self.ratio = ratio
        self.value = value
        self.inplace = inplace

    @staticmethod
    def get_params(
        img: Tensor, scale: Sequence[float], ratio: Sequence[float], value: Sequence[float] | None = None
    ) -> tuple[int, int, int, int, Tensor]:
        """Draw (top, left, height, width, values); after ten draws that do not fit, the tensor itself as it is."""
        channels, height, width = img.shape[-3:]
        for _ in range(10):
            area = height * width * uniform(scale[0], scale[1])
            aspect = math.exp(uniform(math.log(ratio[0]), math.log(ratio[1])))
            h, w = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
            if h < height and w < width:
                v = randn(channels, h, w) if value is None else tensor(list(value)).view(-1, 1, 1)
                return below(height - h + 1), below(width - w + 1), h, w, v.to(img.device)
        return 0, 0, height, width, img

    def changed(self, img: Any) -> Any:
        """`functional.erase`."""
        given: Any = list(self.value) if isinstance(self.value, (list, tuple)) else [self.value]
        values = None if given == ["random"] else [float(value) for value in given]
        if values is not None and len(values) not in (1, img.shape[-3]):
            words = "If value is a sequence, it should have either a single value or"
            raise ValueError(f"{words} {img.shape[-3]} (number of input channels)")
        return F.erase(img, *self.get_params(img, self.scale, self.ratio, values), self.inplace)
