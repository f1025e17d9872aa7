"""The arguments of calls, known by the names of their parameters, which are PyTorch's.

Each entry of `ARGUMENTS` gets the draw, the tensor that is called on, and the function's name, and returns an argument
as text; None leaves the argument out, and `*` before several means that they may be passed one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .drawing import Draw, words

Argument = Callable[[Draw, Any, str], str | None]

# Operators whose bits may differ between the libraries: what they make is not rounded, compared or printed.
INEXACT = frozenset(
    words("""
    exp exp2 expm1 log log2 log10 log1p logaddexp sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh
    arcsin arccos arctan arctan2 arcsinh arccosh arctanh erf erfc sigmoid rsqrt pow ** hypot lerp addcmul addcdiv sum
    mean prod var std var_mean std_mean norm logsumexp nansum cumsum softmax log_softmax matmul @ mm bmm mv dot inner
    outer addmm linear layer_norm rms_norm gelu silu mish elu softplus tanhshrink logsigmoid cosine_similarity normalize
    cross_entropy nll_loss mse_loss l1_loss sgn index_add scatter_add softsign
    logaddexp2 xlogy sinc logit deg2rad rad2deg angle dist vdot ger kron cross trace ldexp
    lgamma digamma erfinv i0 igamma igammac mvlgamma polygamma
    celu selu glu hardsigmoid hardswish softmin pairwise_distance pdist
    """)
)
# Operators that jump: their operands have to be exact.
JUMPS = frozenset(
    words("""
    floor ceil round trunc fix frac sign sgn remainder fmod floor_divide eq ne lt le gt ge not_equal less greater
    less_equal greater_equal argmax argmin sort argsort topk max min aminmax equal allclose isclose isfinite isinf isnan
    nonzero argwhere count_nonzero logical_and logical_or logical_xor logical_not any all bool int long short char byte
    bitwise_and bitwise_or bitwise_not bitwise_xor where div sum_to_size nan_to_num hardshrink threshold
    copysign signbit heaviside nextafter gcd lcm frexp isposinf isneginf isreal
    """)
)
# Operators whose second operand PyTorch wants as a tensor.
TENSORS_ONLY = frozenset(
    words("""
    type_as view_as expand_as reshape_as equal allclose isclose maximum minimum fmax fmin logical_and logical_or
    logical_xor hypot logaddexp atan2 arctan2 addcmul addcdiv copy_ broadcast_tensors hstack vstack dstack column_stack
    masked_select matmul inner nextafter heaviside gcd lcm ldexp logaddexp2 vdot kron cross dist igamma igammac
    """)
)
# Reductions over several dims at once.
SEVERAL = frozenset(
    words("sum mean any all amax amin logsumexp norm nansum count_nonzero var std var_mean std_mean squeeze")
)


def base(name: str) -> str:
    """The operator's name of an in-place method."""
    return name[:-1] if name.endswith("_") and name not in ("copy_", "fill_", "zero_") else name


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
    called, sizes = base(name).removesuffix("_copy"), list(x.shape)
    if called == "unfold":
        return str(draw.integer(-1, 3))
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
    if base(name) != "split_with_sizes" and (draw.chance(0.6) or not x.dim()):
        return str(size)
    if not x.dim():
        return "[1]"
    first = draw.integer(0, x.shape[0])
    return f"[{first}, {x.shape[0] - first}]"


def _number(draw: Draw, x: Any, name: str) -> str:
    return draw.number()


def _mask(draw: Draw, x: Any, name: str) -> str:
    dtype = "bool" if name == "where" or draw.chance(0.95) else draw.dtype()
    return draw.tensor(draw.fitting(x.shape), dtype, layout=False)


def _nothing(draw: Draw, x: Any, name: str) -> None:
    return None


def _one_dim(draw: Draw, x: Any, name: str) -> str:
    return draw.dim(x.dim())


def _dim(draw: Draw, x: Any, name: str) -> str:
    called = base(name)
    if called in ("unsqueeze", "stack"):
        return draw.dim(x.dim() + 1)
    if called in SEVERAL:
        return _dims(draw, x, name)
    return draw.dim(x.dim())


def _rolled(draw: Draw, x: Any, name: str) -> str:
    if base(name) != "roll":
        return _size(draw, x, name)
    return draw.dim(x.dim()) if draw.chance(0.6) else draw.several(x.dim())


def _repeats(draw: Draw, x: Any, name: str) -> str:
    return str(draw.integer(0, 3)) if base(name) == "repeat_interleave" else _size(draw, x, name)


