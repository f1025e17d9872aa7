"""Sizes of memory as users write them."""

from __future__ import annotations

import re

from ..errors import ArgumentError

__all__ = ["parse_memory"]

_UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}


def parse_memory(memory: int | str) -> int:
    """A number of bytes from 1000, "1GB" (1e9) or "1.5GiB" (1.5 * 2**30).

    >>> parse_memory("1GB"), parse_memory("1.5 KiB")
    (1000000000, 1536)

    Raises:
        ValueError: malformed, or less than one byte. ArgumentError: neither an integer nor a string.
    """
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", memory)
        if match is None or match[2].upper() not in _UNITS:
            raise ValueError(f"simulate(): cannot read memory={memory!r}; write a number of bytes, '512MB' or '1GiB'")
        nbytes = int(float(match[1]) * _UNITS[match[2].upper()])
    elif isinstance(memory, int) and not isinstance(memory, bool):
        nbytes = memory
    else:
        raise ArgumentError(f"simulate(): memory must be an int or a string, got {type(memory).__name__}")
    if nbytes < 1:
        raise ValueError(f"simulate(): memory must be at least one byte, got {memory!r}")
    return nbytes
