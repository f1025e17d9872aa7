"""Creation of tensors: from data, filled with a number, and with the shape of others."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError, NumberError, explain
from ...ground.arguments import UNEXPECTED, guarded, recovered, wrong_type
from ...ground.public import method, public, publish
from ...host.copying import cast
from ...host.scalars import converted, single
from ...kernels.bounds import bounds_at_host, within
from ...memory import buffer, copies
from ...memory.array import DeviceArray
from ...operators import copy_into
from ...operators.determinism import determinism, fill_new
from ...operators.outputs import MADE, Into, into, takes_out, with_out
from ...tensors import Tensor, blank, wrap
from ...types import Device, Dtype, devices, dtypes, formats
from ...types.layout import check_shape
from ...types.size import Size, check_rank
from .exchange import of_cuda_array
from .refused_data import leaves, read, refusal
from .strides import restrided, turned


def _first_leaf(data: object) -> Any:
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
    return data


def _depth(data: object) -> int:
    depth = 0
    while isinstance(data, (list, tuple)) and data:
        data = data[0]
        depth += 1
    return depth


def _as_array(data: object, wanted: np.dtype | None = None) -> np.ndarray:
    """Python numbers and nested sequences of them (or of tensors) as an array, with PyTorch's dtypes and messages.

    Args:
        wanted: the dtype to which the caller converts the array, which has double precision then; without it, the
            array's dtype is that of the tensor.
    """
    given, typed = data, isinstance(data, (list, tuple)) and _is_typed(data)
    kind = _common(data).numpy if typed and wanted is None else wanted
    if typed:
        if wanted is not None and wanted.kind in "biu":
            _check_integers(data, wanted)
        data = _untyped(data)
    try:
        array = np.asarray(data)
    except (ValueError, OverflowError):
        check_rank(_depth(data))
        if typed and any(isinstance(leaf, Tensor) and leaf.numel() != 1 for leaf in leaves(given)):
            if kind is not None and kind.kind in "biu":
                raise ArgumentError("only integer tensors of a single element can be converted to an index") from None
            raise ValueError("only one element tensors can be converted to Python scalars") from None
        raise refusal(data, kind) from None
    first = _first_leaf(data)
    if array.dtype.kind == "f" and isinstance(first, int) and np.abs(array).max() >= 1 << 63:
        array = np.asarray(data, object)  # of small integers and those beyond int64 NumPy makes floats
    if array.dtype.kind == "O":
        array = _of_large_integers(data, array, kind)
    if array.dtype.kind in "US":
        raise refusal(data, kind)
    if isinstance(first, (np.generic, np.ndarray)):
        return array
    if array.dtype.kind == "i":
        array = array.astype(np.int64, copy=False)
    elif array.dtype.kind == "u" and (kind is None or (kind.kind in "iu" and kind != np.uint64)):
        raise refusal(data, kind)
    if wanted is not None:
        return array
    if kind is not None:
        return _converted(array, kind)
    if array.dtype.kind == "f":
        return array.astype(dtypes.get_default_dtype().numpy)
    return array.astype(dtypes.of_scalar(0j).numpy) if array.dtype.kind == "c" else array


def _is_typed(data: Any) -> bool:
    """True if nested sequences contain a tensor or a NumPy number, which has a dtype of its own."""
    for part in data:
        if isinstance(part, (Tensor, np.generic)) or (isinstance(part, (list, tuple)) and _is_typed(part)):
            return True
    return False


def _common(data: object) -> dtypes.dtype:
    """The dtype to which the elements promote; each counts alike, a Python number with the dtype that it has alone."""
    if isinstance(data, (list, tuple)):
        return functools.reduce(dtypes.promote_types, map(_common, data)) if data else dtypes.get_default_dtype()
    if isinstance(data, Tensor):
        return data.dtype
    return dtypes.of(data.dtype) if isinstance(data, (np.generic, np.ndarray)) else dtypes.of_scalar(data)


def _check_integers(data: object, kind: np.dtype) -> None:
    """Raise for a tensor that would lose its fraction in an integer dtype."""
    for leaf in leaves(data):
        if isinstance(leaf, Tensor) and (kind == np.uint64 or leaf.dtype.category > dtypes.INTEGER):
            words = "only integer tensors of a single element can be converted to an index"
            raise ArgumentError("an integer is required" if kind == np.uint64 else words)


def _untyped(data: object) -> Any:
    """Nested lists of Python numbers in place of tensors; one of a single element is a number."""
    if isinstance(data, (list, tuple)):
        return [_untyped(part) for part in data]
    if isinstance(data, Tensor) and data.numel() != 1:
        return data.tolist()
    return data.item() if isinstance(data, (Tensor, np.generic)) else data


def _of_large_integers(data: object, array: np.ndarray, kind: np.dtype | None) -> np.ndarray:
    """Numbers some of which are integers beyond int64: as floats, where that is the dtype."""
    elements = array.reshape(-1).tolist()
    if not all(isinstance(element, (int, float, complex)) for element in elements):
        raise refusal(data, kind)
    category = max(map(dtypes.scalar_category, elements)) if kind is None else dtypes.of(kind).category
    if category == dtypes.BOOLEAN:
        return array.astype(np.bool_)
    try:
        if category == dtypes.INTEGER:
            return array.astype(np.int64 if kind is None else kind)
        return array.astype(np.complex128 if any(isinstance(each, complex) for each in elements) else np.float64)
    except (OverflowError, TypeError, ValueError):
        raise refusal(data, kind) from None


def numpy_dtype(dtype: Dtype, default: dtypes.dtype | None = None) -> np.dtype:
    """The NumPy dtype for a user's dtype argument; for None that of `default`, or the default floating dtype."""
    if dtype is None:
        return (default or dtypes.get_default_dtype()).numpy
    found = dtypes.of_argument(dtype)
    if found is None:
        raise ArgumentError(f"argument 'dtype' must be tritensor.dtype, not {type(dtype).__name__}")
    return found.numpy


