"""Every block of Python on a page of `docs/` runs, in order, in one namespace, and prints what the page says."""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import tritensor
from tritensor import cuda

from ..needs import HAS_TRITON

DOCS = Path(__file__).resolve().parents[2] / "docs"
# Blocks that declare operators and public names, which the other tests must not meet.
APART = ("adding_an_operator",)
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    line: int
    text: str
    printed: str | None  # what the page says that it prints, in a block `text` right after it


def blocks_of(text: str) -> Iterator[Block]:
    fence = re.compile(r"^```(?:python|pycon)\n(.*?)^```$(?:\s*^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
    for found in fence.finditer(text):
        yield Block(text.count("\n", 0, found.start()) + 1, found[1], found[2])


def pages() -> list[str]:
    found = [path.relative_to(DOCS).with_suffix("").as_posix() for path in sorted(DOCS.rglob("*.md"))]
    return [page for page in found if any(blocks_of(source(page)))]


def source(page: str) -> str:
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


def missing(code: str) -> list[str]:
    """The libraries that the blocks of a page import and that this machine lacks."""
    names = dict.fromkeys(re.findall(r"^(?:>>> |\.\.\. )?\s*(?:import|from) (\w+)", code, re.MULTILINE))
    return [name for name in names if importlib.util.find_spec(name) is None]


def run(page: str, text: str, folder: Path) -> None:
    """Run the blocks of a page; an error names the page and the block's line.

    Each block becomes a file in the folder, because the source of a kernel has to be in one.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(text):
        place = f"docs/{page}.md, line {block.line}"
        if ">>>" in block.text:
            example = doctest.DocTestParser().get_doctest(block.text + "\n", names, place, place, block.line)
            report: list[str] = []
            example.globs = names
            runner = doctest.DocTestRunner(optionflags=OPTIONS)
            assert runner.run(example, out=report.append, clear_globs=False).failed == 0, "".join(report)
            continue
        printed = io.StringIO()
        file = folder / f"line_{block.line}.py"
        file.write_text(block.text, encoding="utf-8")
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(block.text, str(file), "exec", dont_inherit=True), names)
        except Exception as error:
            error.add_note(f"in {place}")
            raise
        if block.printed is not None:
            assert printed.getvalue().strip() == block.printed.strip(), place


@pytest.mark.sampled(2)
@pytest.mark.parametrize("page", pages())
def test_the_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = source(page)
    code = "".join(block.text for block in blocks_of(text))
    if not HAS_TRITON and re.search("cuda|triton", code):
        pytest.skip("the page's devices need Triton")
    if missing(code):
        pytest.skip(f"the page uses {', '.join(missing(code))}, which is not installed")
    if page in APART:
        call = f"run({page!r}, source({page!r}), Path({str(tmp_path)!r}))"
        program = f"from pathlib import Path; from tests.documentation.test_blocks import run, source; {call}"
        result = subprocess.run(
            [sys.executable, "-c", program], cwd=DOCS.parent, capture_output=True, text=True, timeout=120
        )
        assert result.returncode == 0, result.stderr
        return
    state = tritensor.get_rng_state()
    with cuda.simulate(devices=2) if "cuda" in code and "simulate" not in code else contextlib.nullcontext():
        run(page, text, tmp_path)
    tritensor.set_rng_state(state)


def test_libraries_that_a_page_lacks() -> None:
    code = "import numpy as np\n>>> from gone.part import x\n    import also_gone\nfrom pathlib import Path\n"
    assert missing(code) == ["gone", "also_gone"]


def test_a_block_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        run("page", "words\n\n```python\n1 / 0\n```\n", tmp_path)
    assert raised.value.__notes__ == ["in docs/page.md, line 3"]
    with pytest.raises(AssertionError, match="Expected:"):
        run("page", "```pycon\n>>> 1 + 1\n3\n```\n", tmp_path)
    with pytest.raises(AssertionError, match="line 1"):
        run("page", "```python\nprint(2)\n```\n\n```text\n3\n```\n", tmp_path)
    run("page", "```python\nx = 1\nprint(2)\n```\n\n```text\n2\n```\n\n```pycon\n>>> x\n1\n```\n", tmp_path)
