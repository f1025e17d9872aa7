"""Matrix products: `matmul` in all ranks, its named special cases, `linear` and `einsum`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autograd.gradients import called, unmoved
from ...autograd.levels import followed
from ...errors import ArgumentError, DtypeError, RangeError, ShapeError
from ...ground.arguments import check_tensor, number_of, older_order
from ...ground.public import method, public, publish
from ...host.scalars import converted
from ...kernels.matmul import precision as _precision  # noqa: F401 - its functions are public
from ...kernels.matmul.family import linear as linear_operator
from ...kernels.matmul.family import quick_linear, quick_matmul
from ...operators import registry
from ...operators.outputs import SAME, Into, into, takes_out
from ...tensors import Tensor
from ...types import layout
from ...types.dtypes import INTEGER


@public(method=True, guard=False)
def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The matrix product of vectors, matrices, or stacks of matrices; batch dimensions broadcast.

    >>> import tritensor as torch
    >>> torch.matmul(torch.ones(5, 1, 2, 3), torch.ones(4, 3, 6)).shape
    tritensor.Size([5, 4, 2, 6])
    >>> torch.tensor([[1.0, 2.0], [3.0, 4.0]]) @ torch.tensor([1.0, 1.0])
    tensor([3., 7.])

    Raises:
        ShapeError: the common dimension differs (`mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)`).
        DtypeError: the dtypes differ (`expected m1 and m2 to have the same dtype`), or are boolean.
    """
    if out is not None:
        return into(matmul, SAME, out, (input, other), {})
    check_tensor("matmul", "input", 1, input)
    check_tensor("matmul", "other", 2, other)
    return quick_matmul(input, other)


@public(method=True, guard=False)
def mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The matrix product of two matrices.

    Raises:
        ShapeError: an operand is not a matrix; otherwise as `matmul`.
    """
    if out is not None:
        return into(mm, SAME, out, (input, mat2), {})
    check_tensor("mm", "input", 1, input)
    check_tensor("mm", "mat2", 2, mat2)
    if input.ndim != 2 or mat2.ndim != 2:
        raise ShapeError("self must be a matrix" if input.ndim != 2 else "mat2 must be a matrix")
    return quick_matmul(input, mat2)


for _name in ("dsmm", "spmm"):  # older names
    publish(_name, mm, functional=False)


@public(method=True, guard=False)
def bmm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The batched matrix product of two stacks of matrices of the same length, of shapes (b, n, m) and (b, m, p).

    Raises:
        ShapeError: an operand does not have three dimensions, or the lengths differ; otherwise as `matmul`.
    """
    if out is not None:
        return into(bmm, SAME, out, (input, mat2), {})
    check_tensor("bmm", "input", 1, input)
    check_tensor("bmm", "mat2", 2, mat2)
    if input.ndim != 3 or mat2.ndim != 3:
        raise ShapeError(f"batch{1 if input.ndim != 3 else 2} must be a 3D tensor")
    batch, _, common = input._data.shape
    if mat2._data.shape[:2] != (batch, common):
        raise ShapeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{batch}, {common}] but got: "
            f"{list(mat2._data.shape[:2])}."
        )
    return called("BmmBackward0", quick_matmul(input, mat2))


@public(method=True, out=takes_out(), autocast={"cpu": "apart", "cuda": "lower"})
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The matrix-vector product."""
    check_tensor("mv", "vec", 2, vec)
    if input.ndim == 0:
        raise RangeError("Dimension specified as 0 but tensor has no dimensions")
    if input.ndim != 2 or vec.ndim != 1:
        raise ShapeError(f"vector + matrix @ vector expected, got 1, {input.ndim}, {vec.ndim}")
    return called("MvBackward0", quick_matmul(input, vec))


@public(method=True, out=takes_out(), autocast={"cpu": "apart", "cuda": "widest"})
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The dot product: the sum of the products of two vectors' elements.

    >>> import tritensor as torch
    >>> torch.dot(torch.tensor([2.0, 3.0]), torch.tensor([2.0, 1.0]))
    tensor(7.)
    """
    check_tensor("dot", "tensor", 2, tensor)
    if input.ndim != 1 or tensor.ndim != 1:
        raise ShapeError(f"1D tensors expected, but got {input.ndim}D and {tensor.ndim}D tensors")
    if input.dtype is not tensor.dtype:
        found = f"{input.dtype.legacy} and {tensor.dtype.legacy}"
        raise DtypeError(f"dot : expected both vectors to have same dtype, but found {found}")
    return called("DotBackward0", quick_matmul(input, tensor))


@public(method=True, out=takes_out())
def inner(input: Tensor, other: Tensor) -> Tensor:
    """The inner product: the sum of products over the last dimension of both; of vectors, their dot product."""
    check_tensor("inner", "other", 2, other)
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    shape = (*input._data.shape[:-1], *other._data.shape[:-1])
    if input._data.shape[-1] != other._data.shape[-1]:
        raise ShapeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(input.shape)} and "
            f"{list(other.shape)}"
        )
    if not shape:
        return dot(input, other)
    return (_as_matrix(input) @ _as_matrix(other).mT).reshape(shape)


