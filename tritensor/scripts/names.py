"""PyTorch's module names in a program: `torch` is tritensor, `torchvision` is tritensor.vision.

`install` lets both be imported in this process. What a program imports are facades: they have PyTorch's names and look
up everything in the modules here. A name that does not exist here can be imported, because many programs import more
than they use; its first use raises a `MissingName` that says where that is. An import whose failure the program
expects (in a `try` that catches it) fails at once, so that the program takes its other way.
"""

from __future__ import annotations

import ast
import dis
import importlib
import linecache
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

from ..errors import explain

ROOTS = {"torch": "tritensor", "torchvision": "tritensor.vision"}
# The release whose behaviour is followed; programs compare `torch.__version__` with the releases that they need.
VERSION = {"torch": "2.13.0+tritensor", "torchvision": "0.28.0+tritensor"}
# Parts that PyTorch has modules for (`torch.nn.modules.conv`), and that are in one module with others here.
_PARTS = {
    "torch.nn.modules": "activation adaptive batchnorm channelshuffle container conv distance dropout flatten fold "
    "instancenorm lazy linear loss module normalization padding pixelshuffle pooling rnn sparse transformer upsampling",
    "torch.optim": "adadelta adafactor adagrad adam adamax adamw asgd lbfgs nadam optimizer radam rmsprop rprop sgd "
    "sparse_adam",
    "torch.utils.data": "dataset dataloader sampler distributed",
    "torch.amp": "autocast_mode grad_scaler",
    "torch.autograd": "variable",
    "torch.cuda.amp": "autocast_mode grad_scaler",
    "torchvision.models": "alexnet densenet googlenet inception mnasnet mobilenet mobilenetv2 mobilenetv3 resnet "
    "shufflenetv2 squeezenet vgg",
    "torchvision.datasets": "cifar fakedata folder mnist vision",
    "torchvision.transforms": "transforms",
}
_WHOLE = {"torch.nn.modules": "torch.nn"}
_WHOLE |= {f"{whole}.{part}": _WHOLE.get(whole, whole) for whole, parts in _PARTS.items() for part in parts.split()}
# Names that `import *` takes besides a module's own, which has them from elsewhere.
_ALSO = {"torch.autograd": ("Function", "gradcheck", "gradgradcheck"), "torch.hub": ("load",)}
_PACKAGE = str(Path(__file__).parents[1])
_NONE = object()
_CAUGHT = {"ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "BaseException"}


class MissingName(AttributeError):
    """A name of PyTorch that does not exist in tritensor was used."""


def _own(name: str) -> str:
    root, _, rest = name.partition(".")
    return f"{ROOTS[root]}.{rest}" if rest else ROOTS[root]


def module_for(name: str) -> ModuleType | None:
    """The module here in which the names of PyTorch's module are looked up; None if there is no such module.

    >>> module_for("torch.nn.modules.conv").__name__
    'tritensor.nn'
    """
    for candidate in (_own(name), _own(_WHOLE.get(name, name))):
        try:
            return importlib.import_module(candidate)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{candidate}.".startswith(f"{error.name}."):
                raise
    return None


def tolerant_lines(tree: ast.Module) -> frozenset[int]:
    """The lines of a program in the body of a `try` that catches a failing import."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Try):
            caught = {ast.unparse(kind) for each in node.handlers for kind in _kinds(each)}
            if caught & _CAUGHT or any(each.type is None for each in node.handlers):
                found.update(range(node.lineno, (node.body[-1].end_lineno or node.lineno) + 1))
    return frozenset(found)


@lru_cache(maxsize=256)
def _tolerant_lines_of(path: str) -> frozenset[int]:
    try:
        return tolerant_lines(ast.parse("".join(linecache.getlines(path))))
    except SyntaxError:
        return frozenset()


def _kinds(handler: ast.ExceptHandler) -> list[ast.expr]:
    return handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type] if handler.type else []


def _callers() -> Iterator[FrameType]:
    """The frames of the program, the innermost first: those outside of this package and of the import system."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith((_PACKAGE, "<frozen importlib")):
            yield frame
        frame = frame.f_back


def _instruction(frame: FrameType) -> str:
    code: CodeType = frame.f_code
    return dis.opname[code.co_code[frame.f_lasti]] if frame.f_lasti >= 0 else ""


def _importing() -> FrameType | None:
    """The frame whose import statement is being executed, if there is one and its failure is not expected there."""
    frame = next(_callers(), None)
    if frame is None or not _instruction(frame).startswith("IMPORT"):
        return None
    return None if frame.f_lineno in _tolerant_lines_of(frame.f_code.co_filename) else frame


def _of_a_name() -> bool:
    """True if Python tries to import a name of a `from` statement, which may be no module."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        if frame.f_code.co_name == "_handle_fromlist":
            return True
        frame = frame.f_back
    return False


def _place(frame: FrameType | None) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "somewhere"


def _error(name: str, first: str, imported: str = "") -> MissingName:
    frame = next(_callers(), None)
    facts = [f"{_place(frame)} uses {name}"]
    if imported and imported != _place(frame):
        facts.append(f"{imported} imported it")
    path = frame.f_code.co_filename if frame is not None else "PATH"
    remedy = f"`python -m tritensor scan {path}` lists every name that the program uses and that is missing here"
    return MissingName(explain(first, *facts, remedy=remedy), name=name)


class Missing(ModuleType):
    """A name or a module that was imported and does not exist here; any use of it raises."""

    def __init__(self, name: str, imported: str) -> None:
        super().__init__(name)
        self.__dict__["_imported"] = imported
        self.__dict__["__path__"] = []  # so that a statement can import its submodules

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise _error(self.__name__, f"{self.__name__} does not exist in tritensor", self.__dict__["_imported"])

    def __getattr__(self, name: str) -> Any:
        frame = sys._getframe(1)
        if _instruction(frame) in ("IMPORT_FROM", "IMPORT_NAME"):
            return Missing(f"{self.__name__}.{name}", self.__dict__["_imported"])
        if name.startswith("__") and name.endswith("__"):  # asked by Python, not used by the program
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        raise _error(full, f"{full} does not exist in tritensor", self.__dict__["_imported"])

    __call__ = __getitem__ = __iter__ = __enter__ = __or__ = __ror__ = __contains__ = _refuse
    __mro_entries__ = __instancecheck__ = __subclasscheck__ = _refuse


class Facade(ModuleType):
    """A module under PyTorch's name, whose names are those of modules here.

    Functions and classes are kept once they were looked up. Everything else, flags as `torch.backends.cudnn.benchmark`
    too, is read where it is, and what a program sets is set there.
    """

    def __init__(self, name: str, module: ModuleType) -> None:
        super().__init__(name, module.__doc__)
        self.__dict__.update(_module=module, __path__=[])
        if name in VERSION:
            self.__dict__["__version__"] = VERSION[name]

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return self._starred()
        full = f"{self.__name__}.{name}"
        value = getattr(self.__dict__["_module"], name, _NONE)
        if isinstance(value, ModuleType):
            if value.__name__.partition(".")[0] == "tritensor" and module_for(full) is not None:
                return importlib.import_module(full)
            value = _NONE  # what a module of ours imported for itself
        if value is not _NONE:
            if callable(value):
                self.__dict__[name] = value
            return value
        if _instruction(sys._getframe(1)) == "IMPORT_FROM" and (importing := _importing()) is not None:
            return Missing(full, _place(importing))
        raise _error(full, f"module {self.__name__!r} has no attribute {name!r}")

    def _starred(self) -> list[str]:
        """The names that `import *` takes: public names, and modules below this one; not what a module of ours
        imported."""
        module = self.__dict__["_module"]
        wanted = getattr(
            module, "__all__", {name for name in dir(module) if not name.startswith("_")} - {"annotations"}
        )

        def is_starred(name: str) -> bool:
            if isinstance(getattr(module, name, None), ModuleType):
                return not name.startswith("_") and module_for(f"{self.__name__}.{name}") is not None
            return name in wanted

        return [*filter(is_starred, {*dir(module), *wanted}), *_ALSO.get(self.__name__, ())]

    def __setattr__(self, name: str, value: object) -> None:
        if not isinstance(value, Facade | Missing) and not name.startswith("__"):
            self.__dict__.pop(name, None)
            setattr(self.__dict__["_module"], name, value)
        else:
            self.__dict__[name] = value

    def __repr__(self) -> str:
        return f"<module {self.__name__!r}: {self.__dict__['_module'].__name__}>"

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_module"])


class _Finder(MetaPathFinder, Loader):
    """Finds `torch`, `torchvision` and their submodules."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] not in ROOTS:
            return None
        module = module_for(name)
        importing = _importing() if module is None and not _of_a_name() else None
        if module is None and importing is None:
            return None
        return ModuleSpec(name, self, is_package=True, loader_state=module or _place(importing))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        made = Facade if isinstance(spec.loader_state, ModuleType) else Missing
        return made(spec.name, spec.loader_state)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do: a facade looks names up when they are asked for."""


def install() -> None:
    """Let `torch` and `torchvision` be imported in this process, in place of installed packages of these names.

    The latter needs Pillow, and is imported when the program does so.

    Raises:
        ImportError: PyTorch itself was imported before.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    finder = _Finder()
    for root in ROOTS:
        there = sys.modules.get(root)
        if there is not None and getattr(there.__spec__, "origin", None) not in _SHIMS:
            raise ImportError(explain(f"{root} is imported already", remedy="call install() before the first import"))
    sys.meta_path.insert(0, finder)
    for root in ROOTS:
        if sys.modules.pop(root, None) is not None or root == "torch":
            importlib.import_module(root)


_SHIMS = [str(Path(__file__).parent / "shims" / root / "__init__.py") for root in ROOTS]
