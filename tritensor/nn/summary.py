"""The summary of a module: its parts and the cost of a call, as a table and for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from html import escape
from itertools import product
from typing import Any

from .. import random
from ..autograd.mode import no_grad
from ..autograd.precision import watching
from ..drivers.allocator import readable
from ..errors import ArgumentError, explain
from ..functional.creation.creation import zeros
from ..operators.generators import fork_rng
from ..tensors import tensors_in
from ..tensors.notebook import preformatted
from ..tensors.printing import aligned
from ..types.dtypes import int64

_PRODUCTS = {"attention", "convolution", "matmul", "recurrent"}  # families of operators
_TABLES = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")
_MOST_SHAPES = 4  # of which each may be one of integers alone
_HEADING = ("module", "class", "inputs", "outputs", "parameters", "bytes", "FLOPs", "notes")


@dataclass
class Row:
    """A submodule with all in it, of its first call the shapes; one that is listed already has just the path there."""

    path: str
    level: int
    kind: str
    shared: str | None = None
    parameters: int = 0
    trainable: int = 0
    nbytes: int = 0
    calls: int = 0
    inputs: list[tuple[int, ...]] = field(default_factory=list)
    outputs: list[tuple[int, ...]] = field(default_factory=list)
    flops: int = 0

    def cells(self) -> tuple[str, ...]:
        """The line of the table."""
        shapes = [", ".join(map(str, each))[:60] if self.calls else "-" for each in (self.inputs, self.outputs)]
        frozen, flops = self.parameters - self.trainable, f"{self.flops:,}" if self.calls else "-"
        notes = [f"{self.calls} calls"] * (self.calls > 1) + [f"{frozen:,} frozen"] * (frozen > 0)
        counts = f"{self.parameters:,}", readable(self.nbytes)
        if self.shared is not None:
            counts, notes = ("-", "-"), [f"shared with {self.shared or 'the module itself'}"]
        name = "  " * self.level + (self.path.rpartition(".")[2] or "-")
        return name, self.kind, *shapes, *counts, flops, ", ".join(notes)


@dataclass
class Summary:
    """The result of `Module.summary`; its text is a table with a line for each submodule, and the totals.

    Attributes:
        rows: the module and those below it, parents first; the first row has the totals.
        buffers: how many elements they have.
        activations: bytes of the results of modules that called no others, unless in memory of their inputs.
    """

    rows: list[Row]
    buffers: int
    activations: int = 0

    def __repr__(self) -> str:
        table, total = [_HEADING, *(row.cells() for row in self.rows)], self.rows[0]
        held = f"{total.parameters:,} parameters of {readable(total.nbytes)}, {total.trainable:,} trainable"
        cost = f"{total.flops:,} FLOPs, activations of {readable(self.activations)}"
        return "\n".join([*aligned(table, right=range(4, 7)), f"{held}; {self.buffers:,} in buffers; {cost}"])

    def _repr_html_(self) -> str:
        return preformatted(str(self))


def module_html(module: Any) -> str:
    """The HTML of a module: a tree that opens, with what each module in it holds."""
    seen: set[int] = set()

    def shown(name: str, module: Any) -> str:
        facts, below = ["listed above"], []
        if id(module) not in seen:
            seen.add(id(module))
            kinds = sorted({f"{each.dtype.name} on {each.device}" for each in module.parameters()})
            count = sum(each.numel() for each in module.parameters())
            facts = [f"{count:,} parameters"] * bool(kinds) + [*kinds, "training" if module.training else "evaluation"]
            below = [shown(*each) for each in module._modules.items() if each[1] is not None]
        title = f"{type(module).__name__}({' '.join(module.extra_repr().split())})"
        line = f"<b>{escape(name)}</b> {escape(title)} <span style='opacity:.7'>{escape(' · '.join(facts))}</span>"
        if not below:
            return f'<div style="margin-left:1.2em">{line}</div>'
        opened = "" if name else " open"
        return f'<details{opened} style="margin-left:1.2em"><summary>{line}</summary>{"".join(below)}</details>'

    return f'<div style="color:inherit">{shown("", module)}</div>'


def _rows(module: Any, path: str, level: int, seen: dict[Any, Row]) -> Iterator[Row]:
    """A row for each module, parents first; each module's first is in `seen`."""
    row = Row(path, level, type(module).__name__)
    yield row
    if seen.setdefault(module, row) is not row:
        row.shared = seen[module].path
        return
    for each in module.parameters():
        row.parameters += each.numel()
        row.trainable += each.numel() * each.requires_grad
        row.nbytes += each.nbytes
    for name, each in module._modules.items():
        if each is not None:
            yield from _rows(each, f"{path}.{name}".lstrip("."), level + 1, seen)


