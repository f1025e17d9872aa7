"""Softmax, its logarithm, layer and RMS normalisation, under PyTorch's names."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ...errors import ArgumentError, ShapeError, warn
from ...ground.arguments import check_tensor, wrong_type
from ...ground.public import public
from ...kernels.rowwise import family as rowwise
from ...kernels.rowwise.layer_norm import layer_norm as _layer_norm
from ...kernels.rowwise.layer_norm import quick_layer_norm
from ...kernels.rowwise.rms_norm import rms_norm as _rms_norm
from ...operators.rules import compute_dtype
from ...tensors import Tensor
from ...types import Dtype, dtypes
from ...types.dtypes import FLOATING, dtype, finfo, of_argument
from ..creation.likeness import empty_like, zeros_like
from ..views.view_operators import standing_alone


@public(package=False, guard=False)
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Dtype = None, **others: Any) -> Tensor:
    """Applies softmax along `dim`: exp(input), scaled so that its sum is 1.

    >>> import tritensor as torch
    >>> torch.nn.functional.softmax(torch.tensor([0., 0., -torch.inf]), 0)
    tensor([0.5000, 0.5000, 0.0000])

    Args:
        dtype: convert the input to this dtype first.

    Raises:
        DtypeError: integers or booleans without a floating `dtype`. RangeError: no such dimension.
    """
    dim = _along("softmax", input, dim, others)
    if dtype is None:
        return rowwise.softmax.along(input, dim)
    return rowwise.softmax(_narrowed("softmax", input, dtype), dim=dim, dtype=dtype)


@public(package=False, guard=False)
def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Dtype = None, **others: Any
) -> Tensor:
    """Applies the logarithm of softmax along `dim`, computed without overflow.

    >>> import tritensor as torch
    >>> torch.nn.functional.log_softmax(torch.zeros(2), 0)
    tensor([-0.6931, -0.6931])
    """
    dim = _along("log_softmax", input, dim, others)
    if dtype is None:
        return rowwise.log_softmax.along(input, dim)
    return rowwise.log_softmax(_narrowed("log_softmax", input, dtype), dim=dim, dtype=dtype)


@public(package=False)
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Dtype = None) -> Tensor:
    """Applies softmin along `dim`: exp(-input), scaled so that its sum is 1; see `softmax`."""
    return softmax(-input, _along("softmin", input, dim, {}), _stacklevel, dtype)


@public(package=False)
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the Gumbel-softmax distribution: softmax of the logits with noise, divided by the temperature `tau`.

    From "Categorical reparameterization with Gumbel-softmax" (Jang and others, 2016).

    Args:
        hard: 1 at the largest and 0 elsewhere; the gradient is that of the softmax.
        eps: without effect, as in PyTorch.

    Raises:
        DtypeError: integers. RangeError: no such dimension.
    """
    noise = -empty_like(logits, requires_grad=False).exponential_().log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    chosen = zeros_like(logits, requires_grad=False).scatter_(dim, soft.detach().max(dim, keepdim=True)[1], 1.0)
    return chosen - soft.detach() + soft


@public()
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """Applies layer normalisation: zero mean and unit variance over the last dimensions, then a scale and a shift.

    >>> import tritensor as torch
    >>> torch.nn.functional.layer_norm(torch.tensor([[1., 2., 3.]]), (3,))
    tensor([[-1.2247,  0.0000,  1.2247]])

    Args:
        normalized_shape: the sizes of the last dimensions of `input` that are normalised together.
        weight, bias: of shape `normalized_shape` and the input's dtype (or float32 beside half precision).
        eps: added to the variance.
        cudnn_enable: of no effect; PyTorch's `torch.layer_norm` has it.

    Raises:
        ShapeError: the shapes do not fit. DtypeError: dtypes that do not fit together, or are not floating.
    """
    if normalized_shape.__class__ is tuple:  # of shapes that were checked in another call
        found = quick_layer_norm(input, normalized_shape, weight, bias, eps, False)
        if found is not None:
            return found
    shape = _checked_norm(input, normalized_shape, weight, bias)
    if len(shape) == 1 and (found := quick_layer_norm(input, shape, weight, bias, eps, True)) is not None:
        return found
    return _with_moments(input, shape, weight, bias, eps)[0]


