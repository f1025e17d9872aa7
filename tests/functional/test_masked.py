"""`torch.masked`: the elements where a mask holds are reduced as if there were no others."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import tritensor as torch
from tritensor import masked
from tritensor.autograd import gradcheck, gradgradcheck
from tritensor.errors import ArgumentError, RangeError, ShapeError, UnsupportedError

from ..needs import needs_triton

X = np.random.default_rng(0).standard_normal((3, 5))
HELD = np.array([[1, 0, 1, 1, 0], [0, 1, 1, 1, 1], [1, 1, 0, 0, 1]], bool)
REDUCTIONS = {
    "sum": np.sum,
    "prod": np.prod,
    "mean": np.mean,
    "amax": np.max,
    "amin": np.min,
    "norm": np.linalg.norm,
    "var": lambda x: np.var(x, ddof=1),
    "std": lambda x: np.std(x, ddof=1),
    "logsumexp": lambda x: np.log(np.exp(x).sum()),
}


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=needs_triton)])
def place(request):
    if request.param == "cpu":
        yield lambda x: torch.from_numpy(x)
    else:
        with torch.cuda.simulate(devices=1):
            yield lambda x: torch.from_numpy(x).cuda()


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(place, name):
    reduce, call = REDUCTIONS[name], getattr(masked, name)
    rows = [reduce(row[held]) for row, held in zip(X, HELD, strict=True)]
    found = call(place(X), dim=1, mask=place(HELD), keepdim=True)
    np.testing.assert_allclose(found.cpu().numpy()[:, 0], rows, rtol=1e-12)
    np.testing.assert_allclose(float(call(place(X), mask=place(HELD))), reduce(X[HELD]), rtol=1e-12)
    np.testing.assert_allclose(float(call(place(X))), reduce(X.reshape(-1)), rtol=1e-12)


def test_functions_along_a_dimension(place):
    x, mask = place(X), place(HELD)
    shares = np.where(HELD, np.exp(X), 0)
    wanted = shares / shares.sum(1, keepdims=True)
    np.testing.assert_allclose(masked.softmax(x, 1, mask=mask).cpu().numpy(), wanted, rtol=1e-12)
    np.testing.assert_allclose(masked.softmin(-x, 1, mask=mask).cpu().numpy(), wanted, rtol=1e-12)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(masked.log_softmax(x, 1, mask=mask).cpu().numpy(), np.log(wanted), rtol=1e-12)
    sums = masked.cumsum(x, -1, mask=mask).cpu().numpy()
    np.testing.assert_allclose(sums, np.cumsum(X * HELD, 1), rtol=1e-12)
    length = np.sqrt((X * X * HELD).sum(0))
    np.testing.assert_allclose(masked.normalize(x, 2.0, 0, mask=mask).cpu().numpy(), X * HELD / length, rtol=1e-12)


def test_places_of_extremes_and_a_mask_that_broadcasts():
    x, mask = torch.tensor([[3.0, 1, 2], [0, 5, 4]]), torch.tensor([True, False, True])
    assert masked.argmax(x, 1, mask=mask, dtype=torch.int64).tolist() == [0, 2]
    assert masked.argmin(x, 1, mask=mask).tolist() == [2, 0]
    assert masked.argmin(x, 1, mask=mask).dtype is torch.float32
    assert masked.sum(x, (0, 1), mask=mask).item() == 9


def test_reductions_of_nothing():
    x, nothing = torch.tensor([[1, 2]], dtype=torch.int32), torch.tensor([False])
    assert masked.amax(x, 1, mask=nothing).item() == -(1 << 31)
    assert masked.sum(x, 1, mask=nothing).dtype is torch.int64
    assert masked.prod(x, 1, mask=nothing, dtype=torch.int32).item() == 1
    assert masked.mean(x.float(), 1, mask=nothing).isnan().all()
    assert masked.norm(x.float(), -float("inf"), 1, mask=nothing).item() == float("inf")


def test_each_operand_of_logaddexp_has_a_mask():
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    first, second = torch.tensor([True, False]), torch.tensor([False, True])
    assert masked.logaddexp(x, y, input_mask=first, other_mask=second).tolist() == [1, 4]


@pytest.mark.parametrize("options", [{"unbiased": False}, {"correction": 0}])
def test_variance_by_the_number_of_elements(options):
    found = masked.var(torch.from_numpy(X), 1, mask=torch.from_numpy(HELD), **options)
    np.testing.assert_allclose(found.numpy(), [np.var(row[held]) for row, held in zip(X, HELD, strict=True)])
    assert masked.var(torch.tensor([1, 3])).dtype is torch.float32


@pytest.mark.parametrize("name", ["prod", "mean", "var", "softmax"])
def test_gradients_of_both_orders(name):
    x, mask = torch.from_numpy(X).requires_grad_(), torch.from_numpy(HELD)
    assert gradcheck(lambda x: getattr(masked, name)(x, 1, mask=mask), (x,))
    assert gradgradcheck(lambda x: getattr(masked, name)(x, 1, mask=mask), (x,))


def test_names_and_signatures_are_shown():
    assert masked.softmin.__name__ == "softmin"
    assert list(inspect.signature(torch.masked.amax).parameters) == ["input", "dim", "keepdim", "dtype", "mask"]
    assert masked.amax.__doc__.startswith("The maximum of the elements where `mask` holds.")


ONES, HOLDS = torch.ones(2, 3), torch.ones(3, dtype=torch.bool)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: masked.sum(ONES, 0, mask=HOLDS.reshape(1, 1, 3)), RangeError, "_input_mask expected broadcastable"),
        (lambda: masked.sum(ONES, 0, mask=HOLDS[:2]), ShapeError, "expand"),
        (lambda: masked.sum(ONES, 2, mask=HOLDS), RangeError, r"Dimension out of range \(expected .*\[-2, 1\]"),
        (lambda: masked.sum(ONES, (0, 0)), ShapeError, "dim=0 appears multiple times"),
        (lambda: masked.sum(ONES, mask=[True]), ArgumentError, "a mask has to be a Tensor"),
        (lambda: masked.amax(ONES.bool(), 0, mask=HOLDS), UnsupportedError, "identity of amax on .*bool input"),
        (lambda: masked.mean(ONES.int(), 0), ValueError, r"mean\(\): Could not infer output dtype. Input dtype"),
        (lambda: masked.mean(ONES, 0, dtype=torch.int32), ValueError, "Optional dtype must be either"),
        (lambda: masked.var(ONES, 0, True, correction=1), AssertionError, "Only one of unbiased and correction"),
    ],
)
def test_refusals(call, kind, words):
    with pytest.raises(kind, match=words):
        call()
