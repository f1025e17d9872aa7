"""Every operator inside of a compiled function, followed by another one, computes what it does outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.operators import Operator
from tritensor.runtime.checking import mismatch, tolerance
from tritensor.tensors import Tensor
from tritensor.types import dtypes

from ..declared.samples import Sample, called, samples
from ..declared.test_operators import ALWAYS, CASES, case_id, generator, on_cpu, on_device
from ..needs import needs_triton
from ..sampling import some


def followed(operator: Operator, sample: Sample) -> Any:
    """A function of the inputs: the operator's results, all gradients, and twice each of them."""

    def function(*inputs: Any) -> list[Any]:
        found = called(operator, list(inputs), sample)
        return [*found, *[x * 2 for x in found if isinstance(x, Tensor)]]

    return function


def check(operator: Operator, dtype: dtypes.dtype, placed: Any = lambda inputs: inputs) -> None:
    """Fail unless all samples of an operator are computed alike: by NumPy, compared with native code, and by it."""
    for sample in samples(operator, dtype, generator(operator.name, dtype.name)):
        function = followed(operator, sample)
        inputs = placed(on_cpu(sample))
        expected, again = function(*inputs), torch.compile(function)
        for _ in range(4):
            compare(operator, inputs, again(*inputs), expected)


def compare(operator: Operator, inputs: list[Any], results: list[Any], expected: list[Any]) -> None:
    """Fail unless results are those that are expected."""
    terms = max([1, *(x.numel() for x in inputs if isinstance(x, Tensor))])
    for position, (found, wanted) in enumerate(zip(results, expected, strict=True)):
        if not isinstance(wanted, Tensor):
            assert found == wanted
            continue
        relative, absolute = tolerance(operator, wanted.dtype, terms)
        assert found.stride() == wanted.stride() or not wanted.numel(), f"strides of {position}"
        arrays = [np.asarray(x.detach()._to_host()) for x in (found, wanted)]
        problem = mismatch(*arrays, relative, absolute)
        assert problem is None, f"{operator.name} in {wanted.dtype}, {position}: {problem}"


def check_replayed(operator: Operator, dtype: dtypes.dtype, placed: Any = lambda inputs: inputs) -> None:
    """Fail unless all samples are computed alike without Python, of the same and of other elements."""
    for sample in samples(operator, dtype, generator(operator.name, dtype.name)):

        def function(*inputs: Any, sample: Sample = sample) -> list[Any]:
            with torch.no_grad():
                found = called(operator, list(inputs), sample)
                return [*found, *[x * 2 for x in found if isinstance(x, Tensor)]]

        inputs, again = placed(on_cpu(sample)), torch.compile(function, mode="reduce-overhead")
        with torch.no_grad():
            others = [x * 0.75 if isinstance(x, Tensor) and x.is_floating_point() else x for x in inputs]
            for given in (inputs, inputs, inputs, others, inputs, others):
                try:
                    expected = function(*given)
                except Exception as error:
                    assert given is others
                    with pytest.raises(type(error)):
                        again(*given)
                else:
                    compare(operator, given, again(*given), expected)


@pytest.mark.sampled(20)
@pytest.mark.parametrize(("operator", "dtype"), some(CASES, 3, ALWAYS), ids=case_id)
def test_cpu(operator: Operator, dtype: dtypes.dtype) -> None:
    check(operator, dtype)


@pytest.mark.sampled(6)
@needs_triton
@pytest.mark.parametrize(("operator", "dtype"), some(CASES, 3, ALWAYS), ids=case_id)
def test_device(operator: Operator, dtype: dtypes.dtype) -> None:
    with torch.cuda.simulate(devices=1):
        check(operator, dtype, on_device)


@pytest.mark.sampled(8)
@pytest.mark.filterwarnings("ignore:compile")  # what draws random numbers
@pytest.mark.parametrize(("operator", "dtype"), some(CASES, 3, ALWAYS), ids=case_id)
def test_replayed(operator: Operator, dtype: dtypes.dtype) -> None:
    check_replayed(operator, dtype)


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore:compile")
@needs_triton
@pytest.mark.parametrize(("operator", "dtype"), some(CASES, 3, ALWAYS), ids=case_id)
def test_replayed_on_device(operator: Operator, dtype: dtypes.dtype) -> None:
    with torch.cuda.simulate(devices=1):
        check_replayed(operator, dtype, on_device)
