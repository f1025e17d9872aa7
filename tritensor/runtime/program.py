"""Programs: kernels that are compiled for their arguments and loaded on a device.

A launch finds its program by a key of kernel, argument types and constants, and passes the driver plain integers:
pointers, integers, and the bits of floats, in the kernel's order with tuples flattened, then two pointers to scratch
memory. Triton is imported when the first kernel is compiled.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import settings
from ..drivers import ledger
from ..errors import DeviceError, KernelError, TritensorError
from ..ground.locks import lock
from ..memory.array import Form, form_of_new
from ..types import devices, dtypes
from .needs_triton import needs_triton
from .source import NUMBER_TYPES, NUMPY, Address, Kernel

if TYPE_CHECKING:
    from ..drivers.allocator import Block
    from ..drivers.loading import Compiled, Loaded, Target

_I32, _I32_16, _I32_1 = ("i32", None), ("i32", 16), ("i32", 1)
_I64, _I64_16, _U64 = ("i64", None), ("i64", 16), ("u64", None)
_FP32 = "fp32", None
_pack_float, _unpack_int = struct.Struct("<f").pack, struct.Struct("<i").unpack

_pointers: dict[np.dtype, tuple[Any, Any]] = {}  # by dtype: the types of an aligned and of an unaligned pointer
_lock = lock()
# Set while a call is traced (`trace.py`) or timed (`log.py`): `launched` is called before each launch of a compiled
# kernel, `interpreted` before the interpreter runs one.
observer: Any = None
# Functions to call when a kernel has been loaded on a device on which calls are repeated.
watchers: list[Callable[[], object]] = []

_BYTE = np.dtype(np.uint8)


def specialise(arguments: Sequence[Any], values: list[Any], stream: Any) -> tuple[Any, ...]:
    """The types that a kernel is compiled for, in the compiler's terms; appends the launch's integers to `values`.

    Calls `record_stream` on buffers of other streams, so that their memory is not reused before the kernel has run.
    """
    types: list[Any] = []
    for value in arguments:
        kind = value.__class__
        if kind is tuple:
            types.append(specialise(value, values, stream))
        elif kind is int:
            if value == 1:  # compiled as a constant, so that multiplications by 1 vanish; it is not a parameter
                types.append(_I32_1)
                continue
            if -0x80000000 <= value < 0x80000000:
                types.append(_I32 if value & 15 else _I32_16)
            elif value < 0x8000000000000000:
                types.append(_I64 if value & 15 else _I64_16)
            else:
                types.append(_U64)
                value -= 1 << 64  # the same bits; cuda-core takes signed integers
            values.append(value)
        elif kind is float:
            types.append(_FP32)
            values.append(float_bits(value))
        elif name := NUMBER_TYPES.get(kind):
            types.append((name, None))
            values.append(_word(value, name))
        elif kind is bool or kind is str or value is None:
            types.append(("constexpr", value))
        elif kind is Address:
            types.append((f"*{value.dtype.triton}", None if value & 15 else 16))
            values.append(int(value))
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


def _word(value: float, name: str) -> int | float:
    """An argument whose type of Triton's is given: float64 as it is, others as the integer with the same bits."""
    if name == "fp64":
        return float(value)
    if name == "fp32":
        return float_bits(value)
    kind = NUMPY[name]
    return int(np.array(value, kind).view(f"i{kind.itemsize}")) if name != "i64" else int(value)


def float_bits(value: float) -> int:
    """A float32 argument for cuda-core: the integer with the same bits."""
    try:
        return _unpack_int(_pack_float(value))[0]
    except OverflowError:  # beyond float32: infinity, as for a conversion on the device
        return _unpack_int(_pack_float(float("inf") if value > 0 else float("-inf")))[0]


def _pointer_types(dtype: np.dtype) -> tuple[Any, Any]:
    name = dtypes.of(dtype).triton
    if not name:
        raise KernelError(f"kernels do not take arrays of {dtypes.of(dtype).name}")
    return _pointers.setdefault(dtype, ((f"*{name}", 16), (f"*{name}", None)))


