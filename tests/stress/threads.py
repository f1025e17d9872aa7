"""Threads that share leaves, devices and simulations; graphs that are deep; memory over many steps."""

from __future__ import annotations

import contextvars
import gc
import random
import sys
import threading
import tracemalloc
from collections import Counter
from collections.abc import Callable

import numpy as np

import tritensor as torch
from tritensor import nn

from ..needs import HAS_TRITON
from .scenarios import scenario, somewhere


def together(works: list[Callable[[], None]]) -> None:
    """Run functions at once, each in a thread and a copy of this context, to which a simulation belongs; raises the
    first error of them."""
    errors: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=contextvars.copy_context().run, args=(run, work)) for work in works]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a thread hangs"
    finally:
        sys.setswitchinterval(before)
    if errors:
        raise errors[0]


@scenario()
def shared_leaves(rng: random.Random) -> Counter[str]:
    """Threads run backward passes on one leaf: every gradient arrives."""
    with somewhere(rng) as device:
        few = device != "cpu"
        size, threads = rng.choice([1, 10, 300] if few else [1, 10, 300, 1000, 50_000]), rng.randint(2, 4 if few else 8)
        times = rng.randint(2, 4) if few else rng.randint(5, 60)
        x, ones = torch.zeros(size, device=device, requires_grad=True), torch.ones(size, device=device)

        def work() -> None:
            for _ in range(times):
                (x * ones).backward(ones)

        together([work] * threads)
        assert x.grad is not None
        assert (x.grad == threads * times).all(), "a gradient is lost"
    return Counter({f"backward passes on {device}": threads * times})


@scenario()
def shared_modules(rng: random.Random) -> Counter[str]:
    """Threads run one module forward and backward: each gets its own result."""
    with somewhere(rng) as device:
        model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).to(device)
        inputs = [torch.randn(8, 16, device=device) for _ in range(4)]
        with torch.no_grad():
            expected = [model(x).cpu().numpy().copy() for x in inputs]
        times = rng.randint(3, 12) if device == "cpu" else 1

        def work(position: int) -> Callable[[], None]:
            def run() -> None:
                for _ in range(times):
                    x = inputs[position].clone().requires_grad_()
                    out = model(x)
                    out.sum().backward()
                    np.testing.assert_array_equal(out.detach().cpu().numpy(), expected[position])

            return run

        together([work(position) for position in range(4)])
    return Counter({f"calls of a shared module on {device}": 4 * times})


@scenario(HAS_TRITON)
def simulations(rng: random.Random) -> Counter[str]:
    """Threads that each enter and leave simulations of their own."""

    def work(seed: int) -> Callable[[], None]:
        own = random.Random(seed)

        def run() -> None:
            for _ in range(3):
                count = own.randint(1, 3)
                with torch.cuda.simulate(devices=count):
                    assert torch.cuda.device_count() == count
                    x = torch.full((own.randint(1, 40),), 2.0, device=f"cuda:{count - 1}")
                    assert (x * x).sum().item() == 4 * x.numel()
            assert not torch.cuda.is_available() or torch.cuda.device_count()

        return run

    together([work(rng.random()) for _ in range(4)])  # type: ignore[arg-type]
    return Counter({"simulations": 12})


@scenario(HAS_TRITON)
def memory_of_a_device(rng: random.Random) -> Counter[str]:
    """Allocations until a simulated device is full: what is freed can be used again, and nothing is lost."""
    counts: Counter[str] = Counter()
    with torch.cuda.simulate(devices=1, memory=1 << 22):
        before = torch.cuda.memory_allocated()
        held: list[object] = []
        for _ in range(60):
            try:
                held.append(torch.empty(rng.randint(1, 1 << 18), device="cuda"))
                counts["allocations"] += 1
            except torch.cuda.OutOfMemoryError:
                counts["out of memory"] += 1
                for _ in range(rng.randint(1, len(held))):
                    held.pop(rng.randrange(len(held)))
        held.clear()
        assert torch.cuda.memory_allocated() == before, "memory of the device is lost"
    return counts


@scenario()
def deep_graphs(rng: random.Random) -> Counter[str]:
    """Chains of thousands of nodes and of views, changed in place at random links."""
    depth = rng.randint(1000, 5000)
    leaf = torch.ones(3, requires_grad=True)
    x = leaf
    for _ in range(depth):
        x = x + 1 if rng.random() < 0.9 else x * 1
    base = x * 1
    view = base
    factor = 1
    for _ in range(rng.randint(100, 1000)):
        view = view[:]
        if rng.random() < 0.01:
            view.mul_(2)
            factor *= 2
    (base.sum() + view.sum()).backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [2.0 * factor] * 3
    return Counter({"nodes": depth})


@scenario()
def memory_over_steps(rng: random.Random) -> Counter[str]:
    """Training steps without the cycle collector: memory stays as it is after the first ones."""
    with somewhere(rng) as device:
        steps = 400 if device == "cpu" else 4
        grown = training(rng, device, steps)
        assert grown < 20_000, f"{grown} bytes more after {steps} steps on {device}"
    return Counter({f"training steps on {device}": steps})


def training(rng: random.Random, device: str, steps: int) -> int:
    """How many bytes more are in use after some steps than before them."""
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x = torch.randn(4, 8, device=device)

    def step() -> None:
        hidden = model[0](x)
        hidden.retain_grad()
        loss = model[2](model[1](hidden)).pow(2).mean()
        optimizer.zero_grad(set_to_none=rng.random() < 0.5)
        loss.backward()
        optimizer.step()

    gc.collect()
    gc.disable()
    try:
        for _ in range(70 if device == "cpu" else 4):
            step()
        tracemalloc.start()
        for _ in range(20 if device == "cpu" else 2):
            step()
        before = in_use(device)
        for _ in range(steps):
            step()
        return in_use(device) - before
    finally:
        tracemalloc.stop()
        gc.enable()


def in_use(device: str) -> int:
    """Bytes in use, of the device first, because what runs simulated kernels leaves cycles on the host."""
    on_device = torch.cuda.memory_allocated() if device == "cuda" else 0
    if device == "cuda":
        gc.collect()
    return on_device + tracemalloc.get_traced_memory()[0]


@scenario()
def memory_over_20_000_steps(rng: random.Random) -> Counter[str]:
    """The same for long enough that a few bytes in each step would be seen."""
    steps = 20_000
    assert training(rng, "cpu", steps) < 100_000, "5 bytes more in each step"
    return Counter({"training steps": steps})
