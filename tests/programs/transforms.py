"""Transformations of functions, nested up to three deep, of functions drawn from operators, changes in place, views,
factorisations and Functions with rules of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .drawing import Draw, words

Shape = tuple[int, ...]
Tree = Any  # a shape, or a dict of trees

UNARY = words("""
    sin cos exp tanh sigmoid square atan erf relu abs neg expm1 sinh asinh sinc logsigmoid softplus silu gelu elu mish
    softsign hardtanh leaky_relu tanhshrink selu celu log1p_ sqrt_ rsqrt_ reciprocal_ log_ asin_ erfinv_
    """)
FUNCTIONAL = words("logsigmoid softplus silu gelu elu mish softsign hardtanh leaky_relu tanhshrink selu celu")
BINARY = (
    *("{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / ({b} * {b} + 1)", "torch.atan2({a}, {b} * {b} + 1)"),
    *("torch.maximum({a}, {b})", "torch.where({a} > {b}, {a} * 2, {b})", "torch.lerp({a}, {b}, 0.3)"),
    *(
        "torch.addcmul({a}, {b}, {b}, value=0.5)",
        "torch.hypot({a}, {b})",
        "({a} * {a} + 1) ** {b}",
        "{a}.logaddexp({b})",
    ),
    *("torch.complex({a}, {b}).abs()", "({a} * 1j + {b}).imag", "(torch.complex({a}, {b}) ** 2).real"),
    *("torch.fmod({a}, {b} * {b} + 1)", "torch.addcdiv({a}, {b}, {b} * {b} + 2)"),
    *("torch.nn.functional.smooth_l1_loss({a}, {b}, reduction='none')", "torch.xlogy({a}, {b} * {b} + 1)"),
)
# of a dimension
ALONG = words("""
    cumsum logcumsumexp softmax log_softmax flip roll cumprod normalize sort diff_ cat stack_ unsqueeze_
    """)
REDUCTIONS = words("sum mean logsumexp var std norm amax prod amin median_ max_ nansum cummax_ softmin_ argsort_")
PLACES = (
    *("{a} = {v}.clone(); {a}[0] = {w}", "{a} = {v} * 1; {a}[..., :1] += {w}", "{a} = {v} * 1; {a}[-1:].mul_({w})"),
    *("{a} = {v}.clone(); {b} = {a}[0]; {b}.add_({w}); {a}.sin_()", "{a} = {v} * 2; {b} = {a}.t(); {b}[0] *= {w}"),
    *("{a} = {v}.clone(); {a}.mul_({v}).add_({w})", "{a} = {v} * 1; {a}.masked_fill_({v} > 0.2, 0.5)"),
    *("{a} = torch.zeros_like({v}); {a}.copy_({v} * {w})", "{a} = {v}.new_zeros({s}); {a}[0] = {w}; {a}.add_({v})"),
    *("{a} = {v}.sin(); {a}[0].zero_(); {a}.exp_()", "{a} = {v} * 1; {b} = {a}[0]; {a}.mul_({w}); {a} = {a} + {b}"),
    *("{a} = {v}.exp(); {a}[..., 0] = {v}[..., -1] * {w}", "{a} = {v} * 1; {a}.clamp_(-0.5, 0.6).mul_({v})"),
    *(
        "{a} = torch.empty_like({v}); {a}.fill_(2.0); {a}.mul_({v})",
        "{a} = {v} * 1; {a}.index_add_(0, torch.tensor([0]), {v}[:1])",
    ),
    *("{a} = {v} * 1; {a}[[0, -1]] = {v}[[0, 0]] * {w}", "{a} = {v} * 1; {a}.div_({v} * {v} + 1); {a}.neg_()"),
    *("{a} = {v} * 1; {a}[{v} > 0] = 0.25", "{a} = {v} * 1; {a}.index_fill_(0, torch.tensor([0]), 1.5)"),
)
VIEWS = (
    *("{v}[0]", "{v}[..., None]", "{v}[-1:]", "{v}[[0, -1]]", "{v}.flip(0)", "{v}.reshape(-1)", "{v}[..., ::2]"),
    *(
        "{v}.index_select(0, torch.tensor([0, 0]))",
        "{v}.movedim(0, -1)",
        "{v}.expand(2, *{v}.shape)",
        "{v}.unbind(0)[-1]",
    ),
    *("{v}.gather(0, torch.zeros({s}, dtype=torch.int64))", "torch.stack([{v}, {v} * 2], -1)", "{v}.narrow(0, 0, 1)"),
    *("torch.cat([{v}, {v}.cos()])", "{v}.repeat_interleave(2, 0)", "{v}.tile(2)", "{v}.masked_fill({v} < 0, 0.1)"),
    *(
        "torch.nn.functional.pad({v}, (1, 0), value=0.5)",
        "{v}.take_along_dim({v}.argsort(0), 0)",
        "{v}.unfold(0, 1, 1)",
    ),
    *("{v}.scatter_add(0, torch.zeros({s}, dtype=torch.int64), {v}.sin())", "{v}.roll(1, 0)", "torch.atleast_2d({v})"),
    *("torch.fft.rfft({v}).abs()", "torch.view_as_real({v} * (1 + 2j))", "torch.fft.fft({v}).imag", "{v}.split(1)[0]"),
    *("torch.nn.functional.layer_norm({v}, {v}.shape[-1:])", "torch.nn.functional.rms_norm({v}, {v}.shape[-1:])"),
    *("torch.nn.functional.softmax({v} * 3, -1)", "{v}.diff(dim=0)", "torch.outer({v}.flatten(), {v}.flatten())"),
    *("torch.nn.functional.cosine_similarity({v}, {v}.exp(), -1)", "{v}.square().sum(-1, keepdim=True).sqrt()"),
    *(
        "torch.nn.functional.glu(torch.cat([{v}, {v}], -1))",
        "torch.trapezoid({v}, dim=-1)",
        "torch.einsum('...i->...', {v})",
    ),
    *("torch.nn.functional.cross_entropy({v}, torch.zeros({s}[:-1], dtype=torch.int64))", "torch.logit({v}.sigmoid())"),
    *("torch.nn.functional.kl_div({v}.log_softmax(-1), {v}.cos().softmax(-1), reduction='sum')", "{v}.norm(p=3)"),
    *(
        "torch.nn.functional.mse_loss({v}, {v}.sin())",
        "torch.tensordot({v}, {v}, dims=[[0], [0]])",
        "{v}.topk(1, 0)[0]",
    ),
    *("torch.nn.functional.normalize({v}, dim=-1)", "{v}.dist({v}.cos())", "torch.cov({v}.reshape(1, -1))"),
    *(
        "torch.vander({v}.flatten(), 3)",
        "torch.special.i0({v})",
        "torch.renorm({v}[None], 2, 0, 0.7)",
        "{v}.logsumexp(0)",
    ),
)
# of a matrix `{m}` that is symmetric and positive definite, or of any `{v}` that has two dimensions
MATRICES = (
    *("torch.linalg.inv({m})", "torch.linalg.det({v} @ {v}.mT)", "torch.linalg.solve({m}, {v})", "torch.logdet({m})"),
    *(
        "torch.linalg.cholesky({m})",
        "torch.linalg.slogdet({m})[1]",
        "torch.linalg.matrix_exp({m} * 0.3)",
        "{v} @ {v}.mT",
    ),
    *("torch.linalg.eigvalsh({m})", "torch.linalg.svdvals({m})", "torch.linalg.matrix_norm({v})", "torch.trace({m})"),
    *(
        "torch.linalg.matrix_power({m}, 3)",
        "torch.linalg.qr({m})[1]",
        "torch.cholesky_solve({v}, torch.linalg.cholesky({m}))",
    ),
    *("torch.linalg.lstsq({m}, {v}).solution", "torch.linalg.pinv({m})", "torch.linalg.lu({m})[2]", "{v}.tril()"),
    *(
        "torch.linalg.solve_triangular({m}, {v}, upper=True)",
        "torch.linalg.eigh({m})[0]",
        "torch.einsum('ij,kj->ik', {v}, {v})",
    ),
    *("torch.linalg.matrix_exp({m} * 1.5)", "torch.linalg.norm({m}, 2)", "torch.linalg.multi_dot([{v}, {v}.mT, {v}])"),
    *(
        "torch.baddbmm({m}[None], {v}[None], {v}.mT[None])[0]",
        "torch.linalg.vector_norm({v}, 3)",
        "torch.kron({v}, {v})",
    ),
    *(
        "torch.nn.functional.linear({v}, {v}, {v}[:, 0])",
        "torch.cdist({v}, {v} + 1)",
        "{v}.diagonal()",
        "torch.diag({v}[0])",
    ),
    *("torch.nn.functional.scaled_dot_product_attention({v}, {v}, {v})", "torch.linalg.inv({m} + {v} @ {v}.mT)"),
    *(
        "torch.nn.functional.conv1d({v}[None], {v}[None, :, :1])",
        "torch.nn.functional.avg_pool1d({v}[None], 1)",
        "{v}.mT",
    ),
)
FUNCTIONS = {
    "_Cube": """
