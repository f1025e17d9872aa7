"""einops on tensors: with this module imported, `einops.rearrange` and the others take a tensor as they are.

    import einops
    import tritensor.backends.einops
    images = einops.rearrange(tritensor.zeros(8, 28, 28, 3), "n h w c -> n c h w")

A program that `python -m tritensor run` runs needs no such import: there einops finds a tensor to be PyTorch's, and its
layers (`einops.layers.torch`) are modules of `nn`. So does not `einops.array_api` either.
"""

from __future__ import annotations

import sys

from einops._backends import TorchBackend

from ..tensors import Tensor

__all__: list[str] = []


class TensorBackend(TorchBackend):
    """einops' backend for PyTorch with tritensor in its place; einops finds it among the subclasses of its own."""

    framework_name = "tritensor"

    def __init__(self) -> None:
        self.torch = sys.modules[Tensor.__module__]
