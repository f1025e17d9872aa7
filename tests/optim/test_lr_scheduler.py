"""Learning rate schedules: the rates of each epoch, used together, saved and resumed, against PyTorch's."""

from __future__ import annotations

import math
import pickle

import pytest

import tritensor as torch
from tritensor import nn, optim
from tritensor.optim import lr_scheduler


class Inverse:
    """A callable object: its attributes are saved with the schedule."""

    def __init__(self, slope):
        self.slope = slope

    def __call__(self, epoch):
        return 1 / (1 + self.slope * epoch)


def cosine(epoch):
    return 0.1 + (1 - 0.1) * (1 + math.cos(math.pi * epoch / 4)) / 2


# Each with what it makes of an initial rate of 1.
SCHEDULES = {
    "lambda": (lambda module, opt: module.LambdaLR(opt, Inverse(0.5)), lambda epoch: 1 / (1 + 0.5 * epoch)),
    "step": (lambda module, opt: module.StepLR(opt, 3, gamma=0.5), lambda epoch: 0.5 ** (epoch // 3)),
    "multi": (
        lambda module, opt: module.MultiStepLR(opt, [2, 5, 5], gamma=0.5),
        lambda epoch: 0.5 ** sum(epoch >= milestone for milestone in (2, 5, 5)),
    ),
    "exponential": (lambda module, opt: module.ExponentialLR(opt, 0.9), lambda epoch: 0.9**epoch),
    "linear": (
        lambda module, opt: module.LinearLR(opt, 0.2, 0.8, total_iters=6),
        lambda epoch: 0.2 + 0.6 * min(epoch, 6) / 6,
    ),
    "cosine": (lambda module, opt: module.CosineAnnealingLR(opt, 4, eta_min=0.1), cosine),
}


def optimizer(*rates):
    return optim.SGD([{"params": nn.Parameter(torch.zeros(1)), "lr": rate} for rate in rates])


def run(schedule, opt, epochs):
    rates = []
    for _ in range(epochs):
        rates.append([group["lr"] for group in opt.param_groups])
        opt.step()
        schedule.step()
    return rates


@pytest.mark.parametrize("name", SCHEDULES)
def test_rates_follow_the_formula(name):
    make, formula = SCHEDULES[name]
    opt = optimizer(1.0)
    rates = [rate for (rate,) in run(make(lr_scheduler, opt), opt, 20)]
    assert rates == pytest.approx([formula(epoch) for epoch in range(20)], rel=1e-9)


@pytest.mark.parametrize("name", [name for name in SCHEDULES if name != "cosine"])
def test_every_group_has_its_own_rate(name):
    make, _ = SCHEDULES[name]
    opt = optimizer(1.0, 3.0)
    for one, three in run(make(lr_scheduler, opt), opt, 8):
        assert three == pytest.approx(3 * one)


def test_schedules_multiply():
    opt = optimizer(1.0)
    schedules = [
        lr_scheduler.ExponentialLR(opt, 0.9),
        lr_scheduler.StepLR(opt, 2, 0.5),
        lr_scheduler.LinearLR(opt, 0.5),
    ]
    for epoch in range(6):
        expected = 0.9**epoch * 0.5 ** (epoch // 2) * (0.5 + 0.5 * min(epoch, 5) / 5)
        assert opt.param_groups[0]["lr"] == pytest.approx(expected)
        opt.step()
        for schedule in schedules:
            schedule.step()


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_saved_schedule_goes_on_where_it_was(name):
    make, _ = SCHEDULES[name]
    reference = optimizer(1.0)
    expected = run(make(lr_scheduler, reference), reference, 12)
    first = optimizer(1.0)
    schedule = make(lr_scheduler, first)
    rates = run(schedule, first, 7)
    saved = pickle.loads(pickle.dumps((first.state_dict(), schedule.state_dict())))
    second = optimizer(1.0)
    resumed = make(lr_scheduler, second)
    second.load_state_dict(saved[0])
    resumed.load_state_dict(saved[1])
    assert resumed.get_last_lr() == [group["lr"] for group in second.param_groups]
    assert rates + run(resumed, second, 5) == [pytest.approx(rate) for rate in expected]


def test_resuming_by_epoch():
    opt = optimizer(1.0)
    with pytest.raises(KeyError, match=r"param 'initial_lr' is not specified in param_groups\[0\] when resuming"):
        lr_scheduler.StepLR(opt, 3, last_epoch=4)
    opt.param_groups[0]["initial_lr"] = 1.0
    for expected, make in (  # the rate of the third epoch, from 0.5 in the second
        (0.25, lambda: lr_scheduler.StepLR(opt, 3, gamma=0.5, last_epoch=2)),
        (0.05, lambda: lr_scheduler.MultiStepLR(opt, [3], last_epoch=2)),
        (0.5, lambda: lr_scheduler.LinearLR(opt, 0.5, last_epoch=2)),
        (3.0, lambda: lr_scheduler.LambdaLR(opt, lambda epoch: epoch, last_epoch=2)),
        (0.5, lambda: lr_scheduler.ExponentialLR(opt, 0.5, last_epoch=2)),
        (0.5, lambda: lr_scheduler.CosineAnnealingLR(opt, 3, last_epoch=2)),
    ):
        opt.param_groups[0]["lr"] = 0.5
        assert make().get_last_lr() == [expected]


def test_a_rate_keeps_its_type():
    opt = optimizer(1)
    schedule = lr_scheduler.StepLR(opt, 2, gamma=0.5)
    assert [type(rate) for rate in schedule.base_lrs + schedule.get_last_lr()] == [int, int]
    opt.step()
    schedule.step()
    assert type(schedule.get_last_lr()[0]) is int
    schedule.step()
    assert schedule.get_last_lr() == [0.5]


@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_rate_in_a_tensor_stays_one(shape):
    rate = torch.ones(shape)
    opt = optimizer(rate)
    schedule = lr_scheduler.StepLR(opt, 1, gamma=0.5)
    before = schedule.get_last_lr()[0]
    opt.step()
    schedule.step()
    assert rate.item() == 0.5 and opt.param_groups[0]["lr"] is rate
    # copies, of which none is the tensor that is changed
    assert [found.item() for found in (before, *schedule.get_last_lr(), *schedule.base_lrs)] == [1.0, 0.5, 1.0]
    assert before.shape == shape and opt.param_groups[0]["initial_lr"].item() == 1.0


@pytest.mark.parametrize(
    "make",
    [
        lambda opt: lr_scheduler.LambdaLR(opt, lambda epoch: 0.5**epoch),
        lambda opt: lr_scheduler.CosineAnnealingLR(opt, 1),
    ],
)
def test_groups_that_are_added_after_a_schedule_that_needs_all(make):
    opt = optimizer(1.0)
    schedule = make(opt)
    opt.step()
    schedule.step()
    opt.add_param_group({"params": nn.Parameter(torch.zeros(1)), "lr": 2.0})
    with pytest.raises(ValueError, match=r"^zip\(\) argument 2 is (shorter|longer) than argument 1\n.*made \("):
        schedule.step()
    assert opt.param_groups[1]["lr"] == 2.0


def test_factors_that_are_no_number_are_compared_as_in_pytorch():
    opt = optimizer(1.0)
    assert lr_scheduler.LinearLR(opt, 0.5, end_factor=float("nan")).get_last_lr() == [0.5]
    assert lr_scheduler.LinearLR(optimizer(1.0), float("nan")).get_last_lr() != [1.0]


def test_attributes_of_a_callable_object_are_saved():
    opt = optimizer(1.0, 1.0)
    schedule = lr_scheduler.LambdaLR(opt, [Inverse(0.5), lambda epoch: 1.0])
    state = schedule.state_dict()
    assert state["lr_lambdas"] == [{"slope": 0.5}, None]
    other = lr_scheduler.LambdaLR(optimizer(1.0, 1.0), [Inverse(9.0), lambda epoch: 1.0])
    other.load_state_dict(state)
    assert other.lr_lambdas[0].slope == 0.5


def test_a_step_before_the_optimizers_warns():
    opt = optimizer(1.0)
    schedule = lr_scheduler.ExponentialLR(opt, 0.9)
    with pytest.warns(
        UserWarning, match=r"Detected call of `lr_scheduler.step\(\)` before `optimizer.step\(\)`"
    ) as caught:
        schedule.step()
    assert caught[0].filename == __file__
    schedule.step()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda opt: lr_scheduler.StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (lambda opt: lr_scheduler.ReduceLROnPlateau(3), TypeError, "int is not an Optimizer"),
        (lambda opt: lr_scheduler.LambdaLR(opt, [abs, abs]), ValueError, "Expected 1 lr_lambdas, but got 2"),
        (
            lambda opt: lr_scheduler.LinearLR(opt, 0),
            ValueError,
            "Starting multiplicative factor expected to be greater",
        ),
        (
            lambda opt: lr_scheduler.LinearLR(opt, 1, 2),
            ValueError,
            "Ending multiplicative factor expected to be between",
        ),
        (lambda opt: lr_scheduler.ReduceLROnPlateau(opt, factor=1.0), ValueError, "Factor should be < 1.0."),
        (lambda opt: lr_scheduler.ReduceLROnPlateau(opt, "x"), ValueError, "mode x is unknown!"),
        (
            lambda opt: lr_scheduler.ReduceLROnPlateau(opt, threshold_mode="x"),
            ValueError,
            "threshold mode x is unknown!",
        ),
        (lambda opt: lr_scheduler.ReduceLROnPlateau(opt, None), TypeError, "can only concatenate str"),
        (lambda opt: lr_scheduler.ReduceLROnPlateau(opt, min_lr=[1, 2]), ValueError, "expected 1 min_lrs, got 2"),
        (lambda opt: lr_scheduler.LRScheduler(opt), NotImplementedError, r"LRScheduler defines no get_lr\(\)"),
    ],
)
def test_misuse(make, error, words):
    with pytest.raises(error, match=words):
        make(optimizer(1.0))


MEASURED = [5.0, 4.0, 4.0, 3.99999, 4.5, 3.0, 3.1, 3.1, 3.1, float("nan"), 3.1, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0]
PLATEAUS = {
    "min": {"patience": 1, "factor": 0.5},
    "max": {"mode": "max", "patience": 2, "factor": 0.5},
    "abs": {"patience": 0, "factor": 0.5, "threshold_mode": "abs", "threshold": 0.7},
    "max-abs": {"mode": "max", "patience": 0, "threshold_mode": "abs", "threshold": 0.05},
    "cooldown": {"patience": 0, "factor": 0.5, "cooldown": 2},
    "bounded": {"patience": 0, "factor": 0.1, "min_lr": 0.02},
    "bounded each": {"patience": 0, "factor": 0.1, "min_lr": [0.5]},
    "eps": {"patience": 0, "factor": 0.5, "eps": 0.2},
}


def test_plateaus():
    opt = optimizer(1.0)
    schedule = lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=1, cooldown=1)
    rates = []
    for value in [3.0, 2.0, 2.0, torch.tensor(2.0), 2.0, 2.0, 2.0, 1.0]:
        schedule.step(value)
        rates.append(schedule.get_last_lr()[0])
    # two epochs without improvement are one too many; the one after a reduction does not count
    assert rates == [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25]
    assert not schedule.in_cooldown
    other = lr_scheduler.ReduceLROnPlateau(optimizer(1.0))
    other.load_state_dict(schedule.state_dict())
    assert (other.best, other.patience, other.last_epoch) == (1.0, 1, 8)


