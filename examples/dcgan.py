"""Train a generator and a discriminator against each other on handwritten digits (Radford and others, 2016).

    python examples/dcgan.py --device cpu
    TRITENSOR_SIMULATE_CUDA=1 python examples/dcgan.py --device cuda --epochs 1 --batches 2

MNIST's files are read from --data; where they are absent, scikit-learn's digits take their place. It writes the curves
of both losses, and digits that the generator draws from the same codes after every few epochs.
"""

import argparse
import sys
from pathlib import Path

from handwriting import folder
from training import draw_losses, passes

import tritensor as torch
import tritensor.nn.functional as F
from tritensor import nn
from tritensor.utils.data import DataLoader
from tritensor.vision import datasets, transforms
from tritensor.vision.utils import save_image

CODES, WIDTH = 32, 16


def initialise(module):
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1.0, 0.02)


def build_generator():
    generator = nn.Sequential(
        nn.ConvTranspose2d(CODES, 4 * WIDTH, 7, bias=False),  # 7x7
        nn.BatchNorm2d(4 * WIDTH),
        nn.ReLU(),
        nn.ConvTranspose2d(4 * WIDTH, 2 * WIDTH, 4, stride=2, padding=1, bias=False),  # 14x14
        nn.BatchNorm2d(2 * WIDTH),
        nn.ReLU(),
        nn.ConvTranspose2d(2 * WIDTH, 1, 4, stride=2, padding=1, bias=False),  # 28x28
        nn.Tanh(),
    )
    return generator.apply(initialise)


def build_discriminator():
    discriminator = nn.Sequential(
        nn.Conv2d(1, WIDTH, 4, stride=2, padding=1, bias=False),  # 14x14
        nn.LeakyReLU(0.2),
        nn.Conv2d(WIDTH, 2 * WIDTH, 4, stride=2, padding=1, bias=False),  # 7x7
        nn.BatchNorm2d(2 * WIDTH),
        nn.LeakyReLU(0.2),
        nn.Conv2d(2 * WIDTH, 1, 7, bias=False),
        nn.Flatten(0),
    )
    return discriminator.apply(initialise)


def step(models, optimizers, images, codes):
    """One step of both models; returns the losses of the discriminator and of the generator."""
    generator, discriminator = models
    drawn = generator(codes)
    optimizers[1].zero_grad()
    real, false = discriminator(images), discriminator(drawn.detach())
    judged = F.binary_cross_entropy_with_logits(real, torch.ones_like(real))
    judged = judged + F.binary_cross_entropy_with_logits(false, torch.zeros_like(false))
    judged.backward()
    optimizers[1].step()
    optimizers[0].zero_grad()
    answer = discriminator(drawn)
    deceived = F.binary_cross_entropy_with_logits(answer, torch.ones_like(answer))
    deceived.backward()
    optimizers[0].step()
    return judged.item(), deceived.item()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")
    parser.add_argument("--data", type=Path, default=Path("data"), help="the folder that has MNIST/raw (data)")
    parser.add_argument("--epochs", type=int, default=12, metavar="N", help="passes over the pictures (12)")
    parser.add_argument("--batches", type=int, metavar="N", help="at most N batches of each pass")
    parser.add_argument("--out", type=Path, default=Path("dcgan"), metavar="FOLDER", help="where to write (dcgan)")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    device = arguments.device
    torch.manual_seed(1)
    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
    pictures = datasets.MNIST(folder(arguments.data), train=True, transform=transform)
    loader = DataLoader(pictures, batch_size=64, shuffle=True, drop_last=True)
    models = build_generator().to(device), build_discriminator().to(device)
    optimizers = [torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.5, 0.999)) for model in models]
    codes = torch.randn(64 if device == "cpu" else 4, CODES, 1, 1, device=device)
    arguments.out.mkdir(parents=True, exist_ok=True)

    def train(images, _):
        return step(models, optimizers, images, torch.randn(len(images), CODES, 1, 1, device=device))

    def draw(epoch):
        if epoch % 4 == 0 or epoch == arguments.epochs:
            with torch.no_grad():
                drawn = models[0](codes).cpu()
            save_image(drawn, arguments.out / f"epoch-{epoch:02}.png", normalize=True, value_range=(-1, 1))

    losses = passes(train, loader, arguments.epochs, device, arguments.batches, after=draw)
    draw_losses(losses, arguments.out / "loss.png", "discriminator", "generator")
    print(f"{len(losses)} steps; wrote loss.png and epoch-*.png in {arguments.out}")


if __name__ == "__main__":
    sys.exit(main())
