"""Training: steps of small models with optimizers, schedules, clipping, scaling, averages, hooks and checkpoints."""

from __future__ import annotations

from .drawing import Draw, Finished, words
from .optimizers import OPTIONS as FEWER
from .optimizers import SCHEDULERS as SIMPLE

WAYS = {"maximize": words("False True"), "foreach": words("None True False"), "differentiable": words("False False")}
OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    **{name: {**table, **WAYS} for name, table in FEWER.items()},
    "ASGD": {"lambd": words("1e-4 0.1"), "alpha": words("0.75 0.5"), "t0": words("1e6 1"), **WAYS},
    "NAdam": {
        "betas": words("(0.9,0.999) (0.5,0.9)"),
        "momentum_decay": words("4e-3 0.1"),
        "decoupled_weight_decay": words("False True"),
        **WAYS,
    },
    "Adafactor": {
        "beta2_decay": words("-0.8 -0.5"),
        "eps": words("(None,1e-3) (1e-8,1e-2)"),
        "d": words("1.0 0.5"),
        "maximize": words("False True"),
        "foreach": words("None True False"),
    },
    "LBFGS": {
        "max_iter!": words("1 2 4"),
        "history_size": words("1 5"),
        "line_search_fn": words("None 'strong_wolfe'"),
        "tolerance_grad": words("1e-7 1e-2"),
    },
}  # not Muon, which makes its matrices orthogonal in bfloat16: small singular values are rounding's, then large ones
for _name in ("Adadelta", "Adagrad", "Adamax", "ASGD", "NAdam", "Adafactor", "RAdam", "RMSprop"):
    OPTIONS[_name] = {**OPTIONS[_name], "weight_decay": words("0 0.1 0.5")}
OPTIONS["ASGD"]["foreach"] = words("None False")  # PyTorch's foreach=True rounds the rate differently, by 1e-9
for _name in ("SGD", "Adam", "AdamW", "Adagrad"):
    OPTIONS[_name] = {**OPTIONS[_name], "fused": words("None True False")}
# Whose counts are float32 here, and of the parameter's dtype in PyTorch once they were loaded.
WITH_COUNTS = ("ASGD", "NAdam")
RATES = words("0.1 0.01 1.0 0.5")
SCHEDULES: dict[str, dict[str, tuple[str, ...]]] = {
    **{name: table for name, table in SIMPLE.items() if name != "ReduceLROnPlateau"},
    "LambdaLR": {"lr_lambda!": ("lambda n: 0.5 ** n", "lambda n: 1 / (n + 1)")},
    "MultiplicativeLR": {"lr_lambda!": ("lambda n: 0.5", "lambda n: 1 + 1 / (n + 1)")},
    "ConstantLR": {"factor": words("0.5 0.25"), "total_iters": words("1 3")},
    "PolynomialLR": {"total_iters": words("2 5"), "power": words("1.0 2.0 0.5")},
    "CosineAnnealingWarmRestarts": {"T_0!": words("1 2 3"), "T_mult": words("1 2"), "eta_min": words("0.0 0.001")},
    "CyclicLR": {
        "base_lr!": words("0.01 0.001"),
        "max_lr!": words("0.1 0.5"),
        "step_size_up": words("1 2 3"),
        "step_size_down": words("None 1 2"),
        "mode": words("'triangular' 'triangular2' 'exp_range'"),
        "gamma": words("0.5 0.99"),
        "cycle_momentum": words("False True"),
        "scale_mode": words("'cycle' 'iterations'"),
    },
    "OneCycleLR": {
        "max_lr!": words("0.1 1.0"),
        "total_steps!": words("4 7 12"),
        "pct_start": words("0.3 0.5"),
        "anneal_strategy": words("'cos' 'linear'"),
        "cycle_momentum": words("True False"),
        "three_phase": words("False True"),
        "div_factor": words("25.0 4.0"),
    },
}
REQUIRED = words("step_size milestones gamma T_max")
LAYERS = ("Tanh()", "ReLU()", "GELU()", "Sigmoid()", "SiLU()", "LayerNorm(WIDTH)", "BatchNorm1d(WIDTH)", "Dropout(0.0)")


