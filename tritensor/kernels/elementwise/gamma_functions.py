"""Functions around the gamma function: derivatives of its logarithm, Hurwitz's zeta function, incomplete ones.

Digamma and zeta are those of the Cephes Mathematical Library (S. L. Moshier, 1989). The incomplete functions are its
power series and continued fraction, with Temme's uniform expansion (DLMF 8.12) for large arguments that are close.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...autograd.gradients import no_derivative
from ...operators.rules import Rule
from ...runtime.source import device_function
from ...types import dtypes
from .coefficients import tables
from .family import HALVES_ONLY
from .log_gamma import STIRLING, lgamma
from .one_text import any_of, largest_of, one_text, polynomial, special, whole_of

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice


def not_differentiable(name: str) -> Any:
    """A gradient that raises PyTorch's error."""

    def refuse(grad: Any) -> Any:
        raise no_derivative(name)

    return refuse


# ---- digamma and zeta ----------------------------------------------------------------------------------------------

# digamma's asymptotic series; 1 / (2 k)! times the Bernoulli number of 2 k, from k = 1
_DIGAMMA, _EULER = tables("digamma and zeta")


@device_function
def _sawtooth(x):
    """The distance from the nearest whole number, with its sign."""
    return x - libdevice.floor(x + 0.5)


@device_function
def _digamma(x):
    place = tl.where(x < 0, 1.0 - x, x)
    result = tl.zeros_like(x)
    for _step in range(
        10
    ):  # not unrolled: the code of ten divisions for each of a thread's elements takes 5 s to compile
        result = tl.where(place < 10.0, result - 1.0 / place, result)
        place = tl.where(place < 10.0, place + 1.0, place)
    square = 1.0 / (place * place)
    result = result + libdevice.log(place) - 0.5 / place - square * polynomial(square, _DIGAMMA)
    turn = _sawtooth(tl.where(x < 0, x, 0.25))
    mirrored = result - 3.141592653589793 / libdevice.tan(3.141592653589793 * turn)
    result = tl.where(x < 0, tl.where(turn == 0.0, float("nan"), mirrored), result)
    return tl.where(x == 0.0, libdevice.copysign(float("inf") + x, -x), result)


@one_text(in_place_functions=())
def digamma(x):
    """The digamma function, the derivative of the log of gamma; -inf at 0, NaN at negative whole numbers."""
    return _digamma(x)


@device_function
def _positive_zeta(s, q):
    """The sum of (q + k) ** -s by Euler and Maclaurin, for q above 0: ten terms, then twelve of the rest."""
    total = tl.zeros_like(q)
    term = total
    for step in range(10):  # not unrolled either
        term = libdevice.pow(q + step, -s)
        total = total + term
    place = q + 9.0
    rest = term * place / (s - 1.0) - 0.5 * term
    power = term * s / place
    for step in tl.static_range(len(_EULER)):
        rest = rest + power * _EULER[step]
        power = power * ((s + (2.0 * step + 1.0)) / place) * ((s + (2.0 * step + 2.0)) / place)
    return tl.where(term < 1e-17 * total, total, total + rest)


@device_function
def _zeta(s, q):
    """Below 0 by the sum over all whole numbers, which is periodic; of q + k below 0 the powers have a sign."""
    s = s + tl.zeros_like(q)
    q = q + tl.zeros_like(s)
    result = tl.zeros_like(s)
    for turn in range(1 + 2 * largest_of(tl.where(q < 0, 1.0, 0.0))):
        part = tl.where(q < 0, q - libdevice.floor(q), q)
        place = tl.where(turn == 0, part, tl.where(turn == 1, libdevice.ceil(q) - q, 1.0 - q))
        sign = tl.where(_sawtooth(0.5 * s) == 0.0, 3.0 - 2.0 * turn, 2.0 * turn - 3.0)
        other = _positive_zeta(s, tl.where(place <= 0, 1.0, place))
        result = tl.where(turn == 0, other, tl.where(q < 0, result + sign * other, result))
    result = tl.where((q < 0) & (s != libdevice.floor(s)), float("nan"), result)
    result = tl.where((q <= 0) & (q == libdevice.floor(q)), float("inf"), result)
    result = tl.where(q == float("inf"), 0.0, result)
    return tl.where(s == 1.0, float("inf"), tl.where(s < 1.0, float("nan"), result))


@special
def zeta(x, y):
    """Hurwitz's zeta function: the sum of (y + k) ** -x over k from 0."""
    return _zeta(x, y)


