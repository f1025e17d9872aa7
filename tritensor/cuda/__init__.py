"""CUDA devices, real or simulated: their properties, streams, events, memory, graphs, and the simulation.

Names and behaviour are `torch.cuda`'s. Functions that make sense without a device work without one (`is_available`,
`device_count`, `memory_allocated`, `empty_cache`); all others raise a DeviceError that names what is missing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..drivers import DeviceProperties, Event, Stream, simulate
from ..drivers.ledger import Ledger, transfers
from ..errors import OutOfMemoryError
from ..functional.creation.tensor_types import OF_CUDA
from . import devices, graphs, user_kernel
from .devices import *
from .graphs import *
from .user_kernel import *

if TYPE_CHECKING:
    from . import amp
    from .profiling import profile
    from .tuning import tune

__all__ = ["DeviceProperties", "Event", "Ledger", "OutOfMemoryError", "Stream", "amp", "simulate", "transfers"]
__all__ += ["profile", "tune"]
__all__ += devices.__all__
__all__ += graphs.__all__
__all__ += user_kernel.__all__


def __getattr__(name: str) -> Any:
    """`amp`, `profile` and `tune`, imported when first named as few programs need them; types such as `FloatTensor`."""
    if name == "amp":
        return importlib.import_module(f"{__name__}.amp")
    if name in ("profile", "tune"):
        return getattr(
            importlib.import_module(f"tritensor.cuda.{'profiling' if name == 'profile' else 'tuning'}"), name
        )
    if name in OF_CUDA:
        return OF_CUDA[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
