"""One rank of a cluster: prices, clocks, memory, messages beside those of real ranks, and the command."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import tritensor as torch
import tritensor.distributed as dist
from tritensor import cuda, nn
from tritensor.cuda.profiling import card
from tritensor.cuda.profiling.pricing import Prices, _tiles
from tritensor.distributed.cluster import charts, simulate, simulation
from tritensor.distributed.cluster.network import Network, network
from tritensor.distributed.device_mesh import init_device_mesh
from tritensor.distributed.fsdp import fully_shard
from tritensor.distributed.rows import Rows
from tritensor.drivers.counted import CountedDevice, replayed
from tritensor.errors import ArgumentError, DeviceError, OutOfMemoryError
from tritensor.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from ..needs import needs_triton
from .jobs import launch, needs_mpi

ROOT = Path(__file__).parents[2]
KINDS = {2: ["ddp", "fsdp", "tp"], 3: ["ddp", "fsdp"], 4: ["ddp", "fsdp", "hsdp", "tp"], 5: ["ddp", "fsdp"]}
KINDS |= {6: ["ddp", "fsdp", "hsdp"], 7: ["ddp", "fsdp"], 8: ["ddp", "fsdp", "hsdp", "tp"]}


@needs_mpi
@needs_triton
@pytest.mark.thorough
@pytest.mark.parametrize("ranks", KINDS)
def test_a_counted_rank_sends_what_real_ranks_do(ranks):
    done = launch(ranks, "counted.py", *KINDS[ranks], OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == KINDS[ranks]


# ---- the network ---------------------------------------------------------------------------------------------------


def test_times_of_messages_are_those_that_were_measured():
    """stas00/ml-engineering: all_reduce of 16 GB on 8 H200, and on 4 nodes of 8."""
    links = network("ib-400", 8, card("h200"))
    for ranks, measured in ((range(8), 368), (range(32), 365)):
        seconds = links.seconds("all_reduce", 16 * 10**9, ranks)
        bus = 16 * 2 * (len(ranks) - 1) / len(ranks) / seconds
        assert math.isclose(bus, measured, rel_tol=0.02)


def test_times_of_messages_follow_ranks_and_sizes():
    links = Network("ib-400", 8, 450e9, 50e9)
    one = links.seconds("all_gather", 1 << 30, range(8))
    assert links.seconds("all_gather", 1 << 30, [3]) == 0.0
    assert links.seconds("all_gather", 2 << 30, range(8)) > 1.9 * one
    assert links.seconds("all_reduce", 1 << 30, range(8)) > 1.9 * one
    # of 16 ranks of two machines all 8 cards send; of 2 ranks of two machines one
    assert links.seconds("all_gather", 1 << 30, [0, 8]) > 4 * links.seconds("all_gather", 1 << 30, range(16))
    # small messages of many ranks go by a tree
    assert links.seconds("all_reduce", 8, range(1024)) < 300e-6 < links.seconds("all_gather", 8, range(1024))
    assert links.seconds("broadcast", 1 << 30, range(8)) > one
    assert links.seconds("message", 1 << 30, [0, 8]) > links.seconds("message", 1 << 30, [0, 1])
    assert links.seconds("message", 1 << 30, [0, 8]) > (1 << 30) / 50e9


@pytest.mark.parametrize("name", ["ib", "ib-", "400", "ib-0", "ib-fast"])
def test_networks_are_named_by_their_speed(name):
    with pytest.raises(ArgumentError, match="no interconnect is called"):
        network(name, 8, card("h100"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"card": "tpu"}, "no card is called 'tpu'"),
        ({"nodes": 0}, "no rank 0 in 0 nodes of 8 GPUs"),
        ({"rank": 8}, "no rank 8 in 1 nodes of 8 GPUs"),
        ({"efficiency": 0}, "efficiency must be more than 0"),
    ],
)
def test_clusters_that_there_are_not(arguments, words):
    with pytest.raises(ArgumentError, match=words), simulate(**arguments):
        pass


def test_without_triton_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(simulation, "find_spec", lambda name: None)
    with pytest.raises(DeviceError, match="pip install 'tritensor\\[triton\\]'"), simulate():
        pass


# ---- clocks --------------------------------------------------------------------------------------------------------


def test_streams_have_clocks():
    seen = []
    price = iter([3.0, 5.0, 2.0])
    device = CountedDevice(1 << 30, (9, 0), "x", lambda *_: ("k", next(price)), lambda *each: seen.append(each), (1, 1))
    device.efficiency = 0.5
    one, other = (SimpleNamespace(handle=device.open_queue(0, 0)) for _ in range(2))
    device.launch(one, None)
    mark = device.mark(one.handle, timing=True)
    device.launch(one, None)
    device.wait(other.handle, mark)
    device.spend(other.handle, "send", 1.0)
    assert (device.clock(one.handle), device.clock(other.handle)) == (16.0, 7.0)
    assert seen[2][0] == "waits for k"
    device.queue_synchronize(other.handle)
    assert device.host == 7.0
    device.launch(other, None)
    last = device.mark(other.handle)
    assert (device.elapsed(mark, last), device.now()) == (5000.0, 16.0)
    assert replayed(device.log, 0.5) == 16.0
    assert replayed(device.log, 1.0) == 8.0
    device.mark_synchronize(last)
    assert device.host == 11.0
    device.close()


def test_rows_are_the_parts_of_one_tensor():
    rows = Rows(torch.arange(6).view(3, 2))
    assert (len(rows), rows[1].tolist(), rows[-1].tolist()) == (3, [2, 3], [4, 5])
    assert [each.tolist() for each in rows[1:]] == [[2, 3], [4, 5]]
    with pytest.raises(IndexError):
        rows[3]


# ---- a step --------------------------------------------------------------------------------------------------------


def train(steps=2, width=256, batch=64, shard=True):
    dist.init_process_group("nccl")
    model = nn.Sequential(*(nn.Linear(width, width, bias=False, device="cuda") for _ in range(3))).bfloat16()
    if shard:
        mesh = init_device_mesh("cuda", (dist.get_world_size(),))
        for layer in model:
            fully_shard(layer, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        model(torch.ones(batch, width, device="cuda", dtype=torch.bfloat16)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return model


@needs_triton
def test_a_step_is_counted():
    with simulate(nodes=2, gpus_per_node=4, card="h100") as cluster:
        assert (os.environ["RANK"], os.environ["WORLD_SIZE"], os.environ["LOCAL_WORLD_SIZE"]) == ("0", "8", "4")
        train()
        assert (dist.get_rank(), dist.get_world_size(), cuda.device_count()) == (0, 8, 1)
        # of small messages the result is as if all ranks had sent the same
        total, objects = torch.ones(3).cuda(), [None] * 8
        dist.all_reduce(total)
        dist.all_gather_object(objects, "own")
        dist.barrier()
        assert (total.tolist(), objects) == ([8.0] * 3, ["own"] * 8)
    assert not dist.is_initialized()
    report = cluster.report
    part = 256 * 256 * 2 // 8
    assert report.memory["parameters"] == 3 * part
    assert report.memory["optimizer state"] == 3 * part
    # each layer is gathered once, as a root, and its gradient reduced
    assert report.sent == {"all_gather_into_tensor": 7 * part * 3, "reduce_scatter_tensor": 7 * part * 3}
    assert report.seconds > report.computing > 0
    assert math.isclose(report.seconds_at(simulation.EFFICIENCY), report.seconds)
    assert report.seconds_at(0.1) > report.seconds
    assert 0 < report.mfu < 1 > report.hfu > 0
    assert report.peak_memory >= sum(report.memory.values()) > 0
    shown = str(report)
    for words in ("8 x h100 on 2 nodes, ib-400", "parameters", "reduce_scatter_tensor at ", "in the way", "test_c"):
        assert words in shown, shown


@needs_triton
def test_a_step_that_does_not_fit_says_so():
    with (
        pytest.raises(OutOfMemoryError, match="CUDA out of memory"),
        simulate(memory="1GiB"),
    ):
        torch.empty(1 << 29, device="cuda")
    assert not dist.is_initialized()


@needs_triton
def test_what_is_larger_than_this_machine_is_made_in_no_time():
    with simulate(card="h200"):
        x = torch.zeros(30 << 30, dtype=torch.bfloat16, device="cuda")
        assert cuda.memory_allocated() >= 60 << 30
        assert x[-1].item() == 0


def test_steps_end_with_an_optimizer():
    with simulate() as cluster, pytest.raises(DeviceError, match="no training step has ended"):
        _ = cluster.report


@needs_triton
def test_two_optimizers_make_one_step():
    with simulate() as cluster:
        dist.init_process_group("nccl")
        x, y = (nn.Parameter(torch.ones(64, device="cuda")) for _ in range(2))
        optimizers = [torch.optim.SGD([each], lr=0.1) for each in (x, y)]
        for _ in range(2):
            dist.all_reduce(x.detach())
            (x * y).sum().backward()
            for each in optimizers:
                each.step()
    assert cluster.steps == 2
    assert [each.operator for each in cluster.report.collectives] == ["all_reduce"]


def test_every_optimizer_has_hooks():
    seen = []
    before = register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: seen.append("before"))
    behind = register_optimizer_step_post_hook(lambda optimizer, args, kwargs: seen.append("behind"))
    x = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([x], lr=0.1)
    optimizer.step()
    before.remove()
    behind.remove()
    optimizer.step()
    assert seen == ["before", "behind"]


@needs_mpi
@pytest.mark.thorough
def test_gradients_that_are_kept_whole_are_added_in_the_dtype_of_averages():
    """256 + 1 is 256 in bfloat16, in which the gradients come."""
    done = launch(1, "kept_gradients.py")
    assert (done.returncode, done.stdout) == (0, "257.0\n"), done.stderr


@needs_triton
@pytest.mark.thorough
def test_memory_of_a_message_is_held_until_something_waits():
    with simulate() as cluster:
        dist.init_process_group("nccl")
        x = torch.ones(1 << 20, device="cuda")
        work = dist.all_reduce(x, async_op=True)
        stream = cluster.driver.cluster and dist.group.WORLD.device.stream
        work.wait()
        assert stream.arena not in x._data.buffer.users
        dist.all_reduce(x, async_op=True)  # nothing waits for it
        dist.group.WORLD._running.clear()
        assert stream.arena in x._data.buffer.users


@needs_triton
@pytest.mark.thorough
@pytest.mark.parametrize(("rows", "cols", "depth", "batches"), [(512, 512, 2048, 1), (256, 256, 2048, 3)])
def test_cut_products_cost_what_whole_ones_do(monkeypatch, rows, cols, depth, batches):
    def priced():
        with simulate() as cluster:
            monkeypatch.setattr(cluster, "prices", Prices(cluster.card))
            x = torch.zeros(batches, rows, depth, dtype=torch.bfloat16, device="cuda")
            y = torch.zeros(batches, depth, cols, dtype=torch.bfloat16, device="cuda")
            x @ y
            return next(price for price in cluster.prices.known.values() if price.operations)

    cut = priced()
    monkeypatch.setattr("tritensor.cuda.profiling.pricing._tiles", lambda request: None)
    whole = priced()
    assert cut.operations == whole.operations == 2 * batches * rows * cols * depth
    assert math.isclose(cut.seconds, whole.seconds, rel_tol=0.05)


def test_only_products_are_cut():
    assert _tiles(SimpleNamespace(kernel=SimpleNamespace(arguments=("rows", "cols")), constants={})) is None


# ---- the command ---------------------------------------------------------------------------------------------------

PROGRAM = """
import argparse
import torch
parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=8)
batch = parser.parse_args().batch
torch.distributed.init_process_group("nccl")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64, device="cuda"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1000):
    model(torch.ones(batch, 64, device="cuda")).sum().backward()
    optimizer.step()
