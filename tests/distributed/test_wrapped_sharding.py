"""FullyShardedDataParallel and ZeroRedundancyOptimizer in several processes."""

from __future__ import annotations

import pytest

from .jobs import launch, needs_mpi


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize("ranks", [2, 4])
def test_wrapped_modules_and_shares_of_optimizers_are_as_one_process(ranks):
    done = launch(ranks, "wrapped_sharding.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "as one process\n"
