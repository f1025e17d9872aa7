"""Checkpoint folders: `save` and `load` of `torch.distributed.checkpoint`, by any number of processes.

Each process writes its parts into a file of its own, one result of `torch.save` after the other, and the first writes
`.metadata` last, which says where each part is. A process that loads reads whichever parts overlap its own.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from math import prod
from typing import Any

from ..autograd.mode import no_grad
from ..distributed.checkpoint import DefaultLoadPlanner, DefaultSavePlanner, Stateful
from ..distributed.groups import default_group, is_initialized
from ..distributed.objects import all_gather_object
from ..distributed.process_group import ProcessGroup
from ..distributed.tensor.dtensor import DTensor
from ..errors import CheckpointError, UnsupportedError
from ..tensors import Tensor
from . import reader, writer
from .atomic import atomic_file
from .builder import Builder, StoredTensor
from .checkpoint import Checkpoint
from .location import restorer
from .malformed import Malformed, refusing
from .sharded_metadata import BYTES, META, METADATA, Record, index, info, pickled, read_metadata, tensor
from .source import TRUNCATED, Source
from .tensors import TensorBuilder

CheckpointException = CheckpointError  # PyTorch's name
Path = str | os.PathLike[str]
State = dict[str, Any]
Way = tuple[tuple[str | int, ...], Any, Any]  # to a value of a state dict: its path, its container, and its key in that
# What is read: the key, the place in the files, the way, and of tensors the shape there and the slices from and to.
Read = tuple[str, Record | None, Way, tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]
PARTS = re.compile(r"__\d+_(\d+)\.distcp")


class FileSystemWriter:
    """A folder to save to, which is made if there is none.

    Args:
        path: the folder.
        sync_files: whether the files are on the disk before `save` ends.
        overwrite: whether a checkpoint that the folder has is replaced; it raises otherwise.
        options, more: accepted, unused.
    """

    def __init__(
        self, path: Path, *options: object, sync_files: bool = True, overwrite: bool = True, **more: object
    ) -> None:
        self.path, self.sync_files, self.overwrite = os.fspath(path), sync_files, overwrite

    def _start(self) -> int:
        """Make the folder; a number that no file in it has."""
        os.makedirs(self.path, exist_ok=True)
        names = os.listdir(self.path)
        if ".metadata" in names and not self.overwrite:
            raise CheckpointError("Checkpoint already exists and self.overwrite=False.", f"in {self.path}")
        return max([int(found[1]) for name in names if (found := PARTS.fullmatch(name))], default=-1) + 1

    def _write(self, file: str, values: dict[Record, Any]) -> dict[Record, Record]:
        """Write values into a file; where each of them is."""
        places = {}
        with open(os.path.join(self.path, file), "xb") as stream:
            for part, value in values.items():
                if isinstance(value, Tensor):
                    value = _part(part.fqn, value)[0].clone()  # without the memory that it is a view of
                start = stream.tell()
                try:
                    writer.save(value.cpu() if isinstance(value, Tensor) else value, stream)
                except CheckpointError as error:
                    raise CheckpointError(f"save: {part.fqn} cannot be saved", str(error)) from None
                places[part] = info(file, start, stream.tell() - start)
            stream.flush()
            os.fsync(stream.fileno()) if self.sync_files else None
        return places

    def _finish(self, metadata: Record) -> None:
        """Let the folder hold what was written, and no files of earlier saves."""
        with atomic_file(os.path.join(self.path, ".metadata")) as stream:
            stream.write(pickled(metadata))
        used = {place.relative_path for place in metadata.storage_data.values()}
        for name in os.listdir(self.path):
            if PARTS.fullmatch(name) and name not in used:
                self._remove(name)

    def _remove(self, name: str) -> None:
        with suppress(OSError):
            os.unlink(os.path.join(self.path, name))


class FileSystemReader:
    """A folder to load from."""

    def __init__(self, path: Path) -> None:
        self.path = os.fspath(path)

    def read_metadata(self) -> Record:
        """What the folder says that it holds. Raises CheckpointError if it says nothing, or nothing that can be."""
        path = os.path.join(self.path, ".metadata")
        if not os.path.isfile(path):
            fact = f"there is no file {path}, which a save writes last"
            raise CheckpointError("load: this is no checkpoint, or one whose save did not end", fact)
        return read_metadata(path)

    @contextmanager
    def _opened(self, name: str, place: Record | None) -> Iterator[Checkpoint]:
        """One of the results of `torch.save` in a file, a part of the value of a key."""
        path = os.path.join(self.path, place.relative_path) if place else ""
        if place is None or not os.path.isfile(path):
            raise CheckpointError(f"load: a file is missing in {self.path}: {path}", f"it has a part of {name}")
        with open(path, "rb", buffering=0) as stream, refusing(f"{path}, key {name}"):
            stream.seek(place.offset)
            source = Source(stream, path)
            if source.size < place.length:
                fact = f"it has {place.offset + source.size} bytes, and {place.offset + place.length} are wanted"
                raise Malformed("the file ends too early", fact, remedy=TRUNCATED)
            source.size = place.length
            yield reader.open_checkpoint(source)


def save(
    state_dict: State,
    *,
    checkpoint_id: Path | None = None,
    storage_writer: FileSystemWriter | None = None,
    planner: DefaultSavePlanner | None = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
) -> Record:
    """Write a state dict into a folder, each process its own parts; any number of processes reads it, and PyTorch.

    What several processes have, one writes. A checkpoint that the folder has stays whole until the new one is.

    Args:
        state_dict: tensors, DTensors and what `torch.save` takes, in dicts and lists, and objects that are `Stateful`.
        checkpoint_id, storage_writer: the folder, one of the two.
        planner: whether nested values are saved one by one.
        process_group, no_dist: the processes that call this: all of the job, or this one alone.

    Raises:
        CheckpointError: a value cannot be saved, processes have different kinds of it, or another process failed.
        OSError: a file cannot be written.
    """
    storage, planner = _chosen(storage_writer, FileSystemWriter, checkpoint_id), _chosen(planner, DefaultSavePlanner)
    group = None if no_dist or not is_initialized() else default_group(process_group)
    rank, values = group.rank() if group else 0, {}

    def plan() -> tuple[int, State]:
        values.update(_flattened(_unwrapped(state_dict), planner.flatten_state_dict))
        return storage._start(), {name: (path, *_facts(name, at[key])) for name, (path, at, key) in values.items()}

    plans = _together(group, "save", plan)
    metadata, owners = _merged([each for _, each in plans])
    file = f"__{rank}_{max(number for number, _ in plans)}.distcp"
    own = {part: values[part.fqn][1][values[part.fqn][2]] for part, owner in owners.items() if owner == rank}
    try:
        for places in _together(group, "save", lambda: storage._write(file, own) if own else {}):
            metadata.storage_data.update(places)
        metadata.state["storage_meta"] = Record(META, {"checkpoint_id": storage.path, "save_id": str(uuid.uuid4())})
        _together(group, "save", lambda: None if rank else storage._finish(metadata))
    except BaseException:
        storage._remove(file)
        raise
    return metadata


def async_save(state_dict: State, **options: Any) -> Future[Record]:
    """`save`, at once, with its arguments: a future that is done."""
    future: Future[Record] = Future()
    future.set_result(save(state_dict, **options))
    return future


def load(
    state_dict: State,
    *,
    checkpoint_id: Path | None = None,
    storage_reader: FileSystemReader | None = None,
    planner: DefaultLoadPlanner | None = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
) -> None:
    """Read a folder into a state dict in place, on however many processes and whichever meshes it was saved.

    Each process reads what overlaps its own parts, twice: everything is checked before anything changes.

    Args:
        state_dict: tensors and DTensors keep their memory, other values are replaced, `Stateful` objects load theirs.
        checkpoint_id, storage_reader: the folder, one of the two.
        planner: whether keys that the checkpoint lacks stay as they are.
        process_group, no_dist: the processes that call this: all of the job, or this one alone.

    Raises:
        CheckpointError: a key is missing or of another shape, a file is missing or damaged, or another process failed.
        OSError: a file cannot be read.
    """
    storage, planner = _chosen(storage_reader, FileSystemReader, checkpoint_id), _chosen(planner, DefaultLoadPlanner)
    group = None if no_dist or not is_initialized() else default_group(process_group)
    state: State = {}
    reads: list[Read] = []
    loaded: State = {}

    def check() -> None:
        state.update(_unwrapped(state_dict))
        metadata = storage.read_metadata()
        for name, each in _flattened(state, planner.flatten_state_dict).items():
            if name in metadata.state_dict_metadata:
                reads.extend(_reads(name, each, metadata))
            elif not planner.allow_partial_load:
                remedy = "load a state dict without it, or with DefaultLoadPlanner(allow_partial_load=True)"
                raise CheckpointError(f"Missing key in checkpoint state_dict: {name}.", remedy=remedy)
        for name, place, (_, holder, key), sizes, _, _ in reads:
            with storage._opened(name, place) as checkpoint:
                if not isinstance(holder[key], Tensor):
                    loaded[name] = _built(checkpoint)
                    continue
                builder = Builder(checkpoint)
                found = checkpoint.read_object(builder)
                if type(found) is not StoredTensor or found.size != sizes:
                    raise Malformed(f"it is not the tensor of shape {tuple(sizes)} that .metadata says")
                checkpoint.verify(list(builder.storages.values()))

    @no_grad()
    def fill() -> None:
        for name, place, (_, holder, key), _, source, target in reads:
            if name in loaded:
                holder[key] = loaded[name]
                continue
            with storage._opened(name, place) as checkpoint:
                _part(name, holder[key])[0][target].copy_(_built(checkpoint)[source])

    _together(group, "load", check)
    _together(group, "load", fill)
    for key, value in state.items():
        if isinstance(state_dict[key], Stateful):
            state_dict[key].load_state_dict(value)
        else:
            state_dict[key] = value


def _together(group: ProcessGroup | None, what: str, work: Callable[[], Any]) -> list[Any]:
    """What `work` returns on each process. What it raises on one is raised there, and an error on the others."""
    result, error = None, None
    try:
        result = work()
    except Exception as caught:
        error = caught
    found: list[Any] = [(result, error and f"{type(error).__name__}: {error}")] * (group.size() if group else 1)
    if group is not None:
        all_gather_object(found, found[0], group)
    if error is not None:
        raise error
    for rank, (_, text) in enumerate(found):
        if text is not None:
            raise CheckpointError(f"{what}: process {rank} failed", text)
    return [each for each, _ in found]


def _chosen(given: object, kind: type[Any], *path: Any) -> Any:
    """The storage or planner that is given, or that of its kind which is not."""
    if given is None and path == (None,):
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
    if given is not None and type(given) is not kind:
        raise UnsupportedError(f"a {type(given).__name__} is not supported", remedy=f"use a {kind.__name__}")
    if given is not None and path not in ((), (None,)):
        vars(given)["path"] = os.fspath(path[0])
    return given or kind(*path)


def _built(checkpoint: Checkpoint) -> Any:
    return reader.build(TensorBuilder(checkpoint, restorer("cpu")), checkpoint)


def _unwrapped(state: State) -> State:
    """The state with the state dicts of its objects, which may gather: in one order on all processes."""
    return {key: state[key].state_dict() if isinstance(state[key], Stateful) else state[key] for key in sorted(state)}


def _flattened(state: State, nested: bool) -> dict[str, Way]:
    """The values of a state dict by their names: the keys and indices that lead to them, joined by dots."""
    found: dict[str, Way] = {}

    def visit(path: tuple[str | int, ...], holder: Any, key: str | int) -> None:
        value, name = holder[key], ".".join(map(str, path))
        if nested and _has_parts(value):
            for each in value if isinstance(value, Mapping) else range(len(value)):
                visit((*path, str(each) if isinstance(value, Mapping) else each), value, each)
        elif name in found:
            raise CheckpointError(f"duplicated flatten key {name}", remedy="give one of the two another key")
        else:
            found[name] = path, holder, key

    for key in state:
        visit((str(key),), state, key)
    return found


def _has_parts(value: object) -> bool:
    """True for a dict, and a list whose items are saved one by one: PyTorch's rule."""
    items: list[Any] = value if isinstance(value, list) else []
    return isinstance(value, Mapping) or any(isinstance(each, Tensor) or _has_parts(each) for each in items)


