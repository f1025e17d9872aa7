"""`einsum`: sums of products by subscripts, as a chain of matrix products."""

from __future__ import annotations

import string
from math import prod
from typing import Any

from ...errors import ArgumentError, ShapeError, require
from ...ground.public import public
from ...tensors import Tensor
from ..creation import ranges
from .linear_algebra import matmul

# The dimensions that an ellipsis covers are labelled by integers, which differ from all subscripts: 0 for the last, ...
Label = Any
Labels = list[Label]


@public(autocast={"cuda": "lower"})
def einsum(equation: str, *operands: Any) -> Tensor:
    """Einstein summation: the sum of products defined by an equation of subscripts.

    A subscript that two operands share names one dimension of both; one that is missing in the output is summed over;
    `...` covers the dimensions that no subscript names. Operands are multiplied from left to right.

    >>> import tritensor as torch
    >>> torch.einsum("bij,bjk->bik", torch.ones(2, 3, 4), torch.ones(2, 4, 5)).shape
    tritensor.Size([2, 3, 5])

    Raises:
        ShapeError: the equation and the operands do not fit together; in PyTorch's words.
    """
    if not isinstance(equation, str):
        raise ArgumentError(f"einsum(): the equation must be a string, not {type(equation).__name__}")
    tensors = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else list(operands)
    if not tensors:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand "
            "and its subscripts list"
        )
    inputs, output = _parse(equation, tensors)
    sizes: dict[Label, int] = {}
    terms = [
        _term(x, labels, position, sizes) for position, (x, labels) in enumerate(zip(tensors, inputs, strict=True))
    ]
    result, labels = terms[0]
    for position, (other, others) in enumerate(terms[1:], 1):
        kept = {*output, *(label for _, later in terms[position + 1 :] for label in later)}
        result, labels = _contract(result, labels, other, others, kept)
    result, labels = _sum_out(result, labels, set(output))
    return result.permute([labels.index(label) for label in output])


def _parse(equation: str, tensors: list[Tensor]) -> tuple[list[Labels], Labels]:
    """The labels of each operand's dimensions, and of the output's."""
    left, arrow, right = equation.partition("->")
    written = left.split(",")
    if len(written) != len(tensors):
        more = "more" if len(tensors) > len(written) else "fewer"
        raise ShapeError(f"einsum(): {more} operands were provided than specified in the equation")
    start, inputs = 0, []
    for position, (text, x) in enumerate(zip(written, tensors, strict=True)):
        inputs.append(_labels(text, start, f"operand {position}", position, x.ndim))
        start += len(text) + 1
    hidden = max((sum(isinstance(label, int) for label in labels) for labels in inputs), default=0)
    if arrow:
        output = _labels(right, start + 1, "output", None, hidden)
    else:
        seen = [label for labels in inputs for label in labels if isinstance(label, str)]
        once = sorted((label for label in set(seen) if seen.count(label) == 1), key=string.ascii_letters.index)
        output = [*range(hidden)[::-1], *once]
    known = {label for labels in inputs for label in labels}
    for label in output:
        if label not in known:
            raise ShapeError(
                f"einsum(): output subscript {label} does not appear in the equation for any input operand"
            )
        if output.count(label) > 1:
            raise ShapeError(f"einsum(): output subscript {label} appears more than once in the output")
    return inputs, output


def _labels(text: str, start: int, whose: str, position: int | None, dims: int) -> Labels:
    """The labels of one part of an equation, which begins at `start`; an ellipsis fills up to `dims` dimensions."""
    head, dots, tail = text.partition("...")
    if "." in head or (not dots and "." in text):
        hint = " (...)" if position is None else ""
        raise ShapeError(f"einsum(): found '.' for {whose} that is not part of any ellipsis{hint}")
    require("." not in tail, ShapeError, "einsum(): found '.' for {} for which an ellipsis was already found", whose)
    for index, letter in enumerate(text, start):
        if letter not in string.ascii_letters and letter not in " .":
            raise ShapeError(
                f"einsum(): invalid subscript given at index {index} in the equation string, subscripts "
                "must be in [a-zA-Z]"
            )
    first, last = head.replace(" ", ""), tail.replace(" ", "")
    if position is None:
        return [*first, *(range(dims)[::-1] if dots else ()), *last]
    named = len(first) + len(last)
    if named > dims or (named != dims and not dots):
        hint = "" if dots else " and no ellipsis was given"
        raise ShapeError(
            f"einsum(): the number of subscripts in the equation ({named}) does not match the number of "
            f"dimensions ({dims}) for operand {position}{hint}"
        )
    return [*first, *range(dims - named)[::-1], *last]


def _term(x: Tensor, labels: Labels, position: int, sizes: dict[Label, int]) -> tuple[Any, Labels]:
    """An operand with one dimension for each of its labels, after its sizes were compared with those seen before."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            x, labels = _diagonal(x, labels, label, position)
    for label, size in zip(labels, x.shape, strict=True):
        before = sizes.get(label, 1)
        if before != size and before != 1 and size != 1:
            raise ShapeError(
                f"einsum(): subscript {label} has size {size} for operand {position} which does not "
                f"broadcast with previously seen size {before}"
            )
        sizes[label] = max(before, size) if before and size else 0
    return x, labels


def _diagonal(x: Tensor, labels: Labels, label: Label, position: int) -> tuple[Any, Labels]:
    """The elements whose coordinates along the first two dimensions of one label are equal, that dimension in front."""
    first = labels.index(label)
    second = labels.index(label, first + 1)
    if x.shape[first] != x.shape[second]:
        raise ShapeError(
            f"einsum(): subscript {label} is repeated for operand {position} but the sizes don't match, "
            f"{x.shape[second]} != {x.shape[first]}"
        )
    along = ranges.arange(x.shape[first], device=x.device)
    rest = [other for place, other in enumerate(labels) if place not in (first, second)]
    return x.movedim((first, second), (0, 1))[along, along], [label, *rest]


def _sum_out(x: Tensor, labels: Labels, kept: set[Label]) -> tuple[Any, Labels]:
    """The operand summed over the dimensions whose labels are not in `kept`."""
    dims = [dim for dim, label in enumerate(labels) if label not in kept]
    return (x.sum(dims), [label for label in labels if label in kept]) if dims else (x, labels)


def _contract(x: Tensor, left: Labels, y: Tensor, right: Labels, kept: set[Label]) -> tuple[Any, Labels]:
    """The product of two operands, summed over the labels that neither the output nor a later operand has."""
    x, left = _sum_out(x, left, kept | set(right))
    y, right = _sum_out(y, right, kept | set(left))
    batch = [label for label in left if label in right and label in kept]
    inner = [label for label in left if label in right and label not in kept]
    rows = [label for label in left if label not in right]
    cols = [label for label in right if label not in left]
    sizes = [(x.shape[left.index(label)], y.shape[right.index(label)]) for label in inner]
    common = [other if size == 1 else size for size, other in sizes]
    x = x.permute([left.index(label) for label in (*batch, *rows, *inner)])
    y = y.permute([right.index(label) for label in (*batch, *inner, *cols)])
    lead = len(batch)
    height, width = list(x.shape[lead : lead + len(rows)]), list(y.shape[lead + len(inner) :])
    depth = prod(common)
    x = x.expand(*x.shape[:lead], *height, *common).reshape(*x.shape[:lead], prod(height), depth)
    y = y.expand(*y.shape[:lead], *common, *width).reshape(*y.shape[:lead], depth, prod(width))
    out = matmul(x, y) if inner else x * y
    return out.reshape(*out.shape[:lead], *height, *width), [*batch, *rows, *cols]
