"""Rows on devices: values where kernels take short cuts, and the memory and launches that a loss's gradient takes."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.kernels.rowwise import loss_kernels
from tritensor.kernels.rowwise.layer_norm import _layer_norm
from tritensor.nn import functional as F

from .test_losses import scores
from .test_rowwise import exact_softmax


@pytest.mark.parametrize("columns", [4096, 5000])
def test_a_norm_that_loads_its_parameters_by_quarters(columns):
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((3, columns), columns, columns))
    with torch.cuda.simulate(devices=1):
        given = [torch.from_numpy(each).cuda() for each in (x, w, b)]
        for dtype, error in ((torch.float32, 1e-5), (torch.bfloat16, 2e-2)):
            out = F.layer_norm(given[0].to(dtype), (columns,), *given[1:]).cpu().float().numpy()
            np.testing.assert_allclose(out, _layer_norm(x, w, b)[0], atol=4 * error, rtol=error)


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_shares_of_16_bits_by_powers_of_two(dtype):
    """Within half a unit of the last place and a bit, from the largest share down to where 16 bits end."""
    x = torch.from_numpy(np.linspace(-100, 0, 4096, dtype=np.float32)[None]).to(dtype)
    exact = exact_softmax(x.float().numpy(), 1)
    with torch.cuda.simulate(devices=1), settings.check(False):
        for block in (0, 64):
            with settings.block(block):
                found = x.cuda().softmax(1).cpu().float().numpy()
                logs = x.cuda().log_softmax(1).cpu().float().numpy()
            step = 2.0**-11 if dtype is torch.float16 else 2.0**-8
            np.testing.assert_allclose(found, exact, rtol=step * 1.01, atol=3e-8 if dtype is torch.float16 else 1.2e-38)
            np.testing.assert_allclose(logs, np.log(exact), rtol=step * 1.01)


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("watched", [False, True])
def test_a_leaf_takes_over_the_gradient_that_the_forward_pass_made(dtype, watched, monkeypatch):
    """At 8192 rows of 32,768 classes a copy of it would be 1 GB, and 2 GB read and written."""
    launched = []
    launch = loss_kernels.launch
    monkeypatch.setattr(
        loss_kernels, "launch", lambda *given, **named: launched.append(given[1]) or launch(*given, **named)
    )
    with torch.cuda.simulate(devices=1), settings.check(False), settings.block(64):
        x = torch.randn(64, 512, device="cuda").to(dtype).requires_grad_()
        if watched:
            x.register_post_accumulate_grad_hook(lambda leaf: None)
        loss = F.cross_entropy(x, torch.arange(64, device="cuda"))
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        launched.clear()
        loss.backward(torch.full_like(loss, 3.0))
        # a number, of 512 bytes, for the gradient of the loss
        assert torch.cuda.max_memory_allocated() - before <= 2048 < x.grad.nbytes
        # 512 blocks, by 16 programs for each of 4 multiprocessors
        assert launched == [(64,)]
        y = x.detach().cpu().float().requires_grad_()
        (3 * F.cross_entropy(y, torch.arange(64))).backward()
        torch.testing.assert_close(x.grad.cpu().float(), y.grad, rtol=1e-2, atol=1e-5)


def test_targets_beyond_32_bits_are_no_classes():
    """Columns are counted in 32 bits: 2**32 + 1 must not count as class 1, whether it is ignored or wrong."""
    with torch.cuda.simulate(devices=1), settings.check(False):
        far = (1 << 32) + 1
        x = scores("cuda").requires_grad_()
        F.cross_entropy(x, torch.tensor([0, far], device="cuda"), ignore_index=far).backward()
        assert x.grad[1].tolist() == [0, 0, 0] and x.grad[0].cpu().any()
