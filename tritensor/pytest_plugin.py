"""A pytest plugin: run a test on the CPU, on simulated CUDA devices and on a real one.

    def test_sum(device):
        x = tritensor.ones(3, device=device)
        assert x.sum().item() == 3

    pytest --devices cpu,sim:2,ptx,cuda

`sim:2` simulates two CUDA devices for each test, of which `device` is the first. `ptx` simulates one that runs kernels
as they are compiled for a card of compute capability 9.0; `ptx:8.0` for another. `cuda` is skipped if there is none.
The default of the option is the ini value `tritensor_devices`, or else `cpu`. Installed with the package.

    def test_double(check_kernel):
        check_kernel(double, (4,), (torch.empty(100, device="meta"), x, 100), lambda out, x, n: 2 * x, BLOCK=32)
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from . import settings
from .drivers import active, doctor, simulate
from .types.devices import device as Device

if TYPE_CHECKING:
    from .cuda.kernel_check import KernelReport

_NEEDS = 'simulating CUDA devices needs Triton. Fix: pip install "tritensor[triton]"'


def parse_devices(text: str) -> list[str]:
    """The parts of "cpu,sim:2,cuda", checked.

    >>> parse_devices("cpu, sim, ptx, cuda:1")
    ['cpu', 'sim:1', 'ptx:9.0', 'cuda:1']

    Raises:
        ValueError: a part that is not cpu, sim, sim:N, ptx, ptx:M.N, cuda or cuda:N.
    """
    found = []
    for part in text.replace(",", " ").split():
        if not re.fullmatch(r"cpu|cuda(:[0-9]+)?|sim(:[1-9][0-9]*)?|ptx(:[0-9]+\.[0-9])?", part):
            raise ValueError(
                f"--devices: cannot read {part!r}; write cpu, sim, sim:N, ptx, ptx:8.0, cuda or cuda:N, with commas "
                "between"
            )
        found.append({"sim": "sim:1", "ptx": "ptx:9.0"}.get(part, part))
    return found


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --devices and its ini value."""
    group = parser.getgroup("tritensor")
    group.addoption("--devices", metavar="LIST", help="what the `device` fixture stands for, as in cpu,sim:2,cuda")
    parser.addini("tritensor_devices", "what --devices is when it is not given", default="cpu")


def pytest_configure(config: pytest.Config) -> None:
    """Make the `device` fixture, with a parameter for each device asked for."""
    text = config.getoption("--devices") or str(config.getini("tritensor_devices"))
    try:
        asked = parse_devices(text)
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    config.pluginmanager.register(_fixtures(asked), "tritensor-devices")


def pytest_report_header(config: pytest.Config) -> str:
    """A line that names the devices that the tests run on."""
    text = config.getoption("--devices") or str(config.getini("tritensor_devices"))
    return f"tritensor devices: {', '.join(parse_devices(text))}"


@pytest.fixture
def check_kernel() -> Callable[..., KernelReport]:
    """`tritensor.testing.check_kernel`; a test that takes it is skipped where there is no Triton."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip(_NEEDS)
    from .testing import check_kernel

    return check_kernel


def _fixtures(asked: list[str]) -> object:
    """A plugin with the `device` fixture. It is a fixture with parameters, not a hook that adds them, so that a
    project's own fixture or parameter of that name overrides it."""

    class Fixtures:
        @pytest.fixture(params=asked)
        def device(self, request: pytest.FixtureRequest) -> Iterator[Device]:
            """A device of each kind that --devices names."""
            yield from _provide(request.param)

    return Fixtures()


def _provide(name: str) -> Iterator[Device]:
    kind, _, number = name.partition(":")
    if kind == "cpu":
        yield Device("cpu")
    elif kind in ("sim", "ptx"):
        if importlib.util.find_spec("triton") is None:
            pytest.skip(_NEEDS)
        options: dict[str, Any] = {"devices": int(number)} if kind == "sim" else {"compiled": True}
        if kind == "ptx":
            major, minor = map(int, number.split("."))
            options["capability"] = major, minor
        with simulate(**options):
            yield Device("cuda", 0)
    else:
        with settings.simulate_cuda(0):
            driver = active()
            if driver is None or int(number or 0) >= driver.device_count():
                pytest.skip(f"no {name} here: {'; '.join(doctor()) or 'too few devices'}")
            yield Device("cuda", int(number or 0))
