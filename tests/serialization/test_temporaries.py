"""The temporary files of saves: removed where their process is gone, left alone where it lives."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time

import pytest

from tritensor.serialization import load, save, temporaries
from tritensor.serialization.atomic import atomic_file
from tritensor.serialization.inspect import inspect, main
from tritensor.serialization.temporaries import create_temporary, remove_abandoned

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no locks that end with a process")

# Writes half of a checkpoint, says so, and writes the rest when it is told to.
SLOWLY = """
import sys
from tritensor.serialization.atomic import atomic_file
with atomic_file(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("half", flush=True)
    sys.stdin.readline()
    file.write(b" and half")
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.pt"


def writing(path):
    """A process in the middle of a save, and the path of its temporary file."""
    command = [sys.executable, "-c", SLOWLY, str(path)]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    before = set(os.listdir(path.parent))
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True
    )
    assert process.stdout.readline() == "half\n"
    (temporary,) = set(os.listdir(path.parent)) - before
    return process, path.parent / temporary


def abandoned(path, age=0.0):
    """The path of a temporary file that nobody writes to any more."""
    with create_temporary(str(path)) as stream:
        stream.write(b"half")
    then = time.time() - age
    os.utime(stream.name, (then, then))
    return stream.name


def test_a_live_process_keeps_its_file_and_a_dead_one_does_not(path):
    alive, its = writing(path)
    dead, left = writing(path)
    dead.kill()
    dead.communicate()
    os.utime(its, (0, 0))  # however long it has not written
    save({"step": 1}, path)
    assert its.exists() and not left.exists()
    assert remove_abandoned(path) == 0
    alive.communicate("\n")
    assert alive.returncode == 0
    assert path.read_bytes() == b"half and half"
    assert os.listdir(path.parent) == ["model.pt"]


def test_a_save_of_the_same_process_keeps_its_file(path):
    with atomic_file(path) as outer:
        outer.write(b"outer")
        save({"step": 1}, path)
        assert load(path) == {"step": 1}
    assert path.read_bytes() == b"outer"
    assert os.listdir(path.parent) == ["model.pt"]


def test_inspect_removes_what_was_left_and_says_so(path, capsys):
    save({"step": 1}, path)
    abandoned(path)
    assert "removed 1 temporary files of killed saves" in inspect(path)[0]
    assert "removed" not in "\n".join(inspect(path)[0])
    path.write_bytes(b"nothing")
    abandoned(path)
    assert "removed 1 temporary files of killed saves" in inspect(path)[0]
    path.unlink()
    abandoned(path)  # the first save of all was killed
    assert main([str(path)]) == 2
    assert os.listdir(path.parent) == []


def test_only_the_files_of_this_target_are_removed(path):
    long = "x" * 60
    others = [abandoned(path.with_name(name)) for name in ("model.pt.old", "odel.pt", "model.p", long + "1")]
    strange = [".model.pt.tmp", ".model.pt.0123-4567.tmp", "model.pt.01234567-0123456789ab.tmp"]
    for name in strange:
        path.with_name(name).write_bytes(b"")
    path.with_name(".model.pt.01234567-0123456789ab.tmp").mkdir()
    path.with_name(".model.pt.01234567-0123456789ac.tmp").symlink_to(path.with_name(".model.pt.tmp"))
    there = sorted(os.listdir(path.parent))
    save({"step": 1}, path)
    save({"step": 1}, path.with_name(long + "2"))
    assert sorted(os.listdir(path.parent)) == sorted([*there, "model.pt", long + "2"])
    save({"step": 1}, path.with_name(long + "1"))
    assert not os.path.exists(others[-1])


def test_names_are_found_in_any_spelling(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    link = path.with_name("link.pt")
    link.symlink_to(path)
    for spelling in ("model.pt", b"model.pt", "./model.pt", link, os.fsencode(path)):
        abandoned(path)
        assert remove_abandoned(spelling) == 1
    wide = path.with_name("🧊" * 60 + "naïve.pt")  # each of four bytes, and the system takes 255 in all
    abandoned(wide)
    save({"step": 1}, wide)
    assert sorted(os.listdir(path.parent)) == sorted(["link.pt", wide.name])


def test_files_of_another_machine_are_removed_after_an_hour(path, monkeypatch):
    monkeypatch.setattr(temporaries, "_machine", lambda: "0123abcd")
    new, old = abandoned(path, age=3000), abandoned(path, age=4000)
    locked = create_temporary(str(path))
    os.utime(locked.name, (0, 0))
    monkeypatch.undo()
    with locked:
        assert remove_abandoned(path) == 1
        assert os.path.exists(new) and not os.path.exists(old) and os.path.exists(locked.name)
    assert remove_abandoned(path) == 1


def test_without_locks_files_are_removed_after_an_hour(path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def flock(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    new, old = abandoned(path, age=3000), abandoned(path, age=4000)
    save({"step": 1}, path)
    assert load(path) == {"step": 1}
    assert os.path.exists(new) and not os.path.exists(old)


def test_a_file_that_is_taken_for_abandoned_before_it_is_locked_is_made_anew(path, monkeypatch):
    lock, taken = temporaries._lock, []

    def too_late(handle):
        if len(taken) < 3:
            (name,) = os.listdir(path.parent)
            taken.append(name)
            if len(taken) == 2:
                return False  # the other has it locked and will remove it
            os.unlink(path.parent / name)
        return lock(handle)

    monkeypatch.setattr(temporaries, "_lock", too_late)
    save({"step": 1}, path)
    assert len(set(taken)) == 3
    assert load(path) == {"step": 1}
    assert os.listdir(path.parent) == ["model.pt"]
    monkeypatch.setattr(temporaries, "_lock", lambda _: False)  # a system whose locks do not work
    with pytest.raises(OSError, match=r"model\.pt'"):
        save({"step": 2}, path)
    assert os.listdir(path.parent) == ["model.pt"]


def test_what_cannot_be_removed_is_passed_over(path, monkeypatch):
    left = abandoned(path)

    def refused(*_, **__):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refused)  # another user's, in a folder like /tmp
        save({"step": 1}, path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refused)
        save({"step": 2}, path)
    assert load(path) == {"step": 2}
    assert os.path.exists(left)


def test_many_saves_at_once_do_not_disturb_each_other(path):
    failures = []

    def saves(number):
        try:
            for step in range(40):
                save({"number": number, "step": step}, path)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=saves, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        remove_abandoned(path)
    assert failures == []
    assert load(path)["step"] == 39
    assert os.listdir(path.parent) == ["model.pt"]
