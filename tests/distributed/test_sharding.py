"""fully_shard, DTensor and tensor parallelism beside one process: the programs compare, this starts them."""

from __future__ import annotations

import pytest

from ..needs import needs_triton
from .jobs import launch, needs_mpi

CASES = ["fsdp", "keeps", "uneven", "second_dimension", "offload", "mixed", "meta", "several", "prefetching", "overlap"]
CASES += ["computed_again", "tp", "sequence", "compiled"]


def run(ranks, device, *cases, **settings):
    done = launch(ranks, "sharding.py", device, *cases, OMP_NUM_THREADS="1", **settings)
    assert done.returncode == 0, done.stderr
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == list(cases), done.stderr


@needs_mpi
def test_a_divided_model_trains_as_in_one_process():
    run(2, "cpu", "uneven", "mixed", "sequence", STEPS="2")


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_all_ways_to_divide_a_model(ranks):
    run(ranks, "cpu", *[case for case in CASES if ranks != 3 or case not in ("tp", "sequence", "compiled")])
    if ranks == 4:
        run(4, "cpu", "hsdp", "tp_fsdp")


@pytest.mark.thorough
@needs_mpi
@needs_triton
def test_a_divided_model_on_simulated_devices():
    run(2, "cuda", *CASES, TRITENSOR_SIMULATE_CUDA="2")


@needs_mpi
@pytest.mark.parametrize(
    ("ranks", "first", "count"),
    [(2, 0, 2), *(pytest.param(n, 1000 * n, 70, marks=pytest.mark.thorough) for n in (2, 3, 4))],
)
def test_random_trees_of_modules(ranks, first, count):
    done = launch(ranks, "sharded_trees.py", str(first), str(count), "cpu", OMP_NUM_THREADS="1")
    assert (done.returncode, done.stdout) == (0, f"{count} trees on {ranks} ranks agree\n"), done.stderr


@pytest.mark.thorough
@needs_mpi
@needs_triton
def test_random_trees_on_simulated_devices():
    done = launch(2, "sharded_trees.py", "9000", "12", "cuda", TRITENSOR_SIMULATE_CUDA="2", OMP_NUM_THREADS="1")
    assert (done.returncode, done.stdout) == (0, "12 trees on 2 ranks agree\n"), done.stderr


@needs_mpi
def test_what_is_refused():
    done = launch(2, "sharding_errors.py")
    assert (done.returncode, done.stdout) == (0, "all was refused\n"), done.stderr


@pytest.mark.thorough
@needs_mpi
@needs_triton
def test_memory_of_a_rank():
    """Parameters, gradients and state of AdamW take 1/N, within a tenth."""
    done = launch(4, "sharded_memory.py", TRITENSOR_SIMULATE_CUDA="4", OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    shares = [float(word) for word in done.stdout.split()]
    assert len(shares) == 4 and all(0.9 * want <= share <= 1.1 * want for share, want in zip(shares, (1, 2, 4, 4)))
