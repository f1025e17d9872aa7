"""Capsules with anything in their fields: a tensor over memory that is there, or one of our errors."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tritensor as torch
from tritensor.errors import TritensorError

from . import capsules
from .capsules import Producer

MEMORY = np.zeros(4096, np.uint8)
NAMES = ["dltensor", "dltensor_versioned", "used_dltensor", "used_dltensor_versioned", "", "DLTENSOR", "other"]
sizes = st.one_of(st.integers(0, 3), st.sampled_from([-1, 1 << 31, (1 << 63) - 1, -(1 << 63)]))
steps = st.one_of(st.integers(0, 4), st.sampled_from([-1, 1 << 31, (1 << 63) - 1, -(1 << 63)]))


@st.composite
def producers(draw: Any) -> Producer:
    rank = draw(st.one_of(st.integers(0, 4), st.sampled_from([63, 64, 65])))
    shape = draw(st.one_of(st.none(), st.lists(sizes, min_size=rank, max_size=rank)))
    strides = draw(st.one_of(st.none(), st.lists(steps, min_size=rank, max_size=rank)))
    # a rank that is not that of the lists, where nothing of those may be read
    wild = draw(st.sampled_from([None, None, None, -1, 65, 1 << 30, -(1 << 31), (1 << 31) - 1]))
    version = draw(st.one_of(st.none(), st.tuples(st.sampled_from([1, 1, 1, 0, 2, 1 << 31]), st.integers(0, 9))))
    # the name says which structure it is, if it is one of the first two
    other = draw(st.one_of(st.none(), st.sampled_from(NAMES[2:])))
    return Producer(
        draw(st.sampled_from([None, MEMORY.ctypes.data, MEMORY.ctypes.data + 1, 1 << 62])),
        shape,
        strides,
        device=draw(st.tuples(st.sampled_from([1, 1, 1, 3, 2, 0, 7, -1, 1 << 30]), st.integers(-1, 2))),
        code=draw(st.one_of(st.integers(0, 6), st.integers(0, 255))),
        bits=draw(st.one_of(st.sampled_from([8, 16, 32, 64, 128]), st.integers(0, 255))),
        lanes=draw(st.sampled_from([1, 1, 1, 0, 2, 65535])),
        ndim=rank if wild is None else wild,
        offset=draw(st.sampled_from([0, 0, 8, 3, 1 << 62, (1 << 64) - 8])),
        version=version,
        flags=draw(st.integers(0, 7)),
        name=other,
        keeper=MEMORY,
    )


@pytest.mark.thorough
@settings(max_examples=150)
@given(producers(), st.sampled_from([None, False, True]), st.booleans())
def test_a_capsule_is_taken_or_refused(producer: Producer, copy: bool | None, directly: bool) -> None:
    called = len(producer.deleted)
    if producer.offset > 8 or any(each > 4 for each in (*(producer.shape or ()), *(producer.strides or ()))):
        copy = None  # nobody can know that no memory is there, and a copy would read it
    try:
        x = torch.from_dlpack(producer.capsule() if directly else producer, copy=copy)
    except TritensorError:
        pass
    else:
        reach = sum((n - 1) * step for n, step in zip(x.shape, x.stride(), strict=True)) if x.numel() else 0
        if reach * x.itemsize < 2048 and x.numel() < 4096 and producer.offset <= 8:
            assert not any(x.reshape(-1).tolist())
        del x
        gc.collect()
        assert len(producer.deleted) == called + 1
    capsules.alive.clear()


@settings(max_examples=50)
@given(st.data())
def test_what_is_right_is_taken(data: Any) -> None:
    """Every layout that fits its memory, element by element as NumPy finds it there."""
    shape = data.draw(st.lists(st.integers(0, 4), max_size=4))
    strides = data.draw(st.one_of(st.none(), st.lists(st.integers(0, 6), min_size=len(shape), max_size=len(shape))))
    memory = np.arange(512, dtype=np.int32)
    x = torch.from_dlpack(
        Producer(memory.ctypes.data, shape, strides, code=0, version=data.draw(st.sampled_from([None, (1, 0)])))
    )
    wanted = np.ndarray(shape, np.int32, memory, 0, None if strides is None else [4 * step for step in strides])
    assert x.tolist() == wanted.tolist() and tuple(x.shape) == tuple(shape)
