"""Gradients of the pieces of one tensor: `split`, `chunk`, `unbind`, `tensor_split` and what is made of them."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda
from tritensor.autograd import grad
from tritensor.errors import AutogradError

from ..needs import HAS_TRITON
from ..runtime.interpreted_device import interpreted_device
from ..sampling import some

CUTS = {
    "split": lambda x: x.split(2, 1),
    "sizes": lambda x: x.split([1, 3, 0, 2], 1),
    "chunk": lambda x: x.chunk(3, -1),
    "unbind": lambda x: x.unbind(1),
    "rows": lambda x: tuple(x),
    "tensor_split": lambda x: x.tensor_split(4, 1),
    "at places": lambda x: x.tensor_split((1, 4), 1),
    "overlapping": lambda x: x.tensor_split((4, 2), 1),
    "hsplit": lambda x: x.hsplit(3),
    "unsafe": lambda x: x.unsafe_chunk(2, 1),
    "copies": lambda x: torch.split_copy(x, 2, 1),
    "of a view": lambda x: x.t()[1:].split(2),
    "of a piece": lambda x: (*x.split(3)[1].unbind(1)[:2], x[0]),
}


USED = ("all", "first", "last", "every other", "twice")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not HAS_TRITON, reason="runs kernels"))])
def device(request):
    with cuda.simulate():
        yield request.param


def numbers(device):
    return torch.arange(24.0, dtype=torch.float64, device=device).reshape(4, 6).requires_grad_()


def by_indexing(x, pieces):
    """The same pieces by the places that their elements have in `x`, so by one gather each."""
    with torch.no_grad():
        places = [piece.long() for piece in pieces]
    return [x.flatten()[place.flatten()].reshape(place.shape) for place in places]


@pytest.mark.parametrize(("cut", "used"), some([(cut, used) for cut in CUTS for used in USED], 4))
def test_gradients_are_those_of_the_elements(device, cut, used):
    found = []
    for where, make in ((device, lambda x: CUTS[cut](x)), ("cpu", lambda x: by_indexing(x, CUTS[cut](x)))):
        x = numbers(where)
        pieces = list(make(x))
        some = {"all": pieces, "first": pieces[:1], "last": pieces[-1:], "every other": pieces[::2]}
        loss = sum((piece.pow(3) * (1 + i)).sum() for i, piece in enumerate(some.get(used, pieces + pieces)))
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
    late = (a * 3).sum() + (b * 7).sum() + (c * 11).sum() + before.sum()
    y.add_(1)
    late = late + a.sum()
    late.backward()
    assert x.grad.tolist() == [[3 + 2 + 1] * 2 + [35.0] * 2 + [11.0] * 2] * 4
    assert (a.tolist(), b.tolist()) == ((x + 1)[:, :2].tolist(), (5 * x + 1)[:, 2:4].tolist())
    squares = [piece * piece for piece in (x * 1).split(3, 1)]
    kept = (x * 1).unbind(0)
    products = kept[0] * kept[1]
    kept[0].zero_()
    with pytest.raises(AutogradError, match="modified by an inplace"):
        products.sum().backward()
    sum(square.sum() for square in squares).backward(retain_graph=True)


def test_hooks_and_kept_gradients_are_those_of_each_piece(device):
    x, seen = numbers(device), []
    a, b, c = (x * 1).chunk(3, 1)
    a.retain_grad()
    b.retain_grad()
    a.register_hook(lambda gradient: seen.append(gradient.tolist()))
    b.register_hook(lambda gradient: gradient * 10)
    c.register_hook(lambda gradient: seen.append("unused"))
    (a * 2 + b * 3).sum().backward()
    assert seen == [[[2.0] * 2] * 4]
    assert a.grad.tolist() == [[2.0] * 2] * 4
    assert x.grad.tolist() == [[2.0] * 2 + [30.0] * 2 + [0.0] * 2] * 4
    assert (a.grad_fn is b.grad_fn, a.output_nr, b.output_nr) == (True, 0, 1)
    assert repr(a).endswith("grad_fn=<SplitBackward0>)")
    assert grad((a * b).sum(), [a, c], allow_unused=True)[1] is None


def test_one_that_takes_no_part_has_no_history():
    x = numbers("cpu")
    with torch.no_grad():
        a, _ = x.split(3, 1)
    b, c = x.detach().split(3, 1)
    assert not (b.requires_grad or c.requires_grad) and a.grad_fn is None
    per_row = torch.func.vmap(torch.func.grad(lambda row: sum(p.pow(i + 1).sum() for i, p in enumerate(row.split(2)))))
    row = x.detach()[0]
    expected = [1.0] * 2 + (2 * row[2:4]).tolist() + (3 * row[4:] ** 2).tolist()
    assert per_row(x.detach())[0].tolist() == expected
    one = torch.func.jacfwd(torch.func.grad(lambda row: row.split(2)[1].pow(3).sum()))(row)
    np.testing.assert_array_equal(one.numpy(), np.diag([0, 0, *(6 * row[2:4]).tolist(), 0, 0]))


@pytest.mark.skipif(not HAS_TRITON, reason="runs kernels")
@pytest.mark.parametrize(("used", "launches"), [(3, 3), (2, 1 + 2), (1, 1 + 1)])
def test_launches_of_the_backward_pass_of_pieces(used, launches):
    """One join, which copies each piece; a fill, a copy and a sum for each of three pieces would be eight."""
    with interpreted_device() as driver:
        counts = []
        for cut in (lambda x: x.split(2), lambda x: [x, x, x]):
            x = torch.ones(6, 4, device="cuda", requires_grad=True)
            pieces = list(cut(x))[:used]
            gradients = [torch.ones_like(piece) for piece in pieces]
            before = len(driver.launches)
            grad(pieces, x, gradients)
            counts.append(len(driver.launches) - before)
        assert counts == [launches, used - 1]
