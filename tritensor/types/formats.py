"""Memory formats: in which order in memory the dimensions of a tensor lie.

`contiguous_format` is row-major; `channels_last` has the second of four dimensions innermost, `channels_last_3d` that
of five; `preserve_format` means the order of the tensor that is copied.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..errors import ArgumentError, ShapeError
from ..ground.arguments import wrong_type
from ..ground.public import ROOT, public, publish
from . import layout

Shape = tuple[int, ...]
Strides = tuple[int, ...]


@public(functional=False)
class memory_format:
    """The memory format, the order of the dimensions in memory, such as `torch.channels_last`.

    >>> import tritensor as torch
    >>> torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride()
    (60, 1, 15, 3)
    """

    __module__ = "tritensor"

    __slots__ = ("name",)

    name: str

    def __new__(cls) -> memory_format:
        """Refuse: there are the four formats of the package only."""
        raise ArgumentError("cannot create 'tritensor.memory_format' instances")

    def __repr__(self) -> str:
        return f"{ROOT[0]}.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (self.name,)


_FORMATS: dict[str, memory_format] = {}


def _named(name: str) -> memory_format:
    """The format of a name, made at the first call, so that copies and unpickled formats are the same object."""
    if name not in _FORMATS:
        _FORMATS[name] = made = object.__new__(memory_format)
        made.name = name
        publish(name, made, functional=False)
    return _FORMATS[name]


contiguous_format = _named("contiguous_format")
preserve_format = _named("preserve_format")
channels_last = _named("channels_last")
channels_last_3d = _named("channels_last_3d")

# For the formats of one rank: the dimensions from the outermost to the innermost.
_ORDERS = {channels_last: (0, 2, 3, 1), channels_last_3d: (0, 2, 3, 4, 1)}


def check(call: str, value: object) -> None:
    """Raise unless `value` is a memory format or None.

    Raises:
        ArgumentError: it is neither.
    """
    if value is not None and not isinstance(value, memory_format):
        raise wrong_type(call, "memory_format", "tritensor.memory_format", value)


def strides_of(call: str, format: Any, shape: Shape, strides: Strides | None = None) -> Strides:
    """The strides of a new tensor of a shape in a format; None means `preserve_format`.

    Args:
        strides: of the tensor that is copied, for `preserve_format`.

    Raises:
        ArgumentError: no memory format. ShapeError: a shape of another rank, or nothing to preserve.
    """
    check(call, format)
    if format is contiguous_format:
        return layout.contiguous_strides(shape)
    order = _ORDERS.get(format)
    if order is None:
        if strides is None:
            raise ShapeError("unsupported memory format Preserve", f"{call}() copies no tensor")
        return preserved(shape, strides)
    if len(order) != len(shape):
        raise ShapeError(
            f"required rank {len(order)} tensor to use {format.name} format", f"the shape is {list(shape)}"
        )
    return packed(shape, order)


class Layout:
    """The layout of a tensor's elements in memory: `tritensor.strided`, or `tritensor.sparse_coo`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{ROOT[0]}.{self.name}"

    def __reduce__(self) -> str:
        return self.name


strided, sparse_coo = Layout("strided"), Layout("sparse_coo")
publish("strided", strided, functional=False)
publish("sparse_coo", sparse_coo, functional=False)


def packed(shape: Shape, order: tuple[int, ...]) -> Strides:
    """Strides without gaps, the dimensions in an order from the outermost to the innermost."""
    result = [0] * len(shape)
    step = 1
    for dim in reversed(order):
        result[dim] = step
        step *= shape[dim]
    return tuple(result)


def follows(shape: Shape, strides: Strides, format: memory_format) -> bool:
    """True if elements lie in memory in a format's order without gaps; to preserve means row-major here, as in PyTorch.

    >>> follows((2, 3, 4, 5), (60, 1, 15, 3), channels_last)
    True
    """
    order = _ORDERS.get(format)
    if order is None:
        return layout.is_contiguous(shape, strides)
    if len(order) != len(shape):
        return False
    return all(shape[dim] == 1 or strides[dim] == step for dim, step in enumerate(packed(shape, order)))


