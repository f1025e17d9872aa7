"""`python -m tritensor inspect FILE`: what is in a checkpoint, and whether `load` would accept it, without reading its
tensors. It also removes the temporary files that killed saves left beside it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..drivers.allocator import readable
from ..errors import TritensorError
from ..tensors.printing import aligned
from .allowlist import Refused
from .builder import Builder, StoredTensor
from .legacy import LegacyCheckpoint
from .malformed import Malformed, refusing
from .reader import open_checkpoint
from .safetensors_files import is_safetensors_name, read_header
from .source import open_source
from .temporaries import remove_abandoned

WIDEST_NAME = 60
LONGEST_NAME = 1000  # a path of names is not kept longer, or the paths could take far more memory than the file
_CONTAINERS = (dict, list, tuple, set, frozenset)
Row = tuple[str, str, str, str, str]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its result is 0 if `load` would accept the file, 1 if it would refuse it, 2 if it cannot be
    opened."""
    parser = argparse.ArgumentParser(prog="python -m tritensor inspect", description=__doc__)
    parser.add_argument("file", help="a checkpoint of tritensor or PyTorch, or a .safetensors file")
    chosen = parser.parse_args(arguments)
    try:
        lines, refused = inspect(chosen.file)
    except OSError as error:
        print(f"{chosen.file}: {error.strerror or error}", file=sys.stderr)
        return 2
    try:
        for line in lines:
            print(line)
    except BrokenPipeError:  # `... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1 if refused else 0


def inspect(path: Any) -> tuple[list[str], bool]:
    """The lines that describe a file, and whether `load` would refuse it. Temporary files that killed saves left beside
    it are removed.

    Raises:
        OSError: the file cannot be opened.
    """
    removed = remove_abandoned(path)
    swept = [f"removed {removed} temporary files of killed saves"] if removed else []
    size = os.path.getsize(path)
    notes: list[str] = []
    refused: list[Malformed] = []
    try:
        if is_safetensors_name(path):
            kind, rows = "safetensors", _safetensors_rows(path)
        else:
            kind, rows, notes, refused = _describe(path)
    except TritensorError as error:
        return [f"{path}: {readable(size)}", *swept, "", "would be refused:", *_indented(str(error))], True
    lines = [f"{path}: {kind}, {readable(size)}", "", *_table(rows), *notes, *swept, ""]
    if not refused:
        return [*lines, "load() reads it"], False
    lines.append("would be refused:")
    for each in refused:
        lines += _indented(str(each.as_error(str(path))))
    return lines, True


def _describe(path: object) -> tuple[str, list[Row], list[str], list[Malformed]]:
    refused: list[Malformed] = []
    try:
        with open_source(path) as source, refusing(str(path)):
            checkpoint = open_checkpoint(source)
            kind = "PyTorch before 1.6" if isinstance(checkpoint, LegacyCheckpoint) else "PyTorch zip archive"
            builder = Builder(checkpoint)
            made = checkpoint.read_object(builder, refused)
            rows = [_row(name, value) for name, value in _walk(made)]
            try:
                checkpoint.verify(list(builder.storages.values()))
            except Malformed as error:
                refused.append(error)
    except Malformed as error:
        raise error.as_error(str(path)) from None
    storages = builder.storages.values()
    total = sum(storage.nbytes for storage in storages)
    note = f"{len(storages)} storages, {readable(total)}" if storages else "no tensors"
    return kind, rows, ["", note], refused


def _walk(root: object) -> Iterator[tuple[str, Any]]:
    """Every value that is not a container, with its path; a container that occurs twice is visited once."""
    stack, seen = [("", root)], set()
    while stack:
        name, value = stack.pop()
        if isinstance(value, dict):
            parts = [(f"{name}.{_shown(key)}" if name else _shown(key), part) for key, part in value.items()]
        elif isinstance(value, (list, tuple, set, frozenset)) and not hasattr(value, "numel"):
            parts = [(f"{name}[{index}]", part) for index, part in enumerate(value)]
        else:
            yield name, value
            continue
        if not parts or id(value) in seen:
            yield name, value
            continue
        seen.add(id(value))
        stack.extend((part_name[:LONGEST_NAME], part) for part_name, part in reversed(parts))


def _row(name: str, value: object) -> Row:
    if isinstance(value, StoredTensor):
        kind = f"{value.dtype.name}{' parameter' if value.is_parameter else ''}"
        return name, kind, str(list(value.size)), value.storage.location, readable(value.nbytes)
    if isinstance(value, Refused):
        return name, f"{value.name} (refused)", "", "", ""
    if isinstance(value, (np.ndarray, np.generic)):
        return name, type(value).__name__, str(list(value.shape)), "", readable(value.nbytes)
    return name, _shown(value, repr)[:40], "", "", ""


def _shown(value: object, text: Callable[[Any], str] = str) -> str:
    """The text of a key or a value; of what has parts or many digits, its kind and size."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"int of {value.bit_length()} bits"
    if isinstance(value, _CONTAINERS) and value:
        if (
            len(value) > 100
            or isinstance(value, (dict, list, set))
            or any(isinstance(part, _CONTAINERS) for part in value)
        ):
            return f"{type(value).__name__} of {len(value)}"
        return f"({', '.join(_shown(part, repr) for part in value)})"
    if isinstance(value, (bytes, bytearray, str)):
        return text(value[:LONGEST_NAME])
    return text(value)


def _safetensors_rows(path: object) -> list[Row]:
    rows = []
    for name, (dtype, shape) in read_header(path).items():
        nbytes = dtype.itemsize
        for length in shape:
            nbytes *= length
        rows.append((name, dtype.name, str(list(shape)), "cpu", readable(nbytes)))
    return rows


def _table(rows: list[Row]) -> list[str]:
    cells: list[Row] = [("name", "dtype or value", "shape", "device", "size")]
    cells += [tuple("".join(c if c.isprintable() else "?" for c in cell) for cell in row) for row in rows]  # type: ignore[misc]
    return aligned(cells, right=[4], widest=WIDEST_NAME)


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]
