"""Schedules with random options beside PyTorch's, over 50 steps."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pytest

import tritensor

pytestmark = pytest.mark.peer


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def one(draw: random.Random, name: str) -> dict[str, Any]:
    """Options of a schedule."""
    options: dict[str, Any] = {}
    if name in ("LambdaLR", "MultiplicativeLR"):
        slope = draw.uniform(0.01, 0.1)
        options["lr_lambda"] = draw.choice(
            [lambda epoch: 1 - slope / (epoch + 1), [lambda epoch: 0.95, lambda epoch: 1 / (1 + slope * epoch)]]
        )
    elif name == "StepLR":
        options = {"step_size": draw.randint(1, 9), "gamma": draw.uniform(0.5, 1.0)}
    elif name == "MultiStepLR":
        options = {"milestones": [draw.randint(1, 40) for _ in range(4)], "gamma": draw.uniform(0.5, 1.0)}
    elif name == "ConstantLR":
        options = {"factor": draw.uniform(0.1, 1.0), "total_iters": draw.randint(1, 30)}
    elif name == "LinearLR":
        options = {"start_factor": draw.uniform(0.1, 1.0), "end_factor": draw.random()}
        options["total_iters"] = draw.randint(1, 60)
    elif name == "ExponentialLR":
        options = {"gamma": draw.uniform(0.8, 1.1)}
    elif name == "PolynomialLR":
        options = {"total_iters": draw.randint(1, 60), "power": draw.uniform(0.5, 3.0)}
    elif name == "CosineAnnealingLR":
        options = {"T_max": draw.randint(2, 30), "eta_min": draw.choice([0.0, 0.01])}
    elif name == "CosineAnnealingWarmRestarts":
        options = {"T_0": draw.randint(1, 12), "T_mult": draw.randint(1, 3), "eta_min": draw.choice([0, 0.01])}
    return options


SIMPLE = (
    "LambdaLR",
    "MultiplicativeLR",
    "StepLR",
    "MultiStepLR",
    "ConstantLR",
    "LinearLR",
    "ExponentialLR",
    "PolynomialLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
)
CYCLES = ("CyclicLR", "OneCycleLR")


def cycle(draw: random.Random, name: str, groups: int) -> dict[str, Any]:
    options: dict[str, Any] = {"cycle_momentum": draw.random() < 0.7}
    if name == "CyclicLR":
        options |= {"base_lr": draw.choice([0.01, [0.01 * (k + 1) for k in range(groups)]]), "max_lr": 0.5}
        options |= {"step_size_up": draw.randint(1, 15), "step_size_down": draw.choice([None, draw.randint(1, 9)])}
        options |= {"mode": draw.choice(["triangular", "triangular2", "exp_range"]), "gamma": draw.uniform(0.9, 1.0)}
        if draw.random() < 0.3:
            options |= {"scale_fn": lambda x: 1 / (1 + x), "scale_mode": draw.choice(["cycle", "iterations"])}
    else:
        options |= draw.choice([{"total_steps": 50}, {"epochs": 10, "steps_per_epoch": 5}])
        options |= {"max_lr": draw.choice([0.3, [0.1 * (k + 1) for k in range(groups)]])}
        options |= {"pct_start": draw.uniform(0.2, 0.4), "anneal_strategy": draw.choice(["cos", "linear"])}
        options |= {"three_phase": draw.random() < 0.5, "div_factor": draw.uniform(2, 30)}
    return options


def make(library: Any, name: str, seed: int) -> Any:
    """An optimizer of two groups and a schedule, both drawn."""
    draw = random.Random(f"{name} {seed}")
    groups = [{"params": [library.nn.Parameter(library.zeros(1))], "lr": draw.uniform(0.1, 1.0)} for _ in range(2)]
    if draw.random() < 0.3:
        groups[0]["lr"] = library.tensor(groups[0]["lr"], dtype=library.float64)
    kind = draw.choice([library.optim.SGD, library.optim.Adam])
    optimizer = kind(groups, lr=0.1, **({"momentum": 0.5} if kind is library.optim.SGD else {}))
    schedules = library.optim.lr_scheduler
    if name in SIMPLE:
        return getattr(schedules, name)(optimizer, **one(draw, name))
    if name in CYCLES:
        return getattr(schedules, name)(optimizer, **cycle(draw, name, 2))
    parts = [getattr(schedules, kind) for kind in draw.sample(SIMPLE, 3)]
    made = [part(optimizer, **one(draw, part.__name__)) for part in parts]
    if name == "ChainedScheduler":
        return schedules.ChainedScheduler(made)
    if draw.random() < 0.4:  # one in the other
        inner = schedules.SequentialLR(optimizer, made[:2], [draw.randint(1, 9)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it steps the inner one a second time
            return schedules.SequentialLR(optimizer, [inner, made[2]], [draw.randint(10, 30)])
    return schedules.SequentialLR(optimizer, made, sorted(draw.sample(range(1, 40), 2)))


def numbers(schedule: Any) -> list[float]:
    groups = schedule.optimizer.param_groups
    rates = [float(rate) for rate in schedule.get_last_lr()] + [float(group["lr"]) for group in groups]
    return rates + [float(group["betas"][0] if "betas" in group else group["momentum"]) for group in groups]


def step(schedule: Any, *epoch: Any) -> None:
    schedule.optimizer.step()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schedule.step(*epoch)


@pytest.mark.parametrize("name", [*SIMPLE, *CYCLES, "SequentialLR", "ChainedScheduler"])
def test_fifty_steps_with_random_options(torch: Any, name: str) -> None:
    for seed in range(12):
        ours, theirs = make(tritensor, name, seed), make(torch, name, seed)
        for number in range(50):
            assert numbers(ours) == pytest.approx(numbers(theirs), rel=1e-6, abs=1e-12), (seed, number)
            if number == 20:
                assert ours.state_dict().keys() == theirs.state_dict().keys()
            step(ours)
            step(theirs)
        assert [type(rate).__name__ for rate in ours.get_last_lr()] == [type(r).__name__ for r in theirs.get_last_lr()]


@pytest.mark.parametrize("name", [*SIMPLE, *CYCLES])
def test_epochs_that_are_given(torch: Any, name: str) -> None:
    for seed in range(4):
        ours, theirs = make(tritensor, name, seed), make(torch, name, seed)
        epochs = [3, 4, 17, 2, 49] + ([0.5, 7.25, 30.75] if "Restarts" in name else [])
        for epoch in epochs:
            step(ours, epoch)
            step(theirs, epoch)
            assert numbers(ours) == pytest.approx(numbers(theirs), rel=1e-6, abs=1e-12), (seed, epoch)
            assert ours.last_epoch == theirs.last_epoch


@pytest.mark.parametrize("name", [*SIMPLE, *CYCLES, "SequentialLR", "ChainedScheduler"])
def test_a_state_of_one_goes_on_in_the_other(torch: Any, name: str) -> None:
    for seed in range(20, 24):
        ours, theirs = make(tritensor, name, seed), make(torch, name, seed)
        if any(not isinstance(group["lr"], float) for group in ours.optimizer.param_groups):
            continue  # tensors of another library
        for _ in range(9):
            step(theirs)
        state = theirs.state_dict()
        ours.load_state_dict(state)
        for mine, other in zip(ours.optimizer.param_groups, theirs.optimizer.param_groups, strict=True):
            mine.update({key: value for key, value in other.items() if key != "params"})
        for _ in range(9):
            step(ours)
            step(theirs)
            assert numbers(ours) == pytest.approx(numbers(theirs), rel=1e-9, abs=1e-12), seed


BAD = {
    "factor": lambda s, o: s.ConstantLR(o, factor=2.0),
    "no function": lambda s, o: s.MultiplicativeLR(o, 3),
    "functions": lambda s, o: s.MultiplicativeLR(o, [lambda epoch: 1.0] * 3),
    "T_0": lambda s, o: s.CosineAnnealingWarmRestarts(o, 0),
    "T_mult": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, T_mult=0),
    "eta_min": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, eta_min=None),
    "negative epoch": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3).step(-1),
    "mode": lambda s, o: s.CyclicLR(o, 0.1, 1.0, mode="round"),
    "bounds": lambda s, o: s.CyclicLR(o, [0.1, 0.2], 1.0),
    "no momentum": lambda s, o: s.CyclicLR(o, 0.1, 1.0),
    "no optimizer": lambda s, o: s.CyclicLR(3, 0.1, 1.0),
    "no steps": lambda s, o: s.OneCycleLR(o, 0.1, epochs=3),
    "steps": lambda s, o: s.OneCycleLR(o, 0.1, total_steps=0),
    "epochs": lambda s, o: s.OneCycleLR(o, 0.1, epochs=1.5, steps_per_epoch=3),
    "steps of an epoch": lambda s, o: s.OneCycleLR(o, 0.1, epochs=3, steps_per_epoch=-1),
    "share": lambda s, o: s.OneCycleLR(o, 0.1, 10, pct_start=2.0),
    "strategy": lambda s, o: s.OneCycleLR(o, 0.1, 10, anneal_strategy="sine"),
    "one cycle without momentum": lambda s, o: s.OneCycleLR(o, 0.1, 10),
    "too many steps": lambda s, o: [s.OneCycleLR(o, 0.1, 1, cycle_momentum=False).step(5)],
    "nothing in sequence": lambda s, o: s.SequentialLR(o, [], []),
    "nothing chained": lambda s, o: s.ChainedScheduler([]),
    "no schedule": lambda s, o: s.SequentialLR(o, [3], []),
    "plateau": lambda s, o: s.ChainedScheduler([s.ReduceLROnPlateau(o)]),
    "another optimizer": lambda s, o: s.ChainedScheduler([s.StepLR(o, 1)], type("Other", (), {})()),
    "milestones": lambda s, o: s.SequentialLR(o, [s.StepLR(o, 1)], [3]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BAD)
def test_errors_have_pytorchs_words(torch: Any, name: str) -> None:
    raised = []
    for library in (torch, tritensor):
        kind = library.optim.Adagrad if library is torch else Plain
        optimizer = kind([library.nn.Parameter(library.zeros(1))], lr=0.1)
        with pytest.raises((ValueError, TypeError)) as found:
            BAD[name](library.optim.lr_scheduler, optimizer)
        raised.append((found.type, str(found.value).replace("Adagrad", "Plain")[:100]))
    assert raised[0] == raised[1]


class Plain(tritensor.optim.Optimizer):
    """An optimizer without momentum."""

    def __init__(self, params: Any, lr: float) -> None:
        super().__init__(params, {"lr": lr})
