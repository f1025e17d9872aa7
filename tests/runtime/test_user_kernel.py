"""Kernels of the user's own on our tensors, plain or from `@triton.jit`, in simulation and on a GPU."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda, settings
from tritensor.autograd import Function
from tritensor.errors import DeviceMismatchError, KernelError, KernelMemoryError
from tritensor.runtime.launch import launch

from ..needs import HAS_TRITON

if not HAS_TRITON:
    pytest.skip("running kernels needs Triton", allow_module_level=True)

import triton
import triton.language as tl


@triton.jit
def _scaled(x, factor):
    return x * factor


@cuda.jit
@triton.jit
def scale(out_ptr, x_ptr, factor, n, stride=1, BLOCK: tl.constexpr = 16):
    """Multiply by a factor."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, _scaled(tl.load(x_ptr + i * stride, mask=i < n), factor), mask=i < n)


@triton.heuristics({"BLOCK": lambda arguments: 32 if arguments["n"] > 16 else 16})
@triton.jit
def plain(out_ptr, x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, _scaled(tl.load(x_ptr + i, mask=i < n), 2), mask=i < n)


@cuda.jit
def overrun(out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), 1.0)


@pytest.fixture(params=[False, True], ids=["interpreted", "compiled"])
def two(request: pytest.FixtureRequest) -> Iterator[bool]:
    with cuda.simulate(devices=2, compiled=request.param):
        yield request.param


def grid(meta: dict[str, Any]) -> tuple[int]:
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def test_our_tensors_are_its_arguments(two: bool) -> None:
    x = torch.arange(60.0, device="cuda:1")
    for dtype, BLOCK in ((torch.float32, 16), (torch.float16, 32), (torch.float64, 64)):
        source, out = x.to(dtype), torch.zeros(60, dtype=dtype, device="cuda:1")
        scale[grid](out, source, 0.5, 60, BLOCK=BLOCK)
        assert out.tolist() == (x * 0.5).tolist()
    out = torch.zeros(20, device="cuda:1")
    scale[(2, 1, 1)](out, x[1::3], 2.0, n=20, stride=3, num_warps=1, num_stages=2)
    assert out.tolist() == (x[1::3] * 2).tolist()
    scale[2](out, x.reshape(3, 20)[1], factor=1.0, n=20)
    assert out.tolist() == x[20:40].tolist()
    scale[0](out, x, 0.0, 20)
    assert out.tolist() == x[20:40].tolist()


@pytest.mark.parametrize("compiled", [False, True])
def test_plain_kernels_take_our_tensors(compiled: bool) -> None:
    with cuda.simulate(compiled=compiled):
        x, out = torch.arange(20.0, device="cuda"), torch.zeros(20, device="cuda")
        plain[grid](out, x, n=20)
        assert out.tolist() == [2.0 * i for i in range(20)]
        with pytest.raises(TypeError, match=r"Pointer argument \(x_ptr\) cannot be accessed from Triton"):
            plain[grid](out, x.cpu(), n=20)
        with pytest.raises(KernelMemoryError, match="illegal memory access"):
            plain[(1000,)](out, x, n=1 << 20)


class Scaled(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: float) -> torch.Tensor:
        ctx.factor = factor
        out = torch.empty_like(x)
        scale[grid](out, x, factor, x.numel())
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
        return Scaled.apply(grad.contiguous(), ctx.factor), None


def test_a_function_around_it_has_gradients(two: bool) -> None:
    x = torch.arange(20.0, device="cuda").requires_grad_()
    (Scaled.apply(x, 3.0) * torch.arange(20.0, device="cuda")).sum().backward()
    assert x.grad.tolist() == [3.0 * i for i in range(20)]


def test_it_runs_in_the_current_stream() -> None:
    with cuda.simulate(), torch.settings.simulate_late(True):
        x, out, side = torch.ones(16, device="cuda"), torch.zeros(16, device="cuda"), cuda.Stream()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            scale[1](out, x, 5.0, 16)
        cuda.current_stream().wait_stream(side)
        assert out.tolist() == [5.0] * 16


def test_what_was_known_of_an_index_is_forgotten() -> None:
    with cuda.simulate():
        index = torch.zeros(16, dtype=torch.float32, device="cuda").long()
        x = torch.arange(4.0, device="cuda")
        assert x.gather(0, index).sum().item() == 0
        scale[1](index, torch.full((16,), 7, dtype=torch.int64, device="cuda"), 1, 16)
        with pytest.raises(IndexError, match="index 7 is out of bounds"):
            x.gather(0, index)


