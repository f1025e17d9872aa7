"""Convolutions and transposed convolutions of one, two and three dimensions, under PyTorch's names."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from ...autograd.levels import followed
from ...errors import ArgumentError, ShapeError
from ...ground.arguments import check_tensor, whole
from ...ground.composing import declare
from ...kernels.window.convolution import convolution, convolution_transposed
from ...kernels.window.geometry import forward_size, same_padding, transposed_size
from ...tensors import Tensor
from ...types.layout import Shape
from ..matmul.linear_algebra import fused_activation


def numbers(call: str, name: str, value: object, count: int) -> tuple[int, ...]:
    """A number, or one for each dimension, as one for each."""
    if value.__class__ is int:
        return (value,) * count
    several = value if isinstance(value, (tuple, list)) else (value,)
    try:
        numbers = tuple([operator.index(each) for each in several])
    except (TypeError, ShapeError):
        raise ArgumentError(
            f"{call}(): argument '{name}' must be tuple of ints, not {type(value).__name__}", f"got {value!r}"
        ) from None
    if len(numbers) == 1:
        return numbers * count
    if len(numbers) != count:
        raise ShapeError(
            f"expected {name} to be a single integer value or a list of {count} values to match the convolution "
            f"dimensions, but got {name}={list(numbers)}"
        )
    return numbers


def _check_operands(call: str, rank: int, input: Any, weight: Any, bias: Any) -> None:
    """Raise unless all are tensors, of the ranks of this function."""
    check_tensor(call, "input", 1, input)
    check_tensor(call, "weight", 2, weight)
    if bias is not None:
        check_tensor(call, "bias", 3, bias)
    if input._data.ndim not in (rank + 1, rank + 2):
        raise ShapeError(
            f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {call}, but got input of size: "
            f"{list(input.shape)}",
            f"weight has the shape {list(weight.shape)}",
        )
    if weight._data.ndim != rank + 2:
        if weight.ndim < 3:
            raise ShapeError("weight should have at least three dimensions", f"got {list(weight.shape)}")
        raise ShapeError(
            f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight {list(weight.shape)}, "
            f"but got {rank + 2}-dimensional input of size {list(input.shape)} instead",
            f"{call} takes a weight of {rank + 2} dimensions",
        )


def _check_numbers(stride: tuple[int, ...], padding: Any, dilation: Any, groups: int, more: Sequence[int] = ()) -> None:
    """Raise for numbers that no input fits, in the order in which PyTorch does."""
    if groups <= 0:
        raise ShapeError("non-positive groups is not supported", f"groups is {groups}")
    for words, wrong, values in (
        ("negative padding is", min(padding) < 0, padding),
        ("negative output_padding is", min(more, default=0) < 0, more),
        ("non-positive stride is", min(stride) <= 0, stride),
    ):
        if wrong:
            raise ShapeError(f"{words} not supported", f"got {values}")
    if min(dilation) <= 0:
        raise ShapeError(f"dilation should be greater than zero, but got {dilation}")


def _check_channels(
    x: tuple[int, ...], weight: tuple[int, ...], bias: tuple[int, ...] | None, groups: int, transposed: bool
) -> None:
    """Raise unless the channels of input, weight and bias fit together."""
    first = weight[0]
    if first < groups or first % groups:
        what = f"at least {groups}" if first < groups else f"divisible by {groups}"
        shown = list(weight) if first < groups else [list(weight)]
        raise ShapeError(
            f"Given groups={groups}, expected weight to be {what} at dimension 0, but got weight of size {shown} "
            "instead"
        )
    wanted = first if transposed else weight[1] * groups
    given = f"Given {'transposed=1' if transposed else f'groups={groups}'}, weight of size {list(weight)}, expected "
    if x[1] != wanted:
        raise ShapeError(
            f"{given}input{list(x)} to have {wanted} channels, but got {x[1]} channels instead",
            remedy="put the channels into the second dimension; x.movedim(-1, 1) does so where they are the last",
        )
    channels = weight[1] * groups if transposed else first
    if bias is not None and bias != (channels,):
        start = given if transposed else f"Given weight of size {list(weight)}, expected "
        raise ShapeError(
            f"{start}bias to be 1-dimensional with {channels} elements, but got bias of size {list(bias)} instead"
        )


def _check_elements(x: tuple[int, ...], weight: tuple[int, ...]) -> None:
    """Raise for an input or a kernel without elements, unless that has no images or no channels."""
    if 0 in weight[2:]:
        raise ShapeError(f"kernel size should be greater than zero, but got weight of size {list(weight)}")
    if 0 in x[2:]:
        raise ShapeError(f"Only zero batch or zero channel inputs are supported, but got input shape: {list(x)}")


def _run(
    sum: Callable[..., Tensor], activation: str | None, name: str, *operands: Tensor | None, **metadata: Any
) -> Tensor:
    """The operator's call; an activation runs inside of it where no gradient is needed."""
    if activation is None:
        return sum(*operands, **metadata)
    after = fused_activation(name, activation)
    if followed(*operands):
        return after(sum(*operands, **metadata))
    return sum(*operands, **metadata, activation=activation)


