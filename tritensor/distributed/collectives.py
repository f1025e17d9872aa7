"""Collectives: operations of all processes together, with PyTorch's names.

Every process must call the same ones in the same order. With `async_op=True` a collective returns a `Work` at once; its
tensors must not be touched until `wait()` has returned. Nothing here is recorded for gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autograd.mode import no_grad
from ..errors import ArgumentError, DtypeError, RangeError, ShapeError, require
from ..operators.inplace import check_writable
from ..tensors import Tensor
from .backends.mpi import check_reduction
from .checks import Call
from .process_group import ProcessGroup, Work, default_group
from .reduce_op import ReduceOp


def _check_tensor(operator: str, name: str, x: object) -> None:
    if not isinstance(x, Tensor):
        raise ArgumentError(
            f"Invalid function argument. Expected parameter `{name}` of {operator} to be of type "
            f"torch.Tensor, but got {type(x).__name__}."
        )


def _check_written(operator: str, name: str, x: Any) -> None:
    _check_tensor(operator, name, x)
    with no_grad():  # a leaf that requires grad may be overwritten: parameters are broadcast
        check_writable(x)


def _check_rank(name: str, rank: int, group: ProcessGroup) -> None:
    if not isinstance(rank, int) or not 0 <= rank < group.size:
        raise RangeError(f"{name}={rank!r} is no rank of this job, which has ranks 0 to {group.size - 1}")


def _check_list(operator: str, name: str, tensors: Any, like: Tensor, group: ProcessGroup) -> None:
    """One tensor per process, each of the shape and dtype of `like`."""
    if not isinstance(tensors, (list, tuple)):
        raise ArgumentError(
            f"Invalid function argument. Expected parameter `{name}` of {operator} to be of type "
            f"List[torch.Tensor], but got {type(tensors).__name__}."
        )
    if len(tensors) != group.size:
        raise ShapeError(f"{operator}: {name} must have one tensor per rank, {group.size}; it has {len(tensors)}")
    for position, x in enumerate(tensors):
        _check_tensor(operator, f"{name}[{position}]", x)
        if x.shape != like.shape or x.dtype is not like.dtype:
            raise (ShapeError if x.shape != like.shape else DtypeError)(
                f"{operator}: the tensors differ",
                f"{name}[{position}]: shape {tuple(x.shape)}, {x.dtype}",
                f"the other tensor: shape {tuple(like.shape)}, {like.dtype}",
            )


def _check_operator(operator: str, x: Tensor, op: Any) -> None:
    require(isinstance(op, ReduceOp), ArgumentError, "{}(): op must be a ReduceOp, not {}", operator, type(op).__name__)
    check_reduction(operator, x, op)


def all_reduce(
    tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Combine the tensors of all processes, in place, in every one of them.

    Args:
        tensor: any shape, the same everywhere; on the CPU or a CUDA device. Half precision is summed in float32.
        op: how to combine.
        group: None, for all processes.
        async_op: return a `Work` at once.

    Raises:
        ValueError: no `init_process_group`. DtypeError: no such operation on this dtype. ShapeError: memory that cannot
            be written to. DistError: processes disagree (when checked), one has left, or time is up.
    """
    made = default_group(group)
    _check_written("all_reduce", "tensor", tensor)
    _check_operator("all_reduce", tensor, op)
    call = Call("all_reduce", 0, op.name, tuple(tensor.shape), tensor.dtype)
    return made.run(call, lambda: made.backend.all_reduce(tensor, op), async_op)