zeta.gradients(x=not_differentiable("zeta"), y=lambda grad, x, y: -grad * x * zeta(x + 1.0, y))


@one_text(name="derived_digamma", methods=(), native=HALVES_ONLY)
def polygamma(x, n=1, factor=1.0):
    """The n-th derivative of digamma, by zeta; `factor` is (-1) ** (n + 1) * n!."""
    if n == 0:
        result = _digamma(x)
    else:
        result = factor * _zeta(tl.zeros_like(x) + (n + 1.0), x)
    return result


polygamma.node = "polygamma"
digamma.gradient(lambda grad, x: grad * polygamma(x, n=1, factor=1.0))
digamma.domain, digamma.gradient_domain = (-3.5, 20), (0.5, 20)
polygamma.gradient(lambda grad, x, n, factor: grad * polygamma(x, n=n + 1, factor=-factor * (n + 1)))


@one_text(methods=())
def mvlgamma(x, p=1):
    """The logarithm of the multivariate gamma function of p dimensions: a sum of lgamma(x - j / 2)."""
    result = libdevice.lgamma(x)
    for step in range(1, whole_of(p)):
        result = result + libdevice.lgamma(x - 0.5 * step)
    return result + p * (p - 1.0) * 0.2861824714623501


mvlgamma.gradient(lambda grad, x, p: grad * sum(digamma(x - 0.5 * step) for step in range(p)))
mvlgamma.example = {"p": 3}
mvlgamma.domain = (1.2, 20)

# ---- the incomplete functions --------------------------------------------------------------------------------------

# coefficients of eta's powers that go with a ** -k, highest first: DLMF 8.12.10
_TEMME_0, _TEMME_1, _TEMME_2, _TEMME_3, _TEMME_4 = tables("incomplete gamma")
_LOGARITHM = tuple(1 / k for k in range(19, 1, -2))
# of the logarithm of gamma(1 + a) by the powers of a from 11 to 1: zeta(k) / k with alternating signs, DLMF 5.7.3
_NEAR_ONE: tuple[float, ...] = (
    -0.09095401714582904,
    0.10009945751278182,
    -0.11133426586956473,
    0.12550966952474307,
    -0.14404989676884614,
)
_NEAR_ONE += (0.16955717699740813, -0.2073855510286741, 0.27058080842778454, -0.4006856343865313, 0.8224670334241133)
_NEAR_ONE += (-0.5772156649015329,)


@device_function
def _log1p_less(x):
    """log(1 + x) - x."""
    near = tl.where(tl.abs(x) < 0.25, x, 0.0)
    root = near / (2.0 + near)
    square = root * root
    series = root * (2.0 * square * polynomial(square, _LOGARITHM) - near)
    return tl.where(tl.abs(x) < 0.25, series, libdevice.log1p(x) - x)


@device_function
def _density(a, x):
    """x ** a * exp(-x) / gamma(a + 1)."""
    high = tl.where(a > 7.0, a, 7.0)
    error = polynomial(1.0 / (high * high), STIRLING) / high
    far = libdevice.exp(high * _log1p_less((x - high) / high) - error) / libdevice.sqrt(6.283185307179586 * high)
    low = tl.where(a > 7.0, 1.0, a)
    near = libdevice.exp(low * libdevice.log(x) - x - libdevice.lgamma(low + 1.0))
    return tl.where(a > 7.0, far, near)


