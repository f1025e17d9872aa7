"""Small modules that several tests take apart, and their state in numbers."""

from __future__ import annotations

import numpy as np

import tritensor as torch
from tritensor import nn


class Block(nn.Module):
    """A parameter, two buffers (one not persistent) and a child."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 2)
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("cache", torch.ones(1), persistent=False)

    def forward(self, x):
        return self.inner(x) * self.scale + self.mean


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2, bias=False)
        self.b = nn.Linear(2, 2, bias=False)
        self.b.weight = self.a.weight


class Careless(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.register_buffer("table", torch.ones(2))
        self.plain = torch.ones(2, 3)
        self.listed = [torch.ones(1), nn.Linear(2, 1, bias=False)]
        self.nested = {"key": (torch.zeros(4),)}
        self.known = [self.weight, nn.Identity()]
        self.child = nn.Identity()
        self.alias = {"child": self.child}
        self.count = torch.zeros(1, dtype=torch.int64)
        self.view_of_table = self.table


def values(module):
    return {key: tensor.numpy().copy() for key, tensor in module.state_dict().items()}


def assert_same(one, other):
    assert list(one) == list(other)
    for key in one:
        np.testing.assert_array_equal(one[key], other[key])
