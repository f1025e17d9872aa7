"""Exchange with other libraries: memory without copies (DLPack, CUDA's array interface), the array API's namespace."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...drivers.refusals import ONE_STREAM, refused_by
from ...errors import ArgumentError, AutogradError, ExchangeError, InterfaceError, explain
from ...ground.locks import lock
from ...ground.public import method, public
from ...memory import foreign
from ...memory.array import DeviceArray
from ...tensors import Tensor, wrap
from ...types import Device, devices, dtypes

_taking = lock()  # of threads with the same capsule the second finds that it was consumed
_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")  # of the array API; each contains those before it
_TYPES = {entry.numpy.str: entry.numpy for entry in dtypes.ALL}  # bfloat16 is "<V2", as in PyTorch


@method("__dlpack__")
def _dlpack(
    self: Tensor, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """A DLPack capsule over the tensor's memory, which other libraries' `from_dlpack` ask for.

    Args:
        stream: the stream that waits for the tensor's: CUDA's pointer, 1 or None its default, 2 the thread's, -1 none.
        max_version: from (1, 0) on the capsule has a version and flags.
        dl_device: the kind and number of the device that the memory shall be on; the tensor's own unless given.
        copy: True for memory of its own, False to raise where a copy is needed.

    Raises:
        ExchangeError: the tensor requires grad, is on a simulated device, or needs a copy. ArgumentError: no stream.
    """
    place = self.device
    if stream is not None and type(stream) is not int:
        raise ArgumentError("stream must be ``int`` or ``none``")
    if dl_device is not None:
        kind, index = map(int, dl_device)
        if kind not in foreign.HOST + foreign.CUDA or index < 0:
            raise ExchangeError(f"can't export to the DLPack device ({kind}, {index}): it is no CPU or CUDA device")
        place = devices.cpu if kind in foreign.HOST else devices.cuda(index)
    x = _placed(self, "(i.e. copy=False) tensor", place, copy)
    if x._data.__class__ is DeviceArray:
        driver = foreign.reachable(f"can't export a tensor on {place} through DLPack.", x._data)
        if stream != -1:
            _order(driver, place.index, None, 1 if stream is None else stream)
        self._forget()
    elif stream not in (None, -1) and place is self.device:
        raise ExchangeError(f"stream should be None on cpu. Got {stream}.")
    data = x._data if x._data.__class__ is DeviceArray else x._host_array()
    return foreign.capsule_of(data, tuple(max_version or ()) >= (1, 0), bool(copy) or place is not self.device)


@method("__dlpack_device__")
def _dlpack_device(self: Tensor) -> tuple[int, int]:
    """The kind and number of the tensor's device in DLPack: (1, 0) is the CPU, (2, n) `cuda:n`; none if simulated."""
    if self._off_host:
        foreign.reachable(f"a tensor on {self.device} has no DLPack device.", self._data)
    if self.is_meta:
        raise ValueError("Unknown device type meta for Dlpack")
    return (2, self.device.index) if self._off_host else (1, 0)  # type: ignore[return-value]


@public(functional=False)
def to_dlpack(tensor: Tensor) -> Any:
    """Exports a tensor as a DLPack capsule of the old kind; `from_dlpack` of the tensor itself needs none.

    >>> import tritensor as torch
    >>> torch.from_dlpack(torch.to_dlpack(torch.ones(2)))
    tensor([1., 1.])
    """
    return _dlpack(tensor, stream=-1)


@public(functional=False)
def from_dlpack(ext_tensor: Any, *, device: Device = None, copy: bool | None = None) -> Tensor:
    """Makes a tensor on the memory of another library's array (DLPack), which is kept as long as it is used.

    Over memory of the host that must not be written the tensor cannot be changed in place; on a device it is copied.

    >>> import numpy as np
    >>> import tritensor as torch
    >>> torch.from_dlpack(np.arange(3.0)).dtype
    tritensor.float64

    Args:
        ext_tensor: an object with `__dlpack__` and `__dlpack_device__`, or a capsule, which can be used once.
        device: where the tensor shall be; where the array is unless given.
        copy: True for a copy in any case, False to raise where one is needed.

    Raises:
        ArgumentError: the object does not support DLPack. ExchangeError: no tensor can have its memory, or not without
            a copy. DeviceError: there is no driver.
    """
    place = None if device is None else devices.resolve(device)
    if isinstance(ext_tensor, Tensor):
        found, locked, copied = ext_tensor, False, False
    else:
        capsule = _capsule(ext_tensor, place, copy)
        with _taking:
            data, locked, copied = foreign.taken(capsule)
        found = wrap(data)
    must = locked and found._off_host  # any tensor on a device can be written
    if copy is False and (copied or must):
        fact = "must not be written" if must else "was copied by its producer"
        raise ExchangeError(f"cannot take memory that {fact} without copying", remedy="copy=None or copy=True")
    return _placed(found, "DLPack tensor", place or found.device, must or (None if copied else copy))


