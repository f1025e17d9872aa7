"""The current accelerator, by `torch.accelerator`'s names: CUDA, real or simulated, or none."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from . import cpu, cuda
from .cuda import (
    device_count,
    empty_cache,
    is_available,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_peak_memory_stats,
    set_stream,
)
from .errors import DeviceError
from .ground.public import public
from .types.devices import device as Device

__all__ = ["current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count"]
__all__ += ["device_index", "empty_cache", "is_available", "max_memory_allocated", "max_memory_reserved"]
__all__ += ["memory_allocated", "memory_reserved", "memory_stats", "reset_peak_memory_stats", "set_device_idx"]
__all__ += ["set_device_index", "set_stream", "synchronize"]


def _there() -> None:
    if not is_available():
        first = "Cannot access accelerator device when none is available."
        raise DeviceError(first, remedy="`python -m tritensor doctor` says why, and how to simulate devices")


def current_accelerator(check_available: bool = False) -> Device | None:
    """`device("cuda")` where there is a CUDA device, else None.

    >>> import tritensor as torch
    >>> device = torch.accelerator.current_accelerator() or torch.device("cpu")
    """
    return Device("cuda") if is_available() else None


@public(functional=False)
def get_device_module(device: Device | str | None = None) -> ModuleType:
    """The module of a type of device, `tritensor.cuda` or `tritensor.cpu`: that of the accelerator unless one is named.

    >>> import tritensor as torch
    >>> torch.get_device_module("cpu") is torch.cpu
    True

    Raises:
        RuntimeError: there is no module of that type, or `device` is neither a device nor its name.
    """
    if device is not None and not isinstance(device, (str, Device)):
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    kind = (current_accelerator() or Device("cpu") if device is None else Device(device)).type
    if kind not in ("cpu", "cuda"):
        raise DeviceError(f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'.")
    return cuda if kind == "cuda" else cpu


def current_device_index() -> int:
    """The index of the current device.

    Raises:
        DeviceError: there is none.
    """
    _there()
    return cuda.current_device()


def set_device_index(device: Device) -> None:
    """Make a device, its name or its index the current one.

    Raises:
        DeviceError: there is no such device.
    """
    _there()
    cuda.set_device(device)


def current_stream(device: Device | str | int | None = None) -> Any:
    """The current stream of a device.

    Raises:
        DeviceError: there is no such device.
    """
    _there()
    return cuda.current_stream(device)


def synchronize(device: Device | str | int | None = None) -> None:
    """Wait until a device has done its work.

    Raises:
        DeviceError: there is no such device.
    """
    _there()
    cuda.synchronize(device)


device_index = cuda.device
current_device_idx, set_device_idx = current_device_index, set_device_index
