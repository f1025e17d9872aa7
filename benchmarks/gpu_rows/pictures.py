"""Layers of pictures, channels-last in memory: convolutions, maxima of windows, batch norm."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from benchmarks.cases import Case
from benchmarks.pictures import (
    channels_last,
    exact_batch_norm,
    exact_convolution,
    exact_convolution_input,
    exact_convolution_weight,
    exact_maxima,
)

from .row import SHORT, Row, Shapes, beside_torch

_TARGETS = beside_torch(0.8, 1.0)


def _row(
    name: str,
    title: str,
    statement: str,
    inputs: Shapes,
    small: Shapes,
    exact: Any,
    dtype: str = "bfloat16",
    **options: Any,
) -> Row:
    case = Case(
        f"{name}_{SHORT[dtype]}",
        f"{title}, {SHORT[dtype]}",
        statement,
        dict(inputs),
        {},
        numpy=None,
        prepare=channels_last,
        exact=exact,
        nonfinite=False,
        dtype=dtype,
        scale=0.25,
    )
    return Row(case, small, _TARGETS, **options)


def _convolution(
    name: str,
    x: tuple[int, ...],
    rows: int,
    taps: int,
    stride: int = 1,
    depthwise: bool = False,
    dtype: str = "bfloat16",
) -> Row:
    channels, padding = x[1], taps // 2
    pictures = "x".join(map(str, x))

    def shapes(x: tuple[int, ...], rows: int) -> Shapes:
        return {"x": x, "w": (rows, 1 if depthwise else x[1], taps, taps), "b": (rows,)}

    def work(given: Mapping[str, tuple[int, ...]]) -> int:
        images, _, height, width = given["x"]
        return 2 * images * (height // stride) * (width // stride) * prod(given["w"])

    # sizes that no block divides, and channels that are no multiple of one
    few = (2, 24, 15, 13) if channels > 8 else (2, channels, 15, 13)
    return _row(
        name,
        f"conv2d {taps}x{taps}{' depthwise' if depthwise else ''} {pictures} to {rows}",
        f"F.conv2d(x, w, b, stride={stride}, padding={padding}, groups={'x.shape[1]' if depthwise else 1})",
        shapes(x, rows),
        shapes(few, few[1] if depthwise else 40),
        lambda arrays: exact_convolution(stride, padding, arrays["x"].shape[1] if depthwise else 1)(arrays),
        dtype,
        part={"x": np.s_[:1], "w": np.s_[:], "b": np.s_[:], "out": np.s_[:1]},
        work=work,
        note="cudnn.benchmark off, cudnn.allow_tf32 on" if dtype == "float32" else "cudnn.benchmark off",
        precision="high" if dtype == "float32" else None,
        rotate=depthwise or taps == 1,
    )


def _gradient(of: str, statement: str, exact: Any) -> Row:
    """A gradient of the convolution 3x3 of 64x256x28x28 to as many channels."""
    pictures, few = (64, 256, 28, 28), (2, 24, 15, 13)
    name, shape, small = ("w", (256, 256, 3, 3), (24, 24, 3, 3)) if of == "input" else ("x", pictures, few)
    return _row(
        f"conv_3x3_256_{of}",
        f"conv2d 3x3 64x256x28x28 to 256: gradient of its {of}",
        statement,
        {name: shape, "y": pictures},
        {name: small, "y": few},
        exact,
        part={"w": np.s_[:], "y": np.s_[:1], "out": np.s_[:1]} if of == "input" else {},
        work=lambda given: 2 * 9 * prod(given["y"]) * given["y"][1],
        note="cudnn.benchmark off",
    )


_STAGE = (64, 64, 112, 112)
PICTURES = (
    _convolution("conv_3x3_64", (64, 64, 56, 56), 64, 3),
    _convolution("conv_3x3_256", (64, 256, 28, 28), 256, 3),
    _convolution("conv_3x3_512", (64, 512, 14, 14), 512, 3),
    _convolution("conv_3x3_stride", (64, 128, 56, 56), 256, 3, stride=2),
    _gradient("input", "lib.nn.grad.conv2d_input(y.shape, w, y, padding=1)", exact_convolution_input),
    _gradient(
        "weight", "lib.nn.grad.conv2d_weight(x, (y.shape[1], x.shape[1], 3, 3), y, padding=1)", exact_convolution_weight
    ),
    _convolution("conv_1x1", (64, 256, 56, 56), 256, 1),
    _convolution("conv_7x7", (64, 3, 224, 224), 64, 7, stride=2),
    _convolution("conv_3x3_first", (64, 3, 224, 224), 64, 3),
    _convolution("conv_depthwise", (64, 256, 56, 56), 256, 3, depthwise=True),
    _convolution("conv_3x3_256", (64, 256, 28, 28), 256, 3, dtype="float32"),
    _row(
        "max_pool",
        "max pool 3x3, 64x64x112x112",
        "F.max_pool2d(x, 3, 2, 1)",
        {"x": _STAGE},
        {"x": (2, 24, 15, 13)},
        exact_maxima,
        rotate=True,
    ),
    _row(
        "batch_norm",
        "batch norm in training 64x64x112x112",
        "F.batch_norm(x, None, None, w, b, training=True)",
        {"x": _STAGE, "w": (64,), "b": (64,)},
        {"x": (2, 24, 15, 13), "w": (24,), "b": (24,)},
        exact_batch_norm,
        rotate=True,
    ),
)
