"""Device meshes: the ranks of a job as an array, with a group for each row of each dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import cuda
from ..errors import UnsupportedError
from ..functional.creation.creation import tensor
from ..tensors import Tensor
from ..types import devices
from . import groups
from .process_group import ProcessGroup

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """The ranks of a job as an array of any number of dimensions, each with its groups of processes.

    Args:
        device_type: "cpu" or "cuda".
        mesh: the ranks as a tensor or nested lists; every process of the job makes the same.
        mesh_dim_names: a name for each dimension.

    Attributes:
        mesh: the ranks, a tensor of int64 on the CPU.
        mesh_dim_names: the names, or None.

    Raises:
        ValueError: ranks that the job does not have, or names that do not fit.
    """

    def __init__(
        self,
        device_type: str,
        mesh: Tensor | np.ndarray | Sequence[Any],
        *,
        mesh_dim_names: Sequence[str] | None = None,
        backend_override: object = None,
    ) -> None:
        ranks = np.asarray(mesh.tolist() if isinstance(mesh, Tensor) else mesh, np.int64)
        _check(device_type, ranks, mesh_dim_names)
        self._fill(device_type, ranks, None if mesh_dim_names is None else tuple(mesh_dim_names))
        self._root: DeviceMesh = self
        self._flattened: dict[str, DeviceMesh] = {}
        self._groups = [_groups_along(ranks, dimension) for dimension in range(ranks.ndim)]

    def _fill(self, device_type: str, ranks: np.ndarray, names: tuple[str, ...] | None) -> None:
        self.device_type, self._ranks, self.mesh_dim_names = device_type, ranks, names
        self.mesh = tensor(ranks)
        place = np.argwhere(ranks == groups.get_rank())
        self._place = [int(index) for index in place[0]] if len(place) else None

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._ranks.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of ranks along each dimension."""
        return tuple(self._ranks.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of ranks, along one dimension if it is given."""
        return int(self._ranks.size if mesh_dim is None else self._ranks.shape[mesh_dim])

    def get_rank(self) -> int:
        """The rank of this process in the job."""
        return groups.get_rank()

    def get_coordinate(self) -> list[int] | None:
        """The place of this process in the mesh; None if it is not in it."""
        return None if self._place is None else list(self._place)

    def _dimension(self, mesh_dim: int | str | None, what: str) -> int:
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions Optional kwarg `mesh_dim` needs to be specified "
                    f"when device_mesh.ndim > 1. If you want all the {what}, use `get_all_groups()` instead."
                )
            return 0
        if isinstance(mesh_dim, str):
            if mesh_dim not in (self.mesh_dim_names or ()):
                raise KeyError(f"Invalid mesh_dim_name {mesh_dim!r}; the names are {self.mesh_dim_names}")
            return (self.mesh_dim_names or ()).index(mesh_dim)
        return mesh_dim

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The place of this process along one dimension. Raises RuntimeError without one if there are several."""
        dimension = self._dimension(mesh_dim, "local ranks")
        assert self._place is not None, "this process is not in the mesh"
        return self._place[dimension]

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The group of this process along one dimension. Raises RuntimeError without one if there are several."""
        return self._groups[self._dimension(mesh_dim, "ProcessGroups")]

    def get_all_groups(self) -> list[ProcessGroup]:
        """The group of this process along each dimension."""
        return list(self._groups)

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the mesh along one or several dimensions in which this process is, by their names.

        Raises:
            KeyError: no such names, or not in their order.
        """
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self.mesh_dim_names:
            return self
        if len(names) == 1 and names[0] in self._root._flattened:
            return self._root._flattened[names[0]]
        own = self.mesh_dim_names or ()
        places = [own.index(name) for name in names if name in own]
        if len(places) != len(names) or places != sorted(places):
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {own}; they keep their order"
            )
        at = tuple(slice(None) if dim in places else index for dim, index in enumerate(self._place or [0] * self.ndim))
        part = object.__new__(DeviceMesh)
        part._fill(self.device_type, self._ranks[at], names)
        part._root, part._flattened = self._root, {}
        part._groups = [self._groups[place] for place in places]
        return part

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """A mesh of one dimension of all its ranks, which the whole mesh then has by that name."""
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ("flat",))
        known = self._root._flattened
        if name not in known:
            if self.ndim == 1:
                rows = [self._ranks]
            else:  # all processes make the groups of all parts
                kept = [(self._root.mesh_dim_names or ()).index(own) for own in self.mesh_dim_names or ()]
                moved = np.moveaxis(self._root._ranks, kept, range(-len(kept), 0))
                rows = list(moved.reshape(-1, self._ranks.size))
            flat = object.__new__(DeviceMesh)
            flat._fill(self.device_type, self._ranks.reshape(-1), (name,))
            flat._root, flat._flattened = self._root, {}
            flat._groups = list(self._groups) if self.ndim == 1 else [_own_group(rows)]
            known[name] = flat
        return known[name]

    @classmethod
    def from_group(
        cls,
        group: ProcessGroup | Sequence[ProcessGroup],
        device_type: str,
        mesh: Tensor | np.ndarray | Sequence[Any] | None = None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
    ) -> DeviceMesh:
        """A mesh of groups that exist: one of one dimension, or one for each dimension of `mesh`."""
        made = object.__new__(cls)
        given = [group] if isinstance(group, ProcessGroup) else list(group)
        ranks = np.asarray(given[0].ranks if mesh is None else mesh, np.int64)
        if ranks.ndim != len(given):
            raise ValueError(f"Expects one group for each dimension of mesh: {len(given)} for {ranks.ndim}")
        made._fill(device_type, ranks, None if mesh_dim_names is None else tuple(mesh_dim_names))
        made._root, made._flattened, made._groups = made, {}, given
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> Any:
        return self.device_type, self._ranks.tobytes(), self.shape, self.mesh_dim_names

    def __repr__(self) -> str:
        names = self.mesh_dim_names
        shape = (
            f"({', '.join(f'{name}={n}' for name, n in zip(names, self.shape, strict=True))})" if names else self.shape
        )
        return f"DeviceMesh({shape}, '{self.device_type}', stride={tuple(self.mesh.stride())})"


