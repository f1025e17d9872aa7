"""Products of float8 matrices, whose scales are multiplied in."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from ...errors import ShapeError, UnsupportedError, explain
from ...ground.arguments import check_tensor
from ...ground.public import public, publish
from ...kernels.matmul.scaled import scaled
from ...operators.rules import is_half
from ...tensors import Tensor
from ...types import dtypes

_RECIPES = (
    "Invalid scaling configuration.\n"
    "- For TensorWise scaling, a and b should be float8, scales should be float and singletons.\n"
    "- For RowWise scaling, a and b should be float8, scales should be float, scale_a should be ({rows}, 1) and "
    "scale_b should be (1, {cols}), and both should be contiguous."
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
) -> Any:
    """Multiplies float8 matrices, and their float32 scales: scale_a * scale_b * (input @ mat2) + bias.

    There is one scale for each matrix, or one for each row of `input` and each column of `mat2`. Sums are in float32;
    on a Hopper GPU `use_fast_accum` leaves all of them to the tensor cores, which keep fewer bits.

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
    for position, value in enumerate((input, mat2, scale_a, scale_b)):
        check_tensor("_scaled_mm", ("input", "mat2", "scale_a", "scale_b")[position], position + 1, value)
    if input.ndim != 2 or mat2.ndim != 2:
        raise ShapeError(f"mat{1 + (input.ndim == 2)} must be a matrix")
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
    wanted = input.dtype if out_dtype is None else out_dtype
    kind = wanted if is_half(wanted) else dtypes.float32
    bias = None if bias is None else bias.reshape(-1)
    return scaled(input, mat2, scale_a, scale_b, bias, out_dtype=kind, fast=use_fast_accum).to(wanted)


_choices: Any = Enum  # whose members the checker does not look for
_KINDS = "TensorWise RowWise BlockWise1x16 BlockWise1x32 BlockWise1x128 BlockWise128x128"
ScalingType = _choices("ScalingType", _KINDS, module="tritensor.nn.functional")
SwizzleType = _choices("SwizzleType", "NO_SWIZZLE SWIZZLE_32_4_4", module="tritensor.nn.functional")
publish("ScalingType", ScalingType, package=False)
publish("SwizzleType", SwizzleType, package=False)


@public(package=False)
def scaled_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    scale_a: Tensor | list[Tensor],
    scale_recipe_a: Enum | list[Enum],
    scale_b: Tensor | list[Tensor],
    scale_recipe_b: Enum | list[Enum],
    swizzle_a: Enum | list[Enum] | None = None,
    swizzle_b: Enum | list[Enum] | None = None,
    bias: Tensor | None = None,
    output_dtype: dtypes.dtype | None = dtypes.bfloat16,
    contraction_dim: Sequence[int] = (),
    use_fast_accum: bool = False,
) -> Any:
    """The matrix product of scaled float8 matrices, as `torch._scaled_mm`; `ScalingType` says what scales are of.

    >>> import tritensor as torch
    >>> from tritensor.nn import functional as F
    >>> x, one, whole = torch.eye(2).to(torch.float8_e4m3fn), torch.tensor(1.0), F.ScalingType.TensorWise
    >>> F.scaled_mm(x, x, one, whole, one, whole)
    tensor([[1., 0.],
            [0., 1.]], dtype=tritensor.bfloat16)

    Raises:
        UnsupportedError: scales of blocks, a swizzle, or a `contraction_dim`. Others as of `torch._scaled_mm`.
    """
    found: list[Any] = [scale_a, scale_b, scale_recipe_a, scale_recipe_b, swizzle_a, swizzle_b]
    first, second, *recipe = [each[0] if isinstance(each, list) and len(each) == 1 else each for each in found]
    known = recipe[0] is recipe[1] and recipe[0] in (ScalingType.TensorWise, ScalingType.RowWise)
    if not known or not {*recipe[2:]} <= {None, SwizzleType.NO_SWIZZLE} or contraction_dim:
        raise UnsupportedError("scaled_mm: one scale for a matrix or for each row is supported", f"got {recipe}")
    return _scaled_mm(mat_a, mat_b, first, second, bias, None, output_dtype, use_fast_accum)
