"""Padding, grids of coordinates, sums without NaN, and the broadcasting of shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...autograd.gradients import called
from ...autograd.mode import recording
from ...autograd.precision import casts
from ...errors import ArgumentError, ShapeError, explain, require, warn
from ...ground.arguments import check_tensor, check_tensors, wrong_type
from ...ground.public import public
from ...kernels.window.resampling_maps import Map, rule
from ...memory.deferred import Deferred
from ...operators import registry
from ...operators.autocasting import cast
from ...operators.outputs import COMPUTED, takes_out
from ...tensors import Tensor
from ...types import layout
from ...types.formats import contiguous_format, suggested
from ...types.size import Size
from ..creation.creation import empty
from ..creation.likeness import lifted_as
from .resizing import resized

# The modes, and what PyTorch calls the operators that repeat elements.
_MODES = {"constant": "constant", "reflect": "reflection", "replicate": "replication", "circular": "circular"}


@public(package=False)
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pads `input`: adds elements around it (or removes them, where a number is negative), from the last dimension on.

    >>> import tritensor as torch
    >>> torch.nn.functional.pad(torch.tensor([[1, 2]]), (1, 2, 0, 1), value=7)
    tensor([[7, 1, 2, 7, 7],
            [7, 7, 7, 7, 7]])

    Args:
        pad: how many before and after, for the last dimension, the one before it, and so on.
        mode: "constant", or a way to repeat the tensor's own elements: "reflect" mirrors them at the edge, "replicate"
            repeats the edge, "circular" continues at the other side. In any number of dimensions.
        value: the value of the new elements for "constant"; 0 unless given.

    Raises:
        DtypeError: the dtype does not hold the value.
        ShapeError: an odd number of numbers, too many for the dimensions, more elements to be removed than there are,
            or too few to reflect, repeat or continue with. NotImplementedError: no such mode.
    """
    check_tensor("pad", "input", 1, input)
    if not isinstance(pad, (tuple, list)):
        raise wrong_type("pad", "pad", "tuple of ints", pad, 2)
    if mode not in _MODES:
        raise NotImplementedError(explain(f"Unrecognised padding mode {mode}", f"the modes are {', '.join(_MODES)}"))
    for place, number in enumerate(pad):
        if (isinstance(number, bool) and not place) or not hasattr(type(number), "__index__"):
            words = f"but found element of type {type(number).__name__} at pos {place}"
            raise ArgumentError(f"pad(): argument 'pad' (position 2) must be tuple of ints, {words}")
    require(mode == "constant" or not value, ShapeError, 'Padding mode "{}" doesn\'t take in value argument', mode)
    require(not len(pad) % 2, ShapeError, "Padding length must be divisible by 2, got {} numbers", len(pad))
    if len(pad) > 2 * input.ndim:
        raise ShapeError(
            f"Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {input.ndim}"
        )
    shape, inner, cropped = list(input.shape), [slice(None)] * input.ndim, [slice(None)] * input.ndim
    for step in range(len(pad) // 2):
        dim, before, after = input.ndim - 1 - step, pad[2 * step], pad[2 * step + 1]
        size = shape[dim]
        shape[dim] = size + before + after
        _check_removed(mode, size, before, after, dim, "WHD"[min(step, 2)])
        cropped[dim] = slice(max(0, -before), size - max(0, -after))
        inner[dim] = slice(max(0, before), shape[dim] - max(0, after))
    if mode != "constant":
        if casts.on and mode != "circular" and (mode == "replicate" or len(pad) < 6):
            (input,) = cast({"cpu": "float32"}, input)
        return _continued(input, pad, mode)
    if isinstance(value, complex):
        raise ArgumentError("pad(): argument 'value' (position 4) must be float, not complex")
    if max(pad, default=0) <= 0:  # nothing is added, and PyTorch does not look at the value
        return called("ConstantPadNdBackward0", input[tuple(cropped)].clone())
    format = suggested(tuple(input.shape), input.stride())
    noted = Deferred.used and input._data.__class__ is Deferred and not (input._needs and recording.enabled)
    if noted and not value and format is contiguous_format:
        found = Deferred.rules.through("pad", _framed, (input,), tuple(shape), tuple(inner), tuple(cropped))
        if found is not None:
            return found
    framed = lifted_as(input, empty(shape, dtype=input.dtype, device=input.device, memory_format=format))
    framed.fill_(0 if value is None else float(value))
    framed[tuple(inner)] = input[tuple(cropped)]
    if framed._node is not None:  # the node of the copy, which is this tensor's alone
        framed._node.backward.name = "ConstantPadNdBackward0"
    return framed


def _framed(x: np.ndarray, shape: tuple[int, ...], inner: tuple[slice, ...], cropped: tuple[slice, ...]) -> np.ndarray:
    framed = np.zeros(shape, x.dtype)
    framed[inner] = x[cropped]
    return framed


def _check_removed(mode: str, size: int, before: int, after: int, dim: int, letter: str) -> None:
    """Raise if negative numbers remove more than there is to remove, in the words that PyTorch has for each mode."""
    left = size + before + after
    if mode == "constant":
        refused, words = size + min(before, 0) + min(after, 0) < 0, "narrow(): length must be non-negative."
    elif mode == "circular":
        refused, words = left < 0, "Negative padding value is resulting in an empty dimension"
    else:
        words = f"input ({letter}: {size}) is too small. Calculated output {letter}: {left}"
        refused = left < 1 and (before < 0 or after < 0)
    if refused:
        raise ShapeError(words, f"pad: {before} and {after} for the {size} elements of dimension {dim}")


def _continued(x: Tensor, pad: Sequence[int], mode: str) -> Tensor:
    """`x` padded with its own elements."""
    maps = []
    for step in range(len(pad) // 2):
        dim, before, after = x.ndim - 1 - step, pad[2 * step], pad[2 * step + 1]
        size, most = x._data.shape[dim], max(before, after)
        first = max(0, -before)
        kept = size - first - max(0, -after)
        if most > 0 and (size == 0 or (mode == "reflect" and most >= size) or (mode == "circular" and most > kept)):
            words = "Padding value causes wrapping around more than once."
            if mode != "circular":
                words = (
                    f"Argument #{4 + 2 * step}: Padding size should be less than the corresponding input dimension, "
                    f"but got: padding ({before}, {after}) at dimension {dim} of input {list(x.shape)}"
                )
            raise ShapeError(words, f"{most} elements are to be added to the {size} of dimension {dim}")
        if before or after:
            maps.append(Map(dim, size, size + before + after, rule("padded", mode, before, after)))
    if not maps:
        return x.clone()
    name = "CopySlices" if mode == "circular" else f"{_MODES[mode]}_pad{len(pad) // 2}d"
    return resized(x, maps, name, keeps_format=mode != "circular")


@public()
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Makes grids of coordinates: for vectors of n, m, ... coordinates one tensor each, of shape (n, m, ...).

    >>> import tritensor as torch
    >>> rows, cols = torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3, 4, 5]), indexing="ij")
    >>> rows.shape, cols[1]
    (tritensor.Size([2, 3]), tensor([3, 4, 5]))

    Args:
        tensors: vectors or single numbers; or one list of them.
        indexing: "ij", or "xy" to exchange the first two dimensions. "ij", with a warning, unless given.

    Raises:
        ShapeError: no tensor, one of two dimensions or more, dtypes that differ, or another `indexing`.
    """
    inputs = tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    if indexing is None:
        warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.")
    if indexing not in (None, "ij", "xy"):
        raise ShapeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    require(inputs, ShapeError, "meshgrid expects a non-empty TensorList")
    check_tensors(inputs)
    if any(tensor.ndim > 1 for tensor in inputs):
        raise ShapeError("torch.meshgrid: Expected 0D or 1D tensor in the tensor list")
    if any(tensor.dtype is not inputs[0].dtype for tensor in inputs):
        raise ShapeError("meshgrid expects all tensors to have the same dtype")
    swapped = indexing == "xy" and len(inputs) > 1
    vectors = (inputs[1], inputs[0], *inputs[2:]) if swapped else inputs
    shape = [vector.numel() for vector in vectors]
    grids = [
        vector.reshape([-1 if axis == dim else 1 for axis in range(len(shape))]).expand(shape)
        for dim, vector in enumerate(vectors)
    ]
    if swapped:
        grids[:2] = grids[1], grids[0]
    return tuple(grids)


@public()
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of these shapes broadcast to; None is no shape.

    >>> import tritensor as torch
    >>> torch.broadcast_shapes((2, 1), (3,))
    tritensor.Size([2, 3])

    Raises:
        ShapeError: they do not go together, or are no shapes.
    """
    shapes = tuple([shape for shape in shapes if shape is not None])
    for shape in shapes:
        if not isinstance(shape, (int, tuple, list)):
            raise ShapeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape!r}")
    found = [layout.integers("broadcast_shapes", "shapes", (shape,)) for shape in shapes]
    return Size(layout.broadcast_shapes(*found))


@public(method=True, out=takes_out(COMPUTED), autocast={"cuda": "apart"})
def nansum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum of the elements that are not NaN, of all or along `dim`.

    >>> import tritensor as torch
    >>> torch.nansum(torch.tensor([1.0, torch.nan, 2.0]))
    tensor(3.)
    """
    if input.dtype.is_floating_point:
        input = registry["where"](input.isnan(), 0, input)
    return input.sum(dim, keepdim, dtype=dtype)
