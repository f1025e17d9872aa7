"""Simulations that are handed over: to threads of the user, to those of the library, to asyncio tasks, to processes."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda, drivers, nn
from tritensor.errors import DeviceError
from tritensor.host import threads
from tritensor.operators.generators import generator_of
from tritensor.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from .interleaving import PATIENCE, Steps, at_once, no_devices


@pytest.fixture(autouse=True)
def _the_machine_has_none():
    with no_devices():
        yield


def test_a_shared_simulation_is_the_same_in_another_thread():
    with cuda.simulate(devices=3) as simulation:
        cuda.set_device(2)
        x = torch.ones(4, device="cuda")
        torch.manual_seed(8)

        def other() -> torch.Tensor:
            assert cuda.device_count() == 0
            with simulation.share() as shared:
                assert shared is drivers.active() is simulation
                assert cuda.device_count() == 3
                assert cuda.current_device() == 0  # as in every new thread
                y = x * 3
                with cuda.simulate(), simulation.share():
                    assert cuda.device_count() == 3
                assert drivers.active() is simulation
                assert generator_of(y.device).initial_seed() == 8
            assert cuda.device_count() == 0
            return y

        (y,) = at_once(other)
        assert (x + y).cpu().tolist() == [4] * 4  # the simulation goes on
        assert cuda.current_device() == 2


def test_a_copied_context_hands_a_simulation_over():
    with cuda.simulate(devices=2) as simulation:
        found = []
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(lambda: found.append(drivers.active()),))
        thread.start()
        thread.join()
        assert found == [simulation]


def test_one_cannot_share_what_has_ended():
    with cuda.simulate() as simulation:
        context = contextvars.copy_context()
        entered, ended = threading.Event(), threading.Event()

        def other() -> None:
            with simulation.share():
                entered.set()
                ended.wait(PATIENCE)
                with pytest.raises(DeviceError, match=r"^CUDA error: the simulated device is gone"):
                    torch.ones(2, device="cuda")

        thread = threading.Thread(target=other)
        thread.start()
        entered.wait(PATIENCE)
    ended.set()
    thread.join()
    with pytest.raises(DeviceError, match=r"^CUDA error: the simulated device is gone"), simulation.share():
        pass
    with pytest.raises(DeviceError, match=r"^CUDA error: the simulated device is gone"):
        context.run(torch.ones, 2, device="cuda")
    assert cuda.device_count() == 0


def test_a_thread_without_a_simulation_is_told_how_to_get_one():
    with cuda.simulate() as simulation:
        x = torch.ones(2, device="cuda")

        def other() -> None:
            with pytest.raises(DeviceError, match=r"(?s)^Found no NVIDIA driver.*another thread.*share\(\)"):
                x + x
            assert x.cpu().tolist() == [1, 1]  # the memory can be read everywhere

        at_once(other)
        assert drivers.active() is simulation
    with pytest.raises(DeviceError) as caught:
        torch.ones(2, device="cuda")
    assert "share()" not in str(caught.value)


def test_tensors_of_two_simulations_are_not_mixed():
    with cuda.simulate() as outer:
        x = torch.ones(2, device="cuda")
        with cuda.simulate(devices=2):
            y = torch.ones(2, device="cuda")
            for use in (lambda: x + y, lambda: y + x, lambda: x.to("cuda:1"), lambda: y.copy_(x)):
                with pytest.raises(DeviceError, match=r"(?s)belongs to another simulation.*share\(\)"):
                    use()
            with outer.share():
                assert (x + x).cpu().tolist() == [2, 2]
        assert (x + x).cpu().tolist() == [2, 2]


def test_simulations_of_one_thread_may_end_in_any_order():
    first, second = cuda.simulate(devices=1), cuda.simulate(devices=2)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert cuda.device_count() == 2
    second.__exit__(None, None, None)
    assert cuda.device_count() == 0


# ---- the library's own threads


def test_data_parallel_works_in_the_simulation_of_its_caller():
    torch.manual_seed(0)
    reference = nn.Linear(4, 3)
    value = torch.arange(24.0).reshape(6, 4) / 24
    expected = reference(value)
    steps = Steps(2)

    def work(count: int) -> Any:
        with cuda.simulate(devices=count):
            layer = nn.Linear(4, 3)
            layer.load_state_dict(reference.state_dict())
            model = nn.DataParallel(layer.to("cuda"))
            assert model.device_ids == list(range(count))
            steps()
            out = model(value.to("cuda"))
            steps()
            out.sum().backward()
            assert layer.bias.grad.cpu().tolist() == [6, 6, 6]
            return out.detach().cpu().numpy()

    for found in at_once(lambda: work(2), lambda: work(3)):
        np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-5, atol=1e-6)


class OnDevice(Dataset):
    """Examples that are made on a device of the worker's simulation."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> Any:
        assert get_worker_info() is not None
        return torch.full((2,), float(index), device=f"cuda:{cuda.device_count() - 1}") + 1


