"""Differences between neighbours and sums over them: derivatives and integrals of sampled functions; powers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import DtypeError, RangeError, ShapeError
from ...ground.arguments import number_in, whole
from ...ground.public import public
from ...operators.outputs import Into, takes_out
from ...operators.rules import Number
from ...tensors import Tensor
from ...types import dtypes, layout
from ..views.joining import cat


def _part(x: Tensor, dim: int, start: int | None, end: int | None = None) -> Tensor:
    return x[(*(slice(None),) * dim, slice(start, end), Ellipsis)]


@public(method=True, out=takes_out(Into("cast")))
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The differences of neighbours along `dim`, taken `n` times; of booleans whether the two differ.

    >>> import tritensor as torch
    >>> torch.diff(torch.tensor([1, 4, 9]))
    tensor([3, 5])

    Args:
        prepend, append: what is joined to `input` along `dim` first.

    Raises:
        ShapeError: no dimensions, a negative `n`, or shapes that cannot be joined.
    """
    if not input.ndim:
        raise ShapeError("diff expects input to be at least one-dimensional")
    dim, n = layout.normalize_dim(dim, input.ndim), whole("diff", "n", n)
    if n < 0:
        raise ShapeError(f"order must be non-negative but got {n}")
    if not n:
        return input.clone()
    ends = [x for x in (prepend, append) if x is not None]
    for x in ends:
        if x.ndim != input.ndim:
            raise ShapeError("diff expects prepend or append to be the same dimension as input")
        for place, (size, own) in enumerate(zip(x.shape, input.shape, strict=True)):
            if size != own and place != dim:
                raise ShapeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along the "
                    f"differencing dimension; input.size({place}) = {own}, but got tensor.size({place}) = {size}"
                )
    if ends:
        input = cat([x for x in (prepend, input, append) if x is not None], dim)
    for _ in range(min(n, input._data.shape[dim])):
        right, left = _part(input, dim, 1), _part(input, dim, None, -1)
        input = right.logical_xor(left) if input.dtype is dtypes.bool_ else right - left
    return input


