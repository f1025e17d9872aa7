"""`elastic_launch`: a function in all processes of a job, as notebooks start it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

import tritensor
from tritensor import distributed
from tritensor.distributed.elastic.multiprocessing.errors import ChildFailedError
from tritensor.distributed.launcher.api import LaunchConfig, elastic_launch


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where recorded errors stay."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def total(value: float) -> tuple[list[float], str]:
    """The sum of `value` over the processes, and who this one is."""
    distributed.init_process_group("mpi")
    summed = tritensor.full((2,), value)
    distributed.all_reduce(summed)
    distributed.destroy_process_group()
    return summed.tolist(), os.environ["RANK"]


def fail_twice(marks: str) -> int:
    """Fail in the first two attempts, by an exception of rank 1."""
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    Path(marks, f"{attempt}.{os.environ['RANK']}").touch()
    if attempt < 2 and os.environ["RANK"] == "1":
        raise RuntimeError("not yet")
    return attempt


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_function_runs_in_all_processes_and_returns_by_rank(method: str) -> None:
    config = LaunchConfig(1, 1, 2, start_method=method)
    found = elastic_launch(config, total)(3.0)
    assert found == {0: ([6.0, 6.0], "0"), 1: ([6.0, 6.0], "1")}
    assert "RANK" not in os.environ


def test_processes_that_fail_are_started_again_and_told_in_the_end(tmp_path: Path) -> None:
    config = LaunchConfig(1, 1, 2, start_method="fork", max_restarts=2)
    assert elastic_launch(config, fail_twice)(str(tmp_path)) == {0: 2, 1: 2}
    config = LaunchConfig(1, 1, 2, start_method="fork", max_restarts=1)
    with pytest.raises(ChildFailedError, match="RuntimeError: not yet") as caught:
        elastic_launch(config, fail_twice)(str(tmp_path))
    assert list(caught.value.failures) == [1]


def wait_or_leave(marks: str) -> None:
    """Rank 0 leaves at once, and the other says that it is there and waits."""
    if os.environ["RANK"] == "0":
        sys.exit()
    Path(marks, str(os.getpid())).touch()
    time.sleep(60)


def test_an_interrupt_ends_all_processes(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()

    def interrupt() -> None:
        while not any(marks.iterdir()):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        elastic_launch(LaunchConfig(1, 1, 2, start_method="fork"), wait_or_leave)(str(marks))
    thread.join()
    with pytest.raises(ProcessLookupError):
        os.kill(int(next(marks.iterdir()).name), 0)


def test_nodes_are_told_their_ranks() -> None:
    with pytest.raises(ValueError, match="rdzv_configs"):
        elastic_launch(LaunchConfig(2, 2, 1, rdzv_endpoint="127.0.0.1:29500"), total)(1.0)
