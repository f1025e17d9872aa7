"""Opens Triton's runtime to this package's tensors and devices: plain `@triton.jit` kernels, autotuners, `do_bench`.

Triton's runtime is given a driver (`triton_driver.py`). Its launch is taken over where a device interprets kernels,
which compiles nothing. Where PyTorch is imported too, launches on its tensors are left to Triton's own driver.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler.errors import CompilationError
from triton.runtime import jit
from triton.runtime.driver import DriverConfig
from triton.runtime.driver import driver as registry

from .. import drivers
from ..errors import KernelError, TritensorError
from ..runtime import compiler
from ..runtime.launch import check_argument
from ..runtime.source import NUMPY
from ..tensors import Tensor
from ..types import devices, dtypes
from .triton_driver import TritonDriver, do_bench_of
from .user_kernel import Grid, UserKernel, device_of, plain, sizes_of, tensors_of

__all__ = ["launch", "open_runtime"]

_OURS = TritonDriver()


def open_runtime() -> None:
    """Let Triton's runtime find our devices; a second call changes nothing."""
    theirs = jit.JITFunction.run
    if hasattr(theirs, "__wrapped__"):
        return

    @functools.wraps(theirs)
    def run(self: jit.JITFunction, *args: Any, grid: Grid, warmup: bool, **kwargs: Any) -> Any:
        return _run(theirs, self, args, kwargs, grid, warmup)

    jit.JITFunction.run = run
    mock, wrap = jit.MockTensor, jit.MockTensor.wrap_dtype
    mock.wrap_dtype = staticmethod(lambda arg: mock(arg) if isinstance(arg, dtypes.dtype) else wrap(arg))
    for name in ("do_bench", "do_bench_cudagraph"):
        setattr(triton.testing, name, do_bench_of(getattr(triton.testing, name)))
    registry.__class__ = _Registry
    if not _is_torch_loaded():
        registry.set_active(_OURS)


def _is_torch_loaded() -> bool:
    """True if PyTorch itself is imported, not this package under its name."""
    return getattr(sys.modules.get("torch"), "Tensor", Tensor) is not Tensor


class _Here(threading.local):
    driver: Any = None


_here = _Here()


class _Registry(DriverConfig):
    """Triton's registry of drivers, in which a thread may have another one for a launch."""

    @property
    def active(self) -> Any:
        return _here.driver or super().active


@contextmanager
def _active(driver: Any) -> Iterator[None]:
    before, _here.driver = _here.driver, driver
    try:
        yield
    finally:
        _here.driver = before


def launch(own: UserKernel, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Grid) -> Any:
    """Launch a kernel of `cuda.jit`; returns the compiled kernel as Triton does.

    Raises:
        ArgumentError: the arguments do not fit. KernelError: Triton refuses the kernel.
    """
    function = compiler.entry(own.kernel)
    function._tritensor = own
    try:
        return _run(jit.JITFunction.run.__wrapped__, function, args, kwargs, grid, False)
    except (CompilationError, RuntimeError) as error:
        if isinstance(error, TritensorError):
            raise
        raise KernelError(
            f"{own.__name__}: kernel {own.__name__} does not compile for {_OURS.get_current_target().arch}",
            compiler.innermost(error),
        ) from error


def _run(
    theirs: Callable[..., Any],
    function: jit.JITFunction,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    grid: Grid,
    warmup: bool,
) -> Any:
    names = function.arg_names
    given = {**dict(zip(names, args)), **kwargs}
    ours = [*tensors_of(given.values())]
    if not ours and _is_torch_loaded():
        with _active(registry.default):  # Triton's own
            return theirs(function, *args, grid=grid, warmup=warmup, **kwargs)
    index = device_of(function.__name__, given, ours)
    if index == -1 and not warmup:
        return _on_host(function, args, kwargs, grid, ours)
    driver: Any = drivers.require()
    at = devices.current_index()
    if index is not None and index != at:
        driver.set_device(index)
    try:
        with _active(_OURS):
            if function.is_gluon() and driver.lacks_gluon:
                raise KernelError(
                    f"{function.__name__}: Gluon kernels do not run on simulated devices",
                    f"their layouts and barriers are written for one card, and {driver.lacks_gluon}",
                    remedy="run it on a GPU, or write it in triton.language",
                )
            if driver.assembles or warmup or driver.recorder is not None:
                return _compiled(theirs, function, args, kwargs, grid, warmup)
            return _interpreted(theirs, function, args, kwargs, grid)
    finally:
        if index is not None and index != at:
            driver.set_device(at)
        for tensor in () if warmup else ours:
            tensor._forget()  # what is known of its elements: the kernel may have written to any of them


def _on_host(
    function: jit.JITFunction, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Grid, tensors: list[Tensor]
) -> None:
    try:
        _execute(function, args, kwargs, grid, on_host=True)
    finally:
        for tensor in tensors:
            tensor._forget()


def _execute(
    function: jit.JITFunction, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Grid, on_host: bool = False
) -> None:
    for hook in function.pre_run_hooks:
        hook(*args, **kwargs)
    own = _own(function)
    own.kernel.cooperative = bool(kwargs.get("launch_cooperative_grid"))
    own.run(grid, args, _arguments(function, kwargs), on_host=on_host)


def _compiled(
    theirs: Callable[..., Any],
    function: jit.JITFunction,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    grid: Grid,
    warmup: bool,
) -> Any:
    name = function.__name__
    # the default of Triton up to 3.9, which warns if nothing is said
    kwargs = kwargs if "TRITON_DEFAULT_FP_FUSION" in os.environ else {"enable_fp_fusion": True, **kwargs}
    sizes = (lambda bound: sizes_of(name, grid(bound))) if callable(grid) else grid
    sizes = sizes if warmup or callable(sizes) else sizes_of(name, grid)
    try:
        return theirs(function, *args, grid=sizes, warmup=warmup, **kwargs)
    except (KeyError, TypeError):
        bound = _own(function).bound(args, _arguments(function, kwargs))  # raises our errors
        for label in _own(function).kernel.arguments:
            check_argument(name, label, plain(bound[label]))
        raise


def _interpreted(
    theirs: Callable[..., Any], function: jit.JITFunction, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Grid
) -> Any:
    _execute(function, args, kwargs, grid)
    return _Later(lambda: _compiled(theirs, function, args, kwargs, grid, True))


def _own(function: jit.JITFunction) -> UserKernel:
    found = function.__dict__.get("_tritensor")
    if found is None:
        found = function._tritensor = UserKernel(function)
    kept: UserKernel = found
    if not kept.types:
        annotated = {each.name: each.annotation_type for each in function.params}
        general = {each.name for each in function.params if each.do_not_specialize}
        kept.types = {name: (kind if kind in NUMPY else "", name in general) for name, kind in annotated.items()}
    return kept


def _arguments(function: jit.JITFunction, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments without the options of the launch that are no parameters of the kernel."""
    return {key: value for key, value in kwargs.items() if key in function.arg_names or key not in _options()}


@functools.cache
def _options() -> frozenset[str]:
    from triton.compiler.compiler import make_backend

    return frozenset(make_backend(GPUTarget("cuda", 80, 32)).parse_options({"enable_fp_fusion": True}).__dict__) | {
        "debug"
    }


class _Later:
    """The compiled kernel of a launch that was interpreted: it is compiled when something of it is asked for."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    @functools.cached_property
    def _made(self) -> Any:
        with _active(_OURS):
            made = self._make()
            made._init_handles()
        return made

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._made, name)

    def __getitem__(self, grid: Grid) -> Any:
        return self._made[grid]
