"""The base class of distributions: shapes, checks of parameters and samples, and how they are printed and expanded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..autograd.mode import no_grad
from ..errors import require
from ..tensors import Tensor
from ..types.size import Size
from . import constraints
from .probabilities import logits_to_probs, probs_to_logits
from .properties import lazy_property, missing, stated
from .shapes import broadcast_all

__all__ = ["Distribution"]


class Distribution:
    """The base class of distributions: events of `event_shape`, one for each of `batch_shape`.

    A subclass has formulas for what its methods return: `_draw(shape)` for samples of a whole shape, `_log_density` and
    `_share` for `log_prob` and `cdf` of a value that is checked, `_quantile` for `icdf`, and `_nats` for the entropy.

    Attributes:
        arg_constraints: where each parameter has to lie.
        support: where samples lie.
        has_rsample: whether gradients flow through samples to the parameters.
        has_enumerate_support: whether there are finitely many events.
    """

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: Any = {}
    support: Any = constraints.real
    _validate_args = __debug__
    _unexpanded: tuple[str, ...] = ()  # tensors of a shape of their own
    _draw: Any = missing
    _log_density = _share = _quantile = _nats = _draw

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Tensor:
            """The parameters, which are attributes of the names that they were passed by."""

    def __init__(
        self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        for name, constraint in self.arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in vars(self) and isinstance(getattr(type(self), name, None), lazy_property):
                continue  # the other spelling of probabilities
            value = getattr(self, name)
            if not constraint.check(value).all():
                words = f"of distribution {self!r} to satisfy the constraint {constraint!r}, but"
                self._refuse(f"parameter {name}", value, words, value)

    def _refuse(self, name: str, value: Tensor, words: str, bad: Tensor) -> None:
        found = f"({type(value).__name__} of shape {tuple(value.shape)})"
        raise ValueError(f"Expected {name} {found} {words} found invalid values:\n{bad}")

    def _set(self, validate_args: bool | None, event: int = 0, **parameters: Any) -> None:
        """Broadcast the parameters, whose last `event` dimensions are the event's, and check them."""
        for name, value in zip(parameters, broadcast_all(*parameters.values()), strict=True):
            setattr(self, name, value)
        shape = value.shape
        Distribution.__init__(self, shape[: len(shape) - event], shape[len(shape) - event :], validate_args)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Sets whether distributions made from now on check their arguments, unless they are told otherwise."""
        Distribution._validate_args = value

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters' batch."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample."""
        return self._event_shape

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The same distribution for a larger batch; the parameters are expanded, not copied."""
        made = self._get_checked_instance(type(self), _instance)
        shape = Size(batch_shape)
        for name, value in vars(self).items():
            if isinstance(value, Tensor) and name not in self._unexpanded:
                own = value.shape[len(self._batch_shape) :]
                value = value.expand(*shape, *own)
            elif isinstance(value, Distribution):
                value = value.expand((*shape, *value._batch_shape[len(self._batch_shape) :]))
            vars(made)[name] = value
        made._batch_shape = shape
        return made

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """What `expand` fills: what a subclass gave it, or a new one.

        Raises:
            NotImplementedError: a subclass of `cls` has a constructor of its own and uses its `expand`.
        """
        kind = type(self)
        if _instance is None and kind.__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {kind.__name__} of {cls.__name__} that defines a custom __init__ method must also define a "
                "custom .expand() method."
            )
        return kind.__new__(kind) if _instance is None else _instance

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most likely event."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Samples of `sample_shape + batch_shape + event_shape`, without a graph."""
        with no_grad():
            own = type(self).rsample is Distribution.rsample
            return self._draw(self._extended_shape(sample_shape)) if own else self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Samples through which gradients flow to the parameters."""
        if not self.has_rsample:
            raise NotImplementedError
        return self._draw(self._extended_shape(sample_shape))

    def sample_n(self, n: int) -> Tensor:
        """`sample((n,))`."""
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at `value`."""
        formula = self._log_density
        if self._validate_args:
            self._validate_sample(value)
        return formula(value)

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most `value`."""
        formula = self._share
        if self._validate_args:
            self._validate_sample(value)
        return formula(value)

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of `cdf`."""
        return self._quantile(value)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All events, along dimension 0."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy, in nats."""
        return self._nats()

    def perplexity(self) -> Tensor:
        """exp(entropy)."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _values_of_axis(self, events: Tensor, expand: bool) -> Tensor:
        """Events along dimension 0 of a batch."""
        found = events.reshape(-1, *(1,) * len(self._batch_shape))
        return found.expand(-1, *self._batch_shape) if expand else found

    def _validate_sample(self, value: Tensor) -> None:
        require(isinstance(value, Tensor), ValueError, "The value argument to log_prob must be a Tensor")
        actual, own = value.shape, self._event_shape
        words = "The right-most size of value must match event_shape: {} vs {}."
        require(not own or tuple(actual[-len(own) :]) == tuple(own), ValueError, words, actual, own)
        expected = Size((*self._batch_shape, *own))
        for one, other in zip(reversed(actual), reversed(expected), strict=False):
            words = "Value is not broadcastable with batch_shape+event_shape: {} vs {}."
            require(one in (1, other) or other == 1, ValueError, words, actual, expected)
        support = self.support
        if not support.check(value).all():
            words = f"to be within the support ({support!r}) of the distribution {self!r}, but"
            self._refuse("value argument", value, words, value)

    def __repr__(self) -> str:
        named = [(name, vars(self)[name]) for name in self.arg_constraints if name in vars(self)]
        shown = (f"{name}: {value if value.numel() == 1 else value.shape}" for name, value in named)
        return f"{type(self).__name__}({', '.join(shown)})"


class Weighted(Distribution):
    """A distribution by `probs` or by `logits`, the other of which is computed when it is asked for."""

    binary = True  # one probability for each of the batch; otherwise those of all events along the last dimension

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._set_weights(probs, logits, validate_args)

    def _set_weights(
        self, probs: Any, logits: Tensor | float | None, validate_args: bool | None, **parameters: Any
    ) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        name = "probs" if logits is None else "logits"
        value: Any = probs if logits is None else logits
        if not self.binary:
            require(value.ndim >= 1, ValueError, "`{}` parameter must be at least one-dimensional.", name)
            value = value / value.sum(-1, True) if name == "probs" else value - value.logsumexp(-1, True)
        self._set(validate_args, event=0 if self.binary else 1, **parameters, **{name: value})
        self._event_shape = Size(())
        for own in parameters:  # a count, computed with in the dtype of the weights
            setattr(self, own, getattr(self, own).to(self._param.dtype))

    @property
    def _param(self) -> Tensor:
        """One of the two, of which there is at least one."""
        return getattr(self, "probs" if "probs" in vars(self) else "logits")

    param_shape = stated("The shape of the weights.", lambda self: self._param.shape)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithms of the odds, or of the probabilities of all events."""
        return probs_to_logits(self.probs, self.binary)

    probs = stated("The probabilities.", lambda self: logits_to_probs(self.logits, self.binary), lazy_property)
