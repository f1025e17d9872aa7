"""`python -m tritensor run`: programs that import torch find tritensor, in every process; missing names say where."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ..needs import needs_triton

Program = Callable[..., str]
ROOT = Path(__file__).resolve().parents[2]


def run(*words: str | Path, timeout: float = 120, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, without the variables that this one was started with."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("TRITENSOR_", "PYTHONPATH"))}
    return subprocess.run(
        [sys.executable, "-m", "tritensor", "run", *map(str, words)],
        env={**clean, "PYTHONPATH": str(ROOT), **environment},
        check=False,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Writes a program and runs it; returns what it printed, after it ended well."""

    def written(text: str, *words: str, options: tuple[str, ...] = (), status: int = 0) -> str:
        path = tmp_path / "program.py"
        path.write_text(text, encoding="utf-8")
        done = run(*options, path, *words)
        assert done.returncode == status, done.stderr
        return done.stdout if not status else done.stderr

    return written


def test_torch_is_tritensor_under_every_name(program: Program) -> None:
    shown = program(
        """
import sys
import torch
import torchvision
import torch.nn as nn, torch.nn.functional as F
import torch.utils.data
from torch import Tensor, optim
from torch.autograd.variable import Function
from torch.nn.modules.conv import Conv2d
from torch.nn.parameter import Parameter
from torch.optim.lr_scheduler import StepLR
from torch.utils.data.dataset import Dataset
from torchvision.models.resnet import resnet18
import tritensor

assert torch.__name__ == "torch" and torch.__version__.startswith("2.") and repr(torch) == "<module 'torch': tritensor>"
assert torch.nn is nn and sys.modules["torch.nn"] is nn and "Linear" in dir(nn)
assert Tensor is tritensor.Tensor and F.relu is tritensor.nn.functional.relu and optim.SGD is tritensor.optim.SGD
assert Conv2d is nn.Conv2d and Dataset is torch.utils.data.Dataset and Parameter is nn.Parameter
assert StepLR is optim.lr_scheduler.StepLR and resnet18 is torchvision.models.resnet18
assert Function is torch.autograd.Function
print(__name__, sys.argv[1:], sys.path[0] == __file__.rpartition("/")[0], F.relu(torch.tensor([-1.0, 2.0])))
""",
        "--epochs",
        "2",
    )
    assert shown == "__main__ ['--epochs', '2'] True tensor([0., 2.])\n"


def test_flags_and_patches_reach_the_module_here(program: Program) -> None:
    program("""
import torch, tritensor
torch.backends.cudnn.benchmark = True
torch.backends.cuda.matmul.allow_tf32 = True
assert tritensor.backends.cudnn.benchmark and torch.backends.cudnn.benchmark
with torch.backends.cudnn.flags(enabled=False):
    assert not torch.backends.cudnn.enabled and not torch.backends.cudnn.benchmark
assert torch.backends.cudnn.enabled and torch.backends.cudnn.benchmark
relu = torch.nn.functional.relu
torch.nn.functional.relu = abs
assert tritensor.nn.functional.relu is abs and torch.nn.functional.relu is abs
torch.nn.functional.relu = relu
""")


@pytest.mark.thorough
def test_a_missing_name_fails_where_it_is_used(program: Program) -> None:
    text = """
import torch
import torch.not_there as far
from torch import nothing
from torch.missing.module import Thing
print("imported")
CALL
"""
    for call, name, imported in (
        ("far.deep(3)", "torch.not_there.deep", 3),
        ("nothing(torch.ones(2))", "torch.nothing", 4),
        ("if nothing: pass", "torch.nothing", 4),
        ("Thing()", "torch.missing.module.Thing", 5),
        ("torch.nn.Nothing(3)", "torch.nn.Nothing", None),
        ("getattr(torch.nn, 'Nothing')", "torch.nn.Nothing", None),
    ):
        shown = program(text.replace("CALL", call), status=1)
        assert name in shown and "program.py:7 uses" in shown, shown
        assert imported is None or f"program.py:{imported} imported it" in shown
        assert "python -m tritensor scan" in shown and "runpy" not in shown


def test_a_program_that_expects_a_name_to_be_missing_takes_its_other_way(program: Program) -> None:
    assert (
        program("""
import importlib.util
import torch
try:
    from torch import nothing
except ImportError:
    nothing = None
try:
    import torch.not_there
except (ValueError, ModuleNotFoundError):
    pass
else:
    raise AssertionError
try:
    import torch.not_there
except:
    print("all")
assert nothing is None and not hasattr(torch, "nothing") and getattr(torch.nn, "Nothing", 3) == 3
assert importlib.util.find_spec("torch.not_there") is None and importlib.util.find_spec("torch.nn") is not None
""")
        == "all\n"
    )


