"""State dicts by the names of parameters, as `torch.distributed.checkpoint` has them, in one process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.distributed.checkpoint import state_dict as dcp
from tritensor.errors import CheckpointError, UnsupportedError


def trained(lib: Any, steps: int = 1) -> tuple[Any, Any]:
    inner = lib.nn.Sequential(lib.nn.Linear(3, 2), lib.nn.Linear(2, 1))
    with lib.no_grad():
        for number, parameter in enumerate(inner.parameters()):
            parameter.fill_(0.5 + number)
    first, second = inner[0].parameters(), inner[1].parameters()
    optimizer = lib.optim.Adam([{"params": list(first), "lr": 0.1}, {"params": list(second)}])
    model = lib.nn.DataParallel(inner)
    for _ in range(steps):
        inner(lib.ones(4, 3, device=inner[0].weight.device)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer


def flat(value: Any, name: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        return {k: v for key, each in value.items() for k, v in flat(each, f"{name}/{key}").items()}
    if isinstance(value, list):
        return {k: v for i, each in enumerate(value) for k, v in flat(each, f"{name}/{i}").items()}
    return {name: value.detach().cpu().tolist() if hasattr(value, "detach") else value}


def test_a_model_and_its_optimizer() -> None:
    model, optimizer = trained(torch)
    found, state = dcp.get_state_dict(model, optimizer, options=dcp.StateDictOptions(cpu_offload=True))
    assert list(found) == ["0.weight", "0.bias", "1.weight", "1.bias"] == list(state["state"])
    assert [group["params"] for group in state["param_groups"]] == [["0.weight", "0.bias"], ["1.weight", "1.bias"]]
    other, fresh = trained(torch, 0)
    before = flat(other.state_dict())
    unstarted = dcp.get_optimizer_state_dict(other, [fresh])
    assert sorted(unstarted["state"]) == sorted(state["state"]) and flat(other.state_dict()) == before
    missed = dcp.set_state_dict(other, fresh, model_state_dict=found, optim_state_dict=state)
    assert tuple(missed) == ([], [])
    assert flat(other.state_dict()) == flat(model.state_dict())
    assert flat(fresh.state_dict()) == flat(optimizer.state_dict())
    with pytest.raises(RuntimeError, match="Missing key"):
        dcp.set_model_state_dict(other, {"0.weight": found["0.weight"]})
    assert dcp.set_model_state_dict(other, {}, options=dcp.StateDictOptions(strict=False))[0][0] == "module.0.weight"
    model.module[0].weight.requires_grad_(False)
    assert "0.weight" not in dcp.get_model_state_dict(model, options=dcp.StateDictOptions(ignore_frozen_params=True))
    with pytest.raises(CheckpointError, match=r"no group with 0\.weight"):
        dcp.set_optimizer_state_dict(other, fresh, {"state": {}, "param_groups": []})


def test_a_model_on_meta_takes_the_tensors() -> None:
    with torch.device("meta"):
        model = torch.nn.Linear(2, 1)
    dcp.set_model_state_dict(model, {"weight": torch.ones(1, 2), "bias": torch.zeros(1)})
    assert model(torch.ones(1, 2)).tolist() == [[2.0]]


def test_options_that_are_not_there() -> None:
    with pytest.raises(UnsupportedError, match="flatten_optimizer_state_dict is not supported"):
        dcp.StateDictOptions(flatten_optimizer_state_dict=True)
    with pytest.raises(ValueError, match="full_state_dict must be True"):
        dcp.StateDictOptions(broadcast_from_rank0=True)
    model, _ = trained(torch, 0)
    with pytest.raises(UnsupportedError, match="pass the submodule as the model"):
        dcp.get_model_state_dict(model, submodules={model.module[0]})


@pytest.mark.peer
def test_beside_pytorch() -> None:
    theirs = pytest.importorskip("torch")
    other = pytest.importorskip("torch.distributed.checkpoint.state_dict")
    mine, expected = [trained(lib) for lib in (torch, theirs)]
    found = dcp.get_optimizer_state_dict(mine[0].module, mine[1])
    wanted = other.get_optimizer_state_dict(expected[0].module, expected[1])
    found, wanted = flat(found), flat(wanted)
    assert set(wanted) == set(found)
    for name, value in wanted.items():
        if isinstance(value, list):
            np.testing.assert_allclose(found[name], value, rtol=1e-5)
        else:
            assert found[name] == value, name
