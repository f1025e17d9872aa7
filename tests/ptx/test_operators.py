"""Every operator's kernels, compiled for a card and run from their PTX, against the references."""

from __future__ import annotations

import pytest

import tritensor as torch
from tritensor import dtypes
from tritensor.kernels.elementwise.family import Elementwise
from tritensor.operator import Operator
from tritensor.tensor import Tensor

from ..declared.samples import dtypes_of, elementwise_inputs, metadata_of, samples
from ..declared.test_operators import CASES, ELEMENTWISE, agree, case_id, generator, layouts, on_cpu, on_device
from ..needs import HAS_TRITON
from ..sampling import some

if not HAS_TRITON:
    pytest.skip("compiling needs Triton", allow_module_level=True)

CAPABILITIES = [(8, 0), (9, 0)]


@pytest.mark.parametrize("capability", CAPABILITIES, ids=["sm_80", "sm_90"])
@pytest.mark.parametrize(("operator", "dtype"), some(CASES, 250), ids=case_id)
def test_compiled_kernel_matches_reference(operator: Operator, dtype: dtypes.dtype, capability: tuple) -> None:
    rng = generator(operator.name, dtype.name)
    with torch.cuda.simulate(capability=capability, compiled=True):
        for sample in samples(operator, dtype, rng):
            inputs = on_cpu(sample)
            expected = operator(*inputs, **sample.metadata)
            terms = max([1, *(x.numel() for x in inputs if isinstance(x, Tensor))])
            result = operator(*on_device(inputs), **sample.metadata)
            agree(operator, result, expected, terms if operator.family != "elementwise" else 1)


@pytest.mark.parametrize("capability", CAPABILITIES, ids=["sm_80", "sm_90"])
@pytest.mark.parametrize("operator", some(ELEMENTWISE, 120), ids=case_id)
def test_compiled_kernel_takes_every_layout(operator: Elementwise, capability: tuple[int, int]) -> None:
    rng = generator("layouts", operator.name)
    dtype = dtypes.float32 if dtypes.float32 in dtypes_of(operator) else dtypes.int32
    with torch.cuda.simulate(capability=capability, compiled=True):
        inputs = [torch.from_numpy(x) for x in elementwise_inputs(operator, [(4, 6)], dtype, rng)]
        expected = operator(*inputs, **metadata_of(operator))
        first = on_device(inputs)
        for position in range(len(inputs)):
            for _, variant in layouts(first[position]):
                arguments = [*first[:position], variant, *first[position + 1 :]]
                agree(operator, operator(*arguments, **metadata_of(operator)), expected)
