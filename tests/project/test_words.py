"""The words of messages and docstrings: what no message says, and how the docstrings of public names begin."""

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
        if callable(value):
            yield name, value
        if inspect.isclass(value) and value.__module__.startswith("tritensor"):
            yield from members(value)


def begins_as_a_riddle(names: Any) -> list[str]:
    """The names whose docstring begins with a relative clause."""
    texts = {name: (inspect.getdoc(value) or "").partition("\n")[0] for name, value in names}
    return [f"{name}: {text}" for name, text in texts.items() if RIDDLES.match(text)]


@pytest.mark.parametrize("table", ["PACKAGE", "FUNCTIONAL", "SPECIAL"])
def test_the_docstrings_of_public_functions_say_what_they_compute(table: str) -> None:
    assert begins_as_a_riddle(getattr(public, table).items()) == []


def test_the_docstrings_of_tensors_members_say_what_they_compute() -> None:
    assert begins_as_a_riddle(members(tritensor.Tensor)) == []


@pytest.mark.parametrize("module", [*MODULES, *MORE])
def test_the_docstrings_of_a_modules_names_say_what_they_compute(module: str) -> None:
    assert begins_as_a_riddle(public_names(module)) == []
