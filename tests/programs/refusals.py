"""Calls with one thing wrong: both libraries refuse, with the same class of exception, and nothing has changed."""

from __future__ import annotations

import re

from . import calls, creation, indexing, views
from .drawing import Draw, words

WRONG = """
None
'a'
[]
{}
1.5
torch.float32
torch
x0
2**70
-99
nan
[None]
object()
(1, 'b')
slice(0, 1)
1j
torch.zeros(3, 7)
torch.zeros(7, dtype=torch.int64)
torch.tensor([99])
True
()
...
""".strip().splitlines()
EXTRA = words("dim=0 out=x0 keepdim=True inplace=True dtype='float32' axis=0 device='cpuu' foo=1")


def program(draw: Draw) -> None:
    """One or two tensors, then two to four calls with something wrong."""
    for i in range(draw.integer(1, 2)):
        draw.say(f"x{i} = {draw.tensor(special=0.0)}")
    for _ in range(draw.integer(2, 4)):
        name = draw.pick(lambda t: t.numel() <= 128)
        kind = draw.weighted(function=60, change=15, index=12, creation=13)
        if kind == "function":
            called = draw.one(sorted(calls.callables()))
            text = calls.call(draw, called, name)
        elif kind == "change":
            text = views.change(draw, name)
        elif kind == "index":
            text = f"{name}[{indexing.key(draw, draw.value(name))}]"
        else:
            text = draw.one((creation.data, creation.ranges, creation.filled, creation.like))(draw, name)
        broken = spoiled(draw, text)
        assigns = re.match(r"\w+(\[.*\])? [-+*/]?\*?= ", text) is not None
        draw.say(broken if assigns else f"{draw.fresh()} = {broken}")


def spoiled(draw: Draw, text: str) -> str:
    """A call with one argument replaced, dropped, added or misspelt."""
    arguments = [match.span(1) for match in re.finditer(r"(?<=[(,=\[])\s*([^,()\[\]=]+)(?=[,)\]])", text)]
    kind = draw.weighted(replace=60, drop=12, add=14, misspell=6, same=4)
    if kind == "replace" and arguments:
        first, last = draw.one(arguments)
        return text[:first] + draw.one(WRONG) + text[last:]
    if kind == "drop" and arguments:
        first, last = draw.one(arguments)
        return re.sub(r"\(\s*,\s*", "(", re.sub(r",\s*(?=[,)\]])", "", text[:first] + text[last:]))
    if text.endswith(")"):
        if kind == "add":
            more = draw.one((*WRONG, *EXTRA))
            return f"{text[:-1]}{'' if text.endswith('()') else ', '}{more})"
        if kind == "misspell":
            return re.sub(r"(\w+)=", r"\1s=", text, count=1)
    return text
