"""`fully_shard`: modules whose parameters are divided among ranks, and gathered while they compute (FSDP2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from ...autograd.backward import queue_callback
from ...autograd.mode import is_grad_enabled, recording
from ...cuda import current_device
from ...errors import DistError, explain, require
from ...func.trees import tree_map
from ...tensors import Tensor, tensors_in
from ...types import devices, dtypes
from ..device_mesh import DeviceMesh, init_device_mesh
from ..groups import get_rank, get_world_size
from ..modules import Module
from ..objects import all_gather_object
from ..tensor.dtensor import DTensor
from ..tensor.placements import Placement
from .parameters import Group, Meshes, ShardedParameter
from .policies import MixedPrecisionPolicy, OffloadPolicy

__all__ = ["FSDPModule", "fully_shard", "register_fsdp_forward_method", "share_comm_ctx"]

M = TypeVar("M")


class _Run:
    """What the modules of one root share: the order in which they ran, and the backward pass that is running.

    Attributes:
        order: the groups in the order of their forward passes, of this one and of the last.
    """

    def __init__(self, states: list[State]) -> None:
        self.states = states
        self.groups = [each.group for each in states if each.group is not None]
        self.order: list[Group] = []
        self.before: list[Group] = []
        self.in_backward = False
        sending: list[Group] = []
        for group in self.groups:
            group.sending = sending

    def begin_backward(self) -> None:
        """Wait for all averages at the end of the backward pass that has begun."""
        if not self.in_backward:
            self.in_backward = True
            queue_callback(self._ended)

    def _ended(self) -> None:
        self.in_backward = False
        for state in self.states:
            state.backward_began = False
        for group in self.groups:
            # its parameters or inputs were not used, or it was gathered for nothing
            if group.left or group.whole or group.inputs_left or group._gathering:
                group.inputs_left = 0
                group.finish_backward()
        for group in self.groups:
            group.wait()

    def forget(self) -> None:
        """Take back what a pass that failed has begun."""
        if self.in_backward and recording.current is None:
            self.in_backward = False
            for state in self.states:
                state.backward_began = False


class State:
    """The part of `fully_shard` in the calls of one module, or of some that share their parameters' messages."""

    def __init__(
        self, modules: list[Any], group: Group | None, policy: MixedPrecisionPolicy, ignored: set[int]
    ) -> None:
        self.modules, self.group, self.policy = modules, group, policy
        self.run: _Run | None = None
        self.root = self.backward_began = False
        self.ignored = ignored
        self.forward_prefetch: list[Group] = []
        self.backward_prefetch: list[Group] = []
        self.left = 0  # modules of several that have not run
        for module in modules:
            module.register_forward_pre_hook(self._before, prepend=True, with_kwargs=True)
            module.register_forward_hook(self._after)
            module.register_state_dict_pre_hook(lambda *_: self.reshard())

    def reshard(self) -> None:
        """Give the modules their parts of the parameters."""
        if self.group is not None:
            self.group.reshard()

    def _begin(self, module: Module) -> _Run:
        """The first forward pass of the root: all modules below it are its own, and the same on all ranks."""
        if self.run is not None:
            return self.run
        inside = [each for name, each in module.named_modules() if isinstance(each, FSDPModule)]
        states = list(dict.fromkeys([each._fsdp_state for each in inside]))
        for each in states:
            if each.run is not None:
                raise RuntimeError(
                    f"FSDP state has already been lazily initialized for {each.group and each.group.name}\nFSDP "
                    "requires running forward through the root module first"
                )
        self.run = run = _Run(states)
        self.root = True
        names = {id(each): name for name, each in module.named_modules()}
        for each in states:
            each.run = run
            if each.group is not None:
                each.group.name = names.get(id(each.modules[0]), "") or type(module).__name__
                if each.group.reshard_after_forward is None:
                    each.group.reshard_after_forward = each is not self
        _check_complete(module, states)
        _check_same(states)
        return run

    # ---- forward ---------------------------------------------------------------------------------------------

    def _before(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        run = self._begin(module)
        run.forget()
        if self.root and not run.in_backward:
            run.before, run.order = run.order, []
            for each in run.groups:
                each.inputs_left = 0
        if self.group is not None and (self.left <= 0 or len(self.modules) == 1):
            if not run.in_backward:
                self.group.renew()
            self.group.unshard()
            self.left = len(self.modules)
            if not run.in_backward:
                for each in self.forward_prefetch or self._next(run):
                    each.gather()
        if self.group is not None and self.group.frozen and not run.in_backward and is_grad_enabled():
            self.group.watch(tensors_in([args, kwargs]))
        dtype = self.policy.param_dtype if self.policy.cast_forward_inputs else None
        return (args, kwargs) if dtype is None else (_cast(args, dtype), _cast(kwargs, dtype))

    def _next(self, run: _Run) -> list[Group]:
        """The group that ran after this one in the pass before."""
        place = len(run.order)
        expected = place + 1 < len(run.before) and run.before[place] is self.group
        return [run.before[place + 1]] if expected else []

    def _after(self, module: Module, args: tuple[Any, ...], output: object) -> Any:
        run = self.run
        assert run is not None
        self.left -= 1
        if self.group is not None and not run.in_backward and (self.left <= 0 or len(self.modules) == 1):
            run.order.append(self.group)
            if self.group.reshard_after_forward:
                self.group.reshard()
        output = output if self.policy.output_dtype is None else _cast(output, self.policy.output_dtype)
        if not (run.in_backward and self.backward_began):  # or it computes again for a backward pass that has begun
            for x in tensors_in(output if isinstance(output, (Tensor, tuple, list, dict)) else _values(output)):
                if x.requires_grad:
                    x.register_hook(self._before_backward)
        return output

    # ---- backward --------------------------------------------------------------------------------------------

    def _before_backward(self, grad: Tensor) -> None:
        run = self.run
        assert run is not None
        run.begin_backward()
        if self.backward_began:
            return
        self.backward_began = True
        if self.group is None:
            return
        self.group.unshard()
        self.group.expect()
        prefetch = self.backward_prefetch
        if not prefetch and self.group in run.order:
            place = run.order.index(self.group)
            prefetch = run.order[place - 1 : place] if place else []
        for each in prefetch:
            each.gather()


def _values(output: object) -> object:
    """The values of an output of a class of its own, such as a dataclass."""
    return list(vars(output).values()) if hasattr(output, "__dict__") else []


def _cast(value: object, dtype: dtypes.dtype) -> Any:
    return tree_map(lambda x: x.to(dtype) if isinstance(x, Tensor) and x.is_floating_point() else x, value)


def _check_complete(root: Module, states: Sequence[State]) -> None:
    """Raise for parameters that came after `fully_shard`: nobody would average their gradients."""
    known = {each for state in states for each in state.ignored}
    known |= {id(p.full) for state in states if state.group is not None for p in state.group.params}
    for name, param in root.named_parameters():
        if not isinstance(param, DTensor) and id(param) not in known:
            raise RuntimeError(
                explain(
                    f"fully_shard: the parameter {name} of shape {tuple(param.shape)} came after fully_shard",
                    remedy="add parameters before fully_shard, or pass them as ignored_params",
                )
            )


def _check_same(states: Sequence[State]) -> None:
    """Raise unless all ranks have divided the same parameters in the same way."""
    groups = [each.group for each in states if each.group is not None]
    own = [(group.name, [tuple(p.sharded.shape) for p in group.params]) for group in groups]
    found: list[Any] = [None] * get_world_size()
    all_gather_object(found, own)
    for rank, other in enumerate(found):
        if other != own and all(each == found[0] for each in found[:rank]):
            differing = [pair for pair in zip(own, other, strict=False) if pair[0] != pair[1]]
            mine, theirs = differing[0] if differing else (f"{len(own)} modules", f"{len(other)} modules")
            raise DistError(
                f"fully_shard: rank {rank} has divided other parameters than rank {get_rank()}",
                f"rank {get_rank()} has {mine}, rank {rank} has {theirs}",
                remedy="make the same model on all ranks, and call fully_shard for the same modules in the same order",
            )


class FSDPModule:
    """What a module is, beside its own class, after `fully_shard`: its parameters are DTensors unless it computes."""

    _fsdp_state: State

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A module of the class that was sharded, as PyTorch does."""
        return cls.__mro__[2](*args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")

    def _states(self, recurse: bool = True) -> Iterator[State]:
        for each in self.modules() if recurse else [self]:  # type: ignore[attr-defined]
            if isinstance(each, FSDPModule):
                yield each._fsdp_state

    def _groups(self, recurse: bool = True) -> list[Group]:
        return list(dict.fromkeys([each.group for each in self._states(recurse) if each.group is not None]))

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Any:
        for each in self._groups():
            each.reshard()
        return super()._apply(fn, recurse)  # type: ignore[misc]

    def reshard(self) -> None:
        """Free the module's whole parameters now, not those of FSDP modules below."""
        for each in self._groups(False):
            each.reshard()

    def unshard(self, async_op: bool = False) -> Any:
        """Gather the module's parameters now, not those of FSDP modules below.

        Args:
            async_op: only start to; `wait()` of what is returned, or the module's forward, waits.
        """
        groups = self._groups(False)
        for each in groups:
            each.gather()
        if async_op:
            return _Unsharding(groups)
        _Unsharding(groups).wait()
        return None

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Choose whether backward averages gradients, or adds up those of the whole parameters for a later pass."""
        self._set("gradients_sync", requires_gradient_sync, recurse)

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Choose whether gradients are averaged over the copies of a mesh of two dimensions, too."""
        self._set("all_reduces", requires_all_reduce, recurse)

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Choose whether whole parameters are freed between forward and backward."""
        self._set("reshard_after_forward", reshard_after_forward, recurse)

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Choose whether whole parameters are freed after backward."""
        self._set("reshard_after_backward", reshard_after_backward, recurse)

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Accepted: each backward pass here waits for its averages."""

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """The modules whose parameters are gathered while this one computes; unless set, that which ran next before."""
        self._fsdp_state.forward_prefetch = [each for m in modules for each in m._groups(False)]

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """The modules whose parameters are gathered while this one's gradients are computed; unless set, the one that
        ran before it."""
        self._fsdp_state.backward_prefetch = [each for m in modules for each in m._groups(False)]

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Divide sums of gradients by a number instead of that of the ranks."""
        self._set("divide", factor, False)

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Accepted: parameters that are not gathered in backward would have no gradients."""

    def set_post_optim_event(self, event: object) -> None:
        """Accepted: gathering waits for all that was started before."""

    def _set(self, name: str, value: object, recurse: bool) -> None:
        for each in self._groups(recurse):
            setattr(each, name, value)


class _Unsharding:
    """The result of `unshard(async_op=True)`."""

    def __init__(self, groups: list[Group]) -> None:
        self._groups = groups

    def wait(self) -> None:
        """Wait until the whole parameters are there."""
        for each in self._groups:
            each.unshard()


_PRECISION, _OFFLOAD = MixedPrecisionPolicy(), OffloadPolicy()


def fully_shard(
    module: M,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Any], Placement | None] | None = None,
    mp_policy: MixedPrecisionPolicy = _PRECISION,
    offload_policy: OffloadPolicy = _OFFLOAD,
    ignored_params: Iterable[Any] | None = None,
) -> M:
    """Divide the parameters of a module among ranks (FSDP2, fully sharded data parallel), and return it.

    Called from the inside out, for the blocks of a model and then for all of it: each call is one group of parameters,
    gathered before the module's forward and backward and freed behind; gradients are averaged, and each rank gets those
    of its part. The module's class becomes `FSDP<Name>`, a subclass of `FSDPModule` and of its own; parameters become
    DTensors and keep their names.

    Args:
        module: a module, or a list of modules that are gathered together.
        mesh: the ranks; all of the job unless given. Of two dimensions, the first is of copies (HSDP).
        reshard_after_forward: free whole parameters after forward; True unless given, but for the root. A number, as in
            PyTorch for groups of ranks within a machine, counts as True.
        shard_placement_fn: gives for a parameter the dimension to divide, `Shard(dim)`; None for the first.
        mp_policy: dtypes of the computation and of averages.
        offload_policy: `CPUOffloadPolicy()` keeps parts, gradients and optimizer state in host memory.
        ignored_params: parameters that stay as they are.

    Raises:
        ValueError: a container without forward, a parameter of no dimension, or a mesh of more than two. RuntimeError:
            it was called for the module before.
    """
    modules: list[Any] = list(module) if isinstance(module, (list, tuple)) else [module]
    for each in modules:
        if type(each).__name__ in ("ModuleList", "ModuleDict") and "forward" not in vars(type(each)):
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {each}")
        if isinstance(each, FSDPModule):
            raise RuntimeError(f"fully_shard was called for {type(each).__name__} before: each module is divided once")
    mesh = mesh or init_device_mesh("cuda" if _has_devices() else "cpu", (get_world_size(),))
    if mesh.ndim > 2:
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    if mesh.ndim == 2 and mesh.mesh_dim_names is None:
        raise AssertionError("Please init the 2D mesh for HSDP with mesh_dim_names specified")
    meshes = Meshes(mesh, mesh.ndim - 1, 0 if mesh.ndim == 2 else None)
    device = devices.cpu if mesh.device_type == "cpu" else devices.device("cuda", current_device())
    ignored = {id(p) for p in ignored_params or ()}
    found = _managed(modules, ignored)
    for each in {id(m): m for root in modules for m in root.modules()}.values():
        for name, buffer in each._buffers.items():
            if buffer is not None and buffer.device != device and not buffer.is_meta:
                each._buffers[name] = buffer.to(device)
    place = shard_placement_fn or (lambda param: None)
    params = [ShardedParameter(who, p, place(p), meshes, device, offload_policy) for p, who in found]
    group = Group(params, meshes, device, mp_policy) if params else None
    if group is not None:
        group.reshard_after_forward = None if reshard_after_forward is None else bool(reshard_after_forward)
    state = State(modules, group, mp_policy, ignored)
    for each in modules:
        each._fsdp_state = state
        kind = type(each)
        each.__class__ = _kinds.setdefault(kind, type(f"FSDP{kind.__name__}", (FSDPModule, kind), {}))
    return module


_kinds: dict[type, type] = {}  # by the class of a module, that with FSDPModule in front


def _has_devices() -> bool:
    from ...cuda import is_available

    return is_available()


def _managed(modules: Sequence[Any], ignored: set[int]) -> list[tuple[Any, list[tuple[Any, str]]]]:
    """The parameters of modules that no call for modules below them has divided, with the modules that have them.

    Raises:
        RuntimeError: one of them is shared with a module that was divided before.
    """
    owners: dict[int, tuple[Any, list[tuple[Any, str]]]] = {}
    divided = {id(p.full) for root in modules for m in root.modules() if isinstance(m, FSDPModule) for p in _params(m)}
    seen: set[int] = set()

    def visit(module: Module) -> None:
        if id(module) in seen or isinstance(module, FSDPModule):
            return
        seen.add(id(module))
        for name, param in module._parameters.items():
            if param is None or id(param) in ignored:
                continue
            if id(param) in divided:
                raise RuntimeError(
                    explain(
                        f"fully_shard: the parameter {name} of {type(module).__name__} is in another group already",
                        "it is shared with a module for which fully_shard was called before",
                        remedy="call fully_shard for both modules together, as fully_shard([first, second])",
                    )
                )
            owners.setdefault(id(param), (param, []))[1].append((module, name))
        for child in module._modules.values():
            if child is not None:
                visit(child)

    for root in modules:
        visit(root)
    return list(owners.values())


def _params(module: FSDPModule) -> list[ShardedParameter]:
    group = module._fsdp_state.group
    return [] if group is None else group.params


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Let a method of an FSDP module gather its parameters as forward does, and free them behind.

    Raises:
        ValueError: the module has no such method.
    """
    if not isinstance(module, FSDPModule):
        return
    require(hasattr(module, method_name), ValueError, "{} does not have a method {}", type(module), method_name)
    own = getattr(module, method_name)
    state = module._fsdp_state

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = state._before(module, args, kwargs)
        return state._after(module, args, own(*args, **kwargs))

    setattr(module, method_name, wrapped)


def share_comm_ctx(modules: Sequence[FSDPModule]) -> None:
    """Accepted: messages of all modules are ordered by when they were started."""
