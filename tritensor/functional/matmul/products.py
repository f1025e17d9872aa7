"""Composed products: addmv, addr, baddbmm, vdot, tensordot, kron, trace, cross and chain_matmul."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ...autograd.gradients import called
from ...errors import ArgumentError, DtypeError, RangeError, ShapeError, UnsupportedError, warn
from ...ground.arguments import check_tensor, number_of, older_order
from ...ground.public import method, public
from ...host.scalars import converted
from ...operators.inplace import in_place_form
from ...operators.outputs import ELEMENTWISE, SAME, Into, into, takes_out
from ...tensors import Tensor
from ...types import dtypes, layout
from ..elementwise.pointwise import add
from ..views.joining import stack
from ..views.view_operators import _unsafe_view, standing_alone
from .linear_algebra import addmm, bmm, dot, mv, outer, without

_ADDED = takes_out(Into("same", "partly"))


def _check(name: str, **tensors: Any) -> None:
    for position, (argument, value) in enumerate(tensors.items(), 1):
        check_tensor(name, argument, position, value)


def _sum(name: str, input: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """beta * input + alpha * product, where a beta of 0 ignores the input, NaN included."""
    if product.dtype.category <= dtypes.INTEGER:
        beta, alpha = converted(beta, product.dtype), converted(alpha, product.dtype)
    layout.broadcast_strides(tuple(input.shape), (0,) * input.ndim, tuple(product.shape))
    made = product if alpha == 1 else product * alpha
    made = without(input, made) if beta == 0 else add(made, input, alpha=beta)
    return called(f"{name.title()}Backward0", made)


def _older(function: Any, beta: Any, alpha: Any, *values: Any) -> Tensor:
    """A call in PyTorch's older order of arguments."""
    values, factors = older_order(function.__name__, {"beta": beta, "alpha": alpha}, *values)
    return function.plain(*values, **factors)


def _same_dtype(input: Tensor, product: Tensor) -> None:
    if input.dtype is not product.dtype:
        found = f"{input.dtype.legacy} and {product.dtype.legacy}"
        raise DtypeError(f"self and mat2 must have the same dtype, but got {found}")


def _fitted(shape: Callable[[Tensor, Tensor], tuple[int, ...]]) -> Callable[..., Any]:
    """Makes an in-place form whose tensor must have the product's shape."""

    def made(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        plain = in_place_form(function)

        def call(self: Tensor, first: Any, second: Any, *older: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
            if older:
                given = {"beta": beta, "alpha": alpha}
                (_, first, second), factors = older_order(function.__name__, given, self, first, second, *older)
                return call(self, first, second, **factors)
            if isinstance(first, Tensor) and isinstance(second, Tensor) and first.ndim and second.ndim:
                wanted = shape(first, second)
                if self._data.shape != wanted:
                    words = f"Bad in-place call: input tensor size {list(self.shape)} and output tensor size "
                    raise ShapeError(f"{words}{list(wanted)} should match")
            return plain(self, first, second, beta=beta, alpha=alpha)

        call.__name__, call.__doc__ = plain.__name__, plain.__doc__
        call.__wrapped__ = function  # type: ignore[attr-defined]  # its signature is the function's
        return call

    return made


method("addmm_")(_fitted(lambda a, b: (a._data.shape[0], b._data.shape[-1]))(addmm.plain))  # type: ignore[attr-defined]


@public(
    method=True,
    in_place=_fitted(lambda mat, vec: mat._data.shape[:1]),
    in_place_function=True,
    out=_ADDED,
    autocast={"cpu": "apart", "cuda": "lower"},
)
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *older: Any, beta: complex = 1, alpha: complex = 1) -> Tensor:
    """Adds a matrix-vector product: beta * input + alpha * (mat @ vec); a beta of 0 ignores the input.

    >>> import tritensor as torch
    >>> torch.addmv(torch.ones(2), torch.ones(2, 3), torch.ones(3))
    tensor([4., 4.])

    Raises:
        ShapeError: shapes that do not fit together. DtypeError: different dtypes.
    """
    if older:
        return _older(addmv, beta, alpha, input, mat, vec, *older)
    beta, alpha = number_of("addmv", "beta", beta), number_of("addmv", "alpha", alpha)
    _check("addmv", input=input, mat=mat, vec=vec)
    if mat.ndim != 2 or vec.ndim != 1 or input.ndim > 1:
        raise ShapeError(f"vector + matrix @ vector expected, got {input.ndim}, {mat.ndim}, {vec.ndim}")
    if mat._data.shape[1] != len(vec) or input.numel() not in (1, len(mat)):
        rows, columns = mat.shape
        size = input.numel()
        raise ShapeError(f"size mismatch, got input ({size}), mat ({rows}x{columns}), vec ({len(vec)})")
    kinds = [each.dtype.legacy for each in (input, mat, vec)]
    if len({*kinds}) > 1:
        found = f"{kinds[0]}, {kinds[1]}, and {kinds[2]}"
        raise DtypeError(f"addmv input tensors must have the same dtype, but got {found}")
    return _sum("addmv", input, mv(mat, vec), beta, alpha)


@public(method=True, in_place=in_place_form, out=takes_out(ELEMENTWISE), autocast={"cpu": "apart", "cuda": "lower"})
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *older: Any, beta: complex = 1, alpha: complex = 1) -> Tensor:
    """Adds an outer product: beta * input + alpha * outer(vec1, vec2); beta 0 ignores the input. Dtypes are promoted.

    Raises:
        ShapeError: no vectors, or an input that does not broadcast. DtypeError: as for `add`.
    """
    if older:
        return _older(addr, beta, alpha, input, vec1, vec2, *older)
    beta, alpha = number_of("addr", "beta", beta), number_of("addr", "alpha", alpha)
    _check("addr", input=input, vec1=vec1, vec2=vec2)
    for name, value in (("vec1", vec1), ("vec2", vec2)):
        if value.ndim != 1:
            raise ShapeError(f"addr: Expected 1-D argument {name}, but got {value.ndim}-D")
    product = outer(vec1, vec2)
    layout.broadcast_strides(tuple(input.shape), (0,) * input.ndim, tuple(product.shape))
    if beta == 0:
        kind = dtypes.common(input.dtype, product.dtype)
        zero = product.new_zeros((), dtype=kind)
        return called("AddrBackward0", without(input, add(zero, product, alpha=alpha)))
    return called("AddrBackward0", add(input if beta == 1 else input * beta, product, alpha=alpha))


