"""Train one classifier of handwritten digits in several processes, each on its share of every batch.

    python -m tritensor launch -n 4 examples/train_digits_distributed.py      (or mpiexec -n 4 python ...)
    python examples/train_digits_distributed.py              (one process, the same result to rounding)
    TRITENSOR_SIMULATE_CUDA=1 mpiexec -n 2 python examples/train_digits_distributed.py --device cuda --epochs 2

The batch of 32 digits is divided among the processes, which average their gradients: any number of processes that
divides 32 takes the same steps. The data are the 1,797 digits of 8x8 pixels that ship with scikit-learn.
"""

import argparse
import sys
import time
from pathlib import Path

from tqdm import tqdm

try:
    from sklearn.datasets import load_digits
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is missing, of what the examples need: pip install 'tritensor[examples]'")

import tritensor as torch
import tritensor.distributed as dist
from tritensor import nn
from tritensor.nn.parallel import DistributedDataParallel
from tritensor.utils.data import DataLoader, DistributedSampler, TensorDataset

TEST_DIGITS = 360
BATCH = 32


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--epochs", type=int, default=20, metavar="N", help="passes over the training digits (20)")
    parser.add_argument("--save", type=Path, metavar="PATH", help="where rank 0 saves the model's state dict")
    parser.add_argument("--picture", type=Path, metavar="PATH", help="where to draw the curve of the losses")
    return parser.parse_args()


def load_datasets():
    """Two datasets of (64 pixels between 0 and 1, digit): what to learn from, and what to test on."""
    pictures, digits = load_digits(return_X_y=True)
    pixels = torch.tensor(pictures, dtype=torch.float32) / 16
    labels = torch.tensor(digits, dtype=torch.int64)
    order = torch.randperm(len(labels))
    test, train = order[:TEST_DIGITS], order[TEST_DIGITS:]
    return TensorDataset(pixels[train], labels[train]), TensorDataset(pixels[test], labels[test])


def train(model, dataset, epochs, device):
    """Train in place; returns the mean loss of each epoch over all processes."""
    # Whole batches only, so that every process has the same number of digits in every step, and no digit twice.
    sampler = DistributedSampler(dataset, seed=1, drop_last=True)
    loader = DataLoader(dataset, BATCH // dist.get_world_size(), sampler=sampler, drop_last=True)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    means, losses = [], torch.zeros(2)
    with tqdm(total=epochs * len(loader), unit="batch", mininterval=0.25, disable=dist.get_rank() != 0) as bar:
        for epoch in range(epochs):
            sampler.set_epoch(epoch)
            losses.zero_()
            for pixels, labels in loader:
                optimizer.zero_grad()
                loss = criterion(model(pixels.to(device)), labels.to(device))
                loss.backward()
                optimizer.step()
                losses += torch.tensor([loss.item(), 1.0])
                bar.update()
            dist.all_reduce(losses)
            means.append(float(losses[0] / losses[1]))
    return means


def main():
    arguments = parse_arguments()
    dist.init_process_group("mpi")
    rank, size = dist.get_rank(), dist.get_world_size()
    if BATCH % size:
        sys.exit(f"{size} processes cannot share a batch of {BATCH} evenly")
    device = torch.device(arguments.device)
    if device.type == "cuda":
        # a different device for every process on a machine, if there are enough
        torch.cuda.set_device(dist.get_node_local_rank() % torch.cuda.device_count())

    torch.manual_seed(0)
    train_set, test_set = load_datasets()
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)
    parallel = DistributedDataParallel(model)
    start = time.perf_counter()
    losses = train(parallel, train_set, arguments.epochs, device)
    seconds = time.perf_counter() - start

    # each process tests its share
    pixels, labels = (x[rank::size].to(device) for x in test_set.tensors)
    with torch.no_grad():
        right = (model(pixels).argmax(dim=1) == labels).sum()
    dist.all_reduce(right)
    if rank == 0:
        print(
            f"loss {losses[-1]:.6f}, test accuracy {int(right) / TEST_DIGITS:.1%} after {arguments.epochs} epochs ",
            end="",
        )
        print(f"on {size} process{'es' if size > 1 else ''} ({device.type}) in {seconds:.1f} s")
        if arguments.picture:
            from training import draw_losses

            draw_losses(losses, arguments.picture, unit="epoch")
        if arguments.save:
            arguments.save.parent.mkdir(parents=True, exist_ok=True)
            torch.save(model.state_dict(), arguments.save)
            print(f"saved the state dict to {arguments.save}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
