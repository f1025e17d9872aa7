"""Causal biases of attention: `torch.nn.attention.bias`. They name a triangle of keys and are never made tensors."""

from __future__ import annotations

import enum
from typing import Any

from ..errors import ShapeError, explain, warn
from ..tensor import Tensor
from .creation import ones

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Which corner of the scores the triangle touches: query 0 sees key 0, or the last query sees the last key."""

    UPPER_LEFT = enum.auto()
    LOWER_RIGHT = enum.auto()


class CausalBias:
    """A triangle of keys, as the mask of `scaled_dot_product_attention`.

    Args:
        variant: which triangle.
        seq_len_q, seq_len_kv: the numbers of queries and of keys.

    Raises:
        AssertionError: `variant` is no CausalVariant.
    """

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if variant is CausalVariant.LOWER_RIGHT and seq_len_q > seq_len_kv:
            warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv! (here: zeros for "
                "queries that see no key)"
            )

    def diagonal(self, is_causal: bool = False) -> int:
        """How many keys beyond its own number a query sees.

        Raises:
            ValueError: attention is to be causal besides.
        """
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        return self.seq_len_kv - self.seq_len_q if self.variant is CausalVariant.LOWER_RIGHT else 0

    def check(self, scores: tuple[int, ...]) -> None:
        """Raise if attention with scores of this shape has other numbers of queries or keys; only a lower right
        triangle depends on them."""
        sizes = (self.seq_len_q, self.seq_len_kv)
        for dim, mine, found in zip((-2, -1), sizes, scores[-2:], strict=True):
            if mine != found and self.diagonal():
                raise ShapeError(
                    explain(
                        f"The size of tensor a ({found}) must match the size of tensor b ({mine}) at non-singleton "
                        f"dimension {len(scores) + dim}",
                        f"a bias for {sizes[0]} queries and {sizes[1]} keys, and scores of {scores[-2:]}",
                        remedy=f"make it as causal_lower_right{scores[-2:]}",
                    )
                )

    def __repr__(self) -> str:
        return repr(self._materialize())

    def _materialize(self, device: Any = None) -> Tensor:
        """The triangle as a tensor of booleans."""
        return ones((self.seq_len_q, self.seq_len_kv), dtype=bool, device=device).tril(self.diagonal())


def causal_upper_left(*size: int) -> CausalBias:
    """The bias of `is_causal=True`, for numbers of queries and keys: query i sees the keys up to i.

    >>> import tritensor as torch
    >>> torch.nn.attention.bias.causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])

    Raises:
        AssertionError: other than two sizes.
    """
    return _triangle("causal_upper_left", CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """The bias with which the last of so many queries sees the last key, each one before it one key less.

    >>> import tritensor as torch
    >>> torch.nn.attention.bias.causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])

    Raises:
        AssertionError: other than two sizes.
    """
    return _triangle("causal_lower_right", CausalVariant.LOWER_RIGHT, size)


def _triangle(name: str, variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors")
    return CausalBias(variant, *size)
