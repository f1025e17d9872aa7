"""Creation with another tensor's dtype and device: `zeros_like(x)` with its shape too, and `x.new_zeros(size)`."""

from __future__ import annotations

from typing import Any

from ...ground.public import method, public
from ...tensors import Tensor
from . import creation
from .strides import PLAIN, lifted_as, made_like, options_like


@public(functional=False)
def zeros_like(
    input: Tensor,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Zeros with the shape, dtype and device of `input`, and its order of the dimensions in memory.

    >>> import tritensor as torch
    >>> torch.zeros_like(torch.ones(2, 3).T).stride()
    (1, 3)

    Args:
        memory_format: another order of the dimensions in memory.

    Raises:
        ShapeError: a memory format of tensors of another rank.
    """
    options = {"requires_grad": requires_grad, "pin_memory": pin_memory}
    return made_like("zeros_like", creation.zeros, input, dtype, device, memory_format, **options)


@public(functional=False)
def ones_like(
    input: Tensor,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Ones with the shape, dtype, device and order in memory of `input`."""
    options = {"requires_grad": requires_grad, "pin_memory": pin_memory}
    return made_like("ones_like", creation.ones, input, dtype, device, memory_format, **options)


@public(functional=False)
def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """`fill_value` with the shape, dtype, device and order in memory of `input`."""
    options = {"requires_grad": requires_grad, "pin_memory": pin_memory, "fill_value": fill_value}
    return made_like("full_like", creation.full, input, dtype, device, memory_format, **options)


@public(functional=False)
def empty_like(
    input: Tensor,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Uninitialised, with the shape, dtype, device and order in memory of `input`."""
    options = {"requires_grad": requires_grad, "pin_memory": pin_memory}
    return made_like("empty_like", creation.empty, input, dtype, device, memory_format, **options)


@method()
def new_zeros(self: Tensor, *sizes: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
    """Zeros of this size, with the dtype and on the device of the tensor unless given; options are those of `zeros`."""
    made = creation.zeros(*sizes, **options_like("new_zeros", self, dtype, device), **options)
    return made if self._data.__class__ in PLAIN else lifted_as(self, made)


@method()
def new_ones(self: Tensor, *sizes: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
    """Ones of this size, with the dtype and on the device of the tensor unless given; options are those of `ones`."""
    made = creation.ones(*sizes, **options_like("new_ones", self, dtype, device), **options)
    return made if self._data.__class__ in PLAIN else lifted_as(self, made)


@method()
def new_empty(self: Tensor, *sizes: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
    """An uninitialised tensor of this size; options are those of `empty`, dtype and device are the tensor's."""
    made = creation.empty(*sizes, **options_like("new_empty", self, dtype, device), **options)
    return made if self._data.__class__ in PLAIN else lifted_as(self, made)


@method()
def new_full(self: Tensor, size: Any, fill_value: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
    """`fill_value` in this size, with the dtype and on the device of the tensor; options are those of `full`."""
    made = creation.full(size, fill_value, **options_like("new_full", self, dtype, device), **options)
    return made if self._data.__class__ in PLAIN else lifted_as(self, made)


@method()
def new_tensor(self: Tensor, data: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
    """A copy of `data`, with the dtype and on the device of the tensor; options are those of `tensor`."""
    made = creation.tensor(data, **options_like("new_tensor", self, dtype, device), **options)
    return made if self._data.__class__ in PLAIN else lifted_as(self, made)
