"""In-place operations: PyTorch's rules, implemented once for every operator.

The operator runs out of place, the result is written into the tensor's memory, and the tensor takes over the result's
node. If the tensor is a view, its root (the tensor that it is a view of) gets a CopySlices node, whose value is the old
one with this region overwritten, and every view of the root computes its node again when it is next used. All tensors
on a storage share a version counter, so a gradient function that would read changed values raises instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd.gradients import Unmoved, unmoved
from ..autograd.levels import aligned
from ..autograd.mode import no_grad, recording
from ..autograd.names import node_of
from ..autograd.precision import casts, state, without_casts
from ..autograd.tape import Gradient, Node, record, views_on
from ..errors import AutogradError, DtypeError, ShapeError, unrecorded_view
from ..ground.arguments import UNEXPECTED, refuse_misuse
from ..host import copying
from ..memory.array import DeviceArray
from ..memory.deferred import Deferred
from ..memory.lifted import Lifted
from ..memory.sparse import Sparse
from ..runtime import replay
from ..tensors import Tensor, wrap
from ..tensors.history import follow
from ..types import dtypes, layout
from . import lifting
from .copying import copy_into


class OverlapError(ShapeError):
    """Several elements of a tensor that is to be written share memory."""


def check_history(x: Tensor) -> None:
    """Raise if `x` must not be changed in place because it is a leaf that requires grad or a view of one."""
    if x._needs and recording.enabled:
        view = x._origin is not None
        if x._origin is not None and x._origin[3] < 0:
            raise AutogradError(unrecorded_view("is being modified inplace"))
        if x._root()._node is None:
            raise AutogradError(
                f"{'a view of ' * view}a leaf Variable that requires grad is being used in an in-place operation.",
                remedy=f"do it under no_grad(), or on {'a view of ' * view}x.detach() or x.clone()",
            )


def check_writable(x: Tensor, noted: bool = False) -> None:
    """Raise if `x` must not be changed in place: see `check_history`; or if its memory overlaps or is read-only.

    Args:
        noted: the change is made by `write`, which may defer it.
    """
    check_history(x)
    if Deferred.used:
        Deferred.rules.before_change(x, noted)
    data = x._data if x._data.__class__ is DeviceArray or isinstance(x._data, Lifted) else x._host_array()
    if data.size and any(stride == 0 and extent > 1 for stride, extent in zip(data.strides, data.shape, strict=True)):
        raise OverlapError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory "
            "location. Please clone() the tensor before performing the operation."
        )
    if data.__class__ is np.ndarray and not data.flags.writeable:
        raise ShapeError("unsupported operation: the tensor's memory is read-only", remedy="clone() the tensor first")
    if data.__class__ is DeviceArray:
        _spare(x)


def _spare(x: Tensor) -> None:
    """Give the node of what was computed in the memory that is about to change a copy of the results that it saved."""
    root = x if x._origin is None else x._root()
    node = root._node
    for value in () if node is None or node.versions is None else node.saved:
        if value.__class__ is Tensor and value._data is root._data and value.__dict__.get(_THERE):
            counter = list(value._counter or [0])
            value._data, value._counter = wrap(value._data).clone()._data, counter


# An attribute of a saved result that was computed in place, on a device: on the CPU it has memory of its own, and may
# be changed again.
_THERE = "_computed_there"


def is_itself(x: Tensor, source: Tensor) -> bool:
    """True if `source` has the same elements in the same memory as `x`: to copy them is to do nothing."""
    if x is source:
        return True
    if isinstance(x._data, Lifted) or isinstance(source._data, Lifted):
        return False
    if x._data.shape != source._data.shape or x.dtype is not source.dtype or x.device is not source.device:
        return False
    return x.data_ptr() == source.data_ptr() and x.stride() == source.stride()


def in_place(x: Tensor, operator: Callable[..., Any], *arguments: Any, **metadata: Any) -> Tensor:
    """`x = operator(x, *arguments)` in `x`'s memory; all checks are made before any change.

    Raises:
        AutogradError: see `check_writable`. ShapeError: the result would be larger than `x`. DtypeError: the result's
            dtype category is above `x`'s.
    """
    if casts.on and state.types:
        return without_casts(in_place, x, operator, *arguments, **metadata)
    if getattr(operator, "name", "").startswith("logical_"):  # PyTorch does not know these as changes of a history
        with no_grad():
            check_writable(x)
            result = operator(x, *arguments, **metadata)
            _check_fits(x, result)
            write(x, result.to(x.dtype))
        return x
    check_writable(x, noted=True)
    sparse = Sparse.used and any(isinstance(each, Tensor) and each._data.__class__ is Sparse for each in arguments)
    if sparse and Sparse.rules.change(x, operator, arguments, metadata):
        return x
    if write_natively(x, operator, (x, *arguments), metadata):
        return x
    before = wrap(x._data)
    before._counter = x._counter = x._counter or [0]
    if x._needs and recording.enabled and x._edge() is not x:
        before._node, before._needs = x._node, True
    holders = sys.getrefcount(before)
    result = operator(before, *arguments, **metadata)
    _check_fits(x, result)
    if result.dtype is not x.dtype:
        result = result.to(x.dtype)
    if sys.getrefcount(before) > holders:
        # a node saved `before`: give it a copy of the old values
        before._data, before._counter = wrap(x._data).clone()._data, list(before._counter)
    del before  # so that it is not counted among the tensors that share the counter, see `_update_views`
    name = node_of(operator)
    needing = [each for each in (x, *arguments) if isinstance(each, Tensor) and each._needs]
    if recording.enabled and needing and not result._needs:
        # comparisons: the result does not change with the arguments, but requires grad as they do
        unmoved(name, result, *needing)
    write(x, result, name, replaced=False)
    return x


def write_natively(x: Tensor, operator: Callable[..., Any], inputs: tuple[Any, ...], metadata: dict[str, Any]) -> bool:
    """Let native code write an elementwise operator's result into a tensor of the CPU; False where nothing is done."""
    if x._data.__class__ is not np.ndarray or casts.on or getattr(operator, "family", "") != "elementwise":
        return False
    if recording.enabled and any(isinstance(each, Tensor) and each._needs for each in inputs):
        return False
    if not replay.write_natively(x._data, operator, inputs, metadata):  # type: ignore[arg-type]
        return False
    x._count_change()
    return True


