"""Cooperative launches, whose blocks wait for one another: how many run at once, on a card and in threads."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import KernelError
from .loading import Compiled
from .protocol import DeviceProperties

_WARPS, _BLOCKS, _REGISTERS = 64, 32, 65536  # of a multiprocessor of sm_80, sm_90 and sm_100
_SHARED, _RESERVED = {8: 164 << 10}, 1 << 10  # bytes by major capability, 228 KB of later ones; and what a block adds


def refuse_more(label: str, blocks: int, of: DeviceProperties, compiled: Compiled | None = None) -> None:
    """Refuse a cooperative launch of more blocks than run at once.

    Args:
        compiled: the kernel; without it only the limit of any kernel is known.

    Raises:
        KernelError: the grid is too large. A card refuses it as well.
    """
    each = _BLOCKS
    if compiled is not None:
        warps, shared = compiled.num_warps, _SHARED.get(of.major, 228 << 10)
        limits = [_WARPS // warps, shared // (compiled.shared + _RESERVED)]
        # a warp takes registers in units of 256: 8 of each thread
        limits += [_REGISTERS // (32 * warps * -(-compiled.registers // 8) * 8)] if compiled.registers else []
        each = min(_BLOCKS, *limits)
    if blocks > (most := each * of.multi_processor_count):
        raise KernelError(
            f"{label}: CUDA error: too many blocks in cooperative launch",
            f"{blocks} programs wait for one another, of which the device runs {most} at once: "
            f"{each} on each of its {of.multi_processor_count} multiprocessors",
            remedy="launch at most so many programs, each of which goes through several parts of the work",
        )


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage is collected in the block: a thread of a program would give back memory and wait for the simulator's
    lock, whose holder waits for the programs."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
