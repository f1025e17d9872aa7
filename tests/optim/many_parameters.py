"""Parameters of many shapes on a device, their gradients, and how two optimizers' states compare."""

from __future__ import annotations

import numpy as np

import tritensor as torch
from tritensor import nn

SHAPES = [(5, 7), (1,), (), (0, 3), (300,), (4, 4, 4)]


def parameters(shapes, device, kind=torch.float32, seed=0):
    rng = np.random.default_rng(seed)
    return [nn.Parameter(torch.tensor(rng.standard_normal(shape), dtype=kind).to(device)) for shape in shapes]


def give_gradients(params, seed, without=()):
    rng = np.random.default_rng(seed)
    for position, param in enumerate(params):
        gradient = torch.tensor(rng.standard_normal(tuple(param.shape)), dtype=param.dtype)
        param.grad = None if position in without else gradient.to(param.device)


def assert_equal_state(one, other, ours, theirs, rtol=1e-5, atol=1e-6):
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.detach().cpu(), b.detach().cpu(), rtol=rtol, atol=atol)
        mine, its = one.state[a], other.state[b]
        assert set(mine) == set(its)
        for key in its:
            torch.testing.assert_close(mine[key].cpu(), its[key].cpu(), rtol=rtol, atol=atol)
