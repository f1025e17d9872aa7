"""`python -m tritensor launch`: what workers find, what is done when one fails, what their launcher says and leaves."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tritensor.distributed import launchers
from tritensor.distributed import run as runs
from tritensor.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, record

from ..needs import needs_triton

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "tritensor", "launch"]
linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends a launcher's workers on Linux only")


def environment(**more: str) -> dict[str, str]:
    """That of this process, without what a launcher, a user or a test has set for launchers."""
    mine = ("TRITENSOR_", "PET_", "TORCHELASTIC_", "PYTHON", "OMP_NUM_THREADS")
    return {name: value for name, value in os.environ.items() if not name.startswith(mine)} | {
        "PYTHONPATH": str(ROOT),
        **more,
    }


def launch(*words: str | Path, folder: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment(**more), timeout=60)


def shell(text: str, *options: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Workers that are shells, which start at once."""
    return launch(*options, "--no-python", "sh", "-c", text, **more)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where launchers put what they make."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    for name in [name for name in os.environ if name.startswith(("PET_", "TORCHELASTIC_"))]:
        monkeypatch.delenv(name)
    return folder


def test_options_have_torchruns_spellings_and_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for words in (["--nproc-per-node", "3"], ["--nproc_per_node=3"], ["-n", "3"]):
        assert runs.parse_args([*words, "train.py", "-n", "4"]).nproc_per_node == "3"
    monkeypatch.setenv("PET_NPROC_PER_NODE", "5")
    monkeypatch.setenv("PET_MAX_RESTARTS", "2")
    monkeypatch.setenv("PET_STANDALONE", "1")
    monkeypatch.setenv("PET_NO_PYTHON", "0")
    monkeypatch.setenv("PET_TEE", "3")
    options = runs.parse_args(["--max-restarts", "1", "train.py", "--epochs", "3"])
    assert (options.nproc_per_node, options.max_restarts, options.tee) == ("5", 1, "3")
    assert (options.standalone, options.no_python, options.module) == (True, False, False)
    assert (options.training_script, options.training_script_args) == ("train.py", ["--epochs", "3"])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("absent.py", "there is no file 'absent.py'"),
        ("--no-python absent", "there is no program 'absent'"),
        ("-n x FILE", "--nproc-per-node: expected a number, auto, cpu or gpu, got 'x'"),
        ("-n 0 FILE", "--nproc-per-node: expected a number"),
        ("--nnodes 2:x FILE", "--nnodes: expected N or MIN:MAX, got '2:x'"),
        ("--nnodes 1:2 --master a:1 FILE", "--node-rank: expected the rank of this node, from 0 to 1, got nothing"),
        ("--nnodes 2 --node-rank 2 --master a:1 FILE", "from 0 to 1, got 2"),
        ("--nnodes 2 --node-rank 1 FILE", "--master-addr: expected the address of rank 0's node"),
        ("--nnodes 2 --node-rank 1 --master a:1 --max-restarts 1 FILE", "--max-restarts: nodes cannot agree"),
        ("--nnodes 2 --node-rank 1 --standalone FILE", "--standalone: for one node"),
        ("--master a:b FILE", "--master: expected HOST:PORT, got 'a:b'"),
        ("--rdzv-endpoint a:70000 FILE", "--master-port: expected a number below 65536, got 70000"),
        ("--rdzv-backend etcd FILE", "--rdzv-backend: no static or c10d: 'etcd'"),
        ("--tee 0:4 FILE", "--tee: expected LOCAL_RANK:N"),
        ("--local-ranks-filter a FILE", "--local-ranks-filter: expected numbers, as 0,1, got 'a'"),
        ("--shutdown-timeout -1 FILE", "--shutdown-timeout: at least 0"),
        ("--log-dir FILE FILE", "is a file"),
        ("--no-python -m true", "--no-python and --module exclude each other"),
    ],
)
def test_bad_options_are_refused_before_anything_starts(words: str, expected: str) -> None:
    options = runs.parse_args([__file__ if word == "FILE" else word for word in words.split()])
    with pytest.raises(ValueError, match=re.escape(expected)):
        runs.run(options)


def test_bad_options_end_the_command_with_status_2() -> None:
    done = launch("absent.py", PET_NPROC_PER_NODE="2")
    assert done.returncode == 2 and not done.stdout
    assert "usage: python -m tritensor launch" in done.stderr and "error: there is no file 'absent.py'" in done.stderr
    done = launch(__file__, PET_MAX_RESTARTS="x")
    assert done.returncode == 2 and "invalid int value: 'x'" in done.stderr


