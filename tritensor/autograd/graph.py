"""The tape as users see it: nodes of PyTorch's classes, with the leaves at their ends.

The tape itself has one class of nodes. Objects for `x.grad_fn` and `next_functions` are made when they are asked for;
each node has one, for as long as somebody has it.
"""

from __future__ import annotations

from functools import cache
from typing import Any
from weakref import WeakValueDictionary

from .tape import Node, Slot

__all__ = ["AccumulateGrad", "GraphNode", "shown"]


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

    def __init__(self, node: Any) -> None:
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

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


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

    next_functions = ()


_alive: WeakValueDictionary[int, GraphNode] = WeakValueDictionary()


def shown(owner: Any) -> GraphNode:
    """The object for a node of the tape, or for a leaf tensor."""
    found = _alive.get(id(owner))  # an object here keeps its owner alive, so the id is still the owner's
    if found is None:
        kind = _class_of(owner.name()) if owner.__class__ is Node else AccumulateGrad
        found = _alive[id(owner)] = kind(owner)
    return found


@cache
def _class_of(name: str) -> type[GraphNode]:
    return type(name.rpartition(":")[2], (GraphNode,), {"__slots__": (), "__module__": "tritensor.autograd.graph"})
