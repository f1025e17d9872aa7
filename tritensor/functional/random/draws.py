"""Random numbers: seeds, generators, tensors of random numbers, and filling a tensor in place.

Numbers are computed from a counter (`kernels/random/philox.py`), so a seed gives the same sequence on every device:
uniform numbers and integers agree in every bit between the CPU, a simulated and a real GPU, normal numbers up to
rounding. Each device has a default generator; `manual_seed` seeds all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...autograd.gradients import unmoved
from ...autograd.mode import no_grad
from ...errors import ArgumentError, DtypeError, ShapeError, UnsupportedError, require
from ...ground.arguments import number_in, whole
from ...ground.composing import shown_as
from ...ground.public import method, public
from ...kernels.bounds import within
from ...kernels.random import philox as kernels
from ...kernels.random.bounds import between
from ...operators.generators import Generator, draw_from
from ...operators.inplace import check_writable, write
from ...operators.outputs import MADE, Into, takes_out
from ...tensors import Tensor, wrap
from ...types import Device, Dtype, devices, dtypes
from ...types.formats import strided
from ...types.layout import check_shape
from ..creation import creation
from ..creation.creation import creates
from ..creation.likeness import made_like
from ..views.complex_views import view_as_complex

# The largest permutation whose numbers are sorted together with 40 random bits.
_PACKED = 1 << 24
_INDICES = Into(warning="", words="multinomial expects Long tensor out, got: {wanted.legacy}")


def floating(kind: dtypes.dtype, name: str) -> dtypes.dtype:
    """The floating dtype requested, or the default one."""
    found = dtypes.get_default_dtype() if kind is None else dtypes.of(creation.numpy_dtype(kind))
    if not found.is_floating_point:
        raise UnsupportedError(
            f"\"{name}\" not implemented for '{found.name}'",
            "random numbers of that kind are floating",
            remedy="draw them in float32 and convert with .to(dtype)",
        )
    return found


def _new(
    operator: Any, shape: tuple[int, ...], name: str, generator: Generator | None, dtype: Any, device: Any
) -> Tensor:
    place = devices.resolve(device)
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.of(creation.numpy_dtype(dtype))
    if kind.is_complex:
        parts = operator(shape=(*shape, 2), dtype=dtypes.real_of(kind), device=place, **draw_from(place, generator))
        if operator is kernels.normal:
            parts *= math.sqrt(0.5)  # the variance of both parts together is 1
        return wrap(view_as_complex(parts)._data)
    return operator(shape=shape, dtype=floating(kind, name), device=place, **draw_from(place, generator))


@creates(MADE, pins=True)
def rand(
    *sizes: Any, size: Any = None, generator: Generator | None = None, dtype: Dtype = None, device: Device = None
) -> Tensor:
    """Random numbers from the uniform distribution on [0, 1); of a complex dtype both parts are.

    >>> import tritensor as torch
    >>> torch.rand(2, 3).shape
    tritensor.Size([2, 3])

    Raises:
        DtypeError: a dtype that is neither floating nor complex. DeviceError: a generator of another device.
    """
    shape = check_shape("rand", "size", sizes, size)
    return _new(kernels.uniform, shape, "rand", generator, dtype, device)


@creates(MADE, pins=True)
def randn(
    *sizes: Any, size: Any = None, generator: Generator | None = None, dtype: Dtype = None, device: Device = None
) -> Tensor:
    """Random numbers from the standard normal distribution, complex ones of variance 1; errors as for `rand`."""
    shape = check_shape("randn", "size", sizes, size)
    return _new(kernels.normal, shape, "randn", generator, dtype, device)


def _like(draw: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function of a tensor that draws another one with its shape."""
    name = f"{draw.__name__}_like"

    def call(
        input: Tensor,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
        generator: Generator | None = None,
    ) -> Tensor:
        return made_like(name, draw, input, dtype, device, memory_format, requires_grad, generator=generator)

    kind = "uniform on [0, 1)" if draw is rand else "standard normal"
    words = f"Random numbers ({kind}) with the shape, dtype, device and order in memory of `input`."
    return public(functional=False)(shown_as(call, name, words))


rand_like, randn_like = _like(rand), _like(randn)


