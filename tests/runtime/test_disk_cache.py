"""Compiled kernels on disk: found without Triton, told apart by all that matters, safe under many writers."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tritensor import settings
from tritensor.drivers.cuda_kernels import CudaKernels
from tritensor.drivers.loading import Compiled
from tritensor.drivers.simulator import Simulator
from tritensor.errors import DeviceError
from tritensor.runtime import disk_cache
from tritensor.runtime.disk_cache import load, path_of, store
from tritensor.runtime.launch import device_function, kernel
from tritensor.runtime.program import Source
from tritensor.types import dtypes

from ..needs import needs_triton

if TYPE_CHECKING:
    import triton.language as tl

HERE = Path(__file__).parent
SIGNATURE = (("*fp32", 16), ("i32", 16))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Any:
    with settings.cache_dir(str(tmp_path / "cache")):
        yield tmp_path / "cache"


def kernels_in(folder: Path) -> list[Path]:
    return sorted((folder / "tritensor").glob("*/*.kernel"))


# ---- the key --------------------------------------------------------------------------------------------------------

FACTOR = 2.0


@device_function
def inner(x):
    return x * FACTOR


@device_function
def outer(x, count):
    return outer_steps(x) if count else inner(x)


def outer_steps(x):
    return outer(x, 0)


@kernel
def first_kernel(out_ptr, count, BODY: tl.constexpr, BLOCK: tl.constexpr = 16):
    index = tl.arange(0, BLOCK)
    tl.store(out_ptr + index, outer(BODY(index), 1), mask=index < count)


def key(body: Any = inner, **changes: Any) -> Path:
    arguments: dict[str, Any] = {"kernel": first_kernel, "signature": SIGNATURE, "constants": {"BODY": body}}
    arguments |= {"target": ("cuda", 90), "warps": 4, "stages": 3, "name": None}
    return path_of(**(arguments | changes))


def scaled(factor: Any) -> Any:
    @device_function(name="scaled")
    def body(x):
        return x * factor

    return body


def test_equal_arguments_have_one_key_and_others_another() -> None:
    assert key() == key()
    assert key() == key(constants={"BODY": inner, "BLOCK": 16})
    assert key(scaled(2)) == key(scaled(2))
    different = [
        *(key(), key(scaled(2)), key(scaled(3)), key(scaled(2.0)), key(scaled(True)), key(scaled((2, 3)))),
        *(key(scaled(dtypes.float32)), key(scaled(inner)), key(scaled(outer)), key(scaled(None)), key(scaled(np))),
        *(key(target=("cuda", 80)), key(warps=8), key(stages=4), key(name="other"), key(signature=SIGNATURE[:1])),
        *(key(signature=(("*fp32", None), SIGNATURE[1])), key(constants={"BODY": inner, "BLOCK": 32})),
        *(key(constants={"BODY": inner, "BLOCK": True}), key(constants={"BODY": inner, "BLOCK": 16.0})),
    ]
    assert len(set(different)) == len(different)


def test_a_change_in_any_function_or_value_that_is_named_changes_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    def anew() -> Path:
        for each in (first_kernel, inner, outer):
            each.fingerprint = None
        return key()

    found = {anew()}
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 3.0)
    found.add(anew())
    monkeypatch.setattr(sys.modules[__name__], "inner", scaled(5))
    found.add(anew())
    monkeypatch.setattr(sys.modules[__name__], "outer_steps", lambda x: x)
    found.add(anew())
    assert len(found) == 4
    first_kernel.fingerprint = inner.fingerprint = outer.fingerprint = None


def test_a_name_without_a_value_yet_and_sets_in_code() -> None:
    @device_function
    def late(x):
        return later(x) if x in {"b", "a", "c"} else (lambda y: y)(x)

    before = key(late)
    late.fingerprint = None
    later = inner
    assert key(late) != before


def test_the_environment_of_triton_counts_but_for_where_files_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key()
    monkeypatch.setenv("TRITON_CACHE_DIR", "/elsewhere")
    assert key() == before
    monkeypatch.setenv("TRITON_PTXAS_PATH", "/other/ptxas")
    assert key() != before


def test_files_lie_where_tritons_cache_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with settings.cache_dir("/given"):
        assert disk_cache.folder() == Path("/given/tritensor")
    with settings.cache_dir(""):
        monkeypatch.setenv("TRITON_CACHE_DIR", "/variable")
        assert disk_cache.folder() == Path("/variable/tritensor")
        monkeypatch.delenv("TRITON_CACHE_DIR")
        monkeypatch.setenv("TRITON_HOME", "/home/elsewhere")
        assert disk_cache.folder() == Path("/home/elsewhere/.triton/cache/tritensor")
        monkeypatch.delenv("TRITON_HOME")
        assert disk_cache.folder() == Path.home() / ".triton" / "cache" / "tritensor"


def test_the_key_is_the_same_in_every_process() -> None:
    code = "from tests.runtime.test_disk_cache import key, scaled, outer; print(key(scaled(outer)).name)"
    names = set()
    for seed in ("1", "2"):
        variables = {**os.environ, "PYTHONPATH": str(HERE.parents[1]), "PYTHONHASHSEED": seed}
        found = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=variables, cwd=HERE.parents[1]
        )
        names.add(found.stdout)
    assert len(names) == 1


@needs_triton
def test_functions_of_tritons_count_by_their_own_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    jit = SimpleNamespace(cache_key="one")
    body = scaled(jit)
    before = key(body)
    jit.cache_key = "two"
    body.fingerprint = None
    assert key(body) != before


# ---- the files ------------------------------------------------------------------------------------------------------

SOME = Compiled(b"\x7fELF\n\x00cubin\n", "add", 512, 8, 0, 16)


def test_what_was_stored_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "ab" / "file.kernel"
    assert load(path) is None
    store(path, SOME)
    assert load(path) == SOME
    assert [each.name for each in path.parent.iterdir()] == ["file.kernel"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:10],
        lambda data: data[:-1],
        lambda data: data[:-1] + b"?",
        lambda data: b"another format\n" + data,
        lambda data: data.replace(b"shared", b"shaped"),
        lambda data: data.replace(b"{", b"["),
        lambda data: data.split(b"\n")[0] + b"\n3\n",
    ],
)
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "file.kernel"
    store(path, SOME)
    path.write_bytes(damage(path.read_bytes()))
    assert load(path) is None
    store(path, SOME)
    assert load(path) == SOME


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    store(tmp_path / "file" / "sub" / "x.kernel", SOME)

    def refuse(*paths: Any) -> None:
        raise OSError("read-only")

    monkeypatch.setattr(os, "replace", refuse)
    store(tmp_path / "x.kernel", SOME)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file"]
    monkeypatch.setattr(os, "unlink", refuse)
    store(tmp_path / "x.kernel", SOME)
    assert load(tmp_path / "x.kernel") is None


WRITER = """
import os, signal, sys
from pathlib import Path
from tritensor.drivers.loading import Compiled
from tritensor.runtime import disk_cache
def kill(*paths): os.kill(os.getpid(), signal.SIGKILL)
os.replace = kill
disk_cache.store(Path(sys.argv[1]), Compiled(b"cubin", "add", 0, 4, 0, 0))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no signals there")
def test_a_writer_that_is_killed_disturbs_nobody(tmp_path: Path) -> None:
    path = tmp_path / "ab" / "x.kernel"
    variables = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
    killed = subprocess.run([sys.executable, "-c", WRITER, str(path)], env=variables, capture_output=True, text=True)
    assert killed.returncode == -9, killed.stderr
    assert load(path) is None
    store(path, SOME)
    assert load(path) == SOME


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_on_a_full_disk_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        name = str(tmp_path / "temporary")

        def __enter__(self) -> Any:
            Path(self.name).touch()
            self.file = open("/dev/full", "wb", buffering=0)
            return self

        def __exit__(self, *exception: object) -> None:
            self.file.close()

        def write(self, content: bytes) -> None:
            self.file.write(content)

    monkeypatch.setattr(disk_cache.tempfile, "NamedTemporaryFile", lambda **options: Full())
    store(tmp_path / "x.kernel", SOME)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_to_is_read(tmp_path: Path) -> None:
    store(tmp_path / "x.kernel", SOME)
    tmp_path.chmod(0o500)
    try:
        store(tmp_path / "y.kernel", SOME)
        assert load(tmp_path / "x.kernel") == SOME
        assert load(tmp_path / "y.kernel") is None
    finally:
        tmp_path.chmod(0o700)


