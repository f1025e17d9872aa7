"""Parameters computed from others: names, state, gradients, removal; and batch norm fused into the layer before it."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn
from tritensor.autograd import gradcheck, gradgradcheck
from tritensor.nn.utils import fusion, parametrizations, parametrize


def drawn(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(0, 1, shape)).float()


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT

    def right_inverse(self, x):
        return x.triu()


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x


def test_a_parametrized_weight_is_computed():
    layer = nn.Linear(3, 3)
    weight = layer.weight
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert type(layer).__name__ == "ParametrizedLinear" and isinstance(layer, nn.Linear)
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    assert layer.parametrizations.weight.original is weight
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert layer.weight.tolist() == layer.weight.T.tolist()
    parametrize.register_parametrization(layer, "weight", Doubled())
    torch.testing.assert_close(layer.weight, 2 * (weight.triu() + weight.triu(1).mT))
    layer(torch.ones(1, 3)).sum().backward()
    assert weight.grad.tolist() == [[2, 4, 4], [0, 2, 4], [0, 0, 2]]
    with pytest.raises(RuntimeError, match="parametrization Doubled does not implement right_inverse"):
        layer.weight = torch.ones(3, 3)
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    value = layer.weight.tolist()
    twin = copy.deepcopy(layer)
    assert twin.weight.tolist() == value and twin.parametrizations.weight.original is not weight
    with pytest.raises(RuntimeError, match="Serialization of parametrized modules is only"):
        pickle.dumps(layer)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and layer.weight is weight and layer.weight.tolist() == value
    assert list(layer.state_dict()) == ["bias", "weight"]
    assert parametrize.is_parametrized(twin, "weight") and not parametrize.is_parametrized(layer)


def test_the_original_comes_back():
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Doubled())
    original = layer.parametrizations.weight.original
    before = original.tolist()
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    assert layer.weight is original and layer.weight.tolist() == before


def transferred(library, tensor_name, second):
    """What another module has after a transfer, and whether its parameters are the first module's."""
    nn, utils = library.nn, library.nn.utils
    first = utils.parametrizations.weight_norm(nn.Linear(3, 2), dim=None)
    utils.parametrizations.spectral_norm(first.eval())
    second = getattr(nn, second)(*[3, 2] * (second == "Linear")).eval()
    assert utils.parametrize.transfer_parametrizations_and_params(first, second, tensor_name) is second
    names = [name for name, _ in second.named_parameters()]
    shared = [
        dict(first.named_parameters())[name] is each for name, each in second.named_parameters() if "para" in name
    ]
    return (
        names,
        shared,
        [kind.__name__ for kind in type(second).__mro__[:2]],
        bool((first.weight == second.weight).all()),
    )


def test_a_transfer():
    names, shared, kinds, alike = transferred(torch, None, "Linear")
    assert names == ["bias", "parametrizations.weight.original0", "parametrizations.weight.original1"]
    assert shared == [True, True] and kinds == ["ParametrizedLinear", "Linear"] and alike
    plain = nn.Linear(2, 2)
    assert parametrize.transfer_parametrizations_and_params(nn.Linear(2, 2), plain) is plain
    assert type(plain) is nn.Linear
    with pytest.raises(KeyError):
        parametrize.transfer_parametrizations_and_params(parametrizations.weight_norm(nn.Linear(2, 2)), plain, "bias")


@pytest.mark.peer
@pytest.mark.parametrize("name", [None, "weight"])
@pytest.mark.parametrize("second", ["Linear", "Module"])
def test_a_transfer_beside_torch(name, second):
    reference = pytest.importorskip("torch")
    assert transferred(torch, name, second) == transferred(reference, name, second)


def test_a_buffer_and_assignment():
    layer = nn.BatchNorm1d(2)
    parametrize.register_parametrization(layer, "running_var", Doubled())
    assert layer.running_var.tolist() == [2.0, 2.0]
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Symmetric())
    layer.weight = torch.tensor([[1.0, 2.0], [2.0, 3.0]])
    assert layer.weight.tolist() == [[1.0, 2.0], [2.0, 3.0]]
    assert layer.parametrizations.weight.original.tolist() == [[1.0, 2.0], [0.0, 3.0]]


