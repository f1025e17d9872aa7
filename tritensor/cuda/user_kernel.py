"""User-defined Triton kernels on our tensors: on a GPU, and in simulation with checked addresses.

They are launched by Triton's own runtime (`plain_kernels.py`), and on a device that interprets kernels by the code that
does so for ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DeviceMismatchError
from ..memory.array import DeviceArray
from ..runtime.launch import kernel, launch
from ..runtime.needs_triton import needs_triton
from ..runtime.source import NUMBER_TYPES, NUMPY, Address, Descriptor, number_type
from ..tensors import Tensor
from ..types import devices, dtypes

__all__ = ["UserKernel", "device_of", "jit", "plain", "sizes_of", "tensors_of"]

#: Triton's types of float8
_FLOAT8 = {"float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5"}
Grid = int | Sequence[int] | Callable[[dict[str, Any]], int | Sequence[int]]


class UserKernel:
    """A kernel that is launched like Triton's, `kernel[grid](x, y, n, BLOCK=1024)`. Made by `jit`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.kernel = kernel(function)
        self.kernel.elements = _FLOAT8
        #: by parameter: Triton's type that it is annotated with, and whether it is compiled for any integer
        self.types: dict[str, tuple[str, bool]] = {}
        self.__name__ = self.kernel.__name__
        self.__doc__ = self.kernel.__doc__
        self.__wrapped__ = self.kernel.function

    def __repr__(self) -> str:
        return f"<UserKernel {self.__name__}>"

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Raise, because the grid is missing."""
        raise ArgumentError(
            f"{self.__name__}: a kernel is launched over a grid",
            "it was called as a function",
            remedy=f"call {self.__name__}[grid](...), with one to three sizes",
        )

    def __getitem__(self, grid: Grid) -> Callable[..., Any]:
        """The launch over a grid: one to three sizes, or a function of the arguments by name that returns them."""
        module = needs_triton(".cuda.plain_kernels", self.__name__)
        return lambda *args, **kwargs: module.launch(self, args, kwargs, grid)

    def run(self, grid: Grid, args: tuple[Any, ...], kwargs: dict[str, Any], on_host: bool = False) -> None:
        """Launch on a device that takes kernels as they are written, or on the tensors of the host."""
        bound = self.bound(args, kwargs)
        sizes = sizes_of(self.__name__, grid(dict(bound)) if callable(grid) else grid)
        where = devices.cpu if on_host else devices.cuda(devices.current_index())
        constants = {name: value for name, value in bound.items() if name in self.kernel.constants}
        arguments = tuple(self._typed(name, plain(bound[name])) for name in self.kernel.arguments)
        launch(self.kernel, sizes, arguments, constants, where, name=self.__name__)

    def _typed(self, name: str, value: Any) -> Any:
        """A number of the type that the parameter is annotated with, or that Triton gives it; others as they are."""
        kind, general = self.types.get(name, ("", False))
        if type(value) is bool:
            kind = kind or "i1"
        elif type(value) is int and general and not kind:
            kind = "i32" if -(1 << 31) <= value < 1 << 31 else "i64"
        if not kind or type(value) not in (bool, int, float):
            return value
        try:
            np.array(value, NUMPY[kind])
            return number_type(kind)(value)
        except (OverflowError, ValueError) as error:
            raise ArgumentError(f"{self.__name__}: {name} is {value!r}, which {kind} does not hold") from error

    def bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name, in the kernel's order."""
        names = self.kernel.parameters
        bound = {**self.kernel.defaults, **dict(zip(names, args))}
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


def sizes_of(name: str, grid: Any) -> tuple[int, ...]:
    """The checked sizes of a launch grid."""
    sizes = (grid,) if isinstance(grid, int) else tuple(grid)
    if not 1 <= len(sizes) <= 3 or any(not isinstance(size, int) or size < 0 for size in sizes):
        raise ArgumentError(f"{name}: a grid is one to three sizes that are not negative, got {sizes!r}")
    return sizes


def tensors_of(values: Iterable[Any]) -> Iterator[Tensor]:
    """The tensors among a launch's arguments, in tuples and behind descriptors too."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, tuple):
            yield from tensors_of(value)
        elif type(value).__name__ == "TensorDescriptor":
            yield from tensors_of((value.base,))


def device_of(name: str, arguments: Mapping[str, Any], tensors: Sequence[Tensor]) -> int | None:
    """The number of the device that a launch's tensors are on, -1 for the CPU; None if there are none.

    Raises:
        ArgumentError: some tensors are on the CPU. DeviceMismatchError: they are on several devices.
    """
    places = {tensor.device for tensor in tensors}
    if len(places) == 1:
        return -1 if places == {devices.cpu} else places.pop().index
    found = {label: [*tensors_of((value,))] for label, value in arguments.items()}
    for label, each in found.items():
        if any(not isinstance(tensor._data, DeviceArray) for tensor in each):
            raise ArgumentError(
                f"Pointer argument ({label}) cannot be accessed from Triton (cpu tensor?)",
                f"in {name}",
                remedy=f"move {label} with .to('cuda')",
            )
    if places:
        raise DeviceMismatchError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{' and '.join(sorted(map(str, places)))}! (in {name})",
            *(f"{label}: shape {tuple(x.shape)}, on {x.device}" for label, each in found.items() for x in each),
            remedy="move them to one device with .to(device)",
        )
    return None


def plain(value: Any) -> Any:
    """An argument as `launch` takes it; a number or tuple of a subclass (`Size`) as what it is a subclass of."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, Tensor):
        return value._data if isinstance(value._data, DeviceArray) else _lent(value)
    if type(value).__name__ == "TensorDescriptor":
        sizes, steps, block = (tuple(map(int, each)) for each in (value.shape, value.strides, value.block_shape))
        return Descriptor((value.base._data, sizes, steps, block, value.padding))
    if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        found = Address(value.data_ptr())
        found.dtype = dtypes.of_argument(value.dtype) or value.dtype
        return found
    for kind in (float, int):
        if isinstance(value, kind) and type(value) is not bool and type(value) not in NUMBER_TYPES:
            return kind(value)
    return value


def _lent(tensor: Tensor) -> DeviceArray:
    """A tensor of the CPU as kernels take it.

    Raises:
        ArgumentError: its memory is read-only, which a kernel might write to.
    """
    from ..drivers.native.host import Lent

    array = tensor._host_array()
    if not array.flags.writeable:
        raise ArgumentError(
            "a Triton kernel cannot take a tensor whose memory is read-only",
            f"shape {tuple(array.shape)}: it is mapped from a file, or shared by an array that is read-only",
            remedy="pass tensor.clone()",
        )
    steps = tuple(step // array.itemsize for step in array.strides)
    return DeviceArray.over(Lent(array), array.shape, steps, 0, array.dtype)


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
