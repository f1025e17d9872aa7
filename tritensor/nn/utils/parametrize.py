"""Parametrizations: parameters that are computed from others whenever they are read."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import Any, NamedTuple

from ...autograd.mode import no_grad, recording
from ...autograd.precision import state
from ...errors import require
from ...tensors import Tensor
from ..containers import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter

__all__ = ["ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations"]
__all__ += ["transfer_parametrizations_and_params", "type_before_parametrizations"]


class _Computed(NamedTuple):
    """A value, what it was computed from (`functional_call` replaces that for a call), and whether it has a graph."""

    originals: list[Tensor]
    recorded: bool
    value: Tensor


# Values by module, name and autocast, one entry for each `cached` that is entered; all are the outermost one's.
_caches: list[dict[Any, _Computed]] = []


@contextmanager
def cached() -> Iterator[None]:
    """Compute a parametrized tensor once within this context, and not at each use."""
    _caches.append(_caches[0] if _caches else {})
    try:
        yield
    finally:
        _caches.pop()


def _register(module: Module, name: str, value: Tensor) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _replace(original: Tensor, value: Tensor) -> None:
    """Give a tensor another's memory: it stays the same object, which an optimizer may hold, and a state dict that was
    taken before keeps the elements."""
    original.data = value.detach()


def _check_alike(found: Tensor, wanted: Tensor, what: str, name: str) -> None:
    """Raise unless `found` is a tensor of the dtype and shape of `wanted`."""
    require(isinstance(found, Tensor), ValueError, "{} must return a tensor. Got {}.", what, type(found).__name__)
    for each in ("dtype", "shape"):
        if getattr(found, each) != getattr(wanted, each):
            raise ValueError(
                f"Registering a parametrization may not change the {each} of the tensor, unless `unsafe` flag is "
                f"enabled.\n{name} {each}: {getattr(wanted, each)}\nparametrized {each}: {getattr(found, each)}"
            )


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and its originals: `original`, or `original0`, `original1`, ...

    `register_parametrization` makes it.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        require(len(modules) != 0, ValueError, "ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            new: Any = original
            for module in modules[::-1]:
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):
                        new = module.right_inverse(new)
        if not isinstance(new, (Tensor, list, tuple)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        parts: list[Any] = [new] if self.is_tensor else list(new)
        self.ntensors = len(parts)
        wanted = original.detach()
        if self.is_tensor:
            if original.dtype is not parts[0].dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {parts[0].dtype}"
                )
            if new is not original:
                wanted = wanted.clone()
                _replace(original, parts[0])
            _register(self, "original", original)
        else:
            for position, part in enumerate(parts):
                if isinstance(original, Parameter):
                    part = Parameter(part.detach().clone(), original.requires_grad)
                _register(self, f"original{position}", part)
        if not unsafe:
            _check_alike(self(), wanted, "A parametrization", "unparametrized")

    def _names(self) -> list[str]:
        return ["original"] if self.is_tensor else [f"original{each}" for each in range(self.ntensors)]

    def _originals(self) -> list[Tensor]:
        return [getattr(self, name) for name in self._names()]

    def right_inverse(self, value: Tensor) -> None:
        """Change the originals so that the tensor becomes `value`.

        Raises:
            RuntimeError: a parametrization has no `right_inverse`. ValueError: it returns what does not fit.
        """
        with no_grad():
            found: Any = value
            for module in list(self)[::-1]:
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                found = module.right_inverse(found)
            parts = [found] if self.is_tensor else list(found)
            originals = self._originals()
            if len(parts) != len(originals) or any(x.dtype is not y.dtype for x, y in zip(parts, originals)):
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors} and of the dtypes of the originals."
                )
            for original, part in zip(originals, parts, strict=True):
                _replace(original, part)

    def forward(self) -> Tensor:
        """The tensor."""
        first, *others = self
        x = first(*self._originals())
        for module in others:
            x = module(x)
        return x


def _parametrized_class(kind: type) -> type:
    """A subclass for one module, whose parametrized tensors are properties."""

    def copied(self: Any, memo: dict[int, Any]) -> Any:
        replica = self.__new__(type(self))
        memo[id(self)] = replica
        replica.__dict__.update(deepcopy(self.__dict__, memo))
        return replica

    def refuse(self: Any) -> Any:
        raise RuntimeError("Serialization of parametrized modules is only supported through state_dict().")

    members: dict[str, Any] = {"__getstate__": refuse}
    if not hasattr(kind, "__deepcopy__"):
        members["__deepcopy__"] = copied
    return type(f"Parametrized{kind.__name__}", (kind,), members)


def _property(name: str) -> property:
    def get(self: Any) -> Any:
        made = self.parametrizations[name]
        if not _caches:
            return made()
        key, originals = (id(self), name, state.types), made._originals()
        found = _caches[0].get(key)
        if (
            found is None
            or found.recorded < recording.enabled
            or not all(map(operator.is_, found.originals, originals))
        ):
            found = _caches[0][key] = _Computed(originals, recording.enabled, made())
        return found.value

    def put(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Let `module.tensor_name` be computed by `parametrization` from now on, after those that are registered already.

    The parameter moves to `module.parametrizations.tensor_name.original`; if the parametrization's `right_inverse`
    returns several tensors, these become `original0`, `original1`, ..., and have to be given to an optimizer.

    >>> from tritensor import nn
    >>> class Symmetric(nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).mT
    >>> layer = nn.utils.parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all())
    True

    Args:
        parametrization: its `forward` takes the tensor, and its `right_inverse`, if there is one, is the way back.
        unsafe: allow that dtype or shape change.

    Raises:
        ValueError: no such parameter or buffer; or dtype or shape change.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        entry: Any = module.parametrizations[tensor_name]
        if not unsafe:
            current = getattr(module, tensor_name)
            _check_alike(parametrization(current), current, "A parametrization", f"module.{tensor_name}")
        entry.append(parametrization)
        entry.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        entry = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.__class__ = _parametrized_class(type(module))
            module.parametrizations = ModuleDict()
        setattr(type(module), tensor_name, _property(tensor_name))
        module.parametrizations[tensor_name] = entry
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """True if a module has a parametrization, of that tensor or of any."""
    found = module._modules.get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make `module.tensor_name` a plain parameter or buffer again.

    Args:
        leave_parametrized: with its computed value; otherwise the original.

    Raises:
        ValueError: it is not parametrized; or the original is asked for where there are several.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    entry: Any = module.parametrizations[tensor_name]
    if not leave_parametrized and not entry.is_tensor:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    value = getattr(module, tensor_name)
    if entry.is_tensor:
        original = entry.original
        if leave_parametrized:
            _replace(original, value.detach())
    else:
        original = Parameter(value.detach()) if value.requires_grad else value
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Copy parametrizations and their parameters to another module; returns that module.

    Args:
        tensor_name: the one that is transferred; all unless given. Names that the other module lacks are added to it.

    Raises:
        KeyError: it has no parametrization. ValueError: as for `register_parametrization`.
    """
    found: Any = from_module.parametrizations if is_parametrized(from_module) else {}
    for name in list(found) if tensor_name is None or not found else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        for each in found[name]:
            register_parametrization(to_module, name, each)
        for original in found[name]._names():
            setattr(to_module.parametrizations[name], original, getattr(found[name], original))
    return to_module


def type_before_parametrizations(module: Module) -> type:
    """The module's class, without its parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)
