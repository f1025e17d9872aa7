"""Drawings of the graph that autograd recorded: by Graphviz, and as text."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from ..autograd.tape import Node, Slot
from ..errors import AutogradError, explain
from .notebook import preformatted
from .tensor import tensors_in

_COLOURS = {"output": "#c5e8b7", "leaf": "#bcd9f5", "saved": "#ffd8a8", "step": "#e6e6e6"}
_DRAWN = 500  # nodes; notebooks show larger graphs as text, because dot takes longer than a reader waits


class Graph:
    """A graph that `plot` found: `print` draws a tree, notebooks show the SVG.

    Attributes:
        nodes: of each its label, its kind ("output", "step" for a recorded operation, "leaf", or "saved" for a tensor
            that a step keeps), and the numbers of those that it passes gradients to.
    """

    def __init__(self) -> None:
        self.nodes: list[tuple[str, str, list[int]]] = []

    @property
    def dot(self) -> str:
        """The source for Graphviz, with arrows in the direction of the forward pass."""
        lines = ['node [fontcolor=black fontname=monospace fontsize=11 shape=box style=filled] edge [color="#808080"]']
        for number, (label, kind, below) in enumerate(self.nodes):
            for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("&", "&amp;"), ("\n", "\\n")):
                label = label.replace(plain, escaped)
            lines.append(f'{number} [label="{label}" fillcolor="{_COLOURS[kind]}"]')
            lines += [f"{each} -> {number}" for each in below]
        return "\n".join(['digraph { bgcolor="transparent"', *lines, "}"])

    def rendered(self, format: str, timeout: float = 60) -> bytes:
        """Renders the graph by Graphviz's `dot`, in one of its formats, such as "svg", "png" or "pdf".

        Raises:
            RuntimeError: there is no `dot`, or it failed. subprocess.TimeoutExpired: it takes more seconds.
        """
        program = shutil.which("dot")
        if program is None:
            remedy = "install Graphviz (apt install graphviz, brew install graphviz), or print(graph)"
            raise RuntimeError(explain("plot: Graphviz's program dot is not on the PATH", remedy=remedy))
        done = subprocess.run([program, f"-T{format}"], input=self.dot.encode(), capture_output=True, timeout=timeout)
        if done.returncode:
            raise RuntimeError(explain("plot: Graphviz failed", done.stderr.decode(errors="replace").strip()))
        return done.stdout

    def svg(self) -> str:
        """The picture as SVG, by `rendered`."""
        return self.rendered("svg").decode()

    def save(self, path: str | Path) -> None:
        """Write the source (`.dot`), the tree (`.txt`), or for another suffix what `rendered` returns for it."""
        kind = Path(path).suffix[1:]
        text = {"dot": self.dot, "txt": str(self)}.get(kind)
        Path(path).write_bytes(self.rendered(kind) if text is None else text.encode())

    def __repr__(self) -> str:
        left = Counter(each for _, _, below in self.nodes for each in below)
        shared = {at for at, count in left.items() if count > 1}
        waiting = [(at, "") for at in reversed(range(len(self.nodes))) if self.nodes[at][1] == "output"]
        lines: list[str] = []
        while waiting:
            at, margin = waiting.pop()
            label, _, below = self.nodes[at]
            left[at] -= 1
            ends = ", ".join(self.nodes[each][0] for each in below if self.nodes[each][1] != "step")
            more = ", see below" if left[at] > 0 else f" <- {ends}" if ends else ""
            lines.append(f"{margin}{label}{f' #{at}' if at in shared else ''}{more}")
            # the last goes on without a margin of its own, so that a deep graph is not a wide one
            steps = [each for each in below if self.nodes[each][1] == "step"] if left[at] <= 0 else []
            rest = margin.replace("├", "│")[:80]
            waiting += reversed([(each, rest + "├ " * (place < len(steps))) for place, each in enumerate(steps, 1)])
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        drawn = len(self.nodes) <= _DRAWN and shutil.which("dot") is not None
        return f'<div style="overflow:auto">{self.svg()}</div>' if drawn else preformatted(str(self))


def plot(output: Any, params: Any = None, *, saved: bool = False) -> Graph:
    """Draws the autograd graph of a result, from its parameters on, as `torchviz.make_dot` does.

    >>> import tritensor as torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    >>> print(torch.plot(model(torch.ones(1, 3)).sum(), model.named_parameters()))
    output ()
    SumBackward0
    ReluBackward0
    AddmmBackward0 <- 0.weight (2, 3), 0.bias (2,)

    Args:
        output: a tensor, or a list, tuple or dict of some.
        params: names of leaves, a dict or pairs such as `model.named_parameters()`; others are called "leaf".
        saved: draw the tensors that steps keep for the backward pass.

    Raises:
        AutogradError: no tensor in the output requires a gradient.
    """
    if not any(value.requires_grad for value in tensors_in(output)):
        fact = f"plot: no tensor of the output (a {type(output).__name__}) requires a gradient, so there is no graph"
        raise AutogradError(fact, remedy="compute it from parameters that require one, outside of no_grad")
    names = {id(value): name for name, value in dict(params or {}).items()}
    graph, numbers, waiting = Graph(), dict[int, int](), list[Any]()

    def added(label: str, kind: str, owner: Any) -> int:
        graph.nodes.append((label if kind == "step" else f"{label} {tuple(owner.shape)}", kind, []))
        return len(graph.nodes) - 1

    def number_of(edge: Any) -> int:
        owner = edge.node if edge.__class__ is Slot else edge
        if id(owner) not in numbers:
            is_step = owner.__class__ is Node
            label, kind = (owner.name(), "step") if is_step else (names.get(id(owner), "leaf"), "leaf")
            numbers[id(owner)] = added(label, kind, owner)
            waiting.extend([owner] * is_step)
        return numbers[id(owner)]

    for value in tensors_in(output):
        below = graph.nodes[added("output", "output", value)][2]
        below += [number_of(value._edge())] * value.requires_grad
    while waiting:
        node = waiting.pop()
        below = graph.nodes[numbers[id(node)]][2]
        below += [number_of(edge) for edge in node.next]
        below += [added("saved", "saved", value) for value in tensors_in(node.saved if saved else ())]
    return graph
