"""Calls of public functions and methods, drawn from their signatures: a new operator joins by its declaration alone.

What an argument may be is known by its parameter's name, which is PyTorch's. `UNCALLED` has the names that are not
called from here, with the reason.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import torch as reference

import tritensor
from tritensor import nn
from tritensor.public import PACKAGE

from .drawing import Draw

MADE = "made by the family of creation"
RANDOM = "its elements are not those of PyTorch's generator"
STATE = "a setting of the process"
ELSEWHERE = "has its own way of drawing arguments"
UNCALLED: dict[str, str] = {
    **dict.fromkeys(
        ("bernoulli", "dropout", "multinomial", "normal", "rand", "rand_like", "randint", "randint_like", "randn",
         "randn_like", "randperm", "bernoulli_", "exponential_", "normal_", "random_", "uniform_"), RANDOM),
    **dict.fromkeys(
        ("empty", "empty_like", "new_empty", "arange", "as_tensor", "asarray", "eye", "full", "full_like", "linspace",
         "logspace", "ones", "ones_like", "scalar_tensor", "tensor", "zeros", "zeros_like", "new_full", "new_ones",
         "new_tensor", "new_zeros", "from_numpy", "from_dlpack"), MADE),
    **dict.fromkeys(
        ("fork_rng", "get_default_device", "get_default_dtype", "get_float32_matmul_precision", "get_num_threads",
         "get_rng_state", "initial_seed", "is_grad_enabled", "is_inference_mode_enabled", "manual_seed", "seed",
         "set_default_device", "set_default_dtype", "set_float32_matmul_precision", "set_num_threads",
         "set_printoptions", "set_rng_state"), STATE),
    **dict.fromkeys(
        ("backward", "requires_grad_", "retain_grad", "register_hook", "register_post_accumulate_grad_hook",
         "detach_", "to", "type", "view", "expand", "size", "stride", "einsum", "index_put", "index_put_",
         "scaled_dot_product_attention", "binary_cross_entropy_with_logits"), ELSEWHERE),
    **dict.fromkeys(
        ("cuda", "cpu", "pin_memory", "record_stream", "data_ptr", "get_device", "is_pinned", "numpy"),
        "tells of a device or of memory"),
}  # fmt: skip

# Operators that compute the same bits in both libraries: what they make may be compared, rounded or printed.
INEXACT = frozenset(
    """exp exp2 expm1 log log2 log10 log1p logaddexp sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh
    arcsin arccos arctan arctan2 arcsinh arccosh arctanh erf erfc sigmoid rsqrt pow hypot lerp addcmul addcdiv sum mean
    prod var std var_mean std_mean norm logsumexp nansum cumsum softmax log_softmax matmul mm bmm mv dot inner outer
    addmm linear layer_norm rms_norm gelu silu mish elu softplus tanhshrink logsigmoid cosine_similarity normalize
    cross_entropy nll_loss mse_loss l1_loss sgn reciprocal sqrt div abs square index_add scatter_add
    binary_cross_entropy_with_logits scaled_dot_product_attention einsum** @""".replace("**", " **").split()
)
# Operators that jump: their operands have to be exact.
JUMPS = frozenset(
    [
        "floor",
        "ceil",
        "round",
        "trunc",
        "fix",
        "frac",
        "sign",
        "sgn",
        "remainder",
        "fmod",
        "floor_divide",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "not_equal",
        "less",
        "greater",
        "less_equal",
        "greater_equal",
        "argmax",
        "argmin",
        "sort",
        "argsort",
        "topk",
        "max",
        "min",
        "aminmax",
        "equal",
        "allclose",
        "isclose",
        "isfinite",
        "isinf",
        "isnan",
        "nonzero",
        "argwhere",
        "count_nonzero",
        "logical_and",
        "logical_or",
        "logical_xor",
        "logical_not",
        "any",
        "all",
        "bool",
        "int",
        "long",
        "short",
        "char",
        "byte",
        "bitwise_and",
        "bitwise_or",
        "bitwise_not",
        "bitwise_xor",
        "where",
        "div",
        "sum_to_size",
    ]
)


@cache
def parameters(name: str, owner: str) -> tuple[inspect.Parameter, ...]:
    """The parameters of our function (`owner` torch or nn.functional) or method (Tensor), the tensor itself included."""
    places = {"torch": tritensor, "torch.nn.functional": nn.functional, "Tensor": tritensor.Tensor}
    return tuple(inspect.signature(getattr(places[owner], name)).parameters.values())


def _has(owner: str, name: str) -> bool:
    places = {"torch": reference, "torch.nn.functional": reference.nn.functional, "Tensor": reference.Tensor}
    return hasattr(places[owner], name)


@cache
def callables() -> dict[str, tuple[tuple[str, str], ...]]:
    """Every public function and method that both libraries have, with what it is called through: (owner, name)s.

    The in-place methods stand under their own names.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for name, value in PACKAGE.items():
        if callable(value) and not inspect.isclass(value) and _has("torch", name):
            found.setdefault(name, []).append(("torch", name))
    for name in dir(nn.functional):
        value = getattr(nn.functional, name)
        if (
            not name.startswith("_")
            and callable(value)
            and not inspect.isclass(value)
            and _has("torch.nn.functional", name)
        ):
            found.setdefault(name, []).append(("torch.nn.functional", name))
    for name in dir(tritensor.Tensor):
        value = inspect.getattr_static(tritensor.Tensor, name)
        if not name.startswith("_") and callable(value) and _has("Tensor", name):
            found.setdefault(name, []).append(("Tensor", name))
    return {name: tuple(ways) for name, ways in found.items() if name not in UNCALLED and _known(ways)}


