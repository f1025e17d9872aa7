"""Tensors of the CPU that native code computes: results, layouts, threads, when it is made, what stays with NumPy."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.backends import native
from tritensor.kernels.elementwise import activations
from tritensor.operators import registry
from tritensor.runtime import checking, choice, native_replay, replay
from tritensor.runtime.checking import mismatch, tolerance
from tritensor.types import dtypes

from ..declared.samples import dtypes_of, has_samples, samples
from ..declared.test_operators import as_tuple, generator, on_cpu

F = torch.nn.functional
pytestmark = pytest.mark.skipif(not choice.available(), reason="native code needs Triton, llvmlite and Linux on x86-64")


@pytest.fixture
def forced() -> Iterator[None]:
    with settings.native_cpu("force"):
        yield


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators for whose calls native code has taken NumPy's place."""
    names: list[str] = []
    install = native_replay._Work.install

    def noted(self: Any, compute: Callable[..., Any]) -> None:
        if hasattr(compute, "kept"):
            names.append(self.chooser.operator.name)
        install(self, compute)

    monkeypatch.setattr(native_replay._Work, "install", noted)
    return names


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape, dtype=np.float32))


def repeated(function: Callable[[], Any], times: int = 4) -> Any:
    """The last result of a call that repeats: the first is remembered, the second and third make and compare."""
    for _ in range(times):
        found = function()
    return found


def waited(function: Callable[[], Any], installed: list[str], seconds: float = 30) -> None:
    """Call a function until native code is there."""
    end = time.monotonic() + seconds
    while not installed and time.monotonic() < end:
        function()
        time.sleep(0.01)
    assert installed


WORKS: dict[str, Callable[[], Any]] = {
    "layer_norm": lambda: F.layer_norm(drawn(4, 6, 128), (128,), drawn(128, seed=1), drawn(128, seed=2)),
    "gelu_tanh": lambda: F.gelu(drawn(3, 700), approximate="tanh"),
    "scaled_dot_product_attention": lambda: F.scaled_dot_product_attention(
        drawn(2, 9, 4, 16).transpose(1, 2), drawn(2, 4, 9, 16, seed=1), drawn(2, 4, 9, 16, seed=2), is_causal=True
    ),
}


