"""What may be changed in place before the backward pass: whatever the gradient functions do not read.

PyTorch's table of derivatives decides what a program may change, so the operators here save no more than PyTorch's.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import tritensor as torch

# Operands and results that PyTorch lets a program change.
CHANGES = {
    "division, its result": ("x / y", "r"),
    "division by a number, its operand": ("x / 3", "x"),
    "a number divided, its result": ("1 / x", "r"),
    "a number divided, its operand": ("1 / x", "x"),
    "normalize, its result": ("F.normalize(x)", "r"),
    "softsign, its result": ("F.softsign(x)", "r"),
    "attention, its keys": ("F.scaled_dot_product_attention(x, y, z)", "y"),
    "logsigmoid, its result": ("F.logsigmoid(x)", "r"),
}


def gradients(package: Any, expression: str, change: str) -> Any:
    """The gradients of an expression with a change between the forward and the backward pass."""
    scope: dict[str, Any] = {"torch": package}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(_BEFORE + f"r = {expression}\n{change}\n" + _AFTER, scope)
    return [grad.double().reshape(-1).tolist() for grad in scope["found"] if grad is not None]


_BEFORE = """
F = torch.nn.functional
leaves = [
    torch.tensor(rows, requires_grad=True)
    for rows in (
        [[1.1, 1.3, 1.5], [1.7, 1.25, 1.6]], [[1.2, 1.4, 1.15], [1.35, 1.45, 1.65]],
        [[1.45, 1.31, 1.52], [1.73, 1.24, 1.66]], [1.0, 2.0, 3.0], [2.0, 2.5, 3.0], [[0.5, 0.6], [0.7, 0.8]],
    )
]
target, classes, places = torch.tensor([[0.0, 1, 0], [1, 1, 0]]), torch.tensor([0, 1]), torch.tensor([[0], [1]])
x, y, z, v, u, b = (leaf * 1 for leaf in leaves)
"""
_AFTER = """
loss = (r.double() * torch.arange(1.0, r.numel() + 1, dtype=torch.float64).reshape(r.shape)).sum()
(loss + sum(each.sum() * 0 for each in (x, y, z, v, u, b))).backward()
found = [leaf.grad for leaf in leaves]
"""


@pytest.mark.parametrize(("expression", "changed"), CHANGES.values(), ids=CHANGES)
def test_what_is_not_read_may_change(expression: str, changed: str) -> None:
    for before, after in zip(
        gradients(torch, expression, ""), gradients(torch, expression, f"{changed}.add_(1)"), strict=True
    ):
        assert after == pytest.approx(before, rel=1e-6)


READ = {"division": ("x / y", "y"), "product": ("x * y", "x"), "exponential": ("x.exp()", "r"), "power": ("x**2", "x")}


@pytest.mark.parametrize(("expression", "changed"), READ.values(), ids=READ)
def test_what_is_read_may_not(expression: str, changed: str) -> None:
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        gradients(torch, expression, f"{changed}.add_(1)")


# One expression for each differentiable function that both libraries have.
EXPRESSIONS = """
x + y; x - y; x * y; x.div(y); x.add(y, alpha=2); torch.addcmul(x, y, z); torch.addcdiv(x, y, z); torch.lerp(x, y, z)
torch.lerp(x, y, 0.5); -x; x.square(); x.reciprocal(); 1 / x; 3 / x; x**2; x**2.5; x**y; 2**x; x**0.5; x.abs()
x.sgn(); x.sign(); x.clone(); torch.where(x > 1.2, x, y); x.erf(); x.erfc(); x.relu(); F.leaky_relu(x); F.elu(x)
x.sigmoid(); F.silu(x); F.softplus(x); F.gelu(x); F.gelu(x, approximate="tanh"); x // y; x.div(y, rounding_mode="trunc")
x % y; x.remainder(1.5); x.fmod(y); x.exp(); x.exp2(); x.expm1(); x.log(); x.log2(); x.log10(); x.log1p()
torch.logaddexp(x, y); x.sqrt(); x.rsqrt(); torch.maximum(x, y); torch.minimum(x, y); torch.fmax(x, y)
torch.fmin(x, y); x.clamp_min(1.2); x.clamp_max(1.2); x.clamp(1.1, 1.4); x.clamp(y, z); x.floor(); x.ceil(); x.trunc()
x.round(); x.frac(); x.nan_to_num(); x.sin(); x.cos(); x.tan(); (x / 9).asin(); (x / 9).acos(); x.atan()
torch.atan2(x, y); torch.hypot(x, y); x.sinh(); x.cosh(); x.tanh(); x.asinh(); x.acosh(); (x / 9).atanh()
F.mse_loss(x, y, reduction="none"); F.mse_loss(x, y); F.l1_loss(x, y, reduction="none"); F.l1_loss(x, y)
F.binary_cross_entropy_with_logits(x, target); x.sum(); x.sum(0); x.mean(); x.mean(1); x.prod(); x.prod(0); x.var()
x.var(0); x.std(); x.std(1); x.logsumexp(1); x.norm(); x.norm(dim=1); x.norm(p=1); x.norm(p=3); x.norm(p=3, dim=0)
x.norm(p=float("inf")); x.amax(1); x.amin(0); x.max(1)[0]; x.min(0)[0]; x.max(); x.min(); x.cumsum(0); x @ y.t()
torch.mm(x, y.t()); torch.matmul(x, v); torch.addmm(b, x, y.t(), beta=2, alpha=3); F.linear(x, y); F.linear(x, y, b)
torch.bmm(x[None], y.t()[None]); torch.dot(v, u); torch.outer(v, u); torch.einsum("ij,kj->ik", x, y); x.softmax(1)
x.log_softmax(0); F.layer_norm(x, (3,)); F.layer_norm(x, (3,), v, u); F.rms_norm(x, (3,), v); x[:, 1]; x[classes]
x[x > 1.2]; x.index_select(0, classes); x.gather(1, places); x.scatter(1, places, y); x.scatter_add(1, places, y)
torch.cat([x, y]); torch.stack([x, y]); x.sort(1)[0]; x.topk(2)[0]; F.cross_entropy(x, classes); F.cross_entropy(x, y)
F.cross_entropy(x, classes, reduction="none"); F.nll_loss(x, classes); F.normalize(x); F.logsigmoid(x)
F.cosine_similarity(x, y); F.scaled_dot_product_attention(x, y, z); F.hardtanh(x); F.relu6(x); F.mish(x)
F.softsign(x); F.tanhshrink(x); F.pad(x, (1, 1)); x.masked_fill(x > 1.2, 0); x.index_fill(0, classes[1:], 0)
x.index_add(0, classes, y); x.index_copy(0, classes, y); x.repeat(2, 1); x.expand(2, 2, 3); x.flip(0); x.roll(1)
x.tril(); x.triu(); x.t(); x.reshape(3, 2); x.t().reshape(2, 3); x.unsqueeze(0); x.double(); x.nansum()
F.embedding(classes, x); torch.take(x, classes); torch.masked_select(x, x > 1.2); x.flatten(); x.squeeze()
x.split(1)[0]; x.chunk(2)[0]; x.unbind()[0]; x.select(0, 1); x.narrow(1, 0, 2)
""".replace("\n", ";").split(";")

# Refused here alone: the saved operands are those of one kernel in place of PyTorch's several, and need less memory.
MORE_IS_SAVED = [("F.l1_loss", "x"), ("F.l1_loss", "y"), ("F.cross_entropy(x, classes", "x")]


@pytest.mark.peer
@pytest.mark.parametrize("expression", [each.strip() for each in EXPRESSIONS if each.strip()])
def test_every_change_that_pytorch_allows_is_allowed(expression: str) -> None:
    pytorch = pytest.importorskip("torch")
    changes = ["", "r.add_(1)", *[f"{name}.add_(1)" for name in "xyzvub" if name in expression]]
    changes += ["with torch.no_grad(): x.mul_(2)"] if "x" in expression else []
    for change in changes:
        try:
            expected = gradients(pytorch, expression, change)
        except RuntimeError:
            continue
        if any(expression.startswith(start) and f"{name}." in change for start, name in MORE_IS_SAVED):
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                gradients(torch, expression, change)
            continue
        found = gradients(torch, expression, change)
        for ours, theirs in zip(found, expected, strict=True):
            assert ours == pytest.approx(theirs, rel=1e-3, abs=1e-5, nan_ok=True), f"after {change!r}"
