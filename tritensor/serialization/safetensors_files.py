"""`.safetensors` files, through the safetensors library: each holds only a flat dict of named tensors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import dtypes
from ..devices import device
from ..errors import CheckpointError, DtypeError, explain
from ..memory import copies
from ..tensor import Tensor, wrap
from .atomic import atomic_path
from .builder import StorageRecord, StorageType
from .storages import contiguous_host

__all__ = ["is_safetensors_name", "load_safetensors", "read_header", "save_safetensors"]

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
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
}
BY_NAME = {entry.name: entry for entry in dtypes.ALL}


def is_safetensors_name(f: Any) -> bool:
    """Whether `f` is a path whose name ends in `.safetensors`."""
    return isinstance(f, (str, os.PathLike)) and os.fsdecode(f).endswith(".safetensors")


def save_safetensors(obj: Any, path: Any) -> None:
    """Write a dict of tensors; tensors that share memory are each written in full, as the format has no sharing.

    Raises:
        CheckpointError: `obj` is not a dict of text to tensors.
        DtypeError: a tensor of a dtype that the format does not have (complex128).
    """
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    if not isinstance(obj, dict):
        raise CheckpointError(
            explain(
                f"save: a .safetensors file holds a dict of tensors, not a {type(obj).__name__}",
                remedy="save a state_dict(), or use a name that ends in .pt",
            )
        )
    arrays = {}
    for name, value in obj.items():
        if type(name) is not str or not isinstance(value, Tensor):
            raise CheckpointError(
                explain(
                    f"save: a .safetensors file holds tensors under text keys only, and obj[{name!r:.80}] is a "
                    f"{type(value).__name__}",
                    remedy="take it out, or use a name that ends in .pt",
                )
            )
        if value.dtype.name not in NAMES.values():
            raise DtypeError(
                explain(
                    f"save: .safetensors has no dtype {value.dtype.name}",
                    f"obj[{name!r}] has it",
                    remedy="convert it, or use a name that ends in .pt",
                )
            )
        arrays[name] = contiguous_host(value)
    with atomic_path(path) as name:
        try:
            save_file(arrays, name, metadata={"format": "pt"})
        except SafetensorError as error:
            raise CheckpointError(
                explain(f"save: {os.fsdecode(path)} could not be written", str(error)[:200])
            ) from None


def load_safetensors(path: Any, restore: Callable[[StorageRecord], device]) -> dict[str, Tensor]:
    """Read the tensors of a file, one at a time, to the device that `restore` returns for storages of the CPU."""
    loaded = {}
    with _opened(path) as file:
        for name, (dtype, _) in _describe(path, file).items():
            place = restore(StorageRecord(name, 0, "cpu", StorageType("Untyped", dtype, False)))
            array = file.get_tensor(name)
            loaded[name] = wrap(array if place.type == "cpu" else copies.from_host(array, place))
    return loaded


def read_header(path: Any) -> dict[str, tuple[dtypes.dtype, tuple[int, ...]]]:
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
    from safetensors import SafetensorError, safe_open

    with open(path, "rb"):
        pass  # the library's own error for what cannot be opened does not name the file
    try:
        with safe_open(os.fsdecode(path), framework="np") as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise _damaged(path, str(error)) from None


def _describe(path: Any, file: Any) -> dict[str, tuple[dtypes.dtype, tuple[int, ...]]]:
    found = {}
    for name in file.keys():  # noqa: SIM118 (it is no dict)
        part = file.get_slice(name)
        if part.get_dtype() not in NAMES:
            raise _damaged(path, f"tensor {name!r} has dtype {part.get_dtype()}, which tritensor does not have")
        found[name] = BY_NAME[NAMES[part.get_dtype()]], tuple(part.get_shape())
    return found


def _damaged(path: Any, fact: str) -> CheckpointError:
    return CheckpointError(
        explain(
            "not a safetensors file that can be read", f"in {os.fsdecode(path)}", fact[:200], remedy="fetch it again"
        )
    )
