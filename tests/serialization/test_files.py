"""The file itself: replaced whole or not at all, read from paths and objects, mapped, and in other formats."""

from __future__ import annotations

import errno
import io
import os
import stat
import struct
import zipfile

import numpy as np
import pytest

import tritensor
from tritensor.errors import CheckpointError, DtypeError
from tritensor.serialization import archive_writer, load, save
from tritensor.serialization.archive_reader import ArchiveReader
from tritensor.serialization.source import Source
from tritensor.tensors import wrap

from .crafted_checkpoints import DATA, archive, legacy, number, pickled, storage, tensor

STATE = {"weight": wrap(np.arange(6, dtype=np.float32).reshape(2, 3)), "step": 3}


def equal(found):
    return found["weight"].tolist() == STATE["weight"].tolist() and found["step"] == 3


@pytest.fixture
def path(tmp_path):
    """A checkpoint that is there already."""
    save({"old": 1}, tmp_path / "model.pt")
    return tmp_path / "model.pt"


# Replacing a file ----------------------------------------------------------------------------------------------------


def test_a_checkpoint_replaces_the_one_before(path):
    save(STATE, path)
    assert equal(load(path))
    assert os.listdir(path.parent) == ["model.pt"]


@pytest.mark.parametrize(
    "failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), MemoryError()]
)
@pytest.mark.parametrize("moment", ["write", "fsync", "replace"])
def test_a_failure_at_any_moment_leaves_the_old_file_and_nothing_else(path, monkeypatch, failure, moment):
    def fail(*_):
        raise failure

    target = {"write": (archive_writer.ArchiveWriter, "finish"), "fsync": (os, "fsync"), "replace": (os, "replace")}
    monkeypatch.setattr(*target[moment], fail)
    with pytest.raises(type(failure)):
        save(STATE, path)
    monkeypatch.undo()
    assert load(path) == {"old": 1}
    assert os.listdir(path.parent) == ["model.pt"]


