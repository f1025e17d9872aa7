"""The driver in use: the running code's simulation, the simulator of the setting, the machine's own, or none."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from .. import settings
from ..errors import ArgumentError, DeviceError, explain, warn
from ..ground.locks import lock
from .current import entered, use, used
from .streams import find_driver_with

if TYPE_CHECKING:
    from .driver import Driver
    from .simulator import Simulator

__all__ = ["active", "count", "doctor", "require", "simulate", "use"]

_by_setting: dict[tuple[int, bool, str], Driver] = {}
_lock = lock()
_used = used.get
_asked = False
_real: Driver | None = None
_missing: list[str] = []
_NEEDS = "TRITENSOR_SIMULATE_CUDA: simulating CUDA devices needs Triton, which is not installed"
_NATIVE_REMEDY = "pip install 'tritensor[native]' (Linux on x86-64), or let the interpreter run kernels"
_REMEDY = "pip install 'tritensor[triton]' (Linux), or unset it"


def active() -> Driver | None:
    """The driver in use, or None where there is no CUDA device and none is simulated. Costs 60 ns.

    Without Triton the setting's devices are not there.
    """
    drivers = _used()
    if drivers:
        return drivers[-1]
    count = settings.simulate_cuda.value
    if count:
        engine = settings.simulate_compiled.value, settings.simulate_engine.value
        return _by_setting.get((count, *engine)) or _simulator(count)
    return _real if _asked else _find()


def count() -> int:
    """The number of devices; a warning says so if those of the setting are not."""
    driver = active()
    if driver is None and settings.simulate_cuda.value:
        warn(explain(_NEEDS, remedy=_REMEDY))
    return 0 if driver is None else driver.device_count()


def require() -> Driver:
    """The driver in use.

    Raises:
        DeviceError: there is none; the message names what is missing, and how to simulate a device.
    """
    driver = active()
    if driver is None:
        raise DeviceError(_explain_missing())
    return driver


find_driver_with(require)


def doctor() -> list[str]:
    """The reasons why no real CUDA device can be used, PyTorch's words first; empty if one can."""
    _find()
    return [_NEEDS] * bool(settings.simulate_cuda.value) + [line for line in _missing if line]


def _simulator(count: int) -> Driver | None:
    if find_spec("triton") is None:
        return None
    key = count, settings.simulate_compiled.value, settings.simulate_engine.value
    with _lock:
        if key not in _by_setting:
            _by_setting[key] = _kind(engine_of())(count)
        return _by_setting[key]


def engine_of(asked: str | None = None, compiled: bool | None = None, races: bool | None = None) -> str:
    """What runs the kernels of a simulation, by its arguments and the settings: native, interpreter or compiled.

    Raises:
        ArgumentError: another is asked for. DeviceError: native code is asked for, and cannot run.
    """
    if asked not in (None, "native", "interpreter", "compiled") or (compiled and asked not in (None, "compiled")):
        fact = f"got {asked!r}{' with compiled=True' if compiled else ''}"
        raise ArgumentError('simulate(): engine must be "native", "interpreter" or "compiled"', fact)
    found = asked or ("compiled" if settings.simulate_compiled.value else settings.simulate_engine.value)
    if compiled is not None and not asked:
        found = "compiled" if compiled else settings.simulate_engine.value.replace("compiled", "")
    lack = lacks_native()
    if found == "native" and lack:
        if asked:
            raise DeviceError(f"simulate(): {lack}", remedy=_NATIVE_REMEDY)
        warn(explain(f"TRITENSOR_SIMULATE_ENGINE=native: {lack}", remedy=_NATIVE_REMEDY))
        found = "interpreter"
    # races are found in the interpreter and in compiled code
    races = settings.simulate_races.value if races is None else races
    return found or ("interpreter" if races or lack else "native")


