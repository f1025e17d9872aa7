"""Functions that make a DTensor of a shape, of which each rank makes its own part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...functional.creation import creation
from ...functional.random import draws
from ...tensors import Tensor
from ..device_mesh import DeviceMesh, init_device_mesh
from ..groups import get_world_size
from .dtensor import DTensor, over
from .placements import Placement, Replicate, Spec, from_first, moved, normalized

__all__ = ["empty", "full", "ones", "rand", "randn", "zeros"]


def _made(
    function: Callable[..., Tensor],
    size: tuple[Any, ...],
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    random: bool = False,
    **named: object,
) -> DTensor:
    shape = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else tuple(size)
    mesh = device_mesh or init_device_mesh("cpu", (get_world_size(),))
    spec = Spec(mesh, normalized(mesh, placements, len(shape)), shape)
    named.pop("layout", None)
    if random:  # the numbers of one tensor on all ranks, those of the first
        x = function(shape, device=mesh.device_type, **named)
        for axis in range(mesh.ndim):
            x = from_first(x, mesh, axis)
        x = moved(x, spec.with_placements([Replicate()] * mesh.ndim), spec.placements).clone()
    else:
        x = function(spec.local()[0], device=mesh.device_type, **named)
    return over(x, spec).requires_grad_(requires_grad)  # type: ignore[return-value]


def zeros(*size: int | Sequence[int], **named: object) -> DTensor:
    """A DTensor of zeros.

    Args:
        size: the shape of the whole.
        named: `dtype`, `requires_grad`, `device_mesh` (all ranks of the job unless given) and `placements`, one for
            each dimension of the mesh (replicated unless given).
    """
    return _made(creation.zeros, size, **named)  # type: ignore[arg-type]


def ones(*size: int | Sequence[int], **named: object) -> DTensor:
    """A DTensor of ones; arguments as of `zeros`."""
    return _made(creation.ones, size, **named)  # type: ignore[arg-type]


def empty(*size: int | Sequence[int], **named: object) -> DTensor:
    """A DTensor of uninitialised elements; arguments as of `zeros`."""
    return _made(creation.empty, size, **named)  # type: ignore[arg-type]


def full(size: Sequence[int], fill_value: object, **named: object) -> DTensor:
    """A DTensor whose elements are all `fill_value`; arguments as of `zeros`."""
    return _made(lambda shape, **more: creation.full(shape, fill_value, **more), (size,), **named)  # type: ignore[arg-type]


def rand(*size: int | Sequence[int], **named: object) -> DTensor:
    """A DTensor of uniform random numbers, those that the first rank draws; arguments as of `zeros`."""
    return _made(draws.rand, size, random=True, **named)  # type: ignore[arg-type]


def randn(*size: int | Sequence[int], **named: object) -> DTensor:
    """A DTensor of normal random numbers, those that the first rank draws; arguments as of `zeros`."""
    return _made(draws.randn, size, random=True, **named)  # type: ignore[arg-type]
