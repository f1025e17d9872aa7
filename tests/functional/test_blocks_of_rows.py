"""Rowwise operators, losses and reductions in blocks on the CPU: equal to the references of whole arrays."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest

import tritensor as torch
from tritensor.kernels.reduction import family as reductions
from tritensor.kernels.reduction import reference as blocks
from tritensor.kernels.rowwise import family as rowwise
from tritensor.kernels.rowwise import losses
from tritensor.kernels.rowwise import reference as rows
from tritensor.kernels.scratch import scratch
from tritensor.nn import functional as F
from tritensor.operators import Operator, registry

NAN, INF = float("nan"), float("inf")


@pytest.fixture
def tiny(monkeypatch):
    """Blocks of a few dozen elements, in place of hundreds of thousands."""
    for module, values in (
        (blocks, {"BLOCK": 64, "_BLOCK_READ_ONCE": 96, "LARGE": 100, "LARGE_READ_ONCE": 200}),
        (reductions, {"LARGE": 100}),
        (rows, {"PIECE": 64, "LARGE": 100}),
        (rowwise, {"LARGE": 100}),
        (losses, {"LARGE": 100}),
    ):
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)


def whole(operator, *inputs, **metadata):
    """The result of the reference for whole arrays."""
    tensors = [torch.from_numpy(each) if isinstance(each, np.ndarray) else each for each in inputs]
    call = operator.prepared(tuple(tensors), {**operator.metadata, **metadata})
    call.arrays = operator.arrays_of(call)
    return Operator.on_host(operator, call)(*call.arrays)


def assert_same(found, wanted, tolerance):
    found = found if isinstance(found, tuple) else (found,)
    for result, array in zip(found, wanted, strict=True):
        assert result._data.dtype == array.dtype and result._data.shape == array.shape
        np.testing.assert_allclose(
            result._data.astype(np.float64), array.astype(np.float64), rtol=tolerance, atol=tolerance * 10
        )


REDUCTIONS = [
    "sum",
    "mean",
    "prod",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "max_dim",
    "min_dim",
    "var",
    "std",
    "logsumexp",
    "norm",
    "any",
    "all",
    "count_nonzero",
]
LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: np.ascontiguousarray(x.T).T,
    "every second": lambda x: np.repeat(x, 2, -1)[..., ::2],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_reductions_of_blocks(name, layout, tiny):
    operator = registry[name]
    rng = np.random.default_rng(0)
    for shape in ((300,), (15, 20), (7, 6, 9), (2, 200, 2)):
        array = rng.standard_normal(shape).astype(np.float32)
        special = array.copy()
        special.reshape(-1)[rng.integers(0, array.size, 4)] = [NAN, INF, -INF, NAN]
        ties = rng.integers(-2, 3, shape).astype(np.float32)
        for source in (array, special, ties, ties.astype(np.int32), array.astype(np.float16)):
            if source.dtype == np.int32 and name in ("mean", "var", "std", "norm", "logsumexp"):
                continue
            x = LAYOUTS[layout](source)
            ranks = range(len(shape))
            for dim in (None, *itertools.chain(*(itertools.combinations(ranks, size) for size in (1, 2)))):
                if name in ("prod", "argmax", "argmin") and dim and len(dim) > 1:
                    continue
                metadata = [{"p": p} for p in (0.0, 1.0, 2.0, 3.0, INF, -INF)] if name == "norm" else [{}]
                for each, keepdim in itertools.product(metadata, (False, True)):
                    found = operator(torch.from_numpy(x), dim=dim, keepdim=keepdim, **each)
                    wanted = whole(operator, x, dim=dim, keepdim=keepdim, **each)
                    assert_same(found, wanted, 2e-3 if x.dtype == np.float16 else 1e-4)
                    results = found if isinstance(found, tuple) else (found,)
                    for result, reference in zip(results, wanted, strict=True):
                        steps = [
                            [step for step, extent in zip(array.strides, array.shape, strict=True) if extent > 1]
                            for array in (result._data, reference)
                        ]
                        assert steps[0] == steps[1]


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmax_backward", "log_softmax_backward"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_rowwise_operators_in_pieces(name, layout, dtype, tiny):
    operator = registry[name]
    rng = np.random.default_rng(1)
    for shape in ((200,), (40, 30), (3, 50, 7), (20, 5, 6)):
        for scale in (1, 100):
            arrays = [
                LAYOUTS[layout]((rng.standard_normal(shape) * (scale if name[-1] == "x" else 1)).astype(dtype))
                for _ in operator.inputs
            ]
            for dim in range(len(shape)):
                found = operator(*map(torch.from_numpy, arrays), dim=dim)
                wanted = whole(operator, *arrays, dim=dim)
                assert_same(found, wanted, 4e-3 if dtype is np.float16 else 2e-5)
                assert found._data.strides == wanted[0].strides


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_norms_in_pieces(name, dtype, tiny):
    rng = np.random.default_rng(2)
    tolerance = {np.float32: 2e-5, np.float64: 1e-12, np.float16: 5e-3}[dtype]
    norm, backward = registry[name], registry[f"{name}_backward"]
    for layout, weighted in itertools.product(LAYOUTS, (False, True)):
        x, grad = (LAYOUTS[layout](rng.standard_normal((50, 30)).astype(dtype)) for _ in range(2))
        weight = rng.standard_normal(30).astype(dtype) if weighted else None
        given = [weight, weight] if name == "layer_norm" else [weight]
        assert_same(
            norm(*[each if each is None else torch.from_numpy(each) for each in (x, *given)], eps=1e-5),
            whole(norm, x, *given, eps=1e-5),
            tolerance,
        )
        count = 3 if name == "layer_norm" else 1
        statistics = [rng.uniform(0.5, 2, 50).astype(np.promote_types(dtype, np.float32)) for _ in range(count)]
        arrays = [grad, x, *statistics, weight]
        found = backward(*[each if each is None else torch.from_numpy(each) for each in arrays])
        assert_same(found, whole(backward, *arrays), tolerance * 10)


@pytest.mark.parametrize("cols", [64, 1000, 32768])
@pytest.mark.parametrize("mean", [0, 1, 1e4])
def test_layer_norm_is_exact_for_any_mean(cols, mean):
    x = (np.random.default_rng(3).standard_normal((64, cols)) + mean).astype(np.float32)
    wide = x.astype(np.float64)
    apart = wide - wide.mean(1, keepdims=True)
    wanted = apart / np.sqrt((apart * apart).mean(1, keepdims=True) + 1e-5)
    error = np.sqrt(np.square(F.layer_norm(torch.from_numpy(x), (cols,)).numpy() - wanted).mean())
    # PyTorch's error is 6e-8 for a mean of 0, and 5e-4 for one of 1e4
    assert error < 1e-7


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_class_losses_in_pieces(name, dtype, tiny):
    rng = np.random.default_rng(4)
    operator, tolerance = registry[name], 5e-3 if dtype is np.float16 else 2e-5
    target = rng.integers(0, 30, 40)
    target[::5] = 1
    for scale, weighted, ignored, reduction, smoothing in itertools.product(
        (1, 50), (False, True), (-100, 1), ("mean", "sum", "none"), (0.0, 0.2)
    ):
        x = (rng.standard_normal((40, 30)) * scale).astype(dtype)
        x[0, :] = INF  # of an ignored target
        weight = rng.uniform(0.5, 2, 30).astype(dtype) if weighted else None
        metadata = {"ignore_index": ignored, "reduction": reduction}
        if name == "cross_entropy":
            metadata["label_smoothing"] = smoothing
        given = [torch.from_numpy(x), torch.from_numpy(target), weight if weight is None else torch.from_numpy(weight)]
        with np.errstate(all="ignore"):
            wanted = whole(operator, x, target, weight, **metadata)
        assert_same(operator(*given, **metadata), wanted, tolerance)
        if name == "cross_entropy":
            grad = np.asarray(rng.standard_normal(40 if reduction == "none" else ()), dtype)
            total, lse = wanted[1], wanted[2]
            backward = registry["cross_entropy_backward"]
            found = backward(torch.from_numpy(grad), *given, *map(torch.from_numpy, (total, lse)), **metadata)
            assert_same(found, whole(backward, grad, x, target, weight, total, lse, **metadata), tolerance)


@pytest.mark.parametrize("scale", [1, 1000])
def test_quick_cross_entropy_in_pieces(scale, tiny):
    rng = np.random.default_rng(5)
    array, target = (
        (rng.standard_normal((40, 30)) * scale).astype(np.float32),
        torch.from_numpy(rng.integers(0, 30, 40)),
    )
    x, y = (torch.from_numpy(array).requires_grad_() for _ in range(2))
    loss = F.cross_entropy(x, target)
    wanted = registry["cross_entropy"](y, target, None)[0]
    torch.testing.assert_close(loss, wanted)
    loss.backward()
    wanted.backward()
    torch.testing.assert_close(x.grad, y.grad)


@pytest.mark.parametrize("shape", [(4096, 600), (3, 1 << 20), (7, 601, 509)], ids=str)
def test_places_of_large_arrays(shape):
    array = np.random.default_rng(6).integers(0, 1 << 20, shape).astype(np.float32)
    for x in (array, array.T):
        for dim in (None, *range(len(shape))):
            np.testing.assert_array_equal(torch.from_numpy(x).argmax(dim).numpy(), x.argmax(dim))


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_bits_do_not_depend_on_the_number_of_threads(threads, tiny):
    x = np.random.default_rng(7).standard_normal((60, 70)).astype(np.float32)
    before = torch.get_num_threads()
    results = []
    for number in (1, threads):
        torch.set_num_threads(number)
        try:
            y = torch.from_numpy(x).requires_grad_()
            out = F.layer_norm(y.softmax(0), (70,), torch.ones(70), torch.ones(70))
            (out.logsumexp(1).sum() + out.var() + F.cross_entropy(out, torch.arange(60))).backward()
            results.append([each.detach().numpy() for each in (out, y.grad, y.sum(0), y.mean(), y.norm(), y.argmax())])
        finally:
            torch.set_num_threads(before)
    for one, other in zip(*results, strict=True):
        assert one.tobytes() == other.tobytes()


def test_scratch_is_used_again_by_one_context_at_a_time():
    kind = np.dtype(np.float32)
    with scratch() as new:
        first, second = new((100,), kind), new((100,), kind)
        assert not np.shares_memory(first, second)
        with scratch() as inner:
            assert not np.shares_memory(first, inner((100,), kind))
    with scratch() as new:
        again = new((5, 20), kind)
        others = []

        def use():
            with scratch() as new:
                others.append(new((100,), kind))

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        assert not np.shares_memory(again, others[0])
        assert again.shape == (5, 20) and again.ctypes.data % 64 == 0
        assert new((2, 4), np.dtype(np.float64)).dtype == np.float64
        large = new((3 << 20,), kind)
        assert large.nbytes == 12 << 20


@pytest.mark.parametrize("shape", [(1, 400), (2, 300), (400, 1)])
def test_few_rows_of_many_sums_are_added_once(tiny, monkeypatch, shape):
    """Blocks of one row leave as many parts as the array has rows."""
    monkeypatch.setattr(blocks, "_SMALL", 1)
    dim = 1 if shape[1] == 1 else 0
    assert torch.ones(shape).sum(dim).tolist() == [shape[dim]] * (sum(shape) - shape[dim])
