"""How a device divides a reduction: stages, splits, tiles, parts of long rows, and what its code reads at once."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.kernels.reduction import kernel as reductions_kernel
from tritensor.kernels.reduction import scan
from tritensor.operators import registry
from tritensor.types import dtypes

# ---- how a device divides the work ----------------------------------------------------------------------------


def launches(monkeypatch):
    """The (rows, columns per program, grid) of every launch of the reduction kernel."""
    seen = []
    launch = reductions_kernel.launch

    def recorded(kernel, grid, arguments, constants, device, **options):
        seen.append((constants["ROWS"], constants["COLS"], tuple(grid), options["name"]))
        launch(kernel, grid, arguments, constants, device, **options)

    monkeypatch.setattr(reductions_kernel, "launch", recorded)
    return seen


def test_few_long_rows_are_reduced_in_two_stages(monkeypatch):
    rng = np.random.default_rng(0)
    array = rng.standard_normal((2, 1000)).astype(np.float32)
    with torch.cuda.simulate(devices=1), settings.block(16):
        seen = launches(monkeypatch)
        x = torch.from_numpy(array).cuda()
        found = {name: getattr(x, name)(1) for name in ("sum", "std", "logsumexp")}
        found["argmax"] = x.argmax()
        assert [grid[1] > 1 for _, _, grid, _ in seen] == [True, False] * 4
        assert [name for *_, name in seen[:2]] == ["reduction_sum", "reduction_sum_parts"]
        wide = array.astype(np.float64)
        np.testing.assert_allclose(found["sum"].cpu().numpy(), wide.sum(1), rtol=1e-5)
        np.testing.assert_allclose(found["std"].cpu().numpy(), wide.std(1, ddof=1), rtol=1e-5)
        np.testing.assert_allclose(found["logsumexp"].cpu().numpy(), np.log(np.exp(wide).sum(1)), rtol=1e-5)
        assert found["argmax"].item() == array.argmax()


def test_columns_are_split_too(monkeypatch):
    array = np.random.default_rng(0).standard_normal((700, 3)).astype(np.float32)
    with torch.cuda.simulate(devices=1), settings.block(8):
        seen = launches(monkeypatch)
        np.testing.assert_allclose(
            torch.from_numpy(array).cuda().sum(0).cpu().numpy(), array.sum(0), rtol=1e-4, atol=1e-4
        )
        assert seen[0][2][1] > 1


@pytest.mark.thorough
@pytest.mark.parametrize("order", ["reverse", "shuffle"])
def test_the_order_of_programs_changes_no_bit(order):
    array = np.random.default_rng(1).standard_normal(1500).astype(np.float32)
    with torch.cuda.simulate(devices=1), settings.block(32):
        x = torch.from_numpy(array).cuda()
        first = [x.sum().item(), x.var().item(), x.logsumexp(0).item(), x.cumsum(0).cpu().numpy().tobytes()]
        with settings.grid_order(order):
            assert first == [x.sum().item(), x.var().item(), x.logsumexp(0).item(), x.cumsum(0).cpu().numpy().tobytes()]


def test_offsets_of_64_bits(monkeypatch):
    """What a tensor of more than 2**31 elements takes, on a small one."""
    with torch.cuda.simulate(devices=1), settings.block(4):
        for module in (reductions_kernel, scan):
            monkeypatch.setattr(module, "reach", lambda array: 1 << 31)
        x = torch.arange(60.0, device="cuda").reshape(3, 20)
        assert x.sum(1).tolist() == [190.0, 590.0, 990.0]
        assert x.argmax(0).tolist() == [2] * 20
        assert x.cumsum(1)[:, -1].tolist() == [190.0, 590.0, 990.0]


@pytest.mark.thorough
@pytest.mark.parametrize("reverse", [False, True])
def test_long_rows_are_scanned_in_parts(reverse, monkeypatch):
    modes = []
    launch = scan.launch
    monkeypatch.setattr(
        scan, "launch", lambda *args, **options: (modes.append(options["name"]), launch(*args, **options))
    )
    array = np.random.default_rng(0).integers(-9, 9, (2, 200))
    wanted = np.flip(np.cumsum(np.flip(array, 1), 1), 1) if reverse else np.cumsum(array, 1)
    with torch.cuda.simulate(devices=1), settings.block(4):
        found = registry["cumsum"](torch.from_numpy(array).cuda(), dim=1, reverse=reverse)
        np.testing.assert_array_equal(found.cpu().numpy(), wanted)
    assert modes[0] == "cumsum_totals" and modes[-1] == "cumsum_parts"
    assert modes.count("cumsum_totals") == 2  # 25 parts a row, whose totals are scanned in parts as well


def test_a_device_chooses_tiles_by_itself():
    """Tiles of a real device, from the sizes alone; nothing is run."""

    class Driver:
        def pick(self, compiled, interpreted):
            return compiled

        def properties(self, index):
            return type("Properties", (), {"multi_processor_count": 132})

    class Array:
        buffer = type("Buffer", (), {"driver": Driver()})
        device = torch.device("cuda:0")

    def tile(rows, cols, inner, width=1, whole=False):
        return reductions_kernel._tile(Array, rows, cols, inner, width, whole)

    assert tile(4096, 1024, True) == (1, 1024, 1024, 4)  # a program for each row
    assert tile(4096, 64, True) == (64, 64, 64, 4)  # several rows
    assert tile(1024, 4096, False)[:2] == (128, 32)  # columns
    rows, cols, part, _ = tile(1, 1 << 22, True)  # all of it: enough programs to fill the device, in whole tiles
    assert (rows, cols) == (1, 4096) and part % cols == 0 and 132 <= (1 << 22) / part <= 132 * 4
    assert tile(1, 1 << 22, True, whole=True)[2] == 1 << 22
    assert tile(4096, 1024, True, width=3)[:2] == (1, 1024) and tile(8, 1 << 20, True, width=3)[1] == 2048

    def scan_tile(rows, cols, inner):
        return scan._tile(Array, rows, cols, inner)

    assert scan_tile(4096, 1000, True)[:2] == (2, 1024) and scan_tile(4096, 1000, True)[2] == 1000
    assert scan_tile(1000, 4096, False) == (64, 32, 4096)
    rows, cols, part = scan_tile(1, 1 << 22, True)
    assert (rows, cols) == (1, 2048) and part % cols == 0 and part < 1 << 22


# ---- compiled code --------------------------------------------------------------------------------------------


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["fp32", "bf16"])
@pytest.mark.parametrize("inner", [True, False], ids=["rows", "columns"])
def test_contiguous_elements_are_read_in_vectors_of_16_bytes(inner, kind):
    pytest.importorskip("triton")
    from tritensor.runtime.launch import compile_ahead

    parts = registry["sum"].parts({})
    rows, cols = (1, 4096) if inner else (128, 32)
    outer, step = ("i32:16",), ("i32:1",)
    signature = (
        (f"*{kind}:16",),
        (f"*{kind}:16",),
        (),
        (outer if inner else step,),
        ("i32:16",),
        (step if inner else outer,),
        ("i32:16",),
        "i32:16",
        "i32:16",
        "i32:16",
        "i32",
    )
    element = {"fp32": dtypes.float32, "bf16": dtypes.bfloat16}[kind]
    constants = {
        "START": reductions_kernel.element_state,
        "COMBINE": parts.combine,
        "FOLD": parts.fold,
        "FINISH": reductions_kernel.bare_state,
        "IDENTITY": (0,),
        "STATE": (dtypes.float32,),
        "COMPUTE": (dtypes.float32,),
        "OUT_DTYPES": (element,),
        "KEPT_RANK": 1,
        "REDUCED_RANK": 1,
        "INDEX64": False,
        "UNITS": (1,) * 5,
        "SHIFT": -1,
        "ROWS": rows,
        "COLS": cols,
    }
    facts = compile_ahead(reductions_kernel.reduction_kernel, signature, constants, ("cuda", 90))
    assert facts.local_bytes == 0
    if "sass" in facts.asm:
        loads = re.findall(r"\bLDG\.E(\S*)", facts.asm["sass"])
        assert loads and all(".128" in load for load in loads)
