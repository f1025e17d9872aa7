"""The end of a backward pass at a leaf: it adds up contributions, runs hooks, and accumulates into `.grad`.

Contributions are arrays or tensors; hooks and `.grad` get tensors. Like the tape, this module uses tensors through
their methods only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from numpy import add, asarray, errstate, ndarray

from ..errors import ArgumentError, AutogradError
from ..ground.locks import lock
from ..memory.array import DeviceArray, owns_all
from ..memory.deferred import Deferred
from ..memory.sparse import Sparse
from ..types.formats import contiguous_format, suggested

# Set by tritensor.tensor: makes a tensor over an array. Between nodes whose gradients are arithmetic, gradients are
# plain arrays, which saves 0.3 us a node; hooks, other nodes and leaves get tensors.
wrap: Any = None


def as_tensors(gradient: Any) -> Any:
    """A gradient as a tensor; for a node with several outputs, a list of tensors."""
    if type(gradient) is ndarray:
        return wrap(gradient)
    if type(gradient) is list:
        return [wrap(part) if type(part) is ndarray else part for part in gradient]
    return gradient


def sum_of(total: Any, part: Any) -> Any:
    """The sum of two contributions: an array if both are arrays, otherwise a tensor."""
    if type(total) is type(part) is ndarray and total.shape == part.shape and total.dtype is part.dtype:
        try:
            return asarray(add(total, part))
        except (RuntimeWarning, FloatingPointError):
            pass  # the user's filter makes warnings errors; the operator below suppresses them
    total, part = as_tensors(total), as_tensors(part)
    if Sparse.used and total._data.__class__ is Sparse:
        total, part = part, total  # a dense tensor and a sparse one are added in this order
    return total + part


def add_to_leaf(entry: list[Any], gradient: Any) -> None:
    """Add a contribution to a leaf's entry: the sum, whether the sum may be changed in place, and waiting small arrays.

    A parameter that is used many times gets many small contributions. They are summed 32 at a time, in the order of
    arrival: 0.4 us each, against 1 us for separate additions.
    """
    total, owned, waiting = entry
    if type(total) is type(gradient) is ndarray and total.shape == gradient.shape and total.dtype is gradient.dtype:
        if gradient.size <= _SMALL:
            waiting.append(gradient)
            if len(waiting) == 32:
                _add_waiting(entry)
        elif owned:
            # the sum was made here, so it can be changed in place
            with errstate(all="ignore"):
                add(total, gradient, total)
        else:
            entry[0], entry[1] = sum_of(total, gradient), True
    else:
        _add_waiting(entry)
        entry[0], entry[1] = sum_of(entry[0], gradient), True


_ALONE = 1 << 18  # elements up to which `add_` does not share its work among threads
_SMALL = 256  # elements; for larger arrays, keeping 32 of them costs more memory than it is worth


def _add_waiting(entry: list[Any]) -> None:
    """Add the waiting contributions to a leaf's sum."""
    waiting = entry[2]
    if waiting:
        with errstate(all="ignore"):
            entry[0], entry[1], entry[2] = asarray(add.reduce([entry[0], *waiting])), True, []


def through_hook(hook: Callable[[Any], Any], gradient: Any) -> Any:
    """The gradient after a hook: what the hook returned, or the same gradient if that was None.

    Raises:
        ArgumentError: the hook returned something else. AutogradError: a tensor of another shape, dtype or device.
    """
    replaced = hook(gradient)
    if replaced is None:
        return gradient
    if not hasattr(replaced, "grad_fn"):
        raise ArgumentError(f"expected Variable, but hook returned '{type(replaced).__name__}'")
    name = getattr(hook, "__name__", type(hook).__name__)
    if replaced.dtype is not gradient.dtype or replaced.device != gradient.device:
        raise AutogradError(
            f"hook '{name}' has changed the type of value (was {gradient.type()} got {replaced.type()})",
            remedy="return a gradient of the same dtype on the same device, or None to leave it as it is",
        )
    if replaced.shape != gradient.shape:
        raise AutogradError(
            f"hook '{name}' has changed the size of value",
            f"the gradient has shape {tuple(gradient.shape)}, the hook returned {tuple(replaced.shape)}",
        )
    return replaced


