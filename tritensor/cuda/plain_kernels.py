"""Opens Triton's runtime to this package's tensors and devices: plain `@triton.jit` kernels, autotuners, `do_bench`.

Triton's runtime is given a driver (`triton_driver.py`). Its launch is taken over where a device interprets kernels,
which compiles nothing. Where PyTorch is imported too, launches on its tensors are left to Triton's own driver.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import triton
from triton.runtime import jit
from triton.runtime.driver import driver as registry

from .. import drivers
from ..errors import ArgumentError, KernelError
from ..tensors import Tensor
from ..types import devices, dtypes
from .triton_driver import TritonDriver, do_bench_of
from .user_kernel import UserKernel, device_of, forget, tensors_of

__all__ = ["open_runtime"]

_OURS = TritonDriver()


def open_runtime() -> None:
    """Let Triton's runtime find our devices; a second call changes nothing."""
    theirs = jit.JITFunction.run
    if hasattr(theirs, "__wrapped__"):
        return

    @functools.wraps(theirs)
    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        return _run(theirs, self, args, kwargs, grid, warmup)

    jit.JITFunction.run = run
    mock, wrap = jit.MockTensor, jit.MockTensor.wrap_dtype
    mock.wrap_dtype = staticmethod(lambda arg: mock(arg) if isinstance(arg, dtypes.dtype) else wrap(arg))
    triton.testing.do_bench = do_bench_of(triton.testing.do_bench)
    if not _is_torch_loaded():
        registry.set_active(_OURS)


def _is_torch_loaded() -> bool:
    """True if PyTorch itself is imported, not this package under its name."""
    return getattr(sys.modules.get("torch"), "Tensor", Tensor) is not Tensor


@contextmanager
def _active(driver: Any) -> Iterator[None]:
    before = registry._active
    registry._active = driver
    try:
        yield
    finally:
        registry._active = before


def _run(
    theirs: Callable[..., Any], function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any, warmup: bool
) -> Any:
    names = function.arg_names
    given = {**dict(zip(names, args)), **kwargs}
    ours = next(tensors_of(given.values()), None) is not None
    if not ours and _is_torch_loaded():
        with _active(None):  # Triton finds its own
            return theirs(function, *args, grid=grid, warmup=warmup, **kwargs)
    index = device_of(function.__name__, given)
    driver: Any = drivers.require()
    # the default of Triton up to 3.9, which warns if nothing is said
    kwargs = kwargs if "TRITON_DEFAULT_FP_FUSION" in os.environ else {"enable_fp_fusion": True, **kwargs}
    at = devices.current_index()
    if index is not None and index != at:
        driver.set_device(index)
    try:
        with _active(_OURS):
            if function.is_gluon() and driver.is_simulated:
                raise KernelError(
                    f"{function.__name__}: Gluon kernels do not run on simulated devices",
                    "their layouts and barriers are written for one card",
                    remedy="run it on a GPU, or write it in triton.language",
                )
            if warmup or driver.recorder is not None or hasattr(driver, "load"):
                made = theirs(function, *args, grid=_three(function, grid), warmup=warmup, **kwargs)
            else:
                made = _interpreted(theirs, function, args, kwargs, grid)
    finally:
        if index is not None and index != at:
            driver.set_device(at)
    if not warmup:
        forget(given.values())
    return made


def _three(function: Any, grid: Any) -> Any:
    """A grid as Triton takes it, of which a single number is one of one dimension."""
    return (grid,) if isinstance(grid, int) else grid


def _interpreted(
    theirs: Callable[..., Any], function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], grid: Any
) -> Any:
    own = function.__dict__.get("_tritensor")
    if own is None:
        own = function._tritensor = UserKernel(function)
    for hook in function.pre_run_hooks:
        hook(*args, **kwargs)
    known = set(function.arg_names)
    unknown = [name for name in kwargs if name not in known and name not in _options()]
    if unknown:
        raise ArgumentError(
            f"{function.__name__}: arguments that do not fit",
            f"Keyword argument {unknown[0]} was specified but unrecognised",
            f"it takes {', '.join(function.arg_names)}, and options of the launch: {', '.join(sorted(_options()))}",
        )
    own._launch(grid, args, {name: value for name, value in kwargs.items() if name in known}, 4, 3)
    return _Later(lambda: theirs(function, *args, grid=grid, warmup=True, **kwargs))


@functools.cache
def _options() -> frozenset[str]:
    from triton.compiler.compiler import make_backend

    return frozenset(make_backend(_OURS.get_current_target()).parse_options({"enable_fp_fusion": True}).__dict__) | {
        "debug"
    }


class _Later:
    """The compiled kernel of a launch that was interpreted: it is compiled when something of it is asked for."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_made" in self.__dict__:
            return (
                getattr(self.__dict__["_made"], name)
                if "_made" in self.__dict__
                else object.__getattribute__(self, name)
            )
        with _active(_OURS):
            made = self._made = self._make()
            made._init_handles()
        return getattr(made, name)

    def __getitem__(self, grid: Any) -> Any:
        return self.__getattr__("__getitem__")(grid)
