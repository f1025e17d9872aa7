"""What the README says is so: its examples run, and its figures are the measured ones."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks import table

from ..needs import HAS_TRITON

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 1
    program, simulated, rest = blocks[0].partition("with torch.cuda.simulate")
    names: dict[str, object] = {}
    exec(program, names)
    assert eval("(model(x).argmax(1) == target).float().mean()", names) > 0.9
    exec(simulated + rest if HAS_TRITON else "", names)
    printed = re.findall(r"\)  # (.*)", rest) if HAS_TRITON else []
    assert capsys.readouterr().out.splitlines() == printed
    assert 9 <= len([line for line in blocks[0].splitlines() if line.strip()]) <= 12


def test_the_first_screen_comes_before_any_table() -> None:
    first = README.read_text(encoding="utf-8").partition("\n|")[0].partition("\n## Install")[0]
    places = [first.index(part) for part in ("](docs/pictures/overview.svg)", "make demo ", "make test ", "```python")]
    assert places == sorted(places) and len(first.splitlines()) <= 50
    things = [line for line in first.splitlines() if line.startswith("* ")]
    assert len(things) == 4 and all(line.startswith("* **[") for line in things)
    assert len(re.findall(r"\.(?:\s|$)", first.split("\n\n")[1])) == 3  # sentences
    assert "**short**" not in README.read_text(encoding="utf-8")


def test_figures_are_the_measured_ones() -> None:
    sections = table.sections()
    assert [path for path, _, _ in sections][:2] == [README, README.parent / "benchmarks" / "README.md"]
    for path, start, measured in sections:
        _, _, rest = path.read_text(encoding="utf-8").partition(start)
        shown, end, _ = rest.partition(table.END)
        assert end, f"{path} lacks a table; `python -m benchmarks.table --write` makes it"
        assert shown.strip() == measured.strip()
    assert (table.GPU_START in table.README.read_text(encoding="utf-8")) == (table.gpu_figures() is not None)


def test_no_cell_says_short() -> None:
    assert [text for _, _, text in table.sections() if "short" in text] == []


@pytest.mark.thorough
def test_the_picture_shows_the_first_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    figures = json.loads((table.RESULTS / "cpu.json").read_text(encoding="utf-8"))
    drawn = table.PICTURE.read_text(encoding="utf-8")
    monkeypatch.setattr(table, "PICTURE", tmp_path / "speed.svg")
    table.draw()
    new = table.PICTURE.read_text(encoding="utf-8")
    for text in (drawn, new):  # not byte by byte: matplotlib's versions differ
        assert "prefers-color-scheme:dark" in text and "href=" not in text.replace('xlink:href="#', "")
        told = re.findall(r"<title>(.*?)</title>", text)[0]
        for name in table.ROWS:
            assert figures["cases"][name]["title"] in told
            for peer in ("numpy", "torch"):
                entry = figures["cases"][name]["speed"].get(peer)
                assert entry is None or (f" {entry['ratio']:.2f}" in told and f">{entry['ratio']:.2f}<" in text)


def test_the_first_table_is_short() -> None:
    figures = json.loads((table.RESULTS / "cpu.json").read_text(encoding="utf-8"))
    rows = table.front_table(figures).splitlines()[4:]
    assert len(rows) == len(table.ROWS) == 6 and set(table.ROWS) <= set(figures["cases"])
    for name, row in zip(table.ROWS, rows, strict=True):
        assert row.startswith(f"| {figures['cases'][name]['title']} | ")
        for peer, entry in figures["cases"][name]["speed"].items():
            assert peer not in ("numpy", "torch") or f" {entry['ratio']:.2f} |" in row


def test_table_marks_ratios_above_their_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def entry(ratio: float, target: float | None) -> dict[str, object]:
        met = None if target is None else ratio <= target
        return {"ours_us": ratio, "theirs_us": 1000.0, "ratio": ratio, "target": target, "met": met}

    figures = {
        "machine": {"processor": "P"},
        "versions": {"python": "3", "tritensor": "1", "numpy": "2", "torch": "3"},
        "threads": {"numpy": 1, "torch": 1, "torch_all": 4},
        "cases": {
            "a": {
                "title": "a + b",
                "speed": {"numpy": entry(3.0, 2.0), "torch": entry(0.5, 0.65), "torch_all": entry(1.2, 1.1)},
            },
            "b": {"title": "step", "speed": {"torch": entry(2.0, None)}, "accuracy": {"accurate": False}},
        },
    }
    made = table.table(figures)
    first = "| a + b | 3 us | 1 ms | 3.00 of 2.00 ▲ | 1 ms | 0.50 of 0.65 |"
    assert f"{first} 1.2 us | 1 ms | 1.20 of 1.10 ▲ |\n" in made
    assert "| step **inaccurate** | 2 us |  |  | 1 ms | 2.00 |  |  |  |\n" in made
    assert "of 4 threads each" in made
    assert all(line.count("|") == 10 for line in made.splitlines() if line.startswith("|"))
    old = table.table({**figures, "threads": 1})  # as they were written before there was a column of all threads
    assert first + "\n" in old and "threads" not in old

    (tmp_path / "cpu.json").write_text(json.dumps(figures))
    files(tmp_path, monkeypatch)
    for _ in range(2):  # writing twice changes nothing
        table.main(["--write"])
        assert (tmp_path / "README.md").read_text() == f"before\n{table.START}\n{made}\n{table.END}after\n"
        first = table.front_table(figures)
        assert (tmp_path / "FRONT.md").read_text() == f"before\n{table.START}\n{first}\n{table.END}after\n"


def files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tables be written into a folder."""
    for name in ("FRONT", "README"):
        (folder / f"{name}.md").write_text(f"before\n{table.START}old\n{table.END}after\n")
        monkeypatch.setattr(table, name, folder / f"{name}.md")
    monkeypatch.setattr(table, "RESULTS", folder)
    monkeypatch.setattr(table, "draw", lambda: None)