def _known(ways: list[tuple[str, str]]) -> bool:
    return all(
        parameter.name in ARGUMENTS or parameter.kind is parameter.VAR_KEYWORD
        for owner, name in ways[:1]
        for parameter in parameters(name, owner)[1:]
    )


@cache
def uncallable() -> tuple[str, ...]:
    """Names that nothing here knows how to call, and that `UNCALLED` does not name either."""
    wanted = {name for name, value in PACKAGE.items() if callable(value) and not inspect.isclass(value)}
    wanted |= {name for name in dir(tritensor.Tensor) if not name.startswith("_")
               and callable(inspect.getattr_static(tritensor.Tensor, name))}  # fmt: skip
    here = {name for name in wanted if hasattr(reference, name) or hasattr(reference.Tensor, name)}
    return tuple(sorted(name for name in here if name not in UNCALLED and name not in callables() and name.islower()
                        and not isinstance(getattr(tritensor, name, None), (tritensor.dtype, tritensor.Generator))))  # fmt: skip


@cache
def named(test: Callable[[set[str]], bool], in_place: bool) -> tuple[str, ...]:
    """The names of which the parameters after the first satisfy a test."""
    chosen = []
    for name, ways in callables().items():
        owner, called = ways[0]
        names = {p.name for p in parameters(called, owner)[1:] if p.kind is not p.VAR_KEYWORD}
        if name.endswith("_") == in_place and test(names):
            chosen.append(name)
    return tuple(sorted(chosen))


ELEMENTWISE = {"other", "alpha", "value", "min", "max", "tensor1", "tensor2", "end", "weight", "rounding_mode", "decimals",
               "nan", "posinf", "neginf", "rtol", "atol", "equal_nan", "negative_slope", "beta", "threshold", "approximate",
               "min_val", "max_val", "inplace", "mask", "condition"}  # fmt: skip


def is_elementwise(names: set[str]) -> bool:
    """Whether a function with these parameters works on each element."""
    return names <= ELEMENTWISE


def is_of_shapes(names: set[str]) -> bool:
    """Whether a function with these parameters reduces, rearranges or joins."""
    return not is_elementwise(names)


# -- the arguments, by the name of the parameter; each gets the draw, the tensor, and the function's name --


# Operators whose second operand PyTorch wants as a tensor.
TENSORS_ONLY = frozenset(
    [
        "type_as",
        "view_as",
        "expand_as",
        "reshape_as",
        "equal",
        "allclose",
        "isclose",
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "logical_and",
        "logical_or",
        "logical_xor",
        "hypot",
        "logaddexp",
        "atan2",
        "arctan2",
        "addcmul",
        "addcdiv",
        "copy_",
        "broadcast_tensors",
        "hstack",
        "vstack",
        "dstack",
        "column_stack",
        "masked_select",
        "matmul",
        "inner",
    ]
)


