"""The autograd graph: nodes of PyTorch's classes with leaves at their ends, and hooks on saved tensors.

The tape itself has one class of nodes. Objects for `x.grad_fn` and `next_functions` are made when they are asked for;
each node has one, for as long as somebody has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from ..errors import AutogradError, require
from ..ground.locks import lock
from . import saving, tape
from .backward import Handle
from .mode import recording
from .tape import Slot
from .wrapped import Hooked

__all__ = ["AccumulateGrad", "GradientEdge", "GraphNode", "Node", "disable_saved_tensors_hooks", "get_gradient_edge"]
__all__ += ["increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks", "shown"]


class GraphNode:
    """A recorded operation. Its class has the name of PyTorch's for the operator, such as `MulBackward0`.

    >>> import tritensor as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> node = (x * 2).exp().grad_fn
    >>> type(node).__name__, node.next_functions[0][0].name()
    ('ExpBackward0', 'MulBackward0')
    """

    __slots__ = ("__weakref__", "_node")

    _node: Any

    def __init__(self, node: object) -> None:
        self._node = node

    def name(self) -> str:
        """PyTorch's name of the node, such as "MulBackward0"."""
        return str(self._node.name())

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes that this one passes gradients to, each with the index of its output; `AccumulateGrad` for leaves.

        PyTorch lists None for the inputs that need no gradient, here they are left out.
        """
        return tuple(
            (shown(edge.node), edge.index) if edge.__class__ is Slot else (shown(edge), 0) for edge in self._node.next
        )

    def where(self) -> str:
        """The line of the forward pass that recorded this node: `file.py:12 in forward`."""
        return str(self._node.where())

    def register_hook(self, fn: Callable[..., Any]) -> Handle:
        """Call `fn(grad_inputs, grad_outputs)` after the node has run; a result (if not None) replaces the first."""
        hooks = self._hooked().after
        hooks.append(fn)
        return Handle(hooks, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> Handle:
        """Call `fn(grad_outputs)` before a backward pass runs the node; what it returns (if not None) replaces them."""
        hooks = self._hooked().before
        hooks.append(fn)
        return Handle(hooks, fn)

    def _hooked(self) -> Hooked:
        node = self._node
        if not isinstance(node.backward, Hooked):
            node.backward = Hooked(node.backward)
        return node.backward

    def __getattr__(self, name: str) -> Any:
        """A value that the node saved, `_saved_self`, or its holder, `_raw_saved_self`; of a node of a
        `autograd.Function` the attributes of its context."""
        node = self._node
        if node.__class__ is tape.Node and name.startswith(("_saved_", "_raw_saved_")):
            names, labels = name.partition("saved_")[2], getattr(node.backward, "labels", ())
            for label in _LABELS.get(names, (names,)):
                if label in labels:
                    saved = SavedTensor(node, labels.index(label))
                    return saved if name[1] == "r" else saved.read()
        elif hasattr(getattr(node, "backward", None), "ctx"):
            return getattr(node.backward.ctx, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


# What operators here call the values that PyTorch's nodes save under these names
_LABELS = {
    "self": ("x", "input", "self"),
    "input": ("x", "input"),
    "other": ("y", "other"),
    "result": ("out", "result"),
}
Node = GraphNode  # the name in PyTorch


class SavedTensor:
    """The place in a node where it saved a value."""

    def __init__(self, node: tape.Node, index: int) -> None:
        self._node, self._index = node, index

    def read(self) -> Any:
        """The value, unpacked if hooks packed it."""
        self._node.check_saved()
        value = self._node.saved[self._index]
        return value.of(self._node) if value.__class__ is saving.Packed else value

    def register_hooks(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        """Pack the value by a hook, which another one unpacks for the backward pass.

        Raises:
            AutogradError: it was freed, or has hooks.
        """
        self._node.check_saved()
        words = "Calling register_hooks on a saved tensor whose hooks have already been set is forbidden."
        require(self._node.saved[self._index].__class__ is not saving.Packed, AutogradError, words)
        saving.pack(self._node, (pack_hook, unpack_hook), self._index)


class AccumulateGrad(GraphNode):
    """The end of the graph at a leaf, which adds to the `grad` of its `variable`."""

    __slots__ = ()

    @property
    def variable(self) -> Any:
        """The leaf."""
        return self._node

    def name(self) -> str:
        """The name in PyTorch's C++ code."""
        return "torch::autograd::AccumulateGrad"

    def register_hook(self, fn: Callable[..., Any]) -> Handle:
        """Call `fn((), grad_outputs)` when a backward pass has added to the leaf's gradient."""
        given: dict[int, Any] = {}  # until it has been added to `grad`
        kept = self._node.register_hook(lambda gradient: given.update({0: gradient}))
        added = self._node.register_post_accumulate_grad_hook(lambda leaf: fn((), (given.pop(0),)) and None)
        return _Handles([kept, added])

    def register_prehook(self, fn: Callable[..., Any]) -> Handle:
        """Call `fn(grad_outputs)` before a backward pass adds to the leaf's gradient."""
        return self._node.register_hook(lambda gradient: (fn((gradient,)) or (None,))[0])

    next_functions = ()


_alive: WeakValueDictionary[int, GraphNode] = WeakValueDictionary()


