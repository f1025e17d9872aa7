"""DistributedDataParallel's options, uneven inputs and communication hooks."""

from __future__ import annotations

import socket
import subprocess
import sys

import numpy as np
import pytest

import tritensor as torch
from tritensor.distributed.algorithms import join

from ..needs import needs_triton
from .jobs import PROGRAMS, environment, launch, needs_mpi

JOBS = {"module_options.py": "options", "join_inputs.py": "joined", "comm_hooks.py": "hooks"}


def run(program, ranks, device, **settings):
    done = launch(ranks, program, device, **settings)
    assert (done.returncode, done.stdout) == (0, f"{JOBS[program]} on {ranks} ranks\n"), done.stderr


@needs_mpi
@pytest.mark.sampled(1)
@pytest.mark.parametrize("program", JOBS)
@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.thorough)])
def test_a_module_in_several_processes(program, ranks):
    run(program, ranks, "cpu")


@pytest.mark.thorough
@needs_mpi
@needs_triton
@pytest.mark.parametrize("program", JOBS)
def test_a_module_on_simulated_devices(program):
    """In simulation every collective is compared first, those of hooks and of ranks without inputs too."""
    run(program, 2, "cuda", TRITENSOR_SIMULATE_CUDA="1")


@pytest.mark.peer
@needs_mpi
@pytest.mark.parametrize("ranks", [2, 3])
def test_uneven_inputs_and_hooks_beside_torch(ranks, tmp_path):
    pytest.importorskip("torch")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(probe.getsockname()[1])}
    settings = {**address, "WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", str(PROGRAMS / "beside_torch.py"), "torch", str(tmp_path)]
    jobs = [subprocess.Popen(command, env=environment(**settings, RANK=str(rank))) for rank in range(ranks)]
    assert [job.wait(timeout=120) for job in jobs] == [0] * ranks
    done = launch(ranks, "beside_torch.py", "tritensor", str(tmp_path))
    assert done.returncode == 0, done.stderr
    for rank in range(ranks):
        expected, found = (np.load(tmp_path / f"{name}-{rank}.npz") for name in ("torch", "tritensor"))
        assert set(found) == set(expected)
        assert len(expected) > 150
        for name, value in expected.items():
            if name == "early":
                assert found[name].tolist() == value.tolist()
                continue
            # gloo adds halves up in half precision
            tolerance = 1e-3 if name.startswith(("half", "wrapped")) else 1e-5
            np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=tolerance, err_msg=name)


def test_a_block_that_helps_for_long_warns(monkeypatch):
    """As the processes before it have: one process, and collectives that say there are others."""

    class Alone(join.Joinable):
        def __init__(self):
            super().__init__()

        def join_hook(self, **kwargs):
            return join.JoinHook()

        join_device, join_process_group = torch.device("cpu"), "the group"

    answers = iter([1.0] * 3)
    monkeypatch.setattr(join, "_total", lambda *given: next(answers, 0))
    monkeypatch.setattr(join, "_MANY", 2)
    monkeypatch.setattr(join, "get_rank", lambda group: 5)
    with pytest.warns(UserWarning, match="skew of greater than 2. This means that rank 5"), join.Join([Alone()]):
        pass
    other = Alone()
    other.join_process_group = "another"
    with pytest.raises(ValueError, match="Using join context manager with multiple process groups"):
        join.Join([Alone(), other])
