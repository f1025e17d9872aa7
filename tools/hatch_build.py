"""Makes the type stubs when a distribution is built or an editable one installed; hatchling calls it (pyproject)."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Stubs(BuildHookInterface):
    """Makes the stubs in the source tree, where an editable install reads them and a build collects them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make them, in a process of its own: the package is imported for it."""
        paths = os.pathsep.join(filter(None, (self.root, os.environ.get("PYTHONPATH"))))
        command = [sys.executable, "-B", "-m", "tools.generate", "--stubs"]
        subprocess.run(command, check=True, cwd=self.root, env={**os.environ, "PYTHONPATH": paths})
