"""The project's own promises: what is installed, what `make` and continuous integration do on an unfriendly machine."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import stat
import subprocess
import tomllib
from pathlib import Path

import pytest

import tritensor

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

needs_make = pytest.mark.skipif(
    shutil.which("make") is None or os.name == "nt", reason="the Makefile is for machines with make and a POSIX shell"
)


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=~; ]", requirement, maxsplit=1)[0] for requirement in requirements}


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_default_install_is_light() -> None:
    assert names(PROJECT["dependencies"]) == {"numpy", "ml_dtypes", "safetensors", "tqdm"}


def test_torch_is_no_dependency_of_any_extra() -> None:
    wanted = set().union(*(names(extra) for extra in PROJECT["optional-dependencies"].values()))
    assert wanted.isdisjoint({"torch", "torchvision", "jax"})
    assert {"triton", "cuda", "examples", "test", "docs", "dev"} <= set(PROJECT["optional-dependencies"])


def test_extras_refer_to_extras_that_exist() -> None:
    extras = PROJECT["optional-dependencies"]
    for requirements in extras.values():
        for requirement in requirements:
            if requirement.startswith("tritensor["):
                inner = requirement.removeprefix("tritensor[").partition("]")[0]
                assert set(inner.split(",")) <= set(extras), requirement


def test_version_is_the_same_everywhere() -> None:
    version = tritensor.__version__
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    try:
        installed = importlib.metadata.version("tritensor")
    except importlib.metadata.PackageNotFoundError:
        return  # run from the source tree
    assert installed == version


def test_package_is_typed() -> None:
    package = Path(tritensor.__file__).parent
    assert (package / "py.typed").is_file()
    if package.parent != ROOT:  # a checkout that is not installed may have no stubs yet
        assert {path.relative_to(package).as_posix() for path in package.rglob("*.pyi")} >= {
            "__init__.pyi",
            "functional/__init__.pyi",
            "tensors/tensor.pyi",
        }


def test_the_list_of_names_is_in_the_package() -> None:
    assert (Path(tritensor.__file__).parent / "ground" / "names.txt").exists()


def test_pytest_plugin_is_registered_where_it_is() -> None:
    (module,) = PROJECT["entry-points"]["pytest11"].values()
    assert importlib.util.find_spec(module) is not None


@needs_make
def test_make_passes_over_a_python_that_does_not_run(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin", "python3", "echo 'shim: python3: command not found' >&2; exit 127")
    program(tmp_path / "bin", "python3.12", 'echo "$@" >> "$(dirname "$0")/log"')
    shutil.copy(ROOT / "Makefile", tmp_path)
    done = subprocess.run(
        ["make", ".venv/bin/python"],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "bin" / "log").read_text().splitlines()[-1] == "-m venv --clear .venv"


@needs_make
def test_make_says_which_python_it_wants(tmp_path: Path) -> None:
    program(tmp_path, "old-python", "exit 1")
    shutil.copy(ROOT / "Makefile", tmp_path)
    command = ["make", ".venv/bin/python", f"PYTHON={tmp_path / 'old-python'}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "No Python 3.11 or newer" in done.stderr
    assert "old-python" in done.stderr
    assert "make PYTHON=" in done.stderr


@needs_make
def test_continuous_integration_runs_make_test(tmp_path: Path) -> None:
    program(tmp_path, "make", f'echo "$PWD: make $@" > {tmp_path / "log"}; exit 3')
    done = subprocess.run(
        ["bash", str(ROOT / ".ci" / "run")],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 3
    assert (tmp_path / "log").read_text() == f"{ROOT}: make test\n"