def place(array: np.ndarray, device: Any) -> Tensor:
    """A host array as a tensor on `device`."""
    where = devices.resolve(device)
    if where is devices.cpu:
        return wrap(array)
    return within(wrap(copies.from_host(array, where)), bounds_at_host(array, array.dtype))


def finish(made: Tensor, requires_grad: Any, pin_memory: Any = False) -> Tensor:
    """A tensor that was just made, with these options."""
    if requires_grad is False is pin_memory:
        return made
    for name, value in (("requires_grad", requires_grad), ("pin_memory", pin_memory)):
        if value is not None and value.__class__ is not bool:
            raise ArgumentError(f"argument '{name}' must be bool, not {type(value).__name__}")
    if pin_memory and made._data.__class__ is not DeviceArray:
        made = made.pin_memory()
    if requires_grad:
        made.requires_grad = True
    return made


_FLAGS = [
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation="bool")
    for name in ("requires_grad", "pin_memory")
]
_NOTHING = wrap(np.empty(0))


def creates(
    rule: Into | None = None, *, pins: bool = False
) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """A decorator that makes public a function that makes a tensor, with options that it does not take itself.

    They follow `device`. It is one call: one inside of another took 5 to 10 % more for `zeros(3, dtype=float64)`.

    Args:
        rule: what is accepted as the option `out`, which there is not without.
        pins: whether `pin_memory` is an option beside `requires_grad`.
    """

    def declare(function: Any) -> Callable[..., Tensor]:
        none: Any = None if rule else _FLAGS

        def call(*args: Any, out: Any = none, requires_grad: Any = False, pin_memory: Any = False, **named: Any) -> Any:
            try:
                if out is none and (pins or pin_memory is False):
                    made = function(*args, **named) if named else function(*args)
                    return made if requires_grad is False is pin_memory else finish(made, requires_grad, pin_memory)
                if pins:
                    finish(_NOTHING, False, pin_memory)
                elif pin_memory is not False:
                    named["pin_memory"] = pin_memory
                if rule and out is not None:
                    return into(function, rule, out, args, named | {"requires_grad": requires_grad})
                return function(*args, **named, **({} if out is none else {"out": out}))  # which it does not know
            except UNEXPECTED as error:
                flags = {"requires_grad": requires_grad, "pin_memory": pin_memory}
                given = named | {name: value for name, value in flags.items() if value is not False}
                return recovered(function, call, args, given, error, **({} if out is none else {"out": out}))

        signature = inspect.signature(function)
        shown = [*signature.parameters.values()]
        place = [*signature.parameters].index("device") + 1
        shown[place:place] = _FLAGS[: 1 + pins]
        function.__signature__ = signature.replace(parameters=shown)
        made = with_out(call, function) if rule else guarded(call, function, function.__name__, "tritensor")
        publish(function.__name__, made, functional=False)
        return made

    return declare


