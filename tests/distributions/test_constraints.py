"""Constraints: which events are inside, those that are joined of others, and names that take keywords."""

from __future__ import annotations

from typing import Any

import pytest

import tritensor as torch
from tritensor.distributions import constraints as c

UNIT = [[1.0, 0.0], [0.6, 0.8]]


@pytest.mark.parametrize(
    ("constraint", "inside", "outside"),
    [
        (c.lower_triangular, [[-1.0, 0.0], [2.0, 3.0]], [[1.0, 2.0], [0.0, 1.0]]),
        (c.corr_cholesky, UNIT, [[1.0, 0.0], [0.6, 0.9]]),
        (c.corr_cholesky, [[1.0, 0.0], [0.6, 0.800002]], [[1.0, 0.0], [0.6, 0.800004]]),
        (c.corr_cholesky, UNIT, [[1.0, 0.0], [0.6, -0.8]]),
        (c.symmetric, [[1.0, 2.0], [2.0, 1.0]], [[1.0, 2.0], [3.0, 1.0]]),
        (c.symmetric, [[1e3, 500.0], [500.001, 1e3]], [[1e3, 500.0], [500.1, 1e3]]),
        (c.positive_semidefinite, [[1.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, -1.0]]),
        (c.positive_semidefinite, [[1.0, 0.0], [0.0, 0.0]], [[1.0, 2.0], [0.0, 1.0]]),
        (c.positive_definite, [[2.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]]),
        (c.positive_definite, [[2.0, 1.0], [1.0, 2.0]], [[1.0, 0.5], [0.0, 1.0]]),
        (c.cat([c.positive, c.real], 0), [1.0, -1.0], None),
    ],
)
def test_what_is_inside(constraint: Any, inside: Any, outside: Any) -> None:
    assert bool(constraint.check(torch.tensor(inside)).all())
    if outside is not None:
        assert constraint.check(torch.tensor(outside)).tolist() is False


def test_squares() -> None:
    assert c.square.check(torch.ones(3, 2, 2)).tolist() == [True] * 3
    assert (
        c.square.check(torch.ones(3, 1, 2)).tolist() == [False] * 3 == c.symmetric.check(torch.ones(3, 1, 2)).tolist()
    )
    assert c.positive_definite.check(torch.ones(1, 1, 2)).tolist() == [False]


def test_regions_that_are_joined() -> None:
    value = torch.tensor([[1.0, 0.5, 2.0], [-1.0, 0.5, 2.0]])
    joined = c.cat([c.positive, c.unit_interval], dim=1, lengths=[1, 2])
    assert joined.check(value).tolist() == [[True, True, False], [False, True, False]] and not joined.is_discrete
    piled = c.stack([c.positive, c.boolean], dim=0)
    assert piled.check(value[:, :2]).tolist() == [[True, True], [False, False]] and piled.is_discrete
    with pytest.raises(AssertionError, match="dim 2 out of range for value with"):
        c.stack([c.real], dim=2).check(torch.ones(1))


def test_bounds_by_name() -> None:
    assert c.interval(lower_bound=1, upper_bound=2).check(torch.tensor([0.5, 1.5])).tolist() == [False, True]
    assert c.interval(1, upper_bound=2).check(torch.tensor([2.5])).tolist() == [False]
    for arguments, named in (((), {}), ((1, 2, 3), {}), ((1,), {"lower_bound": 2}), ((1,), {"nothing": 2})):
        with pytest.raises(TypeError, match="takes lower_bound and upper_bound"):
            c.interval(*arguments, **named)


def test_regions_that_depend() -> None:
    class Mine:
        @c.dependent_property(is_discrete=True, event_dim=1)
        def support(self) -> Any:
            return c.real

    kept: Any = Mine.__dict__["support"]
    assert Mine().support is c.real and c.is_dependent(kept) and kept.is_discrete and kept.event_dim == 1
    made = c.dependent(event_dim=2)
    assert made.event_dim == 2 and made(is_discrete=True).event_dim == 2 and c.dependent(is_discrete=True).is_discrete
    with pytest.raises(NotImplementedError, match=r"\.is_discrete cannot be determined statically"):
        assert made.is_discrete
    with pytest.raises(ValueError, match="Cannot determine validity"):
        made.check(torch.ones(1))
