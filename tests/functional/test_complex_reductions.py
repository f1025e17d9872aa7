"""Reductions, losses and normalisation of complex tensors, and their gradients."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch

F = torch.nn.functional
X = [1 + 2j, 3 - 1j, 0.5 + 0j]
Y = [2 + 2j, 1 - 1j, 0.5 + 1j]


def tensor(numbers, **options):
    return torch.tensor(numbers, dtype=torch.complex64, **options)


VALUES = {
    "var": (lambda x: x.var(), 4.0833330),
    "var(0, correction=0)": (lambda x: x.var(0, correction=0), 2.7222223),
    "var of no freedom": (lambda x: x[:1].var(), np.nan),
    "var of a number": (lambda x: x[0].var(), np.nan),
    "std": (lambda x: x.std(), 2.0207260),
    "std(keepdim)": (lambda x: x.std(0, keepdim=True), [2.0207260]),
    "std of equal numbers": (lambda x: x[[0, 0]].std(), 0.0),
    "std_mean": (lambda x: torch.std_mean(x)[1], 1.5 + 1j / 3),
    "var_mean": (lambda x: torch.var_mean(x, 0)[0], 4.0833330),
    "std of nothing": (lambda x: torch.zeros(2, 0, dtype=torch.complex64).std(1), [np.nan, np.nan]),
    "logsumexp": (lambda x: x.logsumexp(0), 2.9107637 - 0.90344965j),
    "logsumexp(keepdim)": (lambda x: x.reshape(1, 3).logsumexp((0, 1), True), [[2.9107637 - 0.90344965j]]),
    "logsumexp of large numbers": (lambda x: (x[:1] + 1000).logsumexp(0), 1001 + 2j),
    "logsumexp of an infinity": (lambda x: tensor([complex(np.inf, 1), 1]).logsumexp(0), complex(np.inf, np.pi / 4)),
    "logsumexp of nothing": (lambda x: torch.zeros(2, 0, dtype=torch.complex64).logsumexp(1), [-np.inf, -np.inf]),
    "abs of a number": (lambda x: x[0].abs(), 5**0.5),
    "l1_loss": (lambda x: F.l1_loss(x, tensor(Y)), 4 / 3),
    "l1_loss(none)": (lambda x: F.l1_loss(x, tensor(Y).abs(), reduction="none"), [2.70982, 1.87476, 0.61803]),
    "rms_norm": (
        lambda x: F.rms_norm(x, [3]),
        [0.45416915 + 1.5696162j, 2.2882965 - 0.32191357j, 0.35934016 + 0.06612779j],
    ),
    "rms_norm(eps, weight)": (
        lambda x: F.rms_norm(x.reshape(1, 3)[:, :1], [1], torch.tensor([2.0]), 3.0),
        [[2 * (1 + 2j) / (4j) ** 0.5]],
    ),
}


COMPLEX = ("std_mean", "logsumexp", "rms_norm")


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_values(name):
    compute, wanted = VALUES[name]
    found = compute(tensor(X))
    assert found.dtype is (torch.complex64 if name.startswith(COMPLEX) else torch.float32)
    np.testing.assert_allclose(found.numpy(), np.array(wanted, found.numpy().dtype), rtol=1e-4)


GRADIENTS = {
    "var": (lambda x: x.var(), [-0.5 + 1.6666667j, 1.5 - 1.3333334j, -1 - 0.33333334j]),
    "std": (lambda x: x.std(), [-0.1237179 + 0.412393j, 0.3711537 - 0.3299144j, -0.2474358 - 0.0824786j]),
    "std of one value": (lambda x: (x * 0 + 1).std(), [0, 0, 0]),
    "logsumexp": (
        lambda x: x.logsumexp(0).abs(),
        [-0.14767556 + 0.00928792j, 1.0705779 - 0.22192997j, 0.03215171 - 0.08378987j],
    ),
    "l1_loss": (lambda x: F.l1_loss(x, tensor(Y)), [-1 / 3, 1 / 3, -1j / 3]),
    "rms_norm": (
        lambda x: F.rms_norm(x, [3]).abs().sum(),
        [0.15609914 + 2.3606129j, -1.7307084 - 0.12866241j, 0.37227565 + 0.13656092j],
    ),
    "abs of a number": (lambda x: x[0].abs(), [(1 + 2j) / 5**0.5, 0, 0]),
}


@pytest.mark.parametrize(("compute", "wanted"), GRADIENTS.values(), ids=GRADIENTS)
def test_gradients(compute, wanted):
    x = tensor(X, requires_grad=True)
    compute(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), np.array(wanted, np.complex64), rtol=1e-4, atol=1e-6)


def test_nodes_have_pytorchs_names():
    x = tensor(X, requires_grad=True)
    names = [found.grad_fn.name() for found in (x.var(), x.std(0), x.logsumexp(0))]
    assert names == ["VarBackward0", "StdBackward0", "LogsumexpBackward0"]