def test_what_does_not_fit_is_refused():
    class Wider(nn.Module):
        def forward(self, x):
            return x.double()

    layer = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="may not change the dtype"):
        parametrize.register_parametrization(layer, "weight", Wider())
    assert type(layer) is nn.Linear and layer.weight.dtype is torch.float32
    parametrize.register_parametrization(layer, "weight", Wider(), unsafe=True)
    assert layer.weight.dtype is torch.float64
    with pytest.raises(ValueError, match="does not have a parameter, a buffer, or a parametrized element with name"):
        parametrizations.weight_norm(nn.Linear(2, 2), "scale")
    with pytest.raises(ValueError, match="has no parameter or buffer with name 'scale'"):
        parametrizations.spectral_norm(nn.Linear(2, 2), "scale")
    with pytest.raises(IndexError, match="Dimension out of range"):
        parametrizations.spectral_norm(nn.Linear(2, 2), dim=2)
    with pytest.raises(ValueError, match="Expected n_power_iterations to be positive"):
        parametrizations.spectral_norm(nn.Linear(2, 2), n_power_iterations=0)
    with pytest.raises(ValueError, match="does not have a parametrization on bias"):
        parametrize.remove_parametrizations(layer, "bias")
    layer = parametrizations.weight_norm(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="Cannot leave unparametrized"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)


@pytest.mark.parametrize(("dim", "shape"), [(0, (4, 1)), (1, (1, 3)), (None, ())])
def test_weight_norm_has_a_length_and_a_direction(dim, shape):
    layer = nn.Linear(3, 4)
    weight = layer.weight.detach().clone()
    parametrizations.weight_norm(layer, dim=dim)
    entry = layer.parametrizations.weight
    assert entry.original0.shape == shape
    torch.testing.assert_close(layer.weight, weight)
    with torch.no_grad():
        entry.original0.mul_(2)
    torch.testing.assert_close(layer.weight, 2 * weight)
    g, v = (each.detach().double().requires_grad_() for each in (entry.original0, entry.original1))
    gradcheck(entry[0], (g, v))
    gradgradcheck(entry[0], (g, v))
    older = {"bias": layer.bias, "weight_g": entry.original0 * 3, "weight_v": entry.original1}
    layer.load_state_dict(older)
    torch.testing.assert_close(layer.weight, 6 * weight)


def test_spectral_norm_bounds_the_largest_singular_value():
    torch.manual_seed(1)
    layer = parametrizations.spectral_norm(nn.Linear(6, 4), n_power_iterations=20)
    assert np.linalg.svd(layer.weight.detach().numpy())[1][0] == pytest.approx(1, rel=1e-3)
    layer.eval()
    first, second = layer.weight, layer.weight
    assert first.tolist() == second.tolist()
    (layer.train()(drawn(2, 6)) - layer(drawn(2, 6, seed=1))).sum().backward()  # two uses before one backward
    assert layer.parametrizations.weight.original.grad is not None
    vector = parametrizations.spectral_norm(nn.LayerNorm(4))
    torch.testing.assert_close(vector.weight, torch.full((4,), 0.5))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm_joins_the_linear_layer_before_it(bias, affine):
    linear, norm = nn.Linear(3, 4, bias=bias), nn.BatchNorm1d(4, affine=affine)
    for seed in range(3):
        norm(linear(drawn(8, 3, seed=seed)))
    if affine:
        nn.init.uniform_(norm.weight)
    with pytest.raises(AssertionError, match="Fusion only for eval!"):
        fusion.fuse_linear_bn_eval(linear, norm)
    fused = nn.utils.fuse_linear_bn_eval(linear.eval(), norm.eval())
    torch.testing.assert_close(fused(drawn(5, 3)), norm(linear(drawn(5, 3))))
    assert fused.weight.requires_grad and fused is not linear
    with pytest.raises(AssertionError, match=r"To fuse, linear\.out_features == bn\.num_features"):
        fusion.fuse_linear_bn_eval(linear, nn.BatchNorm1d(3).eval())
    with pytest.raises(AssertionError, match="must not be None"):
        fusion.fuse_linear_bn_eval(linear, nn.BatchNorm1d(4, track_running_stats=False).eval())


