"""What the README says is so: its examples run, and its figures are the measured ones."""

from __future__ import annotations

import doctest
import importlib.util
import json
import re
from pathlib import Path

import pytest

from benchmarks import table

README = Path(__file__).resolve().parent.parent / "README.md"


def test_examples_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    if importlib.util.find_spec("triton") is None:
        blocks = [block for block in blocks if "simulate" not in block]
    example = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "README", str(README), 0)
    report: list[str] = []
    failed = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=report.append).failed
    assert failed == 0, "".join(report)


def test_figures_are_the_measured_ones() -> None:
    _, _, rest = README.read_text(encoding="utf-8").partition(table.START)
    shown, end, _ = rest.partition(table.END)
    assert end, "README.md has no table; `python -m benchmarks.table --write` makes it"
    results = table.RESULTS / "cpu.json"
    measured = table.table(json.loads(results.read_text(encoding="utf-8"))) if results.exists() else ""
    assert shown.strip() == measured.strip()


def test_table_marks_what_falls_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def entry(ratio: float, target: float | None) -> dict[str, object]:
        met = None if target is None else ratio <= target
        return {"ours_us": ratio, "theirs_us": 1000.0, "ratio": ratio, "target": target, "met": met}

    figures = {
        "machine": {"processor": "P"},
        "versions": {"python": "3", "tritensor": "1", "numpy": "2", "torch": "3"},
        "cases": {
            "a": {"title": "a + b", "speed": {"numpy": entry(3.0, 2.0), "torch": entry(0.5, 0.65)}},
            "b": {"title": "step", "speed": {"torch": entry(2.0, None)}, "accuracy": {"accurate": False}},
        },
    }
    made = table.table(figures)
    assert "| a + b | 3 us | 1 ms | 3.00 of 2.00 **short** | 1 ms | 0.50 of 0.65 |" in made
    assert "| step **inaccurate** | 2 us |  |  | 1 ms | 2.00 |" in made

    (tmp_path / "cpu.json").write_text(json.dumps(figures))
    (tmp_path / "README.md").write_text(f"before\n{table.START}old\n{table.END}after\n")
    monkeypatch.setattr(table, "RESULTS", tmp_path)
    monkeypatch.setattr(table, "README", tmp_path / "README.md")
    for _ in range(2):  # writing twice changes nothing
        table.main(["--write"])
        assert (tmp_path / "README.md").read_text() == f"before\n{table.START}\n{made}\n{table.END}after\n"
