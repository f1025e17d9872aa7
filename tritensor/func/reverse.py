"""Reverse mode as transformations: `grad`, `grad_and_value`, `vjp` and `jacrev`, by the tape.

The arguments to differentiate get nodes, or are leaves, of their own, so a derivative inside of another is taken with
respect to them alone. The computation of a gradient is recorded where it can be differentiated once more: where the
outputs depend on anything that requires grad and is not such a leaf.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .. import autograd
from ..autograd.levels import alias
from ..autograd.mode import enable_grad, recording
from ..autograd.tape import Node
from ..errors import AutogradError, require
from ..functional.creation.ranges import arange
from ..functional.views.joining import cat
from ..tensors import Tensor
from .trees import Spec, flatten, tree_map, unflatten
from .vmap import vmap

# ---- arguments ------------------------------------------------------------------------------------------------------


def chosen(args: Sequence[Any], argnums: Any) -> Any:
    """The argument of an index, or the tuple of those of several.

    Raises:
        AutogradError: an index out of range, given twice, or of another type.
    """
    if isinstance(argnums, int):
        return args[_position(argnums, len(args))]
    require(isinstance(argnums, tuple), AutogradError, "argnums must be int or Tuple[int, ...], got: {}", type(argnums))
    places = [_position(each, len(args)) for each in argnums]
    require(places, AutogradError, "argnums must be non-empty")
    if len(set(places)) != len(places):
        raise AutogradError(f"argnums elements must be unique, got {tuple(places)}")
    return tuple([args[place] for place in places])


def _position(argnum: int, count: int) -> int:
    require(isinstance(argnum, int), AutogradError, "argnum must be int, got: {}", type(argnum))
    require(-count <= argnum < count, AutogradError, "Got argnum={}, but only {} positional inputs", argnum, count)
    return argnum % count


def replaced(args: Sequence[Any], argnums: Any, new: Any) -> list[Any]:
    """The arguments with those of `argnums` replaced."""
    found = list(args)
    for place, value in [(argnums, new)] if isinstance(argnums, int) else zip(argnums, new, strict=True):
        found[place] = value
    return found


def split_aux(call: str, output: Any) -> tuple[Any, Any]:
    """The output and what a function returns beside it.

    Raises:
        AutogradError: it is no pair.
    """
    if not (isinstance(output, tuple) and len(output) == 2):
        raise AutogradError(f"{call}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return output


def only_tensors(call: str, outputs: list[Any]) -> None:
    """Raise unless a function returned at least one tensor, and nothing else.

    Raises:
        AutogradError: see above.
    """
    if not outputs or (len(outputs) == 1 and outputs[0] is None):
        raise AutogradError(f"{call}: Expected f to be a function that has non-empty output (got output = {outputs})")
    for each in outputs:
        if not isinstance(each, Tensor):
            raise AutogradError(
                f"{call}: expected f(*primals) to return only tensors, got unsupported type {type(each)}"
            )


def refuse_complex(call: str, values: object, of: str) -> None:
    """Raise if a tensor is complex.

    Raises:
        AutogradError: one is.
    """
    for value in flatten(values)[0]:
        if isinstance(value, Tensor) and value.is_complex():
            raise AutogradError(
                f"{call}: Expected all {of} to be real but received complex tensor at flattened input idx: 0"
            )


# ---- the tape -------------------------------------------------------------------------------------------------------


class Recorded:
    """A run of a function on arguments to differentiate.

    Attributes:
        spec: the structure of these.
        beyond: whether gradients are recorded: the function's results depend on what requires grad outside of it.
    """

    def __init__(self, arguments: Any) -> None:
        values, self.spec = flatten(arguments)
        for value in values:
            if not isinstance(value, Tensor):
                raise ValueError(f"Thing passed to transform API must be Tensor, got {type(value)}")
        self.outside = bool(recording.enabled)
        self.leaves = [alias(value) for value in values]
        self.arguments = unflatten(self.leaves, self.spec)
        self.beyond = False

    def finished(self, outputs: Sequence[Any]) -> None:
        """Note whether outputs depend on anything outside."""
        self.beyond = self.outside and _reaches_beyond([x for x in outputs if x.requires_grad], self.leaves)

    def outward(self, tree: Any) -> Any:
        """Results as they are outside: with a history only where they depend on anything there."""

        def convert(x: Any) -> Any:
            require(isinstance(x, Tensor), AutogradError, "Expected tensors, got unsupported type {}", type(x))
            keeps = not x.requires_grad or (self.outside and _reaches_beyond([x], self.leaves))
            return x if keeps else x._without_node()

        return tree_map(convert, tree)

    def gradients(self, outputs: Sequence[Any], cotangents: Sequence[Any] | None, create: bool, retain: bool) -> Any:
        """The gradients of the arguments, zeros where there is none."""
        pairs = [(x, None if cotangents is None else cotangents[at]) for at, x in enumerate(outputs) if x.requires_grad]
        found: Sequence[Any] = [None] * len(self.leaves)
        if pairs:
            roots, starts = zip(*pairs, strict=True)
            found = autograd.grad(
                roots, self.leaves, starts, retain_graph=retain or create, create_graph=create, allow_unused=True
            )
        zeros = [leaf._without_node() for leaf in self.leaves]
        return unflatten(
            [x.new_zeros(x.shape) if each is None else each for each, x in zip(found, zeros, strict=True)], self.spec
        )


def _reaches_beyond(outputs: Sequence[Any], own: Sequence[Any]) -> bool:
    """True if outputs depend on a leaf that requires grad and is none of `own`."""
    own_leaves = {id(x) for x in own if x._node is None}
    stack: list[Any] = [x._edge() for x in outputs]
    seen: set[int] = set()
    while stack:
        edge = stack.pop()
        edge = getattr(edge, "node", edge)
        if id(edge) in seen or id(edge) in own_leaves:
            continue
        if not isinstance(edge, Node):
            return True
        seen.add(id(edge))
        stack.extend(edge.next)
    return False


def grad_and_value(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Transform a scalar function `func` into the function that computes its gradient and its value; see `grad`."""
    words = "grad_and_value(f)(*args)"

    @functools.wraps(func, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        run = Recorded(chosen(args, argnums))
        with enable_grad():
            output = func(*replaced(args, argnums, run.arguments), **kwargs)
            aux = None
            if has_aux:
                output, aux = split_aux(words, output)
            if not isinstance(output, Tensor):
                raise AutogradError(f"{words}: Expected f(*args) to return a Tensor, got {type(output)}")
            if output.ndim:
                raise AutogradError(
                    f"{words}: Expected f(*args) to return a scalar Tensor, got tensor with {output.ndim} dims. Maybe "
                    "you wanted to use the vjp or jacrev APIs instead?"
                )
            run.finished([output])
            found = run.gradients([output], None, run.beyond, has_aux)
            output = run.outward(output)
            aux = run.outward(aux) if has_aux else None
        return (found, (output, aux)) if has_aux else (found, output)

    return wrapper


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Transform a scalar function `func` into the function that computes its gradient.

    >>> import tritensor as torch
    >>> torch.func.grad(torch.func.grad(torch.sin))(torch.tensor(0.5))
    tensor(-0.4794)

    It respects `no_grad` inside of `func`, and not the one that it is called in.

    Args:
        argnums: the argument to differentiate with respect to, a tensor or a tree of them; a tuple for several, whose
            gradients are returned as a tuple.
        has_aux: `func` returns a pair of its result and of tensors that are returned as they are, behind the gradient.

    Raises:
        RuntimeError: the result is no tensor, or not of one number; `argnums` out of range.
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return wrapper


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The vector-Jacobian product: `func(*primals)`, and the function from its cotangents to the primals' gradients.

    >>> import tritensor as torch
    >>> value, pull = torch.func.vjp(torch.sin, torch.tensor([0.0, 1.0]))
    >>> pull(torch.ones(2))
    (tensor([1.0000, 0.5403]),)

    Cotangents have the structure of the result; the function returns a tuple with an entry for each primal. With
    `has_aux`, `func` returns a pair, whose second part is returned last.

    Raises:
        RuntimeError: results that are no floating tensors, or cotangents of another structure.
    """
    return _vjp(func, primals, None, has_aux)


def _vjp(func: Callable[..., Any], primals: tuple[Any, ...], argnums: Any, has_aux: bool) -> Any:
    run = Recorded(primals if argnums is None else chosen(primals, argnums))
    with enable_grad():
        args = run.arguments if argnums is None else replaced(primals, argnums, run.arguments)
        output, aux = func(*args), None
        if has_aux:
            output, aux = split_aux("vjp(f, *primals)", output)
            aux = run.outward(aux)
        flat, spec = flatten(output)
        only_tensors("vjp(f, *primals)", flat)
        for each in flat:
            if not (each.is_floating_point() or each.is_complex()):
                raise AutogradError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                    f"{each.dtype}"
                )
        run.finished(flat)
        value = run.outward(output)

    def pull(cotangents: dict[str, Any] | Tensor, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        starts, given = flatten(cotangents)
        if given != spec:
            raise AutogradError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {given}, primal output: {spec}"
            )
        create = recording.enabled and (run.beyond or any(x.requires_grad for x in starts))
        if create_graph is not None:
            create = create_graph
        return run.gradients(flat, starts, create, retain_graph)

    return (value, pull, aux) if has_aux else (value, pull)


def basis(values: Sequence[Any], start: int, count: int) -> list[Any]:
    """Rows of the unit matrix of all elements of `values` together, each as tensors of their shapes."""
    found, before = [], 0
    for value in values:
        size, place = value.numel(), value.device
        row = arange(start, start + count, device=place).unsqueeze(1)
        rows = row == arange(before, before + size, device=place)
        found.append(rows.to(value.dtype).reshape(count, *value.shape))
        before += size
    return found


def jacrev(
    func: Callable[..., Any],
    argnums: Any = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """Transform `func` into the function that computes its Jacobian by reverse mode: a gradient per output element.

    >>> import tritensor as torch
    >>> torch.func.jacrev(torch.sin)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])

    The gradients of all elements are computed together, by `vmap`, or `chunk_size` of them at a time. The Jacobian has
    the structure of the results, each with that of the arguments; its tensors the shape of the result and then that
    of the argument. See `grad` for the others.

    Raises:
        ValueError: a chunk size below 1. RuntimeError: as `vjp`.
    """
    require(chunk_size is None or chunk_size > 0, ValueError, "jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func, updated=())
    def wrapper(*args: Any) -> Any:
        refuse_complex("jacrev", args, "inputs")
        output, pull, *aux = _vjp(func, args, argnums, has_aux)
        flat, spec = flatten(output)
        refuse_complex("jacrev", flat, "outputs")
        total = sum([each.numel() for each in flat])
        step = total if chunk_size is None else chunk_size
        chunks = []
        for start in range(0, max(total, 1), max(step, 1)):
            rows = unflatten(basis(flat, start, min(step, total - start)), spec)
            # rows one at a time need no rule for batches
            if chunk_size == 1:
                row = pull(tree_map(lambda x: x.squeeze(0), rows))
                chunks.append(flatten(tree_map(lambda x: x.unsqueeze(0), row))[0])
            else:
                chunks.append(flatten(vmap(pull)(rows))[0])
        columns = [part[0] if len(part) == 1 else cat(list(part)) for part in zip(*chunks, strict=True)]
        _, inputs = flatten(chosen(args, argnums))
        found = _by_output(columns, flat, inputs)
        return (unflatten(found, spec), *aux) if has_aux else unflatten(found, spec)

    return wrapper


def _by_output(columns: list[Any], outputs: list[Any], inputs: Spec) -> list[Any]:
    """For each output the tree of the Jacobians of the inputs, from the rows of all outputs for each input."""
    found, start = [], 0
    for output in outputs:
        size = output.numel()
        parts = [column.narrow(0, start, size).reshape(*output.shape, *column.shape[1:]) for column in columns]
        found.append(unflatten(parts, inputs))
        start += size
    return found
