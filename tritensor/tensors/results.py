"""The results of functions that return several tensors: named tuples that print as PyTorch's `return_types` do.

All names of this module are names of `tritensor.return_types`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .tensor import Tensor


class MaxResult(NamedTuple):
    """The result of `max` along a dimension.

    >>> import tritensor as torch
    >>> torch.tensor([[1, 2], [4, 3]]).max(0)
    torch.return_types.max(
    values=tensor([4, 3]),
    indices=tensor([1, 1]))
    """

    values: Tensor
    indices: Tensor


MinResult = NamedTuple("MinResult", [("values", "Tensor"), ("indices", "Tensor")])
SortResult = NamedTuple("SortResult", [("values", "Tensor"), ("indices", "Tensor")])
TopkResult = NamedTuple("TopkResult", [("values", "Tensor"), ("indices", "Tensor")])
CummaxResult = NamedTuple("CummaxResult", [("values", "Tensor"), ("indices", "Tensor")])
CumminResult = NamedTuple("CumminResult", [("values", "Tensor"), ("indices", "Tensor")])
MedianResult = NamedTuple("MedianResult", [("values", "Tensor"), ("indices", "Tensor")])
NanmedianResult = NamedTuple("NanmedianResult", [("values", "Tensor"), ("indices", "Tensor")])
KthvalueResult = NamedTuple("KthvalueResult", [("values", "Tensor"), ("indices", "Tensor")])
ModeResult = NamedTuple("ModeResult", [("values", "Tensor"), ("indices", "Tensor")])
AminmaxResult = NamedTuple("AminmaxResult", [("min", "Tensor"), ("max", "Tensor")])
FrexpResult = NamedTuple("FrexpResult", [("mantissa", "Tensor"), ("exponent", "Tensor")])
HistogramResult = NamedTuple("HistogramResult", [("hist", "Tensor"), ("bin_edges", "Tensor")])
HistogramddResult = NamedTuple("HistogramddResult", [("hist", "Tensor"), ("bin_edges", "tuple[Tensor, ...]")])
linalg_cholesky_ex = NamedTuple("linalg_cholesky_ex", [("L", "Tensor"), ("info", "Tensor")])
linalg_qr = NamedTuple("linalg_qr", [("Q", "Tensor"), ("R", "Tensor")])
linalg_svd = NamedTuple("linalg_svd", [("U", "Tensor"), ("S", "Tensor"), ("Vh", "Tensor")])
linalg_eig = NamedTuple("linalg_eig", [("eigenvalues", "Tensor"), ("eigenvectors", "Tensor")])
linalg_eigh = NamedTuple("linalg_eigh", [("eigenvalues", "Tensor"), ("eigenvectors", "Tensor")])
linalg_lu = NamedTuple("linalg_lu", [("P", "Tensor"), ("L", "Tensor"), ("U", "Tensor")])
linalg_lu_factor = NamedTuple("linalg_lu_factor", [("LU", "Tensor"), ("pivots", "Tensor")])
linalg_lu_factor_ex = NamedTuple("linalg_lu_factor_ex", [("LU", "Tensor"), ("pivots", "Tensor"), ("info", "Tensor")])
linalg_ldl_factor = NamedTuple("linalg_ldl_factor", [("LD", "Tensor"), ("pivots", "Tensor")])
linalg_ldl_factor_ex = NamedTuple("linalg_ldl_factor_ex", [("LD", "Tensor"), ("pivots", "Tensor"), ("info", "Tensor")])
geqrf = NamedTuple("geqrf", [("a", "Tensor"), ("tau", "Tensor")])
lu_unpack = NamedTuple("lu_unpack", [("P", "Tensor"), ("L", "Tensor"), ("U", "Tensor")])
qr = NamedTuple("qr", [("Q", "Tensor"), ("R", "Tensor")])
svd = NamedTuple("svd", [("U", "Tensor"), ("S", "Tensor"), ("V", "Tensor")])
linalg_inv_ex = NamedTuple("linalg_inv_ex", [("inverse", "Tensor"), ("info", "Tensor")])
linalg_solve_ex = NamedTuple("linalg_solve_ex", [("result", "Tensor"), ("info", "Tensor")])
linalg_slogdet = NamedTuple("linalg_slogdet", [("sign", "Tensor"), ("logabsdet", "Tensor")])
slogdet = NamedTuple("slogdet", [("sign", "Tensor"), ("logabsdet", "Tensor")])
linalg_lstsq = NamedTuple(
    "linalg_lstsq", [("solution", "Tensor"), ("residuals", "Tensor"), ("rank", "Tensor"), ("singular_values", "Tensor")]
)
triangular_solve = NamedTuple("triangular_solve", [("solution", "Tensor"), ("cloned_coefficient", "Tensor")])


def _shown(result: Any) -> str:
    fields = ",\n".join(f"{name}={value!r}" for name, value in zip(result._fields, result, strict=True))
    return f"torch.return_types.{type(result).__name__}(\n{fields})"


# PyTorch's names, which hide builtins: for `isinstance(x, torch.return_types.max)`, for printing and for pickles.
for _kind in [kind for kind in globals().values() if hasattr(kind, "_fields")]:
    if _kind.__name__.endswith("Result"):
        _kind.__name__ = _kind.__qualname__ = _kind.__name__.removesuffix("Result").lower()
        globals()[_kind.__name__] = _kind
    if _kind is not MaxResult:
        _kind.__doc__ = f"The result of `{_kind.__name__.replace('linalg_', 'linalg.')}`."
    _kind.__module__ = f"{__name__.partition('.')[0]}.return_types"  # where PyTorch has it, and a pickle looks for it
    _kind.__repr__ = _shown
