"""Derivatives of functions at a point: Jacobians and Hessians, and products with them.

In each of them `inputs` is a tensor or a tuple of tensors, and so are what `func` returns and `v`. With `create_graph`
the results can be differentiated once more. With `strict` an output that does not depend on an input raises, in place
of a derivative of zero. `torch.func` has the same as transformations of functions.

Raises of all: ArgumentError for what is no tensor; AutogradError where `v` does not fit, or `strict` does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ArgumentError, AutogradError
from ..memory.lifted import Level, opened
from .backward import grad
from .levels import alias, enter, enter_dual, leave, tangent_of
from .mode import enable_grad, recording

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

_STRICT = "This is not allowed in strict mode"


def _tensors(values: Any, name: str, call: str) -> tuple[bool, tuple[Any, ...]]:
    """Whether it is a tuple of tensors, and that tuple."""
    several = isinstance(values, tuple)
    found = values if several else (values,)
    for position, value in enumerate(found):
        if not hasattr(value, "requires_grad"):
            which = f"value at index {position}" if several else f"given {name}"
            raise ArgumentError(
                f"The {name} given to {call} must be either a Tensor or a tuple of Tensors but the {which} has type "
                f"{type(value)}."
            )
    return several, found


class _Run:
    """A run of the function, recorded, and what its results look like."""

    def __init__(self, call: str, func: Any, inputs: Any, create: bool, strict: bool, scalar: bool = False) -> None:
        self.call, self.create, self.strict = call, create, strict
        self.graph = create or bool(recording.enabled)
        self.several, given = _tensors(inputs, "inputs", call)
        with enable_grad():
            self.inputs = [alias(x if create else x._without_node()) for x in given]
            self.several_out, self.outputs = _tensors(func(*self.inputs), "outputs of the user-provided function", call)
        self.need(
            self.outputs,
            "Output {} of the user-provided function does not require gradients. The outputs must "
            "be computed in a differentiable manner from the input when running in strict mode.",
        )
        if scalar:
            if self.several_out:
                raise AutogradError(f"The function given to {call} should return a single Tensor")
            if self.outputs[0].numel() != 1:
                raise AutogradError(
                    f"The Tensor returned by the function given to {call} should contain a single element"
                )

    def need(self, tensors: Sequence[Any], words: str) -> None:
        """With `strict`, raise unless all tensors require grad."""
        for position, each in enumerate(tensors if self.strict else ()):
            if each is None or not each.requires_grad:
                raise AutogradError(words.format(position))

    def direction(self, v: Any, beside: Sequence[Any], several: bool, words: str) -> Sequence[Any] | None:
        """The vectors, of the shapes of `beside`; None for the only number of one tensor."""
        if v is None:
            if len(beside) != 1 or beside[0].numel() != 1:
                raise AutogradError(f"The vector v can only be None if {words} a single Tensor with a single element.")
            return [beside[0].detach() * 0 + 1]
        _, found = _tensors(v, "v", self.call)
        if len(found) != len(beside):
            raise AutogradError(
                f"v is a tuple of invalid length: should be {len(beside)} but got {len(found)}."
                if several
                else "The given v should contain a single Tensor."
            )
        for position, (x, y) in enumerate(zip(found, beside, strict=True)):
            if x.shape != y.shape:
                where = f"Entry {position} in " if several else ""
                raise AutogradError(f"{where}v has invalid size: should be {y.shape} but got {x.shape}.")
        return [x if self.create else x._without_node() for x in found]

    def gradients(
        self, outputs: Sequence[Any], inputs: Sequence[Any], v: Any, create: bool, words: str = ""
    ) -> list[Any]:
        """The gradients; where there is none zeros, or with `strict` an error if there are words for it."""
        pairs = [(x, None if v is None else v[at]) for at, x in enumerate(outputs) if x is not None and x.requires_grad]
        found: Sequence[Any] = [None] * len(inputs)
        if pairs:
            roots, starts = zip(*pairs, strict=True)
            found = grad(roots, inputs, starts, retain_graph=True, create_graph=create, allow_unused=True)
        for position, each in enumerate(found if self.strict and words else ()):
            if each is None or (self.create and not each.requires_grad):
                more = " when create_graph=True." if each is not None else "."
                raise AutogradError(f"{words.format(position)} {_STRICT}{more}")
        return [x.detach().new_zeros(x.shape) if g is None else g for g, x in zip(found, inputs, strict=True)]

    def result(self, tensors: Sequence[Any], several: bool) -> Any:
        """Tensors as they are returned."""
        found = tuple([x if self.create else x._without_node() for x in tensors])
        return found if several else found[0]


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The vector-Jacobian product: the results of `func`, and the gradients of its inputs for `v` of the results.

    >>> import tritensor as torch
    >>> torch.autograd.functional.vjp(lambda x: x * x, torch.tensor([1.0, 2.0]), torch.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    run = _Run("vjp", func, inputs, create_graph, strict)
    v = run.direction(v, run.outputs, run.several_out, "the user-provided function returns")
    words = "The output of the user-provided function is independent of input {}."
    found = run.gradients(run.outputs, run.inputs, v, create_graph, words)
    return run.result(run.outputs, run.several_out), run.result(found, run.several)


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The Jacobian-vector product: the results of `func`, and its derivative in the direction `v`.

    >>> import tritensor as torch
    >>> torch.autograd.functional.jvp(lambda x: x.sum(), torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.5]))
    (tensor(3.), tensor(1.5000))
    """
    run = _Run("jvp", func, inputs, create_graph, strict)
    v = run.direction(v, run.inputs, run.several, "the input to the user-provided function is")
    found = _transposed(run, run.outputs, v)
    return run.result(run.outputs, run.several_out), run.result(found, run.several_out)


