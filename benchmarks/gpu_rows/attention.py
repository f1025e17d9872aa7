"""Attention beside torch's own flash attention."""

from __future__ import annotations

from math import prod

import numpy as np

from benchmarks.attention import exact_attention, exact_gradients, training
from benchmarks.cases import Case

from .row import SHORT, Row, Shapes, beside_torch

_TARGETS = beside_torch(0.75, 1.0)


def _row(
    heads: tuple[int, int],
    length: int,
    width: int,
    dtype: str = "bfloat16",
    causal: bool = False,
    backward: bool = False,
) -> Row:
    names = "qkvg" if backward else "qkv"
    what = ("_causal" if causal else "") + ("_backward" if backward else "")
    shape = (*heads, length, width)
    case = Case(
        f"attention_{width}{what}_{SHORT[dtype]}",
        f"attention{what.replace('_', ' ')} {'x'.join(map(str, shape))}, {SHORT[dtype]}",
        "step()" if backward else f"F.scaled_dot_product_attention(q, k, v, is_causal={causal})",
        dict.fromkeys(names, shape),
        {},
        numpy=None,
        prepare=training(causal) if backward else None,
        exact=exact_gradients(causal) if backward else exact_attention(causal),
        nonfinite=False,
        dtype=dtype,
    )

    def work(shapes: Shapes) -> int:
        # 2 products forward, 5 backward; before the diagonal half of the scores
        products = prod(shapes["q"]) * shapes["k"][-2] * 2
        return products * (7 if backward else 2) // (2 if causal else 1)

    return Row(
        case,
        dict.fromkeys(names, (2, 3, 150, width)),
        _TARGETS,
        part={} if backward else dict.fromkeys(("q", "k", "v", "out"), np.s_[:1, :1]),
        work=work,
        note="ours by three products of tf32, torch's memory-efficient kernel" if dtype == "float32" else "",
    )


ATTENTION = (
    _row((4, 16), 4096, 64),
    _row((4, 16), 4096, 64, causal=True),
    _row((4, 16), 4096, 64, causal=True, backward=True),
    _row((4, 16), 4096, 128),
    _row((4, 16), 4096, 128, "float16", causal=True),
    _row((4, 16), 4096, 128, causal=True, backward=True),
    _row((4, 8), 2048, 256, causal=True),
    _row((4, 16), 2048, 64, "float32", causal=True),
)