def test_a_full_disk_is_the_systems_error(path):
    resource = pytest.importorskip("resource")
    signal = pytest.importorskip("signal")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        with pytest.raises(OSError, match="too large"):
            save({"weight": wrap(np.zeros(10_000))}, path)
        with pytest.raises(OSError, match="too large"):
            save({"weight": wrap(np.zeros(10_000))}, path.parent / "model.safetensors")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert load(path) == {"old": 1}
    assert os.listdir(path.parent) == ["model.pt"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_what_is_no_regular_file_is_written_as_it_is():
    with pytest.raises(OSError, match="No space left"):
        save(STATE, "/dev/full")
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)
    save(STATE, os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_permissions_and_links_are_kept(path):
    path.chmod(0o640)
    link = path.parent / "link.pt"
    link.symlink_to(path)
    save(STATE, link)
    assert link.is_symlink()
    assert equal(load(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_paths_that_cannot_be_written_raise_the_systems_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        save(STATE, tmp_path / "absent" / "model.pt")
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        save(STATE, tmp_path)
    assert os.listdir(tmp_path) == []


def test_the_name_may_be_long_or_relative_or_bytes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("x" * 250 + ".pt", "plain", "naïve ☃.pt", "..pt", "a:b.pt"):
        save(STATE, name)
        assert equal(load(name))
    with zipfile.ZipFile("plain") as packed:
        assert "plain/data.pkl" in packed.namelist()
    with zipfile.ZipFile("naïve ☃.pt") as packed:
        assert "archive/data.pkl" in packed.namelist()


# The container -------------------------------------------------------------------------------------------------------


def test_records_are_aligned_and_any_zip_tool_reads_them():
    file = io.BytesIO()
    save({str(size): wrap(np.full(size, 7, np.uint8)) for size in (0, 1, 63, 64, 65, 5000)}, file)
    with zipfile.ZipFile(file) as packed:
        assert packed.testzip() is None
        assert packed.read("archive/version") == b"3\n"
        assert packed.read("archive/byteorder") == b"little"
        assert len(packed.read("archive/.data/serialization_id")) == 40
        for entry in packed.infolist():
            assert entry.compress_type == zipfile.ZIP_STORED
    raw = file.getvalue()
    reader = ArchiveReader(Source(io.BytesIO(raw), "raw"))
    assert all(entry.offset % 64 == 0 for entry in reader.entries.values())


def test_the_same_object_gives_the_same_bytes():
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        save(STATE, file)
    assert files[0].getvalue() == files[1].getvalue()
    save({**STATE, "step": 4}, other := io.BytesIO())
    assert files[0].getvalue()[-400:] != other.getvalue()[-400:]


@pytest.mark.parametrize("limit", [100, 1500])
def test_sizes_beyond_32_bits_are_written_and_read(monkeypatch, limit):
    """With the limit of four gigabytes taken down to a few bytes, so that a test can reach it."""
    monkeypatch.setattr(archive_writer, "LIMIT", limit)
    file = io.BytesIO()
    save({"large": wrap(np.arange(1000, dtype=np.uint16)), "small": wrap(np.arange(3))}, file)
    monkeypatch.setattr("tritensor.serialization.archive_reader.LIMIT", limit)
    file.seek(0)
    back = load(file)
    assert back["large"].tolist() == list(range(1000))
    assert back["small"].tolist() == [0, 1, 2]


@pytest.mark.slow
def test_a_storage_of_more_than_four_gigabytes(tmp_path):
    large = np.zeros(2**32 + 8, np.uint8)
    large[-1] = 7
    save({"large": wrap(large), "after": wrap(np.arange(3))}, tmp_path / "large.pt")
    del large
    back = load(tmp_path / "large.pt", mmap=True)
    assert back["large"]._data[-1] == 7
    assert back["after"].tolist() == [0, 1, 2]
    with zipfile.ZipFile(tmp_path / "large.pt") as packed:
        assert packed.getinfo("large/data/0").file_size == 2**32 + 8
    back = load(tmp_path / "large.pt")
    assert back["large"]._data[-1] == 7


def test_archives_without_checksums_are_read():
    """`torch.serialization.set_crc32_options(False)` leaves all of them 0."""
    data = bytearray(archive(pickled(tensor())))
    at = data.index(b"PK\1\2")
    while data[at : at + 4] == b"PK\1\2":
        data[at + 16 : at + 20] = bytes(4)
        at += 46 + sum(struct.unpack_from("<3H", data, at + 28))
    assert load(io.BytesIO(bytes(data))).tolist() == [1, 2, 3, 4]


def test_folders_in_an_archive_are_passed_over():
    assert load(io.BytesIO(archive(pickled(tensor()), extra=[("archive/", b"")]))).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("kind", "form"), [("Float", ">f4"), ("ComplexFloat", ">c8"), ("Short", ">i2"), ("Byte", "u1")]
)
def test_big_endian_archives_are_read(kind, form):
    values = np.arange(1, 5)
    part = tensor(storage(kind=kind))
    data = archive(pickled(part), [values.astype(form).tobytes()], byteorder="big")
    assert load(io.BytesIO(data)).tolist() == values.tolist()


def test_a_big_endian_storage_without_a_dtype_is_refused():
    part = (
        tensor(storage())
        .replace(b"cuda", b"cuda")
        .replace(b"ctorch\nFloatStorage\n", b"ctorch.storage\nUntypedStorage\n")
    )
    data = archive(pickled(part.replace(b"_rebuild_tensor_v2", b"_rebuild_tensor_v2")), [b"abcd"], byteorder="big")
    with pytest.raises(CheckpointError, match="byte order"):
        load(io.BytesIO(data))


# Reading -------------------------------------------------------------------------------------------------------------


class OnlyRead:
    """A file object without `readinto`."""

    def __init__(self, data):
        self._file = io.BytesIO(data)
        self.read, self.seek, self.tell = self._file.read, self._file.seek, self._file.tell


def test_file_objects_are_read_from_where_they_stand(tmp_path):
    file = io.BytesIO()
    save(STATE, file)
    assert equal(load(io.BytesIO(file.getvalue())))
    assert equal(load(OnlyRead(file.getvalue())))
    behind = io.BytesIO(b"header" + file.getvalue())
    behind.seek(6)
    assert equal(load(behind))
    (tmp_path / "model.pt").write_bytes(file.getvalue())
    with open(tmp_path / "model.pt", "rb") as opened:
        assert equal(load(opened))
    assert equal(load(str(tmp_path / "model.pt")))


class Shrinking(io.BytesIO):
    """A file that somebody cuts while it is read."""

    def readinto(self, target):
        return 0


class Vanishing(io.BytesIO):
    """A file that somebody empties after its size was asked for."""

    def read(self, count=-1):
        return b""


def test_a_file_that_shrinks_while_it_is_read_is_an_error():
    with pytest.raises(CheckpointError, match="became shorter"):
        load(Shrinking(archive(pickled(tensor()))))
    with pytest.raises(CheckpointError, match="became shorter"):
        load(Vanishing(archive(pickled(tensor()))))


def test_mapped_tensors_are_views_of_the_file_that_do_not_write_to_it(path):
    save({"weight": STATE["weight"], "other": wrap(np.zeros((0, 3))), "step": 3}, path)
    before = path.read_bytes()
    found = load(path, mmap=True)
    assert equal(found)
    found["weight"]._data[:] = 0
    assert path.read_bytes() == before
    # what is saved again is the tensor's own storage, not the file
    save(found, path)
    assert len(path.read_bytes()) < len(before) + 200
    assert load(path)["weight"].tolist() == [[0] * 3] * 2


def test_mapped_tensors_go_to_a_device_too(path):
    save(STATE, path)
    with tritensor.cuda.simulate(devices=1):
        found = load(path, "cuda", mmap=True)
        assert str(found["weight"].device) == "cuda:0"
        assert found["weight"]._to_host().tolist() == STATE["weight"].tolist()


def test_old_files_are_read_and_not_mapped(path):
    path.write_bytes(legacy(pickled(tensor(), b"q\x00h\x00\x86")))
    first, second = load(path)
    assert first is second
    assert first.tolist() == [1, 2, 3, 4]
    with pytest.raises(CheckpointError, match="mmap can only be used"):
        load(path, mmap=True)
    two = legacy(
        pickled(tensor(storage("7")), tensor(storage("5", "Long", count=2), 0, (2,)), b"\x86"),
        (("5", 2, struct.pack("<2q", 8, 9)), ("7", 4, DATA)),
    )
    assert [view.tolist() for view in load(io.BytesIO(two))] == [[1, 2, 3, 4], [8, 9]]
    assert load(io.BytesIO(legacy(pickled(number(5)), ()))) == 5


@pytest.mark.parametrize("shown", [True, False])
def test_large_files_have_a_progress_bar(path, monkeypatch, capsys, shown):
    bars = []

    class Bar:
        def __init__(self, **options):
            self.done, self.options = 0, options
            bars.append(self)

        def update(self, count):
            self.done += count

        def close(self):
            assert self.done == self.options["total"]

    monkeypatch.setattr("tqdm.tqdm", Bar)
    if shown:
        monkeypatch.setattr("tritensor.serialization.progress.SHOWN_FROM", 10)
    save(STATE, path)
    load(path)
    assert [bar.options["desc"].split()[0] for bar in bars] == (["save", "load"] if shown else [])
    assert all(bar.options["disable"] is None for bar in bars)  # None: only where there is a terminal


# Safetensors ---------------------------------------------------------------------------------------------------------


SAFE_DTYPES = [entry.name for entry in tritensor.types.dtypes.STORED if entry.name != "complex128"]


def test_safetensors_files_by_name(tmp_path):
    path = tmp_path / "model.safetensors"
    grid = np.arange(6).reshape(2, 3)
    state = {name: wrap(grid.astype(getattr(tritensor, name).numpy)) for name in SAFE_DTYPES}
    state |= {"scalar": wrap(np.array(2.5)), "empty": wrap(np.zeros((0, 3))), "turned": wrap(grid.T)}
    state["parameter"] = tritensor.nn.Parameter(tritensor.ones(2))
    save(state, path)
    assert os.listdir(tmp_path) == ["model.safetensors"]
    for found in (load(path), load(str(path), map_location="cpu")):
        assert found.keys() == state.keys()
        for key, value in state.items():
            assert found[key].dtype is value.dtype
            assert found[key].shape == value.shape
            assert found[key]._data.tobytes() == np.ascontiguousarray(value._data).tobytes()
    from safetensors import safe_open

    with safe_open(path, framework="np") as file:
        assert file.metadata() == {"format": "pt"}


def test_a_safetensors_file_is_the_librarys_byte_for_byte(tmp_path):
    from safetensors.numpy import save as library

    names = ["b", "a", "", "né☃", 'quoted "\\\n', "nul\0"]
    state = {name: np.arange(size, dtype=np.float32) for size, name in enumerate(names)}
    save({name: wrap(array) for name, array in state.items()}, tmp_path / "model.safetensors")
    assert (tmp_path / "model.safetensors").read_bytes() == library(state, {"format": "pt"})
    save({}, tmp_path / "empty.safetensors")
    assert load(tmp_path / "empty.safetensors") == {}


def test_what_safetensors_cannot_hold_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    for value in ([1], {"a": 1}, {1: tritensor.ones(1)}, {"a": {"b": tritensor.ones(1)}}):
        with pytest.raises(CheckpointError, match=r"\.safetensors"):
            save(value, path)
    with pytest.raises(DtypeError, match="complex128"):
        save({"a": wrap(np.zeros(1, np.complex128))}, path)
    with pytest.raises(CheckpointError, match="no tensor named __metadata__"):
        save({"__metadata__": tritensor.ones(1)}, path)
    with pytest.raises(UnicodeEncodeError):
        save({"\ud800": tritensor.ones(1)}, path)
    assert os.listdir(tmp_path) == []


def test_damaged_safetensors_files_are_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    save({"a": tritensor.ones(3), "b": tritensor.ones(2)}, path)
    data = path.read_bytes()
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(CheckpointError, match=r"model\.safetensors"):
            load(path)
    header = b'{"a":{"dtype":"F8_E8M0","shape":[1],"data_offsets":[0,1]}}'
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"x")
    with pytest.raises(CheckpointError, match="F8_E8M0"):
        load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.safetensors")
