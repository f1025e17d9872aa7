"""Saving to paths that cannot be written, to links, and what the messages name: the path that the user gave."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import pytest

from tritensor.serialization import archive_writer, load, save
from tritensor.tensors import wrap

STATE = {"weight": wrap(np.arange(6.0))}
NAMES = ["model.pt", "model.safetensors"]


def refusal(path, kind):
    """The error of a save, which names the path and no other file."""
    with pytest.raises(kind) as caught:
        save(STATE, path)
    error = caught.value
    assert str(error) == f"[Errno {error.errno}] {os.strerror(error.errno)}: {os.fsdecode(path)!r}"
    assert error.filename == os.fsdecode(path) and error.filename2 is None
    return "\n".join(getattr(error, "__notes__", []))


@pytest.fixture
def unwritable():
    """A folder in which this process can make no files; root gives its rights up for the test."""
    if sys.platform == "win32":
        pytest.skip("folders of Windows have no such permissions")
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o555)
        if root:
            os.seteuid(65534)
        try:
            yield folder
        finally:
            if root:
                os.seteuid(0)
            os.chmod(folder, 0o755)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("relative", [True, False])
def test_a_missing_folder(tmp_path, monkeypatch, name, relative):
    monkeypatch.chdir(tmp_path)
    path = os.path.join("absent", name) if relative else tmp_path / "absent" / name
    note = refusal(path, FileNotFoundError)
    assert f"save: there is no folder {os.path.realpath('absent')}" in note
    assert "Fix: make it with os.makedirs" in note
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_file_in_place_of_a_folder(tmp_path, name):
    (tmp_path / "file").write_bytes(b"")
    note = refusal(tmp_path / "file" / name, (NotADirectoryError, FileNotFoundError))
    assert "there is no folder" in note


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_that_may_not_be_written(unwritable, name):
    note = refusal(os.path.join(unwritable, name), PermissionError)
    assert f"save: no file can be made in the folder {os.path.realpath(unwritable)}" in note
    assert "Fix: make the folder writable, or save to another" in note
    assert os.listdir(unwritable) == []


@pytest.mark.parametrize("path", ["", "folder.pt", "folder.safetensors", "absent.pt/"])
def test_a_folder_in_place_of_a_file(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    for name in ("folder.pt", "folder.safetensors"):
        os.mkdir(name)
    refusal(path, IsADirectoryError)
    assert sorted(os.listdir()) == ["folder.pt", "folder.safetensors"]
    assert os.listdir("folder.pt") == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("moment", "code"), [("fsync", errno.EIO), ("replace", errno.EACCES), ("replace", errno.EBUSY)]
)
def test_a_failure_of_the_system(tmp_path, monkeypatch, name, moment, code):
    def fail(*paths):
        raise OSError(code, os.strerror(code), *[path for path in paths if isinstance(path, str)][:1])

    monkeypatch.setattr(os, moment, fail)
    assert refusal(tmp_path / name, OSError) == ""
    assert os.listdir(tmp_path) == []


def test_a_failure_that_names_both_files_of_a_rename(tmp_path, monkeypatch):
    def fail(source, target):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), source, None, target)

    monkeypatch.setattr(os, "replace", fail)
    refusal(tmp_path / "model.pt", OSError)


def test_a_failure_that_concerns_another_file_names_that(tmp_path, monkeypatch):
    def fail(*_):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", "other")

    monkeypatch.setattr(archive_writer.ArchiveWriter, "finish", fail)
    with pytest.raises(FileNotFoundError, match="'other'"):
        save(STATE, tmp_path / "model.pt")


# Links ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def link(tmp_path):
    """Makes a link in a folder of its own."""
    (tmp_path / "links").mkdir()

    def make(name, target):
        made = tmp_path / "links" / name
        try:
            made.symlink_to(target)
        except OSError:
            pytest.skip("links cannot be made here")
        return made

    return make


@pytest.mark.parametrize("name", NAMES)
def test_saving_to_a_dangling_link_makes_its_target(tmp_path, link, name):
    """As opening the link for writing does."""
    (tmp_path / "real").mkdir()
    path = link(name, os.path.join("..", "real", "target"))
    again = link("again." + name, path)
    save(STATE, again)
    assert path.is_symlink() and again.is_symlink()
    assert os.listdir(tmp_path / "real") == ["target"]
    assert sorted(os.listdir(tmp_path / "links")) == sorted(["again." + name, name])
    assert load(path)["weight"].tolist() == load(again)["weight"].tolist() == STATE["weight"].tolist()


@pytest.mark.parametrize("name", NAMES)
def test_a_link_into_a_missing_folder(tmp_path, link, name):
    path = link(name, tmp_path / "absent" / name)
    note = refusal(path, FileNotFoundError)
    assert f"there is no folder {os.path.realpath(tmp_path / 'absent')}" in note
    assert path.is_symlink()


def test_a_link_to_itself(link):
    path = link("model.pt", "model.pt")
    if sys.platform == "win32":
        with pytest.raises(OSError, match=re.escape("model.pt")):
            save(STATE, path)
    else:
        refusal(path, OSError)
    assert path.is_symlink()


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="there is no /dev/stdout")
def test_the_standard_output_may_be_a_pipe():
    script = "import tritensor; tritensor.save({'step': 3}, '/dev/stdout')"
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, capture_output=True, check=False, env={**os.environ, "PYTHONPATH": os.getcwd()}, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"PK")
