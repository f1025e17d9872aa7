"""
Profile a training step
=======================

A simulated device with ``compiled=True`` runs the kernels that Triton
compiles for a card, and counts what they ask of it. From the counts and
the card's data sheet a time is *predicted*: nothing here is measured on
a GPU, and none is needed. This tutorial predicts a training step, reads
its roofline, and watches its memory.
"""

import matplotlib.pyplot as plt

import tritensor as torch
from tritensor import nn
from tritensor.cuda import profiling
from tritensor.nn import functional as F

# %%
# A training step, on two cards
# -----------------------------
#
# An A100 has compute capability 8.0 and an H100 9.0; kernels are
# compiled for each. Of larger grids ``sample=4`` runs four blocks and
# scales their counts. Results are then not all computed.


def profiled(card):
    given = profiling.card(card).capability
    with torch.cuda.simulate(compiled=True, capability=given):
        model = nn.Sequential(
            nn.Linear(784, 1024),
            nn.GELU(),
            nn.LayerNorm(1024),
            nn.Linear(1024, 10),
        ).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        x = torch.rand(512, 784, device="cuda")
        y = torch.arange(512, device="cuda") % 10
        with torch.cuda.profile(card=card, sample=4) as profile:
            with torch.autocast("cuda", torch.bfloat16):
                loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
    return profile


profiles = {card: profiled(card) for card in ("a100", "h100")}
print(profiles["a100"])

# %%
# A line is a kernel: its launches, the bytes of device memory, the
# floating-point operations, how many of the fetched bytes were needed
# (coalescing), registers of a thread, bytes that did not fit into them
# (spilled), the share of warps that a multiprocessor has at once
# (occupancy), the predicted time, and what bounds it.
# ``elementwise_copy`` copies and casts: autocast casts weights and
# inputs at each step.

# %%
# Where the time goes
# -------------------

times = {}
for card, profile in profiles.items():
    times[card] = found = {}
    for launch in profile.launches:
        us = launch.predicted.seconds * 1e6
        found[launch.name] = found.get(launch.name, 0) + us

longest = sorted(times["a100"], key=times["a100"].get)[-8:]
plt.figure(figsize=(9, 3.4), layout="constrained")
for (card, found), height in zip(times.items(), (0.8, 0.4)):
    label = f"{card.upper()}, {sum(found.values()):.0f} us in all"
    plt.barh(
        longest,
        [found.get(name, 0) for name in longest],
        height,
        label=label,
    )
plt.title("The longest kernels of a step: microseconds, predicted")
plt.legend()
plt.show()

# %%
# The roofline
# ------------
#
# To the right are operations for each byte of memory, upwards are
# operations a second. No kernel can be above the slope, which is the
# memory's bandwidth, or above the flat roof of the tensor cores. A
# point on the slope moves its bytes as fast as the card can. One far
# below waits for something else: here the short kernels for their
# launch.

card = profiling.card("a100")
roof = card.tensor["bf16"]
plt.figure(figsize=(9, 4), layout="constrained")
plt.loglog(
    [0.1, roof / card.dram, 2000],
    [0.1 * card.dram, roof, roof],
    color="gray",
)
plt.text(0.12, 0.3 * card.dram, f"{card.dram / 1e12:.2f} TB/s")
plt.text(300, 1.3 * roof, f"{roof / 1e12:.0f} TFLOP/s")
for name in times["a100"]:
    found = [e for e in profiles["a100"].launches if e.name == name]
    work = sum(sum(launch.operations.values()) for launch in found)
    moved = sum(launch.dram for launch in found)
    if work:
        at = work / moved, work / times["a100"][name] * 1e6
        plt.plot(*at, "o", color="C0")
        if name in longest[-4:]:
            plt.annotate(
                name,
                at,
                (6, -10),
                textcoords="offset points",
                fontsize=8,
            )
plt.ylim(1e9, 2e15)
plt.xlabel("operations for each byte")
plt.title("Operations a second on an A100, predicted")
plt.show()

# %%
# Memory over time
# ----------------
#
# Every simulated device counts its memory as a GPU does. Hooks note it
# behind each layer, forward and backward.

notes = []


def note(where):
    notes.append((where, torch.cuda.memory_allocated() / 1e6))


with torch.cuda.simulate():
    blocks = [
        nn.Sequential(nn.Linear(256, 256), nn.GELU()) for _ in range(6)
    ]
    model = nn.Sequential(*blocks).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for block in model:
        block.register_forward_hook(lambda *_: note("forward"))
        block.register_full_backward_hook(lambda *_: note("backward"))
    x = torch.rand(2048, 256, device="cuda")
    for _ in range(2):
        note("begin")
        model(x).square().mean().backward()
        optimizer.step()
        note("step")
        optimizer.zero_grad()
    peak = torch.cuda.max_memory_allocated() / 1e6

where, megabytes = zip(*notes)
plt.figure(figsize=(9, 3.6), layout="constrained")
plt.step(range(len(notes)), megabytes, where="mid")
plt.axhline(peak, color="gray", linestyle=":")
plt.xticks(range(len(notes)), where, rotation=90, fontsize=8)
plt.title(f"Memory of two training steps in MB; at most {peak:.1f}")
plt.show()

# %%
# What the forward pass saves for the gradient piles up layer by layer,
# and the backward pass gives it back. The second step begins higher:
# the optimizer now keeps two numbers for each parameter.

# %%
# Next
# ----
#
# * `I have a Triton kernel and no GPU <../kernels.html>`_: the same
#   counts of a kernel of your own
# * `Performance <../performance.html>`_: how far predictions are from
#   measured times
# * `A cluster on a laptop <../cluster.html>`_: what training on 8 to
#   1,024 GPUs would take
# * ``python -m tritensor profile train.py`` profiles a whole program
