"""PyTorch's older names of tensors by their dtype: `torch.LongTensor([1, 2])`, `isinstance(x, torch.FloatTensor)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ArgumentError, warn
from ...ground.public import public, publish
from ...tensors import Tensor
from ...types import Device, devices, dtypes
from ...types.size import Size
from .creation import empty, tensor


class TensorType(type):
    """The class of `torch.LongTensor` and its like: tensors of one dtype on the CPU, or on CUDA devices.

    >>> import tritensor as torch
    >>> torch.LongTensor([1, 2]), torch.FloatTensor(2, 3).shape, isinstance(torch.ones(2), torch.FloatTensor)
    (tensor([1, 2]), tritensor.Size([2, 3]), True)
    """

    dtype: dtypes.dtype
    is_cuda: bool

    def __new__(cls, dtype: dtypes.dtype, module: str = "torch") -> TensorType:
        """The type of a dtype; `module` is torch or torch.cuda."""
        members = {"dtype": dtype, "is_cuda": module == "torch.cuda", "__module__": module}
        return super().__new__(cls, f"{dtype.legacy}Tensor", (), {**members, "__doc__": f"Tensors of {dtype.name}."})

    def __init__(cls, dtype: dtypes.dtype, module: str = "torch") -> None:
        super().__init__(cls.__name__, (), {})

    def __instancecheck__(cls, instance: Tensor | int) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.is_cuda == cls.is_cuda

    def __call__(cls, *data: Any, device: Device = None) -> Tensor:
        """A tensor of these elements; of these sizes, whose elements are not defined; or over the memory of a tensor.

        Raises:
            ArgumentError: a number, or a tensor of another type. DeviceError: there is no such device.
        """
        place = ("cuda" if cls.is_cuda else "cpu") if device is None else device
        if len(data) != 1 or isinstance(data[0], int | Size):
            return empty(*(data or (0,)), dtype=cls.dtype, device=place)
        if isinstance(data[0], Tensor):
            if not isinstance(data[0], cls):
                words = f"expected a tensor of {cls.dtype.legacy} elements on {place}, got {data[0].type()}"
                raise ArgumentError(words, remedy=f"convert it with x.to({place!r}, {cls.dtype!r})")
            return data[0].detach()
        if not isinstance(data[0], list | tuple | range | np.ndarray):
            words = f"new(): data must be a sequence (got {type(data[0]).__name__})"
            raise ArgumentError(words, remedy="use torch.tensor, which takes numbers")
        return tensor(data[0], dtype=cls.dtype, device=place)


_INTEGERS = (dtypes.bool_, dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)
_TYPES = [*map(TensorType, (*_INTEGERS, dtypes.bfloat16, dtypes.float16, dtypes.float32, dtypes.float64))]
OF_CUDA = {each.__name__: TensorType(each.dtype, "torch.cuda") for each in _TYPES}
for _type in _TYPES:
    publish(_type.__name__, _type, functional=False)


@public(functional=False)
def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype, and with a type of `torch.cuda` the default device too.

    Args:
        t: a type such as torch.DoubleTensor or its name.

    Raises:
        ArgumentError: no type, or not a floating one.
    """
    warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives."
    )
    name = f"{t.__module__}.{t.__name__}" if isinstance(t, TensorType) else t
    found = next((each for each in (*_TYPES, *OF_CUDA.values()) if f"{each.__module__}.{each.__name__}" == name), None)
    if found is None:
        raise ArgumentError("invalid type object", f"got {t!r}", remedy="pass torch.DoubleTensor, for instance")
    if not found.dtype.is_floating_point:
        raise ArgumentError("only floating-point types are supported as the default type", f"got {name}")
    dtypes.set_default_dtype(found.dtype)
    devices.set_default_device("cuda" if found.is_cuda else "cpu")
