"""Devices of tensors: the `device` object, the current CUDA device, and the default device of new tensors."""

from __future__ import annotations

import re
import threading
from contextvars import ContextVar
from typing import Any

from ..errors import ArgumentError, DeviceError
from ..ground.locks import lock
from ..ground.public import public

__all__ = ["device", "get_default_device", "set_default_device"]

_FORM = re.compile(r"([a-z]+)(?::(0|[1-9][0-9]*))?")
# Other devices of PyTorch, which programs name to compare with: no tensor is on them.
_NAMED = frozenset(("hpu", "ipu", "lazy", "maia", "meta", "mps", "mtia", "privateuseone", "vulkan", "xla", "xpu"))


@public(functional=False)
class device:
    """A device of tensors: `device("cpu")`, `device("cuda")`, `device("cuda:1")`, `device("cuda", 1)`, `device(1)`.

    `"cuda"` without an index means the current CUDA device at the moment of use, so it does not equal `"cuda:0"`.
    As a context manager it is the default device of the tensors made in the block.

    >>> device("cuda", 1), device("cuda") == device("cuda:0")
    (device(type='cuda', index=1), False)

    Raises:
        DeviceError: an unknown type or a malformed string, with PyTorch's first words.
    """

    __module__ = "tritensor"

    __slots__ = ("_hash", "index", "type")

    type: str
    index: int | None

    def __new__(cls, type: Any = None, index: int | None = None) -> device:
        """A new device; a `device` as the argument is returned itself."""
        if type.__class__ is device and index is None:
            return type
        return object.__new__(cls)

    def __init__(self, type: Any = None, index: int | None = None) -> None:
        if type is self:
            return
        if isinstance(type, bool) or not isinstance(type, (str, int)):
            raise ArgumentError(f"device(): argument 'type' must be str or int, not {type.__class__.__name__}")
        if index is not None and (isinstance(index, bool) or not isinstance(index, int)):
            raise ArgumentError(f"device(): argument 'index' must be int, not {index.__class__.__name__}")
        kind, found = ("cuda", type) if isinstance(type, int) else _parse(type)
        if found is not None and index is not None:
            if isinstance(type, int):
                raise ArgumentError("device(): argument 'type' must be str where an index is given, not int")
            raise DeviceError(f"type (string) must not include an index because index was passed explicitly: {type}")
        index = found if index is None else index
        if index is not None and index < 0:
            raise DeviceError(f"Device index must not be negative, got {index}")
        self.type, self.index = kind, index
        self._hash = hash((kind, index))

    def __eq__(self, other: object) -> bool:
        return self is other or (other.__class__ is device and self.type == other.type and self.index == other.index)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return f"device(type='{self.type}'{'' if self.index is None else f', index={self.index}'})"

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (str(self),)

    def __enter__(self) -> device:
        _state.before.append(_state.default)
        _state.default = self
        return self

    def __exit__(self, *exception: object) -> None:
        _state.default = _state.before.pop()


def _parse(text: str) -> tuple[str, int | None]:
    kind = text.split(":", 1)[0]
    if kind not in ("cpu", "cuda") and kind not in _NAMED:
        raise DeviceError(
            f"Expected one of cpu, cuda device type at start of device string: {kind}",
            f"got {text!r}",
            remedy="write 'cpu', 'cuda' or 'cuda:1', in lower case",
        )
    match = _FORM.fullmatch(text)
    if match is None:
        raise DeviceError(f"Invalid device string: '{text}'", remedy="write 'cpu', 'cuda' or 'cuda:1'")
    return kind, None if match[2] is None else int(match[2])


class _State(threading.local):
    default: device | None = None

    def __init__(self) -> None:
        self.before: list[device | None] = []  # the defaults from before the blocks that this thread is in


_state = _State()
# Of a thread, and of an asyncio task within it: tasks may simulate devices at once, and each has its own then.
_current: ContextVar[int] = ContextVar("tritensor.types.devices.current", default=0)
cpu, meta = device("cpu"), device("meta")
_cuda: list[device] = []
_making = lock()
_global_default: device = cpu


def cuda(index: int) -> device:
    """The one `device` object of a CUDA ordinal, so that devices in use can be compared with `is`."""
    try:
        return _cuda[index]
    except IndexError:
        with _making:  # two threads would each make one, and the ordinals after it would name other devices
            while len(_cuda) <= index:
                _cuda.append(device("cuda", len(_cuda)))
        return _cuda[index]


def current_index() -> int:
    """The ordinal that `"cuda"` without an index means in this thread."""
    return _current.get()


def set_current_index(index: int) -> None:
    """Make `index` the ordinal that `"cuda"` means in this thread; the caller has checked that the device exists."""
    _current.set(index)


@public(functional=False)
def get_default_device() -> device:
    """The device of new tensors for which none is named (the CPU unless set otherwise)."""
    return _state.default or _global_default


@public(functional=False)
def set_default_device(device: Any) -> None:
    """Make `device` the device of new tensors for which none is named; None resets it to the CPU."""
    global _global_default
    _global_default = cpu if device is None else _class(device)


_class = device
Device = device | str | int | None  # what a caller names one by; None is the default


def resolve(place: object) -> device:
    """The concrete device that the user means: None is the default device, "cuda" the thread's current one.

    "cpu:0" and "cpu:1" are the CPU, "meta:0" is "meta". The allocation of memory checks whether the ordinal exists.
    """
    place = get_default_device() if place is None else place
    found = place if place.__class__ is device else device(place)
    if found.type == "cpu":
        return cpu
    if found.type == "meta":
        return meta
    if found.type != "cuda":
        raise DeviceError(f"tensors cannot be on a {found.type} device", remedy="use 'cpu', 'cuda', 'cuda:1' or 'meta'")
    return cuda(_current.get() if found.index is None else found.index)


def ordinal(place: object) -> int:
    """The ordinal of a CUDA device given as a device, a string, a number, or None for the current one.

    Raises:
        DeviceError: it is another kind of device.
    """
    if place is None:
        return _current.get()
    if isinstance(place, int) and not isinstance(place, bool):
        if place < 0:
            raise DeviceError("CUDA error: invalid device ordinal", f"got {place}")
        return place
    found = device(place)
    if found.type != "cuda":
        raise DeviceError(f"Expected a cuda device, but got: {found}")
    return _current.get() if found.index is None else found.index
