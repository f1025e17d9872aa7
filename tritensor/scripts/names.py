"""PyTorch's module names in a program: `torch` is tritensor, `torchvision` is tritensor.vision.

`install` lets both be imported in this process. What a program imports are facades: they have PyTorch's names and look
up everything in the modules here, and then in those of `faces`, which have what libraries touch and do not need. A name
that does not exist here can be imported and read, because many programs name more than they use: it may stand in
annotations, in `isinstance`, as a class's base or decorator. Its first call raises a `MissingName` that says where that
is. What asks whether a name exists (`hasattr`, a `try` that catches the failure) is told that it does not.
"""

from __future__ import annotations

import ast
import dis
import functools
import importlib
import importlib.metadata
import linecache
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from ..errors import explain
from ..ground.public import ROOT

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
    "torch.distributions": "bernoulli beta binomial categorical cauchy chi2 continuous_bernoulli dirichlet exponential "
    "fishersnedecor gamma generalized_pareto geometric gumbel half_cauchy half_normal independent inverse_gamma "
    "kumaraswamy laplace lkj_cholesky log_normal logistic_normal lowrank_multivariate_normal mixture_same_family "
    "multinomial multivariate_normal negative_binomial normal one_hot_categorical pareto poisson relaxed_bernoulli "
    "relaxed_categorical studentT transformed_distribution uniform von_mises weibull wishart",
    "torch.amp": "autocast_mode grad_scaler",
    "torch.autograd": "variable",
    "torch.distributed.tensor": "placement_types",
    "torch.multiprocessing": "spawn",
    "torch.cuda.amp": "autocast_mode grad_scaler",
    "torchvision.models": "alexnet densenet googlenet inception mnasnet mobilenet mobilenetv2 mobilenetv3 resnet "
    "shufflenetv2 squeezenet vgg",
    "torchvision.datasets": "cifar fakedata folder mnist vision",
    "torchvision.transforms": "transforms",
}
_WHOLE = {"torch.nn.modules": "torch.nn"}
_WHOLE |= {f"{whole}.{part}": _WHOLE.get(whole, whole) for whole, parts in _PARTS.items() for part in parts.split()}
# Modules here, besides those of such a part's whole, in which its names are: private ones, which libraries import, too.
_WITHIN = {
    f"torch.{theirs}": [f"tritensor.{file}" for file in ours.split()]
    for theirs, ours in {
        "backends.mkl": "scripts.faces.torch.backends.unused",
        "backends.mkldnn": "scripts.faces.torch.backends.unused",
        "backends.openmp": "scripts.faces.torch.backends.unused",
        "distributed._composable.fsdp": "distributed.fsdp",
        "distributed._tensor": "distributed.tensor distributed.tensor.dtensor",
        "distributed._tensor.api": "distributed.tensor",
        "distributed._tensor.device_mesh": "distributed.device_mesh",
        "distributed._tensor.placement_types": "distributed.tensor",
        "distributed.constants": "distributed.groups",
        "distributed.distributed_c10d": "distributed distributed.groups distributed.process_group",
        "distributed.fsdp.fully_sharded_data_parallel": "distributed.fsdp",
        "distributed.fsdp.sharded_grad_scaler": "scripts.faces.torch.distributed.grad_scaler",
        "distributed.rendezvous": "distributed.meeting",
        "distributions.dirichlet": "distributions.multivariate",
        "distributions.lowrank_multivariate_normal": "distributions.multivariate",
        "distributions.multivariate_normal": "distributions.multivariate",
        "distributions.relaxed_bernoulli": "distributions.relaxed",
        "distributions.relaxed_categorical": "distributions.relaxed",
        "distributions.utils": "distributions.shapes distributions.probabilities distributions.properties",
        "nn.modules.batchnorm": "nn.batch_normalization",
        "nn.modules.conv": "nn.convolution",
        "nn.modules.dropout": "nn.dropout",
        "nn.modules.instancenorm": "nn.batch_normalization",
        "nn.modules.linear": "nn.linear",
        "nn.modules.loss": "nn.loss",
        "nn.modules.module": "nn.hooks",
        "nn.modules.padding": "nn.padding",
        "nn.modules.pooling": "nn.pooling",
        "nn.modules.utils": "scripts.faces.torch.nn.modules.tuples scripts.faces.torch.nn.modules.prefixes",
        "utils.data._utils": "utils.data",
        "utils.data._utils.collate": "utils.data.collate",
    }.items()
}
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


