"""Several simulations at once: each belongs to the thread that entered it, and sees nothing of the others."""

from __future__ import annotations

import gc
import re
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda, drivers, settings
from tritensor.errors import OutOfMemoryError
from tritensor.operators.generators import generator_of

from .interleaving import Steps, at_once, no_devices


@pytest.fixture(autouse=True)
def _the_machine_has_none():
    with no_devices():
        yield


def test_threads_count_their_own_devices():
    steps = Steps(3)

    def simulating(count: int) -> list[int]:
        with cuda.simulate(devices=count) as simulation:
            steps()
            assert drivers.active() is simulation
            found = [cuda.device_count()]
            steps()
            x = torch.ones(count, device=f"cuda:{count - 1}") * count
            steps()
            found.append(x.sum().item())
        steps()
        return [*found, cuda.device_count()]

    def without() -> list[int]:
        found = []
        for _ in range(4):
            steps()
            found.append((cuda.device_count(), cuda.is_available()))
        return found

    one, three, none = at_once(lambda: simulating(1), lambda: simulating(3), without)
    assert one == [1, 1, 0]
    assert three == [3, 9, 0]
    assert none == [(0, False)] * 4


@pytest.mark.parametrize("first_out", [0, 1])
def test_the_end_of_one_leaves_the_other_alone(first_out):
    steps = Steps(2)

    def work(number: int) -> None:
        with ExitStack() as stack:
            simulation = stack.enter_context(cuda.simulate(devices=number + 1))
            x = torch.arange(4.0, device="cuda")
            steps()
            if number == first_out:
                stack.close()
                assert cuda.device_count() == 0
                steps()
                stack.enter_context(cuda.simulate(devices=5))
                assert cuda.device_count() == 5
                steps()
            else:
                steps()
                for _ in range(3):
                    x = x * 2
                assert x.cpu().tolist() == [0, 8, 16, 24]
                steps()
                assert drivers.active() is simulation and cuda.device_count() == number + 1
                assert (x + x).cpu().tolist() == [0, 16, 32, 48]
            steps()

    at_once(lambda: work(0), lambda: work(1))


def test_the_main_thread_keeps_its_devices_while_others_come_and_go():
    with cuda.simulate(devices=2) as simulation, cuda.device(1):
        x = torch.ones(3, device="cuda")

        def other() -> tuple[int, int]:
            before = cuda.device_count()
            with cuda.simulate(devices=4):
                return before, cuda.device_count()

        assert at_once(other, other) == [(0, 4)] * 2
        assert drivers.active() is simulation
        assert cuda.current_device() == 1
        assert (x + 1).cpu().tolist() == [2, 2, 2]


def test_memory_streams_and_the_current_device_are_each_ones_own():
    steps = Steps(2)

    def work(number: int) -> None:
        with cuda.simulate(devices=2, memory="1MB") as simulation:
            cuda.set_device(number)
            side = cuda.Stream()
            steps()
            with cuda.stream(side):
                kept = [torch.empty(1024, device="cuda") for _ in range(2 + 3 * number)]
                steps()
                assert cuda.current_stream() is side and side.driver is simulation
            assert cuda.current_stream() is cuda.default_stream(number)
            assert cuda.current_device() == number
            steps()
            assert cuda.memory_allocated() == len(kept) * 4096
            assert cuda.memory_allocated(1 - number) == 0
            assert cuda.memory_stats()["live_buffers"] == len(kept)
            free, total = cuda.mem_get_info()
            assert (total, free) == (10**6, 10**6 - cuda.memory_reserved())
            steps()
            if number:
                with pytest.raises(OutOfMemoryError, match="5 live buffers"):
                    torch.empty(10**6, device="cuda")
            steps()
            cuda.reset_peak_memory_stats()
            del kept[0]
            steps()
            assert cuda.max_memory_allocated() == (2 + 3 * number) * 4096
            cuda.empty_cache()
            assert cuda.memory_reserved() == len(kept) * 4096

    at_once(lambda: work(0), lambda: work(1))


def test_a_ledger_counts_the_copies_of_its_simulation():
    steps = Steps(2)

    def work(number: int) -> list[int]:
        with cuda.simulate(devices=1), cuda.transfers() as ledger:
            steps()
            for _ in range(number):
                torch.ones(2).to("cuda").cpu()
            with cuda.simulate(devices=1):  # within the block, so it counts
                torch.ones(2).to("cuda")
            steps()
            return [ledger.count("h2d"), ledger.count("d2h")]

    assert at_once(lambda: work(1), lambda: work(4)) == [[2, 1], [5, 4]]
    with cuda.transfers() as ledger, cuda.simulate():
        torch.ones(2).to("cuda")
    assert ledger.count("h2d") == 1


