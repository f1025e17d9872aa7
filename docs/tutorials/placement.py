"""
Two simulated GPUs, and what goes wrong
=======================================

Most errors of programs for GPUs are errors of placement: a tensor is on
another device, a copy is not there yet, memory is full. Simulated
devices raise the same errors on a laptop, so you can meet them here
first.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt

import tritensor as torch
import tritensor.distributed as dist
from tritensor import nn, settings

# %%
# Tensors on different devices
# ----------------------------
#
# An operator computes where its operands are, and does not move them.
# The error says what is where, and how to mend it.

with torch.cuda.simulate(devices=2):
    x = torch.ones(3, device="cuda:0")
    y = torch.ones(3, device="cuda:1")
    try:
        x + y
    except RuntimeError as error:
        print(error)
    print("mended:", x.to(y.device) + y)

# %%
# What ``.to`` moves
# ------------------
#
# ``tensor.to(device)`` returns another tensor and leaves the first
# where it is. ``module.to(device)`` moves the module's parameters in
# place. Forgotten assignments are the most common mistake:
# ``x.to("cuda")`` alone does nothing.

with torch.cuda.simulate(devices=2):
    x = torch.ones(1, 4)
    x.to("cuda:1")
    print("the tensor is still on", x.device)

    model = nn.Linear(4, 2)
    model.to("cuda:1")
    print("the model is now on", model.weight.device)
    try:
        model(x)
    except RuntimeError as error:
        print(str(error).splitlines()[0])

    x = x.to("cuda:1")
    print("the result is on", model(x).device)

# %%
# A model on two devices, and its memory
# --------------------------------------
#
# The first half of this model is on cuda:0, the second on cuda:1; the
# activations change the device in between. ``memory_allocated`` counts
# the bytes that tensors hold. Hooks note it after each layer, forward
# and backward.

notes, marks = [], {}


def note(*_):
    """Append what both devices hold, in MB."""
    notes.append([torch.cuda.memory_allocated(i) / 1e6 for i in (0, 1)])


def half(device):
    layers = [nn.Linear(256, 256, device=device) for _ in range(4)]
    for layer in layers:
        layer.register_forward_hook(note)
        layer.register_full_backward_hook(note)
    return nn.Sequential(*layers)


with torch.cuda.simulate(devices=2):
    first, second = half("cuda:0"), half("cuda:1")
    optimizer = torch.optim.Adam(
        [*first.parameters(), *second.parameters()]
    )
    x = torch.ones(1024, 256, device="cuda:0")
    for _ in range(2):
        optimizer.zero_grad()
        marks[len(notes)] = "forward"
        loss = second(first(x).to("cuda:1")).square().mean()
        marks[len(notes)] = "backward"
        loss.backward()
        del loss
        optimizer.step()
        note()

fig, ax = plt.subplots(figsize=(9, 3.2), layout="constrained")
ax.step(
    range(len(notes)), notes, where="post", label=["cuda:0", "cuda:1"]
)
for place, name in marks.items():
    ax.axvline(place, color="gray", linewidth=0.6)
    ax.text(place + 0.2, 9.2, name)
ax.set(
    title="What tensors hold during two steps",
    ylabel="MB",
    ylim=(0, 10),
)
ax.legend(loc="lower right")
plt.show()

# %%
# Activations pile up in the forward pass, first on cuda:0, then on
# cuda:1, and the backward pass frees them in the other direction, while
# gradients are made. The second step begins with more than the first:
# the two averages that Adam keeps of each parameter.
#
# When memory is full
# -------------------
#
# A simulated device can be as small as you like. The error names what
# holds the memory.

with torch.cuda.simulate(memory="4MB"):
    kept = torch.zeros(512, 512, device="cuda")
    try:
        torch.zeros(1024, 1024, device="cuda")
    except torch.cuda.OutOfMemoryError as error:
        print(error)

# %%
# Streams: work that runs beside other work
# -----------------------------------------
#
# A stream is a queue of one device. Work of one stream runs in order;
# two streams do not wait for each other unless they are told to. A
# missing wait gives the right result by luck, as long as the other
# stream is quick. With ``simulate_late`` a simulated stream does
# nothing before something waits for it: luck is switched off.

with torch.cuda.simulate(), settings.simulate_late(True):
    for waits in (False, True):
        x = torch.zeros(1000, device="cuda")
        main, side = torch.cuda.current_stream(), torch.cuda.Stream()
        side.wait_stream(main)
        with torch.cuda.stream(side):
            x += 1
        if waits:
            main.wait_stream(side)
        print("with" if waits else "without", "a wait:", x.sum().item())

# %%
# A timeline
# ----------
#
# Why use streams at all? A copy from pinned memory and a kernel use
# different parts of a card. On the devices of ``dist.simulate`` each
# stream has a clock: kernels and copies take the time that is predicted
# for a card, here an H100, and events tell it. Nothing is measured.


def mark():
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def run(overlapping):
    """When each copy and each computation began and ended, in ms."""
    main = torch.cuda.current_stream()
    side = torch.cuda.Stream() if overlapping else main
    weight = torch.ones(2048, 2048, device="cuda")
    batch = torch.ones(2048, 2048).pin_memory()
    begin, rounds = mark(), []
    side.wait_stream(main)
    for _ in range(4):
        with torch.cuda.stream(side):
            marks = [mark()]
            x = batch.to("cuda", non_blocking=True)
            marks.append(mark())
        main.wait_stream(side)
        marks.append(mark())
        x @ weight @ weight
        rounds.append([*marks, mark()])
    torch.cuda.synchronize()
    return [[begin.elapsed_time(e) for e in marks] for marks in rounds]


with dist.simulate(nodes=1, card="h100"):
    timelines = {"one stream": run(False), "two streams": run(True)}

fig, axes = plt.subplots(
    2, 1, figsize=(9, 3.4), layout="constrained", sharex=True
)
for ax, (name, rounds) in zip(axes, timelines.items()):
    for times in rounds:
        for row, (start, end) in enumerate((times[:2], times[2:])):
            ax.barh(
                row,
                end - start,
                left=start,
                color=f"C{row}",
                edgecolor="gray",
            )
    ax.set(title=f"{name}: {rounds[-1][3]:.2f} ms predicted")
    ax.set_yticks([0, 1], ["copy", "compute"])
axes[1].set_xlabel("ms")
plt.show()

# %%
# Next
# ----
#
# * `A checkpoint's journey between devices <resuming.html>`_
# * `Questions about devices <../questions/index.html>`_, each with a
#   program
# * `Several devices, several processes <../several_devices.html>`_
# * `What non_blocking and pinned memory do
#   <../questions/non_blocking.html>`_
