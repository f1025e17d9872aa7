"""Runs the kernels of `libcuda_emulated.c`, which imports this when CUDA is started: their PTX, in NumPy.

The PTX is what was compiled with the cubin (`Compiled.ptx`, which names source lines), or else what ptxas left in it.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import hashlib
import itertools
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tritensor.drivers import cuda_kernels
from tritensor.drivers.loading import Compiled, Loaded

__all__ = ["Facts", "facts"]

_INVALID_IMAGE, _NO_BINARY, _NOT_FOUND, _FAILED = 200, 209, 500, 719
# Words of the errors that a card reports by a status of their own.
_FAULTS = {"misaligned address": 716, "illegal memory access": 700, "assert": 710}
_NO_BITS = 8  # the type of a section that takes no place in the binary
# Attributes in the binary's `.nv.info` sections.
_THREADS, _FRAME, _PARAMETER, _REGISTERS = 0x10, 0x11, 0x17, 0x2F

_ptx: dict[bytes, str] = {}  # by the digest of the cubin
_libraries: dict[int, tuple[bytes, str]] = {}  # cubin and PTX
_numbers = itertools.count(1)


class Facts(NamedTuple):
    """What a cubin says of a kernel: offset and size of each parameter, and bytes or counts for one thread or block."""

    registers: int
    shared: int
    local: int
    threads: int
    parameters: tuple[tuple[int, int], ...]


def _sections(code: bytes) -> dict[str, bytes]:
    start, size, count, names = (struct.unpack_from("<Q", code, 40)[0], *struct.unpack_from("<HHH", code, 58))
    headers = [struct.unpack_from("<IIQQQQIIQQ", code, start + size * index) for index in range(count)]
    texts = headers[names][4]
    return {
        code[texts + header[0] : code.index(0, texts + header[0])].decode(): (
            bytes(header[5]) if header[1] == _NO_BITS else code[header[4] : header[4] + header[5]]
        )
        for header in headers
    }


def _attributes(section: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(section):
        form, attribute, size = struct.unpack_from("<BBH", section, at)
        at += 4
        size = size if form == 4 else 0
        yield attribute, section[at : at + size]
        at += size


def facts(code: bytes, name: str) -> Facts:
    """What a cubin says of one of its kernels; raises KeyError if that is not there."""
    sections = _sections(code)
    strings, symbols = sections[".strtab"], sections[".symtab"]
    threads, found, parameters = 0, {_REGISTERS: 0, _FRAME: 0}, {}
    for attribute, value in _attributes(sections[".nv.info"]):
        if attribute in found:
            symbol, number = struct.unpack("<II", value)
            place = struct.unpack_from("<I", symbols, 24 * symbol)[0]
            if strings[place : strings.index(0, place)].decode() == name:
                found[attribute] = number
    for attribute, value in _attributes(sections[f".nv.info.{name}"]):
        if attribute == _PARAMETER:
            _, ordinal, offset, flags = struct.unpack("<IHHI", value)
            parameters[ordinal] = offset, flags >> 18
        elif attribute == _THREADS:
            x, y, z = struct.unpack("<III", value)
            threads = x * y * z
    # from sm_90 on a kernel's first 1,024 bytes are the system's, which no limit counts
    reserved = 1024 if ".nv.shared.reserved.0" in sections else 0
    shared = max(len(sections.get(f".nv.shared.{name}", b"")) - reserved, 0)
    return Facts(
        found[_REGISTERS], shared, found[_FRAME], threads, tuple(each for _, each in sorted(parameters.items()))
    )


def _load(address: int, arch: int, library: Any) -> int:
    header = ctypes.string_at(address, 64)
    if header[:4] != b"\x7fELF":
        return _INVALID_IMAGE
    first, second, flags, _, *tables = struct.unpack_from("<QQIHHHHH", header, 32)
    made_for = flags & 0xFF if header[8] < 8 else flags >> 8 & 0xFF
    if made_for // 10 != arch // 10 or made_for > arch:
        return _NO_BINARY
    code = ctypes.string_at(address, max(first + tables[0] * tables[1], second + tables[2] * tables[3]))
    left = _sections(code).get(".nv_debug_ptx_txt", b"").replace(b"\0", b"\n").decode()
    library[0] = number = next(_numbers)
    _libraries[number] = code, _ptx.get(hashlib.sha256(code).digest(), left)
    return 0


def _find(library: int, name: bytes, table: Any) -> int:
    try:
        found = facts(_libraries[library][0], name.decode())
    except KeyError:
        return _NOT_FOUND
    numbers = [*found[:4], len(found.parameters), *itertools.chain(*found.parameters)]
    ctypes.memmove(table, (ctypes.c_int * len(numbers))(*numbers), 4 * len(numbers))
    return 0


def _spans() -> list[tuple[int, int, str]]:
    found = (ctypes.c_uint64 * (2 * _driver.stub_spans(None, 0)))()
    _driver.stub_spans(found, len(found) // 2)
    return sorted(zip(found[::2], found[1::2], itertools.repeat("an allocation"), strict=False))


def _run(library: int, name: bytes, shape: Any, values: int, device: int) -> int:
    from tritensor.drivers.ptx import machine, memory, parse

    code, text = _libraries[library]
    kernel = name.decode()
    numbers = [
        int.from_bytes(ctypes.string_at(values + offset, size), "little")
        for offset, size in facts(code, kernel).parameters
    ]
    collecting = gc.isenabled()
    gc.disable()  # a finaliser would call the driver in the middle of its work
    try:
        machine.run(parse.parse(text), tuple(shape[:3]), numbers, memory.Memory(_spans()), shape[6])
    except BaseException as error:
        print(f"emulated kernel {kernel}: {error}", file=sys.stderr)
        return next((status for words, status in _FAULTS.items() if words in str(error)), _FAILED)
    finally:
        if collecting:
            gc.enable()
    return 0


def _noting(load: Callable[..., Loaded]) -> Callable[..., Loaded]:
    """`CudaKernels.load` that notes the PTX, and whose launches check what no driver can see: how many values come."""

    def noted(self: Any, index: int, compiled: Compiled, label: str) -> Loaded:
        text = getattr(compiled, "ptx", None)
        if text:
            _ptx[hashlib.sha256(compiled.binary).digest()] = text
        sizes = [size for _, size in facts(compiled.binary, compiled.name).parameters]
        loaded = load(self, index, compiled, label)

        def launch(stream: Any, configuration: Any, kernel: Any, *values: Any) -> None:
            check_values(compiled.name, sizes, values)
            loaded.launch(stream, configuration, kernel, *values)

        return loaded._replace(launch=launch)

    return noted


def check_values(name: str, sizes: Sequence[int], values: Sequence[Any]) -> None:
    """Raise TypeError unless the values that cuda-core is given are as many and as large as the kernel's parameters."""
    if len(values) != len(sizes):
        raise TypeError(f"{name} takes {len(sizes)} values, and was passed {len(values)}")
    for place, (size, value) in enumerate(zip(sizes, values, strict=True)):
        fits = (
            size == 8 if type(value) is float else type(value) is int and -(1 << 8 * size - 1) <= value < 1 << 8 * size
        )
        if not fits:
            raise TypeError(f"{name}: value {place} is {value!r}, and the parameter has {size} bytes")


_driver = ctypes.CDLL("libcuda.so.1")
_int, _pointer, _number = ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64
_calls = (
    ctypes.CFUNCTYPE(_int, _pointer, _int, ctypes.POINTER(_number))(_load),
    ctypes.CFUNCTYPE(_int, _number, ctypes.c_char_p, _pointer)(_find),
    ctypes.CFUNCTYPE(_int, _number, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint), _pointer, _int)(_run),
)
_driver.stub_kernels(*_calls)
atexit.register(_driver.stub_kernels, *_calls[:2], None)  # what is left then does not run
cuda_kernels.CudaKernels.load = _noting(cuda_kernels.CudaKernels.load)  # type: ignore[method-assign]