# ---- loading a kernel -----------------------------------------------------------------------------------------------


class Core:
    """cuda-core: what is loaded is written down, and refused where `refuses` says so."""

    def __init__(self) -> None:
        self.loaded: list[bytes] = []
        self.refuses: Callable[[bytes], bool] = lambda cubin: False
        self.ObjectCode = SimpleNamespace(from_cubin=self.from_cubin)
        self.launch = self.LaunchConfig = None

    def from_cubin(self, cubin: bytes) -> Any:
        self.loaded.append(cubin)
        if self.refuses(cubin):
            raise RuntimeError("CUDA_ERROR_INVALID_IMAGE")
        return SimpleNamespace(get_kernel=lambda name: SimpleNamespace(handle=name))


class Device(CudaKernels, Simulator):
    """A device that takes a kernel's code by cuda-core."""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Loads a kernel as a fresh process would; counts compilations in `made.count`."""
    core, device = Core(), Device(1)
    monkeypatch.setitem(sys.modules, "cuda.core", core)  # type: ignore[arg-type]

    class Counted(Source):
        def compile(self, target: Any) -> Compiled:
            assert target == ("cuda", 90)
            make.count += 1  # type: ignore[attr-defined]
            return SOME

    def make() -> Any:
        return device.build(0, Counted(first_kernel, SIGNATURE, {"BODY": inner}, 4, 3, "op"))

    make.core, make.count = core, 0  # type: ignore[attr-defined]
    return make


def test_a_kernel_is_compiled_once_for_all_processes(made: Any, folder: Path) -> None:
    for _ in range(3):
        loaded = made()
        assert (loaded.kernel.handle, loaded.scratch) == ("add", (0, 16))
    assert made.count == 1
    assert made.core.loaded == [SOME.binary] * 3
    assert len(kernels_in(folder)) == 1


def test_a_damaged_file_is_compiled_and_written_anew(made: Any, folder: Path) -> None:
    made()
    (path,) = kernels_in(folder)
    path.write_bytes(path.read_bytes()[:-3])
    made()
    made()
    assert made.count == 2
    assert load(path) == SOME


def test_code_that_the_driver_refuses_is_compiled_anew_and_then_reported(made: Any, folder: Path) -> None:
    made()
    (path,) = kernels_in(folder)
    store(path, SOME._replace(binary=b"of another driver"))
    made.core.refuses = lambda cubin: cubin != SOME.binary
    made()
    assert made.count == 2
    assert load(path) == SOME
    made.core.refuses = lambda cubin: True
    with pytest.raises(DeviceError, match=r"(?s)CUDA error.*at the launch of op.*INVALID_IMAGE"):
        made()


# ---- several processes ----------------------------------------------------------------------------------------------

PROGRAM = """
import sys, time
import tritensor as torch
x = torch.ones(64, device="cuda")
if len(sys.argv) > 1:
    time.sleep(max(0, float(sys.argv[1]) - time.time()))
