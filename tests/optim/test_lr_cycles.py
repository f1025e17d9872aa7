"""Schedules that rise and fall, and those made of others: literal rates, momenta, states, warnings."""

from __future__ import annotations

import copy

import pytest

import tritensor as torch
from tritensor import nn, optim
from tritensor.optim import lr_scheduler


def sgd(*rates, **options):
    return optim.SGD([{"params": nn.Parameter(torch.zeros(1)), "lr": rate} for rate in rates or (1.0,)], **options)


def run(schedule, count, key="lr"):
    found = []
    for _ in range(count):
        found.append(schedule.optimizer.param_groups[0][key])
        schedule.optimizer.step()
        schedule.step()
    return pytest.approx(found, abs=1e-12)


def test_a_constant_share_of_the_rate():
    assert run(lr_scheduler.ConstantLR(sgd(), 0.5, 2), 4) == [0.5, 0.5, 1, 1]


def test_factors_of_each_epoch():
    assert run(lr_scheduler.MultiplicativeLR(sgd(), lambda epoch: epoch), 4) == [1, 1, 2, 6]


def test_a_polynomial():
    assert run(lr_scheduler.PolynomialLR(sgd(), 4, power=2.0), 6) == [1, 0.5625, 0.25, 0.0625, 0, 0]


def test_descents_that_begin_again():
    schedule = lr_scheduler.CosineAnnealingWarmRestarts(sgd(), 2, T_mult=2, eta_min=0.5)
    assert run(schedule, 7) == [1, 0.75, 1, 0.9267766952966369, 0.75, 0.5732233047033631, 1]
    for epoch, rate in ((1, 0.75), (4, 0.75), (2.5, 0.9809698831278217), (0, 1)):
        schedule.step(epoch)
        assert schedule.get_last_lr() == pytest.approx([rate]) and schedule.last_epoch == int(epoch)
    regular = lr_scheduler.CosineAnnealingWarmRestarts(sgd(), 2)
    regular.step(5)
    assert regular.get_last_lr() == pytest.approx([0.5])


def test_triangles():
    schedule = lr_scheduler.CyclicLR(sgd(momentum=0.5), 1.0, 3.0, 2)
    other = copy.deepcopy(schedule)
    assert run(schedule, 6) == [1, 2, 3, 2, 1, 2]
    assert run(other, 4, "momentum") == [0.9, 0.85, 0.8, 0.85]
    options = {"step_size_down": 1, "cycle_momentum": False}
    assert run(lr_scheduler.CyclicLR(sgd(), 1.0, 3.0, 2, mode="triangular2", **options), 6) == [1, 2, 3, 1, 1.5, 2]
    found = run(lr_scheduler.CyclicLR(sgd(), 1.0, 3.0, 1, mode="exp_range", gamma=0.5, **options), 4)
    assert found == [1, 2, 1, 1.25]


def test_the_height_of_triangles_as_a_function():
    class Height:
        def __init__(self, top):
            self.top = top

        def __call__(self, x):
            return self.top / x

    schedule = lr_scheduler.CyclicLR(sgd(), 1.0, 3.0, 1, scale_fn=Height(2.0), cycle_momentum=False)
    assert run(schedule, 4) == [1, 5, 1, 3]
    state = schedule.state_dict()
    assert state["_scale_fn_custom"] == {"top": 2.0}
    other = lr_scheduler.CyclicLR(sgd(), 1.0, 3.0, 1, scale_fn=Height(7.0), cycle_momentum=False)
    other.load_state_dict(state)
    assert other._scale_fn_custom.top == 2.0 and other.last_epoch == 4
    plain = lr_scheduler.CyclicLR(sgd(), 1.0, 3.0, 1, cycle_momentum=False)
    plain.load_state_dict(plain.state_dict())
    assert plain.scale_fn(3) == 1


