"""Diagonals, windows, strides, pieces, differences: values beside NumPy's, gradients, what shares memory, errors."""

from __future__ import annotations

import re
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided, sliding_window_view

import tritensor as torch
from tritensor.autograd import gradcheck, gradgradcheck

A = np.arange(24.0).reshape(2, 3, 4) ** 2 / 7
M, V, P = A[0], A[1, 2], np.array([0.5, 1.0, 2.0, 4.0])

# A call on tensors of the arrays' names, and NumPy's result.
CALLS: dict[str, Any] = {
    "a.diagonal(1, 0, 2)": np.diagonal(A, 1, 0, 2),
    "a.diagonal(-2, -1, 0)": np.diagonal(A, -2, -1, 0),
    "a.diagonal(9)": np.diagonal(A, 9),
    "torch.diag(v, -1)": np.diag(V, -1),
    "torch.diag(m, 1)": np.diag(M, 1),
    "torch.diagflat(m, 1)": np.diagflat(M, 1),
    "torch.diag_embed(m, -1, 0, 2)": np.stack([np.diag(row, 1) for row in M]).transpose(2, 0, 1),
    "m.unfold(1, 2, 1)": sliding_window_view(M, 2, 1),
    "a.unfold(0, 2, 3)": sliding_window_view(A, 2, 0),
    "a[:, 1:].unfold(-1, 3, 1)": sliding_window_view(A[:, 1:], 3, 2),
    "a.as_strided((2, 3), (1, 1), 3)": as_strided(A.reshape(-1)[3:], (2, 3), (8, 8)),
    "a[1, 1:].as_strided((2, 2), (4, 2))": as_strided(A[1, 1:], (2, 2), (32, 16)),
    "a[1].as_strided((2,), (3,), 1)": A.reshape(-1)[1:7:3],
    "m.t().as_strided((3, 2), (0, 5))": as_strided(M, (3, 2), (0, 40)),
    "torch.diagonal_scatter(m, v[:3], 1)": M + np.pad(np.diag(V[:3] - np.diag(M, 1)), ((0, 0), (1, 0))),
    "torch.select_scatter(m, v, 0, -1)": np.concatenate([M[:2], V[None]]),
    "torch.slice_scatter(m, m[:2], 0, 1)": np.concatenate([M[:1], M[:2]]),
    "torch.as_strided_scatter(m, v[:3], (3,), (5,), 1)": M + np.pad(np.diag(V[:3] - np.diag(M, 1)), ((0, 0), (1, 0))),
    "torch.tensor_split(v, 3)[0]": V[:2],
    "torch.tensor_split(a, (1, 3), -1)[2]": A[..., 3:],
    "torch.tensor_split(m, torch.tensor([2]))[0]": M[:2],
    "torch.hsplit(v, 2)[1]": V[2:],
    "torch.hsplit(m, [1])[1]": M[:, 1:],
    "torch.vsplit(m, 3)[1]": M[1:2],
    "torch.dsplit(a, 2)[1]": A[..., 2:],
    "a.split_with_sizes((1, 2), 1)[1]": A[:, 1:],
    "torch.unsafe_split(m, 2)[1]": M[2:],
    "torch.unsafe_split_with_sizes(m, (1, 2))[1]": M[1:],
    "torch.unsafe_chunk(m, 2, 1)[1]": M[:, 2:],
    "torch.block_diag(m, v[0], v[:2])": np.block(
        [
            [M, np.zeros((3, 3))],
            [np.zeros((1, 4)), V[:1, None], np.zeros((1, 2))],
            [np.zeros((1, 5)), V[None, :2]],
        ]
    ),
    "torch.rot90(a, 3, (2, 0))": np.rot90(A, 3, (2, 0)),
    "torch.rot90(a, -2, (1, 2))": np.rot90(A, -2, (1, 2)),
    "torch.rot90(m, 4)": M,
    "m.t().ravel()": M.T.ravel(),
    "torch.atleast_2d(v)": V[None],
    "torch.atleast_3d(m)": M[..., None],
    "torch.atleast_1d(v[0])": V[:1],
    "torch.row_stack((v, m))": np.vstack((V, M)),
    "torch.diff(a, 2, 1)": np.diff(A, 2, 1),
    "torch.diff(m, prepend=m[:, :1], append=m)": np.diff(M, prepend=M[:, :1], append=M),
    "torch.gradient(a, dim=2, spacing=0.5)[0]": np.gradient(A, 0.5, axis=2),
    "torch.gradient(m, spacing=[2.0, p], edge_order=2)[1]": np.gradient(M, P, axis=1, edge_order=2),
    "torch.gradient(m, edge_order=1)[0]": np.gradient(M, axis=0),
    "torch.gradient(m, spacing=(p[:3], p), edge_order=1)[0]": np.gradient(M, P[:3], axis=0),
    "torch.trapezoid(a, p)": ((A[..., 1:] + A[..., :-1]) / 2 * np.diff(P)).sum(-1),
    "torch.trapz(a, dx=0.5, dim=0)": (A[0] + A[1]) / 4,
    "torch.cumulative_trapezoid(m, p)": np.cumsum((M[:, 1:] + M[:, :-1]) / 2 * np.diff(P), 1),
    "torch.cumulative_trapezoid(m, dx=2, dim=0)": np.cumsum(M[1:] + M[:-1], 0),
    "torch.vander(p)": np.vander(P),
    "torch.vander(p, 3, True)": np.vander(P, 3, True),
    "torch.cartesian_prod(v[:2], p)": np.array(list(product(V[:2], P))),
    "torch.combinations(p, 3)": np.array(list(combinations(P, 3))),
    "torch.combinations(p[:2], 2, True)": np.array([[0.5, 0.5], [0.5, 1.0], [1.0, 1.0]]),
    "m.mH": M.T,
    "m.H": M.T,
    "a.adjoint()": A.transpose(0, 2, 1),
}
VIEWS = [call for call in CALLS if call.startswith(("a.diag", "m.unf", "a.unf", "a.as_", "m.H", "torch.hsplit"))]


