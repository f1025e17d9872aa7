"""unfold and fold: the windows of pictures as columns of a matrix, and pictures from such columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import ShapeError, require
from ...ground.arguments import check_tensor, wrong_type
from ...ground.public import public
from ...kernels.window.folding import col2im, im2col, windows_across
from ...tensors import Tensor
from ...types.dtypes import FLOATING, bool_
from .pooling_arguments import check_dtype

Pair = tuple[int, int]


@public(package=False)
def unfold(
    input: Tensor,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Extracts sliding windows of pictures as columns (im2col), of shape (N, C * positions of a window, windows).

    >>> import tritensor as torch
    >>> torch.nn.functional.unfold(torch.arange(6.).reshape(1, 1, 2, 3), 2)
    tensor([[[0., 1.],
             [1., 2.],
             [3., 4.],
             [4., 5.]]])

    Args:
        input: (N, C, H, W) or (C, H, W), boolean, floating or complex.
        kernel_size: height and width of a window, or one number for both, as the others.
        dilation: from one element of a window to the next.
        padding: zeros on all sides.
        stride: from one window to the next.

    Raises:
        ShapeError: an input of another rank, or no window fits. DtypeError: an integer dtype.
    """
    check_tensor("im2col", "input", 1, input)
    windows = _windows("im2col", kernel_size, dilation, padding, stride)
    shape = list(input._data.shape)
    if input.ndim not in (3, 4) or 0 in shape[-3:]:
        raise ShapeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {shape}"
        )
    blocks = tuple(each.number for each in windows_across(shape[-2:], **windows))
    if min(blocks) < 1:
        raise ShapeError(
            f"Given input with spatial size {tuple(shape[-2:])}, kernel_size={windows['kernel']}, "
            f"dilation={windows['dilation']}, padding={windows['padding']}, calculated shape of the array of sliding "
            f"blocks as {blocks}, but its components must be at least one."
        )
    check_dtype("im2col_out_cpu", input, _folds)
    return im2col(input, **windows)


@public(package=False)
def fold(
    input: Tensor,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Combines sliding windows, as columns, into images (col2im): overlapping elements are added; see `unfold`.

    >>> import tritensor as torch
    >>> torch.nn.functional.fold(torch.ones(1, 4, 2), (2, 3), 2)
    tensor([[[[1., 2., 1.],
              [1., 2., 1.]]]])

    Args:
        input: (N, C * positions of a window, windows) or without N, boolean, floating or complex.
        output_size: height and width of the pictures, or one number for both.
        kernel_size, dilation, padding, stride: those of `unfold`.

    Raises:
        ShapeError: the columns are not those of such windows. DtypeError: an integer dtype.
    """
    check_tensor("col2im", "input", 1, input)
    extents = _pair("col2im", "output_size", 2, output_size)
    windows = _windows("col2im", kernel_size, dilation, padding, stride, 1)
    shape = list(input._data.shape)
    if input.ndim not in (2, 3) or 0 in shape[-2:]:
        raise ShapeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {shape}"
        )
    check_dtype("col2im_out_cpu", input, _folds)
    return col2im(input, extents=extents, **windows)


def _folds(kind: Any) -> bool:
    return kind is bool_ or kind.category >= FLOATING


def _windows(call: str, kernel: Any, dilation: Any, padding: Any, stride: Any, before: int = 0) -> dict[str, Pair]:
    """The windows' metadata, checked; `before` counts the arguments between the input and these."""
    found = {}
    for position, (name, words, letter, value, least) in enumerate(
        (
            ("kernel", "kernel size", "kernel", kernel, 1),
            ("dilation", "dilation", "dilation", dilation, 1),
            ("padding", "padding", "pad", padding, 0),
            ("stride", "stride", "stride", stride, 1),
        ),
        2 + before,
    ):
        pair = found[name] = _pair(call, "kernel_size" if name == "kernel" else name, position, value)
        if min(pair) < least:
            fact = "greater than zero" if least else "non-negative"
            raise ShapeError(f"{words} should be {fact}, but got {letter}_height: {pair[0]} {letter}_width: {pair[1]}")
    return found


def _pair(call: str, name: str, position: int, value: Any) -> Pair:
    items = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    for item in items:
        if isinstance(item, bool) or not hasattr(item, "__index__"):
            raise wrong_type(call, name, "tuple of ints", item, position)
    require(len(items) == 2, ShapeError, "It is expected {} equals to 2, but got size {}", name, len(items))
    return items[0].__index__(), items[1].__index__()