def reduce(
    tensor: Tensor, dst: int = 0, op: ReduceOp = ReduceOp.SUM, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Combine the tensors of all processes in that of rank `dst`; the others are unchanged. As `all_reduce`."""
    made = default_group(group)
    _check_written("reduce", "tensor", tensor)
    _check_operator("reduce", tensor, op)
    _check_rank("dst", dst, made)
    call = Call("reduce", 0, f"{op.name}, dst={dst}", tuple(tensor.shape), tensor.dtype)
    return made.run(call, lambda: made.backend.reduce(tensor, dst, op), async_op)


def broadcast(tensor: Tensor, src: int = 0, group: ProcessGroup | None = None, async_op: bool = False) -> Work | None:
    """Copy the tensor of rank `src` over that of every other process.

    Args:
        tensor: the same shape and dtype everywhere.
        src: the rank whose elements are copied.
        group: None, for all processes.
        async_op: return a `Work` at once.

    Raises:
        ValueError: no `init_process_group`. RangeError: no such rank. ShapeError: memory that cannot be written to.
        DistError: processes disagree (when checked), one has left, or time is up.
    """
    made = default_group(group)
    _check_written("broadcast", "tensor", tensor)
    _check_rank("src", src, made)
    call = Call("broadcast", 0, f"src={src}", tuple(tensor.shape), tensor.dtype)
    return made.run(call, lambda: made.backend.broadcast(tensor, src), async_op)


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Give every process the tensors of all, in `tensor_list` by rank.

    Args:
        tensor_list: one tensor per process to write to, of the shape and dtype of `tensor`.
        tensor: the tensor of this process; the same shape and dtype everywhere.
        group: None, for all processes.
        async_op: return a `Work` at once.

    Raises:
        ValueError: no `init_process_group`. ShapeError, DtypeError: the list does not fit.
        DistError: processes disagree (when checked), one has left, or time is up.
    """
    made = default_group(group)
    _check_tensor("all_gather", "tensor", tensor)
    _check_list("all_gather", "tensor_list", tensor_list, tensor, made)
    for position, part in enumerate(tensor_list):
        _check_written("all_gather", f"tensor_list[{position}]", part)
    call = Call("all_gather", 0, "", tuple(tensor.shape), tensor.dtype)
    return made.run(call, lambda: made.backend.all_gather(list(tensor_list), tensor), async_op)


def _rows(operator: str, name: str, whole: Any, part: Tensor, group: ProcessGroup) -> list[Tensor]:
    """The parts of `whole` by rank, as views of it: it holds those of all processes one after another, or stacked."""
    _check_tensor(operator, name, whole)
    shape = tuple(part.shape)
    joined = (group.size * shape[0], *shape[1:]) if shape else (group.size,)
    if tuple(whole.shape) not in (joined, (group.size, *shape)) or whole.dtype is not part.dtype:
        raise (DtypeError if whole.dtype is not part.dtype else ShapeError)(
            f"{operator}: {name} must hold {group.size} parts",
            f"{name}: shape {tuple(whole.shape)}, {whole.dtype}",
            f"one part: shape {shape}, {part.dtype}",
            remedy=f"give it the shape {joined}",
        )
    with no_grad():
        flat = whole.detach()
        if tuple(whole.shape) == (group.size, *shape):
            return [flat[rank] for rank in range(group.size)]
        return [flat.narrow(0, rank * shape[0], shape[0]) for rank in range(group.size)]


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: ProcessGroup | None = None, async_op: bool = False
) -> Work | None:
    """Gathers the tensors of all processes into one: (ranks * n, ...) or (ranks, n, ...) for an input of shape (n,
    ...)."""
    made = default_group(group)
    operator = "all_gather_into_tensor"
    _check_tensor(operator, "input_tensor", input_tensor)
    parts = _rows(operator, "output_tensor", output_tensor, input_tensor, made)
    _check_written(operator, "output_tensor", output_tensor)
    call = Call(operator, 0, "", tuple(input_tensor.shape), input_tensor.dtype)
    return made.run(call, lambda: made.backend.all_gather(parts, input_tensor), async_op)


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Combine the lists of all processes, and give each process the result for the entry of its own rank.

    Args:
        output: what to write to.
        input_list: one tensor per process, of the shape and dtype of `output`.
        op: how to combine.
        group: None, for all processes.
        async_op: return a `Work` at once.

    Raises:
        ValueError: no `init_process_group`. ShapeError, DtypeError: the list does not fit, or no such operation on this
            dtype. DistError: processes disagree (when checked), one has left, or time is up.
    """
    made = default_group(group)
    _check_written("reduce_scatter", "output", output)
    _check_list("reduce_scatter", "input_list", input_list, output, made)
    _check_operator("reduce_scatter", output, op)
    call = Call("reduce_scatter", 0, op.name, tuple(output.shape), output.dtype)
    return made.run(call, lambda: made.backend.reduce_scatter(output, list(input_list), op), async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces and scatters one tensor: (ranks * n, ...) or (ranks, n, ...) for an output of shape (n, ...)."""
    made = default_group(group)
    operator = "reduce_scatter_tensor"
    _check_written(operator, "output", output)
    parts = _rows(operator, "input", input, output, made)
    _check_operator(operator, output, op)
    call = Call(operator, 0, op.name, tuple(output.shape), output.dtype)
    return made.run(call, lambda: made.backend.reduce_scatter(output, parts, op), async_op)


def barrier(group: ProcessGroup | None = None, async_op: bool = False) -> Work | None:
    """Wait until every process has called this. Raises ValueError without `init_process_group`, else as
    `all_reduce`."""
    made = default_group(group)
    return made.run(Call("barrier", 0), made.backend.barrier, async_op)
