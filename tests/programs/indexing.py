"""Reading and writing by integers, slices, lists, masks and tensors, and the functions that take indices."""

from __future__ import annotations

from typing import Any

from . import calls
from .drawing import COMPLEX, FLOATS, Draw, words
from .numbers import keep

FUNCTIONS = words("""
    gather index_select take take_along_dim index_add index_copy index_fill scatter scatter_add masked_fill nonzero
    masked_select argwhere select narrow sort topk one_hot where tril triu roll flip repeat_interleave index_put
    embedding
    """)
CHANGES = words("index_add_ index_copy_ index_fill_ scatter_ scatter_add_ masked_fill_ index_put_")
ODD = """
'a'
1.0
2**40
-2**63
2**64
slice(None, None, -1)
slice(None, None, 0)
torch.tensor(1.5)
[[0, 0], [0, 0]]
[[0], [0]]
(0, 0)
((0,), (0,))
[slice(0, 1)]
[None, 0]
[]
()
nan
[True, False]
[1.0]
torch.tensor([], dtype=torch.int64)
torch.tensor([])
range(2)
1j
..., ...
[[True, False], [False, True]]
slice(0, 1.0)
slice(torch.tensor(0), torch.tensor(1))
""".strip().splitlines()


def program(draw: Draw) -> None:
    """One or two tensors, one to five statements, then a gradient."""
    gradient = draw.chance(0.35)
    for i in range(draw.integer(1, 2)):
        dtype = draw.floating() if gradient else draw.dtype()
        suffix = ".requires_grad_()" if gradient and dtype in FLOATS + COMPLEX and draw.chance(0.7) else ""
        dims = draw.rng.choices(range(5), (6, 28, 42, 20, 4))[0]
        draw.say(f"x{i} = {draw.tensor(draw.shape(4, dims), dtype, special=0.05)}{suffix}")
    if gradient and draw.chance(0.5):
        draw.say("x9 = x0 * 1")
    for _ in range(draw.integer(1, 5)):
        statement(draw)
    ends = draw.names(lambda t: t.requires_grad and t.is_floating_point() and not t.is_leaf)
    if ends:
        draw.say(f"({ends[-1]} * {ends[-1]}).sum().backward()")


def statement(draw: Draw) -> None:
    """One read, write or call."""
    kind = draw.weighted(read=36, write=26, function=24, in_place=10, augmented=4)
    if kind in ("write", "in_place", "augmented") and draw.chance(0.95):
        name = draw.pick(lambda t: not (t.is_leaf and t.requires_grad))
    else:
        name = draw.pick()
    value = draw.value(name)
    if kind == "read":
        keep(draw, f"{name}[{key(draw, value)}]", name, "getitem")
    elif kind == "write":
        written = key(draw, value)
        draw.say(f"{name}[{written}] = {value_for(draw, value, written, name)}")
    elif kind == "augmented":
        draw.say(f"{name}[{key(draw, value)}] {draw.one(('+', '-', '*'))}= {draw.number(0.05)}")
    elif kind == "function":
        called = draw.one([called for called in FUNCTIONS if called in calls.callables() or called in OWN])
        expression = OWN[called](draw, name) if called in OWN else calls.call(draw, called, name)
        keep(draw, expression, name, called)
    else:
        called = draw.one([called for called in CHANGES if called in calls.callables() or called in OWN])
        draw.say(OWN[called](draw, name) if called in OWN else calls.call(draw, called, name))


def _index_put(draw: Draw, name: str) -> str:
    value = draw.value(name)
    count = draw.integer(1, max(value.dim(), 1))
    shape = draw.shape(3, 1)
    indices = [places(draw, value.shape[dim] if value.dim() else 1, shape) for dim in range(count)]
    brackets = f"[{', '.join(indices)}]" if draw.chance(0.5) else f"({', '.join(indices)},)"
    dtype = str(value.dtype).rpartition(".")[2]
    source = (
        draw.tensor((), dtype, layout=False) if draw.chance(0.6) else draw.tensor((*shape, *value.shape[count:]), dtype)
    )
    accumulate = draw.one(("", ", accumulate=True", ", True"))
    return f"{name}.{draw.one(('index_put', 'index_put_'))}({brackets}, {source}{accumulate})"


def _embedding(draw: Draw, name: str) -> str:
    value = draw.value(name)
    index = places(draw, value.shape[0] if value.dim() else 1, draw.shape(3, draw.integer(0, 2)))
    padding = draw.one(("", "", ", padding_idx=0", ", padding_idx=-1", ", padding_idx=7"))
    return f"torch.nn.functional.embedding({index}, {name}{padding})"


OWN = {"index_put": _index_put, "index_put_": _index_put, "embedding": _embedding}


