"""Lightning's small model, trained and tested on two devices by the strategy that is asked for."""

from __future__ import annotations

import argparse
import warnings

import lightning
import torch
from lightning.pytorch.demos.boring_classes import BoringModel

warnings.simplefilter("ignore")


class Logged(BoringModel):
    """The model with losses that are averaged over the processes, and a sum of all of them."""

    def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        """The loss, logged."""
        loss = super().training_step(batch, batch_idx)["loss"]
        self.log("loss", loss, sync_dist=True, on_epoch=True, on_step=False)
        return loss

    def test_step(self, batch: torch.Tensor, batch_idx: int) -> None:
        """The sum of outputs of all processes, logged."""
        gathered = self.all_gather(self(batch).sum())
        self.log("gathered", gathered.sum(), sync_dist=True)


def main() -> None:
    """Fit and test."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--strategy", default="ddp")
    parser.add_argument("--accelerator", default="cpu")
    options = parser.parse_args()
    lightning.seed_everything(3, verbose=False)
    trainer = lightning.Trainer(
        accelerator=options.accelerator,
        devices=2,
        strategy=options.strategy,
        max_epochs=2,
        limit_train_batches=6,
        limit_val_batches=2,
        limit_test_batches=4,
        num_sanity_val_steps=0,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Logged()
    trainer.fit(model)
    if trainer.is_global_zero:
        print(f"fit {trainer.callback_metrics['loss']:.5f} {trainer.checkpoint_callback.best_model_path != ''}")
    found = trainer.test(model, verbose=False)
    if trainer.is_global_zero:
        print(f"test {found[0]['gathered']:.5f}", flush=True)


if __name__ == "__main__":
    main()
