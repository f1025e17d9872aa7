"""Views of views with in-place changes, and gradients through them: a change through one name shows in the others."""

from __future__ import annotations

from typing import Any

from . import calls
from .arguments import ARGUMENTS
from .drawing import Draw, words
from .indexing import key, value_for

VIEWS = words("""
    transpose permute narrow select unsqueeze squeeze flatten unflatten movedim swapaxes moveaxis swapdims t reshape
    unbind split chunk broadcast_to view_as reshape_as expand_as detach contiguous diagonal broadcast_tensors real
    positive
    """)
PROPERTIES = ("T", "mT", "data")
EXACT_CHANGES = words("""
    add_ sub_ mul_ neg_ clamp_ clamp_min_ fill_ zero_ copy_ masked_fill_ abs_ relu_ square_ floor_ round_ sign_
    index_fill_ index_add_ index_copy_ scatter_ maximum_ eq_ addcmul_ t_ transpose_ squeeze_ unsqueeze_ swapaxes_ tril_
    triu_ fill_diagonal_
    """)
RESULTS = words("""
    add mul sub neg square abs relu sum mean exp clone sigmoid amax cumsum cat stack where tanh masked_fill clamp matmul
    sqrt prod softmax
    """)
FACTS = words("""
    stride() storage_offset() is_contiguous() is_leaf requires_grad shape numel() tolist() grad size() dim()
    retains_grad _version _is_view() is_inference() output_nr
    """)


def program(draw: Draw) -> None:
    """One or two bases, three to nine statements, then the gradients of all that is left."""
    gradient = draw.chance(0.65)
    for i in range(draw.integer(1, 2)):
        dtype = ("float32" if draw.chance(0.8) else draw.floating()) if gradient else draw.dtype()
        kind = draw.weighted(leaf=35, clone=45, plain=20) if gradient else "plain"
        text = draw.tensor(draw.shape(3, draw.rng.choices(range(4), (6, 25, 50, 19))[0]), dtype, special=0.03)
        if kind == "leaf":
            draw.say(f"x{i} = {text}.requires_grad_()")
        elif kind == "clone":
            draw.say(f"x{i} = {text}.requires_grad_()")
            draw.say(f"{draw.fresh('y')} = x{i} * {draw.one(('1', '2', '-0.5'))}")
        else:
            draw.say(f"x{i} = {text}")
    for _ in range(draw.integer(3, 9)):
        statement(draw)
    if gradient:
        finish(draw)


def statement(draw: Draw) -> None:
    """A view, a change, a result, or something of autograd."""
    kind = draw.weighted(view=34, change=28, result=14, no_grad=6, autograd=8, fact=5, backward=5)
    if kind == "view":
        name = draw.pick()
        draw.say(f"{draw.fresh('v')} = {view(draw, name)}")
    elif kind == "change":
        name = draw.pick(lambda t: not (t.is_leaf and t.requires_grad)) if draw.chance(0.94) else draw.pick()
        draw.say(change(draw, name))
    elif kind == "no_grad":
        mode = draw.one(
            ("torch.no_grad()", "torch.no_grad()", "torch.no_grad()", "torch.inference_mode()", "torch.enable_grad()")
        )
        name = draw.pick()
        if draw.chance(0.7):
            draw.say(f"with {mode}: {change(draw, name)}")
        else:
            draw.say(f"with {mode}: {draw.fresh('v')} = {view(draw, name)}")
    elif kind == "result":
        name = draw.pick()
        result(draw, name)
    elif kind == "autograd":
        autograd(draw, draw.pick())
    elif kind == "backward":
        ends = draw.names(lambda t: t.requires_grad and t.is_floating_point())
        if ends:
            keep = ", retain_graph=True" if draw.chance(0.4) else ""
            end = draw.one(ends)
            weight = draw.one(("", f" * {draw.one(draw.names())}", " * 2", " ** 2"))
            draw.say(f"({end}{weight}).sum().backward({keep[2:]})")
    else:
        name = draw.pick()
        fact = draw.one(FACTS)
        # where there is no element, there is no step, and the order of a result is not looked at
        suits = fact not in ("stride()", "is_contiguous()") or (
            min(draw.value(name).shape, default=0) > 1 and draw.value(name)._is_view()
        )
        if suits and fact.rstrip("()") in dir_of_tensor():
            draw.say(f"{draw.fresh('f')} = {name}.{fact}")


