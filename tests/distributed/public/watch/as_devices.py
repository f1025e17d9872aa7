"""PyTorch without a GPU finds CUDA devices, all of which are the CPU, so that programs for GPUs give references."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from multiprocessing.util import Finalize
from types import SimpleNamespace
from typing import Any

NOTHING = "synchronize empty_cache manual_seed manual_seed_all seed seed_all init reset_peak_memory_stats"
ZERO = "memory_allocated max_memory_allocated memory_reserved max_memory_reserved"


def begin(torch: Any, devices: int) -> None:
    """Pretend that there are so many devices."""
    current = [0]

    def place(value: Any) -> Any:
        """The CPU instead of a CUDA device; a bare number is one where a device is expected."""
        cuda = isinstance(value, str) and value.startswith("cuda")
        cuda = cuda or (isinstance(value, torch.device) and value.type == "cuda")
        return torch.device("cpu") if cuda else value

    def numbered(value: Any) -> Any:
        number = isinstance(value, int) and not isinstance(value, bool)
        return torch.device("cpu") if number else place(value)

    class Placed(torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
        """Every function gets the CPU for a device."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if func is torch.device:
                return func("cpu") if args and type(args[0]) is int else func(*args, **kwargs)
            if func in (torch.Tensor.cuda, torch.Tensor.pin_memory):
                return args[0]
            if "device" in kwargs:
                kwargs = {**kwargs, "device": numbered(kwargs["device"])}
            change = numbered if func is torch.Tensor.to else place
            return func(*map(change, args), **{key: place(value) for key, value in kwargs.items()})

    Placed().__enter__()
    known = torch.nn.Module.to
    torch.nn.Module.to = wraps(known)(
        lambda self, *args, **more: known(self, *map(numbered, args), **_map(place, more))
    )
    torch.nn.Module.cuda = lambda self, device=None: self
    torch.Tensor.is_cuda = property(lambda self: True)
    _cuda(torch, devices, current)
    _accelerator(torch, devices, current)
    _loading(torch, place)
    _distributed(torch)
    _normalization(torch)
    _precision(torch)


def _map(change: Callable[[Any], Any], values: dict[str, Any]) -> dict[str, Any]:
    return {key: change(value) for key, value in values.items()}


def _index(device: Any) -> int:
    if isinstance(device, int):
        return device
    return int(str(device).partition(":")[2] or 0)


def _cuda(torch: Any, devices: int, current: list[int]) -> None:
    cuda = torch.cuda
    cuda.is_available, cuda.device_count = lambda: devices > 0, lambda: devices
    cuda.set_device, cuda.current_device = lambda device: current.__setitem__(0, _index(device)), lambda: current[0]
    cuda.is_bf16_supported = lambda *_, **__: True
    cuda.get_device_name, cuda.get_device_capability = lambda *_: "the CPU", lambda *_: (9, 0)
    cuda.get_device_properties = lambda *_: SimpleNamespace(
        name="the CPU", major=9, minor=0, total_memory=2**34, multi_processor_count=1
    )
    cuda.mem_get_info = lambda *_: (2**33, 2**34)
    for name in NOTHING.split():
        setattr(cuda, name, lambda *_, **__: None)
    for name in ZERO.split():
        setattr(cuda, name, lambda *_, **__: 0)
    cuda.device = cuda.stream = lambda *_, **__: nullcontext()
    cuda.Stream = type("Stream", (), {"__new__": lambda *_, **__: None})  # a class, for annotations


def _accelerator(torch: Any, devices: int, current: list[int]) -> None:
    found = torch.accelerator
    found.is_available, found.device_count = lambda: devices > 0, lambda: devices
    found.current_accelerator = lambda *_, **__: torch.device("cuda")
    found.set_device_index = found.set_device_idx = lambda device: current.__setitem__(0, _index(device))
    found.current_device_index = found.current_device_idx = lambda: current[0]
    found.synchronize = lambda *_: None
    found.current_stream = lambda *_: SimpleNamespace(is_capturing=lambda: False)


