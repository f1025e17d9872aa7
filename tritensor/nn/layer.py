"""Declares layers without parameters, from their fields and the function that is called with them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence  # noqa: F401 - what the annotations of `forward` name
from typing import Any, TypeVar, dataclass_transform

from ..functional.creation.creation import empty
from ..ground.composing import compose
from ..ground.public import FUNCTIONAL, PACKAGE
from ..tensors import Tensor  # noqa: F401 - what the annotations of `forward` name
from ..types import Device, Dtype
from . import init
from .module import Module
from .parameter import Parameter

Kind = TypeVar("Kind", bound="Layer")
_Parameter = inspect.Parameter


def add_parameters(module: Module, device: Device, dtype: Dtype, **shapes: tuple[int, ...] | None) -> None:
    """Register parameters of these shapes, whose elements are not defined, and None for those without a shape."""
    for name, shape in shapes.items():
        made = None if shape is None else Parameter(empty(shape, device=device, dtype=dtype))
        module.register_parameter(name, made)


def one_and_zero(module: Any) -> None:
    """Set the scale `weight` of a layer to one and the shift `bias` to zero, where there are such parameters."""
    for name, fill in (("weight", init.ones_), ("bias", init.zeros_)):
        if module._parameters.get(name) is not None:
            fill(module._parameters[name])


class OfRank:
    """The part of a class that has a number of dimensions: `class Conv2d(..., rank=2)`."""

    _rank = 0

    def __init_subclass__(cls, *, rank: int = 0, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if rank:
            cls._rank = rank

    def _each(self, value: Any) -> tuple[Any, ...]:
        """A value for each dimension."""
        return tuple(value) if isinstance(value, Iterable) else (value,) * self._rank


class Layer(OfRank, Module):
    """Base of the layers that are `declared`."""

    _fields: tuple[str, ...] = ()
    _shown: tuple[str, ...] = ()
    _init_only: tuple[str, ...] = ()
    _declared: dict[str, tuple[Any, Any]] = {}  # noqa: RUF012 - annotation and default of each field
    _function = ""

    def __init_subclass__(cls, *, rank: int = 0, **rest: Any) -> None:
        super().__init_subclass__(rank=rank, **rest)
        if rank:
            cls._call_function()

    @classmethod
    def _call_function(cls) -> None:
        """Let `forward` call the function, if there is one of that name and the class defines no `forward`."""
        name = f"{cls._function}{cls._rank}d" if cls._rank else cls._function
        found = FUNCTIONAL.get(name) or PACKAGE.get(name)
        if found is not None and "forward" not in vars(cls):
            cls.forward = _forward(cls, found)

    def extra_repr(self) -> str:
        """The options."""
        return ", ".join(
            [f"{name}={getattr(self, name)!r}" for name in self._shown if name != "inplace" or self.inplace]
        )


@dataclass_transform(eq_default=False)
def declared(
    function: str = "", shown: tuple[str, ...] | None = None, *, kw_only: bool = False
) -> Callable[[type[Kind]], type[Kind]]:
    """A decorator of layers, of which the annotated fields, after those of declared bases, with their defaults, are

    * the parameters of the constructor, in this order,
    * attributes; those of a `Tensor | None` are buffers,
    * what is printed; `inplace` where it is set.

    The constructor calls `_prepare()` last, if the class has that: it raises for what does not fit, or changes
    attributes. It gets the parameters that `_init_only` names, which are no attributes. Classes derived from a declared
    one are ordinary ones.

    >>> @declared("leaky_relu")
    ... class LeakyReLU(Layer):
    ...     negative_slope: float = 0.01
    ...     inplace: bool = False
    >>> LeakyReLU(0.2, inplace=True)
    LeakyReLU(negative_slope=0.2, inplace=True)

    Args:
        function: the public function that `forward` calls with its inputs, and with the fields and `training` where
            these are its parameters; derived classes of a number of dimensions, `rank=2`, append "2d".
        shown: the fields that are printed, all unless given.
        kw_only: whether the constructor takes its parameters by name only.
    """

    def declare(cls: type[Kind]) -> type[Kind]:
        cls._function = function
        cls.__init__ = _constructor(cls, kw_only)
        cls._shown = cls._fields if shown is None else shown
        cls._call_function()
        return cls

    return declare


def _constructor(cls: type[Layer], kw_only: bool) -> Any:
    """Its `__init__`, and no class attributes in place of the fields: they would stand before buffers."""
    own, lines, parameters = inspect.get_annotations(cls), ["super().__init__()"], []
    cls._declared = cls._declared | {name: (kind, vars(cls).get(name, _Parameter.empty)) for name, kind in own.items()}
    cls._fields = tuple([name for name in cls._declared if name not in cls._init_only])
    for name, (kind, default) in cls._declared.items():
        if name in vars(cls):
            delattr(cls, name)
        how = _Parameter.KEYWORD_ONLY if kw_only else _Parameter.POSITIONAL_OR_KEYWORD
        parameters.append(_Parameter(name, how, default=default, annotation=kind))
        if name not in cls._init_only:
            buffer = kind == "Tensor | None"
            lines.append(f"self.register_buffer({name!r}, {name})" if buffer else f"self.{name} = {name}")
    if hasattr(cls, "_prepare"):
        lines.append(f"self._prepare({', '.join(cls._init_only)})")
    return compose((cls.__module__, f"{cls.__qualname__}.__init__"), parameters, "None", lines, {"__class__": cls})


def _forward(cls: type[Layer], function: Callable[..., Any]) -> Any:
    """Its `forward`: the function's first parameters that are no fields and have no defaults are its inputs."""
    signature = inspect.signature(function)
    inputs, passed, by_name = [], [], False  # by name after a parameter that is left out
    for name, each in signature.parameters.items():
        if name in cls._fields or name == "training":
            named = by_name or each.kind is each.KEYWORD_ONLY
            passed.append(f"{name}=self.{name}" if named else f"self.{name}")
        elif not passed and each.default is each.empty:
            inputs.append(each)
        else:
            by_name = True
    names = ", ".join([each.name for each in inputs] + passed)
    place, lines = (__name__, f"{cls.__qualname__}.forward"), [f"return function({names})"]
    made = compose(place, inputs, signature.return_annotation, lines, {"function": function})
    made.__module__ = cls.__module__
    made.__doc__ = f"Returns `{function.__name__}` of the inputs, with the layer's options."
    return made
