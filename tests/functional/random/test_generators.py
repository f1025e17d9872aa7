"""Generators: their seeds and states, forks and threads, on every device."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest

import tritensor as torch
from tritensor.operators.generators import generator_of


def test_manual_seed_returns_the_cpus_generator_and_seeds_all(simulated) -> None:
    assert torch.manual_seed(7) is torch.default_generator
    assert torch.initial_seed() == 7 and torch.cuda.initial_seed() == 7
    expected = torch.rand(3)
    assert torch.equal(torch.rand(3, device="cuda:0").cpu(), expected)
    assert torch.equal(torch.rand(3, device="cuda:1").cpu(), expected)  # a generator of its own
    assert torch.manual_seed(-1).initial_seed() == 2**64 - 1


def test_cuda_has_seeds_and_states_of_its_own(simulated) -> None:
    torch.manual_seed(1)
    before = torch.initial_seed()
    torch.cuda.manual_seed(5)
    assert torch.initial_seed() == before and torch.cuda.initial_seed() == 5
    state = torch.cuda.get_rng_state()
    first = torch.rand(2, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.rand(2, device="cuda"), first)
    torch.cuda.manual_seed_all(6)
    assert torch.equal(torch.rand(2, device="cuda:0").cpu(), torch.rand(2, device="cuda:1").cpu())
    assert torch.cuda.get_rng_state("cuda:1").dtype is torch.uint8


def test_a_state_brings_the_sequence_back() -> None:
    generator = torch.Generator().manual_seed(2**64 - 3)
    torch.rand(5, generator=generator)
    state = generator.get_state()
    assert state.dtype is torch.uint8 and state.shape == (16,)
    other = generator.clone_state()
    copies = [copy.deepcopy(generator), pickle.loads(pickle.dumps(generator)), other]
    expected = torch.randn(4, generator=generator)
    for again in copies:
        assert torch.equal(torch.randn(4, generator=again), expected)
    assert torch.equal(torch.randn(4, generator=generator.set_state(state)), expected)
    state = torch.get_rng_state()
    expected = torch.rand(2)
    torch.set_rng_state(state)
    assert torch.equal(torch.rand(2), expected)


def test_fork_rng_puts_the_generators_back() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    with torch.random.fork_rng():
        torch.manual_seed(9)
        torch.rand(2)
    assert torch.equal(torch.rand(2), expected)
    with torch.random.fork_rng(enabled=False):
        torch.manual_seed(9)
    assert torch.initial_seed() == 9


def test_seeds_that_nobody_can_foresee_differ() -> None:
    generator = torch.Generator()
    assert generator.initial_seed() == 67280421310721
    assert repr(generator) == "<tritensor.Generator on cpu, seed 67280421310721, 0 calls>"
    assert generator.seed() != generator.seed() and generator.seed() == generator.initial_seed()
    assert torch.seed() == torch.initial_seed() != torch.seed()


def test_threads_never_share_a_call() -> None:
    generator, calls = torch.Generator(), []
    threads = [threading.Thread(target=lambda: calls.extend(generator.advance() for _ in range(500))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(calls)) == len(calls) == 4000


def test_a_generator_of_another_device_is_refused(simulated) -> None:
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda'"):
        torch.rand(2, generator=torch.Generator("cuda:1"))
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        torch.zeros(2, device=simulated).normal_(generator=torch.Generator())
    assert torch.rand(2, generator=torch.Generator(device="cuda:1"), device=simulated).shape == (2,)
    assert torch.Generator("cuda").device == torch.device("cuda:0")


def test_default_generators_are_made_once(simulated) -> None:
    torch.manual_seed(11)
    assert generator_of(simulated) is generator_of(simulated)
    assert generator_of(simulated).initial_seed() == 11
    assert generator_of(torch.device("cpu")) is torch.default_generator
