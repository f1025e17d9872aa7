"""The audit of a module: every tensor with its shape, dtype and device, registered or not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import prod
from typing import Any

from ..tensors import Tensor
from ..tensors.printing import aligned
from .conversion import unregistered


@dataclass(frozen=True)
class Entry:
    """One tensor of a module.

    Attributes:
        path: the attributes that lead to it, such as "encoder.layers.3.weight".
        kind: "parameter", "buffer" or "unregistered".
        note: "shared with ..." for a tensor that has been listed before.
    """

    path: str
    kind: str
    shape: tuple[int, ...]
    dtype: Any
    device: Any
    requires_grad: bool
    nbytes: int
    note: str = ""


@dataclass(frozen=True)
class Audit:
    """The tensors of a module; its text is a table with a line per tensor and a summary by device and dtype."""

    name: str
    entries: list[Entry]

    @property
    def parameters(self) -> list[Entry]:
        """The registered parameters."""
        return [entry for entry in self.entries if entry.kind == "parameter"]

    @property
    def buffers(self) -> list[Entry]:
        """The registered buffers."""
        return [entry for entry in self.entries if entry.kind == "buffer"]

    @property
    def unregistered(self) -> list[Entry]:
        """Tensors that the module holds without having registered them: `to` does not move them and `state_dict` omits
        them."""
        return [entry for entry in self.entries if entry.kind == "unregistered"]

    @property
    def devices(self) -> set[Any]:
        """The devices that the registered tensors are on."""
        return {entry.device for entry in self.parameters + self.buffers}

    def __str__(self) -> str:
        header = ("path", "kind", "shape", "dtype", "device", "grad", "note")
        rows = [
            (e.path, e.kind, str(e.shape), e.dtype.name, str(e.device), ("no", "yes")[e.requires_grad], e.note)
            for e in self.entries
        ]
        return "\n".join([self.name, *aligned([header, *rows]), *self._summary()])

    __repr__ = __str__

    def _summary(self) -> list[str]:
        """A line per device and dtype, and one for each possible mistake."""
        tensors: Counter[tuple[str, str]] = Counter()
        elements: Counter[tuple[str, str]] = Counter()
        sizes: Counter[tuple[str, str]] = Counter()
        for entry in self.parameters + self.buffers:
            if not entry.note:
                key = str(entry.device), entry.dtype.name
                tensors[key] += 1
                elements[key] += prod(entry.shape)
                sizes[key] += entry.nbytes
        lines = [
            f"{device}, {dtype}: {tensors[device, dtype]} tensors, {elements[device, dtype]:,} elements, "
            f"{sizes[device, dtype]:,} bytes"
            for device, dtype in sorted(tensors)
        ]
        if len(self.devices) > 1:
            lines.append(f"on {len(self.devices)} devices: operators refuse to mix them")
        if self.unregistered:
            lines.append(f"{len(self.unregistered)} unregistered: to() and state_dict() leave them out")
        return lines


def audit(model: Any) -> Audit:
    """List all tensors of a module: parameters, buffers, and tensors that it holds without having registered them.

    >>> from tritensor import nn
    >>> print(nn.audit(nn.Linear(3, 2)))
    Linear
    path    kind       shape   dtype    device  grad  note
    weight  parameter  (2, 3)  float32  cpu     yes
    bias    parameter  (2,)    float32  cpu     yes
    cpu, float32: 2 tensors, 8 elements, 32 bytes
    """
    seen: dict[int, str] = {}
    entries = []
    found: list[tuple[str, str, Tensor]] = [
        *((path, "parameter", tensor) for path, tensor in model.named_parameters(remove_duplicate=False)),
        *((path, "buffer", tensor) for path, tensor in model.named_buffers(remove_duplicate=False)),
        *((path, "unregistered", tensor) for path, tensor in unregistered(model)),
    ]
    for path, kind, tensor in found:
        first = seen.setdefault(id(tensor), path)
        entries.append(
            Entry(
                path,
                kind,
                tuple(tensor.shape),
                tensor.dtype,
                tensor.device,
                tensor.requires_grad,
                tensor.nbytes,
                "" if first == path else f"shared with {first}",
            )
        )
    return Audit(type(model).__name__, entries)
