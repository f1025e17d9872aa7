"""Random numbers of further distributions: made of uniform and normal ones, or drawn on the host from seed and call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...autograd.gradients import underived, unmoved
from ...autograd.mode import no_grad
from ...errors import DtypeError, ShapeError, UnsupportedError, require
from ...ground.public import method, public
from ...operators.generators import Generator, draw_from
from ...operators.inplace import check_writable
from ...tensors import Tensor
from ...types import devices, dtypes
from ...types.layout import broadcast_shapes
from ..creation import creation
from .draws import floating, overwrite, rand, randn, wide


@method()
def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with Cauchy random numbers: `median + sigma * tan(pi * (u - 1/2))` of uniform u.

    Raises:
        ShapeError: a `sigma` that is not positive. DtypeError: a dtype that is not floating.
    """
    words = "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
    require(self.dtype.is_floating_point, DtypeError, words + "specified {}", self.dtype)
    require(sigma > 0, ShapeError, "cauchy_ expects sigma > 0.0, but found sigma={}", sigma)
    check_writable(self)
    with no_grad():
        drawn: Any = rand(self.shape, generator=generator, dtype=wide(self), device=self.device)
        drawn = drawn.sub_(0.5).mul_(math.pi).tan_().mul_(float(sigma)).add_(float(median))
    return overwrite(self, drawn, "Cauchy")


@method()
def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with log-normal random numbers; `mean` and `std` are those of their logarithms.

    Raises:
        ShapeError: a deviation that is not positive.
    """
    floating(self.dtype, "log_normal_")
    require(std > 0, ShapeError, "log_normal_ expects std > 0.0, but found std={}", std)
    check_writable(self)
    with no_grad():
        drawn: Any = randn(self.shape, generator=generator, dtype=wide(self), device=self.device)
        drawn = drawn.mul_(float(std)).add_(float(mean)).exp_()
    return overwrite(self, drawn, "LogNormal")


@method()
def geometric_(self: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with geometric random numbers: the trials up to the first success, each of probability `p`.

    Raises:
        ShapeError: a probability that is not between 0 and 1. UnsupportedError: booleans, complex numbers.
    """
    if self.dtype.is_complex or self.dtype is dtypes.bool_:
        raise UnsupportedError(f"\"geometric\" not implemented for '{self.dtype.legacy}'")
    require(0 < p < 1, ShapeError, "geometric_ expects p to be in (0, 1), but got p={}", p)
    check_writable(self)
    with no_grad():
        drawn: Any = rand(self.shape, generator=generator, dtype=wide(self), device=self.device)
        drawn = drawn.neg_().log1p_().mul_(1 / math.log1p(-p)).ceil_().clamp_min_(1)
    return overwrite(self, drawn, "Geometric")


@method()
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with random numbers from the exponential distribution with rate `lambd`.

    Raises:
        ShapeError: a rate that is not positive. AutogradError: the tensor must not be changed in place.
    """
    floating(self.dtype, "exponential_")
    require(lambd > 0, ShapeError, "exponential_ expects lambda > 0.0, but found lambda={}", lambd)
    check_writable(self)
    with no_grad():
        drawn = rand(self.shape, generator=generator, dtype=wide(self), device=self.device)
        drawn = drawn.neg_().log1p_().mul_(-1 / lambd)
    return overwrite(self, drawn, "Exponential")


def numpy_generator(device: devices.device, generator: Generator | None) -> np.random.Generator:
    """NumPy's generator for one call; a seed and the number of the call give the same numbers for every device."""
    call = draw_from(device, generator, on_host=True)
    return np.random.Generator(np.random.Philox(key=call["seed"], counter=[0, 0, call["offset"], 0]))


@public(functional=False)
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Draws Poisson random numbers with the rates in `input`, on the host.

    >>> import tritensor as torch
    >>> torch.poisson(torch.zeros(2))
    tensor([0., 0.])

    Raises:
        ShapeError: a negative rate, or NaN. DtypeError: rates that are not floating.
    """
    floating(input.dtype, "poisson")
    if input.is_meta:
        return unmoved("PoissonBackward0", creation.empty(input.shape, dtype=input.dtype, device="meta"), input)
    rates = input.detach()._to_host().astype(np.float64)
    require((rates >= 0).all(), ShapeError, "invalid Poisson rate, expected rate to be non-negative")
    drawn = np.asarray(numpy_generator(input.device, generator).poisson(np.minimum(rates, 9e18)), np.float64)
    return unmoved("PoissonBackward0", creation.place(drawn, input.device).to(input.dtype), input)


@public(functional=False)
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Draws binomial numbers on the host: successes in `count` trials of probability `prob`; the two broadcast.

    >>> import tritensor as torch
    >>> torch.binomial(torch.tensor([5.0, 5.0]), torch.tensor([0.0, 1.0]))
    tensor([0., 5.])

    Raises:
        ValueError: dtypes that are not floating. DtypeError: two dtypes.
    """
    words = "binomial only supports floating-point dtypes for {}, got: {}"
    for name, each in (("count", count), ("prob", prob)):
        require(each.dtype.is_floating_point, ValueError, words, name, each.dtype.legacy)
    kinds = prob.dtype.legacy, count.dtype.legacy
    require(count.dtype is prob.dtype, DtypeError, "Found dtype {} but expected {}", *kinds)
    shape = broadcast_shapes(tuple(count.shape), tuple(prob.shape))
    trials, chances = (np.broadcast_to(each.detach()._to_host().astype(np.float64), shape) for each in (count, prob))
    usable = np.clip(np.nan_to_num(trials), 0, 9e18).astype(np.int64)
    drawn = numpy_generator(count.device, generator).binomial(usable, np.clip(np.nan_to_num(chances), 0, 1))
    drawn = np.where((chances >= 1) & (trials > 0), trials, drawn)
    drawn = np.where(np.isnan(chances) | np.isnan(trials), np.nan, drawn)
    found = creation.place(drawn, count.device).to(count.dtype)
    return underived("binomial", found, count, prob)