def finish(leaf: Any, entry: list[Any], create_graph: bool, targets: dict[Any, int] | None, found: list[Any]) -> None:
    """Finish a leaf with the contributions in its entry."""
    _add_waiting(entry)
    total, entry[0] = entry[0], None
    total = as_tensors(total)  # rebinds the name: a reference to the array itself would make the leaf copy it
    _finish_leaf(leaf, total, create_graph, targets, found)


_accumulating = lock()


def _finish_leaf(
    leaf: Any, gradient: Any, create_graph: bool, targets: dict[Any, int] | None, found: list[Any]
) -> None:
    """Run a leaf's hooks on its complete gradient, then add it to `.grad`, or store it if the leaf is a target."""
    if targets is not None and leaf not in targets:
        return
    for hook in leaf._hooks or ():
        gradient = through_hook(hook, gradient)
    if targets is not None:
        found[targets[leaf]] = gradient
        return
    if not leaf._needs:
        return  # the flag was taken back
    # Threads that run backward passes may share a leaf; 50 ns. `with`, which an interrupt does not enter halfway.
    with _accumulating:
        accumulate(leaf, gradient, create_graph)
    for hook in leaf._post_hooks or ():
        if hook(leaf) is not None:
            raise AutogradError("Tensor post accumulate grad hooks should return None.")


def accumulate(leaf: Any, gradient: Any, create_graph: bool) -> None:
    """Add a gradient to `.grad`, in place unless the sum is recorded; the caller has turned recording off otherwise.

    A first gradient that nothing else references is taken over without a copy.
    """
    held = leaf._grad
    if held is not None:
        mixed = Sparse.used and held._data.__class__ is Sparse is not gradient._data.__class__
        if create_graph or leaf._node is not None or mixed:
            leaf._grad = sum_of(held, gradient)
        elif not _added(held, gradient):
            held.add_(gradient)
    elif create_graph:
        leaf._grad = gradient
    else:
        data = gradient._data
        # an unshared gradient has 4 references: of `finish`, `_finish_leaf`, this function, and getrefcount
        noted = data.__class__ is Deferred and data.value is None  # then the region references it, too
        shared = sys.getrefcount(gradient) > 4 + noted
        if data.__class__ is DeviceArray and not shared:
            # a view as functions of users return it, whose own tensor nobody has: its buffer says whether that is so
            gradient._origin = gradient._counter = None
        shared = shared or gradient._origin is not None or gradient._counter is not None
        if type(data) is ndarray and data.size <= _SMALL:  # 0.5 us against 8
            leaf._grad = wrap(data.copy("C"))
            return
        format, strides = contiguous_format, None
        if data.__class__ is DeviceArray and len(data.shape) > 3:  # the order of the leaf, for optimizers
            format = suggested(data.shape, leaf.stride())
            strides = None if format is contiguous_format else leaf.stride()
        if noted:
            owned = not shared and not data.shared and data.is_contiguous()
        else:
            owned = not shared and sys.getrefcount(data) <= 3 and owns_all(data, strides)
        leaf._grad = wrap(data if owned else gradient.detach().clone(memory_format=format)._data)
        if Deferred.used:
            Deferred.rules.keep(leaf._grad)


def _added(held: Any, gradient: Any) -> bool:
    """Add an array to another in place, where nothing stands against it; 1 us and the sum, against 5 of `add_`."""
    total, part = held._data, gradient._data
    if type(total) is not ndarray or type(part) is not ndarray or total.size > _ALONE or total.dtype is not part.dtype:
        return False
    flags = total.flags
    if total.shape != part.shape or not flags.c_contiguous or not flags.writeable or not flags.owndata:
        return False
    with errstate(all="ignore"):
        add(total, part, total)
    counter = held._counter = held._counter or [0]
    counter[0] += 1
    return True
