"""The steps of optimizers on the CPU, in place: a rule's passes (`passes.py`) over blocks that stay in a cache.

On CUDA devices one launch changes all parameters (`multi_tensor.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...host.threads import get_num_threads, in_pieces
from ...runtime.call import Call
from ...tensors import Tensor
from .multi_tensor import check_entry, count_changes
from .passes import BLOCKS, kind_of, passes

ndarray = np.ndarray

# Elements that the CPU steps work on at a time: for a large parameter, five arrays of 256 kB that stay in a cache from
# pass to pass. On a core with 1 MB of its own, Adam on 784 x 128 weights took 266 us in chunks of 4,096, 204 of 8,192
# and 145 of 65,536; on 1024 x 1024 weights 3.1, 2.4 and 1.9 ms.
CHUNK = 65536

_FLOAT32, _FLOAT64, _MASK = np.dtype(np.float32), np.dtype(np.float64), np.dtype(bool)

# The passes of a rule for the numbers that some of its operations may be left out for.
_runs: dict[Any, Callable[..., None]] = {}


# ---- in place -------------------------------------------------------------------------------------------------


class Step:
    """One step of an optimizer: an operator and its numbers, to be called with each parameter in turn.

    Parameters that have made equally many steps share one, so what follows from the numbers is worked out once.
    """

    __slots__ = ("constants", "operator", "run", "values")

    def __init__(self, operator: Any, values: Sequence[float]) -> None:
        self.operator, self.values = operator, values
        key = operator, kind_of(values)
        if key not in _runs:
            _runs[key] = passes(operator.body, len(operator.inputs), values)
        self.run = _runs[key]
        self.constants: dict[Any, tuple[list[ndarray], list[ndarray], list[ndarray]]] = {}

    @property
    def numbers(self) -> dict[str, float]:
        """The numbers of the operator by their names."""
        return dict(zip(self.operator.metadata, self.values, strict=True))

    def in_place(self, param: Tensor, grad: Tensor, state: Sequence[Tensor], large: Large) -> bool:
        """Make the step where the in-place function takes all arrays as they are, and say whether it did.

        That requires contiguous host arrays of one shape and one dtype that NumPy computes in. The step of a large
        parameter is left to `large.run()`. The caller silences floating-point warnings.
        """
        first = param._data
        if first.__class__ is not ndarray:
            return False
        kind, shape = first.dtype, first.shape
        if kind is not _FLOAT32 and kind is not _FLOAT64:
            return False
        changed = (param, *state)
        arrays = [first, grad._data, *[tensor._data for tensor in state]]
        for array in arrays:
            if array.__class__ is not ndarray or array.dtype is not kind or array.shape != shape:
                return False
            flags = array.flags
            if not flags.c_contiguous or not (flags.writeable or array is arrays[1]):
                return False
        found = self.constants.get(kind)
        if found is None:
            constants = [np.array(value, kind) for value in self.values]
            found = self.constants[kind] = _scratch.of(kind), _scratch.of(_MASK), constants
        if first.size <= CHUNK:
            self.run(arrays if len(shape) == 1 else [array.reshape(-1) for array in arrays], *found)
        else:
            large.add(self.run, [array.reshape(-1) for array in arrays], found[2])
        count_changes(changed)
        return True

    def __call__(self, param: Tensor, grad: Tensor, state: Sequence[Tensor], large: Large) -> None:
        """Change a parameter on the CPU and its `state` in place; `Tables.step` does it on CUDA devices.

        `large` as for `in_place`.

        Raises:
            ShapeError: the gradient or a state tensor has another shape than the parameter.
            DeviceMismatchError: they are on different devices.
            Nothing has changed then.
        """
        if self.in_place(param, grad, state, large):
            return
        operator, tensors = self.operator, (param, grad, *state)
        check_entry(operator, tensors)
        call = Call(operator, tensors, self.numbers)
        call.compute, call.results = operator.resolve_dtypes(call)
        arrays = [tensor._host_array() for tensor in tensors]
        computed = operator.on_host(call)(*arrays)
        for array, new in zip([arrays[0], *arrays[2:]], computed, strict=True):
            array[...] = new
        for tensor in (param, *state):
            tensor._count_change()


class Large:
    """The steps of large parameters, gathered so that threads share them, CHUNK elements at a time."""

    def __init__(self) -> None:
        self.chunks: list[tuple[Callable[..., None], list[ndarray], list[ndarray]]] = []
        self.written: list[ndarray] = []

    def add(self, run: Callable[..., None], arrays: list[ndarray], constants: list[ndarray]) -> None:
        """Leave `run(arrays, ...)` to `self.run`."""
        self.written += [arrays[0], *arrays[2:]]
        for start in range(0, arrays[0].size, CHUNK):
            self.chunks.append((run, [array[start : start + CHUNK] for array in arrays], constants))

    def run(self) -> None:
        """Make the steps: those of one array of memory after the other where parameters share it."""

        def steps(start: int, stop: int) -> None:
            for run, arrays, constants in self.chunks[start:stop]:
                run(arrays, _scratch.of(arrays[0].dtype), _scratch.of(_MASK), constants)

        # two chunks take 0.1 to 0.4 ms, as long as sharing them might
        if len(self.chunks) < 3 or get_num_threads() == 1 or self.overlap():
            steps(0, len(self.chunks))
        else:
            in_pieces(steps, len(self.chunks), 1)

    def overlap(self) -> bool:
        """True if any of the arrays that are written overlap."""
        places = sorted((array.__array_interface__["data"][0], array.nbytes) for array in self.written)
        return any(place + size > after for (place, size), (after, _) in pairwise(places))


class _Scratch(threading.local):
    """Blocks of CHUNK elements per dtype and thread, made when first needed."""

    def __init__(self) -> None:
        self.blocks: dict[Any, list[ndarray]] = {}

    def of(self, kind: np.dtype) -> list[ndarray]:
        if kind not in self.blocks:  # memory that no rule needs is never touched
            self.blocks[kind] = [aligned_zeros(CHUNK, kind) for _ in range(BLOCKS)]
        return self.blocks[kind]


def aligned_zeros(shape: tuple[int, ...] | int, kind: np.dtype) -> ndarray:
    """Zeros that begin at a cache line. NumPy aligns to 16 bytes only, and where the averages and the scratch memory
    begin at a line, Adam's twelve passes over 784 x 128 weights take 130 us and not 141."""
    count = int(np.prod(shape))
    raw = np.zeros(count * kind.itemsize + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + count * kind.itemsize].view(kind).reshape(shape)


_scratch = _Scratch()
