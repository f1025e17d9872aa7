"""Train a variational autoencoder on handwritten digits (Kingma and Welling, 2014), and draw what it imagines.

    python examples/vae.py --device cpu
    TRITENSOR_SIMULATE_CUDA=1 python examples/vae.py --device cuda --epochs 1 --batches 3

MNIST's files are read from --data; where they are absent, scikit-learn's digits take their place. It writes three
pictures: the loss curve, test digits above their reconstructions, and digits drawn from random codes.
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

CODES = 10


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 4, stride=2, padding=1),  # 14x14
            nn.ReLU(),
            nn.Conv2d(16, 32, 4, stride=2, padding=1),  # 7x7
            nn.ReLU(),
            nn.Flatten(),
        )
        self.mean = nn.Linear(32 * 7 * 7, CODES)
        self.log_variance = nn.Linear(32 * 7 * 7, CODES)
        self.decoder = nn.Sequential(
            nn.Linear(CODES, 32 * 7 * 7),
            nn.ReLU(),
            nn.Unflatten(1, (32, 7, 7)),
            nn.ConvTranspose2d(32, 16, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(16, 1, 4, stride=2, padding=1),
        )

    def forward(self, x, noise):
        hidden = self.encoder(x)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        return self.decoder(mean + noise * torch.exp(0.5 * log_variance)), mean, log_variance


def step(model, optimizer, images, noise):
    """One step of training; returns the negative lower bound of the log-likelihood per picture."""
    optimizer.zero_grad()
    logits, mean, log_variance = model(images, noise)
    reconstruction = F.binary_cross_entropy_with_logits(logits, images, reduction="sum")
    divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
    loss = (reconstruction + divergence) / len(images)
    loss.backward()
    optimizer.step()
    return loss.item()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")
    parser.add_argument("--data", type=Path, default=Path("data"), help="the folder that has MNIST/raw (data)")
    parser.add_argument("--epochs", type=int, default=20, metavar="N", help="passes over the pictures (20)")
    parser.add_argument("--batches", type=int, metavar="N", help="at most N batches of each pass")
    parser.add_argument("--out", type=Path, default=Path("vae"), metavar="FOLDER", help="where to write (vae)")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    device = arguments.device
    torch.manual_seed(1)
    root, transform = folder(arguments.data), transforms.ToTensor()
    loader = DataLoader(datasets.MNIST(root, train=True, transform=transform), batch_size=64, shuffle=True)
    model = VAE().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    def train(images, _):
        return step(model, optimizer, images, torch.randn(len(images), CODES, device=device))

    losses = passes(train, loader, arguments.epochs, device, arguments.batches)
    print(f"{len(losses)} steps, loss {losses[0]:.1f} to {losses[-1]:.1f}")

    arguments.out.mkdir(parents=True, exist_ok=True)
    model.eval()
    with torch.no_grad():
        images, _ = next(iter(DataLoader(datasets.MNIST(root, train=False, transform=transform), batch_size=10)))
        again, _, _ = model(images.to(device), torch.zeros(len(images), CODES, device=device))
        imagined = model.decoder(torch.randn(64 if device == "cpu" else 16, CODES, device=device))
        save_image(torch.cat([images, again.sigmoid().cpu()]), arguments.out / "reconstructions.png", nrow=len(images))
        save_image(imagined.sigmoid().cpu(), arguments.out / "samples.png")
    draw_losses(losses, arguments.out / "loss.png")
    print(f"wrote loss.png, reconstructions.png and samples.png in {arguments.out}")


if __name__ == "__main__":
    sys.exit(main())
