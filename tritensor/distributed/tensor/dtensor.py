"""DTensor: a tensor whose parts lie on the ranks of a mesh. Its own memory is this rank's part.

Autograd sees the parts alone: the gradient of a DTensor is that of this rank's part, and `grad` shows it as a DTensor.
Public functions ask `__torch_function__`, which the rules in `rules.py` answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...autograd.levels import crossed
from ...autograd.mode import is_grad_enabled, no_grad
from ...errors import ArgumentError, ShapeError, require
from ...tensors import Tensor, wrap
from ...tensors.tensor import blank
from ...types.layout import contiguous_strides
from ...types.size import Size
from ..collectives import all_reduce
from ..device_mesh import DeviceMesh, init_device_mesh
from ..groups import get_world_size
from ..modules import Module
from ..reduction import ReduceOp
from .placements import Partial, Placement, Replicate, Spec, from_first, moved, normalized

__all__ = ["DTensor", "distribute_module", "distribute_tensor"]


answers: list[Callable[..., Any]] = []  # of `rules`, which puts its function here


def _of_gradient(placements: Iterable[Placement]) -> tuple[Placement, ...]:
    """How the gradient of a tensor lies: that of a term is that of the sum, on all ranks."""
    return tuple([Replicate() if isinstance(each, Partial) else each for each in placements])


class DTensor(Tensor):
    """A tensor of which each rank of a mesh has a part, a copy or a term, as its placements say.

    Made by `distribute_tensor`, `DTensor.from_local`, `fully_shard` and `parallelize_module`. `shape` and `numel()` are
    those of the whole. Elementwise functions compute on the parts, all others on the whole, which they gather: every
    rank of the mesh has to call them.
    """

    __module__ = "tritensor.distributed.tensor"
    _spec: Spec
    _is_param = False
    _shown: tuple[Tensor, DTensor] | None = None  # the gradient of this part, and the DTensor that `grad` shows it as

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """What a function that is called with DTensors returns."""
        return answers[0](func, args, kwargs or {})

    # ---- making ----------------------------------------------------------------------------------------------

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
        grad_placements: Sequence[Placement] | None = None,
    ) -> DTensor:
        """Make a DTensor of what each rank has, without communication; differentiable.

        Args:
            local_tensor: this rank's part, of any device.
            device_mesh: the ranks; all of the job unless given.
            placements: how it lies, one for each dimension of the mesh; replicated unless given.
            run_check: take the first rank's tensor where it is replicated, so that all have the same.
            shape: of the whole; as if all parts were as large as this one unless given.
            stride: accepted, unused: a DTensor shows the strides of a contiguous tensor.
            grad_placements: how the gradient lies; as `placements` unless given.

        Raises:
            ArgumentError: `local_tensor` is a DTensor, or no tensor.
        """
        if not isinstance(local_tensor, Tensor) or isinstance(local_tensor, DTensor):
            raise ArgumentError(f"from_local takes a torch.Tensor, but got {type(local_tensor).__name__}")
        mesh = device_mesh or _whole_job(local_tensor)
        placed = normalized(mesh, placements, local_tensor.ndim)
        whole = list(local_tensor.shape)
        for axis, each in enumerate(placed):
            if each.is_shard() and shape is None:
                whole[each.dim] *= mesh.size(axis)  # type: ignore[attr-defined]
            elif run_check and each.is_replicate():
                local_tensor = crossed(
                    from_first(local_tensor.detach().clone(), mesh, axis)._data, (local_tensor, lambda grad: grad)
                )
        spec = Spec(mesh, placed, tuple(whole if shape is None else shape))
        lies, wanted = spec.with_placements(_of_gradient(grad_placements or placed)), _of_gradient(placed)
        return over(_linked(local_tensor, lambda grad: moved(grad, lies, wanted), "_FromTorchTensorBackward"), spec)

    def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """This rank's part as a tensor, which shares its memory; differentiable.

        Args:
            grad_placements: how the gradients lie that the ranks compute for their parts; as the tensor itself unless
                given. `Partial()` sums those of copies that each rank uses for other data.
        """
        spec, way = self._spec, None
        if grad_placements is not None:
            placed = normalized(spec.mesh, grad_placements, self.ndim)
            lies, wanted = spec.with_placements(placed), _of_gradient(spec.placements)
            way = lambda grad: moved(grad, lies, wanted)  # noqa: E731
        return _linked(self, way or (lambda grad: grad), "_ToTorchTensorBackward")

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        async_op: bool = False,
        forward_dtype: object = None,
        backward_dtype: object = None,
    ) -> DTensor:
        """Let the tensor lie otherwise on its mesh, by gathering, reducing or dividing; differentiable.

        Args:
            device_mesh: the tensor's own, if given.
            placements: one for each dimension of the mesh.
            async_op, forward_dtype, backward_dtype: accepted, unused.

        Raises:
            RuntimeError: no placements. NotImplementedError: another mesh.
        """
        spec = self._spec
        if device_mesh is not None and device_mesh != spec.mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        require(placements is not None, RuntimeError, "placements is needed for redistribute!")
        target = normalized(spec.mesh, placements, self.ndim)
        if target == spec.placements:
            return self
        other = spec.with_placements(target)
        back, wanted = spec.with_placements(_of_gradient(target)), _of_gradient(spec.placements)
        way = lambda grad: moved(grad, back, wanted)  # noqa: E731
        data = moved(wrap(self._data), spec, target)._data
        return over(crossed(data, (self, way), name="RedistributeBackward"), other)

    def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
        """The whole tensor on every rank; differentiable. All ranks of the mesh call it."""
        whole = self.redistribute(placements=[Replicate()] * self._spec.mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    # ---- facts -----------------------------------------------------------------------------------------------

    @property
    def device_mesh(self) -> DeviceMesh:
        """The ranks that have parts of the tensor."""
        return self._spec.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """How the tensor lies along each dimension of the mesh."""
        return self._spec.placements

    @property
    def _local_tensor(self) -> Tensor:
        return plain(self)

    @property
    def shape(self) -> Size:
        """The extents of the whole."""
        return Size(self._spec.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._spec.shape)

    def size(self, dim: int | None = None) -> Any:
        """The shape of the whole, or one of its extents."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """The number of dimensions."""
        return self.ndim

    def numel(self) -> int:
        """The number of elements of the whole."""
        return self.shape.numel()

    nelement = numel

    @property
    def nbytes(self) -> int:
        """The size of all elements of the whole in bytes."""
        return self.numel() * self._data.dtype.itemsize

    def stride(self, dim: int | None = None) -> Any:
        """The strides of a contiguous tensor of the shape of the whole, in elements."""
        strides = contiguous_strides(self._spec.shape)
        return strides if dim is None else strides[dim]

    def __len__(self) -> int:
        return self._spec.shape[0]

    def __repr__(self) -> str:
        words = f"DTensor(local_tensor={plain(self)}, device_mesh={self._spec.mesh}, placements={self.placements})"
        return f"Parameter containing:\n{words}" if self._is_param else words

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return _again, (plain(self), self._spec, self._needs, self._is_param)

    def __deepcopy__(self, memo: dict[int, Any]) -> DTensor:
        made = memo[id(self)] = over(plain(self).clone(), self._spec)
        made._needs, made._is_param = self._needs, self._is_param
        return made

    # ---- autograd --------------------------------------------------------------------------------------------

    @property
    def grad(self) -> DTensor | None:
        """The gradient, which lies as the tensor does."""
        own = self._grad
        if own is None:
            return None
        if self._shown is None or self._shown[0] is not own:
            spec = self._spec.with_placements(_of_gradient(self._spec.placements))
            self._shown = own, over(own, spec)
        return self._shown[1]

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is None:
            self._grad = None
            return
        if not isinstance(value, DTensor):
            raise ArgumentError(f"the gradient of a DTensor is a DTensor, but got {type(value).__name__}")
        if value.shape != self.shape:
            raise ShapeError(f"assigned grad has data of a different size: {list(value.shape)}, not {list(self.shape)}")
        placed = _of_gradient(self._spec.placements)
        value = value if value.placements == placed else value.redistribute(placements=placed)
        self._grad = plain(value)
        self._shown = self._grad, value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def data(self) -> DTensor:
        """The same memory without history."""
        return over(wrap(self._data), self._spec)

    @data.setter
    def data(self, value: Tensor | None) -> None:
        if value is None:
            raise ArgumentError("Variable data has to be a tensor, but got NoneType")
        self._data = value._data
        if isinstance(value, DTensor):
            self._spec = value._spec
        self._forget()

    def _state_like(self, state: Tensor) -> DTensor:
        """An optimizer's state of this rank's part as a DTensor that lies as this one."""
        return state if isinstance(state, DTensor) else over(state, self._spec)

    def _agree(self, found: Tensor) -> None:
        """Give all ranks of the mesh the largest of what they have found, in place."""
        shared = found.to(self._spec.mesh.device_type)
        for group in self._spec.mesh.get_all_groups():
            all_reduce(shared, ReduceOp.MAX, group)
        found.copy_(shared)


def plain(x: Tensor) -> Tensor:
    """A rank's part as a tensor without history, on the same memory."""
    made = wrap(x._data)
    if x._counter is None:
        x._counter = [0]
    made._counter = x._counter
    return made


