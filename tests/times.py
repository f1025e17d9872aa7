"""Where the time of a run goes: `pytest --times` prints it by folder and by what a test does, in seconds of all
processes.

Whether a test starts processes is seen while it runs; whether it compiles or runs kernels is told by its name.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

_happened: set[str] = set()


def _listen(event: str, arguments: Any) -> None:
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn"):
        _happened.add("starts processes")


class Times:
    """The plugin of `--times`: workers note what a test does, the first process adds up."""

    def __init__(self) -> None:
        self.by_folder: Counter[str] = Counter()
        self.by_kind: Counter[str] = Counter()
        self.tests: Counter[str] = Counter()
        sys.addaudithook(_listen)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Note what happens while a test runs."""
        _happened.clear()
        try:
            return (yield)
        finally:
            path = item.nodeid
            if "compile" in path or "spill" in path or "test_ptx" in path:
                _happened.add("compiles kernels")
            if path.startswith("tests/ptx"):
                _happened.add("runs compiled kernels")
            if "sim:" in path or "cuda" in path:
                _happened.add("runs kernels in the interpreter")
            item.user_properties.append(("does", ", ".join(sorted(_happened)) or "computes on the CPU"))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up a test's part."""
        folder = "/".join(report.nodeid.split("/")[:2])
        self.by_folder[folder] += report.duration
        if report.when == "call":
            self.tests[folder] += 1
            self.by_kind[dict(report.user_properties).get("does", "")] += report.duration

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print both tables, what takes longest first."""
        terminalreporter.section("where the time goes")
        for name, seconds in self.by_folder.most_common():
            terminalreporter.write_line(f"{seconds:9.1f} s  {self.tests[name]:6d} tests  {name}")
        terminalreporter.write_line("")
        for name, seconds in self.by_kind.most_common():
            terminalreporter.write_line(f"{seconds:9.1f} s  {name}")