def suggested(shape: Shape, strides: Strides) -> memory_format:
    """The format that strides look like, gaps allowed: what `x.to(memory_format=)` compares with. Else row-major.

    >>> suggested((2, 3, 4, 5), (120, 1, 30, 6)), suggested((2, 3), (1, 2))
    (tritensor.channels_last, tritensor.contiguous_format)
    """
    for format, order in _ORDERS.items():
        if len(order) == len(shape) and strides[1] and 0 not in shape:
            least = 0
            for dim in reversed(order):
                # dimensions of size 1 say nothing, so those whose strides are all the same count as row-major
                if strides[dim] < least or (dim == 0 and least == strides[1]):
                    break
                least = strides[dim] * shape[dim]
            else:
                return format
    return contiguous_format


@lru_cache(4096)
def is_dense(shape: Shape, strides: Strides) -> bool:
    """True if every element of the memory between the first and the last is used, and once.

    >>> is_dense((2, 3), (1, 2)), is_dense((2, 3), (4, 1)), is_dense((2, 3), (0, 1))
    (True, False, False)
    """
    order = sorted((dim for dim, size in enumerate(shape) if size != 1), key=lambda dim: -strides[dim])
    return 0 in shape or layout.is_contiguous(*layout.permute(shape, strides, order))


@lru_cache(4096)
def is_channels_last(shape: Shape, strides: Strides) -> bool:
    """True if memory is dense, in the order of channels_last or channels_last_3d, and not in row-major order too.

    >>> is_channels_last((2, 3, 4, 5), (60, 1, 15, 3)), is_channels_last((2, 3, 4, 5), (60, 20, 5, 1))
    (True, False)
    """
    return suggested(shape, strides) is not contiguous_format and is_dense(shape, strides)


def overlaps(shape: Shape, strides: Strides) -> bool:
    """True if two elements may be one in memory: as in PyTorch also where strides interleave without meeting.

    >>> overlaps((2, 3), (3, 1)), overlaps((2, 3), (1, 1))
    (False, True)
    """
    reach = 0
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size > 1:
            if stride <= reach:
                return 0 not in shape
            reach += (size - 1) * stride
    return False


@lru_cache(4096)
def preserved(shape: Shape, strides: Strides) -> Strides:
    """The strides of a copy: the same, or where those have gaps or repeat elements, packed in the same order.

    >>> preserved((2, 3), (1, 2)), preserved((2, 3), (8, 1)), preserved((2, 3), (1, 8))
    ((1, 2), (3, 1), (1, 2))
    """
    if is_dense(shape, strides):
        return strides
    # from the innermost dimension on; an insertion sort, because dimensions of stride 0 compare as equal to any other
    order = list(range(len(shape)))[::-1]
    for position in range(1, len(order)):
        place = position
        for before in range(position - 1, -1, -1):
            first, second = order[before], order[place]
            near, far = abs(strides[first]), abs(strides[second])
            if near and far and (near > far or (near == far and shape[first] > shape[second])):
                order[before], order[place] = second, first
                place = before
            elif near and far and near < far:
                break
    return packed(shape, tuple(order[::-1]))


@lru_cache(4096)
def memory_order(shape: Shape, strides: Strides) -> tuple[int, ...]:
    """The dimensions from the outermost to the innermost of dense strides.

    >>> memory_order((2, 3, 4, 5), (60, 1, 15, 3))
    (0, 2, 3, 1)
    """
    return tuple(sorted(range(len(shape)), key=lambda dim: (-strides[dim], shape[dim] == 1)))


def reported_strides(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a NumPy array, in elements, as PyTorch has them.

    NumPy's are 0 for a dimension that an index made, and for all of an array without elements; PyTorch's are not.

    >>> reported_strides((1, 3, 1), (0, 1, 0))
    (3, 1, 1)
    """
    if 0 not in strides:
        return strides
    if 0 in shape:
        return layout.contiguous_strides(shape)
    found: list[int] = []
    beyond = 1
    for size, step in zip(reversed(shape), reversed(strides), strict=True):
        found.append(step if step or size > 1 else beyond)
        beyond = found[-1] * size
    return tuple(reversed(found))
