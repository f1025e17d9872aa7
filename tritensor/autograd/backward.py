"""`backward` and `grad`, the entry points of the backward pass, and the handle of a registered hook."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy import ndarray, ones

from ..errors import AutogradError, RangeError, require, warn
from ..memory.deferred import Deferred
from ..memory.lifted import Lifted
from .leaves import accumulate
from .levels import in_all, levels_of
from .mode import recording, set_grad_enabled
from .tape import propagate

_stack: Any = None


def joins_by(stack: Any) -> None:
    """Set the function that stacks tensors, which is above this room."""
    global _stack
    _stack = stack


def _roots(tensors: Sequence[Any], gradients: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Check the starting tensors and their gradients; a missing gradient of a scalar is 1."""
    roots = []
    for position, (tensor, gradient) in enumerate(zip(tensors, gradients, strict=True)):
        if not hasattr(tensor, "_data"):  # a GradientEdge, of which no shape is known
            require(gradient is not None, AutogradError, "grad can be implicitly created only for scalar outputs")
            roots.append((tensor._edge(), gradient))
            continue
        if not tensor.requires_grad:
            raise AutogradError(
                f"element {position} of tensors does not require grad and does not have a grad_fn",
                f"it has shape {tuple(tensor.shape)} and dtype {tensor.dtype}",
                remedy="make a parameter of the computation with requires_grad=True, outside no_grad",
            )
        if gradient is None:
            if tensor.numel() != 1:
                raise AutogradError(
                    "grad can be implicitly created only for scalar outputs",
                    f"the tensor has shape {tuple(tensor.shape)}",
                    remedy="reduce it first, as in loss.mean().backward(), or pass gradient=",
                )
            data = tensor._data
            if data.dtype.kind == "c":
                words = "grad can be implicitly created only for real scalar outputs but got torch."
                remedy = "take abs() or .real first, or pass gradient="
                raise AutogradError(f"{words}{tensor.dtype.name}", remedy=remedy)
            # an array is a gradient too; 0.6 us against 4
            gradient = ones(data.shape, data.dtype) if type(data) is ndarray else tensor.new_ones(tensor.shape)
        elif gradient.shape != tensor.shape:
            raise AutogradError(
                f"Mismatch in shape: grad_output[{position}] has a shape of {gradient.shape} and output[{position}] "
                f"has a shape of {tensor.shape}."
            )
        if isinstance(tensor._data, Lifted) and not isinstance(gradient, ndarray):
            # inside of forward mode the gradient has a tangent too, if only of zeros
            gradient = in_all(gradient, levels_of([tensor]))
        roots.append((tensor._edge(), gradient))
    return roots


def _propagated(*given: Any) -> list[Any]:
    """A backward pass; what a compiled function's part of it has noted is computed in the end."""
    try:
        found = propagate(*given)
    except BaseException:
        if recording.current is None:
            recording.waiting = ()
        if Deferred.used:
            Deferred.rules.end_pass(failed=True)
        raise
    if Deferred.used:
        Deferred.rules.end_pass()
    if recording.waiting and recording.current is None:
        waiting, recording.waiting = recording.waiting, ()
        for each in waiting:
            each()
    return found


def queue_callback(callback: Callable[[], None]) -> None:
    """Call a function once the backward pass that is running in this thread has ended, the outermost if one runs inside
    of another; it is forgotten if the pass fails."""
    recording.waiting = (*recording.waiting, callback)


def _as_tuple(value: object) -> tuple[Any, ...]:
    several = isinstance(value, (list, tuple)) and not hasattr(value, "requires_grad")  # no GradientEdge
    return tuple(value) if several else (value,)  # type: ignore[arg-type]


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: object = None,
) -> None:
    """Add the gradients of `tensors` to the `.grad` of the leaves (of `inputs` only, if given).

    Raises:
        AutogradError: a tensor without a graph, a non-scalar without its gradient, a graph that was freed, a saved
            tensor that was changed in place; each with PyTorch's first words and the line of the forward pass.
    """
    tensors = _as_tuple(tensors)
    gradients = (None,) * len(tensors) if grad_tensors is None else _as_tuple(grad_tensors)
    roots = _roots(tensors, gradients)
    retain = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        _propagated(roots, retain, create_graph)
        return
    leaves = _as_tuple(inputs)
    targets = {leaf._edge(): position for position, leaf in enumerate(leaves)}
    found = _propagated(roots, retain, create_graph, targets)
    with set_grad_enabled(create_graph):
        for leaf, gradient in zip(leaves, found, strict=True):
            if gradient is not None:
                accumulate(leaf if hasattr(leaf, "_data") else leaf.node.variable, gradient, create_graph)


