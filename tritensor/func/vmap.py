"""`vmap`: a function of one sample, on all samples of a batch in one run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..autograd.levels import enter, leave
from ..errors import ShapeError, require
from ..functional.views.joining import cat
from ..memory.lifted import Level, opened
from ..operators.generators import get_rng_state, set_rng_state
from ..tensors import Tensor
from .trees import Spec, broadcast, flatten, tree_map, unflatten


def _name(function: Any) -> str:
    if isinstance(function, functools.partial):
        return f"functools.partial({_name(function.func)}, ...)"
    return getattr(function, "__name__", None) or repr(function)


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Vectorise a function over a batch dimension: it calls `func` on each sample, as if in a loop, in one run.

    >>> import tritensor as torch
    >>> x, y = torch.ones(3, 5), torch.ones(3, 5)
    >>> torch.vmap(torch.dot)(x, y)
    tensor([5., 5., 5.])

    Inside of `func` a tensor has the shape of one sample. An operator without a batching rule runs once for each
    sample, with a warning. Code that depends on elements of a sample, `if x.sum() > 0` or `x.item()`, raises.

    Args:
        in_dims: the dimension of the samples in each input, None for inputs that all samples share; an int for all
            inputs, or a tuple of the inputs' structure. Keyword arguments are shared.
        out_dims: where the samples are in each result; None for a result that is no tensor of the samples.
        randomness: what random operators do: "error", "different" numbers for each sample, or the "same".
        chunk_size: how many samples to compute at a time, if not all.

    Raises:
        ValueError: dimensions that do not fit the inputs or outputs, or samples of different numbers.
        RuntimeError: an unknown `randomness`, or random numbers with "error".
    """
    if randomness not in ("error", "different", "same"):
        raise ShapeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        _check_out_dims(out_dims, func)
        dims, values, spec = _inputs(func, in_dims, args)
        size = _batch_size([value.shape[dim] for value, dim in zip(values, dims, strict=True) if dim is not None])
        if chunk_size is None or chunk_size >= size:
            return _run(func, size, dims, values, spec, out_dims, randomness, kwargs)
        state, parts, of_parts = get_rng_state(), [], Spec()
        for start in range(0, size, chunk_size):
            count = min(chunk_size, size - start)
            chunk = [
                value if dim is None else value.narrow(dim, start, count)
                for value, dim in zip(values, dims, strict=True)
            ]
            if randomness == "same":
                set_rng_state(state)
            found, of_parts = flatten(_run(func, count, dims, chunk, spec, out_dims, randomness, kwargs))
            parts.append(found)
        places = broadcast(out_dims, of_parts) or []
        joined = [
            each[0] if place is None else cat(each, place)
            for each, place in zip(zip(*parts, strict=True), places, strict=True)
        ]
        return unflatten(joined, of_parts)

    return wrapped


def _run(
    func: Any, size: int, dims: list[Any], values: list[Any], spec: Spec, out_dims: Any, randomness: str, kwargs: Any
) -> Any:
    level = Level(size, randomness)
    with opened(level):
        samples = [
            value if dim is None else enter(value if not dim else value.movedim(dim, 0), level)
            for value, dim in zip(values, dims, strict=True)
        ]
        outputs = func(*unflatten(samples, spec), **kwargs)
        return _outputs(func, outputs, out_dims, level)


def _inputs(func: Callable[..., Any], in_dims: Any, args: tuple[Any, ...]) -> tuple[list[Any], list[Any], Spec]:
    """The dimension of the samples in each leaf of the inputs, the leaves, and the structure."""
    call = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{call}expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap "
            "over a function with no inputs. The latter is unsupported."
        )
    values, spec = flatten(args)
    dims = broadcast(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{call}in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    for position, (value, dim) in enumerate(zip(values, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"{call}Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if not isinstance(value, Tensor):
            raise ValueError(
                f"{call}Got in_dim={dim} for an input but the input is of type {type(value)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        rank = value.ndim
        if not -rank <= dim < rank:
            raise ValueError(
                f"{call}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {rank} so "
                f"expected in_dim to satisfy -{rank} <= in_dim < {rank}."
            )
        dims[position] = dim % rank
    return dims, values, spec


def _batch_size(sizes: list[int]) -> int:
    require(sizes, ValueError, "vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    return sizes[0]


def _check_out_dims(out_dims: Any, func: Any) -> None:
    def check(dim: Any) -> None:
        if dim is not None and not isinstance(dim, int):
            raise ValueError(
                f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python "
                "collection of ints representing where in the outputs the vmapped dimension should appear."
            )

    tree_map(check, out_dims)


def _outputs(func: Any, outputs: Any, out_dims: Any, level: Level) -> Any:
    """The results with the samples along their dimensions."""
    values, spec = flatten(outputs)
    one = isinstance(outputs, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1
    dims = list(out_dims) if one else broadcast(out_dims, spec)
    name = _name(func)
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    found = []
    for value, dim in zip(values, dims, strict=True):
        if dim is None:
            if isinstance(value, Tensor) and getattr(value._data, "level", None) is level:
                if value._data.whole:
                    raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
                value = leave(value, level)[0]
            found.append(value)
            continue
        if not isinstance(value, Tensor):
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(value)}. Did you mean to set "
                "out_dims= to None for output?"
            )
        whole = leave(value, level)
        found.append(whole.movedim(0, dim) if dim else whole)
    return unflatten(found, spec)
