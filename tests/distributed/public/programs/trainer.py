"""A small model trained by transformers' Trainer, as a program for torchrun."""

from __future__ import annotations

import sys

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Parity(Dataset):
    """Sentences of eight numbers, and whether the first is odd."""

    def __init__(self, size: int) -> None:
        generator = torch.Generator().manual_seed(size)
        self.rows = torch.randint(0, 50, (size, 8), generator=generator)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        row = self.rows[index]
        return {"input_ids": row, "attention_mask": torch.ones_like(row), "labels": row[0] % 2}


def sharded() -> dict[str, object]:
    """The Trainer's options of FSDP, whose version follows `--fsdp`, if it is given."""
    if "--fsdp" not in sys.argv:
        return {}
    version = int(sys.argv[sys.argv.index("--fsdp") + 1])
    config = {"version": version, "transformer_layer_cls_to_wrap": ["BertLayer"]}
    return {"fsdp": "full_shard auto_wrap", "fsdp_config": config}


def main() -> None:
    """Train, evaluate and save."""
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    arguments = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=8,
        num_train_epochs=2,
        learning_rate=1e-2,
        lr_scheduler_type="linear",
        max_grad_norm=1.0,
        logging_steps=2,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu="--use_cpu" in sys.argv,
        **sharded(),
    )
    trainer = Trainer(
        BertForSequenceClassification(config), arguments, train_dataset=Parity(64), eval_dataset=Parity(32)
    )
    done = trainer.train()
    found = trainer.evaluate()
    if trainer.is_world_process_zero():
        print(f"train_loss {done.training_loss:.5f}\neval_loss {found['eval_loss']:.5f}", flush=True)
    if "--unsaved" not in sys.argv:
        trainer.save_model("out")
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
