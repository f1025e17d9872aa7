"""Archives: nothing outside of the folder, no links, no bombs, and damage is named."""

from __future__ import annotations

import gzip
import io
import lzma
import stat
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritensor.errors import DatasetError
from tritensor.vision.datasets import files
from tritensor.vision.datasets.files import extract_archive

OUTSIDE = ["../x", "/tmp/x", "a/../../x", "..", "C:\\x", "C:x", "\\x", "a\\..\\..\\x", "\\\\host\\share\\x", "//host/x"]


def tar_of(path: Path, *members: tuple[str, bytes] | tarfile.TarInfo, mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member, io.BytesIO(b"data"[: member.size]))
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
    return path


def zip_of(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


MEMBERS = (("one.txt", b"1"), ("sub/two.txt", b"22" * 5000), ("sub/deep/empty", b""))


@pytest.mark.parametrize(
    ("name", "mode"),
    [("x.tar", "w"), ("x.tar.gz", "w:gz"), ("x.tar.xz", "w:xz")],
)
def test_tar(tmp_path: Path, name: str, mode: str) -> None:
    folder = tarfile.TarInfo("alone")
    folder.type = tarfile.DIRTYPE
    path = tar_of(tmp_path / name, *MEMBERS, folder, mode=mode)
    extract_archive(str(path), str(tmp_path / "to"))
    assert files_of(tmp_path / "to") == dict(MEMBERS)
    assert (tmp_path / "to" / "alone").is_dir()


def test_zip(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "x.zip", *MEMBERS, ("alone/", b""))
    extract_archive(str(path), str(tmp_path))
    assert files_of(tmp_path) == {**dict(MEMBERS), "x.zip": path.read_bytes()}
    assert (tmp_path / "alone").is_dir()


@pytest.mark.parametrize(("end", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_one_compressed_file(tmp_path: Path, end: str, compress: Callable[[bytes], bytes]) -> None:
    path = tmp_path / f"a.bin{end}"
    path.write_bytes(compress(b"data" * 99999))
    extract_archive(str(path), str(tmp_path))
    assert (tmp_path / "a.bin").read_bytes() == b"data" * 99999
    path.write_bytes(compress(b"other" * 999)[:-7])
    with pytest.raises(DatasetError, match=rf"^File not found or corrupted: .*a.bin\{end}"):
        extract_archive(str(path), str(tmp_path))
    assert (tmp_path / "a.bin").read_bytes() == b"data" * 99999  # a damaged file replaces nothing


def test_kinds_that_are_not_known(tmp_path: Path) -> None:
    (tmp_path / "x.rar").write_bytes(b"")
    with pytest.raises(RuntimeError, match=r"^Unknown compression or archive type: '\.rar'\."):
        extract_archive(str(tmp_path / "x.rar"), str(tmp_path))


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_members_outside_of_the_folder(tmp_path: Path, kind: str, name: str) -> None:
    members = (("good", b"1"), (name, b"2"))
    path = (tar_of if kind == "tar" else zip_of)(tmp_path / f"x.{kind}", *members)
    with pytest.raises(DatasetError, match="has a member that is refused") as caught:
        extract_archive(str(path), str(tmp_path / "a" / "b"))
    assert "outside of the folder" in str(caught.value) and str(path) in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == [path.name]  # nothing was written, not the good one either


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.BLKTYPE])
@pytest.mark.parametrize("target", ["../../outside", "/etc/passwd", "good"])
def test_links_and_devices_in_tar(tmp_path: Path, kind: bytes, target: str) -> None:
    link = tarfile.TarInfo("link")
    link.type, link.linkname = kind, target
    path = tar_of(tmp_path / "x.tar", ("good", b"1"), link, ("link/below", b"2"))
    with pytest.raises(DatasetError, match="no plain file"):
        extract_archive(str(path), str(tmp_path / "to"))
    assert not (tmp_path / "to").exists()


def test_a_sparse_file_in_tar(tmp_path: Path) -> None:
    sparse = tarfile.TarInfo("sparse")
    sparse.type = tarfile.GNUTYPE_SPARSE
    path = tar_of(tmp_path / "x.tar", sparse)
    with pytest.raises(DatasetError, match=r"no plain file|corrupted"):
        extract_archive(str(path), str(tmp_path / "to"))


def test_links_in_zip(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = zip_of(tmp_path / "x.zip", (link, b"../../outside"))
    with pytest.raises(DatasetError, match="no plain file"):
        extract_archive(str(path), str(tmp_path / "to"))
    assert not (tmp_path / "to").exists()


def test_a_member_of_zip_without_a_name(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "x.zip", ("a", b"1"))
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02")
    data[at + 28 : at + 30] = b"\0\0"
    data[at + 30 : at + 32] = b"\1\0"  # the name is an extra field now
    path.write_bytes(data)
    with pytest.raises(DatasetError, match=r"x\.zip"):
        extract_archive(str(path), str(tmp_path / "to"))


def test_an_encrypted_member_of_zip(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "x.zip", ("a", b"1"))
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(DatasetError, match="encrypted files are not unpacked"):
        extract_archive(str(path), str(tmp_path / "to"))


@pytest.mark.parametrize("name", ["x.gz", "x.xz", "x.tar", "x.tar.gz", "x.zip"])
def test_bombs(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that unpacks to more than its size lets expect; the limit is lower here to keep the test quick."""
    monkeypatch.setattr(files, "ANY_ARCHIVE", 10_000)
    monkeypatch.setattr(files, "RATIO", 2 if name == "x.tar" else 20)
    path, zeros = tmp_path / name, bytes(3_000_000)
    if name.endswith(".tar"):
        tar_of(path, ("a", zeros))
        monkeypatch.setattr(files, "RATIO", 0)
    elif name.endswith(".tar.gz"):
        tar_of(path, ("a", zeros[:1_500_000]), ("b", zeros[:1_500_000]), mode="w:gz")
    elif name.endswith(".zip"):
        zip_of(path, ("a", zeros[:40_000]), ("b", zeros[:1_500_000]))
    else:
        path.write_bytes({"x.gz": gzip.compress, "x.xz": lzma.compress}[name](zeros))
    with pytest.raises(DatasetError, match="unpacks to too many bytes") as caught:
        extract_archive(str(path), str(tmp_path / "to"))
    assert name in str(caught.value)
    assert sum(len(data) for data in files_of(tmp_path / "to").values()) <= max(10_000, 20 * path.stat().st_size)
    monkeypatch.setattr(files, "ANY_ARCHIVE", 4_000_000)
    extract_archive(str(path), str(tmp_path / "to"))
    assert sum(len(data) for data in files_of(tmp_path / "to").values()) >= 1_500_000


def test_a_header_of_tar_that_asks_for_much_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ANY_ARCHIVE", 100_000)
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 2**32
    (tmp_path / "x.tar.gz").write_bytes(gzip.compress(header.tobuf() + bytes(10_000_000)))
    with pytest.raises(DatasetError, match="too many bytes"):
        extract_archive(str(tmp_path / "x.tar.gz"), str(tmp_path / "to"))


def test_xz_that_asks_for_much_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.xz").write_bytes(lzma.compress(b"x" * 100))  # asks for 8 MiB
    extract_archive(str(tmp_path / "x.xz"), str(tmp_path))
    monkeypatch.setattr(files, "XZ_MEMORY", 2**20)
    with pytest.raises(DatasetError, match=r"corrupted: .*x\.xz\n  Memory usage limit exceeded"):
        extract_archive(str(tmp_path / "x.xz"), str(tmp_path))


GOOD: dict[str, bytes] = {}


def good(kind: str, folder: Path) -> bytes:
    if kind not in GOOD:
        path = folder / f"good.{kind}"
        made = zip_of(path, *MEMBERS) if kind == "zip" else tar_of(path, *MEMBERS, mode="w:gz" if "gz" in kind else "w")
        GOOD[kind] = made.read_bytes()
    return GOOD[kind]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["tar", "tar.gz", "zip"])
@given(data=st.data())
def test_mutated_archives(tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject) -> None:
    """Whatever bytes are changed: it unpacks, or raises an error that names it; nothing appears beside the folder."""
    folder = tmp_path_factory.mktemp("mutated")
    mutated = bytearray(good(kind, folder))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(mutated) - 1))
        mutated[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    (folder / "in").mkdir()
    (folder / "in" / f"x.{kind}").write_bytes(mutated)
    before = set(folder.rglob("*"))
    with suppress(OSError):  # a name that the file system does not have
        try:
            extract_archive(str(folder / "in" / f"x.{kind}"), str(folder / "in" / "to"))
        except DatasetError as refused:
            named = f"x.{kind}" in str(refused)
            assert named
    assert {path for path in set(folder.rglob("*")) - before if "to" not in path.parts} == set()


@pytest.mark.parametrize("name", ["a/" * 20_000, "a/" * 150 + "b", "b" * 300, "a/" + "é" * 200])
def test_folders_too_deep_and_names_too_long_are_refused(tmp_path: Path, name: str) -> None:
    info = tarfile.TarInfo(name)
    info.type = tarfile.DIRTYPE
    archive = tar_of(tmp_path / "x.tar", ("good", b""), info)
    with pytest.raises(DatasetError, match="folders deep"):
        extract_archive(str(archive), str(tmp_path / "out"))
    with pytest.raises(DatasetError, match="folders deep"):
        extract_archive(str(zip_of(tmp_path / "x.zip", (f"{name}/file", b""))), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_many_empty_members_count_as_what_they_take_on_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ANY_ARCHIVE", 20 * 4096)
    members = [tarfile.TarInfo(f"folder{number}") for number in range(21)]
    for member in members:
        member.type = tarfile.DIRTYPE
    archive = tar_of(tmp_path / "x.tar.xz", *members, mode="w:xz")
    with pytest.raises(DatasetError, match="unpacks to too many bytes"):
        extract_archive(str(archive), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
