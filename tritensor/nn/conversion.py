"""Moving and casting a module: all new tensors are made first, then all are assigned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..autograd.mode import no_grad
from ..errors import explain, warn
from ..functional.views.transfer import parse_to
from ..tensors import Tensor
from ..types import Device, Dtype, formats
from ..types.devices import resolve
from .tree import ModuleTree

Change = Callable[[Tensor], Tensor]


def parse(
    args: tuple[Any, ...],
    device: Device = None,
    dtype: Any = None,
    non_blocking: bool = False,
    tensor: Tensor | None = None,
    memory_format: formats.memory_format | None = None,
) -> tuple[Any, Any, bool, Any]:
    """The device, dtype, `non_blocking` and memory format of a call of `Module.to`, in any of its forms.

    Raises:
        ArgumentError: arguments of no form.
        TypeError: a dtype that is neither floating nor complex.
    """
    device, dtype, flags = parse_to(args, device, dtype, tensor)
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")
    formats.check("to", memory_format)
    return device if device is None else resolve(device), dtype, flags[0] if flags else non_blocking, memory_format


def converter(device: Device, dtype: Dtype, non_blocking: bool = False, memory_format: Any = None) -> Change:
    """The function that converts one tensor; integers and booleans are moved and keep their dtype.

    Only tensors of four and five dimensions get the memory format.
    """

    def change(tensor: Tensor) -> Tensor:
        cast = dtype if tensor.is_floating_point() or tensor.is_complex() else None
        format = memory_format if tensor.ndim in (4, 5) else None
        return tensor.to(device, cast, non_blocking, memory_format=format)

    return change


def convert(root: Any, change: Change, recurse: bool = True) -> None:
    """Apply `change` to all parameters, their gradients and all buffers.

    Parameters and gradients stay the same objects with new data, so an optimizer that was made before still refers to
    them; buffers are replaced. A tensor that is shared is changed once and stays shared. If `change` fails for any
    tensor, none is changed.
    """
    changed: dict[int, tuple[Tensor, Tensor]] = {}

    def convert_once(tensor: Tensor) -> None:
        if id(tensor) not in changed:
            changed[id(tensor)] = tensor, change(tensor)

    modules, apart = _parted(root) if recurse else ([root], [])
    with no_grad():
        for module in modules:
            for param in module._parameters.values():
                if param is not None:
                    convert_once(param)
                    if param._grad is not None:
                        convert_once(param._grad)
            for buffer in module._buffers.values():
                if buffer is not None:
                    convert_once(buffer)
    for module in modules:
        for param in module._parameters.values():
            for tensor in () if param is None else (param, param._grad):
                if tensor is not None and changed[id(tensor)][1] is not tensor:
                    converted = changed[id(tensor)][1]
                    tensor.data, tensor._pinned = converted, converted._pinned
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = changed[id(buffer)][1]
    for module in apart:
        module._apply(change)


def _parted(root: Any) -> tuple[list[Any], list[Any]]:
    """The modules of a tree, and those of them that convert themselves and what is below: classes with an `_apply`."""
    modules: dict[Any, None] = {root: None}
    apart: dict[Any, None] = {}
    left = [root]
    while left:
        for child in left.pop().children():
            if _overrides(child):
                apart[child] = None
            elif child not in modules:
                modules[child] = None
                left.append(child)
    return list(modules), [each for each in apart if each not in modules]


def _overrides(module: Any) -> bool:
    return not type(module)._apply.__module__.startswith(__package__)


def unregistered(root: Any) -> Iterator[tuple[str, Tensor]]:
    """Tensors that the module tree holds outside of its tables: plain attributes, and lists, tuples and dicts of
    tensors or of modules. Each with the path that a user would write.

    Parameters that are registered somewhere in the tree are left out, because they stay the same objects when the tree
    is converted. Registered buffers are included: a plain attribute that holds one keeps the old tensor.
    """
    modules = dict.fromkeys(root.modules())
    owned = {id(param) for param in root.parameters()}
    for path, module in root.named_modules():
        for name, value in module.__dict__.items():
            if name in _TABLES or name.endswith("_hooks"):
                continue
            for where, tensor in tensors_in(value, f"{path}.{name}" if path else name, modules, 3):
                if id(tensor) not in owned:
                    yield where, tensor


_TABLES = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")


def tensors_in(value: object, path: str, modules: Mapping[Any, Any], depth: int) -> Iterator[tuple[str, Tensor]]:
    """The tensors in an attribute's value, its lists, tuples and dicts, and its modules other than `modules`."""
    if isinstance(value, Tensor):
        yield path, value
    elif isinstance(value, ModuleTree):
        if value not in modules:
            for name, tensor in (*value.named_parameters(), *value.named_buffers()):
                yield f"{path}.{name}", tensor
    elif depth and isinstance(value, (list, tuple)):
        for position, entry in enumerate(value):
            yield from tensors_in(entry, f"{path}[{position}]", modules, depth - 1)
    elif depth and isinstance(value, dict):
        for key, entry in value.items():
            yield from tensors_in(entry, f"{path}[{key!r}]", modules, depth - 1)


def warn_unregistered(root: object, device: Device, dtype: Dtype) -> None:
    """Warn about tensors of `root` that `change` would convert if they were registered."""
    left = []
    for path, tensor in unregistered(root):
        moves = device is not None and tensor.device != device
        casts = dtype is not None and tensor.is_floating_point() and tensor.dtype is not dtype
        if moves or casts:
            left.append(f"{path}: shape {tuple(tensor.shape)}, {tensor.dtype}, on {tensor.device}")
    if left:
        shown = left[:10] + ([f"and {len(left) - 10} more"] if len(left) > 10 else [])
        warn(
            explain(
                f"{type(root).__name__}.to() leaves {len(left)} tensor{'s' if len(left) > 1 else ''} behind that the "
                "module holds without having registered:",
                *shown,
                remedy="register tensors with register_buffer() or as nn.Parameter, and modules with nn.ModuleList or "
                "nn.ModuleDict",
            )
        )
