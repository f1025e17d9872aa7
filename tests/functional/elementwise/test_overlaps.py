"""A tensor that is changed in place by itself in views that overlap, above the sizes at which work is cut into blocks:
each block reads what was there before the whole call, not what another block has written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as torch

pytestmark = pytest.mark.usefixtures("same_number_of_threads")

SIDE = 1300  # 1.7 million elements
Change = Callable[[Any, Callable[[Any], Any]], Any]

# The same statement for both: `copy` makes NumPy read from a copy of the operand, and tritensor from the view itself.
CHANGES: dict[str, Change] = {
    "shifted up": lambda x, copy: x[1:].__iadd__(copy(x[:-1])),
    "shifted down": lambda x, copy: x[:-1].__iadd__(copy(x[1:])),
    "shifted by an element": lambda x, copy: x.reshape(-1)[1:].__iadd__(copy(x.reshape(-1)[:-1])),
    "shifted by a block": lambda x, copy: x.reshape(-1)[65_536:].__isub__(copy(x.reshape(-1)[:-65_536])),
    "columns to the right": lambda x, copy: x[:, 1:].__imul__(copy(x[:, :-1])),
    "columns to the left": lambda x, copy: x[:, :-1].__imul__(copy(x[:, 1:])),
    "transposed": lambda x, copy: x.__iadd__(copy(x.T)),
    "a row of its own": lambda x, copy: x.__isub__(copy(x[600])),
    "a column of its own": lambda x, copy: x.__isub__(copy(x[:, 600:601])),
    "an element of its own": lambda x, copy: x.__imul__(copy(x[600, 600])),
    "every other one": lambda x, copy: x[:650].__iadd__(copy(x[::2])),
    "itself": lambda x, copy: x.__imul__(copy(x)),
    "assigned": lambda x, copy: x.__setitem__(slice(1, None), copy(x[:-1])),
    "assigned transposed": lambda x, copy: x.__setitem__(slice(None), copy(x.T)),
}


@pytest.mark.sampled(11)
@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", CHANGES)
def test_overlapping_views_are_read_before_they_are_written(name: str, dtype: str, number: int) -> None:
    torch.set_num_threads(number)
    array = np.random.default_rng(0).integers(1, 9, (SIDE, SIDE)).astype(dtype)
    x = torch.from_numpy(array.copy())
    CHANGES[name](x, lambda view: view)
    CHANGES[name](array, np.copy)
    np.testing.assert_array_equal(x.numpy(), array)


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_several_operands_may_overlap_the_target(dtype: Any, number: int) -> None:
    torch.set_num_threads(number)
    array = np.random.default_rng(0).integers(1, 9, (SIDE, SIDE)).astype(np.float32)
    x = torch.from_numpy(array).to(dtype)
    before = x.clone()
    wanted = before[1:-1] + before[:-2] * before[2:]
    x[1:-1].addcmul_(x[:-2], x[2:])
    assert torch.equal(x[1:-1], wanted)
    assert torch.equal(x[0], before[0]) and torch.equal(x[-1], before[-1])
    y = before.clone()
    y[:, 1:].lerp_(y[:, :-1], y[:, 1:])
    assert torch.equal(y[:, 1:], torch.lerp(before[:, 1:], before[:, :-1], before[:, 1:]))


@pytest.mark.parametrize("name", ["exp", "sigmoid", "gelu"])
def test_an_operator_of_several_passes_may_write_over_its_operand(name: str) -> None:
    if name == "gelu":
        change = lambda x: x.copy_(torch.nn.functional.gelu(x))  # noqa: E731
    else:
        change = lambda x: getattr(x, f"{name}_")()  # noqa: E731
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((SIDE, SIDE), np.float32))
    wanted = getattr(torch.nn.functional if name == "gelu" else torch, name)(x.clone())
    view = x.t()
    change(view)
    assert torch.equal(x, wanted)
