"""Pools: what they compute, which dtypes and layouts they take, and what they refuse in which words."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

import tritensor as torch
from tritensor.nn import functional as F

NAN, INF = float("nan"), float("inf")
NAMES = [f"{name}{rank}d" for name in ("max_pool", "avg_pool", "lp_pool") for rank in (1, 2, 3)]
NAMES += [f"adaptive_{name}_pool{rank}d" for name in ("max", "avg") for rank in (1, 2, 3)]
NAMES += [f"max_unpool{rank}d" for rank in (1, 2, 3)] + [f"fractional_max_pool{rank}d" for rank in (2, 3)]


@pytest.mark.parametrize("name", NAMES)
def test_examples(name):
    """Doctest does not find functions that are made for each number of dimensions."""
    example = doctest.DocTestParser().get_doctest(getattr(F, name).__doc__, {}, name, None, 0)
    printed = []
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=printed.append)
    assert result.attempted and not result.failed, "".join(printed)


def windows(x, kernel, stride, padding, dilation, fill):
    """The elements of each window of the last dimensions, by loops: [..., windows..., elements]."""
    rank = len(kernel)
    lead, extents = x.shape[:-rank], x.shape[-rank:]
    size = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(extents, kernel, stride, padding, dilation, strict=True)
    ]
    out = np.full((*lead, *size, int(np.prod(kernel))), fill, x.dtype)
    for window in np.ndindex(*size):
        for tap, offset in enumerate(np.ndindex(*kernel)):
            place = [w * s - p + t * d for w, s, p, t, d in zip(window, stride, padding, offset, dilation, strict=True)]
            if all(0 <= at < n for at, n in zip(place, extents, strict=True)):
                out[(..., *window, tap)] = x[(..., *place)]
    return out


CASES = [
    ((2, 3, 9), (3,), (2,), (1,), (1,)),
    ((2, 9), (3,), (1,), (1,), (2,)),
    ((2, 3, 7, 6), (2, 2), (2, 2), (0, 0), (1, 1)),
    ((2, 3, 7, 6), (3, 2), (1, 3), (1, 0), (2, 1)),
    ((3, 40, 41), (3, 3), (2, 2), (1, 1), (1, 1)),
    ((2, 2, 4, 5, 6), (2, 3, 2), (2, 1, 2), (1, 1, 0), (1, 1, 3)),
]


@pytest.mark.parametrize(("shape", "kernel", "stride", "padding", "dilation"), CASES)
def test_values_are_those_of_loops(shape, kernel, stride, padding, dilation):
    rng, rank = np.random.default_rng(5), len(kernel)
    x = rng.standard_normal(shape).astype(np.float32)
    largest, average = (getattr(F, f"{name}_pool{rank}d") for name in ("max", "avg"))
    expected = windows(x, kernel, stride, padding, dilation, -INF).max(-1)
    found, places = largest(torch.from_numpy(x), kernel, stride, padding, dilation, return_indices=True)
    np.testing.assert_array_equal(found.numpy(), expected)
    np.testing.assert_array_equal(largest(torch.from_numpy(x), kernel, stride, padding, dilation).numpy(), expected)
    at = places.numpy().reshape(*shape[:-rank], -1)
    np.testing.assert_array_equal(
        np.take_along_axis(x.reshape(*shape[:-rank], -1), at, -1).reshape(expected.shape), expected
    )
    if set(dilation) == {1}:
        total = windows(x, kernel, stride, padding, dilation, 0).astype(np.float64).mean(-1)
        np.testing.assert_allclose(average(torch.from_numpy(x), kernel, stride, padding).numpy(), total, 1e-4, 1e-6)
        inside = windows(np.ones_like(x), kernel, stride, padding, dilation, 0).mean(-1)
        found = average(torch.from_numpy(x), kernel, stride, padding, count_include_pad=False).numpy()
        np.testing.assert_allclose(found, total / inside, 1e-4, 1e-6)


def test_of_equal_elements_the_first_is_taken_and_of_nan_the_last():
    x = torch.tensor([[[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [-INF, NAN, NAN]]])
    values, places = F.max_pool2d(x, (2, 3), stride=1, return_indices=True)
    np.testing.assert_array_equal(values.numpy(), [[[1.0], [NAN]]])
    assert places.tolist() == [[[1], [8]]]
    assert F.adaptive_max_pool2d(x, 1, return_indices=True)[1].item() == 8
    nothing = F.max_pool2d(torch.full((1, 4, 4), -INF), 2, 2, 1, return_indices=True)
    assert nothing[0].max().item() == -INF
    assert nothing[1].tolist() == [[[0, 1, 3], [4, 5, 7], [12, 13, 15]]]  # inside of the input


def test_windows_without_elements_are_less_than_all_and_their_places_inside():
    """Of a dilated window both elements may be in the padding; PyTorch's place is then beyond the plane."""
    values, places = F.max_pool2d(torch.ones(1, 1, 1), 2, 1, 1, 2, return_indices=True)
    assert values.item() == -INF and places.item() == 0
    assert F.max_pool2d(torch.ones(1, 1, 1, dtype=torch.int8), 2, 1, 1, 2).item() == -128


