"""The layers of windows: what they print and hold, that they call their functions, what they refuse."""

from __future__ import annotations

import copy

import pytest

import tritensor as torch
from tritensor import nn
from tritensor.nn import functional as F

SIZES = {1: (2, 3, 8), 2: (2, 3, 8, 8), 3: (2, 3, 8, 8, 8)}
FUNCTIONS = {
    "MaxPool": "max_pool",
    "AdaptiveAvgPool": "adaptive_avg_pool",
    "AdaptiveMaxPool": "adaptive_max_pool",
    "LPPool": "lp_pool",
}
SHOWN = {
    "MaxPool{}d(kernel_size=3, stride=3, padding=0, dilation=1, ceil_mode=False)": ("MaxPool", (3,), {}),
    "MaxPool{}d(kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=True)": (
        "MaxPool",
        (3, 2, 1),
        {"ceil_mode": True},
    ),
    "AdaptiveAvgPool{}d(output_size=3)": ("AdaptiveAvgPool", (3,), {}),
    "AdaptiveMaxPool{}d(output_size=3)": ("AdaptiveMaxPool", (3,), {}),
    "LPPool{}d(norm_type=2, kernel_size=3, stride=None, ceil_mode=False)": ("LPPool", (2, 3), {}),
}


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("text", SHOWN)
def test_pools_call_their_functions(text, rank):
    name, arguments, options = SHOWN[text]
    layer = getattr(nn, f"{name}{rank}d")(*arguments, **options)
    assert repr(layer) == text.format(rank) and not layer.state_dict()
    x = torch.randn(*SIZES[rank])
    expected = getattr(F, f"{FUNCTIONS[name]}{rank}d")(x, *arguments, **options)
    assert torch.equal(layer(x), expected) and torch.equal(copy.deepcopy(layer)(x), expected)
    assert torch.equal(layer(x[0]), expected[0])
    if "Max" in name:
        layer.return_indices = True
        assert [each.dtype for each in layer(x)] == [torch.float32, torch.int64]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_average_pools(rank):
    layer = getattr(nn, f"AvgPool{rank}d")(3, 2, 1, ceil_mode=True, count_include_pad=False)
    one = {1: ("(3,)", "(2,)", "(1,)")}.get(rank, ("3", "2", "1"))
    assert repr(layer) == "AvgPool{}d(kernel_size={}, stride={}, padding={})".format(rank, *one)
    x = torch.randn(*SIZES[rank])
    assert torch.equal(layer(x), getattr(F, f"avg_pool{rank}d")(x, 3, 2, 1, True, False))
    if rank > 1:
        layer = getattr(nn, f"AvgPool{rank}d")(2, divisor_override=1)
        assert torch.allclose(layer(x), getattr(F, f"avg_pool{rank}d")(x, 2) * 2**rank)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_unpools(rank):
    layer = getattr(nn, f"MaxUnpool{rank}d")(2)
    two = (2,) * rank
    assert repr(layer) == f"MaxUnpool{rank}d(kernel_size={two}, stride={two}, padding={(0,) * rank})"
    pool, x = getattr(nn, f"MaxPool{rank}d")(2, return_indices=True), torch.rand(*SIZES[rank])
    assert torch.equal(pool(layer(*pool(x)))[0], pool(x)[0])
    odd = x[..., :7]
    assert layer(*pool(odd), output_size=odd.size()).shape == odd.shape


@pytest.mark.parametrize("rank", [2, 3])
def test_fractional_pools(rank):
    kind = getattr(nn, f"FractionalMaxPool{rank}d")
    layer = kind(2, output_ratio=0.5, _random_samples=torch.full((2, 3, rank), 0.4))
    assert repr(layer) == f"FractionalMaxPool{rank}d()" and list(layer.state_dict()) == ["_random_samples"]
    x = torch.rand(*SIZES[rank])
    assert torch.equal(layer(x), layer(x)) and layer(x).shape == (2, 3, *(4,) * rank)
    assert kind(2, 3, return_indices=True)(x)[1].shape == (2, 3, *(3,) * rank)
    for options, words in (
        ({}, "requires specifying either an output size, or a pooling ratio"),
        ({"output_size": 2, "output_ratio": 0.5}, "only one of output_size and output_ratio may be specified"),
        ({"output_ratio": 1.5}, r"output_ratio must be between 0 and 1 \(got 1.5\)"),
    ):
        with pytest.raises(ValueError, match=words):
            kind(2, **options)


def test_folds():
    x = torch.randn(2, 3, 6, 5)
    unfold, fold = nn.Unfold((2, 3), padding=1), nn.Fold((6, 5), (2, 3), padding=1)
    assert repr(unfold) == "Unfold(kernel_size=(2, 3), dilation=1, padding=1, stride=1)"
    assert repr(fold) == "Fold(output_size=(6, 5), kernel_size=(2, 3), dilation=1, padding=1, stride=1)"
    assert torch.equal(unfold(x), F.unfold(x, (2, 3), padding=1))
    assert torch.equal(fold(unfold(x)), F.fold(unfold(x), (6, 5), (2, 3), padding=1))
