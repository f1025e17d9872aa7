"""Random schedules of collectives, messages and objects, each the same in all ranks, which compare with NumPy.

mpiexec -n 3 python schedule.py FIRST_SEED COUNT DEVICE
"""

from __future__ import annotations

import random
import sys
import time

import ml_dtypes
import numpy as np

import tritensor as torch
import tritensor.distributed as dist
from tritensor.distributed import ReduceOp

FIRST, COUNT, DEVICE = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
DTYPES = {
    torch.bool: np.bool_,
    torch.uint8: np.uint8,
    torch.int8: np.int8,
    torch.int32: np.int32,
    torch.int64: np.int64,
    torch.float16: np.float16,
    torch.bfloat16: ml_dtypes.bfloat16,
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.complex64: np.complex64,
}
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.uint8, torch.int8, torch.int32, torch.int64)
DIGESTS = []
SHAPES = [(), (1,), (0,), (7,), (2, 3), (3, 0, 2), (5, 4, 3), (1000,), (70_001,)]


def drawn(key, shape, dtype):
    """What a rank brings to a step: the same in all ranks that ask."""
    rng = np.random.default_rng(key)
    if dtype is torch.bool:
        return rng.random(shape) < 0.5
    if dtype.is_complex:
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(DTYPES[dtype])
    if dtype.is_floating_point:
        return np.asarray(rng.standard_normal(shape)).astype(DTYPES[dtype])
    return rng.integers(0, 5, shape).astype(DTYPES[dtype])


def tensor(array, dtype, how=0):
    """A tensor on this rank's device: contiguous, a transpose, every second element, or behind others."""
    array = np.asarray(array)
    wide = array.astype(np.float32) if dtype is torch.bfloat16 else array
    if how == 1 and array.ndim > 1:
        return torch.tensor(wide.T.copy(), dtype=dtype, device=DEVICE).mT if array.ndim == 2 else tensor(array, dtype)
    if how == 2 and array.ndim:
        twice = torch.tensor(np.repeat(wide, 2, axis=0), dtype=dtype, device=DEVICE)
        return twice[::2]
    return torch.tensor(wide, dtype=dtype, device=DEVICE)


def host(x):
    x = x.detach().cpu()
    return (x.float() if x.dtype is torch.bfloat16 else x).numpy()


def reduced(arrays, op, dtype):
    """The result of a reduction: sums in the widest type, and rounded once."""
    if dtype is torch.bool:
        return {"SUM": np.logical_or, "MAX": np.logical_or, "PRODUCT": np.logical_and, "MIN": np.logical_and}[
            op.name
        ].reduce(arrays)
    if dtype.is_floating_point or dtype.is_complex:
        wide = [a.astype(np.complex128 if dtype.is_complex else np.float64) for a in arrays]
        total = {"SUM": np.sum, "AVG": np.mean, "PRODUCT": np.prod, "MIN": np.min, "MAX": np.max}[op.name](
            np.stack(wide), axis=0
        )
        return np.asarray(total)
    if op is ReduceOp.AVG:
        total = np.stack(arrays).sum(axis=0, dtype=arrays[0].dtype)
        return np.trunc(total / len(arrays)).astype(total.dtype)
    name = {"SUM": "add", "PRODUCT": "multiply", "MIN": "minimum", "MAX": "maximum"}.get(op.name)
    name = name or {"BAND": "bitwise_and", "BOR": "bitwise_or", "BXOR": "bitwise_xor"}[op.name]
    return getattr(np, name).reduce(np.stack(arrays), axis=0, dtype=arrays[0].dtype)


EPS = {torch.float16: 1e-3, torch.bfloat16: 8e-3, torch.float32: 1e-6, torch.complex64: 1e-6, torch.float64: 1e-14}


def same(x, expected, dtype, what):
    found, expected = host(x), np.asarray(expected)
    assert found.shape == expected.shape, (what, found.shape, expected.shape)
    if dtype in EPS:
        wide = np.complex128 if dtype.is_complex else np.float64
        tiny = EPS[dtype] * 8
        np.testing.assert_allclose(found.astype(wide), expected.astype(wide), rtol=EPS[dtype], atol=tiny, err_msg=what)
    else:
        np.testing.assert_array_equal(found, expected, err_msg=what)


