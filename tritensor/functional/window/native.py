"""PyTorch's lower-level spellings of functions of pictures, such as `torch.max_pool2d` and `torch.conv_tbc`."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from ...autograd.gradients import called
from ...errors import ArgumentError, ShapeError, require
from ...ground.arguments import check_tensor, wrong_type
from ...ground.public import FUNCTIONAL, public, publish
from ...tensors import Tensor
from ...types.formats import contiguous_format
from ...types.layout import normalize_dim
from . import pooling, shuffling, unpooling  # noqa: F401 - the functions that have other spellings here
from .convolution import convolve, convolve_transposed
from .filling import pad as pad_with
from .grid_sampling import affine_coordinates, grid_sample

_FIXED = "return_indices"
_INTERPOLATIONS = dict(enumerate(("bilinear", "nearest", "bicubic")))
_PADDINGS = dict(enumerate(("zeros", "border", "reflection")))


def _declare(name: str, of: str, indices: bool, *, functional: bool) -> None:
    """Make a pool public under another name, which returns places always or never.

    Args:
        of: its name in nn.functional.
        functional: whether this is a name of nn.functional, which takes `return_indices`, of no effect; else it is one
            of the package, which does not.
    """
    pool = inspect.unwrap(FUNCTIONAL[of])
    shown = inspect.signature(pool)
    place = [*shown.parameters].index(_FIXED)
    least = sum(each.default is each.empty for each in shown.parameters.values())

    def form(input: Tensor, *args: Any, **named: Any) -> Any:
        if len(args) >= place:
            if not functional:
                count = f"from {least} to {place}" if least < place else str(place)
                raise ArgumentError(f"{name}() takes {count} positional arguments but {len(args) + 1} were given")
            return pool(input, *args[: place - 1], indices, *args[place:], **named)
        if _FIXED in named and not functional:
            raise ArgumentError(f"{name}() got an unexpected keyword argument '{_FIXED}'")
        return pool(input, *args, **{**named, _FIXED: indices})

    kept = [each for each in shown.parameters.values() if functional or each.name != _FIXED]
    result = "tuple[Tensor, Tensor]" if indices else "Tensor"
    form.__signature__ = shown.replace(parameters=kept, return_annotation=result)  # type: ignore[attr-defined]
    form.__name__ = form.__qualname__ = name
    form.__doc__ = f"Applies max pooling, `nn.functional.{of}`, {'with' if indices else 'without'} indices of maxima."
    autocast = {"cpu": "float32"} if name in _CASTING else None
    public(package=not functional, functional=functional, autocast=autocast)(form)


_CASTING = (
    "max_pool3d",
    "adaptive_max_pool3d_with_indices",
)  # those of three dimensions that are one operator in PyTorch

for _dims in "123":
    _declare(f"max_pool{_dims}d", f"max_pool{_dims}d", False, functional=False)
    for _pool in ("max_pool", "adaptive_max_pool", *["fractional_max_pool"] * (_dims > "1")):
        _declare(f"{_pool}{_dims}d_with_indices", f"{_pool}{_dims}d", True, functional=True)
_declare("max_pool1d_with_indices", "max_pool1d", True, functional=False)
_declare("adaptive_max_pool1d", "adaptive_max_pool1d", True, functional=False)
for _name in ("avg_pool1d", "adaptive_avg_pool1d"):
    publish(_name, FUNCTIONAL[_name], functional=False)


@public()
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Applies a 1-d convolution to an input (time, batch, in), channels last, with a weight (kernel, in, out).

    >>> import tritensor as torch
    >>> torch.conv_tbc(torch.ones(3, 1, 2), torch.ones(2, 2, 1), torch.zeros(1)).flatten()
    tensor([4., 4.])

    Args:
        bias: shape (out,).
        pad: zeros before and after the input.

    Raises:
        ShapeError: other shapes, or a kernel that is longer than the padded input. DtypeError: different dtypes.
    """
    for position, (name, each) in enumerate((("input", input), ("weight", weight), ("bias", bias)), 1):
        check_tensor("conv_tbc", name, position, each)
    time = len(input) + 2 * pad - len(weight) + 1 if input.ndim == weight.ndim == 3 else 0
    for wrong, words in (
        (input.ndim != 3, "Input must have 3 dims: time, batch, in_channel"),
        (weight.ndim != 3, "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels."),
        (bias.ndim != 1, "Bias must be 1-D"),
        (input.shape[-1:] != weight.shape[1:2], "Input dim 2 (input channels) is not == dim 1 in the weight tensor"),
        (bias.shape != weight.shape[2:], "Bias size must equal dim 2 in the weight tensor (output channels)."),
        (time < 0, f"Trying to create tensor with negative dimension {time}: {[time, *input.shape[1:2], len(bias)]}"),
    ):
        if wrong:
            shapes = ", ".join(str(list(each.shape)) for each in (input, weight, bias))
            raise ShapeError(words, f"input, weight and bias have the shapes {shapes}")
    out = convolve(1, input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)
    return called("ConvTbcBackward0", out.clone(memory_format=contiguous_format))


