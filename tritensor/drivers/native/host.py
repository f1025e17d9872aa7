"""The processor as a device for Triton kernels: arrays stay where they are, and launches run at once."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import explain, warn
from ..selection import lacks_native
from ..simulator import Simulator
from .driver import NativeSimulator

if TYPE_CHECKING:
    from ..loading import LaunchRequest
    from ..streams import Stream

__all__ = ["Lent", "host"]


class Lent:
    """The memory of an array of the host, in the place of a device's buffer."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.nbytes = array, array.nbytes
        self.address = array.ctypes.data
        self.driver = host()
        self.arena = self.driver.default_stream(0).arena
        self.device = self.arena.device

    def record_stream(self, stream: Stream) -> None:
        """The launch runs before anything else does."""


class _Host(NativeSimulator):
    """The driver of launches on arrays of the host."""

    kind = "the processor"

    def __init__(self) -> None:
        super().__init__(1)
        self.shadow = None

    def launch(self, stream: Stream, request: LaunchRequest) -> None:
        lack = lacks_native()
        if lack:
            _say(lack)
            Simulator.launch(self, stream, request)
        else:
            super().launch(stream, request)

    def submit(self, stream: Stream, function: Callable[[], object]) -> None:
        function()

    def memory(self, address: int, nbytes: int) -> np.ndarray:
        return np.frombuffer(memoryview((ctypes.c_char * nbytes).from_address(address)), np.uint8)


@cache
def host() -> Any:
    """The driver of the processor itself."""
    return _Host()


@cache
def _say(lack: str) -> None:
    words = f"Triton kernels on CPU tensors are interpreted, some hundred times slower: {lack}"
    warn(explain(words, remedy="pip install 'tritensor[native]' (Linux on x86-64)"))
