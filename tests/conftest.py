"""What holds for every test: simulated devices need Triton, and a machine without it tests the rest in full. No test
leaves anything behind that another could meet, so that any order and any selection of tests gives the same results."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from tritensor import cuda, drivers, settings
from tritensor.autograd.mode import recording
from tritensor.drivers import current, selection
from tritensor.drivers.native.driver import NativeSimulator
from tritensor.drivers.simulator import Simulator
from tritensor.errors import DeviceError
from tritensor.ground import index
from tritensor.host import threads
from tritensor.pytest_plugin import parse_devices
from tritensor.runtime import replay

from .needs import HAS_TRITON
from .overriding import remove
from .selection import LeftOut, pytest_collect_file, pytest_ignore_collect, pytest_pycollect_makeitem
from .times import Times

__all__ = ["pytest_collect_file", "pytest_ignore_collect", "pytest_pycollect_makeitem"]  # hooks

# What these assert for several files is told with its values, as an assertion of a test is.
pytest.register_assert_rewrite(
    *(
        f"tests.{module}"
        for module in (
            "devices.late_programs",
            "devices.simulator.interleaving",
            "functional.against_torch.side_by_side",
            "functional.indexing.arrays",
            "functional.matmul.products",
            "nn.models",
            "optim.many_parameters",
        )
    )
)

# Programs that mpiexec runs, not tests: importing one starts a process group. And what the emulated libcuda imports.
collect_ignore = ["distributed/programs", "devices/emulated.py"]

try:
    import hypothesis
except ImportError:  # a machine that is only lent for its GPU: the rest is tested there
    here = Path(__file__).parent
    collect_ignore += [
        str(path.relative_to(here))
        for path in here.rglob("test_*.py")
        if "import hypothesis" in path.read_text("utf-8") or "from hypothesis" in path.read_text("utf-8")
    ]
else:
    # A machine that is busy with something else draws examples slowly; that is no failure.
    hypothesis.settings.register_profile(
        "patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True
    )
    hypothesis.settings.load_profile("patient")

# Tests compare tensors of the CPU with NumPy's references bit for bit: what native code computes has tests of its own.
settings.native_cpu.value = os.environ.setdefault("TRITENSOR_NATIVE_CPU", "0")

SIMULATORS = Simulator, NativeSimulator
NUMBER_OF_THREADS = threads.get_num_threads()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", action="store_true", help="print where the time goes, by folder and by what tests do")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(LeftOut())
    if config.option.times:
        config.pluginmanager.register(Times())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Skip, on a machine without Triton, a test that came to the point of running a kernel."""
    try:
        return (yield)
    except BaseException as error:
        cause: BaseException | None = error
        while cause is not None and not HAS_TRITON:
            if isinstance(cause, DeviceError) and "needs Triton" in str(cause):
                pytest.skip("runs kernels, which needs Triton: pip install 'tritensor[triton]'")
            cause = cause.__cause__ or cause.__context__
        raise


def pytest_collection_finish() -> None:
    """The collector of cycles does not look through the tests again and again: there are 20,000."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """At the end everything is freed, or Triton's bindings report leaks."""
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """Fail a test that leaves behind what decides how later ones run."""
    yield
    if index.watching:  # a subclass of Tensor, or a mode
        remove()
    if nextitem is None or nextitem.path != item.path:
        # what a file has imported and compiled: a collection took a second at the end of the run, and captures and
        # allocations that fail begin with one
        gc.collect()
        gc.freeze()
    found = _left_behind()
    if found:  # the next tests are to be judged by what they do themselves
        replay.stop()
        current.used.set(tuple(driver for driver in current.used.get() if type(driver) in SIMULATORS))
        threads.set_num_threads(NUMBER_OF_THREADS)
        recording.enabled, recording.inference = True, False
    assert not found, f"the test left behind {', '.join(found)}"


def _left_behind() -> list[str]:
    places = {
        "a device of its own": any(type(driver) not in SIMULATORS for driver in current.used.get()),
        "replays of calls": replay.active.wanted and selection._real is None,
        "another recording mode": (recording.enabled, recording.inference) != (True, False),
        "another number of threads": threads.get_num_threads() != NUMBER_OF_THREADS,
    }
    return [what for what, is_there in places.items() if is_there]


