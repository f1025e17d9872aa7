"""Steps that a graph can hold: counts in device memory, and learning rates that are tensors."""

from __future__ import annotations

import pytest

import tritensor as torch
from tritensor import cuda, nn, optim

from ..needs import HAS_TRITON
from .many_parameters import give_gradients, parameters

if not HAS_TRITON:
    pytest.skip("kernels need Triton", allow_module_level=True)


def test_a_capturable_state_counts_on_the_device_and_has_pytorchs_form():
    with cuda.simulate(devices=2):
        params = parameters([(4,), (5,)], "cuda:1")
        optimizer = optim.Adam(params, capturable=True)
        give_gradients(params, 0)
        optimizer.step()
        optimizer.step()
        state = optimizer.state_dict()
        assert state["param_groups"][0]["capturable"] is True
        for entry in state["state"].values():
            step = entry["step"]
            assert (step.dtype, str(step.device), tuple(step.shape), step.item()) == (torch.float32, "cuda:1", (), 2.0)
        # a state that was counted on the host goes on, and so does this one on another device
        plain = optim.Adam(parameters([(4,), (5,)], "cpu"))
        plain.load_state_dict(state)
        moved = parameters([(4,), (5,)], "cuda:0")
        other = optim.Adam(moved, capturable=True)
        other.load_state_dict(state)
        with cuda.transfers() as copies:
            optimizer.step()
        assert copies.entries == []
        give_gradients(moved, 1)
        other.step()
        assert [(str(entry["step"].device), entry["step"].item()) for entry in other.state.values()] == [
            ("cuda:0", 3.0)
        ] * 2
        other.param_groups[0]["capturable"] = False
        other.step()
        assert [str(entry["step"].device) for entry in other.state.values()] == ["cpu"] * 2
        other.param_groups[0]["capturable"] = True
        other.step()
        assert [entry["step"].item() for entry in other.state.values()] == [5.0] * 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "make",
    [
        lambda params, lr: optim.SGD(params, lr=lr, momentum=0.9, weight_decay=0.1),
        lambda params, lr: optim.SGD(params, lr=lr),
        lambda params, lr: optim.AdamW(params, lr=lr, capturable=True),
        lambda params, lr: optim.AdamW(params, lr=lr),
    ],
)
@pytest.mark.parametrize("where", ["cpu", "cuda:0", "cuda:1"])
def test_a_learning_rate_may_be_a_tensor(make, where):
    with cuda.simulate(devices=2), torch.testing.checked():
        ours, theirs = parameters([(4,), (5, 2)], "cuda:0"), parameters([(4,), (5, 2)], "cpu")
        lr = torch.tensor(0.25, device=where)
        one, other = make(ours, lr), make(theirs, 0.25)
        schedules = [optim.lr_scheduler.ExponentialLR(each, 0.5) for each in (one, other)]
        for seed in range(3):
            give_gradients(ours, seed)
            give_gradients(theirs, seed)
            one.step()
            other.step()
            for schedule in schedules:
                schedule.step()
            assert one.param_groups[0]["lr"] is lr
            assert lr.item() == pytest.approx(other.param_groups[0]["lr"])
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a.detach().cpu(), b.detach(), rtol=1e-5, atol=1e-6)


def test_a_rate_on_a_device_serves_parameters_on_the_cpu_too():
    with cuda.simulate(devices=1):
        params = [*parameters([(4,)], "cuda"), *parameters([(4,)], "cpu")]
        for param in params:
            param.grad = torch.ones(4, device=param.device)
        optim.SGD(params, lr=torch.tensor(0.5, device="cuda")).step()
        torch.testing.assert_close(params[0].detach().cpu(), params[1].detach())
        assert not torch.equal(params[1].detach(), parameters([(4,)], "cpu")[0].detach())


def test_rates_are_exact_to_the_last_digits():
    """1 - beta2 ** step in float32 alone would be off by a part in 10,000 at the first step."""
    with cuda.simulate(devices=1):
        param = nn.Parameter(torch.zeros(1, device="cuda", dtype=torch.float64))
        param.grad = torch.ones(1, device="cuda", dtype=torch.float64)
        optim.Adam([param], lr=1.0, eps=0.0, capturable=True).step()
        assert param.item() == pytest.approx(-1.0, rel=1e-12)
