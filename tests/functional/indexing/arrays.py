"""Arrays to index, keys of every kind, what NumPy and PyTorch read with them, and how results are compared."""

from __future__ import annotations

import numpy as np

import tritensor as torch

T = torch.tensor
X = np.arange(3 * 4 * 5, dtype=np.float32).reshape(3, 4, 5) - 7
R, J, K = np.array([2, 0, -1, 1]), np.array([[0], [3], [-4]]), np.array([4, 0])
# coordinates of which no two mean the same place
P, Q = np.array([2, 0, -2]), np.array([[0], [3], [-2]])
M, M2 = np.array([True, False, True]), X[:, :, 0] % 3 == 0
KEYS = [
    R,
    R.astype(np.int32),
    J % 3,
    (slice(None), J),
    (Ellipsis, K),
    (R, R),
    (J % 3, slice(None), K),
    (0, slice(None), K),
    (slice(1, None), J, K),
    (R, 0),
    (None, R),
    (R, None),
    (slice(None), None, K % 4),
    (slice(None, None, 2), R),
    (Ellipsis, R, 1),
    (1, Ellipsis, K),
    (R[:2], slice(None), K),
    M,
    M2,
    (M2, 1),
    (M2, K[:1]),
    (slice(None), M2[0]),
    (M, slice(None), np.array([3, 1])),
    X > 0,
    np.zeros(0, np.int64),
    (R[:1], R[:1], K[:1]),
    (np.array(1), R),
    np.zeros(3, bool),
]


def name(key):
    return "-".join(
        f"{part.dtype}{list(part.shape)}" if isinstance(part, np.ndarray) else str(part)
        for part in (key if isinstance(key, tuple) else (key,))
    )


def pytorch_index(array, key):
    """`array[key]` by PyTorch's rules: the basic parts make a view, then the arrays index that."""
    key = list(key) if isinstance(key, tuple) else [key]
    masks = [isinstance(part, np.ndarray) and part.dtype == np.bool_ for part in key]
    taken = sum(
        part.ndim if mask else part is not None and part is not Ellipsis for part, mask in zip(key, masks, strict=True)
    )
    at = next((i for i, part in enumerate(key) if part is Ellipsis), len(key))
    key[at : at + 1] = [slice(None)] * (array.ndim - taken)
    basic, advanced = [], []
    for part in key:
        if isinstance(part, np.ndarray):
            whole = part.ndim if part.dtype == np.bool_ else 1
            basic += [slice(None)] * whole
            advanced.append(part)
        else:
            basic.append(part)
            if not isinstance(part, int):
                advanced.append(slice(None))
    return array[tuple(basic)][tuple(advanced)]


def on(device, value):
    """Arrays as tensors on a device, wherever they are in a tuple."""
    if isinstance(value, tuple):
        return tuple(on(device, part) for part in value)
    return torch.from_numpy(value).to(device) if isinstance(value, np.ndarray) else value


def same(result, wanted):
    found = result.detach().cpu().numpy()
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def alike(result, wanted):
    """The same sums up to rounding: a device adds them in an order of its own."""
    found = result.detach().cpu().numpy()
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