def shown(owner: object) -> GraphNode:
    """The graph node of a node of the tape, or of a leaf tensor."""
    found = _alive.get(id(owner))  # an object here keeps its owner alive, so the id is still the owner's
    if found is None:
        kind = _class_of(owner.name()) if owner.__class__ is tape.Node else AccumulateGrad
        found = _alive[id(owner)] = kind(owner)
    return found


@cache
def _class_of(name: str) -> type[GraphNode]:
    return type(name.rpartition(":")[2], (GraphNode,), {"__slots__": (), "__module__": "tritensor.autograd.graph"})


class GradientEdge(NamedTuple):
    """An edge of the graph, to be passed to `autograd.grad` and `backward` in place of the tensor that it is of."""

    node: GraphNode
    output_nr: int
    ownership_token: GraphNode | None = None

    @property
    def requires_grad(self) -> bool:
        """True, as of tensors whose edge it is."""
        return True

    def _edge(self) -> Any:
        owner = self.node._node
        return Slot(owner, self.output_nr) if owner.__class__ is tape.Node and owner.outputs > 1 else owner


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The gradient edge of a tensor, to be passed to `autograd.grad` or `backward` in its place.

    Raises:
        AutogradError: it requires none.
    """
    words = "It is not possible to get the gradient edge for a Tensor that does not require gradients"
    require(tensor.requires_grad, AutogradError, words)
    return GradientEdge(tensor.grad_fn or shown(tensor), tensor.output_nr)


def increment_version(tensor: Any) -> None:
    """Increment the version counters of tensors that were changed in place without an operator."""
    for each in (tensor,) if hasattr(tensor, "_count_change") else tensor:
        each._count_change()


class saved_tensors_hooks(saving.packed_by):
    """Pack tensors saved for the backward pass by one function, and unpack them by another, within a block.

    `pack_hook(tensor)` is called with each tensor that an operator or `ctx.save_for_backward` saves, and what it
    returns is kept in its place; the backward pass calls `unpack_hook` with that whenever it needs the tensor. Of
    blocks in blocks the innermost counts, in the thread that is in it.

    >>> import tritensor as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(lambda x: x.tolist(), torch.tensor):
    ...     y = (x * 3).exp().sum()
    >>> y.backward()
    >>> x.grad
    tensor([60.2566, 60.2566])

    Raises:
        AutogradError: at the start of the block, hooks are disabled; at an operator, the hook changed its input in
            place. ArgumentError: in backward, what `unpack_hook` returned is no tensor.
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        super().__init__((pack_hook, unpack_hook))
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook


class save_on_cpu(saved_tensors_hooks):
    """Save tensors for the backward pass on the CPU, within a block.

    Args:
        pin_memory: copy to pinned memory, from which it returns while the host goes on.
        device_type: accepted.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Any) -> tuple[Any, Any]:
            kept = tensor.cpu()
            return tensor.device, kept.pin_memory() if pin_memory and kept is not tensor else kept

        super().__init__(pack, lambda packed: packed[1].to(packed[0], non_blocking=pin_memory))


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Disable hooks on saved tensors in a block: they raise an error with this message.

    Raises:
        AutogradError: the block is within such hooks.
    """
    state = saving.state
    if any(state.pairs):
        raise AutogradError(error_message)
    before, state.disabled = state.disabled, error_message
    try:
        yield
    finally:
        state.disabled = before


class _Handles(Handle):
    def __init__(self, handles: Sequence[Any]) -> None:
        self.handles = handles

    def remove(self) -> None:
        for each in self.handles:
            each.remove()


def register_multi_grad_hook(tensors: Sequence[Any], fn: Callable[..., Any], *, mode: str = "all") -> Handle:
    """Call a function once in a backward pass with the gradients of several tensors.

    Args:
        tensors: those that a pass does not reach are not waited for.
        fn: called with the list of gradients, None for those that there are not.
        mode: "any" to call it with the first gradient that is there.

    Raises:
        ValueError: another mode.
    """
    require(mode in ("all", "any"), ValueError, "Expects mode to be one of ('all', 'any') but got {}", mode)
    edges, guard, key = [tape.owner_of(x._edge()) for x in tensors], lock(), object()

    def hook(position: int, gradient: object) -> None:
        running = recording.current
        with guard:
            if key not in running:
                running[key] = [[None] * len(edges), 1 if mode == "any" else _reached(running, edges)]
            known = running[key]
            known[0][position] = gradient
            known[1] -= 1
            complete = known[1] == 0
        if complete:
            fn(known[0] if mode == "all" else gradient)

    return _Handles(
        [x.register_hook(partial(hook, i)) for i, x in enumerate(tensors) if mode == "all" or x.requires_grad]
    )


def _reached(running: dict[Any, Any], owners: Sequence[Any]) -> int:
    """The number of nodes and leaves among these whose gradients a backward pass computes."""
    roots, wanted = running["roots"], running["wanted"]
    edges = [edge for node in (tape.below(roots) if wanted is None else wanted) for edge in node.next]
    reached = {tape.owner_of(edge) for edge in [*edges, *[edge for edge, _ in roots]]}
    if wanted is not None:
        reached &= {*wanted, *map(tape.owner_of, running["targets"])}
    return sum(owner in reached for owner in owners)