def test_nothing_is_better_by_more_than_all_of_it():
    schedule = lr_scheduler.ReduceLROnPlateau(optimizer(1.0), threshold=1, patience=0)
    schedule.step(1.0)
    schedule.step(0.5)
    assert schedule.best == float("inf") and schedule.get_last_lr() == [pytest.approx(0.01)]


def test_plateaus_know_the_bounds_of_groups_that_are_added():
    opt = optimizer(1.0)
    one = lr_scheduler.ReduceLROnPlateau(opt, patience=0, min_lr=0.5)
    each = lr_scheduler.ReduceLROnPlateau(opt, patience=0, min_lr=[0.5])
    opt.add_param_group({"params": nn.Parameter(torch.zeros(1)), "lr": 2.0})
    one.step(1.0)
    one.step(1.0)
    assert [group["lr"] for group in opt.param_groups] == [0.5, 0.5]
    each.step(1.0)
    with pytest.raises(RuntimeError, match=r"^The number of param groups in the `optimizer` \(2\) differs"):
        each.step(1.0)


COMMON = {"base_lrs", "last_epoch", "_step_count", "_is_initial", "_get_lr_called_within_step", "_last_lr"}
KEYS = {
    "lambda": COMMON | {"lr_lambdas"},
    "step": COMMON | {"step_size", "gamma"},
    "multi": COMMON | {"milestones", "gamma"},
    "exponential": COMMON | {"gamma"},
    "linear": COMMON | {"start_factor", "end_factor", "total_iters"},
    "cosine": COMMON | {"T_max", "eta_min"},
    "plateau": [  # in PyTorch's order
        *("factor", "default_min_lr", "min_lrs", "patience", "cooldown", "eps", "last_epoch", "_last_lr", "mode_worse"),
        *("mode", "threshold", "threshold_mode", "best", "cooldown_counter", "num_bad_epochs"),
    ],
}


