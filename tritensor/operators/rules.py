"""Dtype rules of operators: which dtypes are accepted, which dtype is computed in and which dtype the result has.

Every kind of rule is defined here, so that PyTorch's behaviour for dtypes is in one place. A rule that only one
operator uses is created where that operator is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DivisionError, DtypeError, UnsupportedError
from ..ground.arguments import wrong_type
from ..host.scalars import holder, rounded, wrapped
from ..tensors import Tensor
from ..types import dtypes

if TYPE_CHECKING:
    from ..runtime.call import Call

Number = (bool, int, float, complex, np.number, np.bool_)
_NO_ARRAY = (*Number, type(None))


class Rule:
    """The dtype rule of an operator: the categories it accepts, the dtype it computes in and the dtype of its result.

    It also says what becomes of Python numbers. `key_of` puts only the class of a number into a replay's key, so what
    depends on the value is done by `number`, at each call.

    Args:
        name: for messages and the documentation.
        lowest, highest: the range of accepted dtype categories (`dtypes.BOOLEAN` ... `dtypes.COMPLEX`).
        floating: integers and booleans are converted to the default floating dtype.
        result: a fixed result dtype; None means the operands' common dtype.
        promote: operands of different dtypes are cast to their common dtype; otherwise the dtypes must be equal.
        held: names of inputs and metadata whose numbers must fit into the dtype of the result; others wrap.
        widely: the numbers of `held` must fit into the dtype of the computation, float32 for half precision.
        unrounded: names of inputs whose numbers keep their precision beside half-precision operands; others are rounded
            to the operands' dtype, as tensors of it are.
    """

    narrows = False  # whether the result of complex operands is real
    examines = False  # whether `examine` looks at the elements of the operands

    def __init__(
        self,
        name: str,
        lowest: int = dtypes.BOOLEAN,
        highest: int = dtypes.COMPLEX,
        *,
        floating: bool = False,
        result: dtypes.dtype | None = None,
        promote: bool = True,
        held: Sequence[str] = (),
        widely: bool = False,
        unrounded: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.held, self.widely, self.unrounded = frozenset(held), widely, frozenset(unrounded)
        self.lowest, self.highest = lowest, highest
        self.floating, self.result, self.promote = floating, result, promote
        self.differentiable = result is None or result.category >= dtypes.FLOATING

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """The dtype to compute in and the dtype of the result, for tensors and Python numbers (None is skipped)."""
        if not self.promote:
            one_dtype(operator, operands)
        tensors = [(value.dtype, value.ndim > 0) for value in operands if isinstance(value, Tensor)]
        common = dtypes.result_dtype(tensors, [value for value in operands if isinstance(value, Number)])
        if not self.lowest <= common.category <= self.highest:
            raise UnsupportedError(
                f"\"{operator}\" not implemented for '{common.legacy}'",
                f"{operator} takes {self.takes()} dtypes, got {common}",
                remedy="convert the operand with .to(dtype)",
            )
        if self.floating and common.category < dtypes.FLOATING:
            common = dtypes.get_default_dtype()
        return compute_dtype(common), self.result or common

    def number(self, name: str, call: Call) -> Callable[[Any], Any] | None:
        """The function from a number, the input or the metadata `name` of calls like this one, to what is computed
        with; None where numbers are taken as they are. It raises what PyTorch raises for the number's value."""
        if name in self.held:
            kind = call.compute if self.widely else call.results[0]
            return holder(kind)
        if name in call.metadata:
            return None
        operand = call.operator.kinds.get(name, call.compute)
        if operand.category == dtypes.INTEGER:
            return lambda value: wrapped(int(value), operand.numpy) if isinstance(value, (int, np.integer)) else value
        half = None if operand is not dtypes.float32 or name in self.unrounded else self.half(call)
        return None if half is None else lambda value: rounded(value, half)

    def half(self, call: Call) -> dtypes.dtype | None:
        """The half-precision dtype that the operands of a call share; None where it is another one."""
        ruled = [value for name, value in zip(call.operator.inputs, call.arrays) if name not in call.operator.kinds]
        arrays = [(dtypes.of(value.dtype), value.ndim > 0) for value in ruled if not isinstance(value, _NO_ARRAY)]
        if not any(is_half(kind) for kind in (*(kind for kind, _ in arrays), dtypes.get_default_dtype())):
            return None
        common = dtypes.result_dtype(arrays, [value for value in ruled if isinstance(value, Number)])
        if self.floating and common.category < dtypes.FLOATING:
            common = dtypes.get_default_dtype()
        return common if is_half(common) else None

    def rounds(self, call: Call) -> tuple[np.dtype, list[int]] | None:
        """The half-precision dtype of a call, and which of its arrays have to be rounded to it before they are computed
        with in float32; None where there are none."""
        wide = [
            position
            for position, (name, value) in enumerate(zip(call.operator.inputs, call.arrays))
            if not isinstance(value, _NO_ARRAY)
            and value.dtype.itemsize > 1
            and not is_half(dtypes.of(value.dtype))
            and name not in call.operator.kinds
            and (value.ndim or name not in self.unrounded)
        ]
        half = self.half(call) if wide and call.compute is dtypes.float32 else None
        return None if half is None else (half.numpy, wide)

    def examine(self, call: Call, operands: Sequence[Any]) -> None:
        """Raise for elements that the operator refuses, on the CPU; a device is not waited for."""

    def takes(self) -> str:
        """The names of the accepted dtype categories."""
        names = ("boolean", "integer", "floating", "complex")
        return ", ".join(names[self.lowest : self.highest + 1])


