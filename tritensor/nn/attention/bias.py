"""Causal biases by the names of `torch.nn.attention.bias`."""

from __future__ import annotations

from ...functional.attention.attention_bias import CausalBias, CausalVariant, causal_lower_right, causal_upper_left

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]