def program(draw: Draw) -> None:
    """A model, data, an optimizer, perhaps a schedule, a scaler and an average, and some steps."""
    dtype = draw.weighted(float64=80, float32=20)
    rows, width = draw.integer(1, 4), draw.integer(1, 3)
    kind = draw.one([name for name in OPTIONS if name != "LBFGS" or dtype == "float64"])
    classes = model(draw, width, dtype, LAYERS[:5] if kind == "LBFGS" else LAYERS)
    if not classes:
        return
    draw.say(f"x = {numbers(draw, (rows, width), dtype)}")
    if draw.chance(0.3):
        draw.say(f"y = torch.tensor({[draw.integer(0, classes - 1) for _ in range(rows)]})")
        loss = "torch.nn.functional.cross_entropy(model(x), y)"
    else:
        draw.say(f"y = {numbers(draw, (rows, classes), dtype)}")
        call = "mse_loss" if kind == "LBFGS" else draw.one(("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"))
        reduction = draw.one(("", "", ", reduction='sum'"))
        loss = f"torch.nn.functional.{call}(model(x), y{reduction})"
    cast = draw.chance(0.5) and dtype == "float32" and kind == "SGD"  # others make a whole step of an error
    if cast:  # from here on values are as exact as this
        draw.say("coarse = torch.zeros(1, dtype=torch.bfloat16)")
        draw.say("model.coarse = coarse")
    named = ", ".join(f"p{position}" for position in range(len(list(draw.session.theirs["model"].parameters()))))
    draw.say(f"{named}, = model.parameters()")
    if not draw.say(f"opt = torch.optim.{kind}({groups(draw, kind)}{options(draw, kind)})"):
        return
    made = schedule(draw, kind)
    if made is None:
        return
    scaled = draw.chance(0.12) and kind != "LBFGS"
    if scaled:
        given = draw.one(("init_scale=4.0", "init_scale=2.0**10, growth_interval=1", "enabled=False", "init_scale=8.0"))
        draw.say(f"scaler = torch.amp.GradScaler('cpu', {given}, backoff_factor={draw.one(('0.5', '0.25'))})")
    averaged = draw.chance(0.15) and average(draw)
    if draw.chance(0.15):
        hook(draw)
    for _ in range(draw.integer(2, 6) if kind != "LBFGS" else draw.integer(1, 3)):  # differences of steps get small
        step(draw, kind, loss, scaled, cast)
        if made:
            metric = f"{draw.integer(0, 3)}.0" if made == "ReduceLROnPlateau" else ""
            draw.say(f"sched.step({metric})")
            draw.say("rates = sched.get_last_lr(), [g['lr'] for g in opt.param_groups]")
        if averaged:
            draw.say("avg.update_parameters(model)")
            draw.say("means = [p.detach() for p in avg.parameters()] + [avg.n_averaged]")
        between(draw, kind, made)
    draw.say("state = opt.state_dict()")
    draw.say("last = [*model.state_dict().values()]")
    if averaged and draw.chance(0.5):
        draw.say("torch.optim.swa_utils.update_bn([x, x * 2], avg)")
        draw.say("buffers = [*avg.state_dict().values()]")
    if made and draw.chance(0.5):
        draw.say("facts = {k: v for k, v in sched.state_dict().items() if k[0] != '_' and 'lambda' not in k}")


def numbers(draw: Draw, shape: tuple[int, ...], dtype: str) -> str:
    """A tensor of numbers that cancel in no sum: an optimizer makes a step of a gradient of 1e-17."""

    def nested(sizes: tuple[int, ...]) -> str:
        if not sizes:
            return f"{draw.rng.uniform(-2, 2):.3f}"
        return f"[{', '.join(nested(sizes[1:]) for _ in range(sizes[0]))}]"

    return f"torch.tensor({nested(shape)}, dtype=torch.{dtype})"


