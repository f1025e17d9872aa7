from __future__ import annotations

import triton
import triton.language as tl

import tritensor as torch


@triton.jit
def scale(out_ptr, x_ptr, n, step, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(
        out_ptr + i, 2 * tl.load(x_ptr + i * step, mask=i < n), mask=i < n
    )


n = 1 << 20
with torch.cuda.simulate(compiled=True, capability=(9, 0)):
    x, out = torch.ones(8 * n, device="cuda"), torch.empty(n, device="cuda")
    # of each grid 16 blocks are run, and their counts are scaled
    with torch.cuda.profile(card="h100", sample=16) as p:
        scale[(n // 1024,)](out, x, n, 1, BLOCK=1024)
        scale[(n // 1024,)](out, x, n, 8, BLOCK=1024)

for launch, step in zip(p.launches, (1, 8)):
    print(
        f"a step of {step}: {launch.dram / 1e6:.0f} MB of device memory,",
        f"{launch.coalescing:.0%} of it needed,",
        f"{launch.predicted.seconds * 1e6:.0f} us predicted,",
        f"bound by {launch.predicted.bound}",
    )
