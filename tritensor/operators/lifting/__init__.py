"""Calls inside of the transformations of `tritensor.func`: how each operator runs on samples and on dual numbers.

`apply` is where `Operator.call` hands over. The call's arguments are checked on what the user's code sees; then the
innermost level computes it: `batching` with one call on the whole batch, `forward` with the value and its tangent. Both
call operators on the tensors below, which may be of an earlier level. The node of the tape is left on the tensors of
the level, as for ordinary ones.
"""

from __future__ import annotations

from typing import Any

from ...autograd.levels import aligned, at, enter, followed, innermost, lifted_to, write
from ...memory.deferred import Deferred
from ...memory.lifted import Lifted
from ...memory.sparse import Sparse
from ...tensors import Tensor
from ...types.dtypes import FLOATING
from .. import operator as operators
from . import batching, forward

__all__ = ["apply", "like", "write"]


def apply(operator: Any, inputs: tuple[Any, ...], metadata: dict[str, Any]) -> Any:
    """An operator's results on tensors of which at least one is inside of a transformation, or sparse."""
    if any(isinstance(x, Tensor) and x._data.__class__ is Deferred for x in inputs):
        return Deferred.rules.apply(operator, inputs, metadata)
    if Sparse.used and any(isinstance(x, Tensor) and x._data.__class__ is Sparse for x in inputs):
        return Sparse.rules.apply(operator, inputs, metadata)
    call = operator.prepared(inputs, metadata)
    level = innermost(call.inputs)
    if operator.sums_samples and level.size is not None and not at(level, call.inputs[0]) and followed(call.inputs[0]):
        return batching.shared(operator, level, call)
    # integers have no tangents
    lifting = [isinstance(x, Tensor) and (level.size is not None or x.dtype.category >= FLOATING) for x in call.inputs]
    values = [lifted_to(level, x) if lift else x for x, lift in zip(aligned(call.inputs), lifting, strict=True)]
    results = (batching if level.size is not None else forward).call(operator, level, values, call)
    return results[0] if len(results) == 1 else results


def like(made: Tensor, data: object) -> Tensor:
    """A new tensor in the levels of an array's values, with elements of its own for each sample that these are of."""
    path = []
    while isinstance(data, Lifted):
        path.append(data)
        data = data.array
    for each in reversed(path):
        if getattr(each, "whole", False):
            made = enter(made.expand(each.level.size, *made.shape).clone(), each.level)
        elif each.level.size is not None or made.dtype.category >= FLOATING:
            made = lifted_to(each.level, made)
    return made


operators.lifted_call = apply