def test_one_cycle():
    options = {"total_steps": 5, "pct_start": 0.6, "div_factor": 4.0, "final_div_factor": 2.0}
    schedule = lr_scheduler.OneCycleLR(sgd(momentum=0.5), 1.0, anneal_strategy="linear", **options)
    other = copy.deepcopy(schedule)
    assert run(schedule, 5) == [0.25, 0.625, 1, 0.5625, 0.125]
    assert run(other, 5, "momentum") == [0.95, 0.9, 0.85, 0.9, 0.95]
    with pytest.raises(ValueError, match=r"Tried to step 6 times. The specified number of total steps is 5"):
        schedule.step()
    options |= {"total_steps": 6, "pct_start": 0.5, "three_phase": True, "cycle_momentum": False}
    found = run(lr_scheduler.OneCycleLR(sgd(), 1.0, **options), 6)
    assert found == [0.25, 0.625, 1, 0.625, 0.25, 0.125]


def test_one_cycle_moves_the_first_beta():
    adam = optim.Adam([nn.Parameter(torch.zeros(1))])
    schedule = lr_scheduler.OneCycleLR(adam, 1.0, epochs=2, steps_per_epoch=5)
    assert adam.param_groups[0]["betas"] == (0.95, 0.999) and schedule.total_steps == 10


def test_one_after_the_other():
    opt = sgd()
    parts = [lr_scheduler.ConstantLR(opt, 0.5, 9), lr_scheduler.StepLR(opt, 1, 0.5), lr_scheduler.ExponentialLR(opt, 2)]
    assert run(lr_scheduler.SequentialLR(opt, parts, [2, 4]), 6) == [0.5, 0.5, 1, 0.5, 1, 2]


def test_all_at_once():
    opt = sgd()
    schedule = lr_scheduler.ChainedScheduler([lr_scheduler.StepLR(opt, 2, 0.5), lr_scheduler.ExponentialLR(opt, 2.0)])
    assert run(schedule, 4) == [1, 2, 2, 4] and schedule.get_last_lr() == [4]
    state = schedule.state_dict()
    again = sgd()
    other = lr_scheduler.ChainedScheduler([lr_scheduler.StepLR(again, 2, 0.5), lr_scheduler.ExponentialLR(again, 2.0)])
    other.load_state_dict(state)
    assert [each.last_epoch for each in other._schedulers] == [4, 4] and len(state["_schedulers"]) == 2


def test_an_epoch_that_is_given_warns():
    opt = sgd()
    cosine, linear = lr_scheduler.CosineAnnealingLR(opt, 4), lr_scheduler.LinearLR(sgd(), 0.2, 1.0, 4)
    opt.step()
    linear.optimizer.step()
    with pytest.warns(UserWarning, match=r"The epoch parameter in `scheduler.step\(\)` was not necessary and is being"):
        cosine.step(2)
    assert cosine.get_last_lr() == pytest.approx([0.5])
    with pytest.warns(UserWarning, match="The epoch parameter"):
        linear.step(3)
    assert linear.get_last_lr() == pytest.approx([0.8])
    plateau = lr_scheduler.ReduceLROnPlateau(sgd())
    with pytest.warns(UserWarning, match="The epoch parameter"):
        plateau.step(1.0, epoch=7)
    assert plateau.last_epoch == 7


def test_rates_that_are_asked_for_out_of_turn():
    schedule = lr_scheduler.StepLR(sgd(), 3)
    with pytest.warns(UserWarning, match="To get the last learning rate computed by the scheduler, please use"):
        schedule.get_lr()
    resumed = sgd()
    resumed.param_groups[0]["initial_lr"] = 1.0
    cosine = lr_scheduler.CosineAnnealingLR(resumed, 4, last_epoch=1)
    with pytest.warns(UserWarning, match="please use `get_last_lr"):
        assert cosine.get_lr() == pytest.approx([0.5])


