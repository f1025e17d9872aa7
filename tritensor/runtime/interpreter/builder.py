# ruff: noqa: D102 - the methods are named and specified by the class that they override
"""The builder of simulated kernels: Triton's interpreter builder with correct bfloat16 and checked memory accesses.

A builder executes each operation of Triton's language in NumPy. Triton's own keeps bfloat16 as unsigned integers, adds
them as such, and truncates where a GPU rounds; here they are `ml_dtypes.bfloat16` arrays. Where Triton 3.6 and 3.9
differ, this behaves like 3.9. Imports Triton: the first simulated kernel imports this module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import triton.language as tl
from triton._C.libtriton import interpreter as memory
from triton._C.libtriton import ir
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter

from ...errors import DeviceError, KernelMemoryError
from . import watching
from .turns import Turns

TensorHandle = interpreter.TensorHandle
_triton_numpy_dtype = interpreter._get_np_dtype
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_NUMPY: dict[str, np.dtype] = {
    entry.name: _triton_numpy_dtype(entry)
    for entry in (
        tl.int1,
        tl.int8,
        tl.int16,
        tl.int32,
        tl.int64,
        tl.uint8,
        tl.uint16,
        tl.uint32,
        tl.uint64,
        tl.float16,
        tl.float32,
        tl.float64,
    )
}
_SMALL = {"bf16": BFLOAT16, "fp8e5": np.dtype(ml_dtypes.float8_e5m2), "fp8e4nv": np.dtype(ml_dtypes.float8_e4m3fn)}
_NUMPY |= _SMALL
#: for types that the C++ side of Triton's interpreter does not know, the type of their bits
_BITS = {dtype: np.dtype(f"uint{8 * dtype.itemsize}") for dtype in _SMALL.values()}


def numpy_dtype(type: Any) -> np.dtype:
    """The NumPy type that holds values of a Triton type; bfloat16 is ml_dtypes' and pointers are uint64."""
    scalar = type.scalar
    found = _NUMPY.get(scalar.name)
    if found is None:
        found = np.dtype(np.uint64) if scalar.is_ptr() else _triton_numpy_dtype(scalar)
    return found


def block(data: np.ndarray, dtype: tl.dtype) -> Any:
    """A `tl.tensor` over an array; arrays of shape () become Triton's scalars, which have shape (1,)."""
    if data.ndim:
        return tl.tensor(TensorHandle(data, dtype), tl.block_type(dtype, list(data.shape)))
    return tl.tensor(TensorHandle(data.reshape(1), dtype), dtype)


@dataclass(frozen=True, slots=True)
class Span:
    """The memory that one argument may touch: addresses from `low` up to, not including, `high`."""

    low: int
    high: int
    base: int  # address of element [0, ..., 0]
    itemsize: int
    label: str  # "argument 2 (in_ptr[0]), float32 of shape (3, 4)"


