"""Small pieces of code, run with PyTorch and with tritensor side by side. Run with `pytest -m peer`.

Each snippet is evaluated twice, with `torch` standing for one library and then for the other, over the same operands.
The results must agree in value, dtype, shape and requires_grad, or both must raise the same built-in type of error.
Where they may differ, `DIFFERENT` says why.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import tritensor

reference = pytest.importorskip("torch")

# What the snippets find: made with creation functions that both libraries have.
OPERANDS = {
    "x": "torch.tensor([[1.5, -2.25, 3.0], [0.0, 4.5, -0.5]])",
    "y": "torch.tensor([[0.5, 2.0, -1.0], [3.0, -4.0, 0.25]])",
    "w": "torch.tensor([[1.5, -2.25, 3.0], [0.5, 4.5, -0.5]], requires_grad=True)",
    "d": "torch.tensor([1.25, -2.5, 0.5], dtype=torch.float64)",
    "h": "torch.tensor([1.5, -2.0, 0.25], dtype=torch.float16)",
    "b": "torch.tensor([1.5, -2.0, 0.25], dtype=torch.bfloat16)",
    "i": "torch.tensor([[3, -7, 2], [5, 4, -1]])",
    "n": "torch.tensor([1, 2, 3], dtype=torch.int32)",
    "u": "torch.tensor([250, 3, 7], dtype=torch.uint8)",
    "m": "torch.tensor([[True, False, True], [False, False, True]])",
    "v": "torch.tensor([1.0, 2.0, 4.0])",
    "s": "torch.tensor(2.5)",
    "k": "torch.tensor(3)",
    "e": "torch.zeros(0, 3)",
    "q": "torch.arange(24.0).reshape(2, 3, 4)",
    "z": "torch.tensor([1 + 2j, -3j])",
    "o": "torch.tensor([float('nan'), float('inf'), -float('inf'), 0.0, 1.0])",
    "g": "torch.tensor([0, 2, 1])",
}

# Snippet -> why the libraries may differ there.
NO_SIZES = "no sizes are the empty shape, so that x.reshape(*shape) works for every shape"
DIFFERENT: dict[str, str] = {
    "r = x.view()": NO_SIZES,
    "r = x.reshape()": NO_SIZES,
    "r = s.reshape()": NO_SIZES,
    "r = s.permute()": NO_SIZES,
    "r = q.movedim(0, (1, 2))": "one message for all dims that do not match, the one PyTorch has for two tuples",
    "r = x[::-1]": "a slice may go backwards, as in NumPy and in the array API standard",
    'r = x["a"]': "the IndexError that PyTorch raises for every other bad index, not the accident of this one",
    "r = torch.device(1)": "a device can be named where there is none; PyTorch does that for 'cuda:1' too",
    "r = torch.tensor([v, v])": "tensors of one shape are stacked, as arrays are",
    "r = torch.tensor([[], [1]])": "PyTorch looks at the first row only and drops the number",
}

KINDS = (
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    ZeroDivisionError,
    NotImplementedError,
    AssertionError,
    RuntimeError,
)


def run(library: Any, snippet: str) -> Any:
    """What the snippet makes of fresh operands, or the error."""
    scope: dict[str, Any] = {"torch": library, "np": np}
    for name, text in OPERANDS.items():
        scope[name] = eval(text, scope)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(snippet, scope)
    except Exception as error:
        return error
    finally:
        library.set_default_dtype(library.float32)
    return scope["r"]


def facts(value: Any) -> Any:
    """A value of either library in terms that can be compared."""
    if isinstance(value, (tritensor.Tensor, reference.Tensor)):
        flat = value.detach().reshape(-1).tolist()
        return ("tensor", name(value.dtype), tuple(value.shape), value.requires_grad, flat)
    if isinstance(value, (tritensor.dtype, reference.dtype)):
        return name(value)
    if isinstance(value, (tritensor.device, reference.device)):
        return (value.type, value.index)
    if isinstance(value, str):
        return value.replace("tritensor.", "torch.")
    if isinstance(value, (tuple, list)):
        return [facts(part) for part in value]
    if isinstance(value, (bool, int, float, complex, type(None), range)):
        return value
    return type(value).__name__


def name(dtype: Any) -> str:
    return str(dtype).split(".")[1]


def alike(ours: Any, theirs: Any, tolerance: float) -> bool:
    """Equal, numbers within a tolerance."""
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return len(ours) == len(theirs) and all(alike(a, b, tolerance) for a, b in zip(ours, theirs, strict=True))
    if isinstance(ours, float) and isinstance(theirs, float):
        both_nan = math.isnan(ours) and math.isnan(theirs)
        return both_nan or ours == theirs or math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(ours, complex) and isinstance(theirs, complex):
        return abs(ours - theirs) <= tolerance
    return type(ours) is type(theirs) and ours == theirs


def kind(error: Exception) -> str:
    return next((entry.__name__ for entry in KINDS if isinstance(error, entry)), type(error).__name__)


def difference(snippet: str) -> str | None:
    """What differs between the libraries, None if nothing does."""
    ours, theirs = run(tritensor, snippet), run(reference, snippet)
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        if isinstance(ours, Exception) and isinstance(theirs, Exception):
            same = isinstance(ours, next((entry for entry in KINDS if isinstance(theirs, entry)), type(theirs)))
            if same:
                return None
        return f"{describe(ours)}\n    torch: {describe(theirs)}"
    first, second = facts(ours), facts(theirs)
    half = "float16" in str(first) or "bfloat16" in str(first)
    return None if alike(first, second, 1e-3 if half else 2e-6) else f"{first}\n    torch: {second}"


def describe(result: Any) -> str:
    if isinstance(result, Exception):
        return f"{kind(result)}: {str(result).splitlines()[0] if str(result) else ''}"
    return str(facts(result))


def assert_same(snippet: str) -> None:
    """The same result or the same type of error in both libraries, unless `DIFFERENT` says why not."""
    found = difference(snippet)
    if snippet in DIFFERENT:
        assert found is not None, f"no longer different; take it out of DIFFERENT ({DIFFERENT[snippet]})"
    else:
        assert found is None, found
