"""Functions of DTensors: elementwise ones compute on the parts, norms reduce them, all others compute on the whole.

PyTorch has a rule for each operator, which finds the cheapest way to place its inputs. Here a function without a rule
gathers its inputs and gives a replicated result: right for all of them, and as fast where nothing is sharded. What
`fully_shard` and `parallelize_module` compute are plain tensors, so parameters need elementwise rules and norms only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from typing import Any

from ...autograd.mode import is_grad_enabled, no_grad
from ...errors import explain
from ...func.trees import tree_map
from ...functional.creation.creation import empty
from ...ground.overriding import known, unasked
from ...operators.inplace import check_writable
from ...operators.operator import registry
from ...tensors import Tensor
from ...types.layout import broadcast_shapes
from ..device_mesh import DeviceMesh
from .dtensor import DTensor, answers, over, plain
from .placements import Partial, Placement, Replicate, Shard, Spec, from_first, moved

Args = tuple[Any, ...]
Named = dict[str, Any]

# Facts of a part that are those of the whole, and what concerns the tensor as a part of a graph.
_OF_EITHER = {"requires_grad_", "is_floating_point", "is_complex", "is_signed", "is_conj", "is_neg", "is_inference"}
_OF_EITHER |= {"element_size", "get_device", "is_pinned", "is_contiguous", "is_shared", "retain_grad", "backward"}
_OF_EITHER |= {"register_post_accumulate_grad_hook", "detach_", "as_subclass", "__format__", "resolve_conj", "data_ptr"}
# What computes the same of a part as of the whole, beside elementwise operators.
_OF_PARTS = {"detach", "clone", "contiguous", "to", "cpu", "cuda", "float", "double", "half", "bfloat16", "type"}
_OF_PARTS |= {"pin_memory", "zeros_like", "ones_like", "empty_like", "full_like", "fill_", "zero_"}
_OF_SIZES = {"new_zeros", "new_ones", "new_empty", "new_full", "new_tensor"}
_VALUES = {"item", "__bool__", "__int__", "__float__", "__complex__", "__index__"}
_MEMORY = {"numpy", "__array__", "tolist", "__dlpack__", "untyped_storage", "storage", "__buffer__", "share_memory_"}
_VIEWS = {"T", "mT", "mH", "H", "real", "imag"}
_RANDOM = {"uniform_", "normal_", "bernoulli_", "exponential_", "random_", "log_normal_", "geometric_", "cauchy_"}
_RANDOM |= {"rand_like", "randn_like", "randint_like"}
_VIEWED = {"view", "reshape", "flatten", "unflatten"}
_NORMS = {"norm", "vector_norm", "linalg_vector_norm"}
_OTHERWISE = {"glu", "prelu"}  # whose results have other shapes, or whose inputs are not broadcast
_ALSO = {
    "__radd__",
    "__rmul__",
    "__rsub__",
    "__rtruediv__",
    "__rpow__",
    "true_divide",
    "multiply",
    "subtract",
    "divide",
}
_ALSO |= {"negative", "absolute", "nan_to_num", "float_power"}


# Rules that are there while a block runs, by the name of the function; each may return None.
special: dict[str, Callable[..., Any]] = {}


class _Here(threading.local):
    implicit = False


_here = _Here()


@contextmanager
def implicit_replication() -> Iterator[None]:
    """A block in which plain tensors beside DTensors are taken for replicated ones."""
    before, _here.implicit = _here.implicit, True
    try:
        yield
    finally:
        _here.implicit = before


def answer(func: Callable[..., Any], args: Args, kwargs: Named) -> Any:
    """The result of a public function, or of a member of Tensor, for arguments among which are DTensors."""
    names = known.get(func, getattr(func, "__name__", "")).split(".")
    if names[-1] in ("__get__", "__set__", "__delete__") and names[-2] not in _VIEWS:
        return unasked(func, (), args, kwargs)
    word = names[-2] if names[-1] == "__get__" else names[-1]
    if word in _OF_EITHER:
        return unasked(func, (), args, kwargs)
    if word == "register_hook":
        x, hook = args
        spec = x._spec.with_placements([Replicate() if p.is_partial() else p for p in x.placements])
        return unasked(func, (), (x, lambda grad: _part_of(hook(over(grad, spec)))), kwargs)
    if word.startswith("_foreach_"):
        return _each(word, args, kwargs)
    if word in _OF_PARTS:
        return _on_parts(func, args, kwargs)
    if word in _OF_SIZES:
        return _wrapped(args[0]._spec.mesh, func(plain(args[0]), *args[1:], **kwargs))
    if word in _VALUES | _MEMORY:
        return _values(func, word, args, kwargs)
    if word in special and (found := special[word](*args, **kwargs)) is not None:
        return found
    _check_mixed(word, args, kwargs)
    if word in _VIEWED and (found := _viewed(func, word, args, kwargs)) is not None:
        return found
    if word in _NORMS and (found := _norm(func, args, kwargs)) is not None:
        return found
    if _is_elementwise(word) and (found := _elementwise(func, word, args, kwargs)) is not None:
        return found
    return _on_whole(func, word, args, kwargs)


answers.append(answer)


def _part_of(x: object) -> Any:
    return plain(x) if isinstance(x, DTensor) else x


def _found(value: object) -> list[DTensor]:
    """The DTensors in nested arguments."""
    if isinstance(value, DTensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [x for each in value for x in _found(each)]
    return _found(list(value.values())) if isinstance(value, dict) else []


def _mesh(args: Args, kwargs: Named) -> DeviceMesh:
    return _found((args, kwargs))[0]._spec.mesh


def _whole(x: DTensor, shape: tuple[int, ...]) -> Spec:
    return Spec(x._spec.mesh, (Replicate(),) * x._spec.mesh.ndim, shape)


def _wrapped(mesh: DeviceMesh, result: object) -> Any:
    """The tensors of a result that every rank has, as replicated DTensors."""
    whole = (Replicate(),) * mesh.ndim
    return tree_map(
        lambda x: (
            over(x, Spec(mesh, whole, tuple(x.shape))) if isinstance(x, Tensor) and not isinstance(x, DTensor) else x
        ),
        result,
    )


def _check_mixed(word: str, args: Args, kwargs: Named) -> None:
    """Raise for plain tensors of more than one element beside DTensors."""

    def check(x: object) -> object:
        if isinstance(x, Tensor) and not isinstance(x, DTensor) and x.ndim and not _here.implicit:
            raise RuntimeError(
                explain(
                    f"{word} got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before "
                    "calling distributed operators!",
                    f"the tensor has shape {tuple(x.shape)}",
                    remedy="use distribute_tensor(x, mesh, placements), or take full_tensor() of the other",
                )
            )
        return x

    tree_map(check, (args, kwargs))


def _on_parts(func: Callable[..., Any], args: Args, kwargs: Named) -> Any:
    """A function of this rank's part, whose result lies as the first DTensor."""
    first = _found(args)[0]
    local = tree_map(lambda x: x.to_local() if x is first else _part_of(x), args)
    result = func(*local, **tree_map(_part_of, kwargs))
    if not isinstance(result, Tensor):
        return result
    return first if func.__name__.endswith("_") else over(result, first._spec)