class Guard:
    """The sanitizer of one launch: which addresses its loads, stores and atomics may touch.

    A pointer that was computed from an argument must stay inside that argument. A pointer that was computed from an
    address in memory must stay inside the array that begins there, if the launch listed it in `reaches` (the spans from
    number `first_reached` on). A pointer of unknown origin (chosen by tl.where) must lie in some span or in some live
    allocation.
    """

    def __init__(
        self, name: str, spans: list[Span], allocations: Callable[[], list[tuple[int, int, str]]], first_reached: int
    ) -> None:
        self.name = name
        self.spans = spans
        self.allocations = allocations
        self.reached = {span.base: position for position, span in enumerate(spans) if position >= first_reached}

    def check(self, pointer: Any, mask: np.ndarray | None, verb: str, program: tuple[int, int, int]) -> None:
        """Raise KernelMemoryError unless every unmasked address of `pointer` may be touched."""
        addresses = pointer.data
        width = max(1, pointer.get_element_ty().primitive_bitwidth // 8)
        position = pointer.attr.get("argument")
        if position is None:
            active = addresses.reshape(-1) if mask is None else addresses[np.broadcast_to(mask, addresses.shape)]
            self._check_unknown(active, width, verb, program)
            return
        span = self.spans[position]
        room = span.high - span.low - width
        # One comparison for both ends: an address below the span wraps around to a huge distance.
        if room >= 0:
            outside = addresses - np.uint64(span.low) > np.uint64(room)
        else:
            outside = np.ones(addresses.shape, bool)
        if mask is not None and outside.any():
            outside &= mask
        if outside.any():
            self._refuse(span, int(addresses[outside][0]), verb, program)

    def _check_unknown(self, addresses: np.ndarray, width: int, verb: str, program: tuple[int, int, int]) -> None:
        left = np.unique(addresses)
        for low, high in [(span.low, span.high) for span in self.spans] + [
            (start, start + size) for start, size, _ in self.allocations()
        ]:
            # not `left + width > high`: the highest addresses, which poisoned memory holds, would wrap around
            left = left[(left < low) | (left > max(high - width, 0))]
            if not left.size:
                return
        worst = int(left[0])
        nearest = min(self.spans, key=lambda span: max(span.low - worst, worst - span.high), default=None)
        self._refuse(nearest, worst, verb, program)

    def _refuse(self, span: Span | None, address: int, verb: str, program: tuple[int, int, int]) -> None:
        place = f"address {address:#x}"
        if span is not None:
            element = (address - span.base) // span.itemsize
            place = f"element {element} of {span.label}"
        raise KernelMemoryError(
            "CUDA error: an illegal memory access was encountered",
            f"{self.name}: program {program} {verb} {place}, which is out of bounds",
            f"at {watching.here()}",
            remedy="mask the access, or check the grid, the count and the strides of the launch",
        )


def _keeps_argument(name: str) -> Callable[..., Any]:
    """An operation that only rearranges pointers: its result still belongs to the same argument."""
    original = getattr(interpreter.InterpreterBuilder, name)
    position = 1 if name == "create_splat" else 0  # create_splat(type, value)

    def operation(self: Any, *args: Any) -> Any:
        result = original(self, *args)
        attributes = args[position].attr
        if "argument" in attributes:
            result.attr = attributes
        return result

    return operation


class Builder(watching.Watching, interpreter.InterpreterBuilder):
    """Triton's interpreter builder with a memory guard, GPU rounding and the arithmetic of Triton 3.9."""

    def __init__(self) -> None:
        super().__init__()
        # device_assert always fires; overflow checks triple the cost of every integer addition and assert nothing.
        self.options = interpreter.InterpreterOptions(debug=True, sanitize_overflow=False)
        self.guard: Guard | None = None
        self.turns: Turns | None = None

    def get_bf16(self, value: float) -> Any:  # which Triton 3.6 has not
        return TensorHandle(np.array([value], BFLOAT16), tl.bfloat16)

    # memory: the trailing arguments (cache hints) differ between versions and have no effect here

    def create_load(self, ptr: interpreter.TensorHandle, *hints: Any) -> Any:
        return self.create_masked_load(ptr, None, None, *hints)

    def create_store(self, ptr: interpreter.TensorHandle, val: interpreter.TensorHandle, *hints: Any) -> Any:
        return self.create_masked_store(ptr, val, None)

    def create_masked_load(
        self, ptrs: interpreter.TensorHandle, mask: Any, other: Any, *hints: Any, **more: Any
    ) -> Any:
        element, active = ptrs.get_element_ty(), self._active(ptrs, mask, "reads")
        volatile = bool(hints) and hints[-1] is True
        if volatile and self.turns is not None:
            self.turns.give()
        self.note_read(ptrs, active, volatile)
        dtype = numpy_dtype(element)
        if other is None:
            filler = np.zeros(ptrs.data.shape, dtype)
        else:
            filler = np.ascontiguousarray(np.broadcast_to(other.data, ptrs.data.shape), dtype)
        if (bits := _BITS.get(dtype)) is not None:
            loaded = memory.load(ptrs.data, active, filler.view(bits), bits).view(dtype)
        else:
            loaded = memory.load(ptrs.data, active, filler, dtype)
        return TensorHandle(loaded, element)

    def create_masked_store(
        self, ptrs: interpreter.TensorHandle, value: interpreter.TensorHandle, mask: Any, *hints: Any, **more: Any
    ) -> Any:
        active = self._active(ptrs, mask, "writes")
        data = np.ascontiguousarray(np.broadcast_to(value.data, ptrs.data.shape), numpy_dtype(ptrs.get_element_ty()))
        if (bits := _BITS.get(data.dtype)) is not None:
            data = data.view(bits)
        self.note_write(ptrs, active, data)
        if self.turns is not None:
            self.turns.wrote()
        return memory.store(ptrs.data, data, active)

    def _active(self, ptrs: interpreter.TensorHandle, mask: interpreter.TensorHandle | None, verb: str) -> np.ndarray:
        # Triton 3.6 passes the masks of block pointers and descriptors as arrays
        mask = TensorHandle(mask, tl.int1) if isinstance(mask, np.ndarray) else mask
        flags = None if mask is None else mask.data.astype(np.bool_, copy=False)  # of a scalar they are integers
        if self.guard is not None:
            self.guard.check(ptrs, flags, verb, self.grid_idx)
        return np.ones(ptrs.data.shape, bool) if flags is None else np.broadcast_to(flags, ptrs.data.shape)

    def create_atomic_cas(self, ptr: interpreter.TensorHandle, *rest: Any) -> Any:
        active = self._active(ptr, None, "updates")
        return self._updated(ptr, active, rest, "cas", lambda: super(Builder, self).create_atomic_cas(ptr, *rest))

    def create_atomic_rmw(self, rmwOp: Any, ptr: interpreter.TensorHandle, val: Any, mask: Any, *rest: Any) -> Any:
        active = self._active(ptr, mask, "updates")

        def update() -> Any:
            if val.data.dtype == BFLOAT16:
                return self._add_halves(ptr, val, active)
            mask = TensorHandle(np.array(active), tl.int1)
            return super(Builder, self).create_atomic_rmw(rmwOp, ptr, val, mask, *rest)

        return self._updated(ptr, active, rest, "", update)

    def _updated(
        self,
        ptr: interpreter.TensorHandle,
        active: np.ndarray,
        rest: tuple[Any, ...],
        order: str,
        update: Callable[[], Any],
    ) -> Any:
        """What an atomic operation gives; in a cooperative launch the other programs run before it."""
        if self.turns is not None:
            self.turns.give()
        self.note_update(ptr, active, rest, order)
        found = update()
        if self.turns is not None:
            bits = np.dtype(f"u{found.data.dtype.itemsize}")
            now = memory.load(ptr.data, active, np.zeros(ptr.data.shape, bits), bits)
            if (now != found.data.view(bits))[active].any():
                self.turns.wrote()
        return found

    def _add_halves(self, ptr: interpreter.TensorHandle, val: interpreter.TensorHandle, active: np.ndarray) -> Any:
        """Atomic addition, the only bfloat16 atomic in Triton; programs run one after another, so a loop is atomic."""
        data = np.broadcast_to(val.data, ptr.data.shape)
        before = np.zeros(ptr.data.shape, data.dtype)
        shadow, self.shadow = self.shadow, None
        for where in zip(*np.nonzero(active), strict=True):
            one = TensorHandle(ptr.data[where].reshape(1), ptr.dtype, ptr.attr)
            old = self.create_masked_load(one, None, None).data
            before[where] = old[0]
            self.create_masked_store(one, TensorHandle(old + data[where], tl.bfloat16), None)
        self.shadow = shadow
        return TensorHandle(before, tl.bfloat16)

    def create_addptr(self, ptr: interpreter.TensorHandle, offset: interpreter.TensorHandle) -> Any:
        width = max(1, ptr.get_element_ty().primitive_bitwidth // 8)
        return TensorHandle(ptr.data + np.uint64(width) * offset.data.astype(np.uint64), ptr.dtype, ptr.attr)

    create_splat = _keeps_argument("create_splat")
    create_broadcast = _keeps_argument("create_broadcast")
    create_expand_dims = _keeps_argument("create_expand_dims")
    create_reshape = _keeps_argument("create_reshape")
    create_trans = _keeps_argument("create_trans")
    create_bitcast = _keeps_argument("create_bitcast")
    create_ptr_to_int = create_bitcast

    def create_int_to_ptr(self, value: interpreter.TensorHandle, type: Any) -> Any:
        result = self.create_bitcast(value, type)
        if self.guard is not None and "argument" not in result.attr and value.data.size == 1:
            position = self.guard.reached.get(int(value.data.item()))
            if position is not None:
                result.attr = {"argument": position}
        return result

    # tensor descriptors: a tile is a block of pointers into the descriptor's array, masked by its shape

    def create_descriptor_load(self, desc: interpreter.TensorDescHandle, indices: Any, *hints: Any) -> Any:
        pointers, mask = self._tile(desc, indices)
        return self.create_masked_load(pointers, mask, None)

    def create_descriptor_store(self, desc: interpreter.TensorDescHandle, value: object, indices: Any) -> Any:
        pointers, mask = self._tile(desc, indices)
        return self.create_masked_store(pointers, value, mask)

    @staticmethod
    def _tile(desc: interpreter.TensorDescHandle, indices: Any) -> tuple[Any, Any]:
        pointers, mask = desc.materialize_pointers(indices)
        return TensorHandle(pointers.data, pointers.dtype, desc.base.attr), mask

    # casts

    def cast_impl(self, src: interpreter.TensorHandle, dst_type: Any) -> Any:
        data, dtype = src.data, numpy_dtype(dst_type)
        if dtype.itemsize == 1 and dtype in _BITS and src.dtype.scalar.is_floating():  # saturating, as on a card
            most = data.dtype.type(ml_dtypes.finfo(dtype).max)
            data = np.where(np.isnan(data), data, np.clip(data, -most, most))
        return TensorHandle(data.astype(dtype), dst_type.scalar)

    create_si_to_fp = create_ui_to_fp = create_fp_to_si = create_fp_to_ui = cast_impl
    create_fp_ext = create_fp_trunc = cast_impl

    def create_fp_to_fp(self, src: interpreter.TensorHandle, dst_type: Any, rounding_mode: Any) -> Any:
        if rounding_mode != ir.ROUNDING_MODE.RTZ:
            return self.cast_impl(src, dst_type)
        bits = _BITS.get(src.data.dtype)  # towards zero, which Triton's own does on bits
        plain = TensorHandle(src.data if bits is None else src.data.view(bits), src.dtype)
        return super().create_fp_to_fp(plain, dst_type, rounding_mode)

    def create_int_cast(self, src: interpreter.TensorHandle, dst_type: Any, is_signed: bool) -> Any:
        return self.cast_impl(src, dst_type)

    # arithmetic

    def binary_op(self, lhs: interpreter.TensorHandle, rhs: interpreter.TensorHandle, op: Callable[..., Any]) -> Any:
        if lhs.data.dtype == np.bool_ and rhs.data.dtype == np.bool_:
            # one-bit integers wrap around on a device (True + True is False), where NumPy saturates
            wide = op(lhs.data.astype(np.int8), rhs.data.astype(np.int8))
            return TensorHandle((wide & 1).astype(np.bool_), lhs.dtype.scalar)
        found = super().binary_op(lhs, rhs, op)
        if found.data.dtype == np.bool_:  # a comparison, which Triton notes as of the type that it compares
            found.dtype = tl.int1
        return found

    def create_minnumf(self, lhs: interpreter.TensorHandle, rhs: interpreter.TensorHandle) -> Any:
        return self.binary_op(lhs, rhs, np.fmin)

    def create_maxnumf(self, lhs: interpreter.TensorHandle, rhs: interpreter.TensorHandle) -> Any:
        return self.binary_op(lhs, rhs, np.fmax)

    def create_rsqrt(self, arg: interpreter.TensorHandle) -> Any:
        return TensorHandle((1 / np.sqrt(arg.data)).astype(arg.data.dtype), arg.dtype.scalar)

    def create_umulhi(self, lhs: interpreter.TensorHandle, rhs: interpreter.TensorHandle) -> Any:
        """The upper half of an unsigned product, on whole arrays: Philox computes twenty of them for each number."""
        dtype = lhs.data.dtype
        half = dtype.itemsize * 4  # bits
        unsigned, wide = np.dtype(f"uint{dtype.itemsize * 8}"), np.dtype(np.uint64)
        x, y = (side.data.view(unsigned).astype(wide) for side in (lhs, rhs))
        if dtype.itemsize < 8:
            high = x * y >> np.uint64(2 * half)
        else:
            mask, shift = np.uint64(2**half - 1), np.uint64(half)
            x0, x1, y0, y1 = x & mask, x >> shift, y & mask, y >> shift
            middle = x1 * y0 + (x0 * y0 >> shift)
            high = x1 * y1 + (middle >> shift) + (x0 * y1 + (middle & mask) >> shift)
        return TensorHandle(high.astype(unsigned).view(dtype), lhs.dtype.scalar)

    def create_dot(self, a: interpreter.TensorHandle, b: interpreter.TensorHandle, d: Any, *rest: Any) -> Any:
        if a.dtype.scalar == tl.bfloat16 or a.dtype.scalar.is_fp8():
            a, b = (TensorHandle(side.data.astype(np.float32), tl.float32) for side in (a, b))
        return super().create_dot(a, b, d, *rest)

    def create_assert(self, condition: interpreter.TensorHandle, message: str, *rest: Any) -> None:
        if not np.all(condition.data):
            where = f"program {self.grid_idx}: {_values_where_false(condition.data, message)}"
            raise DeviceError(
                "CUDA error: device-side assert triggered",
                f"{self.name.removeprefix('rowwise_')}: {message}",
                where,
                f"at {watching.here()}",
            )


def _values_where_false(condition: np.ndarray, message: str) -> str:
    """The first failure of a condition: the row or element, the variables that the message names, and the arguments of
    the function that asserts."""
    place, frame = int(np.argmin(condition)), sys._getframe(2)
    found: dict[str, str] = {}
    names = {"row", "index", *message.lower().split()}
    while frame is not None and not frame.f_globals.get("__name__", "").endswith(".interpreter.run"):
        if not frame.f_globals.get("__name__", "").startswith("triton."):
            names |= set() if found else set(frame.f_code.co_varnames[: frame.f_code.co_argcount])
            for name in names & frame.f_locals.keys():
                handle = getattr(frame.f_locals[name], "handle", None)
                if isinstance(handle, TensorHandle) and handle.data.size == condition.size:
                    found.setdefault(name, f"{name} {handle.data.flat[place]}")
        frame = frame.f_back  # type: ignore[assignment]
    return ", ".join(found[name] for name in sorted(found))


class _Semantic(TritonSemantic):
    """The rules of Triton 3.6, which computes 0 - x for -x, but for the sign of a negated zero."""

    def minus(self, input: tl.tensor) -> tl.tensor:
        if not input.dtype.is_floating():
            return super().minus(input)
        return tl.tensor(TensorHandle(-input.handle.data, input.dtype), input.type)


semantic = (TritonSemantic if hasattr(Builder, "create_fneg") else _Semantic)(Builder())
