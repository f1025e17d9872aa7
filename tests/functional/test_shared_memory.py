"""Tensors in memory that processes share: each sees what any of them writes."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import pytest

import tritensor as torch
from tritensor.errors import UnsupportedError
from tritensor.functional.creation import sharing


def add_in_process(x: Any, parameter: Any, done: Any) -> None:
    with torch.no_grad():
        x[1] += 10
        parameter += 1
    done.put((x.is_shared(), parameter.requires_grad, type(parameter).__name__))


@pytest.mark.thorough
@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_processes_see_what_any_of_them_writes(start: str) -> None:
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {start} here")
    context: Any = multiprocessing.get_context(start)
    model = torch.nn.Linear(2, 1, bias=False).share_memory()
    before = model.weight.tolist()
    x, done = torch.zeros(2, 3).t().contiguous().share_memory_(), context.Queue()
    process = context.Process(target=add_in_process, args=(x[1:], model.weight, done))
    process.start()
    assert done.get(timeout=60) == (True, True, "Parameter")
    process.join()
    assert x.tolist() == [[0, 0], [0, 0], [10, 10]]
    assert model.weight.tolist()[0] == pytest.approx([each + 1 for each in before[0]])


def travels() -> Path:
    x = torch.arange(6.0).reshape(2, 3).clone()
    assert not x.is_shared() and x.share_memory_() is x and x.is_shared() and x.share_memory_() is x
    path = Path(sharing._reduced(x)[1][1])
    assert path.exists() and path.stat().st_size == 24
    other = pickle.loads(ForkingPickler.dumps(x[:, 1:]))
    other[0, 0] = 9
    assert x.tolist() == [[0, 9, 2], [3, 4, 5]] and other.is_shared()
    whole = pickle.loads(pickle.dumps(x))
    whole[0, 0] = 7
    assert x[0, 0] == 0 and not whole.is_shared()
    plain = torch.ones(1)
    assert pickle.loads(ForkingPickler.dumps(plain)).tolist() == [1]
    return path


def test_what_travels_is_the_name_of_the_memory() -> None:
    path = travels()
    gc.collect()
    assert not path.exists()
    assert torch.zeros(0).share_memory_().numel() == 0
    kept = torch.ones(2).share_memory_()
    path = Path(sharing._reduced(kept)[1][1])
    sharing._remove(str(path), os.getpid() + 1)  # a process that has it by a fork leaves it
    assert path.exists()


def test_views_are_refused_and_devices_share_already() -> None:
    x = torch.zeros(4)
    view = x[1:]
    with pytest.raises(UnsupportedError, match="other tensors or arrays are views of the same memory"):
        x.share_memory_()
    with pytest.raises(UnsupportedError, match="views of the same memory"):
        view.share_memory_()
    with torch.cuda.simulate(devices=1):
        there = torch.zeros(2, device="cuda")
        assert there.share_memory_() is there and there.is_shared()
    assert not torch.empty(2, device="meta").share_memory_().is_shared()
