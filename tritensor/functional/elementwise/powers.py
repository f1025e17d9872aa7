"""pow, frexp, logit, gcd, heaviside, isinf: composed functions and aliases."""

from __future__ import annotations

import math
from typing import Any

from ...autograd.gradients import called, underived
from ...autograd.mode import no_grad
from ...errors import DtypeError, ShapeError
from ...ground.arguments import check_tensor, number_in, whole, wrong_type
from ...ground.composing import shown_as
from ...ground.public import method, public
from ...kernels.elementwise import arithmetic, gamma_functions, powers, scales, signs
from ...operators.inplace import in_place, in_place_form
from ...operators.outputs import ELEMENTWISE, Into, takes_out
from ...operators.rules import FLOAT, Number
from ...tensors import Tensor
from ...tensors.results import FrexpResult
from ...types import dtypes
from .pointwise import sub

_CAST = Into("cast", "partly")


@public(method=True, in_place=in_place_form, in_place_function=True, out=takes_out(_CAST))
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """Multiplies by a power of 2: input * 2**other, floating.

    >>> import tritensor as torch
    >>> torch.ldexp(torch.tensor([1.0]), torch.tensor([1, 2]))
    tensor([2., 4.])
    """
    check_tensor("ldexp", "input", 1, input)
    check_tensor("ldexp", "other", 2, other)
    compute, kind = FLOAT("ldexp", (input, other))
    x, exponent = (each if kind.is_complex else each.to(compute) for each in (input, other))
    # in two steps, because 2**200 is beyond float32 and 1e-30 * 2**200 is not
    half = 0 if exponent.dtype.is_complex else (exponent / 2).trunc()
    made = x * powers.pow(2.0, exponent - half) * 2.0**half
    return called("LdexpBackward0", made.to(kind))


@public(method=True, out=takes_out(Into("same", "partly")))
def frexp(input: Tensor) -> FrexpResult:
    """Decomposes into mantissa, from 0.5 to below 1, and exponent of 2, int32: input = mantissa * 2**exponent.

    >>> import tritensor as torch
    >>> mantissa, exponent = torch.frexp(torch.tensor([9.0, 0.0]))
    >>> mantissa, exponent
    (tensor([0.5625, 0.0000]), tensor([4, 0], dtype=tritensor.int32))

    Raises:
        DtypeError: the tensor is not floating.
    """
    check_tensor("frexp", "input", 1, input)
    if not input.dtype.is_floating_point:
        raise DtypeError("torch.frexp() only supports floating-point dtypes", remedy="convert with .float()")
    return FrexpResult(*signs.frexp(input))


@public(method=True, in_place=in_place_form, in_place_function=True, out=takes_out(_CAST))
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """The logit, the inverse of sigmoid: log(input / (1 - input)); `eps` keeps the input within eps and 1 - eps.

    >>> import tritensor as torch
    >>> torch.logit(torch.tensor([0.5, 1.0]), 1e-6)
    tensor([ 0.0000, 13.8023])
    """
    check_tensor("logit", "input", 1, input)
    eps = number_in(eps)
    if eps is not None and not isinstance(eps, (int, float)):
        raise wrong_type("logit", "eps", "float", eps, 2)
    return scales.logit(input, eps=None if eps is None or eps < 0 else float(eps))


def _kind_of_power(*values: Any) -> dtypes.dtype:
    complex_ = any(x.dtype.is_complex if isinstance(x, Tensor) else isinstance(x, complex) for x in values)
    return dtypes.complex128 if complex_ else dtypes.float64


@public(method=True, out=takes_out(Into("same", "partly")))
def float_power(input: object, exponent: Any) -> Tensor:
    """Raises to a power in float64 (complex128 if one is complex): input ** exponent; one may be a number.

    >>> import tritensor as torch
    >>> torch.float_power(torch.tensor([1, 4]), 0.5)
    tensor([1., 2.], dtype=tritensor.float64)
    """
    if not isinstance(input, Tensor) and not isinstance(exponent, Tensor):
        check_tensor("float_power", "input", 1, input)
    kind = _kind_of_power(input, exponent)
    x, y = (value.to(kind) if isinstance(value, Tensor) else value for value in (input, exponent))
    return powers.pow(x, y)


@method("float_power_")
def _float_power_in_place(self: Tensor, exponent: Any) -> Tensor:
    """In-place version of `float_power`: writes to the tensor's own memory, which must be of its dtype."""
    kind = _kind_of_power(self, exponent)
    if self.dtype is not kind:
        words = f"the base given to float_power_ has dtype {self.dtype.legacy} but the operation's result requires "
        raise DtypeError(f"{words}dtype {kind.legacy}")
    return in_place(self, float_power.plain, exponent)  # type: ignore[attr-defined]


@public(functional=False)
def rsub(input: Tensor, other: Tensor | complex, alpha: complex = 1) -> Tensor:
    """Subtracts `input`, scaled by `alpha`, from `other`: other - alpha * input.

    Raises:
        DtypeError: as for `sub`.
    """
    if not isinstance(other, (Tensor, *Number)):
        raise wrong_type("rsub", "other", "Tensor", other, 2)
    return called(f"RsubBackward{int(not isinstance(other, Tensor))}", sub(other, input, alpha=alpha))


@method("__rdiv__")
def _divide_number(self: Tensor, other: Tensor | complex) -> Tensor:
    """other / self, as Python 2 called it."""
    return self.reciprocal() * other


method("__div__")(Tensor.__truediv__)
method("__idiv__")(Tensor.__itruediv__)


