"""Collating a list of examples to a batch, and moving a batch of any nesting to a device."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from ...functional import stack
from ...functional.creation.creation import as_tensor, tensor
from ...tensors import Tensor
from ...types.dtypes import float64

np_str_obj_array_pattern = re.compile(r"[SaUO]")  # of arrays without numbers; libraries look for them with PyTorch's
_REFUSED = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def _rebuild_mapping(example: Mapping[Any, Any], entries: dict[Any, Any]) -> Any:
    """A mapping of the example's type with other values (and its other attributes, if it can be copied)."""
    try:
        if isinstance(example, MutableMapping):
            made = copy.copy(example)
            made.update(entries)
            return made
        return type(example)(entries)  # type: ignore[call-arg]
    except TypeError:
        return entries


def _rebuild_sequence(example: Sequence[Any], entries: list[Any]) -> Any:
    """A sequence of the example's type with other elements; a type that cannot be made that way becomes a list."""
    try:
        if isinstance(example, MutableSequence):
            made = copy.copy(example)
            for position, entry in enumerate(entries):
                made[position] = entry
            return made
        return type(example)(entries)  # type: ignore[call-arg]
    except TypeError:
        return entries


def _is_text(value: object) -> bool:
    return isinstance(value, (str, bytes))


def _is_objects(array: np.ndarray[Any, Any]) -> bool:
    """Strings and Python objects: arrays that cannot become tensors."""
    return array.dtype.kind in "OSUaV"


def default_convert(data: object) -> Any:
    """NumPy arrays and scalars in `data`, however nested, as tensors; everything else as it is.

    >>> import numpy as np
    >>> default_convert({"a": np.array([0, 1]), "b": "text"})
    {'a': tensor([0, 1]), 'b': 'text'}
    """
    if isinstance(data, Tensor):
        return data
    if isinstance(data, np.ndarray):
        return data if _is_objects(data) else as_tensor(data)
    if isinstance(data, np.generic) and not _is_text(data):
        return as_tensor(data)
    if isinstance(data, Mapping):
        return _rebuild_mapping(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(entry) for entry in data))
    if isinstance(data, tuple):
        return [default_convert(entry) for entry in data]
    if isinstance(data, Sequence) and not _is_text(data):
        return _rebuild_sequence(data, [default_convert(entry) for entry in data])
    return data


def collate_tensor_fn(batch: list[Tensor] | tuple[Tensor, ...], *, collate_fn_map: object = None) -> Tensor:
    """The tensors of a batch, stacked."""
    return stack(list(batch), 0)


def _collate_arrays(batch: Any, *, collate_fn_map: dict[Any, Any] | None = None) -> Any:
    if _is_objects(batch[0]):
        raise TypeError(_REFUSED.format(batch[0].dtype))
    return collate([as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def _collate_scalars(batch: Sequence[Any], *, collate_fn_map: dict[Any, Any] | None = None) -> Tensor:
    return as_tensor(np.asarray(batch))


def _collate_floats(batch: tuple[float, ...], *, collate_fn_map: dict[Any, Any] | None = None) -> Tensor:
    return tensor(list(batch), dtype=float64)


def _collate_integers(batch: Sequence[Any], *, collate_fn_map: dict[Any, Any] | None = None) -> Tensor:
    return tensor(list(batch))


def _collate_text(batch: Sequence[Any], *, collate_fn_map: dict[Any, Any] | None = None) -> Any:
    return batch


# By type of the first example; a type that is not a key is looked up by isinstance, in this order. Add an entry to make
# `default_collate` support another type.
default_collate_fn_map: dict[type | tuple[type, ...], Callable[..., Any]] = {
    Tensor: collate_tensor_fn,
    np.ndarray: _collate_arrays,
    (np.bool_, np.number, np.object_): _collate_scalars,
    float: _collate_floats,
    int: _collate_integers,
    str: _collate_text,
    bytes: _collate_text,
}


def collate(batch: Any, *, collate_fn_map: dict[type | tuple[type, ...], Callable[..., Any]] | None = None) -> Any:
    """Turn a list of examples into one example whose leaves have a leading batch dimension.

    Args:
        batch: the examples; the first one's structure (mappings, named tuples, sequences) is the result's.
        collate_fn_map: for a type of leaf, the function `(batch, *, collate_fn_map)` that joins its values.

    Raises:
        RuntimeError: sequences of different lengths.
        TypeError: a leaf of a type that has no entry.
    """
    first = batch[0]
    joins = collate_fn_map or {}
    join = joins.get(type(first))
    if join is None:
        join = next((joins[kind] for kind in joins if isinstance(first, kind)), None)
    if join is not None:
        return join(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        joined = {key: collate([each[key] for each in batch], collate_fn_map=collate_fn_map) for key in first}
        return _rebuild_mapping(first, joined)
    if isinstance(first, Sequence):
        lengths = {len(each) for each in batch}
        if len(lengths) > 1 and not hasattr(first, "_fields"):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=False)]
        if hasattr(first, "_fields"):
            return type(first)(*columns)
        return columns if isinstance(first, tuple) else _rebuild_sequence(first, columns)
    raise TypeError(_REFUSED.format(type(first)))


def default_collate(batch: Sequence[Any]) -> Any:
    """The batch of a list of examples: tensors are stacked, numbers become a tensor, text stays a list.

    >>> default_collate([(1, 2.5), (3, 4.5)])
    [tensor([1, 3]), tensor([2.5000, 4.5000], dtype=tritensor.float64)]

    Raises:
        RuntimeError: sequences of different lengths.
        TypeError: an example of a type that cannot be batched.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def map_leaves(data: object, change: Callable[[Any], Any]) -> Any:
    """`data` with `change` applied to everything in it that is not a container; containers keep their types.

    >>> map_leaves({"a": (1, [2, "text"])}, lambda leaf: leaf * 2)
    {'a': (2, [4, 'texttext'])}
    """
    if isinstance(data, Tensor) or _is_text(data):
        return change(data)
    if isinstance(data, Mapping):
        return _rebuild_mapping(data, {key: map_leaves(value, change) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(map_leaves(entry, change) for entry in data))
    if isinstance(data, tuple):
        return tuple(map_leaves(entry, change) for entry in data)
    if isinstance(data, Sequence):
        return _rebuild_sequence(data, [map_leaves(entry, change) for entry in data])
    return change(data)
