"""Whether a value of tritensor and one of PyTorch are the same, in everything that a program can see."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import torch as reference

import tritensor

LIMIT = 20_000  # elements; a larger tensor is no part of a program

TOLERANCE = {"float64": 1e-9, "complex128": 1e-9, "float32": 2e-5, "complex64": 5e-5, "float16": 4e-3, "bfloat16": 3e-2}
_DEVICE = re.compile(r" \(cuda:0\)|,\s*device='cuda:0'|(?<=torch\.)cuda\.(?=\w*Tensor)")
LAYOUT = "layout"  # the strides of a tensor that is no view
LARGEST = 1e4  # an error is measured against the largest element of a tensor, if that is no larger


def difference(ours: Any, theirs: Any, tolerance: float = 0.0, of_gradients: float = 0.0) -> str | None:
    """What differs, its name on the first line; None if nothing does. Tolerances are at least those of the dtypes."""
    if isinstance(theirs, reference.Tensor):
        if not isinstance(ours, tritensor.Tensor):
            return f"type\n    {type(ours).__name__}\n    torch: Tensor"
        return _of_tensors(ours, theirs, tolerance) or _of_gradients(ours, theirs, of_gradients)
    if isinstance(theirs, dict) and isinstance(ours, dict):
        if set(ours) != set(theirs):
            return f"keys\n    {list(ours)}\n    torch: {list(theirs)}"
        ours, theirs = [ours[key] for key in theirs], list(theirs.values())
    first, second = plain(ours), plain(theirs)
    if isinstance(second, (tuple, list)) and isinstance(first, (tuple, list)):
        if len(first) != len(second):
            return f"length\n    {len(first)}\n    torch: {len(second)}"
        for position, (one, other) in enumerate(zip(first, second, strict=True)):
            found = difference(one, other, tolerance, of_gradients)
            if found is not None:
                fact, _, seen = found.partition("\n")
                return f"{fact} [{position}]\n{seen}"
        return None
    if isinstance(ours, str) and isinstance(second, str) and (_DEVICE.search(ours) or "tritensor." in ours):
        first, second = " ".join(first.split()), " ".join(second.split())  # longer names break lines elsewhere
    return None if _same_plain(first, second, max(tolerance, 2e-5)) else f"result\n    {first!r}\n    torch: {second!r}"


def name(dtype: Any) -> str:
    """A dtype's name without its library's."""
    return str(dtype).rpartition(".")[2]


def plain(value: Any) -> Any:
    """A value that is no tensor, in terms that both libraries share."""
    if isinstance(value, (tritensor.dtype, reference.dtype)):
        return f"dtype {name(value)}"
    if isinstance(value, (tritensor.device, reference.device)):
        return "device"
    if isinstance(value, str):
        value = value.replace("tritensor.", "torch.")
        return " ".join(_DEVICE.sub("", value).split()) if _DEVICE.search(value) else value
    if isinstance(value, (bool, int, float, complex, tuple, list, dict, type(None), np.ndarray)):
        return value
    return type(value).__name__


def _same_plain(ours: Any, theirs: Any, tolerance: float) -> bool:
    if isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray):
        return (
            ours.dtype == theirs.dtype
            and ours.shape == theirs.shape
            and close(ours, theirs, str(ours.dtype), tolerance)
        )
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, float):
        both_nan = math.isnan(ours) and math.isnan(theirs)
        return both_nan or ours == theirs or math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(ours, complex):
        return close(np.array([ours]), np.array([theirs]), "complex64", tolerance)
    return bool(ours == theirs)


def _of_tensors(ours: Any, theirs: Any, tolerance: float, gradient: bool = False) -> str | None:
    facts = {
        "dtype": (name(ours.dtype), name(theirs.dtype)),
        "shape": (tuple(ours.shape), tuple(theirs.shape)),
        "requires_grad": (ours.requires_grad, theirs.requires_grad),
        "is_leaf": (ours.is_leaf, theirs.is_leaf),
    }
    for fact, (one, other) in facts.items():
        if one != other:
            return f"{fact}\n    {one}\n    torch: {other}"
    first, second = elements(ours), elements_of_reference(theirs)
    if not close(first, second, name(theirs.dtype), tolerance):
        return f"value\n    {first.tolist()}\n    torch: {second.tolist()}"
    if not gradient and theirs.numel() > 0:  # the layout of a gradient is nobody's promise
        one, other = _layout(ours), _layout(theirs)
        if one != other:
            fact = "strides" if theirs._is_view() else LAYOUT
            return f"{fact}\n    {one}\n    torch: {other}"
    return None


def _of_gradients(ours: Any, theirs: Any, tolerance: float) -> str | None:
    if not theirs.is_leaf and not theirs.retains_grad:
        return None
    one, other = ours.grad, theirs.grad
    if one is None or other is None:
        if one is None and other is None:
            return None
        return (
            f"grad\n    {'None' if one is None else 'a tensor'}\n    torch: {'None' if other is None else 'a tensor'}"
        )
    found = _of_tensors(one, other, tolerance, gradient=True)
    return None if found is None else f"grad's {found}"


def _layout(tensor: Any) -> tuple[int, ...]:
    """The strides of the dimensions in which there is a step."""
    return tuple(stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size > 1)


def elements(tensor: Any) -> np.ndarray:
    """The elements of our tensor, half precision as float32."""
    array = dense(tensor.detach()).cpu().numpy()
    return array.astype(np.float32) if name(tensor.dtype) in ("bfloat16", "float16") else array


def elements_of_reference(tensor: Any) -> np.ndarray:
    """The elements of PyTorch's tensor, half precision as float32."""
    if tensor.dtype in (reference.bfloat16, reference.float16):
        tensor = tensor.detach().to(reference.float32)
    return np.asarray(dense(tensor.detach()).numpy(force=True))


def dense(tensor: Any) -> Any:
    """A tensor of either library with all elements."""
    return tensor.to_dense() if tensor.is_sparse else tensor


def close(ours: np.ndarray, theirs: np.ndarray, dtype: str, at_least: float) -> bool:
    """Equal; floating-point elements within a tolerance of the larger of the element and the tensor's largest one."""
    if ours.tobytes() == theirs.tobytes():
        return True
    tolerance = max(TOLERANCE.get(dtype, 0.0), at_least)
    if dtype not in TOLERANCE:
        return bool(np.array_equal(ours, theirs))
    if np.iscomplexobj(ours):
        parts = ((ours.real, theirs.real), (ours.imag, theirs.imag))
        return all(close(one.copy(), other.copy(), dtype, at_least) for one, other in parts)
    with np.errstate(all="ignore"):
        finite = np.isfinite(theirs)
        if not np.array_equal(np.where(finite, 0, theirs), np.where(np.isfinite(ours), 0, ours), equal_nan=True):
            return False
        one, other = np.where(finite, ours, 0).astype(np.float64), np.where(finite, theirs, 0).astype(np.float64)
        largest = min(float(np.abs(other).max(initial=0)), LARGEST)
        return bool((np.abs(one - other) <= tolerance * (np.abs(other) + max(largest, 1))).all())