def one_dtype(operator: str, operands: Sequence[Any]) -> None:
    """Raise DtypeError unless all tensors among the operands have the same dtype."""
    kinds = dict.fromkeys(value.dtype.name for value in operands if isinstance(value, Tensor))
    if len(kinds) > 1:
        raise DtypeError(
            f"{operator}: expected tensors of the same dtype, but got: {' != '.join(kinds)}",
            remedy="bring them to one dtype with .to(dtype)",
        )


def asked_dtype(call: Call) -> dtypes.dtype | None:
    """The dtype that a call asks for as its `dtype`; None for none.

    Raises:
        ArgumentError: it is no dtype.
    """
    wanted = call.metadata.get("dtype")
    if wanted is None:
        return None
    found = dtypes.of_argument(wanted)
    if found is None:
        raise wrong_type(call.operator.name, "dtype", "torch.dtype", wanted)
    return found


def compute_dtype(result: dtypes.dtype) -> dtypes.dtype:
    """Half-precision operands are computed in float32, everything else in its own dtype."""
    return dtypes.float32 if is_half(result) else result


def is_half(kind: dtypes.dtype) -> bool:
    """True if a dtype is float16 or bfloat16."""
    return kind is dtypes.float16 or kind is dtypes.bfloat16


# ---- rules with special messages or results -----------------------------------------------------------------------


class NoBooleans(Rule):
    """Refuses boolean tensors with PyTorch's message, which names the operators to use instead."""

    def __init__(self, name: str, words: str) -> None:
        super().__init__(name, dtypes.INTEGER)
        self.words = words

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """See the base class; raises DtypeError for a boolean operand."""
        if any(
            value.dtype is dtypes.bool_ if isinstance(value, Tensor) else value.__class__ is bool for value in operands
        ):
            raise DtypeError(
                f"{self.words} If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."
            )
        return super().__call__(operator, operands)


class Power(Rule):
    """Refuses booleans but with an exponent that is True or False, and an integer power that is a negative number."""

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """See the base class."""
        x, y = operands
        if isinstance(x, Tensor) and x.dtype is dtypes.bool_ and isinstance(y, (bool, np.bool_)):
            return dtypes.bool_, dtypes.bool_
        return super().__call__(operator, operands)

    def number(self, name: str, call: Call) -> Callable[[Any], Any] | None:
        """See the base class; the function raises DtypeError for an integer to a negative integer number, and for an
        exponent that an integer or half-precision dtype does not hold."""
        taken = super().number(name, call)
        if name != "y" or taken is None:
            return taken
        half = self.half(call) if call.compute.category == dtypes.FLOATING else None
        held = holder(half or call.compute)

        def exponent(value: Any) -> Any:
            fits = held(value)
            if value < 0 and half is None:
                raise DtypeError(
                    "Integers to negative integer powers are not allowed.",
                    f"the base is {call.compute}, the exponent {value}",
                    remedy="convert the base with .float()",
                )
            return taken(fits)

        return exponent


