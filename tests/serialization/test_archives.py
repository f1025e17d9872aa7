"""Files that `load` does not believe: archives that are not PyTorch's, and what is no checkpoint at all."""

from __future__ import annotations

import io
import os
import pickle
import struct
import warnings
import zipfile

import pytest

from tritensor.errors import CheckpointError
from tritensor.serialization import load
from tritensor.serialization.archive_reader import _widen

from .crafted_checkpoints import DATA, archive, legacy, pickled, refusal, storage, tensor, text

GOOD = archive(pickled(tensor()))


def rewrite(change=None, method=zipfile.ZIP_STORED, root="archive"):
    """A good archive written anew by Python's zipfile, `change`d."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as packed, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that is there already
        packed.writestr(f"{root}/data.pkl", pickled(tensor()))
        packed.writestr(f"{root}/data/0", DATA)
        if change:
            change(packed)
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (rewrite(lambda z: z.writestr("archive/data/0", DATA)), "same name"),
        (rewrite(lambda z: z.writestr("other/data/1", DATA)), "more than one folder"),
        (rewrite(lambda z: z.writestr("/archive/data/1", DATA)), "leads out"),
        (rewrite(lambda z: z.writestr("archive/../data/1", DATA)), "leads out"),
        (rewrite(lambda z: z.writestr("../data/1", DATA)), "leads out"),
        (rewrite(lambda z: z.writestr("archive/a\\b", DATA)), "leads out"),
        (rewrite(lambda z: z.writestr("C:/data/1", DATA)), "leads out"),
        (rewrite(lambda z: z.writestr("loose", DATA)), "leads out"),
        (rewrite(lambda z: z.writestr("archive/constants.pkl", b"N.")), "TorchScript"),
        (rewrite(lambda z: z.writestr("archive/byteorder", b"middle")), "endianness"),
        (rewrite(method=zipfile.ZIP_DEFLATED), "compressed"),
        (rewrite(lambda z: z.writestr("archive/constants.pkl", b"N."), zipfile.ZIP_DEFLATED), "TorchScript"),
        (rewrite(lambda z: z.writestr("archive/data/1", bytes(10**7), zipfile.ZIP_DEFLATED)), "compressed"),
        (GOOD + b"tail", "behind its end"),
        (b"PK\3\4" + bytes(40), "central directory"),
        (GOOD[:-1], "central directory"),
        (b"PK\3\4", "central directory"),
        (rewrite(root="x/y"), "data.pkl"),
    ],
    ids=lambda value: "file" if isinstance(value, bytes) else None,  # the bytes of an archive hold the time
)
def test_archives_that_are_not_pytorchs_are_refused(data, words):
    assert words in refusal(data)


def patched(data, at, form, *values):
    changed = bytearray(data)
    struct.pack_into(form, changed, at, *values)
    return bytes(changed)


def test_directories_that_lie_about_sizes_and_places_are_refused():
    at = GOOD.index(b"PK\1\2")
    entry = GOOD.index(b"archive/data/0", at) - 46
    end = GOOD.index(b"PK\5\6")
    for data, words in [
        (patched(GOOD, entry + 24, "<I", 2**31), "compressed"),
        (patched(GOOD, entry + 20, "<II", 2**31, 2**31), "overlap"),
        (patched(GOOD, entry + 20, "<II", 200, 200), "overlap"),
        (patched(GOOD, entry + 20, "<II", 0xFFFFFFFF, 0xFFFFFFFF), "64-bit size"),
        (patched(GOOD, entry + 20, "<II", 8, 8), "size that the pickle says"),
        (patched(GOOD, entry + 42, "<I", 0), "disagree"),
        (patched(GOOD, entry + 42, "<I", 2**31), "ends too early"),
        (patched(GOOD, entry + 8, "<H", 1), "flags"),
        (patched(GOOD, entry + 28, "<H", 60000), "damaged"),
        (patched(GOOD, end + 8, "<HH", 60000, 60000), "central directory"),
        (patched(GOOD, end + 10, "<H", 1), "several"),
        (patched(GOOD, end + 8, "<HH", 3, 3), "behind the last entry"),
        (patched(GOOD, end + 12, "<II", 4, 4), "central directory"),
        (patched(GOOD, end + 4, "<H", 1), "several"),
    ]:
        assert words in refusal(data), words


def test_the_64_bit_sizes_are_found_behind_other_extra_data():
    extra = struct.pack("<HH2sHHQQ", 0x4246, 2, b"ZZ", 1, 16, 2**33, 2**34)
    assert _widen(extra, "x", 0xFFFFFFFF, 7, 0xFFFFFFFF) == (2**33, 7, 2**34)


def test_a_flipped_bit_in_any_storage_is_found():
    at = GOOD.index(DATA)
    for bit in range(8 * len(DATA)):
        changed = bytearray(GOOD)
        changed[at + bit // 8] ^= 1 << bit % 8
        assert "checksum" in refusal(bytes(changed), "entry data/0")


# Files that are something else -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"hello, world", "Invalid magic number"),
        (struct.pack("<Q", 2) + b"{}", ".safetensors"),
        (b"x" * 257 + b"ustar\x0000" + bytes(300), ".tar"),
        (pickle.dumps({"a": 1}), "Invalid magic number"),
        (pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1000, 2), "protocol version"),
        (legacy(pickled(tensor()), (("1", 4, DATA),)), "not those that its object refers to"),
        (legacy(pickled(tensor()), (("0", 5, DATA),)), "does not have the size"),
        (legacy(pickled(tensor()), (("0", 4, DATA[:-1]),)), "ends too early"),
        (legacy(pickled(tensor()), ()), "not those"),
        (legacy(pickled(tensor()), ())[:-4] + b"N.", "list of storage keys"),
        (legacy(pickled(tensor(storage(count=2**40)))), "larger than the file"),
        (legacy(pickled(b"(" + storage()[1:-2] + text("view") + b"tQ")), "PyTorch 0.3"),
    ],
)
def test_files_that_are_no_checkpoints_are_refused(data, words):
    assert words in refusal(data)


def test_paths_that_cannot_be_read_raise_the_systems_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        load(tmp_path / "absent.pt")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    if hasattr(os, "mkfifo"):  # opening one would wait for a writer
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(CheckpointError, match="not a regular file"):
            load(tmp_path / "pipe")
    hidden = tmp_path / "hidden.pt"
    hidden.write_bytes(GOOD)
    hidden.chmod(0)
    if not os.access(hidden, os.R_OK):  # root reads everything
        with pytest.raises(PermissionError):
            load(hidden)
