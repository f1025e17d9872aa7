"""How a real device is found: what is missing is said, and older packages are taken too."""

from __future__ import annotations

import types

import pytest

from tritensor.drivers import cuda as real


class Bindings:
    """As much of cuda.bindings.driver as looking for devices takes."""

    CUresult = int

    def __init__(self, init=0, count=1):
        self.init, self.count = init, count

    def cuInit(self, flags):
        if isinstance(self.init, Exception):
            raise self.init
        return (self.init,)

    def cuDeviceGetCount(self):
        return 0, self.count

    def cuGetErrorString(self, status):
        return 0, b"it is tired"

    def cuGetErrorName(self, status):
        return 0, b"CUDA_ERROR_TIRED"


@pytest.fixture
def modules(monkeypatch):
    """What `import cuda.bindings.driver` and `import cuda.core` give; None for a package that is not installed."""
    found = {"cuda.core": types.SimpleNamespace(Device=None, EventOptions=dict)}

    def import_module(name):
        if found.get(name) is None:
            raise ModuleNotFoundError(f"No module named {name!r}")
        return found[name]

    monkeypatch.setattr(real.importlib, "import_module", import_module)
    return found


@pytest.mark.parametrize(("there", "words"), [(False, real.NO_DRIVER), (True, "No CUDA device can be used.")])
def test_a_missing_package_is_said_apart_from_a_missing_driver(modules, monkeypatch, there, words):
    monkeypatch.setattr(real, "_library_is_there", lambda: there)
    driver, reasons = real.find()
    assert driver is None
    assert reasons[0] == words
    assert "cuda-core" in reasons[-1]
    assert "No module named 'cuda.bindings.driver'" in reasons[-1]


@pytest.mark.parametrize(
    ("bindings", "words", "fact"),
    [
        (Bindings(init=OSError("no libcuda")), real.NO_DRIVER, "no libcuda"),
        (Bindings(init=100), "No CUDA GPUs are available", "finds no device"),
        (Bindings(count=0), "No CUDA GPUs are available", "finds no device"),
        (Bindings(init=999), "CUDA could not be started", "it is tired (CUDA_ERROR_TIRED)"),
    ],
)
def test_why_there_is_no_device_is_said(modules, bindings, words, fact):
    modules["cuda.bindings.driver"] = bindings
    driver, reasons = real.find()
    assert driver is None
    assert reasons[0] == words
    assert fact in "\n".join(reasons)


def test_hidden_devices_are_pointed_out(modules, monkeypatch):
    modules["cuda.bindings.driver"] = Bindings(count=0)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "CUDA_VISIBLE_DEVICES is ''" in real.find()[1][-1]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert real.find()[1][-1] == ""


@pytest.mark.parametrize("place", ["cuda.core", "cuda.core.experimental"])
@pytest.mark.parametrize("spelling", ["timing_enabled", "enable_timing"])
def test_older_versions_of_cuda_core_are_taken_too(modules, place, spelling):
    class EventOptions:
        def __init__(self, **given):
            if set(given) != {spelling}:
                raise TypeError(given)
            self.timing = given[spelling]

    modules["cuda.core"] = types.SimpleNamespace()
    modules[place] = types.SimpleNamespace(Device=None, EventOptions=EventOptions)
    modules["cuda.bindings.driver"] = Bindings(count=3)
    driver, reasons = real.find()
    assert reasons == []
    assert driver.device_count() == 3
    assert not driver.is_simulated
    assert (driver._plain_event.timing, driver._timed_event.timing) == (False, True)


def test_a_library_that_is_not_there_is_not_loaded(monkeypatch):
    def load(name):
        assert "cuda" in name
        raise OSError(name)

    monkeypatch.setattr(real.ctypes, "CDLL", load)
    assert not real._library_is_there()
    monkeypatch.setattr(real.ctypes, "CDLL", lambda name: None)
    assert real._library_is_there()
