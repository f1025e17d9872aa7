from __future__ import annotations

import triton
import triton.language as tl

import tritensor as torch


@triton.jit
def column_sums(
    out_ptr, x_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    j = tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), tl.float32)
    for row in range(
        tl.program_id(0) * ROWS, (tl.program_id(0) + 1) * ROWS
    ):
        sums += tl.load(x_ptr + row * columns + j, mask=j < columns)
    before = tl.load(out_ptr + j, mask=j < columns)
    tl.store(out_ptr + j, before + sums, mask=j < columns)


def attempt(rows, out, **options):
    """Print the result of a launch, or how its error begins."""
    with torch.cuda.simulate(**options):
        x, out = torch.ones(rows, 100, device="cuda"), out()
        try:
            column_sums[(4,)](out, x, rows, 100, ROWS=16, BLOCK=128)
            print(out[:3].tolist())
        except RuntimeError as error:
            print(*str(error).splitlines()[:3], sep="\n")


def zeros():
    return torch.zeros(100, device="cuda")


def nothing():
    return torch.empty(100, device="cuda")


print("1. where programs run one after the other, the sums are right:")
attempt(64, zeros)
print("2. on a card they are not, as programs add to one address:")
attempt(64, zeros, races=True)
print("3. memory that nothing has written:")
attempt(64, nothing, races=True)
print("4. fewer rows than the grid is for:")
attempt(60, zeros)