class _Cube(torch.autograd.Function):
    generate_vmap_rule = True
    @staticmethod
    def forward(x, y):
        return x ** 3 * y, x.exp()
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output[1])
        ctx.save_for_forward(*inputs, output[1])
    @staticmethod
    def backward(ctx, g, h):
        x, y, e = ctx.saved_tensors
        return 3 * x ** 2 * y * g + h * e, g * x ** 3
    @staticmethod
    def jvp(ctx, s, t):
        x, y, e = ctx.saved_tensors
        return 3 * x ** 2 * y * s + x ** 3 * t, e * s""",
    "_Turn": """
class _Turn(torch.autograd.Function):
    @staticmethod
    def forward(x, k):
        return (x * k).sin()
    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.k = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return (x * ctx.k).cos() * ctx.k * g, None
    @staticmethod
    def jvp(ctx, t, _):
        x, = ctx.saved_tensors
        return (x * ctx.k).cos() * ctx.k * t
    @staticmethod
    def vmap(info, in_dims, x, k):
        dim = in_dims[0]
        return _Turn.apply(x.movedim(dim, -1), k), -1""",
}
HELPERS = """
def _map(f, t):
    return {k: _map(f, v) for k, v in t.items()} if isinstance(t, dict) else \\
        type(t)(_map(f, v) for v in t) if isinstance(t, (tuple, list)) else f(t)
