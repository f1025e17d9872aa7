"""What becomes of pinned memory that a device reads while the host goes on; on simulated devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.tensors import Tensor

pytest.importorskip("triton")


@pytest.fixture(autouse=True)
def devices() -> Iterator[None]:
    with torch.cuda.simulate(devices=2):
        yield


LARGE = 300_000  # elements of float32: above the size from which pinned memory is read in place


def _pinned(value: float = 1.0) -> Tensor:
    return torch.full((LARGE,), value).pin_memory()


@pytest.mark.thorough
@pytest.mark.parametrize("late", [False, True])
def test_pinned_memory_of_one_owner_is_read_in_place_and_cannot_be_torn(late: bool) -> None:
    changes: list[Callable[[Tensor], object]] = [
        lambda x: x.fill_(9),
        lambda x: x.add_(1),
        lambda x: x.numpy().fill(9),
        lambda x: np.from_dlpack(x).fill(9),
        lambda x: x[1:].zero_(),
        lambda x: x.detach().zero_(),
        lambda x: x.copy_(torch.zeros(LARGE, device="cuda")),
        lambda x: x.uniform_(),
        lambda x: x.data.zero_(),
    ]
    with settings.simulate_late(late):
        for change in changes:
            x = _pinned()
            address = x.data_ptr()
            with torch.cuda.transfers() as ledger:
                moved = x.to("cuda", non_blocking=True)
            assert type(x._data).__name__ == "PendingArray"
            assert [(entry.kind, entry.pinned, entry.nbytes) for entry in ledger.entries] == [("h2d", True, 4 * LARGE)]
            assert x.is_pinned() and x.is_contiguous() and x.shape == (LARGE,)
            shared = x.detach()
            again, wider = x.to("cuda:1", non_blocking=True), shared.to("cuda", torch.float64, non_blocking=True)
            assert type(shared._data) is type(x._data)
            change(x)
            assert not torch.equal(x, torch.ones(LARGE)) and x.data_ptr() == address
            assert torch.equal(shared, x)
            for copy in (moved, again, wider):
                assert copy.eq(1).all().item()


@pytest.mark.thorough
@pytest.mark.parametrize("late", [False, True])
def test_pinned_memory_that_somebody_else_can_reach_is_copied_first(late: bool) -> None:
    with settings.simulate_late(late):
        for sharing in (
            lambda x: x.numpy(),
            lambda x: x[1:],
            lambda x: x.detach(),
            lambda x: np.from_dlpack(x),
            lambda x: x.view(2, -1),
            lambda x: memoryview(x.numpy()),
        ):
            x = _pinned()
            other = sharing(x)
            moved = x.to("cuda", non_blocking=True)
            assert type(x._data) is np.ndarray
            array = other.numpy() if isinstance(other, Tensor) else np.asarray(other)
            array.fill(9)
            assert moved.eq(1).all().item()
        for source in (
            _pinned()[::2],
            torch.ones(2, LARGE).pin_memory().t(),
            torch.ones(2).pin_memory(),
            torch.ones(LARGE),
        ):
            moved = source.to("cuda", non_blocking=True)
            assert type(source._data) is np.ndarray
            source.fill_(9)
            assert moved.eq(1).all().item()
        narrowed = (x := _pinned()).to("cuda", torch.float16, non_blocking=True)
        assert type(x._data) is np.ndarray and narrowed.eq(1).all().item()


@pytest.mark.parametrize("late", [False, True])
def test_pinned_memory_outlives_its_tensor_while_it_is_read(late: bool) -> None:
    with settings.simulate_late(late):
        moved = [_pinned(float(value)).to("cuda", non_blocking=True) for value in range(4)]
        held = [_pinned(9.0) for _ in range(4)]
        assert [x.mean().item() for x in moved] == [0, 1, 2, 3]
        x = held[0]
        for step in range(4):  # whoever waits for its copies may write again, and sends it the short way again
            x.fill_(step)
            moved[step] = x.to("cuda", non_blocking=True)
            assert type(x._data).__name__ == "PendingArray"
        assert [x.mean().item() for x in moved] == [0, 1, 2, 3]


@pytest.mark.parametrize("late", [False, True])
def test_a_copy_onto_a_device_goes_straight_there(late: bool) -> None:
    with settings.simulate_late(late):
        target = torch.zeros(LARGE, device="cuda")
        address = target.data_ptr()
        for source, non_blocking in ((_pinned(1), True), (_pinned(2), False), (torch.full((LARGE,), 3.0), True)):
            version = target._version
            with torch.cuda.transfers() as ledger:
                target.copy_(source, non_blocking=non_blocking)
            ledger.assert_at_most(h2d=1, d2h=0, d2d=0, syncs=int(source.is_pinned() and not non_blocking))
            expected = source[0].item()
            source.fill_(7)
            assert target.eq(expected).all().item()
            assert (target.data_ptr(), target._version) == (address, version + 1)
        x = _pinned(4)
        x.to("cuda", non_blocking=True)
        target.copy_(x, non_blocking=True)
        x.zero_()
        assert target.eq(4).all().item()
        target[::2].copy_(torch.zeros(LARGE // 2))
        assert target.sum().item() == 4 * LARGE // 2
