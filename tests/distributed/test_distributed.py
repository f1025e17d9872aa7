"""Several processes, started by mpiexec as a user starts them: collectives, disagreement, and processes that fail."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
import types

import pytest

import tritensor as torch
import tritensor.distributed as dist
from tritensor import cuda
from tritensor.distributed import backends, checks, failure
from tritensor.distributed.backends import nccl
from tritensor.errors import DistError, TritensorError
from tritensor.nn.parallel.reducer import split
from tritensor.utils.data import DistributedSampler

from ..devices import libcuda_stub
from ..needs import needs_triton
from .jobs import MPIEXEC, PROGRAMS, environment, free_port, launch, needs_mpi

# ---- collectives --------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize("ranks", [2, *(pytest.param(ranks, marks=pytest.mark.slow) for ranks in (1, 4))])
def test_collectives(ranks):
    done = launch(ranks, "collectives.py", "cpu")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"all collectives on {ranks} ranks\n"
    assert done.stderr == ""  # MPI complains here about what was not finished


@needs_mpi
@pytest.mark.thorough
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_collectives_of_large_arrays(ranks):
    done = launch(ranks, "large_arrays.py")
    assert (done.returncode, done.stdout) == (0, f"large arrays on {ranks} ranks\n"), done.stderr
    assert done.stderr == ""


@needs_mpi
@needs_triton
@pytest.mark.parametrize("late", [pytest.param("0", marks=pytest.mark.slow), "1"])
def test_collectives_on_simulated_devices(late):
    done = launch(2, "collectives.py", "cuda", TRITENSOR_SIMULATE_CUDA="1", TRITENSOR_SIMULATE_LATE=late)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "all collectives on 2 ranks\n"


@needs_mpi
@pytest.mark.parametrize(
    ("ranks", "first", "count"),
    [(3, 0, 4), *(pytest.param(ranks, 1000 * ranks, 70, marks=pytest.mark.slow) for ranks in (2, 3, 4))],
)
def test_random_schedules(ranks, first, count):
    """Collectives, messages and objects in random groups, some in the background and waited for in random orders."""
    done = launch(ranks, "schedule.py", str(first), str(count), "cpu")
    assert (done.returncode, done.stdout) == (0, f"{count} schedules on {ranks} ranks agree\n"), done.stderr


@pytest.mark.slow
@needs_mpi
@needs_triton
@pytest.mark.parametrize("ranks", [2, 4])
def test_random_schedules_on_simulated_devices(ranks):
    done = launch(ranks, "schedule.py", "9000", "12", "cuda", TRITENSOR_SIMULATE_CUDA="2")
    assert (done.returncode, done.stdout) == (0, f"12 schedules on {ranks} ranks agree\n"), done.stderr


@pytest.mark.thorough
@needs_mpi
def test_collectives_with_gradients():
    done = launch(2, "gradients.py")
    assert (done.returncode, done.stdout) == (0, "gradients pass through collectives\n"), done.stderr


@needs_mpi
def test_collectives_without_mpiexec():
    """A program that is started alone is a job of one process."""
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / "collectives.py"), "cpu"], env=environment(), capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "all collectives on 1 ranks\n"), done.stderr


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize("arguments", [pytest.param(tuple, id="met by MPI"), pytest.param(free_port, id="in a store")])
def test_collectives_by_nccl(tmp_path, arguments):
    """nccl's half of the backend, on a stub of libcuda and a binding that reduces by MPI."""
    path = libcuda_stub.environment(tmp_path)["LD_LIBRARY_PATH"]
    settings = {"LD_LIBRARY_PATH": path, "STUB_DEVICES": "2", "CUDA_VISIBLE_DEVICES": "0,1"}
    done = launch(2, "nccl_binding.py", *arguments(), **settings)
    assert (done.returncode, done.stdout) == (0, "nccl on 2 ranks\n"), done.stderr


@needs_triton
def test_nccl_around_what_its_kernels_would_do():
    """What the stub cannot show, because its kernels do nothing: casts, and results for tensors with gaps."""
    with cuda.simulate(devices=2):
        backend = object.__new__(nccl.NcclBackend)
        backend.nccl, backend.device = types.SimpleNamespace(SUM="sum"), torch.device("cuda:0")
        x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.bfloat16, device="cuda").t()
        dense, operator = backend._reducible(x, dist.ReduceOp.SUM)
        assert (dense.dtype, operator) == (torch.bfloat16, "sum")  # sent as 16 bits
        assert type(nccl._span(dense)) is nccl._Numbers
        assert dense.tolist() == [[1.0, 3.0], [2.0, 4.0]]
        dense = dense.float()
        nccl._overwrite(x, dense * 2)
        assert (x.dtype, x.tolist()) == (torch.bfloat16, [[2.0, 6.0], [4.0, 8.0]])
        span = nccl._Span(dense).__cuda_array_interface__
        assert (span["shape"], span["typestr"], span["data"]) == ((4,), "<f4", (dense.data_ptr(), False))