def noise(draw: Draw) -> bool:
    """Whether rounding alone made a gradient: its size, its sign and whether it is 0 are of no order of operations."""
    for scope in (draw.session.theirs, draw.session.ours):
        for name in parameters(draw):
            grad = getattr(scope.get(name), "grad", None)
            if grad is not None:
                sizes = [abs(each) for each in grad.reshape(-1).tolist()]
                least = (1e-10 if "64" in str(grad.dtype) else 1e-3) * max(1.0, *sizes)
                if any(0 < size < least for size in sizes):
                    return True
    return False


def model(draw: Draw, width: int, dtype: str, between: tuple[str, ...]) -> int:
    """A model of drawn parameters under `model`; returns the width of its results, 0 if there is none."""
    layers, of = [], width
    for _ in range(draw.integer(1, 2)):
        out = draw.integer(1, 3)
        layers.append(f"torch.nn.Linear({of}, {out}{draw.one(('', '', ', bias=False'))})")
        of = out
        if draw.chance(0.6):
            between = between if out > 1 else LAYERS[:5]  # the norm of one number is rounding's
            layers.append(f"torch.nn.{draw.one(between).replace('WIDTH', str(of))}")
    if not draw.say(f"model = torch.nn.Sequential({', '.join(layers)}).to(torch.{dtype})"):
        return 0
    values = draw.session.theirs["model"].state_dict()
    held = {name: value for name, value in values.items() if value.is_floating_point() and "running" not in name}
    texts = [f"{name!r}: {numbers(draw, tuple(v.shape), dtype)}" for name, v in held.items()]
    draw.say(f"_ = model.load_state_dict({{{', '.join(texts)}}}, strict=False)")
    return of


def parameters(draw: Draw) -> list[str]:
    """The names of the parameters."""
    return [name for name in draw.session.theirs if name[0] == "p" and name[1:].isdigit()]


def options(draw: Draw, kind: str, share: float = 0.3, form: str = ", {}={}") -> str:
    """Some options, at most one of those that exclude each other."""
    chosen = {name: draw.one(values) for name, values in OPTIONS[kind].items() if draw.chance(share) or name[-1] == "!"}
    chosen = {name.rstrip("!"): value for name, value in chosen.items()}
    if chosen.get("fused") == "True":
        chosen = {name: value for name, value in chosen.items() if name not in ("foreach", "differentiable")}
    if chosen.get("nesterov") == "True" and kind == "SGD":
        chosen |= {"momentum": "0.9", "dampening": "0"}
    rate = draw.one(RATES)
    if draw.chance(0.05) and "foreach" not in chosen and kind != "LBFGS":
        rate = "torch.tensor(0.25, dtype=torch.float64)"
    return "".join(form.format(name, value) for name, value in {"lr": rate, **chosen}.items())


def groups(draw: Draw, kind: str) -> str:
    """The first argument: all parameters, by name, or in groups with options of their own."""
    names = parameters(draw)
    form = draw.weighted(all=50, named=10, groups=25 * (kind != "LBFGS"), list=15)
    if form == "named":
        return "model.named_parameters()"
    if form == "groups":
        shared = ("foreach", "fused", "differentiable", "capturable", "maximize")
        parts = []
        for name in names:
            own = {k: draw.one(v) for k, v in OPTIONS[kind].items() if k not in shared and draw.chance(0.2)}
            if own.get("nesterov") == "True":
                own |= {"momentum": "0.9", "dampening": "0"}
            own |= {"lr": draw.one(RATES)} if draw.chance(0.4) else {}
            parts.append(f"{{'params': [{name}]{''.join(f', {k!r}: {v}' for k, v in own.items())}}}")
        return f"[{', '.join(parts)}]"
    return "model.parameters()" if form == "all" else f"[{', '.join(names)}]"


def one_schedule(draw: Draw, name: str) -> str:
    """The call of a schedule that is no chain."""
    table = SCHEDULES[name]
    chosen = ""
    for option, values in table.items():
        if option.endswith("!") or option in REQUIRED or draw.chance(0.4):
            chosen += f", {option.rstrip('!')}={draw.one(values)}"
    return f"torch.optim.lr_scheduler.{name}(opt{chosen})"


