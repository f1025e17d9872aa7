"""Lightning's small model, trained and tested on two devices by the strategy that is asked for."""

from __future__ import annotations

import argparse
import warnings

import lightning
import torch
from lightning.pytorch.demos.boring_classes import BoringModel
from lightning.pytorch.strategies import ModelParallelStrategy
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

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


class Sharded(Logged):
    """The model behind a layer, both divided over the strategy's mesh, by FSDP2 and tensor parallelism."""

    def configure_model(self) -> None:
        """Divide it."""
        if isinstance(self.layer, torch.nn.Sequential):
            return
        self.layer = torch.nn.Sequential(torch.nn.Linear(32, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        if self.device_mesh["tensor_parallel"].size() > 1:
            plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
            parallelize_module(self.layer, self.device_mesh["tensor_parallel"], plan)
        if self.device_mesh["data_parallel"].size() > 1:
            fully_shard(self.layer, mesh=self.device_mesh["data_parallel"])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """An optimizer with a state."""
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


def strategy_of(name: str) -> object:
    """A strategy's name, or for `model_parallel_D_T` the strategy of D x T devices."""
    if name.startswith("model_parallel"):
        data, tensor = map(int, name.split("_")[2:])
        return ModelParallelStrategy(data, tensor, save_distributed_checkpoint=False)
    return name


def main() -> None:
    """Fit and test, and with `--again` fit on from the checkpoint."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--strategy", default="ddp")
    parser.add_argument("--accelerator", default="cpu")
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--unsaved", action="store_true", help="no checkpoints")
    parser.add_argument("--untested", action="store_true")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    lightning.seed_everything(3, verbose=False)

    def trainer_for(epochs: int) -> lightning.Trainer:
        return lightning.Trainer(
            accelerator=options.accelerator,
            devices=options.devices,
            strategy=strategy_of(options.strategy),
            max_epochs=epochs,
            limit_train_batches=6,
            limit_val_batches=2,
            limit_test_batches=4,
            num_sanity_val_steps=0,
            logger=False,
            enable_checkpointing=not options.unsaved,
            enable_progress_bar=False,
            enable_model_summary=False,
        )

    kind = Sharded if options.strategy.startswith("model_parallel") else Logged
    trainer, model = trainer_for(2), kind()
    trainer.fit(model)
    if trainer.is_global_zero:
        saved = trainer.checkpoint_callback and trainer.checkpoint_callback.best_model_path != ""
        print(f"fit {trainer.callback_metrics['loss']:.5f} {saved}")
    if options.again:
        again = trainer_for(3)
        again.fit(kind(), ckpt_path=trainer.checkpoint_callback.best_model_path)
        if again.is_global_zero:
            print(f"again {again.callback_metrics['loss']:.5f}")
    found = [] if options.untested else trainer.test(model, verbose=False)
    if found and trainer.is_global_zero:
        print(f"test {found[0]['gathered']:.5f}", flush=True)


if __name__ == "__main__":
    main()
