"""The words of messages and docstrings: what no message says, and how the docstrings of public names begin."""

from __future__ import annotations

import re
from pathlib import Path

import tritensor

PACKAGE = Path(tritensor.__file__).parent


def test_no_message_sends_a_user_to_another_project() -> None:
    """Messages name no operators of PyTorch's C++ library, nor its tracker: its maintainers cannot help with ours."""
    words = re.compile("aten::|github\\.com/pytorch|(file|open)( us)? an issue", re.IGNORECASE)
    for path in PACKAGE.rglob("*.py*"):
        if path.suffix in (".py", ".pyi"):
            assert words.findall(path.read_text(encoding="utf-8")) == [], path.relative_to(PACKAGE).as_posix()
