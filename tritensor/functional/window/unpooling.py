"""Fractional max pooling, whose windows are drawn at random, and max unpooling."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ...autograd.gradients import called, constant_in
from ...autograd.mode import no_grad
from ...errors import DtypeError, ShapeError, require
from ...ground.arguments import check_tensor
from ...ground.composing import declare
from ...kernels.indexing.family import check_bounds, gather, scatter
from ...kernels.window.pooling import at_places
from ...tensors import Tensor
from ...types.dtypes import int64
from ...types.formats import channels_last, suggested
from ...types.layout import normalize_dim
from ..creation import creation, ranges
from ..random.draws import rand
from ..views.view_operators import standing_alone
from .pooling_arguments import check_dtype, floating, list_of, sizes_of

_NAMES = ("time", "height", "width")


def _fractional_max_pool(rank: int) -> Any:
    name = f"fractional_max_pool{rank}d"

    def fractional_max_pool(
        input: Tensor,
        kernel_size: int | Sequence[int],
        output_size: int | Sequence[int] | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        """Applies {rank}-d fractional max pooling: the maxima of `output_size` windows placed at random.

        The distance of neighbours is one of two numbers, in a pseudorandom order that is drawn for each plane and
        dimension (https://arxiv.org/abs/1412.6071).

        >>> import tritensor as torch
        >>> x = torch.arange(4.0 ** {rank}).reshape(1, {four})
        >>> torch.nn.functional.fractional_max_pool{rank}d(x, 2, 1).item() == x.max().item()
        True

        Args:
            input: (N, C, {sizes}) or (C, {sizes}), of a floating dtype.
            kernel_size: the size of a window, one number or {rank}.
            output_size: how many windows there are, one number or {rank}.
            output_ratio: the same as a share of the input's size, where `output_size` is not given.
            return_indices: return also where each element is in its plane, as `max_unpool{rank}d` takes it.
            _random_samples: (N, C, {rank}) numbers from 0 to 1 to use in place of random ones.

        Raises:
            ValueError: neither size nor ratio. ShapeError: windows that do not fit, an input or samples of another
                shape. DtypeError: another dtype.
        """
        check_tensor(name, "input", 1, input)
        shape = list(input._data.shape)
        if output_size is None:
            if output_ratio is None:
                raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
            ratios = tuple(output_ratio) if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * rank
            if len(ratios) != rank:
                raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
            output_size = [int(extent * ratio) for extent, ratio in zip(shape[-rank:], ratios)]
        kernel = _sizes(name, rank, "kernel_size", 2, kernel_size)
        size = _sizes(name, rank, "output_size", 3, output_size)
        samples = _checked_samples(name, input, rank, kernel, size, _random_samples)
        constant_in(name, _random_samples=_random_samples)
        with no_grad():
            places = _places_of_largest(input, kernel, size, samples)
        out = standing_alone(at_places(input, places, rank), name)
        return (out, places) if return_indices else out

    fractional_max_pool.__doc__ = fractional_max_pool.__doc__.replace("{four}", ", ".join("4" * rank))  # type: ignore[union-attr]
    return declare(fractional_max_pool, name, rank, autocast={"cpu": "float32"})


def _sizes(call: str, rank: int, name: str, position: int, value: object) -> tuple[int, ...]:
    if isinstance(value, (tuple, list)) and len(value) not in (1, rank):
        many = "" if rank == 2 else "three "
        raise ShapeError(f"{call}: {name} must either be a single Int or tuple of {many}Ints")
    return sizes_of(call, rank, name, position, value)


def _checked_samples(
    call: str, input: Tensor, rank: int, kernel: tuple[int, ...], size: tuple[int, ...], samples: Tensor | None
) -> Tensor:
    """The random numbers, (N, C, rank).

    Raises:
        ShapeError: the input, the windows or the samples have another shape. DtypeError: another dtype.
    """
    shape, ndim = list(input._data.shape), input.ndim
    normalize_dim(-rank - 1, ndim)
    if ndim > rank + 2:
        raise ShapeError(f"{call}(): Expected {rank + 1}D or {rank + 2}D tensor, but got: {shape}")
    for dim in range(ndim - rank - 1, ndim):
        if not shape[dim]:
            raise ShapeError(
                f"{call}(): Expected input to have non-zero size for non-batch dimensions, but got{shape} with "
                f"dimension {dim} being empty."
            )
    for name, extent, length, count in zip(_NAMES[-rank:], shape[-rank:], kernel, size):
        # in three dimensions PyTorch wants one element more than it needs
        if count + length - 1 + (rank == 3) > extent or length < 1 or count < 0:
            words = f"{call}{'_out' if rank == 3 else ''}(): pool {name} {length} too large relative to input {name} "
            raise ShapeError(f"{words}{extent}", f"{count} windows do not fit")
    lead = (*(1,) * (rank + 2 - ndim), *shape[: ndim - rank])
    check_dtype(f"{call}_out_frame", input, floating)
    if samples is None:
        return rand(*lead, rank, dtype=input.dtype, device=input.device)
    require(samples.dtype is input.dtype, DtypeError, "Expect _random_samples to have the same dtype as input")
    require(samples.ndim == 3, ShapeError, "Expect _random_samples to have 3 dimensions, got {}", samples.ndim)
    for dim, (got, wanted) in enumerate(zip(samples.shape, (*lead, rank))):
        if got < wanted or (dim and got > wanted):
            fits = ("no less then input batch size", "equals to input channel size", f"equals to {rank}; got {got}")[
                dim
            ]
            raise ShapeError(f"Expect _random_samples.size({dim}) {fits}.", f"{got} is not {wanted}")
    return samples[: lead[0]]


def _places_of_largest(input: Tensor, kernel: tuple[int, ...], size: tuple[int, ...], samples: Tensor) -> Tensor:
    """The index in its plane of each window's largest element; of equal ones the first, of NaN the last."""
    rank, extents = len(size), tuple(input.shape[-len(size) :])
    lead = tuple(samples.shape[:2])
    place = None
    for dim in range(rank):
        # PyTorch takes the first sample for the width of pictures, and for the time of volumes
        sample = samples[:, :, rank - 1 - dim if rank == 2 else dim].unsqueeze(-1)
        last, count = extents[dim] - kernel[dim], size[dim]
        number = ranges.arange(count, device=input.device)
        start = number.new_full((*lead, count), last)
        if count > 1:
            step = float(sample.dtype.numpy.type(last / (count - 1)))  # PyTorch's is of the samples' dtype
            moved = ((number + sample) * step).to(int64) - (sample * step).to(int64)
            start = start.where(number == count - 1, moved)
        taps = ranges.arange(kernel[dim], device=input.device)
        along = (start.unsqueeze(-1) + taps).reshape(
            *lead, *(1,) * dim, count, *(1,) * (rank - 1 - dim), *(1,) * dim, kernel[dim], *(1,) * (rank - 1 - dim)
        )
        place = along if place is None else place * extents[dim] + along
    candidates = place.reshape(*lead, prod(size) * prod(kernel))  # type: ignore[union-attr]
    values = gather(input.detach().reshape(*lead, prod(extents)), candidates, dim=-1)
    values = values.reshape(*lead, prod(size), prod(kernel))
    best = values.argmax(-1, keepdim=True)
    nan = values.isnan()
    number = ranges.arange(1, prod(kernel) + 1, device=input.device)
    best = (nan * number).argmax(-1, keepdim=True).where(nan.any(-1, keepdim=True), best)
    found = gather(candidates.reshape(*lead, prod(size), prod(kernel)), best, dim=-1)
    return found.reshape(*input.shape[: input.ndim - rank], *size)


def _max_unpool(rank: int) -> Any:
    name, of = f"max_unpool{rank}d", max(rank, 2)

    def max_unpool(
        input: Tensor,
        indices: Tensor,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        output_size: Sequence[int] | None = None,
    ) -> Tensor:
        """Inverts `max_pool{rank}d` in part: puts `input` at the `indices` that it returned, zeros elsewhere.

        >>> import tritensor as torch
        >>> x = torch.tensor([1., 5., 2., 4.]).reshape({ones}4)
        >>> found = torch.nn.functional.max_pool{rank}d(x, ({unit}2,), return_indices=True)
        >>> torch.nn.functional.max_unpool{rank}d(*found, ({unit}2,))
        tensor({open}0., 5., 0., 4.{close})

        Args:
            input: (N, C, {sizes}) or (C, {sizes}), of a floating dtype.
            indices: of its shape, int64. Of equal ones the last is kept on the CPU.
            kernel_size, stride, padding: those of the pool.
            output_size: of the pool's input, where several sizes are possible; with or without N and C.

        Raises:
            ShapeError: other shapes. ValueError: no such output size. DtypeError: other dtypes. BoundsError: a place
                beyond the output.
        """
        check_tensor(name, "input", 1, input)
        check_tensor(name, "indices", 2, indices)
        kernel = sizes_of(name, rank, "kernel_size", 3, kernel_size)
        steps = kernel if stride is None or stride == () else sizes_of(name, rank, "stride", 4, stride)
        pads = sizes_of(name, rank, "padding", 5, padding)
        one = (1,) if rank == 1 else ()  # PyTorch computes it in two dimensions, as its messages show
        shape, lead = tuple(input._data.shape), input.ndim - rank
        if indices.dtype is not int64:
            raise DtypeError(f"elements in indices should be type int64 but got: {indices.dtype.legacy}")
        if lead not in (1, 2):
            raise ShapeError(
                f"Input to max_unpooling{of}d should be a {of + 1}d or {of + 2}d Tensor, but got a tensor with "
                f"{input.ndim + len(one)} dimensions."
            )
        size = _unpooled_size(shape[-rank:], kernel, steps, pads, output_size)
        if tuple(indices.shape) != shape:
            raise ShapeError(
                f"Expected shape of indices to be same as that of the input tensor ({[*shape, *one]}) but got indices "
                f"tensor with shape: {[*indices.shape, *one]}"
            )
        if 0 in shape[lead - 1 :]:
            raise ShapeError(
                f"max_unpooling{of}d_forward_out_cpu(): Expected input to have non-zero size for non-batch dimensions, "
                f"but got {[*shape, *one]} with dimension {shape.index(0, lead - 1)} being empty."
            )
        check_dtype(f"max_unpool{of}d", input, floating)
        words = f"Found an invalid max index: {{wrong}} (output volumes are of size {list_of((*size, *one))})"
        check_bounds(indices, prod(size), 0, 0, words)
        plane = (*shape[:lead], prod(shape[-rank:]))
        zeros = creation.zeros(*shape[:lead], prod(size), dtype=input.dtype, device=input.device)
        out = scatter(zeros, indices.reshape(plane), input.reshape(plane), dim=-1)
        out = standing_alone(out.reshape(*shape[:lead], *size), name if rank > 1 else "squeeze.1")
        if rank == 2 and suggested(shape, input.stride()) is channels_last:
            return called("MaxUnpool2DBackward0", out.contiguous(memory_format=channels_last))
        return out

    return declare(max_unpool, name, rank, autocast={"cpu": "float32"})


def _unpooled_size(
    shape: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, ...], padding: tuple[int, ...], wanted: Any
) -> tuple[int, ...]:
    """The size of the pool's input: the least that it can have been, or the one that is wanted."""
    least = [(n - 1) * step + length - 2 * pad for n, length, step, pad in zip(shape, kernel, stride, padding)]
    if wanted is None:
        return tuple(least)
    rank, size = len(shape), tuple(wanted)
    size = size[2:] if len(size) == rank + 2 else size
    if len(size) != rank:
        raise ValueError(
            f"output_size should be a sequence containing {rank} or {rank + 2} elements, but it has a length of "
            f"'{len(size)}'"
        )
    for dim, (n, default, step) in enumerate(zip(size, least, stride)):
        if not default - step < n < default + step:
            raise ValueError(
                f'invalid output_size "{size}" (dim {dim} must be between {default - step} and {default + step})'
            )
    return size


for _rank in (2, 3):
    _fractional_max_pool(_rank)
for _rank in (1, 2, 3):
    _max_unpool(_rank)
