"""Reductions, joins, rearrangements, sorting and products, over dims, shapes and dtypes."""

from __future__ import annotations

from . import calls
from .drawing import COMPLEX, FLOATS, MODERATE, Draw
from .numbers import keep


def program(draw: Draw) -> None:
    """One or two operands, one to four calls, then a gradient."""
    with_gradient = draw.chance(0.4)
    draw.special = MODERATE
    for i in range(draw.integer(1, 2)):
        dtype = draw.floating() if with_gradient else draw.dtype()
        shape = draw.shape() if i == 0 or draw.chance(0.4) else tuple(draw.value("x0").shape)
        suffix = ".requires_grad_()" if with_gradient and dtype in FLOATS + COMPLEX and draw.chance(0.8) else ""
        draw.say(f"x{i} = {draw.tensor(shape, dtype)}{suffix}")
    for _ in range(draw.integer(1, 4)):
        called = draw.one(calls.named(calls.is_of_shapes, draw.chance(0.08)))
        jumps = calls.base(called) in calls.JUMPS
        x = draw.pick(lambda t: t.numel() <= 256, exact=jumps or called.endswith("_"))
        if called.endswith("_"):
            draw.say(calls.call(draw, called, x))
            draw.exact[x] = draw.exact.get(x, True) and calls.base(called) not in calls.INEXACT
        else:
            keep(draw, calls.call(draw, called, x), x, called)
    if with_gradient:
        ends = draw.names(lambda t: t.requires_grad and t.numel() and not t.is_leaf)
        if ends:
            real = ".abs()" if draw.value(ends[-1]).is_complex() else ""
            draw.say(
                f"({ends[-1]}{real} * {ends[-1]}{real}.detach()).sum().backward()"
                if draw.chance(0.5)
                else f"{ends[-1]}{real}.sum().backward()"
            )
