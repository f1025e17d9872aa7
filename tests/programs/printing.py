"""What tensors, sizes, dtypes and modules look like in text."""

from __future__ import annotations

import tritensor

from . import calls
from .drawing import FLOATS, LIMITS, Draw, words

FORMATS = ("", *words(".2f .3e d 5d >12 s e g , 08.3f x % + 10"))
OPTIONS = """
precision=2
precision=8
threshold=5
edgeitems=1
linewidth=40
sci_mode=True
sci_mode=False
profile='full'
profile='short'
profile='default'
edgeitems=2, threshold=3
precision=0
""".strip().splitlines()
RANGES = """
torch.arange({n})
torch.arange({n}.0)
torch.arange({n}.0) * 0.001
torch.arange({n}.0) ** 5
torch.zeros({n})
torch.ones({n}, dtype=torch.int8)
torch.eye({n})
torch.arange({n}.0) / 7
torch.full(({n},), 1e10)
torch.arange({n}.0) - 1e-4
""".strip().splitlines()
MODULES = """
torch.nn.Linear(3, 4)
torch.nn.Linear(3, 4, bias=False)
torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
torch.nn.LayerNorm(4)
torch.nn.Dropout(0.1)
torch.nn.Embedding(4, 3, padding_idx=1)
torch.nn.GELU()
torch.nn.Flatten()
torch.nn.ModuleList([torch.nn.Tanh(), torch.nn.Sigmoid()])
torch.nn.Softmax(dim=1)
torch.nn.CrossEntropyLoss()
torch.nn.Identity()
torch.nn.LeakyReLU(0.2)
torch.nn.ModuleDict({'a': torch.nn.ReLU(), 'b': torch.nn.SiLU()})
torch.nn.RMSNorm(4)
torch.nn.ELU()
torch.nn.ParameterList([torch.zeros(2)])
torch.nn.MSELoss()
torch.nn.Softplus()
torch.nn.Unflatten(1, (2, 2))
""".strip().splitlines()
OBJECTS = """
torch.float32
torch.bool
torch.Size([2, 3])
torch.Size([])
torch.zeros(2, 3).shape
torch.finfo(torch.float32)
torch.iinfo(torch.int8)
torch.finfo(torch.bfloat16)
torch.device('cpu')
torch.device('cuda', 1)
torch.zeros(2).type()
torch.zeros(2, dtype=torch.int64).type()
torch.zeros(3).size()
torch.tensor([2, 1]).sort()
torch.tensor([2.0, 1.0]).max(0)
torch.tensor([2, 1]).topk(1)
torch.tensor([[1, 2]]).min(1)
torch.zeros(1).stride()
torch.zeros(2, 2).split(1)
torch.tensor([1.5, 2.5]).aminmax()
torch.nn.Parameter(torch.zeros(2))
""".strip().splitlines()


def program(draw: Draw) -> None:
    """Perhaps options, then tensors and their texts."""
    if draw.chance(0.25):
        draw.say(f"torch.set_printoptions({draw.one(OPTIONS)})")
    if draw.chance(0.04):
        draw.say("torch.set_default_dtype(torch.float64)")
    for _ in range(draw.integer(1, 3)):
        kind = draw.weighted(tensor=55, range=15, large=6, result=12, module=6, object=8)
        if kind in ("module", "object"):
            what = draw.one(modules() if kind == "module" else OBJECTS)
            draw.say(f"f{draw.integer(0, 9)} = {draw.one(('repr', 'str'))}({what})")
            continue
        name = draw.fresh("x")
        text = expression(draw, kind)
        draw.say(f"{name} = {text}")
        draw.exact[name] = "linspace" not in text and "/" not in text and "**" not in text
        if name in draw.names():
            texts(draw, name)


def modules() -> list[str]:
    """The modules that are here."""
    return [text for text in MODULES if hasattr(tritensor.nn, text.removeprefix("torch.nn.").partition("(")[0])]


def expression(draw: Draw, kind: str) -> str:
    """A tensor worth printing."""
    if kind == "range":
        return draw.one(RANGES).format(n=draw.integer(0, 30))
    if kind == "large":
        shape = draw.one(("(40, 40)", "(1001,)", "(2, 3, 200)", "(600, 2)", "(1, 1200)", "(10, 10, 11)", "(1000,)"))
        return f"torch.{draw.one(('zeros', 'ones'))}({shape}, dtype=torch.{draw.dtype()})"
    exact = draw.names(exact=True)
    if kind == "result" and exact:
        x = draw.one(exact)
        called = draw.one([n for n in calls.named(calls.is_elementwise, False) if n not in calls.INEXACT])
        return calls.call(draw, called, x)
    dtype = draw.dtype()
    grad = ".requires_grad_()" if dtype in FLOATS and draw.chance(0.2) else ""
    if draw.chance(0.4) and dtype not in ("bool",):
        sizes = (draw.integer(1, 6),) if draw.chance(0.6) else draw.shape(3, 2)
        return f"torch.tensor({spread(draw, sizes, dtype)}, dtype=torch.{dtype}){grad}"
    return f"{draw.tensor(dtype=dtype, special=0.3)}{grad}"


def spread(draw: Draw, shape: tuple[int, ...], dtype: str) -> str:
    """Elements of many sizes: what decides between fixed and scientific notation."""
    low, high = draw.integer(-6, 2), draw.integer(2, 9)

    def nested(sizes: tuple[int, ...]) -> str:
        if sizes:
            return f"[{', '.join(nested(sizes[1:]) for _ in range(sizes[0]))}]"
        if dtype in LIMITS:
            largest = LIMITS[dtype][1]
            return str(draw.integer(0, min(10 ** draw.integer(0, 12), largest)))
        if draw.chance(0.05):
            return draw.one(("nan", "inf", "-inf", "0.0", "-0.0"))
        digits = draw.one((1, 2, 3, 5, 8))
        return f"{draw.rng.uniform(-1, 1) * 10 ** draw.integer(low, high):.{digits}g}"

    return nested(shape)


def texts(draw: Draw, name: str) -> None:
    """One to three texts of a tensor."""
    for _ in range(draw.integer(1, 3)):
        form = draw.fresh("f")
        kind = draw.weighted(
            repr=40, str=20, format=14, element=10, list=6, format_element=8, detached=4, size=3, grad=3
        )
        value = draw.value(name)
        element = f"{name}.flatten()[0]" if value.numel() else name
        text = {
            "repr": f"repr({name})",
            "str": f"str({name})",
            "format": f"format({name}, {draw.one(FORMATS)!r})",
            "element": f"repr({element})",
            "list": f"repr({name}.tolist())" if draw.exact.get(name, True) else f"str({name}.shape)",
            "format_element": f"format({element}, {draw.one(FORMATS)!r})",
            "detached": f"repr({name}.detach().t())" if value.dim() <= 2 else f"repr({name}.detach())",
            "size": f"str({name}.shape)",
            "grad": f"str({name}.grad)",
        }[kind]
        draw.say(f"{form} = {text}")
