"""Train a classifier on real handwritten digits on one device, then move its checkpoint to the other kind of device.

    python examples/train_digits.py --device cpu
    python examples/train_digits.py --device cuda
    TRITENSOR_SIMULATE_CUDA=1 python examples/train_digits.py --device cuda --epochs 2

The data are the 1,797 digits of 8x8 pixels that ship with scikit-learn: 1,437 to learn from, 360 to test on. Beside the
checkpoint it writes a picture of the same name that ends in .png: the loss curve, and test digits with predictions.
"""

import argparse
import sys
import time
from pathlib import Path

from tqdm import tqdm

try:
    from matplotlib.figure import Figure
    from sklearn.datasets import load_digits
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is missing, of what the examples need: pip install 'tritensor[examples]'")

import tritensor as torch
from tritensor import nn
from tritensor.utils.data import DataLoader, TensorDataset

TEST_DIGITS = 360

NO_GPU = """--device cuda needs an NVIDIA GPU, its driver, and `pip install 'tritensor[cuda]'`; none is usable here.
Without a GPU, a simulated device runs the same kernels (slowly; needs `pip install 'tritensor[triton]'`, Linux):
    TRITENSOR_SIMULATE_CUDA=1 python examples/train_digits.py --device cuda --epochs 2"""

NO_OTHER_DEVICE = """this machine has no CUDA device, so the checkpoint was not moved to one. With
TRITENSOR_SIMULATE_CUDA=1 there is a simulated one, and this script then loads the checkpoint there, runs the model
through the GPU's kernels (needs `pip install 'tritensor[triton]'`, Linux) and compares the predictions."""


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--epochs", type=int, default=60, metavar="N", help="passes over the training digits (60)")
    parser.add_argument("--save", type=Path, default=Path("digits.pt"), metavar="PATH", help="checkpoint (digits.pt)")
    arguments = parser.parse_args()
    if arguments.epochs < 1:
        parser.error("--epochs: at least one pass is needed")
    return arguments


def load_datasets():
    """Two datasets of (64 pixels between 0 and 1, digit): what to learn from, and what to test on."""
    pictures, digits = load_digits(return_X_y=True)
    pixels = torch.tensor(pictures, dtype=torch.float32) / 16
    labels = torch.tensor(digits, dtype=torch.int64)
    order = torch.randperm(len(labels))
    test, train = order[:TEST_DIGITS], order[TEST_DIGITS:]
    return TensorDataset(pixels[train], labels[train]), TensorDataset(pixels[test], labels[test])


def build_model():
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10))


def train(model, dataset, epochs, device):
    """Train in place; returns the loss of every batch."""
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    model.train()
    with tqdm(total=epochs * len(loader), desc=f"training on {device}", unit="batch", mininterval=0.25) as bar:
        for epoch in range(1, epochs + 1):
            for pixels, labels in loader:
                optimizer.zero_grad()
                loss = criterion(model(pixels.to(device)), labels.to(device))
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
                bar.set_postfix(epoch=epoch, loss=f"{losses[-1]:.4f}", refresh=False)
                bar.update()
    return losses


def predict(model, pixels, device):
    """Logits of every digit, computed on `device`, as a CPU tensor."""
    model.eval()
    with torch.no_grad():
        return model(pixels.to(device)).cpu()


def compare_on(other, path, pixels, logits):
    """Load the checkpoint at `path` on device `other`; True when the model predicts there what it predicted before."""
    model = build_model().to(other)
    model.load_state_dict(torch.load(path, map_location=other))
    moved = predict(model, pixels, other)
    agreeing = int((moved.argmax(dim=1) == logits.argmax(dim=1)).sum())
    difference = float((moved - logits).abs().max())
    print(f"loaded {path} on {describe(other)}")
    print(f"predictions agree on {agreeing} of {len(pixels)} test digits; logits differ by {difference:.1e} at most")
    return agreeing == len(pixels)


def describe(device):
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)


def draw(path, losses, pixels, labels, logits, title):
    """The loss of every batch, and 32 test digits with their predictions: the mistakes first, then the others in
    order."""
    predicted = logits.argmax(dim=1).tolist()
    truth = labels.tolist()
    shown = sorted(range(len(truth)), key=lambda i: predicted[i] == truth[i])[:32]
    wrong = sum(p != t for p, t in zip(predicted, truth, strict=True))

    figure = Figure(figsize=(12, 5.2), layout="constrained")
    figure.suptitle(title, fontsize=13)
    grid = figure.add_gridspec(1, 2, width_ratios=(1, 1.15))
    left, right = figure.add_subfigure(grid[0, 0]), figure.add_subfigure(grid[0, 1])

    axes = left.subplots()
    averaged = [sum(losses[max(0, i - 24) : i + 1]) / min(i + 1, 25) for i in range(len(losses))]
    axes.plot(losses, color="#9ecae1", linewidth=0.8, label="each batch")
    axes.plot(averaged, color="#08519c", linewidth=1.8, label="mean of 25")
    axes.set(xlabel="batch", ylabel="cross entropy", yscale="log", xlim=(0, len(losses)))
    axes.grid(which="major", color="#e5e5e5")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)

    right.suptitle(f"{len(truth)} test digits, {wrong} read wrong: those first, in red", fontsize=10, color="#444444")
    for axes, i in zip(right.subplots(4, 8).flat, shown, strict=False):
        right_answer = predicted[i] == truth[i]
        axes.imshow(pixels[i].reshape(8, 8).numpy(), cmap="gray_r", vmin=0, vmax=1)
        axes.set(xticks=(), yticks=())
        axes.spines[:].set_color("#cccccc" if right_answer else "#cb181d")
        axes.set_title(
            f"{predicted[i]}" if right_answer else f"{predicted[i]}, is {truth[i]}",
            fontsize=10,
            color="#238b45" if right_answer else "#cb181d",
        )
    figure.savefig(path, dpi=120)


def main():
    arguments = parse_arguments()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        sys.exit(NO_GPU)
    device = torch.device(arguments.device)
    torch.manual_seed(1)
    train_set, test_set = load_datasets()
    pixels, labels = test_set.tensors

    model = build_model().to(device)
    print(f"{len(train_set)} digits to learn from, {len(test_set)} to test on, on {describe(device)}")
    start = time.perf_counter()
    losses = train(model, train_set, arguments.epochs, device)
    seconds = time.perf_counter() - start

    logits = predict(model, pixels, device)
    accuracy = (logits.argmax(dim=1) == labels).float().mean().item()
    print(f"test accuracy {accuracy:.1%} after {arguments.epochs} epochs in {seconds:.1f} s")

    arguments.save.parent.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), arguments.save)
    print(f"saved the state dict to {arguments.save}")

    picture = arguments.save.with_suffix(".png")
    draw(picture, losses, pixels, labels, logits, f"{accuracy:.1%} of the test digits read, on {describe(device)}")
    print(f"drew the loss curve and test digits in {picture}")

    if device.type == "cuda":
        other = torch.device("cpu")
    elif torch.cuda.is_available():
        other = torch.device("cuda")
    else:
        print(NO_OTHER_DEVICE)
        return
    if not compare_on(other, arguments.save, pixels, logits):
        sys.exit(f"the model predicts differently on {other}")


if __name__ == "__main__":
    try:
        main()
    except torch.errors.DeviceError as error:  # for example simulation without Triton: the message says what to do
        sys.exit(f"{error}")
