"""Moving and converting tensors: `to` and its short forms, copies, and pinned memory.

`to` returns the tensor itself when nothing changes. A copy to another device or dtype is recorded: its gradient is
on the source's device and in its dtype.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...autograd.mode import recording
from ...autograd.tape import Gradient, Node, record
from ...drivers import Stream, active
from ...errors import ArgumentError, DeviceError, DtypeError, ShapeError, explain
from ...ground.arguments import check_tensor
from ...ground.public import method, public
from ...host import copying
from ...host.scalars import converted, representable, single
from ...host.threads import quietly
from ...kernels.bounds import alike, bounds_at_host, within
from ...memory import buffer, copies, sending
from ...memory.array import DeviceArray
from ...memory.deferred import Deferred
from ...memory.lifted import Dual, Lifted, device_of
from ...memory.sparse import Sparse
from ...operators import copy_into, registry
from ...operators.inplace import OverlapError, check_writable, is_itself, write
from ...operators.rules import Number
from ...tensors import Tensor, wrap
from ...types import Device, devices, dtypes, formats, layout
from ..creation.strides import new_strides, restrided
from .expanded import collapsed

_SMALL = 65504  # every floating dtype holds the numbers up to it

_SIGNATURES = (
    "(device device = None, dtype dtype = None, bool non_blocking = False, bool copy = False, *, "
    "memory_format memory_format)",
    "(dtype dtype, bool non_blocking = False, bool copy = False, *, memory_format memory_format)",
    "(Tensor tensor, bool non_blocking = False, bool copy = False, *, memory_format memory_format)",
)


class _ToCopy(Gradient):
    """The gradient of a copy to another device or dtype: a copy back to the source's device and dtype."""

    name = "ToCopyBackward0"
    __slots__ = ("device", "dtype")

    def __init__(self, x: Tensor) -> None:
        self.device, self.dtype = x.device, x.dtype

    def run(self, node: Node, gradient: Any) -> tuple[Any, ...]:
        return (gradient.to(self.device, self.dtype),)


def parse_to(
    args: tuple[Any, ...], device: Device, dtype: dtypes.dtype | None, other: Any = None
) -> tuple[Any, Any, tuple[Any, ...]]:
    """Sort the positional arguments of PyTorch's three overloads into (device, dtype, the flags that follow)."""
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
    elif rest and isinstance(rest[0], (dtypes.dtype, type)):
        dtype = rest.pop(0)
    elif rest and (
        rest[0] is None or (isinstance(rest[0], (str, int, devices.device)) and not isinstance(rest[0], bool))
    ):
        device = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], (dtypes.dtype, type))):
            dtype = rest.pop(0)
    if other is not None:
        device, dtype = other.device, other.dtype
    dtype = dtypes.of_argument(dtype) or dtype
    known = dtype is None or isinstance(dtype, dtypes.dtype)
    if not known or len(rest) > 2 or not all(isinstance(flag, bool) for flag in rest):
        got = ", ".join([*(type(value).__name__ for value in args), *([] if known else [f"dtype={dtype!r}"])])
        raise ArgumentError(
            f"to() received an invalid combination of arguments - got ({got}), but expected one of:",
            *(f"* {signature}" for signature in _SIGNATURES),
        )
    return device, dtype, tuple(rest)


