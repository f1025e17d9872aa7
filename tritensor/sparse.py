"""`torch.sparse`: products and sums of sparse tensors, which `tritensor.sparse_coo_tensor` makes."""

from __future__ import annotations

from .functional import addmm, mm, sum

__all__ = ["addmm", "mm", "sum"]
