"""FullyShardedDataParallel and ZeroRedundancyOptimizer in several processes."""

from __future__ import annotations

import pytest

from .jobs import launch, needs_mpi


@needs_mpi
@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.thorough)])
def test_wrapped_modules_and_shares_of_optimizers_are_as_one_process(ranks):
    done = launch(ranks, "wrapped_sharding.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "as one process\n"
