"""What softmax, layer normalisation and cross entropy are compiled to at the sizes of the GPU table: counts that must
not grow. Instructions an element bound a kernel of 16-bit rows, programs a multiprocessor one that waits for memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tritensor as torch
from tritensor.nn import functional as F

from ..needs import HAS_TRITON

if not HAS_TRITON:
    pytest.skip("compiling needs Triton", allow_module_level=True)

from tritensor.operators import registry
from tritensor.runtime import compiler

from ..devices.compile_only import compile_only
from .machine_code import Code, read

if "nvdisasm" not in compiler._tools():
    pytest.skip("Triton's package has no disassembler here", allow_module_level=True)

ELEMENTS = 1 << 28
HALF, FLOAT, FLOAT16 = torch.bfloat16, torch.float32, torch.float16


def code_of(call: Callable[[], Any], family: str) -> tuple[Code, list[Any]]:
    """The code of the one kernel of a family that a call launches, and the grids of all of its launches."""
    with compile_only(memory=1 << 40, processors=132) as device:
        call()
    (code,) = [code for code in map(read, device.made) if code.name.startswith(family)]
    return code, [grid for name, grid in device.launches if name.startswith(family)]


def rows(columns: int, dtype: Any) -> Any:
    return torch.empty(ELEMENTS * 4 // dtype.itemsize // columns, columns, dtype=dtype, device="cuda")


def softmax(columns: int, dtype: Any) -> None:
    rows(columns, dtype).softmax(1)


def layer_norm(columns: int, dtype: Any) -> None:
    x = rows(columns, dtype)
    F.layer_norm(x, (columns,), x[0], x[1])


def cross_entropy(columns: int, dtype: Any) -> None:
    x = rows(columns, dtype)
    registry["cross_entropy_with_gradient"](x, torch.empty(len(x), dtype=torch.int64, device="cuda"), None)


# Programs on a multiprocessor at least, and instructions for each element at most (of both loops over a long row), with
# what they were before exponentials were reused, masks dropped and parameters loaded late.
CASES = [
    (softmax, 1024, FLOAT, 16, 28),  # 16, 39
    (softmax, 4096, FLOAT, 7, 19),  # 6, 31
    (softmax, 8192, FLOAT, 3, 19),  # 2, 31
    (softmax, 32768, FLOAT, 2, 32),  # 2, 34
    (softmax, 4096, HALF, 10, 11.5),  # 6, 31
    (softmax, 4096, FLOAT16, 10, 11),  # 6, 31
    (softmax, 32768, HALF, 3, 19.5),  # 3, 36
    # two of these center again what the mean lost in rounding: 1e-6 and not 1e-2 of the result for a mean of 1e6
    (layer_norm, 4096, FLOAT, 8, 13),  # 4, 23
    (layer_norm, 8192, FLOAT, 4, 13),  # 2, 23
    (layer_norm, 16384, FLOAT, 2, 14),  # 1, 25
    (layer_norm, 4096, HALF, 8, 14.5),  # 5, 25
    (layer_norm, 8192, HALF, 4, 15),  # 2, 25
    (layer_norm, 16384, HALF, 2, 15),  # 1, 27
    (cross_entropy, 32768, FLOAT, 2, 34),  # 1, 44
    (cross_entropy, 131072, FLOAT, 2, 34),  # 1, 44
    (cross_entropy, 32768, HALF, 3, 25.5),  # 1, 49
    (cross_entropy, 131072, HALF, 3, 25.5),  # 1, 49
    (cross_entropy, 131072, FLOAT16, 3, 25),  # 1, 48
]
QUICK = {(softmax, 4096, HALF), (layer_norm, 16384, FLOAT), (cross_entropy, 32768, FLOAT)}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("call", "columns", "dtype", "resident", "most"),
    [pytest.param(*case, marks=() if case[:3] in QUICK else pytest.mark.slow) for case in CASES],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_the_counts_of_row_kernels(call: Any, columns: int, dtype: Any, resident: int, most: float) -> None:
    code, _ = code_of(lambda: call(columns, dtype), "rowwise")
    assert code.spilled == 0
    assert code.resident >= resident, code
    of_a_thread = 16 if code.loops else {1024: 8}.get(columns, 32)  # elements
    assert (sum(code.loops) or code.instructions) / of_a_thread <= most, code


def test_a_short_row_is_read_by_masks() -> None:
    """The code for rows that fill their tile is another one."""
    assert code_of(lambda: rows(1024, HALF)[:, :1000].softmax(1), "rowwise")[0].spilled == 0


@pytest.mark.thorough
def test_finding_a_factor_of_one_takes_few_programs() -> None:
    from tritensor.kernels.rowwise.loss_kernels import launch_scale

    for dtype in (FLOAT, HALF):

        def scale(dtype: Any = dtype) -> None:
            launch_scale(rows(32768, dtype)._data, torch.empty((), dtype=dtype, device="cuda")._data)

        code, grids = code_of(scale, "scale")
        assert grids == [(132 * 16, 1, 1)]  # 65,536 before
        assert code.spilled == 0 and code.resident >= 12
