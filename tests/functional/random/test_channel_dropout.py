"""Dropout of channels, and alpha dropout: shares, statistics, gradients, errors, the same on every device."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn

F = nn.functional
LOWEST = -1.7580993408473766


@pytest.mark.parametrize(("dims", "layer"), [(1, nn.Dropout1d), (2, nn.Dropout2d), (3, nn.Dropout3d)])
def test_whole_channels_are_dropped(dims: int, layer: type[nn.Module]) -> None:
    torch.manual_seed(0)
    x = torch.ones(40, 50, *(2,) * dims)
    y = layer(0.3)(x)
    flat = y.reshape(2000, -1).numpy()
    assert (flat == flat[:, :1]).all() and set(np.unique(flat)) == {np.float32(0), np.float32(1 / 0.7)}
    assert abs((flat[:, 0] == 0).mean() - 0.3) < 0.04
    assert layer(0.3).eval()(x) is x and repr(layer(0.3)) == f"Dropout{dims}d(p=0.3, inplace=False)"
    if dims != 2:  # channels first, without a batch
        assert sorted(set(getattr(F, f"dropout{dims}d")(x[0], 0.5).reshape(50, -1).sum(1).tolist())) == [0, 2**dims * 2]


def test_dropout2d_takes_three_dimensions_as_a_batch_of_lines() -> None:
    with pytest.warns(UserWarning, match="dropout2d: Received a 3D input to dropout2d and assuming that channel-wise"):
        y = F.dropout2d(torch.ones(20, 30, 4), 0.5)
    assert set(y.sum(2).flatten().tolist()) == {0.0, 8.0}
    with pytest.warns(UserWarning, match="dropout3d: Received a 3-D input to dropout3d, which is deprecated"):
        F.dropout3d(torch.ones(2, 3, 4), 0.5)


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    torch.manual_seed(1)
    x = torch.randn(200, 500)
    for drop in (F.alpha_dropout, F.feature_alpha_dropout):
        y = drop(x, 0.2, training=True)
        assert abs(y.mean().item()) < 0.02 and abs(y.std().item() - 1) < 0.02
        assert drop(x, 0.2) is x and not drop(x, 1.0, True).any()
    scale = 1 / math.sqrt((LOWEST**2 * 0.2 + 1) * 0.8)
    lowest = LOWEST * scale * 0.8
    assert abs((abs(y - lowest) < 1e-6).float().mean().item() - 0.2) < 0.01
    z = F.feature_alpha_dropout(torch.ones(30, 40, 5), 0.5, True)
    assert torch.equal(z, z[..., :1].expand(30, 40, 5))
    assert (
        torch.equal(nn.AlphaDropout(0.3).eval()(x), x)
        and repr(nn.AlphaDropout(0.3)) == "AlphaDropout(p=0.3, inplace=False)"
    )
    assert nn.FeatureAlphaDropout(1.0)(x).abs().max().item() == 0


@pytest.mark.parametrize("drop", [F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, F.feature_alpha_dropout])
def test_in_place_gradients_and_devices(drop, simulated) -> None:
    shape = (2, 6, 3, 2, 2) if drop is F.dropout3d else (2, 6, 3) if drop is F.dropout1d else (2, 6, 3, 2)
    x = torch.arange(math.prod(shape), dtype=torch.float64).view(shape).requires_grad_()
    torch.manual_seed(5)
    y = drop(x, 0.4, True)
    (first,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    slope = (y.detach() - drop_at_zero(drop, shape)) / x.detach().clamp(min=1e-300)
    slope.view(-1)[0] = second.view(-1)[0].item() ** 0.5 / 2**0.5
    assert torch.allclose(first, 2 * y * slope) and torch.allclose(second, 2 * slope * slope)
    torch.manual_seed(5)
    z = x.detach().clone()
    assert drop(z, 0.4, True, True) is z and torch.allclose(z, y)
    torch.manual_seed(5)
    assert torch.allclose(drop(x.detach().to(simulated), 0.4, True).cpu(), y)
    empty = torch.ones(0, *shape[1:])
    assert drop(empty, 0.4, True) is empty


def drop_at_zero(drop, shape):
    """What the same mask makes of zeros."""
    torch.manual_seed(5)
    return drop(torch.zeros(shape, dtype=torch.float64), 0.4, True)


@pytest.mark.parametrize("drop", [F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, F.feature_alpha_dropout])
@pytest.mark.parametrize("p", [-0.1, 1.5, math.nan])
def test_what_is_no_probability(drop, p: float) -> None:
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1, but got"):
        drop(torch.ones(2, 3), p)


def test_bad_input() -> None:
    with pytest.raises(RuntimeError, match="dropout1d: Expected 2D or 3D input, but received a 4D input"):
        F.dropout1d(torch.ones(1, 2, 3, 4))
    with pytest.raises(RuntimeError, match="Feature dropout requires at least 2 dimensions in the input"):
        F.feature_alpha_dropout(torch.ones(3), 0.5, True)
    with pytest.raises(RuntimeError, match="\"dropout\" not implemented for 'Int'"):
        F.dropout2d(torch.ones(1, 2, 3, 4, dtype=torch.int32))
    with pytest.raises(ValueError, match="dropout probability"):
        nn.FeatureAlphaDropout(2)


@pytest.mark.peer
def test_alpha_dropout_beside_torch() -> None:
    """The two values that ones become, in both libraries."""
    peer = pytest.importorskip("torch")
    for p in (0.1, 0.5, 0.9):
        ours, theirs = (
            np.unique(each.nn.functional.alpha_dropout(each.ones(1000, dtype=each.float64), p, True).numpy())
            for each in (torch, peer)
        )
        np.testing.assert_allclose(ours, theirs, 1e-12)
