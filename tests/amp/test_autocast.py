"""Autocast: what casts to what, for whom and how long, and that nothing else does."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

import tritensor as torch
from tritensor import amp, cuda, nn
from tritensor.autograd.precision import casts, state
from tritensor.errors import ArgumentError, DeviceError, DtypeError
from tritensor.nn import functional as F
from tritensor.operators import autocasting

from ..needs import needs_triton
from .calls import (
    FLOAT32,
    FLOAT32_ON_CPU,
    FLOAT32_ON_CUDA,
    LOWER,
    PLAIN,
    UNLISTED_ON_CPU,
    WIDEST_ON_CPU,
    WIDEST_ON_CUDA,
)

MATRIX = [[1.0, -2.0, 0.5], [0.25, 3.0, -1.0], [2.0, 1.5, 0.75]]
HALVES = (torch.float16, torch.bfloat16)


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """No test leaves autocast on."""
    yield
    left = casts.on, state.types, state.nesting, len(state.kept), len(state.blocks), state.cache, dict(state.lower)
    assert left == (0, frozenset(), 0, 0, 0, True, {"cpu": torch.bfloat16, "cuda": torch.float16})


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_the_cpus_lists(half: torch.dtype) -> None:
    x = torch.tensor(MATRIX)
    with torch.autocast("cpu", half):
        for name, call in LOWER.items():
            assert call(torch, x).dtype is half, name
            assert call(torch, x.double()).dtype is torch.float64, name
        for name, call in {**FLOAT32, **FLOAT32_ON_CPU}.items():
            assert call(torch, x.to(half)).dtype is torch.float32, name
        for name, call in WIDEST_ON_CPU.items():
            assert call(torch, x.to(half)).dtype is torch.float32, name
        for name, call in {**PLAIN, **UNLISTED_ON_CPU}.items():
            for kind in (half, torch.float32, torch.float64):
                assert call(torch, x.to(kind)).dtype is kind, name


@pytest.mark.sampled(1)
@needs_triton
@pytest.mark.parametrize(
    ("calls", "kind", "result"),
    [
        (LOWER, torch.float32, torch.float16),
        (LOWER, torch.float16, torch.float16),
        ({**FLOAT32, **FLOAT32_ON_CUDA}, torch.float16, torch.float32),
        (WIDEST_ON_CUDA, torch.float16, torch.float32),
        (PLAIN, torch.float16, torch.float16),
        (PLAIN, torch.float32, torch.float32),
    ],
    ids=["lower", "lower stays", "float32", "widest", "plain halves", "plain float32"],
)
def test_the_lists_of_cuda_devices(calls: dict, kind: torch.dtype, result: torch.dtype) -> None:
    with cuda.simulate(devices=1), torch.autocast("cuda"):
        x = torch.tensor(MATRIX, device="cuda", dtype=kind)
        for name, call in calls.items():
            assert call(torch, x).dtype is result, name
        assert x.cpu().mm(x.cpu()).dtype is kind  # autocast is on for the type of device that it names


@needs_triton
def test_a_sum_has_the_dtype_that_is_asked_for() -> None:
    with cuda.simulate(devices=1), torch.autocast("cuda"):
        x = torch.ones(3, device="cuda", dtype=torch.float16)
        assert x.sum(dtype=torch.float16).dtype is F.softmax(x, 0, dtype=torch.float16).dtype is torch.float16


@needs_triton
def test_a_product_of_vectors_is_of_halves_where_they_are() -> None:
    with cuda.simulate(devices=1), torch.autocast("cuda", torch.bfloat16):
        x = torch.ones(3, device="cuda")
        assert x.dot(x).dtype is torch.float32 and x.bfloat16().dot(x.bfloat16()).dtype is torch.bfloat16


def test_binary_cross_entropy_is_refused_on_cuda_devices_alone() -> None:
    def binary_cross_entropy(input: torch.Tensor) -> torch.Tensor:
        return input

    checked = autocasting.casting(binary_cross_entropy, "tried", {"cpu": "float32", "cuda": "banned"})
    with torch.autocast("cpu"):
        assert checked(torch.ones(2).bfloat16()).dtype is torch.float32
    with cuda.simulate(devices=1), torch.autocast("cuda"):
        words = "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\nMany models use"
        with pytest.raises(DtypeError, match=words):
            checked(torch.ones(2, device="cuda"))


def test_the_values_are_those_of_halves() -> None:
    x = torch.tensor(MATRIX)
    with torch.autocast("cpu"):
        found = x @ x
    assert found.equal(x.bfloat16() @ x.bfloat16())


def test_blocks_are_nested() -> None:
    x = torch.ones(2, 2)
    seen = []
    with torch.autocast("cpu"):
        seen.append((x @ x).dtype)
        with torch.autocast("cpu", torch.float16):
            seen.append((x @ x).dtype)
            with torch.autocast("cpu", enabled=False):
                seen.append((x @ x).dtype)
                assert not torch.is_autocast_enabled("cpu")
            assert torch.get_autocast_dtype("cpu") is torch.float16
        seen.append((x @ x).dtype)
    seen.append((x @ x).dtype)
    assert seen == [torch.bfloat16, torch.float16, torch.float32, torch.bfloat16, torch.float32]


def test_a_block_ends_with_an_error() -> None:
    with pytest.raises(KeyError), torch.autocast("cpu"):
        raise KeyError
    assert not torch.is_autocast_enabled("cpu")


def test_a_decorated_function_calls_itself_in_the_same_block() -> None:
    @torch.autocast("cpu")
    def product(x: torch.Tensor, depth: int) -> torch.Tensor:
        """Of a matrix with itself."""
        return product(x, depth - 1) if depth else x @ x

    assert product(torch.ones(2, 2), 2).dtype is torch.bfloat16 and product.__name__ == "product"


def test_another_thread_is_not_affected() -> None:
    x = torch.ones(2, 2)
    found = []
    with torch.autocast("cpu"):
        thread = threading.Thread(target=lambda: found.append((x @ x).dtype))
        thread.start()
        thread.join()
    assert found == [torch.float32]


@needs_triton
def test_replicas_in_threads_cast_as_their_caller() -> None:
    def half(x: torch.Tensor) -> tuple[torch.dtype, torch.dtype]:
        return (x @ x).dtype, torch.get_autocast_dtype("cuda")

    with cuda.simulate(devices=2):
        inputs = [torch.ones(2, 2, device=f"cuda:{index}") for index in range(2)]
        with torch.autocast("cuda", torch.bfloat16):
            found = nn.parallel.parallel_apply([half, half], inputs)
        assert found == [(torch.bfloat16, torch.bfloat16)] * 2
        assert nn.parallel.parallel_apply([half, half], inputs) == [(torch.float32, torch.float16)] * 2


# ---- gradients, and the casts of parameters -----------------------------------------------------------------------


def test_gradients_flow_through_casts_and_come_out_in_float32() -> None:
    layer = nn.Linear(3, 2)
    x = torch.tensor(MATRIX, requires_grad=True)
    with torch.autocast("cpu"):
        y = layer(x)
        loss = F.mse_loss(y, torch.ones(3, 2))
    assert y.dtype is torch.bfloat16 and loss.dtype is torch.float32
    loss.backward()
    halves = [each.detach().bfloat16().requires_grad_() for each in (x, layer.weight, layer.bias)]
    F.mse_loss(F.linear(*halves).float(), torch.ones(3, 2)).backward()
    for ours, theirs in zip((x, layer.weight, layer.bias), halves, strict=True):
        assert ours.grad.dtype is torch.float32 and ours.grad.bfloat16().equal(theirs.grad)


def test_a_backward_pass_in_the_block_casts_nothing() -> None:
    x = torch.tensor(MATRIX, requires_grad=True)
    seen: list[torch.dtype] = []

    class Watched(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.append((grad.float() @ grad.float()).dtype)
            return grad

    with torch.autocast("cpu"):
        Watched.apply(x).sum().backward()
        assert torch.is_autocast_enabled("cpu")
        (gradient,) = torch.autograd.grad((x @ x).sum(), x, create_graph=True)
        gradient.square().sum().backward()
    assert seen == [torch.float32] and gradient.dtype is x.grad.dtype is torch.float32


def test_a_parameter_is_cast_once_in_an_outermost_block() -> None:
    weight = nn.Parameter(torch.ones(2, 2))
    with torch.autocast("cpu"):
        first = torch.mm(weight, weight).grad_fn.next_functions
        with torch.autocast("cpu"):
            torch.mm(weight, weight)
        assert len(state.kept) == 1
        assert torch.mm(weight, weight).grad_fn.next_functions[0][0] is first[0][0] is first[1][0]
        with torch.no_grad():
            assert torch.mm(weight, weight).equal(torch.full((2, 2), 2.0, dtype=torch.bfloat16))
        torch.clear_autocast_cache()
        assert not state.kept
        torch.mm(weight, weight)
        assert len(state.kept) == 1
    assert not state.kept


def test_what_is_no_parameter_is_cast_each_time() -> None:
    weight = nn.Parameter(torch.ones(2, 2))
    with torch.autocast("cpu"):
        for each in (weight.detach(), weight * 2, weight.T, weight.half()):
            torch.mm(each, each)
        assert not state.kept
        with torch.autocast("cpu", cache_enabled=False):
            assert not torch.is_autocast_cache_enabled()
            torch.mm(weight, weight)
        assert not state.kept and torch.is_autocast_cache_enabled()


def test_a_parameter_that_changes_is_cast_anew() -> None:
    weight = nn.Parameter(torch.ones(2, 2))
    with torch.autocast("cpu"):
        torch.mm(weight, weight)
        with torch.no_grad():
            weight.mul_(2)
        assert torch.mm(weight, weight)[0, 0].item() == 8
        weight.data = torch.full((2, 2), 3.0)
        assert torch.mm(weight, weight)[0, 0].item() == 18


def test_a_cast_without_recording_stops_no_gradient() -> None:
    weight = nn.Parameter(torch.ones(2, 2))
    with torch.autocast("cpu"):
        with torch.no_grad():
            torch.mm(weight, weight)
        torch.mm(weight, weight).sum().backward()
    assert weight.grad is not None


# ---- functions with gradients of their own ------------------------------------------------------------------------


def product(cast_inputs: torch.dtype | None) -> type[torch.autograd.Function]:
    class Product(torch.autograd.Function):
        @staticmethod
        @amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs)
        def forward(ctx, x, more):
            ctx.save_for_backward(x)
            ctx.seen = x.dtype, more["y"][0].dtype, (x @ x).dtype, more["name"]
            Product.made = ctx
            return x @ x

        @staticmethod
        @amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            ctx.in_backward = (x @ x).dtype
            return (grad.float() @ x.float().T).to(x.dtype), None

    return Product


def test_custom_functions_run_under_the_autocast_of_their_forward() -> None:
    x = torch.ones(2, 2, requires_grad=True)
    more = {"y": [torch.ones(2)], "name": "y"}
    half, full, plain = torch.bfloat16, torch.float32, product(None)
    with torch.autocast("cpu"):
        y = plain.apply(x, more)
    y.sum().backward()
    assert plain.made.seen == (full, full, half, "y") and plain.made.in_backward is half
    wide = product(torch.float64)
    with torch.autocast("cpu"):
        y = wide.apply(x, more)
        y.sum().backward()
    assert wide.made.seen == (torch.float64, torch.float64, torch.float64, "y")
    assert wide.made.in_backward is torch.float64
    wide.apply(x, more).sum().backward()
    assert wide.made.seen == (full, full, full, "y") and wide.made.in_backward is full


# ---- the state, and bad input -------------------------------------------------------------------------------------


def test_the_state_of_a_thread() -> None:
    x = torch.ones(2, 2)
    assert torch.get_autocast_dtype("cuda") is torch.float16 and not torch.is_autocast_enabled()
    torch.set_autocast_enabled("cpu", True)
    torch.set_autocast_dtype("cpu", torch.float16)
    torch.set_autocast_cache_enabled(False)
    try:
        assert torch.is_autocast_enabled("cpu") and (x @ x).dtype is torch.float16
        assert not torch.autocast("cpu")._cache_enabled
    finally:
        torch.set_autocast_enabled("cpu", False)
        torch.set_autocast_dtype("cpu", torch.bfloat16)
        torch.set_autocast_cache_enabled(True)
    assert torch.autocast_increment_nesting() == 1 and torch.autocast_decrement_nesting() == 0
    assert amp.is_autocast_available("cpu") and amp.is_autocast_available("cuda")


def test_bad_input_raises_pytorchs_words() -> None:
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`, got: `<class 'int'>`"):
        torch.autocast(3)
    with pytest.raises(DeviceError, match="Expected one of cpu, cuda"):
        torch.autocast("tpu")
    with pytest.raises(ArgumentError, match=r"autocast\(\)\(func\) requires a callable, but got int"):
        torch.autocast("cpu")(3)
    with pytest.raises(ArgumentError, match=r"argument 'device_type' \(position 1\) must be str, not int"):
        torch.is_autocast_enabled(3)
    with pytest.raises(ArgumentError, match=r"argument 'enabled' \(position 2\) must be bool, not int"):
        torch.set_autocast_enabled("cpu", 3)
    with pytest.raises(ArgumentError, match=r"argument 'dtype' \(position 2\) must be torch.dtype, not int"):
        torch.set_autocast_dtype("cpu", 3)
    with pytest.raises(ArgumentError, match=r"enabled must be a bool \(got int\)"):
        torch.set_autocast_cache_enabled(3)
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        amp.custom_fwd(device_type=3)
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        amp.custom_bwd(device_type=3)


def test_what_cannot_be_is_turned_off_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.ones(2, 2)
    with pytest.warns(UserWarning, match="In CPU autocast, but the target dtype is not supported. Disabling autocast."):
        block = torch.autocast("cpu", torch.float64)
    with block:
        assert (x @ x).dtype is torch.float32
    monkeypatch.setattr(autocasting, "active", lambda: None)
    with pytest.warns(UserWarning, match="CUDA is not available or torch_xla is imported. Disabling autocast."):
        block = torch.autocast("cuda")
    with block:
        assert not torch.is_autocast_enabled("cuda")


def test_the_older_names() -> None:
    from tritensor import cpu

    with pytest.warns(FutureWarning, match=r"`torch.cpu.amp.autocast\(args...\)` is deprecated. Please use"):
        block = cpu.amp.autocast(dtype=torch.float16)
    with block:
        assert torch.get_autocast_dtype("cpu") is torch.float16
    with pytest.warns(FutureWarning, match="torch.cpu.amp.GradScaler"):
        assert cpu.amp.GradScaler(init_scale=4.0).get_scale() == 4.0
    with cuda.simulate(devices=1):
        with pytest.warns(FutureWarning, match="torch.cuda.amp.autocast"):
            block = cuda.amp.autocast()
        with block:
            assert torch.is_autocast_enabled()
        with pytest.warns(FutureWarning, match="torch.cuda.amp.GradScaler"):
            assert cuda.amp.GradScaler().get_scale() == 65536.0
        with pytest.warns(FutureWarning, match="torch.cuda.amp.custom_fwd"):
            assert cuda.amp.custom_fwd(cast_inputs=torch.float32)(np.abs).__name__ == "absolute"
        with pytest.warns(FutureWarning, match="torch.cuda.amp.custom_bwd"):
            assert callable(cuda.amp.custom_bwd(np.abs))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = cuda.nothing