@pytest.mark.parametrize("name", KEYS)
def test_keys_of_a_saved_schedule(name):
    make = SCHEDULES.get(name, (lambda module, opt: module.ReduceLROnPlateau(opt), None))[0]
    schedule = make(lr_scheduler, optimizer(1.0))
    keys = list(schedule.state_dict())
    assert keys == KEYS[name] if name == "plateau" else set(keys) == KEYS[name]
    assert not schedule.state_dict().get("_is_initial") and not schedule.state_dict().get("_get_lr_called_within_step")


def test_get_lr_can_see_that_step_calls_it():
    class Seen(lr_scheduler.LRScheduler):
        def get_lr(self):
            assert self._get_lr_called_within_step and self._is_initial is (self.last_epoch == 0)
            return list(self.base_lrs)

    schedule = Seen(optimizer(1.0))
    schedule.optimizer.step()
    schedule.step()
    assert schedule.last_epoch == 1


# ---- against PyTorch ------------------------------------------------------------------------------------------


def their_optimizer(peer):
    return peer.optim.SGD([peer.nn.Parameter(peer.zeros(1))], lr=1.0)


@pytest.mark.peer
@pytest.mark.parametrize("name", SCHEDULES)
def test_rates_equal_pytorchs(name):
    peer = pytest.importorskip("torch")
    make, _ = SCHEDULES[name]
    ours, theirs = optimizer(1.0), their_optimizer(peer)
    expected = run(make(peer.optim.lr_scheduler, theirs), theirs, 30)
    assert run(make(lr_scheduler, ours), ours, 30) == [pytest.approx(rates, rel=1e-12) for rates in expected]