@pytest.mark.parametrize("call", CALLS)
def test_values(call: str, device: torch.device) -> None:
    scope = {name: torch.tensor(array, device=device) for name, array in zip("amvp", (A, M, V, P), strict=True)}
    made = eval(call, {"torch": torch, **scope})
    assert made.device == scope["a"].device and made.shape == CALLS[call].shape
    np.testing.assert_allclose(made.cpu().numpy(), CALLS[call], rtol=1e-12)


@pytest.mark.parametrize("call", VIEWS)
def test_views_share_memory(call: str) -> None:
    scope = {name: torch.tensor(array) for name, array in zip("amv", (A, M, V), strict=True)}
    made = eval(call, {"torch": torch, **scope})
    source = scope[call.removeprefix("torch.hsplit(")[0]]
    source.fill_(-1)
    assert set(made.flatten().tolist()) <= {-1.0}


# Those of views of memory beside a tensor are not there; the others have tensors of integers.
SMOOTH = [call for call in CALLS if not call.startswith(("a[1].as_strided", "torch.tensor_split(m"))]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("call", SMOOTH)
def test_gradients(call: str) -> None:
    needed = [name for name in "amvp" if re.search(rf"\b{name}\b", call)]
    arrays = {"a": A, "m": M, "v": V, "p": P}
    leaves = [torch.tensor(arrays[name]).requires_grad_() for name in needed]
    function = lambda *given: eval(call, {"torch": torch, **dict(zip(needed, given, strict=True))})  # noqa: E731
    assert gradcheck(function, leaves) and gradgradcheck(function, leaves)


