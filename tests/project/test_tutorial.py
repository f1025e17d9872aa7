"""The program that everybody starts from, as it is usually written, with its import lines changed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ..needs import needs_triton

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(importlib.util.find_spec("PIL") is None, reason="needs tritensor[vision]")

TUTORIAL = """
import argparse
import tritensor as torch
import tritensor.nn as nn
import tritensor.nn.functional as F
import tritensor.optim as optim
from tritensor.optim.lr_scheduler import StepLR
from tritensor.vision import datasets, transforms


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 8, kernel_size=(3, 3), stride=2)
        self.bn = nn.BatchNorm2d(8)
        self.dropout1 = nn.Dropout2d(0.25)
        self.pool = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(288, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.bn(self.conv2(x)), inplace=True)
        x = self.dropout1(self.pool(x))
        x = x.view(x.size(0), -1)
        return self.fc1(x)


def train(args, model, device, train_loader, criterion, optimizer, epoch):
    model.train()
    running_loss = 0.0
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = criterion(output, target)
        loss.backward()
        optimizer.step()
        running_loss += loss.item() * data.size(0)
        if batch_idx % args.log_interval == 0:
            print('Train Epoch: {} [{}/{} ({:.0f}%)]\\tLoss: {:.6f}'.format(
                epoch, batch_idx * len(data), len(train_loader.dataset),
                100. * batch_idx / len(train_loader), loss.item()))


def test(model, device, test_loader):
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for data, target in test_loader:
            data, target = data.to(device), target.to(device)
            output = F.log_softmax(model(data), dim=1)
            test_loss += F.nll_loss(output, target, reduction='sum').item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    test_loss /= len(test_loader.dataset)
    print('Test set: Average loss: {:.4f}, Accuracy: {}/{} ({:.0f}%)'.format(
        test_loss, correct, len(test_loader.dataset), 100. * correct / len(test_loader.dataset)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--no-cuda', action='store_true', default=False)
    parser.add_argument('--log-interval', type=int, default=1)
    args = parser.parse_args()
    use_cuda = not args.no_cuda and torch.cuda.is_available()
    torch.manual_seed(1)
    device = torch.device("cuda:0" if use_cuda else "cpu")
    kwargs = {'num_workers': 1, 'pin_memory': True} if use_cuda else {}
    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))])
    dataset1 = datasets.MNIST('data', train=True, download=True, transform=transform)
    dataset2 = datasets.MNIST('data', train=False, transform=transform)
    train_loader = torch.utils.data.DataLoader(dataset1, batch_size=6, shuffle=True, **kwargs)
    test_loader = torch.utils.data.DataLoader(dataset2, batch_size=6, **kwargs)
    model = Net().to(device)
    criterion = nn.CrossEntropyLoss().to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(1, 2 + 1):
        train(args, model, device, train_loader, criterion, optimizer, epoch)
        test(model, device, test_loader)
        scheduler.step()
    torch.save(model.state_dict(), "mnist_cnn.pt")
    print("trained on", next(model.parameters()).device)
    again = Net()
    again.load_state_dict(torch.load("mnist_cnn.pt", map_location=torch.device("cpu")))
    test(again, "cpu", test_loader)


if __name__ == '__main__':
    main()
"""


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes() + array.tobytes()


@pytest.mark.thorough
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda:0", marks=needs_triton)])
def test_the_tutorial_runs(tmp_path: Path, device: str) -> None:
    raw = tmp_path / "data" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name, count in (("train", 12), ("t10k", 6)):
        (raw / f"{name}-images-idx3-ubyte").write_bytes(idx(rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)))
        (raw / f"{name}-labels-idx1-ubyte").write_bytes(idx(rng.integers(0, 10, count, dtype=np.uint8)))
    (tmp_path / "tutorial.py").write_text(TUTORIAL)
    done = subprocess.run(
        [sys.executable, "tutorial.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TRITENSOR_SIMULATE_CUDA": "0" if device == "cpu" else "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == 8 and lines[0].startswith("Train Epoch: 1 [0/12 (0%)]\tLoss: ")
    assert f"trained on {device}" in lines
    accuracy = [line for line in lines if line.startswith("Test set")]
    assert len(accuracy) == 3
    assert abs(float(accuracy[1].split()[4].rstrip(",")) - float(accuracy[2].split()[4].rstrip(","))) < 1e-3
