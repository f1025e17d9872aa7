"""Batch, group, instance and local response normalisation, under PyTorch's names."""

from __future__ import annotations

from math import nan, prod
from typing import Any

from ...autograd.gradients import called, constant_in
from ...autograd.mode import no_grad
from ...autograd.precision import casts
from ...errors import DivisionError, DtypeError, RangeError, ShapeError, require
from ...ground.arguments import check_tensor, whole
from ...ground.public import public, publish
from ...kernels.rowwise.channel_norm import channel_norm, move_average, normalize_channels
from ...operators.autocasting import cast, casting
from ...operators.rules import Floating, is_half
from ...tensors import Tensor
from ...types import formats
from ...types.dtypes import float32
from ..window.filling import pad


@public(package=False)
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Applies batch normalisation: zero mean and unit variance for each channel of (N, C, ...), then scale and shift.

    >>> import tritensor as torch
    >>> torch.nn.functional.batch_norm(torch.tensor([[1., 5.], [3., 5.]]), None, None, training=True)
    tensor([[-1.0000,  0.0000],
            [ 1.0000,  0.0000]])

    Args:
        running_mean, running_var: of C elements. In training they are moved towards the batch's mean and unbiased
            variance, unless None; else the input is normalised by them.
        weight, bias: of C elements and the input's dtype (or float32 beside half precision).
        training: use the statistics of the batch.
        momentum: the share of the batch in the new running statistics.
        eps: added to the variance.

    Raises:
        ValueError: one value per channel in training, or an `eps` that is not positive. ShapeError: sizes that do not
            fit. DtypeError: dtypes that do not fit together, or are not floating.
    """
    check_tensor("batch_norm", "input", 1, input)
    if input._data.shape == (0,):  # PyTorch takes that, too
        return input.clone()
    shape = _at_least_two("batch_norm", input)
    if training and shape[0] * prod(shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    if eps < 0 or (training and eps == 0):
        wanted = "positive during training" if training else "non-negative"
        raise ValueError(f"batch_norm eps must be {wanted}, but got {eps}")
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


@public(package=False)
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Applies instance normalisation: zero mean and unit variance for each channel of each example of (N, C, ...).

    >>> import tritensor as torch
    >>> torch.nn.functional.instance_norm(torch.tensor([[[1., 3.], [2., 8.]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])

    Args:
        running_mean, running_var: of C elements, moved towards the mean of the examples' statistics; with
            `use_input_stats=False` the input is normalised by them.
        weight, bias, momentum, eps: as for `batch_norm`.

    Raises:
        ValueError: one element per channel. ShapeError, DtypeError: as for `batch_norm`.
    """
    check_tensor("instance_norm", "input", 1, input)
    if use_input_stats and prod(input.shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.shape}")
    return _instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)


