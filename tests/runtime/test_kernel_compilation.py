"""Kernels compiled without a GPU, for every target: the code that comes out."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tritensor import drivers, settings
from tritensor.errors import DeviceError, KernelError
from tritensor.kernels.addressing import collapse_dims
from tritensor.kernels.elementwise.kernel import elementwise_kernel
from tritensor.memory import copies
from tritensor.runtime.launch import compile_ahead, device_function, kernel, launch
from tritensor.types import devices, dtypes

if TYPE_CHECKING:
    import triton.language as tl

pytest.importorskip("triton")

TARGETS = [("cuda", 80), ("cuda", 90), ("cuda", 100), ("hip", "gfx942")]


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    with settings.cache_dir(str(tmp_path_factory.mktemp("triton"))):
        yield


@device_function
def add(x, y):
    return x + y


@device_function
def lrelu(x, slope, mode):
    y = -x if mode == "flipped" else x
    return tl.where(y > 0, y, libdevice.tanh(y) * slope), y > 0  # noqa: F821 - given to every kernel


def elementwise_facts(body, outs, ins, *, rank=1, count=":16", target=("cuda", 90), scalars=(), **constants):
    strides = ("i32:1",) if rank == 1 else (*("i32:16",) * (rank - 1), "i32:1")
    shape = tuple("i32" if dim < rank - 1 else f"i32{count}" for dim in range(rank))
    by_name = {entry.triton: entry for entry in dtypes.ALL}
    defaults = {
        "BODY": body,
        "OUT_DTYPES": tuple(by_name[name] for name in outs),
        "RANK": rank,
        "SPLIT": False,
        "COMPUTE": (dtypes.float32,) * len(ins),
        "INDEX64": False,
        "BLOCK": 2048,
    }
    signature = (
        tuple(f"*{name}:16" for name in outs),
        tuple(f"*{name}:16" for name in ins),
        scalars,
        (strides,) * len(outs),
        (strides,) * len(ins),
        shape,
        f"i32{count}",
    )
    return compile_ahead(elementwise_kernel, signature, {**defaults, **constants}, target)


def memory_accesses(facts):
    return Counter(re.findall(r"\b(?:LDG|STG|LD|ST)\.E[\w.]*", facts.asm["sass"]))


# ---- compiled ahead ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_kernel_compiles_for_every_target_without_spills(target):
    facts = elementwise_facts(lrelu, ["bf16", "i1"], ["fp16"], target=target, scalars=("fp32", "constexpr:flipped"))
    assert facts.name == "elementwise_lrelu"
    assert facts.warps == 4
    assert facts.local_bytes == 0
    assert facts.binary[:4] == b"\x7fELF"
    assert "elementwise_lrelu" in facts.asm["amdgcn" if target[0] == "hip" else "ptx"]
    assert 0 < facts.registers <= 128


@pytest.mark.thorough
@pytest.mark.parametrize(("count", "split"), [(":16", False), ("", True)])
def test_contiguous_elements_move_in_vectors_of_16_bytes(count, split):
    accesses = memory_accesses(elementwise_facts(add, ["bf16"], ["bf16", "bf16"], count=count, SPLIT=split))
    assert accesses["LDG.E.128"] == 4
    assert accesses["STG.E.128"] == 2
    assert (len(accesses) == 2) is not split


def test_a_broadcast_row_still_moves_in_vectors():
    accesses = memory_accesses(elementwise_facts(add, ["bf16"], ["bf16", "bf16"], rank=2))
    assert set(accesses) == {"LDG.E.128", "STG.E.128"}


@kernel
def matmul_kernel(out_ptr, x_ptr, y_ptr, inner, SIZE: tl.constexpr, DEPTH: tl.constexpr):
    row, col, depth = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :], tl.arange(0, DEPTH)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for start in range(0, inner, DEPTH):
        x = tl.load(x_ptr + row * inner + (start + depth)[None, :])
        y = tl.load(y_ptr + (start + depth)[:, None] * SIZE + col)
        total = tl.dot(x, y, total)
    tl.store(out_ptr + row * SIZE + col, total)


def matmul_facts(warps):
    signature = ("*fp32:16", "*bf16:16", "*bf16:16", "i32:16")
    return compile_ahead(matmul_kernel, signature, {"SIZE": 128, "DEPTH": 64}, ("cuda", 90), warps=warps, name="matmul")


@pytest.mark.thorough
def test_facts_show_tensor_cores_shared_memory_and_spills():
    facts = matmul_facts(4)
    assert facts.name == "matmul"
    assert "wgmma" in facts.asm["ptx"]
    assert facts.shared > 48 << 10
    assert facts.local_bytes == 0
    assert matmul_facts(1).local_bytes > 0


def test_a_kernel_that_does_not_compile_names_operator_types_and_line():
    @device_function
    def broken(x, y):
        return tl.expp(x) + y

    with pytest.raises(KernelError) as raised:
        elementwise_facts(broken, ["bf16"], ["bf16", "fp32"])
    text = str(raised.value)
    assert text.startswith("elementwise_kernel: kernel elementwise_kernel does not compile for cuda 90")
    assert "argument types: (*bf16), (*bf16, *fp32), (), ((i32))" in text
    assert "tl.expp(x) + y" in text
    assert raised.value.__cause__ is not None


SCALE = 3.0
STORED = dtypes.bfloat16


@pytest.mark.thorough
def test_constants_of_the_module_and_of_the_arguments_are_known_to_the_compiler():
    @device_function
    def body(x, y, flag, nothing):
        if flag and nothing is None:
            x = x * SCALE
        return (x + y).to(STORED)

    facts = elementwise_facts(body, ["bf16"], ["bf16", "bf16"], scalars=(True, None))
    assert "3.0" in facts.asm["ttir"]
    facts = elementwise_facts(body, ["bf16"], ["bf16", "bf16"], scalars=(False, None))
    assert "3.0" not in facts.asm["ttir"]
    with pytest.raises(KernelError, match=r"\(False, 'text'\)"):
        elementwise_facts(body, ["bf16"], [], scalars=(False, "constexpr:text"))


@pytest.mark.thorough
def test_bodies_with_the_same_text_compile_to_different_code():
    def scaled_by(factor):
        @device_function(name="scaled")
        def body(x, y):
            return x * factor + y

        return body

    double = elementwise_facts(scaled_by(2.0), ["fp32"], ["fp32", "fp32"])
    triple = elementwise_facts(scaled_by(3.0), ["fp32"], ["fp32", "fp32"])
    assert double.name == triple.name == "elementwise_scaled"
    assert double.asm["ttir"] != triple.asm["ttir"]


@pytest.mark.thorough
def test_the_interpreter_and_the_compiler_take_the_same_function_in_turn():
    x = np.arange(40, dtype=np.float32)
    for _ in range(2):
        with drivers.simulate():
            out = copies.from_host(np.zeros_like(x), devices.cuda(0))
            launch(copy_kernel, (3,), (out, copies.from_host(x, devices.cuda(0)), 40), {"BLOCK": 16}, devices.cuda(0))
            assert np.array_equal(copies.to_host(out), x)
        assert "ld.global" in compile_ahead(copy_kernel, ("*fp32", "*fp32", "i32"), {"BLOCK": 16}).asm["ptx"]


@kernel
def copy_kernel(out_ptr, in_ptr, count, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + index, tl.load(in_ptr + index, mask=index < count), mask=index < count)


@pytest.mark.thorough
def test_compiled_files_go_where_the_setting_says(tmp_path):
    with settings.cache_dir(str(tmp_path)):
        compile_ahead(copy_kernel, ("*fp32", "*fp32", "i32"), {"BLOCK": 32})
    assert list(tmp_path.rglob("*.cubin"))


def test_facts_do_without_the_tools_that_a_package_may_lack(monkeypatch):
    from tritensor.runtime import compiler

    monkeypatch.setattr(compiler, "_tools", dict)
    facts = compile_ahead(copy_kernel, ("*fp32", "*fp32", "i32"), {"BLOCK": 16})
    assert "sass" not in facts.asm
    assert 0 < facts.registers < 256
    assert compiler._amd_number("no such line", "vgpr_count") is None


def test_compiling_under_tritons_own_interpreter_is_refused(monkeypatch):
    from tritensor.runtime import compiler

    monkeypatch.setattr(compiler.tl, "sum", object())
    with pytest.raises(DeviceError, match="copy_kernel: kernels cannot be compiled under TRITON_INTERPRET=1"):
        compile_ahead(copy_kernel, ("*fp32", "*fp32", "i32"), {"BLOCK": 16})


def test_dimensions_collapse():
    assert collapse_dims((), [()]) == ((1,), ((1,),))
    assert collapse_dims((1, 1), [(5, 1), (0, 0)]) == ((1,), ((1,), (1,)))
    assert collapse_dims((4, 1, 6), [(6, 6, 1), (6, 0, 1)]) == ((24,), ((1,), (1,)))
    assert collapse_dims((4, 6), [(1, 4)]) == ((4, 6), ((1, 4),))
    assert collapse_dims((2, 3, 4), [(0, 0, 0)]) == ((24,), ((0,),))
    assert collapse_dims((2, 3), [(-3, -1)]) == ((6,), ((-1,),))


@kernel
def many_kernel(outs, x_ptr, scale, precise, long, strides, count, FLAG: tl.constexpr):
    index = tl.arange(0, 16)
    x = tl.load(x_ptr + index * strides[0], mask=index < count) * scale
    tl.store(outs[0] + index * strides[1], x + precise)
    tl.store(outs[1] + index * strides[2], x + long)


@pytest.mark.thorough
def test_compiled_code_takes_the_arguments_in_order_and_two_scratch_pointers():
    signature = (("*fp32:16", "*fp64:16"), "*fp32:16", "fp32", "fp64", "i64", ("i32:1", "i32", "i64"), "i32")
    ptx = compile_ahead(many_kernel, signature, {"FLAG": True}).asm["ptx"]
    entry = ptx[ptx.index(".entry") : ptx.index(")", ptx.index(".entry"))]
    sizes = [int(size) for size in re.findall(r"\.param \.[a-z](\d+)", entry)]
    assert sizes == [64, 64, 64, 32, 64, 64, 32, 64, 32, 64, 64]


def test_a_users_own_triton_kernel_can_be_launched_and_compiled(tmp_path):
    path = tmp_path / "users_kernels.py"
    path.write_text(USERS_MODULE)
    spec = importlib.util.spec_from_file_location("users_kernels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    users_kernel = kernel(module.softplus_kernel)
    assert users_kernel.constants == {"BLOCK"}
    x = np.linspace(-2, 2, 20, dtype=np.float32)
    with drivers.simulate():
        out = copies.from_host(np.zeros_like(x), devices.cuda(0))
        launch(users_kernel, (2,), (out, copies.from_host(x, devices.cuda(0)), 20), {"BLOCK": 16}, devices.cuda(0))
        np.testing.assert_allclose(copies.to_host(out), np.log1p(np.exp(x)), rtol=1e-6)
    assert compile_ahead(users_kernel, ("*fp32", "*fp32", "i32"), {"BLOCK": 16}).name == "softplus"


USERS_MODULE = """
import triton
import triton.language as lang

@triton.jit
def softplus(x):
    return lang.log(1 + lang.exp(x))

@triton.jit
def softplus_kernel(out_ptr, in_ptr, count, BLOCK: lang.constexpr):
    index = lang.program_id(0) * BLOCK + lang.arange(0, BLOCK)
    mask = index < count
    lang.store(out_ptr + index, softplus(lang.load(in_ptr + index, mask=mask)), mask=mask)
"""
