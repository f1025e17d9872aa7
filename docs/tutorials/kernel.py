"""
Write, check and price a Triton kernel without a GPU
====================================================

A Triton kernel is a Python function that a GPU runs many times at once.
This tutorial writes a softmax, runs it on a simulated GPU, checks it,
finds a race in another kernel, and predicts how long both take on an
A100 and an H100.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np
import triton
import triton.language as tl

import tritensor as torch

# %%
# A kernel
# --------
#
# Each *program* of this kernel computes one row. ``tl.program_id(0)``
# is the number of the row, ``j`` are the columns. Block sizes are
# powers of two, so a mask leaves out what is beyond the end of the row.


@triton.jit
def softmax(out_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * columns
    j = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + j, mask=j < columns, other=float("-inf"))
    powers = tl.exp(x - tl.max(x, 0))
    tl.store(
        out_ptr + row + j, powers / tl.sum(powers, 0), mask=j < columns
    )


# %%
# The grid ``(5,)`` starts five programs. On a simulated device they run
# as machine code of this processor, and every address is checked. NumPy
# says what is right.

x = torch.randn(5, 100)
powers = np.exp(x.numpy() - x.numpy().max(axis=1, keepdims=True))
expected = powers / powers.sum(axis=1, keepdims=True)

with torch.cuda.simulate():
    on_device = x.to("cuda")
    out = torch.empty_like(on_device)
    softmax[(5,)](out, on_device, 100, BLOCK=128)
    out = out.cpu()
print("largest difference:", np.abs(out.numpy() - expected).max())

# %%
# Check it in every way there is
# ------------------------------
#
# One run says little. ``check_kernel`` runs the kernel interpreted and
# as it is compiled for two cards, in memory that ends where the tensor
# ends, and with programs in other orders.

out = torch.empty(
    5, 100, device="meta"
)  # memory that nothing has written
reference = torch.tensor(expected)
report = torch.testing.check_kernel(
    softmax, (5,), (out, x, 100), reference, BLOCK=128
)

# %%
# A mistake that a run does not show
# ----------------------------------
#
# This kernel adds up a vector. Programs load the sum, add to it and
# store it. Where programs run one after the other the result is right.
# On a card two programs load the same sum, and one of the additions is
# lost: a race.


@triton.jit
def total(out_ptr, x_ptr, n, BLOCK: tl.constexpr, ATOMIC: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0), 0)
    if ATOMIC:
        tl.atomic_add(out_ptr, part)
    else:
        tl.store(out_ptr, tl.load(out_ptr) + part)


for races in (False, True):
    for atomic in (False, True):
        with torch.cuda.simulate(races=races):
            x = torch.ones(1000, device="cuda")
            out = torch.zeros(1, device="cuda")
            print(f"races={races}, ATOMIC={atomic}:", end=" ")
            try:
                total[(4,)](out, x, 1000, BLOCK=256, ATOMIC=atomic)
                print(out.item())
            except RuntimeError as error:
                print(str(error).splitlines()[0])

# %%
# The price
# ---------
#
# ``compiled=True`` runs what Triton compiles for a card, instruction by
# instruction, and ``torch.cuda.profile`` counts them. The time is
# predicted from the counts and the published figures of the card;
# nothing is measured. ``sample=4`` runs four programs of each grid and
# scales their counts.

cards = {"a100": (8, 0), "h100": (9, 0)}
rows, widths = 2048, [256, 512, 1024, 2048, 4096]


def price(card, launch, values):
    """What each launch asks of a card."""
    with (
        torch.cuda.simulate(compiled=True, capability=cards[card]),
        torch.cuda.profile(card=card, sample=4) as counted,
    ):
        for value in values:
            launch(value)
    return counted.launches


def launch_softmax(columns):
    x = torch.empty(rows, columns, device="cuda")
    out = torch.empty_like(x)
    softmax[(rows,)](out, x, columns, BLOCK=columns)


fig, ax = plt.subplots(figsize=(9, 3.2), layout="constrained")
for colour, card in zip(("C0", "C1"), cards):
    launches = price(card, launch_softmax, widths)
    times = [launch.predicted.seconds * 1e6 for launch in launches]
    least = [
        launch.dram / launch.card.dram * 1e6 for launch in launches
    ]
    ax.plot(
        widths, times, "o-", color=colour, label=f"{card}, predicted"
    )
    ax.plot(widths, least, ":", color=colour, label="its memory alone")
    bound = launches[-1].predicted.bound
    print(
        f"{card}: {times[-1]:.0f} us for 4096 columns, bound by {bound}"
    )
ax.set(title=f"Softmax of {rows} rows", xlabel="columns", ylabel="us")
ax.set_xscale("log", base=2)
ax.set_yscale("log")
ax.legend()
plt.show()

# %%
# The time is close to that of reading and writing the tensor once: a
# softmax is bound by memory, and no other arithmetic would make it much
# faster.
#
# A roofline
# ----------
#
# A roofline shows when that changes. The further right a kernel is, the
# more it computes for each byte. Below the sloping roof memory is the
# limit, below the flat one arithmetic. This kernel evaluates a
# polynomial of as many terms as wanted.


@triton.jit
def polynomial(out, x_ptr, BLOCK: tl.constexpr, TERMS: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    y = x
    for _ in tl.static_range(TERMS):
        y = y * x + 1.0
    tl.store(out + i, y)


def launch_polynomial(terms):
    x = torch.empty(1 << 22, device="cuda")
    out = torch.empty_like(x)
    polynomial[(1 << 12,)](out, x, BLOCK=1024, TERMS=terms)


fig, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
intensity = np.logspace(-1.5, 2.5)
for colour, card in zip(("C0", "C1"), cards):
    launches = price(card, launch_polynomial, (1, 8, 64, 256))
    launches += price(card, launch_softmax, (4096,))
    made = launches[0].card
    lanes = made.multiprocessors * made.generation.lanes["float32"]
    flat = 2 * lanes * made.clock  # a multiply-add is two operations
    roof = np.minimum(intensity * made.dram, flat) / 1e12
    ax.plot(intensity, roof, color=colour, label=card)
    for launch in launches:
        work = sum(launch.operations.values())
        reached = work / launch.predicted.seconds / 1e12
        marker = {"softmax": "s", "polynomial": "o"}[launch.name]
        ax.plot(work / launch.dram, reached, marker, color=colour)
ax.set(title="Polynomials (circles) and softmax (squares)")
ax.set(xscale="log", yscale="log", ylabel="TFLOP/s, predicted")
ax.set(xlabel="operations for each byte of memory")
ax.legend()
plt.show()

# %%
# Predictions rank kernels; they are no measurements. How far they are
# from measured times is in `Performance <../performance.html>`_.
#
# Next
# ----
#
# * `I have a Triton kernel and no GPU <../kernels.html>`_: all mistakes
#   that are found, and what simulation cannot tell
# * `Devices <../devices.html>`_: kernels of your own, engines
# * `Adding an operator <../adding_an_operator.html>`_: with a
#   reference, a kernel and a gradient
