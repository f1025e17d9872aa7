"""Tensors that take gradients."""

from __future__ import annotations

import tritensor as torch


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)
