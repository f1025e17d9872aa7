"""Replays: what is remembered of an operator's call, so that it can be repeated on other arrays.

What `Operator.__call__` computes for a call (checked arguments, dtypes, the results' shapes, launches) depends on the
shapes, dtypes and strides of its inputs, on its metadata and on its numbers, not on the contents of memory. So it is
computed once for each combination, which `key_of` makes a key of, and kept in the operator's table as a `Replay`: one
function, `run`, from the inputs' arrays to the results. On the CPU it calls the reference; on a device it makes the
launches that were noted when the call was traced (`runtime/trace.py`): 1 to 3 us, in place of 25 to 60.

An operator that reads memory or counts its calls must not be repeated: families set `repeatable` where theirs can be.
On simulated devices, in checked mode and in debug mode every call goes through all stages of `Operator.__call__`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import settings
from ..host.scalars import signed
from ..memory import buffer
from ..memory.array import DeviceArray, Form
from ..memory.buffer import Buffer
from ..tensors import Tensor, wrap
from ..types import devices, dtypes
from .call import Call, Operator
from .choice import HALVES, wins
from .program import Program, float_bits, watchers

ndarray = np.ndarray
_tables: list[dict[Any, Any]] = []

# The first part of the keys of calls that write into an array that is passed, the first of their values.
INTO = "into"


class _Mode:
    """The switch of replay, whether calls on devices are repeated: on real ones, unless checked mode or debug mode is
    on."""

    on = False
    wanted = False
    changes = 0  # how often all replays were dropped


active = _Mode()


def begin() -> None:
    """Repeat calls on devices from now on; called when a kernel is loaded on one."""
    if not active.wanted:
        active.wanted = True
        forget()


def stop() -> None:
    """Repeat no calls on devices until the next kernel is loaded; for a device that no longer exists."""
    active.wanted = False
    forget()


def forget() -> None:
    """Drop every replay, because a setting that calls may depend on has changed."""
    active.changes += 1
    active.on = active.wanted and not (settings.check.value or settings.debug.value)
    for each in _tables:
        each.clear()


settings.watchers.append(forget)
watchers.append(begin)


def table() -> dict[Any, Replay | None]:
    """A new table of replays by key, for one operator; None marks a combination that cannot be repeated."""
    made: dict[Any, Replay | None] = {}
    _tables.append(made)
    return made


def key_of(
    operator: Operator, inputs: Sequence[Any], metadata: dict[str, Any], values: list[Any], out: Any = None
) -> tuple[Any, ...] | None:
    """The key of a call: the facts that it depends on besides the contents of memory; None for a call that cannot be
    repeated.

    The key holds value and type of each number (a kernel distinguishes 1 from True, and 0.0 from -0.0), but only the
    type for an operator whose kernel takes numbers as arguments. Such numbers, and the inputs' arrays, are appended to
    `values`: they are what `Replay.run` is called with. `out` is the array that the call writes into, if there is one.
    """
    parts: list[Any] = []
    on_host = on_device = False
    if out is not None:
        parts += INTO, out.form
        values.append(out)
        on_device = True
    for value in inputs:
        if isinstance(value, Tensor):
            value = value._data
        kind = value.__class__
        if kind is DeviceArray:
            parts.append(value.form)
            on_device = True
        elif kind is ndarray:
            parts.append(value.dtype)
            parts.append(value.shape)
            on_host = True
        elif kind is float or kind is int:
            parts.append(kind if operator.takes_numbers else (kind, value or str(value)))
        elif kind is bool or value is None:
            parts.append((kind, value))
        else:
            return None
        values.append(value)
    if on_device and (on_host or not active.on or operator.repeatable == "cpu"):
        return None
    if metadata:
        parts.extend(metadata)
        for value in metadata.values():
            kind = value.__class__
            parts.append(kind)
            if kind is float or kind is int:
                if operator.takes_numbers:
                    values.append(value)
                else:
                    parts.append(value or str(value))
            elif kind in _PLAIN:
                parts.append(value)
            elif (kind is tuple or kind is list) and _PLAIN.issuperset(map(type, value)):
                parts += tuple(map(type, value)), tuple(value)
            else:
                return None
    return tuple(parts)


_PLAIN = frozenset((bool, int, float, str, type(None), dtypes.dtype))


def converter(kind: dtypes.dtype, number: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    """The function that makes a launch's argument, of compute dtype `kind`, of a number that `number` has checked."""
    kind = dtypes.real_of(kind)  # the imaginary part of such a number is 0
    convert = float if kind is dtypes.float64 else _single if kind.is_floating_point else _integer
    return convert if number is None else lambda value: convert(number(value))


