"""Functions of scores and indices as device functions: they run once on symbols, which write down what is computed.

A symbol stands for a number of each score. Elementwise operators of symbols are calls of the operators' own bodies;
indices by symbols into tensors are loads. What a function does beyond that (reads elements, branches, reduces) has no
text, and raises `Untraceable`. Beside each value its slope by the score is written down, as far as operators have one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ...autograd.mode import recording
from ...ground.overriding import install
from ...kernels.elementwise.kernel import body_function
from ...kernels.fused.family import written
from ...memory.array import DeviceArray
from ...operators import registry
from ...runtime.launch import DeviceFunction, device_function
from ...tensors import Tensor
from ...types.dtypes import bool_, float32

_INFIX = {"add": "+", "sub": "-", "mul": "*", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_INFIX |= {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "logical_and": "&", "logical_or": "|"}
_COMPARED, _JOINED = frozenset(("lt", "le", "gt", "ge", "eq", "ne")), ("bitwise_and", "bitwise_or", "bitwise_xor")
# By the names of operators on a floating number x with the result y, the slope of y; None where it is zero.
_SLOPES: dict[str, str | None] = dict.fromkeys(("floor", "ceil", "round", "trunc", "sign"))
_SLOPES |= {"exp": "y", "exp2": "y * 0.6931471805599453", "expm1": "y + 1", "log": "1 / x", "log1p": "1 / (1 + x)"}
_SLOPES |= {"log2": "1.4426950408889634 / x", "sqrt": "0.5 / y", "rsqrt": "-0.5 * y * y * y", "reciprocal": "-y * y"}
_SLOPES |= {"tanh": "1 - y * y", "sigmoid": "y * (1 - y)", "relu": "tl.where(x > 0, 1.0, 0.0)", "square": "2 * x"}
_SLOPES |= {"sin": "tl.cos(x)", "cos": "-tl.sin(x)", "abs": "tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, 0.0))"}
_OTHER_NAMES = {"true_divide": "div", "divide": "div", "truediv": "div", "absolute": "abs", "negative": "neg"}
_OTHER_NAMES |= {"multiply": "mul", "subtract": "sub", "greater": "gt", "greater_equal": "ge", "less": "lt"}
_OTHER_NAMES |= {"less_equal": "le", "not_equal": "ne", "clamp_min": "maximum", "clamp_max": "minimum"}
_OTHER_NAMES |= {"bitwise_not": "logical_not", "clip": "clamp", "type": "to", "min": "minimum", "max": "maximum"}
_REACH = 1 << 31


class Untraceable(Exception):
    """A function does what symbols have no text for."""


class Functions(NamedTuple):
    """What was traced: a function of a score, its slope, and a mask, each None if there is none, and what they read."""

    score: DeviceFunction | None
    slope: DeviceFunction | None
    kept: DeviceFunction | None
    captured: tuple[Tensor, ...]


class _Text:
    """The lines that are written, and the tensors that they read."""

    def __init__(self, captured: list[Tensor], device: Any) -> None:
        self.captured, self.device = captured, device
        self.lines: list[str] = []
        self.known: dict[str, str] = {}

    def variable(self, text: str) -> str:
        """The name of a variable with the value of an expression."""
        name = self.known.get(text)
        if name is None:
            name = self.known[text] = f"t{len(self.lines)}"
            self.lines.append(f"{name} = {text}")
        return name

    def place(self, x: Tensor) -> str:
        """What a tensor's address, sizes and strides are called."""
        if x.device != self.device or not isinstance(x._data, DeviceArray) or (recording.enabled and x._needs):
            raise Untraceable("a tensor of another device, or one that needs a gradient")
        if sum(abs(step) * size for step, size in zip(x._data.strides, x.shape)) >= _REACH or x.is_complex():
            raise Untraceable("a tensor that 32 bits do not reach")
        at = next((at for at, known in enumerate(self.captured) if known is x), len(self.captured))
        if at == len(self.captured):
            self.captured.append(x)
        return f"given[{at}]"


