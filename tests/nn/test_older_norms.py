"""PyTorch's older weight and spectral norm: what a module holds, what it computes, and how it is undone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn

pytestmark = pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated:FutureWarning")


def drawn(*shape: int, seed: int = 0) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def linear() -> nn.Linear:
    made = nn.Linear(3, 2).double()
    made.weight.data.copy_(drawn(2, 3))
    return made


@pytest.mark.parametrize(("dim", "shape"), [(0, (2, 1)), (1, (1, 3)), (None, ())])
def test_weight_norm(dim: int | None, shape: tuple[int, ...]) -> None:
    made = linear()
    before = made.weight.detach().clone()
    assert nn.utils.weight_norm(made, dim=dim) is made
    assert {name: tuple(each.shape) for name, each in made.named_parameters()} == {
        "bias": (2,),
        "weight_g": shape,
        "weight_v": (2, 3),
    }
    np.testing.assert_allclose(made.weight.detach().numpy(), before.numpy(), rtol=1e-12)
    with torch.no_grad():
        made.weight_g.mul_(2)
    made(drawn(1, 3)).sum().backward()
    np.testing.assert_allclose(made.weight.detach().numpy(), 2 * before.numpy(), rtol=1e-12)
    assert made.weight_g.grad is not None and made.weight_v.grad is not None
    with pytest.raises(RuntimeError, match="Cannot register two weight_norm hooks on the same parameter weight"):
        nn.utils.weight_norm(made)
    assert nn.utils.remove_weight_norm(made) is made
    assert list(made.state_dict()) == ["bias", "weight"] and not made._forward_pre_hooks
    np.testing.assert_allclose(made.weight.detach().numpy(), 2 * before.numpy(), rtol=1e-12)
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found in Linear"):
        nn.utils.remove_weight_norm(made)


def test_a_bias_has_a_length_for_each_element() -> None:
    made = nn.utils.weight_norm(linear(), "bias")
    assert made.bias_g.tolist() == made.bias_v.abs().tolist()
    assert torch.norm_except_dim(torch.tensor([3.0, -4.0])).tolist() == [3.0, 4.0]


def test_weight_norm_is_deprecated() -> None:
    words = "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`"
    with pytest.warns(FutureWarning, match=words):
        nn.utils.weight_norm(nn.Linear(2, 2))


def test_spectral_norm() -> None:
    torch.manual_seed(0)
    made = linear()
    original = made.weight
    assert nn.utils.spectral_norm(made, n_power_iterations=30) is made
    assert list(made.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    np.testing.assert_array_equal(made.weight.numpy(), original.detach().numpy())  # up to the first call
    out = made(drawn(1, 3))
    np.testing.assert_allclose(np.linalg.norm(made.weight.detach().numpy(), 2), 1, rtol=1e-9)
    u = made.weight_u.clone()
    made.eval()
    np.testing.assert_array_equal(made(drawn(1, 3)).detach().numpy(), out.detach().numpy())
    assert torch.equal(made.weight_u, u)
    out.sum().backward()
    assert original.grad is not None
    with pytest.raises(RuntimeError, match="Cannot register two spectral_norm hooks on the same parameter weight"):
        nn.utils.spectral_norm(made)
    weight = made.weight.detach()
    assert nn.utils.remove_spectral_norm(made) is made
    assert list(made.state_dict()) == ["bias", "weight"] and isinstance(made.weight, nn.Parameter)
    np.testing.assert_allclose(made.weight.detach().numpy(), weight.numpy(), rtol=1e-12)
    with pytest.raises(ValueError, match="spectral_norm of 'weight' not found in Linear"):
        nn.utils.remove_spectral_norm(made)


def test_spectral_norm_of_other_layers() -> None:
    made = nn.utils.spectral_norm(nn.ConvTranspose1d(4, 2, 3))
    assert made.weight_u.shape == (2,) and made.weight_v.shape == (12,)
    assert nn.utils.spectral_norm(nn.Conv1d(4, 2, 3)).weight_u.shape == (2,)
    with pytest.raises(ValueError, match="Expected n_power_iterations to be positive, but got n_power_iterations=0"):
        nn.utils.spectral_norm(linear(), n_power_iterations=0)
    with pytest.raises(ValueError, match="`SpectralNorm` cannot be applied as parameter `bias` is None"):
        nn.utils.spectral_norm(nn.Linear(2, 2, bias=False), "bias")


@pytest.mark.peer
def test_pytorch_computes_the_same() -> None:
    peer = pytest.importorskip("torch")
    own = nn.utils.spectral_norm(nn.utils.weight_norm(nn.Conv2d(2, 3, 2).double(), "bias"))
    theirs = peer.nn.utils.spectral_norm(peer.nn.utils.weight_norm(peer.nn.Conv2d(2, 3, 2).double(), "bias"))
    assert list(own.state_dict()) == list(theirs.state_dict())
    theirs.load_state_dict({name: peer.tensor(value.numpy()) for name, value in own.state_dict().items()})
    found = []
    for library, made in ((torch, own), (peer, theirs)):
        x = library.tensor(drawn(2, 2, 4, 4).numpy())
        parts = [made(x) for _ in range(3)]
        parts[-1].square().sum().backward()
        parts += [made.eval()(x), made.weight_u, made.weight_v, made.weight_orig.grad, made.bias_g.grad]
        found.append([each.detach().numpy() for each in parts])
    for mine, wanted in zip(*found, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-9, atol=1e-12)
