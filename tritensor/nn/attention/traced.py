"""Functions of scores and indices as device functions: they run once on symbols, which write down what is computed.

A symbol stands for a number of each score. Elementwise operators of symbols become text, indices by symbols into
tensors become loads, and beside each value its slope by the score is written down. What a function does beyond that
(reads elements, branches, reduces) has no text and raises `Untraceable`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from ...autograd.mode import recording
from ...ground.overriding import install
from ...kernels.elementwise.kernel import body_function
from ...kernels.fused.family import written
from ...memory.array import DeviceArray
from ...operators import registry
from ...runtime.launch import DeviceFunction, device_function
from ...tensors import Tensor
from ...types.dtypes import bool_, float32

_TEXT = {name: f"{name}(x)" for name in ("floor", "ceil", "trunc", "sign", "erf", "sin", "cos", "tanh", "exp")}
_TEXT |= {name: f"{name}(x)" for name in ("exp2", "expm1", "log", "log1p", "log2", "sqrt", "rsqrt", "sigmoid", "relu")}
_BODIES = tuple(_TEXT)
_LARGER, _SMALLER = "((x >= y) | (x != x))", "((x <= y) | (x != x))"
_BY_ZERO = "((x % y != 0) & ((x % y < 0) != (y < 0)))"  # Python's integers are divided to below, Triton's to zero
# By an operator's name, what it is of x, y and z; its dtype follows those of its operands.
_TEXT |= {
    "add": "x + y",
    "sub": "x - y",
    "mul": "x * y",
    "neg": "-x",
    "square": "x * x",
    "abs": "tl.where(x < 0, -x, x)",
}
_TEXT |= {"maximum": f"tl.where({_LARGER}, x, y)", "minimum": f"tl.where({_SMALLER}, x, y)", "div": "x / y"}
_TEXT |= {"where": "tl.where(z, x, y)", "remainder": f"x % y + tl.where({_BY_ZERO}, y, 0)"}
_TEXT |= {"floordiv": f"x // y - {_BY_ZERO}.to(tl.int32)"}
_INTEGERS, _FLOATS = ("floordiv", "remainder"), (*_BODIES, "div")
_COMPARED = {"lt": "x < y", "le": "x <= y", "gt": "x > y", "ge": "x >= y", "eq": "x == y", "ne": "x != y"}
_LOGICAL = {"bitwise_and": "x & y", "bitwise_or": "x | y", "bitwise_xor": "x ^ y", "bitwise_not": "x == 0"}
# By the same names the slopes by x and by y, times that of each, which is u, where the value is v; others have none.
_SLOPES: dict[str, tuple[str, ...]] = {"add": ("u", "u"), "sub": ("u", "-u"), "mul": ("u * y", "u * x")}
_SLOPES |= {"div": ("u / y", "-v / y * u"), "neg": ("-u",), "square": ("2 * x * u",), "exp": ("v * u",)}
_SLOPES |= {"exp2": ("v * 0.6931471805599453 * u",), "expm1": ("(v + 1) * u",), "log": ("u / x",)}
_SLOPES |= {"log2": ("1.4426950408889634 / x * u",), "log1p": ("u / (1 + x)",), "rsqrt": ("-0.5 * v * v * v * u",)}
_SLOPES |= {"tanh": ("(1 - v * v) * u",), "sigmoid": ("v * (1 - v) * u",), "relu": ("tl.where(x > 0, u, 0.0)",)}
_SLOPES |= {"sin": ("tl.cos(x) * u",), "cos": ("-tl.sin(x) * u",), "erf": ("1.1283791670955126 * tl.exp(-x * x) * u",)}
_SLOPES |= {"sqrt": ("0.5 / v * u",), "abs": ("tl.where(x < 0, -u, u)",)}
for _name, _test in (("maximum", _LARGER), ("minimum", _SMALLER), ("where", "z")):
    _SLOPES[_name] = f"tl.where({_test}, u, 0.0)", f"tl.where({_test}, 0.0, u)"
_FLAT = ("floor", "ceil", "trunc", "sign")  # of which the slope is zero
_OTHER = {
    "true_divide": "div",
    "truediv": "div",
    "mod": "remainder",
    "floor_divide": "floordiv",
    "invert": "bitwise_not",
}
_OTHER |= {
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "clamp_min": "maximum",
    "clamp_max": "minimum",
}
_OTHER |= {name: name.replace("logical", "bitwise") for name in ("logical_and", "logical_or", "logical_not")}
_SYNTAX = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")
_REACH = 1 << 31


class Untraceable(Exception):
    """A function does what symbols have no text for."""


class _Text:
    """The lines that are written, and the tensors that they read."""

    def __init__(self, captured: list[Tensor], device: object) -> None:
        self.captured, self.device = captured, device
        self.names: dict[str, str] = {}

    def name(self, text: str) -> str:
        """The variable with the value of an expression."""
        return self.names.setdefault(text, f"t{len(self.names)}")

    def element(self, x: Tensor, indices: Sequence[Any] = ()) -> Symbol:
        """An element of a tensor; zero beyond its ends, where there are no scores."""
        wrong = x.device != self.device or not isinstance(x._data, DeviceArray) or (recording.enabled and x._needs)
        if wrong or x.is_complex() or (x.is_floating_point() and x._data.itemsize > 4):
            raise Untraceable("a tensor of another device or dtype, or one that needs a gradient")
        if sum(abs(step) * size for step, size in zip(x._data.strides, x.shape)) >= _REACH:
            raise Untraceable("a tensor that 32 bits do not reach")
        at = next((at for at, known in enumerate(self.captured) if known is x), len(self.captured))
        if at == len(self.captured):
            self.captured.append(x)
        address, inside = f"given[{at}][0]", []
        for dim, index in enumerate(self.symbol(each) for each in indices):
            if index.kind != "int":
                raise Untraceable("a mask as an index")
            size = f"given[{at}][1][{dim}]"
            place = self.name(f"({index.name} + tl.where({index.name} < 0, {size}, 0)).to(tl.int32)")
            inside.append(f"({place} >= 0) & ({place} < {size})")
            address += f" + {place} * given[{at}][2][{dim}]"
        load = f"tl.load({address}{', mask=' if inside else ''}{' & '.join(inside)}{', other=0' if inside else ''})"
        if x.dtype is bool_:
            return Symbol(self, self.name(f"{load} != 0"), "bool")
        whole = not x.is_floating_point()
        return Symbol(self, self.name(load if whole else f"{load}.to(tl.float32)"), "int" if whole else "float")

    def symbol(self, x: Any) -> Symbol:
        """Anything that a function takes beside symbols, as one."""
        if isinstance(x, Symbol):
            return x
        if isinstance(x, Tensor) and x.ndim == 0:
            return self.element(x)
        if x.__class__ in (bool, float) or (x.__class__ is int and abs(x) < _REACH):
            text = repr(x) if x - x == 0 else f'float("{x!r}")'
            return Symbol(self, f"tl.full((), {text}, tl.{_TYPES[x.__class__.__name__]})", x.__class__.__name__)
        raise Untraceable(f"an argument {x!r:.40}")

    def call(self, name: str, args: Sequence[Any], named: dict[str, Any]) -> Any:
        """What a function or a method makes of symbols."""
        name = _OTHER.get(name.strip("_"), name.strip("_"))
        if name in ("new_ones", "new_zeros", "new_full"):
            value = args[2] if name == "new_full" else name == "new_ones"
            if tuple(args[1]) or named.get("dtype") is not bool_:
                raise Untraceable("a new tensor")
            return self.symbol(bool(value))
        if name in ("to", "float", "int", "long", "bool") and not named:
            kind = name if name != "to" else {float32: "float", bool_: "bool"}.get(args[1])
            return self.cast(args[0], "int" if kind == "long" else kind)
        if name == "clamp":
            low, high = ({"min": None, "max": None} | named | dict(zip(("min", "max"), args[1:]))).values()
            low = args[0] if low is None else self.call("maximum", (args[0], low), {})
            return low if high is None else self.call("minimum", (low, high), {})
        if named:
            raise Untraceable(f"{name} with {', '.join(named)}")
        return self.operator(name, args)

    def operator(self, name: str, args: Sequence[Any]) -> Symbol:
        """What an elementwise operator makes of symbols."""
        if name == "pow" and args[1].__class__ in (int, float) and args[1] == 2:
            name, args = "square", args[:1]
        text = {**_TEXT, **_COMPARED, **_LOGICAL}.get(name)
        if text is None or len(args) != len({*re.findall(r"\b[xyz]\b", text)}):
            raise Untraceable(name)
        z, *operands = (self.symbol(x) for x in (args if name == "where" else (0, *args)))
        kinds = [x.kind for x in operands]
        kind = next(each for each in ("float", "int", "bool") if each in kinds)
        kind = "float" if name in _FLOATS else kind
        if (
            (kind != "int" and name in _INTEGERS)
            or (kind == "float" and name in _LOGICAL)
            or (kind == "bool" and name in _TEXT and name != "where")
            or (kind == "int" and name == "bitwise_not")
        ):
            raise Untraceable(f"{name} of {kind}")
        x, y = ([self.cast(x, kind) for x in operands] * 2)[:2]
        known = {"x": x.name, "y": y.name, "z": z.name}
        value = self.name(_filled("x.to(tl.int64) * y" if (name, kind) == ("mul", "int") else text, known))
        slopes = []
        for operand, slope in zip((x, y), _SLOPES.get(name, ())):
            if operand.slope:
                slopes.append(_filled(slope, {**known, "u": operand.slope, "v": value}))
        if not slopes and name not in (*_FLAT, *_COMPARED) and (x.slope or y.slope):
            raise Untraceable(f"the slope of {name}")
        kind = "bool" if name in _COMPARED else kind
        return Symbol(self, value, kind, self.name(" + ".join(f"({each})" for each in slopes)) if slopes else "")

    def cast(self, x: Symbol, kind: Any) -> Symbol:
        """A symbol as one of another kind."""
        if kind == x.kind:
            return x
        if kind == "bool":
            return Symbol(self, self.name(f"{x.name} != 0"), kind)
        if kind not in _TYPES or x.kind == "float":
            raise Untraceable("a dtype")
        return Symbol(self, self.name(f"{x.name}.to(tl.{_TYPES[kind]})"), kind)


_TYPES = {"float": "float32", "int": "int32", "bool": "int1"}


def _filled(text: str, names: dict[str, str]) -> str:
    return re.sub(r"\b[xyzuv]\b", lambda found: names[found[0]], text)


class Symbol:
    """A number of each score: a variable, whether it is "float", "int" or "bool", and its slope, empty for zero."""

    def __init__(self, text: _Text, name: str, kind: str, slope: str = "") -> None:
        self.text, self.name, self.kind, self.slope = text, name, kind, slope

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        """What a public function of tensors makes of symbols."""
        if func.__name__ in ("__getitem__", "getitem"):
            return _Indexed(args[0], ())[args[1]]
        return next(x.text for x in args if isinstance(x, Symbol)).call(func.__name__, args, kwargs or {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **named: self.text.call(name, (self, *args), named)

    def __bool__(self) -> bool:
        raise Untraceable("a branch, or a number of Python's")

    __iter__ = __len__ = __float__ = __int__ = __index__ = __bool__
    __hash__ = None  # type: ignore[assignment]


def _operator(name: str, turned: bool = False) -> Callable[..., Any]:
    return lambda self, *others: self.text.call(name, (*others, self) if turned else (self, *others), {})


for _name in (*_SYNTAX, *_COMPARED, "invert", "neg", "abs"):
    setattr(Symbol, f"__{_name}__", _operator(_name))
for _name in _SYNTAX:
    setattr(Symbol, f"__r{_name}__", _operator(_name, True))


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
        return next(x.text for x in indices if isinstance(x, Symbol)).element(self.tensor, indices)


@lru_cache(1024)
def _function(name: str, parameters: str, lines: tuple[str, ...], result: str) -> DeviceFunction:
    """The device function of a text; the same one for the same text, so that it is compiled once."""
    used = {each for line in lines for each in re.findall(r"\w+", line)}.intersection(_BODIES)
    scope: dict[str, Any] = {"__name__": __name__, **{each: body_function(registry[each]) for each in used}}
    text = "\n    ".join([f"def {name}({parameters}):", *lines, f"return {result}"])
    return device_function(written(text + "\n", name, scope), name=name)


def traced(
    score_mod: Callable[..., Any] | None, mask_mod: Callable[..., Any] | None, device: object
) -> tuple[DeviceFunction | None, DeviceFunction | None, DeviceFunction | None, tuple[Tensor, ...]] | None:
    """The device functions of a function of scores, of its slope and of a mask, each None if there is none, and the
    tensors that they read; None if a function cannot be traced."""
    install()  # so that functions of tensors ask symbols
    captured: list[Tensor] = []
    made: list[DeviceFunction | None] = []
    for function, name, kind in ((score_mod, "score_mod", "float"), (mask_mod, "mask_mod", "bool")):
        if function is None:
            made += [None] * (2 if kind == "float" else 1)
            continue
        text, first = _Text(captured, device), ("score",) * (kind == "float")
        symbols = [Symbol(text, each, "float", "1.0") for each in first]
        symbols += [Symbol(text, each, "int") for each in ("b", "h", "row", "col")]
        try:
            found = text.cast(text.symbol(function(*symbols)), kind)
        except Exception:  # whatever it is, the function itself raises it again
            return None
        parameters, lines = ", ".join([*first, "given, b, h, row, col"]), [f"{y} = {x}" for x, y in text.names.items()]
        results = (found.name, found.slope or "0.0") if kind == "float" else (found.name,)
        made += [_function(name, parameters, tuple(lines), result) for result in results]
    score, slope, kept = made
    return score, slope, kept, tuple(captured)
