"""Checked mode: compares every kernel launch with its reference.

With `TRITENSOR_CHECK=1`, or inside `tritensor.testing.checked()`, each launch on a CUDA device (simulated or real) is
followed by the operator's NumPy reference on copies of the same inputs. The two are compared on the largest and on the
root-mean-square error, with a tolerance that depends on dtype and operator. A difference raises `KernelMismatchError`
and writes a reproduction: the inputs in an `.npz` file and a script of ten lines that runs the operator on them.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..drivers.capture import capturing
from ..errors import KernelMismatchError
from ..memory.array import DeviceArray
from ..memory.copies import to_host
from ..types import dtypes
from .call import Call

if TYPE_CHECKING:
    from .call import Operator

# Largest error allowed, relative to the expected value and absolute: a few roundings of the dtype. The root-mean-square
# error may be half of that, because a kernel that is wrong in a few places only has a large
# maximum and one that is slightly wrong everywhere has a large mean.
_TOLERANCE = {
    dtypes.float16: (2e-3, 1e-3),
    dtypes.bfloat16: (1.6e-2, 8e-3),
    dtypes.float32: (1e-5, 1e-5),
    dtypes.float64: (1e-12, 1e-12),
    dtypes.complex64: (1e-5, 1e-5),
    dtypes.complex128: (1e-12, 1e-12),
}
# Elements that are compared at a time: their errors take 3 MB, and 2 M elements 0.6 of the time of all at once.
_BLOCK = 1 << 16


def tolerance(operator: Operator, dtype: dtypes.dtype, terms: int = 1) -> tuple[float, float]:
    """The (relative, absolute) tolerance of an operator's results; `terms` numbers were summed for each of them.

    An operator may widen it by its attribute `slack` (a factor); results that its `rounding` names, what others lost in
    rounding, are not compared. Sums of n terms in another order differ by about
    sqrt(n) roundings.
    """
    if dtype.category < dtypes.FLOATING or dtype in dtypes.FLOAT8:  # which is moved only
        return 0.0, 0.0
    relative, absolute = _TOLERANCE[dtype]
    factor = getattr(operator, "slack", 1.0) * max(1.0, terms**0.5)
    return relative * factor, absolute * factor


def mismatch(result: np.ndarray, expected: np.ndarray, relative: float, absolute: float) -> str | None:
    """A description of the largest difference; None when `result` agrees with `expected`."""
    if result.shape != expected.shape:
        return f"shape {result.shape}, expected {expected.shape}"
    if result.dtype != expected.dtype:
        return f"dtype {result.dtype}, expected {expected.dtype}"
    if not result.size:
        return None
    if result.dtype.kind in "biu":
        wrong = result != expected
        if not wrong.any():
            return None
        return _worst(result, expected, wrong.astype(np.float64))
    total = 0.0
    x, y = result.reshape(-1), expected.reshape(-1)
    with np.errstate(all="ignore"):
        for start in range(0, result.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            score = _errors(x[block], y[block], relative, absolute)
            if not (score <= 1).all():
                score = _errors(result, expected, relative, absolute)
                return _worst(result, expected, np.where(score <= 1, 0.0, score))
            total += float(np.square(score).sum())
    rms = (total / result.size) ** 0.5
    if rms > 0.5:
        return f"root-mean-square error {rms:.3g} of the tolerance (at most 0.5), though no element is beyond it"
    return None


def _errors(result: np.ndarray, expected: np.ndarray, relative: float, absolute: float) -> np.ndarray:
    """By element, the error as a part of what is allowed; infinity where only one of two is a number."""
    wide = np.complex128 if result.dtype.kind == "c" else np.float64
    x, y = result.astype(wide), expected.astype(wide)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    score = np.abs(x - y) / (absolute + relative * np.abs(y))
    return np.where(same, 0.0, np.where(np.isnan(score), np.inf, score))


def _worst(result: np.ndarray, expected: np.ndarray, score: np.ndarray) -> str:
    place = np.unravel_index(int(np.argmax(score)), score.shape)
    where = tuple(int(i) for i in place)
    return (
        f"worst element {where}: kernel {result[place]!r}, reference {expected[place]!r}; "
        f"{int(np.count_nonzero(score))} of {score.size} elements differ"
    )


def compare_with_reference(call: Call) -> None:
    """Run the reference on host copies of a call's inputs and compare.

    Raises:
        KernelMismatchError: with operator, shapes, strides, dtypes, the worst element and the path of the reproduction.
    """
    operator, outs, arrays, metadata = call.operator, call.outs, call.arrays, call.metadata
    if capturing(outs[0].buffer.driver, outs[0].device.index) is not None:
        return  # a captured launch has not run yet
    inputs = [to_host(value) if value.__class__ is DeviceArray else value for value in arrays]
    on_host = Call(operator, call.inputs or tuple(inputs), metadata, call.device, call.compute, call.results)
    on_host.arrays = inputs
    expected = operator.on_host(on_host)(*inputs)
    terms = operator.terms(call)
    for name, out, wanted in zip(operator.outputs, outs, expected, strict=True):
        if name in getattr(operator, "rounding", ()):
            continue
        relative, absolute = tolerance(operator, dtypes.of(out.dtype), terms)
        problem = mismatch(to_host(out), wanted, relative, absolute)
        if problem is not None:
            facts = [
                f"{label}: shape {value.shape}, strides {value.strides}, {dtypes.of(value.dtype)}"
                for label, value in zip(operator.inputs, arrays, strict=False)
                if value.__class__ is DeviceArray
            ]
            raise KernelMismatchError(
                f"{operator.name}: the kernel and its reference disagree on {name}",
                problem,
                *facts,
                f"metadata: {metadata}",
                f"computed in {call.compute} on {out.device}",
                remedy=f"run {_write_reproduction(operator, inputs, metadata, str(out.device))}",
            )


_REPRODUCTION = '''"""Replay of a kernel that disagreed with its reference: {name}."""
import numpy as np
import tritensor
from tritensor.operators import registry

stored = np.load({path!r})
arrays = [stored[f"x{{i}}"].view(kind) if kind else None for i, kind in enumerate({kinds!r})]
numbers = {numbers!r}
with tritensor.cuda.simulate(devices={devices}), tritensor.testing.checked():
    inputs = [n if a is None else tritensor.from_numpy(a).to({device!r}) for a, n in zip(arrays, numbers)]
    print(registry[{name!r}](*inputs, **{metadata!r}))
'''


def _write_reproduction(operator: Operator, inputs: Sequence[Any], metadata: dict[str, Any], device: str) -> str:
    """Write the inputs and the script; return the script's path."""
    folder = tempfile.mkdtemp(prefix=f"tritensor-{operator.name}-")
    path = os.path.join(folder, "inputs.npz")
    # .npz has no bfloat16: the bits are stored as uint16, and the script names the dtype
    stored = {
        f"x{i}": np.ascontiguousarray(value).view(np.uint16) if value.dtype == dtypes.bfloat16.numpy else value
        for i, value in enumerate(inputs)
        if isinstance(value, np.ndarray)
    }
    np.savez(path, **stored)  # type: ignore[arg-type]
    script = os.path.join(folder, "replay.py")
    kinds = [dtypes.of(value.dtype).name if isinstance(value, np.ndarray) else "" for value in inputs]
    text = _REPRODUCTION.format(
        name=operator.name,
        path=path,
        kinds=kinds,
        device=device,
        metadata=metadata,
        numbers=[None if isinstance(value, np.ndarray) else value for value in inputs],
        devices=int(device.rpartition(":")[2]) + 1,
    )
    with open(script, "w", encoding="utf-8") as file:
        file.write(text)
    return script
