"""Modules that programs touch in passing: compilers that return their argument, flags, processes, the hub."""

from __future__ import annotations

import hashlib
import http.server
import signal
import sys
import tempfile
import threading
import time
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tritensor as torch
from tritensor import backends, hub, jit
from tritensor import multiprocessing as mp

from ..needs import needs_triton


def test_compile_takes_pytorchs_arguments() -> None:
    model = torch.nn.Linear(2, 2)
    made = torch.compile(model, mode="max-autotune", fullgraph=True)
    assert made._orig_mod is model and torch.compile(model, disable=True) is model
    assert torch.compile(dynamic=True)(abs)(-1) == 1 and torch.compiler.disable(recursive=False)(abs)(-1) == 1
    assert torch.compiler.allow_in_graph(abs) is abs and not torch.compiler.is_compiling()
    assert not torch.compiler.is_dynamo_compiling()
    torch.compiler.reset()


def test_torchscript_returns_what_it_is_passed_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="torch.jit.script returns what it is passed") as caught:
        assert jit.script(abs) is abs
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="torch.jit.trace returns"):
        assert jit.trace(abs, torch.ones(1), check_trace=False, strict=False) is abs
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for same in (jit.export, jit.unused, jit.ignore, jit.ignore(drop=True), jit.script_if_tracing):
            assert same(abs) is abs
        assert jit.annotate(int, 3) == 3 and not jit.is_scripting() and not jit.is_tracing()
    assert not torch.onnx.is_in_onnx_export()


def test_flags() -> None:
    cudnn: Any = backends.cudnn
    assert not cudnn.is_available() and cudnn.version() is None
    before = (cudnn.enabled, cudnn.benchmark, cudnn.deterministic)
    with cudnn.flags(benchmark=True):
        assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (False, True, False)
    assert before == (cudnn.enabled, cudnn.benchmark, cudnn.deterministic)
    assert not backends.mps.is_available() and not backends.mps.is_built()


def test_the_accelerator_is_cuda_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert torch.accelerator.current_accelerator() is None
    for call in (torch.accelerator.current_device_index, torch.accelerator.synchronize):
        with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
            call()


@needs_triton
def test_the_accelerator_of_a_simulation() -> None:
    with torch.cuda.simulate(2):
        accelerator = torch.accelerator
        assert accelerator.is_available() and accelerator.current_accelerator() == torch.device("cuda")
        accelerator.set_device_index(1)
        assert accelerator.current_device_index() == 1 == torch.cuda.current_device()
        with accelerator.device_index(0):
            assert accelerator.current_device_idx() == 0
        accelerator.synchronize()
        assert accelerator.current_stream() == torch.cuda.current_stream()


QUICKEST = "fork" if "fork" in mp.get_all_start_methods() else "spawn"


def _work(index: int, what: str) -> None:
    if index == 1 and what == "raises":
        raise ValueError("of the second")
    if index == 1 and what == "exits":
        sys.exit(3)
    if index == 1 and what == "is killed":
        signal.raise_signal(signal.SIGTERM)
    if what != "ends":
        time.sleep(600)


@pytest.mark.parametrize(
    ("what", "error", "words"),
    [
        ("raises", mp.ProcessRaisedException, "-- Process 1 terminated with the following error:\nTraceback"),
        ("exits", mp.ProcessExitedException, "process 1 terminated with exit code 3"),
        ("is killed", mp.ProcessExitedException, "process 1 terminated with signal SIGTERM"),
    ],
)
def test_a_process_that_fails_ends_the_others(what: str, error: type[mp.ProcessException], words: str) -> None:
    if sys.platform == "win32" and what == "is killed":
        pytest.skip("Windows has no signals for processes")
    with pytest.raises(error, match=words) as caught:
        mp.start_processes(_work, args=(what,), nprocs=2, start_method=QUICKEST)
    assert caught.value.error_index == 1 and caught.value.pid > 0
    assert "of the second" in str(caught.value) if what == "raises" else vars(caught.value)["exit_code"] in (3, -15)


@pytest.mark.thorough
def test_processes_that_end_well() -> None:
    assert mp.start_processes(_work, args=("ends",), nprocs=2, start_method=QUICKEST) is None
    started = mp.spawn(_work, args=("ends",), nprocs=1, join=False)
    assert len(started.pids()) == 1
    while not started.join(timeout=30):
        pass
    assert started.join() and mp.cpu_count() > 0
    waiting = mp.start_processes(_work, args=("waits",), nprocs=1, join=False, daemon=True, start_method=QUICKEST)
    assert not waiting.join(timeout=0.01)
    waiting.processes[0].terminate()
    with pytest.raises(mp.ProcessExitedException):
        any(iter(lambda: waiting.join(grace_period=10), True))