def test_ceil_mode_takes_windows_that_begin_inside():
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]])
    assert F.max_pool1d(x, 2, 2).tolist() == [[2, 4]]
    assert F.max_pool1d(x, 2, 2, ceil_mode=True).tolist() == [[2, 4, 5]]
    assert F.avg_pool1d(x, 2, 2, ceil_mode=True).tolist() == [[1.5, 3.5, 5]]
    assert F.avg_pool1d(x, 2, 2, 1, ceil_mode=True).tolist() == [[0.5, 2.5, 4.5]]
    assert F.avg_pool1d(x, 3, 3, 1, ceil_mode=True).tolist() == [[1, 4]]  # a third one would begin in the padding
    assert F.avg_pool1d(x, 4, 4, 2, ceil_mode=True).tolist() == [[0.75, 3]]


def test_divisor():
    x = torch.ones(1, 2, 4)
    assert F.avg_pool2d(x, 2, divisor_override=-2).tolist() == [[[-2, -2]]]
    with pytest.raises(RuntimeError, match="divisor must be not zero"):
        F.avg_pool2d(x, 2, divisor_override=0)
    with pytest.raises(TypeError, match="argument 'divisor_override'"):
        F.avg_pool2d(x, 2, divisor_override=2.5)


def test_adaptive_pools_cover_everything():
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]])
    assert F.adaptive_avg_pool1d(x, 2).tolist() == [[2, 4]]
    assert F.adaptive_avg_pool1d(x, 5).tolist() == x.tolist()
    assert F.adaptive_max_pool1d(x, 7).tolist() == [[1, 2, 3, 3, 4, 5, 5]]
    picture = torch.arange(24.0).reshape(1, 4, 6)
    assert F.adaptive_avg_pool2d(picture, (2, 3)).tolist() == [[[3.5, 5.5, 7.5], [15.5, 17.5, 19.5]]]
    assert F.adaptive_avg_pool2d(picture, (None, 1)).tolist() == [[[2.5], [8.5], [14.5], [20.5]]]
    assert F.adaptive_avg_pool2d(picture, 0).shape == (1, 0, 0)
    pooled = F.adaptive_avg_pool2d(picture.requires_grad_(), 1)
    assert pooled.item() == 11.5 and pooled.grad_fn.name() == "MeanBackward1"


def test_lp_pool():
    x = torch.tensor([[3.0, -4.0, 0.0, 0.0]], requires_grad=True)
    out = F.lp_pool1d(x, 2, 2)
    assert out.tolist() == [[5, 0]]
    out.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[0.6, -0.8, 0, 0]], 1e-6)
    assert F.lp_pool1d(x, INF, 2).tolist() == [[4, 0]] and F.lp_pool1d(x, -INF, 2).tolist() == [[3, 0]]
    with pytest.raises(ZeroDivisionError):
        F.lp_pool1d(x, 0, 2)


