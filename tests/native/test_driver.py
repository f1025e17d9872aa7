"""Simulated devices that run native code: launches, their order and memory, errors, and files on disk."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda, drivers, settings
from tritensor.drivers import selection
from tritensor.drivers.native import driver as native
from tritensor.errors import ArgumentError, DeviceError, KernelError, KernelMemoryError
from tritensor.runtime import disk_cache
from tritensor.runtime.launch import Float64, Int64, Kernel, kernel, launch
from tritensor.types import devices

from ..needs import needs_triton

if TYPE_CHECKING:
    import triton.language as tl

pytestmark = needs_triton
if selection.lacks_native():
    pytest.skip(selection.lacks_native(), allow_module_level=True)


@pytest.fixture(autouse=True)
def apart(tmp_path, monkeypatch):
    """Nothing is compiled or loaded yet, and files are this test's own."""
    native.engine.cache_clear()
    with settings.cache_dir(str(tmp_path)):
        yield
    native.engine.cache_clear()


@pytest.fixture
def simulation(apart):
    with cuda.simulate(2, engine="native") as found:
        yield found


@kernel
def add_kernel(out_ptr, x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    within = i < count
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=within) + tl.load(y_ptr + i, mask=within), mask=within)


@kernel
def place_kernel(out_ptr, BLOCK: tl.constexpr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = (x * tl.num_programs(1) + y) * tl.num_programs(2) + z
    tl.store(out_ptr + at * BLOCK + tl.arange(0, BLOCK), x * 100 + y * 10 + z)


@kernel
def last_kernel(out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.program_id(0))


@kernel
def numbers_kernel(out_ptr, numbers, wide, small, double, one, FACTOR: tl.constexpr):
    tl.store(out_ptr, numbers[0] * 1.0)
    tl.store(out_ptr + 1, numbers[1][0] * 1.0)
    tl.store(out_ptr + 2, wide.to(tl.float64))
    tl.store(out_ptr + 3, small.to(tl.float64))
    tl.store(out_ptr + 4, double)
    tl.store(out_ptr + 5, FACTOR * one * 1.0)


@kernel
def table_kernel(out_ptr, table_ptr, far, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    source = tl.load(table_ptr + row).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + row * BLOCK + i, tl.load(source + i + far))


@kernel
def products_kernel(out_ptr, x_ptr, y_ptr, z_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x, y, z = tl.load(x_ptr + i), tl.load(y_ptr + i), tl.load(z_ptr + i)
    twice = (x + 0.5) * y
    tl.store(out_ptr + i, x * x - 1.0)
    tl.store(out_ptr + BLOCK + i, 0.75 - y * y)
    tl.store(out_ptr + 2 * BLOCK + i, 1.25 + y * x)
    tl.store(out_ptr + 3 * BLOCK + i, twice - 2.0)
    tl.store(out_ptr + 4 * BLOCK + i, twice)
    tl.store(out_ptr + 5 * BLOCK + i, (x + 0.25) * y - (x + 0.25) * z)


def run(what: Kernel, grid: tuple[int, ...], arguments: tuple, reaches: Any = None, **constants: Any) -> None:
    values = tuple(getattr(value, "_data", value) for value in arguments)
    launch(what, grid, values, constants, devices.cuda(0), name=what.family, reaches=reaches)


def operands(count: int = 1000) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    x, y = torch.arange(float(count), device="cuda"), torch.ones(count, device="cuda")
    return torch.zeros(count, device="cuda"), x, y


def add(out: torch.Tensor, x: torch.Tensor, y: torch.Tensor, count: int | None = None) -> None:
    count = out.numel() if count is None else count
    run(add_kernel, (-(-count // 64),), (out, x, y, count), BLOCK=64)


def made() -> list[native.Native]:
    """The kernels that were asked for, each once."""
    programs = native.engine(settings.native_target.value).programs
    return [*{id(program.kernel): program.kernel for program in programs.values()}.values()]


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.kernel"))


# ---- launches -------------------------------------------------------------------------------------------------------


def test_a_launch_and_its_file(simulation, tmp_path) -> None:
    out, x, y = operands()
    add(out, x, y)
    assert out.tolist() == [i + 1.0 for i in range(1000)]
    assert [each.refusal for each in made()][-1] == "" and disk_cache.load(files(tmp_path)[-1])
    count = len(made())
    add(out[1:], x[1:], y[:-1], 999)  # off their alignment, and another count: the same code
    assert out[1:].tolist() == [i + 1.0 for i in range(1, 1000)] and len(made()) == count


def test_arrays_that_overlap_have_code_of_their_own(simulation, tmp_path) -> None:
    out, x, y = operands()
    add(out, x, y)
    before = len(files(tmp_path))
    add(x, x, y)
    assert x.tolist() == out.tolist() and len(files(tmp_path)) == before + 1
    add(y, y, y)
    assert y.tolist() == [2.0] * 1000 and len(files(tmp_path)) == before + 1


@pytest.mark.parametrize("target", ["", "no-fma"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constants_and_products_of_their_own_are_rounded_once(apart, target: str, dtype: type) -> None:
    """Where the processor can. What is needed elsewhere, and the sums of two products, are rounded twice."""
    x, y = np.random.default_rng(0).uniform(0.5, 1.5, (2, 64)).astype(dtype)
    with cuda.simulate(engine="native"), settings.native_target(target):
        out = torch.zeros(6, 64, dtype=getattr(torch, np.dtype(dtype).name), device="cuda")
        run(products_kernel, (1,), (out, *(torch.tensor(each, device="cuda") for each in (x, y, y))), BLOCK=64)
        assert made()[-1].refusal == ""
        found = out.cpu().numpy()
    of = np.vectorize(lambda sign, x, y, z: float(sign * Fraction(float(x)) * Fraction(float(y)) + Fraction(z)))
    once = [of(1, x, x, -1.0), of(-1, y, y, 0.75), of(1, x, y, 1.25)]
    twice = [x * x - dtype(1), dtype(0.75) - y * y, dtype(1.25) + y * x]
    assert all((exact.astype(dtype) != rounded).any() for exact, rounded in zip(once, twice, strict=True))
    product = (x + dtype(0.5)) * y
    from tritensor.drivers.native import objects  # which needs llvmlite

    wanted = [*(once if objects.machine(target)[1] else twice), product - dtype(2), product, np.zeros(64)]
    np.testing.assert_array_equal(found, np.array(wanted, dtype))


def test_numbers_of_every_kind(simulation) -> None:
    out = torch.zeros(6, dtype=torch.float64, device="cuda")
    values = (0.5, (-3,)), Int64(1 << 40), -(1 << 31), Float64(0.1), 1
    run(numbers_kernel, (1,), (out, *values), FACTOR=7)
    assert out.tolist() == [0.5, -3.0, 2.0**40, -(2.0**31), 0.1, 7.0]
    assert made()[-1].refusal == ""


@pytest.mark.parametrize("order", ["forward", "reverse", "shuffle", "every"])
@pytest.mark.parametrize("number", [1, 3])
def test_orders_and_threads(simulation, order, number) -> None:
    out = torch.zeros(2 * 3 * 4 * 8, dtype=torch.int32, device="cuda")
    with settings.grid_order(order), settings.native_threads(number):
        run(place_kernel, (2, 3, 4), (out,), BLOCK=8)
    wanted = [x * 100 + y * 10 + z for x in range(2) for y in range(3) for z in range(4)]
    assert out.reshape(24, 8).t().tolist() == [wanted] * 8


def test_a_race_is_found_by_running_every_way(simulation) -> None:
    out = torch.zeros(8, device="cuda")
    with settings.grid_order("reverse"):
        run(last_kernel, (5,), (out,), BLOCK=8)
    assert out.tolist() == [0.0] * 8
    with (
        settings.grid_order("every"),
        pytest.raises(
            KernelError, match=r"(?s)last: the result depends on the order.*8 elements of out_ptr.*reverse.*races=True"
        ),
    ):
        run(last_kernel, (5,), (out,), BLOCK=8)


def test_operators_agree_with_the_cpu(simulation) -> None:
    x, y = torch.randn(33, 50), torch.randn(50, 20)
    for function in (lambda a, b: a + b.t()[:1], lambda a, b: torch.softmax(a, -1), lambda a, b: a @ b):
        assert torch.allclose(function(x.cuda(), y.cuda()).cpu(), function(x, y), 1e-4, 1e-5)
    assert all(not each.refusal for each in made())


# ---- errors ---------------------------------------------------------------------------------------------------------


def test_an_access_out_of_bounds_is_the_interpreters_error(simulation) -> None:
    out, x, y = operands()
    with pytest.raises(
        KernelMemoryError,
        match=r"(?s)add: program \(14, 0, 0\) writes element 900 of argument 0 \(out_ptr\), float32 of shape \(900,\)"
        r".*at test_driver.py:\d+\n  Fix: mask",
    ):
        add(out[:900], x, y, 1000)
    with settings.native_threads(3), pytest.raises(KernelMemoryError, match="reads element 500 of argument 2"):
        add(out, x, y[:500], 1000)
    with pytest.raises(KernelMemoryError, match="argument 1"):
        add(out, x[:0], y)
    with settings.sanitize(False):
        add(out[:900], x, y, 1000)
    assert out.tolist() == [i + 1.0 for i in range(1000)]


def test_an_access_that_the_interpreter_allows(simulation, monkeypatch) -> None:
    out, x, y = operands()
    add(out, x, y)
    monkeypatch.setattr(native.NativeSimulator, "interpreted", lambda *_: lambda first: None)
    with pytest.raises(
        KernelMemoryError, match=r"(?s)native code stopped in program \(14, 0, 0\).*engine=.interpreter"
    ):
        add(out[:900], x, y, 1000)


def test_addresses_in_memory(simulation) -> None:
    rows = [torch.full((8,), float(n), device="cuda") for n in range(3)]
    table, out = torch.tensor([row.data_ptr() for row in rows], device="cuda"), torch.zeros(24, device="cuda")
    run(table_kernel, (3,), (out, table, 0), BLOCK=8)
    assert out.tolist() == [float(n) for n in range(3) for _ in range(8)]
    reaches = ["row"], [[row._data] for row in rows]
    run(table_kernel, (3,), (out, table, 0), reaches, BLOCK=8)
    with pytest.raises(KernelMemoryError, match=r"element 1000000 of row\[0\]"):
        run(table_kernel, (3,), (out, table, 1000000), reaches, BLOCK=8)
    with pytest.raises(KernelMemoryError, match="illegal memory access"):
        run(table_kernel, (3,), (out, table, 1 << 30), BLOCK=8)


def test_arguments_that_do_not_fit(simulation) -> None:
    out, x, y = operands()
    with pytest.raises(KernelError, match="takes 4 arguments, got 3"):
        run(add_kernel, (1,), (out, x, y), BLOCK=8)
    with pytest.raises(ArgumentError, match=r"argument count is a numpy.int64"):
        run(add_kernel, (1,), (out, x, y, np.int64(3)), BLOCK=8)


def test_what_is_not_translated_is_interpreted_and_not_tried_again(simulation, monkeypatch, capsys) -> None:
    from tritensor.drivers.native import translate

    tried = []

    def refuse(*_: object, **__: object) -> None:
        tried.append(1)
        raise translate.Unknown("tt.something")

    monkeypatch.setattr(translate, "translate", refuse)
    out, x, y = operands()
    with settings.debug(2):
        add(out, x, y)
    tried.clear()
    add(out, x, y)
    assert out.tolist() == [i + 1.0 for i in range(1000)] and not tried
    assert "tt.something" in made()[-1].refusal
    assert "tritensor: add is interpreted: add: kernel add_kernel does not compile for this" in capsys.readouterr().err


# ---- streams, graphs, threads, processes ----------------------------------------------------------------------------


def test_late_streams(simulation) -> None:
    with settings.simulate_late(True):
        out, x, y = operands()
        add(out, x, y)
        assert out.tolist() == [i + 1.0 for i in range(1000)]
        add(out[:900], x, y, 1000)
        with pytest.raises(KernelMemoryError, match="writes element 900 of argument 0"):
            cuda.synchronize()


def test_memory_that_was_given_back_before_a_late_kernel_runs() -> None:
    with cuda.simulate(engine="native") as simulation, settings.simulate_late(True):
        out, x, y = operands()
        simulation.synchronize(0)
        with cuda.stream(cuda.Stream()):
            add(out, x, y)
        x._data.buffer.block.users = None  # as a launch would leave it that does not say which stream uses it
        del x
        for arena in list(simulation.heap(0).arenas):
            arena.release()
        simulation.default_stream(0).synchronize()
        with pytest.raises(KernelMemoryError, match=r"memory of argument 1 \(x_ptr\).*was given back before"):
            simulation.synchronize(0)


def test_captured_launches(simulation) -> None:
    out, x, y = operands()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        add(out, x, y)
        made_there = out * 2
    assert out.sum().item() == 0
    for value in (1.0, 5.0):
        y.fill_(value)
        graph.replay()
        assert made_there.tolist() == [2 * (i + value) for i in range(1000)]


def test_threads_that_launch_at_once(simulation) -> None:
    barrier = threading.Barrier(4)

    def work(number: int) -> bool:
        with simulation.share():
            out, x, y = operands(1000 + number)
            barrier.wait()
            for _ in range(20):
                add(out, x, y)
            return out.tolist() == [i + 1.0 for i in range(1000 + number)]

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(work, range(4))] == [True] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_runs_and_compiles_kernels(simulation) -> None:
    out, x, y = operands()
    with settings.native_threads(2):
        add(out, x, y)
        child = os.fork()
        if not child:
            try:
                add(out, out, y)
                run(add_kernel, (1,), (out, x, y, 8), BLOCK=8)
                os._exit(0 if out[20:23].tolist() == [22.0, 23.0, 24.0] and out[3] == 4 else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# ---- files ----------------------------------------------------------------------------------------------------------


def again() -> None:
    """The launch of a process that finds files only."""
    native.engine.cache_clear()
    out, x, y = operands()
    add(out, x, y)
    assert out.tolist() == [i + 1.0 for i in range(1000)] and not made()[-1].refusal


def test_files_are_used_without_llvm(simulation, tmp_path, monkeypatch) -> None:
    again()
    monkeypatch.setitem(sys.modules, "tritensor.drivers.native.objects", None)
    again()


@pytest.mark.parametrize("damage", ["cut", "bit", "other object", "empty"])
def test_a_damaged_file_is_made_anew(simulation, tmp_path, damage) -> None:
    again()
    for path in files(tmp_path):
        content = path.read_bytes()
        if damage == "other object":  # well-formed, and not for this processor
            found = disk_cache.load(path)
            disk_cache.store(path, found._replace(binary=found.binary[:18] + b"\xb7\x00" + found.binary[20:]))
        else:
            changed = content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]
            path.write_bytes({"cut": content[:-100], "bit": changed, "empty": b""}[damage])
        damaged = path.read_bytes()
        again()
        assert path.read_bytes() == content != damaged


def test_nothing_is_stored_where_nothing_can_be(simulation, tmp_path, monkeypatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk_cache.os, "replace", full)
    again()
    assert files(tmp_path) == [] and [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_targets_have_files_of_their_own(simulation, tmp_path) -> None:
    counts = []
    for target in ("", "avx2", "no-fma", ""):
        with settings.native_target(target):
            again()
        counts.append(len(files(tmp_path)))
    assert 0 < counts[0] < counts[1] < counts[2] == counts[3]


def test_another_processor_has_files_of_its_own(simulation, tmp_path, monkeypatch) -> None:
    again()
    count = len(files(tmp_path))
    monkeypatch.setattr(native, "processor", lambda: ["another"])
    again()
    assert len(files(tmp_path)) == 2 * count


def test_two_processes_at_once(tmp_path) -> None:
    code = """
import tritensor as torch
with torch.cuda.simulate(engine="native"):
    x = torch.arange(1000.0, device="cuda")
    print(torch.softmax(x + x, -1).sum().item(), (x * 2 == x + x).all().item())
"""
    environment = {**os.environ, "TRITENSOR_CACHE_DIR": str(tmp_path)}
    started = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE) for _ in range(2)
    ]
    assert [process.communicate(timeout=120)[0].split() for process in started] == [[b"1.0", b"True"]] * 2


# ---- which engine ---------------------------------------------------------------------------------------------------


def kind(**options: Any) -> str:
    with cuda.simulate(**options) as found:
        return type(found).__name__


def test_engines(monkeypatch) -> None:
    monkeypatch.setattr(settings.simulate_engine, "value", "")
    assert kind() == kind(engine="native") == kind(compiled=False) == "NativeSimulator"
    assert kind(engine="interpreter") == kind(races=True) == "Simulator"
    assert kind(engine="compiled") == kind(compiled=True) == kind(compiled=True, races=True) == "CompiledSimulator"
    with settings.simulate_engine("interpreter"):
        assert kind() == kind(compiled=False) == "Simulator" and kind(engine="native") == "NativeSimulator"
    with settings.simulate_engine("compiled"):
        assert kind() == "CompiledSimulator" and kind(compiled=False) == "NativeSimulator"
    with settings.simulate_compiled(True):
        assert kind() == "CompiledSimulator" and kind(engine="interpreter") == "Simulator"
    with pytest.raises(ArgumentError, match="got 'fast'"):
        kind(engine="fast")
    with pytest.raises(ArgumentError, match=r"got 'native' with compiled=True"):
        kind(engine="native", compiled=True)


def test_without_llvmlite(monkeypatch) -> None:
    monkeypatch.setattr(selection, "find_spec", lambda name: None if name == "llvmlite" else name)
    monkeypatch.setattr(settings.simulate_engine, "value", "")  # whatever the tests are run with
    assert kind() == "Simulator" and selection.engine_of() == "interpreter"
    with pytest.raises(DeviceError, match=r"(?s)simulate\(\): native code needs llvmlite.*tritensor\[native\]"):
        kind(engine="native")
    with settings.simulate_engine("native"), pytest.warns(UserWarning, match="TRITENSOR_SIMULATE_ENGINE=native: nat"):
        assert kind() == "Simulator"
    monkeypatch.setattr(selection, "_by_setting", {})
    with settings.simulate_cuda(1):
        assert type(drivers.require()).__name__ == "Simulator"
    from tritensor.scripts.doctor import report

    assert "are run by: interpreter (native code needs llvmlite, which is not installed)" in report()