@public(functional=False, autocast={"cuda": "float32"})
def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Layer normalisation, with the mean of the normalised dimensions (sizes 1) and 1 over their deviation.

    >>> import tritensor as torch
    >>> torch.native_layer_norm(torch.tensor([[1., 3.]]), (2,), None, None, 0.0)
    (tensor([[-1.,  1.]]), tensor([[2.]]), tensor([[1.]]))

    Raises:
        ShapeError, DtypeError: as for `layer_norm`.
    """
    out, *moments = _with_moments(input, _checked_norm(input, normalized_shape, weight, bias), weight, bias, eps)
    kind, count = (input if weight is None else weight).dtype, len(normalized_shape)
    shape = (*input.shape[: input.ndim - count], *(1,) * count)
    mean, rstd = (each.detach().to(kind).reshape(shape) for each in moments)
    return out, mean, rstd


def _checked_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None) -> tuple[int, ...]:
    """The normalised shape, which fits the input's and the parameters'."""
    check_tensor("layer_norm", "input", 1, input)
    shape = _normalized_shape("layer_norm", normalized_shape)
    _check_normalized(shape, tuple(input._data.shape), weight=weight, bias=bias)
    return shape


def _with_moments(
    input: Tensor, shape: tuple[int, ...], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The results of layer normalisation, with the mean and 1 over the deviation of each row."""
    input_shape, width = tuple(input._data.shape), prod(shape)
    if len(shape) > 1:
        weight, bias = (each if each is None else each.reshape(width) for each in (weight, bias))
    flat = len(input_shape) == 2 and len(shape) == 1
    height = prod(input_shape[: len(input_shape) - len(shape)])
    rows = input if flat else input.reshape(height, width)
    out, mean, rstd, _ = _layer_norm(rows, weight, bias, eps=float(eps))
    return out if flat else standing_alone(out.reshape(input_shape), "native_layer_norm"), mean, rstd


@public()
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Applies RMS normalisation: divides the last dimensions by the root of their mean square, then scales elementwise.

    >>> import tritensor as torch
    >>> torch.nn.functional.rms_norm(torch.tensor([[3., 4.]]), (2,))
    tensor([[0.8485, 1.1314]])

    Args:
        normalized_shape: the sizes of the last dimensions of `input` that are normalised together.
        weight: of shape `normalized_shape`, floating; it is converted to the dtype of the computation.
        eps: added to the mean square; unless given, the machine epsilon of the dtype of the computation.

    Raises:
        ShapeError: the shapes do not fit. DtypeError: the input is not floating.
    """
    check_tensor("rms_norm", "input", 1, input)
    shape = _normalized_shape("rms_norm", normalized_shape)
    input_shape = tuple(input._data.shape)
    _check_normalized(shape, input_shape, weight=weight)
    if input.is_complex():
        return _complex_rms_norm(input, len(shape), weight, eps)
    width = prod(shape)
    if eps is None:
        eps = finfo(compute_dtype(input.dtype)).eps if input.dtype.is_floating_point else 0.0
    rows = input.reshape(prod(input_shape[: len(input_shape) - len(shape)]), width)
    scale = weight if weight is None else weight.reshape(width)
    return standing_alone(_rms_norm(rows, scale, eps=float(eps))[0].reshape(input_shape), "mul")


def _check_normalized(shape: tuple[int, ...], input_shape: tuple[int, ...], **parameters: Tensor | None) -> None:
    """Raise unless the input's last dimensions and the parameters have the normalised shape."""
    if input_shape[len(input_shape) - len(shape) :] != shape or len(shape) > len(input_shape):
        raise ShapeError(
            f"Given normalized_shape={list(shape)}, expected input with shape "
            f"[*, {', '.join(map(str, shape))}], but got input of size{list(input_shape)}"
        )
    for name, parameter in parameters.items():
        if parameter is not None and tuple(parameter._data.shape) != shape:
            raise ShapeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(parameter.shape)} and normalized_shape = {list(shape)}"
            )


def _normalized_shape(name: str, shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, (tuple, list)):
        raise wrong_type(name, "normalized_shape", "tuple of ints", shape, 2)
    if not shape:
        raise ShapeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, "
            "but got normalized_shape = []"
        )
    return tuple(shape)


def _narrowed(name: str, input: Tensor, kind: dtypes.dtype | type) -> Tensor:
    """The input in a dtype of less range or precision, which the operator would not round it to before it computes."""
    check_tensor(name, "input", 1, input)
    kind = of_argument(kind) or kind
    if not isinstance(kind, dtype):
        raise wrong_type(name, "dtype", "torch.dtype", kind, 3)
    if kind.category != FLOATING or (compute_dtype(kind) is kind and not input.is_complex()):
        return input
    return input.to(kind)


def _along(name: str, input: Tensor, dim: int | None, others: dict[str, Any]) -> int:
    """The dimension; if None, PyTorch's legacy choice, with its warning."""
    if "axis" in others and dim is None:
        dim = others.pop("axis")
    if others:
        raise ArgumentError(f"{name}() got an unexpected keyword argument '{next(iter(others))}'")
    if dim is None:
        warn(
            f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an "
            "argument."
        )
        dim = 0 if input.ndim in (0, 1, 3) else 1
    return dim


def _complex_rms_norm(input: Tensor, dims: int, weight: Tensor | None, eps: float | None) -> Tensor:
    """The last `dims` dimensions over the root of the mean of their squares, which are complex."""
    added = finfo(input.dtype).eps if eps is None else eps
    squares = (input * input).mean(tuple(range(-dims, 0)), True) + added
    found = input * squares.rsqrt()
    return found if weight is None else (found * weight).to(input.dtype)