def _transposed(run: _Run, outputs: Sequence[Any], v: Any) -> list[Any]:
    """The derivative of outputs along `v`: that of their gradients, which are linear in `seeds`, by these."""
    seeds = [x.detach().new_zeros(x.shape).requires_grad_() for x in outputs]
    first = run.gradients(outputs, run.inputs, seeds, True)
    words = "The gradient with respect to the input is independent of entry {} in the grad_outputs."
    return run.gradients(first, seeds, v, run.create, words)


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The vector-Hessian product of a scalar function: its result, and `v` times its Hessian.

    >>> import tritensor as torch
    >>> torch.autograd.functional.vhp(lambda x: (x ** 3).sum(), torch.tensor([1.0, 2.0]), torch.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    run, slopes, v = _slopes("vhp", func, inputs, v, create_graph, strict)
    words = "The jacobian of the user-provided function is independent of input {}."
    found = run.gradients(slopes, run.inputs, v, create_graph, words)
    return run.result(run.outputs, False), run.result(found, run.several)


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The Hessian-vector product of a scalar function: its result, and Hessian times `v`; slower than `vhp`.

    >>> import tritensor as torch
    >>> torch.autograd.functional.hvp(lambda x: (x ** 3).sum(), torch.tensor([1.0, 2.0]), torch.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    run, slopes, v = _slopes("hvp", func, inputs, v, create_graph, strict)
    return run.result(run.outputs, False), run.result(_transposed(run, slopes, v), run.several)


def _slopes(call: str, func: Any, inputs: object, v: Any, create: bool, strict: bool) -> tuple[_Run, list[Any], Any]:
    run = _Run(call, func, inputs, create, strict, scalar=True)
    v = run.direction(v, run.inputs, run.several, "the input to the user-provided function is")
    slopes = run.gradients(run.outputs, run.inputs, None, True)
    run.need(slopes, _INDEPENDENT)
    return run, slopes, v


_INDEPENDENT = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is "
    f"independent of the input. {_STRICT}. You should ensure that your function is twice differentiable and that the "
    "jacobian depends on the inputs (this would be violated by a linear function for example)."
)


def jacobian(
    func: Callable[..., Any],
    inputs: object,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of `func`: for each output, for each input a tensor of the output's shape and then the input's.

    >>> import tritensor as torch
    >>> torch.autograd.functional.jacobian(lambda x: x * x, torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])

    Args:
        vectorize: compute all rows in one run, as `vmap` does.
        strategy: "reverse-mode", or "forward-mode", which computes columns, and needs `vectorize`.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    words = "torch.autograd.functional.jacobian: "
    if strategy == "forward-mode":
        if create_graph or strict:
            kind, which = (NotImplementedError, "create_graph") if create_graph else (AutogradError, "strict")
            raise kind(
                f'{words}`{which}=True` and `strategy="forward-mode"` are not supported together (yet). Please either '
                f'set `{which}=False` or `strategy="reverse-mode"`.'
            )
        if not vectorize:
            raise NotImplementedError(
                "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
                "`vectorize=True`."
            )
        return _columns(func, inputs)
    run = _Run("jacobian", func, inputs, create_graph, strict)
    if vectorize and strict:
        raise AutogradError(
            f"{words}`strict=True` and `vectorized=True` are not supported together. Please either set `strict=False` "
            "or `vectorize=False`."
        )
    found = []
    for number, out in enumerate(run.outputs):
        rows, size = _unit(out), out.numel()
        which = f"Output {number} of the user-provided function is independent of input {{}}."
        if vectorize:
            level = Level(size)
            parts = run.gradients([out], run.inputs, [enter(rows, level)], create_graph)
            columns = [leave(part, level) for part in parts]
        else:
            each = [run.gradients([out], run.inputs, [rows[row]], create_graph, which) for row in range(size)]
            columns = [_stacked([row[at] for row in each], x) for at, x in enumerate(run.inputs)]
        shaped = [part.reshape(*out.shape, *x.shape) for part, x in zip(columns, run.inputs, strict=True)]
        found.append(run.result(shaped, run.several))
    return tuple(found) if run.several_out else found[0]


def _unit(x: Any) -> Any:
    """The unit matrix of a tensor's elements; each row has the tensor's shape."""
    numbers = x.detach().new_ones(x.numel()).cumsum(0)
    return (numbers.unsqueeze(1) == numbers).to(x.dtype).reshape(x.numel(), *x.shape)


def _stacked(rows: list[Any], like: Any) -> Any:
    if not rows:
        return like.detach().new_zeros(0, *like.shape)
    from .backward import _stack

    return _stack(rows)


def _columns(func: Callable[..., Any], inputs: object) -> Any:
    """The Jacobian by forward mode, a column for each element of the inputs."""
    several, given = _tensors(inputs, "inputs", "jacobian")
    found: list[list[Any]] = []
    several_out = False
    for position, x in enumerate(given):
        dual, batch = Level(), Level(x.numel())
        direction = enter(_unit(x), batch)
        values = [enter_dual(each, direction if at == position else None, dual) for at, each in enumerate(given)]
        with opened(batch), opened(dual):
            several_out, outputs = _tensors(func(*values), "outputs of the user-provided function", "jacobian")
        parts = []
        for out in outputs:
            tangent = tangent_of(out, dual)
            column = leave(out.detach() * 0 if tangent is None else tangent, batch)
            parts.append(column.movedim(0, -1).reshape(*out.shape, *x.shape))
        found.append(parts)
    by_output = [tuple(parts) if several else parts[0] for parts in zip(*found, strict=True)]
    return tuple(by_output) if several_out else by_output[0]


def hessian(
    func: Callable[..., Any],
    inputs: object,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a scalar function `func`, the Jacobian of its gradient; see `jacobian`.

    >>> import tritensor as torch
    >>> torch.autograd.functional.hessian(lambda x: (x ** 3).sum(), torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    several, given = _tensors(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def slopes(*values: Any) -> tuple[Any, ...]:
        run = _Run("hessian", func, tuple(values), True, strict, scalar=True)
        found = run.gradients(run.outputs, run.inputs, None, True)
        run.need(found, _INDEPENDENT)
        return tuple(found)

    found = jacobian(slopes, given, create_graph, strict, vectorize, outer_jacobian_strategy)
    return found if several else found[0][0]