def places(draw: Draw, size: int, shape: tuple[int, ...], wrong: float = 0.03) -> str:
    """A tensor of positions in a dimension, sometimes out of range."""
    if 0 in shape:
        return f"torch.zeros({shape!r}, dtype=torch.int64)"
    low, high = (-size if draw.chance(0.4) else 0, max(size - 1, 0))
    if draw.chance(wrong):
        low, high = -size - 2, size + 2

    def nested(sizes: tuple[int, ...]) -> str:
        if not sizes:
            return str(draw.integer(low, high))
        return f"[{', '.join(nested(sizes[1:]) for _ in range(sizes[0]))}]"

    dtype = draw.one(("int32", "int16", "int8", "uint8")) if draw.chance(0.12) else ""
    return f"torch.tensor({nested(shape)}{f', dtype=torch.{dtype}' if dtype else ''})"


def key(draw: Draw, value: Any, basic: bool = False) -> str:
    """What stands in the brackets."""
    dims = value.dim()
    if not basic and draw.chance(0.12):
        return whole(draw, value)
    parts: list[str] = []
    position, count = 0, draw.integer(1 if dims else 0, dims)
    if draw.chance(0.03):
        count += 1
    ellipsis = draw.chance(0.2)
    advanced = not basic and draw.chance(0.55)
    shape = draw.shape(3, draw.rng.choices((0, 1, 2), (10, 70, 20))[0])
    while position < count:
        size = value.shape[position] if position < dims else 2
        if draw.chance(0.1):
            parts.append("None")
        if ellipsis and draw.chance(0.4):
            parts.append("...")
            ellipsis = False
            position = max(position, dims - (count - position))
            size = value.shape[position] if position < dims else 2
        if advanced and draw.chance(0.55):
            text, taken = one_advanced(draw, value, position, size, shape)
        else:
            text, taken = one_basic(draw, size), 1
        parts.append(text)
        position += taken
    if ellipsis:
        parts.append("...")
    if not parts:
        return draw.one(("()", "...", "None", "..., None"))
    if len(parts) == 1 and draw.chance(0.1):
        return f"{parts[0]},"
    return ", ".join(parts)


def whole(draw: Draw, value: Any) -> str:
    """One index for the whole tensor: a mask of its shape, a list, a boolean, an odd thing."""
    kind = draw.weighted(mask=50, boolean=10, list=20, odd=12, comparison=8)
    if kind == "mask":
        return draw.tensor(
            tuple(value.shape) if draw.chance(0.93) else draw.shape(), "bool" if draw.chance(0.95) else "uint8"
        )
    if kind == "comparison":
        fitting = draw.names(lambda t: t.shape == value.shape and not t.is_complex(), exact=True)
        return f"{draw.one(fitting)} > 0" if fitting else "True"
    if kind == "boolean":
        return draw.one(("True", "False", "torch.tensor(True)", "torch.tensor(False)", "[True]", "True, None"))
    size = value.shape[0] if value.dim() else 1
    if kind == "list":
        return str([draw.integer(-size, max(size - 1, 0)) for _ in range(draw.integer(0, 4))])
    return draw.one(ODD)


def one_basic(draw: Draw, size: int) -> str:
    """An integer or a slice."""
    if draw.chance(0.4):
        if size and draw.chance(0.97):
            number = draw.integer(-size, size - 1)
            return f"torch.tensor({number})" if draw.chance(0.08) else str(number)
        return str(draw.one((size, -size - 1, 2**40)))
    if draw.chance(0.25):
        return ":"
    ends = [str(draw.integer(-size - 1, size + 1)) if draw.chance(0.65) else "" for _ in range(2)]
    step = draw.one((":2", ":3", ":1", ":10")) if draw.chance(0.2) else ""
    if draw.chance(0.01):
        step = draw.one((":-1", ":0"))
    if draw.chance(0.02):
        ends[1] = draw.one(("2**40", "-2**40", "2**70", "True"))
    return f"{ends[0]}:{ends[1]}{step}"


def one_advanced(draw: Draw, value: Any, position: int, size: int, shape: tuple[int, ...]) -> tuple[str, int]:
    """A tensor, a list or a mask, and how many dimensions it takes."""
    kind = draw.weighted(tensor=60, list=18, mask=17, wide_mask=5)
    if kind == "tensor":
        return places(draw, size, shape if draw.chance(0.9) else draw.fitting(shape)), 1
    if kind == "list":
        return str([draw.integer(-size, max(size - 1, 0)) for _ in range(shape[-1] if shape else 1)]), 1
    if kind == "wide_mask" and position + 1 < value.dim():
        return draw.tensor(tuple(value.shape[position : position + 2]), "bool"), 2
    return draw.tensor((size if draw.chance(0.96) else size + 1,), "bool", layout=False), 1


def value_for(draw: Draw, value: Any, written: str, name: str) -> str:
    """What is written: a number, or a tensor of the region's shape or one that is broadcast to it."""
    dtype = str(value.dtype).rpartition(".")[2] if draw.chance(0.75) else draw.dtype()
    if draw.chance(0.4):
        return draw.number(0.06) if draw.chance(0.8) else draw.tensor((), dtype, layout=False)
    try:
        region = eval(f"{name}[{written}]", dict(draw.session.theirs))
    except Exception:
        return draw.number(0.06)
    if draw.chance(0.15):
        return draw.pick(lambda t: t.numel() <= 64)
    return draw.tensor(draw.fitting(region.shape), dtype, special=0.03)
