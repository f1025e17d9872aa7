"""Optimizers and schedulers: steps with drawn options, groups and gradients, states that are saved and loaded."""

from __future__ import annotations

import tritensor

from .drawing import FLOATS, Draw, words

RATES = words("0.1 0.01 1 0 0.5")
OPTIONS = {
    "SGD": {
        "momentum": words("0 0.9 0.5"),
        "dampening": words("0 0.1"),
        "weight_decay": words("0 0.1"),
        "nesterov": words("False True"),
        "maximize": words("False True"),
        "foreach": words("None True False"),
        "fused": words("None None False"),
        "differentiable": words("False"),
    },
    "Adam": {
        "betas": words("(0.9,0.999) (0.5,0.9) [0.8,0.99] (0.0,0.9)"),
        "eps": words("1e-8 1e-3"),
        "weight_decay": words("0 0.1"),
        "amsgrad": words("False True"),
        "maximize": words("False True"),
        "foreach": words("None True False"),
        "fused": words("None None False"),
        "capturable": words("False"),
        "decoupled_weight_decay": words("False True"),
    },
}
_WAYS = {"maximize": words("False True"), "foreach": words("None True False")}
_BETAS = {name: OPTIONS["Adam"][name] for name in ("betas", "eps", "weight_decay")}
# not ASGD and NAdam, whose counts are float32 here and of the parameter's dtype in PyTorch once they were loaded
OPTIONS |= {
    "Adadelta": {"rho": words("0.9 0 1"), "eps": words("1e-6 1e-2"), "weight_decay": words("0 0.1"), **_WAYS},
    "Adagrad": {"lr_decay": words("0 0.5"), "initial_accumulator_value": words("0 0.5"), **_WAYS},
    "Adamax": {**_BETAS, **_WAYS},
    "RAdam": {**_BETAS, "decoupled_weight_decay": words("False True"), **_WAYS},
    "RMSprop": {"alpha": words("0.99 0.5"), "momentum": words("0 0.9"), "centered": words("False True"), **_WAYS},
    "Rprop": {"etas": words("(0.5,1.2) (0.1,2.0)"), "step_sizes": words("(1e-6,50) (0.01,0.1)"), **_WAYS},
}
OPTIONS["AdamW"] = {name: values for name, values in OPTIONS["Adam"].items() if name != "decoupled_weight_decay"}
ODD_OPTIONS = words("-1 1.5 None 'a' (1.0,0.9) (-0.1,0.9) 2 True (0.9,)")
SCHEDULERS: dict[str, dict[str, tuple[str, ...]]] = {
    "StepLR": {"step_size": words("1 2 3"), "gamma": words("0.1 0.5")},
    "MultiStepLR": {"milestones": words("[1,3] [2] (1,1,4)"), "gamma": words("0.1 0.5")},
    "ExponentialLR": {"gamma": words("0.9 0.5 1")},
    "LinearLR": {
        "start_factor": words("0.5 0.25 1.0"),
        "end_factor": words("1.0 0.5"),
        "total_iters": words("1 3 5"),
    },
    "CosineAnnealingLR": {"T_max": words("3 1 10"), "eta_min": words("0.0 0.001")},
    "LambdaLR": {"lr_lambda": ("lambda n: 0.5 ** n", "lambda n: 1 / (n + 1)", "[lambda n: 0.9 ** n]")},
    "ReduceLROnPlateau": {
        "mode": words("'min' 'max'"),
        "factor": words("0.1 0.5"),
        "patience": words("0 1"),
        "threshold": words("1e-4 0.5"),
        "cooldown": words("0 1"),
        "min_lr": words("0 0.05"),
    },
}
REQUIRED = words("step_size milestones gamma T_max lr_lambda")


def program(draw: Draw) -> None:
    """Parameters, an optimizer, perhaps a scheduler, and steps with everything that is done between them."""
    parameters = []
    kind = draw.one([name for name in OPTIONS if hasattr(tritensor.optim, name)])
    # PyTorch computes steps in the dtype of the parameter: half precision is rounded after every operation
    dtypes = FLOATS[:2]
    dtype = draw.one(dtypes)
    for i in range(draw.integer(1, 3)):
        grad = ".requires_grad_()" if draw.chance(0.96) else ""
        shape = draw.shape(3, draw.integer(0, 2))
        if draw.chance(0.1):
            dtype = draw.one(dtypes)
        draw.say(f"x{i} = {draw.tensor(shape, dtype, special=0.0, layout=False)}{grad}")
        parameters.append(f"x{i}")
    made = draw.say(f"opt = torch.optim.{kind}({groups(draw, kind, parameters)}{options(draw, kind)})")
    if not made:
        return
    scheduler = ""
    if draw.chance(0.35):
        scheduler = draw.one([name for name in SCHEDULERS if hasattr(tritensor.optim.lr_scheduler, name)])
        chosen = "".join(
            f", {name}={draw.one(values)}"
            for name, values in SCHEDULERS[scheduler].items()
            if name in REQUIRED or draw.chance(0.5)
        )
        if not draw.say(f"sched = torch.optim.lr_scheduler.{scheduler}(opt{chosen})"):
            scheduler = ""
    for _ in range(draw.integer(1, 4)):
        gradients(draw, parameters)
        draw.say(
            draw.one(("opt.step()",) * 6 + ("f1 = opt.step(lambda: 3)", "f1 = opt.step(closure=lambda: x0.sum())"))
        )
        if scheduler:
            metric = str(draw.integer(0, 3)) if scheduler == "ReduceLROnPlateau" else ""
            draw.say(f"sched.step({metric})")
            draw.say("f2 = sched.get_last_lr()")
        between(draw, kind, scheduler)
    draw.say("f3 = opt.state_dict()")
    if draw.chance(0.3):
        draw.say("f4 = repr(opt)")


