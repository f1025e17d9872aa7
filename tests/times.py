"""Where the time of a run goes: `pytest --times` prints it by folder and by what tests do, in seconds of all processes.

What a test does is seen while it runs: whether it starts processes, compiles kernels, or launches them on devices that
interpret them or run their compiled code.
"""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

from tritensor.drivers.compiling import CompilingDriver
from tritensor.drivers.native.driver import NativeSimulator
from tritensor.drivers.simulator import Simulator

from .needs import HAS_TRITON

_STARTS = ("subprocess.Popen", "os.fork", "os.posix_spawn")


class Times:
    """The plugin of `--times`: workers note what a test does, the first process adds up."""

    def __init__(self) -> None:
        self.by_folder: Counter[str] = Counter()
        self.by_kind: Counter[str] = Counter()
        self.tests: Counter[str] = Counter()
        self.happened: set[str] = set()
        sys.addaudithook(lambda event, _: self.happened.add("starts processes") if event in _STARTS else None)
        self._watch(Simulator, "interpreted", "interprets kernels")
        self._watch(NativeSimulator, "_native", "runs native code")
        self._watch(CompilingDriver, "launch", "runs compiled kernels")
        if HAS_TRITON:
            self._watch(importlib.import_module("tritensor.runtime.compiler"), "compile_kernel", "compiles kernels")

    def _watch(self, owner: Any, name: str, what: str) -> None:
        """Note it when a function is called."""
        function = getattr(owner, name)

        def call(*arguments: Any, **named: Any) -> Any:
            self.happened.add(what)
            return function(*arguments, **named)

        # what looks for the user's line skips the package's frames, and this one
        call.__code__ = call.__code__.replace(co_filename=function.__code__.co_filename)
        setattr(owner, name, call)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Note what happens while a test runs."""
        self.happened.clear()
        try:
            return (yield)
        finally:
            item.user_properties.append(("does", ", ".join(sorted(self.happened)) or "computes on the CPU"))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up a test's part."""
        folder = "/".join(report.nodeid.split("::")[0].split("/")[:2]) if report.nodeid[:6] == "tests/" else "tritensor"
        self.by_folder[folder] += report.duration
        if report.when == "call":
            self.tests[folder] += 1
            self.by_kind[dict(report.user_properties)["does"]] += report.duration

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print both tables, what takes longest first."""
        terminalreporter.section("where the time goes")
        for name, seconds in self.by_folder.most_common():
            terminalreporter.write_line(f"{seconds:9.1f} s  {self.tests[name]:6d} tests  {name}")
        terminalreporter.write_line("")
        for name, seconds in self.by_kind.most_common():
            terminalreporter.write_line(f"{seconds:9.1f} s  {name}")
