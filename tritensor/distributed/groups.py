"""Joining a job and leaving it, and its groups of processes."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from .. import cuda, settings
from ..drivers import active
from ..errors import DistError, RangeError, require
from ..types import devices
from . import checks, failure, launchers, meeting
from .backends import Backend, parsed, uses_nccl
from .backends.mpi import MpiBackend
from .backends.opening import library, load_mpi, open_mpi, started
from .job import Job
from .process_group import ProcessGroup
from .store import PrefixStore, Store

__all__ = ["GroupMember", "default_pg_timeout", "destroy_process_group", "get_backend", "get_backend_config"]
__all__ += ["get_default_backend_for_device", "get_global_rank", "get_group_rank", "get_node_local_rank"]
__all__ += ["get_pg_count", "get_process_group_ranks", "get_rank", "get_world_size", "group"]
__all__ += ["init_process_group", "is_initialized", "is_torchelastic_launched", "new_group", "new_subgroups"]
__all__ += ["new_subgroups_by_enumeration"]

default_pg_timeout = timedelta(minutes=30)

_default: ProcessGroup | None = None


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: object = None,
    device_id: devices.device | str | int | None = None,
) -> None:
    """Join the other processes of the job; all of them have to call this.

    A launcher tells each process its rank in the environment: torchrun and `python -m tritensor launch`, mpiexec and
    mpirun (MPICH, Open MPI, Intel MPI), srun. Without one, arguments do: `rank`, `world_size` and where rank 0 is. A
    program that nobody launched is a job of one process. On the host all collectives are compared across processes
    before they run. From here on an uncaught exception ends the whole job.

    Args:
        backend: what carries tensors: "gloo" or "mpi" (unless given) for any device, "nccl" for GPUs (on simulated
            devices and without any it is accepted), "cpu:gloo,cuda:nccl" for both.
        init_method: "env://" (unless given), "tcp://host:port" of rank 0, or "file:///path" that all processes see.
        timeout: how long to wait for the others, here and in a collective; half an hour unless given.
        world_size: how many processes there are, if no launcher says it.
        rank: the number of this process, likewise.
        store: where the processes meet, instead of `init_method`; needs `rank` and `world_size`.
        group_name: accepted, unused.
        pg_options: accepted, unused.
        device_id: the CUDA device of this process, which becomes the current one.

    Raises:
        ValueError: an unknown backend or way to meet, a number that is missing or that the launcher contradicts, or an
            existing group.
        DistError: the backend is not installed or cannot work here, not all processes joined in time, two have the
            same rank, or they disagree about their number.
    """
    global _default
    require(_default is None, ValueError, "trying to initialize the default process group twice!")
    limit = default_pg_timeout if timeout is None else timeout
    if not isinstance(limit, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {limit!r}")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if store is not None and (rank < 0 or world_size < 1):
        raise AssertionError("rank and world_size must be given (and be at least 0 and 1) if using store")
    wishes = parsed(backend)
    if device_id is not None:
        place = devices.cuda(device_id) if isinstance(device_id, int) else devices.device(device_id)
        if place.type == "cuda":
            cuda.set_device(place)
    cluster = getattr(active(), "cluster", None)
    job, communicators = (
        cluster.job(limit)
        if cluster is not None
        else _met(init_method, limit, world_size, rank, store, host="cpu" in wishes or not uses_nccl(wishes))
    )
    job.backend = ("mpi" if backend is None else str(backend)).lower()
    call = checks.Call("init_process_group", 0)
    driver = active()
    checked = bool(settings.debug.value) or (driver is not None and driver.checks_by_default)
    made = ProcessGroup(job, "0", range(job.size), job.backend, None, None)
    job.made = 1
    try:
        if communicators is not None:
            mpi, opening = communicators
            made.poll(lambda: all(request.Test() for _, request in opening), call)
            # not before they are open: to look for a message in one that is not crashes
            made.host = job.host = MpiBackend(mpi, [communicator for communicator, _ in opening])
            failure.unlink_memory()
        if not job.counted:
            job.find_neighbours(made.exchange(job.fact(checked), call))
        _give_device(made, wishes)
    except BaseException as error:
        job.give_up(error)
        raise
    made.checked = job.checked
    _default = made
    if not job.counted:
        failure.watch(job)


def _met(
    init_method: str | None, limit: timedelta, size: int, rank: int, store: Store | None, host: bool
) -> tuple[Job, Any]:
    """The job of this process, after all have met; and MPI's communicators, if `host` memory is to be sent."""
    by_launcher = store is None and init_method in (None, "env://")
    here = launchers.placed(rank, size) if by_launcher else launchers.Launch("", rank, size)
    rank, size = here.rank, here.size
    loaded = load_mpi(here.mpi) if host or here.mpi else ""
    if loaded and here.mpi in (loaded, "any"):
        return Job(rank, size, limit), open_mpi(limit.total_seconds(), rank, size, "")
    if loaded == "openmpi" and host:
        raise DistError(
            "init_process_group: Open MPI joins only processes that its own mpirun has started, or srun --mpi=pmix",
            f"the MPI library is {library()}",
            here.variables,
            remedy="start them so, or: pip install mpich, which starts from RANK and WORLD_SIZE",
        )
    if store is None:
        store, rank, size = next(meeting.rendezvous(init_method or "env://", rank, size, timeout=limit))
    if not 0 <= rank < size:
        raise ValueError(f"init_process_group(): rank={rank} is none of world_size={size}, from 0 to {size - 1}")
    met = meeting.join(store, rank, size, limit, here.variables, started() if host else "")
    job = Job(rank, size, limit, met)
    try:
        starting = meeting.starting(met, rank) if host and not started() else contextlib.nullcontext("")
        with starting as name:
            return job, open_mpi(limit.total_seconds(), rank, size, name) if host else None
    except BaseException as error:
        job.give_up(error)
        raise