@pytest.mark.parametrize("transpose", [False, True])
def test_weights_of_convolutions_are_scaled_by_output(transpose):
    weight = drawn(2, 3, 4, 4)
    outputs = weight.shape[1 if transpose else 0]
    mean, var, scale, shift = (drawn(outputs, seed=seed).abs() for seed in range(4))
    fused, bias = fusion.fuse_conv_bn_weights(weight, None, mean, var, 1e-5, scale, shift, transpose)
    factor = scale / (var + 1e-5).sqrt()
    shape = (1, -1, 1, 1) if transpose else (-1, 1, 1, 1)
    torch.testing.assert_close(fused.detach(), weight * factor.reshape(shape))
    torch.testing.assert_close(bias.detach(), shift - mean * factor)


@pytest.mark.skipif(not hasattr(nn, "Conv2d"), reason="needs convolutions")
def test_batch_norm_joins_the_convolution_before_it():
    conv, norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
    norm(conv(drawn(4, 3, 6, 6)))
    fused = nn.utils.fuse_conv_bn_eval(conv.eval(), norm.eval())
    torch.testing.assert_close(fused(drawn(2, 3, 6, 6)), norm(conv(drawn(2, 3, 6, 6))), rtol=1e-4, atol=1e-5)


# ---- beside PyTorch --------------------------------------------------------------------------------------------


@pytest.mark.peer
@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
@pytest.mark.parametrize("dim", [None, 0, 1])
def test_parametrizations_are_pytorchs(name, dim):
    peer = pytest.importorskip("torch")
    theirs = getattr(peer.nn.utils.parametrizations, name)(peer.nn.Linear(5, 4), dim=dim)
    ours = getattr(parametrizations, name)(nn.Linear(5, 4), dim=dim)
    assert repr(ours) == repr(theirs)
    assert {key: tuple(value.shape) for key, value in ours.state_dict().items()} == {
        key: tuple(value.shape) for key, value in theirs.state_dict().items()
    }
    ours.load_state_dict({key: torch.from_numpy(value.numpy().copy()) for key, value in theirs.state_dict().items()})
    for mode in (True, True, False):
        x = drawn(3, 5, seed=mode)
        results = []
        for module, layer in ((torch, ours), (peer, theirs)):
            layer.train(mode).zero_grad()
            out = layer(module.from_numpy(x.numpy()))
            out.square().sum().backward()
            results.append([out.detach(), *[each.grad for each in layer.parameters()], *layer.state_dict().values()])
        for one, other in zip(*results, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=1e-5)


def test_a_state_dict_keeps_its_elements_when_a_parametrization_comes_or_goes() -> None:
    class Double(nn.Module):
        def forward(self, weight):
            return weight * 2

        def right_inverse(self, weight):
            return weight / 2

    layer = nn.Linear(2, 1, bias=False)
    nn.init.ones_(layer.weight)
    parameter, before = layer.weight, layer.state_dict()
    parametrize.register_parametrization(layer, "weight", Double())
    during = layer.state_dict()
    layer.weight = torch.tensor([[6.0, 8.0]])
    assert before["weight"].tolist() == [[1, 1]] and during["parametrizations.weight.original"].tolist() == [[0.5, 0.5]]
    during = layer.state_dict()
    parametrize.remove_parametrizations(layer, "weight")
    assert layer.weight is parameter and layer.weight.tolist() == [[6, 8]]
    assert during["parametrizations.weight.original"].tolist() == [[3, 4]]


@pytest.mark.parametrize("made", [nn.utils.spectral_norm, nn.utils.parametrizations.spectral_norm])
def test_spectral_norm_computes_in_float32_under_autocast(made: Any) -> None:
    layer = made(nn.Linear(3, 4))
    plain = copy.deepcopy(layer)
    with torch.autocast("cpu"):
        out = layer(torch.ones(2, 3))
    assert out.dtype is torch.bfloat16
    assert torch.allclose(out.float(), plain(torch.ones(2, 3)), 2e-2, 1e-2)
    assert all(torch.equal(one, other) for one, other in zip(layer.buffers(), plain.buffers(), strict=True))
