"""Reading a tensor's elements on the host: as a NumPy array, as Python numbers, in conditions and loops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..autograd.mode import recording
from ..errors import ArgumentError, AutogradError, DtypeError, ExchangeError, ShapeError, UnsupportedError
from ..host.scalars import converted
from ..memory.array import DeviceArray
from ..memory.copies import to_host
from ..memory.lifted import Batched, Lifted
from ..memory.pending import PendingArray
from ..memory.sparse import Sparse
from ..types import devices, dtypes

ndarray = np.ndarray


class HostAccess:
    """The part of Tensor that reads elements on the host."""

    __slots__ = ()

    if TYPE_CHECKING:
        _data: Any
        _needs: bool
        ndim: int
        _off_host: bool
        device: Any
        dtype: dtypes.dtype

        numel: Any
        __getitem__: Any
        detach: Any

    def _host_array(self) -> np.ndarray:
        """The CPU tensor's array, after waiting for an unfinished copy."""
        data = self._data
        if data.__class__ is ndarray:
            return data
        if data.__class__ is PendingArray:
            data = self._data = data.wait()
        elif isinstance(data, Lifted):
            data = data.refuse()
        return data

    def _to_host(self) -> np.ndarray:
        """The elements in host memory, copied there (with a wait) from a CUDA device."""
        data = self._data.host() if isinstance(self._data, Lifted) else self._data
        if data.__class__ is np.ndarray:
            return data
        return to_host(data) if data.__class__ is DeviceArray else self._host_array()

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The CPU tensor's elements as a NumPy array that shares its memory.

        Args:
            force: detach and copy to the host first where that is needed.

        Raises:
            ArgumentError: the tensor is on a CUDA device.
            AutogradError: the tensor requires grad, outside of `no_grad`.
        """
        if force:
            return self.detach()._to_host()
        if self._data.__class__ is Sparse:
            raise ArgumentError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")
        if self._off_host:
            raise ArgumentError(
                f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to "
                "host memory first."
            )
        if self._needs and recording.enabled:
            raise AutogradError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        return self._host_array()

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ExchangeError(f"Unable to avoid copy while creating an array as requested: of {self.dtype}.")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __buffer__(self, flags: int) -> memoryview:
        """The CPU tensor's memory, which `memoryview(x)` asks for from Python 3.12 on; not of bfloat16."""
        try:
            return memoryview(self.numpy())  # type: ignore[arg-type]
        except ValueError:
            raise ExchangeError(f"no buffer has elements of {self.dtype}: view() the tensor as int16") from None

    def __release_buffer__(self, buffer: memoryview) -> None:
        buffer.release()

    def __bytes__(self) -> bytes:
        return self.numpy().tobytes()

    def item(self) -> Any:
        """The only element as a Python number.

        Raises:
            ShapeError: there is more or less than one element.
        """
        if self.numel() != 1:
            raise ShapeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        if self.device is devices.meta:
            raise UnsupportedError("Tensor.item() cannot be called on meta tensors", "they have no elements")
        return self._to_host().reshape(()).item()

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers (a number for a 0-dimensional tensor)."""
        return self._to_host().tolist()

    def __bool__(self) -> bool:
        if isinstance(self._data, Batched):
            raise ShapeError(
                "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We "
                "don't support that yet",
                "the condition differs from sample to sample",
                remedy="choose between two results with torch.where",
            )
        if self.numel() != 1:
            count = "more than one value" if self.numel() else "no values"
            raise ShapeError(
                f"Boolean value of Tensor with {count} is ambiguous", remedy="reduce it with .any() or .all()"
            )
        return bool(self.item())

    def _only(self) -> Any:
        if self.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self.item()

    def __int__(self) -> int:
        value = self._only()
        return int(converted(value, dtypes.int64) if value.__class__ is complex else value)

    def __float__(self) -> float:
        value = self._only()
        return float(converted(value, dtypes.float64) if value.__class__ is complex else value)

    def __complex__(self) -> complex:
        return complex(self._only())

    def __index__(self) -> int:
        if self.dtype.category > dtypes.INTEGER or self.numel() != 1:
            raise ArgumentError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __len__(self) -> int:
        if self.ndim == 0:
            raise ArgumentError("len() of a 0-d tensor")
        return int(self._data.shape[0])

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 0:
            raise ArgumentError("iteration over a 0-d tensor")
        return iter([self[position] for position in range(len(self))])

    def __contains__(self, element: object) -> bool:
        if not isinstance(element, (HostAccess, bool, int, float, complex, np.generic)):
            raise DtypeError(
                f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {element.__class__}."
            )
        return bool((self == element).any())  # type: ignore[attr-defined]
