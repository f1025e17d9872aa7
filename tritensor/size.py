"""The shape of a tensor."""

from __future__ import annotations

from typing import Any

from .public import public

__all__ = ["Size"]


@public(functional=False)
class Size(tuple[int, ...]):
    """A shape; a tuple that prints as PyTorch's does and counts elements.

    >>> Size((2, 3)), Size((2, 3)).numel()
    (tritensor.Size([2, 3]), 6)
    """

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        total = 1
        for extent in self:
            total *= extent
        return total

    def __repr__(self) -> str:
        return f"tritensor.Size({list(self)})"

    def __getitem__(self, index: Any) -> Any:
        picked = tuple.__getitem__(self, index)
        return Size(picked) if isinstance(index, slice) else picked
