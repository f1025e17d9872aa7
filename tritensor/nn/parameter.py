"""The Parameter: a tensor that a module owns and an optimizer changes."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, DtypeError
from ..functional.creation.creation import empty
from ..functional.views.derived import make_subclass
from ..ground.arguments import check_flag
from ..ground.overriding import unasked
from ..tensors import Tensor

__all__ = ["Buffer", "Parameter"]


def _adopt(kind: Any, data: Any) -> Any:
    """A tensor of class `kind` on the same memory as `data`, without its history."""
    if data is None:
        data = empty(0)
    if not isinstance(data, Tensor):
        raise ArgumentError(
            f"{kind.__name__}(): argument 'data' must be Tensor, not {type(data).__name__}",
            remedy="make a tensor of it with tritensor.tensor(...)",
        )
    return make_subclass(kind, data)


class _OfParameters(type):
    """Takes tensors of other classes that were made parameters for parameters, such as a DTensor."""

    def __instancecheck__(cls, instance: object) -> bool:
        return type.__instancecheck__(cls, instance) or (
            cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False) is True
        )


class Parameter(Tensor, metaclass=_OfParameters):
    """A tensor that becomes a parameter of the module that it is assigned to.

    It shares the memory of `data` and is a leaf that requires a gradient, also inside `no_grad`. Of a tensor of a
    subclass that has its own `__torch_function__` it is another tensor of that class, as in PyTorch.

    >>> import tritensor as torch
    >>> torch.nn.Parameter(torch.zeros(2))
    Parameter containing:
    tensor([0., 0.], requires_grad=True)

    Raises:
        ArgumentError: `data` is not a tensor.
        DtypeError: a gradient is wanted of a tensor of integers or booleans.
    """

    __torch_function__ = unasked

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        """A parameter on the memory of `data`."""
        check_flag(cls.__name__, "requires_grad", requires_grad, 2)
        kind: Any = type(data)
        other = cls is Parameter and issubclass(kind, Tensor) and kind.__torch_function__ is not unasked
        made: Any = data.detach() if other and kind is not Tensor and data is not None else _adopt(cls, data)
        if made.__class__ is not cls:
            made._is_param = True
        if requires_grad and not (made.is_floating_point() or made.is_complex()):
            raise DtypeError(
                "Only Tensors of floating point and complex dtype can require gradients",
                f"the tensor has dtype {made.dtype}",
                remedy="convert it with .to(dtype), or pass requires_grad=False",
            )
        if made._origin is None:  # it is new: looking for views of it would take milliseconds in a large program
            made._needs = requires_grad
        else:
            made.requires_grad = requires_grad
        return made

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        pass

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        # as in PyTorch the copy of a parameter starts without a gradient
        copied = type(self)(self.detach().clone(), self.requires_grad)
        memo[id(self)] = copied
        return copied


class Buffer(Tensor):
    """A tensor that becomes a buffer of the module that it is assigned to: moved and saved, not trained.

    `persistent=False` keeps it out of the module's state dict.
    """

    __torch_function__ = unasked
    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        """A buffer on the memory of `data`."""
        made: Buffer = _adopt(cls, data)
        made.persistent = persistent
        return made

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        pass
