"""Fractional pools and unpooling: the places they read and write, gradients, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor.nn import functional as F

NAN = float("nan")


def test_fractional_pools_take_windows_at_the_places_of_the_samples():
    x = torch.arange(64.0).reshape(1, 1, 8, 8)
    samples = torch.tensor([[[0.3, 0.7]]])  # for the width, then for the height
    values, places = F.fractional_max_pool2d(x, (2, 3), (3, 4), return_indices=True, _random_samples=samples)
    assert places.tolist() == [[[[10, 12, 13, 15], [34, 36, 37, 39], [58, 60, 61, 63]]]]
    assert values.tolist() == places.float().tolist()
    same = F.fractional_max_pool2d(x, (2, 3), output_ratio=(0.375, 0.5), _random_samples=samples)
    assert same.tolist() == values.tolist()
    volume = torch.arange(512.0).reshape(1, 8, 8, 8)
    samples = torch.tensor([[[0.3, 0.7, 0.1]]])
    found = F.fractional_max_pool3d(volume, (2, 3, 2), (3, 4, 2), return_indices=True, _random_samples=samples)[1]
    expected = [[[81, 87], [89, 95], [105, 111], [121, 127]]]
    expected += [[[273, 279], [281, 287], [297, 303], [313, 319]], [[465, 471], [473, 479], [489, 495], [505, 511]]]
    assert found.tolist() == [expected]


def test_fractional_pools_are_random():
    torch.manual_seed(0)
    x = torch.arange(4096.0).reshape(4, 2, 32, 16)[:, :, :, :16]
    first, second = F.fractional_max_pool2d(x, 2, 9), F.fractional_max_pool2d(x, 2, 9)
    assert first.shape == (4, 2, 9, 9) and not torch.equal(first, second)
    torch.manual_seed(0)
    assert torch.equal(F.fractional_max_pool2d(x, 2, 9), first)
    assert F.fractional_max_pool2d(x[0], 2, 9).shape == (2, 9, 9)


def test_of_equal_elements_fractional_pools_take_the_first_and_of_nan_the_last():
    samples = torch.zeros(1, 1, 2)
    for value, expected in ((0.0, [[0, 2], [8, 10]]), (NAN, [[5, 7], [13, 15]])):
        x = torch.full((1, 1, 4, 4), value)
        found = F.fractional_max_pool2d(x, 2, 2, return_indices=True, _random_samples=samples)
        assert found[1].tolist() == [[expected]]
        np.testing.assert_array_equal(found[0].numpy(), np.full((1, 1, 2, 2), value))


def test_gradients_of_fractional_pools():
    x = torch.randn(1, 2, 5, 6, dtype=torch.float64, requires_grad=True)
    samples = torch.rand(1, 2, 2, dtype=torch.float64)
    pool = lambda x: F.fractional_max_pool2d(x, 2, (3, 4), _random_samples=samples) ** 2  # noqa: E731
    assert torch.autograd.gradcheck(pool, (x,)) and torch.autograd.gradgradcheck(pool, (x,))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_unpooling_undoes_pooling(rank):
    pool, unpool = getattr(F, f"max_pool{rank}d"), getattr(F, f"max_unpool{rank}d")
    x = torch.randn(2, 3, *(7, 6, 5)[:rank])
    values, places = pool(x, 2, return_indices=True)
    out = unpool(values, places, 2, output_size=x.shape)
    assert out.shape == x.shape and torch.equal(pool(out.abs(), 2), values.abs())
    assert unpool(values, places, 2, output_size=x.shape[2:]).shape == x.shape
    assert torch.count_nonzero(out).item() == values.numel()
    single = unpool(values[0], places[0], 2, output_size=x.shape[2:])
    assert torch.equal(single, out[0])
    leaf = values.double().requires_grad_()
    weight = torch.randn(out.shape, dtype=torch.float64)
    (grad,) = torch.autograd.grad(unpool(leaf, places, 2, output_size=x.shape), leaf, weight)
    assert torch.equal(grad.flatten(2), weight.flatten(2).gather(2, places.flatten(2)))
    assert torch.autograd.gradgradcheck(lambda x: unpool(x, places, 2, output_size=tuple(weight.shape)) ** 2, (leaf,))


def test_windows_of_half_precision_are_those_of_pytorch():
    """The distance of windows, 5 / 3, is rounded to the samples' dtype: the second begins at 1, and not at 2."""
    x, sample = torch.arange(7.0).bfloat16().expand(1, 1, 1, 7), torch.full((1, 1, 2), 0.796875, dtype=torch.bfloat16)
    places = F.fractional_max_pool2d(x, (1, 2), (1, 4), return_indices=True, _random_samples=sample)[1]
    assert places.tolist() == [[[[1, 2, 4, 6]]]]


