"""Numbers that a kernel of Triton takes by its parameters' annotations: on every engine and on the CPU."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

import tritensor as torch
from tritensor.errors import ArgumentError

from ..needs import HAS_TRITON

if not HAS_TRITON:
    pytest.skip("kernels need Triton", allow_module_level=True)

import triton
import triton.language as tl

pytestmark = pytest.mark.filterwarnings("ignore:.*interpreted")


@triton.jit
def _int64(o, x: tl.int64):
    tl.store(o, x * 4)


@triton.jit
def _float64(o, x: tl.float64):
    tl.store(o, x * 3)


@triton.jit
def _int16(o, x: tl.int16):
    tl.store(o, (x * 2).to(tl.float64))


@triton.jit
def _uint8(o, x: tl.uint8):
    tl.store(o, x.to(tl.int64) << 1)


@triton.jit
def _float16(o, x: tl.float16):
    tl.store(o, x.to(tl.float64))


@triton.jit
def _bool(o, x):
    tl.store(o, x.to(tl.int64) * 7)


@triton.jit(do_not_specialize=["x"])
def _general(o, x):
    tl.store(o, x.to(tl.int64) + 1)


CASES = [
    (_int64, 1 << 30, 1 << 32),
    (_int64, 1, 4),
    (_float64, 0.1, 3 * 0.1),
    (_int16, 20000, -25536),
    (_uint8, 255, 510),
    (_float16, 0.1, 0.0999755859375),
    (_bool, True, 7),
    (_bool, False, 0),
    (_general, 1, 2),
    (_general, -(1 << 40), 1 - (1 << 40)),
]


@pytest.mark.parametrize(
    "engine", ["interpreter", "native", "cpu", pytest.param("compiled", marks=pytest.mark.thorough)]
)
def test_numbers_have_the_types_of_annotations(engine: str) -> None:
    where: Any = nullcontext() if engine == "cpu" else torch.cuda.simulate(engine=engine)
    with where:
        for kernel, given, wanted in CASES:
            o = torch.zeros(1, dtype=torch.float64, device="cpu" if engine == "cpu" else "cuda")
            kernel[(1,)](o, given)
            assert o.item() == wanted, kernel.__name__


def test_a_number_that_a_type_does_not_hold_is_refused() -> None:
    with pytest.raises(ArgumentError, match="_int16: x is 70000, which i16 does not hold"):
        _int16[(1,)](torch.zeros(1), 70000)
