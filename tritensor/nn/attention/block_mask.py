"""The masks of `flex_attention`: functions of indices, and the blocks of scores in which they keep any."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from operator import attrgetter, itemgetter
from typing import Any

from ...accelerator import current_accelerator
from ...errors import RangeError, ShapeError, require
from ...func.vmap import vmap
from ...functional.creation.creation import zeros
from ...functional.creation.ranges import arange
from ...functional.elementwise.pointwise import where
from ...functional.views.joining import cat
from ...functional.window.filling import pad
from ...tensors import Tensor
from ...types.dtypes import bool_, int32

_mask_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
_score_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
_DEFAULT_SPARSE_BLOCK_SIZE = 128
# So many scores are computed at a time.
SCORES = 1 << 22


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask that keeps every key."""
    return batch.new_ones((), dtype=bool_)


def sliced(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The function of a mask that was sliced, which raises."""
    remedy = "set `mask_mod` of the slice to a function made from that of the whole BlockMask"
    raise ShapeError("Cannot use mask_mod from a sliced BlockMask", remedy=remedy)


def _joined(masks: tuple[Any, ...], join: Callable[[Tensor, Tensor], Tensor], first: bool) -> _mask_mod_signature:
    require(all(map(callable, masks)), ShapeError, "All inputs should be callable mask_mods: {}", masks)

    def joined(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        found = b.new_full((), first, dtype=bool_)
        for mask in masks:
            found = join(found, mask(b, h, q_idx, kv_idx))
        return found

    return joined


def or_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """The mask that keeps what any of these keep; ShapeError if one is no function."""
    return _joined(mask_mods, lambda x, y: x | y, False)


def and_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """The mask that keeps what all of these keep; ShapeError if one is no function."""
    return _joined(mask_mods, lambda x, y: x & y, True)


def evaluated(function: Callable[..., Tensor], order: str, *arguments: tuple[Tensor, str]) -> Tensor:
    """A function of scalars on all elements of its arguments, whose dimensions have names, in the order of these."""
    for name in reversed(order):
        function = vmap(function, in_dims=tuple([0 if name in dims else None for _, dims in arguments]))
    return function(*[x for x, _ in arguments])


def is_score(function: Callable[..., Any]) -> bool:
    """True for a function of a score and four indices, False for one of four indices."""
    parameters = [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]
    count = sum(1 for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD))
    require(count in (4, 5), AssertionError, "Expected 4 or 5 positional args, got {}", count)
    return count == 5


def create_mask(
    mod_fn: _score_mod_signature | _mask_mod_signature,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: object = None,
) -> Tensor:
    """The boolean mask (B, H, Q_LEN, KV_LEN) of a function of four indices, or of one that sets scores to -inf.

    Raises:
        AssertionError: a function of other numbers of arguments.
    """
    sizes, device = (B or 1, H or 1, Q_LEN, KV_LEN), device or current_accelerator() or "cpu"
    arguments = [(arange(size, device=device), name) for size, name in zip(sizes, "bhqk")]
    if not is_score(mod_fn):
        return evaluated(mod_fn, "bhqk", *arguments)
    return evaluated(mod_fn, "bhqk", (zeros(sizes, device=device), "bhqk"), *arguments) != -math.inf


def _pair(size: int | tuple[int, int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else size


def _to_dense(counts: Tensor, indices: Tensor) -> Tensor:
    columns = indices.shape[-1]
    places = where(arange(columns, device=indices.device) < counts.unsqueeze(-1), indices.long(), columns)
    dense = zeros((*places.shape[:-1], columns + 1), dtype=int32, device=indices.device)
    return dense.scatter(-1, places, 1)[..., :columns]


def _to_ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    dense = dense.to(int32)
    return dense.sum(-1).to(int32), dense.argsort(dim=-1, descending=True, stable=True).to(int32)


def _changed(counts: Tensor | None, indices: Tensor | None, change: Callable[[Tensor], Tensor]) -> tuple[Any, Any]:
    """Counts and indices of the blocks that `change` makes of those of a mask; None of none."""
    return (None, None) if counts is None or indices is None else _to_ordered(change(_to_dense(counts, indices)))


@dataclass(eq=False, repr=False)
class BlockMask:
    """The blocks of scores that attention computes: for each row of blocks, how many and in which columns.

    Of "full" blocks all scores are kept; in the others `mask_mod` says which. `create_block_mask` makes it of a
    function, `from_kv_blocks` of blocks.

    Raises:
        ShapeError: indices of fewer than two dimensions. AssertionError: one of a pair of tensors is missing.
    """

    seq_lengths: tuple[int, int]
    kv_num_blocks: Tensor
    kv_indices: Tensor
    full_kv_num_blocks: Tensor | None = None
    full_kv_indices: Tensor | None = None
    q_num_blocks: Tensor | None = None
    q_indices: Tensor | None = None
    full_q_num_blocks: Tensor | None = None
    full_q_indices: Tensor | None = None
    BLOCK_SIZE: tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE)
    mask_mod: _mask_mod_signature = noop_mask

    def __post_init__(self) -> None:
        require(self.kv_indices.ndim >= 2, ShapeError, "BlockMask must have at least 2 dimensions")
        for name in ("full_kv", "full_q"):
            one, other = (getattr(self, f"{name}_{each}") is None for each in ("num_blocks", "indices"))
            text = "{0}_num_blocks and {0}_indices must be both provided or omitted"
            require(one == other, AssertionError, text, name)
        self._read: tuple[Any, ...] = (None,)

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: _mask_mod_signature | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """The mask with these blocks: `kv_indices[..., row, :kv_num_blocks[..., row]]` are the columns of a row.

        Args:
            full_kv_num_blocks, full_kv_indices: blocks that are kept as a whole, which `mask_mod` is not asked about.
            seq_lengths: queries and keys, if not all of the blocks'.
            compute_q_blocks: whether to find the rows of each column, too.

        Raises: see `BlockMask`.
        """
        size, (rows, columns) = _pair(BLOCK_SIZE), (1, *kv_indices.shape)[-2:]
        blocks = (kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices)
        lengths = seq_lengths or (rows * size[0], columns * size[1])
        made = cls(lengths, *blocks, BLOCK_SIZE=size, mask_mod=mask_mod or noop_mask)
        if compute_q_blocks:
            turned = attrgetter("mT")
            made.q_num_blocks, made.q_indices = _changed(kv_num_blocks, kv_indices, turned)
            made.full_q_num_blocks, made.full_q_indices = _changed(full_kv_num_blocks, full_kv_indices, turned)
        return made

    @property
    def shape(self) -> tuple[int, ...]:
        """Batch, heads, queries and keys."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """The number of scores, kept or not."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """The percentage of scores in blocks that are not computed."""
        return 100 * (1 - int(self.to_dense().sum()) * math.prod(self.BLOCK_SIZE) / self.numel())

    def to_dense(self) -> Tensor:
        """One for each block that is computed, zero for each other one."""
        dense = _to_dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            dense = dense | _to_dense(self.full_kv_num_blocks, self.full_kv_indices)
        return dense

    def to(self, device: object) -> BlockMask:
        """The mask with its tensors on a device."""
        moved: dict[str, Any] = {name: x.to(device) for name, x in vars(self).items() if isinstance(x, Tensor)}
        return replace(self, **moved)

    def _blocks(self) -> list[Any]:
        return [self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices]

    def _of(self, blocks: Sequence[Any], seq_lengths: tuple[int, int], mask_mod: _mask_mod_signature) -> BlockMask:
        kept = self.q_indices is not None
        return BlockMask.from_kv_blocks(*(*blocks, self.BLOCK_SIZE, mask_mod, seq_lengths, kept))

    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of some of the batch, heads and rows of blocks; its `mask_mod` has to be set anew."""
        given = [*(index if isinstance(index, tuple) else (index,)), *[slice(None)] * 3][:3]
        for dim, (each, size) in enumerate(zip(given, self.kv_num_blocks.shape[:3])):
            if isinstance(each, int):
                require(-size <= each < size, RangeError, "index {} is out of bounds for dimension {}", each, dim)
                given[dim] = slice(each % size, each % size + 1)
        return self._of([x if x is None else x[tuple(given)] for x in self._blocks()], self.seq_lengths, sliced)

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The upper left corner, for fewer queries and keys."""
        rows, columns = (-(-new // size) for new, size in zip((new_q_len, new_kv_len), self.BLOCK_SIZE))
        given, corner = self._blocks(), itemgetter((..., slice(rows), slice(columns)))
        blocks = [x for i in (0, 2) for x in _changed(given[i], given[i + 1], corner)]
        return self._of(blocks, (new_q_len, new_kv_len), self.mask_mod)

    def on_host(self) -> list[Any]:
        """The blocks as arrays of (batch, heads, rows, ...); they are read again when a tensor was changed."""
        blocks = [x for x in self._blocks() if x is not None]
        key = [(id(x), x._version) for x in blocks]
        if key != self._read[0]:
            found = [x[(None,) * (3 + p % 2 - x.ndim)].cpu().numpy() for p, x in enumerate(blocks)]
            found = found if len(found) == 4 else [*found, found[0] * 0, found[1]]
            self._read = key, found, blocks  # which are held, or other tensors could get their ids
        return self._read[1]

    def lists(self, by_columns: bool) -> tuple[Tensor, ...]:
        """Counts and indices of blocks by rows or by columns, and those of full blocks, on the mask's device.

        They have three and four dimensions, and are int32 and contiguous.
        """
        given, known = self._blocks(), [self.q_num_blocks, self.q_indices, self.full_q_num_blocks, self.full_q_indices]
        if by_columns:
            missing = [mine is not None and other is None for mine, other in zip(given, known)]
            turned = attrgetter("mT")
            given = [x for i in (0, 2) for x in _changed(given[i], given[i + 1], turned)] if True in missing else known
        found: list[Any] = [x if x is None else x.to(int32).contiguous() for x in given]
        each = found if found[2] is not None else [*found[:2], found[0] * 0, found[1]]
        return tuple([x[(None,) * (3 + p % 2 - x.ndim)] for p, x in enumerate(each)])

    def __repr__(self) -> str:
        shown = [(each.name, getattr(self, each.name)) for each in fields(self)[1:-1]]
        lines = [f"    {name}={getattr(x, 'shape', x)},\n" for name, x in shown]
        lines += [f"    shape={self.shape},\n", f"    sparsity={self.sparsity():.2f}%,\n"]
        return f"BlockMask(\n{''.join(lines)}    mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}\n)"

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A drawing of the blocks: kept, kept in part of what a cell stands for, or not.

        Args:
            grid_size: the most rows and columns of cells; -1 for a cell of each block.
            limit: how many masks of the batch and the heads to draw.
        """
        dense = self.to_dense().cpu().numpy()
        drawn: list[str] = []
        sizes = dense.shape[-2:] if grid_size == -1 else _pair(grid_size)
        down, across = (max(1, -(-count // most)) for count, most in zip(dense.shape[-2:], sizes))
        for position in product(*map(range, dense.shape[:-2])):
            if len(drawn) == limit:
                drawn += ["...", "To print out more, set BlockMask.to_string(limit=N)"]
                drawn.append("You can also index (BlockMask[batch, head]) to choose a specific batch or head")
                break
            text = f"{position}\n"
            for row in range(0, dense.shape[-2], down):
                for column in range(0, dense.shape[-1], across):
                    share = dense[position][row : row + down, column : column + across].mean()
                    text += "  " if share == 0 else "██" if share == 1 else "░░"
                text += "\n"
            drawn.append(text)
        return "\n".join(drawn)


def create_block_mask(
    mask_mod: _mask_mod_signature,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: object = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
) -> BlockMask:
    """Create a `BlockMask` of the blocks in which `mask_mod(b, h, q_idx, kv_idx)` keeps a score, by rows of blocks.

    >>> import tritensor as torch
    >>> from tritensor.nn.attention.flex_attention import create_block_mask, flex_attention
    >>> mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 4, 4, "cpu", BLOCK_SIZE=2)
    >>> mask.to_dense().tolist()
    [[[[1, 0], [1, 1]]]]
    >>> x = torch.eye(4).reshape(1, 1, 4, 4)
    >>> flex_attention(x, x, x, block_mask=mask)[0, 0, 1]
    tensor([0.3775, 0.6225, 0.0000, 0.0000])

    Args:
        B, H: None where the mask is the same for the whole batch, or for all heads.
        _compile: for PyTorch's sake.
        separate_full_blocks: whether blocks that are kept as a whole are listed apart, and not masked later.

    Raises:
        AssertionError: a function of other than four arguments.
    """
    require(not is_score(mask_mod), AssertionError, "create-block_mask requires a mask_mod function! Got {}", mask_mod)
    (high, wide), sums = _pair(BLOCK_SIZE), []
    step = max(1, SCORES // max(1, (B or 1) * (H or 1) * high * KV_LEN)) * high
    for first in range(0, max(Q_LEN, 1), step):
        rows = min(step, Q_LEN - first)
        mask = create_mask(lambda b, h, q, k, by=first: mask_mod(b, h, q + by, k), B, H, rows, KV_LEN, device)
        mask = pad(mask, (0, -KV_LEN % wide, 0, -rows % high))
        sums.append(mask.unflatten(-1, (-1, wide)).unflatten(-3, (-1, high)).sum((-3, -1)))
    kept = cat(sums, -2)
    whole = kept == high * wide if separate_full_blocks else kept < 0
    partial, full = _to_ordered((kept > 0) & ~whole), _to_ordered(whole) if separate_full_blocks else (None, None)
    options: dict[str, Any] = {"BLOCK_SIZE": (high, wide), "mask_mod": mask_mod, "seq_lengths": (Q_LEN, KV_LEN)}
    return BlockMask.from_kv_blocks(*partial, *full, **options)