def _linked(x: Tensor, way: Callable[[Tensor], Tensor], name: str) -> Tensor:
    """A tensor on the memory of another, whose gradient goes to that by a way."""
    made = crossed(x._data, (x, way), name=name) if x._needs and is_grad_enabled() else wrap(x._data)
    if x._counter is None:
        x._counter = [0]
    made._counter = x._counter
    return made


def over(x: Tensor, spec: Spec) -> DTensor:
    """A DTensor on the memory of a rank's part, with its history."""
    made: DTensor = blank(DTensor, x._data)
    made._spec = spec
    if x._counter is None:
        x._counter = [0]
    made._counter, made._needs = x._counter, x._needs
    made._node = None if x._edge() is x else x._edge()
    return made


def _again(x: Tensor, spec: Spec, needs: bool, is_param: bool) -> DTensor:
    made = over(x, spec)
    made._needs, made._is_param = needs, is_param
    return made


def parameter(x: Tensor, spec: Spec, requires_grad: bool) -> DTensor:
    """A DTensor that is a parameter, on the memory of a rank's part."""
    made = over(plain(x), spec)
    made._needs, made._is_param = requires_grad, True
    return made


def _whole_job(x: Tensor) -> DeviceMesh:
    return init_device_mesh(x.device.type, (get_world_size(),))


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Divide or copy a tensor to the ranks of a mesh; all of them call it.

    Args:
        tensor: the whole, a leaf; it is moved to the mesh's kind of device.
        device_mesh: the ranks; all of the job unless given.
        placements: how it shall lie, one for each dimension of the mesh; replicated unless given.
        src_data_rank: which rank of the mesh has the values; None if each rank takes its own.

    Raises:
        RuntimeError: the tensor is the result of an operation.
    """
    mesh = device_mesh or _whole_job(tensor)
    placed = normalized(mesh, placements, tensor.ndim)
    if isinstance(tensor, DTensor):
        require(tensor.device_mesh == mesh, ValueError, "Cannot distribute a DTensor with device mesh {} to {}.")
        return tensor.redistribute(mesh, placed)
    if not tensor.is_leaf:
        raise RuntimeError("`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf tensor!")
    with no_grad():
        x = tensor.detach()
        x = x if x.is_meta else x.to(mesh.device_type)
        if src_data_rank is not None and not x.is_meta:
            x = x.clone()
            for axis in range(mesh.ndim):
                x = from_first(x, mesh, axis)
        whole = Spec(mesh, (Replicate(),) * mesh.ndim, tuple(tensor.shape))
        own = moved(x, whole, placed)
        own = own.clone() if own is not tensor and own.numel() < x.numel() else own.contiguous()
    made = over(own, whole.with_placements(placed))
    made._needs, made._is_param = tensor._needs, getattr(tensor, "_is_param", False)
    return made


def distribute_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Any, DeviceMesh], None] | None = None,
    input_fn: Callable[..., Any] | None = None,
    output_fn: Callable[..., Any] | None = None,
) -> Any:
    """Make the parameters and buffers of a module DTensors of a mesh.

    Args:
        module: any module.
        device_mesh: the ranks; all of the job unless given.
        partition_fn: `(name, module, mesh)`, which replaces parameters of each module by DTensors; what it leaves is
            replicated.
        input_fn: `(module, inputs, mesh)` before the module's forward; its result replaces the inputs.
        output_fn: `(module, outputs, mesh)` after it; its result replaces the outputs.
    """
    mesh = device_mesh or init_device_mesh("cpu", (get_world_size(),))
    for name, each in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, each, mesh)
        for table in (each._parameters, each._buffers):
            for key, x in table.items():
                if x is not None and not isinstance(x, DTensor):
                    table[key] = distribute_tensor(x, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda owner, inputs: input_fn(owner, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda owner, inputs, outputs: output_fn(owner, outputs, mesh))
    return module