def test_the_table_of_a_gpu_comes_with_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = {"machine": {"processor": "P"}, "versions": {"python": "3", "tritensor": "1"}, "threads": {}, "cases": {}}
    (tmp_path / "cpu.json").write_text(json.dumps(cpu))
    files(tmp_path, monkeypatch)
    figures = {
        "gpu": "Card",
        "simulated": True,
        "date": "2026-01-01",
        "commit": "abc1234",
        "device": {"driver": "1.2"},
        "versions": {"torch": "3"},
        "ceiling": {"bytes_per_second": 4e12},
        "rows": {
            "copy": {
                "title": "x.clone()",
                "accuracy": {"accurate": False},
                "speed": {
                    "ceiling": {
                        "ours_us": 10.0,
                        "theirs_us": 9.0,
                        "ratio": 0.9,
                        "below": False,
                        "gate": 0.95,
                        "reached": "under",
                    },
                    "cupy": {"error": "none"},
                    "torch": {"ours_us": 10.0, "theirs_us": 9.0, "gate": None},
                },
            },
            "bad": {"title": "x.bad()", "error": "RuntimeError: no"},
        },
    }
    (tmp_path / "card.json").write_text(json.dumps(figures))
    table.main(["--write"])
    assert table.GPU_START not in (tmp_path / "README.md").read_text()  # nothing comes of a simulation
    (tmp_path / "card.json").write_text(json.dumps({**figures, "simulated": False}))
    for _ in range(2):
        table.main(["--write"])
        readme = (tmp_path / "README.md").read_text()
        assert readme.count(table.GPU_START) == 1
        assert readme.startswith("before\n")
        assert readme.endswith(f"{table.END}after\n")
        assert "| x.clone() **inaccurate** | 10 us | ceiling | 9 us | 0.90 | >= 0.95 ▼ |" in readme
        assert "| x.bad() | **failed** |" in readme
        assert "copy ceiling 4.00 TB/s" in readme
