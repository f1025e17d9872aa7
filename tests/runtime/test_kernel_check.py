"""`tritensor.testing.check_kernel`: what it runs, what it reports, and what it refuses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.errors import ArgumentError, KernelMemoryError, KernelMismatchError
from tritensor.testing import check_kernel

from ..needs import HAS_TRITON

if not HAS_TRITON:
    pytest.skip("running kernels needs Triton", allow_module_level=True)

import triton
import triton.language as tl

TWO = {"capabilities": (None, (8, 0))}


@triton.jit
def double(out_ptr, x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)


@triton.jit
def scale_rows(out_ptr, x_ptr, factor_ptr, out_step, x_step, cols, BLOCK: tl.constexpr):
    row, j = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_step + j, mask=j < cols)
    tl.store(out_ptr + row * out_step + j, x * tl.load(factor_ptr + row), mask=j < cols)


def grid(meta: dict[str, Any]) -> tuple[int]:
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def test_a_table_tells_what_held(capsys: pytest.CaptureFixture[str]) -> None:
    x, out = torch.arange(300.0), torch.empty(300, device="meta")
    report = check_kernel(double, grid, (out, x, 300), lambda out, x, n: 2 * x, BLOCK=128)
    assert report.failed == [] and str(report) == repr(report) == capsys.readouterr().out.strip()
    lines = [re.split(r"  +", line) for line in str(report).splitlines()]
    assert lines[0] == ["double: 9 of 9 runs held"]
    assert [line[:4] for line in lines[2:5]] == [
        ["interpreted", "exact", "forward", "equal"],
        ["interpreted", "offset", "reverse", "equal"],
        ["interpreted", "exact", "shuffle", "equal"],
    ]
    assert [line[0] for line in lines[5:]] == ["sm_80"] * 3 + ["sm_90"] * 3
    assert re.fullmatch(r"a100: \d+\.\d us predicted, \w+, 2\.\d kB", lines[5][4])
    assert [launch.name for run in report.runs for launch in run.launches] == ["double", "double"]


def test_rows_are_further_apart_where_an_argument_asks_for_a_stride() -> None:
    x = torch.randn(5, 60)
    args: dict[str, Any] = {"x_ptr": x, "factor_ptr": np.arange(5, dtype=np.float32), "cols": 60}
    args |= {"out_ptr": torch.empty(5, 60, device="meta"), "x_step": lambda t: t["x_ptr"].stride(0)}

    def reference(x_ptr: Any, factor_ptr: Any, **others: Any) -> Any:
        return {"out_ptr": x_ptr * factor_ptr[:, None]}

    good = {**args, "out_step": lambda t: t["out_ptr"].stride(0)}
    report = check_kernel(scale_rows, (5,), good, reference, BLOCK=64, **TWO)
    assert [run.layout for run in report.runs] == ["exact", "offset", "strided"] * 2
    assert check_kernel(scale_rows, (5,), good, x * torch.arange(5.0)[:, None], BLOCK=64, **TWO).failed == []
    with pytest.raises(KernelMismatchError, match=r"nothing wrote it(?s:.*)in the run: interpreted, strided"):
        check_kernel(
            scale_rows, (4,), {**good, "out_ptr": torch.zeros(5, 60)}, reference, layouts=["strided"], BLOCK=64, **TWO
        )


def test_tensors_keep_their_strides_and_what_is_one_stays_one() -> None:
    x = torch.arange(12.0).reshape(3, 4).t()
    assert check_kernel(double, (1,), (torch.empty(12, device="meta"), x, 12), x.t().reshape(-1) * 2, BLOCK=16, **TWO)
    assert check_kernel(double, (1,), (torch.empty(1, device="meta"), torch.ones(1).expand(5), 1), BLOCK=16, **TWO)

    def twice(out: Any, x: Any, n: int) -> None:
        out.mul_(2)

    y = torch.arange(4.0)
    assert check_kernel(double, (1,), (y, y, 4), twice, BLOCK=16, **TWO).failed == []
    assert y.tolist() == [0, 1, 2, 3]


def test_differences_name_the_run_the_element_and_the_line() -> None:
    x, out = torch.ones(300), torch.empty(300, device="meta")
    line = double.starting_line_number + 3
    wanted = 2 * x
    wanted[7] = 3
    with pytest.raises(KernelMismatchError) as caught:
        check_kernel(double, grid, (out, x, 300), wanted, BLOCK=128, **TWO)
    first = str(caught.value).splitlines()
    assert first[0] == "double: element [7] of out_ptr is 2.0, and the reference has 3.0"
    assert first[2] == f"  it was written at test_kernel_check.py:{line}"
    assert first[3] == "  in the run: interpreted, exact, forward"
    assert first[5] == "double: 0 of 6 runs held"
    assert check_kernel(double, grid, (out, x, 300), wanted, atol=2, BLOCK=128, **TWO).runs[0].difference == 1
    with pytest.raises(KernelMismatchError, match=rf"nothing wrote it\n  others were written at .*:{line}"):
        check_kernel(double, (2,), (torch.zeros(300), x, 300), 2 * x, BLOCK=128, **TWO)
    with pytest.raises(KernelMemoryError, match=r"in the run: interpreted, exact(?s:.*)\.\.\."):
        check_kernel(double, (2,), (out, x[:200], 300), BLOCK=128, **TWO)
    with pytest.raises(KernelMismatchError, match=r"element \[\d\] of out_ptr is \S+, and the first run has"):
        check_kernel(uneven, (1,), (torch.empty(4, device="meta"),), capabilities=(None, (8, 0)))


@triton.jit
def uneven(out_ptr):
    i = tl.arange(0, 4)
    x = 3.0 + i
    tl.store(out_ptr + i, (x / x - 1) * 1e7)  # a card's quotient is off by an ulp or two


def test_what_is_refused() -> None:
    x, out = torch.ones(30), torch.empty(30, device="meta")
    with pytest.raises(ArgumentError, match=r"expected a @triton\.jit or cuda\.jit kernel, got function"):
        check_kernel(lambda: None, (1,), ())
    with pytest.raises(ArgumentError, match="layouts are exact, offset, strided, got 'wide'"):
        check_kernel(double, (1,), (out, x, 30), layouts=["wide"], BLOCK=32)
    with pytest.raises(ArgumentError, match=r"returns 2 results for double\n  it writes 1 tensors: out_ptr"):
        check_kernel(double, (1,), (out, x, 30), lambda *args: (x, x), BLOCK=32, **TWO)
    with pytest.raises(ArgumentError, match="the reference of out_ptr has the shape"):
        check_kernel(double, (1,), (out, x, 30), x[:3], BLOCK=32, **TWO)


def test_kernels_of_other_kinds() -> None:
    tuned = triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 32})], key=["n"])(double)
    x, out = torch.ones(100), torch.empty(100, device="meta")
    assert check_kernel(tuned, grid, (out, x, 100), 2 * x, **TWO).name == "double"
    assert check_kernel(torch.cuda.jit(double), grid, (out, x, 100), 2 * x, BLOCK=64, **TWO).name == "double"
