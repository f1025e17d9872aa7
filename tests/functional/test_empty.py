"""Operands without elements: products of nothing are zero, and softmax of nothing is nothing, in PyTorch's dtypes."""

from __future__ import annotations

import math

import pytest

import tritensor as torch
from tritensor.nn import functional as F

from ..needs import needs_triton


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=needs_triton)])
def device(request):
    if request.param == "cpu":
        yield request.param
    else:
        with torch.cuda.simulate(devices=1):
            yield request.param


SHAPES = [
    ((2, 0), (0, 3), (2, 3)),
    ((0, 3), (3, 2), (0, 2)),
    ((0,), (0,), ()),
    ((2, 0), (0,), (2,)),
    ((0,), (0, 2), (2,)),
    ((5, 2, 0), (5, 0, 4), (5, 2, 4)),
    ((5, 2, 0), (0, 4), (5, 2, 4)),
    ((5, 2, 0), (0,), (5, 2)),
    ((0,), (5, 0, 4), (5, 4)),
    ((0, 2, 3), (1, 3, 4), (0, 2, 4)),
    ((0, 2, 3), (3,), (0, 2)),
]


@pytest.mark.parametrize(("first", "second", "wanted"), SHAPES)
def test_products_of_nothing_are_zero_and_have_gradients(device, first, second, wanted):
    x, y = (torch.zeros(shape, device=device, requires_grad=True) for shape in (first, second))
    product = x @ y
    assert product.tolist() == torch.zeros(wanted).tolist()
    product.sum().backward()
    assert (tuple(x.grad.shape), tuple(y.grad.shape)) == (first, second)
    assert not x.grad.any() and not y.grad.any()


@pytest.mark.parametrize(("first", "second", "wanted"), [shapes for shapes in SHAPES if shapes[2] != ()])
def test_booleans_are_multiplied_where_there_is_nothing(device, first, second, wanted):
    x, y = (torch.zeros(shape, dtype=torch.bool, device=device) for shape in (first, second))
    product = x @ y
    assert product.dtype is torch.bool
    assert product.tolist() == torch.zeros(wanted, dtype=torch.bool).tolist()
    if len(first) == len(second) == 2:
        assert torch.einsum("ij,jk->ik", x, y).tolist() == product.tolist()
        assert F.linear(x, y.mT).tolist() == product.tolist()
    for two in ((torch.zeros(0, dtype=torch.bool),) * 2, (torch.ones(1, 1, dtype=torch.bool),) * 2):
        with pytest.raises(RuntimeError, match="not implemented for 'Bool'"):
            two[0] @ two[1]


def test_linear_and_inner_of_nothing(device):
    x = torch.zeros(4, 5, 0, device=device, requires_grad=True)
    weight = torch.zeros(3, 0, device=device, requires_grad=True)
    bias = torch.zeros(3, device=device, requires_grad=True)
    F.linear(x, weight, bias).sum().backward()
    assert (tuple(x.grad.shape), tuple(weight.grad.shape), bias.grad.tolist()) == ((4, 5, 0), (3, 0), [20, 20, 20])
    nothing = torch.zeros(0, device=device)
    assert torch.inner(nothing, nothing).item() == 0
    assert torch.inner(nothing.expand(2, 0), nothing.expand(3, 0)).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert torch.inner(torch.ones(2, 2, device=device), torch.ones(2, device=device)).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("equation", "shapes", "wanted"),
    [
        ("ij,jk->ik", ((2, 0), (0, 3)), (2, 3)),
        ("ij,j->i", ((2, 1), (0,)), (2,)),
        ("ij,jk->ik", ((2, 1), (0, 3)), (2, 3)),
        ("ij,jk->ik", ((2, 0), (1, 3)), (2, 3)),
        ("...ij,...jk->ik", ((0, 2, 3), (1, 3, 4)), (2, 4)),
        ("ij,jk,kl->il", ((2, 3), (3, 0), (0, 4)), (2, 4)),
        ("ii->", ((0, 0),), ()),
        ("ij,kl->ijkl", ((2, 0), (3, 4)), (2, 0, 3, 4)),
    ],
)
def test_einsum_of_nothing(device, equation, shapes, wanted):
    found = torch.einsum(equation, *[torch.zeros(shape, device=device) for shape in shapes])
    assert found.tolist() == torch.zeros(wanted).tolist()


