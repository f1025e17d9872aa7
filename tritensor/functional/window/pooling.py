"""Pooling under PyTorch's names: one definition for one, two and three dimensions.

Inputs are (N, C, *dimensions) or (C, *dimensions).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod
from typing import Any

from ...autograd.gradients import called
from ...autograd.levels import followed
from ...errors import ShapeError, require
from ...ground.arguments import check_tensor
from ...ground.composing import declare
from ...kernels.window import pooling
from ...kernels.window.resampling import resampled
from ...kernels.window.resampling_maps import Map, rule
from ...tensors import Tensor
from ...types.dtypes import FLOATING, INTEGER, int64
from ..creation import creation
from ..elementwise.activations import relu
from .pooling_arguments import INDEXED, adaptive_size, check_dtype, floating, sizes_of, window_arguments
from .resizing import AREAS_AUTOCAST, resized

RANKS = (1, 2, 3)


def _largest(input: Tensor, return_indices: bool, node: str, **windows: Any) -> Any:
    """The largest element of each window, with its place where asked for; it is computed for the gradient too."""
    if return_indices or followed(input):
        found = pooling.max_pool_with_indices(input, **windows)
        if found[0]._node is not None:
            called(node, found[0])
        return found if return_indices else found[0]
    return pooling.max_pool(input, **windows)


def _max_pool(rank: int) -> Any:
    name = f"max_pool{rank}d"
    words = "max_pool1d_impl" if rank == 1 else name
    node = "SqueezeBackward1" if rank == 1 else f"MaxPool{rank}DWithIndicesBackward0"

    def max_pool(
        input: Tensor,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """Applies {rank}-d max pooling over ({sizes}): the largest element of each window, of equal ones the first.

        A window with NaN is NaN, and the place that of the last NaN.

        >>> import tritensor as torch
        >>> x = torch.tensor([1., 5., 2., 4.]).reshape({ones}4)
        >>> torch.nn.functional.max_pool{rank}d(x, ({unit}2,))
        tensor({open}5., 4.{close})

        Args:
            input: (N, C, {sizes}) or (C, {sizes}), of an integer or floating dtype.
            kernel_size: the size of a window, one number or {rank}, as the next three.
            stride: from one window to the next; the kernel's size unless given.
            padding: elements on both sides that are less than all others, at most half of a window.
            dilation: from one element of a window to the next.
            ceil_mode: take a last window that goes beyond the end too.
            return_indices: return also where each element is in its plane, as `max_unpool{rank}d` takes it.

        Raises:
            ShapeError: sizes that fit no window, or an input of another rank. DtypeError: booleans or complex numbers.
        """
        call = name + INDEXED if rank == 1 and return_indices else name
        size, kernel, steps, pads, gaps = window_arguments(
            call, input, rank, kernel_size, stride, padding, dilation, ceil_mode
        )
        check_dtype(words, input, lambda kind: INTEGER <= kind.category <= FLOATING)
        return _largest(
            input, return_indices, node, size=size, kernel=kernel, stride=steps, padding=pads, dilation=gaps
        )

    return declare(max_pool, name, rank, autocast={"cpu": "float32"} if rank == 3 else None)


def _averaged(rank: int, input: Tensor, windows: tuple[Any, ...], count_include_pad: bool, divisor: Any) -> Tensor:
    """The input resampled: a sum over each dimension's windows in turn, with weights that make it an average.

    Args:
        windows: the kernel's size, stride, padding, dilation and `ceil_mode`.
    """
    name = f"avg_pool{rank}d"
    size, kernel, steps, pads, _ = window_arguments(name, input, rank, *windows)
    if divisor is not None:
        (divisor,) = sizes_of(name, 1, "divisor_override", 7, divisor)
        require(divisor != 0, ShapeError, "divisor must be not zero")
    words = "avg_pool3d_out_frame" if rank == 3 else "avg_pool2d"
    check_dtype(words, input, lambda kind: kind is int64 or floating(kind))

    def maps(extents: Any, pads: Any, divisors: Any) -> list[Map]:
        along = zip(extents, size, kernel, steps, pads, divisors)
        rules = [(*each[:2], rule("windows", *each[2:5], bool(count_include_pad), each[5])) for each in along]
        return [Map(dim, *each) for dim, each in enumerate(rules, input.ndim - rank)]

    extents, ones = input._data.shape[-rank:], (1,) * rank
    if input.dtype is not int64:
        divisors = (None,) * rank if divisor is None else (divisor, *ones[1:])
        return _named(name, rank, input, maps(extents, pads, divisors))
    sums = _named(name, rank, input, maps(extents, pads, ones))
    count: Any = divisor
    if divisor is None:
        counted = [each + 2 * pad * bool(count_include_pad) for each, pad in zip(extents, pads)]
        pads = (0,) * rank if count_include_pad else pads
        lead = (1,) * (input.ndim - rank)
        count = resampled(creation.ones(*lead, *counted, dtype=int64, device=input.device), maps(counted, pads, ones))
    return sums.div(count, rounding_mode="trunc")


def _named(name: str, rank: int, input: Tensor, maps: list[Map]) -> Tensor:
    """The input resampled; PyTorch keeps the memory format of pictures alone."""
    out = resized(input, maps, name, rank == 2)
    return out if rank > 1 else called("SqueezeBackward1", out)


def _avg_pool(rank: int) -> Any:
    name = f"avg_pool{rank}d"

    def avg_pool1d(
        input: Tensor,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> Tensor:
        return _averaged(1, input, (kernel_size, stride, padding, 1, ceil_mode), count_include_pad, None)

    def avg_pool(
        input: Tensor,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        """Applies {rank}-d average pooling over ({sizes}): the average of each window.

        >>> import tritensor as torch
        >>> x = torch.tensor([1., 3., 5., 7.]).reshape({ones}4)
        >>> torch.nn.functional.avg_pool{rank}d(x, ({unit}2,))
        tensor({open}2., 6.{close})

        Args:
            input: (N, C, {sizes}) or (C, {sizes}), of a floating dtype or int64.
            kernel_size: the size of a window, one number or {rank}, as the next two.
            stride: from one window to the next; the kernel's size unless given.
            padding: zeros on both sides, at most half of a window.
            ceil_mode: take a last window that goes beyond the end too.
            count_include_pad: whether the zeros of the padding count.
            divisor_override: what the sum of each window is divided by, in place of the number of its elements.

        Raises:
            ShapeError: sizes that fit no window, or an input of another rank. DtypeError: another dtype.
        """
        windows = kernel_size, stride, padding, 1, ceil_mode
        return _averaged(rank, input, windows, count_include_pad, divisor_override)

    words = [line for line in str(avg_pool.__doc__).splitlines(True) if "divisor_override" not in line]
    avg_pool1d.__doc__ = "".join(words)
    function, autocast = avg_pool1d if rank == 1 else avg_pool, {"cpu": "float32"} if rank == 3 else None
    return declare(function, name, rank, autocast=autocast)


def _adaptive_max_pool(rank: int) -> Any:
    name = f"adaptive_max_pool{rank}d"
    words = "adaptive_max_pool3d_cpu" if rank == 3 else "adaptive_max_pool2d"
    node = "SqueezeBackward1" if rank == 1 else f"AdaptiveMaxPool{rank}DBackward0"

    def adaptive_max_pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        """Applies {rank}-d adaptive max pooling: the maxima of `output_size` windows that cover the input evenly.

        >>> import tritensor as torch
        >>> x = torch.tensor([1., 5., 2.]).reshape({ones}3)
        >>> torch.nn.functional.adaptive_max_pool{rank}d(x, ({unit}2,))
        tensor({open}5., 5.{close})

        Args:
            input: (N, C, {sizes}) or (C, {sizes}), of a floating dtype.
            output_size: how many windows there are, one number or {rank}; of several None keeps a dimension.
            return_indices: return also where each element is in its plane.

        Raises:
            ShapeError: no such size, or an input of another rank. DtypeError: another dtype.
        """
        size = adaptive_size(name, input, rank, output_size)
        check_dtype(words, input, floating)
        return _largest(input, return_indices, node, size=size)

    return declare(adaptive_max_pool, name, rank, autocast={"cpu": "float32"} if rank == 3 else None)


def _adaptive_avg_pool(rank: int) -> Any:
    name = f"adaptive_avg_pool{rank}d"
    words = "adaptive_avg_pool3d_cpu" if rank == 3 else "adaptive_avg_pool2d"

    def adaptive_avg_pool(input: Tensor, output_size: tuple[int, ...] | int) -> Tensor:
        """Applies {rank}-d adaptive average pooling: the averages of `output_size` windows that cover the input evenly.

        >>> import tritensor as torch
        >>> x = torch.tensor([1., 5., 2.]).reshape({ones}3)
        >>> torch.nn.functional.adaptive_avg_pool{rank}d(x, ({unit}2,))
        tensor({open}3.0000, 3.5000{close})

        Args:
            input: (N, C, {sizes}) or (C, {sizes}), of a floating dtype.
            output_size: how many windows there are, one number or {rank}; of several None keeps a dimension.

        Raises:
            ShapeError: no such size, or an input of another rank. DtypeError: another dtype.
        """
        size = adaptive_size(name, input, rank, output_size)
        if size == (1,) * rank and rank > 1:
            return input.mean(tuple(range(-rank, 0)), keepdim=True)
        check_dtype(words, input, floating)
        along = zip(range(input.ndim - rank, input.ndim), input._data.shape[-rank:], size)
        return _named(name, rank, input, [Map(*each, rule("area")) for each in along])

    return declare(adaptive_avg_pool, name, rank, autocast=AREAS_AUTOCAST if rank == 3 else None)


def _lp_pool(rank: int) -> Any:
    name, average, largest = f"lp_pool{rank}d", AVERAGES[rank - 1], LARGEST[rank - 1]

    def lp_pool(
        input: Tensor,
        norm_type: float,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        ceil_mode: bool = False,
    ) -> Tensor:
        """Applies {rank}-d power-average pooling: (sum of x^p)^(1/p) of each window, with p `norm_type`.

        For infinite p the largest, or the smallest, absolute value.

        >>> import tritensor as torch
        >>> x = torch.tensor([3., 4., 0., 1.]).reshape({ones}4)
        >>> torch.nn.functional.lp_pool{rank}d(x, 2, ({unit}2,))
        tensor({open}5., 1.{close})

        Args:
            input: (N, C, {sizes}) or (C, {sizes}).
            kernel_size: the size of a window, one number or {rank}, as the next.
            stride: from one window to the next; the kernel's size unless given.
            ceil_mode: take a last window that goes beyond the end too, whose sum is scaled up to a whole window's.

        Raises:
            ShapeError: sizes that fit no window, or an input of another rank. ZeroDivisionError: p is 0.
        """
        if norm_type in (inf, -inf):
            sign = 1 if norm_type > 0 else -1
            found = largest(input.abs() if sign > 0 else -input.abs(), kernel_size, stride, 0, 1, ceil_mode)
            return found if sign > 0 else -found
        check_tensor(name, "input", 1, input)
        out = average(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
        elements = prod(sizes_of(name, rank, "kernel_size", 3, kernel_size))
        return (out.sign() * relu(out.abs())).mul(elements).pow(1.0 / norm_type)

    return declare(lp_pool, name, rank)


LARGEST = tuple(map(_max_pool, RANKS))
AVERAGES = tuple(map(_avg_pool, RANKS))
for _rank in RANKS:
    _adaptive_max_pool(_rank)
    _adaptive_avg_pool(_rank)
    _lp_pool(_rank)
