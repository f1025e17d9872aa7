"""
Train digits on the CPU and on a simulated GPU
==============================================

A small convolutional network learns to read handwritten digits. It is
trained twice: on the CPU, and on a simulated CUDA device, which runs
the GPU's Triton kernels on this machine's processor. No GPU is needed,
and the two runs agree within rounding.
"""

# sphinx_gallery_thumbnail_number = 2
import time

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import tritensor as torch
from tritensor import nn
from tritensor.nn import functional as F

# %%
# The data
# --------
#
# scikit-learn ships 1,797 digits of 8 x 8 pixels. A convolution takes a
# batch of the shape (digits, channels, height, width). 1,437 digits are
# to learn from, 360 to test on.

digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32) / 16
images = images.unsqueeze(1)
labels = torch.tensor(digits.target)
_ = torch.manual_seed(0)
order = torch.randperm(len(labels))
train, test = order[:1437], order[1437:]
print("images:", tuple(images.shape), " labels:", tuple(labels.shape))


def side_by_side(ax, pictures, columns, title):
    """Draw pictures of one size in rows, with a frame around each."""
    framed = F.pad(pictures, (1, 1, 1, 1), value=0.4)
    rows = [torch.cat([*row], dim=1) for row in framed.split(columns)]
    ax.imshow(torch.cat(rows), cmap="gray_r")
    ax.set_title(title)
    ax.axis("off")


fig, ax = plt.subplots(figsize=(9, 2.2), layout="constrained")
some = train[:20]
side_by_side(
    ax, images[some, 0], 10, f"labels: {labels[some].tolist()}"
)
plt.show()

# %%
# One function for every device
# -----------------------------
#
# Three things have to be on the same device: the model, the images and
# the labels. The losses stay on the device until the end, as
# ``loss.item()`` in the loop would wait for the device at every step.


def fit(device, epochs=6, batch=64):
    """A trained model, the loss of each step, and the seconds."""
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 10),
    ).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = images[train].to(device), labels[train].to(device)
    losses, start = [], time.perf_counter()
    for _ in range(epochs):
        for i in range(0, len(x), batch):
            optimizer.zero_grad()
            read = model(x[i : i + batch])
            loss = F.cross_entropy(read, y[i : i + batch])
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    losses = torch.stack(losses).cpu()
    return model.cpu(), losses, time.perf_counter() - start


on_cpu, cpu_losses, seconds = fit("cpu")
print(f"{len(cpu_losses)} steps on the CPU took {seconds:.1f} s")

# %%
# The same on a simulated GPU
# ---------------------------
#
# Within the block ``"cuda"`` is a device whose memory is part of this
# machine's memory. Its kernels are the library's Triton kernels, made
# into machine code of this processor at their first use. The time says
# nothing of a GPU, and it includes making that code, unless an earlier
# run left it on disk.

with torch.cuda.simulate():
    print(torch.cuda.get_device_name())
    on_gpu, gpu_losses, seconds = fit("cuda")
print(f"{len(gpu_losses)} steps there took {seconds:.1f} s")

fig, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.2), layout="constrained"
)
left.plot(cpu_losses, label="CPU")
left.plot(gpu_losses, "--", label="simulated GPU")
left.set(title="Loss of each batch", xlabel="step", yscale="log")
left.legend()
right.plot((cpu_losses - gpu_losses).abs(), ".", color="C2")
right.set(title="Difference of the losses", xlabel="step", yscale="log")
plt.show()

# %%
# Both runs begin with the same numbers, because the seed is the same
# and random numbers do not depend on the device. The sums of a product
# are added in another order on each device, so float32 results differ
# in their last digits, and training carries that on.
#
# What the models read
# --------------------
#
# ``fit`` brought both models back to the CPU: ``.cpu()`` moves a module
# in place. Each row of the table below is a digit, each column what it
# was read as.

with torch.no_grad():
    read = on_cpu(images[test]).argmax(dim=1)
    other = on_gpu(images[test]).argmax(dim=1)
correct = read == labels[test]
print(f"test accuracy: {correct.float().mean().item():.1%}")
print("read differently by the two:", (read != other).sum().item())

table = torch.zeros(10, 10, dtype=torch.int64)
one = torch.tensor(1)
table.index_put_((labels[test], read), one, accumulate=True)

fig, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.8), layout="constrained"
)
left.imshow(table.float().sqrt(), cmap="Greens")
for i, j in table.nonzero().tolist():
    colour = "white" if i == j else "black"
    left.text(
        j, i, table[i, j].item(), color=colour, ha="center", va="center"
    )
left.set(title="Confusion matrix", xlabel="read as", ylabel="digit")
left.grid(False)
wrong = test[~correct]
side_by_side(right, images[wrong[:8], 0], 4, "Read wrong, among them")
plt.show()

# %%
# What the first layer sees
# -------------------------
#
# A model in evaluation is called layer by layer. The first convolution
# makes eight pictures of a digit, each with a filter of its own.

digit = images[test[:1]]
with torch.no_grad():
    maps = on_gpu[:2](digit)[0]

fig, ax = plt.subplots(figsize=(9, 1.5), layout="constrained")
shown = torch.cat([digit[0], maps / maps.max()])
side_by_side(ax, shown, 9, "A digit, and what eight filters make of it")
plt.show()

# %%
# Next
# ----
#
# * `Two simulated GPUs, and what goes wrong <placement.html>`_
# * `Devices <../devices.html>`_: what runs kernels on a simulated
#   device
# * `Sequences and training <../training.html>`_: other layers,
#   optimizers, mixed precision