def test_einsum_refuses_sizes_that_differ():
    with pytest.raises(RuntimeError, match="does not broadcast with previously seen size 2"):
        torch.einsum("ij,jk->ik", torch.zeros(2, 2), torch.zeros(0, 3))


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float32])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_nothing(device, name, dtype):
    for shape, dim in (((0,), 0), ((3, 0), 1), ((0, 3), -1), ((3, 0, 2), 0)):
        x = torch.zeros(shape, dtype=dtype, device=device)
        found = getattr(x, name)(dim)
        assert (tuple(found.shape), found.dtype) == (shape, dtype)
        assert getattr(x, name)(dim, dtype=torch.float64).dtype is torch.float64
        with pytest.raises(IndexError, match="Dimension out of range"):
            getattr(x, name)(5)
    if dtype is not torch.float32:
        with pytest.raises(RuntimeError, match=f'"{name}_lastdim_kernel_impl" not implemented for'):
            getattr(torch.zeros(1, dtype=dtype, device=device), name)(0)


def test_the_mean_of_no_losses_is_nan(device):
    for shape in ((0, 3), (2, 0, 5), (0, 3, 5)):
        x = torch.zeros(shape, device=device)
        assert math.isnan(F.cross_entropy(x, x).item())
        assert F.cross_entropy(x, x, reduction="sum").item() == 0
    x = torch.zeros(2, 3, 0, device=device)
    assert math.isnan(F.cross_entropy(x, torch.zeros(2, 0, dtype=torch.int64, device=device)).item())


# ---- attention -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [2, 130])
@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, [2, 3]),
        ({"scale": 1.0}, [2, 3]),
        ({"scale": 0.0}, [2, 3]),
        ({"attn_mask": [[True, False, True]]}, [2, 3]),
        ({"attn_mask": [[True, True, False]]}, [1, 2]),
        ({"is_causal": True}, [0, 1]),
    ],
)
def test_attention_without_features_weighs_all_keys_alike(device, rows, options, wanted):
    """The scores are sums of nothing: zero."""
    values = torch.arange(6.0, device=device).reshape(3, 2).requires_grad_()
    query, key = (torch.zeros(size, 0, device=device, requires_grad=True) for size in (rows, 3))
    options = {
        name: torch.tensor(each, device=device) if name == "attn_mask" else each for name, each in options.items()
    }
    found = F.scaled_dot_product_attention(query, key, values, **options)
    torch.testing.assert_close(found[0].detach().cpu(), torch.tensor(wanted).float())
    found.sum().backward()
    assert (tuple(query.grad.shape), tuple(key.grad.shape)) == ((rows, 0), (3, 0))
    torch.testing.assert_close(values.grad.sum().cpu(), torch.tensor(2.0 * rows))


def test_attention_without_features_by_blocks_of_scores():
    found = F.scaled_dot_product_attention(torch.zeros(200, 0), torch.zeros(300, 0), torch.ones(300, 2))
    torch.testing.assert_close(found, torch.ones(200, 2))


def test_attention_refuses_tensors_of_one_dimension():
    with pytest.raises(RuntimeError, match="Expected query, key, and value to all be  at least 2 dimensional, but got"):
        F.scaled_dot_product_attention(torch.ones(1), torch.ones(1, 1), torch.ones(1, 1))


def test_a_product_of_nothing_has_gradients_of_second_order():
    x = torch.zeros(0, requires_grad=True)
    (grad,) = torch.autograd.grad(x.prod() * 2, x, create_graph=True)
    assert grad.shape == (0,)