def _plain(t):
    return _map(lambda v: v.detach().contiguous().clone(), t)
def _sum(t):
    if isinstance(t, (dict, tuple, list)):
        return sum(_sum(v) for v in (t.values() if isinstance(t, dict) else t))
    return ((t * t + 1).sqrt() if t.is_floating_point() else t * 0.5).sum()
def _total(f):
    return lambda *a: _sum(f(*a))
def _aux(f):
    return lambda *a: (_sum(f(*a)), {'aux': _map(lambda v: v * 2, a[0])})
def _pair(f):
    return lambda *a: (f(*a), _map(lambda v: v.cos(), a[-1]))
def _jvp(f):
    return lambda *a: torch.func.jvp(f, a, _map(lambda v: v.cos() * 0.5, a))
def _vjp(f):
    def g(*a):
        o, pull = torch.func.vjp(f, *a)
        return o, pull(_map(lambda v: v / (v * v + 1).sqrt() + 0.5, o))
    return g
def _linearize(f):
    def g(*a):
        o, push = torch.func.linearize(f, *a)
        return o, push(*_map(lambda v: v.cos() * 0.5, a))
    return g"""


@dataclass(frozen=True)
class Has:
    """What a function may be made of: PyTorch's `linearize` forgets changes in place, its third derivatives of spectra
    are NaN in some orders of the modes, and its second tangents of a Function 0."""

    functions: bool
    changes: bool
    spectra: bool


@dataclass
class Call:
    """A function in the words of a program: what to write for it, and what it takes."""

    text: str
    args: list[Tree]


def program(draw: Draw) -> None:
    """Helpers, a function, tensors for what its transformation takes, and calls of it."""
    draw.say(HELPERS)
    kinds = nest(draw)
    forward = sum(kind in ("jacfwd", "hessian", "jvp", "linearize") for kind in kinds)
    args = [tree(draw) for _ in range(draw.integer(1, 2))]
    names = list(FUNCTIONS) if forward < 2 and draw.chance(0.35) else []
    for name in names:
        draw.say(FUNCTIONS[name])
    dtype = "float32" if draw.chance(0.08) else "float64"
    draw.say(f"_c = {draw.tensor((), dtype, special=0.0)}")
    orders = sum(2 if kind == "hessian" else kind != "vmap" for kind in kinds)
    draw.say(function(draw, args, Has(bool(names), kinds != ["linearize"], orders < 3)))
    call = Call("_f", args)
    for kind in kinds:
        call = wrapped(draw, kind, call)
    for number, each in enumerate(call.args):
        grad = draw.chance(0.15)
        draw.say(f"x{number} = {tensors(draw, each, dtype, grad)}")
    draw.say(f"_g = {call.text}")
    given = ", ".join(f"x{number}" for number in range(len(call.args)))
    if draw.say(f"r1 = _plain(_g({given}))") and draw.chance(0.3):
        leaves = draw.names(lambda t: t.requires_grad)
        if leaves:
            of = f"_sum(_g({given})), [{', '.join(leaves)}]"  # the layout of a gradient is nobody's promise
            draw.say(f"r2 = _plain(torch.autograd.grad({of}, materialize_grads=True))")


def nest(draw: Draw) -> list[str]:
    """The transformations, the innermost first."""
    # PyTorch's `linearize` does not nest
    if draw.chance(0.05):
        return ["linearize"]
    kinds = words("grad grad vmap vmap vmap jacfwd jacfwd jacrev jacrev hessian jvp jvp vjp grad_and_value")
    return [draw.one(kinds) for _ in range(draw.rng.choices((1, 2, 3), (25, 50, 25))[0])]


def tree(draw: Draw) -> Tree:
    def shape() -> Shape:
        return tuple(draw.integer(1, 3) for _ in range(draw.rng.choices((0, 1, 2), (10, 45, 45))[0]))

    if draw.chance(0.15):
        return {name: shape() for name in ("a", "b")[: draw.integer(1, 2)]}
    return shape()


def tensors(draw: Draw, each: Tree, dtype: str, grad: bool) -> str:
    if isinstance(each, dict):
        return f"{{{', '.join(f'{name!r}: {tensors(draw, below, dtype, False)}' for name, below in each.items())}}}"
    numbers = f"torch.tensor({nested(draw, each)}, dtype=torch.{dtype})"
    return f"{numbers}.requires_grad_()" if grad else numbers


def nested(draw: Draw, shape: Shape) -> str:
    """Numbers of which no two are equal, so that no maximum is shared."""
    if not shape:
        return f"{draw.rng.uniform(-1.5, 1.5):.4f}"
    return f"[{', '.join(nested(draw, shape[1:]) for _ in range(shape[0]))}]"


# ---- the function ---------------------------------------------------------------------------------------------------


def function(draw: Draw, args: list[Tree], has: Has) -> str:
    """The text of `_f`."""
    parameters = [f"p{number}" for number in range(len(args))]
    known = []
    for parameter, each in zip(parameters, args, strict=True):
        known += [f"{parameter}[{name!r}]" for name in each] if isinstance(each, dict) else [parameter]
    lines, inputs = [], list(known)
    for number in range(draw.integer(1, 5)):
        name = f"v{number}"
        lines.append(step(draw, name, known, has))
        known.append(name)
    last = known[-1]
    form = draw.weighted(one=50, scalar=15, sum=20, tuple=8, dict=7)
    out = {
        "one": last,
        "scalar": f"{last}.sum()",
        "sum": " + ".join(f"{name}.sum()" for name in (last, *inputs)),
        "tuple": f"({last}, {draw.one(known)} * 2)",
        "dict": f"{{'a': {last}, 'b': ({draw.one(known)}.sum(), {last}.exp())}}",
    }[form]
    body = "\n".join(f"    {line}" for line in lines)
    return f"def _f({', '.join(parameters)}):\n{body}\n    return {out}"


def step(draw: Draw, name: str, known: list[str], has: Has) -> str:
    """A line that makes `name` of what there is."""
    v = known[-1] if draw.chance(0.6) else draw.one(known)
    w = f"{draw.one(known)}.sum()" if draw.chance(0.7) else draw.one(("_c", "1.5", "_c.cos()"))
    change, function = 20 * has.changes, 40 * has.functions
    kind = draw.weighted(unary=22, binary=16, along=12, reduce=8, change=change, view=16, matrix=16, function=function)
    size = f"{v}.shape"
    if kind == "unary":
        called = draw.one(UNARY)
        if called in FUNCTIONAL:
            return f"{name} = torch.nn.functional.{called}({v})"
        if called in ("asin_", "erfinv_"):
            return f"{name} = ({v}.sin() * 0.9).{called[:-1]}()"
        if called.endswith("_"):
            return f"{name} = ({v} * {v} + 0.5).{called[:-1]}()"
        return f"{name} = {v}.{called}()"
    if kind == "binary":
        other = draw.one((v, w, f"{v}.cos()", f"{v}.flatten()[0]", w))
        other = f"torch.as_tensor({other}, dtype={v}.dtype)" if other == "1.5" else other
        return f"{name} = {draw.one(BINARY).format(a=v, b=other)}"
    if kind == "along":
        return f"{name} = {along(draw, v)}"
    if kind == "reduce":
        called, dim = draw.one(REDUCTIONS), draw.one(("", "0", "-1", "0, keepdim=True"))
        if called in ("max_", "median_"):
            return f"{name} = {v}.{called[:-1]}({dim or 0})[0]"
        if called in ("cummax_", "softmin_", "argsort_"):
            text = {"cummax_": "{}.cummax(0)[0]", "softmin_": "torch.nn.functional.softmin({}, -1)"}
            return f"{name} = {text.get(called, '{0} * {0}.argsort(-1)').format(v)}"
        dim = dim or ("0" if called in ("logsumexp", "prod") else "")
        text = f"{v}.{called}({dim.replace('0, keep', 'dim=0, keep')})"
        return f"{name} = {text.replace('norm(', 'norm(dim=') if called == 'norm' and dim in ('0', '-1') else text}"
    if kind == "change":
        return draw.one(PLACES).format(a=name, b=f"{name}b", v=v, w=w, s=size)
    if kind == "view":
        return f"{name} = {draw.one(VIEWS).format(v=v, s=size)}"
    if kind == "function":
        if draw.chance(0.5):
            return f"{name} = _Cube.apply({v}, {draw.one((v, f'{v}.cos()'))})[{draw.integer(0, 1)}]"
        return f"{name} = _Turn.apply({v}, {draw.one(('2.0', '0.5', '3'))})"
    v = f"torch.atleast_2d({v})"
    m = f"({v} @ {v}.mT + torch.diag(torch.arange(1.0, {v}.shape[-2] + 1, dtype={v}.dtype)))"
    made = [text for text in MATRICES if has.spectra or not any(word in text for word in ("eig", "svd", "norm({m}"))]
    return f"{name} = {draw.one(made).format(v=v, m=m)}"


def along(draw: Draw, v: str) -> str:
    called, dim = draw.one(ALONG), draw.one(("0", "-1"))
    special: dict[str, Callable[[], str]] = {
        "flip": lambda: f"{v}.flip({dim})",
        "roll": lambda: f"{v}.roll(1, {dim})",
        "normalize": lambda: f"torch.nn.functional.normalize({v}, dim={dim})",
        "sort": lambda: f"{v}.sort({dim})[0]",
        "diff_": lambda: f"{v}.diff(dim={dim}, prepend={v})",
        "cat": lambda: f"torch.cat([{v}, {v}.sin()], {dim})",
        "stack_": lambda: f"torch.stack([{v}, {v}.cos()], {dim})",
        "unsqueeze_": lambda: f"{v}.unsqueeze({dim}).sin()",
    }
    return special[called]() if called in special else f"{v}.{called}({dim})"


# ---- the transformations --------------------------------------------------------------------------------------------


def wrapped(draw: Draw, kind: str, call: Call) -> Call:
    """The function that a transformation makes of one."""
    text, args = call.text, call.args
    if kind == "vmap":
        return batched(draw, call)
    if kind in ("jvp", "vjp", "linearize"):
        return Call(f"_{kind}({text})", args)
    numbers = draw.one(("", "", ", argnums=0", ", argnums=(0,)", ", argnums=-1", f", argnums={len(args) - 1}"))
    if len(args) > 1 and draw.chance(0.3):
        numbers = ", argnums=(0, 1)" if draw.chance(0.7) else ", argnums=(1, 0)"
    if kind in ("grad", "grad_and_value"):
        aux = draw.chance(0.2)
        return Call(f"torch.func.{kind}({'_aux' if aux else '_total'}({text}){numbers}{', has_aux=True' * aux})", args)
    if kind == "hessian":
        return Call(f"torch.func.hessian({f'_total({text})' if draw.chance(0.8) else text}{numbers})", args)
    aux = draw.chance(0.12)
    options = numbers + ", has_aux=True" * aux
    if kind == "jacrev" and draw.chance(0.25):
        options += f", chunk_size={draw.integer(1, 3)}"
    if kind == "jacfwd" and draw.chance(0.1):
        options += f", randomness={draw.one(('error', 'same', 'different'))!r}"
    return Call(f"torch.func.{kind}({f'_pair({text})' if aux else text}{options})", args)


def batched(draw: Draw, call: Call) -> Call:
    """A function of samples on a batch of them."""
    size, dims, args = draw.integer(1, 3), [], []
    for each in call.args:
        shared = draw.chance(0.25) and len(call.args) > 1
        if isinstance(each, dict):
            whole = draw.chance(0.5)
            places = {name: 0 if whole else place(draw, shape) for name, shape in each.items()}
            dims.append("None" if shared else "0" if whole else repr(places))
            args.append(each if shared else {name: with_batch(each[name], places[name], size) for name in each})
        else:
            at = place(draw, each)
            dims.append("None" if shared else str(at))
            args.append(each if shared else with_batch(each, at, size))
    if all(dim == "None" for dim in dims):
        dims[0], args[0] = "0", _all_with_batch(args[0], size)
    same = len(set(dims)) == 1 and dims[0] in ("0", "-1", "1")
    in_dims = dims[0] if same and draw.chance(0.5) else f"({', '.join(dims)},)"
    options = f", in_dims={in_dims}" if in_dims != "0" or draw.chance(0.3) else ""
    if draw.chance(0.25):
        options += f", out_dims={draw.one(('0', '-1', '-1', '1'))}"
    if draw.chance(0.15):
        options += f", randomness={draw.one(('error', 'same', 'different'))!r}"
    if draw.chance(0.2):
        options += f", chunk_size={draw.integer(1, 3)}"
    return Call(f"torch.{draw.one(('vmap', 'func.vmap'))}({call.text}{options})", args)


def place(draw: Draw, shape: Shape) -> int:
    return 0 if draw.chance(0.6) else draw.integer(-len(shape) - 1, len(shape))


def with_batch(shape: Shape, at: int, size: int) -> Shape:
    found = list(shape)
    found.insert(at if at >= 0 else len(shape) + 1 + at, size)
    return tuple(found)


def _all_with_batch(each: Tree, size: int) -> Tree:
    return {name: (size, *shape) for name, shape in each.items()} if isinstance(each, dict) else (size, *each)
