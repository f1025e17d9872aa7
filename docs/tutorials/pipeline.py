"""
A scikit-learn pipeline on tensors
==================================

``NeuralNetClassifier`` is an estimator of scikit-learn's whose network
tritensor trains. This tutorial scales handwritten digits, searches a
grid for the best network, and lets the same pipeline train on a
simulated CUDA device.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import tritensor as torch
from tritensor.sklearn import NeuralNetClassifier

# %%
# A pipeline
# ----------
#
# A digit has 64 pixels between 0 and 16. Scaling is a step of the
# pipeline, so that cross-validation fits it to the training part alone.
# The network's parameters have the names of ``MLPClassifier``.

pixels, digits = load_digits(return_X_y=True)
train, test, labels, truth = train_test_split(
    pixels.astype("float32"), digits, stratify=digits, random_state=0
)
network = NeuralNetClassifier(max_epochs=12, random_state=0)
model = Pipeline([("scaler", StandardScaler()), ("network", network)])
model.set_params(network__hidden_layer_sizes=64, network__batch_size=64)
model.fit(train, labels)
right = model.score(test, truth)
print(f"of {len(test)} digits held out {right:.1%} are read right")

# %%
# A fitted estimator keeps its losses and its module, whose parameters
# are tensors. Here are the first layer's weights of four hidden units,
# as pictures of 8x8 pixels.

weight = network.module_[0].weight.detach()
print(network.module_[0], weight.dtype, weight.device)

fig, axes = plt.subplots(1, 5, figsize=(9, 2.2), layout="constrained")
axes[0].plot(network.loss_curve_)
axes[0].set(title="loss of each pass")
for number, ax in enumerate(axes[1:]):
    ax.imshow(
        weight[number].reshape(8, 8), cmap="RdBu", vmin=-0.4, vmax=0.4
    )
    ax.set(title=f"unit {number}", xticks=[], yticks=[])
plt.show()

# %%
# Search a grid
# -------------
#
# The search names a parameter by its step: ``network__lr`` is ``lr`` of
# ``network``. A cell is the mean accuracy of three folds.

widths, rates = [(8,), (32,), (128,)], [0.001, 0.003, 0.01, 0.03]
grid = {"network__hidden_layer_sizes": widths, "network__lr": rates}
search = GridSearchCV(model, grid, cv=3).fit(train, labels)
print("the best:", search.best_params_)
scores = torch.tensor(search.cv_results_["mean_test_score"]).reshape(
    3, 4
)

plt.figure(figsize=(6, 3), layout="constrained")
plt.imshow(scores, cmap="Greens", aspect="auto")
for row in range(3):
    for column in range(4):
        score = scores[row, column].item()
        color = "white" if score > scores.mean() else "black"
        plt.text(
            column,
            row,
            f"{score:.1%}",
            ha="center",
            va="center",
            color=color,
        )
plt.xticks(range(4), rates)
plt.yticks(range(3), [width for (width,) in widths])
plt.xlabel("learning rate")
plt.ylabel("hidden units")
plt.title("Accuracy of three folds")
plt.grid(False)
plt.show()

# %%
# What is taken for what
# ----------------------

read = search.predict(test)
fig, ax = plt.subplots(figsize=(4.5, 4), layout="constrained")
ConfusionMatrixDisplay.from_predictions(
    truth, read, ax=ax, cmap="Greens", colorbar=False
)
ax.set(
    title=f"{(read == truth).mean():.1%} right",
    xlabel="read as",
    ylabel="digit",
)
ax.grid(False)
plt.show()

# %%
# The same on a simulated device
# ------------------------------
#
# ``device="cuda"`` is all that changes. The device is simulated here
# and runs the GPU's kernels in ordinary memory; where there is a GPU,
# leave out ``simulate``. Weights and batches are on the device, and
# predictions come back as NumPy arrays.

model.set_params(**search.best_params_, network__max_epochs=5)
with torch.cuda.simulate():
    model.set_params(network__device="cuda").fit(train, labels)
    print("weights:", network.module_[0].weight.device)
    megabytes = torch.cuda.max_memory_allocated() / 1e6
    print(f"peak memory of the device: {megabytes:.2f} MB")
    read, losses = model.predict(test), network.loss_curve_

# %%
# Five passes on the CPU, from the same seed, for comparison:

model.set_params(network__device="cpu").fit(train, labels)
agree = (model.predict(test) == read).sum()
print(f"{agree} of {len(test)} predictions agree")

plt.figure(figsize=(6, 2.8), layout="constrained")
plt.plot(network.loss_curve_, linewidth=6, alpha=0.4, label="CPU")
plt.plot(losses, "--", label="simulated device")
plt.xticks(range(5))
plt.title("Loss of each pass")
plt.legend()
plt.show()

# %%
# Next
# ----
#
# * `scikit-learn <../scikit_learn.html>`_: all parameters, networks of
#   your own, and the time beside ``MLPClassifier``
# * `Libraries <../libraries.html#scikit-learn>`_: its other estimators
#   and metrics on tensors of a device
# * `sklearn_pipeline.py <../examples/sklearn_pipeline.html>`_: the same
#   as a program, with a convolutional network
# * `Devices <../devices.html>`_: what a simulated device is
