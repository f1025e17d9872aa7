"""Tens of thousands of damaged checkpoints: each is read or refused, in time, in memory, and with nothing executed.

The quick slice runs by default; `pytest -m slow tests/serialization/test_checkpoint_fuzz.py` runs all of it.
"""

from __future__ import annotations

import enum
import io
import os
import pickle
import random
import shutil
import struct
import sys
import time
import tracemalloc
import zipfile
from collections import Counter, OrderedDict, defaultdict
from pathlib import PurePosixPath

import numpy as np
import pytest

import tritensor
from tritensor.errors import CheckpointError
from tritensor.serialization import load, save

from .crafted_checkpoints import archive, call, legacy, name, number, pickled, storage, tensor, text

# What the tables of a small file's records, the unpickler and the message take, whatever the file's size.
ANY_FILE = 512 * 1024
EXECUTION = (
    "exec",
    "compile",
    "import",
    "os.system",
    "os.exec",
    "os.spawn",
    "os.posix_spawn",
    "os.fork",
    "subprocess.Popen",
    "pickle.find_class",
    "ctypes",
    "marshal",
    "code.__new__",
    "shutil",
    "os.remove",
    "os.rename",
    "socket",
    "tempfile",
)
seen: list[str] | None = None


def watch(event, arguments):
    """An audit hook; it cannot be taken out again, so it does nothing between tests."""
    if seen is None:
        return
    writes = event == "open" and isinstance(arguments[1], str) and set("wax+") & set(arguments[1])
    if writes or event.startswith(EXECUTION):
        seen.append(f"{event} {arguments}")


sys.addaudithook(watch)


def everything():
    """One object with everything in it that a checkpoint can hold."""
    grid = np.arange(12, dtype=np.float32).reshape(3, 4)
    state = OrderedDict(
        (key, tritensor.from_numpy(view)) for key, view in (("a", grid), ("b", grid[1:, ::2]), ("c", grid.T))
    )
    state["parameter"] = tritensor.nn.Parameter(tritensor.ones(2, 2))
    for dtype in (tritensor.bool, tritensor.uint16, tritensor.int64, tritensor.bfloat16, tritensor.complex64):
        state[str(dtype)] = tritensor.ones(3, dtype=dtype)
    state._metadata = OrderedDict(layer={"version": 1})
    return {
        "state": state,
        "array": np.arange(6.0).reshape(2, 3),
        "scalar": np.float32(1),
        "words": np.array(["ab", "c"]),
        "numbers": [1, -2, 300, 70000, 2**40, -(2**70), 1.5, 2j, True, None],
        "text": "naïve ☃",
        "bytes": b"\x00\xff",
        "more": (bytearray(b"x"), {1, 2}, frozenset([3]), Counter("aab"), ()),
        "size": tritensor.Size([2, 3]),
        "where": tritensor.device("cuda:1"),
        "dtype": tritensor.float16,
        7: {"deep": [[[["er"]]]]},
    }


class Shade(enum.Enum):
    RED = 1


class Layer(tritensor.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = tritensor.nn.Linear(2, 1)
        self.shade, self.where, self.act = Shade.RED, PurePosixPath("/x"), tritensor.nn.functional.relu
        self.names = defaultdict(list, {"a": [1]})


class Reduces:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def originals():
    """Files to damage: good ones of both forms, and the pickles of attacks."""
    file = io.BytesIO()
    save(everything(), file)
    with zipfile.ZipFile(io.BytesIO(file.getvalue())) as packed:
        data = packed.read("archive/data.pkl")
        storages = [packed.read(f"archive/data/{i}") for i in range(100) if f"archive/data/{i}" in packed.namelist()]
    whole = io.BytesIO()
    save({"model": Layer(), "optimizer": tritensor.optim.SGD([tritensor.ones(1)], 0.1)}, whole)
    with zipfile.ZipFile(whole) as packed:
        modules = packed.read("archive/data.pkl"), [packed.read(f"archive/data/{i}") for i in range(3)]
    attacks = [pickle.dumps(Reduces(os.system, "true"), protocol) for protocol in (0, 2, 4)]
    attacks += [pickle.dumps(Reduces(np.load, "/dev/null"), 2), pickle.dumps(Reduces(shutil.rmtree, "/nowhere"), 2)]
    attacks += [pickle.dumps([Reduces(eval, "1"), {"a": Reduces(getattr, "a", "b")}], 2)]
    attacks += [pickled(name("torch._utils", "_rebuild_tensor_v2"), b"(", storage(), number(2**62), b")))NtR")]
    attacks += [
        pickled(b"]q\x00h\x00a"),
        pickled(tensor(), b"q\x00}h\x00Nsb"),
        pickled(call("torch", "Size", b"(K\x01t")),
    ]
    small = pickled(b"}(", text("a"), tensor(), text("b"), tensor(size=(2, 2), stride=(2, 1)), b"u")
    return {
        "saved": file.getvalue(),
        "small": archive(small),
        "legacy": legacy(small),
        "pickles": [
            (data, storages),
            modules,
            (small, [struct.pack("<4f", 1, 2, 3, 4)]),
            *((attack, []) for attack in attacks),
        ],
    }


EXTREMES = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 2**63 - 1, 2**63, 2**64 - 1]


