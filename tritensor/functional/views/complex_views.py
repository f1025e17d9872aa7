"""The real and the imaginary part of complex tensors as views of their memory, and complex views of real memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DtypeError, ShapeError
from ...ground.arguments import check_tensor
from ...ground.public import method, public
from ...kernels import pairs
from ...memory.array import DeviceArray
from ...tensors import Tensor
from ...types import dtypes
from ..creation.likeness import zeros_like
from .view_operators import View, _slice


@View
def _view_as_real(array: Any) -> Any:
    """Complex numbers as a last dimension of two."""
    if array.__class__ is DeviceArray:
        return pairs.as_real(array)
    return array[..., None].view(array.real.dtype)


@View
def _view_as_complex(array: Any) -> Any:
    """A last dimension of two as complex numbers."""
    if array.__class__ is DeviceArray:
        return pairs.as_complex(array)
    return array.view(np.result_type(array, np.complex64))[..., 0]


_view_as_real.gradient(lambda grad, shape: _view_as_complex(grad.contiguous()))
_view_as_complex.gradient(lambda grad, shape: _view_as_real(grad))


@public(functional=False)
def view_as_real(input: Tensor) -> Tensor:
    """A view of a complex tensor as a real one, with a last dimension of two: real and imaginary part.

    >>> import tritensor as torch
    >>> torch.view_as_real(torch.tensor([1 + 2j]))
    tensor([[1., 2.]])

    Raises:
        DtypeError: a real tensor.
    """
    check_tensor("view_as_real", "input", 1, input)
    if not input.is_complex():
        raise DtypeError("view_as_real is only supported for complex tensors", f"the dtype is {input.dtype}")
    return _view_as_real(input)


@public(functional=False, autocast={"cpu": "float32"})
def view_as_complex(input: Tensor) -> Tensor:
    """A view of a real tensor as a complex one: the last dimension holds real and imaginary part side by side.

    >>> import tritensor as torch
    >>> torch.view_as_complex(torch.tensor([[1., 2.], [3., -4.]]))
    tensor([1.+2.j, 3.-4.j])

    Raises:
        DtypeError: neither float32 nor float64. ShapeError: the last dimension is not two neighbours in memory, or the
            other strides or the offset do not lead from pair to pair.
    """
    check_tensor("view_as_complex", "input", 1, input)
    if input.dtype not in (dtypes.float32, dtypes.float64):
        words = "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type:"
        raise DtypeError(f"{words} {input.dtype.legacy}", remedy="convert it with .float()")
    if not input.ndim:
        raise ShapeError("Input tensor must have one or more dimensions")
    if input.shape[-1] != 2:
        raise ShapeError("Tensor must have a last dimension of size 2", f"the shape is {tuple(input.shape)}")
    strides = input.stride()
    if strides[-1] != 1:
        raise ShapeError("Tensor must have a last dimension with stride 1", f"the strides are {strides}")
    if any(step % 2 and size > 1 for size, step in zip(input.shape[:-1], strides[:-1], strict=True)):
        raise ShapeError("Tensor must have a stride divisible by 2 for all but last dimension", f"{strides}")
    if input.storage_offset() % 2:
        words = "Tensor must have a storage_offset divisible by 2"
        raise ShapeError(words, f"the offset is {input.storage_offset()}")
    return _view_as_complex(input)


@public(functional=False)
def real(input: Tensor) -> Tensor:
    """The real parts of a complex tensor, a view; a real tensor itself.

    >>> import tritensor as torch
    >>> x = torch.tensor([1 + 2j])
    >>> x.real.zero_(), x
    (tensor([0.]), tensor([0.+2.j]))
    """
    check_tensor("real", "input", 1, input)
    return _slice(_view_as_real(input), (Ellipsis, 0)) if input.is_complex() else input


@public(functional=False)
def imag(input: Tensor) -> Tensor:
    """The imaginary parts of a complex tensor, a view.

    Raises:
        DtypeError: a real tensor.
    """
    check_tensor("imag", "input", 1, input)
    if not input.is_complex():
        words = "imag is not implemented for tensors with non-complex dtypes."
        raise DtypeError(words, f"the dtype is {input.dtype}")
    return _slice(_view_as_real(input), (Ellipsis, 1))


def _write(part: Any) -> Any:
    def write(self: Tensor, value: Any) -> None:
        part(self).copy_(value)

    return write


method("real")(property(real, _write(real)))
# Of a real tensor zeros, as in NumPy: in Python 3.11 a test for a protocol that has `imag`, as xarray's, reads it.
method("imag")(property(lambda self: imag(self) if self.is_complex() else zeros_like(self), _write(imag)))