@contextmanager
def _unchanged(modules: Any) -> Iterator[None]:
    """Give modules copies of their buffers for a block; put back their attributes after it, and random states."""
    tables = [module.__dict__ for module in modules]
    tables += [own[name] for own in tables for name in _TABLES]
    saved, copies = [table.copy() for table in tables], {None: None}
    try:
        with fork_rng():
            for module in modules:
                for name, buffer in module._buffers.items():
                    if buffer not in copies:
                        copies[buffer] = buffer.data.clone()
                    module._buffers[name] = copies[buffer]
            yield
    finally:
        for table, entries in zip(tables, saved, strict=True):
            table.clear()
            table.update(entries)


def summarize(model: Any, inputs: tuple[Any, ...], named: dict[str, Any], depth: int | None) -> Summary:
    """The `Summary` of a module, from one call of it; see `Module.summary`."""
    if depth is not None and not (type(depth) is int and depth >= 0):
        raise ArgumentError(f"summary: depth must be an int of at least 0 or None, got {depth!r}")
    if any("_initialize_hook" in module.__dict__ for module in model.modules()):
        raise RuntimeError(explain("summary: a lazy layer has no parameters yet", remedy="call the module once before"))
    held = (x for x in (*model.parameters(), *model.buffers()) if x.is_floating_point())
    place: dict[str, Any] = {"dtype": x.dtype, "device": x.device} if (x := next(held, None)) is not None else {}
    shaped = [isinstance(each, (tuple, list)) and all(type(n) is int for n in each) for each in inputs]
    first: Exception | None = None
    # random numbers for each shape, then integers for some of them, which layers that look up rows want
    for integers in sorted(product((False, True), repeat=min(sum(shaped), _MOST_SHAPES)), key=sum):
        rest = iter([*integers, *[any(integers)] * len(inputs)])
        with fork_rng():
            example = [_example(x, place, next(rest)) if shape else x for x, shape in zip(inputs, shaped, strict=True)]
        try:
            return _called(model, example, named, depth)
        except Exception as error:
            first = first or error
    assert first is not None
    raise first


def _example(shape: object, place: dict[str, Any], integers: bool) -> Any:
    return zeros(shape, **{**place, "dtype": int64}) if integers else random.randn(shape, **place)


def _called(model: Any, inputs: list[Any], named: dict[str, Any], depth: int | None) -> Summary:
    """The summary from a call with these inputs."""
    calls: dict[Any, Row] = {}
    rows = [row for row in _rows(model, "", 0, calls) if depth is None or row.level <= depth]
    found = Summary(rows, sum(buffer.numel() for buffer in model.buffers()))
    running = [[0, 0]]  # of each call that runs: how many modules it has called, and the operations before it
    flops = 0

    def count(call: Any, arrays: Any) -> None:
        nonlocal flops
        if call.operator.family in _PRODUCTS:
            call.outs = arrays
            flops += call.operator.cost(call)[1]

    def before(module: object, args: tuple[Any, ...]) -> None:
        running[-1][0] += 1
        running.append([0, flops])

    def after(module: object, args: tuple[Any, ...], kwargs: dict[str, Any], result: object) -> None:
        (called, start), row = running.pop(), calls[module]
        given, made = list(tensors_in([args, kwargs])), list(tensors_in(result))
        if not row.calls:
            row.inputs, row.outputs = ([tuple(x.shape) for x in each] for each in (given, made))
        row.calls, row.flops = row.calls + 1, row.flops + flops - start
        held = {x.data_ptr() for x in given}
        found.activations += 0 if called else sum(x.nbytes for x in made if x.data_ptr() not in held)

    with ExitStack() as stack:
        stack.enter_context(_unchanged(calls))
        stack.enter_context(no_grad())
        for module in calls:
            stack.callback(module.register_forward_pre_hook(before, prepend=True).remove)
            handle = module.register_forward_hook(after, with_kwargs=True, always_call=True)
            stack.callback(handle.remove)
        stack.enter_context(watching(count))
        model(*inputs, **named)
    return found
