"""Forward mode against reverse mode, for every operator: products with the Jacobian, and second derivatives in each
order of the modes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.func import grad, jvp
from tritensor.operators import Operator
from tritensor.types import dtypes

from ..declared.samples import Sample, dtypes_of, samples
from .test_batching_rules import DIFFERENTIABLE, QUICK, generator

# PyTorch has no derivative of its gradient either.
ONCE = frozenset(("ctc_loss",))
KINDS = (dtypes.float64, dtypes.complex128)
CASES = [
    pytest.param(op, kind, id=f"{op.name}-{kind.name}", marks=() if op.name in QUICK else pytest.mark.slow)
    for op in DIFFERENTIABLE
    for kind in KINDS
    if op.name not in ONCE and (kind in dtypes_of(op) or (kind.is_complex and op.rule.highest >= dtypes.COMPLEX))
]


def tensor(value: Any) -> Any:
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value


def directions(x: Any, rng: Any) -> Any:
    drawn = rng.standard_normal(x.shape)
    return torch.from_numpy(np.asarray(drawn + 1j * rng.standard_normal(x.shape) if x.is_complex() else drawn))


def inner(a: Any, b: Any) -> Any:
    """The real part of the sum of conj(a) * b."""
    product = a.conj() * b
    return (product.real if product.is_complex() else product).sum()


def functions(operator: Operator, kind: dtypes.dtype, rng: Any) -> Any:
    """For each small sample a function of the inputs that have gradients, to one real number, and these inputs."""
    for sample in samples(operator, kind, rng, gradient=True):
        if max([0, *(x.size for x in sample.inputs if isinstance(x, np.ndarray))]) > 200:
            continue
        inputs = [tensor(x) for x in sample.inputs]
        moving = [i for i in of(sample, kind) if operator.backward_for(tuple(i == k for k in range(len(inputs))))]
        if not moving:
            continue

        def call(*moved: Any, inputs: Any = inputs, moving: Any = moving, sample: Sample = sample) -> Any:
            found = list(inputs)
            for position, value in zip(moving, moved, strict=True):
                found[position] = value
            results = operator(*found, **sample.metadata)
            return results if isinstance(results, tuple) else (results,)

        weights = [
            directions(out, rng) if out.dtype.category >= dtypes.FLOATING else None
            for out in call(*[inputs[i] for i in moving])
        ]

        def number(*moved: Any, call: Any = call, weights: Any = weights) -> Any:
            parts = [inner(w, out) for out, w in zip(call(*moved), weights, strict=True) if w is not None]
            return sum(parts[1:], parts[0])

        yield number, tuple(inputs[i] for i in moving), sample.metadata


def of(sample: Sample, kind: dtypes.dtype) -> list[int]:
    if not kind.is_complex:
        return sample.floating()
    if sample.differentiate is not None:
        return list(sample.differentiate)
    return [i for i, x in enumerate(sample.inputs) if isinstance(x, np.ndarray) and x.dtype.kind in "fc"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("operator", "kind"), CASES)
def test_tangents_are_the_transposed_of_gradients_in_each_order(operator: Operator, kind: dtypes.dtype) -> None:
    rng = generator(operator.name, kind.name, "orders")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, point, metadata in functions(operator, kind, rng):
            v, w = (tuple(directions(x, rng) for x in point) for _ in range(2))
            places = tuple(range(len(point)))

            def slope(*x: Any, number: Any = number, places: Any = places) -> Any:
                return grad(number, places)(*x)

            def along(*x: Any, slope: Any = slope, v: Any = v) -> Any:
                return sum(inner(g, d) for g, d in zip(slope(*x), v, strict=True))

            def pushed(*x: Any, number: Any = number, v: Any = v) -> Any:
                return jvp(number, x, v)[1]

            close(pushed(*point), along(*point), operator, metadata, "first")
            twice = sum(inner(g, d) for g, d in zip(grad(along, places)(*point), w, strict=True))
            close(jvp(along, point, w)[1], twice, operator, metadata, "forward over reverse")
            close(jvp(pushed, point, w)[1], twice, operator, metadata, "forward over forward")
            found = sum(inner(g, d) for g, d in zip(grad(pushed, places)(*point), w, strict=True))
            close(found, twice, operator, metadata, "reverse over forward")


def close(found: Any, expected: Any, operator: Operator, metadata: Any, order: str) -> None:
    found, expected = float(found), float(expected)
    if np.isfinite(expected):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8, err_msg=f"{operator.name} {metadata} {order}")
