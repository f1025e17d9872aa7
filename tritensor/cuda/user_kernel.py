"""User-defined Triton kernels on our tensors: on a GPU, and in simulation with checked addresses.

Triton's own launcher gets the device and the stream from torch. Here the same function, called in the same way, is
compiled, cached on disk and launched in the current stream by the code that does so for our own kernels.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ArgumentError, DeviceMismatchError
from ..memory.array import DeviceArray
from ..runtime.launch import Float64, Int64, kernel, launch
from ..tensors import Tensor
from ..types import devices

__all__ = ["jit"]

Grid = int | Sequence[int] | Callable[[dict[str, Any]], int | Sequence[int]]


class UserKernel:
    """A kernel that is launched like Triton's, `kernel[grid](x, y, n, BLOCK=1024)`. Made by `jit`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._kernel = kernel(function)
        self.__name__ = self._kernel.__name__
        self.__doc__ = self._kernel.__doc__
        self.__wrapped__ = self._kernel.function

    def __repr__(self) -> str:
        return f"<UserKernel {self.__name__}>"

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Raise, because the grid is missing."""
        raise ArgumentError(
            f"{self.__name__}: a kernel is launched over a grid",
            "it was called as a function",
            remedy=f"call {self.__name__}[grid](...), with one to three sizes",
        )

    def __getitem__(self, grid: Grid) -> Callable[..., None]:
        """The launch over a grid: one to three sizes, or a function of the arguments by name that returns them."""

        def launched(*args: Any, num_warps: int = 4, num_stages: int = 3, **kwargs: Any) -> None:
            self._launch(grid, args, kwargs, num_warps, num_stages)

        return launched

    def _launch(self, grid: Grid, args: tuple[Any, ...], kwargs: dict[str, Any], warps: int, stages: int) -> None:
        bound = self._bound(args, kwargs)
        sizes = grid(dict(bound)) if callable(grid) else grid
        sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
        if not 1 <= len(sizes) <= 3 or any(not isinstance(size, int) or size < 0 for size in sizes):
            raise ArgumentError(f"{self.__name__}: a grid is one to three sizes that are not negative, got {sizes!r}")
        arrays = {name: self._array(name, value) for name, value in bound.items() if isinstance(value, Tensor)}
        places = {array.device for array in arrays.values()}
        if len(places) > 1:
            raise DeviceMismatchError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{' and '.join(sorted(map(str, places)))}! (in {self.__name__})",
                *(f"{name}: shape {tuple(array.shape)}, on {array.device}" for name, array in arrays.items()),
                remedy="move them to one device with .to(device)",
            )
        where = places.pop() if places else devices.cuda(devices.current_index())
        constants = {name: value for name, value in bound.items() if name in self._kernel.constants}
        arguments = tuple(arrays.get(name, _plain(bound[name])) for name in self._kernel.arguments)
        launch(self._kernel, sizes, arguments, constants, where, warps=warps, stages=stages, name=self.__name__)
        for value in bound.values():
            if isinstance(value, Tensor):
                value._forget()  # the kernel may have written to any of them

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name, in the kernel's order."""
        names = self._kernel.parameters
        bound = {**self._kernel.defaults, **dict(zip(names, args))}
        twice = [name for name in names[: len(args)] if name in kwargs]
        unknown = [name for name in kwargs if name not in names]
        if len(args) > len(names) or twice or unknown:
            fact = f"got {len(args)} by position"
            fact = (
                f"{', '.join(unknown)} is no parameter" if unknown else f"{twice[0]} was given twice" if twice else fact
            )
            raise ArgumentError(f"{self.__name__}: arguments that do not fit", fact, f"it takes {', '.join(names)}")
        bound.update(kwargs)
        missing = [name for name in names if name not in bound]
        if missing:
            raise ArgumentError(
                f"{self.__name__}: missing arguments: {', '.join(missing)}", f"it takes {', '.join(names)}"
            )
        return {name: bound[name] for name in names}

    def _array(self, name: str, value: Tensor) -> DeviceArray:
        if not isinstance(value._data, DeviceArray):
            raise ArgumentError(
                f"Pointer argument ({name}) cannot be accessed from Triton (cpu tensor?)",
                f"in {self.__name__}",
                remedy=f"move {name} with .to('cuda')",
            )
        return value._data


def _plain(value: object) -> Any:
    """A number or tuple of a subclass (`numpy.float64`, `Size`) as Triton takes it: as what it is a subclass of."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    for kind in (float, int):
        if isinstance(value, kind) and type(value) not in (bool, Int64, Float64):
            return kind(value)
    return value


def jit(fn: Callable[..., Any]) -> UserKernel:
    """Make a kernel of a function in Triton's language, or of a `@triton.jit` kernel, that takes our tensors.

    A tensor arrives as a pointer to its first element; parameters annotated `tl.constexpr` are constants of the
    compilation. The launch is not recorded: for a gradient, use it in an `autograd.Function`. The first launch imports
    Triton. ::

        @torch.cuda.jit
        def double(out_ptr, x_ptr, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)

        double[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](out, x, n, BLOCK=1024)

    Raises:
        KernelError: not a function that was written with `def`.
    """
    return UserKernel(fn)


def take_plain_kernels() -> None:
    """Let `kernel[grid](...)` of a `@triton.jit` kernel launch by this package when one of its arguments is a Tensor.

    Triton's own launcher asks torch for the device and the stream. Kernels that take no tensor of ours are left to it.
    """
    jit_function: Any = importlib.import_module("triton.runtime.jit").JITFunction
    theirs = jit_function.run
    if hasattr(theirs, "__wrapped__"):
        return

    @functools.wraps(theirs)
    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if warmup or not any(isinstance(value, Tensor) for value in (*args, *kwargs.values())):
            return theirs(self, *args, grid=grid, warmup=warmup, **kwargs)
        ours = self.__dict__.get("_tritensor")
        if ours is None:
            ours = self._tritensor = UserKernel(self)
        return ours[grid](*args, **kwargs)

    jit_function.run = run
