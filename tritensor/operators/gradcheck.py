"""Comparison of gradients with finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import autograd
from ..errors import explain
from ..tensors import Tensor, wrap


class GradcheckError(RuntimeError):
    """An analytical gradient that differs from the finite difference."""


def _flat_gradient(
    outputs: Sequence[Tensor], weights: Sequence[np.ndarray], inputs: Sequence[Tensor]
) -> list[np.ndarray]:
    """The gradients of sum(outputs * weights) by autograd, as arrays."""
    gradients = autograd.grad(
        outputs,
        inputs,
        [wrap(weight).to(out.device) for out, weight in zip(outputs, weights, strict=True)],
        allow_unused=True,
        create_graph=False,
        retain_graph=True,
    )
    return [
        np.zeros(tuple(x.shape)) if g is None else g.detach()._to_host().astype(np.float64)
        for x, g in zip(inputs, gradients, strict=True)
    ]


def gradcheck(
    func: Callable[..., Any],
    inputs: object,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Compare gradients with central finite differences, each input along random directions and along each element
    where there are at most 64.

    Args:
        func: takes the inputs, returns a tensor or a tuple of tensors.
        inputs: a tensor or a tuple; those that require grad are checked and should be float64.
        eps: step of the difference.

    Raises:
        GradcheckError: they differ by more than `atol + rtol * |difference quotient|`.
    """
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    active = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    if not active:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    outputs = [out for out in _outputs(func, inputs) if out.requires_grad]
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(tuple(out.shape)).astype(out.dtype.numpy) for out in outputs]
    analytic = _flat_gradient(outputs, weights, active)
    for number, (x, gradient) in enumerate(zip(active, analytic, strict=True)):
        size = x.numel()
        directions = [np.eye(1, size, k).reshape(x.shape) for k in range(size)] if size <= 64 else []
        directions += [rng.standard_normal(tuple(x.shape)) for _ in range(2)]
        for direction in directions:
            quotient = _difference(func, inputs, x, direction, eps, weights)
            along = float((gradient * direction).sum())
            if not abs(along - quotient) <= atol + rtol * abs(quotient):
                if raise_exception:
                    raise GradcheckError(
                        explain(
                            "Jacobian mismatch for output 0 with respect to input " + str(number),
                            f"finite difference {quotient:.10g}, analytical {along:.10g}",
                        )
                    )
                return False
    return True


def _outputs(func: Callable[..., Any], inputs: tuple[Any, ...]) -> list[Tensor]:
    result = func(*inputs)
    return list(result) if isinstance(result, (tuple, list)) else [result]


def _difference(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    x: Tensor,
    direction: np.ndarray,
    eps: float,
    weights: Sequence[np.ndarray],
) -> float:
    """The central difference of sum(outputs * weights) along `direction` of `x`, which is restored afterwards."""
    before = x._data
    host = x.detach()._to_host()
    values = []
    try:
        for step in (eps, -eps):
            x._data = wrap(np.asarray(host + step * direction, host.dtype)).to(x.device)._data
            outputs = [out for out in _outputs(func, inputs) if out.requires_grad]
            values.append(
                sum(
                    float((out.detach()._to_host().astype(np.float64) * weight).sum())
                    for out, weight in zip(outputs, weights, strict=True)
                )
            )
    finally:
        x._data = before
    return (values[0] - values[1]) / (2 * eps)


def gradgradcheck(
    func: Callable[..., Any],
    inputs: object,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Compare second derivatives with finite differences of the first; arguments as `gradcheck`."""
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    rng = np.random.default_rng(1)
    outputs = [out for out in _outputs(func, inputs) if out.requires_grad]
    weights = [
        wrap(np.asarray(rng.standard_normal(tuple(out.shape)), out.dtype.numpy)).to(out.device) for out in outputs
    ]
    for weight in weights:
        weight._needs = True
    active = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]

    def first(*arguments: Any) -> tuple[Any, ...]:
        values = arguments[: len(inputs)]
        made = [out for out in _outputs(func, values) if out.requires_grad]
        found = autograd.grad(
            made,
            [x for x in values if isinstance(x, Tensor) and x.requires_grad],
            arguments[len(inputs) :],
            create_graph=True,
            allow_unused=True,
        )
        return tuple(g if g is not None else x * 0 for g, x in zip(found, active, strict=True))

    return gradcheck(first, (*inputs, *weights), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)


autograd.gradcheck = gradcheck
autograd.gradgradcheck = gradgradcheck
