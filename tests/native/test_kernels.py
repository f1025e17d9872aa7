"""Users' kernels run natively and interpreted: written ones, ones drawn at random, and ones that leave their arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from tritensor import cuda, settings
from tritensor.drivers import selection
from tritensor.drivers.native.driver import NativeSimulator
from tritensor.errors import DeviceError, KernelMemoryError

from ..needs import HAS_TRITON

if not HAS_TRITON or selection.lacks_native():
    pytest.skip(selection.lacks_native() or "simulated devices need Triton", allow_module_level=True)

from .drawing.flow import draw
from .drawing.kinds import NUMPY, OURS
from .drawing.running import judged, off_device, programs
from .written import CASES, REFUSED, wrong
from .written.cases import Tensors

TARGETS = ["", "avx2", "no-fma"]
DTYPES = {ours: NUMPY[short] for short, ours in OURS.items()}


@pytest.fixture(autouse=True)
def apart(tmp_path: Path) -> Iterator[None]:
    """What is compiled is compiled here."""
    with settings.cache_dir(str(tmp_path)):
        yield


def ran(launched: Callable[[], Tensors], engine: str) -> tuple[list[np.ndarray], set[str]]:
    """What a launch left behind, and the kernels that were interpreted."""
    interpreted = set()
    original = NativeSimulator.interpreted

    def watched(self: Any, stream: Any, request: Any) -> Any:
        interpreted.add(request.name)
        return original(self, stream, request)

    with cuda.simulate(engine=engine), patch.object(NativeSimulator, "interpreted", watched):
        found = launched()
        return [off_device(each.contiguous(), np.empty(0, DTYPES[each.dtype])) for each in found], interpreted


def check(name: str) -> None:
    launched, tolerance = CASES[name]
    (ours, interpreted), (wanted, _) = ran(launched, "native"), ran(launched, "interpreter")
    assert interpreted == REFUSED.get(name, set())
    for x, y in zip(ours, wanted, strict=True):
        if x.dtype.kind not in "fV":
            assert np.array_equal(x, y)
        elif name == "moves_of_all_bits":
            same = x.view(f"u{x.itemsize}") == y.view(f"u{y.itemsize}")
            if x.dtype == np.float16:  # signalling NaNs become quiet ones
                same |= np.isnan(x) & np.isnan(y)
            assert same.all()
        else:  # NumPy has no arithmetic of its own for some of them
            np.testing.assert_allclose(x.astype(np.float64), y.astype(np.float64), tolerance, tolerance)


@pytest.mark.sampled(24)
@pytest.mark.parametrize("name", CASES)
def test_written_kernels(name: str) -> None:
    check(name)


@pytest.mark.thorough
@pytest.mark.parametrize("target", TARGETS[1:])
@pytest.mark.parametrize("name", CASES)
def test_written_kernels_for_other_processors(name: str, target: str) -> None:
    with settings.native_target(target):
        check(name)


def compare(seed: int, folder: Path, limit: int, length: int) -> None:
    outcome = judged(draw(seed, limit, length), folder)
    if outcome.kind not in ("same", "Triton's"):
        kind = f"limit {limit}, length {length}: python -m tests.native.drawing --only --seed {seed}"
        pytest.fail(f"{outcome.kind} ({kind} --limit {limit} --length {length})\n{outcome.detail}")


@pytest.mark.parametrize("seed", range(16))
def test_random_kernels(seed: int, tmp_path: Path) -> None:
    compare(seed, tmp_path, 256, 12)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(100, 400))
def test_more_random_kernels(seed: int, tmp_path: Path) -> None:
    compare(seed, tmp_path, 256 << seed % 5, 12 + seed % 30)


@pytest.mark.parametrize("target", TARGETS[1:])
@pytest.mark.parametrize("seed", [50, *(pytest.param(n, marks=pytest.mark.thorough) for n in range(51, 80))])
def test_random_kernels_for_other_processors(seed: int, target: str, tmp_path: Path) -> None:
    with settings.native_target(target):
        compare(seed, tmp_path, 256, 12)


# ---- errors ---------------------------------------------------------------------------------------------------------


def failed(kernel: Any, grid: tuple[int, ...], arguments: Callable[[], tuple[Any, ...]], engine: str) -> str:
    """The message of a launch between two arrays, which keep what they hold."""
    with cuda.simulate(engine=engine):
        before, values, after = wrong.floats(64, 5.0), arguments(), wrong.floats(64, 6.0)
        kinds = set(map(id, programs()))
        message = ""
        try:
            kernel[grid](*values)
        except (KernelMemoryError, DeviceError) as error:
            message = str(error)
        assert before.tolist() == [5.0] * 64 and after.tolist() == [6.0] * 64
        assert not [each.kernel.refusal for each in programs() if id(each) not in kinds and each.kernel.refusal]
        return message


@pytest.mark.sampled(26)
@pytest.mark.parametrize("name", wrong.MISTAKES)
def test_a_mistake_is_told_as_the_interpreter_tells_it(name: str) -> None:
    kernel, grid, arguments, part = wrong.MISTAKES[name]
    ours, wanted = (failed(kernel, grid, arguments, engine) for engine in ("native", "interpreter"))
    assert ours == wanted and (part in ours if part else not ours)


def test_a_kernel_without_a_mistake_beside_one_with(tmp_path: Path) -> None:
    """After an error the device can be used."""
    with cuda.simulate(engine="native"):
        o, x = wrong.floats(64), wrong.floats(65, 2.0)
        for _ in range(3):
            with pytest.raises(KernelMemoryError, match="writes element 64 of argument 0"):
                wrong.copying[(2,)](o, x, 65, 0)
            wrong.copying[(1,)](o, x, 64, 1)
            assert o.tolist() == [2.0] * 64
