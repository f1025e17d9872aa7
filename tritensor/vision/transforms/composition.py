"""Transforms made of others, and those from pictures to tensors and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from PIL import Image

from ...dtypes import dtype as Dtype
from ...functional.creation import tensor
from ...random import multinomial, rand
from ...tensor import Tensor
from . import functional as F
from .arguments import Transform, below

__all__ = [
    "Compose",
    "ConvertImageDtype",
    "Lambda",
    "Normalize",
    "PILToTensor",
    "RandomApply",
    "RandomChoice",
    "ToPILImage",
    "ToTensor",
]


def _listed(name: str, *lines: Any) -> str:
    return "\n    ".join([f"{name}(", *map(str, lines)]) + "\n)"


class _Function:
    """The base of transforms that are no modules."""

    def __call__(self, pic: Any) -> Any:
        """What the transform makes of a picture."""
        return self._made_of(pic)

    def _made_of(self, pic: Any) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Compose(_Function):
    """One transform after the other.

    >>> print(Compose([ToTensor(), Normalize((0.5,), (0.5,))]))
    Compose(
        ToTensor()
        Normalize(mean=(0.5,), std=(0.5,))
    )
    """

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = transforms

    def _made_of(self, pic: Any) -> Any:
        for transform in self.transforms:
            pic = transform(pic)
        return pic

    def __repr__(self) -> str:
        return _listed(type(self).__name__, *self.transforms)


class ToTensor(_Function):
    """`functional.to_tensor`: a PIL picture or an array (height, width, channels) to a tensor, from 0 to 1."""

    _made_of = staticmethod(F.to_tensor)


class PILToTensor(_Function):
    """`functional.pil_to_tensor`: a PIL picture to a tensor with the same elements."""

    _made_of = staticmethod(F.pil_to_tensor)


class ToPILImage(_Function):
    """`functional.to_pil_image`: a tensor (channels, height, width) or an array to a PIL picture, of this mode."""

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def _made_of(self, pic: Any) -> Image.Image:
        return F.to_pil_image(pic, self.mode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.mode is None else f'mode={self.mode}'})"


class ConvertImageDtype(Transform):
    """`functional.convert_image_dtype`: a tensor in another dtype, scaled so that white stays white."""

    def __init__(self, dtype: Dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, image: Tensor) -> Tensor:
        """The tensor in the dtype."""
        return F.convert_image_dtype(image, self.dtype)


class Normalize(Transform):
    """`functional.normalize`: (tensor - mean) / std, channel by channel."""

    shown = ("mean", "std")

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        super().__init__()
        self.mean = mean
        self.std = std
        self.inplace = inplace

    def forward(self, tensor: Tensor) -> Tensor:
        """The normalized tensor, of the same shape and dtype."""
        return F.normalize(tensor, self.mean, self.std, self.inplace)


class Lambda(_Function):
    """A function of one's own.

    Raises:
        TypeError: it cannot be called.
    """

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__!r}")
        self.lambd = lambd

    def _made_of(self, pic: Any) -> Any:
        return self.lambd(pic)


class RandomApply(Transform):
    """One transform after the other, with probability `p`; otherwise none."""

    def __init__(self, transforms: Any, p: float = 0.5) -> None:
        super().__init__()
        self.transforms = transforms
        self.p = p

    def forward(self, img: Any) -> Any:
        """The picture, changed or not."""
        if rand(1).item() <= self.p:
            for transform in self.transforms:
                img = transform(img)
        return img

    def __repr__(self) -> str:
        return _listed(type(self).__name__, f"p={self.p}", *self.transforms)


class RandomChoice:
    """One of several transforms, each as likely as another or by the weights `p`.

    Raises:
        TypeError: no sequence.
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]], p: Sequence[float] | None = None) -> None:
        if not isinstance(transforms, Sequence):
            raise TypeError("Argument transforms should be a sequence")
        if p is not None and not isinstance(p, Sequence):
            raise TypeError("Argument p should be a sequence")
        self.transforms = transforms
        self.p = p

    def __call__(self, *args: Any) -> Any:
        """What the transform that was chosen makes of the arguments."""
        if self.p is None:
            chosen = below(len(self.transforms))
        else:
            chosen = int(multinomial(tensor([float(weight) for weight in self.p]), 1).item())
        return self.transforms[chosen](*args)

    def __repr__(self) -> str:
        return f"{_listed(type(self).__name__, *self.transforms)}(p={self.p})"
