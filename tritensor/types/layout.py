"""Shape-and-stride arithmetic for views, which need no copy.

A layout is a shape, strides and an offset, all counted in elements. Functions here take and return plain tuples and do
not depend on memory or dtypes. Messages begin with PyTorch's words.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

from ..errors import ArgumentError, RangeError, ShapeError
from ..ground.arguments import whole
from .size import check_extents, check_rank

Shape = tuple[int, ...]
Strides = tuple[int, ...]


class NotViewable(ShapeError):
    """The requested shape needs a copy with these strides."""


@lru_cache(maxsize=4096)
def contiguous_strides(shape: Shape) -> Strides:
    """Strides of a row-major array of this shape.

    A dimension of size 0 counts as 1, as in PyTorch. Cached: a hit takes 60 ns, computing it for rank 3 takes 300.

    >>> contiguous_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size or 1
    return tuple(reversed(strides))


def is_contiguous(shape: Shape, strides: Strides) -> bool:
    """True if elements lie in memory in row-major order without gaps (strides of dimensions of size 1 do not matter).

    >>> is_contiguous((2, 1, 3), (3, 77, 1)), is_contiguous((2, 3), (1, 2))
    (True, False)
    """
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 0:
            return True
        if size != 1:
            if stride != step:
                return 0 in shape
            step *= size
    return True


def integers(call: str, name: str, values: tuple[Any, ...], named: Any = None) -> Shape:
    """The integers of a call's argument: passed one by one, as one sequence, or as a sequence by the argument's name.

    >>> integers("zeros", "size", (2, 3)), integers("zeros", "size", (), [2, 3])
    ((2, 3), (2, 3))

    Raises:
        ArgumentError: something else, or the argument was passed twice.
    """
    given: Any = values
    if named is not None:
        if values:
            raise ArgumentError(f"{call}() got multiple values for argument '{name}'")
        given = named
    elif len(values) == 1 and isinstance(values[0], (tuple, list)):
        given = values[0]
    try:
        if not given or given[0].__class__ is not bool:  # PyTorch looks at the first one
            return tuple([value.__index__() for value in given])
    except (AttributeError, TypeError):
        pass
    sequence = isinstance(given, (tuple, list))
    if sequence:
        wrong = next(
            (each for each in given if isinstance(each, bool) or not hasattr(type(each), "__index__")), given[-1]
        )
    else:
        wrong = given
    words = f"{call}(): argument '{name}' must be tuple of ints, not {type(wrong).__name__}"
    raise ArgumentError(words, f"got {given!r}")


def check_shape(call: str, name: str, values: tuple[Any, ...], named: Any = None) -> Shape:
    """`integers` of which none is negative.

    Raises:
        ShapeError: a negative size. ArgumentError: a size that is no integer.
    """
    sizes = integers(call, name, values, named)
    if sizes and min(sizes) < 0:
        raise ShapeError(f"Trying to create tensor with negative dimension {min(sizes)}: {list(sizes)}")
    check_extents(sizes)
    return sizes


def normalize_dim(dim: int, ndim: int) -> int:
    """Count a dimension from the front; a 0-dim tensor takes 0 and -1, as in PyTorch.

    >>> normalize_dim(-1, 3)
    2

    Raises:
        RangeError: no such dimension.
    """
    extent = ndim or 1
    try:
        place = operator.index(dim)
    except (TypeError, ShapeError):
        raise _no_integer("a dimension", dim) from None
    if not -extent <= place < extent:
        raise _no_dimension(dim, place, extent)
    return place + extent if place < 0 else place


def _no_integer(what: str, value: object) -> ArgumentError:
    return ArgumentError(f"{what} must be an int, not {type(value).__name__}")


