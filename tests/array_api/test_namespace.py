"""The namespace has every name of the standard, with its signature and what it says of itself."""

from __future__ import annotations

import inspect
import math
from pathlib import Path
from typing import Any

import pytest

import tritensor as torch
from tritensor import array_api as xp

from . import standard
from .__main__ import listed

NAMED = [f"{name}(x, /)" for name in standard.ONE.split()] + [f"{name}(x1, x2, /)" for name in standard.TWO.split()]
LINES = [("", line) for line in NAMED + standard.NAMESPACE.strip().splitlines()]
LINES += [("linalg", line) for line in standard.LINALG.strip().splitlines()]
LINES += [("fft", line) for line in standard.FFT.strip().splitlines()]

# What scikit-learn calls as NumPy has it.
WIDER = {
    "diff": "x, /, n=1, axis=-1, *, prepend=None, append=None",
    "where": "condition, x1=None, x2=None, /",
}


def shown(function: Any) -> list[tuple[str, Any, Any]]:
    """The parameters, without the names of those that have none for the caller."""
    found = inspect.signature(function).parameters.values()
    return [(each.name if each.kind > each.POSITIONAL_ONLY else "", each.kind, each.default) for each in found]


@pytest.mark.parametrize("module", ["", "linalg", "fft"])
def test_every_function_has_the_standards_signature(module: str) -> None:
    space = getattr(xp, module) if module else xp
    lines = [line for where, line in LINES if where == module]
    assert len(lines) == {"": 133, "linalg": 23, "fft": 14}[module]
    for line in lines:
        name, _, parameters = line.removesuffix(")").partition("(")
        function = getattr(space, name)
        wanted = shown(eval(f"lambda {WIDER.get(name, parameters)}: 0"))
        assert shown(function) == wanted, line
        assert function.__doc__ and function.__doc__[0] != " " and function.__name__ == name, line
        assert {each.annotation for each in inspect.signature(function).parameters.values()} != {inspect._empty}


def test_dtypes_and_constants() -> None:
    for name in standard.DTYPES.split():
        assert getattr(xp, name) is getattr(torch, name)
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (math.e, math.pi, math.inf, None) and math.isnan(xp.nan)
    assert {*standard.DTYPES.split(), *standard.CONSTANTS.split()} < set(xp.__all__) <= set(dir(xp))
    assert xp.__array_api_version__ == "2024.12"


def test_a_tensor_has_the_namespace() -> None:
    x = torch.ones(2)
    for version in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        assert x.__array_namespace__(api_version=version) is xp
    assert torch.array_api is xp and xp.asarray(1.0).__array_namespace__() is xp
    for version in ("2025.12", "1.0", 2024.12):
        with pytest.raises(ValueError, match=r"there are .*2024\.12"):
            x.__array_namespace__(api_version=version)


def test_what_the_namespace_says_of_itself(device: torch.device) -> None:
    info = xp.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    assert info.default_device() == torch.device("cpu") and torch.device("cpu") in info.devices()
    assert device in info.devices() and torch.device("cuda", 99) not in info.devices()
    with device:
        assert info.default_device() == device == xp.zeros(1).device
    assert info.default_dtypes(device=device) == {
        "real floating": torch.float32,
        "complex floating": torch.complex64,
        "integral": torch.int64,
        "indexing": torch.int64,
    }
    assert list(info.dtypes(device=device, kind=("bool", "unsigned integer"))) == [
        *("bool", "uint8", "uint16", "uint32", "uint64")
    ]
    assert set(info.dtypes()) == set(standard.DTYPES.split())
    assert all(xp.zeros(2, dtype=kind, device=device).dtype is kind for kind in info.dtypes().values())


def test_the_default_dtype_is_that_of_the_library() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        defaults = xp.__array_namespace_info__().default_dtypes()
        assert defaults["real floating"] is torch.float64 and defaults["complex floating"] is torch.complex128
        assert xp.asarray([1.0]).dtype is torch.float64 and xp.asarray(1j).dtype is torch.complex128
    finally:
        torch.set_default_dtype(torch.float32)


def test_to_device(device: torch.device) -> None:
    x = torch.ones(2)
    assert x.to_device("cpu") is x and x.to_device(device).device == device
    with pytest.raises(TypeError, match=r"(?s)takes no stream.*cuda.stream"):
        x.to_device(device, stream=1)


@pytest.mark.parametrize("simulate", [False, True])
def test_each_test_that_fails_is_listed_with_a_reason(simulate: bool) -> None:
    """A line of the file is the id of a test of the suite; above each group of them stands why they fail."""
    path: Path = listed(simulate)
    before = ""
    ids = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            assert line.startswith("array_api_tests/test_") and "::" in line and before, line
            ids.append(line)
        before = line
    assert len(ids) == len(set(ids)) <= (20 if simulate else 15)