def places(*words: str, **more: str) -> list[dict[str, str]]:
    """The variables that workers find, by rank."""
    names = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE ROLE_RANK ROLE_WORLD_SIZE "
    names += "ROLE_NAME MASTER_ADDR MASTER_PORT TORCHELASTIC_RESTART_COUNT TORCHELASTIC_MAX_RESTARTS "
    names += "TORCHELASTIC_RUN_ID TORCHELASTIC_ERROR_FILE TORCHELASTIC_USE_AGENT_STORE OMP_NUM_THREADS"
    done = shell("echo " + " ".join(f"{name}=${name}" for name in names.split()), *words, **more)
    assert done.returncode == 0, done.stderr
    found = [dict(word.split("=") for word in line.split()) for line in done.stdout.splitlines()]
    return sorted(found, key=lambda place: int(place["RANK"]))


def test_workers_find_their_places(temporary: Path) -> None:
    first, second = places("--nproc-per-node=2")
    assert int(first["MASTER_PORT"]) > 1023 and first["MASTER_PORT"] == second["MASTER_PORT"]
    assert len(first["TORCHELASTIC_RUN_ID"]) == 36 and first["OMP_NUM_THREADS"] == "1"
    assert second["TORCHELASTIC_ERROR_FILE"].endswith("/attempt_0/1/error.json")
    expected = "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 GROUP_RANK=0 GROUP_WORLD_SIZE=1 ROLE_RANK=1 "
    expected += "ROLE_WORLD_SIZE=2 ROLE_NAME=default MASTER_ADDR=127.0.0.1 TORCHELASTIC_RESTART_COUNT=0 "
    expected += "TORCHELASTIC_MAX_RESTARTS=0 TORCHELASTIC_USE_AGENT_STORE="
    assert dict(word.split("=") for word in expected.split()).items() <= second.items()
    assert [*temporary.iterdir()] == []


@pytest.mark.thorough
def test_workers_of_a_second_node_find_their_places() -> None:
    words = "--nnodes 1:3 --node-rank 1 --rdzv-backend c10d --rdzv-endpoint [::1]:4321 --rdzv-id job --role actor"
    third = places(*words.split(), PET_NPROC_PER_NODE="2", OMP_NUM_THREADS="7")[0]
    expected = "RANK=2 WORLD_SIZE=6 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 GROUP_RANK=1 GROUP_WORLD_SIZE=3 ROLE_RANK=2 "
    expected += "ROLE_NAME=actor MASTER_ADDR=::1 MASTER_PORT=4321 TORCHELASTIC_RUN_ID=job OMP_NUM_THREADS=7"
    assert dict(word.split("=") for word in expected.split()).items() <= third.items()
    words = "--nnodes=2 --node_rank=0 --master_addr=node0"
    assert places(*words.split())[0]["MASTER_PORT"] == "29500"


@needs_triton
@pytest.mark.parametrize("words", [["program.py"], pytest.param(["-m", "program"], marks=pytest.mark.thorough)])
def test_programs_and_modules_are_run_by_tritensor(words: list[str], tmp_path: Path) -> None:
    text = "import os, sys, torch\nprint(os.environ['RANK'], torch.__name__, torch.cuda.device_count(), sys.argv[1:])"
    (tmp_path / "program.py").write_text(text, encoding="utf-8")
    expected = ["0 torch 2 ['--x', '-n']", "1 torch 2 ['--x', '-n']"]
    done = launch("-n", "gpu", "--simulate-cuda", "2", *words, "--x", "-n", folder=tmp_path)
    assert sorted(done.stdout.splitlines()) == expected, done.stderr


FAILING = """
import os, signal, sys, time
def leave(*_):
    print("rank 0 says goodbye", flush=True)
    sys.exit(3)
signal.signal(signal.SIGTERM, leave)
open("ready" + os.environ["RANK"], "w")
while os.environ["RANK"] == "0" or not os.path.exists("ready0"):
    time.sleep(0.02)
raise ValueError("boo")
"""


