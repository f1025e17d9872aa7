"""The public function of a reduction, made from its declaration: `tritensor.amax`, `Tensor.amax`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...autograd.mode import recording
from ...autograd.tape import Gradient, record
from ...errors import ArgumentError
from ...ground.composing import shown_as
from ...operators.outputs import into
from ...tensors import Tensor, wrap
from ...types import dtypes, layout
from ..bounds import places_along, within
from .reference import add_up, reduced_count

Dim = int | Sequence[int] | None

ndarray, asarray = np.ndarray, np.asarray


def keywords(name: str, dim: Any, keepdim: Any, others: dict[str, Any]) -> tuple[Any, Any]:
    """`dim` and `keepdim`, which may be passed by NumPy's names, `axis` and `keepdims`."""
    for key, value in others.items():
        if key == "axis" and dim is None:
            dim = value
        elif key == "keepdims":
            keepdim = value
        else:
            raise ArgumentError(f"{name}() got an unexpected keyword argument '{key}'")
    return dim, as_flag(name, keepdim)


def as_flag(name: str, keepdim: bool) -> bool:
    """`keepdim` itself when it is a bool."""
    if keepdim.__class__ is not bool:
        raise ArgumentError(f"{name}(): argument 'keepdim' must be bool, not {keepdim.__class__.__name__}")
    return keepdim


def no_dims(dim: Any) -> Any:
    """None for an empty sequence of dimensions: no dimension means all of them."""
    return None if dim.__class__ in (tuple, list) and not dim else dim


def as_one_dim(name: str, dim: Any) -> Any:
    """`dim` itself unless it is several dimensions."""
    if not isinstance(dim, (tuple, list)):
        return dim
    kind = dim.__class__.__name__
    words = f"{name}() received an invalid combination of arguments - got ({kind})"
    if name.startswith("arg"):
        words = f"{name}(): argument 'dim' (position 1) must be int, not {kind}"
    raise ArgumentError(words, f"{name} goes along one dimension; flatten several into one first")


def function_of(operator: Any, one_dim: bool, quick: bool) -> Callable[..., Tensor]:
    """The function with PyTorch's parameters, which also accepts NumPy's names for them.

    Args:
        operator: the `Reduction`; with a metadata `dtype`, the function takes one too.
        one_dim, quick: see `reduction`.
    """
    name, rule = operator.name, operator.into

    def dims_of(dim: Any) -> Any:
        return as_one_dim(name, dim) if one_dim else no_dims(dim)

    made: Callable[..., Tensor]
    if "dtype" in operator.metadata:

        def made(
            input: Tensor,
            dim: Dim = None,
            keepdim: bool = False,
            *,
            dtype: dtypes.dtype | None = None,
            out: Tensor | None = None,
            **others: Any,
        ) -> Tensor:
            if out is not None:
                return into(made, rule, out, (input, dim, keepdim), {"dtype": dtype, **others})
            if quick and dtype is None and not others:
                result = quick_sum(operator, input, dim, keepdim)
                if result is not None:
                    return result
            dim, keepdim = keywords(name, dim, keepdim, others)
            return operator(input, dim=dims_of(dim), keepdim=keepdim, dtype=dtype)

    else:

        def made(
            input: Tensor, dim: Dim = None, keepdim: bool = False, *, out: Tensor | None = None, **others: Any
        ) -> Tensor:
            if out is not None:
                return into(made, rule, out, (input, dim, keepdim), others)
            dim, keepdim = keywords(name, dim, keepdim, others)
            found: Tensor = operator.reduce(input, dims_of(dim), keepdim)
            return within(found, places_along(input, dims_of(dim))) if name in ("argmax", "argmin") else found

    if one_dim:
        made.__annotations__["dim"] = "int | None"
    return shown_as(made, name, operator.__doc__, module="tritensor.functional")


def reduced_shape(shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool) -> tuple[int, ...]:
    """The shape of a reduction's result.

    >>> reduced_shape((2, 3, 4), (0, 2), False), reduced_shape((2, 3, 4), (0, 2), True)
    ((3,), (1, 3, 1))
    """
    if keepdim:
        return tuple([1 if dim in dims else extent for dim, extent in enumerate(shape)])
    return tuple([extent for dim, extent in enumerate(shape) if dim not in dims])


def quick_sum(operator: Any, input: Any, dim: Any, keepdim: Any) -> Tensor | None:
    """The sum or mean of a CPU tensor of float32 or float64, in few steps; None where the operator must compute it."""
    x = getattr(input, "_data", None)
    if x.__class__ is not ndarray or x.dtype.char not in "fd" or keepdim.__class__ is not bool:
        return None
    if dim.__class__ is not int and dim is not None:
        if dim.__class__ is not tuple:
            return None
        dim = dim or None
    try:
        total = add_up(x, dim, keepdim)
        if operator.name == "mean":
            total = asarray(total / (x.size // total.size), x.dtype)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError, RuntimeWarning, FloatingPointError):
        return None  # the operator raises the error for bad dimensions, and ignores NumPy's warnings
    result = wrap(total)
    if input._needs and recording.enabled:
        shape = x.shape
        dims = tuple(range(len(shape))) if dim is None else layout.normalize_dims(dim, len(shape)) if shape else ()
        backward = _quick_gradients.get(operator.name) or _quick_gradients.setdefault(
            operator.name, _QuickSpread(operator)
        )
        result._node = record(backward, (input._edge(),), (shape, dims, keepdim))
        result._needs = True
    return result


class _QuickSpread(Gradient):
    """The backward of nodes that `quick_sum` records: the gradient of sum or mean, also on NumPy arrays."""

    __slots__ = ("backward", "mean", "name", "title")

    arithmetic = True
    frees = False

    def __init__(self, operator: Any) -> None:
        backward: Any = operator.backward_for((True,))
        self.backward = backward
        self.name, self.title = backward.name, ""
        self.mean = operator.name == "mean"

    def name_of(self, node: Any) -> str:
        """The name of the operator's node."""
        return self.title or str(self.backward.name_of(node))

    def run(self, node: Any, gradient: Any) -> Any:
        """Call the operator's gradient function with the saved values, which are in its order."""
        return self.backward.run(node, gradient)

    def run_on_arrays(self, values: tuple[Any, ...], array: np.ndarray) -> list[np.ndarray] | None:
        """The gradient repeated over the reduced dimensions, without a copy."""
        shape, dims, keepdim = values
        if self.mean:
            count = reduced_count(shape, dims)
            array = asarray(array / count, array.dtype) if count else array
        if not array.flags.c_contiguous or array.dtype.char not in "fd":
            return None
        kept = array.shape if keepdim or not dims else reduced_shape(shape, dims, True)
        steps, step = [], array.itemsize
        for extent in reversed(kept):
            steps.append(0 if extent == 1 else step)
            step *= extent
        # a view of one element per row; the constructor takes 0.5 us where broadcast_to takes 3
        spread = ndarray(shape, array.dtype, array, 0, steps[::-1])
        spread.flags.writeable = False
        return [spread]


_quick_gradients: dict[str, _QuickSpread] = {}
