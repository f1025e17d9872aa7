"""pyright and mypy find no error in ordinary programs, and know every public name and what expressions are."""

from __future__ import annotations

import doctest
import re
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tritensor

from .checking import PROGRAMS, mypy, needs, pyright

pytestmark = pytest.mark.editors
ROOT = Path(__file__).resolve().parents[2]

# expressions and what they are; x is a Tensor, `model` a Sequential
TYPES = {
    **dict.fromkeys(
        """torch.tensor([1.0]); torch.zeros(2, 3); torch.randn(2, device="cpu"); torch.stack([x, x]); torch.relu(x)
        torch.fft.fft(x); torch.linalg.norm(x); torch.special.expit(x); torch.masked.sum(x); torch.einsum("i->", x)
        torch.nn.functional.cross_entropy(x, x); torch.nn.init.zeros_(x); torch.where(x > 0, x, 0); torch.max(x)
        x + 1; 1 + x; x - x; 1 - x; 2 * x; x / 3; 1 / x; x // 2; x % 2; x ** 2; 2 ** x; x @ x; -x; abs(x); ~x; x & x
        x > 0; 0 < x; x <= x; x == 1; x != x; x[0]; x[:, None]; x[x > 0]; x.T; x.data; x.sum(); x.to("cpu").float()
        x.max(); x.max(dim=0).values; x.unique(); x.where(x > 0, x); x.view(-1).mean().sqrt(); x.add(1).mul_(2)
        x.eq(1); x.pow(2); x.sort().values; torch.topk(x, 2).indices; torch.nn.Parameter(x) * 2; xs[0]
        torch.distributions.Normal(0.0, 1.0).sample(); torch.array_api.add(x, x)""".replace("\n", ";").split(";"),
        "Tensor",
    ),
    "x.shape": "Size",
    "x.size()": "Size",
    "x.shape[1:]": "Size",
    "x.size(0)": "int",
    "x.shape[0]": "int",
    "x.ndim": "int",
    "x.tolist()": "Any",
    "x.item()": "Any",
    "x.type()": "str",
    "x.dtype": "dtype",
    "x.device": "device",
    "x.numpy()": "ndarray",
    "x.nonzero(as_tuple=True)": "tuple[Tensor, ...]",
    "x.max(0)": "MaxResult",
    "torch.cuda.is_available()": "bool",
    "torch.cuda.Stream()": "Stream",
    "torch.backends.cudnn.benchmark": "bool",
    "model.to('cpu').train()": "Sequential",
    "model.state_dict()": "dict[str, Any]",
    "torch.no_grad()": "no_grad",
    "decorated": "(a: int) -> str",
    "plainly": "(a: int) -> str",
}
GIVEN = """import tritensor as torch
x = torch.ones(3, 3)
xs = [x, x]
model = torch.nn.Sequential(torch.nn.Linear(3, 2))
@torch.no_grad()
def decorated(a: int) -> str:
    return ""
@torch.inference_mode
def plainly(a: int) -> str:
    return ""
"""


def public_names() -> list[str]:
    """Every public name: those of the package, of its modules and theirs, and the members of Tensor."""
    found: dict[str, Any] = {}
    modules = [("torch", tritensor), ("torch.array_api.fft", tritensor.array_api.fft)]
    for path, module in modules:
        for name in module.__all__:
            if not name.startswith("__"):
                value = found[f"{path}.{name}"] = getattr(module, name)
                if isinstance(value, ModuleType) and hasattr(value, "__all__") and value not in dict(modules).values():
                    modules.append((f"{path}.{name}", value))
    return [*found, *(f"torch.Tensor.{name}" for name in dir(tritensor.Tensor) if not name.startswith("_"))]


def expected(revealed: str, wanted: str) -> bool:
    """Whether a checker's words for a type mean the wanted one."""
    words = re.findall(r'type (?:of .* )?is "(.*)"$', revealed, re.IGNORECASE)
    plain = re.sub(r"\btritensor\.(\w+\.)*|\bnumpy\.|\bdef \b|\bdef |builtins\.", "", words[-1]) if words else revealed
    return plain == wanted or plain.startswith(f"{wanted}[") or f"fallback={wanted}" in plain


@needs("pyright")
def test_pyright_finds_no_error_in_programs(tmp_path: Path) -> None:
    assert len(PROGRAMS) >= 20
    for program in PROGRAMS:
        shutil.copy(program, tmp_path)
    assert pyright(tmp_path) == []


@needs("pyright")
def test_pyright_finds_no_error_in_the_examples_and_the_readme(tmp_path: Path) -> None:
    for example in (ROOT / "examples").glob("*.py"):
        shutil.copy(example, tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    lines = doctest.DocTestParser().get_examples("\n".join(blocks))
    (tmp_path / "readme.py").write_text("".join(line.source for line in lines), encoding="utf-8")
    # what an example needs besides tritensor may not be installed here
    assert pyright(tmp_path, reportMissingImports=False) == []


@needs("pyright")
def test_pyright_knows_every_public_name(tmp_path: Path) -> None:
    names = public_names()
    assert len(names) > 3000 and "torch.backends.cudnn.flags" in names
    (tmp_path / "names.py").write_text("import tritensor as torch\n" + "".join(f"reveal_type({n})\n" for n in names))
    found = pyright(tmp_path)
    assert [each for each in found if each["severity"] == "error"] == []
    assert len(found) == len(names)
    unknown = [str(each["message"]) for each in found if str(each["message"]).endswith(('is "Any"', 'is "Unknown"'))]
    assert [each for each in unknown if ".constraints." not in each] == []


@needs("pyright")
def test_pyright_knows_what_expressions_are(tmp_path: Path) -> None:
    expressions = {expression.strip(): wanted for expression, wanted in TYPES.items()}
    lines = [f"reveal_type({expression})" for expression in expressions]
    (tmp_path / "types_.py").write_text(GIVEN + "\n".join(lines))
    found = [str(each["message"]) for each in pyright(tmp_path)]
    assert len(found) == len(expressions), found
    wrong = [told for told, wanted in zip(found, expressions.values(), strict=True) if not expected(told, wanted)]
    assert wrong == []


@needs("mypy")
def test_mypy_finds_no_error_in_programs(tmp_path: Path) -> None:
    for program in PROGRAMS:
        shutil.copy(program, tmp_path)
    assert mypy(tmp_path) == []


@needs("mypy")
def test_mypy_knows_every_public_name_and_what_expressions_are(tmp_path: Path) -> None:
    names = public_names()
    (tmp_path / "names.py").write_text("import tritensor as torch\n" + "\n".join(names))
    expressions = {each.strip(): wanted for each, wanted in TYPES.items() if wanted != "(a: int) -> str"}
    lines = [f"reveal_type({expression})" for expression in expressions]
    (tmp_path / "types_.py").write_text(GIVEN + "\n".join(lines))
    found = mypy(tmp_path)
    assert [line for line in found if "error:" in line] == []
    told = [line for line in found if line.startswith("types_.py")]
    assert len(told) == len(expressions)
    assert [a for a, wanted in zip(told, expressions.values(), strict=True) if not expected(a, wanted)] == []
