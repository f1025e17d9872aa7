"""pixel_shuffle, pixel_unshuffle and channel_shuffle: values, formats, gradients, errors."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn

from .beside_torch import assert_alike

F = nn.functional


def test_pixels_of_channels_and_back() -> None:
    x = torch.arange(16.0).view(1, 8, 1, 2)
    y = torch.pixel_shuffle(x, 2)
    assert y.tolist() == [[[[0, 2, 1, 3], [4, 6, 5, 7]], [[8, 10, 9, 11], [12, 14, 13, 15]]]]
    assert torch.equal(F.pixel_unshuffle(y, 2), x)
    assert torch.equal(nn.PixelUnshuffle(2)(nn.PixelShuffle(2)(x)), x)


def test_channels_of_groups_in_turn() -> None:
    x = torch.arange(6).view(1, 6, 1, 1)
    assert torch.channel_shuffle(x, 3).flatten().tolist() == [0, 2, 4, 1, 3, 5]
    assert nn.ChannelShuffle(2)(x).flatten().tolist() == [0, 3, 1, 4, 2, 5]


def test_results_are_no_views() -> None:
    x = torch.arange(4.0).view(1, 4, 1, 1)
    for y in (F.pixel_shuffle(x, 1), F.pixel_unshuffle(x, 1), F.channel_shuffle(x, 1), F.channel_shuffle(x, 2)):
        assert y._origin is None and y.data_ptr() != x.data_ptr()


def test_empty_batches() -> None:
    assert F.pixel_unshuffle(torch.ones(0, 4, 2, 2), 2).shape == (0, 16, 1, 1)
    assert F.pixel_shuffle(torch.ones(0, 4, 2, 2), 2).shape == (0, 1, 4, 4)


def test_repr() -> None:
    assert repr(nn.PixelShuffle(2)) == "PixelShuffle(upscale_factor=2)"
    assert repr(nn.PixelUnshuffle(3)) == "PixelUnshuffle(downscale_factor=3)"
    assert repr(nn.ChannelShuffle(4)) == "ChannelShuffle(groups=4)"


def test_in_place_changes_after_them_are_differentiated() -> None:
    x = torch.arange(4.0, requires_grad=True)
    y = F.pixel_shuffle((x * 2).view(1, 4, 1, 1), 2)
    y.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [6, 6, 6, 6]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            "F.pixel_shuffle(x, 3)",
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square",
        ),
        ("F.pixel_shuffle(x, 0)", "pixel_shuffle expects a positive upscale_factor, but got 0"),
        (
            "F.pixel_shuffle(x[0, 0], 1)",
            "pixel_shuffle expects input to have at least 3 dimensions, but got input with 2",
        ),
        ("F.pixel_unshuffle(x, 3)", r"pixel_unshuffle expects height to be divisible by .*input.size\(-2\)=4 is not"),
        ("F.pixel_unshuffle(x, 4)", r"pixel_unshuffle expects width to be divisible by .*input.size\(-1\)=6 is not"),
        ("F.channel_shuffle(x, 3)", "Number of channels must be divisible by groups. Got 8 channels and 3 groups"),
        ("F.channel_shuffle(x, 0)", "Number of groups to divide channels in must be positive. Value of groups:0"),
        ("F.channel_shuffle(x[0, 0], 1)", r"channel_shuffle expects input with > 2 dims, .* sizes \[4, 6\]"),
    ],
)
def test_bad_input(call: str, words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        eval(call, {"F": F, "x": torch.ones(2, 8, 4, 6)})


@pytest.mark.peer
@pytest.mark.parametrize("last", [False, True])
def test_beside_torch(last: bool) -> None:
    pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    for shape in ((2, 8, 4, 6), (8, 4, 6), (2, 3, 8, 2, 2), (0, 4, 2, 2), (4, 2), (2, 8, 6)):
        for call in ("pixel_shuffle(x, 2)", "pixel_unshuffle(x, 2)", "channel_shuffle(x, 2)", "pixel_shuffle(x, 2.5)"):
            for x in (rng.standard_normal(shape), rng.integers(0, 9, shape)):
                if 0 not in shape or "un" not in call:  # PyTorch leaves the shape of an empty tensor as it is
                    assert_alike(f"F.{call}", {"x": x}, last=last)
