"""One C function that reads the addresses of NumPy arrays from a tuple, and makes the launches of a plan on them.

A call of it takes 0.3 us. Reading an address in Python takes 0.1 to 1 us for each array, and a launch through
`running`, with its arrays of words, 5 us. The function reads objects as CPython and NumPy lay them out; `entry` tries
that first.
"""

from __future__ import annotations

import ctypes
import hashlib
from array import array
from collections.abc import Sequence
from functools import cache
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

# Where objects have what is read: the address of an array's first element stands behind the object's head.
_ITEMS, _DATA = tuple.__basicsize__, object.__basicsize__

# A plan is words: for each launch the function, the first program and the one behind the last, the grid, the number of
# values, and for each value: the place of its array in the tuple, or -1; a number, which is added to the address; and
# how many bytes behind the address may be touched, or -1 for any. A function of 0 ends it.
_TEXT = f"""
define i32 @launch(ptr %plan, ptr %arrays, ptr %scratch) {{
entry:
  %words = alloca [{3 * MOST} x i64], align 64
  %context = alloca [4 x i64], align 64
  %table = alloca [2 x i64], align 16
  %table1 = getelementptr i64, ptr %table, i64 1
  store i64 0, ptr %table
  store i64 {_END}, ptr %table1
  %context1 = getelementptr i64, ptr %context, i64 1
  %context2 = getelementptr i64, ptr %context, i64 2
  %context3 = getelementptr i64, ptr %context, i64 3
  store i64 0, ptr %context
  store ptr %scratch, ptr %context1
  store ptr %table, ptr %context2
  store i64 1, ptr %context3
  br label %launches

launches:
  %at = phi ptr [ %plan, %entry ], [ %values, %called ]
  %function = load ptr, ptr %at
  %ended = icmp eq ptr %function, null
  br i1 %ended, label %done, label %one

one:
  %begin.at = getelementptr i64, ptr %at, i64 1
  %stop.at = getelementptr i64, ptr %at, i64 2
  %x.at = getelementptr i64, ptr %at, i64 3
  %y.at = getelementptr i64, ptr %at, i64 4
  %z.at = getelementptr i64, ptr %at, i64 5
  %count.at = getelementptr i64, ptr %at, i64 6
  %first = getelementptr i64, ptr %at, i64 7
  %count = load i64, ptr %count.at
  br label %fill

fill:
  %index = phi i64 [ 0, %one ], [ %next, %filled ]
  %value = phi ptr [ %first, %one ], [ %value.next, %filled ]
  %full = icmp eq i64 %index, %count
  br i1 %full, label %call, label %some

some:
  %offset.at = getelementptr i64, ptr %value, i64 1
  %size.at = getelementptr i64, ptr %value, i64 2
  %source = load i64, ptr %value
  %offset = load i64, ptr %offset.at
  %size = load i64, ptr %size.at
  %number = icmp slt i64 %source, 0
  br i1 %number, label %filled, label %address

address:
  %items = getelementptr i8, ptr %arrays, i64 {_ITEMS}
  %item.at = getelementptr ptr, ptr %items, i64 %source
  %item = load ptr, ptr %item.at
  %data.at = getelementptr i8, ptr %item, i64 {_DATA}
  %data = load i64, ptr %data.at
  %start = add i64 %data, %offset
  br label %filled

filled:
  %word = phi i64 [ %offset, %some ], [ %start, %address ]
  %any = icmp slt i64 %size, 0
  %end = add i64 %word, %size
  %low = select i1 %any, i64 0, i64 %word
  %high = select i1 %any, i64 {_END}, i64 %end
  %word.at = getelementptr i64, ptr %words, i64 %index
  store i64 %word, ptr %word.at
  %twice = shl i64 %index, 1
  %low.number = add i64 %count, %twice
  %high.number = add i64 %low.number, 1
  %low.at = getelementptr i64, ptr %words, i64 %low.number
  %high.at = getelementptr i64, ptr %words, i64 %high.number
  store i64 %low, ptr %low.at
  store i64 %high, ptr %high.at
  %next = add i64 %index, 1
  %value.next = getelementptr i64, ptr %value, i64 3
  br label %fill

call:
  %begin = load i64, ptr %begin.at
  %stop = load i64, ptr %stop.at
  %x.wide = load i64, ptr %x.at
  %y.wide = load i64, ptr %y.at
  %z.wide = load i64, ptr %z.at
  %x = trunc i64 %x.wide to i32
  %y = trunc i64 %y.wide to i32
  %z = trunc i64 %z.wide to i32
  %failed = call i32 %function(ptr %words, ptr %context, i64 %begin, i64 %stop, i32 %x, i32 %y, i32 %z)
  %fails = icmp ne i32 %failed, 0
  br i1 %fails, label %done, label %called

called:
  %values = phi ptr [ %value, %call ]
  br label %launches

done:
  %result = phi i32 [ 0, %launches ], [ %failed, %call ]
  ret i32 %result
}}
"""


class Value(NamedTuple):
    """A value of a launch: an address in the array at a place of the tuple, or a number where that is -1."""

    source: int
    number: int
    nbytes: int = -1


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
    path = disk_cache.folder() / "entry" / f"{hashlib.sha256((target + _TEXT).encode()).hexdigest()[:32]}.kernel"
    found = disk_cache.load(path)
    if found is None:
        from ..drivers.native import objects

        binary = objects.compiled(_TEXT, settings.native_target.value or "host")
        found = Compiled(binary, "launch", 0, 0, 0, 0)
        disk_cache.store(path, found)
    sample, word = np.zeros(3), ctypes.c_int64.from_address
    pair, address = (None, sample), sample.__array_interface__["data"][0]
    if word(id(pair) + _ITEMS + 8).value != id(sample) or word(id(sample) + _DATA).value != address:
        raise DeviceError("native code cannot read this interpreter's arrays")
    code = load(found)
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    function: Any = kind(_address(code))
    function.code = code  # which keeps the memory
    return function
