"""Launches in every form that Triton has: each function returns what `o` has to hold afterwards."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
import triton.language.extra.cuda as of_cuda
import triton.language.extra.libdevice as third
from triton.language.extra import libdevice as first
from triton.language.extra.cuda import libdevice as second
from triton.language.extra.cuda.libdevice import tanh
from triton.language.math import exp2
from triton.tools.tensor_descriptor import TensorDescriptor

import tritensor as torch

from . import elsewhere
from .elsewhere import FIVE

N = 100


def blocks(meta: dict[str, Any]) -> tuple[int]:
    return (triton.cdiv(N, meta["BLOCK"]),)


@triton.jit
def _attributes(o, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(o + i, elsewhere.twice(v) + elsewhere.Space.thrice(v) + FIVE + elsewhere.FIVE, mask=i < n)


def functions_reached_as_attributes(x, o):
    made = _attributes[blocks](o, x, N, BLOCK=64, num_warps=1, num_stages=1, num_ctas=1, maxnreg=64)
    assert 0 < made.n_regs <= 64 and made.n_spills == 0 and made.metadata.num_warps == 1 and "ptx" in made.asm
    o.zero_()
    made[(2, 1, 1)](o, x, N, 64)  # the compiled kernel is launched itself
    return 5 * x + 10


@triton.jit
def _libdevice(o, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    sum = first.tanh(v) + second.tanh(v) + third.tanh(v) + tl.extra.libdevice.tanh(v) + tl.extra.cuda.libdevice.tanh(v)
    tl.store(o + i, sum + tanh(v) + exp2(v * 0) + tl.math.exp(v * 0), mask=i < n)


def libdevice_by_every_path(x, o):
    _libdevice[blocks](o, x, N, BLOCK=64)
    return 6 * x.tanh() + 2


@triton.jit
def _options(o, x, n, BLOCK: tl.constexpr, num_warps: tl.constexpr, num_stages: tl.constexpr = 2):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, mask=i < n) * num_warps + num_stages, mask=i < n)


def options_that_are_parameters(x, o):
    _options[blocks](o, x, N, BLOCK=64, num_warps=2)
    return 2 * x + 2


@triton.autotune(
    [triton.Config({"BLOCK": 32}, num_warps=1), triton.Config({"BLOCK": 64}, num_warps=2, maxnreg=64)],
    key=["n"],
    reset_to_zero=["o"],
)
@triton.heuristics({"EVEN": lambda meta: meta["n"] % meta["BLOCK"] == 0})
@triton.jit
def _tuned(o, x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr, num_warps: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(o + i, tl.load(x + i, mask=i < n, other=0.0), mask=i < n)


def autotuning_that_resets(x, o):
    _tuned.cache.clear()
    _tuned[blocks](o, x, N)
    times = {config.kwargs["BLOCK"]: time for config, time in _tuned.configs_timings.items()}
    assert _tuned.best_config.kwargs["BLOCK"] == min(times, key=times.get)
    assert all(0 < time[0] < 10 for time in times.values())  # milliseconds, predicted on a simulated device
    return x


@triton.autotune(
    [triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128}, num_stages=1)],
    key=["n"],
    restore_value=["o"],
    prune_configs_by={
        "early_config_prune": lambda configs, named, **meta: [each for each in configs if each.kwargs["BLOCK"] < 128],
        "perf_model": lambda **meta: meta["BLOCK"],
        "top_k": 2,
    },
    cache_results=True,
)
@triton.jit
def _restored(o, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(o + i, mask=i < n) + tl.load(x + i, mask=i < n, other=0.0), mask=i < n)


def autotuning_that_restores(x, o):
    o.fill_(1)
    _restored[blocks](o, x, N)
    assert _restored.best_config.kwargs["BLOCK"] < 128
    return x + 1


@triton.jit
def _many(o, x, n, none, flag, number, pair, BLOCK: tl.constexpr, KIND: tl.constexpr, FN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = FN(tl.load(x + i, mask=i < n).to(KIND))
    if none is None:
        v += 1
    if flag:
        v += pair[0]
    tl.static_assert(BLOCK > 1)
    tl.device_assert(n > 0, "n")
    tl.store(o + i, v + pair[1] + number, mask=i < n)


def arguments_of_all_kinds(x, o):
    _many[blocks](o, x, N, None, True, 0.5, (3, 4.0), BLOCK=64, KIND=tl.float32, FN=elsewhere.twice)
    return 2 * x + 8.5


@triton.jit
def _addresses(o, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x.to(tl.pointer_type(tl.float32)) + i, mask=i < n)
    tl.store(o.to(tl.pointer_type(tl.float32)) + i, values, mask=i < n)


def addresses_as_integers(x, o):
    _addresses[blocks](o.data_ptr(), x.data_ptr(), N, BLOCK=64)
    return x


@triton.jit
def _table(table, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(table).to(tl.pointer_type(tl.float32))
    tl.store(tl.load(table + 1).to(tl.pointer_type(tl.float32)) + i, tl.load(x + i, mask=i < n), mask=i < n)


def tables_of_addresses(x, o):
    _table[blocks](torch.tensor([x.data_ptr(), o.data_ptr()], device="cuda"), N, BLOCK=64)
    return x


@triton.jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["x"])
def _plain(o, x: "*fp32", n: "i32", BLOCK: tl.constexpr):  # noqa: F722, F821, UP037
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, mask=i < n).to(o.dtype.element_ty), mask=i < n)


def calls_by_name_and_by_run(x, o):
    _plain[(2, 1)](n=N, x=x, o=o, BLOCK=64)
    assert torch.equal(o, x)
    o.zero_()
    _plain.run(o, x, N, grid=(2,), warmup=False, BLOCK=64)
    made = _plain.warmup(torch.float32, torch.float32, N, BLOCK=64, grid=(2,))
    assert made.metadata.target.arch == 10 * torch.cuda.get_device_capability()[0] and "fp32" in str(made.src.signature)
    return x


@triton.jit
def _float8(o, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, mask=i < n).to(o.dtype.element_ty), mask=i < n)


def pointers_to_float8(x, o):
    small = torch.empty(N, dtype=torch.float8_e5m2, device="cuda")
    _float8[blocks](small, 1e6 * x, N, BLOCK=64)  # saturates
    assert float(small.float().abs().max()) == 57344
    small.copy_(x)
    _float8[blocks](o, small, N, BLOCK=64)
    return small.float()


@triton.jit
def _assembly(o, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    v = tl.inline_asm_elementwise("add.f32 $0, $1, $2;", "=r,r,r", [v, v], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(o + i, v + (of_cuda.smid() * 0).to(tl.float32), mask=i < n)


def inline_assembly(x, o):
    _assembly[blocks](o, x, N, BLOCK=64)
    return 2 * x


@triton.jit
def _host_tiles(source, target, M: tl.constexpr, N: tl.constexpr):
    at = [tl.program_id(0) * M, tl.program_id(1) * N]
    target.store(at, source.load(at))


@triton.jit
def _device_tiles(source, target, rows, columns, M: tl.constexpr, N: tl.constexpr):
    at = [tl.program_id(0) * M, tl.program_id(1) * N]
    one = tl.make_tensor_descriptor(source, [rows, columns], [columns, 1], [M, N])
    other = tl.make_tensor_descriptor(target, [rows, columns], [columns, 1], [M, N])
    other.store(at, one.load(at))


def descriptors(x, o):
    for dtype in (torch.float32, torch.float16):
        source = torch.arange(40 * 64.0, device="cuda").reshape(40, 64).to(dtype)
        target, other = torch.zeros_like(source), torch.zeros_like(source)
        _host_tiles[3, 2](*(TensorDescriptor.from_tensor(each, [16, 32]) for each in (source, target)), 16, 32)
        _device_tiles[3, 2](source, other, 40, 64, 16, 32)
        assert torch.equal(target, source) and torch.equal(other, source), dtype
    return o


def closures(x, o):
    @triton.jit
    def inner(o, x, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(o + i, tl.load(x + i, mask=i < n), mask=i < n)

    inner[blocks](o, x, N, BLOCK=64)
    return x


LAUNCHES = (
    functions_reached_as_attributes,
    libdevice_by_every_path,
    options_that_are_parameters,
    autotuning_that_resets,
    autotuning_that_restores,
    arguments_of_all_kinds,
    addresses_as_integers,
    tables_of_addresses,
    calls_by_name_and_by_run,
    pointers_to_float8,
    inline_assembly,
    descriptors,
    closures,
)
