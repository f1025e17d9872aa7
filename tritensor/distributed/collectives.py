"""Collectives: operations of all processes together, with PyTorch's names.

Every process must call the same ones in the same order. With `async_op=True` a collective returns a `Work` at once; its
tensors must not be touched until `wait()` has returned. Nothing here is recorded for gradients.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from typing import Any, TypeVar

from ..autograd.mode import no_grad
from ..errors import ArgumentError, DtypeError, ShapeError, require
from ..memory.deferred import Deferred
from ..operators.inplace import check_writable
from ..tensors import Tensor, tensors_in
from .checks import Call
from .groups import default_group, outside, ranks_of
from .process_group import ProcessGroup, Work
from .reduction import ReduceOp, check_reduction
from .rows import Rows

__all__ = ["all_gather", "all_gather_into_tensor", "all_gather_single", "all_reduce", "all_to_all"]
__all__ += ["all_to_all_single", "barrier", "broadcast", "gather", "reduce", "reduce_scatter"]
__all__ += ["reduce_scatter_single", "reduce_scatter_tensor", "scatter"]

_F = TypeVar("_F", bound=Callable[..., Any])


def in_group(function: _F) -> _F:
    """A collective that does nothing, with PyTorch's warning, for `GroupMember.NON_GROUP_MEMBER` as its group."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        # by position only an object of the function's own group parameter can be it: no tensor or rank is -100
        if any(outside(value) for value in (*args, *kwargs.values())):
            name = function.__name__
            warnings.warn(
                f"Running {name} on global rank {default_group().rank()} which does not belong to the given group.",
                stacklevel=2,
            )
            return None
        if Deferred.used:  # within a compiled function: what it noted is sent, or overwritten, once it is computed
            Deferred.rules.settle_all(tensors_in([args, kwargs]))
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def _check_tensor(operator: str, name: str, x: object) -> None:
    if not isinstance(x, Tensor):
        raise ArgumentError(
            f"Invalid function argument. Expected parameter `{name}` of {operator} to be of type "
            f"torch.Tensor, but got {type(x).__name__}."
        )


def _check_written(operator: str, name: str, x: Tensor) -> None:
    _check_tensor(operator, name, x)
    with no_grad():  # a leaf that requires grad may be overwritten: parameters are broadcast
        check_writable(x)


def _root(group: ProcessGroup, default: int | None = 0, **named: int | None) -> int:
    """The rank in a group of the process that one of two arguments names: `src` or `group_src`, of `named`."""
    given = [value for value in named.values() if value is not None]
    if len(given) == 2:
        raise ValueError(f"Can't specify both {' and '.join(reversed(named))}")
    if not given:
        if default is None:
            raise ValueError(f"Must specify {' or '.join(reversed(named))}")
        return default
    return next(ranks_of(group, **named))


def _check_list(operator: str, name: str, tensors: Sequence[Tensor], like: Tensor, group: ProcessGroup) -> None:
    """One tensor per process, each of the shape and dtype of `like`."""
    if not isinstance(tensors, (list, tuple)):
        raise ArgumentError(
            f"Invalid function argument. Expected parameter `{name}` of {operator} to be of type "
            f"List[torch.Tensor], but got {type(tensors).__name__}."
        )
    if len(tensors) != group.size():
        raise ShapeError(f"{operator}: {name} must have one tensor per rank, {group.size()}; it has {len(tensors)}")
    for position, x in enumerate(tensors):
        _check_tensor(operator, f"{name}[{position}]", x)
        if x.shape != like.shape or x.dtype is not like.dtype:
            raise (ShapeError if x.shape != like.shape else DtypeError)(
                f"{operator}: the tensors differ",
                f"{name}[{position}]: shape {tuple(x.shape)}, {x.dtype}",
                f"the other tensor: shape {tuple(like.shape)}, {like.dtype}",
            )


def _check_operator(operator: str, x: Tensor, op: ReduceOp) -> None:
    require(isinstance(op, ReduceOp), ArgumentError, "{}(): op must be a ReduceOp, not {}", operator, type(op).__name__)
    check_reduction(operator, x, op)