@method()
def to(
    self: Tensor,
    *args: Any,
    device: Device = None,
    dtype: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
    other: Any = None,
) -> Tensor:
    """Converts to another device, dtype, or both; the tensor itself when neither differs.

    Overloads, as in PyTorch: `to(dtype)`, `to(device, dtype)`, `to(other)`, each with `non_blocking` and `copy`.
    `non_blocking=True` may return before the copy has finished; the first use of the result waits for it. A copy keeps
    the order of the dimensions in memory, unless a `memory_format` is given; then the tensor itself is returned only if
    it is in that format.

    >>> import tritensor as torch
    >>> x = torch.ones(2)
    >>> x.to("cpu") is x, x.to(torch.float64).dtype
    (True, tritensor.float64)

    Raises:
        ArgumentError: the arguments fit no overload. DeviceError: no such device.
    """
    device, dtype, flags = parse_to(args, device, dtype, other)
    if flags:
        non_blocking = flags[0]
        copy = flags[1] if len(flags) > 1 else copy
    data = self._data
    source = devices.cpu if data.__class__ is np.ndarray else device_of(data)
    where = source if device is None else devices.resolve(device)
    kind = data.dtype if dtype is None else dtype.numpy
    unchanged = where is source and kind == data.dtype and not copy
    if unchanged and (memory_format is None or _has_format(self, "to", memory_format)):
        return self
    del data  # another reference, which `can_be_sent` would count
    bounds = None if where is devices.cpu else bounds_at_host(self, kind)
    strides = new_strides(self, "to", memory_format)
    sent = None
    if non_blocking and self._pinned and where is not devices.cpu and strides is None:
        sent = _sent(self, where, kind)
    result = within(wrap(_moved(self, where, kind, non_blocking, strides) if sent is None else sent), bounds)
    result = Deferred.rules.entered(result) if Deferred.used else result
    if self._needs and recording.enabled and dtypes.of(kind).category >= dtypes.FLOATING:
        result._node = record(_ToCopy(self), (self._edge(),))
        result._needs = True
    return result


def _sent(x: Tensor, where: devices.device, kind: np.dtype) -> DeviceArray | None:
    """An array on a device that is being copied directly from the pinned memory of `x`, if `can_be_sent`, else None."""
    source = x._data.dtype
    if kind.itemsize < source.itemsize or not sending.can_be_sent(x):
        return None
    target = buffer.empty(x._data.shape, source, where)
    if not sending.send(target, x):
        return None
    return target if kind == source else cast_on_device(target, kind)


def _has_format(x: Tensor, call: str, format: formats.memory_format) -> bool:
    formats.check(call, format)
    return format is formats.preserve_format or format is formats.suggested(tuple(x._data.shape), x.stride())


def _moved(
    x: Tensor, where: devices.device, kind: np.dtype, non_blocking: bool, strides: tuple[int, ...] | None
) -> Any:
    """A new array with `x`'s elements on `where` in dtype `kind`, with the strides given or contiguous."""
    if x._data.__class__ is not np.ndarray and isinstance(x._data, Lifted):
        if x._data.__class__ is Sparse:
            indices = x._data.indices
            moved = indices if where is x.device else _moved(wrap(indices), where, indices.dtype, non_blocking, None)
            values = _moved(wrap(x._data.array), where, kind, non_blocking, None)
            return Sparse(moved, values, x._data.shape, x._data.coalesced)
        if x.dtype.category >= dtypes.FLOATING > dtypes.of(kind).category and isinstance(x._data, Dual):
            return _moved(wrap(x._data.array), where, kind, non_blocking, None)
        if x._data.__class__ is Deferred:
            if where is not x.device or strides is not None:
                return _moved(wrap(x._data.settled()), where, kind, non_blocking, strides)
            return Deferred.rules.cast(x._data, kind, lambda array: _transferred(array, where, kind, non_blocking))
        return x._data.mapped(lambda array: _moved(wrap(array), where, kind, non_blocking, None))
    data = x._data if x._data.__class__ is DeviceArray else x._host_array()
    if strides is None:
        return _transferred(data, where, kind, non_blocking)
    turned = data.transpose(formats.memory_order(data.shape, strides))
    return restrided(_transferred(turned, where, kind, non_blocking), data.shape, strides)


def _transferred(data: Any, where: devices.device, kind: np.dtype, non_blocking: bool) -> Any:
    """A contiguous copy on `where` in dtype `kind`; casts on the side that makes the transfer smaller."""
    if data.__class__ is DeviceArray:
        if where is data.device:
            return cast_on_device(data, kind)
        if kind.itemsize < data.itemsize:
            data = cast_on_device(data, kind)
        elif not data.is_contiguous():
            data = cast_on_device(data, data.dtype)
        if where is devices.cpu:
            data = copies.to_host(data, non_blocking and kind == data.dtype)
            return data if kind == data.dtype else copying.cast(data, kind)
        moved = copies.copy_across(data, where, non_blocking)
        return moved if kind == data.dtype else cast_on_device(moved, kind)
    if where is devices.cpu:
        return copying.copied(data) if kind == data.dtype else np.asarray(copying.cast(data, kind), order="C")
    if kind.itemsize > data.itemsize:
        return cast_on_device(copies.from_host(data, where, non_blocking), kind)
    return copies.from_host(copying.cast(data, kind), where, non_blocking)


