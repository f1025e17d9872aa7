"""Layers that normalise channels: modes, running statistics, state, how they print, and PyTorch beside them."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn
from tritensor.errors import CheckpointError

from ..needs import needs_triton

T = torch.tensor
SHAPES = {1: (4, 3, 5), 2: (4, 3, 2, 5), 3: (2, 3, 2, 2, 3)}


def drawn(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(1, 2, shape)).float()


@pytest.mark.parametrize("momentum", [0.1, None])
def test_batch_norm_trains_tracks_and_evaluates(momentum):
    layer = nn.BatchNorm1d(2, momentum=momentum)
    batches = [T([[1.0, 2.0], [3.0, 6.0]]), T([[0.0, 0.0], [4.0, 1.0]])]
    out = layer(batches[0])
    torch.testing.assert_close(out, T([[-1.0, -1.0], [1.0, 1.0]]), atol=1e-4, rtol=0)
    layer(batches[1])
    assert layer.num_batches_tracked.item() == 2
    if momentum is None:  # the mean of the batches'
        wanted_mean, wanted_var = [2.0, 2.25], [5.0, 4.25]
    else:
        wanted_mean, wanted_var = [0.38, 0.41], [1.79, 1.58]
    torch.testing.assert_close(layer.running_mean, T(wanted_mean))
    torch.testing.assert_close(layer.running_var, T(wanted_var))
    before = copy.deepcopy(layer.state_dict())
    layer.eval()
    wanted = (batches[0] - layer.running_mean) / (layer.running_var + 1e-5).sqrt()
    torch.testing.assert_close(layer(batches[0]), wanted)
    torch.testing.assert_close(layer(batches[0][:1]), wanted[:1])
    for name, value in layer.state_dict().items():
        assert value.tolist() == before[name].tolist()


@needs_triton
@pytest.mark.parametrize("momentum", [0.2, None])
def test_a_device_gives_the_same_statistics(momentum):
    with torch.cuda.simulate(devices=1):
        layers = [nn.BatchNorm2d(3, momentum=momentum), nn.BatchNorm2d(3, momentum=momentum).cuda()]
        for layer in layers:
            for seed in range(3):
                layer(drawn(4, 3, 2, 5, seed=seed).to(layer.weight.device)).sum().backward()
        for name, value in layers[0].state_dict().items():
            torch.testing.assert_close(layers[1].state_dict()[name].cpu(), value)


def test_without_running_statistics_the_batch_is_used_in_evaluation():
    layer = nn.BatchNorm1d(2, affine=False, track_running_stats=False).eval()
    assert dict(layer.state_dict()) == {}
    assert layer(T([[1.0, 2.0], [3.0, 6.0]])).mean(0).tolist() == pytest.approx([0, 0], abs=1e-6)


@pytest.mark.parametrize("name", ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d"])
def test_a_state_without_the_count_is_read(name):
    layer = getattr(nn, name)(3)
    layer(drawn(*SHAPES[int(name[-2])]))
    state = layer.state_dict()
    assert state._metadata[""] == {"version": 2}
    del state["num_batches_tracked"]
    with pytest.raises(CheckpointError, match="num_batches_tracked"):
        getattr(nn, name)(3).load_state_dict(state)
    del state._metadata
    for holder in (getattr(nn, name)(3), nn.Sequential(getattr(nn, name)(3))):
        named = {("0." if isinstance(holder, nn.Sequential) else "") + key: value for key, value in state.items()}
        assert str(holder.load_state_dict(named)) == "<All keys matched successfully>"
        tracked = [value.item() for key, value in holder.state_dict().items() if key.endswith("num_batches_tracked")]
        assert tracked == [0]


def test_instance_norm_refuses_statistics_of_old_states():
    state = {"running_mean": torch.zeros(3), "running_var": torch.ones(3)}
    with pytest.raises(CheckpointError, match="Unexpected running stats buffer"):
        nn.InstanceNorm1d(3).load_state_dict(state)


def test_instance_norm_of_one_example():
    x = drawn(3, 7)
    layer = nn.InstanceNorm1d(3, affine=True)
    torch.testing.assert_close(layer(x), layer(x.unsqueeze(0))[0])
    with pytest.raises(ValueError, match="expected input's size at dim=0 to match num_features"):
        layer(drawn(2, 7))
    with pytest.warns(UserWarning, match="input's size at dim=1 does not match num_features"):
        nn.InstanceNorm1d(3)(drawn(2, 4, 7))


RANKS = {
    "BatchNorm1d": ((2, 3), "expected 2D or 3D input (got 4D input)"),
    "BatchNorm2d": ((4,), "expected 4D input (got 5D input)"),
    "BatchNorm3d": ((5,), "expected 5D input (got 6D input)"),
    "InstanceNorm1d": ((2, 3), "expected 2D or 3D input (got 4D input)"),
    "InstanceNorm2d": ((3, 4), "expected 3D or 4D input (got 5D input)"),
    "InstanceNorm3d": ((4, 5), "expected 4D or 5D input (got 6D input)"),
}


@pytest.mark.parametrize("name", RANKS)
def test_other_ranks_are_refused(name):
    ranks, words = RANKS[name]
    layer = getattr(nn, name)(2)
    for rank in ranks:
        layer(torch.ones((2,) * rank))
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - compared below
        layer(torch.ones((2,) * (ranks[-1] + 1)))
    assert str(caught.value) == words


def test_group_norm_needs_a_divisor():
    with pytest.raises(ValueError, match=r"num_channels \(5\) must be divisible by num_groups \(2\)"):
        nn.GroupNorm(2, 5)


def test_one_process_needs_no_others():
    plain = nn.BatchNorm2d(3)
    layers = nn.Sequential(nn.Linear(5, 5), nn.Sequential(plain, nn.InstanceNorm2d(3)))
    made = nn.SyncBatchNorm.convert_sync_batchnorm(layers)
    assert made is layers and isinstance(made[1][1], nn.InstanceNorm2d)
    layer = made[1][0]
    assert layer.weight is plain.weight and layer.running_mean is plain.running_mean
    x = drawn(4, 3, 2, 5)
    torch.testing.assert_close(layer(x), nn.BatchNorm2d(3)(x))
    with pytest.raises(ValueError, match="expected at least 2D input"):
        layer(torch.ones(3))
    with pytest.raises(ValueError, match="SyncBatchNorm number of input channels should be non-zero"):
        layer(torch.ones(3, 0))


def test_a_lazy_layer_that_was_moved_takes_its_channels_from_the_first_input(device):
    for kind in (nn.LazyBatchNorm1d, nn.LazyInstanceNorm1d):
        layer = kind(track_running_stats=True).to(device, torch.float64)
        assert layer.has_uninitialized_params() and layer.running_mean.dtype is torch.float64
        layer(torch.ones(4, 3, 2, dtype=torch.float64, device=device))
        assert layer.running_mean.shape == (3,) and layer.running_mean.device == layer.weight.device
        assert {each.dtype for each in (layer.running_var, layer.weight)} == {torch.float64}


def test_a_lazy_layer_is_an_ordinary_one_after_its_first_input():
    for name in RANKS:
        layer = getattr(nn, f"Lazy{name}")(momentum=0.5, bias=False)
        assert repr(layer.weight) == "<UninitializedParameter>" and layer.bias is None
        shape = SHAPES[int(name[-2])]
        layer(drawn(*shape))
        assert type(layer) is getattr(nn, name)
        assert layer.num_features == 3 and layer.weight.tolist() == [1, 1, 1]
        plain = getattr(nn, name)(3, momentum=0.5, affine=True, track_running_stats=True, bias=False)
        plain(drawn(*shape))
        for key, value in plain.state_dict().items():
            torch.testing.assert_close(layer.state_dict()[key], value)
    layer = nn.LazyBatchNorm1d(affine=False, track_running_stats=False)
    assert layer(drawn(4, 3)).shape == (4, 3) and type(layer) is nn.BatchNorm1d
    layer = nn.LazyBatchNorm2d()
    layer.load_state_dict(nn.BatchNorm2d(5).state_dict())
    layer(torch.ones(2, 5, 2, 2))
    assert layer.num_features == 5


# ---- beside PyTorch --------------------------------------------------------------------------------------------

LAYERS = {
    "BatchNorm": [
        {},
        {"momentum": None},
        {"affine": False},
        {"bias": False},
        {"track_running_stats": False},
        {"eps": 0.1, "momentum": 0.7},
    ],
    "InstanceNorm": [
        {},
        {"affine": True},
        {"affine": True, "track_running_stats": True},
        {"affine": True, "bias": False},
    ],
}
CASES = [(f"{name}{rank}d", (3,), options) for name, many in LAYERS.items() for options in many for rank in (1, 2, 3)]
CASES += [("GroupNorm", (3, 6), {}), ("GroupNorm", (1, 6), {"affine": False}), ("GroupNorm", (6, 6), {"bias": False})]
CASES += [("LocalResponseNorm", (3,), {}), ("LocalResponseNorm", (2,), {"alpha": 0.1, "beta": 0.5, "k": 2.0})]


@pytest.mark.peer
@pytest.mark.parametrize("name", RANKS)
def test_lazy_layers_print_as_pytorchs(name):
    peer = pytest.importorskip("torch")
    shape = SHAPES[int(name[-2])]
    for options in ({}, {"affine": False}, {"bias": False, "eps": 0.1}):
        ours, theirs = (getattr(module.nn, f"Lazy{name}")(**options) for module in (torch, peer))
        assert repr(ours) == repr(theirs)
        assert list(ours.state_dict()) == list(theirs.state_dict())
        ours(torch.ones(shape))
        theirs(peer.ones(shape))
        assert repr(ours) == repr(theirs)


@pytest.mark.peer
@pytest.mark.parametrize(("name", "arguments", "options"), CASES, ids=str)
def test_layers_are_pytorchs(name, arguments, options):
    peer = pytest.importorskip("torch")
    ours, theirs = (getattr(module.nn, name)(*arguments, **options) for module in (torch, peer))
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    shape = SHAPES[int(name[-2])] if name[-1] == "d" else (4, 6, 3, 5)
    for mode in (True, True, False):
        ours.train(mode)
        theirs.train(mode)
        x, grad = drawn(*shape, seed=mode), drawn(*shape, seed=7)
        found = []
        for module, layer in ((torch, ours), (peer, theirs)):
            given = module.from_numpy(x.numpy().copy()).requires_grad_()
            out = layer(given)
            out.backward(module.from_numpy(grad.numpy()))
            parts = [
                out.detach(),
                given.grad,
                *[each.grad for each in layer.parameters()],
                *layer.state_dict().values(),
            ]
            found.append([each.numpy() for each in parts])
        for one, other in zip(*found, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)
