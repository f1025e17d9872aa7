"""Two C functions: one reads the addresses of NumPy arrays from a tuple, and makes the launches of a plan on them; one
says whether the arrays of a tuple are like others.

A call of the first takes 0.3 us. Reading an address in Python takes 0.1 to 1 us for each array, and a launch through
`running`, with its arrays of words, 5 us. The second takes 5 ns an array, for what takes 0.2 us in Python. They read
objects as CPython and NumPy lay them out; `entry` and `alike` try that first.
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

# Forms are words, five for each array: its type, its dtype, flags that it has to have, how many dimensions it has, and
# the address of their sizes. A type of 0 ends them. The addresses of the arrays' elements are put at %places.
_ALIKE = """
define i32 @alike(ptr %forms, ptr %arrays, ptr %places) {
entry:
  %items = getelementptr i8, ptr %arrays, i64 ITEMS
  br label %forms.next
forms.next:
  %i = phi i64 [ 0, %entry ], [ %next, %same ]
  %form = phi ptr [ %forms, %entry ], [ %form.next, %same ]
  %next = add i64 %i, 1
  %form.next = getelementptr i64, ptr %form, i64 5
  %type = word %form, 0
  %ended = icmp eq i64 %type, 0
  br i1 %ended, label %done, label %array
array:
  %item = word %items, %i
  %item.ptr = inttoptr i64 %item to ptr
  %head = getelementptr i8, ptr %item.ptr, i64 HEAD
  %own.type = word %head, -1
  %typed = icmp eq i64 %own.type, %type
  br i1 %typed, label %form.of, label %differs
form.of:
  %descr = word %form, 1
  %flags = word %form, 2
  %count = word %form, 3
  %sizes = word %form, 4
  %data = word %head, 0
  %own.count = word %head, 1
  %own.sizes = word %head, 2
  %own.descr = word %head, 5
  %own.flags = word %head, 6
  put %places %i, %data
  %present = and i64 %own.flags, %flags
  %flagged = icmp eq i64 %present, %flags
  %described = icmp eq i64 %own.descr, %descr
  %few = and i64 %own.count, 4294967295
  %counted = icmp eq i64 %few, %count
  %both = and i1 %flagged, %described
  %all = and i1 %both, %counted
  %sizes.ptr = inttoptr i64 %sizes to ptr
  %own.sizes.ptr = inttoptr i64 %own.sizes to ptr
  br i1 %all, label %dimensions, label %differs
dimensions:
  %j = phi i64 [ 0, %form.of ], [ %j.next, %dimension ]
  %j.next = add i64 %j, 1
  %end = icmp eq i64 %j, %count
  br i1 %end, label %same, label %dimension
dimension:
  %size = word %sizes.ptr, %j
  %own.size = word %own.sizes.ptr, %j
  %equal = icmp eq i64 %size, %own.size
  br i1 %equal, label %dimensions, label %differs
same:
  br label %forms.next
differs:
  ret i32 1
done:
  ret i32 0
}
"""


def _text(short: str) -> str:
    """A function in LLVM's language."""
    text = short.replace("WORDS", str(3 * MOST)).replace("END", str(_END))
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


class Forms:
    """Types, dtypes and sizes of contiguous arrays, and which of them are written, as words for `alike`."""

    def __init__(self, arrays: Sequence[np.ndarray], written: Sequence[bool]) -> None:
        self.sizes = array("q", [size for each in arrays for size in each.shape] + [0])
        self.kinds = {each.dtype for each in arrays}  # which must not be given back
        words, at = array("q"), self.sizes.buffer_info()[0]
        for each, changes in zip(arrays, written, strict=True):
            flags = _CONTIGUOUS | _ALIGNED | (_WRITABLE if changes else 0)
            words.extend((id(np.ndarray), id(each.dtype), flags, each.ndim, at))
            at += 8 * each.ndim
        words.append(0)
        self.words = words
        self.address = words.buffer_info()[0]


_CONTIGUOUS, _ALIGNED, _WRITABLE = 0x1, 0x100, 0x400  # of NumPy's ABI


class _Other(np.ndarray):
    """An array that is none of ours."""


def _function(name: str, short: str, target: str) -> Any:
    path = disk_cache.folder() / "entry" / f"{hashlib.sha256((target + _text(short)).encode()).hexdigest()[:32]}.kernel"
    found = disk_cache.load(path)
    if found is None:
        from ..drivers.native import objects

        binary = objects.compiled(_text(short), settings.native_target.value or "host")
        found = Compiled(binary, name, 0, 0, 0, 0)
        disk_cache.store(path, found)
    code = load(found)
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    function: Any = kind(_address(code))
    function.code = code  # which keeps the memory
    return function


_REFUSAL = "native code cannot read this interpreter's arrays"


@cache
def entry(target: str) -> Any:
    """The first function: `(address of a plan, tuple of arrays, address of scratch memory) -> 0 unless a check has
    failed`.

    Args:
        target: that of `drivers.native.driver.engine`, which is part of the name of the file that it is kept in.

    Raises:
        DeviceError: objects are not laid out as it reads them, or it cannot be made.
    """
    sample, word = np.zeros(3), ctypes.c_int64.from_address
    pair, address = (None, sample), sample.__array_interface__["data"][0]
    if (
        word(id(pair) + tuple.__basicsize__ + 8).value != id(sample)
        or word(id(sample) + object.__basicsize__).value != address
    ):
        raise DeviceError(_REFUSAL)
    return _function("launch", _SHORT, target)


@cache
def alike(target: str) -> Any:
    """The second function: `(address of forms, tuple of arrays, address of places) -> 0 if the arrays have the forms`,
    whose addresses are then at the places.

    Raises:
        DeviceError: as `entry`.
    """
    entry(target)
    function = _function("alike", _ALIKE, target)
    right, places = np.zeros((3, 4), np.float32), array("q", [0])
    wrong = np.zeros((3, 5), np.float32), right.T, right.astype(np.int32), right[:2], right[0], right.view(_Other), 1
    unwritable = right.copy()
    unwritable.flags.writeable = False
    forms = Forms([right], [True])
    tried = [function(forms.address, (each,), places.buffer_info()[0]) for each in (*wrong, unwritable, right)]
    if tried != [1] * 8 + [0] or places[0] != right.__array_interface__["data"][0]:
        raise DeviceError(_REFUSAL)
    return function