def _loading(torch: Any, place: Callable[[Any], Any]) -> None:
    load, begun = torch.load, torch.utils.data.DataLoader.__init__

    @wraps(load)
    def loaded(f: Any, map_location: Any = None, **options: Any) -> Any:
        if isinstance(map_location, dict):
            map_location = "cpu"
        return load(f, map_location=place(map_location), **options)

    @wraps(begun)
    def begin_unpinned(self: Any, *args: Any, **options: Any) -> None:
        begun(self, *args, **{**options, "pin_memory": False})

    torch.load, torch.utils.data.DataLoader.__init__ = loaded, begin_unpinned


def _distributed(torch: Any) -> None:
    dist = torch.distributed
    join, reduce, parallel = dist.init_process_group, dist.all_reduce, torch.nn.parallel.DistributedDataParallel
    wrapped = parallel.__init__

    @wraps(join)
    def joined(backend: Any = None, *args: Any, **options: Any) -> Any:
        options.pop("device_id", None)
        join("gloo", *args, **options)
        Finalize(None, lambda: dist.is_initialized() and dist.destroy_process_group(), exitpriority=1)

    @wraps(reduce)
    def reduced(tensor: Any, op: Any = dist.ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
        if op != dist.ReduceOp.AVG:
            return reduce(tensor, op, group, async_op)
        reduce(tensor, dist.ReduceOp.SUM, group)
        tensor.div_(dist.get_world_size(group))
        return SimpleNamespace(wait=lambda: True) if async_op else None

    @wraps(wrapped)
    def wrapping(self: Any, module: Any, device_ids: Any = None, output_device: Any = None, **options: Any) -> None:
        wrapped(self, module, **options)

    importlib.import_module("torch.distributed._tensor.device_mesh")
    from torch.distributed.fsdp import FullyShardedDataParallel

    sharding = FullyShardedDataParallel.__init__

    @wraps(sharding)
    def shard(self: Any, *args: Any, **options: Any) -> None:
        sharding(self, *args, **{**options, "device_id": torch.device("cpu"), "sync_module_states": False})

    FullyShardedDataParallel.__init__ = shard
    arranged = torch.distributed.device_mesh.init_device_mesh
    arrange = wraps(arranged)(lambda device_type, *args, **options: arranged("cpu", *args, **options))
    for known in [each for each in sys.modules.values() if vars(each).get("init_device_mesh") is arranged]:
        known.init_device_mesh = arrange
    for module in (dist, dist.distributed_c10d):
        module.init_process_group, module.all_reduce = joined, reduced
    dist.get_default_backend_for_device = lambda device: "gloo"
    parallel.__init__ = wrapping


def _normalization(torch: Any) -> None:
    """SyncBatchNorm, which PyTorch has for GPUs only, from sums that autograd knows."""

    def forward(self: Any, x: Any) -> Any:
        dist, functional = torch.distributed, torch.distributed.nn.functional
        shape = (1, -1, *[1] * (x.dim() - 2))
        mean, variance = self.running_mean, self.running_var
        if self.training or mean is None:
            axes = [0, *range(2, x.dim())]
            count = torch.full((1,), x.numel() / x.shape[1])
            sums = torch.cat([x.sum(axes), (x * x).sum(axes), count])
            sums = functional.all_reduce(sums) if dist.is_initialized() else sums
            total, squares, count = sums.split([x.shape[1], x.shape[1], 1])
            mean = total / count
            variance = squares / count - mean * mean
            if self.training and self.track_running_stats:
                with torch.no_grad():
                    self.num_batches_tracked.add_(1)
                    part = self.momentum or 1 / float(self.num_batches_tracked)
                    self.running_mean.lerp_(mean, part)
                    self.running_var.lerp_(variance * count / (count - 1), part)
        x = (x - mean.view(shape)) * torch.rsqrt(variance.view(shape) + self.eps)
        return x * self.weight.view(shape) + self.bias.view(shape) if self.affine else x

    torch.nn.SyncBatchNorm.forward = forward
    parallel = torch.nn.parallel.DistributedDataParallel
    parallel._passing_sync_batchnorm_handle = lambda self, module: None


def _precision(torch: Any) -> None:
    begun = torch.amp.autocast.__init__

    @wraps(begun)
    def begin_on_cpu(self: Any, device_type: str, *args: Any, **options: Any) -> None:
        begun(self, "cpu" if device_type == "cuda" else device_type, *args, **options)

    torch.amp.autocast.__init__ = begin_on_cpu