def test_names_that_were_imported_and_not_used_do_no_harm(program: Program) -> None:
    program("""
import torch
from torch import nothing, ones
from torch import *
assert not hasattr(torch, "nothing") and zeros(2).shape == ones(2).shape
import copy, inspect, pickle
inspect.getmodule(nothing), repr(nothing)
""")


@pytest.mark.thorough
def test_processes_that_it_starts_import_the_same(program: Program) -> None:
    assert (
        program("""
import subprocess, sys
import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset

class Squares(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        return torch.tensor(i * i)

def work(index, queue):
    queue.put((index, torch.ones(index + 1).sum().item()))

if __name__ == "__main__":
    for batch in DataLoader(Squares(), 2, num_workers=1, multiprocessing_context="spawn"):
        print(batch.tolist())
    queue = mp.get_context("spawn").SimpleQueue()
    mp.spawn(work, args=(queue,), nprocs=2)
    print(sorted([queue.get(), queue.get()]))
    print(subprocess.check_output([sys.executable, "-c", "import torchvision, torch; print(torch)"], text=True), end="")
""")
        == "[0, 1]\n[4, 9]\n[(0, 1.0), (1, 2.0)]\n<module 'torch': tritensor>\n"
    )


def test_exceptions_and_exits_are_the_programs(program: Program) -> None:
    shown = program("def fail():\n    raise ValueError('mine')\nfail()\n", status=1)
    assert shown.splitlines()[:2][1].endswith('program.py", line 3, in <module>') and "ValueError: mine" in shown
    program("import sys; sys.exit(3)", status=3)


def test_the_profile_lists_functions(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("import torch\n(torch.ones(3) + 1).sum()\n", encoding="utf-8")
    done = run("--profile", path)
    assert done.returncode == 0 and "tottime" in done.stderr and "function calls" in done.stderr


@needs_triton
def test_simulated_devices_and_checks(program: Program) -> None:
    shown = program(
        """
import subprocess, sys
import torch
from tritensor import settings
print(torch.cuda.device_count(), settings.check.value, (torch.ones(3, device="cuda:1") + 1).sum().item())
code = "import torch; print(torch.cuda.device_count())"
print(subprocess.check_output([sys.executable, "-c", code], text=True), end="")
""",
        options=("--simulate-cuda", "2", "--checked"),
    )
    assert shown == "2 True 6.0\n2\n"


def test_a_module_runs_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("import torch, sys; print(torch, sys.argv[1:])", encoding="utf-8")
    done = run("-m", "own", "a", PYTHONPATH=f"{ROOT}{os.pathsep}{tmp_path}")
    assert done.stdout == "<module 'torch': tritensor> ['a']\n", done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing.py"], "there is no file 'nothing.py'"),
        (["--simulate-cuda", "-1", __file__], "expected a number of at least 0"),
    ],
)
def test_wrong_options(words: list[str], message: str) -> None:
    done = run(*words)
    assert done.returncode == 2 and message in done.stderr


@pytest.mark.thorough
def test_every_module_is_imported_by_star_and_under_another_name(program: Program) -> None:
    """All modules that there are: what a module of ours imported for itself is not among its names."""
    shown = program("""
import importlib, pkgutil, types
import tritensor, tritensor.vision
from tritensor.scripts import names

modules = {"torch", "torchvision", *names._WHOLE}
for package, theirs in ((tritensor.vision, "torchvision"), (tritensor, "torch")):
    found = pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    modules |= {theirs + each.name.removeprefix(package.__name__) for each in found}
others = ("torch.vision", "torch.scripts", "torch.backends.einops", "torch.sklearn")  # no modules of PyTorch's
for name in sorted(modules):
    if "__main__" in name or name.startswith(others):
        continue
    scope, other = {}, {}
    exec(f"from {name} import *", scope)
    exec(f"import {name} as whole", other)
    assert other["whole"].__name__ == name
    for each, value in scope.items():
        if isinstance(value, types.ModuleType):
            assert value.__name__ == f"{name}.{each}", (name, each)
        assert each not in ("np", "annotations"), (name, each)
print(len(modules) > 300)
from torch.nn.init import *
from torch.autograd import *
from torch.utils.data import *
from torchvision.models import *
from torch.nn import *
print(xavier_uniform_, Function, DataLoader, resnet18, Linear, functional)
""")
    assert shown.startswith("True\n<function xavier_uniform_") and "<module 'torch.nn.functional'" in shown


def test_what_a_module_imported_for_itself_is_missing_and_not_an_error_of_importing(program: Program) -> None:
    shown = program("""
import inspect
import torch
assert not hasattr(torch.fft, "layout") and not hasattr(torch.nn.init, "math")
print(len(inspect.getmembers(torch.nn)) > 100, "Linear" in dict(inspect.getmembers(torch.nn)))
""")
    assert shown == "True True\n"