def _values(func: Callable[..., Any], word: str, args: Args, kwargs: Named) -> Any:
    """The values of a tensor as numbers.

    Raises:
        RuntimeError: a rank does not have them, or the function gives away memory.
    """
    x = args[0]
    if word in _VALUES and x._spec.replicated:
        return func(plain(x), *args[1:], **kwargs)
    words = f".{word}() is not supported for tensor subclasses." if word in _MEMORY else f"{word}: a value of a DTensor"
    raise RuntimeError(
        explain(
            words,
            f"the DTensor of shape {tuple(x.shape)} lies as {list(x.placements)}",
            remedy="take x.full_tensor() on all ranks for the whole, x.to_local() for this rank's part",
        )
    )


def _is_elementwise(word: str) -> bool:
    bare = word.strip("_") if word.startswith("__") else word.rstrip("_")
    bare = bare[1:] if word.startswith("__i") and bare[0] == "i" and bare not in registry else bare
    if bare in _OTHERWISE:
        return False
    known_one = registry.get(bare)
    return word in _ALSO or bare in _ALSO or (known_one is not None and known_one.family == "elementwise")


def _elementwise(func: Callable[..., Any], word: str, args: Args, kwargs: Named) -> Any:
    """An elementwise function on the parts, once all inputs lie alike; None where a term would have to be changed."""
    inputs = _found((args, kwargs))
    in_place = word.endswith("_") and not word.startswith("__")
    first = args[0] if in_place else inputs[0]
    mesh, shape = first._spec.mesh, broadcast_shapes(*[x._spec.shape for x in inputs])
    target: list[Placement] = list(first.placements) if in_place else [Replicate()] * mesh.ndim
    if in_place and any(each.is_partial() for each in target):
        return None
    for axis in () if in_place else range(mesh.ndim):
        for x in inputs:
            placement, behind = x.placements[axis], len(shape) - x.ndim
            if isinstance(placement, Shard) and x.shape[placement.dim] == shape[placement.dim + behind]:
                target[axis] = replace(placement, dim=placement.dim + behind)
                break

    def local(x: object) -> object:
        if not isinstance(x, DTensor):
            return x
        wanted: list[Placement] = []
        for each in target:
            place: Placement = Replicate()
            if isinstance(each, Shard):
                dim = each.dim - (len(shape) - x.ndim)
                place = replace(each, dim=dim) if dim >= 0 and x.shape[dim] > 1 else place
            wanted.append(place)
        x = x if tuple(wanted) == x.placements else x.redistribute(placements=wanted)
        # a copy that each rank uses for its part gets a term of the gradient from each
        lies = [
            Partial() if each.is_shard() and w.is_replicate() else w for each, w in zip(target, wanted, strict=True)
        ]
        return x.to_local(grad_placements=lies) if x._needs and lies != wanted else x.to_local()

    if in_place:
        check_writable(first)
        if first._node is None:
            parts = (plain(first), *tree_map(local, args[1:]))
        else:
            parts = tree_map(local, args)
        result = func(*parts, **tree_map(local, kwargs))
        first._node, first._needs = result._node, result._needs or first._needs
        return first
    result = func(*tree_map(local, args), **tree_map(local, kwargs))
    spec = Spec(mesh, tuple(target), tuple(shape))
    return tree_map(lambda x: over(x, spec) if isinstance(x, Tensor) else x, result)


