"""Public names: one declaration each, found in every module of a folder."""

from __future__ import annotations

import inspect
import sys
import zipfile
from pathlib import Path

import pytest

import tritensor as torch
from tritensor.ground import public
from tritensor.operators import Operator, registry


def test_a_name_is_declared_once() -> None:
    with pytest.raises(ValueError, match="the public name 'abs' is declared twice"):
        public.publish("abs", abs)
    with pytest.raises(ValueError, match="the public name 'gelu' is declared twice"):
        public.publish("gelu", abs)  # a name of tritensor.functional alone
    assert "gelu" not in public.PACKAGE and torch.abs is not abs


def test_a_function_says_where_it_is_public() -> None:
    assert torch.flip is torch.functional.flip and inspect.unwrap(torch.flip) is vars(torch.Tensor)["flip"]
    assert inspect.unwrap(torch.reshape) is vars(torch.Tensor)["reshape"] and not hasattr(torch.functional, "reshape")
    assert torch.functional.gelu is torch.nn.functional.gelu and not hasattr(torch, "gelu")
    assert inspect.unwrap(torch.concat) is inspect.unwrap(torch.cat) and not hasattr(torch.Tensor, "cat")
    assert vars(torch.Tensor)["swapaxes"] is inspect.unwrap(torch.transpose)


def test_an_operators_signature_is_that_of_its_call() -> None:
    """PyTorch's names for inputs that are called x and y, for the function, the method and the method in place."""
    shown = "(input: 'Tensor', end: 'Any', weight: 'Any'%s) -> 'Tensor'"
    assert str(inspect.signature(torch.Tensor.lerp)) == shown % ""
    assert str(inspect.signature(torch.lerp)) == shown % ", *, out: 'Tensor | None' = None"
    assert str(inspect.signature(torch.Tensor.lerp)) == str(inspect.signature(torch.Tensor.lerp_))
    assert list(inspect.signature(registry["cat"]).parameters)[:2] == ["tensors", "dim"]
    assert "reference" in inspect.signature(Operator).parameters  # a class of operators has its constructor's
    assert list(inspect.signature(torch.Tensor.clamp_).parameters) == ["input", "min", "max"]


@pytest.mark.parametrize("zipped", [False, True])
def test_every_module_of_a_folder_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zipped: bool) -> None:
    name = f"loaded_{zipped}".lower()
    call = "from tritensor.ground.public import load_modules\nload_modules(__name__, __path__, {'skipped'})\n"
    files = {"__init__.py": call, "first.py": "", "second.py": "", "skipped.py": "1 / 0", "notes.txt": ""}
    if zipped:
        with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
            for file, text in files.items():
                archive.writestr(f"{name}/{file}", text)
        monkeypatch.syspath_prepend(tmp_path / "archive.zip")
    else:
        (tmp_path / name).mkdir()
        for file, text in files.items():
            (tmp_path / name / file).write_text(text, encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
    __import__(name)
    found = {module for module in sys.modules if module.startswith(name)}
    for module in found:
        monkeypatch.delitem(sys.modules, module)
    assert found == {name, f"{name}.first", f"{name}.second"}
