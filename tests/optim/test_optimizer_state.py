"""The state of optimizers: it follows its parameters, is saved, loaded and copied, and what is refused."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda, nn, optim
from tritensor.errors import OutOfMemoryError, ShapeError

from .formulas import GRADIENTS, SETTINGS, START, parameter, run

W = nn.Parameter(torch.ones(1))


@pytest.mark.parametrize("name", ["sgd-momentum", "adam", "adamw-amsgrad"])
def test_state_follows_a_model_that_was_moved_or_cast(name):
    kind, options = SETTINGS[name]
    steady, moved = parameter(START), parameter(START)
    model = nn.Module()
    model.param = moved
    one, other = kind([steady], **options), kind([moved], **options)
    with cuda.simulate(devices=2):
        for place, gradient in zip(("cpu", "cuda:0", "cuda:1", "cpu"), GRADIENTS, strict=True):
            steady.grad = torch.tensor(gradient)
            model.to(place)
            moved.grad = torch.tensor(gradient, device=place)
            one.step()
            other.step()
            tensors = {key: value for key, value in other.state[moved].items() if key != "step"}
            assert {str(value.device) for value in tensors.values()} == {place}
    torch.testing.assert_close(moved.detach(), steady.detach(), rtol=1e-5, atol=1e-6)
    model.double()
    moved.grad = torch.tensor(GRADIENTS[0], dtype=torch.float64)
    other.step()
    tensors = {key: value for key, value in other.state[moved].items() if key != "step"}
    assert {value.dtype for value in tensors.values()} == {torch.float64}


def test_to_moves_the_state():
    param = parameter(START)
    param.grad = torch.tensor(GRADIENTS[0])
    optimizer = optim.Adam([param])
    optimizer.step()
    with cuda.simulate(devices=1):
        assert optimizer.to("cuda") is optimizer
        state = optimizer.state[param]
        assert state["exp_avg"].is_cuda
        assert not state["step"].is_cuda
        optimizer.step()
        assert not optimizer.state[param]["exp_avg"].is_cuda


def test_state_that_does_not_fit_on_the_device_stays_where_it_was():
    params = [nn.Parameter(torch.zeros(size)) for size in (100, 200_000)]
    for param in params:
        param.grad = torch.ones(param.shape)
    optimizer = optim.Adam(params)
    optimizer.step()
    with cuda.simulate(devices=1, memory="1MB"), pytest.raises(OutOfMemoryError):
        optimizer.to("cuda")
    assert not any(value.is_cuda for state in optimizer.state.values() for value in state.values())
    optimizer.step()


def test_a_failed_step_changes_nothing():
    param = parameter(START)
    param.grad = torch.tensor(GRADIENTS[0])
    optimizer = optim.Adam([param])
    optimizer.step()
    state = optimizer.state[param]
    state["exp_avg"] = torch.zeros(3)
    before = param.tolist(), state["exp_avg_sq"].tolist(), state["step"].item()
    with pytest.raises(ShapeError, match=r"The size of exp_avg \(3,\) must match the size of param \(4,\)"):
        optimizer.step()
    assert before == (param.tolist(), state["exp_avg_sq"].tolist(), state["step"].item())


def test_saved_state_continues_where_it_was():
    kind, options = SETTINGS["adam-amsgrad-maximize"]
    reference = run(kind, options, START, GRADIENTS)
    first = parameter(START)
    one = kind([first], **options)
    for gradient in GRADIENTS[:2]:
        first.grad = torch.tensor(gradient)
        one.step()
    second = nn.Parameter(first.detach().clone())
    saved = pickle.loads(pickle.dumps(one.state_dict()))
    other = kind([second], lr=5.0)
    other.load_state_dict(saved)
    for gradient in GRADIENTS[2:]:
        second.grad = torch.tensor(gradient)
        other.step()
    torch.testing.assert_close(second.detach(), reference.detach())
    assert one.state[first]["step"].item() == 2


def test_the_state_dict_has_pytorchs_form():
    params = [parameter([1.0]), parameter([2.0]), parameter([3.0])]
    optimizer = optim.Adam([{"params": params[:1]}, {"params": params[1:], "lr": 0.5}])
    params[2].grad = torch.ones(1)
    optimizer.step()
    state = optimizer.state_dict()
    assert list(state) == ["state", "param_groups"]
    assert list(state["state"]) == [2]
    assert set(state["state"][2]) == {"step", "exp_avg", "exp_avg_sq"}
    assert [group["params"] for group in state["param_groups"]] == [[0], [1, 2]]
    assert state["param_groups"][1]["lr"] == 0.5


def test_loaded_state_takes_the_parameters_dtype_and_device():
    source = parameter([1.0, 2.0])
    source.grad = torch.ones(2)
    one = optim.Adam([source])
    one.step()
    with cuda.simulate(devices=1):
        param = parameter([1.0, 2.0], torch.bfloat16, "cuda")
        other = optim.Adam([param])
        other.load_state_dict(one.state_dict())
        state = other.state[param]
        assert (state["exp_avg"].dtype, str(state["exp_avg"].device)) == (torch.bfloat16, "cuda:0")
        assert (state["step"].dtype, str(state["step"].device)) == (torch.float32, "cpu")


def test_loaded_state_is_not_shared():
    param = parameter([1.0])
    param.grad = torch.ones(1)
    one = optim.Adam([param])
    one.step()
    other = optim.Adam([param])
    other.load_state_dict(one.state_dict())
    other.step()
    assert one.state[param]["step"].item() == 1
    assert one.state[param]["exp_avg"].item() == pytest.approx(0.1)


def test_state_that_belongs_to_no_parameter_and_nested_state_are_kept():
    optimizer = optim.SGD([W])
    state = optimizer.state_dict()
    state["state"] = {0: {"history": [torch.ones(1), (2, torch.ones(1))], "table": {"step": torch.ones(1)}}, "note": 5}
    optimizer.load_state_dict(state)
    assert optimizer.state["note"] == 5
    assert optimizer.state[W]["history"][1][0] == 2
    assert optimizer.state_dict()["state"]["note"] == 5


def test_state_dicts_that_do_not_fit_are_refused():
    one = optim.Adam([parameter([1.0])])
    two = optim.Adam([{"params": parameter([1.0])}, {"params": parameter([1.0])}])
    pair = optim.Adam([parameter([1.0]), parameter([1.0])])
    with pytest.raises(ValueError, match="loaded state dict has a different number of parameter groups"):
        one.load_state_dict(two.state_dict())
    with pytest.raises(
        ValueError, match="loaded state dict contains a parameter group that doesn't match the size of optim"
    ):
        one.load_state_dict(pair.state_dict())
    wide = parameter([1.0, 2.0])
    wide.grad = torch.ones(2)
    other = optim.Adam([wide], lr=7.0)
    other.step()
    with pytest.raises(
        ValueError, match=r"loaded state dict has exp_avg of shape \(2,\) for parameter 0, which has shape"
    ):
        one.load_state_dict(other.state_dict())
    assert one.param_groups[0]["lr"] == 1e-3
    assert len(one.state) == 0


def test_step_counts_of_other_kinds_are_taken():
    param = parameter(START)
    optimizer = optim.Adam([param], lr=0.01)
    param.grad = torch.tensor(GRADIENTS[0])
    optimizer.step()
    with cuda.simulate(devices=1):
        for count in (1, torch.tensor(1.0), torch.tensor(1.0, device="cuda")):
            optimizer.state[param]["step"] = count
            optimizer.step()
            assert optimizer.state[param]["step"].item() == 2


def test_deepcopy_and_pickle():
    param = parameter(START)
    param.grad = torch.tensor(GRADIENTS[0])
    optimizer = optim.Adam([param], lr=0.01)
    optimizer.register_step_post_hook(lambda *rest: None)
    optimizer.step()
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        (twin,) = other.param_groups[0]["params"]
        assert twin is not param
        assert other.state[twin]["exp_avg"].tolist() == optimizer.state[param]["exp_avg"].tolist()
        twin.grad = torch.tensor(GRADIENTS[1])
        other.step()


def test_options_that_an_old_state_dict_lacks_get_their_defaults():
    optimizer = optim.Adam([parameter([1.0])])
    state = optimizer.state_dict()
    del state["param_groups"][0]["decoupled_weight_decay"]
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["decoupled_weight_decay"] is False


def test_state_dict_hooks():
    optimizer = optim.SGD([W])
    calls = []
    optimizer.register_state_dict_pre_hook(lambda opt: calls.append("second"))
    optimizer.register_state_dict_pre_hook(lambda opt: calls.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda opt, state: {**state, "note": 1})
    optimizer.register_load_state_dict_pre_hook(lambda opt, state: {**state, "state": {0: {"x": state["note"]}}})
    optimizer.register_load_state_dict_post_hook(lambda opt: calls.append("loaded"))
    state = optimizer.state_dict()
    assert state["note"] == 1
    optimizer.load_state_dict(state)
    assert optimizer.state[W] == {"x": 1}
    assert calls == ["first", "second", "loaded"]


@pytest.mark.peer
def test_pytorchs_state_dict_can_be_loaded():
    peer = pytest.importorskip("torch")
    theirs = peer.nn.Parameter(peer.tensor(START))
    optimizer = peer.optim.Adam([theirs], lr=0.01)
    for gradient in GRADIENTS[:2]:
        theirs.grad = peer.tensor(gradient)
        optimizer.step()
    saved = optimizer.state_dict()
    saved["state"] = {
        position: {key: torch.from_numpy(value.numpy()) for key, value in entry.items()}
        for position, entry in saved["state"].items()
    }
    ours = parameter(theirs.tolist())
    resumed = optim.Adam([ours])
    resumed.load_state_dict(saved)
    for gradient in GRADIENTS[2:]:
        theirs.grad, ours.grad = peer.tensor(gradient), torch.tensor(gradient)
        optimizer.step()
        resumed.step()
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-8)
