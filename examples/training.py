"""What the programs with pictures share: passes over batches with a progress bar, and a picture of the losses."""

import itertools

import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm


def passes(step, loader, epochs, device, batches=None, after=None):
    """Call `step` with each batch, moved to the device; returns what it returned, the loss or losses of every batch.

    A pass has at most `batches` batches; `after` is called with its number when it is done.
    """
    losses = []
    total = epochs * min(len(loader), batches or len(loader))
    with tqdm(total=total, desc=f"training on {device}", unit="batch", mininterval=0.25) as bar:
        for epoch in range(1, epochs + 1):
            for batch in itertools.islice(loader, batches):
                losses.append(step(*(part.to(device) for part in batch)))
                bar.set_postfix_str(f"loss {np.round(losses[-1], 3)}", refresh=False)
                bar.update()
            if after is not None:
                after(epoch)
    return losses


def draw_losses(losses, path, *names, every=1, unit="batch"):
    """Write a picture of the curve of the losses, or of several curves that have names.

    They are those of one in `every` batches, or of what `unit` says.
    """
    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(1 + every * np.arange(len(losses)), losses, label=list(names) or None)
    axes.locator_params(axis="x", integer=True)
    axes.set(xlabel=unit, ylabel="loss")
    if names:
        axes.legend()
    figure.savefig(path, dpi=150)
