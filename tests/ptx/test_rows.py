"""Row kernels that read a row in several tiles, compiled: what long rows take on a card."""

from __future__ import annotations

import pytest

import tritensor as torch
from tritensor import settings
from tritensor.nn import functional as F

from ..needs import HAS_TRITON

if not HAS_TRITON:
    pytest.skip("compiling needs Triton", allow_module_level=True)

CALLS = {
    "softmax": lambda x, w, b: torch.softmax(x, 1),
    "log_softmax": lambda x, w, b: torch.log_softmax(x, 1),
    "layer_norm": lambda x, w, b: F.layer_norm(x, (x.shape[1],), w, b),
    "layer_norm without parameters": lambda x, w, b: F.layer_norm(x, (x.shape[1],)),
    "rms_norm": lambda x, w, b: F.rms_norm(x, (x.shape[1],), w),
    "cross_entropy": lambda x, w, b: F.cross_entropy(x, torch.arange(len(x), device=x.device)),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("cols", [100, 128])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_rows_of_several_tiles(name: str, dtype: torch.dtype, cols: int) -> None:
    torch.manual_seed(0)
    x, w, b = (torch.randn(*shape).to(dtype) for shape in ((5, cols), (cols,), (cols,)))

    def run(device: str) -> list[torch.Tensor]:
        leaves = [each.to(device).detach().requires_grad_() for each in (x, w, b)]
        out = CALLS[name](*leaves)
        (out.float() * out.detach().float().cos()).sum().backward()
        return [out.detach().cpu(), *(leaf.grad.cpu() for leaf in leaves if leaf.grad is not None)]

    expected = run("cpu")
    with torch.cuda.simulate(compiled=True), settings.block(64):  # a tile of 16 columns
        found = run("cuda")
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(
            ours, theirs, rtol=1e-4 if dtype is torch.float32 else 2e-2, atol=2e-2 if dtype is torch.bfloat16 else 1e-5
        )


def test_a_value_that_does_not_matter_may_be_moved() -> None:
    with torch.cuda.simulate(compiled=True):  # float16 to float64: the compiler moves a register that nothing wrote
        x = torch.tensor([[1, 2, 3]], device="cuda")
        found = F.log_softmax(x.half(), 1, dtype=torch.float64).cpu()
    torch.testing.assert_close(found, torch.log_softmax(torch.tensor([[1.0, 2, 3]], dtype=torch.float64), 1))
