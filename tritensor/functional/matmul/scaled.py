"""Products of float8 matrices, whose scales are multiplied in."""

from __future__ import annotations

from ...errors import ShapeError, UnsupportedError, explain
from ...ground.arguments import check_tensor
from ...ground.public import public
from ...kernels.matmul.scaled import scaled
from ...tensors import Tensor
from ...types import dtypes

_RECIPES = (
    "Invalid scaling configuration.\n"
    "- For TensorWise scaling, a and b should be float8, scales should be float and singletons.\n"
    "- For RowWise scaling, a and b should be float8, scales should be float, scale_a should be ({rows}, 1) and scale_b "
    "should be (1, {cols}), and both should be contiguous."
)


@public(functional=False)
def _scaled_mm(
    input: Tensor,
    mat2: Tensor,
    scale_a: Tensor,
    scale_b: Tensor,
    bias: Tensor | None = None,
    scale_result: Tensor | None = None,
    out_dtype: dtypes.dtype | None = None,
    use_fast_accum: bool = False,
) -> Tensor:
    """Multiplies float8 matrices, and their float32 scales: scale_a * scale_b * (input @ mat2) + bias.

    There is one scale for each matrix, or one for each row of `input` and each column of `mat2`. Sums are in float32; on
    a Hopper GPU `use_fast_accum` leaves all of them to the tensor cores, which keep fewer bits.

    >>> import tritensor as torch
    >>> x = torch.eye(2).to(torch.float8_e4m3fn)
    >>> torch._scaled_mm(x, x, torch.tensor(2.0), torch.tensor(4.0), out_dtype=torch.bfloat16)
    tensor([[8., 0.],
            [0., 8.]], dtype=tritensor.bfloat16)

    Args:
        out_dtype: of the result; that of `input` unless given.

    Raises:
        ShapeError: they are no matrices that can be multiplied, or the bias is no row of the result.
        ValueError: another dtype, or scales of another dtype or shape. UnsupportedError: a `scale_result`.
    """
    for position, (name, value) in enumerate(zip(("input", "mat2", "scale_a", "scale_b"), (input, mat2, scale_a, scale_b))):
        check_tensor("_scaled_mm", name, position + 1, value)
    for name, value in (("mat1", input), ("mat2", mat2)):
        if value.ndim != 2:
            raise ShapeError(f"{name} must be a matrix", f"it has {value.ndim} dimensions")
    (rows, depth), (most, cols) = input.shape, mat2.shape
    if depth != most:
        raise ShapeError(f"mat_a and mat_b shapes cannot be multiplied ({rows}x{depth} and {most}x{cols})")
    by_line = tuple(scale_a.shape) == (rows, 1) and tuple(scale_b.shape) == (1, cols)
    fits = scale_a.numel() == scale_b.numel() == 1 or (by_line and scale_a.is_contiguous() and scale_b.is_contiguous())
    single = scale_a.dtype is scale_b.dtype is dtypes.float32
    if not (fits and single and {input.dtype, mat2.dtype} <= dtypes.FLOAT8):
        raise ValueError(explain(_RECIPES.format(rows=rows, cols=cols)))
    if bias is not None and bias.numel() != cols:
        raise ShapeError(f"Bias must be size {cols} but got {bias.numel()}")
    if scale_result is not None:
        raise UnsupportedError("_scaled_mm: scale_result is not supported", remedy="divide scale_a by it")
    kind = input.dtype if out_dtype is None else out_dtype
    bias = None if bias is None else bias.reshape(-1)
    return scaled(input, mat2, scale_a, scale_b, bias, out_dtype=kind, fast=use_fast_accum)
