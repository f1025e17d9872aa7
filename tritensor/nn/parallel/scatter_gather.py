"""Splitting the arguments of a call into one part per device, and joining the results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...drivers import require
from ...errors import ArgumentError, ShapeError, warn
from ...functional.views.joining import cat
from ...operators.function import Function
from ...tensors import Tensor, tensors_in
from ...types import Device, layout
from ...types import devices as places
from ...types.devices import ordinal

__all__ = ["Gather", "Scatter", "cuda_device", "gather", "scatter", "scatter_kwargs"]


def cuda_device(device: Device) -> places.device:
    """The CUDA device of an ordinal, a string or a device; None is the current one.

    Raises:
        DeviceError: it is no CUDA device, or it is not there.
    """
    return places.cuda(require().check(ordinal(device)))


def _target(device: Device) -> places.device:
    """Like `cuda_device`, with "cpu" and PyTorch's -1 for the CPU."""
    if device == -1 or (isinstance(device, (str, places.device)) and places.device(device).type == "cpu"):
        return places.cpu
    return cuda_device(device)


class Scatter(Function):
    """`apply(targets, sizes, dim, x)`: consecutive parts of `x` along `dim`, each on its device."""

    @staticmethod
    def forward(ctx: Any, targets: Sequence[places.device], sizes: Sequence[int], dim: int, x: Tensor) -> Any:
        """Copy the parts; a part on `x`'s device shares its memory."""
        ctx.source, ctx.dim = x.device, dim
        parts, start = [], 0
        for target, size in zip(targets, sizes, strict=True):
            parts.append(x.narrow(dim, start, size).to(target, non_blocking=True).detach())
            start += size
        return tuple(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        """Join the gradients of the parts on the device of `x`."""
        return None, None, None, Gather.apply(ctx.source, ctx.dim, *gradients)


class Gather(Function):
    """`apply(target, dim, *tensors)`: the tensors, each from its device, one after another along `dim` on `target`."""

    @staticmethod
    def forward(ctx: Any, target: places.device, dim: int, *tensors: Tensor) -> Tensor:
        """Copy the tensors and join them."""
        ctx.dim = dim
        ctx.sources = [(x.device, x.dtype) for x in tensors]
        ctx.sizes = [x.shape[dim] for x in tensors]
        return cat([x.to(target, non_blocking=True) for x in tensors], dim)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """Return every tensor's part of the gradient, on its device and in its dtype."""
        parts = Scatter.apply([device for device, _ in ctx.sources], ctx.sizes, ctx.dim, gradient)
        return None, None, *(part.to(dtype) for part, (_, dtype) in zip(parts, ctx.sources, strict=True))


# ---- scatter ------------------------------------------------------------------------------------------------------


def _is_namedtuple(value: object) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _chunk_sizes(size: int, count: int) -> list[int]:
    """The rows, of `size`, for each of `count` devices: equal parts, the last one smaller, and fewer parts than devices
    where there are too few rows."""
    if size == 0:
        return [0] * count
    step = -(-size // count)
    return [min(step, size - start) for start in range(0, size, step)]


def _parts(value: Any, targets: Sequence[places.device], dim: int) -> int:
    """Into how many parts the tensors in `value` are split; raises ShapeError unless the number is the same for all."""
    counts: dict[int, Tensor] = {}
    for x in tensors_in(value):
        if x.ndim == 0:
            raise ShapeError(
                "chunk expects at least a 1-dimensional tensor",
                "scatter() found a tensor without dimensions among the arguments, which cannot be cut into parts",
                remedy="pass it as a number (x.item()), or give it a row for every example",
            )
        size = x.shape[layout.normalize_dim(dim, x.ndim)]
        counts.setdefault(len(_chunk_sizes(size, len(targets))), x)
    if len(counts) > 1:
        raise ShapeError(
            f"scatter: the tensors fall into different numbers of parts along dimension {dim}",
            *(f"shape {tuple(x.shape)} falls into {count}" for count, x in counts.items()),
            remedy=f"give every tensor the same size along dimension {dim}",
        )
    return next(iter(counts), len(targets))


def _spread(value: object, targets: Sequence[places.device], dim: int) -> Any:
    """One value per target: a part of a tensor, a copy of a container, the object itself otherwise."""
    if isinstance(value, Tensor):
        dim = layout.normalize_dim(dim, value.ndim)
        return Scatter.apply(targets, _chunk_sizes(value.shape[dim], len(targets)), dim, value)
    if isinstance(value, (tuple, list)):
        columns = [_spread(entry, targets, dim) for entry in value]
        rows = [[column[i] for column in columns] for i in range(len(targets))]
        if _is_namedtuple(value):
            return [type(value)(*row) for row in rows]
        return [tuple(row) for row in rows] if isinstance(value, tuple) else rows
    if isinstance(value, dict):
        spread = [(key, _spread(entry, targets, dim)) for key, entry in value.items()]
        return [type(value)((key, column[i]) for key, column in spread) for i in range(len(targets))]
    return [value] * len(targets)


def scatter(inputs: object, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Split tensors along `dim` into one part per device; copy the containers that hold them, share all other objects.

    The parts are equal but for the last, which may be smaller; when there are fewer rows than devices, the last devices
    get none. Gradients of the parts flow back to the tensor that was split.

    >>> import tritensor as torch
    >>> with torch.cuda.simulate(devices=3):
    ...     [part.tolist() for part in torch.nn.parallel.scatter(torch.arange(7), [0, 1, 2])]
    [[0, 1, 2], [3, 4, 5], [6]]

    Args:
        inputs: a tensor, or nested tuples, lists, dicts and named tuples with tensors in them, on any devices.
        target_gpus: CUDA devices or ordinals.
        dim: the dimension to split.

    Returns:
        A tuple of tensors for a tensor, a list otherwise: one entry per device that gets one.

    Raises:
        ShapeError: a tensor without dimensions, or tensors that cannot be split into the same number of parts.
        DeviceError: a device that is not there.
    """
    targets = [cuda_device(target) for target in target_gpus]
    return _spread(inputs, targets[: _parts(inputs, targets, dim)], dim)


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Scatter the positional and the keyword arguments of a call: one tuple and one dict per device.

    A call without arguments runs on the first device only. Raises as `scatter`.
    """
    if not inputs and not kwargs:
        return ((),), ({},)
    spread = scatter((inputs, kwargs or {}), target_gpus, dim)
    return tuple(part for part, _ in spread), tuple(part for _, part in spread)


# ---- gather -------------------------------------------------------------------------------------------------------


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """Join what every device returned: tensors along `dim`, and the tensors in equally built containers.

    Tensors without dimensions become a vector with one element per device (with a warning, as in PyTorch).

    >>> import tritensor as torch
    >>> with torch.cuda.simulate(devices=2):
    ...     parts = torch.nn.parallel.scatter(torch.arange(3), [0, 1])
    ...     torch.nn.parallel.gather(parts, "cpu")
    tensor([0, 1, 2])

    Args:
        outputs: one tensor, None, or container of these per device.
        target_device: a CUDA device, its ordinal, or "cpu".
        dim: the dimension along which to join.

    Raises:
        ArgumentError: values that cannot be joined. ValueError: dicts or sequences of different sizes.
        ShapeError: tensors whose other sizes differ. DeviceError: a device that is not there.
    """
    return _join(list(outputs), _target(target_device), dim)


def _join(outputs: list[Any], target: places.device, dim: int) -> Any:
    first = outputs[0]
    if isinstance(first, Tensor):
        return _join_tensors(outputs, target, dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(other) != len(first) for other in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, _join([other[key] for other in outputs], target, dim)) for key in first)
    if isinstance(first, (tuple, list)):
        entries = (_join(list(column), target, dim) for column in zip(*outputs, strict=True))
        return type(first)(*entries) if _is_namedtuple(first) else type(first)(entries)
    raise ArgumentError(
        f"gather(): cannot join values of type {type(first).__name__}",
        "what a module returns on several devices must be tensors or None, in tuples, lists and dicts",
        remedy="return a tensor, as torch.tensor([value], device=...)",
    )


def _join_tensors(tensors: list[Any], target: places.device, dim: int) -> Tensor:
    if dim == 0 and all(isinstance(x, Tensor) and x.ndim == 0 for x in tensors):
        warn(
            "Was asked to gather along dimension 0, but all input tensors were scalars; will instead unsqueeze "
            "and return a vector."
        )
        tensors = [x.reshape(1) for x in tensors]
    return Gather.apply(target, layout.normalize_dim(dim, tensors[0].ndim), *tensors)
