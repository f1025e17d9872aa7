"""Copies of a module on several devices whose gradients are added up in the original."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from ...operators.function import Function
from ...tensors import Tensor
from ...types import devices as places
from .scatter_gather import cuda_device

__all__ = ["Broadcast", "replicate"]

M = TypeVar("M")


class Broadcast(Function):
    """`apply(targets, *tensors)`: all tensors on the first target, then all on the second, and so on.

    The gradient of a tensor is the sum over the targets, added in their order; a tensor that no target used gets none,
    as on one device (PyTorch gives zeros).
    """

    @staticmethod
    def forward(ctx: Any, targets: Sequence[places.device], *tensors: Tensor) -> Any:
        """Copy the tensors; on a tensor's own device the copy shares its memory."""
        ctx.sources = [x.device for x in tensors]
        ctx.set_materialize_grads(False)
        copies = [x.to(target, non_blocking=True).detach() for target in targets for x in tensors]
        ctx.mark_non_differentiable(
            *(copy for i, copy in enumerate(copies) if not ctx.needs_input_grad[1 + i % len(tensors)])
        )
        return tuple(copies)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> Any:
        """Add up each tensor's gradients on the device that it is on."""
        count = len(ctx.sources)
        totals: list[Tensor | None] = [None] * count
        for position, gradient in enumerate(gradients):
            if gradient is not None:
                index = position % count
                part = gradient.to(ctx.sources[index], non_blocking=True)
                before = totals[index]
                totals[index] = part if before is None else before + part
        return None, *totals


def _copies(tensors: Iterable[Tensor], targets: Sequence[places.device], detach: bool) -> list[dict[int, Tensor]]:
    """For each target, the copies by the `id` of the tensor that they were made from."""
    distinct = list({id(x): x for x in tensors}.values())
    if not distinct:
        return [{} for _ in targets]
    if detach:
        flat: Any = [x.detach().to(target, non_blocking=True) for target in targets for x in distinct]
    else:
        flat = Broadcast.apply(targets, *distinct)
    count = len(distinct)
    return [{id(x): flat[row * count + i] for i, x in enumerate(distinct)} for row in range(len(targets))]


def _shell(module: Any) -> Any:
    """A copy of a module that shares all attributes but the tables of parameters, buffers and children, which are
    empty."""
    shell = object.__new__(type(module))
    shell.__dict__.update(module.__dict__)
    shell.__dict__.update(_parameters={}, _buffers=module._buffers.copy(), _modules=module._modules.copy())
    return shell


def replicate(network: M, devices: Sequence[Any], detach: bool = False) -> list[M]:
    """A copy of a module on each device, for one forward pass.

    The parameters of the copies are computed from the original's, to which gradients flow back and where they add up;
    they are plain attributes of the copies, whose `parameters()` is therefore empty. On the original's device,
    parameters and buffers share its memory, so that changes in place by forward are kept. Everything else is shared
    among the copies.

    >>> import tritensor as torch
    >>> with torch.cuda.simulate(devices=2):
    ...     layer = torch.nn.Linear(2, 1).to("cuda:0")
    ...     [copy.weight.device for copy in torch.nn.parallel.replicate(layer, [0, 1])]
    [device(type='cuda', index=0), device(type='cuda', index=1)]

    Args:
        network: the module; its parameters and buffers are on one of the devices.
        devices: CUDA devices or ordinals.
        detach: do not record, for evaluation.

    Raises:
        DeviceError: a device that is not there. OutOfMemoryError: a device has not enough memory for the copies.
    """
    module: Any = network
    targets = [cuda_device(target) for target in devices]
    trained = [x for x in (*module.parameters(), *module.buffers()) if x.requires_grad and not detach]
    recorded = {id(x) for x in trained}
    plain = [x for x in (*module.parameters(), *module.buffers()) if id(x) not in recorded]
    originals = list(module.modules())
    replicas = []
    for copies, others in zip(_copies(trained, targets, False), _copies(plain, targets, True), strict=True):
        copies.update(others)
        shells = {id(original): _shell(original) for original in originals}
        for original in originals:
            own = shells[id(original)].__dict__
            for name, child in original._modules.items():
                own["_modules"][name] = None if child is None else shells[id(child)]
            for name, param in original._parameters.items():
                own[name] = None if param is None else copies[id(param)]
            for name, buffer in original._buffers.items():
                own["_buffers"][name] = None if buffer is None else copies[id(buffer)]
        replicas.append(shells[id(module)])
    return replicas
