"""Batch, group, instance and local response normalisation: values, running statistics, layouts, messages, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.autograd import gradcheck, gradgradcheck
from tritensor.nn import functional as F

from ..needs import needs_triton

T = torch.tensor


def drawn(*shape, dtype=torch.float32, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(2, 3, shape)).to(dtype)


def by_hand(x, dims, weight=None, bias=None, eps=1e-5):
    """The definition, in float64."""
    x = np.asarray(x.double().numpy())
    out = (x - x.mean(dims, keepdims=True)) / np.sqrt(x.var(dims, keepdims=True) + eps)
    shape = (-1,) + (1,) * (x.ndim - 2)
    if weight is not None:
        out = out * weight.double().numpy().reshape(shape)
    return out if bias is None else out + bias.double().numpy().reshape(shape)


SHAPES = [(5, 3), (4, 3, 7), (2, 4, 3, 5), (2, 3, 2, 3, 4), (3, 2, 60), (2, 2, 9, 31), (40, 8, 5, 5), (9, 20, 90, 40)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("affine", [False, True])
def test_batch_norm_is_the_definition(shape, affine):
    x = drawn(*shape)
    weight, bias = (drawn(shape[1], seed=seed) if affine else None for seed in (1, 2))
    dims = (0, *range(2, len(shape)))
    wanted = by_hand(x, dims, weight, bias)
    for layout in (x, x.transpose(0, 1).contiguous().transpose(0, 1), drawn(2, *shape)[0].copy_(x)):
        out = F.batch_norm(layout, None, None, weight, bias, training=True)
        np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-4, atol=2e-5)
        assert out.is_contiguous()
    double = F.batch_norm(
        x.double(), None, None, *[each if each is None else each.double() for each in (weight, bias)], training=True
    )
    np.testing.assert_allclose(double.numpy(), wanted, rtol=1e-10, atol=1e-10)


def test_a_mean_far_from_zero_costs_no_accuracy():
    x = drawn(8, 4, 11, 11) + 10000
    wanted = by_hand(x, (0, 2, 3))
    np.testing.assert_allclose(F.batch_norm(x, None, None, training=True).numpy(), wanted, atol=1e-2)
    rows = x.permute(0, 2, 3, 1).reshape(-1, 4)
    np.testing.assert_allclose(F.batch_norm(rows, None, None, training=True).numpy(), by_hand(rows, 0), atol=1e-2)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", [(2, 4, 3, 5), (3, 6, 2, 2, 3)], ids=str)
@pytest.mark.parametrize("call", ["batch", "eval", "group", "instance"])
def test_channels_last_stays_channels_last(device, shape, call):
    calls = {
        "batch": lambda x: F.batch_norm(x, None, None, training=True),
        "eval": lambda x: F.batch_norm(x, x.new_zeros(shape[1]), x.new_ones(shape[1])),
        "group": lambda x: F.group_norm(x, 2),
        "instance": F.instance_norm,
    }
    format = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
    x = drawn(*shape).to(device)
    wanted = calls[call](x)
    last = x.to(memory_format=format).requires_grad_()
    found = calls[call](last)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    if call != "instance":
        assert found.is_contiguous(memory_format=format)
    grad = drawn(*shape, seed=3).to(device)
    found.backward(grad.to(memory_format=format))
    plain = x.clone().requires_grad_()
    calls[call](plain).backward(grad)
    torch.testing.assert_close(last.grad, plain.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.sampled(1)
@needs_triton
@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 17), (2, 4, 5, 7)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_kernels_agree_with_the_cpu_in_small_blocks(shape, dtype):
    x, grad = drawn(*shape, dtype=dtype), drawn(*shape, dtype=dtype, seed=1)
    weight, bias = (drawn(shape[1], seed=seed) for seed in (2, 3))
    calls = [
        lambda x, weight, bias: F.batch_norm(x, None, None, weight, bias, training=True),
        lambda x, weight, bias: F.group_norm(x, 2, weight, bias),
        lambda x, weight, bias: F.group_norm(x, 2),
    ]
    with torch.cuda.simulate(devices=1), settings.block(16):
        for call in calls:
            results = []
            for place in ("cpu", "cuda"):
                leaves = [each.detach().to(place).requires_grad_() for each in (x, weight, bias)]
                out = call(*leaves)
                out.backward(grad.to(place))
                results.append([out.detach(), *[each.grad for each in leaves]])
            for found, wanted in zip(results[1], results[0], strict=True):
                if wanted is None:
                    assert found is None
                    continue
                tolerance = 2e-2 if dtype is torch.bfloat16 else 2e-4
                torch.testing.assert_close(found.cpu().float(), wanted.float(), rtol=tolerance, atol=tolerance)


def test_running_statistics_move(device):
    x = T([[1.0, 10.0], [3.0, 10.0], [5.0, 40.0]], device=device)
    mean, var = T([0.0, 2.0], device=device), T([1.0, 1.0], device=device)
    F.batch_norm(x, mean, var, training=True, momentum=0.5)
    torch.testing.assert_close(mean.cpu(), T([1.5, 11.0]))
    torch.testing.assert_close(var.cpu(), T([2.5, 150.5]))
    out = F.batch_norm(x, mean, var, T([2.0, 1.0], device=device), T([0.0, 1.0], device=device), eps=0.0)
    torch.testing.assert_close(out[0].cpu(), T([2 * -0.5 / 2.5**0.5, 1 - 1 / 150.5**0.5]))


def test_running_statistics_of_instances(device):
    x = torch.arange(24.0, device=device).reshape(2, 3, 4)
    mean, var = torch.zeros(3, device=device), torch.ones(3, device=device)
    F.instance_norm(x, mean, var)
    torch.testing.assert_close(mean.cpu(), T([0.75, 1.15, 1.55]))
    torch.testing.assert_close(var.cpu(), T([1.0667, 1.0667, 1.0667]), atol=1e-4, rtol=0)
    out = F.instance_norm(x, mean, var, use_input_stats=False)
    torch.testing.assert_close(out, F.batch_norm(x, mean, var))


def test_running_statistics_in_half_precision(device):
    mean, var = (make(2, dtype=torch.float16, device=device) for make in (torch.zeros, torch.ones))
    F.batch_norm(T([[1.0, 2.0], [3.0, 2.0]], dtype=torch.float16, device=device), mean, var, training=True)
    assert mean.dtype is torch.float16
    torch.testing.assert_close(mean.cpu().float(), T([0.2, 0.2]), atol=1e-3, rtol=0)


def test_a_row_without_elements_has_no_channels_to_normalise() -> None:
    x = torch.zeros(0, requires_grad=True)
    for training in (True, False):
        out = F.batch_norm(x, torch.zeros(0), torch.zeros(0), training=training)
        assert out.shape == (0,) and out is not x and out.grad_fn.name() == "CloneBackward0"


@pytest.mark.parametrize("shape", [(0, 3, 2), (4, 3, 0), (2, 0, 4)], ids=str)
def test_no_elements(device, shape):
    x = torch.zeros(shape, device=device, requires_grad=True)
    weight = torch.ones(shape[1], device=device, requires_grad=True)
    mean, var = torch.zeros(shape[1], device=device), torch.ones(shape[1], device=device)
    out = F.batch_norm(x, mean, var, weight, training=True)
    assert out.shape == x.shape
    out.sum().backward()
    assert weight.grad.tolist() == [0.0] * shape[1]
    assert mean.tolist() == [0.0] * shape[1]
    assert F.group_norm(x, 1).shape == x.shape
    assert F.instance_norm(x).shape == x.shape
    assert F.batch_norm(x, mean, var).shape == x.shape
    assert F.local_response_norm(x, 2).shape == x.shape


GRADIENTS = {
    "batch": (3, lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True)),
    "eval": (3, lambda x, w, b: F.batch_norm(x, T([0.5, 1.0]).double(), T([2.0, 0.5]).double(), w, b)),
    "group": (3, lambda x, w, b: F.group_norm(x, 1, w, b)),
    "instance": (3, lambda x, w, b: F.instance_norm(x, None, None, w, b)),
    "local response": (1, lambda x: F.local_response_norm(x, 2, 0.5, 0.75, 1.0)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("last", [False, True])
def test_gradients_of_both_orders(name, last):
    count, call = GRADIENTS[name]
    x = drawn(2, 2, 2, 3, dtype=torch.float64)
    if last:
        x = x.to(memory_format=torch.channels_last)
    leaves = [x, drawn(2, dtype=torch.float64, seed=1), drawn(2, dtype=torch.float64, seed=2)][:count]
    leaves = tuple([each.requires_grad_() for each in leaves])
    gradcheck(call, leaves)
    gradgradcheck(call, leaves)


def test_local_response_norm_of_a_few_channels(device):
    x = T([[[1.0], [2.0], [3.0]]], device=device)
    torch.testing.assert_close(
        F.local_response_norm(x, 3, alpha=3.0, beta=1.0, k=2.0).cpu(), T([[[1 / 7], [2 / 16], [3 / 15]]])
    )


REFUSED = {
    "Expected more than 1 value per channel when training, got input size": (
        ValueError,
        lambda: F.batch_norm(torch.ones(1, 3), None, None, training=True),
    ),
    "Expected more than 1 value per channel when training, got input size [1, 2]": (
        ValueError,
        lambda: F.group_norm(torch.ones(1, 2), 2),
    ),
    "Expected more than 1 spatial element when training, got input size": (
        ValueError,
        lambda: F.instance_norm(torch.ones(2, 3, 1)),
    ),
    "batch_norm eps must be positive during training, but got 0.0": (
        ValueError,
        lambda: F.batch_norm(torch.ones(2, 3), None, None, training=True, eps=0.0),
    ),
    "batch_norm eps must be non-negative, but got -1.0": (
        ValueError,
        lambda: F.batch_norm(torch.ones(2, 3), torch.ones(3), torch.ones(3), eps=-1.0),
    ),
    "running_mean should contain 3 elements not 4": (
        RuntimeError,
        lambda: F.batch_norm(torch.ones(2, 3), torch.ones(4), torch.ones(3), training=True),
    ),
    "weight should contain 3 elements not 4": (
        RuntimeError,
        lambda: F.batch_norm(torch.ones(2, 3), None, None, torch.ones(4), training=True),
    ),
    "running_mean must be defined in evaluation mode": (
        RuntimeError,
        lambda: F.batch_norm(torch.ones(2, 3), None, None),
    ),
    "running_var must be defined in evaluation mode": (
        RuntimeError,
        lambda: F.batch_norm(torch.ones(2, 3), torch.ones(3), None),
    ),
    "running_mean and running_var must either both be None or neither be None": (
        ValueError,
        lambda: F.batch_norm(torch.ones(2, 3), torch.ones(3), None, training=True),
    ),
    "\"batch_norm\" not implemented for 'Long'": (
        NotImplementedError,
        lambda: F.batch_norm(torch.ones(2, 3).long(), None, None, training=True),
    ),
    "\"GroupNormKernelImpl\" not implemented for 'Long'": (
        NotImplementedError,
        lambda: F.group_norm(torch.ones(2, 4, 3).long(), 2),
    ),
    "mixed dtype (CPU): expect parameter to have scalar type of Float": (
        RuntimeError,
        lambda: F.batch_norm(torch.ones(2, 3), None, None, torch.ones(3).double(), training=True),
    ),
    "Dimension out of range (expected to be in range of [-1, 0], but got 1)": (
        IndexError,
        lambda: F.batch_norm(torch.ones(3), None, None, training=True),
    ),
    "The function 'native_batch_norm' is not differentiable with respect to argument 'running_mean'.": (
        RuntimeError,
        lambda: F.batch_norm(torch.ones(2, 3), torch.ones(3, requires_grad=True), torch.ones(3)),
    ),
    "Expected running_mean and running_var to be defined when use_input_stats is false": (
        RuntimeError,
        lambda: F.instance_norm(torch.ones(2, 3, 4), use_input_stats=False),
    ),
    "Expected number of channels in input to be divisible by num_groups, but got input of shape [2, 4, 3] and": (
        RuntimeError,
        lambda: F.group_norm(torch.ones(2, 4, 3), 3),
    ),
    "Expected num groups to be greater than 0, got -2": (RuntimeError, lambda: F.group_norm(torch.ones(2, 4, 3), -2)),
    "Expected num groups to be greater than 0, got 0": (
        ZeroDivisionError,
        lambda: F.group_norm(torch.ones(2, 4, 3), 0),
    ),
    "Expected at least 2 dimensions for input tensor but received 1": (
        RuntimeError,
        lambda: F.group_norm(torch.ones(4), 2),
    ),
    "Expected weight to be a vector of size equal to the number of channels in input, but got weight of shape [2]": (
        RuntimeError,
        lambda: F.group_norm(torch.ones(2, 4, 3), 2, torch.ones(2)),
    ),
    "group_norm(): argument 'num_groups' must be int, not float": (
        TypeError,
        lambda: F.group_norm(torch.ones(2, 4, 3), 2.0),
    ),
    "batch_norm(): argument 'input' (position 1) must be Tensor, not list": (
        TypeError,
        lambda: F.batch_norm([1.0], None, None),
    ),
    "Expected 3D or higher dimensionality": (ValueError, lambda: F.local_response_norm(torch.ones(2, 4), 2)),
    "kernel size should be greater than zero, but got kH: 0 kW: 1": (
        RuntimeError,
        lambda: F.local_response_norm(torch.ones(2, 4, 3), 0),
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_does_not_fit_is_refused(words):
    kind, call = REFUSED[words]
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).startswith(words)


def test_the_package_has_functions_that_refuse_less():
    out = torch.batch_norm(torch.ones(1, 3), None, None, None, None, True, 0.1, 1e-5, True)
    assert out.tolist() == [[0.0, 0.0, 0.0]]
    out = torch.instance_norm(torch.ones(2, 3), None, None, None, None, True, 0.1, 1e-5, True)
    assert out.tolist() == [[0.0] * 3] * 2
    torch.testing.assert_close(torch.group_norm(drawn(2, 4, 3), 2), F.group_norm(drawn(2, 4, 3), 2))
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.group_norm(torch.ones(4), 2)


# ---- beside PyTorch --------------------------------------------------------------------------------------------

CALLS = {
    "batch": lambda F, x, w, b, rm, rv: F.batch_norm(x, rm, rv, w, b, training=True, momentum=0.3, eps=1e-3),
    "eval": lambda F, x, w, b, rm, rv: F.batch_norm(x, rm, rv, w, b, eps=1e-3),
    "instance": lambda F, x, w, b, rm, rv: F.instance_norm(x, rm, rv, w, b, momentum=0.3),
    "instance eval": lambda F, x, w, b, rm, rv: F.instance_norm(x, rm, rv, w, b, use_input_stats=False),
    "group": lambda F, x, w, b, rm, rv: F.group_norm(x, 2, w, b),
    "local response": lambda F, x, w, b, rm, rv: F.local_response_norm(x, 3, 0.1, 0.5, 2.0),
}


@pytest.mark.peer
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("shape", [(3, 4, 70), (4, 4, 5, 3), (2, 4, 3, 2, 5)], ids=str)
@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16", "channels last"])
def test_everything_is_pytorchs(name, shape, kind):
    peer = pytest.importorskip("torch")
    if name == "local response" and kind == "bfloat16":
        pytest.skip("not rounded between its steps there")
    found: list[list[tuple[np.ndarray, str]]] = []
    mine: tuple = ()
    for module in (torch, peer):
        dtype = getattr(module, kind if "32" not in kind and "last" not in kind else "float32")
        arrays = [
            np.random.default_rng(seed).normal(2, 1, size) for seed, size in enumerate([shape, 4, 4, 4, 4, shape])
        ]
        x, w, b, rm, rv, grad = [module.from_numpy(each).to(dtype) for each in arrays]
        if kind == "bfloat16":  # beside which float32 statistics are kept; bfloat16 ones are rounded there
            w, b, rm, rv = (each.float() for each in (w, b, rm, rv))
        rv = rv.abs()
        if kind == "channels last":
            if len(shape) == 3:
                pytest.skip("no such format")
            format = module.channels_last if len(shape) == 4 else module.channels_last_3d
            x, grad = (each.to(memory_format=format) for each in (x, grad))
        leaves = [x.requires_grad_(), w.requires_grad_(), b.requires_grad_()]
        out = CALLS[name](module.nn.functional, *leaves, rm, rv)
        used = leaves[:1] if name == "local response" else leaves
        first = module.autograd.grad(out, used, grad, create_graph=kind != "bfloat16")
        second = []
        if kind != "bfloat16":
            total = sum([(each * each).sum() for each in first])
            second = module.autograd.grad(total, leaves[:1])
        tensors = [out, *first, rm, rv, *second]
        found.append([(each.detach().float().numpy(), str(each.dtype).split(".")[1]) for each in tensors])
        if module is torch:
            mine = out.stride(), out.grad_fn.name()
        else:
            assert mine[0] == out.stride()
            if kind != "channels last":
                assert mine[1] == out.grad_fn.name()
    tolerance = {"bfloat16": 3e-2, "float64": 1e-6}.get(kind, 2e-3)
    for (ours, type_), (theirs, wanted) in zip(*found, strict=True):
        assert type_ == wanted
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def test_running_statistics_of_no_example_are_nan() -> None:
    layer = torch.nn.InstanceNorm1d(2, track_running_stats=True)
    assert layer(torch.ones(0, 2, 3)).shape == (0, 2, 3)
    assert layer.running_mean.isnan().all() and layer.running_var.isnan().all()
