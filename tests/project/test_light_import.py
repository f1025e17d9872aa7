"""Modules are imported when their names are first used: few at first, the right ones, whichever name comes first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

import tritensor as torch
from tritensor.ground import index
from tritensor.operators import registry

PACKAGE = Path(torch.__file__).parent
MOST_MODULES = 120  # 69 when this was written


def run(code: str, path: Path = PACKAGE.parent) -> str:
    """What a program prints in a process of its own, which imports the package from a folder or an archive."""
    env = {**os.environ, "PYTHONPATH": str(path)}
    folder = path if path.is_dir() else path.parent / "elsewhere"
    folder.mkdir(exist_ok=True)
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def copied(folder: Path) -> Path:
    """A checkout: the package, without what was made in it, and the file that marks its root."""
    for path in PACKAGE.rglob("*.py"):
        target = folder / "tritensor" / path.relative_to(PACKAGE)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    for path in PACKAGE.rglob("coefficients.txt"):
        (folder / "tritensor" / path.relative_to(PACKAGE)).write_bytes(path.read_bytes())
    (folder / "pyproject.toml").touch()
    return folder


COUNT = "import sys, tritensor as torch; {}print(len([name for name in sys.modules if name.startswith('tritensor')]))"


def test_an_import_and_a_first_sum_load_few_modules() -> None:
    assert int(run(COUNT.format(""))) <= MOST_MODULES
    assert int(run(COUNT.format("torch.ones(3) + 1; "))) <= MOST_MODULES


@pytest.mark.thorough
def test_names_are_listed_before_they_are_imported() -> None:
    code = """
import sys, tritensor as torch
from tritensor.nn import functional as F
before = set(sys.modules)
names = dir(torch), dir(torch.Tensor), F.__all__
assert not any(name.startswith(("tritensor.kernels", "tritensor.functional.")) for name in set(sys.modules) - before)
assert hasattr(torch.Tensor, "cumsum") and "softmax" in F.__all__ and not hasattr(torch.Tensor, "cumsun")
from tritensor import *
from tritensor.nn.functional import *
print(cumsum(tensor([1, 2]), 0).tolist(), relu(tensor([-1.0])).item(), *map(len, names), "expit" in dir(torch.special))
"""
    found = run(code)
    assert found.startswith("[1, 3] 0.0 ")
    wanted = dir(torch), dir(torch.Tensor), torch.nn.functional.__all__
    assert found.split()[3:] == [*[str(len(names)) for names in wanted], "True"]


FACTS = """
import json, sys
import pkgutil, tritensor.kernels, tritensor.functional
from tritensor.operators import registry
if sys.argv[1] == "all":
    for package in (tritensor.kernels, tritensor.functional):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "kernel" not in module.name.rpartition(".")[2]:  # those need Triton
                __import__(module.name)
def fact(value):
    if isinstance(value, (bool, int, str, float)):
        return value
    return sorted(map(str, value)) if isinstance(value, dict) else getattr(value, "__name__", type(value).__name__)
