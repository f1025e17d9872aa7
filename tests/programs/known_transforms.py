"""Derivatives and batches that differ and are meant to."""

from __future__ import annotations

from .kinds import OTHER_WAY, REFUSED, VALUE, Known

TRANSFORMS: tuple[Known, ...] = (
    Known(
        "Tangents that PyTorch drops",
        VALUE,
        OTHER_WAY,
        "Forward mode gives what reverse mode gives, in PyTorch as well. PyTorch's own tangents of `elu` and `polar`, "
        "of a Function inside of two transformations, and of some others are zero or wrong. Third derivatives of "
        "`layer_norm`, `logcumsumexp` and `cdist` are those that PyTorch has of the same functions composed of sums "
        "and roots; its own are zero, nan or wrong.",
        "torch.func.jacfwd(torch.func.jacfwd(torch.nn.functional.elu))(torch.tensor([-1.0]))",
    ),
    Known(
        "Tangents of several values for one place",
        VALUE,
        r"^value (\[\d+\] )*of r\d",
        "Of several values for one place the last is kept, and its tangent; reverse mode gives its gradient to all of "
        "them, in PyTorch as well. PyTorch's tangents are zero inside of some nests, where finite differences are not.",
        "x[[0, -1]] = x[[0, 0]] * x.sum()  # in torch.func.jacfwd(torch.vmap(...)), where x has one element",
        program=r"\[\[0, -1\]\] = (?s:.*)(jacfwd|hessian|_jvp|linearize)\(",
    ),
    Known(
        "Results that are the same for all samples, with `out_dims`",
        VALUE,
        r"^value (\[\d+\] )*of r\d",
        "The batch is where `out_dims` says. PyTorch repeats them along a dimension of the result, or raises.",
        "torch.vmap(lambda x: y, out_dims=1)(torch.ones(2))  # y of shape (2, 3)",
        program=r"vmap\(.*None.*out_dims=-?1",
    ),
    Known(
        "Tangents of Kronecker products of a matrix with itself",
        VALUE,
        r"(?s)^value (\[\d+\] )*of.*torch: .*(nan|inf|e-29\d|e-3\d\d)",
        "They are those of the product; PyTorch's hold memory that nothing was written to.",
        "torch.func.linearize(lambda x: torch.vander(torch.kron(x, x).flatten(), 3).abs(), torch.ones(2, 3))",
        program=r"kron\((?s:.*)_?(linearize|jvp|jacfwd|hessian)\(",
    ),
    Known(
        "Shapes that PyTorch reads from memory that nothing was written to",
        VALUE,
        r"^shape (?s:.*)torch: \(.*\d{9}",
        "Its size is the samples' here.",
        "torch.func.vjp(torch.vmap(lambda x, y: (y * 1).mul_(y), in_dims=(0, None)), torch.ones(3), torch.tensor(1.0))",
    ),
    Known(
        "Masks of what a Function with a `vmap` of its own returns",
        REFUSED,
        r"dynamic shape. Attempted to vmap over (aten::)?nonzero",
        "Its samples may differ, so they choose no places, also where all of them have the same argument.",
        "torch.func.jacrev(torch.func.jacfwd(lambda x: F.apply(x)[F.apply(x) > 0]))(x)",
        program=r"(?s)def vmap\(.*_Turn\.apply",
    ),
    Known(
        "index_select of a number under `vmap`",
        REFUSED,
        r"Index to scalar can have only 1 value",
        "A sample without dimensions is refused as such a tensor is; PyTorch's batching rule gives it one.",
        "torch.vmap(lambda x: x.index_select(0, torch.tensor([0, 0])))(torch.ones(3))",
        program=r"vmap\(",
    ),
    Known(
        "Derivatives beyond 1e15",
        VALUE,
        r"^value (\[\d+\] )*of r\d(?s:.*)\de\+(1[5-9]|[2-9]\d|\d{3})",
        "Differences in them that cancel, and sines of numbers as large, have no digits left in either library.",
        "torch.func.grad(lambda x: (x * 50).exp().cos())(torch.tensor(1.0))",
    ),
    Known(
        "Second derivatives of sinc at 0",
        VALUE,
        r"^value (\[\d+\] )*of (second gradient|r\d)(?s:.*)torch: .*(nan|0\.0)",
        "It is -pi ** 2 / 3; PyTorch's is nan by reverse mode and 0 by forward mode.",
        "torch.func.grad(torch.func.grad(torch.sinc))(torch.tensor(0.0))",
        program=r"\bsinc_?\(",
    ),
    Known(
        "Zero times the derivative of a covariance of one observation",
        VALUE,
        r"^value (\[\d+\] )*of r\d\n.*nan",
        "It is nan, as the covariance is, also by what it does not depend on.",
        "torch.func.jacfwd(lambda x, y: torch.cov(y.reshape(1, -1)), argnums=(0, 1))(torch.ones(1), torch.ones(1))",
        program=r"torch\.cov\(",
    ),
)