start = time.perf_counter()
y = x + x
print("triton" in sys.modules, time.perf_counter() - start)
"""


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    packages = all(importlib.util.find_spec(name) is not None for name in ("triton", "cuda"))
    if not sys.platform.startswith("linux") or compiler is None or not packages:
        pytest.skip("the stub needs Linux, a C compiler, Triton and cuda-core")
    found = tmp_path_factory.mktemp("stub")
    command = [compiler, "-shared", "-fPIC", "-O1", "-w", "-o", str(found / "libcuda.so.1")]
    subprocess.run([*command, str(HERE.parent / "devices" / "libcuda_stub.c"), "-ldl"], check=True)
    return found


def start(stub: Path, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    variables = {"LD_LIBRARY_PATH": str(stub), "PYTHONPATH": str(HERE.parents[1]), "TRITENSOR_CACHE_DIR": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables, "TRITENSOR_SIMULATE_CUDA": "0"},
    )


@pytest.mark.thorough
def test_processes_that_start_together_and_one_that_comes_later(stub: Path, folder: Path) -> None:
    import time

    together = [start(stub, folder, str(time.time() + 2)) for _ in range(3)]
    for process in together:
        out, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert out.startswith("True")
    assert len(kernels_in(folder)) == 2  # the fill of ones() and the sum
    assert all(load(path) is not None for path in kernels_in(folder))
    assert not list((folder / "tritensor").glob("*/.*"))
    out, errors = start(stub, folder).communicate(timeout=120)
    imported, seconds = out.split()
    assert imported == "False", "a warm start needs no Triton"
    assert float(seconds) < 0.5


# ---- what others put there ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [b"[" * 100_000, b'{"a":' * 100_000, b"9" * 5000, b"[]", b'{"sha256":{}}', b"\xff", b'{"sha256":1e999}', b""],
)
def test_a_hostile_file_is_a_missing_one(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "one.kernel"
    path.write_bytes(b"tritensor kernel 1\n" + header + b"\nbinary")
    assert load(path) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with a name")
def test_a_pipe_or_a_folder_in_place_of_a_file_is_a_missing_one(tmp_path: Path) -> None:
    path = tmp_path / "one.kernel"
    os.mkfifo(path)
    found: list[Any] = ["nothing"]
    thread = threading.Thread(target=lambda: found.append(load(path)), daemon=True)
    thread.start()
    thread.join(10)
    assert found == ["nothing", None]
    assert load(tmp_path) is None


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX's")
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o277])
def test_the_folders_are_the_users_alone_whatever_the_umask(folder: Path, mask: int) -> None:
    folder.mkdir()
    before = os.umask(mask)
    try:
        path = folder / "tritensor" / "ab" / "one.kernel"
        store(path, Compiled(b"binary", "one", 0, 4, 0, 0))
    finally:
        os.umask(before)
    assert load(path) == Compiled(b"binary", "one", 0, 4, 0, 0)
    assert [place.stat().st_mode & 0o777 for place in (path.parent, path.parent.parent)] == [0o700, 0o700]
