"""torchinfo: the summary of a model as text and numbers."""

from __future__ import annotations

from typing import Any

import torch
import torchinfo


class Tagger(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(20, 8)
        self.lstm = torch.nn.LSTM(8, 6, batch_first=True)
        self.out = torch.nn.Linear(6, 3)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.out(self.lstm(self.embedding(tokens))[0])


def convolutions() -> torch.nn.Module:
    first = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
    return torch.nn.Sequential(first, torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(8 * 64, 10))


def case_convolutions(carry: Any) -> None:
    columns = ("input_size", "output_size", "num_params", "kernel_size", "mult_adds", "trainable")
    found = torchinfo.summary(convolutions(), input_size=(2, 3, 16, 16), verbose=0, col_names=columns, device="cpu")
    carry.check("text", str(found))


def case_recurrent(carry: Any) -> None:
    tokens = torch.zeros(2, 5, dtype=torch.long)
    found = torchinfo.summary(Tagger(), input_data=tokens, verbose=0, depth=2, row_settings=("var_names", "depth"))
    carry.check("text", str(found))
    carry.check("numbers", [found.total_params, found.trainable_params, found.total_mult_adds, found.total_input])


def case_parameters_only(carry: Any) -> None:
    model = convolutions()
    model[0].requires_grad_(False)
    carry.check("text", str(torchinfo.summary(model, verbose=0)))


def case_transformer(carry: Any) -> None:
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).train()
    carry.check("text", str(torchinfo.summary(model, (2, 5, 16), verbose=0, depth=3, mode="train", device="cpu")))
