"""`plot`: the graph that autograd recorded, as text, as Graphviz's source and as SVG."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import tritensor as torch
from tritensor import nn

needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.inner(x).relu()


TREE = """\
output ()
SumBackward0
AddBackward0
├ AddBackward0 #3, see below
ReluBackward0
AddmmBackward0 <- 1.inner.weight (3, 3), 1.inner.bias (3,)
AddBackward0 #3
├ MulBackward0 #8, see below
ReluBackward0
AddmmBackward0 <- 0.inner.weight (3, 3), 0.inner.bias (3,)
MulBackward0 #8 <- leaf (2, 3)"""


def residual() -> tuple[nn.Module, torch.Tensor]:
    model = nn.Sequential(Residual(), Residual())
    return model, model(torch.ones(2, 3, requires_grad=True) * 2).sum()


def test_the_tree() -> None:
    model, out = residual()
    graph = torch.plot(out, model.named_parameters())
    assert str(graph) == repr(graph) == TREE
    assert [kind for _, kind, _ in graph.nodes].count("leaf") == 5


def test_several_outputs_and_saved_tensors() -> None:
    w = torch.ones(2, requires_grad=True)
    graph = torch.plot({"a": w.exp(), "b": [w, torch.ones(3)]}, {"w": w}, saved=True)
    assert str(graph).splitlines() == [
        "output (2,)",
        "ExpBackward0 <- w (2,), saved (2,)",
        "output (2,) <- w (2,)",
        "output (3,)",
    ]
    q, r = torch.linalg.qr(torch.eye(3, requires_grad=True))
    assert str(torch.plot([q, r])).count("LinalgQrBackward0 #") == 2
    q.sum().backward()
    assert "saved" not in str(torch.plot(q, saved=True))  # they were freed


def test_graphviz_source() -> None:
    w = torch.ones(2, requires_grad=True)
    lines = torch.plot(w * w, {'a"b\\<i>&\nc': w}).dot.splitlines()
    assert lines[0].startswith("digraph {") and lines[-1] == "}"
    assert sum("->" in line for line in lines) == 3 and "1 -> 0" in lines
    assert any('label="a\\"b\\\\<i>&amp;\\nc (2,)"' in line for line in lines)


@needs_dot
def test_svg(tmp_path: Path) -> None:
    w = torch.ones(2, requires_grad=True)
    graph = torch.plot(w * 2, {'a"b\\<i>&\nc': w})
    texts = [each.text for each in ElementTree.fromstring(graph.svg()).iter("{http://www.w3.org/2000/svg}text")]
    assert sorted(texts) == sorted(["output (2,)", "MulBackward0", 'a"b\\<i>&', "c (2,)"])
    assert graph.svg() in graph._repr_html_()
    for name, start in (("g.svg", b"<?xml"), ("g.png", b"\x89PNG"), ("g.dot", b"digraph"), ("g.txt", b"output (2,)")):
        graph.save(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    with pytest.raises(RuntimeError, match="Graphviz failed"):
        graph.save(tmp_path / "g.nonsense")
    assert not (tmp_path / "g.nonsense").exists()


def test_without_graphviz(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    graph = torch.plot(torch.ones(2, requires_grad=True).exp())
    with pytest.raises(RuntimeError, match=r"dot is not on the PATH\n.*install Graphviz"):
        graph.svg()
    assert "ExpBackward0 &lt;- leaf" in graph._repr_html_() and "<pre" in graph._repr_html_()
    graph.save(tmp_path / "graph.txt")
    assert (tmp_path / "graph.txt").read_text(encoding="utf-8") == str(graph)


def test_deep_graphs() -> None:
    w = torch.ones(2, requires_grad=True)
    chain, blocks = w, w * 1
    for _ in range(5000):
        chain = chain * w
    for _ in range(1700):
        blocks = blocks + (blocks * 2).relu()
    graph = torch.plot(chain)
    assert len(graph.nodes) == 5002 and len(str(graph).splitlines()) == 5001 and graph.dot.count("->") == 10_001
    lines = str(torch.plot(blocks)).splitlines()
    assert len(lines) == 2 + 1700 * 4 and max(map(len, lines)) < 60
    assert "<pre" in graph._repr_html_()  # dot would take long
    product = w * 1
    for _ in range(60):
        product = (product * 2 + 1) * (product.exp() * 3)
    lines = str(torch.plot(product)).splitlines()
    assert sum("see below" in line for line in lines) == 60 and max(map(len, lines)) < 150


def test_nothing_to_draw() -> None:
    for output in (torch.ones(2), [], "text", nn.Linear(2, 2)):
        with pytest.raises(RuntimeError, match=r"plot: no tensor of the output \(a \w+\) requires a gradient"):
            torch.plot(output)


def test_the_package_has_the_function() -> None:
    assert callable(torch.plot) and "plot" in dir(torch) and torch.plot.__doc__
