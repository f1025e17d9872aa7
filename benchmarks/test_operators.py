"""Every registered operator, one call each, so that slow operators without a case are seen too.

Elementwise operators get a million elements and reductions the rows of a 2048x1024 matrix; the others get the inputs of
their derived tests, which shows the cost of a call more than that of the work.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tritensor
from tests.declared.samples import (
    Sample,
    domain_of,
    dtypes_of,
    elementwise_inputs,
    has_samples,
    metadata_of,
    samples,
    values,
)
from tritensor.operators import Operator, registry
from tritensor.types import dtypes

assert tritensor.nn.functional  # the public functions' modules declare what they need when they are imported


def call_of(operator: Operator) -> Sample:
    """The arguments to measure an operator with."""
    rng = np.random.default_rng(0)
    accepted = dtypes_of(operator)
    dtype = dtypes.float32 if dtypes.float32 in accepted else accepted[-1]
    if operator.family == "elementwise":
        return Sample(elementwise_inputs(operator, [(1 << 20,)], dtype, rng), metadata_of(operator))
    if operator.family == "reduction":
        array = values((2048, 1024), dtype, rng, domain_of(operator, operator.inputs[0]))
        return Sample([array], {**metadata_of(operator), "dim": 1})
    return samples(operator, dtype, rng)[0]


@pytest.mark.parametrize("name", sorted(name for name, operator in registry.items() if has_samples(operator)))
def test_operator(name: str, device: Any, peer: ModuleType, measured: Callable[..., Any]) -> None:
    operator = registry[name]
    sample = call_of(operator)
    function: Any = operator
    metadata = sample.metadata
    if peer is not tritensor:
        metadata = {"dim": 1} if operator.family == "reduction" else {}
        alike = operator.family in ("elementwise", "reduction") and operator.metadata.keys() <= {"dim", "keepdim"}
        function = getattr(peer, name, None) if alike else None
        if function is None or peer is np:
            pytest.skip(f"{peer.__name__} has no {name} that is called in the same way")
    arrays = [value for value in sample.inputs if isinstance(value, np.ndarray)]
    tensors = iter([peer.from_numpy(array).to(str(device)) for array in arrays])
    inputs = [next(tensors) if isinstance(value, np.ndarray) else value for value in sample.inputs]
    measured("function(*inputs, **metadata)", {"function": function, "inputs": inputs, "metadata": metadata})


@pytest.mark.parametrize("statement", ["rand(1 << 20, device=device)", "randn(1 << 20, device=device)"])
def test_random(statement: str, device: Any, peer: ModuleType, measured: Callable[..., Any]) -> None:
    if peer is np:
        pytest.skip("numpy draws float64 numbers by another generator")
    measured(f"lib.{statement}", {"lib": peer, "device": str(device)})