@in_group
def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Reduce (sum, ...) the tensors of all processes, in place, in every one of them.

    Args:
        tensor: any shape, the same everywhere; on the CPU or a CUDA device. Half precision is summed in float32.
        op: how to combine.
        group: None, for all processes.
        async_op: return a `Work` at once.

    Raises:
        ValueError: no `init_process_group`. DtypeError: no such operation on this dtype. ShapeError: memory that cannot
            be written to. DistError: processes disagree, one has left, or time is up.
    """
    made = default_group(group)
    _check_written("all_reduce", "tensor", tensor)
    _check_operator("all_reduce", tensor, op)
    call = Call("all_reduce", 0, op.name, tuple(tensor.shape), tensor.dtype)
    return made.run(call, lambda transport: transport.all_reduce(tensor, op), async_op, [tensor])


@in_group
def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduce the tensors of all processes to that of rank `dst` (`group_dst` in the group), as `all_reduce`."""
    made = default_group(group)
    _check_written("reduce", "tensor", tensor)
    _check_operator("reduce", tensor, op)
    root = _root(made, dst=dst, group_dst=group_dst)
    call = Call("reduce", 0, f"{op.name}, dst={made.ranks[root]}", tuple(tensor.shape), tensor.dtype)
    return made.run(call, lambda transport: transport.reduce(tensor, root, op), async_op, [tensor])


@in_group
def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Broadcast the tensor of rank `src`: copy it over that of every other process.

    Args:
        tensor: the same shape and dtype everywhere.
        src: the rank in the job whose elements are copied; the group's first unless given.
        group: None, for all processes.
        async_op: return a `Work` at once.
        group_src: its rank in the group, instead.

    Raises:
        ValueError: no `init_process_group`. RangeError: no such rank. ShapeError: memory that cannot be written to.
        DistError: processes disagree, one has left, or time is up.
    """
    made = default_group(group)
    _check_written("broadcast", "tensor", tensor)
    root = _root(made, src=src, group_src=group_src)
    call = Call("broadcast", 0, f"src={made.ranks[root]}", tuple(tensor.shape), tensor.dtype)
    return made.run(call, lambda transport: transport.broadcast(tensor, root), async_op, [tensor])


@in_group
def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Gather the tensors of all processes in every process, in `tensor_list` by rank.

    Args:
        tensor_list: one tensor per process to write to, of the shape and dtype of `tensor`.
        tensor: the tensor of this process; the same shape and dtype everywhere.
        group: None, for all processes.
        async_op: return a `Work` at once.

    Raises:
        ValueError: no `init_process_group`. ShapeError, DtypeError: the list does not fit.
        DistError: processes disagree, one has left, or time is up.
    """
    made = default_group(group)
    _check_tensor("all_gather", "tensor", tensor)
    _check_list("all_gather", "tensor_list", tensor_list, tensor, made)
    for position, part in enumerate(tensor_list):
        _check_written("all_gather", f"tensor_list[{position}]", part)
    call = Call("all_gather", 0, "", tuple(tensor.shape), tensor.dtype)
    return made.run(call, lambda transport: transport.all_gather(list(tensor_list), tensor), async_op, tensor_list)


def _rows(operator: str, name: str, whole: Tensor, part: Tensor, group: ProcessGroup) -> Sequence[Tensor]:
    """The parts of `whole` by rank, as views of it: it holds those of all processes one after another, or stacked."""
    _check_tensor(operator, name, whole)
    shape, size = tuple(part.shape), group.size()
    joined = (size * shape[0], *shape[1:]) if shape else (size,)
    if whole.numel() != size * part.numel() or whole.dtype is not part.dtype:
        raise (DtypeError if whole.dtype is not part.dtype else ShapeError)(
            f"{operator}: {name} must hold {size} parts",
            f"{name}: shape {tuple(whole.shape)}, {whole.dtype}",
            f"one part: shape {shape}, {part.dtype}",
            remedy=f"give it the shape {joined}",
        )
    with no_grad():
        flat = whole.detach()
        if whole.is_contiguous():
            return Rows(flat.view(size, *shape))
        if tuple(whole.shape) == (size, *shape):
            return [flat[rank] for rank in range(size)]
        if tuple(whole.shape) == joined:
            return list(flat.chunk(size))
    raise ShapeError(f"{operator}: {name} of shape {tuple(whole.shape)} is not contiguous")


def coalesced(group: ProcessGroup, x: Tensor) -> AbstractContextManager[None]:
    """What is started in the block for tensors like x is one operation, if the transport can join several."""
    joined = getattr(group.transport(x), "coalesced", None)
    return nullcontext() if joined is None else joined()


