"""Read a pickle without running it.

Python's own unpickler looks up any name and calls it. This one supports the opcodes that describe data and a table of
names, each with a function of this package that checks its arguments and builds a value; every other opcode and every
other name is refused. The file cannot choose anything to import or call.

Memory is limited in proportion to the file's size. The size of every object is counted, because one byte of a pickle
can make an object of a hundred, and the lengths that the file states are compared with the rest of the file before
anything is allocated.
"""

from __future__ import annotations

import struct
import sys
from collections import Counter, OrderedDict, deque
from typing import Any, BinaryIO

from ..errors import OutOfMemoryError
from .allowlist import Global, Refused, find_global, set_state
from .builder import Builder
from .keys import KeyCheck
from .malformed import CallersError, Malformed
from .tree import check_tree

CONTAINERS = (list, tuple, dict, set, frozenset)
LISTS = (list, deque)
DICTS = (OrderedDict, Counter, dict)
# Bytes of Python objects that any file may make, beyond ten times its size: the smallest objects, such as an empty
# list, take 12 times the bytes of their pickle, so a checkpoint of five megabytes of these and no tensors still reads.
ANY_FILE = 64 * 2**20
PER_OBJECT_ON_STACK = 40  # in the stack, in the slice that a mark closes, and in the list that takes it
PLACE = 16  # what an object takes beyond its own size: its place on the stack, and what the allocator rounds up
WINDOW = 1 << 16  # bytes that are read at a time
LONGEST_NAME = 1024
LARGEST_MEMO_GAP = 16  # Python 2 counts from 1
NOTHING = object()
REFUSED = (
    "save plain data, where the file was written: torch.save(model.state_dict(), path); if you trust the file, load it "
    "with weights_only=False, or allow the name: torch.serialization.add_safe_globals([{}])"
)


