"""Forward mode as transformations: `jvp`, `jacfwd`, `hessian` and `linearize`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import autograd
from ..autograd.forward_ad import joined
from ..autograd.levels import in_all, primal_of, tangent_of
from ..autograd.mode import enable_grad
from ..errors import AutogradError, require
from ..memory.lifted import Level, open_levels, opened
from ..tensors import Tensor
from .reverse import Recorded, basis, chosen, jacrev, only_tensors, refuse_complex, replaced, split_aux
from .trees import Spec, flatten, tree_map, unflatten
from .vmap import vmap

_WORDS = "jvp(f, primals, tangents)"


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The Jacobian-vector product: `func(*primals)` and its derivative in the direction of `tangents`, in one run.

    >>> import tritensor as torch
    >>> torch.func.jvp(torch.sin, (torch.tensor(0.0),), (torch.tensor(2.0),))
    (tensor(0.), tensor(2.))

    Args:
        primals, tangents: tuples of tensors, or of trees of them, of one structure.
        strict: refuse results that do not depend on the primals, whose derivative is zero.
        has_aux: `func` returns a pair, whose second part is returned last.

    Raises:
        RuntimeError: structures, shapes or dtypes that differ, results that are no tensors.
    """
    return _jvp(func, primals, tangents, None, strict, has_aux)


def _jvp(func: Callable[..., Any], primals: Any, tangents: Any, argnums: Any, strict: bool, has_aux: bool) -> Any:
    if not isinstance(primals, tuple):
        raise AutogradError(f"{_WORDS}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    moving = primals if argnums is None else chosen(primals, argnums)
    values, spec = flatten(moving)
    directions, given = flatten(tangents)
    if spec != given:
        raise AutogradError(
            f"{_WORDS}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents with structure "
            f"{given}"
        )
    for name, each in (("primals", values), ("tangents", directions)):
        require(each, AutogradError, "{}: Expected {} to contain at least one Tensor.", _WORDS, name)
        wrong = [x for x in each if not isinstance(x, Tensor)]
        if wrong:
            raise AutogradError(f"{_WORDS}: Expected {name} to only contain Tensors, got {type(wrong[0])}")
    level = Level()
    duals = [joined(x, t, level) for x, t in zip(values, directions, strict=True)]
    args = unflatten(duals, spec) if argnums is None else replaced(primals, argnums, unflatten(duals, spec))
    with opened(level):
        output, aux = func(*args), None
    if has_aux:
        output, aux = split_aux(_WORDS, output)
        aux = tree_map(lambda x: primal_of(x, level), aux)
    flat, spec = flatten(output)
    only_tensors(_WORDS, flat)
    results, moved = [], []
    for each in flat:
        results.append(primal_of(each, level))
        tangent = tangent_of(each, level)
        if tangent is None and strict:
            raise AutogradError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
                "allowed with strict=True."
            )
        moved.append(results[-1].detach().new_zeros(each.shape) if tangent is None else tangent)
    found = (unflatten(results, spec), unflatten(moved, spec))
    return (*found, aux) if has_aux else found


def jacfwd(
    func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """Transform `func` into the function that computes its Jacobian by forward mode: a run per input element.

    >>> import tritensor as torch
    >>> torch.func.jacfwd(torch.sin)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])

    The runs are one run of `vmap`, with its `randomness`. See `jacrev` for what it returns.

    Raises:
        RuntimeError: as `jvp`.
    """

    @functools.wraps(func, updated=())
    def wrapper(*args: Any) -> Any:
        refuse_complex("jacfwd", args, "inputs")
        moving, inputs = flatten(chosen(args, argnums))
        rows = unflatten(basis(moving, 0, sum([x.numel() for x in moving])), inputs)

        def push(row: dict[str, Any] | Tensor) -> Any:
            value, *found = _jvp(func, args, row, argnums, False, has_aux)
            refuse_complex("jacfwd", value, "outputs")
            return tuple(found) if has_aux else found[0]

        found = vmap(push, randomness=randomness)(rows)
        aux: Any = None
        if has_aux:
            found, aux = found
            aux = tree_map(lambda x: x[0], aux)
        flat, spec = flatten(found)
        result = unflatten([_by_input(each, moving, inputs) for each in flat], spec)
        return (result, aux) if has_aux else result

    return wrapper


def _by_input(columns: Tensor, inputs: list[Any], spec: Spec) -> Any:
    """The tree of the Jacobians of one output with respect to the inputs, from its derivatives in all directions."""
    found, start, rows = [], 0, columns.movedim(0, -1)
    for each in inputs:
        part = rows.narrow(-1, start, each.numel())
        found.append(part.reshape(*columns.shape[1:], *each.shape))
        start += each.numel()
    return unflatten(found, spec)


def hessian(func: Callable[..., Any], argnums: Any = 0) -> Callable[..., Any]:
    """Transform `func` into the function that computes its Hessian: `jacfwd(jacrev(func))`.

    >>> import tritensor as torch
    >>> torch.func.hessian(lambda x: (x ** 3).sum())(torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Linearize at a point: `func(*primals)`, and the function from tangents to the derivative in their direction.

    `func` runs once; the function that is returned applies its derivative at the primals, which is linear. It is the
    transposed of the gradient, which the tape records.

    >>> import tritensor as torch
    >>> value, push = torch.func.linearize(torch.sin, torch.tensor(0.0))
    >>> push(torch.tensor(2.0))
    tensor(2.)

    Raises:
        RuntimeError: tangents of another structure, shape, dtype or device than the primals.
    """
    run = Recorded(primals)
    with enable_grad():
        output = func(*run.arguments)
        flat, out_spec = flatten(output)
        only_tensors("linearize(f, *primals)", flat)
        run.finished(flat)
        value = run.outward(output)
        seeds = [in_all(x.detach(), open_levels.stack) for x in flat]
        seeds = [x.new_zeros(x.shape).requires_grad_() for x in seeds]
        gradients, _ = flatten(run.gradients(flat, seeds, True, True))

    def push(*tangents: Any) -> Any:
        directions, given = flatten(tangents)
        if given != run.spec:
            raise AutogradError(f"Expected the tangents {given} to have the same argspec as the primals {run.spec}")
        for position, (t, x) in enumerate(zip(directions, run.leaves, strict=True)):
            for what in ("shape", "device", "dtype"):
                if getattr(t, what) != getattr(x, what):
                    raise AutogradError(
                        f"tangent:{position} with {what} {getattr(t, what)} in flattened pytree doesn't match the "
                        f"{what} {getattr(x, what)} of the corresponding primal."
                    )
        create = run.beyond or any(t.requires_grad for t in directions)
        pairs = [(g, t) for g, t in zip(gradients, directions, strict=True) if g.requires_grad]
        found: Any = [None] * len(seeds)
        if pairs:
            roots, starts = zip(*pairs, strict=True)
            found = autograd.grad(roots, seeds, starts, retain_graph=True, create_graph=create, allow_unused=True)
        return unflatten(
            [x.detach() * 0 if each is None else each for each, x in zip(found, seeds, strict=True)], out_spec
        )

    return value, push
