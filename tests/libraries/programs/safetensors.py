"""safetensors: tensors and modules written to a file and read again, whole or in parts."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import torch

KINDS = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")


def values() -> dict[str, torch.Tensor]:
    rows = torch.from_numpy(np.random.default_rng(0).standard_normal((4, 6), dtype=np.float32) * 20)
    return {kind: rows.to(getattr(torch, kind)) if kind != "uint8" else rows.abs().to(torch.uint8) for kind in KINDS}


def network() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 3))


class Tied(torch.nn.Module):
    """An embedding whose weight is also the last layer's."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(10, 4)
        self.head = torch.nn.Linear(4, 10, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.table(ids))


def case_file(carry: Any) -> None:
    wanted = values()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "values.safetensors"
        safetensors.torch.save_file(wanted, path, metadata={"format": "pt"})
        found = safetensors.torch.load_file(path)
        carry.check("bytes", np.frombuffer(path.read_bytes(), np.uint8))
    carry.check("kinds", {name: str(found[name].dtype).split(".")[-1] for name in KINDS})
    carry.check("values", {name: found[name] for name in KINDS})
    carry.check("equal", [torch.equal(wanted[name], found[name]) for name in KINDS])


def case_bytes(carry: Any) -> None:
    data = safetensors.torch.save({"a": values()["bfloat16"], "empty": torch.zeros(0, 3), "one": torch.tensor(2.5)})
    found = safetensors.torch.load(data)
    carry.check("values", {name: found[name] for name in ("a", "empty", "one")})
    carry.check("length", len(data))


def case_parts(carry: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "values.safetensors"
        safetensors.torch.save_file(values(), path, metadata={"made": "here"})
        with safetensors.safe_open(path, framework="pt", device="cpu") as file:
            carry.check("names", sorted(file.keys()))
            carry.check("metadata", file.metadata())
            rows = file.get_slice("float32")
            carry.check("shape", rows.get_shape())
            carry.check("kind", rows.get_dtype())
            carry.check("part", rows[1:3, 2:])
            carry.check("column", rows[:, 1])
            carry.check("whole", file.get_tensor("float64"))


def case_module(carry: Any) -> None:
    model = carry.module("model", network())
    x = values()["float32"]
    model(x)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.safetensors")
        safetensors.torch.save_model(model, path)
        again = network()
        missing, unexpected = safetensors.torch.load_model(again, path)
        other = network()
        other.load_state_dict(safetensors.torch.load_file(path))
    carry.check("missing", [sorted(missing), sorted(unexpected)])
    carry.check("out", again.eval()(x))
    carry.check("other", other.eval()(x))


def case_tied_weights(carry: Any) -> None:
    model = carry.module("model", Tied())
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.safetensors")
        safetensors.torch.save_model(model, path)
        again = Tied()
        safetensors.torch.load_model(again, path)
        carry.check("names", sorted(safetensors.torch.load_file(path)))
        try:
            safetensors.torch.save_file(model.state_dict(), path)
            refused = False
        except RuntimeError as error:
            refused = "share memory" in str(error)
    carry.check("refused", refused)
    carry.check("out", again(torch.arange(6)))


def case_numpy(carry: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "values.safetensors")
        safetensors.torch.save_file({"a": values()["float32"].T.contiguous()}, path)
        with safetensors.safe_open(path, framework="np") as file:
            carry.check("array", file.get_tensor("a"))