class Unpickler:
    """Read pickles from `stream` and build their objects with `builder`.

    Args:
        stream: a buffered binary stream.
        size: the most bytes that the stream may have.
        builder: makes storages, tensors and parameters.
        entry: this pickle's name in messages.
        refused: None to raise at the first name that is refused; a list to collect all of them and go on (`inspect`).
    """

    encoding = "utf-8"  # of Python 2's str, as torch.load reads it

    def __init__(
        self, stream: BinaryIO, size: int, builder: Builder, entry: str, refused: list[Malformed] | None = None
    ) -> None:
        self._stream = stream
        self._unread = size  # bytes of the stream that are not in the buffer yet
        self._buffer, self._at = b"", 0
        self._room = ANY_FILE + 10 * max(size, builder.file_size)
        self._most_objects = self._room // PER_OBJECT_ON_STACK
        self._entry = entry
        self.builder = builder
        self.refused = refused
        self._keys = KeyCheck()

    def enter(self, entry: str, refused: list[Malformed] | None) -> None:
        """Set the next pickle's name in messages, and the list (or None) of refused names."""
        self._entry, self.refused = entry, refused

    def load(self) -> Any:
        """The object of the next pickle in the stream."""
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: list[Any] = []
        self._shared: set[int] = set()
        try:
            return self._run()
        except Malformed as error:
            error.entry = error.entry or self._entry
            raise
        except (CallersError, OutOfMemoryError, OSError, MemoryError):
            raise
        except Exception as error:
            fact = f"{type(error).__name__}: {error}"[:200]
            raise Malformed("the pickle is damaged", fact, entry=self._entry) from None

    def _run(self) -> Any:
        stack, handlers, most = self._stack, HANDLERS, self._most_objects
        while True:
            at = self._at
            if at >= len(self._buffer):
                self._fill(1)
                continue
            opcode = self._buffer[at]
            self._at = at + 1
            handler = handlers[opcode]
            if handler is None:
                if opcode == STOP:
                    break
                raise Malformed(
                    f"Unsupported operand {opcode}: {FORBIDDEN.get(opcode, 'no known pickle opcode')}",
                    entry=self._entry,
                    remedy=NOT_DATA,
                )
            handler(self)
            if len(stack) > most:
                self.charge(sys.maxsize)
        if len(stack) != 1 or self._marks:
            raise Malformed("the pickle is damaged: it ends with more or less than one object", entry=self._entry)
        check_tree(stack[0], self._shared, self.refused)
        return stack[0]

    # Reading -----------------------------------------------------------------------------------------------------

    @property
    def left(self) -> int:
        """The number of bytes in the stream after the pickles that were read."""
        return self._unread + len(self._buffer) - self._at

    def _fill(self, count: int) -> None:
        """Bring at least `count` bytes into the buffer behind the position."""
        missing = count - (len(self._buffer) - self._at)
        if missing > self._unread:  # checked before reading: a stated length of 4 GB allocates nothing
            raise Malformed("the pickle ends too early", f"{missing} more bytes are wanted", entry=self._entry)
        more = self._stream.read(min(self._unread, max(missing, WINDOW)))
        if len(more) < missing:
            raise Malformed("the file became shorter while it was read", entry=self._entry)
        self._buffer, self._at = self._buffer[self._at :] + more, 0
        self._unread -= len(more)

    def _take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._buffer):
            self._fill(count)
            end = count
        data = self._buffer[self._at : end]
        self._at = end
        return data

    def _line(self) -> str:
        wanted = min(LONGEST_NAME, self.left)
        if len(self._buffer) - self._at < wanted:
            self._fill(wanted)
        end = self._buffer.find(b"\n", self._at, self._at + wanted)
        if end < 0:
            raise Malformed("the pickle is damaged: a name without an end", entry=self._entry)
        line = self._buffer[self._at : end]
        self._at = end + 1
        return line.decode("utf-8")

    def charge(self, nbytes: int) -> None:
        """Count about `nbytes` of Python objects that are being made."""
        self._room -= nbytes
        if self._room < 0:
            raise Malformed(
                "the pickle would make objects of more than ten times the file's size",
                entry=self._entry,
                remedy=NOT_DATA,
            )

    def _push_sized(self, value: object) -> None:
        self.charge(sys.getsizeof(value) + PLACE)
        self._stack.append(value)

    def _pop_mark(self) -> list[Any]:
        start = self._marks.pop()
        items = self._stack[start:]
        del self._stack[start:]
        return items

    # Plain values ------------------------------------------------------------------------------------------------

    def _protocol(self) -> None:
        version = self._take(1)[0]
        if version > 5:
            raise Malformed(f"unsupported pickle protocol: {version}", entry=self._entry)

    def _signed(self, width: int) -> None:
        self._push_sized(int.from_bytes(self._take(width), "little", signed=True))

    def _length(self, width: int) -> int:
        return int.from_bytes(self._take(width), "little")

    def _text(self, width: int) -> None:
        self._push_sized(str(self._take(self._length(width)), "utf-8", "surrogatepass"))

    def _old_text(self, width: int) -> None:
        self._push_sized(str(self._take(self._length(width)), self.encoding))

    def _bytes(self, width: int) -> None:
        self._push_sized(self._take(self._length(width)))

    # Containers --------------------------------------------------------------------------------------------------

    def _mark(self) -> None:
        self._marks.append(len(self._stack))
        self.charge(40)

    def _tuple(self) -> None:
        items = self._pop_mark()
        self.charge(56 + 8 * len(items))
        self._stack.append(tuple(items))

    def _short_tuple(self, count: int) -> None:
        self.charge(56 + 8 * count)
        self._require(count)
        self._stack[-count:] = [tuple(self._stack[-count:])]

    def _require(self, count: int) -> None:
        floor = self._marks[-1] if self._marks else 0
        if len(self._stack) - floor < count:
            raise Malformed("the pickle is damaged: it takes more objects than it made", entry=self._entry)

    def _append(self) -> None:
        self._require(2)
        item = self._stack.pop()
        self._extend(self._stack[-1], [item])

    def _appends(self) -> None:
        items = self._pop_mark()
        self._extend(self._stack[-1], items)

    def _extend(self, target: object, items: list[Any]) -> None:
        kind = self._base(target, LISTS)
        if kind is None:
            self._refuse_target("append to a list", target)
            return
        before = sys.getsizeof(target)
        kind.extend(target, items)
        self.charge(sys.getsizeof(target) - before)

    def _base(self, target: object, kinds: tuple[Any, ...]) -> Any:
        """The container of Python that a value is, or that an object made here has as its base; None for others."""
        if type(target) in kinds:
            return type(target)
        return next((kind for kind in kinds if isinstance(target, kind)), None) if self._named(type(target)) else None

    def _set_item(self) -> None:
        self._require(3)
        value, key = self._stack.pop(), self._stack.pop()
        self._update(self._stack[-1], [key, value])

    def _set_items(self) -> None:
        items = self._pop_mark()
        self._update(self._stack[-1], items)

    def _update(self, target: dict[str, Any], items: list[Any]) -> None:
        kind = self._base(target, DICTS)
        if kind is None:
            self._refuse_target("set items of a dict", target)
            return
        if len(items) % 2:
            raise Malformed("the pickle is damaged: a key without a value", entry=self._entry)
        before = sys.getsizeof(target)
        for index in range(0, len(items), 2):
            self._keys.check(items[index])
            kind.__setitem__(target, items[index], items[index + 1])
        self.charge(sys.getsizeof(target) - before)

    def _add_items(self) -> None:
        items = self._pop_mark()
        target = self._stack[-1]
        if type(target) is not set:
            self._refuse_target("add to a set", target)
            return
        target.update(self.hashable(items))

    def hashable(self, items: list[Any]) -> list[Any]:
        """`items`, after checking that all of them can be keys and are cheap to hash."""
        self.charge(216 + 70 * len(items))
        for item in items:
            self._keys.check(item)
        return items

    def _refuse_target(self, action: str, target: object) -> None:
        if isinstance(target, Refused):
            return
        raise Malformed(f"the pickle would {action}, and has a {type(target).__name__} there", entry=self._entry)

    # Memo --------------------------------------------------------------------------------------------------------

    def _put(self, width: int) -> None:
        self._remember(self._length(width))

    def _remember(self, index: int) -> None:
        self._require(1)
        memo = self._memo
        gap = index - len(memo)
        if gap > LARGEST_MEMO_GAP:
            raise Malformed("the pickle is damaged: it numbers its objects out of order", entry=self._entry)
        if gap < 0:
            memo[index] = self._stack[-1]
            return
        self.charge(9 * (gap + 1))
        memo.extend([NOTHING] * gap)
        memo.append(self._stack[-1])

    def _get(self, width: int) -> None:
        index = self._length(width)
        value = self._memo[index] if index < len(self._memo) else NOTHING
        if value is NOTHING:
            raise Malformed(f"the pickle is damaged: there is no object {index}", entry=self._entry)
        if type(value) is not str and isinstance(value, CONTAINERS) and id(value) not in self._shared:
            self.charge(150)
            self._shared.add(id(value))
        self._stack.append(value)

    # Names and what is built with them ---------------------------------------------------------------------------

    def _global(self) -> None:
        module, name = self._line(), self._line()
        self._push_global(module, name)

    def _stack_global(self) -> None:
        self._require(2)
        name, module = self._stack.pop(), self._stack.pop()
        if type(module) is not str or type(name) is not str:
            raise Malformed("the pickle is damaged: a name that is no text", entry=self._entry)
        self._push_global(module, name)

    def _push_global(self, module: str, name: str) -> None:
        found = find_global(module, name)
        if isinstance(found, Malformed) and self.builder.objects is not None:
            found = self.builder.objects.find(module, name, found)
        if isinstance(found, Malformed):
            found.remedy = found.remedy or REFUSED.format(name.rpartition(".")[2])
            if self.refused is None:
                raise found
            if all(known.first != found.first for known in self.refused):
                self.refused.append(found)
            found = Refused(f"{module}.{name}")
        self._stack.append(found)

    def _reduce(self) -> None:
        self._require(2)
        arguments, function = self._stack.pop(), self._stack.pop()
        if isinstance(function, Refused):
            self._stack.append(function)
        elif self._named(function) and type(arguments) is tuple:
            self._push_sized(self.builder.objects.call(function, arguments))
        elif type(function) is not Global or type(arguments) is not tuple:
            raise Malformed(f"the pickle would call a {type(function).__name__}", entry=self._entry, remedy=NOT_DATA)
        else:
            self.charge(function.cost)
            self._stack.append(function.build(self, arguments))

    def _new_object(self) -> None:
        self._require(2)
        arguments, kind = self._stack.pop(), self._stack[-1]
        if self._named(kind) and type(arguments) is tuple:
            self._stack.pop()
            self._push_sized(self.builder.objects.new(kind, arguments))
            self.charge(250)
        elif not isinstance(kind, Refused):
            raise Malformed(
                "Unsupported operand 129: NEWOBJ makes an object of any class", entry=self._entry, remedy=NOT_DATA
            )

    def _build(self) -> None:
        self._require(2)
        state, target = self._stack.pop(), self._stack[-1]
        if self._named(type(target)):
            self.builder.objects.set_state(target, state)
        else:
            set_state(target, state)

    def _named(self, value: object) -> bool:
        return self.builder.objects is not None and self.builder.objects.knows(value)

    def _persistent(self) -> None:
        self._require(1)
        identity = self._stack.pop()
        self.charge(400)
        self._stack.append(self.builder.storage(identity))


