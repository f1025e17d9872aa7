"""Loads object files for x86-64 (ELF) into memory that can be executed. Needs no compiler and no linker.

A kernel is one function and its constants. Its sections are copied into one piece of memory, behind them a jump for
each function of the C library that it calls; the addresses that the object leaves open are filled in, and the memory is
made executable and no longer writable. It takes 0.2 ms; LLVM's own loader takes 1.2 ms.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

from ...errors import DeviceError
from ..loading import Compiled

#: arguments, context, the first program and the one behind the last, the grid; other threads run Python meanwhile
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2, *[ctypes.c_int32] * 3)
_SECTION, _SYMBOL, _OPEN = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ"), struct.Struct("<QIIq")
_SYMBOLS, _RELOCATIONS, _ALLOCATED, _WRITABLE = 2, 4, 2, 1
# What is filled in for each kind of relocation: a number's format, whether it is relative to its own place, and whether
# to a pointer to the symbol. They are R_X86_64_64, PC32, PLT32, GOTPCREL, 32, 32S, PC64, GOTPCRELX and REX_GOTPCRELX.
_KINDS = {1: ("<q", 0, 0), 2: ("<i", 1, 0), 4: ("<i", 1, 0), 9: ("<i", 1, 1), 10: ("<I", 0, 0), 11: ("<i", 0, 0)}
_KINDS |= {24: ("<q", 1, 0), 41: ("<i", 1, 1), 42: ("<i", 1, 1)}
_JUMP = b"\xff\x25\xf2\xff\xff\xff\xcc\xcc"  # through the address that stands in the 8 bytes before


class Code(NamedTuple):
    """A function in memory."""

    call: Any
    #: bytes of memory that each thread that runs it needs
    scratch: int
    looks_up: bool
    #: the values that it writes through, or None
    written: tuple[int, ...] | None
    #: keeps the code where it is
    memory: mmap.mmap


def load(compiled: Compiled) -> Code:
    """Load the function of an object file.

    Raises:
        DeviceError: it is none for this processor, or calls a function that is not there, or memory is refused.
    """
    try:
        memory, start = _placed(compiled.binary, compiled.name)
    except (LookupError, ValueError, struct.error, OSError) as error:
        raise DeviceError(
            f"{compiled.name}: native code cannot be loaded",
            f"{type(error).__name__}: {error}",
            remedy='run kernels in the interpreter: tritensor.cuda.simulate(engine="interpreter")',
        ) from error
    return Code(_FUNCTION(start), compiled.global_scratch_size, compiled.looks_up, compiled.written, memory)


def _placed(binary: bytes, name: str) -> tuple[mmap.mmap, int]:
    if binary[:6] != b"\x7fELF\x02\x01" or binary[16:20] != b"\x01\x00\x3e\x00" or sys.platform != "linux":
        raise ValueError("it is no relocatable object of Linux on x86-64")
    first, (size, count, names) = struct.unpack_from("<Q", binary, 40)[0], struct.unpack_from("<HHH", binary, 58)
    sections = [_SECTION.unpack_from(binary, first + index * size) for index in range(count)]
    places: dict[int, int] = {}
    end = 0
    for index, (label, kind, flags, _, at, nbytes, _, _, alignment, _) in enumerate(sections):
        text = _text(binary, sections[names][4] + label)
        if flags & _ALLOCATED and nbytes and not text.startswith((".eh_frame", ".note")):
            if kind == 8 or (flags & _WRITABLE and not text.startswith(".data.rel.ro")) or at + nbytes > len(binary):
                raise ValueError(f"section {text} is of variables, or cut off")
            places[index] = -end % alignment + end
            end = places[index] + nbytes
    symbols: list[tuple[str, int, int]] = []  # names, sections and values
    opened = []
    for _, kind, _, _, at, nbytes, link, target, _, _ in sections:
        if kind == _SYMBOLS:
            for label, _, _, section, value, _ in _SYMBOL.iter_unpack(binary[at : at + nbytes]):
                symbols.append((_text(binary, sections[link][4] + label), section, value))
        elif kind == _RELOCATIONS and target in places:
            opened += [(places[target] + entry[0], *entry[1:]) for entry in _OPEN.iter_unpack(binary[at : at + nbytes])]
    end += -end % 16
    # the symbols that a jump or a pointer is made for: those of other libraries, and those that are read from a table
    apart = {symbol for _, kind, symbol, _ in opened if not symbols[symbol][1] or _KINDS[kind][2]}
    slots = {symbol: end + 16 * index for index, symbol in enumerate(sorted(apart))}
    memory = mmap.mmap(-1, max(end + 16 * len(slots), 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for index, place in places.items():
        at, nbytes = sections[index][4:6]
        memory[place : place + nbytes] = binary[at : at + nbytes]
    for symbol, place in slots.items():
        label, section, value = symbols[symbol]
        address = base + places[section] + value if section else _address(label)
        memory[place : place + 16] = struct.pack("<Q", address) + _JUMP
    for place, kind, symbol, addend in opened:
        form, relative, pointer = _KINDS[kind]
        label, section, value = symbols[symbol]
        if pointer:
            address = base + slots[symbol]
        elif section:
            address = base + places[section] + value
        else:
            address = base + slots[symbol] + 8 if relative else _address(label)
        struct.pack_into(form, memory, place, address + addend - (base + place if relative else 0))
    if _library(None).mprotect(ctypes.c_void_p(base), ctypes.c_size_t(len(memory)), mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError("the system does not let memory be executed that was written")
    start = {label: base + places[section] + value for label, section, value in symbols if label and section in places}
    return memory, start[name]


def _text(binary: bytes, start: int) -> str:
    return binary[start : binary.index(b"\0", start)].decode("ascii")


@cache
def _library(name: str | None) -> ctypes.CDLL:
    return ctypes.CDLL(name)


@cache
def _address(name: str) -> int:
    """The address of a function of the C library, of which some systems have those of mathematics in a file apart."""
    for library in (None, "libm.so.6"):
        with suppress(OSError, AttributeError):
            return ctypes.cast(getattr(_library(library), name), ctypes.c_void_p).value or 0
    raise LookupError(f"the C library has no function {name}")
