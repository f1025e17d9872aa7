"""Special functions, under PyTorch's names.

All are computed with NumPy alone on the CPU and by kernels on devices. Integers become the default floating dtype, half
precision is computed in float32. Those without derivatives in PyTorch (Bessel functions but i0, i0e, i1 and i1e, the
Airy function, orthogonal polynomials) have results that require no gradient.

    >>> import tritensor as torch
    >>> torch.special.expit(torch.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
"""

from __future__ import annotations

from typing import Any

from .ground.index import namespace
from .ground.public import PACKAGE, SPECIAL
from .kernels.elementwise.polynomials import chebyshev, orthogonal
from .operators.outputs import ELEMENTWISE, takes_out
from .tensors import Tensor

_SHARED = """digamma erf erfc erfinv exp2 expm1 i0 log1p log_softmax logit logsumexp polygamma round sinc softmax xlogy
    expit=sigmoid gammainc=igamma gammaincc=igammac gammaln=lgamma multigammaln=mvlgamma psi=digamma"""


def _polynomial(name: str, operator: Any, kind: str, **numbers: float) -> None:
    def made(x: Tensor | float, n: Tensor | int) -> Tensor:
        return operator(x, n, **numbers)

    made.__name__ = name
    made.__doc__ = f"""{kind}, of degree `n` at `x`; 0 for n below 0.

    `x` and `n` broadcast, or one is a number; fractions of `n` are cut off. No gradient, as in PyTorch.
    """
    SPECIAL.declare(name, takes_out(ELEMENTWISE)(made))


for _name, _of, _numbers in (
    ("t", "first", {}),
    ("u", "second", {"slope": 2.0}),
    ("v", "third", {"slope": 2.0, "constant": -1.0}),
    ("w", "fourth", {"slope": 2.0, "constant": 1.0}),
):
    _words = f"The Chebyshev polynomial of the {_of} kind"
    _polynomial(f"chebyshev_polynomial_{_name}", chebyshev, _words, **_numbers)
    _words = f"The Chebyshev polynomial of the {_of} kind, shifted to the interval from 0 to 1"
    _polynomial(f"shifted_chebyshev_polynomial_{_name}", chebyshev, _words, stretch=2.0, shift=1.0, **_numbers)
_polynomial("hermite_polynomial_h", orthogonal, "The physicist's Hermite polynomial", slope=2.0, back=2.0, most=512)
_polynomial("hermite_polynomial_he", orthogonal, "The probabilist's Hermite polynomial", most=512)
_polynomial(
    "laguerre_polynomial_l", orthogonal, "The Laguerre polynomial", slope=-1.0, constant=1.0, middle=2.0, divided=1.0
)
_polynomial("legendre_polynomial_p", orthogonal, "The Legendre polynomial", growth=2.0, divided=1.0)


def _without_gradient(name: str, function: Any) -> None:
    def made(input: Tensor) -> Tensor:
        return function(input.detach())

    made.__name__, made.__doc__ = name, f"{function.__doc__}\n\n    The result has no gradient, as in PyTorch."
    SPECIAL.declare(name, takes_out(ELEMENTWISE)(made))


_without_gradient("modified_bessel_i0", PACKAGE["i0"])
_without_gradient("modified_bessel_i1", SPECIAL["i1"])
for _name in _SHARED.split():
    _words = _name.rpartition("=")[2]
    if _words in PACKAGE:
        SPECIAL.declare(_name.partition("=")[0], PACKAGE[_words])

__getattr__, __dir__ = namespace(__name__, SPECIAL)