def convolve(
    rank: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: Any = 1,
    activation: str | None = None,
) -> Tensor:
    """`conv1d`, `conv2d` or `conv3d`, by `rank`."""
    call = f"conv{rank}d"
    _check_operands(call, rank, input, weight, bias)
    if input._data.ndim == rank + 1:
        batch = input.unsqueeze(0)
        return convolve(rank, batch, weight, bias, stride, padding, dilation, groups, activation).squeeze(0)
    stride, dilation = numbers(call, "stride", stride, rank), numbers(call, "dilation", dilation, rank)
    if not isinstance(padding, str):
        padding = numbers(call, "padding", padding, rank)
    groups = whole(call, "groups", groups)
    shapes = (input._data.shape, weight._data.shape, None if bias is None else bias._data.shape)
    padding, size = _geometry(*shapes, stride, padding, dilation, groups)
    if not shapes[0][1]:  # as in PyTorch no channels give no channels
        weight, bias = weight[:0], None
    geometry = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "size": size}
    return _run(convolution, activation, call, input, weight, bias, **geometry)


@lru_cache(4096)
def _geometry(
    x: Shape, weight: Shape, bias: Shape | None, stride: Shape, padding: Any, dilation: Shape, groups: int
) -> tuple[Shape, Shape]:
    """The padding in numbers and the sizes of the results of a convolution; raises if its arguments do not fit."""
    kernel, rank = weight[2:], len(stride)
    words = padding if isinstance(padding, str) else ""
    if words not in ("", "same", "valid"):
        raise ShapeError(f"Invalid padding string: '{words}'", remedy="pass 'same', 'valid' or numbers")
    if words == "same":
        if max(stride) != 1:
            raise ShapeError("padding='same' is not supported for strided convolutions", f"stride is {stride}")
        padding = tuple([same_padding(*each) for each in zip(kernel, dilation, strict=True)])
    elif words:
        padding = (0,) * rank
    _check_numbers(stride, padding, dilation, groups)
    _check_channels(x, weight, bias, groups, False)
    if words == "same":
        size = x[2:]
    else:
        size = tuple([forward_size(*each) for each in zip(x[2:], kernel, stride, padding, dilation, strict=True)])
    if min(size) < 1:
        padded = " x ".join(str(each + 2 * more) for each, more in zip(x[2:], padding, strict=True))
        taken = " x ".join(str(step * (each - 1) + 1) for each, step in zip(kernel, dilation, strict=True))
        raise ShapeError(
            f"Calculated padded input size per channel: ({padded}). Kernel size: ({taken}). Kernel size can't be "
            "greater than actual input size",
            f"input has the shape {list(x)}, weight {list(weight)}",
        )
    _check_elements(x, weight)
    return padding, size