def _as_matrix(x: Tensor) -> Tensor:
    """All dimensions but the last merged into one."""
    return x.unsqueeze(0) if x.ndim == 1 else x.flatten(0, -2)


@public("ger", method=True, out=takes_out(Into("cast")))
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """The outer product: the products of each element of one vector with each of another."""
    for name, value in (("self", input), ("vec2", vec2)):
        if value.ndim != 1:
            raise ShapeError(f"outer: Expected 1-D argument {name}, but got {value.ndim}-D")
    return input.unsqueeze(1) * vec2


@public(method=True, out=takes_out(Into("same", "partly")), autocast={"cpu": "lower", "cuda": "lower"})
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *older: Any, beta: complex = 1, alpha: complex = 1) -> Tensor:
    """Adds a matrix product: beta * input + alpha * (mat1 @ mat2), where `input` broadcasts to the product's shape."""
    if older:
        values, factors = older_order("addmm", {"beta": beta, "alpha": alpha}, input, mat1, mat2, *older)
        return addmm.plain(*values, **factors)  # type: ignore[attr-defined]
    beta, alpha = number_of("addmm", "beta", beta), number_of("addmm", "alpha", alpha)
    check_tensor("addmm", "mat1", 2, mat1)
    check_tensor("addmm", "mat2", 3, mat2)
    for name, value in (("mat1", mat1), ("mat2", mat2)):
        if value.ndim != 2:
            raise ShapeError(f"{name} must be a matrix, got {value.ndim}-D tensor")
    if mat1.dtype.category <= INTEGER:
        beta, alpha = (converted(factor, mat1.dtype) for factor in (beta, alpha))
    if alpha == 1 and beta == 1 and mat1._data.shape[1] == mat2._data.shape[0]:
        return linear(mat1, mat2.mT, input)
    product = quick_matmul(mat1, mat2)
    layout.broadcast_strides(tuple(input.shape), (0,) * input.ndim, tuple(product.shape))
    return without(input, product * alpha) if beta == 0 else product * alpha + input * beta


def without(input: Tensor, product: Tensor) -> Tensor:
    """A product to which `input` is not added, as its factor is 0: the gradient by that is 0, and is there."""
    return product + unmoved("", product.new_zeros(()), input) if followed(input) else product


@public(package=False, out=takes_out())
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, activation: str | None = None) -> Tensor:
    """Applies a linear transformation: `input @ weight.T + bias`, for an input (..., in) and a weight (out, in).

    Args:
        activation: the name of an operator of one input, such as "relu", "gelu" or "silu", to apply to the result. On a
            CUDA device it runs inside the product's kernel, unless a gradient is needed.

    >>> import tritensor as torch
    >>> from tritensor.functional import linear
    >>> linear(torch.ones(5, 3), torch.ones(2, 3), torch.tensor([0.0, 1.0]))[0]
    tensor([3., 4.])

    Raises:
        ShapeError: `mat1 and mat2 shapes cannot be multiplied (2x3 and 2x4)`, or a bias that does not broadcast.
        DtypeError: the dtypes differ.
    """
    check_tensor("linear", "input", 1, input)
    check_tensor("linear", "weight", 2, weight)
    if activation is not None:
        return _linear_with_activation(input, weight, bias, activation)
    if weight.ndim == 1 and bias is None:
        return matmul(input, weight)
    return quick_linear(input, weight, bias)


def _linear_with_activation(input: Tensor, weight: Tensor, bias: Tensor | None, activation: str) -> Tensor:
    operator = fused_activation("linear", activation)
    if followed(input, weight, bias):
        return operator(linear(input, weight, bias))
    return linear_operator(input, weight, bias, activation=activation)


def fused_activation(call: str, activation: str) -> Callable[..., Tensor]:
    """The operator that is named as the activation of a call.

    Raises:
        ArgumentError: it names no elementwise operator of one input.
    """
    operator = registry.get(activation)
    fits = operator is not None and operator.family == "elementwise" and len(operator.inputs) == 1
    if operator is None or not fits or operator.metadata:
        raise ArgumentError(
            f"{call}(): activation must name an operator of one input, got {activation!r}",
            remedy='"relu", "gelu", "gelu_tanh", "silu", "sigmoid" and "tanh" are some',
        )
    return operator


@method("__matmul__")
def _matmul_method(self: Tensor, other: Tensor | complex) -> Tensor:
    return quick_matmul(self, other) if isinstance(other, Tensor) else NotImplemented


@method("__rmatmul__")
def _rmatmul_method(self: Tensor, other: Tensor | complex) -> Tensor:
    return quick_matmul(other, self) if isinstance(other, Tensor) else NotImplemented
