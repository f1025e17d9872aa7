"""Large matrix products on the CPU: tiles and stacks of matrices, the same bits for every number of threads."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

import tritensor as torch
from tritensor.host.threads import blas_on_one_thread
from tritensor.kernels.matmul import family
from tritensor.kernels.matmul import reference as host

# Tiles, a matrix and a vector, vectors, stacks, batches that broadcast or are not contiguous, rows of many batches.
SHAPES = [
    ((700, 500), (500, 300)),
    ((90, 784), (784, 500)),
    ((2500, 2000), (2000,)),
    ((2000,), (2000, 2500)),
    ((1_200_000,), (1_200_000,)),
    ((4, 6, 128, 64), (4, 6, 64, 96)),
    ((6, 100, 64, 30), (6, 1, 30, 64)),
    ((100, 64, 128), (128, 40)),
    ((3, 1, 300, 200), (2, 200, 400)),
    ((300, 200, 20), (20,)),
    ((20,), (300, 20, 200)),
    ((1, 70000), (70000, 40)),
    ((3, 0), (0, 2)),
    ((2, 0, 4), (4, 3)),
]
TOLERANCES = {"float32": 1e-5, "float64": 1e-13, "complex64": 1e-5, "int32": 0, "float16": 1e-3, "bfloat16": 8e-3}


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def draw(rng: np.random.Generator, shape: tuple[int, ...], kind: str, turned: bool) -> np.ndarray:
    """Numbers of a dtype; `turned`, their last two dimensions lie in memory in the other order."""
    x = rng.integers(-9, 9, shape) if kind == "int32" else rng.standard_normal(shape)
    x = x.astype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
    return np.ascontiguousarray(x.mT).mT if turned and x.ndim > 1 else x


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", TOLERANCES)
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_products_are_right_and_do_not_depend_on_the_number_of_threads(left, right, kind, threads) -> None:
    rng = np.random.default_rng(0)
    compute = np.dtype(np.float32) if kind in ("float16", "bfloat16") else None
    for turned in (False, True):
        x, y = draw(rng, left, kind, False), draw(rng, right, kind, turned)
        wide = np.complex128 if kind == "complex64" else np.float64
        with blas_on_one_thread:
            exact = np.matmul(x.astype(wide), y.astype(wide))
        bias = draw(rng, exact.shape[-1:], kind, False) if turned else None
        found = []
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            found.append(np.asarray(host.multiply(x, y, bias, None, compute)))
            if kind in ("float32", "float64") and x.ndim == y.ndim == 2:
                again = host.product(x, y)
                np.testing.assert_allclose(again, exact, atol=TOLERANCES[kind] * max(np.abs(exact).max(initial=0), 1))
        assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()
        assert found[0].shape == exact.shape and found[0].dtype == x.dtype
        if bias is not None:
            exact = exact + bias.astype(wide)
        error = np.abs(found[0].astype(wide) - exact)
        assert error.max(initial=0) <= TOLERANCES[kind] * (np.abs(exact).max(initial=0) + left[-1] ** 0.5)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_products_that_skip_the_context_are_those_that_blas_computes_on_one_thread(kind, threads) -> None:
    torch.set_num_threads(2)
    rng = np.random.default_rng(0)
    for edge in (20, 60, 64, 65, 100, 128):
        for rows, cols in ((edge, edge), (1, edge * edge), (edge * edge, 1)):
            x, y = rng.standard_normal((rows, edge)).astype(kind), rng.standard_normal((edge, cols)).astype(kind)
            for first, second in ((x, y), (x[:edge], x[:edge].T), (x, np.ascontiguousarray(y.T).T)):
                found = host.product(first, second)
                with blas_on_one_thread:
                    assert found.tobytes() == host.product(first, second).tobytes()


def test_a_tile_gets_its_bias_and_its_activation() -> None:
    rng = np.random.default_rng(0)
    for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 2e-1)):
        x, weight, bias = (
            torch.from_numpy(rng.standard_normal(shape)).to(dtype) for shape in ((3, 300, 200), (500, 200), (500,))
        )
        found = family.linear(x, weight, bias, activation="relu")
        exact = np.maximum(x.double().numpy() @ weight.double().numpy().T + bias.double().numpy(), 0)
        np.testing.assert_allclose(found.double().numpy(), exact, atol=tolerance)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("same", [True, False])
def test_a_product_on_one_thread_is_cut_where_its_bits_depend_on_that(
    same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiles = list[tuple[int, int]]()
    in_tiles = host._in_tiles
    monkeypatch.setattr(host, "_same", {})
    monkeypatch.setattr(host, "_in_tiles", lambda *args: tiles.append(args[2:]) or in_tiles(*args))
    if not same:
        monkeypatch.setattr(host, "_compare", lambda form: False)
    rng = np.random.default_rng(0)
    x, y = draw(rng, (300, 700), "float32", False), draw(rng, (700, 400), "float32", True)
    torch.set_num_threads(2)
    expected = host.product(x, y).tobytes()
    torch.set_num_threads(1)
    assert [host.product(x, y).tobytes() for _ in range(3)] == [expected] * 3
    assert tiles[0] == tiles[1] != (300, 400)
    assert (tiles[-1] == (300, 400)) == (same and host._same[next(iter(host._same))])
