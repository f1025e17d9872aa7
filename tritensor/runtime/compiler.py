"""Compiles a kernel for a target; needs no GPU. Imports Triton.

`triton.compile(ASTSource, target)` needs no torch, no C compiler and no GPU. It returns machine code whose parameters
are the kernel's run-time arguments in order, with tuples flattened and constants left out, and then two pointers to
scratch memory.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import triton
import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend
from triton.language.extra import libdevice
from triton.language.semantic import TritonSemantic
from triton.runtime.jit import JITFunction

from .. import settings
from ..drivers.loading import Compiled, Target
from ..errors import DeviceError, KernelError
from ..types import dtypes
from .binary import usage
from .needs_triton import language
from .source import DeviceFunction, Kernel, rebuild

F = TypeVar("F", bound=Callable[..., Any])

# Triton's name for the machine code, by backend.
_BINARY = {"cuda": "cubin", "hip": "hsaco"}


@dataclass(frozen=True)
class CompiledFacts:
    """Properties of compiled code that are known without running it.

    Attributes:
        name: the entry point, which is what profilers show.
        asm: texts by stage: ttir, ttgir, llir, ptx and sass (NVIDIA, where the disassembler is) or amdgcn (AMD).
        binary: the cubin or hsaco.
        shared: bytes of shared memory per program.
        warps: warps per program, which may be more than requested.
        registers: per thread; None where an AMD kernel does not say.
        local_bytes: per thread, spilled registers and local arrays; 0 in a fast kernel.
    """

    name: str
    asm: Mapping[str, str] = field(repr=False)
    binary: bytes = field(repr=False)
    shared: int
    warps: int
    registers: int | None
    local_bytes: int


class _Named(JITFunction):
    """A JITFunction whose cache key includes a name, so that equal source under two names is compiled twice."""

    salt = ""

    @property
    def cache_key(self) -> str:
        return f"{self.salt}-{super().cache_key}"

    def __hash__(self) -> int:
        return hash(self.cache_key)

    tree: ast.AST | None = None

    def parse(self) -> ast.AST:
        if self.tree is None:  # which is read for each call of the function in each kernel
            tree: ast.AST = super().parse()
            self.tree = tree if hasattr(ir.builder, "create_fneg") else _Negated().visit(tree)
        return self.tree


class _Negated(ast.NodeTransformer):
    """Puts `_negative(x)` in place of `-x`, for which Triton 3.6 computes 0 - x: 0 of 0, where -0 is right."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.USub) or isinstance(node.operand, ast.Constant):
            return node
        name = ast.Name("_negative", ast.Load())
        return ast.fix_missing_locations(ast.copy_location(ast.Call(name, [node.operand], []), node))


@tl.core.builtin
def _negative(x: tl.tensor | tl.constexpr, _semantic: TritonSemantic) -> tl.tensor | tl.constexpr:
    if not isinstance(x, tl.tensor):
        return -x
    return _semantic.mul(x, -1.0, True) if x.dtype.is_floating() else _semantic.minus(x)


def _resolve(value: object) -> Any:
    """The value of a global name in a kernel that is compiled."""
    if isinstance(value, DeviceFunction):
        return _body(value)
    if isinstance(value, dtypes.dtype):
        return tl.str_to_ty(value.triton, None)
    if isinstance(value, (bool, int, float, str, tuple)):
        return tl.constexpr(_constant(value))
    return value


def _constant(value: object) -> Any:
    """The value of a constexpr parameter, converted for Triton."""
    if isinstance(value, DeviceFunction):
        return _body(value)
    if isinstance(value, dtypes.dtype):
        return tl.str_to_ty(value.triton, None)
    return tuple(map(_constant, value)) if type(value) is tuple else value


def _names() -> dict[str, Any]:
    return {"tl": tl, "triton": triton, "libdevice": libdevice, "_negative": _negative}


def _body(function: DeviceFunction) -> Any:
    if function.compiled_form is None:
        name = f"{function.__name__}_{function.digest}"  # unique, since Triton keeps one function per qualified name
        made = _Named(rebuild(function.function, name, _names(), _resolve))
        made.salt = name
        function.compiled_form = made
    return function.compiled_form


def entry(kernel: Kernel) -> Any:
    """Triton's function of a kernel."""
    if kernel.compiled_form is None:
        kernel.compiled_form = _Named(rebuild(kernel.function, kernel.__name__, _names(), _resolve))
    return kernel.compiled_form


