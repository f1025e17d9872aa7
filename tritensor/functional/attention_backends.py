"""Which of PyTorch's ways to compute attention are enabled, by their names in `torch.backends.cuda`.

Here there are two: by blocks, which stands for PyTorch's fused ways, and "math", of other operators.
"""

from __future__ import annotations

from ..errors import DeviceError, explain

__all__ = ["ENABLED", "is_fused"]

ENABLED = dict.fromkeys(("cudnn", "flash", "mem_efficient", "math", "overrideable"), True)


def is_fused(on_device: bool, fits: bool, differentiates_mask: bool) -> bool:
    """Whether attention is computed by blocks.

    Args:
        fits: the kernels take its sizes. differentiates_mask: of which the gradient is not computed by blocks.

    Raises:
        DeviceError: nothing that is enabled can compute it.
    """
    fused = any(ENABLED[name] for name in (("flash", "mem_efficient", "cudnn") if on_device else ("flash",)))
    if ENABLED["math"]:
        return fused and fits
    remedy = "enable math as well, with sdpa_kernel([SDPBackend.MATH, ...])"
    if not fused:
        fact = "No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both "
        raise DeviceError(explain(fact + "the math kernel and the fused kernels.", remedy=remedy))
    if not fits or differentiates_mask:
        why = "a mask that requires a gradient" if differentiates_mask else "keys or values wider than 256"
        raise DeviceError(explain("No available kernel. Aborting execution.", f"not by blocks: {why}", remedy=remedy))
    return True
