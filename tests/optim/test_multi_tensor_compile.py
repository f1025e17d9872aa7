"""The optimizers' kernels compiled ahead, for devices that are not there: whole vectors, and no registers spilled."""

from __future__ import annotations

import re

import pytest

import tritensor as torch
from tritensor import optim, settings
from tritensor.kernels.optimizer import multi_tensor, rules
from tritensor.kernels.optimizer import rates as step_rates

from ..needs import HAS_TRITON

if not HAS_TRITON:
    pytest.skip("kernels need Triton", allow_module_level=True)


TARGETS = [
    ("cuda", 90),
    *(pytest.param(target, marks=pytest.mark.slow) for target in (("cuda", 80), ("cuda", 100), ("hip", "gfx942"))),
]
OPERATORS = [
    rules.adam,
    *(
        pytest.param(getattr(rules, name), marks=pytest.mark.slow)
        for name in rules.__all__
        if hasattr(getattr(rules, name), "metadata") and name != "adam"
    ),
]


@pytest.mark.thorough
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: str(target[1]))
@pytest.mark.parametrize("kind", ["fp32", pytest.param("bf16", marks=pytest.mark.slow)])
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)
@pytest.mark.parametrize("captured", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_tensors_found_by_a_table_move_in_vectors_and_nothing_spills(captured, operator, kind, target, tmp_path):
    from tritensor.runtime.launch import DeviceFunction, compile_ahead, device_function

    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[kind]
    body = operator.body if isinstance(operator.body, DeviceFunction) else device_function(operator.body, operator.name)
    roles, numbers = len(operator.inputs), len(operator.metadata)
    constants = {
        "BODY": body,
        "KINDS": (dtype,) * roles,
        "COMPUTE": torch.float32,
        "COLUMNS": (-1,) * numbers,
        "ROW": 0,
        "ALIGNED": True,
        "WIDTH": roles + 3,
        "BLOCK": 4096 // dtype.itemsize,
    }
    signature = ("*i64:16", "*i32:16", ("fp32",) * numbers, "*fp32:16" if captured else None)
    if captured:
        constants.update(COLUMNS=tuple(range(numbers)), ROW=numbers)
    with settings.cache_dir(str(tmp_path)):
        facts = compile_ahead(multi_tensor.multi_tensor_kernel, signature, constants, target, name=operator.name)
    assert facts.local_bytes == 0
    if target[0] == "hip":
        loads = len(re.findall(r"(?:global|flat)_load_dwordx4", facts.asm["amdgcn"]))
        stores = len(re.findall(r"(?:global|flat)_store_dwordx4", facts.asm["amdgcn"]))
    elif "sass" in facts.asm:
        loads = len(re.findall(r"\bLDG?\.E\.128", facts.asm["sass"]))
        stores = len(re.findall(r"\bSTG?\.E\.128", facts.asm["sass"]))
    else:
        pytest.skip("Triton's package has no disassembler here")
    vectors = 1 if target[0] == "hip" else 2  # of each tensor in a whole block: a warp has 64 threads there
    assert loads >= vectors * roles
    assert stores >= vectors * (roles - 1)


SCHEDULED = [getattr(optim, name) for name in optim.__all__ if hasattr(getattr(optim, name), "_schedule")]


@pytest.mark.slow
def test_the_kernel_of_the_rates_compiles(tmp_path):
    from tritensor.runtime.launch import compile_ahead

    for kind in SCHEDULED:
        numbers = max(len(rule.metadata) for rule in kind._rules.values())
        for lr, in_memory in (("*fp32", True), ("fp64", False)):
            with settings.cache_dir(str(tmp_path)):
                facts = compile_ahead(
                    step_rates.rates_kernel,
                    ("*fp32:16", "*i64:16", lr, ("fp64",) * (len(kind._options) + (not kind._counted)), "i32"),
                    {
                        "BODY": kind._schedule,
                        "TAKES": kind._takes,
                        "KEPT": max(len(kind._counted) - 1, 0),
                        "ROW": numbers,
                        "COLUMN": 6,
                        "WIDTH": 6 + len(kind._counted),
                        "IN_MEMORY": in_memory,
                        "BLOCK": 128,
                    },
                )
            assert facts.local_bytes == 0
