"""`.safetensors` files: each holds only a flat dict of named tensors. The safetensors library reads them; they are
written here, because its own temporary files would stay behind when a process is killed."""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CheckpointError, DtypeError, OutOfMemoryError
from ..memory import copies
from ..tensors import Tensor, wrap
from ..types import dtypes
from ..types.devices import device
from .atomic import atomic_file
from .builder import StorageRecord, StorageType
from .malformed import CallersError, Malformed
from .progress import Progress
from .storages import contiguous_host

NAMES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
}
CODES = {name: code for code, name in NAMES.items()}
METADATA = "__metadata__"  # the key of what is said about the file
BY_NAME = {entry.name: entry for entry in dtypes.STORED}


def is_safetensors_name(f: Any) -> bool:
    """True if `f` is a path whose name ends in `.safetensors`."""
    return isinstance(f, (str, os.PathLike)) and os.fsdecode(f).endswith(".safetensors")


def save_safetensors(obj: Any, path: Any) -> None:
    """Write a dict of tensors; tensors that share memory are each written in full, as the format has no sharing.

    Raises:
        CheckpointError: `obj` is not a dict of text to tensors.
        DtypeError: a tensor of a dtype that the format does not have (complex128).
        OSError: the file cannot be written.
    """
    if not isinstance(obj, dict):
        raise CheckpointError(
            f"save: a .safetensors file holds a dict of tensors, not a {type(obj).__name__}",
            remedy="save a state_dict(), or use a name that ends in .pt",
        )
    for name, value in obj.items():
        if type(name) is not str or not isinstance(value, Tensor):
            raise CheckpointError(
                f"save: a .safetensors file holds tensors under text keys only, and obj[{name!r:.80}] is a "
                f"{type(value).__name__}",
                remedy="take it out, or use a name that ends in .pt",
            )
        if name == METADATA:
            raise CheckpointError(
                f"save: a .safetensors file has no tensor named {METADATA}",
                "the format keeps that name for what is said about the file",
                remedy="give it another name, or use a file name that ends in .pt",
            )
        if value.dtype.name not in CODES:
            raise DtypeError(
                f"save: .safetensors has no dtype {value.dtype.name}",
                f"obj[{name!r}] has it",
                remedy="convert it, or use a name that ends in .pt",
            )
    # The widest elements first, so that every tensor is aligned to its own.
    ordered = sorted(obj.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    header = _header(ordered)
    with atomic_file(path) as stream:
        stream.write(header)
        progress = Progress("save", sum(_nbytes(tensor) for _, tensor in ordered))
        try:
            for _, tensor in ordered:
                stream.write(contiguous_host(tensor).reshape(-1).view(np.uint8).data)
                progress.update(_nbytes(tensor))
        finally:
            progress.close()


def _header(ordered: list[tuple[str, Tensor]]) -> bytes:
    """The length of a JSON text in eight bytes, and the text: each tensor's dtype, shape, and where its bytes are."""
    facts: dict[str, Any] = {METADATA: {"format": "pt"}}
    end = 0
    for name, tensor in ordered:
        start, end = end, end + _nbytes(tensor)
        facts[name] = {"dtype": CODES[tensor.dtype.name], "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(facts, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def _nbytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.dtype.itemsize


def load_safetensors(path: str | os.PathLike[str], restore: Callable[[StorageRecord], device]) -> dict[str, Tensor]:
    """Read the tensors of a file, one at a time, to the device that `restore` returns for storages of the CPU."""
    loaded = {}
    with _opened(path) as file:
        facts = _describe(path, file)
        starts = _starts(path) if any(dtype in dtypes.FLOAT8 for dtype, _ in facts.values()) else {}
        for name, (dtype, shape) in facts.items():
            place = restore(StorageRecord(name, 0, "cpu", StorageType("Untyped", dtype, False)))
            if dtype in dtypes.FLOAT8:  # which the library looks for in NumPy
                array = np.fromfile(os.fsdecode(path), dtype.numpy, math.prod(shape), offset=starts[name])
                array = array.reshape(shape)
            else:
                array = file.get_tensor(name)
            loaded[name] = wrap(array if place.type == "cpu" else copies.from_host(array, place))
    return loaded


def _starts(path: str | os.PathLike[str]) -> dict[str, int]:
    """Where each tensor begins in a file whose header the library has checked."""
    with open(path, "rb") as stream:
        (size,) = struct.unpack("<Q", stream.read(8))
        facts = json.loads(stream.read(size))
    return {name: 8 + size + each["data_offsets"][0] for name, each in facts.items() if name != METADATA}


def read_header(path: object) -> dict[str, tuple[dtypes.dtype, tuple[int, ...]]]:
    """The dtype and shape of every tensor of a file.

    Raises:
        CheckpointError: the file is damaged, or holds a dtype that tritensor does not have.
        OSError: it cannot be read.
    """
    with _opened(path) as file:
        return _describe(path, file)


@contextmanager
def _opened(path: Any) -> Iterator[Any]:
    """The file, opened by the library; a damaged one raises a CheckpointError that names it."""
    from safetensors import safe_open

    with open(path, "rb"):
        pass  # the library's own error for what cannot be opened does not name the file
    try:
        # Read, not mapped: when somebody truncates a mapped file, the system ends the process that reads it.
        with safe_open(os.fsdecode(path), framework="np", backend="pread") as file:
            yield file
    except CallersError as error:
        raise error.__cause__ from None  # type: ignore[misc]
    except (CheckpointError, OutOfMemoryError, MemoryError, Malformed):
        raise
    except Exception as error:  # of the library, or of NumPy for shapes that cannot exist
        raise _damaged(path, str(error)) from None


def _describe(path: Any, file: Any) -> dict[str, tuple[dtypes.dtype, tuple[int, ...]]]:
    found = {}
    for name in file.keys():  # noqa: SIM118 (it is no dict)
        part = file.get_slice(name)
        if part.get_dtype() not in NAMES:
            raise _damaged(path, f"tensor {name!r} has dtype {part.get_dtype()}, which tritensor does not have")
        found[name] = BY_NAME[NAMES[part.get_dtype()]], tuple(part.get_shape())
    return found


def _damaged(path: Path, fact: str) -> CheckpointError:
    return CheckpointError(
        "not a safetensors file that can be read", f"in {os.fsdecode(path)}", fact[:200], remedy="fetch it again"
    )
