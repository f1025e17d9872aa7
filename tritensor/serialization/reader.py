"""`load`: read a checkpoint, to the devices that it was saved from or that the user names."""

from __future__ import annotations

import os
from typing import Any

from ..errors import ArgumentError
from .checkpoint import Checkpoint, ZipCheckpoint
from .legacy import LegacyCheckpoint
from .location import restorer
from .malformed import Malformed, refusing
from .safe import get_safe_globals
from .safetensors_files import is_safetensors_name, load_safetensors
from .source import Source, open_source
from .tensors import TensorBuilder


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool = True, mmap: bool | None = None
) -> Any:
    """Load a file that `save` or PyTorch's `torch.save` wrote. Nothing that a file chooses is executed.

    Args:
        f: a path, or a readable and seekable binary file object. A name that ends in `.safetensors` is read as such.
        map_location: where tensors go: None (where they were saved from), a device, its name, a CUDA ordinal, a dict of
            saved names to names, or a callable `(storage, location)` that returns `storage.cuda(i)`, `storage` or None.
            Tensors are read straight to that place.
        pickle_module: None; accepted for PyTorch's signature.
        weights_only: False to read objects of classes too, as whole modules: of classes that the program has imported,
            or that are the library's. Their constructors do not run, and a file that asks for more is refused. True
            for data, and for what `torch.serialization.add_safe_globals` allows; what it allows is called.
        mmap: True to map the file instead of reading it: tensors on the CPU are read as they are used, and checksums
            are not compared. The file then has to stay as it is: where another program truncates it, the system ends
            this process with SIGBUS when it uses what is gone. False and None copy everything, and what becomes of
            the file afterwards does not matter; so does True for `.safetensors` files and for other devices.

    Returns:
        The object, its tensors on their devices; tensors that shared memory share it again.

    Raises:
        CheckpointError: damaged, refused, or not a checkpoint; the message names the file and the entry. Also, with
            PyTorch's words, tensors of a device that is not there: pass `map_location="cpu"`.
        ArgumentError: a `pickle_module`, an unknown kind of `map_location`.
        OSError: the file cannot be opened or read.

    >>> import io, tritensor
    >>> file = io.BytesIO()
    >>> tritensor.save({"weight": tritensor.ones(2), "epoch": 3}, file)
    >>> _ = file.seek(0)
    >>> tritensor.load(file, map_location="cpu")
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    _check_arguments(f, pickle_module, mmap)
    name = source_name(f)
    try:
        restore = restorer(map_location)
        if is_safetensors_name(f):
            return load_safetensors(f, restore)
        with open_source(f) as source, refusing(name):
            checkpoint = open_checkpoint(source)
            if mmap and not checkpoint.can_map:
                raise Malformed(
                    "mmap can only be used with files saved with `torch.save(..., _use_new_zipfile_serialization=True)",
                    remedy="load it without mmap=True",
                )
            builder = TensorBuilder(checkpoint, restore, source.map() if mmap and not checkpoint.swaps else None)
            return build(builder, checkpoint, weights_only)
    except Malformed as error:
        raise error.as_error(name) from None


def build(builder: TensorBuilder, checkpoint: Checkpoint, weights_only: bool = True) -> Any:
    """The object of a checkpoint, its tensors made and filled by `builder`."""
    if not weights_only or get_safe_globals():
        from .objects import Objects  # which knows classes of Python's library that few files have

        builder.objects = Objects(not weights_only)
    loaded = checkpoint.read_object(builder)
    builder.fill()
    return loaded


def open_checkpoint(source: Source) -> Checkpoint:
    """Find out which format a checkpoint file has."""
    head = source.read_at(0, min(source.size, 512))
    if head.startswith(b"PK"):
        return ZipCheckpoint(source)
    if head.startswith(b"\x80"):
        return LegacyCheckpoint(source)
    if not head:
        raise Malformed("Ran out of input: the file is empty", remedy="fetch or write it again")
    if head[257:262] == b"ustar":
        raise Malformed(
            "Cannot use ``weights_only=True`` with files saved in the legacy .tar format.",
            remedy="load it with a PyTorch of today and save it again",
        )
    if head[8:9] == b"{":
        raise Malformed(
            "Invalid magic number; corrupt file?",
            "it looks like a safetensors file",
            remedy="give it a name that ends in .safetensors",
        )
    raise Malformed("Invalid magic number; corrupt file?", "this is not a PyTorch checkpoint")


def source_name(f: object) -> str:
    """A file's name for messages."""
    return str(f if isinstance(f, (str, os.PathLike)) else getattr(f, "name", f"<{type(f).__name__}>"))


def _check_arguments(f: object, pickle_module: object, mmap: bool | None) -> None:
    if pickle_module is not None:
        raise ArgumentError(
            "Can not safely load weights when explicit pickle_module is specified",
            "tritensor has one unpickler, which executes nothing",
            remedy="leave pickle_module out",
        )
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