def _part(name: str, value: Tensor) -> tuple[Tensor, list[int], list[int]]:
    """This process's part of a tensor, where it begins, and its shape; empty if it is not of the mesh."""
    if value.is_sparse or value.is_meta:
        raise CheckpointError(f"{name} is a {'meta' if value.is_meta else 'sparse'} tensor", remedy="make it dense")
    if not isinstance(value, DTensor):
        return value.detach(), [0] * value.ndim, list(value.shape)
    part, (shape, offset) = value._local_tensor, value._spec.local()
    if value.device_mesh.get_coordinate() is None:
        return part, offset, [0] * len(shape)
    if list(part.shape) != shape or any(each.is_partial() for each in value.placements):
        fact = f"it is {list(part.shape)} of {value.shape}, as {value.placements}"
        raise CheckpointError(f"{name} is not divided, or is a term of a sum", fact, remedy="redistribute() it")
    return part, offset, shape


def _facts(name: str, value: object) -> tuple[Any, Any, Any]:
    """Of a tensor its dtype and shape, where this process's part begins, and the part's shape."""
    if not isinstance(value, Tensor):
        return None, None, ()
    _, offset, shape = _part(name, value)
    return (value.dtype, tuple(value.shape)), offset, shape


def _merged(plans: list[State]) -> tuple[Record, dict[Record, int]]:
    """What all processes save, and which writes each part: of those that have it the one with least to write."""
    kinds: State = {}
    holders: dict[Record, tuple[list[int], list[int]]] = {}
    for rank, plan in enumerate(plans):
        for name, (_, kind, offset, sizes) in plan.items():
            if kinds.setdefault(name, kind) != kind:
                raise CheckpointError(f"save: {name} is {kinds[name]} on a process, and {kind} on process {rank}")
            if prod(sizes):  # of what is no tensor too
                holders.setdefault(index(name, offset), (sizes, []))[1].append(rank)
    chunks: dict[str, list[Any]] = {name: [] for name in kinds}
    loads, owners = [0] * len(plans), {}
    for part, (sizes, ranks) in holders.items():
        owner = owners[part] = min(ranks, key=loads.__getitem__)
        loads[owner] += prod(sizes) * (kinds[part.fqn][0].itemsize if kinds[part.fqn] else 1)
        chunks[part.fqn].append((part.offset, sizes))
    for name, kind in kinds.items():
        there = sum(prod(sizes) for _, sizes in chunks[name])
        if kind and there != prod(kind[1]):
            raise CheckpointError(f"save: the processes have {there} of {prod(kind[1])} elements of {name}")
    entries = {name: tensor(kind[0], kind[1], chunks[name]) if kind else Record(BYTES) for name, kind in kinds.items()}
    paths = {name: path for plan in plans for name, (path, *_) in plan.items()}
    fields = {"state_dict_metadata": entries, "planner_data": paths, "storage_data": {}, "version": "1.0.0"}
    return Record(METADATA, fields), owners