def convolve_transposed(
    rank: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: Any = 1,
    dilation: Any = 1,
    activation: str | None = None,
) -> Tensor:
    """`conv_transpose1d`, `conv_transpose2d` or `conv_transpose3d`, by `rank`."""
    call = f"conv_transpose{rank}d"
    _check_operands(call, rank, input, weight, bias)
    if input.ndim == rank + 1:
        batch = input.unsqueeze(0)
        rest = stride, padding, output_padding, groups, dilation, activation
        return convolve_transposed(rank, batch, weight, bias, *rest).squeeze(0)
    given = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
    stride, padding, more, dilation = (numbers(call, name, value, rank) for name, value in given.items())
    groups = whole(call, "groups", groups)
    _check_numbers(stride, padding, dilation, groups, more)
    x, kernel = input._data.shape, weight._data.shape[2:]
    _check_channels(x, weight._data.shape, None if bias is None else bias._data.shape, groups, True)
    if any(each >= max(step, reach) for each, step, reach in zip(more, stride, dilation, strict=True)):
        names = ("depth", "height", "width")[3 - rank :]
        several = (("output_padding", more), ("stride", stride), ("dilation", dilation))
        got = " ".join(f"{what}_{name}: {each}" for what, all in several for name, each in zip(names, all, strict=True))
        raise ShapeError(f"output padding must be smaller than either stride or dilation, but got {got}")
    along = zip(x[2:], kernel, stride, padding, dilation, more, strict=True)
    size = tuple([transposed_size(*each) for each in along])
    _check_elements(x, weight._data.shape)
    if min(size) < 0:
        sizes = " x ".join(map(str, x[2:]))
        found = " x ".join(map(str, size))
        raise ShapeError(
            f"Given input size per channel: ({sizes}). Calculated output size per channel: ({found}). Output size is "
            "too small"
        )
    geometry = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "size": size}
    return _run(convolution_transposed, activation, call, input, weight, bias, **geometry)


def _declare(rank: int) -> None:
    """Make the two functions of a number of dimensions public."""

    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        *,
        activation: str | None = None,
    ) -> Tensor:
        """Applies a {rank}-d convolution (cross-correlation) over an input of shape (N, in, {sizes}) or (in, {sizes}).

        Args:
            input: shape (N, in, {sizes}), or (in, {sizes}) for one image; channels-last memory gives a result in
                channels-last memory.
            weight: shape (out, in / groups, *kernel), of the input's dtype.
            bias: shape (out,).
            stride: steps between places; a number, or one for each dimension, as for the next two.
            padding: zeros around the input; "valid" for none, "same" for as many as give the result the input's sizes.
            dilation: steps between the elements that a kernel lies on.
            groups: into how many parts, computed apart, the channels are divided.
            activation: the name of an operator of one input, such as "relu", to apply to the result. On a CUDA device
                it runs inside the kernel, unless a gradient is needed.

        >>> import tritensor as torch
        >>> x, kernel = torch.ones(8, 3, *[7] * {rank}), torch.ones(4, 3, *[3] * {rank})
        >>> torch.conv{rank}d(x, kernel, padding=1).shape == (8, 4, *[7] * {rank})
        True

        Raises:
            ShapeError: ranks, channels or groups that do not fit (`Given groups=1, weight of size [4, 3, 3, 3],
                expected input[2, 5, 5, 5] to have 3 channels`), a kernel larger than the padded input, steps that are
                not positive.
            DtypeError: different dtypes, or booleans.
        """
        return convolve(rank, input, weight, bias, stride, padding, dilation, groups, activation)

    def conv_transpose(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        dilation: int | Sequence[int] = 1,
        *,
        activation: str | None = None,
    ) -> Tensor:
        """Applies a {rank}-d transposed convolution (deconvolution): each input element adds a kernel to the result.

        It is the gradient of `conv{rank}d` with respect to its input: that of the same stride, padding and dilation.

        Args:
            input: shape (N, in, {sizes}), or (in, {sizes}) for one image.
            weight: shape (in, out / groups, *kernel), of the input's dtype.
            bias: shape (out,).
            stride: steps between the places of neighbours; a number, or one for each dimension, as for the next ones.
            padding: how much of the result is left out at each side.
            output_padding: how much larger the result is at its end.
            groups: into how many parts, computed apart, the channels are divided.
            dilation: steps between the elements that a kernel is added to.
            activation: the name of an operator of one input, as for `conv{rank}d`.

        >>> import tritensor as torch
        >>> x, kernel = torch.ones(8, 3, *[7] * {rank}), torch.ones(3, 4, *[3] * {rank})
        >>> torch.conv_transpose{rank}d(x, kernel, padding=1).shape == (8, 4, *[7] * {rank})
        True

        Raises:
            ShapeError: ranks, channels or groups that do not fit, or an output padding that is not below the stride.
            DtypeError: different dtypes, or booleans.
        """
        return convolve_transposed(
            rank, input, weight, bias, stride, padding, output_padding, groups, dilation, activation
        )

    declare(conv, f"conv{rank}d", rank, package=True)
    declare(conv_transpose, f"conv_transpose{rank}d", rank, package=True)


for _rank in (1, 2, 3):
    _declare(_rank)
