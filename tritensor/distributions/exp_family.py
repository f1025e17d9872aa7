"""Exponential families: entropies and divergences by the derivatives of what normalizes their densities."""

from __future__ import annotations

from typing import Any

from ..autograd.backward import grad
from ..autograd.mode import enable_grad
from ..tensors import Tensor
from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """The base class of exponential families, of density exp(t(x) . n - F(n) + k(x)).

    A subclass has n (`_natural_params`), F (`_log_normalizer`) and the mean of k (`_mean_carrier_measure`)."""

    _log_normalizer: Any

    @property
    def _natural_params(self) -> Any:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    def _normalized(self) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """F at the natural parameters, and each of these with the derivative of F."""
        with enable_grad():
            own = [each.detach().requires_grad_() for each in self._natural_params]
            value = self._log_normalizer(*own)
            return value, list(zip(own, grad(value.sum(), own, create_graph=True), strict=True))

    def _nats(self) -> Tensor:
        """The entropy, by the derivative of F."""
        found, parts = self._normalized()
        found = found - self._mean_carrier_measure
        for own, slope in parts:
            found = found - (own * slope).reshape(*self._batch_shape, -1).sum(-1)
        return found
