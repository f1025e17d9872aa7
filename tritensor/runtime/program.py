"""Plans: what a launch on a real device comes to, once the kernel is compiled and loaded for its arguments.

A launch finds its plan by a key of kernel, argument types and constants, and hands cuda-core plain integers: pointers,
integers and floats by their bits, in the kernel's order with tuples flattened, then two pointers to scratch memory.
cuda-core and Triton are imported when the first plan is made.
"""

from __future__ import annotations

import contextlib
import importlib
import struct
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import devices, dtypes, settings
from ..drivers import ledger
from ..drivers.driver import CONTEXT_LOST, FATAL
from ..errors import DeviceError, KernelError, explain
from ..memory.array import Form, form_of_new
from .source import Float64, Int64, Kernel

if TYPE_CHECKING:
    from ..drivers import Driver
    from ..drivers.allocator import Block
    from .disk_cache import Compiled

__all__ = ["Plan", "find", "float_bits", "given_first", "pointers", "refused", "specialise"]

_I32, _I32_16, _I32_1 = ("i32", None), ("i32", 16), ("i32", 1)
_I64, _I64_16, _U64 = ("i64", None), ("i64", 16), ("u64", None)
_FP32, _FP64 = ("fp32", None), ("fp64", None)
_pack_float, _unpack_int = struct.Struct("<f").pack, struct.Struct("<i").unpack

_pointers: dict[np.dtype, tuple[Any, Any]] = {}  # by dtype: the type of an aligned pointer, and of another
_plans: dict[Any, Plan] = {}
_lock = threading.Lock()
# Told of every launch while a call is being recorded (`recording.py`) or timed; returns the values to launch with.
recorder: Any = None

_BYTE = np.dtype(np.uint8)
# Dynamic shared memory that a kernel may have without asking for more.
_SHARED = 48 << 10


def specialise(arguments: Sequence[Any], values: list[Any], stream: Any) -> tuple[Any, ...]:
    """The types that a kernel is compiled for, as the compiler takes them; the launch's integers go to `values`.

    Memory that comes from another stream is told of this one, so that it is not given out again too early.
    """
    types: list[Any] = []
    for value in arguments:
        kind = value.__class__
        if kind is tuple:
            types.append(specialise(value, values, stream))
        elif kind is int:
            if value == 1:  # the compiler drops what multiplies by a stride of 1; it is no parameter any more
                types.append(_I32_1)
                continue
            if -0x80000000 <= value < 0x80000000:
                types.append(_I32 if value & 15 else _I32_16)
            elif value < 0x8000000000000000:
                types.append(_I64 if value & 15 else _I64_16)
            else:
                types.append(_U64)
                value -= 1 << 64  # by its bits; cuda-core takes signed integers
            values.append(value)
        elif kind is float:
            types.append(_FP32)
            values.append(float_bits(value))
        elif kind is Int64:
            types.append(_I64)
            values.append(int(value))
        elif kind is Float64:
            types.append(_FP64)
            values.append(float(value))
        elif kind is bool or kind is str or value is None:
            types.append(("constexpr", value))
        else:
            buffer = value.buffer
            if buffer.arena is not stream.arena:
                buffer.record_stream(stream)
            dtype = value.dtype
            address = buffer.address + value.offset * dtype.itemsize
            pair = _pointers.get(dtype) or _pointer_types(dtype)
            types.append(pair[1] if address & 15 else pair[0])
            values.append(address)
    return tuple(types)


def float_bits(value: float) -> int:
    """A float32 argument as cuda-core takes it: the integer of the same bits."""
    try:
        return _unpack_int(_pack_float(value))[0]  # type: ignore[no-any-return]
    except OverflowError:  # beyond float32: infinity, as a conversion on the device would make of it
        return _unpack_int(_pack_float(float("inf") if value > 0 else float("-inf")))[0]  # type: ignore[no-any-return]


def _pointer_types(dtype: np.dtype) -> tuple[Any, Any]:
    name = dtypes.of(dtype).triton
    if not name:
        raise KernelError(f"kernels do not take arrays of {dtypes.of(dtype).name}")
    return _pointers.setdefault(dtype, ((f"*{name}", 16), (f"*{name}", None)))


def given_first(signature: tuple[Any, ...], count: int) -> bool:
    """Whether a launch's first `count` values are pointers aligned to 16 bytes and numbers that the kernel was not
    compiled for, so that others can take their place."""
    first = [entry for entry in _flat(signature) if entry[0] != "constexpr" and entry[1] != 1][:count]
    return all(attribute == 16 if type[0] == "*" else (type, attribute) in _OPEN for type, attribute in first)


_OPEN = frozenset((_FP32, _FP64, _I64))


