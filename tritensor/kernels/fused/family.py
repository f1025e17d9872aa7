"""The fused family: several elementwise operators as one, whose reference is the composition of their references and
whose kernel's body calls theirs."""

from __future__ import annotations

import hashlib
import linecache
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...operators import Dtypes
from ...operators.rules import ANY
from ...runtime.call import Call
from ...runtime.choice import Native
from ...runtime.launch import device_function
from ...types import dtypes
from ..elementwise.family import Elementwise
from ..elementwise.kernel import body_function

ndarray = np.ndarray


class Stage(NamedTuple):
    """One operator of a group, or a cast.

    Attributes:
        operator: None for a cast.
        inputs: for each operand the name of its variable, or of a number; None for one that is left out.
        metadata: likewise, by name.
        kinds: the dtype that each operand is converted to.
        results: the results' dtypes; outputs: the names of their variables.
        compute: the dtype that it computes in.
    """

    operator: Any
    inputs: tuple[Any, ...]
    metadata: tuple[tuple[str, Any], ...]
    kinds: tuple[dtypes.dtype, ...]
    results: tuple[dtypes.dtype, ...]
    outputs: tuple[str, ...]
    compute: dtypes.dtype


class Fused(Elementwise):
    """A group of elementwise operators.

    Args:
        stages: in order.
        inputs: the dtype of each input, by the name of its variable.
        outputs: names of the variables that are results.
        numbers: by name, what numbers are where a call passes no others.
        compute: the dtype that the numbers have in the kernel.
    """

    family = "fused"
    about = "Operators of a compiled function that share their elements, in one pass over memory."
    native = Native()

    def __init__(
        self,
        stages: Sequence[Stage],
        inputs: dict[str, dtypes.dtype],
        outputs: Sequence[str],
        numbers: dict[str, float],
        compute: dtypes.dtype,
    ) -> None:
        self.stages = tuple(stages)
        names = [stage.operator.name if stage.operator is not None else "cast" for stage in stages]
        shown = "_".join(names) if len(names) < 6 else "_".join([*names[:4], "and", str(len(names) - 4), "more"])
        results = [f"out{position}" for position in range(len(outputs))]
        super().__init__(shown, self._composed, ANY, inputs=list(inputs), outputs=results, register=False)
        self.__doc__ = " ".join(names)
        self.kinds, self.wanted = dict(inputs), tuple(outputs)
        kinds = {name: kind for stage in stages for name, kind in zip(stage.outputs, stage.results, strict=True)}
        self.dtypes = compute, tuple([kinds[name] for name in outputs])
        self.metadata = dict(numbers)
        self.dead = self._dead()
        self.body = self._body()

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """Those of the stages."""
        return self.dtypes

    def prepare(self, call: Call) -> None:
        """Nothing is left to be checked."""

    def _composed(self, *arrays: Any, **numbers: Any) -> tuple[Any, ...]:
        """The references, one after the other; what no later one reads is let go."""
        known: dict[str, Any] = {**dict(zip(self.inputs, arrays, strict=True)), **numbers}
        for stage, dead in zip(self.stages, self.dead, strict=True):
            self._stage(stage, known)
            for name in dead:
                del known[name]
        return tuple([known[name] for name in self.wanted]) if len(self.wanted) > 1 else known[self.wanted[0]]

    @staticmethod
    def _stage(stage: Stage, known: dict[str, Any]) -> None:
        """Compute the variables of a stage by its operator's reference."""
        operands = []
        for source, kind in zip(stage.inputs, stage.kinds, strict=True):
            value = known[source]
            if isinstance(value, (ndarray, np.generic)) and value.dtype is not kind.numpy:
                value = value.astype(kind.numpy)
            operands.append(value)
        if stage.operator is None:
            found = operands[0] if operands[0] is not known[stage.inputs[0]] else operands[0].copy()
        else:
            found = stage.operator.reference(*operands, **named_in(stage, known))
        produced = found if found.__class__ is tuple else (found,)
        for name, value, kind in zip(stage.outputs, produced, stage.results, strict=True):
            known[name] = value if value.dtype is kind.numpy else value.astype(kind.numpy)

    def _dead(self) -> list[list[str]]:
        """The variables that nothing reads after each stage."""
        seen, found = set(self.wanted), []
        for stage in reversed(self.stages):
            used = {name for name in stage.inputs if name is not None} | set(stage.outputs)
            found.append([name for name in used if name not in seen and name not in self.metadata])
            seen |= used
        return found[::-1]

    def _body(self) -> Any:
        """A device function of the inputs and the numbers that calls the stages' bodies."""
        scope: dict[str, Any] = {"__name__": __name__}
        lines = [f"def fused({', '.join([*self.inputs, *self.metadata])}):"]
        for position, stage in enumerate(self.stages):
            operands = [
                f"{source}.to({SPOKEN[kind.triton]})" for source, kind in zip(stage.inputs, stage.kinds, strict=True)
            ]
            text, more = self.call_of(position, stage, operands, scope)
            lines += [f"    {', '.join(stage.outputs)} = {text}", *[f"    {line}" for line in more]]
        wanted = ", ".join(self.wanted)
        lines.append(f"    return {wanted}")
        return device_function(written("\n".join(lines) + "\n", "fused", scope), name=self.name)

    @staticmethod
    def call_of(position: int, stage: Stage, operands: Sequence[str], scope: dict[str, Any]) -> tuple[str, list[str]]:
        """The text of an elementwise stage's results, and statements that round them to their dtypes."""
        spoken = [SPOKEN[kind.triton] for kind in stage.results]
        if stage.operator is None:
            return operands[0], []
        small = stage.results[0].itemsize if stage.compute is dtypes.float32 else 4
        scope[f"body{position}"] = body_function(stage.operator, small)
        more = [value.name if value.__class__ is Named else repr(value) for _, value in stage.metadata]
        text = f"body{position}({', '.join([*operands, *more])})"
        if len(spoken) == 1:
            return f"{text}.to({spoken[0]})", []
        return text, [f"{name} = {name}.to({kind})" for name, kind in zip(stage.outputs, spoken, strict=True)]


class Named(NamedTuple):
    """A number that is an argument of the call, in a stage's metadata."""

    name: str


def named_in(stage: Stage, known: dict[str, Any]) -> dict[str, Any]:
    """The metadata of a stage, with the call's own numbers."""
    return {name: known[value.name] if value.__class__ is Named else value for name, value in stage.metadata}


#: by Triton's short name of a dtype, its name in Triton's language
SPOKEN = {"fp16": "tl.float16", "bf16": "tl.bfloat16", "fp32": "tl.float32", "fp64": "tl.float64", "u1": "tl.int1"}
SPOKEN |= {"i1": "tl.int1", "i8": "tl.int8", "i16": "tl.int16", "i32": "tl.int32", "i64": "tl.int64"}
SPOKEN |= {"u8": "tl.uint8", "u16": "tl.uint16", "u32": "tl.uint32", "u64": "tl.uint64"}


def written(text: str, name: str, scope: dict[str, Any]) -> Any:
    """The function `name` of a text, which tracebacks, the interpreter and Triton find by a file's name."""
    path = f"<{name} {hashlib.sha256(text.encode()).hexdigest()[:16]}>"
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)
    exec(compile(text, path, "exec"), scope)
    return scope[name]
