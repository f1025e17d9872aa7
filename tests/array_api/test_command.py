"""python -m tests.array_api, without the suite that it runs."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from . import __main__ as program

RESULTS = """<testsuites><testsuite>
<testcase name="a"/><testcase name="b"/>
<testcase name="c"><failure message="x">text</failure></testcase>
<testcase name="d"><error message="x">text</error></testcase>
<testcase name="e"><skipped type="pytest.xfail" message=""/></testcase>
<testcase name="f"><skipped type="pytest.skip" message=""/></testcase>
</testsuite></testsuites>"""


def clone(tmp_path: Path) -> Path:
    (tmp_path / "array-api" / "src").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("simulate", [False, True])
@pytest.mark.parametrize(
    ("results", "code", "said"),
    [
        (RESULTS, 1, "2 passed, 1 failed, 1 errors, 1 failed as listed, 1 skipped"),
        (RESULTS.replace("failure", "system-out"), 1, "3 passed, 1 errors"),
        ('<testsuite><testcase name="a"/></testsuite>', 0, "1 passed"),
        ("<testsuite/>", 1, "examples: "),
        (None, 2, "did not run"),
    ],
)
def test_what_failed_is_counted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    simulate: bool,
    results: str | None,
    code: int,
    said: str,
) -> None:
    def ran(command: list[str], cwd: Path, env: dict[str, str], check: bool) -> None:
        assert cwd == suite and env["ARRAY_API_TESTS_VERSION"] == "2024.12" and Path(env["PYTHONPATH"]) == program.ROOT
        module, file = "tritensor.array_api", "xfails.txt"
        if simulate:
            module, file = "tests.array_api.simulated", "xfails_simulated.txt"
        assert env["ARRAY_API_TESTS_MODULE"] == module and command[command.index("--max-examples") + 1] == "7"
        assert Path(command[command.index("--xfails-file") + 1]).name == file
        assert command[-2:] == ["-k", "sum"] and command[command.index("-n") + 1] == "2"
        if results is not None:
            Path(command[command.index("--junitxml") + 1]).write_text(results, encoding="utf-8")

    suite = clone(tmp_path)
    monkeypatch.setattr(subprocess, "run", ran)
    arguments = ["--suite", str(suite), "--examples", "7", "-n", "2", "-k", "sum", *["--simulate"] * simulate]
    assert program.main(arguments) == code
    assert said in capsys.readouterr().out


def test_a_folder_without_the_suite_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        program.main(["--suite", str(tmp_path)])
    assert "submodules" in capsys.readouterr().err


def test_one_process_runs_all_tests_unless_told_otherwise(tmp_path: Path) -> None:
    command: list[Any] = program.command(tmp_path, False, 200, 1, "", tmp_path / "results.xml")
    assert "-n" not in command and "-k" not in command and command[command.index("--max-examples") + 1] == "200"
