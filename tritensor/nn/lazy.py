"""Modules whose parameters get their shapes from the first input, and the parameters that have no shape until then."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Concatenate, ParamSpec

from ..errors import ShapeError, explain
from ..functional.creation.creation import empty
from ..ground.composing import compose
from ..tensors import Tensor, blank, wrap
from ..types import Device, Dtype
from .parameter import Buffer, Parameter

__all__ = ["UninitializedBuffer", "UninitializedParameter"]

P = ParamSpec("P")

_slot: Any = Tensor.__dict__["_data"]


class Uninitialized:
    """The part of a parameter or a buffer that has a dtype and a device, and no elements and no shape yet.

    It can be moved and cast; its array, which all functions read, is refused.
    """

    cls_to_become: type = Tensor

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to do: the parameter was initialised on creation."""

    @property
    def _data(self) -> Any:
        raise ValueError(
            explain(
                "Attempted to use an uninitialized parameter. This error happens when you are using a `LazyModule` or "
                f"explicitly manipulating `torch.nn.parameter.{type(self).__name__}` objects.",
                remedy="call the module with a batch first, which gives its parameters their shapes",
            )
        )

    @_data.setter
    def _data(self, value: object) -> None:
        _slot.__set__(self, value)

    @property
    def data(self) -> Tensor:
        """A tensor without elements of this dtype and device."""
        return wrap(_slot.__get__(self))

    @data.setter
    def data(self, value: Tensor) -> None:
        _slot.__set__(self, value._data)

    def materialize(self, shape: Any, device: Device = None, dtype: Dtype = None) -> None:
        """Become an ordinary parameter or buffer of a shape, whose elements are not defined.

        Args:
            device, dtype: those it has unless given.
        """
        data = self.data
        made = empty(*shape, device=data.device if device is None else device, dtype=dtype or data.dtype)
        _slot.__set__(self, made._data)
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        """Refused: there is none.

        Raises:
            ShapeError: always.
        """
        raise ShapeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one.",
            remedy="call the module with a batch first, which gives its parameters their shapes",
        )

    @property
    def ndim(self) -> int:
        """1, as of the empty tensor that it holds."""
        return 1

    def detach(self) -> Any:
        """Itself: what a state dict has of it."""
        return self

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), (self._needs,)  # type: ignore[attr-defined]

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made: Any = type(self)
        memo[id(self)] = copied = made(self._needs, self.data.device, self.data.dtype)  # type: ignore[attr-defined]
        return copied


for _name in ("dtype", "device", "is_cuda", "is_floating_point", "is_complex", "to"):  # of the empty tensor
    setattr(Uninitialized, _name, property(attrgetter(f"data.{_name}")))


class UninitializedParameter(Uninitialized, Parameter):
    """A parameter of a lazy module before its first call: without elements and shape.

    >>> import tritensor as torch
    >>> torch.nn.LazyLinear(2).weight
    <UninitializedParameter>
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Device = None, dtype: Dtype = None) -> UninitializedParameter:
        """Without elements; `materialize` gives it a shape."""
        made: UninitializedParameter = blank(cls, empty(0, device=device, dtype=dtype)._data)
        made._needs = requires_grad
        return made


class UninitializedBuffer(Uninitialized, Buffer):
    """A buffer of a lazy module before its first call: without elements and shape."""

    def __new__(
        cls, requires_grad: bool = False, device: Device = None, dtype: Dtype = None, persistent: bool = True
    ) -> UninitializedBuffer:
        """Without elements; `materialize` gives it a shape."""
        made: UninitializedBuffer = blank(cls, empty(0, device=device, dtype=dtype)._data)
        made._needs, made.persistent = requires_grad, persistent
        return made

    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        """One of another dtype or on another device, which a module's conversion puts in this one's place."""
        data = super().to(*args, **kwargs)
        return UninitializedBuffer(self._needs, data.device, data.dtype, self.persistent)


class LazyModuleMixin:
    """The part of a module that gets the shapes of its parameters from its first input.

    A lazy class inherits from it and from the class that its modules become, `cls_to_become`, and defines
    `initialize_parameters(input)`. The first call runs that, and the module is of the other class from then on. A lazy
    module can be moved and cast before, and loads the state of an initialized one.
    """

    cls_to_become: type | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._initialize_hook = self.register_forward_pre_hook(_infer, with_kwargs=True)  # type: ignore[attr-defined]

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give the parameters their shapes by the first call's arguments; a subclass defines it."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """True if a parameter or buffer of the module itself has no shape yet."""
        tables: Any = (self._parameters, self._buffers)  # type: ignore[attr-defined]
        return any(isinstance(value, Uninitialized) for table in tables for value in table.values())

    def reset_parameters(self) -> None:
        """Draw the parameters anew, once they have shapes; those that the other class makes first have no elements."""
        if "_initialize_hook" in self.__dict__ and not self.has_uninitialized_params():
            super().reset_parameters()  # type: ignore[misc]


def _infer(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Before the first call: the parameters get their shapes, and the module its class."""
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
    module._initialize_hook.remove()
    del module._initialize_hook
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become


def without_size(
    constructor: Callable[Concatenate[Any, int, P], None],
) -> Callable[[Any], Callable[Concatenate[Any, P], None]]:
    """A decorator that makes the constructor of a lazy layer: that of the layer, without its first parameter.

    That is the size of the input, 0 at first; parameters and buffers with a shape of it get theirs later.
    """

    def forget(layer: Any) -> None:
        for table, kind in ((layer._parameters, UninitializedParameter), (layer._buffers, UninitializedBuffer)):
            for name, value in table.items():
                if value is not None and value.ndim:
                    table[name] = kind(device=value.device, dtype=value.dtype)

    parameters = list(inspect.signature(constructor).parameters.values())[2:]
    passed = ", ".join([f"{each.name}={each.name}" for each in parameters])
    lines = [f"construct(self, 0, {passed})", "forget(self)"]
    values = {"construct": LazyModuleMixin.__init__, "forget": forget}
    return lambda function: compose((constructor.__module__, function.__qualname__), parameters, "None", lines, values)


class LazyLayer(LazyModuleMixin):
    """Base of the lazy layers: they become the class that is their last base."""

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        cls.cls_to_become = cls.__bases__[-1]

    def initialize_parameters(self: Any, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Give parameters and buffers the shapes that the input asks for, or take the size from a state's."""
        if not self.has_uninitialized_params():
            self._shapes(None)
            return
        shapes = self._shapes(input)
        for name, each in (*self._parameters.items(), *self._buffers.items()):
            if isinstance(each, Uninitialized):
                each.materialize(shapes[name])
        self.reset_parameters()
