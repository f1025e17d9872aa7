"""Averages of models, rates for them, and the statistics of their batch normalizations."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import tritensor
import tritensor as torch
from tritensor import cuda, nn, optim
from tritensor.kernels.optimizer import multi_tensor
from tritensor.optim import swa_utils

from ..needs import needs_triton

PLACES = ["cpu", pytest.param("cuda", marks=needs_triton)]


class Model(nn.Module):
    """Some parameters, and buffers of a float and an integer."""

    def __init__(self, device: str = "cpu") -> None:
        super().__init__()
        self.shared = nn.Parameter(torch.zeros(3, 4, device=device))
        self.narrow = nn.Parameter(torch.zeros(5, dtype=torch.bfloat16, device=device))
        self.wide = nn.Parameter(torch.zeros(2, dtype=torch.float64, device=device))
        self.register_buffer("mean", torch.zeros(2, device=device))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64, device=device))

    def set(self, value: float) -> None:
        with torch.no_grad():
            for each in (*self.parameters(), *self.buffers()):
                each.fill_(value)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.shared


def values(model: nn.Module) -> list[float]:
    return [each.flatten()[-1].item() for each in (*model.parameters(), *model.buffers())]


@pytest.mark.parametrize("device", PLACES)
def test_the_mean_of_all_updates(device: str) -> None:
    with cuda.simulate(devices=1):
        model = Model(device)
        averaged = swa_utils.AveragedModel(model)
        for value in (1.0, 3.0, 8.0):
            model.set(value)
            averaged.update_parameters(model)
        assert values(averaged.module) == [4, 4, 4, 8, 8] and averaged.n_averaged.item() == 3
        assert averaged(torch.ones(4, device=device))[0, 0].item() == 5
        assert values(model) == [8] * 5


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("device", PLACES)
def test_a_moving_average_of_parameters_and_buffers(device: str, multi: bool) -> None:
    with cuda.simulate(devices=1):
        model = Model(device)
        options: dict[str, Any] = {"avg_fn": swa_utils.get_ema_avg_fn(0.75)}
        if multi:
            options = {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.75)}
        averaged = swa_utils.AveragedModel(model, use_buffers=True, **options)
        for value in (0.0, 16.0, 32.0):
            model.set(value)
            averaged.update_parameters(model)
        assert values(averaged.module) == [11] * 5


@pytest.mark.parametrize("device", PLACES)
def test_means_of_lists(device: str) -> None:
    with cuda.simulate(devices=1):
        mean = swa_utils.get_swa_multi_avg_fn()
        averages = [torch.ones(3, 2, device=device), torch.ones(4, device=device)]
        for number in (1, torch.tensor(2, device=device)):
            mean(averages, [torch.full((3, 2), 7.0, device=device), torch.ones(4, device=device)], number)
        assert averages[0].tolist() == [[5.0, 5.0]] * 3 and averages[1].tolist() == [1.0] * 4
        whole = [torch.tensor([2], device=device)]
        mean(whole, [torch.tensor([8], device=device)], 2)
        assert whole[0].tolist() == [4]


@needs_triton
def test_one_launch_for_all_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[str] = []
    run = multi_tensor.launch

    def noted(*arguments: Any, **options: Any) -> None:
        launched.append(options["name"])
        run(*arguments, **options)

    monkeypatch.setattr(multi_tensor, "launch", noted)
    with cuda.simulate(devices=1):
        averages, given = ([torch.full((3,), float(k), device="cuda") for k in range(9)] for _ in range(2))
        update = swa_utils.get_ema_multi_avg_fn(0.25)
        for _ in range(2):
            update(averages, given, None)
        assert launched == ["average"] * 2


@needs_triton
def test_an_average_on_another_device() -> None:
    with cuda.simulate(devices=1):
        model = Model("cuda")
        averaged = swa_utils.AveragedModel(model, device="cpu")
        for value in (1.0, 3.0):
            model.set(value)
            averaged.update_parameters(model)
        assert values(averaged.module) == [2, 2, 2, 3, 3] and not averaged.module.shared.is_cuda
        assert not averaged.n_averaged.is_cuda


def test_an_averaged_model_is_saved_and_copied() -> None:
    model = nn.Linear(2, 1)
    averaged = swa_utils.AveragedModel(model)
    averaged.update_parameters(model)
    assert list(averaged.state_dict()) == ["n_averaged", "module.weight", "module.bias"]
    for other in (copy.deepcopy(averaged), pickle.loads(pickle.dumps(averaged))):
        other.update_parameters(model)
        assert other.n_averaged.item() == 2 and averaged.n_averaged.item() == 1
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn should be provided"):
        swa_utils.AveragedModel(model, avg_fn=abs, multi_avg_fn=abs)


def test_a_decay_is_a_share() -> None:
    for make in (swa_utils.get_ema_avg_fn, swa_utils.get_ema_multi_avg_fn):
        for decay in (-0.5, 1.5):
            with pytest.raises(ValueError, match=f"Invalid decay value {decay} provided. Please provide a value in"):
                make(decay)


def test_statistics_are_computed_anew() -> None:
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout()).eval()
    model[0].running_mean.fill_(7.0)
    batches = [torch.tensor([[1.0, 2.0], [3.0, 4.0]]), (torch.tensor([[5.0, 6.0], [7.0, 8.0]]), "target")]
    swa_utils.update_bn(batches, model, "cpu")
    assert model[0].running_mean.tolist() == [4, 5] and model[0].num_batches_tracked.item() == 2
    assert model[0].momentum == 0.1 and not model.training
    model.train()
    swa_utils.update_bn(batches, model)
    assert model.training
    swa_utils.update_bn(3, nn.Linear(1, 1))  # nothing to compute: the data are not read


def sgd(library: Any, *rates: float) -> Any:
    groups = [{"params": [library.nn.Parameter(library.zeros(1))], "lr": rate} for rate in rates]
    return library.optim.SGD(groups, lr=1.0)


def test_rates_for_averaging() -> None:
    schedule = swa_utils.SWALR(sgd(torch, 1.0, 2.0), [0.5, 1.0], anneal_epochs=2, anneal_strategy="linear")
    found = []
    for _ in range(4):
        found.append(schedule.get_last_lr())
        schedule.optimizer.step()
        schedule.step()
    assert found == [[1.0, 2.0], [0.75, 1.5], [0.5, 1.0], [0.5, 1.0]]
    at_once = swa_utils.SWALR(sgd(torch, 1.0), 0.5, anneal_epochs=0)
    assert at_once.get_last_lr() == [0.5]
    other = swa_utils.SWALR(sgd(torch, 1.0, 2.0), 9.0)
    other.load_state_dict(schedule.state_dict())
    assert other._anneal_strategy == "linear" and other.last_epoch == 4
    for options, words in (
        ({"swa_lr": [1.0, 2.0]}, "swa_lr must have the same length as optimizer.param_groups. swa_lr has 2 values"),
        ({"swa_lr": 1.0, "anneal_strategy": "sine"}, "anneal_strategy must be one of 'cos' or 'linear', instead got"),
        ({"swa_lr": 1.0, "anneal_epochs": -1}, "anneal_epochs must be equal or greater than 0, got -1"),
    ):
        with pytest.raises(ValueError, match=words):
            swa_utils.SWALR(sgd(torch, 1.0), **options)


# ---- beside PyTorch -----------------------------------------------------------------------------------------------


@pytest.mark.peer
@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_rates_equal_pytorchs(strategy: str) -> None:
    peer = pytest.importorskip("torch")
    for epochs in (0, 1, 7):
        schedules = []
        for library in (tritensor, peer):
            kind = library.optim.swa_utils.SWALR
            schedules.append(kind(sgd(library, 1.0, 0.3), [0.05, 0.5], anneal_epochs=epochs, anneal_strategy=strategy))
        for _ in range(20):
            assert schedules[0].get_last_lr() == pytest.approx(schedules[1].get_last_lr(), rel=1e-12)
            assert schedules[0].state_dict().keys() == schedules[1].state_dict().keys()
            for schedule in schedules:
                schedule.optimizer.step()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    schedule.step()


WAYS = {
    "mean": lambda utils: {},
    "mean of lists": lambda utils: {"multi_avg_fn": utils.get_swa_multi_avg_fn()},
    "mean of each": lambda utils: {"avg_fn": utils.get_swa_avg_fn()},
    "moving": lambda utils: {"avg_fn": utils.get_ema_avg_fn(0.9), "use_buffers": True},
    "moving lists": lambda utils: {"multi_avg_fn": utils.get_ema_multi_avg_fn(0.4), "use_buffers": True},
}


@pytest.mark.peer
@pytest.mark.parametrize("name", WAYS)
def test_averages_equal_pytorchs(name: str) -> None:
    peer = pytest.importorskip("torch")
    states = []
    for library in (tritensor, peer):
        rng = np.random.RandomState(0)
        utils = library.optim.swa_utils
        model = library.nn.Sequential(library.nn.Linear(4, 3), library.nn.BatchNorm1d(3), library.nn.Linear(3, 2))
        averaged = utils.AveragedModel(model, **WAYS[name](utils))
        for step in range(6):
            with library.no_grad():
                for each in (*model.parameters(), *model.buffers()):
                    values = rng.randn(*each.shape).astype("f") if each.ndim else np.int64(3 * step)
                    each.copy_(library.tensor(values))
            averaged.update_parameters(model)
        batches = [library.tensor(rng.randn(5, 4).astype("f")) for _ in range(3)]
        utils.update_bn(batches, averaged)
        states.append({key: value.numpy() for key, value in averaged.state_dict().items()})
    assert states[0].keys() == states[1].keys()
    for key, value in states[0].items():
        np.testing.assert_allclose(value, states[1][key], rtol=1e-5, atol=1e-6, err_msg=key)
    assert optim.swa_utils is swa_utils