def _viewed(func: Callable[..., Any], word: str, args: Args, kwargs: Named) -> DTensor | None:
    """A view of another shape of each part, where a divided dimension stays or leads others; None otherwise."""
    x = args[0]
    shape = tuple(func(empty(x.shape, device="meta"), *args[1:], **kwargs).shape)
    own = x._spec.local()[0]
    placements, local = [], list(shape)
    for axis, place in enumerate(x.placements):
        if isinstance(place, Shard):
            old, count = x.shape[place.dim], x._spec.mesh.size(axis)
            before = prod(x.shape[: place.dim])
            fitting = [
                dim for dim in range(len(shape)) if prod(shape[:dim]) == before and _leads(shape[dim], old, count)
            ]
            if not fitting or x.numel() == 0:
                return None
            dim = fitting[-1]
            local[dim] = own[place.dim] if shape[dim] == old else local[dim] // count
            place = replace(place, dim=dim)
        placements.append(place)
    return over(x.to_local().reshape(local), Spec(x._spec.mesh, tuple(placements), shape))


def _leads(new: int, old: int, count: int) -> bool:
    """True if a dimension of a view is divided by so many ranks where the old one was."""
    return new == old or (old % count == new % count == 0 and max(old, new) % max(min(old, new), 1) == 0)