def test_unpooled_pictures_keep_channels_last():
    x = torch.randn(2, 3, 4, 4, requires_grad=True).contiguous(memory_format=torch.channels_last)
    out = F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)
    assert out.stride() == (48, 1, 12, 3) and out.grad_fn.name() == "MaxUnpool2DBackward0"


def test_empty_batches():
    assert F.fractional_max_pool2d(torch.zeros(0, 2, 5, 5), 2, 3).shape == (0, 2, 3, 3)
    assert F.max_unpool2d(torch.zeros(0, 2, 5, 5), torch.zeros(0, 2, 5, 5).long(), 2).shape == (0, 2, 10, 10)


X, PLACES = torch.zeros(1, 1, 8, 8), torch.zeros(1, 1, 8, 8, dtype=torch.int64)
REFUSED = [
    (
        lambda: F.fractional_max_pool2d(X, 2),
        ValueError,
        "fractional_max_pool2d requires specifying either an output_size",
    ),
    (
        lambda: F.fractional_max_pool2d(X, 2, output_ratio=(0.5,) * 3),
        ValueError,
        "fractional_max_pool2d requires output_",
    ),
    (
        lambda: F.fractional_max_pool2d(X, 4, 6),
        RuntimeError,
        "fractional_max_pool2d(): pool height 4 too large relative",
    ),
    (
        lambda: F.fractional_max_pool2d(X, (2, 2, 2), 2),
        RuntimeError,
        "fractional_max_pool2d: kernel_size must either be a",
    ),
    (
        lambda: F.fractional_max_pool2d(X, 2, (2, 2, 2)),
        RuntimeError,
        "fractional_max_pool2d: output_size must either be a",
    ),
    (
        lambda: F.fractional_max_pool2d(X[0, 0], 2, 2),
        IndexError,
        "Dimension out of range (expected to be in range of [-2",
    ),
    (
        lambda: F.fractional_max_pool2d(X[None], 2, 2),
        RuntimeError,
        "fractional_max_pool2d(): Expected 3D or 4D tensor, but",
    ),
    (
        lambda: F.fractional_max_pool2d(X[:, :0], 2, 2),
        RuntimeError,
        "fractional_max_pool2d(): Expected input to have non-z",
    ),
    (lambda: F.fractional_max_pool2d(X.int(), 2, 2), NotImplementedError, '"fractional_max_pool2d_out_frame" not impl'),
    (
        lambda: F.fractional_max_pool2d(X, 2, 2, _random_samples=torch.rand(1, 1, 7)),
        RuntimeError,
        "Expect _random_samples.size(2) equals to 2; got 7.",
    ),
    (
        lambda: F.fractional_max_pool2d(X, 2, 2, _random_samples=torch.rand(2)),
        RuntimeError,
        "Expect _random_samples to have 3 dimensions, got 1",
    ),
    (
        lambda: F.fractional_max_pool2d(X, 2, 2, _random_samples=torch.rand(1, 1, 2).double()),
        RuntimeError,
        "Expect _random_samples to have the same dtype as input",
    ),
    (
        lambda: F.max_unpool2d(X, PLACES + 400, 2),
        RuntimeError,
        "Found an invalid max index: 400 (output volumes are of size 16x16",
    ),
    (
        lambda: F.max_unpool1d(X[0], PLACES[0] - 1, 2),
        RuntimeError,
        "Found an invalid max index: -1 (output volumes are of size 1",
    ),
    (lambda: F.max_unpool2d(X, PLACES.int(), 2), RuntimeError, "elements in indices should be type int64 but got: Int"),
    (
        lambda: F.max_unpool2d(X, PLACES[..., :1], 2),
        RuntimeError,
        "Expected shape of indices to be same as that of the input",
    ),
    (
        lambda: F.max_unpool2d(X[0, 0], PLACES[0, 0], 2),
        RuntimeError,
        "Input to max_unpooling2d should be a 3d or 4d Tensor, but",
    ),
    (
        lambda: F.max_unpool2d(X[:, :0], PLACES[:, :0], 2),
        RuntimeError,
        "max_unpooling2d_forward_out_cpu(): Expected input to ha",
    ),
    (
        lambda: F.max_unpool2d(X, PLACES, 2, output_size=(9, 9)),
        ValueError,
        'invalid output_size "(9, 9)" (dim 0 must be between',
    ),
    (
        lambda: F.max_unpool2d(X, PLACES, 2, output_size=(9,)),
        ValueError,
        "output_size should be a sequence containing 2 or 4 el",
    ),
    (lambda: F.max_unpool2d(X.int(), PLACES, 2), NotImplementedError, "\"max_unpool2d\" not implemented for 'Int'"),
    (
        lambda: F.max_unpool2d(X, [1], 2),
        TypeError,
        "max_unpool2d(): argument 'indices' (position 2) must be Tensor, not li",
    ),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED, ids=[words for _, _, words in REFUSED])
def test_refusals(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(words)