@creates(MADE)
def randint(
    *bounds: Any,
    generator: Generator | None = None,
    dtype: Dtype = None,
    device: Device = None,
    low: int | None = None,
    high: int | None = None,
    size: Any = None,
) -> Tensor:
    """Random integers from `low` (0 in `randint(high, size)`) up to, not including, `high`.

    >>> import tritensor as torch
    >>> x = torch.randint(3, 5, (100,))
    >>> x.dtype, int(x.min()), int(x.max())
    (tritensor.int64, 3, 4)

    Raises:
        ShapeError: there is no integer between the bounds, or the dtype does not hold one. DtypeError: a complex dtype.
    """
    values = list(bounds)
    if size is None and values:
        size = values.pop()
    if high is None and values:
        high = values.pop()
    low = values.pop() if low is None and values else low or 0
    if values or high is None or not isinstance(size, (tuple, list)):
        raise ArgumentError("randint() takes (high, size) or (low, high, size), where size is a tuple of integers")
    kind = dtypes.int64 if dtype is None else dtypes.of(creation.numpy_dtype(dtype))
    limits = between(whole("randint", "low", low), whole("randint", "high", high), kind)
    shape, place = check_shape("randint", "size", (), size), devices.resolve(device)
    drawn = kernels.integers(shape=shape, dtype=kind, device=place, **draw_from(place, generator), **limits)
    return within(drawn, (int(low), int(high) - 1))


