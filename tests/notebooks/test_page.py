"""The programs on the page about notebooks print what stands below them."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "notebooks.md"


def test_programs_print_what_the_page_says() -> None:
    blocks = re.findall(r"```(python|text)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert [kind for kind, _ in blocks] == ["python", "text"] * 2
    scope: dict[str, object] = {}
    for (_, program), (_, expected) in zip(blocks[::2], blocks[1::2], strict=True):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(program, scope)
        assert printed.getvalue() == expected