def operand(draw: Draw, x: Any, name: str) -> str:
    """A number, a tensor of the program, or a new one that fits."""
    kind = draw.weighted(number=30, here=25, new=40, odd=2)
    tensors_only = base(name) in TENSORS_ONLY
    if kind == "number" and not (tensors_only and draw.chance(0.95)):
        return draw.number()
    if kind == "odd" and not (tensors_only and draw.chance(0.8)):
        return draw.one(("None", "'a'", "[1]", "(1, 2)", "torch.float32", "torch.tensor(3)", "torch.tensor(2.5)"))
    fitting = draw.names(lambda t: _broadcasts(t.shape, x.shape), exact=base(name) in JUMPS)
    if kind == "here" and fitting:
        return draw.one(fitting)
    dtype = str(x.dtype).rpartition(".")[2] if draw.chance(0.4) else draw.dtype()
    return draw.tensor(draw.fitting(x.shape), dtype)


def _broadcasts(one: Any, other: Any) -> bool:
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(one), reversed(other), strict=False))


def _bound(draw: Draw, x: Any, name: str) -> str | None:
    if draw.chance(0.15):
        return "None"
    return operand(draw, x, name) if draw.chance(0.15) else draw.number()


def _index(draw: Draw, x: Any, name: str) -> str:
    """Places in a tensor: a shape that suits the function, mostly within range."""
    size = max(min(x.shape, default=1), 1)
    wrong = draw.chance(0.05)
    if base(name) in ("gather", "scatter", "scatter_add", "take_along_dim"):
        shape: tuple[int, ...] = tuple(draw.integer(1, max(n, 1)) if n else 0 for n in x.shape)
    elif base(name) in ("take",):
        shape, size = draw.shape(3), max(x.numel(), 1)
    elif base(name) in ("select",):
        return str(draw.integer(-size, size - 1) if draw.chance(0.9) else size + draw.integer(0, 3))
    elif base(name) in ("index_copy", "index_add"):
        shape = (draw.integer(1, 3),)
    else:
        shape = draw.shape(3, 0 if draw.chance(0.08) else 1)
    if 0 in shape:
        return f"torch.zeros({shape!r}, dtype=torch.int64)"
    low, high = (-size - 1, size + 1) if wrong else (-size if draw.chance(0.1) else 0, size - 1)

    def nested(sizes: tuple[int, ...]) -> str:
        if not sizes:
            return str(draw.integer(low, high))
        return f"[{', '.join(nested(sizes[1:]) for _ in range(sizes[0]))}]"

    dtype = ", dtype=torch.int32" if draw.chance(0.08) else ""
    return f"torch.tensor({nested(shape)}{dtype})"


def _source(draw: Draw, x: Any, name: str) -> str:
    dtype = str(x.dtype).rpartition(".")[2] if draw.chance(0.9) else draw.dtype()
    if draw.chance(0.5):
        return draw.tensor(tuple(x.shape), dtype)
    return draw.tensor(tuple(draw.integer(1, 3) for _ in x.shape), dtype)


def _tensors(draw: Draw, x: Any, name: str) -> str:
    like = draw.names(lambda t: t.dim() == x.dim())
    chosen = [draw.one(like) for _ in range(draw.integer(1, 3))] if like and draw.chance(0.6) else []
    while len(chosen) < 2:
        dtype = str(x.dtype).rpartition(".")[2] if draw.chance(0.6) else draw.dtype()
        chosen.append(draw.tensor(tuple(x.shape), dtype))
    return f"[{', '.join(chosen)}]" if draw.chance(0.7) else f"({', '.join(chosen)})"


def _matrix(draw: Draw, x: Any, name: str) -> str:
    """The second operand of a product."""
    inner = x.shape[-1] if x.dim() else 2
    dtype = str(x.dtype).rpartition(".")[2] if draw.chance(0.92) else draw.dtype()
    called = base(name)
    if called in ("dot", "mv", "ger", "outer"):
        return draw.tensor((inner if draw.chance(0.95) else inner + 1,), dtype)
    batch = tuple(x.shape[:-2]) if x.dim() > 2 else ()
    shape = (*batch, inner, draw.integer(1, 4))
    if called in ("linear", "inner"):
        shape = (draw.integer(1, 4), inner)
    if called == "matmul" and draw.chance(0.3):
        shape = (inner,)
    return draw.tensor(shape if draw.chance(0.96) else draw.shape(), dtype)


