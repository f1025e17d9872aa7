"""What kernels of libraries ask of the interpreter that ours do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch

from ..needs import HAS_TRITON

if not HAS_TRITON:
    pytest.skip("Triton's language needs Triton", allow_module_level=True)

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def most(dtype: tl.constexpr):
    kind = dtype.value
    if kind.is_floating():
        value: tl.constexpr = float("inf")
        return value
    if kind.is_int_signed():
        width: tl.constexpr = kind.int_bitwidth
        value: tl.constexpr = 2 ** (width - 1) - 1
        return value
    return 0


@triton.jit
def masked(x_ptr, out_ptr, n, one, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = (at < n) & (tl.program_id(0) < one)
    x = tl.load(x_ptr + at, mask=inside, other=most(x_ptr.dtype.element_ty))
    tl.store(out_ptr + at, x, mask=(at < BLOCK) & (one > 0))


@triton.jit
def divided(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + at), tl.load(y_ptr + at)
    quotient = libdevice.div_rz(x, y)
    tl.store(out_ptr + at, tl.where(libdevice.finitef(quotient), quotient, 0.0))


class Buffer:
    """What is no tensor, and has an address and a dtype."""

    def __init__(self, base: Any, offset: int) -> None:
        self.base, self.offset, self.dtype = base, offset, base.dtype

    def data_ptr(self) -> int:
        return int(self.base.data_ptr() + self.offset * self.base.element_size())


@pytest.fixture(params=[False, pytest.param(True, marks=pytest.mark.thorough)], ids=["interpreted", "compiled"])
def device(request: Any) -> Any:
    with torch.cuda.simulate(compiled=request.param):
        yield "cuda"


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32])
def test_masks_of_scalars_and_values_of_constants(device: str, dtype: torch.dtype) -> None:
    x, out = torch.arange(8, device=device, dtype=dtype), torch.zeros(8, device=device, dtype=dtype)
    masked[(1,)](x, out, 5, 1, BLOCK=8)
    assert out[:5].tolist() == [0, 1, 2, 3, 4]
    assert set(out[5:].tolist()) == {float("inf") if dtype is torch.float32 else 2**31 - 1}


def test_pointers_that_are_no_tensors(device: str) -> None:
    memory, out = torch.arange(20.0, device=device), torch.zeros(8, device=device)
    masked[(1,)](Buffer(memory, 3), Buffer(out, 0), 8, 1, BLOCK=8)
    assert out.cpu().tolist() == [3, 4, 5, 6, 7, 8, 9, 10]


def test_quotients_rounded_towards_zero(device: str) -> None:
    x = torch.linspace(-3, 3, 16, device=device)
    y, out = torch.full((16,), 0.7, device=device), torch.zeros(16, device=device)
    y[3] = 0.0
    divided[(1,)](x, y, out, BLOCK=16)
    exact = x.cpu().numpy().astype(np.float64) / np.where(y.cpu().numpy() == 0, np.inf, y.cpu().numpy())
    found = out.cpu().numpy()
    assert (np.abs(found) <= np.abs(exact)).all() and np.allclose(found, exact, 2e-7, 0)