def test_dtypes():
    for kind in (torch.uint8, torch.int8, torch.int64):
        x = torch.tensor([[1, 5, 3, 4]], dtype=kind)
        assert F.max_pool1d(x, 2).tolist() == [[5, 4]] and F.max_pool1d(x, 2).dtype is kind
    assert F.avg_pool1d(torch.tensor([[-3, -4, 5, 8]]), 2).tolist() == [[-3, 6]]
    for kind in (torch.float16, torch.bfloat16):
        x = torch.tensor([[1.0, 2.0, 3.0, 5.0]], dtype=kind)
        assert F.avg_pool1d(x, 2).tolist() == [[1.5, 4]] and F.avg_pool1d(x, 2).dtype is kind
        assert F.max_pool1d(x, 2, return_indices=True)[1].tolist() == [[1, 3]]
    # summed in float32: in float16 it would be infinite
    assert F.avg_pool1d(torch.full((1, 4), 60000.0, dtype=torch.float16), 4).item() == 60000
    with pytest.raises(NotImplementedError, match="\"max_pool2d\" not implemented for 'Bool'"):
        F.max_pool2d(torch.ones(1, 2, 2, dtype=torch.bool), 2)
    with pytest.raises(NotImplementedError, match="\"avg_pool2d\" not implemented for 'Int'"):
        F.avg_pool2d(torch.ones(1, 2, 2, dtype=torch.int32), 2)
    with pytest.raises(NotImplementedError, match="\"adaptive_max_pool2d\" not implemented for 'Long'"):
        F.adaptive_max_pool2d(torch.ones(1, 2, 2, dtype=torch.int64), 2)


def test_channels_last_is_kept_where_pytorch_keeps_it():
    x = torch.randn(2, 3, 6, 6).contiguous(memory_format=torch.channels_last).requires_grad_()
    plain = x.detach().contiguous().requires_grad_()
    for pool in (
        lambda x: F.max_pool2d(x, 3, 2, 1),
        lambda x: F.avg_pool2d(x, 2),
        lambda x: F.adaptive_max_pool2d(x, 4),
        lambda x: F.adaptive_avg_pool2d(x, 4),
    ):
        out, expected = pool(x), pool(plain)
        assert out.is_contiguous(memory_format=torch.channels_last) and expected.is_contiguous()
        np.testing.assert_array_equal(out.detach().numpy(), expected.detach().numpy())
        weight = torch.randn(out.shape)
        found, wanted = (torch.autograd.grad(y, z, weight)[0] for y, z in ((out, x), (expected, plain)))
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), 1e-6)
    volume = torch.randn(2, 3, 4, 4, 4).contiguous(memory_format=torch.channels_last_3d)
    assert F.max_pool3d(volume, 2).is_contiguous(memory_format=torch.channels_last_3d)
    assert F.avg_pool3d(volume, 2).is_contiguous() and F.adaptive_max_pool3d(volume, 3).is_contiguous()


def test_empty_batches():
    x = torch.zeros(0, 3, 8, 8, requires_grad=True)
    for out in (F.max_pool2d(x, 2), F.avg_pool2d(x, 2), F.adaptive_max_pool2d(x, 4), F.adaptive_avg_pool2d(x, 4)):
        assert out.shape == (0, 3, 4, 4)
        out.sum().backward()
        assert x.grad.shape == x.shape


@pytest.mark.sampled(1)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_second_gradients(rank):
    x = torch.randn(1, 2, *(3, 4, 5)[-rank:], dtype=torch.float64, requires_grad=True)
    for pool in (
        lambda x: getattr(F, f"max_pool{rank}d")(x, 2, 1, 1),
        lambda x: getattr(F, f"avg_pool{rank}d")(x, 2, 1, 1, count_include_pad=False),
        lambda x: getattr(F, f"adaptive_max_pool{rank}d")(x, 2),
        lambda x: getattr(F, f"adaptive_avg_pool{rank}d")(x, 2),
        lambda x: getattr(F, f"lp_pool{rank}d")(x.abs() + 1, 3, 2),
    ):
        assert torch.autograd.gradcheck(lambda x, pool=pool: pool(x) ** 2, (x,))
        assert torch.autograd.gradgradcheck(lambda x, pool=pool: pool(x) ** 2, (x,))


def test_names_of_nodes():
    x = torch.randn(2, 3, 8, 8, requires_grad=True)
    names = [F.max_pool2d(x, 2), F.avg_pool2d(x, 2), F.adaptive_max_pool2d(x, 2), F.adaptive_avg_pool2d(x, 2)]
    assert [each.grad_fn.name() for each in names] == [
        "MaxPool2DWithIndicesBackward0",
        "AvgPool2DBackward0",
        "AdaptiveMaxPool2DBackward0",
        "AdaptiveAvgPool2DBackward0",
    ]


