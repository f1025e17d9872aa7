"""Attention beside torch's own flash attention."""

from __future__ import annotations

from math import prod

import numpy as np

from benchmarks.attention import exact_attention, exact_gradients, training, windowed
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
    window: int = 0,
    shared: tuple[int, int] = (0, 0),
) -> Row:
    """A row of attention.

    Args:
        window: of the keys up to its own a query sees so many.
        shared: how many heads of keys there are, and how many keys; as many as queries unless it is given.
    """
    names = "qkvg" if backward else "qkv"
    what = ("_causal" if causal else "") + ("_backward" if backward else "")
    what += ("_window" if window else "") + ("_grouped" if shared[0] else "")
    shape = (*heads, length, width)
    shapes = dict.fromkeys(names, shape)
    small = dict.fromkeys(names, (2, 3, 150, width))
    statement = f"F.scaled_dot_product_attention(q, k, v, is_causal={causal})"
    prepare = training(causal) if backward else windowed(window) if window else None
    if shared[0]:
        shapes |= dict.fromkeys("kv", (heads[0], *shared, width))
        small = {"q": (2, 4, 1, width), **dict.fromkeys("kv", (2, 2, 150, width))}
        statement = "F.scaled_dot_product_attention(q, k, v, enable_gqa=True)"
    case = Case(
        f"attention_{width}{what}_{SHORT[dtype]}",
        f"attention{what.replace('_', ' ')} {'x'.join(map(str, shape))}, {SHORT[dtype]}",
        statement if prepare is None else "step()",
        shapes,
        {},
        numpy=None,
        prepare=prepare,
        exact=exact_gradients(causal) if backward else exact_attention(causal or bool(window), window),
        nonfinite=False,
        dtype=dtype,
    )

    def work(shapes: Shapes) -> int:
        # 2 products forward, 5 backward; before the diagonal half of the scores
        keys = shapes["k"][-2]
        products = prod(shapes["q"]) * (min(window, keys) or keys) * 2
        return products * (7 if backward else 2) // (2 if causal else 1)

    return Row(
        case,
        small,
        _TARGETS,
        part={} if backward or shared[0] else dict.fromkeys(("q", "k", "v", "out"), np.s_[:1, :1]),
        work=work,
        note="ours by three products of tf32, torch's memory-efficient kernel" if dtype == "float32" else "",
    )


ATTENTION = (
    _row((4, 16), 4096, 64),
    _row((4, 16), 4096, 64, causal=True),
    _row((4, 16), 4096, 64, causal=True, backward=True),
    _row((4, 16), 4096, 64, window=1024),
    _row((4, 16), 4096, 96, causal=True),
    _row((4, 16), 4096, 128),
    _row((4, 16), 4096, 128, "float16", causal=True),
    _row((4, 16), 4096, 128, causal=True, backward=True),
    _row((8, 32), 1, 128, shared=(8, 8192)),
    _row((4, 16), 2048, 192, causal=True),
    _row((4, 8), 2048, 256, causal=True),
    _row((4, 16), 2048, 64, "float32", causal=True),
    _row((4, 16), 2048, 64, "float32", causal=True, backward=True),
)
