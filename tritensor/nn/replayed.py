"""Compiled functions that are repeated without Python: what each run depends on, and the program of each."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from operator import eq, is_
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from .. import settings
from ..autograd.mode import recording
from ..autograd.precision import casts
from ..autograd.precision import state as casting
from ..cuda.devices import device as current_device
from ..cuda.graphs import CUDAGraph, graph
from ..errors import DeviceError, warn
from ..ground import overriding
from ..memory.lifted import open_levels
from ..operators import deferring
from ..operators.deferring import Program, Trace
from ..operators.generators import states
from ..runtime.checking import mismatch
from ..runtime.replay import table
from ..tensors import Tensor, wrap
from ..types import devices, dtypes
from .hooks import of_all
from .module import Module
from .parameter import Parameter
from .tree import changes

Key = tuple[Any, ...]
Where = Any  # what a value is read from by its name: a dict, a list, or a `_Cell`
_PLAIN = frozenset((bool, int, float, str, bytes, type(None), dtypes.dtype, devices.device))
#: The most programs of one function; a function of more combinations of arguments runs with Python.
_MOST = 64


class Captured:
    """What a function reads beside its arguments: attributes of modules, closures, and globals.

    Attributes:
        holders: where its tensors are, as dicts and names.
        facts: what a program depends on beside the tensors.
        problem: why there can be no program; empty if there can.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.version = function, -1
        self.watched: list[tuple[Any, Any, Any]] = []
        self.holders: list[tuple[Any, Any]] = []
        self.arrays: list[Any] = []
        self.facts: tuple[Any, ...] = ()
        self.forms: tuple[Any, ...] = ()
        self.problem = ""

    def tensors(self) -> list[Tensor]:
        """The tensors as they are now; `facts` and `forms` are right from here on."""
        if (
            self.version != changes[0]
            or self.problem
            or [1 for where, name, value in self.watched if where[name] is not value]
        ):
            self._look()
        if not self.holders:
            return []
        found = [where[name] for where, name in self.holders]
        if [x for x in found if not isinstance(x, Tensor)]:
            self._look()
            found = [where[name] for where, name in self.holders]
        arrays = [x._data for x in found]
        if len(arrays) != len(self.arrays) or not all(map(is_, arrays, self.arrays)):
            self.arrays, self.forms = arrays, tuple(map(_form, arrays))
        return found

    def _look(self) -> None:
        self.watched, self.holders, self.arrays, self.forms, self.problem = [], [], [], (), ""
        self._seen, found = set[int](), list[Any]()
        self._function(self.function, found)
        self.facts, self.version = tuple(found), changes[0]

    def _function(self, function: Callable[..., Any], found: list[Any]) -> None:
        if isinstance(function, MethodType):
            self._value(None, None, function.__self__, found, follow=True)
            function = function.__func__
        function = getattr(function, "__wrapped__", function)
        if not isinstance(function, FunctionType) or id(function) in self._seen or _is_ours(function.__module__):
            return
        self._seen.add(id(function))
        for cell in function.__closure__ or ():
            self._value(_Cell(cell), 0, cell.cell_contents, found, follow=True)
        for name in _names(function.__code__):
            if name in function.__globals__:
                self._value(function.__globals__, name, function.__globals__[name], found, follow=True)

    def _value(
        self,
        where: Where | None,
        name: object,
        value: object,
        found: list[Any],
        watched: bool = True,
        follow: bool = False,
    ) -> None:
        """Look at a value, which is `where[name]`; with `follow` at the attributes of any object."""
        kind = value.__class__
        if watched and where is not None and not isinstance(value, Tensor):
            self.watched.append((where, name, value))
        if isinstance(value, Tensor):
            self.holders.append((where, name))
        elif kind in _PLAIN:
            found.append((name, kind, value or str(value)))
        elif isinstance(value, (FunctionType, MethodType)):
            found.append(id(value))
            self._function(value, found)
        elif id(value) not in self._seen:
            self._seen.add(id(value))
            if isinstance(value, Module):
                self._module(value, found)
            elif isinstance(value, (tuple, list, dict)):
                if watched and not isinstance(value, tuple):
                    self.watched.append((_Size(value), 0, len(value)))
                for key, each in value.items() if isinstance(value, dict) else enumerate(value):
                    self._value(value, key, each, found, kind is not tuple)
            elif follow and not isinstance(value, (type, ModuleType)) and not _is_ours(kind.__module__):
                for key, each in getattr(value, "__dict__", {}).items():
                    self._value(value.__dict__, key, each, found)

    def _module(self, module: Module, found: list[Any]) -> None:
        own = vars(module)
        for key, value in own.items():
            if key in _TABLES:
                for name, each in value.items():
                    self._value(value, name, each, found, False)
            elif key in _HOOKS and value:
                self.problem = f"{type(module).__name__} has hooks"
            else:
                self._value(own, key, value, found, False)
        found.append((id(module), type(module)))
        if not _is_ours(type(module).__module__):
            self._function(type(module).forward, found)


