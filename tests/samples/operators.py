"""PyTorch's operators with the samples of its own tests."""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType
from typing import Any

import torch as reference
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

import tritensor

from .cases import Case, facts_of_call
from .sides import Side, Untranslated, written

# Vectors are unique but for signs and phases; what PyTorch's tests differentiate is unique.
UNIQUE_IN_PART = ("svd", "linalg.svd", "linalg.eig", "linalg.eigh")

ENTRIES: dict[str, OpInfo] = {".".join(filter(None, (info.name, info.variant_test_name))): info for info in op_db}


class OperatorCase:
    """An operator is called."""

    def __init__(self, name: str, sample: SampleInput, orders: int, words: str | None = None) -> None:
        self.name, self.sample, self.orders, self.words = name, sample, orders, words
        self.statement = f"torch.{ENTRIES[name].name}({written((sample.input, *sample.args), sample.kwargs)})"

    def facts(self, side: Side) -> dict[str, Any]:
        """What the call gives."""
        args = [side(self.sample.input), *side(list(self.sample.args))]
        called = whole = function(self.name, side)
        if self.name in UNIQUE_IN_PART:

            def called(*args: Any, **kwargs: Any) -> Any:
                return self.sample.output_process_fn_grad(whole(*args, **kwargs))

        return facts_of_call(side, called, args, side(self.sample.kwargs), [], self.orders)


def function(name: str, side: Side) -> Any:
    """The operator in a library: what has its name there, or what PyTorch's tests call with that library as `torch`."""
    info = ENTRIES[name]
    named = lookup(reference, info.name)
    if named is info.op:
        found = lookup(side.library, info.name)
    elif isinstance(info.op, FunctionType) and info.op.__name__ == "<lambda>":
        scope = {
            **info.op.__globals__,
            "torch": side.library,
            "wrapper_set_seed": lambda op, *args, **kw: op(*args, **kw),
        }
        return FunctionType(info.op.__code__, scope, closure=info.op.__closure__)
    else:
        found = lookup(side.library.Tensor, getattr(info.op, "__name__", info.name))
    if found is None:
        raise Untranslated(info.name)
    return found


def call(operator: Any, *args: Any, **kwargs: Any) -> Any:
    """What `wrapper_set_seed` does, but for the seed."""
    return operator(*args, **kwargs)


def lookup(library: Any, path: str) -> Any:
    """What a dotted name stands for, None where there is no such name."""
    for name in path.split("."):
        library = getattr(library, name, None)
    return library


def is_there(name: str) -> bool:
    """Whether there is such an operator here; that of a lambda is not looked for."""
    try:
        return function(name, Side(tritensor, lambda value: value)) is not None
    except Untranslated:
        return False


def cases(name: str, dtype: reference.dtype, orders: int) -> Iterator[Case]:
    """The samples of an operator, and those that have to raise."""
    info = ENTRIES[name]
    there = info.supported_dtypes("cpu")
    others = (reference.complex128, reference.int64, reference.bool, reference.float32)
    if dtype is reference.float64 and dtype not in there:  # the default: operators of bits, of complex numbers
        dtype = next((each for each in others if each in there), dtype)
    if dtype not in there:
        return
    orders *= dtype.is_floating_point or dtype.is_complex
    orders = min(orders, info.supports_autograd + (info.supports_autograd and info.supports_gradgrad))
    for sample in info.sample_inputs("cpu", dtype, requires_grad=orders > 0):
        yield OperatorCase(name, sample, orders)
    if info.error_inputs_func is not None:
        for wrong in info.error_inputs("cpu"):
            yield OperatorCase(name, wrong.sample_input, 0, wrong.error_regex)