def _check(device_type: str, ranks: np.ndarray, names: Sequence[str] | None) -> None:
    if device_type not in ("cpu", "cuda"):
        raise UnsupportedError(f"DeviceMesh: device_type must be 'cpu' or 'cuda', not {device_type!r}")
    size = groups.get_world_size()
    if ranks.size > size or (ranks.size and (ranks.min() < 0 or ranks.max() >= size)):
        raise RuntimeError(
            f"Mesh should not be bigger than default world size {size}, but found {ranks.size} ranks, of which the "
            f"largest is {ranks.max()}!"
        )
    if len(np.unique(ranks)) != ranks.size:
        raise RuntimeError(f"DeviceMesh cannot have duplicate values, but found {ranks.tolist()}")
    if names is not None and (len(set(names)) != len(names) or len(names) != ranks.ndim):
        raise RuntimeError(f"mesh_dim_names must be {ranks.ndim} different names, got {tuple(names)}")


def _groups_along(ranks: np.ndarray, dimension: int) -> Any:
    """The group of this process in a dimension; all processes make the groups of all rows."""
    rows = np.moveaxis(ranks, dimension, -1).reshape(-1, ranks.shape[dimension])
    if len(rows) == 1 and rows.size == groups.get_world_size() and (np.diff(rows[0]) == 1).all():
        return groups.default_group()
    return _own_group(list(rows))


def _own_group(rows: Sequence[np.ndarray]) -> Any:
    made = [groups.new_group([int(rank) for rank in row]) for row in rows]
    return next((group for group in made if not groups.outside(group)), groups.GroupMember.NON_GROUP_MEMBER)


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Sequence[str] | None = None,
    backend_override: object = None,
) -> DeviceMesh:
    """Arrange all processes of the job, or the first of them, in an array, and make their groups.

    Joins the job first if this process has not, and chooses a CUDA device for it.

    Args:
        device_type: "cpu" or "cuda".
        mesh_shape: the number of ranks along each dimension.
        mesh_dim_names: a name for each dimension.
        backend_override: accepted, unused.

    Raises:
        RuntimeError: more ranks than the job has, or names that do not fit.
    """
    if mesh_dim_names is not None and len(mesh_dim_names) != len(mesh_shape):
        raise RuntimeError(
            f"mesh_shape and mesh_dim_names should have same length! {tuple(mesh_shape)} and {tuple(mesh_dim_names)}"
        )
    if not groups.is_initialized():
        groups.init_process_group()
    if device_type == "cuda" and devices.current_index() == 0 and cuda.device_count() > 1:
        cuda.set_device(groups.get_node_local_rank() % cuda.device_count())
    ranks = np.arange(math.prod(mesh_shape)).reshape(tuple(mesh_shape))
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