@pytest.mark.peer
@pytest.mark.parametrize("name", PLATEAUS)
def test_plateaus_equal_pytorchs(name):
    peer = pytest.importorskip("torch")
    ours, theirs = optimizer(1.0), their_optimizer(peer)
    one = lr_scheduler.ReduceLROnPlateau(ours, **PLATEAUS[name])
    other = peer.optim.lr_scheduler.ReduceLROnPlateau(theirs, **PLATEAUS[name])
    for value in MEASURED:
        one.step(value)
        other.step(value)
        assert one.get_last_lr() == pytest.approx(other.get_last_lr()), value


@pytest.mark.peer
@pytest.mark.parametrize("name", KEYS)
def test_schedules_saved_by_one_go_on_in_the_other(name):
    peer = pytest.importorskip("torch")
    make = SCHEDULES.get(name, (lambda module, opt: module.ReduceLROnPlateau(opt), None))[0]
    schedules = [make(lr_scheduler, optimizer(1.0)), make(peer.optim.lr_scheduler, their_optimizer(peer))]
    for schedule in schedules:
        schedule.optimizer.step()
        schedule.step(*([1.0] if name == "plateau" else []))
    ours, theirs = (schedule.state_dict() for schedule in schedules)
    assert ours.keys() == theirs.keys()
    schedules[0].load_state_dict(theirs)
    schedules[1].load_state_dict(ours)
    for schedule in schedules:
        schedule.step(*([2.0] if name == "plateau" else []))
    assert schedules[0].get_last_lr() == pytest.approx(schedules[1].get_last_lr())


@pytest.mark.parametrize("name", [name for name in SCHEDULES if name not in ("lambda", "linear")])
def test_whole_rates_stay_whole_until_they_are_multiplied(name):
    opt = optimizer(1)
    schedule = SCHEDULES[name][0](lr_scheduler, opt)
    assert [type(rate) for rate in (*schedule.base_lrs, *schedule.get_last_lr())] == [int, int]
    if name in ("step", "multi"):
        opt.step()
        schedule.step()
        assert type(schedule.get_last_lr()[0]) is int
