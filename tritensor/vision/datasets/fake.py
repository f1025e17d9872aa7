"""Pictures of noise."""

from __future__ import annotations

from typing import Any

from ...random import Generator, randint, randn
from ..transforms.functional import to_pil_image
from .vision import Transform, VisionDataset

__all__ = ["FakeData"]


class FakeData(VisionDataset):
    """Pictures of noise with random classes, the same for an index each time.

    Args:
        size: how many there are.
        image_size: (channels, height, width).
        num_classes: how many classes there are.
        transform, target_transform: what changes a PIL picture, and its class, an int64 tensor of no dimension.
        random_offset: what is added to an index before it seeds the noise.

    >>> FakeData(3, (3, 8, 8))[0][0].size
    (8, 8)
    """

    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, int, int] = (3, 224, 224),
        num_classes: int = 10,
        transform: Transform | None = None,
        target_transform: Transform | None = None,
        random_offset: int = 0,
    ) -> None:
        super().__init__(transform=transform, target_transform=target_transform)
        self.size = size
        self.num_classes = num_classes
        self.image_size = image_size
        self.random_offset = random_offset

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if index >= len(self):
            raise IndexError(f"{type(self).__name__} index out of range")
        generator = Generator().manual_seed(index + self.random_offset)  # the default one is left as it is
        noise = randn(*self.image_size, generator=generator)
        target = randint(0, self.num_classes, (1,), generator=generator)[0]
        picture, target = self._transformed(to_pil_image(noise), target)
        return picture, target.item()

    def __len__(self) -> int:
        return self.size
