"""Digits of float32 results where the mean is many deviations: as many as float64 gives of the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor import distributed, settings
from tritensor.nn.sync_batch_normalization import _Synchronized

from ..needs import needs_triton

F = torch.nn.functional
MEANS = (0.0, 1e4, 1e5, 1e6)
REDUCED = [
    ((7,), (0,)),
    ((5000,), (0,)),
    ((40, 30), (0,)),
    ((40, 30), (1,)),
    ((300, 70), (0, 1)),
    ((9000, 3), (0,)),
    ((3, 9000), (1,)),
    ((12, 50, 30), (1,)),
    ((12, 50, 30), (0, 2)),
    ((256, 300), (0,)),
    ((600_000, 1), (0,)),
    ((8, 16, 70, 70), (0, 2, 3)),
]


def _numbers(shape, mean, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) + mean).astype(np.float32)


def _layouts(array, device):
    """Tensors of the same numbers: row-major, column-major, and every second of the last dimension."""
    order = tuple(range(array.ndim))[::-1]
    yield torch.from_numpy(array).to(device)
    yield torch.from_numpy(np.ascontiguousarray(array.transpose(order))).to(device).permute(order)
    yield torch.from_numpy(np.repeat(array, 2, -1)).to(device)[..., ::2]


def _worst(found, truth):
    return float(np.max(np.abs(found.detach().cpu().numpy().astype(np.float64) - truth) / np.abs(truth)))


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize(("shape", "dims"), REDUCED)
def test_variances_and_deviations_on_the_cpu(shape, dims, mean):
    _check_spread(shape, dims, mean, "cpu", 2e-7)


def _check_spread(shape, dims, mean, device, most):
    array = _numbers(shape, mean)
    wide = array.astype(np.float64)
    for x in _layouts(array, device):
        assert _worst(x.var(dims), wide.var(dims, ddof=1)) < most
        assert _worst(x.std(dims, correction=0, keepdim=True), wide.std(dims, keepdims=True)) < most
    var, average = torch.var_mean(x, dims)
    assert _worst(var, wide.var(dims, ddof=1)) < most
    assert average.shape == var.shape


def test_variances_of_equal_and_of_sorted_numbers_and_of_one_that_stands_out():
    for numbers in (np.full(70_000, 1e38), np.arange(70_000.0) + 1e6, np.r_[1e6, np.zeros(69_999)]):
        array = numbers.astype(np.float32)
        truth = array.astype(np.float64).var(ddof=1)
        for x in (torch.from_numpy(array), torch.from_numpy(array).reshape(-1, 1)):
            assert float(x.var(0)) == pytest.approx(truth, rel=2e-7)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_variances_of_halves_are_rounded_once(kind):
    x = (torch.from_numpy(_numbers((6, 4000), 100)) * 8).to(kind)
    truth = torch.from_numpy(x.double().numpy().var(1, ddof=1)).to(kind)
    assert x.var(1).tolist() == truth.tolist()


def _normalized(x, dims, weight, bias):
    """Values and gradients of the sum of squares, in float64 by hand."""
    grad_of = np.cos(np.arange(x.size)).reshape(x.shape)
    centred = x - x.mean(dims, keepdims=True)
    rstd = 1 / np.sqrt((centred**2).mean(dims, keepdims=True) + 1e-5)
    normal = centred * rstd
    scaled = grad_of * weight
    inner = scaled - scaled.mean(dims, keepdims=True) - normal * (scaled * normal).mean(dims, keepdims=True)
    return normal * weight + bias, inner * rstd, grad_of, grad_of * normal


NORMS = {
    "planes": ((6, 4, 9, 9), (0, 2, 3), (1, 4, 1, 1), lambda x, w, b: F.batch_norm(x, None, None, w, b, True)),
    "columns": ((700, 4), (0,), (1, 4), lambda x, w, b: F.batch_norm(x, None, None, w, b, True)),
    "instances": ((6, 4, 9, 9), (2, 3), (1, 4, 1, 1), lambda x, w, b: F.instance_norm(x, None, None, w, b)),
    "groups": ((6, 4, 81), (1, 2), (1, 4, 1), lambda x, w, b: F.group_norm(x, 1, w, b)),
    "rows": ((50, 40), (1,), (1, 40), lambda x, w, b: F.layer_norm(x, (40,), w, b)),
}


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("name", NORMS)
def test_norms_on_the_cpu(name, mean):
    _check_norm(name, mean, "cpu", 1e-6)


def _check_norm(name, mean, device, most):
    shape, dims, by, run = NORMS[name]
    array, weight, bias = _numbers(shape, mean), *(_numbers(by, 1, seed) for seed in (1, 2))
    truth = _normalized(*(each.astype(np.float64) for each in (array,)), dims, weight, bias)
    x, w, b = (torch.tensor(each, device=device, requires_grad=True) for each in (array, weight.ravel(), bias.ravel()))
    out = run(x, w, b)
    out.backward(torch.tensor(truth[2].astype(np.float32), device=device))
    others = tuple(axis for axis, size in enumerate(by) if size == 1)
    expected = (truth[0], truth[1], truth[3].sum(others))
    for found, value in zip((out, x.grad, w.grad), expected, strict=True):
        found = found.detach().cpu().numpy()
        assert np.linalg.norm(found - value) / np.linalg.norm(value) < most


def test_batch_norms_of_several_processes_exchange_all_digits(monkeypatch):
    """Two processes with one batch each: of this one, and of what the other would send."""
    mine, other = _numbers((300, 3), 1e6), _numbers((200, 3), 1e6, 1)
    wide = other.astype(np.float64)

    def gather(found, local, group=None):
        found[0], found[1] = local, torch.tensor(np.r_[wide.mean(0), wide.var(0), 200.0])

    monkeypatch.setattr(distributed, "get_world_size", lambda group=None: 2)
    monkeypatch.setattr(distributed, "all_gather_into_tensor", gather)
    running = torch.zeros(3), torch.ones(3)
    found = _Synchronized.apply(torch.from_numpy(mine), None, None, *running, 1e-5, 1.0, None)
    every = np.r_[mine, other].astype(np.float64)
    truth = (mine - every.mean(0)) / np.sqrt(every.var(0) + 1e-5)
    assert np.linalg.norm(found.numpy() - truth) / np.linalg.norm(truth) < 1e-6
    assert _worst(running[1], every.var(0, ddof=1)) < 3e-7


def test_running_statistics_have_the_digits_of_the_variance():
    array = _numbers((400, 3), 1e6)
    running = torch.zeros(3), torch.zeros(3)
    F.batch_norm(torch.from_numpy(array), *running, training=True, momentum=1.0)
    assert _worst(running[1], array.astype(np.float64).var(0, ddof=1)) < 3e-7


def test_given_statistics_far_from_zero_do_not_cancel():
    array, mean, var = _numbers((50, 3, 4), 1e6), np.full(3, 1e6, np.float32), np.ones(3, np.float32)
    found = F.batch_norm(*(torch.from_numpy(each) for each in (array, mean, var)))
    np.testing.assert_allclose(found.numpy(), (array.astype(np.float64) - 1e6) / np.sqrt(1 + 1e-5), atol=1e-6)


@pytest.mark.parametrize("mean", MEANS)
def test_covariances_correlations_and_gradients_of_variances(mean):
    _check_covariances(mean, "cpu")


def _check_covariances(mean, device):
    array = _numbers((5, 300), mean)
    x, wide = torch.tensor(array, device=device, requires_grad=True), array.astype(np.float64)
    assert np.abs(torch.cov(x).detach().cpu().numpy() - np.cov(wide)).max() < 1e-6
    assert np.abs(torch.corrcoef(x).detach().cpu().numpy() - np.corrcoef(wide)).max() < 1e-6
    often = torch.arange(1, 301, device=device)
    truth = np.cov(wide, fweights=np.arange(1, 301))
    assert np.abs(torch.cov(x, fweights=often).detach().cpu().numpy() - truth).max() < 1e-6
    x.var(1).sum().backward()
    np.testing.assert_allclose(x.grad.cpu().numpy(), 2 / 299 * (wide - wide.mean(1, keepdims=True)), atol=2e-9)
    pair = torch.complex(x.detach(), x.detach()).var(1)
    assert _worst(pair, 2 * wide.var(1, ddof=1)) < 5e-7


@pytest.mark.sampled(1)
@needs_triton
@pytest.mark.parametrize("shape_and_dims", [REDUCED[k] for k in (1, 2, 3, 4, 7, 8)])
def test_variances_and_deviations_on_a_device(shape_and_dims):
    with torch.cuda.simulate():
        _check_spread(*shape_and_dims, 1e6, "cuda", 1e-6)


@pytest.mark.sampled(4)
@needs_triton
@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("name", NORMS)
def test_norms_on_a_device(name, mean):
    with torch.cuda.simulate(), torch.testing.checked():
        _check_norm(name, mean, "cuda", 1e-6)


@pytest.mark.thorough
@needs_triton
@pytest.mark.parametrize("name", NORMS)
def test_norms_on_a_device_of_what_is_longer_than_a_tile(name):
    with torch.cuda.simulate(), torch.testing.checked(), settings.block(16):
        _check_norm(name, 1e6, "cuda", 1e-6)


@pytest.mark.sampled(1)
@needs_triton
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("name", "block"), [*((name, 1024) for name in NORMS), ("rows", 16), ("columns", 16)])
def test_norms_of_halves_on_a_device_have_their_digits(name, kind, block):
    with torch.cuda.simulate(), torch.testing.checked(), settings.block(block):
        shape, dims, by, run = NORMS[name]
        x = (torch.from_numpy(_numbers(shape, 100)) * 8).to(kind)
        w, b = (torch.ones(max(by), dtype=kind, device="cuda") * each for each in (1, 0))
        given = x.cuda().requires_grad_()
        out = run(given, w, b)
        out.sum().backward()
        wide = x.double().numpy()
        truth = (wide - wide.mean(dims, keepdims=True)) / wide.std(dims, keepdims=True)
        assert np.abs(out.detach().cpu().double().numpy() - truth).max() < 2 * torch.finfo(kind).eps


@needs_triton
def test_layer_norms_of_rows_that_their_first_block_does_not_tell_of():
    array = _numbers((3, 5000), 1e5)
    array[:, :2000] -= 1e5
    with torch.cuda.simulate(), settings.block(64):
        found = F.layer_norm(torch.tensor(array, device="cuda"), (5000,)).cpu().numpy()
    wide = array.astype(np.float64)
    truth = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)
    assert np.linalg.norm(found - truth) / np.linalg.norm(truth) < 1e-6


@needs_triton
def test_variances_of_rows_that_are_cut_into_parts():
    """Each part has its state relative to the same first element."""
    array = _numbers((2, 3000), 1e6)
    with torch.cuda.simulate(), settings.block(32):
        assert _worst(torch.tensor(array, device="cuda").var(1), array.astype(np.float64).var(1, ddof=1)) < 1e-6


SERIES = {
    "cumsum": (np.cumsum, 0.0, 1.0),
    "cumprod": (np.cumprod, 1.0, 1e-3),
    "logcumsumexp": (np.logaddexp.accumulate, 0.0, 1.0),
}


def _check_series(name, shape, dim, device, most):
    reference, centre, deviation = SERIES[name]
    array = (np.random.default_rng(0).standard_normal(shape) * deviation + centre).astype(np.float32)
    found = getattr(torch.from_numpy(array).to(device), name)(dim).cpu().numpy()
    truth = reference(array.astype(np.float64), dim)
    assert np.linalg.norm(found - truth) / np.linalg.norm(truth) < most


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize(("shape", "dim"), [((100_000,), 0), ((20_000, 3), 0), ((3, 20_000), 1), ((2, 20_000, 2), 1)])
def test_running_sums_and_products_are_rounded_once(name, shape, dim):
    _check_series(name, shape, dim, "cpu", 5e-8)


@needs_triton
@pytest.mark.parametrize("name", SERIES)
def test_running_sums_and_products_on_a_device(name):
    with torch.cuda.simulate():
        _check_series(name, (20_000,), 0, "cuda", 5e-8)
        _check_series(name, (2000, 3), 0, "cuda", 5e-8)


@needs_triton
@pytest.mark.parametrize(("kind", "limit"), [(torch.float16, 0.63), (torch.bfloat16, 0.52)])
def test_tanh_of_every_half_on_a_device(kind, limit):
    """Half a unit in the last place is the rounding's."""
    x = torch.arange(-(1 << 15), 1 << 15).to(torch.int16).view(kind)
    with torch.cuda.simulate():
        found = x.cuda().tanh().cpu().double().numpy()
        assert torch.equal((-x).cuda().tanh().cpu().double().nan_to_num(), -torch.tensor(found).nan_to_num())
    exact = np.tanh(x.double().numpy())
    np.testing.assert_array_equal(np.isnan(found), np.isnan(exact))
    places = np.maximum(np.frexp(exact)[1] - 1, np.frexp(torch.finfo(kind).tiny)[1] - 1)
    units = np.abs(found - exact) / (torch.finfo(kind).eps * 2.0**places)
    assert np.nanmax(units) < limit
