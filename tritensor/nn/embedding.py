"""Lookup tables of trained vectors."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ..autograd.mode import no_grad
from ..errors import require
from ..functional.creation.creation import empty
from ..tensors import Tensor
from ..types import Device, Dtype
from . import init
from .module import Module
from .parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """Vectors that are looked up: a table that starts normally distributed, with zeros in the row `padding_idx`."""

    weight: Parameter
    num_embeddings: int
    embedding_dim: int
    _options: tuple[tuple[str, Any], ...] = ("max_norm", None), ("norm_type", 2), ("scale_grad_by_freq", False)

    def _set(
        self, weight: Tensor | None, padding_idx: int | None, name: str, freeze: bool, device: Device, dtype: Dtype
    ) -> None:
        rows, columns = self.num_embeddings, self.embedding_dim
        if padding_idx is not None:
            require(-rows <= padding_idx < rows, AssertionError, "{} must be within num_embeddings", name)
            padding_idx %= rows
        self.padding_idx = padding_idx
        if weight is not None and tuple(weight.shape) != (rows, columns):
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        made = empty(rows, columns, device=device, dtype=dtype) if weight is None else weight
        self.weight = Parameter(made, requires_grad=not freeze)
        if weight is None:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the table anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def extra_repr(self) -> str:
        """The two sizes, and what differs from the defaults."""
        shown = [(name, getattr(self, name), value) for name, value in self._options]
        options = [f"{name}={found!r}" for name, found, value in shown if found != value]
        return ", ".join([f"{self.num_embeddings}, {self.embedding_dim}", *options])


def _sizes(embeddings: Tensor) -> tuple[int, int]:
    require(embeddings.ndim == 2, AssertionError, "Embeddings parameter is expected to be 2-dimensional")
    rows, columns = embeddings.shape
    return rows, columns


class Embedding(_Table):
    """An embedding, a lookup table of `num_embeddings` vectors: indices of any shape become (..., embedding_dim).

    The table starts normally distributed, with zeros in the row `padding_idx`.

    >>> import tritensor as torch
    >>> torch.nn.Embedding(10, 3)(torch.tensor([[1, 2], [4, 9]])).shape
    tritensor.Size([2, 2, 3])

    Args:
        padding_idx: a row that gets no gradient, so that training does not change it.
        max_norm, norm_type, scale_grad_by_freq, sparse: see `tritensor.nn.functional.embedding`.

    Raises:
        AssertionError: `padding_idx` is no row.
    """

    _options = ("padding_idx", None), *_Table._options, ("sparse", False)

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Device = None,
        dtype: Dtype = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self._set(_weight, padding_idx, "Padding_idx", _freeze, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """The vectors, of shape (..., embedding_dim)."""
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """A layer over an existing table, which is not trained with `freeze`.

        Raises:
            AssertionError: the table is not 2-dimensional.
        """
        sizes = _sizes(embeddings)
        return cls(*sizes, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, freeze)


class EmbeddingBag(_Table):
    """Embeddings of bags of indices: the sum, mean or maximum of each bag's vectors, (bags, embedding_dim).

    >>> import tritensor as torch
    >>> bags = torch.nn.EmbeddingBag(10, 3, mode="sum")
    >>> bags(torch.tensor([1, 2, 4, 9]), torch.tensor([0, 3])).shape, bags
    (tritensor.Size([2, 3]), EmbeddingBag(10, 3, mode='sum'))

    Args:
        max_norm, norm_type, scale_grad_by_freq, mode, sparse, include_last_offset, padding_idx: see
            `tritensor.nn.functional.embedding_bag`.

    Raises:
        AssertionError: `padding_idx` is no row.
    """

    _options = *_Table._options, ("mode", None), ("padding_idx", None)

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Device = None,
        dtype: Dtype = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type, self.mode = max_norm, norm_type, mode
        self.scale_grad_by_freq, self.sparse, self.include_last_offset = scale_grad_by_freq, sparse, include_last_offset
        self._set(_weight, padding_idx, "padding_idx", False, device, dtype)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """A vector for each bag: for each row of `input`, or from each of the `offsets` on."""
        how = self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse
        last = self.include_last_offset, self.padding_idx
        return F.embedding_bag(input, self.weight, offsets, *how, per_sample_weights, *last)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """A layer over an existing table, which is not trained with `freeze`.

        Raises:
            AssertionError: the table is not 2-dimensional.
        """
        sizes, last = _sizes(embeddings), (include_last_offset, padding_idx)
        made = cls(*sizes, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings, *last)
        made.weight.requires_grad = not freeze
        return made
