"""Operands that do not begin at 16 bytes: what is compiled for aligned ones is not launched on them.

On the device that passes for a real one every claim about an address is checked as it arrives at a launch, for each
operator of the registry, called for the first time and repeated, with all operands a slice that begins one element in.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.operators import Operator
from tritensor.tensors import Tensor

pytest.importorskip("triton")

from ..runtime.interpreted_device import interpreted_device
from .samples import samples
from .test_operators import as_tuple, case_id, generator, on_cpu
from .test_orders import OPERATORS, bits, dtype_of, size_of


def misaligned(x: Tensor) -> Tensor:
    """The same elements in memory that begins one element behind an allocation's start."""
    flat = torch.zeros(x.numel() + 1, dtype=x.dtype, device="cuda")
    flat[1:].copy_(x.reshape(-1))
    return flat[1:].view(x.shape)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("operator", OPERATORS, ids=case_id)
def test_misaligned_operands_give_the_same_results(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        each
        for each in samples(operator, dtype_of(operator), generator("aligned", operator.name))
        if size_of(each) < 400
    ]
    sample = max(found, key=size_of)
    with interpreted_device() as driver:

        def called(place: Any) -> Any:
            return operator(*[place(x) if isinstance(x, Tensor) else x for x in on_cpu(sample)], **sample.metadata)

        wanted = bits(called(lambda x: x.cuda()))
        driver.launches.clear()
        for _ in range(3):
            result = called(misaligned)
            for (dtype, _shape, found_bytes), (_, _, wanted_bytes) in zip(bits(result), wanted, strict=True):
                close(np.frombuffer(found_bytes, dtype), np.frombuffer(wanted_bytes, dtype))
        assert driver.launches
        assert all(isinstance(out, Tensor) for out in as_tuple(result))


def close(found: np.ndarray, wanted: np.ndarray) -> None:
    """Equal, or as near as sums in another order are: vectors of another width divide the work otherwise."""
    if found.dtype.kind in "biu":
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-6)
