"""Launches the kernels of attention: chooses tiles, and passes operands by their strides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...memory import buffer
from ...memory.array import DeviceArray
from ...operators import copy_into
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


class Tile(NamedTuple):
    """The numbers of a program: queries and keys at a time, warps and stages."""

    rows: int
    cols: int
    warps: int
    stages: int


# By what is multiplied, by the larger width of keys and values, for the three kernels: results, the gradients of
# queries and of keys. Those of halves are the fastest of 6 to 11 on an H200 with Triton 3.6 that spill little, 0.75 to
# 0.97 of the time of those chosen by counts: several blocks a multiprocessor hide each other's waits. What the compiler
# makes of them is in docs/performance.md; of halves and tf32 only results of halves of 256 spill registers.
TILES: dict[str, dict[int, tuple[Tile, Tile, Tile]]] = {
    "half": {
        64: (Tile(128, 64, 8, 3), Tile(64, 64, 4, 3), Tile(64, 64, 4, 2)),
        128: (Tile(64, 64, 4, 3), Tile(64, 64, 4, 2), Tile(32, 64, 4, 3)),
        256: (Tile(128, 64, 8, 2), Tile(128, 32, 8, 2), Tile(32, 32, 8, 2)),
    },
    "tf32": {
        64: (Tile(64, 64, 4, 2), Tile(64, 32, 4, 2), Tile(32, 64, 8, 2)),
        128: (Tile(128, 32, 8, 2), Tile(64, 32, 8, 2), Tile(32, 32, 8, 2)),
        256: (Tile(32, 32, 8, 1), Tile(16, 16, 8, 1), Tile(32, 32, 8, 1)),
    },
    "tf32x3": {
        64: (Tile(64, 64, 4, 2), Tile(64, 32, 4, 2), Tile(16, 64, 4, 2)),
        128: (Tile(32, 16, 4, 2), Tile(16, 32, 4, 2), Tile(32, 16, 8, 2)),
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


class _Work:
    """The common part of the kernels' arguments: operands that share a batch, sizes, tiles and arithmetic."""

    def __init__(self, found: dict[str, Any], scale: float, diagonal: int | None, **drawn: Any) -> None:
        q, k, v, self.mask = (found[name] for name in ("query", "key", "value", "mask"))
        self.operands, self.batch = (q, k, v), batch_of(q.shape, k.shape, v.shape)
        self.sizes = (*q.shape[-2:-1], k.shape[-2], k.shape[-1], v.shape[-1])
        self.driver, kind = q.buffer.driver, dtypes.of(q.dtype)
        self.table, self.total, self.product = arithmetic(
            kind, product_for(self.driver.capability(q.device.index or 0))
        )
        if kind is dtypes.float64 and self.mask is not None and self.mask.dtype == bool:
            # Triton 3.6 takes the width of a product's operands from the narrowest load before them, here the mask's,
            # and compiles no float64 product of that width.
            wide = buffer.empty(self.mask.shape, dtypes.int64.numpy, self.mask.device)
            copy_into(wide, self.mask)
            self.mask = wide
        number = Float64 if kind is dtypes.float64 else float
        self.numbers = (number(scale), number(scale / math.log(2)), diagonal or 0)
        self.dropout: tuple[Any, ...] = ()
        if drawn["p"]:
            *key, factor = dropout_numbers(**drawn, on_device=True)
            self.dropout = (*key, number(factor))
        self.flags = (
            diagonal is not None,
            self.mask is not None or self.numbers[2] < 0,
            bool(self.dropout) + (drawn["seed"].__class__ is DeviceArray),
        )

    def run(
        self, which: int, outs: Sequence[Any], more: Sequence[Any], of_rows: Sequence[Any], name: str, shared: int = 1
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
        tile = self.tile(which)
        block_e, block_v = (max(power_of_two(each), 16) for each in (width, v_width))
        reach = max(abs(step) for steps in strides for step in steps[-2:]) * max(block_e, block_v, *tile[:2])
        index = dtypes.int64 if reach >= 1 << 31 else dtypes.int32
        constants = {
            "PRODUCT": self.product,
            "RANK": len(batch),
            "FLAGS": (*self.flags, block_e != width, block_v != v_width, self.total, index),
            **({} if which == 2 else {"BACKWARD": which == 1}),
            **dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_E", "BLOCK_V"), (*tile[:2], block_e, block_v), strict=True)),
        }
        masks = () if self.mask is None else (self.mask,)
        arguments = (self.sizes, batch, tuple(strides), self.numbers, self.dropout, *((shared,) if which == 2 else ()))
        grid = -(-self.sizes[which // 2] // tile[which // 2]) * (math.prod(self.batch) // shared)
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

    def tile(self, which: int) -> Tile:
        """The tile of one of the kernels, no larger than the problem, but no smaller than `wgmma` has it."""
        rows, cols, *widths = self.sizes
        known, least = TILES[self.table], self.driver.least_tile
        tile = known[min((width for width in known if width >= max(widths)), default=max(known))][which]
        if self.dropout and which:  # the words take registers: up to 48 bytes a thread would be spilled
            tile = tile._replace(cols=max(tile.cols // 2, 16))
        most = max(power_of_two(forced_block()), 16) if forced_block() else self.driver.pick(0, _INTERPRETED)
        if most:
            tile, least = Tile(most, most, 4, 1), 16
        # a product's inner dimension is of 16 at least: keys, or queries of the kernel of keys
        inner = max(least, 16)
        least_rows, least_cols = (inner, least) if which == 2 else (least, inner)
        fit = max(power_of_two(rows), least_rows), max(power_of_two(cols), least_cols)
        return tile._replace(rows=min(tile.rows, fit[0]), cols=min(tile.cols, fit[1]))


def launch_attention(outs: Sequence[DeviceArray], found: dict[str, Any], **metadata: Any) -> None:
    """Results and logarithms in `outs`."""
    if outs[1].size:
        _Work(found, **metadata).run(0, outs, (), (), "attention")


def launch_backward(outs: Sequence[DeviceArray], found: dict[str, Any], **metadata: Any) -> None:
    """The gradients of queries, keys and values in `outs`."""
    work = _Work(found, **metadata)
    logsumexp, grad, (_, k, v) = contiguous(found["logsumexp"]), found["grad"], work.operands
    if not work.sizes[0] * work.sizes[1] * math.prod(work.batch):
        for out in outs:
            copy_into(out, 0)
        return
    delta = buffer.empty(logsumexp.shape, work.total.numpy, k.device)
    work.run(1, (outs[0], delta), (grad, found["out"]), (logsumexp,), "attention_queries")
    shared = work.batch[-1] if is_shared(work.batch, k.shape, v.shape) else 1
    work.run(2, outs[1:], (grad,), (logsumexp, delta), "attention_keys", shared)