@public(package=False, autocast={"cuda": "float32"})
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Applies group normalisation: zero mean and unit variance for groups of channels of an example of (N, C, ...).

    >>> import tritensor as torch
    >>> torch.nn.functional.group_norm(torch.tensor([[1., 3., 5., 5.]]), 2)
    tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])

    Args:
        num_groups: a divisor of C.
        weight, bias: of C elements and the input's dtype (or float32 beside half precision).
        eps: added to the variance.

    Raises:
        ShapeError: sizes that do not fit. DtypeError: dtypes that do not fit together, or are not floating.
        ValueError: one value per group.
    """
    check_tensor("group_norm", "input", 1, input)
    shape, groups = tuple(input.shape), whole("group_norm", "num_groups", num_groups)
    require(len(shape) >= 2, ShapeError, "Expected at least 2 dimensions for input tensor but received {}", len(shape))
    if groups > 0 and shape[0] * shape[1] // groups * prod(shape[2:]) == 1:
        sizes = [shape[0] * shape[1] // groups, groups, *shape[2:]]
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {sizes}")
    return _group_norm(input, groups, weight, bias, eps)


@public(package=False)
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Local response normalisation of (N, C, ...): x / (k + alpha * mean square of `size` nearby channels) ** beta.

    It is that of Krizhevsky et al. (2012); beyond the first and the last channel there are zeros.

    >>> import tritensor as torch
    >>> torch.nn.functional.local_response_norm(torch.tensor([[[1.], [2.], [3.]]]), 2, alpha=2., beta=1.)
    tensor([[[0.5000],
             [0.3333],
             [0.2143]]])

    Raises:
        ValueError: fewer than three dimensions. ShapeError: `size` is not positive.
    """
    check_tensor("local_response_norm", "input", 1, input)
    if input.ndim < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality                          input (got {input.ndim} dimensions)"
        )
    size = whole("local_response_norm", "size", size)
    if size < 1:
        raise ShapeError(f"kernel size should be greater than zero, but got kH: {size} kW: 1")
    if not input.numel():
        return input
    beside = (0, 0) * (input.ndim - 2) + (size // 2, (size - 1) // 2)
    squares = input * input
    if casts.on and input.ndim > 3:
        (squares,) = cast({"cpu": "float32"}, squares)  # what PyTorch's sums are there
    squares = pad(squares, beside)
    total = squares.narrow(1, 0, input.shape[1])
    for step in range(1, size):
        total = total + squares.narrow(1, step, input.shape[1])
    return input / _in_format_of(input, (total * (alpha / size) + k) ** beta)


def _at_least_two(call: str, input: Tensor) -> tuple[int, ...]:
    check_tensor(call, "input", 1, input)
    shape = tuple(input._data.shape)
    if len(shape) < 2:
        raise RangeError(
            "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
            f"{call}: the input has to be (N, C, ...), and its shape is {list(shape)}",
        )
    return shape


def _check(call: str, input: Tensor, words: str, **parameters: Tensor | None) -> None:
    """Raise unless the input is floating and the parameters have a number for each channel, of a dtype beside it."""
    kind, channels = input.dtype, input._data.shape[1]
    Floating("floating", words).check(call, kind)
    for position, (name, each) in enumerate(parameters.items(), 2):
        if each is None:
            continue
        check_tensor(call, name, position, each)
        if each._data.size != channels:
            words = f"{name} should contain {channels} elements not {each._data.size}"
            if call == "group_norm":
                words = (
                    f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} "
                    f"of shape {list(each.shape)} and input of shape {list(input.shape)}"
                )
            raise ShapeError(words)
        if each.dtype is not kind and not (is_half(kind) and each.dtype is float32):
            raise DtypeError(
                "mixed dtype (CPU): expect parameter to have scalar type of Float",
                f"{call}: input is {kind}, {name} is {each.dtype}",
                remedy=f"bring {name} to the input's dtype with .to(dtype)",
            )