# ---- one model ----------------------------------------------------------------------------------------------------


@needs_mpi
@pytest.mark.parametrize("ranks", [2, *(pytest.param(ranks, marks=pytest.mark.slow) for ranks in (1, 4))])
def test_one_model_in_several_processes(ranks):
    done = launch(ranks, "parallel_module.py", "cpu")
    assert (done.returncode, done.stdout) == (0, f"one model on {ranks} ranks\n"), done.stderr


@pytest.mark.thorough
@needs_mpi
@needs_triton
def test_one_model_on_simulated_devices():
    """In simulation every collective is compared first, those of the backward pass too."""
    done = launch(2, "parallel_module.py", "cuda", TRITENSOR_SIMULATE_CUDA="2")
    assert (done.returncode, done.stdout) == (0, "one model on 2 ranks\n"), done.stderr


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize("ranks", [3, *(pytest.param(ranks, marks=pytest.mark.slow) for ranks in (1, 2))])
def test_one_batch_in_several_processes(ranks):
    done = launch(ranks, "sync_batch_norm.py", "cpu")
    assert (done.returncode, done.stdout) == (0, f"one batch on {ranks} ranks\n"), done.stderr


@pytest.mark.thorough
@needs_mpi
@needs_triton
def test_one_batch_on_simulated_devices():
    done = launch(2, "sync_batch_norm.py", "cuda", TRITENSOR_SIMULATE_CUDA="1")
    assert (done.returncode, done.stdout) == (0, "one batch on 2 ranks\n"), done.stderr


def test_buckets():
    """Tensors of one dtype together up to the limit; a large one alone; positions in the order in which they start."""
    tensors = [torch.zeros(count) for count in (1, 2, 1, 100, 1)]
    assert split(tensors, (12,)) == [[0, 1], [2], [3], [4]]
    assert split(tensors, (4, 1000)) == [[0], [1, 2, 3, 4]]
    assert split([*tensors[:2], torch.zeros(1, dtype=torch.int64), tensors[2]], (100,)) == [[0, 1, 3], [2]]
    assert split([], (12,)) == []


# ---- the sampler --------------------------------------------------------------------------------------------------


def test_samplers_share_a_pass():
    for size, ranks, drop in itertools.product((0, 1, 4, 10, 11), (1, 2, 3, 5), (False, True)):
        samplers = [DistributedSampler(range(size), ranks, rank, drop_last=drop, seed=3) for rank in range(ranks)]
        parts = [list(sampler) for sampler in samplers]
        assert {len(part) for part in parts} == {len(sampler) for sampler in samplers} == {samplers[0].num_samples}
        drawn = [index for group in zip(*parts, strict=True) for index in group]
        if drop:
            assert len(set(drawn)) == len(drawn) == size - size % ranks
        else:
            assert len(drawn) == samplers[0].total_size == -(-size // ranks) * ranks
            assert set(drawn) == set(range(size))
            assert drawn[size:] == (drawn * ranks)[: len(drawn) - size]  # the first ones again


def test_samplers_draw_an_order_for_every_epoch():
    first, second = (DistributedSampler(range(50), 2, rank) for rank in (0, 1))
    epochs = []
    for epoch in (0, 1, 0):
        first.set_epoch(epoch)
        second.set_epoch(epoch)
        epochs.append([*first, *second])
    assert epochs[0] == epochs[2] != epochs[1]
    assert list(DistributedSampler(range(50), 2, 0, seed=1)) == list(iter(epochs[1][:25]))
    assert list(DistributedSampler("abcde", 2, 1, shuffle=False)) == [1, 3, 0]


def test_samplers_ask_the_group(monkeypatch):
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        DistributedSampler(range(3))
    with pytest.raises(ValueError, match=re.escape("Invalid rank 2, rank should be in the interval [0, 1]")):
        DistributedSampler(range(3), num_replicas=2, rank=2)
    monkeypatch.setattr(dist, "get_world_size", lambda: 3)
    monkeypatch.setattr(dist, "get_rank", lambda: 2)
    assert list(DistributedSampler(range(6), shuffle=False)) == [2, 5]


# ---- disagreement -------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@needs_mpi
def test_a_mismatch_raises_on_all_ranks_with_both_call_sites(tmp_path):
    done = launch(3, "mismatches.py", folder=tmp_path, TRITENSOR_DEBUG="1")
    assert done.returncode == 0, done.stderr
    first, *others = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(3))
    assert list(first) == ["shape", "dtype", "operator", "reduction", "source", "asynchronous"]
    assert others == [first, first]
    lines = (PROGRAMS / "mismatches.py").read_text().splitlines()
    for name, text in first.items():
        assert text.startswith("Detected mismatch between collectives on ranks. Rank 0 is running collective: ")
        line = next(number for number, content in enumerate(lines, 1) if f'"{name}":' in content)
        assert re.search(
            rf"\n  rank 0: .* at .*mismatches\.py:{line}\n  ranks 1, 2: .* at .*mismatches\.py:{line}\n", text
        )
    assert "all_reduce #1 (SUM) of shape (3,), tritensor.float32" in first["shape"]
    assert "all_reduce #1 (SUM) of shape (2, 2), tritensor.float32" in first["shape"]
    assert "tritensor.float64" in first["dtype"]
    assert "barrier #5 at" in first["operator"]
    assert "(MAX)" in first["reduction"]
    assert "broadcast #9 (src=1)" in first["source"]