def _alone(function: F) -> F:
    """Let one thread at a time call a function; a kernel's name goes to Triton through the kernel's JITFunction."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with language:
            return function(*args, **kwargs)

    return cast(F, run)


@_alone
def compile_kernel(
    kernel: Kernel,
    signature: tuple,
    constants: Mapping[str, Any],
    target: Target,
    warps: int,
    stages: int,
    name: str | None = None,
) -> Any:
    """Compile `kernel` and return Triton's CompiledKernel.

    Args:
        signature: per run-time argument `(type, attribute)`, a tuple of these for a tuple argument. The type is
            Triton's ("*fp32", "i32"); the attribute is 16 (divisible by 16), 1 (an integer that is 1) or None. A
            constant in place of a number is ("constexpr", value).
        constants: a value for each constexpr parameter.
        target: ("cuda", 90) or ("hip", "gfx942"); for what `native.driver.Engine` names, `Compiled` is returned.

    Raises:
        KernelError: Triton refuses the kernel. The message names operator, types and target; the cause is chained.
        DeviceError: TRITON_INTERPRET is set, under which Triton compiles nothing.
    """
    if not isinstance(tl.sum, JITFunction):
        raise DeviceError(
            f"{name or kernel.__name__}: kernels cannot be compiled under TRITON_INTERPRET=1",
            remedy="unset it; TRITENSOR_SIMULATE_CUDA=1 simulates without it",
        )
    types: dict[str, Any] = {}
    values: dict[tuple[int, ...], Any] = {}
    attributes: dict[tuple[int, ...], Any] = {}
    described_types = iter(signature)
    for position, parameter in enumerate(kernel.parameters):
        if parameter in kernel.constants:
            types[parameter] = "constexpr"
            value = constants[parameter] if parameter in constants else kernel.defaults[parameter]
            values[(position,)] = _constant(value)
        else:
            types[parameter] = _specialise(next(described_types), (position,), values, attributes)
    backend, arch = target
    place = f"{backend} {arch}" if backend != "native" else "this processor"
    # fused multiply-add is the default of PyTorch and nvcc; Triton 3.9 warns if the option is not passed
    options: dict[str, Any] = {"num_warps": warps, "num_stages": stages, "enable_fp_fusion": True}
    options |= {"launch_cooperative_grid": True} if kernel.cooperative else {}
    with _cache_directory():
        made = entry(kernel)
        made.salt = kernel.profiler_name(dict(constants), name)
        made._repr = lambda specialization: made.salt
        try:
            source = ASTSource(made, types, values, attributes)
            if backend == "native":
                return _native(source, options, str(arch))
            return triton.compile(source, GPUTarget(backend, arch, 64 if backend == "hip" else 32), options)
        except Exception as error:
            raise KernelError(
                f"{name or kernel.__name__}: kernel {kernel.__name__} does not compile for {place}",
                f"argument types: {_readable(signature)}",
                innermost(error),
            ) from error


def _native(source: ASTSource, options: dict[str, Any], arch: str) -> Compiled:
    """Native code, from what Triton's front end makes for a card: the last one without copies by descriptor."""
    from ..drivers.native import objects
    from ..drivers.native.translate import translate

    target = GPUTarget("cuda", 89, 32)
    backend = make_backend(target)
    # with the assertions of a kernel, as in the interpreter, but not those of sums that wrap around
    chosen = backend.parse_options({**options, "debug": True, "sanitize_overflow": False})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    functions = backend.get_codegen_implementation(chosen)
    module = source.make_ir(target, chosen, functions, backend.get_module_map(), context)
    text = backend.make_ttir(module, {}, chosen, target.arch).str_nodebug()
    processor, apart, _ = arch.split()
    fma, bits = objects.machine(processor)[1:]
    found = translate(text, fma, bits, apart=apart == "apart")
    binary = objects.compiled(found.text, processor)
    return Compiled(binary, found.name, 0, 0, found.scratch, 0, looks_up=found.looks_up, written=found.written)


def compiled_from(made: Any, target: Target) -> Compiled:
    """The part of Triton's CompiledKernel that a launch needs."""
    if isinstance(made, Compiled):
        return made
    metadata = made.metadata
    scratch, profile = (getattr(metadata, f"{kind}_scratch_size", 0) or 0 for kind in ("global", "profile"))
    binary, text = made.asm[_BINARY[target[0]]], made.asm.get("ptx", "")
    together: dict[str, Any] = {}
    if getattr(metadata, "launch_cooperative_grid", False):
        together = {"cooperative": True, "registers": usage(binary).registers if target[0] == "cuda" else 0}
    return Compiled(binary, metadata.name, metadata.shared, metadata.num_warps, scratch, profile, text, **together)