def cast_on_device(array: DeviceArray, kind: np.dtype) -> DeviceArray:
    """A contiguous copy on the same device, in dtype `kind`."""
    out = buffer.empty(array.shape, kind, array.device)
    copy_into(out, array)
    return out


@method()
def cpu(self: Tensor, *, non_blocking: bool = False, memory_format: formats.memory_format | None = None) -> Tensor:
    """The tensor in host memory; itself when it is there already."""
    return to(self, "cpu", non_blocking=non_blocking, memory_format=memory_format)


@method()
def cuda(self: Tensor, device: Device = None, non_blocking: bool = False, *, memory_format: Any = None) -> Tensor:
    """The tensor on a CUDA device (the current one unless given); itself when it is there already."""
    place = devices.device("cuda", devices.ordinal(device))
    return to(self, place, non_blocking=non_blocking, memory_format=memory_format)


@method()
def contiguous(self: Tensor, *, memory_format: formats.memory_format | None = formats.contiguous_format) -> Tensor:
    """A contiguous tensor: in row-major order (or a memory format) without gaps; itself when it is that already.

    Raises:
        ShapeError: `preserve_format`, or a format of tensors of another rank.
    """
    data = self._data
    if data.__class__ is np.ndarray and data.flags.c_contiguous and memory_format is formats.contiguous_format:
        return self
    if self.is_contiguous(memory_format=memory_format):
        return self
    if memory_format is formats.preserve_format:
        raise ShapeError("preserve memory format is unsupported by the contiguous operator")
    return clone(self, memory_format=memory_format)


_copy: Any = registry["copy"]


@method()
def clone(self: Tensor, *, memory_format: formats.memory_format | None = None) -> Tensor:
    """A copy that gradients pass through, with the dimensions in the same order in memory unless a format is given.

    >>> import tritensor as torch
    >>> x = torch.zeros(2, 3).T
    >>> x.clone().stride(), x.clone(memory_format=torch.contiguous_format).stride()
    ((1, 3), (2, 1))
    """
    data, copy = self._data, _copy
    if memory_format is None and data.__class__ is np.ndarray and data.flags.c_contiguous:
        return copy.method(self)
    strides = None if memory_format is formats.contiguous_format else new_strides(self, "clone", memory_format)
    if strides is None:
        return alike(copy.method(self), self)
    data = data if data.__class__ is DeviceArray else self._host_array()
    turned = wrap(data.transpose(formats.memory_order(data.shape, strides)))
    result = wrap(restrided(copy(turned)._data, data.shape, strides))
    if recording.enabled:
        copy.record((result,), (self,), {}, alike=True)
    return result


@method()
def copy_(self: Tensor, src: object, non_blocking: bool = False) -> Tensor:
    """Copy `src`, a tensor of any device and dtype that broadcasts, or a number, into the tensor in place."""
    if isinstance(src, (bool, int, float, complex)):
        src = wrap(np.asarray(representable(src) if type(src) is int else src))
    if not isinstance(src, Tensor):
        raise ArgumentError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(src).__name__}")
    try:
        check_writable(self)
    except OverlapError:
        if is_itself(self, src):
            self._count_change()
            return self
        raise
    if Sparse.used and Sparse in (self._data.__class__, src._data.__class__):
        Sparse.rules.copy(self, src)
        return self
    layout.broadcast_strides(tuple(src.shape), (0,) * src.ndim, tuple(self.shape))
    if _goes_straight(self, src):
        if self._data.__class__ is np.ndarray:
            copies.to_host(src._data, into=self._data)
        elif not (non_blocking and src._pinned and sending.can_be_sent(src) and sending.send(self._data, src)):
            copies.copy_into(self._data, src._host_array(), non_blocking)
        self._count_change()
        return self
    write(self, src.to(self.device, self.dtype, non_blocking=non_blocking).expand(self.shape))
    return self


