"""Collectives with gradients: each returns new tensors, and its backward pass is the collective that undoes it.

All processes have to run the backward passes in the same order, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...functional.creation.likeness import empty_like, zeros_like
from ...operators.function import Function
from ...tensors import Tensor
from .. import collectives as plain
from ..groups import default_group
from ..process_group import ProcessGroup
from ..reduction import ReduceOp

__all__ = ["all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce"]
__all__ += ["reduce_scatter", "scatter"]

_Tensors = tuple[Tensor, ...]


class _Exchange(Function):
    """A collective of some tensors, and the collective of their gradients."""

    @staticmethod
    def forward(ctx: Any, there: Callable[..., Any], back: Callable[..., Any], *tensors: Tensor) -> Any:
        ctx.back = back
        return there(*tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        found = ctx.back(*(grad.contiguous() for grad in grads))
        return None, None, *(found if isinstance(found, tuple) else (found,))


def _likes(x: Tensor, group: ProcessGroup | None) -> list[Tensor]:
    return [empty_like(x) for _ in range(default_group(group).size())]


def _broadcast(x: Tensor, root: int, group: ProcessGroup | None) -> Tensor:
    result = x.clone()
    plain.broadcast(result, root, group)
    return result


def _reduce(x: Tensor, root: int, op: ReduceOp, group: ProcessGroup | None) -> Tensor:
    result = x.clone()
    plain.reduce(result, root, op, group)
    made = default_group(group)
    return result if made.ranks[made.rank()] == root else zeros_like(x)


def _gather(x: Tensor, root: int, group: ProcessGroup | None) -> _Tensors:
    made = default_group(group)
    parts = _likes(x, group)
    plain.gather(x, parts if made.ranks[made.rank()] == root else None, root, group)
    return tuple(parts if made.ranks[made.rank()] == root else map(zeros_like, parts))


def _scatter(parts: Sequence[Tensor], root: int, group: ProcessGroup | None) -> Tensor:
    made = default_group(group)
    result = empty_like(parts[0])
    plain.scatter(result, list(parts) if made.ranks[made.rank()] == root else None, root, group)
    return result


def _all_gather(x: Tensor, group: ProcessGroup | None) -> _Tensors:
    parts = _likes(x, group)
    plain.all_gather(parts, x.contiguous(), group)
    return tuple(parts)


def _reduce_scatter(parts: Sequence[Tensor], op: ReduceOp, group: ProcessGroup | None) -> Tensor:
    result = empty_like(parts[0])
    plain.reduce_scatter(result, list(parts), op, group)
    return result


def _all_reduce(x: Tensor, op: ReduceOp, group: ProcessGroup | None) -> Tensor:
    result = x.clone()
    plain.all_reduce(result, op, group)
    return result


def _all_to_all(outputs: Sequence[Tensor], inputs: Sequence[Tensor], group: ProcessGroup | None) -> _Tensors:
    received = tuple(empty_like(x) for x in outputs)
    plain.all_to_all(received, list(inputs), group)
    return received


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None) -> Tensor:
    """Combine the tensors of all processes, with gradients: those of the results are combined in the same way."""
    return _Exchange.apply(lambda x: _all_reduce(x, op, group), lambda grad: _all_reduce(grad, op, group), tensor)


def broadcast(tensor: Tensor, src: int, group: ProcessGroup | None = None) -> Tensor:
    """Copy the tensor of rank `src` to all, with gradients: `src` gets the sum of those of all results."""
    back = lambda grad: _reduce(grad, src, ReduceOp.SUM, group)  # noqa: E731
    return _Exchange.apply(lambda x: _broadcast(x, src, group), back, tensor)


def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None) -> Tensor:
    """Combine the tensors of all processes at rank `dst`, with gradients: all get that of its result."""
    return _Exchange.apply(lambda x: _reduce(x, dst, op, group), lambda grad: _broadcast(grad, dst, group), tensor)


def gather(tensor: Tensor, dst: int = 0, group: ProcessGroup | None = None) -> _Tensors:
    """Give the tensors of all processes to rank `dst`, with gradients; the others get zeros."""
    return _Exchange.apply(lambda x: _gather(x, dst, group), lambda *grads: _scatter(grads, dst, group), tensor)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: ProcessGroup | None = None) -> Tensor:
    """Give each process its tensor of the list of rank `src`, with gradients; all pass lists of the same shapes."""
    return _Exchange.apply(lambda *xs: _scatter(xs, src, group), lambda grad: _gather(grad, src, group), *tensors)


def all_gather(tensor: Tensor, group: ProcessGroup | None = None) -> _Tensors:
    """Give all processes the tensors of all, with gradients: each gets the sum of those of all its copies."""
    back = lambda *grads: _reduce_scatter(grads, ReduceOp.SUM, group)  # noqa: E731
    return _Exchange.apply(lambda x: _all_gather(x, group), back, tensor)


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None
) -> Tensor:
    """Combine the lists of all processes, and give each its part, with gradients; `output` gives the shape."""
    return _Exchange.apply(
        lambda *xs: _reduce_scatter(xs, op, group), lambda grad: _all_gather(grad, group), *input_list
    )


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: ProcessGroup | None = None
) -> _Tensors:
    """Give each process its tensor of the lists of all, with gradients; the first list gives the shapes."""
    shapes = [x.detach() for x in input_tensor_list]
    return _Exchange.apply(
        lambda *xs: _all_to_all(output_tensor_list, xs, group),
        lambda *grads: _all_to_all(shapes, grads, group),
        *input_tensor_list,
    )


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
) -> Tensor:
    """Divide one tensor among all processes and join what they send, with gradients; `output` gives the shape."""

    def exchanged(like: Tensor, x: Tensor, received: Sequence[int] | None, sent: Sequence[int] | None) -> Tensor:
        result = empty_like(like)
        plain.all_to_all_single(result, x.contiguous(), received, sent, group)
        return result

    source = input.detach()
    return _Exchange.apply(
        lambda x: exchanged(output, x, output_split_sizes, input_split_sizes),
        lambda grad: exchanged(source, grad, input_split_sizes, output_split_sizes),
        input,
    )
