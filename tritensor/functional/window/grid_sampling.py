"""Sampling of pictures and volumes at coordinates, and the grids of coordinates of affine maps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

from ...autograd.mode import no_grad
from ...errors import ArgumentError, DtypeError, ShapeError, UnsupportedError, warn
from ...ground.arguments import check_tensor
from ...ground.public import public
from ...kernels.window.sampling_grid import sample_places
from ...operators import registry
from ...tensors import Tensor
from ...types import dtypes
from ..creation.creation import ones
from ..creation.ranges import linspace
from ..views.joining import stack
from ..views.view_operators import standing_alone

_CHANGED = (
    "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
    "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details."
)


@public(package=False, autocast={"cpu": "float32", "cuda": "widest"})
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Samples images (N, C, H, W), or volumes (N, C, D, H, W), at the coordinates in `grid`, with interpolation.

    The grid's shape is (N, *new sizes, 2), or 3 for volumes: x, y, z from -1 to 1, the edges of the input. The result's
    is (N, C, *new sizes). There are gradients of every order.

    >>> import tritensor as torch
    >>> picture = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> torch.nn.functional.grid_sample(picture, torch.zeros(1, 1, 1, 2), align_corners=False)
    tensor([[[[2.5000]]]])

    Args:
        mode: "bilinear" (in volumes trilinear), "nearest", or for pictures "bicubic" (Keys' with a = -0.75).
        padding_mode: what is outside: "zeros", the "border", or the "reflection" of the input.
        align_corners: whether -1 and 1 are the centres of the edge's elements, or their outer edges. The latter, with a
            warning, unless given.

    Raises:
        ValueError: no such mode. ShapeError: shapes that do not match, or an input without elements. DtypeError: dtypes
            that differ, or are not floating.
    """
    call = "nn.functional.grid_sample(): expected"
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(f"{call} mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"{call} padding_mode to be 'zeros', 'border', or 'reflection', but got: '{padding_mode}'")
    if align_corners is None:
        warn(_CHANGED)
    _check(input, grid, mode)
    corners, shape = bool(align_corners), input._data.shape
    batch, rank = shape[0], input.ndim - 2
    wide = grid if grid.dtype is dtypes.float64 else grid.float()
    new = grid._data.shape[1:-1]
    points = wide.reshape(batch, prod(new), rank)
    taps = [
        _taps(points.select(2, rank - 1 - dim), size, mode, padding_mode, corners) for dim, size in enumerate(shape[2:])
    ]
    places, weights = [], []
    for chosen in product(*taps):
        place, weight = chosen[0]
        for (more, factor), size in zip(chosen[1:], shape[3:], strict=True):
            place = registry["where"]((place < 0) | (more < 0), -1, place * size + more)
            weight = weight * factor
        places.append(place)
        weights.append(weight)
    flat = input.reshape(batch, shape[1], prod(shape[2:]))
    out = sample_places(flat, stack(places, 1), stack(weights, 1))
    return standing_alone(out.reshape(batch, shape[1], *new), f"grid_sampler_{rank}d")


def _check(input: Tensor, grid: Tensor, mode: str) -> None:
    check_tensor("grid_sampler", "input", 1, input)
    check_tensor("grid_sampler", "grid", 2, grid)
    sizes = f"but got input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
    if input.ndim and grid.ndim and input._data.shape[0] != grid._data.shape[0]:
        raise ShapeError(f"grid_sampler(): expected grid and input to have same batch size, {sizes}")
    if grid.ndim and grid._data.shape[-1] != input.ndim - 2:
        raise ShapeError(
            f"grid_sampler(): expected grid to have size {input.ndim - 2} in last dimension, but got grid with sizes "
            f"{list(grid.shape)}"
        )
    if input.ndim not in (4, 5) or grid.ndim != input.ndim:
        raise ShapeError(f"grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, {sizes}")
    for dim, size in enumerate(input._data.shape[2:], 2):
        if not size:
            raise ShapeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{list(input.shape)} with dimension {dim} being empty"
            )
    if mode == "bicubic" and input.ndim == 5:
        raise ShapeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if not input.dtype.is_floating_point:
        words = f"\"grid_sampler_{input.ndim - 2}d\" not implemented for '{input.dtype.legacy}'"
        raise UnsupportedError(words, f"the input is {input.dtype}", remedy="convert it with .to(dtype)")
    if grid.dtype is not input.dtype:
        raise DtypeError(
            f"expected scalar type {input.dtype.legacy} but found {grid.dtype.legacy}",
            f"grid_sampler: input is {input.dtype}, grid is {grid.dtype}",
            remedy="bring both to one dtype with .to(dtype)",
        )


