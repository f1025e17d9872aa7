"""Kernels and device functions as plain Python functions, before they are compiled or interpreted.

A module of kernels does not import Triton: it has `from __future__ import annotations` and imports `triton.language as
tl` under `TYPE_CHECKING` only. When a kernel is first used, `rebuild` and `reinterpret` make private copies of its
function whose globals hold the real `tl`, `libdevice` and the device functions it names. The module itself is never
changed, so one function can be compiled and interpreted in the same process.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import CellType, CodeType, FunctionType
from typing import Any, TypeVar, overload

from ..errors import KernelError
from ..host.scalars import signed
from ..types import dtypes

F = TypeVar("F", bound=Callable[..., Any])


class Float64(float):
    """A Python number that a kernel takes as float64; it takes a plain `float` as float32.

    >>> Float64(0.1)
    Float64(0.1)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Float64({float(self)!r})"


class Int64(int):
    """A Python integer that a kernel takes as int64, whatever its value; a plain `int` is int32 where it fits.

    A kernel is compiled separately for integers that are 1 or divisible by 16, but not for an `Int64`. So `Int64` is
    right for numbers that an operator computes with, and wrong for strides and sizes, whose divisibility makes code
    faster.

    >>> Int64(3)
    Int64(3)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Int64({int(self)})"


#: by Triton's name of a type, NumPy's type of its numbers
NUMPY = {entry.triton: entry.numpy for entry in (*dtypes.ALL, dtypes.bool_) if entry.triton}
NUMPY["u1"] = dtypes.bool_.numpy
#: by class of Python numbers that a kernel takes as one type, whatever their value: Triton's name of it
NUMBER_TYPES: dict[type, str] = {Int64: "i64", Float64: "fp64"}


@cache
def number_type(name: str) -> type[Any]:
    """The class of the Python numbers that a kernel takes as a type of Triton's, whatever their value.

    >>> number_type("i64")
    <class 'tritensor.runtime.source.Int64'>
    """
    for known, kind in NUMBER_TYPES.items():
        if kind == name:
            return known
    made = type(f"Number_{name}", (float if NUMPY[name].kind not in "iub" else int,), {"__slots__": ()})
    NUMBER_TYPES[made] = name
    return made


class Descriptor(tuple[Any, ...]):
    """A tensor descriptor that the host made: array, sizes, steps, sizes of a block, "zero" or "nan"."""

    __slots__ = ()


class Address(int):
    """A pointer that is no tensor: of an object that has a `data_ptr` and a `dtype`, as Triton takes it."""

    dtype: dtypes.dtype


def as_number(value: float, kind: dtypes.dtype) -> Any:
    """A number as an argument of a kernel that computes in a dtype."""
    if not kind.is_floating_point:
        return Int64(signed(int(value)))
    return Float64(value) if kind is dtypes.float64 else float(value)


class _Function:
    """Base of kernels and device functions: a Python function, its name, its compiled and interpreted forms."""

    def __init__(self, function: Callable[..., Any], name: str | None = None) -> None:
        if not isinstance(function, FunctionType):
            raise KernelError(f"a kernel must be a function written with def, got {function!r}")
        self.function = function
        self.__name__ = name or function.__name__.strip("<>")
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__wrapped__ = function
        # Set at first use: the hash that identifies compiled code on disk, the JITFunction for the compiler, and the
        # rewritten function for the interpreter.
        self.fingerprint: str | None = None
        self.compiled_form: Any = None
        self.interpreted_form: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise KernelError(
            f"{self.__name__}: kernel code runs inside a launch only",
            f"{self!r} was called",
            remedy="call the operator, or launch() with a kernel",
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.__module__}.{self.__name__}>"


class Kernel(_Function):
    """A function in Triton's language that `launch` runs over a grid. Made by the decorator `kernel`.

    Attributes:
        elements: by a dtype's name, Triton's type of a pointer's elements, where it is not the dtype's own: ours take
            float8 as bytes.
        cooperative: its programs wait for one another, so all of a grid have to run at once.
    """

    elements: Mapping[str, str] = {}
    cooperative = False

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        if _is_lambda(function):
            raise KernelError(f"a kernel must be a function written with def, got {function!r}")
        parameters = inspect.signature(function).parameters.values()
        self.parameters = tuple(entry.name for entry in parameters)
        #: names of the parameters that are constants of the compilation
        self.constants = frozenset(entry.name for entry in parameters if "constexpr" in str(entry.annotation))
        #: names of the run-time parameters, in order
        self.arguments = tuple(name for name in self.parameters if name not in self.constants)
        self.defaults = {entry.name: entry.default for entry in parameters if entry.default is not entry.empty}
        self.family = self.__name__.strip("_").removesuffix("_kernel")

    def profiler_name(self, constants: dict[str, Any], name: str | None) -> str:
        """The name that a profiler shows: `elementwise_silu` for kernel `elementwise` and operator (or body) `silu`."""
        if name is None:
            bodies = [entry.__name__ for entry in constants.values() if isinstance(entry, DeviceFunction)]
            name = "_".join(bodies)
        text = name if name.startswith(self.family) else f"{self.family}_{name}" if name else self.family
        return "".join(letter if letter.isalnum() else "_" for letter in text)


class DeviceFunction(_Function):
    """A function in Triton's language that kernels call by name or take as a constant (`BODY: tl.constexpr`)."""

    @property
    def digest(self) -> str:
        """A hash of text, location and captured values: it differs between bodies of the same name or text."""
        captured = [_captured_text(cell) for cell in self.function.__closure__ or ()]
        code = self.function.__code__
        text = repr((self.__name__, source_of(self.function), code.co_filename, code.co_firstlineno, captured))
        import hashlib  # here, because it takes 3 ms to import and the CPU needs none of it

        return hashlib.sha256(text.encode()).hexdigest()[:8]