raise SystemExit("not reached")
"""


def command(*words):
    return subprocess.run([sys.executable, "-m", "tritensor", "cluster", *words], capture_output=True, text=True)


@needs_triton
@pytest.mark.thorough
def test_the_command_draws_clusters_of_several_sizes(tmp_path):
    pytest.importorskip("matplotlib")
    script, chart = tmp_path / "train.py", tmp_path / "chart.png"
    script.write_text(PROGRAM)
    done = command("--nodes", "1,4", "--vary", "batch=8,16", "--chart", str(chart), "--report", str(script))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    names = [line.split("  ")[0] for line in lines[-6:-2]]
    assert names == ["8, batch=8", "8, batch=16", "32, batch=8", "32, batch=16"]
    assert "all_reduce" in done.stdout
    assert chart.stat().st_size > 10_000


@needs_triton
@pytest.mark.thorough
def test_the_command_says_what_did_not_work(tmp_path):
    script = tmp_path / "train.py"
    script.write_text('import torch\nx = torch.empty(1 << 30, device="cuda")\n')
    done = command("--memory", "1GB", str(script))
    assert (done.returncode, "CUDA out of memory" in done.stdout) == (1, True)
    script.write_text("raise ValueError('mine')\n")
    done = command(str(script))
    assert (done.returncode, "the program failed" in done.stdout, "mine" in done.stderr) == (1, True, True)
    assert "expected numbers" in command("--nodes", "some", str(script)).stderr


@needs_triton
@pytest.mark.thorough
def test_charts(tmp_path):
    pytest.importorskip("matplotlib")
    with simulate() as cluster:
        train(shard=False)
    report = cluster.report
    assert math.isclose(sum(charts.times(report)), report.seconds, rel_tol=1e-6)
    assert charts.draw_memory(report, tmp_path / "memory.png").stat().st_size > 5_000
    assert charts.draw([("8", report), ("16", report)], tmp_path / "both.svg").exists()


@needs_mpi
@pytest.mark.thorough
@pytest.mark.parametrize("options", [["--recompute", "1"], ["--tp", "2"], ["--copies", "2", "--accumulate", "2"]])
def test_the_program_that_is_predicted_trains(options):
    words = [
        sys.executable,
        "-m",
        "tritensor",
        "launch",
        "-n",
        "2",
        "examples/train_llama.py",
        "--steps",
        "3",
        *options,
    ]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    losses = [float(line.split()[3].rstrip(",")) for line in done.stdout.splitlines()]
    assert (done.returncode, len(losses)) == (0, 3), done.stderr
    assert all(abs(loss - math.log(256)) < 0.2 for loss in losses)
