"""Unfolding and folding: against loops, each as the other's gradient, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor.nn import functional as F

CASES = [
    ((2, 3, 6, 5), {"kernel_size": 2}),
    ((3, 6, 5), {"kernel_size": (2, 3), "stride": 2, "padding": 1, "dilation": (1, 2)}),
    ((1, 1, 7, 4), {"kernel_size": 1, "stride": (3, 1), "padding": (0, 2)}),
]


@pytest.mark.parametrize(("shape", "options"), CASES)
def test_columns_are_windows(shape, options):
    pair = lambda value: (value, value) if isinstance(value, int) else value  # noqa: E731
    kernel, stride = pair(options["kernel_size"]), pair(options.get("stride", 1))
    padding, dilation = pair(options.get("padding", 0)), pair(options.get("dilation", 1))
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    padded = np.pad(x, [(0, 0)] * (x.ndim - 2) + [(pad, pad) for pad in padding])
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    expected = [
        padded[..., top : top + spans[0] : dilation[0], left : left + spans[1] : dilation[1]].reshape(
            *shape[:-3], shape[-3] * kernel[0] * kernel[1]
        )
        for top in range(0, padded.shape[-2] - spans[0] + 1, stride[0])
        for left in range(0, padded.shape[-1] - spans[1] + 1, stride[1])
    ]
    columns = F.unfold(torch.from_numpy(x), **options)
    np.testing.assert_array_equal(columns.numpy(), np.stack(expected, -1))
    # each element of the folded columns is that of x times the windows it is in
    ones = F.fold(F.unfold(torch.ones(*shape), **options), shape[-2:], **options)
    folded = F.fold(columns, shape[-2:], **options)
    np.testing.assert_allclose(folded.numpy(), x * ones.numpy(), 1e-5)


@pytest.mark.parametrize(("shape", "options"), CASES)
def test_gradients(shape, options):
    x = torch.randn(*shape, dtype=torch.float64, requires_grad=True)
    columns = F.unfold(x, **options).detach().requires_grad_()
    for function, leaf in (
        (lambda x: F.unfold(x, **options) ** 2, x),
        (lambda y: F.fold(y, shape[-2:], **options) ** 2, columns),
    ):
        assert torch.autograd.gradcheck(function, (leaf,)) and torch.autograd.gradgradcheck(function, (leaf,))
    assert F.unfold(x, **options).grad_fn.name() == "Im2ColBackward0"
    assert F.fold(columns, shape[-2:], **options).grad_fn.name() == "Col2ImBackward0"


def test_dtypes_and_empty_batches():
    x = torch.tensor([[[True, False], [False, True]]])
    assert F.unfold(x, 1).tolist() == [[True, False, False, True]] and F.unfold(x, 1).dtype is torch.bool
    assert F.fold(F.unfold(x, (1, 2), padding=(0, 1)), 2, (1, 2), padding=(0, 1)).tolist() == x.tolist()
    assert F.unfold(torch.ones(1, 2, 2, dtype=torch.complex64), 2).dtype is torch.complex64
    assert F.unfold(torch.zeros(0, 3, 6, 5), 2).shape == (0, 12, 20)
    assert F.fold(torch.zeros(0, 12, 20), (6, 5), 2).shape == (0, 3, 6, 5)


X, Y = torch.zeros(2, 3, 6, 5), torch.zeros(2, 12, 20)
REFUSED = [
    (
        lambda: F.unfold(X[None], 2),
        RuntimeError,
        "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and o",
    ),
    (
        lambda: F.unfold(X[:, :0], 2),
        RuntimeError,
        "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and",
    ),
    (
        lambda: F.unfold(X, 0),
        RuntimeError,
        "kernel size should be greater than zero, but got kernel_height: 0 kernel_width",
    ),
    (
        lambda: F.unfold(X, 2, stride=0),
        RuntimeError,
        "stride should be greater than zero, but got stride_height: 0 stride",
    ),
    (
        lambda: F.unfold(X, 2, 0),
        RuntimeError,
        "dilation should be greater than zero, but got dilation_height: 0 dilation_w",
    ),
    (
        lambda: F.unfold(X, 2, padding=-1),
        RuntimeError,
        "padding should be non-negative, but got pad_height: -1 pad_width: -",
    ),
    (lambda: F.unfold(X, (2, 2, 2)), RuntimeError, "It is expected kernel_size equals to 2, but got size 3"),
    (
        lambda: F.unfold(X, 9),
        RuntimeError,
        "Given input with spatial size (6, 5), kernel_size=(9, 9), dilation=(1, 1), pad",
    ),
    (
        lambda: F.unfold(X, 2.0),
        TypeError,
        "im2col(): argument 'kernel_size' (position 2) must be tuple of ints, not float",
    ),
    (lambda: F.unfold(X.int(), 2), NotImplementedError, "\"im2col_out_cpu\" not implemented for 'Int'"),
    (
        lambda: F.fold(Y, (7, 5), 2),
        RuntimeError,
        "Given output_size=(7, 5), kernel_size=(2, 2), dilation=(1, 1), padding=",
    ),
    (
        lambda: F.fold(Y[:, :-1], (6, 5), 2),
        RuntimeError,
        "Expected size of input's dimension 1 to be divisible by the prod",
    ),
    (
        lambda: F.fold(Y[0, 0], (6, 5), 2),
        RuntimeError,
        "Expected 2D or 3D (batch mode) tensor for input with possibly 0",
    ),
    (lambda: F.fold(Y, (6, 5, 3), 2), RuntimeError, "It is expected output_size equals to 2, but got size 3"),
    (lambda: F.fold(Y.int(), (6, 5), 2), NotImplementedError, "\"col2im_out_cpu\" not implemented for 'Int'"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED, ids=[words for _, _, words in REFUSED])
def test_refusals(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(words)