class Schedule:
    """One schedule: `common` draws what all ranks do, `own` what this rank decides for itself."""

    def __init__(self, seed, rank, size, groups):
        self.seed, self.rank, self.size, self.groups = seed, rank, size, groups
        self.common, self.own = random.Random(seed), random.Random(f"{seed} {rank}")
        self.running = []
        self.step = 0

    def run(self):
        for step in range(self.common.randint(10, 30)):
            self.step = step
            group, members = self.common.choice(self.groups)
            names = [name for name in dir(self) if name.startswith("do_")]
            do = getattr(self, self.common.choice(names))
            dtype = self.common.choice(list(DTYPES))
            shape = self.common.choice(SHAPES)
            self.background = self.common.random() < 0.6
            root, draws = self.common.randrange(len(members)), self.common.getrandbits(32)
            if self.own.random() < 0.05:
                time.sleep(self.own.random() * 0.005)
            if self.rank in members:
                self.what = f"schedule {self.seed}, step {self.step}: {do.__name__} {dtype} {shape} on {members}"
                do(group, members, members.index(self.rank), dtype, shape, root, random.Random(draws))
            while self.running and self.own.random() < 0.3:
                self.end(self.own.randrange(len(self.running)))
        while self.running:
            self.end(self.own.randrange(len(self.running)))

    def end(self, place):
        work, check = self.running.pop(place)
        if self.own.random() < 0.3:
            work.is_completed()
        work.wait()
        check()

    def started(self, work, check):
        """Check a result now, or when its work is waited for."""
        assert (work is not None) is self.background, self.what
        if work is None:
            check()
        else:
            self.running.append((work, check))

    def inputs(self, members, dtype, shape, more=0):
        return [drawn([self.seed, self.step, rank, more], shape, dtype) for rank in members]

    def an_op(self, dtype, draws):
        if dtype is torch.bool:
            return draws.choice([ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX])
        if dtype.is_complex:
            return draws.choice([ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.AVG])
        ops = [ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX]
        more = [ReduceOp.AVG] if dtype in FLOATS else [ReduceOp.AVG, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR]
        return draws.choice(ops + more)

    # ---- collectives ------------------------------------------------------------------------------------------

    def do_all_reduce(self, group, members, own, dtype, shape, root, draws):
        arrays, op = self.inputs(members, dtype, shape), self.an_op(dtype, draws)
        x, what, version = tensor(arrays[own], dtype, draws.randrange(3)), self.what, 0
        version = x._version
        work = dist.all_reduce(x, op, group=group, async_op=self.background)

        def check():
            same(x, reduced(arrays, op, dtype), dtype, what)
            assert x._version > version, what
            if group is None:
                DIGESTS.append(host(x).tobytes())

        self.started(work, check)

    def do_reduce(self, group, members, own, dtype, shape, root, draws):
        arrays, op = self.inputs(members, dtype, shape), self.an_op(dtype, draws)
        x, what = tensor(arrays[own], dtype, draws.randrange(3)), self.what
        named = draws.choice([{"dst": members[root]}, {"group_dst": root}])
        work = dist.reduce(x, op=op, group=group, async_op=self.background, **named)
        self.started(work, lambda: same(x, reduced(arrays, op, dtype) if own == root else arrays[own], dtype, what))

    def do_broadcast(self, group, members, own, dtype, shape, root, draws):
        arrays = self.inputs(members, dtype, shape)
        x, what = tensor(arrays[own], dtype, draws.randrange(3)), self.what
        named = draws.choice([{"src": members[root]}, {"group_src": root}])
        work = dist.broadcast(x, group=group, async_op=self.background, **named)
        self.started(work, lambda: same(x, arrays[root], dtype, what))

    def do_all_gather(self, group, members, own, dtype, shape, root, draws):
        arrays, what = self.inputs(members, dtype, shape), self.what
        x = tensor(arrays[own], dtype, draws.randrange(3))
        parts = [tensor(np.zeros_like(arrays[own]), dtype, draws.randrange(3)) for _ in members]
        if draws.random() < 0.2:
            parts[own] = x
        work = dist.all_gather(parts, x, group=group, async_op=self.background)
        self.started(work, lambda: [same(p, a, dtype, what) for p, a in zip(parts, arrays, strict=True)])

    def do_all_gather_into_tensor(self, group, members, own, dtype, shape, root, draws):
        arrays, what = self.inputs(members, dtype, shape), self.what
        whole = np.stack(arrays) if not shape or draws.random() < 0.5 else np.concatenate(arrays)
        y = tensor(np.zeros_like(whole), dtype)
        work = dist.all_gather_into_tensor(y, tensor(arrays[own], dtype), group=group, async_op=self.background)
        self.started(work, lambda: same(y, whole, dtype, what))

    def do_gather(self, group, members, own, dtype, shape, root, draws):
        arrays, what = self.inputs(members, dtype, shape), self.what
        parts = [tensor(np.zeros_like(arrays[own]), dtype, draws.randrange(3)) for _ in members]
        parts = parts if own == root else None
        named = draws.choice([{"dst": members[root]}, {"group_dst": root}])
        work = dist.gather(tensor(arrays[own], dtype), parts, group=group, async_op=self.background, **named)
        self.started(work, lambda: [same(p, a, dtype, what) for p, a in zip(parts or (), arrays, strict=False)])

    def do_scatter(self, group, members, own, dtype, shape, root, draws):
        arrays, what = self.inputs(members, dtype, shape), self.what
        x = tensor(np.zeros_like(arrays[own]), dtype, draws.randrange(3))
        parts = [tensor(a, dtype, draws.randrange(3)) for a in arrays] if own == root else None
        named = draws.choice([{"src": members[root]}, {"group_src": root}])
        work = dist.scatter(x, parts, group=group, async_op=self.background, **named)
        self.started(work, lambda: same(x, arrays[own], dtype, what))

    def do_reduce_scatter(self, group, members, own, dtype, shape, root, draws):
        op, what, single = self.an_op(dtype, draws), self.what, draws.random() < 0.5 and shape
        brought = [self.inputs(members, dtype, shape, more) for more in range(len(members))]  # [part][member]
        expected = reduced(brought[own], op, dtype)
        x = tensor(np.zeros_like(brought[0][0]), dtype, draws.randrange(3))
        mine = [brought[part][own] for part in range(len(members))]
        if single:
            whole = tensor(draws.choice([np.stack, np.concatenate])(mine), dtype)
            work = dist.reduce_scatter_tensor(x, whole, op, group=group, async_op=self.background)
        else:
            parts = [tensor(a, dtype, draws.randrange(3)) for a in mine]
            work = dist.reduce_scatter(x, parts, op, group=group, async_op=self.background)
        self.started(work, lambda: same(x, expected, dtype, what))

    def do_all_to_all(self, group, members, own, dtype, shape, root, draws):
        count, what = len(members), self.what
        sizes = [[draws.randrange(5) for _ in range(count)] for _ in range(count)]  # [from][to]
        rows = [
            drawn([self.seed, self.step, rank], (sum(sizes[place]), 3), dtype) for place, rank in enumerate(members)
        ]
        pieces = [np.split(row, np.cumsum(size)[:-1]) for row, size in zip(rows, sizes, strict=True)]
        expected = [pieces[other][own] for other in range(count)]
        if draws.random() < 0.5:
            y = tensor(np.zeros_like(np.concatenate(expected)), dtype)
            splits = [len(a) for a in expected], sizes[own]
            work = dist.all_to_all_single(y, tensor(rows[own], dtype), *splits, group=group, async_op=self.background)
            self.started(work, lambda: same(y, np.concatenate(expected), dtype, what))
            return
        ys = [tensor(np.zeros_like(a), dtype) for a in expected]
        xs = [tensor(a, dtype, draws.randrange(2)) for a in pieces[own]]
        work = dist.all_to_all(ys, xs, group=group, async_op=self.background)
        self.started(work, lambda: [same(y, a, dtype, what) for y, a in zip(ys, expected, strict=True)])

    def do_barrier(self, group, members, own, dtype, shape, root, draws):
        if draws.random() < 0.3:
            dist.monitored_barrier(group)
        else:
            self.started(dist.barrier(group, async_op=self.background), lambda: None)

    def do_coalesced(self, group, members, own, dtype, shape, root, draws):
        arrays, more, what = self.inputs(members, dtype, shape), self.inputs(members, dtype, (3,), 1), self.what
        op = self.an_op(dtype, draws)
        x, y = tensor(arrays[own], dtype), tensor(more[own], dtype)
        dist.all_reduce_coalesced([x, y], op, group=group)
        same(x, reduced(arrays, op, dtype), dtype, what)
        same(y, reduced(more, op, dtype), dtype, what)

    # ---- messages and objects ---------------------------------------------------------------------------------

    def do_ring(self, group, members, own, dtype, shape, root, draws):
        """Each sends to the next two messages, whose tags decide which is which."""
        count = len(members)
        if count < 2:
            return
        after, before, what = members[(own + 1) % count], members[own - 1], self.what
        arrays = [self.inputs(members, dtype, shape, more) for more in (0, 1)]
        ys = [tensor(np.zeros_like(arrays[0][own]), dtype, draws.randrange(3)) for _ in arrays]
        tags = [2 * self.step, 2 * self.step + 1]
        ops = [dist.P2POp(dist.isend, tensor(arrays[k][own], dtype), after, group, tags[k]) for k in (0, 1)]
        ops += [dist.P2POp(dist.irecv, ys[k], before, group, tags[k]) for k in (1, 0)]
        if draws.random() < 0.5:
            works = dist.batch_isend_irecv(ops)
        else:
            works = [op.op(op.tensor, op.peer, op.group, op.tag) for op in ops]
        self.own.shuffle(works)
        for work in works:
            work.wait()
        for k in (0, 1):
            same(ys[k], arrays[k][own - 1], dtype, what)

    def do_any_source(self, group, members, own, dtype, shape, root, draws):
        """All others send to one, which takes what comes."""
        arrays, tag = self.inputs(members, dtype, shape), 2 * self.step
        if own != root:
            dist.send(tensor(arrays[own], dtype, draws.randrange(3)), members[root], group, tag)
            return
        seen = set()
        for _ in members[1:]:
            y = tensor(np.zeros_like(arrays[own]), dtype)
            sender = dist.recv(y, None, group, tag)
            same(y, arrays[members.index(sender)], dtype, self.what)
            seen.add(sender)
        assert seen == set(members) - {members[root]}, self.what

    def do_objects(self, group, members, own, dtype, shape, root, draws):
        values = [{"rank": rank, "list": list(range(rank + self.step))} for rank in members]
        kind, count = draws.randrange(4), len(members)
        if kind == 0:
            found = [None] * count
            dist.all_gather_object(found, values[own], group)
            assert found == values, self.what
        elif kind == 1:
            found = [values[own], own]
            dist.broadcast_object_list(found, members[root], group)
            assert found == [values[root], root], self.what
        elif kind == 2:
            found = [None] * count if own == root else None
            dist.gather_object(values[own], found, members[root], group)
            assert own != root or found == values, self.what
        else:
            found = [None]
            dist.scatter_object_list(found, values if own == root else None, members[root], group)
            assert found == [values[own]], self.what


