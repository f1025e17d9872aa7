"""lightning: a module that a trainer fits on the CPU, with callbacks, a logger, and a run resumed from a checkpoint."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Regression(lightning.LightningModule):
    def __init__(self, width: int = 16, rate: float = 1e-2) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)

    def training_step(self, batch: Any, position: int) -> torch.Tensor:
        loss = torch.nn.functional.mse_loss(self(batch[0]), batch[1])
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch: Any, position: int) -> None:
        self.log("valid_loss", torch.nn.functional.mse_loss(self(batch[0]), batch[1]))

    def test_step(self, batch: Any, position: int) -> None:
        self.log("test_loss", torch.nn.functional.mse_loss(self(batch[0]), batch[1]))

    def predict_step(self, batch: Any, position: int) -> torch.Tensor:
        return self(batch[0])

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.rate)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)]


class Points(lightning.LightningDataModule):
    def setup(self, stage: str | None = None) -> None:
        rng = np.random.default_rng(0)
        x = torch.from_numpy(rng.standard_normal((64, 8), dtype=np.float32))
        self.train, self.valid = TensorDataset(x[:48], x[:48, :1].sin()), TensorDataset(x[48:], x[48:, :1].sin())

    def train_dataloader(self) -> DataLoader:
        return DataLoader(self.train, batch_size=16)

    def val_dataloader(self) -> DataLoader:
        return DataLoader(self.valid, batch_size=16)

    test_dataloader = predict_dataloader = val_dataloader


def trainer(folder: str, **options: Any) -> lightning.Trainer:
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "log_every_n_steps": 1}
    usual = {"accelerator": "cpu", "max_epochs": 2, "enable_checkpointing": False, "default_root_dir": folder}
    return lightning.Trainer(**{**quiet, **usual, **options})


def case_fit(carry: Any) -> None:
    model = carry.module("model", Regression())
    with tempfile.TemporaryDirectory() as folder:
        runs = trainer(folder, gradient_clip_val=1.0)
        runs.fit(model, datamodule=Points())
        carry.check("metrics", dict(runs.callback_metrics))
        carry.check("steps", runs.global_step)
        carry.check("test", runs.test(model, datamodule=Points(), verbose=False))
        carry.check("predictions", torch.cat(runs.predict(model, datamodule=Points())))
    carry.check("weights", dict(model.named_parameters()))


def case_compiled(carry: Any) -> None:
    model = carry.module("model", Regression())
    with tempfile.TemporaryDirectory() as folder:
        runs = trainer(folder, gradient_clip_val=1.0)
        runs.fit(carry.compiled(model), datamodule=Points())
        carry.check("metrics", dict(runs.callback_metrics))
    carry.check("weights", dict(model.named_parameters()))


def case_callbacks(carry: Any) -> None:
    class Remembers(Callback):
        def __init__(self) -> None:
            self.events: list[str] = []

        def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
            self.events.append(f"epoch {trainer.current_epoch}")

        def on_fit_end(self, trainer: Any, module: Any) -> None:
            self.events.append("end")

    model = carry.module("model", Regression())
    with tempfile.TemporaryDirectory() as folder:
        best = ModelCheckpoint(folder, monitor="valid_loss", save_top_k=1, filename="{epoch}-{step}", save_last=True)
        stops, remembers = EarlyStopping("valid_loss", min_delta=10.0, patience=1), Remembers()
        runs = trainer(folder, max_epochs=6, enable_checkpointing=True, callbacks=[best, stops, remembers])
        runs.fit(model, datamodule=Points())
        carry.check("events", remembers.events)
        carry.check("stopped", stops.stopped_epoch)
        carry.check("files", sorted(path.name for path in Path(folder).glob("*.ckpt")))
        carry.check("score", best.best_model_score)
        loaded = Regression.load_from_checkpoint(best.best_model_path)
        carry.check("width", loaded.hparams.width)
        carry.check("loaded", dict(loaded.named_parameters()))


def case_logger(carry: Any) -> None:
    model = carry.module("model", Regression())
    with tempfile.TemporaryDirectory() as folder:
        runs = trainer(folder, logger=CSVLogger(folder, name="runs", version=0))
        runs.fit(model, datamodule=Points())
        lines = (Path(folder) / "runs" / "version_0" / "metrics.csv").read_text().splitlines()
        carry.check("columns", lines[0])
        carry.check("rows", len(lines))
        carry.check("written", sorted(path.name for path in (Path(folder) / "runs" / "version_0").iterdir()))


def case_resume(carry: Any) -> None:
    model = carry.module("model", Regression())
    with tempfile.TemporaryDirectory() as folder:
        runs = trainer(folder, max_epochs=1)
        runs.fit(model, datamodule=Points())
        runs.save_checkpoint(f"{folder}/first.ckpt")
        again, second = Regression(), trainer(folder, max_epochs=3)
        second.fit(again, datamodule=Points(), ckpt_path=f"{folder}/first.ckpt")
        carry.check("steps", second.global_step)
        carry.check("weights", dict(again.named_parameters()))
        carry.check("rate", second.optimizers[0].param_groups[0]["lr"])


def case_manual(carry: Any) -> None:
    class Manual(Regression):
        def __init__(self) -> None:
            super().__init__()
            self.automatic_optimization = False

        def training_step(self, batch: Any, position: int) -> None:
            optimizer = self.optimizers()
            loss = torch.nn.functional.mse_loss(self(batch[0]), batch[1])
            optimizer.zero_grad()
            self.manual_backward(loss)
            self.clip_gradients(optimizer, gradient_clip_val=0.5, gradient_clip_algorithm="norm")
            optimizer.step()
            self.log("train_loss", loss, on_epoch=True, on_step=False)

    model = carry.module("model", Manual())
    with tempfile.TemporaryDirectory() as folder:
        runs = trainer(folder)
        runs.fit(model, datamodule=Points())
        carry.check("metrics", dict(runs.callback_metrics))
    carry.check("weights", dict(model.named_parameters()))


def case_fabric(carry: Any) -> None:
    points = Points()
    points.setup()
    fabric = lightning.Fabric(accelerator="cpu", devices=1, precision="32-true")
    plain = carry.module("model", torch.nn.Linear(8, 1))
    model, optimizer = fabric.setup(plain, torch.optim.SGD(plain.parameters(), lr=0.1))
    for x, y in fabric.setup_dataloaders(points.train_dataloader()):
        optimizer.zero_grad()
        fabric.backward(torch.nn.functional.mse_loss(model(x), y))
        optimizer.step()
    with tempfile.TemporaryDirectory() as folder:
        fabric.save(f"{folder}/state.ckpt", {"model": model, "optimizer": optimizer, "step": 3})
        state = {"model": model, "step": 0}
        fabric.load(f"{folder}/state.ckpt", state, strict=False)
        carry.check("step", state["step"])
    carry.check("weights", dict(plain.named_parameters()))
