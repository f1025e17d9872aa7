"""Adding an elementwise operator is one declaration of 20 lines or fewer and nothing else.

The test declares one, runs the derived tests on it, and removes it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tritensor as torch
from tritensor import dtypes
from tritensor.kernels.elementwise.family import Elementwise, elementwise
from tritensor.kernels.reduction.family import reduction, spread
from tritensor.operator import registry
from tritensor.rules import FLOAT, REAL_FLOAT

from . import test_operators as derived

TRITON = importlib.util.find_spec("triton") is not None


# declaration
@elementwise(FLOAT)
def bounded(x):
    """x / (1 + |x|): between -1 and 1."""
    return x / (1 + np.abs(x))


@bounded.kernel
def _(x):
    return x / (1 + tl.abs(x))  # noqa: F821 - the language that every body is given


@bounded.gradient
def _(grad, x):
    d = 1 + x.abs()
    return grad / (d * d)


# end


@pytest.fixture(autouse=True, scope="module")
def removed_at_the_end() -> Iterator[None]:
    registry["bounded"] = bounded
    yield
    del registry["bounded"]
    for name in ("bounded", "bounded_"):
        delattr(torch.Tensor, name)


# Other modules' tests are made from the registry when they are collected: it holds the operator in this module only.
del registry["bounded"]


def test_the_declaration_is_short() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    declaration = text.partition("# declaration\n")[2].partition("# end\n")[0]
    assert 0 < len([line for line in declaration.splitlines() if line.strip()]) <= 20


def test_it_is_everything_that_an_operator_is() -> None:
    x = torch.tensor([-3.0, 0.0, 1.0], requires_grad=True)
    y = x.bounded()
    assert y.tolist() == [-0.75, 0.0, 0.5] and y.grad_fn.name() == "BoundedBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [0.0625, 1.0, 0.25]
    assert isinstance(registry["bounded"], Elementwise)
    assert torch.arange(3).bounded().dtype is torch.float32


@pytest.mark.skipif(not TRITON, reason="simulated kernels need Triton")
@pytest.mark.parametrize("dtype", derived.dtypes_of(bounded), ids=derived.case_id)
def test_kernel_matches_reference(dtype: dtypes.dtype) -> None:
    derived.test_kernel_matches_reference(bounded, dtype)


@pytest.mark.skipif(not TRITON, reason="simulated kernels need Triton")
def test_kernel_in_every_layout_and_on_special_values() -> None:
    derived.test_kernel_takes_every_layout(bounded)
    for dtype in (dtypes.float32, dtypes.float64):
        derived.test_special_values(bounded, dtype)


@pytest.mark.parametrize("order", [1, 2])
def test_gradient(order: int) -> None:
    derived.test_gradient_matches_finite_difference(bounded, order)


def test_in_place() -> None:
    derived.test_in_place_equals_out_of_place(bounded)


@pytest.mark.skipif(not TRITON, reason="compiling needs Triton")
def test_it_compiles_to_vector_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    from . import test_operators_compile as compiled

    compiled.test_every_body_compiles_without_spills(bounded, ("cuda", 90), monkeypatch)
    compiled.test_contiguous_elements_move_in_vectors(bounded, dtypes.float32, monkeypatch)


def test_a_reduction_brings_its_samples() -> None:
    """Its family knows how it is called: the derived tests need nothing but the declaration."""

    @reduction(REAL_FLOAT)
    def sum_of_squares(x, *, dim=None, keepdim=False):
        """The sum of the squares along `dim`."""
        return np.add.reduce(x * x, dim, keepdims=keepdim)

    del registry["sum_of_squares"]
    sum_of_squares.gradient(lambda grad, x, dim, keepdim: 2 * x * spread(grad, x.shape, dim, keepdim))
    derived.test_gradient_matches_finite_difference(sum_of_squares, 1)
    derived.test_gradient_matches_finite_difference(sum_of_squares, 2)