@public(
    method=True,
    in_place=in_place_form,
    out=takes_out(Into("same", "partly", "")),
    autocast={"cpu": "lower", "cuda": "lower"},
)
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *older: Any, beta: complex = 1, alpha: complex = 1) -> Tensor:
    """Adds summed batched matrix products: beta * input + alpha * sum(batch1 @ batch2); beta 0 ignores the input.

    >>> import tritensor as torch
    >>> torch.addbmm(torch.ones(1, 1), torch.ones(5, 1, 3), torch.ones(5, 3, 1))
    tensor([[16.]])

    Raises:
        ShapeError: shapes that do not fit together. DtypeError: different dtypes.
    """
    if older:
        return _older(addbmm, beta, alpha, input, batch1, batch2, *older)
    beta, alpha = number_of("addbmm", "beta", beta), number_of("addbmm", "alpha", alpha)
    _check("addbmm", input=input, batch1=batch1, batch2=batch2)
    for position, each in enumerate((batch1, batch2), 1):
        if each.ndim != 3:
            raise ShapeError(f"batch{position} must be a 3D tensor")
    (count, rows, common), (other, inner, columns) = batch1.shape, batch2.shape
    if count != other:
        raise ShapeError(f"batch1 and batch2 must have same number of batches, got {count} and {other}")
    if common != inner:
        words = f"Incompatible matrix sizes for bmm ({rows}x{common} and {inner}x{columns})"
        raise ShapeError(words)
    layout.broadcast_strides(tuple(input.shape), (0,) * input.ndim, (rows, columns))
    _same_dtype(input, batch1 if batch1.dtype is not input.dtype else batch2)
    # one product of (rows, count * common) and (count * common, columns)
    wide = batch1.transpose(0, 1).reshape(rows, count * common)
    return _sum("addbmm", input, wide @ batch2.reshape(count * common, columns), beta, alpha)


@public(
    method=True,
    in_place=_fitted(lambda a, b: (*a._data.shape[:2], b._data.shape[-1])),
    out=_ADDED,
    autocast={"cpu": "lower", "cuda": "lower"},
)
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *older: Any, beta: complex = 1, alpha: Any = 1) -> Tensor:
    """Adds a batched matrix product: beta * input + alpha * bmm(batch1, batch2); a beta of 0 ignores the input.

    >>> import tritensor as torch
    >>> torch.baddbmm(torch.ones(1), torch.ones(2, 1, 3), torch.ones(2, 3, 1)).flatten()
    tensor([4., 4.])

    Raises:
        ShapeError, DtypeError: as for `bmm`; also for an input that does not broadcast, or is of another dtype.
    """
    if older:
        return _older(baddbmm, beta, alpha, input, batch1, batch2, *older)
    beta, alpha = number_of("baddbmm", "beta", beta), number_of("baddbmm", "alpha", alpha)
    _check("baddbmm", input=input, batch1=batch1, batch2=batch2)
    if batch1.ndim == batch2.ndim == 3:
        shape = (*batch1._data.shape[:2], batch2._data.shape[2])
        layout.broadcast_strides(tuple(input.shape), (0,) * input.ndim, shape)
        for other in (batch1, batch2):
            if input.dtype is not other.dtype:
                words = f"expected scalar type {input.dtype.legacy} but found {other.dtype.legacy}"
                raise DtypeError(words, remedy="bring them to one dtype with .to(dtype)")
    return _sum("baddbmm", input, bmm(batch1, batch2), beta, alpha)


