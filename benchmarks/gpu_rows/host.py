"""The host: the time of enqueuing, copies between host and device, and the start of a process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from types import ModuleType
from typing import Any

from benchmarks.cases import CASES, Case

from .row import FLOATS, HOST, START, TRANSFER, Row, Shapes, Target, beside_torch


def _enqueue(
    name: str,
    title: str,
    statement: str,
    inputs: Shapes,
    targets: Mapping[str, Target],
    grad: bool = False,
    peers: tuple[str, ...] = ("torch",),
) -> Row:
    case = Case(name, title, statement, dict(inputs), {}, requires_grad=grad)
    return Row(case, inputs, targets, kind=HOST, peers=peers)


_THOUSAND = {"a": (1000,), "b": (1000,)}
HOSTS = (
    _enqueue(
        "enqueue_add",
        "a + b of 1 K elements, enqueue",
        "a + b",
        _THOUSAND,
        beside_torch(1.3, 0.9, below=True),
        peers=("torch", "cupy"),
    ),
    _enqueue(
        "enqueue_add_grad",
        "a + b of 1 K elements with gradient, enqueue",
        "a + b",
        _THOUSAND,
        beside_torch(1.2, 0.85, below=True),
        grad=True,
    ),
    *[
        # the products' rounding: three products of tf32 on an H200 gave 1.8e-6 where torch gave 1.0e-6
        Row(replace(case, name="enqueue_step", targets={}, rounding=3e-6), case.inputs, kind=HOST)
        for case in CASES
        if case.name == "step_128"
    ],
)


def _host_side(torch: ModuleType, tensors: Mapping[str, Any]) -> dict[str, object]:
    """The input in pageable and in pinned host memory, and pinned memory of its size."""
    x = tensors["x"]
    pageable = x.detach().cpu()
    pinned, target = (
        (pageable.pin_memory(), torch.empty_like(pageable).pin_memory())
        if x.is_cuda
        else (pageable, torch.empty_like(pageable))
    )
    return {"pinned": pinned, "target": target, "array": pageable.numpy(), "device": x.device}


def _transfer(name: str, title: str, statement: str, targets: Mapping[str, Target]) -> Row:
    case = Case(
        name,
        f"{title}, 1 GB",
        statement,
        {"x": (FLOATS,)},
        {},
        numpy=None,
        prepare=_host_side,
        exact=lambda arrays: arrays["x"],
        rounding=0.0,
    )
    return Row(case, {"x": (1_000_003,)}, targets, kind=TRANSFER, moved=lambda shapes: 4 * prod(shapes["x"]))


TRANSFERS = (
    _transfer("to_device_pinned", "pinned host to device", "pinned.to(device)", beside_torch(0.97, 1.0)),
    _transfer(
        "to_device_sent",
        "pinned host to device, non-blocking",
        "pinned.to(device, non_blocking=True)",
        beside_torch(0.97, 1.0),
    ),
    _transfer("to_host_pinned", "device to pinned host", "target.copy_(x)", beside_torch(0.97, 1.0)),
    _transfer("to_host_non_blocking", "device to host, non-blocking", "x.to('cpu', non_blocking=True)", {}),
    _transfer("to_device_array", "NumPy array to device", "lib.from_numpy(array).to(device)", beside_torch(1.0, 2.0)),
    _transfer("to_host_array", "device to NumPy array", "x.cpu().numpy()", {}),
)
STARTS = (
    Row(
        Case("start", "import + first GPU operator, warm cache", "", {}, {}, numpy=None),
        {},
        beside_torch(0.6, 0.35, below=True),
        kind=START,
    ),
)