def _size(draw: Draw, x: Any, name: str) -> str:
    """Sizes that suit the function."""
    called, sizes = base(name), list(x.shape)
    if called in ("reshape", "view"):
        sizes = draw.factors(x.numel())
        if draw.chance(0.3):
            sizes[draw.integer(0, len(sizes) - 1)] = -1
    elif called in ("repeat", "tile"):
        sizes = [draw.integer(0 if draw.chance(0.1) else 1, 2) for _ in sizes]
        if draw.chance(0.3):
            sizes = [2, *sizes]
        elif sizes and draw.chance(0.1):
            sizes = sizes[1:]
    elif called in ("permute",):
        sizes = list(range(len(sizes)))
        draw.rng.shuffle(sizes)
        if sizes and draw.chance(0.3):
            sizes[0] -= len(sizes)
    elif called in ("flip",):
        return draw.several(x.dim())
    elif called == "sum_to_size":
        sizes = [1 if draw.chance(0.4) else size for size in sizes]
        if draw.chance(0.3):
            sizes = sizes[1:]
    else:  # expand, broadcast_to
        sizes = [draw.integer(1, 3) if size == 1 else -1 if draw.chance(0.2) else size for size in sizes]
        if draw.chance(0.3):
            sizes = [draw.integer(1, 2), *sizes]
    if draw.chance(0.04):
        sizes = [*sizes, draw.integer(-2, 3)]
    inner = ", ".join(map(str, sizes))
    if draw.chance(0.5) and called not in ("broadcast_to",) and sizes:
        return f"*{inner}"  # taken apart by `call`
    return f"[{inner}]" if draw.chance(0.3) else f"({inner}{',' if len(sizes) == 1 else ''})"


def _dims(draw: Draw, x: Any, name: str) -> str:
    """A dim, several, or None, as a reduction takes them."""
    kind = draw.weighted(one=62, several=28, none=10)
    return {"one": draw.dim(x.dim()), "several": draw.several(x.dim()), "none": "None"}[kind]


def _sections(draw: Draw, x: Any, name: str) -> str:
    size = draw.integer(1, 3) if draw.chance(0.95) else draw.integer(-1, 0)
    if draw.chance(0.6) or not x.dim():
        return str(size)
    first = draw.integer(0, x.shape[0])
    return f"[{first}, {x.shape[0] - first}]"


def _of_odd(*usual: str) -> Callable[[Draw, Any, str], str]:
    return lambda draw, x, name: draw.one(usual)


def _dim(draw: Draw, x: Any, name: str) -> str:
    called = base(name)
    if called in ("unsqueeze", "stack"):
        return draw.dim(x.dim() + 1)
    if called in REDUCTIONS_OF_SEVERAL:
        return _dims(draw, x, name)
    return draw.dim(x.dim())


REDUCTIONS_OF_SEVERAL = frozenset(
    [
        "sum",
        "mean",
        "any",
        "all",
        "amax",
        "amin",
        "logsumexp",
        "norm",
        "nansum",
        "count_nonzero",
        "var",
        "std",
        "var_mean",
        "std_mean",
        "squeeze",
    ]
)


def _normalized_shape(draw: Draw, x: Any, name: str) -> str:
    count = draw.integer(1, x.dim()) if x.dim() else 0
    sizes = ", ".join(str(size) for size in x.shape[x.dim() - count :])
    return f"[{sizes}]"


