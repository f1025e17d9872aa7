"""Dropout of whole channels, and alpha dropout, which keeps the mean and the variance of SELU's results."""

from __future__ import annotations

import math
from typing import Any

from ...autograd.gradients import called
from ...autograd.mode import no_grad
from ...errors import ShapeError, warn
from ...ground.arguments import check_tensor
from ...ground.public import public
from ...kernels.random.philox import dropout as dropout_operator
from ...operators.generators import generator_of
from ...tensors import Tensor
from ...types.formats import suggested
from ..creation.creation import ones
from ..elementwise.activations import dropout

# -scale * alpha of SELU: its value at minus infinity, from "Self-normalizing neural networks" (Klambauer, 2017).
_LOWEST = -1.7580993408473766


@public(package=False)
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Channel dropout: in training sets channels of (N, C, L) or (C, L) to 0 with probability `p`, others over 1 - p.

    >>> import tritensor as torch
    >>> torch.nn.functional.dropout1d(torch.ones(1, 2, 3), p=1.0)
    tensor([[[0., 0., 0.],
             [0., 0., 0.]]])

    Raises:
        ValueError: a probability outside 0 to 1. ShapeError: another rank. DtypeError: integers.
    """
    _check("dropout1d", input, p)
    if input.ndim not in (2, 3):
        raise ShapeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. {_made_for(1)}",
            remedy="use dropout2d, dropout3d or dropout",
        )
    return _by_channel(input, p, training, inplace, 1)


@public(package=False)
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Channel dropout: in training sets channels of (N, C, H, W) to 0 with probability `p`, the others over 1 - p.

    As in PyTorch, three dimensions are (N, C, L), with a warning.

    Raises:
        ValueError: a probability outside 0 to 1. ShapeError: fewer than two dimensions. DtypeError: integers.
    """
    _check("dropout2d", input, p)
    _warn_of_rank(input, 2)
    if input.ndim == 3:
        warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. To keep that use dropout1d."
        )
    return _by_channel(input, p, training, inplace, 2)


@public(package=False)
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Channel dropout: in training sets channels of (N, C, D, H, W) or (C, D, H, W) to 0, the others over 1 - p.

    Raises:
        ValueError: a probability outside 0 to 1. DtypeError: integers.
    """
    _check("dropout3d", input, p)
    _warn_of_rank(input, 3)
    return _by_channel(input, p, training, inplace, 3)


@public(package=False)
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Applies alpha dropout: in training sets elements to SELU's lowest value, then scales and shifts all.

    Mean 0 and variance 1 are kept. From "Self-normalizing neural networks" (Klambauer and others, 2017).

    >>> import tritensor as torch
    >>> torch.nn.functional.alpha_dropout(torch.ones(2), training=False)
    tensor([1., 1.])

    Raises:
        ValueError: a probability outside 0 to 1. DtypeError: integers.
    """
    _check("alpha_dropout", input, p)
    return _saturating(input, p, training, inplace, input.ndim)


@public(package=False)
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels of an input (N, C, *).

    Raises:
        ValueError: a probability outside 0 to 1. ShapeError: fewer than two dimensions. DtypeError: integers.
    """
    _check("feature_alpha_dropout", input, p)
    return _saturating(input, p, training, inplace, 2)


@public(functional=False)
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Dropout, with a mask that says which elements are kept; all where `train` is False.

    >>> import tritensor as torch
    >>> torch.native_dropout(torch.ones(2), 0.5, False)
    (tensor([1., 1.]), tensor([True, True]))

    Raises:
        ShapeError: a probability outside 0 to 1. DtypeError: integers.
    """
    check_tensor("native_dropout", "input", 1, input)
    if not 0 <= p <= 1:
        raise ShapeError(f"bernoulli_ expects p to be in [0, 1], but got p={1 - p}")
    factor = _drawn(input, p if train is not False else 0.0, input.ndim)
    return called("NativeDropoutBackward0", input * factor), factor != 0