def schedule(draw: Draw, kind: str) -> str | None:
    """A schedule under `sched`, its class; empty if there is none, None if it was refused, in PyTorch halfway."""
    name = draw.weighted(none=35, plateau=8, swa=6, chained=10, sequential=14, one=40)
    plain = [each for each in SCHEDULES if each not in ("CyclicLR", "OneCycleLR")]
    if name == "none":
        return ""
    if name == "plateau":
        kept = {option: values for option, values in SIMPLE["ReduceLROnPlateau"].items() if draw.chance(0.5)}
        chosen = "".join(f", {option}={draw.one(values)}" for option, values in kept.items())
        made = draw.say(f"sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt{chosen})")
        return "ReduceLROnPlateau" if made else None
    if name == "swa":
        strategy = draw.one(("'cos'", "'linear'"))
        call = f"torch.optim.swa_utils.SWALR(opt, swa_lr={draw.one(RATES)}, anneal_epochs={draw.integer(0, 3)}, "
        return "SWALR" if draw.say(f"sched = {call}anneal_strategy={strategy})") else None
    if name == "one":
        name = draw.one(list(SCHEDULES))
        return name if draw.say(f"sched = {one_schedule(draw, name)}") else None
    parts = ", ".join(one_schedule(draw, draw.one(plain)) for _ in range(draw.integer(1, 3)))
    count = parts.count("lr_scheduler.")
    if name == "chained":
        form = draw.one((f"[{parts}]", f"[{parts}], optimizer=opt"))
        return "ChainedScheduler" if draw.say(f"sched = torch.optim.lr_scheduler.ChainedScheduler({form})") else None
    milestones = sorted(draw.rng.sample(range(1, 5), count - 1))
    call = f"torch.optim.lr_scheduler.SequentialLR(opt, [{parts}], milestones={milestones})"
    return "SequentialLR" if draw.say(f"sched = {call}") else None


def average(draw: Draw) -> bool:
    """An average of the model under `avg`."""
    utils = "torch.optim.swa_utils."
    form = draw.one(
        (
            "",
            f", multi_avg_fn={utils}get_ema_multi_avg_fn({draw.one(('0.9', '0.5'))})",
            f", avg_fn={utils}get_ema_avg_fn(0.75)",
            f", multi_avg_fn={utils}get_swa_multi_avg_fn()",
            ", avg_fn=lambda mean, new, count: 0.5 * mean + 0.5 * new",
        )
    )
    return draw.say(f"avg = {utils}AveragedModel(model{form}{draw.one(('', ', use_buffers=True'))})")


def hook(draw: Draw) -> None:
    """A hook that notes what it sees."""
    draw.say("log = []")
    draw.say(
        draw.one(
            (
                "_hook = opt.register_step_pre_hook(lambda o, a, k: log.append(('pre', len(a), sorted(k))))",
                "_hook = opt.register_step_post_hook(lambda o, a, k: log.append(o.param_groups[0]['lr']))",
                "_hook = opt.register_state_dict_pre_hook(lambda o: log.append('saved'))",
                "_hook = opt.register_state_dict_post_hook(lambda o, s: {**s, 'more': 1})",
                "_hook = opt.register_load_state_dict_pre_hook(lambda o, s: log.append(sorted(s)))",
                "_hook = opt.register_load_state_dict_post_hook(lambda o: log.append('loaded'))",
                "_hook = p0.register_hook(lambda grad: grad * 0.5)",
                "_hook = p0.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.sum().item()))",
                "_hook = p0.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(2))",
            )
        )
    )