def _flat(signature: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    for entry in signature:
        if entry and isinstance(entry[0], str):
            yield entry
        else:
            yield from _flat(entry)


def pointers(signature: tuple[Any, ...]) -> Iterator[bool]:
    """Whether each of the values that `specialise` collected for a signature is an address."""
    for type, attribute in _flat(signature):
        if type != "constexpr" and attribute != 1:
            yield type[0] == "*"


class Plan:
    """A kernel that is compiled, loaded and ready on one device."""

    __slots__ = (
        "_block",
        "_config",
        "_configs",
        "_forms",
        "_launch",
        "_place",
        "_shared",
        "device",
        "driver",
        "kernel",
        "name",
        "pointers",
        "scratch",
    )

    def __init__(
        self, driver: Any, device: int, kernel: Any, name: str, metadata: Any, core: Any, pointers: tuple[bool, ...]
    ) -> None:
        self.driver = driver
        self.device = device
        self.kernel = kernel
        self.name = name
        self.pointers = pointers  # which of the values of a launch are addresses
        self._launch = core.launch
        self._config = core.LaunchConfig
        self._configs: dict[tuple[int, int, int], Any] = {}
        self._forms: dict[tuple[int, int, int], list[Form | None]] = {}
        # A kernel runs in the current context, which is another device's only where there are several.
        self._place = core.Device(device) if driver.device_count() > 1 else None
        self._block = metadata.num_warps * 32  # read back: warp specialisation adds to what was asked for
        self._shared = metadata.shared
        sizes = [getattr(metadata, f"{kind}_scratch_size", 0) or 0 for kind in ("global", "profile")]
        self.scratch: list[int] = sizes if any(sizes) else []

    def launch(self, stream: Any, grid: tuple[int, int, int], values: Sequence[int]) -> None:
        """Launch on a stream; returns before the kernel has run.

        Raises:
            DeviceError: the driver refused; the text says what becomes of the device.
        """
        config = self._configs.get(grid) or self._configure(grid)
        if recorder is not None:
            values = recorder.launched(self, grid, values)
        blocks = self._scratch_blocks(stream, grid) if self.scratch else ()
        scratch = [block.address if block else 0 for block in blocks] if blocks else (0, 0)
        try:
            if self._place is not None:
                self._place.set_current()
            self._launch(stream.handle, config, self.kernel, *values, *scratch)
        except Exception as error:
            raise refused(self.name, error, driver=self.driver) from error
        finally:
            for block in blocks:
                if block is not None:
                    stream.arena.give(block)
        self.driver.launched.append(f"{self.name} at {ledger.call_site()}" if settings.debug.value else self)

    def prepared(self, grid: tuple[int, int, int]) -> tuple[Any, Any, Any, Any]:
        """What a launch comes to: a function to call first (or None), cuda-core's launch, the grid, the kernel."""
        place = None if self._place is None else self._place.set_current
        return place, self._launch, self._configs.get(grid) or self._configure(grid), self.kernel

    def _configure(self, grid: tuple[int, int, int]) -> Any:
        if len(self._configs) >= 1024:  # grids that follow a changing size must not pile up
            self._configs.clear()
        config = self._config(grid=grid, block=(self._block, 1, 1), shmem_size=self._shared)
        return self._configs.setdefault(grid, config)

    def _scratch_blocks(self, stream: Any, grid: tuple[int, int, int]) -> list[Block | None]:
        """Scratch memory for each program. It is given back as soon as the launch is made: the stream runs in order.

        Triton aligns what a program keeps there to 128 bytes at most (a tensor descriptor), and its size accordingly;
        every block of a driver begins at a multiple of 256.
        """
        forms = self._forms.get(grid)
        if forms is None:
            if len(self._forms) >= 1024:
                self._forms.clear()
            programs, device = grid[0] * grid[1] * grid[2], devices.cuda(self.device)
            forms = self._forms[grid] = [
                form_of_new((size * programs,), _BYTE, device) if size else None for size in self.scratch
            ]
        return [stream.arena.take(form) if form else None for form in forms]


def find(
    driver: Any,
    kernel: Kernel,
    signature: tuple[Any, ...],
    constants: Mapping[str, Any],
    device: int,
    warps: int,
    stages: int,
    name: str | None,
) -> Plan:
    """The plan of a launch; compiles and loads the kernel when there is none yet."""
    key = (kernel, signature, tuple(constants), _key(constants.values()), device, warps, stages, name)
    plan = _plans.get(key)
    if plan is None:
        with _lock:
            plan = _plans.get(key)
            if plan is None:
                plan = _make(driver, kernel, signature, constants, device, warps, stages, name)
                _plans[key] = plan
    return plan


def _key(constants: Iterable[Any]) -> tuple[Any, ...]:
    """Constants for a key: 1, 1.0 and True are equal in Python and different to the compiler."""
    return tuple([_key(value) if value.__class__ is tuple else (value.__class__, value) for value in constants])


def _make(
    driver: Any,
    kernel: Kernel,
    signature: tuple[Any, ...],
    constants: Mapping[str, Any],
    device: int,
    warps: int,
    stages: int,
    name: str | None,
) -> Plan:
    from . import disk_cache, replay

    operator = name or kernel.profiler_name(dict(constants), None)
    core = _needs_cuda_core(operator)
    capability = driver.capability(device)
    path = disk_cache.path_of(kernel, signature, constants, capability, warps, stages, name)
    compiled, loaded = disk_cache.load(path), None
    if compiled is not None:
        with contextlib.suppress(DeviceError):  # a file that the driver will not take is as good as none
            loaded = _load(core, compiled, device, operator)
    if compiled is None or loaded is None:
        compiled = _compile(kernel, signature, constants, capability, warps, stages, name, operator)
        loaded = _load(core, compiled, device, operator)
        disk_cache.store(path, compiled)
    replay.begin()
    return Plan(driver, device, loaded, operator, compiled, core, tuple(pointers(signature)))


def _compile(
    kernel: Kernel,
    signature: tuple[Any, ...],
    constants: Mapping[str, Any],
    capability: tuple[int, int],
    warps: int,
    stages: int,
    name: str | None,
    operator: str,
) -> Compiled:
    from .disk_cache import Compiled
    from .launch import _needs_triton

    compiler = _needs_triton("compiler", operator)
    target = "cuda", capability[0] * 10 + capability[1]
    made = compiler.compile_kernel(kernel, signature, constants, target, warps, stages, name)
    scratch = [getattr(made.metadata, f"{kind}_scratch_size", 0) or 0 for kind in ("global", "profile")]
    return Compiled(made.asm["cubin"], made.metadata.name, made.metadata.shared, made.metadata.num_warps, *scratch)


def _load(core: Any, compiled: Compiled, device: int, operator: str) -> Any:
    """Hand a kernel's code to the driver."""
    try:
        loaded = core.ObjectCode.from_cubin(compiled.cubin).get_kernel(compiled.name)
        if compiled.shared > _SHARED:
            _raise_shared_limit(loaded, compiled.shared, device)
    except Exception as error:
        raise refused(operator, error, f"it needs {compiled.shared} bytes of shared memory") from error
    return loaded


def _needs_cuda_core(name: str) -> Any:
    """cuda-core, under the name that the installed version has."""
    problem: ImportError | None = None
    for module in ("cuda.core", "cuda.core.experimental"):
        try:
            core = importlib.import_module(module)
        except ImportError as error:
            problem = problem or error
            continue
        if hasattr(core, "launch") and hasattr(core, "LaunchConfig"):
            return core
    raise DeviceError(
        explain(
            f"{name}: launching kernels on a GPU needs cuda-core, which cannot be imported",
            str(problem or "cuda.core has no launch()"),
            remedy='pip install "tritensor[cuda]"',
        )
    ) from problem


def _raise_shared_limit(loaded: Any, nbytes: int, device: int) -> None:
    """Let a kernel have more than 48 KB of shared memory, by the driver's own call: cuda-core's differs by version."""
    cuda = importlib.import_module("cuda.bindings.driver")
    handle = getattr(loaded, "handle", None)
    attribute = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    status = cuda.cuKernelSetAttribute(attribute, nbytes, loaded._handle if handle is None else handle, device)[0]
    if int(status) != 0:
        raise RuntimeError(f"cuKernelSetAttribute: {status!r}")


def refused(name: str, error: Exception, *facts: str, driver: Driver | None = None) -> DeviceError:
    """The error for a call that the CUDA driver refused, with PyTorch's first words for the commonest cause."""
    text = f"{type(error).__name__}: {error}"
    first = "CUDA error: " + next((code.lower().replace("_", " ") for code in FATAL if code in text), "launch failure")
    if "ILLEGAL_ADDRESS" in text:
        first = "CUDA error: an illegal memory access was encountered"
    if any(code in text for code in FATAL):
        return DeviceError(
            explain(
                first,
                f"reported at the launch of {name}; the kernel that failed may be an earlier one",
                "" if driver is None else driver.suspects(),
                text,
                CONTEXT_LOST,
                remedy="start anew with CUDA_LAUNCH_BLOCKING=1, or on a simulated device (TRITENSOR_SIMULATE_CUDA=1), "
                "which checks every address",
            )
        )
    return DeviceError(explain(first, f"at the launch of {name}", *facts, text))