def test_seeds_and_random_numbers_are_each_simulations_own():
    def numbers(seed: int) -> list[Any]:
        with cuda.simulate(devices=2):
            torch.manual_seed(seed)
            first = torch.rand(4, device="cuda:0").tolist()
            cuda.manual_seed_all(seed + 100)
            return [first, *(torch.randn(4, device=f"cuda:{index}").tolist() for index in (0, 1, 0))]

    alone = [numbers(3), numbers(4)]
    steps = Steps(2)

    def work(seed: int) -> list[Any]:
        with cuda.simulate(devices=2):
            steps()
            torch.manual_seed(seed)
            steps()  # both are seeded before either draws
            first = torch.rand(4, device="cuda:0").tolist()
            steps()
            cuda.manual_seed_all(seed + 100)
            steps()
            rest = []
            for index in (0, 1, 0):
                rest.append(torch.randn(4, device=f"cuda:{index}").tolist())
                steps()
            assert generator_of(torch.device("cuda", 0)).initial_seed() == seed + 100
            return [first, *rest]

    assert at_once(lambda: work(3), lambda: work(4)) == alone


def test_a_simulation_begins_with_the_seed_of_what_was_in_use():
    torch.manual_seed(21)
    with cuda.simulate(devices=2):
        assert cuda.initial_seed() == 21
        expected = torch.rand(3, device="cuda").tolist()
        torch.manual_seed(22)
        with cuda.simulate():
            assert cuda.initial_seed() == 22
            cuda.manual_seed(23)
        assert cuda.initial_seed() == 22
        with torch.random.fork_rng():
            torch.rand(3, device="cuda:1")
            torch.manual_seed(5)
        assert generator_of(torch.device("cuda", 1)).initial_seed() == 22
    with cuda.simulate():
        assert cuda.initial_seed() == 21  # that of another simulation's generators was the other's
        assert torch.rand(3, device="cuda").tolist() == expected


@pytest.mark.thorough
@pytest.mark.parametrize("late", [False, True])
def test_kernels_of_four_threads_have_the_results_of_one(late):
    steps = Steps(4)

    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        with cuda.simulate(devices=number % 2 + 1):
            steps()
            for _ in range(6):
                a, b = (rng.standard_normal((5 + number, 7)).astype(np.float32) for _ in range(2))
                x, y = (torch.from_numpy(each).to("cuda").requires_grad_() for each in (a, b))
                loss = (torch.exp(x) * y + (x @ y.T).sum(1, keepdim=True)).sum()
                loss.backward()
                np.testing.assert_allclose(loss.item(), (np.exp(a) * b).sum() + 7 * (a @ b.T).sum(), rtol=1e-3)
                np.testing.assert_allclose(x.grad.cpu().numpy(), np.exp(a) * b + 7 * b.sum(0), rtol=1e-3, atol=1e-3)

    with settings.simulate_late(late):
        at_once(*(lambda number=number: work(number) for number in range(4)))


@pytest.mark.slow
def test_eight_threads_enter_and_leave():
    steps = Steps(8)

    def work(number: int) -> None:
        steps()
        for cycle in range(50):
            with cuda.simulate(devices=1 + (number + cycle) % 4) as simulation:
                assert cuda.device_count() == 1 + (number + cycle) % 4
                x = torch.full((8,), float(number), device=f"cuda:{cuda.device_count() - 1}")
                side = cuda.Stream(x.device)
                x._data.buffer.record_stream(side)  # its memory is freed by way of marks
                circle = [x]
                circle.append(circle)
                assert x.cpu().tolist() == [number] * 8
                if cycle % 10 == 0:
                    assert (x + 1).cpu().tolist() == [number + 1] * 8
                    gc.collect()
                assert drivers.active() is simulation
            assert cuda.device_count() == 0

    at_once(*(lambda number=number: work(number) for number in range(8)))


def test_finalisers_of_one_simulation_may_run_in_a_kernel_of_another():
    """Each thread's work gives back the memory of the other's simulation, which must not wait for its kernels."""
    steps = Steps(2)
    simulations: list[Any] = [None, None]

    def work(number: int) -> None:
        with cuda.simulate() as simulation:
            simulations[number] = simulation
            steps()
            other = simulations[1 - number]

            def give_back() -> None:
                with other.share():
                    x = torch.empty(4, device="cuda")
                    x._data.buffer.record_stream(cuda.Stream())

            for _ in range(200):
                simulation.submit(cuda.current_stream(), give_back)
            cuda.synchronize()  # late work would run after the other simulation has ended
            steps()

    at_once(lambda: work(0), lambda: work(1))


def test_launches_of_two_threads_are_each_logged(capfd):
    steps = Steps(2)

    def work() -> None:
        with cuda.simulate():
            x = torch.ones(8, device="cuda")
            steps()
            for _ in range(10):
                x = x * 2

    with settings.debug(2):
        at_once(work, work)
        with cuda.simulate():
            assert (torch.ones(2, device="cuda") + 1).tolist() == [2, 2]
    times = re.findall(r"tritensor: mul .* on cuda:0: ([0-9.]+) [nuµm]?s", capfd.readouterr().err)
    assert len(times) == 20