def test_a_schedule_of_an_older_program():
    class Halved(lr_scheduler._LRScheduler):
        def get_lr(self):
            return [base / 2**self.last_epoch for base in self.base_lrs]

    assert run(Halved(sgd()), 3) == [1, 0.5, 0.25]


def test_a_base_defines_no_rates():
    with pytest.raises(NotImplementedError, match=r"LRScheduler defines no get_lr\(\)"):
        lr_scheduler.LRScheduler(sgd())
    with pytest.raises(NotImplementedError):
        lr_scheduler.decays._Scaled._factor(None)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda opt: lr_scheduler.ConstantLR(opt, 1.5), ValueError, "Constant multiplicative factor expected"),
        (lambda opt: lr_scheduler.MultiplicativeLR(opt, 3), TypeError, "lr_lambda should be a function, but got int"),
        (lambda opt: lr_scheduler.CosineAnnealingWarmRestarts(opt, 0), ValueError, "Expected positive integer T_0"),
        (lambda opt: lr_scheduler.CosineAnnealingWarmRestarts(opt, 3, 0), ValueError, "Expected integer T_mult >= 1"),
        (lambda opt: lr_scheduler.CosineAnnealingWarmRestarts(opt, 3, 1, ""), ValueError, "Expected float or int eta"),
        (lambda opt: lr_scheduler.CosineAnnealingWarmRestarts(opt, 3).step(-1), ValueError, "Expected non-negative"),
        (lambda opt: lr_scheduler.CyclicLR(opt, 0.1, 1.0, mode="x"), ValueError, "mode is invalid and scale_fn is"),
        (lambda opt: lr_scheduler.CyclicLR(opt, [1.0, 2.0], 1.0), ValueError, "base_lr must have the same length as"),
        (lambda opt: lr_scheduler.CyclicLR(optim.Optimizer(opt.param_groups, {}), 1.0, 1.0), ValueError, "optimizer"),
        (lambda opt: lr_scheduler.OneCycleLR(opt, 1.0), ValueError, "You must define either total_steps OR"),
        (lambda opt: lr_scheduler.OneCycleLR(opt, 1.0, 0), ValueError, "Expected positive integer total_steps"),
        (lambda opt: lr_scheduler.OneCycleLR(opt, 1.0, 9, pct_start=1), ValueError, "Expected float between 0 and 1"),
        (lambda opt: lr_scheduler.OneCycleLR(opt, 1.0, 9, anneal_strategy=""), ValueError, "anneal_strategy must be"),
        (lambda opt: lr_scheduler.SequentialLR(opt, [], []), ValueError, "SequentialLR expects at least one scheduler"),
        (lambda opt: lr_scheduler.SequentialLR(opt, [3], []), TypeError, "SequentialLR at index 0 should have"),
        (lambda opt: lr_scheduler.SequentialLR(opt, [lr_scheduler.StepLR(opt, 1)], [1]), ValueError, "Sequential Sch"),
        (lambda opt: lr_scheduler.ChainedScheduler([]), ValueError, "ChainedScheduler expects at least one scheduler"),
        (
            lambda opt: lr_scheduler.ChainedScheduler([lr_scheduler.ReduceLROnPlateau(opt)]),
            ValueError,
            "ChainedScheduler does not support `ReduceLROnPlateau` scheduler as it requires",
        ),
        (
            lambda opt: lr_scheduler.ChainedScheduler([lr_scheduler.StepLR(opt, 1)], sgd()),
            ValueError,
            "ChainedScheduler expects all schedulers to belong to the same optimizer, but got scheduler StepLR at",
        ),
    ],
)
def test_misuse(make, error, words):
    opt = sgd()
    before = copy.deepcopy([{**group, "params": 0, "initial_lr": 0} for group in opt.param_groups])
    with pytest.raises(error, match=words):
        make(opt)
    assert [{**group, "params": 0, "initial_lr": 0} for group in opt.param_groups] == before