X1, X2, X3 = torch.zeros(2, 3, 8), torch.zeros(2, 3, 8, 8), torch.zeros(2, 3, 8, 8, 8)
REFUSED = [
    (
        lambda: F.max_pool1d(X1[0, 0], 2),
        RuntimeError,
        "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional",
    ),
    (lambda: F.max_pool1d(X1, 0), RuntimeError, "max_pool1d() kernel_size must be greater than zero, but got 0"),
    (lambda: F.max_pool1d(X1, 2, 0), RuntimeError, "max_pool1d() stride must be greater than zero, but got 0"),
    (
        lambda: F.max_pool1d(X1, 2, 2, 2),
        RuntimeError,
        "max_pool1d() padding should be at most half of kernel size, but",
    ),
    (lambda: F.max_pool1d(X1, 2, 2, -1), RuntimeError, "max_pool1d() padding must be non-negative, but got -1"),
    (lambda: F.max_pool1d(X1, 2, 2, 0, 0), RuntimeError, "max_pool1d() dilation must be greater than zero, but got 0"),
    (
        lambda: F.max_pool1d(X1, 2, 2, -1, return_indices=True),
        RuntimeError,
        "pad must be non-negative, but got pad: -1",
    ),
    (lambda: F.max_pool1d(X1, 2, 0, return_indices=True), RuntimeError, "stride should not be zero"),
    (
        lambda: F.max_pool1d(X1[0, 0], 2, return_indices=True),
        RuntimeError,
        "Expected 2 to 3 dimensions, but got 1-dimensional tensor for argument #1 'self' (while checking arguments for "
        "max_pool1d)",
    ),
    (
        lambda: F.max_pool1d(X1, (2, 2), return_indices=True),
        RuntimeError,
        "max_pool1d() argument 'kernel_size' should contain one int (got 2)",
    ),
    (lambda: F.max_pool2d(X2[:0, :, 0, 0], 2), RuntimeError, "non-empty 3D or 4D (batch mode) tensor expected for"),
    (lambda: F.max_pool2d(X2[:, :0], 2, 2, -1), RuntimeError, "pad must be non-negative, but got pad: -1"),
    (lambda: F.max_pool1d(X1, 9), RuntimeError, "max_pool1d() Invalid computed output size: 0"),
    (lambda: F.max_pool1d(X1, (2, 2)), RuntimeError, "max_pool1d() kernel_size must be an int, list of ints or tuple"),
    (lambda: F.max_pool1d(X1, 2, (2, 2)), RuntimeError, "max_pool1d() stride must be None, an int, list of ints, or"),
    (lambda: F.avg_pool1d(X1[0, 0], 2), RuntimeError, "Expected 2 to 3 dimensions, but got 1-dimensional tensor for"),
    (lambda: F.avg_pool1d(X1, -1), RuntimeError, "kernel size should be greater than zero, but got kH: 1 kW: -1"),
    (
        lambda: F.avg_pool1d(X1, (2, 2)),
        RuntimeError,
        "avg_pool1d() argument 'kernel_size' should contain one int (got 2)",
    ),
    (lambda: F.avg_pool1d(X1, 9), RuntimeError, "Given input size: (3x1x8). Calculated output size: (3x1x0). Output"),
    (
        lambda: F.avg_pool1d(X1[:, :0], 2),
        RuntimeError,
        "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch",
    ),
    (lambda: F.max_pool2d(X2[0, 0], 2), RuntimeError, "non-empty 3D or 4D (batch mode) tensor expected for input"),
    (
        lambda: F.max_pool2d(X2[:, :0], 2),
        RuntimeError,
        "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch",
    ),
    (lambda: F.max_pool2d(X2, 0), RuntimeError, "stride should not be zero"),
    (lambda: F.max_pool2d(X2, -1), RuntimeError, "kernel size should be greater than zero, but got kH: -1 kW: -1"),
    (lambda: F.max_pool2d(X2, 2, -1), RuntimeError, "stride should be greater than zero, but got dH: -1 dW: -1"),
    (
        lambda: F.max_pool2d(X2, 2, 2, 2),
        RuntimeError,
        "pad should be at most half of effective kernel size, but got pad=2",
    ),
    (lambda: F.max_pool2d(X2, 2, 2, -1), RuntimeError, "pad must be non-negative, but got pad: -1"),
    (
        lambda: F.max_pool2d(X2, 2, 2, 0, 0),
        RuntimeError,
        "dilation should be greater than zero, but got dilationH: 0 dil",
    ),
    (
        lambda: F.max_pool2d(X2, 9),
        RuntimeError,
        "Given input size: (3x8x8). Calculated output size: (3x0x0). Output size",
    ),
    (
        lambda: F.max_pool2d(X2, (2, 2, 2)),
        RuntimeError,
        "max_pool2d: kernel_size must either be a single int, or a tuple",
    ),
    (
        lambda: F.max_pool2d(X2, 2, (1, 1, 1)),
        RuntimeError,
        "max_pool2d: stride must either be omitted, a single int, or",
    ),
    (
        lambda: F.max_pool2d(X2, 2, dilation=(1, 1, 1)),
        RuntimeError,
        "max_pool2d: dilation must either be a single int,",
    ),
    (
        lambda: F.max_pool2d(X2, 2.0),
        TypeError,
        "max_pool2d(): argument 'kernel_size' (position 2) must be tuple of ints,",
    ),
    (lambda: F.max_pool2d([1.0], 2), TypeError, "max_pool2d(): argument 'input' (position 1) must be Tensor, not list"),
    (
        lambda: F.avg_pool2d(X2[0, 0], 2),
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got",
    ),
    (lambda: F.avg_pool2d(X3, 2), RuntimeError, "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size"),
    (lambda: F.avg_pool3d(X2[0], 2), RuntimeError, "non-empty 4D or 5D (batch mode) tensor expected for input"),
    (lambda: F.avg_pool3d(X3, 9), RuntimeError, "input image (T: 8 H: 8 W: 8) smaller than kernel size (kT: 9 kH: 9"),
    (lambda: F.avg_pool3d(X3[..., :0], 2), RuntimeError, "avg_pool3d(): Expected input's non-batch dimensions to have"),
    (
        lambda: F.avg_pool3d(X3, 2, (1, 1)),
        RuntimeError,
        "avg_pool3d: stride must either be omitted, a single int, or",
    ),
    (
        lambda: F.adaptive_avg_pool1d(X1[0, 0], 2),
        RuntimeError,
        "Expected 2 to 3 dimensions, but got 1-dimensional tensor",
    ),
    (
        lambda: F.adaptive_avg_pool2d(X2[0, 0], 2),
        RuntimeError,
        "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got [",
    ),
    (
        lambda: F.adaptive_max_pool2d(X2[0, 0], 2),
        RuntimeError,
        "adaptive_max_pool2d(): Expected 3D or 4D tensor, but got:",
    ),
    (
        lambda: F.adaptive_avg_pool2d(X2, -1),
        RuntimeError,
        "adaptive_avg_pool2d: elements of output_size must be greater",
    ),
    (
        lambda: F.adaptive_max_pool2d(X2, -1),
        RuntimeError,
        "Trying to create tensor with negative dimension -1: [2, 3, -1",
    ),
    (lambda: F.adaptive_avg_pool2d(X2, (2, 2, 2)), RuntimeError, "adaptive_avg_pool2d: output_size must be 2"),
    (
        lambda: F.adaptive_max_pool2d(X2, (2,)),
        RuntimeError,
        "adaptive_max_pool2d(): internal error: output_size.size() m",
    ),
    (
        lambda: F.adaptive_avg_pool1d(X1, (None,)),
        TypeError,
        "adaptive_avg_pool1d(): argument 'output_size' (position 2)",
    ),
    (
        lambda: F.adaptive_avg_pool2d(X2[..., :0], 2),
        RuntimeError,
        "adaptive_avg_pool2d(): Expected input to have non-zero",
    ),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED, ids=[words[:60] for _, _, words in REFUSED])
def test_refusals(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(words)
