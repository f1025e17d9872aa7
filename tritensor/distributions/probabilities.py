"""Probabilities and their log-odds or logarithms, kept from 0 and 1; Euler's constant, which is in entropies."""

from __future__ import annotations

from ..tensors import Tensor
from ..types.dtypes import finfo

__all__ = ["clamp_probs", "logits_to_probs", "probs_to_logits"]
euler_constant = 0.57721566490153286


def tiny(x: Tensor) -> float:
    """The step from 1 of a tensor's dtype; probabilities and uniform numbers are kept that far from 0 and 1."""
    return float(finfo(x.dtype).eps)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities that are neither 0 nor 1: the step from 1 of their dtype away from them at least."""
    return probs.clamp(tiny(probs), 1 - tiny(probs))


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """The probabilities of log-odds, or of logarithms of probabilities along the last dimension."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The log-odds, or the logarithms, of probabilities, which are kept from 0 and 1."""
    kept = clamp_probs(probs)
    return kept.log() - (-kept).log1p() if is_binary else kept.log()
