"""The documentation's page of differences from PyTorch: the kinds that `tests/programs` knows, with their reasons."""

from __future__ import annotations

from pathlib import Path

from tests.programs import known

HEADINGS = {
    known.REFUSED: ("Refused here", "PyTorch runs these; here they raise."),
    known.VALUE: ("Other results", "Both run these and give different results."),
    known.LAYOUT: ("Other strides", "Both give the same elements in another order of memory."),
    known.ACCEPTED: ("Accepted here", "PyTorch refuses these; here they run."),
    known.CRASH: ("Other types of errors", "Both refuse these; here with an exception of Python's own."),
    known.ERROR: ("Other errors", "Both refuse these, with different types of exception."),
}


def page() -> str:
    """The text of the page."""
    lines = [
        "# Differences from PyTorch",
        "",
        "Made from the table in `tests/programs/known.py` by `python -m tools.generate`; do not edit. Random programs",
        "run in both libraries, statement by statement (`python -m tests.programs`): hundreds in the tests, a hundred",
        "thousand every night. So do the samples of PyTorch's own tests (`python -m tests.samples`). A difference is",
        "of one of these kinds, or a defect.",
    ]
    for outcome, (heading, text) in HEADINGS.items():
        kinds = [kind for kind in known.KNOWN if kind.outcome == outcome]
        if kinds:
            lines += ["", f"## {heading}", "", text, "", "| what | for example | why |", "|---|---|---|"]
            lines += [f"| {cell(kind.title)} | `{cell(kind.example)}` | {cell(kind.reason)} |" for kind in kinds]
    return "\n".join(lines) + "\n"


def cell(text: str) -> str:
    """A text in a table."""
    return text.replace("|", "\\|")


def texts() -> dict[Path, str]:
    """The page's path and text."""
    return {Path(__file__).resolve().parents[1] / "docs" / "differences.md": page()}
