"""Tensors of given values on a device, and the dtypes and numbers that the tests of this folder go through."""

from __future__ import annotations

import math

import tritensor as torch

F = torch.nn.functional
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
nan, inf = math.nan, math.inf


def of(values, place, dtype=None):
    return torch.tensor(values, dtype=dtype, device=place)
