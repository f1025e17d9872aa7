"""Drivers: device memory, streams, events, graphs, and the launching of kernels.

Two drivers implement one interface (`Driver`): `cuda`, on cuda-core, and `simulator`, on host memory. Code above this
package does not test which one is in use: a driver launches kernels itself, and its attributes state the differences
that callers depend on. Importing the package imports neither CUDA nor Triton: the first call of `active` or `require`
looks for a driver.
"""

from __future__ import annotations

from .driver import Driver as Driver
from .protocol import DeviceProperties as DeviceProperties
from .protocol import OutOfRoom as OutOfRoom
from .selection import active as active
from .selection import count as count
from .selection import doctor as doctor
from .selection import require as require
from .selection import simulate as simulate
from .streams import Event as Event
from .streams import Stream as Stream
