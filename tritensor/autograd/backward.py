"""`backward` and `grad`, the entry points of the backward pass, and the handle of a registered hook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import AutogradError, explain
from .leaves import accumulate
from .mode import set_grad_enabled
from .tape import propagate

__all__ = ["Handle", "backward", "grad"]


def _roots(tensors: Sequence[Any], gradients: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Check the starting tensors and their gradients; a missing gradient of a scalar is 1."""
    roots = []
    for position, (tensor, gradient) in enumerate(zip(tensors, gradients, strict=True)):
        if not tensor.requires_grad:
            raise AutogradError(
                explain(
                    f"element {position} of tensors does not require grad and does not have a grad_fn",
                    f"it has shape {tuple(tensor.shape)} and dtype {tensor.dtype}",
                    remedy="make a parameter of the computation with requires_grad=True, outside no_grad",
                )
            )
        if gradient is None:
            if tensor.numel() != 1:
                raise AutogradError(
                    explain(
                        "grad can be implicitly created only for scalar outputs",
                        f"the tensor has shape {tuple(tensor.shape)}",
                        remedy="reduce it first, as in loss.mean().backward(), or pass gradient=",
                    )
                )
            gradient = tensor.detach().new_ones(tensor.shape)
        elif gradient.shape != tensor.shape:
            raise AutogradError(
                explain(
                    f"Mismatch in shape: grad_output[{position}] has a shape of {gradient.shape} and "
                    f"output[{position}] "
                    f"has a shape of {tensor.shape}."
                )
            )
        roots.append((tensor._edge(), gradient))
    return roots


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
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
        propagate(roots, retain, create_graph)
        return
    leaves = _as_tuple(inputs)
    targets = {leaf._edge(): position for position, leaf in enumerate(leaves)}
    found = propagate(roots, retain, create_graph, targets)
    with set_grad_enabled(create_graph):
        for leaf, gradient in zip(leaves, found, strict=True):
            if gradient is not None:
                accumulate(leaf, gradient, create_graph)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of `outputs` with respect to `inputs`, returned and not accumulated.

    >>> import tritensor as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> (first,) = torch.autograd.grad(x ** 3, x, create_graph=True)
    >>> first, torch.autograd.grad(first, x)
    (tensor(27., grad_fn=<MulBackward0>), (tensor(18.),))
    """
    outputs, inputs = _as_tuple(outputs), _as_tuple(inputs)
    gradients = (None,) * len(outputs) if grad_outputs is None else _as_tuple(grad_outputs)
    for tensor in inputs:
        if not tensor.requires_grad:
            raise AutogradError(
                explain(
                    "One of the differentiated Tensors does not require grad",
                    f"it has shape {tuple(tensor.shape)} and dtype {tensor.dtype}",
                )
            )
    roots = _roots(outputs, gradients)
    keys = [tensor._edge() for tensor in inputs]
    targets = {key: position for position, key in enumerate(dict.fromkeys(keys))}
    retain = create_graph if retain_graph is None else retain_graph
    distinct = propagate(roots, retain, create_graph, targets)
    found = [distinct[targets[key]] for key in keys]
    for position, gradient in enumerate(found):
        if gradient is None and materialize_grads:
            found[position] = inputs[position].detach().new_zeros(inputs[position].shape)
        elif gradient is None and not allow_unused:
            raise AutogradError(
                explain(
                    "One of the differentiated Tensors appears to not have been used in the graph. Set "
                    "allow_unused=True "
                    "if this is the desired behavior.",
                    f"it is number {position} of inputs",
                )
            )
    return tuple(found)


class Handle:
    """The result of registering a hook: `remove()` removes the hook."""

    def __init__(self, hooks: list[Any], hook: Any) -> None:
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
