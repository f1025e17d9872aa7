"""The rules of the project that a machine can check: which room imports which, circles, the length of files, a light
import, public names, documentation, generated files.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import tritensor
from tritensor.ground import index

PACKAGE = Path(tritensor.__file__).parent
ROOT = Path(__file__).resolve().parents[2]

# The rooms of the package, lowest first: folders, of which each imports from itself and from those before it. Every
# import counts, those inside functions and under TYPE_CHECKING too, and those by `import_module`.
ROOMS = (
    "ground types host drivers memory autograd tensors runtime operators kernels functional linalg func cuda "
    "distributed utils nn optim serialization vision"
)
# The doors: modules and small folders that stand where PyTorch, Python or a user's import looks for them. Each is
# listed after the highest room that it imports from, and the rooms after that one may import it.
DOORS = {
    "": "errors settings version jit multiprocessing onnx",
    "tensors": "return_types",
    "functional": "amp backends cpu fft library masked overrides quasirandom random signal sparse special",
    "linalg": "array_api",
    "cuda": "accelerator profiler pytest_plugin testing",
    "distributed": "futures",
    "nn": "compiler distributions scripts",
    "optim": "sklearn",
    "serialization": "hub",
    "vision": "__init__ __main__",
}
LEVELS = {room: 2 * level for level, room in enumerate(ROOMS.split(), 1)}
LEVELS |= {door: LEVELS.get(room, 0) + 1 for room, doors in DOORS.items() for door in doors.split()}


def module_name(path: Path) -> str:
    """The module's name relative to the package; that of a folder is its `__init__`'s."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


FILES = sorted(PACKAGE.rglob("*.py"))
MODULES_OF_THE_PACKAGE = {module_name(path) for path in FILES}


def named(call: ast.Call, package: tuple[str, ...]) -> set[str]:
    """What `import_module("tritensor.name")` or `import_module(".name", __package__)` imports."""
    name = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else ""
    if not isinstance(name, str) or not name.startswith((".", "tritensor")):
        return set()
    bare = name.lstrip(".")
    above = package[: len(package) - (len(name) - len(bare)) + 1]
    parts = [*above, *bare.split(".")] if bare != name else bare.split(".")[1:]
    return {".".join(parts)}


@cache
def imports(path: Path) -> frozenset[str]:
    """The modules of the package that a file imports, anywhere in it."""
    package = path.relative_to(PACKAGE).parent.parts
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[2] for alias in node.names if alias.name.split(".")[0] == "tritensor"}
        elif isinstance(node, ast.ImportFrom):
            parts = node.module.split(".") if node.module else []
            if node.level:
                parts = [*package[: len(package) - node.level + 1], *parts]
            elif parts and parts[0] == "tritensor":
                parts = parts[1:]
            else:
                continue
            for alias in node.names:
                full = ".".join([*parts, alias.name])
                found.add(full if full in MODULES_OF_THE_PACKAGE else ".".join(parts))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("import_module", "__import__"):
            found |= named(node, package)
    return frozenset(name or "__init__" for name in found)


def room_of(name: str) -> str:
    """The room or door in which a module is."""
    return name.partition(".")[0]


def circles(graph: dict[str, set[str]] | dict[str, frozenset[str]]) -> Iterator[str]:
    """The first circle that is met on the way down from each name."""
    finished: set[str] = set()

    def circle(name: str, way: tuple[str, ...]) -> tuple[str, ...]:
        if name in way:
            return (*way[way.index(name) :], name)
        if name in finished:
            return ()
        for other in sorted(graph[name]):
            if found := circle(other, (*way, name)):
                return found
        finished.add(name)
        return ()

    for name in graph:
        if found := circle(name, ()):
            yield " -> ".join(found)


def test_every_room_and_door_is_listed() -> None:
    assert {room_of(module_name(path)) for path in FILES} == LEVELS.keys()
    rooms = ROOMS.split()
    assert len(rooms) == 20 and all((PACKAGE / room / "__init__.py").is_file() for room in rooms)


def test_imports_by_name_count() -> None:
    call = ast.parse('importlib.import_module("tritensor.array_api")').body[0]
    inside = ast.parse('import_module("..linalg.norms", __package__)').body[0]
    assert isinstance(call, ast.Expr) and isinstance(call.value, ast.Call)
    assert isinstance(inside, ast.Expr) and isinstance(inside.value, ast.Call)
    assert named(call.value, ("functional", "views")) == {"array_api"}
    assert named(inside.value, ("functional",)) == {"linalg.norms"}


def test_imports_go_down_the_ladder() -> None:
    above = {}
    for path in FILES:
        own = LEVELS[room_of(module_name(path))]
        above[module_name(path)] = sorted(name for name in imports(path) if LEVELS[room_of(name)] > own)
    assert {name: found for name, found in above.items() if found} == {}


def test_no_room_or_door_imports_itself_by_way_of_others() -> None:
    graph: dict[str, set[str]] = {room: set() for room in LEVELS}
    for path in FILES:
        own = room_of(module_name(path))
        graph[own] |= {room_of(name) for name in imports(path)} - {own}
    assert [*circles(graph)] == []


