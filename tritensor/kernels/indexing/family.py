"""The indexing family: reading from and writing to places given by an integer tensor.

Every operator here either reads or writes. *Reading* copies `x[place]` to each element of the result; *writing* copies
(or adds) each element of a value to its place in a copy of `x`. The operators differ in how places are given:

    index, index_put    `positions` of shape (k, *shape): coordinates along k dimensions of x, as in x[i, :, j]
    gather, scatter     `index` has x's rank: each element is a coordinate along one dimension

A position outside of its dimension raises `BoundsError` before anything is computed. On a CUDA device the host
waits for the smallest and the largest element of an index tensor whose bounds are not known (`kernels.bounds`); they
are read back once for each version of that tensor. While a graph is captured, positions are not checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...drivers.capture import capturing
from ...errors import BoundsError, DtypeError, ShapeError, UnsupportedError
from ...memory.array import DeviceArray
from ...memory.deferred import Deferred
from ...memory.lifted import Batched
from ...operators import Dtypes, Operator, Shapes, copy_into
from ...operators.determinism import determinism
from ...operators.lifting.batching import Batch, along_dim
from ...operators.rules import ANY
from ...runtime.call import Call
from ...tensors import Tensor, wrap
from ...types import devices, dtypes, layout
from ..bounds import beyond, bounds_of
from ..pairs import is_complex, movable, parts
from .reference import add_at, indexed_shape, mesh

if TYPE_CHECKING:
    from .kernel import Walk

ndarray = np.ndarray
_HALVES = (dtypes.float16, dtypes.bfloat16)
_INTEGERS = (dtypes.int64, dtypes.int32, dtypes.int16, dtypes.int8, dtypes.uint8)


class Indexing(Operator):
    """An operator whose second input gives places in the first; that input has an integer dtype."""

    family = "indexing"
    about = "Bounds are checked before anything is read or written; sums have a fixed order."

    def __init__(self, name: str, reference: Callable[..., Any], place: str) -> None:
        super().__init__(name, reference, ANY)
        self.kinds = {place: dtypes.int64}

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """The dtype of the first input; only sums are computed in another one."""
        kind = call.inputs[0].dtype
        for name, value in zip(self.inputs, call.inputs, strict=True):
            if name not in self.kinds and isinstance(value, Tensor) and value.dtype is not kind:
                raise DtypeError(
                    f"{self.name}(): {self.inputs[0]} has dtype {kind}, {name} {value.dtype}",
                    remedy="bring them to one dtype with .to(dtype)",
                )
        summed = call.metadata.get("accumulate", "reduce" in call.metadata) and kind in _HALVES
        return dtypes.float32 if summed else kind, (kind,)

    def walk(self, x: DeviceArray, where: DeviceArray, metadata: dict[str, Any]) -> Walk:
        """How the kernels find the places in `x` that `where` gives."""
        from .kernel import Walk

        if "dims" in metadata:
            return Walk.of_index(x, where, metadata["dims"])
        return Walk.of_gather(x, where, metadata["dim"])

    def launch(self, call: Call) -> None:
        """Read the places of `x`; or copy `x` and write to, or add to, the places of the copy."""
        if len(call.arrays) == 2:
            from .kernel import move

            x, where = call.arrays
            for out, source in movable(call.outs[0], x) if is_complex(x) else [(call.outs[0], x)]:
                move(self.walk(source, where, call.metadata), out, source, into=False)
            return
        if call.outs[0].size:
            copy_into(call.outs[0], call.arrays[0])
        self.write_places(call.outs[0], call.arrays[1], call.arrays[2], call.metadata)

    def write_places(self, out: DeviceArray, where: DeviceArray, value: object, metadata: dict[str, Any]) -> None:
        """Write `value` to the places that `where` gives in `out`, or fold it into them."""
        from .kernel import move
        from .segments import fold_at

        added = metadata.get("accumulate", True)
        if is_complex(out):
            pieces = zip(parts(out), parts(value), strict=True) if added else movable(out, value)
            for each, source in pieces:
                self.write_places(each, where, source, metadata)
            return
        walk = self.walk(out, where, metadata)
        if added:
            fold_at(walk, out, value, metadata.get("reduce", "sum"), metadata.get("include_self", True))
        elif determinism.mode and isinstance(value, DeviceArray):
            fold_at(walk, out, value, "last", False)
        else:
            move(walk, out, value, into=True)

    def cost(self, call: Call) -> tuple[int, int]:
        """Each place read once and written once, and the index."""
        moved = sum(array.nbytes for array in call.arrays[1:] if isinstance(array, (DeviceArray, ndarray)))
        return moved + 2 * call.outs[0].nbytes, 0


# ---- references ---------------------------------------------------------------------------------------------------


def _key(positions: np.ndarray, rank: int, dims: tuple[int, ...]) -> tuple[Any, ...]:
    """NumPy's index: the coordinates at `dims`, full slices elsewhere."""
    key: list[Any] = [slice(None)] * rank
    for dim, coordinates in zip(dims, positions, strict=True):
        key[dim] = coordinates
    return tuple(key)