class StreamOnDevice(IterableDataset):
    def __iter__(self):
        yield torch.full((2,), float(cuda.device_count()), device="cuda")


@pytest.mark.parametrize("persistent", [False, True])
def test_a_loaders_threads_work_in_the_simulation_of_its_caller(persistent):
    options = {"num_workers": 2, "multiprocessing_context": "thread", "persistent_workers": persistent}
    loader = DataLoader(OnDevice(), batch_size=4, **options)
    for count in (2, 3):  # workers that persist are started anew for another simulation
        with cuda.simulate(devices=count):
            for _ in range(2):
                batches = list(loader)
                assert {str(batch.device) for batch in batches} == {f"cuda:{count - 1}"}
                assert torch.cat(batches)[:, 0].cpu().tolist() == [*range(1, 9)]
    steps = Steps(2)

    def work(count: int) -> list[float]:
        with cuda.simulate(devices=count):
            steps()
            stream = DataLoader(StreamOnDevice(), batch_size=1, **options)
            return [batch[0, 0].item() for batch in stream]

    assert at_once(lambda: work(1), lambda: work(4)) == [[1, 1], [4, 4]]


def test_the_cpus_threads_know_no_simulation():
    """They compute on arrays; the first simulation must not be theirs for ever either."""
    with cuda.simulate():
        torch.exp(torch.ones(1 << 20)).sum()
        assert torch.ones(2).to("cuda").exp().cpu().numpy().shape == (2,)
    assert threads.quietly(drivers.active) is None


# ---- asyncio


def test_every_task_has_its_own_simulation():
    async def work(count: int) -> list[Any]:
        with cuda.simulate(devices=count):
            cuda.set_device(count - 1)
            await asyncio.sleep(0)
            found: list[Any] = [cuda.device_count(), cuda.current_device()]
            x = torch.full((2,), float(count), device="cuda")
            await asyncio.sleep(0)
            found.append((x + 1).tolist())
            await asyncio.sleep(0.001 * count)
            found.append(cuda.memory_allocated() > 0)

            async def inner() -> int:
                return cuda.device_count()

            found.append(await asyncio.create_task(inner()))  # a task begins where it was made
            found.append(await asyncio.to_thread(cuda.device_count))
        await asyncio.sleep(0)
        return [*found, cuda.device_count()]

    async def main() -> list[Any]:
        return await asyncio.gather(*(work(count) for count in (1, 3, 2)))

    assert asyncio.run(main()) == [[c, c - 1, [c + 1, c + 1], True, c, c, 0] for c in (1, 3, 2)]
    assert cuda.device_count() == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python warns of forking beside threads
def test_a_process_forked_beside_a_running_kernel_can_simulate():
    steps, done = Steps(2), threading.Event()

    def running() -> None:
        with cuda.simulate() as simulation:

            def kernel() -> None:
                steps()
                done.wait(0.2)

            simulation.submit(cuda.current_stream(), kernel)

    def forking() -> int:
        steps()  # the other thread holds the simulators' lock now
        child = os.fork()
        if child == 0:
            right = False
            try:
                with cuda.simulate():
                    right = torch.ones(2, device="cuda").cpu().tolist() == [1, 1]
            finally:
                os._exit(0 if right else 1)
        return os.waitpid(child, 0)[1]

    assert at_once(running, forking)[1] == 0
