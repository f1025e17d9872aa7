"""Modules with drawn options: states, forward and backward, modes, dtypes, wrappers, and the buffers after them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .drawing import Draw, words

# Parameters and buffers get the same elements in both libraries; variances are positive.
ELEMENTS = (
    "((torch.arange(p.numel(), dtype=torch.float64) * 0.7 + i).sin() * 0.4"
    " + (0.9 if 'var' in n else 0)).reshape(p.shape)"
)
ITEMS = "for i, (n, p) in enumerate({}.state_dict().items()) if p.is_floating_point()"
Made = tuple[str, list[tuple[tuple[int, ...], str]]]  # a module, and the shapes and kinds of its inputs


def option(draw: Draw, **values: str) -> str:
    """Some of the options, each with one of its values."""
    chosen = [f"{name}={draw.one(words(text))}" for name, text in values.items() if draw.chance(0.45)]
    return "".join(f", {text}" for text in chosen)


def batch(draw: Draw, unbatched: float = 0.15) -> tuple[int, ...]:
    """The dimension of examples: none, no example, or a few."""
    return () if draw.chance(unbatched) else (0,) if draw.chance(0.05) else (draw.integer(1, 3),)


def sizes(draw: Draw, rank: int, low: int = 3, high: int = 6) -> tuple[int, ...]:
    return tuple(draw.integer(low, high) for _ in range(rank))


def each(draw: Draw, rank: int, values: str) -> str:
    """A number, or one for each dimension."""
    several = ", ".join(draw.one(words(values)) for _ in range(rank))
    return draw.one(words(values)) if draw.chance(0.6) else f"({several},)"


def linear(draw: Draw) -> Made:
    size, out = draw.integer(1, 4), draw.integer(1, 4)
    if draw.chance(0.25):
        lead = batch(draw)
        other = draw.integer(1, 3)
        text = f"torch.nn.Bilinear({size}, {other}, {out}{option(draw, bias='True False')})"
        return text, [((*lead, size), ""), ((*lead, other), "")]
    lead = draw.shape(3, draw.integer(0, 2))
    return f"torch.nn.Linear({size}, {out}{option(draw, bias='True False')})", [((*lead, size), "")]


def convolution(draw: Draw) -> Made:
    rank, groups = draw.integer(1, 3), draw.one((1, 1, 2))
    entered, left = groups * draw.integer(1, 2), groups * draw.integer(1, 2)
    kernel = each(draw, rank, "1 2 3")
    more = f", groups={groups}" if groups > 1 else ""
    shape = (*batch(draw), entered, *sizes(draw, rank))
    if draw.chance(0.35):
        for name, values in (("stride", "1 2"), ("padding", "0 1"), ("dilation", "1 2"), ("output_padding", "0 0 1")):
            more += f", {name}={each(draw, rank, values)}" if draw.chance(0.5) else ""
        more += option(draw, bias="True False")
        return f"torch.nn.ConvTranspose{rank}d({entered}, {left}, {kernel}{more})", [(shape, "")]
    for name, values in (("stride", "1 2"), ("padding", "0 1 1"), ("dilation", "1 2")):
        more += f", {name}={each(draw, rank, values)}" if draw.chance(0.5) else ""
    if "padding" not in more and draw.chance(0.3):
        more += f", padding={draw.one(words(repr('same') + ' ' + repr('valid')))}"
    more += option(draw, bias="True False", padding_mode="'zeros' 'reflect' 'replicate' 'circular'")
    return f"torch.nn.Conv{rank}d({entered}, {left}, {kernel}{more})", [(shape, "")]


def pooling(draw: Draw) -> Made:
    rank = draw.integer(1, 3)
    shape = (*batch(draw), draw.integer(1, 3), *sizes(draw, rank))
    kind = draw.weighted(max=30, average=30, adaptive=25, power=15)
    if kind == "adaptive":
        which = draw.one(("Max", "Avg"))
        size = each(draw, rank, "1 2 3 4 None") if draw.chance(0.5) else str(draw.integer(1, 5))
        more = option(draw, return_indices="True False") if which == "Max" else ""
        return f"torch.nn.Adaptive{which}Pool{rank}d({size}{more})", [(shape, "")]
    kernel = each(draw, rank, "1 2 3")
    more = f", stride={each(draw, rank, '1 2 3')}" if draw.chance(0.5) else ""
    if kind == "power":
        return (
            f"torch.nn.LPPool{rank}d({draw.one(words('1 2 3.0'))}, {kernel}{more}{option(draw, ceil_mode='True')})",
            [(shape, "")],
        )
    more += f", padding={each(draw, rank, '0 1')}" if draw.chance(0.4) else ""
    if kind == "max":
        more += option(draw, dilation="1 2", return_indices="True False", ceil_mode="True False")
        return f"torch.nn.MaxPool{rank}d({kernel}{more})", [(shape, "")]
    more += option(draw, ceil_mode="True False", count_include_pad="True False")
    more += option(draw, divisor_override="2 3") if rank > 1 else ""
    return f"torch.nn.AvgPool{rank}d({kernel}{more})", [(shape, "")]


def normalization(draw: Draw) -> Made:
    rank, channels = draw.integer(1, 3), draw.integer(1, 4)
    kind = draw.weighted(batch=35, instance=25, group=15, layer=15, rms=10, response=8)
    shape = (*(batch(draw) if kind == "instance" else batch(draw, 0)), channels, *sizes(draw, rank, 1, 4))
    common = {"eps": "1e-5 1e-3", "affine": "True False"}
    if kind in ("batch", "instance"):
        if kind == "batch" and rank == 1 and draw.chance(0.5):
            shape = shape[:-1]
        more = option(draw, momentum="0.1 0.5 None", track_running_stats="True False", **common)
        return f"torch.nn.{kind.title()}Norm{rank}d({channels}{more})", [(shape, "")]
    if kind == "group":
        groups = draw.one([size for size in range(1, channels + 1) if channels % size == 0])
        return f"torch.nn.GroupNorm({groups}, {channels}{option(draw, **common)})", [(shape, "")]
    if kind == "response":
        return f"torch.nn.LocalResponseNorm({draw.integer(1, 4)}{option(draw, alpha='0.1', beta='0.5', k='2.0')})", [
            (shape, "")
        ]
    last = shape[-draw.integer(1, len(shape)) :]
    more = option(
        draw, eps="1e-5 1e-3", elementwise_affine="True False", **({"bias": "True False"} if kind == "layer" else {})
    )
    return f"torch.nn.{'Layer' if kind == 'layer' else 'RMS'}Norm({last}{more})", [(shape, "")]


ACTIVATIONS = words("""
    ELU(0.5) ELU() Hardshrink(0.3) Hardsigmoid() Hardtanh(-0.5,0.7) Hardswish() LeakyReLU(0.2) LogSigmoid()
    PReLU() PReLU(3) ReLU() ReLU6() SELU() CELU(0.5) GELU() GELU('tanh') Sigmoid() SiLU() Mish() Softplus(2,1)
    Softplus() Softshrink(0.2) Softsign() Tanh() Tanhshrink() Threshold(0.1,2) GLU() GLU(1) Softmin(-1) Softmax(0)
    Softmax2d() LogSoftmax(-1) Softmax(1) Dropout(0) Dropout(1) AlphaDropout(0) RReLU(0.25,0.25) Identity()
    Flatten() Flatten(0) Flatten(0,1) Unflatten(1,(1,-1)) PixelShuffle(2) PixelUnshuffle(2) ChannelShuffle(2)
    Upsample(scale_factor=2) Upsample((3,),mode='linear') Upsample(scale_factor=1.7,mode='bilinear')
    Upsample(size=(5,2),mode='bicubic',align_corners=True) UpsamplingNearest2d(2) ZeroPad1d(1)
    ReflectionPad1d((1,0)) ReplicationPad2d((1,2,0,1)) CircularPad2d(1) ConstantPad2d((1,-1,0,2),3.5)
    ReflectionPad2d(1) ReplicationPad3d(1) ZeroPad2d((-1,1,0,0)) Unfold(2)
    Unfold((2,1),dilation=1,padding=1,stride=2) Fold((3,2),(2,1)) ConstantPad1d(2,0.5)
    """)


def activation(draw: Draw) -> Made:
    return f"torch.nn.{draw.one(ACTIVATIONS)}", [(draw.shape(4, draw.integer(1, 4)), "")]


def recurrent(draw: Draw) -> Made:
    kind, size, hidden = draw.one(("RNN", "LSTM", "GRU")), draw.integer(1, 3), draw.integer(2, 3)
    if draw.chance(0.25):
        more = option(draw, bias="True False", **({"nonlinearity": "'tanh' 'relu'"} if kind == "RNN" else {}))
        lead = batch(draw)
        state = [((*lead, hidden), "")] if kind != "LSTM" and draw.chance(0.5) else []
        return f"torch.nn.{kind}Cell({size}, {hidden}{more})", [((*lead, size), ""), *state]
    more = option(draw, num_layers="1 2", bias="True False", batch_first="True False", bidirectional="True False")
    more += (
        option(draw, proj_size="1") if kind == "LSTM" else option(draw, nonlinearity="'tanh' 'relu'") * (kind == "RNN")
    )
    return f"torch.nn.{kind}({size}, {hidden}{more})", [((draw.integer(1, 3), *batch(draw), size), "sequence")]


def attention(draw: Draw) -> Made:
    heads = draw.integer(1, 2)
    size = heads * draw.integer(1, 2)
    first = draw.chance(0.6)
    lead = batch(draw)
    length = draw.integer(1, 3)
    shape = (*lead, length, size) if first else (length, *lead, size)
    kind = draw.weighted(attention=40, encoder=30, decoder=20, stack=10)
    if kind == "attention":
        more = option(draw, bias="True False", add_bias_kv="True False", add_zero_attn="True False")
        return f"torch.nn.MultiheadAttention({size}, {heads}, batch_first={first}{more})", [(shape, "")] * 3
    more = f"{option(draw, norm_first='True False', bias='True False')}, batch_first={first}, dropout=0.0"
    more += f", activation={draw.one(('torch.nn.functional.gelu', repr('relu'), repr('gelu')))}" * draw.chance(0.5)
    if kind == "decoder":
        return f"torch.nn.TransformerDecoderLayer({size}, {heads}, 3{more})", [(shape, "")] * 2
    layer = f"torch.nn.TransformerEncoderLayer({size}, {heads}, 3{more})"
    return layer if kind == "encoder" else f"torch.nn.TransformerEncoder({layer}, 2)", [(shape, "")]


def embedding(draw: Draw) -> Made:
    count, size = draw.integer(2, 5), draw.integer(1, 3)
    if draw.chance(0.5):
        more = option(draw, padding_idx="0 1 -1", scale_grad_by_freq="True False", max_norm="0.5", norm_type="1.0 2.0")
        return f"torch.nn.Embedding({count}, {size}{more})", [(draw.shape(3, draw.integer(0, 2)), f"index {count}")]
    more = option(draw, mode="'sum' 'mean' 'max'", padding_idx="0 1", include_last_offset="False")
    return f"torch.nn.EmbeddingBag({count}, {size}{more})", [
        ((draw.integer(1, 3), draw.integer(1, 3)), f"index {count}")
    ]


LOSSES: dict[str, tuple[str, dict[str, str]]] = {  # the kind of the target, and options
    "BCELoss": ("share", {"weight": "torch.tensor([0.5,2.0,1.0],dtype=torch.float64)"}),
    "BCEWithLogitsLoss": ("share", {"pos_weight": "torch.tensor([0.5,2.0,1.0],dtype=torch.float64)"}),
    "CrossEntropyLoss": ("class", {"ignore_index": "-100 1", "label_smoothing": "0.1 0.5"}),
    "GaussianNLLLoss": ("variance", {"full": "True", "eps": "0.1"}),
    "HingeEmbeddingLoss": ("sign", {"margin": "0.5 2"}),
    "HuberLoss": ("", {"delta": "0.5 2"}),
    "KLDivLoss": ("share", {"log_target": "True False"}),
    "L1Loss": ("", {}),
    "MSELoss": ("", {}),
    "MultiLabelSoftMarginLoss": ("share", {}),
    "MultiMarginLoss": ("class", {"p": "1 2", "margin": "0.5"}),
    "NLLLoss": ("class", {"ignore_index": "1 -100"}),
    "PoissonNLLLoss": ("share", {"log_input": "True False", "full": "True"}),
    "SmoothL1Loss": ("", {"beta": "0.5 2 0"}),
    "SoftMarginLoss": ("sign", {}),
    "TripletMarginLoss": ("triplet", {"margin": "0.5 2.0", "p": "1 2.0", "swap": "True"}),
    "MarginRankingLoss": ("ranking", {"margin": "0.5"}),
    "CosineEmbeddingLoss": ("cosine", {"margin": "0.25"}),
}


def loss(draw: Draw) -> Made:
    name = draw.one(sorted(LOSSES))
    kind, options = LOSSES[name]
    reductions = "'mean' 'sum' 'none'" + (" 'batchmean'" if name == "KLDivLoss" else "")
    text = f"torch.nn.{name}(reduction={draw.one(words(reductions))}{option(draw, **options)})"
    shape = (draw.integer(1, 3), 3)
    first = (shape, "share" if name == "BCELoss" else "")
    targets: dict[str, list[tuple[tuple[int, ...], str]]] = {
        "class": [(shape[:1], "index 3")],
        "variance": [(shape, ""), (shape, "share")],
        "triplet": [(shape, ""), (shape, "")],
        "ranking": [(shape, ""), (shape, "sign")],
        "cosine": [(shape, ""), (shape[:1], "sign")],
    }
    return text, [first, *targets.get(kind, [(shape, kind)])]


def container(draw: Draw) -> Made:
    size = draw.integer(2, 3)
    inner = [
        draw.one(
            (f"torch.nn.Linear({size}, {size})", "torch.nn.ReLU()", f"torch.nn.LayerNorm({size})", "torch.nn.Tanh()")
        )
    ]
    inner += [f"torch.nn.BatchNorm1d({size})", f"torch.nn.Linear({size}, 2)"]
    draw.rng.shuffle(inner)
    if draw.chance(0.3):
        inner = ["torch.nn.LazyLinear(3)", "torch.nn.LazyBatchNorm1d()", "torch.nn.ReLU()", "torch.nn.LazyLinear(2)"]
    return f"torch.nn.Sequential({', '.join(inner)})", [((draw.integer(2, 3), size), "")]


KINDS: dict[Callable[[Draw], Made], float] = dict(
    zip(
        (linear, convolution, pooling, normalization, activation, recurrent, attention, embedding, loss, container),
        (8, 18, 14, 16, 12, 12, 10, 6, 14, 6),
        strict=True,
    )
)
WRAPPERS = words("""
    torch.nn.utils.weight_norm({}) torch.nn.utils.parametrizations.weight_norm({}) torch.nn.utils.spectral_norm({})
    torch.nn.utils.parametrizations.spectral_norm({}) torch.nn.utils.weight_norm({},dim=None)
    torch.nn.utils.parametrizations.weight_norm({},'weight',1)
    """)


def program(draw: Draw) -> None:
    """A module, its state, and two or three uses with what is done between them."""
    text, inputs = draw.rng.choices(list(KINDS), list(KINDS.values()))[0](draw)
    if draw.chance(0.12) and text.startswith(("torch.nn.Linear", "torch.nn.Conv")):
        text = draw.one(WRAPPERS).format(text)
    dtype = "float64" if draw.chance(0.75) else "float32"
    suffix = ".double()" if dtype == "float64" else ""
    if not draw.say(f"m = {text}{suffix}"):
        return
    draw.say("s1 = repr(m)")
    lazy = "Lazy" in text
    if not lazy:
        state(draw)
    if draw.chance(0.2):
        draw.say(draw.one(("m = m.eval()", "m = m.train()", "m = m.requires_grad_(False)")))
    for number in range(draw.integer(1, 3)):
        names = [entry(draw, f"x{number}{place}", shape, kind, dtype) for place, (shape, kind) in enumerate(inputs)]
        if lazy and not number:
            draw.say(f"_ = m({', '.join(names)})")
            state(draw)
        if not use(draw, number, names, inputs[0][1], text):
            break
        between(draw)
    draw.say("f1 = m.state_dict()")


def state(draw: Draw) -> None:
    """Give the module's parameters and buffers elements."""
    if draw.chance(0.5):
        draw.say(f"_ = m.load_state_dict({{n: {ELEMENTS} {ITEMS.format('m')}}}, strict=False)")
    else:
        draw.say(f"_ = [p.copy_({ELEMENTS}) {ITEMS.format('m')}]")


