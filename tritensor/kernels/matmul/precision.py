"""The precision of float32 matrix products on CUDA devices: PyTorch's settings and their effect.

"tf32x3" splits each number into two of tf32 (11 significant bits each) and adds up three products of these on the
tensor cores: about 22 of float32's 24 bits for each product, summed in float32. The error of a whole matrix is that of
float32 summation, which is the larger part, so it is used for "highest". Large products on Hopper are six of bfloat16
instead, which are more exact (`parts.py`).
"""

from __future__ import annotations

from ... import settings
from ...errors import explain, warn
from ...ground.public import public

# Triton's input precision for each of PyTorch's. "medium" allows bfloat16, but converting to it would cost more than it
# saves, so it is tf32, as in PyTorch on CUDA devices.
_PRODUCTS = {"highest": "tf32x3", "high": "tf32", "medium": "tf32"}
_precision = "highest"
_product = "tf32x3"
# The first compute capability with tf32.
_FIRST = (8, 0)


@public()
def get_float32_matmul_precision() -> str:
    """The precision of float32 matrix products on CUDA devices; see `set_float32_matmul_precision`."""
    return _precision


@public()
def set_float32_matmul_precision(precision: str) -> None:
    """Choose how exactly float32 matrices are multiplied on CUDA devices.

    Args:
        precision: "highest" with float32's accuracy, by three products of tf32 numbers on the tensor cores (the
            default); "high" and "medium" in tf32, with 11 significant bits. Any other word is warned about and changes
            nothing, as in PyTorch. For float32 multiplication as IEEE 754 has it, infinitely large and tiny numbers
            included, set `tritensor.backends.cuda.matmul.fp32_precision = "ieee"`.

    Raises:
        RuntimeError: the precision is no str.
    """
    global _precision
    if not isinstance(precision, str):
        raise RuntimeError(f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}")
    if precision not in _PRODUCTS:
        warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current "
            "setFloat32MatmulPrecision call has no effect.",
        )
        return
    set_product(_PRODUCTS[precision])
    _precision = precision


def get_product() -> str:
    """ "ieee", "tf32x3" or "tf32": what float32 products are made of where the device has all three."""
    return _product


def set_product(product: str) -> None:
    """Choose "ieee", "tf32x3" or "tf32"; "none" is the default, "tf32x3".

    Raises:
        RuntimeError: it is another word.
    """
    global _precision, _product
    known = {"none": "tf32x3", "ieee": "ieee", "tf32x3": "tf32x3", "tf32": "tf32"}
    if product not in known:
        raise RuntimeError(
            explain(f"Unknown precision: {product}", remedy="use 'ieee', 'tf32x3', 'tf32' or 'none' (tf32x3)")
        )
    _product = known[product]
    _precision = "high" if _product == "tf32" else "highest"
    settings.changed()


def product_for(capability: tuple[int, int]) -> str:
    """What float32 products are made of on a device of this compute capability.

    >>> product_for((9, 0)), product_for((7, 5))
    ('tf32x3', 'ieee')
    """
    return _product if capability >= _FIRST else "ieee"
