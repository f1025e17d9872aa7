"""Declares losses: an elementwise formula plus PyTorch's reduction arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ...autograd.gradients import called
from ...errors import UnsupportedError, explain, warn
from ...ground.arguments import check_tensor
from ...ground.composing import compose
from ...ground.public import public
from ...tensors import Tensor
from ...types.dtypes import FLOATING
from ...types.layout import broadcast_shapes

Formula = TypeVar("Formula", bound=Callable[..., Any])

OTHER_SIZE = (
    "Using a target size ({}) that is different to the input size ({}){} Please ensure they have the same size."
)


def reduction_of(size_average: Any, reduce: Any, reduction: str) -> str:
    """The name of the reduction; warns about PyTorch's deprecated arguments for it."""
    if size_average is None and reduce is None:
        return reduction
    everything, averaged = (each is None or bool(each) for each in (reduce, size_average))
    meant = "none" if not everything else "mean" if averaged else "sum"
    warn(f"size_average and reduce args will be deprecated, please use reduction='{meant}' instead.")
    return meant


_REFUSED = "{} is not a valid value for reduction"


def reduction_named(reduction: Any, refused: str = _REFUSED) -> str:
    """The reduction, "mean", "sum" or "none", or PyTorch's number of it; ValueError with `refused` for another one."""
    if reduction in (0, 1, 2):
        return ("none", "mean", "sum")[reduction]
    if reduction == "elementwise_mean":
        warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.")
        return "mean"
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(explain(refused.format(reduction), "it is 'mean', 'sum' or 'none'"))
    return reduction


def reduced(values: Any, reduction: str, refused: str = _REFUSED) -> Tensor:
    """The mean or the sum of a loss's elements, or these; a pair is of weighted elements and their weights.

    The node of elements that were `called` something, because PyTorch's function is one operator, gives its name on.
    """
    reduction = reduction_named(reduction, refused)
    if values.__class__ is tuple:
        values, weight = values
        if reduction == "mean":
            return values.sum() / weight.expand(values.shape).sum()
    if reduction == "none":
        return values
    result = values.mean() if reduction == "mean" else values.sum()
    title = getattr(getattr(values._node, "backward", None), "title", "")
    return called(title, result) if title else result


def loss(
    legacy: bool = True, package: str = "", refused: str = _REFUSED, autocast: Mapping[str, str] | None = None
) -> Callable[[Formula], Formula]:
    """A decorator that makes a public loss of its formula: a function of the same parameters that returns an error for
    each element.

        @loss()
        def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
            return softplus(-input * target)

    Args:
        legacy: whether `size_average` and `reduce` are parameters, too, before `reduction` unless the formula has them.
        package: the parameters of the name of tritensor itself, which PyTorch has in another order; none without it.
        refused: PyTorch's message for an unknown reduction.
        autocast: what autocast casts the inputs to, see `public`.
    """

    def declare(formula: Formula) -> Formula:
        shown = dict(inspect.signature(formula).parameters)
        values = {"reduction_of": reduction_of, "reduced": reduced, "formula": formula}

        def composed(parameters: list[inspect.Parameter], *lines: str) -> Any:
            place, own = (
                (formula.__module__, formula.__name__),
                [each.name for each in parameters if each.name in shown],
            )
            call = f"return reduced(formula({', '.join(f'{name}={name}' for name in own)}), reduction, {refused!r})"
            made = compose(place, parameters, "Tensor", [*lines, call], values, ())
            made.__doc__ = formula.__doc__
            return made

        if package:
            public(functional=False, autocast=autocast)(composed([shown[name] for name in package.split()]))
        parameters = []
        for name, each in shown.items():
            if name == "reduction" and legacy:
                old = [each.replace(name=other, default=None, annotation="Any") for other in ("size_average", "reduce")]
                parameters += [other for other in old if other.name not in shown]
            parameters.append(each)
        older = ["reduction = reduction_of(size_average, reduce, reduction)"] if legacy else []
        return public(package=False, autocast=autocast)(composed(parameters, *older))

    return declare


def check_both(name: str, input: Tensor, target: Tensor) -> None:
    """Raise unless both are tensors whose shapes broadcast, with PyTorch's warning where they differ."""
    check_tensor(name, "input", 1, input)
    check_tensor(name, "target", 2, target)
    if input.shape != target.shape:
        warn(
            OTHER_SIZE.format(
                target.shape, input.shape, ". This will likely lead to incorrect results due to broadcasting."
            )
        )
        broadcast_shapes(input._data.shape, target._data.shape)


def check_floating(kernel: str, *tensors: Tensor) -> None:
    """Raise with PyTorch's name of its kernel unless one of the tensors is real and floating, and none complex."""
    kinds = [each.dtype for each in tensors]
    highest = max(kinds, key=lambda kind: kind.category)
    if highest.category != FLOATING:
        raise UnsupportedError(
            f"\"{kernel}\" not implemented for '{highest.legacy}'",
            f"it takes floating dtypes, got {' and '.join(map(str, kinds))}",
            remedy="convert the input first, as in x.float()",
        )