def _check_fits(x: Tensor, result: Tensor) -> None:
    """Raise unless a result can be written to `x`."""
    if result.shape != x.shape:
        raise ShapeError(f"output with shape {list(x.shape)} doesn't match the broadcast shape {list(result.shape)}")
    if result.dtype.category > x.dtype.category:
        raise DtypeError(
            f"result type {_legacy_name(result)} can't be cast to the desired output type {_legacy_name(x)}",
            remedy="use the operator that is not in place",
        )


def in_place_form(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The in-place method of `function`, such as `Tensor.clamp_` of `clamp`."""

    def call(self: Tensor, *args: Any, **metadata: Any) -> Tensor:
        try:
            return in_place(self, function, *args, **metadata)
        except UNEXPECTED as error:
            refuse_misuse(call.__name__, function, (self, *args), metadata, error)
            raise

    call.__name__ = f"{function.__name__}_"
    call.__doc__ = f"In-place version of `{function.__name__}`: writes to the tensor's own memory."
    call.__wrapped__ = function  # type: ignore[attr-defined]  # its signature is the function's
    return call


class _Pass(Gradient):
    """The gradient of a plain copy: all of it to the source, and zeros to the values that the target had."""

    name = "torch::autograd::CopyBackwards"

    def __init__(self, target_needs: bool = False) -> None:
        self.target_needs = target_needs

    def run(self, node: Node, gradient: Any) -> tuple[Any, ...]:
        return (gradient.new_zeros(gradient.shape), gradient) if self.target_needs else (gradient,)


def write(x: Tensor, result: Tensor, name: str = _Pass.name, replaced: bool = True) -> None:
    """Copy `result` into `x`'s memory and give `x` its node; shape, dtype and device are equal.

    Args:
        name: of the node, if the elements no longer depend on anything.
        replaced: whether `result` was computed without `x`.
    """
    if result._needs and recording.enabled and x._origin is not None and x._origin[3] < 0:
        raise AutogradError(unrecorded_view("is being modified inplace"))
    before, noted = None, x._data.__class__ is Deferred
    if Sparse.used and result._data.__class__ is Sparse and x._data.__class__ is not Sparse:
        result = result.to_dense()
    if Sparse.used and x._data.__class__ is Sparse:
        x._data = result._data
    elif Deferred.used and Deferred.rules.rebind(x, result, replaced):
        pass
    elif isinstance(x._data, Lifted) or isinstance(result._data, Lifted):
        before, result = aligned((x._root(), result))  # whose gradients are summed over a batch that they are not of
        lifting.write(x, result)
    elif x._data.__class__ is DeviceArray:
        # `result` views the memory that is written: reading and writing it in one kernel would be a race on a GPU
        shared = result._data.buffer is x._data.buffer
        copy_into(x._data, result.detach().clone()._data if shared else result._data)
    else:
        copying.copy_into(x._host_array(), result._host_array())
    if noted:
        Deferred.rules.entered(x)  # what is computed from it is noted again
    _changed(x, result, name, replaced, before)


def _changed(x: Tensor, result: Tensor, name: str, replaced: bool, before: Tensor | None = None) -> None:
    """Count a change of `x`, and give it the node of what was written into it."""
    counter = x._counter = x._counter or [0]
    counter[0] += 1
    if recording.enabled and (result._needs or x._needs):
        first = x if x._origin is None else x._root()
        holders = 0 if first._needs else sys.getrefcount(counter) - _UNSHARED
        _rebase(x, result, name, replaced, first if before is None else before)
        if holders:
            _update_views(x, counter, holders)


def computed_there(x: Tensor, operator: Any, inputs: tuple[Any, ...], metadata: dict[str, Any]) -> bool:
    """Compute an elementwise operator of `x` and others in the memory of `x`, on a device, and record it.

    Returns:
        Whether it was done: not where its gradient needs the old values, nor in a view.
    """
    mask = tuple([isinstance(value, Tensor) and value._needs for value in inputs])
    if x._origin is not None or casts.on or x.dtype.category < dtypes.FLOATING or not operator.differentiable:
        return False
    backward = operator.backwards.get(mask) or operator.backward_for(mask)
    if backward is None or any(kind == "inputs" or (kind, key) == ("input", 0) for kind, key in backward.capture):
        return False
    check_writable(x, noted=True)
    before = wrap(x._data)
    before._counter = x._counter = x._counter or [0]
    if x._needs and x._edge() is not x:
        before._node, before._needs = x._node, True
    noted: tuple[tuple[Any, ...], dict[str, Any]] = (before, *inputs[1:]), metadata
    if metadata or operator.metadata or len(inputs) != len(operator.inputs):  # with what was left out
        call = operator.prepared(*noted)
        noted = call.inputs, call.metadata
    if not operator.compute_in_place(inputs, metadata):
        return False
    result = wrap(x._data)
    result._counter = x._counter
    result._counter[0] += 1  # what the node saves are the new values
    operator.record((result,), *noted)
    result._counter[0] -= 1
    for value in result._node.saved if result._needs else ():
        if value.__class__ is Tensor and value._data is x._data:
            value.__dict__[_THERE] = True
    del before, noted
    _changed(x, result, node_of(operator), replaced=False)
    return True


def _references_without_tensors() -> int:
    counter = [0]
    return sys.getrefcount(counter)


# sys.getrefcount of a counter that only a local variable references, no tensor; it differs between Python versions.
_UNSHARED = _references_without_tensors()


def _update_views(x: Tensor, counter: list[int], holders: int) -> None:
    """Update the views of a tensor that has just got its first node.

    A view that was made earlier has `_needs` False, and operators do not check whether that is still so, because the
    check would slow down every call. The garbage collector finds the views by the counter they share; that takes
    milliseconds, but is done only if the storage has tensors other than `x` and those that it is a view of.
    """
    if holders > 1 + len(x._chain()):
        for other in views_on(counter):
            if not other._needs:
                other._edge()


def _rebase(x: Tensor, result: Tensor, name: str, replaced: bool, before: Tensor) -> None:
    """Give `x` the node of `result`; if `x` is a view, give its root a node that overwrites the region.

    Args:
        before: the root, in all levels that it is in since the change.
    """
    if x._origin is not None and x.dtype.category >= dtypes.FLOATING:
        root, chain = x._root(), x._way()
        edges = [before._edge()] if root._needs else []
        if result._needs:
            edges.append(result._edge())
        backward = _Overwrite(chain, root.stride(), root._needs, result._needs)
        root._replace_node(record(backward, tuple(edges)))
        root._needs = True
        x._edge()
        view = x._origin[0]
        while view._origin is not None:  # operators do not look whether a view needs a gradient since the change
            view._needs = True  # and get its node anew when they ask for its edge
            view = view._origin[0]
    else:
        if not result._needs:
            node: Any = record(Unmoved(name, [x]), (before._edge(),))
        elif x._needs and replaced:
            node = record(_Pass(True), (before._edge(), result._edge()))
        elif result._node is None:
            # a leaf that was copied without an operator: pass x's gradient on to it
            node = record(_Pass(), (result._edge(),))
        else:
            node = result._node
        x._replace_node(node)
        x._needs = True


class _Overwrite(Gradient):
    """The gradient of a tensor of which a view's region was overwritten."""

    name = "torch::autograd::CopySlices"

    def __init__(self, chain: list[Any], strides: tuple[int, ...], root_needs: bool, value_needs: bool) -> None:
        self.chain, self.root_needs, self.value_needs = chain, root_needs, value_needs
        self.order = tuple(sorted(range(len(strides)), key=lambda dim: -strides[dim]))  # of the root's dimensions

    def run(self, node: Node, gradient: Any) -> list[Any]:
        """The gradient with zeros in the region (for the old values), and the region's part of it (for the new)."""
        parts = []
        # in the root's order, of which the chain's views exist
        gradient = gradient.permute(self.order).contiguous().permute(layout.invert(self.order))
        if self.root_needs:
            rest = gradient.clone()
            follow(self.chain, rest).zero_()
            parts.append(rest)
        if self.value_needs:
            parts.append(follow(self.chain, gradient).clone())
        return parts


def _legacy_name(x: Tensor) -> str:
    return str(x.type()).rpartition(".")[2].removesuffix("Tensor")