def test_many_ranks_are_summed_up():
    found = [("all_reduce #3", "a.py:1")] + [("barrier #3", "a.py:2")] * 20
    assert checks._grouped(found, range(21)) == [
        "rank 0: all_reduce #3 at a.py:1",
        "ranks 1, 2, 3, 4, 5, 6, 7, 8 and 12 more: barrier #3 at a.py:2",
    ]


# ---- failure ------------------------------------------------------------------------------------------------------


FAILURES = [
    (
        "raises",
        r"\[rank1\]: Traceback(.|\n)*\[rank1\]: ValueError: something is wrong here\n"
        r"\[rank1\]: rank 1 of 3 ended the job: ValueError was raised and not caught there",
    ),
    ("before", r"\[rank1\]: ValueError: something is wrong here\n\[rank1\]: rank 1 of 3 ended the job"),
    ("hook", r"my own hook: something is wrong here\nrank 1 of 3 ended the job"),
    ("exits", r"rank 1 has left the job after 1 collective; rank [02] of 3 waits for it in all_reduce #2"),
    ("destroys", r"rank 1 has left the job after 1 collective; rank [02] of 3 waits for it in all_reduce"),
    (
        "sleeps",
        r"DistError: Watchdog caught collective operation timeout: all_reduce #2 \(SUM\) of shape \(3,\), "
        r"tritensor.float32 ran for 2000 milliseconds before timing out",
    ),
    (
        "early exit",
        r"timeout: init_process_group ran for 2000 milliseconds(.|\n)*rank \d of 3 waited at .*failures\.py",
    ),
    ("crashes", ""),
]
SLOW = ("before", "hook", "destroys", "early exit")  # each takes seconds, and differs little from another


@pytest.mark.sampled(1)
@needs_mpi
@pytest.mark.parametrize(
    ("how", "words"),
    [pytest.param(*case, id=case[0], marks=[pytest.mark.slow] * (case[0] in SLOW)) for case in FAILURES],
)
def test_a_rank_that_fails_ends_the_job(how, words):
    done = launch(3, "failures.py", how)
    assert done.returncode != 0
    assert done.seconds < 30
    assert re.search(words, done.stderr), done.stderr


@needs_mpi
def test_a_killed_rank_ends_the_job(tmp_path):
    command = [MPIEXEC, "-n", "3", sys.executable, str(PROGRAMS / "failures.py"), "is killed"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=pipe, stderr=pipe, text=True) as job:
        while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text()):
            assert job.poll() is None, job.stderr.read()
            time.sleep(0.02)
        start = time.monotonic()
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        out, err = job.communicate(timeout=60)
        assert time.monotonic() - start < 30
    assert job.returncode != 0
    assert "Killed" in out + err


@pytest.mark.thorough
@needs_mpi
def test_who_leaves_last_does_not_matter():
    done = launch(3, "failures.py", "last")
    assert (done.returncode, done.stdout, done.stderr) == (0, "all is well\n", "")