def _check_running(call: str, training: bool, mean: Tensor | None, var: Tensor | None, words: tuple[str, str]) -> None:
    """Raise unless running statistics are both there, or in training none."""
    if training and (mean is None) != (var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if not training and (mean is None or var is None):
        raise ShapeError(words[mean is not None])
    constant_in("native_batch_norm", running_mean=mean, running_var=var)


def _flat(each: Tensor | None) -> Tensor | None:
    return each if each is None or each._data.ndim == 1 else each.reshape(-1)


def _batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: Any,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Batch normalisation: `nn.functional.batch_norm` with the parameters in another order and fewer checks."""
    return _with_moments(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


def _native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch normalisation, with each channel's mean and 1 over its deviation, which are empty unless `training`."""
    out, *moments = _with_moments(input, weight, bias, running_mean, running_var, training, momentum, eps)
    with no_grad():
        mean, var = moments or [input.new_empty(0)] * 2
        kind = (input if weight is None else weight).dtype
        return out, mean.to(kind), (var + eps).rsqrt().to(kind)


def _with_moments(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: Any,
    eps: float,
) -> tuple[Tensor, ...]:
    """The results of batch norm, with the mean and the variance of the channels in training."""
    shape = _at_least_two("batch_norm", input)
    words = tuple([f"running_{name} must be defined in evaluation mode" for name in ("mean", "var")])
    _check_running("batch_norm", training, running_mean, running_var, words)  # type: ignore[arg-type]
    parameters = {"weight": weight, "bias": bias}
    _check("batch_norm", input, "batch_norm", running_mean=running_mean, running_var=running_var, **parameters)
    weight, bias = _flat(weight), _flat(bias)
    if not training:
        return (_normalized(input, running_mean, running_var, weight, bias, eps),)  # type: ignore[arg-type]
    order = _order(input)
    if order is None:
        out, mean, var, _ = channel_norm(input, weight, bias, groups=None, eps=float(eps))
    else:  # (N, H, W, C) as rows of channels, whose result is in that order again
        rows = input.permute(order)
        out, mean, var, _ = channel_norm(rows.reshape(-1, shape[1]), weight, bias, groups=None, eps=float(eps))
        out = _channels_second(out.reshape(rows.shape))
        out._origin = None  # nobody has what it is a view of, so a change in it is one of itself
    if running_mean is not None:
        track_statistics(running_mean, running_var, mean, var, momentum, shape[0] * prod(shape[2:]))  # type: ignore[arg-type]
    return called("NativeBatchNormBackward0", out), mean, var


def _order(input: Tensor) -> tuple[int, ...] | None:
    """The dimensions from the outermost to the innermost where the channel is the innermost; else None."""
    if input.ndim < 4 or formats.suggested(tuple(input.shape), input.stride()) is formats.contiguous_format:
        return None
    return 0, *range(2, input.ndim), 1


def _channels_second(rows: Tensor) -> Tensor:
    """(N, H, W, C) as (N, C, H, W)."""
    last = rows.ndim - 1
    return rows.permute((0, last, *range(1, last)))


def _normalized(
    input: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    """The input normalised by given statistics of its channels."""
    order = _order(input) if input._off_host else None  # on a device results are row-major, here of (N, H, W, C)
    shape = (-1,) + (1,) * (input.ndim - 2) if order is None else (-1,)
    scale: Any = 1.0 if weight is None else weight.reshape(shape)
    shift: Any = 0.0 if bias is None else bias.reshape(shape)
    rows = input if order is None else input.permute(order)
    out = normalize_channels(rows, mean.reshape(shape), var.reshape(shape), scale, shift, 0.0, eps=float(eps))
    return called("NativeBatchNormBackward0", out if order is None else _channels_second(out))


def track_statistics(
    running_mean: Tensor, running_var: Tensor, mean: Tensor, var: Tensor, momentum: float, count: int
) -> None:
    """Move running statistics towards those of `count` values per channel; nothing is waited for."""
    if not count:
        return
    with no_grad():
        move_average(running_mean, mean.reshape(running_mean.shape), momentum, 1.0)
        factor = count / (count - 1) if count > 1 else nan
        move_average(running_var, var.reshape(running_var.shape), momentum, factor)


def _instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Instance normalisation: `nn.functional.instance_norm` with the parameters in another order and fewer checks."""
    _at_least_two("instance_norm", input)
    words = "Expected running_mean and running_var to be defined when use_input_stats is false"
    _check_running("instance_norm", use_input_stats, running_mean, running_var, (words, words))
    parameters = {"weight": weight, "bias": bias}
    _check("instance_norm", input, "batch_norm", running_mean=running_mean, running_var=running_var, **parameters)
    if not use_input_stats:
        out = _normalized(input.contiguous(), running_mean, running_var, weight, bias, eps)  # type: ignore[arg-type]
        return called("ViewBackward0", out)
    out, mean, var, _ = channel_norm(input, _flat(weight), _flat(bias), groups=input.shape[1], eps=float(eps))
    if running_mean is not None and (input.numel() or not len(input)):  # the mean of no example is nan
        count = prod(input.shape[2:])
        track_statistics(running_mean, running_var, mean.mean(0), var.mean(0), momentum, count)  # type: ignore[arg-type]
    return called("ViewBackward0", out)


def _group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Group normalisation: `nn.functional.group_norm`, which does not refuse one value per group."""
    _at_least_two("group_norm", input)
    groups = whole("group_norm", "num_groups", num_groups)
    if groups < 1:
        kind = ShapeError if groups else DivisionError
        raise kind(f"Expected num groups to be greater than 0, got {groups}")
    if input.shape[1] % groups:
        raise ShapeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={groups}"
        )
    _check("group_norm", input, "GroupNormKernelImpl", weight=weight, bias=bias)
    out = channel_norm(input, _flat(weight), _flat(bias), groups=groups, eps=float(eps))[0]
    return called("NativeGroupNormBackward0", _in_format_of(input, out))


def _native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Group normalisation of (N, C, ...), with each group's mean and 1 over its deviation."""
    if input.numel() != N * C * HxW:
        raise ShapeError(
            "Expected X.numel() == N * C * HxW to be true, but got false.",
            f"the input has {input.numel()} elements, and the numbers are {N}, {C} and {HxW}",
        )
    out = _group_norm(input, group, weight, bias, eps)
    rows = input.reshape(N, group, C // group * HxW).to((input if weight is None else weight).dtype)
    return out, rows.mean(-1), (rows.var(-1, correction=0) + eps).rsqrt()


def _in_format_of(input: Tensor, out: Tensor) -> Tensor:
    """`out` with the channel innermost if the input's is."""
    if _order(input) is None:
        return out
    return out.contiguous(memory_format=formats.suggested(tuple(input.shape), input.stride()))


_CASTING = {_group_norm: {"cuda": "float32"}, _native_group_norm: {"cuda": "apart"}}
for _function in (_batch_norm, _instance_norm, _group_norm, _native_batch_norm, _native_group_norm):
    _policy, _name = _CASTING.get(_function), _function.__name__[1:]
    publish(_name, casting(_function, _name, _policy) if _policy else _function, functional=False)
