"""`save`: write a checkpoint in PyTorch's format, completely or not at all."""

from __future__ import annotations

import io
import os
from typing import Any

from ..errors import ArgumentError
from .archive_writer import ALIGNMENT, ArchiveWriter
from .atomic import atomic_file
from .builder import Builder
from .malformed import Malformed
from .pickler import Pickler
from .progress import Progress
from .safetensors_files import is_safetensors_name, save_safetensors
from .storages import SavedStorage
from .unpickler import Unpickler

# Only a pickle larger than this can exceed the limit of `load` on small objects: at most 30 bytes of them are counted
# for each byte of pickle, and ten bytes for each byte and 64 MB are allowed.
REHEARSED_FROM = 3 * 2**20


def save(obj: Any, f: Any) -> None:
    """Save `obj` to a file in PyTorch's own checkpoint format; PyTorch reads it.

    The old file is replaced only when the new one is complete: after a crash, a full disk or Ctrl-C it is unchanged. It
    is not truncated either, so a process that has it mapped keeps what it has. A symbolic link stays, and the file that
    it leads to is replaced or made. Temporary files that killed saves left beside the file are removed.

    Args:
        obj: tensors, parameters, Python numbers, text, bytes, None, dtypes, devices, sizes, NumPy arrays and scalars
            of numbers, and lists, tuples, dicts and sets of them, nested; also modules as a whole and objects of other
            classes, by the names of their classes, which `load(weights_only=False)` reads. Tensors that share memory
            share it after loading. A module's `state_dict()` outlives changes of its class.
        f: a path, or anything with `write`. A name that ends in `.safetensors` is written as such.

    Raises:
        CheckpointError: something in `obj` cannot be saved; the message says where. Nothing is written.
        ArgumentError: `f` is neither a path nor a file.
        OSError: the file cannot be written, or its folder cannot: the new file is first written beside the old one.

    >>> import tempfile, os, tritensor
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.pt")
    ...     tritensor.save({"weight": tritensor.zeros(2, 2)}, path)
    ...     tritensor.load(path)
    {'weight': tensor([[0., 0.],
            [0., 0.]])}
    """
    is_path = isinstance(f, (str, os.PathLike))
    if not is_path and not hasattr(f, "write"):
        raise ArgumentError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute",
            f"got {type(f).__name__}",
            remedy="save(obj, 'model.pt')",
        )
    if is_safetensors_name(f):
        save_safetensors(obj, f)
        return
    pickler = Pickler()
    data = pickler.dump(obj)
    if len(data) > REHEARSED_FROM and not pickler.has_objects:
        _rehearse(data, pickler.storages)
    if not is_path:
        _write(f, "archive", data, pickler.storages)
        return
    with atomic_file(f) as stream:
        _write(stream, _folder_name(os.fspath(f)), data, pickler.storages)


def _write(stream: Any, folder: str, data: bytes, storages: list[SavedStorage]) -> None:
    archive = ArchiveWriter(stream, folder)
    archive.write_record("data.pkl", len(data), [data])
    archive.write_text(".format_version", "1")
    archive.write_text(".storage_alignment", str(ALIGNMENT))
    archive.write_text("byteorder", "little")
    progress = Progress("save", sum(storage.nbytes for storage in storages))
    try:
        for index, storage in enumerate(storages):
            archive.write_record(f"data/{index}", storage.nbytes, storage.chunks())
            progress.update(storage.nbytes)
    finally:
        progress.close()
    archive.finish()


def _folder_name(path: str | bytes) -> str:
    """The folder inside the archive: the file's own name, as in PyTorch, if that is plain."""
    name = os.path.splitext(os.path.basename(os.fsdecode(path)))[0]
    plain = name.isascii() and name.isprintable() and name.strip(".") and not set(name) & set("\\/:")
    return name if plain else "archive"


def _rehearse(data: bytes, storages: list[SavedStorage]) -> None:
    """Raise before writing if `load` would find too many small objects in the file."""
    sizes = _Sizes({str(index): storage.nbytes for index, storage in enumerate(storages)}, len(data))
    try:
        Unpickler(io.BytesIO(data), len(data), Builder(sizes), "data.pkl").load()
    except Malformed as error:
        error.remedy = "save many small numbers as a tensor or an array"
        raise error.as_error("what is being saved") from None


class _Sizes:
    """The file that is about to be written, for the check."""

    def __init__(self, sizes: dict[str, int], pickle_size: int) -> None:
        self._sizes = sizes
        self.file_size = pickle_size + sum(sizes.values())

    def claim(self, key: str, nbytes: int, itemsize: int) -> int:
        return self._sizes[key]
