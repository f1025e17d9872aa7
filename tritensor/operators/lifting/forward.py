"""Forward mode: an operator's tangent, from the gradient that is declared for it.

A gradient is linear in the gradient that comes in, so its derivative with respect to that, applied to the inputs'
tangents, is the result's tangent: the transposed of the transposed. Elementwise operators and those that say
how they are linear (`Operator.linear`) have rules of one step:

    first     in the first input; further inputs have no tangent
    product   in each of the first two inputs
    written   in what is written to and in what is written: one element is kept of several for one place, as of the
              values
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...autograd.backward import grad
from ...autograd.levels import at, below, enter_dual, in_all, levels_of
from ...autograd.mode import enable_grad, no_grad, recording
from ...errors import UnsupportedError
from ...memory.lifted import Level
from ...tensors import Tensor, wrap
from ...types import dtypes
from ...types.layout import broadcast_shapes


def call(operator: Any, level: Level, values: list[Any], call: Any) -> tuple[Any, ...]:
    """The results of an operator, dual numbers where they are floating; see `apply`."""
    primals = [below(value) if isinstance(value, Tensor) and at(level, value) else value for value in values]
    tangents: list[Any] = [
        wrap(value._data.tangent)
        if isinstance(value, Tensor) and at(level, value) and value._data.tangent is not None
        else None
        for value in values
    ]
    results, found = _pushed(operator, primals, tangents, call.metadata)
    pushed = found if isinstance(found, list) else [found]
    outputs = []
    for position, result in enumerate(results):
        if result.dtype.category < dtypes.FLOATING:
            outputs.append(result)
            continue
        tangent = pushed[position] if position < len(pushed) else None
        kind = call.results[position]  # an input that was expanded may have counted more than it does
        if tangent is None and any(each is not None for each in tangents):
            with no_grad():
                tangent = result.new_zeros(result.shape)
        outputs.append(enter_dual(result.to(kind), tangent if tangent is None else tangent.to(kind), level))
    if recording.enabled:
        operator.record(tuple(outputs), values, call.metadata)
    return tuple(outputs)


def _pushed(
    operator: Any, primals: list[Any], tangents: list[Any], metadata: dict[str, Any]
) -> tuple[tuple[Tensor, ...], Any]:
    """The results for the values, and the tangent of the first, or of each in a list; None for zeros."""
    moving = [position for position, tangent in enumerate(tangents) if tangent is not None]
    if not moving or not operator.differentiable:
        with no_grad():
            results = _tuple(operator(*primals, **metadata))
        if moving and results[0].dtype.category >= dtypes.FLOATING and not operator.constant:
            raise UnsupportedError(
                f"Trying to use forward AD with {operator.name} that does not support it because it has not been "
                "implemented yet.",
                remedy="differentiate it with reverse mode: torch.func.grad, vjp or jacrev",
            )
        return results, None
    if operator.linear == "first" and moving == [0]:
        with no_grad():
            return (operator(*primals, **metadata),), operator(tangents[0], *primals[1:], **metadata)
    if operator.linear == "written":
        with no_grad():
            result, target = operator(*primals, **metadata), tangents[0]
            target = primals[0].new_zeros(primals[0].shape) if target is None else target
            return (result,), operator(target, primals[1], 0 if tangents[2] is None else tangents[2], **metadata)
    if operator.linear == "product" and moving[-1] < 2 and metadata.get("activation") is None:
        with no_grad():
            result = operator(*primals, **metadata)
            terms = [operator(*primals[:i], tangents[i], *primals[i + 1 : 2], **metadata) for i in moving]
            return (result,), terms[0] if len(terms) == 1 else terms[0] + terms[1]
    real = not any(x.is_complex() if isinstance(x, Tensor) else isinstance(x, complex) for x in primals)
    mask = tuple([tangent is not None for tangent in tangents])
    if (
        operator.family == "elementwise"
        and real
        and len(operator.outputs) == 1
        and operator.backward_for(mask) is not None
    ):
        return _elementwise(operator, primals, tangents, metadata)
    with enable_grad():
        levels = levels_of([*primals, *tangents])
        for position in moving:
            primals[position] = in_all(primals[position], levels)._without_node()
            primals[position]._needs = True
        results = _tuple(operator(*primals, **metadata))
        seeds: list[Any] = []
        for result in results:
            seed = in_all(result._without_node(), levels)
            seeds.append(seed.new_zeros(seed.shape) if result._needs else None)
            if result._needs:
                seeds[-1]._needs = True
        found = _transposed_twice(results, seeds, [primals[i] for i in moving], [tangents[i] for i in moving])
    return tuple([wrap(result._data) for result in results]), found


def _elementwise(
    operator: Any, primals: list[Any], tangents: list[Any], metadata: dict[str, Any]
) -> tuple[tuple[Tensor, ...], Tensor | None]:
    """Each tangent times the derivative, which is the gradient where that of the result is 1."""
    shape = broadcast_shapes(*[x.shape for x in primals if isinstance(x, Tensor)])
    with enable_grad():
        for position, tangent in enumerate(tangents):
            if tangent is not None:
                primals[position] = primals[position].expand(shape)._without_node()
                primals[position]._needs = True
        result = operator(*primals, **metadata)
    node, total = result._node, None
    with no_grad():
        for position, slope in zip(
            node.backward.positions, node.backward.run(node, result.new_ones(shape)), strict=True
        ):
            term = slope * tangents[position]
            total = term if total is None else total + term
    return (wrap(result._data),), total


def _transposed_twice(
    results: Sequence[Tensor], seeds: list[Any], inputs: Sequence[Tensor], tangents: Sequence[Tensor]
) -> list[Any] | None:
    """The derivatives of the inputs' gradients with respect to each result's, applied to the tangents."""
    moved = [(result, seed) for result, seed in zip(results, seeds, strict=True) if seed is not None]
    if not moved:
        return None
    outs, own = zip(*moved, strict=True)
    gradients = grad(list(outs), list(inputs), list(own), create_graph=True, allow_unused=True)
    pairs = [(g, t) for g, t in zip(gradients, tangents, strict=True) if g is not None and g._needs]
    if not pairs:
        return None
    # the inputs' tangents have the inputs' shapes and dtypes, as their gradients have
    found = iter(grad([g for g, _ in pairs], list(own), [t for _, t in pairs], allow_unused=True))
    return [None if seed is None else next(found) for seed in seeds]


def _tuple(result: tuple[Tensor, ...] | Tensor) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)
