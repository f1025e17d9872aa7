"""The Tensor: its history, how Python reads it, how it is printed, shown by notebooks and drawn.

Other rooms import the names below from here. The folder is not called `tensor`, because that is a function of the
package: `tritensor.tensor`.
"""

from __future__ import annotations

from .tensor import Tensor, blank, is_tensor, tensors_in, wrap

__all__ = ["Tensor", "blank", "is_tensor", "tensors_in", "wrap"]
