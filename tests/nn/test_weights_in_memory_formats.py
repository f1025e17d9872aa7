"""Weights of convolutions brought to another memory format, alone and beside PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import tritensor as torch


def model(library: Any) -> Any:
    nn = library.nn
    inner = nn.Sequential(nn.ConvTranspose2d(4, 2, 3), nn.Conv3d(2, 3, 2), nn.ConvTranspose3d(3, 5, (1, 2, 3)))
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(3, 1, 1), inner, nn.Conv1d(2, 3, 2))


def strides(library: Any, dims: int, name: str) -> list[tuple[int, ...]]:
    made = model(library)
    weights = list(made.parameters())
    converted = getattr(library.nn.utils, f"convert_conv{dims}d_weight_memory_format")(made, getattr(library, name))
    assert converted is made and all(one is other for one, other in zip(weights, made.parameters(), strict=True))
    return [tuple(each.stride()) for each in made.parameters()]


def test_only_those_weights_change() -> None:
    plain = [each.stride() for each in model(torch).parameters()]
    for dims, name, places in ((2, "channels_last", [0, 2, 4]), (3, "channels_last_3d", [6, 8])):
        found = strides(torch, dims, name)
        assert [place for place, each in enumerate(found) if each != plain[place]] == places
    assert strides(torch, 2, "contiguous_format") == plain


@pytest.mark.peer
def test_beside_torch() -> None:
    reference = pytest.importorskip("torch")
    for dims, name in ((2, "channels_last"), (3, "channels_last_3d"), (2, "contiguous_format")):
        assert strides(torch, dims, name) == strides(reference, dims, name)