class Symbol:
    """A number of each score: an expression, whether it is "float", "int" or "bool", and its slope, None for zero."""

    def __init__(self, text: _Text, name: str, kind: str, slope: str | None = None) -> None:
        self._text, self._name, self._kind, self._slope = text, name, kind, slope

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """What a public function of tensors makes of symbols."""
        symbol = next((x for x in args if isinstance(x, Symbol)), None)
        if func.__name__ in ("__getitem__", "getitem") and isinstance(args[0], Tensor):
            return _Indexed(args[0], ())[args[1]]
        if symbol is None:
            raise Untraceable(func.__name__)
        return _called(symbol._text, func.__name__, args, kwargs or {})

    def __getattr__(self, name: str) -> Any:
        if name in ("dtype", "device", "shape", "ndim"):
            return {"dtype": {"bool": bool_}.get(self._kind), "device": self._text.device, "shape": (), "ndim": 0}[name]
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: _called(self._text, name, (self, *args), kwargs)

    def __bool__(self) -> bool:
        raise Untraceable("a branch")

    def __index__(self) -> int:
        raise Untraceable("an index of Python's")

    __iter__ = __len__ = __float__ = __int__ = __index__  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


def _operator(name: str, turned: bool = False) -> Callable[..., Any]:
    def method(self: Symbol, *others: Any) -> Any:
        return _called(self._text, name, (*others, self) if turned else (self, *others), {})

    return method


for _dunder, _name in (
    *[
        (each, each)
        for each in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "eq")
    ],
    *(("ne", "ne"), ("and", "bitwise_and"), ("or", "bitwise_or"), ("xor", "bitwise_xor"), ("invert", "logical_not")),
    *(("neg", "neg"), ("abs", "abs")),
):
    setattr(Symbol, f"__{_dunder}__", _operator(_name))
    if _dunder in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"):
        setattr(Symbol, f"__r{_dunder}__", _operator(_name, True))


