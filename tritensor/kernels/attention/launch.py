"""Launches the kernels of attention: chooses tiles, and passes operands by their strides."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ...memory import buffer
from ...memory.array import DeviceArray
from ...operators import copy_into
from ...runtime import choices
from ...runtime.launch import Float64, launch
from ...types import dtypes, layout
from ..addressing import collapse_dims
from ..blocks import forced_block, power_of_two
from ..matmul.launch import arithmetic
from ..matmul.precision import product_for
from ..random.philox import dropout_numbers
from ..rowwise.kernel import contiguous
from .kernel import attention_kernel, attention_keys_kernel
from .reference import batch_of, is_shared

if TYPE_CHECKING:
    from .plan import Plan


class Tile(NamedTuple):
    """The numbers of a program: queries and keys at a time, warps and stages; and whether descriptors read for it."""

    rows: int
    cols: int
    warps: int
    stages: int
    described: bool = False


# By what is multiplied, by the larger width of keys and values, for the three kernels: results, the gradients of
# queries and of keys. "described" is of halves that are read by descriptors. There 128 queries, or keys, a program read
# half of the bytes of 64 from the level-2 cache, which bounded heads of 128 (972 us predicted, where products are 556);
# PyTorch's table for an H100 (torch/_inductor/template_heuristics) has these tiles, but for keys of 128, of which 64
# queries spill, and for results of 64. Those of "half" are the fastest of 6 to 11 on an H200 with Triton 3.6 that spill
# little, except those of 256, where they spilled. Those of "mma" are for an A100, where those of "half" spill 8 to 232
# bytes a thread. What the compiler makes of them is in docs/performance.md.
TILES: dict[str, dict[int, tuple[Tile, Tile, Tile]]] = {
    "described half": {
        64: (Tile(128, 64, 8, 3), Tile(128, 64, 8, 3), Tile(64, 128, 8, 3)),
        128: (Tile(128, 64, 8, 3), Tile(128, 64, 8, 2), Tile(32, 128, 8, 3)),
        256: (Tile(128, 64, 8, 2), Tile(128, 32, 8, 2), Tile(32, 32, 8, 2)),
    },
    "described tf32x3": {
        64: (Tile(128, 64, 8, 2), Tile(128, 32, 8, 2), Tile(16, 128, 8, 2)),
    },
    "half": {
        64: (Tile(128, 64, 8, 3), Tile(64, 64, 4, 3), Tile(64, 64, 4, 2)),
        128: (Tile(64, 64, 4, 3), Tile(64, 64, 4, 2), Tile(32, 64, 4, 3)),
        256: (Tile(64, 32, 4, 2), Tile(128, 32, 8, 2), Tile(32, 16, 8, 2)),
    },
    "mma": {
        64: (Tile(128, 32, 8, 3), Tile(64, 32, 4, 3), Tile(32, 64, 4, 2)),
        127: (Tile(64, 64, 8, 3), Tile(64, 64, 8, 2), Tile(32, 64, 8, 2)),  # masks along the width spill 16 in the next
        128: (Tile(64, 64, 8, 3), Tile(64, 64, 8, 2), Tile(64, 32, 8, 2)),
        256: (Tile(64, 32, 8, 2), Tile(32, 32, 8, 2), Tile(32, 32, 8, 2)),
    },
    "tf32": {
        64: (Tile(64, 64, 4, 2), Tile(64, 32, 4, 2), Tile(32, 64, 8, 2)),
        128: (Tile(128, 32, 8, 2), Tile(64, 32, 8, 2), Tile(32, 32, 8, 2)),
        256: (Tile(32, 32, 8, 1), Tile(16, 16, 8, 1), Tile(32, 32, 8, 1)),
    },
    "tf32x3": {
        64: (Tile(128, 32, 8, 2), Tile(64, 32, 4, 2), Tile(16, 64, 4, 2)),
        128: (Tile(32, 16, 8, 2), Tile(16, 32, 4, 2), Tile(32, 16, 8, 2)),
        256: (Tile(16, 16, 8, 2), Tile(16, 16, 8, 1), Tile(16, 16, 8, 1)),
    },
    "ieee": {
        64: (Tile(32, 32, 4, 1), Tile(16, 32, 4, 1), Tile(16, 32, 4, 1)),
        256: (Tile(16, 16, 8, 1), Tile(16, 16, 8, 1), Tile(16, 16, 8, 1)),
    },
    "double": {
        64: (Tile(32, 32, 4, 1), Tile(16, 32, 4, 1), Tile(32, 32, 4, 1)),
        128: (Tile(16, 32, 4, 1), Tile(16, 16, 4, 1), Tile(16, 16, 4, 1)),
    },
}
_INTERPRETED = 256
# The fewest products of a program that make descriptors pay, each of which takes a program about a microsecond to make:
# 4 us of an H200's multiprocessor at its peak.
_DESCRIBED_PRODUCTS = 1 << 24
# The widest heads whose tiles spill nothing with descriptors, without and with dropout, whose words take registers.
_DESCRIBED = {"half": (256, 128), "tf32x3": (64, 0)}


# What kernels without a plan take for its functions, and for what these read.
_NO_PLAN: tuple[tuple[Any, ...], tuple[Any, ...]] = (False, False, 0, 0, False, None, None, None), ()


class _Work:
    """The common part of the kernels' arguments: operands that share a batch, sizes, tiles and arithmetic."""

    def __init__(
        self, found: dict[str, Any], scale: float, diagonal: int | None, plan: Plan | None = None, **drawn: Any
    ) -> None:
        q, k, v, self.mask = (found[name] for name in ("query", "key", "value", "mask"))
        self.operands, self.batch = (q, k, v), batch_of(q.shape, k.shape, v.shape)
        self.sizes = (*q.shape[-2:-1], k.shape[-2], k.shape[-1], v.shape[-1])
        self.driver, kind = q.buffer.driver, dtypes.of(q.dtype)
        capability = self.driver.capability(q.device.index or 0)
        self.table, self.total, self.product = arithmetic(kind, product_for(capability))
        self.widest = _DESCRIBED.get(self.table, (0, 0)) if self.driver.pick(capability >= (9, 0), False) else (0, 0)
        if self.table == "half" and capability < (9, 0):
            self.table = "mma"
        if kind is dtypes.float64 and self.mask is not None and self.mask.dtype == bool:
            # Triton 3.6 takes the width of a product's operands from the narrowest load before them, here the mask's,
            # and compiles no float64 product of that width.
            wide = buffer.empty(self.mask.shape, dtypes.int64.numpy, self.mask.device)
            copy_into(wide, self.mask)
            self.mask = wide
        number = Float64 if kind is dtypes.float64 else float
        self.numbers = (number(scale), number(scale / math.log(2)), diagonal or 0)
        self.plan, self.pitch = plan, self.sizes[0]
        self.folded = self.mask is None and scale > 0 and (plan is None or plan.score is None)
        self.dropout: tuple[Any, ...] = ()
        if drawn["p"]:
            *key, factor = dropout_numbers(**drawn, on_device=True)
            self.dropout = (*key, number(factor))
        self.flags = (
            diagonal is not None,
            self.mask is not None or plan is not None or self.numbers[2] < 0,
            bool(self.dropout) + (drawn["seed"].__class__ is DeviceArray),
        )

    def run(
        self,
        which: int,
        tile: Tile,
        outs: Sequence[Any],
        more: Sequence[Any],
        of_rows: Sequence[Any],
        name: str,
        shared: int = 1,
    ) -> None:
        """Launch a kernel: that of results, 0, of the gradient of queries, 1, or of those of keys and values, 2.

        Args:
            outs: of queries, the second is contiguous. more: operands with strides. of_rows: contiguous ones.
            shared: so many neighbours in the batch share keys and values.
        """
        rows, cols, width, v_width = self.sizes
        strides = []
        for each in (outs[0], *self.operands, self.mask, *more, *outs[1:][: which // 2]):
            matrix = (rows, cols) if each is self.mask else each.shape[-2:]
            shape, steps = ((), ()) if each is None else (each.shape, each.strides)
            strides.append(layout.broadcast_strides(shape, steps, (*self.batch, *matrix)))
        batch, lead = collapse_dims(self.batch, [steps[:-2] for steps in strides])
        strides = [(*steps, *whole[-2:]) for steps, whole in zip(lead, strides, strict=True)]
        block_e, block_v = (max(power_of_two(each), 16) for each in (width, v_width))
        reach = max(abs(step) for steps in strides for step in steps[-2:]) * max(block_e, block_v, *tile[:2])
        index = dtypes.int64 if reach >= 1 << 31 else dtypes.int32
        functions, flexible = _NO_PLAN if self.plan is None else self.plan.of_kernel(which, cols)
        constants = {
            "PRODUCT": self.product,
            "RANK": len(batch),
            "FLAGS": (
                *(*self.flags, block_e != width, block_v != v_width, self.total, index),
                *(self.folded, tile.described, *functions),
            ),
            **({} if which == 2 else {"BACKWARD": which == 1}),
            **dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_E", "BLOCK_V"), (*tile[:2], block_e, block_v), strict=True)),
        }
        masks = () if self.mask is None else (self.mask,)
        numbers = (*self.numbers, self.pitch)
        arguments = (self.sizes, batch, tuple(strides), numbers, self.dropout, flexible)
        arguments = (*arguments, *((shared,) if which == 2 else ()))
        grid = -(-(cols if which == 2 else self.pitch) // tile[which // 2]) * (math.prod(self.batch) // shared)
        launch(
            attention_keys_kernel if which == 2 else attention_kernel,
            (grid,),
            (tuple(outs), (*self.operands, *more, *of_rows), masks, *arguments),
            constants,
            outs[0].device,
            warps=tile.warps,
            stages=tile.stages,
            name=name,
        )

    def tile(self, which: int, again: Callable[[], None], *passed: DeviceArray) -> Tile:
        """The tile of one of the kernels, no larger than the problem, but no smaller than `wgmma` has it.

        Args:
            again: launches it once more, see `choices.of`.
            passed: the operands of which all rows pass each program.
        """
        rows, cols, *widths = self.sizes
        most = max(power_of_two(forced_block()), 16) if forced_block() else self.driver.pick(0, _INTERPRETED)
        work = min((rows, cols)[which // 2], 128) * (cols, rows)[which // 2] * sum(widths)
        described = max(widths) <= self.widest[bool(self.dropout)] and work >= _DESCRIBED_PRODUCTS
        described = described and all(map(_is_describable, passed))
        known, least = TILES["described " * described + self.table], self.driver.least_tile
        wide = [width for width in known if width >= max(widths)] or [max(known)]
        # a product's inner dimension is of 16 at least: keys, or queries of the kernel of keys
        least = 16 if most else least
        inner = max(least, 16)
        least_rows, least_cols = (inner, least) if which == 2 else (least, inner)
        fit = max(power_of_two(rows), least_rows), max(power_of_two(cols), least_cols)
        if self.plan is not None and self.plan.size[0]:  # steps that fit into the listed blocks
            of_rows, of_cols = (size & -size for size in self.plan.size)
            fit = min(fit[0], of_rows), min(fit[1], of_cols)

        def fitted(tile: Tile) -> Tile:
            # the words of dropout take registers: of results of wide heads 128 bytes would be spilled, of others 48
            if self.dropout and (which or max(widths) > 128):
                tile = tile._replace(cols=max(tile.cols // 2, 16))
            return tile._replace(rows=min(tile.rows, fit[0]), cols=min(tile.cols, fit[1]), described=described)

        if most:
            return fitted(Tile(most, most, 4, 1))._replace(cols=min(most, fit[1]))
        tiles = [known[width][which] for width in sorted(wide)]
        kind = ("attention", "attention_queries", "attention_keys")[which]
        facts = (self.table, self.sizes, math.prod(self.batch), self.flags, self.plan is not None, described)
        device = self.driver.properties(passed[0].device.index or 0)
        return choices.of(kind, facts, device, lambda: [*map(fitted, tiles)], lambda: fitted(tiles[0]), again)


def _is_describable(x: DeviceArray) -> bool:
    """True if a row lies side by side, and rows and what is around them begin at multiples of 16 bytes."""
    *steps, last = x.strides
    return (
        last == 1
        and steps[-1] > 0
        and not any(start % 16 for start in (x.data_ptr(), *[x.itemsize * step for step in steps]))
    )


# With fewer queries than this a head leaves rows of a tile empty, which other heads with the same keys can fill.
_FEW_QUERIES = 64


def _gathered(outs: Sequence[Any], found: dict[str, Any], diagonal: int | None) -> tuple[Sequence[Any], dict[str, Any]]:
    """Heads with few queries that share keys as one head with the queries of them all, where that needs no copy.

    Args:
        outs: the first is of queries, and so is the second where there are two.
    """
    q, k, v, mask = (found[name] for name in ("query", "key", "value", "mask"))
    batch, rows = batch_of(q.shape, k.shape, v.shape), q.shape[-2]
    alike = mask is None or (1, 1, *mask.shape)[-3:-1] == (1, 1)
    if not (diagonal is None and alike and rows < _FEW_QUERIES and is_shared(batch, k.shape, v.shape)):
        return outs, found

    def together(x: Any, *last: int) -> Any:
        return x.broadcast_to((*batch, rows, *last)).reshape((*batch[:-1], 1, batch[-1] * rows, *last))

    of_rows: dict[str, Any] = {}
    try:
        for name in ("query", "grad", "out"):
            if name in found:
                of_rows[name] = together(found[name], found[name].shape[-1])
        if "logsumexp" in found:
            of_rows["logsumexp"] = together(found["logsumexp"])
        first = together(outs[0], outs[0].shape[-1])
        rest = (together(outs[1]),) if len(outs) == 2 else tuple(outs[1:])
    except layout.NotViewable:
        return outs, found
    return (first, *rest), {**found, **of_rows}


def launch_attention(outs: Sequence[DeviceArray], found: dict[str, Any], **metadata: Any) -> None:
    """Results and logarithms in `outs`."""
    if outs[1].size:
        if "plan" not in metadata:
            outs, found = _gathered(outs, found, metadata["diagonal"])
        work = _Work(found, **metadata)
        tile = work.tile(0, lambda: launch_attention(outs, found, **metadata), *work.operands[1:])
        work.run(0, tile, outs, (), (), "attention")


def launch_backward(outs: Sequence[DeviceArray], found: dict[str, Any], **metadata: Any) -> None:
    """The gradients of queries, keys and values in `outs`."""
    if "plan" not in metadata:
        outs, found = _gathered(outs, found, metadata["diagonal"])
    work = _Work(found, **metadata)
    logsumexp, grad, (q, k, v) = contiguous(found["logsumexp"]), found["grad"], work.operands
    if not work.sizes[0] * work.sizes[1] * math.prod(work.batch):
        for out in outs:
            copy_into(out, 0)
        return
    again = partial(launch_backward, outs, found, **metadata)
    tiles = work.tile(1, again, k, v), work.tile(2, again, q, grad)
    most = max(*[tile.rows for tile in tiles], work.plan.size[0] if work.plan else 0)
    work.pitch = -(-work.sizes[0] // most) * most  # the kernel of keys reads whole blocks of sums and logarithms
    delta, logs = (buffer.empty((math.prod(work.batch), work.pitch), work.total.numpy, k.device) for _ in range(2))
    work.run(1, tiles[0], (outs[0], delta, logs), (grad, found["out"]), (logsumexp,), "attention_queries")
    shared = work.batch[-1] if is_shared(work.batch, k.shape, v.shape) else 1
    work.run(2, tiles[1], outs[1:], (grad,), (delta, logs), "attention_keys", shared)
