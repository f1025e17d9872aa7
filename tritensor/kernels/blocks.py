"""How many elements a program of a kernel takes: the one place that answers it.

What suits a GPU is the kernel's own choice, by registers and memory traffic. In Triton's interpreter each step costs
10 us whatever the block's size, so fewer and larger blocks are faster. The device's driver knows which of the two holds
(`Driver.pick`), and `settings.block` overrules both, so that small arrays meet all of a kernel's loops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import settings

if TYPE_CHECKING:
    from ..memory.array import DeviceArray

__all__ = ["block_size", "forced_block", "forced_tile", "power_of_two"]


def block_size(array: DeviceArray, compiled: int, *, interpreted: int | None = None, count: int | None = None) -> int:
    """Elements per program on the device of an array.

    Args:
        compiled: how many where the kernel is compiled.
        interpreted: how many in the interpreter; as many, unless given.
        count: how many elements there are: the interpreter's block is not made larger than for all of them.
    """
    if settings.block.value:
        return settings.block.value
    if interpreted is None:
        interpreted = compiled
    if count is not None:
        interpreted = min(interpreted, power_of_two(count))
    return array.buffer.driver.pick(compiled, interpreted)


def forced_block() -> int:
    """The block that `settings.block` asks for; 0 where kernels choose their own."""
    return settings.block.value


def forced_tile(rows: int, cols: int) -> tuple[int, int] | None:
    """Rows and columns of the tile that `settings.block` asks for; None where kernels choose their own."""
    forced = settings.block.value
    return (min(power_of_two(rows), max(1, forced // 4)), min(power_of_two(cols), forced)) if forced else None


def power_of_two(value: int) -> int:
    """The smallest power of two that is not below `value`."""
    return 1 << max(value - 1, 0).bit_length()
