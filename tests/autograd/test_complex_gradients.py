"""Gradients of complex tensors: PyTorch's convention, the direction of steepest ascent of a real loss."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch

X = np.array([1.0 + 2.0j, -0.5 + 0.3j, 0.2 - 1.1j])
Y = np.array([0.3 - 1.0j, 1.5 + 0.2j, -1.2 - 0.1j])
R = np.array([0.5, 1.5, 2.0])
WEIGHTS = np.array([1.0 - 2.0j, 0.5 + 1.0j, -1.5 + 0.25j])

FUNCTIONS = {
    "product": lambda x, y, r: x * y,
    "quotient": lambda x, y, r: x / y,
    "number over": lambda x, y, r: 2j / x,
    "real factor": lambda x, y, r: x * r,
    "real divisor": lambda x, y, r: x / r,
    "power": lambda x, y, r: x**y,
    "integer power": lambda x, y, r: x**3,
    "of a number": lambda x, y, r: (1 + 2j) ** x,
    "real base": lambda x, y, r: r**x,
    "sgn": lambda x, y, r: x.sgn(),
    "abs": lambda x, y, r: x.abs() * y,
    "conj": lambda x, y, r: x.conj() * y,
    "prod": lambda x, y, r: x.prod(),
    "cumsum": lambda x, y, r: x.cumsum(0) * y,
    "matmul": lambda x, y, r: x.outer(y) @ y,
    "linear": lambda x, y, r: torch.nn.functional.linear(x, y.outer(x)),
    "dot": lambda x, y, r: x @ y,
    "where": lambda x, y, r: torch.where(r > 1, x, y) * x,
    "addcdiv": lambda x, y, r: x.addcdiv(y, x),
    "lerp": lambda x, y, r: x.lerp(y, 0.25) * x,
    "norm": lambda x, y, r: x.norm() * y,
    "in place": lambda x, y, r: x.clone().mul_(y).div_(x + 3),
    **{
        name: lambda x, y, r, name=name: getattr(x, name)()
        for name in [
            "exp",
            "log",
            "sin",
            "cos",
            "tan",
            "sinh",
            "cosh",
            "tanh",
            "asin",
            "acos",
            "atan",
            "asinh",
            "acosh",
            "atanh",
            "sqrt",
            "rsqrt",
            "square",
            "reciprocal",
            "log2",
            "log10",
            "log1p",
            "expm1",
            "exp2",
            "sigmoid",
        ]
    },
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_gradients_are_those_of_differences(function):
    def loss(*operands):
        result = function(*operands)
        weights = torch.from_numpy(WEIGHTS[: result.numel()]).reshape(result.shape)
        value = (result * weights).sum()
        return value.real

    operands = [torch.from_numpy(each.copy()).requires_grad_() for each in (X, Y, R)]
    loss(*operands).backward()
    step = 1e-6
    for operand in operands:
        if operand.grad is None:
            continue
        assert operand.grad.dtype is operand.dtype
        wanted = np.zeros(3, complex)
        for place in range(3):
            for part in (1, 1j) if operand.is_complex() else (1,):
                values = []
                for sign in (1, -1):
                    with torch.no_grad():
                        moved = [each.detach().clone() for each in operands]
                        moved[[each is operand for each in operands].index(True)][place] += sign * step * part
                        values.append(loss(*moved).item().real)
                wanted[place] += part * (values[0] - values[1]) / (2 * step)
        np.testing.assert_allclose(operand.grad.numpy(), wanted, rtol=1e-5, atol=1e-7)


def test_second_derivatives():
    x = torch.tensor([1.0 + 2.0j, 0.5 - 1.0j], dtype=torch.complex128, requires_grad=True)
    (first,) = torch.autograd.grad((x**3).sum(), x, torch.tensor(1 + 0j, dtype=torch.complex128), create_graph=True)
    np.testing.assert_allclose(first.detach().numpy(), np.conj(3 * x.detach().numpy() ** 2))
    (second,) = torch.autograd.grad(first.sum(), x, torch.tensor(1 + 0j, dtype=torch.complex128))
    np.testing.assert_allclose(second.numpy(), np.conj(6 * x.detach().numpy()))
