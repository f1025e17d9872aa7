"""Plain `@triton.jit` kernels on our tensors: Triton's own runtime finds our devices."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import pytest

import tritensor as torch
from tritensor.errors import DeviceMismatchError, KernelError

from ..needs import HAS_TRITON

if not HAS_TRITON:
    pytest.skip("Triton's runtime needs Triton", allow_module_level=True)

import triton
import triton.language as tl

from .plain.launches import LAUNCHES, N, _plain, _restored, blocks, inline_assembly, pointers_to_float8

KINDS: dict[str, dict[str, Any]] = {
    "interpreted": {},
    "sm_90": {"compiled": True},
    "sm_80": {"compiled": True, "capability": (8, 0)},
}


@pytest.mark.parametrize(
    "kind", ["interpreted", *(pytest.param(k, marks=pytest.mark.thorough) for k in list(KINDS)[1:])]
)
@pytest.mark.parametrize("launched", LAUNCHES, ids=lambda each: each.__name__)
def test_launches(launched: Any, kind: str) -> None:
    with torch.cuda.simulate(**KINDS[kind]):
        x, o = torch.linspace(-2, 2, N, device="cuda"), torch.zeros(N, device="cuda")
        if launched is pointers_to_float8 and kind == "sm_80" and triton.__version__ < "3.9":
            pytest.skip("before 3.9, Triton converts to float8 on such a card by instructions that it lacks")
        if launched is inline_assembly and kind == "interpreted" and torch.cuda.get_device_properties(0).is_simulated:
            with pytest.raises(KernelError, match=r"inline_asm not supported(.|\n)*simulate\(compiled=True\)"):
                launched(x, o)
        else:
            wanted = launched(x, o)
            torch.testing.assert_close(o, wanted)


def test_one_kernel_on_devices_of_several_kinds() -> None:
    """Triton keeps compiled kernels by the number of the device, which several simulations have."""
    for kind in ("sm_80", "interpreted", "sm_90", "sm_80"):
        with torch.cuda.simulate(**KINDS[kind]):
            x, o = torch.ones(N, device="cuda"), torch.zeros(N, device="cuda")
            made = _plain[blocks](o, x, N, BLOCK=64)
            major, minor = torch.cuda.get_device_capability()
            assert torch.equal(o, x) and made.metadata.target.arch == 10 * major + minor


@pytest.mark.parametrize("compiled", [False, True])
def test_the_device_is_that_of_the_tensors(compiled: bool) -> None:
    with torch.cuda.simulate(devices=2, compiled=compiled):
        x, o = torch.ones(N, device="cuda:1"), torch.zeros(N, device="cuda:1")
        _plain[blocks](o, x, N, BLOCK=64)
        assert torch.equal(o, x) and torch.cuda.current_device() == 0
        with pytest.raises(DeviceMismatchError, match="on the same device"):
            _plain[blocks](o, x.to("cuda:0"), N, BLOCK=64)
        with pytest.raises(TypeError, match=r"Pointer argument \(x\) cannot be accessed from Triton \(cpu tensor\?\)"):
            _plain[blocks](o, x.cpu(), N, BLOCK=64)
        with pytest.raises(TypeError, match="bogus is no parameter"):
            _plain[blocks](o, x, N, BLOCK=64, bogus=1)
        with pytest.raises(TypeError, match="one to three sizes"):
            _plain[lambda meta: (1, 1, 1, 1)](o, x, N, BLOCK=64)
        assert _plain[(0,)](o, x, N, BLOCK=64) is not None


@pytest.mark.parametrize("compiled", [False, True])
def test_times_are_predicted_and_said_to_be(compiled: bool) -> None:
    from tritensor.cuda import triton_driver

    triton_driver._say_that_times_are_predicted.cache_clear()
    with torch.cuda.simulate(compiled=compiled):
        x, o = torch.ones(1 << 22, device="cuda"), torch.zeros(1 << 22, device="cuda")

        def call(n: int = 1 << 22) -> None:
            _plain[(n // 64,)](o, x, n, BLOCK=64)

        with pytest.warns(UserWarning, match="the time is predicted from work that was counted; nothing was measured"):
            time = triton.testing.do_bench(call)
        assert triton.testing.do_bench(call, return_mode="all") == [time] == [triton.testing.do_bench_cudagraph(call)]
        assert triton.testing.do_bench(call, quantiles=[0.5, 0.2]) == [time, time]
        assert 1e-4 < triton.testing.do_bench(lambda: call(1 << 10)) < time < 1
        with pytest.raises(ValueError, match="return_mode is one of"):
            triton.testing.do_bench(call, return_mode="sum")
        properties = triton.runtime.driver.active.utils.get_device_properties(0)
        assert properties["max_shared_mem"] == 227 << 10 and properties["warpSize"] == 32


@pytest.mark.parametrize("compiled", [False, True])
def test_tuning_of_a_large_grid_leaves_the_results_of_one_launch(compiled: bool) -> None:
    """While it tunes, some programs of a kernel run only; what stands before and behind it runs whole."""
    _restored.cache.clear()
    _restored.cache_results = False
    with torch.cuda.simulate(compiled=compiled):
        x, o = torch.rand(20_000, device="cuda"), torch.ones(20_000, device="cuda")
        _restored[lambda meta: (triton.cdiv(20_000, meta["BLOCK"]),)](o, x, 20_000)
        torch.testing.assert_close(o, x + 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            times = [triton.testing.do_bench(lambda n=n: x[:n].exp()) for n in (1000, 20_000)]
        assert 0 < times[0] <= times[1] < 1


@triton.jit
def _clustered(o):
    tl.store(o, 1.0)


def test_what_a_simulated_device_does_not_run() -> None:
    gluon = pytest.importorskip("triton.experimental.gluon")
    with torch.cuda.simulate(compiled=True):
        o = torch.zeros(4, device="cuda")
        with pytest.raises(RuntimeError, match=r"no clusters of blocks(.|\n)*num_ctas=2"):
            _clustered[(2,)](o, num_ctas=2)
        with pytest.raises(KernelError, match="Gluon kernels do not run on simulated devices"):
            gluon.jit(_clustered.fn)[(1,)](o)


PROGRAM = """
    {first}
    {second}
    import triton.language as tl

    @triton.jit
    def double(o, x, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(o + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

    assert triton.runtime.driver.active.get_current_target().arch == 90
    x = torch.arange(100.0, device="cuda")
    o = torch.empty_like(x)
    double[(2,)](o, x, 100, BLOCK=64)
    assert torch.equal(o, 2 * x)
"""


@pytest.mark.parametrize(
    "words", [("import triton", "{}"), ("{}", "import triton")], ids=["triton first", "ours first"]
)
@pytest.mark.parametrize("run", [False, True], ids=["imported", "under run"])
def test_any_order_of_imports(words: tuple[str, str], run: bool, tmp_path: Path) -> None:
    ours = "import torch" if run else "import tritensor as torch"
    first, second = (each.format(ours) for each in words)
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM.format(first=first, second=second)), encoding="utf-8")
    command = [sys.executable, *(["-m", "tritensor", "run", "--simulate-cuda", "1"] if run else []), "program.py"]
    environment = {**os.environ, "TRITENSOR_SIMULATE_CUDA": "1", "PYTHONPATH": str(Path(torch.__file__).parents[1])}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)


BESIDE = """
    import torch as theirs
    import tritensor as torch
    import triton
    import triton.language as tl

    @triton.jit
    def double(o, x, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(o + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

    with torch.cuda.simulate(compiled=True):
        x = torch.arange(100.0, device="cuda")
        o = torch.empty_like(x)
        double[(2,)](o, x, 100, BLOCK=64)
        assert torch.equal(o, 2 * x)
        y = theirs.arange(100.0)
        try:
            double[(2,)](theirs.empty_like(y), y, 100, BLOCK=64)
        except (RuntimeError, ValueError) as error:  # Triton's driver has no device, or a device no tensor of the CPU
            assert "active drivers" in str(error) or "cpu tensor" in str(error), error
        else:
            raise AssertionError("a kernel ran on tensors of PyTorch on the CPU")
"""


@pytest.mark.peer
def test_launches_on_pytorchs_tensors_are_left_to_tritons_driver(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "program.py").write_text(textwrap.dedent(BESIDE), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(Path(torch.__file__).parents[1])}
    subprocess.run([sys.executable, "program.py"], cwd=tmp_path, env=environment, check=True)
