"""The part of Tensor that is about gradients: the flag, `.grad`, hooks, and the edges of the graph."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numpy import ndarray

from .. import autograd
from ..autograd import leaves, tape
from ..autograd.graph import GraphNode, shown
from ..errors import ArgumentError, AutogradError, DtypeError, unrecorded_view, warn
from ..ground.arguments import check_flag
from ..memory.deferred import Deferred
from ..memory.lifted import Lifted
from ..types import dtypes

if TYPE_CHECKING:
    Tensor = Any  # the class that this is a part of, which imports this file


class History:
    """The part of Tensor that is about gradients."""

    if not TYPE_CHECKING:
        __slots__ = ()  # Tensor has them
    else:
        _data: Any
        _pinned: bool
        _version: int
        _forget: Any
        dtype: dtypes.dtype
        device: Any
        shape: Any

        # These are slots of Tensor.
        _needs: bool  # whether a gradient is needed
        # The node that recorded the tensor, which gets its gradient; None for a leaf.
        _node: Any
        # [version], shared by all tensors on one storage. None until a view is made or the tensor is changed in place.
        _counter: list[int] | None
        # How a view was made, to make a new node for it after an in-place change: (parent, view operator, its
        # arguments, the version when the node was made; its complement for a view that was made without recording, and
        # its views).
        _origin: tuple[Tensor, Any, tuple[Any, ...], int] | None

    _grad: Any = None
    _hooks: list[Any] | None = None
    _post_hooks: list[Any] | None = None
    _retains: _Keeper | None = None
    _own: bool = False  # of a view: whether it was asked to require grad, and does not because its root does

    @property
    def is_leaf(self) -> bool:
        """True if the tensor was made by the user and not by a recorded operator."""
        if self._origin is not None:
            self._refresh(self._origin)
        return self._node is None

    @property
    def grad_fn(self) -> GraphNode | None:
        """The node that recorded how the tensor was made, None for a leaf."""
        edge = self._edge()
        return None if self._node is None else shown(edge.node if isinstance(edge, autograd.Slot) else edge)

    @property
    def output_nr(self) -> int:
        """The number of the output of `grad_fn` that the tensor is."""
        return self._node.index if isinstance(self._node, autograd.Slot) else 0

    @property
    def requires_grad(self) -> bool:
        """True if operators on the tensor are recorded so that a gradient can be computed."""
        if self._origin is not None and self._node is None and not self._own:
            self._needs = self._root()._needs
        return self._needs

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise AutogradError("requires_grad must be a bool", f"got {value!r}")
        self._require(value, 5)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set `requires_grad` and return the tensor."""
        check_flag("requires_grad_", "requires_grad", requires_grad, 1)
        self._require(requires_grad, 4)
        return self

    def _require(self, value: bool, references: int) -> None:
        if value and self.dtype.category < dtypes.FLOATING:
            raise DtypeError(
                "only Tensors of floating point and complex dtype can require gradients",
                f"the tensor has dtype {self.dtype}",
                remedy="convert it with .to(dtype)",
            )
        if not value and self._node is not None:
            raise AutogradError(
                "you can only change requires_grad flags of leaf variables.",
                remedy="take x.detach() for a tensor that is not part of the graph",
            )
        if self._origin is not None:
            self._own = value
            value = value or self._root()._needs
        elif value and not self._needs and self._counter is not None and sys.getrefcount(self) > references:
            # a view refers to its root: there are more references than those of a caller that has no view
            for other in tape.views_on(self._counter):
                other._needs = other._needs or other._root() is self
        self._needs = value

    @property
    def grad(self) -> Tensor | Any:
        """The gradient that `backward` accumulated; None unless the tensor is a leaf or `retain_grad()` was called."""
        if self._node is not None and self._grad is None and not self._retains:
            warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
                "attribute won't be populated during autograd.backward(). Call .retain_grad() on it if you "
                "want it; note that x.to(device) of a leaf is not a leaf."
            )
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, History):
                raise ArgumentError(
                    f"assigned grad expected to be a Tensor or None but got grad of type {value.__class__.__name__}"
                )
            if value.device != self.device:
                raise AutogradError(
                    f"assigned grad has data located on a different device: {value.device}, the tensor is on "
                    f"{self.device}",
                    remedy=f"move the gradient with .to({str(self.device)!r})",
                )
            if value.shape != self.shape:
                raise AutogradError(
                    f"assigned grad has data of a different size: {list(value.shape)}, the tensor has "
                    f"{list(self.shape)}"
                )
            if value.dtype is not self.dtype:
                raise AutogradError(
                    f"assigned grad has data of a different type: {value.dtype}, the tensor has {self.dtype}"
                )
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    @property
    def data(self) -> Tensor:
        """The same memory without history; autograd does not notice changes to it."""
        other = leaves.wrap(self._data)
        if Deferred.used and other._data.__class__ is Deferred:
            other._data.shared = True
            Deferred.rules.keep(other)
        return other

    @data.setter
    def data(self, value: Tensor | None) -> None:
        if not isinstance(value, History):
            raise ArgumentError(f"Variable data has to be a tensor, but got {value.__class__.__name__}")
        if self._needs and value.dtype.category < dtypes.FLOATING:
            raise DtypeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        self._data = value._data
        self._forget()

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Add the gradient of the tensor to the `.grad` of the leaves that it was computed from."""
        autograd.backward(self, gradient, retain_graph, create_graph, inputs)

    def _count_change(self) -> None:
        """Count a change in place: saved values of all tensors on the storage are stale now."""
        counter = self._counter = self._counter or [0]
        counter[0] += 1

    def detach(self) -> Tensor:
        """Detach from the graph: a tensor on the same memory; autograd notices in-place changes of either."""
        data = self._data
        if data.__class__ is not ndarray and isinstance(data, Lifted):
            data = data.constant()
        other = leaves.wrap(data)
        if Deferred.used:
            Deferred.rules.keep(other)
        counter = self._counter
        if counter is None:
            counter = self._counter = [0]
        other._counter = counter
        if self._pinned:
            other._pinned = True
        return other

    def _without_node(self) -> Tensor:
        """`detach` that keeps the tangents of forward mode."""
        other = leaves.wrap(self._data)
        if self._counter is None:
            self._counter = [0]
        other._counter = self._counter
        other._pinned = self._pinned
        return other

    def detach_(self) -> Tensor:
        """Detach from the graph in place: drop the tensor's history."""
        if self._origin is not None:
            raise AutogradError("Can't detach views in-place. Use detach() instead.")
        self._node, self._needs = None, False
        return self

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> autograd.Handle:
        """Call `hook(gradient)` with the tensor's gradient; a tensor that it returns replaces the gradient."""
        if not self._needs:
            raise AutogradError("cannot register a hook on a tensor that doesn't require gradient")
        edge = self._edge()
        if edge is self:
            if self._hooks is None:
                self._hooks = []
            hooks = self._hooks
        else:
            hooks = _hooks_of(edge)
        hooks.append(hook)
        return autograd.Handle(hooks, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> autograd.Handle:
        """Call `hook(tensor)` after a backward pass has added to the leaf's `.grad`."""
        if self._node is not None or not self._needs:
            raise AutogradError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        if self._post_hooks is None:
            self._post_hooks = []
        self._post_hooks.append(hook)
        tape.leaves_are_watched = True
        return autograd.Handle(self._post_hooks, hook)

    def retain_grad(self) -> None:
        """Keep the gradient of a tensor that is not a leaf in `.grad`."""
        if not self._needs:
            raise AutogradError("can't retain_grad on Tensor that has requires_grad=False")
        if self._node is None or self._retains:
            return
        self._retains = _Keeper(self)
        self.register_hook(self._retains)

    def _replace_node(self, node: Any) -> None:
        """Take the node of a change in place, of which `retain_grad` keeps the gradient from now on."""
        if self._retains and node is not self._node:
            if self._node is not None:
                _hooks_of(self._node).remove(self._retains)
            if node is not None:
                _hooks_of(node).append(self._retains)
        self._node = node

    @property
    def retains_grad(self) -> bool:
        """True if `retain_grad()` was called on a tensor that is not a leaf."""
        return self._retains is not None

    def _root(self) -> Tensor:
        """The tensor that this one is a view of, not a view itself; or this one."""
        root: Any = self
        while root._origin is not None:
            root = root._origin[0]
        return root

    def _chain(self) -> list[tuple[Any, tuple[Any, ...]]]:
        """The view operators and their arguments that lead from the root to this tensor."""
        chain: list[tuple[Any, tuple[Any, ...]]] = []
        view: Any = self
        while view._origin is not None:
            chain.append((view._origin[1], view._origin[2]))
            view = view._origin[0]
        return chain[::-1]

    def _way(self) -> list[tuple[Any, tuple[Any, ...]]]:
        """The shortest chain known of view operators that leads from the root to this tensor."""
        chain = self._chain()
        return chain[0][0].way(chain, self._root(), self)

    def _edge(self) -> Any:
        """The edge for the tensor's gradient: its node, a `Slot` if that has several outputs, or the leaf itself."""
        origin = self._origin
        if origin is not None:
            if (0 if self._counter is None else self._counter[0]) not in (origin[3], ~origin[3]):
                self._refresh(origin)
            if self._node is None and self._needs and not self._own:
                return tape.record(tape.NOWHERE, ())  # the flag is the root's, and PyTorch passes no gradient on
        return self._node or self

    def _refresh(self, origin: tuple[Tensor, Any, tuple[Any, ...], int]) -> None:
        """Make a new node for a view whose memory has been changed in place since its node was made."""
        parent, operator, arguments, stamp = origin
        version = self._version
        if version in (stamp, ~stamp):
            return
        needed = self._root()._needs
        if not needed and self._node is None:
            return  # and still stale, if the root ever requires grad
        if stamp < 0 and needed:
            raise AutogradError(unrecorded_view("its base or another view of its base has been modified inplace"))
        self._origin = (parent, operator, arguments, version)
        if not needed:
            # of a leaf that is a view itself: PyTorch passes no gradient on after a change
            self._replace_node(tape.record(tape.NOWHERE, ()))
            return
        try:
            with autograd.enable_grad():
                again = follow(self._way(), self._root())
        except (IndexError, ValueError, RuntimeError):
            return  # the root was given data of another shape, of which there is no such view
        self._replace_node(again._node)
        self._needs = True


def follow(chain: list[tuple[Any, tuple[Any, ...]]], tensor: Any) -> Any:
    """The view of a tensor that a chain of view operators leads to."""
    for view, arguments in chain:
        tensor = view(tensor, *arguments)
    return tensor


class _Keeper:
    """The hook of `retain_grad`. The node that owns it is the tensor's, so it does not own the tensor."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = weakref.ref(tensor)

    def __call__(self, gradient: Tensor) -> None:
        tensor = self.tensor()
        if tensor is not None:
            tensor._grad = gradient if tensor._grad is None else tensor._grad + gradient


def _hooks_of(edge: Any) -> list[Any]:
    """The hooks of a node's output."""
    node, index = (edge.node, edge.index) if isinstance(edge, autograd.Slot) else (edge, 0)
    if node.hooks is None:
        node.hooks = {}
    return node.hooks.setdefault(index, [])
