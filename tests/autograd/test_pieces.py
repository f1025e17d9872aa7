"""Gradients of the pieces of one tensor: `split`, `chunk`, `unbind`, `tensor_split` and what is made of them."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda
from tritensor.autograd import grad
from tritensor.errors import AutogradError

from ..needs import needs_triton
from ..runtime.interpreted_device import interpreted_device
from ..sampling import some

CUTS = {
    "split": lambda x: x.split(2, 1),
    "sizes": lambda x: x.split([1, 3, 0, 2], 1),
    "chunk": lambda x: x.chunk(3, -1),
    "unbind": lambda x: x.unbind(1),
    "at places": lambda x: x.tensor_split((1, 4), 1),
    "overlapping": lambda x: x.tensor_split((4, 2), 1),
    "hsplit": lambda x: x.hsplit(3),
    "unsafe": lambda x: x.unsafe_chunk(2, 1),
    "copies": lambda x: torch.split_copy(x, 2, 1),
    "of a view": lambda x: x.t()[1:].split(2),
    "of a piece": lambda x: (*x.split(3)[1].unbind(1)[:2], x[0]),
}
USED = {"all": slice(None), "first": slice(1), "last": slice(-1, None), "every other": slice(0, None, 2)}


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=needs_triton)])
def device(request):
    with cuda.simulate():
        yield request.param


def numbers(device="cpu"):
    return torch.arange(24.0, dtype=torch.float64, device=device).reshape(4, 6).requires_grad_()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("cut", "used"), some([(cut, used) for cut in CUTS for used in USED], 4))
def test_gradients_are_those_of_the_elements(device, cut, used):
    """The same pieces by the places of their elements have each a gradient of its own: they are gathered."""
    found = []
    for where, by_places in ((device, False), ("cpu", True)):
        x = numbers(where)
        pieces = CUTS[cut](x)
        if by_places:
            pieces = [x.flatten()[piece.detach().long().flatten()].reshape(piece.shape) for piece in pieces]
        loss = sum((piece.pow(3) * (1 + i)).sum() for i, piece in enumerate(pieces[USED[used]] * 2))
        (first,) = grad(loss, x, create_graph=True)
        (second,) = grad(first.pow(2).sum(), x, retain_graph=True)
        loss.backward()
        found.append((first.tolist(), second.tolist(), x.grad.tolist()))
    assert found[0] == found[1]


def test_changes_in_place_of_a_piece_and_of_the_whole(device):
    x = numbers(device)
    y = x * 1
    a, b, c = y.split(2, 1)
    before = a * 2
    b.mul_(5)
    loss = before.sum() + (a * 3).sum() + (b * 7).sum() + (c * 11).sum()
    y.add_(1)
    (loss + a.sum()).backward()
    assert x.grad.tolist() == [[3 + 2 + 1] * 2 + [35.0] * 2 + [11.0] * 2] * 4
    assert (a.tolist(), b.tolist()) == ((x + 1)[:, :2].tolist(), (5 * x + 1)[:, 2:4].tolist())
    first, second, *_ = (x * 1).unbind(0)
    product = first * second
    first.zero_()
    with pytest.raises(AutogradError, match="modified by an inplace"):
        product.sum().backward()


def test_hooks_and_kept_gradients_are_those_of_each_piece(device):
    x, seen = numbers(device), []
    a, b, c = (x * 1).chunk(3, 1)
    a.retain_grad()
    a.register_hook(lambda gradient: seen.append(gradient.tolist()))
    b.register_hook(lambda gradient: gradient * 10)
    c.register_hook(lambda gradient: seen.append("unused"))
    (a * 2 + b * 3).sum().backward()
    assert seen == [a.grad.tolist()] == [[[2.0] * 2] * 4]
    assert x.grad.tolist() == [[2.0] * 2 + [30.0] * 2 + [0.0] * 2] * 4
    assert (a.grad_fn is b.grad_fn, a.output_nr, b.output_nr) == (True, 0, 1)
    assert repr(a).endswith("grad_fn=<SplitBackward0>)")
    assert grad((a * b).sum(), [a, c], allow_unused=True)[1] is None


def test_pieces_within_transformations():
    x = numbers().detach()
    cubes = torch.func.grad(lambda row: row.split(2)[1].pow(3).sum())
    np.testing.assert_array_equal(torch.func.vmap(cubes)(x)[:, 2:4].numpy(), (3 * x[:, 2:4] ** 2).numpy())
    second = [0, 0, *(6 * x[0, 2:4]).tolist(), 0, 0]
    np.testing.assert_array_equal(torch.func.jacfwd(cubes)(x[0]).numpy(), np.diag(second))


@needs_triton
@pytest.mark.parametrize(("used", "launches"), [(3, 3), (2, 1 + 2), (1, 1 + 1)])
def test_launches_of_the_backward_pass_of_pieces(used, launches):
    """One join, which copies each piece; a fill, a copy and a sum for each of three pieces would be eight."""
    with interpreted_device() as driver:
        x = torch.ones(6, 4, device="cuda", requires_grad=True)
        pieces = x.split(2)[:used]
        gradients = [torch.ones_like(piece) for piece in pieces]
        before = len(driver.launches)
        grad(pieces, x, gradients)
        assert len(driver.launches) - before == launches