@public(functional=False, guard=False)
def tensor(
    data: object, *, dtype: Dtype = None, device: Device = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A new tensor with a copy of `data`: numbers, nested sequences, NumPy arrays, tensors, columns and tables.

    Floats become the default dtype, integers int64; arrays, tensors, columns (pandas, Polars, PyArrow) keep theirs.

    >>> import tritensor as torch
    >>> torch.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])

    Raises:
        ValueError: a ragged sequence. DtypeError: an element that is not a number, or a value that is missing.
    """
    data = of_cuda_array(data)
    if isinstance(data, Tensor):
        source = data.detach()
        made = source.to(device=device or source.device, dtype=dtype, copy=True)
        return made.requires_grad_() if requires_grad else made
    wanted, data = None if dtype is None else numpy_dtype(dtype), read(data)
    array = _as_array(data, wanted) if not isinstance(data, np.ndarray) else data
    kind = dtypes.of(array.dtype).numpy if wanted is None else wanted
    copied = cast(array, kind) if array is data else _converted(array, kind, data)
    return finish(place(copied.copy() if copied is array else copied, device), requires_grad, pin_memory)


def _one_by_one(data: object, shape: tuple[int, ...], kind: np.dtype) -> np.ndarray | None:
    """Integers among floats, of which negative ones wrap; None where an element does not fit."""
    elements, wanted = list(leaves(data)), dtypes.of(kind)
    if not all(isinstance(element, (int, float)) for element in elements):
        return None
    try:
        return np.array([converted(element, wanted) for element in elements], kind).reshape(shape)
    except DtypeError:
        return None


def _converted(array: np.ndarray, kind: np.dtype, data: object = None) -> np.ndarray:
    """The user's Python numbers, of `data`, in the requested dtype.

    Raises:
        DtypeError: a number does not fit into an integer dtype (300 in uint8; negative ones wrap in unsigned dtypes, as
            in PyTorch). ArgumentError: a complex number for a real dtype, a fraction for uint64. NumberError: a
            negative number for uint64.
    """
    if array.dtype.kind == "c" and dtypes.of(kind).is_floating_point:
        raise ArgumentError("must be real number, not complex")
    if array.dtype.kind == "c" and kind.kind in "iu":
        raise ArgumentError("'complex' object cannot be interpreted as an integer")
    if kind == np.uint64 and array.dtype.kind == "f" and array.size:
        raise ArgumentError("an integer is required")
    if kind.kind in "iu" and array.dtype.kind in "iuf" and array.size:
        limits = np.iinfo(kind)
        lowest = -limits.max if kind.kind == "u" and array.dtype.kind != "f" else limits.min
        low, high = array.min(), array.max()
        if low < 0 and kind == np.uint64:
            raise NumberError("can't convert negative int to unsigned")
        if not (lowest <= low.item() and high.item() <= limits.max):
            mixed = _one_by_one(data, array.shape, kind) if array.dtype.kind == "f" else None
            if mixed is not None:
                return mixed
            raise DtypeError(
                f"value cannot be converted to type {kind.name} without overflow",
                f"the data go from {low.item()} to {high.item()}, {kind.name} from {limits.min} to {limits.max}",
                remedy="take a wider dtype, or make the tensor first and wrap around with .to(dtype)",
            )
    return cast(array, kind)


@public(functional=False, guard=False)
def as_tensor(data: object, dtype: Dtype = None, device: Device = None) -> Tensor:
    """Converts `data` to a tensor, sharing memory where possible; a tensor of this dtype and device is returned."""
    data = of_cuda_array(data)
    if isinstance(data, Tensor):
        return data.to(device=data.device if device is None else device, dtype=dtype)
    wanted, data = None if dtype is None else numpy_dtype(dtype), read(data)
    array = data if isinstance(data, np.ndarray) else _as_array(data, wanted)
    kind = dtypes.of(array.dtype).numpy if wanted is None else wanted
    return place(cast(array, kind) if array is data else _converted(array, kind, data), device)


@public(functional=False, guard=False)
def asarray(
    obj: Any, *, dtype: Dtype = None, device: Device = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Tensor:
    """Converts `obj` to a tensor, which shares memory where that is possible and no copy is asked for.

    A tensor keeps its history, unless `requires_grad` is given.

    Raises:
        ValueError: `copy` is False, and the memory cannot be shared.
    """
    made = (
        tensor(obj, dtype=dtype, device=device)
        if copy and not isinstance(obj, Tensor)
        else as_tensor(obj, dtype, device)
    )
    if copy and made is obj:
        made = made.clone()
    if copy is False:
        if not isinstance(obj, (Tensor, np.ndarray)):
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        given = wrap(obj) if isinstance(obj, np.ndarray) else obj
        if given.device != made.device:
            raise ValueError(f"can't alias tensor from device '{given.device}' to '{made.device}'.")
        if given.dtype is not made.dtype:
            raise ValueError(f"can't alias tensor with dtype '{given.dtype}' into dtype '{made.dtype}'.")
    return made if requires_grad is None else made.detach().requires_grad_(requires_grad)


@public(functional=False)
def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A CPU tensor that shares the memory of a NumPy array.

    Raises:
        ArgumentError: not an array, a dtype without counterpart, or negative strides.
    """
    if not isinstance(ndarray, np.ndarray):
        remedy = "as_tensor takes it" if hasattr(ndarray, "__array__") else ""
        raise ArgumentError(f"expected np.ndarray (got {type(ndarray).__name__})", remedy=remedy)
    if any(stride < 0 for stride in ndarray.strides):
        raise ValueError(
            explain(
                "At least one stride in the given numpy array is negative, and tensors with negative "
                "strides are not currently supported.",
                remedy="copy it: array.copy()",
            )
        )
    kind = dtypes.of(ndarray.dtype).numpy
    return wrap(ndarray.view(kind) if ndarray.dtype.isnative else ndarray.astype(kind))