def _no_dimension(dim: Any, place: int, extent: int) -> Exception:
    """The error for a dimension that is not there, or for what was no dimension in the first place."""
    if isinstance(dim, bool) or (hasattr(dim, "ndim") and dim.ndim > 0):
        return _no_integer("a dimension", dim)
    if not -(1 << 63) <= place < 1 << 63:
        return ValueError("Overflow when unpacking long long")
    return RangeError(f"Dimension out of range (expected to be in range of [{-extent}, {extent - 1}], but got {place})")


def normalize_dims(dim: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Dimensions counted from the front, in the order given; None means all of them.

    >>> normalize_dims((-1, 0), 3), normalize_dims(None, 2)
    ((2, 0), (0, 1))

    Raises:
        RangeError: no such dimension. ShapeError: one named twice.
    """
    if dim is None:
        return tuple(range(ndim))
    if not isinstance(dim, (tuple, list)):
        return (normalize_dim(dim, ndim),)  # type: ignore[arg-type]
    try:
        dims = tuple(normalize_dim(each, ndim) for each in dim)
    except RangeError:
        for each in dim:  # what is no dimension at all is told first, as in PyTorch
            if not hasattr(type(each), "__index__"):
                raise _no_integer("a dimension", each) from None
        raise
    for position, each in enumerate(dims):
        if each in dims[:position]:
            raise ShapeError(f"dim {each} appears multiple times in the list of dims")
    return dims


def permutation(dims: Sequence[int], ndim: int) -> tuple[int, ...]:
    """An order of all dimensions, counted from the front.

    >>> permutation((-1, 0, 1), 3)
    (2, 0, 1)

    Raises:
        ShapeError: too few, too many, or one named twice. RangeError: no such dimension.
    """
    if len(dims) != ndim:
        raise ShapeError(
            "permute: number of dimensions in the tensor input does not match the length of the desired ordering of "
            f"dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(dims)}"
        )
    if sorted(dims) == list(range(ndim)):
        return tuple(dims)
    order = tuple(normalize_dim(dim, ndim) for dim in dims)
    if len(set(order)) != ndim:
        raise ShapeError("permute(): duplicate dims are not allowed.", f"got {tuple(dims)}")
    return order


def invert(order: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes this one.

    >>> invert((2, 0, 1))
    (1, 2, 0)
    """
    back = [0] * len(order)
    for position, dim in enumerate(order):
        back[dim] = position
    return tuple(back)


def permute(shape: Shape, strides: Strides, order: Sequence[int]) -> tuple[Shape, Strides]:
    """Shape and strides with the dimensions in a new order (an order that `permutation` has checked)."""
    return tuple([shape[dim] for dim in order]), tuple([strides[dim] for dim in order])


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape that all of these broadcast to.

    >>> broadcast_shapes((2, 1, 3), (4, 1))
    (2, 4, 3)

    Raises:
        ShapeError: two sizes differ and neither is 1.
    """
    result: Shape = ()
    for shape in shapes:
        if shape != result and shape:
            result = _broadcast_pair(result, shape) if result else shape
    return result


def _broadcast_pair(first: Shape, second: Shape) -> Shape:
    rank = max(len(first), len(second))
    a = (1,) * (rank - len(first)) + first
    b = (1,) * (rank - len(second)) + second
    for dim in range(rank - 1, -1, -1):
        if a[dim] != b[dim] and a[dim] != 1 and b[dim] != 1:
            raise ShapeError(
                f"The size of tensor a ({a[dim]}) must match the size of tensor b ({b[dim]}) at non-singleton "
                f"dimension {dim}",
                f"the shapes are {first} and {second}",
            )
    return tuple([y if x == 1 else x for x, y in zip(a, b, strict=True)])


def broadcast_strides(shape: Shape, strides: Strides, target: Shape) -> Strides:
    """Strides that broadcast an array of `shape` to `target`: 0 where a dimension is new or expanded from size 1.

    >>> broadcast_strides((3, 1), (1, 1), (2, 3, 4))
    (0, 1, 0)

    Raises:
        ShapeError: `target` has fewer dimensions, or a size differs and is not 1.
    """
    extra = len(target) - len(shape)
    if extra < 0:
        raise ShapeError(
            f"expand(size={list(target)}): the number of sizes provided ({len(target)}) must be greater or equal to "
            f"the number of dimensions in the tensor ({len(shape)})"
        )
    result = [0] * extra
    for dim, (size, stride) in enumerate(zip(shape, strides, strict=True), extra):
        if size == target[dim]:
            result.append(stride)
        elif size == 1:
            result.append(0)
        else:
            raise ShapeError(
                f"The expanded size of the tensor ({target[dim]}) must match the existing size ({size}) at "
                f"non-singleton dimension {dim}.  Target sizes: {list(target)}.  Tensor sizes: {list(shape)}"
            )
    return tuple(result)


def infer_shape(shape: Sequence[int], size: int) -> Shape:
    """A shape for `size` elements, with a -1 replaced by the size that the others leave.

    >>> infer_shape((2, -1), 6)
    (2, 3)

    Raises:
        ShapeError: the product of the sizes is not `size`, two of them are -1, or the value of -1 is ambiguous.
    """
    check_rank(len(shape))
    known, missing = 1, -1
    for dim, extent in enumerate(shape):
        if extent == -1:
            if missing >= 0:
                raise ShapeError("only one dimension can be inferred", f"the shape is {list(shape)}")
            missing = dim
        elif extent < 0:
            raise ShapeError(f"invalid shape dimension {extent} at index {dim} of shape {list(shape)}")
        else:
            known *= extent
    if missing < 0:
        if known == size:
            if not size:
                check_extents(shape, words="numel: integer multiplication overflow")
            return tuple(shape)
    elif known and size % known == 0:
        return (*shape[:missing], size // known, *shape[missing + 1 :])
    elif known == 0 and size == 0:
        raise ShapeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    raise ShapeError(f"shape '{list(shape)}' is invalid for input of size {size}")


def reshape_strides(shape: Shape, strides: Strides, target: Shape) -> Strides:
    """Strides by which the same elements, in the same order, have the shape `target` (of the same number of elements).

    >>> reshape_strides((2, 3, 4), (12, 4, 1), (6, 2, 2))
    (4, 2, 1)

    Raises:
        NotViewable: there are no such strides; a copy is needed.
    """
    if 0 in shape or is_contiguous(shape, strides):
        return contiguous_strides(target)
    # Walk both shapes from the back. `chunk` old dimensions form one evenly spaced run; new dimensions are cut from it.
    result = [0] * len(target)
    position = len(target) - 1
    inner = strides[-1]
    old, new = 1, 1
    for dim in range(len(shape) - 1, -1, -1):
        old *= shape[dim]
        if dim and (shape[dim - 1] == 1 or strides[dim - 1] == old * inner):
            continue
        while position >= 0 and (new < old or target[position] == 1):
            result[position] = new * inner
            new *= target[position]
            position -= 1
        if new != old:
            raise NotViewable(
                "view size is not compatible with input tensor's size and stride (at least one dimension spans "
                "across two contiguous subspaces). Use .reshape(...) instead.",
                f"the shape is {shape} with strides {strides}, asked for {target}",
            )
        if dim:
            inner = strides[dim - 1]
            old, new = 1, 1
    return tuple(result)


@lru_cache(4096)
def reshaped(shape: Shape, strides: Strides, target: Shape) -> tuple[Shape, Strides]:
    """`infer_shape` and `reshape_strides` together, cached: a hit takes 0.2 us instead of 2.

    >>> reshaped((6,), (1,), (2, -1))
    ((2, 3), (3, 1))

    Raises:
        NotViewable: a copy is needed. ShapeError: another number of elements.
    """
    found = infer_shape(target, prod(shape))
    return found, reshape_strides(shape, strides, found)


def normalize_index(position: int, size: int, dim: int) -> int:
    """An index counted from the front.

    >>> normalize_index(-1, 5, 0)
    4

    Raises:
        RangeError: out of bounds; an index never wraps.
    """
    position = whole("select", "index", position)
    if not -size <= position < size:
        raise RangeError(f"index {position} is out of bounds for dimension {dim} with size {size}")
    return position + size if position < 0 else position


def index(shape: Shape, strides: Strides, offset: int, key: Any) -> tuple[Shape, Strides, int]:
    """Basic indexing: integers, slices with any step but 0, None and Ellipsis, alone or in a tuple.

    >>> index((4, 5), (5, 1), 0, (-1, slice(None, None, 2)))
    ((3,), (2,), 15)

    Raises:
        RangeError: an index out of bounds, or more indices than dimensions. ArgumentError: anything but a basic index.
    """
    keys = key if type(key) is tuple else (key,)
    indexed = sum(1 for each in keys if each is not None and each is not Ellipsis)
    if indexed > len(shape):
        if not shape:
            raise RangeError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python to convert a 0-dim tensor to a number",
                f"the index is {key!r}",
            )
        raise RangeError(f"too many indices for tensor of dimension {len(shape)}")
    sizes: list[int] = []
    steps: list[int] = []
    dim = 0
    for each in keys:
        if each is None:
            sizes.append(1)
            steps.append(0)
        elif each is Ellipsis:
            skip = len(shape) - indexed
            sizes.extend(shape[dim : dim + skip])
            steps.extend(strides[dim : dim + skip])
            # a second ellipsis covers no dimensions, as in PyTorch
            dim, indexed = dim + skip, len(shape)
        elif type(each) is slice:
            first, size, step = _slice(each, shape[dim])
            sizes.append(size)
            steps.append(strides[dim] * step)
            if size:
                offset += first * strides[dim]
            dim += 1
        else:
            offset += normalize_index(_integer(each), shape[dim], dim) * strides[dim]
            dim += 1
    check_rank(len(sizes) + len(shape) - dim)
    return (*sizes, *shape[dim:]), (*steps, *strides[dim:]), offset


def _slice(part: slice, size: int) -> tuple[int, int, int]:
    if part.start is None and part.stop is None and part.step is None:
        return 0, size, 1
    first, stop, step = part.indices(size)
    return first, len(range(first, stop, step)), step


def _integer(each: int) -> int:
    if type(each) is int:
        return each
    if not isinstance(each, bool):
        try:
            return operator.index(each)
        except TypeError:
            pass
    raise ArgumentError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
        f"(got {type(each).__name__})"
    )


def span(shape: Shape, strides: Strides, offset: int) -> tuple[int, int]:
    """The lowest element of memory that is used and one past the highest; both are `offset` if there are no elements.

    >>> span((2, 3), (3, -1), 10)
    (8, 14)
    """
    if 0 in shape:
        return offset, offset
    low = high = offset
    for size, stride in zip(shape, strides, strict=True):
        reach = (size - 1) * stride
        if reach < 0:
            low += reach
        else:
            high += reach
    return low, high + 1


def collapse(shape: Shape, *strides: Strides) -> tuple[Shape, tuple[Strides, ...]]:
    """The fewest dimensions that a kernel can loop over to visit several arrays of one shape in the same order.

    Dimensions of size 1 are dropped, and neighbours that are evenly spaced in every array are merged.

    >>> collapse((2, 3, 4), (12, 4, 1), (0, 4, 1))
    ((2, 12), ((12, 1), (0, 1)))
    """
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for dim, size in enumerate(shape):
        if size == 1:
            continue
        if sizes and all(kept[-1] == size * each[dim] for kept, each in zip(steps, strides, strict=True)):
            sizes[-1] *= size
            for kept, each in zip(steps, strides, strict=True):
                kept[-1] = each[dim]
        else:
            sizes.append(size)
            for kept, each in zip(steps, strides, strict=True):
                kept.append(each[dim])
    return tuple(sizes), tuple([tuple(kept) for kept in steps])
