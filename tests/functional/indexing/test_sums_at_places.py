"""Sums at places that are named several times: every dtype, exact, and the same in any order of programs."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.kernels.indexing import family
from tritensor.kernels.indexing import reference as host_indexing
from tritensor.kernels.indexing import segments as segment_kernels
from tritensor.types import dtypes

from ...needs import needs_triton
from .arrays import T, on, same


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float16", "bfloat16", "float64"])
def test_sums_in_every_dtype(device, dtype):
    kind = getattr(dtypes, dtype).numpy
    index = np.random.default_rng(0).integers(0, 5, 40)
    value = (np.arange(40) % 7).astype(kind)
    wanted = np.zeros(5, np.float64)
    np.add.at(wanted, index, np.arange(40) % 7)
    result = on(device, np.zeros(5, kind)).scatter_add(0, on(device, index), on(device, value))
    assert result.dtype is getattr(dtypes, dtype)
    np.testing.assert_array_equal(result.cpu().numpy().astype(np.float64), wanted)


@needs_triton
def test_sums_do_not_depend_on_the_order_that_programs_run_in():
    """Values far apart in size, whose sum shows in which order they were added."""
    rng = np.random.default_rng(0)
    index = rng.integers(0, 7, 200)
    value = (rng.standard_normal((200, 3)) * 10.0 ** rng.integers(-3, 4, (200, 1))).astype(np.float32)
    wanted = np.zeros((7, 3))
    np.add.at(wanted, index, value.astype(np.float64))
    with torch.cuda.simulate(devices=1):
        for block in (0, 16):
            found = []
            for order in ("forward", "reverse", "shuffle"):
                with settings.grid_order(order), settings.block(block):
                    found.append(torch.zeros(7, 3).cuda().index_add(0, T(index).cuda(), T(value).cuda()).cpu().numpy())
            np.testing.assert_allclose(found[0], wanted, rtol=1e-5, atol=1e-3)
            assert all(np.array_equal(each, found[0]) for each in found)


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1), (0, 2), (2,)])
@pytest.mark.parametrize("repeats", [1, 40])
def test_sums_of_wide_rows_have_the_bits_of_the_reference(dims, repeats):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 7, 8)).astype(np.float32)
    positions = np.stack([rng.integers(-x.shape[dim], x.shape[dim], (repeats, 20)) for dim in dims])
    value = rng.standard_normal(x[family._key(positions, 3, dims)].shape).astype(np.float32)
    for source in (value, value[..., :1], np.float32(0.3)):
        wanted = family.index_put.reference(x, positions, source, dims=dims, accumulate=True)
        given = torch.from_numpy(source) if source.ndim else float(source)
        same(family.index_put(torch.from_numpy(x), T(positions), given, dims=dims, accumulate=True), wanted)


def test_many_rows_for_few_places():
    rng = np.random.default_rng(0)
    out, keys = np.ones((300, 64), np.float32), rng.integers(0, 300, 400)
    rows = rng.standard_normal((400, 64)).astype(np.float32)
    wanted = out.copy()
    np.add.at(wanted, keys, rows)
    host_indexing.add_rows(out, keys, rows)
    assert (out == wanted).all()
    out, keys = np.zeros((2, 8), np.float32), np.zeros(1000, np.int64)
    host_indexing.add_rows(out, keys, np.ones((1000, 8), np.float32))
    assert (out == [[1000] * 8, [0] * 8]).all()
    host_indexing.add_rows(out, keys[:0], np.ones((0, 8), np.float32))
    assert out[0, 0] == 1000


@pytest.mark.sampled(8)
@pytest.mark.parametrize("order", ["forward", "shuffle"])
@pytest.mark.parametrize("block", [0, 4])
@pytest.mark.parametrize(
    ("places", "rows", "width"),
    [(1, 1, 1), (37, 3, 1), (90, 1, 3), (40, 2, 5), (64, 50, 1), (30, 8, 7), (33, 1, 1), (200, 1, 1)],
)
def test_sums_at_equal_places_join_over_blocks(places, rows, width, block, order):
    """Destinations within a block, over two blocks and over more than are joined at once; integers, so exactly."""
    rng = np.random.default_rng(places)
    keys = rng.integers(0, rows, places)
    source, x = rng.integers(-3, 4, (places, width)), rng.integers(-3, 4, (rows, width))
    wanted = x.copy()
    np.add.at(wanted, keys, source)
    for kind in (np.float32, np.float16, np.int64):
        with torch.cuda.simulate(devices=1), settings.block(block), settings.grid_order(order):
            arrays = (torch.from_numpy(array).cuda() for array in (x.astype(kind), keys, source.astype(kind)))
            out, index, values = arrays
            assert np.array_equal(out.index_add(0, index, values).cpu().numpy(), wanted.astype(kind))


def test_sums_at_equal_places_take_steps_with_the_number_of_blocks(monkeypatch):
    """A destination with all places is added up in blocks side by side, not one place after another."""
    found = []
    launch = segment_kernels.launch
    monkeypatch.setattr(
        segment_kernels, "launch", lambda *args, **options: found.append(args) or launch(*args, **options)
    )
    with torch.cuda.simulate(devices=1), settings.block(4):
        out = torch.zeros(3, 1, device="cuda").index_add(
            0, torch.ones(50, dtype=torch.int64, device="cuda"), torch.ones(50, 1, device="cuda")
        )
        assert out.cpu().flatten().tolist() == [0, 50, 0]
    grids = {kernel.__name__: grid for kernel, grid, *_ in found}
    assert grids["segment_sums_kernel"] == grids["join_segments_kernel"] == (13,)