def flat_places(index: np.ndarray, x: np.ndarray, dim: int) -> np.ndarray:
    """The places of `mesh` as flat indices of a row-major `x`: NumPy is many times faster with a single index."""
    steps = layout.contiguous_strides(x.shape)
    places = index * np.int64(steps[dim])
    for axis, extent in enumerate(index.shape):
        if axis != dim:
            places += (np.arange(extent) * steps[axis]).reshape((-1,) + (1,) * (index.ndim - axis - 1))
    return places


def _index(x, positions, *, dims: tuple[int, ...]):
    """x at the given coordinates along `dims`: x[positions[0], positions[1], ...]."""
    found = x[_key(positions, x.ndim, dims)]
    return found if positions.ndim > 1 else found.copy()  # by coordinates without dimensions NumPy gives a view


def _index_put(x, positions, value, *, dims: tuple[int, ...], accumulate: bool = False):
    """x with `value` at the given coordinates, or added there; of equal coordinates the last value is kept."""
    out = x.copy()
    key = _key(positions, x.ndim, dims)
    if accumulate:
        np.add.at(out, key, value)
    else:
        out[key] = value
    return out


def _gather(x, index, *, dim: int):
    """out[i, j] = x[index[i, j], j] for dim 0, and so on: an element of `x` for each of `index`."""
    if x.ndim == 0:
        return np.broadcast_to(x, index.shape).copy()
    if not index.size:  # of any rank
        return np.empty(index.shape, x.dtype)
    if x.flags.c_contiguous:
        # bounds were checked: "clip" never clips, and skips NumPy's check of each element
        return x.reshape(-1).take(flat_places(index, x, dim), mode="clip")
    return x[mesh(index, dim)]


def _scatter(x, index, value, *, dim: int, accumulate: bool = False):
    """x with out[index[i, j], j] = value[i, j] for dim 0, and so on, or with that added."""
    out = np.array(x, order="C", ndmin=1)
    if x.ndim == 0:
        index, dim = index.reshape(-1), 0
        value = np.reshape(value, -1) if isinstance(value, np.ndarray) else value
    places, flat = flat_places(index, out, dim).reshape(-1), out.reshape(-1)
    if isinstance(value, np.ndarray):
        value = np.broadcast_to(value, index.shape).reshape(-1)
    if accumulate:
        np.add.at(flat, places, value)
    else:
        flat[places] = value
    return out.reshape(x.shape)


