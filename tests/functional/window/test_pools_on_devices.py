"""Pools and folds on simulated devices: the references' results for every layout, in blocks of every size."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.nn import functional as F

from ...needs import needs_triton

pytestmark = needs_triton

PICTURES = {
    "contiguous": lambda x: x,
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "sliced": lambda x: torch.cat([x, x], 3)[:, :, :, ::2],
    "transposed": lambda x: x.transpose(2, 3).contiguous().transpose(2, 3),
    "expanded": lambda x: x[:, :1].expand(x.shape),
    "no batch": lambda x: x[0],
}
POOLS = {
    "max": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max with gaps": lambda x: F.max_pool2d(x, (2, 3), (1, 3), (0, 1), (2, 1), True),
    "average": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "average of elements": lambda x: F.avg_pool2d(x, (3, 2), (2, 1), 1, True, False),
    "sum": lambda x: F.avg_pool2d(x, 2, divisor_override=1),
    "adaptive max": lambda x: F.adaptive_max_pool2d(x, (3, 4)),
    "adaptive average": lambda x: F.adaptive_avg_pool2d(x, (4, 9)),
    "power": lambda x: F.lp_pool2d(x.abs() + 1, 2, 2),
    "columns": lambda x: F.unfold(x, (2, 3), (2, 1), (1, 0), (1, 2)),
}


def results(pool, x):
    """What a pool computes, and the gradients of the first and second order of its cube."""
    leaf = x.detach().requires_grad_()
    out = pool(leaf)
    (first,) = torch.autograd.grad((out**3).sum(), leaf, create_graph=True)
    (second,) = torch.autograd.grad((first**2).sum(), leaf)
    return out, first, second


@pytest.mark.sampled(1)
@pytest.mark.parametrize("layout", PICTURES)
@pytest.mark.parametrize("name", POOLS)
def test_pictures_in_every_layout(name, layout):
    x = PICTURES[layout](torch.from_numpy(np.random.default_rng(3).standard_normal((2, 3, 7, 6)).astype(np.float32)))
    expected = results(POOLS[name], x)
    with torch.cuda.simulate(devices=1), settings.block(16 if layout == "contiguous" else 0):
        found = results(POOLS[name], PICTURES[layout](x.cuda()) if layout == "channels last" else x.cuda())
        # elementwise kernels, which powers are made of, have no layouts
        assert found[0].is_cuda and (found[0].stride() == expected[0].stride() or name == "power")
        for here, there in zip(found, expected, strict=True):
            np.testing.assert_allclose(here.detach().cpu().numpy(), there.detach().numpy(), 1e-4, 1e-4)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_places_and_the_way_back(rank):
    x = torch.randn(2, 3, *(9, 5, 6)[:rank])
    pool, unpool = getattr(F, f"max_pool{rank}d"), getattr(F, f"max_unpool{rank}d")
    adaptive = getattr(F, f"adaptive_max_pool{rank}d")
    with torch.cuda.simulate(devices=1), settings.block(32):
        for call in (lambda x: pool(x, 3, 2, 1, return_indices=True), lambda x: adaptive(x, 4, return_indices=True)):
            for found, expected in zip(call(x.cuda()), call(x), strict=True):
                assert torch.equal(found.cpu(), expected)
        values, places = pool(x.cuda(), 2, return_indices=True)
        expected = unpool(*pool(x, 2, return_indices=True), 2, output_size=x.shape)
        assert torch.equal(unpool(values, places, 2, output_size=x.shape).cpu(), expected)


def test_of_equal_elements_the_first_is_taken_and_of_nan_the_last():
    nan = float("nan")
    x = torch.tensor([[[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [-torch.inf, nan, nan]]])
    with torch.cuda.simulate(devices=1):
        assert F.max_pool2d(x.cuda(), (2, 3), stride=1, return_indices=True)[1].tolist() == [[[1], [8]]]
        least = torch.full((1, 4, 4), -torch.inf, device="cuda")
        values, places = F.max_pool2d(least, 2, 2, 1, return_indices=True)
        nothing = F.max_pool2d(torch.ones(1, 1, 1, device="cuda"), 2, 1, 1, 2, return_indices=True)
        assert [each.item() for each in nothing] == [-torch.inf, 0]
        assert F.max_pool2d(torch.ones(1, 1, 1, dtype=torch.int8, device="cuda"), 2, 1, 1, 2).item() == -128
        assert values.max().item() == -torch.inf and places.tolist() == [[[0, 1, 3], [4, 5, 7], [12, 13, 15]]]


def test_dtypes():
    with torch.cuda.simulate(devices=1):
        x = torch.tensor([[-3, -4, 5, 8]], device="cuda")
        assert F.avg_pool1d(x, 2).tolist() == [[-3, 6]] and F.max_pool1d(x.to(torch.int8), 2).tolist() == [[-3, 8]]
        assert F.avg_pool1d(torch.full((1, 4), 60000.0, dtype=torch.float16, device="cuda"), 4).item() == 60000
        mask = torch.tensor([[[True, False], [False, True]]], device="cuda")
        assert F.fold(F.unfold(mask, (1, 2), padding=(0, 1)), 2, (1, 2), padding=(0, 1)).tolist() == mask.tolist()


def test_fractional_pools():
    x, samples = torch.randn(2, 3, 7, 8), torch.rand(2, 3, 2)
    with torch.cuda.simulate(devices=1):
        for found, expected in zip(
            F.fractional_max_pool2d(x.cuda(), 2, (3, 5), return_indices=True, _random_samples=samples.cuda()),
            F.fractional_max_pool2d(x, 2, (3, 5), return_indices=True, _random_samples=samples),
            strict=True,
        ):
            assert torch.equal(found.cpu(), expected)
        assert F.fractional_max_pool2d(x.cuda(), 2, (3, 5)).is_cuda


def test_channels_last_volumes_and_empty_batches():
    x = torch.randn(2, 3, 4, 5, 4)
    with torch.cuda.simulate(devices=1):
        last = x.cuda().contiguous(memory_format=torch.channels_last_3d)
        out = F.max_pool3d(last, 2)
        assert out.is_contiguous(memory_format=torch.channels_last_3d)
        assert torch.equal(out.cpu(), F.max_pool3d(x, 2))
        assert torch.allclose(F.avg_pool3d(last, 2).cpu(), F.avg_pool3d(x, 2)) and F.avg_pool3d(last, 2).is_contiguous()
        empty = torch.zeros(0, 3, 8, 8, device="cuda", requires_grad=True)
        F.max_pool2d(empty, 2).sum().backward()
        assert empty.grad.shape == empty.shape