def kernel(function: Callable[..., Any], cooperative: bool = False) -> Kernel:
    """Make a kernel for `launch` from a function or a `@triton.jit` kernel. Does not import Triton.

    Args:
        cooperative: programs wait for one another.

    >>> @kernel
    ... def fill_kernel(out_ptr, value, count, BLOCK: tl.constexpr): ...
    >>> fill_kernel.arguments, sorted(fill_kernel.constants)
    (('out_ptr', 'value', 'count'), ['BLOCK'])
    """
    made = Kernel(getattr(function, "fn", function))
    made.cooperative = cooperative
    return made


@overload
def device_function(function: Callable[..., Any], name: str | None = None) -> DeviceFunction: ...
@overload
def device_function(*, name: str | None = None) -> Callable[[Callable[..., Any]], DeviceFunction]: ...
def device_function(function: Callable[..., Any] | None = None, name: str | None = None) -> Any:
    """Mark a function that kernels may call; `name` is what profilers show instead of the function's own name.

    A lambda has to be the only one of its line, and to name no variables of a function around it.

    >>> @device_function
    ... def square(x):
    ...     return x * x
    >>> square.__name__, device_function(square.function, name="sq").__name__
    ('square', 'sq')
    """
    if function is None:
        return lambda decorated: DeviceFunction(decorated, name)
    return DeviceFunction(function, name)


def _captured_text(cell: CellType) -> str:
    try:
        value = cell.cell_contents
    except ValueError:  # a name that is assigned later
        return "?"
    return f"{value.__name__}_{value.digest}" if isinstance(value, DeviceFunction) else repr(value)


def _is_lambda(function: Callable[..., Any]) -> bool:
    return function.__code__.co_name == "<lambda>"  # an operator has given it a name of its own


def source_of(function: Callable[..., Any]) -> str:
    """The function's text without indentation; a lambda's as a definition on one line.

    Raises:
        KernelError: the text cannot be found (a function typed at a prompt or made by exec).
    """
    try:
        text = textwrap.dedent(inspect.getsource(function))
        return _definition(function, text) if _is_lambda(function) else text
    except (OSError, TypeError) as error:
        raise KernelError(
            f"{function.__name__}: the source of a kernel function must be in a file",
            f"{error}",
            remedy="define it in a module, not at a prompt",
        ) from error


def _definition(function: Callable[..., Any], text: str) -> str:
    """What Triton reads of a lambda that is an argument in a line of its own: `def _(x): return libdevice.sin(x)`."""
    try:
        (found,) = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Lambda)]
    except (SyntaxError, ValueError):
        found = None
    if found is None or function.__closure__:
        raise KernelError(
            f"{function.__name__}: a kernel's lambda must be the only one of its line and name no local variables",
            text.strip(),
            remedy="write it with def",
        )
    return f"def _({ast.unparse(found.args)}): return {ast.unparse(found.body)}\n"


def _defined(function: Callable[..., Any]) -> CodeType:
    """The code of a lambda's definition, in a file of that line alone where Triton finds the text."""
    text, code = source_of(function), function.__code__
    path = f"{code.co_filename}:{code.co_firstlineno}"
    linecache.cache[path] = (len(text), None, [text], path)
    return next(each for each in compile(text, path, "exec").co_consts if isinstance(each, CodeType))