@device_function
def _parts(a, x):
    """The regularised incomplete gamma functions, the lower and the upper one."""
    a = a + tl.zeros_like(x)
    x = x + tl.zeros_like(a)
    limit = 2.5e-7 if x.dtype == tl.float32 else 4.5e-16
    close = (a > 150.0) & (tl.abs(x - a) < 0.3 * a)
    rising = (x <= 1.0) | (x < a)
    density = _density(a, tl.where(x < 0, 0.0, x))
    # the power series
    series = rising & (close == 0) & (a > 0) & (x > 0)
    step = tl.where(series, x, 0.0)
    place = tl.where(series, a, 1.0)
    term = tl.zeros_like(x) + 1.0
    total = term
    while any_of(term > limit * total):
        place = place + 1.0
        term = term * step / place
        total = total + term
    # the continued fraction
    point = tl.where(rising | close, 2.0, x)
    y = 1.0 - tl.where(rising | close, 1.0, a)
    z = point + y + 1.0
    count = tl.zeros_like(x)
    above_before = tl.zeros_like(x) + 1.0
    below_before = point
    above = point + 1.0
    below = z * point
    quotient = above / below
    change = tl.zeros_like(x) + 1.0
    while any_of((change > 4.0 * limit) & (count < 2000.0)):
        count = count + 1.0
        y = y + 1.0
        z = z + 2.0
        above_next = above * z - above_before * y * count
        below_next = below * z - below_before * y * count
        before = quotient
        # one that has converged is done, whatever the others of its block need; and Triton 3.6 does not compile a loop
        # with a variable that only its condition reads
        quotient = tl.where(change > 4.0 * limit, above_next / below_next, quotient)
        change = tl.abs(before / quotient - 1.0)
        scale = tl.where(tl.abs(above_next) > 4.5e15, 2.220446049250313e-16, 1.0)
        above_before = above * scale
        below_before = below * scale
        above = above_next * scale
        below = below_next * scale
    # of a small order the upper one is small as well, and 1 less the lower one would have few of its digits
    small = series & (a < 0.03)
    order = tl.where(small, a, 0.01)
    point = tl.where(small, x, 1.0)
    term = tl.zeros_like(x) + 1.0
    rest = tl.zeros_like(x)
    for number in range(1, 20):
        term = term * -point / number
        rest = rest + term / (order + number)
    power = order * (libdevice.log(point) - polynomial(order, _NEAR_ONE))
    little = -libdevice.expm1(power) - libdevice.exp(power) * order * rest
    fraction = tl.where(density == 0.0, 0.0, density * a * quotient)
    # the uniform expansion
    large = tl.where(close, a, 150.0)
    half_square = -_log1p_less((tl.where(close, x, 150.0) - large) / large)
    eta = libdevice.copysign(libdevice.sqrt(2.0 * half_square), x - a)
    rest = polynomial(eta, _TEMME_3) + polynomial(eta, _TEMME_4) / large
    rest = polynomial(eta, _TEMME_1) + (polynomial(eta, _TEMME_2) + rest / large) / large
    rest = polynomial(eta, _TEMME_0) + rest / large
    rest = rest * libdevice.exp(-large * half_square) / libdevice.sqrt(6.283185307179586 * large)
    middle = eta * libdevice.sqrt(0.5 * large)
    lower = tl.where(close, 0.5 * libdevice.erfc(-middle) - rest, tl.where(rising, density * total, 1.0 - fraction))
    upper = tl.where(close, 0.5 * libdevice.erfc(middle) + rest, tl.where(rising, 1.0 - density * total, fraction))
    upper = tl.where(small, little, upper)
    full = (a == 0.0) | (x == float("inf"))
    none = (x == 0.0) | (a == float("inf"))
    lower = tl.where(full, 1.0, tl.where(none, 0.0, lower))
    upper = tl.where(full, 0.0, tl.where(none, 1.0, upper))
    undefined = (a < 0) | (x < 0) | (full & none) | ((a == 0.0) & (x != x))
    return tl.where(undefined, float("nan"), lower), tl.where(undefined, float("nan"), upper)


FLOATS = Rule("real floating", dtypes.FLOATING, dtypes.FLOATING)


@one_text(FLOATS, methods=())
def igamma(x, y):
    """The lower incomplete gamma function of order x at y, divided by gamma(x)."""
    lower, _upper = _parts(x, y)
    return lower


@one_text(FLOATS, methods=())
def igammac(x, y):
    """The upper incomplete gamma function of order x at y, divided by gamma(x)."""
    _lower, upper = _parts(x, y)
    return upper


def _incomplete_slope(grad: Any, x: Any, y: Any) -> Any:
    of_shape = math.lgamma(x) if isinstance(x, (int, float)) else lgamma(x)
    return grad * ((x - 1) * y.log() - y - of_shape).exp()


igamma.gradients(x=not_differentiable("igamma: input"), y=_incomplete_slope)
igammac.gradients(x=not_differentiable("igammac: input"), y=lambda grad, x, y: -_incomplete_slope(grad, x, y))
igamma.domain = igammac.domain = (0.1, 12)
polygamma.domain = (0.2, 12)
zeta.domain = {"x": (1.2, 6), "y": (0.2, 12)}
for _operator in (zeta, igamma, igammac):  # the derivative by the second argument is the only one

    @_operator.samples
    def _(draw, operator=_operator):
        for first, second in (((5, 7), (5, 7)), ((4, 1), (3,)), ((0,), (0,))):
            positions = (1,) if draw.dtype.is_floating_point else ()
            yield [draw.input("x", first), draw.input("y", second)], {}, positions
