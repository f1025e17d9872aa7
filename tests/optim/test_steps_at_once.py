"""Steps of all parameters on a device at once, and what changes between them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda, optim
from tritensor.optim import ruled

SHAPES = ((3, 4), (5,), (), (2, 1))
KINDS = {
    "adam": lambda params: optim.Adam(params, lr=0.1, weight_decay=0.01),
    "amsgrad": lambda params: optim.AdamW(params, lr=0.1, amsgrad=True),
    "nadam": lambda params: optim.NAdam(params, lr=0.1),
    "sgd": lambda params: optim.SGD(params, lr=0.1),
    "momentum": lambda params: optim.SGD(params, lr=0.1, momentum=0.9),
}


def _replace_state(optimizer: Any, params: list[Any]) -> None:
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))


def _lose_state(optimizer: Any, params: list[Any]) -> None:
    optimizer.state.pop(params[1], None)


def _count_one(optimizer: Any, params: list[Any]) -> None:
    if "step" in optimizer.state.get(params[0], {}):
        optimizer.state[params[0]]["step"].fill_(7)


def _replace_count(optimizer: Any, params: list[Any]) -> None:
    if "step" in optimizer.state.get(params[0], {}):
        optimizer.state[params[0]]["step"] = torch.tensor(5.0)


def _replace_data(optimizer: Any, params: list[Any]) -> None:
    params[2].data = params[2].data * 2


def _move(optimizer: Any, params: list[Any]) -> None:
    params[3].data = params[3].data.cpu()
    params[3].grad = params[3].grad.cpu()


# what happens between two steps
CHANGES: dict[str, Callable[[Any, list[Any]], Any]] = {
    "nothing": lambda optimizer, params: None,
    "a gradient is gone": lambda optimizer, params: setattr(params[0], "grad", None),
    "another rate": lambda optimizer, params: optimizer.param_groups[0].update(lr=0.01),
    "another rule": lambda optimizer, params: optimizer.param_groups[0].update(maximize=True),
    "a group less": lambda optimizer, params: optimizer.param_groups[0].update(params=params[1:]),
    "new tensors of state": _replace_state,
    "a parameter without state": _lose_state,
    "another count": _count_one,
    "another tensor of counts": _replace_count,
    "other memory": _replace_data,
    "another device": _move,
}


def _run(kind: str, change: str, device: str) -> tuple[list[Any], Any]:
    numbers = np.random.default_rng(0)
    params = [torch.tensor(numbers.normal(size=shape), dtype=torch.float32, device=device) for shape in SHAPES]
    for param in params:
        param.requires_grad_()
    optimizer = KINDS[kind](params)
    for turn in range(6):
        for param in params:
            gradient = numbers.normal(size=tuple(param.shape))
            param.grad = torch.tensor(gradient, dtype=torch.float32, device=param.device)
        if turn == 3:
            CHANGES[change](optimizer, params)
        optimizer.step()
    return params, optimizer


@pytest.mark.sampled(2)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_changes_between_steps_is_seen(kind: str, change: str) -> None:
    expected, theirs = _run(kind, change, "cpu")
    with cuda.simulate(devices=1):
        params, optimizer = _run(kind, change, "cuda")
        for param, other in zip(params, expected, strict=True):
            torch.testing.assert_close(param.cpu(), other, rtol=1e-5, atol=1e-6)
            for name, value in theirs.state[other].items():
                torch.testing.assert_close(optimizer.state[param][name].cpu(), value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_after_the_first_are_taken_at_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[bool] = []
    at_once = ruled.Ruled._step_at_once
    monkeypatch.setattr(ruled.Ruled, "_step_at_once", lambda *args: taken.append(at_once(*args)) or taken[-1])
    with cuda.simulate(devices=1):
        _run(kind, "nothing", "cuda")
    assert taken == [kind == "sgd", True, True, True, True, True]  # state is made by the first step


def test_state_that_is_dropped_is_freed_before_the_next_step() -> None:
    with cuda.simulate(devices=1):
        _, optimizer = _run("adam", "nothing", "cuda")
        before = cuda.memory_allocated()
        optimizer.state.clear()
        assert cuda.memory_allocated() < before


def test_a_copy_steps_its_own_parameters() -> None:
    with cuda.simulate(devices=1):
        params, optimizer = _run("adam", "nothing", "cuda")
        other = copy.deepcopy(optimizer)
        assert other.param_groups[0]["params"][0] is not params[0]
        for param in other.param_groups[0]["params"]:
            param.grad = torch.ones_like(param)
        before = params[0].detach().clone()
        other.step()
        assert params[0].tolist() == before.tolist()
