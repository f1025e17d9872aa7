"""Public names, methods and operators by name: the module that declares one is imported when it is first asked for.

`names.txt` beside this file says which module declares which names. A build writes it, and in a checkout the first
import after a change of the modules does, which imports all of them: no name is listed by hand.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType
from typing import Any

_ROOT = __name__.partition(".")[0]
_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_FILE = os.path.join(_FOLDER, "ground", "names.txt")
# What declares names beside the modules that every import needs
_DECLARING = ["functional", "kernels.elementwise", "kernels.reduction", "linalg", "host.threads", "tensors.printing"]
_DECLARING += ["accelerator"]

watching: list[Callable[[str, str, Any], None]] = []  # told of the kind, the name and the value of what is declared
_where: dict[str, dict[str, str]] = {}  # the module of each name, by the kind of name
_left: list[str] = []  # modules that declare names and may not have been imported yet


class Names(dict[str, Any]):
    """What is declared, by name. To look up one imports its module; to go through them imports all modules.

    Args:
        kind: the word for them in `names.txt`.
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.where = kind, _where.setdefault(kind, {})

    def declare(self, name: str, value: Any) -> None:
        """Add a name that a module declares while it is imported.

        Raises:
            ValueError: there is one already.
        """
        self.check_new(name)
        note(self.kind, name)
        self[name] = value
        for watch in watching:
            watch(self.kind, name, value)

    def check_new(self, name: str) -> None:
        """Raise the ValueError for a name that a module has declared."""
        if super().__contains__(name):
            raise ValueError(f"the {self.kind} name {name!r} is declared twice")

    def __missing__(self, name: str) -> Any:
        if name in self.where:
            __import__(f"{_ROOT}.{self.where[name]}")
            if super().__contains__(name):
                return self[name]
        raise KeyError(name)

    def get(self, name: str, default: Any = None) -> Any:
        """What is declared by the name, or the default."""
        try:
            return self[name]
        except KeyError:
            return default

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.where

    def __iter__(self) -> Iterator[str]:
        everything()
        return super().__iter__()

    def __len__(self) -> int:
        return len(self.listed())

    def keys(self) -> Any:
        """All names."""
        everything()
        return super().keys()

    def values(self) -> Any:
        """All that is declared."""
        everything()
        return super().values()

    def items(self) -> Any:
        """All names with what is declared by them."""
        everything()
        return super().items()

    def listed(self) -> list[str]:
        """The names in their order, without an import."""
        return sorted({*super().keys(), *self.where})


def namespace(module: str, names: Names) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a module that has these names, and `__all__` of them."""

    def getattribute(name: str) -> Any:
        if name == "__all__":
            return names.listed()
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        if not watching and _is_overridden(sys._getframe(1)):
            __import__(f"{_ROOT}.ground.overriding", fromlist=["install"]).install()
        found = vars(sys.modules[module])[name] = names[name]
        return found

    return getattribute, names.listed


def _is_overridden(frame: FrameType) -> bool:
    """True if who looks a function up has a class with `__torch_function__` that is no tensor."""
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_ROOT):
        frame = frame.f_back
    classes = [value for value in (*frame.f_globals.values(), *frame.f_locals.values()) if type(value) is type]
    return any("__torch_function__" in vars(kind) and not hasattr(kind, "_origin") for kind in classes)


class Later:
    """A member of a class in whose place its module puts the member itself, when it is imported at the first lookup."""

    __slots__ = ("module", "name", "owner")

    def __init__(self, owner: type, name: str, module: str) -> None:
        self.owner, self.name, self.module = owner, name, module

    def __get__(self, instance: Any, owner: type) -> Any:
        found = self._imported()
        get = getattr(type(found), "__get__", None)
        return found if get is None else get(found, instance, owner)

    def __set__(self, instance: Any, value: Any) -> None:
        self._imported()
        object.__setattr__(instance, self.name, value)

    def __delete__(self, instance: Any) -> None:
        self._imported()
        object.__delattr__(instance, self.name)

    def _imported(self) -> Any:
        __import__(f"{_ROOT}.{self.module}")
        found = vars(self.owner)[self.name]
        if found is self:
            raise AttributeError(f"{self.owner.__name__!r} object has no attribute {self.name!r}")
        return found


def members_of(owner: type) -> None:
    """Give a class the members that are declared elsewhere, each to be imported when it is looked up."""
    for name, module in _where.get("member", {}).items():
        if name not in vars(owner):
            setattr(owner, name, Later(owner, name, module))


def note(kind: str, name: str) -> None:
    """Note which module declares a name, of those that are being imported to write `names.txt`."""
    if _noted is not None:
        _noted.setdefault(kind, {})[name] = _being_imported()


def replaced(owner: type, name: str) -> bool:
    """True if a member that is being declared gets another form from a module that is imported later: `add_` takes
    `alpha` there."""
    found = vars(owner).get(name)
    return found.__class__ is Later and found.module != _being_imported()


def _being_imported() -> str:
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return "" if frame is None else str(frame.f_globals["__name__"].removeprefix(f"{_ROOT}."))


def everything() -> None:
    """Import all modules that declare names."""
    for module in tuple(_left):  # all of them in each thread: another one may be importing them
        __import__(f"{_ROOT}.{module}")
    _left.clear()


def complete() -> None:
    """If `names.txt` is missing or older than the modules, import all of them and write it."""
    global _noted
    if _noted is None:
        return
    for name in _DECLARING:
        _import_all(name)
    lines = [_state(), ""]
    for kind, found in sorted(_noted.items()):
        for module in sorted(set(found.values())):
            names = [name for name in sorted(found) if found[name] == module]
            lines.append(" ".join([kind, module, *names]))
    _noted = None
    with suppress(OSError):  # a folder that cannot be written to: everything is imported the next time, too
        path = f"{_FILE}.{os.getpid()}"
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        os.replace(path, _FILE)


def _import_all(name: str) -> None:
    """Import a module and all below it, so that a file that is added to a folder is found without being listed."""
    module = __import__(f"{_ROOT}.{name}", fromlist=["__name__"])
    if hasattr(module, "__path__"):
        import pkgutil

        for each in sorted(pkgutil.iter_modules(module.__path__), key=lambda each: each.ispkg):
            _import_all(f"{name}.{each.name}")


def _state() -> str:
    """The names, sizes and times of all modules in one line, which takes 2 ms."""
    found, folders = [], [_FOLDER]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    status = entry.stat()
                    found.append(f"{entry.path} {status.st_size} {status.st_mtime_ns}")
                elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
    return f"{len(found)} modules, {zlib.crc32('|'.join(sorted(found)).encode()):08x}"


def _read() -> bool:
    """Read `names.txt`; False if it has to be written."""
    try:
        text = __loader__.get_data(_FILE).decode()  # type: ignore[name-defined] # from an archive, too
    except OSError:
        return False
    state, _, lines = text.partition("\n\n")
    if os.path.exists(os.path.join(_FOLDER, os.pardir, "pyproject.toml")) and state != _state():
        return False  # a checkout, whose modules change
    for line in lines.splitlines():
        kind, module, *names = line.split(" ")
        _where.setdefault(kind, {}).update(dict.fromkeys(names, module))
    _left.extend(sorted({module for found in _where.values() for module in found.values()}))
    return True


_noted: dict[str, dict[str, str]] | None = None if _read() else {}
