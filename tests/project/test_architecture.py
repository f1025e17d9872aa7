"""The house rules that a machine can check: the import ladder, a light import, public names, documentation, the
stub.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tritensor

PACKAGE = Path(tritensor.__file__).parent
ROOT = Path(__file__).resolve().parents[2]

# Floors of the ladder: a module imports, when it is itself imported, only from floors below its own or from its own.
LADDER = [
    ("errors", "settings"),
    ("dtypes", "devices"),
    ("layout", "drivers", "memory"),
    ("autograd",),
    ("tensor", "host_access", "printing"),
    ("operator", "rules", "inplace", "runtime"),
    ("kernels",),
    ("functional", "random", "generators", "function"),
    (
        "nn",
        "optim",
        "utils",
        "vision",
        "distributed",
        "serialization",
        "cuda",
        "backends",
        "testing",
        "doctor",
        "pytest_plugin",
        "version",
    ),
    ("__init__", "__main__"),
]


def floor(module: str) -> int:
    """The floor of a module named relative to the package; the longest entry that fits decides."""
    best, found = -1, -1
    for level, names in enumerate(LADDER):
        for name in names:
            if (module == name or module.startswith(name + ".")) and len(name) > best:
                best, found = len(name), level
    assert found >= 0, f"{module} stands on no floor of the ladder in tests/project/test_architecture.py"
    return found


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def imports(path: Path) -> set[str]:
    """The modules of the package that a file imports when it is imported (not inside functions or TYPE_CHECKING)."""
    package = path.relative_to(PACKAGE).parent.parts
    found: set[str] = set()
    stack: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and node.level:
            base = list(package[: len(package) - node.level + 1])
            target = base + (node.module.split(".") if node.module else [])
            for alias in node.names:
                full = ".".join([*target, alias.name])
                isfile = (PACKAGE / Path(*target, alias.name)).with_suffix(".py").exists() or (
                    PACKAGE / Path(*target, alias.name)
                ).is_dir()
                found.add(full if isfile else ".".join(target))
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("tritensor"):
            found.add(node.module.partition(".")[2])
        stack.extend(ast.iter_child_nodes(node))
    return {name for name in found if name}


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_go_down_the_ladder(path: Path) -> None:
    own = floor(module_name(path))
    above = {name for name in imports(path) if floor(name) > own}
    assert not above, f"{module_name(path)} (floor {own}) imports {sorted(above)} from above"


@pytest.mark.parametrize("path", [path for path in FILES if path.name != "__init__.py"], ids=module_name)
def test_files_can_be_held_in_one_look(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 500


def run(code: str) -> str:
    """What a fresh interpreter prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, cwd=ROOT
    ).stdout.strip()


def test_import_is_light() -> None:
    heavy = "{'torch', 'triton', 'cuda', 'tqdm', 'safetensors', 'tritensor.nn', 'tritensor.serialization'}"
    # `cuda` may be there before: some versions of cuda-bindings have Python load it when it starts
    code = f"import sys; before = set(sys.modules); import tritensor; print({heavy} & (set(sys.modules) - before))"
    assert run(code) == "set()"


def test_everything_on_the_cpu_works_without_triton_and_cuda() -> None:
    code = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('triton', 'cuda', 'torch'):
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
import tritensor as torch
from tritensor import nn, optim
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
adam = optim.Adam(model.parameters())
nn.CrossEntropyLoss()(model(torch.randn(3, 4)), torch.tensor([0, 1, 0])).backward()
adam.step()
assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
try:
    torch.ones(1, device='cuda')
except RuntimeError as error:
    print('pip install' in str(error) and 'TRITENSOR_SIMULATE_CUDA' in str(error))
"""
    assert run(code) == "True"


MODULES = [
    "",
    "nn",
    "nn.functional",
    "nn.init",
    "nn.parallel",
    "nn.utils",
    "optim",
    "utils.data",
    "cuda",
    "distributed",
    "autograd",
    "testing",
    "functional",
    "random",
    "serialization",
    "settings",
    "errors",
    "dtypes",
    "devices",
]


@pytest.mark.parametrize("name", MODULES)
def test_public_names_exist_once(name: str) -> None:
    module = importlib.import_module("tritensor" + (f".{name}" if name else ""))
    names = module.__all__
    assert len(names) == len(set(names)), f"twice in __all__: {sorted({n for n in names if names.count(n) > 1})}"
    missing = [entry for entry in names if not hasattr(module, entry)]
    assert missing == []


def test_package_has_exactly_its_public_names() -> None:
    """Nothing public slips in beside `__all__` but the submodules."""
    submodules = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    # names with an @ are pytest's: it rewrites the assertions of a package that brings a plugin
    names = {entry for entry in vars(tritensor) if not entry.startswith(("_", "@"))}
    assert (
        names
        - set(tritensor.__all__)
        - submodules
        - {"annotations", "importlib", "math", "warnings", "TYPE_CHECKING", "Any"}
        == set()
    )


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_documented(name: str) -> None:
    module = importlib.import_module("tritensor" + (f".{name}" if name else ""))
    bare = []
    for entry in module.__all__:
        value = getattr(module, entry)
        if (inspect.isfunction(value) or inspect.isclass(value)) and not inspect.getdoc(value):
            bare.append(entry)
    assert bare == []


def test_tensor_methods_are_documented() -> None:
    bare = [
        name
        for name, value in vars(tritensor.Tensor).items()
        if not name.startswith("_") and callable(value) and not inspect.getdoc(value)
    ]
    assert bare == []


def test_generated_files_are_fresh() -> None:
    """`python -m tools.generate` writes the type stubs and the page of operators."""
    command = [sys.executable, "-m", "tools.generate", "--check"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    checked = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert checked.returncode == 0, checked.stderr


def test_nothing_speaks_of_what_is_not_the_project() -> None:
    """No file names a machine's folders or a folder beside the checkout."""
    words = ["../" + "shared", "/work" + "/", "/opt" + "/v"]
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT)
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in listed.stdout.split():
        path = ROOT / name
        if path.suffix in (".py", ".md", ".toml", ".yml", ".pyi", "") and path.is_file():
            text = path.read_text(encoding="utf-8", errors="ignore")
            assert [word for word in words if word in text] == [], name
