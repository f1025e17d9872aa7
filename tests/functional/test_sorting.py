"""The quick ways of sorting and choosing on the CPU against NumPy's stable sort, to the last index."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor.kernels.indexing import sorting


def arrays(kind: str, count: int) -> list[np.ndarray]:
    """Rows with many equal elements and with few, with NaN and infinities, with the least integer; some short."""
    rng = np.random.default_rng(len(kind) + ord(kind))
    made = []
    for number in range(count):
        shape = (*rng.integers(1, 5, number % 3), int(rng.integers(1, 150)))
        x = (rng.integers(-5, 6, shape) if number % 2 else rng.standard_normal(shape) * 100).astype(kind)
        if x.dtype.kind == "f" and number % 4 == 0:
            x[rng.random(shape) < 0.05] = rng.choice([np.nan, np.inf, -np.inf, -0.0])
        if x.dtype.kind == "i" and number % 3 == 0:
            x[rng.random(shape) < 0.1] = np.iinfo(x.dtype).min
        made.append(x)
    return made


def stable(x: np.ndarray, descending: bool) -> np.ndarray:
    if not descending:
        return np.argsort(x, -1, kind="stable")
    return x.shape[-1] - 1 - np.flip(np.argsort(np.flip(x, -1), -1, kind="stable"), -1)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["f", "d", "i", "q", "e", "b"])
@pytest.mark.parametrize("descending", [False, True])
def test_orders_and_extremes(kind: str, descending: bool) -> None:
    chosen = 0
    for x in arrays(kind, 120):
        expected = stable(x, descending)
        t = torch.from_numpy(x)
        values, order = t.sort(descending=descending)
        assert np.array_equal(order.numpy(), expected)
        assert np.array_equal(values.numpy(), np.take_along_axis(x, expected, -1), equal_nan=x.dtype.kind == "f")
        for k in {0, 1, x.shape[-1] // 5, x.shape[-1]}:
            found = sorting.extremes(x, k, descending)
            chosen += found is not None
            top = t.topk(k, largest=descending)
            for places in (top.indices.numpy(), *([] if found is None else [found])):
                assert np.array_equal(places, expected[..., :k])
            assert np.array_equal(top.values.numpy(), values.numpy()[..., :k], equal_nan=x.dtype.kind == "f")
    assert bool(chosen) == (kind in "fdiq")


def test_rows_without_equal_elements_are_sorted_by_the_quick_way_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, kinds = np.argsort, []

    def noted(x: np.ndarray, axis: int = -1, kind: str | None = None) -> np.ndarray:
        kinds.append((kind, x.shape))
        return plain(x, axis, kind=kind)

    monkeypatch.setattr(sorting.np, "argsort", noted)
    x = np.random.default_rng(0).permutation(4 * 100).reshape(4, 100).astype(np.float32)
    x[2, 7] = x[2, 90]
    sorting.sort(torch.from_numpy(x))
    assert kinds == [(None, (4, 100)), ("stable", (1, 100))]


def test_gradients_of_topk_go_to_the_chosen() -> None:
    x = torch.arange(100.0).reshape(2, 50).requires_grad_()
    values, indices = x.topk(3, dim=1)
    assert indices.tolist() == [[49, 48, 47]] * 2
    (values * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    expected = np.zeros((2, 50))
    expected[:, 47:] = [3, 2, 1]
    assert np.array_equal(x.grad.numpy(), expected)
    y = torch.arange(120.0).reshape(40, 3).topk(2, dim=0, largest=False)
    assert y.indices.tolist() == [[0] * 3, [1] * 3] and y.values.is_contiguous()
