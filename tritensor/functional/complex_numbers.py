"""Complex numbers and their parts: views of the two as real numbers, numbers made of two parts, and conjugates.

Conjugates are computed when they are asked for; no tensor has a conjugation or a sign that is pending.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from ..arguments import check_tensor
from ..autograd.gradients import called
from ..errors import DtypeError, ShapeError, explain
from ..inplace import in_place_form
from ..kernels.elementwise.arithmetic import conj as conjugate
from ..memory.array import DeviceArray
from ..outputs import Into, takes_out
from ..public import method, public
from ..tensor import Tensor
from .joining import stack
from .view_operators import View, _slice, standing_alone
from .views import broadcast_tensors

_PARTS: dict[Any, Any] = {np.dtype(np.complex64): dtypes.float32.numpy, np.dtype(np.complex128): dtypes.float64.numpy}
_WHOLES = {part: whole for whole, part in _PARTS.items()}


@View
def _view_as_real(array: Any) -> Any:
    """The two parts of complex numbers along a new last dimension."""
    kind, shape = _PARTS[array.dtype], (*array.shape, 2)
    if array.__class__ is DeviceArray:
        strides = (*[2 * step for step in array.strides], 1)
        return DeviceArray.over(array.buffer, shape, strides, 2 * array.offset, kind)
    return np.lib.stride_tricks.as_strided(array.real, shape, (*array.strides, kind.itemsize))


@View
def _view_as_complex(array: Any) -> Any:
    """The pairs along the last dimension as complex numbers."""
    kind, shape = _WHOLES[array.dtype], array.shape[:-1]
    if array.__class__ is DeviceArray:
        return DeviceArray.over(
            array.buffer, shape, tuple([step // 2 for step in array.strides[:-1]]), array.offset // 2, kind
        )
    return array.view(kind)[..., 0] if array.size else np.empty(shape, kind)


_view_as_real.gradient(lambda grad, shape: _view_as_complex(grad.contiguous()))
_view_as_complex.gradient(lambda grad, shape: _view_as_real(grad))


@public(functional=False)
def view_as_real(input: Tensor) -> Tensor:
    """A view of a complex tensor as real numbers: its shape, and 2 for the real and the imaginary part.

    >>> import tritensor as torch
    >>> torch.view_as_real(torch.tensor([1 + 2j]))
    tensor([[1., 2.]])

    Raises:
        DtypeError: the tensor is real.
    """
    check_tensor("view_as_real", "input", 1, input)
    if not input.dtype.is_complex:
        raise DtypeError(explain("view_as_real is only supported for complex tensors", f"the dtype is {input.dtype}"))
    return _view_as_real(input)


@public(functional=False)
def view_as_complex(input: Tensor) -> Tensor:
    """A view of a real tensor as complex numbers; its last dimension has the two parts.

    >>> import tritensor as torch
    >>> torch.view_as_complex(torch.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])

    Raises:
        DtypeError: neither float32 nor float64. ShapeError: the parts are not two, or not side by side in memory.
    """
    check_tensor("view_as_complex", "input", 1, input)
    if input.dtype not in (dtypes.float32, dtypes.float64):
        words = "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type"
        raise DtypeError(explain(f"{words}: {input.dtype.legacy}", remedy="convert it with .float()"))
    strides = input.stride()
    for wrong, words in (
        (input.ndim == 0, "Input tensor must have one or more dimensions"),
        (input._data.shape[-1:] != (2,), "Tensor must have a last dimension of size 2"),
        (strides[-1:] != (1,), "Tensor must have a last dimension with stride 1"),
        (any(step % 2 for step in strides[:-1]), "Tensor must have a stride divisible by 2 for all but last dimension"),
        (input.storage_offset() % 2, "Tensor must have a storage_offset divisible by 2"),
    ):
        if wrong:
            raise ShapeError(explain(words, f"shape {tuple(input.shape)}, strides {strides}"))
    return _view_as_complex(input)


def _part(name: str, position: int) -> Any:
    def part(self: Tensor) -> Tensor:
        if not self.dtype.is_complex:
            if position:
                raise DtypeError(explain("imag is not implemented for tensors with non-complex dtypes."))
            return self
        return _slice(_view_as_real(self), (Ellipsis, position))

    def changed(self: Tensor, value: Any) -> None:
        part(self).copy_(value if isinstance(value, Tensor) else self.new_full((), value, dtype=part(self).dtype))

    return property(part, changed, doc=f"The {name} part, a view; a tensor may be assigned to it.")


method("real")(_part("real", 0))
method("imag")(_part("imaginary", 1))


def _part_of(name: str) -> None:
    def part(input: Tensor) -> Tensor:
        check_tensor(name, "input", 1, input)
        return getattr(input, name)  # type: ignore[no-any-return]

    part.__name__ = part.__qualname__ = name
    part.__doc__ = f"`Tensor.{name}`: {getattr(Tensor, name).__doc__}"
    public(functional=False)(part)


_part_of("real")
_part_of("imag")


@public(method=True)
def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part is 0, element by element.

    >>> import tritensor as torch
    >>> torch.isreal(torch.tensor([1 + 0j, 1j]))
    tensor([ True, False])
    """
    check_tensor("isreal", "input", 1, input)
    if input.dtype.is_complex:
        return input.imag == 0  # type: ignore[attr-defined,no-any-return]
    return input.new_ones(input.shape, dtype=dtypes.bool_)


