"""Drivers: where device memory, streams and events come from.

There are two, behind one protocol (`Driver`): `cuda`, on cuda-core, and `simulator`, on host memory. No code above this
package asks which one it has: a driver launches kernels itself, and says what its callers depend on. Importing it
imports neither CUDA nor Triton: a driver is looked for when it is first asked for.
"""

from __future__ import annotations

from .driver import Driver
from .protocol import DeviceProperties, OutOfRoom
from .selection import active, doctor, require, simulate
from .streams import Event, Stream

__all__ = ["DeviceProperties", "Driver", "Event", "OutOfRoom", "Stream", "active", "doctor", "require", "simulate"]