def test_addresses_are_checked_in_simulation() -> None:
    with cuda.simulate(), settings.simulate_late(False), pytest.raises(KernelMemoryError, match="out_ptr"):
        overrun[1](torch.zeros(8, device="cuda"), BLOCK=16)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: scale[1](x, x, 1.0), "missing arguments: n"),
        (lambda x: scale[1](x, x, 1.0, 4, blok=3), "blok is no parameter"),
        (lambda x: scale[1](x, x, 1.0, 4, n=3), "n was given twice"),
        (lambda x: scale[1](x, x, 1.0, 4, 1, 16, 1), "got 7 by position"),
        (lambda x: scale[1](x.cpu(), x, 1.0, 4), r"Pointer argument \(out_ptr\) cannot be accessed from Triton"),
        (lambda x: scale[()](x, x, 1.0, 4), "a grid is one to three sizes"),
        (lambda x: scale[-1](x, x, 1.0, 4), "a grid is one to three sizes"),
        (lambda x: scale(x, x, 1.0, 4), "a kernel is launched over a grid"),
    ],
)
def test_calls_that_do_not_fit(call: Any, words: str) -> None:
    with cuda.simulate():
        x = torch.ones(4, device="cuda")
        with pytest.raises(TypeError, match=words):
            call(x)
        assert np.array_equal(x.cpu().numpy(), np.ones(4))


@cuda.jit
def fill_with(out_ptr, value, sizes, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, value + sizes[1], mask=i < sizes[0])


class Five(IntEnum):
    FIVE = 5


def test_numbers_are_those_that_triton_takes(two: bool) -> None:
    """Python's and their subclasses, so `numpy.float64`; of NumPy's scalars no others."""
    out = torch.zeros(4, 5, device="cuda")
    for value, expected in ((np.float64(1.5), 6.5), (Five.FIVE, 10.0), (-3, 2.0), (0.5, 5.5)):
        fill_with[1](out, value, out.shape, BLOCK=16)
        assert out.reshape(-1).tolist() == [expected] * 4 + [0.0] * 16
    for value in (np.float32(1), np.int64(1), np.bool_(True), np.array(1), np.longdouble(1)):
        message = (
            rf"^fill_with: a kernel takes int, float.*\n  argument value is a numpy\.{type(value).__name__}\n.*"
            r"pass value\.item\(\)"
        )
        with pytest.raises(TypeError, match=message):
            fill_with[1](out, value, (4, 5), BLOCK=16)
    for value, kind in ([1, 4], "list"), ({}, "dict"), (torch.float32, "dtype"):
        with pytest.raises(TypeError, match=rf"argument sizes\[1\] is a [\w.]*{kind}"):
            fill_with[1](out, 1.0, (4, value), BLOCK=16)


def test_our_own_launches_take_plain_numbers_only(two: bool) -> None:
    array = torch.zeros(4, device="cuda")._data
    for value in (np.float64(1), np.int32(1), Five.FIVE):
        with pytest.raises(TypeError, match=r"^filling: a kernel takes int.*\n  argument value is a "):
            launch(fill_with.kernel, (1,), (array, value, (4, 5)), {"BLOCK": 16}, array.device, name="filling")


def test_devices_are_not_mixed_and_lambdas_are_no_kernels() -> None:
    with cuda.simulate(devices=2), pytest.raises(DeviceMismatchError, match="on the same device"):
        scale[1](torch.ones(4, device="cuda:0"), torch.ones(4, device="cuda:1"), 1.0, 4)
    with pytest.raises(KernelError, match="written with def"):
        cuda.jit(lambda x: x)
    assert repr(scale) == "<UserKernel scale>" and scale.__doc__ == "Multiply by a factor."


def test_the_guide_is_right(tmp_path: Path) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "devices.md").read_text(encoding="utf-8")
    (block,) = [each for each in re.findall(r"```python\n(.*?)```", guide, re.DOTALL) if "cuda.jit" in each]
    program = tmp_path / "program.py"
    program.write_text(block, encoding="utf-8")
    with cuda.simulate():
        names = runpy.run_path(str(program))
        assert names["out"].tolist() == [2.0 * i for i in range(1000)]