def test_an_exception_is_told_and_the_others_are_asked_to_end(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(FAILING, encoding="utf-8")
    done = launch("-n", "2", "--shutdown-timeout", "0.4", "--log-dir", "logs", "program.py", folder=tmp_path)
    assert done.returncode == 1
    assert done.stdout == "rank 0 says goodbye\n"
    assert "[launch] rank 1 failed (exit code 1); the others get SIGTERM in 0.4 s" in done.stderr
    report = done.stderr.partition("program.py FAILED")[2]
    others, _, root = report.partition("Root Cause (first observed failure):")
    assert "rank      : 0 (local_rank: 0)\n  exitcode  : 3 (pid: " in others and "error_file: <N/A>" in others
    assert "rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: " in root
    assert 'program.py", line 10, in <module>' in root and "ValueError: boo\n=====" in root
    (written,) = (tmp_path / "logs").glob("*/attempt_0/1/error.json")
    assert f"error_file: {written}" in root
    assert json.loads(written.read_text())["message"]["message"] == "ValueError: boo"


def test_a_signal_is_told_and_who_does_not_end_is_killed(tmp_path: Path) -> None:
    text = 'trap "" TERM; [ $RANK = 1 ] || touch $READY; until [ -e $READY ]; do sleep 0.02; done; '
    text += "[ $RANK = 0 ] || kill -SEGV $$; sleep 60"
    start = time.monotonic()
    done = shell(text, "-n", "2", "--shutdown-timeout", "0.2", READY=str(tmp_path / "ready"))
    assert done.returncode == 1 and time.monotonic() - start < 20
    others, _, root = done.stderr.partition("Root Cause")
    assert "rank 1 failed (Signal 11 (SIGSEGV))" in others
    assert "exitcode  : -9 (pid: " in others and ") (SIGKILL)" in others
    assert "exitcode  : -11 (pid: " in root and "traceback : Signal 11 (SIGSEGV) of PID " in root


def test_workers_are_started_again_until_they_succeed(temporary: Path) -> None:
    text = 'echo "$TORCHELASTIC_RESTART_COUNT of $TORCHELASTIC_MAX_RESTARTS at $MASTER_PORT"; '
    text += "[ $RANK = 0 ] || exit $((2 - TORCHELASTIC_RESTART_COUNT))"
    done = shell(text, "-n", "2", "--max-restarts", "3")
    assert done.returncode == 0
    counts = [line.partition(" at ")[0] for line in done.stdout.splitlines()]
    assert counts == [f"{attempt} of 3" for attempt in (0, 0, 1, 1, 2, 2)]
    assert len({line.partition(" at ")[2] for line in done.stdout.splitlines()}) == 3
    assert "rank 1 failed first (exit code 2); restart 1 of 3" in done.stderr and "FAILED" not in done.stderr
    assert [*temporary.iterdir()] == []
    done = shell(text, "-n", "2", "--max-restarts", "1", "--master-port", "4321")
    assert done.returncode == 1 and done.stdout.count(" at 4321\n") == 4 and "exitcode  : 1 " in done.stderr


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended may wait to be noticed."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@linux
@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", -15), ("SIGKILL", -9)])
def test_no_worker_outlives_its_launcher(name: str, status: int) -> None:
    text = "trap 'echo ended; exit' INT TERM; echo $$; while :; do sleep 0.05; done"
    command = [*COMMAND, "-n", "2", "--no-python", "sh", "-c", text]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()) as launcher:
        assert launcher.stdout is not None
        pids = [int(launcher.stdout.readline()) for _ in range(2)]
        assert all(map(alive, pids))
        launcher.send_signal(signal.Signals[name])
        assert launcher.wait(20) == status
        assert launcher.stdout.read() == (b"" if name == "SIGKILL" else b"ended\nended\n")
    end = time.monotonic() + 10
    while any(map(alive, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(map(alive, pids))


def test_lines_of_workers_are_not_mixed() -> None:
    text = "for i in 1 2 3 4 5 6; do printf $RANK$i; sleep 0.01; echo $RANK; done; printf $RANK-"
    done = shell(text, "-n", "3")
    whole = [f"{rank}{i}{rank}" for rank in "012" for i in "123456"]
    assert sorted(done.stdout.split()) == sorted([*whole, "0-", "1-", "2-"])


def files(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("*/attempt_0/*/*")):
        yield f"{'/'.join(path.parts[-2:])}: {path.read_text()}"


def test_output_goes_to_files_and_to_the_console(tmp_path: Path) -> None:
    text = "echo out$RANK; echo err$RANK >&2"
    done = shell(text, "-n", "2", "--tee", "3", "--redirects", "0:1", "--log-dir", tmp_path / "both", "--rdzv-id", "x")
    assert sorted(done.stdout.splitlines()) == ["[default0]:out0", "[default1]:out1"]
    assert [line for line in sorted(done.stderr.splitlines()) if "[default" in line] == [
        "[default0]:err0",
        "[default1]:err1",
    ]
    assert [*(tmp_path / "both").glob("x_*")]
    assert [*files(tmp_path / "both")] == [
        f"{rank}/{name}.log: {word}{rank}\n" for rank in "01" for name, word in (("stderr", "err"), ("stdout", "out"))
    ]
    words = ("-r", "0:1", "--local-ranks-filter", "0", "--log-dir", tmp_path / "few")
    done = shell(text, "-n", "2", *words, OMP_NUM_THREADS="1")
    assert (done.stdout, done.stderr) == ("", "err0\n")
    assert [*files(tmp_path / "few")] == ["0/stdout.log: out0\n"]


def test_record_writes_what_a_launcher_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @record
    def fails(number: int) -> int:
        """Fails."""
        return 1 // number

    assert fails(1) == 1 and fails.__doc__ == "Fails."
    with pytest.raises(ZeroDivisionError):  # without a launcher
        fails(0)
    path = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(path))
    with pytest.raises(ZeroDivisionError):
        fails(0)
    message = json.loads(path.read_text())["message"]
    assert message["message"] == "ZeroDivisionError: integer division or modulo by zero"
    assert "in fails" in message["extraInfo"]["py_callstack"] and int(message["extraInfo"]["timestamp"]) > 0
    first = ProcessFailure(0, 12, 1, str(path))
    late = ProcessFailure(1, 13, -signal.SIGTERM, str(tmp_path / "absent"))
    assert late.error_file == "<N/A>" and late.signal_name() == "SIGTERM"
    error = ChildFailedError("train.py", {1: late, 0: first})
    assert error.get_first_failure() == (0, first)

    @record
    def launches() -> None:
        raise error

    outer = tmp_path / "outer.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(outer))
    with pytest.raises(ChildFailedError):
        launches()
    assert outer.read_text() == path.read_text()
    path.write_text('{"message": ')  # the worker was killed meanwhile
    assert ProcessFailure(0, 12, -9, str(path)).message == "Signal 9 (SIGKILL) of PID 12; no exception was recorded"


PROGRAM = """
import sys
import torch.distributed.run as torchrun
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launch import main
from torch.multiprocessing import spawn

def work(rank, threads):
    import torch
    print("spawned", torch.__name__, rank + threads, flush=True)

if __name__ == "__main__":
    known, _ = torchrun.get_args_parser().parse_known_args(["--training_script", "x", "--training_script_args", []])
    known.training_script, known.training_script_args = sys.argv[1], ["1"]
    known.nproc_per_node, known.master_port, known.log_dir = "2", "4321", None
    try:
        torchrun.run(known)
    except ChildFailedError as error:
        print("rank", error.get_first_failure()[0], flush=True)
    main(["--nproc_per_node=2", sys.argv[1]])
    spawn(work, (5,), nprocs=1)
"""
WORKER = """
import os, sys
import torch
print(torch.__name__, sys.argv[1:])
sys.exit(os.environ["RANK"] if os.environ["MASTER_PORT"] == "4321" and os.environ["RANK"] == "1" else 0)
"""


@pytest.mark.thorough
def test_programs_start_workers_by_pytorchs_modules(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "worker.py").write_text(WORKER, encoding="utf-8")
    command = [sys.executable, "-m", "tritensor", "run"]
    modules = [*command, "-m", "torch.distributed.run", "--nproc-per-node=2", "worker.py", "by name"]
    done = subprocess.run(modules, capture_output=True, text=True, cwd=tmp_path, env=environment(), timeout=60)
    assert (done.returncode, done.stdout) == (0, "torch ['by name']\n" * 2), done.stderr
    command += ["program.py", "worker.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment(), timeout=60)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == ["torch ['1']", "torch ['1']", "rank 1"] and lines[-1] == "spawned torch 5"
    assert sorted(lines[3:5]) == ["torch ['--local-rank=0']", "torch ['--local-rank=1']"]


def test_mpis_processes_are_told_what_torchruns_are(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if re.match("(PMI|MPI|OMPI|SLURM|RANK|WORLD|LOCAL|MASTER)", name)]:
        monkeypatch.delenv(name)
    assert launchers.as_torchrun() == {}
    for name, value in {"PMI_RANK": 3, "PMI_SIZE": 4, "MPI_LOCALRANKID": 1, "MPI_LOCALNRANKS": 2}.items():
        monkeypatch.setenv(name, str(value))
    told = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    assert launchers.as_torchrun() == told  # of two machines, of which neither is known to be rank 0's
    monkeypatch.setenv("MPI_LOCALNRANKS", "4")
    there = launchers.as_torchrun()
    assert there["MASTER_ADDR"] == "127.0.0.1" and int(there["MASTER_PORT"]) >= 20000
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert launchers.as_torchrun() == {}
