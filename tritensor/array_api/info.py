"""What the namespace says of itself: devices, dtypes, capabilities."""

from __future__ import annotations

from typing import Any

from .. import devices, dtypes
from ..drivers import selection
from ..dtypes import dtype
from ..extents import MOST_DIMS
from .data_types import isdtype


class Info:
    """`__array_namespace_info__()`: which devices and dtypes there are, and what is supported."""

    def capabilities(self) -> dict[str, Any]:
        """Whether masks may index and shapes may depend on elements, and the most dimensions of an array."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": MOST_DIMS}

    def default_device(self) -> devices.device:
        """The device of new tensors for which none is named."""
        return devices.resolve(None)

    def default_dtypes(self, *, device: Any = None) -> dict[str, dtype]:
        """The dtypes of new tensors made from Python numbers, by kind; they are the same on all devices."""
        found = {"real floating": dtypes.of_scalar(0.0), "complex floating": dtypes.of_scalar(0j)}
        return {**found, "integral": dtypes.int64, "indexing": dtypes.int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, dtype]:
        """The standard's dtypes by name, all or those of a kind or a tuple of kinds; the same on all devices."""
        found = {entry.name: entry for entry in dtypes.ALL if "float16" not in entry.name}
        return found if kind is None else {name: entry for name, entry in found.items() if isdtype(entry, kind)}

    def devices(self) -> list[devices.device]:
        """The CPU, and the CUDA devices that there are."""
        driver = selection.active()
        return [devices.cpu, *(devices.cuda(index) for index in range(driver.device_count() if driver else 0))]
