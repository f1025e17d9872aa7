"""Kernels of random numbers and dropout, compiled for devices that are not there."""

from __future__ import annotations

import re

import pytest

import tritensor as torch
from tritensor import settings
from tritensor.kernels.random import philox as kernels

TARGETS = [("cuda", 80), ("cuda", 90), ("cuda", 100), ("hip", "gfx942")]


@pytest.fixture
def compile_ahead(tmp_path):
    pytest.importorskip("triton")
    from tritensor.runtime.launch import compile_ahead

    with settings.cache_dir(str(tmp_path)):
        yield compile_ahead


@pytest.mark.thorough
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_random_kernels_compile_and_store_whole_vectors(target, compile_ahead) -> None:
    cases = [
        (kernels.uniform, torch.float32, (), False),
        (kernels.normal, torch.float32, (), False),
        (kernels.uniform, torch.float64, (), True),
        (kernels.integers, torch.int64, ("i64", "i64"), True),
    ]
    for operator, kind, numbers, wide in cases:
        constants = {"BODY": operator.device_body(), "OUT_DTYPE": kind, "WIDE": wide, "INDEX64": False, "BLOCK": 128}
        signature = (f"*{kind.triton}:16", "i64", "i64", numbers, "i32:16")
        facts = compile_ahead(kernels.random_kernel, signature, constants, target, name=f"random_{operator.name}")
        assert facts.name == f"random_{operator.name}"
        # the library's sine has a table for huge angles on the stack, which ours never need
        assert facts.local_bytes <= (40 if operator is kernels.normal else 0)
        if target[0] == "cuda":
            assert set(re.findall(r"\bSTG\.E[\w.]*", facts.asm["sass"])) == {"STG.E.128"}


@pytest.mark.thorough
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_dropout_compiles_to_whole_vectors(target, compile_ahead) -> None:
    for kind in (torch.float32, torch.bfloat16):
        constants = {"OUT_DTYPE": kind, "COMPUTE": torch.float32, "RANK": 1, "INDEX64": False, "BLOCK": 128}
        pointer = f"*{kind.triton}:16"
        signature = (pointer, pointer, ("i32:1",), ("i32:16",), "i64", "i64", "i32", "fp32", "i32:16")
        facts = compile_ahead(kernels.dropout_kernel, signature, constants, target)
        assert facts.local_bytes == 0
        if target[0] == "cuda":
            assert set(re.findall(r"\b(?:STG|LDG)\.E[\w.]*", facts.asm["sass"])) <= {"STG.E.128", "LDG.E.128"}