def _goes_straight(target: Tensor, source: Tensor) -> bool:
    """True if a copy between host and device can write to the target directly: nothing is converted or recorded."""
    here, there = target._data, source._data
    if isinstance(here, Lifted) or isinstance(there, Lifted):
        return False
    onto_host = here.__class__ is np.ndarray and there.__class__ is DeviceArray
    return (
        (onto_host or (here.__class__ is DeviceArray and there.__class__ is not DeviceArray))
        and (here.shape, here.dtype) == (there.shape, there.dtype)
        and here.size > 0
        and target.is_contiguous()
        and source.is_contiguous()
        and not (recording.enabled and (target._needs or source._needs))
    )


@method(function=True)
def fill_(self: Tensor, value: object) -> Tensor:
    """Fill every element with one number.

    Raises:
        DtypeError: the dtype does not hold the number.
    """
    return _fill(self, value)


@public(functional=False)
def fill(input: Tensor, value: object) -> Tensor:
    """A tensor like the input, filled with one number: a Python number or a tensor without dimensions.

    >>> import tritensor as torch
    >>> torch.fill(torch.zeros(2), 3)
    tensor([3., 3.])

    Raises:
        DtypeError: the dtype does not hold the number, or `value` has dimensions.
    """
    return _fill(input.clone(), value)


def _fill(self: Tensor, value: Any, name: str = "") -> Tensor:
    """Write one number to every element; `name` is that of the node, unless it is PyTorch's for `fill_`."""
    name = name or f"FillBackward{int(isinstance(value, Tensor))}"
    try:
        check_writable(self)
    except OverlapError:
        if isinstance(value, Tensor):
            raise
        _fill(collapsed(self)[0], value, name)
        return self
    if Sparse.used and self._data.__class__ is Sparse:
        if value.__class__ is not int or value:
            raise self._data.refusal("fill_")
        write(self, Sparse.rules.without_values(self))
        return self
    plain = value.__class__ is float or value.__class__ is int
    simple = (
        plain and self._data.dtype.kind == "f" and self._data.dtype.itemsize > 1 and not isinstance(self._data, Lifted)
    )
    if simple and not (recording.enabled and self._needs):
        if not -_SMALL <= value <= _SMALL:
            value = _held(value, self)
        if self._data.__class__ is DeviceArray:
            copy_into(self._data, value)
        else:
            quietly(self._host_array().fill, value)
        self._count_change()
        return self
    source = value if isinstance(value, Tensor) else self.new_full((), _held(value, self))
    if source.ndim:
        raise DtypeError(f"fill_ only supports 0-dimension value tensor but got tensor with {source.ndim} dimensions.")
    write(self, source.to(self.device, self.dtype).expand(self.shape), name)
    return self


def _held(value: Any, x: Tensor) -> Any:
    """A number that all elements become; of half precision only a single one may become infinite."""
    if not isinstance(value, Number):
        return value  # `full` refuses it
    return (single if x.numel() == 1 else converted)(value, x.dtype)


@method(function=True)
def zero_(self: Tensor) -> Tensor:
    """Fill every element with zero."""
    return _fill(self, 0, "ZeroBackward0")


@method()
def pin_memory(self: Tensor, device: Device = None) -> Tensor:
    """A copy in page-locked host memory, which copies to a GPU faster; the tensor itself where there is no GPU.

    Raises:
        DeviceError: the tensor is not on the CPU.
    """
    if self._off_host:
        raise DtypeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")
    if active() is None or self._pinned:
        return self
    result = wrap(copies.pin(self._host_array()))
    result._pinned = True
    return result


