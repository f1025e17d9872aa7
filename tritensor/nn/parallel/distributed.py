"""One model in several processes, each with its own part of the data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from ... import distributed as dist
from ...autograd.backward import queue_callback
from ...autograd.mode import is_grad_enabled, no_grad
from ...distributed.algorithms.ddp_comm_hooks import default_hooks
from ...distributed.algorithms.join import Join, Joinable, JoinHook
from ...errors import explain, require, warn
from ...func import functional_call
from ...functional.creation.creation import tensor, zeros
from ...tensors import Tensor
from ...types import devices as places
from ...types import dtypes
from ..lazy import UninitializedParameter
from ..module import Module
from .agreement import broadcast, check_same
from .reducer import Reducer
from .scatter_gather import cuda_device

__all__ = ["DistributedDataParallel"]

# The first bucket is small, so that the first message is sent early.
_FIRST_BUCKET = 1 << 20
_MEGABYTE = 1 << 20


@dataclass
class _MixedPrecision:
    """Dtypes of parameters and inputs in a forward pass, of gradients on their way, and of buffers; or None."""

    param_dtype: dtypes.dtype | None = None
    reduce_dtype: dtypes.dtype | None = None
    buffer_dtype: dtypes.dtype | None = None


class _Shadow(JoinHook):
    """Takes part in the collectives of the other processes' passes, when the inputs of this one are used up."""

    def __init__(self, ddp: DistributedDataParallel, by_all: bool) -> None:
        self.ddp = ddp
        ddp._divide_by_initial_world_size = by_all

    def main_hook(self) -> None:
        """One forward and backward pass of the others."""
        ddp = self.ddp
        ddp._sync_buffers(joined=True)
        ddp.require_forward_param_sync = ddp._most(0) > 0
        if ddp.require_forward_param_sync:
            ddp.reducer.active = None if ddp._divides_by_all() else lambda: 1
            ddp.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Take over the parameters and buffers of a process that has had the most inputs."""
        ddp = self.ddp
        state = [*ddp._managed(ddp.module.named_parameters()), *ddp._managed(ddp.module.named_buffers())]
        broadcast([x for _, x in state], ddp.process_group, ddp.bucket_bytes_cap, ddp._last_rank(is_last_joiner))


class DistributedDataParallel(Module, Joinable):
    """Train one module in all processes of a job, each on its own part of every batch.

    All start with the parameters and buffers of rank 0. In the backward pass the gradients are averaged over the
    processes, in buckets that are sent while others are still being computed; equal optimizers then keep the modules
    equal. With batches of equal size and a loss that is a mean, a step equals one on all data in one process.

        torch.distributed.init_process_group("mpi")
        model = torch.nn.parallel.DistributedDataParallel(model)

    Args:
        module: its parameters are on one device; call it through this wrapper and not by itself.
        device_ids: a list of the one CUDA device that inputs are moved to, or None to leave them where they are.
        output_device: not used, as `dim`; outputs stay where the module puts them.
        broadcast_buffers: PyTorch's older name of `forward_sync_buffers`; false leaves buffers out of `init_sync`, too.
        init_sync: start with the state of rank 0.
        process_group: None, for all processes.
        bucket_cap_mb: how many megabytes of gradients are sent together; 25 unless given.
        find_unused_parameters: find in each pass the parameters that the outputs do not depend on. Without it, the
            gradients of a pass in which some parameter gets none are not averaged, and the next forward pass raises.
        check_reduction: deprecated, and not used.
        gradient_as_bucket_view: gradients are views of the buckets, which saves their copies and takes no more memory
            than the gradients alone.
        static_graph: every pass is like the first, in which unused parameters and those of several gradients (of
            checkpoints within each other) are found.
        delay_all_reduce_named_params: pairs of names and parameters whose gradients are averaged when that of
            `param_to_hook_all_reduce` comes.
        param_to_hook_all_reduce: see there.
        mixed_precision: `param_dtype`, `reduce_dtype` and `buffer_dtype`, for computing and sending in lower precision.
        device_mesh: one of one dimension, in place of `process_group`.
        skip_all_reduce_unused_params: do not send buckets of unused parameters, which are the same everywhere.
        bucket_cap_mb_list: the megabytes of each bucket; the last number is that of all further ones.
        batched_grad_copy: not used: gradients are always copied together.
        forward_sync_buffers: copy the buffers of rank 0 to all before each forward pass; true unless given.

    Attributes:
        module: the wrapped module; the state dict has a `module.` in front of every name.
        require_backward_grad_sync: false within `no_sync()`.

    Raises:
        ValueError: no process group, parameters on several devices, or several `device_ids`.
        RuntimeError: nothing to train, or a mesh of several dimensions.
        DistError: the modules of the processes differ; the message names the first parameter that does.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: object = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: dist.ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Sequence[tuple[str, Tensor]] | None = None,
        param_to_hook_all_reduce: Tensor | None = None,
        mixed_precision: _MixedPrecision | None = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: Sequence[float] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        Joinable.__init__(self)
        if (delay_all_reduce_named_params is None) != (param_to_hook_all_reduce is None):
            words = "delay_all_reduce_named_params and param_to_hook_all_reduce need to be set at the same time."
            raise ValueError(words)
        if check_reduction:
            words = "The `check_reduction` argument in `DistributedDataParallel` module is deprecated."
            warn(f"{words} Please avoid using it.", FutureWarning)
        self.process_group = _group_of(process_group, device_mesh)
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        delayed = list(delay_all_reduce_named_params or ())
        self.parameters_to_ignore.update(name for name, _ in delayed)
        self.module = module
        state = self._managed(module.named_parameters())
        if any(isinstance(x, UninitializedParameter) for _, x in state):
            words = "Modules with uninitialized parameters can't be used with `DistributedDataParallel`. "
            raise RuntimeError(f"{words}Run a dummy forward pass to correctly initialize the modules")
        if not delayed and not any(x.requires_grad for _, x in state):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters that require a "
                "gradient."
            )
        self.device = _first_device(module)
        self.device_ids = None if device_ids is None else _one_device_id(device_ids, module)
        self.output_device, self.dim = output_device, dim
        older = forward_sync_buffers is None and broadcast_buffers is False
        self.forward_sync_buffers = self.broadcast_buffers = forward_sync_buffers is not False and not older
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view, self.static_graph = gradient_as_bucket_view, False
        self.skip_all_reduce_unused_params = skip_all_reduce_unused_params
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._divide_by_initial_world_size = True
        self.mixed_precision = mixed_precision
        caps = bucket_cap_mb_list or [25 if bucket_cap_mb is None else bucket_cap_mb]
        limits = self.bucket_bytes_cap_list = [int(cap * _MEGABYTE) for cap in caps]
        self.bucket_bytes_cap = max(limits)
        if bucket_cap_mb is None and not bucket_cap_mb_list:
            limits.insert(0, _FIRST_BUCKET)
        if init_sync:
            check_same(state, self.process_group)
            buffers = () if older else self._managed(module.named_buffers())
            broadcast([x for _, x in [*state, *buffers, *delayed]], self.process_group, self.bucket_bytes_cap)
        self._make_reducer()
        if param_to_hook_all_reduce is not None:
            # when the pass has ended: parameters without a hook of their own get their gradients then
            average = partial(_average, [x for _, x in delayed], self.process_group)
            param_to_hook_all_reduce.register_post_accumulate_grad_hook(lambda _: queue_callback(average))
        if mixed_precision is not None:
            self._use(mixed_precision)
        if static_graph:
            self._set_static_graph()

    def _make_reducer(self) -> None:
        trained = [(name, x) for name, x in self._managed(self.module.named_parameters()) if x.requires_grad]
        self.reducer = Reducer(
            [x for _, x in trained],
            [name for name, _ in trained],
            self.process_group,
            self.bucket_bytes_cap_list,
            self.find_unused_parameters,
            self.gradient_as_bucket_view,
            self.skip_all_reduce_unused_params,
        )

    def _managed(self, named: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
        return [(name, x) for name, x in named if name not in self.parameters_to_ignore]

    def _use(self, precision: _MixedPrecision) -> None:
        """Cast the buffers, and send gradients in lower precision."""
        for buffer in self.module.buffers() if precision.buffer_dtype is not None else ():
            if buffer.is_floating_point():
                buffer.data = buffer.to(precision.buffer_dtype)
        sent = precision.reduce_dtype or precision.param_dtype
        if sent is not None:
            self.register_comm_hook(self.process_group, partial(default_hooks.compressed, sent))

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module; the gradients of its outputs' parameters are averaged in the backward pass.

        Raises:
            RuntimeError: the backward pass before left parameters without a gradient, or the module has other
                parameters than when it was wrapped. DistError: see `all_reduce`.
        """
        syncs = is_grad_enabled() and self.require_backward_grad_sync
        if syncs:
            self._check_unchanged()
        work = Join.notify_join_context(self)
        self.reducer.active = None if work is None or self._divides_by_all() else partial(_first, work)
        self._sync_buffers()
        if self._join_config.enable:
            self._most(self.require_backward_grad_sync)
        if self.device_ids is not None:
            inputs, kwargs = _moved((inputs, kwargs), self.device)
        kind = None if self.mixed_precision is None else self.mixed_precision.param_dtype
        if kind is None:
            outputs = self.module(*inputs, **kwargs)
        else:
            inputs, kwargs = _moved((inputs, kwargs), kind)
            cast = _moved(dict(self._managed(self.module.named_parameters())), kind)
            outputs = functional_call(self.module, cast, inputs, kwargs)
        self.require_forward_param_sync = syncs
        if syncs:
            self.reducer.prepare_for_backward(outputs)
        elif is_grad_enabled():
            self.reducer.ignore()
        return outputs

    def _check_unchanged(self) -> None:
        known = self.reducer.places
        if all(id(x) in known or not x.requires_grad for x in self.module.parameters()):
            return  # 8 us for 16 parameters
        for name, x in self._managed(self.module.named_parameters()):
            if x.requires_grad and id(x) not in known:
                words = "DistributedDataParallel: the parameters of the module have changed after it was wrapped."
                fact = (
                    f"on rank {dist.get_rank(self.process_group)}, {name} is a new tensor, or now requires a gradient"
                )
                raise RuntimeError(explain(words, fact, remedy="wrap the module after the change"))

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Do not average the gradients of forward passes in the block: they add up until the first pass after it.

        ::

            with model.no_sync():
                loss_of(model(first)).backward()
            loss_of(model(second)).backward()  # the averages of both
        """
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    # ---- uneven inputs ------------------------------------------------------------------------------------------

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Join:
        """A block in which processes may have different numbers of inputs: `with model.join(): ...`.

        Those that have none left take part in the passes of the others with gradients of zeros, and leave the block
        with the parameters and buffers of those.

        Args:
            divide_by_initial_world_size: divide sums of gradients by the number of all processes, and not by that of
                the processes that have inputs.
            enable, throw_on_early_termination: see `tritensor.distributed.algorithms.join.Join`.
        """
        divides = {"divide_by_initial_world_size": divide_by_initial_world_size}
        return Join([self], enable, throw_on_early_termination, **divides)

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook of `join` for a process whose inputs are used up; takes `divide_by_initial_world_size`."""
        return _Shadow(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> places.device:
        """The device of the parameters."""
        return self.device

    @property
    def join_process_group(self) -> dist.ProcessGroup:
        """The processes whose gradients are averaged."""
        return self.process_group

    def _divides_by_all(self) -> bool:
        return self._divide_by_initial_world_size or not self._join_config.is_first_joinable

    def _most(self, own: int) -> int:
        """The largest number among those of all processes."""
        found = tensor([own], dtype=dtypes.int64, device=self.device)
        dist.all_reduce(found, dist.ReduceOp.MAX, self.process_group)
        return int(found.item())

    def _last_rank(self, own: bool) -> int:
        """The last of the ranks in which `own` is true."""
        return self._most(dist.get_rank(self.process_group) if own else -1)

    def will_sync_module_buffers(self) -> bool:
        """True if the next forward pass copies buffers: if there are any, and the pass before was for training."""
        wanted = self.require_forward_param_sync and self.forward_sync_buffers
        return wanted and bool(self._managed(self.module.named_buffers()))

    def _sync_buffers(self, joined: bool = False) -> None:
        if self.will_sync_module_buffers():
            src = self._last_rank(not joined) if self._join_config.enable else 0
            buffers = [x for _, x in self._managed(self.module.named_buffers())]
            broadcast(buffers, self.process_group, self.bucket_bytes_cap, src)

    # ---- what programs ask and set ------------------------------------------------------------------------------

    def register_comm_hook(self, state: object, hook: Callable[[Any, dist.GradBucket], Any]) -> None:
        """Average gradients by `hook(state, bucket)`, which returns a future with the averages of `bucket.buffer()`.

        See `tritensor.distributed.algorithms.ddp_comm_hooks` for hooks that send less.

        Raises:
            TypeError: it cannot be called. RuntimeError: there is a hook.
        """
        require(callable(hook), TypeError, "Communication hook must be callable.")
        words = "register_comm_hook or register_builtin_comm_hook can only be called once."
        require(self.reducer.hook is None, RuntimeError, words)
        self.reducer.hook = hook, state

    def _register_builtin_comm_hook(self, comm_hook_type: dist.BuiltinCommHookType) -> None:
        self.register_comm_hook(self.process_group, getattr(default_hooks, comm_hook_type.value))

    def _set_static_graph(self) -> None:
        if self.static_graph:
            warn("You've set static_graph to be True, no need to set it again.")
        self.static_graph = self.reducer.static = True

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """Facts about the module and its buckets, by PyTorch's names."""
        group, hook = self.process_group, self.reducer.hook
        return {
            "module_name": type(self.module).__name__,
            "world_size": dist.get_world_size(group),
            "rank": dist.get_rank(group),
            "backend_name": dist.get_backend(group),
            "bucket_sizes": ", ".join(str(sum(x.nbytes for x in each.parameters)) for each in self.reducer.buckets),
            "comm_hook": "" if hook is None else getattr(hook[0], "__qualname__", repr(hook[0])),
            "find_unused_parameters": self.find_unused_parameters,
            "static_graph": self.static_graph,
            "can_set_static_graph": self.reducer.same_graph,
        }

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(
        module: Module, params_and_buffers_to_ignore: Collection[str]
    ) -> None:
        """Leave parameters and buffers of these names to the program, in a module that is wrapped afterwards."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("process_group", "reducer")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process_group = _group_of(None, None)
        self._make_reducer()
        self.reducer.static = self.static_graph


def _group_of(process_group: dist.ProcessGroup | None, device_mesh: Any) -> Any:
    """The group of a mesh of one dimension, or the group that was given, or that of all processes."""
    if device_mesh is None:
        dist.get_world_size(process_group)  # raises ValueError without a group
        return dist.group.WORLD if process_group is None else process_group
    require(process_group is None, RuntimeError, "Cannot specify both process_group and device_mesh arguments.")
    words = "Only 1D device mesh is supported, but got {}."
    require(device_mesh.ndim == 1, RuntimeError, words, device_mesh)
    return device_mesh.get_group(mesh_dim=0)


def _first(work: dist.Work) -> float:
    work.wait()
    return float(work.result()[0].item())


def _average(parameters: Sequence[Tensor], group: dist.ProcessGroup) -> None:
    """Average the gradients of parameters over all processes; one that is missing counts as zeros."""
    with no_grad():
        for x in parameters:
            x.grad = zeros(x.shape, dtype=x.dtype, device=x.device) if x.grad is None else x.grad
            dist.all_reduce(x.grad, dist.ReduceOp.AVG, group)


def _first_device(module: Module) -> places.device:
    """The device of the first parameter; the others may be on more devices of its type."""
    found = list(dict.fromkeys(x.device for x in module.parameters()))
    if len({each.type for each in found}) > 1:
        raise ValueError(
            explain(
                "DistributedDataParallel's input module must be on the same type of devices, but input module "
                f"parameters locate in {sorted({each.type for each in found})}.",
                remedy="move the module to one type with .to()",
            )
        )
    return found[0]


def _one_device_id(device_ids: Sequence[Any], module: Module) -> list[places.device]:
    found = {x.device for x in module.parameters()}
    device = next(iter(found))
    if len(device_ids) != 1 or len(found) > 1 or device.type != "cuda" or cuda_device(device_ids[0]) != device:
        raise ValueError(
            "DistributedDataParallel device_ids and output_device arguments only work with "
            "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
            f"{list(device_ids)}, and module parameters {{{', '.join(sorted(map(str, found)))}}}."
        )
    return [device]


def _moved(value: object, target: places.device | dtypes.dtype) -> Any:
    """The tensors in nested tuples, lists and dicts on a device, or the floating ones in a dtype; others unchanged."""
    if isinstance(value, Tensor):
        kept = isinstance(target, dtypes.dtype) and not value.is_floating_point()
        return value if kept else value.to(target, non_blocking=True)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_moved(entry, target) for entry in value))
    if isinstance(value, (tuple, list)):
        return type(value)(_moved(entry, target) for entry in value)
    if isinstance(value, dict):
        return type(value)((key, _moved(entry, target)) for key, entry in value.items())
    return value