def lacks_native() -> str:
    """Why kernels cannot run as native code here; empty where they can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return "native code is made on Linux and x86-64 only"
    return "" if find_spec("llvmlite") else "native code needs llvmlite, which is not installed"


def _kind(engine: str) -> type[Simulator]:
    if engine == "compiled":
        from .compiled import CompiledSimulator

        return CompiledSimulator
    if engine == "native":
        from .native.driver import NativeSimulator

        return NativeSimulator
    from .simulator import Simulator

    return Simulator


def _find() -> Driver | None:
    global _asked, _real
    with _lock:
        if not _asked:
            from . import cuda

            _real, reasons = cuda.find()
            _missing[:] = reasons
            _asked = True
    return _real


def _explain_missing() -> str:
    if settings.simulate_cuda.value and not entered:
        return explain(_NEEDS, remedy=_REMEDY)
    first, *facts = _missing
    if entered:
        return explain(
            first,
            "devices are simulated in another thread or task; a simulation belongs to the one that entered it",
            remedy="hand it over, with `with simulation.share():` in this thread, where `simulation` is what "
            "`with tritensor.cuda.simulate(...) as simulation:` gave, or start the thread with "
            "contextvars.copy_context().run",
        )
    package = any("cuda-core" in fact for fact in facts)
    return explain(
        first,
        *facts,
        remedy=('pip install "tritensor[cuda]"; ' if package else "")
        + 'use device="cpu", or set TRITENSOR_SIMULATE_CUDA=1 to simulate a device on this machine',
    )


@contextmanager
def simulate(
    devices: int = 1,
    memory: int | str = "16GiB",
    capability: tuple[int, int] = (9, 0),
    name: str | None = None,
    compiled: bool | None = None,
    races: bool | None = None,
    engine: str | None = None,
) -> Iterator[Simulator]:
    """Simulate CUDA devices for a block of code: the same kernels, the same rules, in host memory.

    After the block the previous devices are in use again. Tensors of the simulation cannot be used any more; copy those
    that are needed later with `.cpu()`.

    The simulation belongs to the thread, or the asyncio task, that entered it: threads that simulate at once see each
    their own devices, memory and random numbers, and a thread that simulates nothing sees the machine's. The threads of
    `nn.DataParallel` and of a `DataLoader` work in the simulation of their caller. Another thread is handed it by
    `with simulation.share():` within the thread, or by starting it with `contextvars.copy_context().run`.

    Args:
        devices: the number of devices.
        memory: the size of each device's memory, in bytes or as "1GB" (1e9 bytes) or "1GiB" (2**30). Allocations beyond
            it raise `OutOfMemoryError`.
        capability: the result of `get_device_capability`.
        name: the result of `get_device_name`; the word Simulated is added.
        compiled: run the kernels as they are compiled for a card of that capability, 8.0 or 9.0, and not as they are
            written: approximate division, vectorised loads and tensor cores as on the card. Behaviour that a card
            leaves undefined is an error that names the line: a race in shared memory, a barrier that not all threads
            reach, a misaligned address. The default is the setting `TRITENSOR_SIMULATE_COMPILED`.
            The same as `engine="compiled"`.
        races: find what depends on the order of a kernel's programs, and reads of memory that nothing has written:
            both are errors that name the line. Of compiled kernels also Hopper's fences and waits that are missing.
            Launches take 2 to 5 times as long, 15 times where they are quickest. The default is the setting
            `TRITENSOR_SIMULATE_RACES`.
        engine: what runs kernels: "native", machine code of this processor, which is quickest and needs llvmlite;
            "interpreter", Triton's, step by step in NumPy; or "compiled". All check every address. The default is the
            setting `TRITENSOR_SIMULATE_ENGINE`, or else native code where it can run and no races are looked for.

    Raises:
        ArgumentError, ValueError: an invalid number of devices or memory size, or no such engine.
        DeviceError: native code cannot run here.

    >>> import tritensor.cuda
    >>> with tritensor.cuda.simulate(devices=2, memory="1GB"):
    ...     tritensor.cuda.device_count(), tritensor.cuda.get_device_name(0)
    (2, 'Simulated CUDA device')
    >>> import threading
    >>> def work(simulation):
    ...     with simulation.share():
    ...         print(tritensor.ones(2, device="cuda:1").sum().item())
    >>> with tritensor.cuda.simulate(devices=2) as simulation:
    ...     thread = threading.Thread(target=work, args=(simulation,))
    ...     thread.start()
    ...     thread.join()
    2.0
    """
    from .shadow import Shadow
    from .sizes import parse_memory

    if isinstance(devices, bool) or not isinstance(devices, int) or devices < 1:
        raise ArgumentError(f"simulate(): devices must be an int of at least 1, got {devices!r}")
    kind = _kind(engine_of(engine, compiled, races))
    simulation = kind(devices, parse_memory(memory), capability, name)
    if races is not None:
        simulation.shadow = Shadow() if races else None
    try:
        with use(simulation):
            yield simulation
            simulation.synchronize_all()
    finally:
        simulation.close()