def _reads(name: str, way: Way, metadata: Record) -> Iterator[Read]:
    """The parts of a checkpoint that a value is read from."""
    entry, own, places = metadata.state_dict_metadata[name], way[1][way[2]], metadata.storage_data
    if (entry.kind == BYTES) is isinstance(own, Tensor):
        raise CheckpointError(f"load: {name} is a {type(own).__name__}, and saved as a {entry.kind.split('.')[-1]}")
    if entry.kind == BYTES:
        yield name, places.get(index(name)), way, (), (), ()
        return
    if entry.size != own.shape:
        raise CheckpointError(f"Size mismatch between saved {entry.size} and current: {own.shape} for {name}")
    _, offset, shape = _part(name, own)
    missing = prod(shape)
    for chunk in entry.chunks if missing else ():
        starts = [max(pair) for pair in zip(offset, chunk.offsets, strict=True)]
        ends = [min(a + b, c + d) for a, b, c, d in zip(offset, shape, chunk.offsets, chunk.sizes, strict=True)]
        count = prod(max(end - start, 0) for start, end in zip(starts, ends, strict=True))
        missing -= count
        if count:
            begins = chunk.offsets, offset
            slices = [tuple(slice(a - c, b - c) for a, b, c in zip(starts, ends, each, strict=True)) for each in begins]
            yield name, places.get(index(name, chunk.offsets)), way, chunk.sizes, slices[0], slices[1]
    if missing:
        raise CheckpointError(f"load: the checkpoint lacks {missing} elements of {name}")