@public(method=True, in_place=in_place_form, in_place_function=True, out=takes_out(_CAST))
def lcm(input: Tensor, other: Tensor) -> Tensor:
    """The least common multiple of integers; 0 where one is 0.

    >>> import tritensor as torch
    >>> torch.lcm(torch.tensor([4, 0]), torch.tensor([6, 5]))
    tensor([12,  0])
    """
    check_tensor("lcm", "input", 1, input)
    check_tensor("lcm", "other", 2, other)
    _, kind = signs.gcd.rule("lcm", (input, other))
    input, other = input.to(kind), other.to(kind)
    return input.abs() // signs.gcd(input, other).clamp_min(1) * other.abs()


def _real(words: str, input: Tensor) -> Tensor:
    """The input, unless it is complex."""
    if input.dtype.is_complex:
        raise DtypeError(words, remedy="pass the real or the imaginary part, x.real or x.imag")
    return input


def _infinity(name: str, bound: float, which: str) -> None:
    def test(input: Tensor) -> Tensor:
        check_tensor(name, "input", 1, input)
        return _real(f"{name} does not support complex inputs.", input) == bound

    doc = f"Tests if each element is infinite and {which}."
    public(method=True, out=takes_out(Into("boolean", "partly")))(shown_as(test, name, doc))


_infinity("isposinf", math.inf, "positive")
_infinity("isneginf", -math.inf, "negative")


def _angles(name: str, factor: float, doc: str) -> None:
    def convert(input: Tensor) -> Tensor:
        check_tensor(name, "input", 1, input)
        made = _real(f"{name} is not supported for complex tensors.", input) * factor
        return called(f"{name.title()}Backward0", made)

    made_public = public(method=True, in_place=in_place_form, in_place_function=True, out=takes_out(_CAST))
    made_public(shown_as(convert, name, doc))


_angles("deg2rad", math.pi / 180, "Converts degrees to radians: input * pi / 180.")
_angles("rad2deg", 180 / math.pi, "Converts radians to degrees: input * 180 / pi.")


@public(method=True, in_place=in_place_form, out=takes_out(Into("same", "partly")))
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """The Heaviside step function: 0 where the input is negative or NaN, 1 where positive, `values` where it is 0.

    >>> import tritensor as torch
    >>> torch.heaviside(torch.tensor([-1.5, 0.0, 2.0]), torch.tensor([0.5]))
    tensor([0.0000, 0.5000, 1.0000])

    Raises:
        DtypeError: complex tensors, or two dtypes.
    """
    check_tensor("heaviside", "input", 1, input)
    check_tensor("heaviside", "values", 2, values)
    for each in (input, values):
        _real("heaviside is not yet implemented for complex tensors.", each)
    if input.dtype is not values.dtype:
        words = "heaviside is not yet implemented for tensors with different dtypes."
        raise DtypeError(words, remedy="convert one of them with .to(dtype)")
    with no_grad():
        found = arithmetic.where(input == 0, values, (input > 0).to(input.dtype))
    return underived("heaviside", found, input, values)


_MOST = 1 << 16  # dimensions of mvlgamma, a loop of 10 us each


@public(out=takes_out(ELEMENTWISE))
def polygamma(n: int, input: Tensor) -> Tensor:
    """The polygamma function: the derivative of order n of digamma; floating results.

    >>> import tritensor as torch
    >>> torch.polygamma(1, torch.tensor([1.0, 2.0]))
    tensor([1.6449, 0.6449])

    Raises:
        ArgumentError: n is no integer. ShapeError: n is negative.
    """
    n = number_in(n)
    if type(n) is not int:
        raise wrong_type("polygamma", "n", "int", n, 1)
    check_tensor("polygamma", "input", 2, input)
    if whole("polygamma", "n", n) < 0:
        raise ShapeError("polygamma(n, x) does not support negative n.", f"n is {n}")
    size = math.factorial(n) if n <= 170 else math.inf
    return gamma_functions.polygamma(input, n=n, factor=float(size if n % 2 else -size))


@public(method=True, in_place=in_place_form, out=takes_out(ELEMENTWISE))
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of p dimensions.

    Raises:
        ArgumentError: p is no integer. ShapeError: p is below 1 or above 65,536.
    """
    check_tensor("mvlgamma", "input", 1, input)
    p = number_in(p)
    if type(p) is not int:
        raise wrong_type("mvlgamma", "p", "int", p, 2)
    if whole("mvlgamma", "p", p) < 1:
        raise ShapeError("p has to be greater than or equal to 1", f"it is {p}")
    if p > _MOST:
        raise ShapeError(f"mvlgamma: p has to be at most {_MOST:,}", f"it is {p}, the number of terms of a sum")
    return gamma_functions.mvlgamma(input, p=p)


@public(method=True, in_place=in_place_form, out=takes_out(ELEMENTWISE))
def igamma(input: Tensor, other: Tensor) -> Tensor:
    """The regularized lower incomplete gamma function of order `input` at `other`; floating tensors.

    Only the derivative by `other` is there, as in PyTorch. The result is NaN where one of them is negative.
    """
    check_tensor("igamma", "input", 1, input)
    check_tensor("igamma", "other", 2, other)
    return gamma_functions.igamma(input, other)


@public(method=True, in_place=in_place_form, out=takes_out(ELEMENTWISE))
def igammac(input: Tensor, other: Tensor) -> Tensor:
    """The regularized upper incomplete gamma function, 1 - igamma(input, other), exact where that is small."""
    check_tensor("igammac", "input", 1, input)
    check_tensor("igammac", "other", 2, other)
    return gamma_functions.igammac(input, other)


@method("polygamma")
def _polygamma(self: Tensor, n: int) -> Tensor:
    """The derivative of order n of the digamma function."""
    return polygamma(n, self)


@method("polygamma_")
def _polygamma_(self: Tensor, n: int) -> Tensor:
    """In-place version of `polygamma`: writes to the tensor's own memory."""
    return in_place(self, lambda x: polygamma(n, x))
