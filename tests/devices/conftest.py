"""The stub that stands for the CUDA driver, for tests of several files."""

from __future__ import annotations

import os

import pytest

from . import libcuda_stub


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    """Runs Python with the stub as its libcuda."""
    if os.environ.get("STUB_DEVICES"):
        pytest.skip("this is the stub")
    environment = libcuda_stub.environment(tmp_path_factory.mktemp("stub"))
    return lambda *arguments, **variables: libcuda_stub.run({**environment, **variables}, *arguments)