class Ending:
    """A process whose exit code is seen to change at the second or later look."""

    sentinel, pid = mp.get_context().Pipe()[0], 7

    def __init__(self, *codes: int | None) -> None:
        self.codes = list(codes)

    @property
    def exitcode(self) -> int | None:
        return self.codes.pop(0) if len(self.codes) > 1 else self.codes[0]

    def join(self, timeout: float | None = None) -> None:
        pass

    def terminate(self) -> None:
        self.codes = [-15]


def test_a_process_that_ends_between_two_looks_is_reported() -> None:
    context = mp.ProcessContext([Ending(None, None, -15)], tempfile.mkdtemp())
    assert not context.join(timeout=0)
    with pytest.raises(mp.ProcessExitedException, match="SIGTERM"):
        context.join(timeout=0)
    context = mp.ProcessContext([Ending(None), Ending(3)], tempfile.mkdtemp())
    with pytest.raises(mp.ProcessExitedException, match="process 1 terminated with exit code 3"):
        context.join()  # waiting for the first would last for ever


def test_sharing_strategies() -> None:
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    with pytest.raises(AssertionError, match="invalid sharing strategy 'x', expected one of"):
        mp.set_sharing_strategy("x")
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system"
    mp.set_sharing_strategy("file_descriptor")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A server on this machine, and the folder whose files it gives."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            if self.path == "/cut":  # the connection ends before all that was announced
                self.send_response(200)
                self.send_header("Content-Length", "10")
                self.end_headers()
                self.wfile.write(b"half")
            else:
                super().do_GET()

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", folder
        server.shutdown()


def test_checkpoints_of_the_hub(served: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, folder = served
    monkeypatch.setattr(hub, "_set", [])
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    assert hub.get_dir() == str(tmp_path / "home" / "hub")
    hub.set_dir(tmp_path / "kept")
    torch.save({"w": torch.ones(3)}, folder / "made.pt")
    digest = hashlib.sha256((folder / "made.pt").read_bytes()).hexdigest()
    (folder / "made.pt").rename(folder / f"net-{digest[:8]}.pt")
    name = f"{url}/net-{digest[:8]}.pt"
    for _ in range(2):  # the second is read from the folder: the server has it no more
        loaded = hub.load_state_dict_from_url(name, check_hash=True, progress=False, map_location="cpu")
        assert loaded["w"].tolist() == [1, 1, 1]
        for each in folder.iterdir():
            each.unlink()
    assert [path.name for path in (tmp_path / "kept" / "checkpoints").iterdir()] == [f"net-{digest[:8]}.pt"]


def test_a_download_is_whole_or_not_there(served: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = served
    (folder / "x").write_bytes(b"content")
    target = tmp_path / "target"
    with pytest.raises(RuntimeError, match=r'invalid hash value \(expected "0000", got "ed70"\)'):
        hub.download_url_to_file(f"{url}/x", str(target), hash_prefix="0000", progress=False)
    with pytest.raises(OSError, match="404"):
        hub.download_url_to_file(f"{url}/nothing", str(target), progress=False)
    with pytest.raises(OSError, match="ended after 4 of 10 bytes"):
        hub.download_url_to_file(f"{url}/cut", str(target), progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["served"]
    hub.download_url_to_file(f"{url}/x", str(target), hash_prefix="ed70", progress=False)
    assert target.read_bytes() == b"content"


def test_the_folder_of_the_hub_without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_set", [])
    monkeypatch.delenv("TORCH_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert Path(hub.get_dir()) == Path("/cache/torch/hub")


def test_tensorboard_is_passed_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    from tritensor.utils.tensorboard import SummaryWriter

    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'tensorboardX'\n.*pip install tensorboardX"):
        SummaryWriter("logs")
    noted: list[Any] = []

    class Writer:
        def __init__(self, log_dir: str | None, **options: Any) -> None:
            self.log_dir = log_dir

        def add_scalars(self, *args: Any, **kwargs: Any) -> None:
            noted.append((args, kwargs))

        def close(self) -> None:
            noted.append("closed")

    module = types.ModuleType("tensorboardX")
    module.SummaryWriter = Writer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tensorboardX", module)
    with SummaryWriter("logs", comment="x") as writer:
        assert writer.log_dir == "logs"
        half = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
        writer.add_scalars("tag", {"a": torch.tensor(3), "b": [half, 2]}, global_step=torch.tensor(1))
    (args, kwargs), closed = noted
    assert args[0] == "tag" and args[1]["a"].dtype.name == "int64" and args[1]["b"][0].dtype.name == "float32"
    assert args[1]["b"][1] == 2 and kwargs["global_step"] == 1 and closed == "closed"
