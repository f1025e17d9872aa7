"""Sums of products by an equation: what it may say, broadcasting, gradients, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch

from .products import numbers

EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("ij->ji", (2, 3)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("ij->", (2, 3)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
    ("...ij,...jk->...ik", (5, 2, 3), (3, 4)),
    ("i,j->ij", (2,), (3,)),
    ("ij,ij->ij", (2, 3), (2, 3)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("...i->...", (2, 3)),
    ("b...->...", (2, 3)),
    (" i j , j k -> i k ", (2, 3), (3, 4)),
    ("aab->b", (2, 2, 3)),
    ("i...,i...->...", (2, 3), (2, 4, 3)),
    ("ab,ab->", (2, 3), (2, 3)),
    ("ba,cb", (2, 3), (4, 2)),
    ("...a,...a", (2, 3), (2, 3)),
    ("i,i,i->", (3,), (3,), (3,)),
    ("ij,kl->", (2, 3), (4, 5)),
    ("ij,j->j", (0, 3), (3,)),
]


@pytest.mark.parametrize("case", EQUATIONS, ids=str)
def test_einsum(case):
    equation, *shapes = case
    arrays = [numbers(shape, "float64", seed) for seed, shape in enumerate(shapes)]
    wanted = np.einsum(equation, *arrays)
    found = torch.einsum(equation, *[torch.from_numpy(array) for array in arrays])
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        torch.einsum(equation, [torch.from_numpy(array) for array in arrays]).numpy(), wanted, atol=1e-12
    )


def test_einsum_broadcasts_dimensions_of_size_1():
    x, y = torch.from_numpy(numbers((2, 3), "float64")), torch.from_numpy(numbers((1, 3), "float64", 1))
    np.testing.assert_allclose(torch.einsum("ab,ab->", x, y).numpy(), (x.numpy() * y.numpy()).sum())
    np.testing.assert_allclose(torch.einsum("ab,ab->ab", x, y).numpy(), x.numpy() * y.numpy())


def test_einsum_has_gradients():
    x = torch.from_numpy(numbers((2, 2, 3), "float64")).requires_grad_()
    y = torch.from_numpy(numbers((3, 2), "float64", 1)).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, y: torch.einsum("aij,ja->ai", x, y), (x, y))
    assert torch.autograd.gradgradcheck(lambda x, y: torch.einsum("aai,ia->a", x, y), (x, y))


@pytest.mark.parametrize(
    ("equation", "shapes", "message"),
    [
        (
            "ij,jk",
            [(2, 3), (2, 3)],
            "subscript j has size 2 for operand 1 which does not broadcast with previously seen size 3",
        ),
        ("ij", [(2, 3), (3, 4)], "more operands were provided than specified in the equation"),
        ("ij,jk", [(2, 3)], "fewer operands were provided than specified in the equation"),
        (
            "ijk",
            [(2, 3)],
            r"the number of subscripts in the equation \(3\) does not match the number of dimensions \(2\)",
        ),
        (
            "ijk...",
            [(2, 3)],
            r"the number of subscripts in the equation \(3\) does not match the number of dimensions \(2\)",
        ),
        ("ij->ik", [(2, 3)], "output subscript k does not appear in the equation for any input operand"),
        ("ij->ii", [(2, 3)], "output subscript i appears more than once in the output"),
        ("i1", [(2, 3)], "invalid subscript given at index 1 in the equation string"),
        ("ij->i->j", [(2, 3)], "invalid subscript given at index 5 in the equation string"),
        ("ii", [(2, 3)], "subscript i is repeated for operand 0 but the sizes don't match, 3 != 2"),
        ("ij->i.", [(2, 3)], r"found '.' for output that is not part of any ellipsis \(...\)"),
        ("..ij", [(2, 3)], "found '.' for operand 0 that is not part of any ellipsis"),
        ("...i...", [(2, 3)], "found '.' for operand 0 for which an ellipsis was already found"),
    ],
)
def test_equations_that_do_not_fit_are_refused(equation, shapes, message):
    with pytest.raises(RuntimeError, match=message):
        torch.einsum(equation, *[torch.ones(shape) for shape in shapes])


def test_einsum_needs_an_equation_and_operands():
    with pytest.raises(ValueError, match="must specify the equation string and at least one operand"):
        torch.einsum("")
    with pytest.raises(TypeError, match="the equation must be a string"):
        torch.einsum(torch.ones(2), [0])