def _handlers() -> dict[int, Any]:
    unpickler = Unpickler

    def fixed(method: Any, argument: int) -> Any:
        return lambda self: method(self, argument)

    def container(kind: Any) -> Any:
        return lambda self: self._push_sized(kind())

    return {
        0x80: unpickler._protocol,
        0x95: lambda self: self._take(8),  # the length of a frame, which the opcodes imply
        ord("N"): lambda self: self._stack.append(None),
        0x88: lambda self: self._stack.append(True),
        0x89: lambda self: self._stack.append(False),
        ord("J"): fixed(unpickler._signed, 4),
        ord("K"): lambda self: self._stack.append(self._take(1)[0]),  # Python holds one object for each of these
        ord("M"): lambda self: self._push_sized(self._length(2)),
        0x8A: lambda self: self._signed(self._length(1)),
        0x8B: lambda self: self._signed(self._length(4)),
        ord("G"): lambda self: self._push_sized(struct.unpack(">d", self._take(8))[0]),
        0x8C: fixed(unpickler._text, 1),
        ord("X"): fixed(unpickler._text, 4),
        0x8D: fixed(unpickler._text, 8),
        ord("U"): fixed(unpickler._old_text, 1),
        ord("T"): fixed(unpickler._old_text, 4),
        ord("C"): fixed(unpickler._bytes, 1),
        ord("B"): fixed(unpickler._bytes, 4),
        0x8E: fixed(unpickler._bytes, 8),
        0x96: lambda self: self._push_sized(bytearray(self._take(self._length(8)))),
        ord("("): unpickler._mark,
        ord("]"): container(list),
        ord("}"): container(dict),
        0x8F: container(set),
        ord(")"): lambda self: self._stack.append(()),
        ord("t"): unpickler._tuple,
        0x85: fixed(unpickler._short_tuple, 1),
        0x86: fixed(unpickler._short_tuple, 2),
        0x87: fixed(unpickler._short_tuple, 3),
        0x91: lambda self: self._stack.append(frozenset(self.hashable(self._pop_mark()))),
        ord("a"): unpickler._append,
        ord("e"): unpickler._appends,
        ord("s"): unpickler._set_item,
        ord("u"): unpickler._set_items,
        0x90: unpickler._add_items,
        ord("q"): fixed(unpickler._put, 1),
        ord("r"): fixed(unpickler._put, 4),
        0x94: lambda self: self._remember(len(self._memo)),
        ord("h"): fixed(unpickler._get, 1),
        ord("j"): fixed(unpickler._get, 4),
        ord("c"): unpickler._global,
        0x93: unpickler._stack_global,
        ord("R"): unpickler._reduce,
        0x81: unpickler._new_object,
        ord("b"): unpickler._build,
        ord("Q"): unpickler._persistent,
    }


HANDLERS: list[Any] = [_handlers().get(opcode) for opcode in range(256)]
STOP = ord(".")
# Python's opcodes that are refused here: they name classes, refer to things outside of the file, or are written only
# for objects that contain themselves and by protocol 0.
FORBIDDEN = {
    ord("i"): "INST makes an object of any class",
    ord("o"): "OBJ makes an object of any class",
    0x92: "NEWOBJ_EX makes an object of any class",
    0x82: "EXT1 looks up a registered class",
    0x83: "EXT2 looks up a registered class",
    0x84: "EXT4 looks up a registered class",
    ord("P"): "PERSID belongs to pickle protocol 0",
    0x97: "NEXT_BUFFER wants data from outside of the file",
    0x98: "READONLY_BUFFER wants data from outside of the file",
    ord("0"): "POP is written for objects that contain themselves",
    ord("2"): "DUP is never written",
    ord("1"): "POP_MARK is written for objects that contain themselves",
    **{ord(code): "pickle protocol 0 is not read" for code in "FILSVdlgp"},
}
NOT_DATA = "save plain data, where the file was written: torch.save(model.state_dict(), path)"
