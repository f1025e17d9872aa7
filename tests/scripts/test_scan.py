"""`python -m tritensor scan`: what programs use of torch, and what of it is missing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tritensor.scripts import names
from tritensor.scripts import scan as reading
from tritensor.scripts.scan import Found, main, scan, tensor_names


def found_in(tmp_path: Path, text: str) -> Found:
    path = tmp_path / "program.py"
    path.write_text(text, encoding="utf-8")
    found = Found()
    scan(path, found)
    return found


def test_names_are_followed_through_imports(tmp_path: Path) -> None:
    found = found_in(
        tmp_path,
        """
import torch, numpy as np
import torch.nn as nn
import torch.nn.functional as F
from torch import optim as o, no_grad
from torchvision import models

@no_grad()
def f(x: torch.Tensor, nn=nn):
    return F.relu(torch.nn.functional.gelu(x)), np.nothing(x)
o.SGD.mro, models.resnet18(), nn.Linear(1, 2), torch.float32.is_floating_point, torch.backends.cudnn.enabled
""",
    )
    assert sorted(found.used) == [
        "torch.Tensor",
        "torch.backends.cudnn.enabled",
        "torch.float32",
        "torch.nn.Linear",
        "torch.nn.functional.gelu",
        "torch.nn.functional.relu",
        "torch.no_grad",
        "torch.optim",
        "torch.optim.SGD.mro",
        "torchvision.models",
        "torchvision.models.resnet18",
    ]
    assert (
        not found.missing
        and not found.perhaps
        and found.used["torch.nn.Linear"] == [(str(tmp_path / "program.py"), 11)]
    )


def test_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "tensor_names", lambda: frozenset({"of_no_tensor", "sum"}))
    found = found_in(
        tmp_path,
        """
import torch
import torch.not_there
from torch.nn import Nothing
try:
    from torch import perhaps
except ImportError:
    perhaps = None
torch.gone(1), torch.nn.Linear(1, 2, biased=True), torch.Tensor.never, torch.ones(2, dtype=None)
x = [3]
x.of_no_tensor(3), x.index(3), x.sum(), torch.nn.Linear(1, 2, **{}), torch.gone(1)
""",
    )
    assert found.missing == {
        "torch.not_there": "no such module",
        "torch.nn.Nothing": "",
        "torch.gone": "",
        "torch.nn.Linear(biased=)": "no such parameter",
        "torch.Tensor.never": "",
    }
    assert found.perhaps == {
        "torch.perhaps": "in a try: the program has another way",
        "Tensor.of_no_tensor": "if it is called on a tensor",
    }
    shown = found.report()
    assert shown.startswith("missing (5):\n  torch.Tensor.never") and "program.py:9, " in shown
    assert "perhaps missing (" in shown and "there (" in shown


def test_stars_and_files_that_are_no_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert list(found_in(tmp_path, "from torch import *\nzeros(2)\nnothing(3)\n").used) == ["torch.zeros"]
    assert list(found_in(tmp_path, "from .torch import x\nimport os\nfrom mine import torch\n").used) == []
    assert main([str(tmp_path)]) == 0 and capsys.readouterr().out == "no name of torch or torchvision is used\n"
    (tmp_path / "broken.py").write_text("def", encoding="utf-8")
    (tmp_path / "empty.py").write_bytes(b"\0")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "left.py").write_text("import torch; torch.gone", encoding="utf-8")
    assert main([str(tmp_path)]) == 1
    shown = capsys.readouterr().out
    assert shown.count("not read") == 2 and "gone" not in shown
    with pytest.raises(SystemExit):
        main([str(tmp_path / "nothing.py")])
    assert "there is no file" in capsys.readouterr().err


def test_programs_import_nothing_while_they_are_read(tmp_path: Path) -> None:
    before = sys.modules.get("torch")
    found_in(tmp_path, "import torch, nothing_at_all; torch.ones(2)")
    assert sys.modules.get("torch") is before and "nothing_at_all" not in sys.modules


def test_modules_by_pytorchs_names() -> None:
    assert names.module_for("torch.nn.modules.conv") is names.module_for("torch.nn")
    assert names.module_for("torch.nn.modules.nothing") is None and names.module_for("torch.utils.data.Nothing") is None


@pytest.mark.peer
def test_the_names_of_tensors_are_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    public = {name for name in dir(torch.Tensor) if not name.startswith("_")}
    assert tensor_names() == public.difference(dir(list), dir(dict), dir(str), dir(set))


def test_an_installed_library_is_scanned_by_its_name(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    (tmp_path / ".hidden" / "uses_torch").mkdir(parents=True)
    library = tmp_path / ".hidden" / "uses_torch"
    (library / "__init__.py").write_text("raise SystemExit('imported')")
    (library / "part.py").write_text("import torch\ntorch.relu(torch.nothing)\ntorch.utils._pytree.tree_map\n")
    monkeypatch.syspath_prepend(str(library.parent))
    assert main(["-m", "uses_torch"]) == 1
    shown = capsys.readouterr().out
    assert "missing (1):\n  torch.nothing  " in shown and "torch.utils._pytree.tree_map" in shown
    for words, message in ((["-m", "no_such_library"], "no module 'no_such_library'"), ([], "path, or -m MODULE")):
        with pytest.raises(SystemExit):
            main(words)
        assert message in capsys.readouterr().err
