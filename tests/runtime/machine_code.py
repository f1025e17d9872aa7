"""What machine code for NVIDIA's devices says without a device: instructions, loops, programs on a multiprocessor."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from tritensor.runtime.binary import usage


class Code(NamedTuple):
    """One compiled kernel.

    Attributes:
        spilled: bytes a thread.
        resident: programs that fit on one multiprocessor of a Hopper at a time, by registers, warps and shared memory.
        instructions: in all; of straight code a thread runs each once.
        loops: the instructions of each loop.
    """

    name: str
    registers: int
    spilled: int
    resident: int
    instructions: int
    loops: list[int]


def read(made: Any) -> Code:
    """The facts of what Triton made of a kernel."""
    registers, spilled, *_ = usage(made.asm["cubin"])
    metadata = made.metadata
    warps = metadata.num_warps
    # 65,536 registers, given to warps by 256; 64 warps; 228 KB of shared memory, of which a program takes 1 KB more
    fits = (
        65536 // (warps * -(-registers * 32 // 256) * 256),
        64 // warps,
        32,
        (228 << 10) // (metadata.shared + 1024),
    )
    return Code(metadata.name, registers, spilled, min(fits), *count(made.asm["sass"]))


def count(text: str) -> tuple[int, list[int]]:
    """The number of instructions of a disassembly, and of each of its loops."""
    total, labels, loops = 0, {}, []
    for line in text.splitlines():
        if label := re.match(r"\s*(\.?L\w+):", line):
            labels[label[1]] = total
        elif instruction := re.match(r"\S*\s+(?:@!?U?P\w+ )?([A-Z][A-Z0-9_.]+)(.*);", line):
            total += instruction[1] != "NOP"
            target = re.search(r"\.?L[B_]\w+", instruction[2]) if instruction[1].startswith("BRA") else None
            if target and target[0] in labels and total - labels[target[0]] > 1:
                loops.append(total - labels[target[0]])
    return total, loops
