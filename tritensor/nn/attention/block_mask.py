"""The masks of `flex_attention`: functions of indices, and the blocks of scores in which they keep any."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from itertools import product
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

Mask = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
Score = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]

_DEFAULT_SPARSE_BLOCK_SIZE = 128
# So many scores are computed at a time, where no gradient needs them later.
AT_ONCE = 1 << 22


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask that keeps every key."""
    return batch.new_ones((), dtype=bool_)


def sliced(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The function of a mask that was sliced, which raises."""
    raise ShapeError(
        "Cannot use mask_mod from a sliced BlockMask",
        "slicing does not tell the function where the slice begins",
        remedy="set `mask_mod` of the slice to a function made from that of the whole BlockMask",
    )


def or_masks(*mask_mods: Mask) -> Mask:
    """The mask that keeps what any of these keep.

    Raises:
        ShapeError: one is no function.
    """
    require(all(map(callable, mask_mods)), ShapeError, "All inputs should be callable mask_mods: {}", mask_mods)

    def or_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        found = b.new_zeros((), dtype=bool_)
        for mask in mask_mods:
            found = found | mask(b, h, q_idx, kv_idx)
        return found

    return or_mask


def and_masks(*mask_mods: Mask) -> Mask:
    """The mask that keeps what all of these keep.

    Raises:
        ShapeError: one is no function.
    """
    require(all(map(callable, mask_mods)), ShapeError, "All inputs should be callable mask_mods: {}", mask_mods)

    def and_mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        found = b.new_ones((), dtype=bool_)
        for mask in mask_mods:
            found = found & mask(b, h, q_idx, kv_idx)
        return found

    return and_mask


# ---- masks of blocks ------------------------------------------------------------------------------------------------


def _pair(size: int | tuple[int, int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else size


def _to_dense(counts: Tensor, indices: Tensor, columns: int) -> Tensor:
    valid = arange(indices.shape[-1], device=indices.device) < counts.unsqueeze(-1)
    places = where(valid, indices.long(), columns)
    return zeros((*places.shape[:-1], columns + 1), dtype=int32, device=indices.device).scatter(-1, places, 1)[
        ..., :columns
    ]


def _to_ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    dense = dense.to(int32)
    return dense.sum(-1).to(int32), dense.argsort(dim=-1, descending=True, stable=True).to(int32)


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
    full_kv_num_blocks: Tensor | None
    full_kv_indices: Tensor | None
    q_num_blocks: Tensor | None
    q_indices: Tensor | None
    full_q_num_blocks: Tensor | None
    full_q_indices: Tensor | None
    _TENSOR_ATTRS: tuple[str, ...] = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices")
    _TENSOR_ATTRS += ("q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices")

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        q_num_blocks: Tensor | None = None,
        q_indices: Tensor | None = None,
        full_q_num_blocks: Tensor | None = None,
        full_q_indices: Tensor | None = None,
        BLOCK_SIZE: tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod: Mask = noop_mask,
    ) -> None:
        require(kv_indices.ndim >= 2, ShapeError, "BlockMask must have at least 2 dimensions")
        pairs = {"kv": (full_kv_num_blocks, full_kv_indices), "q": (full_q_num_blocks, full_q_indices)}
        for name, (counts, indices) in pairs.items():
            text = "full_{0}_num_blocks and full_{0}_indices must be both provided or omitted"
            require((counts is None) == (indices is None), AssertionError, text, name)
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, BLOCK_SIZE, mask_mod
        tensors = (kv_num_blocks, kv_indices, *pairs["kv"], q_num_blocks, q_indices, *pairs["q"])
        for name, tensor in zip(self._TENSOR_ATTRS, tensors):
            setattr(self, name, tensor)
        self._read: tuple[Any, Any] = ((), None)

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: Mask | None = None,
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
        size = _pair(BLOCK_SIZE)
        if seq_lengths is None:
            rows, columns = (1, *kv_indices.shape)[-2:]
            seq_lengths = (rows * size[0], columns * size[1])
        blocks = (kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices)
        made = cls(seq_lengths, *blocks, BLOCK_SIZE=size, mask_mod=mask_mod or noop_mask)
        if compute_q_blocks:
            for name, counts, indices in (("", *blocks[:2]), ("full_", *blocks[2:])):
                if counts is not None and indices is not None:
                    found = _to_ordered(_to_dense(counts, indices, indices.shape[-1]).mT)
                    for each, tensor in zip(("q_num_blocks", "q_indices"), found):
                        setattr(made, name + each, tensor)
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
        blocks = sum(int(each.sum()) for each in (self.kv_num_blocks, self.full_kv_num_blocks) if each is not None)
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """One for each block that is computed, zero for each other one."""
        dense = _to_dense(self.kv_num_blocks, self.kv_indices, self.kv_indices.shape[-1])
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            dense = dense | _to_dense(self.full_kv_num_blocks, self.full_kv_indices, self.full_kv_indices.shape[-1])
        return dense

    def to(self, device: object) -> BlockMask:
        """The mask with its tensors on a device."""
        tensors = {name: getattr(self, name) for name in self._TENSOR_ATTRS}
        found: dict[str, Any] = {name: x if x is None else x.to(device) for name, x in tensors.items()}
        return BlockMask(self.seq_lengths, **found, BLOCK_SIZE=self.BLOCK_SIZE, mask_mod=self.mask_mod)

    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of some of the batch, heads and rows of blocks; its `mask_mod` has to be set anew."""
        given = [*(index if isinstance(index, tuple) else (index,)), *[slice(None)] * 3][:3]
        for dim, (each, size) in enumerate(zip(given, self.kv_num_blocks.shape[:3])):
            if isinstance(each, int):
                require(-size <= each < size, RangeError, "index {} is out of bounds for dimension {}", each, dim)
                given[dim] = slice(each % size, each % size + 1)
        return self._of([None if x is None else x[tuple(given)] for x in self._blocks()], self.seq_lengths, sliced)

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The upper left corner, for fewer queries and keys."""
        rows, columns = (-(-new // size) for new, size in zip((new_q_len, new_kv_len), self.BLOCK_SIZE))
        blocks: list[Tensor | None] = []
        for counts, indices in (self._blocks()[:2], self._blocks()[2:]):
            found: Sequence[Tensor | None] = (None, None)
            if counts is not None and indices is not None:
                found = _to_ordered(_to_dense(counts, indices, indices.shape[-1])[..., :rows, :columns])
            blocks += found
        return self._of(blocks, (new_q_len, new_kv_len), self.mask_mod)

    def _of(self, blocks: Sequence[Any], seq_lengths: tuple[int, int], mask_mod: Mask) -> BlockMask:
        found = dict(zip(self._TENSOR_ATTRS, blocks))
        found |= {"BLOCK_SIZE": self.BLOCK_SIZE, "compute_q_blocks": self.q_indices is not None}
        return BlockMask.from_kv_blocks(**found, mask_mod=mask_mod, seq_lengths=seq_lengths)

    def _blocks(self) -> list[Any]:
        return [getattr(self, name) for name in self._TENSOR_ATTRS[:4]]

    def on_host(self) -> list[Any]:
        """The blocks as arrays of (batch, heads, rows, ...); they are read again when a tensor was changed."""
        key = [(x, x._version) for x in self._blocks() if x is not None]
        if len(key) != len(self._read[0]) or any(a is not c or b != d for (a, b), (c, d) in zip(key, self._read[0])):
            found = [x if x is None else x.cpu().numpy() for x in self._blocks()]
            least = [x if x is None else x.reshape((1,) * (3 + p % 2 - x.ndim) + x.shape) for p, x in enumerate(found)]
            self._read = (key, least)
        return list(self._read[1])

    def __repr__(self) -> str:
        shapes = [(name, getattr(self, name)) for name in self._TENSOR_ATTRS]
        lines = [f"    {name}={x if x is None else x.shape},\n" for name, x in shapes]
        return (
            f"BlockMask(\n{''.join(lines)}    BLOCK_SIZE={self.BLOCK_SIZE},\n    shape={self.shape},\n"
            f"    sparsity={self.sparsity():.2f}%,\n    mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}\n)"
        )

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A drawing of the blocks: kept, kept in part of what a cell stands for, or not.

        Args:
            grid_size: the most rows and columns of cells; -1 for a cell of each block.
            limit: how many masks of the batch and the heads to draw.
        """
        dense = self.to_dense().cpu().numpy()
        sizes = dense.shape[-2:] if grid_size == -1 else _pair(grid_size)
        down, across = (max(1, -(-count // most)) for count, most in zip(dense.shape[-2:], sizes))
        drawn: list[str] = []
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


# ---- functions of scores, evaluated on many at once -----------------------------------------------------------------


def evaluated(function: Callable[..., Tensor], order: str, *arguments: tuple[Tensor, str]) -> Tensor:
    """A function of scalars on all elements of its arguments, whose dimensions are named, in the named order."""
    sizes = {name: size for x, dims in arguments for name, size in zip(dims, x.shape)}
    single = [name for name in order if sizes[name] == 1]  # which takes no vmap
    values = [x.squeeze([i for i, name in enumerate(dims) if name in single]) for x, dims in arguments]
    for name in reversed([name for name in order if name not in single]):
        function = vmap(function, in_dims=tuple([0 if name in dims else None for _, dims in arguments]))
    found = function(*values)
    for position in [order.index(name) for name in single]:
        found = found.unsqueeze(position)
    return found


def _is_score(function: Callable[..., Any]) -> bool:
    """True for a function of a score and four indices, False for one of four indices."""
    parameters = inspect.signature(function).parameters.values()
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(1 for each in parameters if each.kind in positional and each.default is inspect.Parameter.empty)
    require(count in (4, 5), AssertionError, "Expected 4 or 5 positional args, got {}", count)
    return count == 5


def _rows_of_mask(mod_fn: Any, sizes: tuple[int, int, int, int], first: int, device: Any) -> Tensor:
    """The mask of the queries from `first` on."""
    batch, heads, queries, keys = sizes
    indices = [arange(batch, device=device), arange(heads, device=device)]
    indices += [arange(first, first + queries, device=device), arange(keys, device=device)]
    arguments = [*zip(indices, "bhqk")]
    if not _is_score(mod_fn):
        return evaluated(mod_fn, "bhqk", *arguments)
    return evaluated(mod_fn, "bhqk", (zeros(sizes, device=device), "bhqk"), *arguments) != -math.inf


def create_mask(
    mod_fn: Score | Mask, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: object = None
) -> Tensor:
    """The tensor of booleans, of (B, H, Q_LEN, KV_LEN), that a function of four indices says, or one of a score that
    sets those which are not kept to -inf.

    Raises:
        AssertionError: a function of other numbers of arguments.
    """
    return _rows_of_mask(mod_fn, (B or 1, H or 1, Q_LEN, KV_LEN), 0, device or current_accelerator() or "cpu")


def create_block_mask(
    mask_mod: Mask,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: object = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
) -> BlockMask:
    """The blocks in which `mask_mod(b, h, q_idx, kv_idx)` keeps a score; the function is evaluated by rows of blocks.

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
    require(not _is_score(mask_mod), AssertionError, "create-block_mask requires a mask_mod function! Got {}", mask_mod)
    device, (high, wide) = device or current_accelerator() or "cpu", _pair(BLOCK_SIZE)
    sums = []
    step = max(1, AT_ONCE // max(1, (B or 1) * (H or 1) * high * KV_LEN)) * high
    for first in range(0, Q_LEN, step):
        sizes = (B or 1, H or 1, min(step, Q_LEN - first), KV_LEN)
        mask = pad(_rows_of_mask(mask_mod, sizes, first, device), (0, -KV_LEN % wide, 0, -sizes[2] % high))
        sums.append(mask.unflatten(-1, (-1, wide)).unflatten(-3, (-1, high)).sum((-3, -1)))
    kept = cat(sums, -2)
    whole = kept == high * wide if separate_full_blocks else kept < 0
    partial, full = _to_ordered((kept > 0) & ~whole), _to_ordered(whole) if separate_full_blocks else (None, None)
    options: dict[str, Any] = {"BLOCK_SIZE": (high, wide), "mask_mod": mask_mod, "seq_lengths": (Q_LEN, KV_LEN)}
    return BlockMask.from_kv_blocks(*partial, *full, **options)