def _give_device(made: ProcessGroup, wishes: dict[str, str]) -> None:
    """NCCL for the tensors of real GPUs; on simulated ones the rule that "nccl" carries no tensors of the CPU."""
    driver = active()
    if made.job.counted:
        made.host, made.device = driver.cluster.transports(made)  # type: ignore[union-attr]
    elif uses_nccl(wishes):
        from .backends.nccl import NcclBackend

        made.device = NcclBackend(made.rank(), made.size())
        made.device.connect(lambda text: made.exchange(text, checks.Call("init_process_group", 0)))
    made.lacks_cpu = made.host is None or ("cpu" not in wishes and driver is not None)


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leave a group, or the job unless given. A process that ends leaves too; others that wait for it get an error.

    Raises:
        ValueError: there is no group.
    """
    global _default
    made = default_group(group)
    if made is not _default:
        made.close()
        return
    failure.unwatch()
    _default = None
    made.job.leave()


def default_group(group: ProcessGroup | None = None) -> ProcessGroup:
    """The group itself, or that of all processes.

    Raises:
        ValueError: `init_process_group` has not been called, or `group` is none that this process is in.
    """
    if _default is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    if group is None:
        return _default
    if not isinstance(group, ProcessGroup) or group.group_name not in _default.job.groups:
        raise ValueError(f"Invalid process group specified: {group!r}")
    return group


def is_initialized() -> bool:
    """True if this process has joined a job.

    >>> is_initialized()
    False
    """
    return _default is not None


class _WorldOf(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes; None before `init_process_group`."""
        return _default

    @WORLD.setter
    def WORLD(cls, group: ProcessGroup | None) -> None:
        global _default
        _default = group


class group(metaclass=_WorldOf):
    """`group.WORLD` is the group of all processes, None before `init_process_group`."""


class GroupMember(metaclass=_WorldOf):
    """`GroupMember.NON_GROUP_MEMBER` stands for a group that this process is not in."""

    NON_GROUP_MEMBER = -100


def outside(group: object) -> bool:
    """True for the group that this process is not in."""
    return isinstance(group, int) and group == GroupMember.NON_GROUP_MEMBER


