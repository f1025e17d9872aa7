"""Instructions of PTX by their names: classes, operations, and how many of the card's own they become."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache

CLASSES = (
    *("integer", "float16", "float32", "float64", "special", "conversion", "move"),
    *("global", "shared", "local", "matrix", "shuffle", "control", "barrier"),
)
# The first pattern that is found in a name gives the class; what fits none is integer.
_PATTERNS = [
    (re.compile(pattern), name)
    for pattern, name in (
        (r"^mma\.|^wgmma\.mma_async", "matrix"),
        (r"^(bar|barrier|mbarrier|membar|fence|wgmma|elect|griddepcontrol)\b|^cp\..*(wait|commit|arrive)", "barrier"),
        (r"^(bra|ret|exit|call|trap|nanosleep)\b", "control"),
        (r"^(ld|st)\.local", "local"),
        (r"^ld\.param|^(mov|cvta|mapa)\b", "move"),
        (r"^(ldmatrix|stmatrix)|^(ld|st|atom|red)\.(\w+\.)*shared", "shared"),
        (r"^(ld|st|atom|red|cp|prefetch|discard|tensormap)\b", "global"),
        (r"^(shfl|redux|vote|match|activemask)", "shuffle"),
        (r"\.approx|^(sqrt|rcp|div)\S*\.f|^tanh", "special"),
        (r"^cvt", "conversion"),
        (r"\.f64", "float64"),
        (r"\.b?f16(x2)?\b", "float16"),
        (r"\.f32", "float32"),
    )
]
_SHAPE = re.compile(r"\.m(\d+)n(\d+)k(\d+)\.")
_COMPUTES = re.compile(
    r"^(add|sub|mul|fma|mad|neg|abs|min|max|div|sqrt|rsqrt|rcp|ex2|lg2|sin|cos|tanh)\b.*\.b?f\d+(x2)?"
)
_UNITS = {"bf16": "bf16", "f16": "fp16", "tf32": "tf32", "f64": "fp64", "e4m3": "e4m3", "e5m2": "e4m3", "s8": "s8"}
# Where one instruction of PTX becomes several or none of the card's: moves are renamed registers, and what has two
# words is two instructions. The figures are estimates: of 19 kernels for sm_90 the code that ptxas made is 0.96 to 1.33
# times these sums in 11, up to 1.6 in two, 1.8 to 2.6 in five (short ones, slow paths), 0.54 in a 64-bit division.
_SLOTS = [
    (re.compile(pattern), count)
    for pattern, count in (
        (r"^(mov|cvta|ld\.param)\b", 0),
        (r"^div\.full", 7),
        (r"^div\.rn\.f32", 10),
        (r"^sqrt\.rn", 8),
        (r"^(div|rem)\S*\.[us]32", 16),
        (r"^(div|rem)\S*\.[us]64", 70),
        (r"^mul\.lo\.[su]64|^mad\.lo\.[su]64", 4),
        (r"^(add|sub|and|or|xor|shl|shr|setp|selp|min|max)\b\S*[bsu]64", 2),
    )
]


@cache
def class_of(name: str) -> str:
    """The class of an instruction by its full name.

    >>> class_of("ld.global.v4.b32"), class_of("ex2.approx.ftz.f32"), class_of("fma.rn.f32"), class_of("add.s32")
    ('global', 'special', 'float32', 'integer')
    """
    return next((found for pattern, found in _PATTERNS if pattern.search(name)), "integer")


@cache
def slots(name: str) -> int:
    """About how many instructions of the card an instruction of PTX becomes."""
    return next((count for pattern, count in _SLOTS if pattern.search(name)), 1)


def by_class(executed: Mapping[str, float]) -> dict[str, float]:
    """Counts by name summed by class, of the classes that occur."""
    found = dict.fromkeys(CLASSES, 0.0)
    for name, count in executed.items():
        found[class_of(name)] += count
    return {name: count for name, count in found.items() if count}


@cache
def matrix_work(name: str) -> tuple[str, int]:
    """The units and the operations a warp of a product by tensor cores; those of wgmma are its four warps' together.

    >>> matrix_work("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
    ('bf16', 4096)
    >>> matrix_work("wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32")
    ('tf32', 65536)
    """
    shape = _SHAPE.search(name)
    if shape is None:
        return "", 0
    rows, columns, depth = map(int, shape.groups())
    # of D = A B + C the types are D's, A's, B's and perhaps C's
    types = [part for part in name[shape.end() :].split(".") if part in _UNITS or part in ("f32", "s32", "u8", "e5m2")]
    return _UNITS.get(types[1], "s8"), 2 * rows * columns * depth // (4 if name.startswith("wgmma") else 1)


def operations(warps: Mapping[str, float], lanes: Mapping[str, float]) -> dict[str, float]:
    """Floating-point operations: those of the "cores", and of the tensor cores by the units of their operands."""
    found: dict[str, float] = defaultdict(float)
    for name, count in warps.items():
        units, work = matrix_work(name)
        if work:
            found[units] += work * count
        elif plain := _COMPUTES.match(name):
            found["cores"] += lanes[name] * (2 if plain[1] in ("fma", "mad") else 1) * (2 if plain[2] else 1)
    return dict(found)
