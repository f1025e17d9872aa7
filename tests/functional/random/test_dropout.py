"""Dropout: its share, its gradient without a saved mask, the same elements on every device."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.kernels.random import philox as kernels

F = torch.nn.functional
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def test_dropout_drops_its_share_and_scales_the_rest() -> None:
    torch.manual_seed(0)
    x = torch.ones(200, 300)
    for p in (0.1, 0.5, 0.9):
        y = F.dropout(x, p)
        assert abs((y == 0).numpy().mean() - p) < 0.01
        assert set(np.unique(y.numpy())) == {np.float32(0), np.float32(1 / (1 - p))}
    assert not torch.equal(F.dropout(x, 0.5), F.dropout(x, 0.5))
    assert F.dropout(x, 1.0).sum().item() == 0 and (F.dropout(x, 1 - 1e-7) == 0).all()


def test_dropout_does_nothing_in_evaluation() -> None:
    x = torch.ones(3)
    assert F.dropout(x, 0.5, training=False) is x and F.dropout(x, 0.0) is x


@pytest.mark.parametrize("p", [-0.1, 1.5, math.nan])
def test_dropout_refuses_what_is_no_probability(p) -> None:
    with pytest.raises(ValueError, match=f"dropout probability has to be between 0 and 1, but got {p}"):
        F.dropout(torch.ones(2), p)


def test_dropout_refuses_integers() -> None:
    with pytest.raises(RuntimeError, match="\"dropout\" not implemented for 'Long'"):
        F.dropout(torch.ones(2, dtype=torch.int64), 0.5)


def test_the_gradient_of_dropout_has_the_same_mask_and_nothing_saved() -> None:
    x = torch.ones(50, requires_grad=True)
    y = F.dropout(x * 1, 0.4)
    assert not any(isinstance(value, torch.Tensor) for value in y._node.saved)
    (y * y).sum().backward()
    assert x.grad.tolist() == pytest.approx([2 / 0.36 if kept else 0 for kept in (y != 0).tolist()])


def test_dropout_has_second_derivatives() -> None:
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64, requires_grad=True)
    y = F.dropout(x, 0.5) ** 3
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    kept = (y != 0).double()
    assert second.tolist() == pytest.approx((6 * 8 * x.detach() * kept).tolist())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", FLOATS, ids=str)
def test_dropout_is_the_same_on_every_device_and_layout(kind, simulated) -> None:
    base = torch.arange(1.0, 61.0).to(kind).view(3, 4, 5)
    for block in (0, 1, 4):
        for view in (
            lambda x: x,
            lambda x: x.permute(2, 0, 1),
            lambda x: x[:, ::2, 1:],
            lambda x: x[0, 0, 0],
            lambda x: x[:0],
            lambda x: x[:1].expand(4, 4, 5),
        ):
            with settings.block(block):
                torch.manual_seed(3)
                expected = F.dropout(view(base), 0.3)
                torch.manual_seed(3)
                assert F.dropout(view(base.to(simulated)), 0.3).cpu().tolist() == expected.tolist()
    torch.manual_seed(3)
    plain = F.dropout(base, 0.3)
    torch.manual_seed(3)
    assert torch.equal(F.dropout(base.transpose(0, 1).contiguous().transpose(0, 1), 0.3), plain)


def test_dropout_in_place_keeps_nan(simulated) -> None:
    for place in ("cpu", simulated):
        x = torch.full((100,), math.nan, device=place)
        assert F.dropout(x, 0.5, inplace=True) is x and torch.isnan(x).all()


def test_dropout_counts_in_64_bits_where_it_must(simulated) -> None:
    from tritensor.memory import buffer, copies
    from tritensor.runtime.launch import Int64, launch

    x = torch.ones(40, device=simulated)
    out = buffer.empty((40,), np.dtype(np.float32), simulated)
    constants = {"OUT_DTYPE": torch.float32, "COMPUTE": torch.float32, "RANK": 1, "INDEX64": True, "BLOCK": 2}
    arguments = (out, x._data, (1,), (40,), Int64(5), Int64(6), 32768, 2.0, 40)
    launch(kernels.dropout_kernel, (3,), arguments, constants, simulated)
    expected = kernels.dropout(torch.ones(40), p=0.5, seed=5, offset=6)
    assert copies.to_host(out).tolist() == expected.tolist()


def test_dropout_of_no_elements_is_the_tensor_itself() -> None:
    x = torch.ones(0, 2, requires_grad=True)
    assert torch.nn.functional.dropout(x, 1.0) is x
