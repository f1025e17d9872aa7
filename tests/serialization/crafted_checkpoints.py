"""Checkpoints made by hand, byte by byte, for tests of what `load` believes and what it refuses."""

from __future__ import annotations

import io
import pickle
import struct
import time
import zipfile

import pytest

from tritensor.errors import CheckpointError
from tritensor.serialization import load

DATA = struct.pack("<4f", 1, 2, 3, 4)


def archive(pickled, storages=(DATA,), root="archive", extra=(), **options):
    """A zip archive as PyTorch lays it out: `data.pkl`, `byteorder`, `data/0`, ..., `version`."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as packed:
        packed.writestr(f"{root}/data.pkl", pickled)
        packed.writestr(f"{root}/byteorder", options.get("byteorder", "little"))
        for index, data in enumerate(storages):
            packed.writestr(f"{root}/data/{index}", data)
        packed.writestr(f"{root}/version", "3\n")
        for name, data in extra:
            packed.writestr(name, data)
    return file.getvalue()


def legacy(pickled, storages=(("0", 4, DATA),)):
    """A file as PyTorch wrote them before 1.6: (key, number of elements, bytes) for each storage."""
    header = b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))
    keys = pickle.dumps([key for key, _, _ in storages], 2)
    return header + pickled + keys + b"".join(struct.pack("<q", count) + data for _, count, data in storages)


def name(module, attribute):
    return f"c{module}\n{attribute}\n".encode()


def text(value):
    data = value.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(data)) + data


def number(value):
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data if len(data) < 256 else b"\x8b" + struct.pack("<I", len(data)) + data


def numbers(*values):
    return b"(" + b"".join(number(value) for value in values) + b"t"


def call(module, attribute, *arguments):
    return name(module, attribute) + b"(" + b"".join(arguments) + b"tR"


def storage(key="0", kind="Float", location="cpu", count=4):
    """The persistent id of a storage."""
    return b"(" + text("storage") + name("torch", f"{kind}Storage") + text(key) + text(location) + number(count) + b"tQ"


def sparse_tensor(indices, values, size=(4,), flag=b"\x88"):
    """A call of `_rebuild_sparse_tensor`."""
    parts = b"(" + indices + values + call("torch", "Size", numbers(*size)) + flag + b"t"
    layout = call("torch.serialization", "_get_layout", text("torch.sparse_coo"))
    return call("torch._utils", "_rebuild_sparse_tensor", layout, parts)


def tensor(where=None, offset=0, size=(4,), stride=(1,), requires_grad=False, more=b""):
    """A call of `_rebuild_tensor_v2`."""
    return (
        name("torch._utils", "_rebuild_tensor_v2")
        + b"("
        + (where or storage())
        + number(offset)
        + numbers(*size)
        + numbers(*stride)
        + number(requires_grad)
        + call("collections", "OrderedDict")
        + more
        + b"tR"
    )


def pickled(*parts):
    return b"\x80\x02" + b"".join(parts) + b"."


def refusal(data, *words, path=None):
    """Load `data`, which must be refused within 2 s of work with a message that has these words and the file's name."""
    begin = time.thread_time()  # not of other programs' work, on a machine that is busy
    with pytest.raises(CheckpointError) as caught:
        load(path or io.BytesIO(data))
    assert time.thread_time() - begin < 2
    message = str(caught.value)
    assert (str(path) if path else "<BytesIO>") in message
    for word in words:
        assert word in message
    return message
