"""Reads a cubin's facts of its kernel: registers, spilled bytes, shared memory. A cubin is an ELF file."""

from __future__ import annotations

import struct
from typing import NamedTuple

# An entry of `.nv.info`: a format, an attribute, and a length or value; format 4 is followed by that many bytes, of
# these two attributes the number of a symbol and a count.
_SIZED, _FRAME_SIZE, _REGISTERS = 4, 0x11, 0x2F


class Usage(NamedTuple):
    """The resources of one thread, or block, of a kernel."""

    registers: int
    #: bytes a thread, spilled registers and local arrays
    local: int
    #: bytes a block that the code declares; what a launch adds is in `Compiled.shared`
    shared: int
    #: instructions of the code, padding included
    instructions: int


def usage(cubin: bytes) -> Usage:
    """Read a cubin of one kernel, of 64 bits, for compute capability 7.0 or newer.

    Raises:
        ValueError: it is no such file.
    """
    if cubin[:5] != b"\x7fELF\x02":
        raise ValueError("a cubin is an ELF file of 64 bits")
    (table,) = struct.unpack_from("<Q", cubin, 40)
    size, count, strings = struct.unpack_from("<HHH", cubin, 58)
    # name, type, flags, address, offset, size, link, info, alignment, size of an entry
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, table + at * size) for at in range(count)]
    texts = headers[strings][4]
    sections = {cubin[texts + each[0] : cubin.index(b"\0", texts + each[0])].decode(): each for each in headers}
    code = next((name for name in sections if name.startswith(".text.")), None)
    if code is None:
        raise ValueError("a cubin without a kernel")
    name = code.removeprefix(".text.")
    shared, local = (
        sections[part + name][5] if part + name in sections else 0 for part in (".nv.shared.", ".nv.local.")
    )
    # the code's header has the registers up to sm_80; for sm_90 that byte is 0 and only the attribute has them
    found = {_REGISTERS: sections[code][7] >> 24, _FRAME_SIZE: 0}
    at, end = (info[4], info[4] + info[5]) if (info := sections.get(".nv.info")) else (0, 0)
    while at < end:
        form, attribute, length = struct.unpack_from("<BBH", cubin, at)
        if form == _SIZED and attribute in found:
            (found[attribute],) = struct.unpack_from("<I", cubin, at + 8)
        at += 4 + (length if form == _SIZED else 0)
    return Usage(found[_REGISTERS], found[_FRAME_SIZE] + local, shared, sections[code][5] // 16)
