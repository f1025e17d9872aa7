"""
Speed up with compile
=====================

``torch.compile`` computes several operators in one Triton kernel, so
that results between them never go to memory. Python still runs your
function. This tutorial shows what becomes one kernel, and what that
saves in bytes, in time and in launches.
"""

import os
import re
import time

import matplotlib.pyplot as plt

import tritensor as torch
from tritensor.nn import functional as F

# %%
# A function to compile
# ---------------------
#
# Six elementwise operators. Without ``compile`` each one reads its
# inputs from memory and writes its result back.


def chain(x, y):
    return (torch.tanh(x * 2 + y) * x - 0.5) * y


x, y = torch.randn(1 << 20), torch.randn(1 << 20)
fast = torch.compile(chain)
difference = (fast(x, y) - chain(x, y)).abs().max().item()
print("largest difference:", difference)

# %%
# What becomes one kernel
# -----------------------
#
# ``torch.compiler.explain`` runs one call and lists its groups. "In"
# and "out" are the tensors that are read from memory and written to it.

explained = {"chain": torch.compiler.explain(chain)(x, y)}
print(explained["chain"])

# %%
# Reductions of the last dimension join the operators around them. A
# matrix product is computed by itself. A line that reads an element,
# such as the ``if`` here, needs what was noted before it, and the
# explanation names that line.


def layer(x, weight):
    h = F.gelu(F.layer_norm(x, (256,))) + x
    if h.max() > 100:
        h = h / 2
    return F.softmax(h @ weight, dim=-1) * 2


given = torch.randn(2048, 256), torch.randn(256, 256)
explained["layer"] = torch.compiler.explain(layer)(*given)
print(re.sub(r"\S*/", "", str(explained["layer"])))  # without folders

# %%
# The bytes that pass memory, counted from the shapes:

before, after = (
    [
        sum(getattr(u, kind) for u in e.units) / 1e6
        for e in explained.values()
    ]
    for kind in ("before", "moved")
)
plt.figure(figsize=(9, 2.6), layout="constrained")
plt.barh(list(explained), before, label="one by one")
plt.barh(list(explained), after, 0.5, label="compiled")
plt.title("Memory traffic of a call, MB")
plt.legend()
plt.show()

# %%
# Time on this machine
# --------------------
#
# Both functions take turns in one process, and the least time of each
# counts. It depends on the processor, on the number of threads, and on
# native code (``pip install 'tritensor[native]'``): without it, groups
# of 100,000 elements and more are computed block by block in NumPy.


def least(given):
    """The least seconds of a call, as it is and compiled."""
    found = [1e9, 1e9]
    for number in [0, 1] * 50:
        start = time.perf_counter()
        (chain, fast)[number](*given)
        took = time.perf_counter() - start
        found[number] = min(found[number], took)
    return found


sizes = 1_000, 10_000, 100_000, 1_000_000, 4_000_000
inputs = [(torch.randn(size), torch.randn(size)) for size in sizes]
for given in inputs * 3:
    fast(*given)
time.sleep(2)  # native code is made in the background
times = {f"{len(given[0]):,}": least(given) for given in inputs}
for size, (plain, compiled) in times.items():
    print(
        f"{size}: {plain * 1e6:.0f} us, {compiled * 1e6:.0f} compiled"
    )

where = f"cores: {os.cpu_count()}, threads: {torch.get_num_threads()}"
where += f", native code: {torch.backends.native.is_available()}"
print(where)

# %%
# A bar below 1 means that the compiled function is faster. Small calls
# gain nothing: to note an operator costs about a microsecond.

plt.figure(figsize=(9, 3.2), layout="constrained")
bars = plt.bar(list(times), [b / a for a, b in times.values()])
plt.bar_label(bars, fmt="%.2f")
plt.axhline(1, color="gray")
plt.margins(y=0.15)
plt.xlabel("elements")
plt.title(f"Time compiled / time as it is ({where})")
plt.show()

# %%
# Launches on a device
# --------------------
#
# On a GPU each kernel also costs a launch. A simulated device with
# ``compiled=True`` runs the kernels that Triton compiles for a card,
# and ``torch.cuda.profile`` counts them. The times in its table are
# *predicted* from the card's data sheet.

launches, predicted = {}, {}
with torch.cuda.simulate(compiled=True, capability=(8, 0)):
    on_device = x.cuda(), y.cuda()
    for name, function in (("as it is", chain), ("compiled", fast)):
        with torch.cuda.profile(card="a100", sample=8) as profile:
            function(*on_device)
        print(profile, end="\n\n")
        found = profile.launches
        launches[name] = len(found)
        predicted[name] = sum(e.predicted.seconds for e in found) * 1e6

fig, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3), layout="constrained"
)
left.bar_label(left.bar(*zip(*launches.items())))
left.set(title="Launches, counted", ymargin=0.15)
right.bar_label(right.bar(*zip(*predicted.items())), fmt="%.1f")
right.set(title="Microseconds on an A100, predicted", ymargin=0.15)
plt.show()

# %%
# Next
# ----
#
# * `Compiling <../compile.html>`_: all that is fused, when it computes
#   early, and calls without Python
# * `Performance <../performance.html#compiled-functions>`_: compiled
#   functions beside PyTorch and its compiler, and what falls short
# * `Graphs <../graphs.html>`_: a whole training step as one launch