@cache
def modules_for(name: str) -> tuple[ModuleType, ...]:
    """The modules here in which the names of PyTorch's module are looked up, in this order; none if it has no such.

    >>> [module.__name__ for module in modules_for("torch.nn.modules.conv")]
    ['tritensor.nn', 'tritensor.nn.convolution']
    """
    found = {}
    whole = _own(_WHOLE.get(name, name))
    for candidate in (_own(name), whole, *_WITHIN.get(name, ()), f"{__package__}.faces.{name}"):
        try:
            found[candidate] = importlib.import_module(candidate)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{candidate}.".startswith(f"{error.name}."):
                raise
    return tuple(found.values())


def module_for(name: str) -> ModuleType | None:
    """The first of `modules_for`; None if there is no such module."""
    return next(iter(modules_for(name)), None)


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
    """A name or a module that does not exist here: it can be named, and raises when it is called or asked for a value.

    Nothing is an instance of it; a class with it as a base has no instances, and a function with it as a decorator
    cannot be called.
    """

    def __init__(self, name: str, imported: str) -> None:
        super().__init__(name)
        self.__dict__["_imported"] = imported
        self.__dict__["__path__"] = []  # so that a statement can import its submodules

    def _error(self) -> MissingName:
        return _error(self.__name__, f"{self.__name__} does not exist in tritensor", self.__dict__["_imported"])

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise self._error()

    def _itself(self, other: object) -> Missing:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise, but as a decorator."""
        frame = next(_callers(), None)
        if frame is None or not linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith("@"):
            raise self._error()
        if len(args) == 1 and not kwargs and isinstance(args[0], FunctionType | type):
            return self._decorated(args[0])
        return self._decorated

    def _decorated(self, function: Any) -> Any:
        if isinstance(function, type):
            return function

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            raise self._error()

        return call

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):  # asked by Python, not used by the program
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        if _is_named(sys._getframe(1)):
            return Missing(full, self.__dict__["_imported"])
        raise _error(full, f"{full} does not exist in tritensor", self.__dict__["_imported"])

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (type(self.__name__.rpartition(".")[2], (), {"__new__": self._refuse, "__module__": self.__name__}),)

    def __instancecheck__(self, instance: object) -> bool:
        return False

    def __subclasscheck__(self, kind: type) -> bool:
        return False

    __getitem__ = __or__ = __ror__ = _itself
    __iter__ = __enter__ = __contains__ = __bool__ = __len__ = _refuse


def _is_named(frame: FrameType) -> bool:
    """True if a frame names an attribute, and neither asks whether there is one nor expects that there may be none."""
    if not _instruction(frame).startswith(("LOAD_ATTR", "LOAD_METHOD", "IMPORT")):
        return False
    return frame.f_lineno not in _tolerant_lines_of(frame.f_code.co_filename)


_names_of: Callable[[ModuleType], dict[str, Any]] = vars(ModuleType)["__dict__"].__get__  # a module's own names


class Facade(ModuleType):
    """A module under PyTorch's name, whose names are those of modules here.

    Functions and classes are kept once they were looked up. Everything else, flags as `torch.backends.cudnn.benchmark`
    too, is read where it is, and what a program sets is set there. `vars` of it has all names.
    """

    def __init__(self, name: str, modules: Sequence[ModuleType]) -> None:
        super().__init__(name, modules[0].__doc__)
        _names_of(self).update(_modules=modules, __path__=[], __file__=modules[0].__file__)
        if name in VERSION:
            _names_of(self)["__version__"] = VERSION[name]

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        for name in self._starred():
            getattr(self, name)
        return _names_of(self)

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return self._starred()
        full, value, modules = f"{self.__name__}.{name}", _NONE, _names_of(self)["_modules"]
        for module in modules:
            value = getattr(module, name, _NONE)
            if isinstance(value, ModuleType) and not isinstance(value, Facade | Missing):
                value = _NONE  # a module below this one, or what a module of ours imported for itself
            if value is not _NONE:
                break
        else:
            if not name.startswith("__") and modules_for(full):
                return importlib.import_module(full)
        if value is not _NONE:
            if callable(value):
                _names_of(self)[name] = value
            return value
        frame = sys._getframe(1)
        if not name.startswith("__") and _is_named(frame):
            return Missing(full, _place(next(_callers(), None)) if _instruction(frame).startswith("IMPORT") else "")
        raise _error(full, f"module {self.__name__!r} has no attribute {name!r}")

    def _starred(self) -> list[str]:
        """The names that `import *` takes: public names, and modules below this one; not what a module of ours
        imported."""
        found = dict.fromkeys(_ALSO.get(self.__name__, ()))
        for module in _names_of(self)["_modules"]:
            public = {name for name in dir(module) if not name.startswith("_")} - {"annotations"}
            wanted = getattr(module, "__all__", public)
            for name in {*dir(module), *wanted}:
                if isinstance(getattr(module, name, None), ModuleType):
                    if not name.startswith("_") and modules_for(f"{self.__name__}.{name}"):
                        found[name] = None
                elif name in wanted:
                    found[name] = None
        return list(found)

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, Facade) and callable(getattr(_names_of(self)["_modules"][0], name, None)):
            return  # torch.multiprocessing.spawn is a function, also after an import of the module of that name
        if not isinstance(value, Facade | Missing) and not name.startswith("__"):
            _names_of(self).pop(name, None)
            setattr(_names_of(self)["_modules"][0], name, value)
        else:
            _names_of(self)[name] = value

    def __repr__(self) -> str:
        return f"<module {self.__name__!r}: {_names_of(self)['_modules'][0].__name__}>"

    def __dir__(self) -> list[str]:
        return sorted({name for module in _names_of(self)["_modules"] for name in dir(module)})


def facade(name: str) -> Facade | None:
    """A module under PyTorch's name; None if there is no such module."""
    modules = modules_for(name)
    return Facade(name, modules) if modules else None


