"""Small tensors for calls that are repeated, and their results as lists."""

from __future__ import annotations

from typing import Any

import tritensor as torch
from tritensor.tensors import Tensor


def tensor(*numbers: float, dtype: Any = torch.float32, device: str = "cuda", needs: bool = False) -> Tensor:
    return torch.tensor(numbers, dtype=dtype, device=device, requires_grad=needs)


def results(*tensors: Any) -> list[Any]:
    return [x.tolist() for x in tensors]