def get_rank(group: ProcessGroup | None = None) -> int:
    """The rank of this process in a group, from 0; -1 if it is not in it. ValueError before `init_process_group`."""
    return -1 if outside(group) else default_group(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """The number of processes of a group; -1 if this one is not in it. ValueError before `init_process_group`."""
    return -1 if outside(group) else default_group(group).size()


def get_backend(group: ProcessGroup | None = None) -> Backend:
    """The backend that was asked for, such as "gloo" or "nccl". Raises ValueError before `init_process_group`."""
    return Backend(default_group(group).backend)


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """The backends by kind of device: "cpu:gloo,cuda:gloo"."""
    return ",".join(f"{kind}:{name}" for kind, name in parsed(default_group(group).backend).items())


def get_default_backend_for_device(device: devices.device | str) -> str:
    """The name of the backend for a device: "gloo" for the CPU, "nccl" for CUDA."""
    kind = device.type if isinstance(device, devices.device) else str(device).partition(":")[0]
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The local rank of this process among those on its machine: the index of the GPU to use.

    It is what the launcher says in LOCAL_RANK, MPI_LOCALRANKID or SLURM_LOCALID, else what was found out in
    `init_process_group`, else `fallback_rank`.

    Raises:
        RuntimeError: none of these is known.
    """
    if _default is not None and "LOCAL_RANK" not in os.environ:
        return _default.job.local_rank
    known = launchers.local_rank()
    if known is not None:
        return known
    if fallback_rank is not None:
        return fallback_rank
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, "
        "assuming you are not running in a multi-device context and want the code to run locally instead."
    )


def is_torchelastic_launched() -> bool:
    """True if `python -m tritensor launch` or torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The ranks in the job of a group's processes."""
    return list(default_group(group).ranks)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in a group of the process with a rank in the job. Raises ValueError if it is not in the group."""
    ranks = default_group(group).ranks
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks.index(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank in the job of the process with a rank in a group. Raises ValueError if the group has no such rank."""
    ranks = default_group(group).ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_pg_count() -> int:
    """The number of groups that this process is in."""
    return 0 if _default is None else len(_default.job.groups)


# ---- groups of some processes -------------------------------------------------------------------------------------


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: object = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: devices.device | str | int | None = None,
    sort_ranks: bool = True,
) -> Any:
    """Make a group of some processes. All processes of the job call it in the same order, those outside, too.

    Args:
        ranks: their ranks in the job; all unless given.
        timeout: how long its collectives wait; as the job's unless given.
        backend: as for `init_process_group`; the job's unless given.
        pg_options: accepted, unused.
        use_local_synchronization: only the processes of the group call it.
        group_desc: what it is for.
        device_id: accepted, unused.
        sort_ranks: number its processes by their ranks in the job, and not by their order in `ranks`.

    Returns:
        The group; `GroupMember.NON_GROUP_MEMBER` in processes that are not in it.

    Raises:
        ValueError: ranks that the job does not have, or twice. DistError: processes have called other things, or one
            has left.
    """
    world = default_group()
    members = list(range(world.size())) if ranks is None else [int(rank) for rank in ranks]
    if len(set(members)) != len(members):
        raise ValueError(f"ranks list must not contain duplicate entries, got {members}")
    for rank in members:
        if not 0 <= rank < world.size():
            raise ValueError(
                f"Rank {rank} is out of range. Valid ranks are 0 to {world.size() - 1} (world_size={world.size()})"
            )
    members = sorted(members) if sort_ranks else members
    job = world.job
    call = checks.Call("new_group", 0, f"ranks={members}")
    if use_local_synchronization:
        if job.rank not in members:
            return GroupMember.NON_GROUP_MEMBER
        job.made_by[tuple(members)] += 1  # not `made`, which has to be the same in other processes, too
        name = hashlib.sha256(f"{members}/{job.made_by[tuple(members)]}".encode()).hexdigest()[:12]
        _come_together(job, members, name, call)
    else:
        name = str(job.made)
        job.made += 1  # in all processes alike
        world.run(call, lambda transport: None, async_op=False)
    if job.rank not in members:
        return GroupMember.NON_GROUP_MEMBER
    wishes = parsed(job.backend if backend is None else backend)
    host = None
    if job.host is not None:
        host = job.host.part(members, int.from_bytes(hashlib.sha256(name.encode()).digest()[:2], "big"))
    made = ProcessGroup(job, name, members, job.backend if backend is None else str(backend).lower(), host, None)
    made.timeout = job.timeout if timeout is None else timeout
    made.group_desc = group_desc or made.group_desc
    _give_device(made, wishes)
    return made


def _come_together(job: Job, members: Sequence[int], name: str, call: checks.Call) -> None:
    """Wait until all of some processes are there, by messages between them or by the store."""
    world = default_group()
    if job.counted:
        return
    if job.host is None:
        assert job.store is not None
        own = PrefixStore(f"group/{name}", job.store)
        own.set(str(job.rank), "1")
        own.wait([str(rank) for rank in members], job.timeout)
        return
    for step in range(max(1, (len(members) - 1).bit_length())):  # each has heard of twice as many after a step
        place, count = members.index(job.rank), len(members)
        to, source = members[(place + (1 << step)) % count], members[(place - (1 << step)) % count]
        request = job.host.greet(to, source, (int(name, 16) % 10000 + 1) * 16 + step)
        world.poll(request, call)


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: object = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Divide the job into groups of `group_size` neighbouring ranks, as many as a machine has unless given.

    Returns:
        The group of this process, and all groups.
    """
    size = default_group(group).size()
    group_size = group_size or int(os.environ.get("LOCAL_WORLD_SIZE", 0)) or size
    if group_size > size:
        raise ValueError(f"The arg 'group_size' must not exceed the world size ({size})")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by 'group_size={group_size}'")
    lists = [list(range(start, start + group_size)) for start in range(0, size, group_size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: object = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Make a group of each list of ranks; no rank may be in two. Returns the group of this process, and all groups."""
    require(bool(ranks_per_subgroup_list), ValueError, "The arg 'ranks_per_subgroup_list' cannot be empty")
    given = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    twice = next((rank for rank in given if given.count(rank) > 1), None)
    if twice is not None:
        raise ValueError(f"Rank {twice} has appeared in two subgroups; each rank may be in one")
    groups = [new_group(ranks, timeout, backend, pg_options, False, group_desc) for ranks in ranks_per_subgroup_list]
    own = next((made for made in groups if not outside(made)), None)
    return own, groups


def ranks_of(group: ProcessGroup, **named: int | None) -> Iterator[int]:
    """The rank in a group of each argument that names a rank in the job or, as `group_...`, in the group itself."""
    for name, value in named.items():
        if value is None:
            continue
        if name.startswith("group_"):
            if not isinstance(value, int) or not 0 <= value < group.size():
                raise RangeError(f"{name}={value!r} is no rank of this group, which has ranks 0 to {group.size() - 1}")
            yield value
        elif not isinstance(value, int) or value not in group.ranks:
            shown = f"ranks 0 to {group.size() - 1}" if group is _default else f"ranks {list(group.ranks)}"
            whole = "job" if group is _default else "group"
            raise RangeError(f"{name}={value!r} is no rank of this {whole}, which has {shown}")
        else:
            yield group.ranks.index(value)
