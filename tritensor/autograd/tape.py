"""The tape: the nodes that the forward pass records, and the propagation of gradients through them.

An operator that runs on a tensor requiring a gradient stores a `Node` in its result. A node holds its operator's
`Gradient` (which gradient functions to call and what they read), the edges to the nodes of its inputs (the edge to a
leaf is the tensor itself), and the values that the gradient functions read, each tensor with its version at that time.

`propagate` visits nodes from the newest to the oldest. A node is always newer than the nodes of its inputs, so when it
is visited its gradient is complete: a heap ordered by age replaces PyTorch's dependency count.

This module uses tensors through their methods only; it imports neither `Tensor` nor any operator.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from copy import copy
from functools import cache
from heapq import heappop, heappush, heappushpop
from itertools import count
from typing import Any

from numpy import dtype, ndarray

from ..errors import AutogradError
from ..types import dtypes
from . import watched
from .leaves import add_to_leaf, as_tensors, finish, sum_of, through_hook
from .mode import PASS_MODES, PassMode, recording
from .precision import casts, state, without_casts

next_age = count(1).__next__


class _Freed:
    """What a node saved before it was freed: a value of no version, for which a pass looks anyway."""

    _counter = None


_FREED: Any = (_Freed(),)
_NO_VERSION = (-1,)

# The line of the forward pass is the innermost one on the call stack outside this package.
_PACKAGE = __file__.rpartition("autograd")[0]


class _Inside(dict[str, bool]):
    def __missing__(self, filename: str) -> bool:
        return self.setdefault(filename, filename.startswith(_PACKAGE))


# True if a source file, by its name, belongs to tritensor itself
inside_package: Callable[[str], bool] = _Inside().__getitem__


def views_on(counter: list[int]) -> list[Any]:
    """The views among the tensors that share a counter: found by the garbage collector, in milliseconds."""
    return [each for each in gc.get_referrers(counter) if getattr(each, "_origin", None) is not None]


class Node:
    """A node of the autograd graph: one recorded operation.

    Attributes:
        backward: how to compute the gradients; anything with `name` and `run(node, gradient)`.
        next: the edge for each gradient that `run` returns: a node, a leaf tensor, or the `Slot` of a node with several
            outputs.
        saved: the values that the gradient functions read; tensors among them are checked against `versions`.
        reduce: per gradient the (shape, NumPy dtype) to reduce it to; None if forward did not broadcast or cast.
        age: the node's number; nodes are numbered in the order in which they are made.
        code, instruction: the place in the user's code that called the operator.
    """

    # Slots and no __init__: 80 ns for a node, against 220 with a dictionary. Whatever makes a node sets every field.
    __slots__ = (
        "__weakref__",
        "age",
        "backward",
        "code",
        "hooks",
        "instruction",
        "next",
        "outputs",
        "reduce",
        "saved",
        "versions",
    )

    backward: Any  # a Gradient
    next: tuple[Any, ...]
    age: int
    saved: tuple[Any, ...]
    versions: tuple[Any, ...] | None
    reduce: tuple[Any, ...] | None
    outputs: int
    hooks: dict[int, list[Any]] | None
    code: Any
    instruction: int

    def name(self) -> str:
        """PyTorch's name of the node, such as "MulBackward0"."""
        return str(self.backward.name_of(self))

    def __repr__(self) -> str:
        return f"<{self.name()}>"

    def where(self) -> str:
        """The line of the forward pass that recorded this node: `file.py:12 in forward`."""
        if self.code is None:
            return "an unknown line"
        line = self.code.co_firstlineno
        for start, end, number in self.code.co_lines():
            if start <= self.instruction < end and number is not None:
                line = number
        return f"{self.code.co_filename}:{line} in {self.code.co_name}"

    def mark(self, frame: Any) -> None:
        """Note the innermost line of the user's code, from a frame of the stack on, for messages."""
        code = frame.f_code
        while inside_package(code.co_filename):
            frame = frame.f_back
            if frame is None:
                break
            code = frame.f_code
        self.code, self.instruction = (None, 0) if frame is None else (code, frame.f_lasti)

    def check_saved(self) -> None:
        """Raise if the node's values were freed, or if a saved tensor was changed in place since."""
        if self.saved is _FREED:
            raise AutogradError(
                "Trying to backward through the graph a second time (or directly access saved tensors after they "
                "have already been freed). Saved intermediate values of the graph are freed when you call "
                ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
                "graph a second time or if you need to access saved tensors after calling backward.",
                f"{self.name()} was recorded at {self.where()}",
            )
        if self.versions is not None:
            for value, version in zip(self.saved, self.versions):
                if version is not None and (0 if value._counter is None else value._counter[0]) != version:
                    raise AutogradError(
                        "one of the variables needed for gradient computation has been modified by an inplace "
                        f"operation: [{value.type()} {list(value.shape)}], is at version {value._version}; "
                        f"expected version {version} instead.",
                        f"{self.name()} was recorded at {self.where()}",
                        remedy="change a copy (x.clone()) or use the operator that is not in place",
                    )