class Choice(Rule):
    """Numbers must fit into the result's dtype, but become infinite in half precision, as in PyTorch."""

    def number(self, name: str, call: Call) -> Callable[[Any], Any] | None:
        """See the base class; None for half precision."""
        return super().number(name, call) if compute_dtype(call.results[0]) is call.results[0] else None


class Logic(Rule):
    """A rule for logic: of a number it only counts whether it is 0."""

    def number(self, name: str, call: Call) -> Callable[[Any], Any] | None:
        """See the base class."""
        return bool


class Scaled(Rule):
    """Operators with a factor `alpha`, which must be of a category that the result has."""

    def __init__(self, name: str) -> None:
        super().__init__(name, held=("alpha",))

    def number(self, name: str, call: Call) -> Callable[[Any], Any] | None:
        """See the base class; the function raises DtypeError for a factor of another category."""
        taken, result = super().number(name, call), call.results[0]
        if name != "alpha" or taken is None:
            return taken

        def factor(value: object) -> Any:
            kind = dtypes.scalar_category(value)
            if kind == dtypes.BOOLEAN and result is not dtypes.bool_:
                raise DtypeError("Boolean alpha only supported for Boolean results.")
            if kind > dtypes.INTEGER and result.category <= dtypes.INTEGER:
                raise DtypeError("For integral input tensors, argument alpha must not be a floating point number.")
            if kind > result.category == dtypes.FLOATING:
                raise DtypeError("For non-complex input tensors, argument alpha must not be a complex number.")
            return int(taken(value)) if result is dtypes.bool_ else taken(value)

        return factor


class Square(Rule):
    """Booleans become int64, as in a power of them."""

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """See the base class, with int64 in place of booleans."""
        if operands[0].dtype is dtypes.bool_:
            return dtypes.int64, dtypes.int64
        return super().__call__(operator, operands)


class Magnitude(Rule):
    """Complex operands have a real result."""

    narrows = True

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """See the base class, with the real counterpart of a complex result."""
        compute, result = super().__call__(operator, operands)
        return compute, dtypes.real_of(result)


class Quotient(Rule):
    """Refuses an integer divisor that is zero, where there is an element to divide.

    On a device that is done for a number only: the elements of a tensor would have to be waited for, and x / 0 is 0.
    """

    examines = True

    def number(self, name: str, call: Call) -> Callable[[Any], Any] | None:
        """See the base class; the function raises DivisionError for an integer divisor that is zero, or wraps to it."""
        taken = super().number(name, call)
        if name != "y" or taken is None or call.compute.category == dtypes.FLOATING or not call.arrays[0].size:
            return taken
        operator, kind = call.operator.name, call.compute

        def divisor(value: object) -> Any:
            value = taken(value)
            if not value:
                self._refuse(operator, kind)
            return value

        return divisor

    def examine(self, call: Call, operands: Sequence[Any]) -> None:
        """Raise DivisionError for a zero in a tensor of integer divisors."""
        x, y = operands
        kind = call.compute
        if kind.category < dtypes.FLOATING and isinstance(y, np.ndarray) and y.size and np.size(x):
            if not (y if y.itemsize <= kind.itemsize else y.astype(kind.numpy)).all():
                self._refuse(call.operator.name, kind)

    def _refuse(self, operator: str, kind: dtypes.dtype) -> None:
        raise DivisionError(
            "ZeroDivisionError",
            f"{operator}: {kind} operands, and a divisor is 0",
            remedy="leave zeros out with torch.where, or divide floats, as in x.float()",
        )


