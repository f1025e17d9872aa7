"""Compiled kernels on disk, found again without Triton.

Triton has a cache of its own, but a look-up imports Triton and hashes its source: 1.1 s before the first launch of a
process, 7 ms for every further kernel. Here a kernel is one file, named by a hash of everything that affects the
compiled code (the bytecode of the kernel and of every function it names, argument types, constants, the target,
Triton's version and build, its environment variables), and finding it takes a fraction of a millisecond.

A file is written under a temporary name and then renamed, so processes that compile the same kernel at the same time
do not disturb each other, and a reader sees all of a file or none of it. A damaged file is treated as missing.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from .. import settings
from ..drivers.loading import Compiled, Target
from ..types import dtypes
from .source import Kernel, _Function, names_in

_MAGIC = b"tritensor kernel 1\n"


def path_of(
    kernel: Kernel,
    signature: Any,
    constants: Mapping[str, Any],
    target: Target,
    warps: int,
    stages: int,
    name: str | None,
) -> Path:
    """The path of the file of a kernel that is compiled for these arguments."""
    values = {**kernel.defaults, **constants}
    text = repr(
        (
            *(_toolchain(), tuple(sorted(_environment().items())), target, warps, stages, name, signature),
            *(_text(kernel), sorted((key, _text(value)) for key, value in values.items())),
        )
    )
    digest = hashlib.sha256(text.encode()).hexdigest()
    return folder() / digest[:2] / f"{digest[2:34]}.kernel"


def folder() -> Path:
    """The folder `tritensor` in `settings.cache_dir`, or else in Triton's cache directory."""
    parent = settings.cache_dir.value or os.environ.get("TRITON_CACHE_DIR")
    home = os.environ.get("TRITON_HOME") or os.path.expanduser("~")
    return Path(parent or os.path.join(home, ".triton", "cache")) / "tritensor"


def load(path: Path) -> Compiled | None:
    """The stored kernel; None where the file is missing or damaged."""
    try:
        # of a pipe, which somebody put there, neither opening nor reading may wait
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            content = file.read()
    except OSError:
        return None
    try:
        magic, header, binary = content[: len(_MAGIC)], *content[len(_MAGIC) :].split(b"\n", 1)
        facts = json.loads(header)
        if magic != _MAGIC or hashlib.sha256(binary).hexdigest() != facts.pop("sha256"):
            return None
        return Compiled(binary, **facts)
    except Exception:  # nesting, numbers and types that Python refuses among them
        return None


def store(path: Path, compiled: Compiled) -> None:
    """Write a kernel for later processes. If the folder cannot be written to, nothing is stored and nothing raised."""
    facts = {**compiled._asdict(), "sha256": hashlib.sha256(compiled.binary).hexdigest()}
    del facts["binary"]
    content = _MAGIC + json.dumps(facts).encode() + b"\n" + compiled.binary
    temporary = None
    try:
        for place in (path.parent.parent, path.parent):
            if not place.is_dir():
                place.mkdir(parents=True, exist_ok=True)
                place.chmod(0o700)  # whatever the umask: who can write there can have code run
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
            temporary = file.name
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


# ---- what the compiled code depends on ------------------------------------------------------------------------------


@functools.cache
def _toolchain() -> tuple[Any, ...]:
    """Python's version (on which bytecode depends), Triton's version and build, and hashes of our compiling modules."""
    try:
        version = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        version = "unknown"
    found = importlib.util.find_spec("triton")
    build: list[Any] = []
    for place in (found.submodule_search_locations or ()) if found is not None else ():
        library = Path(place) / "_C" / "libtriton.so"
        if library.exists():
            build.append((library.stat().st_size, library.stat().st_mtime_ns))
    ours = [
        hashlib.sha256((Path(__file__).parent / name).read_bytes()).hexdigest() for name in ("compiler.py", "source.py")
    ]
    return sys.version_info[:3], sys.implementation.cache_tag, sys.flags.optimize, version, build, ours


def _environment() -> dict[str, str]:
    """The environment variables that may change the code that Triton generates."""
    places = ("TRITON_CACHE_DIR", "TRITON_HOME", "TRITON_CACHE_MANAGER")
    prefixes = ("TRITON_", "MLIR_", "LLVM_", "DISABLE_", "ENABLE_", "PTXAS_")
    return {key: value for key, value in os.environ.items() if key.startswith(prefixes) and key not in places}


def _text(value: Any, within: tuple[Any, ...] = ()) -> Any:
    """A value that compiled code depends on, converted to one whose repr is the same in every process."""
    if isinstance(value, (_Function, FunctionType)):
        if value in within:
            return "itself"
        known = getattr(value, "fingerprint", None)
        if known is None:
            known = _of_function(value, (*within, value))
            if isinstance(value, _Function) and not within:
                value.fingerprint = known
        return known
    if isinstance(value, dtypes.dtype):
        return f"dtype {value.name}"
    if isinstance(value, tuple):
        return tuple(_text(part, within) for part in value)
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    if hasattr(value, "cache_key"):  # a Triton JITFunction, whose key hashes its source and all that this names
        return f"jit {value.cache_key}"
    return value.__class__.__qualname__, repr(value)


def _of_function(function: Callable[..., Any], within: tuple[Any, ...]) -> str:
    plain = function.function if isinstance(function, _Function) else function
    cells = []
    for cell in plain.__closure__ or ():
        try:
            cells.append(_text(cell.cell_contents, within))
        except ValueError:
            cells.append("empty")
    named = {
        name: _text(plain.__globals__[name], within)
        for name in sorted(set(names_in(plain.__code__)))
        if name in plain.__globals__
    }
    defaults = _text(plain.__defaults__ or (), within), sorted((plain.__kwdefaults__ or {}).items())
    text = repr(
        (function.__name__, _of_code(plain.__code__), sorted(plain.__annotations__.items()), defaults, cells, named)
    )
    return hashlib.sha256(text.encode()).hexdigest()


def _of_code(code: CodeType) -> tuple[Any, ...]:
    constants = []
    for value in code.co_consts:
        if isinstance(value, CodeType):
            constants.append(_of_code(value))
        elif isinstance(value, frozenset):
            constants.append(("frozenset", sorted(map(repr, value))))
        else:
            constants.append((value.__class__.__name__, repr(value)))
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars
