"""Derivatives of the gamma function's logarithm, and its form of several dimensions."""

from __future__ import annotations

import math

from ..errors import ShapeError, explain
from ..ground.arguments import check_tensor, number_in, whole, wrong_type
from ..ground.public import method, public
from ..kernels.elementwise import gamma_functions
from ..operators.inplace import in_place, in_place_form
from ..operators.outputs import ELEMENTWISE, takes_out
from ..tensors import Tensor

_MOST = 1 << 16  # dimensions of mvlgamma, a loop of 10 us each


@public(out=takes_out(ELEMENTWISE))
def polygamma(n: int, input: Tensor) -> Tensor:
    """The derivative of order n of the digamma function; floating results.

    >>> import tritensor as torch
    >>> torch.polygamma(1, torch.tensor([1.0, 2.0]))
    tensor([1.6449, 0.6449])

    Raises:
        ArgumentError: n is no integer. ShapeError, which is a RuntimeError: n is negative.
    """
    n = number_in(n)
    if type(n) is not int:
        raise wrong_type("polygamma", "n", "int", n, 1)
    check_tensor("polygamma", "input", 2, input)
    if whole("polygamma", "n", n) < 0:
        raise ShapeError(explain("polygamma(n, x) does not support negative n.", f"n is {n}"))
    size = math.factorial(n) if n <= 170 else math.inf
    return gamma_functions.polygamma(input, n=n, factor=float(size if n % 2 else -size))  # type: ignore[no-any-return]


@public(method=True, in_place=in_place_form, out=takes_out(ELEMENTWISE))
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of p dimensions.

    Raises:
        ArgumentError: p is no integer. ShapeError, which is a RuntimeError: p is below 1 or above 65,536.
    """
    check_tensor("mvlgamma", "input", 1, input)
    p = number_in(p)
    if type(p) is not int:
        raise wrong_type("mvlgamma", "p", "int", p, 2)
    if whole("mvlgamma", "p", p) < 1:
        raise ShapeError(explain("p has to be greater than or equal to 1", f"it is {p}"))
    if p > _MOST:
        raise ShapeError(
            explain(f"mvlgamma: p has to be at most {_MOST:,}", f"it is {p}, the number of terms of a sum")
        )
    return gamma_functions.mvlgamma(input, p=p)  # type: ignore[no-any-return]


@public(method=True, in_place=in_place_form, out=takes_out(ELEMENTWISE))
def igamma(input: Tensor, other: Tensor) -> Tensor:
    """The lower incomplete gamma function of order `input` at `other`, divided by gamma(input), of floating tensors.

    Only the derivative by `other` is there, as in PyTorch. The result is NaN where one of them is negative.
    """
    check_tensor("igamma", "input", 1, input)
    check_tensor("igamma", "other", 2, other)
    return gamma_functions.igamma(input, other)  # type: ignore[no-any-return]


@public(method=True, in_place=in_place_form, out=takes_out(ELEMENTWISE))
def igammac(input: Tensor, other: Tensor) -> Tensor:
    """The upper incomplete gamma function, 1 - igamma(input, other), exact where that is small."""
    check_tensor("igammac", "input", 1, input)
    check_tensor("igammac", "other", 2, other)
    return gamma_functions.igammac(input, other)  # type: ignore[no-any-return]


@method("polygamma")
def _polygamma(self: Tensor, n: int) -> Tensor:
    """The derivative of order n of the digamma function."""
    return polygamma(n, self)


@method("polygamma_")
def _polygamma_(self: Tensor, n: int) -> Tensor:
    """`polygamma` in the tensor's own memory."""
    return in_place(self, lambda x: polygamma(n, x))
