"""Complex numbers and their parts: views, gradients through them, and numbers made of parts."""

from __future__ import annotations

import math

import pytest

import tritensor as torch
from tritensor.errors import AutogradError, DtypeError, ShapeError


def test_parts_are_views() -> None:
    x = torch.tensor([[1 + 2j, 3 - 1j]])
    parts = torch.view_as_real(x)
    assert parts.tolist() == [[[1, 2], [3, -1]]] and parts.shape == (1, 2, 2)
    assert x.t().real.stride() == (2, 4) and torch.imag(x).tolist() == [[2, -1]]
    parts[0, 0, 1] = 7.0
    x.real = torch.tensor([[5.0, 6.0]])
    x.imag[0, 1] = 8.0
    assert x.tolist() == [[5 + 7j, 6 + 8j]]
    again = torch.view_as_complex(parts)
    assert again.data_ptr() == x.data_ptr() and again.tolist() == x.tolist()
    assert torch.view_as_complex(torch.zeros(0, 2)).shape == (0,)
    assert torch.view_as_real(torch.zeros(0, dtype=torch.complex64)).shape == (0, 2)
    real = torch.ones(2)
    assert torch.real(real) is real and torch.isreal(x * 0 + 1).all() and torch.isreal(real).dtype is torch.bool


def test_the_imaginary_part_of_a_real_tensor_is_zero_and_cannot_be_written() -> None:
    x = torch.tensor([1.0, 2.0])
    assert x.imag.tolist() == [0, 0] and x.imag.dtype is torch.float32
    with pytest.raises(DtypeError, match="imag is not implemented"):
        x.imag = 3.0


def test_gradients_of_parts() -> None:
    x = torch.tensor([1 + 2j], dtype=torch.complex128, requires_grad=True)
    assert (x.real.grad_fn.name(), torch.view_as_real(x).grad_fn.name()) == ("SelectBackward0", "ViewAsRealBackward0")
    (x.real * 2 + x.imag * 3).sum().backward()
    assert x.grad.tolist() == [2 + 3j]
    y = x * 1
    y.imag.mul_(5)
    (grad,) = torch.autograd.grad(y.imag.sum() + y.real.sum(), x)
    assert grad.tolist() == [1 + 5j]
    pairs = torch.tensor([[3.0, 4.0]], dtype=torch.float64, requires_grad=True)
    whole = torch.view_as_complex(pairs)
    whole.abs().sum().backward()
    assert pairs.grad.tolist()[0] == pytest.approx([0.6, 0.8]) and whole.grad_fn.name() == "ViewAsComplexBackward0"


def test_numbers_of_two_parts() -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    whole = torch.complex(x, torch.tensor([[0.5]], dtype=torch.float64))
    assert whole.tolist() == [[1 + 0.5j, 2 + 0.5j]] and whole.grad_fn.name() == "ComplexBackward0"
    turned = torch.polar(x, x)
    assert turned[1].item() == pytest.approx(2 * (math.cos(2) + 1j * math.sin(2)))
    assert turned.grad_fn.name() == "PolarBackward0"
    assert torch.autograd.gradcheck(lambda x: torch.view_as_real(torch.polar(x, x * 2)), (x,))
    assert torch.autograd.gradgradcheck(lambda x: torch.view_as_real(torch.complex(x * x, x)), (x,))
    z = torch.tensor([3 + 4j], requires_grad=True)
    assert torch.conj_physical(z).tolist() == [3 - 4j] and torch.conj_physical(x) is x
    assert torch.angle(torch.tensor([1j, -1 + 0j])).tolist() == pytest.approx([math.pi / 2, math.pi])
    assert z.resolve_conj() is z and z.resolve_neg() is z and not z.is_conj() and not torch.is_neg(z)
    torch.angle(z).sum().backward()
    assert z.grad.item() == pytest.approx(-0.16 + 0.12j)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: torch.view_as_real(torch.ones(1)), DtypeError, "view_as_real is only supported for complex"),
        (lambda: torch.imag(torch.ones(1)), DtypeError, "imag is not implemented for tensors with non-complex"),
        (lambda: torch.view_as_complex(torch.ones(2).long()), DtypeError, "only supported for half, float and double"),
        (lambda: torch.view_as_complex(torch.ones(())), ShapeError, "Input tensor must have one or more"),
        (lambda: torch.view_as_complex(torch.ones(3)), ShapeError, "a last dimension of size 2"),
        (lambda: torch.view_as_complex(torch.ones(2, 3).t()), ShapeError, "a last dimension with stride 1"),
        (lambda: torch.view_as_complex(torch.ones(2, 3)[:, :2]), ShapeError, "a stride divisible by 2"),
        (lambda: torch.view_as_complex(torch.ones(2, 4)[:, 1:3]), ShapeError, "a storage_offset divisible by 2"),
        (lambda: torch.complex(torch.ones(1), torch.ones(1).double()), DtypeError, "Expected object of scalar type Fl"),
        (
            lambda: torch.polar(torch.ones(1).long(), torch.ones(1)),
            DtypeError,
            "Expected both inputs to be Half, Float",
        ),
        (lambda: torch.complex(torch.ones(1).half(), torch.ones(1).half()), DtypeError, "ComplexHalf is not supported"),
        (lambda: torch.complex(torch.ones(1), torch.ones(1), out=torch.ones(1)), DtypeError, "for argument 'out'"),
        (lambda: torch.ones((), dtype=torch.complex64, requires_grad=True).backward(), AutogradError, "real scalar"),
    ],
)
def test_refusals(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()
