"""The words of messages, docstrings and guides: what no message says, and how sentences for readers begin."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tritensor
from tritensor.ground import public

from .test_architecture import MODULES

PACKAGE = Path(tritensor.__file__).parent
ROOT = Path(__file__).resolve().parents[2]

# Public modules beside those that the architecture's test lists.
MORE = [
    "accelerator",
    "amp",
    "array_api",
    "autograd.functional",
    "distributions",
    "distributions.constraints",
    "distributions.transforms",
    "fft",
    "func",
    "hub",
    "jit",
    "masked",
    "nn.attention",
    "nn.attention.flex_attention",
    "nn.utils.parametrizations",
    "nn.utils.parametrize",
    "nn.utils.prune",
    "nn.utils.rnn",
    "optim.lr_scheduler",
    "optim.swa_utils",
    "quasirandom",
    "signal.windows",
    "utils.checkpoint",
]

# A first line that begins so names no operation: "Whether x is NaN", "What `relu` returns", "As `inv`, with `info`".
RIDDLES = re.compile(r"(`Tensor\.\w+`: )?(What|Which|Whether|Where|How|Of|Those|That|As)\b")

# A sentence whose subject or condition is a relative clause: "What fails is named", "Where x is 0, y is too".
CLAUSE = re.compile(
    r"(?:^|(?<=[.!?] ))\W{0,2}(?:What|Whatever|Which|Whichever|Whoever|Whose|Who|That which|Where|Wherever)\b"
    r".*?(?:[.!?](?=\W{0,2} |\W{0,2}$)|$)"
)
# Of a guide: code, headings, and links to pages whose titles are questions.
SHOWN = re.compile(r"^```.*?^```$|^#+ [^\n]*|^ {4}[^\n]*|\[[^\]]*\?\]\([^)]*\)", re.MULTILINE | re.DOTALL)
# A block of a text: a paragraph, an entry of a list, a cell of a table, or the text behind `name:` in "Args:".
BLOCK = re.compile(r"\n\s*\n|\n\s*(?:[*-]|\d+\.) |\n?\s*\|\s*|\n\s*\w+: ")


def test_no_message_sends_a_user_to_another_project() -> None:
    """Messages name no operators of PyTorch's C++ library, nor its tracker: its maintainers cannot help with ours."""
    words = re.compile("aten::|github\\.com/pytorch|(file|open)( us)? an issue", re.IGNORECASE)
    for path in PACKAGE.rglob("*.py*"):
        if path.suffix in (".py", ".pyi"):
            assert words.findall(path.read_text(encoding="utf-8")) == [], path.relative_to(PACKAGE).as_posix()


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that the class itself defines."""
    for name, value in vars(kind).items():
        value = inspect.unwrap(getattr(value, "__func__", value)) if callable(value) else value
        if not name.startswith("_") and (callable(value) or isinstance(value, (property, staticmethod, classmethod))):
            yield f"{kind.__name__}.{name}", value


def public_names(module: str) -> Iterator[tuple[str, Any]]:
    """The functions and classes of a module's `__all__`, and the members of these classes."""
    found = importlib.import_module("tritensor" + (f".{module}" if module else ""))
    yield found.__name__, found
    for name in found.__all__:
        value = getattr(found, name)
        if callable(value) and value.__doc__ != dict.__doc__:  # an alias of Python's has no words of ours
            yield name, value
        if inspect.isclass(value) and value.__module__.startswith("tritensor"):
            yield from members(value)


def clauses(text: str) -> list[str]:
    """The sentences that begin with a relative clause and are no questions."""
    found = [each.group() for block in BLOCK.split("\n" + text) for each in CLAUSE.finditer(" ".join(block.split()))]
    return [sentence for sentence in found if "?" not in sentence[-3:]]


def begins_as_a_riddle(names: Any) -> list[str]:
    """The names whose docstring begins with a relative clause, or with more than a line."""
    texts = {name: (inspect.getdoc(value) or "").partition("\n\n")[0] for name, value in names}
    return [f"{name}: {text}" for name, text in texts.items() if RIDDLES.match(text) or "\n" in text]


@pytest.mark.parametrize("table", ["PACKAGE", "FUNCTIONAL", "SPECIAL"])
def test_the_docstrings_of_public_functions_say_what_they_compute(table: str) -> None:
    assert begins_as_a_riddle(getattr(public, table).items()) == []


def test_the_docstrings_of_tensors_members_say_what_they_compute() -> None:
    assert begins_as_a_riddle(members(tritensor.Tensor)) == []


@pytest.mark.parametrize("module", [*MODULES, *MORE])
def test_the_docstrings_of_a_modules_names_say_what_they_compute(module: str) -> None:
    names = dict(public_names(module))
    assert begins_as_a_riddle(names.items()) == []
    assert {name: said for name, value in names.items() if (said := clauses(inspect.getdoc(value) or ""))} == {}


def test_the_sentences_of_public_functions_begin_with_their_subjects() -> None:
    named = [*public.PACKAGE.items(), *public.FUNCTIONAL.items(), *public.SPECIAL.items(), *members(tritensor.Tensor)]
    assert {name: said for name, value in named if (said := clauses(inspect.getdoc(value) or ""))} == {}


def test_the_sentences_of_guides_begin_with_their_subjects() -> None:
    """Code, and headings, are left out; questions may begin so."""
    found = {}
    for path in [*(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md", ROOT / "tools" / "site" / "api.py"]:
        if path.exists():  # a copy of the project may lack some
            found[path.name] = clauses(SHOWN.sub("", path.read_text(encoding="utf-8")))
    assert {name: said for name, said in found.items() if said} == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("What fails is named. It works.", ["What fails is named."]),
        ("It works.\nWhere x is 0,\ny is too.", ["Where x is 0, y is too."]),
        ("| a | Which of them, it says. |", ["Which of them, it says."]),
        ("* **What limits it.** Memory.", ["**What limits it."]),
        ("| What does it move? | Whether it moves is known. |", []),
    ],
)
def test_sentences_that_begin_with_relative_clauses_are_found(text: str, said: list[str]) -> None:
    assert clauses(text) == said