@method("__array_wrap__")
def _wrapped(self: Tensor, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Tensor:
    """Wraps NumPy's result for tensors as a tensor: `np.sin(x)`. As in PyTorch answers of yes and no become uint8."""
    return from_numpy(array.astype(np.uint8) if array.dtype == np.bool_ else array)


def filled(shape: tuple[int, ...], value: float, kind: np.dtype, device: Device) -> Any:
    """The array of `full`, filled on the device itself."""
    where = devices.resolve(device)
    if where is devices.cpu:
        zero = not value and value.__class__ is int
        return np.zeros(shape, kind) if zero else np.full(shape, value, kind)
    out = buffer.empty(shape, kind, where)
    fill(out, value)
    return out


def fill(out: DeviceArray, value: complex) -> None:
    """Write one number to every element of a device array."""
    copy_into(out, value)


@creates(MADE, pins=True)
def zeros(*sizes: Any, size: Any = None, dtype: Dtype = None, device: Device = None) -> Tensor:
    """A tensor filled with zeros.

    >>> import tritensor as torch
    >>> torch.zeros(2, 3).shape == torch.zeros(size=(2, 3)).shape
    True
    """
    shape = check_shape("zeros", "size", sizes, size)
    return wrap(filled(shape, 0, numpy_dtype(dtype), device))


@creates(MADE, pins=True)
def ones(*sizes: Any, size: int | Sequence[int] | None = None, dtype: Dtype = None, device: Device = None) -> Tensor:
    """A tensor filled with ones."""
    shape = check_shape("ones", "size", sizes, size)
    return wrap(filled(shape, 1, numpy_dtype(dtype), device))


@creates(MADE, pins=True)
def full(size: Sequence[int], fill_value: Any, *, dtype: Dtype = None, device: Device = None) -> Tensor:
    """A tensor filled with `fill_value`; unless given, the dtype is the default for that kind of number.

    Raises:
        DtypeError: the dtype cannot hold the number.
    """
    if isinstance(fill_value, Tensor) and fill_value.ndim == 0:
        fill_value = fill_value.item()
    shape = check_shape("full", "size", (), size)
    if not isinstance(fill_value, (bool, int, float, complex, np.generic)):
        raise wrong_type("full", "fill_value", "Number", fill_value, 2)
    kind = numpy_dtype(dtype, dtypes.of_scalar(fill_value))
    value = (single if prod(shape) == 1 else converted)(fill_value, dtypes.of(kind))
    return wrap(filled(shape, value, kind, device))


@public(functional=False, out=takes_out(MADE))
def empty(
    *sizes: Any,
    size: int | Sequence[int] | None = None,
    dtype: Dtype = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: formats.memory_format | None = formats.contiguous_format,
) -> Tensor:
    """An uninitialised tensor: elements are whatever the memory held (poisoned with NaN in simulation)."""
    shape, kind, where = check_shape("empty", "size", sizes, size), numpy_dtype(dtype), devices.resolve(device)
    strides = None
    if memory_format not in (None, formats.contiguous_format):
        strides = formats.strides_of("empty", memory_format, shape)
        shape, wanted = turned(shape, strides), shape
    data = np.empty(shape, kind) if where is devices.cpu else buffer.empty(shape, kind, where)
    if determinism.fills:
        fill_new(data)
    made = finish(wrap(data), requires_grad, pin_memory)
    if strides is not None:
        made._data = restrided(made._data, wanted, strides)
    return made


@creates(pins=True)
def scalar_tensor(s: Any, *, dtype: Dtype = None, device: Device = None) -> Tensor:
    """A 0-dimensional tensor of the default dtype."""
    return full((), s, dtype=dtypes.get_default_dtype() if dtype is None else dtype, device=device)


@method("__new__")
def _new_tensor(cls: type[Tensor], *data: Any) -> Tensor:
    """`Tensor(data)` of the default dtype, `Tensor(2, 3)` uninitialised, `Tensor(x)` over the same memory."""
    if len(data) == 1 and isinstance(data[0], Tensor):
        made = data[0].detach()
    elif len(data) == 1 and not isinstance(data[0], (int, Size)):
        if not isinstance(data[0], (list, tuple, range, np.ndarray)):
            raise ArgumentError(
                f"new(): data must be a sequence (got {type(data[0]).__name__})",
                remedy="use tritensor.tensor, which takes numbers",
            )
        made = tensor(data[0], dtype=dtypes.get_default_dtype())
    else:
        made = empty(*(data or (0,)))
    return blank(cls, made._data)
