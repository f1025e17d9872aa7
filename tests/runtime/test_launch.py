"""Launching kernels on simulated devices: their bodies, the order in which they run, how they fail."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import pytest

from tritensor import cuda, drivers, settings
from tritensor.errors import DeviceError, KernelError, KernelMemoryError
from tritensor.memory import copies
from tritensor.runtime.launch import device_function, kernel, launch
from tritensor.types import devices

if TYPE_CHECKING:
    import triton.language as tl

pytest.importorskip("triton")

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


@pytest.fixture(autouse=True)
def device():
    with drivers.simulate(devices=1):
        yield devices.cuda(0)


def on_device(array, dtype=None):
    return copies.from_host(np.ascontiguousarray(array, dtype), devices.cuda(0))


def zeros(shape, dtype=np.float32):
    return on_device(np.zeros(shape, dtype))


def run(function, grid, arguments, **constants):
    launch(function, grid, arguments, constants, devices.cuda(0))


def launch_and_wait(*arguments, **options):
    launch(*arguments, **options)
    drivers.require().synchronize(0)  # where streams run late, a kernel fails when it is waited for


@device_function
def square(x):
    return x * x


@device_function
def square_and_cube(x):
    return square(x), square(x) * x


@kernel
def apply_kernel(out_ptr, in_ptr, count, BODY: tl.constexpr, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < count
    tl.store(out_ptr + index, BODY(tl.load(in_ptr + index, mask=mask)), mask=mask)


@kernel
def apply_pair_kernel(outs, in_ptr, count, BODY: tl.constexpr, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < count
    first, second = BODY(tl.load(in_ptr + index, mask=mask))
    tl.store(outs[0] + index, first, mask=mask)
    tl.store(outs[1] + index, second, mask=mask)


def applied(body, x, out_dtype=None, block=16):
    out = zeros(x.shape, out_dtype or x.dtype)
    run(apply_kernel, (-(-x.size // block),), (out, on_device(x), x.size), BODY=body, BLOCK=block)
    return copies.to_host(out)


X = np.linspace(-3, 5, 37, dtype=np.float32)


def test_importing_a_kernel_module_imports_neither_triton_nor_cuda():
    code = (
        "import sys, tritensor.kernels.elementwise.kernel; print({'triton', 'cuda.core', 'torch'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


# ---- device functions -------------------------------------------------------------------------------------------


def test_body_is_a_constant_and_may_call_others_and_return_several_values():
    assert np.array_equal(applied(square, X), X * X)
    outs = zeros(37), zeros(37)
    run(apply_pair_kernel, (3,), (outs, on_device(X), 37), BODY=square_and_cube, BLOCK=16)
    assert np.array_equal(copies.to_host(outs[0]), X * X)
    assert np.array_equal(copies.to_host(outs[1]), X * X * X)


def test_closures_with_the_same_text_are_different_bodies():
    def scaled_by(factor):
        @device_function(name="scaled")
        def body(x):
            return x * factor

        return body

    double, triple = scaled_by(2.0), scaled_by(3.0)
    assert double.digest != triple.digest
    assert np.array_equal(applied(double, X), X * 2)
    assert np.array_equal(applied(triple, X), X * 3)


def test_the_same_function_under_two_names_is_two_bodies():
    first, second = device_function(square.function, name="first"), device_function(square.function, name="second")
    assert (first.__name__, second.__name__) == ("first", "second")
    assert first.digest != second.digest
    assert np.array_equal(applied(second, X), X * X)


def test_a_captured_name_needs_a_value():
    def unfinished():
        @device_function
        def body(x):
            return later(x)

        with pytest.raises(
            KernelError, match="body: it names a variable of its enclosing function that has no value yet"
        ):
            applied(body, X)
        digest = body.digest
        later = square
        assert body.digest != digest
        assert np.array_equal(applied(body, X), X * X)

    unfinished()


def test_kernel_code_does_not_run_on_the_host():
    with pytest.raises(KernelError, match="square: kernel code runs inside a launch only"):
        square(X)
    for wrong in (len, lambda x: x):
        with pytest.raises(KernelError, match="must be a function written with def"):
            kernel(wrong)


HALVED = device_function(lambda x: x * 0.5)
BOTH = [device_function(each) for each in (lambda x: x + 1, lambda x: x - 1)]


def test_a_device_function_may_be_a_lambda():
    assert np.array_equal(applied(HALVED, X), X * 0.5)
    assert (HALVED.__name__, len(HALVED.digest)) == ("lambda", 8)


def test_a_lambda_of_a_kernel_is_the_only_one_of_its_line_and_captures_nothing():
    factor = 2.0
    for wrong in (BOTH[0], device_function(lambda x: x * factor)):
        with pytest.raises(KernelError, match=r"the only one of its line.*\n.*lambda x: .*\n.*write it with def"):
            applied(wrong, X)


def test_source_must_be_in_a_file():
    namespace: dict = {}
    exec("def body(x):\n    return x", namespace)
    with pytest.raises(KernelError, match="body: the source of a kernel function must be in a file"):
        applied(device_function(namespace["body"]), X)


# ---- atomics, order, threads, streams ---------------------------------------------------------------------------


@kernel
def order_kernel(seen_ptr, slot_ptr, sum_ptr):
    program = tl.program_id(0) + tl.program_id(1) * tl.num_programs(0)
    slot = tl.atomic_add(slot_ptr, 1)
    tl.store(seen_ptr + slot, program)
    tl.atomic_add(sum_ptr, program.to(tl.bfloat16))
    tl.atomic_max(slot_ptr + 1, program)


@pytest.mark.parametrize("order", ["forward", "reverse", "shuffle"])
def test_the_grid_runs_in_the_order_that_is_set(order):
    seen, slot, total = zeros(6, np.int32), zeros(2, np.int32), zeros(1, BFLOAT16)
    with settings.grid_order(order):
        run(order_kernel, (3, 2), (seen, slot, total))
    got = copies.to_host(seen).tolist()
    forward = [0, 3, 1, 4, 2, 5]
    assert sorted(got) == list(range(6))
    assert copies.to_host(slot).tolist() == [6, 5]
    assert copies.to_host(total)[0] == 15
    if order == "shuffle":
        assert got not in (forward, forward[::-1])
    else:
        assert got == (forward if order == "forward" else forward[::-1])


def test_a_grid_of_nothing_launches_nothing():
    out = zeros(4)
    run(apply_kernel, (0,), (out, out, 4), BODY=square, BLOCK=4)
    run(apply_kernel, (2, 0), (out, out, 4), BODY=square, BLOCK=4)
    assert not copies.to_host(out).any()


def test_threads_may_launch_at_the_same_time():
    failures, ended, simulation = [], [], drivers.require()

    def work(seed):
        x = np.random.default_rng(seed).standard_normal(40).astype(np.float32)
        with simulation.share():
            failures.extend(seed for _ in range(5) if not np.array_equal(applied(square, x), x * x))
        ended.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(ended) == 4


def test_a_late_stream_runs_and_fails_when_waited_for():
    driver = drivers.require()
    stream = driver.current_stream(0)
    x, out = on_device(X), zeros(37)
    stream.synchronize()
    with settings.simulate_late(True):
        run(apply_kernel, (3,), (out, x, 37), BODY=square, BLOCK=16)
        memory = driver.memory(out.data_ptr(), 4 * 37).view(np.float32)
        assert not memory.any()
        stream.synchronize()
        assert np.array_equal(memory, X * X)
        run(apply_kernel, (3,), (out, x, 48), BODY=square, BLOCK=16)
        with pytest.raises(KernelMemoryError):
            stream.synchronize()


def test_a_late_launch_is_taken_down_as_it_was_asked_for():
    driver = drivers.require()
    with settings.simulate_late(True):
        seen, slot, total = zeros(6, np.int32), zeros(2, np.int32), zeros(1, BFLOAT16)
        with settings.grid_order("reverse"):
            run(order_kernel, (3, 2), (seen, slot, total))
        x, out = on_device(X), zeros(37)
        with settings.sanitize(False):
            run(apply_kernel, (1,), (out[:8], x, 16), BODY=square, BLOCK=16)
        assert copies.to_host(seen).tolist() == [5, 2, 4, 1, 3, 0]
        assert copies.to_host(out).tolist() == [*(X * X)[:16], *[0.0] * 21]
        run(apply_kernel, (1,), (zeros(40), x, 37), BODY=square, BLOCK=64)
        del x, out, seen, slot, total
        driver.synchronize(0)  # the stream runs in order, so memory that was given back in it is still there


def test_memory_that_was_given_back_too_early_is_missed():
    driver = drivers.require()
    with settings.simulate_late(True):
        x, out, other = on_device(X), zeros(37), driver.create_stream(0)
        driver.synchronize(0)
        with cuda.stream(other):
            run(apply_kernel, (3,), (out, x, 37), BODY=square, BLOCK=16)
        x.buffer.block.users = None  # what a launch without record_stream would leave
        del x
        for arena in list(driver.heap(0).arenas):
            arena.release()
        driver.default_stream(0).synchronize()
        with pytest.raises(
            KernelMemoryError, match=r"(?s)in apply\n.*memory of argument 1 \(in_ptr\), float32 .*back before"
        ):
            other.synchronize()


# ---- failures ---------------------------------------------------------------------------------------------------


@device_function
def asserting(x):
    tl.device_assert(x < 4, "x is too large")
    return x


@device_function
def misspelled(x):
    return tl.expp(x)


def test_a_failing_kernel_names_operator_kernel_and_program():
    arguments, constants = (zeros(4), zeros(4), 4), {"BODY": misspelled, "BLOCK": 4}
    with pytest.raises(KernelError, match=r"(?s)grow: kernel apply_kernel failed.*program \(0, 0, 0\): Attri"):
        launch_and_wait(apply_kernel, (1,), arguments, constants, devices.cuda(0), name="grow")


def test_device_asserts_fire():
    with pytest.raises(DeviceError, match=r"(?s)CUDA error: device-side assert triggered.*x is too large"):
        applied(asserting, X)


def test_the_wrong_number_of_arguments_is_refused():
    with pytest.raises(
        KernelError, match=r"(?s)kernel apply_kernel takes 3 arguments, got 2\n  they are out_ptr, in_ptr, co"
    ):
        run(apply_kernel, (1,), (zeros(4), zeros(4)), BODY=square, BLOCK=4)


def test_without_triton_a_launch_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "tritensor.runtime.interpreter.run", raising=False)
    monkeypatch.setitem(sys.modules, "triton", None)
    arguments, constants = (zeros(4), zeros(4), 4), {"BODY": square, "BLOCK": 4}
    with pytest.raises(DeviceError, match=r'(?s)square: .*needs Triton.*pip install "tritensor\[triton\]"'):
        launch(apply_kernel, (1,), arguments, constants, devices.cuda(0), name="square")


def test_the_interpreter_leaves_triton_as_it_was():
    import triton.language as language

    before = dict(vars(language)), dict(vars(language.tensor)), dict(vars(language.core))
    for engine in ("interpreter", None):
        with drivers.simulate(engine=engine):
            applied(square, X)
            with pytest.raises(KernelError):
                applied(misspelled, X)
    assert (dict(vars(language)), dict(vars(language.tensor)), dict(vars(language.core))) == before
