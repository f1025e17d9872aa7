"""Whether rounding alone decides a value that differs.

Two libraries that round in another order differ by much where a result is a difference of nearly equal numbers, is cut
to an integer, or is divided by one that is nearly 0. Such a value is one if it moves as far in PyTorch itself when all
its numbers are changed by an ulp, those between two operators of a composed function too, and if both libraries agree
on the same program in float64.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import torch as reference
from torch.utils._python_dispatch import TorchDispatchMode

from .comparison import TOLERANCE, elements, elements_of_reference, name, plain
from .session import Changed, Difference, Session, Unsuitable

TRIALS = 16
MOVES = 4.0  # an order of rounding may go this much further than the trials did
_NARROW = re.compile(r"\btorch\.(float32|float16|bfloat16|half|float)\b")
_TO_NARROW = re.compile(r"\.(half|bfloat16|float)\(\)")


def decides(found: Difference, session: Session) -> bool:
    """Whether a difference that a session found is one of rounding."""
    target = found.detail.splitlines()[0].rpartition(" ")[2]
    ours, theirs = session.ours.get(target), session.theirs.get(target)
    if not re.match(r"(grad's )?value |result ", found.detail) or ours is None:
        return False
    return _alike_in_float64(session.statements, session.device) and _moves(session.statements, target, ours, theirs)


def _alike_in_float64(statements: Sequence[str], device: str) -> bool:
    wide = Session(device)
    try:
        for statement in ["torch.set_default_dtype(torch.float64)", *statements]:
            statement = _TO_NARROW.sub(".double()", _NARROW.sub("torch.float64", statement))
            if wide.run(statement.replace("complex64", "complex128")) is not None:
                return False
    except (Changed, Unsuitable):
        return False
    finally:
        reference.set_default_dtype(reference.float32)
        _ours_back(wide)
    return True


def _ours_back(session: Session) -> None:
    library = session.ours["torch"]
    library.set_default_dtype(library.float32)


def _moves(statements: Sequence[str], target: str, ours: Any, theirs: Any) -> bool:
    """Whether each part of ours is about as far from PyTorch's as those of some disturbed runs are."""
    mine, expected = list(_parts(ours)), list(_parts(theirs))
    trials = [
        list(_parts(_disturbed(statements, seed, within).get(target)))
        for seed in range(TRIALS)
        for within in (False, True)
    ]
    trials = [trial for trial in trials if len(trial) == len(expected)]
    return len(mine) == len(expected) and all(
        _reached(one, other, [trial[position] for trial in trials])
        for position, (one, other) in enumerate(zip(mine, expected, strict=True))
    )


def _reached(ours: Any, theirs: Any, trials: list[Any]) -> bool:
    if isinstance(theirs, float) and isinstance(ours, float):
        if ours == theirs or (ours != ours and theirs != theirs):
            return True
        distances = [abs(trial - theirs) for trial in trials if isinstance(trial, float)]
        furthest = max((distance for distance in distances if distance == distance), default=0.0)
        alike = any(repr(trial) == repr(ours) for trial in trials)
        return alike or abs(ours - theirs) <= MOVES * furthest + TOLERANCE["float32"] * max(1, min(abs(theirs), 1e4))
    return ours == theirs or ours in trials


def _parts(value: Any) -> Iterable[Any]:
    """The numbers of a value, real ones as floats, and its gradient's."""
    if isinstance(value, reference.Tensor) or type(value).__name__ in ("Tensor", "Parameter"):
        theirs = isinstance(value, reference.Tensor)
        array = (elements_of_reference if theirs else elements)(value)
        yield name(value.dtype)
        yield tuple(array.shape)
        for element in array.reshape(-1).tolist():
            yield from _parts(element)
        if value.is_leaf or value.retains_grad:
            yield from _parts(value.grad)
    elif isinstance(value, dict):
        yield from _parts(list(value.items()))
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _parts(each)
    elif isinstance(value, complex):
        yield from (value.real, value.imag)
    elif isinstance(value, (int, float)):
        yield float(value)
    else:
        yield plain(value)


def _change(memory: reference.Tensor, generator: reference.Generator) -> None:
    """Change numbers by up to an ulp."""
    ulps = reference.rand(memory.shape, generator=generator, dtype=reference.float64) * 2 - 1
    memory.mul_((1 + ulps * reference.finfo(memory.dtype).eps).to(memory.dtype))


class _Within(TorchDispatchMode):
    """Changes what each operator of PyTorch makes of numbers, inside of composed functions and backward passes too."""

    def __init__(self, generator: reference.Generator) -> None:
        super().__init__()
        self.generator = generator

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **kwargs or {})
        fresh = all(declared.alias_info is None for declared in func._schema.returns)  # no views, not in place
        if fresh and any(map(_is_floating, args)):
            for each in filter(_is_floating, found if isinstance(found, (tuple, list)) else (found,)):
                _change(each, self.generator)
        return found


def _is_floating(value: Any) -> bool:
    return isinstance(value, reference.Tensor) and value.is_floating_point() and value.layout is reference.strided


def _disturbed(statements: Sequence[str], seed: int, within: bool = False) -> dict[str, Any]:
    """What PyTorch has under each name if all its numbers are changed by up to an ulp after each statement.

    With `within` those that a statement's operators hand on to each other, too.
    """
    generator = reference.Generator().manual_seed(seed)
    scope: dict[str, Any] = {"torch": reference, "inf": float("inf"), "nan": float("nan")}
    for statement in statements:
        try:
            with _Within(generator) if within else nullcontext():
                exec(statement, scope)
        except Exception:  # a program goes on after what both refuse
            continue
        memories: dict[int, reference.Tensor] = {}
        for tensor in [value for value in scope.values() if isinstance(value, reference.Tensor)]:
            if tensor.is_floating_point() and tensor.numel():
                memories.setdefault(tensor.untyped_storage().data_ptr(), tensor)
        for tensor in memories.values():
            memory = reference.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())  # of another version
            _change(memory, generator)
    return scope