@public(method=True, out=takes_out(), autocast={"cpu": "apart", "cuda": "widest"})
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The dot product of two vectors, the first one conjugated.

    >>> import tritensor as torch
    >>> torch.vdot(torch.tensor([1j]), torch.tensor([1j]))
    tensor(1.+0.j)
    """
    _check("vdot", input=input, other=other)
    return called("VdotBackward0", dot(input.conj(), other))


@public(out=takes_out(), autocast={"cuda": "widest"})
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, *, axes: Any = None) -> Tensor:
    """The tensor contraction of two tensors: the sum of products over several dimensions of both.

    >>> import tritensor as torch
    >>> torch.tensordot(torch.ones(2, 3, 4), torch.ones(4, 3, 5), ([1, 2], [1, 0])).shape
    tritensor.Size([2, 5])

    Args:
        dims: how many: the last of `a` with the first of `b`; or two lists, of the dimensions of `a` and of `b`.
        axes: `dims` by NumPy's name, which libraries use that call the `tensordot` of any array library.

    Raises:
        ShapeError: lists of different lengths, or dimensions of different sizes. RangeError: no such dimension.
        DtypeError: different dtypes.
    """
    check_tensor("tensordot", "a", 1, a)
    check_tensor("tensordot", "b", 2, b)
    dims = dims if axes is None else axes
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if not isinstance(dims, (tuple, list)):
        if dims < 0:
            raise ShapeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise ShapeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims = [*range(a.ndim - dims, a.ndim)], [*range(dims)]
    first, second = ([each] if isinstance(each, int) else list(each) for each in dims)
    if len(first) != len(second):
        raise ShapeError("both dimension lists should have same length", f"{first} and {second}")
    if a.dtype is not b.dtype:
        raise DtypeError("both inputs should have same dtype", f"they are {a.dtype} and {b.dtype}")
    first, second = _distinct(first, a.ndim), _distinct(second, b.ndim)
    for x, y in zip(first, second, strict=True):
        sizes = a._data.shape[x], b._data.shape[y]
        if sizes[0] != sizes[1] and 1 not in sizes:
            words = f"contracted dimensions need to match, but first has size {sizes[0]} in dim {x} and second has size"
            raise ShapeError(f"{words} {sizes[1]} in dim {y}")
        if sizes[0] != sizes[1]:  # one of them is 1 and broadcasts
            a, b = (a.sum(x, True), b) if sizes[1] == 1 else (a, b.sum(y, True))
    left, right = [d for d in range(a.ndim) if d not in first], [d for d in range(b.ndim) if d not in second]
    common = prod(a._data.shape[d] for d in first)
    shape = [a._data.shape[d] for d in left] + [b._data.shape[d] for d in right]
    rows, columns = prod(a._data.shape[d] for d in left), prod(b._data.shape[d] for d in right)
    if not shape:
        return dot(a.permute(first).reshape(-1), b.permute(second).reshape(-1))
    matrix = a.permute(left + first).reshape(rows, common)
    return (matrix @ b.permute(second + right).reshape(common, columns)).reshape(shape)


def _distinct(dims: Sequence[int], rank: int) -> list[int]:
    if dims and not rank:
        raise RangeError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    found = [layout.normalize_dim(dim, rank) for dim in dims]
    for dim in found:
        if found.count(dim) > 1:
            raise ShapeError(f"dim {dim} appears multiple times in the list of dims")
    return found


@public(method=True, out=takes_out(Into("cast")))
def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: each element of the input times the whole of the other tensor, in blocks.

    >>> import tritensor as torch
    >>> torch.kron(torch.tensor([1, 2]), torch.tensor([1, 1, 0]))
    tensor([1, 1, 0, 2, 2, 0])
    """
    _check("kron", input=input, other=other)
    rank = max(input.ndim, other.ndim)
    sizes = [(1,) * (rank - each.ndim) + tuple(each._data.shape) for each in (input, other)]
    x = input.reshape([size for extent in sizes[0] for size in (extent, 1)])
    y = other.reshape([size for extent in sizes[1] for size in (1, extent)])
    shape = tuple([m * n for m, n in zip(*sizes, strict=True)])
    return standing_alone(_unsafe_view((x * y).contiguous(), shape), "unsafe_view")


