"""Settings of CUDA devices, by `torch.backends.cuda`'s names: how float32 matrices are multiplied."""

from __future__ import annotations

from typing import Any

from ..kernels.matmul import precision

__all__ = ["MatmulSwitches", "matmul"]


class MatmulSwitches:
    """How float32 matrices are multiplied; the same setting as `set_float32_matmul_precision`'s.

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
        """Whether products of float32 have the 11 significant bits of tf32."""
        return precision.get_product() == "tf32"

    @property
    def fp32_precision(self) -> str:
        """How a product of float32 is computed.

        "ieee": multiplications of float32, on the ordinary cores. "tf32x3", the default: three products of tf32
        numbers on the tensor cores, with float32's accuracy. "tf32": one of these. "none" sets the default.
        """
        return precision.get_product()

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a switch.

        Raises:
            AttributeError: there is no such switch. RuntimeError: not a value of the switch.
        """
        if name == "allow_tf32":
            if not isinstance(value, bool):
                raise RuntimeError(f"set_allow_tf32_cublas expects a bool, but got {type(value).__name__}")
            precision.set_product("tf32" if value else "none")
        elif name == "fp32_precision":
            precision.set_product(value)
        else:
            raise AttributeError(f"Unknown attribute {name}")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Unknown attribute {name}")


matmul = MatmulSwitches()