def _declare(drop: Any, in_place: bool) -> None:
    """PyTorch's own function of a kind of dropout, which knows no defaults, or its form in place."""

    def dropout(input: Tensor, p: float, train: bool) -> Tensor:
        if not 0 <= p <= 1:
            raise ShapeError(f"dropout probability has to be between 0 and 1, but got {p}")
        return drop(input, p, train, in_place)

    dropout.__name__ = dropout.__qualname__ = drop.__name__ + "_" * in_place
    what = "alpha dropout" if "alpha" in drop.__name__ else "dropout"
    what += " to whole channels" * ("feature" in drop.__name__)
    dropout.__doc__ = f"""Applies {what}{" in place" * in_place}, as `nn.functional` does; arguments have no defaults.

    Raises:
        ShapeError: a probability outside 0 to 1, or no channels to drop. DtypeError: integers.
    """
    public(functional=False)(dropout)


def _check(call: str, input: Tensor, p: float) -> None:
    check_tensor(call, "input", 1, input)
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _made_for(dims: int) -> str:
    return (
        f"Note that dropout{dims}d exists to provide channel-wise dropout on inputs with {dims} spatial "
        f"dimension{'s' * (dims > 1)}, a channel dimension, and an optional batch dimension "
        f"(i.e. {dims + 1}D or {dims + 2}D inputs)."
    )


def _warn_of_rank(input: Tensor, dims: int) -> None:
    if input.ndim not in (dims + 1, dims + 2):
        warn(
            f"dropout{dims}d: Received a {input.ndim}-D input to dropout{dims}d, which is deprecated and will result "
            "in an error in a future release. To retain the behavior and silence this warning, please use dropout "
            f"instead. {_made_for(dims)}"
        )


def _drawn(input: Tensor, p: float, dims: int) -> Tensor:
    """0 with probability `p` and else 1 / (1 - p), for each index of the first `dims` dimensions; the others have 1."""
    if p < 1 and input.ndim < dims:
        raise ShapeError("Feature dropout requires at least 2 dimensions in the input")
    shape = (*input.shape[:dims], *(1,) * (input.ndim - dims))
    seed, offset = generator_of(input.device).draw()
    with no_grad():
        drawn = ones(shape, dtype=input.dtype, device=input.device)
        return dropout_operator(drawn, p=p, seed=seed, offset=offset)


def _by_channel(input: Tensor, p: float, training: bool, inplace: bool, dims: int) -> Tensor:
    batched = dims == 2 or input.ndim == dims + 2
    if not (batched or inplace):
        return _by_channel(input.unsqueeze(0), p, training, False, dims).squeeze(0)
    if not training or p == 0 or not input.numel():
        return input
    factor = _drawn(input, p, 2 if batched else 1)
    return input.mul_(factor) if inplace else input * factor


def _saturating(input: Tensor, p: float, training: bool, inplace: bool, dims: int) -> Tensor:
    if not training or p == 0 or not input.numel():
        return input
    kept = _drawn(input, p, dims)
    if dims == input.ndim:
        kept = kept.contiguous(memory_format=suggested(tuple(input.shape), input.stride()))
    if p == 1:
        return input.mul_(kept) if inplace else input * kept
    kept = kept.sign()
    scale = 1 / math.sqrt((_LOWEST * _LOWEST * p + 1) * (1 - p))
    # what was dropped becomes `_LOWEST`; then everything is scaled, and shifted by what brings the mean to 0
    shift = (1 - kept) * (_LOWEST * scale) - _LOWEST * scale * p
    kept = kept * scale
    return input.mul_(kept).add_(shift) if inplace else input * kept + shift


def feature_dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Dropout of whole channels, of any number of dimensions."""
    return _by_channel(input, p, training, inplace, 2)


for _drop in (dropout, alpha_dropout, feature_dropout, feature_alpha_dropout):
    _declare(_drop, False)
    _declare(_drop, True)