@pytest.mark.parametrize("name", WORKS)
def test_results_are_numpys_within_roundings(name: str, installed: list[str]) -> None:
    expected = WORKS[name]()
    with settings.native_cpu("force"):
        found = repeated(WORKS[name])
    assert installed == [name]
    assert found.stride() == expected.stride()
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def gradients(width: int = 32) -> list[np.ndarray]:
    """Those of a block with attention, a norm and an activation."""
    x, weight, bias = (drawn(*shape, seed=3).requires_grad_() for shape in ((2, 5, 3 * width), (width,), (width,)))
    q, k, v = (part.view(2, 5, 2, width // 2).transpose(1, 2) for part in x.split(width, 2))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 5, width)
    F.gelu(F.layer_norm(out, (width,), weight, bias), approximate="tanh").backward(drawn(2, 5, width, seed=4))
    return [each.grad.numpy() for each in (x, weight, bias)]


def test_gradients_are_numpys_within_roundings(installed: list[str]) -> None:
    expected = gradients()
    with settings.native_cpu("force"):
        found = repeated(gradients)
    assert {"layer_norm_backward", "scaled_dot_product_attention_backward", "gelu_tanh_gradient"} <= {*installed}
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_other_layouts_are_computed_too(forced: None, installed: list[str]) -> None:
    x = drawn(40, 50)
    for each in (x, x.clone().T.contiguous().T, drawn(40, 100)[:, ::2]):
        found = repeated(partial(torch.softmax, each, 1), 5)
        np.testing.assert_allclose(found.numpy(), torch.softmax(each.contiguous(), 1).numpy(), rtol=1e-5)
    assert "softmax" in installed


def test_results_are_compared_once_whatever_layout_comes_between(forced: None, monkeypatch: pytest.MonkeyPatch) -> None:
    offered: list[Any] = []
    compared: list[int] = []
    monkeypatch.setattr(native_replay, "offer", offered.append)
    monkeypatch.setattr(checking, "mismatch", lambda *given: compared.append(1))
    x, other = drawn(300, 301), drawn(301, 300).T
    for _ in range(3):
        torch.softmax(x, 1)
    offered[0].make()  # in the background; before its result is compared there is a call of another layout
    torch.softmax(other, 1)
    for _ in range(4):
        torch.testing.assert_close(torch.softmax(x, 1), torch.softmax(x.double(), 1).float())
    assert len(compared) == 1


def test_results_have_the_same_bits_for_every_number_of_threads(
    forced: None, monkeypatch: pytest.MonkeyPatch, same_number_of_threads: None, installed: list[str]
) -> None:
    monkeypatch.setattr(native_replay, "_LONG", 0)
    x, found = drawn(256, 300), []
    for number in (1, 2, 3, 7):
        torch.set_num_threads(number)
        found.append(repeated(lambda: torch.softmax(x, 1)).numpy().tobytes())
    assert installed and len({*found}) == 1


def pictures(channels: int = 70) -> list[np.ndarray]:
    """Windows of pictures with channels innermost, and their gradients."""
    x = drawn(2, channels, 23, 30).contiguous(memory_format=torch.channels_last).requires_grad_()
    weight = drawn(channels, 1, 3, 3, seed=1).requires_grad_()
    outs = [F.conv2d(x, weight, None, 2, 1, 1, channels), F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 1, 1)]
    outs.append(F.interpolate(x, scale_factor=2, mode="bilinear"))
    for out in outs:
        out.backward(drawn(*out.shape, seed=2).contiguous(memory_format=torch.channels_last))
    return [each.detach().numpy() for each in (*outs, x.grad, weight.grad)]


def test_windows_have_numpys_results_and_the_same_bits_for_every_number_of_threads(
    monkeypatch: pytest.MonkeyPatch, same_number_of_threads: None, installed: list[str]
) -> None:
    expected, found = pictures(), []
    monkeypatch.setattr(native_replay, "_LONG", 0)
    with settings.native_cpu("force"):
        for number in (1, 2, 3, 7):
            torch.set_num_threads(number)
            found.append(repeated(pictures))
    assert {"convolution", "convolution_transposed", "convolution_weight", "resample"} <= {*installed}
    assert {"max_pool_with_indices", "max_pool_backward"} <= {*installed}
    for each, *others in zip(expected, *found, strict=True):
        np.testing.assert_allclose(others[0], each, rtol=1e-4, atol=1e-4)
        assert len({one.tobytes() for one in others}) == 1


def test_layouts_that_do_not_suit_stay_with_numpy(installed: list[str]) -> None:
    x = drawn(2, 64, 32, 32)
    with settings.native_cpu(""):
        for _ in range(4):
            F.max_pool2d(x, 2)
        last = x.contiguous(memory_format=torch.channels_last)
        waited(lambda: F.max_pool2d(last, 2), installed)
    assert installed == ["max_pool"]


def test_native_code_is_made_in_the_background(installed: list[str]) -> None:
    with settings.native_cpu(""):
        expected = WORKS["layer_norm"]()
        WORKS["layer_norm"]()
        assert not installed
        waited(WORKS["layer_norm"], installed)
        torch.testing.assert_close(WORKS["layer_norm"](), expected)


def test_it_can_be_switched_off(installed: list[str]) -> None:
    before = settings.native_cpu.value
    try:
        native.enabled = False
        assert not native.enabled and native.is_available()
        repeated(WORKS["gelu_tanh"], 100)
        native.enabled = True
        assert native.enabled and not installed
    finally:
        settings.native_cpu.value = before


def test_a_kernel_that_disagrees_is_not_used(
    forced: None, installed: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    operator = activations.gelu_tanh
    monkeypatch.setattr(operator, "body", activations.gelu.body)
    x = drawn(2000)
    with settings.debug(1):
        found = repeated(lambda: F.gelu(x, approximate="tanh"), 5)
    assert not installed
    assert "gelu_tanh is computed by NumPy: out: " in capsys.readouterr().err
    np.testing.assert_array_equal(found.numpy(), operator.reference(x.numpy()))


def test_numbers_of_a_call_are_its_own(forced: None, installed: list[str]) -> None:
    x = drawn(3000)
    for beta in (1.0, 2.0, 1.0, 0.5, 2.0, 0.0 + 3.0):
        found = repeated(partial(F.softplus, x, beta), 3)
        np.testing.assert_allclose(found.numpy(), np.log1p(np.exp(x.numpy() * beta)) / beta, rtol=1e-4, atol=1e-6)
    assert "softplus" in installed


def test_zeros_are_told_apart_by_their_bits_and_not_by_identity(forced: None, installed: list[str]) -> None:
    x = drawn(3000)
    for low in ("0.0", "-0.0", "0", "1.0"):
        for _ in range(5):  # each time another object
            found = torch.clamp(x, min=float(low) if "." in low else int(low))
        np.testing.assert_array_equal(found.numpy(), np.maximum(x.numpy(), float(low)))
    assert "clamp_min" in installed


def test_many_threads_at_once(forced: None) -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        x = drawn(20 + seed % 2, 128, seed=seed)
        expected = x.numpy() - x.numpy().mean(1, keepdims=True)
        expected /= np.sqrt(np.square(expected).mean(1, keepdims=True) + 1e-5)
        for _ in range(50):
            found = F.layer_norm(x, (128,)).numpy()
            wrong.extend([seed] * (not np.allclose(found, expected, rtol=1e-4, atol=1e-5)))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


FORKED = """
import os, time
import tritensor as torch
from tritensor.runtime import native_replay
x = torch.ones(4, 1000)
def call():
    return torch.nn.functional.layer_norm(x, (1000,))
for _ in range(60):
    call()
child = os.fork()
if not child:
    for _ in range(200):
        call()
    os._exit(int(native_replay._making.acquire(timeout=20) is not True))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
for _ in range(200):
    call()
"""


@pytest.mark.thorough
def test_a_process_forks_and_ends_while_kernels_are_made() -> None:
    env = {**os.environ, "TRITENSOR_NATIVE_CPU": "1"}
    done = subprocess.run([sys.executable, "-c", FORKED], env=env, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, "0"), done.stderr


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.bfloat16, dtypes.float16], ids=str)
def test_every_operator_that_uses_it_agrees_with_numpy(dtype: dtypes.dtype, installed: list[str]) -> None:
    """What the first call is compared with is the same call's; these are later calls, of the samples of all tests."""
    for operator in [each for each in registry.values() if each.native and has_samples(each)]:
        for sample in samples(operator, dtype, generator(operator, dtype)) if dtype in dtypes_of(operator) else ():
            inputs = on_cpu(sample)
            expected = as_tuple(operator(*inputs, **sample.metadata))
            with settings.native_cpu("force"):
                found = repeated(partial(operator, *inputs, **sample.metadata))
            terms = max([x._data.size for x in inputs if hasattr(x, "_data")], default=1)
            for name, one, other in zip(operator.outputs, as_tuple(found), expected):
                if other is not None and name not in getattr(operator, "rounding", ()):
                    allowed = [4 * each for each in tolerance(operator, other.dtype, max(terms, 1))]
                    assert mismatch(one._data, other._data, *allowed) is None, (operator, sample)
    assert len({*installed}) > 100