def record(
    backward: Any,
    next: tuple[Any, ...],
    saved: tuple[Any, ...] = (),
    versions: tuple[Any, ...] | None = None,
    reduce: tuple[Any, ...] | None = None,
    outputs: int = 1,
) -> Node:
    """Record an operation as a new node; see `Node` for the arguments."""
    node = Node()
    node.backward = backward
    node.next = next
    node.age = next_age()
    node.saved = saved
    node.versions, node.reduce = versions, reduce
    node.outputs, node.hooks = outputs, None
    node.mark(sys._getframe(1))
    if watched.on:
        watched.made(node)
    return node


class Gradient:
    """The computation of a node's gradients: `run(node, gradient)` returns one for each of the node's edges.

    Attributes:
        name: PyTorch's name of the node.
        ours: whether it runs none of the user's functions.
        frees: whether what a node saved is freed by its first run; of numbers alone, a second run may follow.
        arithmetic: whether there is a method `run_on_arrays(saved, array)` for plain arrays.
        reads: whether `run` reads what a node saved, and does not leave that to the user's functions.
    """

    __slots__ = ()

    name: str
    arithmetic = False
    frees = True
    ours = True
    reads = True

    def name_of(self, node: Node) -> str:
        """The name of a node with this gradient."""
        return self.name

    def renamed(self, name: str) -> Gradient:
        """The gradient for nodes of this name; itself if it has no `title`, and the same one for all calls."""
        return _renamed(self, name) if hasattr(self, "title") else self


@cache
def _renamed(gradient: Any, name: str) -> Any:
    other = copy(gradient)
    other.title = name
    return other


class _Nowhere(Gradient):
    """Passes no gradient on: of a view of a leaf that is a view itself, after a change in place, as in PyTorch."""

    __slots__ = ()
    name = "AsStridedBackward0"

    def run(self, node: Node, gradient: Any) -> tuple[Any, ...]:
        return ()


NOWHERE = _Nowhere()


class Slot:
    """One output of a node that has several."""

    __slots__ = ("index", "node")

    def __init__(self, node: Node, index: int) -> None:
        self.node = node
        self.index = index

    def __eq__(self, other: object) -> bool:
        return other.__class__ is Slot and self.node is other.node and self.index == other.index

    def __hash__(self) -> int:
        return hash((id(self.node), self.index))


def propagate(
    roots: Sequence[tuple[Any, Any]], retain_graph: bool, create_graph: bool, targets: dict[Any, int] | None = None
) -> list[Any]:
    """Propagate gradients from `roots` back to the leaves, or to `targets`.

    Args:
        roots: (edge, gradient) pairs to start from; an edge is a node, a leaf tensor or a `Slot`.
        retain_graph: keep saved values for another backward pass.
        create_graph: record the gradient computation itself.
        targets: {edge: position}; if given, nothing is accumulated into `.grad`, and the targets' gradients are
            returned by position.

    Returns:
        The targets' gradients (None for those without one); empty without targets.
    """
    if casts.on and state.types:  # the dtypes are those of the forward pass
        return without_casts(propagate, roots, retain_graph, create_graph, targets)
    found: list[Any] = [None] * len(targets or ())
    wanted = None if targets is None else _leading_to(roots, targets)
    counted = _contributions(roots) if leaves_are_watched and targets is None else None
    pending: dict[Any, Any] = {}
    leaves: dict[Any, list[Any]] = {}
    heap: list[tuple[int, Node]] = []
    create_graph = bool(create_graph)
    before, outer, current = recording.enabled, recording.selective, recording.current
    mode: Any = create_graph if bool(before) is create_graph else PASS_MODES[create_graph]
    recording.enabled, recording.selective = mode, targets is not None
    recording.current = {"roots": roots, "wanted": wanted, "targets": targets}
    try:
        for edge, gradient in roots:
            _deliver(edge, gradient, pending, leaves, heap)
        gradient = None
        _visit(heap, pending, leaves, mode, retain_graph, create_graph, wanted, counted, targets, found)
        for leaf in tuple(leaves):  # not the first of what is left, which is searched for among those taken out
            if leaf._hooks or leaf._post_hooks:
                recording.enabled = create_graph
            finish(leaf, leaves.pop(leaf), create_graph, targets, found)
            recording.enabled = mode
    finally:
        recording.enabled, recording.selective, recording.current = before, outer, current
    return found


