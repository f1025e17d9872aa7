"""Tensors with too many dimensions or elements are refused before anything is made, on the CPU and on devices alike."""

from __future__ import annotations

import warnings
from functools import reduce

import pytest

import tritensor as torch
from tritensor.nn import functional as F

from ..needs import needs_triton

ONES = [1] * 65
HUGE = 2**32


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=needs_triton)])
def device(request):
    if request.param == "cpu":
        yield request.param
    else:
        with torch.cuda.simulate(devices=1):
            yield request.param


def nested(depth):
    return reduce(lambda inner, _: [inner], range(depth), 1.0)


# Functions of a tensor of one element, one of 64 dimensions, and their device.
DIMS = {
    "zeros": lambda x, full, device: torch.zeros(ONES, device=device),
    "ones": lambda x, full, device: torch.ones(*ONES, device=device),
    "empty": lambda x, full, device: torch.empty(ONES, device=device),
    "full": lambda x, full, device: torch.full(ONES, 2.0, device=device),
    "new_zeros": lambda x, full, device: x.new_zeros(ONES),
    "rand": lambda x, full, device: torch.rand(ONES, device=device),
    "randint": lambda x, full, device: torch.randint(3, ONES, device=device),
    "tensor": lambda x, full, device: torch.tensor(nested(65), device=device),
    "view": lambda x, full, device: x.view(ONES),
    "reshape": lambda x, full, device: x.reshape(ONES),
    "unflatten": lambda x, full, device: full.unflatten(0, (1, 1)),
    "unsqueeze": lambda x, full, device: full.unsqueeze(-1),
    "expand": lambda x, full, device: x.expand(ONES),
    "broadcast_to": lambda x, full, device: x.broadcast_to(ONES),
    "repeat": lambda x, full, device: x.repeat(ONES),
    "tile": lambda x, full, device: torch.tile(x, ONES),
    "stack": lambda x, full, device: torch.stack([full, full]),
    "meshgrid": lambda x, full, device: torch.meshgrid(*[x] * 65, indexing="ij"),
    "x[None]": lambda x, full, device: full[None],
    "x[None, 0]": lambda x, full, device: full[None, None, 0],
    "x[True]": lambda x, full, device: full[True],
    "x[indices]": lambda x, full, device: full[torch.tensor([[0]])],
    "x[None] = 1": lambda x, full, device: full.__setitem__(None, 1.0),
    "x[indices] = 1": lambda x, full, device: full.__setitem__(torch.tensor([[0]]), 1.0),
    "one_hot": lambda x, full, device: F.one_hot(full.long(), 2),
    "embedding": lambda x, full, device: F.embedding(full.long(), x.reshape(1, 1)),
}


@pytest.mark.parametrize("name", DIMS)
def test_a_tensor_has_at_most_64_dimensions(device, name):
    x, full = torch.zeros(1, device=device), torch.zeros([1] * 64, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeError, match="a tensor has at most 64 dimensions, got 65") as raised:
            DIMS[name](x, full, device)
    assert "NumPy" in str(raised.value)
    assert "flatten" in str(raised.value)
    assert x.item() == full.sum().item() == 0


def test_64_dimensions_are_allowed(device):
    x = torch.tensor(nested(64), device=device)
    assert x.dim() == 64
    assert (x + x).sum().item() == 2
    assert x[0][None].dim() == x.squeeze(0).unsqueeze(5).dim() == 64
    assert x[torch.tensor([0])].dim() == 64
    assert x.repeat([1] * 63 + [3]).tolist() == (x + torch.zeros(3, device=device)).tolist()
    assert x.reshape(1).expand([1] * 63 + [2]).dim() == 64


OVERFLOW = {
    "zeros": (lambda x, device: torch.zeros(HUGE, HUGE, device=device), "Storage size calculation overflowed"),
    "ones": (lambda x, device: torch.ones(2**62, 2, device=device), "Storage size calculation overflowed"),
    "empty": (lambda x, device: torch.empty(2**63 - 1, device=device), "Storage size calculation overflowed"),
    "full": (lambda x, device: torch.full((2**61,), 1.0, device=device), "Storage size calculation overflowed"),
    "without elements": (lambda x, device: torch.zeros(0, HUGE, HUGE, device=device), "overflowed with sizes="),
    "rand": (lambda x, device: torch.rand(HUGE, HUGE, device=device), "Storage size calculation overflowed"),
    "randint": (lambda x, device: torch.randint(3, (HUGE, HUGE), device=device), "Storage size calculation"),
    "eye": (lambda x, device: torch.eye(HUGE, device=device), "Storage size calculation overflowed"),
    "repeat": (lambda x, device: x.repeat(2**62), r"overflowed with sizes=\[18446744073709551616\]"),
    "expand": (lambda x, device: x[:1].expand(HUGE, HUGE), "numel: integer multiplication overflow"),
    "view": (lambda x, device: x[:0].view(HUGE, HUGE, 0), "numel: integer multiplication overflow"),
    "arange": (lambda x, device: torch.arange(2**63 - 1, device=device), "invalid size, possible overflow?"),
    "arange of floats": (lambda x, device: torch.arange(2.0**70, device=device), "invalid size, possible overflow?"),
    "linspace": (lambda x, device: torch.linspace(0, 1, 2**62, device=device), "invalid size, possible overflow?"),
}


@pytest.mark.parametrize("name", OVERFLOW)
def test_a_tensor_has_fewer_than_2_to_the_63_bytes(device, name):
    call, message = OVERFLOW[name]
    with pytest.raises(RuntimeError, match=message):
        call(torch.zeros(4, device=device), device)


def test_a_size_is_a_64_bit_integer(device):
    for sizes in ((2**63,), (2**64, 0)):
        with pytest.raises(TypeError, match='failed to unpack the object at pos 1 with error "Overflow when'):
            torch.zeros(sizes, device=device)