@pytest.fixture(autouse=True)
def engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every twentieth test simulates devices natively, the others by the interpreter, unless an engine is asked for.

    A test launches a kernel once or twice on a few elements: making its code takes 35 ms, interpreting it 8. All tests
    run natively by `make test-native`.
    """
    if "TRITENSOR_SIMULATE_ENGINE" in os.environ or not HAS_TRITON:
        yield
        return
    natively = not selection.lacks_native() and crc32(request.node.nodeid.encode()) % 20 == 0
    with settings.simulate_engine("native" if natively else "interpreter"):
        yield


@pytest.fixture
def same_number_of_threads() -> Iterator[None]:
    """For a test that sets it: afterwards it is what it was."""
    yield
    threads.set_num_threads(NUMBER_OF_THREADS)


@pytest.fixture
def few_threads(same_number_of_threads: None) -> None:
    """For a test that measures memory: two threads at most, each of which has a block of its own."""
    threads.set_num_threads(min(2, NUMBER_OF_THREADS))


@pytest.fixture
def no_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine without a driver, whatever this one has."""
    monkeypatch.setattr(selection, "_asked", True)
    monkeypatch.setattr(selection, "_real", None)
    monkeypatch.setattr(selection, "_missing", ["Found no NVIDIA driver on your system.", "no library"])
    with settings.simulate_cuda(0):
        yield


# What these hold of kernels on a simulated device must hold on a real one: `--devices cuda` runs them there.
KERNELS = frozenset(
    f"test_{name}"
    for name in (
        "operators",
        "complex_on_devices",
        "matmul",
        "solving",
        "reductions",
        "reductions_on_devices",
        "running",
        "ordering",
        "uniqueness",
        "bins",
        "rowwise",
        "losses",
        "more_losses",
        "ctc",
        "indexing",
        "gather_and_scatter",
        "scattering",
        "sums_at_places",
        "rearranging",
        "convolution_on_devices",
        "attention_on_devices",
        "pools_on_devices",
        "channel_norms",
        "grid_sampling",
        "resizing",
        "embedding",
        "bags",
        "piecewise",
        "special_functions",
        "recurrent_layers",
        "views",
        "optim",
        "more_optimizers",
        "optimizer_state",
        "graphs",
        "graph_training",
        "captures_refused",
        "autocast",
        "grad_scaler",
        "swa_utils",
        "plain_kernels",
    )
)
# These are about simulation: after a device-side assertion a real device does nothing more for the process, and calls
# that are repeated on one allocate by another function.
SIMULATED = frozenset(
    (
        "test_a_target_that_is_no_class",
        "test_a_probability_that_is_none_is_asserted_on_a_device",
        "test_operands_of_any_strides_are_read_in_place",
        "test_a_graph_of_an_ended_simulation_says_so",
        "test_weights_are_packed_for_many_results_only",
        "test_a_step_is_one_launch_or_two_with_projected_states",
        "test_one_kernel_on_devices_of_several_kinds",
    )
)


def on_the_real_one(simulate: Callable[..., Any]) -> Callable[..., Any]:
    """What stands for `cuda.simulate` there: the real device wherever one plain device is asked for."""

    @contextmanager
    def block(devices: int = 1, **options: Any) -> Iterator[Any]:
        if devices != 1 or options:
            with simulate(devices, **options) as simulation:
                yield simulation
            return
        with settings.simulate_cuda(0):
            driver = drivers.require()
            yield driver
            driver.synchronize(0)

    return block


@pytest.fixture(autouse=True)
def _real_device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernel tests on the real device, where --devices names it and there is one."""
    asked = request.config.getoption("--devices")
    module = request.module.__name__.rpartition(".")[2]
    if asked and "cuda" in parse_devices(asked) and module in KERNELS and request.node.originalname not in SIMULATED:
        with settings.simulate_cuda(0):
            if drivers.active() is not None:
                monkeypatch.setattr(cuda, "simulate", on_the_real_one(cuda.simulate))
