"""One C function that reads the addresses of NumPy arrays from a tuple, and makes the launches of a plan on them.

A call of it takes 0.3 us. Reading an address in Python takes 0.1 to 1 us for each array, and a launch through
`running`, with its arrays of words, 5 us. The function reads objects as CPython and NumPy lay them out; `entry` tries
that first.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
from array import array
from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from .. import settings
from ..drivers.loading import Compiled
from ..drivers.native.loader import Code, load
from ..errors import DeviceError
from . import disk_cache

#: the most values of a launch
MOST = 256
_END = (1 << 63) - 1

# A plan is words: for each launch the function, the first program and the one behind the last, the grid, the number of
# values, and for each value: the place of its array in the tuple, or -1; a number, which is added to the address; and
# how many bytes from there on may be touched. A function of 0 ends it. In this text `word` reads one of some words, and
# `put` writes one.
_SHORT = """
define i32 @launch(ptr %plan, ptr %arrays, ptr %scratch) {
entry:
  %words = alloca [WORDS x i64], align 64
  %context = alloca [4 x i64], align 64
  %table = alloca [2 x i64], align 16
  %scratch.word = ptrtoint ptr %scratch to i64
  %table.word = ptrtoint ptr %table to i64
  put %table 0, 0
  put %table 1, END
  put %context 0, 0
  put %context 1, %scratch.word
  put %context 2, %table.word
  put %context 3, 1
  br label %launches
launches:
  %at = phi ptr [ %plan, %entry ], [ %value, %call ]
  %address = word %at, 0
  %begin = word %at, 1
  %stop = word %at, 2
  %x = word %at, 3
  %y = word %at, 4
  %z = word %at, 5
  %count = word %at, 6
  %first = getelementptr i64, ptr %at, i64 7
  %ended = icmp eq i64 %address, 0
  br i1 %ended, label %done, label %fill
fill:
  %index = phi i64 [ 0, %launches ], [ %next, %filled ]
  %value = phi ptr [ %first, %launches ], [ %value.next, %filled ]
  %full = icmp eq i64 %index, %count
  br i1 %full, label %call, label %some
some:
  %source = word %value, 0
  %offset = word %value, 1
  %size = word %value, 2
  %number = icmp slt i64 %source, 0
  br i1 %number, label %filled, label %array
array:
  %items = getelementptr i8, ptr %arrays, i64 ITEMS
  %item = word %items, %source
  %item.ptr = inttoptr i64 %item to ptr
  %head = getelementptr i8, ptr %item.ptr, i64 HEAD
  %data = word %head, 0
  %start = add i64 %data, %offset
  br label %filled
filled:
  %low = phi i64 [ %offset, %some ], [ %start, %array ]
  %high = add i64 %low, %size
  %twice = shl i64 %index, 1
  %low.place = add i64 %count, %twice
  %high.place = add i64 %low.place, 1
  put %words %index, %low
  put %words %low.place, %low
  put %words %high.place, %high
  %next = add i64 %index, 1
  %value.next = getelementptr i64, ptr %value, i64 3
  br label %fill
call:
  %gx = trunc i64 %x to i32
  %gy = trunc i64 %y to i32
  %gz = trunc i64 %z to i32
  %function = inttoptr i64 %address to ptr
  %failed = call i32 %function(ptr %words, ptr %context, i64 %begin, i64 %stop, i32 %gx, i32 %gy, i32 %gz)
  %fails = icmp ne i32 %failed, 0
  br i1 %fails, label %done, label %launches
done:
  %result = phi i32 [ 0, %launches ], [ %failed, %call ]
  ret i32 %result
}
"""


def _text() -> str:
    """The function in LLVM's language."""
    text = _SHORT.replace("WORDS", str(3 * MOST)).replace("END", str(_END))
    text = text.replace("ITEMS", str(tuple.__basicsize__)).replace("HEAD", str(object.__basicsize__))
    text = re.sub(
        r"(%[\w.]+) = word (\S+), (\S+)",
        r"\1.of = getelementptr i64, ptr \2, i64 \3\n  \1 = load i64, ptr \1.of",
        text,
    )
    numbers = count()
    return re.sub(
        r"put (\S+) (\S+), (\S+)",
        lambda found: "%to{0} = getelementptr i64, ptr {1}, i64 {2}\n  store i64 {3}, ptr %to{0}".format(
            next(numbers), *found.groups()
        ),
        text,
    )


class Value(NamedTuple):
    """A value of a launch: an address in the array at a place of the tuple, or a number where that is -1."""

    source: int
    number: int
    nbytes: int


class Launch(NamedTuple):
    """A launch of native code."""

    code: Code
    grid: tuple[int, int, int]
    values: Sequence[Value]

    def words(self, begin: int, stop: int) -> list[int]:
        """The words of a plan for some of its programs."""
        return [
            _address(self.code),
            begin,
            stop,
            *self.grid,
            len(self.values),
            *[each for value in self.values for each in value],
        ]


def _address(code: Code) -> int:
    return ctypes.cast(code.call, ctypes.c_void_p).value or 0


def plan(words: Sequence[int]) -> array[int]:
    """The plan of some launches' words; keep it as long as its address is used."""
    return array("q", [*words, 0])


@cache
def entry(target: str) -> Any:
    """The function: `(address of a plan, tuple of arrays, address of scratch memory) -> 0 unless a check has failed`.

    Args:
        target: that of `drivers.native.driver.engine`, which is part of the name of the file that it is kept in.

    Raises:
        DeviceError: objects are not laid out as it reads them, or it cannot be made.
    """
    path = disk_cache.folder() / "entry" / f"{hashlib.sha256((target + _text()).encode()).hexdigest()[:32]}.kernel"
    found = disk_cache.load(path)
    if found is None:
        from ..drivers.native import objects

        binary = objects.compiled(_text(), settings.native_target.value or "host")
        found = Compiled(binary, "launch", 0, 0, 0, 0)
        disk_cache.store(path, found)
    sample, word = np.zeros(3), ctypes.c_int64.from_address
    pair, address = (None, sample), sample.__array_interface__["data"][0]
    if (
        word(id(pair) + tuple.__basicsize__ + 8).value != id(sample)
        or word(id(sample) + object.__basicsize__).value != address
    ):
        raise DeviceError("native code cannot read this interpreter's arrays")
    code = load(found)
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    function: Any = kind(_address(code))
    function.code = code  # which keeps the memory
    return function