@public()
def gradient(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """The gradient of a sampled function: its derivative along each dimension, by central differences.

    >>> import tritensor as torch
    >>> torch.gradient(torch.tensor([1.0, 4.0, 9.0, 16.0]))
    (tensor([3., 4., 6., 7.]),)

    Args:
        spacing: the distance of samples, or their places in a vector; for each dimension one, if it is a list.
        dim: the dimension or dimensions; all unless given.
        edge_order: 1 or 2, how many differences make the derivative at the edges.

    Raises:
        ShapeError: too few samples, as many spacings as dimensions are not given, or another order.
    """
    if input.dtype is dtypes.uint8:
        raise DtypeError("torch.gradient does not support uint8 input.")
    if not input.ndim and isinstance(dim, int):
        raise RangeError(f"Dimension specified as {dim} but tensor has no dimensions")
    dims = layout.normalize_dims(dim, input.ndim)
    steps = spacing if isinstance(spacing, (tuple, list)) else [1 if spacing is None else spacing] * len(dims)
    if len(steps) != len(dims):
        asked = (
            f"unspecified, a scalar, or a list of length equal to 'self.dim() = {input.ndim}', since dim argument was "
            f"not given, but got a list of length {len(steps)}"
            if dim is None
            else f"unspecified, a scalar or it's spacing and dim arguments to have the same length, but got a spacing "
            f"argument of length {len(steps)} and a dim argument of length {len(dims)}."
        )
        raise ShapeError(f"torch.gradient expected spacing to be {asked}")
    if edge_order not in (1, 2):
        raise ShapeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if any(input._data.shape[each] < edge_order + 1 for each in dims):
        raise ShapeError("torch.gradient expected each dimension size to be at least edge_order+1")
    for step in steps:
        if isinstance(step, Tensor) and step.ndim != 1:
            raise ShapeError(
                "torch.gradient expected each element of spacing to have one dimension, but got an element with "
                f"{step.ndim} dimensions! "
            )
    return tuple([_derivative(input, each, step, edge_order) for each, step in zip(dims, steps, strict=True)])


def _derivative(x: Tensor, dim: int, step: float, order: int) -> Tensor:
    """The derivative along one dimension: of the parabola through three neighbours, at the edges of the line if asked.

    With the distances d and e to the neighbours it is (-e/d x0 + (e/d - d/e) x1 + d/e x2) / (d + e) in the middle.
    """
    if isinstance(step, Tensor):
        steps = diff(step)
        first, second, last, before = steps[0], steps[1:2], steps[-1], steps[-2:-1]
        shape = [-1 if each == dim else 1 for each in range(x.ndim)]
        d, e = steps[:-1].reshape(shape), steps[1:].reshape(shape)
        parts = _part(x, dim, None, -2), _part(x, dim, 1, -1), _part(x, dim, 2)
        middle = -e / (d * (d + e)) * parts[0] + (e - d) / (d * e) * parts[1] + d / (e * (d + e)) * parts[2]
    else:
        first = second = last = before = step
        middle = (_part(x, dim, 2) - _part(x, dim, None, -2)) / step / 2

    def edge(places: Sequence[Tensor], d: Tensor | float, e: Tensor | float) -> Tensor:
        """At the first of the places, the distance of the other two being d and e."""
        if order == 1:
            return (places[1] - places[0]) / d
        a, b, c = -(2 * d + e) / (d * (d + e)), (d + e) / (d * e), -d / (e * (d + e))
        return a * places[0] + b * places[1] + c * places[2]

    count = order + 1
    begin = [_part(x, dim, place, place + 1) for place in range(count)]
    end = [_part(x, dim, -1 - place, -place or None) for place in range(count)]
    return cat([edge(begin, first, second), middle, edge(end, -last, -before)], dim)


def _widths(name: str, y: Tensor, x: Any, dx: float, dim: int) -> Tensor | float:
    """The distances of neighbouring samples."""
    if dtypes.bool_ in (y.dtype, getattr(x, "dtype", None)):
        which = "`y`" if x is None else "`x` or `y`"
        raise ShapeError(f"{name}: received a bool input for {which}, but bool is not supported")
    if x is None:
        dx = number_in(dx)
        if isinstance(dx, (bool, complex)) or not isinstance(dx, Number):
            raise ShapeError(f"{name}: Currently, we only support dx as a real number.")
        return dx
    if x.ndim == 1:
        if len(x) != y._data.shape[dim]:
            raise ShapeError(f"{name}: There must be one `x` value for each sample point")
        x = x.reshape([-1 if place == dim else 1 for place in range(y.ndim)])
    elif x.ndim < y.ndim:
        x = x.reshape((1,) * (y.ndim - x.ndim) + tuple(x.shape))
    return diff(x, dim=dim)


@public("trapz")
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1, dim: int = -1) -> Tensor:
    """The integral along `dim` by the trapezoidal rule.

    >>> import tritensor as torch
    >>> torch.trapezoid(torch.tensor([1.0, 5.0, 10.0]), torch.tensor([1.0, 3.0, 6.0]))
    tensor(28.5000)

    Args:
        x: the places of the samples; they are `dx` apart unless given.

    Raises:
        ShapeError: booleans, or places of another number than samples.
    """
    if not y.ndim:
        raise RangeError(f"Dimension specified as {dim} but tensor has no dimensions")
    dim = layout.normalize_dim(dim, y.ndim)
    if not y._data.shape[dim]:
        return y.new_zeros((*y.shape[:dim], *y.shape[dim + 1 :]))
    widths = _widths("trapezoid", y, x, dx, dim)
    if x is None:
        return (y.sum(dim) - (y.select(dim, 0) + y.select(dim, -1)) * 0.5) * widths
    return ((_part(y, dim, None, -1) + _part(y, dim, 1)) * widths).sum(dim) / 2.0


@public()
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1, dim: int = -1) -> Tensor:
    """The cumulative integral along `dim` by the trapezoidal rule; the arguments are `trapezoid`'s."""
    if not y.ndim:
        raise RangeError("slice() cannot be applied to a 0-dim tensor.")
    dim = layout.normalize_dim(dim, y.ndim)
    widths = _widths("cumulative_trapezoid", y, x, dx, dim)
    pairs = _part(y, dim, None, -1) + _part(y, dim, 1)
    return (widths / 2.0 * pairs if x is None else widths * pairs / 2.0).cumsum(dim)


@public()
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The Vandermonde matrix: the powers of a vector's elements as columns, the highest first.

    >>> import tritensor as torch
    >>> torch.vander(torch.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])

    Args:
        N: how many columns; as many as elements unless given.
        increasing: whether the lowest power comes first.

    Raises:
        ShapeError: no vector, or a negative number of columns.
    """
    if x.ndim != 1:
        raise ShapeError("x must be a one-dimensional tensor.")
    count = len(x) if N is None else whole("vander", "N", N)
    if count < 0:
        raise ShapeError("N must be non-negative.")
    if x.dtype.category < dtypes.FLOATING:
        x = x.long()
    powers = x.new_ones((len(x), 1))
    while powers._data.shape[1] < count:  # twice as many
        powers = cat([powers, powers * (powers[:, -1:] * x.unsqueeze(1))], 1)
    powers = powers[:, :count]
    return powers.clone() if increasing else powers.flip(1)
