"""The nuclear norm of matrices, the sum of their singular values; on the CPU, where NumPy decomposes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes, layout
from ..autograd.mode import recording
from ..autograd.tape import Gradient, Node, record
from ..errors import AutogradError, DeviceError, DtypeError, LinAlgError, ShapeError, explain
from ..tensor import Tensor, wrap

__all__ = ["check_norm_dtype", "nuclear_norm"]


def check_norm_dtype(name: str, input: Tensor, dtype: dtypes.dtype | None) -> None:
    """Raise unless a norm takes the tensor, and `dtype` to compute in.

    Raises:
        DtypeError: integers, or a dtype that is no wider floating (for complex tensors, complex) dtype.
    """
    if input.dtype.category < dtypes.FLOATING:
        raise DtypeError(
            explain(
                f"{name}: Expected a floating point or complex tensor as input. Got {input.dtype.legacy}",
                remedy="convert the tensor first, as in x.float()",
            )
        )
    if dtype is None:
        return
    words = f"{name}: dtype should be floating point or complex, but got {dtype.legacy}"
    if dtype.category >= dtypes.FLOATING:
        if dtype.is_complex == input.is_complex():
            if dtypes.promote_types(input.dtype, dtype) is dtype:
                return
            words = (
                f"{name}: the dtype of the input ({input.dtype.legacy}) should be convertible without narrowing to the "
                f"specified dtype ({dtype.legacy})"
            )
        else:
            kind = "complex" if input.is_complex() else "real"
            words = f"{name}: dtype should be {kind} for {kind} inputs, but got {dtype.legacy}"
    raise DtypeError(explain(words, remedy="convert the tensor or the result with .to(dtype)"))


def nuclear_norm(input: Tensor, dim: Any, keepdim: bool, dtype: dtypes.dtype | None) -> Tensor:
    """The sums of the singular values of the matrices along two dimensions."""
    name = "linalg.matrix_norm"
    check_norm_dtype(name, input, dtype)
    if input.dtype.itemsize == 2:
        raise DtypeError(
            explain(
                f"{name}: Low precision dtypes not supported. Got {input.dtype.legacy}",
                remedy="convert the tensor with .float()",
            )
        )
    if input.ndim < 2:
        raise ShapeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    dims = range(input.ndim) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    if len(dims) != 2:
        raise ShapeError(
            explain(
                f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, dims))}", f"the tensor has shape {input.shape}"
            )
        )
    first, second = [layout.normalize_dim(each, input.ndim) for each in dims]
    if first == second:
        raise ShapeError(f"{name}: dims must be different. Got ({dims[0]}, {dims[1]})")
    if input.is_cuda:
        raise DeviceError(
            explain(
                f"norm(p='nuc') is on the CPU only, got a tensor on {input.device}",
                "there is no kernel that decomposes matrices",
                remedy="x.cpu().norm(p='nuc').to(x.device), which gradients pass through",
            )
        )
    total = _sum_of_singular_values(input.to(dtype or input.dtype).movedim((first, second), (-2, -1)))
    if not keepdim:
        return total
    return total.reshape([1 if each in (first, second) else size for each, size in enumerate(input.shape)])


def _decomposed(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    try:
        return np.linalg.svd(a, full_matrices=False)
    except np.linalg.LinAlgError:
        words = "linalg.svd: The algorithm failed to converge"
        if not np.isfinite(a).all():
            words += " because the input matrix contained non-finite values."
        raise LinAlgError(explain(words, f"the matrices have shape {a.shape}")) from None


def _sum_of_singular_values(a: Tensor) -> Tensor:
    u, s, vh = _decomposed(a._host_array())
    result = wrap(np.asarray(s.sum(-1)))
    if recording.enabled and a._needs:
        saved = (a, wrap(u @ vh))
        result._node = record(_NormBackward(), (a._edge(),), saved, tuple([each._version for each in saved]))
        result._needs = True
    return result


def _polar(a: Tensor) -> Tensor:
    """The product of the singular vectors, U @ V^H, which is the gradient of the nuclear norm."""
    u, _, vh = _decomposed(a._host_array())
    result = wrap(u @ vh)
    if recording.enabled and a._needs:
        result._node = record(_PolarBackward(), (a._edge(),), (a,), (a._version,))
        result._needs = True
    return result


class _NormBackward(Gradient):
    name = "NuclearNormBackward0"

    def run(self, node: Node, gradient: Any) -> tuple[Any, ...]:
        """The gradient along U @ V^H."""
        a, factor = node.saved
        if recording.enabled:  # to be differentiated again
            factor = _polar(a)
        return (gradient.unsqueeze(-1).unsqueeze(-1) * factor,)


class _PolarBackward(Gradient):
    name = "PolarBackward0"

    def run(self, node: Node, gradient: Any) -> tuple[Any, ...]:
        """The derivative of U @ V^H: a rotation within the singular vectors, and of them out of their spaces."""
        if recording.enabled:
            raise AutogradError(
                explain(
                    "the nuclear norm is differentiable twice only",
                    remedy="leave out create_graph=True the second time",
                )
            )
        (a,) = node.saved
        g = gradient._host_array()
        u, s, vh = _decomposed(a._host_array())
        uh, v = u.conj().mT, vh.conj().mT
        inner = uh @ g @ v
        with np.errstate(all="ignore"):
            turn = (inner - inner.conj().mT) / (s[..., None, :] + s[..., :, None])
            left = (g @ v - u @ inner) / s[..., None, :]
            right = (uh @ g - inner @ vh) / s[..., :, None]
        return (wrap((u @ turn + left) @ vh + u @ right),)
