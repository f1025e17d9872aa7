"""Elementwise operators over every dtype: Python numbers of all sizes, operands that are broadcast, and gradients."""

from __future__ import annotations

from . import calls
from .drawing import COMPLEX, FLOATS, Draw

BINARY = ("+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^", "<<", ">>")
DISCRETE = ("&", "|", "^", "<<", ">>")
CASTS = ("float", "double", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool")


def program(draw: Draw) -> None:
    """One to three operands, then one to four calls of elementwise operators, then a gradient."""
    with_gradient = draw.chance(0.35)
    for i in range(draw.integer(1, 3)):
        first = draw.value("x0") if i else None
        shape = draw.shape() if first is None else draw.fitting(first.shape)
        dtype = draw.floating() if with_gradient and i == 0 else draw.dtype()
        suffix = ".requires_grad_()" if with_gradient and dtype in FLOATS + COMPLEX and draw.chance(0.8) else ""
        draw.say(f"x{i} = {draw.tensor(shape, dtype)}{suffix}")
    for _ in range(draw.integer(1, 4)):
        statement(draw)
    if with_gradient:
        ends = draw.names(lambda t: t.requires_grad and t.numel() and not t.is_leaf)
        if ends:
            end = ends[-1]
            real = ".abs()" if draw.value(end).is_complex() else ""
            draw.say(f"{end}{real}.sum().backward()")


def statement(draw: Draw) -> None:
    """One statement of a kind drawn by weight."""
    kind = draw.weighted(function=45, symbol=25, reflected=6, augmented=5, in_place=12, cast=5, promotion=3)
    x = draw.pick(lambda t: t.numel() <= 256)
    if kind == "function":
        called = draw.one(calls.named(calls.is_elementwise, False))
        if calls.base(called) in calls.JUMPS:
            x = draw.pick(exact=True)
        keep(draw, calls.call(draw, called, x), x, called)
    elif kind in ("symbol", "reflected"):
        symbol = draw.one(BINARY)
        suitable = draw.names(
            lambda t: not (t.is_floating_point() or t.is_complex()) or symbol not in DISCRETE, exact=True
        )
        x = draw.one(suitable) if suitable and draw.chance(0.95) else x
        if kind == "symbol":
            keep(draw, f"{x} {symbol} {wrapped(operand(draw, x, symbol))}", x, symbol)
        else:
            keep(draw, f"{wrapped(draw.number())} {symbol} {x}", x, symbol)
    elif kind == "augmented":
        symbol = draw.one(BINARY[:7] + BINARY[13:])
        x = draw.pick(exact=True)
        draw.say(f"{x} {symbol}= {operand(draw, x, symbol)}")
        draw.exact[x] = symbol not in ("**", "/")
    elif kind == "in_place":
        called = draw.one(calls.named(calls.is_elementwise, True))
        x = draw.pick(exact=True)
        draw.say(calls.call(draw, called, x))
        draw.exact[x] = calls.base(called) not in calls.INEXACT
    elif kind == "cast":
        x = draw.pick(exact=True)
        call = draw.one((f".{draw.one(CASTS)}()", f".to(torch.{draw.dtype()})", f".type(torch.{draw.dtype()})"))
        keep(draw, f"{x}{call}", x, "to")
    else:
        other = operand(draw, x, "+")
        called = "can_cast" if draw.chance(0.05) else "result_type"
        draw.say(f"{draw.fresh()} = torch.{called}({x}, {other})")


def operand(draw: Draw, x: str, symbol: str) -> str:
    """The right operand; of a discrete operator mostly whole."""
    if symbol in DISCRETE and draw.chance(0.9):
        return draw.one(
            (
                str(draw.integer(0, 7)),
                "True",
                draw.tensor(draw.fitting(draw.value(x).shape), draw.one(("int64", "int32", "bool", "uint8", "int8"))),
            )
        )
    return calls.operand(draw, draw.value(x), symbol)


def wrapped(text: str) -> str:
    """An operand in brackets, where a sign or a power would bind otherwise."""
    return f"({text})" if text[0] == "-" or " " in text or "**" in text else text


def keep(draw: Draw, expression: str, x: str, called: str) -> None:
    """Give the result a name, and remember whether its bits are the same everywhere."""
    name = draw.fresh()
    if draw.say(f"{name} = {expression}"):
        draw.exact[name] = calls.base(called) not in calls.INEXACT and draw.exact.get(x, True)
