"""Batches that arrive on a device: nested ones, objects of one's own, staging, pinned memory."""

from __future__ import annotations

import pytest

import tritensor as torch
from tritensor import cuda
from tritensor.utils import data
from tritensor.utils.data import DataLoader, TensorDataset

from .sources import Failing, Point, Squares


@pytest.fixture
def simulated():
    with cuda.simulate(devices=2):
        yield


class Nested(data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return {"image": torch.ones(2) * index, "meta": Point([index, float(index)], "name"), "bytes": b"x"}


def test_nested_batches_arrive_on_the_device(simulated):
    for workers in (0, 2):
        batches = list(DataLoader(Nested(), batch_size=3, device="cuda:1", num_workers=workers))
        batch = batches[0]
        numbers, floats = batch["meta"].x
        assert {str(t.device) for t in (batch["image"], numbers, floats)} == {"cuda:1"}
        assert (numbers.dtype, floats.dtype) == (torch.int64, torch.float64)
        assert list(batch["meta"].y) == ["name"] * 3
        assert batch["bytes"] == [b"x"] * 3
        assert batch["image"].cpu().tolist() == [[0, 0], [1, 1], [2, 2]]
        assert batches[1]["meta"].x[0].cpu().tolist() == [3]


def test_objects_with_a_to_method_are_moved(simulated):
    class Graph:
        place = "cpu"

        def to(self, device, non_blocking=False):
            self.place = str(device)
            return self

    (batch,) = DataLoader(range(2), batch_size=2, collate_fn=lambda batch: [Graph(), None], device="cuda")
    assert batch[0].place == "cuda"
    assert batch[1] is None


def test_the_next_batch_is_staged_while_one_is_in_use(simulated):
    fetched = []

    class Noting(Squares):
        def __getitem__(self, index):
            fetched.append(index)
            return index

    batches = iter(DataLoader(Noting(3), device="cuda"))
    assert next(batches).item() == 0
    assert fetched == [0, 1]
    assert next(batches).item() == 1
    assert fetched == [0, 1, 2]
    assert next(batches).item() == 2
    with pytest.raises(StopIteration):
        next(batches)


def test_a_staged_error_waits_for_its_turn(simulated):
    batches = iter(DataLoader(Failing(6), batch_size=3, device="cuda"))
    assert next(batches).tolist() == [0, 1, 2]
    with pytest.raises(KeyError, match="number three"):
        next(batches)


def test_staging_is_one_copy_per_tensor(simulated):
    loader = DataLoader(TensorDataset(torch.ones(6, 3), torch.ones(6)), batch_size=2, device="cuda")
    with cuda.transfers() as ledger:
        for _ in loader:
            pass
    ledger.assert_at_most(h2d=6, d2h=0, syncs=0)


def test_pin_memory(simulated):
    (batch,) = DataLoader(TensorDataset(torch.ones(2)), batch_size=2, pin_memory=True)
    assert batch[0].is_pinned()


@pytest.mark.usefixtures("no_device")
def test_pin_memory_without_a_device_does_nothing():
    (batch,) = DataLoader(TensorDataset(torch.ones(2)), batch_size=2, pin_memory=True, device="cpu")
    assert not batch[0].is_pinned()