class Rectified(Rule):
    """Every real dtype but boolean."""

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """See the base class; raises DtypeError for a boolean tensor."""
        if operands[0].dtype is dtypes.bool_:
            raise DtypeError(
                f"Boolean inputs not supported for {operator}", remedy="convert the tensor with .to(dtype)"
            )
        return super().__call__(operator, operands)


class Widening(Rule):
    """Sums and products: booleans and integers become int64, so that results do not overflow where the inputs fit."""

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """See the base class, with int64 in place of booleans and integers."""
        compute, result = super().__call__(operator, operands)
        return (compute, result) if result.category > dtypes.INTEGER else (dtypes.int64, dtypes.int64)


class Truth(Rule):
    """`any` and `all`: the result is boolean, but uint8 for uint8 inputs, as in PyTorch."""

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """Computed in booleans for every input dtype."""
        kind = operands[0].dtype
        return dtypes.bool_, kind if kind is dtypes.uint8 else dtypes.bool_


class FloatingOnly(Rule):
    """Floating and complex inputs only. `words` is PyTorch's message, with {} for the dtype's legacy name;
    `dtype_words` is the message for a bad `dtype=` argument, the same unless it is passed."""

    def __init__(self, name: str, words: str, dtype_words: str | None = None, highest: int = dtypes.COMPLEX) -> None:
        super().__init__(name, dtypes.FLOATING, highest)
        self.words = words
        self.dtype_words = dtype_words or words

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """See the base class; raises DtypeError with `words` for a boolean or an integer tensor."""
        kind = operands[0].dtype
        self.check(kind, self.words)
        return super().__call__(operator, operands)

    def check(self, kind: dtypes.dtype, words: str) -> None:
        """Raise with the message `words` unless `kind` is floating or complex."""
        if kind.category < dtypes.FLOATING:
            raise DtypeError(
                words.format(kind.legacy),
                f"the dtype is {kind}",
                remedy="convert the input first, as in x.float(), or pass dtype= where there is one",
            )


class Places(Rule):
    """`argmax` and `argmin`: every dtype but boolean is accepted, the result is int64."""

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """See the base class; raises DtypeError for a boolean tensor."""
        if operands[0].dtype is dtypes.bool_:
            raise DtypeError(
                f"{operator}(): does not support bool input", remedy="convert the input first, as in x.int()"
            )
        return super().__call__(operator, operands)


class Floating(Rule):
    """Real floating inputs only; `words` is the kernel's name in PyTorch's message."""

    def __init__(self, name: str, words: str) -> None:
        super().__init__(name, dtypes.FLOATING, dtypes.FLOATING, promote=False)
        self.words = words

    def __call__(self, operator: str, operands: Sequence[Any]) -> tuple[dtypes.dtype, dtypes.dtype]:
        """See the base class; raises DtypeError for any other dtype."""
        self.check(operator, operands[0].dtype)
        return super().__call__(operator, operands)

    def check(self, operator: str, kind: dtypes.dtype) -> None:
        """Raise unless the dtype is a real floating one."""
        if kind.category != dtypes.FLOATING:
            raise UnsupportedError(
                f"\"{self.words}\" not implemented for '{kind.legacy}'",
                f"{operator} takes floating dtypes, got {kind}",
                remedy="convert the input first, as in x.float()",
            )


# ---- rules of several operators -----------------------------------------------------------------------------------

ANY = Rule("any")
REAL = Rule("real", highest=dtypes.FLOATING)
NUMERIC = Rule("numeric", dtypes.INTEGER)
FLOAT = Rule("float", floating=True)
REAL_FLOAT = Rule("real float", highest=dtypes.FLOATING, floating=True)
COMPARISON = Rule("comparison", result=dtypes.bool_)
ORDER = Rule("order", highest=dtypes.FLOATING, result=dtypes.bool_)
INTEGRAL = Rule("integral", highest=dtypes.INTEGER)
FLOATING = Rule("real floating", dtypes.FLOATING, dtypes.FLOATING)
LOGIC = Logic("logic", result=dtypes.bool_)
SUMS = Widening("sums")
BOUNDED = Rule("bounded", highest=dtypes.FLOATING, held=("min", "max"))
CHOSEN = Choice("chosen", held=("x", "y"))
