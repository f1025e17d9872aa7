"""What holds for every test: simulated devices need Triton, and a machine without it tests the rest in full. No test
leaves anything behind that another could meet, so that any order and any selection of tests gives the same results."""

from __future__ import annotations

import importlib.util
from collections.abc import Generator
from pathlib import Path

import pytest

from tritensor.drivers import selection
from tritensor.errors import DeviceError
from tritensor.kernels import plan as plans
from tritensor.kernels import replay

# Programs that mpiexec runs, not tests: importing one starts a process group.
collect_ignore = ["distributed_programs"]

try:
    import hypothesis
except ImportError:  # a machine that is only lent for its GPU: the rest is tested there
    here = Path(__file__).parent
    collect_ignore += [path.name for path in here.glob("test_*.py") if "import hypothesis" in path.read_text("utf-8")
                       or "from hypothesis" in path.read_text("utf-8")]  # fmt: skip
else:
    # A machine that is busy with something else draws examples slowly; that is no failure.
    hypothesis.settings.register_profile(
        "patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True
    )
    hypothesis.settings.load_profile("patient")

HAS_TRITON = importlib.util.find_spec("triton") is not None


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a test that leaves behind what decides how later ones run."""
    yield
    found = _left_behind()
    if found:  # the next tests are to be judged by what they do themselves
        plans._make, replay.active.wanted, replay.active.on = _MAKE, False, False
        plans._plans.clear()
    assert not found, f"the test left behind {', '.join(found)}"


_MAKE = plans._make


def _left_behind() -> list[str]:
    places = {
        "its own tritensor.kernels.plan._make": plans._make is not _MAKE,
        "plans of kernels": any(plan.driver is not selection._real for plan in plans._plans.values()),
        "replays of calls": replay.active.wanted and selection._real is None,
    }
    return [what for what, is_there in places.items() if is_there]