def step(draw: Draw, kind: str, loss: str, scaled: bool, cast: bool) -> None:
    """Gradients, perhaps of several losses, what is done to them, and the optimizer's step."""
    entered = f"with torch.autocast('cpu', dtype=torch.{draw.one(('bfloat16', 'float16'))}): " if cast else ""
    if draw.chance(0.85):
        draw.say(f"opt.zero_grad({draw.one(('', '', '', 'set_to_none=False', 'set_to_none=True'))})")
    if kind == "LBFGS":
        again = f"[opt.zero_grad(), (f := {loss}).backward(), f][2]"
        draw.say(f"loss = opt.step(lambda: {again})")
        return
    for _ in range(draw.integer(1, 2) if draw.chance(0.25) else 1):
        factor = draw.one(("", "", " / 2"))
        draw.say(f"{entered}loss = {loss}{factor}")
        draw.say("scaler.scale(loss).backward()" if scaled else "loss.backward()")
        if noise(draw):
            raise Finished
    if draw.chance(0.3):
        if scaled:
            draw.say("scaler.unscale_(opt)")
        clip(draw)
    if scaled:
        draw.say("done = scaler.step(opt)")
        draw.say(draw.one(("scaler.update()",) * 5 + ("scaler.update(2.0)",)))
        draw.say("scale = scaler.get_scale(), scaler.state_dict()")
    elif draw.chance(0.08):
        draw.say(f"done = opt.step(lambda: [opt.zero_grad(), (f := {loss}).backward(), f][2])")
    else:
        draw.say("done = opt.step()")


def clip(draw: Draw) -> None:
    """Gradients that are clipped, in each of the ways."""
    utils, given = "torch.nn.utils.", draw.one(("model.parameters()", "[p0]", "p0", "list(model.parameters())"))
    way = draw.one(("", "", ", foreach=True", ", foreach=False"))
    limit = draw.one(words("1.0 0.1 100 0 inf"))
    norm = draw.one(("", "", ", 1", ", inf", ", norm_type=3.0", ", norm_type=0.5"))
    form = draw.weighted(norm=60, value=25, total=15)
    if form == "value":
        draw.say(f"{utils}clip_grad_value_({given}, {draw.one(words('1.0 0.1 0.01'))}{way})")
    elif form == "total":
        draw.say(
            f"total = {utils}get_total_norm([p.grad for p in model.parameters() if p.grad is not None]{norm}{way})"
        )
        draw.say(f"{utils}clip_grads_with_norm_(model.parameters(), {limit}, total{way})")
    else:
        strict = draw.one(("", "", ", error_if_nonfinite=True"))
        draw.say(f"total = {utils}clip_grad_norm_({given}, {limit}{norm}{strict}{way})")


def between(draw: Draw, kind: str, made: str) -> None:
    """What programs do between two steps."""
    choice = draw.weighted(nothing=40, rate=8, freeze=8, save=10, other=8, model=6, schedule=6, half=3, grad=4, drop=3)
    if choice == "rate":
        option = draw.one(("lr", "lr", "weight_decay"))
        draw.say(f"opt.param_groups[-1][{option!r}] = {draw.one(RATES)}")
    elif choice == "freeze":
        draw.say(f"{draw.one(parameters(draw))}.requires_grad_({draw.one(('False', 'True'))})")
    elif choice == "save" and kind not in WITH_COUNTS:
        draw.say("opt.load_state_dict(__import__('copy').deepcopy(opt.state_dict()))")
    elif choice == "other" and not made and kind not in WITH_COUNTS:
        draw.say(f"other = torch.optim.{kind}(opt.param_groups, lr={draw.one(RATES)})")
        if draw.say("other.load_state_dict(opt.state_dict())"):
            draw.say("opt = other")
    elif choice == "model":
        draw.say("weights = {k: v.clone() for k, v in model.state_dict().items()}")
        draw.say("_ = model.load_state_dict({k: v * 0.5 if v.is_floating_point() else v for k, v in weights.items()})")
    elif choice == "schedule" and made:
        draw.say("sched.load_state_dict(sched.state_dict())")
    elif choice == "half":
        draw.say(f"model.{draw.one(('eval', 'train'))}()")
    elif choice == "grad":
        forms = ("None", "torch.ones_like(p0)", "torch.full_like(p0, nan)")
        draw.say(f"p0.grad = {draw.one(forms[: 2 if kind == 'Rprop' else 3])}")  # the sign of nan is not one number
    elif choice == "drop" and "_hook" in draw.session.theirs:
        draw.say("_hook.remove()")