ARGUMENTS: dict[str, Callable[[Draw, Any, str], str | None]] = {
    **dict.fromkeys(("other", "tensor1", "tensor2", "end", "src", "input"), operand),
    "src": lambda draw, x, name: operand(draw, x, name) if base(name) == "copy_" else _source(draw, x, name),
    **dict.fromkeys(("min", "max"), _bound),
    "weight": lambda draw, x, name: operand(draw, x, name) if base(name) == "lerp" else _matrix(draw, x, name),
    **dict.fromkeys(("alpha", "beta", "value"), lambda draw, x, name: draw.number()),
    "rounding_mode": _of_odd("'floor'", "'trunc'", "None", "'floor'", "'trunc'", "'ceil'"),
    "decimals": _of_odd("0", "1", "2", "-1"),
    **dict.fromkeys(("nan", "posinf", "neginf"), lambda draw, x, name: draw.number()),
    **dict.fromkeys(("rtol", "atol"), _of_odd("0.0", "1e-5", "0.5", "-1.0", "0")),
    **dict.fromkeys(
        ("equal_nan", "keepdim", "descending", "stable", "largest", "sorted", "accumulate", "unbiased", "as_tuple",
         "inplace"), _of_odd("True", "False", "True", "False", "True", "False", "True", "False", "1", "None")),
    "negative_slope": _of_odd("0.1", "0.0", "-0.5", "2"),
    "threshold": _of_odd("20.0", "1.0", "0"),
    "approximate": _of_odd("'none'", "'tanh'", "'tanh'", "'sigmoid'"),
    **dict.fromkeys(("min_val", "max_val"), _of_odd("-1.0", "1.0", "0.0", "2")),
    "mask": lambda draw, x, name: draw.tensor(draw.fitting(x.shape), "bool" if draw.chance(0.95) else draw.dtype(), layout=False),
    "condition": lambda draw, x, name: draw.tensor(draw.fitting(x.shape), "bool", layout=False),
    "dim": _dim,
    **dict.fromkeys(("dim0", "dim1", "start_dim", "end_dim"), lambda draw, x, name: draw.dim(x.dim())),
    **dict.fromkeys(("source", "destination"), lambda draw, x, name: _source(draw, x, name) if name.startswith("index") else draw.dim(x.dim())),
    "dims": lambda draw, x, name: draw.dim(x.dim()) if base(name) == "roll" and draw.chance(0.6) else draw.several(x.dim()) if base(name) == "roll" else _size(draw, x, name),
    "shifts": lambda draw, x, name: str(draw.integer(-5, 5)),
    **dict.fromkeys(("shape", "size", "sizes", "repeats"), lambda draw, x, name: str(draw.integer(0, 3)) if base(name) == "repeat_interleave" else _size(draw, x, name)),
    "dtype": lambda draw, x, name: f"torch.{draw.dtype()}",
    **dict.fromkeys(("index", "indices"), _index),
    "tensors": _tensors,
    **dict.fromkeys(("vec2", "tensor", "vec", "mat1", "mat2"), _matrix),
    "correction": _of_odd("0", "1", "2", "0.5", "None"),
    "diagonal": _of_odd("0", "1", "-1", "2", "-3", "10"),
    "k": lambda draw, x, name: str(draw.integer(0, max(x.shape[-1] if x.dim() else 1, 1) + draw.chance(0.1))),
    "chunks": lambda draw, x, name: str(draw.integer(1, 4) if draw.chance(0.95) else 0),
    "split_size_or_sections": _sections,
    "start": lambda draw, x, name: str(draw.integer(-2, 2)),
    "length": lambda draw, x, name: str(draw.integer(0, 2)),
    "p": _of_odd("2", "1", "0", "inf", "-inf", "3", "0.5", "'fro'", "2.0", "None"),
    "eps": _of_odd("1e-5", "1e-8", "0.1", "0.0"),
    "normalized_shape": _normalized_shape,
    "num_classes": lambda draw, x, name: str(draw.integer(-1, 12)),
    "bias": lambda draw, x, name: None,
    "target": _source,
    "reduction": _of_odd("'mean'", "'sum'", "'none'", "'mean'", "'sum'", "'none'", "'max'"),
    "label_smoothing": _of_odd("0.0", "0.1"),
    **dict.fromkeys(("size_average", "reduce", "ignore_index", "activation", "_stacklevel", "output_size", "generator",
                     "non_blocking", "pos_weight", "copy"), lambda draw, x, name: None),
    "x2": _source,
    "pad": lambda draw, x, name: str([draw.integer(-1, 2) for _ in range(2 * draw.integer(0, max(x.dim(), 1)))]),
    "mode": _of_odd("'constant'"),
    "indexing": _of_odd("'ij'", "'xy'"),
    "fill_value": lambda draw, x, name: draw.number(),
    "values": lambda draw, x, name: draw.number(),
}  # fmt: skip


