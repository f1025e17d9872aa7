"""The two libraries, and PyTorch's values translated for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import torch as reference

import tritensor

MOST_DIMENSIONS = 64  # of NumPy's arrays


class Untranslated(Exception):
    """A value that has no counterpart."""


@dataclass(frozen=True)
class Side:
    """A library, and what a value that is no list, tuple or dict becomes there."""

    library: Any
    leaf: Callable[[Any], Any]

    def __call__(self, value: Any) -> Any:
        """A value of PyTorch as it is on this side, with tensors that nothing else has."""
        if isinstance(value, reference.Size):
            return self.library.Size(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*(self(each) for each in value))
        if isinstance(value, (tuple, list)):
            return type(value)(self(each) for each in value)
        if isinstance(value, dict):
            return {key: self(each) for key, each in value.items()}
        return self.leaf(value)


def tensors(value: Any) -> Iterator[Any]:
    """The tensors of either library within a value."""
    if isinstance(value, (reference.Tensor, tritensor.Tensor)):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from tensors(each)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))


def theirs() -> Side:
    """PyTorch itself: tensors become leaves with the same strides."""

    def leaf(value: Any) -> Any:
        return copied(value) if isinstance(value, reference.Tensor) else value

    return Side(reference, leaf)


def ours(device: str = "cpu") -> Side:
    """tritensor, with tensors on a device."""

    def leaf(value: Any) -> Any:
        if isinstance(value, reference.Tensor):
            return tensor(value, device)
        if isinstance(value, reference.device) or value == "cpu":
            return tritensor.device(device)
        if isinstance(value, reference.nn.Module):
            return module(value, side)
        if isinstance(value, reference.layout) and value is not reference.strided:
            return value  # no layout of ours: calls refuse it
        if isinstance(value, (reference.dtype, reference.memory_format, reference.layout)):
            value = named(tritensor, str(value).rpartition(".")[2])
        elif is_dataclass(value) and hasattr(tritensor.nn, type(value).__name__):
            options = {each.name: leaf(getattr(value, each.name)) for each in fields(value)}
            value = getattr(tritensor.nn, type(value).__name__)(**options)
        elif callable(value) or type(value).__module__.startswith("torch"):
            value = counterpart(value)
        return value

    return (side := Side(tritensor, leaf))


def module(value: Any, side: Side) -> Any:
    """The module of the same class with translated attributes, parameters and children."""
    name, bare = type(value).__name__, vars(reference.nn.Module())
    kind = named(tritensor.nn if hasattr(tritensor.nn, name) else tritensor.nn.multi_head, name)
    made = kind.__new__(kind)
    tritensor.nn.Module.__init__(made)
    for name, each in vars(value).items():
        if name not in bare:
            setattr(made, name, side(each))
    for name, each in value._parameters.items():
        made.register_parameter(name, None if each is None else tritensor.nn.Parameter(side(each.detach())))
    for name, each in value._buffers.items():
        made.register_buffer(name, side(each))
    for name, each in value._modules.items():
        made.add_module(name, module(each, side))
    return made.train(value.training)


def named(library: Any, name: str) -> Any:
    """What has a name in a library."""
    if not hasattr(library, name):
        raise Untranslated(name)
    return getattr(library, name)


def counterpart(value: Any) -> Any:
    """What has the name of one of PyTorch's functions or classes here."""
    name = getattr(value, "__name__", "")
    places = ((reference.nn.functional, tritensor.nn.functional), (reference.nn, tritensor.nn), (reference, tritensor))
    for there, here in places:
        if name and getattr(there, name, None) is value and hasattr(here, name):
            return getattr(here, name)
    raise Untranslated(f"{type(value).__name__} {name}")


def copied(value: Any) -> Any:
    """A leaf with the elements and strides of PyTorch's tensor, in memory of its own."""
    made = value.detach()
    if value.layout is reference.strided:  # what lies between its first element and its last
        extent = sum((size - 1) * step for size, step in zip(value.shape, value.stride(), strict=True)) + 1
        memory = made.as_strided((extent if value.numel() else 0,), (1,))
        made = memory.clone().as_strided(value.shape, value.stride())
    return made.requires_grad_(value.requires_grad)


def tensor(value: Any, device: str) -> Any:
    """A leaf of ours with the elements and strides of PyTorch's tensor."""
    if value.layout is not reference.strided or value.is_quantized or value.is_meta or value.ndim > MOST_DIMENSIONS:
        raise Untranslated(f"a tensor of layout {value.layout} and {value.ndim} dimensions")
    if value.dtype in (reference.bfloat16, reference.float16):
        made = tensor(value.detach().float(), device).to(ours().leaf(value.dtype))
    else:
        made = tritensor.from_numpy(copied(value.detach().resolve_conj().resolve_neg()).numpy()).to(device)
    return made.requires_grad_(value.requires_grad)


def written(args: Iterable[Any], kwargs: dict[str, Any]) -> str:
    """The arguments of a call as text, tensors by their shapes, and their dtypes unless that is float64."""
    return ", ".join([*map(_text, args), *(f"{name}={_text(value)}" for name, value in kwargs.items())])


def _text(value: Any) -> str:
    if isinstance(value, reference.Tensor):
        kind = "" if value.dtype is reference.float64 else f", dtype={value.dtype}"
        return f"torch.ones({list(value.shape)}{kind})"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_text, value))}]"
    return repr(value)
