"""`FullyShardedDataParallel`: PyTorch's first interface of sharding, a wrapper around what `fully_shard` does."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from ... import distributed as dist
from ...autograd.mode import no_grad
from ...cuda import is_available, set_device
from ...distributed.checkpoint import state_dict as by_names
from ...distributed.device_mesh import DeviceMesh, init_device_mesh
from ...distributed.fsdp import api
from ...distributed.fsdp.parameters import Group
from ...distributed.fsdp.policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from ...distributed.fsdp.sharding import FSDPModule, fully_shard
from ...distributed.fsdp.wrap import wrap_below
from ...distributed.tensor.dtensor import DTensor, distribute_tensor, over, plain
from ...distributed.tensor.placements import chunk
from ...errors import UnsupportedError
from ...func.trees import tree_map
from ...tensors import Tensor
from ...types import devices, dtypes
from ..batch_normalization import _BatchNorm
from ..module import Module
from ..utils.clip_grad import clip_grad_norm_
from .agreement import broadcast

__all__ = ["FullyShardedDataParallel"]

_WRAPPED = "_fsdp_wrapped_module"
_Strategy, _Type = api.ShardingStrategy, api.StateDictType
_HYBRID = (_Strategy.HYBRID_SHARD, _Strategy._HYBRID_SHARD_ZERO2)


class FullyShardedDataParallel(Module):
    """Divide a module's parameters, gradients and optimizer state among ranks (FSDP, PyTorch's first interface).

    The module is divided by `fully_shard`: its parameters are DTensors that keep their names and shapes, and there are
    no flat parameters. State dicts have the names of the module alone, and whole tensors unless `state_dict_type` says
    otherwise; all ranks ask for them.

    Args:
        module: the module; modules below it may be wrapped already.
        process_group: the ranks; all unless given. For HYBRID_SHARD a pair: those of a machine, and those with copies.
        sharding_strategy: see `ShardingStrategy`; FULL_SHARD unless given.
        cpu_offload: whether parts are kept in host memory.
        auto_wrap_policy: says which modules below are wrapped, and gathered, by themselves; see `fsdp.wrap`.
        mixed_precision: dtypes of the computation and of averages.
        ignored_modules, ignored_states: modules or parameters that stay as they are.
        param_init_fn: makes the parameters of a module on "meta"; `to_empty` and `reset_parameters()` unless given.
        device_id: the device; the current CUDA device unless given, or the CPU without any.
        sync_module_states: start with the parameters and buffers of the first rank.
        device_mesh: the ranks, in place of `process_group`; of two dimensions for HYBRID_SHARD.
        backward_prefetch, forward_prefetch, limit_all_gathers, use_orig_params: accepted, unused: parameters are
            gathered one module ahead, and are always the original ones.

    Attributes:
        module: the wrapped module.
    """

    _has_params = False  # flat ones, which libraries look for
    _settings = api.StateDictSettings()
    _summoned = False

    def __init__(
        self,
        module: Module,
        process_group: Any = None,
        sharding_strategy: api.ShardingStrategy | None = None,
        cpu_offload: api.CPUOffload | None = None,
        auto_wrap_policy: Callable[..., Any] | None = None,
        backward_prefetch: object = None,
        mixed_precision: api.MixedPrecision | MixedPrecisionPolicy | None = None,
        ignored_modules: Iterable[Module] | None = None,
        param_init_fn: Callable[[Any], Any] | None = None,
        device_id: int | devices.device | None = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Iterable[Any] | None = None,
        device_mesh: DeviceMesh | None = None,
    ) -> None:
        super().__init__()
        strategy = self.sharding_strategy = sharding_strategy or _Strategy.FULL_SHARD
        place = devices.device("cuda", device_id) if isinstance(device_id, int) else device_id
        kind = place.type if place is not None else "cuda" if is_available() else "cpu"
        if place is not None and place.type == "cuda" and place.index is not None:
            set_device(place)
        mesh = device_mesh or _mesh(kind, process_group, strategy)
        given = [*(ignored_modules or ()), *(ignored_states or ())]
        below = [each for x in given if isinstance(x, Module) for each in (*x.modules(), *x.parameters())]
        ignored = {id(x) for x in (*given, *below)}
        self._materialize(module, ignored, param_init_fn, kind)
        if sync_module_states:
            own = [x for x in (*module.parameters(), *module.buffers()) if not isinstance(x, DTensor)]
            own = [x for x in own if id(x) not in ignored]
            for x in own:
                x.data = x.data.to(kind)
            for group in mesh.get_all_groups():
                broadcast(own, group, 1 << 28)
        if auto_wrap_policy is not None:
            options: dict[str, Any] = {
                "sharding_strategy": strategy,
                "cpu_offload": cpu_offload,
                "mixed_precision": mixed_precision,
            }
            options |= {"device_id": device_id, "device_mesh": mesh, "ignored_states": given}
            make = partial(FullyShardedDataParallel, **options)
            wrap_below(module, _but_for_precision(auto_wrap_policy, mixed_precision), make, ignored, {})
        policy = mixed_precision or MixedPrecisionPolicy()
        if isinstance(policy, api.MixedPrecision):
            for each in _outside_fsdp(module):
                for name, buffer in each._buffers.items() if policy.buffer_dtype and id(each) not in ignored else ():
                    if buffer is not None and buffer.is_floating_point():
                        each._buffers[name] = buffer.to(policy.buffer_dtype)
            casts = policy.cast_root_forward_inputs
            self._inner_casts = policy.cast_forward_inputs
            policy = MixedPrecisionPolicy(policy.param_dtype, policy.reduce_dtype, None, casts)
        else:
            self._inner_casts = True
        kept = strategy in (_Strategy.SHARD_GRAD_OP, _Strategy._HYBRID_SHARD_ZERO2)
        if not isinstance(module, FSDPModule):  # else an earlier wrapper has divided it, as in another run of a trainer
            fully_shard(
                module,
                mesh=mesh,
                reshard_after_forward=False if kept else None,
                mp_policy=policy,
                offload_policy=CPUOffloadPolicy() if cpu_offload and cpu_offload.offload_params else OffloadPolicy(),
                ignored_params=[x for x in module.parameters() if id(x) in ignored],
            )
            for each in module._groups(False):
                _keep_objects(each)
        self._fsdp_wrapped_module = module
        for inner in self.fsdp_modules(self)[1:]:  # it is no root
            state = inner.module._fsdp_state
            state.policy = replace(state.policy, cast_forward_inputs=inner._inner_casts)

    @staticmethod
    def _materialize(module: Module, ignored: set[int], init: Callable[[Any], Any] | None, kind: str) -> None:
        """Give parameters on "meta" memory and values."""
        for each in module.modules():
            own = [*each._parameters.values(), *each._buffers.values()]
            if id(each) not in ignored and any(x is not None and x.is_meta for x in own):
                if init is not None:
                    init(each)
                else:
                    each.to_empty(device=kind, recurse=False)
                    each.reset_parameters()

    @property
    def module(self) -> Any:
        """The wrapped module."""
        return self._modules[_WRAPPED]

    @property
    def _is_root(self) -> bool:
        return bool(self.module._fsdp_state.root)

    def check_is_root(self) -> bool:
        """True for the outermost one; known after the first forward pass."""
        return self._is_root

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == _WRAPPED:
                raise
            return getattr(self.module, name)

    def __getitem__(self, key: Any) -> Any:
        return self.module[key]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The wrapped module's result."""
        return self.module(*args, **kwargs)

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """The wrappers in a module, the module itself among them; with `root_only` those in no other."""
        found = [each for each in module.modules() if isinstance(each, FullyShardedDataParallel)]
        inner = {id(x) for each in found for x in each.module.modules()} if root_only else set()
        return [each for each in found if id(each) not in inner]

    def _groups(self) -> list[Group]:
        return [group for each in self.fsdp_modules(self) for group in each.module._groups(False)]

    def _named(self, own: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        return ((_clean(name) if self._summoned else name, x) for name, x in own)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """The parameters by path; within `summon_full_params` by that of the wrapped module."""
        return self._named(super().named_parameters(*args, **kwargs))

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """The buffers by path; within `summon_full_params` by that of the wrapped module."""
        return self._named(super().named_buffers(*args, **kwargs))

    def apply(self, fn: Callable[[Module], None]) -> FullyShardedDataParallel:
        """Call a function for each module, all of whose parameters are whole."""
        with self.summon_full_params(self):
            super().apply(fn)
        return self

    @no_grad()
    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale the gradients of all ranks together, so that their norm is at most `max_norm`; returns the norm."""
        norm = clip_grad_norm_(self.parameters(), max_norm, norm_type)
        return norm.full_tensor() if isinstance(norm, DTensor) else norm

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within the block, add up gradients of the whole parameters, and average them in the first pass after it."""
        groups = self._groups()
        for each in groups:
            each.gradients_sync = False
        try:
            yield
        finally:
            for each in groups:
                each.gradients_sync = True

    @staticmethod
    @contextmanager
    def summon_full_params(
        module: Module,
        recurse: bool = True,
        writeback: bool = True,
        rank0_only: bool = False,
        offload_to_cpu: bool = False,
        with_grads: bool = False,
    ) -> Iterator[None]:
        """Within the block, parameters are whole and have their own names.

        Args:
            module: contains wrappers.
            recurse: those below, too.
            writeback: keep what is changed; each rank what it has of its part.
            rank0_only, offload_to_cpu: accepted, unused: all ranks have them, where they compute.
            with_grads: gradients are whole, too.
        """
        own = FullyShardedDataParallel.fsdp_modules(module)[: None if recurse else 1]
        groups = [group for each in own for group in each.module._groups(False)]
        for each in groups:
            each.reshard()
            low, each.policy = each.policy, MixedPrecisionPolicy()
            each.unshard()
            each.policy = low
            for p in each.params if with_grads else ():
                p.full.grad = None if p._kept.grad is None else p._kept.grad.full_tensor()
        for wrapper in own:
            wrapper._summoned = True
        try:
            yield
        finally:
            for wrapper in own:
                wrapper._summoned = False
            with no_grad():
                for p in (p for each in groups for p in each.params):
                    if writeback:
                        plain(p._kept).copy_(plain(p.full).narrow(p.dim, *chunk(p.shape[p.dim], p.count, p.index)))
                    if with_grads:
                        p.full.grad = None
            for each in groups:
                each.reshard()

    # ---- state dicts -----------------------------------------------------------------------------------------

    @staticmethod
    def get_state_dict_type(module: Module) -> api.StateDictSettings:
        """The kind of state dicts that a module gives."""
        return FullyShardedDataParallel.fsdp_modules(module)[0]._settings

    @staticmethod
    def set_state_dict_type(
        module: Module,
        state_dict_type: api.StateDictType,
        state_dict_config: api.StateDictConfig | None = None,
        optim_state_dict_config: api.OptimStateDictConfig | None = None,
    ) -> api.StateDictSettings:
        """Choose the kind of a module's state dicts; returns what it was."""
        full = state_dict_type is _Type.FULL_STATE_DICT
        model = state_dict_config or (api.FullStateDictConfig() if full else api.ShardedStateDictConfig())
        optim = api.FullOptimStateDictConfig() if full else api.ShardedOptimStateDictConfig()
        before = FullyShardedDataParallel.get_state_dict_type(module)
        for each in FullyShardedDataParallel.fsdp_modules(module):
            each._settings = api.StateDictSettings(state_dict_type, model, optim_state_dict_config or optim)
        return before

    @staticmethod
    @contextmanager
    def state_dict_type(
        module: Module,
        state_dict_type: api.StateDictType,
        state_dict_config: api.StateDictConfig | None = None,
        optim_state_dict_config: api.OptimStateDictConfig | None = None,
    ) -> Iterator[None]:
        """Choose the kind of a module's state dicts within a block."""
        own = FullyShardedDataParallel
        before = own.set_state_dict_type(module, state_dict_type, state_dict_config, optim_state_dict_config)
        try:
            yield
        finally:
            own.set_state_dict_type(module, *before)

    def state_dict(
        self, *, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """The parameters and buffers by the wrapped module's names, see `state_dict_type`; all ranks call it."""
        kind, config, _ = self._settings
        found = self.module.state_dict(destination=destination, prefix=prefix, keep_vars=keep_vars)
        for name in [name for name in found if name.startswith(prefix)]:
            found[name] = _as(found[name], kind, config.offload_to_cpu)
            if _left_out(config):
                del found[name]
        return found

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        """Rename entries, and divide whole ones."""
        for each in self._groups():
            each.reshard()
        below = f"{prefix}{_WRAPPED}."
        for name in [name for name in state_dict if name.startswith(prefix) and not name.startswith(below)]:
            state_dict[below + name[len(prefix) :]] = state_dict.pop(name)
        for name, own in self.module.named_parameters(remove_duplicate=False):
            value = state_dict.get(below + _clean(name))
            if isinstance(own, DTensor) and isinstance(value, Tensor) and not isinstance(value, DTensor):
                if self._settings.state_dict_type is _Type.LOCAL_STATE_DICT:
                    value = over(value, own._spec)
                elif value.shape == own.shape:
                    value = distribute_tensor(value.detach(), own.device_mesh, own.placements, src_data_rank=None)
                state_dict[below + _clean(name)] = value
        super()._load_from_state_dict(state_dict, prefix, *args)

    @staticmethod
    def optim_state_dict(
        model: Module, optim: Any, optim_state_dict: object = None, group: object = None
    ) -> dict[str, Any]:
        """An optimizer's state by the names of parameters, see `state_dict_type`; all ranks call it.

        Args:
            model: contains wrappers. optim: has its parameters.
            optim_state_dict, group: accepted, unused: it is the optimizer's own state, of all ranks.
        """
        kind, _, config = FullyShardedDataParallel.get_state_dict_type(model)
        state = by_names.get_optimizer_state_dict(model, optim)
        state = tree_map(lambda x: _as(x, kind, config.offload_to_cpu), state)
        return {} if _left_out(config) else state

    @staticmethod
    def optim_state_dict_to_load(
        model: Module,
        optim: Any,
        optim_state_dict: dict[str, Any] | None,
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group: object = None,
    ) -> dict[str, Any]:
        """Load what `optim_state_dict` gave into the optimizer, and return it for `optim.load_state_dict`.

        Args:
            model: contains wrappers. optim: has its parameters.
            optim_state_dict: may be None on other ranks than 0 with `FullOptimStateDictConfig(rank0_only=True)`.
            is_named_optimizer, load_directly, group: accepted, unused.
        """
        first = getattr(FullyShardedDataParallel.get_state_dict_type(model)[2], "rank0_only", False)
        options = by_names.StateDictOptions(full_state_dict=first, broadcast_from_rank0=first)
        by_names.set_optimizer_state_dict(model, optim, optim_state_dict or {}, options=options)
        state: dict[str, Any] = optim.state_dict()
        return state

    @staticmethod
    def rekey_optim_state_dict(
        optim_state_dict: dict[str, Any],
        optim_state_key_type: api.OptimStateKeyType,
        model: Module,
        optim_input: object = None,
        optim: object = None,
    ) -> dict[str, Any]:
        """An optimizer's state by names instead of numbers of the model's parameters, or the other way round.

        Args:
            optim_state_dict: the state of all parameters, as of an optimizer of `model.parameters()`.
            optim_state_key_type: what it shall be found by.
            model: its parameters give names and numbers.
            optim_input, optim: accepted, unused.
        """
        keys: dict[Any, Any] = {_clean(name): number for number, (name, _) in enumerate(model.named_parameters())}
        if optim_state_key_type is api.OptimStateKeyType.PARAM_NAME:
            keys = {number: name for name, number in keys.items()}
        state = {keys[key]: value for key, value in optim_state_dict["state"].items()}
        groups = [{**x, "params": [keys[key] for key in x["params"]]} for x in optim_state_dict["param_groups"]]
        return {"state": state, "param_groups": groups}


def _keep_objects(group: Group) -> None:
    """Let the objects that were the parameters be the parts: an optimizer that was made before holds them."""
    for each in group.params:
        part: Any = each.sharded
        full: Any = each.full
        for name in ("__class__", "__dict__", "_counter", "_data", "_needs", "_node"):
            own, other = getattr(part, name), getattr(full, name)
            setattr(part, name, other)
            setattr(full, name, own)
        each.full = part
        each.set_sharded(full)


def _clean(name: str) -> str:
    return name.replace(f"{_WRAPPED}.", "")


def _as(value: Any, kind: api.StateDictType, to_cpu: bool) -> Any:
    """A value of a state dict as its kind wants it."""
    if isinstance(value, DTensor) and kind is not _Type.SHARDED_STATE_DICT:
        value = value.full_tensor() if kind is _Type.FULL_STATE_DICT else value.to_local()
    return value.cpu() if to_cpu and isinstance(value, Tensor) else value


def _left_out(config: object) -> bool:
    """Whether this rank gets no state dict."""
    return bool(getattr(config, "rank0_only", False)) and dist.get_rank() > 0


def _outside_fsdp(module: Module) -> Iterator[Module]:
    """The modules that no wrapper below has."""
    yield module
    for child in module.children():
        if not isinstance(child, (FullyShardedDataParallel, FSDPModule)):
            yield from _outside_fsdp(child)


def _mesh(kind: str, group: Any, strategy: api.ShardingStrategy) -> DeviceMesh:
    """The ranks of a strategy: of two dimensions, copies and parts, unless all is divided.

    Raises:
        UnsupportedError: a process group with NO_SHARD, or a pair that does not divide the ranks in their order.
    """
    names, size = ("replicate", "shard"), dist.get_world_size()
    if strategy in _HYBRID:
        local = int(os.environ.get("LOCAL_WORLD_SIZE", size))
        if group is None:
            return init_device_mesh(kind, (size // local, local), mesh_dim_names=names)
        parts, copies = group
        local = parts.size()
        rows = [[*range(start, start + local)] for start in range(0, size, local)]
        if parts.ranks in rows:
            return DeviceMesh.from_group([copies, parts], kind, rows, mesh_dim_names=names)
    elif strategy is not _Strategy.NO_SHARD:
        return init_device_mesh(kind, (size,)) if group is None else DeviceMesh.from_group(group, kind)
    elif group is None:
        return init_device_mesh(kind, (size, 1), mesh_dim_names=names)
    raise UnsupportedError(
        f"FullyShardedDataParallel: {strategy.name} does not take these process groups",
        remedy="pass device_mesh=init_device_mesh(kind, (copies, parts), mesh_dim_names=('replicate', 'shard'))",
    )


def _but_for_precision(policy: Callable[..., Any], precision: Any) -> Callable[..., Any]:
    """A policy that also wraps modules which compute in their own dtype, such as batch normalization."""
    low = getattr(precision, "param_dtype", None)
    if low is None or not isinstance(precision, api.MixedPrecision):
        return policy
    classes: Sequence[type] | None = precision._module_classes_to_ignore
    kinds = (_BatchNorm,) if classes is None else tuple(classes)
    own = {"mixed_precision": MixedPrecisionPolicy(dtypes.float32, dtypes.float32, low)}

    def choose(module: Module, recurse: bool, nonwrapped_numel: int) -> Any:
        if not recurse and isinstance(module, kinds):
            return own
        return policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel)

    return choose
