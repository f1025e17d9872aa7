"""`.metadata` of a checkpoint folder: a pickle of records with the names of PyTorch's classes, read as data alone."""

from __future__ import annotations

import io
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any

from ..types.dtypes import dtype
from ..types.size import Size
from .builder import Builder
from .keys import KeyCheck
from .malformed import Malformed, refusing
from .pickler import Children, Pickler, Place
from .unpickler import Unpickler

ROOT = "torch.distributed.checkpoint"
METADATA, INDEX, INFO = f"{ROOT}.metadata.Metadata", f"{ROOT}.metadata.MetadataIndex", f"{ROOT}.filesystem._StorageInfo"
TENSOR, CHUNK = f"{ROOT}.metadata.TensorStorageMetadata", f"{ROOT}.metadata.ChunkStorageMetadata"
BYTES, META = f"{ROOT}.metadata.BytesStorageMetadata", f"{ROOT}.metadata.StorageMeta"
PROPERTIES, FORMAT = f"{ROOT}.metadata.TensorProperties", f"{ROOT}.metadata._MEM_FORMAT_ENCODING"
RECORDS = {METADATA, INDEX, INFO, TENSOR, CHUNK, BYTES, META, PROPERTIES}
PATHS = {f"{module}.{name}Path" for module in ("pathlib", "pathlib._local") for name in ("Posix", "Windows")}


class _Name(str):
    """A name that a pickle may use, in place of what it names."""


class Record:
    """A record of PyTorch's: of a class, with attributes, or made by a call; keys are equal that name the same part."""

    kind: str = ""  # until both are set, of one that comes from another process
    state: Any = None

    def __init__(self, kind: str, state: Any = None, arguments: tuple[Any, ...] = ()) -> None:
        self.kind, self.state, self.arguments = kind, state or {}, arguments

    def __getattr__(self, name: str) -> Any:
        if name not in (self.state or ()):
            raise AttributeError(f"a {self.kind} without {name}")
        return self.state[name]

    @property
    def place(self) -> tuple[str, Size | None]:
        """What the index of a part names: its key, and where it begins if the value is a tensor."""
        return self.fqn, self.state.get("offset")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self.place == other.place

    def __hash__(self) -> int:
        return hash(self.place)


class _Keys(KeyCheck):
    """Checks keys as in any checkpoint, and records that are keys by what they are compared by."""

    def check(self, key: object) -> None:
        super().check(key.place if isinstance(key, Record) else key)


class _Records:
    """What the unpickler asks of the names that are not those of data: records and what they hold, nothing else."""

    def find(self, module: str, name: str, refusal: Malformed) -> Any:
        full = f"{module}.{name}"
        return _Name(full) if full in RECORDS | PATHS | {FORMAT} else refusal

    def knows(self, value: object) -> bool:
        return type(value) is _Name or value is Record

    def call(self, function: object, arguments: tuple[Any, ...]) -> Any:
        if function in PATHS and all(type(each) is str for each in arguments):
            return PurePosixPath(*arguments)
        if function != FORMAT:
            raise Malformed(f"the pickle calls {function}")
        return None

    def new(self, kind: str, arguments: tuple[Any, ...]) -> Record:
        return Record(kind)

    def set_state(self, target: Record, state: Any) -> None:
        target.state = {"dtype": state[0]} if target.kind == PROPERTIES else state


def read_metadata(path: str) -> Record:
    """What a file `.metadata` says, checked. Raises CheckpointError if it is damaged, or names other things."""
    with open(path, "rb") as stream:
        data = stream.read()
    with refusing(path):
        # a record takes up to forty times the bytes of its pickle; and there are no storages to claim
        builder = Builder(SimpleNamespace(file_size=4 * len(data)))
        builder.objects = _Records()
        unpickler = Unpickler(io.BytesIO(data), len(data), builder, "")
        unpickler._keys = _Keys()
        found: Record = unpickler.load()
        for name, entry in found.state_dict_metadata.items():
            for chunk in () if entry.kind == BYTES else entry.chunks:
                ranges = [*zip(chunk.offsets, chunk.sizes, entry.size, strict=True)]
                inside = all(0 <= offset <= offset + length <= whole for offset, length, whole in ranges)
                if not inside or {type(chunk.offsets), type(chunk.sizes), type(entry.size)} != {Size}:
                    raise Malformed("a part is not inside of its tensor", entry=name)
        for part, at in found.storage_data.items():
            outside = {"..", "/"} & {*PurePosixPath(at.relative_path).parts} or "\0" in at.relative_path
            if outside or {type(at.offset), type(at.length)} != {int} or min(at.offset, at.length) < 0:
                raise Malformed("a part is not inside of the folder", f"{at.state}", entry=part.fqn)
            if at.state.get("transform_descriptors"):
                raise Malformed(f"it was written with extensions: {at.transform_descriptors}", entry=part.fqn)
    return found


class _Pickler(Pickler):
    """Writes records under the names of PyTorch's classes."""

    def _writer_of(self, value: object, place: Place) -> Any:
        return _Pickler._record if type(value) is Record else super()._writer_of(value, place)

    def _record(self, value: Record, place: Place) -> Children:
        self._global(value.kind)
        yield from self._parts(value.arguments, place)
        self._out += b"R" if value.arguments else b"\x81"
        self._remember(value)
        if value.state:
            yield from self._parts(value.state, place)
            self._out += b"b"


def info(file: str, offset: int, length: int) -> Record:
    """Where a part is: its file, and its bytes there."""
    return Record(INFO, {"relative_path": file, "offset": offset, "length": length})


def pickled(metadata: Record) -> bytes:
    """The bytes of a file `.metadata`."""
    pickler = _Pickler()
    pickler._key_check = _Keys()
    return pickler.dump(metadata)


def index(name: str, offset: tuple[int, ...] | None = None) -> Record:
    """The key of a part: the name, and where the part begins if the value is a tensor."""
    return Record(INDEX, {"fqn": name, "offset": None if offset is None else Size(offset), "index": None})


def tensor(kind: dtype, size: tuple[int, ...], chunks: list[Any]) -> Record:
    """What a tensor is: its dtype and shape, and of each part where it begins and its shape."""
    layout, order = Record("torch.serialization._get_layout", None, ("torch.strided",)), Record(FORMAT, None, (0,))
    parts = [Record(CHUNK, {"offsets": Size(offset), "sizes": Size(sizes)}) for offset, sizes in chunks]
    properties = Record(PROPERTIES, (kind, layout, False, order, False))
    return Record(TENSOR, {"properties": properties, "size": Size(size), "chunks": parts})