class _Index(Indexing):
    """Places given by coordinates along some dimensions, with all elements of the others."""

    def prepare(self, call: Call) -> None:
        """Check the coordinates, and that the value broadcasts."""
        x, positions = call.inputs[0], call.inputs[1]
        shape, dims = x._data.shape, call.metadata["dims"]
        if not positions._recall("in bounds"):
            for row, dim in zip(positions.unbind(0), dims, strict=True):
                check_bounds(row, shape[dim], dim)
            mark_checked_range(positions)
        if len(call.inputs) == 3 and isinstance(call.inputs[2], Tensor):
            target = indexed_shape(shape, positions._data.shape[1:], dims)
            value = call.inputs[2]
            try:
                layout.broadcast_strides(value._data.shape, (0,) * value.ndim, target)
            except ShapeError:
                raise ShapeError(
                    f"shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to "
                    f"indexing result of shape {list(target)}"
                ) from None

    def on_host(self, call: Call) -> Callable[..., tuple[np.ndarray, ...]]:
        """The reference; sums of whole rows by `add_at`, with the same bits."""
        reference, dims = super().on_host(call), call.metadata["dims"]
        if not call.metadata.get("accumulate") or call.compute is not call.results[0]:
            return reference

        def run(*arrays: Any) -> tuple[np.ndarray, ...]:
            found = add_at(arrays[0], arrays[1], arrays[2], dims)
            return reference(*arrays) if found is None else (found,)

        return run

    def allocate(self, call: Call) -> Shapes:
        """The shape of the places, or that of `x`."""
        x, positions = call.arrays[0], call.arrays[1]
        shape = x.shape if len(call.arrays) == 3 else indexed_shape(x.shape, positions.shape[1:], call.metadata["dims"])
        return [(shape, call.results[0].numpy)]

    @staticmethod
    def batched(batch: Batch) -> tuple[Any, ...]:
        """The samples' number as one more coordinate, where their places differ."""
        dims, places = batch.metadata["dims"], batch.ranks[1] - 1
        x, positions, *value = batch.x
        together = tuple(dims) == tuple(range(dims[0], dims[0] + len(dims)))
        first = dims[0] if together else 0  # where the places' dimensions are
        if not batch.whole[1] and not value and together:
            return batch(x, positions, dims=tuple([dim + 1 for dim in dims]))
        if not batch.whole[0] and not value:
            (found,) = batch(x, positions.movedim(0, 1))
            return (found.movedim(first, 0),)
        positions = batch.all_of(1).movedim(0, 1)
        number = _numbers(positions, batch.size).reshape(1, batch.size, *(1,) * places).expand(1, *positions.shape[1:])
        positions = _cat(number, positions)
        dims = (0, *[dim + 1 for dim in dims])
        if not value:
            (found,) = batch(batch.all_of(0), positions, dims=dims)
            return (_moved(found, places, first),)
        (item,) = value
        if isinstance(item, Tensor):
            rest = [size for dim, size in enumerate(x.shape[batch.whole[0] :]) if dim + 1 not in dims]
            target = (*rest[:first], *positions.shape[2:], *rest[first:])
            if batch.whole[2]:
                item = item.reshape(batch.size, *(1,) * (len(target) - batch.ranks[2]), *item.shape[1:])
            item = _moved(item.expand(batch.size, *target), places, first, back=True)
        return batch(batch.all_of(0), positions, item, dims=dims)


def _numbers(like: Tensor, size: int) -> Any:
    return like.new_ones(size).cumsum(0) - 1


def _cat(first: Tensor, second: Tensor) -> Tensor:
    joined = first.new_empty((len(first) + len(second), *first.shape[1:]))
    joined[: len(first)].copy_(first)
    joined[len(first) :].copy_(second)
    return joined


def _moved(x: Tensor, count: int, to: int, back: bool = False) -> Tensor:
    """The `count` dimensions of places, right behind the batch, moved behind `to` others; or back from there."""
    here, there = tuple(range(1, 1 + count)), tuple(range(1 + to, 1 + to + count))
    return x.movedim(there, here) if back else x.movedim(here, there)


class Gather(Indexing):
    """Places given by a coordinate along one dimension."""

    batched = staticmethod(along_dim)

    def prepare(self, call: Call) -> None:
        """Check shapes and coordinates; negative ones are refused, as in PyTorch."""
        x, where = call.inputs[0], call.inputs[1]
        dim = layout.normalize_dim(call.metadata["dim"], x.ndim)
        shape, extents = x._data.shape or (1,), where._data.shape or (1,)
        if len(shape) != len(extents) and where._data.size:
            own = "input" if len(call.inputs) == 2 else "self"
            raise ShapeError(f"Index tensor must have the same number of dimensions as {own} tensor")
        if where._data.size:
            self._check_extents(shape, extents, call.inputs[2] if len(call.inputs) == 3 else None, dim)
        check_bounds(where, shape[dim], dim, 0)
        call.metadata["dim"] = dim

    def _check_extents(self, shape: tuple[int, ...], extents: tuple[int, ...], value: object, dim: int) -> None:
        fits = all(n <= m for axis, (n, m) in enumerate(zip(extents, shape, strict=True)) if axis != dim)
        if value is None and not fits:
            pairs = enumerate(zip(extents, shape, strict=True))
            wrong = next(axis for axis, (n, m) in pairs if axis != dim and n > m)
            raise ShapeError(
                f"Size does not match at dimension {wrong} expected index {list(extents)} to be no larger "
                f"than self {list(shape)} apart from dimension {dim}"
            )
        if not fits:
            raise ShapeError(
                f"Expected index {list(extents)} to be no larger than self {list(shape)} apart from dimension {dim}"
            )

    def allocate(self, call: Call) -> Shapes:
        """The shape of `index`, or that of `x`."""
        return [(call.arrays[0].shape if len(call.arrays) == 3 else call.arrays[1].shape, call.results[0].numpy)]