@method()
def record_stream(self: Tensor, s: Stream) -> None:
    """Note that work of another stream uses the tensor: its memory is not used again before that work is done.

    The library calls this for its own kernels and copies; call it for work that another library, or a kernel of your
    own, submits to a stream.

    Raises:
        DeviceError: the tensor is not on a CUDA device, or the stream is on another. ArgumentError: not a stream.
    """
    if not isinstance(s, Stream):
        raise ArgumentError(f"record_stream(): argument 's' (position 1) must be Stream, not {type(s).__name__}")
    if s.device != self.device:
        raise DeviceError(
            "record_stream(): the stream and the tensor are on different devices",
            f"the tensor is on {self.device}, the stream on {s.device}",
            remedy="pass a stream of the tensor's own device",
        )
    self._data.buffer.record_stream(s)


@method("type")
def as_type(self: Tensor, dtype: Any = None, non_blocking: bool = False, *, memory_format: Any = None) -> Any:
    """PyTorch's legacy type name such as "torch.FloatTensor"; with a dtype or such a name, the tensor converted to it.

    >>> import tritensor as torch
    >>> x = torch.ones(2)
    >>> x.type(), x.type("torch.DoubleTensor").type()
    ('torch.FloatTensor', 'torch.DoubleTensor')

    Raises:
        ValueError: no such name. ArgumentError: neither a dtype nor a name.
    """
    if dtype is None:
        sparse = "sparse." if self._data.__class__ is Sparse else ""
        return f"torch.{f'{self.device.type}.' if self._off_host else ''}{sparse}{self.dtype.legacy}Tensor"
    place, kind = (None, dtype) if isinstance(dtype, dtypes.dtype) else _of_type_name(dtype)
    return to(self, place, kind, non_blocking, memory_format=memory_format)


def _of_type_name(kind: object) -> tuple[str, dtypes.dtype]:
    """The device and the dtype that a legacy type name stands for; Tensor itself is the CPU's default dtype."""
    if not isinstance(kind, (str, type)):
        raise ArgumentError("dtype must be a type, str, or dtype object", f"got {kind!r}")
    if kind is Tensor or kind == "torch.Tensor":
        return "cpu", dtypes.get_default_dtype()
    name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__name__}".removeprefix("builtins.")
    found = name.removeprefix("torch.").removeprefix("cuda.")
    for entry in dtypes.STORED:
        if found == f"{entry.legacy}Tensor" and name.startswith("torch."):
            return "cuda" if name.startswith("torch.cuda.") else "cpu", entry
    raise ValueError(
        explain(f"invalid type: {name!r}", remedy='"torch.FloatTensor" and "torch.cuda.HalfTensor" are some')
    )


@method()
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of `other`."""
    check_tensor("type_as", "other", 1, other)
    return to(self, other.dtype)


_SHORT = {
    "float": dtypes.float32,
    "double": dtypes.float64,
    "cfloat": dtypes.complex64,
    "cdouble": dtypes.complex128,
    "half": dtypes.float16,
    "bfloat16": dtypes.bfloat16,
    "long": dtypes.int64,
    "int": dtypes.int32,
    "short": dtypes.int16,
    "char": dtypes.int8,
    "byte": dtypes.uint8,
    "bool": dtypes.bool_,
}


def _conversion(name: str, dtype: dtypes.dtype) -> Any:
    def convert(self: Tensor, *, memory_format: formats.memory_format | None = None) -> Tensor:
        return to(self, dtype) if memory_format is None else to(self, dtype, memory_format=memory_format)

    convert.__name__ = name
    convert.__doc__ = f"Casts to {dtype.name}, as `to(torch.{dtype.name})`; returns itself if it has that dtype."
    return convert


for _name, _target in _SHORT.items():
    method(_name)(_conversion(_name, _target))


@method()
def to_device(self: Tensor, device: Device, /, *, stream: Stream | None = None) -> Tensor:
    """The tensor on a device, itself if it is there: `to` of the array API, where `stream` has to be None.

    >>> import tritensor as torch
    >>> torch.ones(2).to_device("cpu").device
    device(type='cpu')

    Raises:
        ArgumentError: a stream.
    """
    if stream is not None:
        raise ArgumentError("to_device: takes no stream", remedy="use `with tritensor.cuda.stream(stream):`")
    return self.to(device)
