"""A process that is killed while it saves leaves a whole file, the one before or the new one, and the next save removes
what it left beside it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time

import numpy as np
import pytest

from tritensor.serialization import load, save
from tritensor.tensors import wrap

# Saves one round after another for as long as it lives, and says when each is done. Every tensor of a round holds the
# round's number, so half of one and half of another would be seen.
SAVES = """
import sys
import numpy as np
from tritensor.serialization import save
from tritensor.tensors import wrap
path, number = sys.argv[1], int(sys.argv[2])
while True:
    number += 1
    save({str(i): wrap(np.full(50_000, number, np.int64)) for i in range(8)}, path)
    print(number, flush=True)
"""


def check(path, least):
    """The round that the file holds, which must be whole and no older than `least`."""
    found = load(path)
    number = int(found["0"]._data[0])
    assert number >= least
    assert len(found) == 8
    for tensor in found.values():
        assert (tensor._data == number).all()
    return number


def kill_while_saving(path, times, seed):
    """The number of kills that left a file behind."""
    state = {str(i): wrap(np.zeros(50_000, np.int64)) for i in range(8)}
    save(state, path)
    chance, number, left_behind = random.Random(seed), 0, 0
    for _ in range(times):
        command = [sys.executable, "-c", SAVES, str(path), str(number)]
        environment = {**os.environ, "PYTHONPATH": os.getcwd()}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
            said = int(process.stdout.readline())
            if sys.platform != "win32":  # where it takes an hour until a file counts as abandoned
                assert len(os.listdir(path.parent)) <= 2  # its first save has removed what the process before left
            time.sleep(chance.random() * 0.02)
            process.kill()
            process.wait()
        number = check(path, said)
        left_behind += len(os.listdir(path.parent)) > 1
    if sys.platform != "win32":
        save(state, path)
        assert os.listdir(path.parent) == [path.name]
    return left_behind


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["model.pt", "model.safetensors"])
def test_a_kill_while_saving_leaves_a_whole_file(tmp_path, name):
    kill_while_saving(tmp_path / name, 10, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["model.pt", "model.safetensors"])
def test_two_hundred_kills_while_saving_leave_a_whole_file_each(tmp_path, name):
    # at least some of them must have come in the middle of a save, or nothing was tested
    assert kill_while_saving(tmp_path / name, 200, seed=2) > 20