@in_group
def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Gather the tensors (n, ...) of all processes into one: (ranks * n, ...) or (ranks, n, ...)."""
    made = default_group(group)
    operator = "all_gather_into_tensor"
    _check_tensor(operator, "input_tensor", input_tensor)
    parts = _rows(operator, "output_tensor", output_tensor, input_tensor, made)
    _check_written(operator, "output_tensor", output_tensor)
    call = Call(operator, 0, "", tuple(input_tensor.shape), input_tensor.dtype)
    return made.run(call, lambda transport: transport.all_gather(parts, input_tensor), async_op, [output_tensor])


all_gather_single = all_gather_into_tensor


@in_group
def gather(
    tensor: Tensor,
    gather_list: Sequence[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Gather the tensors of all processes at rank `dst`, in `gather_list` by rank.

    Args:
        tensor: the tensor of this process; the same shape and dtype everywhere.
        gather_list: at `dst` one tensor per process to write to; None elsewhere.
        dst: the rank in the job that gets them; the group's first unless given.
        group: None, for all processes.
        async_op: return a `Work` at once.
        group_dst: its rank in the group, instead.

    Raises:
        ValueError: no `init_process_group`, or a list where there must be none, or none where there must be one.
        ShapeError, DtypeError: the list does not fit. DistError: as `all_reduce`.
    """
    made = default_group(group)
    _check_tensor("gather", "tensor", tensor)
    root = _root(made, dst=dst, group_dst=group_dst)
    _check_at_root("gather_list", gather_list, root, "destination", made)
    if gather_list is not None and made.rank() == root:
        _check_list("gather", "gather_list", gather_list, tensor, made)
        for position, part in enumerate(gather_list):
            _check_written("gather", f"gather_list[{position}]", part)
    call = Call("gather", 0, f"dst={made.ranks[root]}", tuple(tensor.shape), tensor.dtype)
    parts = list(gather_list) if gather_list and made.rank() == root else None
    return made.run(call, lambda transport: transport.gather(parts, tensor, root), async_op, parts or [tensor])


def _check_at_root(name: str, tensors: Sequence[Tensor] | None, root: int, role: str, group: ProcessGroup) -> None:
    if group.rank() == root and not tensors:
        raise ValueError(f"Argument ``{name}`` must be specified on {role} rank.")
    if group.rank() != root and tensors:
        raise ValueError(f"Argument ``{name}`` must NOT be specified on non-{role} ranks.")


