"""Train a ResNet-18 on generated pictures, or on a folder of pictures with a folder for each class.

    python examples/resnet.py --device cpu
    python examples/resnet.py --folder PATH --size 128
    TRITENSOR_SIMULATE_CUDA=1 python examples/resnet.py --device cuda --size 32 --pictures 4 --batch 2 --epochs 1

It writes the loss curve, and beside it a checkpoint in torchvision's names.
"""

import argparse
import sys
import time
from functools import partial
from pathlib import Path

from training import draw_losses, passes

import tritensor as torch
import tritensor.nn.functional as F
from tritensor.utils.data import DataLoader
from tritensor.vision import datasets, models, transforms


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")
    parser.add_argument("--folder", type=Path, help="pictures, in a folder for each class")
    parser.add_argument("--size", type=int, default=64, metavar="N", help="pixels of a side (64)")
    parser.add_argument("--pictures", type=int, default=64, metavar="N", help="how many to generate (64)")
    parser.add_argument("--batch", type=int, default=16, metavar="N", help="pictures in a batch (16)")
    parser.add_argument("--epochs", type=int, default=8, metavar="N", help="passes over the pictures (8)")
    parser.add_argument(
        "--save", type=Path, default=Path("resnet18.pt"), metavar="PATH", help="checkpoint (resnet18.pt)"
    )
    return parser.parse_args()


def load_pictures(arguments):
    """The pictures, and the number of their classes."""
    normalize = transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    if arguments.folder is None:
        transform = transforms.Compose([transforms.ToTensor(), normalize])
        size = (3, arguments.size, arguments.size)
        return datasets.FakeData(arguments.pictures, size, num_classes=10, transform=transform), 10
    augment = [transforms.RandomResizedCrop(arguments.size, scale=(0.5, 1.0)), transforms.RandomHorizontalFlip()]
    pictures = datasets.ImageFolder(arguments.folder, transforms.Compose([*augment, transforms.ToTensor(), normalize]))
    return pictures, len(pictures.classes)


def step(model, optimizer, images, labels):
    """One step of training; returns the loss."""
    optimizer.zero_grad()
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    arguments = parse_arguments()
    torch.manual_seed(1)
    pictures, classes = load_pictures(arguments)
    loader = DataLoader(pictures, batch_size=arguments.batch, shuffle=True)
    model = models.resnet18(num_classes=classes).to(arguments.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9, weight_decay=1e-4)
    start = time.perf_counter()
    losses = passes(partial(step, model, optimizer), loader, arguments.epochs, arguments.device)
    print(f"{len(losses)} steps in {time.perf_counter() - start:.1f} s, loss {losses[0]:.3f} to {losses[-1]:.3f}")
    torch.save(model.state_dict(), arguments.save)
    draw_losses(losses, arguments.save.with_suffix(".png"))
    print(f"wrote {arguments.save} and {arguments.save.with_suffix('.png')}")


if __name__ == "__main__":
    sys.exit(main())