def test_gradients_through_memory_that_is_shared() -> None:
    x = torch.ones(3, requires_grad=True)
    shared = x.expand(2, 3)
    y = shared.as_strided((2, 2), (1, 1))
    (y * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.grad.tolist() == [1.0, 5.0, 4.0]
    beyond = torch.arange(4.0)[2:].requires_grad_()
    beyond.as_strided((3,), (1,), 0).sum().backward()
    assert beyond.grad.tolist() == [1.0, 0.0]


def test_a_change_through_a_view_reaches_its_base() -> None:
    x = torch.zeros(3, 3, requires_grad=True)
    y = x * 1
    y.diagonal().add_(torch.tensor([1.0, 2.0, 3.0]))
    y.unfold(0, 1, 2)[1].mul_(2)
    y.as_strided((2,), (1,), 1).zero_()
    assert y.tolist() == [[1, 0, 0], [0, 2, 0], [0, 0, 6]]
    y.sum().backward()
    assert x.grad.tolist() == [[1, 0, 0], [1, 1, 1], [2, 2, 2]]


def test_one_sample_at_a_time() -> None:
    x = torch.arange(24.0).view(2, 3, 4)
    for function in (
        lambda each: each.diagonal(1),
        lambda each: each.unfold(1, 2, 2),
        lambda each: each.as_strided((2, 2), (4, 1), 0),
        torch.diag,
    ):
        assert torch.equal(torch.vmap(function)(x), torch.stack([function(each.clone()) for each in x]))


def test_the_diagonal_is_filled(device: torch.device) -> None:
    x = torch.zeros(7, 2, device=device)
    assert x.fill_diagonal_(1) is x and x.sum() == 2 and x[1, 1] == 1
    assert torch.zeros(7, 2, device=device).fill_diagonal_(1, wrap=True).nonzero().tolist() == [
        [0, 0],
        [1, 1],
        [3, 0],
        [4, 1],
        [6, 0],
    ]
    assert torch.zeros(2, 2, 2, device=device).fill_diagonal_(3).flatten().tolist() == [3, 0, 0, 0, 0, 0, 0, 3]
    assert torch.zeros(1, 1).expand(2, 2).fill_diagonal_(3).tolist() == [[3, 3], [3, 3]]


def test_indices_of_triangles_and_places(device: torch.device) -> None:
    assert torch.tril_indices(2, 3, 1, device=device).tolist() == [[0, 0, 1, 1, 1], [0, 1, 0, 1, 2]]
    upper = torch.triu_indices(3, 2, dtype=torch.int32, device=device)
    assert upper.tolist() == [[0, 0, 1], [0, 1, 1]] and upper.dtype is torch.int32
    places = torch.unravel_index(torch.tensor([[1, 7], [11, 13]], device=device), (2, 2, 3))
    assert [each.tolist() for each in places] == [[[0, 1], [1, 0]], [[0, 0], [1, 0]], [[1, 1], [2, 1]]]
    assert torch.unravel_index(torch.tensor(3), 5)[0].tolist() == 3


def test_dtypes_of_results() -> None:
    assert torch.block_diag(torch.tensor([1]), torch.tensor(2.5)).dtype is torch.float32
    assert torch.block_diag().shape == (1, 0)
    assert torch.diff(torch.tensor([True, True, False])).tolist() == [False, True]
    assert torch.gradient(torch.arange(3))[0].tolist() == [1.0, 1.0, 1.0]
    assert torch.vander(torch.tensor([1, 2], dtype=torch.uint8)).dtype is torch.int64
    assert torch.combinations(torch.ones(3), 0).shape == (0,) and torch.combinations(torch.ones(2), 3).shape == (0, 3)
    assert torch.trapezoid(torch.ones(2, 0)).tolist() == [0.0, 0.0]
    x = torch.ones(2)
    assert torch.cartesian_prod(x) is x and [each.shape for each in torch.atleast_3d([x])] == [(1, 2, 1)]
    assert torch.atleast_2d(x, x[0])[1].shape == (1, 1)


WRONG = {
    "torch.diagonal(m, 0, 1, -1)": (RuntimeError, "diagonal dimensions cannot be identical 1, -1"),
    "torch.diag(a)": (RuntimeError, "diag(): Supports 1D or 2D tensors. Got 3D"),
    "torch.diagonal_scatter(m, m)": (RuntimeError, "expected src to have a size equal to the slice of self. src size"),
    "v.fill_diagonal_(1)": (RuntimeError, "dimensions must larger than 1"),
    "a.fill_diagonal_(1)": (RuntimeError, "all dimensions of input must be of equal length"),
    "m.fill_diagonal_(1, 2)": (TypeError, "fill_diagonal_(): argument 'wrap' (position 2) must be bool, not int"),
    "torch.block_diag(a)": (RuntimeError, "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input 0"),
    "torch.tril_indices(-1, 2)": (RuntimeError, "row must be non-negative, got-1"),
    "torch.triu_indices(1, 2, dtype=torch.float32)": (
        NotImplementedError,
        "\"triu_indices\" not implemented for 'Float'",
    ),
    "m.as_strided((2,), (1, 1))": (RuntimeError, "mismatch in length of strides and shape"),
    "m.as_strided((2,), (-1,))": (RuntimeError, "as_strided: Negative strides are not supported at the moment"),
    "m.as_strided((-2,), (1,))": (RuntimeError, "Storage size calculation overflowed with sizes=[-2] and strides=[1]"),
    "m.as_strided((2,), (1,), -1)": (RuntimeError, "Tensor: invalid storage offset -1"),
    "m.as_strided((13,), (1,))": (
        RuntimeError,
        "setStorage: sizes [13], strides [1], storage offset 0, and itemsize 8",
    ),
    "m.unfold(0, 4, 1)": (RuntimeError, "maximum size for tensor at dimension 0 is 3 but size is 4"),
    "m.unfold(0, -1, 1)": (RuntimeError, "size is -1 but must be >= 0"),
    "m.unfold(0, 1, 0)": (RuntimeError, "step is 0 but must be > 0"),
    "torch.select_scatter(v[0], v, 0, 0)": (IndexError, "select() cannot be applied to a 0-dim tensor."),
    "torch.slice_scatter(v[0], v, 0, 0)": (IndexError, "slice() cannot be applied to a 0-dim tensor."),
    "torch.slice_scatter(v, v, step=0)": (RuntimeError, "slice step must be positive"),
    "torch.tensor_split(v[0], 2)": (RuntimeError, "tensor_split expected at least a 1-dimensional tensor"),
    "torch.tensor_split(v, 0)": (RuntimeError, "number of sections must be larger than 0, got 0"),
    "torch.tensor_split(v, v)": (
        RuntimeError,
        "tensor_split expected tensor_indices_or_sections to have dtype of long",
    ),
    "torch.tensor_split(v, torch.ones(1, 1, dtype=torch.int64))": (
        RuntimeError,
        "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor",
    ),
    "torch.hsplit(v, 'a')": (TypeError, "hsplit() received an invalid combination of arguments - got (Tensor, str)"),
    "torch.hsplit(v, 3)": (RuntimeError, "torch.hsplit attempted to split along dimension 0, but the size of the"),
    "torch.vsplit(v, 2)": (RuntimeError, "torch.vsplit requires a tensor with at least 2 dimension, but got"),
    "torch.rot90(m, 1, (0,))": (RuntimeError, "expected total rotation dims == 2, but got dims = 1"),
    "torch.rot90(v)": (RuntimeError, "expected total dims >= 2, but got total dims = 1"),
    "torch.rot90(m, 1, (0, -2))": (RuntimeError, "expected rotation dims to be different, but got dim0 = 0 and dim1"),
    "torch.unravel_index(v, 3)": (TypeError, "expected 'indices' to be integer dtype, but got"),
    "torch.unravel_index(v.long(), (-3,))": (ValueError, "'shape' cannot have negative values, but got (-3,)"),
    "torch.atleast_1d(3)": (TypeError, "atleast_1d() received an invalid combination of arguments - got (int)"),
    "torch.diff(v[0])": (RuntimeError, "diff expects input to be at least one-dimensional"),
    "torch.diff(v, -1)": (RuntimeError, "order must be non-negative but got -1"),
    "torch.diff(v, prepend=m)": (RuntimeError, "diff expects prepend or append to be the same dimension as input"),
    "torch.diff(m, append=m.t())": (RuntimeError, "diff expects the shape of tensor to prepend or append to match"),
    "torch.gradient(v.byte())": (RuntimeError, "torch.gradient does not support uint8 input."),
    "torch.gradient(m, spacing=(1, 2, 3))": (
        RuntimeError,
        "torch.gradient expected spacing to be unspecified, a scalar",
    ),
    "torch.gradient(m, dim=0, spacing=(1, 2))": (RuntimeError, "torch.gradient expected spacing to be unspecified"),
    "torch.gradient(m, edge_order=3)": (RuntimeError, "torch.gradient only supports edge_order=1 and edge_order=2."),
    "torch.gradient(v[:1])": (RuntimeError, "torch.gradient expected each dimension size to be at least edge_order+1"),
    "torch.gradient(v, spacing=(m,))": (RuntimeError, "torch.gradient expected each element of spacing to have one"),
    "torch.trapezoid(v[0])": (IndexError, "Dimension specified as -1 but tensor has no dimensions"),
    "torch.cumulative_trapezoid(v[0])": (IndexError, "slice() cannot be applied to a 0-dim tensor."),
    "torch.trapezoid(v.bool())": (RuntimeError, "trapezoid: received a bool input for `y`, but bool is not supported"),
    "torch.trapezoid(m, p[:3])": (RuntimeError, "trapezoid: There must be one `x` value for each sample point"),
    "torch.cumulative_trapezoid(v, dx=1j)": (RuntimeError, "cumulative_trapezoid: Currently, we only support dx as a"),
    "torch.vander(m)": (RuntimeError, "x must be a one-dimensional tensor."),
    "torch.vander(v, -1)": (RuntimeError, "N must be non-negative."),
    "torch.cartesian_prod(m)": (RuntimeError, "Expect a 1D vector, but got shape [3, 4]"),
    "torch.combinations(v, -1)": (RuntimeError, "Expect a non-negative number, but got -1"),
    "v.adjoint()": (RuntimeError, "tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D"),
    "a.H": (RuntimeError, "tensor.H is only supported on matrices (2-D tensors). Got 3-D tensor. For batches of"),
}


@pytest.mark.parametrize("call", WRONG)
def test_what_is_refused(call: str) -> None:
    scope = {name: torch.tensor(array) for name, array in zip("amvp", (A, M, V, P), strict=True)}
    kind, words = WRONG[call]
    with pytest.raises(kind) as caught:
        eval(call, {"torch": torch, **scope})
    assert str(caught.value).startswith(words)


def test_places_to_split_at_and_blocks_stay_on_their_device() -> None:
    with torch.cuda.simulate(devices=1):
        x = torch.ones(4, device="cuda")
        with pytest.raises(RuntimeError, match="tensor_split expected tensor_indices_or_sections to be on cpu"):
            torch.tensor_split(x, torch.tensor([1], device="cuda"))
        with pytest.raises(RuntimeError, match="block_diag: input tensors must all be on the same device"):
            torch.block_diag(x, torch.ones(1))
        with pytest.raises(RuntimeError, match=r"setStorage: sizes \[5\]"):
            x.as_strided((5,), (1,), 1)