def names_in(code: CodeType) -> Iterator[str]:
    """All global and attribute names in code, including nested functions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def private_globals(function: Callable[..., Any], extra: dict[str, Any], resolve: Callable[[Any], Any]) -> dict:
    """The globals of a copy of `function`: the ones it names, passed through `resolve`, and `extra`."""
    found = {
        name: resolve(function.__globals__[name])
        for name in names_in(function.__code__)
        if name in function.__globals__ and name not in extra
    }
    return {"__name__": function.__module__, "__builtins__": __builtins__, **found, **extra}


def _resolved_cells(function: Callable[..., Any], resolve: Callable[[Any], Any]) -> list[Any]:
    try:
        return [resolve(cell.cell_contents) for cell in function.__closure__ or ()]
    except ValueError as error:
        raise KernelError(
            f"{function.__name__}: it names a variable of its enclosing function that has no value yet"
        ) from error


def _resolved_defaults(function: Callable[..., Any], resolve: Callable[[Any], Any]) -> tuple[tuple | None, dict | None]:
    defaults = tuple(map(resolve, function.__defaults__)) if function.__defaults__ else None
    keywords = {key: resolve(value) for key, value in (function.__kwdefaults__ or {}).items()} or None
    return defaults, keywords


def rebuild(function: Any, name: str, extra: dict[str, Any], resolve: Callable[[Any], Any]) -> FunctionType:
    """A copy of `function` with private globals and the name `name`, for the compiler."""
    cells = tuple(CellType(value) for value in _resolved_cells(function, resolve))
    code = _defined(function) if _is_lambda(function) else function.__code__
    copy = FunctionType(code, private_globals(function, extra, resolve), name, None, cells)
    copy.__defaults__, copy.__kwdefaults__ = _resolved_defaults(function, resolve)
    copy.__annotations__, copy.__doc__ = dict(function.__annotations__), function.__doc__
    copy.__module__, copy.__qualname__ = function.__module__, name
    return copy


def spoken(function: Any, words: Mapping[str, Any], **modules: Any) -> Callable[..., Any]:
    """A function in Triton's language as an ordinary one: the device functions among `words`, and `tl` and `libdevice`
    where they are given, mean that; other device functions are ordinary ones likewise."""
    plain = getattr(function, "function", function)  # of a device function
    named = {
        name: words[name] if name in words else spoken(value, words, **modules)
        for name, value in plain.__globals__.items()
        if name in plain.__code__.co_names and isinstance(value, DeviceFunction)
    }
    scope = {**plain.__globals__, **named, **modules}
    return FunctionType(plain.__code__, scope, plain.__name__, plain.__defaults__)


class _AsCompiled(ast.NodeTransformer):
    """Rewrites kernel code so that Python runs it with the semantics of Triton's compiler.

    Assigned numbers become tensors (`_typed`): in the compiler `scale = 0.1` is a float32. Conditions must be single
    values (`_scalar`): a block has no truth value. `and`, `or` and `not` work on the elements of blocks (`_logic`).
    """

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        node.value = self._call("_typed", self.visit(node.value))
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        # `and` and `or` of blocks are elementwise; evaluation is cut short by constants only
        empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        parts = [ast.Lambda(args=empty, body=self.visit(value)) for value in node.values]
        return self._call("_logic", ast.Constant("and" if isinstance(node.op, ast.And) else "or"), *parts)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return self._call("_logic", ast.Constant("not"), node.operand) if isinstance(node.op, ast.Not) else node

    def _condition(self, node: Any) -> ast.AST:
        self.generic_visit(node)
        node.test = self._call("_scalar", node.test)
        return node

    visit_If = visit_While = visit_IfExp = _condition

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        # Python would take the truth value of the first comparison; Triton 3.6 refuses a chain too.
        if len(node.ops) > 1:
            raise KernelError(f"chained comparison in a kernel: {ast.unparse(node)}", remedy="(a < b) & (b < c)")
        return self.generic_visit(node)

    @staticmethod
    def _call(name: str, *values: Any) -> ast.expr:
        return ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=list(values), keywords=[])


def reinterpret(
    function: Callable[..., Any], extra: dict[str, Any], resolve: Callable[[Any], Any], meaning: Mapping[str, Any]
) -> FunctionType:
    """A copy of `function` with private globals, for the interpreter.

    `meaning` holds `_typed`, `_scalar` and `_logic`, which implement assignments, conditions and boolean operators.
    """
    tree = ast.parse(source_of(function))
    definition = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    definition.decorator_list, definition.returns = [], None
    signature = definition.args
    for argument in (*signature.posonlyargs, *signature.args, *signature.kwonlyargs):
        argument.annotation = None
    signature.defaults, signature.kw_defaults = [], [None] * len(signature.kwonlyargs)
    definition.body = [_AsCompiled().visit(node) for node in definition.body]
    # The copy is defined inside a function that takes the captured names, so that closures keep working.
    names = (*meaning, *function.__code__.co_freevars)
    module = ast.parse(f"def _enclosing({', '.join(names)}):\n    return {definition.name}")
    enclosing = module.body[0]
    assert isinstance(enclosing, ast.FunctionDef)
    enclosing.body.insert(0, definition)
    ast.fix_missing_locations(module)
    # so that a traceback from the interpreter shows the kernel's own file and line
    ast.increment_lineno(module, function.__code__.co_firstlineno - 1)
    scope = private_globals(function, extra, resolve)
    exec(compile(module, function.__code__.co_filename, "exec"), scope)
    copy = scope.pop("_enclosing")(*meaning.values(), *_resolved_cells(function, resolve))
    copy.__defaults__, copy.__kwdefaults__ = _resolved_defaults(function, resolve)
    copy.fn = copy  # tl.reduce calls the `fn` of its combine function
    return copy
