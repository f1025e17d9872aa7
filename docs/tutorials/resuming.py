"""
A checkpoint's journey between devices
======================================

Training stops on one machine and goes on on another, with other
devices. This tutorial saves a checkpoint on the second of two simulated
GPUs, looks into the file, and resumes on other devices: the loss goes
on as if nothing had happened, if the checkpoint holds all that it has
to.
"""

# sphinx_gallery_thumbnail_number = 2
import pickle
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import tritensor as torch
from tritensor import nn

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "checkpoint.pt"

# %%
# Something to train
# ------------------
#
# A small network learns a function of one number. Three things change
# during a run: the model, the optimizer's state, and the generator that
# draws the batches.


class Run:
    def __init__(self, device):
        self.device = device
        self.draw = torch.Generator().manual_seed(1)
        torch.manual_seed(0)
        self.model = nn.Sequential(
            nn.Linear(1, 64),
            nn.Tanh(),
            nn.Linear(64, 64),
            nn.Tanh(),
            nn.Linear(64, 1),
        )
        self.model.to(device)
        weights = self.model.parameters()
        self.optimizer = torch.optim.Adam(weights, lr=0.01)

    def train(self, steps):
        losses = []
        for _ in range(steps):
            x = 4 * torch.rand(256, 1, generator=self.draw) - 2
            y = torch.sin(3 * x)
            out = self.model(x.to(self.device))
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(out, y.to(self.device))
            loss.backward()
            self.optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses).cpu()


# %%
# Save on cuda:1
# --------------
#
# The file is written at step 300. Then the run goes on to step 450, to
# have something to compare with.

with torch.cuda.simulate(devices=2):
    run = Run("cuda:1")
    before = run.train(300)
    checkpoint = {
        "model": run.model.state_dict(),
        "optimizer": run.optimizer.state_dict(),
        "draw": run.draw.get_state(),
    }
    torch.save(checkpoint, path)
    after = run.train(150)

# %%
# What is in the file
# -------------------
#
# A tensor is loaded onto the device that it was saved on, unless
# ``map_location`` says otherwise. A machine with fewer devices refuses,
# and says what to do. On the device ``meta`` tensors have a shape and
# no memory: a file can be looked into however large it is.

with torch.cuda.simulate(devices=1):
    try:
        torch.load(path)
    except RuntimeError as error:
        print(*str(error).splitlines()[::2], sep="\n")
    for place in ("cpu", "cuda", {"cuda:1": "cuda:0"}, "meta"):
        state = torch.load(path, map_location=place)
        weight = state["model"]["0.weight"]
        print(f"map_location={place!s:22}", weight.device)

sizes = {"parameters": state["model"].values()}
moments = state["optimizer"]["state"].values()
for name in ("exp_avg", "exp_avg_sq"):
    sizes[f"Adam: {name}"] = [of_one[name] for of_one in moments]
for name, tensors in sizes.items():
    sizes[name] = sum(tensor.nbytes for tensor in tensors) / 1000
whole = path.stat().st_size / 1000
sizes["all else in the file"] = whole - sum(sizes.values())

plt.figure(figsize=(9, 2.2), layout="constrained")
bars = plt.barh(list(sizes), list(sizes.values()))
plt.bar_label(bars, fmt="%.1f", padding=3)
plt.gca().invert_yaxis()
plt.title(f"A checkpoint of {whole:.1f} kB")
plt.xlabel("kB")
plt.show()

# %%
# Loading runs no code
# --------------------
#
# Checkpoints are pickle files, and pickle can call any function.
# ``load`` rebuilds tensors, containers and numbers, and refuses
# everything else:


class Harmful:
    def __reduce__(self):
        return print, ("this was executed",)


harmful = path.with_name("harmful.pt")
harmful.write_bytes(pickle.dumps({"weight": Harmful()}))
try:
    torch.load(harmful)
except torch.errors.CheckpointError as error:
    print(str(error).splitlines()[0])

# %%
# Resume elsewhere
# ----------------
#
# The model may be moved before or after its state is loaded, and the
# optimizer's state follows the parameters. One of the runs below
# forgets the optimizer's state, which is a common mistake.


def resume(device, with_optimizer=True):
    state = torch.load(path, map_location="cpu")
    run = Run(device)
    run.model.load_state_dict(state["model"])
    if with_optimizer:
        run.optimizer.load_state_dict(state["optimizer"])
    run.draw.set_state(state["draw"])
    return run.train(150)


with torch.cuda.simulate(devices=2):
    resumed = {"cuda:0": resume("cuda:0"), "cpu": resume("cpu")}
    forgotten = resume("cpu", with_optimizer=False)

for device, losses in resumed.items():
    largest = (losses - after).abs().max().item()
    print(
        f"resumed on {device}: losses differ by {largest:.1e} at most"
    )

plt.figure(figsize=(9, 3.5), layout="constrained")
steps = range(300, 450)
plt.plot(steps, forgotten, label="without the optimizer's state")
plt.plot(torch.cat([before, after]), label="not interrupted, on cuda:1")
plt.plot(steps, resumed["cpu"], ":", label="resumed on the CPU")
plt.axvline(300, color="gray", linewidth=0.8)
plt.yscale("log")
plt.title("The loss goes on where it stopped")
plt.xlabel("step")
plt.legend()
plt.show()

# %%
# Resumed on a GPU, the losses are the same to the last bit; on the CPU
# they differ by rounding. Without the averages that Adam keeps, its
# first steps are as large as at the very beginning, and the run loses
# much of what it had reached.
#
# Next
# ----
#
# * `Write, check and price a Triton kernel without a GPU
#   <kernel.html>`_
# * `How do I load a GPU checkpoint on a CPU, and back?
#   <../questions/checkpoints_between_devices.html>`_
# * `Checkpoints <../checkpoints.html>`_: the format, interrupted saves,
#   mapped files
