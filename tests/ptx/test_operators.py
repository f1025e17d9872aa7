"""Every operator's kernels, compiled for a card and run from their PTX, against the references."""

from __future__ import annotations

import pytest

import tritensor as torch
from tritensor.kernels.elementwise.family import Elementwise
from tritensor.operators import Operator
from tritensor.types import dtypes

from ..declared.test_operators import CASES, ELEMENTWISE, case_id, check_layouts, check_samples
from ..needs import HAS_TRITON
from ..sampling import some

if not HAS_TRITON:
    pytest.skip("compiling needs Triton", allow_module_level=True)

CAPABILITIES = [(8, 0), (9, 0)]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("capability", CAPABILITIES, ids=["sm_80", "sm_90"])
@pytest.mark.parametrize(("operator", "dtype"), some(CASES, 250), ids=case_id)
def test_compiled_kernel_matches_reference(operator: Operator, dtype: dtypes.dtype, capability: tuple) -> None:
    with torch.cuda.simulate(capability=capability, compiled=True):
        check_samples(operator, dtype)


@pytest.mark.thorough
@pytest.mark.parametrize("capability", CAPABILITIES, ids=["sm_80", "sm_90"])
@pytest.mark.parametrize("operator", some(ELEMENTWISE, 120), ids=case_id)
def test_compiled_kernel_takes_every_layout(operator: Elementwise, capability: tuple[int, int]) -> None:
    with torch.cuda.simulate(capability=capability, compiled=True):
        check_layouts(operator)