class _Distribution(importlib.metadata.Distribution):
    """What `importlib.metadata` says of PyTorch where programs find tritensor: that it is there, and its version."""

    def __init__(self, name: str) -> None:
        self.root = name

    def read_text(self, filename: str) -> str | None:
        """The name and the version, as the metadata's file."""
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: {self.root}\nVersion: {VERSION[self.root]}\n"
        return None

    def locate_file(self, path: Any) -> Any:
        """The place of a file of the package."""
        return Path(_PACKAGE) / path


def _check_mpi() -> None:
    """Raise ImportError where a program would start MPI in a process that no launcher of MPI has started.

    lightning does, to ask for the number of processes: that would be 1, and MPI starts once in a process.
    """
    import mpi4py

    from ..distributed.launchers import all_launches

    if mpi4py.rc.initialize and not any(launch.mpi for launch in all_launches()):
        raise ImportError(explain("MPI would start alone here", remedy="start the program with mpiexec"))


class _Finder(MetaPathFinder, Loader):
    """Finds `torch`, `torchvision` and their submodules."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name == "mpi4py.MPI":
            _check_mpi()
        if name in ROOTS:  # whether torchvision is there is asked by more programs than import it
            return ModuleSpec(name, self, is_package=True)
        if name.partition(".")[0] not in ROOTS:
            return None
        module, _, last = name.rpartition(".")
        if last == "__main__":  # `python -m torch.distributed.run` asks for it
            own = module_for(module)
            return ModuleSpec(name, self, origin=own.__file__) if own is not None and hasattr(own, "main") else None
        modules = modules_for(name)
        importing = _importing() if not modules and not _of_a_name() else None
        if not modules and importing is None:
            return None
        return ModuleSpec(name, self, is_package=True, loader_state=modules or _place(importing))

    def find_distributions(self, context: object = None) -> Iterator[importlib.metadata.Distribution]:
        """What is installed under PyTorch's names."""
        wanted = getattr(context, "name", None)
        return iter([_Distribution(root) for root in ROOTS if wanted in (None, root)])

    def get_code(self, name: str) -> CodeType:
        """What `python -m` runs of a module: its `main`."""
        module = name.removesuffix(".__main__")
        return compile(f"import sys\nfrom {module} import main\nsys.exit(main())", f"<{module}>", "exec")

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        state = spec.loader_state or modules_for(spec.name)
        return Missing(spec.name, state) if isinstance(state, str) else Facade(spec.name, state)

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
    ROOT[0] = "torch"
    for root in ROOTS:
        there = sys.modules.get(root)
        if there is not None and getattr(there.__spec__, "origin", None) not in _SHIMS:
            raise ImportError(explain(f"{root} is imported already", remedy="call install() before the first import"))
    sys.meta_path.insert(0, finder)
    for root in ROOTS:
        if sys.modules.pop(root, None) is not None or root == "torch":
            importlib.import_module(root)


_SHIMS = [str(Path(__file__).parent / "shims" / root / "__init__.py") for root in ROOTS]
