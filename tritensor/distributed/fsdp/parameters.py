"""The parameters that are gathered and whose gradients are reduced together: those of one call of `fully_shard`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

from ... import cuda, drivers
from ...autograd.mode import no_grad
from ...drivers import ledger
from ...errors import explain
from ...functional.creation.creation import empty
from ...functional.views.joining import cat, stack
from ...memory.array import form_of
from ...memory.buffer import meta
from ...memory.deferred import Deferred
from ...tensors import Tensor, wrap
from ...types import devices, dtypes
from ...types.layout import contiguous_strides
from .. import collectives
from ..device_mesh import DeviceMesh
from ..process_group import ProcessGroup, Work
from ..reduction import ReduceOp
from ..tensor.dtensor import DTensor, parameter, plain
from ..tensor.placements import Placement, Replicate, Shard, Spec, _StridedShard, padded, part
from .policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy

# A part of at least so many bytes is sent from and to where it lies; smaller ones are joined, at the price of copies.
_ALONE = 1 << 18


_sides: dict[Any, cuda.Stream] = {}


def _behind(device: devices.device) -> cuda.Stream:
    """A stream of a device in which nothing computes, to wait for one message before the next."""
    stream = _sides.get(device)
    if stream is None or stream.driver is not drivers.require():
        stream = _sides[device] = cuda.Stream(device)
    return stream


class Meshes(NamedTuple):
    """The dimensions of a mesh of `fully_shard`: that over which parameters are divided, and one of copies, if any."""

    mesh: DeviceMesh
    shard: int
    replicate: int | None

    @property
    def group(self) -> ProcessGroup:
        """The ranks among which parameters are divided."""
        return self.mesh.get_group(self.shard)

    @property
    def copies(self) -> ProcessGroup | None:
        """The ranks that have the same part."""
        return None if self.replicate is None else self.mesh.get_group(self.replicate)


class ShardedParameter:
    """A parameter of which each rank keeps a part, and the whole while a module computes with it.

    The whole is the parameter that the module had: while it is not gathered, its memory is that of a meta tensor. Nodes
    of the graph keep the tensor itself, so they find what is gathered for the backward pass.

    Attributes:
        owners: the modules that have it, and its name in each.
        full: the whole. sharded: the part, a DTensor.
        dim: the dimension that is divided.
    """

    def __init__(
        self,
        owners: list[tuple[Any, str]],
        full: Tensor,
        place: Placement | None,
        meshes: Meshes,
        device: devices.device,
        offload: OffloadPolicy,
    ) -> None:
        self.owners, self.full = owners, full
        self.shape = tuple(full._data.shape)  # of a DTensor of tensor parallelism that of its part
        self.dim = place.dim % len(self.shape) if isinstance(place, Shard) else 0
        if not self.shape:
            raise ValueError(
                "fully_shard doesn't support scalar parameters. Change " + owners[0][1] + " to a 1D tensor with numel "
                "equal to 1."
            )
        self.meshes, self.count = meshes, meshes.mesh.size(meshes.shard)
        self.index = meshes.mesh.get_local_rank(meshes.shard)
        self.step = -(-self.shape[self.dim] // self.count)
        self.needs = full._needs
        rows = part(plain(full), self.dim, self.count, self.index)
        place_of = devices.cpu if isinstance(offload, CPUOffloadPolicy) else device
        own = rows.clone() if full.is_meta else rows.to(place_of).clone()
        if isinstance(offload, CPUOffloadPolicy) and offload.pin_memory and device.type == "cuda" and not full.is_meta:
            own = own.pin_memory()
        self.accumulated: Tensor | None = None
        self._lies = self._spec(full)
        self.set_sharded(parameter(own, self._lies, full._needs))
        vars(full)["_gathered_on"] = device  # whenever it is there
        self.forget()

    def _spec(self, full: Tensor) -> Spec:
        """How the parameter lies: divided by this mesh, after that of tensor parallelism if it is a DTensor."""
        mesh, shard, _ = self.meshes
        placements: list[Placement] = [Shard(self.dim) if axis == shard else Replicate() for axis in range(mesh.ndim)]
        if not isinstance(full, DTensor):
            return Spec(mesh, tuple(placements), self.shape)
        inner = full._spec
        root, names = mesh._root, (*(mesh.mesh_dim_names or ()), *(inner.mesh.mesh_dim_names or ()))
        if inner.mesh._root is not root or len(names) != mesh.ndim + inner.mesh.ndim:
            raise ValueError(
                explain(
                    "FSDP requires the DP and TP mesh to have the same parent mesh",
                    f"the DP mesh is {mesh}, the TP mesh {inner.mesh}",
                    remedy="take both from one init_device_mesh(..., mesh_dim_names=('dp', 'tp'))",
                )
            )
        factor = 1
        for axis, each in enumerate(inner.placements):
            factor *= inner.mesh.size(axis) if each.is_shard(self.dim) else 1
        if factor > 1:
            placements[shard] = _StridedShard(self.dim, factor)
        return Spec(root[names], (*placements, *inner.placements), tuple(inner.shape))

    def set_sharded(self, part: DTensor) -> None:
        """Give the modules the part."""
        for module, name in self.owners:
            module._parameters[name] = part

    @property
    def sharded(self) -> DTensor:
        """The part: what the module has while it is not gathered, which may have been loaded or moved since."""
        found = self.owners[0][0]._parameters[self.owners[0][1]]
        if found is self.full:
            return self._kept
        if not isinstance(found, DTensor) or found._spec[1:] != self._lies[1:]:
            module, name = self.owners[0]
            raise RuntimeError(
                explain(
                    f"fully_shard: the parameter {name} of {type(module).__name__} has changed since it was divided",
                    f"it was {tuple(self._lies.shape)} as {list(self._lies.placements)}, and is now "
                    + (
                        f"{tuple(found.shape)} as {list(found.placements)}"
                        if isinstance(found, DTensor)
                        else repr(found)
                    ),
                    remedy="replace parameters before fully_shard, or write into them: param.copy_(...)",
                )
            )
        return found

    @property
    def gradient(self) -> Tensor:
        """The gradient of the whole, which has come."""
        assert self.accumulated is not None
        return self.accumulated

    def accumulate(self, dtype: dtypes.dtype | None) -> None:
        """Add the gradient that has come to those of the passes before, which are kept in the dtype of averages."""
        grad, self.full._grad = self.full._grad, None
        if grad is not None:
            before = self.accumulated
            self.accumulated = (grad if dtype is None else grad.to(dtype)) if before is None else before.add_(grad)

    def keep(self) -> None:
        """Remember the part, and give the modules the whole."""
        self._kept = self.sharded
        for module, name in self.owners:
            module._parameters[name] = self.full

    def forget(self) -> None:
        """Free the memory of the whole."""
        data = self.full._data
        self.full._data = meta(form_of(self.shape, contiguous_strides(self.shape), data.dtype, devices.meta, 0))
        self.full._forget()

    def gathered(self, whole: Tensor) -> None:
        """Take the memory of the whole: the parts of all ranks one after the other."""
        size = self.shape[self.dim]
        if self.dim:
            whole = cat(list(whole.chunk(self.count)), self.dim)
        self.full._data = whole.narrow(self.dim, 0, size)._data
        self.full._forget()


class Group:
    """The parameters of one call of `fully_shard`.

    Attributes:
        name: of the module, for messages.
        reshard_after_forward: whether the whole is freed between forward and backward.
        gradients_sync, reshard_after_backward, all_reduces: as `FSDPModule`'s methods set them.
        divide: what sums of gradients are divided by instead of the number of ranks.
    """

    def __init__(
        self, params: list[ShardedParameter], meshes: Meshes, device: devices.device, policy: MixedPrecisionPolicy
    ) -> None:
        self.params, self.meshes, self.device, self.policy = params, meshes, device, policy
        self.name = ""
        self.reshard_after_forward: bool | None = None
        self.gradients_sync = self.reshard_after_backward = self.all_reduces = True
        self.divide: float | None = None
        self.whole = False  # whether modules have the whole
        self.left = 0  # gradients that have not come yet in this backward pass
        # Parameters that need no gradient may be needed for those of modules below, after the last of this group has
        # come: until the gradients of the inputs are there, or to the end of the pass if these need none.
        self.frozen = not all(each.needs for each in params)
        self.inputs_left = 0
        self._gathered_at: list[int] = []  # the versions of the parts that were gathered
        self._gathering: list[tuple[Work | None, Callable[[], None]]] = []
        self._reducing: list[tuple[Work | None, Callable[[], None]]] = []
        self.sending: list[Group] = []  # of all groups of a root, the one whose gradients are on their way
        for each in params:
            if each.needs:
                each.full.register_post_accumulate_grad_hook(self._arrived)

    # ---- gathering -------------------------------------------------------------------------------------------

    def _lots(self, params: list[ShardedParameter], dtype: Callable[[ShardedParameter], Any]) -> Iterator[list[Any]]:
        """The parameters that are sent by one message each: large ones alone, others with those of their dtype."""
        joined: dict[Any, list[ShardedParameter]] = {}
        for each in params:
            kind = dtype(each)
            nbytes = each.step * prod(each.shape) // max(each.shape[each.dim], 1) * kind.itemsize
            if nbytes >= _ALONE:
                yield [each]
            else:
                joined.setdefault(kind, []).append(each)
        yield from joined.values()

    @no_grad()
    def gather(self) -> None:
        """Start to gather the whole parameters, unless they are there or coming."""
        if self.whole or self._gathering:
            return
        self._gathered_at = self._versions()
        lots = []
        for lot in self._lots(self.params, lambda each: self.policy.param_dtype or each.sharded.dtype):
            rows = [self._outgoing(each) for each in lot]
            own = rows[0] if len(lot) == 1 else cat([row.reshape(-1) for row in rows])
            lots.append((lot, [row.shape for row in rows], own))
        if not lots:
            return
        with ledger.memory_for("gathered parameters"), collectives.coalesced(self.meshes.group, lots[0][2]):
            for lot, shapes, own in lots:
                whole = empty((lot[0].count, *own.shape), dtype=own.dtype, device=self.device)
                work = collectives.all_gather_into_tensor(whole, own, self.meshes.group, async_op=True)
                take = partial(lot[0].gathered, whole.flatten(0, 1)) if len(lot) == 1 else None
                self._gathering.append((work, take or partial(self._divide, whole, lot, shapes)))

    def _outgoing(self, each: ShardedParameter) -> Tensor:
        """A part in the dtype and on the device of the computation, with the rows that other ranks have more."""
        row = plain(each.sharded)
        row = row.to(self.device, self.policy.param_dtype if row.is_floating_point() else None, non_blocking=True)
        return padded(row, each.dim, each.step)

    @staticmethod
    def _divide(whole: Tensor, lot: Sequence[ShardedParameter], shapes: Sequence[Any]) -> None:
        start = 0
        for each, shape in zip(lot, shapes, strict=True):
            piece = whole.narrow(1, start, shape.numel()).reshape(each.count * shape[0], *shape[1:])
            each.gathered(piece if piece.is_contiguous() and whole.shape[0] > 1 else piece.clone())
            start += shape.numel()

    def renew(self) -> None:
        """Free what was gathered before the parts were changed: by a pass that did not come to it, or an evaluation."""
        if (self.whole or self._gathering) and self._gathered_at != self._versions():
            self.reshard()

    def _versions(self) -> list[int]:
        return [(each._kept if self.whole else each.sharded)._version for each in self.params]

    @no_grad()
    def unshard(self) -> None:
        """Give the modules whole parameters."""
        if not self.whole:
            self.gather()
            self._take_whole()

    def _take_whole(self) -> None:
        for work, finish in self._gathering:
            if work is not None:
                work.wait()
            finish()
        self._gathering = []
        for each in self.params:
            each.keep()
        self.whole = True

    @no_grad()
    def reshard(self) -> None:
        """Give the modules the parts, and free the whole."""
        if self._gathering:
            self._take_whole()
        if not self.whole:
            return
        for each in self.params:
            each.set_sharded(each._kept)
            each.forget()
        self.whole = False

    # ---- reducing --------------------------------------------------------------------------------------------

    def expect(self) -> None:
        """Begin a backward pass."""
        self.left = sum(each.needs for each in self.params)

    def _arrived(self, full: Tensor) -> None:
        self.left -= 1
        if self.left == 0 and not (self.inputs_left or self.frozen):
            self.finish_backward()

    def watch(self, inputs: Iterable[Tensor]) -> None:
        """Look for the gradients of the inputs of a group with parameters that need none."""
        for x in inputs:
            if x.requires_grad:
                self.inputs_left += 1
                x.register_hook(self._input_arrived)

    def _input_arrived(self, grad: Tensor) -> None:
        self.inputs_left -= 1
        if self.left == 0 and not self.inputs_left and self.whole:
            self.finish_backward()

    @no_grad()
    def finish_backward(self) -> None:
        """All gradients of this pass are there: average them over the ranks, and free the whole parameters."""
        self.left = 0
        if self.reshard_after_backward:
            self.reshard()
        if self.gradients_sync:
            self.reduce()
        else:
            with ledger.memory_for("gradients that are kept whole"):
                for each in self.params:
                    each.accumulate(self.policy.reduce_dtype)

    def reduce(self) -> None:
        """Start to average the gradients; each rank gets those of its part."""
        self.wait()
        # as in PyTorch the whole gradients of two groups are not on their way at once, which would take memory
        for each in self.sending:
            each.wait()
        self.sending.clear()
        with ledger.memory_for("gradients that are sent"):
            self._reduce()

    def _reduce(self) -> None:
        for each in self.params:
            each.accumulate(self.policy.reduce_dtype)
        given = [each for each in self.params if each.accumulated is not None]
        lots = []
        for lot in self._lots(given, lambda each: self.policy.reduce_dtype or each.gradient.dtype):
            kind = self.policy.reduce_dtype or lot[0].gradient.dtype
            pieces = [self._pieces(each, kind) for each in lot]
            whole = pieces[0] if len(lot) == 1 else cat([each.reshape(each.shape[0], -1) for each in pieces], 1)
            lots.append((lot, [each.shape[1:] for each in pieces], whole))
        if lots:
            self._start(lots)
        for each in given:
            each.accumulated = None

    def _start(self, lots: list[Any]) -> None:
        """Start to average; what is divided among copies of the model, too, without waiting for the first sum."""
        op = ReduceOp.AVG if self.divide is None else ReduceOp.SUM
        begun = []
        if not self.meshes.group.transport(lots[0][2]).host_waits:
            self.sending.append(self)
        with collectives.coalesced(self.meshes.group, lots[0][2]):
            for lot, shapes, whole in lots:
                own = empty(whole.shape[1:], dtype=whole.dtype, device=whole.device)
                work = collectives.reduce_scatter_tensor(own, whole, op, self.meshes.group, async_op=True)
                begun.append((lot, shapes, own, work))
        copies = self.meshes.copies if self.all_reduces else None
        for lot, shapes, own, work in begun:
            chained = copies is not None and not copies.transport(own).host_waits
            if chained and work is not None:
                with cuda.stream(_behind(own.device)):
                    work.wait()
                    work = collectives.all_reduce(own, op, copies, async_op=True)
            later = None if chained else copies
            self._reducing.append((work, partial(self._take, own, lot, shapes, later)))

    def _pieces(self, each: ShardedParameter, kind: dtypes.dtype) -> Tensor:
        """The gradient of the whole in the parts of all ranks, each as long as the first: (ranks, ...)."""
        grad = plain(each.gradient).to(kind)
        if each.dim == 0 and grad.shape[0] == each.count * each.step:
            return grad.contiguous().unflatten(0, (each.count, each.step))
        rows = [padded(part(grad, each.dim, each.count, rank), each.dim, each.step) for rank in range(each.count)]
        return stack(rows)

    def _take(
        self, own: Tensor, lot: Sequence[ShardedParameter], shapes: Sequence[Any], copies: ProcessGroup | None
    ) -> None:
        """Add the averages to the gradients of the parts, after those of the ranks that have the same part."""
        if self.divide is not None:
            own.div_(self.divide)
        if copies is not None:
            collectives.all_reduce(own, ReduceOp.AVG if self.divide is None else ReduceOp.SUM, copies)
        flat, start = own.reshape(-1), 0
        for each, shape in zip(lot, shapes, strict=True):
            own_part = each._kept if self.whole else each.sharded
            rows = flat[start : start + shape.numel()].reshape(shape)
            start += shape.numel()
            rows = rows.narrow(each.dim, 0, own_part._data.shape[each.dim]).to(own_part.device, own_part.dtype)
            if own_part._grad is None:
                own_part._grad = wrap((rows if len(lot) == 1 and rows.is_contiguous() else rows.clone())._data)
            else:
                own_part._grad.add_(rows)
            if Deferred.used:  # in the backward pass of a compiled block; the optimizer reads memory
                Deferred.rules.settle_all([own_part._grad])

    @no_grad()
    def wait(self) -> None:
        """Wait until the averages are there."""
        reducing, self._reducing = self._reducing, []
        for work, finish in reducing:
            if work is not None:
                work.wait()
            finish()
