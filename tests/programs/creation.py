"""Tensors from nested lists, numbers, ranges and other tensors, and their conversions to Python."""

from __future__ import annotations

import re

from .drawing import NUMBERS, Draw, words
from .numbers import keep

LIKE = words("zeros_like ones_like full_like empty_like rand_like randn_like randint_like")
RANDOM = words("rand randn randint randperm normal")
TO_PYTHON = words("""
    item() tolist() __int__() __float__() __bool__() __index__() __len__() __complex__() data dtype element_size()
    itemsize nbytes is_floating_point() is_complex() is_signed() type() ndim __contains__(1) nelement()
    """)
TO_NUMPY = ("numpy()", "__array__()")
# The numbers of one nested list.
MIXTURES = [
    words(line)
    for line in """
    True False
    1 2 -3 0
    1 2.5 -0.5 nan inf
    True 2
    1j 2.0 3
    2**31 1
    2**63 1
    2**64
    2**63-1 -2**63
    1e300 1
    300 -1
    1 2 3 -1 0 2.5 -0.5 0.0 True
    None
    'a'
    torch.tensor(2) torch.tensor(3)
    torch.tensor(2.5) 1
    1.5 True
    0.1 1e-30 16777217.0
    """.strip().splitlines()
]
BOUNDS = """
5, 0
0, 5, -1
0, 5, 0
nan
0, inf
2.5
'a'
end=4
start=1, end=4
1, 6, step=2
2**40, 2**40 + 3
0, 1, 0.1
0.5, 3
-1, 1, 0.25
""".strip().splitlines()


def program(draw: Draw) -> None:
    """Two to five tensors made and read."""
    if draw.chance(0.08):
        draw.say(f"torch.set_default_dtype(torch.{draw.dtype() if draw.chance(0.1) else draw.floating()})")
    for _ in range(draw.integer(2, 5)):
        kind = draw.weighted(data=34, range=16, filled=14, like=12, new=6, random=5, python=22)
        x = draw.pick()
        if kind == "python":
            draw.say(f"{draw.fresh('f')} = {x}.{draw.one(TO_PYTHON + (TO_NUMPY if draw.on_cpu else ()))}")
        else:
            text = {"data": data, "range": ranges, "filled": filled, "like": like, "new": new, "random": random}[kind](
                draw, x
            )
            keep(draw, text, x, "log" if "space" in text else "tensor")


def options(draw: Draw, grad: bool = True) -> str:
    """A dtype and requires_grad, or neither."""
    chosen = f", dtype=torch.{draw.dtype()}" if draw.chance(0.4) else ""
    return chosen + (", requires_grad=True" if grad and draw.chance(0.08) else "")


def nest(draw: Draw, numbers: tuple[str, ...], shape: tuple[int, ...]) -> str:
    """A nested list or tuple; a few are ragged."""
    if not shape:
        return draw.one(numbers)
    parts = [nest(draw, numbers, shape[1:]) for _ in range(shape[0])]
    if draw.chance(0.01):
        parts.append(nest(draw, numbers, shape[2:]))
    return f"[{', '.join(parts)}]" if draw.chance(0.85) or not parts else f"({', '.join(parts)},)"


def data(draw: Draw, x: str) -> str:
    """`torch.tensor` and its relatives."""
    numbers = draw.one(MIXTURES)
    kind = draw.weighted(tensor=70, as_tensor=12, asarray=8, constructor=5, other=10, scalar=5)
    value = nest(draw, numbers, draw.shape(3, draw.rng.choices((0, 1, 2, 3), (25, 45, 22, 8))[0]))
    if kind in ("tensor", "as_tensor", "asarray"):
        return f"torch.{kind}({value}{options(draw, kind == 'tensor')})"
    if kind == "constructor":
        return draw.one((f"torch.Tensor([{value}])", "torch.Tensor([1, 2])", "torch.Tensor(0, 3)", "torch.Tensor()"))
    if kind == "scalar":
        return f"torch.scalar_tensor({draw.number()}{options(draw, False)})"
    if draw.on_cpu and draw.chance(0.2):
        return draw.one((f"torch.from_numpy({x}.detach().numpy())", f"torch.from_dlpack({x}.detach())"))
    return draw.one(
        (
            f"torch.tensor({x}{options(draw)})",
            f"torch.as_tensor({x}{options(draw, False)})",
            f"torch.tensor(range({draw.integer(0, 4)}))",
            f"torch.asarray({x})",
            f"torch.tensor([{x}, {x}])",
            f"torch.tensor({x}.tolist(){options(draw)})",
        )
    )


def number(draw: Draw) -> str:
    """A bound of a range."""
    return (
        draw.one(("0", "1", "5", "-3", "2.5", "10", "0.5", "-1.5", "7", "True", "3"))
        if draw.chance(0.93)
        else draw.number(1)
    )


