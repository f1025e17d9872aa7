"""Convolution layers and lazy modules: what they hold, print, compute, load and refuse, also beside PyTorch."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn
from tritensor.nn import functional as F

PRINTED = {
    "Conv1d(4, 6, kernel_size=(3,), stride=(1,))": lambda nn: nn.Conv1d(4, 6, 3),
    "Conv2d(4, 6, kernel_size=(3, 5), stride=(2, 1), padding=(1, 2), groups=2)": lambda nn: nn.Conv2d(
        4, 6, (3, 5), (2, 1), (1, 2), groups=2
    ),
    "Conv2d(4, 6, kernel_size=(2, 2), stride=(1, 1), padding=same, dilation=(2, 2), padding_mode=circular)": (
        lambda nn: nn.Conv2d(4, 6, 2, padding="same", dilation=2, padding_mode="circular")
    ),
    "Conv2d(4, 6, kernel_size=(3, 3), stride=(1, 1), padding=(2, 1), bias=False, padding_mode=reflect)": (
        lambda nn: nn.Conv2d(4, 6, 3, padding=(2, 1), bias=False, padding_mode="reflect")
    ),
    "Conv1d(4, 6, kernel_size=(2,), stride=(1,), padding=valid, padding_mode=replicate)": lambda nn: nn.Conv1d(
        4, 6, 2, padding="valid", padding_mode="replicate"
    ),
    "Conv3d(4, 6, kernel_size=(1, 2, 3), stride=(1, 1, 1), padding=(1, 1, 1))": lambda nn: nn.Conv3d(
        4, 6, (1, 2, 3), padding=1
    ),
    "ConvTranspose1d(4, 6, kernel_size=(3,), stride=(2,), output_padding=(1,), groups=2)": lambda nn: (
        nn.ConvTranspose1d(4, 6, 3, 2, output_padding=1, groups=2)
    ),
    "ConvTranspose2d(4, 6, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), dilation=(2, 2), bias=False)": (
        lambda nn: nn.ConvTranspose2d(4, 6, 3, 2, 1, bias=False, dilation=2)
    ),
    "ConvTranspose3d(4, 6, kernel_size=(2, 2, 2), stride=(2, 2, 2))": lambda nn: nn.ConvTranspose3d(4, 6, 2, 2),
}


@pytest.mark.parametrize("printed", PRINTED)
def test_layers_print_hold_and_compute(printed: str) -> None:
    torch.manual_seed(0)
    layer = PRINTED[printed](nn)
    assert repr(layer) == printed
    assert list(layer.state_dict()) == ["weight"] + ["bias"] * ("bias=False" not in printed)
    x = torch.randn(2, 4, *[5] * layer._rank)
    y = layer(x)
    assert y.shape[:2] == (2, 6) and y.requires_grad
    torch.testing.assert_close(layer(x[0]), y[0])
    call = getattr(F, f"conv{'_transpose' * layer.transposed}{layer._rank}d")
    if layer.transposed:
        rest = layer.stride, layer.padding, layer.output_padding, layer.groups, layer.dilation
    elif layer.padding_mode == "zeros":
        rest = layer.stride, layer.padding, layer.dilation, layer.groups
    else:
        sides = {"(2, 1)": [1, 1, 2, 2], "same": [1, 1, 1, 1], "valid": [0, 0]}[str(layer.padding)]
        x, rest = F.pad(x, sides, mode=layer.padding_mode), (layer.stride, 0, layer.dilation)
    torch.testing.assert_close(call(x, layer.weight, layer.bias, *rest), y)


def test_parameters_start_uniform_in_pytorchs_bounds() -> None:
    torch.manual_seed(0)
    for layer, terms in ((nn.Conv2d(32, 64, 3, groups=2), 16 * 9), (nn.ConvTranspose2d(32, 64, 3, groups=2), 32 * 9)):
        bound = 1 / math.sqrt(terms)
        for parameter in layer.parameters():
            most = parameter.abs().max().item()
            assert 0.8 * bound < most <= bound
        assert abs(layer.weight.std().item() - bound / math.sqrt(3)) < 0.03 * bound


def test_an_output_size_chooses_the_output_padding() -> None:
    layer = nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1)
    x = torch.ones(1, 2, 4, 4)
    assert layer(x).shape == (1, 3, 7, 7)
    assert layer(x, output_size=[8, 7]).shape == layer(x, (1, 3, 8, 7)).shape == (1, 3, 8, 7)
    assert layer(x[0], [8, 8]).shape == (3, 8, 8)
    with pytest.raises(
        ValueError, match=r"requested an output size of \[9, 7\], but valid sizes range from \[7, 7\] to"
    ):
        layer(x, [9, 7])
    with pytest.raises(
        ValueError, match=r"ConvTranspose2D: for 4D input, output_size must have 2 or 4 elements \(got 3"
    ):
        layer(x, [1, 9, 7])


def test_bad_sizes_are_refused() -> None:
    for call, words in (
        (lambda: nn.Conv2d(4, 6, 3, groups=0), "groups must be a positive integer"),
        (lambda: nn.Conv2d(4, 6, 3, groups=3), "in_channels must be divisible by groups"),
        (lambda: nn.Conv2d(4, 6, 3, groups=4), "out_channels must be divisible by groups"),
        (lambda: nn.Conv2d(4, 6, 3, padding="full"), "Invalid padding string 'full'"),
        (lambda: nn.Conv2d(4, 6, 3, 2, padding="same"), "padding='same' is not supported for strided convolutions"),
        (lambda: nn.Conv2d(4, 6, 3, padding_mode="mirror"), "padding_mode must be one of"),
        (
            lambda: nn.ConvTranspose1d(4, 6, 3, padding_mode="reflect"),
            'Only "zeros" padding mode is supported for ConvT',
        ),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(
        RuntimeError, match=r"expected input\[1, 3, 5, 5\] to have 4 channels, but got 3 channels instead"
    ):
        nn.Conv2d(4, 6, 3)(torch.ones(1, 3, 5, 5))


LAZY = {
    "LazyConv1d": (nn.LazyConv1d, (6, 2), (2, 4, 5)),
    "LazyConv2d": (nn.LazyConv2d, (6, 2), (2, 4, 5, 5)),
    "LazyConv3d": (nn.LazyConv3d, (6, 2), (2, 4, 3, 3, 3)),
    "LazyConvTranspose1d": (nn.LazyConvTranspose1d, (6, 2), (2, 4, 5)),
    "LazyConvTranspose2d": (nn.LazyConvTranspose2d, (6, 2), (2, 4, 5, 5)),
    "LazyConvTranspose3d": (nn.LazyConvTranspose3d, (6, 2), (2, 4, 3, 3, 3)),
    "LazyLinear": (nn.LazyLinear, (6,), (2, 4)),
}


@pytest.mark.parametrize("name", LAZY)
def test_lazy_layers_become_ordinary_ones(name: str) -> None:
    kind, sizes, shape = LAZY[name]
    layer, ordinary = kind(*sizes), getattr(nn, name.removeprefix("Lazy"))
    assert type(layer) is kind and isinstance(layer, ordinary) and layer.has_uninitialized_params()
    assert repr(layer).startswith(name + "(") and repr(layer.weight) == "<UninitializedParameter>"
    weight = layer.weight
    out = layer(torch.ones(*shape))
    assert type(layer) is ordinary and layer.weight is weight and type(weight) is nn.Parameter
    assert repr(layer) == repr(ordinary(4, *sizes)) and weight.shape == ordinary(4, *sizes).weight.shape
    assert 0 < weight.abs().max().item() <= 1 / math.sqrt(math.prod(weight.shape[1:]))
    torch.testing.assert_close(layer(torch.ones(*shape)), out)
    out.sum().backward()
    assert weight.grad.shape == weight.shape and layer.bias.grad.shape == (6,)
    assert not layer._forward_pre_hooks
    without = kind(*sizes, bias=False)
    without(torch.ones(*shape))
    assert without.bias is None and type(without) is ordinary


def test_uninitialized_parameters_refuse_to_be_used() -> None:
    layer = nn.LazyConv2d(6, 3)
    weight = layer.weight
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter or buffer"):
        weight.shape  # noqa: B018
    for call in (lambda: weight + 1, lambda: weight.sum(), lambda: weight.tolist(), lambda: weight.numel()):
        with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
            call()
    assert weight.dtype is torch.float32 and weight.device == torch.device("cpu") and weight.requires_grad
    with pytest.raises(RuntimeError, match=r"Expected 3D \(unbatched\) or 4D \(batched\) input to LazyConv2d, but got"):
        layer(torch.ones(2, 2))
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        nn.LazyConv2d(6, 3, groups=2)(torch.ones(1, 3, 5, 5))
    assert nn.UninitializedBuffer(dtype=torch.int64).dtype is torch.int64

    class Half(nn.lazy.LazyModuleMixin, nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.UninitializedParameter()
            self.register_buffer("total", nn.UninitializedBuffer())

        def initialize_parameters(self, x: Any) -> None:
            self.weight.materialize((2,))

        def forward(self, x: Any) -> Any:
            return x

    with pytest.raises(RuntimeError, match="module Half has not been fully initialized"):
        Half()(torch.ones(1))
    plain = type("Plain", (nn.lazy.LazyModuleMixin, nn.Module), {"forward": lambda self, x: x})
    with pytest.raises(NotImplementedError, match="initialize_parameters is not implemented for Plain"):
        plain()(torch.ones(1))


def test_lazy_modules_move_cast_copy_and_save() -> None:
    layer = nn.Sequential(nn.LazyConv2d(6, 3), nn.LazyLinear(2)).double()
    other = copy.deepcopy(layer)
    assert other[0].weight is not layer[0].weight and repr(other[0].weight) == "<UninitializedParameter>"
    assert layer(torch.ones(1, 3, 5, 5, dtype=torch.float64)).dtype is torch.float64
    assert other[0].weight.dtype is torch.float64 and other[0].has_uninitialized_params()
    assert list(other.state_dict()) == list(layer.state_dict())
    third = nn.Sequential(nn.LazyConv2d(6, 3), nn.LazyLinear(2))
    assert third.load_state_dict(other.state_dict()) == ([], []) and third[0].has_uninitialized_params()
    third.load_state_dict(layer.state_dict())
    assert type(third[0]) is nn.LazyConv2d and not third[0].has_uninitialized_params()
    x = torch.randn(1, 3, 5, 5)
    torch.testing.assert_close(third(x), layer.float()(x))
    assert repr(third) == repr(layer)
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter"):
        layer.load_state_dict(other.state_dict())
    assert pickle.loads(pickle.dumps(nn.LazyLinear(3)))(torch.ones(2, 4)).shape == (2, 3)


def test_a_load_that_is_refused_leaves_lazy_parameters_without_a_shape() -> None:
    layer = nn.LazyLinear(3)
    state = {"weight": torch.ones(3, 4), "bias": torch.ones(3), "more": torch.ones(1)}
    with pytest.raises(RuntimeError, match="Unexpected key"):
        layer.load_state_dict(state)
    assert layer.has_uninitialized_params()
    layer.register_load_state_dict_post_hook(lambda module, keys: None)
    with pytest.raises(RuntimeError, match="Unexpected key"):
        layer.load_state_dict(state)
    assert repr(layer.weight) == repr(layer.bias) == "<UninitializedParameter>"
    layer.load_state_dict(state, strict=False)
    assert layer(torch.ones(1, 4)).tolist() == [[5.0] * 3]


@pytest.mark.peer
@pytest.mark.parametrize("printed", PRINTED)
def test_layers_beside_pytorch(printed: str) -> None:
    """Values, gradients, state and prints for equal weights, and statistics of the initial ones."""
    peer = pytest.importorskip("torch")
    torch.manual_seed(0)
    ours, theirs = PRINTED[printed](nn), PRINTED[printed](peer.nn)
    assert repr(ours) == repr(theirs)
    theirs.load_state_dict({name: peer.from_numpy(value.numpy()) for name, value in ours.state_dict().items()})
    assert list(ours.state_dict()) == list(theirs.state_dict())
    array = np.random.default_rng(0).standard_normal((2, 4, *[5] * ours._rank)).astype(np.float32)
    found = []
    for library, layer, tensor in ((torch, ours, torch.tensor(array)), (peer, theirs, peer.tensor(array))):
        tensor.requires_grad_()
        y = layer(tensor)
        (y * y).sum().backward()
        assert tuple(y.stride()) == tuple(library.empty(y.shape).stride())
        found.append([y, tensor.grad, *[parameter.grad for parameter in layer.parameters()]])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=2e-4, atol=2e-4)


def test_gradients_of_convolutions_as_functions() -> None:
    geometry = {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "groups": 2}
    x = torch.rand(2, 4, 7, 6, requires_grad=True)
    kernel = torch.rand(6, 2, 3, 2, requires_grad=True)
    y = torch.nn.functional.conv2d(x, kernel, **geometry)
    gradient = torch.rand(*y.shape)
    y.backward(gradient)
    assert torch.equal(torch.nn.grad.conv2d_input(x.shape, kernel, gradient, **geometry), x.grad)
    assert torch.equal(torch.nn.grad.conv2d_weight(x, kernel.shape, gradient, **geometry), kernel.grad)
    signal, weight = torch.rand(1, 2, 9), torch.rand(3, 2, 3)
    assert torch.nn.grad.conv1d_input(signal.shape, weight, torch.rand(1, 3, 4), stride=2).shape == signal.shape
    assert torch.nn.grad.conv1d_weight.__name__ == "conv1d_weight"
