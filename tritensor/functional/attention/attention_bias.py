"""Causal biases of attention: `torch.nn.attention.bias`. They name a triangle of keys and are never made tensors."""

from __future__ import annotations

import enum

from ...errors import ShapeError, require, warn
from ..creation.creation import ones


class CausalVariant(enum.IntEnum):
    """The corner of the scores that the triangle touches: query 0 sees key 0, or the last query sees the last key."""

    UPPER_LEFT = enum.auto()
    LOWER_RIGHT = enum.auto()


class CausalBias:
    """A triangle of keys, as the mask of `scaled_dot_product_attention`, for numbers of queries and of keys.

    Raises:
        AssertionError: `variant` is no CausalVariant.
    """

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if self.diagonal() < 0:
            warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv! (here: zeros for "
                "queries that see no key)"
            )

    def diagonal(self) -> int:
        """The number of keys beyond its own that a query sees."""
        return self.seq_len_kv - self.seq_len_q if self.variant is CausalVariant.LOWER_RIGHT else 0

    def check(self, scores: tuple[int, ...]) -> None:
        """Raise if attention has scores of another shape, on which a lower right triangle depends."""
        for dim, mine in ((-2, self.seq_len_q), (-1, self.seq_len_kv)):
            if mine != scores[dim] and self.diagonal():
                raise ShapeError(
                    f"The size of tensor a ({scores[dim]}) must match the size of tensor b ({mine}) at "
                    f"non-singleton dimension {len(scores) + dim}",
                    remedy=f"make the bias as causal_lower_right{scores[-2:]}",
                )

    def __repr__(self) -> str:
        return repr(ones((self.seq_len_q, self.seq_len_kv), dtype=bool).tril(self.diagonal()))


def causal_upper_left(*size: int) -> CausalBias:
    """The bias of `is_causal=True`, for numbers of queries and keys: query i sees the keys up to i.

    Raises:
        AssertionError: other than two sizes.
    """
    require(len(size) == 2, AssertionError, "causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """The bias with which the last of so many queries sees the last key, each one before it one key less.

    >>> import tritensor as torch
    >>> torch.nn.attention.bias.causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])

    Raises:
        AssertionError: other than two sizes.
    """
    require(len(size) == 2, AssertionError, "causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
