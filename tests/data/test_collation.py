"""Collation of examples into batches: by type and by container, what is refused, and beside PyTorch."""

from __future__ import annotations

from collections import OrderedDict, UserDict
from types import MappingProxyType

import numpy as np
import pytest

import tritensor as torch
from tritensor.utils import data
from tritensor.utils.data import default_collate

from .sources import Point

# ---- collation ------------------------------------------------------------------------------------------------


def test_collation_by_type():
    batch = default_collate(
        [{"a": 1, "b": (2.0, "x"), "c": [np.float32(1), b"y"]}, {"a": 2, "b": (3.0, "z"), "c": [2, b"w"]}]
    )
    assert (batch["a"].dtype, batch["a"].tolist()) == (torch.int64, [1, 2])
    assert (batch["b"][0].dtype, batch["b"][0].tolist()) == (torch.float64, [2, 3])
    assert batch["b"][1] == ("x", "z")
    assert isinstance(batch["c"], list)
    assert default_collate([True, False]).dtype is torch.bool
    assert default_collate([np.float32(1), np.float32(2)]).dtype is torch.float32
    assert default_collate([np.ones(2), np.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    assert default_collate([torch.ones(2), torch.zeros(2)]).shape == (2, 2)
    point = default_collate([Point(1, 2), Point(3, 4)])
    assert isinstance(point, Point)
    assert point.x.tolist() == [1, 3]


def test_collation_keeps_container_types():
    assert isinstance(default_collate([OrderedDict(a=1), OrderedDict(a=2)]), OrderedDict)
    assert isinstance(default_collate([UserDict(a=1), UserDict(a=2)]), UserDict)
    assert isinstance(default_collate([MappingProxyType({"a": 1})]), MappingProxyType)
    assert isinstance(default_collate([range(2), range(2)]), list)

    class Stubborn(dict):
        def __copy__(self):
            raise TypeError("no")

    assert type(default_collate([Stubborn(a=1)])) is dict


def test_collation_refuses():
    with pytest.raises(TypeError, match="default_collate: batch must contain tensors, numpy arrays, numbers"):
        default_collate([object()])
    with pytest.raises(TypeError, match="found <U1"):
        default_collate([np.array(["a"])])
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        default_collate([[1, 2], [1]])


def test_collation_can_be_taught():
    class Money:
        def __init__(self, amount):
            self.amount = amount

    class Coins(Money):
        pass

    def join(batch, *, collate_fn_map=None):
        return sum(money.amount for money in batch)

    assert data.collate([(Money(1), 1), (Coins(2), 1)], collate_fn_map={Money: join, int: lambda b, **_: len(b)}) == [
        3,
        2,
    ]
    assert data.collate([Coins(1), Coins(2)], collate_fn_map={Money: join}) == 3


def test_conversion_of_single_examples():
    converted = data.default_convert({"a": np.ones(2), "b": [np.int32(3), "x"], "c": (1, Point(np.zeros(1), None))})
    assert torch.is_tensor(converted["a"])
    assert converted["b"][0].dtype is torch.int32
    assert converted["b"][1] == "x"
    assert isinstance(converted["c"], list)
    assert torch.is_tensor(converted["c"][1].x)
    assert converted["c"][1].y is None
    strings = np.array(["a"])
    assert data.default_convert(strings) is strings
    tensor = torch.ones(1)
    assert data.default_convert(tensor) is tensor


# ---- against PyTorch ------------------------------------------------------------------------------------------


@pytest.mark.peer
def test_collation_equals_pytorchs():
    peer = pytest.importorskip("torch")
    examples = [
        [1, 2, 3],
        [1.5, 2.5],
        [True, False],
        [np.float32(1), np.float32(2)],
        [np.arange(3), np.arange(3)],
        [(1, 2.0), (3, 4.0)],
        [[1, "a"], [2, "b"]],
        [{"x": np.ones(2), "y": {"z": 1}}, {"x": np.zeros(2), "y": {"z": 2}}],
        [Point(1, b"a"), Point(2, b"b")],
    ]

    def plain(value):
        if isinstance(value, dict):
            return {key: plain(entry) for key, entry in value.items()}
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value), [plain(entry) for entry in value]
        if isinstance(value, tuple):
            return type(value), [plain(entry) for entry in value]
        return (str(value.dtype).rpartition(".")[2], value.tolist()) if hasattr(value, "tolist") else value

    for batch in examples:
        assert plain(default_collate(batch)) == plain(peer.utils.data.default_collate(batch)), batch
