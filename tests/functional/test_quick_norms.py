"""Layer normalisation of few elements on the CPU: the quick way gives what the operator gives."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor.kernels.rowwise.layer_norm import _layer_norm, quick_layer_norm
from tritensor.kernels.rowwise.layer_norm import layer_norm as layer_norm_operator
from tritensor.nn import functional as F


@pytest.mark.parametrize("far", [0.0, 1e4])
@pytest.mark.parametrize("given", [(True, True), (True, False), (False, False)])
def test_the_quick_way_of_layer_norm_equals_the_operator(given, far):
    rng = np.random.default_rng(0)
    arrays = [(rng.standard_normal((2, 3, 16)) + far).astype("f4"), *rng.standard_normal((2, 16), dtype="f4")]
    found = []
    for quick in (True, False):
        x, *row = (torch.from_numpy(array).requires_grad_() for array in arrays)
        row = [each if there else None for each, there in zip(row, given, strict=True)]
        rows = x if quick else x.reshape(6, 16)
        out = quick_layer_norm(rows, (16,), *row, 1e-5, True) if quick else layer_norm_operator(rows, *row, eps=1e-5)[0]
        out = out.reshape(2, 3, 16)
        out.pow(2).sum().backward()
        found.append([out.detach(), *[each.grad for each in (x, *row) if each is not None]])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)
    exact = _layer_norm(arrays[0].astype(np.float64).reshape(6, 16))[0]
    plain = quick_layer_norm(torch.from_numpy(arrays[0]), (16,), None, None, 1e-5, True).numpy()
    np.testing.assert_allclose(plain.reshape(6, 16), exact, atol=1e-5)  # 1e4 has a rounding of 5e-4


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 2, 3)])
def test_second_gradients_of_layer_norm(shape):
    x, row = torch.randn(shape), torch.randn(3)
    wide = [each.double().requires_grad_() for each in (x, row)]
    first = torch.autograd.grad(F.layer_norm(wide[0], (3,), wide[1]).pow(2).sum(), wide, create_graph=True)
    wanted = torch.autograd.grad(sum(each.pow(2).sum() for each in first), wide)
    given = [each.clone().requires_grad_() for each in (x, row)]
    out = F.layer_norm(given[0], (3,), given[1])
    assert out.grad_fn.name() == "NativeLayerNormBackward0"
    first = torch.autograd.grad(out.pow(2).sum(), given, create_graph=True)
    for one, other in zip(torch.autograd.grad(sum(each.pow(2).sum() for each in first), given), wanted, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-3, atol=1e-3)


def test_the_quick_way_of_layer_norm_leaves_other_cases_to_the_operator():
    x, row = torch.ones(2, 4), torch.ones(4)
    for rows, *parameters in (
        (x.double(), None, None),
        (x.T, None, None),
        (x[:0], None, None),
        (x, row.double(), None),
    ):
        assert quick_layer_norm(rows, (4,), *parameters, 1e-5, True) is None
    with pytest.raises(torch.errors.ShapeError):  # of shapes that fit, but are not those that were passed before
        [F.layer_norm(x, (4,), each, eps=0.25) for each in (row, torch.ones(5))]
    with torch.autocast("cpu"):
        assert quick_layer_norm(x, (4,), row, row, 1e-5, True) is None
        assert F.layer_norm(x, (4,), row).dtype == torch.float32