# ---- bounds -------------------------------------------------------------------------------------------------------


def check_bounds(
    where: Tensor,
    size: int,
    dim: int,
    least: int | None = None,
    message: str = "index {wrong} is out of bounds for dimension {dim} with size {size}",
    error: type[Exception] = BoundsError,
) -> None:
    """Raise unless each element of `where` is a position in a dimension of `size` elements.

    Args:
        least: the smallest position; None where negative ones count from the end.
        message: the first line of the error, with `{wrong}` for the element and `{place}` for its number.
        error: its class.

    Raises:
        BoundsError: an element is out of bounds. DtypeError: the dtype is not an integer dtype.
    """
    if where.dtype not in _INTEGERS:
        raise DtypeError(f"index tensors must be of an integer dtype, got {where.dtype}")
    if where._data.__class__ is Deferred:
        more = size, dim, least, message, error
        Deferred.rules.examine(where._data, lambda array: check_bounds(wrap(array), *more))
        return
    if where._data.__class__ is DeviceArray and capturing(where._data.buffer.driver, where.device.index) is not None:
        return  # the host cannot read it now; in simulation the kernel's addresses are checked at each replay
    least = -size if least is None else least
    low, high = (where._data.__class__ is DeviceArray and bounds_of(where)) or (least - 1, size)
    if low < least or high >= size:
        low, high = value_range(where)
    if high >= size or low < least:
        raise error(beyond(where, least, size - 1, message, dim=dim, size=size))


def value_range(where: Tensor) -> tuple[int, int]:
    """The smallest and the largest element; (0, -1) where there is none, and of meta tensors.

    For a CUDA tensor they are cached on it with its version, so that the backward pass does not read them again.
    """
    data = where._data
    while isinstance(data, Batched):  # all samples at once
        where, data = wrap(data.array), data.array
    if data.size == 0 or where.device is devices.meta:
        return 0, -1
    if data.__class__ is not DeviceArray:
        host = where._host_array()
        return int(host.min()), int(host.max())
    known: tuple[int, int] | None = where._recall("range")
    if known is None:
        from .kernel import device_range

        known = device_range(data)
        where._remember("range", known)
    return known


def mark_checked_range(positions: Tensor) -> None:
    """Mark coordinates as checked against the tensor that they index: they are not checked again until they change."""
    positions._remember("in bounds", True)


def put_into(x: Tensor, positions: Tensor, value: Tensor | float, dims: tuple[int, ...]) -> None:
    """`index_put` straight into the memory of `x`; the caller has checked that it may be changed."""
    call = Call(index_put, (x, positions, value), {"dims": dims, "accumulate": False})
    index_put.prepare(call)
    if index_put.place(call.inputs) is devices.cpu:
        host = x._host_array()
        source = value._host_array() if isinstance(value, Tensor) else value
        with np.errstate(all="ignore"):
            host[_key(positions._host_array(), host.ndim, dims)] = source
    else:
        index_put.write_places(x._data, positions._data, index_put._device_operand(value, x.dtype), call.metadata)
    x._count_change()


# ---- elements that are not zero -----------------------------------------------------------------------------------


def nonzero_positions(x: Tensor) -> Any:
    """Coordinates of the nonzero elements in row-major order: an int64 array of shape (n, rank) on the same device."""
    data = x._data
    while isinstance(data, Batched) and not data.whole:  # the same for all samples
        data = data.array
    if isinstance(data, Batched):
        raise ShapeError(
            "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
            "nonzero()",
            "the samples may have different numbers of elements that are not zero",
            remedy="choose elements with torch.where, whose result has the shape of its input",
        )
    if x.is_meta:
        raise UnsupportedError(
            "The register_meta function for torch.nonzero() raises unimplemented by default, as a correct "
            "data-independent implementation does not exist.",
            "the shape of the result depends on the elements, and a meta tensor has none",
            remedy="choose elements with torch.where, whose result has the shape of its input",
        )
    if data.__class__ is DeviceArray:
        from .kernel import device_nonzero

        return device_nonzero(
            (wrap(data) != 0)._data if is_complex(data) or wrap(data).dtype in dtypes.FLOAT8 else data
        )
    host = wrap(data)._host_array()
    if host.ndim == 0:
        return np.empty((int(bool(host)), 0), np.int64)
    return np.argwhere(host)