def ranges(draw: Draw, x: str) -> str:
    """`arange`, `linspace`, `logspace`, `eye`, of which the number of elements is small."""
    kind = draw.weighted(arange=55, linspace=20, logspace=10, eye=15)
    if kind == "arange":
        step = draw.one(("1", "2", "0.5", "3", "0.3", "1.5"))
        first, last = draw.integer(-5, 3), draw.integer(0, 9)
        bounds = draw.one((str(last), f"{first}, {last}", f"{first}, {last}, {step}", f"{last}, {first}, -{step}"))
        if draw.chance(0.3):
            bounds = draw.one(BOUNDS)
        return f"torch.arange({bounds}{options(draw)})"
    if kind == "eye":
        columns = draw.one(("", f", {draw.integer(0, 4)}"))
        return f"torch.eye({draw.integer(0, 4) if draw.chance(0.95) else -1}{columns}{options(draw)})"
    base = f", {draw.one(('2', '10.0', 'base=2'))}" if kind == "logspace" and draw.chance(0.5) else ""
    steps = str(draw.integer(0, 7)) if draw.chance(0.95) else draw.one(("-1", "2.0", "None", "torch.tensor(3)"))
    ends = f"{number(draw)}, {number(draw)}" if kind == "linspace" else f"{draw.integer(-2, 2)}, {draw.integer(-2, 3)}"
    return f"torch.{kind}({ends}, {steps}{base}{options(draw)})"


def size(draw: Draw) -> str:
    """Sizes as a tuple, a list or one by one."""
    shape = list(draw.shape(3))
    if draw.chance(0.03):
        shape.append(draw.one((-1, 2.0, None)))  # type: ignore[arg-type]
    inner = ", ".join(map(str, shape))
    return draw.one((f"({inner}{',' if len(shape) == 1 else ''})", f"[{inner}]", inner or "()"))


def sequence(draw: Draw) -> str:
    """Sizes as a tuple or a list."""
    shape = draw.shape(3)
    return draw.one((repr(shape), repr(list(shape))))


def filled(draw: Draw, x: str) -> str:
    """`zeros`, `ones`, `full`, and `empty` that is filled."""
    kind = draw.weighted(zeros=30, ones=30, full=30, empty=10)
    if kind == "full":
        return f"torch.full({sequence(draw)}, {draw.number()}{options(draw)})"
    if kind == "empty":
        return f"torch.empty({size(draw)}{options(draw, False)}).fill_({draw.number(0.02)})"
    return f"torch.{kind}({size(draw)}{options(draw)})"


def like(draw: Draw, x: str) -> str:
    """Tensors like another."""
    called = draw.one(LIKE)
    if called == "full_like":
        return f"torch.full_like({x}, {draw.number()}{options(draw)})"
    if called in ("zeros_like", "ones_like"):
        return f"torch.{called}({x}{options(draw)})"
    if called == "empty_like":
        return f"torch.empty_like({x}{options(draw, False)}).zero_()"
    bounds = f", {draw.integer(0, 3)}, {draw.integer(4, 9)}" if called == "randint_like" else ""
    if called.startswith("rand") and draw.value(x).is_complex():
        return f"torch.zeros_like({x})"
    return _real(draw, f"torch.{called}({x}{bounds}{options(draw, False)}) * 0")


def new(draw: Draw, x: str) -> str:
    """Tensors of another's dtype."""
    called = draw.one(("new_zeros", "new_ones", "new_full", "new_empty", "new_tensor"))
    if called == "new_full":
        return f"{x}.new_full({sequence(draw)}, {draw.number()}{options(draw, False)})"
    if called == "new_tensor":
        return f"{x}.new_tensor({nest(draw, NUMBERS, draw.shape(3, 1))}{options(draw, False)})"
    return f"{x}.{called}({size(draw)}{options(draw, False)}){'.zero_()' if called == 'new_empty' else ''}"


def random(draw: Draw, x: str) -> str:
    """Random tensors, of which only the form is compared: all elements times zero."""
    return _real(draw, _random(draw))


def _real(draw: Draw, text: str) -> str:
    """A call mostly without a complex dtype, for which there are no random numbers here."""
    return text if draw.chance(0.02) else re.sub(r"complex(64|128)", "float64", text)


def _random(draw: Draw) -> str:
    called = draw.one(RANDOM)
    if called == "randint":
        bounds = draw.one(("5", "0, 5", "-3, 4", "3, 3", "5, 2", "2**40"))
        return f"torch.randint({bounds}, {sequence(draw)}{options(draw, False)}) * 0"
    if called == "randperm":
        return f"torch.randperm({draw.integer(-1, 6)}{options(draw, False)}) * 0"
    if called == "normal":
        return f"torch.normal({draw.one(('0.0, 1.0', '0, 1', '1.0, 0.0', '0.0, -1.0'))}, {sequence(draw)}) * 0"
    return f"torch.{called}({size(draw)}{options(draw)}).detach() * 0"