def damage(chance, data):
    """A few random changes: bits, bytes, numbers, pieces taken out, repeated or moved, the end cut off."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4, 16))):
        if not changed:
            break
        at = chance.randrange(len(changed))
        end = min(len(changed), at + chance.choice((1, 2, 4, 8, 16, 64)))
        kind = chance.randrange(8)
        if kind == 0:
            changed[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            changed[at] = chance.randrange(256)
        elif kind == 2:
            width = chance.choice((2, 4, 8))
            value = chance.choice(EXTREMES) & ((1 << 8 * width) - 1)
            changed[at : at + width] = value.to_bytes(width, "little")
        elif kind == 3:
            del changed[at:end]
        elif kind == 4:
            changed[at:at] = changed[at:end] * chance.choice((1, 1, 2, 50))
        elif kind == 5:
            other = chance.randrange(len(changed))
            changed[other:other] = changed[at:end]
        elif kind == 6:
            changed[at:at] = chance.randbytes(end - at)
        elif kind == 7 and chance.random() < 0.3:
            del changed[at:]
    return bytes(changed)


def damaged_files(count, seed):
    """`count` files: half damaged as they are, half with a damaged pickle behind a good checksum."""
    chance = random.Random(seed)
    files = originals()
    whole = [files["saved"], files["small"], files["legacy"]]
    for index in range(count):
        if index % 2:
            yield damage(chance, chance.choice(whole))
            continue
        data, storages = chance.choice(files["pickles"])
        data = damage(chance, data)
        yield archive(data, storages) if chance.random() < 0.7 else legacy(data, ())


def attempt(data, weights_only):
    """Load a damaged file: None or the error's message, and the seconds and the bytes that it took."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    begin = time.thread_time()
    message = None
    try:
        load(io.BytesIO(data), map_location="cpu", weights_only=weights_only)
    except CheckpointError as error:
        message = str(error)
    return message, time.thread_time() - begin, tracemalloc.get_traced_memory()[1] - before


def fuzz(count, seed):
    global seen
    files = originals()  # whatever is imported on first use is imported now
    load(io.BytesIO(files["saved"]), map_location="cpu")
    for room in ("nn.x", "optim", "utils.data", "utils.hooks", "distributions"):
        with pytest.raises(CheckpointError):
            load(io.BytesIO(archive(pickled(name(f"torch.{room}", "Nothing")))), weights_only=False)
    assert load(io.BytesIO(archive(*files["pickles"][1])), weights_only=False)["model"].names == {"a": [1]}
    outcomes = Counter()
    tracemalloc.start()
    try:
        for index, data in enumerate(damaged_files(count, seed)):
            seen = []
            message, seconds, nbytes = attempt(data, weights_only=index % 4 < 2)
            events, seen = seen, None
            outcomes["refused" if message else "read"] += 1
            assert message is None or "<BytesIO>" in message
            assert not events, (events, data)
            assert seconds < 2, data
            assert nbytes < 10 * len(data) + ANY_FILE, (nbytes, data)
    finally:
        seen = None
        tracemalloc.stop()
    assert outcomes["refused"] > outcomes["read"] > 0


def test_damaged_checkpoints_are_read_or_refused():
    fuzz(500, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 10))
def test_many_damaged_checkpoints_are_read_or_refused(seed):
    fuzz(3000, seed)


@pytest.mark.parametrize("form", ["saved", "small", "legacy"])
def test_a_checkpoint_cut_at_any_byte_is_refused(form):
    data = originals()[form]
    for size in range(len(data)):
        with pytest.raises(CheckpointError, match="<BytesIO>"):
            load(io.BytesIO(data[:size]))


def test_any_single_flipped_bit_is_refused_or_changes_nothing():
    """Checksums guard the records and the directory guards itself: what is read from a damaged archive is what was
    saved, except for the name of the folder in it and fields that nobody reads."""
    data = originals()["small"]
    expected = {key: value.tolist() for key, value in load(io.BytesIO(data)).items()}
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1 << position % 8
        try:
            found = load(io.BytesIO(bytes(changed)))
        except CheckpointError:
            continue
        assert {key: value.tolist() for key, value in found.items()} == expected