# ---- declarations -------------------------------------------------------------------------------------------------

index = _Index("index", _index, "positions")
index_put = _Index("index_put", _index_put, "positions")
gather = Gather("gather", _gather, "index")
scatter = Gather("scatter", _scatter, "index")
for _operator in (index, index_put, gather, scatter):
    _operator.on_pairs = True  # copies and sums of parts
index.float8 = index_put.float8 = "moved"
index.linear = gather.linear = "first"
index.sums_samples = True
index_put.linear = scatter.linear = "written"


def _coordinates(rng: np.random.Generator, sizes: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
    """Coordinates of shape (k, *shape), some of them counted from the end."""
    return np.stack([rng.integers(-size, size, shape) for size in sizes]).reshape(len(sizes), *shape)


@index.samples
def _(draw):
    for dims, places in (((0,), (6,)), ((1,), (2, 3)), ((0, 1), (4,)), ((0, 2), (3, 2)), ((2,), (0,)), ((0, 1, 2), ())):
        x = draw((3, 4, 5))
        yield [x, _coordinates(draw.rng, tuple(x.shape[dim] for dim in dims), places)], {"dims": dims}


@index_put.samples
def _(draw):
    for dims, shape in (((0,), (2, 4, 5)), ((1,), (5,)), ((0, 2), (2, 4)), ((0, 2), ())):
        # distinct coordinates: devices differ in which of two equal ones is kept
        positions = np.stack([draw.rng.permutation(3)[:2] - 3 for _ in dims])
        yield [draw((3, 4, 5)), positions, draw(shape)], {"dims": dims}
    if draw.dtype is not dtypes.bool_:
        for dims, shape in (((0,), (7, 4, 5)), ((1,), (5,)), ((0, 2), (7, 4)), ((0, 1, 2), ())):
            positions = _coordinates(draw.rng, tuple((3, 4, 5)[dim] for dim in dims), (7,))
            yield [draw((3, 4, 5)), positions, draw(shape)], {"dims": dims, "accumulate": True}


@gather.samples
def _(draw):
    for dim, shape in ((0, (6, 4)), (1, (2, 7)), (-1, (3, 4)), (0, (0, 4))):
        yield [draw((3, 4)), draw.rng.integers(0, (3, 4)[dim], shape)], {"dim": dim}
    yield [draw(()), np.zeros(3, np.int64)], {"dim": 0}


@scatter.samples
def _(draw):
    distinct = np.argsort(draw.rng.random((3, 4)), axis=0)[:2]
    yield [draw((3, 4)), distinct, draw((2, 4))], {"dim": 0}
    yield [draw((3, 4)), distinct[:, :3].copy(), draw((2, 3))], {"dim": 0}
    if draw.dtype is not dtypes.bool_:
        for dim, shape in ((0, (6, 4)), (1, (2, 7)), (1, (3, 0))):
            places = draw.rng.integers(0, (3, 4)[dim], shape)
            yield [draw((3, 4)), places, draw(shape)], {"dim": dim, "accumulate": True}


def _sum_at(grad: Tensor, positions: Tensor, x_shape: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    return index_put(grad.new_zeros(x_shape), positions, grad, dims=dims, accumulate=True)


def _scatter_sums(grad: Tensor, index: Tensor, x_shape: tuple[int, ...], dim: int) -> Any:
    zeros = grad.new_zeros(x_shape)
    return scatter(zeros, index, grad, dim=dim, accumulate=True) if index.numel() else zeros


index.gradients(x=_sum_at)
index_put.gradients(
    x=lambda grad, positions, dims, accumulate: grad if accumulate else index_put(grad, positions, 0, dims=dims),
    value=lambda grad, positions, dims, value_shape: index(grad, positions, dims=dims).sum_to_size(value_shape),
)
gather.gradients(x=_scatter_sums)
scatter.gradients(
    x=lambda grad, index, dim, accumulate: grad if accumulate else scatter(grad, index, 0, dim=dim),
    value=lambda grad, index, dim: gather(grad, index, dim=dim),
)