def test_calls_in_checked_mode_go_to_numpy(forced: None, installed: list[str]) -> None:
    with torch.testing.checked():
        repeated(WORKS["gelu_tanh"])
    assert not installed


def test_a_wrong_target_is_refused_as_by_numpy(forced: None, installed: list[str]) -> None:
    x, target = drawn(30, 10).bfloat16(), torch.arange(30) % 10
    repeated(lambda: F.cross_entropy(x, target))
    assert "cross_entropy" in installed
    with pytest.raises((IndexError, torch.errors.TritensorError)):
        F.cross_entropy(x, target + 5)


def changes(dtype: Any) -> list[np.ndarray]:
    """What some in-place changes and calls with `out=` leave, of arrays that are apart, the same, and overlap."""
    found = []
    x, y, z = (drawn(300, 100, seed=seed).abs().add(0.5).to(dtype) for seed in range(3))
    row = drawn(100).to(dtype)
    works: list[Callable[[], Any]] = [
        lambda: x.lerp_(y, 0.3),
        lambda: x.addcmul_(y, z, value=0.1),
        lambda: x.add_(row),
        lambda: x.mul_(x),
        lambda: x.div_(y),
        lambda: x.sigmoid_(),
        lambda: F.silu(x, inplace=True),
        lambda: x.add_(1.5),
        lambda: torch.lerp(x, y, 0.5, out=z),
        lambda: torch.addcmul(z, x, y, out=x),
        lambda: x.view(-1)[1:].lerp_(x.view(-1)[:-1], 0.5),
        lambda: x[:, ::2].lerp_(y[:, ::2], 0.5),
        lambda: x.T.lerp_(y.T, 0.5),
        lambda: x.lerp_(y[:1].expand(300, 100), 0.5),
    ]
    for work in works:
        for _ in range(5):
            work()
            found += [each.double().numpy() for each in (x, y, z)]
            found.append(np.array([x._version, y._version, z._version]))
        x.clamp_(0.1, 2)
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_what_is_changed_in_place_is_numpys_within_roundings(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    written, write = list[bool](), replay.write_natively
    expected = changes(dtype)
    monkeypatch.setattr(replay, "write_natively", lambda *call: [written.append(write(*call)), written[-1]][1])
    with settings.native_cpu("force"):
        found = changes(dtype)
    assert written.count(True) > 10
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, *((1e-5, 1e-6) if dtype is torch.float32 else (0.02, 0.02)))


def test_a_recorded_change_keeps_what_its_gradient_needs(forced: None) -> None:
    x = drawn(2000).requires_grad_()
    for _ in range(4):
        x.grad = None
        (x * 2).lerp_(x, 0.25).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), 1.75)
    y = x.exp()
    for _ in range(3):
        y.detach().lerp_(drawn(2000), 0.5)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_number_may_stand_before_a_large_array() -> None:
    x = torch.ones(1 << 20)
    with settings.native_cpu("1"):
        for _ in range(3):
            assert (2 - x).sum().item() == torch.sub(torch.tensor(2.0), x).sum().item() == x.numel()
            assert registry["sub"](2, x).sum().item() == x.numel()