def _specialise(entry: Any, path: tuple[int, ...], values: dict, attributes: dict) -> Any:
    """The type of one argument for ASTSource; adds divisibility to `attributes` and integers equal to 1 to `values`."""
    if not entry or isinstance(entry[0], tuple):
        return tuple(_specialise(inner, (*path, index), values, attributes) for index, inner in enumerate(entry))
    type, attribute = entry
    if type == "constexpr" or attribute == 1:
        values[path] = attribute
        return "constexpr"
    if attribute == 16:
        attributes[path] = [["tt.divisibility", 16]]
    return type


def _readable(signature: tuple) -> str:
    """`(*bf16, *bf16), i32` for a signature."""
    parts = [
        f"({_readable(entry)})"
        if not entry or isinstance(entry[0], tuple)
        else repr(entry[1])
        if entry[0] == "constexpr"
        else entry[0]
        for entry in signature
    ]
    return ", ".join(parts)


def innermost(error: BaseException) -> str:
    """The message of the error that others wrap."""
    # Triton wraps the error of an inner function in the errors of its callers, each with the full text.
    place = ""
    while error.__cause__ is not None:
        place = str(error).strip() or place
        error = error.__cause__
    text = str(error).strip()
    lines = [line.rstrip() for line in (text if "\n" in text else f"{place}\n{text}" if place else text).splitlines()]
    return "\n  ".join([type(error).__name__ + ":", *lines])


class _cache_directory:
    """Sets Triton's cache directory to `settings.cache_dir`, where that is set, for one compilation."""

    def __enter__(self) -> None:
        self.before = triton.knobs.cache.dir
        if settings.cache_dir.value:
            triton.knobs.cache.dir = settings.cache_dir.value

    def __exit__(self, *exception: Any) -> None:
        triton.knobs.cache.dir = self.before


def compile_ahead(
    kernel: Kernel,
    signature: Sequence[Any],
    constants: Mapping[str, Any],
    target: Target = ("cuda", 90),
    warps: int = 4,
    stages: int = 3,
    name: str | None = None,
) -> CompiledFacts:
    """Compile a kernel for a target that need not be present; for tests and benchmarks.

    Args:
        signature: Triton's type of each run-time argument in order, nested tuples for tuple arguments. Add ":16" to
            a pointer that is aligned to 16 bytes or an integer that is divisible by 16, ":1" to an integer that is
            1: `(("*fp32:16",), "i32:16", "fp32")`.
        constants: a value for each constexpr parameter.
        target: ("cuda", 80), ("cuda", 90), ("cuda", 100) or ("hip", "gfx942").

    Raises:
        KernelError: Triton refuses the kernel.
    """
    compiled = compile_kernel(kernel, tuple(map(_parse_type, signature)), constants, target, warps, stages, name)
    asm = {stage: text for stage, text in compiled.asm.items() if isinstance(text, str)}
    binary = compiled.asm[_BINARY[target[0]]]
    if target[0] == "hip":
        text = asm["amdgcn"]
        registers, local_bytes = _amd_number(text, "vgpr_count"), _amd_number(text, "private_segment_fixed_size") or 0
    else:
        registers, local_bytes = usage(binary)[:2]
        if "nvdisasm" in _tools():
            asm["sass"] = compiled.asm["sass"]
    return CompiledFacts(
        compiled.metadata.name,
        asm,
        binary,
        compiled.metadata.shared,
        compiled.metadata.num_warps,
        registers,
        local_bytes,
    )


def _parse_type(entry: Any) -> Any:
    if isinstance(entry, (tuple, list)):
        return tuple(map(_parse_type, entry))
    if entry is None or isinstance(entry, bool):
        return "constexpr", entry
    type, _, attribute = entry.partition(":")
    if type == "constexpr":
        return type, attribute
    return type, int(attribute) if attribute else None


def _amd_number(text: str, key: str) -> int | None:
    found = re.search(rf"\.{key}:\s*(\d+)", text)
    return int(found[1]) if found else None


def _tools() -> dict[str, str]:
    """NVIDIA's tools inside Triton's package, by name."""
    folder = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
    return {path.name: str(path) for path in folder.iterdir()} if folder.is_dir() else {}
