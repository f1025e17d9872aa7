"""The type stub of `tritensor.special`, made by `python -m tools.generate`; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from tritensor import digamma as digamma
from tritensor import digamma as psi
from tritensor import erf as erf
from tritensor import erfc as erfc
from tritensor import erfinv as erfinv
from tritensor import exp2 as exp2
from tritensor import expm1 as expm1
from tritensor import i0 as i0
from tritensor import igamma as gammainc
from tritensor import igammac as gammaincc
from tritensor import lgamma as gammaln
from tritensor import log1p as log1p
from tritensor import log_softmax as log_softmax
from tritensor import logit as logit
from tritensor import logsumexp as logsumexp
from tritensor import mvlgamma as multigammaln
from tritensor import polygamma as polygamma
from tritensor import round as round
from tritensor import sigmoid as expit
from tritensor import sinc as sinc
from tritensor import softmax as softmax
from tritensor import xlogy as xlogy
from tritensor.tensors import Tensor
from tritensor.types import dtypes
from tritensor.types.devices import device
from tritensor.types.dtypes import dtype
from typing import Any

__all__ = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammainc",
    "gammaincc",
    "gammaln",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "sinc",
    "softmax",
    "spherical_bessel_j0",
    "xlog1py",
    "xlogy",
    "zeta",
]

def airy_ai(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Airy function of the first kind; NaN at the infinities, as in PyTorch."""
def bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the first kind and order 0."""
def bessel_j1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the first kind and order 1."""
def bessel_y0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the second kind and order 0; -infinity at 0, NaN below."""
def bessel_y1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the second kind and order 1; -infinity at 0, NaN below."""
def chebyshev_polynomial_t(x: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the first kind of degree `n` at `x`, tensors that broadcast or one of them a number; 0 for n below 0."""
def chebyshev_polynomial_u(x: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the second kind of degree `n` at `x`, tensors that broadcast or one of them a number; 0 for n below 0."""
def chebyshev_polynomial_v(x: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the third kind of degree `n` at `x`, tensors that broadcast or one of them a number; 0 for n below 0."""
def chebyshev_polynomial_w(x: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the fourth kind of degree `n` at `x`, tensors that broadcast or one of them a number; 0 for n below 0."""
def entr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-x * log(x); 0 at 0, -infinity below."""
def erfcx(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(x * x) * erfc(x), without overflow."""
def hermite_polynomial_h(x: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """The physicist's Hermite polynomial of degree `n` at `x`, tensors that broadcast or one of them a number; 0 for n below 0."""
def hermite_polynomial_he(x: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """The probabilist's Hermite polynomial of degree `n` at `x`, tensors that broadcast or one of them a number; 0 for n below 0."""
def i0e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(-|x|) times the modified Bessel function of the first kind and order 0."""
def i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind and order 1."""
def i1e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(-|x|) times the modified Bessel function of the first kind and order 1."""
def laguerre_polynomial_l(x: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """Laguerre's polynomial of degree `n` at `x`, tensors that broadcast or one of them a number; 0 for n below 0."""
def legendre_polynomial_p(x: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """Legendre's polynomial of degree `n` at `x`, tensors that broadcast or one of them a number; 0 for n below 0."""
def log_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of ndtr, exact far below 0."""
def modified_bessel_i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind and order 0."""
def modified_bessel_i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind and order 1."""
def modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the second kind and order 0; infinite at 0, NaN below."""
def modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the second kind and order 1; infinite at 0, NaN below."""
def ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The probability of the standard normal distribution below x."""
def ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The number below which the standard normal distribution has the probability x."""
def scaled_modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(x) times the modified Bessel function of the second kind and order 0; infinite at 0, NaN below."""
def scaled_modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(x) times the modified Bessel function of the second kind and order 1; infinite at 0, NaN below."""
def shifted_chebyshev_polynomial_t(x: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the first kind, shifted to the interval from 0 to 1, of degree `n` at `x`, tensors that broadcast or one of them a number; 0 for n below 0."""
def shifted_chebyshev_polynomial_u(x: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the second kind, shifted to the interval from 0 to 1, of degree `n` at `x`, tensors that broadcast or one of them a number; 0 for n below 0."""
def shifted_chebyshev_polynomial_v(x: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the third kind, shifted to the interval from 0 to 1, of degree `n` at `x`, tensors that broadcast or one of them a number; 0 for n below 0."""
def shifted_chebyshev_polynomial_w(x: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the fourth kind, shifted to the interval from 0 to 1, of degree `n` at `x`, tensors that broadcast or one of them a number; 0 for n below 0."""
def spherical_bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The spherical Bessel function of the first kind and order 0: sin(x) / x."""
def xlog1py(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """x * log(1 + y), and 0 where x is 0 and y is not NaN."""
def zeta(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Hurwitz's zeta function: the sum of (y + k) ** -x over k from 0."""
