"""Every operator's kernels, as its own host code launches them, compiled for every target without a GPU.

The operators run on a driver whose launches are compiled for the target and not run, so block sizes, specialisation and
constants are those of a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from typing import Any

import numpy as np
import pytest

from tritensor import settings
from tritensor.kernels.elementwise.family import Elementwise
from tritensor.operators import Operator, registry
from tritensor.types import dtypes

from ..devices.compile_only import compile_only
from ..needs import HAS_TRITON
from ..sampling import some
from .approximate import ALLOWED
from .samples import Sample, dtypes_of, elementwise_inputs, has_samples, metadata_of, samples
from .test_operators import case_id, generator, on_cpu, on_device

if not HAS_TRITON:
    pytest.skip("compiling needs Triton", allow_module_level=True)

from tritensor.runtime import compiler
from tritensor.runtime.binary import usage

# Half a second a kernel: one target in every run, the others in the slow one.
TARGETS = [
    ("cuda", 90),
    *(pytest.param(target, marks=pytest.mark.slow) for target in (("cuda", 80), ("cuda", 100), ("hip", "gfx942"))),
]
# Triton 3.6's assembler gives up registers for one more block per multiprocessor: up to 32 bytes a thread in kernels of
# 48, 64, 80 or 168 registers of 255. That of 3.9 gives up none.
SPARED = 32 if version("triton").startswith("3.6.") else 0
# Attention in float32 by three tf32 products: its tiles were chosen for Hopper.
SPILLED = {
    ("scaled_dot_product_attention", 80): 280,
    ("scaled_dot_product_attention", 100): 120,
    ("scaled_dot_product_attention_backward", 100): max(8, SPARED),
}
OPERATORS = [
    operator
    for operator in sorted(registry.values(), key=lambda o: o.name)
    if has_samples(operator) and operator.family != "hosted"  # those have no kernels
]


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with settings.cache_dir(str(tmp_path_factory.mktemp("triton"))):
        yield


def example(operator: Operator, dtype: dtypes.dtype) -> Sample:
    """One call with enough elements for a whole block."""
    rng = generator("compile", operator.name)
    if operator.family == "elementwise":
        return Sample(elementwise_inputs(operator, [(4096,)], dtype, rng), metadata_of(operator))
    sizes = [
        (sum(x.size for x in sample.inputs if isinstance(x, np.ndarray)), i)
        for i, sample in enumerate(samples(operator, dtype, rng))
    ]
    return samples(operator, dtype, generator("compile", operator.name))[max(sizes)[1]]


def compile_operator(operator: Operator, dtype: dtypes.dtype, target: tuple[str, Any]) -> list[Any]:
    sample = example(operator, dtype)
    with compile_only(target) as device:
        inputs = on_device(on_cpu(sample))
        copies = len(device.made)
        with suppress(IndexError):  # bounds that the kernel was to check: the flag that was never written holds poison
            operator(*inputs, **sample.metadata)
    return device.made[copies:]


def local_bytes(compiled: Any, target: tuple[str, Any]) -> int:
    """Bytes of local memory per thread: registers that were spilled."""
    if target[0] == "hip":
        return compiler._amd_number(compiled.asm["amdgcn"], "private_segment_fixed_size") or 0
    return usage(compiled.asm["cubin"]).local


def test_the_list_of_approximations_names_operators() -> None:
    assert ALLOWED.keys() <= {operator.name for operator in OPERATORS}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: str(target[1]))
@pytest.mark.parametrize("operator", some(OPERATORS, 4, ("floor_divide", "trunc_divide", "sqrt", "mean")), ids=case_id)
def test_every_body_compiles_without_spills_or_approximations(operator: Operator, target: tuple[str, Any]) -> None:
    dtype = dtypes.float32 if dtypes.float32 in dtypes_of(operator) else dtypes.int32
    found = compile_operator(operator, dtype, target)
    assert found, f"{operator.name} launched no kernel"
    # for arguments beyond 100,000 the library's sine counts in an array, which Triton 3.6 leaves on the stack
    allowed = 40 if operator.name in ("sin", "cos", "tan") else SPILLED.get((operator.name, target[1]), SPARED)
    approximate: set[str] = set()
    for compiled in found:
        assert local_bytes(compiled, target) <= allowed, f"{compiled.metadata.name} spills on {target}"
        approximate.update(re.findall(r"\b(?:div\.full|\w+\.approx)[\w.]*", compiled.asm.get("ptx", "")))
    permitted = ALLOWED.get(operator.name, set()) if dtype is dtypes.float32 else set()
    assert approximate <= permitted, f"{operator.name} has {approximate - permitted}: see approximate.py"
    if target == ("cuda", 90) and not SPARED:
        assert approximate == permitted, f"{operator.name} has {permitted - approximate} no more: see approximate.py"


@pytest.mark.parametrize(
    "operator",
    [
        pytest.param(operator, id=operator.name, marks=() if operator.name == "mul" else pytest.mark.slow)
        for operator in OPERATORS
        if operator.on_pairs and operator.rule.highest >= dtypes.COMPLEX
    ],
)
def test_every_body_for_complex_numbers_compiles(operator: Operator) -> None:
    for dtype in (dtypes.complex64, dtypes.complex128):
        found = compile_operator(operator, dtype, ("cuda", 90))
        assert found or operator.name == "cat", f"{operator.name} launched no kernel"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("dtype", [pytest.param(dtypes.bfloat16, marks=pytest.mark.slow), dtypes.float32], ids=case_id)
@pytest.mark.parametrize(
    "operator", some([op for op in OPERATORS if isinstance(op, Elementwise) and not op.kinds], 8), ids=case_id
)
def test_contiguous_elements_move_in_vectors(operator: Elementwise, dtype: dtypes.dtype) -> None:
    """On sm_90 every load and store of a contiguous operand is 128 bits wide (of a boolean result: as wide as fits)."""
    if dtype not in dtypes_of(operator):
        pytest.skip("takes no floating dtype")
    if "nvdisasm" not in compiler._tools():
        pytest.skip("Triton's package has no disassembler here")
    (compiled,) = compile_operator(operator, dtype, ("cuda", 90))
    sass = compiled.asm["sass"]
    # sine, cosine and tangent also read a table of 2/pi, for arguments beyond 100,000
    loads = [load for load in re.findall(r"\bLDG\.E(\S*)", sass) if ".CONSTANT" not in load]
    assert loads and all(".128" in load for load in loads), loads
    if operator.rule.result is None:
        stores = re.findall(r"\bSTG\.E(\S*)", sass)
        assert stores and all(".128" in store for store in stores), stores
