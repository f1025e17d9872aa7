"""Train the classic small convolutional network on MNIST, save it, and load it on the other kind of device.

    python examples/mnist.py --device cpu
    TRITENSOR_SIMULATE_CUDA=1 python examples/mnist.py --device cuda --batches 4

MNIST's files are read from --data (`--download` fetches them); where they are absent, scikit-learn's digits take their
place. Beside the checkpoint it writes a picture that ends in .png: the loss curve and the confusion matrix.
"""

import argparse
import itertools
import sys
import time
from functools import partial
from pathlib import Path

from handwriting import folder
from matplotlib.figure import Figure
from training import passes

import tritensor as torch
import tritensor.nn.functional as F
from tritensor import nn
from tritensor.utils.data import DataLoader
from tritensor.vision import datasets, transforms


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(32 * 7 * 7, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = self.dropout(torch.flatten(x, 1))
        return self.fc2(F.relu(self.fc1(x)))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")
    parser.add_argument("--data", type=Path, default=Path("data"), help="the folder that has MNIST/raw (data)")
    parser.add_argument("--download", action="store_true", help="fetch MNIST where it is absent")
    parser.add_argument("--epochs", type=int, default=5, metavar="N", help="passes over the pictures (5)")
    parser.add_argument("--batches", type=int, metavar="N", help="at most N batches of each pass")
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="processes that read pictures (0)")
    parser.add_argument("--save", type=Path, default=Path("mnist.pt"), metavar="PATH", help="checkpoint (mnist.pt)")
    return parser.parse_args()


def step(model, optimizer, images, labels):
    """One step of training; returns the loss."""
    optimizer.zero_grad()
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def confusion(model, loader, device, batches):
    """How often a digit (row) was taken for another (column)."""
    counts = torch.zeros(10, 10, dtype=torch.int64)
    model.eval()
    with torch.no_grad():
        for images, labels in itertools.islice(loader, batches):
            predicted = model(images.to(device)).argmax(1).cpu()
            for label, taken in zip(labels.tolist(), predicted.tolist(), strict=True):
                counts[label, taken] += 1
    return counts


def draw(losses, counts, path):
    """Write the loss curve and the confusion matrix."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(losses)
    left.set(xlabel="batch", ylabel="loss", yscale="log", title="training")
    right.imshow(counts.numpy(), cmap="Blues")
    for row, column in itertools.product(range(10), range(10)):
        if counts[row, column]:
            dark = counts[row, column] > counts.max() / 2
            right.text(column, row, int(counts[row, column]), ha="center", va="center", color="w" if dark else "k")
    right.set(xlabel="taken for", ylabel="digit", title="test", xticks=range(10), yticks=range(10))
    figure.savefig(path, dpi=150)


def main():
    arguments = parse_arguments()
    torch.manual_seed(1)
    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))])
    root = arguments.data if arguments.download else folder(arguments.data)
    training = datasets.MNIST(root, train=True, download=arguments.download, transform=transform)
    test = datasets.MNIST(root, train=False, transform=transform)
    workers = {"num_workers": arguments.workers, "persistent_workers": arguments.workers > 0}
    loader = DataLoader(training, batch_size=64, shuffle=True, **workers)
    tests = DataLoader(test, batch_size=250, num_workers=arguments.workers)

    model = Net().to(arguments.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    start = time.perf_counter()
    train = partial(step, model, optimizer)
    losses = passes(train, loader, arguments.epochs, arguments.device, arguments.batches)
    print(f"{len(losses)} steps in {time.perf_counter() - start:.1f} s, loss {losses[0]:.3f} to {losses[-1]:.3f}")
    counts = confusion(model, tests, arguments.device, arguments.batches)
    right, count = sum(int(counts[digit, digit]) for digit in range(10)), int(counts.sum())
    print(f"{right} of {count} test digits are recognised ({100 * right / count:.1f} %)")
    torch.save(model.state_dict(), arguments.save)
    draw(losses, counts, arguments.save.with_suffix(".png"))
    print(f"wrote {arguments.save} and {arguments.save.with_suffix('.png')}")

    other = "cuda" if torch.device(arguments.device).type == "cpu" else "cpu"
    if other == "cuda" and not torch.cuda.is_available():
        return
    moved = Net().to(other)
    moved.load_state_dict(torch.load(arguments.save, map_location=other))
    images, _ = next(iter(tests))
    images = images[:20]
    same = moved.eval()(images.to(other)).argmax(1).cpu() == model(images.to(arguments.device)).argmax(1).cpu()
    print(f"loaded on {other}: {int(same.sum())} of {len(same)} predictions agree")


if __name__ == "__main__":
    sys.exit(main())
