"""The transports between processes: MPI for host memory and any device, NCCL between real GPUs.

PyTorch's names of backends are wishes: "gloo", "mpi" and "ucc" mean the host's transport, "nccl" means NCCL where there
are real GPUs, and the host's transport where devices are simulated or there are none.
"""

from __future__ import annotations

import importlib.util
from typing import ClassVar

from ...drivers import active
from ...errors import explain

_NAMES = ("gloo", "mpi", "nccl", "ucc", "undefined")


class Backend(str):
    """The name of a backend, in lower case, and the names that there are.

    >>> Backend("NCCL"), Backend.default_device_backend_map["cpu"]
    ('nccl', 'gloo')
    """

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, FAKE = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl", "fake"
    backend_list: ClassVar = [UNDEFINED, GLOO, NCCL, UCC, MPI]
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": GLOO, "cuda": NCCL}
    backend_capability: ClassVar = {GLOO: ["cpu", "cuda"], NCCL: ["cuda"], UCC: ["cpu", "cuda"], MPI: ["cpu", "cuda"]}

    def __new__(cls, name: str) -> Backend:
        """The name in lower case."""
        return super().__new__(cls, name.lower())

    def __repr__(self) -> str:
        return repr(str(self))


def is_mpi_available() -> bool:
    """True if mpi4py is installed."""
    return importlib.util.find_spec("mpi4py") is not None


def is_gloo_available() -> bool:
    """True if there is a transport for tensors on the CPU, by the name that programs ask for."""
    return is_mpi_available()


def is_nccl_available() -> bool:
    """True if the name "nccl" can be used: nccl4py with a real GPU, or simulated devices, whose tensors MPI carries."""
    driver = active()
    if driver is None:
        return False
    return importlib.util.find_spec("nccl") is not None if not driver.lacks_nccl else is_mpi_available()


def is_ucc_available() -> bool:
    """False: UCC is not used."""
    return False


def is_xccl_available() -> bool:
    """False: there are no devices of Intel's."""
    return False


def parsed(backend: str | None) -> dict[str, str]:
    """The transport for each kind of device that a name wishes for.

    >>> parsed("cpu:gloo,cuda:nccl"), parsed("nccl")
    ({'cpu': 'gloo', 'cuda': 'nccl'}, {'cuda': 'nccl'})

    Raises:
        ValueError: not a name of PyTorch's.
    """
    name = "undefined" if backend is None else str(backend).lower()
    found = {}
    for part in name.split(","):
        device, _, own = part.rpartition(":")
        if own not in _NAMES or device not in ("", "cpu", "cuda"):
            raise ValueError(
                explain(
                    f"Unknown backend type {backend}", remedy=f"use one of {', '.join(_NAMES)}, or cpu:gloo,cuda:nccl"
                )
            )
        if own == "nccl":
            found["cuda"] = own
        else:
            found |= dict.fromkeys([device] if device else ["cpu", "cuda"], own)
    return found


def uses_nccl(wishes: dict[str, str]) -> bool:
    """True if NCCL is to carry tensors of real GPUs."""
    driver = active()
    real = driver is not None and not driver.lacks_nccl
    wish = wishes.get("cuda")
    return real and (wish == "nccl" or (wish == "undefined" and importlib.util.find_spec("nccl") is not None))