_TABLES = ("_parameters", "_buffers", "_modules")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


@functools.cache
def _names(code: CodeType) -> set[str]:
    """The global names that a function reads."""
    import dis

    inner = [_names(each) for each in code.co_consts if isinstance(each, CodeType)]
    return {each.argval for each in dis.get_instructions(code) if each.opname == "LOAD_GLOBAL"}.union(*inner)


def _is_ours(module: str | None) -> bool:
    return (module or "").split(".")[0] in (__name__.split(".")[0], "builtins")


class _Cell:
    """A variable of a closure, as a dict."""

    def __init__(self, cell: CellType) -> None:
        self.cell = cell

    def __getitem__(self, name: object) -> Any:
        return self.cell.cell_contents


class _Size:
    """The length of a list or dict, as a dict; no other than small numbers are the same object each time."""

    def __init__(self, values: Sized) -> None:
        self.values = values

    def __getitem__(self, name: object) -> int:
        return len(self.values)


def _form(array: object) -> Any:
    return (array.dtype, array.shape, array.strides) if array.__class__ is np.ndarray else getattr(array, "form", None)


class _Unfit(Exception):
    """Why a call is none that a program computes."""


def _described(values: Iterable[Any], tensors: list[Tensor], found: list[Any]) -> None:
    """Append what a program depends on, of a call's arguments, and their tensors to `tensors`."""
    for value in values:
        kind = value.__class__
        if kind is Tensor or kind is Parameter:
            tensors.append(value)
            found.append(_form(value._data))
        elif kind in _PLAIN:
            found += kind, value or str(value)
        elif kind is tuple or kind is list or kind is dict or hasattr(value, "_fields"):
            found += kind, len(value)
            _described(value.items() if kind is dict else value, tensors, found)
        else:
            raise _Unfit(f"an argument is a {kind.__name__}")