# How often an optional argument is passed, where that is not usual: without one there is no such call.
SHARES = {
    ("scatter", "value"): 0.02, ("scatter", "src"): 1.0, ("repeat_interleave", "repeats"): 0.97, ("repeat_interleave", "dim"): 0.7,
    ("topk", "sorted"): 0.0, ("sort", "stable"): 0.1, ("argsort", "stable"): 0.1, ("mse_loss", "weight"): 0.1,
    ("max", "other"): 0.03, ("min", "other"): 0.03, ("l1_loss", "weight"): 0.1,
}  # fmt: skip


def base(name: str) -> str:
    """The operator's name of an in-place method."""
    return name[:-1] if name.endswith("_") and name not in ("copy_", "fill_", "zero_") else name


def call(draw: Draw, name: str, x: str) -> str:
    """The text of a call of `name` on the tensor `x`."""
    if name == "where":
        return where(draw, x)
    if base(name) in ("index_add", "index_copy"):
        return at_places(draw, name, x)
    if name == "topk" and len(set(draw.value(x).flatten().tolist())) < draw.value(x).numel():
        name = "sort"  # which of equal elements topk finds is nobody's promise
    owner, called = draw.one(callables()[name])
    value = draw.value(x)
    every = [p for p in parameters(called, owner) if p.kind is not p.VAR_KEYWORD]
    first, rest = every[0], every[1:]
    positional, keyword, skipped = [], [], False
    if first.name == "tensors":
        head = _tensors(draw, value, name)
        if first.kind is first.VAR_POSITIONAL:
            head = head[1:-1] if draw.chance(0.7) else head
        positional.append(head)
    elif owner != "Tensor":
        positional.append(x)
    for parameter in rest:
        optional = parameter.default is not parameter.empty
        wanted = SHARES.get((base(name), parameter.name), 0.85 if parameter.name in ("dim", "min", "dims") else 0.3)
        text = None if optional and not draw.chance(wanted) else ARGUMENTS[parameter.name](draw, value, name)
        if text is None:
            skipped = True
            continue
        if text.startswith("*"):
            text = text[1:] if parameter.kind is parameter.VAR_POSITIONAL and not skipped else f"({text[1:]},)"
        by_name = parameter.kind is parameter.KEYWORD_ONLY or skipped or (optional and draw.chance(0.25))
        if by_name and parameter.kind is not parameter.VAR_POSITIONAL:
            keyword.append(f"{parameter.name}={text}")
            skipped = True
        else:
            positional.append(text)
    head = f"{x}.{called}" if owner == "Tensor" else f"{owner}.{called}"
    return f"{head}({', '.join([*positional, *keyword])})"


def where(draw: Draw, x: str) -> str:
    """The text of a call of `where`, of which the condition comes first."""
    value = draw.value(x)
    condition = draw.tensor(draw.fitting(value.shape), "bool")
    other = operand(draw, value, "where")
    return draw.one((f"torch.where({condition}, {x}, {other})", f"{x}.where({condition}, {other})",
                     f"torch.where({condition}, {other}, {x})", f"torch.where({x})", f"torch.where({condition})"))  # fmt: skip


def at_places(draw: Draw, name: str, x: str) -> str:
    """The text of a call of `index_add` or `index_copy`, of which the index and the source fit together."""
    value = draw.value(x)
    dim = int(draw.dim(value.dim(), 0.03))
    index = _index(draw, value, name)
    shape = list(value.shape)
    if -len(shape) <= dim < len(shape) and draw.chance(0.95):
        shape[dim] = index.count(",") + 1 - index.count("dtype") if "zeros" not in index else 0
    dtype = str(value.dtype).rpartition(".")[2] if draw.chance(0.95) else draw.dtype()
    alpha = f", alpha={draw.number()}" if base(name) == "index_add" and draw.chance(0.3) else ""
    way = f"torch.{name}({x}, " if not name.endswith("_") and draw.chance(0.5) else f"{x}.{name}("
    return f"{way}{dim}, {index}, {draw.tensor(shape, dtype)}{alpha})"
