"""Derivatives in PyTorch by another way than a program's: by reverse mode alone, or of functions that are composed of
elementary ones. A derivative of a composed function needs none of the formulas that PyTorch writes by hand."""

from __future__ import annotations

from contextlib import ExitStack
from math import inf, nan
from typing import Any
from unittest.mock import patch

import torch as reference

from .comparison import difference
from .session import Difference, Session

REVERSE = """
def _reverse(f, argnums=0, has_aux=False, randomness=None):
    return torch.func.jacrev(f, argnums, has_aux=has_aux)
def _twice(f, argnums=0):
    return torch.func.jacrev(torch.func.jacrev(f, argnums), argnums)
def _jvp(f):
    def g(*a):
        o, pull = torch.func.vjp(f, *a)
        push = torch.func.vjp(pull, _map(torch.zeros_like, o))[1]
        return o, push(_map(lambda v: v.cos() * 0.5, a))[0]
    return g
_linearize = _jvp"""


def differs_in_torch(found: Difference, session: Session, helpers: str) -> bool:
    """Whether a value that differs from PyTorch's is the one that PyTorch computes by another way."""
    target = found.detail.splitlines()[0].rpartition(" ")[2]
    ways = ((reverse, composed) for composed in (False, True) for reverse in (True, False) if reverse or composed)
    for reverse, composed in ways:
        scope = _run(session.statements, helpers, reverse, composed)
        if target in scope and difference(session.ours[target], scope[target], session.tolerance[target]) is None:
            return True
    return False


def _run(statements: list[str], helpers: str, reverse: bool, composed: bool) -> dict[str, Any]:
    scope: dict[str, Any] = {"torch": reference, "inf": inf, "nan": nan}
    with ExitStack() as stack:
        for owner, name, function in COMPOSED if composed else ():
            stack.enter_context(patch.object(owner, name, function))
        try:
            for statement in statements:
                if reverse:
                    statement = statement.replace("torch.func.jacfwd(", "_reverse(")
                    statement = statement.replace("torch.func.hessian(", "_twice(")
                exec(statement, scope)
                if reverse and statement == helpers:
                    exec(REVERSE, scope)
        except Exception:
            return {}
    return scope


def _layer_norm(x: Any, _: Any) -> Any:
    apart = x - x.mean(-1, keepdim=True)
    return apart / ((apart * apart).mean(-1, keepdim=True) + 1e-5).sqrt()


def _logcumsumexp(x: Any, dim: int) -> Any:
    return reference.stack([x.narrow(dim, 0, last + 1).logsumexp(dim) for last in range(x.shape[dim])], dim)


def _cdist(x: Any, y: Any) -> Any:
    return (x.unsqueeze(-2) - y.unsqueeze(-3)).square().sum(-1).sqrt()


def _attention(query: Any, key: Any, value: Any) -> Any:
    return (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1) @ value


def _det(x: Any) -> Any:
    size = x.shape[-1]
    if size == 1:
        return x[..., 0, 0]
    if size > 4:
        raise NotImplementedError("many minors")
    rest = [x[..., 1:, [other for other in range(size) if other != column]] for column in range(size)]
    return sum((-1) ** column * x[..., 0, column] * _det(rest[column]) for column in range(size))


COMPOSED = (
    (reference.nn.functional, "scaled_dot_product_attention", _attention),
    (reference.linalg, "det", _det),
    (reference.linalg, "slogdet", lambda x: (_det(x).sign(), _det(x).abs().log())),
    (reference, "logdet", lambda x: _det(x).log()),
    (reference.nn.functional, "layer_norm", _layer_norm),
    (reference.nn.functional, "mish", lambda x: x * (1 + x.exp()).log().tanh()),
    (reference.Tensor, "logcumsumexp", _logcumsumexp),
    (reference, "cdist", _cdist),
)