def _norm(func: Callable[..., Any], args: Args, kwargs: Named) -> DTensor | None:
    """The norm of all elements of a tensor that is divided, of those of the parts; None for others."""
    x = args[0]
    named = dict(zip(("p", "dim"), args[1:], strict=False)) | {"p": kwargs.get("ord", kwargs.get("p", 2.0))} | kwargs
    order = args[1] if len(args) > 1 else named["p"]
    if not isinstance(x, DTensor) or named.get("dim") is not None or not isinstance(order, (int, float)):
        return None
    how = Partial(f"norm{float(order)}")
    if x._spec.replicated or not all(p.is_shard() or p.is_replicate() or p == how for p in x.placements):
        return None
    local = x.to_local()
    result = func(local, *args[1:], **kwargs)
    placements = [Replicate() if p.is_replicate() else how for p in x.placements]
    terms = over(result, Spec(x._spec.mesh, tuple(placements), ()))
    return None if result.ndim else terms.redistribute(placements=_whole(x, ()).placements)


def norm_of_parts(tensors: Sequence[Tensor], order: float, norm: Callable[[list[Tensor]], Tensor]) -> DTensor:
    """The norm of all elements of some DTensors and tensors, as one vector: one reduction for each way to lie.

    Args:
        norm: that of a list of plain tensors, which it is computed by.
    """
    lots: dict[Any, list[Tensor]] = {}
    for x in tensors:
        lots.setdefault((x._spec.mesh, x.placements) if isinstance(x, DTensor) else None, []).append(plain(x))
    totals = []
    for lies, parts in lots.items():
        total = norm(parts)
        if lies is not None:
            kinds = [Replicate() if each.is_replicate() else Partial(f"norm{order}") for each in lies[1]]
            total = over(total, Spec(lies[0], tuple(kinds), ())).full_tensor()
        totals.append(total)
    total = totals[0] if len(totals) == 1 else norm([each.to(totals[0].device) for each in totals])
    return over(total, _whole(next(x for x in tensors if isinstance(x, DTensor)), ()))


def _each(word: str, args: Args, kwargs: Named) -> Any:
    """A `_foreach_` function by that of each tensor."""
    function = getattr(Tensor, word.removeprefix("_foreach_"))
    count = len(args[0])
    rows = [[arg[place] if isinstance(arg, (list, tuple)) else arg for arg in args] for place in range(count)]
    results = [function(*row, **kwargs) for row in rows]
    return None if word.endswith("_") else tuple(results)


def _on_whole(func: Callable[..., Any], word: str, args: Args, kwargs: Named) -> Any:
    """A function of whole tensors, which all ranks have then; what it writes to is divided again."""
    mesh = _mesh(args, kwargs)
    written = list(_found(kwargs.get("out")))
    if (word.endswith("_") and not word.startswith("__")) or word == "__setitem__":
        written += _found(args[:1])
    if not written:
        whole = tree_map(lambda x: x.full_tensor() if isinstance(x, DTensor) else x, (args, kwargs))
        return _wrapped(mesh, func(*whole[0], **whole[1]))
    for x in written:
        check_writable(x)
        if is_grad_enabled() and any(each._needs for each in _found((args, kwargs))):
            raise NotImplementedError(
                explain(
                    f"{word} in place of a DTensor of shape {tuple(x.shape)} has no gradient",
                    remedy="use the function that is not in place",
                )
            )
    with no_grad():
        copies = {id(x): x.full_tensor().clone() for x in written}
        whole = tree_map(lambda x: copies.get(id(x), x.full_tensor()) if isinstance(x, DTensor) else x, (args, kwargs))
        result = func(*whole[0], **whole[1])
        for x in written:
            full = copies[id(x)]
            if word in _RANDOM:
                for axis in range(mesh.ndim):
                    full = from_first(full, mesh, axis)
            plain(x).copy_(moved(full, _whole(x, x._spec.shape), x.placements))
    same = next((x for x in written if result is copies[id(x)]), None)
    return same if same is not None else _wrapped(mesh, result)
