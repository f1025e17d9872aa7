"""
Tensors and gradients in pictures
=================================

A tensor is an array of numbers, and it can record how it was computed.
From that record ``backward()`` computes derivatives. The pictures below
show tensors, their derivatives, and what an optimizer does with them.
"""

# sphinx_gallery_thumbnail_number = 3
import matplotlib.pyplot as plt
import numpy as np

import tritensor as torch

# %%
# A function and its derivative
# -----------------------------
#
# ``requires_grad=True`` starts the record. ``backward()`` needs a
# single number to begin from, so the values are summed first: each
# value depends on one element of ``x`` only, and the gradient of the
# sum holds the derivative at every ``x``.

x = torch.linspace(-4, 4, 200, requires_grad=True)
y = x * torch.sin(x)
y.sum().backward()

plt.figure(figsize=(9, 3.3), layout="constrained")
plt.plot(x.detach(), y.detach(), label="x sin(x)")
plt.plot(x.detach(), x.grad, "--", label="x.grad")
plt.axhline(0, color="gray", linewidth=0.8)
plt.title("Where the derivative crosses zero, the function turns")
plt.legend()
plt.show()

# %%
# The derivative is exact up to rounding. On paper it is sin(x) + x
# cos(x):

exact = torch.sin(x) + x * torch.cos(x)
print("largest difference:", (x.grad - exact).abs().max().item())

# %%
# Broadcasting
# ------------
#
# Tensors of different shapes can be combined when each dimension is
# equal or 1. A dimension of 1 is repeated, without a copy: a column and
# a row give a table.

column = torch.arange(4).reshape(4, 1) * 10
row = torch.arange(5).reshape(1, 5)
table = column + row

fig, axes = plt.subplots(1, 3, figsize=(9, 2.8), layout="constrained")
shown = {"column": column, "row": row, "column + row": table}
for ax, (name, values) in zip(axes, shown.items()):
    ax.imshow(values, vmin=-20, vmax=40, cmap="summer")
    for (i, j), number in np.ndenumerate(values.numpy()):
        ax.text(j, i, number, ha="center", va="center", color="black")
    ax.set(title=f"{name}: {tuple(values.shape)}", xticks=[], yticks=[])
    ax.grid(False)
plt.show()

# %%
# Descent on a surface
# --------------------
#
# The gradient points uphill. An optimizer steps the other way, again
# and again. The surface below is Rosenbrock's function: a curved
# valley, whose lowest point is at (1, 1). The same expression gives its
# height at one point and, by broadcasting, on a whole grid.


def height(x, y):
    return (1 - x) ** 2 + 20 * (y - x**2) ** 2


def descend(kind, steps=150, **options):
    """The points that an optimizer visits."""
    point = torch.tensor([-1.3, 1.5], requires_grad=True)
    optimizer = kind([point], **options)
    path = [point.detach().clone()]
    for _ in range(steps):
        optimizer.zero_grad()
        height(*point).backward()
        optimizer.step()
        path.append(point.detach().clone())
    return torch.stack(path)


paths = {
    "SGD": descend(torch.optim.SGD, lr=0.004),
    "momentum": descend(torch.optim.SGD, lr=0.004, momentum=0.8),
    "Adam": descend(torch.optim.Adam, lr=0.1),
}

across = torch.linspace(-2, 2, 120).reshape(1, -1)
up = torch.linspace(-1, 3, 120).reshape(-1, 1)
surface = torch.log1p(height(across, up))

fig, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.8), layout="constrained"
)
left.imshow(
    surface, origin="lower", extent=(-2, 2, -1, 3), cmap="Greys", vmax=9
)
for name, path in paths.items():
    left.plot(*path.T, ".-", label=name, markersize=3, linewidth=1)
    right.plot(height(*path.T), label=name)
left.plot(1, 1, "*", color="black", markersize=10)
left.set(title="The way of each optimizer", xlabel="x", ylabel="y")
left.grid(False)
right.set(title="Height after each step", xlabel="step", yscale="log")
right.legend()
plt.show()

# %%
# The graph behind it
# -------------------
#
# ``torch.plot`` shows the record that ``backward()`` walks through:
# from the result at the top to the tensors that it depends on.

a = torch.tensor(-1.3, requires_grad=True)
b = torch.tensor(1.5, requires_grad=True)
print(torch.plot(height(a, b), {"x": a, "y": b}))

# %%
# Next
# ----
#
# * `Train digits on the CPU and on a simulated GPU <digits.html>`_
# * `Transformations of functions <../func.html>`_: Jacobians, second
#   derivatives, gradients for each sample
# * `Notebooks and terminals <../notebooks.html>`_: what a notebook
#   shows of tensors and graphs
