"""The pytest plugin that the package ships, run on projects made for it."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import pkgutil

import pytest

from tritensor import drivers, pytest_plugin, settings
from tritensor.drivers import ptx
from tritensor.ground import index

from ..needs import HAS_TRITON, needs_triton

pytest_plugins = ["pytester"]
# A run within this process forgets the modules that it imports: names cannot be declared a second time, and Triton's
# own code ends the process when it is loaded a second time.
index.everything()
for _module in pkgutil.iter_modules(ptx.__path__, f"{ptx.__name__}."):
    importlib.import_module(_module.name)
if HAS_TRITON:
    for _name in ("triton.compiler", "tritensor.runtime.compiler", "tritensor.testing", "tritensor.cuda.profiling"):
        importlib.import_module(_name)

# Where the package is installed, pytest finds the plugin by itself and would refuse to load it twice.
_INSTALLED = any(entry.name == "tritensor" for entry in importlib.metadata.entry_points(group="pytest11"))
_LOAD = [] if _INSTALLED else ["-p", "tritensor.pytest_plugin"]


PROJECT = """
    import tritensor.cuda as cuda
    from tritensor import drivers

    def test_device(device):
        assert device.type in ("cpu", "cuda")
        if device.type == "cuda":
            assert cuda.device_count() > device.index
            print("devices", cuda.device_count(), cuda.get_device_name(device))
"""


@pytest.fixture
def run(pytester):
    def run(*arguments):
        return pytester.runpytest(*_LOAD, "-p", "no:cacheprovider", *arguments)

    return run


def test_the_cpu_is_what_runs_when_nothing_is_said(pytester, run):
    pytester.makepyfile(PROJECT)
    result = run("-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["tritensor devices: cpu", "*test_device?cpu? PASSED*"])


@needs_triton
def test_each_device_asked_for_runs_the_test(pytester, run):
    pytester.makepyfile(PROJECT)
    result = run("-v", "-s", "--devices", "cpu,sim:3")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*test_device?cpu?*PASSED*", "*test_device?sim:3?*devices 3 Simulated CUDA device*"])
    assert drivers.active() is None or not drivers.active().is_simulated


@needs_triton
def test_the_ini_file_can_name_the_devices(pytester, run):
    pytester.makepyfile(PROJECT)
    pytester.makeini("[pytest]\ntritensor_devices = sim cpu\n")
    result = run()
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["tritensor devices: sim:1, cpu"])


def test_a_real_device_that_is_not_there_is_skipped_with_the_reason(pytester, run):
    pytester.makepyfile(PROJECT)
    with settings.simulate_cuda(2):
        result = run("--devices", "cuda:77", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*no cuda:77 here: *"])


def test_a_real_device_that_is_there_is_used(monkeypatch):
    with drivers.simulate(devices=2) as driver:
        monkeypatch.setattr(pytest_plugin, "active", lambda: driver)
        assert next(pytest_plugin._provide("cuda")).index == 0
        assert next(pytest_plugin._provide("cuda:1")).index == 1


def test_simulation_without_triton_is_skipped_with_the_reason(pytester, run, monkeypatch):
    monkeypatch.setattr(pytest_plugin.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(pytest.skip.Exception, match=r"tritensor\[triton\]"):
        next(pytest_plugin._provide("sim:1"))


KERNEL = """
    import pytest, triton, triton.language as tl, tritensor as torch

    @triton.jit
    def double(out_ptr, x_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)

    @pytest.mark.parametrize("programs", [2, 1])
    def test_double(check_kernel, programs):
        x, out = torch.arange(20.0), torch.empty(20, device="meta")
        check_kernel(double, (programs,), (out, x, 20), 2 * x, capabilities=[None], BLOCK=16)
"""


def test_a_kernel_is_checked_by_a_fixture(pytester, run, monkeypatch):
    with monkeypatch.context() as absent:
        absent.setattr(pytest_plugin.importlib.util, "find_spec", lambda name: None)
        pytester.makepyfile("def test_kernel(check_kernel): assert 0")
        run().assert_outcomes(skipped=1)
    if HAS_TRITON:
        pytester.makepyfile(KERNEL)
        result = run()
        result.assert_outcomes(passed=1, failed=1)
        result.stdout.fnmatch_lines(["*nothing wrote element ?16? of out_ptr, of 20*"])


def test_a_project_s_own_device_wins(pytester, run):
    pytester.makepyfile("""
        import pytest

        @pytest.fixture
        def device():
            return "mine"

        def test_fixture(device):
            assert device == "mine"
    """)
    pytester.makepyfile(
        test_parameter="""
        import pytest

        @pytest.mark.parametrize("device", ["theirs"])
        def test_parameter(device):
            assert device == "theirs"
    """
    )
    run("--devices", "cpu,sim:2").assert_outcomes(passed=2)


@needs_triton
def test_compiled_kernels_of_a_user_run_and_are_checked(pytester, run):
    pytester.makepyfile("""
        import triton
        import triton.language as tl
        import tritensor as torch

        @triton.jit
        def double(out_ptr, x_ptr, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)

        def test_double(device):
            x = torch.arange(100.0, device=device)
            out = torch.empty_like(x)
            double[(1,)](out, x, 100, BLOCK=128)
            assert torch.equal(out, 2 * x)

        def test_the_capability(device):
            assert torch.cuda.get_device_capability(device) in ((9, 0), (8, 0))

        def test_too_far(device):
            x = torch.arange(100.0, device=device)
            double[(1,)](x, x, 1 << 20, BLOCK=1 << 14)
    """)
    result = run("--devices", "ptx,ptx:8.0")
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines(["*CUDA error: an illegal memory access was encountered*in double*"])


@pytest.mark.parametrize("text", ["gpu", "sim:0", "cuda:x", "cpu,tpu", "sim:-1", "ptx:9"])
def test_a_list_that_cannot_be_read_is_refused(run, text):
    result = run("--devices", text)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--devices: cannot read*write cpu, sim, sim:N, ptx, ptx:8.0, cuda or cuda:N*"])


def test_an_own_option_is_listed_in_the_help(run):
    run("--help").stdout.fnmatch_lines(["*--devices*LIST*"])