def options(draw: Draw, kind: str) -> str:
    """The keyword arguments of an optimizer or of a group."""
    chosen = []
    if draw.chance(0.9):
        rate = draw.one(RATES) if draw.chance(0.93) else draw.one(ODD_OPTIONS)
        if draw.chance(0.05) and not draw.names(lambda t: t.dtype.itemsize > 4):  # it is a float32
            rate = "torch.tensor(0.25)"
        chosen.append(f"lr={rate}")
    for name, values in OPTIONS[kind].items():
        if draw.chance(0.3):
            usual = name in ("foreach", "fused", "capturable", "differentiable") or draw.chance(0.97)
            chosen.append(f"{name}={draw.one(values if usual else ODD_OPTIONS)}")
    return "".join(f", {text}" for text in chosen)


def groups(draw: Draw, kind: str, parameters: list[str]) -> str:
    """The first argument: parameters in a list, in groups, by name; sometimes something odd."""
    form = draw.weighted(list=60, groups=20, iterator=6, named=5, odd=4)
    inner = ", ".join(parameters)
    if form == "groups":
        parts = [f"{{'params': [{name}]{group_options(draw, kind)}}}" for name in parameters]
        return f"[{', '.join(parts)}]"
    if form == "named":
        named = ", ".join(f"('p{name}', {name})" for name in parameters)
        return f"[{named}]"
    if form == "iterator":
        return f"iter([{inner}])"
    if form == "odd":
        return draw.one(("[]", "x0", "None", "[1]", "[x0 * 1]", "{}", "[{'params': []}]"))
    return f"[{inner}]"


def group_options(draw: Draw, kind: str) -> str:
    """Options of one group, as items of a dict."""
    chosen = []
    for name, values in {"lr": RATES, **OPTIONS[kind]}.items():
        if name not in ("foreach", "fused", "capturable", "differentiable") and draw.chance(0.25):
            chosen.append(f", '{name}': {draw.one(values)}")
    return "".join(chosen)


def gradients(draw: Draw, parameters: list[str]) -> None:
    """Gradients by a backward pass or written by hand; some parameters have none."""
    coarse = any(draw.value(name).dtype.itemsize < 4 for name in parameters)  # small differences would add up
    if draw.chance(0.5) and not coarse:
        terms = " + ".join(
            f"(({name} - {draw.integer(-2, 2) / 2}) ** 2).sum()" for name in parameters if draw.chance(0.85)
        )
        if terms:
            draw.say(f"({terms}).backward()")
        return
    for name in parameters:
        if draw.chance(0.8):
            value = draw.value(name)
            dtype = str(value.dtype).rpartition(".")[2] if draw.chance(0.97) else draw.dtype()
            shape = tuple(value.shape) if draw.chance(0.97) else draw.shape()
            draw.say(f"{name}.grad = {draw.tensor(shape, dtype, special=0.0, layout=draw.chance(0.2))}")


def between(draw: Draw, kind: str, scheduler: str) -> None:
    """What programs do between two steps."""
    choice = draw.weighted(
        nothing=20, zero=35, rate=10, add=5, state=8, load=10, clip=12, freeze=4, groups=4, schedule=4
    )
    if choice == "zero":
        draw.say(f"opt.zero_grad({draw.one(('', '', 'set_to_none=False', 'False', 'set_to_none=True'))})")
    elif choice == "rate":
        option = draw.one(("lr", "lr", "weight_decay", "lrr"))
        draw.say(f"opt.param_groups[0][{option!r}] = {draw.one(RATES)}")
    elif choice == "add" and not scheduler:  # its next step fails with a part of it done
        name = draw.fresh("x")
        draw.say(f"{name} = {draw.tensor((2,), 'float32', 0.0, layout=False)}.requires_grad_()")
        draw.say(f"opt.add_param_group({{'params': {draw.one((name, f'[{name}]', 'x0'))}{group_options(draw, kind)}}})")
        gradients(draw, [name])
    elif choice == "state":
        draw.say("f3 = opt.state_dict()")
    elif choice == "load":
        other = f"torch.optim.{kind}([{', '.join(draw.names(lambda t: t.requires_grad) or ['x0'])}], lr=0.25)"
        draw.say(f"opt2 = {other}")
        if draw.say("opt2.load_state_dict(opt.state_dict())"):
            draw.say("opt = opt2")
    elif choice == "clip":
        names = ", ".join(draw.names(lambda t: t.is_leaf))
        call = f"torch.nn.utils.clip_grad_norm_([{names}], {draw.one(('1.0', '0.1', '100', 'inf'))}"
        if draw.chance(0.5):
            call = f"torch.nn.utils.clip_grad_value_([{names}], {draw.one(('1.0', '0.1'))}"
        extra = f", norm_type={draw.one(('1', 'inf', '3.0'))}" if "norm_" in call and draw.chance(0.4) else ""
        draw.say(f"{draw.fresh('r')} = {call}{extra})")
    elif choice == "freeze":
        draw.say(f"x0.requires_grad_({draw.one(('False', 'True'))})")
    elif choice == "groups":
        draw.say("f5 = [{k: v for k, v in g.items() if k != 'params'} for g in opt.param_groups]")
    elif choice == "schedule" and scheduler:
        draw.say("f6 = {k: v for k, v in sched.state_dict().items() if not k.startswith('_')}")