def _taps(x: Tensor, size: int, mode: str, padding: str, corners: bool) -> list[tuple[Tensor, Any]]:
    """For coordinates along one dimension the places that are read, -1 for none, with their weights."""
    x = (x + 1) / 2 * (size - 1) if corners else ((x + 1) * size - 1) / 2
    if mode != "bicubic":
        x = _inside(x, size, padding, corners)
    if mode == "nearest":
        # as in PyTorch there is a gradient for the grid, of zeros
        return [(_place(x.detach().round(), size), registry["where"](x.isfinite(), x * 0, 0) + 1)]
    low = x.detach().floor()
    part = x - low
    if mode == "bilinear":
        return [(_place(low, size, part), 1 - part), (_place(low + 1, size, part), part)]
    places = [_place(_inside(low + step, size, padding, corners), size, part) for step in (-1, 0, 1, 2)]
    a = -0.75  # Keys' cubic convolution, as in `interpolate`
    outer = [((a * y - 5 * a) * y + 8 * a) * y - 4 * a for y in (part + 1, 2 - part)]
    inner = [((a + 2) * y - (a + 3)) * y * y + 1 for y in (part, 1 - part)]
    return list(zip(places, (outer[0], inner[0], inner[1], outer[1]), strict=True))


def _inside(x: Tensor, size: int, padding: str, corners: bool) -> Tensor:
    """Coordinates beyond the input brought to it, at its edges without a gradient, as in PyTorch."""
    where = registry["where"]
    if padding == "zeros":
        return x
    if padding == "reflection":
        low, span = (0.0, size - 1) if corners else (-0.5, size)
        if span == 0:
            return x * 0
        x = (x - low).abs()
        turns = (x.detach() / span).floor()
        rest = x - turns * span
        x = where(turns % 2 == 1, span - rest, rest) + low
    x = where(x > 0, x, 0)
    return where(x < size - 1, x, size - 1)


def _place(x: Tensor, size: int, part: Tensor | None = None) -> Tensor:
    """Whole coordinates as integers, -1 for those outside; the first element where `part` and so the weight is NaN."""
    with no_grad():
        inside = registry["where"]((x >= 0) & (x < size), x, -1)
        if part is not None:
            inside = registry["where"](part == part, inside, 0)
        return inside.to(dtypes.int64)


@public(package=False)
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Makes the sampling grid for `grid_sample` of affine maps `theta`, (N, 2, 3), and an output of shape `size`.

    Args:
        theta: the maps of coordinates (x, y, 1), or for volumes (N, 3, 4) those of (x, y, z, 1).
        size: (N, C, H, W), or (N, C, D, H, W); the result's shape is (N, H, W, 2) or (N, D, H, W, 3).
        align_corners: as in `grid_sample`.

    >>> import tritensor as torch
    >>> identity = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> torch.nn.functional.affine_grid(identity, (1, 1, 1, 2), align_corners=False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])

    Raises:
        ValueError: integers, another shape of `theta`, or a size below 1. NotImplementedError: a size of another rank.
        ShapeError: another batch size.
    """
    if align_corners is None:
        warn(_CHANGED)
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    rank, shape = len(size) - 2, tuple(theta.shape)
    if rank not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {size}."
        )
    if len(shape) != 3 or shape[1:] != (rank, rank + 1):
        wanted = f"Nx{rank}x{rank + 1}"
        raise ValueError(
            f"Expected a batch of {rank}D affine matrices of shape {wanted} for size {size}. Got {theta.shape}."
        )
    for place, number in enumerate(size):
        if isinstance(number, bool) or not hasattr(type(number), "__index__"):
            words = f'with error "type must be tuple of ints,but got {type(number).__name__}"'
            raise ArgumentError(
                f"affine_grid_generator(): argument 'size' failed to unpack the object at pos {place + 1} {words}"
            )
    if align_corners and min(size[2:]) == 1:
        warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This "
            "is not an intended use case of affine_grid. See the documentation of affine_grid for details."
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return affine_coordinates(theta, size, align_corners)


def affine_coordinates(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """`affine_grid` of arguments that are checked, but for the shape of `theta`."""
    rank, shape = len(size) - 2, tuple(theta.shape)
    if shape != (size[0], rank, rank + 1):
        wanted, got = [size[0], rank + 1], [shape[0], shape[-1]]
        words = f"Expected size for first two dimensions of batch2 tensor to be: {wanted} but got: {got}."
        raise ShapeError(words, f"theta has the shape {list(shape)}, and the size is {tuple(size)}")
    sizes = tuple(map(int, size[2:]))  # tensors too, with which a quotient would be of float32
    axes = []
    for dim, count in enumerate(sizes):
        line = linspace(-1, 1, count, dtype=theta.dtype, device=theta.device) if count > 1 else theta.new_zeros(count)
        if not align_corners:
            line = line * (count - 1) / count
        axes.append(line.reshape([-1 if dim == other else 1 for other in range(rank)]).expand(sizes))
    axes = [*axes[::-1], ones(sizes, dtype=theta.dtype, device=theta.device)]
    base = stack(axes, -1).reshape(1, -1, rank + 1).expand(size[0], -1, -1)
    return standing_alone((base @ theta.mT).reshape(size[0], *sizes, rank), "affine_grid_generator")