def _capsule(producer: Any, place: object, copy: bool | None) -> Any:
    """The capsule of another library's array, or itself."""
    if type(producer) is foreign.Capsule:
        return producer
    first = f"from_dlpack(): cannot take a {type(producer).__name__}"
    if not hasattr(producer, "__dlpack__") or not hasattr(producer, "__dlpack_device__"):
        raise ArgumentError(first, "it has no __dlpack__ and __dlpack_device__")
    with _errors_of(first):
        kind, index = map(int, producer.__dlpack_device__())
    options: dict[str, Any] = {"copy": False} if copy is False else {}
    if place is devices.cpu and kind not in foreign.HOST:
        options["dl_device"] = 1, 0
    elif kind in foreign.CUDA:
        driver = foreign.reachable(first)
        options["stream"] = driver.current_stream(driver.check(index)).cuda_stream
    options |= {} if foreign.MAX_VERSION is None else {"max_version": foreign.MAX_VERSION}
    with _errors_of(first):
        for name in [name for name in ("max_version", "copy", "dl_device") if name in options]:
            try:
                return producer.__dlpack__(**options)
            except TypeError:  # producers from before DLPack 1 do not know these
                del options[name]
        return producer.__dlpack__(**options)


@contextmanager
def _errors_of(first: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise ExchangeError(first, f"{type(error).__name__}: {error}") from error


def _placed(x: Tensor, what: str, place: devices.device, copy: bool | None) -> Tensor:
    if x._needs:
        raise ExchangeError("Can't export tensors that require gradient, use tensor.detach()")
    if copy is False and place is not x.device:
        words = f"cannot move {what} from {x.device} to {place} without copying"
        raise ExchangeError(words, remedy="copy=None or copy=True")
    return x.detach().to(place, copy=bool(copy))


def _order(driver: Any, index: Any, first: Any, then: Any) -> None:
    """Have one stream wait for another, both by CUDA's pointers; None is the current one."""
    ours = driver.current_stream(index)
    refused_by(driver, ours.handle, *ONE_STREAM)
    streams = [ours.cuda_stream if each is None else each for each in (first, then)]
    if any(type(each) is not int or each < 1 for each in streams):
        raise ExchangeError(f"unsupported stream on CUDA: {[first, then]}; there are 1, 2 and pointers of streams")
    if streams[0] != streams[1]:
        driver.order(index, *streams)


def _cuda_interface(self: Tensor) -> dict[str, Any]:
    """A tensor's memory on a CUDA device that is not simulated, and the stream to wait for, for other libraries."""
    data, first = self._data, "Can't get __cuda_array_interface__ on"
    if data.__class__ is not DeviceArray:
        words = "If CUDA data is required use tensor.cuda() to copy tensor to device memory."
        raise InterfaceError(f"{first} non-CUDA tensor type: {self.type()} {words}")
    driver = foreign.reachable(f"{first} a tensor on {self.device}.", data, InterfaceError)
    if self._needs:
        raise AutogradError(f"{first} Variable that requires grad. If gradients aren't required, use var.detach().")
    foreign.shared.add(data.buffer)
    self._forget()
    strides = None if data.is_contiguous() else tuple(step * data.itemsize for step in data.strides)
    facts = {"typestr": data.dtype.str, "shape": tuple(data.shape), "strides": strides, "version": 3}
    stream = driver.current_stream(data.device.index).cuda_stream
    return {**facts, "data": (data.data_ptr() if data.size else 0, False), "stream": stream}


method("__cuda_array_interface__")(property(_cuda_interface))


def of_cuda_array(data: object) -> Any:
    """A tensor over the memory of an object that has `__cuda_array_interface__` (2 or 3); anything else itself."""
    if isinstance(data, Tensor) or not hasattr(data, "__cuda_array_interface__"):
        return data
    first = f"cannot use the __cuda_array_interface__ of a {type(data).__name__}"
    with _errors_of(first):
        facts = {"strides": None, "stream": None, "mask": None, **data.__cuda_array_interface__}
        (address, locked), kind, stream = map(int, facts["data"]), _TYPES.get(facts["typestr"]), facts["stream"]
        shape, steps = (each if each is None else tuple(map(int, each)) for each in (facts["shape"], facts["strides"]))
        if facts["version"] not in (2, 3) or kind is None or shape is None or facts["mask"] is not None:
            raise ValueError(f"versions 2 and 3 without a mask and with elements of a dtype are known, not {facts}")
    driver = foreign.reachable(first)
    index = driver.check(driver.holder(address) if address else devices.current_index())
    found = wrap(foreign.array_over(first, address, shape, steps, kind, index, False, data))
    if stream is not None:
        _order(driver, index, stream, None)
    return found.clone() if locked else found


@method()
def __array_namespace__(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """`tritensor.array_api`, the functions of the Python array API standard.

    >>> import tritensor as torch
    >>> xp = torch.tensor([[1.0, 2.0]]).__array_namespace__()
    >>> xp.sum(xp.ones((2, 3)), axis=(0, 1), keepdims=True)
    tensor([[6.]])

    Raises:
        ValueError: `api_version` is none of 2021.12, 2022.12, 2023.12 and 2024.12.
    """
    if api_version not in (None, *_VERSIONS):
        raise ValueError(explain(f"__array_namespace__: no version {api_version!r}", f"there are {_VERSIONS}"))
    return sys.modules[Tensor.__module__].array_api  # the package imports it at its first use
