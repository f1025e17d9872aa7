"""Settings of CUDA devices, by `torch.backends.cuda`'s names: how float32 matrices are multiplied, and in which of
PyTorch's ways attention may be computed (`nn.attention`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..functional.attention.attention import ENABLED
from ..kernels.matmul import precision

__all__ = ["MatmulSwitches", "cudnn_sdp_enabled", "enable_cudnn_sdp", "enable_flash_sdp", "enable_math_sdp"]
__all__ += ["enable_mem_efficient_sdp", "flash_sdp_enabled", "math_sdp_enabled", "matmul", "mem_efficient_sdp_enabled"]


class MatmulSwitches:
    """The precision of float32 matrix products, that of `set_float32_matmul_precision`.

    >>> import tritensor
    >>> switches = tritensor.backends.cuda.matmul
    >>> switches.fp32_precision, switches.allow_tf32
    ('tf32x3', False)
    >>> switches.allow_tf32 = True
    >>> switches.fp32_precision, tritensor.get_float32_matmul_precision()
    ('tf32', 'high')
    >>> switches.fp32_precision = "none"
    """

    @property
    def allow_tf32(self) -> bool:
        """True if products of float32 have the 11 significant bits of tf32."""
        return precision.get_product() == "tf32"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError(f"set_allow_tf32_cublas expects a bool, but got {type(value).__name__}")
        precision.set_product("tf32" if value else "none")

    @property
    def fp32_precision(self) -> str:
        """The way to compute a product of float32.

        "ieee": multiplications of float32, on the ordinary cores. "tf32x3", the default: three products of tf32
        numbers on the tensor cores, with float32's accuracy. "tf32": one of these. "none" sets the default.
        """
        return precision.get_product()

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        precision.set_product(value)

    def __setattr__(self, name: str, value: object) -> None:
        """Set a switch.

        Raises:
            AttributeError: there is no such switch. RuntimeError: not a value of the switch.
        """
        if not hasattr(type(self), name):
            raise AttributeError(f"Unknown attribute {name}")
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Unknown attribute {name}")


matmul = MatmulSwitches()


def _switch(name: str) -> tuple[Callable[[bool], None], Callable[[], bool]]:
    """The function that allows a way to compute attention, on every device, and the one that says whether it is."""
    of = "of other operators" if name == "math" else "by blocks of scores, as any of the ways but math"

    def enable(enabled: bool) -> None:
        if not isinstance(enabled, bool):
            raise RuntimeError(f"set_sdp_use_{name} expects a bool, but got {type(enabled).__name__}")
        ENABLED[name] = enabled

    def is_enabled() -> bool:
        return ENABLED[name]

    enable.__name__ = enable.__qualname__ = f"enable_{name}_sdp"
    enable.__doc__ = f"Allow, or forbid, that attention is computed {of}.\n\nRaises:\n    RuntimeError: no bool."
    is_enabled.__name__ = is_enabled.__qualname__ = f"{name}_sdp_enabled"
    is_enabled.__doc__ = f"True if attention may be computed {of}."
    return enable, is_enabled


enable_flash_sdp, flash_sdp_enabled = _switch("flash")
enable_mem_efficient_sdp, mem_efficient_sdp_enabled = _switch("mem_efficient")
enable_math_sdp, math_sdp_enabled = _switch("math")
enable_cudnn_sdp, cudnn_sdp_enabled = _switch("cudnn")
