"""Creation with another tensor's dtype and device: `zeros_like(x)` with its shape too, and `x.new_zeros(size)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...ground.composing import shown_as
from ...ground.public import method, public
from ...memory.array import DeviceArray
from ...memory.lifted import Lifted
from ...memory.sparse import Sparse
from ...operators import lifting
from ...tensors import Tensor
from ...types import Device, Dtype
from . import creation
from .strides import new_strides, restrided, turned

_PLAIN = frozenset((np.ndarray, DeviceArray))


def made_like(
    call: str,
    make: Callable[..., Tensor],
    x: Any,
    dtype: Any,
    device: Any,
    format: Any,
    requires_grad: bool,
    pin_memory: bool = False,
    **values: Any,
) -> Tensor:
    """`make(shape, dtype=, device=, ...)` with the shape of `x`, its dtype and device unless given, in a memory format.

    Raises:
        ArgumentError: `x` is no tensor, or `format` no memory format.
    """
    options = options_like(call, x, dtype, device)
    if x._data.__class__ is Sparse:
        if call not in ("zeros_like", "empty_like"):
            raise x._data.refusal("fill_")
        return creation.finish(Sparse.rules.without_values(x).to(**options), requires_grad, pin_memory)
    make, strides = getattr(make, "plain", make), new_strides(x, call, format)
    made = make(x._data.shape if strides is None else turned(x.shape, strides), **options, **values)
    made = creation.finish(made, requires_grad, pin_memory)
    if strides is None:
        return made if x._data.__class__ in _PLAIN else lifted_as(x, made)
    made._data = restrided(made._data, x._data.shape, strides)
    return made


def lifted_as(x: Tensor, made: Tensor) -> Tensor:
    """A new tensor; inside of a transformation one that results of `x` can be written to."""
    data = x._data
    lifted = isinstance(data, Lifted) and data.level is not None and data.__class__ is not Sparse
    return lifting.like(made, data) if lifted and not isinstance(made._data, Lifted) else made


def options_like(call: str, x: Any, dtype: Any, device: Any) -> dict[str, Any]:
    """The dtype and the device of a new tensor: those of `x` unless given.

    Raises:
        ArgumentError: `x` is no tensor.
    """
    if not isinstance(x, Tensor):
        raise ArgumentError(f"{call}(): argument 'input' (position 1) must be Tensor, not {type(x).__name__}")
    return {"dtype": x.dtype if dtype is None else dtype, "device": x.device if device is None else device}


def _like(make: Callable[..., Tensor], documentation: str) -> Callable[..., Tensor]:
    """The function of a tensor that makes another one with its shape."""
    name = f"{make.__name__}_like"

    def call(
        input: Tensor,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        return made_like(name, make, input, dtype, device, memory_format, requires_grad, pin_memory)

    return public(functional=False)(shown_as(call, name, documentation))


zeros_like = _like(
    creation.zeros,
    """Filled with zeros, with the shape, dtype, device and order in memory of `input`.

    >>> import tritensor as torch
    >>> torch.zeros_like(torch.ones(2, 3).T).stride()
    (1, 3)

    Args:
        memory_format: another order of the dimensions in memory.

    Raises:
        ShapeError: a memory format of tensors of another rank.
    """,
)
ones_like = _like(creation.ones, "Filled with ones, with the shape, dtype, device and order in memory of `input`.")
empty_like = _like(creation.empty, "Uninitialised, with the shape, dtype, device and order in memory of `input`.")


@public(functional=False)
def full_like(
    input: Tensor,
    fill_value: complex,
    *,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Filled with `fill_value`, with the shape, dtype, device and order in memory of `input`."""
    flags = (requires_grad, pin_memory)
    return made_like("full_like", creation.full, input, dtype, device, memory_format, *flags, fill_value=fill_value)


def _new(make: Callable[..., Tensor], documentation: str) -> None:
    """Declare the method that makes a tensor of another size."""
    name = f"new_{make.__name__}"

    def call(self: Tensor, *sizes: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
        made = make(*sizes, **options_like(name, self, dtype, device), **options)
        return made if self._data.__class__ in _PLAIN else lifted_as(self, made)

    method()(shown_as(call, name, documentation))


_OF_THE_TENSOR = "of this size, with the dtype and on the device of the tensor unless given; options as for"
_new(creation.zeros, f"Filled with zeros, {_OF_THE_TENSOR} `zeros`.")
_new(creation.ones, f"Filled with ones, {_OF_THE_TENSOR} `ones`.")
_new(creation.empty, f"Uninitialised, {_OF_THE_TENSOR} `empty`.")


@method()
def new_full(
    self: Tensor, size: Any, fill_value: complex, dtype: Dtype = None, device: Device = None, **options: Any
) -> Tensor:
    """Filled with `fill_value`, of this size, with the dtype and device of the tensor; options as for `full`."""
    made = creation.full(size, fill_value, **options_like("new_full", self, dtype, device), **options)
    return made if self._data.__class__ in _PLAIN else lifted_as(self, made)


@method()
def new(self: Tensor, *args: Any, device: Device = None) -> Tensor:
    """The older way to write `new_empty(*sizes)`, or `new_tensor` of a sequence, with the tensor's dtype and device."""
    if len(args) == 1 and isinstance(args[0], (list, tuple, Tensor)) and type(args[0]).__name__ != "Size":
        given = args[0]
        return given.detach().view_as(given) if isinstance(given, Tensor) else self.new_tensor(given, device=device)
    return self.new_empty(args[0] if len(args) == 1 else args if args else (0,), device=device)


@method()
def new_tensor(self: Tensor, data: object, dtype: Dtype = None, device: Device = None, **options: Any) -> Tensor:
    """A copy of `data`, with the dtype and on the device of the tensor; options are those of `tensor`."""
    made = creation.tensor(data, **options_like("new_tensor", self, dtype, device), **options)
    return made if self._data.__class__ in _PLAIN else lifted_as(self, made)