def _visit(
    heap: list[tuple[int, Node]],
    pending: dict[Any, Any],
    leaves: dict[Any, list[Any]],
    mode: Any,
    retain_graph: bool,
    create_graph: bool,
    wanted: set[Node] | None,
    counted: dict[Any, int] | None,
    targets: dict[Any, int] | None,
    found: list[Any],
) -> None:
    """Run the nodes in `heap`, and those that they lead to, from the newest to the oldest.

    A leaf takes over a gradient without a copy only if nothing else references it. What the last node saved is among
    the references that end with this function: cross entropy on a device saves the gradient that it returns.
    """
    newest: Node | None = None
    observed = watched.around
    while newest is not None or heap:
        if newest is None:
            node = heappop(heap)[1]
        elif heap:
            node = heappushpop(heap, (-newest.age, newest))[1]
        else:
            node = newest
        newest = None
        gradient = pending.pop(node)
        backward = watched.observed(node.backward) if observed else node.backward
        if node.hooks is not None:
            recording.enabled = create_graph
            gradient = _hooked(node, gradient, wanted, targets)
            recording.enabled = mode
        if wanted is not None:
            _collect(node, as_tensors(gradient), targets, found)
            if node not in wanted:
                continue
        try:
            saved = node.saved
            if node.versions is not None:
                for value, version in zip(saved, node.versions):
                    # the comparison is inline for speed; check_saved repeats it and raises the full error
                    if version is not None and version != (0 if value._counter is None else value._counter[0]):
                        node.check_saved()
            parts = None
            if backward.arithmetic and not create_graph:
                array = gradient if type(gradient) is ndarray else gradient._data
                if type(array) is ndarray:
                    parts = backward.run_on_arrays(saved, array)
            if parts is None:
                if backward.ours:
                    parts = backward.run(node, as_tensors(gradient))
                else:
                    recording.enabled = create_graph
                    parts = backward.run(node, as_tensors(gradient))
                    recording.enabled = mode
            if saved and backward.frees > retain_graph:  # it frees, and nothing is retained
                node.saved, node.versions = _FREED, _NO_VERSION
        except Exception as error:
            _explain_failure(node, error)
            raise
        reduce = node.reduce
        for position, edge in enumerate(node.next):
            part = parts[position]
            if part is None:
                continue
            if reduce is not None:
                part = _fit(part, *reduce[position])
            # the common case of _deliver, inline: a call would take 150 ns of a 1 us node
            if type(edge) is Node and edge not in pending:
                pending[edge] = part
                # one node is kept outside the heap, so that a chain of nodes does not use the heap at all
                if newest is None:
                    newest = edge
                else:
                    heappush(heap, (-edge.age, edge))
            else:
                _deliver(edge, part, pending, leaves, heap)
        if counted:
            gradient = parts = part = array = value = None  # as after this function
            saved = ()
            _finish_completed(node, counted, leaves, mode, create_graph, found)


PassMode.propagate = propagate.__code__


def _explain_failure(node: Node, error: Exception) -> None:
    """Note at an error where the node that it comes from was recorded; raises the error about an unfitting gradient."""
    if type(error) in (ValueError, IndexError) and node.backward.ours:
        # NumPy's words about a gradient that has another shape than what was saved
        raise AutogradError(
            f"Function {node.name()} returned an invalid gradient at index 0 - its shape is not the forward's",
            f"it was recorded at {node.where()}; {error}",
            remedy="do not assign other shapes to .data of a tensor that is part of a graph",
        ) from None
    error.add_note(f"while computing the gradient of {node.name()}, recorded at {node.where()}")


# Whether any leaf ever had a hook that runs after the accumulation of its gradient. Such leaves are finished during the
# backward pass, as soon as their gradient is complete; to detect that takes a walk over the graph, 0.2 us a node.
leaves_are_watched = False


def _contributions(roots: Sequence[tuple[Any, Any]]) -> dict[Any, int]:
    """For each leaf with such a hook, the number of edges to it, each of which may contribute to its gradient."""
    counts: dict[Any, int] = {}
    for node in below(roots):
        for edge in node.next:
            owner = owner_of(edge)
            if owner.__class__ is not Node and owner._post_hooks:
                counts[owner] = counts.get(owner, 0) + 1
    return counts