def test_no_file_imports_itself_by_way_of_others() -> None:
    """A file that names a submodule of a folder does not count as importing the folder's `__init__`."""
    assert [*circles({module_name(path): imports(path) for path in FILES})] == []


FAMILIES = {path.parent.name for path in (PACKAGE / "kernels").glob("*/__init__.py")}


@pytest.mark.parametrize("folder", sorted((PACKAGE / "functional").glob("*/")), ids=lambda folder: folder.name)
def test_a_folder_of_functions_is_that_of_a_family(folder: Path) -> None:
    """It has the name of a family of kernels, or is one of three of tensors themselves; and it imports kernels of
    that family and of at most two others.
    """
    if folder.name == "__pycache__":
        return
    assert folder.name in FAMILIES | {"creation", "sparse", "views"}
    used = {name.split(".")[1] for path in folder.glob("*.py") for name in imports(path) if name.startswith("kernels.")}
    others = sorted(used & FAMILIES - {folder.name})
    assert len(others) <= 2, f"functional/{folder.name} imports kernels of {others}"


def test_no_function_stands_outside_of_the_folders() -> None:
    assert [path.name for path in (PACKAGE / "functional").glob("*.py")] == ["__init__.py"]


def test_every_folder_says_what_it_is_for() -> None:
    """In the first sentence of its `__init__`, by more than its name."""
    for path in [path for path in FILES if path.name == "__init__.py"]:
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        first = " ".join((text or "").partition("\n\n")[0].split())
        assert first.endswith(".") and len(first.split()) > 3, f"{module_name(path)}: {first!r}"


SOURCES = sorted(
    path for room in ("tritensor", "tests", "benchmarks", "tools", "examples") for path in (ROOT / room).rglob("*.py")
)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_files_can_be_held_in_one_look() -> None:
    lines = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {name: count for name, count in lines.items() if count > 500} == {}


def test_a_simulator_is_a_driver_like_another() -> None:
    """What differs between drivers is a driver's to do: nothing outside of `drivers/` asks which one it has."""
    others = [path for path in FILES if path.parent != PACKAGE / "drivers"]
    assert [module_name(path) for path in others if "is_simulated" in path.read_text(encoding="utf-8")] == []


def tracked_files() -> list[Path]:
    """The files that belong to the project."""
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [path for name in listed.stdout.splitlines() if (path := ROOT / name).is_file()]


def test_the_formatter_formats_everything() -> None:
    # written in two parts, or this file would be one of those that it looks for
    marks = re.compile(r"#\s*fmt" + r":\s*(skip|off)")
    kept = [path for path in tracked_files() if path.suffix == ".py" and marks.search(path.read_text(encoding="utf-8"))]
    assert [relative(path) for path in kept] == []


def run(code: str) -> str:
    """What a fresh interpreter prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, cwd=ROOT
    ).stdout.strip()


def test_import_is_light() -> None:
    modules = "torch triton cuda tqdm safetensors PIL sklearn tritensor.nn tritensor.serialization"
    heavy = f"set({modules!r}.split())"
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
    "linalg",
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
    "special",
    "errors",
    "types.dtypes",
    "types.devices",
    "vision",
    "vision.datasets",
    "vision.io",
    "vision.models",
    "vision.transforms",
    "vision.transforms.functional",
    "vision.utils",
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
        names - set(tritensor.__all__) - submodules - {"annotations", "importlib", "math", "warnings", "Any"} == set()
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
    index.everything()
    bare = [
        name
        for name, value in vars(tritensor.Tensor).items()
        if not name.startswith("_") and callable(value) and not inspect.getdoc(value)
    ]
    assert bare == []


def test_generated_files_are_fresh() -> None:
    """The page of differences, which is committed, and the stubs, which are not: a second process makes the same."""
    for seed, option in (("1", "--stubs"), ("2", "--check")):
        command = [sys.executable, "-m", "tools.generate", option]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
        made = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
        assert made.returncode == 0, made.stderr


_BRANCHES = (ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.With, ast.Assert)


def complexity(node: ast.AST) -> int:
    """McCabe's number less one: branches, blocks, conditions of comprehensions, and operands after `and` and `or`.

    Functions in a function are counted by themselves.
    """
    found = 0
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef):
            found += isinstance(child, _BRANCHES) + complexity(child)
            found += len(child.values) - 1 if isinstance(child, ast.BoolOp) else 0
            found += len(child.ifs) if isinstance(child, ast.comprehension) else 0
    return found


@pytest.mark.thorough
def test_no_function_is_a_maze() -> None:
    """None has a complexity over 30; one that comes near is cut where it changes the subject."""
    functions = [
        (relative(path), node)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]
    found = {f"{path}:{node.lineno} {node.name}": 1 + complexity(node) for path, node in functions}
    assert {name: number for name, number in found.items() if number > 30} == {}


def test_nothing_speaks_of_what_is_not_the_project() -> None:
    """No file names a machine's folders or a folder beside the checkout."""
    words = ["../" + "shared", "/work" + "/", "/opt" + "/v"]
    for path in tracked_files():
        if path.suffix in (".py", ".md", ".toml", ".yml", ""):
            text = path.read_text(encoding="utf-8", errors="ignore")
            assert [word for word in words if word in text] == [], relative(path)