def dir_of_tensor() -> set[str]:
    """What our Tensor has."""
    import tritensor

    return set(dir(tritensor.Tensor))


def view(draw: Draw, name: str) -> str:
    """An expression for a view of a tensor."""
    value: Any = draw.value(name)
    kind = draw.weighted(function=50, index=26, sizes=14, attribute=6, view_dtype=2, step=2)
    if kind == "function":
        called = draw.one([called for called in VIEWS if called in calls.callables()])
        expression = calls.call(draw, called, name)
        if called in ("unbind", "split", "chunk", "broadcast_tensors"):
            return f"{expression}[{draw.integer(-1, 1)}]"
        return expression
    if kind == "index":
        return f"{name}[{key(draw, value, basic=True)}]"
    if kind == "sizes":
        called = draw.one(("view", "view", "expand", "expand", "reshape"))
        text = ARGUMENTS["size"](draw, value, called) or "()"
        return f"{name}.{called}({text.removeprefix('*')})"
    if kind == "attribute":
        return f"{name}.{draw.one(PROPERTIES)}"
    if kind == "view_dtype" and draw.exact.get(name, True) and not (value != value).any():  # nan has many patterns
        return f"{name}.view(torch.{draw.dtype()})"
    return f"{name}[::{draw.integer(1, 3)}]" if value.dim() else f"{name}[None]"


def change(draw: Draw, name: str) -> str:
    """A statement that writes into a tensor."""
    value: Any = draw.value(name)
    kind = draw.weighted(method=48, setitem=28, augmented=16, part=8)
    if kind == "method":
        every = [*calls.named(calls.is_elementwise, True), *calls.named(calls.is_of_shapes, True)]
        curated = [called for called in EXACT_CHANGES if called in calls.callables()]
        return calls.call(draw, draw.one(curated if draw.chance(0.7) else every), name)
    if kind == "setitem":
        written = key(draw, value, basic=draw.chance(0.7))
        return f"{name}[{written}] = {value_for(draw, value, written, name)}"
    symbol = draw.one(("+", "-", "*", "*", "/", "**"))
    right = draw.number(0.02) if draw.chance(0.6) else draw.one(draw.names())
    if kind == "augmented":
        return f"{name} {symbol}= {right}"
    return f"{name}[{key(draw, value, basic=True)}] {symbol}= {right}"


def result(draw: Draw, name: str) -> None:
    """A new tensor of one or two others."""
    made = draw.fresh()
    if draw.chance(0.45):
        other = draw.one(draw.names()) if draw.chance(0.7) else draw.number(0.02)
        draw.say(f"{made} = {name} {draw.one(('+', '-', '*', '*', '/'))} {other if other[0] != '-' else f'({other})'}")
    else:
        draw.say(f"{made} = {calls.call(draw, draw.one(RESULTS), name)}")


def autograd(draw: Draw, name: str) -> None:
    """A statement about autograd itself."""
    draw.say(
        draw.one(
            (
                f"{name}.retain_grad()",
                f"{name}.requires_grad_()",
                f"{name}.requires_grad_(False)",
                f"{name}.detach_()",
                f"{name}.requires_grad = {draw.one(('True', 'False'))}",
                f"{name}.grad = None",
                f"{name}.data = {draw.one(draw.names())}.clone()",
                f"{draw.fresh('v')} = {name}.detach()",
                f"{draw.fresh('r')} = {name}.clone().detach().requires_grad_()",
            )
        )
    )


def finish(draw: Draw) -> None:
    """Backward from the tensors that are left, as one sum."""
    ends = draw.names(lambda t: t.requires_grad and t.is_floating_point())
    if ends:
        terms = " + ".join(f"({end} * {end}).sum()" if draw.chance(0.4) else f"{end}.sum()" for end in ends[-4:])
        draw.say(f"({terms}).backward()")
