"""What the pages of docs/questions show: their programs print what stands below them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ..needs import HAS_TRITON
from . import __main__ as command
from .programs import ALL, PAGES, PROGRAMS, output_of, recorded, run

PAGES_OF_QUESTIONS = sorted(set(PAGES.glob("*.md")) - {PAGES / "index.md"})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("program", ALL, ids=lambda program: program.stem)
def test_the_output_is_what_is_recorded(program: Path, tmp_path: Path) -> None:
    if not HAS_TRITON and program.stem != "from_pytorch":
        pytest.skip("simulated devices need Triton")
    assert output_of(program, tmp_path) == recorded(program), f"python -m tests.documentation --write {program.stem}"


@pytest.mark.peer
def test_pytorch_prints_the_same_and_goes_on_from_the_checkpoint(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    program = PROGRAMS / "from_pytorch.py"

    def theirs() -> str:
        command = [sys.executable, str(program)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert theirs() == recorded(program)
    ours = output_of(program, tmp_path)  # of steps 4 to 6
    assert ours != recorded(program)
    last = theirs()
    for file in tmp_path.iterdir():
        file.unlink()
    output_of(program, tmp_path)
    assert theirs() == ours  # the other way around
    assert output_of(program, tmp_path) == last


def test_every_program_is_on_a_page_with_its_output() -> None:
    shown = {}
    for page in [*PAGES_OF_QUESTIONS, PAGES.parent / "kernels.md"]:
        shown[page.stem] = re.findall(r"\{literalinclude\} (?:\.\./)?programs/(\S+)", page.read_text("utf-8"))
        files = {PROGRAMS / name for name in shown[page.stem]}
        assert all(file.exists() for file in files), page
        assert page.stem + ".py" in shown[page.stem]
        assert {file.with_suffix(".txt") for file in files} <= files, page
    assert {name for names in shown.values() for name in names} == {
        file.name for file in PROGRAMS.iterdir() if file.suffix in (".py", ".txt")
    }


def test_every_page_is_a_question_that_the_index_lists() -> None:
    index = (PAGES / "index.md").read_text("utf-8")
    for page in PAGES_OF_QUESTIONS:
        title, answer = page.read_text("utf-8").split("\n", 2)[::2]
        assert re.fullmatch(r"# .+\?", title), page
        assert answer.strip()
        assert f"[{title[2:]}]({page.name})" in index
    listed = index.partition("{toctree}")[2].partition("```")[0].split("\n")
    assert sorted(line for line in listed if line and not line.startswith(":")) == [p.stem for p in PAGES_OF_QUESTIONS]


def test_links_between_the_pages_lead_somewhere() -> None:
    for page in PAGES.glob("*.md"):
        for link in re.findall(r"\]\(([^)#:]+\.md)", page.read_text("utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


# ---- the command ------------------------------------------------------------------------------------------------


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "small.py"
    path.write_text("print(1)\n")
    monkeypatch.setattr(command, "ALL", [path, tmp_path / "left_out.py"])
    return path


def test_the_command_records_only_when_told(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(*arguments: str) -> int:
        return command.main(["small", *arguments])

    assert told() == 1
    assert capsys.readouterr().out == "small.py prints\n1\n\nchanged: small\n"
    assert not program.with_suffix(".txt").exists()
    assert told("--write") == 0
    assert program.with_suffix(".txt").read_text() == "1\n"
    assert told() == 0
    assert capsys.readouterr().out.endswith("changed: none\n")


@pytest.mark.parametrize("statement", ["warnings.warn('careful')", "print('careful', file=sys.stderr)"])
def test_a_program_may_not_write_to_stderr(program: Path, tmp_path: Path, statement: str) -> None:
    program.write_text(f"import sys, warnings\n{statement}\n")
    before = os.getcwd()
    with pytest.raises(AssertionError, match=r"small.py wrote to stderr: .*careful"):
        output_of(program, tmp_path)
    assert os.getcwd() == before


def test_a_program_that_fails_in_its_process_is_told(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="the reason"):
        run("-c", "raise SystemExit('the reason')", folder=tmp_path)
