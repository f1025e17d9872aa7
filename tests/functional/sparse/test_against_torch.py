"""Sparse tensors beside PyTorch's: the same statements print the same, or raise with the same first words."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

import tritensor

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

STATEMENTS = """
S; C; H; S.double(); S.half(); S.int(); C.bool(); S.layout; D.layout; S.indices(); C.indices(); C.values()
S._indices(); S._nnz(), S.sparse_dim(), S.dense_dim(), H.dense_dim(), D.sparse_dim(), D.dense_dim()
S.shape, S.numel(), len(S); S.type(); S + S; (S + S)._nnz(); C + C; C - T.coalesce(); (S + T).coalesce(); S + D
D + S; D - S; S - D; S + 1; D.add(S, alpha=2); D.add_(S); S.double() + S; D.double() + S; D.sub_(S, alpha=2)
S.add_(T).coalesce(); S.add_(D); S - S; S + H; D + H; D.add_(H); S * 2; 2 * S; S.mul_(2); S / 2
S / torch.tensor(2.); S / D; S * D; D * S; (C * T.coalesce()).to_dense(); S * torch.ones(3); -S; S.div_(2); S.abs()
S.sqrt(); S ** 2; S.square(); S.sin(); S.tanh(); S.relu(); S.sign(); S.floor(); S.isnan(); S // 2; S.log1p(); S.neg_()
S.exp(); S.cos(); S.max(); S.sort(); S.view(9); S == S; S.clamp(1); S.fill_(1); torch.where(D > 1, D, S); S.argmax()
S.sum(); S.sum(0); S.sum(1); H.sum(0); H.sum(1); torch.sparse.sum(S); torch.sparse.sum(H, (0, 1)); S.norm()
S.norm(1); H.norm(); S.t(); S.transpose(0, 1); S.T.is_coalesced(); H.transpose(0, 1); S.permute(1, 0); S.mT
S @ D; D @ S; S @ D[0]; torch.mm(S, D); torch.sparse.mm(S, D); torch.sparse.mm(D, S); S @ S; S @ T
torch.addmm(D, S, D); torch.sparse.addmm(D, S, D, beta=0.5, alpha=2); torch.nn.functional.linear(S, D); S @ D[:2]
S @ D.double(); S @ torch.ones(4); S.to_dense(); H.to_dense(); D.to_dense() is D; D.to_sparse(); D.to_sparse(1)
S.to_sparse() is S; C.coalesce() is C; D.sparse_mask(S); D.sparse_mask(C); S.sparse_mask(C); D.sparse_mask(T)
C.sparse_mask(T); D.sparse_mask(H); S.zero_(); torch.zeros_like(S); torch.empty_like(S)._nnz()
S.copy_(T); S.copy_(C.double()); S.copy_(D); D.copy_(S); D.mul_(S); D.mul_(S)._version; D.long().add_(S)
torch.ones_like(S); S.clone(); S.detach(); S.cpu() is S; S.numpy(); S.tolist(); S.item(); D.indices(); D.values()
D._nnz(); D._indices(); D.coalesce(); D.is_coalesced(); S.requires_grad_(); S.requires_grad_().to_dense().sum()
S.double().requires_grad_(); torch.sparse_coo_tensor(size=(2, 3)); torch.sparse_coo_tensor((2, 3))
torch.sparse_coo_tensor([[0], [1]], [2]); torch.sparse_coo_tensor([[0], [1]], [2, 3], (3, 3))
torch.sparse_coo_tensor([0, 1], [2., 3.]); torch.sparse_coo_tensor([[0, 1]], [2., 3.], (3, 3))
torch.sparse_coo_tensor([[0, 1]], [[2.], [3.]], (3, 2)); torch.sparse_coo_tensor([[0, -1]], [2., 3.])
torch.sparse_coo_tensor([[0, 5]], [2., 3.], (3,), check_invariants=True)
torch.sparse_coo_tensor([[0, 0]], [True, False], (3,)).to_dense(); torch.sparse_coo_tensor([[1]], 3.)
torch.sparse_coo_tensor([[0, 1]], [2., 3.], (3,), dtype=torch.float64, requires_grad=True)
torch.sparse_coo_tensor([[0, 1]], [2., 3.], (3,), is_coalesced=True).values()
torch.sparse_coo_tensor([[]], [], (3,))
torch.sparse_coo_tensor(torch.arange(1200).reshape(1, -1), torch.arange(1200.) * 1.5)
"""


def told(library: ModuleType, statement: str) -> str:
    """What a statement's value prints, or its error."""
    make = library.sparse_coo_tensor
    names = {
        "torch": library,
        "S": make([[0, 2, 0], [1, 0, 1]], [1.0, 2.0, 3.0], (3, 3)),
        "C": make([[0, 2, 0], [1, 0, 1]], [1.0, 2.0, 3.0], (3, 3)).coalesce(),
        "T": make([[1, 2], [1, 0]], [5.0, 2.0], (3, 3)),
        "H": make([[0, 2, 0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], (4, 2)),
        "D": library.arange(9.0).reshape(3, 3),
    }
    try:
        return repr(eval(statement, names)).replace("tritensor.", "torch.")
    except (RuntimeError, TypeError, IndexError) as error:
        words = str(error).splitlines()[0].replace("'aten::", "'")
        name = re.match(r"Could not run '(\w+?)_?[.'].* arguments", words)  # without the name of an overload
        return f"raises that there is no {name[1]}" if name else f"raises {words[:50]}"


@pytest.mark.parametrize("line", STATEMENTS.strip().splitlines(), ids=lambda line: line[:30])
def test_statements(line: str) -> None:
    for statement in line.split("; "):
        assert told(tritensor, statement) == told(torch, statement), statement
