"""Every wait in the package is needed: without it, one of these programs gives a wrong answer on a device that is late.

The programs run on simulated devices, on simulated ones that pass for real (so that launches take the path of real
devices), and, in a process of their own, over a stub of libcuda that is late (`libcuda_stub.c`) for the driver of real
devices. A new wait comes with the program that needs it (`late_programs/`); the places are found in the source
(`waits.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ..needs import HAS_TRITON
from . import libcuda_stub
from .late_programs import PROGRAMS
from .late_programs.late_device import KINDS, MEMORY, ON_STUB, late
from .waits import Site, fails, sites, without


def run(kind: str, each: Callable[[], None]) -> None:
    with late(kind):
        each()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("each", PROGRAMS, ids=lambda each: each.__name__)
def test_programs_are_right_on_a_late_device(each: Callable[[], None], kind: str) -> None:
    run(kind, each)


def _is_of_the_driver(site: Site) -> bool:
    return site.module == "tritensor.drivers.cuda"


@pytest.mark.parametrize("site", [site for site in sites() if _is_of_the_driver(site) == ON_STUB], ids=str)
def test_without_this_wait_a_program_fails(site: Site) -> None:
    # the likely ones first: those of launches are the last ones, and need what passes for a real device
    direction = -1 if site.module.startswith(("tritensor.kernels", "tritensor.runtime")) else 1
    tried = [(kind, each) for kind in KINDS[::direction] for each in PROGRAMS[::direction]]
    if direction == -1 and not HAS_TRITON:
        pytest.skip("the programs that need this one launch kernels, which needs Triton")
    with without(site):
        noticed = any(fails(lambda kind=kind, each=each: run(kind, each)) for kind, each in tried)
    assert noticed, (
        f"{site.module}.{site.function}: nothing notices when this is left out: {site.text}\nIt is needless, or a "
        "program that needs it is missing here."
    )


def test_waits_are_found_in_the_source() -> None:
    found = [site.text for site in sites()]
    assert len(set(sites())) == len(found) > 60
    for text in ("data.wait()", "driver.mark_synchronize(mark)", "stream.wait_stream(target_stream)", "mark.is_done"):
        assert text in found


@pytest.mark.slow
@pytest.mark.skipif(ON_STUB, reason="this is the stub")
def test_the_driver_of_real_devices_needs_its_waits_too(tmp_path: Path) -> None:
    stub = libcuda_stub.environment(tmp_path, STUB_DEVICES="2", STUB_LATE="1", STUB_MEMORY=str(MEMORY))
    result = libcuda_stub.run(stub, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "skipped" not in result.stdout.splitlines()[-1].replace("1 skipped", "")
