"""Files fetched: whole or not at all, resumed, checked, from the first mirror that has them. The server is on this
machine."""

from __future__ import annotations

import hashlib
import io
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tritensor.errors import DatasetError
from tritensor.vision.datasets.files import check_integrity, fetch

from .serving import Server, serving

DATA = bytes(range(256)) * 1000
MD5 = hashlib.md5(DATA).hexdigest()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        running.files["/set/file.bin"] = DATA
        yield running


def test_a_file_is_fetched_once(server: Server, tmp_path: Path) -> None:
    for _ in range(2):
        fetch([f"{server.url}/set/file.bin"], tmp_path / "new", MD5)
    assert (tmp_path / "new" / "file.bin").read_bytes() == DATA
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["file.bin"]
    assert server.requests == [("/set/file.bin", None)]


def test_a_file_of_another_checksum_is_refused_and_not_kept(server: Server, tmp_path: Path) -> None:
    with pytest.raises(
        DatasetError, match=r"^Error downloading file.bin:\nTried .*\nFile not found or corrupted\."
    ) as caught:
        fetch([f"{server.url}/set/file.bin"], tmp_path, "0" * 32)
    assert f"{server.url}/set/file.bin gave 256000 bytes with the checksum {MD5}" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_fetch_goes_on_where_it_ended(server: Server, tmp_path: Path) -> None:
    server.cut["/set/file.bin"] = 1000
    with pytest.raises(DatasetError, match="ended after 1000 of 256000 bytes"):
        fetch([f"{server.url}/set/file.bin"], tmp_path, MD5)
    assert not (tmp_path / "file.bin").exists()
    fetch([f"{server.url}/set/file.bin"], tmp_path, MD5)
    assert (tmp_path / "file.bin").read_bytes() == DATA
    assert server.requests == [("/set/file.bin", None), ("/set/file.bin", "bytes=1000-")]


@pytest.mark.parametrize("length", ["9" * 5000, "9" * 30, "-1", "many", "1e3"])
def test_a_length_that_is_none_is_not_believed(server: Server, tmp_path: Path, length: str) -> None:
    server.lengths["/set/file.bin"] = length
    with suppress(DatasetError):  # where the connection ended before that
        fetch([f"{server.url}/set/file.bin"], tmp_path, MD5)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [DATA]


def test_what_an_earlier_call_left_is_completed(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file.bin.part").write_bytes(DATA[:7])
    fetch([f"{server.url}/set/file.bin"], tmp_path, MD5)
    assert (tmp_path / "file.bin").read_bytes() == DATA
    assert server.requests == [("/set/file.bin", "bytes=7-")]


@pytest.mark.parametrize("left", [b"another file", DATA, DATA + b"more"])
def test_a_part_that_does_not_fit_is_fetched_again(server: Server, tmp_path: Path, left: bytes) -> None:
    (tmp_path / "file.bin.part").write_bytes(left)
    fetch([f"{server.url}/set/file.bin"], tmp_path, MD5)
    assert (tmp_path / "file.bin").read_bytes() == DATA


def test_a_server_that_sends_no_parts_sends_all(server: Server, tmp_path: Path) -> None:
    server.ranges = False
    (tmp_path / "file.bin.part").write_bytes(DATA[:7])
    fetch([f"{server.url}/set/file.bin"], tmp_path, MD5)
    assert (tmp_path / "file.bin").read_bytes() == DATA


def test_a_part_that_was_not_asked_for_is_not_used(server: Server, tmp_path: Path) -> None:
    server.wrong_part = True
    (tmp_path / "file.bin.part").write_bytes(DATA[:7])
    with pytest.raises(DatasetError, match="sent another part of the file"):
        fetch([f"{server.url}/set/file.bin"], tmp_path, MD5)
    assert (tmp_path / "file.bin.part").read_bytes() == DATA[:7]


def test_redirections_are_followed_so_far(server: Server, tmp_path: Path) -> None:
    server.redirects |= {"/a": "/b", "/b": "/set/file.bin"}
    fetch([f"{server.url}/a"], tmp_path, MD5)
    assert (tmp_path / "a").read_bytes() == DATA
    server.redirects |= {"/c": "/c", "/d": "file:///etc/passwd"}
    for name in ("c", "d"):
        with pytest.raises(DatasetError, match=f"Error downloading {name}:\nTried"):
            fetch([f"{server.url}/{name}"], tmp_path, MD5)


def test_mirrors_are_tried_in_turn(server: Server, tmp_path: Path) -> None:
    server.files["/bad/file.bin"] = b"something else"
    fetch([f"{server.url}/{name}/file.bin" for name in ("none", "bad", "set", "never")], tmp_path, MD5)
    assert (tmp_path / "file.bin").read_bytes() == DATA
    assert [path for path, _ in server.requests] == ["/none/file.bin", "/bad/file.bin", "/set/file.bin"]


def test_an_interrupted_mirror_is_completed_by_the_next(server: Server, tmp_path: Path) -> None:
    server.files["/first/file.bin"] = DATA[:5000]
    server.cut["/first/file.bin"] = 300
    with pytest.raises(DatasetError, match=r"^Error downloading file\.bin:\nTried .*/first/.*, got:\n") as caught:
        fetch([f"{server.url}/first/file.bin"], tmp_path, MD5)
    assert "ended after 300 of 5000 bytes" in str(caught.value)
    server.files["/cut/file.bin"], server.cut["/cut/file.bin"] = DATA, 10
    fetch([f"{server.url}/{name}/file.bin" for name in ("none", "cut", "set")], tmp_path, MD5)
    assert (tmp_path / "file.bin").read_bytes() == DATA
    assert server.requests[-2:] == [("/cut/file.bin", "bytes=300-"), ("/set/file.bin", "bytes=310-")]


def test_a_folder_that_cannot_be_written_is_no_mirrors_fault(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match="file"):
        fetch([f"{server.url}/set/file.bin"], tmp_path / "file" / "below", MD5)


def test_a_bar_shows_how_far_it_is_on_terminals(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown, hidden = Terminal(), io.StringIO()
    for stream, name in ((shown, "a"), (hidden, "b")):
        monkeypatch.setattr(sys, "stderr", stream)
        fetch([f"{server.url}/set/file.bin"], tmp_path / name, MD5)
    assert "256k/256k" in shown.getvalue()
    assert hidden.getvalue() == ""


def test_check_integrity(tmp_path: Path) -> None:
    path = tmp_path / "x"
    assert not check_integrity(path, MD5)
    path.write_bytes(DATA)
    assert check_integrity(path, MD5)
    assert not check_integrity(path, "0" * 32)
