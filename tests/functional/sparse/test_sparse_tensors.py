"""Sparse tensors: parts, conversions, products and sums, gradients, and what is refused."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy as np
import pytest

import tritensor as torch

from ...needs import needs_triton

PLACES, VALUES = [[0, 2, 0], [1, 0, 1]], [1.0, 2.0, 3.0]
DENSE = [[0.0, 4.0, 0.0], [0.0, 0.0, 0.0], [2.0, 0.0, 0.0]]


def matrix(device: Any, **options: Any) -> torch.Tensor:
    return torch.sparse_coo_tensor(PLACES, VALUES, (3, 3), device=device, **options)


def check_parts_and_conversions(device: str) -> None:
    x = matrix(device)
    assert x.is_sparse and x.layout is torch.sparse_coo and str(x.device) == str(device) and not x.is_coalesced()
    assert (x._nnz(), x.sparse_dim(), x.dense_dim(), x.type()[-18:]) == (3, 2, 0, "sparse.FloatTensor")
    assert x._indices().tolist() == PLACES and x._values().tolist() == VALUES
    assert (
        x.to_dense().tolist() == DENSE == x.t().t().to_dense().tolist()
        and x.to_dense(torch.float64).dtype.itemsize == 8
    )
    assert x.T.to_dense().tolist() == x.to_dense().T.tolist()
    once = x.coalesce()
    assert once.coalesce() is once and once.indices().tolist() == [[0, 2], [1, 0]] and once.values().tolist() == [4, 2]
    dense = x.to_dense()
    assert dense.to_dense() is dense and dense.layout is torch.strided and dense.dense_dim() == 2
    assert x.to_sparse() is x and dense.to_sparse().indices().tolist() == [[0, 2], [1, 0]]
    assert dense.to_sparse(1)._values().tolist() == [DENSE[0], DENSE[2]]
    assert (dense + 1).sparse_mask(x)._values().tolist() == [5, 3, 5] == x.sparse_mask(x)._values().add_(1).tolist()
    assert torch.sparse_coo_tensor(size=(2, 3)).sparse_mask(torch.ones(2, 3).to_sparse())._values().tolist() == [0] * 6
    assert x.double().dtype is torch.float64 and x.cpu().coalesce().values().tolist() == [4, 2]
    assert x.zero_()._nnz() == 0 == torch.zeros_like(once)._nnz() and once._nnz() == 2
    flags = torch.sparse_coo_tensor([[0, 0]], [True, False], (2,), device=device)
    assert flags.to_dense().tolist() == [True, False]
    assert torch.sparse_coo_tensor([[1], [2]], 3).shape == (2, 3)


def check_arithmetic(device: str) -> None:
    x, dense = matrix(device), torch.arange(9.0, device=device).reshape(3, 3)
    y = torch.sparse_coo_tensor([[1, 2], [1, 0]], [5.0, 2.0], (3, 3), device=device)
    whole, other = x.to_dense(), y.to_dense()
    for made, expected in (
        (x + y, whole + other),
        (x.coalesce() - y.coalesce(), whole - other),
        (torch.add(x, x, alpha=2), whole * 3),
        (-x * 3 / 2, whole * -1.5),
        (x * torch.tensor(2.0, device=device), whole * 2),
        (x * y, whole * other),
        (dense * x, dense * whole),
        (x.square().sqrt(), whole.abs()),
        (x**2, whole**2),
        (x @ y, whole @ other),
        (x.sum(0), whole.sum(0)),
        (torch.sparse.sum(x, 0, dtype=torch.float64), whole.sum(0, dtype=torch.float64)),
        (torch.sparse.sum(x.t(), 1), whole.sum(0)),
    ):
        assert made.is_sparse and made.to_dense().tolist() == expected.tolist()
    assert (x.coalesce() + y.coalesce()).is_coalesced() and (x + x)._nnz() == 3
    rows = torch.sparse_coo_tensor([[0, 2, 0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], (4, 2), device=device)
    for found, wanted in (
        (dense + x, dense + whole),
        (dense.sub(x, alpha=2), dense - whole * 2),
        (x @ dense, whole @ dense),
        (dense @ x, dense @ whole),
        (x @ dense[0], whole @ dense[0]),
        (torch.sparse.mm(x, dense), whole @ dense),
        (torch.sparse.addmm(dense, x, dense, beta=0.5, alpha=2), torch.addmm(dense, whole, dense, beta=0.5, alpha=2)),
        (torch.addmm(dense, x, dense), torch.addmm(dense, whole, dense)),
        (torch.nn.functional.linear(x, dense), whole @ dense.T),
        (rows.sum(0), rows.to_dense().sum(0)),
        (rows.sum(1).to_dense(), rows.to_dense().sum(1)),
        (x.sum(), whole.sum()),
        (x.norm(), whole.norm()),
        (dense.clone().add_(x, alpha=2), dense + 2 * whole),
        (dense.clone().sub_(x), dense - whole),
        (dense.clone().mul_(x), dense * whole),
        (x.clone().mul_(2).add_(y).to_dense(), whole * 2 + other),
        (x.clone().copy_(y.double()).to_dense(), other),
    ):
        assert not found.is_sparse and np.allclose(found.tolist(), wanted.tolist())
    assert x._values().tolist() == VALUES


def check_gradients(device: str) -> None:
    values = torch.tensor(VALUES, device=device, requires_grad=True)
    dense = torch.arange(6.0, device=device).reshape(3, 2)

    def gradient(function: Any) -> list[float]:
        values.grad = None
        function(torch.sparse_coo_tensor(torch.tensor(PLACES, device=device), values, (3, 3))).sum().backward()
        return values.grad.tolist()

    assert gradient(lambda x: x.to_dense() ** 2) == [8, 4, 8]
    assert gradient(lambda x: x @ dense) == [5, 1, 5]
    assert gradient(lambda x: (x + x.t()).coalesce().values()) == [2, 2, 2]
    assert gradient(lambda x: (x * 2).square().to_dense()) == [32, 16, 32]
    assert gradient(lambda x: (x @ x).to_dense()) == [2, 4, 2]
    x = matrix(device, requires_grad=True)
    dense.requires_grad_()
    torch.sparse.mm(x, dense).sum().backward()
    assert (
        x.grad.is_sparse
        and x.grad.coalesce().values().tolist() == [5, 1]
        and dense.grad.tolist() == [[2] * 2, [4] * 2, [0] * 2]
    )
    (x.to_dense().sum() * 2).backward()
    assert x.grad.coalesce().values().tolist() == [7, 3]
    full = torch.ones(2, 2, device=device, requires_grad=True)
    (full.to_sparse().to_dense() * 3).sum().backward()
    assert full.grad.tolist() == [[3, 3], [3, 3]]


CHECKS = (check_parts_and_conversions, check_arithmetic, check_gradients)


@pytest.mark.parametrize("check", CHECKS)
def test_on_the_cpu(check: Any) -> None:
    check("cpu")


@needs_triton
@pytest.mark.thorough
@pytest.mark.parametrize("check", CHECKS)
def test_on_a_device(check: Any) -> None:
    with torch.cuda.simulate():
        check("cuda:0")


def test_printing_copies_and_files(device: torch.device) -> None:
    x = matrix(device, dtype=torch.float64)
    place, end = (
        ("", " layout=tritensor.sparse_coo,\n       ")
        if device.type == "cpu"
        else ("device='cuda:0', ", "\n       layout=tritensor.sparse_coo, ")
    )
    assert repr(x.requires_grad_()) == (
        "tensor(indices=tensor([[0, 2, 0],\n                       [1, 0, 1]]),\n"
        "       values=tensor([1., 2., 3.]),\n"
        f"       {place}size=(3, 3), nnz=3, dtype=tritensor.float64,{end}requires_grad=True)"
    )
    assert "values=tensor([], size=(0, 2)),\n" in repr(
        torch.sparse_coo_tensor(torch.empty(1, 0), torch.empty(0, 2), (4, 2))
    )
    x.grad = x.detach() * 2
    for again in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert again._values().tolist() == VALUES and again.requires_grad and again.device == x.device
    file = io.BytesIO()
    torch.save({"x": x, "same": x, "sorted": x.detach().coalesce()}, file)
    loaded = torch.load(io.BytesIO(file.getvalue()))
    assert loaded["x"] is loaded["same"] and loaded["x"]._values().tolist() == VALUES
    assert loaded["sorted"].is_coalesced() and not loaded["x"].is_coalesced() and loaded["x"].device == x.device


def test_what_there_is_not_is_refused_in_pytorchs_words(device: torch.device) -> None:
    x, dense = matrix(device), torch.ones(3, 3, device=device)
    rows = torch.sparse_coo_tensor([[0, 2]], [[1.0, 2.0], [3.0, 4.0]], (4, 2), device=device)
    backend = f"'Sparse{device.type.upper()}' backend"
    for name, call in {
        "exp": lambda: x.exp(),
        "view": lambda: x.view(9),
        "fill_": lambda: x.fill_(1),
        "eq": lambda: x == x,
        "where": lambda: torch.where(dense > 1, dense, x),
        "floor_divide": lambda: dense // x,
        "sum": lambda: x.sum(0, keepdim=True),
        "norm": lambda: x.norm(dim=0),
        "sort": lambda: x.sort(),
        "max": lambda: x.max(),
    }.items():
        with pytest.raises(NotImplementedError, match=f"Could not run '{name}' with arguments from the {backend}"):
            call()
    words = {
        "can't convert Sparse layout tensor to numpy": lambda: matrix("cpu").numpy(),
        "Cannot access data pointer of Tensor that doesn't have storage": lambda: x.tolist(),
        r"add\(sparse, dense\) is not supported. Use add\(dense, sparse\) instead": lambda: x + dense,
        "add: expected sizes of 'self' and 'other' to match": lambda: x + rows,
        "add: expected 'self' and 'other' to have same size": lambda: dense + rows,
        "Sparse division requires a scalar or zero-dim dense tensor": lambda: x / dense,
        r"copy_\(\) between dense and sparse Tensors is not implemented!": lambda: x.copy_(dense),
        "copy_.. between .* Found self type = .*FloatTensor and src type = .*sparse": lambda: dense.copy_(x),
        r"copy_\(\): sizes \[3, 3\] and \[4, 2\] differ": lambda: x.copy_(rows),
        "Can't convert result type Float to output Long in add operation": lambda: dense.long().add_(x),
        "Cannot get indices on an uncoalesced tensor, please call .coalesce": lambda: x.indices(),
        "indices expected sparse coordinate tensor layout but got Strided": lambda: dense.indices(),
        "values expected sparse tensor layout but got Strided": lambda: dense.values(),
        "Could not run '_indices' with arguments from": lambda: dense.sparse_mask(dense),
        r"sparse_mask\(\): operands have incompatible sizes": lambda: dense.sparse_mask(rows),
        "sparse transpose: transposed dimensions must be sparse": lambda: rows.t(),
        "dense_to_sparse: sparse_dim argument must be in": lambda: dense.to_sparse(3),
        "mv: expected self.size": lambda: x @ torch.ones(4, device=device),
        r"addmm: Argument #3 \(dense\): Expected dim 0 size 3, got 4": lambda: x @ torch.ones(4, 2, device=device),
        "addmm: matrices expected": lambda: rows @ dense,
        "expected scalar type Float but found Double": lambda: x @ dense.double(),
        "indices must be sparse_dim x nnz, but got": lambda: torch.sparse_coo_tensor([0, 1], [1.0, 2.0]),
        "a tensor without sparse dimensions": lambda: torch.sparse_coo_tensor(torch.empty(0, 1), [1.0], ()),
        "indices and values must have same nnz": lambda: torch.sparse_coo_tensor([[0, 1]], [1.0]),
        "found negative index -1 for dim 0": lambda: torch.sparse_coo_tensor([[-1]], [1.0]),
        "size is inconsistent with indices: for dim 0, size is 1 but found index 1": lambda: torch.sparse_coo_tensor(
            [[1]], [1.0], (1,), check_invariants=True
        ),
        r"'len\(size\) == sparse_dim \+ dense_dim' is not satisfied": lambda: torch.sparse_coo_tensor(
            [[1]], [1.0], (1, 2)
        ),
        r"values has incorrect size, expected \[1, 2\], got \[1, 1\]": lambda: torch.sparse_coo_tensor(
            [[1]], [[1.0]], (2, 2)
        ),
    }
    for expected, call in words.items():
        with pytest.raises((RuntimeError, TypeError), match=expected):
            call()
