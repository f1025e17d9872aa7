"""The devices of a checkpoint's storages: the rules of PyTorch's `map_location`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from .. import drivers
from ..errors import ArgumentError, TritensorError
from ..types import Device, devices
from .builder import StorageRecord
from .malformed import CallersError, Malformed


class StorageHandle:
    """The argument of a callable `map_location` for a storage, and its result.

    It represents the storage before it is read; `cuda()`, `cpu()` and `to()` set the device that it is read to, so
    nothing is copied twice.
    """

    def __init__(self, nbytes: int, device: devices.device = devices.cpu) -> None:
        self._nbytes = nbytes
        self.device = device

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._nbytes

    size = __len__ = nbytes

    def cpu(self) -> StorageHandle:
        """The storage, to be read to the CPU."""
        return self.to("cpu")

    def cuda(self, device: Device = None, non_blocking: bool = False) -> StorageHandle:
        """The storage, to be read to a CUDA device (the current one if none is named)."""
        return self.to("cuda" if device is None else device)

    def to(self, device: Device, non_blocking: bool = False) -> StorageHandle:
        """The storage, to be read to `device`."""
        return StorageHandle(self._nbytes, check_place(str(devices.device(device))))


def restorer(map_location: Any) -> Callable[[StorageRecord], devices.device]:
    """The function from a storage of a file to the device that it is read to.

    Args:
        map_location: None (where it was saved from), a device, its name or a CUDA ordinal (everything there), a mapping
            of saved names to names, or a callable of a storage and its saved name that returns the storage moved, or
            None for the default.

    Raises:
        ArgumentError: anything else.
        Malformed: a device that is not there, with PyTorch's words.
    """
    if map_location is None:
        return lambda record: check_place(record.location)
    name = _name(map_location)
    if name is not None:
        place = check_place(name)
        return lambda record: place
    if isinstance(map_location, Mapping):
        return lambda record: check_place(_look_up(map_location, record.location))
    if callable(map_location):
        return lambda record: _ask(map_location, record)
    raise ArgumentError(
        f"load(): map_location must be a device, its name, a CUDA ordinal, a dict, a callable or None, not "
        f"{type(map_location).__name__}",
        remedy="call load(path, map_location='cpu')",
    )


def _name(place: Any) -> str | None:
    """The name of a device, from a name (text or bytes), a CUDA ordinal or a device."""
    if isinstance(place, bytes):
        return place.decode("ascii", "replace")
    if isinstance(place, int) and not isinstance(place, bool):
        return f"cuda:{place}"
    return str(place) if isinstance(place, (str, devices.device)) else None


def _look_up(mapping: Mapping[Any, Any], location: str) -> str:
    found = mapping.get(location, location)
    name = _name(found)
    if name is None:
        raise CallersError from ArgumentError(
            f"load(): map_location maps {location!r} to a {type(found).__name__}",
            remedy="map it to a device or its name",
        )
    return name


def _ask(function: Callable[..., Any], record: StorageRecord) -> devices.device:
    try:
        answer = function(StorageHandle(record.nbytes), record.location)
    except Exception as error:
        raise CallersError from error
    if answer is None:
        return check_place(record.location)
    if not isinstance(answer, StorageHandle):
        raise CallersError from ArgumentError(
            f"load(): map_location returned a {type(answer).__name__}",
            remedy="return the storage it was given, storage.cuda(index), or None",
        )
    return answer.device


def check_place(location: str) -> devices.device:
    """The device that a location tag names, after checking that it exists."""
    if location == "cpu" or re.fullmatch(r"cpu:[0-9]+", location):
        return devices.cpu
    if location == "meta":
        return devices.meta
    try:
        place: devices.device | None = devices.device(location)
    except TritensorError:
        place = None
    if place is None or place.type != "cuda":
        shown = location if location.isprintable() else ascii(location)
        raise Malformed(
            f"don't know how to restore data location of torch.UntypedStorage (tagged with {shown[:40]})",
            "tritensor has the devices cpu, cuda and meta",
            remedy="call load(path, map_location='cpu')",
        )
    driver = drivers.active()
    count = 0 if driver is None else driver.device_count()
    if not count:
        raise Malformed(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
            "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
            "storages to the CPU.",
            f"the device asked for is {location}",
            remedy="call load(path, map_location='cpu'), or simulate devices with TRITENSOR_SIMULATE_CUDA=1",
        )
    if place.index is not None and place.index >= count:
        raise Malformed(
            f"Attempting to deserialize object on CUDA device {place.index} but torch.cuda.device_count() is {count}. "
            "Please use torch.load with map_location to map your storages to an existing device.",
            remedy=f"call load(path, map_location={{'{location}': 'cuda:0'}})",
        )
    return devices.resolve(place)