def _pass(outputs: Any, inputs: Any, gradients: Sequence[Any], retain: bool, create_graph: bool) -> list[Any]:
    """The gradients with respect to `inputs` by one backward pass, None for those that were not used."""
    roots = _roots(outputs, gradients)
    keys = [tensor._edge() for tensor in inputs]
    targets = {key: position for position, key in enumerate(dict.fromkeys(keys))}
    distinct = _propagated(roots, retain, create_graph, targets)
    return [distinct[targets[key]] for key in keys]


def _rows(outputs: Sequence[Any], gradients: Sequence[Any]) -> list[list[Any]]:
    """The gradients of each pass of `grad(is_grads_batched=True)`."""
    counts = []
    for position, (tensor, gradient) in enumerate(zip(outputs, gradients, strict=True)):
        if gradient is None:
            raise AutogradError(
                "grad can be implicitly created only for scalar outputs",
                f"with is_grads_batched=True output {position} needs its gradient too",
                remedy="pass one of shape (n, *output.shape) for each output in grad_outputs",
            )
        if gradient.ndim == 0 or gradient.shape[1:] != tensor.shape:
            raise AutogradError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output[{position}] has a shape of "
                f"{tuple(gradient.shape)} and output[{position}] has a shape of {tuple(tensor.shape)}."
            )
        counts.append(gradient.shape[0])
    if len(set(counts)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {counts} for the "
            "mapped dimension"
        )
    if not counts[0]:
        raise RangeError("index 0 is out of bounds for dimension 0 with size 0")
    return [[gradient[index] for gradient in gradients] for index in range(counts[0])]


def grad(
    outputs: Any,
    inputs: object,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of `outputs` with respect to `inputs`, returned and not accumulated.

    With `is_grads_batched` each of `grad_outputs` has a first dimension more, and so have the results: one backward
    pass for each index.

    >>> import tritensor as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> (first,) = torch.autograd.grad(x ** 3, x, create_graph=True)
    >>> first, torch.autograd.grad(first, x)
    (tensor(27., grad_fn=<MulBackward0>), (tensor(18.),))
    """
    if not only_inputs:
        words = "only_inputs argument is deprecated and is ignored now (defaults to True)."
        warn(f"{words} To accumulate gradient for other parts of the graph, please use torch.autograd.backward.")
    outputs, inputs = _as_tuple(outputs), _as_tuple(inputs)
    gradients = (None,) * len(outputs) if grad_outputs is None else _as_tuple(grad_outputs)
    for tensor in inputs:
        if not tensor.requires_grad:
            raise AutogradError(
                "One of the differentiated Tensors does not require grad",
                f"it has shape {tuple(tensor.shape)} and dtype {tensor.dtype}",
            )
    retain = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        parts = []
        rows = _rows(outputs, gradients)
        for index, row in enumerate(rows):
            parts.append(_pass(outputs, inputs, row, retain or index < len(rows) - 1, create_graph))
        found = [None if part[0] is None else _stack(part) for part in zip(*parts, strict=True)]
    else:
        found = _pass(outputs, inputs, gradients, retain, create_graph)
    for position, gradient in enumerate(found):
        if gradient is None and materialize_grads:
            found[position] = inputs[position].detach().new_zeros(inputs[position].shape)
        elif gradient is None and not allow_unused:
            raise AutogradError(
                f"The differentiated Tensor at index {position} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior."
            )
    return tuple(found)


class Handle:
    """The result of registering a hook: `remove()` removes the hook."""

    def __init__(self, hooks: list[Any], hook: Callable[..., Any]) -> None:
        self._hooks = hooks
        self._hook = hook

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()
