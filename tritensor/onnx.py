"""`torch.onnx`: the calls that models make while they run. There is no export."""

from __future__ import annotations

__all__ = ["is_in_onnx_export"]


def is_in_onnx_export() -> bool:
    """False: there is no export."""
    return False
