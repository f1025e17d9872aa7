"""What holds for every test: simulated devices need Triton, and a machine without it tests the rest in full."""

from __future__ import annotations

import importlib.util
from collections.abc import Generator

import pytest

from tritensor.errors import DeviceError

# Programs that mpiexec runs, not tests: importing one starts a process group.
collect_ignore = ["distributed_programs"]

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
