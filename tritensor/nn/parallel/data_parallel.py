"""One module on several devices: each gets a copy and a part of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from ... import autograd
from ...drivers import active, require
from ...errors import DeviceError, warn
from ...types import devices as places
from ..module import Module
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import _target, cuda_device, gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


def _warn_imbalance(ids: Sequence[int]) -> None:
    """Warn if a device has less than 75 % of another's memory or multiprocessors: the others would wait for it."""
    found = [require().properties(index) for index in ids]
    for values in ([each.total_memory for each in found], [each.multi_processor_count for each in found]):
        if min(values) < 0.75 * max(values):
            weak, strong = ids[values.index(min(values))], ids[values.index(max(values))]
            warn(
                f"There is an imbalance between your GPUs. You may want to exclude GPU {weak} which has less than 75% "
                f"of the memory or cores of GPU {strong}. You can do so by setting the device_ids argument to "
                "DataParallel, or by setting the CUDA_VISIBLE_DEVICES environment variable."
            )
            return


def _ordinals(device_ids: Sequence[Any] | None) -> list[int]:
    """The ordinals of the devices; None means all devices."""
    ids = range(require().device_count()) if device_ids is None else device_ids
    found = [cuda_device(each).index for each in ids]
    if not found:
        raise DeviceError("no available devices were found", remedy="name at least one in device_ids")
    return found  # type: ignore[return-value]


def _check_place(module: Module, source: places.device) -> None:
    for tensor in chain(module.parameters(), module.buffers()):
        if tensor.device != source:
            raise DeviceError(
                f"module must have its parameters and buffers on device {source} (device_ids[0]) but found one of "
                f"them on device: {tensor.device}",
                remedy=f"move the module with .to('{source}')",
            )


class DataParallel(Module):
    """Run a module on several devices at once, each on a part of the batch.

    A call splits the tensors among its arguments along `dim` into one part per device, copies the module to every
    device, runs each copy in a thread, and joins the outputs on `output_device`. Containers among the arguments are
    copied, other objects are shared. Gradients add up in the module's own parameters, so that one step with it equals a
    step on one device with the whole batch, for a loss that is computed from the joined outputs.

    As in PyTorch: attributes that forward assigns to `self` are lost with the copies; its changes in place to buffers
    are kept for the first device; outputs without dimensions become a vector with one element per device; without a
    CUDA device the module is just called; the state dict has a `module.` in front of every name.

    >>> import tritensor as torch
    >>> with torch.cuda.simulate(devices=2):
    ...     model = torch.nn.DataParallel(torch.nn.Linear(4, 2).to("cuda"))
    ...     model(torch.ones(5, 4)).shape
    tritensor.Size([5, 2])

    Args:
        module: the module; its parameters and buffers must be on the first device when it is called.
        device_ids: CUDA devices or ordinals; all of them unless given.
        output_device: where the results are joined; the first device unless given.
        dim: the dimension of the examples.

    Raises:
        DeviceError: a device that is not there, or (when called) a module that is elsewhere.
        ShapeError: (when called) tensors that cannot be split into the same number of parts.
    """

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module
        self.dim = dim
        self.device_ids: list[int] = []
        if active() is None:
            return
        self.device_ids = _ordinals(device_ids)
        self.src_device_obj = places.cuda(self.device_ids[0])
        self.output_device = _target(self.device_ids[0] if output_device is None else output_device)
        _warn_imbalance(self.device_ids)
        if len(self.device_ids) == 1:
            self.module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module on all devices and join the results."""
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        _check_place(self.module, self.src_device_obj)
        parts, named = self.scatter(inputs, kwargs, self.device_ids)
        if len(self.device_ids) == 1:
            return self.module(*parts[0], **named[0])
        replicas = self.replicate(self.module, self.device_ids[: len(parts)])
        return self.gather(self.parallel_apply(replicas, parts, named), self.output_device)

    def replicate(self, module: Module, device_ids: Sequence[Any]) -> list[Module]:
        """Copies of the module; recorded if gradients are enabled."""
        return replicate(module, device_ids, not autograd.is_grad_enabled())

    def scatter(self, inputs: tuple[Any, ...], kwargs: dict[str, Any], device_ids: Sequence[Any]) -> Any:
        """The arguments of each copy."""
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def parallel_apply(self, replicas: Sequence[Any], inputs: Sequence[Any], kwargs: Sequence[Any]) -> list[Any]:
        """The results of the copies."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Sequence[Any], output_device: Any) -> Any:
        """The joined outputs."""
        return gather(outputs, output_device, self.dim)


def data_parallel(
    module: Module,
    inputs: object,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call a module on several devices once; the arguments are those of `DataParallel`, and so is what it raises.

    Args:
        module: a module whose parameters and buffers are on the first device.
        inputs: its one argument, or a tuple of its positional arguments, or None.
        device_ids: CUDA devices or ordinals; all of them unless given.
        output_device: where the results are joined ("cpu" for the CPU); the first device unless given.
        dim: the dimension of the examples.
        module_kwargs: its keyword arguments.

    Raises:
        DeviceError: there is no CUDA device.
    """
    require()
    ids = _ordinals(device_ids)
    _check_place(module, places.cuda(ids[0]))
    arguments = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    parts, named = scatter_kwargs(arguments, module_kwargs, ids, dim)
    if len(ids) == 1:
        return module(*parts[0], **named[0])
    replicas = replicate(module, ids[: len(parts)], not autograd.is_grad_enabled())
    outputs = parallel_apply(replicas, parts, named, ids[: len(parts)])
    return gather(outputs, ids[0] if output_device is None else output_device, dim)