def _single(value: float) -> int:
    return float_bits(float(value))


def _integer(value: int) -> int:
    return signed(int(value))


# A program, the grid, and the values as (source, value): the address of array number `source` plus `value`, or the
# number itself with a value of 0; or the number `value` where source is None. Arrays and numbers are counted in the
# order of a call's values, and then of its allocations.
Step = tuple[Program, tuple[int, int, int], list[tuple[Any, Any]]]


class Replay:
    """The memory of the calls of one operator with one key.

    Attributes:
        run: from the values that `key_of` collected to the result, a tuple of several, or () where the call writes into
            an array that is passed. None where the call has to go through all stages after all.
        metadata: what the operator's `prepare` returned, for the tape.
        named: names of the metadata whose numbers are among the values.
        missing: None for each input that is left out.
        alike: all inputs have the shape and the dtype of the first result.
    """

    __slots__ = ("alike", "metadata", "missing", "named", "run")

    def __init__(
        self, run: Callable[..., Any], metadata: dict[str, Any], named: list[str], missing: int, alike: bool
    ) -> None:
        self.run, self.metadata, self.named, self.alike = run, metadata, named, alike
        self.missing = (None,) * missing

    def tape(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """The metadata for the tape: that of the first call, with this call's numbers."""
        return {**self.metadata, **{name: metadata[name] for name in self.named}} if self.named else self.metadata


def on_host(
    call: Call, compute: Callable[..., tuple[ndarray, ...]], count: int, named: list[str], given: dict[str, Any]
) -> Callable[..., Any]:
    """`Replay.run` for calls on the CPU like this one, of `count` inputs and then the numbers of metadata `named`.

    Args:
        compute: the reference; native code may take its place, see `native_replay.py`.
        given: the metadata as it was passed.
    """
    if named:
        # the call itself is not kept: it holds the first call's tensors
        operator, metadata, kinds = call.operator, call.metadata, (call.compute, call.results)

        def compute(*values: Any) -> tuple[ndarray, ...]:
            numbers = dict(zip(named, values[count:], strict=True))
            again = Call(operator, (None,) * count, {**metadata, **numbers}, devices.cpu, *kinds)
            again.arrays = values[:count]
            return operator.on_host(again)(*values[:count])

    def use(other: Callable[..., Any]) -> None:
        nonlocal compute
        compute = other
        run.into = getattr(other, "into", None)

    run: Any
    if len(call.results) > 1:
        run = lambda *values: _wrapped(compute(*values))  # noqa: E731
    elif count == 1 and not named:
        run = lambda x: wrap(compute(x)[0])  # noqa: E731
    elif count == 2 and not named:
        run = lambda x, y: wrap(compute(x, y)[0])  # noqa: E731
    else:
        run = lambda *values: wrap(compute(*values)[0])  # noqa: E731
    compute = natively(call.operator, call.arrays, call.compute.numpy, compute, use, given, named)
    return run


def _wrapped(arrays: tuple[ndarray, ...]) -> Any:
    return wrap(arrays[0]) if len(arrays) == 1 else tuple([wrap(array) for array in arrays])


def natively(
    operator: Operator,
    arrays: Sequence[Any],
    kind: np.dtype[Any],
    compute: Callable[..., Any],
    use: Callable[[Callable[..., Any]], object],
    metadata: dict[str, Any],
    named: Sequence[str] = (),
) -> Callable[..., Any]:
    """What a remembered call computes with at first: `compute`, or what calls `use` with native code, once it is made.

    Args:
        kind: the dtype to compute in.
        metadata: as it was passed. named: the metadata that `compute` takes behind the inputs.
    """
    sizes = [(array.size, array.dtype) for array in arrays if array.__class__ is ndarray]
    if not sizes or not all(size for size, _ in sizes):
        return compute
    half = next((dtype for _, dtype in sizes if dtype in HALVES), kind)
    if not wins(operator, half, max(size for size, _ in sizes), arrays, metadata):
        return compute
    from .native_replay import Chooser

    return Chooser(operator, metadata, len(arrays), named, compute, use)


def write_natively(out: ndarray, operator: Operator, inputs: Sequence[Any], metadata: dict[str, Any]) -> bool:
    """Let native code write the result of an elementwise call, which may have `out` among its inputs, into `out`; False
    where it is not there, or not for such arrays."""
    values: list[Any] = []
    key = key_of(operator, inputs, metadata, values)
    known = None if key is None else operator.replays.get(key)
    into = None if known is None else getattr(known.run, "into", None)
    if into is None:
        return False
    for value in values:
        if value.__class__ is ndarray and value is not out and np.may_share_memory(value, out):
            # each element is read before it is written only where both lie in the same order
            place = value.__array_interface__["data"] == out.__array_interface__["data"]
            if not place or value.shape != out.shape or value.strides != out.strides:
                return False
    done: bool = into(out, *values)
    return done


class Quick(dict[Any, Callable[..., Any]]):
    """The functions of arrays, by key, of calls that take fewer steps than `Operator.__call__`."""

    def __init__(self) -> None:
        _tables.append(self)

    def begin(
        self, key: object, operator: Operator, arrays: Sequence[Any], compute: Callable[..., Any], **metadata: Any
    ) -> Callable[..., Any]:
        """The function of a new key: `compute`, of arrays to a tuple, and native code as soon as it is there."""

        def use(other: Callable[..., Any]) -> None:
            self[key] = other

        if len(self) >= _MOST_QUICK:
            self.clear()
        kind = next(array.dtype for array in arrays if array is not None)
        found = self[key] = natively(operator, arrays, kind, compute, use, metadata)
        return found


_MOST_QUICK = 1024


# ---- launches, as a function that is composed for them -----------------------------------------------------------

# By text: compiling one takes 0.5 ms. Bounded, because the number of launches may change with every step (`cat`).
_factories: dict[str, Callable[..., Any]] = {}
_MOST_FACTORIES = 1024


def on_device(
    steps: list[Step], values: Sequence[Any], converters: dict[int, Any], forms: list[Form], results: int
) -> Callable[..., Any]:
    """`Replay.run` for calls on a device: allocate, launch, wrap.

    The function's text is composed, because each call within it would add 3 % to a small operator: it reads an address
    from each array, takes a block for each allocation, and passes the driver's launch its values one by one.

    Args:
        steps: the launches.
        values: those of the first call; of later ones only the arrays' addresses and the converted numbers differ.
        converters: for the numbers among the values that are passed to a kernel, by position.
        forms: of everything that is allocated, the results first.
        results: the number of results; 0 for calls that write into an array that is passed.
    """
    driver, index = steps[0][0].driver, steps[0][0].device
    names: dict[str, Any] = {
        "memory": buffer,
        "threads": driver.threads,
        "enter": driver.enter,
        "refused": driver.refused,
        "note": driver.launched.append,
        "driver": driver,
        "index": index,
        "make": object.__new__,
        "Buffer": Buffer,
        "DeviceArray": DeviceArray,
        "Tensor": Tensor,
    }
    passed = ", ".join(f"x{i}" for i in range(len(values)))
    body = ["if memory.trace is not None: return None  # these launches are part of a call that is being traced"]
    body += ["stream = threads.current.get(index)", "if stream is None: stream = enter(index)", "arena = stream.arena"]
    for i, value in enumerate(values):
        if value.__class__ is DeviceArray:
            names[f"size{i}"] = value.itemsize
            body += [f"m{i} = x{i}.buffer", f"if m{i}.arena is not arena:"]
            body += [f"    if m{i}.arena.driver is not driver: return None", f"    m{i}.record_stream(stream)"]
            body += [f"p{i} = m{i}.address + x{i}.offset * size{i} if x{i}.offset else m{i}.address"]
        elif i in converters:
            names[f"convert{i}"] = converters[i]
            body += [f"try: p{i} = convert{i}(x{i})", "except OverflowError: return None"]
    if forms:
        body += ["heap = arena.heap"]
    for j, form in enumerate(forms):
        body += _allocation(j, len(values) + j, form, names)
    for j, (program, grid, arguments) in enumerate(steps):
        body += _launch(j, program, grid, arguments, names)
    for j in range(results):
        body += [f"t{j} = make(Tensor)", f"t{j}._data, t{j}._needs = a{j}, False"]
        body += [f"t{j}._counter = t{j}._origin = t{j}._node = None"]
    body += ["return t0" if results == 1 else f"return ({''.join(f't{j}, ' for j in range(results))})"]
    text = f"def factory({', '.join(names)}):\n    def run({passed}):\n"
    text += "".join(f"        {line}\n" for line in body) + "    return run\n"
    factory = _factories.get(text)
    if factory is None:
        if len(_factories) >= _MOST_FACTORIES:
            _factories.clear()
        scope: dict[str, Any] = {}
        exec(compile(text, "<replay>", "exec"), scope)
        factory = _factories[text] = scope["factory"]
    run: Callable[..., Any] = factory(**names)
    return run


def _allocation(j: int, place: int, form: Form, names: dict[str, Any]) -> list[str]:
    """A new array, `a{j}`, and its address, `p{place}`; what `memory.buffer.new` does."""
    names[f"form{j}"], names[f"block_size{j}"], names[f"nbytes{j}"] = form, form.block_size, form.nbytes
    return [
        f"try: block = arena.bins[block_size{j}].pop()",
        f"except IndexError: block = arena.miss(form{j})",
        f"block.use = form{j}",
        "heap.allocated = allocated = heap.allocated + block.size",
        "if allocated > heap.peak: heap.peak = allocated",
        f"b{j} = make(Buffer)",
        f"b{j}.arena, b{j}.block, b{j}.nbytes = arena, block, nbytes{j}",
        f"b{j}.address = p{place} = block.address",
        f"a{j} = make(DeviceArray)",
        f"a{j}.buffer, a{j}.form, a{j}.offset = b{j}, form{j}, 0",
    ]


def _launch(
    j: int, program: Program, grid: tuple[int, int, int], arguments: list[tuple[Any, Any]], names: dict[str, Any]
) -> list[str]:
    """Launch number `j`; what `Program.launch` does."""
    texts = []
    for i, (source, value) in enumerate(arguments):
        if source is None or value:
            names[f"k{j}_{i}"] = value
        texts.append(f"k{j}_{i}" if source is None else f"p{source} + k{j}_{i}" if value else f"p{source}")
    names[f"program{j}"] = program
    if program.scratch:
        names[f"grid{j}"] = grid
        return [f"program{j}.launch(stream, grid{j}, ({''.join(f'{text}, ' for text in texts)}))"]
    place, launch, config, kernel = program.prepared(grid)
    names |= {f"launch{j}": launch, f"config{j}": config, f"kernel{j}": kernel}
    if place is not None:
        names[f"place{j}"] = place
    return [
        "try:",
        *([f"    place{j}()"] if place is not None else []),
        f"    launch{j}({', '.join(['stream.handle', f'config{j}', f'kernel{j}', *texts, '0', '0'])})",
        f"except Exception as error: raise refused(program{j}.name, error) from error",
        f"note(program{j})",
    ]