def below(roots: Sequence[tuple[Any, Any]]) -> set[Node]:
    """The nodes that a pass from these roots may run."""
    stack = [owner for edge, _ in roots if (owner := owner_of(edge)).__class__ is Node]
    seen = set(stack)
    while stack:
        for edge in stack.pop().next:
            owner = owner_of(edge)
            if owner.__class__ is Node and owner not in seen:
                seen.add(owner)
                stack.append(owner)
    return seen


def _finish_completed(
    node: Node, counts: dict[Any, int], leaves: dict[Any, list[Any]], mode: Any, create_graph: bool, found: list[Any]
) -> None:
    """Count down the edges of a node that has run, and finish the leaves whose gradients are complete with it."""
    for edge in node.next:
        if edge in counts:
            counts[edge] -= 1
            if not counts[edge] and edge in leaves:
                recording.enabled = create_graph
                finish(edge, leaves.pop(edge), create_graph, None, found)
                recording.enabled = mode


def _deliver(
    edge: Any, gradient: Any, pending: dict[Any, Any], leaves: dict[Any, list[Any]], heap: list[tuple[int, Node]]
) -> None:
    """Add a contribution to the gradient of a leaf, of a node, or of one output of a node."""
    if edge.__class__ is Node:
        if edge not in pending:
            heappush(heap, (-edge.age, edge))
            pending[edge] = gradient
        else:
            pending[edge] = sum_of(pending[edge], gradient)
    elif edge.__class__ is Slot:
        if edge.node not in pending:
            heappush(heap, (-edge.node.age, edge.node))
            pending[edge.node] = [None] * edge.node.outputs
        slots = pending[edge.node]
        slots[edge.index] = gradient if slots[edge.index] is None else sum_of(slots[edge.index], gradient)
    elif edge not in leaves:
        leaves[edge] = [gradient, False, []]
    else:
        add_to_leaf(leaves[edge], gradient)


def _collect(node: Node, gradient: Any, targets: dict[Any, int] | None, found: list[Any]) -> None:
    """Store the gradients of those outputs of a node that are targets."""
    for index in range(node.outputs):
        position = targets.get(node if node.outputs == 1 else Slot(node, index))  # type: ignore[union-attr]
        if position is not None:
            found[position] = gradient if node.outputs == 1 else gradient[index]


def _hooked(node: Node, gradient: Any, wanted: set[Node] | None, targets: dict[Any, int] | None) -> Any:
    """The gradient as the hooks of a node's outputs leave it, if a pass for some targets needs the node or asks it."""
    if wanted is not None and node not in wanted and node not in map(owner_of, targets or ()):
        return gradient
    gradient = as_tensors(gradient)
    for slot, hooks in node.hooks.items():  # type: ignore[union-attr]
        for hook in tuple(hooks):
            if node.outputs == 1:
                gradient = through_hook(hook, gradient)
            elif gradient[slot] is not None:
                gradient[slot] = through_hook(hook, gradient[slot])
    return gradient


def _fit(gradient: Any, shape: tuple[int, ...], kind: dtype) -> Any:
    """Reduce a gradient to its input's shape (by a sum over broadcast dimensions) and dtype."""
    data = gradient if type(gradient) is ndarray else gradient._data
    if data.shape != shape:
        gradient = as_tensors(gradient).sum_to_size(shape)
    return gradient if data.dtype == kind else as_tensors(gradient).to(dtypes.of(kind))


def _leading_to(roots: Sequence[tuple[Any, Any]], targets: dict[Any, int]) -> set[Node]:
    """The nodes from which a target can be reached: only these need to run."""
    ends = {owner_of(edge) for edge in targets}
    leads: dict[Node, bool] = {}
    stack = [owner_of(edge) for edge, _ in roots]
    while stack:
        current = stack[-1]
        if current in leads or current.__class__ is not Node:
            stack.pop()
            continue
        below = [owner_of(edge) for edge in current.next]
        waiting = [owner for owner in below if owner.__class__ is Node and owner not in leads]
        if waiting:
            stack.extend(waiting)
            continue
        leads[current] = any(owner in ends or leads.get(owner, False) for owner in below)
        stack.pop()
    return {node for node, does in leads.items() if does}


def owner_of(edge: Any) -> Any:
    """The node or leaf that an edge belongs to."""
    return edge.node if edge.__class__ is Slot else edge
