"""pytorch-lightning: the trainer under its older name, with a checkpoint and early stopping."""

from __future__ import annotations

import logging
import tempfile
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)


class Classifier(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
        self.outputs: list[torch.Tensor] = []

    def training_step(self, batch: Any, position: int) -> torch.Tensor:
        loss = torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: Any, position: int) -> None:
        scores = self.net(batch[0])
        self.outputs.append((scores.argmax(-1) == batch[1]).float())
        self.log("valid_loss", torch.nn.functional.cross_entropy(scores, batch[1]))

    def on_validation_epoch_end(self) -> None:
        self.log("valid_accuracy", torch.cat(self.outputs).mean())
        self.outputs.clear()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


def loader() -> DataLoader:
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((48, 8), dtype=np.float32))
    return DataLoader(TensorDataset(x, x[:, :3].argmax(-1)), batch_size=16)


def trainer(folder: str, **options: Any) -> pl.Trainer:
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    return pl.Trainer(accelerator="cpu", default_root_dir=folder, **{"max_epochs": 2, **quiet, **options})


def case_fit(carry: Any) -> None:
    model = carry.module("model", Classifier())
    with tempfile.TemporaryDirectory() as folder:
        runs = trainer(folder, enable_checkpointing=False, accumulate_grad_batches=2)
        runs.fit(model, loader(), loader())
        carry.check("metrics", dict(runs.callback_metrics))
    carry.check("weights", dict(model.named_parameters()))


def case_callbacks(carry: Any) -> None:
    model = carry.module("model", Classifier())
    with tempfile.TemporaryDirectory() as folder:
        best = ModelCheckpoint(folder, monitor="valid_accuracy", mode="max")
        runs = trainer(folder, max_epochs=4, callbacks=[best, EarlyStopping("valid_loss", min_delta=10.0, patience=2)])
        runs.fit(model, loader(), loader())
        carry.check("epochs", runs.current_epoch)
        saved = torch.load(best.best_model_path, weights_only=False)
        carry.check("weights", saved["state_dict"])
        carry.check("step", saved["global_step"])


def case_resume(carry: Any) -> None:
    model = carry.module("model", Classifier())
    with tempfile.TemporaryDirectory() as folder:
        runs = trainer(folder, max_epochs=1, enable_checkpointing=False)
        runs.fit(model, loader(), loader())
        runs.save_checkpoint(f"{folder}/first.ckpt")
        again = Classifier()
        trainer(folder, enable_checkpointing=False).fit(again, loader(), loader(), ckpt_path=f"{folder}/first.ckpt")
        carry.check("weights", dict(again.named_parameters()))
        carry.check("valid", trainer(folder).validate(again, loader(), verbose=False))
