"""Drivers: device memory, streams, events, graphs, and the launching of kernels.

Two drivers implement one interface (`Driver`): `cuda`, on cuda-core, and `simulator`, on host memory. Code above this
package does not test which one is in use: a driver launches kernels itself, and its attributes state the differences
that callers depend on. Importing the package imports neither CUDA nor Triton: the first call of `active` or `require`
looks for a driver.
"""

from __future__ import annotations

from .driver import Driver
from .protocol import DeviceProperties, OutOfRoom
from .selection import active, count, doctor, require, simulate
from .streams import Event, Stream

__all__ = [
    "DeviceProperties",
    "Driver",
    "Event",
    "OutOfRoom",
    "Stream",
    "active",
    "count",
    "doctor",
    "require",
    "simulate",
]
