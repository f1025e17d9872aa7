"""The steps of optimizers: each is one elementwise operator that reads and writes a parameter and its state.

An operator here has the inputs (param, grad, *state) and the outputs (param, *state). Called as an operator it returns
new tensors, by the reference that defines it. The tensors are changed in place on CUDA devices by one launch for all of
them (`multi_tensor.py`), and on the CPU by a `Step`: a function that computes the same in as few passes over the memory
as NumPy allows.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import sqrt
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...rules import REAL_FLOAT
from ...runtime.call import Call
from ...runtime.launch import device_function
from ...tensor import Tensor
from ...threads import get_num_threads, in_pieces
from ..elementwise.family import elementwise
from .multi_tensor import check_entry

if TYPE_CHECKING:
    import triton.language as tl

__all__ = ["CHUNK", "Large", "Step", "adam", "adam_amsgrad", "aligned_zeros", "in_place", "sgd", "sgd_momentum"]

ndarray = np.ndarray

# Elements that the CPU steps work on at a time: for a large parameter, five arrays of 256 kB that stay in a cache from
# pass to pass. On a core with 1 MB of its own, Adam on 784 x 128 weights took 266 us in chunks of 4,096, 204 of 8,192
# and 145 of 65,536; on 1024 x 1024 weights 3.1, 2.4 and 1.9 ms.
CHUNK = 65536

_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


# The numbers of a step of Adam, with their defaults.
_ADAM = {
    "lr": 1e-3,
    "beta1": 0.9,
    "beta2": 0.999,
    "rest1": 0.1,
    "rest2": 0.001,
    "eps": 1e-8,
    "l2": 0.0,
    "shrink": 1.0,
    "correction1": 0.1,
    "correction2": 0.001,
    "sign": 1.0,
}


def _takes_numbers(reference: Callable[..., Any]) -> Callable[..., Any]:
    """Spell out the signature of a reference that takes `_ADAM` by name: operators are declared by it."""
    signature = inspect.signature(reference)
    tensors = [parameter for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
    numbers = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value) for name, value in _ADAM.items()]
    reference.__signature__ = signature.replace(parameters=[*tensors, *numbers])  # type: ignore[attr-defined]
    return reference


def _with_decay(param, grad, decay, sign):
    """sign * grad + decay * param; without decay an infinite parameter adds nothing."""
    return sign * grad + decay * param if decay else np.broadcast_arrays(sign * grad, param)[0]


@device_function
def _with_decay_on_device(param, grad, decay, sign):
    return sign * grad + tl.where(decay != 0, decay * param, 0.0)


def _adam_reference(param, grad, exp_avg, exp_avg_sq, *highest, **numbers):
    """The new parameter and the new state, with the highest second moment where there was one."""
    n = SimpleNamespace(**_ADAM | numbers)
    grad = _with_decay(param, grad, n.l2, n.sign)
    # between the two as `lerp` does it, from the nearer one: an infinite average stays infinite in no other way
    way = grad - exp_avg
    exp_avg = exp_avg + n.rest1 * way if n.rest1 < 0.5 else grad - n.beta1 * way
    exp_avg_sq = n.beta2 * exp_avg_sq + n.rest2 * grad * grad
    state = (exp_avg, exp_avg_sq, *(np.maximum(before, exp_avg_sq) for before in highest))
    return n.shrink * param - n.lr / n.correction1 * exp_avg / (np.sqrt(state[-1] / n.correction2) + n.eps), *state


@device_function
def _adam_averages(param, grad, exp_avg, exp_avg_sq, beta1, beta2, rest1, rest2, l2, sign):
    grad = _with_decay_on_device(param, grad, l2, sign)
    way = grad - exp_avg
    exp_avg = tl.where(rest1 < 0.5, exp_avg + rest1 * way, grad - beta1 * way)
    return exp_avg, beta2 * exp_avg_sq + rest2 * grad * grad


@device_function
def _adam_param(param, exp_avg, second, lr, eps, shrink, correction1, correction2):
    return shrink * param - lr / correction1 * exp_avg / (tl.sqrt(second / correction2) + eps)


@elementwise(REAL_FLOAT, outputs=("new_param", "new_exp_avg", "new_exp_avg_sq"), methods=())
@_takes_numbers
def adam(param, grad, exp_avg, exp_avg_sq, **numbers):
    """One step of Adam, by Kingma and Ba (2015).

    `rest1` and `rest2` are 1 - beta, computed on the host: in a device's float32, 1 - 0.999 has only four digits. `l2`
    adds a share of the parameter to the gradient (Adam's weight decay), `shrink` scales the parameter before the step
    (AdamW's), `correction1` and `correction2` are 1 - beta^step, `sign` is -1 to maximise.
    """
    return _adam_reference(param, grad, exp_avg, exp_avg_sq, **numbers)


@adam.kernel
def _(
    param, grad, exp_avg, exp_avg_sq, lr, beta1, beta2, rest1, rest2, eps, l2, shrink, correction1, correction2, sign
):
    exp_avg, exp_avg_sq = _adam_averages(param, grad, exp_avg, exp_avg_sq, beta1, beta2, rest1, rest2, l2, sign)
    param = _adam_param(param, exp_avg, exp_avg_sq, lr, eps, shrink, correction1, correction2)
    return param, exp_avg, exp_avg_sq


@elementwise(REAL_FLOAT, outputs=("new_param", "new_exp_avg", "new_exp_avg_sq", "new_max_exp_avg_sq"), methods=())
@_takes_numbers
def adam_amsgrad(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, **numbers):
    """One step of AMSGrad, by Reddi et al. (2018): Adam whose second moment never shrinks."""
    return _adam_reference(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, **numbers)


@adam_amsgrad.kernel
def _(
    param,
    grad,
    exp_avg,
    exp_avg_sq,
    max_exp_avg_sq,
    lr,
    beta1,
    beta2,
    rest1,
    rest2,
    eps,
    l2,
    shrink,
    correction1,
    correction2,
    sign,
):
    exp_avg, exp_avg_sq = _adam_averages(param, grad, exp_avg, exp_avg_sq, beta1, beta2, rest1, rest2, l2, sign)
    highest = tl.maximum(max_exp_avg_sq, exp_avg_sq, propagate_nan=tl.PropagateNan.ALL)
    return _adam_param(param, exp_avg, highest, lr, eps, shrink, correction1, correction2), exp_avg, exp_avg_sq, highest


@elementwise(REAL_FLOAT, outputs=("new_param",), methods=())
def sgd(param, grad, *, lr=1e-3, weight_decay=0.0, sign=1.0):
    """One step of gradient descent."""
    return param - lr * _with_decay(param, grad, weight_decay, sign)


@sgd.kernel
def _(param, grad, lr, weight_decay, sign):
    return param - lr * _with_decay_on_device(param, grad, weight_decay, sign)


@elementwise(REAL_FLOAT, outputs=("new_param", "new_momentum_buffer"), methods=())
def sgd_momentum(
    param, grad, momentum_buffer, *, lr=1e-3, momentum=0.9, dampening=0.0, weight_decay=0.0, nesterov=0.0, sign=1.0
):
    """One step of gradient descent with momentum; `nesterov` is 1 to look ahead."""
    grad = _with_decay(param, grad, weight_decay, sign)
    buffer = momentum * momentum_buffer + (1 - dampening) * grad
    return param - lr * (grad + momentum * buffer if nesterov else buffer), buffer


@sgd_momentum.kernel
def _(param, grad, momentum_buffer, lr, momentum, dampening, weight_decay, nesterov, sign):
    grad = _with_decay_on_device(param, grad, weight_decay, sign)
    buffer = momentum * momentum_buffer + (1 - dampening) * grad
    step = buffer
    if nesterov != 0:  # a choice for each element needs so many predicates on sm_80 that one is spilled
        step = grad + momentum * buffer
    return param - lr * step, buffer


# averages of squares are not negative: the derived tests draw their arguments from here
adam.domain = adam_amsgrad.domain = {"exp_avg_sq": (0.0, 3.0), "max_exp_avg_sq": (0.0, 3.0)}


# ---- in place -------------------------------------------------------------------------------------------------


class Step:
    """One step of an optimizer: an operator and its numbers, to be called with each parameter in turn.

    Parameters that have made equally many steps share one, so what follows from the numbers is worked out once.
    """

    __slots__ = ("constants", "numbers", "operator", "prepare", "run")

    def __init__(self, operator: Any, numbers: dict[str, float]) -> None:
        self.operator = operator
        # in the order in which the kernel's body takes them
        self.numbers = {name: numbers[name] for name in operator.metadata}
        self.prepare, self.run = in_place[operator]
        self.constants: dict[Any, tuple[Any, ...]] = {}

    def in_place(self, param: Tensor, grad: Tensor, state: Sequence[Tensor], large: Large) -> bool:
        """Make the step where the in-place function takes all arrays as they are, and say whether it did.

        That requires contiguous host arrays of one shape and one dtype that NumPy computes in. The step of a large
        parameter is left to `large.run()`. The caller silences floating-point warnings.
        """
        first = param._data
        if first.__class__ is not ndarray:
            return False
        kind, shape = first.dtype, first.shape
        if kind is not _FLOAT32 and kind is not _FLOAT64:
            return False
        arrays = []
        for tensor in (param, grad, *state):
            array = tensor._data
            if array.__class__ is not ndarray or array.dtype is not kind or array.shape != shape:
                return False
            flags = array.flags
            if not flags.c_contiguous or not (flags.writeable or tensor is grad):
                return False
            arrays.append(array)
        constants = self.constants.get(kind)
        if constants is None:
            constants = self.constants[kind] = self.prepare(kind, self.numbers)
        if first.size <= CHUNK:
            flat = arrays if first.ndim == 1 else [array.reshape(-1) for array in arrays]
            self.run(flat, *_scratch.of(kind), *constants)
        else:
            large.add(self.run, [array.reshape(-1) for array in arrays], constants)
        for tensor in (param, *state):
            counter = tensor._counter
            if counter is None:
                tensor._counter = [1]
            else:
                counter[0] += 1
        return True

    def __call__(self, param: Tensor, grad: Tensor, state: Sequence[Tensor], large: Large) -> None:
        """Change a parameter on the CPU and its `state` in place; `Tables.step` does it on CUDA devices.

        `large` as for `in_place`.

        Raises:
            ShapeError: the gradient or a state tensor has another shape than the parameter.
            DeviceMismatchError: they are on different devices.
            Nothing has changed then.
        """
        if self.in_place(param, grad, state, large):
            return
        operator, tensors = self.operator, (param, grad, *state)
        check_entry(operator, tensors)
        call = Call(operator, tensors, self.numbers)
        call.compute, call.results = operator.resolve_dtypes(call)
        arrays = [tensor._host_array() for tensor in tensors]
        computed = operator.on_host(call)(*arrays)
        for array, new in zip([arrays[0], *arrays[2:]], computed, strict=True):
            array[...] = new
        for tensor in (param, *state):
            tensor._count_change()


class Large:
    """The steps of large parameters, gathered so that threads share them, CHUNK elements at a time."""

    def __init__(self) -> None:
        self.chunks: list[tuple[Callable[..., None], list[ndarray], tuple[Any, ...]]] = []
        self.written: list[ndarray] = []

    def add(self, run: Callable[..., None], arrays: list[ndarray], constants: tuple[Any, ...]) -> None:
        """Leave `run(arrays, ...)` to `self.run`."""
        self.written += [arrays[0], *arrays[2:]]
        for start in range(0, arrays[0].size, CHUNK):
            self.chunks.append((run, [array[start : start + CHUNK] for array in arrays], constants))

    def run(self) -> None:
        """Make the steps: those of one array of memory after the other where parameters share it."""

        def steps(start: int, stop: int) -> None:
            for run, arrays, constants in self.chunks[start:stop]:
                run(arrays, *_scratch.of(arrays[0].dtype), *constants)

        # two chunks take 0.1 to 0.4 ms, as long as sharing them might
        if len(self.chunks) < 3 or get_num_threads() == 1 or self.overlap():
            steps(0, len(self.chunks))
        else:
            in_pieces(steps, len(self.chunks), 1)

    def overlap(self) -> bool:
        """Whether any of the arrays that are written overlap."""
        places = sorted((array.__array_interface__["data"][0], array.nbytes) for array in self.written)
        return any(place + size > after for (place, size), (after, _) in pairwise(places))


class _Scratch(threading.local):
    """Two blocks of CHUNK elements per dtype and thread, made when first needed."""

    def __init__(self) -> None:
        self.blocks: dict[Any, tuple[ndarray, ndarray]] = {}

    def of(self, kind: Any) -> tuple[ndarray, ndarray]:
        if kind not in self.blocks:
            self.blocks[kind] = aligned_zeros(CHUNK, kind), aligned_zeros(CHUNK, kind)
        return self.blocks[kind]


def aligned_zeros(shape: Any, kind: Any) -> ndarray:
    """Zeros that begin at a cache line. NumPy aligns to 16 bytes only, and where the averages and the scratch memory
    begin at a line, Adam's twelve passes over 784 x 128 weights take 130 us and not 141."""
    count = int(np.prod(shape))
    raw = np.zeros(count * kind.itemsize + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + count * kind.itemsize].view(kind).reshape(shape)


_scratch = _Scratch()


def _decayed(grad: ndarray, param: ndarray, spare: ndarray, decay: float, sign: float) -> ndarray:
    """sign * grad + decay * param, in `spare` unless it is the gradient itself."""
    if decay:
        np.multiply(param, decay, spare)
        return np.add(spare, grad, spare) if sign > 0 else np.subtract(spare, grad, spare)
    return grad if sign > 0 else np.negative(grad, spare)


def _prepare_adam(kind: Any, numbers: dict[str, float]) -> tuple[Any, ...]:
    """The numbers of `_adam_in_place`, most of them as 0-dimensional arrays: a ufunc takes these
    0.2 us faster than Python floats."""
    root = sqrt(numbers["correction2"])
    near = numbers["rest1"] < 0.5
    values = (
        numbers["rest1"] if near else numbers["beta1"],
        numbers["beta2"],
        numbers["rest2"],
        numbers["eps"] * root,
        numbers["lr"] * root / numbers["correction1"],
    )
    constants = tuple([np.array(value, kind) for value in values])
    shrink = None if numbers["shrink"] == 1 else np.array(numbers["shrink"], kind)
    return (constants, near, shrink, numbers["l2"], numbers["sign"])


def _adam_in_place(
    arrays: list[ndarray],
    scratch: ndarray,
    second: ndarray,
    constants: tuple[ndarray, ...],
    near: bool,
    shrink: ndarray | None,
    l2: float,
    sign: float,
) -> None:
    """Twelve passes: sqrt(v / c2) + eps is computed as (sqrt(v) + eps * sqrt(c2)) / sqrt(c2), which saves one."""
    param, grad, exp_avg, exp_avg_sq = arrays[:4]
    share, beta2, rest2, eps, rate = constants
    size = param.size
    t = scratch if size == CHUNK else scratch[:size]
    if l2 or sign < 0:
        grad = _decayed(grad, param, second[:size], l2, sign)
    if shrink is not None:
        _multiply(param, shrink, param)
    _subtract(grad, exp_avg, t)
    _multiply(t, share, t)
    if near:
        _add(exp_avg, t, exp_avg)
    else:
        _subtract(grad, t, exp_avg)
    _multiply(grad, grad, t)
    _multiply(t, rest2, t)
    _multiply(exp_avg_sq, beta2, exp_avg_sq)
    _add(exp_avg_sq, t, exp_avg_sq)
    if len(arrays) > 4:
        exp_avg_sq = np.maximum(arrays[4], exp_avg_sq, out=arrays[4])
    _sqrt(exp_avg_sq, t)
    _add(t, eps, t)
    _divide(exp_avg, t, t)
    _multiply(t, rate, t)
    _subtract(param, t, param)


_multiply, _add, _subtract, _divide, _sqrt = np.multiply, np.add, np.subtract, np.divide, np.sqrt


def _prepare_sgd(kind: Any, numbers: dict[str, float]) -> tuple[Any, ...]:
    values = (numbers["lr"], numbers.get("momentum", 0.0), 1 - numbers.get("dampening", 0.0))
    constants = [np.array(value, kind) for value in values]
    return (*constants, numbers.get("nesterov", 0.0), numbers["weight_decay"], numbers["sign"])


def _sgd_in_place(
    arrays: list[ndarray],
    scratch: ndarray,
    second: ndarray,
    lr: ndarray,
    momentum: ndarray,
    kept: ndarray,
    nesterov: float,
    decay: float,
    sign: float,
) -> None:
    param, grad = arrays[:2]
    size = param.size
    t = scratch if size == CHUNK else scratch[:size]
    if decay or sign < 0:
        grad = _decayed(grad, param, second[:size], decay, sign)
    if len(arrays) > 2:
        buffer = arrays[2]
        _multiply(buffer, momentum, buffer)
        _add(buffer, grad if kept == 1 else _multiply(grad, kept, t), buffer)
        if nesterov:
            _multiply(buffer, momentum, t)
            grad = _add(t, grad, t)
        else:
            grad = buffer
    _multiply(grad, lr, t)
    _subtract(param, t, param)


# Per operator: what follows from the numbers for a dtype, and the function that takes it after the arrays and two
# blocks of scratch memory.
in_place: dict[Any, tuple[Callable[..., tuple[Any, ...]], Callable[..., None]]] = {
    adam: (_prepare_adam, _adam_in_place),
    adam_amsgrad: (_prepare_adam, _adam_in_place),
    sgd: (_prepare_sgd, _sgd_in_place),
    sgd_momentum: (_prepare_sgd, _sgd_in_place),
}