def _moved(draw: Draw, x: Any, name: str) -> str:
    return _source(draw, x, name) if name.startswith("index") else draw.dim(x.dim())


def _copied(draw: Draw, x: Any, name: str) -> str:
    return operand(draw, x, name) if base(name) == "copy_" else _source(draw, x, name)


def _weight(draw: Draw, x: Any, name: str) -> str:
    return operand(draw, x, name) if base(name) == "lerp" else _matrix(draw, x, name)


def _count(draw: Draw, x: Any, name: str) -> str:
    return str(draw.integer(0, max(x.shape[-1] if x.dim() else 1, 1) + draw.chance(0.1)))


def _padding(draw: Draw, x: Any, name: str) -> str:
    return str([draw.integer(-1, 2) for _ in range(2 * draw.integer(0, max(x.dim(), 1)))])


def _normalized_shape(draw: Draw, x: Any, name: str) -> str:
    count = draw.integer(1, x.dim()) if x.dim() else 0
    sizes = ", ".join(str(size) for size in x.shape[x.dim() - count :])
    return f"[{sizes}]"


def _of(text: str) -> Argument:
    usual = words(text)
    return lambda draw, x, name: draw.one(usual)


def _within(low: int, high: int) -> Argument:
    return lambda draw, x, name: str(draw.integer(low, high))


def _same(names: str, argument: Argument) -> dict[str, Argument]:
    return dict.fromkeys(words(names), argument)


ARGUMENTS: dict[str, Argument] = {
    **_same("other tensor1 tensor2 end input", operand),
    **_same("min max", _bound),
    **_same("alpha beta value nan posinf neginf fill_value values", _number),
    **_same("dim0 dim1 dim2 start_dim end_dim dimension", _one_dim),
    **_same("source destination", _moved),
    **_same("shape size sizes repeats", _repeats),
    **_same("index indices", _index),
    **_same("vec2 tensor vec mat1 mat2", _matrix),
    **_same("mask condition", _mask),
    **_same("target x2", _source),
    **_same("rtol atol", _of("0.0 1e-5 0.5 -1.0 0")),
    **_same("min_val max_val", _of("-1.0 1.0 0.0 2")),
    **_same(
        "equal_nan keepdim descending stable largest sorted accumulate unbiased as_tuple inplace wrap increasing "
        "with_replacement",
        _of("True False True False True False True False 1 None"),
    ),
    **_same(
        """size_average reduce ignore_index activation _stacklevel output_size generator non_blocking pos_weight copy
        bias memory_format out prepend append sections indices""",
        _nothing,
    ),
    "src": _copied,
    "weight": _weight,
    "dim": _dim,
    "dims": _rolled,
    "tensors": _tensors,
    **_same("split_size_or_sections split_size split_sizes indices_or_sections", _sections),
    **_same("n r N edge_order", _within(-1, 4)),
    **_same("step offset", _within(-1, 3)),
    "x": lambda draw, x, name: None if name.endswith(("trapezoid", "trapz")) else _matrix(draw, x, name),
    **_same("dx spacing", _of("1 2.0 0.5")),
    "normalized_shape": _normalized_shape,
    "pad": _padding,
    "k": _count,
    "dtype": lambda draw, x, name: f"torch.{draw.dtype()}",
    "shifts": _within(-5, 5),
    **_same("groups upscale_factor downscale_factor", _within(0, 3)),
    "chunks": _within(0, 4),
    "n": _within(-1, 3),
    "start": _within(-2, 2),
    "length": _within(0, 2),
    "num_classes": _within(-1, 12),
    "rounding_mode": _of("'floor' 'trunc' None 'floor' 'trunc' 'ceil'"),
    "decimals": _of("0 1 2 -1"),
    "negative_slope": _of("0.1 0.0 -0.5 2"),
    "threshold": _of("20.0 1.0 0"),
    "approximate": _of("'none' 'tanh' 'tanh' 'sigmoid'"),
    "correction": _of("0 1 2 0.5 None"),
    "diagonal": _of("0 1 -1 2 -3 10"),
    "p": _of("2 1 0 inf -inf 3 0.5 'fro' 2.0 None"),
    "eps": _of("1e-5 1e-8 0.1"),
    "reduction": _of("'mean' 'sum' 'none' 'mean' 'sum' 'none' 'max'"),
    "lambd": _of("0.5 0.0 1 2.5 -1"),
    "label_smoothing": _of("0.0 0.1"),
    "mode": _of("'constant'"),
    "indexing": _of("'ij' 'xy'"),
}