def _of_parts(name: str, first: Tensor, second: Tensor) -> Tensor:
    return standing_alone(_view_as_complex(stack(broadcast_tensors(first, second), -1)), name)


def _check_parts(first: Any, second: Any) -> None:
    """Raise unless both are tensors of the same floating dtype."""
    if not first.dtype.is_floating_point or not second.dtype.is_floating_point:
        found = f"{first.dtype.legacy} and {second.dtype.legacy}"
        raise DtypeError(explain(f"Expected both inputs to be Half, Float or Double tensors but got {found}"))
    if first.dtype is not second.dtype:
        words = f"Expected object of scalar type {first.dtype.legacy} but got scalar type {second.dtype.legacy}"
        raise DtypeError(explain(f"{words} for second argument", remedy="convert one of them with .to(dtype)"))
    if first.dtype.itemsize < 4:
        raise DtypeError(explain("ComplexHalf is not supported", remedy="convert both with .float()"))


@public(functional=False, out=takes_out(Into("object", "partly")))
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Complex numbers of their real and imaginary parts, two tensors of float32 or of float64 that broadcast.

    >>> import tritensor as torch
    >>> torch.complex(torch.tensor([1.0]), torch.tensor([2.0]))
    tensor([1.+2.j])

    Raises:
        DtypeError: other dtypes, or two of them.
    """
    check_tensor("complex", "real", 1, real)
    check_tensor("complex", "imag", 2, imag)
    _check_parts(real, imag)
    return _of_parts("complex", real, imag)


@public(functional=False, out=takes_out(Into("object", "partly")))
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers of their magnitudes and angles; dtypes and errors are those of `complex`.

    >>> import tritensor as torch
    >>> torch.polar(torch.tensor([2.0]), torch.tensor([0.0]))
    tensor([2.+0.j])
    """
    check_tensor("polar", "abs", 1, abs)
    check_tensor("polar", "angle", 2, angle)
    _check_parts(abs, angle)
    return _of_parts("polar", abs * angle.cos(), abs * angle.sin())


@public(method=True, in_place=in_place_form, out=takes_out(Into("same", "partly")))
def conj_physical(input: Tensor) -> Tensor:
    """The conjugate of a complex tensor, in new memory; a real tensor itself."""
    check_tensor("conj_physical", "input", 1, input)
    return called("ConjPhysicalBackward0", conjugate(input)) if input.dtype.is_complex else input  # type: ignore[no-any-return]


def _not_pending(what: str, name: str) -> None:
    def resolve(input: Tensor) -> Tensor:
        return input

    def pending(input: Tensor) -> bool:
        return False

    for function, label, doc in (
        (resolve, f"resolve_{name}", f"The input itself: here no {what} is pending."),
        (pending, f"is_{name}", f"Whether a {what} is pending: never."),
    ):
        function.__name__ = function.__qualname__ = label
        function.__doc__ = doc
        public(method=True)(function)


_not_pending("conjugate", "conj")
_not_pending("sign", "neg")
