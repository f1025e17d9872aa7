"""Lightning's Trainer on digits, with a checkpoint: a program written for PyTorch, as its users write them.

pip install --no-deps lightning lightning-utilities pytorch-lightning torchmetrics fsspec packaging pyyaml
python -m tritensor run examples/lightning_digits.py
python -m tritensor run --simulate-cuda 2 examples/lightning_digits.py --accelerator cuda --epochs 1
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from sklearn.datasets import load_digits
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy


class Reader(lightning.LightningModule):
    """Two layers that read a digit of 8x8."""

    def __init__(self, width: int = 64, lr: float = 3e-3) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.layers = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, 10)
        )
        self.right = MulticlassAccuracy(num_classes=10)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        return self.layers(pictures)

    def training_step(self, batch: list[torch.Tensor], position: int) -> torch.Tensor:
        loss = F.cross_entropy(self(batch[0]), batch[1])
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch: list[torch.Tensor], position: int) -> None:
        self.right(self(batch[0]), batch[1])
        self.log("right", self.right)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--accelerator", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--picture", type=Path, help="where to draw digits with what is read")
    options = parser.parse_args()
    lightning.seed_everything(0, verbose=False)

    digits = load_digits()
    whole = TensorDataset(torch.tensor(digits.images, dtype=torch.float32) / 16, torch.tensor(digits.target))
    learned, others = torch.utils.data.random_split(whole, [1500, 297])
    with tempfile.TemporaryDirectory() as folder:
        kept = ModelCheckpoint(folder, monitor="right", mode="max")
        trainer = lightning.Trainer(
            max_epochs=options.epochs,
            accelerator=options.accelerator,
            devices=1,
            callbacks=[kept, EarlyStopping("right", mode="max", patience=5)],
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(Reader(), DataLoader(learned, batch_size=64, shuffle=True), DataLoader(others, batch_size=297))
        best = Reader.load_from_checkpoint(kept.best_model_path, map_location="cpu").eval()
    pictures, labels = (torch.stack(each) for each in zip(*others))
    with torch.no_grad():
        read = best(pictures).argmax(-1)
    right = (read == labels).float().mean().item()
    print(f"the best of {trainer.current_epoch} epochs reads {right:.1%} of {len(others)} other digits")
    if options.picture:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 4), layout="constrained")
        order = (read == labels).long().argsort()  # the mistakes first
        for axes, i in zip(figure.subplots(4, 6).flat, order.tolist()):
            axes.imshow(pictures[i].numpy(), cmap="gray_r")
            axes.set_title(f"{read[i]}", fontsize=9, color="k" if read[i] == labels[i] else "r")
            axes.set(xticks=(), yticks=())
        figure.savefig(options.picture, dpi=150)


if __name__ == "__main__":
    main()