def entry(draw: Draw, name: str, shape: tuple[int, ...], kind: str, dtype: str) -> str:
    """An input of a shape: of any numbers, shares from 0 to 1, signs, or indices below a number."""
    if kind.startswith("index"):
        count = int(kind.split()[1])
        made = (
            f"torch.tensor({draw.nested(shape, 'int64', False)})" if 0 not in shape else f"torch.zeros({shape}).long()"
        )
        draw.say(f"{name} = {made}.abs() % {count}")
        return name
    if draw.chance(0.03):
        shape = (*shape[:-1], draw.integer(0, 5))  # which may not fit
    made = draw.tensor(shape, dtype, special=0.0, layout=draw.chance(0.3))
    if kind == "share":
        draw.say(f"{name} = ({made} * 0.3).sigmoid()")
    elif kind == "sign":
        draw.say(f"{name} = ({made} > 0).to(torch.{dtype}) * 2 - 1")
    else:
        draw.say(f"{name} = ({made} * 0.37 + 0.11).detach()" if draw.chance(0.8) else f"{name} = {made}")
        if draw.chance(0.75):
            draw.say(f"{name}.requires_grad_()")
    return name


def use(draw: Draw, number: int, names: list[str], kind: str, text: str) -> bool:
    """A call of the module, and a backward pass through what it gives."""
    arguments = ", ".join(names)
    if kind == "sequence" and draw.chance(0.3):
        value = draw.value(names[0])
        if value.dim() == 3:
            time = 1 if "batch_first=True" in text else 0
            lengths = [draw.integer(1, max(value.shape[time], 1)) for _ in range(value.shape[1 - time])]
            arguments = (
                f"torch.nn.utils.rnn.pack_padded_sequence({names[0]}, {lengths}, {bool(time)}, enforce_sorted=False)"
            )
    elif "MultiheadAttention" in text:
        arguments += option(draw, need_weights="True False", average_attn_weights="True False")
    elif "TransformerEncoderLayer(" in text and draw.chance(0.4) and len(draw.value(names[0]).shape) == 3:
        length = draw.value(names[0]).shape["batch_first=True" in text]
        arguments += f", torch.ones({length}, {length}, dtype=torch.bool).triu(1)"
    call = f"m({arguments})"
    way = draw.weighted(plain=80, functional=10, autocast=6, inference=4)
    if way == "functional":
        call = (
            f"torch.func.functional_call(m, {{n: p.detach() * 0.9 for n, p in m.named_parameters()}}, ({arguments},))"
        )
    made = f"y{number}"
    if way == "autocast":
        half = "with torch.autocast('cpu', dtype=torch.bfloat16):"  # no result is more exact than that
        ran = draw.say(f"{half} {made} = {call}.bfloat16()")
        draw.say(f"{half} f{number} = {call}.dtype")
    elif way == "inference":
        ran = draw.say(f"with torch.no_grad(): {made} = {call}")
    else:
        ran = draw.say(f"{made} = {call}")
    if not ran or way in ("inference", "autocast"):
        return ran
    value: Any = draw.value(made)
    place = made
    while isinstance(value, (tuple, list)):
        value, place = value[0], f"{place}[0]"
    if getattr(value, "requires_grad", False) and draw.chance(0.85):
        keep = "retain_graph=True" if draw.chance(0.1) else ""
        draw.say(
            f"({place} * {place}).sum().backward({keep})" if draw.chance(0.6) else f"{place}.sum().backward({keep})"
        )
        draw.say(f"g{number} = [p.grad for p in m.parameters()]")
    return True


def between(draw: Draw) -> None:
    """What programs do between two uses of a module."""
    draw.say(
        draw.one(
            (
                *("m = m.eval()", "m = m.train()", "m.zero_grad()", "m.zero_grad(set_to_none=False)"),
                *(
                    "f1 = m.state_dict()",
                    "f2 = [n for n, _ in m.named_parameters()]",
                    "f3 = [n for n, _ in m.named_buffers()]",
                ),
                *("f4 = [n for n, _ in m.named_modules()]", "import copy; m = copy.deepcopy(m)", "f5 = m.training"),
                *("_ = [p.data.mul_(0.5) for p in m.parameters()]", "m.requires_grad_(False)", "m.requires_grad_()"),
                *("_ = m.load_state_dict(m.state_dict())", "f6 = sum(p.numel() for p in m.parameters())"),
            )
        )
    )
