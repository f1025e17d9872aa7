"""Named cards, by their published figures, and what a multiprocessor of their generation does in a clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...errors import ArgumentError


@dataclass(frozen=True)
class Generation:
    """The limits and rates of a multiprocessor.

    Attributes:
        shared: bytes of shared memory, of which each block takes `reserved` for the system.
        cache: bytes that shared memory and the first-level cache have together.
        lanes: results a clock, by class of instruction.
        latency: clocks from a load to its value out of device memory.
    """

    warps: int
    blocks: int
    shared: int
    reserved: int
    cache: int
    lanes: Mapping[str, int]
    latency: int
    registers: int = 65536  # in four parts, handed out to warps by 256
    issue: int = 4  # warp instructions a clock


@dataclass(frozen=True)
class Card:
    """A card by its data sheet: `dram` and `l2` in bytes a second, `tensor` in operations a second without sparsity.

    `nvlink` and `pcie` are bytes a second in one direction.
    """

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    clock: float
    memory: int
    l2_size: int
    dram: float
    l2: float
    tensor: Mapping[str, float]
    nvlink: float
    pcie: float

    @property
    def compiled_for(self) -> tuple[int, int]:
        """The capability that kernels are compiled for to count their work: no later one than 9.0 can be run here."""
        return min(self.capability, (9, 0))

    @property
    def generation(self) -> Generation:
        """The kind of its multiprocessors."""
        return _GENERATIONS[self.capability]


# Limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". Lanes: the same guide,
# "Arithmetic Instructions: throughput of native arithmetic instructions". Latency: Luo et al., "Benchmarking and
# Dissecting the Nvidia Hopper GPU Architecture", arXiv:2402.13499: 466 clocks on an A100, 479 on an H100.
_LANES = {"integer": 64, "special": 16, "shuffle": 32, "float16": 256}
_GENERATIONS = {
    (8, 0): Generation(
        *(64, 32, 164 << 10, 1 << 10, 192 << 10), {**_LANES, "float32": 64, "float64": 32, "conversion": 16}, 466
    ),
    (9, 0): Generation(
        *(64, 32, 228 << 10, 1 << 10, 256 << 10), {**_LANES, "float32": 128, "float64": 64, "conversion": 64}, 479
    ),
}
# Of Blackwell what its multiprocessors have in common with Hopper's; its tensor cores are in the card's own figures.
_GENERATIONS[10, 0] = _GENERATIONS[9, 0]
# NVIDIA A100 Tensor Core GPU data sheet, 80GB SXM: 2,039 GB/s, 312 TFLOPS in bf16 and fp16, 156 in tf32, 19.5 in fp64.
# NVIDIA A100 Tensor Core GPU Architecture (whitepaper): 108 multiprocessors, 1,410 MHz, 40 MB of level-2 cache that is
# read at 5,120 bytes a clock.
_A100 = {"bf16": 312e12, "fp16": 312e12, "tf32": 156e12, "fp64": 19.5e12, "s8": 624e12}
# NVIDIA H100 Tensor Core GPU Architecture (whitepaper), SXM5: 132 multiprocessors, 50 MB of level-2 cache, 989.4 TFLOPS
# in bf16 and fp16, 494.7 in tf32, 66.9 in fp64, 1,978.9 in fp8 and int8: 4,096 a multiprocessor and clock in bf16, at
# 1,830 MHz. Data sheet: 3.35 TB/s. NVIDIA publishes no rate of its level-2 cache; PMC10448217 (Table 3) has 8,986 GB/s.
_H100 = {"bf16": 989.4e12, "fp16": 989.4e12, "tf32": 494.7e12, "fp64": 66.9e12, "e4m3": 1978.9e12, "s8": 1978.9e12}
# NVIDIA DGX B200 data sheet, of 8: 72 PFLOPS in fp8 and 36 in bf16, both with sparsity and half without, 1,440 GB at 64
# TB/s, 14.4 TB/s of NVLink. By its device properties 148 multiprocessors and 126 MB of level-2 cache: 8,192 a
# multiprocessor and clock in bf16, at 1,856 MHz. The cache's rate is not published, and taken as an H100's by both.
_B200 = {"bf16": 2.25e15, "fp16": 2.25e15, "tf32": 1.12e15, "fp64": 40e12, "e4m3": 4.5e15, "s8": 4.5e15}

CARDS = {
    entry.name: entry
    for entry in (
        Card("a100", (8, 0), 108, 1.41e9, 80 << 30, 40 << 20, 2.039e12, 5120 * 1.41e9, _A100, 300e9, 32e9),
        Card("h100", (9, 0), 132, 1.83e9, 80 << 30, 50 << 20, 3.35e12, 8.986e12, _H100, 450e9, 64e9),
        # NVIDIA H200 Tensor Core GPU data sheet, SXM: 141 GB at 4.8 TB/s, and the operations of an H100.
        Card("h200", (9, 0), 132, 1.83e9, 141 * 10**9, 50 << 20, 4.8e12, 8.986e12, _H100, 450e9, 64e9),
        Card("b200", (10, 0), 148, 1.856e9, 180 * 10**9, 126 << 20, 8e12, 10.2e12, _B200, 900e9, 64e9),
    )
}


def card(name: str) -> Card:
    """The card, by data sheet, of a name such as "h100".

    >>> card("h100").multiprocessors
    132

    Raises:
        ArgumentError: there is none of that name.
    """
    found = CARDS.get(name.lower())
    if found is None:
        raise ArgumentError(f"profile: no card is called {name!r}", remedy=f"name one of {', '.join(CARDS)}")
    return found
