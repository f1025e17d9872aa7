"""Modules that only hold other modules."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Self

from .module import Module

__all__ = ["ModuleDict", "ModuleList", "Sequential"]


class _Numbered(Module):
    """Base of the lists of modules: children named "0", "1", ..."""

    def _name_at(self, index: Any) -> str:
        position = operator.index(index)
        if not -len(self) <= position < len(self):
            raise IndexError(f"index {position} is out of range")
        return list(self._modules)[position]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._modules)
        for name in names[index] if isinstance(index, slice) else [self._name_at(index)]:
            delattr(self, name)
        self._renumber(list(self._modules.values()))

    def _renumber(self, modules: list[Module]) -> None:
        self._modules = {str(position): module for position, module in enumerate(modules)}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Put a module before the one at `index`; the following ones are renumbered."""
        modules = list(self._modules.values())
        if not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        if not -len(modules) <= index <= len(modules):
            raise IndexError(f"Index out of range: {index}")
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key: int | slice) -> Any:
        """Remove a module (or several, as a module of the same kind) and return it."""
        removed = self[key]
        del self[key]
        return removed

    def __getitem__(self, index: Any) -> Any:
        return self._modules[self._name_at(index)]


class Sequential(_Numbered):
    """Passes its input through its modules, one after another.

    >>> import tritensor as torch
    >>> torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return super().__getitem__(index)

    def forward(self, input: Any) -> Any:
        """The last module's output."""
        for module in self._modules.values():
            input = module(input)
        return input

    def __add__(self, other: object) -> Sequential:
        return Sequential(*self, *_checked(other))

    def __iadd__(self, other: object) -> Self:
        return self.extend(_checked(other))

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*(_times(self, other)))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        return self.extend(_times(self, other)[len(self) :])


def _checked(other: Any) -> Sequential:
    if not isinstance(other, Sequential):
        raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
    return other


def _times(modules: Sequential, count: int) -> list[Module]:
    if not isinstance(count, int):
        raise TypeError(f"unsupported operand type(s) for *: {type(modules)} and {type(count)}")
    if count <= 0:
        raise ValueError(f"Non-positive multiplication factor {count} for {type(modules)}")
    return list(modules) * count


class ModuleList(_Numbered):
    """A list of modules, which are registered as submodules.

    >>> from tritensor import nn
    >>> layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
    >>> len(layers), len(list(layers.parameters()))
    (3, 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return super().__getitem__(index)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        return super().extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __repr__(self) -> str:
        return self._get_name() + "(" + _folded([repr(module) for module in self]) + ")"


def _folded(printed: list[str]) -> str:
    """One line per module, consecutive modules with the same text as one line "(0-3): 4 x Linear(...)"."""
    runs: list[tuple[int, int, str]] = []
    for position, text in enumerate(printed):
        if runs and runs[-1][2] == text:
            runs[-1] = (runs[-1][0], position, text)
        else:
            runs.append((position, position, text))
    lines = [
        f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}"
        for first, last, text in runs
    ]
    return "".join("\n  " + line.replace("\n", "\n  ") for line in lines) + "\n" if lines else ""


class ModuleDict(Module):
    """A dict of modules, which are registered as submodules.

    >>> from tritensor import nn
    >>> heads = nn.ModuleDict({"small": nn.Linear(4, 2), "large": nn.Linear(4, 8)})
    >>> heads["small"], "tiny" in heads
    (Linear(in_features=4, out_features=2, bias=True), False)
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove a module and return it."""
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The names with their modules."""
        return self._modules.items()

    def values(self) -> Iterable[Any]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping, another ModuleDict or pairs of name and module.

        Raises:
            TypeError: not a mapping or an iterable of pairs.
            ValueError: an entry that is no pair.
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, "
                f"but got {type(modules).__name__}"
            )
        if isinstance(modules, (Mapping, ModuleDict)):
            pairs = list(modules.items())
        else:
            pairs = []
            for position, entry in enumerate(modules):
                if not isinstance(entry, Iterable):
                    raise TypeError(
                        f"ModuleDict update sequence element #{position} should be Iterable; is {type(entry).__name__}"
                    )
                pair = tuple(entry)
                if len(pair) != 2:
                    raise ValueError(
                        f"ModuleDict update sequence element #{position} has length {len(pair)}; 2 is required"
                    )
                pairs.append(pair)
        for name, module in pairs:
            self[name] = module
