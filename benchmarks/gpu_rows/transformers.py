"""A layer of a transformer in training."""

from __future__ import annotations

from benchmarks.cases import Case
from benchmarks.transformers import encoder_layer, encoder_work, exact_encoder_layer

from .row import SHORT, Row, beside_torch


def _encoder(dtype: str) -> Row:
    shape, small = (32, 128, 512), (2, 40, 128)
    case = Case(
        f"encoder_layer_{SHORT[dtype]}",
        f"transformer encoder layer 512x8x2048 over 32x128, forward and backward, {SHORT[dtype]}",
        "step()",
        dict.fromkeys("xg", shape),
        {},
        numpy=None,
        prepare=encoder_layer,
        check="out()",
        exact=exact_encoder_layer,
        nonfinite=False,
        dtype=dtype,
    )
    return Row(case, dict.fromkeys("xg", small), beside_torch(0.75, 1.0), work=encoder_work)


TRANSFORMERS = (_encoder("bfloat16"), _encoder("float32"))
