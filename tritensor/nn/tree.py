"""A module as a tree: what is registered under which name, and walking through it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import update_wrapper
from typing import Any, Self

from ..tensors import Tensor
from .parameter import Buffer, Parameter

# The three tables of a module; a name is in one of them at most.
_TABLES = ("_parameters", "_buffers", "_modules")
#: how often attributes, parameters, submodules and hooks of modules were set: what depends on them looks again
changes = [0]


def typename(value: Any) -> str:
    """A value's type as PyTorch's messages write it: "torch.FloatTensor", "str", "package.Class"."""
    if isinstance(value, Tensor):
        return str(value.type())
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


class GivesWay:
    """A method that PyTorch's Module does not have: a parameter, submodule or buffer of its name comes before it."""

    def __init__(self, method: Any) -> None:
        update_wrapper(self, method)  # type: ignore[arg-type]
        method.gives_way = True

    def __get__(self, module: Any, owner: type) -> Any:
        try:
            return ModuleTree.__getattr__(module, self.__name__)  # type: ignore[attr-defined]
        except AttributeError:
            return self.__wrapped__.__get__(module, owner)  # type: ignore[attr-defined]


class ModuleTree:
    """The part of `Module` that holds parameters, buffers and child modules by name."""

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    # ---- registration -----------------------------------------------------------------------------------------

    def _check_name(self, kind: str, name: str, table: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."{f", got: {name}" if kind == "module" else ""}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if self._has(name) and name not in table:
            raise KeyError(f"attribute '{name}' already exists")

    def _has(self, name: str) -> bool:
        """True if an attribute has the name, which is not a method that gives way."""
        return hasattr(self, name) and getattr(getattr(self, name), "gives_way", None) is not True

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor that is part of the module's state and is not trained.

        Args:
            name: the attribute's name.
            tensor: any dtype and shape; None registers the name without a tensor.
            persistent: whether it is in the state dict.

        Raises:
            AttributeError: `Module.__init__()` has not been called.
            KeyError: a name that is empty, has a dot or is taken.
            TypeError: `tensor` is no tensor.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = tensor
        changes[0] += 1
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Register a parameter; None registers the name without one.

        Raises:
            AttributeError: `Module.__init__()` has not been called.
            KeyError: a name that is empty, has a dot or is taken.
            TypeError: `param` is no Parameter.
            ValueError: `param` was computed and is no leaf.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. "
                f"To express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = param
        changes[0] += 1

    def add_module(self, name: str, module: Any) -> None:
        """Register a child module; None registers the name without one.

        Raises:
            KeyError: a name that is empty, has a dot or is taken.
            TypeError: `module` is no Module.
        """
        if module is not None and not isinstance(module, ModuleTree):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = module
        changes[0] += 1

    def register_module(self, name: str, module: Any) -> None:
        """The same as `add_module`."""
        self.add_module(name, module)

    # ---- attributes -------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        # called for names that are not plain attributes; parameters come first because forward reads them
        own = self.__dict__
        if "_parameters" in own:
            if name in (entries := own["_parameters"]):
                return entries[name]
            if name in (entries := own["_modules"]):
                return entries[name]
            if name in (entries := own["_buffers"]):
                return entries[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _set_attribute(self, name: str, value: object) -> None:
        """`Module.__setattr__`; a class that passes it by, with `super(nn.Module, self)`, sets a plain attribute."""
        own = self.__dict__
        changes[0] += 1
        if isinstance(value, Parameter):
            if "_parameters" not in own:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif name in own.get("_parameters", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self._parameters[name] = None
        elif isinstance(value, ModuleTree):
            if "_modules" not in own:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_modules")
            self._modules[name] = value
        elif name in own.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            self._modules[name] = None
        elif isinstance(value, Buffer) or name in own.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{typename(value)}' as buffer '{name}' "
                    "(torch.nn.Buffer, torch.Tensor or None expected)"
                )
            persistent = value.persistent if isinstance(value, Buffer) else name not in self._non_persistent_buffers_set
            self.register_buffer(name, value, persistent)
        else:
            super().__setattr__(name, value)

    def _forget(self, name: str, keep: str) -> None:
        """Free a name for the table `keep`: remove a plain attribute or an entry of another table."""
        self.__dict__.pop(name, None)
        for table in _TABLES:
            if table != keep:
                self.__dict__[table].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name: str) -> None:
        changes[0] += 1
        for table in _TABLES:
            if name in self.__dict__.get(table, ()):
                del self.__dict__[table][name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted(name for name in names if not name[0].isdigit())

    # ---- by path ----------------------------------------------------------------------------------------------

    def get_submodule(self, target: str) -> Any:
        """The module at a path such as "encoder.layers.3"; "" is the module itself.

        Raises:
            AttributeError: there is nothing at the path, or no module.
        """
        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, ModuleTree):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Put a module at a path whose parent exists; with `strict` only to replace another module.

        Raises:
            AttributeError: the parent does not exist, or (with `strict`) the module that would be replaced.
            ValueError: an empty path, or `module` is no module.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, ModuleTree):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not parent._has(name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if parent._has(name) and not isinstance(getattr(parent, name), ModuleTree):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path such as "encoder.layers.3.weight".

        Raises:
            AttributeError: there is nothing at the path, or no parameter.
        """
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        found = getattr(module, name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path such as "norm.running_mean".

        Raises:
            AttributeError: there is nothing at the path, or no buffer.
        """
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return module._buffers[name]

    # ---- walking ----------------------------------------------------------------------------------------------

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """The module and all below it with their paths, parents first; each once unless `remove_duplicate` is false."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """The module and all below it, parents first."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """The modules directly below with their names, each once."""
        seen: set[int] = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator[Any]:
        """The modules directly below, each once."""
        for _, module in self.named_children():
            yield module

    def _named_members(
        self, members: Callable[[Any], Iterable[tuple[str, Any]]], prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        """The entries of a table of this module and those below, with paths; each tensor once."""
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in members(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield f"{path}.{name}" if path else name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their paths; a shared one once unless `remove_duplicate` is false."""
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of the module and, with `recurse`, of all below it."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their paths; a shared one once unless `remove_duplicate` is false."""
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of the module and, with `recurse`, of all below it."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def apply(self, fn: Callable[[Any], Any]) -> Self:
        """Call `fn` with every module below and then with this one, as for initialising parameters."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # ---- printing ---------------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """The text between the parentheses of the module's printed form; subclasses define it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        children = [f"({name}): {_indented(repr(module))}" for name, module in self._modules.items()]
        extra_lines = extra.split("\n") if extra else []
        if len(extra_lines) == 1 and not children:
            return f"{self._get_name()}({extra})"
        lines = extra_lines + children
        body = "\n  " + "\n  ".join(lines) + "\n" if lines else ""
        return f"{self._get_name()}({body})"