def some_groups(seed, rank, size):
    """The job, and groups of some ranks, in any order and overlapping."""
    common = random.Random(f"groups {seed}")
    groups = [(None, list(range(size)))] * 2
    for _ in range(2):
        members = common.sample(range(size), common.randint(1, size))
        ordered = common.random() < 0.5
        made = dist.new_group(members, sort_ranks=ordered)
        members = sorted(members) if ordered else members
        assert (rank in members) is (made != dist.GroupMember.NON_GROUP_MEMBER)
        groups.append((made, members))
    members = common.sample(range(size), common.randint(1, size))
    if rank in members:
        made = dist.new_group(members, use_local_synchronization=True)
        groups.append((made, sorted(members)))
    else:
        groups.append((dist.GroupMember.NON_GROUP_MEMBER, sorted(members)))
    if size == 4:
        mesh = dist.init_device_mesh(DEVICE.partition(":")[0], (2, 2), mesh_dim_names=("rows", "columns"))
        groups.append((mesh["rows"].get_group(), [rank % 2, rank % 2 + 2]))
        groups.append((mesh.get_group("columns"), [rank // 2 * 2, rank // 2 * 2 + 1]))
    return groups


def main():
    global DEVICE
    backend = "cpu:gloo,cuda:nccl" if DEVICE == "cuda" else "gloo"
    dist.init_process_group(backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    if DEVICE == "cuda":
        DEVICE = f"cuda:{rank % torch.cuda.device_count()}"
        torch.cuda.set_device(DEVICE)
    groups = some_groups(FIRST, rank, size)
    for seed in range(FIRST, FIRST + COUNT):
        schedule = Schedule(seed, rank, size, groups)
        try:
            schedule.run()
        except BaseException:
            print(f"rank {rank} failed in schedule {seed}, step {schedule.step}", file=sys.stderr, flush=True)
            raise
    everywhere = [None] * size
    dist.all_gather_object(everywhere, sorted(DIGESTS))
    assert all(digests == everywhere[0] for digests in everywhere), "ranks got other bits"
    if rank == 0:
        print(f"{COUNT} schedules on {size} ranks agree")
    dist.destroy_process_group()


main()