@public(functional=False)
def randint_like(
    input: Tensor,
    low: int,
    high: int | None = None,
    *,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
    memory_format: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Random integers (`randint`) with the shape, dtype, device and order in memory of `input`."""
    low, high = (0, low) if high is None else (low, high)
    draw = partial(randint, low, high)
    return made_like("randint_like", draw, input, dtype, device, memory_format, requires_grad, generator=generator)


@creates(MADE, pins=True)
def randperm(n: int, *, generator: Generator | None = None, dtype: Dtype = None, device: Device = None) -> Tensor:
    """A random permutation of the integers from 0 to n - 1, made by sorting random keys of 40 bits or more on the host.

    >>> import tritensor as torch
    >>> torch.randperm(5).sort()[0]
    tensor([0, 1, 2, 3, 4])

    Raises:
        ShapeError: a negative n.
    """
    require(n >= 0, ShapeError, "n must be non-negative, got {}", n)
    place = devices.resolve(device)
    keys = _host_integers(n, draw_from(place, generator, on_host=True))
    if n > _PACKED:
        order = np.argsort(keys)
    else:
        # numbers in place of the lowest bits: NumPy sorts a million of them in a sixth of argsort's time
        mask = (1 << max(n - 1, 0).bit_length()) - 1
        order = keys & ~mask | np.arange(n)
        order.sort()
        order &= mask
    return creation.place(order.astype(creation.numpy_dtype(dtype, dtypes.int64)), place)


def _host_integers(count: int, call: dict[str, int]) -> np.ndarray:
    drawn = kernels.integers(
        shape=(count,), dtype=dtypes.int64, device=devices.cpu, low=-(1 << 63), span=(1 << 64) - 1, **call
    )
    return drawn._data


def _rule_of_normal(mean: Any, std: Any = 1.0, *_: Any, **__: Any) -> Into:
    return Into("cast", "partly") if isinstance(mean, Tensor) or isinstance(std, Tensor) else MADE


@public(functional=False, out=takes_out(_rule_of_normal))
def normal(
    mean: Any,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Dtype = None,
    layout: Any = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """Random numbers from normal distributions; means and standard deviations are tensors, or numbers with a `size`.

    >>> import tritensor as torch
    >>> torch.normal(torch.arange(3.0), 0.0)
    tensor([0., 1., 2.])

    Raises:
        ShapeError: a negative deviation, or NaN; on a device, which is not waited for, only one that is a number.
    """
    if layout not in (None, strided):
        raise ArgumentError(f"normal(): argument 'layout' must be torch.strided, not {layout}")
    if size is not None:
        mean, std = number_in(mean), number_in(std)
    tensors = [value for value in (mean, std) if isinstance(value, Tensor)]
    if not isinstance(std, Tensor):
        if not std >= 0:
            raise ShapeError(f"normal expects std >= 0.0, but found std {std}")
    elif std.dtype.is_complex:
        raise DtypeError("normal expects standard deviation to be non-complex")
    elif not std._off_host and not bool((std._host_array() >= 0).all()):
        raise ShapeError("normal expects all elements of std >= 0.0")
    if not tensors:
        shape = size if isinstance(size, (tuple, list)) else () if size is None else (size,)
        drawn = randn(*shape, generator=generator, dtype=dtype, device=device)
    else:
        with no_grad():
            common: Any = mean + std
        drawn = randn(common.shape, generator=generator, dtype=common.dtype, device=common.device)
    with no_grad():
        result: Tensor = drawn * std + mean
    return result.requires_grad_() if requires_grad else unmoved("NormalBackward1", result, mean, std)


@public(functional=False, method=True, out=takes_out(Into("any", warning="")))
def bernoulli(input: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """Draws Bernoulli numbers in the dtype of `input`: 1 with its elements' probabilities (or with `p`), else 0.

    >>> import tritensor as torch
    >>> torch.bernoulli(torch.tensor([0.0, 1.0]))
    tensor([0., 1.])

    Raises:
        ShapeError: a probability outside 0 to 1. DtypeError: probabilities that are not floating.
    """
    if p is None:
        floating(input.dtype, "bernoulli")
        _check_probabilities(input)
    bound = input.detach() if p is None else _checked_p("bernoulli", p)
    drawn: Any = rand(input.shape, generator=generator, dtype=wide(input), device=input.device)
    return unmoved("BernoulliBackward0", (drawn < bound).to(input.dtype), input)


def wide(x: Tensor) -> dtypes.dtype:
    """The dtype of the uniform numbers that are compared with probabilities: float64 for float64, otherwise float32."""
    return dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32


def _check_probabilities(p: Tensor) -> None:
    """Check probabilities on the CPU. On a CUDA device that would cost a synchronisation; there NaN gives 0."""
    if not p._off_host and not bool(((p._host_array() >= 0) & (p._host_array() <= 1)).all()):
        raise ShapeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")


def _checked_p(name: str, p: float) -> float:
    if not 0 <= p <= 1:
        raise ShapeError(f"{name} expects p to be in [0, 1], but got p={p}")
    return p


@public(functional=False, method=True, out=takes_out(_INDICES))
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Draws indices from each row of `input` (1-D or 2-D), of probabilities proportional to its elements.

    Computed on the host. Without replacement, one exponential number per element determines the order; with
    replacement, one uniform number per sample is looked up in the row's cumulative sum.

    >>> import tritensor as torch
    >>> torch.multinomial(torch.tensor([0.0, 1.0, 0.0]), 1)
    tensor([1])

    Raises:
        DtypeError: integers. ShapeError: another rank, too many samples, a weight below 0 or not finite, only zeros.
    """
    require(input.ndim in (1, 2), ShapeError, "prob_dist must be 1 or 2 dim")
    words = "multinomial only supports floating-point dtypes for input, got: {}"
    require(input.dtype.is_floating_point, DtypeError, words, input.dtype.legacy)
    require(input.shape[-1] <= 1 << 24, ShapeError, "number of categories cannot exceed 2^24")
    if num_samples <= 0 or (num_samples > input.shape[-1] and not replacement):
        many = "> prob_dist.size(-1) samples without replacement" if num_samples > 0 else "<= 0 samples"
        raise ShapeError(f"cannot sample n_sample {many}")
    if input.is_meta:
        return creation.empty((*input.shape[:-1], num_samples), dtype=dtypes.int64, device="meta")
    weights = np.atleast_2d(input.detach()._to_host().astype(np.float64))
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        found = f"encountering probability entry {'= infinity or NaN' if (weights >= 0).all() else '< 0'}"
        several = f"invalid multinomial distribution ({found})" if replacement and num_samples > 1 else ""
        raise ShapeError(several or "probability tensor contains either `inf`, `nan` or element < 0")
    require((weights.sum(1) > 0).all(), ShapeError, "invalid multinomial distribution (sum of probabilities <= 0)")
    words = "invalid multinomial distribution (with replacement=False, not enough non-negative category to sample)"
    require(replacement or not ((weights > 0).sum(1) < num_samples).any(), ShapeError, words)
    drawn = _sample(weights, num_samples, replacement, draw_from(input.device, generator, on_host=True))
    return creation.place(drawn if input.ndim == 2 else drawn[0], input.device)


def _sample(weights: np.ndarray, count: int, replacement: bool, call: dict[str, int]) -> np.ndarray:
    shape = (len(weights), count if replacement else weights.shape[1])
    drawn = kernels.uniform(shape=shape, dtype=dtypes.float64, device=devices.cpu, **call)._data
    if replacement:
        sums = np.cumsum(weights, 1)
        # strictly below the total, so that rounding cannot select an index after the last element with a weight
        last = np.nextafter(sums[:, -1:], 0)
        targets = np.minimum(drawn * sums[:, -1:], last)
        return np.stack([np.searchsorted(row, target, side="right") for row, target in zip(sums, targets, strict=True)])
    with np.errstate(divide="ignore"):
        arrival = np.where(weights > 0, -np.log1p(-drawn) / weights, math.inf)
    return np.argsort(arrival, axis=1, kind="stable")[:, :count]


# ---- filling in place -----------------------------------------------------------------------------------------


def overwrite(x: Tensor, values: Tensor, name: str) -> Tensor:
    """Fill a tensor with random numbers."""
    write(x, values if values.dtype is x.dtype else values.to(x.dtype), f"{name}Backward0")
    return x


@method()
def uniform_(self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with random numbers from the uniform distribution on [from_, to).

    Raises:
        ShapeError: bounds in the wrong order. AutogradError: the tensor must not be changed in place.
    """
    kind = floating(self.dtype, "uniform_")
    require(
        from_ <= to, ShapeError, "uniform_ expects to return a [from, to) range, but found from={} > to={}", from_, to
    )
    check_writable(self)
    with no_grad():
        drawn = kernels.uniform(shape=self.shape, dtype=kind, device=self.device, **draw_from(self.device, generator))
        # two steps, each rounded: a device's fused multiply-add would round once and differ in the last bit
        if to - from_ != 1:
            drawn.mul_(float(to - from_))
        if from_ != 0:
            drawn.add_(float(from_))
    return overwrite(self, drawn, "Uniform")


@method()
def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with random numbers from the normal distribution.

    Raises:
        ShapeError: a negative deviation. AutogradError: the tensor must not be changed in place.
    """
    kind = floating(self.dtype, "normal_")
    require(std >= 0, ShapeError, "normal expects std >= 0.0, but found std {}", std)
    check_writable(self)
    with no_grad():
        drawn = kernels.normal(shape=self.shape, dtype=kind, device=self.device, **draw_from(self.device, generator))
        if std != 1:
            drawn.mul_(float(std))
        if mean != 0:
            drawn.add_(float(mean))
    return overwrite(self, drawn, "Normal")


@method()
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with 1 with probability `p` (a number, or a tensor of them), else 0.

    Raises:
        ShapeError: a probability outside 0 to 1. AutogradError: the tensor must not be changed in place.
    """
    if isinstance(p, Tensor):
        _check_probabilities(p)
    else:
        _checked_p("bernoulli_", p)
    check_writable(self)
    with no_grad():
        drawn = rand(self.shape, generator=generator, dtype=wide(self), device=self.device) < p
        drawn = drawn.to(self.dtype)
    return overwrite(self, unmoved("BernoulliBackward1", drawn, p), "Bernoulli")


@method()
def random_(
    self: Tensor, from_: int | None = None, to: int | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Fill with random integers from `from_` up to, not including, `to`; with one bound from 0 up to it.

    Without bounds up to the dtype's largest integer, of a floating dtype the largest below which all are exact.

    Raises:
        ShapeError: there is no integer between the bounds. AutogradError: the tensor must not be changed in place.
    """
    if to is None:
        from_, to = 0, from_ if from_ is not None else _largest(self.dtype) + 1
    limits = between(int(from_ or 0), int(to), self.dtype)
    check_writable(self)
    place = self.device
    drawn = kernels.integers(shape=self.shape, dtype=self.dtype, device=place, **draw_from(place, generator), **limits)
    return overwrite(self, drawn, "Random")


def _largest(dtype: dtypes.dtype) -> int:
    if dtype.is_floating_point:
        return round(2 / dtypes.finfo(dtype).eps)
    return 1 if dtype is dtypes.bool_ else min(dtypes.iinfo(dtype).max, (1 << 63) - 1)
