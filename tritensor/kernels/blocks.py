"""The number of elements per program, for all kernels.

On a GPU each kernel chooses its block size by registers and memory traffic. In Triton's interpreter each step costs
10 us at any block size, so fewer and larger blocks are faster. The driver chooses between the two (`Driver.pick`), and
`settings.block` overrides both, so that tests with small arrays run all of a kernel's loops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import settings

if TYPE_CHECKING:
    from ..memory.array import DeviceArray


def block_size(array: DeviceArray, compiled: int, *, interpreted: int | None = None, count: int | None = None) -> int:
    """Elements per program on the device of an array.

    Args:
        compiled: the number where the kernel is compiled.
        interpreted: the number in the interpreter; the same if it is not passed.
        count: the number of elements: the interpreter's block need not be larger.
    """
    if settings.block.value:
        return settings.block.value
    if interpreted is None:
        interpreted = compiled
    if count is not None:
        interpreted = min(interpreted, power_of_two(count))
    return array.buffer.driver.pick(compiled, interpreted)


def is_processor(array: DeviceArray) -> bool:
    """True if native code is made for calls on the CPU: a program is a loop there, that its cache alone limits."""
    return bool(getattr(array.buffer.driver, "least_tile", 0) == 1)


def forced_block() -> int:
    """The block size set by `settings.block`; 0 where kernels choose their own."""
    return settings.block.value


def forced_tile(rows: int, cols: int) -> tuple[int, int] | None:
    """Rows and columns of the tile set by `settings.block`; None where kernels choose their own."""
    forced = settings.block.value
    return (min(power_of_two(rows), max(1, forced // 4)), min(power_of_two(cols), forced)) if forced else None


def power_of_two(value: int) -> int:
    """The smallest power of two that is not below `value`."""
    return 1 << max(value - 1, 0).bit_length()
