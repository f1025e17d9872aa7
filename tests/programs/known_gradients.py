"""Gradients that differ and are meant to."""

from __future__ import annotations

from .kinds import VALUE, Known

GRADIENTS: tuple[Known, ...] = (
    Known(
        "Gradients of copysign at infinity",
        VALUE,
        r"(?s)^grad's value of.*torch: .*nan",
        "They are the sign; PyTorch divides the result by the number, and infinity by infinity is nan.",
        "torch.tensor(inf, requires_grad=True).copysign(1).backward()",
        "backward",
        r"copysign",
    ),
    Known(
        "Gradients of nextafter at its goal",
        VALUE,
        r"^grad's value of",
        "The result is the number itself, and its gradient 1; PyTorch's is 0.",
        "x.nextafter(x).sum().backward()",
        "backward",
        r"nextafter",
    ),
    Known(
        "Gradients of a least distance that is nan",
        VALUE,
        r"(?s)^grad's value of.*torch: .*nan",
        "Elements that are not the least have no gradient; PyTorch multiplies nan by 0 for them.",
        "torch.nn.functional.pairwise_distance(x, y, p=-inf)  # with a nan",
        "backward",
        r"p=-?inf",
    ),
    Known(
        "Gradients of logcumsumexp for large numbers in float32",
        VALUE,
        "^value of (first|second) gradient",
        "They are sums of products of factors exp(out[k] - out[k + 1]); PyTorch's are exp of differences of numbers as "
        "large as the input, of which it loses as many digits as these have before the point.",
        "x = torch.full((2,), 5000.0, requires_grad=True); x.logcumsumexp(0).sum().backward()",
        r"logcumsumexp\(.*float32",
    ),
    Known(
        "Gradients after a step",
        VALUE,
        r"grad's value of",
        "A step leaves gradients as they are. PyTorch's `foreach=True` with Nesterov's momentum adds that to them.",
        "torch.optim.SGD([x], momentum=0.9, nesterov=True, foreach=True).step()",
        r"(opt|scaler)\.step",
    ),
    Known(
        "Gradients through the first step of momentum",
        VALUE,
        r"of gradients",
        "With `differentiable=True` they go through the first direction as through later ones; PyTorch detaches it.",
        "torch.optim.SGD([x.clone()], momentum=0.9, differentiable=True).step()",
        r"optim\.SGD.*momentum=.*differentiable=True",
    ),
    Known(
        "Gradients of the norm of a single element",
        VALUE,
        r"^value of first gradient",
        "They are zero here, and rounding noise in PyTorch.",
        "torch.nn.functional.layer_norm(x, (1,), weight).sum().backward()",
        r"layer_norm\(.*float32",
    ),
)