@public(method=True, autocast={"cpu": "float32"})
def trace(input: Tensor) -> Tensor:
    """The trace of a matrix: the sum of its diagonal.

    >>> import tritensor as torch
    >>> torch.trace(torch.tensor([[1, 2], [3, 4]]))
    tensor(5)

    Raises:
        ShapeError: no matrix.
    """
    check_tensor("trace", "input", 1, input)
    if input.ndim != 2:
        raise ShapeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    if input.dtype is dtypes.bool_:
        raise UnsupportedError("\"trace\" not implemented for 'Bool'", remedy="convert it with .to(dtype)")
    rows, columns = input.shape
    step = columns + 1
    return called("TraceBackward0", input.reshape(-1)[: min(rows, columns) * step : step].sum())


def chained(matrices: Sequence[Tensor]) -> Tensor:
    """The product of matrices, in the order that multiplies least: T. C. Hu and M. T. Shing's problem, in O(n^3)."""
    sizes = [each._data.shape[0] for each in matrices] + [matrices[-1]._data.shape[1]]
    best: dict[tuple[int, int], tuple[int, int]] = {(i, i): (0, i) for i in range(len(matrices))}
    for length in range(1, len(matrices)):
        for i in range(len(matrices) - length):
            j = i + length
            cuts = [
                (best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            ]
            best[i, j] = min(cuts)

    def of(i: int, j: int) -> Tensor:
        return matrices[i] if i == j else of(i, best[i, j][1]) @ of(best[i, j][1] + 1, j)

    return of(0, len(matrices) - 1)


@public(autocast={"cuda": "lower"})
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of several matrices, in the order of the fewest multiplications.

    Raises:
        ArgumentError: there are none. ShapeError: not all are matrices, or they do not fit together.
    """
    if out is not None:
        return into(chain_matmul, SAME, out, matrices, {})
    warn(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
        "instead, which accepts a list of two or more tensors rather than multiple parameters."
    )
    if not matrices:
        raise ShapeError("chain_matmul(): Expected one or more matrices")
    for position, each in enumerate(matrices):
        if not isinstance(each, Tensor):
            raise ArgumentError(f"expected Tensor as element {position} in argument 0, but got {type(each).__name__}")
        if each.ndim != 2:
            raise ShapeError(f"Tensor dimension is {each.ndim}, expected 2 instead.")
    if len(matrices) == 1:
        return matrices[0].clone()
    return chained(matrices)


def crossed(input: Tensor, other: Tensor, dim: int) -> Tensor:
    """The cross products of vectors of three elements along `dim`; other dimensions broadcast.

    Raises:
        ShapeError: other sizes, or different ranks. DtypeError: different dtypes. RangeError: no such dimension.
    """
    if input.ndim != other.ndim:
        raise ShapeError("linalg.cross: inputs must have the same number of dimensions.")
    if not input.ndim:
        raise RangeError(f"Dimension specified as {dim} but tensor has no dimensions")
    place = layout.normalize_dim(dim, input.ndim)
    sizes = input._data.shape[place], other._data.shape[place]
    if sizes != (3, 3):
        raise ShapeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {sizes[0]} and {sizes[1]}")
    layout.broadcast_shapes(input._data.shape, other._data.shape)
    if input.dtype is not other.dtype:
        raise DtypeError(f"expected scalar type {input.dtype.legacy} but found {other.dtype.legacy}")
    if input.dtype is dtypes.bool_:
        raise UnsupportedError("\"cross\" not implemented for 'Bool'", remedy="convert it with .to(dtype)")
    (a, b, c), (d, e, f) = input.unbind(place), other.unbind(place)
    return called("LinalgCrossBackward0", stack((b * f - c * e, c * d - a * f, a * e - b * d), place))


@public(method=True, out=takes_out(), autocast={"cuda": "widest"})
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product of vectors of three elements, along the first dimension of size 3 unless `dim` is given.

    >>> import tritensor as torch
    >>> torch.cross(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0]), dim=0)
    tensor([0, 0, 1])

    Raises:
        ShapeError: no dimension of size 3, or shapes that differ. DtypeError: different dtypes.
    """
    _check("cross", input=input, other=other)
    if dim is None:
        warn(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or "
            "simply use torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross "
            "in a future release."
        )
        if 3 not in input._data.shape:
            raise ShapeError("no dimension of size 3 in input")
        dim = input._data.shape.index(3)
    return crossed(input, other, dim)