@public(functional=False)
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """Applies a convolution, `conv1d` to `conv_transpose3d`, by the dimensions of the input, (images, in, ...).

    >>> import tritensor as torch
    >>> torch.convolution(torch.ones(1, 1, 3), torch.ones(1, 1, 2), None, [1], [0], [1], False, [0], 1)
    tensor([[[2., 2.]]])

    Raises:
        ArgumentError: numbers in place of lists. ShapeError, DtypeError: as for `conv2d` and `conv_transpose2d`.
    """
    check_tensor("convolution", "input", 1, input)
    check_tensor("convolution", "weight", 2, weight)
    for position, (name, each) in enumerate((("stride", stride), ("padding", padding), ("dilation", dilation)), 4):
        if not isinstance(each, (tuple, list)):
            raise wrong_type("convolution", name, "tuple of ints", each, position)
    rank, shape = weight.ndim - 2, list(weight.shape)
    if rank < 1:
        raise ShapeError("weight should have at least three dimensions")
    if input.ndim != weight.ndim or rank > 3:
        words = f"Expected {rank + 2}-dimensional input for {rank + 2}-dimensional weight {shape}, but got "
        words += f"{input.ndim}-dimensional input of size {list(input.shape)} instead"
        raise ShapeError(words, "there are convolutions of one, two and three dimensions")
    if transposed:
        return convolve_transposed(
            rank, input, weight, bias, stride, padding, output_padding, groups=groups, dilation=dilation
        )
    return convolve(rank, input, weight, bias, stride, padding, dilation, groups)


@public(functional=False)
def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """Pads with a constant value: `nn.functional.pad` of this mode."""
    if isinstance(pad, (tuple, list)) and len(pad) % 2:
        raise ShapeError(f"Length of pad must be even but instead it equals {len(pad)}")
    return pad_with(input, pad, "constant", value)


@public(functional=False)
def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """Makes a sampling grid of affine maps: `nn.functional.affine_grid` without defaults and warnings."""
    require(len(size) in (4, 5), ShapeError, "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    return affine_coordinates(theta, size, align_corners)


def _declare_sampler(rank: int | None) -> None:
    name = "grid_sampler" if rank is None else f"grid_sampler_{rank}d"

    def sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
        """`nn.functional.grid_sample`, modes by number: bilinear, nearest, bicubic; zeros, border, reflection."""
        if rank is not None and input.ndim != rank + 2:
            sizes = f"but got input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
            words = f"grid_sampler(): expected {rank + 2}D input and grid with same number of dimensions, {sizes}"
            raise ShapeError(words)
        mode: Any = _INTERPOLATIONS.get(interpolation_mode, interpolation_mode)
        padding: Any = _PADDINGS.get(padding_mode, padding_mode)
        return grid_sample(input, grid, mode, padding, align_corners)

    sampler.__name__ = sampler.__qualname__ = name
    autocast = {"cpu": "float32"} if rank else {"cpu": "float32", "cuda": "widest"}
    public(functional=False, autocast=autocast)(sampler)


for _rank in (None, 2, 3):
    _declare_sampler(_rank)
publish("native_channel_shuffle", FUNCTIONAL["channel_shuffle"])


@public(functional=False)
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norm over all dimensions but one, which is left in; of all elements for -1.

    >>> import tritensor as torch
    >>> torch.norm_except_dim(torch.tensor([[3., 4.], [6., 8.]]))
    tensor([[ 5.],
            [10.]])

    Raises:
        RangeError: no such dimension.
    """
    if dim == -1:
        return v.norm(pow)
    if v.ndim == 1 and normalize_dim(dim, 1) == 0:  # no dimension is another one, and no list of them would mean all
        return v.unsqueeze(1).norm(pow, 1)
    return v.norm(pow, [each for each in range(v.ndim) if each != normalize_dim(dim, v.ndim)], keepdim=True)