class _Indexed:
    """A tensor with some of its indices."""

    def __init__(self, tensor: Tensor, indices: tuple[Any, ...]) -> None:
        self.tensor, self.indices = tensor, indices

    def __getitem__(self, index: Any) -> Any:
        indices = (*self.indices, *(index if isinstance(index, tuple) else (index,)))
        if not all(isinstance(x, Symbol) or x.__class__ is int for x in indices) or len(indices) > self.tensor.ndim:
            raise Untraceable("an index")
        if len(indices) < self.tensor.ndim:
            return _Indexed(self.tensor, indices)
        text = next(x._text for x in indices if isinstance(x, Symbol))
        place = text.place(self.tensor)
        offsets, inside = [f"{place}[0]"], []
        for dim, x in enumerate(indices):
            size = f"{place}[1][{dim}]"
            if isinstance(x, Symbol):
                if x._kind != "int":
                    raise Untraceable("a mask as an index")
                at = text.variable(f"tl.where({x._name} < 0, {x._name} + {size}, {x._name}).to(tl.int32)")
                inside.append(f"({at} >= 0) & ({at} < {size})")
            else:
                at = str(x % max(self.tensor.shape[dim], 1))
            offsets.append(f"{at} * {place}[2][{dim}]")
        loaded = f"tl.load({' + '.join(offsets)}, mask={' & '.join(inside)}, other=0)"
        return _loaded(text, loaded, self.tensor)

    @classmethod
    def __torch_function__(cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise Untraceable(func.__name__)


def _loaded(text: _Text, load: str, of: Tensor) -> Symbol:
    """The symbol of an element of a tensor."""
    if of.dtype is bool_:
        return Symbol(text, text.variable(f"{load} != 0"), "bool")
    if not of.is_floating_point():
        return Symbol(text, text.variable(load), "int")
    if of.dtype.itemsize > 4:
        raise Untraceable("float64")
    return Symbol(text, text.variable(f"{load}.to(tl.float32)"), "float")


def _symbol(text: _Text, x: Any) -> Symbol:
    """Anything that a function takes beside symbols, as one."""
    if isinstance(x, Symbol):
        return x
    if isinstance(x, Tensor) and x.ndim == 0:
        if x.device == text.device:
            return _loaded(text, f"tl.load({text.place(x)}[0])", x)
        x = None if x._needs else x.item()
    if x.__class__ is bool:
        return Symbol(text, str(x), "bool")
    if x.__class__ is int and abs(x) < _REACH:
        return Symbol(text, f"({x})", "int")
    if x.__class__ is float:
        return Symbol(text, f"({x!r})" if x - x == 0 else f'float("{x!r}")', "float")
    raise Untraceable(f"an argument {x!r:.40}")


def _called(text: _Text, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    name = name.strip("_")
    name = _OTHER_NAMES.get(name, name)
    if kwargs.pop("dtype", bool_) not in (bool_, float32) or kwargs.pop("device", text.device) != text.device:
        raise Untraceable("a dtype")
    if name in ("new_ones", "new_zeros", "new_full"):
        shape, value = args[1], args[2] if name == "new_full" else name == "new_ones"
        if tuple(shape):
            raise Untraceable("a shape")
        return _symbol(text, value)
    if name == "clamp":
        low, high = (*args[1:], None, None)[:2]
        low, high = kwargs.pop("min", low), kwargs.pop("max", high)
        low = args[0] if low is None else _called(text, "maximum", (args[0], low), {})
        return low if high is None else _called(text, "minimum", (low, high), {})
    if name in ("to", "float", "int", "long", "bool"):
        kind = name if name != "to" else args[1]
        return _cast(text, args[0], {"long": "int", float32: "float", bool_: "bool"}.get(kind, kind))
    if kwargs:
        raise Untraceable(f"{name} with {', '.join(kwargs)}")
    symbols = [_symbol(text, x) for x in args]
    if len(symbols) == 1:
        return _of_one(text, name, *symbols)
    if name == "where" and len(symbols) == 3:
        condition, x, y = symbols
        x, y, kind = _alike(text, x, y)
        value = text.variable(f"tl.where({condition._name}, {x._name}, {y._name})")
        return Symbol(text, value, kind, _chosen(text, condition._name, x, y))
    if len(symbols) == 2:
        return _of_two(text, name, *symbols)
    raise Untraceable(name)


def _cast(text: _Text, x: Symbol, kind: Any) -> Symbol:
    if kind == x._kind:
        return x
    if kind == "bool":
        return Symbol(text, text.variable(f"{x._name} != 0"), "bool")
    if x._name.startswith("(") and kind == "float":  # a number
        return Symbol(text, f"{x._name[1:-1]}.0", kind)
    if kind not in ("float", "int") or (kind == "int" and x._kind == "float"):
        raise Untraceable("a dtype")
    return Symbol(text, text.variable(f"{x._name}.to(tl.{kind}32)"), kind)


def _alike(text: _Text, x: Symbol, y: Symbol) -> tuple[Symbol, Symbol, str]:
    kind = next(each for each in ("float", "int", "bool") if each in (x._kind, y._kind))
    return _cast(text, x, kind), _cast(text, y, kind), kind


def _chosen(text: _Text, condition: str, x: Symbol, y: Symbol) -> str | None:
    """The slope of what is x where a condition holds, and y elsewhere."""
    if x._slope is None and y._slope is None:
        return None
    return text.variable(f"tl.where({condition}, {x._slope or '0.0'}, {y._slope or '0.0'})")


def _of_one(text: _Text, name: str, x: Symbol) -> Symbol:
    if name == "logical_not":
        if x._kind != "bool":
            raise Untraceable(name)
        return Symbol(text, text.variable(f"{x._name} == 0"), "bool")
    if name == "neg":
        return _of_two(text, "sub", _symbol(text, 0), x)
    if name == "abs" and x._kind == "int":
        return Symbol(text, text.variable(f"tl.where({x._name} < 0, -{x._name}, {x._name})"), "int")
    if name not in _SLOPES:
        raise Untraceable(name)
    x = _cast(text, x, "float")
    value = text.variable(f"{name}({x._name})")
    slope = _SLOPES[name]
    if x._slope is None or slope is None:
        return Symbol(text, value, "float")
    own = re.sub(r"\b[xy]\b", lambda found: x._name if found[0] == "x" else value, slope)
    return Symbol(text, value, "float", text.variable(f"({own}) * {x._slope}"))


def _of_two(text: _Text, name: str, x: Symbol, y: Symbol) -> Symbol:
    if name == "pow":
        if y._name == "(2)":
            return _of_two(text, "mul", x, x)
        raise Untraceable(name)
    if name in ("logical_and", "logical_or"):
        x, y = _cast(text, x, "bool"), _cast(text, y, "bool")
    x, y, kind = _alike(text, x, y)
    if kind == "bool" and name in ("add", "sub", "mul", "maximum", "minimum"):
        raise Untraceable(f"{name} of booleans")
    if name in ("floordiv", "floor_divide", "mod", "remainder"):
        if kind != "int":
            raise Untraceable(name)
        rest = text.variable(f"{x._name} % {y._name}")
        off = text.variable(f"({rest} != 0) & (({rest} < 0) != ({y._name} < 0))")  # as Python rounds, to below
        if name in ("mod", "remainder"):
            return Symbol(text, text.variable(f"tl.where({off}, {rest} + {y._name}, {rest})"), "int")
        rest = text.variable(f"tl.where({off}, {rest} + {y._name}, {rest})")
        return Symbol(text, text.variable(f"({x._name} - {rest}) // {y._name}"), "int")
    if name in ("div", "truediv"):
        x, y = _cast(text, x, "float"), _cast(text, y, "float")
        value = text.variable(f"{x._name} / {y._name}")
        slope = None if x._slope is None else f"{x._slope} / {y._name}"
        if y._slope is not None:
            slope = f"{slope or '0.0'} - {value} * {y._slope} / {y._name}"
        return Symbol(text, value, "float", slope and text.variable(slope))
    if name in ("maximum", "minimum"):
        more = ">=" if name == "maximum" else "<="
        condition = f"({x._name} {more} {y._name}) | ({x._name} != {x._name})"
        value = text.variable(f"tl.where({condition}, {x._name}, {y._name})")
        return Symbol(text, value, kind, _chosen(text, condition, x, y))
    if name not in _INFIX or (name in _JOINED and kind == "float"):
        raise Untraceable(name)
    value = text.variable(f"{x._name} {_INFIX[name]} {y._name}")
    if name in _COMPARED or kind != "float":
        return Symbol(text, value, "bool" if name in _COMPARED else kind)
    slope = None
    if name == "mul":
        parts = [f"{one._slope} * {other._name}" for one, other in ((x, y), (y, x)) if one._slope is not None]
        slope = " + ".join(parts) or None
    elif x._slope is not None or y._slope is not None:
        slope = f"{x._slope or '0.0'} {_INFIX[name]} {y._slope or '0.0'}"
    return Symbol(text, value, kind, slope and text.variable(slope))


@lru_cache(1024)
def _function(name: str, parameters: str, lines: tuple[str, ...], result: str) -> DeviceFunction:
    """The device function of a text; the same one for the same text, so that it is compiled once."""
    scope: dict[str, Any] = {"__name__": __name__}
    for each in _SLOPES:
        if any(f"{each}(" in line for line in lines):
            scope[each] = body_function(registry[each])
    text = "\n    ".join([f"def {name}({parameters}):", *lines, f"return {result}"])
    return device_function(written(text + "\n", name, scope), name=name)


def _traced(
    function: Callable[..., Any], kind: str, captured: list[Tensor], device: Any
) -> tuple[DeviceFunction, DeviceFunction | None]:
    """A function, and its slope by its first argument if that is a score."""
    text, score = _Text(captured, device), kind == "float"
    indices = [Symbol(text, name, "int") for name in ("b", "h", "row", "col")]
    found = function(*([Symbol(text, "score", "float", "1.0")] if score else []), *indices)
    found = _cast(text, _symbol(text, found), kind)
    name, lines = "score_mod" if score else "mask_mod", tuple(text.lines)
    parameters = "score, given, b, h, row, col" if score else "given, b, h, row, col"
    value = _function(name, parameters, lines, found._name)
    return value, _function("slope_of_" + name, parameters, lines, found._slope or "0.0") if score else None


def traced(score_mod: Any, mask_mod: Any, device: Any) -> Functions | None:
    """The device functions of a function of scores and of a mask, each or None; None if one cannot be traced."""
    install()  # so that functions of tensors ask symbols
    captured: list[Tensor] = []
    score = slope = kept = None
    try:
        if score_mod is not None:
            score, slope = _traced(score_mod, "float", captured, device)
        if mask_mod is not None:
            kept, _ = _traced(mask_mod, "bool", captured, device)
    except Exception:  # whatever it is, the function itself raises it again
        return None
    return Functions(score, slope, kept, tuple(captured))
