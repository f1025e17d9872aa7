from __future__ import annotations

import triton
import triton.language as tl

import tritensor as torch


@triton.jit
def below_maximum(
    out_ptr, x_ptr, out_step, x_step, columns, BLOCK: tl.constexpr
):
    row, j = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(
        x_ptr + row * x_step + j, mask=j < columns, other=float("-inf")
    )
    tl.store(
        out_ptr + row * out_step + j, x - tl.max(x, 0), mask=j < columns
    )


# 1. It runs, on a device in host memory, as on a card.
x = torch.arange(12.0).reshape(3, 4)
with torch.cuda.simulate():
    on_device = x.to("cuda")
    out = torch.empty_like(on_device)
    below_maximum[(3,)](
        out, on_device, out.stride(0), on_device.stride(0), 4, BLOCK=16
    )
    print(out.cpu())

# 2. It runs in every way that can be simulated, and the runs agree.
x = torch.arange(500.0).reshape(5, 100)
arguments = {
    "out_ptr": torch.empty(
        5, 100, device="meta"
    ),  # memory that nothing has written
    "x_ptr": x,
    "out_step": lambda tensors: tensors["out_ptr"].stride(0),
    "x_step": lambda tensors: tensors["x_ptr"].stride(0),
    "columns": 100,
}
reference = x - x.amax(1, keepdim=True)
torch.testing.check_kernel(
    below_maximum, (5,), arguments, reference, BLOCK=128
)
