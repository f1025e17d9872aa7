"""The data of a tensor inside of a transformation of `tritensor.func`: an array of a level, over another array.

A `Batched` array is one sample of an array with a batch dimension in front (`vmap`); a `Dual` array a value and the
tangent that goes with it (forward mode). Both report the shape that the user's code sees. Transformations nest: the
array below may be of an earlier level itself. Whatever takes a plain array refuses these, so every operator finds its
way to `Operator.call`, which hands the call to `tritensor.operators.lifting`; ordinary calls pay nothing for that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from math import prod
from typing import Any

from ..errors import ShapeError, UnsupportedError
from ..types import devices
from .array import DeviceArray

_number = count(1).__next__


class Level:
    """One transformation that runs; a later one is further in.

    Attributes:
        size: samples in the batch; None for forward mode.
        randomness: "error", "different" or "same", of a batch.
    """

    __slots__ = ("members", "number", "randomness", "size")

    def __init__(self, size: int | None = None, randomness: str = "error") -> None:
        self.number = _number()
        self.size = size
        self.randomness = randomness
        self.members: list[Any] = []  # references to the tensors of a dual level, which are plain ones after it


class _Open(threading.local):
    def __init__(self) -> None:
        self.stack: list[Level] = []


open_levels = _Open()


@contextmanager
def opened(level: Level) -> Iterator[None]:
    """A block in which a level is open."""
    open_levels.stack.append(level)
    try:
        yield
    finally:
        open_levels.stack.remove(level)


def device_of(array: Any) -> devices.device:
    """The device of any array."""
    return array.device if array.__class__ is DeviceArray or isinstance(array, Lifted) else devices.cpu


class Lifted:
    """An array of a level over `array`, which is one of a device, of the host, or of an earlier level."""

    __slots__ = ("array", "device", "dtype", "has_tangents", "level", "ndim", "shape", "size")
    __array_ufunc__ = None  # NumPy's functions raise TypeError

    def __init__(self, array: Any, level: Level, shape: tuple[int, ...]) -> None:
        self.array, self.level, self.shape = array, level, tuple(shape)
        self.ndim, self.dtype, self.device = len(self.shape), array.dtype, device_of(array)
        self.size = prod(self.shape)
        self.has_tangents = level.size is None or getattr(array, "has_tangents", False)

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """The size of the elements that the user's code sees."""
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """The distances in elements, of what is seen."""
        steps = _steps(self.array)
        return steps[len(steps) - self.ndim :]

    def is_contiguous(self) -> bool:
        """True if every view that a contiguous array has is a view of this one."""
        return all(_contiguous(array) for array in self.parts())

    def parts(self) -> tuple[Any, ...]:
        """The arrays below."""
        return (self.array,)

    def mapped(self, function: Callable[[Any], Any]) -> Lifted:
        """The array of this level of what `function` makes of the arrays below."""
        raise NotImplementedError

    def viewed(self, view: Any, arguments: tuple[Any, ...]) -> Lifted:
        """The view that a view operator (`functional.view_operators.View`) makes with these arguments."""
        return self.mapped(lambda array: view.of_array(array, arguments))

    def moves(self) -> bool:
        """True if a tangent is in it."""
        return any(isinstance(array, Lifted) and array.moves() for array in self.parts())

    def constant(self) -> Any:
        """The array without tangents."""
        return self.mapped(lambda array: array.constant() if isinstance(array, Lifted) else array)

    def host(self) -> Any:
        """The elements, to be shown or compared on the host."""
        raise NotImplementedError

    def refuse(self) -> Any:
        """Raise for a function that computes on the host, where it has neither a batching rule nor a tangent.

        Raises:
            ShapeError: always, with PyTorch's words.
        """
        raise NotImplementedError


class Batched(Lifted):
    """One sample; `array` has the batch in front, unless `whole` is false: then all samples are `array`."""

    __slots__ = ("whole",)

    def __init__(self, array: Any, level: Level, whole: bool = True) -> None:
        super().__init__(array, level, array.shape[1:] if whole else array.shape)
        self.whole = whole

    def mapped(self, function: Callable[[Any], Any]) -> Lifted:
        """See `Lifted.mapped`."""
        return Batched(function(self.array), self.level, self.whole)

    def viewed(self, view: Any, arguments: tuple[Any, ...]) -> Lifted:
        """The view of each sample: the arguments with one dimension more."""
        if not self.whole:
            return super().viewed(view, arguments)
        batch, array, kind = self.array.shape[0], self.array, view.kind
        if kind == "expand":
            (shape,) = arguments
            missing = len(shape) - self.ndim
            if missing > 0:
                array = view.registered["slice"].of_array(array, ((slice(None), *(None,) * missing, Ellipsis),))
            arguments = ((batch, *shape),)
        elif kind == "view":
            arguments = ((batch, *arguments[0]),)
        elif kind == "permute":
            arguments = ((0, *[dim + 1 for dim in arguments[0]]),)
        elif kind == "slice":
            arguments = ((slice(None), *arguments[0]),)
        elif kind == "as_strided":
            shape, strides, offset, own = arguments
            step = _steps(array)[0]
            arguments = ((batch, *shape), (step, *strides), offset, (step, *own))
        return Batched(view.of_array(array, arguments), self.level)

    def refuse(self) -> Any:
        """See `host`."""
        self.host()

    def host(self) -> Any:
        """The elements differ from sample to sample, so there are none to read.

        Raises:
            ShapeError: always, with PyTorch's words about `item()`.
        """
        raise ShapeError(
            "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on "
            "a Tensor, please try to rewrite what you're doing with other operations.",
            f"the elements of a sample of shape {self.shape} were asked for on the host",
            remedy="use operators on tensors, such as torch.where, or call the function in a loop",
        )

    def __repr__(self) -> str:
        return f"BatchedTensor(lvl={self.level.number}, bdim={0 if self.whole else None}"


class Dual(Lifted):
    """A value, `array`, and its tangent, an array of its shape and dtype; None for a constant."""

    __slots__ = ("tangent",)

    def __init__(self, array: Any, tangent: Any, level: Level) -> None:
        super().__init__(array, level, array.shape)
        self.tangent = tangent

    def parts(self) -> tuple[Any, ...]:
        """See `Lifted.parts`."""
        return (self.array,) if self.tangent is None else (self.array, self.tangent)

    def mapped(self, function: Callable[[Any], Any]) -> Lifted:
        """See `Lifted.mapped`."""
        return Dual(function(self.array), None if self.tangent is None else function(self.tangent), self.level)

    def moves(self) -> bool:
        """See `Lifted.moves`."""
        return self.tangent is not None or super().moves()

    def constant(self) -> Any:
        """See `Lifted.constant`."""
        return self.array.constant() if isinstance(self.array, Lifted) else self.array

    def host(self) -> Any:
        """The value's elements."""
        return self.array.host() if isinstance(self.array, Lifted) else self.array

    def refuse(self) -> Any:
        """See `Lifted.refuse`."""
        raise UnsupportedError(
            "Trying to use forward AD with a function that does not support it because it has not been implemented "
            "yet.",
            "it computes with NumPy on the host, not with operators",
            remedy="differentiate it with reverse mode: torch.func.grad, vjp or jacrev",
        )


def _contiguous(array: Any) -> bool:
    return bool(array.is_contiguous() if hasattr(array, "is_contiguous") else array.flags.c_contiguous)


def _steps(array: Any) -> tuple[int, ...]:
    """The strides of any array, in elements."""
    plain = array.__class__ is DeviceArray or isinstance(array, Lifted)
    return tuple(array.strides) if plain else tuple([step // array.itemsize for step in array.strides])
