"""Arguments for every registered operator: what the derived tests and benchmarks call it with.

How an operator is called is declared with it (`Operator.samples`) or by its family (`calls`). Here the elements are
drawn, in the dtypes that its rule takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tritensor as torch
from tritensor.operators import Operator
from tritensor.operators.rules import is_half
from tritensor.tensors import Tensor
from tritensor.types import dtypes


@dataclass
class Sample:
    """One call: arrays (or numbers, or None) for the inputs, metadata, and which inputs may be differentiated."""

    inputs: list[Any]
    metadata: dict[str, Any] = field(default_factory=dict)
    differentiate: tuple[int, ...] | None = None

    def floating(self) -> list[int]:
        """The positions of the inputs whose gradient is checked."""
        if self.differentiate is not None:
            return list(self.differentiate)
        return [i for i, value in enumerate(self.inputs) if isinstance(value, np.ndarray) and value.dtype.kind == "f"]


def values(
    shape: tuple[int, ...], dtype: dtypes.dtype, rng: np.random.Generator, domain: tuple[float, float] | None = None
) -> np.ndarray:
    """Random elements of a dtype within a domain, away from its ends."""
    low, high = domain if domain is not None else (-3.0, 3.0)
    low, high = max(low, -50.0), min(high, 50.0)
    if dtype is dtypes.bool_:
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.category == dtypes.INTEGER:
        first = max(int(np.ceil(low)), 0 if not dtype.is_signed else -6)
        return np.asarray(rng.integers(first, max(min(int(high), 7), first + 1) + 1, shape)).astype(dtype.numpy)
    margin = (high - low) * 0.02
    drawn = rng.uniform(low + margin, high - margin, shape)
    if dtype.is_complex:
        drawn = drawn + 1j * rng.uniform(low + margin, high - margin, shape)
    return np.asarray(drawn).astype(dtype.numpy)


def domain_of(operator: Operator, name: str, gradient: bool = False) -> tuple[float, float] | None:
    """The interval in which an input is meant to lie; `operator.domain` is one for all inputs or a dict by name."""
    domain = operator.domain
    if gradient and operator.gradient_domain is not None:
        domain = operator.gradient_domain
    return domain.get(name) if isinstance(domain, dict) else domain


def metadata_of(operator: Operator) -> dict[str, Any]:
    """Metadata for the derived calls: the defaults, or `operator.example` where there are none."""
    return {**operator.metadata, **operator.example}


class Draw:
    """What a declaration of samples draws its arrays from, see `Operator.samples`: a dtype and a generator."""

    def __init__(
        self, operator: Operator, dtype: dtypes.dtype, rng: np.random.Generator, gradient: bool = False
    ) -> None:
        self.operator, self.dtype, self.rng, self.gradient = operator, dtype, rng, gradient

    def __call__(self, shape: tuple[int, ...], domain: tuple[float, float] | None = None) -> np.ndarray:
        """Random elements of the dtype."""
        return values(shape, self.dtype, self.rng, domain)

    def input(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        """Random elements for an input, of its own dtype if it has one; with `gradient`, away from jumps."""
        kind = self.operator.kinds.get(name, self.dtype)
        drawn = values(shape, kind, self.rng, domain_of(self.operator, name, self.gradient))
        if self.operator.rule.examines and kind.category == dtypes.INTEGER:  # the CPU refuses zeros among divisors
            drawn[drawn == 0] = 1
        return drawn


def elementwise_inputs(
    operator: Operator,
    shapes: list[tuple[int, ...]],
    dtype: dtypes.dtype,
    rng: np.random.Generator,
) -> list[Any]:
    """An array of the dtype (or of the input's own one) for each input, in the given shapes in turn."""
    draw = Draw(operator, dtype, rng)
    return [draw.input(name, shapes[position % len(shapes)]) for position, name in enumerate(operator.inputs)]


# Families whose results are not a function of their inputs, or are complex numbers of real ones; where their tests are.
TESTED_ALONE = {
    "random": "tests/functional/random/test_random.py",
    "dropout": "tests/functional/random/test_dropout.py",
    "range": "tests/functional/test_creation.py",
    "fourier": "tests/functional/test_fourier.py",
    "hosted": "tests/linalg/test_factorizations.py",  # those without samples
}


def has_samples(operator: Operator) -> bool:
    """Whether the derived tests know how to call the operator."""
    return operator.calls is not None


def samples(operator: Operator, dtype: dtypes.dtype, rng: np.random.Generator, gradient: bool = False) -> list[Sample]:
    """The calls of one operator in one dtype, on contiguous arrays; layouts are the tests' affair.

    With `gradient`, the elements lie where the operator has a derivative.
    """
    assert operator.calls is not None, f"{operator.name} has no samples"
    made = []
    for inputs, metadata, *positions in operator.calls(Draw(operator, dtype, rng, gradient)):
        made.append(Sample(inputs, {**metadata, **operator.example}, *positions))
    return made


def enlarged(sample: Sample, elements: int, rng: np.random.Generator) -> Iterator[Sample]:
    """The same call on larger arrays, once for each dimension: the largest input has `elements`, or a few more.

    A dimension is known by its size. Wherever that occurs, the array gets more slices along it, drawn from its own, so
    that inputs still fit together and indices still lie within. Where a size occurs by chance, a call may be refused.
    Sizes that would make results larger by a power are left alone: those that occur twice in an array, or in a tensor
    and in the coordinates that select of it; or the images and the channels of a convolution; or channels and the
    neighbours that are summed for each.
    """
    arrays = [value for value in sample.inputs if isinstance(value, np.ndarray)]
    largest = max(arrays, key=lambda array: array.size)
    for size in dict.fromkeys(largest.shape):
        squared = "dims" in sample.metadata and size in sample.inputs[1].shape
        convolved = {"stride", "groups"} <= sample.metadata.keys()
        squared |= {"size"} == sample.metadata.keys() and size == largest.shape[1:2][0]
        squared |= convolved and size == len(sample.inputs[0]) and size in sample.inputs[1].shape
        if size < 2 or not largest.size or squared or any(array.shape.count(size) > 1 for array in arrays):
            continue
        times = math.ceil(elements / largest.size)

        def more(value: Any, size: int = size, times: int = times) -> Any:
            if isinstance(value, np.ndarray):
                for dim, length in enumerate(value.shape):
                    if length == size:
                        value = value.take(rng.integers(0, size, size * times), dim)
            return value

        yield Sample([more(value) for value in sample.inputs], sample.metadata, sample.differentiate)


def dtypes_of(operator: Operator) -> list[dtypes.dtype]:
    """The dtypes that the derived tests run an operator in: one of each kind that its rule takes."""
    rule = operator.rule
    candidates = [
        dtypes.bool_,
        dtypes.uint8,
        dtypes.int32,
        dtypes.int64,
        dtypes.float16,
        dtypes.bfloat16,
        dtypes.float32,
        dtypes.float64,
    ]
    if not getattr(rule, "halves", True):
        candidates = [entry for entry in candidates if not is_half(entry)]
    return [entry for entry in candidates if rule.lowest <= entry.category <= rule.highest]


def called(operator: Operator, inputs: list[Any], sample: Sample) -> list[Any]:
    """The results of a call on tensors, and the gradients of its floating inputs, which become leaves."""
    inputs, leaves = list(inputs), []
    for position in sample.floating() if operator.differentiable else []:
        inputs[position] = inputs[position].detach().requires_grad_()
        leaves.append(inputs[position])
    result = operator(*inputs, **sample.metadata)
    results = result if isinstance(result, tuple) else (result,)
    for out in results:
        if isinstance(out, Tensor) and out.requires_grad:
            out.backward(torch.full_like(out, 0.75), retain_graph=True)
    return [*results, *[leaf.grad for leaf in leaves if leaf.grad is not None]]


def bits(results: Any) -> list[tuple[Any, ...]]:
    """Dtype, shape and bytes of the tensors among results."""
    arrays = [np.asarray(x.detach()._to_host()) for x in results if isinstance(x, Tensor)]
    return [(array.dtype, array.shape, array.tobytes()) for array in arrays]
