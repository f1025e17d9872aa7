"""What may happen to a file while its tensors are in use: a copy does not notice, and a save does not disturb a map."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

from tritensor import cuda
from tritensor.errors import CheckpointError
from tritensor.nn import Linear
from tritensor.serialization import load, load_into, save
from tritensor.tensors import wrap

from .crafted_checkpoints import legacy, pickled, tensor

COUNT = 100_000  # elements: many pages


def state(start):
    return {"weight": wrap(np.arange(start, start + COUNT)), "bias": wrap(np.full((3, COUNT), start, np.float32))}


def holds(found, start):
    return found["weight"].tolist() == list(range(start, start + COUNT)) and bool((found["bias"]._data == start).all())


def is_mapped(path):
    """Whether this process has the file in its memory; None where the system does not tell."""
    if not os.path.exists("/proc/self/maps"):
        return None
    with open("/proc/self/maps") as maps:
        return str(path) in maps.read()


@pytest.mark.parametrize("name", ["model.pt", "model.safetensors"])
@pytest.mark.parametrize("mmap", [None, False])
def test_a_file_that_was_read_may_be_truncated(tmp_path, name, mmap):
    path = tmp_path / name
    save(state(1), path)
    found = load(path, mmap=mmap)
    assert not is_mapped(path)
    os.truncate(path, 0)
    assert holds(found, 1)


def test_a_safetensors_file_is_read_even_where_a_map_is_asked_for(tmp_path):
    path = tmp_path / "model.safetensors"
    save(state(1), path)
    found = load(path, mmap=True)
    os.truncate(path, 0)
    assert holds(found, 1)


def test_an_old_file_that_was_read_may_be_truncated(tmp_path):
    path = tmp_path / "old.pt"
    path.write_bytes(legacy(pickled(tensor())))
    found = load(path, mmap=False)
    os.truncate(path, 0)
    assert found.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("name", ["model.pt", "model.safetensors"])
def test_a_file_that_is_truncated_while_it_is_read_is_an_error(tmp_path, monkeypatch, name):
    """And not the end of the process, as for a map."""
    path = tmp_path / name
    save(state(1), path)

    def cut(*_):
        os.truncate(path, 4096)
        return "cpu"

    with pytest.raises(CheckpointError, match=name):
        load(path, map_location=lambda storage, location: cut() and storage)


def test_a_model_that_was_loaded_into_does_not_hold_the_file(tmp_path):
    path, model = tmp_path / "model.pt", Linear(200, 300)
    save(model.state_dict(), path)
    load_into(model, path)
    assert not is_mapped(path)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows replaces no file that is mapped")
def test_a_save_leaves_the_tensors_of_a_map_as_they_were(tmp_path):
    path = tmp_path / "model.pt"
    save(state(1), path)
    found = load(path, mmap=True)
    assert is_mapped(path) in (True, None)
    save({"weight": wrap(np.zeros(1))}, path)  # shorter: a file cut to this length would end the process
    assert holds(found, 1)
    save(found, path)  # and its own tensors, half of which are still in the file that is replaced
    assert holds(load(path), 1)


def test_a_map_is_gone_with_its_tensors(tmp_path):
    path = tmp_path / "model.pt"
    save(state(1), path)
    with cuda.simulate(devices=1):
        found = load(path, "cuda", mmap=True)  # read, and copied to the device
        assert not is_mapped(path)
        os.truncate(path, 0)
        assert found["weight"]._to_host()[-1] == COUNT
    save(state(1), path)
    found = load(path, mmap=True)
    del found
    assert not is_mapped(path)
