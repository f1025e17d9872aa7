"""jedi, which completes in notebooks, IPython and several editors, knows names, types, signatures and documentation."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import tritensor

from .checking import PACKAGE, needs

pytestmark = [pytest.mark.editors, needs("jedi")]

GIVEN = """import tritensor as torch
import tritensor.nn.functional as F
from tritensor import nn
from tritensor.utils.data import DataLoader
x = torch.randn(3, 4)
"""


def script(code: str) -> Any:
    import jedi

    return jedi.Script(GIVEN + code, project=jedi.Project(PACKAGE.parent))


def completions(code: str) -> set[str]:
    return {each.name for each in script(code).complete()}


# jedi itself knows nothing of comparisons, of -x and of numbers on the left
TENSORS = """
    torch.tensor([1]); torch.zeros(2); torch.arange(3); torch.relu(x); torch.cat([x, x]); torch.max(x); F.relu(x)
    F.cross_entropy(x, x); torch.fft.fft(x); torch.special.erf(x); torch.linalg.norm(x); torch.einsum("ij->i", x)
    x + 1; x - x; x * 2; x / 2; x @ x; x ** 2; x[0]; x.T; x.grad; x.data; x.sum(); x.max(); x.max(1).values
    x.view(-1).float(); x.to("cpu").sum(); nn.Parameter(x); nn.Linear(1, 2).weight; torch.where(x > 0, x, 0)"""


@pytest.mark.parametrize("expression", [each.strip() for each in TENSORS.strip().replace("\n", ";").split(";")])
def test_what_is_a_tensor_completes_with_its_members(expression: str) -> None:
    members = {name for name in dir(tritensor.Tensor) if not name.startswith("_")}
    assert members - completions(f"y = {expression}\ny.") == set()


@pytest.mark.parametrize(
    ("prefix", "module"),
    [
        ("torch", tritensor),
        ("torch.cuda", tritensor.cuda),
        ("torch.backends", tritensor.backends),
        ("torch.optim", tritensor.optim),
        ("torch.optim.lr_scheduler", tritensor.optim.lr_scheduler),
        ("torch.linalg", tritensor.linalg),
        ("torch.distributions", tritensor.distributions),
        ("nn", tritensor.nn),
        ("F", tritensor.nn.functional),
    ],
)
def test_modules_complete_with_their_names(prefix: str, module: Any) -> None:
    names = {name for name in module.__all__ if not name.startswith("_")}
    assert sorted(names - completions(f"{prefix}.")) == []


@pytest.mark.parametrize(
    "expression",
    [
        *("torch.tensor", "torch.randn", "torch.stack", "torch.topk", "torch.no_grad", "torch.save"),
        *("nn.Linear", "nn.Conv2d", "F.cross_entropy", "F.relu", "DataLoader", "torch.optim.Optimizer"),
        *("torch.cuda.is_available", "x.view", "x.sum", "x.softmax"),
    ],
)
def test_documentation_and_signature_are_those_of_the_function(expression: str) -> None:
    code = script(expression)
    shown = code.help()[0]
    namespace = {"torch": tritensor, "nn": tritensor.nn, "F": tritensor.nn.functional, "x": tritensor.ones(1)}
    value = eval(expression, {**namespace, "DataLoader": tritensor.utils.data.DataLoader})
    first = (inspect.getdoc(value) or "").splitlines()[0]
    assert first and first in shown.docstring()
    wanted = [name for name in inspect.signature(value).parameters if name != "self"]
    assert [each.name for each in shown.get_signatures()[-1].params if each.name != "self"] == wanted