class Replays:
    """A compiled function whose calls without gradients are repeated without Python.

    A call with arguments of new forms runs with Python and is written down. The second such call runs both ways; if the
    results are alike, later ones run the program alone.

    Args:
        function: of the program; noted: runs it with Python: `(args, named, captured tensors, trace or None)`.
        graphs: on a GPU, capture programs as CUDA graphs.

    Attributes:
        recompilations: for each program but the first, what was new.
    """

    def __init__(
        self, function: Callable[..., Any], memory: deferring.Memory, noted: Callable[..., Any], graphs: bool = False
    ) -> None:
        self.function, self.memory, self.noted, self.graphs = function, memory, noted, graphs
        self.captured = Captured(function)
        #: by what a run depends on: its program and the form of its results, or why there is none
        self.programs: dict[Any, Any] = table()
        self.recompilations: list[str] = []
        self.said = False

    def __call__(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Call the function."""
        if open_levels.stack or deferring.current.region is not None or overriding.here.modes or of_all:
            return self.noted(args, named)
        given: list[Tensor] = []
        forms: list[Any] = []
        try:
            _described(args, given, forms)
            if named:
                _described(named.items(), given, forms)
            captured = self.captured.tensors()
        except _Unfit as error:
            return self._by_python(str(error), args, named)
        except (KeyError, IndexError, ValueError):  # of what has gone
            return self.noted(args, named)
        own = self.captured
        if recording.enabled and [1 for x in (*given, *captured) if x._needs]:
            return self.noted(args, named)
        if own.problem:
            return self._by_python(own.problem, args, named)
        modes = (casting.types, *casting.lower.values()) if casts.on and casting.types else None
        key = tuple(forms), own.forms, own.facts, modes
        found = self.programs.get(key)
        if found is None:
            return self._first(key, args, named, given, captured)
        if found.__class__ is str:
            return self._by_python(found, args, named)
        result = found(given, captured)
        return result if found.checked else self._second(key, result, args, named)

    def _by_python(self, why: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Run with Python, and say once why."""
        if not self.said:
            self.said = True
            warn(f"compile: {_title(self.function)} runs with Python at each call: {why}")
        return self.noted(args, named)

    def _first(
        self, key: Key, args: tuple[Any, ...], named: dict[str, Any], given: list[Tensor], captured: list[Tensor]
    ) -> Any:
        """Run with Python, and write down what is computed."""
        if len(self.programs) >= _MOST:
            return self._by_python(f"it has {_MOST} programs, the last for {self.recompilations[-1]}", args, named)
        if self.programs:
            self._recompiled(key)
        trace = Trace([x._data for x in (*given, *captured)])
        drawn = states()
        result = self.noted(args, named, captured, trace)
        if states() != drawn:
            trace.stop("random numbers are drawn")
        self.programs[key] = trace.problem or self._program(trace, result, given)
        return result

    def _program(self, trace: Trace, result: object, given: list[Tensor]) -> _Replay | str:
        wanted: list[int] = []
        try:
            form = _outputs(result, trace, {id(x): i for i, x in enumerate(given)}, wanted)
        except _Unfit as error:
            return str(error)
        return _Replay(Program(self.memory, trace, tuple(dict.fromkeys(wanted))), form, self.graphs)

    def _second(self, key: Key, result: object, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Run with Python as well, and keep the program if both give the same."""
        expected = self.noted(args, named)
        pairs = list(zip(_flat(result), _flat(expected)))
        problem = next(filter(None, [_difference(x, y) for x, y in pairs]), None)
        if problem:
            self.programs[key] = f"its results depend on more than its arguments: {problem}"
        else:
            self.programs[key].checked = True
        return expected

    def _recompiled(self, key: Key) -> None:
        names = "arguments", "forms of parameters", "attributes, closures or globals", "autocast"
        nearest = max(self.programs, key=lambda other: sum(map(eq, other, key)))
        new = [name for name, old, own in zip(names, nearest, key) if old != own]
        self.recompilations.append(f"new {' and '.join(new)}")
        if settings.debug.value:
            warn(f"compile: {_title(self.function)} is compiled again: {self.recompilations[-1]}")


def _title(function: object) -> str:
    owner = getattr(function, "__self__", None)
    function = type(owner).forward if isinstance(owner, Module) else getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", type(function).__name__)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code else name


class _Replay:
    """A program, and how its results are put together."""

    def __init__(self, program: Program, form: object, graphs: bool) -> None:
        self.program, self.form, self.checked, self.graphs = program, form, False, graphs
        self.graph: _Graph | None = None
        self.places = {place: index for index, place in enumerate(program.wanted)}

    def __call__(self, given: list[Tensor], captured: list[Tensor]) -> Any:
        """The results of a call."""
        own = [x._data for x in (*given, *captured)]
        if self.graphs and self.checked and (self.graph is None or not self.graph.fits(own)):
            self.graph = _Graph.of(self.program, own, len(given))
            self.graphs = self.graph is not None
        arrays = self.program.run(own) if self.graph is None else self.graph.run(own)
        return self._built(self.form, [wrap(each) for each in arrays], given)

    def _built(self, form: object, made: list[Tensor], given: list[Tensor]) -> Any:
        if isinstance(form, _Given):
            return given[form.place]
        if isinstance(form, _Result):
            return made[self.places[form.place]]
        if isinstance(form, dict):
            built = copy.copy(form)
            for key, each in form.items():
                built[key] = self._built(each, made, given)
            return built
        if isinstance(form, (tuple, list)):
            parts = [self._built(each, made, given) for each in form]
            return type(form)(*parts) if hasattr(form, "_fields") else type(form)(parts)
        return form


class _Graph:
    """A program as a CUDA graph: arguments are copied to where it reads them, and results from where it writes them."""

    def __init__(self, program: Program, own: list[Any], given: int) -> None:
        self.inputs, self.captured = [wrap(x).clone() for x in own[:given]], own[given:]
        #: of arguments, which a graph cannot check
        self.checks = [step for step in program.plan.steps if not step.outputs]
        self.graph = CUDAGraph()
        with graph(self.graph):
            self.made = program.run([*[x._data for x in self.inputs], *self.captured])

    @classmethod
    def of(cls, program: Program, own: list[Any], given: int) -> _Graph | None:
        """The graph; None for arrays that are not all on one GPU, and where a call cannot be captured."""
        places = {getattr(x, "device", devices.cpu) for x in own}
        checked = [x for step in program.plan.steps if not step.outputs for x in step.inputs]
        if len(places) != 1 or devices.cpu in places or any(place >= given for place in checked):
            return None
        try:
            with current_device(places.pop()):
                return cls(program, own, given)
        except DeviceError:
            return None

    def fits(self, own: list[Any]) -> bool:
        """Whether the parameters are those that were captured."""
        return all(map(is_, own[len(self.inputs) :], self.captured))

    def run(self, own: list[Any]) -> list[Any]:
        """The results' arrays."""
        for step in self.checks:
            step.compute(own, ())
        for held, x in zip(self.inputs, own):
            held.copy_(wrap(x))
        self.graph.replay()
        return [wrap(x).clone()._data for x in self.made]


class _Result:
    def __init__(self, place: int) -> None:
        self.place = place


class _Given(_Result):
    """An argument that is a result as well."""


def _outputs(value: object, trace: Trace, given: Mapping[int, int], wanted: list[int]) -> Any:
    """The result of a call with places in place of its tensors.

    Raises:
        _Unfit: it has something else than a program computes.
    """
    if isinstance(value, Tensor):
        if id(value) in given:
            return _Given(given[id(value)])
        place = trace.places.get(id(value._data), -1)
        if value.__class__ is not Tensor or value._needs or place < 0 or trace.values[place] is not None:
            raise _Unfit("a result is no new tensor")
        if any(_overlap(value._data, each) for each in trace.values if each is not None):
            raise _Unfit("a result shares memory with an argument")
        wanted.append(place)
        return _Result(place)
    if isinstance(value, dict):
        built = copy.copy(value)
        for key, each in value.items():
            built[key] = _outputs(each, trace, given, wanted)
        return built
    if isinstance(value, (tuple, list)):
        parts = [_outputs(each, trace, given, wanted) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if value.__class__ not in _PLAIN:
        raise _Unfit(f"a result is a {type(value).__name__}")
    return value


def _overlap(x: object, y: object) -> bool:
    if x.__class__ is np.ndarray:
        return y.__class__ is np.ndarray and np.may_share_memory(x, y)
    return getattr(x, "buffer", None) is getattr(y, "buffer", x)


def _flat(value: object) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from _flat(each)
    else:
        yield value


def _difference(x: object, y: object) -> str | None:
    """What differs by more than roundings of other kernels."""
    if not (isinstance(x, Tensor) and isinstance(y, Tensor)):
        return None if x == y or x != x else f"{x!r}, not {y!r}"
    if not x.is_floating_point():
        return mismatch(x._to_host(), y._to_host(), 0.0, 0.0)
    relative, other = 2000 * dtypes.finfo(x.dtype).eps, y._to_host()
    largest = float(np.abs(other).max(initial=0, where=np.isfinite(other)))
    return mismatch(x._to_host(), other, relative, relative * largest)
