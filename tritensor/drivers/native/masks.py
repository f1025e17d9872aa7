"""Masks of consecutive lanes, known by where they begin and end; and chunks that end before their block's lanes do."""

from __future__ import annotations

from .facts import Facts
from .parse import Operation
from .values import Lanes

__all__ = ["Masks"]

_MIRRORED = {"slt": "sgt", "sgt": "slt", "sle": "sge", "sge": "sle"}


class Masks(Facts):
    """Masks at the lanes of a chunk.

    A mask between two lanes is made of two numbers by a few scalar instructions, and so is the check of an access that
    it masks: a comparison of vectors for each side, and a search of the first and the last lane, take twice the time.
    """

    def __init__(self, function: Operation, fma: bool, apart: bool) -> None:
        super().__init__(function, fma, apart)
        self.between: dict[str, tuple[str, str]] = {}  # by a mask's name: its first lane, and the one behind its last
        self.active: Lanes | None = None  # the lanes of a chunk that is not a whole one
        self.implied = ""  # the mask that is on in all of these

    @property
    def all_on(self) -> str:
        """The mask of all lanes of the chunk."""
        return self.code.splat("true", "i1", self.lanes) if self.active is None else self.active.base

    def mask_between(self, begin: str, end: str) -> Lanes:
        """The mask of lanes from one on, up to another, both from 0 to the number of lanes."""
        code, lanes = self.code, self.lanes
        bits = code.op(f"add i64 {code.op(f'shl i64 1, {end}')}, -1")
        if begin != "0":
            bits = code.op(f"and i64 {bits}, {code.op(f'shl i64 -1, {begin}')}")
        mask = code.op(f"bitcast i{lanes} {code.op(f'trunc i64 {bits} to i{lanes}')} to {self.type('i1')}")
        self.between[mask] = begin, end
        return Lanes(mask, None)

    def compared(self, predicate: str, x: Lanes, y: Lanes, kind: str) -> Lanes | None:
        """The mask of a comparison of consecutive integers with one number; None for other comparisons."""
        if x.stride == 0 and y.stride == 1:
            x, y, predicate = y, x, _MIRRORED.get(predicate, "")
        if x.stride != 1 or y.stride != 0 or predicate not in _MIRRORED or not 1 < self.lanes < 64:
            return None
        code, lanes = self.code, str(self.lanes)
        first, number = (self.cast(Lanes(each.base), kind, "i64").base for each in (x, y))
        at = self.plus(Lanes(number), Lanes(first), "i64", "sub").base
        if predicate in ("sle", "sgt"):
            at = self.plus(Lanes(at), Lanes("1"), "i64").base
        at = code.intrinsic("smin", "i64", code.intrinsic("smax", "i64", at, "0"), lanes)
        return self.mask_between("0", at) if predicate in ("slt", "sle") else self.mask_between(at, lanes)

    def both(self, x: Lanes | None, y: Lanes | None) -> Lanes | None:
        """The lanes that are on in two masks, of which None is the mask of all."""
        x, y = (None if each is None or each.base == self.implied else each for each in (x, y))
        if x is None or y is None:
            return y if x is None else x
        code, known = self.code, [self.between.get(each.base) for each in (x, y)]
        if known[0] and known[1]:
            (a, b), (c, d) = known[0], known[1]
            begin = a if c == "0" else c if a == "0" else code.intrinsic("smax", "i64", a, c)
            return self.mask_between(begin, code.intrinsic("smin", "i64", b, d))
        if x.stride == 0 and y.stride == 0:
            return Lanes(code.op(f"and i1 {x.base}, {y.base}"))
        for ends, other in zip(known, (y, x)):
            if ends and other.stride == 0:
                return self.mask_between(ends[0], code.when(other.base, "i64", ends[1], "0", 0))
        return Lanes(code.op(f"and {self.type('i1')} {self.full(x, 'i1')}, {self.full(y, 'i1')}"), None)

    def some(self, mask: Lanes) -> str:
        """True if a lane of a mask is on."""
        if mask.stride == 0 or not self.lanes:
            return mask.base
        if ends := self.between.get(mask.base):
            return self.code.op(f"icmp ult i64 {ends[0]}, {ends[1]}")
        return self.code.op(f"call i1 @llvm.vector.reduce.or.v{self.lanes}i1({self.type('i1')} {mask.base})")

    def ends_of(self, mask: Lanes) -> tuple[str, str]:
        """The first lane of a vector mask, and the one behind the last."""
        code, lanes = self.code, self.lanes
        if ends := self.between.get(mask.base):
            return ends
        bits, found = code.op(f"bitcast {self.type('i1')} {mask.base} to i{lanes}"), []
        for name in ("cttz", "ctlz"):
            count = code.op(f"call i{lanes} @llvm.{name}.i{lanes}(i{lanes} {bits}, i1 false)")
            found.append(self.cast(Lanes(count), f"i{lanes}", "i64", "zext").base)
        return found[0], code.op(f"sub i64 {lanes}, {found[1]}")
