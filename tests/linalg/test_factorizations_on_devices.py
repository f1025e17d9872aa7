"""Factorisations of tensors on a simulated device: computed on the host, counted, said once; gradients stay there."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.errors import HostComputationWarning
from tritensor.kernels.hosted import family

from ..needs import needs_triton

L = torch.linalg
A = torch.tensor([[4.0, 1.0], [2.0, 3.0]])
CALLS: dict[str, Callable[[Any], Any]] = {
    "cholesky": lambda a: L.cholesky(a @ a.mT),
    "qr": lambda a: L.qr(a),
    "svd": lambda a: L.svd(a),
    "eigh": lambda a: L.eigh(a + a.mT),
    "lu": lambda a: L.lu(a)[1:],
    "lu_solve": lambda a: L.lu_solve(*L.lu_factor(a), a),
    "ldl_solve": lambda a: L.ldl_solve(*L.ldl_factor(a + a.mT), a.detach()),
    "householder_product": lambda a: L.householder_product(a, a[0]),
}


@pytest.mark.sampled(1)
@needs_triton
@pytest.mark.filterwarnings("ignore::tritensor.errors.HostComputationWarning")
@pytest.mark.parametrize("name", CALLS)
def test_as_on_the_cpu(name: str) -> None:
    def run(a: Any) -> list[Any]:
        found = CALLS[name](a)
        found = list(found) if isinstance(found, tuple) else [found]
        assert all(x.device == a.device for x in found)
        if found[0].requires_grad and name != "ldl_solve":  # which has no derivative
            sum((x * x * x).sum() for x in found).backward()
            found.append(a.grad)
        return [x.detach().cpu().numpy() for x in found]

    expected = run(A.clone().requires_grad_())
    with torch.cuda.simulate(devices=1):
        for mine, other in zip(run(A.cuda().requires_grad_()), expected, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)


@needs_triton
def test_copies_are_counted_and_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(family, "_said", set())
    with torch.cuda.simulate(devices=1):
        a = A.cuda()
        with torch.cuda.transfers() as ledger, pytest.warns(HostComputationWarning, match="linalg_qr is computed on"):
            L.qr(a)
        assert (ledger.count("d2h"), ledger.count("h2d")) == (1, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            L.qr(a)
            with pytest.raises(HostComputationWarning):
                L.eigh(a)


@needs_triton
@pytest.mark.filterwarnings("ignore::tritensor.errors.HostComputationWarning")
def test_failures_on_a_device() -> None:
    with torch.cuda.simulate(devices=1):
        with pytest.raises(L.LinAlgError, match="the leading minor of order 1 is not positive-definite"):
            L.cholesky(-A.cuda())
        assert L.cholesky_ex(-A.cuda()).info.item() == 1
        with pytest.raises(RuntimeError, match="LU without pivoting is not implemented"):
            L.lu(A.cuda(), pivot=False)
        assert L.svd(A.cuda(), driver="gesvd").S.is_cuda
