"""Running products, extremes and logarithms along a dimension: values, indices, gradients, errors."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import tritensor as torch
from tritensor.kernels.reduction import running, scan

from ..needs import needs_triton

nan, inf = math.nan, math.inf


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_triton)])
def test_of_equal_elements_the_last_is_found_and_nan_stays(device):
    with torch.cuda.simulate(devices=1):
        for x, largest, smallest in (
            ([1.0, nan, 2.0, nan, 3.0], [0, 1, 1, 3, 3], [0, 1, 1, 3, 3]),
            ([2.0, 2.0, 0.0, 2.0, 0.0], [0, 1, 1, 3, 3], [0, 1, 2, 2, 4]),
            ([-inf, -inf, inf, inf, 1.0], [0, 1, 2, 3, 3], [0, 1, 1, 1, 1]),
        ):
            given = torch.tensor(x, device=device)
            found = given.cummax(0)
            assert found.indices.tolist() == largest and given.cummin(0).indices.tolist() == smallest
            np.testing.assert_array_equal(found.values.cpu().numpy(), np.maximum.accumulate(np.float32(x)))
    assert type(found).__name__ == "cummax" and isinstance(found, torch.return_types.cummax)
    values, indices = torch.tensor([[3, 1], [2, 5]]).cummin(0)
    assert values.tolist() == [[3, 1], [2, 1]] and indices.tolist() == [[0, 0], [1, 0]]
    assert torch.tensor([True, False]).cummax(0).indices.tolist() == [0, 0]
    assert torch.tensor(3.0).cummax(-1) == (torch.tensor(3.0), torch.tensor(0))


def brute(x, dim, weights):
    """The gradient of the running products, from the definition: the product of the others, without x[k]."""
    found = np.zeros_like(x)
    for k, j in itertools.product(range(len(x)), repeat=2):
        if j >= k:
            found[k] += weights[j] * np.prod(np.delete(x[: j + 1], k))
    return found


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[needs_triton, pytest.mark.slow])])
@pytest.mark.parametrize("x", [[2.0, 3.0, -1.0, 0.5], [2.0, 0.0, 3.0, 4.0], [0.0, 2.0, 0.0, 3.0], [5.0]], ids=str)
def test_the_gradient_of_a_running_product_beside_zeros(x, device):
    weights = [1.0, -2.0, 3.0, 0.5][: len(x)]
    with torch.cuda.simulate(devices=1):
        for create in (False, True):
            leaf = torch.tensor(x, dtype=torch.float64, device=device, requires_grad=True)
            w = torch.tensor(weights, dtype=torch.float64, device=device, requires_grad=True)
            (found,) = torch.autograd.grad((leaf.cumprod(0) * w).sum(), leaf, create_graph=create)
            np.testing.assert_allclose(found.detach().cpu().numpy(), brute(np.array(x), 0, weights), atol=1e-12)
        second = torch.autograd.grad(found.sum(), leaf, allow_unused=True)[0]
        assert torch.autograd.gradgradcheck(lambda x: x.cumprod(0), leaf) and (len(x) == 1 or second is not None)


def test_infinite_and_nan_elements_get_nan_as_the_gradient_of_a_running_product():
    for x, wanted in (([1.0, nan, 2.0], [nan, nan, nan]), ([2.0, inf, 3.0], [inf, nan, inf])):
        for create in (False, True):
            leaf = torch.tensor(x, requires_grad=True)
            (found,) = torch.autograd.grad(leaf.cumprod(0).sum(), leaf, create_graph=create)
            np.testing.assert_array_equal(found.detach().numpy(), wanted)
    empty = torch.empty(0, requires_grad=True)
    for function in (torch.cumprod, torch.logcumsumexp):
        assert torch.autograd.grad(function(empty, 0).sum(), empty)[0].shape == (0,)


def test_running_logarithms_of_sums():
    x = torch.tensor([-inf, 1.0, inf, 2.0], requires_grad=True)
    found = x.logcumsumexp(0)
    assert found.tolist() == [-inf, 1.0, inf, inf]
    found.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [nan, 1.0, nan, 0.0])
    large = torch.tensor([1000.0, 1000.0, -1000.0], dtype=torch.float64, requires_grad=True)
    found = large.logcumsumexp(0)
    np.testing.assert_allclose(found.detach().numpy(), 1000 + np.log([1, 2, 2]))
    found.sum().backward()
    np.testing.assert_allclose(large.grad.numpy(), [2, 1, 0])
    z = torch.tensor([1 + 1j, -2j, 0.5, -inf], dtype=torch.complex128)
    np.testing.assert_allclose(z[:3].logcumsumexp(0).exp().numpy(), np.cumsum(np.exp(z[:3].numpy())))
    assert z.logcumsumexp(0)[3] == z.logcumsumexp(0)[2]
    leaf = z[:3].clone().requires_grad_()
    found, wanted = (
        torch.autograd.grad(y.abs().sum(), leaf)[0].numpy() for y in (leaf.logcumsumexp(0), leaf.exp().cumsum(0).log())
    )
    np.testing.assert_allclose(found, wanted)


def test_in_place_and_into():
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = x * 1
    assert y.cumprod_(0) is y and y.tolist() == [2.0, 6.0]
    y.sum().backward()
    assert x.grad.tolist() == [4.0, 2.0]
    assert torch.tensor([1, 2]).cumsum_(0).tolist() == [1, 3]
    with pytest.raises(RuntimeError, match="result type Long can't be cast"):
        torch.tensor([True]).cumprod_(0).cumsum_(0)
    values, indices = torch.empty(2), torch.empty(2, dtype=torch.int64)
    out = torch.cummax(torch.tensor([1.0, 5.0]), 0, out=(values, indices))
    assert out.values is values and indices.tolist() == [0, 1]
    assert torch.cumprod(torch.tensor([2, 3]), 0, out=torch.empty(2)).tolist() == [2.0, 6.0]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        ("x.cumprod()", TypeError, 'cumprod() missing 1 required positional arguments: "dim"'),
        ("x.cummax(2)", IndexError, "Dimension out of range"),
        ("x.int().logcumsumexp(0)", NotImplementedError, "\"logcumsumexp\" not implemented for 'Int'"),
        ("x.to(torch.complex64).cummin(0)", NotImplementedError, "\"cummin\" not implemented for 'ComplexFloat'"),
        ("torch.cumprod([1], 0)", TypeError, "cumprod(): argument "),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error) as raised:
        eval(call, {"torch": torch, "x": torch.ones(2)})
    assert str(raised.value).startswith(words)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_long_rows_are_summed_in_blocks(dtype):
    x = np.random.default_rng(0).standard_normal((70, 1024)).astype(dtype)
    x[3, 500], x[4, 40], x[5, 7] = inf, nan, -inf
    x[5, 900] = inf
    wide = x.astype(np.float64)
    tolerance = 1e-5 if dtype is np.float32 else 1e-12
    with np.errstate(invalid="ignore"):
        for reverse in (False, True):
            wanted = np.flip(np.cumsum(np.flip(wide, 1), 1), 1) if reverse else np.cumsum(wide, 1)
            found = running.cumsum(torch.from_numpy(x), dim=1, reverse=reverse)
            np.testing.assert_allclose(found.numpy(), wanted, atol=tolerance * 100)
    for dim in (0, 1):
        values, indices = torch.from_numpy(x[6:]).cummax(dim)
        np.testing.assert_array_equal(values.numpy(), np.maximum.accumulate(x[6:], dim))
        np.testing.assert_array_equal(np.take_along_axis(x[6:], indices.numpy(), dim), values.numpy())


@pytest.mark.sampled(1)
@needs_triton
@pytest.mark.parametrize("name", ["cumprod", "cummax", "logcumsumexp", "recurrence"])
def test_long_rows_are_scanned_in_parts(name, monkeypatch):
    modes = []
    launch = scan.launch
    monkeypatch.setattr(
        scan, "launch", lambda *args, **options: (modes.append(options["name"]), launch(*args, **options))
    )
    operator = getattr(running, name)
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.8, 1.2, (2, 60)).round(1) for _ in operator.inputs]
    wanted = operator(*map(torch.from_numpy, arrays), dim=1)
    with torch.cuda.simulate(devices=1), torch.settings.block(4):
        found = operator(*[torch.from_numpy(array).cuda() for array in arrays], dim=1)
        for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (found, wanted)), strict=True):
            np.testing.assert_allclose(one.cpu().numpy(), other.numpy(), rtol=1e-12)
    assert modes[0] == f"{name}_totals" and modes[-1] == f"{name}_parts"