def _flat(signature: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    for entry in signature:
        if entry and isinstance(entry[0], str):
            yield entry
        else:
            yield from _flat(entry)


def pointers(signature: tuple[Any, ...]) -> Iterator[bool]:
    """True if each of the values that `specialise` collected for a signature is an address."""
    for type, attribute in _flat(signature):
        if type != "constexpr" and attribute != 1:
            yield type[0] == "*"


class Program:
    """A kernel that is compiled, loaded and ready on one device."""

    __slots__ = (
        "_configs",
        "_configure",
        "_forms",
        "_launch",
        "_place",
        "device",
        "driver",
        "kernel",
        "name",
        "pointers",
        "scratch",
    )

    def __init__(self, driver: Any, device: int, loaded: Loaded, name: str, pointers: tuple[bool, ...]) -> None:
        self.driver = driver
        self.device = device
        self.kernel = loaded.kernel
        self.name = name
        self.pointers = pointers  # for each value of a launch, whether it is an address
        self._launch, self._configure, self._place = loaded.launch, loaded.configure, loaded.place
        self._configs: dict[tuple[int, int, int], Any] = {}
        self._forms: dict[tuple[int, int, int], list[Form | None]] = {}
        self.scratch: tuple[int, ...] = loaded.scratch if any(loaded.scratch) else ()

    def launch(self, stream: Any, grid: tuple[int, int, int], values: Sequence[int]) -> None:
        """Launch on a stream; returns before the kernel has run.

        Raises:
            DeviceError: the launch failed; the message says whether the device can still be used.
        """
        config = self._configs.get(grid) or self._configuration(grid)
        blocks = self._scratch_blocks(stream, grid) if self.scratch else ()
        scratch = [block.address if block else 0 for block in blocks] if blocks else (0, 0)
        try:
            if self._place is not None:
                self._place()
            self._launch(stream.handle, config, self.kernel, *values, *scratch)
        except TritensorError:
            raise  # of a simulated device that runs compiled code
        except Exception as error:
            raise self.driver.refused(self.name, error) from error
        finally:
            for block in blocks:
                if block is not None:
                    stream.arena.give(block)
        self.driver.launched.append(f"{self.name} at {ledger.call_site()}" if settings.debug.value else self)

    def prepared(self, grid: tuple[int, int, int]) -> tuple[Any, Any, Any, Any]:
        """The parts of a launch: a function to call first (or None), the driver's launch, the grid, the kernel."""
        return self._place, self._launch, self._configs.get(grid) or self._configuration(grid), self.kernel

    def _configuration(self, grid: tuple[int, int, int]) -> Any:
        if len(self._configs) >= 1024:  # bounded, because grids may change with every step
            self._configs.clear()
        return self._configs.setdefault(grid, self._configure(grid))

    def _scratch_blocks(self, stream: Any, grid: tuple[int, int, int]) -> list[Block | None]:
        """Scratch memory for each program. It is freed right after the launch, because a stream runs in order.

        Triton aligns scratch memory to at most 128 bytes (a tensor descriptor), and pads its size to that; blocks of
        a driver begin at multiples of 256.
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
) -> Program:
    """The program of a launch; compiles and loads the kernel if the driver does not have it yet."""
    key = (kernel, signature, tuple(constants), _key(constants.values()), device, warps, stages, name)
    program: Program | None = driver.programs.get(key)
    if program is None:
        general: tuple[Any, ...] = driver.form(signature, device, warps, stages)
        with _lock:
            program = driver.programs.get(key)
            if program is None and general != (signature, device, warps, stages):
                types, index, warps, stages = general
                program = driver.programs[key] = find(driver, kernel, types, constants, index, warps, stages, name)
            if program is None:
                source = Source(kernel, signature, constants, warps, stages, name)
                loaded = driver.build(device, source)
                program = Program(driver, device, loaded, source.label, tuple(pointers(signature)))
                driver.programs[key] = program
                if driver.repeats_calls:
                    for watcher in watchers:
                        watcher()
    return program


def _key(constants: Iterable[Any]) -> tuple[Any, ...]:
    """Constants for a key, with their classes: 1, 1.0 and True are equal in Python but compile to different code."""
    return tuple([_key(value) if value.__class__ is tuple else (value.__class__, value) for value in constants])


class Source:
    """A kernel and everything that it is compiled for, except the target (`drivers.loading.KernelSource`).

    Attributes:
        label: the operator, for messages.
    """

    def __init__(
        self,
        kernel: Kernel,
        signature: tuple[Any, ...],
        constants: Mapping[str, Any],
        warps: int,
        stages: int,
        name: str | None,
    ) -> None:
        self.kernel, self.signature, self.constants = kernel, signature, constants
        self.warps, self.stages, self.name = warps, stages, name
        self.label = name or kernel.profiler_name(dict(constants), None)

    def load(self, target: Target, load: Callable[[Compiled], Loaded]) -> Loaded:
        """Call `load` on the compiled code, from the cache on disk or else from the compiler, and return its result."""
        from . import disk_cache

        path = disk_cache.path_of(
            self.kernel, self.signature, self.constants, target, self.warps, self.stages, self.name
        )
        compiled = disk_cache.load(path)
        if compiled is not None:
            with contextlib.suppress(DeviceError):  # a file that the driver refuses is treated as missing
                return load(compiled)
        compiled = self.compile(target)
        loaded = load(compiled)
        disk_cache.store(path, compiled)
        return loaded

    def compile(self, target: Target) -> Compiled:
        """The code for a target, from the compiler."""
        compiler = needs_triton("compiler", self.label)
        made = compiler.compile_kernel(
            self.kernel, self.signature, self.constants, target, self.warps, self.stages, self.name
        )
        compiled: Compiled = compiler.compiled_from(made, target)
        return compiled
