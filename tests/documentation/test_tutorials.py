"""The tutorials of docs/tutorials, which sphinx-gallery runs for the site: as files, as scripts and as notebooks."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ..needs import HAS_TRITON
from .programs import ROOT
from .test_blocks import missing

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.py"))

pytestmark = pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)

# A notebook's cells as IPython runs them: in one namespace, each under a name by which `inspect` finds its lines.
CELLS = """
import json, linecache, sys
for number, cell in enumerate(json.load(sys.stdin)):
    name = f"<cell {number}>"
    linecache.cache[name] = len(cell), None, cell.splitlines(keepends=True), name
    exec(compile(cell, name, "exec"), globals())
"""


def cells_of(tutorial: Path) -> list[str]:
    """The code in the notebook that is made of a tutorial."""
    notebook = pytest.importorskip("sphinx_gallery.notebook", reason="needs tritensor[docs]")
    gallery = pytest.importorskip("tools.site.gallery")
    from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
    from sphinx_gallery.py_source_parser import split_code_and_text_blocks

    _, blocks = split_code_and_text_blocks(str(tutorial))
    made = notebook.jupyter_notebook(blocks, {**DEFAULT_GALLERY_CONF, **gallery.CONF}, tutorial.parent)
    made = json.loads(json.dumps(made))
    return ["".join(cell["source"]) for cell in made["cells"] if cell["cell_type"] == "code"]


def executed(*arguments: str, folder: Path, **options: Any) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRITENSOR_")}
    environment |= {"PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg", "MPLCONFIGDIR": str(folder)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""


def test_it_is_listed(tutorial: Path) -> None:
    gallery = pytest.importorskip("tools.site.gallery")
    assert gallery.ORDER.count(tutorial.name) == 1


def test_it_keeps_the_rules(tutorial: Path) -> None:
    text = tutorial.read_text("utf-8")
    tree = ast.parse(text)
    title, line, _ = (ast.get_docstring(tree) or "").split("\n", 2)
    assert title and line == "=" * len(title)
    assert "\nimport tritensor as torch\n" in text and not re.search(r"^(import|from) torch\b", text, re.MULTILINE)
    assert text.count("plt.show()") >= 2, "two pictures at least"
    assert "environ" not in text, "devices are simulated in blocks: a process runs several tutorials"
    end = text.rpartition("\n# %%\n")[2]
    assert re.search(r"^# Next\n# ----$", end, re.MULTILINE)
    assert re.search(r"<\S+\.html(#\S+)?>`_", end), "it leads on"
    pages = [(tutorial.parent / link).with_suffix("") for link in re.findall(r"<(\.\./[\w./]+)\.html", text)]
    made = ("examples", "operators", "reference", "benchmarks")
    missing = [page for page in pages if page.parent.name not in made and not page.with_suffix(".md").exists()]
    assert missing == []
    beside = re.findall(r"<(\w+)\.html", text)
    assert {*beside} <= {name[:-3] for name in pytest.importorskip("tools.site.gallery").ORDER}


def test_its_notebook_has_code_that_compiles(tutorial: Path) -> None:
    cells = cells_of(tutorial)
    assert len(cells) >= 3 and cells[0].startswith("# ") and "pip install" in cells[0]
    for cell in cells:
        compile(cell, str(tutorial), "exec")


@pytest.mark.thorough
@pytest.mark.skipif(not HAS_TRITON, reason="simulated devices need Triton")
class TestRun:
    """Whole: each takes seconds."""

    @pytest.fixture(autouse=True)
    def _libraries(self, tutorial: Path) -> None:
        if missing(tutorial.read_text("utf-8")):
            pytest.skip("it needs what is installed by tritensor[docs]")

    def test_as_a_script(self, tutorial: Path, tmp_path: Path) -> None:
        pytest.importorskip("matplotlib")
        executed(str(tutorial), folder=tmp_path)

    def test_as_a_notebook(self, tutorial: Path, tmp_path: Path) -> None:
        executed("-c", CELLS, folder=tmp_path, input=json.dumps(cells_of(tutorial)))
