"""Checkpoint folders: written and read by different numbers of processes, here and by PyTorch, and damaged ones."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor as torch
import tritensor.distributed.checkpoint as dcp
from tritensor.errors import CheckpointError, UnsupportedError

from .jobs import PROGRAMS, environment, launch, needs_mpi

# ---- several processes --------------------------------------------------------------------------------------------


def run(library: str, ranks: int, action: str, way: str, folder: Path) -> str:
    """What the program prints."""
    if library == "tritensor":
        done = launch(ranks, "checkpoints.py", library, action, way, str(folder), OMP_NUM_THREADS="1")
        assert done.returncode == 0, done.stderr
        return done.stdout
    command = [sys.executable, "-W", "ignore", str(PROGRAMS / "checkpoints.py"), library, action, way, str(folder)]
    settings = [environment(RANK=str(rank), WORLD_SIZE=str(ranks), OMP_NUM_THREADS="1") for rank in range(ranks)]
    jobs = [subprocess.Popen(command, env=each, stdout=subprocess.PIPE, text=True) for each in settings]
    outputs = [job.communicate(timeout=120)[0] for job in jobs]
    assert [job.returncode for job in jobs] == [0] * ranks
    folder.with_name(f"{folder.name}.meeting").unlink(missing_ok=True)
    return outputs[0]


@pytest.mark.thorough
@needs_mpi
def test_four_processes_save_and_one_loads(tmp_path):
    run("tritensor", 4, "save", "tp", tmp_path / "c")
    assert run("tritensor", 1, "load", "fsdp", tmp_path / "c") == "66 values on 1 ranks\n"


@pytest.mark.thorough
@needs_mpi
@pytest.mark.parametrize(("ranks", "way"), [(4, "fsdp"), (4, "hsdp"), (2, "fsdp"), (1, "plain")])
def test_other_processes_and_meshes_load(ranks, way, tmp_path):
    run("tritensor", ranks, "save", way, tmp_path / "c")
    for count, how in ((4, "tp"), (2, "fsdp"), (1, "plain")):
        assert run("tritensor", count, "load", how, tmp_path / "c") == f"66 values on {count} ranks\n"


@needs_mpi
def test_what_fails_on_one_process_fails_on_all(tmp_path):
    assert run("tritensor", 2, "fail", "fsdp", tmp_path) == "failed on all ranks\n"


@pytest.mark.peer
@needs_mpi
@pytest.mark.parametrize("writer", ["torch", "tritensor"])
@pytest.mark.parametrize(("ranks", "way"), [(4, "fsdp"), (4, "hsdp"), (4, "tp"), (1, "plain")])
def test_exchange_with_torch(writer, ranks, way, tmp_path):
    pytest.importorskip("torch")
    run(writer, ranks, "save", way, tmp_path / "c")
    reader = "tritensor" if writer == "torch" else "torch"
    for count, how in ((4, "tp"), (2, "fsdp")):
        assert run(reader, count, "load", how, tmp_path / "c") == f"66 values on {count} ranks\n"


# ---- one process --------------------------------------------------------------------------------------------------


def state(start: float = 0.0) -> dict[str, Any]:
    tensors = {"a": torch.arange(6.0) + start, "b": [torch.ones(2) * start, {"c": start}]}
    return {"model": tensors, "epoch": int(start)}


def test_nested_values_are_loaded_in_place(tmp_path):
    dcp.save(state(1.0), checkpoint_id=tmp_path)
    found = state()
    kept = found["model"]["a"]
    dcp.load(found, storage_reader=dcp.FileSystemReader(tmp_path))
    assert kept is found["model"]["a"] and kept.tolist() == [1, 2, 3, 4, 5, 6]
    assert found["model"]["b"][1] == {"c": 1.0} and found["epoch"] == 1
    names = set(dcp.FileSystemReader(tmp_path).read_metadata().state_dict_metadata)
    assert names == {"model.a", "model.b.0", "model.b.1.c", "epoch"}


def test_modules_and_optimizers_are_saved_by_their_state(tmp_path):
    def made(seed: int) -> dict[str, Any]:
        torch.manual_seed(seed)
        model = torch.nn.Linear(3, 2)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1 + seed)
        model(torch.randn(4, 3)).sum().backward()
        optimizer.step()
        return {"model": model, "optimizer": optimizer}

    first, second = made(0), made(1)
    assert dcp.async_save(first, checkpoint_id=tmp_path).done()
    dcp.load(second, checkpoint_id=tmp_path)
    for mine, other in zip(second["model"].parameters(), first["model"].parameters(), strict=True):
        assert mine.tolist() == other.tolist()
        for name, value in first["optimizer"].state[other].items():
            assert second["optimizer"].state[mine][name].tolist() == value.tolist()
    assert second["optimizer"].param_groups[0]["lr"] == 0.1


def test_the_old_checkpoint_is_whole_until_the_new_one_is(tmp_path):
    dcp.save(state(1.0), checkpoint_id=tmp_path)
    with pytest.raises(CheckpointError, match="bad cannot be saved"):
        dcp.save({**state(2.0), "bad": lambda: 0}, checkpoint_id=tmp_path)
    dcp.load(found := state(), checkpoint_id=tmp_path)
    assert found["epoch"] == 1
    dcp.save(state(3.0), checkpoint_id=tmp_path)
    dcp.load(found, checkpoint_id=tmp_path)
    assert found["epoch"] == 3 and len(os.listdir(tmp_path)) == 2
    with pytest.raises(CheckpointError, match="already exists"):
        dcp.save(state(), storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))


def fails(folder: Path, found: dict[str, Any], match: str, **options: Any) -> None:
    """A load that raises, and changes nothing."""
    before = str(found)
    with pytest.raises(CheckpointError, match=match):
        dcp.load(found, checkpoint_id=folder, **options)
    assert str(found) == before


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def flip(path: Path) -> None:
    """Change an element of the first tensor."""
    data = path.read_bytes()
    at = data.index(np.arange(1, 7, dtype="f").tobytes())
    path.write_bytes(data[: at + 2] + b"\x07" + data[at + 3 :])


@pytest.mark.parametrize(
    ("damage", "match"),
    [
        (lambda path: path.unlink(), r"a file is missing.*__0_0\.distcp\n.*has a part of"),
        (cut, r"ends too early\n.*__0_0\.distcp, key "),
        (flip, r"checksum\n.*__0_0\.distcp, key model\.a"),
        (lambda path: (path.parent / ".metadata").unlink(), r"no file .*\.metadata"),
        (lambda path: cut(path.parent / ".metadata"), r"ends too early\n.*\.metadata"),
    ],
    ids=["missing", "torn", "damaged", "no metadata", "torn metadata"],
)
def test_damaged_folders(damage: Callable[[Path], object], match: str, tmp_path: Path) -> None:
    dcp.save(state(1.0), checkpoint_id=tmp_path)
    damage(tmp_path / "__0_0.distcp")
    fails(tmp_path, state(), match)


def test_states_that_do_not_fit(tmp_path):
    dcp.save(state(1.0), checkpoint_id=tmp_path)
    fails(tmp_path, {**state(), "more": 3}, r"Missing key in checkpoint state_dict: more\.")
    fails(tmp_path, {"epoch": 5, "model": {"a": torch.zeros(7)}}, r"Size mismatch .*\[6\].*\[7\].* for model\.a")
    fails(tmp_path, {"epoch": torch.zeros(1), "model": {}}, "epoch is a Tensor, and saved as a BytesStorageMetadata")
    fails(tmp_path, {"model": {"a": 3}}, r"model\.a is a int, and saved as a TensorStorageMetadata")
    found = {**state(), "more": 3}
    dcp.load(found, checkpoint_id=tmp_path, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert (found["more"], found["epoch"]) == (3, 1)
    with pytest.raises(CheckpointError, match=r"duplicated flatten key a\.b"):
        dcp.save({"a": {"b": 1}, "a.b": 2}, checkpoint_id=tmp_path)
    with pytest.raises(CheckpointError, match="x is a meta tensor"):
        dcp.save({"x": torch.empty(2, device="meta")}, checkpoint_id=tmp_path)
    with pytest.raises(UnsupportedError, match="a str is not supported"):
        dcp.load({}, storage_reader=str(tmp_path))
    with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified"):
        dcp.load({})


class Runs:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch ran",)


def test_nothing_that_a_file_says_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dcp.save(state(1.0), checkpoint_id=tmp_path)
    written = (tmp_path / ".metadata").read_bytes()
    hostile = [
        (pickle.dumps(Runs(), 2), "system was not an allowed global"),
        (b"\x80\x02ctorch.distributed.checkpoint.metadata\nMetadata\n)R.", "calls torch.distributed.checkpoint"),
        (b"\x80\x02ctorch.distributed.checkpoint.metadata\nMetadata\n.", "damaged"),
        (written.replace(b"__0_0.distcp", b"../..distcp/"), "not inside of the folder"),
        (written.replace(b"__0_0.distcp", b"/_0_0.distcp"), "not inside of the folder"),
        (written.replace(b"MetadataIndex", b"MetadataThing"), "MetadataThing was not an allowed global"),
        (written.replace(b"(K\x06t", b"(K\x05t", 1), "not inside of its tensor"),
    ]
    for data, match in hostile:
        assert data != written
        (tmp_path / ".metadata").write_bytes(data)
        fails(tmp_path, state(), match)
    assert not (tmp_path / "ran").exists()