left = {"replays", "backwards", "shared"}  # what calls leave
print(json.dumps({
    name: {key: fact(value) for key, value in vars(registry[name]).items() if key not in left} for name in sys.argv[2:]
}))
"""


def facts(which: str, names: list[str]) -> dict[str, dict[str, object]]:
    command = [sys.executable, "-c", FACTS, which, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.slow
def test_an_operator_that_is_imported_alone_is_whole() -> None:
    """No module declares a gradient, a kernel or a rule for the operator of another one that does not import it."""
    lines = (PACKAGE / "ground" / "names.txt").read_text(encoding="utf-8").splitlines()
    by_module = [line.split()[2:] for line in lines if line.startswith("operator ")]
    whole = facts("all", list(registry))
    assert {name for names in by_module for name in names} == set(whole)
    for names in by_module:
        alone = facts("alone", names)
        assert alone == {name: whole[name] for name in names}


def test_an_operators_gradient_is_imported_with_it() -> None:
    """The derivative of lgamma is declared in a module that needs lgamma."""
    alone = facts("alone", ["lgamma"])
    assert alone == facts("all", ["lgamma"]) and alone["lgamma"]["gradients_of"] == ["x"]


def test_a_member_that_two_modules_declare_is_the_later_ones() -> None:
    """`add_` of the operator is there when softmax is imported; that of functional/ takes `alpha`."""
    code = "import tritensor as torch; x = torch.ones(2); torch.nn.functional.softmax(x, 0); {}; print(x.tolist())"
    assert run(code.format("x.add_(x.clone(), alpha=2)")) == "[3.0, 3.0]"
    assert run(code.format("x.sub_(x.clone(), alpha=2)")) == "[-1.0, -1.0]"


@pytest.mark.thorough
def test_the_first_import_after_a_change_finds_what_is_new(tmp_path: Path) -> None:
    root = copied(tmp_path)
    listed = root / "tritensor" / "ground" / "names.txt"
    assert int(run(COUNT.format(""), root)) > MOST_MODULES and listed.exists()  # everything, to write the list
    first = listed.read_text(encoding="utf-8")
    assert int(run(COUNT.format(""), root)) <= MOST_MODULES
    added = root / "tritensor" / "functional" / "views" / "added.py"
    text = "from ...ground.public import public\nfrom ...tensors import Tensor\n\n\n@public(method=True)\n"
    text += 'def twice(input: "Tensor"):\n    return input + input\n'
    added.write_text(text, encoding="utf-8")
    code = "import tritensor as torch; x = torch.ones(2); print(torch.twice(x).tolist(), x.twice().tolist())"
    assert run(code, root) == run(code, root) == "[2.0, 2.0] [2.0, 2.0]"
    assert "member functional.views.added twice" in listed.read_text(encoding="utf-8")
    added.unlink()
    assert run("import tritensor as torch; print(hasattr(torch, 'twice'), hasattr(torch.Tensor, 'twice'))", root) == (
        "False False"
    )
    assert listed.read_text(encoding="utf-8") == first
    # an installed package has no project beside it, and believes the list whatever the times of its files
    (root / "pyproject.toml").unlink()
    (root / "tritensor" / "jit.py").touch()
    assert int(run(COUNT.format(""), root)) <= MOST_MODULES
    listed.unlink()  # and works without one
    assert int(run(COUNT.format("torch.ones(2).cumsum(0); "), root)) > MOST_MODULES
    archive = root / "archive.zip"
    with zipfile.ZipFile(archive, "w") as written:
        for path in (root / "tritensor").rglob("*.*"):
            if path.suffix in (".py", ".txt"):
                written.write(path, path.relative_to(root))
    assert int(run(COUNT.format(""), archive)) <= MOST_MODULES


@pytest.mark.thorough
def test_threads_import_a_module_once() -> None:
    code = """
import threading, tritensor as torch
x, found, start = torch.ones(4), [], threading.Barrier(8)
def work(number):
    start.wait()
    calls = [lambda: x.cumsum(0), lambda: torch.sort(x)[0], lambda: torch.nn.functional.gelu(x), lambda: x.erfinv()]
    found.extend([calls[(number + step) % 4]().shape[0] for step in range(4)])
threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
[each.start() for each in threads]
[each.join() for each in threads]
print(len(found), set(found))
"""
    for _ in range(3):
        assert run(code) == "32 {4}"


def test_threads_that_import_everything_wait_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two threads in the first module at once neither takes the other's second one for imported."""
    both, seen = threading.Barrier(2, timeout=20), {}
    monkeypatch.setattr(index, "_left", ["first", "second", "third"])

    def imported(name: str) -> None:
        seen.setdefault(threading.get_ident(), []).append(name)
        both.wait()

    monkeypatch.setattr(index, "__import__", imported, raising=False)
    threads = [threading.Thread(target=index.everything) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [*seen.values()] == [["tritensor.first", "tritensor.second", "tritensor.third"]] * 2
    assert index._left == []


def test_a_member_of_a_subclass_is_its_own() -> None:
    code = """
import tritensor as torch
class Mine(torch.Tensor):
    def trunc(self):
        return super().trunc() + 1
y = Mine([1.5])
print(y.trunc().tolist(), type(torch.Tensor.trunc).__name__)
z = torch.complex(torch.ones(2), torch.zeros(2))
z.real = torch.tensor([3.0, 4.0])
print(z.real.tolist())
try:
    del z.imag
except AttributeError:
    print("kept")
"""
    assert run(code).splitlines() == ["[2.0] function", "[3.0, 4.0]", "kept"]


def test_a_list_that_is_wrong_is_an_attribute_error(monkeypatch: pytest.MonkeyPatch) -> None:
    names = index.Names("of this test")
    monkeypatch.setitem(names.where, "nothing", "version")
    assert "nothing" in names and names.get("nothing", 3) == 3 and len(names) == 1 and names.listed() == ["nothing"]
    with pytest.raises(KeyError):
        names["nothing"]
    names.declare("something", 5)  # by a function: nothing is noted
    with pytest.raises(ValueError, match="the of this test name 'something' is declared twice"):
        names.declare("something", 6)
    assert list(names) == ["something"] and list(names.values()) == [5] and list(names.items()) == [("something", 5)]

    class Owner:
        missing = None

    Owner.missing = index.Later(Owner, "missing", "version")  # type: ignore[assignment]
    with pytest.raises(AttributeError, match="'Owner' object has no attribute 'missing'"):
        Owner().missing  # noqa: B018