@pytest.mark.thorough
@needs_mpi
def test_a_wait_with_a_timeout_of_its_own():
    done = launch(2, "failures.py", "late")
    assert done.returncode == 0, done.stderr
    assert "all_reduce #2 (SUM) of shape (3,), tritensor.float32 ran for 200 milliseconds" in done.stdout


# ---- one process, no MPI ------------------------------------------------------------------------------------------


def test_there_is_no_group_before_there_is_one():
    assert not dist.is_initialized()
    assert dist.group.WORLD is None
    for call in (dist.get_rank, dist.get_world_size, dist.get_backend, dist.barrier, dist.destroy_process_group):
        with pytest.raises(
            ValueError, match="Default process group has not been initialized, please make sure to call"
        ):
            call()


def test_starting_with_nonsense():
    with pytest.raises(ValueError, match=r"Unknown backend type glue\n  Fix: use one of gloo, mpi, nccl"):
        dist.init_process_group("glue")
    with pytest.raises(ValueError, match="using tcp:// rendezvous: port number missing"):
        dist.init_process_group(init_method="tcp://localhost", rank=0, world_size=1)
    with pytest.raises(ValueError, match="using tcp:// rendezvous: rank parameter missing"):
        dist.init_process_group(init_method="tcp://localhost:1")
    with pytest.raises(RuntimeError, match="No rendezvous handler for pigeon://"):
        dist.init_process_group(init_method="pigeon://home")
    with pytest.raises(AssertionError, match="Cannot specify both init_method and store"):
        dist.init_process_group(init_method="env://", store=dist.Store())
    with pytest.raises(AssertionError, match="rank and world_size must be given"):
        dist.init_process_group(store=dist.Store())
    with pytest.raises(TypeError, match="Expected timeout argument to be of type"):
        dist.init_process_group(timeout=30)


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(DistError, match=r"MPI built in(.|\n)*pip install \"tritensor\[mpi\]\""):
        dist.init_process_group()
    monkeypatch.setitem(sys.modules, "nccl", None)
    with pytest.raises(DistError, match=r"NCCL built in(.|\n)*pip install \"tritensor\[nccl\]\""):
        nccl._load()
    assert issubclass(DistError, TritensorError)
    assert issubclass(DistError, RuntimeError)


def test_names_of_backends_are_wishes(monkeypatch):
    assert backends.parsed(None) == {"cpu": "undefined", "cuda": "undefined"}
    assert backends.parsed("cuda:nccl,cpu:gloo") == {"cuda": "nccl", "cpu": "gloo"}
    assert not backends.uses_nccl({"cuda": "nccl"})
    real = types.SimpleNamespace(lacks_nccl="")
    monkeypatch.setattr(backends, "active", lambda: real)
    assert backends.uses_nccl({"cuda": "nccl"})
    assert not backends.uses_nccl({"cuda": "gloo"})
    monkeypatch.undo()
    with cuda.simulate():
        assert dist.is_nccl_available() is dist.is_mpi_available()
    assert dist.is_available() is dist.is_mpi_available() is (importlib.util.find_spec("mpi4py") is not None)
    assert dist.is_backend_available("gloo") is dist.is_available()
    assert not dist.is_backend_available("ucc")


def test_the_local_rank_before_there_is_a_group(monkeypatch):
    for name in ("LOCAL_RANK", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    assert dist.get_node_local_rank(3) == 3
    with pytest.raises(RuntimeError, match=r"LOCAL_RANK is not in the environment. Consider passing fallback_rank"):
        dist.get_node_local_rank()
    monkeypatch.setenv("MPI_LOCALRANKID", "2")
    assert dist.get_node_local_rank() == 2


def test_an_error_before_joining(monkeypatch):
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    failure.arm()
    assert sys.excepthook is not failure._end_the_job
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "2")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "5")
    failure.arm()
    assert sys.excepthook is failure._end_the_job
    failure.unwatch()
    assert sys.excepthook is not failure._end_the_job


def test_the_wrapper_is_loaded_when_it_is_asked_for():
    code = (
        "import sys, tritensor.nn; print('tritensor.distributed' in sys.modules, end=' '); "
        "tritensor.nn.parallel.DistributedDataParallel; print('tritensor.distributed' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True)
    assert done.stdout == "False True\n", done.stderr
    with pytest.raises(AttributeError, match=r"module 'tritensor.nn.parallel' has no attribute 'Elsewhere'"):
        torch.nn.parallel.Elsewhere  # noqa: B018


def test_operations_by_name():
    assert dist.ReduceOp("sum") is dist.ReduceOp.SUM
    assert [op.name for op in dist.ReduceOp] == ["SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]
