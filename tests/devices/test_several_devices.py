"""Three simulated devices: copies between them, the current device, and each one's own streams and random numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda, nn, settings
from tritensor.errors import DeviceError

from ..needs import needs_triton

pytestmark = needs_triton

PAIRS = list(itertools.permutations(range(3), 2))


@pytest.fixture(params=[False, True], ids=["prompt", "late"], autouse=True)
def three(request: pytest.FixtureRequest) -> Iterator[None]:
    with settings.simulate_late(request.param), cuda.simulate(devices=3):
        yield


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_copies_between_devices(source: int, target: int) -> None:
    expected = np.arange(24.0, dtype=np.float32).reshape(4, 6)
    x = torch.from_numpy(expected).cuda(source).requires_grad_()
    with cuda.transfers() as t:
        moved = [x.to(target), x.t().to(f"cuda:{target}", torch.float64), x[1:, ::2].cuda(target, non_blocking=True)]
    t.assert_at_most(h2d=0, d2h=0, syncs=0)
    for y, z in zip(moved, (expected, expected.T, expected[1:, ::2])):
        assert y.device == torch.device("cuda", target) and np.array_equal(y.detach().cpu().numpy(), z)
    moved[1].sum().backward()
    assert x.grad.device == x.device and x.grad.dtype is torch.float32 and bool((x.grad == 1).all())


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_source_may_change_behind_its_copy(source: int, target: int) -> None:
    x = torch.ones(1000, device=f"cuda:{source}")
    for step in range(5):
        copied = x.to(target, non_blocking=True)
        x.fill_(-1)
        assert copied.sum().item() == 1000, step
        x = torch.empty(1000, device=f"cuda:{source}").fill_(1)  # takes the memory that is free by now


def test_copies_from_a_side_stream_wait_for_it_alone() -> None:
    sides = [cuda.Stream(index) for index in range(3)]
    x = torch.zeros(64, device="cuda:0")
    for step, (stream, index) in enumerate(zip(sides * 2, [1, 2, 0, 1, 2, 0])):
        stream.wait_stream(cuda.current_stream(index))
        with cuda.stream(stream):
            x = x.to(cuda.current_device()) + 1
        assert x.device.index == step % 3
        cuda.current_stream(x.device.index).wait_stream(stream)
    assert x.tolist() == [6.0] * 64


def test_peer_access() -> None:
    assert all(cuda.can_device_access_peer(a, b) for a, b in PAIRS)
    assert not cuda.can_device_access_peer("cuda:1", torch.device("cuda:1"))
    with pytest.raises(DeviceError, match=r"^CUDA error: invalid device ordinal"):
        cuda.can_device_access_peer(0, 3)


def test_the_current_device_is_where_new_things_are() -> None:
    for index in range(3):
        with cuda.device(index), cuda.device(None), cuda.device(-1):
            assert cuda.current_device() == index
            made = [
                torch.zeros(2, device="cuda"),
                torch.rand(2, device="cuda"),
                torch.ones(2).cuda(),
                nn.Linear(2, 2).cuda().weight,
                torch.tensor([1.0], device="cuda"),
            ]
            assert {x.device.index for x in made} == {index}
            assert cuda.current_stream() is cuda.default_stream(index)
            assert cuda.Stream().device == torch.device("cuda", index)
            # what a tensor's operators do happens where the tensor is
            assert {(x.to((index + 1) % 3) * 2).device.index for x in made} == {(index + 1) % 3}
    assert cuda.current_device() == 0


def test_tensors_of_two_devices_are_not_mixed() -> None:
    x, y = torch.ones(2, device="cuda:1"), torch.ones(2, device="cuda:2")
    with pytest.raises(
        RuntimeError,
        match=r"^Expected all tensors to be on the same device, but found at least two "
        r"devices, cuda:1 and cuda:2!",
    ) as caught:
        x + y
    assert ".to(" in str(caught.value)


def test_every_device_has_a_generator_of_its_own() -> None:
    cuda.manual_seed_all(7)
    first = [torch.rand(8, device=f"cuda:{index}") for index in range(3)]
    assert first[0].tolist() == first[1].tolist() == first[2].tolist()
    states = cuda.get_rng_state_all()
    second = torch.rand(8, device="cuda:1").tolist()
    assert second != first[1].tolist()
    assert cuda.get_rng_state(1).tolist() != states[1].tolist() and cuda.get_rng_state(2).tolist() == states[2].tolist()
    cuda.set_rng_state_all(states)
    assert torch.rand(8, device="cuda:1").tolist() == second
    with cuda.device(2):
        cuda.manual_seed(3)
        assert cuda.initial_seed() == 3
        assert cuda.seed() == cuda.initial_seed() != 3
    cuda.seed_all()
    assert len({cuda.get_rng_state(index).numpy().tobytes() for index in range(3)}) == 1


def test_states_that_do_not_fit_change_no_generator() -> None:
    before = [state.tolist() for state in cuda.get_rng_state_all()]
    good = torch.Generator().manual_seed(99).get_state()
    with pytest.raises(RuntimeError, match="RNG state is wrong size"):
        cuda.set_rng_state_all([good, good[:3]])
    with pytest.raises(DeviceError, match="invalid device ordinal"):
        cuda.set_rng_state_all([good] * 4)
    assert [state.tolist() for state in cuda.get_rng_state_all()] == before


def test_a_generator_serves_its_own_device() -> None:
    generator = torch.Generator("cuda:2").manual_seed(5)
    x = torch.rand(4, device="cuda:2", generator=generator)
    assert x.tolist() == torch.rand(4, generator=torch.Generator().manual_seed(5)).tolist()
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cuda'") as caught:
        torch.rand(4, device="cuda:1", generator=generator)
    assert "the tensor is on cuda:1, the generator on cuda:2" in str(caught.value)
