"""Indices whose bounds the host knows are not waited for; what is out of bounds is refused as it was, by name."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
import tritensor.nn.functional as F
from tritensor import cuda, settings
from tritensor.errors import BoundsError

from ...needs import HAS_TRITON
from ...runtime.interpreted_device import interpreted_device

if not HAS_TRITON:
    pytest.skip("runs kernels", allow_module_level=True)

import triton.language as tl

ROWS = 40


@pytest.fixture(autouse=True, params=["simulated", pytest.param("interpreted", marks=pytest.mark.slow)])
def device(request):
    with cuda.simulate() if request.param == "simulated" else interpreted_device():
        yield


def host(*shape, dtype=np.int64):
    return torch.from_numpy(np.random.default_rng(0).integers(0, ROWS, shape).astype(dtype))


# What makes indices of up to ROWS rows, by name.
SOURCES = {
    "a batch from the host": lambda table: host(8).cuda(),
    "of 32 bits, made 64 there": lambda table: host(8, dtype=np.int32).to("cuda").long(),
    "of 8 bits, made 64 on the way": lambda table: host(8, dtype=np.uint8).to("cuda", torch.int64),
    "pinned, read in place": lambda table: host(200_000).pin_memory().to("cuda", non_blocking=True)[:8],
    "a list": lambda table: torch.tensor([1, 5, 3], device="cuda"),
    "views of a batch": lambda table: host(3, 9).cuda()[:, :-1].reshape(-1)[::2],
    "a transposed view": lambda table: host(3, 9).cuda().T[1:].unbind(1)[2],
    "arange": lambda table: torch.arange(ROWS - 1, 1, -3, device="cuda"),
    "randperm": lambda table: torch.randperm(ROWS, device="cuda")[:7],
    "randint": lambda table: torch.randint(3, ROWS, (7,), device="cuda"),
    "argmax": lambda table: table.argmax(0),
    "max": lambda table: table.max(0).indices,
    "argsort": lambda table: table[:, 2].argsort(),
    "topk": lambda table: table.topk(2, 0).indices[1],
}


def step(table, index):
    """A training step that indexes by one new tensor in several ways."""
    loss = F.embedding(index, table).square().sum() + (table[index] * 2).sum()
    loss = loss + table.index_select(0, index).sum() + table.gather(0, index[:, None]).sum()
    torch.zeros_like(table).index_add(0, index, table[: len(index)]).sum().add(loss).backward()


@pytest.mark.thorough
def test_a_training_step_waits_for_unknown_indices_only():
    table, waits = torch.randn(ROWS, 4, device="cuda", requires_grad=True), {}
    for name, make in {**SOURCES, "computed": lambda table: host(8).cuda() // 2}.items():
        with cuda.transfers() as moved:
            step(table, make(table))
        waits[name] = moved.count("d2h"), moved.count("sync")
    assert waits == {**dict.fromkeys(SOURCES, (0, 0)), "computed": (1, 1)}


def changed(index):
    index[0] = 99
    return index


def by_its_base(index):
    view = index[1:]
    index.fill_(99)
    return view


@cuda.jit
def fill(out_ptr, value, n, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), value, mask=tl.arange(0, BLOCK) < n)


def by_a_kernel(index):
    fill[1](index.view(2, -1), 99, index.numel(), BLOCK=16)
    return index


def other_memory(index):
    view = index[:4]
    view += 99
    index.data = torch.zeros(4, dtype=torch.int64, device="cuda")
    assert torch.ones(1, device="cuda")[index].sum() == 4
    return view[:1]


def of_a_graph(index):
    source, graph = torch.zeros(4, dtype=torch.int64).pin_memory(), cuda.CUDAGraph()
    with cuda.graph(graph):
        index = source.to("cuda", non_blocking=True)
    source.fill_(99)
    graph.replay()
    return index


@pytest.mark.parametrize("change", [changed, by_its_base, by_a_kernel, other_memory, of_a_graph])
def test_what_was_known_goes_with_the_elements(change):
    with settings.simulate_late(False):
        index = change(torch.arange(8, device="cuda"))
        with pytest.raises(BoundsError, match="index 99 is out of bounds for dimension 0 with size 40"):
            torch.zeros(ROWS, device="cuda")[index]


def test_an_index_out_of_bounds_is_named_as_before():
    table, wide = torch.zeros(ROWS, 2, device="cuda"), torch.arange(50, device="cuda")
    for index, wrong in (
        (torch.tensor([3, 41]).cuda(), 41),
        (torch.arange(-41, 0, device="cuda"), -41),
        (wide[:3].as_strided((2,), (45,)), 45),
        (torch.randint(60, 61, (3,), device="cuda"), 60),
    ):
        with pytest.raises(BoundsError, match=f"index {wrong} is out of bounds for dimension 0 with size 40"):
            table[index]
    with pytest.raises(BoundsError, match="index out of range in self"):
        F.embedding(torch.tensor([ROWS]).cuda(), table)
    # bounds that are wider than the elements refuse none of them
    assert table[wide[:ROWS]].shape == (ROWS, 2)
    assert table[torch.randint(0, 1000, (0,), device="cuda")].shape == (0, 2)