@in_group
def scatter(
    tensor: Tensor,
    scatter_list: Sequence[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Scatter the list of rank `src`: give every process its tensor.

    Args:
        tensor: what to write to; the same shape and dtype everywhere.
        scatter_list: at `src` one tensor per process; None elsewhere.
        src: the rank in the job that has them; the group's first unless given.
        group: None, for all processes.
        async_op: return a `Work` at once.
        group_src: its rank in the group, instead.

    Raises:
        ValueError: no `init_process_group`, or a list where there must be none, or none where there must be one.
        ShapeError, DtypeError: the list does not fit. DistError: as `all_reduce`.
    """
    made = default_group(group)
    _check_written("scatter", "tensor", tensor)
    root = _root(made, src=src, group_src=group_src)
    _check_at_root("scatter_list", scatter_list, root, "source", made)
    parts = list(scatter_list) if scatter_list and made.rank() == root else None
    if parts is not None:
        _check_list("scatter", "scatter_list", parts, tensor, made)
    call = Call("scatter", 0, f"src={made.ranks[root]}", tuple(tensor.shape), tensor.dtype)
    return made.run(call, lambda transport: transport.scatter(tensor, parts, root), async_op, [tensor])


@in_group
def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce the lists of all processes and scatter: each process gets the result for its rank's entry.

    Args:
        output: what to write to.
        input_list: one tensor per process, of the shape and dtype of `output`.
        op: how to combine.
        group: None, for all processes.
        async_op: return a `Work` at once.

    Raises:
        ValueError: no `init_process_group`. ShapeError, DtypeError: the list does not fit, or no such operation on this
            dtype. DistError: processes disagree, one has left, or time is up.
    """
    made = default_group(group)
    _check_written("reduce_scatter", "output", output)
    _check_list("reduce_scatter", "input_list", input_list, output, made)
    _check_operator("reduce_scatter", output, op)
    call = Call("reduce_scatter", 0, op.name, tuple(output.shape), output.dtype)
    return made.run(call, lambda transport: transport.reduce_scatter(output, list(input_list), op), async_op, [output])


@in_group
def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduce and scatter one tensor: (ranks * n, ...) or (ranks, n, ...) for an output of shape (n, ...)."""
    made = default_group(group)
    operator = "reduce_scatter_tensor"
    _check_written(operator, "output", output)
    parts = _rows(operator, "input", input, output, made)
    _check_operator(operator, output, op)
    call = Call(operator, 0, op.name, tuple(output.shape), output.dtype)
    return made.run(call, lambda transport: transport.reduce_scatter(output, parts, op), async_op, [output])


reduce_scatter_single = reduce_scatter_tensor


@in_group
def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Give every process its tensor of the lists of all: entry i of mine becomes entry `my rank` of rank i.

    Args:
        output_tensor_list: one tensor per process to write to; sizes may differ, as those that are sent.
        input_tensor_list: one tensor per process to send.
        group: None, for all processes.
        async_op: return a `Work` at once.

    Raises:
        ValueError: no `init_process_group`. ShapeError: lists of other lengths. DtypeError: dtypes differ.
        DistError: processes disagree about sizes or dtypes, one has left, or time is up.
    """
    made = default_group(group)
    for name, tensors in (("output_tensor_list", output_tensor_list), ("input_tensor_list", input_tensor_list)):
        if len(tensors) != made.size():
            raise ShapeError(f"all_to_all: {name} must have one tensor per rank, {made.size()}; it has {len(tensors)}")
        for position, x in enumerate(tensors):
            (_check_written if tensors is output_tensor_list else _check_tensor)("all_to_all", f"{name}[{position}]", x)
            if x.dtype is not input_tensor_list[0].dtype:
                raise DtypeError(f"all_to_all: dtypes differ: {x.dtype} and {input_tensor_list[0].dtype}")
    return _exchanged(
        "all_to_all", made, list(output_tensor_list), list(input_tensor_list), async_op, output_tensor_list
    )


def _exchanged(
    operator: str,
    made: ProcessGroup,
    outputs: list[Tensor],
    inputs: list[Tensor],
    async_op: bool,
    tensors: Sequence[Tensor],
) -> Work | None:
    sizes = [x.numel() for x in inputs], [x.numel() for x in outputs]
    call = Call(operator, 0, "", None, inputs[0].dtype, sizes)
    return made.run(call, lambda transport: transport.all_to_all(outputs, inputs), async_op, tensors)


@in_group
def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Divide one tensor along its first dimension among all processes, and join what they send, as `all_to_all`.

    Args:
        output: what to write to.
        input: what to divide.
        output_split_sizes: how many rows come from each process; the same from each unless given.
        input_split_sizes: how many rows each process gets; the same number unless given.
        group: None, for all processes.
        async_op: return a `Work` at once.

    Raises:
        RuntimeError: rows that cannot be divided so. Else as `all_to_all`.
    """
    made = default_group(group)
    _check_written("all_to_all_single", "output", output)
    _check_tensor("all_to_all_single", "input", input)
    if output.dtype is not input.dtype:
        raise DtypeError(f"all_to_all_single: dtypes differ: {output.dtype} and {input.dtype}")
    parts = []
    for name, x, sizes in (("output", output, output_split_sizes), ("input", input, input_split_sizes)):
        if not sizes:
            if x.shape[0] % made.size():
                raise ShapeError(
                    "Tensor's dim 0 does not divide equally across group size", f"{name}: {tuple(x.shape)}"
                )
            sizes = [x.shape[0] // made.size()] * made.size()
        if len(sizes) != made.size():
            raise ShapeError("Number of tensor splits not equal to group size", f"{name}_split_sizes={list(sizes)}")
        if sum(sizes) != x.shape[0]:
            raise ShapeError(
                "Split sizes doesn't match total dim 0 size", f"{name}: {tuple(x.shape)}, splits {list(sizes)}"
            )
        with no_grad():
            parts.append(list(x.detach().split(list(sizes))))
    return _exchanged("all_to_all_single", made, parts[0], parts[1], async_op, [output])


@in_group
def barrier(
    group: ProcessGroup | None = None,
    async_op: bool = False,
    device_ids: Sequence[int] | None = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Wait until every process has called this.

    Args:
        group: None, for all processes.
        async_op: return a `Work` at once.
        device_ids: accepted, unused.
        timeout: how long to wait; as the group's unless given.

    Raises:
        ValueError: no `init_process_group`. DistError: as `all_reduce`.
    """
    made = default_group(group)
    work = made.run(Call("barrier", 0), lambda transport: transport.barrier(), True)
    if async_op:
        return work
    assert work is not None
    work.wait(timeout)
    return None
